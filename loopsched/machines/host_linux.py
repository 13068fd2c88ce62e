"""What Linux says of the CPU: /proc/cpuinfo, /sys/devices/system/cpu, control groups."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from loopsched.base.errors import ArchError
from loopsched.machines.host_facts import Cache, Host, groups_in_use, llvm_features
from loopsched.machines.microarchitectures import Core, core_of

_CPUS = "sys/devices/system/cpu"
_UNITS = {"K": 1024, "M": 1024**2, "G": 1024**3}


def read_linux(root: Path, allowed: Collection[int], page_bytes: int) -> Host:
    """Read a machine's CPU.

    Parameters
    ----------
    root : pathlib.Path
        Where ``proc`` and ``sys`` are.
    allowed : collection of int
        Logical CPUs that this process may run on.
    page_bytes : int

    Raises
    ------
    ArchError
        If what is needed cannot be read, or is of another kind of processor.
    """
    known = _processors(root)
    first = next(iter(known.values()))
    isa = "x86-64" if "vendor_id" in first else "aarch64"
    if isa == "aarch64" and "CPU implementer" not in first:
        raise ArchError("/proc/cpuinfo is of neither an x86-64 nor an AArch64 processor")
    notes: list[str] = []
    cores = _physical(root, _fast(root, sorted(set(allowed) & set(known) or known), known, notes))
    n_all = len(cores)
    most = _quota(root)
    found = {cpu: _caches(root, cpu) for cpu in cores}
    cores = _even(cores, found, most)
    if len(cores) < n_all:
        notes.append(
            f"Of {n_all} cores, {len(cores)} are used: what the control group grants,"
            " and as many for each shared cache."
        )
    entry = known[cores[0]]
    core, identity = _identified(entry, isa)
    flags = entry.get("flags") or entry.get("Features", "")
    features = llvm_features(isa, flags)
    is_virtual = "hypervisor" in flags.split()
    if is_virtual:
        notes.append(
            "A virtual machine: its caches are shared with others, and may be reported wrongly."
        )
    caches = tuple(_corrected(cache, core, is_virtual) for cache in _merged(cores, found))
    if not caches and core is None:
        raise ArchError(f"no caches in /{_CPUS}/cpu{cores[0]}/cache, and none known of {identity}")
    clock, highest = _clocks(root, cores)
    sockets = {_text(root, f"cpu{cpu}/topology/physical_package_id") for cpu in cores}
    return Host(
        title=entry.get("model name") or (core.name if core else identity),
        identity=identity,
        isa=isa,
        core=core,
        features=features,
        vector_bytes=_vector_bytes(root, isa, features),
        cores=tuple(cores),
        n_cores=len(cores),
        caches=_completed(caches, core, len(cores)),
        page_bytes=page_bytes,
        clock_hz=clock,
        max_clock_hz=highest,
        n_sockets=len(sockets),
        read={
            "cores": f"/{_CPUS}/cpu*/topology, and what this process may use",
            "features": "/proc/cpuinfo",
            "page": "sysconf: SC_PAGE_SIZE",
            "clock": f"/{_CPUS}/cpu*/cpufreq: cpuinfo_max_freq and scaling_max_freq",
        },
        notes=tuple(notes),
    )


def _processors(root: Path) -> dict[int, dict[str, str]]:
    """Read /proc/cpuinfo: what it says of each logical CPU."""
    try:
        text = (root / "proc/cpuinfo").read_text(errors="replace")
    except OSError as error:
        raise ArchError(f"cannot read /proc/cpuinfo: {error.strerror}") from None
    found: dict[int, dict[str, str]] = {}
    for block in text.split("\n\n"):
        pairs = (line.partition(":") for line in block.splitlines())
        entry = {key.strip(): value.strip() for key, _, value in pairs}
        if entry.get("processor", "").isdigit():
            found[int(entry["processor"])] = entry
    if not found:
        raise ArchError("/proc/cpuinfo lists no processors")
    return found


def _identified(entry: dict[str, str], isa: str) -> tuple[Core | None, str]:
    try:
        if isa == "x86-64":
            vendor = entry["vendor_id"]
            family, model = int(entry.get("cpu family", 0)), int(entry.get("model", 0))
            return core_of(vendor, family, model), f"{vendor} family {family} model {model}"
        vendor, part = entry["CPU implementer"], int(entry.get("CPU part", "0"), 16)
        return core_of(vendor, 0, part), f"implementer {vendor} part {part:#x}"
    except ValueError as error:
        raise ArchError(f"/proc/cpuinfo names a processor in no numbers: {error}") from None


def _text(root: Path, name: str) -> str:
    with suppress(OSError):
        return (root / _CPUS / name).read_text().strip()
    return ""


def _count(root: Path, name: str) -> int:
    """Read a number; 0 if there is none."""
    text = _text(root, name)
    return int(text) if text.isascii() and text.isdigit() else 0


def numbers_of(text: str) -> Iterator[int]:
    """List the numbers of a text such as ``0-3,8``; what is none is passed over.

    Examples
    --------
    >>> list(numbers_of("0-3,8"))
    [0, 1, 2, 3, 8]
    """
    for low, high in re.findall(r"(?a:(\d{1,6})(?:-(\d{1,6}))?)", text):
        yield from range(int(low), int(high or low) + 1)


def _fast(
    root: Path, cpus: list[int], known: dict[int, dict[str, str]], notes: list[str]
) -> list[int]:
    """Of cores of several kinds, leave the fastest kind."""
    fast: set[int] = set(cpus)
    with suppress(OSError):
        fast = set(numbers_of((root / "sys/devices/cpu_core/cpus").read_text().strip()))
    kinds = {cpu: known[cpu].get("CPU part", "") for cpu in cpus}
    if len(set(kinds.values())) > 1:
        best = max(cpus, key=lambda cpu: (_count(root, f"cpu{cpu}/cpu_capacity"), -cpu))
        fast = {cpu for cpu in cpus if kinds[cpu] == kinds[best]}
    chosen = [cpu for cpu in cpus if cpu in fast]
    if not chosen:
        raise ArchError(
            "this process may use efficiency cores only, and nothing is known of them; "
            "let it use performance cores, or give an architecture file"
        )
    if len(chosen) < len(cpus):
        notes.append("Efficiency cores are left out.")
    return chosen


def _physical(root: Path, cpus: list[int]) -> list[int]:
    """Leave one logical CPU of each core."""
    seen: dict[str, int] = {}
    for cpu in cpus:
        place = f"cpu{cpu}/topology"
        own = _text(root, f"{place}/core_cpus_list") or _text(root, f"{place}/thread_siblings_list")
        seen.setdefault(own or str(cpu), cpu)
    return list(seen.values())


def _quota(root: Path) -> int:
    """Count the cores that control groups, of either version, let run at a time."""
    most = 2**31
    with suppress(OSError, ValueError):
        for line in (root / "proc/self/cgroup").read_text().splitlines():
            _, kinds, path = line.split(":", 2)
            if kinds and "cpu" not in kinds.split(","):
                continue
            base = root / "sys/fs/cgroup" / ("" if not kinds else "cpu")
            folder = base / path.strip("/")
            for each in (folder, *folder.parents):
                if each == base.parent:
                    break
                most = min(most, _granted(each))
    return max(1, most)


def _granted(folder: Path) -> int:
    with suppress(OSError, ValueError):
        quota, period = (folder / "cpu.max").read_text().split()
        return int(quota) // int(period) or 1
    with suppress(OSError, ValueError):
        quota, period = ((folder / f"cpu.cfs_{one}_us").read_text() for one in ("quota", "period"))
        if int(quota) > 0:
            return int(quota) // int(period) or 1
    return 2**31


def _caches(root: Path, cpu: int) -> list[tuple[int, Cache, int]]:
    """List the caches of a core that hold data: level, cache, the first CPU that shares it."""
    found = []
    for index in range(8):
        place = f"cpu{cpu}/cache/index{index}"
        size = re.fullmatch(r"(?a:([1-9]\d{0,8})([KMG]))", _text(root, f"{place}/size"))
        level = _count(root, f"{place}/level")
        if not size or not level or _text(root, f"{place}/type") == "Instruction":
            continue
        shared = next(numbers_of(_text(root, f"{place}/shared_cpu_list")), cpu)
        cache = Cache(
            level=level,
            capacity_bytes=int(size[1]) * _UNITS[size[2]],
            instances=1,
            line_bytes=_count(root, f"{place}/coherency_line_size") or 64,
            ways=_count(root, f"{place}/ways_of_associativity") or None,
            source=f"/{_CPUS}/cpu{cpu}/cache/index{index}",
        )
        found.append((level, cache, shared))
    return found


def _even(cores: list[int], found: dict[int, list[tuple[int, Cache, int]]], most: int) -> list[int]:
    """Leave as many cores in each shared cache."""
    shared: dict[int, int] = dict.fromkeys(cores, 0)
    for cpu in cores:
        shared[cpu] = max(found[cpu], default=(0, None, 0), key=lambda one: one[0])[2]
    chosen = groups_in_use(shared, most)
    counts = [len({one[2] for one in level}) for level in _by_level(chosen, found)]
    if any(len(chosen) % count for count in counts):
        return chosen[:1]
    return chosen


def _by_level(
    cores: list[int], found: dict[int, list[tuple[int, Cache, int]]]
) -> list[list[tuple[int, Cache, int]]]:
    levels: dict[int, list[tuple[int, Cache, int]]] = {}
    for cpu in cores:
        for one in found[cpu]:
            levels.setdefault(one[0], []).append(one)
    return [levels[level] for level in sorted(levels, reverse=True)]


def _merged(cores: list[int], found: dict[int, list[tuple[int, Cache, int]]]) -> list[Cache]:
    """Count the instances of each cache that all cores list, outermost first."""
    merged: list[Cache] = []
    for each in _by_level(cores, found):
        if len(each) == len(cores):
            n = len({one[2] for one in each})
            around = merged[-1].instances if merged else 1
            merged.append(replace(each[0][1], instances=max(n, around)))
    return merged


def _corrected(cache: Cache, core: Core | None, is_virtual: bool) -> Cache:
    """Set the caches of a core right where a virtual machine makes them up."""
    if core is None or not is_virtual or cache.level > 2:
        return cache
    sizes = (core.l1_bytes,) if cache.level == 1 else core.l2_bytes
    if cache.capacity_bytes in sizes or not sizes:
        return cache
    source = (
        f"{core.name}: a virtual machine's {cache.capacity_bytes} B in {cache.source} cannot be"
    )
    ways = core.l1_ways if cache.level == 1 else None
    return replace(cache, capacity_bytes=sizes[0], ways=ways, source=source)


def _completed(caches: tuple[Cache, ...], core: Core | None, n_cores: int) -> tuple[Cache, ...]:
    """Add the caches of a core where the system lists none."""
    levels = {cache.level for cache in caches}
    if core is None or 1 in levels:
        return caches
    source = f"{core.name}: the system lists no such cache ({core.source})"
    own = [Cache(1, core.l1_bytes, n_cores, 64, core.l1_ways, source)]
    if 2 not in levels and core.l2_bytes:
        own.insert(0, Cache(2, core.l2_bytes[0], n_cores, 64, None, source))
    return (*caches, *own)


def _vector_bytes(root: Path, isa: str, features: tuple[str, ...]) -> int:
    if isa == "x86-64":
        return 64 if "avx512f" in features else 32 if "avx" in features else 16
    with suppress(OSError, ValueError):
        if "sve" in features:
            return int((root / "proc/sys/abi/sve_default_vector_length").read_text())
    return 16


def _clocks(root: Path, cores: list[int]) -> tuple[float | None, float | None]:
    """Read the highest clock that is set, and the highest there is, in hertz."""
    if _text(root, f"cpu{cores[0]}/cpufreq/scaling_driver") == "acpi-cpufreq":
        return None, None  # its highest clock leaves out what a core may boost to
    lists = [
        [khz for cpu in cores if (khz := _count(root, f"cpu{cpu}/cpufreq/{name}"))]
        for name in ("scaling_max_freq", "cpuinfo_max_freq")
    ]
    now, highest = (1000.0 * min(each) if each else None for each in lists)
    most = 1000.0 * max(lists[1]) if lists[1] else None
    if now is None or highest is None:
        return highest, most
    return min(now, highest), most
