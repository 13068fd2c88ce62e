"""``validate choices``: what choosing by estimate costs on measured spaces."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from loopsched.base.units import count, percent
from loopsched.cli import options, output
from loopsched.show.table import Column, words

if TYPE_CHECKING:
    from loopsched.validation.choices import ChoiceValidation

_EPILOG = """\b
loopsched validate choices triton_h100 --arch h100
loopsched validate choices mine.csv -a h200 --kernel triton_gemm --format json
"""


@click.command(epilog=_EPILOG)
@click.argument("file", metavar="FILE.csv")
@options.arch_of("h100")
@click.option(
    "--kernel",
    metavar="NAME",
    help="Kernel family of all rows; by default the column 'kind'.",
)
@options.summed_form("Tables for people; for programs, {summary, rows} (json) or rows (csv).")
@options.plot("estimated against measured times")
def choices(
    file: str,
    arch: str,
    kernel: str | None,
    form: Literal["table", "json", "csv"],
    plot: tuple[Path, ...],
) -> None:
    """Compare the choices of 'pick' with measured configurations.

    FILE.csv has one row per configuration, with the columns of the shipped
    file triton_h100, whose name works as FILE. See docs/choosing_kernels.md.
    """
    from loopsched.cli.validate_times import save_comparisons
    from loopsched.validation.choices import validate_choices

    found = validate_choices(file, arch, kernel=kernel)
    if plot:
        save_comparisons(plot, found, file)
    output.print_summed(found, form, _show)


def _times(value: float) -> str:
    return f"{value:.3f}"


# Longer names, those of groups, are cut; then none of convolutions look alike.
_LONGEST = 32
_PROBLEMS = (
    Column("space", "configurations", spare=3),
    Column("best", lambda one: one["best_us"] * 1e-6, "s"),
    Column("first", "first_1", _times),
    Column("of 5", "first_5", _times),
    Column("of 10", "first_10", _times, spare=2),
    Column("rank", "rank_correlation", _times, spare=4),
    Column("MAPE", "mape", "%"),
    Column("set", "set_share", "%", spare=1),
    words("has best", lambda one: "yes" if one["set_holds_best"] else "no", spare=1),
)
_GROUPS = (
    words("group", lambda one: f"{one['kind']} {one['data_type']}"),
    Column("problems", "problems", "{:,}".format),
    Column("first", lambda one: f"{one['first_1']:.3f} {one['first_1_worst']:.3f}"),
    Column("of 5", lambda one: f"{one['first_5']:.3f} {one['first_5_worst']:.3f}"),
    Column("of 10", lambda one: f"{one['first_10']:.3f} {one['first_10_worst']:.3f}", spare=1),
    Column("MAPE", "mape", "%"),
    Column("best missed", "sets_without_best", spare=2),
)


def _name(one: Mapping[str, Any]) -> str:
    return f"{one['kind']} {one['problem']}"


def _show(found: ChoiceValidation) -> None:
    names = [_name(one) for one in found.problems]
    is_long = max(map(len, names)) > _LONGEST
    problem = words("problem", _name, shrinks="middle" if is_long else "")
    output.print_table((problem, *_PROBLEMS), found.problems)
    click.echo()
    output.print_table(_GROUPS, found.summary["groups"])
    click.echo()
    output.print_text(
        "space: configurations measured. first, of 5, of 10: time of the best of the first 1, 5 "
        "or 10 choices over the best of all, as measured; per group, geometric mean and worst. "
        "MAPE: mean absolute error of the estimates; rank: their rank correlation with the "
        "measured times. set: share of the space that may be best, and whether it has the best. "
        f"Measurements below the bound: {found.summary['bound_violations']}."
    )
    if refused := sum(group["refused"] for group in found.summary["groups"]):
        output.print_text(f"Measured, but unable to run by the model: {count(refused, 'row')}.")
    for kind, many in found.summary["left_out"].items():
        rows = count(many, "row")
        output.print_text(f"Left out: {rows} of kind '{kind}', which is not a kernel family.")
    shares = [one["set_share"] for one in found.problems]
    output.print_text(f"The largest set is {percent(max(shares))} of its space.")
