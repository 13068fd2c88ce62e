"""More mutants of networks and of what other tools read: graphs, ONNX, Timeloop's files."""

from __future__ import annotations

from .mutant import In

_graph = In("network/graph.py", "test_network.py")
_graph.broken(
    "network-all-are-parameters",
    "values that pass between layers count as parameters",
    "sum(value.size_elems or 0 for value in self.values if value.is_weight)",
    "sum(value.size_elems or 0 for value in self.values)",
    ">>> Network",
)
_graph.broken(
    "network-names-are-problems",
    "layers that differ in their name only are two problems",
    'found.setdefault(node.problem.renamed("-"), []).append(node)',
    "found.setdefault(node.problem, []).append(node)",
    "test_network.py",
)
_graph.broken(
    "network-read-before-made",
    "a value may be read before it is produced",
    "            elif name in read:\n",
    "            elif name in read and not produced:\n",
    "test_network.py",
)
_graph.broken(
    "network-workload-runs-once",
    "a workload's layers run once each",
    "Node(problem.name, problem.kind, problem, read, written, operands, count=count)",
    "Node(problem.name, problem.kind, problem, read, written, operands, count=1)",
    ">>> Network.from_workload",
)

_layers = In("network/layers.py", "test_network.py")
_layers.broken(
    "network-chains-past-outputs",
    "what leaves the network does not end a chain",
    'return alone and not data["outputs"] and data["node"].count == node.count',
    'return alone and data["node"].count == node.count',
)
_layers.broken(
    "network-chains-of-any-counts",
    "layers that run more or less often than the one before continue its chain",
    'return alone and not data["outputs"] and data["node"].count == node.count',
    'return alone and not data["outputs"]',
)
_layers.broken(
    "network-way-forgotten",
    "what lies between two layers is not known",
    "else (*dict.fromkeys(before), node.name)",
    "else (*dict.fromkeys(before),)",
    ">>> layer_graph",
)

_flat = In("network/onnx_flat.py", "test_network_onnx.py", "test_onnx_numbers.py")
_flat.broken(
    "onnx-other-branch",
    "of two branches the one runs that should not",
    "branch = branches[0 if chosen else 1]",
    "branch = branches[1 if chosen else 0]",
    "::TestOdd::test_a_condition_that_is_false_takes_the_other_branch",
)
_flat.broken(
    "onnx-loops-once",
    "a loop runs once, however many trips it makes",
    "inner = scope.inside(name, int(trips or 0))",
    "inner = scope.inside(name, 1)",
)
_flat.broken(
    "onnx-functions-closed",
    "a model's own functions are not opened",
    "    if not model.functions:\n",
    "    if model.functions or not model.functions:\n",
)
_flat.broken(
    "onnx-inner-loop-alone",
    "loops inside loops run as often as the inner one says",
    "(*self.repeats, *repeats), self.doubt or doubt)",
    "repeats or self.repeats, self.doubt or doubt)",
    "::TestOdd::test_loops_inside_loops_multiply",
)
_flat.broken(
    "onnx-condition-passed-on",
    "a loop that hands its condition on is taken for one that it may end",
    "        true.add(text(body.input[1].name))\n",
    "",
)

_convolutions = In("network/onnx_convolutions.py", "test_network_onnx.py")
_convolutions.broken(
    "onnx-groups-share-filters",
    "filters of a group see the channels of all",
    "    if image[1] != filters[1] * groups:\n",
    "    if image[1] != filters[1]:\n",
)
_convolutions.broken(
    "onnx-pads-by-axis",
    "pads are read axis by axis, not begins before ends",
    "        return given[:rank], given[rank:]\n",
    "        return given[::2], given[1::2]\n",
)
_convolutions.broken(
    "onnx-reach-of-a-gap",
    "a dilated filter ends with a gap",
    "return tuple((size - 1) * step + 1 for size, step in",
    "return tuple(size * step for size, step in",
)

_timeloop_text = In("exchange/timeloop/text.py", "test_exchange_timeloop_files.py")
_timeloop_text.broken(
    "timeloop-templates-read",
    "templates are read as they are",
    '    if "{{" in text or "{%" in text:\n',
    '    if "{%%" in text:\n',
    "::test_other_templates_are_refused",
)
_timeloop = In("exchange/timeloop/__init__.py", "test_exchange_timeloop.py")
_timeloop.broken(
    "timeloop-sizes-of-one-loop",
    "a dimension is enlarged to its innermost loop",
    "            sizes[factor.dim] *= factor.trips\n",
    "            sizes[factor.dim] = factor.trips\n",
    "::test_factors_and_order_by_hand",
    "::test_whole_tiles_cover_an_enlarged_problem",
)
_timeloop.broken(
    "timeloop-second-section",
    "of two sections of a kind the later counts",
    "            if key in sections:\n",
    "            if key in sections and not remarks and remarks:\n",
    "::TestByHand::test_sections_are_checked",
)
_timeloop.broken(
    "timeloop-unread-unsaid",
    "sections that are not read are not told",
    "                remarks.append(f\"section '{key}' is not read\")\n",
    "                remarks += []\n",
    "::TestByHand::test_sections_that_are_not_read_are_told",
)
_timeloop.broken(
    "timeloop-partial-tiles",
    "partial tiles are written without the form for them",
    "    sizes = None if residual else _whole_sizes(problem, found)\n",
    "    sizes = None\n",
)

_mappings = In("exchange/timeloop/mappings.py", "test_exchange_timeloop.py")
_mappings.broken(
    "timeloop-read-outward",
    "permutations are read outer to inner",
    "running.sort(key=lambda dim: -rank.get(dim, 0))",
    "running.sort(key=lambda dim: rank.get(dim, 0))",
    "::test_factors_and_order_by_hand",
    "::TestByHand",
)
_mappings.broken(
    "timeloop-last-beyond",
    "the last of a loop's tiles may have more than the others",
    "elif full == 0 or not 1 <= last <= full:",
    "elif full == 0 or not 1 <= last:",
    "::TestByHand::test_factors_that_cannot_be",
)
_mappings.broken(
    "timeloop-factor-twice",
    "of two factors of a dimension the later counts",
    "        elif dim in trips:\n",
    "        elif dim in trips and not words:\n",
    "::TestByHand::test_factors_that_cannot_be",
)

_blocks = In("exchange/timeloop/blocks.py", "test_exchange_timeloop.py")
_blocks.broken(
    "timeloop-joined-mesh-full",
    "two loops of a mesh that are joined have no rest",
    "last = (other.last - 1) * factor.trips + factor.last",
    "last = other.last * factor.trips",
    "::test_meshes_hold_what_they_are_given",
)
_blocks.broken(
    "timeloop-units-inside-out",
    "loops of an inner unit may stand around those of an outer one",
    "loop.unit in closed or any(order[loop.unit] < order[one] for one in closed)",
    "loop.unit in closed",
    "::test_spatial_loops_must_suit_the_machine",
)

_reading = In("exchange/timeloop/reading.py", "test_exchange_timeloop.py")
_reading.broken(
    "timeloop-one-mesh",
    "a mesh is as large as it is high",
    "            fan *= int(text)\n",
    "            fan = int(text)\n",
    "::TestByHand::test_meshes_in_a_row_and_parallel_scratchpads",
)

_shapes = In("exchange/timeloop/shapes.py", "test_exchange_timeloop.py")
_shapes.broken(
    "timeloop-coefficients-added",
    "two coefficients of a product are added",
    "            coefficient *= factors.get(str(word), 1)\n",
    "            coefficient += factors.get(str(word), 1) - 1\n",
    "::TestByHand::test_coefficients_of_a_product_multiply",
)
_shapes.broken(
    "timeloop-output-in-its-place",
    "an output that stands first is the first operand",
    "order = sorted(axes, key=lambda one: one == written)",
    "order = list(axes)",
    "::TestByHand::test_the_output_goes_last",
)

EXCHANGE_REST = tuple(
    mutant
    for file in (
        _graph, _layers, _flat, _convolutions, _timeloop_text, _timeloop, _mappings, _blocks,
        _reading, _shapes,
    )
    for mutant in file.mutants
)  # fmt: skip
