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
    "the data of a problem leave an element of the output out",
    '"bytes": problem_bytes(problem)',
    '"bytes": problem_bytes(problem) - problem.output_tensor.element_bytes',
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
_frames.broken(
    "frames-kind-is-name",
    "a problem's kind is its name",
    '"kind": problem.kind,',
    '"kind": problem.name,',
    "::TestFrames::test_what_has_rows",
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
_timeloop_reading.broken(
    "timeloop-meshes-not-told",
    "meshes that are taken together are not told",
    "            if len(waiting) > 1:\n                remarks",
    "            if len(waiting) > 2:\n                remarks",
    "::TestByHand::test_meshes_in_a_row_and_parallel_scratchpads",
)
_timeloop_shapes = In("exchange/timeloop/shapes.py", "test_exchange_timeloop.py")
_timeloop_shapes.broken(
    "timeloop-coefficient-lost",
    "a coefficient is not read",
    "coefficient *= factors.get(str(word), 1)",
    "coefficient = max(coefficient, 1)",
    "::test_problems_without_notes",
)
_timeloop_shapes.broken(
    "timeloop-one-factor-a-dim",
    "a dimension has one coefficient in all tensors",
    "    if factors.setdefault(name, value) != value:",
    "    if factors.setdefault(name, value) < 0:",
    "::test_problems_without_notes",
)
_timeloop_shapes.broken(
    "timeloop-default-ignored",
    "a coefficient without a value is 1",
    "_whole(f\"coefficient '{entry['name']}'\", entry.get(\"default\"), faults)",
    "1",
    "::TestByHand::test_strides_and_names_with_hyphens",
)
_tvm_code = In("exchange/tvm_code.py", "test_exchange_tiles.py")
_tvm_code.broken(
    "tvm-thread-first",
    "the outermost unit is bound to threads",
    '("blockIdx.x", "threadIdx.x")',
    '("threadIdx.x", "blockIdx.x")',
    "::TestTvm::test_bindings",
)
_tvm_code.broken(
    "tvm-inner-first",
    "factors of a split are written innermost first",
    "for place in places[1:])\n",
    "for place in reversed(places[1:]))\n",
    "::TestTvm::test_primitives_make_the_nest",
)
_tvm_code.broken(
    "tvm-order-as-it-was",
    "loops are not put into the schedule's order",
    '    if len(every) > 1:\n        lines.append(f"sch.reorder',
    '    if len(every) < 1:\n        lines.append(f"sch.reorder',
    "::TestTvm::test_primitives_make_the_nest",
)
_tvm_code.broken(
    "tvm-no-cast",
    "narrow elements are multiplied as they are",
    "    if _kind(access.tensor) != kind:\n",
    '    if _kind(access.tensor) == "":\n',
    "::TestTvm::test_sums_are_as_wide_as_the_output",
)
_tvm_code.broken(
    "tvm-sum-first",
    "the loops of a block stand sums first",
    "return [*written, *(dim for dim in problem.dims if dim not in written)]",
    "return [*(dim for dim in problem.dims if dim not in written), *written]",
    "::TestTvm::test_bindings",
)
_zigzag = In("exchange/zigzag.py", "test_exchange_tiles.py")
_zigzag.broken(
    "zigzag-outermost-first",
    "temporal loops stand outermost first",
    "[block.factors for block in reversed(found) if block.node.kind",
    "[block.factors for block in found if block.node.kind",
    "::TestZigZag::test_an_order_runs_every_loop",
)
_zigzag.broken(
    "zigzag-factors-outward",
    "the loops of a level stand outermost first",
    "[one for factors in inner_first for one in reversed(factors)]",
    "[one for factors in inner_first for one in factors]",
    "::TestZigZag::test_an_order_runs_every_loop",
)
_zigzag.broken(
    "zigzag-pad-before-only",
    "padding behind is left out",
    "axis.offset + span(axis, problem.size) - axis.size)]",
    "0)]",
    "::TestZigZag::test_a_convolution_in_zigzags_words",
)
_words = In("network/zigzag_layers.py", "test_exchange_tiles.py")
_words.broken(
    "zigzag-height-is-width",
    "the height of an output is its width",
    '"P": "OY", "Q": "OX"',
    '"P": "OX", "Q": "OY"',
    "::TestZigZag::test_a_convolution_in_zigzags_words",
)
_words.broken(
    "zigzag-product-dims",
    "rows and columns of a product change places",
    'GEMM = {"M": "D", "N": "K",',
    'GEMM = {"M": "K", "N": "D",',
    "::TestZigZag::test_lanes_have_their_own_mesh_and_layers_their_names",
)
_layers = In("network/zigzag_layers.py", "test_zigzag_layers.py")
_layers.broken(
    "zigzag-read-pad-behind",
    "padding in front is taken for padding behind",
    "found[name.upper()] = Axis(terms, -before,",
    "found[name.upper()] = Axis(terms, -after,",
    "::test_layers_have_the_form_of_their_builder",
)
_layers.broken(
    "zigzag-read-partial-sums",
    "outputs are as wide as partial sums",
    '(output, "O_final")',
    '(output, "O")',
    "::test_layers_have_the_form_of_their_builder",
)

TOOLS = (
    *_frames.mutants,
    *_timeloop_reading.mutants,
    *_timeloop_shapes.mutants,
    *_tvm_code.mutants,
    *_zigzag.mutants,
    *_words.mutants,
    *_layers.mutants,
)
