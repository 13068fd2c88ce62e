"""Matrix products of tuned libraries: cuBLAS-class kernels, the fastest of a tile set."""

from __future__ import annotations

from dataclasses import replace

from loopsched.base.errors import ProblemError, nearest
from loopsched.gpu.bound import repeated_bound
from loopsched.gpu.library.calibration import calibration, product_spread
from loopsched.gpu.library.machine import Machine, element_bytes, machine_of, output_bytes
from loopsched.gpu.library.pipelined import pipelined, pipelined_spread, pipelined_time
from loopsched.gpu.library.product import Product, Run, Timed
from loopsched.gpu.library.tiles import LIBRARIES
from loopsched.gpu.library.wave import tiled_time
from loopsched.gpu.result import Estimate, estimate_of
from loopsched.machines.arch import Arch
from loopsched.problems.footprint import tensor_bytes
from loopsched.problems.problem import Problem


def gemm_estimate(
    problem: Problem,
    arch: Arch,
    *,
    data_type: str = "fp32",
    a_transposed: bool = False,
    b_transposed: bool = False,
    library: str | None = None,
) -> Estimate:
    """Estimate the time of a library's GEMM, repeated on warm data.

    Where the architecture's ``library`` is ``ampere``, GEMMs on tensor cores are those of a
    network: B is one of five layers' weights, which take turns. With ``fp8``, A comes in 16
    bits and is scaled down first, as library calls do.

    Parameters
    ----------
    problem : Problem
        A `gemm` or `batched_gemm`; the output is taken to be added to.
    arch : Arch
    data_type : str
        As in the architecture's rates; or ``fp16_as_fp32``: stored as fp16,
        computed as fp32 without tensor cores.
    a_transposed, b_transposed : bool
        As in BLAS, for column-major matrices (DeepBench's a_t, b_t).  A
        transposed A is contiguous along K and streams more slowly; B has no
        measurable effect.
    library : str, optional
        ``volta``, ``maxwell`` or ``half``; on tensor cores ``tensor`` or
        ``ampere``.  By default what suits architecture and data type.

    Raises
    ------
    ProblemError
        If it is another kind of problem, or another library.
    InputError
        If no tile of the library fits on an SM.
    ArchError
        If the architecture is not a GPU or lacks the data type.

    See Also
    --------
    library_estimate, tiled_gemm, pick

    Examples
    --------
    >>> from loopsched import gemm, load_arch
    >>> found = gemm_estimate(gemm(m=7680, n=16, k=2560), load_arch("v100"))
    >>> found.time_bound_s < found.low_s < found.time_s < found.high_s
    True
    >>> 100e-6 < found.time_s < 130e-6  # measured: 116 us
    True
    """
    machine = machine_of(arch, data_type)
    product = product_of(problem, data_type, a_transposed)
    touched = product.a_bytes + product.b_bytes + product.c_bytes
    bound_s, _ = repeated_bound(problem.macs, touched, arch, data_type)
    chosen = _library(library, arch.kernel_limits.library, machine, data_type)
    measured_as = machine.gpu.measured_as
    found: Run | Timed
    if chosen == _PIPELINED:
        found = pipelined_time(product, machine, pipelined(), scales=data_type == "fp8")
        like = pipelined_spread(measured_as, data_type)
    else:
        tiles, splits = LIBRARIES[chosen].tiles, LIBRARIES[chosen].splits
        fitted = calibration("fp32" if machine.on_lanes else "fp16")
        found = tiled_time(product, tiles, machine, fitted, splits=splits)
        like = product_spread(measured_as, data_type)
    if product.batch > 1:
        like = product_spread("none", "none")
        like = replace(like, basis="no batched GEMM was measured; the widest interval")
    return estimate_of(found.time_s, bound_s, found.parts, found.kernel, like)


def product_of(problem: Problem, data_type: str, a_transposed: bool = False) -> Product:
    """Take a matrix product's sizes and bytes; refuse another kind of problem.

    Operands are stored as the data type is; the output, if the problem says
    that it is wider, as it says.

    Examples
    --------
    >>> from loopsched import gemm
    >>> product_of(gemm(m=64, n=32, k=16), "fp16").a_bytes
    2048
    """
    sizes = problem.size
    if set(sizes) not in ({"M", "N", "K"}, {"B", "M", "N", "K"}):
        raise ProblemError(
            f"problem '{problem.name}': a gemm or batched_gemm is needed, "
            f"not {problem.kind} over {' '.join(problem.dims)}"
        )
    problem = stored_as(problem, data_type)
    tensors = [problem.tensor(name) for name in "ABC"]
    a, b, c = (tensor_bytes(problem, tensor) for tensor in tensors)
    m, n, k = (sizes[dim] for dim in "MNK")
    width = tensors[0].element_bytes
    return Product(m, n, k, sizes.get("B", 1), a, b, c, width, is_strided=a_transposed)


def stored_as(problem: Problem, data_type: str) -> Problem:
    """Give a matrix product's tensors the widths that a data type has in memory.

    Examples
    --------
    >>> from loopsched import gemm
    >>> [tensor.element_bytes for tensor in stored_as(gemm(m=8, n=8, k=8), "int8").tensors]
    [1, 1, 4]
    """
    now = problem.tensor("A").element_bytes
    width = element_bytes(data_type, now)
    if width == now:
        return problem
    out = output_bytes(width, data_type)
    return problem.with_element_bytes({"A": width, "B": width, "C": out})


_PIPELINED = "ampere"


def _library(name: str | None, usual: str, machine: Machine, data_type: str) -> str:
    if name is not None:
        of_tensor = ("tensor", _PIPELINED)
        runs = [one for one in LIBRARIES if one not in of_tensor] if machine.on_lanes else of_tensor
        if name not in runs:
            where = "SIMT lanes" if machine.on_lanes else "tensor cores"
            raise ProblemError(
                f"no library '{name}' for {data_type} on {where}; {nearest(str(name), runs)}"
            )
        return name
    if not machine.on_lanes:
        return _PIPELINED if usual == _PIPELINED else "tensor"
    if data_type == "fp16_as_fp32":
        return "half"
    return "volta" if usual == _PIPELINED else usual
