"""Draw the images of docs/plots.md.

    python benchmarks/plots_page.py            write them
    python benchmarks/plots_page.py --check    say which are no longer what would be written

The same bytes every time, with one version of matplotlib; another may place glyphs otherwise.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from loopsched import (
    gemm,
    load_arch,
    load_workload,
    pareto,
    search,
    search_workload,
    sensitivity,
    traffic_curve,
    validate_counters,
)
from loopsched.show.plots.figure import save_plots
from loopsched.show.plots.measured import comparisons, measured_figure
from loopsched.show.plots.roofline import plot_roofline
from loopsched.show.plots.ski_slope import plot_ski_slope
from loopsched.show.plots.tiles import plot_tiles
from loopsched.show.plots.tornado import tornado_figure
from loopsched.show.plots.tradeoffs import plot_pareto
from loopsched.show.plots.traffic import bytes_figure
from loopsched.study.tile_map import tile_map

IMAGES = Path(__file__).parent.parent / "docs" / "images"
TITAN_V = load_arch("titan_v")
PRODUCT = gemm(m=1760, n=128, k=1760)


def roofline() -> Any:
    results = list(search_workload(load_workload("deepbench_conv"), TITAN_V))
    return plot_roofline(results, TITAN_V, name="deepbench_conv")


def ski_slope() -> Any:
    return plot_ski_slope([traffic_curve(PRODUCT)], arch=TITAN_V)


def tiles() -> Any:
    return plot_tiles(tile_map(PRODUCT, TITAN_V, search(PRODUCT, TITAN_V).schedule, steps=40))


def traffic() -> Any:
    return bytes_figure(list(search_workload(load_workload("resnet50"), TITAN_V)), "resnet50")


def front() -> Any:
    return plot_pareto({PRODUCT.name: pareto(PRODUCT, TITAN_V)})


def measured() -> Any:
    return measured_figure(
        comparisons(validate_counters("h200_tiled_gemm", method="evaluate")), "h200_tiled_gemm"
    )


def tornado() -> Any:
    return tornado_figure(sensitivity(load_workload("alexnet"), TITAN_V))


DRAWN: dict[str, Callable[[], Any]] = {
    "roofline": roofline,
    "ski_slope": ski_slope,
    "tiles": tiles,
    "bytes": traffic,
    "pareto": front,
    "measured": measured,
    "tornado": tornado,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    parser.add_argument("names", nargs="*", choices=[[], *DRAWN], help="only these")
    given = parser.parse_args()
    changed = []
    with tempfile.TemporaryDirectory() as folder:
        for name in given.names or DRAWN:
            kept = IMAGES / f"plot_{name}.svg"
            target = Path(folder) / kept.name if given.check else kept
            save_plots([target], list, DRAWN[name])
            if given.check and (not kept.exists() or kept.read_bytes() != target.read_bytes()):
                changed.append(kept.name)
    if changed:
        print(f"not as they would be drawn: {', '.join(changed)}", file=sys.stderr)
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
