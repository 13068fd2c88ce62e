"""One core of a CPU: what it offers a kernel, and what each event costs it."""

from __future__ import annotations

import math
from dataclasses import dataclass

# Cycles for one of each on four kinds of cores (docs/running.md says to what they were fitted):
# Zen 4; Zen 5; others that multiply two vectors of 64 bytes in a cycle, so that less hides behind
# that (Emerald Rapids); those with the vectors of 32 bytes of AVX2 (Zen 3).  A line is counted
# where it comes from: L1 costs nothing, `_l2` is L2, `_l3` the last cache.
_TABLE = {
    "issue": (0.99, 1.0, 1.01, 1.02),  # cycle in which multiply-adds or loads are issued
    "latency": (0.35, 0.56, 0.88, 0.25),  # cycle of a chain of sums that is too short
    "spread": (0.05, 0.015, 0.12, 0.04),  # element that several vectors of a tile are multiplied by
    "tile": (3.2, 2.5, 2.7, 2.7),  # register tile begun
    "limit": (0.1, 0.03, 0.0, 0.0),  # loops over taps inside an image, begun
    "mask": (20.0, 7.9, 20.0, 20.0),  # tile that reads a padded image in place: masks at its edges
    "sum": (1.2, 0.48, 1.1, 2.0),  # vector of sums read or written
    "masked": (0.67, 0.61, 0.57, 0.57),  # the same where it is part of a vector
    "dot": (1.5, 1.5, 6.0, 5.0),  # vector of sums whose lanes are added up
    "square": (1.7, 1.7, 1.7, 1.7),  # square of sums that is transposed to be written across
    "turn": (4.0, 1.6, 4.6, 5.0),  # vector of sums written across
    "scatter": (3.4, 2.7, 3.5, 10.0),  # sum written by itself
    "cross": (0.0, 0.063, 1.0, 1.0),  # vector read in place that lies in two lines
    "near": (0.06, 0.057, 0.23, 0.1),  # line of the right operand from L2
    "rise": (0.1, 0.14, 0.3, 0.7),  # line of the left operand from L2
    "many": (0.07, 0.15, 0.9, 0.75),  # the same in place along the sum, beyond `MANY_ROWS`
    "heap": (0.62, 0.73, 0.9, 0.75),  # the same packed, beyond `MANY_ROWS` rows of a tile
    "rush": (0.6, 0.17, 0.0, 0.0),  # any of these three beyond `MOST_LINES` a cycle
    "clash": (4.5, 4.5, 4.5, 4.5),  # line of an operand lost to others of its set while it is read
    "page": (0.028, 0.12, 0.6, 5.0),  # page that a tile reads, beyond `MANY_PAGES`
    "touch": (0.51, 0.46, 0.49, 0.49),  # line of the output that a tile finds in L2
    "crowd": (2.3, 2.8, 3.9, 3.9),  # line of the output lost to others of its set
    "burst": (4.0, 1.9, 4.0, 4.0),  # line outside L2 that a tile writes beyond `MOST_WAITING`
    "streams": (3.4, 1.2, 5.0, 3.0),  # row of a tile where blocks write many rows of a large output
    "read_l3": (0.98, 0.39, 2.0, 2.0),  # line of an operand, in order
    "read_dram": (5.8, 0.9, 34.0, 20.0),
    "start_l3": (0.0, 0.0, 0.0, 40.0),  # run of such lines
    "start_dram": (0.0, 0.0, 0.0, 60.0),
    "far_l3": (0.9, 0.58, 9.0, 3.0),  # line of an operand that lies far from the one before
    "far_dram": (11.0, 6.2, 46.0, 30.0),
    "leap_l3": (1.9, 0.56, 0.0, 0.0),  # run of such lines of the right operand
    "leap_dram": (8.0, 2.3, 0.0, 0.0),
    "hop_l3": (12.0, 3.6, 0.0, 0.0),  # run of a block that goes on in no other: less than a page
    "hop_dram": (120.0, 36.0, 0.0, 0.0),
    "next_l3": (0.2, 0.55, 2.0, 2.0),  # line of the right operand that tiles before asked for
    "next_dram": (4.5, 1.7, 34.0, 34.0),
    "ahead_l3": (17.0, 7.4, 6.0, 6.0),  # line that is asked for before it is needed
    "ahead_dram": (16.0, 8.5, 21.0, 10.0),
    "write_l2": (1.0, 0.88, 0.79, 0.79),  # line of the output written for the first time
    "write_l3": (2.0, 0.088, 6.0, 6.0),
    "write_dram": (7.2, 3.9, 12.0, 12.0),
    "again_l2": (0.84, 0.83, 0.85, 0.85),  # line of the output that is added to
    "again_l3": (2.2, 2.1, 2.0, 5.0),
    "again_dram": (19.0, 25.0, 35.0, 35.0),
    "pack_l3": (4.1, 3.8, 30.0, 16.0),  # line of a packed block written that L2 does not hold
    "pack_dram": (11.0, 11.0, 11.0, 11.0),
    "spill_l3": (0.77, 0.55, 3.5, 0.98),  # vector of such a block read
    "spill_dram": (9.8, 9.8, 9.8, 35.0),
    "copy": (4.6, 2.0, 8.0, 3.0),  # vector copied into a packed block
    "run": (2.3, 1.9, 2.4, 2.4),  # run of a copy
    "gather": (2.4, 2.6, 2.9, 2.9),  # element copied by itself
    "apart": (6.0, 7.8, 5.9, 5.9),  # vector of every second element copied
    "transpose": (110.0, 64.0, 180.0, 28.0),  # square that a copy transposes
    "transpose_near": (88.0, 66.0, 150.0, 80.0),  # the same where tiles before asked for it
    "edge": (30.0, 30.0, 30.0, 30.0),  # tile of a window at the edge of its plane
    "strip": (5.0, 5.0, 5.0, 5.0),  # rows of a plane that the same rows of a strip meet, begun
    "pass": (1.5, 1.5, 1.5, 1.5),  # line that a window reads or writes outside L2
}
COSTS, ZEN5_COSTS, WIDE_COSTS, NARROW_COSTS = (
    {name: of[kind] for name, of in _TABLE.items()} for kind in range(4)
)
Counts = dict[str, float]
"""How often each of `COSTS` is paid."""
NARROW_WAIT = 2
"""Cycles by which chains of sums are felt there before they are too short."""
HALVED_LANES = 16
"""Of a vector of 64 bytes in fp32."""
NARROW_REGISTERS = 16
LEAST_MASKED = 8
"""Lanes of vectors that have masks, if they have many registers."""
ZEN5 = "znver5"
"""LLVM's name of these cores."""


@dataclass(frozen=True, slots=True)
class Core:
    """What one core offers a kernel, in cycles and bytes; caches as far as it may use them.

    ``wide_l2_rate`` is what L2 gives, in bytes a cycle, to a core that multiplies more
    than a vector of 64 bytes in a cycle; no limit elsewhere.  ``design`` is LLVM's name of the
    core, or nothing.
    """

    lanes: int
    registers: int
    fma_per_cycle: float
    fma_latency: float
    load_per_cycle: float
    l1_bytes: int
    l2_bytes: int
    hertz: float
    ways: int = 8
    last_bytes: int = 1 << 25
    l2_ways: int = 8
    wide_l2_rate: float = math.inf
    design: str = ""

    @property
    def vectors(self) -> tuple[int, ...]:
        """Lanes of vectors for windows: whole ones, and halves where two take as long."""
        has_halves = self.lanes == HALVED_LANES and not self.is_wide
        return (self.lanes, self.lanes // 2) if has_halves else (self.lanes,)

    @property
    def is_narrow(self) -> bool:
        """Whether broadcasts take an instruction each, and registers are few (AVX2)."""
        return self.registers <= NARROW_REGISTERS

    @property
    def masks_are_cheap(self) -> bool:
        """Whether some lanes of a vector are read as fast as all (AVX-512, SVE).

        Where vectors in two lines do not hide, they cost more than packing.
        """
        return self.hides_lines and not self.is_narrow and self.lanes >= LEAST_MASKED

    @property
    def is_wide(self) -> bool:
        """Whether it multiplies more than a vector of 64 bytes in a cycle."""
        return self.wide_l2_rate < math.inf

    @property
    def is_zen5(self) -> bool:
        """Whether it is a Zen 5 that multiplies whole vectors twice a cycle."""
        return self.is_wide and self.design == ZEN5

    @property
    def hides_lines(self) -> bool:
        """Whether lines from L2, and vectors in two lines, hide behind what it multiplies."""
        return not self.is_wide or self.is_zen5

    @property
    def one_set_cycles(self) -> float:
        """Cycles that a point of a sum takes at least whose lines come from L2 to one set of L1.

        Measured on Zen 4 and Zen 5 in fp32; Emerald Rapids knows no such limit, others were not
        measured.
        """
        if self.lanes != HALVED_LANES or not self.hides_lines:
            return 0.0
        return 11.0 if self.is_zen5 else 10.5

    @property
    def asks_l3(self) -> bool:
        """Whether tiles ask for rows and columns that come from the last cache, too.

        Zen 5 fetches these early enough: with requests plans took 1 % longer, of few rows 8 %.
        """
        return not self.is_zen5

    @property
    def l2_share(self) -> float:
        """Share of L2 that what is used again may fill."""
        return 0.7 if self.is_zen5 else 0.8

    @property
    def l2_line_cycles(self) -> float:
        """Cycles at least from one line that comes from L2 to the next, beside multiply-adds.

        Measured on Zen 3, in tiles of vectors of 32 bytes.
        """
        return 3.6 if self.is_narrow else 0.0

    @property
    def costs(self) -> dict[str, float]:
        """Cycles for one of each event."""
        if self.is_narrow:
            return NARROW_COSTS
        if self.is_zen5:
            return ZEN5_COSTS
        return WIDE_COSTS if self.is_wide else COSTS
