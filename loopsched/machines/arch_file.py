"""Read and write architecture files; the format is in docs/architectures.md."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from loopsched.base.arguments import is_count, near, show
from loopsched.base.errors import ArchError, InputError, nearest
from loopsched.base.files import MEBIBYTE, read_text
from loopsched.base.resources import resource_dir, resource_names
from loopsched.base.units import Kind, base_unit, parse_quantity
from loopsched.base.yaml_text import parse_yaml
from loopsched.machines.arch import Arch, Constant
from loopsched.machines.arch import buffer_arch as buffer_arch
from loopsched.machines.arch_format import CONSTANT_KINDS, RATES, TOP_KEYS
from loopsched.machines.arch_format import arch_schema as arch_schema
from loopsched.machines.arch_format import arch_to_dict as arch_to_dict
from loopsched.machines.cpu import CPU_KEYS, Cpu
from loopsched.machines.gpu_limits import GPU_KEYS, Gpu
from loopsched.machines.keys import Key, Sources
from loopsched.machines.levels import BOUNDARY, COMPUTE_KEYS, LEVEL_KEYS, Compute, Level

_SUFFIXES = (".yaml", ".yml", ".json")
_FLOATS = ("frequency", "energy_per_byte", "energy_per_mac", "time")  # others may be whole
HOST = "host"
_MISSING = object()
_T = TypeVar("_T")


def arch_names() -> tuple[str, ...]:
    """List the architectures that loopsched ships.

    See Also
    --------
    load_arch, workload_names

    Examples
    --------
    >>> "titan_v" in arch_names()
    True
    """
    return resource_names("archs", ".yaml")


def load_arch(name_or_path: str | Path) -> Arch:
    """Load an architecture: a shipped one by name, or a file.

    Parameters
    ----------
    name_or_path : str or pathlib.Path
        A name such as ``titan_v``, in any case; ``host``, this machine's CPU; or a
        path, told apart by its suffix (``.yaml``, ``.yml``, ``.json``) or a
        separator.

    Raises
    ------
    ArchError
        If there is no such architecture, or the file is not valid; the
        message holds every fault, with its place in the file.

    See Also
    --------
    arch_names, buffer_arch

    Examples
    --------
    >>> load_arch("titan_v").level("L2").capacity_bytes
    4718592
    """
    if name_or_path == HOST:
        from loopsched.machines.host import host_data

        return arch_from_dict(host_data(), where=HOST)
    path = _find(name_or_path)
    where = str(name_or_path)
    text = read_text(
        path, "an architecture file", most_bytes=MEBIBYTE, error=ArchError, where=where
    )
    try:
        data = parse_yaml(text)
    except InputError as error:
        raise ArchError.joined(where, error.problems) from None
    if isinstance(data, list) and len(data) == 1 and isinstance(data[0], dict):
        # As `loopsched archs NAME --format json` prints it.
        data = {key: value for key, value in data[0].items() if key != "digest"}
    return arch_from_dict(data, where=where)


def as_arch(arch: object) -> Arch:
    """Give an architecture as it is, or load it by its name or its file.

    Raises
    ------
    ArchError
        As `load_arch` does, and if it is none of these.

    Examples
    --------
    >>> as_arch("titan_v").compute.units
    80
    """
    if isinstance(arch, Arch):
        return arch
    if isinstance(arch, (str, os.PathLike)):
        return load_arch(os.fspath(arch))
    raise ArchError(f"arch is {show(arch)}; an Arch is needed, or the name or the file of one")


def arch_from_dict(data: object, where: str = "architecture") -> Arch:
    """Build an architecture from the data of a file; an ArchError has all faults.

    Parameters
    ----------
    data : dict
        As `arch_to_dict` writes it, or as parsed from YAML or JSON.
    where : str
        File or place, for messages.

    Examples
    --------
    >>> arch = load_arch("titan_v")
    >>> arch_from_dict(arch_to_dict(arch)) == arch
    True
    """
    reader = _Reader()
    arch = _read_arch(reader, data)
    if reader.faults or arch is None:
        raise ArchError.joined(where, reader.faults)
    return arch


def _find(name_or_path: object) -> Path:
    if isinstance(name_or_path, Path):
        return name_or_path
    if not isinstance(name_or_path, str) or not name_or_path:
        raise ArchError(f"an architecture is a name or a path, not {show(name_or_path)}")
    path = Path(name_or_path)
    if path.suffix in _SUFFIXES or "/" in name_or_path or "\\" in name_or_path:
        return path
    name = re.sub(r"[ -]", "_", name_or_path.casefold())
    if name in arch_names():
        return resource_dir("archs") / f"{name}.yaml"
    raise ArchError(
        f"no architecture '{name_or_path}'; {_near(name)}; "
        "a file of your own needs its suffix, such as .yaml"
    )


def _near(name: str) -> str:
    """Say which machines may be meant: those of its family, if it has one."""
    names = (*arch_names(), HOST)
    family = _family(name)
    kin = [one for one in names if family and _family(one) == family]
    if not kin:
        return nearest(name, names)
    return f"{nearest(name, kin, 'of that family')}; 'loopsched archs' lists all {len(names)}"


def _family(name: str) -> str:
    """Cut a name at its first digit or underscore: ``rtx_4090`` is of ``rtx``."""
    return re.split(r"[\d_]", name, maxsplit=1)[0]


@dataclass(slots=True)
class _Reader:
    """Collects faults while values are read; a faulty value reads as None."""

    faults: list[str] = field(default_factory=list)
    sources: dict[str, str] = field(default_factory=dict)  # of each place

    def fault(self, place: str, message: str) -> None:
        self.faults.append(f"{place}: {message}" if place else message)

    def mapping(self, place: str, data: object, keys: Iterable[str] | None) -> dict[str, Any]:
        """Check that data is a mapping, without keys that mean nothing."""
        if not isinstance(data, Mapping):
            self.fault(place, f"must be a mapping of keys to values, not {show(data)}")
            return {}
        known = None if keys is None else tuple(keys)
        found: dict[str, Any] = {}
        for key, value in data.items():
            if not isinstance(key, str) or (known is not None and key not in known):
                hint = near(key, known) if known else "keys are words"
                self.fault(place, f"unknown key {show(key)}; {hint}")
            else:
                found[key] = value
        return found

    def text(self, place: str, data: object, required: bool = False) -> str:
        if data is _MISSING and not required:
            return ""
        if data is _MISSING or data == "":
            self.fault(place, "is missing")
        elif not isinstance(data, str):
            self.fault(place, f"must be text, not {show(data)}")
        else:
            return data
        return ""

    def flag(self, place: str, data: object) -> bool | None:
        words = {"true": True, "yes": True, "false": False, "no": False}
        if isinstance(data, bool):
            return data
        if isinstance(data, str) and data.casefold() in words:
            return words[data.casefold()]
        self.fault(place, f"must be true or false, not {show(data)}")
        return None

    def choice(self, place: str, data: object, allowed: tuple[str, ...]) -> str | None:
        word = self.text(place, data, required=True)
        if word and word not in allowed:
            self.fault(place, f"unknown '{word}'; {nearest(word, allowed)}")
            return None
        return word or None

    def names(self, place: str, data: object) -> tuple[str, ...] | None:
        if isinstance(data, (list, tuple)) and all(isinstance(name, str) for name in data):
            return tuple(data)
        self.fault(place, f"must be a list of names, not {show(data)}")
        return None

    def sourced(self, place: str, data: object) -> object:
        """Take a number apart from its source: ``{value: .., source: ..}`` or bare."""
        if not isinstance(data, Mapping):
            return data
        found = self.mapping(place, data, ("value", "source"))
        source = self.text(f"{place}.source", found.get("source", _MISSING))
        if source:
            self.sources[place] = source
        return found.get("value", _MISSING)

    def number(self, place: str, data: object, *kinds: Kind) -> tuple[int | float, Kind] | None:
        """Read a quantity in the base unit of its kind."""
        value = self.sourced(place, data)
        if value is _MISSING or value == "":
            self.fault(place, "is missing")
            return None
        try:
            exact, kind = parse_quantity(value, *kinds)
            return (int(exact) if exact.denominator == 1 and kind != "time" else float(exact)), kind
        except (InputError, OverflowError) as error:
            self.fault(place, str(error))
            return None

    def unlike(self, place: str, value: object, wanted: str) -> None:
        """Add the fault of a value that is missing, or is not what is wanted."""
        is_missing = value in (_MISSING, "")
        refusal = f"must be {wanted.rstrip(',')}, not {show(value)}"
        self.fault(place, f"is missing; {wanted} is needed" if is_missing else refusal)

    def count(self, place: str, data: object) -> int | None:
        """Read a whole number of things, which needs no unit."""
        value = self.sourced(place, data)
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
            value = int(value)
        if is_count(value):
            return value
        self.unlike(place, value, "a whole number >= 1")
        return None

    def share(self, place: str, data: object) -> float | None:
        """Read a share, from above 0 to 1, which needs no unit."""
        value = self.sourced(place, data)
        try:
            number = math.nan if isinstance(value, bool) else float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if 0 < number <= 1:
            return number
        self.unlike(place, value, "a number above 0 and at most 1")
        return None

    def values(self, place: str, data: dict[str, Any], keys: Sequence[Key]) -> dict[str, Any]:
        """Read what a part states, as fields of its object; what may be left out is left out."""
        found: dict[str, Any] = {}
        for entry in keys:
            value, where = data.get(entry.key, _MISSING), f"{place}.{entry.key}"
            if value is _MISSING and not entry.required:
                continue
            if not entry.of_each:
                found[entry.field] = self.value(where, value, entry)
            elif value is _MISSING:
                self.fault(where, "is missing")
            else:
                each = self.mapping(where, value, None).items()
                read = ((name, self.value(f"{where}.{name}", one, entry)) for name, one in each)
                found[entry.field] = tuple(read)
        return found

    def part(self, place: str, data: object, keys: Sequence[Key]) -> dict[str, Any] | None:
        """Read a part as fields of its object, sources among them; None after a fault."""
        before = len(self.faults)
        found = self.mapping(place, data, [entry.key for entry in keys])
        fields = self.values(place, found, keys)
        return None if len(self.faults) > before else fields | {"sources": self.sources_of(place)}

    def value(self, place: str, data: object, entry: Key) -> Any:
        match entry.kind:
            case "word":
                return self.text(place, data, required=True)
            case "choice":
                return self.choice(place, self.sourced(place, data), entry.words)
            case "flag":
                return self.flag(place, data)
            case "names":
                return self.names(place, self.sourced(place, data))
            case "count":
                return self.count(place, data)
            case "share":
                return self.share(place, data)
            case "rate":
                return self.number(place, data, *RATES)
            case kind:
                number = self.number(place, data, kind)
        if number is None:
            return None
        return float(number[0]) if kind in _FLOATS else number[0]

    def sources_of(self, place: str, keys: Iterable[str] | None = None) -> Sources:
        """List the sources of a part's numbers, or of some of them."""
        found = (
            (key, source)
            for where, source in self.sources.items()
            if (key := where.removeprefix(f"{place}.")) != where
        )
        return tuple((key, source) for key, source in found if keys is None or key in keys)

    def build(self, place: str, make: Callable[[], _T]) -> _T | None:
        """Build an object, turning its own complaints into faults of the file."""
        try:
            return make()
        except ArchError as error:
            for problem in error.problems:
                self.fault(place, problem)
            return None


def _read_arch(reader: _Reader, data: object) -> Arch | None:
    found = reader.mapping("", data, TOP_KEYS)
    if not found:
        if not reader.faults:
            reader.fault("", "is empty")
        return None
    name = reader.text("name", found.get("name", _MISSING), required=True)
    title = reader.text("title", found.get("title", _MISSING))
    notes = reader.text("notes", found.get("notes", _MISSING))
    compute = _read_compute(reader, found.get("compute", _MISSING))
    levels = _read_levels(reader, found.get("levels", _MISSING), compute)
    gpu = _read_part(reader, "gpu", found, GPU_KEYS, Gpu)
    cpu = _read_part(reader, "cpu", found, CPU_KEYS, Cpu)
    constants = _read_constants(reader, found.get("constants", _MISSING))
    if reader.faults or compute is None:
        return None
    return reader.build("", lambda: Arch(name, levels, compute, title, constants, notes, gpu, cpu))


def _read_levels(reader: _Reader, data: object, compute: Compute | None) -> tuple[Level, ...]:
    if not isinstance(data, list) or not data:
        reader.unlike("levels", data, "a list, outermost level first,")
        return ()
    known = [entry.key for entry in LEVEL_KEYS]
    found = [reader.mapping(f"levels[{index}]", entry, known) for index, entry in enumerate(data)]
    _check_order(reader, found)
    levels: list[Level | None] = []
    outer: _Boundary = _Boundary()
    for index, entry in enumerate(found):
        place = f"levels[{index}]"
        levels.append(_read_level(reader, place, entry, outer))
        outer = _read_boundary(reader, place, entry, compute)
    if outer.bandwidth is not None:
        reader.fault(
            f"levels[{len(found) - 1}].bandwidth",
            "leave it out: it is what a level delivers inward, and this is the innermost level",
        )
    return tuple(level for level in levels if level is not None)


def _check_order(reader: _Reader, levels: list[dict[str, Any]]) -> None:
    """Check the optional `inside` of each level against the order of the list."""
    names = [str(level.get("name", "")) for level in levels]
    for index, level in enumerate(levels):
        parent = level.get("inside")
        place = f"levels[{index}].inside"
        expected = names[index - 1] if index else None
        if parent is None or parent == expected:
            continue
        if not isinstance(parent, str) or parent not in names:
            reader.fault(place, f"unknown level {show(parent)}; {near(parent, names)}")
        elif names.index(parent) >= index:
            reader.fault(
                place,
                f"'{names[index]}' inside '{parent}' closes a cycle: the list goes from the "
                "outermost level to the innermost",
            )
        else:
            reader.fault(place, f"must be '{expected}', the level before it, not '{parent}'")


@dataclass(frozen=True, slots=True)
class _Boundary:
    """What a level delivers inward: it is kept with the next inner level."""

    bandwidth: float | None = None
    peak: float | None = None
    sources: Sources = ()


def _read_level(
    reader: _Reader, place: str, data: dict[str, Any], outer: _Boundary
) -> Level | None:
    before = len(reader.faults)
    own = [entry for entry in LEVEL_KEYS if entry.field and entry.key not in BOUNDARY]
    fields = reader.values(place, data, own)
    if len(reader.faults) > before:
        return None
    buffers = fields.get("tensor_capacity_bytes", ())
    fields.setdefault("capacity_bytes", sum(size for _, size in buffers) or None)
    return reader.build(
        place,
        lambda: Level(
            **fields,
            bandwidth_bytes_per_s=outer.bandwidth,
            peak_bandwidth_bytes_per_s=outer.peak,
            sources=reader.sources_of(place) + outer.sources,
        ),
    )


def _read_boundary(
    reader: _Reader, place: str, data: dict[str, Any], compute: Compute | None
) -> _Boundary:
    found = reader.values(place, data, [entry for entry in LEVEL_KEYS if entry.key in BOUNDARY])
    clocks = (compute.clock_hz, compute.max_clock_hz) if compute else (1.0, 1.0)
    read = [found.get("bandwidth_bytes_per_s"), found.get("peak_bandwidth_bytes_per_s")]
    bandwidth, peak = (
        None if each is None else float(each[0]) * (clock if each[1] == RATES[1] else 1.0)
        for each, clock in zip(read, clocks, strict=True)
    )
    if peak is not None and "bandwidth" not in data:
        reader.fault(f"{place}.peak_bandwidth", "needs a bandwidth beside it")
    if read[0] is not None and read[0][1] == RATES[1] and peak is None and bandwidth is not None:
        peak = bandwidth / clocks[0] * clocks[1]
    return _Boundary(bandwidth, peak, reader.sources_of(place, BOUNDARY))


def _read_compute(reader: _Reader, data: object) -> Compute | None:
    if data is _MISSING:
        reader.fault("compute", "is missing")
        return None
    fields = reader.part("compute", data, COMPUTE_KEYS)
    if fields is None:
        return None
    fields.setdefault("max_clock_hz", fields["clock_hz"])
    return reader.build("compute", lambda: Compute(**fields))


def _read_part(
    reader: _Reader, name: str, data: dict[str, Any], keys: Sequence[Key], make: Callable[..., _T]
) -> _T | None:
    fields = reader.part(name, data[name], keys) if name in data else None
    return None if fields is None else reader.build("", lambda: make(**fields))


def _read_constants(reader: _Reader, data: object) -> tuple[Constant, ...]:
    if data is _MISSING:
        return ()
    constants = []
    for name, entry in reader.mapping("constants", data, None).items():
        place = f"constants.{name}"
        found = reader.number(place, entry, *CONSTANT_KINDS)
        if found is not None:
            source = reader.sources.get(place, "")
            constants.append(Constant(name, found[0], base_unit(found[1]), source))
    return tuple(constants)
