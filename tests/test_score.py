"""Scores: what each number is made of, and the order that bounds must keep."""

from __future__ import annotations

from dataclasses import replace

import oracle
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import convs, machines, problems, schedules

from loopsched.base.errors import ArchError, ScheduleError
from loopsched.machines.arch import Arch, buffer_arch
from loopsched.machines.arch_file import load_arch
from loopsched.machines.levels import Compute, Level
from loopsched.models.buffer import traffic
from loopsched.models.compute import compute_steps
from loopsched.models.machine import nested_units
from loopsched.models.many import evaluate_many
from loopsched.models.score import Evaluation, evaluate
from loopsched.models.traffic import Bracket
from loopsched.nests.nest import Schedule
from loopsched.nests.notation import parse_schedule
from loopsched.problems.builders import conv2d, gemm
from loopsched.problems.problem import Problem


def narrow(problem: Problem) -> Problem:
    """The problem with elements that every random machine computes with."""
    return problem.with_element_bytes(
        {tensor.name: min(4, tensor.element_bytes) for tensor in problem.tensors}
    )


@st.composite
def scores(draw: st.DrawFn) -> tuple[Problem, Schedule, Arch, Evaluation]:
    problem = narrow(draw(problems()))
    arch = draw(machines(problem, has_scratchpads=draw(st.booleans())))
    units = ("SM",) if draw(st.booleans()) else ()
    schedule = draw(schedules(problem, units=units))
    try:
        return problem, schedule, arch, evaluate(problem, schedule, arch)
    except ScheduleError:  # a scratchpad too small for one point
        assume(False)
        raise


# --- any machine -------------------------------------------------------------


@given(scores())
def test_the_slowest_resource_binds(
    scored: tuple[Problem, Schedule, Arch, Evaluation],
) -> None:
    problem, _, arch, score = scored
    compulsory = sum(oracle.compulsory(problem).values())
    times = {"compute": score.compute_time_s} | {
        level.outer: level.time_s for level in score.levels
    }
    assert score.time_s == max(times.values()) == times[score.bound_by]
    assert [level.outer for level in score.levels] == [level.name for level in arch.levels[:-1]]
    for level, description in zip(score.levels, arch.caches, strict=True):
        assert level.name == description.name
        assert level.time_s == level.promised_bytes / description.bandwidth_bytes_per_s
        peak = description.peak_bandwidth_bytes_per_s or description.bandwidth_bytes_per_s
        assert level.time_bound_s == compulsory / peak


@given(scores())
def test_bounds_keep_their_order(scored: tuple[Problem, Schedule, Arch, Evaluation]) -> None:
    problem, _, _, score = scored
    assert 0 < score.problem_bound_s <= score.time_bound_s <= score.time_s
    compulsory = sum(oracle.compulsory(problem).values())
    for level in score.levels:
        assert compulsory <= level.bytes.low <= level.bytes.point <= level.bytes.high
        assert level.bytes.high <= level.promised_bytes
        assert level.time_bound_s <= score.time_bound_s
        assert 0 < level.utilisation <= 1
        assert level.working_set_bytes >= 0
    assert 0 < score.compute_utilisation <= 1


@given(scores())
def test_derived_numbers(scored: tuple[Problem, Schedule, Arch, Evaluation]) -> None:
    problem, schedule, arch, score = scored
    steps = compute_steps(problem, schedule, nested_units(arch)).promised
    assert score.compute_steps == steps
    assert score.compute_utilisation == pytest.approx(problem.macs / (steps * arch.compute.units))
    memory = score.levels[0]
    assert score.dram_read_bytes == memory.promised_read_bytes
    assert score.dram_write_bytes == memory.promised_write_bytes
    assert score.dram_bytes == score.dram_read_bytes + score.dram_write_bytes
    assert score.dram_bytes == sum(part.bytes for part in memory.promised.values())
    bandwidth = score.required_dram_bandwidth_bytes_per_s
    assert bandwidth == pytest.approx(score.dram_bytes / score.compute_time_s)
    for level in score.levels:
        assert level.operational_intensity == pytest.approx(2 * problem.macs / level.promised_bytes)
        assert score.level(level.name) is level
    energy = problem.macs * arch.compute.energy_pj_per_mac
    for outer, inner, level in zip(arch.levels, arch.caches, score.levels, strict=False):
        energy += level.promised_bytes * outer.energy_pj_per_byte
        energy += level.promised_bytes * inner.energy_pj_per_byte
    assert score.energy_pj == pytest.approx(energy)


@given(st.data())
def test_one_buffer_is_the_traffic_function(data: st.DataObject) -> None:
    problem = narrow(data.draw(problems()))
    schedule = data.draw(schedules(problem))
    capacity = data.draw(st.integers(24, 2000))
    for policy in ("lru", "explicit"):
        arch = buffer_arch(capacity_bytes=capacity, policy=policy)  # type: ignore[arg-type]
        try:
            score = evaluate(problem, schedule, arch)
        except ScheduleError:
            assert policy == "explicit"
            assert oracle.explicit(problem, schedule, capacity) is None
            continue
        alone = traffic(problem, schedule, capacity_bytes=capacity, policy=policy)  # type: ignore[arg-type]
        assert score.levels[0].tensors == alone.tensors
        assert score.levels[0].fit_position == alone.fit_position
        assert score.levels[0].working_set_bytes == alone.working_set_bytes


# --- by hand -----------------------------------------------------------------


def test_a_product_on_a_titan_v() -> None:
    """64 blocks of 128 x 128 on 80 SMs: one wave; every L1 streams its panels."""
    problem = gemm(m=1024, n=1024, k=1024)
    nest = parse_schedule("M:1024@SM N:1024@SM K:1024 M:128 N:128 K:8", problem)
    arch = load_arch("titan_v")
    score = evaluate(problem, nest, arch)
    assert score.compute_steps == 128 * 128 * 1024
    assert score.compute_time_s == pytest.approx(128 * 128 * 1024 / (64 * 1.2e9))
    assert score.compute_utilisation == pytest.approx(64 / 80)
    l2, l1 = score.levels
    assert (l2.name, l2.outer, l1.name, l1.outer) == ("L2", "DRAM", "L1", "L2")
    # 64 blocks, each with a panel of A and one of B; C once, as sums are in registers.
    assert l1.read_bytes == Bracket.exact(64 * 2 * 128 * 1024 * 4)
    assert l1.tensors["C"].bytes == Bracket.exact(1024 * 1024 * 4)
    assert score.dram_bytes == 3 * 1024 * 1024 * 4  # one wave goes through all of K once
    assert l1.time_s == pytest.approx(l1.promised_bytes / (1536 * 1.2e9))
    assert score.problem_bound_s == pytest.approx(2**30 / (80 * 64 * 1.455e9))
    assert score.bound_by == "compute"
    assert score.energy_pj is None


def two_levels(**inner: object) -> Arch:
    """A cache for inputs and weights under one that holds all."""
    level = {"bandwidth_bytes_per_s": 4e9} | inner
    return Arch(
        "two",
        (
            Level("DRAM", "memory", None),
            Level("L2", "cache", 4096, bandwidth_bytes_per_s=1e9),
            Level("L1", "cache", 256, **level),  # type: ignore[arg-type]
        ),
        Compute("core", 1, 1e9, 1e9, (("fp32", 1),)),
    )


NEST = "M:8 N:8 K:8"


def test_tensors_that_pass_a_level_cost_every_access() -> None:
    problem = gemm(m=8, n=8, k=8)
    nest = parse_schedule(NEST, problem)
    score = evaluate(problem, nest, two_levels(holds=("input", "weight")))
    l2, l1 = score.levels
    touches = 4 * 8**3
    assert l1.tensors["C"].write_bytes == Bracket.exact(touches)
    assert l1.tensors["C"].read_bytes == Bracket.exact(touches - 4 * 64)
    assert l2.tensors["C"].bytes == Bracket.exact(4 * 64)
    # Alone with A and B, 256 bytes hold a row of A and a column of B.
    assert l1.tensors["A"].bytes.point == 4 * 64
    assert l1.tensors["B"].bytes.point == 4 * 8 * 64


def test_what_passes_several_levels_arrives_at_the_memory() -> None:
    problem = gemm(m=8, n=8, k=8)
    nest = parse_schedule(NEST, problem)
    arch = two_levels(holds=("weight",))
    outer = replace(arch.levels[1], holds=("weight", "output"))
    score = evaluate(problem, nest, replace(arch, levels=(arch.levels[0], outer, arch.levels[2])))
    l2, l1 = score.levels
    assert l2.tensors["A"] == l1.tensors["A"]
    assert l2.tensors["A"].read_bytes == Bracket.exact(4 * 8**3)
    assert l1.tensors["C"].write_bytes == Bracket.exact(4 * 8**3)
    assert l2.tensors["C"].bytes == Bracket.exact(4 * 64)


def test_an_inner_level_filters_what_passes_the_outer() -> None:
    problem = gemm(m=8, n=8, k=8)
    nest = parse_schedule(NEST, problem)
    arch = two_levels(holds=("input", "weight"))
    outer = replace(arch.levels[1], holds=("weight", "output"))
    score = evaluate(problem, nest, replace(arch, levels=(arch.levels[0], outer, arch.levels[2])))
    l2, l1 = score.levels
    assert l2.tensors["A"] == l1.tensors["A"]
    assert l2.tensors["A"].read_bytes.point == 4 * 64


@pytest.mark.parametrize(
    ("policy", "accumulate", "written"),
    [
        ("back", "level", 8),
        ("through", "level", 8 * 8),  # every partial sum goes on
        ("through", "registers", 8),  # one write a residency
        ("back", "registers", 8),
    ],
)
def test_write_policies(policy: str, accumulate: str, written: int) -> None:
    problem = gemm(m=8, n=1, k=8)
    nest = parse_schedule("M:8 K:8", problem)
    score = evaluate(problem, nest, two_levels(write_policy=policy, accumulate=accumulate))
    l2, l1 = score.levels
    assert l1.tensors["C"].write_bytes == Bracket.exact(4 * written)
    assert l1.tensors["C"].read_bytes == Bracket.exact(0)
    assert l2.tensors["C"].write_bytes == Bracket.exact(4 * 8)
    assert l1.tensors["A"].read_bytes == Bracket.exact(4 * 64)


def test_partial_sums_return_where_the_tile_leaves() -> None:
    """K outermost: C comes and goes for each of 4 slices, whatever the write policy."""
    problem = gemm(m=8, n=8, k=8)
    nest = parse_schedule("K:8 M:8 N:8 K:2 M:4 N:4", problem)
    score = evaluate(problem, nest, two_levels(write_policy="through", accumulate="registers"))
    c = score.levels[1].tensors["C"]
    assert c.write_bytes.high == 4 * 4 * 64
    assert c.read_bytes.high == 3 * 4 * 64
    assert score.levels[0].tensors["C"].bytes == Bracket.exact(4 * 64)


@given(convs(), st.data())
def test_diannao_places_each_tensor_in_its_buffer(problem: Problem, data: st.DataObject) -> None:
    small = {"weight": 24, "input": 16, "output": 12}
    arch = load_arch("diannao")
    buffers = replace(arch.caches[0], tensor_capacity_bytes=tuple(small.items()))
    arch = replace(arch, levels=(arch.levels[0], buffers))
    problem = problem.with_element_bytes(2)
    schedule = data.draw(schedules(problem))
    # The weight, if it is read; of a weight's gradient, the second operand.
    read = [tensor.name for tensor in problem.tensors if tensor.name != problem.output]
    second = "weight" if "weight" in read else "output"
    rooms = {name: small["weight" if name == second else "input"] for name in read}
    rooms[problem.output] = small["output"]
    literal = oracle.explicit(problem, schedule, rooms)
    assert literal is not None
    score = evaluate(problem, schedule, arch)
    for name, part in score.levels[0].tensors.items():
        assert part.read_bytes == Bracket.exact(literal.reads[name])
        assert part.write_bytes == Bracket.exact(literal.writes[name])
    assert score.energy_pj == pytest.approx(
        1.5 * problem.macs + (162.5 + 1.25) * score.levels[0].promised_bytes
    )


def test_yalsas_product_on_diannao() -> None:
    """Tiles of 32 x 32 x 32 in 2-byte elements fill the two small buffers exactly."""
    problem = gemm(m=64, n=256, k=256, element_bytes=2)
    nest = parse_schedule("M:64 K:256 N:256 M:32 K:32 N:32", problem)
    level = evaluate(problem, nest, load_arch("diannao")).levels[0]
    assert level.fit_position == 3
    assert level.working_set_bytes == 3 * 32 * 32 * 2
    assert level.tensors["A"].read_bytes == Bracket.exact(64 * 256 * 2)
    assert level.tensors["B"].read_bytes == Bracket.exact(2 * 256 * 256 * 2)
    assert level.tensors["C"].write_bytes == Bracket.exact(8 * 64 * 256 * 2)
    assert level.tensors["C"].read_bytes == Bracket.exact(7 * 64 * 256 * 2)


def test_double_buffers_halve_the_scratchpad() -> None:
    problem = gemm(m=8, n=8, k=8)
    nest = parse_schedule("M:8 N:8 K:8 M:4 N:4 K:8", problem)
    need = 4 * (4 * 8 + 8 * 4 + 4 * 4)
    for capacity, fits in ((need, False), (2 * need - 1, False), (2 * need, True)):
        arch = buffer_arch(capacity_bytes=capacity, policy="explicit")
        buffer = replace(arch.caches[0], double_buffered=True)
        twice = replace(arch, levels=(arch.memory, buffer))
        assert (evaluate(problem, nest, twice).levels[0].fit_position <= 2) == fits
        assert evaluate(problem, nest, arch).levels[0].fit_position <= 2


def test_rates_follow_the_data_type() -> None:
    arch = load_arch("h200")
    nest = "M:2048@SM N:2048@SM K:2048 M:128 N:128 K:32"
    wide = gemm(m=2048, n=2048, k=2048)
    half = wide.with_element_bytes(2)
    schedule = parse_schedule(nest, wide)
    fp32 = evaluate(wide, schedule, arch)
    tf32 = evaluate(wide, schedule, arch, data_type="tf32")
    assert fp32.compute_time_s == pytest.approx(8 * tf32.compute_time_s)
    fp16 = evaluate(half, schedule, arch)
    assert fp16.compute_time_s == evaluate(half, schedule, arch, data_type="bf16").compute_time_s
    assert fp32.compute_time_s == pytest.approx(16 * fp16.compute_time_s)
    # 256 blocks on 132 SMs are two waves.
    assert fp32.compute_utilisation == pytest.approx(256 / (2 * 132))
    refused = "^'h200': no rate for data type 'fp23'; did you mean 'fp32'"
    with pytest.raises(ArchError, match=refused):
        evaluate(wide, schedule, arch, data_type="fp23")
    with pytest.raises(ArchError, match=refused):
        evaluate_many(wide, [schedule], arch, data_type="fp23")


def test_lanes_run_loops_of_a_unit() -> None:
    """48 columns on 64 lanes: a quarter of the lanes idles."""
    problem = gemm(m=80, n=48, k=16)
    arch = load_arch("titan_v")
    score = evaluate(problem, parse_schedule("M:80@SM K:16 N:48@lane", problem), arch)
    assert score.compute_steps == 16
    assert score.compute_time_s == pytest.approx(16 / 1.2e9)
    assert score.compute_utilisation == pytest.approx(48 / 64)
    two_rounds = evaluate(problem, parse_schedule("M:80@SM K:16 N:48", problem), arch)
    assert two_rounds.compute_time_s == pytest.approx(16 * 48 / (64 * 1.2e9))


def test_an_unlimited_conv_moves_everything_once() -> None:
    problem = conv2d(n=2, c=3, k=4, h=9, w=9, r=3, s=3, padding=1, stride=2)
    nest = parse_schedule("N:2 K:4 C:3 P:5 Q:5 R:3 S:3", problem)
    score = evaluate(problem, nest, buffer_arch(capacity_bytes=2**20))
    assert score.dram_bytes == 4 * (2 * 3 * 81 + 4 * 3 * 9 + 2 * 4 * 25)
    assert score.dram_bytes == sum(oracle.compulsory(problem).values())


@pytest.mark.parametrize(
    ("nest", "message"),
    [
        ("M:64@SN N:64 K:64", "unknown unit 'SN'; did you mean 'SM'"),
        ("M:64@SM K:64 N:64@SM", "unit 'SM' are not adjacent"),
        ("M:64@lane N:64@SM K:64", "loops of 'SM' belong outside those of 'lane'"),
        ("M:64@L1 N:64 K:64", "unknown unit 'L1'"),
    ],
)
def test_spatial_loops_must_suit_the_machine(nest: str, message: str) -> None:
    problem = gemm(m=64, n=64, k=64)
    with pytest.raises(ScheduleError, match=message):
        evaluate(problem, parse_schedule(nest, problem), load_arch("titan_v"))


def test_other_refusals() -> None:
    problem = gemm(m=64, n=64, k=64)
    nest = parse_schedule("M:64 N:64 K:64", problem)
    with pytest.raises(ScheduleError, match="must cover the size, 32"):
        evaluate(gemm(m=32, n=64, k=64), nest, load_arch("titan_v"))
    with pytest.raises(ScheduleError, match="one point"):
        evaluate(problem, nest, buffer_arch(capacity_bytes=11, policy="explicit"))
    with pytest.raises(ArchError, match="no rate for elements of 4 bytes"):
        evaluate(problem, nest, load_arch("diannao"))


def test_rounding_keeps_the_order_of_bounds() -> None:
    """Five units share five steps: both bounds are one step of a clock that is no whole number."""
    problem = gemm(m=5, n=1, k=1)
    arch = Arch(
        "five",
        (Level("DRAM", "memory", None), Level("L1", "cache", 64, bandwidth_bytes_per_s=1e12)),
        Compute("SM", 5, 1e9 / 3, 1e9 / 3, (("fp32", 1),)),
    )
    score = evaluate(problem, parse_schedule("M:5@SM", problem), arch)
    assert score.problem_bound_s <= score.time_bound_s <= score.time_s
    assert score.compute_utilisation == 1
