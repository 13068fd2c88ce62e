"""How far estimates of library and tiled kernels were off, by GPU and data type."""

from __future__ import annotations

from loopsched.gpu.calibrated import PRODUCTS, first_spread
from loopsched.gpu.result import Spread


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
