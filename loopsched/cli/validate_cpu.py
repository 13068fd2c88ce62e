"""``validate cpu``: estimates and bounds of kernels beside what they take on this CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click

from loopsched.base.units import percent, signed_percent
from loopsched.cli import options, output
from loopsched.cli.inputs import select
from loopsched.cli.saved import is_result_file
from loopsched.show.table import Column, words

if TYPE_CHECKING:
    from loopsched.validation.cpu import CpuValidation

_EPILOG = """\b
loopsched validate cpu resnet50 --threads 1
loopsched validate cpu gemm:m=512,n=512,k=512 --plans 200
loopsched run resnet50 --out runs.jsonl && loopsched validate cpu runs.jsonl
"""


@click.command(epilog=_EPILOG)
@click.argument("workload", metavar="PROBLEM|WORKLOAD|RESULTS")
@options.compiled
@options.count(
    "--plans", default=8, meaning="Time N plans per problem: half the best, half drawn at random."
)
@options.seed("Random seed of the drawn plans.")
@options.arch_of("host")
@options.summed_form("Tables for people; for programs, {summary, rows} (json) or rows (csv).")
def cpu(
    workload: str,
    layers: tuple[str, ...],
    threads: int | None,
    data_type: str | None,
    plans: int,
    seed: int,
    arch: str,
    form: Literal["table", "json", "csv"],
) -> None:
    """Compare estimated with measured kernel times on this CPU.

    For every distinct problem of WORKLOAD, several plans (tile sizes, packing,
    loop order) are compiled, checked and timed. RESULTS is what
    'loopsched run --out' saved.
    """
    from loopsched.validation.cpu import validate_cpu

    if workload.endswith(".csv") or is_result_file(workload):
        output.print_summed(validate_cpu(workload), form, _show)
        return
    problems = select(workload, layers).workload.problems
    with output.Progress(len(problems)) as progress:
        found = validate_cpu(
            problems,
            arch,
            threads=threads,
            data_type=data_type,
            plans=plans,
            seed=seed,
            progress=progress.step,
        )
    output.print_summed(found, form, _show)


def _number(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else ""


_COLUMNS = (
    words("problem", "problem", shrinks="middle"),
    Column("bound", "bound_s", "s", spare=2),
    Column("estimated", "estimate_s", "s"),
    Column("measured", "measured_s", "s"),
    Column("error", "error", signed_percent),
    Column("first/best", lambda row: row.get("first_over_best"), "{:.3f}".format),
    Column("rank", lambda row: row.get("plan_rank_correlation"), "{:.3f}".format, spare=1),
)


def _show(found: CpuValidation) -> None:
    summary = found.summary
    output.print_table(_COLUMNS, found.rows)
    click.echo()
    mape, median = (summary[name] for name in ("mape", "median_error"))
    if isinstance(mape, float) and isinstance(median, float):
        output.print_text(
            f"Problems with an estimate: {summary['estimated']} of {summary['problems']}; MAPE "
            f"{percent(mape)}, median {percent(median)}, ratio "
            f"{_number(summary['geometric_mean_ratio'])}, rank correlation "
            f"{_number(summary['rank_correlation']) or 'not defined'}."
        )
    if summary["first_over_best"] is not None:
        output.print_text(
            "first/best: the model's first choice over the best plan that was timed; geometric "
            f"mean {_number(summary['first_over_best'])}, worst "
            f"{_number(summary['first_over_best_worst'])}. rank: rank correlation of those plans."
        )
    output.print_text(f"Measurements below the bound: {summary['bound_violations']}.")
