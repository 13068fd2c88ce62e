"""Tables and numbers for people."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopsched.base.units import percent, scaled
from loopsched.show.table import Column, Table, shortened, words, wrapped

COLUMNS = [words("problem", shrinks="middle"), Column("time"), Column("spare", spare=1)]


def test_columns_line_up() -> None:
    text = Table(COLUMNS, [["a", "1 s", "x"], ["bcd", "10 s", "yy"]]).text(80)
    assert text.splitlines() == [
        "problem  time  spare",
        "-------  ----  -----",
        "a         1 s      x",
        "bcd      10 s     yy",
    ]


def test_a_spare_column_goes_before_a_name_is_lost() -> None:
    row = ["a name of some length", "1 s", "x"]
    assert "spare" in Table(COLUMNS, [row]).text(80)
    narrow = Table(COLUMNS, [row]).text(27)
    assert "spare" not in narrow
    assert "a name of some length" in narrow
    assert max(map(len, narrow.splitlines())) <= 27


def test_the_columns_left_out_are_named() -> None:
    row = ["a name of some length", "1 s", "x"]
    table = Table(COLUMNS, [row])
    assert table.left_out(80) == ()
    assert table.left_out(27) == ("spare",)


def test_sentences_are_cut_at_their_end() -> None:
    columns = [words("source", shrinks="end")]
    assert (
        Table(columns, [["a report, with, a table"]]).text(18).splitlines()[2]
        == "a report, with..."
    )


def test_details_stand_below_their_row() -> None:
    text = Table(COLUMNS[1:2], [["1 s"], ["2 s"]], ["M:4 N:2 K:8", "M:1"]).text(12)
    assert text.splitlines() == [
        "time",
        "----",
        " 1 s",
        "    M:4 N:2",
        "    K:8",
        " 2 s",
        "    M:1",
    ]


def test_html_escapes_cells_and_sets_details_below() -> None:
    found = Table([words("a"), Column("b")], [["<x>", "1"], ["y", "2"]], ["1 < 2", "&"]).html()
    cells = re.findall(r"<td([^>]*)>([^<]*)</td>", found)
    assert [text for _, text in cells] == ["&lt;x&gt;", "1", "1 &lt; 2", "y", "2", "&amp;"]
    assert ["colspan" in look for look, _ in cells] == [False, False, True] * 2


def test_html_shows_a_hundred_rows() -> None:
    found = Table([words("a")], [[str(row)] for row in range(103)]).html()
    assert "<td" in found
    assert '<td colspan="1">and 3 more</td>' in found
    assert ">99<" in found
    assert ">100<" not in found


def test_a_table_without_rows_is_its_head() -> None:
    assert Table(COLUMNS[:2], []).text(80) == "problem  time\n-------  ----"


@given(
    st.lists(st.tuples(st.text("ab c", max_size=60), st.text("12", max_size=8)), max_size=5),
    st.integers(26, 120),
)
def test_a_table_fits_its_width(rows: list[tuple[str, str]], width: int) -> None:
    text = Table(COLUMNS[:2], rows).text(width)
    assert max(map(len, text.splitlines())) <= width


@given(st.text("abc", min_size=1, max_size=40), st.integers(4, 40))
def test_shortened_keeps_both_ends(text: str, width: int) -> None:
    cut = shortened(text, width)
    assert len(cut) == min(len(text), width)
    head = cut.partition("...")[0]
    assert text.startswith(head)
    assert text.endswith(cut.rpartition("...")[2])


@given(st.lists(st.text("MNK:1", min_size=1, max_size=9), max_size=12), st.integers(12, 60))
def test_wrapping_keeps_every_word(parts: list[str], width: int) -> None:
    lines = wrapped(" ".join(parts), width, indent="  ")
    assert " ".join(lines).split() == parts
    assert all(len(line) <= width for line in lines)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.000101, "s", "101.0 us"),
        (59.99996, "s", "60.00 s"),
        (0.9999999, "s", "1.000 s"),
        (1e-15, "s", "0.001 ps"),
        (1.5, "s", "1.500 s"),
        (999, "B", "999 B"),
        (999_999, "B", "1.000 MB"),
        (1_234_567, "B", "1.235 MB"),
        (652.8e9, "B/s", "652.8 GB/s"),
        (5e19, "B", "50,000 PB"),
        (math.inf, "B/s", "inf B/s"),
        (187_600.0, "s", "187,600 s"),
        (math.nan, "s", "-"),
        (999_999, "", "999,999"),
        (10**6, "", "1.000e+06"),
        (16.0, "", "16.00"),
        (0.92857, "", "0.9286"),
        (123_456.0, "", "123,500"),
        (0.0, "", "0"),
        (2.5e-4, "", "2.500e-04"),
        (10**30, "", "1.000e+30"),
    ],
)
def test_scaled(value: float, unit: str, text: str) -> None:
    assert scaled(value, unit) == text


@given(st.floats(1e-9, 1e14), st.sampled_from(["s", "B/s"]))
def test_scaled_keeps_four_digits(value: float, unit: str) -> None:
    factor = {"n": 1e-9, "u": 1e-6, "m": 1e-3, "": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
    number, prefixed = scaled(value, unit).split()
    back = float(number.replace(",", "")) * factor[prefixed.removesuffix(unit)]
    assert back == pytest.approx(value, rel=5.1e-4, abs=5.1e-4 if unit == "B/s" else 0)


def test_percent_of_nothing_is_a_dash() -> None:
    assert percent(None) == percent(math.nan) == "-"
