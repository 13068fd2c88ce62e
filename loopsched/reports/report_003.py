"""Report 003: library kernels on a Titan V, with a model of its own."""

from __future__ import annotations

import csv
from collections.abc import Iterable

from loopsched.arch import Arch
from loopsched.arch_file import load_arch
from loopsched.gpu.result import Estimate
from loopsched.models.report003 import report003_time
from loopsched.problem import Problem
from loopsched.reports.files import printed
from loopsched.reports.result import Line, ReportTable, Reproduction
from loopsched.resources import resource_dir
from loopsched.workload import load_workload

ARCH = "titan_v"
_BOUNDS = {"mem": "memory", "comp": "compute", "computation": "compute"}

Row = dict[str, str]


def measured_rows() -> tuple[tuple[Problem, Row], ...]:
    """Read the report's rows, each with its problem of the workload ``report_003``."""
    with (resource_dir("measurements") / "titan_v_measured.csv").open(newline="") as sheet:
        rows = list(csv.DictReader(sheet))
    return tuple(zip(load_workload("report_003").problems, rows, strict=True))


def reproduction() -> Reproduction:
    """Reproduce report 003."""
    report = printed("report_003")
    rows = measured_rows()
    arch = load_arch(ARCH)
    tables = tuple(
        ReportTable(
            table["name"],
            table["title"],
            tuple(
                _line(problem, row, arch)
                for problem, row in rows
                if row["section"] == table["section"]
            ),
        )
        for table in report["tables"]
    )
    names = [table.name for table in tables]
    conv = tuple(name for name in names if name.startswith("conv") and name != "conv_filters")
    return Reproduction(
        report["name"],
        report["title"],
        report["source"],
        ARCH,
        tables,
        remarks=_remarks(rows, tables),
        pools=(
            ("convolutions without the filter sizes", conv),
            ("fully connected layers", tuple(name for name in names if name.startswith("fc"))),
        ),
    )


def _line(problem: Problem, row: Row, arch: Arch) -> Line:
    said = report003_time(problem, int32=True)
    ours = _ours(problem, arch)
    return Line(
        "time",
        problem.name,
        "us",
        row["time_us"],
        printed=row["seed003_printed_us"].removesuffix(".0"),
        theirs=said.printed_us,
        ours=None if ours is None else ours.time_s * 1e6,
        ours_is="" if ours is None else "estimate",
    )


def _ours(problem: Problem, arch: Arch) -> Estimate | None:
    if problem.kind == "gemm":
        from loopsched.gpu.library.gemm import gemm_estimate

        return gemm_estimate(problem, arch)
    return None


def _remarks(rows: Iterable[tuple[Problem, Row]], tables: Iterable[ReportTable]) -> tuple[str, ...]:
    lines = [line for table in tables for line in table.lines if line.printed]
    odd = [line for line in lines if not line.is_followed]
    rounded = [line for line in odd if abs((line.theirs or 0) - float(line.printed)) <= 1]
    bounds = [
        (report003_time(problem, int32=True).bound, _BOUNDS[row["seed003_printed_bound"]])
        for problem, row in rows
        if row["seed003_printed_bound"]
    ]
    followed = sum(said == printed_bound for said, printed_bound in bounds)
    return (
        f"{len(lines) - len(odd)} of its {len(lines)} printed predictions follow from its "
        f"formulas; {len(rounded)} more are off by one microsecond.",
        f"{followed} of its {len(bounds)} printed bounds follow.",
    )
