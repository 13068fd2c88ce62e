"""Mutants of the curve of one problem."""

from __future__ import annotations

from .mutant import In

_curve = In("curves/curve.py", "test_curve.py")
_curve.broken(
    "curve-compute-of-one-unit",
    "one unit computes everything",
    "return -(-self.macs // arch.compute.units) / (rate",
    "return self.macs / (rate",
    "::test_bandwidth_and_intensity",
)
_curve.broken(
    "curve-compute-at-peak",
    "computing goes at the highest clock",
    "(rate * arch.compute.clock_hz)",
    "(rate * arch.compute.max_clock_hz)",
    "::test_bandwidth_and_intensity",
)
_curve.broken(
    "curve-inward-as-written",
    "the loops around a body stand the wrong way round",
    "Block((*outer, *reversed(order)), extents)",
    "Block((*outer, *order), extents)",
    "::test_every_step_is_a_schedule_that_moves_as_much",
)
_curve.broken(
    "curve-compulsory-reads",
    "the compulsory traffic leaves an element of the output out",
    "return problem_bytes(self.problem)",
    "return problem_bytes(self.problem) - self.problem.output_tensor.element_bytes",
    "::test_a_bound_is_met_or_below",
)
_curve.broken(
    "curve-schedule-of-first",
    "every row has the schedule of the first step",
    'str(self.schedule(row["step"]))',
    "str(self.schedule(0))",
    "::test_rows_and_digest",
)

CURVE = _curve.mutants
