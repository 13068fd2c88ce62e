"""Proofs as lines of text: read one, and accept or refuse it (docs/proofs.md)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from loopsched.arch import Arch
from loopsched.arch_file import arch_from_dict
from loopsched.errors import InputError, ProofError
from loopsched.notation import parse_schedule
from loopsched.problem import Problem, Tensor
from loopsched.projections import parse_projection
from loopsched.verify.bounds import Bounds, Extents, Kept
from loopsched.verify.machine import resources, units_of
from loopsched.verify.value import value_of

FORMAT = "loopsched-proof-1"
KEYS = (
    "format", "problem", "machine", "objective", "spatial", "schedule", "best", "bound", "level",
    "tree",
)  # fmt: skip
OBJECTIVES = ("time", "dram_bytes", "energy", "edp")
SPLIT = re.compile(r"(\.?)([^\W\d]\w*)<=([0-9]{1,18})")
UNREADABLE = (
    InputError, ValueError, TypeError, KeyError, IndexError, AttributeError, ZeroDivisionError,
    OverflowError, RecursionError,
)  # fmt: skip
Node = tuple[Extents, Extents, Extents, Extents, Kept | None]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an accepted log proves.

    Parameters
    ----------
    problem : Problem
    arch : Arch
        Without sources, notes and what only kernels need.
    objective : str
    spatial : dict of str to tuple of str
        Dimensions that the loops of each unit may have: all schedules that
        keep to this are covered.
    schedule : str
    best, bound : Fraction
        The schedule's value; what no schedule is below.  In the objective's unit.
    boxes : int
        Leaves of the tree.
    together : str or None
        A scratchpad: only schedules that keep all its tiles at one place are covered.
    """

    problem: Problem
    arch: Arch
    objective: str
    spatial: dict[str, tuple[str, ...]]
    schedule: str
    best: Fraction
    bound: Fraction
    boxes: int
    together: str | None

    @property
    def proven(self) -> bool:
        """Whether the schedule is proven best of all that are covered."""
        return self.bound == self.best


def verify_proof(text: str) -> Verdict:
    """Check one proof.

    Raises
    ------
    ProofError
        If it proves nothing, or less than it says; with the place.
    """
    try:
        return _verified(json.loads(text))
    except ProofError:
        raise
    except UNREADABLE as error:
        raise ProofError(f"cannot be read: {error}") from None


def _verified(data: Any) -> Verdict:
    missing = [key for key in KEYS if key not in data] if isinstance(data, dict) else KEYS
    if missing or len(data) != len(KEYS) or data["format"] != FORMAT:
        raise ProofError(f"not a proof of format {FORMAT}: it has {', '.join(KEYS)}")
    problem, arch = read_problem(data["problem"]), arch_from_dict(data["machine"])
    best, bound, objective = Fraction(data["best"]), Fraction(data["bound"]), data["objective"]
    spatial = {unit: tuple(dims) for unit, dims in data["spatial"].items()}
    schedule = parse_schedule(data["schedule"], problem)
    if objective not in OBJECTIVES:
        raise ProofError(f"unknown objective {objective!r}")
    if set(spatial) != set(units_of(arch)) or not set().union(*spatial.values()) <= set(
        problem.dims
    ):
        raise ProofError("'spatial' must list dimensions for each unit of the machine")
    for loop in schedule.loops:
        if loop.level in spatial and loop.dim not in spatial[loop.level]:
            raise ProofError(f"schedule: {loop} is outside the space that 'spatial' states")
    value = value_of(problem, schedule, arch, objective)
    if value != best:
        raise ProofError(f"the schedule's value is {value}, not {best}")
    if not 0 <= bound <= best:
        raise ProofError(f"the bound {bound} is not between 0 and the best value {best}")
    level = arch.level(data["level"])
    if level is arch.memory:
        raise ProofError("'level' is the memory; a tree is about a level inside it")
    bounds = Bounds(problem, arch, level, spatial)
    boxes = check_tree(bounds, objective, bound, data["tree"])
    is_together = level.kind == "scratchpad" and "O" in data["tree"].split()
    together = level.name if is_together else None
    return Verdict(
        problem, arch, objective, spatial, data["schedule"], best, bound, boxes, together
    )


def read_problem(data: dict[str, Any]) -> Problem:
    """Read a problem from the plain form in which a proof states it."""
    tensors = tuple(
        Tensor(name, parse_projection(axes), size) for name, axes, size in data["tensors"]
    )
    return Problem(data["name"], tuple((d, n) for d, n in data["sizes"]), tensors, data["output"])


def least_value(bounds: Bounds, objective: str, steps: int, moved: int) -> Fraction:
    """Bound the objective by a number of steps and the bytes that cross the tree's level."""
    level_bytes = [sum(map(sum, each.values())) for each in bounds.least]
    level_bytes[bounds.at] = max(level_bytes[bounds.at], moved)
    seconds = max(bounds.ideal_s, steps / bounds.item_rate)
    return resources(bounds.problem, bounds.arch, objective, seconds, level_bytes)


def first(reaches: Callable[[int], bool]) -> int | None:
    """Find the least whole number from which on something is reached; None if it is not."""
    high = 1
    while not reaches(high):
        high *= 2
        if high > 2**100:
            return None
    low = high // 2
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (low, middle) if reaches(middle) else (middle, high)
    return high


def check_tree(bounds: Bounds, objective: str, bound: Fraction, tree: str) -> int:
    """Check that the boxes cover everything and that each leaf holds; returns their number."""
    enough = least_value(bounds, objective, 0, 0) >= bound
    steps = first(lambda n: least_value(bounds, objective, n, 0) >= bound)
    moved = first(lambda n: least_value(bounds, objective, 0, n) >= bound)
    ones, classes = (1,) * len(bounds.sizes), None
    todo: list[Node] = [(ones, bounds.sizes, ones, bounds.sizes, None)]
    boxes = 0
    for at, word in enumerate(tree.split()):
        if not todo:
            raise ProofError(f"tree, word {at} '{word}': all boxes are closed already")
        node = todo.pop()
        split = SPLIT.fullmatch(word)
        if split:
            todo += halves(bounds, node, split.groups(), f"tree, word {at} '{word}'")
        elif word == "O" and node[4] is None and bounds.has_bodies:
            classes = classes or bounds.classes()
            todo += [(*node[:4], kept) for kept in reversed(classes)]
        elif holds(bounds, node, word, enough, steps, moved):
            boxes += 1
        else:
            raise ProofError(f"tree, word {at} '{word}': does not hold in the box {node[:4]}")
    if todo:
        raise ProofError(f"tree: ends with {len(todo)} boxes open")
    return boxes


def halves(bounds: Bounds, node: Node, split: tuple[str, ...], where: str) -> list[Node]:
    """Split a box at an extent; the lower half comes last, so that it is taken first."""
    low, high = (node[2], node[3]) if split[0] else (node[0], node[1])
    at, extent = bounds.place.get(split[1], -1), int(split[2])
    if at < 0 or not low[at] <= extent < high[at]:
        raise ProofError(f"{where}: does not split the box")
    if not split[0] and not bounds.has_items:
        raise ProofError(f"{where}: level '{bounds.level.name}' has no items")
    middle = (*high[:at], extent, *high[at + 1 :])
    above = (*low[:at], extent + 1, *low[at + 1 :])
    if split[0]:
        return [(*node[:2], above, high, node[4]), (*node[:2], low, middle, node[4])]
    return [(above, high, *node[2:]), (low, middle, *node[2:])]


def holds(
    bounds: Bounds, node: Node, leaf: str, enough: bool, steps: int | None, moved: int | None
) -> bool:
    """Check one leaf."""
    low, high, inner_low, inner_high, kept = node
    match leaf:
        case "R":  # what holds for all schedules is enough
            return enough
        case "S":  # steps of a unit
            return steps is not None and bounds.items > 0 and bounds.takes(low, high, steps)
        case "D":  # data that items bring in
            return moved is not None and bounds.moved(high, high) >= moved
        case "T":  # data that bodies bring in
            return (
                moved is not None
                and kept is not None
                and bounds.moved(inner_high, high, kept) >= moved
            )
        case "C":  # no body fits
            return kept is not None and not bounds.capacity.fits(bounds.footprints(inner_low))
        case "E":  # bodies larger than their items
            return any(a > b for a, b in zip(inner_low, high, strict=True))
    return False
