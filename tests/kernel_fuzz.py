"""Random kernels: problems, types, layouts and plans by a seed, against a sum over all points.

Arrays end, or begin, at a page that may not be touched, and so does the room that a kernel
works in: a read outside ends the process.
"""

from __future__ import annotations

import ctypes
import mmap
import random
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from loopsched import Problem, ProblemError, conv2d, einsum
from loopsched.base.machine_code import linked, object_code, widest_vector
from loopsched.codegen.c_text import CText
from loopsched.codegen.choose import ranked
from loopsched.codegen.contraction import contractions, row_major, stored_shape
from loopsched.codegen.core import Core
from loopsched.codegen.element import DATA_TYPES
from loopsched.codegen.engine import form
from loopsched.codegen.llvm_text import LlvmText
from loopsched.codegen.stages import General, Stage
from loopsched.codegen.writer import Writer
from loopsched.problems.builders import batched_gemm
from loopsched.problems.problem import Axis, Tensor

Array = np.ndarray[Any, Any]
MOST_POINTS = 300_000
PAGE = 4096
LETTERS = "abcde"
EXPRESSIONS = [
    *("ab,bc->ac", "ab,bc,cd->ad", "abc,dc->bad", "ab->ba", "abc->b", "a,b->ab", "ab,ab->a"),
    *("ab,ab->", "abc,bcd->da", "abcd,bd->acb", "ab,cb,db->acd", "a,a,a->a", "bca,ab->cb"),
    "abc,bc->a",
]


ONLY = {
    "": lambda one, plan: True,
    "sliding": lambda one, plan: plan.slides,
    "masked": lambda one, plan: bool(one.right.guards) and not plan.packs_right,
    "dots": lambda one, plan: plan.sums_in_lanes,
}
"""Kinds of plans: whether what is cut, and how, is one."""


@dataclass(frozen=True)
class Case:
    """A kernel to write: a problem, types, steps of axes, and what was drawn of its plan."""

    seed: int
    problem: Problem
    data_type: str
    steps: dict[str, tuple[int, ...]]
    lanes: int
    registers: int
    is_general: bool
    only: str = ""
    """Plans of this kind alone, if it has any: `ONLY`."""

    def __str__(self) -> str:
        how = "general" if self.is_general else self.only or "planned"
        what = f"{self.problem.name} {dict(self.problem.attributes)} {self.data_type}"
        return f"seed {self.seed}: {what} {how} {self.steps}"


def draw_problem(draw: random.Random) -> Problem:
    """Draw a product, a convolution of any pass, an einsum, or sums over any axes."""
    kind = draw.random()
    if kind < 0.3:
        sizes = {dim: draw.choice([1, 2, draw.randint(1, 70)]) for dim in ("m", "n", "k")}
        turned = {f"transpose_{one}": draw.random() < 0.5 for one in "ab"}
        return batched_gemm(batch=draw.choice([1, 1, 3]), **sizes, **turned)
    if kind < 0.75:
        groups = draw.choice([1, 1, 2, 4])
        c = draw.choice([1, 2, 4]) * groups
        return conv2d(
            n=draw.randint(1, 3),
            c=c,
            k=c if draw.random() < 0.3 else draw.choice([1, 3, 10]) * groups,
            h=draw.randint(1, 14),
            w=draw.randint(1, 36),
            r=draw.randint(1, 4),
            s=draw.randint(1, 4),
            stride=draw.choice([1, 1, 2, 3, (1, 2), (2, 1)]),
            padding=draw.choice([0, 0, 1, 2, (0, 1, 2, 0), (1, 0, 0, 2)]),
            dilation=draw.choice([1, 1, 2, (1, 3)]),
            groups=c if draw.random() < 0.2 else groups,
            pass_=draw.choice(["forward", "forward", "backward_data", "backward_weights"]),
        )
    if kind < 0.85:
        expression = draw.choice(EXPRESSIONS)
        letters = sorted(set(expression) - set(",->"))
        return einsum(expression, {one: draw.randint(1, 20) for one in letters})
    return draw_affine(draw)


def draw_affine(draw: random.Random) -> Problem:
    """Draw tensors whose axes are any sums of dimensions, with padding or without."""
    dims = LETTERS[: draw.randint(1, 4)]
    sizes = {dim: draw.randint(1, 9) for dim in dims}
    tensors = []
    for name in "XYZ"[: draw.randint(2, 3)]:
        left = draw.sample(dims, draw.randint(0, len(dims)))
        axes = []
        while left:
            n_terms = draw.randint(1, min(3, len(left)))
            terms = tuple((dim, draw.randint(1, 3)) for dim in left[:n_terms])
            last = sum(step * (sizes[dim] - 1) for dim, step in terms)
            before, after = draw.randint(0, min(2, last)), draw.randint(0, 2)
            is_padded = draw.random() < 0.4
            axes.append(
                Axis(terms, -before, last + 1 - before + after) if is_padded else Axis(terms)
            )
            left = left[n_terms:]
        tensors.append(Tensor(name, tuple(axes)))
    return Problem("affine", tuple(sizes.items()), tuple(tensors), tensors[-1].name)


def small(make: Callable[[], Problem]) -> Problem:
    """Draw until a problem is one, and has few points."""
    while True:
        try:
            problem = make()
        except ProblemError:
            continue
        if problem.macs <= MOST_POINTS:
            return problem


def case(seed: int) -> Case:
    """Draw the case of a seed."""
    draw = random.Random(seed)
    problem = small(lambda: draw_problem(draw))
    data_type = draw.choice(["fp32", "fp32", "fp64", "bf16", "int8"])
    steps = {one.name: draw_steps(draw, stored_shape(problem, one)) for one in problem.tensors}
    bits, registers = draw.choice([(512, 32), (256, 16), (128, 32)])
    lanes = bits // 8 // DATA_TYPES[data_type].compute.n_bytes
    return Case(seed, problem, data_type, steps, lanes, registers, draw.random() < 0.15)


def sliding_case(seed: int) -> Case:
    """Draw a depthwise convolution over which a window slides: few of all plans do."""
    draw = random.Random(f"sliding {seed}")
    c = draw.choice([1, 2, 5])
    small, large = [(2, 2), (3, 3), (2, 4), (3, 2), (2, 6)], [(4, 4), (5, 3), (2, 7), (5, 5)]
    r, s = draw.choice([*small, *large, (7, 7), (9, 6), (3, 19)])
    problem = conv2d(
        n=draw.randint(1, 2),
        c=c,
        k=c,
        groups=c,
        h=draw.randint(max(7, 2 * r - 1), 17),
        w=draw.choice([draw.randint(max(7, s), 40), draw.randint(41, 130)]),
        r=r,
        s=s,
        stride=draw.choice([1, 1, 2, 2, 3, (1, 2), (2, 1)]),
        padding=draw.choice([0, 1, 2, (0, 1, 2, 0), (1, 0, 0, 2)]),
        dilation=draw.choice([1, 1, (2, 1)]),
    )
    data_type = draw.choice(["fp32", "fp64", "bf16", "int8"])
    bits, registers = draw.choice([(512, 32), (256, 16), (128, 32)])
    lanes = bits // 8 // DATA_TYPES[data_type].compute.n_bytes
    steps = {one.name: row_major(stored_shape(problem, one)) for one in problem.tensors}
    return Case(seed, problem, data_type, steps, lanes, registers, False, "sliding")


def masked_case(seed: int) -> Case:
    """Draw a padded convolution whose image may be read in place, with masks at its edges."""
    draw = random.Random(f"masked {seed}")
    problem = small(
        lambda: conv2d(
            n=draw.randint(1, 2),
            c=draw.randint(1, 5),
            k=draw.choice([draw.randint(1, 4), draw.randint(5, 40)]),
            h=draw.randint(1, 7),
            w=draw.choice([draw.randint(1, 20), draw.randint(20, 130)]),
            r=draw.choice([1, 2, 3, 5]),
            s=draw.choice([2, 3, 4, 5, 7]),
            stride=draw.choice([1, 1, (2, 1), (3, 1)]),
            padding=draw.choice([1, 1, 2, 3, (0, 1, 2, 0), (1, 0, 0, 2), (0, 0, 4, 5)]),
            dilation=draw.choice([1, 1, 2, (1, 3), (3, 1)]),
            groups=1,
            pass_=draw.choice(["forward", "forward", "backward_data"]),
        )
    )
    data_type = draw.choice(["fp32", "fp32", "fp64", "bf16", "int8"])
    lanes = 64 // DATA_TYPES[data_type].compute.n_bytes
    steps = {one.name: row_major(stored_shape(problem, one)) for one in problem.tensors}
    return Case(seed, problem, data_type, steps, lanes, 32, False, "masked")


def dots_case(seed: int) -> Case:
    """Draw a product or a convolution of any kind, of whose sums lanes may hold the points."""
    draw = random.Random(f"dots {seed}")

    def make() -> Problem:
        problem = draw_problem(draw)
        if draw.random() < 0.4:
            sizes = {dim: draw.randint(1, 40) for dim in "mn"} | {"k": draw.randint(2, 200)}
            problem = batched_gemm(batch=1, **sizes, transpose_b=True)
        return problem

    problem = small(make)
    data_type = draw.choice(["fp32", "fp32", "fp64", "bf16", "int8"])
    bits, registers = draw.choice([(512, 32), (256, 16), (128, 32)])
    lanes = bits // 8 // DATA_TYPES[data_type].compute.n_bytes
    steps = {one.name: draw_steps(draw, stored_shape(problem, one)) for one in problem.tensors}
    return Case(seed, problem, data_type, steps, lanes, registers, False, "dots")


def draw_steps(draw: random.Random, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Draw how an array lies: in half of all cases row by row, else in any order, with gaps."""
    order = list(range(len(shape)))
    gap = 0
    if draw.random() < 0.5:
        draw.shuffle(order)
        gap = draw.choice([0, 0, 1, 5])
    steps, run = [0] * len(shape), 1
    for axis in reversed(order):
        steps[axis] = run
        run = run * shape[axis] + gap
    return tuple(steps)


def write(one: Case, text: Writer) -> list[Stage]:
    """Write the case's program."""
    draw = random.Random(one.seed + 1)
    types = DATA_TYPES[one.data_type]
    elements = dict.fromkeys((tensor.name for tensor in one.problem.tensors), types.read)
    elements[one.problem.output] = types.out
    general = General(text, one.problem, elements, one.steps, one.registers)
    if one.is_general:
        return general.write("run")
    try:
        tasks = contractions(one.problem, elements, one.steps)
    except NotImplementedError:
        return general.write("run")
    core = Core(one.lanes, one.registers, 1, 4, 1.5, 2**15, 2**20, 3.7e9)
    stages = []
    for number, task in enumerate(tasks):
        every = ranked(task, core, draw.choice([1, 2, 3]))
        every = [found for found in every if ONLY[one.only](*found[1:])] or every
        _, chosen, plan = draw.choice(every)
        plan = plan._replace(asks_l3=draw.random() < 0.5)
        engine = form(plan)(text, chosen, plan, f"run{number}")
        few = {"NEAR_BYTES": 0, "MANY_BYTES": 0, "L3_BYTES": draw.choice([0, 1 << 23])}
        with patch.multiple("loopsched.codegen.plan", **few):
            engine.write()  # asks for lines as large ones do
        names = tuple(operand.name for operand in chosen.operands)
        stages.append(Stage(engine.name, names, engine.n_jobs, room=engine.work_room))
    return stages


# Arrays


def drawn(one: Case) -> dict[str, Array]:
    """Small whole numbers, so that all sums are exact; what is written is there before, too."""
    random_ = np.random.default_rng(one.seed)
    most = 127 if one.data_type == "int8" else 3
    shapes = {tensor.name: stored_shape(one.problem, tensor) for tensor in one.problem.tensors}
    return {name: random_.integers(-most, most + 1, shape) for name, shape in shapes.items()}


def point_by_point(problem: Problem, arrays: dict[str, Array]) -> Array:
    """Add the products of all points."""
    grid = np.indices([size for _, size in problem.sizes]).reshape(len(problem.sizes), -1)
    at = dict(zip(problem.dims, grid, strict=True))
    counts = np.ones(grid.shape[1], bool)
    places: dict[str, list[Array]] = {}
    for tensor in problem.tensors:
        places[tensor.name] = []
        for axis in tensor.axes:
            place = np.zeros(grid.shape[1], int)
            for dim, step in axis.terms:
                place = place + step * at[dim]
            if axis.size is not None:
                place = place + axis.offset
                counts &= (place >= 0) & (place < axis.size)
            places[tensor.name].append(place)
    product = np.ones(int(counts.sum()), int)
    for tensor in problem.tensors:
        if tensor.name != problem.output:
            index = tuple(place[counts] for place in places[tensor.name])
            product = product * arrays[tensor.name][index]
    out = np.zeros(arrays[problem.output].shape, int)
    if not out.shape:
        return np.asarray(product.sum())
    np.add.at(out, tuple(place[counts] for place in places[problem.output]), product)
    return out


def with_padding(problem: Problem, arrays: dict[str, Array], *, is_multiplied: bool) -> Array:
    """Add the products of all points; padding is zeros that are multiplied, or is left out."""
    grid = np.indices([size for _, size in problem.sizes]).reshape(len(problem.sizes), -1)
    at = dict(zip(problem.dims, grid, strict=True))
    counts, product = np.ones(grid.shape[1], bool), np.ones(grid.shape[1])
    target: list[Array] = []
    for tensor in problem.tensors:
        inside, index = np.ones(grid.shape[1], bool), []
        for axis in tensor.axes:
            place = sum((step * at[dim] for dim, step in axis.terms), np.zeros(grid.shape[1], int))
            if axis.size is not None:
                place = place + axis.offset
                is_here = (place >= 0) & (place < axis.size)
                inside, place = inside & is_here, np.where(is_here, place, 0)
            index.append(place)
        if tensor.name == problem.output:
            target = index
            counts &= inside
            continue
        values = arrays[tensor.name][tuple(index)]
        product = product * (np.where(inside, values, 0.0) if is_multiplied else values)
        counts &= inside | is_multiplied
    if not target:
        return np.asarray(product[counts].sum())
    out = np.zeros(arrays[problem.output].shape)
    np.add.at(out, tuple(place[counts] for place in target), product[counts])
    return out


def check_infinite(one: Case) -> str | None:
    """Run a case of real numbers, some of which are infinite or none; say what is wrong.

    Each sum may have padding as zeros that are multiplied, or leave it out.
    """
    problem, draw = one.problem, np.random.default_rng(one.seed)
    arrays = {name: np.where(few == 0, 1.0, few) for name, few in drawn(one).items()}
    for name in arrays.keys() - {problem.output}:
        shape = arrays[name].shape
        odd = draw.choice([np.inf, -np.inf, np.nan], shape)
        arrays[name] = np.where(draw.random(shape) < 0.06, odd, arrays[name])
    memory = {
        name: spread(stored(values, one.data_type, is_out=False), one.steps[name], 77)
        for name, values in arrays.items()
    }
    for stage, run in zip(*functions(one), strict=True):
        given = [memory[name][0].ctypes.data for name in stage.tensors]
        kept = np.full(stage.room * 8 + 2 * PAGE, 0xFF, np.uint8)
        room = kept.ctypes.data + -kept.ctypes.data % PAGE
        run(*given, room, 0, stage.n_jobs)
    found = memory[problem.output][1]
    with np.errstate(invalid="ignore"):
        right = [with_padding(problem, arrays, is_multiplied=one) for one in (False, True)]
    is_one = [np.isclose(found, wanted, rtol=0, atol=0, equal_nan=True) for wanted in right]
    bad = np.argwhere(~(is_one[0] | is_one[1]))
    return f"{one}: {len(bad)} wrong, first {bad[0]}" if len(bad) else None


def stored(values: Array, data_type: str, *, is_out: bool) -> Array:
    """Numbers as they lie in memory; bf16 is rounded to the nearest, ties to even."""
    if data_type == "bf16":
        bits = values.astype(np.float32).view(np.uint32).astype(np.uint64)
        return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    kinds = {"fp32": "float32", "fp64": "float64", "int8": "int32" if is_out else "int8"}
    return values.astype(kinds[data_type])


def spread(values: Array, steps: tuple[int, ...], gaps: int) -> tuple[Array, Array]:
    """Put values where the steps say; give all of the memory, and the view of it that counts."""
    reach = 1 + sum((size - 1) * step for size, step in zip(values.shape, steps, strict=True))
    memory = np.full(reach, gaps, values.dtype)
    strides = tuple(step * values.itemsize for step in steps)
    view = np.lib.stride_tricks.as_strided(memory, values.shape, strides)
    view[...] = values
    return memory, view


def placed(one: Case) -> tuple[dict[str, Array], Array]:
    """Give the memory of each tensor, and what that of the output must hold at the end."""
    numbers, problem = drawn(one), one.problem
    memory: dict[str, Array] = {}
    for tensor in problem.tensors:
        is_out = tensor.name == problem.output
        values = stored(numbers[tensor.name], one.data_type, is_out=is_out)
        memory[tensor.name], _ = spread(values, one.steps[tensor.name], 77)
    sums = stored(point_by_point(problem, numbers), one.data_type, is_out=True)
    wanted, _ = spread(sums, one.steps[problem.output], 77)
    return memory, wanted


class Guarded:
    """Memory between two pages that may not be touched."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None)
        self._libc.mmap.restype = ctypes.c_void_p
        self._libc.mmap.argtypes = [
            ctypes.c_void_p,
            ctypes.c_size_t,
            *[ctypes.c_int] * 3,
            ctypes.c_long,
        ]
        self._libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        self._libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        self._taken: list[tuple[int, int]] = []

    def place(self, values: Array, *, is_last: bool) -> Array:
        """Copy an array to where its last, or its first, element lies beside such a page."""
        room = -(-values.nbytes // PAGE) * PAGE
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        start = self._libc.mmap(
            None, room + 2 * PAGE, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0
        )
        self._taken.append((start, room + 2 * PAGE))
        for page in (start, start + PAGE + room):
            self._libc.mprotect(page, PAGE, 0)
        at = start + PAGE + (room - values.nbytes if is_last else 0)
        raw = (ctypes.c_char * values.nbytes).from_address(at)
        made = np.frombuffer(raw, values.dtype)
        made[...] = values
        return made

    def free(self) -> None:
        """Give it back."""
        for start, size in self._taken:
            self._libc.munmap(start, size)
        self._taken = []


def difference(one: Case, found: Array, wanted: Array) -> str | None:
    """Say what is wrong with an output."""
    bad = np.flatnonzero(found != wanted)
    if not len(bad):
        return None
    first = bad[0]
    count = f"{len(bad)} of {len(wanted)} wrong"
    return f"{one}: {count}, first {first}: {found[first]}, not {wanted[first]}"


# Both back ends

Run = Callable[..., None]


def pieces(one: Case, text: LlvmText) -> list[str]:
    """Give a program as modules of single functions, of some, or as one."""
    least = random.Random(one.seed + 3).choice((1, 30, 1000))
    return list(text.pieces(is_whole=True, least=least))


def functions(one: Case) -> tuple[list[Stage], list[Run]]:
    """Compile a case with LLVM."""
    widest = widest_vector() or 64
    compute = DATA_TYPES[one.data_type].compute
    one = replace(one, lanes=min(one.lanes, widest // compute.n_bytes))
    text = LlvmText(compute, one.lanes)
    stages = write(one, text)
    binaries = [object_code(piece) for piece in pieces(one, text)]
    made = []
    for stage in stages:
        pointers = [ctypes.c_void_p] * (len(stage.tensors) + 1)
        types = (None, *pointers, ctypes.c_int64, ctypes.c_int64)
        made.append(linked(binaries, [stage.name], types)[0])
    return stages, made


def check_llvm(one: Case) -> str | None:
    """Run a case as LLVM compiles it; say what is wrong."""
    draw, guarded = random.Random(one.seed + 2), Guarded()
    memory, wanted = placed(one)
    stages, made = functions(one)
    arrays = {
        name: guarded.place(array, is_last=draw.random() < 0.8) for name, array in memory.items()
    }
    for stage, run in zip(stages, made, strict=True):
        size = stage.room * DATA_TYPES[one.data_type].compute.n_bytes
        room = guarded.place(np.full(-(-size // PAGE) * PAGE or PAGE, 0xFF, np.uint8), is_last=True)
        given = [arrays[name].ctypes.data for name in stage.tensors]
        cuts = sorted({0, stage.n_jobs, *(draw.randint(0, stage.n_jobs) for _ in range(2))})
        for first, last in pairwise(cuts):
            run(*given, room.ctypes.data, first, last)
    fault = difference(one, arrays[one.problem.output].copy(), wanted)
    guarded.free()
    return fault


def main_of(one: Case, folder: Path, stages: list[Stage]) -> tuple[list[str], Array]:
    """Write the C function that reads arrays, calls the stages, and writes what they have made."""
    memory, wanted = placed(one)
    lines = ["#include <stdio.h>", "#include <stdlib.h>", "int main(void) {"]
    for name, array in memory.items():
        array.tofile(folder / name)
        lines += [
            f"byte *{name} = malloc({array.nbytes});",
            f'FILE *file_{name} = fopen("{folder / name}", "rb");',
            f"if (fread({name}, 1, {array.nbytes}, file_{name}) != {array.nbytes}) return 2;",
        ]
    for number, stage in enumerate(stages):
        size = stage.room * DATA_TYPES[one.data_type].compute.n_bytes
        given = ", ".join(stage.tensors)
        lines += [
            f"byte *work{number} = aligned_alloc({PAGE}, {-(-size // PAGE) * PAGE or PAGE});",
            f"{stage.name}({given}, work{number}, 0, {stage.n_jobs});",
        ]
    out = one.problem.output
    lines += [
        f'FILE *file = fopen("{folder / "found"}", "wb");',
        f"fwrite({out}, 1, {wanted.nbytes}, file);",
        "fclose(file); return 0; }",
    ]
    return lines, wanted


def check_c(one: Case, folder: Path, *options: str) -> str | None:
    """Build a case as a C program, under AddressSanitizer, and run it; say what is wrong."""
    text = CText(DATA_TYPES[one.data_type].compute, one.lanes)
    stages = write(one, text)
    main, wanted = main_of(one, folder, stages)
    (folder / "made.c").write_text("\n".join([text.text(), *main]), encoding="utf-8")
    safe = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    build = ["cc", "-O1", "-w", "-Wno-psabi", *safe, *options]
    subprocess.run([*build, str(folder / "made.c"), "-o", str(folder / "made")], check=True)
    return run_made(one, folder, wanted)


def run_made(one: Case, folder: Path, wanted: Array, *runner: str) -> str | None:
    """Run a program that was built; say what is wrong."""
    done = subprocess.run(
        [*runner, str(folder / "made")],
        capture_output=True,
        text=True,
        check=False,
        env={"ASAN_OPTIONS": "detect_leaks=0"},
    )
    if done.returncode:
        return f"{one}: {done.returncode} {done.stderr[:600]}"
    return difference(one, np.fromfile(folder / "found", wanted.dtype), wanted)


AARCH64 = ("aarch64-linux-gnu-gcc", "qemu-aarch64")


def check_aarch64(one: Case, folder: Path, back: str) -> str | None:
    """Build a case for AArch64, its kernel as C or by LLVM, and run it in an emulator."""
    compute = DATA_TYPES[one.data_type].compute
    text: CText | LlvmText = (CText if back == "c" else LlvmText)(compute, one.lanes)
    stages = write(one, text)
    main, wanted = main_of(one, folder, stages)
    sources = [str(folder / "made.c")]
    if back == "c":
        first = text.text()
    else:
        first = "typedef unsigned char byte;"
        for stage in stages:
            given = ", ".join(["byte *"] * (len(stage.tensors) + 1))
            first += f"\nvoid {stage.name}({given}, long, long);"
        assert isinstance(text, LlvmText)
        for piece in pieces(one, text):
            sources.append(str(folder / f"kernel{len(sources)}.o"))
            Path(sources[-1]).write_bytes(code_for_aarch64(piece))
    (folder / "made.c").write_text("\n".join([first, *main]), encoding="utf-8")
    build = [AARCH64[0], "-O2", "-static", "-w", "-Wno-psabi", *sources]
    subprocess.run([*build, "-o", str(folder / "made")], check=True)
    return run_made(one, folder, wanted, AARCH64[1])


def code_for_aarch64(text: str) -> bytes:
    """Turn LLVM's text into an object file for AArch64."""
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    module = llvm.parse_assembly(text)
    module.verify()
    of = llvm.Target.from_triple("aarch64-unknown-linux-gnu")
    machine = of.create_target_machine("generic", "+neon", 3, reloc="pic", codemodel="small")
    code: bytes = machine.emit_object(module)
    return code
