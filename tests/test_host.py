"""The CPU at hand: what is made of what systems say, from fake trees."""

from __future__ import annotations

import os
import random
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import host_trees as trees
import pytest

from loopsched.base.errors import ArchError
from loopsched.base.units import exact
from loopsched.machines import host as hosts
from loopsched.machines.arch import Arch
from loopsched.machines.arch_file import arch_from_dict, arch_to_dict, load_arch
from loopsched.machines.host import Measured, data_of
from loopsched.machines.host_facts import Host, groups_in_use, llvm_features
from loopsched.machines.host_linux import read_linux
from loopsched.machines.host_macos import read_macos
from loopsched.machines.microarchitectures import core_of, cores
from loopsched.models.score import evaluate
from loopsched.problems.builders import conv2d, gemm
from loopsched.problems.problem import Problem
from loopsched.scheduler import search

MEASURED = Measured(3.7e9, {"DRAM": 25e9}, "Measured here: {what}")


def arch_of(host: Host, measured: Measured = MEASURED) -> Arch:
    return arch_from_dict(data_of(host, measured))


def linux(root: Path, allowed: range = range(4096), page: int = 4096) -> Host:
    return read_linux(root, allowed, page)


def sizes(arch: Arch) -> dict[str, tuple[int | None, int, str | None, int | None]]:
    return {
        level.name: (level.capacity_bytes, level.instances, level.unit, level.ways)
        for level in arch.caches
    }


KIB, MIB = 2**10, 2**20


def test_a_virtual_machine_of_zen_4(tmp_path: Path) -> None:
    arch = arch_of(linux(trees.zen4_vm(tmp_path)))
    assert sizes(arch) == {
        "L3": (32 * MIB, 1, None, 16),
        "L2": (1 * MIB, 2, "core", 8),
        "L1": (32 * KIB, 2, "core", 8),
        "registers": (2048, 2, "core", None),
    }
    cpu = arch.code_limits
    assert (cpu.isa, cpu.model, cpu.vector_bytes, cpu.vector_registers) == (
        *("x86-64", "znver4", 64, 32),
    )
    assert (cpu.fma_per_cycle, cpu.fma_latency, cpu.load_per_cycle) == (1, 4, 1)
    assert {"avx512f", "avx512bf16", "avx512vnni", "fma"} <= set(cpu.features)
    assert arch.compute.clock_hz == 3.7e9 <= arch.compute.max_clock_hz
    # Cores x clock x lanes x 2 x multiply-adds a cycle.
    assert 2 * arch.compute.rate("fp32") * 2 * 3.7e9 == 2 * 3.7e9 * 16 * 2
    assert arch.caches[0].bandwidth_bytes_per_s == 25e9
    assert arch.level("L1").bandwidth_bytes_per_s == 2 * 32 * 3.7e9
    assert arch.level("registers").bandwidth_bytes_per_s == 2 * 64 * 3.7e9
    assert "virtual machine" in arch.notes


def test_two_sockets(tmp_path: Path) -> None:
    arch = arch_of(linux(trees.two_xeons(tmp_path)))
    assert sizes(arch) == {
        "L3": (18 * MIB, 2, "socket", 12),
        "L2": (1280 * KIB, 16, "core", 20),
        "L1": (48 * KIB, 16, "core", 12),
        "registers": (2048, 16, "core", None),
    }
    assert arch.compute.units == 16
    assert (arch.compute.clock_hz, arch.compute.max_clock_hz) == (3.0e9, 3.7e9)
    assert arch.compute.rate("fp32") == 32
    assert arch.code_limits.independent_sums == 8
    peak = arch.caches[0].bound_bandwidth_bytes_per_s
    assert peak == pytest.approx(2 * 204.8e9)
    assert dict(arch.level("L1").sources)["capacity"].endswith("cpu0/cache/index0")
    assert "virtual" not in arch.notes


def test_two_kinds_of_core(tmp_path: Path) -> None:
    host = linux(trees.alder_lake(tmp_path))
    arch = arch_of(host)
    assert host.cores == (0, 2, 4, 6, 8, 10, 12, 14)
    assert "Efficiency cores are left out." in host.notes
    assert sizes(arch)["L2"] == (1280 * KIB, 8, "core", 10)
    assert sizes(arch)["registers"] == (16 * 32, 8, "core", None)
    assert arch.code_limits.model == "alderlake"
    assert (arch.code_limits.vector_bytes, arch.code_limits.load_per_cycle) == (32, 3)
    # What all cores may clock at, and what the best of them may.
    assert (arch.compute.clock_hz, arch.compute.max_clock_hz) == (5.1e9, 5.2e9)
    with pytest.raises(ArchError, match="efficiency cores only"):
        linux(tmp_path, range(16, 24))


def test_graviton(tmp_path: Path) -> None:
    arch = arch_of(linux(trees.graviton3(tmp_path)))
    cpu = arch.code_limits
    assert (cpu.isa, cpu.model, cpu.vector_bytes) == ("aarch64", "neoverse-v1", 32)
    assert {"neon", "sve", "i8mm", "bf16", "fullfp16"} <= set(cpu.features)
    assert sizes(arch)["L1"] == (64 * KIB, 64, "core", None)
    assert arch.compute.rate("fp32") == 16
    write = trees.write
    write(tmp_path, "proc/sys/abi/sve_default_vector_length", 16)
    narrow = arch_of(linux(tmp_path)).code_limits
    assert (narrow.vector_bytes, narrow.fma_per_cycle, narrow.load_per_cycle) == (16, 4, 3)


def test_macos() -> None:
    arch = arch_of(read_macos(trees.M1))
    assert sizes(arch) == {
        "L2": (12 * MIB, 1, None, None),
        "L1": (128 * KIB, 4, "core", 8),
        "registers": (512, 4, "core", None),
    }
    cpu = arch.code_limits
    assert (cpu.model, cpu.page_bytes, cpu.independent_sums) == ("apple-m1", 16384, 16)
    assert "dotprod" in cpu.features
    assert "bf16" not in cpu.features
    assert arch.level("L1").line_bytes == 128


def test_macos_with_clusters() -> None:
    """A recorded M4 Max: the features are those that LLVM gives its processor."""
    arch = arch_of(read_macos(trees.M4_MAX))
    assert sizes(arch)["L2"] == (16 * MIB, 2, "cluster", None)
    assert sizes(arch)["L1"] == (128 * KIB, 12, "core", 8)
    assert arch.compute.units == 12
    assert arch.code_limits.model == "apple-m4"
    assert set(arch.code_limits.features) == set(load_arch("apple_m4").code_limits.features)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("machdep.cpu.brand_string: Intel(R) Core(TM) i7", "only Apple's own CPUs"),
        (trees.M1.replace("hw.pagesize", "hw.size"), "sysctl has no hw.pagesize"),
        ("", "a processor without a name"),
    ],
)
def test_sysctl_without_what_is_needed(text: str, message: str) -> None:
    with pytest.raises(ArchError, match=message):
        read_macos(text)


def test_no_sysctl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ArchError, match=r"cannot run sysctl.*No such file"):
        hosts.read_host()
    monkeypatch.setattr("sys.platform", "win32")
    with pytest.raises(ArchError, match="'host' reads Linux and macOS, not win32"):
        hosts.read_host()


# What a process may use


def test_affinity(tmp_path: Path) -> None:
    host = linux(trees.two_xeons(tmp_path), range(3, 19))
    # Of cores 0 to 2, the second threads are allowed, 16 to 18.
    assert host.n_cores == 16
    assert linux(tmp_path, range(7)).cores == tuple(range(7))
    assert linux(tmp_path, range(7)).n_sockets == 1
    uneven = linux(tmp_path, range(10))
    assert uneven.cores == tuple(range(8))
    assert "Of 10 cores, 8 are used" in uneven.notes[0]


@pytest.mark.parametrize(
    ("text", "n_cores", "instances"),
    [("max 100000", 16, 2), ("400000 100000", 4, 1), ("1200000 100000", 12, 2), ("5 10", 1, 1)],
)
def test_control_groups(tmp_path: Path, text: str, n_cores: int, instances: int) -> None:
    trees.two_xeons(tmp_path)
    trees.write(tmp_path, "sys/fs/cgroup/user.slice/cpu.max", text)
    arch = arch_of(linux(tmp_path))
    assert arch.compute.units == n_cores
    assert arch.level("L3").instances == instances
    trees.write(tmp_path, "sys/fs/cgroup/user.slice/job/cpu.max", "300000 100000")
    assert linux(tmp_path).n_cores == min(3, n_cores)


def test_control_groups_of_the_first_version(tmp_path: Path) -> None:
    trees.zen4_vm(tmp_path)
    trees.write(tmp_path, "sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000")
    trees.write(tmp_path, "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1")
    assert linux(tmp_path).n_cores == 2
    trees.write(tmp_path, "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "150000")
    arch = arch_of(linux(tmp_path))
    assert (arch.compute.units, arch.level("L1").instances) == (1, 1)


@pytest.mark.parametrize(
    ("shared", "most", "chosen"),
    [
        ({0: 0, 1: 0, 2: 0, 3: 3, 4: 3}, 99, [0, 1, 3, 4]),
        ({0: 0, 1: 0, 2: 0, 3: 3}, 99, [0, 1, 2]),
        ({0: 0, 1: 0, 2: 2, 3: 2}, 3, [0, 1]),
        ({0: 0, 1: 0, 2: 0, 3: 3, 4: 3, 5: 3}, 4, [0, 1, 3, 4]),
        ({7: 7}, 1, [7]),
    ],
)
def test_as_many_cores_for_each_cache(shared: dict[int, int], most: int, chosen: list[int]) -> None:
    assert groups_in_use(shared, most) == chosen


# What systems do not say, or say wrongly


def test_caches_that_a_virtual_machine_makes_up(tmp_path: Path) -> None:
    host = linux(trees.zen4_vm(tmp_path, l1=("64K", 2)))
    level = arch_of(host).level("L1")
    assert (level.capacity_bytes, level.ways) == (32 * KIB, 8)
    assert "65536 B" in dict(level.sources)["capacity"]
    true = tmp_path / "true"
    trees.zen4_vm(true, l1=("64K", 2))
    text = (true / "proc/cpuinfo").read_text().replace("hypervisor ", "")
    (true / "proc/cpuinfo").write_text(text)
    assert arch_of(linux(true)).level("L1").capacity_bytes == 64 * KIB


def test_no_caches_listed(tmp_path: Path) -> None:
    trees.graviton3(tmp_path, 2)
    for path in sorted((tmp_path / "sys").rglob("size")):
        path.unlink()
    arch = arch_of(linux(tmp_path))
    assert sizes(arch)["L1"] == (64 * KIB, 2, "core", 4)
    assert [level.name for level in arch.caches] == ["L2", "L1", "registers"]


def test_caches_that_do_not_nest(tmp_path: Path) -> None:
    """Some hypervisors let all cores share an L1, or list a cache for some of them only."""
    trees.zen4_vm(tmp_path)
    for number in range(2):
        place = f"sys/devices/system/cpu/cpu{number}/cache/index0"
        trees.write(tmp_path, f"{place}/shared_cpu_list", "0-1")
    assert sizes(arch_of(linux(tmp_path)))["L1"] == (32 * KIB, 2, "core", 8)
    (tmp_path / "sys/devices/system/cpu/cpu1/cache/index0/size").unlink()
    level = arch_of(linux(tmp_path)).level("L1")
    assert level.instances == 2
    assert "the system lists no such cache" in dict(level.sources)["capacity"]


def test_boost_that_the_system_leaves_out(tmp_path: Path) -> None:
    trees.zen4_vm(tmp_path)
    for number in range(2):
        place = f"sys/devices/system/cpu/cpu{number}/cpufreq"
        trees.write(tmp_path, f"{place}/scaling_driver", "acpi-cpufreq")
        trees.write(tmp_path, f"{place}/cpuinfo_max_freq", 2400000)
    assert linux(tmp_path).clock_hz is None
    arch = arch_of(linux(tmp_path))
    assert (arch.compute.clock_hz, arch.compute.max_clock_hz) == (3.7e9, 4.45e9)
    assert "dependent additions" in dict(arch.compute.sources)["clock"]


def test_a_clock_above_all_that_is_sold_moves_the_bound(tmp_path: Path) -> None:
    arch = arch_of(linux(trees.zen4_vm(tmp_path)), replace(MEASURED, clock_hz=6e9))
    assert arch.compute.max_clock_hz == 7.5e9


def test_vectors_without_multiply_adds(tmp_path: Path) -> None:
    trees.zen4_vm(tmp_path)
    path = tmp_path / "proc/cpuinfo"
    path.write_text(path.read_text().replace("avx", "x"))
    with pytest.raises(ArchError, match=r"vectors of 16 bytes.*needs 64 or 32"):
        arch_of(linux(tmp_path))


def test_an_unknown_cpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = linux(trees.zen4_vm(tmp_path, model=255))
    assert host.core is None
    monkeypatch.setattr(hosts, "read_host", lambda: host)
    hosts.host_data.cache_clear()
    try:
        with pytest.raises(ArchError, match=r"'AMD EPYC' \(AuthenticAMD family 25 model 255\)"):
            load_arch("host")
    finally:
        hosts.host_data.cache_clear()
    bare = Measured(3e9, {"DRAM": 2e10, "L3": 1e11, "L2": 2e11, "L1": 3e11}, "Here: {what}")
    with pytest.raises(ArchError, match="no source gives 'fma_per_cycle'"):
        arch_of(host, bare)
    whole = replace(bare, fma_per_cycle=2, load_per_cycle=2, fma_latency=4.0)
    arch = arch_of(host, replace(whole, constants=(("dram_latency", "300 cycles", "loads"),)))
    assert arch.compute.rate("fp32") == 32
    assert arch.constant("dram_latency") == 300
    assert arch.code_limits.model is None
    assert arch.level("L1").bandwidth_bytes_per_s == 2e11


def test_nothing_to_read(tmp_path: Path) -> None:
    with pytest.raises(ArchError, match=r"cannot read /proc/cpuinfo: No such file"):
        linux(tmp_path)
    trees.write(tmp_path, "proc/cpuinfo", "")
    with pytest.raises(ArchError, match="lists no processors"):
        linux(tmp_path)
    trees.write(tmp_path, "proc/cpuinfo", "processor : 0\nhart : 1")
    with pytest.raises(ArchError, match="neither an x86-64 nor an AArch64"):
        linux(tmp_path)
    trees.cpuinfo(tmp_path, [0], trees.x86("GenuineIntel", 6, 1, "?", "avx2 fma"))
    with pytest.raises(ArchError, match="no caches in /sys/devices/system/cpu/cpu0/cache"):
        linux(tmp_path)


@pytest.mark.parametrize("seed", range(3))
def test_garbage_is_told_or_passed_over(tmp_path: Path, seed: int) -> None:
    """Whatever files hold, there is an architecture, or one message."""
    rng = random.Random(seed)
    trees.zen4_vm(tmp_path)
    trees.write(tmp_path, "sys/fs/cgroup/cpu/cpu.max", "200000 100000")
    files = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    words = [
        "",
        "?",
        "-1",
        "0",
        "1",
        "99999999999",
        "0-",
        "1.5",
        "K",
        "32",
        "12K",
        "\u0663",
        "a:b:c",
    ]
    n_good = 0
    for _ in range(60):
        path = rng.choice(files)
        before = path.read_text()
        cut = rng.randrange(len(before) + 1)
        path.write_text(rng.choice([rng.choice(words), before[:cut], before[:cut] + "\n:\n"]))
        with suppress(ArchError):
            n_good += arch_of(linux(tmp_path)).compute.units >= 1
        path.write_text(before)
    assert n_good > 20


@pytest.mark.parametrize("make", [trees.zen4_vm, trees.two_xeons, trees.alder_lake])
def test_every_number_has_a_source(tmp_path: Path, make: object) -> None:
    written = arch_to_dict(arch_of(linux(make(tmp_path))))  # type: ignore[operator]
    parts = [written["compute"], written["cpu"], *written["levels"]]
    for part in parts:
        for key, value in part.items():
            values = value.values() if key == "macs" else [value]
            for one in values:
                is_number = isinstance(one, dict) and one["value"] != 1
                assert not is_number or len(one["source"]) > 10, key


# Searches


@pytest.mark.parametrize(
    "problem",
    [
        gemm(m=512, n=512, k=512),
        conv2d(k=128, c=128, p=28, q=28, r=3, s=3, padding=1, name="conv3_3x3 of resnet50"),
    ],
    ids=lambda problem: problem.kind,
)
def test_searches_keep_all_cores_busy(tmp_path: Path, problem: Problem) -> None:
    """Both cores work all the time on parts of the output, and tiles fit registers."""
    arch = arch_of(linux(trees.zen4_vm(tmp_path)))
    best = search(problem, arch)
    shared = {loop.dim for loop in best.schedule.loops if loop.unit == "core"}
    output = {"M", "N"} if problem.kind == "gemm" else {"K", "P", "Q"}
    assert shared
    assert shared <= output
    score = evaluate(problem, best.schedule, arch)
    assert score.time_s == pytest.approx(problem.macs / (2 * 16 * 3.7e9), rel=0.01)
    assert score.level("registers").working_set_bytes <= 2048
    assert best.certificate.proven


# The machine that runs the tests


@pytest.mark.skipif(not os.path.exists("/proc/cpuinfo"), reason="not Linux")
def test_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    hosts.host_data.cache_clear()
    try:
        arch = load_arch("host")
    except ArchError as error:
        assert "nothing is known of" in str(error)  # noqa: PT017
        return
    assert load_arch("host") == arch
    assert arch_from_dict(arch_to_dict(arch)).digest == arch.digest
    assert arch.compute.units <= len(os.sched_getaffinity(0))
    assert 0.5e9 < arch.compute.clock_hz < 8e9
    assert 1e9 < (arch.caches[0].bandwidth_bytes_per_s or 0) < 2e12
    hosts.host_data.cache_clear()
    monkeypatch.setattr(hosts, "quick", lambda _: pytest.fail("measured again"))
    assert load_arch("host").digest == arch.digest


def test_what_was_measured_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In one file for each machine; one that is broken, or not to be written, is measured again."""
    host = linux(trees.zen4_vm(tmp_path))
    clocks = iter(range(1, 9))
    cache = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setattr(hosts, "read_host", lambda: host)
    monkeypatch.setattr(hosts, "quick", lambda _: replace(MEASURED, clock_hz=1e9 * next(clocks)))

    def clock() -> float:
        hosts.host_data.cache_clear()
        return load_arch("host").compute.clock_hz

    assert [clock(), clock()] == [1e9, 1e9]
    (kept,) = (cache / "loopsched").iterdir()
    assert kept.read_text() == "[1000000000.0, 25000000000.0]"
    for broken in ("", "[1]", '{"a": 1}', "[-1, 2]", "[1, true]", "3", "[null, null]"):
        kept.write_text(broken)
        found = clock()
        assert found == clock()
    assert found == 8e9
    hosts.forget_measured()
    assert not kept.exists()
    clocks = iter([9])
    assert clock() == 9e9
    monkeypatch.setattr(hosts, "read_host", lambda: replace(host, page_bytes=8192))
    clocks = iter([7, 6])
    assert clock() == 7e9
    (cache / "loopsched").rename(tmp_path / "away")
    (cache / "loopsched").write_text("no folder")
    assert clock() == 6e9
    hosts.host_data.cache_clear()


# The table


def test_the_table() -> None:
    assert len({core.model for core in cores()}) == 19
    for core in cores():
        for low, models in ((core.family, one) for one in core.models):
            assert core_of(core.vendor, low, models[0]) == core
            assert core_of(core.vendor, low, models[-1]) == core
        assert max(core.widths) in (16, 32, 64)
        assert core.l1_bytes % (core.l1_ways * 64) == 0
        assert len(exact(core.max_clock_hz, "frequency")) <= len("4.15 GHz")
        assert len(exact(core.dram_bytes_per_s, "bandwidth")) <= len("204.8 GB/s")
        assert core.source


@pytest.mark.parametrize(
    ("vendor", "family", "model", "name"),
    [
        ("AuthenticAMD", 23, 49, "Zen 2"),  # EPYC 7742
        ("AuthenticAMD", 25, 1, "Zen 3"),  # EPYC 7763
        ("AuthenticAMD", 25, 33, "Zen 3"),  # Ryzen 9 5950X
        ("AuthenticAMD", 25, 97, "Zen 4"),  # Ryzen 9 7950X
        ("AuthenticAMD", 26, 2, "Zen 5"),  # EPYC 9755
        ("AuthenticAMD", 26, 68, "Zen 5"),  # Ryzen 9 9950X
        ("GenuineIntel", 6, 85, "Skylake-X, Cascade Lake"),
        ("GenuineIntel", 6, 143, "Sapphire Rapids, Emerald Rapids"),
        ("GenuineIntel", 6, 173, "Granite Rapids"),
        ("0x41", 0, 0xD4F, "Neoverse V2"),
    ],
)
def test_known_products(vendor: str, family: int, model: int, name: str) -> None:
    found = core_of(vendor, family, model)
    assert found is not None
    assert found.name == name
    assert core_of(vendor, family, 0xFFF) is None


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("fma",), {"fp32": 32, "bf16": 32}),
        (("avx2", "fma", "f16c"), {"fp32": 32, "fp16": 32, "bf16": 32, "int8": 64}),
        (("fma", "avx512vnni", "avx512bf16"), {"fp32": 32, "bf16": 64, "int8": 128}),
        (("fma", "amx-int8", "amx-bf16"), {"fp32": 32, "bf16": 512, "int8": 1024}),
    ],
)
def test_rates_of_types(tmp_path: Path, words: tuple[str, ...], expected: dict[str, int]) -> None:
    host = replace(linux(trees.two_xeons(tmp_path)), features=(*words, "avx512f"))
    assert dict(arch_of(host).compute.macs_per_cycle_per_unit) == expected


def test_processors_that_llvm_tells_apart(tmp_path: Path) -> None:
    host = linux(trees.two_xeons(tmp_path))
    skylake = replace(host, core=core_of("GenuineIntel", 6, 85))
    assert arch_of(skylake).code_limits.model == "cascadelake"
    bare = replace(skylake, features=("avx512f", "fma"))
    assert arch_of(bare).code_limits.model == "skylake-avx512"


def test_words_of_systems() -> None:
    assert llvm_features("x86-64", "amx_bf16 amx_tile avx512_fp16") == (
        *("avx512fp16", "amx-tile", "amx-bf16"),
    )
