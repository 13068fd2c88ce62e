"""The addresses that a kernel reads and writes, replayed through caches."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from loopsched.base.arrays import Ids, Ints
from loopsched.base.machine_code import called
from loopsched.codegen.contraction import Contraction, stored_shape
from loopsched.codegen.element import Element
from loopsched.codegen.engine import form
from loopsched.codegen.llvm_text import LlvmText
from loopsched.codegen.memory import LINE, PAGE, aligned
from loopsched.codegen.plan import Plan
from loopsched.codegen.writer import Number
from loopsched.problems.problem import Problem
from loopsched.simulator.cache import LineCache

BLOCK = 1 << 21
"""What the memory of a replayed kernel begins at a multiple of; no way of a cache is larger."""
_ROOM = 1 << 20
_NAME = "traced"
_SIZE_BITS = 8

Cut = tuple[Contraction, Plan]


class Cache(NamedTuple):
    """A cache of lines of 64 bytes."""

    capacity_bytes: int
    ways: int


class Misses(NamedTuple):
    """What a kernel touches: accesses, and lines that each cache does not hold."""

    accesses: int
    lines: tuple[int, ...]


class TraceText(LlvmText):
    """A program that notes address and size of what it reads and writes, before it does.

    Lanes of masked, and of gathered, vectors are noted one by one.  What is
    asked for in advance, and tables, are not noted.

    Parameters
    ----------
    element : Element
    lanes : int
    notes : numpy.ndarray of int64
        How many notes there are, then room for them.
    full : int
        Address of a function that is called when there is no room left.
    """

    def __init__(self, element: Element, lanes: int, notes: Ints, full: int) -> None:
        super().__init__(element, lanes)
        count, room = (f"inttoptr (i64 {notes.ctypes.data + at} to ptr)" for at in (0, 8))
        self._declared["touch"] = (
            _TOUCH.replace("COUNT", count)
            .replace("ROOM", room)
            .replace("FULL", f"inttoptr (i64 {full} to ptr)")
            .replace("MOST", str(len(notes) - 1))
        )

    def _touch(self, pointer: str, n_bytes: int, step: int = 0, picks: Number = 1) -> None:
        self._lines.append(
            f"  call void @touch(ptr {pointer}, i64 {n_bytes}, i64 {step}, i64 {picks})"
        )

    def _touch_lanes(self, pointer: str, element: Element, mask: str | None, step: int = 1) -> None:
        if mask is None and step == 1:
            self._touch(pointer, self.lanes * element.n_bytes)
            return
        picks: Number = (1 << self.lanes) - 1
        if mask is not None:
            bits = self._new(f"bitcast <{self.lanes} x i1> {mask} to i{self.lanes}", "")
            picks = self._new(f"zext i{self.lanes} {bits} to i64", "i64")
        self._touch(pointer, element.n_bytes, step * element.n_bytes, picks)

    def load(self, pointer: str, element: Element, mask: str | None = None, step: int = 1) -> str:
        self._touch_lanes(pointer, element, mask, step)
        return super().load(pointer, element, mask, step)

    def store(self, pointer: str, value: str, element: Element, mask: str | None = None) -> None:
        self._touch_lanes(pointer, element, mask)
        super().store(pointer, value, element, mask)

    def load_one(self, pointer: str, element: Element, truth: str | None = None) -> str:
        if truth is None:  # else it is called again where that holds
            self._touch(pointer, element.n_bytes)
        return super().load_one(pointer, element, truth)

    def store_one(self, pointer: str, value: str, element: Element) -> None:
        self._touch(pointer, element.n_bytes)
        super().store_one(pointer, value, element)

    def fetch(self, pointer: str, *, writes: bool = False) -> None:
        pass


_TOUCH = """
define internal void @touch(ptr %place, i64 %size, i64 %step, i64 %picks) noinline nounwind {
entry:
  %start = ptrtoint ptr %place to i64
  br label %next
next:
  %at = phi i64 [ %start, %entry ], [ %further, %done ]
  %left = phi i64 [ %picks, %entry ], [ %rest, %done ]
  %low = trunc i64 %left to i1
  br i1 %low, label %note, label %done
note:
  %count = load i64, ptr COUNT
  %slot = getelementptr i64, ptr ROOM, i64 %count
  %high = shl i64 %at, 8
  %both = or i64 %high, %size
  store i64 %both, ptr %slot
  %more = add i64 %count, 1
  store i64 %more, ptr COUNT
  %full = icmp eq i64 %more, MOST
  br i1 %full, label %flush, label %done
flush:
  call void FULL()
  br label %done
done:
  %further = add i64 %at, %step
  %rest = lshr i64 %left, 1
  %again = icmp ne i64 %rest, 0
  br i1 %again, label %next, label %end
end:
  ret void
}
"""


def places(problem: Problem, cuts: Sequence[Cut], kind: tuple[Element, int]) -> dict[str, int]:
    """Say where in a block of memory tensors begin, then room to pack (''), and where it ends.

    Each begins a page, in the order of the problem, the output last.
    """
    elements = {one.name: one.element for task, _ in cuts for one in task.operands}
    order = [t for t in problem.tensors if t.name != problem.output] + [problem.output_tensor]
    sizes = {
        one.name: math.prod(stored_shape(problem, one)) * elements[one.name].n_bytes
        for one in order
    }
    sizes[""] = max(
        form(plan)(LlvmText(*kind), task, plan, _NAME).work_room * kind[0].n_bytes
        for task, plan in cuts
    )
    found, at = {}, 0
    for name, size in sizes.items():
        found[name] = at
        at += -(-size // PAGE) * PAGE
    return {**found, "end": at}


class _Recorder:
    """Runs traced kernels on a block of memory, and hands on the lines that they touch."""

    def __init__(self, n_bytes: int) -> None:
        self.n_lines = -(-n_bytes // LINE)
        self.memory = aligned((n_bytes,), np.uint8, BLOCK, np.zeros)
        self._notes = np.zeros(_ROOM + 1, np.int64)
        self.accesses = 0

    def run(
        self,
        cut: Cut,
        kind: tuple[Element, int],
        at: dict[str, int],
        take: Callable[[Ids], None],
    ) -> None:
        """Run all jobs of a contraction."""
        task, plan = cut

        def drain() -> None:
            n = int(self._notes[0])
            self.accesses += n
            take(self._lines(self._notes[1 : n + 1]))
            self._notes[0] = 0

        full = ctypes.CFUNCTYPE(None)(drain)
        text = TraceText(*kind, self._notes, ctypes.cast(full, ctypes.c_void_p).value or 0)
        program = form(plan)(text, task, plan, _NAME)
        program.write()
        types = [ctypes.c_void_p] * 4 + [ctypes.c_int64] * 2
        function = called(text.text(), _NAME, None, *types)
        names = (task.left.name, task.right.name, task.out.name, "")
        addresses = [self.memory.ctypes.data + at[name] for name in names]
        function(*addresses, 0, program.n_jobs)
        drain()

    def _lines(self, notes: Ints) -> Ids:
        """List lines of the block that are touched, in turn."""
        first = (notes >> _SIZE_BITS) - self.memory.ctypes.data
        last = (first + (notes & ((1 << _SIZE_BITS) - 1)) - 1) // LINE
        first //= LINE
        inside = (first >= 0) & (last < self.n_lines)  # sums are kept on the stack at times
        first, last = first[inside], last[inside]
        many = 1 + last - first  # no access has more than two
        found = np.repeat(first, many)
        found[np.cumsum(many) - 1] = last
        return found.astype(np.int32)


def replay(
    problem: Problem, cuts: Sequence[Cut], kind: tuple[Element, int], caches: Sequence[Cache]
) -> Misses:
    """Run a kernel on one thread, and count lines that LRU caches below each other do not hold.

    Arrays lie as `places` says, and were written once before, in that order.

    Parameters
    ----------
    problem : Problem
    cuts : sequence of (Contraction, Plan)
        Run in turn.
    kind : (Element, int)
        What is computed with, and the lanes of a vector.
    caches : sequence of Cache
        The nearest first; each sees what the one before it does not hold.
    """
    at = places(problem, cuts, kind)
    recorder = _Recorder(at["end"])
    held = [
        LineCache(recorder.n_lines, one.capacity_bytes // LINE // one.ways, one.ways)
        for one in caches
    ]
    counts = [0] * len(caches)

    def take(lines: Ids) -> None:
        for number, cache in enumerate(held):
            lines = cache.missed(lines)
            counts[number] += len(lines)

    take(np.arange(at[""] // LINE, dtype=np.int32))
    counts[:] = [0] * len(caches)
    for cut in cuts:
        recorder.run(cut, kind, at, take)
    return Misses(recorder.accesses, tuple(counts))
