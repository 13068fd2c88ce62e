"""The few numbers that were fitted, on what, and how far estimates are off."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from loopsched.gpu.bound import CONVERTED
from loopsched.gpu.calibrated import CONVOLUTIONS, PRODUCTS, first_spread, of_data_type
from loopsched.gpu.result import Spread


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Numbers of the wave-and-tile model that no document gives.

    Each is relative to a number of the architecture file, so that another
    file works without fitting again.

    Parameters
    ----------
    pipe : float
        Share of the arithmetic rate, at the sustained clock, that a full SM
        reaches; above 1 where cards run above that clock.
    dram, l2 : float
        Achieved DRAM bandwidth over ``gpu.dram_efficiency`` times the data
        sheet's; achieved L2 bandwidth over the file's.
    strided : float
        How much longer streaming takes when an operand is stored along the
        sum, so that each row of a tile gives one sector a step.
    latency : float
        Part of the L2 or DRAM latency that a step shows if its arithmetic is
        shorter.
    barrier : float, cycles
        What a step adds that only other blocks can hide.
    fill : float
        Filling and draining a block, in DRAM latencies.
    launch : float
        Time from one call to the next over ``gpu.launch_s``.
    split : float
        The second kernel of a split sum over ``gpu.launch_s``.

    Examples
    --------
    >>> 0.8 < calibration("fp32").pipe < 1.2
    True
    """

    pipe: float
    dram: float
    l2: float
    strided: float = 1.0
    latency: float
    barrier: float
    fill: float
    launch: float
    split: float


@cache
def calibration(data_type: str) -> Calibration:
    """Look up the parameters for a data type; tensor cores have their own.

    Examples
    --------
    >>> calibration("fp32").launch > 0
    True
    """
    return of_data_type(Calibration, PRODUCTS, data_type)


@dataclass(frozen=True, slots=True)
class OwnKernels:
    """What was fitted to measured Triton kernels of TF32.

    Parameters
    ----------
    tf32_pipe : float
        Share of the tensor cores' rate, where rows of B are copied in vectors
        and turned on their way from shared memory.
    tf32_copy_cycles : float, cycles
        Of an SM for each element, where rows of B allow no vectors.
    """

    tf32_pipe: float
    tf32_copy_cycles: float


def product_spread(measured_as: str, data_type: str) -> Spread:
    """Find the rows of library products most like it: same GPU and data type, or others.

    ``measured_as`` is what the architecture file says.

    Examples
    --------
    >>> product_spread("v100", "fp32").basis
    'V100 fp32 GEMMs held out of the fit'
    """
    other = "another gpu" if data_type == "fp32" else "other"
    return first_spread(PRODUCTS, (f"{measured_as} {data_type}", other))


def own_spread(measured_as: str, data_type: str) -> Spread:
    """The same of kernels that are no library's.

    Examples
    --------
    >>> own_spread("h200", "tf32").low > own_spread("h200", "fp32").low
    True
    """
    return first_spread(PRODUCTS, (f"{measured_as} own {data_type}", "own"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvCalibration(Calibration):
    """Numbers of convolutions: those of products, though A is gathered, not strided, and more.

    Parameters
    ----------
    fused, weights : float
        Arithmetic rate of fused Winograd kernels, and of implicit products for the
        weights' gradient, whose operands both lie along the sum; over ``pipe``.
    kernel : float
        What each further kernel of a call adds, over ``gpu.launch_s``.
    gather : float
        Instructions for each gathered element: row and column, their bounds,
        a 64-bit address, a load and a store of its own.

    Examples
    --------
    >>> conv_calibration("fp32").launch > 0
    True
    """

    fused: float
    weights: float
    kernel: float
    gather: float


@cache
def conv_calibration(data_type: str) -> ConvCalibration:
    """Look up the parameters for a data type; tensor cores have their own.

    Examples
    --------
    >>> conv_calibration("fp32").gather
    8.0
    """
    return of_data_type(ConvCalibration, CONVOLUTIONS, data_type)


def conv_spread(measured_as: str, data_type: str, pass_: str, *, is_known: bool) -> Spread:
    """Look up how far estimates were off on rows like it that were held out.

    ``measured_as`` is what the architecture file says.

    Examples
    --------
    >>> found = conv_spread("v100", "fp32", "forward", is_known=True)
    >>> found.low < 1 < found.high
    True
    """
    kind = f"{pass_} {'known' if is_known or pass_ != 'forward' else 'any'}"
    keys = (
        f"{measured_as} {data_type} {kind}",
        f"other {CONVERTED.get(data_type, data_type)} {kind}",
        f"other other {kind}",
    )
    return first_spread(CONVOLUTIONS, keys)
