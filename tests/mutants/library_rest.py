"""More mutants of library kernels: products, launches, pipelines, convolutions."""

from __future__ import annotations

from .mutant import In

_machine = In("gpu/library/machine.py", "test_library_pipelined.py")
_machine.broken(
    "library-fp8-gives-sums",
    "products of fp8 are stored as their sums are",
    'return 2 if data_type == "fp8" else sum_bytes(width)',
    "return sum_bytes(width)",
    "::test_fp8_is_scaled_from_16_bits_and_gives_16",
    "test_choice_model.py::test_products_take_what_the_model_says",
)
_machine.broken(
    "library-l2-behind-l2",
    "where a larger cache lies behind L2, its bandwidth and capacity are not those of memory",
    "    l2 = caches[0]\n",
    "    l2 = caches[-1]\n",
    "test_library_properties.py::test_a_cache_behind_l2_is_what_comes_before_memory",
)
_machine.broken(
    "library-halves-always-packed",
    "lanes count as taking two halves where the file says that they take one",
    "    if packed == 2:\n",
    "    if packed == 4:\n",
    "test_library_properties.py::test_only_rates_beyond_packed_lanes_are_tensor_cores",
)
_machine.broken(
    "library-tf32-on-lanes",
    "lanes compute tf32 where it is no faster than fp32",
    "data_type not in _TENSOR_ONLY and macs <= of_lanes",
    "macs <= of_lanes",
    "test_library_properties.py::test_only_rates_beyond_packed_lanes_are_tensor_cores",
)
_machine.broken(
    "library-sums-of-a-byte",
    "sums of bytes are stored as bytes",
    "return 4 if width == 1 else width",
    "return width",
    ">>> sum_bytes",
)

_gemm = In("gpu/library/gemm.py", "test_library_gemm.py")
_gemm.broken(
    "library-bound-of-twice-the-bytes",
    "the bound of a product takes each byte twice",
    "touched = product.a_bytes + product.b_bytes + product.c_bytes",
    "touched = 2 * (product.a_bytes + product.b_bytes + product.c_bytes)",
    "::test_no_measured_row_beats_the_bound",
    "test_library_pipelined.py::test_no_row_is_below_its_bound",
)
_gemm.broken(
    "library-batch-of-one",
    "a batch is a single product",
    'sizes.get("B", 1), a, b, c,',
    "1, a, b, c,",
    "::test_a_batch_is_its_products_side_by_side",
)
_gemm.broken(
    "library-numbers-of-the-other-cores",
    "ordinary lanes are calibrated as tensor cores are",
    'calibration("fp32" if machine.on_lanes else "fp16")',
    'calibration("fp16" if machine.on_lanes else "fp32")',
    "::test_errors_of_the_file_are_those_of_the_model",
)
_gemm.broken(
    "library-any-name",
    "a library without kernels for the data type is taken",
    "        if name not in runs:\n",
    "        if name not in LIBRARIES and name != _PIPELINED:\n",
    "::test_faults_are_named",
    "test_library_properties.py::test_a_library_must_have_kernels_for_the_data_type",
)

_launch = In("gpu/library/launch.py", "test_library_tiled.py")
_launch.broken(
    "launch-waves-of-one-block",
    "an SM holds one block at a time",
    "return self.blocks / (self.occupancy.blocks * self.machine.sms)",
    "return self.blocks / self.machine.sms",
)
_launch.broken(
    "launch-panels-swapped",
    "rows of A are read for each row of tiles",
    "panels = product.m * columns + product.n * rows",
    "panels = product.m * rows + product.n * columns",
)
_launch.broken(
    "launch-parts-unwritten",
    "parts of split sums are never written",
    "        l2_bytes_written=product.c_bytes + parts,\n",
    "        l2_bytes_written=product.c_bytes,\n",
)

_pipelined = In("gpu/library/pipelined.py", "test_library_pipelined.py")
_WALK = "::test_a_literal_walk_agrees"
_pipelined.broken(
    "pipelined-parts-of-a-tile",
    "SMs share a tile",
    "turns = np.ceil(tiles / machine.sms)",
    "turns = tiles / machine.sms",
    _WALK,
)
_pipelined.broken(
    "pipelined-all-stages-ahead",
    "the stage at work is in flight, too",
    "ahead = np.minimum(stages - 1, steps) * beside",
    "ahead = np.minimum(stages, steps) * beside",
    _WALK,
)
_pipelined.broken(
    "pipelined-parts-not-read",
    "parts of split sums are written, not read",
    "summed = 2 * 4 * splits",
    "summed = 4 * splits",
    _WALK,
)

_conv = In("gpu/library/conv.py", "test_library_conv.py")
_conv.broken(
    "conv-half-a-group",
    "tensor cores take layers of which only the filters come in eights",
    "whole = layer.c % _TENSOR_CHANNELS == 0 and layer.k % _TENSOR_CHANNELS == 0",
    "whole = layer.k % _TENSOR_CHANNELS == 0",
    "::test_tensor_cores_take_whole_groups_of_eight_channels",
)
_conv.broken(
    "conv-slowest-algorithm",
    "a library takes its slowest algorithm",
    "found = min((run for run in runs if run is not None), key=lambda run: run.time_s)",
    "found = max((run for run in runs if run is not None), key=lambda run: run.time_s)",
    "::test_the_default_is_the_fastest_of_the_choices",
)
_conv.broken(
    "conv-macs-are-flops",
    "a multiply-accumulate is one operation",
    "return 2 * _macs_of(problem, layer_of(problem), algorithm)",
    "return _macs_of(problem, layer_of(problem), algorithm)",
)

LIBRARY_REST = tuple(
    mutant for file in (_machine, _gemm, _launch, _pipelined, _conv) for mutant in file.mutants
)
