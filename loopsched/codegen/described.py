"""Kernels as schedules in full: loops, threads, cache tiles, packing, registers, vectors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import NamedTuple

from loopsched.base.arguments import Checker
from loopsched.base.errors import ProblemError
from loopsched.base.rows import Row
from loopsched.base.units import count
from loopsched.codegen.choose import core_of, ranked
from loopsched.codegen.contraction import Contraction, contractions
from loopsched.codegen.dot_tile import tiles_of
from loopsched.codegen.element import DATA_TYPES, Element, type_of
from loopsched.codegen.general import Nest
from loopsched.codegen.layout import Layout
from loopsched.codegen.llvm_text import LlvmText
from loopsched.codegen.plan import Plan, Walk, chunks, inner_sizes, length, roles
from loopsched.codegen.stages import General
from loopsched.machines.arch_file import as_arch
from loopsched.problems.problem import Problem


class KernelLoop(NamedTuple):
    """A loop of a kernel.

    Parameters
    ----------
    dims : tuple of str
        Walked as one.
    step : int
        Points that each iteration has.
    trips : int
    is_parallel : bool
        Whether threads share its iterations.
    packs : str
        Tensor of which each iteration first copies the part that it reads; empty: none.
    """

    dims: tuple[str, ...]
    step: int
    trips: int
    is_parallel: bool = False
    packs: str = ""


@dataclass(frozen=True, slots=True)
class KernelSchedule:
    """How a kernel computes a problem, or a part of it.

    Parameters
    ----------
    loops : tuple of KernelLoop
        Around register tiles, outermost first.
    tile_rows, tile_cols : int
        The register tile.
    row_dims, col_dims : tuple of str
        Dimensions that its rows and its columns cover; several are walked as one.
    vector : str
        Dimension that lies in the lanes of vectors; empty: there are no vectors.
    lanes : int
        Of a vector.
    sums : tuple of str
        Dimensions that are summed inside a register tile.
    unroll : int
        How often the innermost loop of the sum is unrolled.
    written_out : tuple of str
        Dimensions of the sum that are unrolled completely.
    estimate_s : float or None, seconds
        By the model that chose it.  None: nothing was chosen.
    """

    loops: tuple[KernelLoop, ...]
    tile_rows: int
    tile_cols: int
    row_dims: tuple[str, ...]
    col_dims: tuple[str, ...]
    vector: str
    lanes: int
    sums: tuple[str, ...]
    unroll: int
    written_out: tuple[str, ...]
    estimate_s: float | None

    def row(self) -> Row:
        """Return it as plain values."""
        loops = [one._asdict() for one in self.loops]
        return {"text": self.text()} | asdict(self) | {"loops": loops}

    def text(self) -> str:
        """Write it for people, outermost loop first.

        Examples
        --------
        >>> loops = KernelLoop(("N",), 400, 2, True), KernelLoop(("K",), 512, 2, packs="B")
        >>> sides = ("M",), ("N",), "N", 16, ("K",), 4, ()
        >>> KernelSchedule(loops, 8, 32, *sides, 0.1).text()
        'parallel N by 400; K by 512, packs B; tile 8 M x 32 N in 2 vectors of 16 along N; K unr...'
        """
        parts = []
        for one in self.loops:
            words = []
            if one.trips > 1:
                by = f" by {one.step}" if one.step > 1 else ""
                words.append(f"{'parallel ' * one.is_parallel}{','.join(one.dims)}{by}")
            if one.packs:
                words.append(f"packs {one.packs}")
            if words:
                parts.append(", ".join(words))
        tile = [
            f"{n} {','.join(dims)}".strip()
            for n, dims in ((self.tile_rows, self.row_dims), (self.tile_cols, self.col_dims))
        ]
        several = count(-(-self.tile_cols // self.lanes), "vector")
        several = "vectors" if self.vector in self.sums else several
        vectors = f" in {several} of {self.lanes} along {self.vector}"
        parts.append(f"tile {' x '.join(tile)}{vectors if self.vector else ''}")
        if self.unroll > 1 and self.sums:
            parts.append(f"{self.sums[-1]} unrolled by {self.unroll}")
        if self.written_out:
            parts.append(f"{','.join(self.written_out)} fully unrolled")
        return "; ".join(parts)


def of_plan(
    task: Contraction, plan: Plan, kind: tuple[Element, int], threads: int, estimate_s: float
) -> KernelSchedule:
    """Say what the kernel of a plan does; either operand of the task may be the left one."""
    if set(roles(task)["rows"]) != set(plan.rows.dims):
        task = task.swapped()
    if plan.slides:
        return _of_window(task, plan, threads, estimate_s)
    layout = Layout(LlvmText(*kind), task, plan, "described")
    loops = [KernelLoop((dim,), 1, task.size(dim), threads > 1) for dim in plan.batch]
    if plan.row_parts > 1:
        _, block, _ = chunks(task, plan.rows)
        each = layout.row_blocks[1] * length(inner_sizes(task, plan.rows, block))
        loops.insert(0, KernelLoop(plan.rows.dims, each, plan.row_parts, threads > 1))
    is_packed = plan.packs_right and not plan.is_right_given
    packs = task.right.name if is_packed else "", task.left.name if plan.packs_left else ""
    loops += _blocks(task, plan.cols, "", is_parallel=threads > 1)
    loops += _blocks(task, plan.sums, packs[0])
    loops += _blocks(task, plan.rows, packs[1])
    tiles = tiles_of(layout)
    (high, _), *_ = layout.heights(length(layout.rows))
    inner = tuple(one for one in plan.sums.inner if task.size(one) > 1)
    along = inner if plan.sums_in_lanes else plan.cols.dims
    return KernelSchedule(
        tuple(loops),
        high,
        plan.tile_cols,
        plan.rows.inner,
        plan.cols.inner,
        along[-1] if along else "",
        kind[1],
        inner,
        tiles.at_once(high, plan.tile_cols),
        (*tiles.row_guards, *tiles.col_guards),
        estimate_s,
    )


def _blocks(
    task: Contraction, walk: Walk, packs: str, *, is_parallel: bool = False
) -> Iterator[KernelLoop]:
    """List the loops over the blocks of a walk; the innermost packs."""
    for dim in walk.outer:
        yield KernelLoop((dim,), 1, task.size(dim), is_parallel)
    n_whole, block, rest = chunks(task, walk)
    dims = walk.inner[:1]
    if dims or packs:
        yield KernelLoop(dims, block, n_whole + bool(rest), is_parallel, packs)


def _of_window(task: Contraction, plan: Plan, threads: int, estimate_s: float) -> KernelSchedule:
    down, across = plan.cols.dims
    loops = [KernelLoop((dim,), 1, task.size(dim), threads > 1) for dim in plan.batch]
    return KernelSchedule(
        tuple(loops),
        plan.tile_rows,
        plan.tile_cols,
        (down,),
        (across,),
        across,
        plan.tile_cols,
        (),
        1,
        plan.sums.dims,
        estimate_s,
    )


def of_nest(nest: Nest, lanes: int, threads: int) -> KernelSchedule:
    """Say what the kernel of a nest does; no model has chosen it."""
    n_outer = len(nest.loops) - nest.n_sums
    shared = range(nest.n_serial, nest.n_serial + nest.n_shared)
    loops = tuple(
        KernelLoop((one.dim,), one.step, one.trips, threads > 1 and number in shared)
        for number, one in enumerate(nest.loops[:n_outer])
    )
    sums = tuple(one.dim for one in nest.loops[n_outer:])
    sides = tuple(filter(None, (nest.rows,))), tuple(filter(None, (nest.cols,)))
    tile = nest.tile_rows, nest.tile_cols
    return KernelSchedule(loops, *tile, *sides, nest.cols or "", lanes, sums, 1, (), None)


def kernel_schedules(
    problem: Problem,
    arch: object = "host",
    *,
    threads: int | None = None,
    data_type: str | None = None,
) -> tuple[KernelSchedule, ...]:
    """Choose how kernels for a CPU compute a problem, as `compile` does, without compiling.

    Parameters
    ----------
    problem : Problem
    arch : Arch, str or path
        With a ``cpu`` part.
    threads : int, optional
        By default as many as the machine has cores.
    data_type : str, optional
        As for `compile`.

    Returns
    -------
    tuple of KernelSchedule
        One; for the input gradient of a strided convolution, one for each phase of the
        stride.

    Raises
    ------
    ProblemError, ArchError
        As for `compile`.

    See Also
    --------
    compile, search

    Examples
    --------
    >>> from loopsched import gemm
    >>> kernel_schedules(gemm(m=512, n=512, k=512), "epyc_9654", threads=1)[0].vector
    'N'
    """
    check, machine = Checker("kernel_schedules", ProblemError), as_arch(arch)
    given = type_of(problem) if data_type is None else data_type
    types = DATA_TYPES[check.choice("data_type", given, tuple(DATA_TYPES))]
    core, cores = core_of(machine, types.compute.n_bytes)
    n = cores if threads is None else check.count("threads", threads)
    if n > cores:
        check.fault(f"threads is {n}; '{machine.name}' has {count(cores, 'core')}")
    check.finish()
    kind = types.compute, core.lanes
    elements = dict.fromkeys((tensor.name for tensor in problem.tensors), types.read)
    elements[problem.output] = types.out
    try:
        tasks = contractions(problem, elements)
    except NotImplementedError:
        general = General(LlvmText(*kind), problem, elements, {}, core.registers)
        return (of_nest(general.nest(), core.lanes, n),)
    best = [ranked(task, core, n, n=1)[0] for task in tasks]
    return tuple(of_plan(task, plan, kind, n, cycles / core.hertz) for cycles, task, plan in best)
