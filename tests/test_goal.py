"""Goals: one object for what is sought, given whole or by its fields."""

from __future__ import annotations

import inspect
from dataclasses import fields
from typing import get_type_hints

import pytest

from loopsched.base.errors import ConstraintError
from loopsched.cli import options
from loopsched.machines.arch import buffer_arch
from loopsched.problems.builders import gemm
from loopsched.problems.workload import Workload
from loopsched.scheduler import Goal, search, search_workload
from loopsched.scheduler.goal import OBJECTIVES, STRATEGIES, VALUES, Goals
from loopsched.study.sensitivity import sensitivity

PROBLEM, ARCH = gemm(m=8, n=8, k=8), buffer_arch(capacity_bytes=256)
TAKERS = (search, search_workload, sensitivity)


def test_a_goal_and_its_fields_are_the_same() -> None:
    whole = search(PROBLEM, ARCH, Goal(objective="dram_bytes", top=3))
    assert whole == search(PROBLEM, ARCH, objective="dram_bytes", top=3)
    assert len(whole.alternatives) == 2


def test_a_field_counts_in_the_place_of_the_goals_own() -> None:
    found = search(PROBLEM, ARCH, Goal(objective="dram_bytes", top=3), top=1)
    assert found.objective == "dram_bytes"
    assert not found.alternatives


def test_an_unknown_keyword_is_named_with_the_nearest() -> None:
    with pytest.raises(TypeError, match=r"search\(\) has no argument 'objectiv'; did you mean"):
        search(PROBLEM, ARCH, objectiv="time")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"search_workload\(\) has no argument 'job'"):
        search_workload(Workload("one", (PROBLEM,)), ARCH, job=2)  # type: ignore[call-arg]


def test_what_is_no_goal_is_refused() -> None:
    with pytest.raises(ConstraintError, match="found 'time'; a Goal is needed"):
        search(PROBLEM, ARCH, "time")  # type: ignore[arg-type]


def test_all_faults_at_once() -> None:
    with pytest.raises(ConstraintError, match="6 errors") as caught:
        Goal("tim", "exakt", "hi", top=True, samples=0, gap=-1)  # type: ignore[arg-type]
    assert caught.value.problems[0].startswith("objective 'tim' is unknown; did you mean 'time'")


@pytest.mark.parametrize("function", TAKERS)
def test_signatures_and_docstrings_show_the_fields(function: object) -> None:
    shown = inspect.signature(function).parameters  # type: ignore[arg-type]
    lines = {line.strip() for line in (inspect.getdoc(function) or "").splitlines()}
    assert ", ".join(field.name for field in fields(Goal)) in lines
    for field in fields(Goal):
        assert shown[field.name].kind is inspect.Parameter.KEYWORD_ONLY
        assert shown[field.name].default == field.default


def test_keywords_are_typed_as_the_fields() -> None:
    assert get_type_hints(Goals) == get_type_hints(Goal)


def test_the_command_line_offers_what_there_is() -> None:
    assert tuple(options.OBJECTIVES) == OBJECTIVES
    assert options._STRATEGIES == STRATEGIES
    assert options._VALUES == VALUES
