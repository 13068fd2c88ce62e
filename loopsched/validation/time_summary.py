"""What many rows of bounds, estimates and measured times come to."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from loopsched.base.csv_text import Value
from loopsched.base.rows import picked
from loopsched.base.statistics import percentile, rank_correlation
from loopsched.gpu.library.machine import CONVERTED
from loopsched.gpu.result import Estimate
from loopsched.machines.arch import Arch
from loopsched.problems.footprint import problem_bytes
from loopsched.problems.problem import Problem
from loopsched.validation.time_files import TimeRow

# Above this share of half a microsecond in a whole one, rounding is worth a word.
_ROUNDED = 0.05
# Remarks on the titles of a sheet say nothing about a row's number.
_TITLES = ("units:", "labelled batch variance")
# What the shipped files call a time whose rounding to whole microseconds matters.
_QUANTISED = "quantised"


@dataclass(frozen=True, slots=True)
class Compared:
    """One row with all that is said about it.

    Parameters
    ----------
    row : TimeRow
    arch : str
        Name of the architecture.
    estimate : Estimate
    roofline_us : float, microseconds
    report003_us : float or None, microseconds
    remark : str
        Why the row's algorithm is not believed, if it is not.
    """

    row: TimeRow
    arch: str
    estimate: Estimate
    roofline_us: float
    report003_us: float | None
    remark: str = ""

    @property
    def gpu(self) -> str:
        """The file's word for the machine, or the architecture's name."""
        return self.row.gpu or self.arch

    @property
    def bound_us(self) -> float:
        """What no correct run beats, in microseconds."""
        return self.estimate.time_bound_s * 1e6

    @property
    def estimate_us(self) -> float:
        """The estimate in microseconds."""
        return self.estimate.time_s * 1e6

    @property
    def ratio(self) -> float:
        """The estimate over the measurement."""
        return self.estimate_us / self.row.time_us

    @property
    def is_within(self) -> bool:
        """Whether the measurement is within the stated spread."""
        measured_s = self.row.time_us * 1e-6
        return self.estimate.low_s <= measured_s <= self.estimate.high_s

    @property
    def is_below_bound(self) -> bool:
        """Whether the measurement is below the bound, which cannot be."""
        return self.row.time_us < self.bound_us

    def values(self) -> dict[str, Value]:
        """Columns of the file, then what is said."""
        estimate = self.estimate
        said: dict[str, Value] = {
            "bound_us": self.bound_us,
            "estimate_us": self.estimate_us,
            "low_us": estimate.low_s * 1e6,
            "high_us": estimate.high_s * 1e6,
            "bound_by": estimate.bound_by,
            "kernel": estimate.kernel,
            "error": self.ratio - 1,
            "roofline_us": self.roofline_us,
            "report003_us": self.report003_us,
            "remark": self.remark or None,
            "apart": self.row.apart or None,
        }
        return _beside(self.row.values, said) | said


def _beside(values: Mapping[str, Value], said: Mapping[str, Value]) -> dict[str, Value]:
    """Rename those of the file's columns that would be overwritten."""
    kept: dict[str, Value] = {}
    for column, value in values.items():
        name = column
        while name in said or (name != column and name in values):
            name = f"file_{name}"
        kept[name] = value
    return kept


def summary_of(rows: Sequence[Compared], worst: int) -> dict[str, object]:
    """Sum up: all rows but those apart, each group, what is apart, the worst."""
    counted = [one for one in rows if not one.row.apart]
    apart = [one for one in rows if one.row.apart]
    groups: dict[tuple[str, ...], list[Compared]] = {}
    for one in counted:
        row = one.row
        groups.setdefault((row.kind, one.gpu, row.precision, row.pass_), []).append(one)
    titles = ("kind", "gpu", "precision", "pass")
    reasons: dict[str, list[Compared]] = {}
    for one in apart:
        reasons.setdefault(one.row.apart, []).append(one)
    return {
        **errors(counted),
        "rows_apart": len(apart),
        "rows_remarked": sum(bool(one.remark) for one in rows),
        "groups": [
            {**dict(zip(titles, key, strict=True)), **errors(group)}
            for key, group in groups.items()
        ],
        "apart": [{"reason": reason, **errors(group)} for reason, group in reasons.items()],
        "worst": [
            {
                "place": one.row.place,
                "problem": one.row.problem.name,
                "gpu": one.gpu,
                "precision": one.row.precision,
                "pass": one.row.pass_,
                "time_us": one.row.time_us,
                **picked(one, "bound_us", "estimate_us"),
                "error": one.ratio - 1,
                "reason": "; ".join(reasons_of(one)),
            }
            for one in sorted(counted, key=lambda one: -abs(math.log(one.ratio)))[:worst]
        ],
    }


def errors(rows: Sequence[Compared]) -> dict[str, object]:
    """Compute the errors of some rows; None where there is nothing to compute.

    Examples
    --------
    >>> errors([])["rows"], errors([])["mape"]
    (0, None)
    """
    measured = [one.row.time_us for one in rows]
    estimates = [one.estimate_us for one in rows]
    off = [abs(one.ratio - 1) for one in rows]
    reports = [one.report003_us for one in rows]
    return {
        "rows": len(rows),
        "mape": _mean(off),
        "median_error": percentile(off, 0.5),
        "p90_error": percentile(off, 0.9),
        "geometric_mean_ratio": math.exp(sum(math.log(one.ratio) for one in rows) / len(rows))
        if rows
        else None,
        "rank_correlation": rank_correlation(measured, estimates),
        "bound_violations": sum(one.is_below_bound for one in rows),
        "within_spread": _mean([float(one.is_within) for one in rows]),
        "roofline_mape": _mape([one.roofline_us for one in rows], measured),
        "report003_mape": _mape(reports, measured),
    }


def reasons_of(one: Compared) -> list[str]:
    """Say what is known about why a row is off."""
    row, found = one.row, []
    if one.is_below_bound:
        typed = [row.values.get(name) for name in ("precision", "data_type")]
        unsaid = "" if any(typed) else f", which takes {row.precision}: no column 'precision'"
        found.append(f"measured below the bound{unsaid}")
    said = [part.strip() for part in str(row.values.get("anomaly") or "").split(";")]
    found += [part for part in said if part and not part.startswith((*_TITLES, _QUANTISED))]
    rounding = 0.5 / row.time_us
    is_told = any(part.startswith(_QUANTISED) for part in said)
    if is_told or (row.time_us.is_integer() and rounding >= _ROUNDED):
        found.append(f"rounded to whole us (up to {100 * rounding:.0f} %)")
    if one.remark:
        found.append(f"algorithm {row.algorithm} is impossible, treated as unknown")
    elif row.algorithm is not None:
        found.append(f"algo {row.algorithm}")
    kernel = f", {one.estimate.kernel}" if one.estimate.kernel else ""
    found.append(f"estimate bound by {one.estimate.bound_by}{kernel}")
    return found


def _mape(said: Iterable[float | None], measured: Sequence[float]) -> float | None:
    pairs = zip(said, measured, strict=True)
    return _mean([abs(value / time - 1) for value, time in pairs if value is not None])


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def roofline(problem: Problem, arch: Arch, *, data_type: str = "fp32") -> float:
    """Compute the plain roofline of the data sheet: an estimate, not a bound.

    The direct algorithm's operations at the peak rate, or operands and result
    once at the memory's bandwidth, whichever takes longer, in seconds.

    Examples
    --------
    >>> from loopsched import gemm, load_arch
    >>> problem = gemm(m=4096, n=4096, k=4096)
    >>> round(1e6 * roofline(problem, load_arch("v100")))
    8772
    """
    compute_s = problem.macs / arch.compute.peak_macs_per_s(CONVERTED.get(data_type, data_type))
    bandwidth = arch.caches[0].bandwidth_bytes_per_s
    return max(compute_s, problem_bytes(problem) / bandwidth if bandwidth else 0.0)
