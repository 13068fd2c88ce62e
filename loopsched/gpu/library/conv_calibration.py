"""The few numbers of the convolution model that were fitted, and on what."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from loopsched.gpu.bound import CONVERTED
from loopsched.gpu.calibrated import CONVOLUTIONS, first_spread, of_data_type
from loopsched.gpu.library.calibration import Calibration
from loopsched.gpu.result import Spread


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
