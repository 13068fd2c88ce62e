"""Proofs as lines of text: read one, and accept or refuse it (docs/proofs.md)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

from loopsched.base.errors import ProofError
from loopsched.machines.arch import Arch
from loopsched.machines.arch_file import arch_from_dict
from loopsched.problems.problem import Problem
from loopsched.verify import readers
from loopsched.verify.bounds import Bounds, Extents, Kept
from loopsched.verify.value import value_of

UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
Box = tuple[Extents, Extents, Kept | None, Extents]  # of items; or of bodies inside such items


class Verdict(NamedTuple):
    """What an accepted proof shows.

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
        The schedule's value, and the bound that no schedule is below; in the objective's
        unit.
    boxes : int
        Boxes that the proof divides the schedules into.
    together : str or None
        A scratchpad: only schedules that keep all its tiles at one place are covered.
    covered : bool
        Whether the schedule is one of those.
    """

    problem: Problem
    arch: Arch
    objective: str
    spatial: readers.Spatial
    schedule: str
    best: Fraction
    bound: Fraction
    boxes: int
    together: str | None
    covered: bool

    @property
    def proven(self) -> bool:
        """Whether the schedule is covered, and proven best of all that are."""
        return self.covered and self.bound == self.best


def verify_proof(text: str) -> Verdict:
    """Check one proof.

    Raises
    ------
    ProofError
        If it proves nothing, or less than it says; with the place.

    See Also
    --------
    verify_proofs, proof_of
    """
    try:
        return _verified(readers.read_line(text))
    except UNREADABLE as error:
        is_said = isinstance(error, ProofError)
        raise error if is_said else ProofError(f"cannot be read: {error}") from None


def _verified(data: dict[str, Any]) -> Verdict:
    problem, arch = readers.read_problem(data["problem"]), arch_from_dict(data["machine"])
    best, bound, objective = Fraction(data["best"]), Fraction(data["bound"]), data["objective"]
    spatial = readers.read_spatial(data["spatial"], problem, arch)
    schedule = readers.read_schedule(data["schedule"], problem, spatial)
    value = value_of(problem, schedule, arch, objective)
    if value != best:
        raise ProofError(f"the schedule's value is {value}, not {best}")
    if not 0 <= bound <= best:
        raise ProofError(f"the bound {bound} is not between 0 and the best value {best}")
    words, level = data["tree"].split(), arch.level(data["level"])
    boxes = Tree(Bounds(problem, arch, level, spatial), objective, bound).check(words)
    together = level.name if level.kind == "scratchpad" and "O" in words else None
    covered = all(place.level != together for place in schedule.places)
    named = str(schedule)
    return Verdict(problem, arch, objective, spatial, named, best, bound, boxes, together, covered)


class Tree:
    """Boxes that cover all schedules, each closed by one inequality.

    Parameters
    ----------
    bounds : Bounds
    objective : str
    bound : Fraction
        What no schedule is to be below.
    """

    def __init__(self, bounds: Bounds, objective: str, bound: Fraction) -> None:
        self.bounds, self.objective, self.bound = bounds, objective, bound
        self.ones, self.dims = (1,) * len(bounds.sizes), bounds.problem.dims
        self.root: Box = (self.ones, bounds.sizes, None, bounds.sizes)
        self.enough: dict[str, int] = {}  # steps and bytes that are known to reach the bound

    def check(self, words: list[str]) -> int:
        """Check that the boxes cover everything and that each leaf holds; returns their number."""
        todo = [self.root]
        for at, word in enumerate(words):
            where = f"tree, word {at} '{word}'"
            if not todo:
                raise ProofError(f"{where}: all boxes are closed already")
            box = todo.pop()
            inside = self.split(box, word, where)
            todo += inside
            if not inside and not self.holds(box, word):
                raise ProofError(f"{where}: does not hold in the box {box[0]} to {box[1]}")
        if todo:
            raise ProofError(f"tree: ends with {len(todo)} boxes open")
        return sum(word in ("C", "D", "S") for word in words)

    def split(self, box: Box, word: str, where: str = "") -> list[Box]:
        """Take a box apart, the first part last; leaves have no parts."""
        low, high, kept, around = box
        if word == "O" and kept is None:
            return [(self.ones, high, each, high) for each in reversed(self.bounds.classes())]
        found = readers.SPLIT.fullmatch(word)
        if not found:
            return []
        at, extent = self.dims.index(found[1]) if found[1] in self.dims else -1, int(found[2])
        if at < 0 or not low[at] <= extent < high[at]:
            raise ProofError(f"{where}: does not split the box")
        above = (*low[:at], extent + 1, *low[at + 1 :])
        below = (*high[:at], extent, *high[at + 1 :])
        return [(above, high, kept, around), (low, below, kept, around)]

    def holds(self, box: Box, leaf: str) -> bool:
        """Check one leaf."""
        low, high, kept, around = box
        if leaf == "C":  # no body fits
            return kept is not None and not self.bounds.can_be(low, kept)
        if leaf == "S" and kept is None and self.bounds.items:
            more = min(self.bounds.steps(low, high)), 0
        elif leaf == "D":
            more = 0, self.bounds.moved(low, high, high if kept is None else around, kept)
        else:
            return False
        if leaf not in self.enough or sum(more) < self.enough[leaf]:
            if self.bounds.value(self.objective, *more) < self.bound:
                return False
            self.enough[leaf] = sum(more)
        return True
