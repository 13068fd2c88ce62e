"""Measuring kernels: that they do what is counted; times are not asserted."""

from __future__ import annotations

import ctypes
import json
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import host_trees as trees
import pytest

from loopsched.base.errors import ArchError
from loopsched.cli import run
from loopsched.codegen import rates
from loopsched.machines import host as hosts
from loopsched.machines import timing
from loopsched.machines.arch_file import arch_from_dict, load_arch
from loopsched.machines.host_linux import read_linux


@pytest.mark.parametrize("chains", [1, 5])
def test_each_chain_adds_eight_products_an_iteration(chains: int) -> None:
    lanes = 4
    values = (ctypes.c_float * (lanes * chains))(*[0.5, 1, 2, 3])
    rates.multiply_adds(lanes, chains)(3, ctypes.addressof(values))
    begin = [0.5, 1.0, 2.0, 3.0]
    assert list(values) == [x + 24 * x * x for x in begin] * chains


@pytest.mark.parametrize("method", ["start", "join"])
def test_threads_end_when_measuring_is_interrupted(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that wait for others do not wait for ever, and what they read stays until then."""
    before, calls = set(threading.enumerate()), []
    whole = getattr(threading.Thread, method)

    def interrupted(thread: threading.Thread) -> None:
        calls.append(thread)
        if len(calls) == 2:
            raise KeyboardInterrupt
        whole(thread)

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, method, interrupted)
        with pytest.raises(KeyboardInterrupt):
            timing.read_rate(3, 2**16, 16)
    for thread in set(threading.enumerate()) - before:
        thread.join(20)
        assert not thread.is_alive()


def test_the_chase_goes_through_all_lines() -> None:
    memory = timing.Memory(64 * 64)
    assert rates.linked_lines(memory, 64) == 64
    follow = rates.chase()
    seen = [memory.address]
    for _ in range(7):
        seen.append(follow(seen[-1], 1))
    assert seen[0] not in seen[1:]
    assert len(set(seen)) == 8
    assert follow(memory.address, 8) == memory.address  # 64 loads
    one = ctypes.c_uint64.from_address(memory.address).value
    places = set()
    while one not in places:
        places.add(one)
        one = ctypes.c_uint64.from_address(one).value
    assert places == {memory.address + 64 * at for at in range(64)}
    memory.close()


@pytest.mark.parametrize("vector_bytes", [16, 32])
def test_the_reader_reads_every_byte(vector_bytes: int) -> None:
    """What it read is ORed together, so each byte that it skips is missing in the sink."""
    n_bytes = 16 * vector_bytes
    memory = timing.Memory(n_bytes)
    ctypes.memset(memory.address, 0, n_bytes)
    read, sink = timing.reader(vector_bytes), ctypes.create_string_buffer(vector_bytes)
    for place in (0, vector_bytes + 3, n_bytes - 1):
        ctypes.memset(memory.address + place, 1, 1)
        read(memory.address, n_bytes, 2, ctypes.addressof(sink))
        assert sink.raw[place % vector_bytes] == 1
        ctypes.memset(memory.address + place, 0, 1)
    read(memory.address, n_bytes, 1, ctypes.addressof(sink))
    assert not any(sink.raw)
    ctypes.memset(memory.address + n_bytes - 1, 1, 1)
    read(memory.address, n_bytes // 2, 1, ctypes.addressof(sink))
    assert not any(sink.raw)
    memory.close()


def test_rates_are_bytes_over_the_time_of_each_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads that take 10 ms each for all they read, whatever the clock on the wall says."""
    asked: list[tuple[int, int]] = []

    def read(address: int, n_bytes: int, times: int, sink: int) -> None:
        asked.append((n_bytes, times))

    monkeypatch.setattr(timing, "reader", lambda _: read)
    monkeypatch.setattr(timing, "together", lambda work: [one() or 0.01 for one in work])
    assert timing.read_rate(2, 10_000, 64, seconds=0.01) == 2 * 9728 / 0.01
    assert set(asked) == {(9728, 1)}
    # Too short a time is measured again, with more rounds.
    asked.clear()
    monkeypatch.setattr(
        timing, "together", lambda work: [one() or 1e-5 * asked[-1][1] for one in work]
    )
    assert timing.read_rate(1, 512, 64, seconds=0.01) == pytest.approx(512 / 1e-5)
    assert asked[-1][1] >= 500


def test_the_clock_is_cycles_over_time(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter(one * 1e-3 for one in range(100))
    monkeypatch.setattr(timing, "time", SimpleNamespace(thread_time=lambda: next(times)))
    monkeypatch.setattr(timing, "_chain", lambda: lambda n, y, z: 0)
    timing.measured_clock_hz.cache_clear()
    assert timing.measured_clock_hz() == 2.6e9  # 40,000 rounds of 64 in a millisecond
    timing.measured_clock_hz.cache_clear()


def test_the_chain_is_what_it_says() -> None:
    value = 1234567
    for _ in range(3 * 32):
        value = (value + 1234567) ^ 7654321
    assert timing._chain()(3, 1234567, 7654321) == value


def test_work_runs_in_threads_of_its_own() -> None:
    done: list[int] = []
    taken = timing.together([lambda: done.append(1), lambda: done.append(2)])
    assert sorted(done) == [1, 2]
    assert len(taken) == 2
    assert all(seconds >= 0 for seconds in taken)


@pytest.fixture
def console(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run a command; what it prints, or complains if it ends in another status than 0."""

    def call(*words: str, status: int = 0) -> str:
        capsys.readouterr()
        assert run(words) == status
        out, err = capsys.readouterr()
        return err if status else out

    return call


def fake(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    """Two cores at 4 GHz: two multiply-adds a cycle, four cycles each, two loads a cycle."""
    host = read_linux(trees.zen4_vm(root), range(2), 4096)
    speeds = {2**15: 5.12e11, 2**20: 1.2e11, 2**24: 5e10, 2**27: 1e10}

    def read_rate(n_threads: int, n_bytes: int, _: int, *, seconds: float) -> float:
        return n_threads * next(speeds[size] for size in sorted(speeds) if n_bytes <= size)

    monkeypatch.setattr(hosts, "read_host", lambda: host)
    monkeypatch.setattr(rates, "measured_clock_hz", lambda: 4e9)
    monkeypatch.setattr(
        rates, "multiply_adds_per_s", lambda _, chains: 1e9 if chains == 1 else 7.9e9
    )
    monkeypatch.setattr(rates, "load_latency_s", lambda n_bytes, _: n_bytes / 2**20 * 1e-9)
    monkeypatch.setattr(rates, "read_rate", read_rate)


def test_what_is_measured_becomes_a_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, console: Callable[..., str]
) -> None:
    fake(monkeypatch, tmp_path)
    out = tmp_path / "host.yaml"
    rows = json.loads(console("calibrate", "cpu", "--arch-out", str(out), "--format", "json"))
    assert [(row["level"], row["cores"]) for row in rows] == [
        (level, n_cores) for level in ("DRAM", "L3", "L2", "L1") for n_cores in (1, 2)
    ]
    arch = load_arch(out)
    cpu = arch.code_limits
    assert (cpu.fma_per_cycle, cpu.fma_latency, cpu.load_per_cycle) == (2, 4, 2)
    assert arch.compute.clock_hz == 4e9
    assert arch.compute.rate("fp32") == 32
    assert arch.constant("dram_bandwidth_1") == 1e10
    assert arch.caches[0].bandwidth_bytes_per_s == 2e10
    assert arch.level("registers").bandwidth_bytes_per_s == pytest.approx(1.02e12)
    assert arch.constant("dram_latency") == 256
    assert "Measured here on 20" in dict(cpu.sources)["fma_latency"]
    for level in arch.caches:
        assert (level.bound_bandwidth_bytes_per_s or 0) >= (level.bandwidth_bytes_per_s or 0)
    # What is known is better than what is slower, as beside other work.
    monkeypatch.setattr(rates, "multiply_adds_per_s", lambda _, chains: 0.2e9 * min(chains, 2))
    slow, _ = rates.measure(hosts.read_host(), "a day", lambda what: None)
    beside = arch_from_dict(hosts.data_of(hosts.read_host(), slow)).code_limits
    assert (beside.fma_per_cycle, beside.fma_latency) == (1, 4)
    assert "optimization guide" in dict(beside.sources)["fma_latency"]
    fake(monkeypatch, tmp_path)
    table = console("calibrate", "cpu")
    assert (
        "2 multiply-adds per cycle, one every 4 cycles in a chain; 2 loads per cycle"
        in " ".join(table.split())
    )


def test_an_unknown_cpu_is_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake(monkeypatch, tmp_path)
    unknown = read_linux(trees.zen4_vm(tmp_path, model=255), range(2), 4096)
    measured, _ = rates.measure(unknown, "a day", lambda what: None)
    arch = arch_from_dict(hosts.data_of(unknown, measured))
    assert arch.compute.rate("fp32") == 32
    assert arch.code_limits.model is None


def test_a_cpu_without_multiply_adds(tmp_path: Path) -> None:
    host = read_linux(trees.zen4_vm(tmp_path), range(2), 4096)
    bare = replace(host, features=("avx", "avx2"))
    with pytest.raises(ArchError, match="'AMD EPYC' has no fused multiply-adds"):
        rates.measure(bare, "a day", lambda what: None)


@pytest.mark.parametrize(("n_cores", "counts"), [(1, [1]), (2, [1, 2]), (6, [1, 2, 4, 6])])
def test_counts_of_threads(n_cores: int, counts: list[int]) -> None:
    assert rates.thread_counts(n_cores) == counts


def test_sizes_are_beyond_the_level_inside(tmp_path: Path) -> None:
    host = read_linux(trees.zen4_vm(tmp_path), range(2), 4096)
    kib = {name: size // 1024 for name, size in rates.bytes_of_a_thread(host).items()}
    assert kib == {"DRAM": 65536, "L3": 3 * 1024, "L2": 96, "L1": 16}


def test_detect(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, console: Callable[..., str]
) -> None:
    host = read_linux(trees.graviton3(tmp_path, 4), range(4), 4096)
    measured = hosts.Measured(2.6e9, {"DRAM": 3e10}, "Measured here: {what}")
    monkeypatch.setattr(hosts, "read_host", lambda: host)
    monkeypatch.setattr(hosts, "quick", lambda _: measured)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    hosts.host_data.cache_clear()
    try:
        for name in ("host.yaml", "host.json"):
            console("detect", "-o", str(tmp_path / name))
            assert load_arch(tmp_path / name) == load_arch("host")
        text = console("detect")
        assert "neoverse-v1" in text
        assert text == console("archs", "host")
        (row,) = json.loads(console("detect", "--format", "json"))
        assert row["cpu"]["vector"]["value"] == "32 B"
        assert "ends in .yaml, .yml or .json" in console("detect", "-o", "host.txt", status=3)
        assert "did you mean 'host'" in console("archs", "hots", status=3)
    finally:
        hosts.host_data.cache_clear()
