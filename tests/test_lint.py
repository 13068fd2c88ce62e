"""The sources are formatted, clean and fully typed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CHECKS = ["ruff check .", "ruff format --check .", "mypy"]


@pytest.mark.project
@pytest.mark.parametrize("check", CHECKS)
def test_sources_pass(check: str) -> None:
    run = subprocess.run(
        [sys.executable, "-m", *check.split()], cwd=ROOT, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stdout + run.stderr
