"""Options that commands share: each reaches the goal of a search; no file is written twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from loopsched.cli import run
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
