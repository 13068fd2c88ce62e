"""What users call: `simulate` and `stack_distances`, their arguments checked first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal, Unpack, get_args

from loopsched.base.arguments import Checker, near, show
from loopsched.base.errors import InputError
from loopsched.base.keywords import takes
from loopsched.machines.arch import Arch
from loopsched.models.places import resolved
from loopsched.nests.nest import Schedule
from loopsched.problems.problem import Problem
from loopsched.simulator import cache as policies
from loopsched.simulator import tiles
from loopsched.simulator.distances import StackDistances, measure
from loopsched.simulator.layout import LayoutLike, Placed, layouts_of
from loopsched.simulator.result import LevelCounts, Simulation, TensorCounts
from loopsched.simulator.simulated import Cache, Caches, Fields, Instances, check_line, simulated
from loopsched.simulator.system import System, check_caches, units_of
from loopsched.simulator.trace import Memory, Walker
from loopsched.simulator.waves import Waves

Granularity = Literal["element", "tile"]
Layouts = Mapping[str, LayoutLike] | LayoutLike | None
# Told how many accesses are done, and how many there are at most.
Progress = Callable[[int, int], None]


@takes(Cache, Caches)
def simulate(
    problem: Problem,
    schedule: Schedule,
    cache: Cache | Caches | Arch | None = None,
    *,
    layouts: Layouts = None,
    granularity: Granularity = "element",
    flush: bool = True,
    progress: Progress | None = None,
    **given: Unpack[Fields],
) -> Simulation:
    """Replay the accesses of a schedule through a cache, or a machine's caches.

    Parameters
    ----------
    problem : Problem
    schedule : Schedule
    cache : Cache, Caches or Arch
        One cache under the memory; or all levels and instances of a machine, wave by wave.
    layouts : mapping of tensor name to Layout or str, or one for all, optional
        Where tensors lie: ``{"A": "K M", "input": "NHWC"}``.
    granularity : {'element', 'tile'}
        ``tile`` moves whole tiles, each visit of the innermost loops (every
        dimension once) at a time: fast, and exact where tiles are placed in
        registers or a scratchpad further in.  Outer levels see all tiles.
    flush : bool
        Whether what is dirty at the end is written back and counted.
    progress : callable, optional
        Called now and then with accesses done and accesses in all.
    capacity_bytes, line_bytes, ways, policy, write_policy, instances, seed
        Fields of a `Cache`; they replace ``cache``, or override its fields.
    arch, sees, warm
        The same of the `Caches` of a machine.

    Raises
    ------
    InputError
        If an argument is not allowed, with every fault found; ScheduleError or
        ArchError where schedule or machine are the reason.

    See Also
    --------
    evaluate, stack_distances, Layout

    References
    ----------
    L. A. Belady, *A Study of Replacement Algorithms for a Virtual-Storage Computer*, IBM
    Systems Journal 5(2), 1966.

    Examples
    --------
    >>> from loopsched import gemm, parse_schedule
    >>> problem = gemm(m=8, n=8, k=8, element_bytes=1)
    >>> nest = parse_schedule("M:8 N:8 K:8 M:3 N:3 K:8", problem)
    >>> found = simulate(problem, nest, capacity_bytes=90)
    >>> found.bytes, found.tensors["A"].read_bytes, found.hits
    (320, 64, 1216)
    >>> simulate(problem, nest, capacity_bytes=90, policy="belady").bytes
    192
    """
    check = Checker("simulate", InputError)
    _check_objects(check, problem, schedule)
    is_tiled = check.choice("granularity", granularity, get_args(Granularity)) == "tile"
    check.flag("flush", flush)
    try:
        target = simulated(cache, given)
    except InputError as error:
        check.faults += error.problems
        check.finish()
    if is_tiled:
        _check_tiled(check, target, layouts=layouts, flush=flush)
    check.finish()
    schedule.check(problem)
    if isinstance(target, Caches):
        schedule, arch = resolved(problem, schedule, target.arch)
        target = replace(target, arch=arch)
    schedule.check_even("a simulation of caches")
    run = _Run(problem, schedule, layouts_of(problem, layouts), is_tiled, flush, progress)
    with _memory_of(problem):
        levels = run.cache(target) if isinstance(target, Cache) else run.machine(target)
    policy = target.policy if isinstance(target, Cache) else "lru"
    return Simulation(problem.name, str(schedule), policy, granularity, target.line_bytes, levels)


@dataclass(frozen=True, slots=True)
class _Run:
    """One replay, its arguments checked."""

    problem: Problem
    schedule: Schedule
    placed: Mapping[str, Placed]
    is_tiled: bool
    flush: bool
    progress: Progress | None

    def cache(self, target: Cache) -> tuple[LevelCounts, ...]:
        """Replay through one cache."""
        problem, schedule, capacity = self.problem, self.schedule, target.capacity_bytes
        shared = _instances(schedule, target.instances)
        if self.is_tiled:
            tensors = tiles.one_cache(problem, schedule, capacity, shared)
        else:
            memory = Memory.of(problem, self.placed, target.line_bytes)
            source = Waves(memory, schedule, shared) if shared else Walker(memory, schedule)
            kept = _run(source, target, _report(problem, self.progress))
            is_through = target.write_policy == "through"
            tensors = policies.tensor_counts(
                memory, source.accesses.tolist(), kept, is_through=is_through, flush=self.flush
            )
        return (LevelCounts("cache", "DRAM", capacity, 1, tensors),)

    def machine(self, target: Caches) -> tuple[LevelCounts, ...]:
        """Replay through all caches of a machine."""
        problem, schedule, arch = self.problem, self.schedule, target.arch
        check_caches(arch)
        units = units_of(arch, problem, schedule)
        if self.is_tiled:
            return tiles.system(problem, schedule, arch)
        memory = Memory.of(problem, self.placed, target.line_bytes)
        system = System(memory, schedule, arch, units, sees=target.sees, is_warm=target.warm)
        system.run(flush=self.flush, progress=_report(problem, self.progress))
        return system.counts()


def _check_tiled(check: Checker, target: Cache | Caches, *, layouts: Layouts, flush: bool) -> None:
    plain = {"policy": "lru", "write_policy": "back", "ways": None, "line_bytes": None}
    given = [name for name in plain if getattr(target, name, plain[name]) != plain[name]]
    given += [name for name in ("warm",) if getattr(target, name, False)]
    given += ["layouts"] * (layouts is not None) + ["flush"] * (not flush)
    for name in given:
        check.fault(
            f"{name}: does not apply to granularity='tile', which moves whole tiles through LRU "
            "caches and counts the final write-back"
        )


def stack_distances(
    problem: Problem,
    schedule: Schedule,
    *,
    line_bytes: int | None = None,
    layouts: Layouts = None,
    instances: Instances = None,
    progress: Progress | None = None,
) -> StackDistances:
    """Find the traffic of fully associative LRU caches of all capacities in one pass.

    Parameters
    ----------
    problem : Problem
    schedule : Schedule
    line_bytes, layouts, instances, progress
        As for `simulate`.

    Raises
    ------
    InputError
        If an argument is not allowed; ScheduleError where the schedule is the
        reason.

    See Also
    --------
    simulate, traffic_curve

    References
    ----------
    R. L. Mattson et al., *Evaluation Techniques for Storage Hierarchies*, IBM Systems
    Journal 9(2), 1970.

    Examples
    --------
    >>> from loopsched import gemm, parse_schedule
    >>> problem = gemm(m=4, n=4, k=4)
    >>> found = stack_distances(problem, parse_schedule("M:4 N:4 K:4", problem))
    >>> found.tensors["B"].bytes, found.tensors["B"].counts
    ((100, 104, 108, 112, 116), (6, 3, 9, 9, 21))
    >>> [(capacity, found.traffic(capacity).read_bytes) for capacity in (0, 12, 44, 116)]
    [(0, 704), (12, 512), (44, 320), (116, 128)]
    """
    check = Checker("stack_distances", InputError)
    _check_objects(check, problem, schedule)
    check_line(check, line_bytes)
    check.finish()
    schedule.check(problem)
    schedule.check_even("a simulation of caches")
    line = None if line_bytes is None else int(line_bytes)
    memory = Memory.of(problem, layouts_of(problem, layouts), line)
    shared = _instances(schedule, instances)
    source = Waves(memory, schedule, shared) if shared else Walker(memory, schedule)
    with _memory_of(problem):
        return measure(source, str(schedule), _report(problem, progress))


def _check_objects(check: Checker, problem: object, schedule: object) -> None:
    if not isinstance(problem, Problem):
        check.fault(f"problem is {show(problem)}; a Problem is needed, as gemm(...) returns")
    if not isinstance(schedule, Schedule):
        check.fault(f"schedule is {show(schedule)}; a Schedule is needed, see parse_schedule")


@contextmanager
def _memory_of(problem: Problem) -> Iterator[None]:
    """Say what to do where memory does not suffice."""
    try:
        yield
    except MemoryError:
        raise InputError(
            f"there is not enough memory to follow the elements of '{problem.name}'; larger "
            "lines (line_bytes), or tiles (granularity 'tile'), need less"
        ) from None


def _run(source: policies.Source, asked: Cache, report: policies.Progress | None) -> policies.Kept:
    if asked.policy == "belady":
        return policies.run_belady(source, asked.capacity_bytes, report)
    if asked.ways is None:
        return policies.run_lru(source, asked.capacity_bytes, report)
    is_random = asked.policy == "random"
    return policies.run_sets(
        source, asked.capacity_bytes, asked.ways, is_random=is_random, seed=asked.seed,
        progress=report,
    )  # fmt: skip


def _report(problem: Problem, progress: Progress | None) -> policies.Progress | None:
    if progress is None:
        return None
    told, total = progress, problem.macs * len(problem.tensors)
    return lambda done: told(done, total)


def _instances(schedule: Schedule, instances: Instances) -> dict[str, int]:
    """Check how many instances share one cache."""
    if instances is None:
        return {}
    units = list(dict.fromkeys(loop.unit for loop in schedule.loops if loop.unit is not None))
    check = Checker("simulate", InputError)
    if not isinstance(instances, Mapping):
        many = check.count("instances", instances)
        if len(units) > 1:
            check.fault(
                f"instances is {show(instances)}, but there are loops of {' and '.join(units)}; "
                "a mapping of units to instances is needed"
            )
        check.finish()
        return dict.fromkeys(units, many)
    for unit, given in instances.items():
        if unit not in units:
            check.fault(
                f"instances: no loop of unit {show(unit)}; "
                + (near(unit, units) if units else "the schedule has no spatial loops")
            )
        check.count(f"instances[{show(unit)}]", given)
    seen: list[str] = []
    for loop in schedule.loops:
        if loop.unit in instances and loop.unit is not None:
            if loop.unit in seen and seen[-1] != loop.unit:
                check.fault(f"loop '{loop}': the loops of unit '{loop.unit}' are not adjacent")
            seen.append(loop.unit)
    check.finish()
    return {unit: int(many) for unit, many in instances.items()}


__all__ = ["Simulation", "TensorCounts", "simulate", "stack_distances"]
