"""Console blocks of a page: each command is run, and must print what the page says."""

from __future__ import annotations

import doctest
import re
import shlex
import subprocess

import pytest

from loopsched.cli import run

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def blocks(text: str, language: str) -> list[str]:
    """Contents of the fenced blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def commands(text: str) -> list[tuple[str, str]]:
    """Commands of the console blocks of a page, each with the output that follows it."""
    found = []
    for block in blocks(text, "console"):
        for example in block.removeprefix("$ ").split("\n$ "):
            command, _, output = example.partition("\n")
            while command.endswith("\\"):
                more, _, output = output.partition("\n")
                command = command[:-1] + more.strip()
            found.append((command, output))
    return found


def check(command: str, output: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Run a command and compare what it prints, if the page shows that, with what it does."""
    name, *words = shlex.split(command, comments=True)
    if name == "loopsched":
        status = run(words)
        out, err = capsys.readouterr()
    else:
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
        status, out, err = done.returncode, done.stdout, done.stderr
    assert status == 0, f"{command}: {err}"
    if not output.strip():
        return
    out += "".join(re.findall(r"^wrote .*\n", err, re.MULTILINE))
    wanted = doctest.Example(command, output)
    checker = doctest.OutputChecker()
    assert checker.check_output(output, out, FLAGS), (
        f"{command}\n{checker.output_difference(wanted, out, FLAGS)}"
    )
