"""The exception tree: what a caller may catch, and what the messages hold."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable

import pytest

import loopsched
from loopsched.base import errors
from loopsched.base.errors import ArchError, InputError, LoopschedError, WorkloadError, nearest

INPUT_ERRORS = ["ArchError", "ConstraintError", "ProblemError", "ScheduleError", "WorkloadError"]
PRODUCT = loopsched.gemm(m=4, n=4, k=4)


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


def test_any_fault_is_refused() -> None:
    WorkloadError.refuse("x.json", [])
    for faults in (["n is 0"], ["n is 0", "m is 0"]):
        with pytest.raises(WorkloadError) as caught:
            WorkloadError.refuse("x.json", iter(faults))
        assert list(caught.value.problems) == faults


def test_a_fault_is_one_of_the_file_that_it_is_found_in() -> None:
    with pytest.raises(InputError, match=r"^a.yaml: n is 0$") as caught, ArchError.at("a.yaml"):
        raise WorkloadError("n is 0")
    assert type(caught.value) is ArchError


def test_faults_of_a_part_are_all_told() -> None:
    faults = ["no 'op'"]
    with errors.gathered(faults, "layer 1: "):
        raise WorkloadError.joined("x.json", ["n is 0", "m is 0"])
    assert faults == ["no 'op'", "layer 1: n is 0", "layer 1: m is 0"]


@pytest.mark.parametrize(
    ("word", "allowed", "message"),
    [
        ("strde", ["stride", "padding"], "did you mean 'stride'? (allowed: stride padding)"),
        ("TITAN_V", ["titan_v", "v100"], "did you mean 'titan_v'? (allowed: titan_v v100)"),
        (
            "gtx_1080_ti_oc_edition",
            ["1080", "gtx_1080_ti", "edition"],
            "did you mean 'gtx_1080_ti'? (allowed: 1080 gtx_1080_ti edition)",
        ),
        ("zz", ["N", "K"], "allowed: N K"),
        ("x", [], "allowed: none"),
    ],
)
def test_nearest_names_the_meant_word(word: str, allowed: list[str], message: str) -> None:
    assert nearest(word, allowed) == message


KIND = "Problem|Network|Workload|Arch|Schedule"
TAKEN = [
    (name, parameter)
    for name in loopsched.__all__
    if inspect.isfunction(function := getattr(loopsched, name))
    for parameter, one in inspect.signature(function).parameters.items()
    if re.fullmatch(rf"({KIND})( \| ({KIND}|None|str|PathLike\[str\]))*", str(one.annotation))
]


@pytest.mark.parametrize("value", [3, 2.5, [], [3], {}, {"a": 1}, b"x", object(), InputError])
def test_every_public_function_refuses_other_types_by_one_message(value: object) -> None:
    assert len(TAKEN) > 90
    for name, parameter in TAKEN:
        with pytest.raises(InputError, match=rf"^{parameter} is .*; an? ({KIND}) is needed"):
            getattr(loopsched, name)(**{parameter: value})


def test_none_is_refused_unless_it_is_the_default() -> None:
    with pytest.raises(ArchError, match=r"^arch is None; an Arch is needed"):
        loopsched.search(PRODUCT, None)
    assert loopsched.to_timeloop(PRODUCT, None, None) == loopsched.to_timeloop(PRODUCT)


def test_signatures_say_where_text_is_taken() -> None:
    annotations = loopsched.search.__annotations__
    assert annotations["problem"] == "Problem | str | PathLike[str]"
    assert annotations["goal"] == "Goal | None"
    assert "arch: 'Arch | str | PathLike[str]'" in str(inspect.signature(loopsched.search))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: loopsched.evaluate_many(PRODUCT, 3, "v100"), "schedules is 3; a sequence"),
        (lambda: loopsched.evaluate_many(PRODUCT, [3], "v100"), r"schedules\[0\] is 3; a Sched"),
        (lambda: loopsched.to_zigzag([3]), r"layers\[0\] is 3; \(Problem, Schedule or None\)"),
        (lambda: loopsched.to_zigzag([(3, None)]), r"layers\[0\] is \(3, None\); \(Problem"),
        (lambda: loopsched.validate_cpu(3), "source is 3; a sequence is needed, a Problem each"),
        (lambda: loopsched.pick(3, "h200"), "problem is 3; a Problem, an Attention or a Grouped"),
        (lambda: loopsched.load_network(3), "network is 3; a name or a path is needed"),
        (lambda: loopsched.load_onnx(3), "3 is not a path"),
        (lambda: loopsched.from_timeloop(3), "timeloop is 3; text is needed"),
    ],
)
def test_sequences_and_files_of_other_types_are_refused(
    call: Callable[[], object], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        call()


def test_text_names_the_problem_of_a_choice() -> None:
    given = loopsched.pick("gemm:m=64,n=64,k=64", "h200", top=1)
    assert given == loopsched.pick(loopsched.gemm(m=64, n=64, k=64), "h200", top=1)
