"""More mutants of models and networks: operators as nests, graphs, chains, exported code."""

from __future__ import annotations

from .mutant import In

_graphs = In("fusion/graphs.py", "test_fusion_models.py", "test_fusion_cli.py")
_graphs.broken(
    "fusion-residual-sums-pass",
    "a layer whose output takes a sum in on the way is fused all the same",
    "    if others:\n        return",
    "    if len(others) > 9:\n        return",
)
_graphs.broken(
    "fusion-windows-mixed",
    "tensors of different windows may meet between two layers",
    "        if len(own) > 1:\n",
    "        if len(own) > 9:\n",
)
_graphs.broken(
    "fusion-pools-after-open",
    "a pooling may follow one whose windows are not known",
    "    if node.op not in _POOLS or way.is_open:\n",
    "    if node.op not in _POOLS:\n",
    "::test_a_pooling_of_unknown_windows_stands_alone_between_layers",
)
_graphs.broken(
    "fusion-open-after-pools",
    "a pooling of unknown windows may follow one whose windows are known",
    "return _Way(is_open=True) if not way.pools else None",
    "return _Way(is_open=True)",
    "::test_a_pooling_of_unknown_windows_stands_alone_between_layers",
)
_graphs.broken(
    "fusion-any-operator-passes",
    "operators that need more than a tile pass between two layers",
    "        if more is None:\n            return f",
    "        more = more or own[0]\n        if more is None:\n            return f",
)

_view = In("network/onnx_view.py", "test_network_onnx.py", "test_onnx_numbers.py")
_view.broken(
    "onnx-no-elements",
    "an operand without elements makes a nest",
    "        if 0 in known.shape:\n",
    "        if -1 in known.shape:\n",
    "test_network_onnx.py::TestNests::test_what_has_no_nest_says_why",
)
_view.broken(
    "onnx-any-cast-is-stored",
    "an operand that was computed before a cast has the width from before it",
    'is_stored = maker.op == "Cast" and maker.inputs[0] not in self.makers',
    'is_stored = maker.op == "Cast"',
    "test_network_onnx.py::TestNests::test_what_is_computed_and_cast_is_stored_as_it_is_cast",
)
_view.broken(
    "onnx-narrow-for-some",
    "a result that some readers quantise is stored narrow for all",
    'if readers and all(one.op == "QuantizeLinear" for one in readers):',
    'if readers and any(one.op == "QuantizeLinear" for one in readers):',
    "test_network_onnx.py::TestNests::test_a_result_is_narrow_only_where_all_read_it_so",
)
_view.broken(
    "onnx-transpose-of-others",
    "any transpose turns the last two axes round",
    "return len(order) == rank >= 2 and order[-2] > order[-1]",
    "return len(order) == rank >= 2",
)
_view.broken(
    "onnx-through-any-reshape",
    "a transpose counts though a reshape after it changes the last axes",
    "if before is None or before[-2:] != last:",
    "if before is None:",
    "test_network_onnx.py::TestNests::test_a_reshape_ends_what_a_transpose_did",
)

_products = In("network/onnx_products.py", "test_network_onnx.py", "test_onnx_numbers.py")
_products.broken(
    "onnx-gemm-transpose-before-unseen",
    "Gemm: a transpose before the second operand is not seen",
    "turned = flip_a != view.is_transposed(0), flip_b != view.is_transposed(right)\n",
    "turned = flip_a != view.is_transposed(0), flip_b\n",
    "test_network_onnx.py::TestNests::test_a_transpose_before_gemm_turns_its_flag",
)
_products.broken(
    "onnx-batch-of-the-other",
    "a batch of one operand is taken for the other's",
    'else "A" if left > 1 else "B"',
    'else "B" if left > 1 else "A"',
)
_products.broken(
    "onnx-folded-rows-turned",
    "rows that a batch is folded into keep their transpose",
    "transpose_a=flip_a and not folded,",
    "transpose_a=flip_a,",
    "test_network_onnx.py::TestNests::test_a_batch_of_turned_rows_is_not_one_turned_operand",
)
_products.broken(
    "onnx-last-size-of-a-letter",
    "an axis of one that meets a longer one makes it one",
    "sizes[letter] = max(sizes[letter], size)",
    "sizes[letter] = size",
    "test_network_onnx.py::TestNests::test_sums",
)
_products.broken(
    "onnx-letters-occur-often",
    "letters that occur twice are in an implicit result",
    "if every.count(one) == 1)",
    "if every.count(one) >= 1)",
)
_products.broken(
    "onnx-ellipsis-from-the-left",
    "the axes of a shorter operand's ellipsis are the first ones",
    "hidden[max(0, widest - (rank - len(term) + 3)) :])",
    "hidden[: rank - len(term) + 3])",
)

_tiles = In("exchange/tiles.py", "test_exchange_tiles.py::TestTriton")
_tiles.broken(
    "triton-programs-added",
    "programs along two dimensions are added",
    '"programs": math.prod(grid.values()),',
    '"programs": sum(grid.values()),',
    ">>> to_triton",
)
_tiles.broken(
    "triton-odd-is-no-power",
    "only odd tiles are said to be no powers of two",
    "        if size & (size - 1)\n",
    "        if size & 1 and size > 1\n",
)
_tiles.broken(
    "triton-stages-of-the-outermost",
    "stages follow the outermost level",
    "arch.levels[-1].double_buffered",
    "arch.levels[0].double_buffered",
)
_tiles.broken(
    "triton-sums-whole",
    "a sum that is taken in pieces is one block",
    "for dim, size in tile.items()}\n    # Programs",
    "for dim, size in item.items()}\n    # Programs",
    ">>> to_triton",
)
_tiles.broken(
    "triton-innermost-unit",
    "programs end at the innermost unit's loops",
    "if loop.unit == units[0]) + 1",
    "if loop.unit == units[-1]) + 1",
)
_tiles.broken(
    "triton-atomics-unsaid",
    "programs that add to the same output are not told",
    "        if count > 1 and dim not in problem.parallel_dims\n",
    "        if count > 1 and dim in problem.parallel_dims\n",
)


_arrow = In("base/arrow_rows.py", "test_exchange_frames.py")
_arrow.broken(
    "arrow-large-if-all-are",
    "a column with some numbers beyond 64 bits keeps them",
    "    if any(not -_MOST <= value < _MOST for value in whole):\n",
    "    if whole and all(not -_MOST <= value < _MOST for value in whole):\n",
    ">>> columns",
)
_arrow.broken(
    "arrow-columns-of-the-first-row",
    "columns that the first row lacks are left out",
    "for row in kept for name in row))",
    "for row in kept[:1] for name in row))",
    ">>> columns",
)
_arrow.broken(
    "arrow-empty-column-untyped",
    "a column without any value has no type",
    "array.cast(pa.float64()) if pa.types.is_null(array.type) else array",
    "array",
    ">>> arrow_table",
)
_arrow.broken(
    "arrow-limit-too-near",
    "whole numbers that floats do not tell apart become floats",
    "_MOST = 2**63\n",
    "_MOST = 2**53\n",
    "::test_floats_stay_floats_and_whole_numbers_whole",
)

_diannao = In("published/diannao.py", "test_yalsa.py")
_diannao.broken(
    "diannao-macs-are-flops",
    "DianNao: a multiply-add is one operation",
    "_FLOPS_PER_ITERATION = 2\n",
    "_FLOPS_PER_ITERATION = 1\n",
    ">>> diannao_flops",
)
_diannao.broken(
    "diannao-decimal-giga",
    "DianNao: a GiB has 10**9 bytes",
    "_BYTES_PER_GIB = 1 << 30\n",
    "_BYTES_PER_GIB = 10**9\n",
    ">>> diannao_time",
)
_diannao.broken(
    "diannao-never-waits",
    "DianNao: memory never slows it down",
    "return max(compute, single(slowdown * compute))",
    "return compute",
    ">>> diannao_time",
)
_diannao.broken(
    "diannao-synapses-swapped",
    "DianNao: synapses go into the neurons' buffer",
    "sizes = (machine.synapse_bytes, machine.neuron_in_bytes, machine.neuron_out_bytes)",
    "sizes = (machine.neuron_in_bytes, machine.synapse_bytes, machine.neuron_out_bytes)",
)


_diannao.broken(
    "diannao-clock-of-memory-alone",
    "DianNao: a faster clock computes no faster",
    "machine.iterations_per_cycle) / frequency)",
    "machine.iterations_per_cycle))",
    "::test_the_clock_scales_compute_time_and_not_memory_time",
)

NETWORK_REST = tuple(
    mutant
    for file in (_graphs, _view, _products, _tiles, _arrow, _diannao)
    for mutant in file.mutants
)
