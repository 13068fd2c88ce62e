"""Mutants of networks and ONNX models: geometry, batches, counts, edges, chains, files."""

from __future__ import annotations

from .mutant import In

_flows = In("network/layers.py", "test_network.py")
_flows.broken(
    "network-sums-are-operands",
    "a tensor that only a sum reads counts as one that feeds the layer",
    "            if value == name and tensor not in edge",
    '            if value != "" and tensor not in edge',
)
_flows.broken(
    "network-chains-past-readers",
    "a chain goes on although another layer reads the tensor too",
    "alone = graph.out_degree(producer) == 1 and",
    "alone = graph.out_degree(producer) >= 1 and",
)
_graph = In("network/graph.py", "test_network.py")
_graph.broken(
    "network-loops-run-once",
    "equal layers count as one each, however often their loop runs",
    "counts = tuple(sum(node.count for node in nodes) for nodes in different.values())",
    "counts = tuple(len(nodes) for nodes in different.values())",
)
_convolutions = In("network/onnx_convolutions.py", "test_network_onnx.py")
_convolutions.broken(
    "network-odd-pad-first",
    "the odd position of an automatic pad goes to the other end",
    'return (less, more) if automatic == "SAME_UPPER" else (more, less)',
    'return (more, less) if automatic == "SAME_UPPER" else (less, more)',
)
_convolutions.broken(
    "network-transposed-without-window",
    "what a transposed convolution writes is as long as its strides, no window added",
    "stride * (size - 1) + extra + reach\n",
    "stride * (size - 1) + extra + stride\n",
)
_products = In("network/onnx_products.py", "test_network_onnx.py")
_products.broken(
    "network-any-batch-is-rows",
    "a batch of second operands is taken for more rows",
    'if kinds in ([], ["A"]):',
    'if kinds in ([], ["A"], ["B"]):',
)
_view = In("network/onnx_view.py", "test_network_onnx.py")
_view.broken(
    "network-dequantised-is-wide",
    "an operand that was just dequantised counts as floating point",
    'if maker.op == "DequantizeLinear" or is_stored:',
    "if is_stored:",
)
_flat = In("network/onnx_flat.py", "test_network_onnx.py")
_flat.broken(
    "network-any-condition-is-true",
    "a loop that a condition may end runs all its trips",
    "if inputs[1] and not self.known(inputs[1]):",
    "if inputs[1] and self.known(inputs[1]) is False:",
)

NETWORK = (
    *_flows.mutants,
    *_graph.mutants,
    *_convolutions.mutants,
    *_products.mutants,
    *_view.mutants,
    *_flat.mutants,
)
