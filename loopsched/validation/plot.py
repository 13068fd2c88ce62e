"""Predicted against measured traffic, as a figure."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loopsched.errors import InputError, MissingExtraError
from loopsched.render import percent
from loopsched.validation.counter_files import MEASURED
from loopsched.validation.csv_files import Value

if TYPE_CHECKING:
    from loopsched.validation.compare import Validation

_TITLES = {
    "dram_read_bytes": "DRAM reads (bytes)",
    "dram_write_bytes": "DRAM writes (bytes)",
    "l2_read_sectors": "L2 read sectors (32 bytes)",
}
SUFFIXES = (".svg", ".png", ".pdf")


def plot_validation(found: Validation, path: str | os.PathLike[str]) -> None:
    """Draw predictions over measurements on logarithmic axes.

    Parameters
    ----------
    found : Validation
    path : str or path
        Where to write; its ending says in which format.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    InputError
        If the file cannot be written.

    Examples
    --------
    >>> plot_validation(None, "errors.txt")
    Traceback (most recent call last):
        ...
    loopsched.errors.InputError: errors.txt: a plot ends in .svg, .png or .pdf
    """
    target = plot_target(path)
    figure = new_figure(figsize=(11, 4))
    for axes, name in zip(figure.subplots(1, len(MEASURED)), MEASURED, strict=True):
        _panel(axes, name, found.rows, found.summary)
    save_figure(figure, target)


def plot_target(path: str | os.PathLike[str]) -> Path:
    """Check, before long work, that a plot can be drawn and where it is to be.

    Raises
    ------
    InputError
        If its ending names no format, or its folder does not exist.
    MissingExtraError
        If matplotlib is not installed.

    Examples
    --------
    >>> plot_target("no_such_folder/errors.svg")
    Traceback (most recent call last):
        ...
    loopsched.errors.InputError: no_such_folder/errors.svg: cannot be written: no such folder
    """
    target = Path(path)
    if target.suffix.lower() not in SUFFIXES:
        raise InputError(f"{target}: a plot ends in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}")
    if not target.parent.is_dir():
        raise InputError(f"{target}: cannot be written: no such folder")
    if target.is_dir():
        raise InputError(f"{target}: cannot be written: is a folder")
    try:
        import matplotlib  # noqa: F401, ICN001
    except ImportError:
        raise MissingExtraError(
            "plots need matplotlib; install it, or loopsched with the extra 'plot'"
        ) from None
    return target


def new_figure(figsize: tuple[float, float]) -> Any:
    """Make an empty figure, width and height in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=figsize, layout="constrained")


def save_figure(figure: Any, target: Path) -> None:
    """Write a figure; twice gives the same bytes.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    import matplotlib as mpl

    metadata = {"Date": None} if target.suffix.lower() == ".svg" else {}
    try:
        with mpl.rc_context({"svg.hashsalt": "loopsched"}):
            figure.savefig(target, metadata=metadata)
    except OSError as error:
        raise InputError(f"{target}: cannot be written: {error.strerror}") from None


def _panel(
    axes: Any, name: str, rows: Sequence[Mapping[str, Value]], summary: Mapping[str, object]
) -> None:
    pairs = [(row.get(name), row[f"predicted_{name}"]) for row in rows]
    shown = [
        (float(x), float(y))
        for x, y in pairs
        if isinstance(x, int | float) and isinstance(y, int | float) and x > 0 and y > 0
    ]
    axes.set_title(_TITLES[name], fontsize=11)
    axes.set_xlabel("measured")
    axes.set_ylabel("predicted")
    if not shown:
        axes.text(0.5, 0.5, "nothing to compare", ha="center", transform=axes.transAxes)
        return
    # Whole decades: labels between them would run into one another.
    low = 10.0 ** math.floor(math.log10(min(min(pair) for pair in shown) / 1.2))
    high = 10.0 ** math.ceil(math.log10(max(max(pair) for pair in shown) * 1.2))
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(low, high)
    axes.set_ylim(low, high)
    axes.set_aspect("equal")
    ends = [low, high]
    axes.fill_between(ends, [0.8 * end for end in ends], [1.2 * end for end in ends],
                      color="0.9", lw=0, label="within 20 %")  # fmt: skip
    axes.plot(ends, ends, color="0.5", lw=1)
    axes.scatter(*zip(*shown, strict=True), s=18, alpha=0.7, color="tab:blue", edgecolor="none")
    # What was measured or predicted as nothing has no place on a logarithmic axis.
    missing = sum(x is not None and y is not None for x, y in pairs) - len(shown)
    axes.legend(loc="upper left", fontsize=8, frameon=False)
    axes.text(0.97, 0.04, _note(summary[name], missing), ha="right", va="bottom", fontsize=8,
              transform=axes.transAxes)  # fmt: skip


def _note(errors: object, missing: int) -> str:
    lines = []
    if isinstance(errors, Mapping) and errors["median_error"] is not None:
        median, most = percent(errors["median_error"]), percent(errors["p90_error"])
        lines.append(f"error: median {median}, 90 % below {most}")
    if missing:
        lines.append(f"{missing} rows with 0 are not shown")
    return "\n".join(lines)
