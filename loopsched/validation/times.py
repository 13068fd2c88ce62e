"""Bounds and estimates held against measured times."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Literal, get_args

from loopsched.base.arguments import near, show
from loopsched.base.csv_text import Value
from loopsched.base.display import Shown
from loopsched.base.errors import InputError, ProblemError, gathered, nearest
from loopsched.gpu.library.estimates import library_estimate
from loopsched.gpu.library.tiled import Tiling, tiled_gemm
from loopsched.gpu.result import Estimate
from loopsched.machines.arch import Arch
from loopsched.machines.arch_file import as_arch, load_arch
from loopsched.problems.problem import Problem
from loopsched.published.model_003 import report003_time
from loopsched.validation.csv_files import Source, check, sheet_of, told
from loopsched.validation.time_files import GPUS, TimeRow, times_in
from loopsched.validation.time_summary import Compared, roofline, summary_of

Algorithm = Literal["known", "any"]
ALGORITHM_CHOICES: tuple[Algorithm, ...] = get_args(Algorithm)


@dataclass(frozen=True, slots=True)
class TimeValidation(Shown):
    """Bounds and estimates beside measured times.

    Parameters
    ----------
    rows : tuple of mapping
        Of each row the file's columns, then ``bound_us``, ``estimate_us``,
        ``low_us``, ``high_us``, ``bound_by``, ``kernel``, ``error`` (of the
        estimate, relative), ``roofline_us`` and ``report003_us`` (what other
        models say), ``remark`` and ``apart``: why the row's algorithm is not
        believed, and why the row is not counted with the others, or None.
        A column of the file that has one of these names becomes ``file_...``.
    summary : mapping
        ``file``, ``algorithm``; over all rows that are not listed separately: ``rows``,
        ``mape``, ``median_error``, ``p90_error``, ``geometric_mean_ratio`` (estimate over
        measurement), ``rank_correlation``, ``bound_violations``, ``within_spread`` (share
        of rows between ``low_us`` and ``high_us``), ``roofline_mape``, ``report003_mape``;
        ``rows_apart``; ``groups`` and ``apart``, the same for each kind, GPU, precision and
        pass, and for each reason; ``worst``, the rows that are furthest off; ``skipped``,
        rows left out and why.  Errors are shares: 0.1 is 10 %.
    compared : tuple of Compared
        What ``rows`` were made of.
    """

    rows: tuple[Mapping[str, Value], ...]
    summary: Mapping[str, object]
    compared: tuple[Compared, ...]


def validate_times(
    times: Source,
    arch: str | os.PathLike[str] | Arch | None = None,
    *,
    algorithm: Algorithm = "known",
    where: Mapping[str, str] | None = None,
    worst: int = 10,
    strict: bool = False,
    progress: Callable[[str], None] | None = None,
) -> TimeValidation:
    """Compare bounds and estimates with measured times, problem by problem.

    Parameters
    ----------
    times : str, path or iterable of mappings
        A file of measured times (docs/validation_times.md), the name of a shipped one, or its
        rows.
    arch : str, path or Arch, optional
        The machine it was measured on; by default the row's ``gpu``.
    algorithm : {'known', 'any'}
        Of a convolution: take the row's ``algo``, where it has one, or what
        the library would choose.
    where : mapping of str to str, optional
        Only rows with these values in these columns.
    worst : int
        How many rows ``summary["worst"]`` lists.
    strict : bool
        Refuse a file if one row cannot be read or estimated; else such rows are
        left out, and ``summary["skipped"]`` lists them with their reasons.
    progress : callable, optional
        Called with a text before each row.

    Raises
    ------
    InputError
        With all faults of the file: of its columns; with ``strict``, or where
        no row is left, of its rows.

    See Also
    --------
    validate_counters, library_estimate

    References
    ----------
    DeepBench, Baidu Research, 2016 to 2018 (measured times of libraries).

    Examples
    --------
    A product on a V100, and its time in DeepBench's list:

    >>> found = validate_times([{"m": 5124, "n": 9124, "k": 2560, "time_us": 18476}], "v100")
    >>> row = found.rows[0]
    >>> row["bound_us"] < 18476 < 1.2 * row["estimate_us"], row["bound_by"]
    (True, 'compute')
    """
    if algorithm not in ALGORITHM_CHOICES:
        allowed = near(algorithm, ALGORITHM_CHOICES)
        raise InputError(f"algorithm is {show(algorithm)}; {allowed}")
    sheet = sheet_of(times, "measurements", "counters")
    name = sheet.where
    skipped = list[str]()
    rows = _chosen(times_in(sheet, None if strict else skipped), where or {}, name)
    machines = _machines(rows, arch, name)
    said = _Said()
    found, faults = [], list[str]()
    for row, machine in zip(told(rows, progress), machines, strict=True):
        with gathered(faults, f"{row.place}: "):
            found.append(said.compared(row, machine, algorithm))
    check(name, faults if strict or not found else [])
    summary = {"file": name, "algorithm": algorithm, **summary_of(found, worst)}
    summary["skipped"] = [*skipped, *faults]
    return TimeValidation(tuple(one.values() for one in found), summary, tuple(found))


def tiled_estimate(problem: Problem, arch: Arch, tiling: Tiling, data_type: str) -> Estimate:
    """Estimate a product whose kernel is known by its tiles.

    Examples
    --------
    >>> from loopsched import gemm, load_arch
    >>> tiling = Tiling((128, 128, 32), group_m=8, registers=128)
    >>> said = tiled_estimate(gemm(m=8192, n=8192, k=8192), load_arch("h200"), tiling, "tf32")
    >>> said.time_bound_s < said.time_s
    True
    """
    return tiled_gemm(problem, arch, data_type=data_type, **asdict(tiling)).estimate


def _estimate(row: TimeRow, arch: Arch, algorithm: str | None) -> Estimate:
    if row.kernel is not None:
        from loopsched.gpu.estimate import estimate_kernel

        return estimate_kernel(row.kernel, arch, caches="warm")
    if row.tiling is not None:
        return tiled_estimate(row.problem, arch, row.tiling, row.data_type)
    return library_estimate(
        row.problem,
        arch,
        algorithm=algorithm,
        data_type=row.data_type,
        a_transposed=row.a_transposed,
        b_transposed=row.b_transposed,
    )


class _Said:
    """What is said about rows, each problem asked once."""

    def __init__(self) -> None:
        self._estimates: dict[object, Estimate] = {}
        self._report: dict[Problem, float | None] = {}

    def compared(self, row: TimeRow, arch: Arch, choice: Algorithm) -> Compared:
        algorithm = row.algorithm if choice == "known" else None
        remark = ""
        try:
            estimate = self._estimate(row, arch, algorithm)
        except ProblemError as error:
            if algorithm is None:
                raise
            # A label that cannot be right: lists have some from other layers.
            remark = f"{error}: treated as unknown"
            estimate = self._estimate(row, arch, None)
        return Compared(
            row=row,
            arch=arch.name,
            estimate=estimate,
            roofline_us=roofline(row.problem, arch, data_type=row.data_type) * 1e6,
            report003_us=self._report003(row.report_problem),
            remark=remark,
        )

    def _estimate(self, row: TimeRow, arch: Arch, algorithm: str | None) -> Estimate:
        operand = row.data_type, row.a_transposed, row.b_transposed
        key = (row.problem, id(arch), algorithm, row.tiling, row.kernel, *operand)
        if key not in self._estimates:
            self._estimates[key] = _estimate(row, arch, algorithm)
        return self._estimates[key]

    def _report003(self, problem: Problem) -> float | None:
        if problem not in self._report:
            try:
                self._report[problem] = report003_time(problem).time_us
            except ProblemError:
                self._report[problem] = None
        return self._report[problem]


def _chosen(rows: Sequence[TimeRow], where: Mapping[str, str], name: str) -> tuple[TimeRow, ...]:
    columns = list(dict.fromkeys(column for row in rows for column in row.values))
    check(
        name,
        [
            f"no column '{one}'; {nearest(one, columns, 'there are')}"
            for one in where
            if one not in columns
        ],
    )
    kept = tuple(
        row
        for row in rows
        if all(_is(row.values.get(column), value) for column, value in where.items())
    )
    if not kept:
        said = ", ".join(f"{column}={value}" for column, value in where.items())
        raise InputError(f"{name}: no row with {said}")
    return kept


def _is(value: Value, wanted: str) -> bool:
    return ("" if value is None else str(value)).casefold() == wanted.strip().casefold()


def _machines(
    rows: Sequence[TimeRow], arch: str | os.PathLike[str] | Arch | None, name: str
) -> list[Arch]:
    """Find each row's architecture."""
    if arch is not None:
        gpus = list(dict.fromkeys(row.gpu for row in rows if row.gpu))
        if len(gpus) > 1:
            raise InputError(
                f"{name}: one architecture is given, but rows are of {' '.join(gpus)}; choose "
                "some with gpu=NAME, or let the column choose"
            )
        machine = as_arch(arch)
        return [machine] * len(rows)
    nameless = [row.place for row in rows if row.arch is None]
    if nameless:
        raise InputError(
            f"{name}: {len(nameless)} rows name no GPU, the first at {nameless[0]}; give an "
            f"architecture, or a column 'gpu' (allowed: {' '.join(GPUS)})"
        )
    names = [row.arch for row in rows if row.arch is not None]
    machines = {name: load_arch(name) for name in dict.fromkeys(names)}
    return [machines[name] for name in names]
