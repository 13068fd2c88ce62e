"""Fit the numbers of loopsched/gpu/choice/pipeline.json to a measured space.

Run ``python benchmarks/fit_choice.py``: it fits the numbers of products to the fp16 products of
spaces/triton_h100.csv and of the H100's files in benchmarks/gpu, then those of convolutions to
the convolutions of these, each with factors of the compiled kernels (of products in fp8 and TF32,
too), those of attention to the
first file's 4 attentions, and writes the file (``--only SECTION``: one of them);
``--check`` only says how far the fitted numbers and their costs are from those that are shipped,
``--spread`` what the intervals and sets rest on: measured over estimated, at the 10th and 90th of
100 rows, a quarter of the problems at a time estimated by numbers fitted without them.
Starting points are round numbers or what a document says; each number is pulled a little toward
its start (a factor of e counts like 3 % on one row that matters).

Rows matter the more the nearer they are to the fastest of their problem, measured or estimated,
so that what is slow and seems fast counts in full: one that takes twice as long, by either,
counts e**-8 times, but never less than a hundredth.  Errors are of logarithms; beyond about
10 % they count linearly, so that rows measured wrongly (some are 30 times off) do not pull.
Of convolutions, what the choice costs counts too: the logarithm of measured times over the best,
in the mean of all rows, one that is estimated 1.5 % longer weighing e times less.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path

import numpy as np

from loopsched.gpu.choice import pipeline
from loopsched.gpu.choice.attention import attention_times
from loopsched.gpu.choice.families import FAMILIES, Family, conv_work, gemm_work, tile_source
from loopsched.gpu.choice.fitted import Fitted
from loopsched.gpu.choice.pipeline import times
from loopsched.gpu.choice.space import COMPILED, Space, kernel_names
from loopsched.gpu.choice.triton import PRODUCT
from loopsched.gpu.library.machine import machine_of
from loopsched.machines.arch_file import load_arch
from loopsched.validation.choices import problem_named
from loopsched.validation.csv_files import sheet_of

FILE = Path(pipeline.__file__).parent / "pipeline.json"
GPU = Path(__file__).parent / "gpu"
DRAWN = tuple(
    GPU / f"h100_triton_{name}.csv.gz"
    for name in ("drawn", "blind", "blind_2", "fourth", "fifth", "eighth")
)
# Bytes of an element.
WIDTHS = {"fp16": 2, "bf16": 2, "fp8": 1, "tf32": 4}
ARCH = load_arch("h100")
# Start, least and most of each fitted number; what is not here stays as it is in the file.
PRODUCTS = {
    "tensor": (0.9, 0.6, 1.0),
    "shared": (0.9, 0.3, 2.0),
    "ingest": (72.0, 30.0, 200.0),
    "delivered": (46.0, 20.0, 200.0),
    "row_bytes": (64.0, 1.0, 200.0),
    "latency": (1.8, 0.5, 4.0),
    "row_cycles": (1.0, 0.05, 5.0),
    "two_stages": (0.8, 0.1, 2.0),
    "direct": (0.5, 0.0, 0.9),
    "memory": (8.0, 2.0, 20.0),
    "step": (3.0, 1.5, 20.0),
    "start_cycles": (3000.0, 300.0, 9000.0),
    "sum_cycles": (0.01, 0.001, 0.2),
    "hidden": (0.2, 0.02, 0.9),
    "kept": (0.7, 0.2, 4.0),
    "launch": (1.5, 0.7, 1.859),
    "pj_mac": (0.3, 0.2, 1.0),
    "pj_byte": (15.0, 1.0, 90.0),
    "slack_us": (10.0, 0.5, 60.0),
    "power": (4.0, 2.0, 12.0),
    "issue_cycles": (150.0, 5.0, 800.0),
    "narrow": (0.1, 0.001, 1.0),
    "fill": (0.3, 0.01, 3.0),
    "chain_cycles": (30.0, 5.0, 80.0),
    "merged_first": (0.5, 0.001, 1.0),
    "merged_later": (0.3, 0.001, 1.0),
}
CONVOLUTIONS = {
    "launch": (1.5, 0.7, 2.6),
    "start_cycles": (3800.0, 100.0, 9000.0),
    "sum_cycles": (0.02, 0.0005, 0.2),
    "fill": (0.3, 0.01, 3.0),
    "hidden": (0.2, 0.02, 0.9),
    "address_cycles": (15.0, 1.0, 90.0),
    "place_cycles": (130.0, 1.0, 900.0),
    "drain": (0.5, 0.05, 4.0),
    "kept": (1.5, 0.2, 5.0),
    "step": (2.4, 1.5, 6.0),
    "more_warps": (0.3, 0.005, 3.0),
    "alone_cycles": (10.0, 0.1, 100.0),
    "paired": (0.2, 0.001, 1.0),
}
ATTENTIONS = {
    "shared": (0.9, 0.2, 2.0),
    "exp": (0.08, 0.02, 0.2),
    "mask": (0.03, 0.01, 0.1),
    "mask_alone": (1.0, 0.1, 4.0),
    "scale": (0.02, 0.001, 0.1),
    "overlap": (1.3, 1.0, 4.0),
    "copy": (0.5, 0.01, 3.0),
    "group_cycles": (20.0, 1.0, 300.0),
    "alone_cycles": (150.0, 10.0, 1900.0),
    "round": (4.0, 1.2, 12.0),
    "two_stages": (200.0, 1.0, 900.0),
    "crossed": (2.0, 1.0, 6.0),
    "lacking": (10.0, 1.0, 100.0),
    "block_cycles": (3500.0, 300.0, 9000.0),
    "dram": (0.5, 0.05, 3.0),
}
PULL, STEEP, LEAST, SOFT, SCALE = 0.03, 8.0, 0.01, 0.1, 8.0
# Weight of what a choice costs, how sharply it falls on the least estimate, and its limit.
REGRET, NEAR, MOST = 4.0, 0.015, 0.3
# Problems that speak for a kernel's estimate beside those measured; the largest error that counts.
DOUBT, FAR = 4.0, 0.2


class Problem:
    """The measured rows of a problem, and what estimating them needs."""

    def __init__(
        self, family: Family, text: str, rows: Sequence[Mapping], data_type: str = "fp16"
    ) -> None:
        self.family, self.data_type = family, data_type
        self.problem = problem_named(text, family)
        names = (*family.names, *COMPILED)
        columns = {name: np.array([row[name] for row in rows], dtype=float) for name in names}
        self.machine = machine_of(ARCH, self.data_type)
        self.space = Space(family.names, columns)
        self.taken = family.taken(self.problem, self.space, self.machine.gpu, WIDTHS[data_type])
        measured = np.array([row["time_us"] for row in rows], dtype=float)
        self.measured = np.log(measured * 1e-6)
        self.longer = measured / measured.min()

    def errors(self, here: Mapping[str, float]) -> np.ndarray:
        """Weighted errors of logarithms."""
        found = TIMES[self.family.name](self, here)
        weights = _weights(np.minimum(self.longer, found / found.min()))
        off = np.clip(np.log(found) - self.measured, -1, 1)
        return soft(SCALE * np.sqrt(weights / weights.sum()) * off)

    def regret(self, here: Mapping[str, float]) -> float:
        """Weighted root of what choosing among the least estimates costs."""
        found = TIMES[self.family.name](self, here)
        near = np.exp(-np.log(found / found.min()) / NEAR)
        cost = near @ np.minimum(np.log(self.longer), MOST) / near.sum()
        return REGRET * float(np.sqrt(cost))


def soft(errors: np.ndarray) -> np.ndarray:
    """Let large errors count linearly: sqrt(2 (sqrt(1 + e^2) - 1)) grows like e's root."""
    return SOFT * np.sqrt(2 * (np.sqrt(1 + (errors / SOFT) ** 2) - 1)) * np.sign(errors)


def _weights(longer: np.ndarray) -> np.ndarray:
    """How much rows matter that take so many times as long as the fastest."""
    return np.exp(-STEEP * (longer - 1)).clip(LEAST)


def _pipelined(work: Callable) -> Callable[[Problem, Mapping[str, float]], np.ndarray]:
    def estimate(one: Problem, here: Mapping[str, float]) -> np.ndarray:
        fit = Fitted(**{each.name: here[each.name] for each in fields(Fitted)})
        todo = work(one.problem, one.data_type, one.space, one.taken, one.machine, fit)
        return times(todo, one.taken, one.space["stages"], one.machine, fit).time_s

    return estimate


TIMES = {
    "triton_gemm": _pipelined(gemm_work),
    "triton_conv": _pipelined(conv_work),
    "triton_attention": lambda one, here: (
        attention_times(one.problem, one.data_type, one.space, one.taken, one.machine, here).time_s
    ),
}


def problems(family: Family, data_type: str = "fp16") -> list[Problem]:
    """Take the measured problems of a family; attentions were drawn for tests alone."""
    files = [] if family.kind == "attn" else DRAWN
    rows: dict[str, list[Mapping]] = {}
    measured = [row for _, row in sheet_of("triton_h100", "spaces").rows]
    for file in files:
        measured += [row for _, row in sheet_of(file).rows]
    for row in measured:
        if row.get("data_type", "fp16") != data_type:
            continue
        if row["kind"] == family.kind and row["block_m"] != "library" and row["time_us"]:
            times_us = [float(row[name]) for name in ("time_us", "again_us") if row.get(name)]
            rows.setdefault(row["problem"], []).append({**row, "time_us": min(times_us)})
    return [Problem(family, text, found, data_type) for text, found in rows.items()]


def compiled_of(source: str, data_type: str) -> list[Problem]:
    """Take the problems whose kernels are compiled from one source."""
    family = FAMILIES["triton_gemm" if source == PRODUCT else "triton_conv"]
    return [one for one in problems(family, data_type) if tile_source(one.problem) == source]


def solve(cases: Sequence[Problem], numbers: Mapping[str, float], free: Mapping) -> dict:
    """Levenberg and Marquardt on logarithms, soft on large errors."""
    names = list(free)
    start = np.log([max(free[name][0], 1e-6) for name in names])
    low, high = (np.log([max(free[name][at], 1e-6) for name in names]) for at in (1, 2))

    def residuals(at: np.ndarray) -> np.ndarray:
        here = dict(numbers) | dict(zip(names, np.exp(at), strict=True))
        errors = [one.errors(here) for one in cases]
        costs = [one.regret(here) for one in cases if one.family.name == "triton_conv"]
        return np.concatenate([*errors, costs, PULL * (at - start)])

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
                at, now, damping, moved = there, then, damping / 3, gain > 1e-4
                break
            damping *= 4
        if not moved:
            break
    return {name: float(f"{value:.3g}") for name, value in zip(names, np.exp(at), strict=True)}


def left_out(cases: Sequence[Problem], numbers: Mapping[str, float], free: Mapping) -> np.ndarray:
    """Measured over estimated times of all rows, each problem left out of a fit once."""
    ratios = []
    for part in range(4):
        others = [one for at, one in enumerate(cases) if at % 4 != part]
        here = dict(numbers) | solve(others, numbers, free)
        for one in cases[part::4]:
            ratios.append(np.exp(one.measured - np.log(TIMES[one.family.name](one, here))))
    return np.concatenate(ratios)


def factors(cases: Sequence[Problem], numbers: Mapping[str, float]) -> dict[str, float]:
    """How long each kernel takes beside what others of its problems do, measured and estimated.

    The mean over problems, and `DOUBT` more in which it takes what is estimated.
    """
    sums: dict[str, np.ndarray] = {}
    for one in cases:
        found = TIMES[one.family.name](one, numbers)
        weights = _weights(np.minimum(one.longer, found / found.min()))
        off = one.measured - np.log(found)
        off = np.clip(off - weights @ off / weights.sum(), -FAR, FAR)
        for name, weight, error in zip(kernel_names(one.space), weights, off, strict=True):
            sums[name] = sums.get(name, np.zeros(2)) + weight * np.array([1, error])
    means = {name: error / (weight + DOUBT) for name, (weight, error) in sums.items()}
    return {name: round(float(np.exp(mean)), 3) for name, mean in sorted(means.items())}


def told() -> dict[str, dict[str, dict[str, int]]]:
    """Registers and spills of each kernel, as the compiler told most often, by source and width."""
    counts: dict[str, dict[str, Counter]] = {}
    measured = [row for _, row in sheet_of("triton_h100", "spaces").rows]
    for file in (*DRAWN, *sorted(GPU.glob("h200_triton_*.csv.gz"))):
        measured += [row for _, row in sheet_of(file).rows]
    for row in measured:
        if row["kind"] not in ("gemm", "conv") or not row["registers"]:
            continue
        family = FAMILIES["triton_conv" if row["kind"] == "conv" else "triton_gemm"]
        source = tile_source(problem_named(row["problem"], family))
        kernel = "x".join(str(int(row[name])) for name in FAMILIES["triton_conv"].names)
        known = counts.setdefault(f"{source} {WIDTHS[row.get('data_type', 'fp16')]}", {})
        known.setdefault(kernel, Counter())[int(row["registers"]), int(row["spills"])] += 1
    found: dict[str, dict[str, dict[str, int]]] = {"registers": {}, "spills": {}}
    for key, known in sorted(counts.items()):
        usual = {kernel: known[kernel].most_common(1)[0][0] for kernel in sorted(known)}
        found["registers"][key] = {kernel: one for kernel, (one, _) in usual.items()}
        found["spills"][key] = {kernel: one for kernel, (_, one) in usual.items() if one}
    return found


SECTIONS = {
    "common": ("triton_gemm", PRODUCTS),
    "triton_conv": ("triton_conv", CONVOLUTIONS),
    "triton_attention": ("triton_attention", ATTENTIONS),
}


def main() -> None:
    """Fit, and write or compare."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare with the shipped numbers")
    shipped = json.loads(FILE.read_text(encoding="utf-8"))
    parser.add_argument("--only", choices=SECTIONS, help="fit the numbers of one section")
    parser.add_argument("--spread", action="store_true", help="errors of problems left out")
    given = parser.parse_args()
    is_check, sections = given.check, [given.only] if given.only else list(SECTIONS)
    stored = json.loads(json.dumps(shipped))
    stored |= told()
    for part in sections:
        family, free = SECTIONS[part]
        known = stored["common"] | stored[part]
        if given.spread:
            ratios = left_out(problems(FAMILIES[family]), known, free)
            print(family, *(f"{one:.3f}" for one in np.quantile(ratios, (0.1, 0.9))))
            continue
        stored[part] |= solve(problems(FAMILIES[family]), known, free)
        for key in stored["compiled"]:
            source, data_type = key.split()
            if part == ("common" if source == PRODUCT else "triton_conv"):
                cases = compiled_of(source, data_type)
                stored["compiled"][key] = factors(cases, known | stored[part])
        for name, value in stored[part].items():
            if value != (before := shipped[part].get(name)):
                print(f"{part} {name}: {before} -> {value}")
    if not (is_check or given.spread):
        FILE.write_text(json.dumps(stored, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
