"""Sweeps at scale: killed, resumed, on a cluster; and what they cost beside a plain pool.

Run it with ``python -m benchmarks.bench_sweep``; with everything as it is, 50 machines and
the 94 layers of deepbench_conv, it takes some ten minutes of two quiet cores.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import psutil

from loopsched import Goal, __version__, load_run, sweep
from loopsched.sweeps.plan import Task, plan_of
from loopsched.sweeps.spec import read_spec
from loopsched.sweeps.tasks import Batch, run_batch, versions, warm_up

WORKERS = 2


def spec_of(machines: int) -> dict[str, Any]:
    """So many Titan V with other bandwidths and sizes of L2."""
    vary = {
        "DRAM.bandwidth": {"from": "600 GB/s", "to": "1.2 TB/s", "steps": machines // 5},
        "L2.capacity": ["4 MiB", "5 MiB", "6 MiB", "7 MiB", "8 MiB"],
    }
    return {"archs": [{"arch": "titan_v", "vary": vary}], "workloads": ["deepbench_conv"]}


def digest(folder: Path) -> str:
    """Hash the bytes of the results."""
    return hashlib.sha256((folder / "results.jsonl").read_bytes()).hexdigest()[:16]


def repeated(folder: Path) -> int:
    """Count the searches that the shards have more than once."""
    tasks: list[int] = []
    for path in (folder / "shards").glob("*.jsonl"):
        for line in path.read_bytes().splitlines(keepends=True):
            if line.endswith(b"}\n"):
                tasks.append(json.loads(line)["task"])
    return len(tasks) - len(set(tasks))


def _one(task: Task) -> str:
    [answer] = run_batch(Batch((task,), Goal(), versions()))
    return answer.rows


def plain_pool(spec: dict[str, Any]) -> float:
    """Time the same searches on a bare pool of processes; nothing is written."""
    plan = plan_of(read_spec(spec), __version__)
    start = time.perf_counter()
    tasks = [plan.task(number) for number in range(plan.n_tasks)]
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn"), initializer=warm_up) as pool:
        found = sum(len(rows) > 0 for rows in pool.map(_one, tasks))
    if found != plan.n_tasks:
        raise SystemExit("a search failed")
    return time.perf_counter() - start


def timed(spec: dict[str, Any], folder: Path, **options: Any) -> float:
    """Time a sweep, from the file to the results."""
    start = time.perf_counter()
    sweep(spec, folder, **options)
    return time.perf_counter() - start


def killed(path: Path, folder: Path, kills: int, seed: int, whole_s: float) -> list[int]:
    """Kill a sweep at random moments and go on; searches done at each of them."""
    dice = random.Random(seed)
    words = [sys.executable, "-m", "loopsched", "sweep", str(path), "-o", str(folder), "-j"]
    done = []
    for _ in range(kills):
        process = subprocess.Popen(
            [*words, str(WORKERS)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        # The first two seconds or so go by before the first search.
        time.sleep(dice.uniform(0.2, 2 + 1.4 * whole_s / kills))
        process.send_signal(signal.SIGKILL)
        if process.wait() != -signal.SIGKILL:
            raise SystemExit("it was done before it was killed: take fewer kills")
        done.append(load_run(folder).n_done if (folder / "manifest.json").exists() else 0)
    subprocess.run([*words, str(WORKERS)], check=True, stdout=subprocess.DEVNULL)
    return done


def with_cluster(work: Callable[[Any], None]) -> None:
    """Do something with a cluster of local workers."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=WORKERS, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        client.run(warm_up)
        work(client)


def dask_killed(spec: dict[str, Any], folder: Path, seed: int) -> int:
    """Kill one of two workers of a cluster at a random moment; searches done by then."""
    dice = random.Random(seed)
    at: list[int] = []

    def work(client: Any) -> None:
        victims = sorted(client.run(os.getpid).values())
        moment = dice.uniform(0.1, 0.8)

        def told(done: int, total: int) -> None:
            if not at and done > moment * total:
                os.kill(dice.choice(victims), signal.SIGKILL)
                at.append(done)

        sweep(spec, folder, client=client, progress=told)

    with_cluster(work)
    return at[0]


def cpu_s() -> float:
    """Processor time of this process and of all that it has ever started."""
    total = sum(os.times()[:4])
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            total += sum(child.cpu_times()[:4])
    return total


def throughput(machines: int, rounds: int, room: Path) -> None:
    """Compare with a plain pool, in turns, so that other load meets all of them.

    Where others have a share of the cores, the processor time says more than the clock.
    """
    spec = spec_of(machines)
    n_tasks = plan_of(read_spec(spec), __version__).n_tasks
    times: dict[str, list[tuple[float, float]]] = {"pool": [], "sweep": [], "dask": []}

    def work(client: Any) -> None:
        ways: dict[str, Callable[[int], float]] = {
            "pool": lambda _: plain_pool(spec),
            "sweep": lambda turn: timed(spec, room / f"t{turn}", jobs=WORKERS),
            "dask": lambda turn: timed(spec, room / f"d{turn}", client=client),
        }
        for turn in range(rounds):
            for name, way in ways.items():
                before = cpu_s()
                times[name].append((way(turn), cpu_s() - before))

    with_cluster(work)
    for name, found in times.items():
        pairs = list(zip(times["pool"], found, strict=True))
        wall, cpu = (statistics.median(p[i] / t[i] for p, t in pairs) for i in (0, 1))
        print(f"{name:6s} {', '.join(f'{n_tasks / one:.1f}' for one, _ in found)} searches/s,")
        print(f"       {', '.join(f'{1e3 * cpu / n_tasks:.1f}' for _, cpu in found)} ms each;")
        print(f"       of the pool's: {wall:.1%} by the clock, {cpu:.1%} by processor time")


def tell_load() -> None:
    """Print how busy the computer is, with us and others."""
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)


def verdict(folder: Path, wanted: str) -> str:
    """Say whether results are those of the sweep that nothing disturbed."""
    same = "the same bytes" if digest(folder) == wanted else "OTHER BYTES"
    return f"{same}, {repeated(folder)} searches repeated"


def disturbed(given: argparse.Namespace, room: Path) -> None:
    """Kill sweeps and workers, and compare with a sweep in peace."""
    spec = spec_of(given.machines)
    path = room / "spec.json"
    path.write_text(json.dumps(spec), encoding="utf-8")
    whole_s = timed(path, room / "whole", jobs=WORKERS)
    n_done, wanted = load_run(room / "whole").n_done, digest(room / "whole")
    print(f"{given.machines} machines: {n_done} searches in {whole_s:.1f} s, results {wanted}")
    done = killed(path, room / "killed", given.kills, given.seed, whole_s)
    print(f"killed {given.kills} times, at {' '.join(map(str, done))} searches done:")
    print(f"  {verdict(room / 'killed', wanted)}", flush=True)
    at = dask_killed(spec, room / "dask", given.seed)
    print(f"cluster of {WORKERS}, a worker killed at {at} searches done:")
    print(f"  {verdict(room / 'dask', wanted)}", flush=True)


def main() -> None:
    """Do everything once and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machines", type=int, default=50, help="a multiple of 5, at least 10")
    parser.add_argument("--rounds", type=int, default=3, help="turns of throughput; 0: none")
    parser.add_argument("--part", type=int, default=10, help="machines in each turn")
    parser.add_argument("--kills", type=int, default=10, help="0: only the throughput")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    warm_up()
    with tempfile.TemporaryDirectory() as name:
        tell_load()
        if given.rounds:
            throughput(given.part, given.rounds, Path(name))
            tell_load()
        if given.kills:
            disturbed(given, Path(name))
            tell_load()


if __name__ == "__main__":
    main()
