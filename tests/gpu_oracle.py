"""A literal walk of a mapped kernel: every block, warp, lane and iteration, in plain Python.

Nothing of `loopsched.gpu` but the description of the kernel is used.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from itertools import product

from loopsched.gpu.kernel import BoundLoop, Kernel
from loopsched.gpu.views import DigitLayout
from loopsched.problems.problem import Tensor
from loopsched.simulator.layout import placed

WARP, SECTOR, LINE, BANKS, BANK = 32, 32, 128, 32, 4

Index = dict[int, int]


class Count(Counter[str]):
    """Requests and what they are made of."""

    sector, line = SECTOR, LINE

    def request(self, places: list[int | None], elem: int, space: str) -> None:
        """Add one execution by a warp; a place is an address in bytes, None where off."""
        on = [place for place in places if place is not None]
        if not on:
            return
        self["requests"] += 1
        self["lanes"] += len(on)
        self["useful_bytes"] += elem * len(set(on))
        touched = {place + i for place in on for i in range(elem)}
        if space == "global":
            self["sectors"] += len({byte // self.sector for byte in touched})
            self["lines"] += len({byte // self.line for byte in touched})
        elif space == "shared":
            words = {byte // BANK for byte in touched}
            self["wavefronts"] += max(Counter(word % BANKS for word in words).values())
        elif space == "constant":
            self["wavefronts"] += len(set(on))


class Walk:
    """The walk of one kernel."""

    def __init__(
        self, kernel: Kernel, warp: int = WARP, sector: int = SECTOR, line: int = LINE
    ) -> None:
        self.kernel = kernel
        self.warp, self.sector, self.line = warp, sector, line
        self.block = self._sizes("thread")
        self.grid = self._sizes("block")
        self.counts: dict[tuple[str, str, str], Count] = {}
        self.fma = Count()
        self.edges = 0
        self._walk()

    def _sizes(self, kind: str) -> tuple[int, ...]:
        return tuple(
            math.prod(
                one.trips for one in self.kernel.loops if one.kind == kind and one.axis == axis
            )
            for axis in range(3)
        )

    def _index(self, kind: str, place: tuple[int, ...]) -> Index:
        """Split block or thread indices among the loops that share an axis."""
        index = {}
        for axis in range(3):
            left = place[axis]
            for loop in reversed(self.kernel.loops):
                if loop.kind == kind and loop.axis == axis:
                    index[loop.position] = left % loop.trips
                    left //= loop.trips
        return index

    def _times(self, loops: list[BoundLoop]) -> Iterator[Index]:
        for values in product(*(range(loop.trips) for loop in loops)):
            yield {loop.position: value for loop, value in zip(loops, values, strict=True)}

    def _position(self, dim: str, index: Index) -> int:
        return sum(
            index.get(loop.position, 0) * loop.step for loop in self.kernel.loops if loop.dim == dim
        )

    def _is_inside(self, dim: str, index: Index) -> bool:
        offset = 0
        for loop in reversed(self.kernel.loops):
            if loop.dim == dim:
                offset += index.get(loop.position, 0) * loop.step
                if offset >= loop.extent:
                    return False
        return True

    def _threads(self) -> list[list[tuple[int, int, int]]]:
        x, y, z = self.block
        threads = [(i, j, k) for k in range(z) for j in range(y) for i in range(x)]
        return [threads[begin : begin + self.warp] for begin in range(0, len(threads), self.warp)]

    def _stored(self, tensor: Tensor, index: Index) -> list[tuple[int, int]]:
        """Stored place on every axis, and how many there are."""
        size = self.kernel.problem.size
        layout = self.kernel.layout(tensor.name)
        if isinstance(layout, DigitLayout):
            dims = [axis.dims[0] for axis in tensor.axes]
            return [(self._position(dim, index), size[dim]) for dim in dims]
        spans = placed(self.kernel.problem, tensor, layout).spans
        found = []
        for axis, span in zip(tensor.axes, spans, strict=True):
            at = axis.offset + sum(c * self._position(dim, index) for dim, c in axis.terms)
            found.append(((at - span.first) // span.divisor, span.count))
        return found

    def _address(self, tensor: Tensor, stored: list[int]) -> int:
        layout = self.kernel.layout(tensor.name)
        if isinstance(layout, DigitLayout):
            return layout.address(tuple(stored)) * tensor.element_bytes + layout.offset_bytes
        strides = placed(self.kernel.problem, tensor, layout).strides
        elems = sum(at * stride for at, stride in zip(stored, strides, strict=True))
        return elems * tensor.element_bytes + layout.offset_bytes

    def _is_in_bounds(self, tensor: Tensor, index: Index) -> bool:
        return all(0 <= at < count for at, count in self._stored(tensor, index))

    def _is_off(self, index: Index, depth: int, dims: list[str]) -> bool:
        """Whether a thread is kept off by the tests around a place."""
        kernel = self.kernel
        if kernel.guard == "load":
            return False
        if not all(self._is_inside(dim, index) for dim in dims):
            return True
        if not self._is_in_bounds(kernel.problem.output_tensor, index):
            return True
        if kernel.padding == "zero":
            return False
        for tensor in kernel.inputs:
            if kernel.read(tensor.name).space in ("shared", "constant"):
                continue
            for axis, (at, count) in zip(tensor.axes, self._stored(tensor, index), strict=True):
                inner = [
                    one
                    for one in kernel.time_loops
                    if one.dim in axis.dims and one.position >= depth
                ]
                if not inner and not 0 <= at < count:
                    return True
        return False

    def _walk(self) -> None:
        kernel = self.kernel
        dims = list(kernel.problem.dims)
        blocks = product(*(range(many) for many in reversed(self.grid)))
        for z, y, x in blocks:
            here = self._index("block", (x, y, z))
            for tensor in kernel.inputs:
                if kernel.read(tensor.name).space == "shared":
                    self._fill(tensor, here)
                self._compute(tensor, here, dims)
            self._store(here, dims)
            for warp in self._threads():
                at_edge = []
                for thread in warp:
                    index = here | self._index("thread", thread)
                    is_inside = all(self._is_inside(dim, index) for dim in dims)
                    at_edge.append(
                        is_inside and self._is_in_bounds(kernel.problem.output_tensor, index)
                    )
                self.edges += any(at_edge) and not all(at_edge)
                for time in self._times(list(kernel.time_loops)):
                    on: list[int | None] = []
                    for thread in warp:
                        index = here | self._index("thread", thread) | time
                        is_off = self._is_off(index, len(kernel.loops), dims)
                        on.append(None if is_off else 0)
                    self.fma.request(on, 4, "none")

    def _count(self, tensor: Tensor, op: str, stage: str) -> Count:
        count = self.counts.setdefault((tensor.name, op, stage), Count())
        count.sector, count.line = self.sector, self.line
        return count

    def _held(self, tensor: Tensor, depth: int) -> list[list[Index]]:
        """Iterations inside a place, those together that touch the same for any thread."""
        loops = [
            one
            for one in self.kernel.time_loops
            if one.position >= depth and tensor.is_indexed_by(one.dim)
        ]
        together: dict[tuple[int, ...], list[Index]] = {}
        for time in self._times(loops):
            moved = tuple(
                sum(c * self._position(dim, time) for dim, c in axis.terms) for axis in tensor.axes
            )
            together.setdefault(moved, []).append(time)
        return list(together.values())

    def _compute(self, tensor: Tensor, here: Index, dims: list[str]) -> None:
        kernel = self.kernel
        read = kernel.read(tensor.name)
        loops = kernel.time_loops
        if read.held is None:
            moving = [one.position + 1 for one in loops if tensor.is_indexed_by(one.dim)]
            depth = max([*moving, read.position if read.space == "shared" else 0], default=0)
            inside: list[list[Index]] = [[{}]]
        else:
            depth = read.held
            inside = self._held(tensor, depth)
        count = self._count(tensor, "load", "compute")
        space = read.space if read.space in ("shared", "constant") else "global"
        outside = [one for one in loops if one.position < depth]
        last = max((one.position for one in loops if tensor.is_indexed_by(one.dim)), default=-1)
        for time in self._times(outside):
            if time.get(last, 0) % read.vector:
                continue
            for together in inside:
                for warp in self._threads():
                    places: list[int | None] = []
                    for thread in warp:
                        index = here | self._index("thread", thread) | time
                        places.append(self._loaded(tensor, index, together, depth, dims))
                    count.request(places, tensor.element_bytes * read.vector, space)

    def _loaded(
        self, tensor: Tensor, index: Index, together: list[Index], depth: int, dims: list[str]
    ) -> int | None:
        kernel = self.kernel
        read = kernel.read(tensor.name)
        on = [one for one in together if not self._is_off(index | one, depth, dims)]
        if not on:
            return None
        index = index | on[0]
        if read.space == "shared":
            near = {
                position: at
                for position, at in index.items()
                if kernel.loops[position].kind == "thread"
                or (kernel.loops[position].kind == "time" and position >= read.position)
            }
            begin = {position: at for position, at in index.items() if position not in near}
            whole, origin = self._stored(tensor, index), self._stored(tensor, begin)
            stored = [at - first for (at, _), (first, _) in zip(whole, origin, strict=True)]
            return self._tile_address(tensor, stored)
        if read.space != "constant" and not self._is_in_bounds(tensor, index):
            return None
        return self._address(tensor, [at for at, _ in self._stored(tensor, index)])

    def _tile_shape(self, tensor: Tensor) -> list[int]:
        """Places from the first to the last that a block's threads touch of a tile."""
        kernel = self.kernel
        at = kernel.read(tensor.name).position
        reach = []
        for dim in kernel.problem.dims:
            loops = [one for one in kernel.loops if one.dim == dim]
            most = 0
            near = [
                one
                for one in loops
                if one.kind == "thread" or (one.kind == "time" and one.position >= at)
            ]
            for time in self._times(near):
                if all(self._position(dim, time) < one.extent for one in near[:1]):
                    most = max(most, self._position(dim, time))
                else:
                    most = max(most, near[0].extent - 1)
            reach.append((dim, most))
        most_of = dict(reach)
        base: Index = {}
        begin = self._stored(tensor, base)
        shape = []
        for axis, (first, _) in zip(tensor.axes, begin, strict=True):
            moved = sum(c * most_of[dim] for dim, c in axis.terms)
            shape.append((moved, first))
        layout = kernel.layout(tensor.name)
        if isinstance(layout, DigitLayout):
            return [moved + 1 for moved, _ in shape]
        spans = placed(kernel.problem, tensor, layout).spans
        return [moved // span.divisor + 1 for (moved, _), span in zip(shape, spans, strict=True)]

    def _tile_address(self, tensor: Tensor, stored: list[int]) -> int:
        shape = self._tile_shape(tensor)
        pitch = self.kernel.read(tensor.name).pitch or 0
        total, room = 0, 1
        for number, at in enumerate(reversed(range(len(shape)))):
            total += stored[at] * room
            room *= max(shape[at], pitch) if number == 0 else shape[at]
        return total * tensor.element_bytes

    def _fill(self, tensor: Tensor, here: Index) -> None:
        kernel = self.kernel
        read = kernel.read(tensor.name)
        outside = [one for one in kernel.time_loops if one.position < read.position]
        shape = self._tile_shape(tensor)
        loads = self._count(tensor, "load", "fill")
        stores = self._count(tensor, "store", "fill")
        for time in self._times(outside):
            origin = [at for at, _ in self._stored(tensor, here | time)]
            counts = [count for _, count in self._stored(tensor, here | time)]
            rounds = self._linear(shape) if read.loaders == "linear" else self._rows(shape)
            for warps in rounds:
                for warp in warps:
                    load: list[int | None] = []
                    store: list[int | None] = []
                    for place in warp:
                        if place is None:
                            continue
                        stored = [a + b for a, b in zip(origin, place, strict=True)]
                        is_in = all(0 <= at < n for at, n in zip(stored, counts, strict=True))
                        load.append(self._address(tensor, stored) if is_in else None)
                        kept = is_in or read.zero_fill
                        store.append(self._tile_address(tensor, list(place)) if kept else None)
                    loads.request(load, tensor.element_bytes, "global")
                    stores.request(store, tensor.element_bytes, "shared")

    def _rows(self, shape: list[int]) -> Iterator[list[list[tuple[int, ...] | None]]]:
        """Rows by thread_y, columns by thread_x, what is further out one by one."""
        bx, by, _ = self.block
        *outer, height, width = [1, 1, *shape]
        for prefix in product(*(range(many) for many in outer)):
            for top in range(0, height, by):
                for left in range(0, width, bx):
                    warps = []
                    for warp in self._threads():
                        places: list[tuple[int, ...] | None] = []
                        for x, y, z in warp:
                            is_on = z == 0 and top + y < height and left + x < width
                            whole = (*prefix, top + y, left + x)
                            places.append(whole[len(whole) - len(shape) :] if is_on else None)
                        warps.append(places)
                    yield warps

    def _linear(self, shape: list[int]) -> Iterator[list[list[tuple[int, ...] | None]]]:
        every = list(product(*(range(many) for many in shape)))
        threads = math.prod(self.block)
        for begin in range(0, len(every), threads):
            mine: list[tuple[int, ...] | None] = [None] * threads
            some = every[begin : begin + threads]
            mine[: len(some)] = some
            yield [mine[at : at + self.warp] for at in range(0, threads, self.warp)]

    def _store(self, here: Index, dims: list[str]) -> None:
        kernel = self.kernel
        tensor = kernel.problem.output_tensor
        sums = [one.position for one in kernel.time_loops if not tensor.is_indexed_by(one.dim)]
        depth = min(sums, default=len(kernel.loops))
        count = self._count(tensor, "store", "epilogue")
        outside = [one for one in kernel.time_loops if one.position < depth]
        for time in self._times(outside):
            for together in self._held(tensor, depth):
                for warp in self._threads():
                    places: list[int | None] = []
                    for thread in warp:
                        index = here | self._index("thread", thread) | time | together[0]
                        is_on = self._is_in_bounds(tensor, index) and (
                            kernel.guard == "load"
                            or all(self._is_inside(dim, index) for dim in dims)
                        )
                        stored = [at for at, _ in self._stored(tensor, index)]
                        places.append(self._address(tensor, stored) if is_on else None)
                    count.request(places, tensor.element_bytes, "global")

    def footprint(self, tensor: Tensor, depth: int) -> int:
        """Count distinct sectors of each block at each iteration outside a place."""
        kernel = self.kernel
        total = 0
        outside = [one for one in kernel.time_loops if one.position < depth]
        inside = [one for one in kernel.time_loops if one.position >= depth]
        dims = list(tensor.dims)
        for z, y, x in product(*(range(many) for many in reversed(self.grid))):
            here = self._index("block", (x, y, z))
            for time in self._times(outside):
                touched = set()
                for thread in [one for warp in self._threads() for one in warp]:
                    base = here | self._index("thread", thread) | time
                    for inner in self._times(inside):
                        index = base | inner
                        is_on = kernel.guard == "load" or all(
                            self._is_inside(dim, index) for dim in dims
                        )
                        if is_on and self._is_in_bounds(tensor, index):
                            stored = [at for at, _ in self._stored(tensor, index)]
                            touched.add(self._address(tensor, stored) // self.sector)
                total += len(touched)
        return total
