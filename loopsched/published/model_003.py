"""Report 003's model of a Titan V: compute time, or Yalsa's bandwidth times it.

The report predicts ``FLOPs / 18.7e12``, and lengthens that by the bandwidth
that the untiled loop nest asks of DRAM, over 630 GB/s.  Its conventions, found
out from its printed predictions, are kept: bytes a cycle are cut to a whole
number before anything else, GiB are compared with GB, and the loops run over
the image as it is stored, whatever the padding.  It is a reproduction for
comparison, not a recommendation: for a matrix product it asks for some 55 TB/s
as soon as a row of the weights is larger than the cache.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from loopsched.base.errors import ProblemError
from loopsched.models.float32 import single, wrap_int32
from loopsched.problems.problem import Problem
from loopsched.published.yalsa import yalsa_volume

# Outermost first; the report's N P Q K S R C, and N C K in its letters for a product.
_LOOP_ORDERS = {"conv2d": "N P Q K S R C", "gemm": "M K N"}
_INT32_MAX = 2**31 - 1
_BYTES_PER_GIB = 1 << 30
_MICRO_PER_UNIT = 1e6


@dataclass(frozen=True, slots=True)
class Report003Constants:
    """The constants of report 003, section 1.5.

    Parameters
    ----------
    flops_per_s : float, FLOP/s
    memory_gb_per_s : float, GB/s
        What the required GiB/s are divided by.
    clock_ghz : float, GHz
    iterations_per_cycle : int
    capacity_bytes : int, bytes
        The L2 cache.
    element_bytes : int, bytes

    Examples
    --------
    >>> Report003Constants().capacity_bytes
    4718592
    """

    flops_per_s: float = 18.7e12
    memory_gb_per_s: float = 630.0
    clock_ghz: float = 1.46
    iterations_per_cycle: int = 5_120
    capacity_bytes: int = 4_718_592
    element_bytes: int = 4


@dataclass(frozen=True, slots=True)
class Report003Prediction:
    """What report 003's model says of one problem.

    Parameters
    ----------
    compute_us, memory_us : float, microseconds
        The two times of which the model takes the larger.
    bytes_per_cycle : int
        Required bandwidth, cut to a whole number.
    fit_level : int
        Position of the first loop whose region fits into the cache.
    overflows : tuple of str
        What does not fit into 32 bits on the way to the answer, loop by loop;
        empty for all but the largest problems.

    Examples
    --------
    >>> Report003Prediction(12.0, 30.6, 574, 1, ()).bound
    'memory'
    """

    compute_us: float
    memory_us: float
    bytes_per_cycle: int
    fit_level: int
    overflows: tuple[str, ...]

    @property
    def time_us(self) -> float:
        """Predicted time: the larger of the two."""
        return max(self.compute_us, self.memory_us)

    @property
    def bound(self) -> str:
        """``compute`` or ``memory``."""
        return "memory" if self.memory_us > self.compute_us else "compute"

    @property
    def printed_us(self) -> int:
        """The time as the report's table shows it: whole microseconds, at least 1."""
        return max(1, round(self.time_us))


def report003_time(
    problem: Problem,
    *,
    constants: Report003Constants | None = None,
    int32: bool = False,
    whole_image: bool = True,
) -> Report003Prediction:
    """Predict a kernel's time as report 003 does.

    Parameters
    ----------
    problem : Problem
        A `conv2d` without groups or a `gemm`.
    constants : Report003Constants, optional
    int32 : bool
        Count volumes and iterations in 32-bit integers that wrap, as the
        original does; by default the right values.
    whole_image : bool
        Let the loops of a convolution of stride 1 run over the stored image,
        as the report does; otherwise, and for other strides, of which the
        report does not speak, over the output.

    Raises
    ------
    ProblemError
        If the problem is of another kind, or the original's 32-bit numbers
        wrap to something it cannot divide by.

    Examples
    --------
    >>> from loopsched.problems.builders import conv2d, gemm
    >>> said = report003_time(gemm(m=64, n=4096, k=25088))
    >>> said.printed_us, said.bound
    (62190, 'memory')

    The report's largest image: volumes and iterations overflow in the original.

    >>> image = conv2d(c=1, k=1, h=16384, w=16384, r=3, s=3, padding=1)
    >>> report003_time(image, int32=True).printed_us, report003_time(image).printed_us
    (3262, 5077)
    >>> for what in report003_time(image).overflows:
    ...     print(what)
    loop 0 'N': volumes of 2147745844 bytes
    loop 1 'P': volumes of 2147745844 bytes
    """
    constants = constants or Report003Constants()
    extents = _extents(problem, whole_image)
    fit = _fit(problem, extents, constants, wrap=int32)
    compute = single(single(2 * math.prod(extents.values())) / single(constants.flops_per_s))
    required = _whole_bytes_per_cycle(problem, fit, constants)
    gib_per_s = single(
        single(single(required) / _BYTES_PER_GIB * single(constants.clock_ghz)) * 1e9
    )
    slowdown = single(gib_per_s / single(constants.memory_gb_per_s))
    return Report003Prediction(
        compute_us=compute * _MICRO_PER_UNIT,
        memory_us=single(slowdown * compute) * _MICRO_PER_UNIT,
        bytes_per_cycle=required,
        fit_level=fit.level,
        overflows=fit.overflows,
    )


@dataclass(frozen=True, slots=True)
class _Fit:
    level: int
    reloaded_bytes: int
    iterations: int
    overflows: tuple[str, ...]


def _extents(problem: Problem, whole_image: bool) -> dict[str, int]:
    """Extents of the report's loops, outermost first."""
    order = _LOOP_ORDERS.get(problem.kind, "").split()
    if set(order) != set(problem.dims):
        raise ProblemError(
            f"problem '{problem.name}': report 003 models conv2d without groups and gemm, "
            f"not {problem.kind} over {' '.join(problem.dims)}"
        )
    sizes = dict(problem.size)
    if problem.kind == "conv2d" and whole_image:
        sizes |= _image_sizes(problem)
    return {dim: sizes[dim] for dim in order}


def _image_sizes(problem: Problem) -> dict[str, int]:
    sizes = {}
    for axis in problem.tensor("input").axes:
        for dim, stride in axis.terms:
            if dim in ("P", "Q") and stride == 1:
                reached = 1 + sum(c * (problem.size[one] - 1) for one, c in axis.terms)
                sizes[dim] = reached if axis.size is None else axis.size
    return sizes if len(sizes) == 2 else {}


def _fit(
    problem: Problem, whole: dict[str, int], constants: Report003Constants, *, wrap: bool
) -> _Fit:
    """Find the first loop whose region is below the capacity, and what overflows there."""
    kept = wrap_int32 if wrap else int
    extents, overflows = dict(whole), []
    dims = [*whole, ""]
    for level, dim in enumerate(dims):
        elements = sum(yalsa_volume(tensor, extents) for tensor in problem.tensors)
        reloaded = elements * constants.element_bytes
        iterations = math.prod(extents.values())
        place = f"loop {level} '{dim}'"
        if reloaded > _INT32_MAX:
            overflows.append(f"{place}: volumes of {reloaded} bytes")
        if kept(reloaded) < constants.capacity_bytes or not dim:
            if iterations > _INT32_MAX:
                overflows.append(f"{place}: {iterations} iterations")
            break
        extents[dim] = 1
    return _Fit(level, kept(reloaded), kept(iterations), tuple(overflows))


def _whole_bytes_per_cycle(problem: Problem, fit: _Fit, constants: Report003Constants) -> int:
    cycles = single(single(fit.iterations) / single(constants.iterations_per_cycle))
    exact = single(single(fit.reloaded_bytes) / cycles) if cycles else math.inf
    if abs(exact) > _INT32_MAX:
        raise ProblemError(
            f"problem '{problem.name}': the original's 32-bit numbers wrap to {fit.reloaded_bytes} "
            f"bytes in {fit.iterations} iterations; it has no answer, use int32=False"
        )
    return int(exact)
