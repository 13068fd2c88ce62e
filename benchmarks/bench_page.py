"""Time the explorer page in Chromium: how long it loads, and how long a change takes.

    python benchmarks/bench_page.py RESULTS      rows of `loopsched search --out`

For DeepBench's 94 convolutions, first:

    loopsched search deepbench_conv --top 3 --jobs 2 --out deepbench.jsonl
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from loopsched.cli import run

REPEATS = 5
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)

# Until the first frame after the page's script has drawn everything.
_LOADED = """() => new Promise(done => requestAnimationFrame(() => setTimeout(() => done(
    performance.now()))))"""
# Every layer's first loop is moved inward and back; milliseconds of each change.
_CHANGES = """() => [...document.querySelectorAll("#layers tbody tr")].flatMap(row => {
    row.click();
    const times = [];
    for (const what of ["down", "up"]) {
        const all = document.querySelectorAll("#loops [data-what=" + what + "]:enabled");
        if (!all.length) continue;
        const start = performance.now();
        all[0].click();
        times.push(performance.now() - start);
    }
    return times;
})"""


def main(results: str) -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        target = Path(folder) / "page.html"
        if run(["report", results, "--curves", "-o", str(target)]):
            sys.exit(3)
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for width in (1280, 400):
            loads, changes = [], []
            for _ in range(REPEATS):
                page: Any = browser.new_page(viewport={"width": width, "height": 900})
                page.goto(target.as_uri())
                loads.append(page.evaluate(_LOADED))
                changes += page.evaluate(_CHANGES) if width == 1280 and not changes else []
                page.close()
            print(
                f"{width} px: loaded in {statistics.median(loads):.0f} ms "
                f"({max(loads):.0f} ms at most)"
            )
            if changes:
                print(
                    f"{len(changes)} changes: {statistics.median(changes):.1f} ms each in the "
                    f"median, {max(changes):.0f} ms at most"
                )
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1])
