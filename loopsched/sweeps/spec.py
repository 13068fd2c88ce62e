"""What a sweep is to do: its file, read with every fault at once."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loopsched.base.arguments import DATA_TYPE_BYTES, Checker, is_text, near, show
from loopsched.base.errors import InputError, SweepError, gathered
from loopsched.machines.arch import Arch
from loopsched.network.selection import choose, select
from loopsched.problems.workload import Workload
from loopsched.scheduler.constraints import Constraints
from loopsched.scheduler.goal import OBJECTIVES, STRATEGIES, VALUES, Goal, Objective
from loopsched.sweeps.vary import COMBINE, Setting, changed, read_vary, variable_keys, whole

FIELDS = (
    "archs", "workloads", "objectives", "strategy", "value", "top", "samples", "seed",
    "constraints",
)  # fmt: skip
ARCH_FIELDS = ("arch", "name", "vary", "combine")
WORKLOAD_FIELDS = ("workload", "name", "layers", "element_bytes")
CONSTRAINT_FIELDS = ("tiles", "fix", "spatial", "order", "prefix")
# Fields of the goal: words, and whole numbers with the least and the most.
WORDS = {"strategy": STRATEGIES, "value": VALUES}
NUMBERS = {"top": (1, 1000), "samples": (1, 10**9), "seed": (0, 2**63 - 1)}


@dataclass(frozen=True, slots=True)
class Machine:
    """One architecture of a sweep.

    Parameters
    ----------
    name : str
        Unique in the sweep.
    base : str
        The entry that it comes from.
    arch : Arch
    settings : tuple of Setting
        What was changed.
    """

    name: str
    base: str
    arch: Arch
    settings: tuple[Setting, ...] = ()


@dataclass(frozen=True, slots=True)
class Chosen:
    """Some problems of a workload, with their numbers in it."""

    name: str
    workload: Workload
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Spec:
    """A sweep as its file describes it.

    Parameters
    ----------
    data : dict
        The file's contents, in full.
    machines : tuple of Machine
    workloads : tuple of Chosen
    objectives : tuple of str
    goal : Goal
        Of each search, except its objective.
    """

    data: Mapping[str, Any]
    machines: tuple[Machine, ...]
    workloads: tuple[Chosen, ...]
    objectives: tuple[Objective, ...]
    goal: Goal

    @property
    def keys(self) -> tuple[str, ...]:
        """Numbers that differ between machines by the sweep's doing."""
        found = (one.key for machine in self.machines for one in machine.settings)
        return tuple(dict.fromkeys(found))


def read_spec(source: Mapping[str, Any] | str | os.PathLike[str]) -> Spec:
    """Read what a sweep is to do.

    Parameters
    ----------
    source : dict, str or path
        The file, or what is in it.  Files that it names are sought from the
        current folder.

    Raises
    ------
    SweepError
        With every fault.

    Examples
    --------
    >>> spec = read_spec({
    ...     "archs": ["v100", {"arch": "titan_v", "vary": {"L2.capacity": ["2 MiB", "4 MiB"]}}],
    ...     "workloads": ["gemm:m=64,n=64,k=64"],
    ... })
    >>> [machine.name for machine in spec.machines]
    ['v100', 'titan_v[L2.capacity=2 MiB]', 'titan_v[L2.capacity=4 MiB]']
    """
    data, where = _contents(source)
    check = Checker(where, SweepError)
    if not isinstance(data, Mapping):
        raise SweepError(
            f"{where}: found {show(data)}; a mapping with {' '.join(FIELDS)} is needed"
        )
    if data and data.keys().isdisjoint(("archs", "workloads", "arch", "workload")):
        raise SweepError(f"{where}: neither 'archs' nor 'workloads'; is it a sweep file?")
    _known(check, "", data, FIELDS)
    machines = tuple(_machines(check, _listed(check, data, "archs")))
    workloads = tuple(_workloads(check, _listed(check, data, "workloads")))
    objectives = _objectives(check, data)
    for kind, names in (
        ("archs", [one.name for one in machines]),
        ("workloads", [one.name for one in workloads]),
    ):
        for name in dict.fromkeys(names):
            if names.count(name) > 1:
                check.fault(f"{kind}: '{name}' occurs {names.count(name)} times; set a 'name'")
    given = {name: data.get(name, getattr(Goal(), name)) for name in (*WORDS, *NUMBERS)}
    fields: dict[str, Any] = {
        **{name: check.choice(name, given[name], of) for name, of in WORDS.items()},
        **{name: whole(check, name, given[name], *ends) for name, ends in NUMBERS.items()},
        "constraints": _constraints(check, data.get("constraints")),
    }
    _check_energies(check, objectives, machines)
    check.finish()
    return Spec(_plain(data), machines, workloads, objectives, Goal(**fields))


def _contents(source: Mapping[str, Any] | str | os.PathLike[str]) -> tuple[object, str]:
    if isinstance(source, Mapping):
        return source, "sweep"
    if not isinstance(source, str | os.PathLike):
        raise SweepError(f"a sweep is a file or a mapping, not {show(source)}")
    from loopsched.base.files import MEBIBYTE, read_text
    from loopsched.base.yaml_text import parse_yaml

    text = read_text(source, "a sweep", most_bytes=MEBIBYTE, error=SweepError)
    with SweepError.at(str(source)):
        return parse_yaml(text), str(source)


def _plain(value: Any) -> Any:
    """Copy the data as JSON knows it."""
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, Arch | Workload):
        return value.name
    return value if isinstance(value, str | int | float | bool | None) else show(value)


def _known(check: Checker, place: str, data: Mapping[Any, Any], fields: Sequence[str]) -> None:
    """Fault what is no field."""
    head = f"{place}: " if place else ""
    for key in data:
        if key not in fields:
            check.fault(f"{head}unknown field {show(key)}; {near(key, fields)}")


def _several(given: Any, one: Any = str) -> Any:
    """Take one text, or one of some other kind, for a list of it."""
    return [given] if isinstance(given, one) else given


def _listed(check: Checker, data: Mapping[str, Any], name: str) -> list[Any]:
    found = data.get(name)
    if found is None:
        check.fault(f"no '{name}'; a list of them is needed")
        return []
    if isinstance(found, str | Mapping):
        return [found]
    if not isinstance(found, list | tuple) or not found:
        check.fault(f"{name} is {show(found)}; a list with at least one entry is needed")
        return []
    return list(found)


def _machines(check: Checker, entries: Sequence[Any]) -> Iterator[Machine]:
    from loopsched.machines.arch_file import as_arch

    for place, data in _entries(check, "arch", str | Arch, entries, ARCH_FIELDS):
        arch = data["arch"]
        try:
            arch = as_arch(arch)
        except InputError as error:
            check.faults += [f"{place}: {show(data['arch'])}: {one}" for one in error.problems]
            continue
        base = check.name(data.get("name"), arch.name)
        if "vary" not in data:
            yield Machine(base, base, arch)
            continue
        n_faults = len(check.faults)
        combine = check.choice(f"{place}.combine", data.get("combine", "product"), COMBINE)
        kept = next(one for one in COMBINE if one == combine)
        found = read_vary(check, f"{place}.vary", data["vary"], arch, kept)
        if len(check.faults) == n_faults:
            yield from _varied(check, f"{place}.vary", base, arch, found)


def _varied(
    check: Checker, place: str, base: str, arch: Arch, found: Sequence[tuple[Setting, ...]]
) -> Iterator[Machine]:
    def name(digits: int, settings: Sequence[Setting]) -> str:
        return f"{base}[{', '.join(one.text(digits) for one in settings)}]"

    # Four digits are easily read; more only where machines could not be told apart.
    digits = 4 if len({name(4, settings) for settings in found}) == len(found) else 12
    for settings in found:
        machine = changed(arch, settings, check, place)
        if machine is not None:
            yield Machine(name(digits, settings), base, machine, settings)


def _entries(
    check: Checker, main: str, alone: Any, entries: Sequence[Any], fields: Sequence[str]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """List entries, each with its place; what stands alone is the main field of one."""
    for i, entry in enumerate(entries):
        place, data = f"{main}s[{i}]", {main: entry} if isinstance(entry, alone) else entry
        if not isinstance(data, Mapping):
            check.fault(
                f"{place} is {show(data)}; a name, a file, or a mapping with '{main}' is needed"
            )
            continue
        _known(check, place, data, fields)
        if main in data:
            yield place, data
        else:
            check.fault(f"{place}: no '{main}'")


def _workloads(check: Checker, entries: Sequence[Any]) -> Iterator[Chosen]:
    for place, data in _entries(check, "workload", str | Workload, entries, WORKLOAD_FIELDS):
        n_faults = len(check.faults)
        layers = _several(data.get("layers", ()), str | int)
        if not isinstance(layers, list | tuple):
            check.fault(f"{place}.layers is {show(layers)}; numbers or names are needed")
            continue
        size = data.get("element_bytes")
        if size is not None:
            size = DATA_TYPE_BYTES.get(size, size) if isinstance(size, str) else size
            size = whole(check, f"{place}.element_bytes", size, 1, 1024)
        workload = data["workload"]
        if not isinstance(workload, str | Workload):
            check.fault(f"{place}.workload is {show(workload)}; a name, file or problem is needed")
        if len(check.faults) > n_faults:
            continue
        try:
            names = [str(layer) for layer in layers]
            if isinstance(workload, str):
                found = select(workload, names, size)
            else:
                found = choose(workload, names, size)
        except InputError as error:
            check.faults += [f"{place}: {one}" for one in error.problems]
            continue
        default = (
            workload if isinstance(workload, str) and is_text(workload) else found.workload.name
        )
        name = check.name(data.get("name"), default)
        yield Chosen(name, found.workload, found.numbers)


def _objectives(check: Checker, data: Mapping[str, Any]) -> tuple[Objective, ...]:
    given = _several(data.get("objectives", ["time"]))
    if not isinstance(given, list | tuple) or not given:
        check.fault(f"objectives is {show(given)}; {near('', OBJECTIVES)}")
        return ()
    found = [check.choice(f"objectives[{i}]", one, OBJECTIVES) for i, one in enumerate(given)]
    return tuple(one for one in dict.fromkeys(found) if one in OBJECTIVES)


def _constraints(check: Checker, data: object) -> Constraints | None:
    if data is None:
        return None
    if not isinstance(data, Mapping):
        check.fault(f"constraints is {show(data)}; a mapping is needed")
        return None
    _known(check, "constraints", data, CONSTRAINT_FIELDS)
    lists: dict[str, list[str]] = {}
    for name in ("fix", "order"):
        given = _several(data.get(name, []))
        if not isinstance(given, list | tuple) or not all(isinstance(one, str) for one in given):
            check.fault(f"constraints.{name} is {show(given)}; a list of text is needed")
            given = []
        lists[name] = list(given)
    texts = {name: data.get(name) for name in ("tiles", "spatial", "prefix")}
    for name, text in texts.items():
        if text is not None and not isinstance(text, str):
            check.fault(f"constraints.{name} is {show(text)}; text is needed")
            texts[name] = None
    with gathered(check.faults, "constraints: "):
        return Constraints.parse(
            tiles=texts["tiles"] or "all",
            fix=lists["fix"],
            spatial=texts["spatial"],
            before=lists["order"],
            prefix=texts["prefix"] or "",
        )
    return None


def _check_energies(check: Checker, objectives: Sequence[str], machines: Sequence[Machine]) -> None:
    wanting = [one for one in objectives if one in ("energy", "edp")]
    for machine in machines if wanting else ():
        arch = machine.arch
        if arch.compute.energy_pj_per_mac is None or any(
            level.energy_pj_per_byte is None for level in arch.levels
        ):
            check.fault(
                f"objective '{wanting[0]}' needs an energy for every level and for the "
                f"arithmetic, which '{machine.name}' does not give"
            )


def number_of(machine: Machine, key: str) -> float | None:
    """Look up one of the sweep's numbers in a machine; None: it has no such.

    Of ``compute.macs``, which has no unit of its own, the factor.
    """
    if key == "compute.macs":
        return next((float(one.value) for one in machine.settings if one.key == key), 1.0)
    if key not in variable_keys(machine.arch):
        return None
    return machine.arch.value(key)
