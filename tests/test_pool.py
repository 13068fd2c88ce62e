"""Work on several processes: what is refused, what dies, what is left running."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import pytest

from loopsched import (
    Workload,
    buffer_arch,
    gemm,
    network_curve,
    parse_schedule,
    search_workload,
    sensitivity,
    sweep,
    tile_map,
    workload_curves,
)
from loopsched.base.arguments import show
from loopsched.base.errors import InputError, LoopschedError
from loopsched.base.pool import DeadProcess, Processes, each_in_order

PROBLEM = gemm(m=4, n=3, k=2)
WORKLOAD = Workload("two", (PROBLEM, gemm(m=5, n=3, k=2)))
ARCH = buffer_arch(capacity_bytes=64)
SPEC = {"archs": ["titan_v"], "workloads": ["alexnet"]}
CALLS: dict[str, Callable[[Any], object]] = {
    "search_workload": lambda jobs: list(search_workload(WORKLOAD, ARCH, jobs=jobs)),
    "workload_curves": lambda jobs: list(workload_curves(WORKLOAD, jobs=jobs)),
    "network_curve": lambda jobs: network_curve(WORKLOAD, jobs=jobs),
    "sensitivity": lambda jobs: sensitivity(WORKLOAD, ARCH, ["buffer.capacity"], jobs=jobs),
    "tile_map": lambda jobs: tile_map(
        PROBLEM, ARCH, parse_schedule("M:4 N:3 K:2 M:2 N:2", PROBLEM), jobs=jobs
    ),
    "sweep": lambda jobs: sweep(SPEC, "nowhere/at/all", jobs=jobs),
    "each_in_order": lambda jobs: list(each_in_order(divmod, [(7, 2)], jobs)),
}


@pytest.mark.parametrize("jobs", [0, -3, 1.5, 2.5, "2", None, True, -(10**5000)], ids=show)
@pytest.mark.parametrize("call", CALLS)
def test_jobs_are_whole_numbers_above_zero(call: str, jobs: Any) -> None:
    with pytest.raises(InputError, match=r"jobs is .*; a whole number >= 1 is needed"):
        CALLS[call](jobs)


def killed(number: int) -> int:
    if number == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_a_process_that_dies_is_one_message() -> None:
    with pytest.raises(LoopschedError, match="a process died: killed, or out of memory"):
        list(each_in_order(killed, [(n,) for n in range(4)], 2))


def wait_for_all_but_one(number: int) -> int:
    if number:
        time.sleep(600)
    return number


def test_closing_does_not_wait_for_calls_that_have_begun() -> None:
    each = each_in_order(wait_for_all_but_one, [(n,) for n in range(4)], 2)
    assert next(each) == 0
    each.close()


def test_a_call_that_comes_late_starts_no_process_in_a_closed_pool() -> None:
    """A process that dies makes room for another just as the pool is closed: it would stay."""
    with Processes(1) as pool:
        assert pool.submit(divmod, 7, 2).result() == (3, 1)
    with pytest.raises(DeadProcess, match="closed"):
        pool._start()
    assert not active_children()


def test_an_interrupt_ends_a_process_that_does_not_listen_yet() -> None:
    with Processes(1) as pool:
        pool.interrupt()
        with pytest.raises(KeyboardInterrupt):
            pool.submit(divmod, 7, 2).result(timeout=60)
        assert pool.submit(divmod, 7, 2).result() == (3, 1)  # the next call gets another


def import_broken_off() -> None:
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        raise ImportError("check that you have the versions you expect") from None


def test_an_interrupt_is_one_whatever_a_call_makes_of_it() -> None:
    with Processes(1) as pool, pytest.raises(KeyboardInterrupt):
        pool.submit(import_broken_off).result()


def take_an_interrupt() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    signal.raise_signal(signal.SIGINT)


def test_processes_start_before_an_interrupt_that_another_thread_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[Any] = []
    start = Processes._start

    def interrupted(pool: Processes) -> Any:
        taker = threading.Thread(target=take_an_interrupt)
        taker.start()
        taker.join()
        started.append(start(pool))
        return started[-1]

    monkeypatch.setattr(Processes, "_start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Processes(2)
    assert [worker.process.is_alive() for worker in started] == [False, False]


def fail(number: int) -> int:
    return 1 // number


def test_what_a_call_raises_is_raised_in_its_turn_and_says_where() -> None:
    each = each_in_order(fail, [(1,), (0,), (1,)], 2)
    assert next(each) == 1
    with pytest.raises(ZeroDivisionError) as caught:
        next(each)
    assert "return 1 // number" in caught.value.__notes__[0]


PARENT = """
import os, sys, time
from test_pool import pid_and_wait
from loopsched.base.pool import Processes, each_in_order
if __name__ == "__main__":
    for _ in each_in_order(pid_and_wait, [(sys.argv[1],)] * 4, 2):
        pass
"""


def pid_and_wait(folder: str) -> None:
    Path(folder, str(os.getpid())).touch()
    time.sleep(60)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_process_outlives_its_parent(how: signal.Signals, tmp_path: Path) -> None:
    script, pids = tmp_path / "parent.py", tmp_path / "pids"
    script.write_text(PARENT)
    pids.mkdir()
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    parent = subprocess.Popen(
        [sys.executable, str(script), str(pids)],
        env=dict(os.environ) | {"PYTHONPATH": path},
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 60
    while len(os.listdir(pids)) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    parent.send_signal(how)
    parent.wait(timeout=30)  # the calls take a minute
    workers = [int(name) for name in os.listdir(pids)]
    deadline = time.monotonic() + 30
    while any(map(is_alive, workers)):
        assert time.monotonic() < deadline, "processes are left"
        time.sleep(0.05)


def test_too_few_file_handles_are_one_message() -> None:
    done = subprocess.run(
        [
            "bash", "-c",
            f'ulimit -n 12; "{sys.executable}" -m loopsched search alexnet --jobs 3',
        ],
        capture_output=True, text=True,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 1, 3)
    assert done.returncode == 0 or done.stderr.splitlines()[-1].startswith("Error: ")
