"""Fit the calibration of library kernels to measured GEMMs, and say how far it carries.

    python benchmarks/fit_library.py            write loopsched/gpu/library/calibration.json
    python benchmarks/fit_library.py --cross    also fit on other halves: is the split luck?
    python benchmarks/fit_library.py --check    fit, and compare with the file that is there

Only V100 rows are fitted, and of those only the rows of half of the layers.  Shapes that
differ in n only, or in k only, are of one family, and so are those between which a chain of
such shapes leads; a family goes to one half as a whole, transposed or not.  The other half,
and every row of other GPUs, is only looked at.
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
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from loopsched import ProblemError, gemm, load_arch
from loopsched.base.resources import resource_dir
from loopsched.gpu.bound import repeated_bound
from loopsched.gpu.library import launch, tiled
from loopsched.gpu.library.calibration import Calibration, OwnKernels
from loopsched.gpu.library.gemm import product_of
from loopsched.gpu.library.machine import Machine, machine_of
from loopsched.gpu.library.tiles import LIBRARIES, Library
from loopsched.gpu.library.wave import Product, tiled_time
from loopsched.machines.arch import Arch
from loopsched.published.model_003 import report003_time
from loopsched.validation.counter_files import CounterRow, read_counters

FILE = Path(__file__).parents[1] / "loopsched" / "gpu" / "library" / "calibration.json"
ARCHS = {"V100": "v100", "TitanXp": "titan_xp", "M40": "m40"}
SOURCE = "measurements/deepbench_gemm_measured.csv"

# Where every search starts: round numbers of the right order.
START = Calibration(
    pipe=1.0,
    dram=1.0,
    l2=0.5,
    strided=1.2,
    latency=0.5,
    barrier=30.0,
    fill=4.0,
    launch=2.0,
    split=1.5,
)
# What no GPU does: outside of these a parameter would stand for something else.
LIMITS = {
    "dram": (0.7, 1.2),
    "l2": (0.2, 1.0),
    "strided": (1.0, 3.0),
    "latency": (0.1, 3.0),
    "barrier": (5.0, 200.0),
    "fill": (0.5, 10.0),
    "launch": (0.3, 4.0),
    "split": (0.3, 4.0),
}
# The half with products of a few microseconds: from the other, launches cannot be known.
SIDE = 1
# What a parameter that a half of the rows says little of is worth: a factor of e away from
# its start must gain that much mean error.
PULL = 0.01
# Launches of these are fitted: one whose rows of B come in vectors, one whose do not.
OWN_SHAPES = ((8192, 8192, 8192), (1760, 7000, 1760))
H200 = load_arch("h200")
TENSOR_NAMES = ("pipe", "strided")


Shape = tuple[int, int, int]


@dataclass(frozen=True)
class Row:
    """A measured product, ready to be estimated."""

    m: int
    n: int
    k: int
    product: Product
    machine: Machine
    library: Library
    time_s: float
    bound_s: float

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.m, self.n, self.k


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cross", action="store_true", help="fit on other halves, too")
    parser.add_argument("--check", action="store_true", help="compare with the file, do not write")
    options = parser.parse_args()
    begin = time.perf_counter()
    fp32, fp16 = rows_of("V100", "fp32"), rows_of("V100", "fp16_mixed")
    lanes = fit(halves(fp32)[0], START, tuple(asdict(START)))
    tensor = fit(halves(fp16)[0], lanes, TENSOR_NAMES)
    content = content_of(lanes, tensor)
    add_own(content)
    print_errors(content)
    print_others(lanes, tensor)
    if options.cross:
        cross(fp32, "fp32", START, tuple(asdict(START)))
        cross(fp16, "fp16", lanes, TENSOR_NAMES)
    print(f"{time.perf_counter() - begin:.0f} s")
    # Convolutions have a section of their own there, and a script of their own.
    before = json.loads(FILE.read_text(encoding="utf-8")) if FILE.is_file() else {}
    content |= {key: value for key, value in before.items() if key not in content}
    text = json.dumps(content, indent=1) + "\n"
    if options.check:
        same = json.loads(text) == json.loads(FILE.read_text(encoding="utf-8"))
        print("the file is what the fit gives" if same else "the file differs from the fit")
        return 0 if same else 1
    FILE.write_text(text, encoding="utf-8")
    return 0


def rows_of(gpu: str, precision: str, library: str | None = None) -> list[Row]:
    """Read DeepBench's products of one GPU and data type; no row is left out.

    ``library`` is another than the one that the architecture file names.
    """
    arch = load_arch(ARCHS[gpu])
    data_type = "fp16" if precision == "fp16_mixed" else "fp32"
    if library is None:
        library = arch.kernel_limits.library if data_type == "fp32" else "tensor"
    machine = machine_of(arch, data_type)
    path = resource_dir("measurements") / "deepbench_gemm_measured.csv"
    with path.open(encoding="utf-8", newline="") as file:
        found = [
            line
            for line in csv.DictReader(file)
            if line["gpu"] == gpu and line["precision"] == precision
        ]
    return [row_of(line, arch, data_type, machine, LIBRARIES[library]) for line in found]


def report_rows() -> list[Row]:
    """Read report 003's products on a Titan V: stored as fp16, computed as fp32.

    The report's letters M N K of the problem are m = `gemm_n` (25,088 or 4,096), n = batch and
    k = `gemm_k`: only so do the times fit any whole number of waves of a tile.
    """
    arch = load_arch("titan_v")
    machine = machine_of(arch, "fp16_as_fp32")
    path = resource_dir("measurements") / "titan_v_measured.csv"
    found = []
    with path.open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            if line["kind"] == "gemm":
                sizes = {"m": "gemm_n", "n": "gemm_m", "k": "gemm_k"}
                cells = {name: str(int(float(line[old]))) for name, old in sizes.items()}
                cells |= {"a_t": "0", "time_us": line["time_us"]}
                found.append(row_of(cells, arch, "fp16_as_fp32", machine, LIBRARIES["half"]))
    return found


def row_of(
    line: Mapping[str, str], arch: Arch, data_type: str, machine: Machine, library: Library
) -> Row:
    m, n, k = (int(line[name]) for name in "mnk")
    problem = gemm(m=m, n=n, k=k)
    product = product_of(problem, data_type, a_transposed=line["a_t"] == "1")
    touched = product.a_bytes + product.b_bytes + product.c_bytes
    bound_s, _ = repeated_bound(problem.macs, touched, arch, data_type)
    return Row(m, n, k, product, machine, library, float(line["time_us"]) * 1e-6, bound_s)


def families(rows: Iterable[Row]) -> list[tuple[Shape, ...]]:
    """Sort shapes into families, each led by its least shape."""
    found: list[set[Shape]] = []
    for shape in sorted({row.shape for row in rows}):
        kin = [family for family in found if any(is_kin(shape, other) for other in family)]
        found = [family for family in found if family not in kin]
        found.append({shape}.union(*kin))
    return sorted(tuple(sorted(family)) for family in found)


def is_kin(one: Shape, other: Shape) -> bool:
    return one[0] == other[0] and (one[1] == other[1] or one[2] == other[2])


def halves(rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Split rows into those to fit and those to look at, by a hash of their family."""
    chosen = {
        shape
        for family in families(rows)
        if zlib.crc32(repr(family[0]).encode()) % 2 == SIDE
        for shape in family
    }
    return split_by(rows, chosen)


def split_by(rows: Sequence[Row], chosen: Container[Shape]) -> tuple[list[Row], list[Row]]:
    inside = [row for row in rows if row.shape in chosen]
    return inside, [row for row in rows if row.shape not in chosen]


def estimate_s(row: Row, fitted: Calibration) -> float:
    library = row.library
    found = tiled_time(row.product, library.tiles, row.machine, fitted, splits=library.splits)
    return max(found.time_s, row.bound_s)


def errors(rows: Sequence[Row], fitted: Calibration) -> list[float]:
    """Relative errors of the estimates."""
    return [estimate_s(row, fitted) / row.time_s - 1 for row in rows]


def mape(found: Iterable[float]) -> float:
    return round(100 * statistics.fmean(map(abs, found)), 2)


def fit(rows: Sequence[Row], start: Calibration, names: Sequence[str]) -> Calibration:
    """Search along one parameter at a time, in shrinking steps, for the least mean error."""
    limits = dict(LIMITS)
    machine = rows[0].machine
    # A card cannot run above its highest clock.
    limits["pipe"] = (0.5, machine.max_clock_hz / machine.clock_hz)

    def loss(fitted: Calibration) -> float:
        found = (abs(math.log(estimate_s(row, fitted) / row.time_s)) for row in rows)
        far = sum(math.log(getattr(fitted, name) / getattr(start, name)) ** 2 for name in names)
        return statistics.fmean(found) + PULL * far

    best, least, step = start, loss(start), 0.3
    while step > 0.01:
        has_moved = False
        for name in names:
            for factor in (1 + step, 1 / (1 + step)):
                low, high = limits[name]
                value = min(high, max(low, getattr(best, name) * factor))
                tried = replace(best, **{name: value})
                found = loss(tried)
                if found < least * (1 - 1e-4):
                    best, least, has_moved = tried, found, True
                    break
        if not has_moved:
            step /= 2
    return replace(best, **{name: float(f"{getattr(best, name):.4g}") for name in names})


def content_of(lanes: Calibration, tensor: Calibration) -> dict[str, object]:
    """Put together what the file says."""
    fp32, fp16 = rows_of("V100", "fp32"), rows_of("V100", "fp16_mixed")
    data_types = {}
    for name, rows, fitted, names in (
        ("fp32", fp32, lanes, tuple(asdict(START))),
        ("fp16", fp16, tensor, TENSOR_NAMES),
    ):
        own, other = halves(rows)
        data_types[name] = {
            "parameters": asdict(fitted),
            "fitted": list(names),
            "fitted_on": f"{SOURCE}, gpu V100, precision {name}",
            "fitted_families": [shown(family) for family in families(own)],
            "held_out_families": [shown(family) for family in families(other)],
            "fitted_rows": len(own),
            "held_out_rows": len(other),
            "fitted_mape_percent": mape(errors(own, fitted)),
            "held_out_mape_percent": mape(errors(other, fitted)),
        }
    others = {gpu: errors(rows_of(gpu, "fp32"), lanes) for gpu in ("TitanXp", "M40")}
    every = [error for found in others.values() for error in found]
    titan_v = errors(report_rows(), lanes)
    held = {
        name: spread(errors(halves(rows)[1], fitted))
        for name, rows, fitted in (("fp32", fp32, lanes), ("fp16", fp16, tensor))
    }
    wide = spread(every)
    return {
        "about": "Written by benchmarks/fit_library.py; docs/library_kernels.md explains it.",
        "data_types": data_types,
        "not_fitted": {
            ARCHS[gpu]: {"rows": len(found), "mape_percent": mape(found)}
            for gpu, found in others.items()
        }
        | {"titan_v": {"rows": len(titan_v), "mape_percent": mape(titan_v)}},
        "spreads": {
            "v100 fp32": held["fp32"] | {"basis": "V100 fp32 GEMMs held out of the fit"},
            "v100 fp16": held["fp16"] | {"basis": "V100 fp16 GEMMs held out of the fit"},
            "titan_v fp16_as_fp32": spread(titan_v)
            | {"basis": "GEMMs of report 003 on a Titan V; its tile was chosen on them"},
            "another gpu": wide
            | {"basis": "fp32 GEMMs measured on Titan Xp and M40, with a model fitted to neither"},
            "other": {
                "low": round(min(wide["low"], held["fp16"]["low"]) / 1.25, 3),
                "high": round(max(wide["high"], held["fp16"]["high"]) * 1.25, 3),
                "basis": "not fitted to this GPU and data type: "
                "the interval is wider than any measured one",
            },
        },
    }


def add_own(content: dict[str, object]) -> None:
    """Fit two numbers of Triton's TF32 kernels on two shapes, and look at all others."""
    files = ("h200_tiled_gemm", "h200_tiled_gemm_more", "h200_tiled_gemm_held_out")
    rows = {file: read_counters(file) for file in files}
    own = [row for row in rows[files[0]] if shape_of(row) in OWN_SHAPES]
    others = {file: [row for row in rows[file] if row not in own] for file in files}
    best = OwnKernels(0.2, 0.2)
    # The lanes' and tensor cores' numbers are those just fitted, not those of the file.
    sections = content["data_types"]
    launch.calibration = lambda name: Calibration(**sections[name]["parameters"])

    def off(launches: Sequence[CounterRow], tried: OwnKernels) -> list[float]:
        launch.calibrated = lambda *_: tried
        return [own_error(row) for row in launches]

    step = 0.3
    least = statistics.fmean(abs(math.log1p(error)) for error in off(own, best))
    while step > 0.005:
        has_moved = False
        for name in ("tf32_pipe", "tf32_copy_cycles"):
            for factor in (1 + step, 1 / (1 + step)):
                tried = replace(best, **{name: getattr(best, name) * factor})
                found = statistics.fmean(abs(math.log1p(error)) for error in off(own, tried))
                if found < least * (1 - 1e-4):
                    best, least, has_moved = tried, found, True
                    break
        if not has_moved:
            step /= 2
    names = ("tf32_pipe", "tf32_copy_cycles")
    best = replace(best, **{name: float(f"{getattr(best, name):.4g}") for name in names})
    held = [error for launches in others.values() for error in off(launches, best)]
    content["tiled"] = {
        "parameters": {name: getattr(best, name) for name in names},
        "fitted_on": "counters/h200_tiled_gemm.csv, time_us of "
        + ", ".join("x".join(map(str, shape)) for shape in OWN_SHAPES),
        "fitted_rows": len(own),
        "fitted_mape_percent": mape(off(own, best)),
        "held_out": {
            file: {"rows": len(launches), "mape_percent": mape(off(launches, best))}
            for file, launches in others.items()
        },
    }
    spreads = content["spreads"]
    spreads["own"] = spreads["other"] | {
        "basis": "no tiled kernel was measured on this GPU in this data type: "
        "the interval is wider than any measured one"
    }
    spreads["h200 own tf32"] = spread(held) | {
        "basis": "Triton TF32 GEMMs on an H200 whose shapes were not fitted"
    }


def shape_of(row: CounterRow) -> Shape:
    return row.count("M"), row.count("N"), row.count("K")


def own_error(row: CounterRow) -> float:
    m, n, k = shape_of(row)
    measured_us = row.measured("time_us")
    found = tiled.tiled_gemm(
        gemm(m=m, n=n, k=k),
        H200,
        tile=(row.count("tile_m"), row.count("tile_n"), row.count("tile_k")),
        group_m=row.count("group_m"),
        threads=int(row.measured("block_threads") or 0),
        registers=int(row.measured("registers") or 0),
        data_type="tf32",
    )
    return found.estimate.time_s * 1e6 / (measured_us or math.nan) - 1


def shown(family: Sequence[Shape]) -> str:
    return " ".join("x".join(map(str, shape)) for shape in family)


def spread(found: Sequence[float]) -> dict[str, float]:
    """Where eight of ten measurements lie, over the estimate."""
    ratios = sorted(1 / (1 + error) for error in found)
    tenth = len(ratios) / 10
    return {
        "low": round(ratios[math.floor(tenth)], 3),
        "high": round(ratios[math.ceil(len(ratios) - tenth) - 1], 3),
    }


def print_errors(content: Mapping[str, object]) -> None:
    print(json.dumps(content, indent=1))


def print_others(lanes: Calibration, tensor: Calibration) -> None:
    """Print the errors of other models on the same rows, and violated bounds."""
    print("MAPE in %     rows  ours  roofline  report 003  above the bound")
    cases: list[tuple[str, list[Row], Calibration]] = [
        ("V100 held out", halves(rows_of("V100", "fp32"))[1], lanes),
        ("V100 fp32", rows_of("V100", "fp32"), lanes),
        ("V100 fp16", rows_of("V100", "fp16_mixed"), tensor),
        ("Titan Xp", rows_of("TitanXp", "fp32"), lanes),
        ("M40", rows_of("M40", "fp32"), lanes),
        ("Titan V", report_rows(), lanes),
        ("M40 as Volta", rows_of("M40", "fp32", "volta"), lanes),
    ]
    for name, rows, fitted in cases:
        ours = mape(errors(rows, fitted))
        sheet = mape(roofline_s(row) / row.time_s - 1 for row in rows)
        report = mape(report_s(row) / row.time_s - 1 for row in rows)
        below = sum(row.time_s < row.bound_s for row in rows)
        print(f"{name:13} {len(rows):4} {ours:6.1f} {sheet:8.1f} {report:10.0f} {below:8} broken")


def roofline_s(row: Row) -> float:
    """Data-sheet peak or every tensor once at data-sheet bandwidth."""
    machine, product = row.machine, row.product
    peak = machine.macs_per_cycle * machine.sms * machine.max_clock_hz
    moved = product.a_bytes + product.b_bytes + product.c_bytes
    return max(product.macs / peak, moved / machine.dram_bytes_per_s)


def report_s(row: Row) -> float:
    # The report's letters: N and C are the dimensions of the weights.
    try:
        return report003_time(gemm(m=row.n, n=row.m, k=row.k)).time_us * 1e-6
    except ProblemError:
        return math.nan


def cross(rows: Sequence[Row], name: str, start: Calibration, names: Sequence[str]) -> None:
    """Fit on other halves: five at random, of shapes and of families; all but one family."""
    shapes, kin = sorted({row.shape for row in rows}), families(rows)
    ours, theirs = halves(rows)
    print(f"{name}: none of its own numbers: {mape(errors(rows, start))}; ", end="")
    print(f"the other half fitted: {mape(errors(ours, fit(theirs, start, names)))} held out")
    for what, parts in (("shapes", [(shape,) for shape in shapes]), ("families", kin)):
        found = []
        for seed in range(5):
            chosen = random.Random(seed).sample(parts, len(parts) // 2)
            own, other = split_by(rows, {shape for part in chosen for shape in part})
            found.append(mape(errors(other, fit(own, start, names))))
        print(f"{name}: five random halves of the {what}, MAPE held out: {found}")
    together: list[float] = []
    for family in kin:
        out, own = split_by(rows, family)
        together += errors(out, fit(own, start, names))
    print(f"{name}: each family left out once, all {len(together)} rows: {mape(together)}")


if __name__ == "__main__":
    sys.exit(main())
