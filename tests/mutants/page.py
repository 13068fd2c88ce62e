"""Mutants of the explorer page: what is embedded, checked, sorted, edited and shown."""

from __future__ import annotations

from .mutant import In

_report = In("show/page/report.py", "test_page.py")
_report.broken(
    "page-angle-brackets",
    "a layer's name can end the element that holds the data",
    'for letter in "<>&\\u2028\\u2029":',
    'for letter in "\\u2028\\u2029":',
)
_report.broken(
    "page-policy-of-model",
    "the policy allows the style as a script, not the model",
    "scripts=list(scripts.values())",
    'scripts=[text_of("page.css"), scripts["page"]]',
)
_report.broken(
    "page-steps-shifted",
    "bytes of a curve belong to the next step's capacity",
    '"dram_bytes": [moved[i] for i in kept],',
    '"dram_bytes": [moved[i - 1] for i in kept],',
)

_rows = In("show/page/rows.py", "test_page.py")
_rows.broken(
    "page-ranks-twice",
    "rows of two searches of one layer are mixed",
    "if ranks.count(rank) > 1\n",
    "if ranks.count(rank) > 2\n",
)

_saved = In("cli/saved.py", "test_page.py")
_saved.broken(
    "saved-workload-changed",
    "results of a workload that has changed are shown with its new problems",
    'if digest != row.get("workload_digest"):',
    "if False:",
)
_saved.broken(
    "saved-arch-changed",
    "results of a machine that has changed are shown on the new one",
    'if arch.digest != row.get("arch_digest"):',
    "if False:",
    "test_cli_search.py::TestOut::test_show_refuses_what_has_changed",
)
_saved.broken(
    "saved-better-ranks-too",
    "a rank is asked for, and better ones come, too",
    'row.get("rank", 1) == (rank or 1)]',
    'row.get("rank", 1) <= (rank or 1)]',
    "test_cli_search.py::TestOut::test_show_reads_it_back",
)
_saved.broken(
    "saved-all-layers",
    "all layers of a result file are shown, whichever are asked for",
    "return not layers or bool(",
    "return not layers or True or bool(",
    "test_cli_search.py::TestOut::test_show_reads_it_back",
)
_saved.broken(
    "saved-size-forgotten",
    "results of elements of another size count as those of another workload",
    "width if isinstance(width, int) else None",
    "None",
    "test_cli_search.py::TestOut::test_sizes_of_elements_are_those_of_the_search",
)
_saved.broken(
    "saved-layer-passed-over",
    "a layer that a result file lacks is passed over",
    "if layer not in there]",
    "if False]",
    "test_cli_search.py::TestOut::test_show_reads_it_back",
)

_edit = In("show/page/ui/edit.js", "test_page.py")
_edit.broken(
    "page-loop-takes-its-tile",
    "a loop that passes another of its dimension has the smaller tile outside",
    "list.sort((a, b) => b - a)",
    "list.sort((a, b) => a - b)",
)
_edit.broken(
    "page-inner-tile-stays",
    "an inner tile stays larger than the one around it",
    "Math.max(1, Math.min(one.extent, most))",
    "one.extent",
)

_edit.broken(
    "page-unit-torn-apart",
    "a loop that leaves the others of its unit leaves them behind",
    "order.filter((place) => loops[place].unit === unit) : [moving]",
    "[moving] : [moving]",
)
_edit.broken(
    "page-lanes-outside",
    "lanes go outside the loops of their unit",
    "while (after.some((place) => isOut(place, unit))) before.push(after.shift());",
    "",
)

_state = In("show/page/ui/state.js", "test_page.py")
_state.broken(
    "page-edits-forgotten",
    "a layer that is left loses the schedule that was made of it",
    "function chooseLayer(index, text = texts[index])",
    "function chooseLayer(index, text = LAYERS[index].found[0].schedule)",
)

_format = In("show/page/ui/format.js", "test_page.py")
_format.broken(
    "page-ties-upward",
    "of two neighbours equally near, the page writes the larger, the library the even one",
    "/[02468]$/.test(kept) ? kept : short",
    "/[02468]$/.test(kept) ? short : short",
)

_table = In("show/page/ui/table.js", "test_page.py")
_table.broken(
    "page-sorts-upward-only",
    "a second press of a title changes the arrow, not the order",
    "const sign = state.sort.down ? -1 : 1;",
    "const sign = 1;",
)
_table.broken(
    "page-numbers-in-parts",
    "a filter by k64 shows k640",
    "if (!cuts) return true;",
    "return true;",
)

_levels = In("show/page/ui/levels.js", "test_page.py")
_levels.broken(
    "page-writes-left-out",
    "a tensor's bytes leave out what is written",
    "const all = Number(read) + Number(written);",
    "const all = Number(read);",
)

PAGE = tuple(
    mutant
    for file in (_report, _rows, _saved, _edit, _state, _format, _table, _levels)
    for mutant in file.mutants
)
