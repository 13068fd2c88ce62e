"""The exception tree: what a caller may catch, and what the messages hold."""

from __future__ import annotations

import pytest

from loopsched.base import errors
from loopsched.base.errors import InputError, LoopschedError, WorkloadError, nearest

INPUT_ERRORS = ["ArchError", "ConstraintError", "ProblemError", "ScheduleError", "WorkloadError"]


@pytest.mark.parametrize("name", INPUT_ERRORS)
def test_input_errors_are_value_errors_of_one_tree(name: str) -> None:
    kind = getattr(errors, name)
    assert issubclass(kind, InputError)
    assert issubclass(kind, ValueError)
    assert issubclass(kind, LoopschedError)


def test_an_empty_space_is_not_bad_input() -> None:
    assert issubclass(errors.EmptySpaceError, LoopschedError)
    assert not issubclass(errors.EmptySpaceError, InputError)


def test_a_missing_extra_is_an_import_error() -> None:
    assert issubclass(errors.MissingExtraError, ImportError)


def test_plain_error_keeps_its_message_as_the_only_fault() -> None:
    assert InputError("n is 0").problems == ("n is 0",)


def test_one_fault_is_one_line() -> None:
    error = WorkloadError.joined("x.json", ["layer 0: no 'op'"])
    assert type(error) is WorkloadError
    assert str(error) == "x.json: layer 0: no 'op'"
    assert error.problems == ("layer 0: no 'op'",)


def test_several_faults_are_one_error_with_a_line_each() -> None:
    error = WorkloadError.joined("x.json", iter(["layer 0: no 'op'", "layer 1: n is 0"]))
    assert str(error) == "x.json: 2 errors\n  layer 0: no 'op'\n  layer 1: n is 0"
    assert error.problems == ("layer 0: no 'op'", "layer 1: n is 0")


@pytest.mark.parametrize(
    ("word", "allowed", "message"),
    [
        ("strde", ["stride", "padding"], "did you mean 'stride'? (allowed: stride padding)"),
        ("TITAN_V", ["titan_v", "v100"], "did you mean 'titan_v'? (allowed: titan_v v100)"),
        ("zz", ["N", "K"], "(allowed: N K)"),
        ("x", [], "(allowed: )"),
    ],
)
def test_nearest_names_the_meant_word(word: str, allowed: list[str], message: str) -> None:
    assert nearest(word, allowed) == message
