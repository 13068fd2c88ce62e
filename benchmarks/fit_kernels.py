"""Fit the few numbers of the time model of mapped kernels, and say how far it is off.

Reads times and counters of 54 kernels on an H200 (benchmarks/gpu/, where their CUDA source
is too) and writes loopsched/gpu/kernel_calibration.json:

    python benchmarks/fit_kernels.py            prints every row and writes the file
    python benchmarks/fit_kernels.py --check    fits, and compares with the file that is there
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import re
import statistics
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

import numpy as np

from loopsched import load_arch
from loopsched.gpu import estimate, instructions
from loopsched.gpu import kernel_calibration as shipped
from loopsched.gpu.counting import Profile, profile
from loopsched.gpu.kernel import Kernel
from loopsched.gpu.result import Spread
from loopsched.machines.arch import Arch
from loopsched.published import reproduce
from loopsched.published.presets import (
    direct,
    filter_coarse,
    filter_colmap,
    filter_rowmap,
    filter_shared,
    layer_base,
    layer_batched,
    layer_shared,
)
from loopsched.validation import validate_times

DATA = Path(__file__).parent / "gpu" / "h200_kernel_times.csv"
TARGET = Path(shipped.__file__).parent / "kernel_calibration.json"
# While the times are fitted.
EXACT = Spread(1.0, 1.0, "")
# The clock at which the H200 ran all of them; counters do not depend on it.
MEASURED_CLOCK_HZ = 1.98e9
# Direct kernels whose image is smaller than the block: most of it idles, and what remains
# of its loops depends on the compiler.
SMALL = ("S=14", "S=28")
# Tables of the reports whose times the spread is of; the others repeat these, or their kernels.
SPREAD_TABLES = {"report_000": "", "report_001": "times", "report_002": "times_1000"}
COUNTERS = "h200_kernels"
COSTS = [entry.name for entry in fields(shipped.InstructionCosts)]


@dataclass(frozen=True, slots=True)
class Measured:
    """A row of the file, with the kernel that it is of and what is counted of it."""

    case: str
    row: dict[str, str]
    kernel: Kernel
    found: Profile

    def number(self, column: str) -> float:
        return float(self.row[column])

    @property
    def multiply_adds(self) -> int:
        return self.found.fma_warp_instructions


def kernel_of(case: str) -> Kernel:
    """Build the kernel of a case; docs/kernels.md and the CUDA source describe them."""
    name, *rest = case.split()
    sizes = {key: value for key, _, value in (part.partition("=") for part in rest)}
    number = {key: int(value) for key, value in sizes.items() if value.isdigit()}
    if name == "direct_unrolled":
        return direct(number["S"], number["K"], number["Ni"], number["Nn"], number["b"])
    if name.startswith("filt_"):
        x, y = (int(side) for side in sizes["b"].split("x"))
        builds = {
            "filt_rowmap": filter_rowmap,
            "filt_colmap": filter_colmap,
            "filt_shared": filter_shared,
            "filt_slide2": filter_coarse,
        }
        return builds[name](number["Z"], number["S"], number["R"], x, y)
    layer, batch = number["layer"], number["N"]
    if name == "layer_base":
        return layer_base(layer, batch)
    if name == "layer_shared":  # the measured kernel computes outside of the output too
        return replace(layer_shared(layer, batch), guard="load")
    tile = int(re.sub(r"\D", "", name))
    return replace(layer_batched(layer, batch, tile), is_unrolled=True)


def measured(arch: Arch) -> Iterator[Measured]:
    """Read the file."""
    with DATA.open(newline="", encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            if any(word in row["case"].split() for word in SMALL):
                continue
            kernel = replace(kernel_of(row["case"]), registers=int(row["registers"]))
            yield Measured(row["case"], row, kernel, profile(kernel, arch))


def fit_costs(rows: list[Measured]) -> tuple[dict[str, float], list[float]]:
    """Fit costs to instructions, each row by its relative error; the errors too."""
    from scipy.optimize import nnls  # not needed to read and count, as tests do

    features, targets = [], []
    for one in rows:
        total = one.number("warp_insts")
        known = one.multiply_adds + sum(access.requests for access in one.found.accesses)
        found = instructions.executions(one.kernel, one.found.accesses, one.multiply_adds, 32)
        features.append([getattr(found, name) / total for name in COSTS])
        targets.append((total - known) / total)
    weights, _ = nnls(np.array(features), np.array(targets))
    costs = {name: round(float(value), 2) for name, value in zip(COSTS, weights, strict=True)}
    errors = (np.array(features) @ weights - np.array(targets)).tolist()
    return costs, errors


@contextmanager
def calibrated(tried: shipped.KernelCalibration) -> Iterator[None]:
    """Let the model take other numbers than the shipped ones."""
    before = estimate.kernel_calibration, instructions.kernel_calibration
    estimate.kernel_calibration = instructions.kernel_calibration = lambda: tried
    try:
        yield
    finally:
        estimate.kernel_calibration, instructions.kernel_calibration = before


def time_errors(
    rows: list[Measured], arch: Arch, tried: shipped.KernelCalibration | None = None
) -> list[float]:
    """Logarithms of estimate over measured time, with the shipped numbers or others."""
    with calibrated(tried or shipped.kernel_calibration()):
        return [
            math.log(
                estimate.estimate_kernel(
                    one.kernel, arch, caches="warm", clock_hz=MEASURED_CLOCK_HZ, found=one.found
                ).time_s
                / (1e-6 * one.number("time_us"))
            )
            for one in rows
        ]


def fit_shares(
    rows: list[Measured], arch: Arch, costs: shipped.InstructionCosts
) -> tuple[shipped.TimeShares, list[float]]:
    """Take the shares with the least mean error; and the errors."""
    found: list[tuple[float, shipped.TimeShares, list[float]]] = []
    for issue in (0.8, 0.82, 0.84, 0.86, 0.88, 0.9, 0.92):
        for launch in (0.5, 0.6, 0.7, 0.8):
            shares = shipped.TimeShares(issue, launch)
            errors = time_errors(rows, arch, shipped.KernelCalibration(costs, shares, EXACT))
            found.append((statistics.mean(map(abs, errors)), shares, errors))
    _, shares, errors = min(found, key=lambda one: one[0])
    return shares, errors


def other_ratios(tried: shipped.KernelCalibration) -> list[float]:
    """Measured times that no number was fitted to over their estimates, in order."""
    with calibrated(tried):
        lines = [
            line
            for name, tables in SPREAD_TABLES.items()
            for table in reproduce(name).tables
            if tables in ("", table.name)
            for line in table.lines
            if line.unit in ("ms", "s") and line.ours_is == "estimate"
        ]
        rows = validate_times(COUNTERS, arch="h200").rows
    found = [float(line.measured) / float(line.ours) for line in lines]
    return sorted(found + [float(row["time_us"]) / float(row["estimate_us"]) for row in rows])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare with the file, do not write")
    is_check = parser.parse_args().check
    arch = load_arch("h200")
    rows = list(measured(arch))
    costs, cost_errors = fit_costs(rows)
    shares, errors = fit_shares(rows, arch, shipped.InstructionCosts(**costs))
    tried = shipped.KernelCalibration(shipped.InstructionCosts(**costs), shares, EXACT)
    ratios = other_ratios(tried)
    tenth = len(ratios) / 10
    spread = Spread(
        round(ratios[math.floor(tenth)], 3),
        round(ratios[math.ceil(len(ratios) - tenth) - 1], 3),
        f"fitted to {len(rows)} kernels on an H200 (mean error "
        f"{100 * statistics.mean(abs(math.expm1(one)) for one in errors):.1f} %); "
        f"interval from {len(ratios)} other measurements: reports 000 to 002, "
        f"counters/{COUNTERS}.csv",
    )
    fitted = {
        "about": "Written by benchmarks/fit_kernels.py; docs/kernels.md explains it.",
        "instructions": costs,
        "time": asdict(shares),
        "spreads": {"time": asdict(spread)},
    }
    for one, cost, time in zip(rows, cost_errors, errors, strict=True):
        off = 100 * math.expm1(time)
        print(f"{one.case:44s} instructions {100 * cost:+6.1f} %  time {off:+6.1f} %")
    print(json.dumps(fitted, indent=1))
    print(f"instructions: mean error {100 * statistics.mean(map(abs, cost_errors)):.1f} %")
    if is_check:
        same = fitted == json.loads(TARGET.read_text(encoding="utf-8"))
        print("the file is what the fit gives" if same else "the file differs from the fit")
        return 0 if same else 1
    TARGET.write_text(json.dumps(fitted, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
