"""The host's CPU as an architecture: what the system says, what is known, what is measured."""

from __future__ import annotations

import json
import mmap
import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from zlib import crc32

from loopsched.base.errors import ArchError, InputError
from loopsched.base.files import cache_folder, write_text
from loopsched.base.units import count
from loopsched.machines.host_facts import Cache, Host
from loopsched.machines.host_linux import read_linux
from loopsched.machines.host_macos import read_macos, sysctl_text
from loopsched.machines.keys import is_positive
from loopsched.machines.microarchitectures import GLANCE, Core, cores


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured on a machine, where it was; rates by the name of the outer level.

    Parameters
    ----------
    clock_hz : float or None, hertz
    bandwidths : dict of str to float, bytes a second
        That all cores together read from a level.
    how : str
    fma_per_cycle, load_per_cycle : int or None
    fma_latency : float or None, cycles
        They count where they are better than what is known.
    constants : tuple of (str, str, str)
        Further numbers: name, value with its unit, what was measured.
    """

    clock_hz: float | None
    bandwidths: dict[str, float]
    how: str
    fma_per_cycle: int | None = None
    load_per_cycle: int | None = None
    fma_latency: float | None = None
    constants: tuple[tuple[str, str, str], ...] = ()


def read_host() -> Host:
    """Read what the operating system says of the CPU.

    Raises
    ------
    ArchError
        If it cannot be read.
    """
    if sys.platform == "darwin":
        return read_macos(sysctl_text())
    if not sys.platform.startswith("linux"):
        raise ArchError(
            f"'host' reads Linux and macOS, not {sys.platform}; give an architecture file instead"
        )
    return read_linux(Path("/"), os.sched_getaffinity(0), mmap.PAGESIZE)


@lru_cache(maxsize=1)
def host_data() -> dict[str, Any]:
    """Describe this computer's CPU as the data of an architecture file.

    What had to be measured is kept in a file for later processes, until
    `forget_measured`, or until anything that the system says is another.

    Raises
    ------
    ArchError
        If it cannot be read, or nothing is known of such CPUs.
    """
    host = read_host()
    if host.core is None:
        raise ArchError(
            f"nothing is known of '{host.title}' ({host.identity}), such as its multiply-adds "
            "per cycle; 'loopsched calibrate cpu --arch-out host.yaml' measures them; "
            f"known are {', '.join(dict.fromkeys(core.name for core in cores()))}"
        )
    kept = _kept(host)
    measured = _read_kept(kept)
    if measured is None:
        measured = quick(host)
        with suppress(OSError, InputError):
            kept.parent.mkdir(parents=True, exist_ok=True)
            write_text(kept, json.dumps([measured.clock_hz, measured.bandwidths["DRAM"]]))
    return data_of(host, measured)


def forget_measured() -> None:
    """Measure this computer's CPU again when it is asked for next.

    Raises
    ------
    ArchError
        If it cannot be read.
    """
    host_data.cache_clear()
    with suppress(OSError):
        _kept(read_host()).unlink()


def _kept(host: Host) -> Path:
    """Name the file that keeps what was measured of a machine."""
    folder = cache_folder() or Path(os.devnull)  # no folder: nothing is kept
    return folder / f"host-{crc32(repr(host).encode()):08x}.json"


def _read_kept(path: Path) -> Measured | None:
    """Read what was measured, unless it is not what `host_data` writes."""
    with suppress(OSError, ValueError, TypeError):
        clock, memory = json.loads(path.read_bytes())
        if (clock is None or is_positive(clock)) and is_positive(memory):
            return Measured(clock, {"DRAM": memory}, _HOW)
    return None


def quick(host: Host) -> Measured:
    """Measure what the system does not say: the bandwidth of memory, mostly the clock."""
    from loopsched.machines.timing import measured_clock_hz, read_rate, rounded

    clock = None if host.clock_hz is not None else measured_clock_hz()
    last = host.caches[0]
    each = min(max(4 * last.capacity_bytes * last.instances, 2**26), 2**29) // host.n_cores
    rate = rounded(read_rate(host.n_cores, each, host.vector_bytes))
    return Measured(clock, {"DRAM": rate}, _HOW)


_HOW = "Measured here: {what}; rounded, and kept until 'loopsched detect' measures again"


def data_of(host: Host, measured: Measured) -> dict[str, Any]:
    """Write what was found as the data of an architecture file, every number with its source.

    Raises
    ------
    ArchError
        If a rate is neither known nor measured.
    """
    clock, max_clock = _clocks(host, measured)
    cpu = _cpu(host, measured)
    compute = {
        "unit": "core",
        "lane_unit": "lane",
        "units": {"value": host.n_cores, "source": host.read["cores"]},
        "clock": clock,
        "max_clock": max_clock,
        "macs": _rates(host, cpu["fma_per_cycle"]["value"]),
    }
    data = {
        "name": "host",
        "title": f"{host.title}, {count(host.n_cores, 'core')}"
        + (f" ({host.core.name})" if host.core else ""),
        "notes": " ".join((*host.notes, _LEFT_OUT)),
        "levels": _levels(host, measured, cpu),
        "compute": compute,
        "cpu": cpu,
    }
    if measured.constants:
        data["constants"] = {
            name: {"value": value, "source": measured.how.format(what=what)}
            for name, value, what in measured.constants
        }
    return data


_LEFT_OUT = (
    "Not modelled: simultaneous multithreading, NUMA distances, exclusive outer caches. Lanes "
    "count all multiply-adds that a core starts per cycle."
)


def _clocks(host: Host, measured: Measured) -> tuple[dict[str, str], dict[str, str]]:
    clock = host.clock_hz if host.clock_hz is not None else measured.clock_hz
    if clock is None:
        raise ArchError(f"no source gives the clock of '{host.title}'")
    source = host.read.get("clock", "")
    if host.clock_hz is None:
        source = measured.how.format(what="dependent additions, one per cycle")
    highest, why = 1.25 * clock, "Limit taken for bounds: a quarter above the clock"
    if host.max_clock_hz is not None and host.max_clock_hz >= clock:
        highest, why = host.max_clock_hz, host.read["clock"]
    elif host.core is not None and host.core.max_clock_hz >= clock:
        highest = host.core.max_clock_hz
        why = (
            f"Limit taken for bounds: the highest clock of any {host.core.name} of these model "
            "numbers (unverified)"
        )
    return (
        {"value": f"{clock!r} Hz", "source": source},
        {"value": f"{highest!r} Hz", "source": why},
    )


def _cpu(host: Host, measured: Measured) -> dict[str, Any]:
    core = host.core
    fma = load = latency = None
    source = f"{core.name}: {core.source}" if core else ""
    if core is not None:
        if host.vector_bytes not in core.widths:
            raise ArchError(
                f"'{host.title}' offers vectors of {host.vector_bytes} bytes; code for "
                f"{core.name} needs {' or '.join(map(str, core.widths))}, with fused multiply-adds"
            )
        fma, load = core.widths[host.vector_bytes]
        latency = float(core.fma_latency)
    found: dict[str, tuple[Any, Any]] = {
        "fma_per_cycle": (measured.fma_per_cycle, fma),
        "fma_latency": (measured.fma_latency, latency),
        "load_per_cycle": (measured.load_per_cycle, load),
    }
    cpu: dict[str, Any] = {"isa": host.isa}
    if core is not None:
        cpu["model"] = {
            "value": _model(core, host.features),
            "source": f"{GLANCE}: {host.identity}",
        }
    cpu["features"] = {"value": list(host.features), "source": host.read["features"]}
    cpu["vector"] = {
        "value": f"{host.vector_bytes} B",
        "source": f"Derived from {host.read['features']}",
    }
    is_wide = host.isa == "aarch64" or host.vector_bytes == 64
    cpu["vector_registers"] = {
        "value": 32 if is_wide else 16,
        "source": "The instruction set: 32 with AVX-512 and on AArch64, else 16",
    }
    for key, (here, known) in found.items():
        if here is None and known is None:
            raise ArchError(f"no source gives '{key}' of '{host.title}' ({host.identity})")
        # Other work makes a core seem slower than it is, and nothing makes it seem faster.
        better = min if key == "fma_latency" else max
        value = better(one for one in (known, here) if one is not None)
        text = f"{value!r} cycles" if key == "fma_latency" else value
        said = [source] if value == known else []
        said += [measured.how.format(what="multiply-adds and loads")] if value == here else []
        cpu[key] = {"value": text, "source": "; ".join(said)}
    cpu["page"] = {"value": f"{host.page_bytes} B", "source": host.read["page"]}
    if core is not None:
        cpu["tlb_entries"] = {"value": core.tlb_entries, "source": source}
    return cpu


def _model(core: Core, features: tuple[str, ...]) -> str:
    """Name a processor as LLVM does, which tells three by what they can do."""
    if core.model == "skylake-avx512":
        for feature, model in (("avx512bf16", "cooperlake"), ("avx512vnni", "cascadelake")):
            if feature in features:
                return model
    return core.model


def _rates(host: Host, fma: int) -> dict[str, Any]:
    """List the multiply-accumulates of a core a cycle, of each type that it has some for."""
    lanes = host.vector_bytes // 4 * fma
    noun = "multiply-add" if fma == 1 else "multiply-adds"
    has = set(host.features)
    tiles = {"bf16": ("amx-bf16", 512), "int8": ("amx-int8", 1024), "fp16": ("amx-fp16", 512)}
    products = {
        "fp16": (("avx512fp16", 2), ("fullfp16", 2), ("f16c", 1)),
        "bf16": (("bf16", 4), ("avx512bf16", 2), ("fma", 1), ("neon", 1)),
        "int8": (("i8mm", 8), ("dotprod", 4), ("avx512vnni", 4), ("avxvnni", 4), ("avx2", 2)),
    }
    rates = {
        "fp32": {
            "value": f"{lanes} MAC/cycle",
            "source": f"Derived: {host.vector_bytes // 4} lanes x {fma} {noun}",
        }
    }
    for name, choices in products.items():
        tile, macs = tiles[name]
        word, many = next(((word, many) for word, many in choices if word in has), ("", 0))
        if tile in has:
            source = f"Derived: {tile}, tiles of 16 x 16 in 16 cycles (Intel's manual, unverified)"
            rates[name] = {"value": f"{macs} MAC/cycle", "source": source}
        elif many:
            source = f"Derived: {word}, {many} x fp32, assuming as many instructions per cycle"
            rates[name] = {"value": f"{many * lanes} MAC/cycle", "source": source}
    return rates


def _unit(cache: Cache, host: Host) -> dict[str, Any]:
    if cache.instances == 1:
        return {}
    counts = {one.instances for one in host.caches if 1 < one.instances < host.n_cores}
    word = "cluster" if len(counts) == 1 else f"L{cache.level}_cluster"
    if cache.instances in (host.n_cores, host.n_sockets):
        word = "core" if cache.instances == host.n_cores else "socket"
    count = {"value": cache.instances, "source": f"{cache.source}, and the cores in use"}
    return {"unit": word, "instances": count}


def _levels(host: Host, measured: Measured, cpu: dict[str, Any]) -> list[dict[str, Any]]:
    """List the levels; each says what it delivers to the next."""
    levels: list[dict[str, Any]] = [{"name": "DRAM", "kind": "memory"}]
    for cache in host.caches:
        level = {"name": f"L{cache.level}", "kind": "cache", **_unit(cache, host)}
        level["capacity"] = {"value": f"{cache.capacity_bytes} B", "source": cache.source}
        level["line"] = {"value": f"{cache.line_bytes} B", "source": cache.source}
        if cache.ways:
            level["ways"] = {"value": cache.ways, "source": cache.source}
        levels.append(level)
    size = cpu["vector_registers"]["value"] * host.vector_bytes
    registers: dict[str, Any] = {"name": "registers", "kind": "scratchpad"}
    if host.n_cores > 1:
        registers |= {
            "unit": "core",
            "instances": {"value": host.n_cores, "source": host.read["cores"]},
        }
    registers["capacity"] = {
        "value": f"{size} B",
        "source": "Derived: vector registers x their bytes",
    }
    for level in levels:
        level |= _bandwidth(level["name"], host, measured, cpu["load_per_cycle"]["value"])
    return [*levels, registers]


def _bandwidth(name: str, host: Host, measured: Measured, loads: int) -> dict[str, Any]:
    """Say what a level delivers inward to all cores, and what it cannot exceed."""
    core, cores, vector = host.core, host.n_cores, host.vector_bytes
    here = measured.bandwidths.get(name)
    most = 2 * loads * vector * cores
    limit = {
        "value": f"{most} B/cycle",
        "source": "Limit taken for bounds: all that cores load from L1, and as much outward",
    }
    if name == "DRAM" and core is not None:
        value = max(core.dram_bytes_per_s * host.n_sockets, 2 * (here or 0.0))
        source = (
            f"Limit taken for bounds: most memory channels of any {core.name} of these model "
            "numbers (unverified)"
        )
        limit = {"value": f"{value!r} B/s", "source": source}
    if here is not None:
        source = measured.how.format(what=f"{cores} threads read from {name}")
        return {"bandwidth": {"value": f"{here!r} B/s", "source": source}, "peak_bandwidth": limit}
    rates = {
        "L1": loads * vector,
        "L2": core.l2_rate if core else 0,
        "L3": core.l3_rate if core else 0,
    }
    rate = rates.get(name) or None
    if rate is None:
        raise ArchError(f"no source gives the bandwidth of {name} of '{host.title}'")
    source = f"{core.name}: {core.source}: {rate} bytes per core and cycle" if core else ""
    if name == "L1":
        source = "Derived: loads per cycle x vector bytes x cores"
    return {
        "bandwidth": {"value": f"{rate * cores} B/cycle", "source": source},
        "peak_bandwidth": limit,
    }
