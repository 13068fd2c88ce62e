"""Report 002: two layers of a small network, a base kernel and seven optimisations."""

from __future__ import annotations

from loopsched.published.ours import COUNTS, Options, profile_of, seconds_of, step_seconds
from loopsched.published.result import Reproduction, Value, measured_table, printed

ARCH = "titan_v"
BATCHES = (100, 1000, 10000)
_MOST = BATCHES[-1]


def reproduction() -> Reproduction:
    """Reproduce report 002."""
    report = printed("report_002")
    tables = (measured_table(table, _ours) for table in report["tables"])
    pools = tuple((f"both layers, {images} images", (f"times_{images}",)) for images in BATCHES)
    return Reproduction.of(report, ARCH, tables, pools=pools)


def _ours(kernel: str, what: str) -> tuple[Value, str]:
    """Count or estimate what a line is about; ``kernel`` is PRESET:LAYER:IMAGES."""
    if what == "sum_ms":
        return 1e3 * sum(_seconds(kernel, layer, _MOST) for layer in (1, 2)), "estimate"
    name, layer, images = kernel.split(":")
    if what == "time_s":
        return _seconds(name, int(layer), int(images)), "estimate"
    if what.startswith("step_us"):
        options = _options(int(layer), int(images))
        step = int(what.removeprefix("step_us_"))
        return 1e6 * step_seconds(f"layer_{name}", options, ARCH, step), "estimate"
    count, basis = COUNTS[what]
    return count(profile_of(f"layer_{name}", _options(int(layer), int(images)), ARCH)), basis


def _seconds(name: str, layer: int, images: int) -> float:
    return seconds_of(f"layer_{name}", _options(layer, images), ARCH)


def _options(layer: int, images: int) -> Options:
    return (("layer", layer), ("batch", images))
