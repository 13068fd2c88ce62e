"""The program of any problem, or of a schedule: its loops, and register tiles inside."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from loopsched.codegen.contraction import Guard, Operand, Product
from loopsched.codegen.writer import Number, Writer

NEAR_BYTES = 128 * 1024
"""Loops are put in another order where all that they touch is at most this, a core's own cache."""


@dataclass(frozen=True, slots=True)
class Step:
    """A loop over ``extent`` positions of a dimension, ``step`` at a time."""

    dim: str
    extent: int
    step: int = 1

    @property
    def trips(self) -> int:
        """Iterations over a whole tile."""
        return -(-self.extent // self.step)


@dataclass(frozen=True, slots=True)
class Nest:
    """How a product is walked.

    Parameters
    ----------
    loops : tuple of Step
        Outermost first.
    n_serial, n_shared : int
        Outer loops that run one after the other; those inside that threads share.
    n_sums : int
        Inner loops of the sum that are walked with the sums in registers.
    rows, cols : str, optional
        Dimensions of the register tile, of the lanes of its vectors.
    tile_rows, tile_cols : int
    is_direct : bool
        Whether each element of the output is written once, so that it need not be zero before.
    """

    loops: tuple[Step, ...]
    n_serial: int
    n_shared: int
    n_sums: int
    rows: str | None
    cols: str | None
    tile_rows: int
    tile_cols: int
    is_direct: bool

    @property
    def n_rounds(self) -> int:
        """How often all threads come together."""
        return math.prod(one.trips for one in self.loops[: self.n_serial])

    @property
    def n_jobs(self) -> int:
        """Jobs of all rounds."""
        return self.n_rounds * math.prod(
            one.trips for one in self.loops[self.n_serial : self.n_serial + self.n_shared]
        )


def plain_loops(task: Product) -> list[Step]:
    """List a loop for each dimension: those of the output outside, far steps first."""

    def order(dim: str) -> tuple[bool, int, int]:
        reads = sum(abs(one.step(dim)) for one in task.reads)
        return dim not in task.out.dims, -abs(task.out.step(dim)), -reads

    return [Step(dim, task.size(dim)) for dim in sorted(task.dims, key=order)]


def nest_of(
    task: Product,
    loops: Sequence[Step],
    shared: tuple[int, int],
    lanes: int,
    registers: int,
) -> Nest:
    """Put a register tile into loops.

    Parameters
    ----------
    task : Product
    loops : sequence of Step
        Outermost first; their order is kept, but for the innermost tile: where
        all that it touches lies near the core, its sums are walked inside.
    shared : (int, int)
        How many outer loops run one after the other, and how many threads share.
    lanes, registers : int
        Of a vector; vectors.
    """
    n_lead = sum(shared)
    cut = _near(task, loops, n_lead)
    inner = sorted(loops[cut:], key=lambda one: one.dim not in task.out.dims)
    outer = list(loops[:cut])
    reach = {one.dim: one.extent for one in (*outer, *inner)}
    cols = _vector_dim(task, reach)
    rows = _row_dim(task, reach, cols)
    n_rows, n_cols = reach.get(rows or "", 1), reach.get(cols or "", 1)
    tall, n = _tile(n_rows, -(-n_cols // lanes) if cols else 1, registers)
    wide = min(n_cols, n * lanes)
    made = [_tiled(one, {cols: wide, rows: tall}) for one in (*outer, *inner)]
    n_sums = 0
    while n_sums < len(made) - n_lead and made[-1 - n_sums].dim not in task.out.dims:
        n_sums += 1
    is_once = not any(
        one.dim not in task.out.dims and one.trips > 1 for one in made[: len(made) - n_sums]
    )
    is_direct = is_once and task.covers_out
    return Nest(tuple(made), *shared, n_sums, rows, cols, tall, wide, is_direct)


def _tiled(loop: Step, tiles: dict[str | None, int]) -> Step:
    return replace(loop, step=tiles[loop.dim]) if loop.dim in tiles and loop.step == 1 else loop


def _near(task: Product, loops: Sequence[Step], n_lead: int) -> int:
    """Find where the innermost tile begins: loops in steps of one, over what lies near."""
    cut = len(loops)
    reach: dict[str, int] = {}
    while cut > n_lead and loops[cut - 1].step == 1:
        reach[loops[cut - 1].dim] = loops[cut - 1].extent
        touched = sum(one.element.n_bytes * _touched(one, reach) for one in task.operands)
        if touched > NEAR_BYTES:
            break
        cut -= 1
    return cut


def _touched(one: Operand, reach: Mapping[str, int]) -> int:
    """Count elements that a tile touches; where windows slide they overlap.

    Examples
    --------
    >>> from loopsched.codegen.element import FP32
    >>> image = Operand("input", FP32, (("C", 3136), ("P", 56), ("R", 56), ("Q", 1), ("S", 1)))
    >>> _touched(image, {"C": 64, "P": 11, "Q": 11, "R": 3, "S": 3}) == 64 * 13 * 13
    True
    """
    runs = [(1, 1)]  # steps, and how many: each longer than all that the ones before reach
    for step, dim in sorted((abs(step), dim) for dim, step in one.steps if step):
        unit, n = runs[-1]
        more = reach.get(dim, 1) - 1
        if step <= unit * n:
            runs[-1] = unit, n + -(-more * step // unit)
        else:
            runs.append((step, more + 1))
    return math.prod(n for _, n in runs)


def _vector_dim(task: Product, reach: dict[str, int]) -> str | None:
    """Choose whose points lie in lanes: those side by side in the output, and if possible read."""
    found = [dim for dim in task.out.dims if task.out.step(dim) == 1 and reach.get(dim, 1) > 1]
    apart = {dim: sum(one.step(dim) not in (0, 1) for one in task.reads) for dim in found}
    return min(found, key=lambda dim: (apart[dim], -reach[dim], dim)) if found else None


def _row_dim(task: Product, reach: dict[str, int], cols: str | None) -> str | None:
    """Choose the other dimension of the register tile: one that moves few of the vectors."""
    found = [dim for dim in task.out.dims if dim != cols and reach.get(dim, 1) > 1]
    moved = {
        dim: sum(dim in one.dims and (cols is None or cols in one.dims) for one in task.reads)
        for dim in found
    }
    return min(found, key=lambda dim: (moved[dim], -min(reach[dim], 8), dim)) if found else None


def _tile(rows: int, vectors: int, registers: int) -> tuple[int, int]:
    """Choose rows and vectors of a register tile: few loads, and few tiles that are not full."""

    def cost(n: int) -> tuple[float, int]:
        tall = height(n)
        n_tiles = -(-rows // tall) * -(-vectors // n)
        # Products, and loads at the same pace; four sums or more hide an addition's latency.
        return n_tiles * max(tall * n + 0.5 * (tall + 2 * n), 6.0), -n

    def height(n: int) -> int:
        most = max(1, min((registers - 2 - n) // n, 14))
        return -(-rows // -(-rows // most))

    best = min(range(1, min(vectors, 4) + 1), key=cost)
    return height(best), best


@dataclass(frozen=True, slots=True)
class Part:
    """What is left of a dimension inside some loops."""

    start: Number
    end: Number
    extent: int
    is_whole: bool  # whether it always is as long as the extent

    def inside(self, text: Writer | None, at: Number, step: int) -> Part:
        """Give the part that begins at an index and is at most so long."""
        is_whole = step == 1 or (self.is_whole and self.extent % step == 0)
        if text is None:
            return Part(0, 0, step, is_whole)
        end = text.add(at, step)
        return Part(at, end if is_whole else text.least(end, self.end), step, is_whole)

    def length(self, text: Writer) -> Number:
        """Count its points."""
        if self.is_whole:
            return self.extent
        return text.add(self.end, text.mul(self.start, -1))


class Walk:
    """Writes the functions of one nest.

    Parameters
    ----------
    text : Writer
    task : Product
    nest : Nest
    name : str
        Of its function ``<name>(reads..., out, work, first, last)``: some of the jobs.
    """

    def __init__(self, text: Writer, task: Product, nest: Nest, name: str) -> None:
        self.text, self.task, self.nest, self.name = text, task, nest, name
        self.operands = (*task.reads, task.out)
        self.pointers = [f"tensor{number}" for number in range(len(self.operands))]
        self.guards = [guard for one in self.operands for guard in one.guards]
        self.sums = nest.loops[len(nest.loops) - nest.n_sums :]
        self.sum_dims = tuple(dict.fromkeys(one.dim for one in self.sums))

    def write(self, *, is_public: bool = False) -> None:
        """Write the function, after those that it calls."""
        text, nest = self.text, self.nest
        for rows in self._heights():
            for kind in self._kinds():
                _Tile(self, rows, kind).write()
        pointers = (*self.pointers, "work")
        with (
            text.function(self.name, pointers, ("first", "last"), is_public=is_public),
            text.loop(text.argument("first"), text.argument("last")) as jobs,
        ):
            self._lead(jobs.index, nest.n_serial + nest.n_shared)

    def _kinds(self) -> list[str]:
        """List the kinds of tiles: far from what is not stored, of whole rows, at edges."""
        kinds = ["_inside"] if self.guards else []
        return [*kinds, "", "_edge"] if self._has_edge() else [*kinds, ""]

    def part(self, dim: str, n_loops: int) -> Part:
        """Say what is left of a dimension inside so many loops, but for where it is."""
        part = Part(0, 0, self.task.size(dim), True)
        for one in self.nest.loops[:n_loops]:
            if one.dim == dim:
                part = part.inside(None, 0, one.step)
        return part

    def _has_edge(self) -> bool:
        nest = self.nest
        return nest.cols is not None and not self.part(nest.cols, len(nest.loops)).is_whole

    def _heights(self) -> list[int]:
        """List the heights of tiles: of whole ones, of those at edges, and what makes up others."""
        nest, high = self.nest, self.nest.tile_rows
        if nest.rows is None or self.part(nest.rows, len(nest.loops)).is_whole:
            return [high]
        known, around = {1, high}, self.task.size(nest.rows)
        for one in nest.loops:
            if one.dim == nest.rows:
                known |= {one.extent % high, around % one.extent % high}
                around = one.extent
        known |= {1 << bit for bit in range(2, high.bit_length())}
        return sorted((one for one in known if 0 < one <= high), reverse=True)

    def _lead(self, job: Number, n_lead: int) -> None:
        """Find what a job's number stands for."""
        text, loops = self.text, self.nest.loops[:n_lead]
        places: list[Number] = []
        rest = job
        for one in reversed(loops[1:]):
            rest, at = text.divided(rest, one.trips)
            places.insert(0, at)
        places = [rest, *places] if loops else []
        parts = {dim: Part(0, size, size, True) for dim, size in self.task.sizes}
        with ExitStack() as stack:
            for one, place in zip(loops, places, strict=True):
                around = parts[one.dim]
                at = text.add(around.start, text.mul(place, one.step))
                if not around.is_whole:  # then it may have fewer iterations
                    stack.enter_context(text.when(text.less(at, around.end)))
                parts[one.dim] = around.inside(text, at, one.step)
            self._walk(n_lead, parts)

    def _walk(self, depth: int, parts: dict[str, Part]) -> None:
        if depth == len(self.nest.loops) - self.nest.n_sums:
            self._call(parts)
            return
        one = self.nest.loops[depth]
        around = parts[one.dim]
        with self.text.loop(around.start, around.end, one.step) as loop:
            inside = around.inside(self.text, loop.index, one.step)
            self._walk(depth + 1, {**parts, one.dim: inside})

    def _call(self, parts: dict[str, Part]) -> None:
        """Call the functions of register tiles for what is left of rows and columns."""
        text, nest = self.text, self.nest
        origin = {dim: part.start for dim, part in parts.items()}
        given = [
            text.at(text.argument(word), placed(text, one, origin), one.element)
            for word, one in zip(self.pointers, self.operands, strict=True)
        ]
        numbers = [parts[dim].length(text) for dim in self.sum_dims]
        numbers += [placed(text, guard, origin) for guard in self.guards]
        columns = parts[nest.cols].length(text) if nest.cols else 1
        numbers.append(columns)
        with ExitStack() as stack:
            if self._has_edge():
                is_full = text.equal(columns, nest.tile_cols)
                with text.when(text.negated(is_full)):
                    self._call_rows(parts, given, numbers, "_edge")
                stack.enter_context(text.when(is_full))
            if not self.guards:
                self._call_rows(parts, given, numbers, "")
                return
            is_inside = self._is_inside(parts, origin)
            with text.when(is_inside):
                self._call_rows(parts, given, numbers, "_inside")
            with text.when(text.negated(is_inside)):
                self._call_rows(parts, given, numbers, "")

    def _is_inside(self, parts: dict[str, Part], origin: dict[str, Number]) -> str:
        """Say whether all that a tile touches is stored."""
        text = self.text
        truth: str | None = None
        for guard in self.guards:
            first = placed(text, guard, origin)
            reach = sum(step * (parts[dim].extent - 1) for dim, step in guard.steps)
            for position in (first, text.add(first, reach)):
                one = text.inside(position, guard.size)
                truth = one if truth is None else text.both(truth, one)
        return truth or ""

    def _call_rows(
        self, parts: dict[str, Part], given: list[str], numbers: list[Number], kind: str
    ) -> None:
        text, nest = self.text, self.nest
        heights = self._heights()
        if len(heights) == 1:
            text.call(f"{self.name}_{heights[0]}{kind}", given, [*numbers, 0])
            return
        assert nest.rows  # noqa: S101 - else there is one height
        start: Number = 0
        left = parts[nest.rows].length(text)
        for rows in heights:
            count, rest = text.divided(left, rows)
            name = f"{self.name}_{rows}{kind}"
            with text.loop(0, count) as loop:
                at = text.add(start, text.mul(loop.index, rows))
                text.call(name, given, [*numbers, at])
            start, left = text.add(start, text.mul(count, rows)), rest


def placed(text: Writer, one: Operand | Guard, index: Mapping[str, Number]) -> Number:
    """Give the address of an operand, or the position of a guard, at some indices."""
    return text.add(one.offset, *(text.mul(at, one.step(dim)) for dim, at in index.items()))


class _Tile:
    """Writes the function of one register tile: ``tile_rows`` by ``tile_cols`` of the output."""

    def __init__(self, walk: Walk, rows: int, kind: str) -> None:
        self.walk, self.text, self.task, self.nest = walk, walk.text, walk.task, walk.nest
        self.rows, self.kind = rows, kind
        self.is_vector = self.nest.cols is not None
        self.n = -(-self.nest.tile_cols // self.text.lanes) if self.is_vector else 1

    def write(self) -> None:
        """Write it; its arguments are where the tile begins, lengths and positions of guards."""
        text, walk, nest = self.text, self.walk, self.nest
        lengths = [f"length{number}" for number in range(len(walk.sum_dims))]
        positions = [f"place{number}" for number in range(len(walk.guards))]
        name = f"{walk.name}_{self.rows}{self.kind}"
        with text.function(name, walk.pointers, (*lengths, *positions, "columns", "row")):
            row = text.argument("row")
            where = [
                text.at(text.argument(word), text.mul(row, self._down(one)), one.element)
                for word, one in zip(walk.pointers, walk.operands, strict=True)
            ]
            at = [
                text.add(text.argument(word), text.mul(row, self._down(guard)))
                for word, guard in zip(positions, walk.guards, strict=True)
            ]
            self.masks = self._masks()
            outer = len(nest.loops) - nest.n_sums
            parts = {}
            for word, dim in zip(lengths, walk.sum_dims, strict=True):
                part = walk.part(dim, outer)
                end: Number = part.extent if part.is_whole else text.argument(word)
                parts[dim] = Part(0, end, part.extent, part.is_whole)
            zero = text.zero() if self.is_vector else text.number(0)
            totals = self._sum(walk.sums, parts, where, at, [zero] * (self.rows * self.n))
            self._finish(where[-1], at, totals)

    def _down(self, one: Operand | Guard) -> int:
        return one.step(self.nest.rows) if self.nest.rows else 0

    def _across(self, one: Operand | Guard) -> int:
        return one.step(self.nest.cols) if self.nest.cols else 0

    def _masks(self) -> list[str | None]:
        """Give the masks of columns that there are."""
        text = self.text
        starts = range(0, self.n * text.lanes, text.lanes)
        if not self.is_vector:
            return [None]
        if self.kind != "_edge":
            return [text.first_lanes(self.nest.tile_cols - start) for start in starts]
        columns = text.argument("columns")
        return [text.lanes_inside(start, 1, columns) for start in starts]

    def _sum(
        self,
        loops: Sequence[Step],
        parts: dict[str, Part],
        where: list[str],
        at: list[Number],
        totals: list[str],
    ) -> list[str]:
        """Write the loops of the sum; the totals go along."""
        text, walk = self.text, self.walk
        if not loops:
            return self._point(where, at, totals)
        one, *rest = loops
        around = parts[one.dim]
        with text.loop(around.start, around.end, one.step, totals) as loop:
            inside = {**parts, one.dim: around.inside(text, loop.index, one.step)}
            if one.step == 1:  # the innermost of its dimension
                index = {one.dim: loop.index}
                where = [
                    text.at(pointer, placed(text, replace(each, offset=0), index), each.element)
                    for pointer, each in zip(where, walk.operands, strict=True)
                ]
                at = [
                    text.add(position, text.mul(loop.index, guard.step(one.dim)))
                    for position, guard in zip(at, walk.guards, strict=True)
                ]
            loop.carry(self._sum(rest, inside, where, at, loop.values))
        return loop.values

    def _point(self, where: list[str], at: list[Number], totals: list[str]) -> list[str]:
        """Write the products of one point of the sum."""
        text, reads = self.text, self.task.reads
        values = [
            [
                [self._value(place, where[place], at, row, number) for number in self._over(one)]
                for row in range(self.rows if self._down(one) or self._guards_move(one) else 1)
            ]
            for place, one in enumerate(reads)
        ]
        made = list(totals)
        spread: dict[tuple[str, ...], str] = {}
        for row in range(self.rows):
            for number in range(self.n):
                numbers, vectors = [], []
                for one, found in zip(reads, values, strict=True):
                    each = found[row if len(found) > 1 else 0]
                    if self._is_wide(one):
                        vectors.append(each[number])
                    else:
                        numbers.append(each[0])
                if not reads:
                    numbers.append(text.number(self.task.value))
                if self.is_vector and numbers:
                    key = tuple(numbers)
                    if key not in spread:
                        spread[key] = text.spread(self._product(numbers, text.number(0)))
                    vectors.insert(0, spread[key])
                factors = vectors if self.is_vector else numbers
                made[row * self.n + number] = self._added(factors, made[row * self.n + number])
        return made

    def _product(self, factors: list[str], zero: str) -> str:
        found, *rest = factors
        for one in rest:
            found = self.text.fma(found, one, zero)
        return found

    def _added(self, factors: list[str], total: str) -> str:
        text = self.text
        if len(factors) == 1:
            return text.plus(factors[0], total)
        zero = text.zero() if self.is_vector else text.number(0)
        return text.fma(self._product(factors[:-1], zero), factors[-1], total)

    def _is_wide(self, one: Operand) -> bool:
        """Whether lanes of an operand differ."""
        moves = self._across(one) or any(self._across(guard) for guard in self._guards(one))
        return self.is_vector and bool(moves)

    def _over(self, one: Operand) -> range:
        return range(self.n if self._is_wide(one) else 1)

    def _guards_move(self, one: Operand) -> bool:
        return any(self._down(guard) for guard in self._guards(one))

    def _guards(self, one: Operand) -> tuple[Guard, ...]:
        return () if self.kind == "_inside" else one.guards

    def _inside(
        self, place: int, at: list[Number], row: int, number: int
    ) -> tuple[str | None, str | None]:
        """Say where an operand has elements: at all, and in which lanes."""
        text, walk = self.text, self.walk
        truth: str | None = None
        mask: str | None = None
        first = sum(len(one.guards) for one in walk.operands[:place])
        for offset, guard in enumerate(self._guards(walk.operands[place]), first):
            across = self._across(guard)
            moved = row * self._down(guard) + number * text.lanes * across
            position = text.add(at[offset], moved)
            if across and self.is_vector:
                here = text.lanes_inside(position, across, guard.size)
                mask = text.mask_and(mask, here)
            else:
                one = text.inside(position, guard.size)
                truth = one if truth is None else text.both(truth, one)
        return truth, mask

    def _value(self, place: int, pointer: str, at: list[Number], row: int, number: int) -> str:
        """Read an operand; where it has no element it is zero."""
        text, one = self.text, self.walk.operands[place]
        across = self._across(one)
        moved = row * self._down(one) + number * text.lanes * across
        pointer = text.at(pointer, moved, one.element)
        truth, mask = self._inside(place, at, row, number)
        if not self._is_wide(one):
            return text.load_one(pointer, one.element, truth)
        mask = text.mask_and(self.masks[number], mask)
        if truth is not None:
            mask = text.mask_if(truth, mask)
        return text.load(pointer, one.element, mask, across)

    def _finish(self, pointer: str, at: list[Number], totals: list[str]) -> None:
        """Write what has been summed, or add it to what is there."""
        text, out = self.text, self.task.out
        place = len(self.walk.operands) - 1
        for row in range(self.rows):
            for number in range(self.n):
                moved = row * self._down(out) + number * text.lanes * self._across(out)
                target = text.at(pointer, moved, out.element)
                truth, mask = self._inside(place, at, row, number)
                value = totals[row * self.n + number]
                if self.is_vector:
                    mask = text.mask_and(self.masks[number], mask)
                    mask = text.mask_if(truth, mask) if truth is not None else mask
                    if not self.nest.is_direct:
                        value = text.plus(value, text.load(target, out.element, mask))
                    text.store(target, value, out.element, mask)
                    continue
                with ExitStack() as stack:
                    if truth is not None:
                        stack.enter_context(text.when(truth))
                    if not self.nest.is_direct:
                        value = text.plus(value, text.load_one(target, out.element))
                    text.store_one(target, value, out.element)
