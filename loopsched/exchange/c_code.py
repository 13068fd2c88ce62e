"""A schedule as a C function, with OpenMP for its outer spatial loops."""

from __future__ import annotations

import re
from collections.abc import Sequence

from loopsched.exchange.accesses import Access, accesses, stored_shape
from loopsched.exchange.exported import Exported
from loopsched.exchange.names import checked_name, safe_names
from loopsched.nests.loops_text import Span, loop_spans
from loopsched.nests.nest import Schedule
from loopsched.problems.problem import Problem

_KEYWORDS = frozenset(
    re.findall(
        r"\w+",
        """auto break case char const continue default do double else enum extern float for goto if
    inline int long register restrict return short signed sizeof static struct switch typedef
    union unsigned void volatile while asm bool true false nullptr alignas alignof thread_local
    constexpr typeof main least""",
    )
)
_TYPES = {8: "double", 4: "float"}
_PLAIN = "float"


def to_c(problem: Problem, schedule: Schedule, *, name: str = "compute") -> Exported:
    """Write a schedule as a C99 function that computes the problem.

    Parameters
    ----------
    problem : Problem
    schedule : Schedule
        Its outer spatial loops become one OpenMP loop, if their iterations
        write disjoint parts of the output; other spatial loops are ordinary
        loops with a comment.
    name : str
        Of the function.

    Returns
    -------
    Exported
        One file, ``<name>.c``; ``lost`` names element sizes that C has no
        arithmetic for.

    Raises
    ------
    ScheduleError
        If the schedule does not cover the problem.

    Examples
    --------
    >>> from loopsched import gemm, parse_schedule
    >>> problem = gemm(m=6, n=2, k=2)
    >>> made = to_c(problem, parse_schedule("M:6@SM N:2@SM K:2 M:4", problem))
    >>> print(made.text())
    /* Made by loopsched from the schedule M:6@SM N:2@SM K:2 M:4
       Problem m6 n2 k2: C += A * B; the caller sets C to zero. */
    static inline long least(long a, long b) { return a < b ? a : b; }
    <BLANKLINE>
    void compute(const float A[6][2], const float B[2][2], float C[6][2])
    {
      #pragma omp parallel for collapse(2)
      for (long m1 = 0; m1 < 6; m1 += 4) /* spatial: SM */
        for (long n = 0; n < 2; n++) /* spatial: SM */
          for (long k = 0; k < 2; k++)
            for (long m = m1; m < least(m1 + 4, 6); m++)
              C[m][n] += A[m][k] * B[k][n];
    }
    <BLANKLINE>
    """
    checked_name(name, _KEYWORDS)
    words = safe_names((tensor.name for tensor in problem.tensors), _KEYWORDS)
    spans = loop_spans(problem, schedule, (*_KEYWORDS, name, *words.values()))
    touched = accesses(problem, schedule, spans, words)
    read = " * ".join(access.tensor.name for access in touched[1:]) or "1"
    parameters = [_parameter(problem, one) for one in (*touched[1:], touched[0])]
    lines = [
        f"/* Made by loopsched from the schedule {schedule}",
        f"   Problem {problem.name.replace('*/', '* /')}: {problem.output} += {read}; "
        f"the caller sets {problem.output} to zero. */",
        "static inline long least(long a, long b) { return a < b ? a : b; }",
        "",
        f"void {name}({', '.join(parameters)})",
        "{",
        *_loops(problem, schedule, spans),
        *_body(touched, "  " * (len(spans) + 1)),
        "}",
        "",
    ]
    return Exported(((f"{name}.c", "\n".join(lines)),), tuple(_lost(problem)))


def _lost(problem: Problem) -> list[str]:
    return [
        f"'{tensor.name}': elements of {tensor.element_bytes} bytes are computed as {_PLAIN}, "
        "since C has no portable type for them"
        for tensor in problem.tensors
        if tensor.element_bytes not in _TYPES
    ]


def _parameter(problem: Problem, access: Access) -> str:
    tensor = access.tensor
    kind = _TYPES.get(tensor.element_bytes, _PLAIN)
    constant = "" if tensor.name == problem.output else "const "
    shape = "".join(f"[{size}]" for size in stored_shape(problem, tensor)) or "[1]"
    return f"{constant}{kind} {access.word}{shape}"


def _loops(problem: Problem, schedule: Schedule, spans: Sequence[Span]) -> list[str]:
    shared = _shared_loops(problem, schedule, spans)
    lines = []
    for depth, (loop, span) in enumerate(zip(schedule.loops, spans, strict=True), 1):
        margin = "  " * depth
        if shared and depth == shared[0] + 1:
            together = f" collapse({len(shared)})" if len(shared) > 1 else ""
            lines.append(f"{margin}#pragma omp parallel for{together}")
        note = f" /* spatial: {loop.unit} */" if loop.unit else ""
        step = f"{span.variable} += {span.step}" if span.step > 1 else f"{span.variable}++"
        lines.append(
            f"{margin}for (long {span.variable} = {span.start}; "
            f"{span.variable} < {_least(span.ends)}; {step}){note}"
        )
    return lines


def _least(ends: Sequence[str]) -> str:
    return ends[0] if len(ends) == 1 else f"least({ends[0]}, {_least(ends[1:])})"


def _shared_loops(problem: Problem, schedule: Schedule, spans: Sequence[Span]) -> list[int]:
    """Find the outer spatial loops that threads may share: they write apart."""
    places: list[int] = []
    for place, (loop, span) in enumerate(zip(schedule.loops, spans, strict=True)):
        if loop.is_spatial and loop.dim in problem.parallel_dims:
            # Loops that are collapsed must not depend on one another.
            if places and span.start != "0":
                break
            places.append(place)
        elif places or loop.is_spatial:
            break
    return places


def _body(touched: Sequence[Access], margin: str) -> list[str]:
    tests = [test for access in touched for guard in access.guards for test in guard.tests]
    written, *read = (_element(access) for access in touched)
    statement = f"{written} += {' * '.join(read) or '1'};"
    if not tests:
        return [f"{margin}{statement}"]
    return [f"{margin}if ({' && '.join(tests)})", f"{margin}  {statement}"]


def _element(access: Access) -> str:
    indices = "".join(f"[{index}]" for index in access.indices) or "[0]"
    return f"{access.word}{indices}"
