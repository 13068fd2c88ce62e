"""Mutants of the command line."""

from __future__ import annotations

from .mutant import In

_cli = In("cli/__init__.py", "test_cli.py")
_cli.broken(
    "cli-empty-is-bad-input",
    "a space with nothing left ends with the status of bad input",
    "return _complain(error, EXIT_EMPTY)",
    "return _complain(error, EXIT_INPUT)",
    "::TestFront::test_nothing_fits_is_4",
)
_cli.broken(
    "cli-bad-input-is-a-bug",
    "bad input ends with the status of a bug",
    "    except InputError as error:\n        return _complain(error, EXIT_INPUT)",
    "    except InputError as error:\n        return _complain(error, EXIT_BUG)",
    "::TestFront::test_bad_input_is_3_and_one_message",
)
_cli.broken(
    "cli-complains-on-stdout",
    "complaints go to standard output",
    'click.echo(f"Error: {message}", err=True)',
    'click.echo(f"Error: {message}")',
    "::TestFront::test_bad_input_is_3_and_one_message",
)
_cli.broken(
    "cli-interrupt-is-done",
    "an interruption ends as if all were done",
    '_complain("interrupted", EXIT_INTERRUPTED)',
    '_complain("interrupted", 0)',
    "::TestFront::test_an_interruption_is_130",
)
_cli.broken(
    "cli-usage-is-bad-input",
    "wrong usage ends with the status of bad input",
    "_explained(error).show()\n        return error.exit_code",
    "_explained(error).show()\n        return EXIT_INPUT",
    "::TestFront::test_wrong_usage_is_2",
)
_cli.broken(
    "cli-full-disk-is-a-bug",
    "a full disk ends with the status of a bug",
    '_complain(f"{where}{error.strerror or error}", EXIT_INPUT)',
    '_complain(f"{where}{error.strerror or error}", EXIT_BUG)',
    "test_streams.py::test_a_full_output_is_one_message",
)
_export = In("cli/export.py", "test_exchange_code.py")
_export.broken(
    "export-schedule-passed-over",
    "a program for a CPU has the plan that is chosen for it, though a schedule is given",
    "is_chosen = rank is None and not inputs.has_schedules",
    "is_chosen = rank is None",
    "::test_a_program_for_a_cpu_is_chosen_unless_a_schedule_is_given",
)
_export.broken(
    "export-cpu-by-a-search",
    "a program for a CPU is the schedule that a search finds, not what 'run' compiles",
    "is_chosen and inputs.machine.cpu is not None:",
    "is_chosen and inputs.machine.cpu is None:",
    "::test_a_program_for_a_cpu_is_chosen_unless_a_schedule_is_given",
)
_export.broken(
    "export-folder-with-a-dot",
    "a folder with a dot in its name is taken for a file",
    "return bool(place.suffix) and not place.is_dir()",
    "return bool(place.suffix)",
    "::test_several_programs_have_folders_in_order",
)
_export.broken(
    "export-one-folder",
    "of several problems the last is left in the folder",
    'place if len(made) == 1 else place / f"',
    'place if made else place / f"',
    "::test_several_programs_have_folders_in_order",
)
_export.broken(
    "export-names-ignored",
    "the function of a program has the name that it has by default",
    "(problem, schedule, arch, name=name)",
    "(problem, schedule, arch)",
    "::test_several_programs_have_folders_in_order",
)
_export.broken(
    "export-notes-of-all",
    "what holds for one problem is told of all",
    "        if len(of) == len(made):\n",
    "        if of:\n",
    "test_exchange_timeloop.py::test_notes_are_told_once",
)
_running = In("cli/running.py", "test_run.py")
_running.broken(
    "run-repeats-left-out",
    "totals count a layer once that a network runs several times",
    'sum(row[name] * row["count"] for row in rows)',
    "sum(row[name] for row in rows)",
    "::test_totals_count_repeats_and_options_reach_the_kernel",
)
_running.broken(
    "run-one-plan-measured",
    "one plan is timed, however many are asked for",
    "n_measured=n_measured,",
    "n_measured=1,",
    "::test_totals_count_repeats_and_options_reach_the_kernel",
)
_running.broken(
    "run-rates-of-the-option",
    "a problem that says itself that it is fp64 runs where no rate is known",
    '(data_type or type_of(problem)) == "fp64"',
    'data_type == "fp64"',
    "::test_the_command_shows_rows_and_a_table",
)
_running.broken(
    "run-types-of-the-option",
    "a type that a problem names and no kernel has is computed as another of its size",
    "    if data_type is None:\n",
    "    if data_type is not None:\n",
    "::test_a_type_that_is_not_computed_with_is_refused_where_a_problem_names_it",
)
_running.broken(
    "run-unchecked",
    "--check leaves ONNX Runtime out",
    "onnx=onnx,",
    "onnx=False,",
    "::test_check_names_what_it_was_held_against",
)
_running.broken(
    "run-stopped-is-whole",
    "a run that was interrupted adds up as if all layers had been run",
    "if len(rows) == chosen else",
    "if rows else",
    "::test_an_interrupted_run_does_not_add_up_all_layers",
)
_group = In("cli/group.py", "test_cli.py")
_group.broken(
    "cli-command-not-meant",
    "a misspelt command is not told the nearest",
    "ctx.fail(f\"no command '{args[0]}'; {nearest(args[0], names)}\")",
    "ctx.fail(f\"no command '{args[0]}'\")",
    "::TestFront::test_wrong_usage_is_2",
)
_analyze = In("cli/analyze.py", "test_cli.py")
_analyze.broken(
    "analyze-policy-ignored",
    "a buffer is a cache, whatever its policy",
    'buffer_arch(capacity_bytes=options.size_of("--capacity", capacity), policy=policy)',
    'buffer_arch(capacity_bytes=options.size_of("--capacity", capacity))',
    "::TestAnalyze::test_one_buffer_by_size",
)
_analyze.broken(
    "analyze-capacity-ignored",
    "the machine is scored although a buffer is asked for",
    "        if capacity is None\n        else buffer",
    "        if capacity is not None\n        else buffer",
    "::TestFront::test_bad_input_is_3_and_one_message",
)
_analyze.broken(
    "analyze-rates-invented",
    "a buffer that has only a size has times",
    "    if capacity is not None:\n        row =",
    "    if capacity is None:\n        row =",
    "::TestAnalyze::test_one_buffer_has_no_rates",
)
_analyze.broken(
    "analyze-arch-ignored",
    "--arch is ignored beside --capacity",
    'if capacity is not None and source("arch")',
    'if capacity is None and source("arch")',
    "::TestAnalyze::test_one_buffer_has_no_rates",
)
_yalsa = In("published/yalsa.py", "test_cli.py")
_yalsa.broken(
    "analyze-yalsa-width",
    "Yalsa's rows are for elements of four bytes",
    "schedule: Schedule, iterations_per_cycle: int = 16, element_bytes: int = 2\n",
    "schedule: Schedule, iterations_per_cycle: int = 16, element_bytes: int = 4\n",
    "::TestAnalyze::test_yalsa_rows",
)
_yalsa.broken(
    "analyze-yalsa-capacities",
    "Yalsa's caches begin at 32 bytes",
    "tuple(16 << doublings",
    "tuple(32 << doublings",
    "::TestAnalyze::test_yalsa_rows",
)
_analyze.broken(
    "analyze-least-inverted",
    "how far traffic is from the least is upside down",
    "ratio = score.dram_bytes / max(1, score.least_dram_bytes)",
    "ratio = score.least_dram_bytes / max(1, score.dram_bytes)",
    "::TestAnalyze::test_sums_are_the_librarys",
)
_analyze.broken(
    "analyze-reads-are-writes",
    "reads and writes of a boundary change places",
    'Column("read", lambda row: row[3].read_bytes, "B", spare=3)',
    'Column("read", lambda row: row[3].write_bytes, "B", spare=3)',
    "::TestAnalyze::test_sums_are_the_librarys",
)
_analyze.broken(
    "analyze-no-schedule-needed",
    "a schedule may be missing",
    "    if inputs.schedule_text is None:\n        raise",
    '    if inputs.schedule_text == "":\n        raise',
    "::TestFront::test_wrong_usage_is_2",
)
_curve = In("cli/curve.py", "test_curve_cli.py")
_curve.broken(
    "curve-cli-gap-inverted",
    "the gap is relative to the traffic",
    "excess(moved / bound - 1)",
    "excess(1 - bound / moved)",
    "::test_what_is_proven_is_said",
)
_curve.broken(
    "curve-cli-largest-level-first",
    "levels come largest first",
    "for size, name in sorted(known)]",
    "for size, name in sorted(known, reverse=True)]",
    "::test_policy",
)
_curve.broken(
    "curve-cli-macs-are-flops",
    "the intensity counts a multiply-accumulate once",
    "one.bound_bytes(capacity), 2 * one.macs / moved",
    "one.bound_bytes(capacity), one.macs / moved",
    "::test_table_of_one_problem_shows_what_to_do_at_its_knees",
)
_curve.broken(
    "curve-cli-always-proven",
    "all is called proven",
    "    if n_proven == n_steps:\n        return",
    "    if n_proven <= n_steps:\n        return",
    "::test_what_is_proven_is_said",
)
_curve.broken(
    "curve-cli-first-layers-numbers",
    "layers that are chosen are numbered anew",
    '{"layer": number, "count": count}',
    '{"layer": len(self.curves) - 1 + 5, "count": count}',
    "::test_digest_rows_are_the_librarys",
)
_curve.broken(
    "curve-cli-command-with-jobs",
    "rows keep the schedule of the step before",
    "schedules.append(str(one.schedule(one.step(capacity) or 0)))",
    "schedules.append(str(one.schedule(max(0, (one.step(capacity) or 0) - 1))))",
    "::test_table_of_one_problem_shows_what_to_do_at_its_knees",
)
_curve.broken(
    "curve-cli-gap-of-points",
    "points are shown without the bound that they are off",
    '_gap(row["dram_bytes"], row["nest_bound_bytes"])',
    '_gap(row["dram_bytes"], row["dram_bytes"])',
    "::test_what_is_proven_is_said",
)
_fuse = In("cli/fuse.py", "test_fusion_cli.py")
_fuse.broken(
    "fuse-extra-of-all",
    "what is computed beside is a share of all, not of what layers alone compute",
    "extra / (macs - extra)",
    "extra / macs",
    "::test_values_that_a_stride_skips_are_not_computed",
)
_fuse.broken(
    "fuse-span-inclusive",
    "the last layer of a span is left out",
    "int(found[2] or many)) if found",
    "int(found[2] or many) - 1) if found",
    "::test_a_table_says_groups_and_assumptions",
)
_fuse.broken(
    "fuse-pooling-assumed",
    "a pooling is assumed although none may be",
    'given |= {"halos": halos, "assume_pooling": not no_pooling}',
    'given |= {"halos": halos, "assume_pooling": True}',
    "::test_no_pooling_is_assumed_where_none_may_be",
)
_fuse.broken(
    "fuse-one-halo",
    "of both ways to treat halos one is tried",
    'halos = ["recompute", "retain"] if',
    'halos = ["recompute"] if',
    "::test_a_table_says_groups_and_assumptions",
)
_fuse.broken(
    "fuse-saved-of-what-is-left",
    "the share saved is of what is moved",
    "saved = plan.saved_bytes / plan.unfused_bytes if",
    "saved = plan.saved_bytes / plan.dram_bytes if",
    "::test_a_table_says_groups_and_assumptions",
)
_fuse.broken(
    "fuse-model-whole",
    "layers that are chosen of a model are ignored",
    "        if span is None and not inputs.layers:\n            return network",
    "        if span is None or not inputs.layers:\n            return network",
    "::test_models_are_cut_at_sums",
)
_fuse.broken(
    "fuse-empty-span",
    "a span of no layers passes",
    "    if not 0 <= first < stop <= many:",
    "    if not 0 <= first <= stop <= many:",
    "::test_wrong_usage_is_said",
)
_fuse.broken(
    "fuse-groups-of-residency",
    "options of groups are ignored where there are none",
    "    if keeps_tensors and (is_grouped or loops):",
    "    if keeps_tensors and is_grouped and loops:",
    "::test_wrong_usage_is_said",
)
_kernel = In("cli/kernel.py", "test_cli_kernel.py")
_kernel.broken(
    "kernel-launches-once",
    "kernels that are started several times count once in the sum",
    "joined([(said, launches) for",
    "joined([(said, 1) for",
    "::test_times_are_told",
)
_kernel.broken(
    "kernel-l2-in-sectors",
    "traffic of L2 is shown in sectors",
    'scaled(found.sector_bytes * n, "B")',
    'scaled(n, "B")',
    "::test_a_schedule_is_described",
)
_kernel.broken(
    "kernel-often-unsaid",
    "how often a kernel is started is not said",
    'if launches > 1 else ""\n        title',
    'if launches > 99 else ""\n        title',
    "::test_times_are_told",
)
_kernel.broken(
    "kernel-caches-cold",
    "caches are cold although warm ones are asked for",
    "kept = kept_caches(caches, launches)",
    'kept = kept_caches("cold", launches)',
    "::test_times_are_told",
)
_kernel.broken(
    "kernel-guess-is-given",
    "estimated registers are shown as given",
    '" (estimated)" if built.registers is None else ""',
    '" (estimated)" if built.registers is not None else ""',
    "::test_a_schedule_is_described",
)
_kernel_tiled = In("cli/kernel_tiled.py", "test_cli_kernel_tiled.py")
_kernel_tiled.broken(
    "kernel-tiled-order",
    "columns and rows of a tile change places",
    "    return m, n, k\n",
    "    return n, m, k\n",
    "::test_rows_are_the_librarys",
)
_kernel_tiled.broken(
    "kernel-tiled-flops",
    "a multiply-accumulate counts as one operation",
    '"flops": 2 * found.macs',
    '"flops": found.macs',
    "::test_convolutions",
)
_kernel_tiled.broken(
    "kernel-tiled-replayed-conv",
    "a convolution is replayed in closed form, without a word",
    "        if replay:\n            raise",
    "        if replay is None:\n            raise",
    "::test_faults",
)
_kernel_tiled.broken(
    "kernel-tiled-type",
    "the data type is always fp32",
    "found = tiled_gemm(one, machine, data_type=data_type, replay=replay",
    "found = tiled_gemm(one, machine, replay=replay",
    "::test_table",
)
_kernel_tiled.broken(
    "kernel-tiled-reads-written",
    "what is written to L2 is what is read",
    '"traffic_from",\n    )',
    '"traffic_from",\n    ) | {"l2_bytes_written": found.l2_bytes_read}',
    "::test_rows_are_the_librarys",
)
_kernel_tiled.broken(
    "kernel-tiled-layer",
    "the layer that is chosen is ignored",
    "select_one(problem, layers), load_arch(arch)",
    "select_one(problem), load_arch(arch)",
    "::test_a_layer_of_a_workload",
)
_listing = In("cli/listing.py", "test_cli.py")
_listing.broken(
    "listing-macs-are-flops",
    "a multiply-accumulate counts as one operation",
    "rate and 2 * rate",
    "rate",
    "::TestArchs::test_rows",
)
_listing.broken(
    "listing-intensity",
    "the intensity counts a multiply-accumulate once",
    'lambda row: 2 * row["macs"] / row["data_bytes"]',
    'lambda row: row["macs"] / row["data_bytes"]',
    "::TestWorkloads::test_numbers_of_a_problem",
)
_listing.broken(
    "listing-inner-bandwidth",
    "the bandwidth of DRAM is that of the innermost level",
    "arch.caches[0].bandwidth_bytes_per_s",
    "arch.caches[-1].bandwidth_bytes_per_s",
    "::TestArchs::test_rows",
)
_listing.broken(
    "listing-count-shifted",
    "problems have the counts of those before",
    "zip(chosen.numbers, found.problems, found.counts, strict=True)",
    "zip(chosen.numbers, found.problems, found.counts[-1:] + found.counts, strict=False)",
    "::TestWorkloads::test_numbers_of_a_problem",
)
_listing.broken(
    "listing-sources-lost",
    "levels are shown without their sources",
    "[_sources(level.sources) for level in arch.levels]",
    "[_sources(()) for level in arch.levels]",
    "::TestArchs::test_one_shows_numbers_with_sources",
)
_options = In("cli/options.py", "test_cli_options.py")
_options.broken(
    "options-infinity-is-a-number",
    "a gap may be infinite",
    "if not math.isfinite(number):",
    "if math.isnan(number):",
    "::test_a_refused_number_leads_to_those_allowed",
)
_options.broken(
    "options-written-twice",
    "two options may write one file",
    "    if place in taken:",
    "    if path in taken:",
    "::test_a_file_belongs_to_one_option",
)
_options.broken(
    "options-links-are-files",
    "a file is told apart from a link to it",
    "place = os.path.realpath(path)",
    "place = os.path.abspath(path)",
    "::test_a_file_belongs_to_one_option",
)
_options.broken(
    "options-prefix-lost",
    "the prefix is forgotten",
    'prefix=given["prefix"] or "",',
    'prefix="",',
    "test_cli_search.py::TestSearch::test_wrong_settings",
)
_options.broken(
    "options-order-lost",
    "the order of loops is forgotten",
    'before=given["order"],',
    "before=(),",
    "test_cli_search.py::TestSearch::test_wrong_settings",
)
_options.broken(
    "options-limit-lost",
    "the time limit is forgotten",
    "time_limit_s=limit, **fields",
    "**fields",
    "::test_every_option_reaches_the_goal",
)
_options.broken(
    "options-value-lost",
    "the value that is gone by is forgotten",
    '("objective", "strategy", "value", "seed",',
    '("objective", "strategy", "seed",',
    "::test_every_option_reaches_the_goal",
)
_options.broken(
    "options-lengths-lost",
    "lengths of a model are forgotten",
    "model_text(given[argument], batch, dims, inputs, values)",
    "model_text(given[argument], batch, (), inputs, values)",
    "test_network_onnx.py::TestCommands::test_complaints",
)
_output = In("cli/output.py", "test_cli.py")
_output.broken(
    "output-wrote-among-data",
    "what was written is said among the data",
    """{what and f': {what}'}", err=True)""",
    """{what and f': {what}'}")""",
    "test_page.py::test_report_makes_the_page_of_results",
)
_output.broken(
    "output-colour-for-all",
    "colours are written although nobody wants them",
    'return bool(os.environ.get("NO_COLOR")) or',
    "return",
    "::test_colour_only_for_people_who_want_it",
)
_output.broken(
    "output-interrupted-table-lost",
    "what an interruption leaves is not shown",
    '        if form == "table" and kept:',
    '        if form == "table" and kept and progress is None:',
    "test_cli_search.py::TestOut::test_a_file_holds_the_rows",
)
_output.broken(
    "output-columns-ignored",
    "the width that is asked for is ignored",
    'or os.environ.get("COLUMNS"):',
    'and os.environ.get("COLUMNS"):',
    "::TestArchs::test_table_fits_80_columns_and_names_all",
)
_output.broken(
    "output-file-or-stdout",
    "rows go to the file or to standard output, not to both",
    '        if form != "table":\n            writers',
    '        if form != "table" and not out:\n            writers',
    "test_cli_search.py::TestOut::test_an_interruption_keeps_what_is_done",
)
_output.broken(
    "output-colours-for-the-plain",
    "colours are for those who do not want them",
    "return text if is_plain() else click.style(text, **style)",
    "return click.style(text, **style) if is_plain() else text",
    "::test_colour_only_for_people_who_want_it",
)
_reproduce = In("cli/reproduce.py", "test_reproduce.py")
_reproduce.broken(
    "reproduce-error-as-share",
    "an error in points is shown as a share",
    '    if unit == "%":\n        return "0.0 pt"',
    '    if unit == "":\n        return "0.0 pt"',
    "::TestCommand::test_shares_are_off_by_points",
)
_reproduce.broken(
    "reproduce-unfollowed-unmarked",
    "a value that its formulas do not give is not marked",
    '"*" if line.is_followed is False else ""',
    '""',
    "::TestCommand::test_table",
)
_reproduce.broken(
    "reproduce-mean-factor",
    "mean errors are a hundred times too small",
    'if unit == "%" else percent(error)',
    'if unit == "%" else percent(error / 100)',
    "::TestCommand::test_table",
)
_reproduce.broken(
    "reproduce-thousands",
    "thousands are set apart after the decimal point",
    '    whole, point, decimals = text.partition(".")',
    '    decimals, point, whole = text.partition(".")',
    "::TestCommand::test_table",
)
_reproduce.broken(
    "reproduce-csv-has-summary",
    "rows for programs leave the remarks out",
    '("name", "title", "source", "arch", "remarks")}',
    '("name", "title", "source", "arch")}',
    "::TestCommand::test_json",
)
_reproduce.broken(
    "reproduce-shares-signless",
    "errors lose their signs",
    'f"{error:+.1f} pt"',
    'f"{abs(error):.1f} pt"',
    "::TestCommand::test_shares_are_off_by_points",
)
_search = In("cli/search.py", "test_cli_search.py")
_search.broken(
    "search-cli-proof-of-likely",
    "proofs are written of values that have none",
    '        if goal.value != "promised":\n            raise',
    '        if goal.value == "":\n            raise',
    "::TestSearch::test_each_problem_has_its_proof",
)
_search.broken(
    "search-cli-numbers-anew",
    "layers that are chosen are numbered anew",
    "zip(chosen.numbers, counts, results, strict=True)",
    "zip(range(len(counts)), counts, results, strict=True)",
    "::TestSearch::test_layers_keep_their_numbers",
)
_search.broken(
    "search-cli-count-lost",
    "rows do not say how often a layer occurs",
    'place: Row = {"layer": number, "count": count}',
    'place: Row = {"layer": number, "count": 1}',
    "::TestSearch::test_sums_count_best_schedules_as_often_as_layers_occur",
)
_search.broken(
    "search-cli-unfinished-unsaid",
    "what ended a search early is not said",
    'if many := sum(row["stopped"] == reason and not row["proven"] for row in best):',
    'if many := sum(row["stopped"] is reason for row in ()):',
    "::TestSearch::test_what_ended_a_search_is_said",
)
_search.broken(
    "search-cli-sought-is-promised",
    "what was sought is shown as promised",
    'objective_value(score, result.objective, source["value"])',
    "objective_value(score, result.objective)",
    "::TestSearch::test_what_was_sought_is_shown",
)
_search.broken(
    "search-cli-top-ranks",
    "schedules of one problem have no ranks",
    "\"layer\" if top == 1 else lambda row: f\"{row['layer']}.{row['rank']}\"",
    '"layer"',
    "::TestSearch::test_sums_count_best_schedules_as_often_as_layers_occur",
)
_sensitivity = In("cli/sensitivity.py", "test_sensitivity.py")
_sensitivity.broken(
    "sensitivity-cli-vary-ignored",
    "every number is varied, whatever is asked for",
    "parse_vary(vary) or None",
    "parse_vary(vary) and None",
    "::test_table",
)
_simulate = In("cli/simulate.py", "test_cli_simulate.py")
_simulate.broken(
    "simulate-cli-both",
    "a capacity and a machine may both be given",
    "    if capacities and arch is not None:",
    "    if False:",
    "::test_faults",
)
_simulate.broken(
    "simulate-cli-flushed",
    "what is dirty is flushed although it should stay",
    '"flush": not given.pop("no_flush")',
    '"flush": given.pop("no_flush") is not None',
    "::test_what_is_dirty_may_stay",
)
_simulate.broken(
    "simulate-cli-first-size",
    "of several capacities the first is replayed",
    'return [passed.traffic(size, flush=how["flush"]) for size in sizes]',
    'return [passed.traffic(sizes[0], flush=how["flush"]) for size in sizes]',
    "::test_several_capacities_are_one_table",
)
_simulate.broken(
    "simulate-cli-align",
    "tensors begin where the default says",
    "return Layout.parse(text, align_bytes=bytes_)",
    "return Layout.parse(text)",
    ">>> _layouts",
)
_simulate.broken(
    "simulate-cli-align-of-each",
    "a tensor with a layout of its own begins where the default says",
    "found[name.strip()] = Layout.parse(axes, align_bytes=bytes_)",
    "found[name.strip()] = Layout.parse(axes)",
    "::test_every_option_reaches_the_library",
)
_validate_times = In("cli/validate_times.py", "test_cli_validate_times.py")
_validate_times.broken(
    "validate-cli-where-ignored",
    "all rows are compared",
    "where=wanted,",
    "where={},",
    "::test_csv_keeps_the_columns",
)
_validate_times.broken(
    "validate-cli-algorithm",
    "the algorithm is always the one that is known",
    "algorithm=algorithm,",
    'algorithm="known",',
    "::test_shipped_names_and_algorithm",
)
_validate_times.broken(
    "validate-cli-no-equals",
    "a condition without a value passes",
    "        if not equals or not column.strip():",
    "        if not column.strip():",
    "::test_wrong_usage",
)

CLI = (
    *_cli.mutants,
    *_export.mutants,
    *_running.mutants,
    *_group.mutants,
    *_analyze.mutants,
    *_yalsa.mutants,
    *_curve.mutants,
    *_fuse.mutants,
    *_kernel.mutants,
    *_kernel_tiled.mutants,
    *_listing.mutants,
    *_options.mutants,
    *_output.mutants,
    *_reproduce.mutants,
    *_search.mutants,
    *_sensitivity.mutants,
    *_simulate.mutants,
    *_validate_times.mutants,
)
