"""The page's model: equal to the library in every digit, in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest
from page_model import CHROMIUM, layer_cases, random_cases, run_in_page

from loopsched import load_arch, load_workload
from loopsched.resources import resource_names

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")


def test_page_says_what_the_library_says(tmp_path: Path) -> None:
    archs = [load_arch(name) for name in resource_names("archs", ".yaml")]
    layers = [
        problem
        for name in ("deepbench_conv", "deepbench_gemm")
        for problem in load_workload(name).problems
    ]
    cases = [*random_cases(150, 5), *layer_cases(layers, archs, 150, 5)]
    found = run_in_page(cases, tmp_path)
    assert found["n"] == len(cases)
    assert found["wrong"] == []
