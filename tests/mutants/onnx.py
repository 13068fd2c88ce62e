"""Mutants of reading networks: types, numbers, nodes, choices."""

from __future__ import annotations

from .mutant import In

_onnx_infer = In("network/onnx_infer.py", "test_onnx_numbers.py")
_onnx_infer.broken(
    "infer-branches-differ",
    "of branches with different shapes the first counts",
    "same = len(ends) == 2 and ends[0].dims == ends[1].dims",
    "same = len(ends) == 2",
    "::test_branches_of_different_shapes_leave_a_shape_open",
)
_onnx_infer.broken(
    "infer-packed-width",
    "heads that come packed are as wide as queries, keys and values",
    'width = last // 3 if operator.op == "Attention" else last',
    "width = last",
    "test_network_onnx.py::TestOdd::test_work_and_what_is_left_out",
)
_onnx_infer.broken(
    "infer-shape-from-start",
    "Shape ignores where it starts",
    "numbers_of(known[start:end])",
    "numbers_of(known[:end])",
    "::test_lengths_from_part_of_a_shape",
)
_onnx_infer.broken(
    "infer-transposed-left",
    "a fused product forgets that its left operand is transposed",
    'left = "km" if found.get("transA") else "mk"',
    'left = "mk"',
    "::test_fused_operators_have_the_shapes_of_what_they_fuse",
)
_onnx_infer.broken(
    "infer-bias-of-fused",
    "a fused convolution reads its fourth operand as one of the standard's",
    'return "Conv", inputs[:3], _only',
    'return "Conv", inputs[:4], _only',
    "::test_fused_operators_have_the_shapes_of_what_they_fuse",
)
_onnx_infer.broken(
    "infer-lost-here",
    "a shape is said to be lost at the last operator, not the first",
    "            if one.shape is None:\n                return one.lost\n",
    "            if one.shape is not None:\n                return one.lost\n",
    "test_network_onnx.py::TestOdd::test_work_and_what_is_left_out",
)
_onnx_nodes = In("network/onnx_nodes.py", "test_network_onnx.py")
_onnx_nodes.broken(
    "nodes-loop-once",
    "an operator in a loop runs once",
    "            count * part.count,\n",
    "            part.count,\n",
    "::TestOdd::test_work_and_what_is_left_out",
)
_onnx_nodes.broken(
    "nodes-parts-once",
    "the parts of an operator run once each",
    "            count * part.count,\n        )",
    "            count,\n        )",
    "::TestOdd::test_work_and_what_is_left_out",
)
_onnx_nodes.broken(
    "nodes-scale-is-weight",
    "single numbers count as weights",
    "and one.dims not in _ONE",
    "and one.dims is not None",
    "::test_published_totals",
)
_onnx_nodes.broken(
    "nodes-positions-are-weights",
    "tables of positions count as weights",
    "_NOT_WEIGHTS = (7, 8, 9)",
    "_NOT_WEIGHTS = (8, 9)",
    "::test_published_totals",
)
_onnx_nodes.broken(
    "nodes-changing-shapes",
    "loops whose shapes change are taken for steady",
    "and before.shape != after.shape:",
    "and len(before.shape) != len(after.shape):",
    "::TestOdd::test_work_and_what_is_left_out",
)
_onnx_numbers = In("network/onnx_numbers.py", "test_onnx_numbers.py")
_onnx_numbers.broken(
    "numbers-floor-division",
    "division rounds down, not towards zero",
    "return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)",
    "return a // b",
    "::test_numbers_are_those_of_onnx",
)
_onnx_numbers.broken(
    "numbers-unknown-is-false",
    "an unknown condition counts as false",
    "    if condition is None:\n        raise",
    "    if condition == 99:\n        raise",
    "::test_what_is_not_known_or_too_long_is_no_number",
)
_onnx_numbers.broken(
    "numbers-unknown-are-equal",
    "two unknown numbers count as equal",
    '    if a is None or b is None:\n        raise ValueError("not known")\n    return int(a == b)',
    "    return int(a == b)",
    "::test_what_is_not_known_or_too_long_is_no_number",
)
_onnx_numbers.broken(
    "numbers-cast-to-float-cuts",
    "a cast to a floating type cuts off",
    "_FLOATS = (1, 10, 11, 16)",
    "_FLOATS = (16,)",
    "::test_numbers_are_those_of_onnx",
)
_onnx_numbers.broken(
    "numbers-filled-with-one",
    "ConstantOfShape fills with 1 where nothing is said",
    "value = 0 if tensor is None else",
    "value = 1 if tensor is None else",
    "::test_numbers_are_those_of_onnx",
)
_onnx_numbers.broken(
    "numbers-axes-of-attribute",
    "axes that come as an input are not read",
    "    if len(given) > 1 and given[1] is not _NOTHING:\n        return tuple(_ints(given[1]))\n",
    "",
    "::test_numbers_are_those_of_onnx",
)
_onnx_read = In("network/onnx_read.py", "test_onnx_numbers.py")
_onnx_read.broken(
    "onnx-weights-kept",
    "large weights stay in memory",
    "if n_elements(tensor.dims) > _MAX_KEPT:",
    "if n_elements(tensor.dims) > _MAX_KEPT**3:",
    "::test_large_weights_are_dropped_wherever_they_are",
)
_onnx_read.broken(
    "onnx-subgraphs-unseen",
    "weights in a branch stay in memory",
    '                if attribute.HasField("g"):\n'
    "                    waiting.append(attribute.g)\n",
    "",
    "::test_large_weights_are_dropped_wherever_they_are",
)
_onnx_read.broken(
    "onnx-negative-size",
    "a negative size makes the count of elements negative",
    "count *= max(0, size)",
    "count *= size",
    ">>> n_elements",
)
_onnx_read.broken(
    "onnx-empty-graph",
    "a graph without operators is a network",
    "    if not model.graph.node:",
    "    if model.graph.node is None:",
    "test_network_onnx.py::TestBroken::test_files",
)
_onnx_read.broken(
    "onnx-truth-is-a-number",
    "a truth value is read as a number",
    "return bool(value) if tensor.data_type == TensorProto.BOOL else int(value)",
    "return int(value)",
    "::test_single_numbers_are_read_where_they_are",
)
_selection = In("network/selection.py", "test_selection.py")
_selection.broken(
    "select-in-file-order",
    "layers come in the order of the file, not as chosen",
    "return list(dict.fromkeys(found))",
    "return sorted(set(found))",
    "::test_layers_come_as_they_are_named_each_once_with_its_count",
)
_selection.broken(
    "select-sides-exchanged",
    "numbers of sides are read from the last on",
    'value.split("x"))]',
    'value.split("x")[::-1])]',
    "::test_a_problem_in_one_line",
)
_selection.broken(
    "select-gaps-are-numbers",
    "numbers with a gap between are written as one range",
    "number == runs[-1][-1] + 1:",
    "number > runs[-1][-1]:",
    "test_cli_search.py::TestOut::test_show_reads_it_back",
)
_selection.broken(
    "select-one-past-the-end",
    "the number of layers is a layer",
    "int(layer) in names:",
    "int(layer) in (*names, len(names)):",
    "::test_all_that_is_no_layer_is_told",
)
_selection.broken(
    "select-counts-lost",
    "chosen layers occur once each",
    "counts = tuple(workload.counts[number] for number in numbers)",
    "counts = tuple(1 for number in numbers)",
    "::test_layers_come_as_they_are_named_each_once_with_its_count",
)
_selection.broken(
    "select-counts-of-the-first",
    "counts are those of the first layers",
    "counts = tuple(workload.counts[number] for number in numbers)",
    "counts = workload.counts[: len(numbers)]",
    "::test_layers_come_as_they_are_named_each_once_with_its_count",
)
_selection.broken(
    "select-first-field",
    "only the first field of a problem is read",
    "found = pairs(parts, ",
    "found = pairs(list(parts)[:1], ",
    "::test_what_is_no_single_problem",
)
_text = In("network/text.py", "test_network.py")
_text.broken(
    "model-text-any",
    "lengths are written behind any workload",
    '    if not is_model(text):\n        raise WorkloadError(\n            "--batch',
    '    if text is None:\n        raise WorkloadError(\n            "--batch',
    "test_network_onnx.py::TestCommands::test_complaints",
)
_text.broken(
    "model-batch-of-text-wins",
    "a batch in the text overrides the one that is given",
    "batch=first if batch is None else batch",
    "batch=first or batch",
    "test_onnx_numbers.py::test_a_batch_that_is_given_counts_more_than_that_of_the_text",
)
_text.broken(
    "model-two-lengths",
    "the last of two lengths counts",
    "elif targets[kind].setdefault(name, number) != number:",
    "elif targets[kind].setdefault(name, number) > number:",
    "::test_lengths_go_into_the_text_of_a_model",
)
_text.broken(
    "model-second-colon",
    "more lengths are set off by a second colon",
    "{',' if _parts(text)[1] else ':'}",
    "{':'}",
    "::test_lengths_go_into_the_text_of_a_model",
)
_text.broken(
    "model-dims-ignored",
    "batch and lengths for a workload are ignored",
    "        if batch is not None or dims or inputs",
    "        if batch is not None and dims or inputs",
    "::test_lengths_go_into_the_text_of_a_model",
)

ONNX = (
    *_onnx_infer.mutants,
    *_onnx_nodes.mutants,
    *_onnx_numbers.mutants,
    *_onnx_read.mutants,
    *_selection.mutants,
    *_text.mutants,
)
