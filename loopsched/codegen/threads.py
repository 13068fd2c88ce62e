"""Threads that wait inside machine code: a call wakes them in a microsecond."""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Sequence
from functools import lru_cache
from threading import Lock, Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loopsched.base.machine_code import linked, object_code

_SLOTS = 64  # 64-bit numbers of a box: two counters, a function, its arguments; a lock, a signal
_ARGUMENTS, _LOCK, _SIGNAL = 12, 32, 48
_SPINS = 3000  # some ten microseconds
_PAUSES = {
    "x86_64": ("llvm.x86.sse2.pause", "", ""),
    "aarch64": ("llvm.aarch64.hint", "i32", "i32 1"),
}
_PAUSES |= {"AMD64": _PAUSES["x86_64"], "arm64": _PAUSES["aarch64"]}


@lru_cache(maxsize=1)
def _program() -> str:
    """Write what threads run: `serve` for ever, `share` around a call, `prepare` once."""
    slots = [f"getelementptr i64, ptr %box, i64 {3 + n}" for n in range(_ARGUMENTS)]
    read = "\n".join(
        f"  %p{n} = {slot}\n  %a{n} = load i64, ptr %p{n}" for n, slot in enumerate(slots)
    )
    given = ", ".join(f"i64 %a{n}" for n in range(_ARGUMENTS))
    pause, kind, value = _PAUSES[platform.machine()]
    return f"""
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_signal(ptr)
declare i32 @sched_yield()
declare void @{pause}({kind})

define void @prepare(ptr %box, i64 %unused) {{
  %lock = getelementptr i64, ptr %box, i64 {_LOCK}
  %signal = getelementptr i64, ptr %box, i64 {_SIGNAL}
  call i32 @pthread_mutex_init(ptr %lock, ptr null)
  call i32 @pthread_cond_init(ptr %signal, ptr null)
  ret void
}}

define internal void @run(ptr %box) {{
  %place = getelementptr i64, ptr %box, i64 2
  %function = load ptr, ptr %place
{read}
  call void %function({given})
  ret void
}}

define void @serve(ptr %box, i64 %unused) {{
entry:
  %done = getelementptr i64, ptr %box, i64 1
  %lock = getelementptr i64, ptr %box, i64 {_LOCK}
  %signal = getelementptr i64, ptr %box, i64 {_SIGNAL}
  br label %wait
wait:
  %seen = load atomic i64, ptr %done monotonic, align 8
  br label %spin
spin:
  %n = phi i64 [ 0, %wait ], [ %more, %again ]
  %asked = load atomic i64, ptr %box acquire, align 8
  %is_new = icmp ne i64 %asked, %seen
  br i1 %is_new, label %work, label %again
again:
  call void @{pause}({value})
  %more = add i64 %n, 1
  %is_early = icmp slt i64 %more, {_SPINS}
  br i1 %is_early, label %spin, label %sleep
sleep:
  call i32 @pthread_mutex_lock(ptr %lock)
  br label %look
look:
  %found = load atomic i64, ptr %box acquire, align 8
  %is_found = icmp ne i64 %found, %seen
  br i1 %is_found, label %wake, label %rest
rest:
  call i32 @pthread_cond_wait(ptr %signal, ptr %lock)
  br label %look
wake:
  call i32 @pthread_mutex_unlock(ptr %lock)
  br label %work
work:
  call void @run(ptr %box)
  %next = add i64 %seen, 1
  store atomic i64 %next, ptr %done release, align 8
  br label %wait
}}

define void @share(ptr %boxes, i64 %others) {{
entry:
  br label %post
post:
  %i = phi i64 [ 1, %entry ], [ %j, %send ]
  %is_box = icmp sle i64 %i, %others
  br i1 %is_box, label %send, label %own
send:
  %at = mul i64 %i, {_SLOTS}
  %box = getelementptr i64, ptr %boxes, i64 %at
  %lock = getelementptr i64, ptr %box, i64 {_LOCK}
  %signal = getelementptr i64, ptr %box, i64 {_SIGNAL}
  call i32 @pthread_mutex_lock(ptr %lock)
  %old = atomicrmw add ptr %box, i64 1 release
  call i32 @pthread_cond_signal(ptr %signal)
  call i32 @pthread_mutex_unlock(ptr %lock)
  %j = add i64 %i, 1
  br label %post
own:
  call void @run(ptr %boxes)
  br label %next
next:
  %k = phi i64 [ 1, %own ], [ %l, %done ]
  %is_left = icmp sle i64 %k, %others
  br i1 %is_left, label %await, label %end
await:
  %there = mul i64 %k, {_SLOTS}
  %one = getelementptr i64, ptr %boxes, i64 %there
  %asked = load atomic i64, ptr %one monotonic, align 8
  %place = getelementptr i64, ptr %one, i64 1
  br label %spin
spin:
  %n = phi i64 [ 0, %await ], [ %more, %again ], [ %more, %yield ]
  %reached = load atomic i64, ptr %place acquire, align 8
  %is_done = icmp eq i64 %reached, %asked
  br i1 %is_done, label %done, label %again
again:
  call void @{pause}({value})
  %more = add i64 %n, 1
  %is_late = icmp sgt i64 %more, {_SPINS}
  br i1 %is_late, label %yield, label %spin
yield:
  call i32 @sched_yield()
  br label %spin
done:
  %l = add i64 %k, 1
  br label %next
end:
  ret void
}}
"""


def n_cpus() -> int:
    """Count the CPUs that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Crew:
    """Threads that share calls of machine code; one call at a time."""

    def __init__(self, n_threads: int) -> None:
        kinds = (None, ctypes.c_void_p, ctypes.c_int64)
        names = ["prepare", "serve", "share"]
        prepare, serve, self._share = linked(object_code(_program()), names, kinds)
        self._boxes: NDArray[Any] = np.zeros((n_threads, _SLOTS), np.int64)
        self._place = self._boxes.ctypes.data
        self._busy = Lock()
        for number in range(1, n_threads):
            box = self._place + number * _SLOTS * 8
            prepare(box, 0)
            Thread(target=serve, args=(box, 0), name="loopsched", daemon=True).start()

    def run(self, function: int, calls: Sequence[Sequence[int]]) -> bool:
        """Call a function with several lists of arguments at once; False where others do."""
        if not self._busy.acquire(blocking=False):
            return False
        try:
            for box, call in zip(self._boxes, calls, strict=False):
                box[2] = function
                box[3 : 3 + len(call)] = call
            self._share(self._place, len(calls) - 1)
        finally:
            self._busy.release()
        return True


_CREWS: dict[int, Crew] = {}
_MAKING = Lock()


def crew(n_threads: int) -> Crew:
    """Give a crew of so many threads, the caller's included."""
    with _MAKING:
        if n_threads not in _CREWS:
            _CREWS[n_threads] = Crew(n_threads)
        return _CREWS[n_threads]


def _in_child() -> None:
    _CREWS.clear()  # threads are not copied
    _MAKING.release()


os.register_at_fork(
    before=_MAKING.acquire, after_in_parent=_MAKING.release, after_in_child=_in_child
)
