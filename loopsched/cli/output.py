"""Printing: rows for programs, tables for people, progress for the patient."""

from __future__ import annotations

import math
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Literal, Protocol, Self

import click

from loopsched.base.jit import is_kept
from loopsched.base.rows import Format, ResultFile, Row, RowWriter, json_text
from loopsched.base.units import percent
from loopsched.show.table import Column, Table, wrapped

Style = Literal["table", "json", "jsonl", "csv"]


class Summed(Protocol):
    """A result that has a summary and rows."""

    @property
    def summary(self) -> Mapping[str, object]:
        """Everything in all."""

    @property
    def rows(self) -> Sequence[Mapping[str, object]]:
        """One by one."""


# Room for every column where nobody has said how wide the paper is.
_FILE_WIDTH = 120


def width() -> int:
    """Characters a line: of the terminal, or of ``COLUMNS``."""
    if sys.stdout.isatty() or os.environ.get("COLUMNS"):
        return max(40, shutil.get_terminal_size().columns)
    return _FILE_WIDTH


def is_plain() -> bool:
    """Whether colours are not wanted (click drops them where nobody sees them)."""
    return bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"


def styled(text: str, **style: bool) -> str:
    """Mark a text up, unless colours are not wanted."""
    return text if is_plain() else click.style(text, **style)


@contextmanager
def rows_into(out: str | None, form: Style) -> Iterator[Callable[[Row], None]]:
    """Open what takes rows: the file ``--out``, and standard output unless a table is wanted.

    Yields
    ------
    callable
        Writes one row.
    """
    with ExitStack() as stack:
        writers: list[RowWriter | ResultFile] = []
        if out:
            writers.append(stack.enter_context(ResultFile(out)))
        if form != "table":
            writers.append(stack.enter_context(RowWriter(sys.stdout, form)))

        def write(row: Row) -> None:
            for writer in writers:
                writer.write(row)

        yield write


def report_rows(
    groups: Iterable[list[Row]],
    out: str | None,
    form: Style,
    progress: Progress,
    show: Callable[[list[Row]], None],
) -> None:
    """Save and print groups of rows as they come; show what there is at the end, or at Ctrl-C."""
    kept: list[Row] = []
    try:
        with rows_into(out, form) as write, progress:
            for rows in groups:
                for row in rows:
                    write(row)
                kept += rows
    finally:
        if form == "table" and kept:
            show(kept)


def print_rows(rows: Iterable[Row], form: Format) -> None:
    """Print rows for programs, each as soon as it is known."""
    with rows_into(None, form) as write:
        for row in rows:
            write(row)


def print_table(
    columns: Sequence[Column], rows: Sequence[Any], details: Sequence[str] = ()
) -> None:
    """Print a table with its titles set off, and say what the width left out."""
    table, room = Table(columns, rows, details), width()
    titles, _, body = table.text(room).partition("\n")
    click.echo(styled(titles, bold=True))
    click.echo(body)
    if missing := ", ".join(dict.fromkeys(table.left_out(room))):
        print_text(f"(left out at {room} columns: {missing})")


def shows_table(columns: Sequence[Column], rows: Sequence[Any], form: Style) -> bool:
    """Print rows for people or for programs; return whether people read them."""
    if form == "table":
        print_table(columns, rows)
        return True
    print_rows(rows, form)
    return False


def print_summed(
    found: Summed, form: Literal["table", "json", "csv"], show: Callable[[Any], None]
) -> None:
    """Print a result with a summary: its tables, all of it as JSON, or its rows as CSV."""
    if form == "json":
        click.echo(json_text({"summary": dict(found.summary), "rows": list(found.rows)}))
    elif form == "csv":
        print_rows(map(dict, found.rows), form)
    else:
        show(found)


def print_titled(lines: Iterable[tuple[str, str]]) -> None:
    """Print paragraphs with their titles beside them."""
    for title, text in lines:
        print_text(f"{title:<14}{text}", hang=" " * 14)


def print_text(text: str, hang: str = "") -> None:
    """Print a paragraph, wrapped; ``hang`` goes before all lines but the first."""
    for line in wrapped(text, width(), hang=hang):
        click.echo(line)


def print_notes(notes: Iterable[str]) -> None:
    """Print remarks to standard error, wrapped."""
    for note in notes:
        for line in wrapped(f"note: {note}", width(), hang="  "):
            click.echo(line, err=True)


def save_plots(
    targets: Sequence[Path], rows: Callable[[], Sequence[Row]], draw: Callable[[], Any]
) -> None:
    """Write a plot to every file asked for, and say so."""
    from loopsched.show.plots import figure

    figure.save_plots(targets, rows, draw)
    for target in targets:
        wrote(target)


def wrote(target: object, what: str = "") -> None:
    """Say which file or folder was written, and what is in it; not wrapped: a path is copied."""
    click.echo(f"wrote {target}{what and f': {what}'}", err=True)


def announce_compilation(kernel: object = None, what: str = "the search") -> None:
    """Tell, if kernels are yet to be compiled, that this takes a while.

    Parameters
    ----------
    kernel : jitted function, optional
        The one that takes longest; by default that of the search.
    what : str
        What it is part of.
    """
    if kernel is None:
        from loopsched.scheduler import kernels

        kernel = kernels.best_body
    if not is_kept(kernel):
        click.echo(f"compiling {what}, once, about 10 s ...", err=True)


def announce_counts() -> None:
    """Tell, if the counts of GPU kernels are yet to be compiled, that this takes a while."""
    from loopsched.gpu.classes import classify

    announce_compilation(classify, "the counts of kernels")


class Progress:
    """One line on standard error that tells how far long work is.

    It is shown only to a person: not where standard error is a file.

    Parameters
    ----------
    total : int
        Steps in all.
    """

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._is_shown = sys.stderr.isatty()
        self._has_shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._has_shown:
            self._show("")

    def step(self, what: str) -> None:
        """Say that one more step, this one, is done."""
        self._done += 1
        if self._total > 1:
            self._show(f"{self._done} of {self._total}: {what}")

    def report(self, best: float, bound: float) -> None:
        """Say how far the search of the problem in hand is."""
        gap = best / bound - 1 if bound > 0 else math.inf
        place = f"{self._done + 1} of {self._total}: " if self._total > 1 else ""
        self._show(f"{place}best {best:.4g}, bound {bound:.4g}, gap {percent(gap)}")

    def _show(self, text: str) -> None:
        if self._is_shown:
            self._has_shown = True
            room = shutil.get_terminal_size().columns - 1
            click.echo(f"\r\033[K{text[:room]}", err=True, nl=False)
