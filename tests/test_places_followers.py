"""What renders, moves or exports schedules follows places of tiles, or says that it cannot."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopsched import (
    buffer_arch,
    compare,
    gemm,
    parse_schedule,
    render_loops,
    simulate,
    to_c,
    to_python,
    to_timeloop,
    to_triton,
    to_tvm,
    to_zigzag,
)  # fmt: skip
from loopsched.base.errors import ScheduleError
from loopsched.cli import run
from loopsched.gpu.kernel import Kernel
from loopsched.models.reasons import annotate
from loopsched.nests.nest import Place, Schedule
from loopsched.nests.ops import (
    bind_spatial,
    drop_unit_loops,
    interchange,
    reorder,
    split,
    tile,
    unbind,
)  # fmt: skip
from loopsched.problems.problem import Problem
from loopsched.published.yalsa import yalsa_volumes
from loopsched.simulator.tile_replay import reuse_profile
from loopsched.study.tile_map import tile_map
from tests.oracle import walk
from tests.strategies import problems, schedules

PROBLEM = gemm(m=16, n=16, k=16)
ARCH = buffer_arch(capacity_bytes=128, policy="explicit")
TEXT = "M:16 N:16 [buffer C] K:16 [buffer A] N:4 [buffer B] M:4"
NEST = parse_schedule(TEXT, PROBLEM)


def test_operations_keep_places_between_the_same_loops() -> None:
    assert str(split(NEST, 0, 8)) == "M:16 M:8 " + TEXT.partition(" ")[2]
    assert str(split(NEST, 2, 8)) == TEXT.replace("K:16", "K:16 K:8")
    assert str(tile(NEST, "K", 2)) == TEXT + " K:2"
    assert str(tile(NEST, "K", 8, position=3)) == TEXT.replace("[buffer A]", "[buffer A] K:8")
    assert str(interchange(NEST, 3, 4)) == TEXT.replace("N:4", "x").replace("M:4", "N:4").replace(
        "x", "M:4"
    )
    assert reorder(NEST, [0, 1, 2, 3, 4]) == NEST
    assert unbind(bind_spatial(NEST, 0, "SM")) == NEST
    unit = parse_schedule("M:16 M:1 N:16 [L1 A B] N:1 K:16 K:1 [L1 C]", PROBLEM)
    assert str(drop_unit_loops(unit)) == "M:16 N:16 [L1 A B] K:16 [L1 C]"


@given(st.data())
def test_a_shorter_form_places_the_same_tiles(data: st.DataObject) -> None:
    problem = data.draw(problems())
    schedule = data.draw(schedules(problem))
    places = tuple(
        Place(data.draw(st.integers(0, len(schedule.loops))), "L1", tensor.name)
        for tensor in problem.tensors
    )
    nest = Schedule(schedule.loops, places)
    other = drop_unit_loops(nest)
    for mine in nest.places:
        assert tiles(problem, nest, mine) == tiles(problem, other, at(other, mine))
    assert len(other.places) == len(nest.places)


def at(schedule: Schedule, place: Place) -> Place:
    return next(p for p in schedule.places if p.tensor == place.tensor)


def tiles(problem: Problem, schedule: Schedule, place: Place) -> list[list[tuple[int, ...]]]:
    found: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    for trip, point in walk(problem, schedule):
        found.setdefault(trip[: place.position], []).append(tuple(point.values()))
    return list(found.values())


def test_loops_say_where_tiles_are_held() -> None:
    lines = [line.split("#") for line in render_loops(PROBLEM, NEST).splitlines()]
    assert [(line[0].strip(), line[1].strip()) for line in lines if len(line) > 1] == [
        ("for k in range(16):", "buffer holds C"),
        ("for n in range(n1, n1 + 4):", "buffer holds A"),
        ("for m in range(m1, m1 + 4):", "buffer holds B"),
    ]
    assert annotate(PROBLEM, NEST, ARCH) == {
        2: "buffer holds 64 B of 128 B: C",
        3: "buffer holds 16 B of 128 B: A",
        4: "buffer holds 4 B of 128 B: B",
    }


def test_a_comparison_knows_each_tile() -> None:
    even = parse_schedule("M:16 N:16 K:16 M:2 N:2", PROBLEM)
    found = compare(PROBLEM, even, NEST, ARCH).reasons
    assert "loop N:16 fetches it 8 times, not 4" in found[0]


def test_the_command_line_shows_places(capsys: pytest.CaptureFixture[str]) -> None:
    problem = "gemm:m=16,n=16,k=16"
    assert run(["analyze", problem, TEXT, "--capacity", "128B", "--policy", "explicit"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "buffer holds 84 B of 128 B: C from K:16 inward, A from N:4 inward, B from M:4" in text
    other = ["show", problem, TEXT, "--arch", "diannao", "--element-bytes", "2"]
    assert run(other) == 3
    assert "'diannao' has no level 'buffer'; " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("what", "call"),
    [
        ("a simulation of caches", lambda: simulate(PROBLEM, NEST, capacity_bytes=128)),
        ("a mapping file", lambda: to_timeloop(PROBLEM, NEST, ARCH)),
        ("a mapping file", lambda: to_zigzag([(PROBLEM, NEST)], ARCH)),
        ("a Triton kernel", lambda: to_triton(PROBLEM, NEST)),
        ("TVM's schedule", lambda: to_tvm(PROBLEM, NEST)),
        ("Yalsa's model", lambda: yalsa_volumes(PROBLEM, NEST)),
        ("a kernel", lambda: Kernel.of(PROBLEM, bind_spatial(NEST, 0, "block_x"))),
        ("a map of tile sizes", lambda: tile_map(PROBLEM, ARCH, NEST)),
        (
            "a replay of tiles",
            lambda: reuse_profile(PROBLEM, NEST, 1, room_bytes=64, capacity_bytes=64),
        ),
    ],
)
def test_what_cannot_express_places_says_so(what: str, call: Callable[[], object]) -> None:
    message = f"{what} cannot express tiles that are placed one by one, such as '[buffer C]'"
    with pytest.raises(ScheduleError, match=re.escape(message)):
        call()


def test_code_computes_the_same_with_and_without_places() -> None:
    even = Schedule(NEST.loops)
    for write in (to_c, to_python):
        made = [write(PROBLEM, nest).text().replace(str(nest), "") for nest in (NEST, even)]
        assert made[0] == made[1]
