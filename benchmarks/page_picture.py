"""Draw docs/images/page.png: the explorer page of ResNet-50 on an H200, in Chromium.

python benchmarks/page_picture.py
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from loopsched.cli import run

TARGET = Path(__file__).parent.parent.resolve() / "docs" / "images" / "page.png"
CHOSEN = "conv4_reduce"
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


def main() -> None:
    # Its name alone, as the page shows the command.
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        status = run(["explore", "resnet50", "-a", "h200", "--no-open", "-o", "resnet50.html"])
        if status:
            sys.exit(status)
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme="light")
            page.goto(Path("resnet50.html").resolve().as_uri())
            page.locator("#layers tbody tr", has_text=CHOSEN).click()
            page.locator("#layers-scroll").evaluate("one => { one.scrollTop = one.scrollHeight; }")
            page.mouse.move(0, 0)
            page.screenshot(path=TARGET)
            browser.close()


if __name__ == "__main__":
    main()
