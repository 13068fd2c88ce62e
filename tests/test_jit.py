"""Kernels are compiled where they cannot be kept, or what was kept is broken."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType

import pytest

from loopsched.base.machine_code import interrupts_wait

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


INTERRUPTED = """
import os, signal
from llvmlite.binding.executionengine import ExecutionEngine

calls_back = ExecutionEngine._raw_object_cache_getbuffer

def _raw_object_cache_getbuffer(self, data):
    import os, signal
    self._raw_object_cache_getbuffer.__func__.__code__ = self.before
    os.kill(os.getpid(), signal.SIGINT)

ExecutionEngine.before = calls_back.__code__
calls_back.__code__ = _raw_object_cache_getbuffer.__code__
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    double(20)
except KeyboardInterrupt:
    assert calls_back.__code__ is ExecutionEngine.before
else:
    raise AssertionError("the interrupt is lost")
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
"""


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_an_interrupt_while_llvm_calls_back_is_not_lost(tmp_path: Path) -> None:
    """Numba compiles what arrays need when the first kernel that makes some is loaded."""
    script = KERNEL.replace("assert double", INTERRUPTED + "assert double")
    script = "import numpy as np\n" + script.replace("2 * n", "np.full(n, 2).sum()")
    (tmp_path / "kernel.py").write_text(script)
    assert compiled(tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "kept"))[1] == ""


def test_interrupts_are_answered_once_by_who_answers_them_then() -> None:
    heard: list[str] = []

    def _raw_object_cache_of_llvm() -> None:
        signal.raise_signal(signal.SIGINT)
        heard.append("called back")

    def first(number: int, frame: FrameType | None) -> None:
        heard.append("first")
        signal.signal(signal.SIGINT, second)

    def second(number: int, frame: FrameType | None) -> None:
        heard.append("second")

    before = signal.signal(signal.SIGINT, first)
    try:
        with interrupts_wait():
            _raw_object_cache_of_llvm()
            assert heard == ["called back"]
        assert heard == ["called back", "first"]
        assert signal.signal(signal.SIGINT, first) is second
        with interrupts_wait():
            signal.raise_signal(signal.SIGINT)
            assert heard[2:] == ["first"]
        assert signal.getsignal(signal.SIGINT) is second
        with interrupts_wait():
            pass
        assert signal.getsignal(signal.SIGINT) is second
        with ThreadPoolExecutor() as pool:
            assert pool.submit(lambda: interrupts_wait().__enter__()).result() is None
        assert signal.signal(signal.SIGINT, signal.SIG_IGN) is second
        with interrupts_wait():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


PARTS = """
from __future__ import annotations
import sys
from math import gcd
import numpy as np
from loopsched.base import kernel
from loopsched.base.jit import jit, part

Ints = np.ndarray

@part
def common(x: Ints, i: int, j: int) -> int:
    return gcd(x[0, i], x[0, j])

@part
def half_of(x: Ints, i: int) -> int:
    return common(x, i, 1) // 2

@jit
def both(x):
    return half_of(x, 0) + common(x, 2, 0)

assert both(np.array([[12, 18, 8], [0, 0, 0]])) == both(np.array([[12, 18, 8]])) == 7
"""


def test_parts_become_one_kernel_beside_what_numba_compiles(tmp_path: Path) -> None:
    """What is left as it is until then is not lost to functions of others that call it."""
    (tmp_path / "kernel.py").write_text(
        PARTS + "if both.n_compiled:\n    import numba\n"
        "    assert numba.njit(lambda n: gcd(n, 6))(4) == 2\n"
        "    twice = numba.njit(lambda x: 2 * common(x, 0, 1))\n"
        "    assert twice(np.array([[12, 18]])) == 12\n"
        "print(1 - both.n_compiled)\n"
    )
    kept = tmp_path / "kept"
    assert compiled(tmp_path, NUMBA_CACHE_DIR=str(kept)) == (0, "")
    assert compiled(tmp_path, NUMBA_CACHE_DIR=str(kept)) == (1, "")
    (path,) = kept.rglob("*.code")
    assert b"4both" in path.read_bytes()


def test_parts_become_one_kernel_after_what_numba_compiled(tmp_path: Path) -> None:
    """What numba adds to all that it compiles reaches parts of parts, too."""
    (tmp_path / "kernel.py").write_text(
        PARTS.replace("return gcd", "n = np.full(3, i)[0] - i\n    return n + gcd").replace(
            "assert both",
            "if len(sys.argv) > 1:\n    import numba\n"
            "    assert numba.njit(lambda n: np.ones(n).sum())(3) == 3\nassert both",
        )
        + "print(1 - both.n_compiled)\nassert both._plain is None\n"
    )
    kept = str(tmp_path / "kept")
    assert compiled(tmp_path, "after", NUMBA_CACHE_DIR=kept) == (0, "")
    assert compiled(tmp_path, "after", NUMBA_CACHE_DIR=kept) == (1, "")
    assert compiled(tmp_path, NUMBA_CACHE_DIR=kept) == (1, "")


def test_parts_of_a_kernel_that_cannot_be_kept(tmp_path: Path) -> None:
    nowhere = str(tmp_path / "kernel.py" / "none")
    (tmp_path / "kernel.py").write_text(PARTS + "print(both.n_compiled)\n")
    n_compiled, said = compiled(tmp_path, NUMBA_CACHE_DIR=nowhere)
    assert n_compiled == 2  # for one row, and for several
    assert "Not a directory" in said


def test_parts_with_a_numba_that_runs_them_itself(tmp_path: Path) -> None:
    broken = "kernel._MEMBERS = ('data',)\n@part"
    (tmp_path / "kernel.py").write_text(PARTS.replace("@part", broken, 1) + "print(1)\n")
    _, said = compiled(tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "kept"))
    assert "compiled again each time" in said


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes are forked here")
def test_a_process_forked_while_another_thread_compiles(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(
        "import os\nimport signal\nimport threading\nfrom loopsched.base import kernel\n"
        "is_held, ends = threading.Event(), threading.Event()\n"
        "def compile():\n"
        "    with kernel._LOCK:\n        is_held.set()\n        ends.wait(0.5)\n"
        "threading.Thread(target=compile).start()\nis_held.wait()\nchild = os.fork()\n"
        "if not child:\n"
        "    os._exit(0 if kernel._LOCK.acquire(timeout=5) else 1)\n"
        "print(os.waitpid(child, 0)[1])\n"
    )
    assert compiled(tmp_path)[0] == 0
