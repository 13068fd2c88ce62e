"""Why a schedule moves what it moves: what fits where, and what is fetched again.

Everything here is read off the reuse model (`loopsched.models.reuse`): a body
fits, the loops just outside it leave some tensors where they are, and every
other loop that does not index a tensor fetches it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from loopsched.base.units import binary, format_capacity, holding, scaled
from loopsched.machines.arch import Arch
from loopsched.machines.levels import Level
from loopsched.models.machine import room_of
from loopsched.models.places import placed_in, resolved
from loopsched.models.reuse import fit_cut, fit_position, placed_visits, run_outside
from loopsched.models.score import Evaluation, LevelScore, evaluate
from loopsched.models.view import View
from loopsched.nests.nest import Schedule
from loopsched.problems.footprint import tensor_bytes
from loopsched.problems.problem import Problem, Tensor


@dataclass(frozen=True, slots=True)
class TensorReason:
    """Why a level moves what it moves of one tensor.

    Parameters
    ----------
    tensor : str
    bytes : int
        Promised across the level's outer boundary, reads and writes.
    once_bytes : int
        What moving every element once would take.
    tile_position : int
        Position of the outermost loop of which the level holds all that it
        touches of the tensor.
    tile_bytes : int
        Footprint of that; 0 if the tensor passes.
    is_held : bool
        False: the tensor passes the level by.
    stays_through : tuple of int
        Positions of the loops outside the body that leave the tensor where it
        is.
    refetched_by : tuple of (int, int)
        Position of the outermost loop of each dimension that makes the level
        fetch the tensor again, and how many times it does.
    halo : float
        Elements fetched for what the tiles of its own dimensions overlap, as a
        share of the tensor.
    """

    tensor: str
    bytes: int
    once_bytes: int
    tile_position: int
    tile_bytes: int
    is_held: bool
    stays_through: tuple[int, ...]
    refetched_by: tuple[tuple[int, int], ...]
    halo: float


@dataclass(frozen=True, slots=True)
class LevelReason:
    """What fits into a level, what would not, and why its tensors move.

    Parameters
    ----------
    score : LevelScore
        What `evaluate` says of the level: name, capacity, what fits.
    overflow_position : int or None
        Position of the innermost loop whose region is too large; None if
        the whole problem or work item fits, or tiles are placed one by one.
    overflow_bytes : int
        Footprint of that region; 0 if none is too large.
    tensors : tuple of TensorReason
    """

    score: LevelScore
    overflow_position: int | None
    overflow_bytes: int
    tensors: tuple[TensorReason, ...]


def explain(problem: Problem, schedule: Schedule, arch: Arch) -> tuple[LevelReason, ...]:
    """Explain the traffic of a schedule, level by level.

    Parameters
    ----------
    problem : Problem
    schedule : Schedule
    arch : Arch

    Returns
    -------
    tuple of LevelReason
        Outermost level first, the memory left out.

    Raises
    ------
    ScheduleError
        If `loopsched.evaluate` would raise it.

    See Also
    --------
    compare, evaluate

    Examples
    --------
    >>> from loopsched import buffer_arch, gemm, parse_schedule
    >>> problem = gemm(m=64, n=64, k=64)
    >>> nest = parse_schedule("M:64 N:64 K:64 M:16 N:16", problem)
    >>> (level,) = explain(problem, nest, buffer_arch(capacity_bytes=2048))
    >>> [(reason.tensor, reason.refetched_by) for reason in level.tensors]
    [('A', ((1, 4),)), ('B', ((0, 4),)), ('C', ())]
    """
    schedule, arch = resolved(problem, schedule.check(problem), arch)
    score = evaluate(problem, schedule, arch)
    return tuple(_level_reason(problem, level, score) for level in arch.caches)


def _level_reason(problem: Problem, level: Level, score: Evaluation) -> LevelReason:
    found = score.level(level.name)
    view, room = found.moved.own.view, found.moved.own.room
    is_doubled = level.kind == "scratchpad" and level.double_buffered
    fit = fit_cut(view, room, 2 if is_doubled else 1)
    body = len(view.cuts) if fit is None else fit
    places = placed_in(view.schedule.places, level.name)
    upto = {place.tensor: view.n_cuts(place.position) for place in places}
    too_large = None
    if not places and fit is not None and fit > view.boundary:
        too_large = view.cuts[fit - 1].position
    return LevelReason(
        score=found,
        overflow_position=too_large,
        overflow_bytes=0
        if too_large is None
        else sum(view.footprint_bytes(tensor, body - 1) for tensor in room.held(problem)),
        tensors=tuple(
            _tensor_reason(
                view, level, tensor, upto.get(tensor.name, body), found.promised[tensor.name].bytes
            )
            for tensor in problem.tensors
        ),
    )


def _tensor_reason(view: View, level: Level, tensor: Tensor, body: int, moved: int) -> TensorReason:
    problem = view.problem
    is_held = tensor in room_of(problem, level).held(problem)
    run = run_outside(view, tensor, body)
    slides = run.slide is not None and is_held
    outside = run.stop - (1 if slides else 0) if is_held else len(view.cuts)
    refetched = []
    for dim in problem.dims:
        times = view.n_pieces(dim, outside)
        if not tensor.is_indexed_by(dim) and times > 1:
            first = next(cut for cut in view.chain(dim, outside) if not cut.is_parallel)
            refetched.append((first.position, times))
    own = view.visits_elems(tensor, outside)
    if is_held and level.kind == "scratchpad":
        own = placed_visits(view, tensor, body, slides=level.halo_reuse)
    for _, times in refetched:
        own //= times
    once = tensor_bytes(problem, tensor)
    return TensorReason(
        tensor=tensor.name,
        bytes=moved,
        once_bytes=once,
        tile_position=fit_position(view, body),
        tile_bytes=view.footprint_bytes(tensor, body) if is_held else 0,
        is_held=is_held,
        stays_through=tuple(sorted({cut.position for cut in run.inner})) if is_held else (),
        refetched_by=tuple(sorted(refetched)),
        halo=own * tensor.element_bytes / once - 1,
    )


def annotate(problem: Problem, schedule: Schedule, arch: Arch) -> dict[int, str]:
    """Write notes for `loopsched.render_loops`: what each level holds, and where.

    Returns
    -------
    dict of int to str
        By the position of the loop.

    Examples
    --------
    >>> from loopsched import buffer_arch, gemm, parse_schedule
    >>> problem = gemm(m=64, n=64, k=64)
    >>> nest = parse_schedule("M:64 N:64 K:64 M:16 N:16", problem)
    >>> annotate(problem, nest, buffer_arch(capacity_bytes=2048))
    {3: 'buffer holds 1.125 KiB of 2 KiB: A B C', 2: 'C stays in buffer'}
    """
    notes: dict[int, list[str]] = {}
    staying: dict[tuple[int, str], list[str]] = {}
    for reason in explain(problem, schedule, arch):
        held = [each for each in reason.tensors if each.is_held]
        level, capacity = reason.score.name, reason.score.capacity_bytes
        room = "" if capacity is None else format_capacity(capacity)
        for at in sorted({each.tile_position for each in held}) or [reason.score.fit_position]:
            here = [each for each in held if each.tile_position == at]
            size = binary(sum(each.tile_bytes for each in here))
            size = f"2 x {size}" if arch.level(level).double_buffered else size
            names = " ".join(each.tensor for each in here)
            text = f"{holding(level)} {size}{room and f' of {room}'}: {names}"
            notes.setdefault(at, []).append(text)
        for each in held:
            for position in each.stays_through:
                staying.setdefault((position, each.tensor), []).append(level)
    for (position, tensor), levels in staying.items():
        notes.setdefault(position, []).append(f"{tensor} stays in {' and '.join(levels)}")
    return {position: "; ".join(texts) for position, texts in notes.items()}


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two schedules of one problem on one machine, side by side.

    Parameters
    ----------
    first, second : Evaluation
    reasons : tuple of str
        What makes the first slower or larger, the heaviest first: sentences
        for a person.
    """

    first: Evaluation
    second: Evaluation
    reasons: tuple[str, ...] = field(default=())


def compare(problem: Problem, first: Schedule, second: Schedule, arch: Arch) -> Comparison:
    """Find out why one schedule is worse than another.

    Parameters
    ----------
    problem : Problem
    first : Schedule
        The one to explain.
    second : Schedule
        The one to compare it with.
    arch : Arch

    Returns
    -------
    Comparison

    See Also
    --------
    explain, evaluate

    Examples
    --------
    >>> from loopsched import buffer_arch, gemm, parse_schedule
    >>> problem = gemm(m=64, n=64, k=64)
    >>> nests = [parse_schedule(f"M:64 N:64 K:64 M:{t} N:{t}", problem) for t in (4, 16)]
    >>> for reason in compare(problem, *nests, buffer_arch(capacity_bytes=2048)).reasons:
    ...     print(reason)
    DRAM to buffer, A: 262.1 kB against 65.54 kB (4.0 times): loop N:64 fetches it 16 times, not 4
    DRAM to buffer, B: 262.1 kB against 65.54 kB (4.0 times): loop M:64 fetches it 16 times, not 4
    buffer (2 KiB) overflows: from loop K:64 inward, 2.062 KiB are needed; one loop ...
    """
    scores = evaluate(problem, first, arch), evaluate(problem, second, arch)
    pairs = zip(explain(problem, first, arch), explain(problem, second, arch), strict=True)
    levels = sorted(pairs, key=lambda pair: _excess(pair[1].tensors, pair[0].tensors))
    found = [*_compute_reasons(*scores)]
    for mine, other in levels:
        found += _level_reasons(first, second, mine, other)
    return Comparison(*scores, tuple(found))


def _excess(mine: Iterable[TensorReason], other: Iterable[TensorReason]) -> int:
    return sum(each.bytes for each in mine) - sum(each.bytes for each in other)


def _level_reasons(
    first: Schedule, second: Schedule, mine: LevelReason, other: LevelReason
) -> Iterator[str]:
    level, pairs = mine.score, list(zip(mine.tensors, other.tensors, strict=True))
    for a, b in sorted(pairs, key=lambda pair: pair[1].bytes - pair[0].bytes):
        if a.bytes > b.bytes:
            head = f"{level.outer} to {level.name}, {a.tensor}"
            yield f"{head}: {_against(a, b)}: {_why(first, second, a, b)}"
    is_worse = any(a.bytes > b.bytes for a, b in pairs)
    if is_worse and mine.overflow_position is not None:
        size = level.capacity_bytes
        room = "" if size is None else f" ({format_capacity(size)})"
        yield (
            f"{level.name}{room} overflows: from loop {first.loops[mine.overflow_position]} "
            f"inward, {binary(mine.overflow_bytes)} are needed; one loop further in, "
            f"{binary(level.working_set_bytes)}"
        )


def _against(a: TensorReason, b: TensorReason) -> str:
    ratio = f" ({a.bytes / b.bytes:.1f} times)" if b.bytes else ""
    return f"{scaled(a.bytes, 'B')} against {scaled(b.bytes, 'B')}{ratio}"


def _compute_reasons(first: Evaluation, second: Evaluation) -> tuple[str, ...]:
    if first.compute_steps <= second.compute_steps:
        return ()
    shares = [f"{100 * score.compute_utilisation:.1f} %" for score in (first, second)]
    return (
        f"compute: units do useful work {shares[0]} of the time against {shares[1]}: "
        "partial waves, edge tiles or idle units",
    )


def _why(first: Schedule, second: Schedule, a: TensorReason, b: TensorReason) -> str:
    """Name the loops that fetch a tensor more often here than there."""
    theirs = {second.loops[position].dim: times for position, times in b.refetched_by}
    causes = []
    for position, times in a.refetched_by:
        loop = first.loops[position]
        before = theirs.get(loop.dim, 1)
        if times > before:
            instead = f", not {before:,}" if before > 1 else ""
            causes.append(f"loop {loop} fetches it {times:,} times{instead}")
    if a.halo > b.halo + 0.005:
        causes.append(f"overlap of its tiles adds {100 * a.halo:.0f} %, not {100 * b.halo:.0f} %")
    if not causes:
        return "its reuse is not guaranteed: the capacity is too small for two neighbouring tiles"
    return "; ".join(causes)
