"""Levels that leave a choice of what they hold: notation, values, searches, refusals."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from loopsched import (
    Constraints,
    buffer_arch,
    conv2d,
    evaluate,
    explain,
    gemm,
    parse_schedule,
    search,
    simulate,
)
from loopsched.base.errors import ArchError, ConstraintError, ScheduleError
from loopsched.exchange.timeloop import from_timeloop, to_timeloop
from loopsched.machines.arch import Arch
from loopsched.machines.arch_file import arch_from_dict, load_arch
from loopsched.machines.arch_format import arch_schema, arch_to_dict
from loopsched.machines.levels import Compute, Level
from loopsched.models.places import resolved
from loopsched.models.view import _view_of
from loopsched.nests.loops_text import render_loops
from loopsched.nests.ops import drop_unit_loops
from loopsched.nests.schedule_file import schedule_from_dict, schedule_to_dict
from loopsched.problems.problem import Problem
from loopsched.problems.workload import Workload
from loopsched.scheduler import search_workload, space_size

GEMM = gemm(m=16, n=12, k=8, element_bytes=1)
RATES = (("int8", 1),)


def machine(kind: str, *, units: int = 1, **options: Any) -> Arch:
    levels = (
        Level("M", "memory", None),
        Level("L2", kind, 60, bandwidth_bytes_per_s=1.0, may_hold=("A", "weight")),  # type: ignore[arg-type]
        Level("L1", kind, 20, bandwidth_bytes_per_s=2.0, **options),  # type: ignore[arg-type]
    )
    return Arch("m", levels, Compute("SM", units, 1.0, 1.0, RATES))


def holding(arch: Arch, level: str, *names: str) -> Arch:
    """The machine by hand: a level that always holds some tensors, and no choice."""
    return replace(
        arch,
        levels=tuple(
            replace(one, holds=names if one.name == level else one.holds, may_hold=())
            for one in arch.levels
        ),
    )


# The notation -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["[L2 -A] M:16 N:12 K:8", "[L1 -C] [L2 -A -B] M:16 N:12 [L2 C] K:8 M:4"]
)
def test_marks_go_round(text: str) -> None:
    nest = parse_schedule(text, GEMM)
    assert str(nest) == text
    assert parse_schedule(str(nest), GEMM) == nest
    assert schedule_from_dict(schedule_to_dict(nest), GEMM) == nest
    assert str(drop_unit_loops(nest)) == text


def test_marks_are_shown() -> None:
    assert "L2 lets pass A" in render_loops(GEMM, parse_schedule("[L2 -A] M:16 N:12 K:8", GEMM))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("M:16 [L2 -A] N:12 K:8", "'[L2 -A]': what passes a level is said before all loops"),
        ("[L2 -X] M:16 N:12 K:8", "'[L2 -X]': unknown tensor 'X'"),
        ("[L2 -A] M:16 [L2 A B C] N:12 K:8", "'A' is placed in 'L2' before, at '[L2 -A]'"),
        ("[L2 -A] [L2 -A] M:16 N:12 K:8", "'A' is placed in 'L2' before"),
    ],
)
def test_marks_that_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(ScheduleError, match=re.escape(message)):
        parse_schedule(text, GEMM)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[L3 -A] M:16 N:12 K:8", "[L3 -A]: 'm' has no level 'L3'"),
        ("[L2 -C] M:16 N:12 K:8", "[L2 -C]: 'L2' leaves no choice of 'C'"),
        ("[L1 -A] M:16 N:12 K:8", "its may_hold lists what may pass: nothing"),
    ],
)
def test_marks_that_a_machine_does_not_allow(text: str, message: str) -> None:
    with pytest.raises(ScheduleError, match=re.escape(message)):
        evaluate(GEMM, parse_schedule(text, GEMM), machine("scratchpad"))


def test_what_is_always_held_may_not_pass_under_another_word() -> None:
    arch = machine("scratchpad", holds=("input", "C"), may_hold=("A", "B"))
    assert evaluate(GEMM, parse_schedule("[L1 -B] M:16 N:12 K:8 K:2", GEMM), arch)
    with pytest.raises(ScheduleError, match=re.escape("[L1 -A]: 'L1' leaves no choice of 'A'")):
        evaluate(GEMM, parse_schedule("[L1 -A] M:16 N:12 K:8 K:2", GEMM), arch)


# Values -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["cache", "scratchpad"])
@pytest.mark.parametrize(("mark", "held"), [("-A", "B C"), ("-B", "A C"), ("-A -B", "C")])
def test_a_mark_is_the_machine_that_holds_the_others(kind: str, mark: str, held: str) -> None:
    arch, plain = machine(kind, units=3), parse_schedule("M:16@SM N:12 K:8 M:4 N:3", GEMM)
    by_hand = evaluate(GEMM, plain, holding(arch, "L2", *held.split()))
    marked = parse_schedule(f"[L2 {mark}] {plain}", GEMM)
    found = evaluate(GEMM, marked, arch)
    assert found.time_s == by_hand.time_s
    assert [one.bytes for one in found.levels] == [one.bytes for one in by_hand.levels]
    assert explain(GEMM, marked, arch) == explain(GEMM, plain, holding(arch, "L2", *held.split()))


def test_without_a_mark_everything_is_kept() -> None:
    arch, nest = machine("cache"), parse_schedule("M:16 N:12 K:8 M:4 N:3", GEMM)
    by_hand = evaluate(GEMM, nest, holding(arch, "L2", "A", "B", "C"))
    assert evaluate(GEMM, nest, arch).time_s == by_hand.time_s


def test_caches_are_simulated_with_a_choice() -> None:
    arch, plain = machine("cache"), parse_schedule("N:12 M:16 K:8 N:3", GEMM)
    marked = parse_schedule(f"[L2 -B] {plain}", GEMM)
    by_hand = simulate(GEMM, plain, arch=holding(arch, "L2", "A", "C"))
    assert simulate(GEMM, marked, arch=arch).levels == by_hand.levels
    assert by_hand.levels != simulate(GEMM, plain, arch=arch).levels


def test_a_buffer_of_a_tensor_that_passes_is_empty() -> None:
    own = (("input", 8), ("C", 12))
    arch = machine("scratchpad", may_hold=("input", "B"), tensor_capacity_bytes=own)
    marked = parse_schedule("[L1 -A] M:16 N:12 K:8", GEMM)
    _, machine_of_it = resolved(GEMM, marked, arch)
    (level,) = [one for one in machine_of_it.caches if one.name == "L1"]
    assert level.holds == ("B", "C")
    assert level.tensor_capacity_bytes == (("C", 12),)


# Searches -----------------------------------------------------------------------------


@pytest.mark.parametrize("objective", ["time", "dram_bytes"])
@pytest.mark.parametrize("kind", ["cache", "scratchpad"])
def test_a_search_is_the_best_of_all_choices(kind: str, objective: Any) -> None:
    arch = machine(kind, units=2)
    held = [("A", "B", "C"), ("B", "C"), ("A", "C"), ("C",)]
    each = [search(GEMM, holding(arch, "L2", *some), objective=objective) for some in held]
    found = search(GEMM, arch, objective=objective)
    assert found.certificate.value == min(one.certificate.value for one in each)
    assert found.certificate.lower_bound <= min(
        max(one.certificate.lower_bound, found.certificate.value) for one in each
    )
    if found.certificate.proven:
        assert all(one.certificate.lower_bound <= one.certificate.value for one in each)
        assert found.certificate.lower_bound == found.certificate.value
    again = evaluate(GEMM, parse_schedule(str(found.schedule), GEMM), arch)
    assert again.time_s == found.evaluation.time_s
    sizes = [space_size(GEMM, holding(arch, "L2", *some)) for some in held]
    assert found.certificate.space_size == space_size(GEMM, arch) == sum(sizes)


def test_passing_wins_where_a_tensor_only_takes_room() -> None:
    arch = buffer_arch(capacity_bytes=8)
    free = replace(arch, levels=(arch.memory, replace(arch.caches[0], may_hold=("A", "B", "C"))))
    assert search(GEMM, arch, objective="dram_bytes").certificate.value == 2496
    found = search(GEMM, free, objective="dram_bytes", top=3)
    assert (found.certificate.value, found.certificate.proven) == (1984, True)
    assert str(found.schedule) == "[buffer -B] N:12 M:16 K:8 N:6"
    values = [one.evaluation.dram_bytes for one in found.alternatives]
    assert values == sorted(values)
    assert len(values) == 2


@pytest.mark.parametrize("strategy", ["exhaustive", "random", "local"])
def test_other_strategies_go_over_all_choices(strategy: Any) -> None:
    problem = gemm(m=4, n=3, k=2, element_bytes=1)
    arch = machine("cache")
    found = search(problem, arch, objective="dram_bytes", strategy=strategy, samples=50)
    exact = search(problem, arch, objective="dram_bytes")
    assert found.certificate.value >= exact.certificate.lower_bound
    assert found.certificate.nodes >= 50


def test_constraints_hold_in_every_choice() -> None:
    found = search(GEMM, machine("cache"), constraints=Constraints(prefix="M:16 N:12 M:8"))
    assert " ".join(map(str, found.schedule.loops)).startswith("M:16 N:12 M:8")


def test_any_number_of_jobs_finds_the_same() -> None:
    layers = Workload("two", (GEMM, gemm(m=9, n=7, k=5, element_bytes=1)))
    one, two = (list(search_workload(layers, machine("cache"), jobs=jobs)) for jobs in (1, 2))
    assert [str(found.schedule) for found in one] == [str(found.schedule) for found in two]
    assert [found.certificate for found in one] == [found.certificate for found in two]


def test_a_budget_is_shared_by_the_choices() -> None:
    found = search(GEMM, machine("scratchpad", units=3), budget=3000)
    assert found.certificate.effort.stopped == "budget"
    assert found.certificate.lower_bound <= found.certificate.value


# Files, and what is refused -----------------------------------------------------------


def test_files_go_round() -> None:
    arch = machine("cache", holds=("C",), may_hold=("A",))
    assert arch_from_dict(arch_to_dict(arch)) == arch
    level = arch_schema()["properties"]["levels"]["items"]["properties"]
    assert level["may_hold"] == level["holds"]
    assert arch.digest != replace(arch, levels=holding(arch, "L1", "C").levels).digest


def test_machines_without_a_choice_keep_their_digest() -> None:
    assert load_arch("titan_v").digest == "e4a06cd51e4683e4"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"holds": ("A",), "may_hold": ("A",)}, "may_hold names 'A', which holds says"),
        ({"may_hold": ("A", "A")}, "may_hold names 'A' twice"),
        ({"holds": ()}, "holds is empty: the level could hold nothing"),
    ],
)
def test_levels_that_contradict_themselves(options: Any, message: str) -> None:
    with pytest.raises(ArchError, match=re.escape(message)):
        Level("L1", "cache", 64, bandwidth_bytes_per_s=1.0, **options)


def test_the_memory_has_no_choice() -> None:
    with pytest.raises(ArchError, match="the memory holds every tensor"):
        Level("M", "memory", None, may_hold=("A",))


def test_proofs_and_other_formats_say_that_they_cannot(tmp_path: Path) -> None:
    found = search(GEMM, machine("cache"))
    with pytest.raises(ConstraintError, match="leaves a choice of what its levels hold"):
        assert found.proof
    nest = parse_schedule("[L2 -A] M:16 N:12 K:8", GEMM)
    with pytest.raises(ScheduleError, match="the page cannot express which tensors pass a level"):
        nest.check_even("the page")


def test_timeloop_is_told_what_passes() -> None:
    arch, nest = machine("scratchpad"), parse_schedule("[L2 -A] M:16 N:12 K:8 M:4", GEMM)
    again = from_timeloop(to_timeloop(GEMM, nest, arch).text())
    assert again.arch is not None
    assert again.schedule is not None
    by_hand = evaluate(GEMM, nest, arch)
    assert evaluate(GEMM, again.schedule, again.arch).dram_bytes == by_hand.dram_bytes
    assert again.arch.level("L2").holds == ("B", "C")


def test_tensors_that_stay_may_share_a_word() -> None:
    names = {"A": "output", "B": "input", "C": "weight"}  # what is read is an input, both of it
    tensors = tuple(replace(one, name=names[one.name]) for one in GEMM.tensors)
    odd = replace(GEMM, tensors=tensors, output="weight")
    arch = machine("cache", may_hold=("output",))
    loops = "M:16 N:12 K:8 N:3 M:2"
    found = evaluate(odd, parse_schedule(f"[L1 -weight] {loops}", odd), arch)
    told = evaluate(odd, parse_schedule(loops, odd), holding(arch, "L1", "input"))
    assert found.levels == told.levels


def test_a_tensor_that_shares_its_word_is_not_told_apart() -> None:
    problem: Problem = gemm(m=4, n=4, k=4, element_bytes=1)
    names = {"A": "x", "B": "input", "C": "y"}
    odd = replace(
        problem,
        tensors=tuple(replace(one, name=names[one.name]) for one in problem.tensors),
        output="y",
    )
    arch = machine("cache", may_hold=("x", "input"))
    nest = parse_schedule("[L1 -x] M:4 N:4 K:4", odd)
    with pytest.raises(ScheduleError, match="goes by a word that means another tensor"):
        evaluate(odd, nest, arch)


def test_what_bypasses_a_level_does_not_depend_on_what_was_scored_before() -> None:
    """Both share the loops, and so what is known of them; not what the level has room for."""
    problem = conv2d(n=1, c=1, k=1, h=9, w=1, r=1, s=1, stride=(2, 1), element_bytes=1)
    may = ("output", "input")
    level = Level("L1", "cache", 3, bandwidth_bytes_per_s=1.0, holds=("weight",), may_hold=may)
    arch = Arch("m", (Level("M", "memory", None), level), Compute("SM", 1, 1.0, 1.0, RATES))
    texts = ("P:5", "[L1 -input] P:5", "[L1 -output] P:5", "[L1 -input -output] P:5")
    alone = {}
    for text in texts:
        _view_of.cache_clear()
        alone[text] = evaluate(problem, parse_schedule(text, problem), arch).dram_bytes
    assert len(set(alone.values())) > 1
    for order in permutations(texts):
        _view_of.cache_clear()
        for text in order:
            score = evaluate(problem, parse_schedule(text, problem), arch)
            assert score.dram_bytes == alone[text], (order, text)
