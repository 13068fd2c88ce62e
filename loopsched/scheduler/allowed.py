"""What constraints leave of a space: extents and orders for each block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from loopsched.base.arguments import show
from loopsched.base.arrays import Ints
from loopsched.base.errors import ConstraintError, EmptySpaceError, ScheduleError, nearest
from loopsched.machines.arch import Arch
from loopsched.nests.nest import Loop, Schedule
from loopsched.problems.problem import Problem
from loopsched.scheduler.blocks import Block, compose
from loopsched.scheduler.constraints import TILES, UNBOUNDED, Constraints, bound_text
from loopsched.scheduler.precedence import find_cycle, inside_of
from loopsched.scheduler.space import Space, plain_space

MAX_LISTED = 2**24
_NONE_LEFT = "no schedule of at most one loop per dimension and block is left"


@dataclass(frozen=True, slots=True)
class Place:
    """A block of the space, or what is left inside the last one.

    Parameters
    ----------
    name : str
        Empty for what is left.
    unit : str or None
    may_cut : frozenset of str
        Dimensions that may have a loop here.
    lead : tuple of str
        Dimensions that must have a loop here, in this order, outside the rest.
    """

    name: str
    unit: str | None
    may_cut: frozenset[str]
    lead: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One point of the space.

    Parameters
    ----------
    extents : tuple of tuple of int
        For each dimension, its extent inside each block, outermost first.
    orders : tuple of tuple of str
        For each block and for what is left, the loops, outermost first.
    """

    extents: tuple[tuple[int, ...], ...]
    orders: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Allowed:
    """A space after its constraints have been worked out.

    Parameters
    ----------
    space : Space
    places : tuple of Place
        The blocks, outermost first, and what is left.
    extents : tuple of tuple of array
        For each dimension and block, the extents that can be part of a
        schedule, smallest first.
    """

    space: Space
    places: tuple[Place, ...]
    extents: tuple[tuple[Ints, ...], ...]

    @property
    def problem(self) -> Problem:
        """The problem."""
        return self.space.problem

    @cached_property
    def inside(self) -> dict[str, frozenset[str]]:
        """For each dimension, those whose loops must stay inside it."""
        return dict(inside_of(self.problem, self.space.constraints.before))

    @property
    def is_empty(self) -> bool:
        """Whether no schedule is left."""
        return any(len(found) == 0 for row in self.extents for found in row)

    def steps(self, row: int, at: int, outside: int) -> Ints:
        """List the extents inside a block that may follow one outside it."""
        import numpy as np

        return _reached(
            np.array([outside]), self.extents[row][at], self.problem.dims[row], self.places[at]
        )

    def schedule(self, choice: Choice) -> Schedule:
        """Write a choice as a schedule."""
        now = dict(self.problem.size)
        row = {dim: at for at, dim in enumerate(self.problem.dims)}
        loops: list[Loop] = []
        for at, (place, order) in enumerate(zip(self.places, choice.orders, strict=True)):
            for dim in order:
                loops.append(Loop(dim, now[dim], place.unit))
                now[dim] = choice.extents[row[dim]][at] if place.name else 1
        return Schedule(tuple(loops))

    def cut_dims(self, chains: Sequence[Sequence[int]]) -> tuple[tuple[str, ...], ...]:
        """List the dimensions that have a loop in each block, in the problem's order."""
        found: list[list[str]] = [[] for _ in self.places]
        for (dim, size), chain in zip(self.problem.sizes, chains, strict=True):
            outside = size
            for at, inside in enumerate((*chain, 1)):
                if inside < outside:
                    found[at].append(dim)
                outside = inside
        return tuple(tuple(dims) for dims in found)


@lru_cache(maxsize=256)
def _allowed(space: Space) -> Allowed:
    problem, constraints = space.problem, space.constraints
    prefix = _prefix(problem, constraints.prefix)
    where = space.prefix_at
    if where is None:
        where = next(_placements(space, prefix))
    last = max(where, default=-1)
    inside = dict(inside_of(problem, constraints.before))
    places = []
    slots = [(slot.name, slot.unit, slot.dims) for slot in space.slots] + [("", None, problem.dims)]
    for at, (name, unit, dims) in enumerate(slots):
        lead = tuple(loop.dim for loop, slot in zip(prefix, where, strict=True) if slot == at)
        may = frozenset(lead)
        if at >= last:
            blocked = {dim for dim in dims if inside[dim] & may}
            may |= frozenset(dims) - blocked
        places.append(Place(name, unit, may, lead))
    rows = []
    for dim, size in problem.sizes:
        lists = [_listed(constraints, dim, size, slot.name) for slot in space.slots]
        held = _held_by_prefix(prefix, where, dim, len(space.slots))
        lists = [
            found if known is None else found[found == known]
            for found, known in zip(lists, held, strict=True)
        ]
        rows.append(_consistent(lists, dim, size, places))
    return Allowed(space, tuple(places), tuple(rows))


def allowed(space: Space) -> Allowed:
    """Work out what the constraints of a space leave.

    Examples
    --------
    >>> from loopsched import buffer_arch, gemm
    >>> from loopsched.scheduler import Constraints, space_of
    >>> halves = Constraints(tiles="divisors", extents=(("M", "buffer", 2, 4),))
    >>> found = allowed(space_of(gemm(m=8, n=6, k=1), buffer_arch(capacity_bytes=64), halves))
    >>> [[int(extent) for extent in row[0]] for row in found.extents]
    [[2, 4], [1, 2, 3, 6], [1]]
    """
    return _allowed(space)


def _listed(constraints: Constraints, dim: str, size: int, block: str) -> Ints:
    import numpy as np

    low, high = 1, size
    for name, where, least, most in constraints.extents:
        if name == dim and where == block:
            low, high = max(low, least), min(high, most)
    if constraints.tiles == "all":
        if high - low > MAX_LISTED:
            raise ConstraintError(
                f"dim '{dim}' has {high - low + 1} extents inside '{block}' to choose from; with "
                f"constraints at most {MAX_LISTED} are listed: bound it, or choose tiles=divisors"
            )
        return np.arange(low, high + 1, dtype=np.int64)
    known = tile_extents(constraints.tiles, size)
    return np.array([extent for extent in known if low <= extent <= high], dtype=np.int64)


def tile_extents(tiles: str, size: int) -> list[int]:
    """List the extents of a dimension that ``tiles`` allows, smallest first, if not all."""
    return _divisors(size) if tiles == "divisors" else _powers(size)


def _divisors(size: int) -> list[int]:
    small = [n for n in range(1, int(size**0.5) + 1) if size % n == 0]
    return sorted({*small, *(size // n for n in small)})


def _powers(size: int) -> list[int]:
    return sorted({*(1 << n for n in range(size.bit_length())), size})


def _consistent(
    lists: list[Ints], dim: str, size: int, places: Sequence[Place]
) -> tuple[Ints, ...]:
    """Keep what some chain of extents, never growing inward, uses."""
    import numpy as np

    lists = list(lists)
    if dim in places[-1].lead and lists:
        lists[-1] = lists[-1][lists[-1] > 1]
    elif dim not in places[-1].may_cut and lists:
        lists[-1] = lists[-1][lists[-1] == 1]
    for at in range(len(lists) - 2, -1, -1):
        lists[at] = _reaching(lists[at], lists[at + 1], dim, places[at + 1])
    outer = np.array([size], dtype=np.int64)
    for at in range(len(lists)):
        lists[at] = _reached(outer, lists[at], dim, places[at])
        outer = lists[at]
    if any(len(found) == 0 for found in lists):
        return tuple(found[:0] for found in lists)
    return tuple(lists)


def _reaching(outer: Ints, inner: Ints, dim: str, place: Place) -> Ints:
    """Keep the outer extents from which a block leads to one of the inner."""
    import numpy as np

    if len(inner) == 0:
        keep = np.zeros(len(outer), dtype=bool)
    elif dim in place.lead:
        keep = outer > inner[0]
    else:
        keep = outer >= inner[0] if dim in place.may_cut else np.isin(outer, inner)
    kept: Ints = outer[keep]
    return kept


def _reached(outer: Ints, inner: Ints, dim: str, place: Place) -> Ints:
    """Keep the inner extents to which a block leads from one of the outer."""
    import numpy as np

    if len(outer) == 0:
        keep = np.zeros(len(inner), dtype=bool)
    elif dim in place.lead:
        keep = inner < outer[-1]
    else:
        keep = inner <= outer[-1] if dim in place.may_cut else np.isin(inner, outer)
    kept: Ints = inner[keep]
    return kept


# The prefix ---------------------------------------------------------------------


def _prefix(problem: Problem, text: str) -> tuple[Loop, ...]:
    """Read the prefix; loops of one iteration, for certain, are left out."""
    if not text.strip():
        return ()
    from loopsched.nests.notation import names_of, parse_schedule

    names = names_of(problem, "loopsched")
    words = text.replace(",", " ").split()
    named = {names.find(word.partition(":")[0]) for word in words}
    rest = [f"{dim}:{size}" for dim, size in problem.sizes if dim not in named]
    try:
        loops = parse_schedule(" ".join([*words, *rest]), problem).loops[: len(words)]
    except ScheduleError as error:
        raise ConstraintError.joined("constraint prefix", error.problems) from error
    kept = []
    for at, loop in enumerate(loops):
        inner = next((other.extent for other in loops[at + 1 :] if other.dim == loop.dim), 0)
        if loop.extent not in (1, inner):
            kept.append(loop)
    return tuple(kept)


def parts(space: Space) -> tuple[Space, ...]:
    """List a space once for each way to put the prefix's loops into blocks, if any is left of it.

    Examples
    --------
    >>> from loopsched import buffer_arch, gemm
    >>> from loopsched.scheduler import Constraints, space_of
    >>> whole = Constraints(extents=(("K", "buffer", 8, 8),), prefix="M:8 K:8")
    >>> found = parts(space_of(gemm(m=8, n=8, k=8), buffer_arch(capacity_bytes=64), whole))
    >>> [part.prefix_at for part in found]
    [(0, 1)]
    """
    if space.prefix_at is not None or not space.constraints.prefix.strip():
        found = [space]
    else:
        prefix = _prefix(space.problem, space.constraints.prefix)
        found = [replace(space, prefix_at=where) for where in _placements(space, prefix)]
    return tuple(part for part in found if not allowed(part).is_empty)


def _placements(space: Space, prefix: tuple[Loop, ...]) -> Iterator[tuple[int, ...]]:
    """List the blocks of the prefix's loops, each loop as far out as it has room first.

    Moving a loop to an outer block, before all loops that are not of the
    prefix, changes no schedule; so a loop is put further in only where its
    extent inside a block is bounded.
    """
    inside = dict(inside_of(space.problem, space.constraints.before))
    units = [slot.unit for slot in space.slots] + [None]
    dims = [slot.dims for slot in space.slots] + [space.problem.dims]
    bounded = {(dim, block) for dim, block, _, _ in space.constraints.extents}
    deepest = 0

    def put(where: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        nonlocal deepest
        deepest = max(deepest, len(where))
        if len(where) == len(prefix):
            yield where
            return
        loop, last = prefix[len(where)], where[-1] if where else 0
        block = [prefix[at].dim for at, slot in enumerate(where) if slot == last]
        is_put = is_bounded = False
        for at in range(last, len(units)):
            fits = units[at] == loop.unit and loop.dim in dims[at] and loop.dim not in block
            if fits and not any(outer in inside[loop.dim] for outer in block):
                if is_bounded or not is_put:
                    yield from put((*where, at))
                is_put = True
            block = []
            name = space.slots[at].name if at < len(space.slots) else ""
            is_bounded |= is_put and (loop.dim, name) in bounded

    found = False
    for where in put(()):
        found = True
        yield where
    if not found:
        unit = prefix[deepest].unit
        known = [slot.unit for slot in space.slots if slot.unit is not None and slot.dims]
        if unit is not None and unit not in known:
            allowed = nearest(unit, known) if known else "the space has no spatial loops"
            raise ConstraintError(
                f"constraint prefix: loop '{prefix[deepest]}': unknown unit '{unit}'; {allowed}"
            )
        names = " ".join(slot.name for slot in space.slots)
        kept = ", ".join(" before ".join(pair) for pair in space.constraints.before)
        raise ConstraintError(
            f"constraint prefix: loop {deepest} '{prefix[deepest]}' finds no block of the "
            f"space: the blocks are {names}, each dimension at most once in each"
            + (f", spatial dims {' '.join(space.spatial)}" if space.spatial else "")
            + (f", in each {kept}" if kept else "")
        )


def _held_by_prefix(
    prefix: tuple[Loop, ...], where: tuple[int, ...], dim: str, n_slots: int
) -> list[int | None]:
    """Extents of a dimension inside each block, where the prefix says them."""
    held: list[int | None] = [None] * n_slots
    start = 0
    for loop, at in zip(prefix, where, strict=True):
        if loop.dim == dim:
            for slot in range(start, at):
                held[slot] = loop.extent
            start = at
    return held


# Checks -------------------------------------------------------------------------


def space_of(problem: Problem, arch: Arch, constraints: Constraints | None = None) -> Space:
    """Build the space of schedules.

    There is one temporal block for each level but the memory, outermost first,
    and a spatial block for each unit before the first level of which its
    instances have their own.  Instances share the dimensions that index the
    output; where the level around them is a scratchpad, in which their partial
    sums meet, any dimension.

    Raises
    ------
    ConstraintError
        If a constraint names what does not exist.

    Examples
    --------
    >>> from loopsched import gemm, load_arch
    >>> space = space_of(gemm(m=4, n=4, k=4), load_arch("titan_v"))
    >>> [slot.name for slot in space.slots], space.spatial
    (['L2', 'SM', 'L1'], ('M', 'N'))
    """
    space = plain_space(problem, arch, constraints or Constraints())
    if not space.constraints.is_free:
        check(space)
    return space


def check(space: Space) -> None:
    """Raise ConstraintError, with all faults, if the constraints cannot be meant.

    Raises
    ------
    ConstraintError
        Unknown dimensions or blocks, extents above the size, bounds that
        contradict one another, a circle of orders, a prefix that does not
        match.

    Examples
    --------
    >>> from loopsched import buffer_arch, gemm
    >>> from loopsched.scheduler import Constraints, space_of
    >>> circle = Constraints(before=(("M", "K"), ("K", "M")))
    >>> space_of(gemm(m=4, n=4, k=4), buffer_arch(capacity_bytes=64), circle)
    Traceback (most recent call last):
    loopsched.base.errors.ConstraintError: constraints: orders form a cycle: M before K before M
    """
    faults = [*_faults(space)]
    if not faults:
        try:
            next(_placements(space, _prefix(space.problem, space.constraints.prefix)))
        except ConstraintError as error:
            faults += error.problems
    if faults:
        raise ConstraintError.joined("constraints", faults)


def _faults(space: Space) -> Iterator[str]:
    problem, constraints = space.problem, space.constraints
    dims, size = problem.dims, problem.size
    blocks = [slot.name for slot in space.slots]
    if constraints.tiles not in TILES:
        yield f"tiles '{constraints.tiles}' is unknown; {nearest(str(constraints.tiles), TILES)}"
    together: dict[tuple[str, str], tuple[int, int]] = {}
    for bound in constraints.extents:
        dim, block, low, high = bound
        text = bound_text(bound)
        if dim not in dims:
            yield f"'{text}': unknown dim '{dim}'; {nearest(dim, dims)}"
        if block not in blocks:
            yield f"'{text}': unknown level or unit '{block}'; {nearest(block, blocks)}"
        if high < 1 or low > high:
            yield f"'{text}': no extent is at least {low} and at most {high}"
        elif dim in dims:
            limit = low if high in (UNBOUNDED, low) else high
            if limit > size[dim]:
                yield f"'{text}': dim '{dim}' has size {size[dim]}; {limit} is above it"
                continue
            was = together.get((dim, block), (1, UNBOUNDED))
            now = max(was[0], low), min(was[1], high)
            if was[0] <= was[1] and now[0] > now[1]:
                yield f"'{text}' contradicts an earlier bound on {dim}@{block}"
            together[dim, block] = now
    known = True
    for pair in constraints.before:
        for dim in pair:
            if dim not in dims:
                known = False
                yield f"order '{'>'.join(pair)}': unknown dim '{dim}'; {nearest(dim, dims)}"
    if known and constraints.before:
        circle = find_cycle(problem, constraints.before)
        if circle:
            yield f"orders form a cycle: {' before '.join(circle)}"


def check_not_empty(space: Space) -> None:
    """Raise EmptySpaceError, naming the constraint to blame, if nothing is left."""
    if not _is_empty(space):
        return
    left = space.constraints
    parts = list(left.parts())
    for words, others in reversed(parts):
        if not _is_empty(_under(space, others)):
            raise EmptySpaceError(
                f"problem '{space.problem.name}': {_NONE_LEFT}; {words} removed the "
                "last ones: drop or widen it"
            )
    blamed = []
    while _is_empty(_under(space, left)):
        words, left = list(left.parts())[-1]
        blamed.append(words)
    raise EmptySpaceError(
        f"problem '{space.problem.name}': {_NONE_LEFT}; none of the constraints alone is "
        f"to blame, but without {' and '.join(blamed)} there are some"
    )


def _under(space: Space, constraints: Constraints) -> Space:
    return space_of(space.problem, space.arch, constraints)


def _is_empty(space: Space) -> bool:
    try:
        return not parts(space)
    except ConstraintError:  # a prefix that needs what has been taken away
        return True


def allows(space: Space, schedule: Schedule | Sequence[Block]) -> str | None:
    """Say why a schedule is not in a space; None if it is.

    Parameters
    ----------
    space : Space
    schedule : Schedule or sequence of Block

    Examples
    --------
    >>> from loopsched import buffer_arch, gemm, parse_schedule
    >>> from loopsched.scheduler import Constraints, space_of
    >>> problem = gemm(m=8, n=6, k=1)
    >>> space = space_of(problem, buffer_arch(capacity_bytes=64), Constraints(tiles="divisors"))
    >>> allows(space, parse_schedule("M:8 N:6 M:4 N:3", problem))
    >>> allows(space, parse_schedule("M:8 N:6 M:4 N:4", problem))
    "the extent of 'N' inside 'buffer' is 4; tiles=divisors of 6 are needed"
    """
    problem = space.problem
    if not isinstance(schedule, Schedule):
        schedule = compose(problem, schedule)
    schedule.check(problem)
    if schedule.places:  # any nest, wherever tiles are placed, or all tiles at one place
        free = space.constraints.is_free
        return (
            None if free else "its tiles are placed one by one; constraints are for nests without"
        )
    loops = tuple(
        loop for loop, trips in zip(schedule.loops, schedule.trips, strict=True) if trips > 1
    )
    prefix = _prefix(problem, space.constraints.prefix)
    if loops[: len(prefix)] != prefix:
        return f"it does not begin with '{' '.join(map(str, prefix))}'"
    first: str | None = None
    for orders in _assignments(space, loops):
        reason = _reason(space, orders)
        if reason is None:
            return None
        first = first or reason
    if first is None:
        return "its loops do not fit into the blocks, each dimension at most once in each"
    return first


def _assignments(space: Space, loops: tuple[Loop, ...]) -> Iterator[tuple[tuple[Loop, ...], ...]]:
    """List the ways to cut loops into the blocks of a space and what is left."""
    units = [slot.unit for slot in space.slots] + [None]
    dims = [slot.dims for slot in space.slots] + [space.problem.dims]

    def fill(at: int, start: int) -> Iterator[tuple[tuple[Loop, ...], ...]]:
        if at == len(units):
            if start == len(loops):
                yield ()
            return
        end, seen = start, set[str]()
        while True:
            for rest in fill(at + 1, end):
                yield (loops[start:end], *rest)
            if end == len(loops):
                return
            loop = loops[end]
            if loop.unit != units[at] or loop.dim not in dims[at] or loop.dim in seen:
                return
            seen.add(loop.dim)
            end += 1

    yield from fill(0, 0)


def _reason(space: Space, blocks: tuple[tuple[Loop, ...], ...]) -> str | None:
    constraints, size = space.constraints, space.problem.size
    inside = dict(inside_of(space.problem, constraints.before))
    for block in blocks:
        for at, loop in enumerate(block):
            for outer in block[:at]:
                if outer.dim in inside[loop.dim]:
                    return f"the loop of '{outer.dim}' is outside that of '{loop.dim}'"
    for at, slot in enumerate(space.slots):
        for dim in space.problem.dims:
            inner = [loop.extent for block in blocks[at + 1 :] for loop in block if loop.dim == dim]
            if inner:
                extent = inner[0]
            elif any(loop.dim == dim for block in blocks[: at + 1] for loop in block):
                extent = 1
            else:
                extent = size[dim]
            if reason := _not_listed(constraints, dim, size[dim], slot.name, extent):
                return reason
    return None


def _not_listed(
    constraints: Constraints, dim: str, size: int, block: str, extent: int
) -> str | None:
    found = f"the extent of '{dim}' inside '{block}' is {show(extent)}"
    if constraints.tiles == "divisors" and size % extent:
        return f"{found}; tiles=divisors of {size} are needed"
    if constraints.tiles == "powers2" and extent & (extent - 1) and extent != size:
        return f"{found}; tiles=powers2 or {size} are needed"
    for bound in constraints.extents:
        name, where, low, high = bound
        if name == dim and where == block and not low <= extent <= high:
            return f"{found}; {bound_text(bound)} is needed"
    return None


def free_space(space: Space) -> Space:
    """Return the space with nothing but the spatial dimensions constrained."""
    return replace(space, constraints=Constraints(spatial=space.constraints.spatial))
