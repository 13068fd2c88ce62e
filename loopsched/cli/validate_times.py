"""``validate times``: bounds and estimates beside measured times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from loopsched.base.units import percent, scaled, signed_percent
from loopsched.cli import options, output
from loopsched.show.table import Column, words

if TYPE_CHECKING:
    from loopsched.validation import TimeValidation, Validation
    from loopsched.validation.choices import ChoiceValidation

_EPILOG = """\b
loopsched validate times deepbench_gemm_measured --where gpu=V100
loopsched validate times titan_v_measured --algorithm any --plot conv.svg
loopsched validate times mine.csv --arch v100 --format json
"""
# Rows that cannot be read, on the screen.
_MOST_SKIPPED = 10


@click.command(epilog=_EPILOG)
@click.argument("file", metavar="FILE.csv")
@options.arch_of(None, "Machine that was measured; by default the column 'gpu'.")
@options.choice(
    "--algorithm",
    of=["known", "any"],
    meaning="Algorithm of convolutions: the column 'algo', or the library's own choice.",
)
@options.many(
    "--where",
    "-w",
    metavar="COLUMN=VALUE",
    meaning="Only rows with this value, such as pass=fwd; may be repeated.",
)
@options.count("--worst", least=0, default=10, meaning="List the N rows with the largest errors.")
@click.option("--strict", is_flag=True, help="Refuse the file if one of its rows cannot be read.")
@options.summed_form("Tables for people; for programs, {summary, rows} (json) or rows (csv).")
@options.plot("estimated against measured times")
def times(
    file: str,
    arch: str | None,
    algorithm: Literal["known", "any"],
    where: Sequence[str],
    worst: int,
    strict: bool,
    form: Literal["table", "json", "csv"],
    plot: tuple[Path, ...],
) -> None:
    """Compare estimates of library kernels with measured times.

    FILE.csv has one row per problem, with the columns of the shipped files
    (deepbench_conv_measured, deepbench_gemm_measured, library_gemm_measured,
    titan_v_measured: their names work as FILE), or 'problem' as text; 'gpu' and
    'precision', if they vary; and 'time_us'. See docs/validation_times.md.
    """
    from loopsched.validation.time_files import read_times
    from loopsched.validation.times import validate_times

    wanted = _wanted(where)
    with output.Progress(len(read_times(file, None if strict else []))) as progress:
        found = validate_times(
            file,
            arch,
            algorithm=algorithm,
            where=wanted,
            worst=worst,
            strict=strict,
            progress=progress.step,
        )
    save_comparisons(plot, found, file)
    output.print_summed(found, form, _show)
    _tell_skipped(found.summary["skipped"])


def _tell_skipped(rows: Any) -> None:
    """Count and list, on standard error, the rows that could not be read."""
    if not rows:
        return
    noun = "row" if len(rows) == 1 else "rows"
    click.echo(f"skipped {len(rows)} {noun} (--strict refuses the file):", err=True)
    for one in rows[:_MOST_SKIPPED]:
        click.echo(f"  {one}", err=True)
    if len(rows) > _MOST_SKIPPED:
        click.echo(f"  and {len(rows) - _MOST_SKIPPED} more: --format json has all", err=True)


def save_comparisons(
    targets: Sequence[Path], found: Validation | TimeValidation | ChoiceValidation, file: str
) -> None:
    """Write the plots of predictions over the measurements in a file."""
    if not targets:
        return
    from loopsched.show.plots.measured import comparisons, measured_figure, measured_rows

    panels, name = comparisons(found), Path(file).stem
    output.save_plots(targets, lambda: measured_rows(panels), lambda: measured_figure(panels, name))


def _wanted(where: Sequence[str]) -> dict[str, str]:
    wanted = {}
    for text in where:
        column, equals, value = text.partition("=")
        if not equals or not column.strip():
            raise click.BadParameter(f"'{text}' is not COLUMN=VALUE, such as gpu=V100")
        wanted[column.strip()] = value
    return wanted


def _from_us(time_us: float) -> str:
    return scaled(time_us * 1e-6, "s")


_VOLTA = ("V100", "TitanV", "v100", "titan_v", "titan_v_report_003")
_GROUPS = (
    words("group", "title"),
    Column("rows", "rows", "{:,}".format),
    Column("MAPE", "mape", "%"),
    Column("median", "median_error", "%", spare=1),
    Column("ratio", "geometric_mean_ratio", "{:.2f}".format),
    Column("rank", "rank_correlation", "{:.3f}".format, spare=2),
    Column("below", "bound_violations", "{:,}".format),
    Column("in interval", "within_spread", "%", spare=3),
    Column("roofline", "roofline_mape", "%", spare=4),
    Column("report 003", "report003_mape", "%", spare=5),
)
_WORST = (
    words("row", lambda row: str(row["place"]).removeprefix("line ")),
    words("problem", "problem", shrinks="middle"),
    words("on", lambda row: _joined(row, "gpu", "precision", "pass"), shrinks="end"),
    Column("measured", "time_us", _from_us),
    Column("estimate", "estimate_us", _from_us),
    Column("error", "error", signed_percent),
    Column("bound", "bound_us", _from_us, spare=1),
)


def _show(found: TimeValidation) -> None:
    summary: Mapping[str, Any] = found.summary
    kind = ("kind", "gpu", "precision", "pass")
    rows = [{"title": _joined(group, *kind), **group} for group in summary["groups"]]
    if len(rows) > 1:
        rows.append({"title": "all", **summary})
    rows += [
        {"title": f"apart: {group['reason'].partition(':')[0]}", **group}
        for group in summary["apart"]
    ]
    # Elsewhere the report's model, of a Titan V, is off a thousandfold.
    has_volta = any(row.get("gpu") in _VOLTA for row in rows)
    output.print_table(_GROUPS if has_volta else _GROUPS[:-1], rows)
    if summary["worst"]:
        click.echo("\nlargest errors, by the ratio of estimate and measurement:")
        worst = summary["worst"]
        output.print_table(_WORST, worst, [row["reason"] for row in worst])
    click.echo()
    of_report = ""
    if has_volta:
        error = percent(summary["report003_mape"])
        of_report = f", of report 003's model of loops without tiles {error}"
    from loopsched.validation.time_files import REPORT_PRECISION

    is_report = any(row.get("precision") == REPORT_PRECISION for row in rows)
    half = f" {REPORT_PRECISION}: fp32 arithmetic on fp16 data." if is_report else ""
    known = "from the file" if summary["algorithm"] == "known" else "the library's choice"
    output.print_text(
        "Errors are relative to the measurement; MAPE and median are of absolute errors. ratio: "
        "geometric mean of estimate over measurement; rank: rank correlation of the two; below: "
        f"measurements below the bound. Algorithms of convolutions: {known}.{half}"
    )
    output.print_text(
        f"{percent(summary['within_spread'])} of the measurements are within the 80 % "
        "intervals. On the same rows, the MAPE of the plain roofline is "
        f"{percent(summary['roofline_mape'])}{of_report}."
    )
    if summary["rows_remarked"]:
        many = summary["rows_remarked"]
        what = "1 row has" if many == 1 else f"{many} rows have"
        output.print_text(
            f"{what} an algorithm that cannot run its problem, treated as unknown: see the "
            "column 'remark' of --format csv."
        )
    if summary["apart"]:
        output.print_text(
            "Groups 'apart' are not counted in the others; the column 'apart' of --format csv "
            "says why for each row."
        )


def _joined(row: Mapping[str, Any], *names: str) -> str:
    return " ".join(filter(None, (str(row[name]) for name in names)))
