"""Hold the sets of `may_be_best` against spaces that are measured again, with noise.

Run ``python benchmarks/bench_sets.py``.  Of each problem of spaces/ and benchmarks/gpu/, its times
are drawn 1,000 times around those measured, as far as two measurements of the same kernel lie
apart (files with ``again_us``: their median; others: the median of all those), and with 2 %.  A
line tells how many draws' fastest configuration is in the set, for each file, kind and data type,
beside the same of the fastest 15 % as measured, and the problem that does worst.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from loopsched.validation.choices import validate_choices

ROOT = Path(__file__).parent.parent
FILES = {
    "spaces/triton_h100.csv": "h100",
    "benchmarks/gpu/h200_triton_spaces.csv.gz": "h200",
    "spaces/triton_h200_attention.csv": "h200",
    "benchmarks/gpu/h200_triton_more.csv.gz": "h200",
    "benchmarks/gpu/h200_triton_drawn.csv.gz": "h200",
    "benchmarks/gpu/h100_triton_drawn.csv.gz": "h100",
    "benchmarks/gpu/h100_triton_blind.csv.gz": "h100",
    "benchmarks/gpu/h100_triton_blind_2.csv.gz": "h100",
    "benchmarks/gpu/h100_triton_fourth.csv.gz": "h100",
    "benchmarks/gpu/h100_triton_fifth.csv.gz": "h100",
    "benchmarks/gpu/h100_triton_sixth.csv.gz": "h100",
    "benchmarks/gpu/h100_triton_known.csv.gz": "h100",
    "benchmarks/gpu/h100_triton_seventh.csv.gz": "h100",
    "benchmarks/gpu/h100_triton_eighth.csv.gz": "h100",
    "benchmarks/gpu/h100_triton_ninth.csv.gz": "h100",
}
DRAWS, SHARE, LARGE = 1000, 0.15, 0.02
# Half of the width of a normal distribution's middle half.
QUARTILE = 0.6745

Problem = tuple[tuple[str, str, str, str], list[Mapping[str, Any]]]


def problems() -> Iterator[Problem]:
    """Give the rows of each problem that are estimated, by file, kind, data type and problem."""
    for name, arch in FILES.items():
        path = ROOT / name
        found = validate_choices(path, arch)
        rows: dict[tuple[str, str, str, str], list[Mapping[str, Any]]] = {}
        for row in found.rows:
            key = (path.name, row["kind"], row["data_type"], row["problem"])
            rows.setdefault(key, []).append(row)
        yield from rows.items()


def noise(rows: list[Mapping[str, Any]]) -> float | None:
    """Say how far one measurement lies from another, as a deviation of its logarithm."""
    ratios = [np.log(row["again_us"] / row["time_us"]) for row in rows if row.get("again_us")]
    if len(ratios) < len(rows) / 2:
        return None
    middle = statistics.median(ratios)
    apart = statistics.median(abs(one - middle) for one in ratios)
    return float(apart / QUARTILE / np.sqrt(2))


def held(times: np.ndarray, chosen: np.ndarray, apart: float) -> float:
    """Share of the draws whose fastest configuration is among those chosen."""
    draws = np.random.default_rng(0).standard_normal((DRAWS, len(times)))
    return float(chosen[(times * np.exp(apart * draws)).argmin(axis=1)].mean())


def main() -> None:
    """Print a line for each file, kind and data type."""
    given = list(problems())
    measured = [noise(rows) for _, rows in given]
    usual = statistics.median(one for one in measured if one is not None)
    groups: dict[tuple[str, ...], list[tuple[float, ...]]] = {}
    for ((*group, _), rows), apart in zip(given, measured, strict=True):
        times = np.array([row["time_us"] for row in rows])
        chosen = np.array([row["may_be_best"] for row in rows])
        known = times <= np.sort(times)[max(int(SHARE * len(times)) - 1, 0)]
        mine = (
            float(chosen[times.argmin()]),
            chosen.mean(),
            *(held(times, chosen, one) for one in (apart or usual, LARGE)),
            held(times, known, LARGE),
        )
        groups.setdefault(tuple(group), []).append(mine)
    print("file, kind, type: problems, sets that hold the fastest, largest set;")
    print("  of draws: measured noise, worst problem; 2 %; 2 %, times known")
    for group, each in groups.items():
        held_best, share, of_measured, of_large, known = np.array(each).T
        print(
            f"{' '.join(group)}: {len(each)}, {int(held_best.sum())}, {share.max():.1%};"
            f" {of_measured.mean():.2%}, {of_measured.min():.1%}; {of_large.mean():.2%};"
            f" {known.mean():.2%}"
        )


if __name__ == "__main__":
    main()
