"""Mutants of frames, Timeloop, TVM, ZigZag."""

from __future__ import annotations

from .mutant import In

_frames = In("exchange/frames.py", "test_exchange_frames.py")
_frames.broken(
    "frames-counts-lost",
    "problems of a workload occur once each",
    '{"layer": number, "count": count, **_problem_row(problem)}',
    '{"layer": number, "count": 1, **_problem_row(problem)}',
    "::TestFrames::test_what_has_rows",
)
_frames.broken(
    "frames-data-without-output",
    "the data of a problem leave the output out",
    "sum(tensor_bytes(problem, tensor) for tensor in problem.tensors)",
    "sum(tensor_bytes(problem, tensor) for tensor in problem.tensors[:-1])",
    "::TestFrames::test_what_has_rows",
)
_frames.broken(
    "frames-levels-by-number",
    "levels go by their list, not by their names",
    'outer = "" if prefix == "levels" else f"{prefix}."',
    'outer = f"{prefix}."',
    ">>> flattened",
)
_frames.broken(
    "frames-empty-is-text",
    "columns without any value are no numbers",
    'astype(dict.fromkeys(_unfilled(found), "float64"))',
    'astype(dict.fromkeys(_unfilled(found), "object"))',
    "::TestFrames::test_pandas_and_polars_hold_the_same",
)
_timeloop_reading = In("exchange/timeloop/reading.py", "test_exchange_timeloop.py")
_timeloop_reading.broken(
    "timeloop-one-mesh-axis",
    "the second axis of a mesh is not read",
    'for axis in ("meshX", "meshY") if',
    'for axis in ("meshX",) if',
    "::TestByHand::test_meshes_in_a_row_and_parallel_scratchpads",
)
_timeloop_reading.broken(
    "timeloop-clock-inverted",
    "the clock is the seconds of a cycle",
    'f"{1 / _clock_s(parts, variables, remarks):.12g}"',
    'f"{_clock_s(parts, variables, remarks):.12g}"',
    "::test_a_machine_without_notes",
)

TOOLS = (
    *_frames.mutants,
    *_timeloop_reading.mutants,
)
