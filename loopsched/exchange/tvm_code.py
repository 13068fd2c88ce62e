"""A schedule as primitives of TVM's TIR schedules."""

from __future__ import annotations

from collections.abc import Mapping
from keyword import kwlist

from loopsched.codegen.contraction import stored_shape
from loopsched.exchange.accesses import Access, accesses
from loopsched.exchange.exported import Exported
from loopsched.exchange.factors import Factor, factors, rounded
from loopsched.exchange.names import free_name, safe_names
from loopsched.nests.loops_text import Span
from loopsched.nests.nest import Loop, Schedule
from loopsched.problems.problem import Problem, Tensor

_TYPES = {8: "float64", 4: "float32", 2: "float16", 1: "int8"}
_RESERVED = (*kwlist, "te", "sch", "block", "bind", "get_block", "getattr")


def to_tvm(problem: Problem, schedule: Schedule) -> Exported:
    """Write a schedule as a Python module that builds and schedules a TIR function.

    Errors are those of `to_c`, for schedules that do not cover the problem.

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

    See Also
    --------
    to_python, to_triton

    References
    ----------
    T. Chen et al., *TVM: An Automated End-to-End Optimizing Compiler for Deep Learning*, OSDI 2018.

    Examples
    --------
    >>> from loopsched import gemm, parse_schedule
    >>> problem = gemm(m=60, n=8, k=8)
    >>> made = to_tvm(problem, parse_schedule("M:60@SM N:8 K:8 M:16", problem))
    >>> print(made.text().partition("def apply")[2])
    (sch, block="C", bind=True):
        get_block = getattr(sch, "get_sblock", None) or sch.get_block  # newer TVM: get_sblock
        M, N, K = sch.get_loops(get_block(block))
        M_0, M_1 = sch.split(M, factors=[None, 16])
        sch.reorder(M_0, N, K, M_1)
        if bind:
            sch.bind(M_0, "blockIdx.x")  # SM
        return sch
    <BLANKLINE>
    """
    schedule.check(problem)
    schedule.check_even("TVM's schedule")
    legal, changed = rounded(schedule)
    every = factors(legal)
    words = safe_names(problem.dims, _RESERVED)
    lines = [
        f"# Made by loopsched from the schedule {schedule}",
        *_definition(problem, words),
        "",
        "",
        f'def apply(sch, block="{problem.output}", bind=True):',
        *(f"    {line}" for line in _primitives(problem, legal, every, words)),
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


def _definition(problem: Problem, words: Mapping[str, str]) -> list[str]:
    if not _is_expressible(problem):
        return []
    point = Schedule(tuple(Loop(dim, size) for dim, size in problem.sizes))
    spans = [Span(words[dim], "0", (str(size),), 1) for dim, size in problem.sizes]
    taken = {*_RESERVED, *words.values()}
    tensors = {one.name: free_name(f"tensor_{one.name}", taken) for one in problem.tensors}
    written, *read = accesses(problem, point, spans, tensors)
    summed = [words[dim] for dim in problem.reduction_dims]
    lines = ["", "", "def problem():", "    from tvm import te", ""]
    for access in read:
        shape = stored_shape(problem, access.tensor)
        lines.append(
            f"    {access.word} = te.placeholder({shape}, "
            f'name="{access.tensor.name}", dtype="{_kind(access.tensor)}")'
        )
    lines += [
        f'    {words[dim]} = te.reduce_axis((0, {problem.size[dim]}), name="{words[dim]}")'
        for dim in problem.reduction_dims
    ]
    kind = _kind(written.tensor)
    product = " * ".join(_element(access, kind) for access in read) or f'te.const(1, "{kind}")'
    value = f"te.sum({product}, axis=[{', '.join(summed)}])" if summed else product
    dims = ", ".join(written.indices)
    lines += [
        f"    {written.word} = te.compute(",
        f"        {stored_shape(problem, written.tensor)},",
        f"        lambda {dims}: {value},",
        f'        name="{written.tensor.name}",',
        "    )",
        f"    return te.create_prim_func([{', '.join(one.word for one in [*read, written])}])",
    ]
    return lines


def _kind(tensor: Tensor) -> str:
    return _TYPES.get(tensor.element_bytes, "float32")


def _element(access: Access, kind: str) -> str:
    """Write an element, as wide as the sum that it goes into."""
    element = access.element
    if _kind(access.tensor) != kind:
        element += f'.astype("{kind}")'
    if not access.guards:
        return element
    tests = ", ".join(test for guard in access.guards for test in guard.tests)
    return f"te.if_then_else(te.all({tests}), {element}, 0)"


def _primitives(
    problem: Problem, schedule: Schedule, every: tuple[Factor, ...], words: Mapping[str, str]
) -> list[str]:
    order = _order(problem)
    loops = f"{', '.join(words[dim] for dim in order)}{',' * (len(order) == 1)}"
    taken = {*_RESERVED, *words.values()}
    lines = [
        'get_block = getattr(sch, "get_sblock", None) or sch.get_block  # newer TVM: get_sblock',
        f"{loops} = sch.get_loops(get_block(block))",
    ]
    names: dict[int, str] = {}
    for dim in order:
        places = [place for place, one in enumerate(every) if one.dim == dim]
        if len(places) < 2:
            names |= dict.fromkeys(places, words[dim])
            continue
        parts = [free_name(f"{words[dim]}_{i}", taken) for i in range(len(places))]
        names |= dict(zip(places, parts, strict=True))
        inner = ", ".join(str(every[place].trips) for place in places[1:])
        lines.append(f"{', '.join(parts)} = sch.split({words[dim]}, factors=[None, {inner}])")
    if len(every) > 1:
        lines.append(f"sch.reorder({', '.join(names[place] for place in range(len(every)))})")
    return lines + _bindings(schedule, names, taken)


def _bindings(schedule: Schedule, names: dict[int, str], taken: set[str]) -> list[str]:
    """Bind the loops of each unit: together one thread axis."""
    units = list(dict.fromkeys(loop.unit for loop in schedule.loops if loop.unit))
    lines = []
    for unit, axis in zip(units, ("blockIdx.x", "threadIdx.x"), strict=False):
        loops = [names[i] for i, loop in enumerate(schedule.loops) if loop.unit == unit]
        name = loops[0]
        if len(loops) > 1:
            name = free_name(f"{unit}_items", taken)
            lines.append(f"    {name} = sch.fuse({', '.join(loops)})")
        lines.append(f'    sch.bind({name}, "{axis}")  # {unit}')
    lines += [f"    # loops of {unit} are ordinary ones: TVM has two axes" for unit in units[2:]]
    return ["if bind:", *lines] if lines else []
