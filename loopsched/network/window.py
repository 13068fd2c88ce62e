"""Windows: which positions of an input one position of an output reads."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Window:
    """How outputs along one axis reach into the input: of a convolution or a pooling.

    Parameters
    ----------
    read, made : int
        Stored positions of the input; positions of the output.
    taps, stride, dilation, before : int
        Filter or window size; its steps; padding in front.

    Examples
    --------
    >>> bin(Window(read=8, made=4, taps=3, stride=2, dilation=1, before=1).reach(1))
    '0b1110'
    """

    read: int
    made: int
    taps: int = 1
    stride: int = 1
    dilation: int = 1
    before: int = 0

    def reach(self, position: int) -> int:
        """Mark the stored positions that one output position reads, as bits."""
        first = position * self.stride - self.before
        skipped = max(0, -(first // self.dilation))
        end = min(self.read, first + (self.taps - 1) * self.dilation + 1)
        places = range(first + skipped * self.dilation, end, self.dilation)
        return sum(1 << place for place in places)
