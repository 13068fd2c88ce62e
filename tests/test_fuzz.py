"""A minute of random cases with fixed seeds; `benchmarks/soak.py` runs any number of fresh ones.

Every family is held against brute force or a simulation that shares no code with the
search (`fuzz_checks`).  A family marked ``xfail`` has faults that are known.
"""

from __future__ import annotations

from itertools import permutations
from random import Random

import oracle
import pytest
from fuzz_cases import body_bytes, build, problem_text
from fuzz_checks import FAMILIES, can_place, draw, random_nest, run
from oracle_search import blocks_of as slots_of
from oracle_search import every_nest
from oracle_space import all_nests, blocks_of, chains, in_blocks, n_nests, obeys, units_of
from oracle_system import moved_behind

from loopsched import Constraints, Loop, Problem, Schedule, Tensor, buffer_arch, gemm
from loopsched.machines.arch import Arch
from loopsched.machines.levels import Compute, Level

# How many of each family, about five seconds each; and what is known to be wrong.
CASES = {
    "single": 36, "shared": 12, "private": 15, "nested": 16, "lanes": 30, "constraints": 20,
    "writes": 15, "holds": 15, "may_hold": 6,
    "placement": 10, "curves": 20, "promises": 130, "explicit": 300, "mixed": 150,
    "log": 140,
}  # fmt: skip
KNOWN: dict[str, str] = {}


def _family(name: str) -> object:
    marks = []
    if name in KNOWN:
        marks.append(pytest.mark.xfail(strict=True, reason=f"issue 11, {KNOWN[name]}"))
    if name == "placement" and not can_place():
        marks.append(pytest.mark.skip(reason="the notation has no marks for placement"))
    return pytest.param(name, marks=marks)


@pytest.mark.parametrize("family", [_family(name) for name in FAMILIES])
def test_no_claim_is_false(family: str) -> None:
    lines = [draw(family, 0, number) for number in range(CASES[family])]
    faults = [(line, fault) for line in lines for fault in run(line).faults]
    assert faults == []


def test_a_case_is_drawn_again_from_its_seed() -> None:
    for family in FAMILIES:
        if family != "placement":
            assert draw(family, 3, 5) == draw(family, 3, 5)
            assert draw(family, 3, 5) != draw(family, 4, 5)


def test_orders_that_do_not_fit_a_scratchpad_are_no_witness() -> None:
    rates = "(('fp32', 1), ('fp16', 1), ('int8', 1))"
    line = (
        "logged(gemm(m=1, n=3, k=2, element_bytes=1), Arch('m', (Level('DRAM', 'memory', None, "
        "energy_pj_per_byte=1.0), Level('L2', 'cache', 6, bandwidth_bytes_per_s=3.0, "
        "energy_pj_per_byte=1.0), Level('L1', 'scratchpad', 5, bandwidth_bytes_per_s=1e6, "
        f"energy_pj_per_byte=20.0)), Compute('PE', 3, 1.0, 1.0, {rates}, "
        "energy_pj_per_mac=50.0)), ('energy', 'edp'))"
    )
    assert run(line).faults == ()


def test_what_raises_is_a_fault() -> None:
    (fault,) = run("searched(gemm(m=0, n=1, k=1), None)").faults
    assert fault.kind == "error"
    assert "ProblemError" in fault.detail


# The oracle itself --------------------------------------------------------------------


def test_chains_of_one_dimension() -> None:
    assert set(chains(4)) == {(4,), (4, 3), (4, 2), (4, 3, 2)}
    assert set(chains(2)) == {(2,)}


def test_every_sequence_of_loops_once() -> None:
    """Shuffles of M:4 with any of M:3 and M:2, and of K:3 with or without K:2."""
    problem = gemm(m=4, n=1, k=3)
    nests = list(all_nests(problem, []))
    by_hand = {
        order
        for m in [(4,), (4, 3), (4, 2), (4, 3, 2)]
        for k in [(3,), (3, 2)]
        for order in permutations([Loop("M", n) for n in m] + [Loop("K", n) for n in k])
        if [loop.extent for loop in order if loop.dim == "M"] == list(m)
        and [loop.extent for loop in order if loop.dim == "K"] == list(k)
    }
    assert len(nests) == len(set(nests)) == n_nests(problem, 0)
    assert set(nests) == by_hand


def _two_units() -> Arch:
    levels = (
        Level("DRAM", "memory", None),
        Level("L2", "scratchpad", 64, bandwidth_bytes_per_s=1.0),
        Level("L1", "cache", 32, instances=2, unit="SM", bandwidth_bytes_per_s=1.0),
    )
    return Arch("m", levels, Compute("PE", 4, 1.0, 1.0, (("fp32", 1),)))


def test_units_share_adjacent_loops_outer_units_outside() -> None:
    problem, arch = gemm(m=3, n=2, k=1), _two_units()
    assert units_of(problem, arch, reductions=False) == [("SM", ("M", "N")), ("PE", ("M", "N"))]
    found = {" ".join(map(str, nest)) for nest in all_nests(problem, units_of(problem, arch))}
    assert {"M:3@SM N:2@PE", "N:2@SM M:3@SM", "M:3@SM M:2@PE N:2@PE", "M:3 N:2@PE"} <= found
    assert not any(nest.find("@PE") < nest.find("@SM") for nest in found if "@PE" in nest)
    assert not {"M:3@SM N:2 M:2@SM"} & found


def test_a_unit_may_run_one_item_at_a_time() -> None:
    problem = gemm(m=3, n=1, k=2)
    units = [("SM", ("M", "N"))]
    found = {" ".join(map(str, nest)) for nest in all_nests(problem, units)}
    assert {"M:3 M:1@SM K:2", "M:3 K:2 M:1@SM", "M:3@SM M:3 K:2", "K:2 M:3@SM M:3"} <= found


def test_sums_are_shared_inside_scratchpads_only() -> None:
    problem, arch = gemm(m=2, n=2, k=2), _two_units()
    assert units_of(problem, arch) == [
        ("SM", ("M", "N", "K")),
        ("PE", ("M", "N")),
    ]


def test_blocks_hold_what_one_block_a_level_allows() -> None:
    """Of nests whose loops all go on, exactly those that `oracle_search` writes down."""
    problem = gemm(m=4, n=3, k=1)
    arch = _two_units()
    one_unit = Arch("m", arch.levels, Compute("SM", 2, 1.0, 1.0, (("fp32", 1),)))
    for machine in (buffer_arch(capacity_bytes=64), one_unit):
        nests = list(all_nests(problem, units_of(problem, machine)))
        blocks = blocks_of(problem, machine)
        inside = {
            nest for nest in nests if in_blocks(nest, blocks) and min(Schedule(nest).trips) > 1
        }
        assert inside == every_nest(problem, machine)
        assert len(slots_of(problem, machine)) == len(blocks_of(problem, machine))


def test_constraints_are_read_block_by_block() -> None:
    problem, arch = gemm(m=4, n=3, k=1), buffer_arch(capacity_bytes=64)
    blocks = blocks_of(problem, arch)

    def allowed(notation: str, **limits: object) -> bool:
        words = [word.split(":") for word in notation.split()]
        nest = tuple(Loop(dim, int(extent)) for dim, extent in words)
        return obeys(problem, nest, Constraints(**limits), blocks)  # type: ignore[arg-type]

    assert allowed("M:4 N:3 M:2", tiles="divisors")
    assert not allowed("M:4 N:3 M:3", tiles="divisors")
    assert not allowed("N:3 M:4 M:3", tiles="powers2")
    assert allowed("M:4 N:3", prefix="M:4")
    assert not allowed("M:4 N:3", prefix="N:3")
    assert not allowed("M:4 M:4 N:3", prefix="M:4")  # one iteration
    assert allowed("M:4 N:3 M:2", before=(("M", "N"),))  # N and the inner M in other blocks
    assert allowed("N:3 M:4", before=(("M", "N"),))
    assert not allowed("N:3 M:4 N:2 M:2", before=(("M", "N"),))
    assert allowed("M:4 N:3 M:2", extents=(("M", "buffer", 2, 2),))
    assert not allowed("M:4 N:3 M:2", extents=(("M", "buffer", 3, 3),))


def test_a_cache_of_no_bytes_passes_on_what_a_scratchpad_asks_for() -> None:
    rng = Random(5)
    n_fit = 0
    for _ in range(60):
        problem = build(problem_text(rng))
        nest, size = random_nest(rng, problem, None), body_bytes(rng, problem)
        placed = oracle.explicit(problem, nest, size, keeps="tile")
        passed = moved_behind(problem, nest, size, [0, 10**6])
        assert (placed is None) == (passed is None)
        if placed is not None and passed is not None:
            n_fit += 1
            once = sum(len(part) * t.element_bytes for t, part in _whole(problem))
            assert passed == [placed.total, once]
    assert n_fit > 30


def _whole(problem: Problem) -> list[tuple[Tensor, set[oracle.Element]]]:
    nest = Schedule(tuple(Loop(dim, size) for dim, size in problem.sizes))
    sets = oracle.touched(problem, (point for _, point in oracle.walk(problem, nest)))
    return [(tensor, sets[tensor.name]) for tensor in problem.tensors]
