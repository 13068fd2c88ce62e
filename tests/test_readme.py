"""Every example in the README is run, and prints what the README says."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

import pytest

from loopsched.cli import run

README = Path(__file__).parent.parent / "README.md"
TEXT = README.read_text(encoding="utf-8")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)


def examples() -> list[tuple[str, str]]:
    """Commands of console blocks, each with the output that follows it."""
    found = []
    for block in blocks("console"):
        for example in block.removeprefix("$ ").split("\n$ "):
            command, _, output = example.partition("\n")
            while command.endswith("\\"):
                more, _, output = output.partition("\n")
                command = command[:-1] + more.strip()
            found.append((command, output))
    return found


@pytest.mark.parametrize(("command", "output"), examples())
def test_commands_print_what_the_readme_says(
    command: str,
    output: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    name, *words = shlex.split(command, comments=True)
    assert name == "loopsched"
    assert run(words) == 0
    printed = capsys.readouterr().out
    checker = doctest.OutputChecker()
    example = doctest.Example(command, output)
    assert checker.check_output(output, printed, FLAGS), checker.output_difference(
        example, printed, FLAGS
    )


def test_python_prints_what_the_readme_says() -> None:
    source = "\n".join(blocks("python"))
    test = doctest.DocTestParser().get_doctest(source, {}, "README", str(README), 0)
    assert test.examples
    report: list[str] = []
    doctest.DocTestRunner(optionflags=FLAGS).run(test, out=report.append)
    assert not report, "".join(report)


def test_the_main_command_names_a_file_that_is_there() -> None:
    (command,) = re.findall(r"<!-- main command -->\n```sh\n(.*)\n```", TEXT)
    assert (README.parent / shlex.split(command)[-1]).is_file()
