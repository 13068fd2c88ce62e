"""What a command line names, as it is loaded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from loopsched.base.errors import InputError, ScheduleError
from loopsched.cli import run
from loopsched.cli.inputs import Inputs, schedule_from
from loopsched.nests.nest import Schedule
from loopsched.nests.schedule_file import schedule_to_dict
from loopsched.problems.builders import gemm
from loopsched.problems.problem import Problem


def test_results_are_no_workload(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(tmp_path / "found.jsonl")
    assert run(["search", "gemm:m=8,n=8,k=8", "--out", file]) == 0
    for given in ("whole", "problem"):
        with pytest.raises(InputError, match="saved results, where a workload is needed"):
            getattr(Inputs(file), given)
    for words in (["workloads"], ["kernel", "library"], ["pick"]):
        assert run([*words, file]) == 3
        assert f"'loopsched show {file}' shows their loops" in capsys.readouterr().err
    for words in (["show", file], ["export", "--to", "c", file]):
        assert run([*words, "M:8 N:8 K:8"]) == 2
        wanted = f"{file} holds saved results, which have their schedules; leave out SCHEDULE\n"
        assert capsys.readouterr().err.endswith(wanted)


def test_a_list_of_layers_is_told_from_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "layers.json"
    for text in ("[]", '[{"op": "gemm", "m": 4, "n": 4, "k": 4}]'):
        file.write_text(text)
        for command in ("search", "show"):
            assert run([command, str(file)]) == 3
            wanted = f'{file}: a list; a workload is an object: {{"layers": [...]}}'
            assert wanted in capsys.readouterr().err


def test_proofs_are_told_from_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(tmp_path / "best.jsonl")
    assert run(["search", "gemm:m=8,n=8,k=8", "--out", file]) == 0
    assert run(["verify", file]) == 3
    wanted = f"{file}: saved results; 'loopsched search --proof FILE' writes proofs\n"
    assert capsys.readouterr().err.endswith(wanted)


def test_other_files_than_proofs_get_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "caches.yaml"
    file.write_text("name: caches\nlevels: []\n")
    assert run(["verify", str(file)]) == 3
    wanted = f"Error: {file}: not proofs; 'loopsched search --proof FILE' writes them\n"
    assert capsys.readouterr().err == wanted


def test_a_list_of_numbers_is_no_results(tmp_path: Path) -> None:
    file = tmp_path / "bad.json"
    for text, meant in (("[1, 2", "not JSON"), ("[1, 2]", "layers"), ("[ {", "saved results")):
        file.write_text(text)
        with pytest.raises(InputError, match=meant):
            _ = Inputs(str(file)).whole


def test_layers_are_chosen_and_named() -> None:
    given = Inputs("alexnet", ("fc6",))
    assert [one.name for one in given.chosen.workload.problems] == ["fc6"]
    assert len(given.whole.workload.problems) > 1
    assert given.name == "alexnet"
    assert Inputs("gemm:m=4,n=3,k=2").name == ""


def test_schedules_come_from_texts_and_files(tmp_path: Path) -> None:
    problem = gemm(m=4, n=3, k=2)
    nest = schedule_from("M:4 N:3 K:2", problem)
    saved, written = tmp_path / "nest.json", tmp_path / "nest.txt"
    saved.write_text(json.dumps(schedule_to_dict(nest)), encoding="utf-8")
    written.write_text("n:4 k:3 c:2", encoding="utf-8")
    assert read(f"@{saved}", problem) == nest
    assert read(f"@{written}", problem, "yalsa") == nest
    assert read(f"@{written}", problem) is None  # a product has no C


def read(text: str, problem: Problem, dialect: str = "loopsched") -> Schedule | None:
    try:
        return schedule_from(text, problem, dialect)
    except ScheduleError:
        return None
