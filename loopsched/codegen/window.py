"""The program of a window that slides over planes: depthwise convolutions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from itertools import product

from loopsched.codegen.contraction import Contraction, Operand
from loopsched.codegen.layout import Origin
from loopsched.codegen.plan import Plan, Walk, even, roles
from loopsched.codegen.writer import Number, Writer

Counting = tuple[tuple[bool, ...], ...]
"""At each step along one dimension of the sum, which points of a tile count."""

Pairs = list[tuple[int, int]]
"""Rows of a tile, each with a row of the window."""

Halves = dict[int, tuple[str, str]]
"""Two vectors of a row whose elements belong to two taps in turn, by the first of these."""

KEPT_TAPS = 12
"""As many weights stay in registers."""
REGISTERS = {16: 32}
"""By the lanes of a vector; of others 16, of which a strip needs some for its operands."""
MOST_VECTORS = 12
MOST_WRITTEN = 1000
"""Multiply-adds in the code of a plane, which take LLVM 0.2 ms each; others count for more."""
CHAINS = 8
"""So many sums at once keep multipliers busy."""


def window_plan(task: Contraction, rows: int, lanes: int) -> Plan | None:
    """Cut a contraction whose weights stand for whole planes of the output, if it is one.

    The left operand has none of the dimensions of a plane; the sum is over two
    dimensions, each of which moves the right operand along one of the plane.
    """
    kinds = roles(task)
    planes = sorted(kinds["cols"], key=lambda dim: abs(task.out.step(dim)))
    sums = [dim for dim in kinds["sums"] if task.size(dim) > 1]
    sums.sort(key=lambda dim: -abs(task.right.step(dim)))
    taps = math.prod(task.size(dim) for dim in sums)
    if kinds["rows"] and any(task.size(dim) > 1 for dim in kinds["rows"]):
        return None
    if len(planes) < 2 or len(sums) != 2 or lanes == 1 or task.left.guards:
        return None
    across, down = planes[:2]
    pairs = ({down, sums[0]}, {across, sums[1]})
    if task.out.step(across) != 1 or task.size(across) < 2:
        return None
    if task.right.step(across) > 2 and task.right.element.n_bytes < 4:
        return None  # no instruction reads such elements that lie apart
    if any({dim for dim, _ in guard.steps} not in pairs for guard in task.right.guards):
        return None
    n_vectors, n_tiles = (-(-task.size(dim) // n) for dim, n in ((across, lanes), (down, rows)))
    step = min(3, abs(task.right.step(across)))
    if taps <= KEPT_TAPS:  # tiles for every edge
        written = (2, 4, 12)[step - 1] * rows * taps * min(3, n_vectors) * min(3, n_tiles)
    else:
        wide = strip_vectors(task.size(across), rows, lanes)
        met = rows  # loops over lines; lines that rows meet in turn are written out
        if rows > 1 and task.right.step(down) % (task.right.step(sums[0]) or 1):
            met *= task.size(sums[0])
        written = (1, 6, 6)[step - 1] * rows * met * task.size(sums[1]) * min(n_vectors, 3 * wide)
    if written > (MOST_WRITTEN if rows > 1 else 2 * MOST_WRITTEN):
        return None
    batch = tuple(dim for dim, _ in task.sizes if dim in task.out.dims - {down, across})
    cols, taps_walk = Walk((down, across), 0, rows), Walk(tuple(sums), 0, task.size(sums[0]))
    return Plan(batch, Walk(()), cols, taps_walk, rows, lanes, packs_right=False, slides=True)


def strip_vectors(across: int, rows: int, lanes: int) -> int:
    """Say how many vectors of a plane's rows are computed at once where weights do not stay.

    Examples
    --------
    >>> strip_vectors(56, 1, 8), strip_vectors(56, 4, 8), strip_vectors(7, 4, 16)
    (7, 2, 1)
    """
    most = min(MOST_VECTORS, (REGISTERS.get(lanes, 16) - 1 - rows) // rows)
    return even(-(-across // lanes), max(1, most))[0][0]


class Window:
    """Writes the function of a contraction that `window_plan` has cut.

    Each job is a plane.  A tile has some rows of one vector: what is read of the
    right operand serves all of its rows.  Where registers do not keep the weights,
    it is a strip instead, of several vectors: each weight that is read serves all of
    them, and rows of the window that the same rows of the tile meet are a loop.

    Parameters
    ----------
    text : Writer
    task : Contraction
    plan : Plan
    name : str
    """

    work_room = 0

    def __init__(self, text: Writer, task: Contraction, plan: Plan, name: str) -> None:
        self.text, self.task, self.plan, self.name = text, task, plan, name
        self.down, self.across = plan.cols.dims
        self.far, self.near = plan.sums.dims

    @property
    def n_jobs(self) -> int:
        """Planes."""
        return math.prod(self.task.size(dim) for dim in self.plan.batch)

    def write(self) -> None:
        """Write the function ``<name>(left, right, out, work, first, last)``: some of the jobs."""
        text, task = self.text, self.task
        pointers, limits = ("left", "right", "out", "work"), ("first", "last")
        with (
            text.function(self.name, pointers, limits, is_public=True),
            text.loop(text.argument("first"), text.argument("last")) as jobs,
        ):
            origin, rest = Origin(), jobs.index
            for dim in reversed(self.plan.batch):
                rest, origin.index[dim] = text.divided(rest, task.size(dim))
            left, right, out = (
                text.at(text.argument(side), origin.of(text, operand), operand.element)
                for side, operand in zip(pointers, (task.left, task.right, task.out), strict=False)
            )
            self._plane(left, right, out)

    def _plane(self, left: str, right: str, out: str) -> None:
        text, task = self.text, self.task
        n_far, n_near = task.size(self.far), task.size(self.near)
        if n_far * n_near > KEPT_TAPS:
            self._strips(left, right, out)
            return
        rows = [
            text.at(left, far * task.left.step(self.far), task.left.element) for far in range(n_far)
        ]
        weights = {
            (far, near): self._weight(rows[far], near)
            for far, near in product(range(n_far), range(n_near))
        }
        for tile, far_ok in self._alike(self.down, self.far, self.plan.tile_rows):
            with text.loop(*tile) as down:
                for cols, near_ok in self._alike(self.across, self.near, text.lanes):
                    with text.loop(*cols) as along:
                        at = down.index, along.index
                        self._tile((right, out), at, (far_ok, near_ok), weights)

    def _weight(self, row: str, near: int) -> str:
        """Read a weight of a row of them."""
        text, left = self.text, self.task.left
        place = text.at(row, near * left.step(self.near), left.element)
        return text.spread(text.load_one(place, left.element))

    def _alike(self, dim: str, tap: str, each: int) -> list[tuple[tuple[int, int, int], Counting]]:
        """Cut a dimension into runs of tiles, each with its points that count at each tap."""
        size = self.task.size(dim)
        found: list[tuple[tuple[int, int, int], Counting]] = []
        guards = [g for g in self.task.right.guards if g.step(tap) or g.step(dim)]
        for start in range(0, size, each):
            stop = min(size, start + each)
            counting = tuple(
                tuple(
                    all(
                        0 <= g.offset + point * g.step(dim) + at * g.step(tap) < g.size
                        for g in guards
                    )
                    for point in range(start, stop)
                )
                for at in range(self.task.size(tap))
            )
            if found and found[-1][1] == counting:
                found[-1] = ((found[-1][0][0], stop, each), counting)
            else:
                found.append(((start, stop, stop - start), counting))
        return found

    def _tile(
        self,
        pointers: tuple[str, str],
        at: tuple[Number, Number],
        counting: tuple[Counting, Counting],
        weights: dict[tuple[int, int], str],
    ) -> None:
        """Write a tile: rows of one vector."""
        text, operand, (far_ok, near_ok) = self.text, self.task.right, counting
        right, out = pointers
        right, out = self._moved(right, operand, at), self._moved(out, self.task.out, at)
        users: dict[int, list[tuple[int, int]]] = {}
        for row in range(len(far_ok[0])):
            for far, is_inside in enumerate(far_ok):
                if is_inside[row]:
                    offset = row * operand.step(self.down) + far * operand.step(self.far)
                    users.setdefault(offset, []).append((row, far))
        totals = [text.zero()] * len(far_ok[0])
        for offset in sorted(users):
            line, halves = text.at(right, offset, operand.element), Halves()
            for near in range(len(near_ok)):
                vector = self._vector(line, near, near_ok, halves)
                if not vector:
                    continue
                for row, far in users[offset]:
                    totals[row] = text.fma(weights[far, near], vector, totals[row])
        for row, total in enumerate(totals):
            self._store(out, row * self.task.out.step(self.down), total, len(near_ok[0]))

    def _moved(self, pointer: str, operand: Operand, at: tuple[Number, Number]) -> str:
        """Find a point of a plane: down and across."""
        text, steps = self.text, (operand.step(self.down), operand.step(self.across))
        return text.settled(text.at(pointer, text.add(*map(text.mul, at, steps)), operand.element))

    def _store(self, out: str, offset: int, total: str, n: int) -> None:
        text, element = self.text, self.task.out.element
        text.store(text.at(out, offset, element), total, element, text.first_lanes(n))

    def _strips(self, left: str, right: str, out: str) -> None:
        text, size, lanes = self.text, self.task.size(self.down), self.text.lanes
        rows = min(self.plan.tile_rows, size)
        wide = strip_vectors(self.task.size(self.across), rows, lanes) * lanes
        with text.loop(0, size, rows) as down:
            # The last one computes some rows again, lest there are two kinds.
            row = text.least(down.index, size - rows) if size % rows else down.index
            for cols, near_ok in self._alike(self.across, self.near, wide):
                parts = [
                    tuple(inside[start : start + lanes] for inside in near_ok)
                    for start in range(0, len(near_ok[0]), lanes)
                ]
                with text.loop(*cols) as along:
                    self._strip((left, right, out), (row, along.index), (rows, parts))

    def _strip(
        self,
        pointers: tuple[str, str, str],
        at: tuple[Number, Number],
        shape: tuple[int, Sequence[Counting]],
    ) -> None:
        """Write some vectors of some rows; a sum has several chains where they are few."""
        text, task, (rows, parts) = self.text, self.task, shape
        left, right, out = pointers
        right, out = self._moved(right, task.right, at), self._moved(out, task.out, at)
        each = len(parts) * min(len(parts[0]), max(1, CHAINS // (rows * len(parts))))
        totals = [[text.zero()] * each for _ in range(rows)]
        for pairs, n in self._met(rows):
            first = pairs[0][0]
            with text.loop(0, n, 1, [one for row, _ in pairs for one in totals[row]]) as loop:
                taps = [text.add(loop.index, far) for _, far in pairs]
                line = text.at(
                    right,
                    text.add(
                        first * task.right.step(self.down),
                        text.mul(taps[0], task.right.step(self.far)),
                    ),
                    task.right.element,
                )
                weights = [
                    text.at(left, text.mul(tap, task.left.step(self.far)), task.left.element)
                    for tap in taps
                ]
                truth = self._is_inside(text.add(at[0], first), taps[0])
                if truth is None:
                    loop.carry(self._products(weights, line, parts, loop.values))
                else:
                    with text.when(truth, loop.values) as branch:
                        branch.carry(self._products(weights, line, parts, loop.values))
                    loop.carry(branch.values)
            for number, (row, _) in enumerate(pairs):
                totals[row] = loop.values[number * each : (number + 1) * each]
        step = task.out.step(self.down)
        for row, (number, part) in product(range(rows), enumerate(parts)):
            total = reduce(text.plus, totals[row][number :: len(parts)])
            self._store(out, row * step + number * text.lanes, total, len(part[0]))

    def _met(self, rows: int) -> list[tuple[Pairs, int]]:
        """List the rows of the right operand that those of a tile meet, each at a tap.

        Those that follow each other and are met by the same rows, a tap further each
        time, are one: the first, and how many.
        """
        right = self.task.right
        moves = [(right.step(self.down), right.step(self.far))]
        moves += [(one.step(self.down), one.step(self.far)) for one in right.guards]
        met: dict[tuple[int, ...], Pairs] = {}
        for row, far in product(range(rows), range(self.task.size(self.far))):
            place = tuple(row * down + far * on for down, on in moves)
            met.setdefault(place, []).append((row, far))
        found: list[tuple[Pairs, int]] = []
        for _, pairs in sorted(met.items(), reverse=right.step(self.far) < 0):
            if found:
                begun, n = found[-1]
                if pairs == [(row, far + n) for row, far in begun]:
                    found[-1] = begun, n + 1
                    continue
            found.append((pairs, 1))
        return found

    def _products(
        self,
        weights: Sequence[str],
        line: str,
        parts: Sequence[Counting],
        totals: Sequence[str],
    ) -> list[str]:
        """Multiply vectors of a row by rows of the window, one for each row of the tile."""
        text, operand, made, n = self.text, self.task.right, list(totals), len(parts)
        step, each = text.lanes * operand.step(self.across), len(totals) // len(weights)
        places = [text.at(line, number * step, operand.element) for number in range(n)]
        halves = [Halves() for _ in parts]
        for near in range(len(parts[0])):
            spread = [self._weight(one, near) for one in weights]
            for number, part in enumerate(parts):
                vector = self._vector(places[number], near, part, halves[number])
                if not vector:
                    continue
                for row, weight in enumerate(spread):
                    at = row * each + (near * n + number) % each
                    made[at] = text.fma(weight, vector, made[at])
        return made

    def _is_inside(self, row: Number, far: Number) -> str | None:
        """Say whether a row of the right operand does not lie in padding; None: no row does."""
        text, truth = self.text, None
        for guard in self.task.right.guards:
            steps = guard.step(self.down), guard.step(self.far)
            if any(steps):
                place = text.add(guard.offset, *map(text.mul, (row, far), steps))
                here = text.inside(place, guard.size)
                truth = here if truth is None else text.both(truth, here)
        return truth

    def _vector(self, line: str, near: int, near_ok: Counting, halves: Halves) -> str | None:
        """Read what a tap needs of a row; nothing that lies in padding is read."""
        text, operand, lanes = self.text, self.task.right, self.text.lanes
        step, by, inside = operand.step(self.across), operand.step(self.near), near_ok[near]
        if not any(inside):
            return None
        place = text.at(line, near * by, operand.element)
        if step != 2 or by != 1:
            mask = text.some_lanes([*inside, *[False] * (lanes - len(inside))])
            return text.load(place, operand.element, mask, step)
        first = near // 4 * 4
        if first not in halves:
            here = text.at(line, first, operand.element)
            halves[first] = self._halves(here, near_ok[first : first + 4])
        vector = text.picked(*halves[first], near % 2, 2)
        if first >= near - 1:
            return vector
        last = text.zero()  # a lane further
        if len(inside) == lanes and inside[-1]:
            end = text.at(place, (lanes - 1) * step, operand.element)
            last = text.spread(text.load_one(end, operand.element))
        return text.picked(vector, last, 1, 1)

    def _halves(self, place: str, taps: Counting) -> tuple[str, str]:
        """Read two vectors whose elements belong to two taps in turn.

        Two taps further, elements are those of the next lane.
        """
        text, element, lanes = self.text, self.task.right.element, self.text.lanes
        read = [False] * (2 * lanes + 2)
        for tap, inside in enumerate(taps):
            for lane, is_inside in enumerate(inside):
                read[2 * lane + tap] |= is_inside
        one, other = (
            text.load(
                text.at(place, start, element),
                element,
                text.some_lanes(read[start : start + lanes]),
            )
            if any(read[start : start + lanes])
            else text.zero()
            for start in (0, lanes)
        )
        return one, other
