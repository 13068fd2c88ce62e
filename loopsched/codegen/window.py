"""The program of a window that slides over planes: depthwise convolutions."""

from __future__ import annotations

import math
from collections.abc import Iterator

from loopsched.codegen.contraction import Contraction
from loopsched.codegen.layout import Origin
from loopsched.codegen.plan import Plan, Walk, roles
from loopsched.codegen.writer import Number, Writer

Counting = tuple[tuple[bool, ...], ...]
"""At each step along one dimension of the sum, which points of a tile count."""

MOST_TAPS = 64
KEPT_TAPS = 12
"""As many weights stay in registers."""
MOST_ROWS = 4
"""Of a tile whose weights do not: with more it is hardly faster, and takes LLVM twice as long."""


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
    if taps > MOST_TAPS or (taps > KEPT_TAPS and rows > MOST_ROWS):
        return None
    across, down = planes[:2]
    pairs = ({down, sums[0]}, {across, sums[1]})
    if task.out.step(across) != 1 or task.size(across) < 2:
        return None
    if task.right.step(across) > 2 and task.right.element.n_bytes < 4:
        return None  # no instruction reads such elements that lie apart
    if any({dim for dim, _ in guard.steps} not in pairs for guard in task.right.guards):
        return None
    batch = tuple(dim for dim, _ in task.sizes if dim in task.out.dims - {down, across})
    cols, taps_walk = Walk((down, across), 0, rows), Walk(tuple(sums), 0, task.size(sums[0]))
    return Plan(batch, Walk(()), cols, taps_walk, rows, lanes, packs_right=False, slides=True)


class Window:
    """Writes the function of a contraction that `window_plan` has cut.

    Each job is a plane.  A tile has some rows of one vector: what is read of the
    right operand serves all of its rows.

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
        steps = [
            (far, near)
            for far in range(task.size(self.far))
            for near in range(task.size(self.near))
        ]
        self.places = {
            (far, near): text.at(
                left,
                far * task.left.step(self.far) + near * task.left.step(self.near),
                task.left.element,
            )
            for far, near in steps
        }
        self.kept = {}
        if len(steps) <= KEPT_TAPS:
            self.kept = {one: self._weight(one) for one in steps}
        for rows, far_ok in self._alike(self.down, self.far, self.plan.tile_rows):
            with text.loop(*rows) as down:
                for cols, near_ok in self._alike(self.across, self.near, text.lanes):
                    with text.loop(*cols) as along:
                        self._tile(right, out, (down.index, along.index), (far_ok, near_ok))

    def _weight(self, step: tuple[int, int]) -> str:
        text, element = self.text, self.task.left.element
        return text.spread(text.load_one(self.places[step], element))

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
        self, right: str, out: str, at: tuple[Number, Number], counting: tuple[Counting, Counting]
    ) -> None:
        """Write a tile: rows of one vector."""
        text, task = self.text, self.task
        far_ok, near_ok = counting
        n_rows, n_cols = len(far_ok[0]), len(near_ok[0])
        place = text.add(
            *(
                text.mul(one, task.right.step(dim))
                for one, dim in zip(at, (self.down, self.across), strict=True)
            )
        )
        right = text.at(right, place, task.right.element)
        users: dict[int, list[tuple[int, int]]] = {}
        for row in range(n_rows):
            for far, is_inside in enumerate(far_ok):
                if is_inside[row]:
                    offset = row * task.right.step(self.down) + far * task.right.step(self.far)
                    users.setdefault(offset, []).append((row, far))
        totals = [text.zero()] * n_rows
        for offset in sorted(users):
            for near, vector in self._vectors(right, offset, near_ok):
                for row, far in users[offset]:
                    weight = self.kept.get((far, near)) or self._weight((far, near))
                    totals[row] = text.fma(weight, vector, totals[row])
        mask = text.first_lanes(n_cols)
        for row, total in enumerate(totals):
            place = text.add(
                text.mul(at[0], task.out.step(self.down)), at[1], row * task.out.step(self.down)
            )
            text.store(text.at(out, place, task.out.element), total, task.out.element, mask)

    def _vectors(self, right: str, offset: int, near_ok: Counting) -> Iterator[tuple[int, str]]:
        """Read what each tap needs of a row; nothing that lies in padding is read."""
        text, operand, lanes = self.text, self.task.right, self.text.lanes
        step, by = operand.step(self.across), operand.step(self.near)
        halves: dict[int, tuple[str, str]] = {}
        for near, inside in enumerate(near_ok):
            if not any(inside):
                continue
            place = text.at(right, offset + near * by, operand.element)
            if step != 2 or by != 1:
                mask = text.some_lanes([*inside, *[False] * (lanes - len(inside))])
                yield near, text.load(place, operand.element, mask, step)
                continue
            first = near // 4 * 4
            if first not in halves:
                halves[first] = self._halves(right, offset + first, near_ok[first : first + 4])
            vector = text.picked(*halves[first], near % 2, 2)
            if first < near - 1:  # a lane further
                last = text.zero()
                if len(inside) == lanes and inside[-1]:
                    last = text.spread(
                        text.load_one(
                            text.at(place, (lanes - 1) * step, operand.element), operand.element
                        )
                    )
                vector = text.picked(vector, last, 1, 1)
            yield near, vector

    def _halves(self, right: str, offset: int, taps: Counting) -> tuple[str, str]:
        """Read two vectors whose elements belong to two taps in turn.

        Two taps further, elements are those of the next lane.
        """
        text, element, lanes = self.text, self.task.right.element, self.text.lanes
        read = [False] * (2 * lanes + 2)
        for tap, inside in enumerate(taps):
            for lane, is_inside in enumerate(inside):
                read[2 * lane + tap] |= is_inside
        vectors = (
            text.load(
                text.at(right, offset + start, element),
                element,
                text.some_lanes(read[start : start + lanes]),
            )
            if any(read[start : start + lanes])
            else text.zero()
            for start in (0, lanes)
        )
        return next(vectors), next(vectors)
