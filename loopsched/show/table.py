"""Tables for people, as text that fits a width and as HTML."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from loopsched.base.units import percent, scaled

Shrinks = Literal["", "middle", "end"]

GAP = "  "
_SHORTEST = 16
_MOST_ROWS = 100
_BEFORE_UNIT = re.compile(
    r"(?<=[0-9]) (?=%|(?:[munpkMGTP]?(?:s|B|J|W|Hz|FLOP|MAC)|[KMGT]iB)(?![A-Za-z]))"
)
_RIGHT = ' style="text-align: right; padding: 0 0.6em"'
_LEFT = ' style="text-align: left; padding: 0 0.6em"'


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table.

    Parameters
    ----------
    title : str
    of : str or callable, optional
        What its cells show: the value of that name (an item or an attribute)
        of each row, or what a function makes of the row.  None: rows are
        sequences, and it shows the item at its own place.
    unit : str or callable, optional
        Of numbers, which are then written with a prefix; ``%``: of shares; or
        what writes a value.
    numeric : bool
        Numbers stand to the right, words to the left.
    shrinks : {'', 'middle', 'end'}
        Where its cells may be cut if the table is too wide: names in the
        middle, sentences at the end.
    spare : int
        Columns with a higher number are the first to be left out where the
        table is too wide; 0 is never left out.

    Examples
    --------
    >>> Column("DRAM", "dram_bytes", "B").cell({"dram_bytes": 1500}, 0), Column("").cell("abc", 2)
    ('1.500 kB', 'c')
    """

    title: str
    of: str | Callable[[Any], object] | None = None
    unit: str | Callable[[Any], str] | None = None
    numeric: bool = True
    shrinks: Shrinks = ""
    spare: int = 0

    def cell(self, row: Any, place: int) -> str:
        """Write what it shows of a row; a dash where nothing is known."""
        if isinstance(self.of, str):
            value = row[self.of] if isinstance(row, Mapping) else getattr(row, self.of)
        else:
            value = row[place] if self.of is None else self.of(row)
        if value is None or self.unit is None:
            return "-" if value is None else str(value)
        if not isinstance(self.unit, str):
            return self.unit(value)
        return percent(value) if self.unit == "%" else scaled(value, self.unit)


def words(
    title: str,
    of: str | Callable[[Any], object] | None = None,
    *,
    shrinks: Shrinks = "",
    spare: int = 0,
) -> Column:
    """Make a column of words."""
    return Column(title, of, numeric=False, shrinks=shrinks, spare=spare)


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under titles, which print as text and as HTML.

    Parameters
    ----------
    columns : sequence of Column
    rows : sequence
        What the columns show: sequences of cells, mappings or objects.
    details : sequence of str
        A text for each row that stands below it; or none.

    Examples
    --------
    >>> found = Table([words("name"), Column("bytes")], [["input", "12"], ["<L2>", "3456"]])
    >>> print(found.text(40))
    name   bytes
    -----  -----
    input     12
    <L2>    3456
    >>> print(found.html())
    <table><thead><tr><th style="text-align: left; ...">name</th>...<td ...>&lt;L2&gt;</td>...
    """

    columns: Sequence[Column]
    rows: Sequence[Any]
    details: Sequence[str] = ()

    @property
    def cells(self) -> list[list[str]]:
        """What stands in each row, column by column."""
        return [[one.cell(row, at) for at, one in enumerate(self.columns)] for row in self.rows]

    def text(self, width: int) -> str:
        """Lay out the rows so that no line is wider than ``width``.

        Spare columns are left out first, then shrinking cells are cut.  A table
        that still does not fit is as wide as it must be.

        Examples
        --------
        >>> columns = [words("name", shrinks="middle"), Column("bytes")]
        >>> print(Table(columns, [["a very long name indeed", "12"]]).text(25))
        name                bytes
        ------------------  -----
        a very l... indeed     12
        """
        rows = self.cells
        kept = _kept(self.columns, rows, width)
        columns = [self.columns[i] for i in kept]
        cells = [[row[i] for i in kept] for row in rows]
        widths = _widths(columns, cells, width)
        lines = [_line([column.title for column in columns], columns, widths)]
        lines.append(GAP.join("-" * wide for wide in widths))
        for position, row in enumerate(cells):
            lines.append(_line(row, columns, widths))
            if self.details:
                for detail in self.details[position].splitlines():
                    lines.extend(wrapped(detail, width, indent="    "))
        return "\n".join(lines)

    def left_out(self, width: int) -> tuple[str, ...]:
        """Name the columns that `text` leaves out at this width.

        Examples
        --------
        >>> Table([words("name"), Column("bytes", spare=1)], [["input", "12"]]).left_out(10)
        ('bytes',)
        """
        kept = _kept(self.columns, self.cells, width)
        return tuple(one.title for i, one in enumerate(self.columns) if i not in kept)

    def html(self) -> str:
        """Write it for a notebook, every text escaped; at most a hundred rows are shown."""
        from html import escape  # it loads a thousand names of characters

        sides = [_RIGHT if column.numeric else _LEFT for column in self.columns]
        head = _cells("th", sides, [escape(column.title) for column in self.columns])
        body = [_cells("td", sides, map(escape, row)) for row in self.cells[:_MOST_ROWS]]
        wide = f'<td colspan="{len(sides)}"'
        for place in reversed(range(len(self.details[:_MOST_ROWS]))):
            body.insert(place + 1, f"{wide}{_LEFT}>{escape(self.details[place])}</td>")
        if len(self.rows) > _MOST_ROWS:
            body.append(f"{wide}>and {len(self.rows) - _MOST_ROWS} more</td>")
        lines = "".join(f"<tr>{row}</tr>" for row in body)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"


def _cells(tag: str, sides: Sequence[str], texts: Iterable[str]) -> str:
    pairs = zip(sides, texts, strict=True)
    return "".join(f"<{tag}{side}>{text}</{tag}>" for side, text in pairs)


def _natural(columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> list[int]:
    widths = [len(column.title) for column in columns]
    for row in rows:
        widths = [max(wide, len(cell)) for wide, cell in zip(widths, row, strict=True)]
    return widths


def _kept(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """Choose the columns that fit when shrinking ones are at their narrowest."""
    natural = _natural(columns, rows)
    least = [
        min(wide, max(_SHORTEST, len(column.title))) if column.shrinks else wide
        for wide, column in zip(natural, columns, strict=True)
    ]
    kept = list(range(len(columns)))
    while sum(least[i] for i in kept) + len(GAP) * (len(kept) - 1) > width:
        spare = max(kept, key=lambda i: columns[i].spare)
        if not columns[spare].spare:
            break
        kept.remove(spare)
    return kept


def _widths(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int) -> list[int]:
    widths = _natural(columns, rows)
    excess = sum(widths) + len(GAP) * (len(widths) - 1) - width
    for i, column in enumerate(columns):
        if column.shrinks and excess > 0:
            least = min(widths[i], max(_SHORTEST, len(column.title)))
            taken = min(excess, widths[i] - least)
            widths[i] -= taken
            excess -= taken
    return widths


def _line(row: Sequence[str], columns: Sequence[Column], widths: Sequence[int]) -> str:
    cells = [
        cell.rjust(wide) if column.numeric else _cut(cell, column, wide).ljust(wide)
        for cell, column, wide in zip(row, columns, widths, strict=True)
    ]
    return GAP.join(cells).rstrip()


def _cut(text: str, column: Column, width: int) -> str:
    if column.shrinks == "end" and len(text) > width:
        return f"{text[: width - 3].rstrip(' ,;:(')}..."
    return shortened(text, width)


def shortened(text: str, width: int) -> str:
    """Cut the middle out of a text that is too long, keeping both ends.

    Examples
    --------
    >>> shortened("resnet50/conv2_block1", 15)
    'resnet...block1'
    """
    if len(text) <= width:
        return text
    tail = (width - 3) // 2
    return f"{text[: width - 3 - tail]}...{text[len(text) - tail :]}"


def wrapped(text: str, width: int, indent: str = "", hang: str = "") -> list[str]:
    """Break a text at blanks into lines of at most ``width``, words kept whole.

    All lines begin with ``indent``, all but the first also with ``hang``; a number and its unit
    stay together.

    Examples
    --------
    >>> wrapped("M:1760 N:128 K:1760", 12, indent="  ")
    ['  M:1760', '  N:128', '  K:1760']
    >>> wrapped("at least 18.02 us", 14)
    ['at least', '18.02 us']
    """
    lines = textwrap.wrap(
        _BEFORE_UNIT.sub("\0", text),
        width,
        initial_indent=indent,
        subsequent_indent=indent + hang,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace("\0", " ") for line in lines]
