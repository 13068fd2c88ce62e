"""A schedule as primitives of TVM's TIR schedules."""

from __future__ import annotations

from loopsched.exchange.accesses import Access, Guard, accesses, stored_shape
from loopsched.exchange.exported import Exported
from loopsched.exchange.factors import Factor, factors, rounded
from loopsched.loops_text import Span
from loopsched.nest import Loop, Schedule
from loopsched.problem import Problem

_TYPES = {8: "float64", 4: "float32", 2: "float16", 1: "int8"}


def to_tvm(problem: Problem, schedule: Schedule) -> Exported:
    """Write a schedule as a Python module that builds and schedules a TIR function.

    Parameters
    ----------
    problem : Problem
    schedule : Schedule
        Spatial loops of the outermost unit are fused and bound to
        ``blockIdx.x``, of the next to ``threadIdx.x``.

    Returns
    -------
    Exported
        ``schedule_tvm.py`` with ``problem()``, the computation in tensor
        expressions, and ``apply(sch)``; ``lost`` names tiles that were
        rounded up, since TVM splits into whole factors.

    Raises
    ------
    ScheduleError
        If the schedule does not cover the problem.

    Examples
    --------
    >>> from loopsched import gemm, parse_schedule
    >>> problem = gemm(m=60, n=8, k=8)
    >>> made = to_tvm(problem, parse_schedule("M:60@SM N:8 K:8 M:16", problem))
    >>> print(made.text().partition("def apply")[2])
    (sch, block="C", bind=True):
        get_block = getattr(sch, "get_sblock", None) or sch.get_block  # renamed in TVM 0.2x
        M, N, K = sch.get_loops(get_block(block))
        M_0, M_1 = sch.split(M, factors=[None, 16])
        sch.reorder(M_0, N, K, M_1)
        if bind:
            sch.bind(M_0, "blockIdx.x")  # SM
        return sch
    <BLANKLINE>
    """
    schedule.check(problem)
    legal, changed = rounded(schedule)
    every = factors(legal)
    lines = [
        f"# Made by loopsched from the schedule {schedule}",
        *_definition(problem),
        "",
        "",
        f'def apply(sch, block="{problem.output}", bind=True):',
        *(f"    {line}" for line in _primitives(problem, legal, every)),
        "    return sch",
        "",
    ]
    return Exported((("schedule_tvm.py", "\n".join(lines)),), (*changed, *_lost(problem)))


def _is_expressible(problem: Problem) -> bool:
    return all(axis.is_plain for axis in problem.output_tensor.axes)


def _lost(problem: Problem) -> list[str]:
    lost = [
        f"'{tensor.name}': elements of {tensor.element_bytes} bytes are taken as "
        f"{_TYPES.get(tensor.element_bytes, 'float32')}"
        for tensor in problem.tensors
        if tensor.element_bytes not in (4, 8)
    ]
    if not _is_expressible(problem):
        lost.append(
            f"'{problem.output}' is written where windows overlap or pad, which tensor expressions "
            "cannot say: no problem(), and apply() needs a block whose loops are "
            f"{' '.join(_order(problem))}"
        )
    return lost


def _order(problem: Problem) -> list[str]:
    """List the loops of a block as tensor expressions make them: written dims, then summed."""
    written = [axis.dims[0] for axis in problem.output_tensor.axes if len(axis.dims) == 1]
    return [*written, *(dim for dim in problem.dims if dim not in written)]


def _definition(problem: Problem) -> list[str]:
    if not _is_expressible(problem):
        return []
    point = Schedule(tuple(Loop(dim, size) for dim, size in problem.sizes))
    spans = [Span(dim, "0", (str(size),), 1) for dim, size in problem.sizes]
    written, *read = accesses(problem, point, spans)
    summed = problem.reduction_dims
    lines = ["", "", "def problem():", "    from tvm import te", ""]
    for access in read:
        shape = stored_shape(problem, access.tensor)
        kind = _TYPES.get(access.tensor.element_bytes, "float32")
        lines.append(
            f"    {_tensor(access)} = te.placeholder({shape}, "
            f'name="{access.tensor.name}", dtype="{kind}")'
        )
    lines += [
        f'    {dim} = te.reduce_axis((0, {problem.size[dim]}), name="{dim}")' for dim in summed
    ]
    product = " * ".join(_element(access) for access in read) or "1.0"
    value = f"te.sum({product}, axis=[{', '.join(summed)}])" if summed else product
    dims = ", ".join(written.indices)
    lines += [
        f"    {_tensor(written)} = te.compute(",
        f"        {stored_shape(problem, written.tensor)},",
        f"        lambda {dims}: {value},",
        f'        name="{written.tensor.name}",',
        "    )",
        f"    return te.create_prim_func([{', '.join(map(_tensor, [*read, written]))}])",
    ]
    return lines


def _tensor(access: Access) -> str:
    return f"tensor_{access.tensor.name}"


def _element(access: Access) -> str:
    element = f"{_tensor(access)}[{', '.join(access.indices) or '()'}]"
    if not access.guards:
        return element
    tests = ", ".join(test for guard in access.guards for test in _tests(guard))
    return f"te.if_then_else(te.all({tests}), {element}, 0)"


def _tests(guard: Guard) -> list[str]:
    tests = [f"{guard.position} >= 0"] if guard.before else []
    return tests + ([f"{guard.position} < {guard.size}"] if guard.after else [])


def _primitives(problem: Problem, schedule: Schedule, every: tuple[Factor, ...]) -> list[str]:
    order = _order(problem)
    loops = f"{', '.join(order)}{',' * (len(order) == 1)}"
    lines = [
        'get_block = getattr(sch, "get_sblock", None) or sch.get_block  # renamed in TVM 0.2x',
        f"{loops} = sch.get_loops(get_block(block))",
    ]
    names: dict[int, str] = {}
    for dim in order:
        places = [place for place, one in enumerate(every) if one.dim == dim]
        if len(places) < 2:
            names |= dict.fromkeys(places, dim)
            continue
        parts = [f"{dim}_{i}" for i in range(len(places))]
        names |= dict(zip(places, parts, strict=True))
        inner = ", ".join(str(every[place].trips) for place in places[1:])
        lines.append(f"{', '.join(parts)} = sch.split({dim}, factors=[None, {inner}])")
    if len(every) > 1:
        lines.append(f"sch.reorder({', '.join(names[place] for place in range(len(every)))})")
    return lines + _bindings(schedule, names)


def _bindings(schedule: Schedule, names: dict[int, str]) -> list[str]:
    """Bind the loops of each unit: together one thread axis."""
    units = list(dict.fromkeys(loop.level for loop in schedule.loops if loop.level))
    lines = []
    for unit, axis in zip(units, ("blockIdx.x", "threadIdx.x"), strict=False):
        loops = [names[i] for i, loop in enumerate(schedule.loops) if loop.level == unit]
        name = loops[0]
        if len(loops) > 1:
            name = f"{unit}_items"
            lines.append(f"    {name} = sch.fuse({', '.join(loops)})")
        lines.append(f'    sch.bind({name}, "{axis}")  # {unit}')
    lines += [f"    # loops of {unit} are ordinary ones: TVM has two axes" for unit in units[2:]]
    return ["if bind:", *lines] if lines else []
