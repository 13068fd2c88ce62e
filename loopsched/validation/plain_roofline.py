"""The plain roofline of an operation: what estimates are compared with."""

from __future__ import annotations

from loopsched.gpu.library.machine import CONVERTED
from loopsched.machines.arch import Arch
from loopsched.problems.footprint import tensor_bytes
from loopsched.problems.problem import Problem


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
