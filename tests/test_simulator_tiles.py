"""Tile by tile: equal to element by element where tiles are points, or points are tiles."""

from __future__ import annotations

import time

import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import capacities, machines, problems, schedules

from loopsched.base.errors import InputError
from loopsched.machines.arch_file import load_arch
from loopsched.nests.nest import Loop, Schedule
from loopsched.nests.notation import parse_schedule
from loopsched.problems.builders import gemm
from loopsched.problems.problem import Problem
from loopsched.simulator import simulate
from loopsched.simulator.tiles import tile_position


def with_points(problem: Problem, schedule: Schedule) -> Schedule:
    """The schedule with a tile of one point."""
    return Schedule((*schedule.loops, *(Loop(dim, 1) for dim in problem.dims)))


@given(st.data())
def test_tiles_of_one_point_are_elements(data: st.DataObject) -> None:
    problem = data.draw(problems())
    schedule = data.draw(schedules(problem, units=("SM",)))
    capacity, n = data.draw(capacities(problem)), data.draw(st.integers(1, 5))
    nest = with_points(problem, schedule)
    options = {"capacity_bytes": capacity, "instances": n}
    tiles = simulate(problem, nest, granularity="tile", **options)
    assert tiles.tensors == simulate(problem, schedule, **options).tensors


@given(st.data())
def test_levels_of_a_machine(data: st.DataObject) -> None:
    problem = data.draw(problems())
    arch = data.draw(machines(problem))
    schedule = data.draw(schedules(problem, units=("SM",), spatial_dims=problem.parallel_dims))
    tiles = simulate(problem, with_points(problem, schedule), arch=arch, granularity="tile")
    points = simulate(problem, schedule, arch=arch, sees="all")
    for one, other in zip(tiles.levels, points.levels, strict=True):
        for name in one.tensors:
            mine, theirs = one.tensors[name], other.tensors[name]
            assert (mine.read_bytes, mine.write_bytes) == (theirs.read_bytes, theirs.write_bytes)


@given(st.data())
def test_tiles_of_a_gemm_are_elements_of_a_coarser_one(data: st.DataObject) -> None:
    tile = {dim: data.draw(st.integers(1, 3)) for dim in "MNK"}
    many = {dim: data.draw(st.integers(1, 5)) for dim in "MNK"}
    order = data.draw(st.permutations("MNK"))
    m, n, k = (many[dim] * tile[dim] for dim in "MNK")
    problem = gemm(m=m, n=n, k=k, element_bytes=1)
    coarse = gemm(
        m=many["M"],
        n=many["N"],
        k=many["K"],
        element_bytes={
            "A": tile["M"] * tile["K"],
            "B": tile["K"] * tile["N"],
            "C": tile["M"] * tile["N"],
        },
    )
    outer = " ".join(f"{dim}:{many[dim] * tile[dim]}" for dim in order)
    inner = " ".join(f"{dim}:{tile[dim]}" for dim in "MNK")
    capacity = data.draw(capacities(problem))
    tiles = simulate(
        problem,
        parse_schedule(f"{outer} {inner}", problem),
        capacity_bytes=capacity,
        granularity="tile",
    )
    nest = parse_schedule(" ".join(f"{dim}:{many[dim]}" for dim in order), coarse)
    literal = oracle.simulate(coarse, nest, capacity)
    assert {name: each.read_bytes for name, each in tiles.tensors.items()} == literal.reads
    assert {name: each.write_bytes for name, each in tiles.tensors.items()} == literal.writes


def test_where_the_tile_begins() -> None:
    problem = gemm(m=64, n=64, k=64)

    def tile(text: str) -> str:
        nest = parse_schedule(text, problem)
        return " ".join(map(str, nest.loops[tile_position(nest) :]))

    assert tile("M:64@SM N:64@SM K:64 M:8 N:8 K:4") == "M:8 N:8 K:4"
    assert tile("M:64 N:64 K:64") == "M:64 N:64 K:64"
    assert tile("M:64 N:64@SM K:64") == "K:64"
    assert tile("M:64 K:64 N:64 K:8 M:8@SM") == ""


def test_sixty_five_thousand_thread_blocks_take_seconds() -> None:
    problem = gemm(m=16384, n=16384, k=2048)
    nest = parse_schedule("M:16384@SM N:16384@SM K:2048 M:64 N:64 K:32", problem)
    before = time.process_time()
    found = simulate(problem, nest, arch=load_arch("h200"), granularity="tile")
    assert time.process_time() - before < 20
    # Every block reads its row and column of tiles; L2 sees 132 blocks of a row at once.
    l1, l2 = found.level("L1"), found.level("L2")
    assert l1.read_bytes == 65536 * 2 * 64 * 2048 * 4
    assert l2.tensors["B"].read_bytes == l1.tensors["B"].read_bytes
    assert 2 <= l2.tensors["A"].read_bytes / (16384 * 2048 * 4) < 3
    assert l2.tensors["C"].write_bytes == 16384**2 * 4


def test_nothing_is_left_unflushed() -> None:
    problem = gemm(m=4, n=4, k=4)
    nest = parse_schedule("M:4 N:4 K:4", problem)
    with pytest.raises(InputError, match="flush: does not apply to granularity='tile'"):
        simulate(problem, nest, capacity_bytes=64, granularity="tile", flush=False)
