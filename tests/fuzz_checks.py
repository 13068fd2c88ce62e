"""Checks of one random case each, and the families of cases.

A family draws a case as one line of Python that calls a check of this module, so
that what `benchmarks/soak.py` reports can be pasted after
``from fuzz_checks import *``.  A check returns what was claimed and every fault:

* ``searched``: the search against brute force over all nests (`oracle_space`);
* ``logged``: that a search called proven has a log that says the same, and that any log is
  accepted and says no more;
* ``placed_apart``: the same where each tensor is kept at a loop of its own;
* ``curved``: a curve of one buffer against all nests at every capacity;
* ``promised``: the figures of one schedule against the simulated machine;
* ``behind``: the same where caches serve a scratchpad;
* ``walked``: the figure of one scratchpad against a walk that places every tile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from random import Random

import oracle
import places_oracle
from fuzz_cases import body_bytes, build, constraints, machine, problem_text, spelled
from oracle_space import (
    Nest,
    Scored,
    all_nests,
    blocks_of,
    in_blocks,
    least,
    n_nests,
    obeys,
    passings,
    scored,
    units_of,
)
from oracle_system import moved_behind

from loopsched import (
    Constraints,
    Curve,
    Loop,
    Problem,
    Schedule,
    affine,
    conv2d,
    evaluate,
    gemm,
    parse_schedule,
    search,
    simulate,
    traffic,
    traffic_curve,
)
from loopsched.base.errors import ConstraintError, EmptySpaceError, LoopschedError, ScheduleError
from loopsched.machines.arch import Arch
from loopsched.machines.levels import Compute, Level
from loopsched.models.buffer import explicit_traffic, lru_traffic
from loopsched.models.traffic import Room
from loopsched.models.view import View, view_of
from loopsched.nests.nest import Place
from loopsched.scheduler import constrained, exact
from loopsched.verify import verify_proof

__all__ = [
    "Arch",
    "Compute",
    "Constraints",
    "Level",
    "affine",
    "behind",
    "conv2d",
    "curved",
    "gemm",
    "logged",
    "placed_apart",
    "promised",
    "searched",
    "walked",
]  # fmt: skip

MOST_NESTS = 300
EXACT = 1e-9  # of figures that are sums of floats


@dataclass(frozen=True)
class Fault:
    """Something claimed that is not so.

    Parameters
    ----------
    kind : str
        ``false bound``, ``false proof``, ``promise``, ``bracket``, ``curve``,
        ``value``, ``log``, ``refused`` or ``error``.
    detail : str
    is_inside : bool
        Of a bound or proof: whether a schedule with one block a level, each
        dimension at most once in each and every loop going on, is better than
        claimed, too.
    """

    kind: str
    detail: str
    is_inside: bool = True


@dataclass(frozen=True)
class Outcome:
    """What one case claimed, and what of it is not so."""

    claims: int
    proven: int
    faults: tuple[Fault, ...]


# Searches -----------------------------------------------------------------------


def searched(
    problem: Problem,
    arch: Arch,
    objectives: Sequence[str] = ("time",),
    given: Constraints | None = None,
    *,
    is_listed: bool = False,
    reductions: bool = True,
) -> Outcome:
    """Hold searches for some objectives against every nest of the machine.

    They have to do with their bounds unless ``is_listed``: spaces as small as these
    are listed otherwise.
    """
    blocks = blocks_of(problem, arch)
    nests = list(all_nests(problem, units_of(problem, arch, reductions=reductions)))
    if given is not None:
        nests = [nest for nest in nests if obeys(problem, nest, given, blocks)]

    def is_inside(schedule: Schedule) -> bool:
        if min(schedule.trips) == 1:
            return False
        if given is not None:
            return obeys(problem, schedule.loops, given, blocks, once=True)
        return in_blocks(schedule.loops, blocks)

    chosen = list(passings(problem, arch))
    table = scored(problem, arch, [Schedule(nest, some) for nest in nests for some in chosen])
    found = []
    for one in objectives:
        with nullcontext() if is_listed else bounds_alone():
            found.append(_judged(problem, arch, one, given, table, is_inside))
    return _together(found)


@contextmanager
def bounds_alone() -> Iterator[None]:
    """Let searches prove by their bounds, as for large problems: list no space, however small."""
    listed = exact.MAX_LISTED, constrained.MAX_SCORED
    exact.MAX_LISTED = constrained.MAX_SCORED = 0
    try:
        yield
    finally:
        exact.MAX_LISTED, constrained.MAX_SCORED = listed


def placed_apart(problem: Problem, arch: Arch) -> Outcome:
    """Hold a search for least traffic against every nest and every place of each tile.

    All are walked literally; the best one's figure has to agree with its walk.
    """
    (level,) = arch.caches
    ways = [way for nest in all_nests(problem, []) for way in _apart(problem, nest, level)]
    best = min(ways, key=lambda one: one.values["dram_bytes"], default=None)
    if best is None:
        return _judged(problem, arch, "dram_bytes", None, [], lambda _: False)
    again = scored(problem, arch, [best.schedule])
    if not again or again[0].values["dram_bytes"] != best.values["dram_bytes"]:
        told = again[0].values["dram_bytes"] if again else "refused"
        walked_bytes = best.values["dram_bytes"]
        return _one("promise", f"'{best.schedule}': {told}; tile by tile {walked_bytes:g} B")
    return _judged(problem, arch, "dram_bytes", None, [best], lambda _: False, has_places=True)


def _apart(problem: Problem, nest: Nest, level: Level) -> Iterator[Scored]:
    """Walk the ways to keep each tensor at a loop of its own that fit."""
    schedule, room = Schedule(nest), level.usable_bytes or 0
    names = [tensor.name for tensor in problem.tensors]
    of_depths = []
    for depth in range(len(nest) + 1):
        places = dict.fromkeys(names, depth)
        moved = places_oracle.placed(
            problem, schedule, places, halo_reuse=level.halo_reuse, keeps="tile"
        )
        of_depths.append((places_oracle.tile_bytes(problem, schedule, places), moved))
    for depths in product(range(len(nest) + 1), repeat=len(names)):
        chosen = list(zip(names, depths, strict=True))
        need = sum(of_depths[at][0][name] for name, at in chosen)
        if need * (2 if level.double_buffered else 1) <= room:
            moved_bytes = sum(of_depths[at][1].of(name) for name, at in chosen)
            places_ = tuple(Place(at, level.name, name) for name, at in chosen)
            yield Scored(Schedule(nest, places_), {"dram_bytes": float(moved_bytes)})


def _together(found: Sequence[Outcome]) -> Outcome:
    return Outcome(
        sum(one.claims for one in found),
        sum(one.proven for one in found),
        tuple(fault for one in found for fault in one.faults),
    )


def _judged(
    problem: Problem,
    arch: Arch,
    objective: str,
    given: Constraints | None,
    table: Sequence[Scored],
    is_inside: Callable[[Schedule], bool],
    *,
    has_places: bool = False,
) -> Outcome:
    """Judge one search by the scores of all nests; ``has_places``: of all places, too."""
    best = least(table, objective)
    try:
        result = search(problem, arch, objective=objective, constraints=given)  # type: ignore[arg-type]
    except (
        ConstraintError,
        EmptySpaceError,
    ) as error:  # no schedule is left, or a prefix has no place
        if best is None:
            return Outcome(1, 0, ())
        inside = next((one.schedule for one in table if is_inside(one.schedule)), None)
        if inside is None:  # none of the blocks that are searched, as the message says
            return Outcome(1, 0, ())
        return _one("refused", f"{objective}: '{inside}' fits, but: {error}")
    except LoopschedError as error:
        return _one("error", f"{objective}: {type(error).__name__}: {error}")
    certificate, faults = result.certificate, []
    again = scored(problem, arch, [result.schedule])
    if not again or _differ(again[0].values[objective], certificate.value):
        faults.append(Fault("value", f"{objective}: claimed {certificate.value:g}, "
                            f"evaluated {again[0].values if again else 'not at all'}"))  # fmt: skip
    if given is not None and not obeys(
        problem, result.schedule.loops, given, blocks_of(problem, arch)
    ):
        faults.append(Fault("value", f"'{result.schedule}' does not obey"))
    if best is None:
        faults.append(Fault("value", f"'{result.schedule}' fits; brute force found none"))
        return Outcome(1, int(certificate.proven), tuple(faults))
    worth = best.values[objective]
    # Tiles placed one by one are no part of these nests unless `has_places` lists them.
    is_placed = any(place.position >= 0 for place in result.schedule.places)
    if _less(certificate.value, worth) and (has_places or not is_placed):
        faults.append(Fault("value", f"{objective}: {certificate.value:g} by '{result.schedule}'; "
                            f"brute force found no less than {worth:g}"))  # fmt: skip
    claimed = certificate.value if certificate.proven else certificate.lower_bound
    if _less(worth, claimed):
        kind = "false proof" if certificate.proven else "false bound"
        inside = [one for one in table if _less(one.values[objective], claimed)]
        faults.append(
            Fault(kind, f"{objective}: claimed {claimed:g}, '{best.schedule}' takes {worth:g}",
                  any(is_inside(one.schedule) for one in inside))
        )  # fmt: skip
    return Outcome(1, int(certificate.proven), tuple(faults))


def _one(kind: str, detail: str, is_inside: bool = True) -> Outcome:
    return Outcome(1, 0, (Fault(kind, detail, is_inside),))


def _less(one: float, other: float) -> bool:
    return one < other - EXACT * abs(other)


def _differ(one: float, other: float) -> bool:
    return _less(one, other) or _less(other, one)


# Logs ---------------------------------------------------------------------------


def logged(
    problem: Problem,
    arch: Arch,
    objectives: Sequence[str] = ("time",),
    given: Constraints | None = None,
    *,
    is_listed: bool = False,
) -> Outcome:
    """Write the logs of searches and have them checked: what is proven, they have to prove.

    What they prove is held against every nest, constraints or not.
    """
    claims = proven = 0
    faults = []
    nests = all_nests(problem, units_of(problem, arch))
    table = scored(problem, arch, list(map(Schedule, nests)))
    for one in objectives:
        try:
            with nullcontext() if is_listed else bounds_alone():
                result = search(problem, arch, objective=one, constraints=given)  # type: ignore[arg-type]
            certificate = result.certificate
            claims, proven = claims + 1, proven + certificate.proven
            verdict = verify_proof(result.proof)
        except (ConstraintError, EmptySpaceError) as error:
            if "promised" in str(error):  # more than the checker's rule knows of
                faults += [Fault("log", f"{one}: {error}")] * certificate.proven
            continue
        best, told = float(verdict.best), f"{verdict.bound} to {verdict.best}"
        true = least(table, one)
        if true and _less(true.values[one], float(verdict.bound)):
            faults.append(Fault("false bound", f"{one}: '{true.schedule}'; the log {told}"))
        if certificate.proven and (
            verdict.bound < verdict.best or _differ(best, certificate.value)
        ):
            faults.append(Fault("log", f"{one}: proven {certificate.value:g}; its log {told}"))
        if _less(certificate.value, float(verdict.bound)) or _less(best, certificate.value):
            faults.append(Fault("log", f"{one}: found {certificate.value:g}; its log {told}"))
    return Outcome(claims, proven, tuple(faults))


# Curves -------------------------------------------------------------------------


def curved(problem: Problem, policy: str = "explicit") -> Outcome:
    """Hold a curve and its bound against all nests of one buffer, wherever either changes."""
    curve = traffic_curve(problem, policy=policy)  # type: ignore[arg-type]
    views = [view_of(problem, Schedule(nest)) for nest in all_nests(problem, [])]
    known = _explicit_steps(views) if policy == "explicit" else {}
    edges = {*curve.capacities_bytes, *curve.nest_bound.capacities_bytes, *known}
    if policy == "lru":  # what fits and what is promised are not one number there: look everywhere
        edges |= {edge - 1 for edge in edges}
    faults = []
    for capacity in sorted(edges):
        if policy == "explicit":
            truth = min((moved for size, moved in known.items() if size <= capacity), default=None)
        else:
            truth = min(
                lru_traffic(view, Room.shared(capacity), effort=0).promised_bytes for view in views
            )
        if policy == "lru" and curve.at(capacity) is None:
            continue  # where no body fits, the curve has no value
        kind = _misjudged(curve, capacity, truth)
        if kind:
            claimed = f"{curve.nest_bound.at(capacity)} to {curve.at(capacity)}"
            detail = f"at {capacity} B: {claimed}, by brute force {truth}"
            faults.append(Fault(kind, detail, False))
    return Outcome(1, int(curve.n_proven == len(curve)), tuple(faults[:1]))


def _misjudged(curve: Curve, capacity: int, truth: int | None) -> str:
    """Name what a curve claims that is not so; empty if all is."""
    value, bound = curve.at(capacity), curve.nest_bound.at(capacity)
    if truth is None or value is None or bound is None:
        return "" if value is bound is truth is None else "curve"
    if bound > truth:
        return "false bound"
    if curve.is_proven_at(capacity) and value > truth:
        return "false proof"
    return "curve" if value < truth else ""


def _explicit_steps(views: Sequence[View]) -> dict[int, int]:
    """Find the least traffic of all nests at each working set."""
    known: dict[int, int] = {}
    for view in views:
        capacity = 10**9
        while capacity:
            try:
                found = explicit_traffic(view, Room.shared(capacity))
            except ScheduleError:
                break
            size = found.working_set_bytes
            known[size] = min(known.get(size, 10**18), found.promised_bytes)
            # What is largest in bytes need not be one region: go on below what fits.
            capacity = min(size, capacity) - 1
    return known


# Promises -----------------------------------------------------------------------


def promised(problem: Problem, notation: str, arch: Arch) -> Outcome:
    """Hold the figures of one schedule against caches that are simulated access by access."""
    schedule = parse_schedule(notation, problem)
    score = evaluate(problem, schedule, arch)
    faults = []
    same = evaluate(problem, oracle.joined(schedule), arch)
    for level, other in zip(score.levels, same.levels, strict=True):
        if level.promised_bytes != other.promised_bytes:
            detail = (
                f"{level.name}: {level.promised_bytes}, of the same list {other.promised_bytes}"
            )
            faults.append(Fault("promise", detail))
    for sees in ("all", "misses"):
        counts = simulate(problem, schedule, arch=arch, sees=sees)  # type: ignore[arg-type]
        for level, truth in zip(score.levels, counts.levels, strict=True):
            moved = truth.read_bytes + truth.write_bytes
            where = f"{level.name}, sees={sees}"
            if moved > level.promised_bytes:
                faults.append(Fault("promise", f"{where}: {level.promised_bytes} < {moved}"))
            elif moved > level.bytes.high:
                faults.append(Fault("bracket", f"{where}: high {level.bytes.high} < {moved}"))
            if sees == "all" and moved < level.bytes.low:
                faults.append(Fault("bracket", f"{where}: low {level.bytes.low} > {moved}"))
    return Outcome(1, 0, tuple(faults))


def walked(
    problem: Problem, notation: str, capacity_bytes: int, *, halo_reuse: bool = True
) -> Outcome:
    """Hold the figure of a scratchpad against a walk that keeps the tile before, no more."""
    schedule = parse_schedule(notation, problem)
    truth = oracle.explicit(problem, schedule, capacity_bytes, halo_reuse=halo_reuse, keeps="tile")
    try:
        found = traffic(
            problem, schedule, capacity_bytes=capacity_bytes, policy="explicit",
            halo_reuse=halo_reuse,
        ).promised_bytes  # fmt: skip
    except ScheduleError:
        return Outcome(1, 0, ()) if truth is None else _one("refused", f"{truth.total} B")
    if truth is None or truth.total != found:
        return _one("promise", f"{found} B; placed tile by tile {truth and truth.total} B")
    return Outcome(1, 0, ())


def behind(problem: Problem, notation: str, arch: Arch) -> Outcome:
    """Hold the promises of caches against what they see of a scratchpad inside them."""
    schedule = parse_schedule(notation, problem)
    *outer, pad = arch.caches
    sizes = [level.usable_bytes or 0 for level in reversed(outer)]
    truth = moved_behind(problem, schedule, pad.usable_bytes or 0, sizes, halo_reuse=pad.halo_reuse)
    if truth is None:
        return Outcome(0, 0, ())
    score = evaluate(problem, schedule, arch, effort=0)
    faults = [
        Fault("promise", f"{level.name}: {level.promised_bytes} < {moved}")
        for level, moved in zip(score.levels, [*reversed(truth)], strict=False)
        if moved > level.promised_bytes
    ]
    return Outcome(1, 0, tuple(faults))


# Families -----------------------------------------------------------------------


def _case(
    rng: Random, n_units: Callable[[Arch], int], **options: object
) -> tuple[str, Problem, Arch]:
    """Draw problem and machine with no more than so many nests, mostly few."""
    most = rng.choice([MOST_NESTS // 5, MOST_NESTS // 3, MOST_NESTS])
    while True:
        text = problem_text(rng)
        problem: Problem = build(text)
        drawn = {name: one(rng) if callable(one) else one for name, one in options.items()}
        arch = machine(rng, problem, **drawn)  # type: ignore[arg-type]
        if not 3 <= n_nests(problem, n_units(arch)) <= most * 5 ** n_units(arch):
            continue
        if sum(1 for _ in all_nests(problem, units_of(problem, arch))) <= most:
            return text, problem, arch


def _n_units(arch: Arch) -> int:
    return len([1 for _, count in arch.spatial_units if count > 1]) + bool(arch.compute.lane_unit)


def _search_line(rng: Random, given: bool = False, **options: object) -> str:
    objectives = rng.choice([("time", "dram_bytes"), ("time", "dram_bytes"), ("energy", "edp")])
    text, problem, arch = _case(rng, _n_units, has_energy="energy" in objectives, **options)
    words = [text, spelled(arch), str(objectives)]
    if given:
        nests = list(all_nests(problem, units_of(problem, arch)))
        words.append(spelled(constraints(rng, problem, arch, nests)))
    if rng.random() < 0.5:
        words.append("is_listed=True")
    return f"searched({', '.join(words)})"


def _of(*choices: int) -> Callable[[Random], int]:
    return lambda rng: rng.choice(choices)


def _single(rng: Random) -> str:
    return _search_line(rng, n_shared=1, n_own=0, units=_of(1, 1, 3))


def _shared(rng: Random) -> str:
    return _search_line(rng, n_shared=_of(2, 2, 3), n_own=_of(0, 0, 1), units=_of(1, 1, 3))


def _private(rng: Random) -> str:
    return _search_line(rng, n_shared=_of(0, 1, 1), n_own=1, units=_of(3, 5))


def _nested(rng: Random) -> str:
    return _search_line(
        rng,
        n_shared=_of(0, 1),
        n_own=_of(1, 2, 2),
        units=3,
        lanes=_of(0, 0, 0, 2),
        has_inner=lambda rng: rng.random() < 0.4,
    )


def _lanes(rng: Random) -> str:
    return _search_line(
        rng,
        n_shared=_of(1, 1, 2),
        n_own=_of(0, 1),
        units=_of(1, 2, 3),
        lanes=_of(2, 2, 3, 4),
        extras=_of("", "", "holds", "writes"),
    )


def _constrained(rng: Random) -> str:
    return _search_line(rng, given=True, n_shared=_of(1, 1, 2), n_own=_of(0, 1), units=_of(1, 3))


def _writes(rng: Random) -> str:
    return _search_line(
        rng, n_shared=_of(1, 2), n_own=_of(0, 0, 1), units=_of(1, 3), extras="writes"
    )


def _holds(rng: Random) -> str:
    return _search_line(
        rng, n_shared=_of(1, 1, 2), n_own=_of(0, 1), units=_of(1, 3), extras="holds"
    )


def _may_hold(rng: Random) -> str:
    """Every set of the tensors that pass; now and then the figures of one such schedule."""
    if rng.random() < 0.3:
        text = problem_text(rng, 200)
        problem: Problem = build(text)
        arch = machine(
            rng, problem, n_shared=rng.choice([1, 2]), n_own=rng.choice([0, 1]),
            units=rng.choice([1, 3]), kinds=("cache",), extras="may_hold",
        )  # fmt: skip
        some = rng.choice(list(passings(problem, arch)))
        nest = Schedule(random_nest(rng, problem, arch).loops, some)
        return f"promised({text}, {str(nest)!r}, {spelled(arch)})"
    while True:
        line = _search_line(
            rng, n_shared=_of(1, 1, 2), n_own=_of(0, 1), units=_of(1, 3), extras="may_hold"
        )
        if line.count("may_hold") < 3:
            return line


def _placement(rng: Random) -> str:
    while True:
        text = problem_text(rng, 24)
        problem: Problem = build(text)
        arch = machine(rng, problem, n_shared=1, kinds=("scratchpad",))
        if 3 <= n_nests(problem, 0) <= 60:
            return f"placed_apart({text}, {spelled(arch)})"


def _curves(rng: Random) -> str:
    while True:
        text = problem_text(rng)
        if n_nests(build(text), 0) <= MOST_NESTS:
            policy = rng.choice(["explicit", "explicit", "explicit", "lru"])
            return f"curved({text}, {policy!r})"


def _promises(rng: Random) -> str:
    text = problem_text(rng, 400)
    problem: Problem = build(text)
    arch = machine(
        rng, problem, n_shared=rng.choice([1, 1, 2, 3]), n_own=rng.choice([0, 0, 1, 2]),
        units=rng.choice([1, 2, 4]), kinds=("cache",), lanes=rng.choice([0, 0, 2]),
        has_inner=rng.random() < 0.25,
        extras=rng.choice(["", "", "writes", "holds"]),
    )  # fmt: skip
    return f"promised({text}, {str(random_nest(rng, problem, arch))!r}, {spelled(arch)})"


def _mixed(rng: Random) -> str:
    text = problem_text(rng, 200)
    problem: Problem = build(text)
    while True:
        arch = machine(rng, problem, n_shared=rng.choice([2, 2, 3]), units=1)
        *outer, pad = arch.caches
        if all(one.kind == "cache" for one in outer) and pad.kind == "scratchpad":
            break
    pad = replace(pad, double_buffered=False)
    arch = replace(arch, levels=(arch.memory, *outer, pad))
    nest = random_nest(rng, problem, arch)
    return f"behind({text}, {str(nest)!r}, {spelled(arch)})"


def _explicit(rng: Random) -> str:
    text = problem_text(rng, 200)
    problem: Problem = build(text)
    nest = random_nest(rng, problem, None)
    halos = rng.choice(["", "", ", halo_reuse=False"])
    return f"walked({text}, {str(nest)!r}, {body_bytes(rng, problem)}{halos})"


def _log(rng: Random) -> str:
    draw_line = rng.choice([_single, _shared, _private, _nested, _constrained, _writes, _holds])
    return draw_line(rng).replace("searched(", "logged(", 1)


def random_nest(rng: Random, problem: Problem, arch: Arch | None) -> Schedule:
    """Draw any nest of a machine."""
    loops: list[tuple[str, int]] = []
    left: dict[str, list[int]] = {}
    for dim, size in problem.sizes:
        if size > 1:
            inner = rng.sample(range(2, size), min(size - 2, rng.choice([0, 0, 1, 1, 2])))
            left[dim] = [size, *sorted(inner, reverse=True)]
    while left:
        dim = rng.choice(sorted(left))
        loops.append((dim, left[dim].pop(0)))
        left = {dim: chain for dim, chain in left.items() if chain}
    marks: list[str | None] = [None] * len(loops)
    start = 0
    for unit, dims in units_of(problem, arch) if arch else []:
        may = [at for at in range(start, len(loops)) if loops[at][0] in dims]
        if may and rng.random() < 0.75:
            at = rng.choice(may)
            while at < len(loops) and loops[at][0] in dims:
                marks[at] = unit
                start = at = at + 1
                if rng.random() < 0.4:
                    break
    return Schedule(tuple(Loop(dim, n, unit) for (dim, n), unit in zip(loops, marks, strict=True)))


FAMILIES: dict[str, Callable[[Random], str]] = {
    "single": _single,
    "shared": _shared,
    "private": _private,
    "nested": _nested,
    "lanes": _lanes,
    "constraints": _constrained,
    "writes": _writes,
    "holds": _holds,
    "may_hold": _may_hold,
    "placement": _placement,
    "curves": _curves,
    "promises": _promises,
    "explicit": _explicit,
    "mixed": _mixed,
    "log": _log,
}


@cache
def can_place() -> bool:
    """Whether schedules can say at which loop a level keeps each tensor."""
    with suppress(LoopschedError):
        problem = gemm(m=4, n=4, k=4)
        return bool(parse_schedule("M:4 [L1 A] N:4 [L1 B C] K:4", problem))
    return False


def draw(family: str, seed: int, number: int) -> str:
    """Draw one case of a family as a line of Python."""
    return FAMILIES[family](Random(f"{family} {seed} {number}"))


def run(line: str) -> Outcome:
    """Run the check that a line says; what it raises is a fault, too."""
    try:
        found = eval(line, globals())
    except Exception as error:
        return _one("error", f"{type(error).__name__}: {error}")
    assert isinstance(found, Outcome)
    return found
