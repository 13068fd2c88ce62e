"""What a result says of itself: gaps, objectives with likely traffic, the order of ties."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from loopsched import buffer_arch, evaluate, gemm, load_arch, parse_schedule, search
from loopsched.base.errors import ConstraintError
from loopsched.machines.arch import Arch
from loopsched.scheduler import space_of
from loopsched.scheduler.result import Certificate, objective_value, rank
from loopsched.scheduler.rows import evaluation_row, result_rows, totals

PROBLEM = gemm(m=512, n=512, k=512)
TITAN = load_arch("titan_v")
NEST = "M:512@SM N:512@SM K:512 M:64 N:32 K:8"


def powered(arch: Arch) -> Arch:
    levels = tuple(replace(level, energy_pj_per_byte=2.0) for level in arch.levels)
    return replace(arch, levels=levels, compute=replace(arch.compute, energy_pj_per_mac=1.0))


def test_a_gap_is_relative_to_the_bound() -> None:
    open_ = Certificate(False, 8.0, 10.0, 1, space_of(PROBLEM, TITAN))
    assert open_.gap == 0.25
    assert replace(open_, proven=True).gap == 0
    assert replace(open_, value=8.0).gap == 0
    assert replace(open_, lower_bound=0.0).gap == inf
    told = replace(open_, proven=True).without_log("nobody knows")
    assert (told.proven, told.unlogged, told.value) == (False, "nobody knows", 10.0)


def test_a_certificate_is_short_to_read() -> None:
    told = repr(Certificate(False, 8.0, 10.0, 1, space_of(PROBLEM, TITAN)))
    assert told == "Certificate(proven=False, lower_bound=8.0, value=10.0, nodes=1)"


@pytest.mark.parametrize("value", ["promised", "point", "low"])
def test_objectives_are_those_of_the_traffic_that_is_gone_by(value: str) -> None:
    arch = powered(TITAN).with_value("L2.bandwidth", 2e11).with_value("L1.capacity", 9000)
    score = evaluate(PROBLEM, parse_schedule(NEST, PROBLEM), arch)
    moved = [
        level.promised_bytes if value == "promised" else getattr(level.bytes, value)
        for level in score.levels
    ]
    rates = [level.bandwidth_bytes_per_s or inf for level in arch.caches]
    seconds = [size / rate for size, rate in zip(moved, rates, strict=True)]
    time_s = max(score.compute_time_s, *seconds)
    assert time_s > score.compute_time_s
    assert objective_value(score, "dram_bytes", value) == moved[0]  # type: ignore[arg-type]
    assert objective_value(score, "time", value) == pytest.approx(time_s)  # type: ignore[arg-type]
    product = objective_value(score, "edp", value)  # type: ignore[arg-type]
    assert product == pytest.approx((score.energy_pj or 0.0) * time_s)
    first = objective_value(score, "time", value)  # type: ignore[arg-type]
    assert rank(score, "time", value) == (first, moved[0], score.compute_steps, sum(moved[1:]))  # type: ignore[arg-type]


def test_energies_have_to_be_known() -> None:
    score = evaluate(PROBLEM, parse_schedule(NEST, PROBLEM), TITAN)
    with pytest.raises(ConstraintError, match=r"an energy for every level.* diannao does"):
        objective_value(score, "edp")
    with pytest.raises(ConstraintError, match="objective 'tiem' is unknown; did you mean 'time'"):
        objective_value(score, "tiem")  # type: ignore[arg-type]


def test_a_result_is_near_its_bound_or_says_how_far() -> None:
    found = search(PROBLEM, TITAN, top=3).certificate
    assert found.gap == (0 if found.proven else found.value / found.lower_bound - 1)


def test_rows_say_what_was_found() -> None:
    found = search(PROBLEM, TITAN, top=3)
    rows = result_rows(found)
    assert [row["rank"] for row in rows] == [1, 2, 3]
    assert rows[0]["schedule"] == str(found.schedule)
    score = evaluate(PROBLEM, parse_schedule(NEST, PROBLEM), TITAN.with_value("L1.capacity", 9000))
    row = evaluation_row(score)
    assert (row["dram_read_bytes"], row["dram_write_bytes"]) == (
        score.dram_read_bytes,
        score.dram_write_bytes,
    )
    assert score.dram_read_bytes != score.dram_write_bytes
    for told, level in zip(row["levels"], score.levels, strict=True):
        for name in ("bytes", "read_bytes", "write_bytes"):
            bracket = getattr(level, name)
            assert told[name] == {end: getattr(bracket, end) for end in ("low", "point", "high")}
    small = gemm(m=8, n=8, k=8, element_bytes=1)
    nest = parse_schedule("M:8 N:8 K:8 M:3 N:3 K:8", small)
    rough = evaluate(small, nest, buffer_arch(capacity_bytes=60), effort=0)
    (told,) = evaluation_row(rough)["levels"]
    assert told["bytes"]["point"] == rough.levels[0].bytes.point < rough.levels[0].bytes.high


def test_totals_are_rounded_once() -> None:
    """Whatever the version of Python: 0.1 ten times is 1, which plain addition misses."""
    row = {"time_s": 0.1, "time_bound_s": 0.1, "energy_pj": 0.1, "dram_bytes": 0, "nodes": 0}
    row |= {"least_dram_bytes": 0, "bound_by": "L1", "count": 1, "proven": True, "space_size": 1.0}
    found = totals([row] * 10)
    assert (found.time_s, found.time_bound_s, found.energy_pj) == (1.0, 1.0, 1.0)


def test_totals_count_problems_as_often_as_they_occur_and_searches_once() -> None:
    one = {"time_s": 0.5, "time_bound_s": 0.25, "dram_bytes": 8, "least_dram_bytes": 5}
    one |= {
        "energy_pj": 1.5,
        "bound_by": "L1",
        "count": 3,
        "proven": True,
        "nodes": 7,
        "space_size": 100,
    }
    two = one | {"bound_by": "DRAM", "count": 2, "proven": False}
    found = totals([one, two, two])
    assert (found.time_s, found.time_bound_s) == (0.5 * 7, 0.25 * 7)
    assert (found.dram_bytes, found.least_dram_bytes) == (8 * 7, 5 * 7)
    assert found.energy_pj == 1.5 * 7
    assert totals([one, two | {"energy_pj": None}]).energy_pj is None
    assert found.bound_by == (("DRAM", 2), ("L1", 1))
    assert (found.n_proven, found.nodes, found.space_size) == (1, 21, 300)
