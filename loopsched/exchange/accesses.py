"""How one point of a problem touches its tensors, as text for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from loopsched.nests.loops_text import Span, index_text
from loopsched.nests.nest import Schedule
from loopsched.problems.problem import Axis, Problem, Tensor
from loopsched.problems.projections import span


@dataclass(frozen=True, slots=True)
class Guard:
    """A position that may lie in the padding.

    Parameters
    ----------
    position : str
    size : int, elements
        What is stored.
    before, after : bool
        Whether it may lie before the first, after the last stored position.
    """

    position: str
    size: int
    before: bool
    after: bool

    @property
    def tests(self) -> list[str]:
        """Comparisons, as C and Python write them, that hold where the position is stored."""
        tests = [f"{self.position} >= 0"] if self.before else []
        return tests + ([f"{self.position} < {self.size}"] if self.after else [])


@dataclass(frozen=True, slots=True)
class Access:
    """Where one point touches a tensor.

    Parameters
    ----------
    tensor : Tensor
    word : str
        What the program calls it.
    indices : tuple of str
        One an axis.
    guards : tuple of Guard
        What must hold, or the element is padding and counts as zero.
    """

    tensor: Tensor
    word: str
    indices: tuple[str, ...]
    guards: tuple[Guard, ...]

    @property
    def element(self) -> str:
        """The element as Python writes it."""
        return f"{self.word}[{', '.join(self.indices) or '()'}]"


def accesses(
    problem: Problem, schedule: Schedule, spans: Sequence[Span], words: Mapping[str, str]
) -> list[Access]:
    """Write the accesses of one point: the written tensor first, then the others.

    Parameters
    ----------
    problem : Problem
    schedule : Schedule
    spans : sequence of Span
        Of the schedule's loops.
    words : mapping of str to str
        What the program calls each tensor.

    Examples
    --------
    >>> from loopsched import conv2d, parse_schedule
    >>> from loopsched.nests.loops_text import loop_spans
    >>> problem = conv2d(c=1, k=1, h=9, w=9, r=3, s=1, padding=(1, 0))
    >>> schedule = parse_schedule("P:9 Q:9 R:3", problem)
    >>> words = {tensor.name: tensor.name for tensor in problem.tensors}
    >>> accesses(problem, schedule, loop_spans(problem, schedule), words)[1].guards
    (Guard(position='p + r - 1', size=9, before=True, after=True),)
    """
    point = dict.fromkeys(problem.dims, "0")
    for loop, one in zip(schedule.loops, spans, strict=True):
        point[loop.dim] = one.variable
    written = problem.output_tensor
    read = [tensor for tensor in problem.tensors if tensor is not written]
    return [_access(problem, tensor, words[tensor.name], point) for tensor in (written, *read)]


def _access(problem: Problem, tensor: Tensor, word: str, point: Mapping[str, str]) -> Access:
    # Without a stored size the first position that is reached is the first stored.
    stored = (axis if axis.size is not None else replace(axis, offset=0) for axis in tensor.axes)
    indices = tuple(index_text(axis, point) for axis in stored)
    guards = [
        _guard(problem, axis, index) for axis, index in zip(tensor.axes, indices, strict=True)
    ]
    return Access(tensor, word, indices, tuple(guard for guard in guards if guard))


def _guard(problem: Problem, axis: Axis, position: str) -> Guard | None:
    if axis.size is None:
        return None
    before = axis.offset < 0
    after = axis.offset + span(axis, problem.size) > axis.size
    return Guard(position, axis.size, before, after) if before or after else None
