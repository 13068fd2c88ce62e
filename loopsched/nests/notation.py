"""Schedules as text: ``dim:extent``, ``dim:extent@unit``, ``[level tensor]``, outermost first.

Files of schedules are read by `loopsched.nests.schedule_file`; the rendering as
``for`` loops is `loopsched.nests.loops_text`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain

from loopsched.base.arguments import show
from loopsched.base.errors import ScheduleError, nearest
from loopsched.nests.moves import apply_moves
from loopsched.nests.nest import PASSES, Loop, Place, Schedule
from loopsched.problems.problem import Problem

DIALECTS = ("loopsched", "yalsa")
MAX_LOOPS = 1000

_TOKEN = re.compile(r"\[[^\[\]]*\]|[^\s,\[\]]+|[\[\]]")
_WORD = re.compile(r"[^\s,]+")
_EXTENT = re.compile(r"[0-9]{1,18}")
_NO_COLON = re.compile(r"([^\W\d_]+)([0-9]+)")

# Other people's names for the dimensions of a convolution, case folded.
_CONV_ALIASES = {
    "N": "b batch on",
    "G": "group groups",
    "K": "m oc ok cout out_channels",
    "C": "ic cin in_channels",
    "P": "y oy oh height out_height",
    "Q": "x ox ow width out_width",
    "R": "fy fh kh ky filter_h filter_height",
    "S": "fx fw kw kx filter_w filter_width",
}
_YALSA = {
    "conv2d": {"n": "N", "c": "C", "k": "K", "x": "Q", "y": "P", "s": "S", "r": "R"},
    "gemm": {"n": "M", "c": "K", "k": "N"},
}


def parse_schedule(text: str, problem: Problem, *, dialect: str = "loopsched") -> Schedule:
    """Read a schedule from text and check that it covers the problem.

    Parameters
    ----------
    text : str
        Loops from outermost to innermost, with spaces, line breaks or commas
        between them.  ``dim:extent`` is temporal; ``dim:extent@unit`` is
        spatial, run by the instances of ``unit``.  Case does not
        matter in names of dimensions unless two differ in nothing else;
        convolutions also answer to the usual other names (``OY``, ``B``).
        ``[level tensor ..]``: from here inward the scratchpad ``level`` holds
        a tile of each of these tensors.  ``[level -tensor ..]``, before all
        loops: these tensors bypass a level that may hold them.  At the end, each after
        a ``|``, moves that change the schedule, such as ``tile M 8``.
    problem : Problem
    dialect : str
        ``yalsa`` reads Yalsa's own letters: for a convolution x and y are the
        width and height of the output; a GEMM is A[n,c] B[c,k]
        C[n,k].

    Raises
    ------
    ScheduleError
        With every fault found and the place of each.

    See Also
    --------
    format_schedule, render_loops

    Examples
    --------
    >>> from loopsched.problems.builders import conv2d, gemm
    >>> problem = gemm(m=1760, n=128, k=1760)
    >>> print(parse_schedule("M:1760@SM n:128, k:1760 m:128 K:32", problem))
    M:1760@SM N:128 K:1760 M:128 K:32
    >>> print(parse_schedule("n:1760 c:1760 k:128", problem, dialect="yalsa"))
    M:1760 K:1760 N:128
    >>> image = conv2d(c=8, k=16, p=7, q=9, r=1, s=1)
    >>> print(parse_schedule("OY:7 OX:9 OC:16 IC:8", image))
    P:7 Q:9 K:16 C:8
    >>> print(parse_schedule("M:1760 [L1 C] K:1760 [L1 A B] N:128", problem))
    M:1760 [L1 C] K:1760 [L1 A B] N:128
    >>> print(parse_schedule("[L1 -A] M:1760 K:1760 N:128", problem))
    [L1 -A] M:1760 K:1760 N:128
    >>> print(parse_schedule("M:1760 K:1760 N:128 | tile M 128 | bind_spatial 0 SM", problem))
    M:1760@SM K:1760 N:128 M:128
    """
    if not isinstance(text, str):
        raise ScheduleError(f"schedule is {show(text)}; text is needed, such as 'M:128 K:64'")
    text, mark, moves = text.partition("|")
    names = names_of(problem, dialect)
    tokens, marks = _tokens(text)
    if len(tokens) > MAX_LOOPS:
        raise ScheduleError(f"schedule: {len(tokens)} loops; at most {MAX_LOOPS} are allowed")
    read = [_read(token, names) for token in tokens]
    # A dimension whose extent is not readable has one fault already.
    unread = {one.dim for one in read if one.extent is None and one.dim is not None}
    faults = list(chain.from_iterable(one.faults for one in read))
    faults += _growth(read)
    faults += _coverage(read, problem, names, unread)
    places = list(_places(marks, problem, faults))
    ScheduleError.refuse(f"schedule for '{problem.name}'", faults)
    loops = (Loop(one.dim, one.extent, one.unit) for one in read if one.dim and one.extent)
    schedule = Schedule(tuple(loops), tuple(places)).check(problem)
    return apply_moves(schedule, moves) if mark else schedule


def format_schedule(schedule: Schedule) -> str:
    """Write a schedule as text that `parse_schedule` reads back.

    See Also
    --------
    parse_schedule, render_loops

    Examples
    --------
    >>> from loopsched.nests.nest import PASSES, Loop, Place, Schedule
    >>> format_schedule(Schedule((Loop("M", 8, "SM"), Loop("K", 4), Loop("M", 2))))
    'M:8@SM K:4 M:2'
    """
    return str(schedule)


@dataclass(frozen=True, slots=True)
class Names:
    """The names that a text may use, folded, and how to write each dimension."""

    exact: frozenset[str]
    folded: Mapping[str, str]
    spelling: Mapping[str, str]

    def find(self, word: str) -> str | None:
        return word if word in self.exact else self.folded.get(word.casefold())

    def meant(self, word: str) -> str:
        return nearest(word, self.spelling.values())


@dataclass(frozen=True, slots=True)
class _Read:
    """What was understood of one token; None where it was not."""

    place: str
    dim: str | None
    extent: int | None
    unit: str | None
    faults: tuple[str, ...]


def names_of(problem: Problem, dialect: str) -> Names:
    if dialect not in DIALECTS:
        raise ScheduleError(f"dialect is {show(dialect)}; one of {' '.join(DIALECTS)} is needed")
    if dialect == "yalsa":
        return _yalsa_names(problem)
    folded: dict[str, str] = {}
    dims = [dim.casefold() for dim in problem.dims]
    if problem.kind == "conv2d":
        folded |= {
            alias: dim
            for dim, aliases in _CONV_ALIASES.items()
            if dim in problem.dims
            for alias in aliases.split()
        }
    folded |= {dim.casefold(): dim for dim in problem.dims if dims.count(dim.casefold()) == 1}
    return Names(frozenset(problem.dims), folded, {dim: dim for dim in problem.dims})


def _yalsa_names(problem: Problem) -> Names:
    letters = _YALSA.get(problem.kind, {})
    if set(letters.values()) != set(problem.dims):
        raise ScheduleError(
            f"schedule for '{problem.name}': Yalsa has letters for conv2d without groups and for "
            f"gemm, not for {problem.kind} over {' '.join(problem.dims)}; use dialect='loopsched'"
        )
    return Names(frozenset(), letters, {dim: letter for letter, dim in letters.items()})


def _tokens(text: str) -> tuple[list[tuple[str, str]], list[tuple[int, str]]]:
    """Cut the text into loops, each with its place, and marks with the loops before them."""
    found: list[tuple[str, str]] = []
    marks: list[tuple[int, str]] = []
    for match in _TOKEN.finditer(text):
        if match[0].startswith("[") and match[0] != "[":
            marks.append((len(found), match[0]))
            continue
        number, line = len(found), text.count("\n", 0, match.start()) + 1
        where = f"loop {number}" if "\n" not in text.strip() else f"line {line}, loop {number}"
        found.append((f"{where} {show(match[0])}", match[0]))
    return found, marks


def _places(
    marks: Iterable[tuple[int, str]], problem: Problem, faults: list[str]
) -> Iterable[Place]:
    """Read marks such as ``[L1 A B]``; adds what is wrong with them to the faults."""
    names = {tensor.name.casefold(): tensor.name for tensor in problem.tensors}
    names |= {tensor.name: tensor.name for tensor in problem.tensors}
    seen: dict[tuple[str, str], str] = {}
    for position, mark in marks:
        level, *tensors = _WORD.findall(mark[1:-1]) or [""]
        if not level.isidentifier() or not tensors:
            faults.append(
                f"{show(mark)}: a level and the tensors that it holds from here inward are "
                "needed, such as '[L1 A]'"
            )
            continue
        for word in tensors:
            passes, word = word.startswith("-"), word.removeprefix("-")
            tensor = names.get(word) or names.get(word.casefold())
            if passes and position:
                faults.append(f"{show(mark)}: what passes a level is said before all loops")
            elif tensor is None:
                allowed = nearest(word[:40], [each.name for each in problem.tensors])
                faults.append(f"{show(mark)}: unknown tensor {show(word)}; {allowed}")
            elif (level, tensor) in seen:
                faults.append(
                    f"{show(mark)}: '{tensor}' is placed in '{level}' before, at "
                    f"{show(seen[level, tensor])}; keep one"
                )
            else:
                seen[level, tensor] = mark
                yield Place(PASSES if passes else position, level, tensor)


def _read(token: tuple[str, str], names: Names) -> _Read:
    place, text = token
    head, at, unit = text.partition("@")
    word, colon, digits = head.partition(":")
    if not colon:
        return _Read(place, None, None, None, (f"{place}: {_not_a_loop(head, names)}",))
    faults = []
    dim = names.find(word)
    if dim is None:
        faults.append(f"{place}: unknown dim {show(word)}; {names.meant(word[:40])}")
    extent = int(digits) if _EXTENT.fullmatch(digits) else 0
    if extent < 1:
        faults.append(
            f"{place}: extent is {show(digits)}; a whole number from 1 to the dimension's size "
            "is needed"
        )
    if at and not unit.isidentifier():
        faults.append(
            f"{place}: unit is {show(unit)}; name the level whose instances run the loop, "
            "as in '@SM'"
        )
    return _Read(place, dim, extent or None, unit if at else None, tuple(faults))


def _not_a_loop(head: str, names: Names) -> str:
    glued = _NO_COLON.fullmatch(head[:40])
    if glued and names.find(glued[1]):
        return f"no ':'; did you mean '{glued[1]}:{glued[2]}'?"
    return "not a loop; write dim:extent or dim:extent@unit, such as 'K:64' or 'K:64@SM'"


def _growth(read: Iterable[_Read]) -> Iterable[str]:
    outer: dict[str, int] = {}
    for one in read:
        if one.dim is None or one.extent is None:
            continue
        bound = outer.setdefault(one.dim, one.extent)
        if one.extent > bound:
            yield f"{one.place}: extent grows inward; the next outer loop covers only {bound}"
        outer[one.dim] = min(bound, one.extent)


def _coverage(
    read: Iterable[_Read], problem: Problem, names: Names, unread: set[str]
) -> Iterable[str]:
    first: dict[str, _Read] = {}
    for one in read:
        if one.dim is not None:
            first.setdefault(one.dim, one)
    for dim, size in problem.sizes:
        word = names.spelling[dim]
        outermost = first.get(dim)
        if dim in unread:
            continue
        if outermost is None:
            if size > 1:
                yield f"dim '{word}' (size {size}) has no loop; add '{word}:{size}'"
        elif outermost.extent != size:
            yield (
                f"{outermost.place}: the outermost loop of '{word}' covers {outermost.extent}; "
                f"it must cover the size, '{word}:{size}'"
            )
