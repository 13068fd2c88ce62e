"""The best nest for one scratchpad whose tiles are placed one by one.

Each tensor's tile is held from a loop of its own inward.  Of all nests, few kinds
matter.  A place just inside a loop that does not index its tensor can as well
stand outside of it.  A loop that no tensor placed next indexes can as well stand
inside that place: fewer visits, no larger tile.  So between two places stand only
loops that index the tensors placed there, each dimension at most once, and their
order matters only through the innermost one, along which a window may slide.  That
leaves an order of the tensors, a sliding dimension a place, and extents: a *form*.
Several tensors share a place only where the window of one of them slides there.

Along each dimension, a cut that no tensor pays for goes down to a single position,
and cuts between which no tensor pays are one.  Mostly one extent a dimension is
left to choose, so that a branch and bound over all forms is exact in milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

from loopsched.base.arrays import Ints
from loopsched.models.buffer import explicit_traffic
from loopsched.models.traffic import Room
from loopsched.models.view import view_of
from loopsched.nests.nest import Loop, Place, Schedule
from loopsched.problems.footprint import is_clipped, tensor_bytes
from loopsched.problems.problem import Problem
from loopsched.scheduler._placement_kernels import ONE, WHOLE, Asked, Forms, best_places
from loopsched.scheduler.body import NO_INCUMBENT, PLACED, Keeps, own_room
from loopsched.scheduler.kernels import Buffer
from loopsched.scheduler.least import least_tables, lies_evenly
from loopsched.scheduler.tables import Tables, tables_for

MOST_TENSORS = 5
MOST_NODES = 4_000_000


@dataclass(frozen=True, slots=True)
class Placement:
    """A nest around tiles that are placed one by one.

    Parameters
    ----------
    bytes : int
        Reads and writes across the scratchpad's outer boundary.
    loops : tuple of Loop
    positions : tuple of (str, int)
        Loops outside of each tensor's tile.
    nodes : int
        Partial choices looked at.
    """

    bytes: int
    loops: tuple[Loop, ...]
    positions: tuple[tuple[str, int], ...]
    nodes: int

    def schedule(self, level: str) -> Schedule:
        """Write it as a schedule for the scratchpad of that name."""
        return Schedule(self.loops, tuple(Place(at, level, name) for name, at in self.positions))


@dataclass(frozen=True, slots=True)
class Group:
    """Tensors that share a place, and the dimension along which a window slides there."""

    tensors: tuple[int, ...]
    slide: str | None


@dataclass(frozen=True, slots=True)
class Operand:
    """What of a tensor decides where its tile may stand: dims with several positions."""

    indexed: frozenset[str]
    sliding: frozenset[str]


@dataclass(frozen=True, slots=True)
class Form:
    """An order of places with slides, and which extents are left to choose.

    Parameters
    ----------
    groups : tuple of Group
        Outermost first.
    variables : tuple of (str, int)
        Dimension of each extent to choose, and the variable further out that
        bounds it, or -1.
    inside : tuple of tuple of int
        For each group and dimension, what the region inside its place is cut to:
        a variable, or ``WHOLE`` or ``ONE``.
    """

    groups: tuple[Group, ...]
    variables: tuple[tuple[str, int], ...]
    inside: tuple[tuple[int, ...], ...]

    def outside(self, at: int, operand: Operand, dims: Sequence[str]) -> tuple[int, ...]:
        """What a tensor of a group pays for: its slide, the last cut outside, is free."""
        slide = self.groups[at].slide
        if slide is None or slide not in operand.sliding:
            return self.inside[at]
        row = dims.index(slide)
        free = self.inside[at - 1][row] if at else WHOLE
        return (*self.inside[at][:row], free, *self.inside[at][row + 1 :])


def best_placement(
    problem: Problem,
    room: Room,
    keeps: Keeps = PLACED,
    *,
    below: int = NO_INCUMBENT,
) -> Placement | None:
    """Find the nest and the places that move the fewest bytes; None if none is below ``below``.

    Parameters
    ----------
    problem : Problem
    room : Room
        Of the scratchpad.
    keeps : Keeps
        Whether halos stay, and twice what is held.
    below : int, bytes
        Look only for something better, such as than the best body of all tiles.

    Notes
    -----
    That nothing is better is for `least_placed_bytes` to say: where a dimension
    is cut twice into extents that do not divide, this takes only those cuts that
    cost no more than one.

    Examples
    --------
    >>> from loopsched.problems.builders import gemm
    >>> found = best_placement(gemm(m=512, n=512, k=512), Room.shared(64))
    >>> found.bytes, str(found.schedule("L1"))
    (314572800, 'M:512 N:512 [L1 C] K:512 [L1 A] N:4 [L1 B] M:3')
    """
    if len(room.held(problem)) > MOST_TENSORS:
        return None
    tables = tables_for(problem)
    forms = _forms_of(problem, room, keeps.halo_reuse)
    found = _search(tables, room, forms, keeps.copies, below, is_bound=False)
    if found.form is None:
        return None
    made = Placement(below, *_nest(problem, tables, found.form, found.chosen), found.nodes)
    nest = made.schedule("L1")
    moved = explicit_traffic(
        view_of(problem, nest), room, nest.places,
        halo_reuse=keeps.halo_reuse, double_buffered=keeps.copies > 1,
    ).promised_bytes  # fmt: skip
    return replace(made, bytes=moved) if moved < below else None


def least_placed_bytes(
    problem: Problem,
    room: Room,
    keeps: Keeps = PLACED,
    *,
    below: int = NO_INCUMBENT,
    passes_writes: bool = False,
) -> tuple[int, int]:
    """Bound what any nest moves, wherever its tiles are placed.

    Parameters
    ----------
    problem, room, halo_reuse, copies
        As for `best_placement`.
    below : int, bytes
        What is known to be possible: more than that need not be shown.
    passes_writes : bool
        Whether the scratchpad writes what the level inside it writes, however
        much it keeps.

    Returns
    -------
    tuple of (int, int)
        Bytes that no nest stays below, at most ``below``; partial choices
        looked at.

    Notes
    -----
    Holds however many loops of a dimension cut it, and wherever: pieces of at
    most e are at least ceil(D / e), and clipped or gapped windows count with the
    least that as many pieces can have.

    Examples
    --------
    >>> from loopsched.problems.builders import gemm
    >>> least_placed_bytes(gemm(m=512, n=512, k=512), Room.shared(64))[0]
    314572800
    """
    held = room.held(problem)
    once = sum(tensor_bytes(problem, tensor) for tensor in held)
    if len(held) > MOST_TENSORS:
        return min(once, below), 0
    tables = tables_for(problem)
    if not _is_tabulated(problem):
        tables = least_tables(problem)
    if passes_writes:  # it reads at its visits, and writes at least once
        tables = replace(tables, weight=tables.element_bytes, constant=0)
    forms = _forms_of(problem, room, keeps.halo_reuse)
    found = _search(tables, room, forms, keeps.copies, below, is_bound=True)
    return max(min(found.bytes, found.left_out, below), min(once, below)), found.nodes


@lru_cache(maxsize=64)
def _lies_evenly(problem: Problem) -> bool:
    """Whether what pieces touch never depends on where they lie."""
    axes = [axis for tensor in problem.tensors for axis in tensor.axes]
    return all(lies_evenly(axis, problem.size) for axis in axes)


@lru_cache(maxsize=64)
def _is_tabulated(problem: Problem) -> bool:
    """Whether no chain of cuts touches less than one cut into pieces as long.

    So it is on an axis ``a*i + j`` that nothing clips: what pieces touch is concave
    in their length along j, and then whole ones and a rest touch least.
    """
    return not any(
        is_clipped(axis, problem.size) or (axis.is_compound and min(c for _, c in axis.terms) > 1)
        for tensor in problem.tensors
        for axis in tensor.axes
    )


@lru_cache(maxsize=64)
def _operands(problem: Problem) -> tuple[Operand, ...]:
    active = {dim for dim, size in problem.sizes if size > 1}
    found = []
    for tensor in problem.tensors:
        moving = [active.intersection(axis.dims) for axis in tensor.axes]
        sliding = frozenset(dim for dims in moving if len(dims) > 1 for dim in dims)
        found.append(Operand(frozenset().union(*moving), sliding))
    return tuple(found)


@dataclass(frozen=True)
class _Forms:
    """The forms of a kind of problem, and the arrays in which the kernel reads them."""

    forms: tuple[Form, ...]
    codes: tuple[Ints, Ints, Ints, Ints]


def _forms_of(problem: Problem, room: Room, halo_reuse: bool) -> _Forms:
    held = tuple(at for at, t in enumerate(problem.tensors) if t.name not in room.passing)
    order = sorted({size for _, size in problem.sizes})
    ranks = tuple((dim, order.index(size)) for dim, size in problem.sizes)
    return _forms(_operands(problem), held, ranks, halo_reuse)


@lru_cache(maxsize=1024)
def _forms(
    operands: tuple[Operand, ...],
    held: tuple[int, ...],
    ranks: tuple[tuple[str, int], ...],
    halo_reuse: bool,
) -> _Forms:
    """List the forms of all problems whose dimensions are in the same order by size."""
    dims = tuple(dim for dim, _ in ranks)
    found: dict[tuple[object, ...], Form] = {}
    rank = dict(ranks)
    for cutting in _cuttings(operands, held, dims, halo_reuse):
        form = cutting.form(rank)
        key = tuple(
            sorted((t, form.inside[at], form.outside(at, operands[t], dims))
            for at, group in enumerate(form.groups) for t in group.tensors)
        )  # fmt: skip
        found.setdefault(key, form)
    forms = tuple(found.values())
    return _Forms(forms, _codes(forms, operands, dims))


@lru_cache(maxsize=256)
def _cuttings(
    operands: tuple[Operand, ...], held: tuple[int, ...], dims: tuple[str, ...], halo_reuse: bool
) -> tuple[_Cutting, ...]:
    orders = _orders(operands, held, dims, halo_reuse)
    return tuple([_cutting(operands, groups, dims) for groups in orders])


def _orders(
    operands: Sequence[Operand], left: tuple[int, ...], dims: Sequence[str], halo_reuse: bool
) -> Iterator[tuple[Group, ...]]:
    """List the orders of places, with a slide wherever a window can."""
    if not left:
        yield ()
    for many in range(1, len(left) + 1):
        for chosen in combinations(left, many):
            shared = frozenset.intersection(*(operands[t].indexed for t in chosen))
            sliding = frozenset().union(*(operands[t].sliding for t in chosen))
            slides: list[str | None] = [
                dim for dim in dims if halo_reuse and dim in shared and dim in sliding
            ]
            if not slides and many == 1:
                slides = [None]
            rest = tuple(t for t in left if t not in chosen)
            for slide in slides:
                for inner in _orders(operands, rest, dims, halo_reuse):
                    yield (Group(chosen, slide), *inner)


class _Cutting(NamedTuple):
    """A form before its variables are put into an order.

    ``cuts`` has, for each group, what its dimensions are cut to; ``depth`` the group of
    each variable.
    """

    groups: tuple[Group, ...]
    variables: list[tuple[str, int]]
    depth: dict[int, int]
    cuts: list[dict[str, int]]

    def form(self, ranks: Mapping[str, int]) -> Form:
        """Choose outermost cuts first, and of them those with the fewest choices.

        So most is cut off early.
        """
        variables, depth = self.variables, self.depth
        order = sorted(range(len(variables)), key=lambda v: (depth[v], ranks[variables[v][0]], -v))
        rank = {v: at for at, v in enumerate(order)}
        inside: list[tuple[int, ...]] = []
        now = dict.fromkeys(ranks, WHOLE)
        for cut in self.cuts:
            now |= {dim: rank[code] if code >= 0 else code for dim, code in cut.items()}
            inside.append(tuple(now.values()))
        chosen = []
        for v in order:
            dim, outer = variables[v]
            chosen.append((dim, rank[outer] if outer >= 0 else -1))
        return Form(self.groups, tuple(chosen), tuple(inside))


def _cutting(
    operands: Sequence[Operand], groups: tuple[Group, ...], dims: tuple[str, ...]
) -> _Cutting:
    """Find which extents are left to choose: those that some tensor pays for, and not twice."""
    indexed, free = [], []  # by a tensor of each group; at no tensor's cost
    for group in groups:
        those = [operands[t] for t in group.tensors]
        indexed.append(frozenset().union(*(one.indexed for one in those)))
        sliding = frozenset().union(*(one.sliding for one in those))
        free.append(frozenset.intersection(*(one.indexed for one in those)) - sliding)
    cuts: list[dict[str, int]] = [{} for _ in groups]
    variables: list[tuple[str, int]] = []
    depth: dict[int, int] = {}
    for dim in dims:
        next_cut: int | None = None
        paid = False  # whether somebody pays between this cut and the next one further in
        for at in reversed(range(len(groups))):
            pays = dim not in free[at]
            if dim not in indexed[at]:
                paid = paid or pays
                continue
            is_slide = groups[at].slide == dim
            paid = paid or (pays and not is_slide)
            if next_cut is None:
                code = len(variables) if paid else ONE
            else:
                code = len(variables) if paid else next_cut
            if code == len(variables):
                variables.append((dim, -1))
                if next_cut is not None and next_cut >= 0:
                    variables[next_cut] = (dim, code)
            depth[code] = at
            cuts[at][dim] = next_cut = code
            paid = pays and is_slide
    return _Cutting(groups, variables, depth, cuts)


@dataclass(frozen=True, slots=True)
class _Found:
    bytes: int
    form: Form | None
    chosen: tuple[int, ...]
    nodes: int
    left_out: int


def _search(
    tables: Tables,
    room: Room,
    forms: _Forms,
    copies: int,
    below: int,
    *,
    is_bound: bool,
) -> _Found:
    import numpy as np

    problem = tables.problem
    own = own_room(problem, room)
    constant = tables.constant if problem.output not in room.passing else 0
    numbers = tables.numbers
    if room.passing:
        numbers = numbers._replace(weight=np.where(own == -2, 0, tables.weight))
    sizes = np.array([size for _, size in problem.sizes], dtype=np.int64)
    codes = Forms(*forms.codes, tables.lengths, sizes)
    best = np.zeros(codes.variables.shape[1], dtype=np.int64)
    found, form, nodes, left_out = best_places(
        numbers,
        codes,
        Buffer(room.shared_bytes, own, copies, False),
        Asked(is_bound, _lies_evenly(problem), MOST_NODES),
        min(below + constant, NO_INCUMBENT),
        best,
    )
    chosen = None if form < 0 else forms.forms[form]
    picked = tuple(int(best[v]) for v in range(len(chosen.variables))) if chosen else ()
    return _Found(int(found) - constant, chosen, picked, int(nodes), int(left_out) - constant)


def _codes(
    forms: tuple[Form, ...], operands: tuple[Operand, ...], dims: tuple[str, ...]
) -> tuple[Ints, Ints, Ints, Ints]:
    """Write forms as arrays for the kernel."""
    import numpy as np

    row = {dim: at for at, dim in enumerate(dims)}
    most = max([1, *(len(form.variables) for form in forms)])
    unused = (0, 0)
    variables = [
        [*((row[dim], outer) for dim, outer in form.variables), *(unused,) * most][:most]
        for form in forms
    ]
    passing = (WHOLE,) * len(dims)
    cuts = [[passing] * len(operands) for _ in forms]
    tiles = [[passing] * len(operands) for _ in forms]
    for s, form in enumerate(forms):
        for at, group in enumerate(form.groups):
            for t in group.tensors:
                tiles[s][t] = form.inside[at]
                cuts[s][t] = form.outside(at, operands[t], dims)
    shape = len(forms), len(operands), len(dims)
    return (
        np.array([len(form.variables) for form in forms], dtype=np.int64),
        np.array(variables, dtype=np.int64).reshape(len(forms), most, 2),
        np.array(cuts, dtype=np.int64).reshape(shape),
        np.array(tiles, dtype=np.int64).reshape(shape),
    )


def _nest(
    problem: Problem, tables: Tables, form: Form, chosen: tuple[int, ...]
) -> tuple[tuple[Loop, ...], tuple[tuple[str, int], ...]]:
    """Write a form with its extents as loops and places."""
    now = dict(problem.size)
    loops: list[Loop] = []
    positions: list[tuple[str, int]] = []
    for group, codes in zip(form.groups, form.inside, strict=True):
        inside = {}
        for row, (dim, code) in enumerate(zip(problem.dims, codes, strict=True)):
            at = {WHOLE: 0, ONE: -1}.get(code)
            inside[dim] = tables.extents[row][chosen[code] if at is None else at]
        cut = [dim for dim in problem.dims if inside[dim] < now[dim] and dim != group.slide]
        if group.slide is not None and inside[group.slide] < now[group.slide]:
            cut.append(group.slide)
        loops += [Loop(dim, now[dim]) for dim in cut]
        now |= {dim: inside[dim] for dim in cut}
        positions += [(problem.tensors[t].name, len(loops)) for t in group.tensors]
    loops += [Loop(dim, now[dim]) for dim in problem.dims if now[dim] > 1]
    return tuple(loops), tuple(positions)
