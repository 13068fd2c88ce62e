"""Rows and result files: strict, complete at every moment, readable again."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path

import pytest

from loopsched.base.errors import InputError
from loopsched.base.rows import FORMATS, Format, ResultFile, Row, RowWriter, json_text, read_rows

ROWS: list[Row] = [
    {"problem": "a, with a comma", "time_s": 0.5, "proven": True, "levels": [{"name": "L2"}]},
    {"problem": "Größe", "time_s": math.inf, "proven": False, "levels": []},
]


def written(form: Format, rows: list[Row]) -> str:
    stream = io.StringIO()
    with RowWriter(stream, form) as writer:
        for row in rows:
            writer.write(row)
    return stream.getvalue()


def test_json_is_one_list_and_infinite_is_null() -> None:
    rows = json.loads(written("json", ROWS))
    assert [row["problem"] for row in rows] == ["a, with a comma", "Größe"]
    assert rows[0]["levels"] == [{"name": "L2"}]
    assert rows[1]["time_s"] is None


def test_json_without_rows_is_an_empty_list() -> None:
    assert json.loads(written("json", [])) == []


def test_jsonl_is_one_object_a_line() -> None:
    lines = written("jsonl", ROWS).splitlines()
    assert [json.loads(line)["proven"] for line in lines] == [True, False]


@pytest.mark.parametrize("start", ["=", "+", "-", "@", " =", "\t@"])
def test_no_name_in_csv_is_a_formula(start: str) -> None:
    name = f"{start}cmd|' /c calc'!A1"
    (row,) = csv.DictReader(io.StringIO(written("csv", [{"problem": name, "n": -1}])))
    assert row == {"problem": f"'{name}", "n": "-1"}


def test_csv_quotes_and_leaves_nested_values_out() -> None:
    rows = list(csv.DictReader(io.StringIO(written("csv", ROWS))))
    assert rows[0] == {"problem": "a, with a comma", "time_s": "0.5", "proven": "True"}
    assert [row["problem"] for row in rows] == ["a, with a comma", "Größe"]
    assert written("csv", [{"n": 1, "sums": {"a": 2}, "list": [3]}]) == "n\n1\n"


def test_whole_numbers_stay_exact() -> None:
    assert json_text({"space_size": 10**30}) == '{"space_size": 1' + "0" * 30 + "}"


@pytest.mark.parametrize("form", FORMATS)
def test_an_interruption_keeps_what_was_written(form: Format, tmp_path: Path) -> None:
    path = tmp_path / f"rows.{form}"
    with pytest.raises(KeyboardInterrupt), ResultFile(path) as file:
        file.write(ROWS[0])
        raise KeyboardInterrupt
    if form == "csv":
        assert path.read_text(encoding="utf-8").splitlines()[1].endswith(",0.5,True")
    else:
        assert [row for _, row in read_rows(path)] == [ROWS[0]]
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_every_row_is_on_disk_before_the_next(form: Format, tmp_path: Path) -> None:
    path = tmp_path / f"rows.{form}"
    with ResultFile(path) as file:
        file.write(ROWS[0])
        first = path.read_text(encoding="utf-8")
        assert first.endswith("\n")
        file.write(ROWS[1])
        assert path.read_text(encoding="utf-8").startswith(first)


def test_a_json_file_has_its_name_only_when_complete(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    with ResultFile(path) as file:
        file.write(ROWS[0])
        assert not path.exists()
    assert [row for _, row in read_rows(path)] == [ROWS[0]]


@pytest.mark.parametrize("name", ["rows.txt", "rows", "rows.jsnl"])
def test_unknown_suffix_names_those_allowed(name: str, tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"unknown suffix .*allowed: \.json \.jsonl \.csv \.parquet"
    ):
        ResultFile(tmp_path / name)


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").mkdir()
    with pytest.raises(InputError, match=r"rows.csv: cannot be written: is a folder"):
        ResultFile(tmp_path / "rows.csv")


def test_nothing_is_touched_before_the_first_row(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("precious", encoding="utf-8")
    with ResultFile(path):
        pass
    assert path.read_text(encoding="utf-8") == "precious"


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none/rows.csv: cannot be written: no such folder"):
        ResultFile(tmp_path / "none" / "rows.csv")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{}\n{", r"bad\.jsonl: line 2: Expecting .*; is it a result file\?"),
        (b"\n[1", r"bad\.jsonl: line 2: Expecting ',' delimiter"),
        (b"[1]", r"bad\.jsonl: row 1 is not an object"),
        (b"{}\n3", r"bad\.jsonl: row 2 is not an object"),
        (b"\xff\x00", r"bad\.jsonl: is not UTF-8 text: byte 0 is 0xff"),
        (b"[" * 100_000, r"bad\.jsonl: line 1: "),
        (b'{"n": 1' + b"0" * 5000 + b"}", r"bad\.jsonl: line 1: "),
    ],
)
def test_a_broken_file_is_one_message(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        list(read_rows(path))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"x\.jsonl: no such file"):
        list(read_rows(tmp_path / "x.jsonl"))
