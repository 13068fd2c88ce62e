"""Report 003: library kernels on a Titan V, with a model of its own."""

from __future__ import annotations

import csv
from collections.abc import Iterable

from loopsched.base.resources import resource_dir
from loopsched.gpu.library.conv import conv_estimate
from loopsched.gpu.library.gemm import gemm_estimate
from loopsched.gpu.result import Estimate
from loopsched.machines.arch import Arch
from loopsched.machines.arch_file import load_arch
from loopsched.problems.builders import gemm
from loopsched.problems.problem import Problem
from loopsched.problems.workload import read_workload
from loopsched.published.model_003 import report003_time
from loopsched.published.result import Line, ReportTable, Reproduction, printed

ARCH = "titan_v"
# Its sheet says "half (32)" of all rows: stored as fp16, computed as fp32.
_DATA_TYPE = "fp16_as_fp32"
_BOUNDS = {"mem": "memory", "comp": "compute", "computation": "compute"}

Row = dict[str, str]


def measured_rows() -> tuple[tuple[Problem, Row], ...]:
    """Read the report's rows, each with its problem of the workload ``report_003``."""
    with (resource_dir("measurements") / "titan_v_measured.csv").open(newline="") as sheet:
        rows = list(csv.DictReader(sheet))
    return tuple(zip(read_workload("report_003").problems, rows, strict=True))


def reproduction() -> Reproduction:
    """Reproduce report 003."""
    report = printed("report_003")
    rows = measured_rows()
    arch = load_arch(ARCH)
    tables = []
    for table in report["tables"]:
        own = (pair for pair in rows if pair[1]["section"] == table["section"])
        lines = tuple(_line(problem, row, arch) for problem, row in own)
        tables.append(ReportTable(table["name"], table["title"], lines))
    names = [table.name for table in tables]
    conv = tuple(name for name in names if name.startswith("conv") and name != "conv_filters")
    pools = (
        ("convolutions, except those by filter size", conv),
        ("all fully connected layers", tuple(name for name in names if name.startswith("fc"))),
    )
    return Reproduction.of(report, ARCH, tables, remarks=_remarks(rows, tables), pools=pools)


def _line(problem: Problem, row: Row, arch: Arch) -> Line:
    said = report003_time(problem, int32=True)
    ours = _ours(problem, row, arch)
    return Line(
        "time",
        problem.name,
        "us",
        row["time_us"],
        printed=row["report_003_printed_us"].removesuffix(".0"),
        theirs=said.printed_us,
        ours=ours.time_s * 1e6,
        ours_is="estimate",
    )


def measured_problem(problem: Problem, row: Row) -> Problem:
    """Build the problem that DeepBench ran for a row of a fully connected layer.

    The report calls a layer's sizes M, K and N (batch), and DeepBench's words for
    a product are the same: M outputs, sums of length K.  Its own model takes M for
    the length of the reductions, and so does the workload ``report_003``.

    Examples
    --------
    >>> layer, row = measured_rows()[32]
    >>> layer.name, measured_problem(layer, row).name
    ('fc_25088x4096_batch_64', 'm25088 n64 k4096')
    """
    if problem.kind != "gemm":
        return problem
    m, n, k = (int(float(row[key])) for key in ("gemm_n", "gemm_m", "gemm_k"))
    return gemm(m=m, n=n, k=k)


def _ours(problem: Problem, row: Row, arch: Arch) -> Estimate:
    ran = measured_problem(problem, row)
    if ran.kind == "gemm":
        return gemm_estimate(ran, arch, data_type=_DATA_TYPE)
    return conv_estimate(ran, arch, algorithm=row["algo"], data_type=_DATA_TYPE)


def _remarks(rows: Iterable[tuple[Problem, Row]], tables: Iterable[ReportTable]) -> tuple[str, ...]:
    lines = [line for table in tables for line in table.lines if line.printed]
    odd = [line for line in lines if not line.is_followed]
    rounded = [line for line in odd if abs((line.theirs or 0) - float(line.printed)) <= 1]
    bounds = [
        (report003_time(problem, int32=True).bound, _BOUNDS[row["report_003_printed_bound"]])
        for problem, row in rows
        if row["report_003_printed_bound"]
    ]
    followed = sum(said == printed_bound for said, printed_bound in bounds)
    return (
        f"{len(lines) - len(odd)} of its {len(lines)} printed predictions follow from its "
        f"formulas; {len(rounded)} more are off by one microsecond.",
        f"{followed} of its {len(bounds)} printed bounds follow.",
        "Ours are library kernels, but no predictions, as three choices were made by looking at "
        "these rows: 'half (32)', as its sheet says, is fp32 arithmetic on fp16 data; its "
        "convolutions, all labelled 'GEMM', are implicit GEMMs (explicit ones would take "
        "clearly longer); its GEMMs are not split, in tiles of 128 x 64. Nothing else was "
        "fitted to them.",
        "Its block 'Kernel Size Analysis' runs at a third of the rate of its other rows and "
        "contradicts one of them: the row 'convolutions, except those by filter size' leaves it "
        "out.",
        "A fully connected layer that it calls M x K is a GEMM with M outputs and reductions of "
        "length K, as DeepBench has it; its own model takes M for that length.",
    )
