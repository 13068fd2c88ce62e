"""Builders of problems, by the usual names of their parameters.

Matrix products are built here; `conv2d` comes from `convolution`, `einsum`
and `affine`, for everything else, from `projections`.
"""

from __future__ import annotations

from loopsched.base.arguments import DATA_TYPE_BYTES, Checker
from loopsched.base.errors import ProblemError
from loopsched.problems.convolution import PASSES, conv2d
from loopsched.problems.problem import Problem, Tensor
from loopsched.problems.projections import ElementBytes, affine, einsum, plain

__all__ = ["DATA_TYPE_BYTES", "PASSES", "affine", "batched_gemm", "conv2d", "einsum", "gemm"]


def gemm(
    *,
    m: int,
    n: int,
    k: int,
    transpose_a: bool = False,
    transpose_b: bool = False,
    element_bytes: ElementBytes = 4,
    name: str | None = None,
) -> Problem:
    """Build a GEMM ``C[M,N] += A[M,K] * B[K,N]``.

    Parameters
    ----------
    m, n, k : int
        Rows and columns of the output; length of the reduction.
    transpose_a, transpose_b : bool
        Whether A is stored as [K,M], B as [N,K].
    element_bytes : int, data type or mapping of tensor name to either
        Stored size of an element: 4, ``"fp16"``, ``{"A": 2, "C": "fp32"}``.
    name : str, optional
        By default the sizes and transposes.

    Returns
    -------
    Problem
        Dimensions M N K; tensors A, B, C.

    Raises
    ------
    ProblemError
        With every fault found.

    See Also
    --------
    batched_gemm, conv2d, einsum

    Examples
    --------
    >>> problem = gemm(m=1760, n=128, k=1760, transpose_b=True)
    >>> problem.name, problem.macs, problem.tensor("B").dims
    ('m1760 n128 k1760 nt', 396492800, ('N', 'K'))
    """
    check = Checker("gemm", ProblemError)
    sizes = {"M": check.count("m", m), "N": check.count("n", n), "K": check.count("k", k)}
    return _matmul(check, "gemm", sizes, transpose_a, transpose_b, element_bytes, name)


def batched_gemm(
    *,
    batch: int,
    m: int,
    n: int,
    k: int,
    transpose_a: bool = False,
    transpose_b: bool = False,
    element_bytes: ElementBytes = 4,
    name: str | None = None,
) -> Problem:
    """Build ``batch`` independent GEMMs of one shape.

    Parameters and errors are those of `gemm`, with ``batch``, an axis of all three
    tensors, in front.

    Returns
    -------
    Problem
        Dimensions B M N K; tensors A, B, C.

    See Also
    --------
    gemm, einsum

    Examples
    --------
    >>> problem = batched_gemm(batch=12, m=384, n=384, k=64, transpose_b=True)
    >>> problem.name, problem.tensor("B").dims
    ('b12 m384 n384 k64 nt', ('B', 'N', 'K'))
    """
    check = Checker("batched_gemm", ProblemError)
    sizes = {
        "B": check.count("batch", batch),
        "M": check.count("m", m),
        "N": check.count("n", n),
        "K": check.count("k", k),
    }
    return _matmul(check, "batched_gemm", sizes, transpose_a, transpose_b, element_bytes, name)


def _matmul(
    check: Checker,
    kind: str,
    sizes: dict[str, int],
    transpose_a: bool,
    transpose_b: bool,
    element_bytes: ElementBytes,
    name: str | None,
) -> Problem:
    a = check.flag("transpose_a", transpose_a)
    b = check.flag("transpose_b", transpose_b)
    widths = check.element_bytes(element_bytes, ("A", "B", "C"))
    order = f"{'t' if a else 'n'}{'t' if b else 'n'}"
    default = " ".join(f"{dim.lower()}{size}" for dim, size in sizes.items())
    title = check.name(name, default if order == "nn" else f"{default} {order}")
    check.finish()
    outer = ("B",) if "B" in sizes else ()
    indices = {
        "A": (*outer, *(("K", "M") if a else ("M", "K"))),
        "B": (*outer, *(("N", "K") if b else ("K", "N"))),
        "C": (*outer, "M", "N"),
    }
    tensors = tuple(Tensor(one, plain(*dims), widths[one]) for one, dims in indices.items())
    attributes = (("transpose_a", a), ("transpose_b", b))
    return Problem(title, tuple(sizes.items()), tensors, "C", kind, attributes)
