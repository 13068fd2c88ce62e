"""Rows as Parquet files and data frames keep every value, under names that SQL can use."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import duckdb
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopsched import gemm, load_arch, parse_schedule, search
from loopsched.arrow_rows import arrow_table, read_parquet, write_parquet
from loopsched.cli import run
from loopsched.errors import InputError, MissingExtraError
from loopsched.results import ResultFile, json_text, read_rows, result_rows

TITAN_V = load_arch("titan_v")
VALUES = st.one_of(
    st.none(), st.integers(-(2**70), 2**70), st.floats(allow_nan=True), st.booleans(), st.text()
)


@pytest.fixture(scope="module")
def rows() -> list[dict[str, object]]:
    problems = [gemm(m=64, n=64, k=k) for k in (32, 64)]
    return [row for one in problems for row in result_rows(search(one, TITAN_V, top=2))]


def test_a_file_holds_what_the_rows_say(rows: list[dict[str, object]], tmp_path: Path) -> None:
    with ResultFile(tmp_path / "rows.parquet") as file:
        for row in rows:
            file.write(row)
    read = [row for _, row in read_rows(tmp_path / "rows.parquet")]
    # As strict JSON has them: tuples are lists, what is not finite is null.
    expected = [json.loads(json_text(row)) for row in rows]
    assert read == expected
    assert not list(tmp_path.glob("*.part"))


@given(st.data())
def test_any_column_is_kept(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from([st.integers(-(2**70), 2**70), st.floats(), st.text()]))
    values = data.draw(st.lists(st.none() | kind, min_size=1, max_size=5))
    found = arrow_table([{"a": value, "b": [{"c": value}]} for value in values]).to_pylist()
    for row, value in zip(found, values, strict=True):
        is_lost = isinstance(value, float) and not abs(value) < float("inf")
        assert row["a"] == (None if is_lost else value) or row["a"] == float(value)
        if isinstance(value, str):
            assert row["b"] == [{"c": value}]


def test_sql_reads_levels(rows: list[dict[str, object]], tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    write_parquet(rows, path)
    flat = duckdb.sql(
        f"select problem, level.name, level.promised_bytes from "
        f"(select problem, unnest(levels) as level from '{path}' where rank = 1) order by all"
    ).fetchall()
    expected = sorted(
        (row["problem"], level["name"], level["promised_bytes"])
        for row in rows
        if row["rank"] == 1
        for level in row["levels"]
    )
    assert flat == expected


def test_types_of_columns(rows: list[dict[str, object]], tmp_path: Path) -> None:
    write_parquet(rows, tmp_path / "rows.parquet")
    schema = pyarrow.parquet.read_schema(tmp_path / "rows.parquet")
    assert str(schema.field("dram_bytes").type) == "int64"
    assert str(schema.field("time_s").type) == "double"
    assert str(schema.field("energy_pj").type) == "double"  # the machine gives no energies
    assert str(schema.field("proven").type) == "bool"


def test_an_interruption_keeps_rows(rows: list[dict[str, object]], tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    with pytest.raises(KeyboardInterrupt), ResultFile(path) as file:
        file.write(rows[0])
        raise KeyboardInterrupt
    assert [row["schedule"] for row in read_parquet(path)] == [rows[0]["schedule"]]


def test_nothing_is_touched_without_rows(tmp_path: Path) -> None:
    with ResultFile(tmp_path / "rows.parquet"):
        pass
    assert not list(tmp_path.iterdir())


def test_the_command_saves_and_shows_parquet(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "found.parquet")
    assert run(["search", "gemm:m=64,n=64,k=64", "--out", path]) == 0
    capsys.readouterr()
    assert run(["show", path]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("m64 n64 k64 on titan_v: ")
    assert run(["export", path, "--to", "timeloop"]) == 0
    assert "target: SM" in capsys.readouterr().out


def test_bad_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    with pytest.raises(InputError, match=r"rows\.parquet: cannot be read: no such file"):
        read_parquet(path)
    path.write_bytes(b"PAR1 and no more")
    with pytest.raises(InputError, match=r"rows\.parquet: not a Parquet file: "):
        read_parquet(path)


def test_a_missing_library_is_named_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match="extra 'parquet'"):
        ResultFile(tmp_path / "rows.parquet")


def test_a_schedule_of_yours_as_rows() -> None:
    # Floats that are whole stay floats, whole numbers stay whole.
    table = arrow_table([{"a": 1.0, "b": 1}, {"a": 2.5, "b": None}])
    assert [str(field.type) for field in table.schema] == ["double", "int64"]
    assert parse_schedule("M:2 N:2 K:2", gemm(m=2, n=2, k=2))
