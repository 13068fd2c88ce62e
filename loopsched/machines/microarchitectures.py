"""Microarchitectures of CPUs: what neither the operating system nor the processor says of them."""

from __future__ import annotations

import csv
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

GLANCE = "LLVM, lib/TargetParser/Host.cpp"
"""Where families, models and parts are told apart."""


class Core(NamedTuple):
    """A microarchitecture.

    Parameters
    ----------
    name, model : str
        In words, and LLVM's name.
    vendor : str
        As /proc/cpuinfo has it: name, implementer, or ``Apple``.
    family : int
    models : tuple of range of int
        Of x86; on Arm, whose family is 0, parts; of Apple, generations.
    widths : dict of int to (int, int)
        Vector bytes to full multiply-adds and full loads a cycle.
    fma_latency : int, cycles
    tlb_entries : int
        Of the last TLB.
    l1_bytes, l1_ways : int
        Of the data cache.
    l2_bytes : tuple of int
        What products have; empty where it is not known.
    l2_rate, l3_rate : int, bytes a cycle
        Toward L1 and toward L2, of one core.
    max_clock_hz : float, hertz
        Highest of any product as it is sold.
    dram_bytes_per_s : float
        Highest of one socket of any product, by its memory channels.
    source : str
        Where rates, latencies and TLB come from.
    """

    name: str
    model: str
    vendor: str
    family: int
    models: tuple[range, ...]
    widths: dict[int, tuple[int, int]]
    fma_latency: int
    tlb_entries: int
    l1_bytes: int
    l1_ways: int
    l2_bytes: tuple[int, ...]
    l2_rate: int
    l3_rate: int
    max_clock_hz: float
    dram_bytes_per_s: float
    source: str


_GUIDES = {
    "zen2": "AMD, Software Optimization Guide for family 17h, models 30h and up (unverified)",
    "zen3": "AMD, Software Optimization Guide for family 19h, models up to 0Fh (unverified)",
    "zen4": "LLVM, X86ScheduleZnver4.td (multiply-adds); AMD's optimization guide (unverified)",
    "zen5": "AMD, Next Generation Zen 5 Core (Hot Chips 2024); LLVM, X86ScheduleZnver5.td"
    " (latency); L3 unverified",
    "skx": "LLVM, X86SchedSkylakeServer.td (multiply-adds); Intel, Optimization Reference Manual,"
    " sustained rates (unverified)",
    "intel": "Intel, Optimization Reference Manual, sustained rates, and uops.info (unverified)",
    "n1": "Arm, Neoverse N1: Software Optimization Guide, reference manual (unverified)",
    "v1": "Arm, Neoverse V1: Software Optimization Guide, reference manual (unverified)",
    "v2": "Arm, Neoverse V2: Software Optimization Guide, reference manual (unverified)",
    "m1": "OSACA, osaca/data/m1.yml: FMA and load ports; latency, L2 and TLB unverified",
    "later": "Taken from the M1; not known for this CPU",
}
_TABLE = Path(__file__).with_suffix(".csv")
"""Families and models are hexadecimal; of Arm and Apple the family is 0."""


@lru_cache(maxsize=1)
def cores() -> tuple[Core, ...]:
    """Read the table of all that are known, vendors and generations in order."""
    with _TABLE.open(encoding="utf-8", newline="") as lines:
        return tuple(_core(cells) for cells in list(csv.reader(lines))[1:])


def _core(cells: list[str]) -> Core:
    name, model, vendor, numbers, widths, latency, tlb, l1, l2, rates, clock, dram, guide = cells
    family, *models = numbers.split()
    ends = [(one.split("-")[0], one.split("-")[-1]) for one in models]
    each = [tuple(map(int, one.split())) for one in widths.split(", ")]
    l1_kib, ways = map(int, l1.split())
    l2_rate, l3_rate = map(int, rates.split())
    return Core(
        name=name,
        model=model,
        vendor=vendor,
        family=int(family, 16),
        models=tuple(range(int(low, 16), int(high, 16) + 1) for low, high in ends),
        widths={width: (fma, load) for width, fma, load in each},
        fma_latency=int(latency),
        tlb_entries=int(tlb),
        l1_bytes=l1_kib * 1024,
        l1_ways=ways,
        l2_bytes=tuple(int(size) * 1024 for size in l2.split()),
        l2_rate=l2_rate,
        l3_rate=l3_rate,
        max_clock_hz=float(f"{clock}e9"),
        dram_bytes_per_s=float(f"{dram}e9"),
        source=_GUIDES[guide],
    )


def core_of(vendor: str, family: int, model: int) -> Core | None:
    """Find a microarchitecture by what a processor says of itself.

    Examples
    --------
    >>> core_of("AuthenticAMD", 25, 17).name, core_of("0x41", 0, 0xD40).name
    ('Zen 4', 'Neoverse V1')
    >>> core_of("AuthenticAMD", 21, 2) is None
    True
    """
    for core in cores():
        is_of = core.vendor == vendor and core.family == family
        if is_of and any(model in models for models in core.models):
            return core
    return None
