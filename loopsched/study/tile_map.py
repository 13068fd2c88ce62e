"""What two tile sizes of a schedule do to its score, all others left as they are."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from loopsched.base.arguments import Checker
from loopsched.base.errors import ConstraintError, InputError, ScheduleError, nearest
from loopsched.base.pool import each_in_order
from loopsched.base.rows import Row
from loopsched.machines.arch import Arch
from loopsched.models.score import Evaluation, evaluate
from loopsched.nests.nest import Loop, Schedule
from loopsched.nests.ops import resize, tile
from loopsched.problems.problem import Problem

STEPS = 16
_QUANTITIES = ("time_s", "dram_bytes")


@dataclass(frozen=True, slots=True)
class TileCell:
    """A schedule with two tile sizes put in.

    Parameters
    ----------
    sizes : (int, int)
        Of the first and of the second dimension.
    schedule : Schedule
    evaluation : Evaluation or None
        None where it cannot run: a tile does not fit into a scratchpad.
    keeps : bool
        Whether every level still holds, of every loop, what it holds in the
        schedule that the map is made around.
    """

    sizes: tuple[int, int]
    schedule: Schedule
    evaluation: Evaluation | None
    keeps: bool


@dataclass(frozen=True)
class TileMap:
    """The scores of a schedule with other sizes of two of its tiles.

    Parameters
    ----------
    problem : Problem
    arch : Arch
    schedule : Schedule
        The one that was given; its sizes are ``current``.
    dims : (str, str)
    sizes : (tuple of int, tuple of int)
        What was tried in each dimension, rising.
    current : (int, int)
    cells : tuple of TileCell
        The second dimension runs fastest.
    """

    problem: Problem
    arch: Arch
    schedule: Schedule
    dims: tuple[str, str]
    sizes: tuple[tuple[int, ...], tuple[int, ...]]
    current: tuple[int, int]
    cells: tuple[TileCell, ...]

    @cached_property
    def by_sizes(self) -> dict[tuple[int, int], TileCell]:
        """Cells by their two sizes."""
        return {cell.sizes: cell for cell in self.cells}

    def best(self, quantity: str = "time_s") -> TileCell:
        """Find the least of ``time_s`` or ``dram_bytes``; of equals the one that moves less.

        Of those that are still equal, the current sizes, then the first.

        Raises
        ------
        InputError
            If the quantity is another.
        ScheduleError
            If no cell can run.
        """
        if quantity not in _QUANTITIES:
            raise InputError(f"quantity '{quantity}' is unknown; {nearest(quantity, _QUANTITIES)}")
        other = "dram_bytes" if quantity == "time_s" else "time_s"
        found = [
            (
                getattr(cell.evaluation, quantity),
                getattr(cell.evaluation, other),
                cell.sizes != self.current,
                cell.sizes,
                cell,
            )
            for cell in self.cells
            if cell.evaluation is not None
        ]
        if not found:
            raise ScheduleError(f"no tile sizes of '{self.schedule}' fit into '{self.arch.name}'")
        return min(found, key=lambda each: each[:4])[4]

    def rows(self) -> list[Row]:
        """Describe every cell by plain values; what cannot run has none."""
        first, second = self.dims
        return [
            {
                first: cell.sizes[0],
                second: cell.sizes[1],
                "time_s": None if cell.evaluation is None else cell.evaluation.time_s,
                "dram_bytes": None if cell.evaluation is None else cell.evaluation.dram_bytes,
                "bound_by": None if cell.evaluation is None else cell.evaluation.bound_by,
                "keeps": cell.keeps,
                "is_current": cell.sizes == self.current,
                "schedule": str(cell.schedule),
            }
            for cell in self.cells
        ]


def tile_map(
    problem: Problem,
    arch: Arch,
    schedule: Schedule,
    dims: Sequence[str] = (),
    *,
    steps: int = STEPS,
    jobs: int = 1,
    progress: Callable[[str], None] | None = None,
) -> TileMap:
    """Score a schedule with other sizes of two of its tiles.

    Parameters
    ----------
    problem : Problem
    arch : Arch
    schedule : Schedule
    dims : sequence of str, optional
        Two dimensions, such as ``M`` (its innermost loop is meant) or, with
        the loop's extent, ``M:128``.  By default the two largest that are
        tiled.
    steps : int
        At most this many sizes per dimension.  Of tile sizes with the same trip count only
        the smallest is tried; if there are more than ``steps``, some are left
        out evenly, on a logarithmic scale.
    jobs : int
        Processes; the map is the same for any number.
    progress : callable, optional
        Called with a text after each row of cells.

    Raises
    ------
    ConstraintError
        If two dimensions cannot be told from ``dims``.
    ScheduleError
        If the schedule does not suit problem and machine.

    See Also
    --------
    evaluate, plot_tiles

    Notes
    -----
    Loops of the same dimension further in get no larger than the tile, those
    further out no smaller.  A dimension with one loop gets another, over its
    tiles, directly around the loops inside of which no dimension has two.

    Examples
    --------
    >>> from loopsched import gemm, load_arch, parse_schedule
    >>> problem = gemm(m=256, n=256, k=256)
    >>> nest = parse_schedule("M:256@SM N:256@SM K:256 M:64 N:64 K:8", problem)
    >>> found = tile_map(problem, load_arch("titan_v"), nest, ["M", "N"])
    >>> found.current, found.best().sizes, len(found.cells)
    ((64, 64), (14, 64), 256)
    """
    check = Checker("tile_map", ConstraintError)
    named_dims = [*dims] if isinstance(dims, str) else dims
    chosen = check.each("dims", named_dims, str, "a dimension such as 'M'")
    check.count("steps", steps, 3)
    check.finish()
    schedule.check(problem)
    schedule.check_even("a map of tile sizes")
    start, places = _places(problem, schedule, chosen)
    named = (start.loops[places[0]].dim, start.loops[places[1]].dim)
    current = (start.loops[places[0]].extent, start.loops[places[1]].extent)
    sizes = (
        _sizes(problem.size[named[0]], current[0], steps),
        _sizes(problem.size[named[1]], current[1], steps),
    )
    present = _score(problem, start, arch)
    held = None if present is None else _held(present)
    cells: list[TileCell] = []
    rows = [(problem, arch, start, places, first, sizes[1], held) for first in sizes[0]]
    for first, row in zip(sizes[0], each_in_order(_row, rows, jobs), strict=True):
        cells += row
        if progress is not None:
            progress(f"{named[0]} {first}")
    return TileMap(problem, arch, schedule, named, sizes, current, tuple(cells))


def check_dims(problem: Problem, dims: Sequence[str]) -> None:
    """Refuse what `tile_map` would refuse of ``dims`` under any schedule of a problem.

    Parameters
    ----------
    problem : Problem
    dims : sequence of str
        As for `tile_map`; none is allowed.

    Raises
    ------
    ConstraintError
        If they are not two different dimensions that are longer than 1.

    Examples
    --------
    >>> from loopsched import gemm
    >>> check_dims(gemm(m=4, n=3, k=2), ["M", "X"])
    Traceback (most recent call last):
    loopsched.base.errors.ConstraintError: dims: no loop of 'X'; allowed: M N K
    """
    if not dims:
        return
    long = [dim for dim in problem.dims if problem.size[dim] > 1]
    _check_two(problem, dims)
    faults: list[str] = []
    first, second = (_dim(text, long, faults)[0] for text in dims)
    ConstraintError.refuse("dims", faults)
    _check_different(first, second)


def _row(
    problem: Problem,
    arch: Arch,
    start: Schedule,
    places: tuple[int, int],
    first: int,
    seconds: Sequence[int],
    held: tuple[int, ...] | None,
) -> list[TileCell]:
    """Score the schedules of one size of the first dimension."""
    cells = []
    for second in seconds:
        nest = resize(resize(start, places[0], first), places[1], second)
        score = _score(problem, nest, arch)
        keeps = score is not None and (
            held is None or all(now <= then for now, then in zip(_held(score), held, strict=True))
        )
        cells.append(TileCell((first, second), nest, score, keeps))
    return cells


def _score(problem: Problem, schedule: Schedule, arch: Arch) -> Evaluation | None:
    try:
        return evaluate(problem, schedule, arch, effort=0)
    except ScheduleError:
        return None


def _held(score: Evaluation) -> tuple[int, ...]:
    """Positions of the outermost loops whose regions the levels hold."""
    return tuple(level.fit_position for level in score.levels)


def _places(
    problem: Problem, schedule: Schedule, dims: Sequence[str]
) -> tuple[Schedule, tuple[int, int]]:
    """Find the loops whose extents are to change, adding loops around them if needed."""
    chosen = list(dims) or _largest(problem, schedule)
    _check_two(problem, chosen)
    faults: list[str] = []
    found = [_loop(schedule, str(text), faults) for text in chosen]
    ConstraintError.refuse("dims", faults)
    _check_different(found[0].dim, found[1].dim)
    for loop in found:
        schedule = _tiled(schedule, loop.dim)
    places = [_last(schedule, loop) for loop in found]
    return schedule, (places[0], places[1])


def _check_two(problem: Problem, chosen: Sequence[str]) -> None:
    if len(chosen) != 2:
        raise ConstraintError(
            f"dims is {' '.join(chosen) or 'empty'}; two dimensions that are longer than 1 are "
            f"needed ({' '.join(problem.dims)})"
        )


def _check_different(first: str | None, second: str | None) -> None:
    if first == second:
        raise ConstraintError(f"dims: '{first}' is given twice; two dimensions are needed")


def _largest(problem: Problem, schedule: Schedule) -> list[str]:
    """Choose the two largest dimensions, those with tiles first."""
    n_loops = {dim: sum(loop.dim == dim for loop in schedule.loops) for dim in problem.dims}
    long = [dim for dim in problem.dims if problem.size[dim] > 1]
    ranked = sorted(long, key=lambda dim: (n_loops[dim] < 2, -problem.size[dim]))[:2]
    return [dim for dim in problem.dims if dim in ranked]


def _loop(schedule: Schedule, text: str, faults: list[str]) -> Loop:
    """Find the loop that ``M`` or ``M:128`` means: of several, the innermost."""
    dim, extent = _dim(text, schedule.dims, faults)
    if dim is None:
        return schedule.loops[0]
    own = [loop for loop in schedule.loops if loop.dim == dim]
    same = [loop for loop in own if extent is None or loop.extent == int(extent)]
    if not same:
        faults.append(f"no loop '{text}'; {nearest(text, map(str, own))}")
    return (same or own)[-1]


def _dim(text: str, dims: Sequence[str], faults: list[str]) -> tuple[str | None, str | None]:
    """Read which dimension is meant, and the extent of its loop if it is given."""
    written = re.fullmatch(r"\s*(\w+)\s*(?::\s*([0-9]{1,18}))?\s*", text)
    name, extent = (written[1], written[2]) if written else (text, None)
    found = {dim.casefold(): dim for dim in dims}.get(name.casefold())
    if found is None:
        faults.append(f"no loop of '{text}'; {nearest(name, dims)}")
    return found, extent


def _tiled(schedule: Schedule, dim: str) -> Schedule:
    """Add a loop over the tiles of a dimension that has only one loop."""
    own = [at for at, loop in enumerate(schedule.loops) if loop.dim == dim]
    if len(own) > 1:
        return schedule
    loops = schedule.loops
    body = len(loops)
    seen: set[str] = set()
    while body and not loops[body - 1].is_spatial and loops[body - 1].dim not in seen:
        body -= 1
        seen.add(loops[body].dim)
    return tile(schedule, dim, loops[own[0]].extent, min(body, own[0]))


def _last(schedule: Schedule, loop: Loop) -> int:
    """Find the innermost loop that is written like this one."""
    same = [
        at
        for at, other in enumerate(schedule.loops)
        if (other.dim, other.extent) == (loop.dim, loop.extent)
    ]
    return same[-1]


def _sizes(whole: int, current: int, steps: int) -> tuple[int, ...]:
    """List the tile sizes that differ in their trip counts, and the current one."""
    every = sorted({*_useful(whole), current})
    if len(every) <= steps:
        return tuple(every)
    kept = {1, current, whole}
    # A fine ladder first, then thinner ones, until few enough remain.
    for rungs in range(4 * steps, 1, -1):
        ladder = {min(every, key=lambda size: abs(size - whole ** (i / (rungs - 1))))
                  for i in range(rungs)}  # fmt: skip
        if len(ladder | kept) <= steps:
            return tuple(sorted(ladder | kept))
    return tuple(sorted(kept))


def _useful(whole: int) -> Iterator[int]:
    """Yield the smallest tile size of each trip count."""
    size = whole
    while size > 1:
        yield size
        trips = -(-whole // (size - 1))  # the fewest that a smaller tile takes
        size = -(-whole // trips)
    yield 1
