"""The ``gpu`` part of architecture files."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

from loopsched.base.errors import ArchError
from loopsched.machines.arch import buffer_arch
from loopsched.machines.arch_file import arch_from_dict, arch_names, arch_to_dict, load_arch
from loopsched.machines.gpu_limits import GPU_KEYS

GPUS = [name for name in arch_names() if load_arch(name).gpu is not None]


def changed(key: str, value: object) -> dict[str, Any]:
    data = copy.deepcopy(arch_to_dict(load_arch("titan_v")))
    data["gpu"][key] = value
    return data


def test_every_gpu_has_one_with_sources() -> None:
    cpus = {name for name in arch_names() if load_arch(name).cpu is not None}
    assert set(arch_names()) - set(GPUS) - cpus == {"diannao", "titan_v_report_003"}
    for name in GPUS:
        gpu = load_arch(name).kernel_limits
        cited = {key for key, _ in gpu.sources}
        assert cited >= {entry.key for entry in GPU_KEYS if entry.required}, name


def test_titan_v_is_what_report_000_lists() -> None:
    gpu = load_arch("titan_v").kernel_limits  # report 000, Figures 6 to 8
    assert (gpu.max_threads, gpu.max_block_threads, gpu.max_warps) == (2048, 1024, 64)
    assert (gpu.shared_bytes, gpu.constant_bytes, gpu.registers) == (98304, 65536, 65536)
    assert (gpu.shared_latency, gpu.l1_latency, gpu.l2_latency) == (19, 28, 193)
    assert gpu.dram_latency == 375


@pytest.mark.parametrize("name", GPUS)
def test_round_trip(name: str) -> None:
    arch = load_arch(name)
    again = arch_from_dict(arch_to_dict(arch))
    assert again == arch
    assert again.digest == arch.digest


def test_digest_depends_on_numbers_not_on_sources() -> None:
    arch = load_arch("titan_v")
    plain = arch_from_dict(changed("launch", "3 us"))
    assert plain.digest == arch.digest
    assert arch_from_dict(changed("launch", "4 us")).digest != arch.digest
    assert buffer_arch(capacity_bytes=1024).gpu is None


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("threads", 0, r"gpu\.threads: must be a whole number >= 1, not 0"),
        ("threads", "2 KiB", r"gpu\.threads: must be a whole number"),
        ("shared", "96", r"gpu\.shared: '96' has no unit"),
        ("launch", "3 cycles", r"gpu\.launch: .*3 cycles"),
        ("dram_efficiency", 1.2, r"gpu\.dram_efficiency: .* at most 1, not 1\.2"),
        ("dram_efficiency", True, r"gpu\.dram_efficiency: .* at most 1, not True"),
        ("l2_latncy", "193 cycles", r"unknown key 'l2_latncy'; did you mean 'l2_latency'"),
    ],
)
def test_faults_name_place_and_what_is_allowed(key: str, value: object, message: str) -> None:
    with pytest.raises(ArchError, match=message):
        arch_from_dict(changed(key, value))


def test_all_that_is_missing_is_named_at_once() -> None:
    data = arch_to_dict(load_arch("titan_v"))
    data["gpu"] = {"schedulers": 4}
    with pytest.raises(ArchError) as caught:
        arch_from_dict(data)
    missing = [entry.key for entry in GPU_KEYS if entry.required and entry.key != "schedulers"]
    for key in missing:
        assert f"gpu.{key}: " in str(caught.value)


@pytest.mark.parametrize("key", [entry.key for entry in GPU_KEYS if entry.along is not None])
def test_variations(key: str) -> None:
    arch = load_arch("titan_v")
    field = next(entry.field for entry in GPU_KEYS if entry.key == key)
    before = getattr(arch.kernel_limits, field)
    half = getattr(arch.scaled(f"gpu.{key}", 0.5).kernel_limits, field)
    assert half == pytest.approx(before / 2)
    assert getattr(arch.with_value(f"gpu.{key}", half).kernel_limits, field) == half


def test_more_shared_memory_raises_what_a_block_may_have() -> None:
    gpu = load_arch("titan_v").scaled("gpu.shared", 2).kernel_limits
    assert (gpu.max_block_shared_bytes, gpu.l1_bytes) == (2 * 98304, 2 * 131072)


def test_a_share_stays_a_share() -> None:
    arch = load_arch("titan_v")
    share = arch.kernel_limits.dram_efficiency
    assert 0.5 < share < 1
    assert arch.scaled("gpu.dram_efficiency", 3).kernel_limits.dram_efficiency == 1.0
    # Nothing at all is what a machine may leave unknown, but not what it has to say.
    assert replace(arch.kernel_limits, merged_share=0.0).merged_share == 0
    with pytest.raises(ArchError, match="dram_efficiency must be above zero"):
        replace(arch.kernel_limits, dram_efficiency=0.0)


def test_a_machine_without_the_part_says_so() -> None:
    arch = load_arch("diannao")
    with pytest.raises(ArchError, match="'diannao' has no 'gpu' part"):
        _ = arch.kernel_limits
    with pytest.raises(ArchError, match=r"has no 'gpu\.l2_latency'"):
        arch.scaled("gpu.l2_latency", 2)


def test_words_are_checked() -> None:
    assert load_arch("m40").kernel_limits.library == "maxwell"
    assert load_arch("m40").scaled("gpu.launch", 2).kernel_limits.library == "maxwell"
    with pytest.raises(ArchError, match=r"gpu\.library: unknown 'maxwel'; did you mean 'maxwell'"):
        arch_from_dict(changed("library", "maxwel"))
