"""``validate``: predictions beside measurements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from loopsched.base.units import percent, scaled, signed_percent
from loopsched.cli import options, output
from loopsched.cli.group import Group
from loopsched.cli.validate_choices import choices
from loopsched.cli.validate_cpu import cpu
from loopsched.cli.validate_times import save_comparisons, times
from loopsched.show.table import Column, words

if TYPE_CHECKING:
    from loopsched.validation import Validation

_EPILOG = """\b
loopsched validate counters h200_tiled_gemm
loopsched validate counters mine.csv --arch v100 --plot mine.svg
loopsched validate counters mine.csv --format json
"""


@click.group(cls=Group)
def validate() -> None:
    """Compare predictions with measurements."""


validate.add_command(times)
validate.add_command(choices)
validate.add_command(cpu)


@validate.command(epilog=_EPILOG)
@click.argument("file", metavar="FILE.csv")
@options.arch_of("h200")
@options.choice(
    "--with",
    "method",
    of=["simulator", "evaluate"],
    meaning="Replay tiles through L2, or take the point estimate of 'analyze'.",
)
@options.summed_form("A table for people; for programs, {summary, rows} (json) or rows (csv).")
@options.plot("predicted against measured traffic")
def counters(
    file: str,
    arch: str,
    method: Literal["simulator", "evaluate"],
    form: Literal["table", "json", "csv"],
    plot: tuple[Path, ...],
) -> None:
    """Compare predicted DRAM and L2 traffic with hardware counters.

    FILE.csv has one row per launch, with the columns of the shipped files
    (h200_tiled_gemm, h200_kernels: their names work as FILE), or 'problem' and
    'schedule' as text; and the measurements dram_read_bytes,
    dram_write_bytes, l2_read_sectors. See docs/counters.md.
    """
    from loopsched.validation import read_counters, validate_counters

    with output.Progress(len(read_counters(file))) as progress:
        found = validate_counters(file, arch, method=method, progress=progress.step)
    save_comparisons(plot, found, file)
    output.print_summed(found, form, _show)


_QUANTITIES = (
    ("dram_read_bytes", "DRAM read", "read", "B"),
    ("dram_write_bytes", "DRAM write", "write", "B"),
    ("l2_read_sectors", "L2 sectors", "L2", " "),
)
# In a narrow terminal predictions are left out first, then the writes.
_SPARES = ((0, 3, 0), (1, 5, 2), (0, 4, 0))


def _show(found: Validation) -> None:
    is_long = any("problem" in row for row in found.rows)
    columns = [words("launch", shrinks="middle" if is_long else "")]
    for (_, title, short, _), spares in zip(_QUANTITIES, _SPARES, strict=True):
        of_one = zip((title, f"{short} pred.", f"{short} error"), spares, strict=True)
        columns += [Column(name, spare=spare) for name, spare in of_one]
    output.print_table(columns, [[_name(row), *_cells(row)] for row in found.rows])
    click.echo()
    titles = ("rows", "median", "90 %", "mean", "largest", "rank corr.")
    summary = [words("quantity"), *map(Column, titles)]
    output.print_table(summary, list(_sums(found.summary)))
    click.echo()
    output.print_text(
        "DRAM read, DRAM write and L2 sectors (of 32 B, read) are measured; pred.: predicted. "
        "Errors are relative to the measurement; the summary is of absolute errors. "
        f"Measurements below the lower bound: {found.summary['bound_violations']}."
    )


def _name(row: Mapping[str, object]) -> str:
    if "case" in row:
        return str(row["case"])
    if "tile_m" not in row:
        return f"{row['problem']} {row['schedule']}"
    sizes = "x".join(str(row[name]) for name in ("M", "N", "K"))
    tiles = "x".join(str(row[f"tile_{name}"]) for name in "mnk")
    return f"{sizes} {tiles} g{row['group_m']}"


def _cells(row: Mapping[str, object]) -> Iterator[str]:
    for name, *_, unit in _QUANTITIES:
        for value in (row.get(name), row[f"predicted_{name}"]):
            yield scaled(value, unit) if isinstance(value, int | float) else ""
        error = row[f"error_{name}"]
        yield signed_percent(error) if isinstance(error, float) else ""


def _sums(summary: Mapping[str, object]) -> Iterable[list[str]]:
    for name, title, *_ in (("dram_bytes", "DRAM both"), *_QUANTITIES):
        errors = summary[name]
        if not isinstance(errors, Mapping):
            continue
        shares = [errors[f"{key}_error"] for key in ("median", "p90", "mean", "max")]
        rank = errors["rank_correlation"]
        yield [
            title,
            f"{errors['rows']:,}",
            *("" if share is None else percent(share) for share in shares),
            "" if rank is None else f"{rank:.3f}",
        ]
