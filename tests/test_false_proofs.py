"""Schedules that beat what was once called proven, and figures that a simulation exceeded.

Each was found by hand or by `benchmarks/soak.py`; its class is fuzzed by `test_fuzz.py`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from fuzz_checks import bounds_alone, curved, promised, searched, walked

import loopsched
from loopsched import (
    Constraints,
    Problem,
    affine,
    conv2d,
    evaluate,
    gemm,
    parse_schedule,
    search,
    traffic,
    traffic_curve,
)
from loopsched.base.errors import EmptySpaceError
from loopsched.machines.arch import Arch
from loopsched.machines.levels import Compute, Level

RATES = (("fp32", 1), ("fp16", 1), ("int8", 1))


def level(name: str, kind: str, size: int, **options: Any) -> Level:
    return Level(name, kind, size, **{"bandwidth_bytes_per_s": 1.0, **options})  # type: ignore[arg-type]


def machine(*levels: Level, units: int = 1) -> Arch:
    memory = Level("M", "memory", None)
    return Arch("m", (memory, *levels), Compute("SM", units, 1e9, 1e9, RATES))


def with_lanes(arch: Arch, many: int) -> Arch:
    rates = tuple((name, many) for name, _ in RATES)
    compute = replace(arch.compute, macs_per_cycle_per_unit=rates, lane_unit="lane")
    return replace(arch, compute=compute)


def caches(*sizes: int, kind: str = "cache") -> Arch:
    return machine(*(level(f"L{len(sizes) - at}", kind, n) for at, n in enumerate(sizes)))


# Two or more shared levels: a later block cuts unevenly inside the first --------------

ROWS = conv2d(c=1, k=1, h=5, w=1, r=1, s=1, stride=(2, 1), padding=(2, 0, 0, 0), element_bytes=1)
WINDOWS = conv2d(
    c=1, k=1, h=9, w=1, r=2, s=1, stride=(2, 1), padding=(1, 2, 0, 0), dilation=(2, 1),
    element_bytes=1,
)  # fmt: skip
SUMS = affine({"P": 5, "R": 3, "K": 3, "C": 1}, {"x": "C 2*P+R-3<5", "w": "K C R", "y": "K P"})
CHANNELS = conv2d(n=1, c=1, k=20, h=7, w=1, r=3, s=1, padding=(1, 0), element_bytes=1)
MIXED = machine(level("L2", "scratchpad", 18), level("L1", "cache", 17))
PADS = caches(10, 5, kind="scratchpad")


@pytest.mark.parametrize(
    ("problem", "arch", "notation", "moved"),
    [
        (ROWS, caches(4, 3), "P:4 P:3 P:2", 10),
        (WINDOWS, caches(6, 5), "P:5 P:3 R:2 P:2", 17),
        (SUMS, MIXED, "K:3 P:5 P:3 K:2 R:3 P:2", 252),
        (CHANNELS, PADS, "P:7 P:4 K:20 P:3 R:3", 329),
    ],
    ids=["rows", "windows", "sums", "channels"],
)
def test_uneven_cuts_inside_the_first_level(
    problem: Problem, arch: Arch, notation: str, moved: int
) -> None:
    by_hand = evaluate(problem, parse_schedule(notation, problem), arch)
    assert by_hand.dram_bytes == moved
    _is_bounded(problem, arch, "dram_bytes", moved)


def test_a_second_loop_of_a_dimension_in_one_buffer() -> None:
    nest = parse_schedule("P:5 P:3 R:2 P:2", WINDOWS)
    assert evaluate(WINDOWS, nest, caches(6)).dram_bytes == 17
    _is_bounded(WINDOWS, caches(6), "dram_bytes", 17)


def test_a_curve_knows_uneven_cuts() -> None:
    nest = parse_schedule("P:5 P:3 R:2 P:2", WINDOWS)
    assert traffic(WINDOWS, nest, capacity_bytes=6).promised_bytes == 17
    curve = traffic_curve(WINDOWS, policy="lru")
    bound, found = curve.nest_bound.at(6), curve.at(6)
    assert bound is not None
    assert found is not None
    assert bound <= 17
    assert found <= 17 or not curve.is_proven_at(6)


def test_a_curve_knows_uneven_cuts_of_a_scratchpad() -> None:
    problem = conv2d(
        n=1, c=1, k=1, h=14, w=2, r=6, s=1, stride=(3, 1), padding=(2, 0, 0, 0), dilation=(3, 1),
        element_bytes={"input": 4, "weight": 4, "output": 1},
    )  # fmt: skip
    assert not curved(problem).faults
    curve = traffic_curve(problem)
    bound, found = curve.nest_bound.at(13), curve.at(13)
    assert bound is not None
    assert found is not None
    assert bound <= 82
    assert found <= 82 or not curve.is_proven_at(13)


def _is_bounded(
    problem: Problem, arch: Arch, objective: Any, worth: float, given: Constraints | None = None
) -> None:
    found = search(problem, arch, objective=objective, constraints=given).certificate
    assert found.lower_bound <= worth * (1 + 1e-9)
    assert not found.proven or found.value <= worth * (1 + 1e-9)


# Constraints --------------------------------------------------------------------------

HEIGHT = conv2d(
    c=1, k=1, h=8, w=1, r=4, s=1, padding=(2, 0, 1, 1),
    element_bytes={"input": 2, "weight": 2, "output": 4},
)  # fmt: skip
THREE = machine(
    level("L2", "cache", 32, bandwidth_bytes_per_s=1e6),
    level("L1", "cache", 31, instances=3, unit="SM"),
    units=3,
)
SLIDING = affine(
    {"P": 8, "R": 4, "K": 3, "C": 2}, {"x": "C P+2*R-2<12", "w": "K C R", "y": "K P"},
    element_bytes=2,
)  # fmt: skip
THROUGH = machine(level("L2", "cache", 51, write_policy="through"), level("L1", "scratchpad", 40))


@pytest.mark.parametrize(
    ("problem", "arch", "objective", "tiles", "notation", "worth"),
    [
        (HEIGHT, THREE, "time", "powers2", "Q:3@SM P:7 R:4", 124),
        (SLIDING, THROUGH, "dram_bytes", "divisors", "K:3 C:2 R:4 P:8", 288),
    ],
    ids=["private caches", "write-through"],
)
def test_constrained_bounds(
    problem: Problem, arch: Arch, objective: str, tiles: Any, notation: str, worth: float
) -> None:
    score = evaluate(problem, parse_schedule(notation, problem), arch)
    assert worth == (score.time_s if objective == "time" else score.dram_bytes)
    _is_bounded(problem, arch, objective, worth, Constraints(tiles=tiles))


def test_bounds_on_a_block_leave_all_bodies_inside() -> None:
    """K:2 cuts the 4 that L1 has to hold once more: M:5 K:2 is the body that fits."""
    problem = gemm(m=5, n=1, k=4, element_bytes={"A": 4, "B": 4, "C": 1})
    given = Constraints(tiles="divisors", extents=(("K", "L1", 4, 4),))
    nest = parse_schedule("K:4 M:5 K:2", problem)
    assert evaluate(problem, nest, caches(44)).dram_bytes == 111
    assert searched(problem, caches(44), ("time", "dram_bytes"), given).faults == ()


def test_items_cut_twice_share_less_than_any_cut_once() -> None:
    """Five rows of items that meet at 3, 6, 7 and 10, where both sides are padding.

    No list of one extent, nor two of them, has five pieces of three positions or less.
    """
    problem = affine(
        {"P": 11, "R": 3, "C": 2000}, {"x": "C P+R-9<1", "y": "P"}, element_bytes={"x": 4, "y": 1}
    )
    own = level("L1", "cache", 9000, instances=5, unit="SM")
    arch = machine(level("L2", "cache", 40000, bandwidth_bytes_per_s=1e6), own, units=5)
    arch = replace(arch, compute=replace(arch.compute, clock_hz=1.5, max_clock_hz=1.5))
    nest = parse_schedule("P:11@SM P:7@SM P:3 R:3 C:2000", problem)
    found = search(problem, arch).certificate  # too many points for its log to be tried
    assert found.lower_bound <= evaluate(problem, nest, arch).time_s == 12000


def test_nothing_shared_is_one_item() -> None:
    """P has to be cut outside the units; with no loop of theirs L1 holds on to what it has."""
    problem = conv2d(n=1, c=4, k=1, h=1, w=1, r=1, s=1, padding=(1, 0, 0, 0), element_bytes=1)
    arch = machine(
        level("L2", "cache", 11, bandwidth_bytes_per_s=2.0),
        level("L1", "cache", 10, instances=2, unit="SM"),
        units=2,
    )
    given = Constraints(tiles="divisors", extents=(("P", "SM", 1, 1),))
    assert evaluate(problem, parse_schedule("C:4 P:2", problem), arch).time_s == 10
    assert searched(problem, arch, ("time",), given).faults == ()


def test_units_may_share_what_a_long_prefix_leaves() -> None:
    """With both loops of P around L2, R is left to the units."""
    problem = affine(
        {"P": 4, "R": 2}, {"x": "R-1<1 3*P-2<8", "w": "3*P-2<6", "y": "3*R-1<2"}, element_bytes=4
    )
    arch = machine(
        level("L2", "cache", 25, bandwidth_bytes_per_s=1e6),
        level("L1", "scratchpad", 12, instances=2, unit="SM", bandwidth_bytes_per_s=2.0),
        units=2,
    )
    arch = replace(arch, compute=replace(arch.compute, clock_hz=0.2, max_clock_hz=0.2))
    given = Constraints(before=(("R", "P"),), prefix="P:4 P:3")
    assert evaluate(problem, parse_schedule("P:4 P:3 R:2@SM", problem), arch).time_s == 20
    assert searched(problem, arch, ("time",), given).faults == ()


def test_a_cache_too_small_for_all_units_may_serve_fewer() -> None:
    """Three units ask for 9 B at once, but M is shared by two: B passes L2 once."""
    arch = machine(
        level("L2", "cache", 8, bandwidth_bytes_per_s=2.0, holds=("C", "A")),
        level("L1", "cache", 7, bandwidth_bytes_per_s=3.0),
        units=3,
    )
    problem = gemm(m=2, n=2, k=1, element_bytes=1)
    assert evaluate(problem, parse_schedule("M:2@SM N:2", problem), arch).dram_bytes == 8
    assert searched(problem, arch, ("time", "dram_bytes")).faults == ()


def test_a_prefix_against_an_order_says_what_is_left_out() -> None:
    """With R:3 in one block and R:2 in the last, P has none left; R:2 beside R:3 is not tried."""
    problem = conv2d(n=1, c=1, k=1, h=5, w=1, r=3, s=1, stride=(2, 1), element_bytes=1)
    arch = machine(level("L1", "scratchpad", 9), units=2)
    given = Constraints(before=(("P", "R"),), prefix="R:3 R:2")
    left_out = "no schedule of at most one loop per dimension and block is left"
    with bounds_alone(), pytest.raises(EmptySpaceError, match=left_out):
        search(problem, arch, constraints=given)


def test_what_is_left_inside_all_blocks_obeys_orders() -> None:
    """P:2 stands in the last block, so R can be cut nowhere; 'P:2 R:3' was returned."""
    problem = affine(
        {"P": 2, "R": 3}, {"x": "2*R<3 2*P", "w": "P", "y": "3*P-2<2 2*R-2<1"}, element_bytes=1
    )
    given = Constraints(extents=(("P", "L1", 2, 2),), before=(("R", "P"),), prefix="P:2")
    assert searched(problem, caches(12), ("time",), given).faults == ()


def test_a_bound_on_a_block_is_none_on_every_loop() -> None:
    """The body K:2 lies inside K:4, which is what is left: 78 was claimed."""
    problem = gemm(m=3, n=1, k=4).with_element_bytes({"A": 4, "B": 2, "C": 2})
    given = Constraints(tiles="powers2", extents=(("K", "L1", 4, 4),), prefix="K:4")
    assert evaluate(problem, parse_schedule("K:4 M:3 K:2", problem), caches(24)).dram_bytes == 74
    _is_bounded(problem, caches(24), "dram_bytes", 74, given)


def test_a_prefix_of_all_dimensions_may_go_on() -> None:
    problem = gemm(m=2, n=2, k=3, element_bytes=2)
    given = Constraints(extents=(("K", "L1", 3, 3),), prefix="K:3 N:2 M:2")
    best = evaluate(problem, parse_schedule("K:3 N:2 M:2 K:2", problem), caches(10)).dram_bytes
    _is_bounded(problem, caches(10), "dram_bytes", best, given)


def test_a_prefix_may_lie_in_a_later_block() -> None:
    """Nothing has to be cut around L2: M:4 and K:3 are loops around L1, then."""
    given = Constraints(extents=(("K", "L2", 3, 2**62),), prefix="M:4 K:3")
    arch = machine(level("L2", "scratchpad", 58), level("L1", "cache", 33))
    assert searched(gemm(m=4, n=2, k=3), arch, ("dram_bytes",), given).faults == ()


def test_a_list_cut_in_two_is_the_same_list() -> None:
    """Both run the same items in the same order; the promise of one is 54, of the other 36."""
    problem = gemm(m=1, n=5, k=2).with_element_bytes({"A": 1, "B": 2, "C": 2})
    arch = machine(level("L1", "cache", 17), units=3)
    one, two = (
        evaluate(problem, parse_schedule(notation, problem), arch).dram_bytes
        for notation in ("N:5@SM K:2", "N:5@SM N:2@SM K:2")
    )
    assert one == two


def test_one_schedule_of_the_blocks_is_not_all_that_a_prefix_leaves() -> None:
    problem = conv2d(
        n=1, c=1, k=2, h=3, w=1, r=4, s=1, stride=(2, 1), padding=(1, 0, 0, 0),
        element_bytes={"input": 4, "weight": 4, "output": 1},
    )  # fmt: skip
    given = Constraints(spatial=("N", "K", "Q"), prefix="R:4 R:3")
    arch = machine(level("L1", "cache", 16, bandwidth_bytes_per_s=1e6), units=2)
    assert searched(problem, arch, ("time",), given, is_listed=True).faults == ()


# Promises -----------------------------------------------------------------------------


def _keeps(problem: Problem, notation: str, arch: Arch) -> None:
    assert [fault for fault in promised(problem, notation, arch).faults if _is_promise(fault)] == []


def _is_promise(fault: Any) -> bool:
    return fault.kind == "promise" or "sees=all" in fault.detail


def test_units_inside_units_promise_what_is_simulated() -> None:
    nested = machine(
        level("L2", "cache", 12),
        level("CL", "cache", 4, instances=2, unit="CLU"),
        level("L1", "cache", 4, instances=4, unit="SM"),
        units=4,
    )
    _keeps(gemm(m=4, n=2, k=1), "N:2@CLU M:4@SM", nested)


def test_a_cache_behind_a_cache_keeps_its_promise() -> None:
    problem = conv2d(
        c=2, k=1, h=5, w=1, r=1, s=1, stride=(2, 1), padding=(2, 1, 1, 0), dilation=(1, 2),
        pass_="backward_data",
    )  # fmt: skip
    _keeps(problem, "C:2 Q:2 P:4", caches(30, 10))


def test_a_cache_behind_a_cache_stays_below_its_bracket() -> None:
    """The promise holds; ``high``, which is said to be above every run, does not."""
    problem = gemm(m=3, n=3, k=2).with_element_bytes({"A": 1, "B": 2, "C": 2})
    assert promised(problem, "K:2 M:3 N:3 N:2 M:2", caches(20, 12)).faults == ()


def test_late_writes_of_a_cache_inside_count() -> None:
    """L1 writes back late, L2 passes that on, and L3 no longer holds what is written: 68 < 72."""
    waiting = machine(
        level("L3", "cache", 41, accumulate="registers"),
        level("L2", "cache", 28, write_policy="through"),
        level("L1", "cache", 28, instances=2, unit="SM"),
        units=2,
    )
    _keeps(gemm(m=1, n=8, k=1), "N:8@SM N:3", waiting)


def test_what_starts_cold_asks_again() -> None:
    """L1 asks for A once an item, not at each step: 68 was promised, and is 72."""
    through = level("L1", "cache", 28, instances=2, unit="SM", write_policy="through")
    _keeps(gemm(m=1, n=8, k=1), "N:8@SM N:3", machine(level("L2", "cache", 41), through, units=2))


def test_units_side_by_side_each_ask_for_a_passing_tensor() -> None:
    """Two units use one element of A at a time: the simulation counts two accesses."""
    held = machine(level("L1", "cache", 14, holds=("C",)), units=2)
    _keeps(gemm(m=1, n=4, k=2, element_bytes=1), "K:2 N:4@SM", held)


def test_gapped_windows_in_a_scratchpad_are_counted_exactly() -> None:
    """Kept is the tile before, not all that the sweep has loaded."""
    problem = affine({"P": 5, "R": 4}, {"w": "P-1<4", "y": "P+3*R"}, element_bytes=2)
    assert walked(problem, "P:5 R:4 R:3", 30).faults == ()


# Fusion -------------------------------------------------------------------------------


def test_a_fused_pair_holds_one_tile_at_a_time() -> None:
    chain = [
        conv2d(c=3, k=2, h=7, w=4, r=2, s=1, padding=(0, 1, 2, 2), name="l0"),
        conv2d(c=2, k=2, h=7, w=8, r=1, s=1, padding=(2, 0, 0, 0), name="l1"),
    ]
    plan = loopsched.fuse(chain, 68, halos=["recompute"], assume_pooling=False)
    assert plan.dram_bytes <= 1744


# The space is the machine's -----------------------------------------------------------


def test_all_units_share_the_work() -> None:
    own = Level("L1", "cache", 32, instances=2, unit="SM", bandwidth_bytes_per_s=1e6)
    nested = Arch("m", (Level("M", "memory", None), own), Compute("PE", 4, 1.0, 1.0, RATES))
    assert searched(gemm(m=4, n=1, k=1), nested, ("time",), is_listed=True).faults == ()


def test_items_handed_out_one_by_one() -> None:
    """What L1 writes between items, L2 still holds: 28 B, where one item takes 36."""
    problem = conv2d(n=1, c=1, k=1, h=8, w=1, r=2, s=1, stride=(3, 1), element_bytes=2)
    arch = machine(
        level("L2", "cache", 16, write_policy="through"),
        level("L1", "cache", 11, instances=2, unit="SM", write_policy="through"),
        units=2,
    )
    nest = parse_schedule("P:3 P:1@SM R:2", problem)
    assert evaluate(problem, nest, arch).dram_bytes == 28
    assert searched(problem, arch, ("dram_bytes",)).faults == ()


def test_units_share_what_passes_a_cache_too_small_for_all() -> None:
    """Two units ask for one weight at once: 5 B, where each by itself would take 6."""
    problem = conv2d(n=1, c=1, k=1, h=2, w=1, r=1, s=1, element_bytes=1)
    arch = machine(
        level("L2", "scratchpad", 5, holds=("input",)),
        Level("L1", "cache", 3, bandwidth_bytes_per_s=1e6),
        units=2,
    )
    assert evaluate(problem, parse_schedule("P:2@SM", problem), arch).dram_bytes == 5
    assert searched(problem, arch, ("time", "dram_bytes")).faults == ()


def test_lanes_share_what_they_ask_for_at_once() -> None:
    """Four lanes of two units need 8 B at once, L2 has 6: 13 B, where single points take 15."""
    problem = gemm(m=3, n=1, k=2, element_bytes=1)
    arch = machine(
        level("L2", "cache", 6),
        Level("L1", "scratchpad", 6, instances=2, unit="SM", bandwidth_bytes_per_s=3.0),
        units=2,
    )
    arch = with_lanes(arch, 2)
    nest = parse_schedule("M:3@SM K:2@lane M:2", problem)
    assert evaluate(problem, nest, arch).dram_bytes == 13
    assert searched(problem, arch, ("dram_bytes",), is_listed=True).faults == ()


def test_a_list_of_all_schedules_lacks_those_with_lanes() -> None:
    """Three lanes side by side share the weight: 7 B, where each schedule listed takes 9."""
    problem = conv2d(n=1, c=1, k=1, h=5, w=1, r=1, s=1, stride=(2, 2), element_bytes=1)
    arch = machine(level("L1", "cache", 3), units=1)
    arch = with_lanes(arch, 3)
    assert evaluate(problem, parse_schedule("P:3@lane", problem), arch).dram_bytes == 7
    assert searched(problem, arch, ("dram_bytes",), is_listed=True).faults == ()
