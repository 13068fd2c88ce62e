"""Mutants of reading networks: types, numbers, nodes, choices."""

from __future__ import annotations

from .mutant import In

_onnx_infer = In("network/onnx_infer.py", "test_network_onnx.py")
_onnx_infer.broken(
    "infer-packed-width",
    "heads that come packed are as wide as queries, keys and values",
    'width = last // 3 if operator.op == "Attention" else last',
    "width = last",
    "::TestOdd::test_work_and_what_is_left_out",
)
_onnx_infer.broken(
    "infer-lost-here",
    "a shape is said to be lost at the last operator, not the first",
    "            if one.shape is None:\n                return one.lost\n",
    "            if one.shape is not None:\n                return one.lost\n",
    "::TestOdd::test_work_and_what_is_left_out",
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
_onnx_read = In("network/onnx_read.py", "test_network_onnx.py")
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
    "::TestBroken::test_files",
)
_text = In("network/text.py", "test_network.py")
_text.broken(
    "model-text-any",
    "lengths are written behind any workload",
    '    if not is_model(text):\n        raise WorkloadError(\n            f"--batch',
    '    if text is None:\n        raise WorkloadError(\n            f"--batch',
    "test_network_onnx.py::TestCommands::test_complaints",
)
_text.broken(
    "model-two-lengths",
    "the last of two lengths counts",
    "elif lengths.setdefault(name, int(length)) != int(length):",
    "elif lengths.setdefault(name, int(length)) > int(length):",
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
    "        if batch is not None or dims:\n            raise",
    "        if batch is not None and dims:\n            raise",
    "::test_lengths_go_into_the_text_of_a_model",
)

ONNX = (
    *_onnx_infer.mutants,
    *_onnx_nodes.mutants,
    *_onnx_read.mutants,
    *_text.mutants,
)
