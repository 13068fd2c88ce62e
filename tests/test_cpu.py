"""The ``cpu`` part of architecture files."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from loopsched.base.errors import ArchError
from loopsched.machines.arch import Arch, buffer_arch
from loopsched.machines.arch_file import arch_from_dict, arch_schema, arch_to_dict, load_arch
from loopsched.machines.cpu import CPU_KEYS, FEATURES, MODELS, Cpu
from loopsched.machines.levels import Level

PART: dict[str, Any] = {
    "isa": "x86-64",
    "model": {"value": "znver4", "source": "here"},
    "features": ["avx2", "fma", "avx512f"],
    "vector": "64 B",
    "vector_registers": 32,
    "fma_per_cycle": 1,
    "fma_latency": {"value": "4 cycles", "source": "there"},
    "load_per_cycle": 1,
    "page": "4 KiB",
    "tlb_entries": 3072,
}


def data_with(**changes: object) -> dict[str, Any]:
    data = copy.deepcopy(arch_to_dict(buffer_arch(capacity_bytes=1024)))
    data["cpu"] = {key: value for key, value in (PART | changes).items() if value is not None}
    return data


def machine(**changes: object) -> Arch:
    return arch_from_dict(data_with(**changes))


def test_what_a_file_says_is_what_python_has() -> None:
    cpu = machine().code_limits
    assert cpu == Cpu(
        *("x86-64", 64, 32, 1, 4.0, 1, 4096, 3072, ("avx2", "fma", "avx512f"), "znver4"),
        sources=(("model", "here"), ("fma_latency", "there")),
    )
    bare = machine(model=None, tlb_entries=None, features=["avx512f"]).code_limits
    assert (bare.model, bare.tlb_entries) == (None, None)


@pytest.mark.parametrize("changes", [{}, {"model": None, "tlb_entries": None}])
def test_round_trip_and_schema(changes: dict[str, None]) -> None:
    arch = machine(**changes)
    written = arch_to_dict(arch)
    jsonschema.validate(written, arch_schema())
    assert arch_from_dict(written) == arch
    sourced = {"value": ["avx512f"], "source": "/proc/cpuinfo"}
    again = machine(features=sourced)
    assert ("features", "/proc/cpuinfo") in again.code_limits.sources
    assert arch_to_dict(again)["cpu"]["features"] == sourced


def test_digest_depends_on_numbers_not_on_sources() -> None:
    arch = machine()
    assert machine(model="znver4").digest == arch.digest
    assert machine(fma_latency="5 cycles").digest != arch.digest
    assert replace(arch, cpu=None).digest == buffer_arch(capacity_bytes=1024).digest
    level = arch.levels[1]
    with_ways = replace(arch, levels=(arch.levels[0], replace(level, kind="cache", ways=8)))
    without = replace(arch, levels=(arch.levels[0], replace(level, kind="cache")))
    assert with_ways.digest != without.digest


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"isa": "x86_64"}, r"cpu\.isa: unknown 'x86_64'; did you mean 'x86-64'"),
        ({"model": "znver44"}, r"cpu\.model: unknown 'znver44'; did you mean 'znver4'"),
        ({"model": "neoverse-n1"}, "model 'neoverse-n1' is not of x86-64"),
        (
            {"features": ["avx512f", "avx512_bf16"]},
            "features: unknown 'avx512_bf16'; did you mean 'avx512bf16'",
        ),
        ({"features": ["avx512f", "neon"]}, "feature 'neon' is not one of x86-64"),
        ({"features": ["fma", "fma", "avx512f"]}, "features names 'fma' twice"),
        ({"features": ["fma", "avx"]}, "vectors of 64 bytes need 'avx512f'"),
        ({"features": "fma"}, r"cpu\.features: must be a list of names, not 'fma'"),
        ({"vector": "48 B"}, "vectors of x86-64 have 16 32 64 bytes, not 48"),
        ({"vector": None}, r"cpu\.vector: is missing"),
        ({"fma_per_cycle": 0}, r"cpu\.fma_per_cycle: must be a whole number >= 1, not 0"),
        ({"tlb_entrys": 8}, "unknown key 'tlb_entrys'; did you mean 'tlb_entries'"),
    ],
)
def test_faults_name_place_and_what_is_allowed(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ArchError, match=message):
        machine(**changes)


def test_arm_vectors() -> None:
    neon = {"isa": "aarch64", "model": "neoverse-v1", "features": ["neon"], "vector": "16 B"}
    assert machine(**neon).code_limits.lanes(4) == 4
    with pytest.raises(ArchError, match="vectors of 32 bytes need 'sve'"):
        machine(**neon | {"vector": "32 B"})
    wide = machine(**neon | {"vector": "32 B", "features": ["neon", "sve"]})
    assert wide.code_limits.lanes(2) == 16


@pytest.mark.parametrize(("latency", "a_cycle", "sums"), [(4, 2, 8), (4.5, 1, 5), (5, 1, 5)])
def test_independent_sums(latency: float, a_cycle: int, sums: int) -> None:
    cpu = replace(machine().code_limits, fma_latency=latency, fma_per_cycle=a_cycle)
    assert cpu.independent_sums == sums


@pytest.mark.parametrize("key", [entry.key for entry in CPU_KEYS if entry.along is not None])
def test_variations(key: str) -> None:
    arch = machine(fma_per_cycle=2, load_per_cycle=2)
    field = next(entry.field for entry in CPU_KEYS if entry.key == key)
    half = arch.scaled(f"cpu.{key}", 0.5)
    assert getattr(half.code_limits, field) == getattr(arch.code_limits, field) / 2
    assert arch.with_value(f"cpu.{key}", half.value(f"CPU.{key}")).cpu == half.cpu
    assert f"cpu.{key}" in arch.keys


def test_a_machine_without_the_part_says_so() -> None:
    with pytest.raises(ArchError, match="'diannao' has no 'cpu' part"):
        _ = load_arch("diannao").code_limits
    with pytest.raises(ArchError, match=r"has no 'cpu\.fma_latency'"):
        load_arch("diannao").scaled("cpu.fma_latency", 2)


def test_a_level_may_not_take_the_name_of_the_part() -> None:
    levels = (Level("DRAM", "memory", None), Level("cpu", "cache", 64, bandwidth_bytes_per_s=1.0))
    plain = replace(buffer_arch(capacity_bytes=64), levels=levels)
    with pytest.raises(ArchError, match="the name 'cpu' is taken"):
        replace(plain, cpu=machine().cpu)


def test_ways_are_those_of_a_cache() -> None:
    assert Level("L1", "cache", 64, line_bytes=8, ways=2).ways == 2
    with pytest.raises(ArchError, match="ways are those of a cache, not of a scratchpad"):
        Level("L1", "scratchpad", 64, ways=2)


def test_names_are_those_that_llvm_knows() -> None:
    """LLVM warns of unknown names on standard error; llvmlite gives what a target knows."""
    llvm = pytest.importorskip("llvmlite.binding")
    llvm.initialize_all_targets()
    host = set(llvm.get_host_cpu_features())
    for isa, names in FEATURES.items():
        if ("avx2" if isa == "x86-64" else "neon") in host:
            assert set(names) <= host
    assert set(MODELS) == set(FEATURES)
