"""What a tuned library takes for an operation, whichever it is."""

from __future__ import annotations

from loopsched.base.errors import ProblemError
from loopsched.gpu.library.conv import conv_estimate
from loopsched.gpu.library.gemm import gemm_estimate
from loopsched.gpu.result import Estimate
from loopsched.machines.arch import Arch
from loopsched.problems.problem import Problem


def library_estimate(
    problem: Problem,
    arch: Arch,
    *,
    algorithm: str | None = None,
    data_type: str = "fp32",
    a_transposed: bool | None = None,
    b_transposed: bool | None = None,
) -> Estimate:
    """Estimate what a library takes for a GEMM or a convolution.

    Parameters
    ----------
    problem : Problem
        A `gemm`, a `batched_gemm` or a `conv2d` of any pass.
    arch : Arch
    algorithm : str, optional
        Of a convolution, in DeepBench's words; None: what the library would
        take.
    data_type : str
    a_transposed, b_transposed : bool, optional
        Of a product; None: as the problem says.

    Raises
    ------
    ProblemError
        If it is another kind of problem, or a product is given an algorithm.
    InputError, ArchError
        As `gemm_estimate` and `conv_estimate`.

    See Also
    --------
    gemm_estimate, conv_estimate

    Examples
    --------
    >>> from loopsched import gemm, load_arch
    >>> said = library_estimate(gemm(m=4096, n=4096, k=4096), load_arch("v100"))
    >>> 8.7e-3 < said.time_bound_s < said.time_s
    True
    """
    if problem.kind == "conv2d":
        return conv_estimate(problem, arch, algorithm=algorithm, data_type=data_type)
    if problem.kind not in ("gemm", "batched_gemm"):
        raise ProblemError(
            f"problem '{problem.name}': libraries are estimated for gemm, batched_gemm and conv2d, "
            f"not for {problem.kind} over {' '.join(problem.dims)}"
        )
    if algorithm is not None:
        raise ProblemError(f"problem '{problem.name}': algorithms are for convolutions only")
    stored = dict(problem.attributes)
    return gemm_estimate(
        problem,
        arch,
        data_type=data_type,
        a_transposed=bool(stored.get("transpose_a")) if a_transposed is None else a_transposed,
        b_transposed=bool(stored.get("transpose_b")) if b_transposed is None else b_transposed,
    )
