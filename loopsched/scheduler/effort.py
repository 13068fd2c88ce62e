"""How much a search may do: units of work, seconds, and how near to proven is enough.

Work is counted, not timed: a budget of work gives the same result on any
machine and for any number of jobs.  One unit is one partial choice that a
compiled kernel looks at; everything else is charged by what it costs about as
much as.  A time limit, or an interrupt, depends on the machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from loopsched.base.arguments import is_count, show
from loopsched.base.errors import ConstraintError

Reason = Literal["", "budget", "time limit", "gap", "interrupt"]

# Units of an exact search where nobody says otherwise: some ten seconds at most.
DEFAULT_WORK = 2**24
# What scoring a schedule costs, in units; and counting the steps of one.
SCORING = 4096
COUNTING = 256
# Units that a kernel may use before the clock is looked at: some hundredths of a second.
SLICE = 2**17
_REPORT_S = 0.2


@dataclass(frozen=True, slots=True)
class Budget:
    """What a search may use before it returns the best so far.

    Parameters
    ----------
    work : int, optional
        Units of work; None: `DEFAULT_WORK` for the exact search, no limit for
        the other strategies.
    time_s : float, seconds, optional
        By the clock; results then depend on the machine.
    gap : float
        Stop when the best is proven to be within this fraction of the optimum.

    Raises
    ------
    ConstraintError
        If a number makes no sense.

    Examples
    --------
    >>> Budget(work=10_000).of_exact().work, Budget().of_exact().work == DEFAULT_WORK
    (10000, True)
    """

    work: int | None = None
    time_s: float | None = None
    gap: float = 0.0

    def __post_init__(self) -> None:
        faults = []
        if self.work is not None and not is_count(self.work):
            faults.append(f"budget is {show(self.work)}; a whole number >= 1 is needed")
        if self.time_s is not None and not _is_number(self.time_s, above=0.0):
            faults.append(f"time_limit_s is {show(self.time_s)}; a number of seconds > 0 is needed")
        if not (self.gap == 0 or _is_number(self.gap, above=0.0)):
            faults.append(f"gap is {show(self.gap)}; a fraction >= 0 is needed, such as 0.01")
        if faults:
            raise ConstraintError.joined("search", faults)

    def of_exact(self) -> Budget:
        """Fill in the default work of the exact search."""
        if self.work is not None:
            return self
        return Budget(DEFAULT_WORK, self.time_s, self.gap)


def _is_number(given: object, above: float) -> bool:
    return isinstance(given, int | float) and above < given < float("inf")


@dataclass(frozen=True, slots=True)
class Effort:
    """What a search used, and what ended it.

    Parameters
    ----------
    budget : Budget
    work : int
        Units used.
    stopped : {'', 'budget', 'time limit', 'gap', 'interrupt'}
        What ended the search before it was done; empty if nothing did.
    """

    budget: Budget = Budget()
    work: int = 0
    stopped: Reason = ""


class Stopped(Exception):  # noqa: N818 - no error: a search catches it and returns its best
    """Ends a search from anywhere inside it."""


Report = Callable[[float, float], None]


@dataclass
class Watch:
    """A budget while it is being used.

    Parameters
    ----------
    budget : Budget
    report : callable, optional
        Told the best value and the lower bound, a few times a second.

    Examples
    --------
    >>> watch = Watch(Budget(work=100))
    >>> watch.spend(40)
    >>> with watch.stopping():
    ...     watch.spend(60)
    >>> watch.effort().stopped
    'budget'
    """

    budget: Budget = field(default_factory=Budget)
    report: Report | None = None
    spent: int = 0
    why: Reason = ""

    def __post_init__(self) -> None:
        now = time.monotonic()
        self._end = None if self.budget.time_s is None else now + self.budget.time_s
        self._told = now

    @property
    def is_over(self) -> bool:
        """Whether the search has been ended."""
        return bool(self.why)

    def spend(self, work: int) -> None:
        """Charge work; ends the search if there is none left, or no time."""
        self.spent += work
        if self.budget.work is not None and self.spent >= self.budget.work:
            self.end("budget")
        if self._end is not None and time.monotonic() >= self._end:
            self.end("time limit")

    def can_spend(self, work: int) -> bool:
        """Whether work may be charged and leaves some."""
        return self.budget.work is None or self.spent + work < self.budget.work

    def settle(self, best: float, bound: float) -> None:
        """Tell how far the search is; ends it if that is near enough."""
        if self.budget.gap and best <= bound * (1 + self.budget.gap):
            self.end("gap")
        if self.report is not None:
            now = time.monotonic()
            if now - self._told >= _REPORT_S:
                self._told = now
                self.report(best, bound)

    def end(self, why: Reason) -> None:
        """End the search.

        Raises
        ------
        Stopped
        """
        self.why = why
        raise Stopped

    def slice(self, most: int) -> int:
        """Say how many units a kernel may use before it has to come back."""
        left = SLICE if self.budget.work is None else max(1, self.budget.work - self.spent)
        return min(SLICE, left, most)

    @contextmanager
    def stopping(self) -> Iterator[None]:
        """Catch the end of the search, and Ctrl-C."""
        try:
            yield
        except Stopped:
            pass
        except KeyboardInterrupt:
            self.why = "interrupt"

    def rest(self) -> Watch:
        """Watch a search inside this one: half of what is left, and no gap."""
        work, time_s = self.budget.of_exact().work, None
        if work is not None:
            work = max(1, (work - self.spent) // 2)
        if self._end is not None:
            time_s = max(1e-3, (self._end - time.monotonic()) / 2)
        return Watch(Budget(work, time_s))

    def part(self, parts: int) -> Watch:
        """Watch one of several searches: an equal part of what is left."""
        work, time_s = self.budget.work, None
        if work is not None:
            work = max(1, (work - self.spent) // parts)
        if self._end is not None:
            time_s = max(1e-3, (self._end - time.monotonic()) / parts)
        return Watch(Budget(work, time_s, self.budget.gap), self.report)

    def join(self, part: Watch) -> None:
        """Charge what a part has used; what ended it short of its goal counts."""
        self.spent += part.spent
        if part.why and self.why in ("", "gap"):
            self.why = part.why

    def effort(self) -> Effort:
        """Say what has been used."""
        return Effort(self.budget, self.spent, self.why)
