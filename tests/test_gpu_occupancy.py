"""Resident blocks: figures that reports and counters state, and the limits one by one."""

from __future__ import annotations

import csv
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopsched import InputError, load_arch
from loopsched.base.resources import resource_dir
from loopsched.gpu.occupancy import occupancy

# CUDA C++ Programming Guide, technical specifications, compute capability 7.0 and 9.0;
# the rest of a machine does not matter here.
COMMON = {"max_threads": 2048, "max_blocks": 32, "registers": 65536, "register_unit": 256}
VOLTA = replace(
    load_arch("v100").kernel_limits,
    **COMMON,
    shared_bytes=96 * 1024,
    max_block_shared_bytes=96 * 1024,
    shared_unit_bytes=256,
    system_shared_bytes=0,
)
HOPPER = replace(
    load_arch("h200").kernel_limits,
    **COMMON,
    shared_bytes=228 * 1024,
    max_block_shared_bytes=227 * 1024,
    shared_unit_bytes=128,
    system_shared_bytes=1024,
)


@pytest.mark.parametrize(
    ("threads", "registers", "blocks", "share"),
    [
        (24 * 24, 31, 3, 0.844),  # report 002, optimization 4: 84.4 %, 3 blocks
        (16 * 16, 32, 8, 1.0),  # optimization 5: 8192 registers a block, 8 blocks, 100 %
        (16 * 16, 40, 6, 0.75),  # optimization 7: 75 %
        (16 * 16, 33, 6, 0.75),  # a warp's 1,056 registers take the room of 1,280
        (32 * 32, 32, 2, 1.0),
        (32, 255, 8, 0.125),
    ],
)
def test_occupancies_that_are_known(
    threads: int, registers: int, blocks: int, share: float
) -> None:
    found = occupancy(VOLTA, threads, registers)
    assert found.blocks == blocks
    assert found.share == pytest.approx(share, abs=5e-4)


def test_every_occupancy_that_was_measured() -> None:
    with (resource_dir("counters") / "h200_kernels.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 23
    for row in rows:
        tile = re.match(r"gemm_tile(\d+)", row["case"])
        shared = 2 * 4 * int(tile[1]) ** 2 if tile else 0
        threads, registers = int(float(row["block_threads"])), int(float(row["registers"]))
        found = occupancy(HOPPER, threads, registers, shared)
        assert round(100 * found.share, 2) == float(row["theoretical_occupancy_pct"])


@pytest.mark.parametrize(
    ("threads", "registers", "shared", "limited_by", "blocks"),
    [
        (1024, 32, 0, ("warps", "registers"), 2),
        (16, 8, 0, ("blocks",), 32),
        (256, 64, 0, ("registers",), 4),
        (128, 32, 40 * 1024, ("shared memory",), 2),
        (128, 32, 32 * 1024, ("shared memory",), 3),
        (128, 32, 32 * 1024 + 1, ("shared memory",), 2),
    ],
)
def test_the_limiting_resource_is_named(
    threads: int, registers: int, shared: int, limited_by: tuple[str, ...], blocks: int
) -> None:
    found = occupancy(VOLTA, threads, registers, shared)
    assert found.limited_by == limited_by
    assert found.blocks == blocks == dict(found.limits)[limited_by[0]]


def test_the_system_takes_shared_memory_of_every_block() -> None:
    assert occupancy(HOPPER, 32, 32, 227 * 1024).blocks == 1
    assert dict(occupancy(HOPPER, 32, 32, 0).limits)["shared memory"] == 228


@given(
    st.integers(1, 1024), st.integers(1, 255), st.integers(0, 96 * 1024), st.sampled_from([0, 1, 2])
)
def test_asking_for_more_never_gives_more_blocks(
    threads: int, registers: int, shared: int, which: int
) -> None:
    asked = [threads, registers, shared]
    more = list(asked)
    more[which] = min(more[which] + 7, (1024, 255, 96 * 1024)[which])

    def blocks(wanted: list[int]) -> int:
        try:
            return occupancy(VOLTA, *wanted).blocks
        except InputError:
            return 0

    assert blocks(more) <= blocks(asked)
    taken = occupancy(VOLTA, 32, registers, shared)
    assert taken.blocks * 32 * registers <= VOLTA.registers
    assert taken.blocks * shared <= VOLTA.shared_bytes


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ((0, 32, 0), "threads is 0"),
        ((2048, 300, 0), "(?s)2,048 threads per block; at most 1,024.*300 registers per thread"),
        ((1024, 65, 0), "registers: an SM cannot hold"),
        ((32, 32, 100_000), "100,000 B of shared memory per block; at most 96 KiB is allowed"),
    ],
)
def test_what_does_not_fit_is_said(asked: tuple[int, int, int], said: str) -> None:
    with pytest.raises(InputError, match=said):
        occupancy(VOLTA, *asked)
