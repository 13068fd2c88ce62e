"""Proofs that can be checked: a tree of boxes that covers all schedules (docs/proofs.md).

The checker's own bounds (`loopsched.verify`) decide whether a leaf closes a box; what is
decided here is only where to split, and which bound to claim.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import permutations
from typing import Any

from loopsched.arch import Arch, Level
from loopsched.arch_format import arch_to_dict
from loopsched.errors import ConstraintError
from loopsched.nest import Schedule
from loopsched.problem import Problem
from loopsched.projections import projection_text
from loopsched.scheduler.result import Result
from loopsched.verify.bounds import Bounds
from loopsched.verify.log import FORMAT, Node, first, halves, least_value
from loopsched.verify.machine import own_units, units_of
from loopsched.verify.value import value_of

MAX_BOXES = 150_000
"""Boxes of one tree; what stays open then lowers the bound that is claimed."""

MAX_BODIES = 2_000
"""Boxes of bodies in one tree, which take longer."""


def proof_of(result: Result, *, max_boxes: int = MAX_BOXES) -> str:
    """Write the proof of what a search found, as one line of text.

    Parameters
    ----------
    result : Result
        Of a search for least promised cost (``value="high"``).
    max_boxes : int
        Give a bound up, and try a lower one, where it would take more boxes.

    Returns
    -------
    str
        What `loopsched.verify` reads.  Its bound is the highest that could be
        proven; it may be below the schedule's value.

    Raises
    ------
    ConstraintError
        If the result's value is not the promised one, or the machine leaves a choice.

    Examples
    --------
    >>> from loopsched import gemm, load_arch, search
    >>> line = proof_of(search(gemm(m=96, n=80, k=64), load_arch("titan_v")))
    >>> line[:31]
    '{"format": "loopsched-proof-1",'
    """
    problem, arch, objective = result.problem, result.arch, result.objective
    if any(level.may_hold for level in arch.levels):
        raise ConstraintError(
            f"'{arch.name}' leaves a choice of what its levels hold (may_hold); a proof speaks of "
            "one machine: write a machine without may_hold"
        )
    schedule, best = witness_of(result)
    if float(best) < result.certificate.value * (1 - 1e-9):
        raise ConstraintError(
            f"problem '{problem.name}': the search's value {result.certificate.value!r} is not "
            f"the promised one, {float(best)!r}; only promised values have proofs"
        )
    spatial = spatial_of(result)
    level = level_of(arch, objective)
    bounds = Bounds(problem, arch, level, {unit: tuple(dims) for unit, dims in spatial.items()})
    bound, tree = highest(bounds, objective, best, max_boxes)
    line = {
        "format": FORMAT,
        "problem": problem_data(problem),
        "machine": machine_data(arch),
        "objective": objective,
        "spatial": spatial,
        "schedule": str(schedule),
        "best": str(best),
        "bound": str(bound),
        "level": level.name,
        "tree": tree,
    }
    return json.dumps(line)


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
    is_plain = len({loop.level for loop in shared}) == 1 and len({x.dim for x in shared}) == len(at)
    for order in permutations(shared) if is_plain and len(at) < 5 else ():
        if float(best) <= limit:
            break
        loops = (*schedule.loops[: at[0]], *order, *schedule.loops[at[-1] + 1 :])
        value = value_of(problem, Schedule(loops), result.arch, result.objective)
        if value < best:
            chosen, best = Schedule(loops), value
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
    allowed = {slot.unit: list(slot.dims) for slot in result.certificate.space.slots if slot.unit}
    if sum(count > 1 for count in units.values()) != 1:
        return {unit: list(result.problem.dims) for unit in units}
    return {unit: allowed.get(unit, list(result.problem.dims)) for unit in units}


def level_of(arch: Arch, objective: str) -> Level:
    """Choose the level whose items and bodies the tree takes apart."""
    private = [level for level in arch.caches if own_units(arch, level)]
    return private[0] if objective == "time" and private else arch.caches[0]


def highest(bounds: Bounds, objective: str, best: Fraction, max_boxes: int) -> tuple[Fraction, str]:
    """Find the highest bound with a tree: the best value, or what can be had."""
    root = least_value(bounds, objective, 0, 0)
    if root < best:
        tree = Tree(bounds, objective, best, max_boxes)
        tree.grow()
        if tree.claim > root:
            return tree.claim, " ".join(tree.words)
    return min(root, best), "R"


@dataclass
class Tree:
    """A tree in the making.

    ``claim`` is what it is to prove; boxes that cannot be closed lower it.
    """

    bounds: Bounds
    objective: str
    claim: Fraction
    max_boxes: int
    words: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        claim = self.claim
        self.steps = first(lambda n: least_value(self.bounds, self.objective, n, 0) >= claim)
        self.moved = first(lambda n: least_value(self.bounds, self.objective, 0, n) >= claim)
        is_simple = self.bounds.items > 0 or not self.bounds.has_items
        self.can_keep = is_simple and self.bounds.has_bodies and self.moved is not None

    def grow(self) -> None:
        """Take boxes apart until all are closed, or there are too many."""
        bounds, classes, bodies = self.bounds, None, 0
        ones = (1,) * len(bounds.sizes)
        root = least_value(bounds, self.objective, 0, 0)
        todo: list[Node] = [(ones, bounds.sizes, ones, bounds.sizes, None)]
        while todo and self.claim > root:
            node = todo.pop()
            leaf = self.leaf(node)
            is_open = not leaf and len(self.words) < 2 * self.max_boxes
            bodies += node[4] is not None
            split = None
            if is_open:
                split = self.body_split(node) if node[4] else self.item_split(node)
                is_open = bodies < MAX_BODIES or node[4] is None
            if split and is_open:
                self.words.append(f"{split[0]}{split[1]}<={split[2]}")
                todo += halves(bounds, node, split, "")
            elif is_open and node[4] is None and self.can_keep and bodies < MAX_BODIES:
                classes = classes or bounds.classes()
                self.words.append("O")
                todo += [(*node[:4], kept) for kept in reversed(classes)]
            else:
                self.words.append(leaf or self.lower(node))

    def lower(self, node: Node) -> str:
        """Lower the claim to what holds in a box; returns the leaf that says so."""
        low, high, _, inner_high, kept = node
        moved = self.bounds.moved(inner_high if kept else high, high, kept)
        found = {"T" if kept else "D": least_value(self.bounds, self.objective, 0, moved)}
        if self.bounds.items and self.steps is not None:
            steps = first(lambda n: not self.bounds.takes(low, high, n)) or 1
            found["S"] = least_value(self.bounds, self.objective, steps - 1, 0)
        leaf = max(found, key=lambda name: found[name])
        self.claim = min(self.claim, found[leaf])
        return leaf

    def leaf(self, node: Node) -> str | None:
        """Find a leaf that closes a box."""
        low, high, inner_low, inner_high, kept = node
        bounds = self.bounds
        if kept is not None:
            if any(a > b for a, b in zip(inner_low, high, strict=True)):
                return "E"
            if self.moved is not None and bounds.moved(inner_high, high, kept) >= self.moved:
                return "T"
            return None if bounds.capacity.fits(bounds.footprints(inner_low)) else "C"
        if self.moved is not None and bounds.moved(high, high) >= self.moved:
            return "D"
        if self.steps is not None and bounds.items and bounds.takes(low, high, self.steps):
            return "S"
        return None

    def item_split(self, node: Node) -> tuple[str, str, str] | None:
        """Choose where to split items: the shortest dimension first."""
        for at in self.bounds.spatial if self.bounds.items else ():  # the shortest first
            extent = middle(self.bounds.sizes[at], node[0][at], node[1][at])
            if extent:
                return "", self.bounds.problem.dims[at], str(extent)
        return None

    def body_split(self, node: Node) -> tuple[str, str, str] | None:
        """Choose where to split bodies: where both halves come nearest to being closed."""
        _, high, low, most, kept = node
        chosen, best = None, -1.0
        for at, size in enumerate(self.bounds.sizes):
            extent = middle(size, low[at], min(most[at], high[at]))
            if low[at] >= most[at]:
                continue
            extent = extent or (low[at] + most[at]) // 2
            left, right = list(most), list(low)
            left[at], right[at] = extent, extent + 1
            moved = self.bounds.moved(tuple(left), high, kept) / (self.moved or math.inf)
            size_now = sum(self.bounds.footprints(tuple(right)).values())
            score = moved * size_now
            if score > best:
                chosen, best = (at, extent), score
        if chosen is None:
            return None
        return ".", self.bounds.problem.dims[chosen[0]], str(chosen[1])


def middle(size: int, low: int, high: int) -> int | None:
    """Find an extent to split a range at, such that no number of pieces is on both sides."""
    fewest, most = -(-size // high), -(-size // low)
    if fewest >= most:
        return None
    count = (fewest + most) // 2 if most - fewest < 8 else max(fewest, math.isqrt(fewest * most))
    return -(-size // count) - 1  # below: more than `count` pieces
