"""What a sweep has to compute: every different search once, and where it belongs."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

from loopsched.base.errors import ArchError, ConstraintError, SweepError
from loopsched.base.rows import Row
from loopsched.machines.arch import Arch
from loopsched.models.machine import data_type_of
from loopsched.problems.problem import Problem
from loopsched.problems.workload import workload_digest
from loopsched.scheduler.goal import Objective
from loopsched.study.points import searched_machine
from loopsched.sweeps.spec import Spec, number_of

FORMAT = 1
MOST_TASKS = 10_000_000
# In the place of names, which a search does not look at: equal work is done once.
PROBLEM, MACHINE = "the problem", "the machine"

# What a search gives a row, in its order, with its type; all empty where nothing fits.
FOUND = {
    "rank": int, "schedule": str, "time_s": float, "time_bound_s": float,
    "problem_bound_s": float, "bound_by": str, "compute_time_s": float,
    "compute_utilisation": float, "dram_bytes": int, "dram_read_bytes": int,
    "dram_write_bytes": int, "least_dram_bytes": int,
    "required_dram_bandwidth_bytes_per_s": float, "energy_pj": float, "levels": list,
    "lower_bound": float, "gap": float, "proven": bool, "nodes": int, "space_size": float,
}  # fmt: skip


class Task(NamedTuple):
    """One search."""

    number: int
    problem: Problem
    arch: Arch
    objective: Objective


class Cell(NamedTuple):
    """One place of the results: which task's rows go there, under which head."""

    task: int
    head: Row


@dataclass(frozen=True, slots=True)
class Plan:
    """The searches of a sweep.

    Parameters
    ----------
    spec : Spec
    machines : tuple of Arch
    problems : tuple of Problem
        Those that differ, without their names.
    manifest : dict
        All that says what the results are results of.
    """

    spec: Spec
    machines: tuple[Arch, ...]
    problems: tuple[Problem, ...]
    manifest: Row

    @property
    def n_tasks(self) -> int:
        """Searches in all: everything on everything."""
        return len(self.machines) * len(self.problems) * len(self.spec.objectives)

    def task(self, number: int) -> Task:
        """Find a task by its number."""
        rest, objective = divmod(number, len(self.spec.objectives))
        machine, problem = divmod(rest, len(self.problems))
        return Task(
            number, self.problems[problem], self.machines[machine], self.spec.objectives[objective]
        )

    def title(self, number: int) -> str:
        """Name a task for people, by the first place where it is needed."""
        cell = next(cell for cell in cells(self.manifest) if cell.task == number)
        return f"{cell.head['problem']} on {cell.head['arch']} for {cell.head['objective']}"


def plan_of(spec: Spec, version: str, command: str = "") -> Plan:
    """Find what differs in a sweep, and describe all of it.

    Raises
    ------
    SweepError
        If constraints name what a problem or machine does not have, or there
        is too much to do.

    Examples
    --------
    >>> from loopsched.sweeps.spec import read_spec
    >>> problems = [{"workload": "gemm:m=4,n=4,k=4", "name": name} for name in ("one", "two")]
    >>> plan = plan_of(read_spec({"archs": ["v100"], "workloads": problems}), "1.0")
    >>> plan.n_tasks, [cell.task for cell in cells(plan.manifest)]
    (1, [0, 0])
    """
    machines: dict[Arch, int] = {}
    machine_of = [
        machines.setdefault(searched_machine(machine.arch, MACHINE), len(machines))
        for machine in spec.machines
    ]
    problems: dict[Problem, int] = {}
    problem_of = [
        [
            problems.setdefault(problem.renamed(PROBLEM), len(problems))
            for problem in chosen.workload.problems
        ]
        for chosen in spec.workloads
    ]
    n_tasks = len(machines) * len(problems) * len(spec.objectives)
    if n_tasks > MOST_TASKS:
        raise SweepError(f"sweep: {n_tasks:,} searches; at most {MOST_TASKS:,} are allowed")
    _check_constraints(spec, tuple(machines), tuple(problems))
    manifest = _manifest(spec, version, command, machine_of, problem_of, len(problems))
    manifest["data_types"] = _data_types(tuple(machines), tuple(problems))
    return Plan(spec, tuple(machines), tuple(problems), manifest)


def _data_types(machines: Sequence[Arch], problems: Sequence[Problem]) -> list[str]:
    """List the data types whose rates count; a search says why one has none."""
    rates = {machine.compute.data_types: machine for machine in machines}
    sizes = {tuple(t.element_bytes for t in one.tensors): one for one in problems}
    found: dict[str, None] = {}
    for machine, problem in product(rates.values(), sizes.values()):
        with suppress(ArchError):
            found[data_type_of(problem, machine)] = None
    return list(found)


def _check_constraints(spec: Spec, machines: Sequence[Arch], problems: Sequence[Problem]) -> None:
    from loopsched.scheduler.allowed import space_of

    constraints = spec.goal.constraints
    faults: dict[str, None] = {}
    for machine in machines if constraints is not None else ():
        for problem in problems:
            try:
                space_of(problem, machine, constraints)
            except ConstraintError as error:
                faults |= dict.fromkeys(error.problems)
    SweepError.refuse("constraints", faults)


def _manifest(
    spec: Spec,
    version: str,
    command: str,
    machine_of: Sequence[int],
    problem_of: Sequence[Sequence[int]],
    n_problems: int,
) -> Row:
    import numba
    import numpy as np

    keys = spec.keys
    return {
        "format": FORMAT,
        "version": version,
        "command": command,
        "python": platform.python_version(),
        "numpy": str(np.__version__),
        "numba": str(numba.__version__),
        "seed": spec.goal.seed,
        "spec": spec.data,
        "n_problems": n_problems,
        "objectives": list(spec.objectives),
        "keys": list(keys),
        "archs": [
            {
                "name": machine.name,
                "base": machine.base,
                "digest": machine.arch.digest,
                "numbers": {key: number_of(machine, key) for key in keys},
                "machine": at,
            }
            for machine, at in zip(spec.machines, machine_of, strict=True)
        ],
        "workloads": [
            {
                "name": chosen.name,
                "digest": workload_digest(chosen.workload),
                "layers": [
                    {"layer": layer, "problem": problem.name, "count": count, "at": at}
                    for layer, problem, count, at in zip(
                        chosen.numbers,
                        chosen.workload.problems,
                        chosen.workload.counts,
                        places,
                        strict=True,
                    )
                ],
            }
            for chosen, places in zip(spec.workloads, problem_of, strict=True)
        ],
    }


def n_tasks(manifest: Mapping[str, Any]) -> int:
    """Count a manifest's searches."""
    machines = {arch["machine"] for arch in manifest["archs"]}
    return len(machines) * int(manifest["n_problems"]) * len(manifest["objectives"])


def cells(manifest: Mapping[str, Any]) -> Iterator[Cell]:
    """List the places of the results, in their order.

    They go by architecture, workload, layer and objective, as the sweep's file does.
    """
    objectives, n_problems = manifest["objectives"], manifest["n_problems"]
    for arch in manifest["archs"]:
        machine = {"arch": arch["name"], "base": arch["base"], **arch["numbers"]}
        for workload in manifest["workloads"]:
            for layer in workload["layers"]:
                place = {
                    "workload": workload["name"],
                    "layer": layer["layer"],
                    "problem": layer["problem"],
                    "count": layer["count"],
                }
                first = (arch["machine"] * n_problems + layer["at"]) * len(objectives)
                for i, objective in enumerate(objectives):
                    yield Cell(first + i, {**machine, **place, "objective": objective})


# What makes two sweeps the same; Python's and libraries' versions are only told.
_MOST_TOLD = 5  # of the machines or workloads that differ
_SAME = ("format", "version", "spec", "objectives", "keys", "archs", "workloads")


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Say in what a sweep is not the one that a folder was begun for.

    Examples
    --------
    >>> differences({"version": "1.0", "spec": {"seed": 1}}, {"version": "1.1", "spec": {}})
    ["version: '1.0' then, '1.1' now", "spec: 'seed' is not the same"]
    """
    found = []
    for name in _SAME:
        then, now = old.get(name), new.get(name)
        if then == now:
            continue
        if name == "spec" and isinstance(then, dict) and isinstance(now, dict):
            keys = [key for key in {**then, **now} if then.get(key) != now.get(key)]
            found.append(f"spec: {' '.join(map(repr, keys))} is not the same")
        elif name in ("archs", "workloads"):
            found += _changed(name, then or [], now or [])
        else:
            found.append(f"{name}: {then!r} then, {now!r} now")
    return found


def _changed(what: str, then: Sequence[Row], now: Sequence[Row]) -> list[str]:
    before = {one["name"]: _content(one) for one in then}
    after = {one["name"]: _content(one) for one in now}
    kind = what.removesuffix("s")
    found = []
    for name in {**before, **after}:
        if name not in after:
            found.append(f"{kind} '{name}' is gone")
        elif name not in before:
            found.append(f"{kind} '{name}' is new")
        elif before[name] != after[name]:
            digests = before[name]["digest"], after[name]["digest"]
            found.append(
                f"{kind} '{name}' is not the same (digest {digests[0]} then, {digests[1]} now)"
            )
    if len(found) > _MOST_TOLD:
        found[_MOST_TOLD:] = [f"and {len(found) - _MOST_TOLD} more {what}"]
    return found or [f"{what} come in another order"]


def _content(one: Row) -> Row:
    """Leave out places in lists, which depend on what else there is."""
    layers = [{**layer, "at": None} for layer in one.get("layers", ())]
    return {**one, "machine": None, "layers": layers}
