"""The few numbers of the convolution model that were fitted, and on what."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from functools import cache

from loopsched.gpu.bound import CONVERTED
from loopsched.gpu.calibrated import CONVOLUTIONS, first_spread, of_data_type
from loopsched.gpu.library.calibration import Calibration
from loopsched.gpu.result import Spread

# Numbers of the core that convolutions take as they are: A is gathered, not strided.
_NOT_STRIDED = 1.0
_SHARED = {entry.name for entry in fields(Calibration)}


@dataclass(frozen=True, slots=True)
class ConvCalibration:
    """Numbers that no document gives, each relative to the architecture file's.

    Parameters
    ----------
    pipe : float
        Share of the arithmetic rate, at the sustained clock, that a full SM
        reaches; above 1 where cards run above that clock.
    fused, weights : float
        The same of fused Winograd kernels, and of implicit products for the
        weights' gradient, whose operands both lie along the sum; over ``pipe``.
    dram, l2 : float
        Achieved DRAM bandwidth over ``gpu.dram_efficiency`` times the data
        sheet's; achieved L2 bandwidth over the file's.
    latency : float
        Part of the L2 or DRAM latency that a step shows if its arithmetic is
        shorter.
    barrier : float, cycles
        What a step adds that only other blocks can hide.
    fill : float
        Filling and draining a wave of blocks, in DRAM latencies.
    launch : float
        Time from one call to the next over ``gpu.launch_s``.
    kernel : float
        What each further kernel of a call adds, over ``gpu.launch_s``.
    split : float
        Adding up the parts of split sums, over ``gpu.launch_s``.
    gather : float
        Instructions for each gathered element: row and column, their bounds,
        a 64-bit address, a load and a store of its own.

    Examples
    --------
    >>> conv_calibration("fp32").launch > 0
    True
    """

    pipe: float
    fused: float
    weights: float
    dram: float
    l2: float
    latency: float
    barrier: float
    fill: float
    launch: float
    kernel: float
    split: float
    gather: float

    @property
    def core(self) -> Calibration:
        """What the wave-and-tile core takes."""
        own = {name: value for name, value in asdict(self).items() if name in _SHARED}
        return Calibration(strided=_NOT_STRIDED, **own)


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
