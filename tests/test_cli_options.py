"""Options that commands share: each reaches the goal of a search; no file is written twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from loopsched.cli import cli, run
from loopsched.cli.options import goal_of
from loopsched.scheduler.constraints import Constraints


def test_every_option_reaches_the_goal() -> None:
    plain = {"objective": "edp", "strategy": "local", "value": "low", "seed": 3, "samples": 7}
    plain |= {"gap": 0.5, "budget": 99}
    bounds = {"tiles": "divisors", "fix": ("M@L2<=8",), "spatial": "M,N", "order": ("K>M",)}
    goal = goal_of(plain | bounds | {"prefix": "M:8", "time_limit": 2.5}, top=4)
    assert {name: getattr(goal, name) for name in plain} == plain
    assert (goal.top, goal.time_limit_s) == (4, 2.5)
    assert goal.constraints == Constraints(
        "divisors", (("M", "L2", 1, 8),), ("M", "N"), (("K", "M"),), "M:8"
    )
    free = dict.fromkeys(("spatial", "prefix")) | {"tiles": "all", "fix": (), "order": ()}
    assert goal_of(free).constraints == Constraints()


@pytest.mark.parametrize("second", ["rows.svg", "./rows.svg", "link.svg"])
def test_a_file_belongs_to_one_option(
    second: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link.svg").symlink_to(tmp_path / "rows.svg")
    plots = ["--plot", "rows.svg", "--plot-bytes", second]
    assert run(["search", "gemm:m=8,n=8,k=8", *plots]) == 3
    assert f"{Path(second)}: would be written twice" in capsys.readouterr().err
    assert not (tmp_path / "rows.svg").exists()


def _commands(
    group: click.Group, words: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    with click.Context(group) as context:
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            assert command is not None
            yield (*words, name), command
            if isinstance(command, click.Group):
                yield from _commands(command, (*words, name))


COMMANDS = dict(_commands(cli))


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_help_fits_80_columns_and_names_values_one_way(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run([*words, "--help"]) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    # What click writes where nothing says what a value is.
    assert not {"INTEGER", "FLOAT", "TEXT", "PATH", "RANGE"} & set(text.split())


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--time-limit", "abc", "'abc' is not a number of seconds above 0"),
        ("--time-limit", "0", "'0' is not a number of seconds above 0"),
        ("--time-limit", "nan", "'nan' is not a number of seconds above 0"),
        ("--gap", "-1", "'-1' is not a number >= 0"),
        ("--gap", "inf", "'inf' is not a number >= 0"),
        ("--top", "abc", "'abc' is not a whole number >= 1"),
        ("--top", "0", "'0' is not a whole number >= 1"),
        ("--seed", "1.5", "'1.5' is not a whole number"),
        ("--element-bytes", "5000", "'5000' is not a whole number from 1 to 1024"),
        ("--element-bytes", "int9", "a number of bytes or a type is needed; did you mean 'int8'"),
    ],
)
def test_a_refused_number_leads_to_those_allowed(
    option: str, value: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["search", "gemm:m=8,n=8,k=8", option, value]) == 2
    assert said in capsys.readouterr().err
