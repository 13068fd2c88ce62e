"""Public functions take text where text can name what they want, and refuse other types."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import loopsched
from loopsched import ArchError, ProblemError, gemm, load_arch
from loopsched.machines.arch import Arch
from loopsched.nests.nest import Schedule
from loopsched.network.coerced import takes_text
from loopsched.problems.problem import Problem

TEXT, PROBLEM = "gemm:m=4,n=3,k=2", gemm(m=4, n=3, k=2)


@takes_text
def work(
    problem: Problem,
    arch: Arch | None = None,
    other: Problem | str = "",
    nest: Schedule = ...,  # type: ignore[assignment]
) -> tuple[Any, ...]:
    return problem, arch, other, nest


def test_text_is_read_where_it_names_something() -> None:
    assert work(TEXT)[0].sizes == PROBLEM.sizes
    assert work(problem=TEXT, arch="v100")[1] == load_arch("v100")
    assert work(PROBLEM, None) == (PROBLEM, None, "", ...)
    assert work(PROBLEM, nest=...) == (PROBLEM, None, "", ...)  # the default itself
    said = work.__annotations__
    assert (said["problem"], said["other"]) == ("Problem | str | PathLike[str]", "Problem | str")


def test_text_that_is_wanted_stays() -> None:
    assert work(PROBLEM, other=TEXT)[2] == TEXT
    assert work(PROBLEM, None, PROBLEM)[2] is PROBLEM


def test_other_types_are_refused_by_one_message() -> None:
    with pytest.raises(ProblemError, match=r"problem is 5; a Problem is needed"):
        work(5)  # type: ignore[arg-type]
    with pytest.raises(ProblemError, match=r"problem is None; a Problem is needed"):
        work(None)  # type: ignore[arg-type]
    with pytest.raises(ArchError, match=r"arch is 5; an Arch is needed"):
        work(PROBLEM, arch=5)  # type: ignore[arg-type]


def test_what_is_exported_may_be_pickled() -> None:
    assert loopsched.evaluate.__module__ == "loopsched"
    assert pickle.loads(pickle.dumps(loopsched.evaluate)) is loopsched.evaluate
