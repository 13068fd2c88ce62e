"""Keep the best of many schedules while a search scores them."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from loopsched.base.errors import EmptySpaceError, ScheduleError
from loopsched.models.buffer import QUICK
from loopsched.models.score import Evaluation, evaluate
from loopsched.nests.nest import Schedule
from loopsched.scheduler.counting import n_schedules
from loopsched.scheduler.effort import SCORING, Watch
from loopsched.scheduler.goal import Goal
from loopsched.scheduler.least import cuts_evenly
from loopsched.scheduler.result import Certificate, Result, Scored, objective_value, rank
from loopsched.scheduler.space import Space

Rank = tuple[float, int, int, int]
_REMEMBERED = 65536


@dataclass
class Ranking:
    """The best schedules of a space that have been scored so far.

    Parameters
    ----------
    space : Space
    goal : Goal
        What is minimised, and how many to keep.
    watch : Watch, optional
        What the work is charged to.
    """

    space: Space
    goal: Goal
    watch: Watch = field(default_factory=Watch)
    n_scored: int = 0
    n_invalid: int = 0
    best: list[tuple[Rank, str, Schedule, Evaluation]] = field(default_factory=list)
    _known: OrderedDict[Schedule, Rank | None] = field(default_factory=OrderedDict)

    def add(self, schedule: Schedule) -> Rank | None:
        """Score a schedule; None if the machine cannot run it."""
        if self.best:  # one schedule is scored whatever the budget
            self.watch.spend(SCORING)
        self.n_scored += 1
        if schedule in self._known:
            self.n_invalid += self._known[schedule] is None
            return self._known[schedule]
        try:
            evaluation = evaluate(self.space.problem, schedule, self.space.arch, effort=QUICK)
        except ScheduleError:
            self.n_invalid += 1
            return self._remember(schedule, None)
        found = rank(evaluation, self.goal.objective, self.goal.value)
        entry = (found, str(schedule), schedule, evaluation)
        if len(self.best) < self.goal.top or entry[:2] < self.best[-1][:2]:
            self.best = [kept for kept in self.best if kept[1] != entry[1]]
            self.best.append(entry)
            self.best.sort(key=lambda kept: kept[:2])
            del self.best[self.goal.top :]
        return self._remember(schedule, found)

    def _remember(self, schedule: Schedule, found: Rank | None) -> Rank | None:
        self._known[schedule] = found
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return found

    @property
    def least(self) -> float:
        """The best value of the objective so far."""
        return self.best[0][0][0] if self.best else float("inf")

    def result(self, *, floor: float, is_complete: bool, nodes: int = 0) -> Result:
        """Make a result of what there is.

        Parameters
        ----------
        floor : float
            A lower bound that holds for every schedule of the space.
        is_complete : bool
            Whether every schedule has been scored.
        nodes : int
            Looked at besides the scored ones.

        Raises
        ------
        EmptySpaceError
            If no schedule could be run.
        """
        space, goal = self.space, self.goal
        if not self.best:
            raise EmptySpaceError(
                f"problem '{space.problem.name}': none of the {self.n_scored} schedules looked at "
                f"fits '{space.arch.name}'"
            )
        _, _, schedule, evaluation = self.best[0]
        value = objective_value(evaluation, goal.objective, goal.value)
        proven = value <= floor or (is_complete and is_whole(space))
        certificate = Certificate(
            proven, value if proven else floor, value, self.n_scored + nodes, space, is_complete,
            self.watch.effort(),
        )  # fmt: skip
        return Result(
            space.problem, space.arch, goal.objective, goal.strategy, schedule, evaluation,
            certificate, tuple(Scored(s, e) for _, _, s, e in self.best[1:]),
        )  # fmt: skip


def is_whole(space: Space) -> bool:
    """Whether a space holds the best of all that the machine can run within the constraints.

    Its blocks have one loop of a dimension each.  A second one may be better
    where cuts are uneven, in a list of items, or where constraints keep the
    loop from the extent that it wants; and tiles of scratchpads may be placed
    one by one, and loops handed to lanes, which share what they ask for at once.
    """
    if space.spatial or space.arch.has_scratchpads or space.arch.compute.lane_unit:
        return False
    if not cuts_evenly(space.problem):
        return False
    return space.constraints.is_free or (n_schedules(space) == 1 and _is_full(space))


def _is_full(space: Space) -> bool:
    """Whether a prefix leaves no loop to add: none of three iterations or more inside it."""
    words = space.constraints.prefix.replace(",", " ").split()
    pairs = (word.partition("@")[0].partition(":") for word in words)
    last = {dim.casefold(): int(extent) for dim, _, extent in pairs}
    sizes = ((dim.casefold(), size) for dim, size in space.problem.sizes)
    return all(last.get(dim, 3) < 3 for dim, size in sizes if size > 1)
