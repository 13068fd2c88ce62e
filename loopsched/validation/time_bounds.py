"""What no correct run can beat, and the plain roofline, of a library's operation."""

from __future__ import annotations

import math

from loopsched.arch import Arch
from loopsched.footprint import tensor_bytes
from loopsched.gpu.library.machine import CONVERTED
from loopsched.problem import Axis, Problem

_WINOGRAD = ("WINOGRAD", "WINOGRAD_NONFUSED")
# Outputs a tile has on each side: larger tiles lose too many digits in fp32.
_WINOGRAD_TILE = 6
_WINOGRAD_FILTERS = range(2, 6)
# Multiplications a frequency of a product of complex numbers, of which real images have half.
_FFT_MACS = 3 / 2


def time_bound(
    problem: Problem, arch: Arch, *, algorithm: str | None = None, data_type: str = "fp32"
) -> tuple[float, str]:
    """Bound the time of an operation that is run again and again.

    Parameters
    ----------
    problem : Problem
        A `conv2d` without groups or a `gemm`.
    arch : Arch
    algorithm : str, optional
        Of a convolution, in DeepBench's words; None: whichever multiplies
        least.
    data_type : str

    Returns
    -------
    (float, str)
        Seconds, and the resource.

    Notes
    -----
    The largest of: multiplications, those in the padding left out and
    transforms taken for nothing, at the highest clock; operands and result
    through L2 once, at its highest bandwidth; what of them cannot stay in L2
    from one run to the next, at the memory's.  Of all bytes D that a run
    touches, at most the capacity C is there when it starts, as reads or as
    lines yet to be written: on average D - C cross the memory's boundary.

    Examples
    --------
    >>> from loopsched import gemm, load_arch
    >>> time_bound(gemm(m=4096, n=4096, k=4096), load_arch("v100"))[1]
    'compute'
    >>> time_bound(gemm(m=8192, n=1, k=8192), load_arch("v100"))[1]
    'DRAM'
    """
    macs = least_macs(problem, algorithm)
    times = {"compute": macs / arch.compute.peak_macs_per_s(CONVERTED.get(data_type, data_type))}
    touched = operand_bytes(problem)
    warm = arch.caches[0].capacity_bytes or 0
    for outer, level in zip(arch.levels, arch.caches, strict=False):
        bandwidth = level.bound_bandwidth_bytes_per_s
        if bandwidth and outer is arch.memory:
            times[outer.name] = max(0, touched - warm) / bandwidth
        elif bandwidth:
            times[outer.name] = touched / bandwidth
    slowest = max(times, key=lambda name: times[name])
    return times[slowest], slowest


def roofline(problem: Problem, arch: Arch, *, data_type: str = "fp32") -> float:
    """Compute the plain roofline of the data sheet: an estimate, not a bound.

    The direct algorithm's operations at the peak rate, or operands and result
    once at the memory's bandwidth, whichever takes longer, in seconds.

    Examples
    --------
    >>> from loopsched import gemm, load_arch
    >>> problem = gemm(m=4096, n=4096, k=4096)
    >>> round(1e6 * roofline(problem, load_arch("v100")))
    8772
    """
    compute_s = problem.macs / arch.compute.peak_macs_per_s(CONVERTED.get(data_type, data_type))
    bandwidth = arch.caches[0].bandwidth_bytes_per_s
    return max(compute_s, operand_bytes(problem) / bandwidth if bandwidth else 0.0)


def operand_bytes(problem: Problem) -> int:
    """Count the bytes of operands and result that are touched, each once."""
    return sum(tensor_bytes(problem, tensor) for tensor in problem.tensors)


def least_macs(problem: Problem, algorithm: str | None = None) -> float:
    """Count the multiplications that an algorithm needs at least.

    Examples
    --------
    >>> from loopsched import conv2d, gemm
    >>> least_macs(gemm(m=4, n=3, k=2))
    24
    >>> image = conv2d(c=1, k=1, h=2, w=2, r=3, s=3, padding=1)
    >>> image.macs, least_macs(image, "IMPLICIT_GEMM")
    (36, 16)
    """
    if problem.kind != "conv2d":
        return problem.macs
    direct = _stored_macs(problem)
    sizes = problem.size
    filter_size = sizes["R"], sizes["S"]
    points = problem.macs // math.prod(filter_size)
    least: dict[str, float] = {}
    if dict(problem.attributes).get("stride") == (1, 1) and filter_size != (1, 1):
        least["FFT"] = _FFT_MACS * points
        if all(size in (1, *_WINOGRAD_FILTERS) for size in filter_size):
            tile = [_WINOGRAD_TILE + size - 1 for size in filter_size]
            least |= dict.fromkeys(_WINOGRAD, points * math.prod(tile) / _WINOGRAD_TILE**2)
    if algorithm is not None:
        return min(direct, least.get(algorithm, direct))
    return min([direct, *least.values()])


def _stored_macs(problem: Problem) -> int:
    """Count the points that multiply something stored, not padding."""
    image = next(tensor for tensor in problem.tensors if tensor.name == "input")
    macs = problem.macs
    for axis in image.axes:
        if axis.is_compound:
            every = math.prod(problem.size[dim] for dim in axis.dims)
            macs = macs // every * _stored(axis, problem.size)
    return macs


def _stored(axis: Axis, size: dict[str, int]) -> int:
    (outer, step), (inner, gap) = axis.terms
    if axis.size is None:
        return size[outer] * size[inner]
    total = 0
    for tap in range(size[inner]):
        first = axis.offset + gap * tap
        # Positions first, first + step, ...: those within [0, axis.size).
        low = max(0, -(first // step))
        high = min(size[outer] - 1, (axis.size - 1 - first) // step)
        total += max(0, high - low + 1)
    return total
