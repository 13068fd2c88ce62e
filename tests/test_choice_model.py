"""Estimates of kernels are those of the model, configuration by configuration."""

from __future__ import annotations

import pytest
from choice_oracle import Taken, estimate, longer
from hypothesis import example, given
from hypothesis import strategies as st

from loopsched import Problem, batched_gemm, conv2d, gemm, load_arch
from loopsched.gpu.choice.families import TRITON_CONV, TRITON_GEMM, Family
from loopsched.gpu.choice.fitted import fitted
from loopsched.gpu.choice.pick import rank
from loopsched.gpu.choice.pipeline import PARTS
from loopsched.gpu.choice.space import space_of
from loopsched.gpu.library.machine import machine_of

MACHINES = {name: load_arch(name) for name in ("h100", "h200", "t4", "rtx_3090")}
TYPES = {name: ["fp16", "int8"] for name in MACHINES} | {"h200": ["fp16", "tf32", "fp8", "int8"]}
PLACES = st.sampled_from(
    [(name, data_type) for name, types in TYPES.items() for data_type in types]
)
SIZE = st.one_of(st.integers(1, 9000), st.sampled_from([16, 512, 4096, 8192, 16384]))
TILES = {
    "block_m": st.sampled_from([16, 32, 64, 128, 256]),
    "block_n": st.sampled_from([16, 32, 64, 128, 256]),
    "block_k": st.sampled_from([32, 64, 128]),
    "stages": st.integers(1, 5),
    "warps": st.sampled_from([1, 2, 4, 8]),
}


def _same(
    family: Family, problem: Problem, place: tuple[str, str], given_rows: list[dict[str, int]]
) -> None:
    arch, (name, data_type) = MACHINES[place[0]], place
    # Small tiles run on all of them.
    small = {"block_m": 32, "block_n": 32, "block_k": 32, "stages": 2, "warps": 4, "group_m": 4}
    small |= {"split_k": 4} if "split_k" in given_rows[0] else {}
    space = space_of([*given_rows, small], family.names, more=family.more)
    found = rank(problem, arch, family, space, data_type)
    machine, fit = machine_of(arch, data_type), fitted(family.name)
    for at in range(len(found.space)):
        one = found.space.configuration(at)
        spilled = 4 * float(found.taken.spills[at]) * one["warps"] * machine.gpu.warp_threads
        taken = Taken(bool(found.taken.by_group[at]), int(found.taken.resident[at]), spilled)
        seconds, spent, waves = estimate(problem, one, data_type, taken, machine, fit)
        if place[0] in ("h100", "h200"):
            seconds *= longer(problem, one, data_type)
        assert found.times.time_s[at] == pytest.approx(seconds, rel=1e-9), (name, one)
        assert [found.times.parts[part][at] for part in PARTS] == pytest.approx(spent, rel=1e-9)
        assert found.times.waves[at] == pytest.approx(waves, rel=1e-12)


@given(
    sizes=st.fixed_dictionaries({"m": SIZE, "n": SIZE, "k": SIZE}),
    batch=st.sampled_from([None, 1, 3]),
    place=PLACES,
    rows=st.lists(
        st.fixed_dictionaries(TILES | {"group_m": st.sampled_from([1, 4, 8])}),
        min_size=1,
        max_size=6,
    ),
)
# Large enough to run into the limit of power, and for L2 to lose operands.
@example(
    sizes={"m": 16384, "n": 16384, "k": 8192},
    batch=None,
    place=("h200", "fp16"),
    rows=[
        {"block_m": m, "block_n": 128, "block_k": 64, "stages": 3, "warps": 8, "group_m": g}
        for m in (64, 128)
        for g in (1, 8)
    ],
)
# Operands that are turned, wide tiles of single bytes.
@example(
    sizes={"m": 4096, "n": 4096, "k": 4096},
    batch=None,
    place=("h200", "tf32"),
    rows=[{"block_m": 64, "block_n": 128, "block_k": 32, "stages": 3, "warps": 4, "group_m": 8}],
)
@example(
    sizes={"m": 4096, "n": 4096, "k": 4096},
    batch=None,
    place=("h200", "fp8"),
    rows=[{"block_m": 128, "block_n": 256, "block_k": 64, "stages": 3, "warps": 8, "group_m": 8}],
)
# Terms that are split among blocks, partial sums within L2 and beyond it.
@example(
    sizes={"m": 4096, "n": 4096, "k": 1000},
    batch=None,
    place=("h200", "fp16"),
    rows=[
        {"block_m": 64, "block_n": 128, "block_k": 32, "stages": 3, "warps": 4, "group_m": 8}
        | {"split_k": split}
        for split in (1, 2, 3, 16)
    ],
)
@example(
    sizes={"m": 256, "n": 256, "k": 8192},
    batch=3,
    place=("h200", "int8"),
    rows=[
        {"block_m": 64, "block_n": 64, "block_k": 64, "stages": 3, "warps": 4, "group_m": 8}
        | {"split_k": split}
        for split in (1, 8)
    ],
)
# Products of a batch whose last group of rows of tiles is low.
@example(
    sizes={"m": 320, "n": 256, "k": 2048},
    batch=200,
    place=("h200", "fp16"),
    rows=[{"block_m": 64, "block_n": 128, "block_k": 64, "stages": 3, "warps": 4, "group_m": 4}],
)
def test_products_take_what_the_model_says(
    sizes: dict[str, int], batch: int | None, place: tuple[str, str], rows: list[dict[str, int]]
) -> None:
    problem = gemm(**sizes) if batch is None else batched_gemm(batch=batch, **sizes)
    _same(TRITON_GEMM, problem, place, rows)


@given(
    n=st.sampled_from([1, 8, 32]),
    channels=st.tuples(st.integers(1, 600), st.integers(1, 600)),
    side=st.integers(7, 60),
    window=st.sampled_from([1, 3, 5]),
    stride=st.integers(1, 2),
    place=PLACES,
    rows=st.lists(st.fixed_dictionaries(TILES), min_size=1, max_size=6),
)
@example(
    n=32,
    channels=(256, 256),
    side=28,
    window=3,
    stride=1,
    place=("h200", "fp16"),
    rows=[
        {"block_m": 64, "block_n": 128, "block_k": k, "stages": 3, "warps": warps}
        for k in (32, 64)
        for warps in (4, 8)
    ],
)
# Two blocks to an SM, and a fifth of them left over for a last wave.
@example(
    n=8,
    channels=(288, 608),
    side=32,
    window=3,
    stride=1,
    place=("h200", "fp16"),
    rows=[
        {"block_m": 128, "block_n": 128, "block_k": 32, "stages": 4, "warps": warps}
        for warps in (4, 8)
    ],
)
def test_convolutions_take_what_the_model_says(
    n: int,
    channels: tuple[int, int],
    side: int,
    window: int,
    stride: int,
    place: tuple[str, str],
    rows: list[dict[str, int]],
) -> None:
    c, k = channels
    size = {"h": side, "w": side, "r": window, "s": window, "padding": window // 2}
    _same(TRITON_CONV, conv2d(n=n, c=c, k=k, stride=stride, **size), place, rows)
