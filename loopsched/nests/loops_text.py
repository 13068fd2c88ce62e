"""Schedules as ``for`` loops, to be read by people and by Python."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from keyword import iskeyword

from loopsched.nests.nest import PASSES, Schedule
from loopsched.problems.problem import Axis, Problem, Tensor

_INDENTS = (4, 2, 1)
_LEAST_NOTE = 24
_GAP = "  # "


@dataclass(frozen=True, slots=True)
class Span:
    """What one loop runs over, written with the variables of the outer loops.

    Parameters
    ----------
    variable : str
    start : str
    ends : tuple of str
        It stops before the least of these: of its own tile's edge, and of the
        edges around it that it could reach beyond.
    step : int
    """

    variable: str
    start: str
    ends: tuple[str, ...]
    step: int


def loop_spans(problem: Problem, schedule: Schedule, taken: Iterable[str] = ()) -> list[Span]:
    """Name the variable of every loop and say what it runs over, outermost first.

    Parameters
    ----------
    problem : Problem
    schedule : Schedule
    taken : iterable of str
        Names that no variable may have, beside those of the tensors.

    Examples
    --------
    >>> from loopsched.problems.builders import gemm
    >>> from loopsched.nests.notation import parse_schedule
    >>> problem = gemm(m=10, n=1, k=1)
    >>> loop_spans(problem, parse_schedule("M:10 M:4", problem))[1]
    Span(variable='m', start='m1', ends=('m1 + 4', '10'), step=1)
    """
    schedule.check(problem)
    variables = _variables(problem, schedule, taken)
    spans = []
    chains: dict[str, list[tuple[str, int]]] = {dim: [] for dim in schedule.dims}
    for loop, variable, step in zip(schedule.loops, variables, schedule.steps, strict=True):
        outer = chains[loop.dim]
        spans.append(
            Span(variable, outer[-1][0] if outer else "0", _ends(outer, loop.extent), step)
        )
        outer.append((variable, loop.extent))
    return spans


def render_loops(
    problem: Problem,
    schedule: Schedule,
    notes: Mapping[int, str] | None = None,
    *,
    width: int = 80,
    body: str | None = None,
) -> str:
    """Render a schedule as nested ``for`` loops.

    Without spatial loops the text is Python: each loop stops at the edge of
    its tile and of every tile around it.  A spatial loop reads ``parallel for
    .. @unit:``.

    Parameters
    ----------
    problem : Problem
    schedule : Schedule
        Must cover the problem.
    notes : mapping of int to str, optional
        What to say about a loop, by its position from the outside; the number
        of loops stands for the body.  By default, which tiles are placed there.
    width : int
        Columns to stay within, if the loops themselves do.  Notes stand in a
        column of their own, or above their loop where they do not fit.
    body : str, optional
        The statement inside; by default the multiply-accumulate.

    Returns
    -------
    str
        Without a line break at the end.

    Raises
    ------
    ScheduleError
        If the schedule does not cover the problem.

    See Also
    --------
    format_schedule, to_python

    Examples
    --------
    >>> from loopsched.problems.builders import gemm
    >>> from loopsched.nests.notation import parse_schedule
    >>> problem = gemm(m=1000, n=64, k=8)
    >>> schedule = parse_schedule("M:1000@SM N:64 K:8 M:128", problem)
    >>> print(render_loops(problem, schedule, {0: "8 tiles", 2: "C stays"}))
    parallel for m1 in range(0, 1000, 128) @SM:          # 8 tiles
        for n in range(64):
            for k in range(8):                           # C stays
                for m in range(m1, min(m1 + 128, 1000)):
                    C[m, n] += A[m, k] * B[k, n]
    >>> print(render_loops(problem, parse_schedule("M:1000 N:64 [L1 A B C] K:8", problem)))
    for m in range(1000):
        for n in range(64):
            for k in range(8):  # L1 holds A B C
                C[m, n] += A[m, k] * B[k, n]
    """
    spans = loop_spans(problem, schedule)
    variables = [span.variable for span in spans]
    heads = _heads(schedule, spans)
    lines = [body] if body is not None else _body(problem, variables, schedule)
    if notes is None:
        notes = _places_notes(schedule)
    said = {place: " ".join(note.split()) for place, note in notes.items() if note.strip()}
    rows = _rows(heads, lines, _indent(heads, said, width), width)
    return "\n".join(_annotated(rows, said, width))


def _places_notes(schedule: Schedule) -> dict[int, str]:
    notes: dict[int, dict[tuple[str, str], str]] = {}
    for place in schedule.places:
        here = notes.setdefault(max(0, place.position), {})
        does = "lets pass" if place.position == PASSES else "holds"
        text = here.get((place.level, does), f"{place.level} {does}")
        here[place.level, does] = f"{text} {place.tensor}"
    return {position: "; ".join(levels.values()) for position, levels in notes.items()}


def _variables(problem: Problem, schedule: Schedule, reserved: Iterable[str]) -> list[str]:
    """Name each loop: the dimension in small letters, numbered from the inside."""
    folded = [dim.casefold() for dim in problem.dims]
    taken = {"range", "min", *reserved, *(tensor.name for tensor in problem.tensors)}
    base: dict[str, str] = {}
    for dim in problem.dims:
        base[dim] = dim.lower() if folded.count(dim.casefold()) == 1 else dim
        base[dim] = _free(base[dim], taken)
    inner = dict.fromkeys(problem.dims, 0)
    names = []
    for loop in reversed(schedule.loops):
        depth = inner[loop.dim]
        inner[loop.dim] += 1
        names.append(_free(f"{base[loop.dim]}{depth}", taken) if depth else base[loop.dim])
    return names[::-1]


def _free(name: str, taken: set[str]) -> str:
    while iskeyword(name) or not name.isidentifier() or name in taken:
        name += "_"
    taken.add(name)
    return name


def _heads(schedule: Schedule, spans: Sequence[Span]) -> list[str]:
    heads = []
    for loop, span in zip(schedule.loops, spans, strict=True):
        head = f"for {span.variable} in range({range_text(span)})"
        heads.append(f"parallel {head} @{loop.unit}:" if loop.is_spatial else f"{head}:")
    return heads


def _ends(outer: Sequence[tuple[str, int]], extent: int) -> tuple[str, ...]:
    """Write where a loop inside the outer loops of its dim stops."""
    ends = [f"{outer[-1][0]} + {extent}" if outer else str(extent)]
    inner = extent
    for position in range(len(outer) - 1, -1, -1):
        around = outer[position][1]
        # Tiles that divide the tile around them cannot reach beyond its edge.
        if around % inner:
            ends.append(f"{outer[position - 1][0]} + {around}" if position else str(around))
        inner = around
    return tuple(ends)


def range_text(span: Span) -> str:
    """Write what a loop runs over as the arguments of ``range``.

    Examples
    --------
    >>> range_text(Span("m", "m1", ("m1 + 4", "10"), 1))
    'm1, min(m1 + 4, 10)'
    """
    end = span.ends[0] if len(span.ends) == 1 else f"min({', '.join(span.ends)})"
    if span.step > 1:
        return f"{span.start}, {end}, {span.step}"
    return end if span.start == "0" else f"{span.start}, {end}"


def _indent(heads: Sequence[str], said: Mapping[int, str], width: int) -> int:
    """Choose the widest indentation with which loops and notes fit, or at least loops."""
    room = width - max((len(_GAP) + len(note) for note in said.values()), default=0)
    for wanted, indents in ((set(said), _INDENTS[:2]), (set[int](), _INDENTS)):
        for indent in indents:
            ends = [indent * depth + len(head) for depth, head in enumerate(heads)]
            beside = (end <= room for place, end in enumerate(ends) if place in wanted)
            if all(end <= width for end in ends) and all(beside):
                return indent
    return _INDENTS[-1]


def _terms(problem: Problem, variables: Sequence[str], schedule: Schedule) -> list[str]:
    point = dict.fromkeys(problem.dims, "0")
    for loop, variable in zip(schedule.loops, variables, strict=True):
        point[loop.dim] = variable
    written = problem.output_tensor
    read = [tensor for tensor in problem.tensors if tensor is not written]
    return [_element(tensor, point) for tensor in (written, *read)]


def _element(tensor: Tensor, point: Mapping[str, str]) -> str:
    return f"{tensor.name}[{', '.join(index_text(axis, point) for axis in tensor.axes) or '()'}]"


def index_text(axis: Axis, point: Mapping[str, str]) -> str:
    """Write the position on an axis that a point touches.

    Examples
    --------
    >>> index_text(Axis((("P", 2), ("R", 1)), offset=-1), {"P": "p", "R": "r"})
    '2*p + r - 1'
    """
    terms = [
        point[dim] if coefficient == 1 else f"{coefficient}*{point[dim]}"
        for dim, coefficient in axis.terms
        if point[dim] != "0"
    ]
    text = " + ".join(terms)
    if not text:
        return str(axis.offset)
    if axis.offset:
        text += f" {'-' if axis.offset < 0 else '+'} {abs(axis.offset)}"
    return text


def _body(problem: Problem, variables: Sequence[str], schedule: Schedule) -> list[str]:
    """Write the multiply-accumulate: whole, then cut into its parts."""
    written, *read = _terms(problem, variables, schedule)
    factors = [f"  {'* ' if i else ''}{element}" for i, element in enumerate(read or ["1"])]
    return [f"{written} += {' * '.join(read) or '1'}", f"{written} += (", *factors, ")"]


def _rows(
    heads: Sequence[str], lines: Sequence[str], indent: int, width: int
) -> list[tuple[str, int]]:
    """Indent every line; with each goes the place of the note that it takes, or -1."""
    margin = " " * (indent * len(heads))
    whole, parts = lines[:1], lines[1:]
    statement = parts if parts and len(margin + whole[0]) > width else whole
    rows = [(" " * (indent * depth) + head, depth) for depth, head in enumerate(heads)]
    return rows + [(margin + line, -1 if i else len(heads)) for i, line in enumerate(statement)]


def _annotated(
    rows: Sequence[tuple[str, int]], said: Mapping[int, str], width: int
) -> Iterable[str]:
    """Put the notes in a column beside their rows, or above them if it is narrow."""
    longest = max(map(len, said.values()), default=0)
    column = max(len(code) for code, _ in rows)
    if column + len(_GAP) + longest > width:
        column = max((len(code) for code, place in rows if place in said), default=0)
    room = width - column - len(_GAP)
    is_beside = room >= min(longest, _LEAST_NOTE)
    for code, place in rows:
        if place not in said:
            yield code
        elif is_beside:
            first, *rest = textwrap.wrap(said[place], room)
            yield f"{code:<{column}}{_GAP}{first}"
            yield from (f"{'':<{column}}{_GAP}{line}" for line in rest)
        else:
            margin = " " * (len(code) - len(code.lstrip())) + "# "
            least = max(width - len(margin), _LEAST_NOTE)
            yield from (margin + line for line in textwrap.wrap(said[place], least))
            yield code
