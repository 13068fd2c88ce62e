"""Operations on schedules as values, and traces of them.

A trace is a tuple of moves: applied one after the other, they lead from one schedule to
another.  As text, moves stand behind a schedule, with ``|`` before each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from inspect import signature

from loopsched.base.arguments import is_count, near, show
from loopsched.base.errors import ScheduleError
from loopsched.nests import ops
from loopsched.nests.nest import Schedule

MAX_MOVES = 1000
Argument = int | str | tuple[int | str, ...]

_BOUND = 10**18
_NUMBER = re.compile(r"-?[0-9]{1,18}")


def _usage(operation: Callable[..., Schedule]) -> tuple[Callable[..., Schedule], range, str]:
    """Give an operation, how many arguments it takes besides the schedule, and their names."""
    _, *taken = signature(operation).parameters.values()
    needed = [one.name for one in taken if one.default is one.empty]
    others = [f"[{one.name}]" for one in taken if one.default is not one.empty]
    words = " ".join([operation.__name__, *needed, *others])
    return operation, range(len(needed), len(taken) + 1), words


_OPERATIONS = {
    operation.__name__: _usage(operation)
    for operation in (
        ops.tile, ops.split, ops.resize, ops.drop_loop, ops.reorder, ops.interchange,
        ops.bind_spatial, ops.unbind, ops.drop_unit_loops,
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Move:
    """One operation on a schedule, as a value.

    Parameters
    ----------
    operation : str
        A function that takes a schedule, such as `loopsched.tile`.
    arguments : tuple of int, str, or tuple of these
        What it takes besides the schedule: a loop or dimension, then the rest.

    Raises
    ------
    ScheduleError
        If there is no such operation, or it does not take such arguments.

    Examples
    --------
    >>> from loopsched.nests.nest import Loop
    >>> before = Schedule((Loop("M", 64), Loop("K", 64)))
    >>> move = Move("tile", ("M", 8))
    >>> print(move, "gives", move.apply(before))
    tile M 8 gives M:64 K:64 M:8
    """

    operation: str
    arguments: tuple[Argument, ...] = ()

    def __post_init__(self) -> None:
        name, given = self.operation, self.arguments
        if not isinstance(name, str) or name not in _OPERATIONS:
            raise ScheduleError(f"move: unknown operation {show(name)}; {near(name, _OPERATIONS)}")
        _, counts, usage = _OPERATIONS[name]
        if not isinstance(given, tuple) or len(given) not in counts:
            raise ScheduleError(f"move: {name} of {show(given)}; '{usage}' is needed")
        for argument in given:
            for each in argument if isinstance(argument, tuple) else (argument,):
                is_word = isinstance(each, str) and each.isidentifier()
                if not is_word and not is_count(each, 1 - _BOUND, _BOUND - 1):
                    raise ScheduleError(
                        f"move: {name} of {show(each)}; whole numbers and plain words are allowed"
                    )

    def apply(self, schedule: Schedule) -> Schedule:
        """Return the schedule that the move makes of one.

        Raises
        ------
        ScheduleError
            If the operation refuses it.
        """
        with ScheduleError.at(f"move {show(str(self))}"):
            return _OPERATIONS[self.operation][0](schedule, *self.arguments)

    def __str__(self) -> str:
        return " ".join([self.operation, *map(_word, self.arguments)])


def _word(argument: Argument) -> str:
    if not isinstance(argument, tuple):
        return str(argument)
    return ",".join(map(str, argument)) + "," * (len(argument) < 2)


def parse_moves(text: str) -> tuple[Move, ...]:
    """Read moves from text, ``|`` between them.

    Raises
    ------
    ScheduleError
        With the fault of the first move that cannot be read.

    See Also
    --------
    apply_moves, moves_between

    Examples
    --------
    >>> parse_moves("tile M 8 | reorder 1,0,2")
    (Move(operation='tile', arguments=('M', 8)), Move(operation='reorder', arguments=((1, 0, 2),)))
    """
    parts = [part.split() for part in text.split("|")]
    if len(parts) > MAX_MOVES:
        raise ScheduleError(f"{len(parts)} moves; at most {MAX_MOVES} are allowed")
    if [] in parts:
        raise ScheduleError(
            f"move {parts.index([]) + 1} of {show(text)} is empty; an operation is needed, such as "
            "'tile M 8'"
        )
    return tuple(Move(name, tuple(map(_argument, words))) for name, *words in parts)


def _argument(word: str) -> Argument:
    if "," in word:
        return tuple(_single(each) for each in word.removesuffix(",").split(",") if word != ",")
    return _single(word)


def _single(word: str) -> int | str:
    return int(word) if _NUMBER.fullmatch(word) else word


def apply_moves(schedule: Schedule, moves: Sequence[Move] | str) -> Schedule:
    """Replay a trace: apply moves, given as values or as text, one after the other.

    Raises
    ------
    ScheduleError
        If a move cannot be read, or is refused where its turn comes.

    See Also
    --------
    moves_between, parse_moves

    References
    ----------
    Y. Ikarashi et al., *Exocompilation for Productive Programming of Hardware Accelerators*
    (Exo), PLDI 2022.

    Examples
    --------
    >>> from loopsched.nests.nest import Loop
    >>> before = Schedule((Loop("M", 64), Loop("K", 64)))
    >>> print(apply_moves(before, "tile M 8 | bind_spatial 0 SM | interchange 1 2"))
    M:64@SM M:8 K:64
    """
    trace = parse_moves(moves) if isinstance(moves, str) else moves
    if not isinstance(trace, tuple | list) or not all(isinstance(one, Move) for one in trace):
        raise ScheduleError(f"moves are {show(moves)}; text or a tuple of Move is needed")
    return reduce(lambda now, move: move.apply(now), trace, schedule)


def moves_between(before: Schedule, after: Schedule) -> tuple[Move, ...]:
    """Find a trace that leads from one schedule to another of the same problem.

    Loops are dropped and added, dimension by dimension, and get their tile sizes; then the
    order changes; then the units that run them.

    Parameters
    ----------
    before, after : Schedule
        Without tiles placed one by one.

    Raises
    ------
    ScheduleError
        If their loops do not cover the same.

    See Also
    --------
    apply_moves, parse_moves

    Examples
    --------
    >>> from loopsched.nests.nest import Loop
    >>> plain = Schedule((Loop("M", 64), Loop("K", 64)))
    >>> print(*moves_between(plain, apply_moves(plain, "unbind | split K 4")))
    tile K 4
    """
    for one in (before, after):
        one.check_even("a trace of moves")
    outer, inner = before.extents_from(0), after.extents_from(0)
    if not set(inner) <= set(outer) or any(outer[dim] != inner.get(dim, 1) for dim in outer):
        raise ScheduleError(f"no moves lead from '{before}' to '{after}': what they cover differs")
    trace: list[Move] = []

    def make(now: Schedule, operation: str, *arguments: Argument) -> Schedule:
        trace.append(Move(operation, arguments))
        return trace[-1].apply(now)

    now = before
    for dim, wanted in _extents(after, before.dims).items():
        while len(have := _places(now, dim)) > len(wanted):
            odd = [at for at in have if now.loops[at].extent not in wanted]
            now = make(now, "drop_loop", (odd or have)[-1])
        while len(have := _places(now, dim)) < len(wanted):
            known = [now.loops[at].extent for at in have]
            new = next(each for each in wanted if known.count(each) < wanted.count(each))
            inside = [at for at in have if now.loops[at].extent < new][:1]
            now = make(now, "tile", dim, new, *inside)
    for dim, wanted in _extents(after, before.dims).items():
        for at, extent in zip(_places(now, dim), wanted, strict=True):
            if now.loops[at].extent != extent:
                now = make(now, "resize", at, extent)
    places = {dim: _places(now, dim) for dim in now.dims}
    order = tuple(places[loop.dim].pop(0) for loop in after.loops)
    if list(order) != sorted(order):
        now = make(now, "reorder", order)
    for at, (loop, target) in enumerate(zip(now.loops, after.loops, strict=True)):
        if loop.unit != target.unit:
            given = ("bind_spatial", at, target.unit) if target.unit else ("unbind", at)
            now = make(now, *given)
    return tuple(trace)


def _places(schedule: Schedule, dim: str) -> list[int]:
    return [at for at, loop in enumerate(schedule.loops) if loop.dim == dim]


def _extents(schedule: Schedule, dims: Sequence[str]) -> dict[str, list[int]]:
    return {dim: [schedule.loops[at].extent for at in _places(schedule, dim)] for dim in dims}
