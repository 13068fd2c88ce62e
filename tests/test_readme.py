"""Every example in the README is run, and prints what the README says."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

import console
import pytest

README = Path(__file__).parent.parent / "README.md"
TEXT = README.read_text(encoding="utf-8")


@pytest.mark.parametrize(("command", "output"), console.commands(TEXT))
def test_commands_print_what_the_readme_says(
    command: str,
    output: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    console.check(command, output, capsys)


def test_python_prints_what_the_readme_says() -> None:
    source = "\n".join(console.blocks(TEXT, "python"))
    test = doctest.DocTestParser().get_doctest(source, {}, "README", str(README), 0)
    assert test.examples
    report: list[str] = []
    doctest.DocTestRunner(optionflags=console.FLAGS).run(test, out=report.append)
    assert not report, "".join(report)


def test_the_main_command_names_a_file_that_is_there() -> None:
    (command,) = re.findall(r"<!-- main command -->\n```sh\n(.*)\n```", TEXT)
    assert (README.parent / shlex.split(command)[-1]).is_file()
