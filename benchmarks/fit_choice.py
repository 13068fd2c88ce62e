"""Fit the numbers of loopsched/gpu/choice/pipeline.json to a measured space.

Run ``python benchmarks/fit_choice.py``: it fits the numbers of products to the 12 fp16 products of
spaces/triton_h100.csv, then those of convolutions to its 4 convolutions, and writes the file;
``--check`` only says how far the fitted numbers and their costs are from those that are shipped.
Starting points are round numbers or what a document says; each number is pulled a little toward
its start (a factor of e counts like 3 % on one row that matters).

Rows matter the more the nearer they are to the fastest of their problem: one that takes twice as
long counts e**-8 times, but never less than a hundredth.  Errors are of logarithms; beyond about
10 % they count linearly, so that rows measured wrongly (some are 30 times off) do not pull.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path

import numpy as np

from loopsched.gpu.choice import pipeline
from loopsched.gpu.choice.families import FAMILIES, Family
from loopsched.gpu.choice.pipeline import Fitted, times
from loopsched.gpu.choice.space import COMPILED, Space
from loopsched.gpu.choice.triton import resources
from loopsched.gpu.library.machine import machine_of
from loopsched.machines.arch_file import load_arch
from loopsched.problems.builders import gemm
from loopsched.problems.convolution import conv2d
from loopsched.validation.csv_files import sheet_of

FILE = Path(pipeline.__file__).parent / "pipeline.json"
ARCH = load_arch("h100")
# Start, least and most of each fitted number; what is not here stays as it is in the file.
PRODUCTS = {
    "tensor": (0.9, 0.6, 1.0),
    "shared": (0.9, 0.3, 2.0),
    "first": (72.0, 30.0, 200.0),
    "later": (46.0, 20.0, 200.0),
    "row_bytes": (64.0, 1.0, 200.0),
    "latency": (1.8, 0.5, 4.0),
    "row_cycles": (1.0, 0.05, 5.0),
    "two_stages": (0.8, 0.1, 2.0),
    "direct": (0.5, 0.0, 0.9),
    "dram_wait": (0.5, 0.05, 2.0),
    "memory": (8.0, 2.0, 20.0),
    "step": (5.0, 2.0, 20.0),
    "start_cycles": (3000.0, 300.0, 9000.0),
    "sum_cycles": (0.01, 0.001, 0.2),
    "hidden": (0.2, 0.02, 0.9),
    "kept": (1.4, 0.2, 4.0),
    "launch": (1.5, 0.7, 1.859),
    "pj_mac": (0.5, 0.3, 1.0),
    "pj_byte": (15.0, 1.0, 90.0),
    "slack_us": (20.0, 10.0, 60.0),
    "power": (4.0, 2.0, 12.0),
}
CONVOLUTIONS = {
    "launch": (1.5, 0.7, 2.6),
    "start_cycles": (3800.0, 300.0, 9000.0),
    "sum_cycles": (0.02, 0.001, 0.2),
    "address_cycles": (15.0, 1.0, 90.0),
    "place_cycles": (130.0, 10.0, 900.0),
    "restart": (1.0, 0.05, 4.0),
    "drain": (0.5, 0.05, 4.0),
    "step": (2.4, 1.5, 6.0),
    "more_warps": (0.5, 0.05, 3.0),
}
PULL, STEEP, LEAST, SOFT, SCALE = 0.03, 8.0, 0.01, 0.1, 8.0


class Problem:
    """The measured rows of a problem, and what estimating them needs."""

    def __init__(self, family: Family, text: str, rows: Sequence[Mapping]) -> None:
        sizes = [int(part) for part in text.split("x")]
        named = zip(("n", "h", "w", "c", "k", "r", "s", "stride", "padding"), sizes)  # noqa: B905
        self.family, self.data_type = family, "fp16"
        self.problem = gemm(**dict(zip("mnk", sizes))) if len(sizes) == 3 else conv2d(**dict(named))  # noqa: B905
        names = (*family.names, *COMPILED)
        columns = {name: np.array([row[name] for row in rows], dtype=float) for name in names}
        self.machine = machine_of(ARCH, self.data_type)
        self.space = Space(family.names, columns)
        self.taken = resources(self.space, self.machine.gpu, 2)
        measured = np.array([row["time_us"] for row in rows], dtype=float)
        self.measured = np.log(measured * 1e-6)
        weights = np.exp(-STEEP * (measured / measured.min() - 1)).clip(LEAST)
        self.weights = np.sqrt(weights / weights.sum())

    def errors(self, fit: Fitted) -> np.ndarray:
        """Weighted errors of logarithms."""
        work = self.family.work(
            self.problem, self.data_type, self.space, self.taken, self.machine, fit
        )
        found = times(work, self.taken, self.space["stages"], self.machine, fit).time_s
        return SCALE * self.weights * np.clip(np.log(found) - self.measured, -1, 1)


def problems(family: Family) -> list[Problem]:
    """Take the measured problems of a family."""
    rows: dict[str, list[Mapping]] = {}
    for _, row in sheet_of("triton_h100", "spaces").rows:
        if row["kind"] == family.kind and row["block_m"] != "library" and row["time_us"]:
            rows.setdefault(row["problem"], []).append(row)
    return [Problem(family, text, found) for text, found in rows.items()]


def solve(cases: Sequence[Problem], numbers: Mapping[str, float], free: Mapping) -> dict:
    """Levenberg and Marquardt on logarithms, soft on large errors."""
    names = list(free)
    start = np.log([max(free[name][0], 1e-6) for name in names])
    low, high = (np.log([max(free[name][at], 1e-6) for name in names]) for at in (1, 2))

    def residuals(at: np.ndarray) -> np.ndarray:
        here = dict(numbers) | dict(zip(names, np.exp(at), strict=True))
        fit = Fitted(**{one.name: here[one.name] for one in fields(Fitted) if one.name in here})
        errors = np.concatenate([one.errors(fit) for one in cases])
        # sqrt(2 (sqrt(1 + e^2) - 1)) is e where it is small, and grows like its root.
        soft = SOFT * np.sqrt(2 * (np.sqrt(1 + (errors / SOFT) ** 2) - 1)) * np.sign(errors)
        return np.concatenate([soft, PULL * (at - start)])

    at, damping = np.clip(start, low, high), 1e-2
    now = residuals(at)
    for _ in range(80):
        slope = np.stack(
            [(residuals(at + 1e-4 * unit) - now) / 1e-4 for unit in np.eye(len(names))], axis=1
        )
        square = slope.T @ slope
        moved = False
        for _ in range(12):
            step = np.linalg.solve(
                square + damping * np.diag(np.diag(square) + 1e-9), -slope.T @ now
            )
            there = np.clip(at + step, low, high)
            then = residuals(there)
            if then @ then < now @ now:
                gain = 1 - (then @ then) / (now @ now)
                at, now, damping, moved = there, then, damping / 3, gain > 1e-5
                break
            damping *= 4
        if not moved:
            break
    return {name: float(f"{value:.3g}") for name, value in zip(names, np.exp(at), strict=True)}


def main() -> None:
    """Fit, and write or compare."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare with the shipped numbers")
    shipped = json.loads(FILE.read_text(encoding="utf-8"))
    is_check = parser.parse_args().check
    stored = json.loads(json.dumps(shipped))
    common = stored["common"]
    common |= solve(problems(FAMILIES["triton_gemm"]), common, PRODUCTS)
    own = stored["triton_conv"]
    own |= solve(problems(FAMILIES["triton_conv"]), common | own, CONVOLUTIONS)
    for part in ("common", "triton_conv"):
        for name, value in stored[part].items():
            if value != shipped[part][name]:
                print(f"{part} {name}: {shipped[part][name]} -> {value}")
    if not is_check:
        FILE.write_text(json.dumps(stored, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
