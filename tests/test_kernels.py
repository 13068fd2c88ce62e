"""The compiled kernels and the same functions as plain Python give the same bytes."""

from __future__ import annotations

import os
import subprocess
import sys

SCRIPT = """
import loopsched
from loopsched.scheduler import kernels
small = [
    loopsched.gemm(m=12, n=9, k=10),
    loopsched.conv2d(n=2, c=3, k=4, h=7, w=6, r=3, s=2, stride=2, padding=1, dilation=1),
]
arch = loopsched.load_arch("titan_v").with_value("L1.capacity", 256).with_value("L2.capacity", 700)
print(hasattr(kernels.best_body, "py_func"))
for problem in small:
    for objective in ("time", "dram_bytes"):
        found = loopsched.search(problem, arch, objective=objective)
        print(found.schedule, found.certificate.nodes, found.evaluation.levels[1].bytes)
"""


def _run(jit: str) -> list[str]:
    environment = {**os.environ, "LOOPSCHED_JIT": jit}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def test_python_and_compiled_kernels_agree() -> None:
    compiled, plain = _run("1"), _run("0")
    assert (compiled[0], plain[0]) == ("True", "False")
    assert compiled[1:] == plain[1:]
