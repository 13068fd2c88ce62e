"""Threads that share calls: every job once, whoever comes late."""

from __future__ import annotations

import ctypes
import gc
import os
import random
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread, get_native_id

import pytest

from loopsched.codegen.threads import Crew, n_cpus

KIND = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
Work = Callable[[int, int, int], None]


def share(crew: Crew, n_threads: int, n_jobs: int, work: Work) -> list[int]:
    """Share jobs evenly; list those that were done, in order of their numbers."""
    found: list[int] = []

    def job(tag: int, first: int, last: int) -> None:
        found.extend(range(first, last))
        work(tag, first, last)

    kept = KIND(job)
    place = ctypes.cast(kept, ctypes.c_void_p).value or 0
    assert crew.run(place, (), range(n_threads), n_jobs)
    return sorted(found)


def test_each_job_is_done_once() -> None:
    draw = random.Random(3)
    crews = {n_threads: Crew(n_threads) for n_threads in (2, 3, 5)}

    def work(tag: int, first: int, last: int) -> None:
        if draw.random() < 0.02:
            time.sleep(0.0003)

    for _ in range(300):
        n_threads, n_jobs = draw.choice((2, 3, 5)), draw.randint(1, 200)
        assert share(crews[n_threads], n_threads, n_jobs, work) == list(range(n_jobs))


@pytest.mark.parametrize("n_given", [0, 9, 21])
def test_threads_are_given_the_same_and_a_room_each(n_given: int) -> None:
    given, seen = tuple(range(100, 100 + n_given)), set[tuple[int, ...]]()
    rooms, done = dict[int, set[int]](), list[int]()

    def job(*numbers: int) -> None:
        *same, room, first, last = numbers
        seen.add(tuple(same))
        rooms.setdefault(get_native_id(), set()).add(room)
        done.extend(range(first, last))
        time.sleep(0.0001)

    kept = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * (n_given + 3))(job)
    place = ctypes.cast(kept, ctypes.c_void_p).value or 0
    assert Crew(3).run(place, given, (7, 8, 9), 100)
    assert sorted(done) == list(range(100))
    assert seen == {given}
    assert {len(one) for one in rooms.values()} == {1}
    assert len(set().union(*rooms.values())) == len(rooms)


def test_more_than_threads_can_be_given_is_left_to_the_caller() -> None:
    kept = KIND(lambda *_: None)
    place = ctypes.cast(kept, ctypes.c_void_p).value or 0
    assert not Crew(2).run(place, range(22), (7, 8), 100)


def test_what_threads_wait_in_stays() -> None:
    crew = Crew(2)
    boxes = weakref.ref(crew._boxes)
    assert share(crew, 2, 9, lambda tag, first, last: None) == list(range(9))
    del crew
    gc.collect()
    assert boxes() is not None


def test_jobs_of_a_thread_that_never_comes_are_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Thread, "start", lambda one: None)
    tags = set()
    crew = Crew(3)
    for n_jobs in (2, 7, 100):
        found = share(crew, 3, n_jobs, lambda tag, first, last: tags.add(tag))
        assert found == list(range(n_jobs))
    assert tags == {0}


def test_what_is_left_of_a_slow_thread_is_taken_over() -> None:
    taken: dict[int, int] = {}

    def work(tag: int, first: int, last: int) -> None:
        taken[tag] = taken.get(tag, 0) + last - first
        time.sleep(0.002 if tag else 0.0001)

    assert share(Crew(2), 2, 128, work) == list(range(128))
    assert taken[0] > 64


@contextmanager
def kept_cpus() -> Iterator[None]:
    mask = os.sched_getaffinity(0)
    try:
        yield
    finally:
        os.sched_setaffinity(0, mask)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="threads cannot be kept off CPUs")
@pytest.mark.skipif(n_cpus() < 2, reason="two CPUs are needed")
def test_others_are_kept_off_the_cpu_of_the_caller() -> None:
    allowed = os.sched_getaffinity(0)
    crew = Crew(2)
    masks: dict[int, set[int]] = {}

    def work(tag: int, first: int, last: int) -> None:
        masks[tag] = os.sched_getaffinity(get_native_id())
        time.sleep(0.001)

    with kept_cpus():
        for cpu in sorted(allowed)[:2] * 2:
            os.sched_setaffinity(0, {cpu})  # moves the caller
            os.sched_setaffinity(0, allowed)
            masks.clear()
            for _ in range(50):
                share(crew, 2, 64, work)
                if len(masks) == 2:
                    break
            assert masks == {0: allowed, 1: masks[1]}
            assert masks[1] < allowed
            assert len(masks[1]) == len(allowed) - 1
        os.sched_setaffinity(0, {min(allowed)})
        share(crew, 2, 64, work)  # no CPU is left for the other: it keeps those it had
        assert masks[1]
