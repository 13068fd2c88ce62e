"""Mutants of tables, notebooks, plots of measurements and tiles."""

from __future__ import annotations

from .mutant import In

_notebook = In("show/notebook.py", "test_exchange_frames.py")
_notebook.broken(
    "notebook-unescaped",
    "names are read as HTML",
    "<p><b>{escape(title)}</b>",
    "<p><b>{title}</b>",
    "::TestNotebook::test_text_is_escaped_and_long_tables_end",
)
_notebook.broken(
    "notebook-proven-always",
    "every result is called proven",
    '"proven best" if certificate.proven else',
    '"proven best" if certificate else',
    "::TestNotebook::test_a_result",
)
_notebook.broken(
    "notebook-ranks-from-one",
    "alternatives are numbered from the best on",
    "list(enumerate(result.alternatives, 2))",
    "list(enumerate(result.alternatives, 1))",
    "::TestNotebook::test_a_result",
)
_notebook.broken(
    "notebook-reads-are-writes",
    "reads and writes change places",
    '"promised_read_bytes", "B"),\n        Column("written", "promised_write_bytes", "B"),',
    '"promised_write_bytes", "B"),\n        Column("written", "promised_read_bytes", "B"),',
    "::TestNotebook::test_a_result",
)
_notebook.broken(
    "notebook-curve-intensity",
    "the intensity counts a multiply-accumulate once",
    "scaled(2 * curve.macs / moved)",
    "scaled(curve.macs / moved)",
    "::TestNotebook::test_studies",
)
_notebook.broken(
    "notebook-nested-shown",
    "nested values are shown as text",
    "if not any(isinstance(row.get(name), (list, tuple, dict)) for row in rows)",
    "if not any(isinstance(row.get(name), set) for row in rows)",
    ">>> rows_html",
)
_plots_measured = In("show/plots/measured.py", "test_plots.py")
_plots_measured.broken(
    "measured-median-upper",
    "the median of an even number is the upper one",
    "median = (off[(len(off) - 1) // 2] + off[len(off) // 2]) / 2",
    "median = off[len(off) // 2]",
    "::TestMeasured::test_points_and_errors",
)
_plots_measured.broken(
    "measured-band-one-sided",
    "the band of what is near lies above only",
    "[(1 - found.band) * end for end in ends]",
    "[end for end in ends]",
    "::TestMeasured::test_the_band_is_as_wide_below_as_above",
)
_plots_measured.broken(
    "measured-apart-first",
    "what is set apart comes first",
    "key=lambda name: name == _APART)",
    "key=lambda name: name != _APART)",
    "::TestMeasured::test_the_band_is_as_wide_below_as_above",
)
_plots_measured.broken(
    "measured-axes-swapped",
    "predictions lie along the horizontal axis",
    "        [pair.measured for pair in pairs],\n        [pair.predicted for pair in pairs],",
    "        [pair.predicted for pair in pairs],\n        [pair.measured for pair in pairs],",
    "::TestMeasured::test_points_and_errors",
)
_plots_measured.broken(
    "measured-microseconds",
    "times are in microseconds",
    "                1e-6 * one.row.time_us,",
    "                one.row.time_us,",
    "::TestMeasured::test_panels",
)
_plots_measured.broken(
    "measured-hidden-unsaid",
    "how many pairs have no place is not said",
    "    if hidden:\n        #",
    "    if hidden > 99:\n        #",
    "::TestMeasured::test_points_and_errors",
)
_plots_style = In("show/plots/style.py", "test_plots.py")
_plots_style.broken(
    "style-prefix-of-a-thousand",
    "a thousand has no prefix",
    "math.log10(abs(value) * (1 + 1e-9)) / 3)",
    "math.log10(abs(value) / 1.001) / 3)",
    "::TestStyle::test_numbers_change_their_prefix_where_they_should",
)
_plots_style.broken(
    "style-binary-by-thousands",
    "capacities are counted in thousands",
    "{value / 1024**power:.4g} {_BINARY[power]}",
    "{value / 1000**power:.4g} {_BINARY[power]}",
    "::TestStyle::test_capacities_have_binary_prefixes",
)
_plots_style.broken(
    "style-linear-in-thousandths",
    "the axis names the prefix of the next unit",
    '({_PREFIXES[power]}{unit})"',
    '({_PREFIXES[power + 3]}{unit})"',
    "::TestStyle::test_a_linear_axis_names_its_unit",
)
_plots_style.broken(
    "style-margins-one-sided",
    "there is no room above the largest value",
    "return low / room, high * room",
    "return low / room, high",
    ">>> margins",
)
_plots_style.broken(
    "style-ticks-beyond",
    "ticks lie beyond the axis",
    "fine = [tick for tick in fine if _within(tick, low, high)]",
    "fine = [tick for tick in fine if tick]",
    "::TestStyle::test_ticks_are_inside_and_few",
)
_plots_tiles = In("show/plots/tiles.py", "test_plots.py")
_plots_tiles.broken(
    "plot-tiles-transposed",
    "rows and columns of the map change places",
    "            for other in found.sizes[1]\n        ]\n        for one in found.sizes[0]",
    "            for one in found.sizes[0]\n        ]\n        for other in found.sizes[1]",
    "::TestTiles::test_axes",
)
_plots_tiles.broken(
    "plot-tiles-dims-swapped",
    "the axes have each other's names",
    "    first, second = found.dims\n",
    "    second, first = found.dims\n",
    "::TestTiles::test_axes",
)
_table = In("show/table.py", "test_render.py")
_table.broken(
    "table-numbers-left",
    "numbers stand to the left",
    "cell.rjust(wide) if column.numeric",
    "cell.rjust(wide) if not column.numeric",
    "::test_columns_line_up",
)
_table.broken(
    "table-unescaped",
    "text of a cell is read as HTML",
    '_cells("td", sides, map(escape, row))',
    '_cells("td", sides, row)',
    "::test_html_escapes_cells_and_sets_details_below",
)
_table.broken(
    "table-details-unescaped",
    "text below a row is read as HTML",
    "{escape(self.details[place])}</td>",
    "{self.details[place]}</td>",
    "::test_html_escapes_cells_and_sets_details_below",
)
_table.broken(
    "table-rest-miscounted",
    "the rows that are left out are counted with those shown",
    "and {len(self.rows) - _MOST_ROWS} more",
    "and {len(self.rows)} more",
    "::test_html_shows_a_hundred_rows",
)
_table.broken(
    "table-gap-forgotten",
    "the gaps between columns do not count",
    "while sum(least[i] for i in kept) + len(GAP) * (len(kept) - 1) > width:",
    "while sum(least[i] for i in kept) > width:",
    "::test_a_spare_column_goes_before_a_name_is_lost",
)
_space = In("show/page/space.py", "test_space_page.py")
_CELLS = "::test_each_cell_of_the_map_is_the_best_of_its_tile"
_space.broken(
    "space-last-of-tile",
    "a cell shows the slowest configuration of its tile",
    "        cells.setdefault(place, one)",
    "        cells[place] = one",
    _CELLS,
)
_space.broken(
    "space-dots-everywhere",
    "tiles outside of the set have its dot",
    "        if one.may_be_best:\n            may_be_best",
    "        if True:\n            may_be_best",
    _CELLS,
)
_space.broken(
    "space-axes-swapped",
    "the second parameter goes down and the first across",
    '+ "".join(cell((row, column)) for column in across)',
    '+ "".join(cell((column, row)) for column in across)',
    _CELLS,
)
_space.broken(
    "space-linear-grid",
    "the grid's lines are spaced by time, not by its logarithm",
    "in marks:\n        y = (_HEIGHT - _BELOW) * (high - math.log(value)) / (high - low)\n",
    "in marks:\n        y = (_HEIGHT - _BELOW) * (1 - value / math.exp(high))\n",
    "::test_the_curve_has_a_point_for_each_configuration",
)
_space.broken(
    "space-names-as-html",
    "a problem's name is read as HTML",
    '{escape(found.heading).replace("+", "+<wbr>")}, {escape(found.data_type)}',
    "{found.heading}, {escape(found.data_type)}",
    "::test_nothing_runs_and_nothing_is_fetched",
)

SHOW = (
    *_notebook.mutants,
    *_plots_measured.mutants,
    *_plots_style.mutants,
    *_plots_tiles.mutants,
    *_table.mutants,
    *_space.mutants,
)
