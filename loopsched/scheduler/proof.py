"""Proofs that can be checked: a tree of boxes that covers all schedules (docs/proofs.md).

The checker's own bounds (`loopsched.verify`) decide whether a leaf closes a box; what is
decided here is only where to split, and which bound to claim.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from itertools import permutations
from typing import Any

from loopsched.base.errors import ConstraintError, ScheduleError
from loopsched.machines.arch import Arch
from loopsched.machines.arch_format import arch_to_dict
from loopsched.machines.levels import Level
from loopsched.models.places import resolved
from loopsched.nests.nest import Loop, Schedule
from loopsched.problems.problem import Problem
from loopsched.problems.projections import projection_text
from loopsched.scheduler.least import lies_evenly
from loopsched.scheduler.result import Result, objective_value
from loopsched.verify.bounds import Bounds, Extents
from loopsched.verify.log import Box, Tree
from loopsched.verify.readers import FORMAT, groups_of, own_units, units_of
from loopsched.verify.value import value_of, view_of

MAX_BOXES = 150_000
"""Boxes of one tree; what stays open then lowers the bound that is claimed."""

MAX_ITEMS = 4_000_000
"""Items of a schedule that a log may name; each takes some hundred bytes."""

MAX_BODIES = 2_000
"""Boxes of bodies in one tree, which take longer, where items may close what bodies do not."""

MAX_ORDERS = 12
"""Orders of items that are tried, those whose waves end evenly first."""


def proof_of(result: Result, *, max_boxes: int = MAX_BOXES) -> str:
    """Write the proof of what a search found, as one line of text.

    Parameters
    ----------
    result : Result
        Of a search for least promised cost (``value="promised"``).
    max_boxes : int
        Give up a bound, and try a lower one, where its proof would take more boxes.

    Returns
    -------
    str
        What `verify_proof` reads.  Its bound is the highest that could be
        proven; it may be below the schedule's value.

    Raises
    ------
    ConstraintError
        If the result's value is not the promised one, the machine leaves a choice, or
        the schedule has too many items to list.

    See Also
    --------
    verify_proof, search

    Examples
    --------
    >>> from loopsched import gemm, load_arch, search
    >>> line = proof_of(search(gemm(m=96, n=80, k=64), load_arch("titan_v")))
    >>> line[:31]
    '{"format": "loopsched-proof-2",'
    """
    problem, arch, certificate = result.problem, result.arch, result.certificate
    if any(level.may_hold for level in arch.levels):
        raise ConstraintError(
            f"'{arch.name}' leaves a choice of what its levels hold (may_hold); a proof speaks of "
            "one machine: write a machine without may_hold"
        )
    n_items = items_of(result.schedule)
    if n_items > MAX_ITEMS:
        raise ConstraintError(
            f"problem '{problem.name}': a log lists items, and {n_items:,} are too many"
        )
    promised = objective_value(result.evaluation, result.objective)
    if promised != certificate.value:
        raise ConstraintError(
            f"problem '{problem.name}': the search's value {certificate.value!r} is not "
            f"the promised one, {promised!r}; only promised values have proofs"
        )
    schedule, best = witness_of(result)
    least = Fraction(certificate.lower_bound)
    is_met = best <= least * Fraction(1 + 1e-9)
    found = highest_of_all(result, best if is_met else min(best, least), max_boxes)
    line = {
        "format": FORMAT,
        "problem": problem_data(problem),
        "machine": machine_data(arch),
        "objective": result.objective,
        "spatial": spatial_of(result),
        "schedule": str(schedule),
        "best": str(best),
        "bound": str(found[0]),
        "level": found[2],
        "tree": found[1],
    }
    return json.dumps(line)


def settled(result: Result) -> Result:
    """Call a proven result that only where a log closes, of each machine if there is a choice."""
    certificate, problem = result.certificate, result.problem
    is_promised = objective_value(result.evaluation, result.objective) == certificate.value
    if is_promised and closes(result):
        return result
    schedule, machine = resolved(problem, result.schedule, result.arch)
    goal = witness_of(replace(result, schedule=schedule, arch=keeping_all(machine)))[1]
    why = ""
    if not is_promised:
        why = "only promised values have logs"
    elif goal > Fraction(certificate.value) * Fraction(1 + 1e-9):
        why = f"a log takes the schedule to be worth {float(goal)!r}, by a coarser rule"
    for part in (certificate.space.choices or (certificate.space,)) if not why else ():
        one = replace(
            result, arch=keeping_all(part.arch), certificate=replace(certificate, space=part)
        )
        bound = highest_of_all(one, goal, MAX_BOXES)[0]
        if bound < goal:
            why = f"the bound of a log is {float(bound)!r}, by coarser rules"
    return replace(result, certificate=certificate.without_log(why)) if why else result


def closes(result: Result) -> bool:
    """Whether it is known that a log closes: one buffer for one unit, and whole windows at most.

    Whatever cuts a problem, pieces then touch as much as their lengths say, in the search and in
    its log.  In a cache, windows may keep what a log does not see.
    """
    problem, (level, *inside) = result.problem, result.arch.caches
    space, compute = result.certificate.space, result.arch.compute
    is_plain = level.holds is None and not (level.may_hold or level.tensor_capacity_bytes)
    is_plain &= level.write_policy == "back" and level.halo_reuse and not level.double_buffered
    is_one = not inside and compute.units == 1 and compute.lane_unit is None
    if not (is_plain and is_one and space.constraints.is_free):
        return False
    axes = [axis for tensor in problem.tensors for axis in tensor.axes]
    is_even = all(lies_evenly(axis, problem.size) for axis in axes)
    is_even &= level.kind == "scratchpad" or not any(axis.is_compound for axis in axes)
    return is_even and result.objective in ("time", "dram_bytes")


def keeping_all(arch: Arch) -> Arch:
    """Build the machine whose levels hold all that they may."""
    levels = []
    for level in arch.levels:
        held = None if level.holds is None else (*level.holds, *level.may_hold)
        levels.append(replace(level, holds=held, may_hold=()))
    return replace(arch, levels=tuple(levels))


def items_of(schedule: Schedule) -> int:
    """Count the items that loops hand out to units, and what is in turn around them."""
    shared = [at for at, loop in enumerate(schedule.loops) if loop.is_spatial]
    return math.prod(schedule.trips[: 1 + max(shared, default=-1)])


def witness_of(result: Result) -> tuple[Schedule, Fraction]:
    """Choose the schedule that a proof names, and its value by the checker's definition.

    Where waves run on, that may charge more than the model's replay; then the same items in
    another order may do.
    """
    schedule, problem = result.schedule, result.problem
    best = value_of(problem, schedule, result.arch, result.objective)
    chosen = schedule
    limit = result.certificate.value * (1 + 1e-9)
    at = [i for i, loop in enumerate(schedule.loops) if loop.is_spatial]
    shared = [schedule.loops[i] for i in at]
    is_plain = len({loop.unit for loop in shared}) == 1 and len({x.dim for x in shared}) == len(at)
    units = units_of(result.arch)

    def nest(order: tuple[Loop, ...]) -> Schedule:
        return Schedule((*schedule.loops[: at[0]], *order, *schedule.loops[at[-1] + 1 :]))

    def runs_on(order: tuple[Loop, ...]) -> bool:
        groups = groups_of(nest(order), units)
        first = next(i for i, (unit, _) in enumerate(groups) if unit)
        cut = {dim: step for _, loops in groups[:first] for dim, step in loops}
        sizes = {**problem.size, **cut}
        longest = replace(problem, sizes=tuple(sizes.items()))  # the first list of items
        return not view_of(longest, groups[first:], units).is_even

    orders = sorted(permutations(shared), key=runs_on) if is_plain and len(at) < 5 else []
    for order in orders[:MAX_ORDERS]:
        if float(best) <= limit:
            break
        with suppress(ScheduleError):  # does not fit a scratchpad in this order
            value = value_of(problem, nest(order), result.arch, result.objective)
            if value < best:
                chosen, best = nest(order), value
    return chosen, best


def problem_data(problem: Problem) -> dict[str, Any]:
    """Write a problem in the plain form in which a proof states it."""
    return {
        "name": problem.name,
        "sizes": [list(pair) for pair in problem.sizes],
        "tensors": [[t.name, projection_text(t), t.element_bytes] for t in problem.tensors],
        "output": problem.output,
    }


def machine_data(arch: Arch) -> dict[str, Any]:
    """Write a machine without its sources, and without what only kernels need."""
    return arch_to_dict(plain_machine(arch))


def plain_machine(arch: Arch) -> Arch:
    """Take off a machine what no schedule's value depends on."""
    levels = tuple(replace(level, sources=()) for level in arch.levels)
    compute = replace(arch.compute, sources=())
    return replace(arch, levels=levels, compute=compute, title="", notes="", constants=(), gpu=None)


def spatial_of(result: Result) -> dict[str, list[str]]:
    """List the dimensions that each unit's loops may have in the space that was searched.

    All dimensions where the bounds do not depend on it: the statement is stronger then.
    """
    units = units_of(result.arch)
    if sum(count > 1 for count in units.values()) != 1:
        return {unit: list(result.problem.dims) for unit in units}
    allowed = {slot.unit: list(slot.dims) for slot in result.certificate.space.slots if slot.unit}
    return {unit: allowed.get(unit, list(result.problem.dims)) for unit in units}


def levels_of(result: Result) -> list[Level]:
    """List the levels whose items and bodies a tree may take apart, the most promising first."""
    levels = result.arch.caches
    if result.objective == "dram_bytes":
        return [levels[0]]
    if result.objective != "time":
        return [*levels]
    around = zip(result.arch.levels, levels, strict=False)
    late = [each for outer, each in around if outer.name == result.evaluation.bound_by]
    private = [each for each in levels if own_units(result.arch, each)]
    return list(dict.fromkeys([*late, *private, *levels]))


def highest_of_all(result: Result, goal: Fraction, max_boxes: int) -> tuple[Fraction, str, str]:
    """Find the highest bound, its tree and the tree's level; others if the first falls short."""
    spatial = {unit: tuple(dims) for unit, dims in spatial_of(result).items()}
    best, tree, name = Fraction(-1), "", ""
    for level in levels_of(result):
        bounds = Bounds(result.problem, result.arch, level, spatial)
        found, words = highest(bounds, result.objective, goal, max_boxes)
        if found > best:
            best, tree, name = found, words, level.name
        if best >= goal or result.certificate.gap:
            break
    return best, tree, name


def highest(bounds: Bounds, objective: str, goal: Fraction, max_boxes: int) -> tuple[Fraction, str]:
    """Find the highest bound with a tree, at most ``goal``."""
    root = bounds.value(objective, 0, 0)
    if root >= goal:
        return goal, "D"
    grown = []
    for keeps in (True, False):  # where bodies do not close a box, what items say of it may do
        grown.append(Growth(Tree(bounds, objective, goal), root, max_boxes, keeps))
        grown[-1].grow()
        if grown[-1].tree.bound >= goal or "O" not in grown[-1].words:
            break
    found = max(grown, key=lambda each: each.tree.bound)
    return found.tree.bound, " ".join(found.words) if found.tree.bound > root else "D"


@dataclass
class Growth:
    """A tree in the making; boxes that cannot be closed lower its bound, to ``least`` at worst."""

    tree: Tree
    least: Fraction
    max_boxes: int
    can_keep: bool = True
    words: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        bounds = self.bounds = self.tree.bounds
        self.aim()
        self.can_list = 0 < len(bounds.spatial) < 6 and bounds.items > 0 and self.steps is not None
        self.can_keep &= self.moved is not None
        self.can_keep &= bounds.items > 0 or not own_units(bounds.arch, bounds.level)
        self.can_keep &= sum(n > 1 for n in bounds.sizes) <= 8  # whose orders can be listed
        self.into = cache(lambda most: bounds.moved(self.tree.ones, most, most, None))  # items

    def aim(self) -> None:
        """Find the least steps, and the least bytes, that reach the bound."""
        value, goal, bound = self.bounds.value, self.tree.objective, self.tree.bound
        self.steps = first(lambda n: value(goal, n, 0) >= bound)
        self.moved = first(lambda n: value(goal, 0, n) >= bound)
        self.aimed = bound

    def grow(self) -> None:
        """Take boxes apart until all are closed, or there are too many."""
        todo, bodies = [self.tree.root], 0
        most = MAX_BODIES if self.can_list else 2 * self.max_boxes
        while todo:
            box = todo.pop()
            is_body = box[2] is not None
            bodies += is_body
            word = self.leaf(box)
            if not word and len(self.words) < 2 * self.max_boxes:
                if is_body:
                    word = self.body_split(box) if bodies < most else ""
                else:
                    word = self.item_split(box)
                    word = word or ("O" if self.can_keep and bodies < most else "")
            if not word:
                word = self.lower(box)
                if self.tree.bound <= self.least:
                    break
            self.words.append(word)
            todo += self.tree.split(box, word)

    def leaf(self, box: Box) -> str:
        """Find the leaf that closes a box, if one does."""
        low, high, kept, around = box
        if kept is None and self.can_list and self.are_long(low, high):  # sooner said than bytes
            return "S"
        moved = self.into(high) if kept is None else self.bounds.moved(low, high, around, kept)
        if self.moved is not None and moved >= self.moved:
            return "D"
        return "" if kept is None or self.bounds.can_be(low, kept) else "C"

    def are_long(self, low: Extents, high: Extents) -> bool:
        """Whether items of a box take the steps that are aimed at, in whatever lists."""
        least = self.steps
        return least is not None and all(n >= least for n in self.bounds.steps(low, high))

    def lower(self, box: Box) -> str:
        """Lower the bound to what holds in a box; returns the leaf that says so."""
        low, high, kept, around = box
        moved = self.into(high) if kept is None else self.bounds.moved(low, high, around, kept)
        found = {"D": self.bounds.value(self.tree.objective, 0, moved)}
        if self.can_list and kept is None:
            steps = min(self.bounds.steps(low, high))
            found["S"] = self.bounds.value(self.tree.objective, steps, 0)
        leaf = max(found, key=lambda name: found[name])
        self.tree.bound = min(self.tree.bound, found[leaf])
        if self.tree.bound < self.aimed * Fraction(999, 1000):
            self.aim()
        return leaf

    def item_split(self, box: Box) -> str:
        """Choose where to split items: the shortest dimension first."""
        for at in self.bounds.spatial if self.can_list else ():  # the shortest first
            extent = middle(self.bounds.sizes[at], box[0][at], box[1][at])
            if extent:
                return f"{self.tree.dims[at]}<={extent}"
        return ""

    def body_split(self, box: Box) -> str:
        """Choose where to split bodies: where both halves come nearest to being closed."""
        low, high, kept, around = box
        chosen, best = "", -1
        for at, size in enumerate(self.bounds.sizes):
            if low[at] < high[at]:
                extent = middle(size, low[at], high[at]) or (low[at] + high[at]) // 2
                left, right = list(high), list(low)
                left[at], right[at] = extent, extent + 1
                moved = self.bounds.moved(low, tuple(left), around, kept)
                score = moved * sum(self.bounds.footprints(tuple(right)).values())
                if score > best:
                    chosen, best = f"{self.tree.dims[at]}<={extent}", score
        return chosen


def first(reaches: Callable[[int], bool]) -> int | None:
    """Find the least whole number from which on something is reached; None if it is not."""
    low, high = -1, 1
    while not reaches(high):
        low, high = high, 2 * high
        if high > 2**100:
            return None
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (low, middle) if reaches(middle) else (middle, high)
    return high


def middle(size: int, low: int, high: int) -> int | None:
    """Find an extent to split a range at, such that no number of pieces is on both sides."""
    fewest, most = -(-size // high), -(-size // low)
    if fewest >= most:
        return None
    count = (fewest + most) // 2 if most - fewest < 8 else max(fewest, math.isqrt(fewest * most))
    return -(-size // count) - 1  # below: more than `count` pieces
