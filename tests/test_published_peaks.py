"""Shipped GPUs against what their vendors publish, which is written down here apart."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from loopsched.base.resources import resource_names
from loopsched.gpu.bound import repeated_bound
from loopsched.gpu.library.machine import machine_of
from loopsched.gpu.occupancy import occupancy
from loopsched.machines.arch_file import load_arch

MIB = 2**20


class Published(NamedTuple):
    """Figures of one product; rates are without sparsity, tensor cores with sums in fp32."""

    units: int
    dram_gb_per_s: float
    l2_mib: float
    tera_per_s: dict[str, float]
    source: str
    at_highest: tuple[
        str, ...
    ] = ()  # types whose figure is at the highest clock, not the sustained


PEAKS = {
    "a100": Published(
        108,
        2039,
        40,
        {"fp32": 19.5, "tf32": 156, "fp16": 312, "bf16": 312, "int8": 624, "fp16_simt": 78},
        "NVIDIA A100 Tensor Core GPU data sheet, A100 80GB SXM",
    ),
    "a100_pcie": Published(
        108,
        1555,
        40,
        {"fp32": 19.5, "tf32": 156, "fp16": 312, "bf16": 312, "int8": 624, "fp16_simt": 78},
        "NVIDIA A100 Tensor Core GPU data sheet, A100 40GB PCIe",
    ),
    "a4000": Published(
        48,
        448,
        4,
        {"fp32": 19.2, "fp16": 153.4 / 2},
        "NVIDIA RTX A4000 data sheet: 48 RT cores, one an SM; tensor performance with sparsity",
    ),
    "a6000": Published(
        84,
        768,
        6,
        {"fp32": 38.7, "tf32": 77.4, "fp16": 309.7 / 2, "bf16": 154.8, "int8": 309.7},
        "NVIDIA RTX A6000 data sheet; GA102 whitepaper, appendix C",
    ),
    "b200": Published(
        148,
        8000,
        126,
        {"fp32": 75, "fp16": 2250, "bf16": 2250, "fp8": 4500, "int8": 4500},
        "NVIDIA Blackwell data sheet, HGX B200: an eighth of eight GPUs, half of sparse figures",
        at_highest=("fp32",),
    ),
    "h100": Published(
        132,
        3350,
        50,
        {
            "fp32": 66.9,
            "fp16_simt": 133.8,
            "tf32": 494.7,
            "fp16": 989.4,
            "bf16": 989.4,
            "fp8": 1978.9,
            "int8": 1978.9,
        },
        "NVIDIA H100 Tensor Core GPU Architecture whitepaper, H100 SXM5",
        at_highest=("fp32", "fp16_simt"),
    ),
    "h200": Published(
        132,
        4800,
        60,
        {"fp32": 67, "tf32": 494.5, "fp16": 989.5, "bf16": 989.5, "fp8": 1979, "int8": 1979},
        "NVIDIA H200 data sheet, SXM: half of sparse figures; L2 as measured files take it",
        at_highest=("fp32",),
    ),
    "l4": Published(
        58,
        300,
        48,
        {"fp32": 30.3, "tf32": 60, "fp16": 121, "bf16": 121, "int8": 242},
        "NVIDIA L4 data sheet: 7,424 cores, half of sparse figures",
    ),
    "l40s": Published(
        142,
        864,
        96,
        {
            "fp32": 91.6,
            "tf32": 183,
            "fp16": 362.05,
            "bf16": 362.05,
            "fp8": 733,
            "int8": 733,
        },
        "NVIDIA L40S data sheet: 142 RT cores, one an SM; L2 of AD102 in the Ada whitepaper",
    ),
    "m40": Published(24, 288, 3, {"fp32": 6.8}, "NVIDIA Tesla M40 data sheet", ("fp32",)),
    "mi250x": Published(
        110,
        3276.8 / 2,
        8,
        {"fp32": 95.7 / 2, "fp16": 383 / 2, "bf16": 383 / 2, "int8": 383 / 2},
        "AMD Instinct MI250X data sheet, halved: matrix cores, two dies",
    ),
    "mi300x": Published(
        304,
        5300,
        32,
        {
            "fp32": 163.4,
            "tf32": 653.7,
            "fp16": 1307.4,
            "bf16": 1307.4,
            "fp8": 2614.9,
            "int8": 2614.9,
        },
        "AMD Instinct MI300X data sheet; CDNA 3 white paper: 4 MB of L2 in each of 8 XCDs",
    ),
    "p100": Published(
        56,
        732,
        4,
        {"fp32": 10.6, "fp16": 21.2},
        "NVIDIA Tesla P100 whitepaper, SXM2",
        ("fp32", "fp16"),
    ),
    "rtx_2080_ti": Published(
        68,
        616,
        5.5,
        {"fp32": 13.4, "fp16": 53.8, "int8": 215.2, "fp16_simt": 26.9},
        "NVIDIA Turing GPU Architecture whitepaper, appendix A, reference card",
    ),
    "rtx_3060_laptop": Published(
        30,
        336,
        3,
        {"fp32": 10.94},
        "NVIDIA's specifications: 3,840 cores, 192 bits at 14 Gbit/s; 80 W at 1425 MHz",
    ),
    "rtx_3090": Published(
        82,
        936,
        6,
        {"fp32": 35.6, "tf32": 35.6, "fp16": 71, "bf16": 71, "int8": 284, "fp16_simt": 35.6},
        "NVIDIA Ampere GA102 GPU Architecture whitepaper, appendix A",
    ),
    "rtx_4090": Published(
        128,
        1008,
        72,
        {
            "fp32": 82.6,
            "tf32": 82.6,
            "fp16": 165.2,
            "bf16": 165.2,
            "fp8": 330.3,
            "int8": 660.6,
            "fp16_simt": 82.6,
        },
        "NVIDIA Ada GPU Architecture whitepaper, appendix A",
    ),
    "t4": Published(
        40,
        320,
        4,
        {"fp32": 8.1, "fp16": 65, "int8": 130},
        "NVIDIA T4 data sheet",
        ("fp32", "fp16", "int8"),
    ),
    "titan_rtx": Published(
        72,
        672,
        6,
        {"fp32": 16.3, "fp16": 130.5, "int8": 261, "fp16_simt": 32.6},
        "NVIDIA TITAN RTX specifications; Turing whitepaper, Quadro RTX 6000",
    ),
    "titan_x_maxwell": Published(
        24, 336.5, 3, {"fp32": 6.6}, "NVIDIA GeForce GTX TITAN X specifications", ("fp32",)
    ),
    "v100": Published(
        80,
        900,
        6,
        {"fp32": 15.7, "fp16": 125},
        "NVIDIA Tesla V100 whitepaper, SXM2",
        ("fp32", "fp16"),
    ),
    "w6600": Published(
        28,
        224,
        2,
        {"fp32": 10.4, "fp16": 20.8},
        "AMD Radeon PRO W6600 specifications",
    ),
    "w7800": Published(
        70,
        576,
        6,
        {"fp32": 45.2, "fp16": 90.5},
        "AMD Radeon PRO W7800 32 GB specifications",
    ),
}


@pytest.mark.parametrize("name", PEAKS)
def test_published_peaks(name: str) -> None:
    published, arch = PEAKS[name], load_arch(name)
    compute, outer = arch.compute, arch.caches[0]
    found = {
        "units": compute.units,
        "DRAM": (outer.bandwidth_bytes_per_s or 0) / 1e9,
        "L2": (arch.level("L2").capacity_bytes or 0) * arch.level("L2").instances / MIB,
    }
    expected = {"units": published.units, "DRAM": published.dram_gb_per_s, "L2": published.l2_mib}
    for data_type, tera in published.tera_per_s.items():
        highest = data_type in published.at_highest
        clock_hz = compute.max_clock_hz if highest else compute.clock_hz
        found[data_type] = 2 * compute.rate(data_type) * compute.units * clock_hz / 1e12
        expected[data_type] = tera
    assert found == pytest.approx(expected, rel=0.015)
    assert found["units"] == expected["units"]


def test_wavefronts_and_infinity_caches() -> None:
    """What differs from NVIDIA's GPUs: warps of 64, a cache behind L2, dies with an L2 each."""
    machines = {name: load_arch(name) for name in ("mi250x", "mi300x", "w6600", "w7800")}
    found = {
        name: (arch.kernel_limits.warp_threads, arch.kernel_limits.max_warps, len(arch.caches))
        for name, arch in machines.items()
    }
    assert found == {
        "mi250x": (64, 32, 2),
        "mi300x": (64, 32, 3),
        "w6600": (32, 32, 3),
        "w7800": (32, 32, 3),
    }
    for name, inside in {"mi300x": "L2", "w6600": "LDS", "w7800": "LDS"}.items():
        arch = machines[name]
        seen = machine_of(arch, "fp16")
        assert seen.l2_bytes == arch.level("L3").capacity_bytes
        assert seen.dram_bytes_per_s == arch.level("L3").bandwidth_bytes_per_s
        assert seen.l2_bytes_per_s == arch.level(inside).bandwidth_bytes_per_s


@pytest.mark.parametrize(
    ("name", "threads", "registers", "blocks"),
    [  # AMD's rules: a SIMD's registers over those of a wavefront, workgroups over all SIMDs
        ("mi250x", 256, 128, 4),  # 512 / 128 wavefronts a SIMD, one of each workgroup
        ("mi250x", 256, 129, 3),  # 136 registers: 3
        ("mi300x", 512, 256, 1),  # 2 a SIMD, two of each workgroup
        ("mi300x", 64, 8, 16),  # workgroups before wavefronts
        ("w6600", 256, 64, 4),  # 16 a SIMD, 4 of each workgroup
        ("w6600", 256, 65, 3),  # 80 registers: 12
        ("w7800", 256, 96, 4),  # 1,536 / 96 = 16
        ("w7800", 256, 97, 3),  # 120 registers: 12
    ],
)
def test_resident_workgroups(name: str, threads: int, registers: int, blocks: int) -> None:
    assert occupancy(load_arch(name).kernel_limits, threads, registers).blocks == blocks


def test_nothing_that_outlives_a_kernel_is_bound_to_be_read() -> None:
    """Operands that L3 and the L2s of an MI300X may hold need no DRAM; L1 and LDS hold none."""
    arch = load_arch("mi300x")
    kept = 256 * MIB + 8 * 4 * MIB
    assert repeated_bound(1, kept, arch, "fp16")[1] == "compute"
    seconds, what = repeated_bound(1, kept + 5_325_000, arch, "fp16")
    assert (seconds, what) == (pytest.approx(1e-6), "DRAM")


class PublishedCpu(NamedTuple):
    """Figures of one CPU: clocks of all and of single cores, fp32 operations of a core a cycle."""

    cores: int
    clocks_ghz: tuple[float, float]
    l1_kib: int
    l2_kib: int
    last_mib: float
    dram_gb_per_s: float
    flop_per_cycle: int


CPUS = {  # vendors' specifications: sizes of L1 and L2 of one core, the last level of a socket
    "apple_m1": PublishedCpu(4, (3.2, 3.2), 128, 12288, 12, 68.25, 32),
    "apple_m2": PublishedCpu(4, (3.5, 3.5), 128, 16384, 16, 100, 32),
    "apple_m3": PublishedCpu(4, (4.06, 4.06), 128, 16384, 16, 100, 32),
    "apple_m4": PublishedCpu(4, (4.4, 4.4), 128, 16384, 16, 120, 32),
    "epyc_7763": PublishedCpu(64, (2.45, 3.5), 32, 512, 256, 204.8, 32),
    "epyc_9654": PublishedCpu(96, (2.4, 3.7), 32, 1024, 384, 460.8, 32),
    "epyc_9755": PublishedCpu(128, (2.7, 4.1), 48, 1024, 512, 576, 64),
    "graviton3": PublishedCpu(64, (2.6, 2.6), 64, 1024, 32, 307.2, 32),
    "graviton4": PublishedCpu(96, (2.8, 2.8), 64, 2048, 36, 536.7, 32),
    "i9_12900k": PublishedCpu(8, (3.2, 5.2), 48, 1280, 30, 76.8, 32),
    "ryzen_5950x": PublishedCpu(16, (3.4, 4.9), 32, 512, 64, 51.2, 32),
    "ryzen_7950x": PublishedCpu(16, (4.5, 5.7), 32, 1024, 64, 83.2, 32),
    "ryzen_9950x": PublishedCpu(16, (4.3, 5.7), 48, 1024, 64, 89.6, 64),
    "xeon_8280": PublishedCpu(28, (2.7, 4.0), 32, 1024, 38.5, 140.8, 64),
    "xeon_8380": PublishedCpu(40, (2.3, 3.4), 48, 1280, 60, 204.8, 64),
    "xeon_8480": PublishedCpu(56, (2.0, 3.8), 48, 2048, 105, 307.2, 64),
}


@pytest.mark.parametrize("name", CPUS)
def test_published_cpus(name: str) -> None:
    arch = load_arch(name)
    compute, last, cpu = arch.compute, arch.caches[0], arch.code_limits
    found = PublishedCpu(
        compute.units,
        (compute.clock_hz / 1e9, compute.max_clock_hz / 1e9),
        (arch.level("L1").capacity_bytes or 0) // 1024,
        (arch.level("L2").capacity_bytes or 0) // 1024,
        (last.capacity_bytes or 0) * last.instances / MIB,
        (last.bandwidth_bytes_per_s or 0) / 1e9,
        2 * cpu.lanes(4) * cpu.fma_per_cycle,
    )
    assert found == CPUS[name]
    assert compute.rate("fp32") == cpu.lanes(4) * cpu.fma_per_cycle
    registers = arch.level("registers")
    assert registers.capacity_bytes == cpu.vector_registers * cpu.vector_bytes
    assert registers.bandwidth_bytes_per_s == pytest.approx(
        compute.units * compute.clock_hz * cpu.load_per_cycle * cpu.vector_bytes
    )


def test_machines_without_published_peaks_are_known() -> None:
    """A new file needs a row above; those without one are older, or of no product."""
    others = {
        "diannao",
        "gtx_1080ti",
        "titan_v",
        "titan_v_report_003",
        "titan_x_pascal",
        "titan_xp",
    }
    assert set(resource_names("archs", ".yaml")) == others | set(PEAKS) | set(CPUS)
