"""Kernels compiled for the CPU at hand: numbers, layouts, types, epilogues, refusals."""

from __future__ import annotations

import ctypes
import gc
import json
import os
import pickle
import platform
import random
import re
import subprocess
import sys
import weakref
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from threading import Event, Thread, Timer
from typing import Any

import numpy as np
import pytest

from loopsched import ArchError, Problem, ProblemError, conv2d, gemm, kernel_schedules, load_arch
from loopsched import compile as compiled
from loopsched.base.errors import LoopschedError
from loopsched.base.machine_code import address, linked, object_code
from loopsched.cli import run
from loopsched.codegen import compiled as compiling
from loopsched.codegen import kept as keeping
from loopsched.codegen import measure as measuring
from loopsched.codegen.choose import on_cores
from loopsched.codegen.compiled import CompiledKernel, Part
from loopsched.codegen.element import BF16, DATA_TYPES
from loopsched.codegen.llvm_text import LlvmText
from loopsched.codegen.measure import check, in_turn, numbers, random_array, stored
from loopsched.codegen.onnx_layer import onnx_layer
from loopsched.codegen.reference import blas_on, reference
from loopsched.codegen.threads import n_cpus
from loopsched.problems.builders import batched_gemm
from loopsched.problems.problem import Axis, Tensor

HOST = load_arch("host")


def some_problems(n: int) -> list[Problem]:
    """Draw small products and convolutions of all passes."""
    draw = random.Random(7)
    found: list[Problem] = []
    while len(found) < n:
        if draw.random() < 0.4:
            sizes = {dim: draw.randint(1, 60) for dim in ("m", "n", "k")}
            turned = {f"transpose_{one}": draw.random() < 0.5 for one in "ab"}
            found.append(batched_gemm(batch=draw.choice([1, 3]), **sizes, **turned))
            continue
        try:
            found.append(
                conv2d(
                    n=draw.randint(1, 3),
                    c=draw.choice([1, 3, 8]),
                    k=draw.choice([1, 4, 8]),
                    h=draw.randint(1, 12),
                    w=draw.randint(1, 30),
                    r=draw.randint(1, 4),
                    s=draw.randint(1, 4),
                    stride=draw.choice([1, 2, 3, (1, 2)]),
                    padding=draw.choice([0, 1, (0, 1, 2, 0)]),
                    dilation=draw.choice([1, 2]),
                    groups=draw.choice([1, 1, 2, 4]),
                    pass_=draw.choice(["forward", "backward_data", "backward_weights"]),
                )
            )
        except ProblemError:
            continue
    return found


def point_by_point(problem: Problem, arrays: dict[str, Any]) -> Any:
    """Add the products of all points, one after the other, as numpy's `add.at` does."""
    grid = np.indices([problem.size[dim] for dim in problem.dims]).reshape(len(problem.dims), -1)
    at = dict(zip(problem.dims, grid, strict=True))
    counts, product, places = np.ones(grid.shape[1], bool), np.ones(grid.shape[1]), {}
    for tensor in problem.tensors:
        places[tensor.name] = []
        for axis in tensor.axes:
            place = sum(step * at[dim] for dim, step in axis.terms)
            if axis.size is not None:
                place = place + axis.offset
                counts &= (place >= 0) & (place < axis.size)
            places[tensor.name].append(place)
    for tensor in problem.tensors:
        index = tuple(np.where(counts, place, 0) for place in places[tensor.name])
        if tensor.name == problem.output:
            target = tuple(place[counts] for place in places[tensor.name])
        else:
            product = product * arrays[tensor.name][index]
    out = np.zeros(arrays[problem.output].shape)
    np.add.at(out, target, product[counts])
    return out


@pytest.mark.parametrize("problem", some_problems(12), ids=lambda one: one.name)
def test_the_reference_is_the_sum_of_all_points(problem: Problem) -> None:
    kernel = compiled(problem, HOST)
    arrays = {
        name: random_array(kernel.shapes[name], DATA_TYPES["fp64"].read, 3) for name in kernel.names
    }
    found = reference(problem, arrays, np.empty_like(arrays[problem.output]))
    assert np.array_equal(found, point_by_point(problem, arrays))


def test_taps_that_reach_padding_only_add_nothing() -> None:
    problem = conv2d(c=1, k=1, h=1, w=1, r=2, s=1, padding=(2, 0, 0, 0))
    arrays = {
        "input": np.full((1, 1, 1, 1), 2.0),
        "weight": np.array([5.0, 7.0])[None, None, :, None],
    }
    assert reference(problem, arrays, np.empty((1, 1, 2, 1))).ravel().tolist() == [0, 14]


@pytest.mark.parametrize("data_type", ["fp32", "fp64", "bf16", "int8"])
@pytest.mark.parametrize("problem", some_problems(10), ids=lambda one: one.name)
def test_kernels_equal_numpy(problem: Problem, data_type: str) -> None:
    check(compiled(problem, HOST, threads=1, data_type=data_type))


def test_threads_share_a_product() -> None:
    cores = HOST.compute.units
    check(compiled(gemm(m=333, n=70, k=50), HOST, threads=cores))


def test_a_narrow_output_keeps_its_neighbours() -> None:
    """One column of two bytes: a vector of one lane must not write four."""
    problem = conv2d(n=1, c=1, h=4, w=3, k=1, r=4, s=3, stride=3, pass_="backward_data")
    check(compiled(problem, HOST, data_type="bf16"))


@pytest.mark.parametrize("bias", ["N", ("M", "N"), ("N", "M"), ()])
@pytest.mark.parametrize("relu", [True, False])
def test_epilogues(bias: Any, relu: bool) -> None:
    check(compiled(gemm(m=9, n=37, k=11), HOST, bias=bias, relu=relu))


def test_bias_of_channels() -> None:
    problem = conv2d(n=2, c=3, k=5, h=6, w=7, r=3, s=3, padding=1)
    kernel = compiled(problem, HOST, bias="K", relu=True)
    assert kernel.names == ("input", "weight", "bias", "output")
    check(kernel)


def test_any_layout_is_read_in_place() -> None:
    problem = conv2d(n=2, c=3, k=4, h=6, w=7, r=3, s=3, padding=1)
    kernel = compiled(problem, HOST)
    drawn = np.random.default_rng(1).integers(-4, 5, (2, 6, 7, 3)).astype("f4")
    weight = np.random.default_rng(2).integers(-4, 5, (4, 3, 3, 3)).astype("f4")
    nhwc = drawn.transpose(0, 3, 1, 2)
    out = np.empty((2, 6, 7, 4), "f4").transpose(0, 3, 1, 2)
    kernel(nhwc, weight, out)
    assert np.array_equal(out, kernel(np.ascontiguousarray(nhwc), weight))
    backwards = drawn[:, ::-1].transpose(0, 3, 1, 2)
    wanted = kernel(np.ascontiguousarray(backwards), weight)
    assert np.array_equal(kernel(backwards, weight), wanted)


def test_an_output_in_the_other_byte_order() -> None:
    kernel = compiled(gemm(m=2, n=3, k=1), HOST)
    out = np.zeros((2, 3), np.dtype("f4").newbyteorder())
    assert kernel(np.ones((2, 1), "f4"), np.ones((1, 3), "f4"), out).tolist() == [[1.0] * 3] * 2


@pytest.mark.parametrize("size", [3, 40])
def test_a_bias_is_read_through_its_strides(size: int) -> None:
    kernel = compiled(gemm(m=2, n=size, k=1), HOST, bias=("M", "N"))
    wide = np.arange(6 * size, dtype="f4").reshape(size, 6)
    found = kernel(np.ones((2, 1), "f4"), np.ones((1, size), "f4"), wide[:, 1:6:3].T)
    assert np.array_equal(found, 1 + wide[:, 1:6:3].T)


def test_a_kernel_may_be_pickled() -> None:
    kernel = compiled(gemm(m=9, n=37, k=11), HOST, bias="N", relu=True, threads=1)
    check(pickle.loads(pickle.dumps(kernel)))


def test_a_full_disk_keeps_no_part_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, data: bytes) -> int:
        with path.open("wb") as file:
            file.write(data[:7])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("loopsched.codegen.kept._folder", lambda: tmp_path)
    monkeypatch.setattr(Path, "write_bytes", full)
    check(compiled(gemm(m=3, n=5, k=2), HOST, threads=1))
    assert not list(tmp_path.iterdir())


STRIDED = conv2d(n=1, c=5, k=19, h=23, w=23, r=5, s=5, stride=2, padding=2, pass_="backward_data")


def test_programs_are_compiled_in_pieces_and_kept_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = list[tuple[bytes, ...]]()

    def functions(binaries: tuple[bytes, ...], *rest: Any) -> Any:
        loaded.append(binaries)
        assert binaries == loaded[0]
        return link(binaries, *rest)

    link = compiling._functions
    monkeypatch.setattr(compiling, "_functions", functions)
    monkeypatch.setattr(keeping, "_folder", lambda: tmp_path)
    for _ in range(2):
        check(compiled(STRIDED, HOST, threads=1))
    assert len(loaded[0]) > 2
    monkeypatch.setattr(keeping, "n_cpus", lambda: 1)
    monkeypatch.setattr(keeping, "_folder", lambda: None)
    check(compiled(STRIDED, HOST, threads=1))
    assert len(loaded) == 3


def test_the_oldest_files_are_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what a process left of one that was killed while it wrote."""
    monkeypatch.setattr(keeping, "_folder", lambda: tmp_path)
    monkeypatch.setattr(keeping, "_MOST_KEPT", 3)
    for at, name in enumerate(("0.o", "1.4711", "2.o", "3.o")):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (at, at))
    check(compiled(gemm(m=3, n=5, k=2), HOST, threads=1))
    left = {one.name for one in tmp_path.iterdir()}
    assert len(left) == 3
    assert {"2.o", "3.o"} < left


def test_what_is_kept_is_not_chosen_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for another number of threads, type or packed tensor it is."""
    monkeypatch.setattr(keeping, "_folder", lambda: tmp_path)
    asked = list[Any]()

    def chosen(*given: Any, **more: Any) -> Any:
        asked.append(given)
        return choose(*given, **more)

    choose = compiling.ranked
    monkeypatch.setattr(compiling, "ranked", chosen)
    for problem in (STRIDED, gemm(m=33, n=70, k=9, transpose_a=True), some_problems(3)[2]):
        for how in (("fp32", 1), ("fp32", None), ("bf16", 1)):
            kernels = []
            asking: dict[str, Any] = {"threads": how[1], "data_type": how[0]}
            for _ in range(2):
                kernel = compiled(problem, HOST, **asking)
                assert kernel.schedules == kernel_schedules(problem, HOST, **asking)
                arrays = check(kernel)
                packed = kernel.pack(arrays[1])
                assert np.array_equal(kernel(arrays[0], packed), kernel(*arrays))
                kernels.append((kernel.schedules, kernel.plans, len(asked)))
            assert kernels[0] == kernels[1]
    assert len({str(one) for one in asked}) == len(asked)


def test_programs_are_compiled_where_no_thread_can_be_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def start(_: Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(keeping, "_folder", lambda: None)
    monkeypatch.setattr(Thread, "start", start)
    try:
        check(compiled(STRIDED, HOST, threads=1))
    except RuntimeError as error:
        pytest.fail(str(error))


def test_a_fault_of_a_piece_is_told() -> None:
    fine = "define void @one() { ret void }"
    with pytest.raises(RuntimeError, match="doesn't match function result type"):
        keeping._side_by_side([fine, "define void @one() { ret i32 1 }", fine])


@pytest.mark.parametrize(("own", "least"), [(0.005, 0.001), (0.0005, 0.0005)])
def test_what_is_compiled_is_not_disturbed(own: float, least: float) -> None:
    def texts() -> Iterator[str]:
        for _ in range(2):
            turns.append(sys.getswitchinterval())
            assert not gc.isenabled()
            yield "define void @one() { ret void }"
        if is_broken:
            raise KeyError

    before = sys.getswitchinterval()
    try:
        for is_broken in (False, True):
            turns = list[float]()
            sys.setswitchinterval(own)
            with pytest.raises(KeyError) if is_broken else nullcontext():
                keeping._side_by_side(texts())
            assert turns == pytest.approx([least] * 2, abs=2e-6)
            assert sys.getswitchinterval() == pytest.approx(own, abs=2e-6)
            assert gc.isenabled()
    finally:
        sys.setswitchinterval(before)


def test_threads_that_build_at_once_restore_what_they_found() -> None:
    """Plans that are measured are built outside of kernels."""
    before, begun, go_on = sys.getswitchinterval(), Event(), Event()

    def first() -> Iterator[str]:
        begun.set()
        assert go_on.wait(30)
        yield "define void @one() { ret void }"

    def second() -> Iterator[str]:
        builders[0].join(30)
        yield "define void @one() { ret void }"

    builders = [Thread(target=keeping._side_by_side, args=(one(),)) for one in (first, second)]
    builders[0].start()
    assert begun.wait(30)
    builders[1].start()
    Timer(0.2, go_on.set).start()
    for one in builders:
        one.join(30)
    assert sys.getswitchinterval() == before
    assert gc.isenabled()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_fork_while_pieces_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever forks waits for all of them, and they for no lock that it holds."""
    monkeypatch.setattr(keeping, "_folder", lambda: None)
    begun, going = Event(), list[int]()

    def code(text: str, *, waits: bool = True) -> bytes:
        going.append(1)
        begun.set()
        made = object_code(text, waits=waits)
        going.pop()
        return made

    monkeypatch.setattr(keeping, "object_code", code)
    builder = Thread(target=compiled, args=(STRIDED, HOST), kwargs={"threads": 1})
    builder.start()
    assert begun.wait(30)
    child = os.fork()
    if not child:
        try:
            os._exit(len(going) + (not compiled(STRIDED, HOST, threads=1).plans))
        finally:
            os._exit(99)
    assert os.waitpid(child, 0)[1] == 0
    builder.join(60)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_forked_processes_have_threads_of_their_own() -> None:
    kernel = compiled(gemm(m=100, n=70, k=50), HOST)
    check(kernel)
    with get_context("fork").Pool(1) as pool:
        pool.apply_async(check, (kernel,)).get(60)
    check(kernel)


def test_output_may_be_an_input() -> None:
    kernel = compiled(gemm(m=20, n=20, k=20), HOST)
    square = np.random.default_rng(0).integers(-4, 5, (20, 20)).astype("f4")
    wanted = square @ square
    assert np.array_equal(kernel(square, square, out=square), wanted)


@pytest.mark.parametrize("threads", [1, None])
def test_the_fastest_of_several_plans_is_kept(threads: int | None) -> None:
    kernel = compiled(gemm(m=30, n=1700, k=50), HOST, threads=threads, measure=3)
    assert threads or kernel.threads == 1 or kernel.parts(kernel._plain_steps())[0].n_jobs > 1
    check(kernel)


@pytest.mark.parametrize(("slowest_s", "rounds"), [(0.02, 43), (0.4, 5)])
def test_plans_are_compared_for_a_while(
    monkeypatch: pytest.MonkeyPatch, slowest_s: float, rounds: int
) -> None:
    clock, seen = [0.0], list[Part]()

    def share(self: CompiledKernel, part: Part, addresses: Sequence[int]) -> None:
        seen.append(part)
        is_lucky = len(seen) == 6  # once only
        clock[0] += 0.0001 if is_lucky else [slowest_s, 0.001, 0.015][(len(seen) - 1) % 3]
        assert len({*addresses}) == len(addresses)

    monkeypatch.setattr(CompiledKernel, "_share", share)
    monkeypatch.setattr(compiling, "perf_counter", lambda: clock[0])
    kernel = compiled(gemm(m=30, n=1700, k=50), HOST, threads=1, measure=3)
    assert len(seen) == 3 * rounds
    assert [one.plan for one in kernel.parts(kernel._plain_steps())] == [seen[1].plan]


def test_what_plans_are_timed_with_may_be_too_much() -> None:
    problem = gemm(m=10**6, n=10**6, k=10**6)
    with pytest.raises(ProblemError, match=r"arrays that plans are timed with take 12\.00 TB"):
        compiled(problem, HOST, threads=1, measure=2)
    given = ["run", "gemm:m=1000000,n=1000000,k=1000000", "--threads", "1", "--measure", "2"]
    assert run(given) == 3


def test_stored_numbers() -> None:
    given = np.array([1.0, 257.0, -3.5])  # 257 lies between 256 and 258
    assert numbers(stored(given, BF16), BF16).tolist() == [1.0, 256.0, -3.5]


def test_a_wrong_kernel_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = compiled(gemm(m=5, n=6, k=7), HOST)
    monkeypatch.setattr(type(kernel), "_share", lambda *_: None)
    with pytest.raises(LoopschedError, match="the kernel is wrong"):
        check(kernel)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"threads": 0}, "threads is 0"),
        ({"threads": 10**6}, "possible: 'host' has"),
        ({"data_type": "fp31"}, "did you mean 'fp3?"),
        ({"measure": 0}, "measure is 0"),
        ({"bias": "K"}, "bias is over 'K'"),
        ({"bias": ("N", "N")}, "each dimension may be named once"),
        ({"bias": 5}, "bias is 5; a dimension is needed, or several"),
        ({"bias": {"N"}}, "bias is {'N'}; a dimension is needed"),
        ({"bias": ["N", ["M"]]}, r"bias is over \['M'\]"),
        ({"relu": np.zeros(2)}, r"relu is array\(\[0., 0.\]\); true or false"),
        ({"data_type": ["fp32"]}, r"data_type is \['fp32'\]"),
        ({"data_type": "fp31", "measure": "3"}, r"(?s)fp31.*measure is '3'"),
    ],
)
def test_refusals(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        compiled(gemm(m=2, n=2, k=2), HOST, **arguments)


def test_a_bias_needs_a_plain_axis_and_a_name_of_its_own() -> None:
    """Over every second element of the output there would be more sums than biases."""
    rows, sums = Axis((("M", 1),)), Axis((("K", 1),))
    read = Tensor("A", (rows, sums)), Tensor("bias", (sums,))
    apart = Tensor("C", (Axis((("M", 2),)),))
    sizes = (("M", 5), ("K", 3))
    with pytest.raises(ProblemError, match=r"bias is over 'M'; allowed: none"):
        compiled(Problem("apart", sizes, (*read, apart), "C"), HOST, bias="M")
    problem = Problem("taken", sizes, (*read, Tensor("C", (rows,))), "C")
    with pytest.raises(ProblemError, match="named 'bias' already"):
        compiled(problem, HOST, bias="M")
    check(compiled(problem, HOST, data_type="int8"))


def test_threads_run_on_cpus_at_hand() -> None:
    """Plans may be made for a larger machine; more threads would wait for each other."""
    assert compiled(gemm(m=9, n=9, k=9), "epyc_9654").threads == min(96, n_cpus())
    with pytest.raises(ProblemError, match=f"this process may use {n_cpus()} CPU"):
        compiled(gemm(m=9, n=9, k=9), "epyc_9654", threads=n_cpus() + 1)


def test_arrays_that_no_memory_holds(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["run", "gemm:m=4000000,n=8,k=4000000", "--threads", "1"]) == 3
    assert "arrays, and those that it is checked with, take 448" in capsys.readouterr().err


@pytest.mark.parametrize("arch", [None, 5, b"host", {}, gemm(m=1, n=1, k=1)])
def test_an_arch_is_one_or_named(arch: Any) -> None:
    with pytest.raises(ArchError, match="an Arch is needed, or the name or the file of one"):
        compiled(gemm(m=2, n=2, k=2), arch)


def test_only_cpus() -> None:
    with pytest.raises(ArchError, match="'v100' is not a CPU"):
        compiled(gemm(m=2, n=2, k=2), "v100")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ([np.zeros((2, 3), "f4")], "1 are given; A, B are needed"),
        ([np.zeros((2, 3), "f4"), np.zeros((4, 3), "f4")], r"'B' has shape \(4, 3\); \(3, 4\)"),
        ([np.zeros((2, 3)), np.zeros((3, 4), "f4")], "'A' has elements of float64"),
        ([[1.0], np.zeros((3, 4), "f4")], "'A' is of type list; a NumPy array"),
        (
            [np.ma.zeros((2, 3), "f4"), np.zeros((3, 4), "f4")],
            "'A' is of type MaskedArray; a NumPy array",
        ),
    ],
)
def test_wrong_arrays(arrays: list[Any], message: str) -> None:
    kernel = compiled(gemm(m=2, n=4, k=3), HOST)
    for _ in range(2):  # once more when it knows arrays that fit
        with pytest.raises(ProblemError, match=message):
            kernel(*arrays, out=np.zeros((2, 4), "f4"))
        kernel(np.zeros((2, 3), "f4"), np.zeros((3, 4), "f4"))


def test_elements_of_an_output_that_are_one() -> None:
    kernel = compiled(gemm(m=8, n=8, k=1), HOST)
    column, row = np.arange(8, dtype="f4").reshape(8, 1), np.ones((1, 8), "f4")
    line = np.zeros(15, "f4")
    diagonal = np.lib.stride_tricks.as_strided(line, (8, 8), (4, 4))
    kernel(column, row, diagonal)
    wanted = np.zeros(15, "f4")
    np.lib.stride_tricks.as_strided(wanted, (8, 8), (4, 4))[...] = column @ row
    assert np.array_equal(line, wanted)


def test_an_axis_of_one_element_has_no_step() -> None:
    kernel = compiled(gemm(m=1, n=3, k=2), HOST)
    row = np.ones((5, 2), "f4")
    for left in (row[:1], row[::3][:1], np.ones((1, 9), "f4")[:, :2]):
        assert kernel(left, np.ones((2, 3), "f4")).tolist() == [[2.0] * 3]
    assert len(kernel._parts) == 1


def test_layouts_are_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loopsched.codegen.compiled._MOST_LAYOUTS", 3)
    kernel = compiled(gemm(m=4, n=3, k=2), HOST)
    right = np.ones((2, 3), "f4")
    runs = []
    for wide in (2, 5, 6, 7, 5, 2):
        left = np.arange(4 * wide, dtype="f4").reshape(4, wide)[:, :2]
        assert np.array_equal(kernel(left, right), left @ right)
        assert len(kernel._parts) <= 3
        assert len(kernel._known) <= 3
        runs.append(kernel.parts(((wide, 1), (3, 1), (3, 1)))[0].run)
    assert runs[0] is runs[5]
    assert kernel.plans


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_fork_waits_for_what_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock that another thread held would be held in the child for ever."""
    kernel = compiled(gemm(m=4, n=3, k=2), HOST, threads=1)
    right, begun, go_on = np.ones((2, 3), "f4"), Event(), Event()
    left = [np.ones((4, wide), "f4")[:, :2] for wide in (3, 4)]
    build = kernel._built

    def slow(*asked: Any) -> Any:
        begun.set()
        assert go_on.wait(30)
        return build(*asked)

    monkeypatch.setattr(kernel, "_built", slow)
    builder = Thread(target=kernel, args=(left[0], right))
    builder.start()
    assert begun.wait(30)
    Timer(0.2, go_on.set).start()
    child = get_context("fork").Process(target=kernel, args=(left[1], right))
    child.start()
    child.join(60)
    builder.join(60)
    assert child.exitcode == 0


def test_machine_code_goes_with_what_calls_it() -> None:
    text = "define i64 @one() { ret i64 1 }"
    (one,) = linked([object_code(text)], ["one"], [ctypes.c_int64])
    engine = weakref.ref(one.engine)  # type: ignore[attr-defined]
    assert one() == 1
    assert engine() is not None
    del one
    gc.collect()
    assert engine() is None


def test_output_that_cannot_be_written() -> None:
    kernel = compiled(gemm(m=2, n=4, k=3), HOST)
    out = np.zeros((2, 4), "f4")
    out.flags.writeable = False
    with pytest.raises(ProblemError, match="'C' cannot be written"):
        kernel(np.zeros((2, 3), "f4"), np.zeros((3, 4), "f4"), out)


def test_arrays_that_lie_elsewhere_than_those_before() -> None:
    """A layout that is known says nothing of where arrays begin."""
    n, draw = 40, np.random.default_rng(0)
    kernel = compiled(gemm(m=n, n=n, k=n), HOST)
    room = draw.integers(-4, 5, 4 * n * n).astype("f4")
    right = draw.integers(-4, 5, (n, n)).astype("f4")

    def part(first: int) -> Any:
        return room[first : first + n * n].reshape(n, n)

    out = part(2 * n * n)
    kernel(part(0), right, out)
    for first in (n * n, n * n + 1, 2 * n * n - 40, 2 * n * n, 3 * n * n - 40, 3 * n * n):
        left = part(first)
        wanted = left @ right
        assert kernel(left, right, out) is out
        assert np.array_equal(out, wanted)
    odd = np.zeros(4 * n * n + 1, "u1")[1:].view("f4").reshape(n, n)
    for left, other in ((odd, out), (part(0), odd)):
        wanted = left @ right
        kernel(left, right, other)
        assert np.array_equal(other, wanted)
    out.flags.writeable = False
    with pytest.raises(ProblemError, match="'C' cannot be written"):
        kernel(part(0), right, out)


def test_where_an_array_lies() -> None:
    whole = np.zeros((5, 7), "f4")
    for one in (whole, whole[1:, 3:], whole[::-2], whole[:0], np.zeros((), "i1")):
        assert address(one) == one.ctypes.data


def test_fewer_cores_share_what_is_left() -> None:
    whole = load_arch("epyc_9654")
    one = on_cores(whole, 1)
    assert one.compute.units == 1
    assert one.memory == whole.memory
    assert [level.instances for level in one.caches] == [1] * len(one.caches)
    rates = [[level.bandwidth_bytes_per_s for level in each.caches] for each in (whole, one)]
    shares = [level.instances for level in whole.caches]
    assert rates[1] == pytest.approx([a / n for a, n in zip(rates[0], shares, strict=True)])


def test_the_command_shows_rows_and_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["run", "gemm:m=40,n=50,k=60", "--threads", "1"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "all results equal NumPy's NumPy multiplies" in said
    with blas_on(1) as library:
        assert f"NumPy multiplies with {library}" in said
    assert run(["run", "gemm:m=4,n=5,k=6", "--threads", "1", "--format", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["problem"] == "m4 n5 k6"
    assert row["bound_s"] <= row["measured_s"]
    assert row["library"] == library
    assert run(["run", "gemm:m=4,n=5,k=6", "--type", "fp64", "--threads", "1"]) == 3
    assert "fp64 needs an architecture file that states its rate" in capsys.readouterr().err
    assert run(["run", "gemm:m=4,n=5,k=6,element_bytes=8", "--threads", "1"]) == 3
    assert capsys.readouterr().err.startswith("Error: 'host' has no rate for fp64")


def test_a_type_that_is_not_computed_with_is_refused_where_a_problem_names_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for problem in ("gemm:m=4,n=5,k=6,element_bytes=fp16", '{"element_bytes": "int32"}'):
        assert run(["run", problem]) == 2
        assert "is not one of 'fp32', 'fp64', 'bf16', 'int8'" in capsys.readouterr().err


def test_the_library_is_named_with_the_kernels_that_it_runs() -> None:
    built = np.show_config("dicts")["Build Dependencies"]["blas"]["name"]
    if "openblas" not in built:
        with blas_on(1) as library:
            assert library == f"{built}, which chooses its number of threads itself"
        return
    ask = (
        "from loopsched.codegen.reference import blas_on\n"
        "for n in 1, 2, 1:\n with blas_on(n) as library: print(library)"
    )
    for kernels in ("Nehalem", "Haswell") if platform.machine() == "x86_64" else ():
        chosen = {**os.environ, "OPENBLAS_CORETYPE": kernels}
        said = subprocess.run([sys.executable, "-c", ask], env=chosen, capture_output=True)
        told = [line.split(" kernels on ") for line in said.stdout.decode().splitlines()]
        assert {re.sub(r"[\d.]+", "", name) for name, _ in told} == {f"OpenBLAS , {kernels}"}
        assert [n for _, n in told] == ["1 thread", "2 threads", "1 thread"]


def test_functions_are_timed_when_others_have_come_to_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    events: list[str] = []
    clock = [0.0, 0.0, 0.0]  # of the wall, of the process, and until when a thread spins

    def sleep(seconds: float) -> None:
        events.append("sleep")
        clock[1] += min(seconds, max(0.0, clock[2] - clock[0]))
        clock[0] += seconds

    def spins(name: str, seconds: float) -> None:
        events.append(name)
        clock[0] += 0.02
        clock[1] += 0.02
        clock[2] = clock[0] + seconds

    monkeypatch.setattr(measuring, "sleep", sleep)
    monkeypatch.setattr(measuring, "perf_counter", lambda: clock[0])
    # As here and there: the time of other threads is counted every 4 ms.
    monkeypatch.setattr(measuring, "process_time", lambda: clock[1] // 0.004 * 0.004)
    calls = [lambda: spins("one", 0.0), lambda: spins("other", 0.0281)]
    assert in_turn(calls, 0.0, rests=True) == pytest.approx([0.02, 0.02])
    waits = " ".join(["sleep"] * 6)
    there, back = f"other other {waits} one one", "one one sleep other other"
    assert " ".join(events) == f"one one other other {there} {back} {there} {back} {there}"
    events.clear()
    calls = [lambda: spins("one", 9.0), lambda: spins("other", 9.0)]
    assert in_turn(calls, 0.0, rests=True) == pytest.approx([0.02, 0.02])
    assert events.count("sleep") == pytest.approx(5 * 50, abs=10)  # it does not wait for ever


def test_medians_are_of_five_times_or_more(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, taken = [0.0], iter([9.0, 9.0, 1.0, 4.0, 2.0, 3.0, 7.0])  # the first two are for rounds

    def work() -> None:
        clock[0] += next(taken, 99.0)

    monkeypatch.setattr(measuring, "perf_counter", lambda: clock[0])
    assert in_turn([work], 0.1) == [3.0]
    assert next(taken, None) is None


def test_the_command_refuses_what_is_no_cpu(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["run", "gemm:m=4,n=5,k=6", "--arch", "v100"]) == 3
    assert capsys.readouterr().err.startswith("Error: 'v100' is not a CPU: it has no 'cpu' part")


@pytest.mark.parametrize("command", [["run"], ["validate", "cpu"]])
def test_too_many_threads_are_refused_before_anything_is_compiled(
    command: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loopsched.codegen.compiled.n_cpus", lambda: 1)
    monkeypatch.setattr("loopsched.codegen.compiled.CompiledKernel", None)
    monkeypatch.setattr("loopsched.codegen.measure.search", None)
    assert run([*command, "resnet50", "--arch", "epyc_9654", "--threads", "99"]) == 3
    assert capsys.readouterr().err == (
        "Error: compile: threads is 99; only 1 is possible: 'epyc_9654' has 96 cores, and this "
        "process may use 1 CPU\n"
    )


@pytest.mark.parametrize(
    "problem",
    [
        gemm(m=5, n=6, k=7, transpose_a=True, transpose_b=True),
        batched_gemm(batch=3, m=5, n=6, k=7, transpose_b=True),
        conv2d(n=2, c=4, k=6, h=7, w=8, r=3, s=2, stride=(2, 1), padding=(0, 1, 2, 0), groups=2),
        conv2d(c=4, k=4, h=9, w=9, r=3, s=3, dilation=2, groups=4),
    ],
    ids=lambda one: one.name,
)
def test_onnx_runtime_has_the_same_numbers(problem: Problem) -> None:
    pytest.importorskip("onnxruntime")
    run_layer = onnx_layer(problem, 1)
    assert run_layer is not None
    kernel = compiled(problem, HOST)
    fp32 = DATA_TYPES["fp32"].read
    arrays = [random_array(kernel.shapes[name], fp32, 5) for name in kernel.names[:-1]]
    assert np.array_equal(run_layer(arrays).reshape(kernel.shapes[problem.output]), kernel(*arrays))


def test_gradients_have_no_onnx_layer() -> None:
    problem = conv2d(c=2, k=2, h=5, w=5, r=3, s=3, pass_="backward_data")
    assert onnx_layer(problem, 1) is None


def test_check_names_what_it_was_held_against(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("onnxruntime")
    assert run(["run", "gemm:m=4,n=5,k=6", "--check", "--format", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["reference"], row["library"]) == ("ONNX Runtime", "")
    assert run(["run", "gemm:m=4,n=5,k=6", "--check"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "all results equal NumPy's and ONNX Runtime's problem" in said
    assert run(["run", "gemm:m=4,n=5,k=6", "--check", "--type", "int8"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "all results equal NumPy's; ONNX Runtime checks fp32 only" in said
    assert run(["run", "gemm:m=4,n=5,k=6", "--type", "int8"]) == 0
    assert "ONNX" not in capsys.readouterr().out


def test_integers_have_no_flop_and_no_numpy(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["run", "gemm:m=4,n=5,k=6", "--type", "int8"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert " NumPy GOP/s " in said
    assert said.endswith("NumPy is not timed in int8 (-).")


def test_chosen_layers_are_not_all_layers(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["run", "alexnet", "-l", "fc7", "-l", "fc8", "--threads", "1"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "estimated measured NumPy GFLOP/s" in said
    assert "2 problems, repeats included: promised " in said


def test_one_input_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["run"]) == 2
    assert run(["run", "resnet50", "--onnx", "model.onnx"]) == 2
    assert "one of them" in capsys.readouterr().err


def test_lengths_of_a_model_that_is_an_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["run", "--onnx", "resnet50", "--batch", "2"]) == 3
    assert "'resnet50' is not one" in capsys.readouterr().err
    assert run(["run", "--batch", "2"]) == 2
    onnx = pytest.importorskip("onnx")
    kind, helper = onnx.TensorProto.FLOAT, onnx.helper
    tensors = [("x", ["N", 4]), ("y", [4, 5]), ("z", ["N", 5])]
    x, y, z = (helper.make_tensor_value_info(name, kind, shape) for name, shape in tensors)
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "y"], ["z"])], "g", [x, y], [z])
    model = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph), model)
    assert run(["run", "--onnx", str(model), "--batch", "3", "--format", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["gflops"] * row["measured_s"] * 1e9 == pytest.approx(2 * 3 * 4 * 5)


def test_an_interrupted_run_does_not_add_up_all_layers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = []

    def stopped(*given: Any, **options: Any) -> Any:
        if len(made) == 2:
            raise KeyboardInterrupt
        made.append(given)
        return measuring_run(gemm(m=4, n=4, k=4), *given[1:], **options)

    measuring_run = measuring.run_kernel
    monkeypatch.setattr(measuring, "run_kernel", stopped)
    assert run(["run", "alexnet"]) == 130
    assert "\n2 of 8 problems, repeats included: promised" in capsys.readouterr().out


def test_totals_count_repeats_and_options_reach_the_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[tuple[Any, ...]] = []
    names = ("threads", "data_type", "n_measured", "onnx")
    measuring_run = measuring.run_kernel

    def timed(problem: Problem, arch: Any, **options: Any) -> Any:
        asked.append(tuple(options[name] for name in names))
        kernel, found = measuring_run(problem, arch, threads=1)
        seconds = {"promised_s": 0.001, "estimate_s": 0.002, "measured_s": 0.003}
        return kernel, replace(found, **seconds)

    monkeypatch.setattr(measuring, "run_kernel", timed)
    layers = [{"op": "gemm", "m": 4, "n": n, "k": 4, "count": n} for n in (2, 3)]
    file = tmp_path / "two.json"
    file.write_text(json.dumps({"layers": layers}))
    options = ["--threads", "1", "--type", "bf16", "--measure", "3", "--check"]
    assert run(["run", str(file), *options]) == 0
    assert asked == [(1, "bf16", 3, True)] * 2
    said = " ".join(capsys.readouterr().out.split())
    assert said.endswith(
        "repeats included: promised 5.000 ms, estimated 10.00 ms, measured 15.00 ms"
    )


def test_a_vector_of_its_last_lane_is_stored_as_a_number() -> None:
    text = LlvmText(DATA_TYPES["fp32"].compute, 4)
    text.store("%place", "%value", DATA_TYPES["fp32"].out, "<i1 0, i1 0, i1 0, i1 1>")
    assert "extractelement <4 x float> %value, i64 3" in text.text()
