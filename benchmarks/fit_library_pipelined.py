"""Fit the few numbers of today's library products, and say how far they carry.

    python benchmarks/fit_library_pipelined.py               write calibration_pipelined.json
    python benchmarks/fit_library_pipelined.py --check       fit, and compare with that file
    python benchmarks/fit_library_pipelined.py --cross       also fit on other halves
    python benchmarks/fit_library_pipelined.py --rows FILE   errors on more rows, nothing fitted

Rows with the same n and k, in either order, are a family; half of the families are fitted, by
a hash.  Numbers come from the H100's rows, but for one: what single warps need besides a
step's arithmetic, which no H100 shows, comes from the A100's.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import math
import statistics
import sys
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from loopsched import gemm, load_arch
from loopsched.base.resources import resource_dir
from loopsched.gpu.bound import repeated_bound
from loopsched.gpu.library.gemm import product_of
from loopsched.gpu.library.machine import Machine, machine_of
from loopsched.gpu.library.pipelined import Pipelined, pipelined_time
from loopsched.gpu.library.wave import Product

FILE = Path(__file__).parents[1] / "loopsched" / "gpu" / "library" / "calibration_pipelined.json"
SOURCE = "measurements/library_gemm_measured.csv"
# Where every search starts: round numbers of the right order.
START = Pipelined(
    dram=0.9,
    by_warp=0.0,
    begin_cycles=1000.0,
    sum_cycles=0.05,
    pj_mac=1.5,
    launch=0.8,
    scale_launches=3.0,
    scale_bytes=5.0,
)
ON_H100 = tuple(name for name in asdict(START) if name != "by_warp")
LIMITS = {"dram": (0.7, 1.0)}


@dataclass(frozen=True)
class Row:
    """A measured product, ready to be estimated."""

    gpu: str
    data_type: str
    m: int
    family: str
    product: Product
    machine: Machine
    time_s: float
    bound_s: float

    def error(self, fit: Pipelined) -> float:
        scales = self.data_type == "fp8"
        found = pipelined_time(self.product, self.machine, fit, scales=scales).time_s
        return max(found, self.bound_s) / self.time_s - 1


@cache
def machine(gpu: str, data_type: str) -> Machine:
    return machine_of(load_arch(gpu.lower()), data_type)


def rows_of(path: Path) -> list[Row]:
    with path.open(encoding="utf-8", newline="") as file:
        return [row_of(line) for line in csv.DictReader(file)]


def row_of(line: Mapping[str, str]) -> Row:
    m, n, k = (int(line[name]) for name in "mnk")
    gpu, data_type = line["gpu"], line["data_type"]
    product = product_of(gemm(m=m, n=n, k=k), data_type)
    touched = product.a_bytes + product.b_bytes + product.c_bytes
    bound_s, _ = repeated_bound(product.macs, touched, load_arch(gpu.lower()), data_type)
    time_s = float(line["time_us"]) * 1e-6
    family = f"{min(n, k)}x{max(n, k)}"
    return Row(gpu, data_type, m, family, product, machine(gpu, data_type), time_s, bound_s)


def is_fitted(row: Row, salt: str = "") -> bool:
    """Whether a row's family is of the half that is fitted."""
    return zlib.crc32((salt + row.family).encode()) % 2 == 1


def of(rows: Sequence[Row], gpu: str, data_type: str = "") -> list[Row]:
    return [row for row in rows if row.gpu == gpu and data_type in ("", row.data_type)]


def mape(rows: Sequence[Row], fit: Pipelined) -> float:
    return round(100 * statistics.fmean(abs(row.error(fit)) for row in rows), 2)


def search(rows: Sequence[Row], start: Pipelined, names: Sequence[str]) -> Pipelined:
    """Change one number at a time, in shrinking steps, for the least mean error."""

    def loss(fit: Pipelined) -> float:
        return statistics.fmean(abs(math.log1p(row.error(fit))) for row in rows)

    best, least, step = start, loss(start), 0.3
    while step > 0.015:
        has_moved = False
        for name in names:
            for factor in (1 + step, 1 / (1 + step)):
                low, high = LIMITS.get(name, (0.0, math.inf))
                value = min(high, max(low, getattr(best, name) * factor))
                tried = replace(best, **{name: value})
                if (found := loss(tried)) < least * (1 - 1e-4):
                    best, least, has_moved = tried, found, True
                    break
        if not has_moved:
            step /= 2
    return replace(best, **{name: float(f"{getattr(best, name):.3g}") for name in names})


def fit_of(rows: Sequence[Row], chosen: Callable[[Row], bool]) -> Pipelined:
    """Fit to the chosen rows: all numbers to the H100, then one to the A100."""
    mine = [row for row in rows if chosen(row)]
    first = search(of(mine, "H100"), START, ON_H100)
    return search(of(mine, "A100"), replace(first, by_warp=300.0), ("by_warp",))


def spread(rows: Sequence[Row], fit: Pipelined) -> dict[str, Any]:
    """Where eight of ten measurements lie, over the estimate."""
    ratios = sorted(1 / (1 + row.error(fit)) for row in rows)
    tenth = len(ratios) / 10
    low, high = ratios[math.floor(tenth)], ratios[math.ceil(len(ratios) - tenth) - 1]
    return {"low": round(low, 3), "high": round(high, 3)}


def content_of(rows: Sequence[Row], fit: Pipelined) -> dict[str, object]:
    """Put together what the file says."""
    fitted = [row for row in rows if is_fitted(row)]
    held = [row for row in rows if not is_fitted(row)]
    kinds = [("H100", "bf16"), ("H100", "fp8"), ("A100", "bf16")]
    unfitted = replace(fit, by_warp=0.0)
    a100 = of(rows, "A100")
    spreads = {
        f"{gpu.lower()} {kind}": spread(of(held, gpu, kind), fit)
        | {"basis": f"{gpu} {kind} GEMMs held out of the fit"}
        for gpu, kind in kinds
    }
    every = [spread(a100, unfitted), *spreads.values()]
    other = {
        "low": min(one["low"] for one in every),
        "high": max(one["high"] for one in every),
        "basis": "not fitted to this GPU and data type; errors of all rows, those of A100 with "
        "H100 parameters",
    }
    return {
        "about": "Written by benchmarks/fit_library_pipelined.py; docs/library_kernels.md "
        "explains it.",
        "parameters": asdict(fit),
        "fitted_on": f"{SOURCE}: half of the families of n and k, gpu H100; by_warp: gpu A100",
        "errors": {
            f"{gpu.lower()} {kind}": {
                "fitted_rows": len(of(fitted, gpu, kind)),
                "held_out_rows": len(of(held, gpu, kind)),
                "fitted_mape_percent": mape(of(fitted, gpu, kind), fit),
                "held_out_mape_percent": mape(of(held, gpu, kind), fit),
            }
            for gpu, kind in kinds
        },
        "a100_without_its_number": {"rows": len(a100), "mape_percent": mape(a100, unfitted)},
        "spreads": spreads | {"other": other},
    }


def print_errors(rows: Sequence[Row], fit: Pipelined) -> None:
    """Print errors by GPU, data type, half and m."""
    edges = (0, 20, 64, 256, 1024, 4096, 2**31)
    for gpu, kind in (("H100", "bf16"), ("H100", "fp8"), ("A100", "bf16")):
        for title, half in (("fitted", True), ("held out", False)):
            mine = [row for row in of(rows, gpu, kind) if is_fitted(row) is half]
            buckets = [
                (f"m <= {high}" if high < 2**31 else f"m > {low}", inside)
                for low, high in itertools.pairwise(edges)
                if (inside := [row for row in mine if low < row.m <= high])
            ]
            by_m = ", ".join(f"{name}: {mape(inside, fit)}" for name, inside in buckets)
            print(f"{gpu} {kind} {title}: {len(mine)} rows, {mape(mine, fit)} %; {by_m}")
    below = sum(row.time_s < row.bound_s for row in rows)
    print(f"{below} of {len(rows)} rows below their bound; A100 without its number: ", end="")
    print(mape(of(rows, "A100"), replace(fit, by_warp=0.0)), "%")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare with the file, do not write")
    parser.add_argument("--cross", action="store_true", help="fit on other halves, too")
    parser.add_argument("--rows", type=Path, help="errors of the shipped numbers on this file")
    options = parser.parse_args()
    if options.rows:
        stored = json.loads(FILE.read_text(encoding="utf-8"))
        print_errors(rows_of(options.rows), Pipelined(**stored["parameters"]))
        return 0
    rows = rows_of(resource_dir("measurements") / Path(SOURCE).name)
    fit = fit_of(rows, is_fitted)
    print_errors(rows, fit)
    if options.cross:
        for salt in "abc":
            other = fit_of(rows, lambda row, salt=salt: is_fitted(row, salt))
            held = [row for row in rows if not is_fitted(row, salt)]
            kinds = [("H100", "bf16"), ("H100", "fp8"), ("A100", "bf16")]
            print(f"half {salt}:", [mape(of(held, *kind), other) for kind in kinds])
    text = json.dumps(content_of(rows, fit), indent=1) + "\n"
    if options.check:
        same = text == FILE.read_text(encoding="utf-8")
        print("the file is what the fit gives" if same else "the file differs from the fit")
        return 0 if same else 1
    FILE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
