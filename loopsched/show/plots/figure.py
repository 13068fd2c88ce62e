"""Figures and files of plots: checked before long work, written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loopsched.base.errors import InputError, MissingExtraError
from loopsched.base.files import target_of, whole_file
from loopsched.show.plots.style import PAGE, context

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from loopsched.base.rows import Row

SUFFIXES = (".svg", ".png", ".pdf", ".csv")
# No dates and no versions: the same data give the same bytes.
_METADATA: dict[str, dict[str, str | None]] = {
    "svg": {"Date": None, "Creator": "loopsched"},
    "pdf": {"CreationDate": None, "Creator": "loopsched", "Producer": None},
    "png": {"Software": "loopsched"},
}


def plot_target(path: str | os.PathLike[str]) -> Path:
    """Check, before long work, that a plot can be drawn and where it is to be.

    Parameters
    ----------
    path : str or path
        ``.svg``, ``.png`` and ``.pdf`` are drawings; ``.csv`` is the data.

    Raises
    ------
    InputError
        If its ending names no format, or it cannot be written there.
    MissingExtraError
        If matplotlib is needed and not installed.

    Examples
    --------
    >>> plot_target("no_such_folder/errors.svg")
    Traceback (most recent call last):
        ...
    loopsched.base.errors.InputError: no_such_folder/errors.svg: cannot be written: no such ...
    """
    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(f"{target}: a plot ends in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}")
    target_of(target)
    if not os.access(target if target.exists() else target.parent, os.W_OK):
        raise InputError(f"{target}: cannot be written: permission denied")
    if suffix != ".csv":
        _need_matplotlib()
    return target


def _need_matplotlib() -> None:
    try:
        import matplotlib  # noqa: F401, ICN001
    except ImportError:
        raise MissingExtraError(
            "plots need matplotlib; install it, or loopsched with the extra 'plot'; "
            "their data can be written as .csv without it"
        ) from None


def new_figure(width: float = PAGE, height: float = 4.2) -> Figure:
    """Make an empty figure, width and height in inches.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    _need_matplotlib()
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def axes_of(ax: Axes | None, width: float = PAGE, height: float = 4.2) -> Axes:
    """Take the Axes given, or the only one of a new figure."""
    return new_figure(width, height).subplots() if ax is None else ax


def save_figure(figure: Figure, target: Path) -> None:
    """Write a figure whole or not at all; twice gives the same bytes.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    form = target.suffix.lower().removeprefix(".")
    with whole_file(target) as part, context():
        figure.savefig(part, format=form, metadata=_METADATA[form])


def save_rows(rows: Sequence[Row], target: Path) -> None:
    """Write the data of a plot as CSV, whole or not at all.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    from loopsched.base.rows import RowWriter

    with (
        whole_file(target) as part,
        part.open("w", encoding="utf-8", newline="") as stream,
        RowWriter(stream, "csv") as to,
    ):
        for row in rows:
            to.write(row)


def save_plots(
    targets: Sequence[Path], rows: Callable[[], Sequence[Row]], draw: Callable[[], Any]
) -> None:
    """Write a plot to every file asked for, drawn or as its data.

    Parameters
    ----------
    targets : sequence of path
        As `plot_target` has checked them.
    rows : callable
        Gives the data.
    draw : callable
        Draws, and returns the Axes or its figure; called only if needed.
    """
    for target in targets:
        if target.suffix.lower() == ".csv":
            save_rows(rows(), target)
    drawn = [target for target in targets if target.suffix.lower() != ".csv"]
    if not drawn:
        return
    with context():
        figure: Figure = draw().figure
        for target in drawn:
            save_figure(figure, target)
