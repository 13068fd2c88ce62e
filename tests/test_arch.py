"""Levels, compute units and machines: what fits together and what does not."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopsched.base.errors import ArchError
from loopsched.machines.arch import Arch, buffer_arch
from loopsched.machines.levels import Compute, Level

DRAM = Level("DRAM", "memory", None)
L2 = Level("L2", "cache", 4096, bandwidth_bytes_per_s=1e9)
L1 = Level("L1", "cache", 1024, instances=4, unit="SM", bandwidth_bytes_per_s=4e9)
SMS = Compute("SM", 4, 1e9, 2e9, (("fp32", 64), ("fp16", 512)), lane_unit="lane")
ARCH = Arch("small", (DRAM, L2, L1), SMS)


def test_levels_are_found_by_name() -> None:
    assert ARCH.memory is DRAM
    assert ARCH.caches == (L2, L1)
    assert ARCH.level("l1") is L1
    assert ARCH.spatial_units == (("SM", 4),)
    with pytest.raises(ArchError, match="no level 'L3'; did you mean 'L2'"):
        ARCH.level("L3")


def test_rates() -> None:
    assert SMS.rate("fp16") == 512
    assert SMS.peak_macs_per_s("fp32") == 64 * 4 * 2e9
    with pytest.raises(ArchError, match=r"no rate for data type 'fp15'.*allowed: fp32 fp16"):
        SMS.rate("fp15")


def test_values_of_levels() -> None:
    half = replace(L2, effective_capacity_bytes=2048, peak_bandwidth_bytes_per_s=3e9)
    assert (L2.usable_bytes, half.usable_bytes, DRAM.usable_bytes) == (4096, 2048, None)
    assert (L2.bound_bandwidth_bytes_per_s, half.bound_bandwidth_bytes_per_s) == (1e9, 3e9)
    assert L2.is_shared
    assert not L1.is_shared
    weights = replace(L2, holds=("weight",))
    assert weights.is_held("B", "weight")
    assert not weights.is_held("A", "input")
    assert replace(weights, may_hold=("A",)).is_held("A", "input")
    with pytest.raises(FrozenInstanceError):
        L2.capacity_bytes = 1  # type: ignore[misc]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": "L 2"}, "name 'L 2' must be a word"),
        ({"kind": "cash"}, "did you mean 'cache'"),
        ({"capacity_bytes": 0}, "capacity_bytes must be a whole number"),
        ({"capacity_bytes": 1.5}, "capacity_bytes must be a whole number"),
        ({"capacity_bytes": True}, "capacity_bytes must be a whole number"),
        ({"capacity_bytes": 2**63}, "capacity_bytes must be a whole number"),
        ({"capacity_bytes": None}, "a cache needs a capacity"),
        ({"peak_bandwidth_bytes_per_s": 0.9e9}, "peak_bandwidth .* is below the bandwidth"),
        ({"instances": 0, "unit": "SM"}, "instances must be"),
        ({"instances": 2}, "needs 'unit'"),
        ({"bandwidth_bytes_per_s": float("nan")}, "above zero and finite, not nan"),
        ({"bandwidth_bytes_per_s": float("inf")}, "above zero and finite, not inf"),
        ({"bandwidth_bytes_per_s": -1.0}, "above zero and finite"),
        ({"bandwidth_bytes_per_s": None, "peak_bandwidth_bytes_per_s": 1.0}, "beside it"),
        ({"peak_bandwidth_bytes_per_s": 1.0}, "below the bandwidth"),
        ({"effective_capacity_bytes": 8192}, "effective_capacity .* above the capacity"),
        ({"line_bytes": 8192}, "line .* above the capacity"),
        ({"holds": ()}, "could hold nothing"),
        ({"holds": ("A", "A")}, "names 'A' twice"),
        ({"tensor_capacity_bytes": (("A", 8192),)}, "above the capacity of the level"),
        ({"tensor_capacity_bytes": (("A", 0),)}, "whole number from 1"),
        ({"tensor_capacity_bytes": (("A", 8),), "holds": ("B",)}, "not among what the level holds"),
        ({"write_policy": "trough"}, "did you mean 'through'"),
        ({"accumulate": "register"}, "did you mean 'registers'"),
        ({"energy_pj_per_byte": 0.0}, "energy_pj_per_byte must be above zero"),
        ({"instances": None}, "instances must be a whole number"),
        ({"double_buffered": "yes"}, "double_buffered must be true or false, not 'yes'"),
        ({"holds": "input"}, "holds must be a tuple of names, not 'input'"),
    ],
)
def test_impossible_levels(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ArchError, match=message):
        replace(L2, **fields)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"unit": "S M"}, "must be a word"),
        ({"lane_unit": "SM"}, "the same word 'SM'"),
        ({"units": 0}, "units must be a whole number"),
        ({"clock_hz": 0.0}, "clock_hz must be above zero"),
        ({"max_clock_hz": None}, "max_clock_hz must be above zero"),
        ({"max_clock_hz": 0.5e9}, r"max_clock \(5e\+08 Hz\) is below clock"),
        ({"macs_per_cycle_per_unit": ()}, "macs is empty"),
        ({"macs_per_cycle_per_unit": (("fp23", 1),)}, "macs: unknown 'fp23'; did you mean"),
        ({"macs_per_cycle_per_unit": (("fp32", -1),)}, "above zero"),
        ({"macs_per_cycle_per_unit": (("fp32", 1), ("fp32", 2))}, "names 'fp32' twice"),
        ({"energy_pj_per_mac": float("inf")}, "energy_pj_per_mac"),
    ],
)
def test_impossible_compute(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ArchError, match=message):
        replace(SMS, **fields)


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        ((DRAM,), "a memory and at least one level below it"),
        ((L2, L1), "'L2' is of kind 'cache'; the outermost level"),
        ((DRAM, L2, DRAM), "the name 'DRAM' is taken"),
        ((DRAM, L2, replace(L1, name="l2")), "the name 'l2' is taken"),
        ((DRAM, replace(L2, name="compute"), L1), "'compute' is taken"),
        ((DRAM, L2, replace(L1, capacity_bytes=8192)), r"'L1' \(8 KiB\) is larger than 'L2'"),
        ((DRAM, replace(L2, instances=3, unit="half"), L1), "not a multiple of the 3 of 'L2'"),
        ((DRAM, replace(L2, instances=2, unit="SM"), L1), "a word stands for one count"),
        ((DRAM, L2, replace(L1, instances=8)), "compute has 4 units 'SM', but levels have 8"),
        ((DRAM, L2, replace(L1, instances=3, unit="x")), "not a multiple of the 3 instances"),
        ((DRAM, L2, replace(L1, unit="lane")), "lane_unit 'lane' is already the unit of a level"),
        ((DRAM, replace(L2, bandwidth_bytes_per_s=None), L1), "'DRAM' needs a bandwidth toward"),
    ],
)
def test_levels_that_do_not_fit_together(levels: tuple[Level, ...], message: str) -> None:
    with pytest.raises(ArchError, match=message):
        Arch("bad", levels, SMS)


def test_all_faults_come_at_once() -> None:
    with pytest.raises(ArchError) as caught:
        Level("x y", "cache", -1, instances=2, line_bytes=0)
    assert len(caught.value.problems) == 4


def test_levels_for_different_tensors_may_grow_inward() -> None:
    small = replace(L2, name="NBin", holds=("input",), capacity_bytes=512)
    large = replace(L2, name="SB", holds=("weight",))
    arch = Arch("side_by_side", (DRAM, small, large), SMS)
    assert arch.level("SB").capacity_bytes == 4096


def test_digest_depends_on_content_only() -> None:
    cited = replace(
        ARCH, title="T", notes="N", levels=(DRAM, replace(L2, sources=(("a", "b"),)), L1)
    )
    assert cited.digest == ARCH.digest
    assert replace(ARCH, name="other").digest != ARCH.digest
    assert ARCH.scaled("L2.capacity", 2).digest != ARCH.digest
    # Pinned: result files of different versions must stay comparable.
    assert buffer_arch(capacity_bytes=98304).digest == "768a33f85b04d053"


def test_scaled() -> None:
    assert ARCH.scaled("L2.capacity", 0.5).level("L2").capacity_bytes == 2048
    faster = ARCH.scaled("dram.bandwidth", 2)
    assert faster.level("L2").bandwidth_bytes_per_s == 2e9
    assert faster.level("L1") == L1
    assert faster.name == "small[dram.bandwidth*2]"
    assert ARCH.scaled("L2.bandwidth", 2).level("L1").bandwidth_bytes_per_s == 8e9
    clock = ARCH.scaled("compute.clock", 1.5).compute
    assert (clock.clock_hz, clock.max_clock_hz) == (1.5e9, 3e9)
    assert ARCH.scaled("compute.macs", 2).compute.rate("fp32") == 128
    more = ARCH.scaled("compute.units", 2)
    assert (more.compute.units, more.level("L1").instances) == (8, 8)


def test_scaled_bytes_are_rounded() -> None:
    for size in range(1, 20):
        found = buffer_arch(capacity_bytes=size).scaled("buffer.capacity", 0.75)
        assert abs(found.caches[0].usable_bytes - 0.75 * size) <= 0.5  # type: ignore[operator]


def test_scaling_keeps_parts_in_proportion() -> None:
    level = replace(
        L2,
        effective_capacity_bytes=2048,
        tensor_capacity_bytes=(("A", 1024),),
        peak_bandwidth_bytes_per_s=5e9,
    )
    arch = Arch("parts", (DRAM, level, L1), SMS)
    scaled = arch.scaled("L2.capacity", 2).level("L2")
    assert (scaled.effective_capacity_bytes, scaled.tensor_capacity_bytes) == (4096, (("A", 2048),))
    assert arch.scaled("DRAM.bandwidth", 2).level("L2").peak_bandwidth_bytes_per_s == 1e10


def test_with_value() -> None:
    assert ARCH.with_value("L2.capacity", 5000).level("L2").capacity_bytes == 5000
    assert ARCH.with_value("DRAM.bandwidth", 7e9).level("L2").bandwidth_bytes_per_s == 7e9
    # 1.1e9 / 1e9 and 5e9 * (7e9 / 5e9) are rounded: the value is asked for, no factor.
    assert ARCH.with_value("compute.clock", 1.1e9).compute.clock_hz == 1.1e9


@given(
    st.sampled_from(["DRAM.bandwidth", "L2.bandwidth", "compute.clock"]),
    st.floats(1e3, 1e15),
    st.floats(1e3, 1e15),
)
def test_the_value_asked_for_is_the_value_set(key: str, before: float, value: float) -> None:
    assert ARCH.with_value(key, before).with_value(key, value).value(key) == value


@given(st.integers(1024, 2**50), st.integers(1024, 2**50))
def test_the_bytes_asked_for_are_the_bytes_set(before: int, size_bytes: int) -> None:
    changed = ARCH.with_value("L2.capacity", before).with_value("L2.capacity", size_bytes)
    assert changed.level("L2").capacity_bytes == size_bytes


@pytest.mark.parametrize(
    ("key", "factor", "message"),
    [
        ("L2.size", 2, r"no 'L2.size'; allowed: DRAM.bandwidth"),
        ("L1.bandwidth", 2, "no 'L1.bandwidth'"),
        ("DRAM.capacity", 2, "no 'DRAM.capacity'"),
        ("L2.capacity", 0, "above zero"),
        ("L2.capacity", float("nan"), "above zero"),
        ("L2.capacity", float("inf"), "infinite"),
        ("L2.capacity", "2", "must be a number"),
        ("L2.capacity", 1e-9, "whole number"),
        ("L1.capacity", 100, "larger than 'L2'"),
        ("", 2, "no ''"),
    ],
)
def test_impossible_scaling(key: str, factor: float, message: str) -> None:
    with pytest.raises(ArchError, match=message):
        ARCH.scaled(key, factor)


def test_impossible_values() -> None:
    with pytest.raises(ArchError, match="above zero, not -1"):
        ARCH.with_value("L2.capacity", -1)
    with pytest.raises(ArchError, match=r"did you mean 'L2\.capacity'"):
        ARCH.with_value("L2.capcity", 1)


def test_buffer_arch() -> None:
    lru = buffer_arch(capacity_bytes=1024, bandwidth_bytes_per_s=5e9, macs_per_cycle=7)
    assert [level.kind for level in lru.levels] == ["memory", "cache"]
    assert lru.level("buffer").bandwidth_bytes_per_s == 5e9
    assert {lru.compute.rate(name) for name in lru.compute.data_types} == {7}
    assert buffer_arch(capacity_bytes=1, policy="explicit").caches[0].kind == "scratchpad"
    with pytest.raises(ArchError, match="did you mean 'explicit'"):
        buffer_arch(capacity_bytes=1024, policy="explicite")  # type: ignore[arg-type]
    with pytest.raises(ArchError, match="capacity_bytes"):
        buffer_arch(capacity_bytes=0)


def test_constants() -> None:
    with pytest.raises(ArchError, match="no constant 'x'"):
        ARCH.constant("x")
