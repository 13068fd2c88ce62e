"""Estimated time of a mapped kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from loopsched.base.arguments import Checker, near, show
from loopsched.base.errors import InputError
from loopsched.gpu.bound import repeated_bound
from loopsched.gpu.counting import Profile, profile
from loopsched.gpu.instructions import instructions
from loopsched.gpu.kernel import Kernel
from loopsched.gpu.kernel_calibration import kernel_calibration
from loopsched.gpu.result import Estimate, estimate_of
from loopsched.gpu.timing import together, waves
from loopsched.machines.arch import Arch
from loopsched.machines.keys import is_positive
from loopsched.problems.footprint import problem_bytes

# L2 and DRAM move data while SMs work; the rows fitted on do not tell 2 from 8.
OVERLAP = 4

Caches = Literal["cold", "warm"]


def estimate_kernel(
    kernel: Kernel,
    arch: Arch,
    *,
    caches: Caches = "cold",
    clock_hz: float | None = None,
    found: Profile | None = None,
) -> Estimate:
    """Estimate the time of one launch of a kernel.

    Parameters
    ----------
    kernel : Kernel
    arch : Arch
        With a ``gpu`` part.
    caches : {'cold', 'warm'}
        What the kernel finds in L2: nothing of its data, as when it runs once;
        or what fits, as when the same launch is repeated.
    clock_hz : float or None, hertz
        Of the SMs; None: the machine's sustained clock.
    found : Profile or None
        What `profile` counted, if known already.

    Returns
    -------
    Estimate
        Its parts are seconds that each resource alone would take.

    Raises
    ------
    ArchError
        If the machine is not a GPU.
    InputError
        If no block fits on an SM, ``caches`` is neither word, or the clock is
        not above zero.

    See Also
    --------
    profile, estimate_steps, pick

    Notes
    -----
    See `loopsched.gpu.timing` for the model and docs/kernels.md for how far it
    is off.

    Examples
    --------
    >>> from loopsched import gemm, load_arch
    >>> kernel = Kernel.of(
    ...     gemm(m=1024, n=1024, k=1024),
    ...     "M:1024@block_y N:1024@block_x K:1024 M:32@thread_y N:32@thread_x K:32",
    ...     reads={"A": "shared@K", "B": "shared@K"},
    ...     guard="load",
    ...     is_unrolled=True,
    ... )
    >>> found = estimate_kernel(kernel, load_arch("h200"), caches="warm")
    >>> 150e-6 < found.time_s < 350e-6  # 241 us measured
    True
    """
    if caches not in ("cold", "warm"):
        raise InputError(f"caches {show(caches)}: unknown; {near(caches, ('cold', 'warm'))}")
    if clock_hz is not None and not is_positive(clock_hz):
        raise InputError(f"clock_hz is {show(clock_hz)}; a number above zero is needed")
    gpu = arch.kernel_limits
    calibration = kernel_calibration()
    found = profile(kernel, arch) if found is None else found
    work = instructions(kernel, found.accesses, found.fma_warp_instructions, gpu.warp_threads)
    clock = arch.compute.clock_hz if clock_hz is None else clock_hz
    parts: dict[str, float] = {}
    busy_s = 0.0
    for many, wave in waves(
        kernel, found, work, arch, issue=calibration.time.issue, is_cold=caches == "cold"
    ):
        busy_s += many * together(wave) / clock
        for name, cycles in wave.items():
            parts[name] = parts.get(name, 0.0) + many * cycles / clock
    parts["L2"], parts["DRAM"] = _beyond(kernel, found, arch, caches)
    parts["launch"] = calibration.time.launch * gpu.launch_s
    return estimate_of(
        _beside(busy_s, parts["L2"], parts["DRAM"]) + parts["launch"],
        kernel_bound(kernel, arch, found),
        tuple(parts.items()),
        kernel.name,
        calibration.spread,
    )


def estimate_steps(
    steps: Sequence[tuple[Kernel, int]],
    arch: Arch,
    *,
    caches: Caches = "cold",
    clock_hz: float | None = None,
) -> Estimate:
    """Estimate kernels that run one after another, each a number of times.

    Parameters
    ----------
    steps : sequence of (Kernel, int)
        As `loopsched.published.presets.preset` builds them.
    arch : Arch
    caches : {'cold', 'warm'}
        Of a kernel that is started once; one that is started again and again
        finds L2 warm.
    clock_hz : float or None, hertz

    Raises
    ------
    InputError
        If there are no steps, one runs less than once, or as `estimate_kernel`.

    See Also
    --------
    estimate_kernel, preset

    Examples
    --------
    >>> from loopsched import load_arch
    >>> from loopsched.published.presets import preset
    >>> said = estimate_steps(preset("layer_unroll", batch=100), load_arch("titan_v"))
    >>> said.kernel
    '100 x unroll, 100 x multiply'
    """
    if not steps:
        raise InputError("no kernels to estimate")
    check = Checker("steps", InputError)
    for kernel, many in steps:
        check.count(f"runs of '{kernel.name}'", many)
    check.finish()
    each = [
        estimate_kernel(kernel, arch, caches=kept_caches(caches, many), clock_hz=clock_hz)
        for kernel, many in steps
    ]
    return joined([(one, many) for one, (_, many) in zip(each, steps, strict=True)])


def kept_caches(caches: Caches, launches: int) -> Caches:
    """Say what a kernel finds: one that is started again and again finds L2 warm."""
    return caches if launches == 1 else "warm"


def joined(said: Sequence[tuple[Estimate, int]]) -> Estimate:
    """Add up estimates of kernels that run one after another, each a number of times."""
    if len(said) == 1 and said[0][1] == 1:
        return said[0][0]
    parts: dict[str, float] = {}
    for one, many in said:
        for name, seconds in one.parts:
            parts[name] = parts.get(name, 0.0) + many * seconds

    time_s, low_s, high_s, bound_s = (
        float(sum(many * getattr(one, field) for one, many in said))
        for field in ("time_s", "low_s", "high_s", "time_bound_s")
    )
    bound_by = max(parts, key=parts.__getitem__)
    kernel = ", ".join(f"{many} x {one.kernel}" for one, many in said)
    by, basis = tuple(parts.items()), said[0][0].basis
    return Estimate(time_s, low_s, high_s, bound_s, bound_by, by, kernel, basis)


def kernel_bound(kernel: Kernel, arch: Arch, found: Profile) -> float:
    """Seconds that no run of a kernel can beat, whatever is in its caches.

    Multiply-adds that it executes and that its problem has: padding that it
    skips does not count, nor do threads beyond the output.
    """
    macs = min(kernel.problem.macs, found.fma_thread_instructions)
    return repeated_bound(macs, problem_bytes(kernel.problem), arch, "fp32")[0]


def _beyond(kernel: Kernel, found: Profile, arch: Arch, caches: Caches) -> tuple[float, float]:
    """Seconds that L2 and DRAM alone would take."""
    gpu = arch.kernel_limits
    outer = arch.caches[0]
    inner = next((level for level in arch.caches[1:] if level.bandwidth_bytes_per_s), None)
    sectors = found.l2_read_sectors + found.l2_write_sectors
    l2_s = 0.0
    if inner is not None and inner.bandwidth_bytes_per_s is not None:
        l2_s = sectors * gpu.sector_bytes / inner.bandwidth_bytes_per_s
    moved = found.dram_read_bytes + found.dram_write_bytes
    if caches == "warm" and problem_bytes(kernel.problem) <= (outer.usable_bytes or 0):
        moved = 0
    bandwidth = (outer.bandwidth_bytes_per_s or math.inf) * gpu.dram_efficiency
    return l2_s, moved / bandwidth


def _beside(*seconds: float) -> float:
    """Join what goes on side by side: the longest counts, others where they come near it."""
    return float(sum(one**OVERLAP for one in seconds) ** (1 / OVERLAP))
