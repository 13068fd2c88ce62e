"""How problems meet machines: roles, rooms, units and data types."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loopsched.base.errors import ArchError
from loopsched.machines.arch import Arch, buffer_arch
from loopsched.machines.arch_file import load_arch
from loopsched.machines.levels import Compute, Level
from loopsched.models.machine import (
    data_type_of,
    instances_inside,
    nested_units,
    own_units,
    roles,
    room_of,
)
from loopsched.models.score import evaluate
from loopsched.models.traffic import Room
from loopsched.nests.notation import parse_schedule
from loopsched.problems.builders import affine, conv2d, einsum, gemm

CONV = {"c": 4, "k": 4, "p": 4, "q": 4, "r": 3, "s": 3}


def machine(*levels: Level, units: int = 4, rates: dict[str, int] | None = None) -> Arch:
    compute = Compute("core", units, 1e9, 1e9, tuple((rates or {"fp32": 8}).items()))
    return Arch("machine", (Level("DRAM", "memory", None), *levels), compute)


def cache(name: str, capacity: int, instances: int = 1, unit: str | None = None) -> Level:
    return Level(name, "cache", capacity, instances, unit, bandwidth_bytes_per_s=1e9)


@pytest.mark.parametrize(
    ("pass_", "expected"),
    [
        ("forward", {"input": "input", "weight": "weight", "output": "output"}),
        ("backward_data", {"output": "input", "weight": "weight", "input": "output"}),
        ("backward_weights", {"input": "input", "output": "weight", "weight": "output"}),
    ],
)
def test_roles_follow_what_is_written(pass_: str, expected: dict[str, str]) -> None:
    problem = conv2d(**CONV, pass_=pass_)
    assert {t.name: roles(problem, t)[1] for t in problem.tensors} == expected
    buffers = Level(
        "buffers",
        "scratchpad",
        999,
        1,
        None,
        1e9,
        tensor_capacity_bytes=(("input", 10), ("weight", 20), ("output", 30)),
    )
    sizes = {"input": 10, "weight": 20, "output": 30}
    room = dict(room_of(problem, buffers).own_bytes)
    assert room == {name: sizes[role] for name, role in expected.items()}
    one = replace(buffers, tensor_capacity_bytes=(), holds=("output",))
    assert room_of(problem, one).held(problem) == (problem.output_tensor,)


def test_other_names_and_roles_both_count() -> None:
    problem = gemm(m=2, n=2, k=2)
    found = [roles(problem, tensor) for tensor in problem.tensors]
    assert found == [("A", "input"), ("B", "weight"), ("C", "output")]


def test_every_operand_but_the_first_is_a_weight() -> None:
    problem = einsum("ij,jk,kl->il", sizes={"i": 2, "j": 2, "k": 2, "l": 2})
    found = [roles(problem, tensor)[1] for tensor in problem.tensors]
    assert found == ["input", "weight", "weight", "output"]


def test_rooms() -> None:
    problem = gemm(m=4, n=4, k=4)
    assert room_of(problem, cache("L1", 1024)) == Room(1024)
    useful = Level("L2", "cache", 60, bandwidth_bytes_per_s=1e9, effective_capacity_bytes=30)
    assert room_of(problem, useful) == Room(30)
    weights = Level("L1", "cache", 64, bandwidth_bytes_per_s=1e9, holds=("weight",))
    assert room_of(problem, weights) == Room(64, (), frozenset({"A", "C"}))
    by_name = Level("L1", "cache", 64, bandwidth_bytes_per_s=1e9, holds=("A", "output"))
    assert room_of(problem, by_name) == Room(64, (), frozenset({"B"}))
    buffers = load_arch("diannao").caches[0]
    room = room_of(problem, buffers)
    assert dict(room.own_bytes) == {"A": 2048, "B": 32768, "C": 2048}
    assert room.passing == frozenset()


def test_an_own_buffer_counts_for_its_tensor_alone() -> None:
    room = Room(10, (("A", 6),))
    assert room.fits({"A": 6, "B": 5, "C": 5})
    assert not room.fits({"A": 7, "B": 1})
    assert not room.fits({"A": 1, "B": 5, "C": 6})


def test_the_memory_is_no_room() -> None:
    arch = buffer_arch(capacity_bytes=64)
    with pytest.raises(ArchError, match="level 'DRAM' has no capacity for tensor 'A'"):
        room_of(gemm(m=2, n=2, k=2), arch.memory)


def test_units_of_a_machine_with_three_kinds() -> None:
    """12 SMs in 4 clusters; each SM computes with 2 cores."""
    arch = machine(
        cache("L3", 4096),
        cache("L2", 2048, 4, "cluster"),
        cache("L1", 1024, 12, "SM"),
        units=24,
    )
    assert nested_units(arch) == {"cluster": 4, "SM": 3, "core": 2}
    assert list(nested_units(arch)) == ["cluster", "SM", "core"]
    shared, middle, inner = arch.caches
    assert own_units(arch, shared) == frozenset()
    assert own_units(arch, middle) == {"cluster"}
    assert own_units(arch, inner) == {"cluster", "SM"}
    assert instances_inside(arch, shared) == {"cluster": 4, "SM": 3, "core": 2}
    assert instances_inside(arch, middle) == {"SM": 3, "core": 2}
    assert instances_inside(arch, inner) == {"core": 2}


def test_lanes_are_the_innermost_unit() -> None:
    arch = load_arch("titan_v")
    assert nested_units(arch, 64) == {"SM": 80, "lane": 64}
    assert own_units(arch, arch.level("L1")) == {"SM"}
    assert instances_inside(arch, arch.level("L1"), 64) == {"lane": 64}


@pytest.mark.parametrize(
    ("rates", "width", "expected"),
    [
        ({"fp32": 1, "fp16": 2, "bf16": 2, "int8": 4, "fp8": 4}, 1, "int8"),
        ({"fp32": 1, "fp16": 2, "bf16": 2, "int8": 4, "fp8": 4}, 2, "fp16"),
        ({"fp32": 1, "fp16": 2}, 4, "fp32"),
        ({"fp32": 1, "bf16": 2}, 2, "bf16"),
        ({"tf32": 8, "fp16": 16}, 4, "tf32"),
        ({"fp32": 1, "fp8": 4}, 1, "fp8"),
        ({"fp32": 1}, 1, "fp32"),  # no narrower rate: converted
        ({"fp32": 1, "bf16": 2}, 1, "bf16"),
    ],
)
def test_data_type_of_the_widest_input(rates: dict[str, int], width: int, expected: str) -> None:
    arch = machine(cache("L1", 1024), rates=rates)
    problem = gemm(m=2, n=2, k=2, element_bytes=width)
    assert data_type_of(problem, arch) == expected
    wide_output = problem.with_element_bytes({"C": 8})
    assert data_type_of(wide_output, arch) == expected
    narrow_input = problem.with_element_bytes({"A": 1})
    assert data_type_of(narrow_input, arch) == expected


def test_a_machine_that_is_too_narrow() -> None:
    arch = machine(cache("L1", 1024), rates={"bf16": 2})
    with pytest.raises(ArchError, match=r"no rate for elements of 4 bytes \(it has: bf16\)"):
        data_type_of(gemm(m=2, n=2, k=2), arch)


def test_a_level_of_strange_tensors_is_refused() -> None:
    # Timeloop's names: such a level kept nothing, and the search called the rest proven best.
    strange = replace(cache("L1", 1024), holds=("Inputs", "Outputs"))
    problem = conv2d(c=2, k=2, h=4, w=4, r=1, s=1)
    with pytest.raises(ArchError, match=r"'L1' holds 'Inputs', which '.*' lacks; did you"):
        room_of(problem, strange)
    assert room_of(problem, replace(strange, holds=("Inputs", "weight"))).passing
    alone = affine(sizes={"M": 4}, tensors={"x": "M", "y": "M"})
    assert room_of(alone, replace(strange, holds=("weight",))).passing == {"x", "y"}


def test_the_only_unit_does_not_own_the_shared_level() -> None:
    """Items of a machine with one unit find what earlier ones left in the shared cache."""
    compute = Compute("SM", 1, 1e9, 1e9, (("fp32", 1),))
    cache = Level("L2", "cache", 1024, bandwidth_bytes_per_s=1e9)
    levels = (Level("DRAM", "memory", None), cache)
    arch = Arch("one", levels, compute)
    assert own_units(arch, levels[1]) == frozenset()
    problem = gemm(m=4, n=4, k=4)
    nest = parse_schedule("M:4@SM N:4 K:4", problem)
    assert evaluate(problem, nest, arch).levels[0].tensors["B"].read_bytes.high == 4 * 16


def test_an_output_alone_gives_the_data_type() -> None:
    level = Level("L1", "cache", 1024, bandwidth_bytes_per_s=1e9)
    fast = machine(level, rates={"fp16": 16, "fp32": 8})
    assert data_type_of(affine({"M": 4}, {"C": "M"}, element_bytes=2), fast) == "fp16"
    assert data_type_of(affine({"M": 4}, {"C": "M"}, element_bytes=4), fast) == "fp32"
