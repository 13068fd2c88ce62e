"""From launches to numbers: latencies, rates and bandwidths, what starts a kernel cancelled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from statistics import median

from loopsched.gpu.calibration.device import Device, Launch, Run
from loopsched.gpu.calibration.sources import GROUP_COLUMNS, issues_groups

_KIB, _MIB = 1 << 10, 1 << 20
_REPEATS, _LAUNCHES = 5, 21
_FULL = 1024
# How long the clock is watched.
_LOAD_S = 1.0
# Terms of a sum in an instruction of a warp, for 16 x 8 outputs, and of four, for 64 rows.
TERMS = {"fp16": 16, "bf16": 16, "tf32": 8, "fp8": 32, "int8": 32}
_CHAINS, _GROUP_CHAINS = 4, 16


@dataclass(frozen=True, slots=True)
class Measured:
    """A number and how it was measured.

    Parameters
    ----------
    value : float
        Cycles, seconds, hertz, bytes a second; bytes or operations a cycle and SM.
    about : str
    """

    value: float
    about: str


@dataclass(frozen=True, slots=True)
class Figures:
    """All that was measured.

    Parameters
    ----------
    latencies : dict of str to Measured, cycles
        By keys of machine files, as the others.
    rates : dict of str to Measured
        A cycle and SM.
    tensor : dict of (str, str) to Measured, multiply-adds a cycle and SM
        By data type and instruction with its warps.
    dram, l2 : Measured, bytes per second
    launch : Measured, seconds
    clocks : dict of str to Measured, hertz
        Under a load of a data type.
    """

    latencies: dict[str, Measured]
    rates: dict[str, Measured]
    tensor: dict[tuple[str, str], Measured]
    dram: Measured
    l2: Measured
    launch: Measured
    clocks: dict[str, Measured]


def measure(device: Device) -> Figures:
    """Run all microbenchmarks; less than a minute."""
    tensor = dict(_tensor_rates(device))
    return Figures(
        latencies=dict(_latencies(device)),
        rates=dict(_rates(device)),
        tensor=tensor,
        dram=_dram(device),
        l2=_l2(device),
        launch=_launch(device),
        clocks=dict(_clocks(device, tensor)),
    )


def _latencies(device: Device) -> Iterator[tuple[str, Measured]]:
    """Follow chains of dependent instructions with one thread."""
    ring = _power_of_two(device.properties.l2_bytes // 8)
    chains = (
        ("fma_latency", "chain_fma", 0, False, "chain of dependent multiply-adds"),
        ("shared_latency", "chase_shared", 0, False, "chain of dependent loads"),
        ("l1_latency", "chase_l1", 8 * _KIB, False, "chain of loads, ring of 8 KiB"),
        (
            "l2_latency",
            "chase_past_l1",
            ring,
            False,
            f"chain of loads past L1, ring of {ring / _MIB:.3g} MiB that was just written",
        ),
        (
            "dram_latency",
            "chase_past_l1",
            256 * _MIB,
            True,
            "chain of loads, ring of 256 MiB of which L2 holds nothing",
        ),
    )
    for key, kernel, n_bytes, cold, about in chains:
        launch = Launch(kernel, 1, 1, 2048, n_bytes, cold)
        yield key, Measured(_cycles(device, launch), about)


def _rates(device: Device) -> Iterator[tuple[str, Measured]]:
    """Keep ordinary lanes, shared memory and L1 busy with 1,024 threads an SM."""
    for key, kernel, each, about in (
        ("fp32", "rate_fp32", 8, "multiply-adds"),
        ("shared_bandwidth", "rate_shared", 16, "loads of 16 bytes per thread"),
        ("l1_bandwidth", "rate_l1", 16, "loads of 16 bytes per thread from 16 KiB"),
        ("l1_lines", "rate_lines", 1, "loads of 32 lines per warp"),
    ):
        cycles = _cycles(device, Launch(kernel, device.properties.sms, _FULL, 1024))
        value = each * _FULL / cycles
        yield key, Measured(value, f"{about}: {value:.4g} per cycle and SM")


def data_types(capability: tuple[int, int]) -> tuple[str, ...]:
    """Types whose tensor core products `kernels.cu` has for a compute capability.

    Examples
    --------
    >>> data_types((7, 5)), data_types((8, 6))
    ((), ('fp16', 'bf16', 'tf32', 'int8'))
    """
    if capability < (8, 0):
        return ()
    return tuple(name for name in TERMS if name != "fp8" or capability >= (8, 9))


def _instructions(device: Device, data_type: str) -> Iterator[tuple[str, str, int, int, int]]:
    """Name instructions: text, kernel, warps, multiply-adds of a step, steps to run."""
    terms = TERMS[data_type]
    for warps in (4, 8, 16):
        macs = warps * _CHAINS * 16 * 8 * terms
        yield f"mma m16n8k{terms}, {warps} warps", f"mma_{data_type}", warps, macs, 2048
    if issues_groups(device.properties.capability):
        for n in GROUP_COLUMNS:
            for warps in (4, 8):
                macs = warps // 4 * _GROUP_CHAINS * 64 * n * terms
                text = f"wgmma m64n{n}k{terms}, {warps} warps"
                yield text, f"wgmma_{data_type}_n{n}", warps, macs, 512


def _tensor_rates(device: Device) -> Iterator[tuple[tuple[str, str], Measured]]:
    """Keep tensor cores busy with one block an SM, by instruction and warps."""
    for data_type in data_types(device.properties.capability):
        for text, kernel, warps, macs, steps in _instructions(device, data_type):
            launch = Launch(kernel, device.properties.sms, 32 * warps, steps)
            cycles = _cycles(device, launch)
            yield (data_type, text), Measured(macs / cycles, f"{text}, one block per SM")


def _clocks(
    device: Device, tensor: dict[tuple[str, str], Measured]
) -> Iterator[tuple[str, Measured]]:
    """Watch the clock under a load of the lanes, and of each type's quickest instruction."""
    loads = {"fp32": ("rate_fp32", _FULL)}
    for data_type in data_types(device.properties.capability):
        best = max(
            _instructions(device, data_type), key=lambda one: tensor[data_type, one[0]].value
        )
        loads[data_type] = (best[1], 32 * best[2])
    for data_type, (kernel, threads) in loads.items():
        run = _run_for(device, kernel, threads, _LOAD_S)
        about = f"a second of {data_type} multiply-adds on random numbers, all SMs"
        yield data_type, Measured(run.cycles / run.time_s, about)


def _run_for(device: Device, kernel: str, threads: int, time_s: float) -> Run:
    """Run for about so long."""
    steps = 1 << 14
    while True:
        run = device.run(Launch(kernel, device.properties.sms, threads, steps))
        if run.time_s > time_s / 2 or steps >= 1 << 28:
            return run
        steps = min(4 * steps, max(2 * steps, int(steps * time_s / run.time_s)), 1 << 28)


def _dram(device: Device) -> Measured:
    size = _power_of_two(min(1024 * _MIB, device.properties.memory_bytes // 4))
    return Measured(_read(device, size, 1, 5), f"reading {size / _MIB:,.0f} MiB again and again")


def _l2(device: Device) -> Measured:
    size = _power_of_two(device.properties.l2_bytes // 3)
    about = f"all SMs reading the same {size / _MIB:.3g} MiB"
    return Measured(_read(device, size, 50, 250), about)


def _read(device: Device, n_bytes: int, few: int, many: int) -> float:
    told = device.properties
    blocks = told.sms * max(1, told.threads // _FULL)
    short_s, long_s = (
        min(device.run(Launch("read", blocks, _FULL, n, n_bytes)).time_s for _ in range(_REPEATS))
        for n in (few, many)
    )
    return n_bytes * (many - few) / (long_s - short_s)


def _launch(device: Device) -> Measured:
    time_s = median(device.empty_s() for _ in range(_LAUNCHES))
    return Measured(time_s, "an empty kernel of one block per SM, between two events")


def _cycles(device: Device, launch: Launch) -> float:
    """Cycles of a step: the least of several runs, what two lengths have in common cancelled."""
    few, many = (
        min(device.run(one).cycles for _ in range(_REPEATS))
        for one in (launch, replace(launch, steps=3 * launch.steps))
    )
    return (many - few) / (2 * launch.steps)


def _power_of_two(most: int) -> int:
    return 1 << max(10, most.bit_length() - 1)
