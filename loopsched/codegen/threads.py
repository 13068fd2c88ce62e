"""Threads that wait inside machine code: a call wakes them in a microsecond."""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from struct import pack_into
from threading import Lock, Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loopsched.base.machine_code import linked, object_code

_SLOTS = 64  # 64-bit numbers of a box: a thread's, each in lines of its own
_ASKED, _DONE, _TAKEN = 0, 1, 2
_ARGUMENTS, _MOST_ARGUMENTS = 8, 24
_LOCK, _SIGNAL, _NEXT, _END = 32, 48, 56, 57
"""Which jobs of its own a thread takes next, and where they end, are in a line of their own."""
_FUNCTION, _ROOM, _JOBS = 0, 1, 2
"""Of one more box, the call's, with what all threads are given: the function, where the room of a
thread is among the arguments, followed by its first and its last job, and how many jobs there
are. Behind it are the rooms of all threads."""
_GRAINS = 16  # of a thread's own jobs
_SPINS = 3000  # some ten microseconds
_PAUSES = {
    "x86_64": ("llvm.x86.sse2.pause", "", ""),
    "aarch64": ("llvm.aarch64.hint", "i32", "i32 1"),
}
_PAUSES |= {"AMD64": _PAUSES["x86_64"], "arm64": _PAUSES["aarch64"]}


def _slots(box: str, number: str = "", **names: int) -> str:
    """Write the addresses of numbers of a box; with ``number`` where the box is, first."""
    first = [
        f"  %{box}_at = mul i64 %{number}, {_SLOTS}",
        f"  %{box} = getelementptr i64, ptr %boxes, i64 %{box}_at",
    ]
    return "\n".join(
        (first if number else [])
        + [f"  %{name} = getelementptr i64, ptr %{box}, i64 {at}" for name, at in names.items()]
    )


@lru_cache(maxsize=1)
def _program() -> str:
    """Write what threads run: `serve` for ever, `share` around a call, `prepare` once."""
    slots = [f"getelementptr i64, ptr %box, i64 {_ARGUMENTS + n}" for n in range(_MOST_ARGUMENTS)]
    read = "\n".join(
        f"  %p{n} = {slot}\n  %a{n} = load i64, ptr %p{n}" for n, slot in enumerate(slots)
    )
    given = ", ".join(f"i64 %a{n}" for n in range(_MOST_ARGUMENTS))
    pause, kind, value = _PAUSES.get(platform.machine(), ("llvm.donothing", "", ""))
    again = f"""again:
  call void @{pause}({value})
  %more = add i64 %s, 1
  %is_late = icmp sge i64 %more, {_SPINS}
  br i1 %is_late, label %{{}}, label %spin"""
    return f"""
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_signal(ptr)
declare i32 @sched_yield()
declare i64 @llvm.smax.i64(i64, i64)
declare void @llvm.memcpy.inline.p0.p0.i64(ptr, ptr, i64 immarg, i1 immarg)
declare void @{pause}({kind})

define void @prepare(ptr %box, i64 %unused) {{
{_slots("box", lock=_LOCK, signal=_SIGNAL)}
  call i32 @pthread_mutex_init(ptr %lock, ptr null)
  call i32 @pthread_cond_init(ptr %signal, ptr null)
  ret void
}}

; Takes jobs of its own, then those that other threads have not come to.
define internal void @run(ptr %boxes, i64 %n, i64 %self) {{
entry:
{_slots("box", "self", arguments=_ARGUMENTS)}
{_slots("call", "n", function_at=_FUNCTION, place_at=_ROOM, jobs_at=_JOBS, rooms=_SLOTS)}
  %given = getelementptr i64, ptr %call, i64 {_ARGUMENTS}
  call void @llvm.memcpy.inline.p0.p0.i64(
    ptr %arguments, ptr %given, i64 {8 * _MOST_ARGUMENTS}, i1 false)
  %function = load ptr, ptr %function_at
  %place = load i64, ptr %place_at
  %room_at = getelementptr i64, ptr %rooms, i64 %self
  %room = load i64, ptr %room_at
  %own_room = getelementptr i64, ptr %arguments, i64 %place
  store i64 %room, ptr %own_room
  %first = getelementptr i64, ptr %own_room, i64 1
  %last = getelementptr i64, ptr %own_room, i64 2
  %jobs = load i64, ptr %jobs_at
  %parts = mul i64 %n, {_GRAINS}
  %some = sdiv i64 %jobs, %parts
  %grain = call i64 @llvm.smax.i64(i64 %some, i64 1)
  br label %turn
turn:
  %v = phi i64 [ 0, %entry ], [ %w, %over ]
  %is_turn = icmp slt i64 %v, %n
  br i1 %is_turn, label %visit, label %end
visit:
  %sum = add i64 %self, %v
  %is_round = icmp sge i64 %sum, %n
  %wrapped = sub i64 %sum, %n
  %whose = select i1 %is_round, i64 %wrapped, i64 %sum
{_slots("other", "whose", next_at=_NEXT, end_at=_END)}
  %stop = load i64, ptr %end_at
  br label %take
take:
  %i = atomicrmw add ptr %next_at, i64 %grain monotonic
  %is_left = icmp slt i64 %i, %stop
  br i1 %is_left, label %work, label %over
work:
  %j = add i64 %i, %grain
  %is_whole = icmp slt i64 %j, %stop
  %to = select i1 %is_whole, i64 %j, i64 %stop
  store i64 %i, ptr %first
  store i64 %to, ptr %last
{read}
  call void %function({given})
  br label %take
over:
  %w = add i64 %v, 1
  br label %turn
end:
  ret void
}}

define void @serve(ptr %boxes, i64 %packed) {{
entry:
  %n = lshr i64 %packed, 32
  %self = and i64 %packed, 4294967295
{_slots("box", "self", done=_DONE, taken=_TAKEN, lock=_LOCK, signal=_SIGNAL)}
  br label %wait
wait:
  %seen = phi i64 [ 0, %entry ], [ %new, %work ], [ %new, %begin ]
  br label %spin
spin:
  %s = phi i64 [ 0, %wait ], [ %more, %again ]
  %asked = load atomic i64, ptr %box acquire, align 8
  %is_new = icmp ne i64 %asked, %seen
  br i1 %is_new, label %begin, label %again
{again.format("sleep")}
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
  br label %begin
begin:
  %new = phi i64 [ %asked, %spin ], [ %found, %wake ]
  %before = sub i64 %new, 1
  %pair = cmpxchg ptr %taken, i64 %before, i64 %new acq_rel monotonic
  %is_ours = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %is_ours, label %work, label %wait
work:
  call void @run(ptr %boxes, i64 %n, i64 %self)
  store atomic i64 %new, ptr %done release, align 8
  br label %wait
}}

define void @share(ptr %boxes, i64 %n) {{
entry:
{_slots("call", "n", jobs_at=_JOBS)}
  %jobs = load i64, ptr %jobs_at
  br label %cut
cut:
  %c = phi i64 [ 0, %entry ], [ %d, %cut ]
  %begun = phi i64 [ 0, %entry ], [ %stop, %cut ]
{_slots("whose", "c", next_at=_NEXT, end_at=_END)}
  %d = add i64 %c, 1
  %until = mul i64 %jobs, %d
  %stop = sdiv i64 %until, %n
  store atomic i64 %begun, ptr %next_at monotonic, align 8
  store i64 %stop, ptr %end_at
  %is_more = icmp slt i64 %d, %n
  br i1 %is_more, label %cut, label %post
post:
  %i = phi i64 [ 1, %cut ], [ %j, %send ]
  %is_box = icmp slt i64 %i, %n
  br i1 %is_box, label %send, label %own
send:
{_slots("box", "i", lock=_LOCK, signal=_SIGNAL)}
  call i32 @pthread_mutex_lock(ptr %lock)
  %old = atomicrmw add ptr %box, i64 1 release
  call i32 @pthread_cond_signal(ptr %signal)
  call i32 @pthread_mutex_unlock(ptr %lock)
  %j = add i64 %i, 1
  br label %post
own:
  call void @run(ptr %boxes, i64 %n, i64 0)
  br label %next
next:
  %k = phi i64 [ 1, %own ], [ %l, %over ]
  %is_left = icmp slt i64 %k, %n
  br i1 %is_left, label %recall, label %end
recall:  ; a thread that has not begun finds nothing to do
{_slots("one", "k", done=_DONE, taken=_TAKEN)}
  %asked = load atomic i64, ptr %one monotonic, align 8
  %before = sub i64 %asked, 1
  %pair = cmpxchg ptr %taken, i64 %before, i64 %asked acq_rel monotonic
  %is_recalled = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %is_recalled, label %over, label %spin
spin:
  %s = phi i64 [ 0, %recall ], [ %more, %again ], [ %more, %yield ]
  %reached = load atomic i64, ptr %done acquire, align 8
  %is_done = icmp eq i64 %reached, %asked
  br i1 %is_done, label %over, label %again
{again.format("yield")}
yield:
  call i32 @sched_yield()
  br label %spin
over:
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
        prepare, serve, self._share = linked([object_code(_program())], names, kinds)
        self._others: list[Thread] = []
        self._cpu = -1
        n_boxes = n_threads + 1 + -(-n_threads // _SLOTS)
        self._boxes: NDArray[Any] = np.zeros((n_boxes, _SLOTS), np.int64)
        self._place = self._boxes.ctypes.data
        self._call = self._boxes[n_threads:].ravel().data
        self._busy = Lock()
        for number in range(1, n_threads):
            prepare(self._place + number * _SLOTS * 8, 0)
            who = serve, n_threads << 32 | number
            one = Thread(target=self._serve, args=who, name="loopsched", daemon=True)
            one.start()
            self._others.append(one)

    def _serve(self, serve: Callable[[int, int], None], who: int) -> None:
        """Serve for ever; what threads wait in lives as long as one of them."""
        serve(self._place, who)

    def run(self, function: int, given: Sequence[int], rooms: Sequence[int], n_jobs: int) -> bool:
        """Call a function in all threads at once; False where another call is under way.

        It takes what is given, a thread's room, and the first and the last of some jobs, of which
        each thread has its own. One that has done these takes others', some at a time, so that
        one that is late costs little.  False, too, for more arguments than there is room for.
        """
        n = len(given)
        if n + 3 > _MOST_ARGUMENTS or not self._busy.acquire(blocking=False):
            return False
        try:
            gaps = 8 * (_ARGUMENTS - 3), 8 * (_SLOTS - _ARGUMENTS - n)
            kind = f"3q{gaps[0]}x{n}q{gaps[1]}x{len(rooms)}q"
            pack_into(kind, self._call, 0, function, n, n_jobs, *given, *rooms)
            self._leave_alone(_cpu_here())
            self._share(self._place, len(rooms))
        finally:
            self._busy.release()
        return True

    def _leave_alone(self, cpu: int) -> None:
        """Let other threads run on all CPUs that the caller may use, save its own.

        A thread that wakes while every CPU is busy (one that another library's thread
        waits on will do) is at first put on the CPU of the caller, and takes half of it.
        """
        if cpu == self._cpu:
            return
        self._cpu = cpu
        with suppress(OSError):
            allowed = os.sched_getaffinity(0) - {cpu}
            for one in self._others if allowed else ():
                if one.native_id:
                    os.sched_setaffinity(one.native_id, allowed)


@cache
def _asks_cpu() -> Any:
    """Find the function that says on which CPU its caller runs; None where there is none."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    return getattr(ctypes.CDLL(None), "sched_getcpu", None)


def _cpu_here() -> int:
    """Say on which CPU this thread runs; -1 if that is not known."""
    asks = _asks_cpu()
    return asks() if asks else -1


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
