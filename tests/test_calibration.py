"""Calibrating a GPU: a device of known numbers gives them back; the file; what is refused."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from calibration_oracle import H200, MMA, WGMMA, FakeGpu, FakeLibrary
from hypothesis import given, settings
from hypothesis import strategies as st

import loopsched
from loopsched import calibrate_gpu, gemm, load_arch, pick
from loopsched.base.errors import ArchError
from loopsched.cli import run
from loopsched.gpu.calibration import driver, sources
from loopsched.gpu.calibration.device import Launch
from loopsched.gpu.calibration.experiments import TERMS, measure
from loopsched.gpu.calibration.machine import power_above, shipped
from loopsched.gpu.calibration.rings import LINE_BYTES, ring
from loopsched.machines.arch_file import arch_from_dict, arch_to_dict

DATE = "2026-11-23"
TESLA = replace(H200, name="Tesla T4", capability=(7, 5), sms=40, max_clock_hz=1.59e9,
    memory_clock_hz=5.001e9, bus_bits=256, l2_bytes=4 << 20, threads=1024, blocks=16,
    shared_bytes=65536, block_shared_bytes=65536, system_shared_bytes=0)  # fmt: skip


def same(value: float | None) -> object:
    return pytest.approx(value, rel=1e-3)


@settings(max_examples=25, deadline=None)
@given(
    latencies=st.lists(st.floats(2, 900), min_size=5, max_size=5),
    rates=st.lists(st.floats(1e11, 2e13), min_size=2, max_size=2),
    launch=st.floats(1e-6, 2e-5),
    lanes=st.sampled_from((64.0, 128.0, 117.5)),
    seed=st.integers(0, 1000),
)
def test_known_numbers_come_back(
    latencies: list[float], rates: list[float], launch: float, lanes: float, seed: int
) -> None:
    fma, shared, l1, l2, dram = latencies
    fake = FakeGpu(
        fma=fma, shared=shared, l1=l1, l2=l2, dram=dram, lanes=lanes,
        dram_rate=rates[0], l2_rate=rates[1], launch=launch,
    )  # fmt: skip
    fake.noise.seed(seed)
    # Disturbed runs do not count, as long as not all of a number's are.
    found = measure(_undisturbed_often(fake))
    assert {key: one.value for key, one in found.latencies.items()} == {
        "fma_latency": same(fma),
        "shared_latency": same(shared),
        "l1_latency": same(l1),
        "l2_latency": same(l2),
        "dram_latency": same(dram),
    }
    assert {key: one.value for key, one in found.rates.items()} == {
        "fp32": same(lanes),
        "shared_bandwidth": same(128),
        "l1_bandwidth": same(64),
        "l1_lines": same(1),
    }
    assert (found.dram.value, found.l2.value) == (same(rates[0]), same(rates[1]))
    assert found.launch.value == same(launch)
    assert [one.value for one in found.clocks.values()] == [same(1.6e9)] * 6


def _undisturbed_often(fake: FakeGpu) -> FakeGpu:
    """Let every third run be undisturbed, whatever the dice say."""
    dice, count = fake.noise, [0]

    class Dice:
        def random(self) -> float:
            count[0] += 1
            return 0.0 if count[0] % 3 == 0 else dice.random()

    fake.noise = Dice()  # type: ignore[assignment]
    return fake


def test_tensor_rates_are_by_instruction_and_warps() -> None:
    found = measure(FakeGpu()).tensor
    assert found["fp16", "wgmma m64n256k16, 4 warps"].value == same(0.9 * 2048)
    assert found["tf32", "wgmma m64n64k8, 8 warps"].value == same(1024)
    assert found["int8", "mma m16n8k32, 4 warps"].value == same(0.5 * 4096)
    assert found["fp8", "mma m16n8k32, 16 warps"].value == same(0.625 * 4096)
    assert len(found) == 5 * (3 + 6)


def test_multiply_adds_of_an_instruction() -> None:
    assert {name: 16 * 8 * terms for name, terms in TERMS.items()} == MMA
    assert {name: 64 * terms for name, terms in TERMS.items()} == WGMMA


def test_the_file_of_a_known_gpu() -> None:
    fake = FakeGpu(dram=660.0, l2_rate=9.2e12)
    found = calibrate_gpu(name="mine", device=fake, date=DATE)
    arch, h200 = found.arch, load_arch("h200")
    assert (found.like, found.is_same) == (h200, True)
    assert arch.gpu is not None
    assert h200.gpu is not None
    assert arch.gpu.dram_latency == 660.0
    assert arch.level("L1").bandwidth_bytes_per_s == 9.2e12
    sources_of = dict(arch.gpu.sources)
    assert sources_of["dram_latency"].startswith(f"Measured here on {DATE}: chain of loads")
    assert sources_of["power"] == dict(h200.gpu.sources)["power"]
    # Bounds do not rest on what was measured.
    assert arch.level("L2").bandwidth_bytes_per_s == 2 * 3.201e9 * 6016 / 8
    assert arch.level("L1").bound_bandwidth_bytes_per_s == 64 * 132 * 1.98e9
    assert arch.compute.max_clock_hz == 1.98e9
    assert arch.compute.clock_hz == 1.6e9
    assert arch.compute.macs_per_cycle_per_unit == h200.compute.macs_per_cycle_per_unit
    assert arch.gpu.dram_efficiency == same(4.5e12 / (2 * 3.201e9 * 6016 / 8))
    constants = {one.name: one.value for one in arch.constants}
    assert constants["fp16_wgmma_m64n256k16_4_warps"] == same(0.9 * 2048)
    assert constants["clock_fp16"] == same(1.6e9)
    # It is a file like any other, and kernels are chosen with it.
    assert arch_from_dict(arch_to_dict(arch)) == arch
    assert pick(gemm(m=512, n=512, k=512), arch, top=1).best.estimate_us > 0


def bare(data: object, place: str = "") -> set[str]:
    """Places of values without a source."""
    if isinstance(data, list):
        return {found for at, one in enumerate(data) for found in bare(one, f"{place}.{at}")}
    if not isinstance(data, dict):
        return set()
    if "value" in data:
        return set() if "source" in data else {place}
    return {found for key, one in data.items() for found in bare(one, f"{place}.{key}")}


def test_every_number_of_the_file_has_a_source() -> None:
    found = calibrate_gpu(device=FakeGpu(), date=DATE).arch
    assert bare(arch_to_dict(found)) <= bare(arch_to_dict(load_arch("h200")))
    t600 = replace(TESLA, name="NVIDIA T600", sms=10)
    other = calibrate_gpu(device=FakeGpu(properties=t600, dram_rate=2e11, l2_rate=5e11), date=DATE)
    assert bare(arch_to_dict(other.arch)) == set()


def test_a_gpu_without_a_file_takes_the_sm_of_its_compute_capability() -> None:
    fake = FakeGpu(
        properties=replace(TESLA, name="NVIDIA T600", sms=10), dram_rate=2e11, l2_rate=5e11
    )
    found = calibrate_gpu(device=fake, date=DATE)
    assert (found.like.name, found.is_same) == ("t4", False)
    gpu = found.arch.kernel_limits
    assert found.arch.compute.units == found.arch.level("L1").instances == 10
    source = dict(gpu.sources)["int_lanes"]
    assert source.startswith("Taken from NVIDIA Tesla T4 (TU104), another GPU: CUDA C++")
    assert found.figures.tensor == {}
    assert not any(name.startswith(("mma", "wgmma")) for name in fake.asked)


def test_what_is_of_another_gpu_alone_is_not_taken() -> None:
    pcie = FakeGpu(properties=replace(H200, name="NVIDIA H100 PCIe", sms=114))
    found = calibrate_gpu(device=pcie, date=DATE)
    gpu, taken = found.arch.kernel_limits, found.like.kernel_limits
    assert (taken.power_w, taken.measured_as, taken.merged_share) == (700.0, "h200", 0.36)
    assert (gpu.power_w, gpu.measured_as, gpu.merged_share) == (0.0, "none", 0.0)
    assert gpu.tensor_issue == "group"
    assert found.arch.level("L2").effective_capacity_bytes is None


@pytest.mark.parametrize(("like", "is_same"), [("h200", True), ("h100", False)])
def test_a_machine_that_is_named_is_the_same_only_if_it_is(like: str, is_same: bool) -> None:
    for named in (like, load_arch(like)):
        found = calibrate_gpu(device=FakeGpu(), like=named, date=DATE)
        assert (found.like.name, found.is_same) == (like, is_same)
        assert found.arch.kernel_limits.measured_as == ("h200" if is_same else "none")


@pytest.mark.parametrize(
    ("name", "sms", "capability", "like", "is_same"),
    [
        ("NVIDIA H200", 132, (9, 0), "h200", True),
        ("NVIDIA H100 80GB HBM3", 132, (9, 0), "h100", True),
        ("NVIDIA H100 PCIe", 114, (9, 0), "h200", False),
        ("NVIDIA A100-SXM4-80GB", 108, (8, 0), "a100", True),
        ("NVIDIA A100-PCIE-40GB", 108, (8, 0), "a100_pcie", True),
        ("NVIDIA L40S", 142, (8, 9), "l40s", True),
        ("NVIDIA L40", 142, (8, 9), "l40s", False),
        ("NVIDIA GeForce RTX 3090 Ti", 84, (8, 6), "rtx_3090", False),
        ("NVIDIA TITAN V", 80, (7, 0), "titan_v", True),
        ("Tesla V100-SXM2-16GB", 80, (7, 0), "v100", True),
        ("NVIDIA GeForce GTX 1080 Ti", 28, (6, 1), "gtx_1080ti", True),
    ],
)
def test_shipped_files_are_found(
    name: str, sms: int, capability: tuple[int, int], like: str, is_same: bool
) -> None:
    told = replace(H200, name=name, sms=sms, capability=capability)
    found, same_gpu = shipped(told)
    assert (found.name, same_gpu) == (like, is_same)


def test_rates_of_bounds_are_never_lowered() -> None:
    slow = FakeGpu(lanes=64.0, tensor=dict.fromkeys(TERMS, 256.0), loaded_hz=1.99e9)
    found = calibrate_gpu(device=slow, date=DATE).arch.compute
    assert found.macs_per_cycle_per_unit == load_arch("h200").compute.macs_per_cycle_per_unit
    assert found.max_clock_hz == same(1.99e9)
    quick = FakeGpu(tensor=dict.fromkeys(TERMS, 8192.0))
    raised = calibrate_gpu(device=quick, date=DATE).arch.compute
    assert dict(raised.macs_per_cycle_per_unit)["fp16"] == 8192


@given(st.floats(1, 1e5))
def test_a_rate_stands_for_a_power_of_two_just_above_it(rate: float) -> None:
    power = power_above(rate)
    powers = [2**n for n in range(20)]
    near = [one for one in powers if 0.9 * one <= rate <= 1.02 * one]
    assert ([] if power is None else [power]) == near


@pytest.mark.parametrize("lines", [1, 7, 256])
def test_a_ring_visits_every_line_once(lines: int) -> None:
    laid = ring(lines * LINE_BYTES)
    at, seen = 0, []
    for _ in range(lines):
        at = int(laid[at // 8])
        seen.append(at)
    assert sorted(seen) == list(range(0, lines * LINE_BYTES, LINE_BYTES))


def test_what_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ArchError, match=r"no shipped machine is like 'NVIDIA X1'.*3\.0.*--like"):
        calibrate_gpu(device=FakeGpu(properties=replace(H200, name="NVIDIA X1", capability=(3, 0))))
    with pytest.raises(ArchError, match="'diannao' is not a GPU"):
        calibrate_gpu(device=FakeGpu(), like="diannao")
    with pytest.raises(ArchError, match=r"DRAM delivered 6e\+12 B/s, more than the 4\.814e\+12"):
        calibrate_gpu(device=FakeGpu(dram_rate=6e12))
    monkeypatch.setattr(driver, "_nvrtc_places", lambda: iter([Path("/nowhere/libnvrtc.so")]))
    with pytest.raises(ArchError, match="no NVRTC"):
        driver.compiled("", "sm_90a")


def test_a_machine_without_a_driver_is_told_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def missing(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr(driver.ctypes, "CDLL", missing)
    monkeypatch.chdir(tmp_path)
    assert run(["calibrate", "gpu", "--arch-out", "mine.yaml"]) == 3
    assert capsys.readouterr().err == "Error: calibrate gpu: no NVIDIA driver was found\n"
    assert run(["calibrate", "gpu", "--arch-out", "mine.txt"]) == 3
    assert "ends in .yaml" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_the_command_writes_a_file_that_loads(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    closed: list[str] = []
    monkeypatch.setattr(driver, "CudaDevice", lambda: FakeGpu(asked=closed))
    monkeypatch.setenv("COLUMNS", "80")
    file = tmp_path / "mine.yaml"
    assert run(["calibrate", "gpu", "--arch-out", str(file)]) == 0
    printed = capsys.readouterr()
    assert printed.err == f"wrote {file}\n"
    assert "NVIDIA H200; compared with 'h200', the same GPU" in printed.out
    assert re.search(r"^dram_latency +642 +642 +cycles", printed.out, re.MULTILINE)
    arch = loopsched.load_arch(file)
    assert (arch.name, arch.title) == ("mine", "NVIDIA H200, measured")
    assert "close" in closed
    assert run(["calibrate", "gpu", "--format", "csv"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "what,here,file,unit,how"
    assert len(lines) == 1 + 3 + 5 + 4 + 45 + 6


def test_kernels_that_are_asked_for_are_in_the_source() -> None:
    fake = FakeGpu()
    measure(fake)
    text = sources.source((9, 0))
    written = set(re.findall(r"(?:KERNEL|CHASE|MMA)\((\w+),", text))
    assert set(fake.asked) <= written
    assert {"nothing", "spin"} <= written


ATTRIBUTES = {
    16: 132, 13: 1_980_000, 36: 3_201_000, 37: 6016, 38: 62_914_560, 81: 233_472, 97: 232_448,
    111: 1024, 82: 65_536, 39: 2048, 106: 32, 75: 9, 76: 0,
}  # fmt: skip


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> FakeLibrary:
    made = FakeLibrary(ATTRIBUTES, clocks=[30, 10, 20, 500])
    monkeypatch.setattr(driver.ctypes, "CDLL", lambda name: made)
    return made


def test_the_driver_says_what_the_gpu_is(library: FakeLibrary) -> None:
    device = driver.CudaDevice()
    assert device.properties == H200
    device.close()
    assert library.calls.count("cuMemAlloc_v2") == library.calls.count("cuMemFree_v2") == 4


def test_a_launch_is_what_was_asked_for(library: FakeLibrary) -> None:
    device = driver.CudaDevice()
    found = device.run(Launch("mma_fp16", 3, 128, 77))
    assert (found.cycles, found.time_s) == (20.0, pytest.approx(2.5e-3))
    data = library.launches[0]["data"]
    assert library.launches == [
        {
            "kernel": "mma_fp16",
            "blocks": 3,
            "threads": 128,
            "shared": 0,
            "data": data,
            "n_bytes": 0,
            "steps": 77,
        }
    ]
    device.run(Launch("wgmma_fp8_n64", 1, 256, 1))
    assert library.launches[1]["shared"] == library.shared["wgmma_fp8_n64"] == 58_368
    assert library.written == {}
    cleared = len(library.cleared)
    device.run(Launch("chase_past_l1", 1, 1, 5, 4096))
    assert len(library.cleared) == cleared
    laid = np.frombuffer(library.written[data], dtype=np.uint64)
    assert laid.tolist() == (ring(4096) + np.uint64(data)).tolist()
    device.run(Launch("chase_past_l1", 1, 1, 5, 4096, cold=True))
    assert library.cleared[cleared:] == [512 << 20]
    assert device.empty_s() == pytest.approx(2.5e-3)
    assert [one["kernel"] for one in library.launches[-2:]] == ["spin", "nothing"]
    assert library.launches[-1]["blocks"] == 132
    assert library.functions.count("chase_past_l1") == 1
    with pytest.raises(ArchError, match="2,147,483,648 bytes of memory are needed"):
        device.run(Launch("read", 1, 1, 1, n_bytes=1 << 31))


def test_what_the_driver_and_the_compiler_refuse(library: FakeLibrary) -> None:
    library.failing = "cuMemAlloc_v2"
    with pytest.raises(ArchError, match="cuMemAlloc_v2 failed with 7: no luck"):
        driver.CudaDevice()
    library.failing = "nvrtcCompileProgram"
    with pytest.raises(ArchError, match="NVRTC failed with 7 for sm_90a: bad"):
        driver.CudaDevice()
    library.n_gpus = 0
    with pytest.raises(ArchError, match="the driver shows no GPU"):
        driver.CudaDevice()


def test_the_compiler_is_found_beside_installed_packages(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for folder, version in (("nvidia/cu13/lib", 13), ("nvidia/cuda_nvrtc/lib", 12)):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / f"libnvrtc.so.{version}").touch()
    monkeypatch.setattr(driver.sys, "path", ["", str(tmp_path)])
    places = [str(one) for one in driver._nvrtc_places()]
    assert places[:3] == [
        "libnvrtc.so",
        str(tmp_path / "nvidia/cu13/lib/libnvrtc.so.13"),
        str(tmp_path / "nvidia/cuda_nvrtc/lib/libnvrtc.so.12"),
    ]
    assert places[-1] == "libnvrtc.so.11.2"
