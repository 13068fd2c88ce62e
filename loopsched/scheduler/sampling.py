"""Strategies for comparison: every schedule, random ones, and hill climbing."""

from __future__ import annotations

import random

from loopsched.base.errors import ConstraintError
from loopsched.scheduler.allowed import allowed, check_not_empty, parts
from loopsched.scheduler.climbing import climb, draws
from loopsched.scheduler.counting import every_choice, n_schedules
from loopsched.scheduler.effort import Watch
from loopsched.scheduler.exact import free_bound
from loopsched.scheduler.goal import Goal
from loopsched.scheduler.ranking import Ranking
from loopsched.scheduler.result import Result
from loopsched.scheduler.space import Space

MAX_EXHAUSTIVE = 10_000_000


def sampled_search(space: Space, goal: Goal, watch: Watch | None = None) -> Result:
    """Search by scoring schedules one by one.

    Parameters
    ----------
    space : Space
    goal : Goal
        Its strategy ``exhaustive`` scores every schedule of the space; ``random`` draws
        them, each as likely as any other; ``local`` climbs from random starts
        to better neighbours: one tile larger or smaller, two loops swapped.
    watch : Watch, optional
        What the work is charged to.

    Returns
    -------
    Result
        After an interrupt, the best so far, not proven.

    Raises
    ------
    ConstraintError
        If the space is too large for the strategy.
    EmptySpaceError
        If no schedule is left, or none fits.

    Examples
    --------
    >>> from loopsched import buffer_arch, gemm
    >>> from loopsched.scheduler import space_of
    >>> space = space_of(gemm(m=4, n=4, k=4), buffer_arch(capacity_bytes=96))
    >>> sampled_search(space, Goal("dram_bytes", "exhaustive")).certificate.value
    256
    """
    check_not_empty(space)
    watch = watch or Watch()
    found = Ranking(space, goal, watch)
    strategy, rng = goal.strategy, random.Random(goal.seed)
    is_complete = False
    if strategy == "exhaustive":
        _check_size(space)
    with watch.stopping():
        if strategy == "exhaustive":
            for limits in map(allowed, parts(space)):
                for choice in every_choice(limits):
                    found.add(limits.schedule(choice))
            is_complete = True
        elif strategy == "random":
            _draw(found, rng, goal.samples)
        else:
            climb(found, rng, goal.samples)
    if watch.why == "interrupt" and not found.best:
        raise KeyboardInterrupt
    floor = 0.0 if is_complete or watch.is_over else free_bound(space, goal, watch)
    return found.result(floor=floor, is_complete=is_complete)


def _check_size(space: Space) -> None:
    size = n_schedules(space)
    if size > MAX_EXHAUSTIVE:
        raise ConstraintError(
            f"problem '{space.problem.name}': the space has {size:,} schedules; exhaustive takes "
            f"at most {MAX_EXHAUSTIVE:,}: constrain it, or use strategy 'exact'"
        )


def _draw(found: Ranking, rng: random.Random, samples: int) -> None:
    drawn = draws(found.space, rng)
    for _ in range(samples):
        limits, choice = next(drawn)
        found.add(limits.schedule(choice))
