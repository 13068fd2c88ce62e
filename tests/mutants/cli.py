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
    "cli-command-not-meant",
    "a misspelt command is not told the nearest",
    "ctx.fail(f\"no command '{args[0]}'; {nearest(args[0], _COMMANDS)}\")",
    "ctx.fail(f\"no command '{args[0]}'\")",
    "::TestFront::test_wrong_usage_is_2",
)
_analyze = In("cli/analyze.py", "test_cli_search.py")
_analyze.broken(
    "analyze-policy-ignored",
    "a buffer is a cache, whatever its policy",
    "buffer_arch(capacity_bytes=parse_bytes(capacity), policy=policy)",
    "buffer_arch(capacity_bytes=parse_bytes(capacity))",
    "::TestOut::test_a_real_interruption",
)
_analyze.broken(
    "analyze-capacity-ignored",
    "the machine is scored although a buffer is asked for",
    "        if capacity is None\n        else buffer",
    "        if capacity is not None\n        else buffer",
    "test_cli.py::TestFront::test_bad_input_is_3_and_one_message",
)
_analyze.broken(
    "analyze-yalsa-width",
    "Yalsa's rows are for elements of four bytes",
    "            element_bytes=2,\n",
    "            element_bytes=4,\n",
    "test_cli.py::TestAnalyze::test_yalsa_rows",
)
_analyze.broken(
    "analyze-yalsa-capacities",
    "Yalsa's caches begin at 32 bytes",
    "tuple(16 << doublings",
    "tuple(32 << doublings",
    "::TestOut::test_a_real_interruption",
)
_analyze.broken(
    "analyze-least-inverted",
    "how far traffic is from the least is upside down",
    "ratio = score.dram_bytes / max(1, score.least_dram_bytes)",
    "ratio = score.least_dram_bytes / max(1, score.dram_bytes)",
    "::TestOut::test_a_real_interruption",
)
_curve = In("cli/curve.py", "test_curve_cli.py")
_curve.broken(
    "curve-cli-largest-level-first",
    "levels come largest first",
    "for size, name in sorted(known)]",
    "for size, name in sorted(known, reverse=True)]",
    "::test_policy",
)
_curve.broken(
    "curve-cli-always-proven",
    "all is called proven",
    "    if n_proven == n_steps:\n        return",
    "    if n_proven <= n_steps:\n        return",
    "::test_what_is_proven_is_said",
)
_fuse = In("cli/fuse.py", "test_fusion_cli.py")
_fuse.broken(
    "fuse-span-inclusive",
    "the last layer of a span is left out",
    "int(found[2] or many)) if found",
    "int(found[2] or many) - 1) if found",
    "::test_a_table_says_groups_and_assumptions",
)
_fuse.broken(
    "fuse-one-halo",
    "of both ways to treat halos one is tried",
    'halos = ["recompute", "retain"] if',
    'halos = ["recompute"] if',
    "::test_a_table_says_groups_and_assumptions",
)
_output = In("cli/output.py", "test_cli_search.py")
_output.broken(
    "output-colour-for-all",
    "colours are written although nobody wants them",
    'return bool(os.environ.get("NO_COLOR")) or',
    "return",
    "test_cli.py::test_colour_only_for_people_who_want_it",
)
_output.broken(
    "output-interrupted-table-lost",
    "what an interruption leaves is not shown",
    '        if form == "table" and kept:',
    '        if form == "table" and kept and progress is None:',
    "::TestOut::test_a_file_holds_the_rows",
)
_output.broken(
    "output-rows-and-table",
    "a table comes with the rows",
    '        if form == "table" and kept:\n            show',
    "        if kept:\n            show",
    "::TestOut::test_a_real_interruption",
)
_output.broken(
    "output-columns-ignored",
    "the width that is asked for is ignored",
    'or os.environ.get("COLUMNS"):',
    'and os.environ.get("COLUMNS"):',
    "test_cli.py::TestArchs::test_table_fits_80_columns_and_names_all",
)
_output.broken(
    "output-file-or-stdout",
    "rows go to the file or to standard output, not to both",
    '        if form != "table":\n            writers',
    '        if form != "table" and not out:\n            writers',
    "::TestOut::test_an_interruption_keeps_what_is_done",
)

CLI = (
    *_cli.mutants,
    *_analyze.mutants,
    *_curve.mutants,
    *_fuse.mutants,
    *_output.mutants,
)
