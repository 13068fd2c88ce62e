"""One configuration for each range of a product's rows, and what that costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from loopsched.base.arguments import Checker
from loopsched.base.display import Shown
from loopsched.base.errors import InputError
from loopsched.base.rows import picked
from loopsched.gpu.choice.families import TRITON_GEMM
from loopsched.gpu.choice.pick import Given, rank, space_for
from loopsched.gpu.choice.space import Space
from loopsched.machines.arch import Arch
from loopsched.problems.builders import gemm

_SAMPLES = 5
_FIRST = 16


@dataclass(frozen=True, slots=True)
class Bucket:
    """A range of rows and the configuration for it.

    Parameters
    ----------
    first, last : int
        Rows of the product, both included.
    configuration : mapping of str to int
    regret : float
        The most, over sampled sizes, that its estimate is above the best
        configuration's of that size: 0.02 is 2 %.
    low_us, high_us : float, microseconds
        Estimates at both ends.
    """

    first: int
    last: int
    configuration: Mapping[str, int]
    regret: float
    low_us: float
    high_us: float


@dataclass(frozen=True, slots=True)
class Dispatch(Shown):
    """Configurations to launch, by number of rows.

    Parameters
    ----------
    n, k : int
    arch, data_type : str
    buckets : tuple of Bucket
    """

    n: int
    k: int
    arch: str
    data_type: str
    buckets: tuple[Bucket, ...]

    def configuration(self, m: int) -> Mapping[str, int]:
        """Return the configuration for a number of rows; the last range has no end."""
        for bucket in self.buckets:
            if m <= bucket.last:
                return bucket.configuration
        return self.buckets[-1].configuration

    def rows(self) -> list[dict[str, Any]]:
        """Write the table as rows of plain values."""
        return [
            {"first_m": one.first, "last_m": one.last}
            | picked(self, "n", "k", "arch", "data_type")
            | dict(one.configuration)
            | picked(one, "regret", "low_us", "high_us")
            for one in self.buckets
        ]


def dispatch(
    n: int,
    k: int,
    arch: Arch,
    *,
    most_m: int = 8192,
    data_type: str = "fp16",
    space: Given = None,
) -> Dispatch:
    """Choose a configuration of `triton_gemm` for each range of rows.

    Ranges end at powers of two.  In each, several sizes are estimated; the
    configuration chosen has the smallest worst-case estimate, relative to the
    best of each size.

    Parameters
    ----------
    n, k : int
        Columns of the output; length of the reduction.
    arch : Arch
    most_m : int
        Rows of the largest GEMM.
    data_type : str
    space : path, Space or iterable of mappings, optional
        As of `pick`.

    Returns
    -------
    Dispatch

    Raises
    ------
    InputError, ArchError
        As `pick`.

    Examples
    --------
    >>> from loopsched import dispatch, load_arch
    >>> table = dispatch(4096, 4096, load_arch("h200"), most_m=64)
    >>> [(one.first, one.last) for one in table.buckets]
    [(1, 16), (17, 32), (33, 64)]
    >>> table.configuration(5)["block_m"]
    64

    See Also
    --------
    pick : all configurations for one size.
    """
    check = Checker("dispatch", InputError)
    for name, value in (("n", n), ("k", k), ("most_m", most_m)):
        check.count(name, value)
    check.finish()
    tried = space_for(space, TRITON_GEMM)
    buckets = []
    first, last = 1, min(_FIRST, most_m)
    while True:
        buckets.append(_bucket(first, last, (n, k), arch, data_type, tried))
        if last == most_m:
            return Dispatch(n, k, arch.name, data_type, tuple(buckets))
        first, last = last + 1, min(2 * last, most_m)


def _bucket(
    first: int, last: int, rest: tuple[int, int], arch: Arch, data_type: str, space: Space
) -> Bucket:
    n, k = rest
    sizes = sorted({round(at) for at in np.linspace(first, last, _SAMPLES)})
    found = [rank(gemm(m=m, n=n, k=k), arch, TRITON_GEMM, space, data_type) for m in sizes]
    times = np.stack([one.times.time_s for one in found])
    regret = (times / times.min(axis=1, keepdims=True)).max(axis=0)
    # The least regret; of equal ones the least shared memory, then the first.
    order = np.lexsort((found[0].taken.shared_bytes, regret))
    at = int(order[0])
    return Bucket(
        first,
        last,
        found[0].space.configuration(at),
        float(regret[at]) - 1,
        1e6 * float(times[0, at]),
        1e6 * float(times[-1, at]),
    )
