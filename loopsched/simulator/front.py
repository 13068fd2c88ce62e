"""What users call: `simulate` and `stack_distances`, their arguments checked first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

from loopsched.base.arguments import Checker, near, show
from loopsched.base.errors import InputError
from loopsched.machines.arch import Arch
from loopsched.models.places import resolved
from loopsched.nests.nest import Schedule
from loopsched.problems.problem import Problem
from loopsched.simulator import cache, tiles
from loopsched.simulator.distances import StackDistances, measure
from loopsched.simulator.layout import LayoutLike, layouts_of
from loopsched.simulator.result import LevelCounts, Simulation, TensorCounts
from loopsched.simulator.system import System, check_caches, units_of
from loopsched.simulator.trace import Memory, Walker
from loopsched.simulator.waves import Waves

Policy = Literal["lru", "random", "belady"]
WritePolicy = Literal["back", "through"]
Granularity = Literal["element", "tile"]
Sees = Literal["misses", "all"]
POLICIES = ("lru", "random", "belady")
WRITE_POLICIES = ("back", "through")
GRANULARITIES = ("element", "tile")
SEES = ("misses", "all")

Layouts = Mapping[str, LayoutLike] | LayoutLike | None
Instances = Mapping[str, int] | int | None
# Told how many accesses are done, and how many there are at most.
Progress = Callable[[int, int], None]


def simulate(
    problem: Problem,
    schedule: Schedule,
    *,
    capacity_bytes: int | None = None,
    line_bytes: int | None = None,
    ways: int | None = None,
    policy: Policy = "lru",
    write_policy: WritePolicy = "back",
    layouts: Layouts = None,
    arch: Arch | None = None,
    instances: Instances = None,
    granularity: Granularity = "element",
    flush: bool = True,
    seed: int = 0,
    sees: Sees = "misses",
    warm: bool = False,
    progress: Progress | None = None,
) -> Simulation:
    """Replay the accesses of a schedule through a cache, or a machine's caches.

    Parameters
    ----------
    problem : Problem
    schedule : Schedule
    capacity_bytes : int, bytes
        Of one cache under the memory.  Give this, or ``arch``.
    line_bytes : int, bytes, optional
        Move whole lines of memory.  By default single elements are moved, and
        it does not matter where they lie.
    ways : int, optional
        Lines a set: a set-associative cache.  By default, a fully associative
        one.
    policy : {'lru', 'random', 'belady'}
        Who is evicted: the least recently used; one at random, in sets; or
        what is used again latest, which makes misses as few as can be (where
        all elements have one size; write-backs may be more than necessary).
    write_policy : {'back', 'through'}
        Whether what is written waits for its eviction, or goes on at once as
        well.  An architecture has its own.
    layouts : mapping of tensor name to Layout or str, or one for all, optional
        Where tensors lie: ``{"A": "K M", "input": "NHWC"}``.
    arch : Arch, optional
        Simulate its caches: all levels and instances, wave by wave.
    instances : mapping of unit to int, or int, optional
        Without ``arch``: how many items of spatial loops work at once on the
        one cache.  By default they come one after the other.
    granularity : {'element', 'tile'}
        ``tile`` moves whole tiles, each visit of the innermost loops (every
        dimension once) at a time: fast, and right where tiles are placed in
        registers or a scratchpad further in.  Outer levels see all tiles.
    flush : bool
        Whether what is dirty at the end is written back and counted.
    seed : int
        Of random victims.
    sees : {'misses', 'all'}
        With ``arch``, what an outer level sees: what inner levels ask for, or,
        as `loopsched.evaluate` has it, all accesses.
    warm : bool
        With ``arch``: whether caches that units own keep their contents from
        item to item.  By default each item finds them empty.
    progress : callable, optional
        Called now and then with accesses done and accesses in all.

    Returns
    -------
    Simulation

    Raises
    ------
    InputError
        If an argument cannot be, with every fault found; ScheduleError or
        ArchError where schedule or machine are the reason.

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
    chosen = check.choice("policy", policy, POLICIES)
    through = check.choice("write_policy", write_policy, WRITE_POLICIES) == "through"
    grain = check.choice("granularity", granularity, GRANULARITIES)
    seen = check.choice("sees", sees, SEES)
    check.flag("flush", flush)
    check.flag("warm", warm)
    if isinstance(seed, bool) or not isinstance(seed, int) or abs(seed) >= 2**63:
        check.fault(f"seed is {show(seed)}; a whole number of at most 63 bits is needed")
    _check_geometry(check, capacity_bytes, line_bytes, ways, chosen)
    if (arch is None) == (capacity_bytes is None):
        both = "neither is" if arch is None else "both are"
        check.fault(f"capacity_bytes and arch: {both} given; give exactly one")
    if arch is not None:
        _check_machine(check, arch, ways, chosen, through, instances)
    elif warm or seen != "misses":
        check.fault("warm and sees are about the levels of an arch; none is given")
    if grain == "tile":
        given = {
            "line_bytes": line_bytes is not None,
            "ways": ways is not None,
            "policy": chosen != "lru",
            "write_policy": through,
            "layouts": layouts is not None,
            "flush": flush is False,
            "warm": warm is True,
        }
        for name in (name for name, is_given in given.items() if is_given):
            check.fault(f"{name}: tiles move whole through LRU caches, to the end; leave it out")
    check.finish()
    schedule.check(problem)
    if arch is not None:
        schedule, arch = resolved(problem, schedule, arch)
    schedule.check_even("a simulation of caches")
    line = None if line_bytes is None else int(line_bytes)
    placed = layouts_of(problem, layouts)
    shared = _instances(schedule, instances)
    capacity = int(capacity_bytes or 0)
    report = _report(problem, progress)
    levels: tuple[LevelCounts, ...]
    with _memory_of(problem):
        if arch is not None:
            check_caches(arch)
            units = units_of(arch, problem, schedule)
            if grain == "tile":
                levels = tiles.system(problem, schedule, arch)
            else:
                memory = Memory.of(problem, placed, line)
                system = System(memory, schedule, arch, units, sees=seen, is_warm=warm)
                system.run(flush=flush, progress=report)
                levels = system.counts()
        elif grain == "tile":
            tensors = tiles.one_cache(problem, schedule, capacity, shared)
            levels = (LevelCounts("cache", "DRAM", capacity, 1, tensors),)
        else:
            memory = Memory.of(problem, placed, line)
            source = Waves(memory, schedule, shared) if shared else Walker(memory, schedule)
            kept = _run(source, capacity, ways, chosen, int(seed), report)
            tensors = cache.tensor_counts(
                memory, source.accesses.tolist(), kept, is_through=through, flush=flush
            )
            levels = (LevelCounts("cache", "DRAM", capacity, 1, tensors),)
    return Simulation(problem.name, str(schedule), chosen, grain, line, levels)


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

    Returns
    -------
    StackDistances

    Raises
    ------
    InputError
        If an argument cannot be; ScheduleError where the schedule is the
        reason.

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
    _check_geometry(check, 0, line_bytes, None, "lru")
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


def _run(
    source: cache.Source,
    capacity_bytes: int,
    ways: int | None,
    policy: str,
    seed: int,
    report: cache.Progress | None,
) -> cache.Kept:
    if policy == "belady":
        return cache.run_belady(source, capacity_bytes, report)
    if ways is None:
        return cache.run_lru(source, capacity_bytes, report)
    is_random = policy == "random"
    return cache.run_sets(
        source, capacity_bytes, ways, is_random=is_random, seed=seed, progress=report
    )


def _report(problem: Problem, progress: Progress | None) -> cache.Progress | None:
    if progress is None:
        return None
    told, total = progress, problem.macs * len(problem.tensors)
    return lambda done: told(done, total)


def _check_geometry(
    check: Checker, capacity_bytes: object, line_bytes: object, ways: object, policy: str
) -> None:
    capacity = 0 if capacity_bytes is None else check.count("capacity_bytes", capacity_bytes, 0)
    line = 0
    if line_bytes is not None:
        line = check.count("line_bytes", line_bytes)
        if line & (line - 1) or line > 2**20:
            check.fault(f"line_bytes is {show(line_bytes)}; a power of two up to 2**20 is needed")
    if ways is None:
        if policy == "random":
            check.fault("policy 'random' picks victims within a set; give ways (and line_bytes)")
        return
    many = check.count("ways", ways)
    if not line:
        check.fault("ways are lines of a set; give line_bytes, too")
    elif policy == "belady":
        check.fault("policy 'belady' is that of a fully associative cache; leave out ways")
    elif capacity_bytes is not None and (capacity % (line * many) or not capacity):
        check.fault(
            f"capacity_bytes is {show(capacity_bytes)}; a multiple of ways * line_bytes = "
            f"{many * line} is needed"
        )
    elif capacity // max(1, line) > 2**30:
        check.fault(f"capacity_bytes is {show(capacity_bytes)}: more than 2**30 lines")


def _check_machine(
    check: Checker, arch: object, ways: object, policy: str, through: bool, instances: object
) -> None:
    if not isinstance(arch, Arch):
        check.fault(f"arch is {show(arch)}; an Arch is needed, as load_arch returns")
    if ways is not None or policy != "lru":
        check.fault("the levels of an arch are fully associative LRU; leave out ways and policy")
    if through:
        check.fault("an arch has write policies of its own; leave out write_policy")
    if instances is not None:
        check.fault("an arch has instances of its own; leave out instances")


def _instances(schedule: Schedule, instances: Instances) -> dict[str, int]:
    """Check how many instances share one cache."""
    if instances is None:
        return {}
    units = list(dict.fromkeys(loop.level for loop in schedule.loops if loop.level is not None))
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
        if loop.level in instances and loop.level is not None:
            if loop.level in seen and seen[-1] != loop.level:
                check.fault(f"loop '{loop}': the loops of unit '{loop.level}' are not adjacent")
            seen.append(loop.level)
    check.finish()
    return {unit: int(many) for unit, many in instances.items()}


__all__ = ["Simulation", "TensorCounts", "simulate", "stack_distances"]
