"""Kernels are compiled where they cannot be kept, or what was kept is broken."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

KERNEL = """
from loopsched.base.jit import jit

@jit
def double(n):
    return 2 * n

assert double(21) == 42
print(1 - double.n_compiled)
"""


def compiled(folder: Path, *arguments: str, **environment: str) -> tuple[int, str]:
    """Run the kernel in a process of its own: how often it was found, and what was said."""
    script = folder / "kernel.py"
    if not script.exists():
        script.write_text(KERNEL)
    done = subprocess.run(
        [sys.executable, str(script), *arguments],
        capture_output=True,
        text=True,
        env=dict(os.environ) | {"PYTHONPATH": os.pathsep.join(sys.path)} | environment,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout), done.stderr


def shortened(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def nonsense(path: Path) -> None:
    path.write_bytes(bytes(range(256)) * 9)


@pytest.mark.parametrize("harm", [shortened, emptied, nonsense])
def test_a_broken_kernel_is_compiled_again(harm: Callable[[Path], None], tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    assert compiled(tmp_path, NUMBA_CACHE_DIR=str(kept)) == (0, "")
    (path,) = kept.rglob("*.code")
    harm(path)
    assert compiled(tmp_path, NUMBA_CACHE_DIR=str(kept)) == (0, "")
    assert compiled(tmp_path, NUMBA_CACHE_DIR=str(kept)) == (1, "")


def test_without_a_place_to_keep_kernels(tmp_path: Path) -> None:
    (tmp_path / "__pycache__").write_text("")
    nowhere = str(tmp_path / "__pycache__" / "none")
    _, said = compiled(tmp_path, NUMBA_CACHE_DIR=nowhere, HOME=nowhere, XDG_CACHE_HOME=nowhere)
    assert said.count("\n") == 1
    assert "kernels cannot be kept" in said
    assert "compiled again each time" in said


def test_a_full_disk_keeps_no_kernel(tmp_path: Path) -> None:
    script = tmp_path / "kernel.py"
    script.write_text(
        "import os\n"
        "def full(*_):\n"
        "    raise OSError(28, 'No space left on device')\n"
        "os.replace = full\n" + KERNEL
    )
    _, said = compiled(tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "kept"))
    assert said.count("\n") == 1
    assert "No space left on device" in said


ARRAYS = """
import numpy as np
from loopsched.base.jit import jit

@jit
def filled(value):
    return np.full(3, value).sum()

assert filled(2) == 6
print(1 - filled.n_compiled)
"""


def test_a_kept_kernel_runs_beside_one_that_is_compiled(tmp_path: Path) -> None:
    """What compiling needs is set up late: after a kernel that was kept has run."""
    kept = str(tmp_path / "kept")
    (tmp_path / "kernel.py").write_text(
        ARRAYS + "import os\nassert 'MORE' not in os.environ or filled(2.5) == 7.5\n"
    )
    assert compiled(tmp_path, NUMBA_CACHE_DIR=kept) == (0, "")
    assert compiled(tmp_path, NUMBA_CACHE_DIR=kept, MORE="1") == (1, "")


@pytest.mark.parametrize("add", ["_add_runtime", "_add_numba"])
def test_either_way_to_load_a_kernel_suffices(add: str, tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(
        f"from loopsched.base import machine_code\nmachine_code.{add} = None\n" + ARRAYS
    )
    kept = str(tmp_path / "kept")
    assert compiled(tmp_path, NUMBA_CACHE_DIR=kept) == (0, "")
    assert compiled(tmp_path, NUMBA_CACHE_DIR=kept) == (1, "")


def test_a_kept_kernel_needs_no_numba(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(
        ARRAYS.replace("    return", "    np.zeros(3)[:] = np.ones(value)[1:]\n    return")
        .replace("(2)", "(4)")
        .replace("== 6", "== 12")
        + "import sys\nassert ('numba' in sys.modules) == filled.n_compiled\n"
    )
    kept = str(tmp_path / "kept")
    assert compiled(tmp_path, NUMBA_CACHE_DIR=kept) == (0, "")
    assert compiled(tmp_path, NUMBA_CACHE_DIR=kept) == (1, "")


def test_a_numba_that_hands_arrays_over_otherwise_runs_them_itself(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(
        "from loopsched.base import kernel\nkernel._MEMBERS = ('data',)\n"
        + ARRAYS.replace("filled(2) == 6", "largest(np.arange(6)) == 5").replace(
            "def filled(value)", "def largest(x):\n    return x.max()\n@jit\ndef filled(value)"
        )
    )
    _, said = compiled(tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "kept"))
    assert said.count("\n") == 1
    assert "compiled again each time" in said


@pytest.mark.parametrize(("before", "after"), [("n + 1", "n + 2"), ("n + ONE", "n + ONE * 2")])
def test_a_kernel_is_compiled_again_when_one_that_it_calls_changes(
    before: str, after: str, tmp_path: Path
) -> None:
    """Each file is looked at by its date alone, and the caller's stays."""
    script, other = tmp_path / "kernel.py", tmp_path / "other.py"
    kernels = (
        "from loopsched.base.jit import jit, step\nONE = 1\n@step\ndef more(n):\n    return {}\n"
    )
    other.write_text(kernels.format(before))
    script.write_text(
        "import sys\nfrom loopsched.base.jit import jit\nimport other\n"
        "from loopsched.base.jit import is_kept\n"
        "@jit\ndef most(n):\n    return 10 * other.more(n)\n"
        "assert is_kept(most) == (len(sys.argv) > 1), 'kept'\nprint(most(4))\n"
    )
    kept = {"NUMBA_CACHE_DIR": str(tmp_path / "kept")}
    assert compiled(tmp_path, **kept) == (50, "")
    assert compiled(tmp_path, "kept", **kept) == (50, "")
    other.write_text(kernels.format(after))
    assert compiled(tmp_path, **kept) == (60, "")
    # Code of the function as it was is no longer kept.
    assert len([*(tmp_path / "kept").rglob("*.code")]) == 1
