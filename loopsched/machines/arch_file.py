"""Read and write architecture files; the format is in docs/architectures.md."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from loopsched.base.arguments import near, show
from loopsched.base.errors import ArchError, InputError, nearest
from loopsched.base.files import MEBIBYTE, read_text
from loopsched.base.resources import resource_dir, resource_names
from loopsched.base.units import Kind, parse_quantity
from loopsched.base.yaml_text import parse_yaml
from loopsched.machines.arch import Arch, Constant
from loopsched.machines.arch import buffer_arch as buffer_arch
from loopsched.machines.arch_format import COMPUTE_KEYS, CONSTANT_KINDS, LEVEL_KEYS, TOP_KEYS
from loopsched.machines.arch_format import arch_schema as arch_schema
from loopsched.machines.arch_format import arch_to_dict as arch_to_dict
from loopsched.machines.gpu_limits import GPU_KEYS, Gpu
from loopsched.machines.levels import KINDS, Compute, Level

_BASE_UNIT: dict[Kind, str] = {
    "bytes": "B",
    "bandwidth": "B/s",
    "bandwidth_per_cycle": "B/cycle",
    "frequency": "Hz",
    "time": "s",
    "cycles": "cycles",
    "macs_per_cycle": "MAC/cycle",
    "flop_rate": "FLOP/s",
    "energy_per_byte": "pJ/B",
    "energy_per_mac": "pJ/MAC",
}
_SUFFIXES = (".yaml", ".yml", ".json")
_MISSING = object()
_T = TypeVar("_T")


def arch_names() -> tuple[str, ...]:
    """List the architectures that loopsched ships.

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
        A name such as ``titan_v``; or a path, told apart by its suffix
        (``.yaml``, ``.yml``, ``.json``) or a separator.

    Raises
    ------
    ArchError
        If there is no such architecture, or the file is not valid; the
        message holds every fault, with its place in the file.

    Examples
    --------
    >>> load_arch("titan_v").level("L2").capacity_bytes
    4718592
    """
    path = _find(name_or_path)
    where = str(name_or_path)
    text = read_text(
        path, "an architecture file", most_bytes=MEBIBYTE, error=ArchError, where=where
    )
    try:
        data = parse_yaml(text)
    except InputError as error:
        raise ArchError.joined(where, error.problems) from None
    return arch_from_dict(data, where=where)


def arch_from_dict(data: object, where: str = "architecture") -> Arch:
    """Build an architecture from the data of a file.

    Parameters
    ----------
    data : dict
        As `arch_to_dict` writes it, or as parsed from YAML or JSON.
    where : str
        File or place, for messages.

    Raises
    ------
    ArchError
        If anything is wrong; all faults at once.

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
    if name_or_path in arch_names():
        return resource_dir("archs") / f"{name_or_path}.yaml"
    raise ArchError(
        f"no architecture '{name_or_path}'; {nearest(name_or_path, arch_names())}; "
        "a file of your own needs its suffix, such as .yaml"
    )


@dataclass(slots=True)
class _Reader:
    """Collects faults while values are read; a faulty value reads as None."""

    faults: list[str] = field(default_factory=list)

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

    def flag(self, place: str, data: object, default: bool) -> bool:
        if data is _MISSING:
            return default
        words = {"true": True, "yes": True, "false": False, "no": False}
        if isinstance(data, bool):
            return data
        if isinstance(data, str) and data.casefold() in words:
            return words[data.casefold()]
        self.fault(place, f"must be true or false, not {show(data)}")
        return default

    def choice(self, place: str, data: object, allowed: tuple[str, ...], default: str = "") -> Any:
        if data is _MISSING and default:
            return default
        word = self.text(place, data, required=True)
        if word and word not in allowed:
            self.fault(place, f"unknown '{word}'; {nearest(word, allowed)}")
            return None
        return word or None

    def sourced(self, place: str, data: object, sources: dict[str, str]) -> object:
        """Take a number apart from its source: ``{value: .., source: ..}`` or bare."""
        if not isinstance(data, Mapping):
            return data
        found = self.mapping(place, data, ("value", "source"))
        source = self.text(f"{place}.source", found.get("source", _MISSING))
        if source:
            sources[place.rpartition("].")[2].removeprefix("compute.")] = source
        return found.get("value", _MISSING)

    def number(
        self,
        place: str,
        data: object,
        sources: dict[str, str],
        *kinds: Kind,
        required: bool = False,
    ) -> tuple[int | float, Kind] | None:
        """Read a quantity in the base unit of its kind."""
        value = self.sourced(place, data, sources) if data is not _MISSING else _MISSING
        if value is _MISSING or value == "":
            if required or data is not _MISSING:
                self.fault(place, "is missing")
            return None
        try:
            exact, kind = parse_quantity(value, *kinds)
            return (int(exact) if exact.denominator == 1 and kind != "time" else float(exact)), kind
        except (InputError, OverflowError) as error:
            self.fault(place, str(error))
            return None

    def count(self, place: str, data: object, sources: dict[str, str]) -> int | None:
        """Read a whole number of things, which needs no unit."""
        value = self.sourced(place, data, sources)
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
            return value
        shown = "is missing" if value in (_MISSING, "") else f"not {show(value)}"
        self.fault(place, f"must be a whole number >= 1, {shown}")
        return None

    def share(self, place: str, data: object, sources: dict[str, str]) -> float | None:
        """Read a share, from above 0 to 1, which needs no unit."""
        value = self.sourced(place, data, sources)
        try:
            number = math.nan if isinstance(value, bool) else float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if 0 < number <= 1:
            return number
        shown = "is missing" if value in (_MISSING, "") else f"not {show(value)}"
        self.fault(place, f"must be a number above 0 and at most 1, {shown}")
        return None

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
    gpu = _read_gpu(reader, found.get("gpu", _MISSING))
    constants = _read_constants(reader, found.get("constants", _MISSING))
    if reader.faults or compute is None:
        return None
    return reader.build("", lambda: Arch(name, levels, compute, title, constants, notes, gpu))


def _read_levels(reader: _Reader, data: object, compute: Compute | None) -> tuple[Level, ...]:
    if not isinstance(data, list) or not data:
        shown = "is missing" if data in (_MISSING, "") else f"not {show(data)}"
        reader.fault("levels", f"must be a list, outermost level first, {shown}")
        return ()
    found = [
        reader.mapping(f"levels[{index}]", entry, LEVEL_KEYS) for index, entry in enumerate(data)
    ]
    _check_order(reader, found)
    levels: list[Level | None] = []
    outer: _Boundary = _Boundary()
    for index, entry in enumerate(found):
        level, outer = _read_level(reader, f"levels[{index}]", entry, outer, compute)
        levels.append(level)
    if outer.bandwidth is not None:
        reader.fault(
            f"levels[{len(found) - 1}].bandwidth",
            "is what a level delivers inward, and this is the innermost level; leave it out",
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
    sources: tuple[tuple[str, str], ...] = ()


def _read_level(
    reader: _Reader, place: str, data: dict[str, Any], outer: _Boundary, compute: Compute | None
) -> tuple[Level | None, _Boundary]:
    before = len(reader.faults)
    sources: dict[str, str] = {}
    take = _taker(data)

    def number(key: str, kind: Kind) -> Any:
        found = reader.number(f"{place}.{key}", take(key), sources, kind)
        return None if found is None else found[0]

    kind = reader.choice(f"{place}.kind", take("kind"), KINDS)
    buffers = _read_buffers(reader, f"{place}.tensor_capacity", take("tensor_capacity"), sources)
    capacity = number("capacity", "bytes")
    if capacity is None and "capacity" not in data and buffers:
        capacity = sum(size for _, size in buffers)
    instances = 1
    if "instances" in data:
        instances = reader.count(f"{place}.instances", data["instances"], sources) or 1
    energy = number("energy", "energy_per_byte")
    fields: dict[str, Any] = {
        "instances": instances,
        "unit": reader.text(f"{place}.unit", take("unit")) or None,
        "line_bytes": number("line", "bytes"),
        "holds": _read_names(reader, f"{place}.holds", take("holds")),
        "may_hold": _read_names(reader, f"{place}.may_hold", take("may_hold")) or (),
        "tensor_capacity_bytes": buffers,
        "write_policy": reader.choice(
            f"{place}.write_policy", take("write_policy"), ("back", "through"), "back"
        ),
        "accumulate": reader.choice(
            f"{place}.accumulate", take("accumulate"), ("level", "registers"), "level"
        ),
        "double_buffered": reader.flag(f"{place}.double_buffered", take("double_buffered"), False),
        "halo_reuse": reader.flag(f"{place}.halo_reuse", take("halo_reuse"), True),
        "effective_capacity_bytes": number("effective_capacity", "bytes"),
        "energy_pj_per_byte": None if energy is None else float(energy),
    }
    name = reader.text(f"{place}.name", take("name"), required=True)
    boundary = _read_boundary(reader, place, data, compute)
    if len(reader.faults) > before:
        return None, boundary
    return reader.build(
        place,
        lambda: Level(
            name,
            kind,
            capacity,
            bandwidth_bytes_per_s=outer.bandwidth,
            peak_bandwidth_bytes_per_s=outer.peak,
            sources=tuple(sources.items()) + outer.sources,
            **fields,
        ),
    ), boundary


def _read_boundary(
    reader: _Reader, place: str, data: dict[str, Any], compute: Compute | None
) -> _Boundary:
    sources: dict[str, str] = {}
    values: list[float | None] = []
    per_cycle = False
    clocks = (compute.clock_hz, compute.max_clock_hz) if compute else (1.0, 1.0)
    for key, clock in zip(("bandwidth", "peak_bandwidth"), clocks, strict=True):
        found = reader.number(
            f"{place}.{key}", _taker(data)(key), sources, "bandwidth", "bandwidth_per_cycle"
        )
        if found is None:
            values.append(None)
            continue
        value, kind = found
        per_cycle = per_cycle or (key == "bandwidth" and kind == "bandwidth_per_cycle")
        values.append(float(value) * clock if kind == "bandwidth_per_cycle" else float(value))
    bandwidth, peak = values
    if bandwidth is None and peak is not None and "bandwidth" not in data:
        reader.fault(f"{place}.peak_bandwidth", "needs a bandwidth beside it")
    if per_cycle and peak is None and bandwidth is not None:
        peak = bandwidth / clocks[0] * clocks[1]
    return _Boundary(bandwidth, peak, tuple(sources.items()))


def _read_buffers(
    reader: _Reader, place: str, data: object, sources: dict[str, str]
) -> tuple[tuple[str, int], ...]:
    if data is _MISSING:
        return ()
    buffers = []
    for name, size in reader.mapping(place, data, None).items():
        found = reader.number(f"{place}.{name}", size, sources, "bytes")
        if found is not None:
            buffers.append((name, int(found[0])))
    return tuple(buffers)


def _read_names(reader: _Reader, place: str, data: object) -> tuple[str, ...] | None:
    if data is _MISSING:
        return None
    if not isinstance(data, (list, tuple)) or not all(isinstance(name, str) for name in data):
        reader.fault(place, f"must be a list of tensors or roles, not {show(data)}")
        return None
    return tuple(data)


def _read_compute(reader: _Reader, data: object) -> Compute | None:
    if data is _MISSING:
        reader.fault("compute", "is missing")
        return None
    before = len(reader.faults)
    found = reader.mapping("compute", data, COMPUTE_KEYS)
    take = _taker(found)
    sources: dict[str, str] = {}
    units = reader.count("compute.units", take("units"), sources)
    clock = reader.number("compute.clock", take("clock"), sources, "frequency", required=True)
    top = reader.number("compute.max_clock", take("max_clock"), sources, "frequency")
    energy = reader.number("compute.energy", take("energy"), sources, "energy_per_mac")
    storage = reader.number("compute.storage", take("storage"), sources, "bytes")
    macs = []
    for name, rate in reader.mapping("compute.macs", take("macs"), None).items():
        value = reader.number(f"compute.macs.{name}", rate, sources, "macs_per_cycle")
        if value is not None:
            macs.append((name, value[0]))
    unit = reader.text("compute.unit", take("unit"), required=True)
    lane = reader.text("compute.lane_unit", take("lane_unit")) or None
    if len(reader.faults) > before or units is None or clock is None:
        return None
    hertz = float(clock[0])
    return reader.build(
        "compute",
        lambda: Compute(
            unit,
            units,
            hertz,
            float(top[0]) if top else hertz,
            tuple(macs),
            lane,
            float(energy[0]) if energy else None,
            tuple(sources.items()),
            int(storage[0]) if storage else None,
        ),
    )


def _read_gpu(reader: _Reader, data: object) -> Gpu | None:
    if data is _MISSING:
        return None
    before = len(reader.faults)
    found = reader.mapping("gpu", data, [entry.key for entry in GPU_KEYS])
    take = _taker(found)
    sources: dict[str, str] = {}
    values: dict[str, Any] = {}
    for entry in GPU_KEYS:
        place, value = f"gpu.{entry.key}", take(entry.key)
        if value is _MISSING and not entry.required:
            continue
        if entry.kind == "count":
            values[entry.field] = reader.count(place, value, sources)
        elif entry.kind == "word":
            values[entry.field] = reader.choice(
                place, reader.sourced(place, value, sources), entry.words
            )
        elif entry.kind == "share":
            values[entry.field] = reader.share(place, value, sources)
        else:
            number = reader.number(place, value, sources, entry.kind, required=True)
            values[entry.field] = None if number is None else number[0]
    if len(reader.faults) > before:
        return None
    named = tuple((place.removeprefix("gpu."), source) for place, source in sources.items())
    return reader.build("", lambda: Gpu(**values, sources=named))


def _read_constants(reader: _Reader, data: object) -> tuple[Constant, ...]:
    if data is _MISSING:
        return ()
    constants = []
    for name, entry in reader.mapping("constants", data, None).items():
        sources: dict[str, str] = {}
        found = reader.number(f"constants.{name}", entry, sources, *CONSTANT_KINDS)
        if found is not None:
            source = next(iter(sources.values()), "")
            constants.append(Constant(name, found[0], _BASE_UNIT[found[1]], source))
    return tuple(constants)


def _taker(data: dict[str, Any]) -> Callable[[str], object]:
    return lambda key: data.get(key, _MISSING)
