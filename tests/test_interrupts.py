"""Ctrl-C at moments when Python itself would answer it: by the signal, or not at all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

INTERRUPT = "import os, signal, sys, time\n\ndef interrupt(): os.kill(os.getpid(), signal.SIGINT)\n"
AMID_IMPORTS = """
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "click":
            interrupt()

sys.meta_path.insert(0, Finder())
"""
AMID_TEXT = """
def run(arguments):
    try:
        exec("interrupt()")
    except KeyboardInterrupt:
        return 130

from loopsched import cli
cli.run = run
"""
AMID_A_DISPOSAL = """
class Late:
    def __del__(self):
        interrupt()

def run(arguments):
    try:
        Late()
        time.sleep(20)
    except KeyboardInterrupt:
        return 130

from loopsched import cli
cli.run = run
"""
AT_THE_END = """
class Last:
    def __del__(self, interrupt=interrupt, os=os, signal=signal, getpid=os.getpid):
        os.kill(getpid(), signal.SIGINT)

sys.modules["last of all"] = Last()
"""


@pytest.mark.parametrize(
    ("moment", "status"),
    [(AMID_IMPORTS, 130), (AMID_TEXT, 130), (AMID_A_DISPOSAL, 130), (AT_THE_END, 0)],
    ids=["imports", "text", "disposal", "end"],
)
def test_an_interrupt_is_answered_at_any_moment(moment: str, status: int, tmp_path: Path) -> None:
    code = f"{INTERRUPT}{moment}\nfrom loopsched.__main__ import main\nmain()"
    (tmp_path / "moment.py").write_text(code, encoding="utf-8")
    command = [sys.executable, "-m", "moment", "--version"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == status
    assert "Traceback" not in done.stderr
