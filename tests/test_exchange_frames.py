"""Rows as Parquet files and data frames keep every value, under names that SQL can use."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import duckdb
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopsched import gemm, load_arch, parse_schedule, search
from loopsched.base.arrow_rows import arrow_table, read_parquet, write_parquet
from loopsched.base.errors import InputError, MissingExtraError
from loopsched.base.rows import ResultFile, json_text, read_rows
from loopsched.base.units import percent, scaled
from loopsched.cli import run
from loopsched.scheduler.rows import result_rows

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
        if isinstance(value, float) and not abs(value) < float("inf"):
            assert row["a"] is None
        else:
            assert row["a"] == value or row["a"] == float(value)
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
    with pytest.raises(InputError, match=r"rows\.parquet: no such file"):
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


def test_floats_stay_floats_and_whole_numbers_whole() -> None:
    table = arrow_table([{"a": 1.0, "b": 1}, {"a": 2.5, "b": None}])
    assert [str(field.type) for field in table.schema] == ["double", "int64"]
    # Beyond floats, too: not finite, so null.
    assert arrow_table([{"n": 10**400}, {"n": 1}]).to_pylist() == [{"n": None}, {"n": 1.0}]
    # A list with one that is beyond 64 bits with a sign is of floats, too.
    table = arrow_table([{"n": [2**70, 1], "m": 2**63, "w": 2**63 - 1}])
    types = [str(field.type).split()[-1].rstrip(">") for field in table.schema]
    assert types == ["double", "double", "int64"]


def test_what_has_no_column_is_refused_whole(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="column 'a' has values of several kinds"):
        write_parquet([{"a": 1}, {"a": "x"}], tmp_path / "rows.parquet")
    with pytest.raises(InputError, match=r"rows\.parquet: cannot be written: .*struct"):
        write_parquet([{"a": {}}], tmp_path / "rows.parquet")
    assert not list(tmp_path.iterdir())


class TestFrames:
    def test_pandas_and_polars_hold_the_same(self) -> None:
        from loopsched.exchange.frames import to_pandas, to_polars

        found = search(gemm(m=64, n=64, k=64), TITAN_V, top=3)
        one, other = to_pandas(found), to_polars(found)
        assert list(one.columns) == other.columns
        assert one["schedule"].tolist() == other["schedule"].to_list()
        promised = [level.promised_bytes for level in found.evaluation.levels]
        assert [one[f"{name}.promised_bytes"][0] for name in ("L2", "L1")] == promised
        assert str(one["dram_bytes"].dtype) == "int64"
        # No energy is known; the column still takes part in sums.
        assert str(one["energy_pj"].dtype) == "float64"
        assert str(other["energy_pj"].dtype) == "Float64"

    def test_rows_with_brackets_spread(self, rows: list[dict[str, object]]) -> None:
        from loopsched.exchange.frames import to_polars

        frame = to_polars(rows)
        assert frame["L2.bytes.low"][0] == rows[0]["levels"][0]["bytes"]["low"]
        nested = to_polars(rows, flat=False)
        assert nested["levels"][0][0]["name"] == "L2"

    def test_what_has_rows(self) -> None:
        from loopsched import (
            Workload,
            buffer_arch,
            evaluate,
            load_network,
            pareto,
            sensitivity,
            traffic_curve,
        )
        from loopsched.exchange.frames import rows_of, to_pandas

        problem = gemm(m=8, n=4, k=2)
        workload = Workload("mine", (problem,), (3,))
        assert rows_of(workload) == [
            {
                "layer": 0,
                "count": 3,
                "problem": "m8 n4 k2",
                "kind": "gemm",
                "macs": 64,
                "bytes": 4 * (16 + 8 + 32),
                "sizes": {"M": 8, "N": 4, "K": 2},
            }
        ]
        arch = buffer_arch(capacity_bytes=64)
        score = evaluate(problem, parse_schedule("M:8 N:4 K:2", problem), arch)
        assert rows_of([score, score])[1]["dram_bytes"] == score.dram_bytes
        curve = traffic_curve(problem)
        assert to_pandas(curve)["dram_bytes"].tolist() == list(curve.dram_bytes)
        fronts = pareto(problem, arch)
        assert to_pandas(fronts)["capacity_bytes"].tolist() == [
            one.capacity_bytes for one in fronts
        ]
        network = load_network("alexnet")
        assert sum(row["count"] for row in rows_of(network)) == len(network.layers)
        found = sensitivity(workload, arch, {"buffer.capacity": [2]})
        assert len(to_pandas(found)) == len(found.rows)
        with pytest.raises(InputError, match="a float has no rows"):
            rows_of(1.5)
        with pytest.raises(InputError, match="a str has no rows"):
            rows_of("m8 n4 k2")

    @pytest.mark.parametrize("library", ["pandas", "polars"])
    def test_missing_libraries(self, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
        from loopsched.exchange import frames

        monkeypatch.setitem(sys.modules, library, None)
        with pytest.raises(MissingExtraError, match=f"need {library}"):
            getattr(frames, f"to_{library}")([{"a": 1}])


class _Tags(HTMLParser):
    """Checks that tags are closed in order, and keeps the text of cells."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.cells: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "br":
            self.open.append(tag)
        if tag == "td":
            self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "td":
            self.cells[-1] += data


class TestNotebook:
    def test_a_result(self) -> None:
        found = search(gemm(m=64, n=64, k=64), TITAN_V, top=2)
        cells = _Tags(found._repr_html_()).cells
        assert "DRAM - L2" in cells
        assert str(found.alternatives[0].schedule) in cells
        assert str(found.schedule) in unescape(found._repr_html_())
        assert "proven best" in found._repr_html_()
        assert set(_Tags(found.evaluation._repr_html_()).cells) <= set(cells)
        for level in found.evaluation.levels:
            at = cells.index(f"{level.outer} - {level.name}")
            moved = level.promised_read_bytes, level.promised_write_bytes
            assert cells[at + 1 : at + 3] == [scaled(size, "B") for size in moved]
        assert cells[cells.index(str(found.alternatives[0].schedule)) - 1] == "2"
        certificate = replace(found.certificate, proven=False, lower_bound=1e-9)
        text = replace(found, certificate=certificate)._repr_html_()
        assert f"gap {percent(certificate.gap)}" in text
        assert "proven best" not in text

    def test_a_schedule(self) -> None:
        nest = parse_schedule("M:9@SM N:4 K:4 M:2", gemm(m=9, n=4, k=4))
        cells = _Tags(nest._repr_html_()).cells
        assert cells[:5] == ["M", "9", "2", "5", "SM"]
        assert cells[-5:] == ["M", "2", "1", "2", "temporal"]

    def test_a_machine_and_a_workload(self) -> None:
        from loopsched import load_workload

        assert "4.5 MiB" in _Tags(TITAN_V._repr_html_()).cells
        workload = load_workload("alexnet")
        cells = _Tags(workload._repr_html_()).cells
        assert [cells[i] for i in range(1, len(cells), 6)] == [p.name for p in workload.problems]

    def test_studies(self) -> None:
        from loopsched import (
            Workload,
            buffer_arch,
            sensitivity,
            traffic_curve,
        )
        from loopsched.show.notebook import rows_html
        from loopsched.validation.compare import Validation
        from loopsched.validation.times import TimeValidation

        problem = gemm(m=8, n=4, k=2)
        curve = traffic_curve(problem)
        cells = _Tags(curve._repr_html_()).cells
        assert cells[:3] == ["least", "12 B", f"{curve.dram_bytes[0]} B"]
        assert cells[3] == f"{2 * problem.macs / curve.dram_bytes[0]:.4f}"
        nested = rows_html("mine", [{"a": 1, "levels": [{"b": 2}], "sums": {"c": 3}}])
        assert _Tags(nested).cells == ["1"]
        arch = buffer_arch(capacity_bytes=64)
        found = sensitivity(Workload("mine", (problem,)), arch, {"buffer.capacity": [2]})
        assert "buffer.capacity" in _Tags(found._repr_html_()).cells
        times = TimeValidation(({"name": "<a>", "error": 0.5},), {"file": "mine"}, ())
        assert _Tags(times._repr_html_()).cells == ["<a>", "0.5"]
        rows = {"m": 8, "error": None, "apart": None}, {"m": 25088, "error": 0.5, "apart": ""}
        counted = Validation(rows, {"arch": "h200"})
        assert _Tags(counted._repr_html_()).cells == ["8", "-", "25,088", "0.5"]

    def test_text_is_escaped_and_long_tables_end(self) -> None:
        from loopsched import Workload

        odd = gemm(m=2, n=2, k=2, name="<b>&")
        text = Workload("<script>", (odd,))._repr_html_()
        assert "<script>" not in text
        assert "<b>&" not in _Tags(text).rawdata
        assert "&lt;b&gt;&amp;" in text
        many = Workload("many", tuple(gemm(m=m + 1, n=1, k=1) for m in range(130)))
        assert "and 30 more" in _Tags(many._repr_html_()).cells
