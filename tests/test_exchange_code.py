"""Exported Python and C compute what a literal walk of the problem computes."""

from __future__ import annotations

import ctypes
import itertools
import math
import os
import re
import shlex
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

from loopsched import conv2d, einsum, gemm, load_arch, parse_schedule
from loopsched.base.errors import ArchError, InputError, LoopschedError, ScheduleError
from loopsched.base.machine_code import linked, object_code
from loopsched.cli import run
from loopsched.codegen.c_text import WORDS, CText
from loopsched.codegen.choose import core_of, ranked
from loopsched.codegen.contraction import contractions
from loopsched.codegen.element import DATA_TYPES
from loopsched.codegen.engine import form
from loopsched.exchange.kernel_code import to_c, to_llvm
from loopsched.exchange.python_code import to_python
from loopsched.machines.arch import Arch
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


SANITIZED = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


def stored(values: np.ndarray, kind: str) -> np.ndarray:
    """Numbers as a kernel finds and leaves them; bf16 is rounded to the nearest, ties to even."""
    if kind != "bf16":
        return np.ascontiguousarray(values, kind)
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def kinds_of(problem: Problem) -> dict[str, str]:
    """How the tensors of a problem are stored: as those that are read, if they are alike."""
    names = [tensor.name for tensor in problem.tensors if tensor.name != problem.output]
    sizes = {problem.tensor(name).element_bytes for name in names}
    read, out = {
        frozenset({8}): ("float64", "float64"),
        frozenset({2}): ("bf16", "bf16"),
        frozenset({1}): ("int8", "int32"),
    }.get(frozenset(sizes), ("float32", "float32"))
    return {**dict.fromkeys(names, read), problem.output: out}


def run_c(
    folder: Path,
    problem: Problem,
    schedule: Schedule | None,
    arrays: dict[str, np.ndarray],
    *options: str,
    arch: Arch | None = None,
) -> None:
    """Build the C, call it, and compare what it leaves with what a literal walk gives."""
    source, library = folder / "made.c", folder / f"made{len(list(folder.iterdir()))}.so"
    source.write_text(to_c(problem, schedule, arch, name="made").text(), encoding="utf-8")
    flags = ["-DNO_MAIN", "-Wall", "-Werror", "-Wno-unknown-pragmas", "-shared", "-fPIC", *options]
    subprocess.run([CC or "cc", *flags, str(source), "-o", str(library)], check=True)
    kinds = kinds_of(problem)
    names = [name for name in kinds if name != problem.output]
    given_ = {name: stored(arrays[name], kinds[name]) for name in (*names, problem.output)}
    pointers = [given_[name].ctypes.data_as(ctypes.c_void_p) for name in (*names, problem.output)]
    ctypes.CDLL(str(library)).made(*pointers)
    empty = {**arrays, problem.output: np.zeros_like(arrays[problem.output])}
    expected = stored(reference(problem, empty), kinds[problem.output])
    np.testing.assert_array_equal(given_[problem.output], expected)


@given(st.data(), problems(), st.integers(0, 99))
def test_python_computes_the_problem(data: st.DataObject, problem: Problem, seed: int) -> None:
    schedule = data.draw(schedules(problem, units=("SM",)))
    arrays = operands(problem, seed)
    np.testing.assert_array_equal(run_python(problem, schedule, arrays), reference(problem, arrays))


@pytest.mark.skipif(CC is None, reason="no C compiler")
@settings(max_examples=15)
@given(st.data(), problems(), st.integers(0, 99), st.sampled_from(["-O0", "-march=native"]))
def test_c_computes_the_problem(
    tmp_path_factory: pytest.TempPathFactory,
    data: st.DataObject,
    problem: Problem,
    seed: int,
    option: str,
) -> None:
    schedule = data.draw(schedules(problem, units=("SM", "lane")))
    run_c(tmp_path_factory.mktemp("c"), problem, schedule, operands(problem, seed), option)


@settings(max_examples=40)
@given(st.data(), problems(), st.integers(0, 99))
def test_llvm_computes_the_problem(data: st.DataObject, problem: Problem, seed: int) -> None:
    problem = problem.with_element_bytes(data.draw(st.sampled_from([1, 4, 8])))
    schedule = data.draw(schedules(problem, units=("SM", "lane")))
    run_llvm(problem, schedule, operands(problem, seed))


def test_rests_of_rests_are_made_up_of_tiles_of_several_heights() -> None:
    problem = gemm(m=70, n=16, k=3)
    nest = parse_schedule("M:70 M:40 M:17 M:10 N:16 K:3", problem)
    assert 70 % 40 % 17 % 10 == 2 + 1  # no tile has three rows
    run_llvm(problem, nest, operands(problem, 1))


@pytest.mark.parametrize("expression", ["ab,bc->ac", "ba,bc->ca"])
def test_a_chosen_plan_may_exchange_the_operands(expression: str) -> None:
    problem = einsum(expression, {"a": 40, "b": 5, "c": 33})
    run_llvm(problem, None, operands(problem, 2), load_arch("ryzen_5950x"))


def run_llvm(
    problem: Problem,
    schedule: Schedule | None,
    arrays: dict[str, np.ndarray],
    arch: Arch | None = None,
) -> None:
    """Compile LLVM's text, call it, and compare what it leaves with a literal walk's."""
    kinds = kinds_of(problem)
    made = to_llvm(problem, schedule, arch, name="made").text()
    room = np.empty(int(made.split("work leads to ")[1].split()[0]) + 4096, np.uint8)
    names = [*(name for name in kinds if name != problem.output), problem.output]
    given_ = {name: stored(arrays[name], kinds[name]) for name in names}
    (run,) = linked([object_code(made)], ["made"], (None, *[ctypes.c_void_p] * (len(names) + 1)))
    at = room.ctypes.data
    run(*(given_[name].ctypes.data for name in names), at + -at % 4096)
    empty = {**arrays, problem.output: np.zeros_like(arrays[problem.output])}
    np.testing.assert_array_equal(given_[problem.output], reference(problem, empty))


@pytest.mark.skipif(CC is None, reason="no C compiler")
@pytest.mark.parametrize("n_bytes", [1, 2, 4, 8])
def test_a_program_checks_itself(n_bytes: int, tmp_path: Path) -> None:
    problem = conv2d(n=2, c=3, k=10, h=9, w=11, r=3, s=2, stride=2, padding=1)
    problem = problem.with_element_bytes(n_bytes)
    text = to_c(problem, None, load_arch("ryzen_5950x")).text()
    assert "memset(work, 0, " in text  # lanes that nothing is copied into are multiplied, too
    for wrong in (False, True):
        source, program = tmp_path / "made.c", tmp_path / "made"
        source.write_text(text.replace("compute(input, weight, output);", "") if wrong else text)
        run = [CC or "cc", "-O1", "-Wno-unknown-pragmas", *SANITIZED, str(source)]
        subprocess.run([*run, "-o", str(program)], check=True)
        done = subprocess.run(
            [str(program)],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"},
        )
        assert done.stdout.startswith("wrong: output[0] is " if wrong else "correct; "), done.stderr
        assert done.returncode == wrong


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
        run_c(tmp_path, problem, schedule, arrays)


@pytest.mark.skipif(CC is None, reason="no C compiler")
@pytest.mark.parametrize(
    "text", ["M:37@SM N:29@SM K:11 M:5 N:4", "K:11 M:37@SM M:9@SM N:29 K:3 M:4"]
)
def test_threads_write_apart(text: str, tmp_path: Path) -> None:
    problem = gemm(m=37, n=29, k=11)
    try:
        run_c(tmp_path, problem, parse_schedule(text, problem), operands(problem, 1), "-fopenmp")
    except subprocess.CalledProcessError:
        pytest.skip("the compiler has no OpenMP")


def jobs(problem: Problem, text: str) -> list[str]:
    """Loops over the jobs of stages, as they stand in the program."""
    lines = to_c(problem, parse_schedule(text, problem)).text().splitlines()
    return [line.strip() for line in lines if "num job" in line or "num round" in line][1:]


def test_sums_are_not_shared_between_threads() -> None:
    problem = gemm(m=8, n=8, k=8)
    assert jobs(problem, "K:8@SM M:8 N:8 K:2")[-1] == "for (num job = 0; job < 1; job++)"
    assert jobs(problem, "M:8@SM K:8@SM N:8 M:4 K:2")[-1] == "for (num job = 0; job < 2; job++)"
    # A backward pass writes where windows overlap.
    image = conv2d(c=2, k=2, h=6, w=6, r=3, s=3, pass_="backward_data")
    assert jobs(image, "P:4@SM C:2 K:2 Q:4 R:3 S:3")[-1] == "for (num job = 0; job < 1; job++)"


def test_sums_outside_threads_are_rounds() -> None:
    problem = gemm(m=8, n=8, k=8)
    rounds, shared = jobs(problem, "K:8 M:8@SM N:8 M:2 K:2")[-2:]
    assert rounds == "for (num round = 0; round < 4; round++)"
    assert shared == "for (num job = round * 4; job < (round + 1) * 4; job++)"


def test_vectors_are_those_of_the_cpu() -> None:
    problem = gemm(m=8, n=64, k=4)
    nest = parse_schedule("M:8 N:64 K:4", problem)
    for name, lanes in (("ryzen_5950x", 8), ("epyc_9654", 16)):
        assert f"<{lanes} x float>" in to_llvm(problem, nest, load_arch(name)).text()


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
    assert "/* int_[3][2], range[3] */" in text
    assert "num for_" in text
    assert "*/ name" not in text


@pytest.mark.parametrize(
    "names",
    [
        ("byte", "byte_", "vec"),
        ("sums_", "at_", "made_run"),
        ("np", "np_", "np__"),
        ("made", "min", "min_"),
        ("m", "m1", "k"),
    ],
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
        run_c(tmp_path, problem, schedule, arrays)


def test_a_function_is_named_as_no_table_of_its_program() -> None:
    problem = conv2d(c=8, k=16, h=9, w=9, r=3, s=3, stride=2, padding=1, pass_="backward_data")
    for to in (to_c, to_llvm):
        text = to(problem, None, load_arch("epyc_7763"), name="table0").text()
        tables = re.findall(r"(?:const num |^@)(\w+)(?:\[| = internal)", text, re.M)
        assert tables
        assert "table0" not in tables


@pytest.mark.parametrize("data_type", ["fp32", "bf16", "int8"])
def test_a_function_is_named_as_nothing_that_its_program_declares(data_type: str) -> None:
    """Masked parts, every second element, and what single elements are read with, each by type."""
    types = DATA_TYPES[data_type]
    shape = {"c": 3, "k": 7, "h": 11, "w": 39, "r": 3, "s": 2, "padding": 1}
    for stride, pass_ in ((1, "forward"), (2, "forward"), (2, "backward_data")):
        problem = conv2d(**shape, stride=stride, pass_=pass_)
        out = problem.output
        kinds = {t.name: types.out if t.name == out else types.read for t in problem.tensors}
        for task in contractions(problem, kinds):
            text = CText(types.compute, 8)
            core, _ = core_of(load_arch("epyc_7763"), types.read.n_bytes)
            plan = ranked(task, core, n=1)[0]
            form(plan[2])(text, *plan[1:], "f").write()
            assert text._declared
            assert set(text._declared) <= set(WORDS)
    for name in ("read_part_fp32", "fp32_at", "vec_bf16"):
        with pytest.raises(LoopschedError, match=name):
            to_c(gemm(m=3, n=2, k=4), None, load_arch("epyc_7763"), name=name)


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
    assert "made" in to_c(problem, deep, name="made").text()


def test_c_says_what_it_has_no_type_for() -> None:
    problem = gemm(m=2, n=2, k=2).with_element_bytes({"A": 2, "B": 8})
    made = to_c(problem, parse_schedule("M:2 N:2 K:2", problem))
    assert made.lost == (
        "'A': elements of 2 bytes are stored as fp32",
        "'B': elements of 8 bytes are stored as fp32",
    )
    assert "const float *restrict B" in made.text()


def test_a_program_needs_a_schedule_or_a_cpu() -> None:
    problem = gemm(m=2, n=2, k=2)
    with pytest.raises(ArchError, match="without a schedule a CPU is needed, such as 'host'"):
        to_c(problem, None, load_arch("titan_v"))
    assert "chosen for" in to_c(problem, None, load_arch("ryzen_5950x")).text()


@pytest.mark.parametrize(("form", "name"), [("c", "k.c"), ("c", "my k.c"), ("llvm", "k.ll")])
def test_a_file_says_how_to_build_it(form: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    assert run(["export", "gemm:m=8,n=8,k=8", "M:8 N:8 K:8", "--to", form, "-o", str(path)]) == 0
    (line,) = (line for line in path.read_text().splitlines() if "Build" in line)
    assert name in shlex.split(line.rpartition(": ")[2])


def test_a_program_for_a_cpu_is_chosen_unless_a_schedule_is_given(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["gemm:m=8,n=8,k=8", "--to", "c", "-a", "ryzen_5950x"]
    assert run(["export", *words]) == 0
    assert "chosen for ryzen_5950x" in capsys.readouterr().out
    assert run(["export", *words, "M:8 N:8 K:8"]) == 0
    assert "chosen for" not in capsys.readouterr().out


def test_several_programs_have_folders_in_order(tmp_path: Path) -> None:
    folder = tmp_path / "v1.2"
    folder.mkdir()
    words = ["alexnet", "-l", "fc6", "-l", "fc7", "-a", "ryzen_5950x", "--name", "mine"]
    assert run(["export", *words, "--to", "c", "-o", str(folder)]) == 0
    assert sorted(one.name for one in folder.iterdir()) == ["000_fc6", "001_fc7"]
    for each in folder.iterdir():
        (file,) = each.iterdir()
        assert "void mine(" in file.read_text()
