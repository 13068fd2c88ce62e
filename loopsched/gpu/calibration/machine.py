"""A machine file of this GPU, measured; the rest as its driver or a shipped file says."""

from __future__ import annotations

import datetime as dt
import re
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loopsched.base.errors import ArchError
from loopsched.gpu.calibration.device import Device, Properties
from loopsched.gpu.calibration.experiments import Figures, Measured, measure
from loopsched.machines.arch import Arch
from loopsched.machines.arch_file import (
    arch_from_dict,
    arch_names,
    arch_to_dict,
    as_arch,
    load_arch,
)

# A shipped GPU of each compute capability, whose SM is taken where this GPU has no file.
_LIKE = {
    (6, 0): "p100",
    (6, 1): "titan_xp",
    (7, 0): "v100",
    (7, 5): "t4",
    (8, 0): "a100",
    (8, 6): "rtx_3090",
    (8, 9): "l40s",
    (9, 0): "h200",
    (10, 0): "b200",
}
# Rates of hardware are powers of two; loops around them cost a little.
_LEAST_SHARE, _MOST_SHARE = 0.9, 1.02
# What an SM can receive of L2 a cycle, in bytes.
_RECEIVED = 64
# Of a shipped file, what says nothing of another GPU of the same compute capability.
_OWN = ("power", "measured_as", "merged_share", "l2_efficiency")


@dataclass(frozen=True, slots=True)
class Calibration:
    """A machine that was measured.

    Parameters
    ----------
    arch : Arch
    like : Arch
        The shipped machine that supplied what was not measured.
    is_same : bool
        Whether that is the same GPU, not only one of the same compute capability.
    figures : `loopsched.gpu.calibration.experiments.Figures`
    properties : Properties
    """

    arch: Arch
    like: Arch
    is_same: bool
    figures: Figures
    properties: Properties

    def rows(self) -> list[dict[str, Any]]:
        """Write each measured number beside that of the shipped machine, which may lack it."""
        figures, compute = self.figures, self.like.compute
        gpu = self.like.kernel_limits
        rates = dict(compute.macs_per_cycle_per_unit)
        dram = self.like.level("L2").bandwidth_bytes_per_s
        found = [
            ("dram_bandwidth", figures.dram, dram and dram * gpu.dram_efficiency, "B/s"),
            ("l2_bandwidth", figures.l2, self.like.level("L1").bandwidth_bytes_per_s, "B/s"),
            ("launch", figures.launch, gpu.launch_s, "s"),
        ]
        found += [(key, one, getattr(gpu, key), "cycles") for key, one in figures.latencies.items()]
        for key, one in figures.rates.items():
            unit, field = _RATES[key]
            found.append((key, one, getattr(gpu, field) if field else rates["fp32"], unit))
        for (data_type, text), one in figures.tensor.items():
            found.append((f"{data_type}: {text}", one, rates.get(data_type), "MAC/cycle"))
        for data_type, one in figures.clocks.items():
            clock = compute.clock_hz if data_type == "fp32" else None
            found.append((f"clock, {data_type}", one, clock, "Hz"))
        return [
            {"what": what, "here": one.value, "file": value, "unit": unit, "how": one.about}
            for what, one, value, unit in found
        ]


# Rates of an SM: their unit, and the field of `Gpu`.
_RATES = {
    "fp32": ("MAC/cycle", ""),
    "shared_bandwidth": ("B/cycle", "shared_bytes_per_cycle"),
    "l1_bandwidth": ("B/cycle", "l1_bytes_per_cycle"),
    "l1_lines": ("lines/cycle", "l1_lines_per_cycle"),
}


def calibrate_gpu(
    *,
    name: str = "my_gpu",
    like: Arch | str | Path | None = None,
    device: Device | None = None,
    date: str | None = None,
) -> Calibration:
    """Measure this computer's GPU and make a machine of it.

    Takes less than a minute.  Needs NVIDIA's driver and compiler NVRTC, which
    CUDA builds of torch and the CUDA toolkit include.

    Parameters
    ----------
    name : str
        Of the machine.
    like : Arch, str or path, optional
        Machine for what cannot be measured.  By default the shipped one of
        this GPU, else one of the same compute capability.
    device : Device, optional
        What runs the microbenchmarks.  By default the first GPU.
    date : str, optional
        By default today's, in UTC.

    Returns
    -------
    Calibration

    Raises
    ------
    ArchError
        If there is no such GPU, driver or compiler, or no machine like it.

    See Also
    --------
    load_arch, pick

    Notes
    -----
    Bounds rest on peaks, so measured rates do not replace them: bandwidth of DRAM and the
    highest clock are the driver's, a measured rate per cycle is rounded up to the next
    power of two, and no rate of the shipped file is lowered.  docs/architectures.md says
    how each number is measured.

    Examples
    --------
    >>> calibrate_gpu().arch.name  # doctest: +SKIP
    'my_gpu'
    """
    if device is None:
        from loopsched.gpu.calibration.driver import CudaDevice

        with closing(CudaDevice()) as own:
            return calibrate_gpu(name=name, like=like, device=own, date=date)
    told = device.properties
    if like is None:
        base, is_same = shipped(told)
    else:
        base = as_arch(like)
        is_same = base == _shipped_itself(told)
    if base.gpu is None:
        raise ArchError(f"calibrate gpu: '{base.name}' is not a GPU")
    when = date or dt.datetime.now(dt.UTC).date().isoformat()
    figures = measure(device)
    data = arch_to_dict(base)
    if not is_same:
        _mark_taken(data, base)
    _Writer(data, figures, told, when).write(base, is_same)
    data["name"] = name
    return Calibration(arch_from_dict(data, where=name), base, is_same, figures, told)


def shipped(told: Properties) -> tuple[Arch, bool]:
    """Find the shipped machine of a GPU, or one of its compute capability.

    Returns
    -------
    (Arch, bool)
        And whether it is the same GPU.

    Raises
    ------
    ArchError
        If there is neither.
    """
    itself = _shipped_itself(told)
    if itself is not None:
        return itself, True
    if told.capability in _LIKE:
        return load_arch(_LIKE[told.capability]), False
    major, minor = told.capability
    raise ArchError(
        f"calibrate gpu: no shipped machine is like '{told.name}' (compute capability "
        f"{major}.{minor}); give one with --like"
    )


def _shipped_itself(told: Properties) -> Arch | None:
    """Find the shipped machine of a GPU: its name is in the driver's, and SMs are as many."""
    compact = _compact(told.name)
    named = [name for name in arch_names() if _compact(name) in compact]
    for name in sorted(named, key=len, reverse=True):
        arch = load_arch(name)
        if arch.gpu is not None and arch.compute.units == told.sms:
            return arch
    return None


def _compact(name: str) -> str:
    return re.sub("[^a-z0-9]", "", name.casefold())


def _mark_taken(data: dict[str, Any], base: Arch) -> None:
    """Say of every number that it is another GPU's, and leave out what no other GPU has."""
    for key in _OWN:
        data["gpu"].pop(key, None)
    data.pop("constants", None)
    for level in data["levels"]:
        level.pop("effective_capacity", None)

    def marked(part: object) -> None:
        if isinstance(part, list):
            for one in part:
                marked(one)
        elif isinstance(part, dict):
            if "value" in part:
                own = f": {part['source']}" if "source" in part else ""
                part["source"] = f"Taken from {base.title or base.name}, another GPU{own}"
            for one in part.values():
                marked(one)

    marked(data)


class _Writer:
    """Puts numbers into the data of a machine file, each with where it comes from."""

    def __init__(self, data: dict[str, Any], figures: Figures, told: Properties, when: str) -> None:
        self.data, self.figures, self.told = data, figures, told
        self.here, self.driver = f"Measured here on {when}", f"The driver, here on {when}"

    def write(self, base: Arch, is_same: bool) -> None:
        """Fill in everything."""
        told, data = self.told, self.data
        data["title"] = f"{told.name}, measured"
        data["notes"] = (
            f"Written by 'loopsched calibrate gpu'. What was not measured is that of "
            f"'{base.name}'{'' if is_same else ', another GPU'}. "
            f"Bounds rest on the driver's clocks and bus, not on measured rates. {base.notes}"
        )
        self._levels()
        self._compute(base)
        self._limits()
        data["constants"] = data.get("constants", {}) | dict(self._constants())

    def _levels(self) -> None:
        told, figures = self.told, self.figures
        dram, l2, l1 = (self._level(one) for one in ("DRAM", "L2", "L1"))
        # Two transfers a cycle of the memory's clock.
        bus = 2 * told.memory_clock_hz * told.bus_bits / 8
        text = f"{told.bus_bits} bits at twice {told.memory_clock_hz / 1e6:,.0f} MHz"
        dram["bandwidth"] = _sourced(f"{bus!r} B/s", f"{self.driver}: {text}")
        if figures.dram.value > bus:
            raise ArchError(
                f"calibrate gpu: DRAM delivered {figures.dram.value:.4g} B/s, more than the "
                f"{bus:.4g} B/s that the driver's clock and width of its bus allow"
            )
        share = figures.dram.value / bus
        self.data["gpu"]["dram_efficiency"] = _sourced(
            _rounded(share), f"{self.here}: {figures.dram.value:.4g} B/s, {figures.dram.about}"
        )
        l2["capacity"] = _sourced(f"{told.l2_bytes} B", self.driver)
        l2["bandwidth"] = self._measured(figures.l2, "B/s")
        l2["peak_bandwidth"] = _sourced(
            f"{_RECEIVED * told.sms} B/cycle",
            f"Limit taken for bounds: {_RECEIVED} bytes per SM and cycle, what an SM can receive",
        )
        l1["instances"] = _sourced(told.sms, self.driver)

    def _level(self, name: str) -> dict[str, Any]:
        for level in self.data["levels"]:
            if level["name"] == name:
                found: dict[str, Any] = level
                return found
        raise ArchError(f"calibrate gpu: '{self.data['name']}' has no level '{name}'")

    def _compute(self, base: Arch) -> None:
        part, told, figures = self.data["compute"], self.told, self.figures
        part["units"] = _sourced(told.sms, self.driver)
        part["clock"] = self._measured(figures.clocks["fp32"], "Hz")
        quickest = max(_rounded(one.value) for one in figures.clocks.values())
        above = quickest > told.max_clock_hz
        part["max_clock"] = _sourced(
            f"{max(quickest, told.max_clock_hz)!r} Hz",
            f"{self.here}, under load" if above else self.driver,
        )
        best = {"fp32": figures.rates["fp32"]}
        for (data_type, _), one in figures.tensor.items():
            if data_type not in best or one.value > best[data_type].value:
                best[data_type] = one
        held = dict(base.compute.macs_per_cycle_per_unit)
        for data_type, one in best.items():
            power = power_above(one.value)
            if power is not None and power >= held.get(data_type, 0):
                part["macs"][data_type] = _sourced(
                    f"{power} MAC/cycle",
                    f"{self.here}: {_rounded(one.value)}, {one.about}; the power of two above",
                )

    def _limits(self) -> None:
        gpu, told, figures = self.data["gpu"], self.told, self.figures
        for key, count in (
            ("threads", told.threads),
            ("blocks", told.blocks),
            ("registers", told.registers),
        ):
            gpu[key] = _sourced(count, self.driver)
        for key, size in (
            ("shared", told.shared_bytes),
            ("block_shared", told.block_shared_bytes),
            ("system_shared", told.system_shared_bytes),
        ):
            if size:
                gpu[key] = _sourced(f"{size} B", self.driver)
        for key, one in figures.latencies.items():
            gpu[key] = self._measured(one, "cycles")
        for key, (_, field) in _RATES.items():
            one = figures.rates[key]
            power = power_above(one.value)
            if field and power is not None:
                value = power if key == "l1_lines" else f"{power} B/cycle"
                about = f"{self.here}: {one.about}; the power of two above"
                gpu[key] = _sourced(value, about)
        gpu["launch"] = self._measured(figures.launch, "s")

    def _constants(self) -> list[tuple[str, dict[str, Any]]]:
        rates = [
            (f"{data_type}_{re.sub('[^a-z0-9]+', '_', text)}", self._measured(one, "MAC/cycle"))
            for (data_type, text), one in self.figures.tensor.items()
        ]
        clocks = [
            (f"clock_{data_type}", self._measured(one, "Hz"))
            for data_type, one in self.figures.clocks.items()
        ]
        return [*rates, *clocks]

    def _measured(self, one: Measured, unit: str) -> dict[str, Any]:
        return _sourced(f"{_rounded(one.value)!r} {unit}", f"{self.here}: {one.about}")


def power_above(rate: float) -> int | None:
    """Give the power of two that a measured rate stands for, if it is near enough below one.

    Examples
    --------
    >>> power_above(126.9), power_above(2048.6), power_above(1365.3)
    (128, 2048, None)
    """
    power = 1
    while rate > power * _MOST_SHARE:
        power *= 2
    return power if rate >= power * _LEAST_SHARE else None


def _sourced(value: object, source: str) -> dict[str, Any]:
    return {"value": value, "source": source}


def _rounded(value: float) -> float:
    """Round to four digits, which is more than any measurement here repeats."""
    return float(f"{value:.4g}")
