"""Tiles placed one by one: figures against a literal walk, what fits, what is refused."""

from __future__ import annotations

import re
from dataclasses import replace

import oracle
import places_oracle
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from loopsched import buffer_arch, conv2d, evaluate, gemm, load_arch, parse_schedule, traffic
from loopsched.base.errors import ScheduleError
from loopsched.machines.arch import Arch
from loopsched.machines.levels import Compute, Level
from loopsched.models.machine import own_units, room_of
from loopsched.models.places import check_places
from loopsched.models.score import level_traffic
from loopsched.models.traffic import Bracket, Moved
from loopsched.nests.nest import Place, Schedule
from loopsched.problems.problem import Problem
from tests.strategies import machines, problems, schedules


def with_places(schedule: Schedule, level: str, positions: dict[str, int]) -> Schedule:
    places = (Place(at, level, name) for name, at in positions.items())
    return Schedule(schedule.loops, (*schedule.places, *places))


@st.composite
def cases(draw: st.DrawFn) -> tuple[Problem, Schedule, dict[str, int]]:
    problem = draw(problems())
    schedule = draw(schedules(problem))
    last = len(schedule.loops)
    positions = {tensor.name: draw(st.integers(0, last)) for tensor in problem.tensors}
    return problem, schedule, positions


def check_figures(found: Moved, literal: oracle.Moved) -> None:
    for name, part in found.tensors.items():  # type: ignore[attr-defined]
        if name in literal.reads:
            assert part.read_bytes == Bracket.exact(literal.reads[name]), name
            assert part.write_bytes == Bracket.exact(literal.writes[name]), name
            assert found.promised[name].bytes == literal.of(name), name  # type: ignore[attr-defined]


@given(cases(), st.booleans(), st.booleans())
def test_each_tile_is_held_from_its_place(
    case: tuple[Problem, Schedule, dict[str, int]], halo_reuse: bool, doubled: bool
) -> None:
    problem, schedule, positions = case
    options = {"halo_reuse": halo_reuse}
    literal = places_oracle.placed(problem, schedule, positions, **options)
    tile = places_oracle.placed(problem, schedule, positions, keeps="tile", **options)
    assume(tile == literal)  # no gaps between the tiles that keep a halo
    sizes = places_oracle.tile_bytes(problem, schedule, positions)
    nest = with_places(schedule, "L1", positions)
    need = sum(sizes.values()) * (2 if doubled else 1)
    found = traffic(
        problem, nest, capacity_bytes=need, policy="explicit", double_buffered=doubled, **options
    )
    check_figures(found, literal)
    assert found.working_set_bytes == sum(sizes.values())
    assert found.fit_position <= max(positions.values())
    with pytest.raises(ScheduleError, match=f"take {need} B .*capacity is {need - 1} B"):
        traffic(
            problem,
            nest,
            capacity_bytes=need - 1,
            policy="explicit",
            double_buffered=doubled,
            **options,
        )


@given(st.data())
def test_all_tiles_at_one_place_are_the_outermost_region_that_fits(data: st.DataObject) -> None:
    """On any machine: several levels, private ones, tensors that pass, waves."""
    problem = data.draw(problems())
    arch = data.draw(machines(problem, has_scratchpads=True))
    schedule = data.draw(schedules(problem, units=("SM",)))
    try:
        even = level_traffic(problem, schedule, arch)
    except ScheduleError:
        assume(False)
    spatial = [at for at, loop in enumerate(schedule.loops) if loop.is_spatial]
    nest = schedule
    for level, moved in zip(arch.caches, even, strict=True):
        held = [tensor.name for tensor in room_of(problem, level).held(problem)]
        at = moved.own.fit_position
        if spatial and own_units(arch, level):
            at = max(at, spatial[-1] + 1)
        is_within = bool(spatial) and spatial[0] < at <= spatial[-1]  # a row of waves
        if level.kind == "scratchpad" and not is_within and data.draw(st.booleans()):
            nest = with_places(nest, level.name, dict.fromkeys(held, at))
    if any("further out" in fault for fault in faults_of(problem, nest, arch)):
        return  # an inner level that holds more than an outer one
    found = level_traffic(problem, nest, arch)
    for mine, other in zip(found, even, strict=True):
        assert mine.promised == other.promised
        assert mine.own.working_set_bytes == other.own.working_set_bytes


def faults_of(problem: Problem, schedule: Schedule, arch: Arch) -> tuple[str, ...]:
    try:
        check_places(problem, schedule, arch)
    except ScheduleError as error:
        return error.problems
    return ()


@given(st.data())
def test_tiles_of_an_instance_are_of_its_own_work(data: st.DataObject) -> None:
    problem = data.draw(problems())
    schedule = data.draw(schedules(problem, units=("SM",)))
    held = data.draw(st.sampled_from([None, ("input", "weight"), ("output",)]))
    arch = private_pads(data.draw(st.integers(1, 4)), 1 << 20, held)
    level = arch.caches[0]
    inside = 1 + max(
        (at for at, loop in enumerate(schedule.loops) if loop.unit in own_units(arch, level)),
        default=-1,
    )
    positions = {
        tensor.name: data.draw(st.integers(inside, len(schedule.loops)))
        for tensor in room_of(problem, level).held(problem)
    }
    literal = places_oracle.placed(problem, schedule, positions, n_handed=inside)
    tile = places_oracle.placed(problem, schedule, positions, n_handed=inside, keeps="tile")
    assume(tile == literal)
    (found,) = level_traffic(problem, with_places(schedule, "L1", positions), arch)
    check_figures(found, literal)
    if inside and positions:
        name = data.draw(st.sampled_from(sorted(positions)))
        positions[name] = data.draw(st.integers(0, inside - 1))
        with pytest.raises(ScheduleError, match="holds tiles of its own work; place it inside"):
            level_traffic(problem, with_places(schedule, "L1", positions), arch)


def private_pads(units: int, capacity: int, holds: tuple[str, ...] | None = None) -> Arch:
    levels = (
        Level("DRAM", "memory", None),
        Level(
            "L1", "scratchpad", capacity, instances=units, unit="SM", bandwidth_bytes_per_s=1e9,
            holds=holds,
        ),
    )  # fmt: skip
    rates = (("int8", 1),)
    return Arch("pads", levels, Compute("SM", units, 1e9, 1e9, rates))


def test_a_product_by_hand() -> None:
    """What AccelForge's mapper finds for 16 elements: C stays whole, a column of A, one of B."""
    problem = gemm(m=512, n=512, k=512)
    nest = parse_schedule("M:512 N:512 [buffer C] K:512 [buffer A] N:4 [buffer B] M:3", problem)
    arch = buffer_arch(capacity_bytes=64, policy="explicit")
    level = evaluate(problem, nest, arch).levels[0]
    moved = {name: part.bytes for name, part in level.promised.items()}
    square = 512 * 512 * 4
    assert moved == {"A": 128 * square, "B": 171 * square, "C": square}
    assert level.working_set_bytes == 64


def test_a_wave_of_tiles() -> None:
    """Eight units share a pad: between lists and items, their tiles lie there side by side."""
    problem = gemm(m=8, n=8, k=4, element_bytes=1)
    pad = Level("L2", "scratchpad", 100, bandwidth_bytes_per_s=1e9)
    rates = (("int8", 1),)
    arch = Arch("shared", (Level("DRAM", "memory", None), pad), Compute("SM", 8, 1e9, 1e9, rates))
    wave = "M:8@SM N:8@SM [L2 C] K:4 [L2 A B] M:2 N:4"
    level = evaluate(problem, parse_schedule(wave, problem), arch).levels[0]
    assert level.working_set_bytes == 64 + 8 + 8
    assert {name: part.bytes for name, part in level.promised.items()} == {
        "A": 32, "B": 32, "C": 64,
    }  # fmt: skip
    with pytest.raises(ScheduleError, match="stands between loops of unit 'SM'"):
        evaluate(
            problem, parse_schedule(wave.replace(" N:8@SM [L2 C]", " [L2 C] N:8@SM"), problem), arch
        )


@pytest.mark.parametrize(
    ("places", "message"),
    [
        ("[bufer A B C]", "'pads' has no level 'bufer'; did you mean 'buffer'? (allowed: buffer)"),
        ("[L2 A B C]", "'L2' is a cache; tiles are placed in scratchpads only"),
        ("[DRAM A B C]", "'DRAM' is a memory; tiles"),
        ("[buffer A B C]", "tensor 'C' passes 'buffer'; leave its place out"),
        ("[buffer B]", "places for some tensors and none for A; add '[buffer A]'"),
    ],
)
def test_places_that_the_machine_does_not_have(places: str, message: str) -> None:
    buffer = replace(
        buffer_arch(capacity_bytes=64, policy="explicit").caches[0], holds=("input", "weight")
    )
    arch = load_arch("titan_v")
    arch = replace(arch, name="pads", levels=(*arch.levels[:2], buffer))
    problem = gemm(m=4, n=4, k=4)
    with pytest.raises(ScheduleError, match=re.escape(message)):
        evaluate(problem, parse_schedule(f"M:4 {places} N:4 K:4", problem), arch)


def test_a_machine_without_scratchpads() -> None:
    problem = gemm(m=4, n=4, k=4)
    nest = parse_schedule("M:4 [L1 A B C] N:4 K:4", problem)
    with pytest.raises(ScheduleError, match="'L1' is a cache"):
        evaluate(problem, nest, load_arch("titan_v"))
    with pytest.raises(ScheduleError, match="no level 'L1'; the machine has no scratchpads"):
        evaluate(problem, nest, buffer_arch(capacity_bytes=64))


def test_a_tile_comes_out_of_the_tile_around_it() -> None:
    problem = gemm(m=4, n=4, k=4)
    outer, inner = (
        Level(name, "scratchpad", 4096, bandwidth_bytes_per_s=1e9) for name in ("L2", "L1")
    )
    arch = buffer_arch(capacity_bytes=64)
    arch = replace(arch, levels=(arch.memory, outer, inner))
    nest = "M:4 [L1 A] N:4 [L2 A B C] K:4 [L1 B C]"
    with pytest.raises(ScheduleError, match=re.escape("[L1 A]: stands outside '[L2 A]'")):
        evaluate(problem, parse_schedule(nest, problem), arch)


def test_buffers_of_their_own_are_checked_apart() -> None:
    problem = gemm(m=8, n=8, k=8, element_bytes=1)
    arch = buffer_arch(capacity_bytes=16, policy="explicit")
    buffer = replace(arch.caches[0], tensor_capacity_bytes=(("output", 16), ("input", 4)))
    arch = replace(arch, levels=(arch.memory, buffer))
    nest = "M:8 N:8 [buffer C] K:8 [buffer A B] M:4 N:4"
    level = evaluate(problem, parse_schedule(nest, problem), arch).levels[0]
    assert {name: part.bytes for name, part in level.promised.items()} == {
        "A": 128, "B": 128, "C": 64,
    }  # fmt: skip
    with pytest.raises(ScheduleError, match="the tile of 'A' takes 8 B, its own capacity is 4 B"):
        evaluate(problem, parse_schedule(nest.replace("M:4", "K:2 M:4"), problem), arch)


def test_one_buffer_takes_places_of_one_level() -> None:
    problem = conv2d(c=2, k=2, h=5, w=1, r=3, s=1)
    text = "P:3 [a input] K:2 [a weight output] C:2 R:3"
    nest = parse_schedule(text, problem)
    assert traffic(problem, nest, capacity_bytes=99, policy="explicit").bytes.low > 0
    with pytest.raises(ScheduleError, match="a cache cannot express tiles that are placed one by"):
        traffic(problem, nest, capacity_bytes=99)
    two = parse_schedule(text.replace("[a input]", "[b input]"), problem)
    with pytest.raises(ScheduleError, match="tiles are placed in b a"):
        traffic(problem, two, capacity_bytes=99, policy="explicit")
    few = parse_schedule("P:3 [a input] K:2 C:2 R:3", problem)
    with pytest.raises(ScheduleError, match="none for weight output"):
        traffic(problem, few, capacity_bytes=99, policy="explicit")
