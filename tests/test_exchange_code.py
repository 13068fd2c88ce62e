"""Exported Python and C compute what a literal walk of the problem computes."""

from __future__ import annotations

import ctypes
import itertools
import math
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import element
from strategies import problems, schedules

from loopsched import bind_spatial, conv2d, gemm, parse_schedule
from loopsched.base.errors import InputError, ScheduleError
from loopsched.exchange.c_code import to_c
from loopsched.exchange.python_code import to_python
from loopsched.nests.nest import Loop, Schedule
from loopsched.problems.problem import Axis, Problem, Tensor

CC = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def shape_of(problem: Problem, tensor: Tensor) -> tuple[int, ...]:
    """What is stored: the size given, or everything from the first to the last reached."""
    size = problem.size
    return tuple(
        axis.size
        if axis.size is not None
        else 1 + sum(factor * (size[dim] - 1) for dim, factor in axis.terms)
        for axis in tensor.axes
    )


def operands(problem: Problem, seed: int) -> dict[str, np.ndarray]:
    """Small whole numbers, so that floats are exact; the output's are to be added to."""
    random = np.random.default_rng(seed)
    return {
        tensor.name: random.integers(-3, 4, shape_of(problem, tensor)) for tensor in problem.tensors
    }


def reference(problem: Problem, arrays: dict[str, np.ndarray]) -> np.ndarray:
    """Every point once, in the order of the dimensions; padding counts as zero."""
    found = arrays[problem.output].copy()
    read = [tensor for tensor in problem.tensors if tensor.name != problem.output]
    for values in itertools.product(*(range(size) for _, size in problem.sizes)):
        point = dict(zip(problem.dims, values, strict=True))
        found_at = {tensor.name: element(tensor, point) for tensor in problem.tensors}
        if all(one is not None for one in found_at.values()):
            places = {name: one[1] for name, one in found_at.items() if one is not None}
            product = math.prod(int(arrays[tensor.name][places[tensor.name]]) for tensor in read)
            found[places[problem.output]] += product
    return found


def run_python(problem: Problem, schedule: Schedule, arrays: dict[str, np.ndarray]) -> np.ndarray:
    room: dict[str, Callable[..., np.ndarray]] = {}
    exec(to_python(problem, schedule, name="made").text(), room)
    read = [arrays[tensor.name] for tensor in problem.tensors if tensor.name != problem.output]
    return room["made"](*read, arrays[problem.output].copy())


def run_c(
    folder: Path, problem: Problem, schedule: Schedule, arrays: dict[str, np.ndarray]
) -> np.ndarray:
    source, library = folder / "made.c", folder / f"made{len(list(folder.iterdir()))}.so"
    source.write_text(to_c(problem, schedule, name="made").text(), encoding="utf-8")
    flags = ["-std=c99", "-Wall", "-Werror", "-Wno-unknown-pragmas", "-O0", "-shared", "-fPIC"]
    subprocess.run([CC or "cc", *flags, str(source), "-o", str(library)], check=True)
    order = [tensor for tensor in problem.tensors if tensor.name != problem.output]
    given_ = {
        tensor.name: np.ascontiguousarray(
            arrays[tensor.name], np.float64 if tensor.element_bytes == 8 else np.float32
        )
        for tensor in problem.tensors
    }
    pointers = [given_[tensor.name].ctypes.data_as(ctypes.c_void_p) for tensor in order]
    pointers.append(given_[problem.output].ctypes.data_as(ctypes.c_void_p))
    ctypes.CDLL(str(library)).made(*pointers)
    return given_[problem.output]


@given(st.data(), problems(), st.integers(0, 99))
def test_python_computes_the_problem(data: st.DataObject, problem: Problem, seed: int) -> None:
    schedule = data.draw(schedules(problem, units=("SM",)))
    arrays = operands(problem, seed)
    np.testing.assert_array_equal(run_python(problem, schedule, arrays), reference(problem, arrays))


@pytest.mark.skipif(CC is None, reason="no C compiler")
@settings(max_examples=25)
@given(st.data(), problems(), st.integers(0, 99))
def test_c_computes_the_problem(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, problem: Problem, seed: int
) -> None:
    schedule = data.draw(schedules(problem, units=("SM", "lane")))
    arrays = operands(problem, seed)
    found = run_c(tmp_path_factory.mktemp("c"), problem, schedule, arrays)
    np.testing.assert_array_equal(found, reference(problem, arrays))


@pytest.mark.parametrize("pass_", ["forward", "backward_data", "backward_weights"])
def test_groups_padding_and_strides(pass_: str, tmp_path: Path) -> None:
    problem = conv2d(
        n=2,
        c=4,
        k=6,
        h=7,
        w=6,
        r=3,
        s=2,
        stride=(2, 1),
        padding=(1, 1, 0, 1),
        groups=2,
        pass_=pass_,
    )
    loops = [Loop(dim, size) for dim, size in problem.sizes]
    schedule = Schedule((*loops, Loop("P", 3), Loop("K", 2), Loop("Q", 4), Loop("P", 2)))
    arrays = operands(problem, 3)
    expected = reference(problem, arrays)
    np.testing.assert_array_equal(run_python(problem, schedule, arrays), expected)
    if CC:
        np.testing.assert_array_equal(run_c(tmp_path, problem, schedule, arrays), expected)


@pytest.mark.skipif(CC is None, reason="no C compiler")
def test_threads_write_apart(tmp_path: Path) -> None:
    problem = gemm(m=37, n=29, k=11)
    schedule = parse_schedule("M:37@SM N:29@SM K:11 M:5 N:4", problem)
    text = to_c(problem, schedule).text()
    assert "#pragma omp parallel for collapse(2)\n" in text
    source, library = tmp_path / "made.c", tmp_path / "made.so"
    source.write_text(text, encoding="utf-8")
    flags = [str(source), "-o", str(library)]
    done = subprocess.run([CC or "cc", "-fopenmp", "-shared", "-fPIC", *flags], check=False)
    if done.returncode:
        pytest.skip("the compiler has no OpenMP")
    arrays = operands(problem, 1)
    given_ = [np.ascontiguousarray(arrays[name], np.float32) for name in "ABC"]
    ctypes.CDLL(str(library)).compute(*(a.ctypes.data_as(ctypes.c_void_p) for a in given_))
    np.testing.assert_array_equal(given_[2], reference(problem, arrays))


def test_sums_are_not_shared_between_threads() -> None:
    problem = gemm(m=8, n=8, k=8)
    assert "#pragma" not in to_c(problem, parse_schedule("K:8@SM M:8 N:8", problem)).text()
    mixed = to_c(problem, parse_schedule("M:8@SM K:8@SM N:8", problem)).text()
    assert "#pragma omp parallel for\n" in mixed
    # A backward pass writes where windows overlap.
    image = conv2d(c=2, k=2, h=6, w=6, r=3, s=3, pass_="backward_data")
    assert "#pragma" not in to_c(image, parse_schedule("P:4@SM C:2 K:2 Q:4 R:3 S:3", image)).text()
    # Loops that depend on one another are not collapsed.
    nested = parse_schedule("M:8@SM M:4@SM N:8 K:8", problem)
    assert "parallel for\n" in to_c(problem, nested).text()


def test_a_pragma_stands_at_the_spatial_loops() -> None:
    problem = gemm(m=8, n=8, k=8)
    tiled = bind_spatial(parse_schedule("K:8 M:8 N:8 M:2", problem), 1, "SM")
    lines = to_c(problem, tiled).text().splitlines()
    place = next(i for i, line in enumerate(lines) if "#pragma" in line)
    assert "for (long k" in lines[place - 1]
    assert "for (long m1" in lines[place + 1]


def test_names_of_the_languages_are_avoided() -> None:
    axes = (Axis((("for", 1),)),)
    problem = Problem(
        "odd */ name",
        (("for", 3), ("np", 2)),
        (Tensor("int", (*axes, Axis((("np", 1),)))), Tensor("range", axes)),
        "range",
    )
    schedule = Schedule((Loop("for", 3), Loop("np", 2)))
    arrays = operands(problem, 0)
    np.testing.assert_array_equal(run_python(problem, schedule, arrays), reference(problem, arrays))
    text = to_c(problem, schedule).text()
    assert "const float int_[3][2]" in text
    assert "long for_" in text
    assert "*/ name" not in text


@pytest.mark.parametrize(
    "names",
    [("least", "least_", "C"), ("np", "np_", "np__"), ("made", "min", "min_"), ("m", "m1", "k")],
)
def test_names_that_give_way_meet_no_others(names: tuple[str, str, str], tmp_path: Path) -> None:
    first, second, third = names
    m, k = Axis((("m", 1),)), Axis((("M", 1),))
    tensors = (Tensor(first, (m, k)), Tensor(second, (k,)), Tensor(third, (m,)))
    problem = Problem("clash", (("m", 5), ("M", 4)), tensors, third)
    schedule = Schedule((Loop("m", 5), Loop("M", 4), Loop("m", 2)))
    arrays = operands(problem, 1)
    expected = reference(problem, arrays)
    np.testing.assert_array_equal(run_python(problem, schedule, arrays), expected)
    if CC:
        np.testing.assert_array_equal(run_c(tmp_path, problem, schedule, arrays), expected)


def test_wrong_shapes_and_names_are_refused() -> None:
    problem = gemm(m=3, n=2, k=4)
    schedule = parse_schedule("M:3 N:2 K:4", problem)
    room: dict[str, Callable[..., np.ndarray]] = {}
    exec(to_python(problem, schedule).text(), room)
    with pytest.raises(ValueError, match=r"shape is \(4, 3\), not \(3, 4\)"):
        room["compute"](np.ones((4, 3)), np.ones((4, 2)))
    assert room["compute"](np.ones((3, 4), np.int8), np.ones((4, 2), np.int8)).dtype == np.int8
    for name in ("for", "a b", "é", "", "np"):
        with pytest.raises(InputError, match="cannot name a function"):
            to_python(problem, schedule, name=name)
    deep = Schedule((Loop("M", 3), Loop("N", 2), *[Loop("K", 4)] * 19))
    with pytest.raises(ScheduleError, match="at most 20 blocks"):
        to_python(problem, deep)
    assert "float elements" not in to_c(problem, deep).text()


def test_c_says_what_it_has_no_type_for() -> None:
    problem = gemm(m=2, n=2, k=2).with_element_bytes({"A": 2, "B": 8})
    made = to_c(problem, parse_schedule("M:2 N:2 K:2", problem))
    assert made.lost == (
        "'A': elements of 2 bytes are computed as float, since C has no portable type for them",
    )
    assert "const double B" in made.text()
