"""Configurations that can run, by vendors' limits written down apart; what `pick` promises."""

from __future__ import annotations

import csv
import io
import json
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopsched import Attention, Grouped, batched_gemm, conv2d, gemm, load_arch, pick
from loopsched.base.errors import LoopschedError
from loopsched.cli import run
from loopsched.gpu.choice.attention import attention_resources
from loopsched.gpu.choice.families import FAMILIES, TRITON_ATTENTION, TRITON_GEMM
from loopsched.gpu.choice.pick import rank
from loopsched.gpu.choice.space import space_of
from loopsched.gpu.library.machine import ELEMENT_BYTES
from loopsched.validation.choices import validate_choices

# CUDA programming guide, technical specifications: compute capability, then of an SM threads,
# blocks, KiB of shared memory, of these for one block; allocation of it in bytes.
_CUDA: dict[str, tuple[float, int, int, int, int, int]] = {
    "m40": (5.2, 2048, 32, 96, 48, 256),
    "p100": (6.0, 2048, 32, 64, 48, 256),
    "titan_xp": (6.1, 2048, 32, 96, 48, 256),
    "v100": (7.0, 2048, 32, 96, 96, 256),
    "t4": (7.5, 1024, 16, 64, 64, 256),
    "titan_rtx": (7.5, 1024, 16, 64, 64, 256),
    "a100": (8.0, 2048, 32, 164, 163, 128),
    "rtx_3090": (8.6, 1536, 16, 100, 99, 128),
    "a4000": (8.6, 1536, 16, 100, 99, 128),
    "rtx_4090": (8.9, 1536, 24, 100, 99, 128),
    "l40s": (8.9, 1536, 24, 100, 99, 128),
    "h100": (9.0, 2048, 32, 228, 227, 128),
    "h200": (9.0, 2048, 32, 228, 227, 128),
    "b200": (10.0, 2048, 32, 228, 227, 128),
}
_AMD = ("mi250x", "mi300x", "w6600", "w7800")
MACHINES = {name: load_arch(name) for name in (*_CUDA, *_AMD)}
_ANY = st.sampled_from(
    [1, 2, 3, 4, 5, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024, 2048, 4096, 2**20]
)
_LIKELY = st.sampled_from([16, 32, 64, 128, 256])
_SIZE = st.one_of(_LIKELY, st.integers(1, 9000), st.sampled_from([1, 2**14, 2**20]))


def _rows(family: str, *more: str) -> st.SearchStrategy[list[dict[str, int]]]:
    """Rows of the usual space, some of their values changed to anything."""
    made = FAMILIES[family]
    tried = made.tried()
    usual = st.integers(0, len(tried) - 1).map(tried.configuration)
    odd = st.dictionaries(st.sampled_from(made.names), _ANY, max_size=2)
    rows = st.builds(lambda one, other: one | other, usual, odd)
    if more:
        told = {"registers": st.sampled_from([0, 1, 64, 255, 256, 512])}
        told |= {"shared_bytes": st.integers(0, 300_000), "spills": st.integers(0, 500)}
        rows = st.builds(lambda one, other: one | other, rows, st.fixed_dictionaries(told))
    return st.lists(rows, min_size=1, max_size=6)


def _blocks(name: str, threads: int, registers: int, shared: int) -> int:
    """Put blocks on an SM of NVIDIA's one by one, until a limit of the guide is reached."""
    capability, most_threads, most_blocks, room, of_block, unit = _CUDA[name]
    reserved = 1024 if capability >= 8 else 0
    if threads > 1024 or not 0 < registers <= 255 or shared > 1024 * of_block:
        return 0
    warps = math.ceil(threads / 32)
    # Four schedulers with 16,384 registers each; a warp takes them in units of 256.
    on_scheduler, free = [0] * 4, 1024 * room
    blocks = 0
    while blocks < most_blocks:
        free -= math.ceil((shared + reserved) / unit) * unit
        for _ in range(warps):
            least = on_scheduler.index(min(on_scheduler))
            on_scheduler[least] += 1
        taken = max(on_scheduler) * math.ceil(32 * registers / 256) * 256
        if free < 0 or taken > 16_384 or 32 * sum(on_scheduler) > most_threads:
            break
        blocks += 1
    return blocks


def _is_power(value: int) -> bool:
    return bin(value).count("1") == 1


def _gemm_buffers(name: str, row: dict[str, int], width: int) -> int:
    """Bytes of a block's pipeline: each stage a tile of A and one of B."""
    hopper = name in ("h100", "h200", "b200") and row["block_m"] % 64 == 0
    stages = row["stages"] if hopper and row["warps"] % 4 == 0 else max(row["stages"] - 1, 1)
    tiles = row["block_m"] * row["block_k"] + row["block_k"] * row["block_n"]
    return sum(tiles * width for _ in range(stages))


def _gemm_runs(name: str, row: dict[str, int], width: int) -> bool:
    sides = [row[side] for side in ("block_m", "block_n", "block_k")]
    if not all(_is_power(one) for one in (*sides, row["warps"])):
        return False
    m, n, k = sides
    if min(m, n) < 16 or k < (32 if width == 1 else 16):
        return False
    if max(m * n, m * k, n * k) > 1_048_576 or row["warps"] > 32:
        return False
    return _gemm_buffers(name, row, width) <= 1024 * _CUDA[name][4]


@given(
    name=st.sampled_from([name for name in _CUDA if _CUDA[name][0] >= 7]),
    rows=_rows("triton_gemm"),
    data_type=st.sampled_from(["fp16", "int8"]),
)
def test_products_run_where_vendor_and_compiler_allow(
    name: str, rows: list[dict[str, int]], data_type: str
) -> None:
    arch, width = MACHINES[name], ELEMENT_BYTES[data_type]
    small = {"block_m": 16, "block_n": 16, "block_k": 32, "stages": 2, "warps": 1, "group_m": 1}
    space = space_of([*rows, small], TRITON_GEMM.names)
    found = rank(gemm(m=999, n=999, k=999), arch, TRITON_GEMM, space, data_type)
    assert found.feasible.tolist() == [_gemm_runs(name, row, width) for row in [*rows, small]]
    for at in range(len(found.space)):
        row, threads = found.space.configuration(at), int(found.taken.threads[at])
        shared, registers = _gemm_buffers(name, row, width), int(found.taken.registers[at])
        assert found.taken.shared_bytes[at] == shared
        assert found.taken.resident[at] == _blocks(name, threads, registers, shared) >= 1


@given(
    name=st.sampled_from([name for name in _CUDA if _CUDA[name][0] >= 7]),
    rows=_rows("triton_attention"),
    size=st.sampled_from([1, 16, 40, 64, 80, 96, 128, 192, 256]),
)
def test_attention_runs_where_vendor_and_compiler_allow(
    name: str, rows: list[dict[str, int]], size: int
) -> None:
    columns = min(one for one in (16, 32, 64, 128, 256) if one >= size)
    small = {"block_m": 16, "block_n": 16, "stages": 1, "warps": 1}
    wanted = []
    for row in [*rows, small]:
        m, n, warps = row["block_m"], row["block_n"], row["warps"]
        hopper = name in ("h100", "h200", "b200") and m % 64 == 0 and warps % 4 == 0
        kept = row["stages"] if hopper else max(row["stages"] - 1, 1)
        held = m * columns + 2 * kept * n * columns + (0 if hopper or warps == 1 else m * n)
        wanted.append(
            all(_is_power(one) for one in (m, n, warps))
            and min(m, n) >= 16
            and m * n <= 1_048_576
            and warps <= 32
            and 2 * held <= 1024 * _CUDA[name][4]
        )
    space = space_of([*rows, small], TRITON_ATTENTION.names)
    found = rank(Attention(1, 2, 300, size), MACHINES[name], TRITON_ATTENTION, space, "fp16")
    assert found.feasible.tolist() == wanted


@given(
    name=st.sampled_from(sorted(_CUDA)),
    family=st.sampled_from(["triton_gemm", "clblast_gemm", "filter"]),
    data=st.data(),
)
def test_compiled_kernels_run_where_they_fit(name: str, family: str, data: st.DataObject) -> None:
    """Registers and shared memory as told; arrays of the kernel's own have 48 KiB at most."""
    rows = data.draw(_rows(family, "told"))
    problem = conv2d(n=1, c=1, k=1, h=99, w=99, r=3, s=3) if family == "filter" else None
    made, gpu = FAMILIES[family], MACHINES[name].kernel_limits
    if family == "filter":
        taken = made.taken(problem, space_of(rows, made.names, made.switches), gpu, 4)
        threads = [row["block_size_x"] * row["block_size_y"] for row in rows]
    else:
        taken = made.taken(None, space_of(rows, made.names, made.switches), gpu, 2)
        threads = [row["warps"] * 32 if "warps" in row else 0 for row in rows]
        threads = [n or row["MDIMC"] * row["NDIMC"] for n, row in zip(threads, rows, strict=True)]
    for at, row in enumerate(rows):
        fits = family == "triton_gemm" or row["shared_bytes"] <= 48 * 1024
        blocks = _blocks(name, threads[at], row["registers"], row["shared_bytes"])
        assert taken.resident[at] == (blocks if fits else 0)


_PROBLEMS: dict[str, st.SearchStrategy[Any]] = {
    "triton_gemm": st.one_of(
        st.builds(gemm, m=_SIZE, n=_SIZE, k=_SIZE),
        st.builds(batched_gemm, batch=st.integers(1, 40), m=_SIZE, n=_SIZE, k=_SIZE),
    ),
    "triton_conv": st.builds(
        lambda c, k, side, window, stride: conv2d(
            n=2, c=c, k=k, h=side, w=side, r=window, s=window, stride=stride, padding=window // 2
        ),
        c=_LIKELY,
        k=st.integers(1, 300),
        side=st.integers(5, 60),
        window=st.sampled_from([1, 2, 3, 5]),
        stride=st.integers(1, 2),
    ),
    "triton_attention": st.builds(
        lambda batch, groups, heads, length, size, causal: Attention(
            batch, groups * heads, length, size, causal, groups
        ),
        batch=st.integers(1, 20),
        groups=st.integers(1, 4),
        heads=st.integers(1, 4),
        length=st.sampled_from([1, 3, 64, 777, 4096, 40_000]),
        size=st.sampled_from([1, 16, 64, 80, 128, 256, 300]),
        causal=st.booleans(),
    ),
    "triton_decode": st.builds(
        lambda batch, groups, heads, queries, size: Attention(
            batch, groups * heads, 40_000, size, groups=groups, queries=queries
        ),
        batch=st.integers(1, 20),
        groups=st.integers(1, 4),
        heads=st.integers(1, 40),
        queries=st.integers(1, 3),
        size=st.sampled_from([1, 64, 80, 256]),
    ),
    "triton_grouped": st.lists(st.tuples(_SIZE, _SIZE, _SIZE), min_size=1, max_size=4).map(
        lambda products: Grouped(tuple(products))
    ),
    "clblast_gemm": st.builds(gemm, m=_SIZE, n=_SIZE, k=_SIZE),
    "filter": st.builds(
        lambda n, h, w, r, s: conv2d(n=n, c=1, k=1, h=h, w=w, r=r, s=s),
        n=st.integers(1, 9),
        h=st.integers(20, 4000),
        w=st.integers(20, 4000),
        r=st.integers(1, 17),
        s=st.integers(1, 17),
    ),
}


@given(
    family=st.sampled_from(sorted(FAMILIES)),
    name=st.sampled_from(sorted(MACHINES)),
    data_type=st.sampled_from([None, "fp32", "fp16", "bf16", "tf32", "fp8", "int8", "int7"]),
    is_told=st.booleans(),
    data=st.data(),
)
def test_what_pick_promises(
    family: str, name: str, data_type: str | None, is_told: bool, data: st.DataObject
) -> None:
    """Of any problem, machine, kernel, type and space: rows in order, or one clear error."""
    problem = data.draw(_PROBLEMS[family])
    rows = data.draw(_rows(family, *["told"] * is_told))
    arguments = {"kernel": family, "data_type": data_type}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            found = pick(problem, MACHINES[name], space=rows, explain=True, **arguments)
        except LoopschedError:
            return
        again = pick(problem, MACHINES[name], space=rows[::-1], **arguments)
    estimates = [one.estimate_us for one in found.choices]
    assert estimates == sorted(estimates) == [one.estimate_us for one in again.choices]
    assert len(estimates) + found.n_infeasible == found.n_configurations == len(rows)
    for one in found.choices:
        assert 0 < one.bound_us <= one.low_us <= one.estimate_us <= one.high_us < math.inf
        assert 0 < one.waves < math.inf
        assert one.resident_blocks >= 1
        assert one.why
    flags = [one.may_be_best for one in found.choices]
    assert flags == sorted(flags, reverse=True)
    assert found.best.may_be_best
    assert found.n_may_be_best == sum(flags)


@pytest.mark.parametrize(
    ("problem", "more"),
    [
        ("gemm:m=77,n=1000,k=333", ["--type", "int8", "--arch", "t4"]),
        ("batched_gemm:batch=3,m=64,n=96,k=32", ["--arch", "mi300x"]),
        ("attention:1x8x300x80x1x2", ["--arch", "b200", "--explain"]),
        ("gemm:m=512,n=512,k=512", ["--kernel", "clblast_gemm", "--arch", "w7800"]),
    ],
)
def test_files_say_what_the_library_says(
    capsys: pytest.CaptureFixture[str], problem: str, more: list[str]
) -> None:
    texts = []
    for form in ("json", "csv"):
        assert run(["pick", problem, *more, "--top", "400", "--format", form]) == 0
        texts.append(capsys.readouterr().out)
    rows = json.loads(texts[0])
    assert len(rows) > 20
    lines = list(csv.DictReader(io.StringIO(texts[1])))
    assert lines == [{name: str(value) for name, value in row.items()} for row in rows]
    options = dict(zip(more[::2], more[1::2], strict=False))
    kind, _, sizes = problem.partition(":")
    if kind == "attention":
        asked: Any = Attention.named(sizes)
    else:
        given = {name: int(n) for name, n in (one.split("=") for one in sizes.split(","))}
        asked = gemm(**given) if kind == "gemm" else batched_gemm(**given)
    found = pick(
        asked,
        load_arch(options["--arch"]),
        kernel=options.get("--kernel"),
        data_type=options.get("--type"),
        top=400,
        explain="--explain" in more,
    )
    assert [{**row, "problem": ""} for row in rows] == [
        {**row, "problem": ""} for row in found.rows()
    ]


_HEAD = "block_m,block_n,block_k,stages,warps,group_m"


@pytest.mark.parametrize(
    ("space", "said"),
    [
        ("", "is empty"),
        (f"{_HEAD}\n", "no rows below the column names"),
        (f"{_HEAD}\n64,64,32,3,4,-8\n", "group_m must be a whole number from 1, not -8"),
        (f"{_HEAD}\n64,64,32,3,4,1e9\n", "group_m must be a whole number from 1"),
        (f"{_HEAD}\n64,64,32,3,4.5,8\n", "warps must be a whole number from 1, not 4.5"),
        (f"{_HEAD}\n64,64,32,3,four,8\n", "warps must be a whole number from 1, not 'four'"),
        (f"{_HEAD},block_m\n64,64,32,3,4,8,64\n", "column 'block_m' occurs more than once"),
        (f"{_HEAD}\n64,64,32,3,64,8\n", "cannot run on h100"),
        ('"', "CSV"),
    ],
)
def test_wrong_spaces_are_one_error(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, space: str, said: str
) -> None:
    file = tmp_path / "mine.csv"
    file.write_text(space)
    assert run(["pick", "gemm:m=64,n=64,k=64", "--space", str(file)]) == 3
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("Error: ") == 1
    assert said in printed.err


ROW = {"block_m": 64, "block_n": 64, "block_k": 32, "stages": 3, "warps": 4, "group_m": 8}


def test_four_warps_multiply_together_one_alone() -> None:
    """Fewer than four keep one stage less, and are slower."""
    problem, h100 = gemm(m=4096, n=4096, k=4096), MACHINES["h100"]
    rows = [ROW | {"block_m": 128, "warps": warps} for warps in (1, 2, 4)]
    found = {one.configuration["warps"]: one for one in pick(problem, h100, space=rows).choices}
    stage = (128 + 64) * 32 * 2
    assert [found[warps].shared_bytes // stage for warps in (1, 2, 4)] == [2, 2, 3]
    assert found[2].estimate_us > found[4].estimate_us < found[1].estimate_us


def test_blocks_of_many_threads_have_fewer_registers() -> None:
    """A compiler sees to it that a block fits; it spills what is too much."""
    rows = [ROW, ROW | {"block_m": 256, "block_n": 256, "warps": 32}]
    found = pick(gemm(m=512, n=512, k=512), MACHINES["h100"], space=rows)
    assert found.n_infeasible == 0
    last = found.choices[1]
    assert (last.registers, last.resident_blocks) == (64, 1)


def test_a_block_without_registers_cannot_run() -> None:
    row = ROW | {"registers": 0, "shared_bytes": 0, "spills": 0}
    with pytest.raises(LoopschedError, match="cannot run on h100: less than one register"):
        pick(gemm(m=512, n=512, k=512), MACHINES["h100"], space=[row])


@pytest.mark.parametrize("rows", [(256, 256, 4), (512, 512, 4), (512, 256, 8), (256, 256, 8)])
def test_sums_that_no_registers_hold_are_not_chosen(rows: tuple[int, int, int]) -> None:
    """Once 512 x 512 with four warps, 2,048 sums a thread, was the first choice."""
    m, n, warps = rows
    usual = ROW | {"block_m": 128, "block_n": 256, "block_k": 32, "warps": 8}
    huge = usual | {"block_m": m, "block_n": n, "warps": warps}
    for problem in (gemm(m=8192, n=8192, k=8192), gemm(m=4096, n=16384, k=1024)):
        found = pick(problem, MACHINES["h100"], space=[huge, usual])
        assert dict(found.best.configuration) == usual


def test_head_sizes_are_computed_as_powers_of_two() -> None:
    row = {"block_m": 64, "block_n": 64, "stages": 3, "warps": 4}
    space = space_of([row], TRITON_ATTENTION.names)
    gpu = MACHINES["h100"].kernel_limits
    shared = [
        attention_resources(Attention(1, 1, 64, size), space, gpu, 2).shared_bytes[0]
        for size in (8, 16, 65, 80, 128)
    ]
    assert shared[0] == shared[1]
    assert len(set(shared[2:])) == 1
    odd, even = (
        pick(Attention(8, 16, 2048, size), MACHINES["h100"], space=[row]).best for size in (80, 128)
    )
    # What is computed for nothing takes time; it is not read, and no bound.
    assert 0.7 * even.estimate_us < odd.estimate_us <= even.estimate_us
    assert odd.bound_us < 0.7 * even.bound_us


def test_measured_rows_that_cannot_run_are_told(tmp_path: Path) -> None:
    """They count as measured: the best may be among them, and no set of ours holds it."""
    file = tmp_path / "mine.csv"
    head = "kind,problem,block_m,block_n,block_k,stages,warps,group_m,time_us\n"
    file.write_text(
        f"{head}gemm,64x64x64,64,64,32,3,4,8,10\ngemm,64x64x64,96,64,32,3,4,8,5\n", encoding="utf-8"
    )
    found = validate_choices(file, "h200")
    (problem,) = found.problems
    assert (problem["configurations"], problem["refused"]) == (1, 1)
    assert (problem["best_us"], problem["first_1"]) == (5, 2)
    assert not problem["set_holds_best"]
    assert found.summary["groups"][0]["refused"] == 1


def test_measured_parameters_are_whole_and_splits_may_be_left_out(tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    head = "kind,problem,block_m,block_n,block_k,stages,warps,group_m,split_k,registers,time_us\n"
    row = "gemm,512x512x8192,64,64,32,3,{warps},8,{split},{registers},10\n"
    whole = row.format(warps="4.0", split="", registers="n/a")
    split = row.format(warps="4", split="8", registers="some")
    file.write_text(head + whole + split)
    estimates = [one["estimate_us"] for one in validate_choices(file, "h200").rows]
    for told, parts in zip(estimates, (1, 8), strict=True):
        space = [ROW | {"split_k": parts}]
        wanted = pick(gemm(m=512, n=512, k=8192), MACHINES["h200"], space=space).best
        assert told == wanted.estimate_us
    for warps, parts, said in (("4.5", "8", "warps 4.5"), ("4", "0", "split_k 0")):
        file.write_text(head + row.format(warps=warps, split=parts, registers=""))
        with pytest.raises(LoopschedError, match=f"whole except times, are needed: {said}"):
            validate_choices(file, "h200")


def test_spilled_registers_take_time() -> None:
    rows = [ROW | {"registers": 255, "shared_bytes": 9, "spills": spills} for spills in (0, 200)]
    one, other = pick(gemm(m=4096, n=4096, k=4096), MACHINES["h100"], space=rows).choices
    assert one.estimate_us < other.estimate_us
    assert np.isfinite(other.estimate_us)
