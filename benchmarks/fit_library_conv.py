"""Fit the calibration of library convolutions to measured ones, and say how far it carries.

    python benchmarks/fit_library_conv.py            write calibration_conv.json
    python benchmarks/fit_library_conv.py --cross    also fit on other halves: is the split luck?
    python benchmarks/fit_library_conv.py --check    fit, and compare with the file that is there

Only V100 rows are fitted, and of those only the rows of half of the layers.  A layer is a
shape without its batch; all its batches, passes and data types are on one side.  The other
half, and every row of other GPUs, is only looked at.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import random
import statistics
import sys
import time
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path

from loopsched import Arch, ProblemError, conv2d, load_arch
from loopsched.base.resources import resource_dir
from loopsched.gpu.bound import repeated_bound
from loopsched.gpu.library.calibration import ConvCalibration
from loopsched.gpu.library.conv import ALGORITHMS, choices, least_macs, run_of, target_of
from loopsched.gpu.library.conv_gemm import Target
from loopsched.gpu.library.conv_layer import Layer, layer_of
from loopsched.problems.footprint import problem_bytes
from loopsched.problems.problem import Problem
from loopsched.published.model_003 import report003_time
from loopsched.validation.time_summary import roofline

FILE = Path(__file__).parents[1] / "loopsched" / "gpu" / "library" / "calibration_conv.json"
SOURCE = "measurements/deepbench_conv_measured.csv"
ARCHS = {"V100": "v100", "TitanXp": "titan_xp", "M40": "m40"}
DATA_TYPES = {"fp32": "fp32", "fp16_mixed": "fp16"}
PASSES = {"fwd": "forward", "bwd_inputs": "backward_data", "bwd_params": "backward_weights"}

# Where every search starts: round numbers of the right order.  Those without limits stay:
# DRAM achieves what the architecture file says; the launch is what the least of all measured
# times, 7 us, leaves room for beside a kernel; gather is counted: row and column (2), their
# bounds (2), a 64-bit address (2), a load and a store of its own.
START = ConvCalibration(
    pipe=1.0,
    fused=0.9,
    weights=0.7,
    dram=1.0,
    l2=0.5,
    latency=0.5,
    barrier=200.0,
    fill=8.0,
    launch=1.5,
    kernel=2.0,
    split=1.5,
    gather=8.0,
)
LIMITS = {
    "pipe": (0.5, 1.16),
    "fused": (0.4, 1.2),
    "weights": (0.3, 1.0),
    "l2": (0.2, 1.0),
    "latency": (0.1, 3.0),
    "barrier": (5.0, 500.0),
    "fill": (0.5, 16.0),
    "kernel": (0.3, 4.0),
}
FORWARD = ("pipe", "fused", "l2", "latency", "barrier", "fill", "kernel")
GRADIENT = ("weights",)
TENSOR = ("pipe", "l2", "fill", "kernel")
SIDE = 1
# What a parameter that a half of the rows says little of is worth: a factor of e away from
# its start must gain that much mean error.
PULL = 0.01
# Labels that need more than the bandwidth that kernels achieve; see docs/library_kernels.md.
DOUBTFUL = {
    ("V100", "fp32", 350, 80, 64, 16, 64): "WINOGRAD_NONFUSED",
    ("V100", "fp32", 56, 56, 64, 16, 64): "WINOGRAD_NONFUSED",
}

LayerKey = tuple[int, ...]


@dataclass(frozen=True)
class Row:
    """A measured convolution, ready to be estimated."""

    gpu: str
    precision: str
    pass_: str
    key: LayerKey
    layer: Layer
    problem: Problem
    algorithm: str | None
    is_doubtful: bool
    time_s: float


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cross", action="store_true", help="fit on other halves, too")
    parser.add_argument("--check", action="store_true", help="compare with the file, do not write")
    options = parser.parse_args()
    begin = time.perf_counter()
    rows = read_rows()
    lanes, tensor = fitted_on(rows, is_ours)
    content = content_of(rows, lanes, tensor)
    print_others(rows, lanes, tensor)
    if options.cross:
        cross(rows)
    print(f"{time.perf_counter() - begin:.0f} s")
    text = json.dumps(content, indent=1) + "\n"
    if options.check:
        same = json.loads(text) == json.loads(FILE.read_text(encoding="utf-8"))
        print("the file is what the fit gives" if same else "the file differs from the fit")
        return 0 if same else 1
    FILE.write_text(text, encoding="utf-8")
    return 0


@cache
def arch_of(gpu: str) -> Arch:
    return load_arch(ARCHS[gpu])


def read_rows() -> list[Row]:
    """Read all of DeepBench's convolutions; no row is left out."""
    path = resource_dir("measurements") / "deepbench_conv_measured.csv"
    with path.open(encoding="utf-8", newline="") as file:
        return [row_of(line) for line in csv.DictReader(file)]


def row_of(line: Mapping[str, str]) -> Row:
    w, h, c, n, k = (int(line[name]) for name in "whcnk")
    s, r = int(line["filter_w"]), int(line["filter_h"])
    pad_w, pad_h = int(line["pad_w"]), int(line["pad_h"])
    stride_w, stride_h = int(line["stride_w"]), int(line["stride_h"])
    data_type = DATA_TYPES[line["precision"]]
    problem = conv2d(
        n=n,
        c=c,
        k=k,
        h=h,
        w=w,
        r=r,
        s=s,
        stride=(stride_h, stride_w),
        padding=(pad_h, pad_w),
        pass_=PASSES[line["pass"]],
        element_bytes=data_type,
    )
    algorithm = line["algo"] or None
    mark = (line["gpu"], line["precision"], w, h, c, n, k)
    return Row(
        gpu=line["gpu"],
        precision=line["precision"],
        pass_=line["pass"],
        key=(w, h, c, k, s, r, pad_w, pad_h, stride_w, stride_h),
        layer=layer_of(problem),
        problem=problem,
        algorithm=algorithm,
        is_doubtful=algorithm is not None and DOUBTFUL.get(mark) == algorithm,
        time_s=float(line["time_us"]) * 1e-6,
    )


def is_ours(key: LayerKey) -> bool:
    """Tell whether a layer is one to fit."""
    return zlib.crc32(repr(key).encode()) % 2 == SIDE


def chosen(
    rows: Iterable[Row],
    gpu: str,
    precision: str,
    pass_: str,
    keys: Callable[[LayerKey], bool] | None = None,
) -> list[Row]:
    return [
        row
        for row in rows
        if (row.gpu, row.precision, row.pass_) == (gpu, precision, pass_)
        and (keys is None or keys(row.key))
    ]


def estimate_s(row: Row, fitted: ConvCalibration, is_known: bool = True) -> float:
    """Estimate as `conv_estimate` does, with other numbers."""
    target = target_for(row, fitted)
    algorithm = row.algorithm if is_known else None
    names = choices(row.layer, target) if algorithm is None else (algorithm,)
    found = [run.time_s for name in names if (run := run_of(row.layer, target, name))]
    return max(bound_s(row, algorithm), min(found))


def target_for(row: Row, fitted: ConvCalibration) -> Target:
    return target_of(row.layer, arch_of(row.gpu), DATA_TYPES[row.precision], fitted=fitted)


def bound_s(row: Row, algorithm: str | None) -> float:
    arch, data_type = arch_of(row.gpu), DATA_TYPES[row.precision]
    macs = least_macs(row.layer, algorithm)
    return repeated_bound(macs, problem_bytes(row.problem), arch, data_type)[0]


def errors(
    rows: Iterable[Row], fitted: Mapping[str, ConvCalibration], is_known: bool = True
) -> list[float]:
    """Relative errors of the estimates."""
    return [estimate_s(row, numbers(row, fitted), is_known) / row.time_s - 1 for row in rows]


def numbers(row: Row, fitted: Mapping[str, ConvCalibration]) -> ConvCalibration:
    on_lanes = target_for(row, START).machine.on_lanes
    return fitted["fp32" if on_lanes else "fp16"]


def mape(found: Iterable[float]) -> float:
    return round(100 * statistics.fmean(map(abs, found)), 2)


def fitted_on(
    rows: Sequence[Row], keys: Callable[[LayerKey], bool]
) -> tuple[ConvCalibration, ConvCalibration]:
    """Fit forward rows, then what is left for gradients and for tensor cores."""
    lanes = fit(chosen(rows, "V100", "fp32", "fwd", keys), START, FORWARD)
    lanes = fit(chosen(rows, "V100", "fp32", "bwd_params", keys), lanes, GRADIENT)
    half = chosen(rows, "V100", "fp16_mixed", "fwd", keys)
    half = [row for row in half if not target_for(row, START).machine.on_lanes]
    # Both operands of tensor-core kernels are transposed on the way to shared memory.
    return lanes, fit(half, replace(lanes, weights=1.0), TENSOR)


def fit(rows: Sequence[Row], start: ConvCalibration, names: Sequence[str]) -> ConvCalibration:
    """Search along one parameter at a time, in shrinking steps, for the least mean error."""

    def loss(fitted: ConvCalibration) -> float:
        found = (abs(math.log(estimate_s(row, fitted) / row.time_s)) for row in rows)
        far = sum(math.log(getattr(fitted, name) / getattr(start, name)) ** 2 for name in names)
        return statistics.fmean(found) + PULL * far

    best, least, step = start, loss(start), 0.3
    while step > 0.01:
        has_moved = False
        for name in names:
            for factor in (1 + step, 1 / (1 + step)):
                low, high = LIMITS[name]
                value = min(high, max(low, getattr(best, name) * factor))
                tried = replace(best, **{name: value})
                found = loss(tried)
                if found < least * (1 - 1e-4):
                    best, least, has_moved = tried, found, True
                    break
        if not has_moved:
            step /= 2
    return replace(best, **{name: float(f"{getattr(best, name):.4g}") for name in names})


def content_of(
    rows: Sequence[Row], lanes: ConvCalibration, tensor: ConvCalibration
) -> dict[str, object]:
    """Put together what the file says."""
    fitted = {"fp32": lanes, "fp16": tensor}
    data_types = {}
    for precision, names in (("fp32", (*FORWARD, *GRADIENT)), ("fp16_mixed", TENSOR)):
        data_type = DATA_TYPES[precision]
        own = chosen(rows, "V100", precision, "fwd", is_ours)
        other = chosen(rows, "V100", precision, "fwd", is_held_out)
        data_types[data_type] = {
            "parameters": asdict(fitted[data_type]),
            "fitted": list(names),
            "fitted_on": f"{SOURCE}, gpu V100, precision {precision}, pass fwd"
            + ("; weights: pass bwd_params" if precision == "fp32" else ""),
            "fitted_layers": shown(own),
            "held_out_layers": shown(other),
            "fitted_rows": len(own),
            "held_out_rows": len(other),
            "fitted_mape_percent": mape(errors(own, fitted)),
            "held_out_mape_percent": mape(errors(other, fitted)),
            "held_out_mape_percent_any_algorithm": mape(errors(other, fitted, False)),
        }
    return {
        "about": "Written by benchmarks/fit_library_conv.py; docs/library_kernels.md explains it.",
        "data_types": data_types,
        "spreads": spreads(rows, fitted),
    }


def is_any(key: LayerKey) -> bool:
    return True


def is_held_out(key: LayerKey) -> bool:
    return not is_ours(key)


def shown(rows: Iterable[Row]) -> list[str]:
    words = "w{} h{} c{} k{} {}x{} pad {}x{} stride {}x{}"
    return [words.format(*key) for key in sorted({row.key for row in rows})]


def spreads(
    rows: Sequence[Row], fitted: Mapping[str, ConvCalibration]
) -> dict[str, dict[str, float | str]]:
    """Where measurements lie around estimates, for each pass, on rows that were not fitted."""
    found: dict[str, dict[str, float | str]] = {}
    for word, pass_ in PASSES.items():
        for kind in ("known", "any") if word == "fwd" else ("known",):
            is_known = kind == "known"
            how = ", algorithm known" if is_known and word == "fwd" else ""
            for precision, data_type in DATA_TYPES.items():
                held = chosen(rows, "V100", precision, word, is_held_out)
                found[f"v100 {data_type} {pass_} {kind}"] = spread(
                    errors(held, fitted, is_known),
                    f"V100 {data_type} {pass_} layers held out of the fit{how}",
                )
            others = [row for gpu in ("TitanXp", "M40") for row in chosen(rows, gpu, "fp32", word)]
            wide = errors(others, fitted, is_known)
            found[f"other fp32 {pass_} {kind}"] = spread(
                wide,
                f"fp32 {pass_} layers measured on Titan Xp and M40, with a model fitted to neither"
                f"{how.replace(',', ';')}",
            )
            other = spread(
                wide,
                "not fitted to this GPU and data type: the interval is wider than any measured one",
            )
            for end, factor in (("low", 0.8), ("high", 1.25)):
                other[end] = round(float(other[end]) * factor, 3)
            found[f"other other {pass_} {kind}"] = other
    return found


def spread(found: Sequence[float], basis: str) -> dict[str, float | str]:
    """Where eight of ten measurements lie, over the estimate."""
    ratios = sorted(1 / (1 + error) for error in found)
    tenth = len(ratios) / 10
    return {
        "low": math.floor(1e3 * ratios[math.floor(tenth)]) / 1e3,
        "high": math.ceil(1e3 * ratios[math.ceil(len(ratios) - tenth) - 1]) / 1e3,
        "rows": len(ratios),
        "basis": basis,
    }


def print_others(rows: Sequence[Row], lanes: ConvCalibration, tensor: ConvCalibration) -> None:
    """Print our errors beside those of other models on the same rows, and broken bounds."""
    fitted = {"fp32": lanes, "fp16": tensor}
    print(lanes, tensor, sep="\n")
    print("MAPE in %                         rows  known    any roofline report 003 broken bounds")
    for gpu, precision, word, what, keys in cases():
        found = chosen(rows, gpu, precision, word, keys)
        line(f"{gpu} {precision} {word} {what}", found, fitted)
    for what, keys in (("all", is_any), ("held out", is_held_out)):
        found = [row for row in chosen(rows, "V100", "fp32", "fwd", keys) if not row.is_doubtful]
        line(f"V100 fp32 fwd {what}, doubtful labels left out", found, fitted)
    held = chosen(rows, "V100", "fp32", "fwd", is_held_out)
    for name in ALGORITHMS:
        part = [row for row in held if row.algorithm == name]
        if part:
            line(f"V100 held out {name}", part, fitted)


def cases() -> Iterable[tuple[str, str, str, str, Callable[[LayerKey], bool]]]:
    for word in PASSES:
        for precision in DATA_TYPES:
            yield "V100", precision, word, "fitted half", is_ours
            yield "V100", precision, word, "held out", is_held_out
        for gpu in ("TitanXp", "M40"):
            yield gpu, "fp32", word, "", is_any


def line(name: str, rows: Collection[Row], fitted: Mapping[str, ConvCalibration]) -> None:
    known, anyhow = mape(errors(rows, fitted)), mape(errors(rows, fitted, False))
    sheet = mape(
        roofline(row.problem, arch_of(row.gpu), data_type=DATA_TYPES[row.precision]) / row.time_s
        - 1
        for row in rows
    )
    report = [seconds / row.time_s - 1 for row in rows if (seconds := report_s(row)) is not None]
    broken = sum(row.time_s < bound_s(row, row.algorithm) for row in rows)
    loose = sum(row.time_s < bound_s(row, None) for row in rows)
    theirs = mape(report) if report else math.nan
    print(
        f"{name:34}{len(rows):4} {known:6.1f} {anyhow:6.1f} {sheet:8.1f} {theirs:10.0f} "
        f"{broken:6} {loose}"
    )


def report_s(row: Row) -> float | None:
    try:
        return report003_time(row.problem).time_us * 1e-6
    except ProblemError:
        return None


def cross(rows: Sequence[Row]) -> None:
    """Fit on other halves: the one looked at, and nine at random."""
    keys = sorted({row.key for row in rows if row.gpu == "V100"})
    halves = [{key for key in keys if is_held_out(key)}]
    for seed in range(9):
        halves.append(set(random.Random(seed).sample(keys, len(keys) // 2)))
    known, anyhow, half = [], [], []
    for own in halves:
        lanes, tensor = fitted_on(rows, own.__contains__)
        fitted = {"fp32": lanes, "fp16": tensor}
        out = [key for key in keys if key not in own]
        other = chosen(rows, "V100", "fp32", "fwd", out.__contains__)
        known.append(mape(errors(other, fitted)))
        anyhow.append(mape(errors(other, fitted, False)))
        half.append(
            mape(errors(chosen(rows, "V100", "fp16_mixed", "fwd", out.__contains__), fitted))
        )
    print(f"other halves, held out MAPE: known {known}, any {anyhow}, fp16 {half}")


if __name__ == "__main__":
    sys.exit(main())
