"""A schedule as a Python function over NumPy arrays."""

from __future__ import annotations

from keyword import kwlist

from loopsched.base.errors import ScheduleError
from loopsched.codegen.contraction import stored_shape
from loopsched.exchange.accesses import Access, Guard, accesses
from loopsched.exchange.exported import Exported
from loopsched.exchange.names import checked_name, safe_names
from loopsched.nests.loops_text import loop_spans, range_text
from loopsched.nests.nest import Schedule
from loopsched.problems.problem import Problem

_RESERVED = (*kwlist, "np", "range", "min", "ValueError", "array", "shape")
# What CPython nests in one another: loops, and the test for padding.
_MOST_BLOCKS = 20


def to_python(problem: Problem, schedule: Schedule, *, name: str = "compute") -> Exported:
    """Write a schedule as a Python function that computes the problem.

    It runs on NumPy arrays of the stored shapes, one multiply-accumulate at a
    time and in the order of the schedule: to be read, checked and changed,
    not to be fast.  Spatial loops are ordinary loops with a comment.

    Parameters
    ----------
    problem : Problem
    schedule : Schedule
    name : str
        Of the function.

    Returns
    -------
    Exported
        One file, ``<name>.py``.

    Raises
    ------
    ScheduleError
        If the schedule does not cover the problem, or nests deeper than
        Python allows.

    See Also
    --------
    render_loops, to_c

    Examples
    --------
    >>> from loopsched import gemm, parse_schedule
    >>> problem = gemm(m=6, n=2, k=2)
    >>> made = to_python(problem, parse_schedule("M:6@SM N:2 K:2 M:4", problem))
    >>> print(made.text())
    # Made by loopsched from the schedule M:6@SM N:2 K:2 M:4
    import numpy as np
    <BLANKLINE>
    <BLANKLINE>
    def compute(A, B, C=None):
        # Problem 'm6 n2 k2'; sums go into C, which is made of zeros if it is not given.
        for array, shape in ((A, (6, 2)), (B, (2, 2))):
            if array.shape != shape:
                raise ValueError(f"shape is {array.shape}, not {shape}")
        if C is None:
            C = np.zeros((6, 2), np.result_type(A, B))
        for m1 in range(0, 6, 4):  # spatial: instances of SM share the iterations
            for n in range(2):
                for k in range(2):
                    for m in range(m1, min(m1 + 4, 6)):
                        C[m, n] += A[m, k] * B[k, n]
        return C
    <BLANKLINE>
    """
    checked_name(name, _RESERVED)
    words = safe_names((tensor.name for tensor in problem.tensors), _RESERVED)
    spans = loop_spans(problem, schedule, (*_RESERVED, name, *words.values()))
    touched = accesses(problem, schedule, spans, words)
    guards = [guard for access in touched for guard in access.guards]
    if len(spans) + bool(guards) > _MOST_BLOCKS:
        raise ScheduleError(
            f"schedule for '{problem.name}': {len(spans)} loops; Python nests at most "
            f"{_MOST_BLOCKS} blocks; leave out loops that run once, or export C"
        )
    lines = [f"# Made by loopsched from the schedule {schedule}", "import numpy as np", "", ""]
    lines += _head(problem, touched, name)
    for depth, (loop, span) in enumerate(zip(schedule.loops, spans, strict=True), 1):
        note = f"  # spatial: instances of {loop.unit} share the iterations" if loop.unit else ""
        lines.append(f"{'    ' * depth}for {span.variable} in range({range_text(span)}):{note}")
    depth = len(spans) + 1
    if guards:
        lines.append(f"{'    ' * depth}if {' and '.join(map(_test, guards))}:")
        depth += 1
    written, *read = (access.element for access in touched)
    lines.append(f"{'    ' * depth}{written} += {' * '.join(read) or '1'}")
    lines += [f"    return {touched[0].word}", ""]
    return Exported(((f"{name}.py", "\n".join(lines)),))


def _head(problem: Problem, touched: list[Access], name: str) -> list[str]:
    written, *read = (access.word for access in touched)
    shapes = [repr(stored_shape(problem, access.tensor)) for access in touched]
    lines = [
        f"def {name}({', '.join([*read, f'{written}=None'])}):",
        f"    # Problem {problem.name!r}; sums go into {written}, "
        "which is made of zeros if it is not given.",
    ]
    if read:
        pairs = ", ".join(f"({one}, {shape})" for one, shape in zip(read, shapes[1:], strict=True))
        lines += [
            f"    for array, shape in ({pairs}{',' if len(read) == 1 else ''}):",
            "        if array.shape != shape:",
            '            raise ValueError(f"shape is {array.shape}, not {shape}")',
        ]
    kind = f", np.result_type({', '.join(read)})" if read else ""
    return [
        *lines,
        f"    if {written} is None:",
        f"        {written} = np.zeros({shapes[0]}{kind})",
    ]


def _test(guard: Guard) -> str:
    low = "0 <= " if guard.before else ""
    return f"{low}{guard.position}{f' < {guard.size}' if guard.after else ''}"
