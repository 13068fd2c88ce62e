"""Mutants of choosing a kernel's configuration."""

from __future__ import annotations

from .mutant import In

_PRODUCTS = "test_choice_model.py::test_products_take_what_the_model_says"
_CONVOLUTIONS = "test_choice_model.py::test_convolutions_take_what_the_model_says"

_pick = In("gpu/choice/pick.py", "test_choice.py")
_pick.broken(
    "pick-refused-ranked",
    "configurations that do not compile are ranked",
    "feasible = ~family.refused(space, width) &",
    "feasible =",
    "::test_what_cannot_run_is_left_out",
)
_pick.broken(
    "pick-all-may-be-best",
    "all of the first few may be the best, however slow",
    "found.time_s[few] <= found.time_s[order[0]] * judged(family.name).may_be_best",
    "True",
    "::test_the_set_is_what_is_estimated_near_the_first",
)
_pick.broken(
    "pick-set-unlimited",
    "of a large space, more than its share may be the best",
    "few = order[: max(family.few, int(_SHARE * len(space)))]",
    "few = order",
    "::test_the_set_is_what_is_estimated_near_the_first",
)
_pick.broken(
    "pick-ties-by-place",
    "of equal estimates, the larger block goes first",
    "np.lexsort((np.arange(len(space)), taken.shared_bytes, found.time_s))",
    "np.lexsort((np.arange(len(space)), -taken.shared_bytes, found.time_s))",
    "::test_of_equal_estimates_the_smaller_block_goes_first",
)
_pick.broken(
    "pick-bounds-hidden",
    "the resource named takes the least time",
    "bound_by=max(parts,",
    "bound_by=min(parts,",
    "::test_what_most_time_is_spent_on",
)
_pick.broken(
    "pick-tries-twice",
    "groups of rows that change nothing are tried twice",
    "        ranked = _tried_once(ranked)\n",
    "        pass\n",
    "test_choice.py::test_of_what_is_usually_tried_groups_that_change_nothing_are_left_out",
)
_pipeline = In("gpu/choice/pipeline.py", "test_choice_model.py")
_pipeline.broken(
    "pipeline-warps-everywhere",
    "one warp uses all schedulers",
    "np.ceil(resident * warps / schedulers) * schedulers / warps",
    "resident",
    _PRODUCTS,
)
_pipeline.broken(
    "pipeline-one-block-issues",
    "of the blocks that share an SM one issues instructions",
    "np.maximum(resident * warps / schedulers * fit.issue_cycles",
    "np.maximum(warps / schedulers * fit.issue_cycles",
    _PRODUCTS,
)
_pipeline.broken(
    "pipeline-last-wave-whole",
    "the last wave holds as many blocks as the others",
    "beside = np.clip(np.ceil(rest / machine.sms), 1, taken.resident)",
    "beside = taken.resident",
    _PRODUCTS,
)
_pipeline.broken(
    "pipeline-last-wave-spread",
    "blocks of four warps that follow others always spread evenly",
    "paired = np.where(four & (full > 0), fit.paired, 0.0)",
    "paired = np.zeros_like(full)",
    _CONVOLUTIONS,
)
_pipeline.broken(
    "pipeline-factors-of-one-type",
    "factors of kernels of fp16 hold for all data types",
    'get(f"{source} {kind}")',
    'get(f"{source} fp16")',
    _CONVOLUTIONS,
)
_pipeline.broken(
    "pipeline-eight-warps-paired",
    "blocks of eight warps that end together are followed by as many, too",
    "paired = np.where(four & (full > 0), fit.paired, 0.0)",
    "paired = np.where(full > 0, fit.paired, 0.0)",
    _CONVOLUTIONS,
)
_pipeline.broken(
    "pipeline-first-wave-paired",
    "blocks of an only wave do not spread evenly",
    "paired = np.where(four & (full > 0), fit.paired, 0.0)",
    "paired = np.where(four, fit.paired, 0.0)",
    _CONVOLUTIONS,
)
_pipeline.broken(
    "pipeline-addresses-hidden",
    "a block that multiplies alone does not wait for addresses",
    "tensor = np.maximum(tensor, work.tensor_cycles + work.alone_cycles)",
    "tensor = np.maximum(tensor, work.tensor_cycles)",
    _CONVOLUTIONS,
)
_pipeline.broken(
    "pipeline-later-as-first",
    "requests of later waves are merged as those of the first",
    "later = wave(taken.resident, places, fit.merged_later)",
    "later = wave(taken.resident, places, fit.merged_first)",
    _PRODUCTS,
)
_pipeline.broken(
    "pipeline-one-wave-more",
    "the first wave runs twice",
    "first[0] + (full - 1) * later[0]",
    "first[0] + full * later[0]",
    _PRODUCTS,
)
_pipeline.broken(
    "pipeline-stages-all-ahead",
    "operands are asked for as many steps ahead as there are stages",
    "np.where(by_group, np.maximum(stages - 1, 1), ahead)",
    "np.where(by_group, np.maximum(stages, 1), ahead)",
    _PRODUCTS,
)
_pipeline.broken(
    "pipeline-dram-of-a-block",
    "a step waits for what DRAM delivers to one block",
    "dram = dram / (work.blocks * work.steps) * live",
    "dram = dram / (work.blocks * work.steps)",
    _PRODUCTS,
)
_pipeline.broken(
    "pipeline-power-at-once",
    "a kernel's power counts from the first moment",
    " - fit.slack_us * 1e-6\n",
    "\n",
    _PRODUCTS,
)
_pipeline.broken(
    "pipeline-two-stages-hide",
    "two stages hide a step's arithmetic",
    "np.where(stages <= 2, fit.two_stages",
    "np.where(stages < 2, fit.two_stages",
    _PRODUCTS,
)
_pipeline.broken(
    "pipeline-parts-of-last-wave",
    "what a kernel spends its time on is told of its last wave",
    "np.where(full > 1, mine, np.where(full > 0, early, late))",
    "np.where(full > 1, late, np.where(full > 0, early, late))",
    _PRODUCTS,
)
_pipeline.broken(
    "pipeline-parts-in-memory",
    "parts of sums are always read from memory",
    "lasts = part_bytes <= machine.l2_bytes",
    "lasts = part_bytes < 0",
    _PRODUCTS,
)
_pipeline.broken(
    "pipeline-rows-not-lines",
    "rows of B cost L2 once, however long",
    "+ fit.row_bytes * lines",
    "+ fit.row_bytes",
    _PRODUCTS,
)
_pipeline.broken(
    "pipeline-rows-aligned",
    "all rows start at a line",
    "step = gcd(apart, unit)",
    "step = unit",
    _PRODUCTS,
)
_pipeline.broken(
    "pipeline-narrow-rows-free",
    "short rows of tiles keep DRAM no longer",
    "read_bytes * (1 + fit.narrow * _SECTOR / row_bytes)",
    "read_bytes * (row_bytes / row_bytes)",
    _PRODUCTS,
)
_pipeline.broken(
    "pipeline-fills-at-once",
    "what is asked for ahead comes at once",
    "fit.fill * (stages - 1) * alone",
    "0 * alone",
    _PRODUCTS,
)
_pipeline.broken(
    "pipeline-terms-at-once",
    "instructions on the same sums do not wait for each other",
    "np.maximum(resident * warps / schedulers * fit.issue_cycles, chained)",
    "resident * warps / schedulers * fit.issue_cycles + 0 * chained",
    _PRODUCTS,
)
_families = In("gpu/choice/families.py", "test_choice_model.py")
_families.broken(
    "families-group-of-the-first",
    "of a group of products the first is read from memory",
    "np.sum([one.dram_bytes(live) for one in parts], axis=0)",
    "parts[0].dram_bytes(live)",
    "test_choice_grouped.py::test_equal_products_are_a_batch",
)
_families.broken(
    "families-group-waves",
    "each wave of a group takes the steps of the whole list",
    "steps=listed_steps(*whole) / waves",
    "steps=listed_steps(*whole)",
    "test_choice_grouped.py::test_equal_products_are_a_batch",
)
_families.broken(
    "families-batch-once",
    "of a batch, one product's blocks run",
    "blocks=product.batch * down * across * split",
    "blocks=down * across * split",
    _PRODUCTS,
)
_families.broken(
    "families-parts-added-free",
    "parts of sums are added in no time",
    "after_s=np.where(split > 1, added_s(parts, written, machine, fit), 0.0)",
    "after_s=np.zeros_like(split)",
    _PRODUCTS,
)
_families.broken(
    "families-terms-not-split",
    "each block that shares a tile computes all of its terms",
    "steps=np.ceil(np.ceil(terms) / bk)",
    "steps=np.ceil(k / bk)",
    _PRODUCTS,
)
_families.broken(
    "families-l2-keeps-b",
    "what L2 lost of B is not read again",
    "np.maximum(down / together - 1, 0) * again",
    "0 * again",
    _PRODUCTS,
)
_families.broken(
    "families-each-group-alone",
    "groups that run at a time read columns of B one after another",
    "together = np.maximum(live / across, group)",
    "together = np.maximum(0 * live, group)",
    _PRODUCTS,
)
_families.broken(
    "families-neighbours-in-rows",
    "blocks launched next to each other are always of one row of tiles",
    "whole, rest = np.divmod(near, group * across)",
    "whole, rest = np.divmod(near, across)",
    _PRODUCTS,
)
_families.broken(
    "families-last-group-whole",
    "the last group has as many rows of tiles as the others",
    "np.minimum(whole * group + np.minimum(rest, group), down)",
    "whole * group + np.minimum(rest, group)",
    _PRODUCTS,
)
_families.broken(
    "families-pixels-not-shared",
    "blocks of a convolution ask L2 for nothing together",
    "shared_bytes=_shared_bytes((a, b), np.minimum(_CONV_GROUP, down), down, across)",
    "shared_bytes=np.zeros_like(bm)",
    _CONVOLUTIONS,
)
_families.broken(
    "families-pixels-of-one-image",
    "a convolution computes one image",
    "pixels, places = layer.n * layer.p * layer.q, layer.r * layer.s",
    "pixels, places = layer.p * layer.q, layer.r * layer.s",
    _CONVOLUTIONS,
)
_families.broken(
    "families-places-at-once",
    "all filter positions are one sum",
    "steps=here * places",
    "steps=here",
    _CONVOLUTIONS,
)
_families.broken(
    "families-places-wait-at-each-step",
    "steps of a filter position wait one by one, however early they were asked for",
    "np.maximum(here - np.maximum(stages - 1, 1), 0)",
    "np.maximum(here - 1, 0)",
    _CONVOLUTIONS,
)
_families.broken(
    "families-addresses-of-four-warps",
    "eight warps wait for addresses as long as four",
    "fit.alone_cycles * addresses * GROUP_WARPS / warps",
    "fit.alone_cycles * addresses",
    _CONVOLUTIONS,
)
_families.broken(
    "families-drains-without-addresses",
    "the next filter position does not wait for the last one's addresses",
    "shown * (tensor + alone)",
    "shown * tensor",
    _CONVOLUTIONS,
)
_families.broken(
    "families-factors-of-any-gpu",
    "what kernels take on Hopper holds for other GPUs",
    "if not is_measured(machine.gpu):",
    "if False:",
    _CONVOLUTIONS,
)
_families.broken(
    "families-factors-unused",
    "what compiled kernels take is not heeded",
    "found.time_s * compiled(source(problem), space, data_type)",
    "found.time_s * 1",
    _CONVOLUTIONS,
)
_families.broken(
    "families-pixels-stay-in-l2",
    "L2 holds pixels for all filter positions",
    "seen + again * lost",
    "seen + 0 * lost",
    _CONVOLUTIONS,
)
_families.broken(
    "families-groups-computed",
    "a convolution with groups passes for one without",
    'if layer.pass_ != "forward" or layer.groups != 1:',
    'if layer.pass_ != "forward":',
    "test_choice.py::test_faults_are_said",
)
_families.broken(
    "families-outputs-as-operands",
    "single bytes are stored in four",
    "sum(elems.values()) * width, written * width",
    "sum(elems.values()) * width, written * (width + 3)",
    "test_choice.py::test_bounds_count_the_output_once_as_it_may_be_stored",
)
_families.broken(
    "families-idle-warps",
    "eight warps share tiles too small for them",
    "(sums >= 4_096) & (sums <= 32_768)",
    "sums <= 32_768",
    "test_choice.py::test_all_families_rank_their_usual_space",
)
_space = In("gpu/choice/space.py", "test_choice.py")
_space.broken(
    "space-last-name-slowest",
    "the first parameter changes first",
    "itertools.product(*values.values())",
    "(each[::-1] for each in itertools.product(*list(values.values())[::-1]))",
    ">>> product_space",
)
_space.broken(
    "space-some-compiled",
    "what one compiled kernel told is asked of all",
    "if all(is_count(row.get(name), 0, 2**40) for row in given)",
    "if any(is_count(row.get(name), 0, 2**40) for row in given)",
    "::test_resources_that_some_kernels_told_are_not_used",
)
_space.broken(
    "space-zero-warps",
    "a parameter may be 0",
    "least := int(name not in switches)",
    "least := 0",
    "::test_spaces_are_read_from_files",
)
_space.broken(
    "space-first-fault-only",
    "the first fault of a space is told, the others are not",
    'InputError.refuse("space", faults[:20])',
    'InputError.refuse("space", faults[:1])',
    "::test_spaces_are_read_from_files",
)
_space.broken(
    "space-told-lost",
    "what compilers told of those that are kept is lost",
    "{name: one[chosen] for name, one in self.columns.items()}",
    "{name: self.columns[name][chosen] for name in self.names}",
    "::test_compiled_resources_are_used",
)
_triton = In("gpu/choice/triton.py", "test_choice.py")
_triton.broken(
    "triton-one-warp-as-four",
    "fewer than four warps are a group",
    'together: NDArray[np.bool_] = rows & (space["warps"] >= GROUP_WARPS)',
    "together: NDArray[np.bool_] = rows",
    "test_choice_feasible.py::test_four_warps_multiply_together_one_alone",
)
_triton.broken(
    "triton-registers-without-end",
    "a compiler does not see to it that a block fits",
    "np.minimum(gpu.max_thread_registers, of_block)",
    "np.minimum(gpu.max_thread_registers, of_block + 255)",
    "test_choice_feasible.py::test_blocks_of_many_threads_have_fewer_registers",
)
_triton.broken(
    "triton-told-lost",
    "what the compiler told of registers is not heeded",
    "np.where(np.isnan(told), (counted, spilled), told)",
    "counted, spilled",
    "::test_registers_are_those_that_the_compiler_told",
)
_triton.broken(
    "triton-told-of-any-width",
    "elements of all widths take the registers of two bytes",
    'f"{source} {width}"',
    'f"{source} 2"',
    "::test_registers_are_those_that_the_compiler_told",
)
_triton.broken(
    "triton-told-elsewhere",
    "a GPU with memory of its own for sums takes a Hopper GPU's registers",
    'return gpu.tensor_issue == "group" and not gpu.tensor_memory_bytes',
    'return gpu.tensor_issue == "group"',
    "::test_registers_are_guessed_near_what_the_compiler_took",
)
_triton.broken(
    "triton-stages-in-registers",
    "a stage that goes through registers takes shared memory",
    "np.maximum(stages - 1, 1))\n    shared",
    "stages)\n    shared",
    "::test_shared_memory_is_what_the_compiler_took",
)
_triton.broken(
    "triton-group-from-32-rows",
    "four warps multiply 32 rows together",
    'rows = space["block_m"] >= GROUP_ROWS',
    'rows = space["block_m"] >= GROUP_ROWS // 2',
    "::test_shared_memory_is_what_the_compiler_took",
)
_triton.broken(
    "triton-registers-by-block",
    "a warp takes registers to the register",
    "np.ceil(registers * gpu.warp_threads / gpu.register_unit) * gpu.register_unit",
    "registers * gpu.warp_threads * 2",
    "::test_residence_is_that_of_occupancy",
)
_triton.broken(
    "triton-shared-of-the-system",
    "what the system takes of shared memory is free",
    "(shared + gpu.system_shared_bytes)",
    "shared",
    "::test_residence_is_that_of_occupancy",
)
_triton.broken(
    "triton-sizes-of-any-kind",
    "sizes that are no powers of two compile",
    "(space[name] < smallest) | (powers != np.floor(powers))",
    "space[name] < smallest",
    ">>> refused",
)
_triton.broken(
    "triton-fragments-left-out",
    "fragments of operands take no registers",
    "(ones, sums, *copies, *fragments), strict=True)",
    "(ones, sums, *copies, 0, 0), strict=True)",
    "::test_registers_are_guessed_near_what_the_compiler_took",
)
_dispatch = In("gpu/choice/dispatch.py", "test_choice.py")
_dispatch.broken(
    "dispatch-gap",
    "ranges leave one size out",
    "first, last = last + 1, min(2 * last, most_m)",
    "first, last = last + 2, min(2 * last, most_m)",
    "::test_a_table_covers_all_rows_and_says_its_regret",
)
_dispatch.broken(
    "dispatch-beyond",
    "the last range ends at a power of two",
    "first, last = 1, min(_FIRST, most_m)",
    "first, last = 1, _FIRST",
    "::test_tables_of_few_rows",
)
_dispatch.broken(
    "dispatch-mean-regret",
    "regret is that of a size between",
    ").max(axis=0)\n",
    ").mean(axis=0)\n",
    "::test_tables_take_the_least_regret",
)
_dispatch.broken(
    "dispatch-next-range",
    "the last size of a range gets the next one's configuration",
    "            if m <= bucket.last:",
    "            if m < bucket.last:",
    "::test_tables_of_few_rows",
)
_dispatch.broken(
    "dispatch-first-size-only",
    "the first size of a range decides",
    "order = np.lexsort((found[0].taken.shared_bytes, regret))",
    "order = np.lexsort((found[0].taken.shared_bytes, times[0]))",
    "::test_tables_take_the_least_regret",
)
_attention = In("gpu/choice/attention.py", "test_choice_attention.py")
_SAID = "::test_attention_takes_what_the_model_says"
_attention.broken(
    "attention-one-product",
    "scores are not multiplied with values",
    "    macs = 2 * bm * bn * size\n",
    "    macs = bm * bn * size\n",
    _SAID,
)
_attention.broken(
    "attention-mask-shared",
    "warps of a block share the work of the mask",
    "(step.lanes - step.mask) / step.groups",
    "step.lanes / step.groups",
    _SAID,
)
_attention.broken(
    "attention-keys-of-all-heads",
    "each head of queries has keys of its own",
    "rows = self.groups * self.length",
    "rows = self.heads * self.length",
    "::test_fewer_heads_of_keys_are_less_to_read",
)
_attention.broken(
    "attention-diagonal-unseen",
    "a query does not see the key at its own place",
    "self.n_queries * (self.n_queries - 1) // 2 if",
    "self.n_queries * (self.n_queries + 1) // 2 if",
    "::test_masks_leave_out_work",
)
_attention.broken(
    "attention-queries-in-registers",
    "queries take no shared memory",
    "* 2 * bn * size + bm * size",
    "* 2 * bn * size",
    "::test_shared_memory_and_residence_are_the_compilers",
)
_attention.broken(
    "attention-two-stages-hide",
    "two stages are as good as three",
    'np.where(space["stages"] <= 2,',
    'np.where(space["stages"] < 2,',
    _SAID,
)
_attention.broken(
    "attention-all-rows-apart",
    "eight warps hold 32 rows of scores each four",
    'np.maximum(space["warps"] / GROUP_WARPS, 1), GROUP_ROWS)',
    'np.maximum(space["warps"] / GROUP_WARPS, 1), 1)',
    "::test_shared_memory_and_residence_are_the_compilers",
)
_decode = In("gpu/choice/decode.py", "test_choice_decode.py")
_decode.broken(
    "decode-a-query-a-head-of-keys",
    "a block holds the queries of one head",
    "problem.n_queries * problem.heads // problem.groups",
    "problem.n_queries",
    "::test_a_block_holds_all_queries_of_a_head_of_keys",
)
_decode.broken(
    "decode-all-keys-in-each-part",
    "each part walks over all keys",
    "np.ceil(np.ceil(problem.length / split) / bn)",
    "np.ceil(problem.length / bn)",
    "::test_decoding_takes_what_the_model_says",
)
_decode.broken(
    "decode-any-parts",
    "parts need not be a power of two",
    "    return wrong | attention_refused(space, width)",
    "    return attention_refused(space, width)",
    "::test_a_block_holds_all_queries_of_a_head_of_keys",
)
_blocks = In("gpu/choice/_block_kernels.py", "test_choice_attention.py")
_IN_TURN = "::test_blocks_begin_as_others_end"
_GROUPED = "test_choice_grouped.py::test_blocks_start_where_a_place_is_free_first"
_blocks.broken(
    "blocks-listed-last-place",
    "a block starts where a place is free last",
    "if free[at] < free[first]:",
    "if free[at] > free[first]:",
    _GROUPED,
)
_blocks.broken(
    "blocks-listed-end-of-last",
    "a list ends with its last block, whatever still runs",
    "found[one] = max(found[one], end)",
    "found[one] = end",
    _GROUPED,
)
_blocks.broken(
    "blocks-mask-forgotten",
    "each block sees all keys",
    "min((at + 1) * rows, keys) if is_causal else keys",
    "keys",
    _IN_TURN,
)
_blocks.broken(
    "blocks-alone-as-together",
    "blocks that are left on an SM are no faster",
    "    return float(least * round_cycles[many])",
    "    return float(least * round_cycles[-1])",
    _IN_TURN,
)
_blocks.broken(
    "blocks-early-heads-free",
    "heads that are not walked take no time",
    "        found[one, 0] = before * rounds[one, resident]\n",
    "",
    _IN_TURN,
)
_blocks.broken(
    "blocks-alike-last-wave-whole",
    "the last wave of equal blocks is as crowded as the others",
    "round_cycles[min(left, resident)]",
    "round_cycles[resident]",
    _IN_TURN,
)
_blocks.broken(
    "blocks-alike-last-wave-uneven",
    "what is left of equal blocks is never shared evenly",
    "round_cycles[-(-left // sms)]\n    return now",
    "round_cycles[min(left, resident)]\n    return now",
    _IN_TURN,
)
_blocks.broken(
    "blocks-one-place",
    "a block that ends leaves its place empty",
    "            elif at < len(lengths):\n",
    "            elif at < 0:\n",
    _IN_TURN,
)
_choices = In("validation/choices.py", "test_choice.py")
_choices.broken(
    "choices-first-as-measured",
    "the first choices are the fastest measured",
    "in_order = measured[ranked.order]",
    "in_order = np.sort(measured)",
    "test_cli_pick.py::test_measured_spaces_are_shown_in_80_columns",
)
_choices.broken(
    "choices-arithmetic-mean",
    "what choices cost on average is an arithmetic mean",
    "float(np.exp(np.mean(np.log(costs))))",
    "float(np.mean(costs))",
    "::test_sums_of_measured_spaces",
)
_choices.broken(
    "choices-best-worst",
    "the worst is the best",
    '_worst"] = max(costs)',
    '_worst"] = min(costs)',
    "::test_sums_of_measured_spaces",
)
_choices.broken(
    "choices-library-untold",
    "what a library takes is not told",
    "one.rows, libraries.get(key))",
    "one.rows, None)",
    "::test_measured_files_are_checked",
)
_choices.broken(
    "choices-types-together",
    "measurements of two data types are one space",
    'key = (family.name, data_type, str(line["problem"]))',
    'key = (family.name, "", str(line["problem"]))',
    "::test_sums_of_measured_spaces",
)
_choices.broken(
    "choices-mape-signed",
    "errors of both signs cancel",
    "np.mean(np.abs(estimate / measured - 1))",
    "abs(np.mean(estimate / measured - 1))",
    "::test_sums_of_measured_spaces",
)
_cli_pick = In("cli/pick.py", "test_cli_pick.py")
_cli_pick.broken(
    "pick-cli-columns-mixed",
    "rows of another kernel have other columns",
    "({name: row.get(name) for name in columns} for row in rows)",
    "rows",
    "::test_a_workload_is_what_kernels_compute_of_it",
)
_cli_pick.broken(
    "pick-cli-nothing-is-done",
    "a workload of which no kernel computes anything is done",
    "    if not found:\n",
    "    if found is None:\n",
    "::test_nothing_that_a_kernel_computes_is_bad_input",
)
_cli_pick.broken(
    "pick-cli-batch-dropped",
    "the table for a batch is that of one product",
    "if product.batch != 1:",
    "if product.batch < 1:",
    "::test_tables_over_rows",
)
_cli_pick.broken(
    "pick-cli-space-unread",
    "a table is made of the usual configurations, whatever the file says",
    "data_type=data_type, space=space)",
    "data_type=data_type, space=None)",
    "::test_own_spaces",
)
_cli_pick.broken(
    "pick-cli-first-of-many-emitted",
    "of a workload, the first layer's kernel is written",
    "(select_one(text, layers),) if is_one else",
    "select(text, layers).workload.problems if is_one else",
    "::test_a_kernel_is_written",
)
_cli_pick.broken(
    "pick-cli-interval-reversed",
    "the interval begins where it ends",
    "scaled(one.low_us * 1e-6",
    "scaled(one.high_us * 1e-6",
    "::test_wide_tables_say_intervals",
)
_cli_pick.broken(
    "pick-cli-always-measured",
    "choices on a GPU that was never measured come without a warning",
    "if found.warning:",
    "if False:",
    "::test_what_was_never_measured_is_said_so",
)
_cli_pick.broken(
    "pick-cli-tables-again",
    "weights that several layers have get a table each",
    "        if made not in found:\n",
    "        if made:\n",
    "::test_tables_over_rows",
)
_cli_choices = In("cli/validate_choices.py", "test_cli_pick.py")
_cli_choices.broken(
    "choices-cli-left-out-unsaid",
    "rows that do not count are not told",
    '    for kind, many in found.summary["left_out"].items():',
    "    for kind, many in ():",
    "::test_measured_spaces_are_shown_in_80_columns",
)
_cli_choices.broken(
    "choices-cli-kernel-ignored",
    "the kernel that is named is not used",
    "validate_choices(file, arch, kernel=kernel)",
    "validate_choices(file, arch)",
    "::test_measured_spaces_that_are_wrong",
)
_cli_choices.broken(
    "choices-cli-smallest-set",
    "the smallest set passes for the largest",
    "percent(max(shares))",
    "percent(1 - max(shares))",
    "::test_measured_spaces_are_shown_in_80_columns",
)
_cli_choices.broken(
    "choices-cli-first-of-five",
    "the cost of the first choice is that of the best of five",
    'Column("first", "first_1", _times)',
    'Column("first", "first_5", _times)',
    "::test_measured_spaces_are_shown_in_80_columns",
)
_cli_choices.broken(
    "choices-cli-seconds",
    "microseconds are shown as seconds",
    'one["best_us"] * 1e-6',
    'one["best_us"]',
    "::test_measured_spaces_are_shown_in_80_columns",
)

CHOICE = (
    *_pick.mutants,
    *_pipeline.mutants,
    *_families.mutants,
    *_space.mutants,
    *_triton.mutants,
    *_attention.mutants,
    *_decode.mutants,
    *_blocks.mutants,
    *_dispatch.mutants,
    *_choices.mutants,
    *_cli_pick.mutants,
    *_cli_choices.mutants,
)
