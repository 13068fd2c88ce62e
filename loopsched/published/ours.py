"""What loopsched says of the kernels of reports 000 to 002: counts, and estimates of time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

from loopsched.gpu.counting import Profile, profile
from loopsched.gpu.estimate import estimate_kernel, estimate_steps
from loopsched.machines.arch import Arch
from loopsched.machines.arch_file import load_arch
from loopsched.published.presets import Steps, preset
from loopsched.published.result import Value

Options = tuple[tuple[str, int], ...]


@lru_cache(maxsize=256)
def steps_of(name: str, options: Options = ()) -> Steps:
    """Build a preset's kernels, once."""
    return preset(name, **dict(options))


@lru_cache(maxsize=8)
def machine(name: str) -> Arch:
    """Load an architecture, once."""
    return load_arch(name)


@lru_cache(maxsize=256)
def profile_of(name: str, options: Options, arch: str) -> Profile:
    """Count what a preset of one kernel does, once."""
    ((kernel, _),) = steps_of(name, options)
    return profile(kernel, machine(arch))


def _by(sizes: tuple[int, ...]) -> str:
    return " x ".join(map(str, sizes))


# What a line's `ours` may ask of a profile; the second word says what it is.
COUNTS: Mapping[str, tuple[Callable[[Profile], Value], str]] = {
    "grid": (lambda said: _by(said.grid), "count"),
    "block": (lambda said: _by(said.block), "count"),
    "warps": (lambda said: said.n_warps, "count"),
    "divergent_warps": (lambda said: said.divergent_warps, "count"),
    "divergence_percent": (lambda said: 100 * said.divergence, "count"),
    "load_sectors": (lambda said: said.load_sectors, "count"),
    "store_sectors": (lambda said: said.store_sectors, "count"),
    "load_sectors_per_request": (lambda said: said.sectors_per_load_request, "count"),
    "load_efficiency_percent": (lambda said: 100 * said.load_efficiency, "count"),
    "store_efficiency_percent": (lambda said: 100 * said.store_efficiency, "count"),
    "shared_load_wavefronts": (lambda said: said.total("wavefronts", "load", "shared"), "count"),
    "shared_store_wavefronts": (lambda said: said.total("wavefronts", "store", "shared"), "count"),
    "occupancy_percent": (lambda said: 100 * said.occupancy.share, "count"),
    "blocks_per_sm": (lambda said: said.occupancy.blocks, "count"),
    "warp_efficiency_percent": (lambda said: 100 * said.warp_efficiency, "estimate"),
    "l1_hit_percent": (lambda said: 100 * said.l1_hit, "estimate"),
    "l2_read_sectors": (lambda said: said.l2_read_sectors, "estimate"),
    "l2_write_sectors": (lambda said: said.l2_write_sectors, "count"),
}


def moved_bytes(said: Profile) -> int:
    """Bytes between L2 and DRAM, both ways."""
    return said.dram_read_bytes + said.dram_write_bytes


@lru_cache(maxsize=256)
def seconds_of(name: str, options: Options, arch: str) -> float:
    """Estimate the time of all launches of a preset."""
    return estimate_steps(steps_of(name, options), machine(arch)).time_s


def step_seconds(name: str, options: Options, arch: str, step: int) -> float:
    """Estimate the time of one launch of one of a preset's kernels, once it has begun."""
    kernel, _ = steps_of(name, options)[step]
    found = estimate_kernel(kernel, machine(arch))
    return found.time_s - dict(found.parts)["launch"]
