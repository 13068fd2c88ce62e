"""What a search returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import overload

from loopsched.base.display import Shown
from loopsched.base.errors import ConstraintError, nearest
from loopsched.machines.arch import Arch
from loopsched.models.score import Evaluation, LevelScore
from loopsched.nests.nest import Schedule
from loopsched.problems.problem import Problem
from loopsched.scheduler.counting import n_schedules
from loopsched.scheduler.effort import Effort
from loopsched.scheduler.goal import OBJECTIVES, Objective, Value
from loopsched.scheduler.space import Space


@dataclass(frozen=True, slots=True)
class Certificate:
    """What a search can say about everything that it did not return.

    Parameters
    ----------
    proven : bool
        No schedule that the machine can run, within the constraints, has a smaller
        value of the objective, however many loops of a dimension it has; and a log
        that says so could be written (docs/proofs.md).
    lower_bound : float
        In the objective's unit: no schedule of the space is below it.
    value : float
        The returned schedule's.
    nodes : int
        Partial choices looked at.
    space : Space
        What was searched.
    listed : bool
        Every schedule of the space was scored: none with one loop of a
        dimension in each block is better.
    effort : Effort
        What the search might use, what it used, and what ended it early.
    ties_proven : bool
        Whether no schedule with the same value moves fewer DRAM bytes, takes
        fewer steps or has less inner traffic (in this order); otherwise the
        best of those that were scored is returned.
    unlogged : str
        Why a value that meets the bound is not ``proven``: what no log can say.
    """

    proven: bool
    lower_bound: float
    value: float
    nodes: int
    space: Space = field(repr=False)
    listed: bool = field(default=False, repr=False)
    effort: Effort = field(default_factory=Effort, repr=False)
    ties_proven: bool = field(default=False, repr=False)
    unlogged: str = field(default="", repr=False)

    @property
    def space_size(self) -> int:
        """Schedules in the space; counted when asked for."""
        return n_schedules(self.space)

    @property
    def gap(self) -> float:
        """How far the value may be above the optimum, relative to the bound."""
        if self.proven or self.value == self.lower_bound:
            return 0.0
        return self.value / self.lower_bound - 1 if self.lower_bound > 0 else float("inf")

    def without_log(self, why: str) -> Certificate:
        """Take back what no log can say."""
        return replace(self, proven=False, unlogged=why)


@dataclass(frozen=True, slots=True)
class Scored:
    """A schedule with its score."""

    schedule: Schedule
    evaluation: Evaluation


_provers: list[Callable[[Result], str]] = []


def prove_with(prover: Callable[[Result], str]) -> None:
    """Hand in what writes the proof of a `Result`."""
    _provers.append(prover)


@dataclass(frozen=True, slots=True)
class Result(Shown):
    """The best schedule found, and what is known about better ones.

    Parameters
    ----------
    problem : Problem
    arch : Arch
    objective : str
    strategy : str
    schedule : Schedule
    evaluation : Evaluation
    certificate : Certificate
    alternatives : tuple of Scored
        The next best schedules found, best first, one for each score.  That no
        others come between is proven only where the whole space was scored.

    See Also
    --------
    search, Evaluation
    """

    problem: Problem
    arch: Arch
    objective: Objective
    strategy: str
    schedule: Schedule
    evaluation: Evaluation
    certificate: Certificate
    alternatives: tuple[Scored, ...] = ()

    @property
    def stopped(self) -> str:
        """Why there is no proof, or what ended the search early; empty if it is proven and done.

        ``budget``, ``time limit``, ``gap`` and ``interrupt`` ended it.  Otherwise it was done:
        ``constraints``: it tried what they leave only in part, and its bound holds for the
        schedules that they exclude, too; ``listed``: it scored every schedule of the space, but
        one with more loops may be better; ``samples``: it tried only these; ``bound``: no
        schedule that it found meets the bound.
        """
        known = self.certificate
        if known.effort.stopped or not known.gap:
            return known.effort.stopped
        if known.listed:
            return "listed"
        if self.strategy in ("random", "local"):
            return "samples"
        return "bound" if known.space.constraints.is_free else "constraints"

    def of(self, problem: Problem) -> Result:
        """Say the same of an equal problem of another name."""
        if problem.name == self.problem.name:
            return self
        space = replace(self.certificate.space, problem=problem)
        return replace(self, problem=problem, certificate=replace(self.certificate, space=space))

    @property
    def proof(self) -> str:
        """The proof of its bound, as `proof_of` writes it; made anew each time."""
        return _provers[-1](self)


class Results(Sequence[Result]):
    """Results of a workload's problems, in order: a list whose items are found when asked for.

    Parameters
    ----------
    length : int
        How many there are.
    found : iterator of Result
        Where they come from; an interrupt may end it early.
    """

    def __init__(self, length: int, found: Iterator[Result]) -> None:
        self._length = length
        self._found = found
        self._kept: list[Result] = []

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Result]:
        place = 0
        while self._reaches(place):  # beyond the last, too: that is where an interrupt is raised
            yield self._kept[place]
            place += 1

    @overload
    def __getitem__(self, place: int) -> Result: ...
    @overload
    def __getitem__(self, place: slice) -> list[Result]: ...
    def __getitem__(self, place: int | slice) -> Result | list[Result]:
        wanted = range(self._length)[place]
        last = wanted if isinstance(wanted, int) else max(wanted, default=-1)
        self._reaches(last)
        return self._kept[wanted] if isinstance(wanted, int) else [self._kept[i] for i in wanted]

    def __repr__(self) -> str:
        return f"<{self._length} results, {len(self._kept)} found>"

    def _reaches(self, place: int) -> bool:
        """Find results up to a place; false if an interrupt has ended them before it."""
        while len(self._kept) <= place:
            try:
                self._kept.append(next(self._found))
            except StopIteration:
                return False
        return True


def time_of(evaluation: Evaluation, value: Value) -> float:
    """Time with promised, point or least traffic, at the sustained clock."""
    if value == "promised":
        return evaluation.time_s
    times = [evaluation.compute_time_s]
    for level in evaluation.levels:
        times.append(level.time_s * _bytes(level, value) / level.promised_bytes)
    return max(times)


def objective_value(
    evaluation: Evaluation, objective: Objective, value: Value = "promised"
) -> float:
    """Read an objective off a score.

    Raises
    ------
    ConstraintError
        If the objective is unknown, or the architecture gives no energies.
    """
    if objective == "dram_bytes":
        return _bytes(evaluation.levels[0], value)
    if objective == "time":
        return time_of(evaluation, value)
    if objective not in OBJECTIVES:
        raise ConstraintError(
            f"objective '{objective}' is unknown; {nearest(str(objective), OBJECTIVES)}"
        )
    if evaluation.energy_pj is None:
        raise ConstraintError(
            f"objective '{objective}' needs an energy for every level and for the arithmetic, "
            f"which '{evaluation.arch.name}' does not state; {_with_energies()}"
        )
    if objective == "energy":
        return evaluation.energy_pj
    return evaluation.energy_pj * time_of(evaluation, value)


@cache
def _with_energies() -> str:
    """Name the machines that state energies, of those that come with the program."""
    from loopsched.machines.arch_file import arch_names, load_arch

    names = [name for name in arch_names() if load_arch(name).has_energies]
    return f"of those included, {' '.join(names)} does"


def rank(
    evaluation: Evaluation, objective: Objective, value: Value = "promised"
) -> tuple[float, int, int, int]:
    """Order schedules: the objective, then DRAM bytes, compute, inner traffic."""
    return (
        objective_value(evaluation, objective, value),
        _bytes(evaluation.levels[0], value),
        evaluation.compute_steps,
        sum(_bytes(level, value) for level in evaluation.levels[1:]),
    )


def _bytes(level: LevelScore, value: Value) -> int:
    """Promised, or on request the point or least bytes of a level's outer boundary."""
    if value == "promised":
        return level.promised_bytes
    found: int = getattr(level.bytes, value)
    return found
