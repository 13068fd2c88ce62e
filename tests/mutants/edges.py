"""Mutants of what comes from outside: YAML, PyTorch, ONNX's lengths, other tools, command lines."""

from __future__ import annotations

from .mutant import In

_yaml = In("base/yaml_text.py", "test_exchange_timeloop_files.py")
_MALFORMED = "test_arch_file.py::test_malformed_files"
_SWELL = "::test_aliases_cannot_swell"
_yaml.broken(
    "yaml-later-key-counts",
    "of two keys that are alike the later counts",
    "        if key in parent:\n",
    "        if key in self.faults:\n",
    _MALFORMED,
)
_yaml.broken(
    "yaml-second-document",
    "of several documents the first is read",
    "            if self.documents:\n                raise",
    "            if not self.documents and self.keys:\n                raise",
    _MALFORMED,
)
_yaml.broken(
    "yaml-base-wins",
    "what a merge key names comes before a mapping's own values",
    "        mine = own.setdefault(key, value)\n",
    "        mine = own[key] = value\n",
    "::test_plain_merges_are_those_of_yaml",
)
_yaml.broken(
    "yaml-merges-are-shallow",
    "mappings inside mappings are not merged",
    'is_deep=key == "<<<")',
    "is_deep=False)",
    "::test_deep_merges_are_those_of_the_cheatsheet",
)
_yaml.broken(
    "yaml-alias-is-itself",
    "an alias is the value that it names, not a copy",
    "return self._copy(found, where, len(self.open))",
    "return found",
    "::test_deep_merges_are_those_of_the_cheatsheet",
)
_yaml.broken(
    "yaml-copies-uncounted",
    "aliases may stand for any number of values",
    "        self.n_aliased += 1\n",
    "        self.n_aliased = 1\n",
    _SWELL,
)

_torch = In("network/torch_graph.py", "test_from_torch.py")
_STANDIN = "::test_calls_become_layers"
_torch.broken(
    "torch-queries-of-one-head",
    "queries that share a key are one head's",
    "q[0] * k[1], q[2] * (q[1] // k[1])",
    "q[0] * k[1], q[2]",
    _STANDIN,
)
_torch.broken(
    "torch-filters-of-all-groups",
    "a transposed convolution has its filters once for each group",
    "(w[1] * groups, x[1]) if transposed",
    "(w[1] * groups, w[0] * groups) if transposed",
    _STANDIN,
)
_torch.broken(
    "torch-images-exchanged",
    "of a transposed convolution the small image is taken for the large one",
    "large, small = (made, x) if transposed else (x, made)",
    "large, small = (x, made)",
    _STANDIN,
)
_torch.broken(
    "torch-straight-is-turned",
    "an operand that is not turned counts as turned",
    "if axes[-2:] == [rank - 1, rank - 2]:",
    "if axes[-2:] == [rank - 2, rank - 1]:",
    _STANDIN,
)
_torch.broken(
    "torch-weights-are-inputs",
    "what a module stores counts as an input",
    "inputs += [] if one.name in stored else [one.name]",
    "inputs += [one.name]",
    _STANDIN,
)
_torch.broken(
    "torch-stays-in-evaluation",
    "a module is left in evaluation",
    "        module.train(was_training)\n",
    "        module.train(False)\n",
    _STANDIN,
)

_types = In("network/onnx_types.py", "test_network_onnx.py", "test_onnx_inputs.py")
_LENGTHS = "::TestLengths"
_types.broken(
    "onnx-batch-unasked",
    "an open batch is 1 whatever is asked for",
    "lengths.setdefault(symbol, batch or 1)",
    "lengths.setdefault(symbol, 1)",
    "::TestLengths::test_batch",
)
_types.broken(
    "onnx-batch-against-dim",
    "a batch may differ from the dimension that is the batch",
    "if batch is not None and dims.get(symbol, batch) != batch:",
    "if batch is not None and dims.get(symbol, batch) == 0:",
    "::TestLengths::test_only_the_first_open_length_is_the_batch",
)
_types.broken(
    "onnx-reshapes-unchecked",
    "a batch that the model's constants contradict is taken",
    "is_forced=first != batch)",
    "is_forced=False)",
    "::TestLengths::test_a_batch_that_the_model_contradicts",
)
_types.broken(
    "onnx-two-lengths-at-once",
    "a symbol with two lengths is one of them everywhere",
    "for name, sizes in meant.items() if len(sizes) == 1}",
    "for name, sizes in meant.items() if sizes}",
    "test_onnx_inputs.py::test_shapes_say_what_symbols_of_other_inputs_are",
)
_types.broken(
    "onnx-any-rank",
    "a shape may have fewer axes than the model has",
    "is_longer = dims is not None and len(dims) != len(sizes)",
    "is_longer = dims is not None and len(dims) < len(sizes)",
    "test_onnx_inputs.py::test_what_does_not_fit_is_refused",
)

_reading = In("exchange/timeloop/reading.py", "test_exchange_timeloop.py")
_reading.broken(
    "timeloop-bandwidth-of-one",
    "all copies of a storage together are as fast as one",
    "words_a_cycle * word_bits / 8 * instances * clock_hz",
    "words_a_cycle * word_bits / 8 * clock_hz",
    "::TestByHand::test_meshes_in_a_row_and_parallel_scratchpads",
)
_reading.broken(
    "timeloop-disabled-parts",
    "parts that are switched off are read",
    '.lower() == "false":\n        return',
    '.lower() == "":\n        return',
    "::TestByHand::test_parts_that_are_switched_off_are_not_there",
)
_reading.broken(
    "timeloop-width-of-a-word",
    "a line of a storage is as wide as a word",
    'math.floor(depth * number("width", word_bits) / 8)',
    "math.floor(depth * word_bits / 8)",
    "::TestByHand::test_parts_that_are_switched_off_are_not_there",
)
_reading.broken(
    "timeloop-clock-assumed",
    "the clock is 1 GHz whatever a file says",
    "            return float(text)\n    remarks",
    "            return _CLOCK_S\n    remarks",
    "::TestByHand::test_parts_that_are_switched_off_are_not_there",
)
_mappings = In("exchange/timeloop/mappings.py", "test_exchange_timeloop.py")
_mappings.broken(
    "timeloop-half-covered",
    "factors may cover less than a dimension",
    "if reached + 1 not in (written[dim], problem.size[dim]):",
    "if reached + 1 > written[dim]:",
    "::TestByHand::test_what_cannot_be_said",
)

_promise = In("models/_promise_kernels.py", "test_many.py")
_promise.broken(
    "many-rests-of-lists-whole",
    "many schedules: the list of a rest is as long as the others",
    "w[LISTS + n_lists, d] = rest\n",
    "w[LISTS + n_lists, d] = extent\n",
    "::test_any_schedules_on_any_machine",
)

_inputs = In("cli/inputs.py", "test_cli.py")
_INPUTS = "test_cli_inputs.py"
_inputs.broken(
    "inputs-results-are-workloads",
    "what a search has saved is read as a workload",
    '        raise InputError(\n            f"{text}: saved results, where',
    '        print(\n            f"{text}: saved results, where',
    f"{_INPUTS}::test_results_are_no_workload",
)
_inputs.broken(
    "inputs-all-layers",
    "layers that are chosen are all layers",
    "return choose(self.whole.workload, self.layers) if self.layers else self.whole",
    "return self.whole",
    f"{_INPUTS}::test_layers_are_chosen_and_named",
)
_inputs.broken(
    "inputs-line-has-a-name",
    "a problem in one line is shown with the name of none",
    'return "" if is_own else workload.name',
    "return workload.name",
    f"{_INPUTS}::test_layers_are_chosen_and_named",
)
_inputs.broken(
    "inputs-results-with-another-machine",
    "another machine is asked for than a file of results has, and passed over",
    "if context and context.get_parameter_source",
    "if not context and context.get_parameter_source",
    "test_cli_search.py::TestOut::test_show_reads_it_back",
)
_inputs.broken(
    "inputs-file-is-a-schedule",
    "a schedule in a file is read as text, whatever the file is",
    'if path.suffix == ".json":',
    'if path.suffix == ".jsn":',
    f"{_INPUTS}::test_schedules_come_from_texts_and_files",
)
_inputs.broken(
    "inputs-dialect-of-texts-only",
    "a schedule in a file is read in the usual dialect",
    "return parse_schedule(content, problem, dialect=dialect)",
    "return parse_schedule(content, problem)",
    f"{_INPUTS}::test_schedules_come_from_texts_and_files",
)

_page_file = In("cli/page_file.py", "test_page.py")
_BESIDE = "::test_measurements_of_something_else"
_page_file.broken(
    "page-file-any-workload",
    "times of another workload stand on a page",
    'for name in ("workload_digest", "arch_digest"):',
    'for name in ("arch_digest",):',
    _BESIDE,
)
_page_file.broken(
    "page-file-later-run-counts",
    "of two times of a layer the later counts",
    'if row["layer"] in found:',
    'if row["layer"] in row:',
    _BESIDE,
)
_page_file.broken(
    "page-file-any-row",
    "rows without times stand on a page",
    "            if not is_one:\n",
    "            if is_one is None:\n",
    _BESIDE,
)
_page_file.broken(
    "page-file-over-its-source",
    "a page may be written over what it is made of",
    "if os.path.realpath(target_of(path)) == os.path.realpath(source):",
    "if os.fspath(path) == os.path.realpath(source):",
    "::test_a_page_never_takes_the_place_of_what_it_is_made_of",
)
_page_file.broken(
    "page-file-reasons-of-the-best",
    "why the best schedule is worse is asked, of the last it is not",
    "for row in found[1:]]",
    "for row in found[:-1]]",
    "::test_report_makes_the_page_of_results",
)

_tradeoffs = In("scheduler/tradeoffs.py", "test_tradeoffs.py")
_FRONT = "::test_no_schedule_of_a_whole_space_is_beyond_the_front"
_tradeoffs.broken(
    "tradeoffs-one-gap-of-two",
    "between a schedule and a faster one no others are sought",
    "gaps += [(fast, between), (between, frugal)]",
    "gaps += [(between, frugal)]",
    _FRONT,
)
_tradeoffs.broken(
    "tradeoffs-ends-only",
    "no schedule between the fastest and the most frugal is sought",
    "gaps = [(found[0], found[1])]",
    "gaps = [(found[0], found[0])]",
    _FRONT,
)
_tradeoffs.broken(
    "tradeoffs-capacity-is-free",
    "less capacity is no merit",
    "return self.time_s, self.dram_bytes, self.capacity_bytes",
    "return self.time_s, self.dram_bytes, 0",
    "::test_exactly_the_undominated_costs_remain",
)
_tradeoffs.broken(
    "tradeoffs-ties-stay",
    "schedules that are as good as others stay",
    "all(a <= b for a, b in zip(better.costs",
    "all(a < b for a, b in zip(better.costs",
    "::test_exactly_the_undominated_costs_remain",
)
_tradeoffs.broken(
    "tradeoffs-quarters",
    "of capacities every second one is left out",
    "        capacity //= 2\n",
    "        capacity //= 4\n",
    ">>> pareto",
)

_cpu = In("validation/cpu.py", "test_validation_cpu.py")
_SUMS = "::test_sums_of_a_file"
_cpu.broken(
    "cpu-best-is-worst",
    "the first choice is held against the slowest plan",
    "best = sum(min(one.measured_s for one in some)",
    "best = sum(max(one.measured_s for one in some)",
    "::test_the_first_choice_of_each_part_counts",
)
_cpu.broken(
    "cpu-error-of-the-measured",
    "errors of plans are relative to their estimates",
    "fmean(abs(one.estimate_s / one.measured_s - 1) for one in timed)",
    "fmean(abs(one.measured_s / one.estimate_s - 1) for one in timed)",
    "::test_the_first_choice_of_each_part_counts",
)
_cpu.broken(
    "cpu-above-is-below",
    "what is slower than the bound counts as below it",
    'row["measured_s"] < row["bound_s"]}',
    'row["measured_s"] > row["bound_s"]}',
    _SUMS,
)
_cpu.broken(
    "cpu-all-are-estimated",
    "problems that nothing estimates count as estimated",
    '"estimated": len(known),',
    '"estimated": len(made),',
    _SUMS,
)
_cpu.broken(
    "cpu-ratio-inverted",
    "estimates are told too small where they are too large",
    'error = guess / row["measured_s"] - 1 if is_known',
    'error = row["measured_s"] / guess - 1 if is_known',
    _SUMS,
)

_fitted = In("gpu/library/calibration.py", "test_library_gemm.py")
_FITTED = "::test_numbers_come_from_where_they_were_fitted"
_fitted.broken(
    "fitted-fp32-for-all",
    "products of any type have the numbers of fp32",
    "return of_data_type(Calibration, PRODUCTS, data_type)",
    'return of_data_type(Calibration, PRODUCTS, "fp32")',
    _FITTED,
)
_fitted.broken(
    "fitted-products-for-convolutions",
    "convolutions of any type have the numbers of fp32",
    "return of_data_type(ConvCalibration, CONVOLUTIONS, data_type)",
    'return of_data_type(ConvCalibration, CONVOLUTIONS, "fp32")',
    _FITTED,
)
_fitted.broken(
    "fitted-own-as-library",
    "kernels that are no library's have the spread of the library's",
    '(f"{measured_as} own {data_type}", "own")',
    '(f"{measured_as} {data_type}", "own")',
    _FITTED,
)
_fitted.broken(
    "fitted-known-everywhere",
    "estimates of any algorithm have the spread of known ones",
    "'known' if is_known or pass_ != 'forward' else 'any'",
    "'known'",
    _FITTED,
)
_fitted.broken(
    "fitted-other-first",
    "the spread of other GPUs comes before that of the same one",
    '    return first_spread(PRODUCTS, (f"{measured_as} {data_type}", other))',
    '    return first_spread(PRODUCTS, (other, f"{measured_as} {data_type}"))',
    _FITTED,
)

_coerced = In("network/coerced.py", "test_coerced.py")
_coerced.broken(
    "coerced-all-text",
    "text that a function takes as it is is read, too",
    '    if "str" in kinds:\n        return None\n',
    "",
    "::test_text_that_is_wanted_stays",
)
_coerced.broken(
    "coerced-places-only",
    "what is given by its name is not looked at",
    "elif parameter.name in given:",
    "elif parameter.name == given:",
    "::test_text_is_read_where_it_names_something",
)
_coerced.broken(
    "coerced-none-anywhere",
    "nothing may stand for a problem",
    'or ("None" in kinds and value is None)',
    "or value is None",
    "::test_other_types_are_refused_by_one_message",
)
_coerced.broken(
    "coerced-any-type",
    "a value of another type reaches the function",
    "if value is parameter.default or not",
    "if value is not None or not",
    "::test_other_types_are_refused_by_one_message",
)
_coerced.broken(
    "coerced-at-home",
    "functions are looked for in the modules that they come from",
    'called.__module__ = "loopsched"',
    "called.__module__ = function.__module__",
    "::test_what_is_exported_may_be_pickled",
)

_layers = In("network/zigzag_layers.py", "test_zigzag_layers.py")
_layers.broken(
    "zigzag-read-pools-have-weights",
    "what a pooling reads second is a weight",
    'operand == "W" and layer.is_product and',
    'operand == "W" and',
    "::test_a_network_is_read_with_its_graph",
)
_zigzag = In("exchange/zigzag.py", "test_exchange_tiles.py")
_zigzag.broken(
    "zigzag-partial-tiles-ordered",
    "an order is written although tiles are partial",
    "if inward and ordering and not cut:",
    "if inward and ordering:",
    "::TestZigZag::test_lanes_have_their_own_mesh_and_layers_their_names",
)
_zigzag.broken(
    "zigzag-bytes-for-bits",
    "operands have an eighth of their precision",
    "8 * tensor.element_bytes for tensor",
    "tensor.element_bytes for tensor",
    "::TestZigZag::test_a_convolution_in_zigzags_words",
)

EDGES = tuple(
    mutant
    for file in (
        _yaml, _torch, _types, _reading, _mappings, _promise, _inputs, _page_file, _tradeoffs,
        _cpu, _fitted, _coerced, _layers, _zigzag,
    )
    for mutant in file.mutants
)  # fmt: skip
