"""Products of unlike sizes in one launch, as a mixture of experts has them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from loopsched.base.arguments import Checker
from loopsched.base.errors import ProblemError

_SIZES = re.compile(r"[0-9]+x[0-9]+x[0-9]+(?:\+[0-9]+x[0-9]+x[0-9]+)*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Grouped:
    """Products C[m,n] = A[m,k] B[k,n], each with sizes of its own.

    Parameters
    ----------
    products : tuple of (m, n, k)
        In the order in which their blocks start.
    name : str

    Raises
    ------
    ProblemError
        If there are none, or a size is not a whole number from 1.

    Examples
    --------
    >>> one = Grouped.named("128x512x64+16x512x64")
    >>> one.macs == (128 + 16) * 512 * 64
    True
    """

    products: tuple[tuple[int, int, int], ...]
    name: str = ""

    def __post_init__(self) -> None:
        check = Checker("grouped", ProblemError)
        check.count("products", len(self.products))
        for at, sizes in enumerate(self.products):
            for size, value in zip("mnk", sizes, strict=True):
                check.count(f"{size} of product {at + 1}", value)
        check.finish()
        text = "+".join("x".join(map(str, sizes)) for sizes in self.products)
        object.__setattr__(self, "name", self.name or text)

    @classmethod
    def named(cls, text: str) -> Grouped:
        """Read sizes as text: MxNxK for each, joined by +; other text is a `ProblemError`."""
        if not _SIZES.fullmatch(text):
            raise ProblemError(f"grouped '{text[:60]}' is not MxNxK+MxNxK+...")
        products = [tuple(int(size) for size in one.split("x")) for one in text.split("+")]
        return cls(tuple((m, n, k) for m, n, k in products))

    @property
    def macs(self) -> int:
        """Multiply-accumulates of all products."""
        return sum(m * n * k for m, n, k in self.products)

    @property
    def elems(self) -> int:
        """Elements of all operands and outputs."""
        return self.output_elems + sum(m * k + k * n for m, n, k in self.products)

    @property
    def output_elems(self) -> int:
        """Elements of all outputs."""
        return sum(m * n for m, n, _ in self.products)
