"""``search``, ``space``, ``show`` and ``compare`` where they search."""

from __future__ import annotations

import csv
import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from loopsched import __version__
from loopsched.base.units import scaled
from loopsched.cli import run
from loopsched.machines.arch_file import load_arch
from loopsched.models.score import evaluate
from loopsched.nests.notation import parse_schedule
from loopsched.network.text import load_workload
from loopsched.problems.builders import gemm
from loopsched.scheduler import search as search_one

Rows = list[dict[str, Any]]

NEEDED = {
    *("problem", "schedule", "time_s", "bound_by", "dram_bytes", "lower_bound", "proven"),
    *("required_dram_bandwidth_bytes_per_s", "space_size"),
    *("version", "seed", "command", "arch_digest", "workload_digest"),
}
SOME = ["vgg16", "-l", "0", "-l", "fc8"]
SMALL = "gemm:m=12,n=10,k=7"


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")


@pytest.fixture
def rows(capsys: pytest.CaptureFixture[str]) -> Any:
    def call(*words: str) -> Rows:
        assert run([*words, "--format", "json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert isinstance(found, list)
        return found

    return call


class TestSearch:
    def test_rows_say_what_the_library_says(self, rows: Any) -> None:
        (row,) = rows("search", "gemm:m=1760,n=128,k=1760")
        problem, arch = gemm(m=1760, n=128, k=1760), load_arch("titan_v")
        result = search_one(problem, arch)
        assert set(row) >= NEEDED
        assert row["schedule"] == str(result.schedule)
        assert row["time_s"] == result.evaluation.time_s
        assert row["proven"] is True
        assert row["gap"] == 0
        assert row["space_size"] == result.certificate.space_size
        assert row["arch_digest"] == arch.digest
        assert row["version"] == __version__
        assert row["command"] == "loopsched search gemm:m=1760,n=128,k=1760 --format json"
        again = evaluate(problem, parse_schedule(row["schedule"], problem), arch)
        assert (row["dram_bytes"], row["bound_by"]) == (again.dram_bytes, again.bound_by)

    def test_table(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["search", *SOME]) == 0
        text = capsys.readouterr().out
        assert max(map(len, text.splitlines())) <= 80
        assert "2 problems on titan_v, fp32: " in text
        assert "Proven best: all" in text

    def test_sums_count_best_schedules_as_often_as_layers_occur(
        self, rows: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        path = tmp_path / "two.json"
        sizes = [{"m": 24, "n": 20, "k": 16, "count": 3}, {"m": 36, "n": 10, "k": 8, "count": 2}]
        path.write_text(json.dumps({"layers": [{"op": "gemm", **size} for size in sizes]}))
        found = rows("search", str(path), "--top", "2")
        assert [(row["count"], row["rank"]) for row in found] == [(3, 1), (3, 2), (2, 1), (2, 2)]
        assert run(["search", str(path), "--top", "2"]) == 0
        text = " ".join(capsys.readouterr().out.split())
        best = [row for row in found if row["rank"] == 1]
        total_s = sum(row["count"] * row["time_s"] for row in best)
        moved = sum(row["count"] * row["dram_bytes"] for row in best)
        assert (
            f"2 problems (5 with repetitions) on titan_v, fp32: {scaled(total_s, 's')} in total"
            in text
        )
        assert f"; {scaled(moved, 'B')} of DRAM traffic" in text
        assert all(f" {at}.{rank} m" in f" {text}" for at in (0, 1) for rank in (1, 2))

    def test_what_ended_a_search_is_said(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["search", "gemm:m=700,n=500,k=300", "--budget", "1"]) == 0
        text = " ".join(capsys.readouterr().out.split())
        assert "Stopped early: 1, budget used up (--budget)." in text

    def test_what_is_proven_was_not_stopped_early(self, capsys: pytest.CaptureFixture[str]) -> None:
        words = ["search", "gemm:m=64,n=64,k=64", "--gap", "0.5"]
        assert run([*words, "--format", "json"]) == 0
        (row,) = json.loads(capsys.readouterr().out)
        assert (row["stopped"], row["proven"]) == ("gap", True)
        assert run(words) == 0
        text = capsys.readouterr().out
        assert "Proven best: all" in text
        assert "Stopped" not in text

    @pytest.mark.parametrize(
        ("options", "stopped", "said"),
        [
            (["--fix", "M@L2<=16", "--fix", "K@L1=3"], "constraints", "covers schedules that"),
            (["--strategy", "random", "--samples", "9"], "samples", "only samples were tried"),
            (["--value", "point"], "bound", "no schedule that was found meets the bound"),
        ],
    )
    def test_why_there_is_no_proof_is_said(
        self,
        options: list[str],
        stopped: str,
        said: str,
        rows: Any,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        words = ["search", "gemm:m=512,n=512,k=512", *options]
        (row,) = rows(*words)
        assert (row["stopped"], row["proven"]) == (stopped, False)
        assert row["objective_value"] == pytest.approx(row["lower_bound"] * (1 + row["gap"]))
        assert run(words) == 0
        text = " ".join(capsys.readouterr().out.split())
        assert "gap: how far a schedule may be above the optimum, as a share of the bound." in text
        assert f"{said}" in text.partition("Not proven: 1; ")[2]

    def test_every_schedule_scored_is_no_proof(
        self, rows: Any, capsys: pytest.CaptureFixture[str]
    ) -> None:
        words = ["search", "gemm:m=4,n=3,k=2", "-s", "exhaustive"]
        (row,) = rows(*words)
        assert (row["stopped"], row["listed"], row["proven"]) == ("listed", True, False)
        assert run(words) == 0
        text = " ".join(capsys.readouterr().out.split())
        assert "(2,247 schedules scored). gap -: no bound is known. Not proven: 1; every" in text
        assert run(["search", "gemm:m=4,n=3,k=2"]) == 0
        assert "gap -" not in capsys.readouterr().out

    def test_what_was_sought_is_shown(self, rows: Any, capsys: pytest.CaptureFixture[str]) -> None:
        words = ["search", "gemm:m=1760,n=128,k=1760", "-o", "dram_bytes", "--value", "point"]
        words += ["--prefix", "K:1760 M:1760 N:128 K:300 N:64"]
        (row,) = rows(*words)
        assert row["objective_value"] == row["levels"][0]["bytes"]["point"] < row["dram_bytes"]
        assert run(words) == 0
        text = " ".join(capsys.readouterr().out.split())
        assert "problem point DRAM time" in text
        assert scaled(row["objective_value"], "B") in text
        assert "for the least DRAM traffic with estimated traffic (point): promised " in text

    def test_each_problem_has_its_proof(self, tmp_path: Path) -> None:
        path = tmp_path / "proofs.jsonl"
        assert run(["search", *SOME, "--proof", str(path)]) == 0
        assert len(path.read_text().splitlines()) == 2
        likely = ["--proof", str(tmp_path / "more.jsonl"), "--value", "point"]
        assert run(["search", SMALL, *likely]) == 3

    def test_layers_keep_their_numbers(self, rows: Any) -> None:
        names = [problem.name for problem in load_workload("vgg16").problems]
        found = rows("search", *SOME)
        assert [(row["layer"], row["problem"]) for row in found] == [
            (0, names[0]),
            (names.index("fc8"), "fc8"),
        ]

    def test_jobs_change_nothing(self, rows: Any) -> None:
        one, two = (rows("search", *SOME, "--jobs", jobs) for jobs in "12")
        assert one == two == rows("search", *SOME)

    def test_top_is_ranked(self, rows: Any) -> None:
        found = rows("search", SMALL, "--top", "3")
        assert [row["rank"] for row in found] == [1, 2, 3]
        times = [row["time_s"] for row in found]
        assert times == sorted(times)
        assert len({row["schedule"] for row in found}) == 3

    @pytest.mark.parametrize("strategy", ["random", "local"])
    def test_a_seed_repeats_and_nothing_beats_exact(self, strategy: str, rows: Any) -> None:
        words = ["search", SMALL, "-s", strategy, "--samples", "40", "--seed", "7"]
        first, second = rows(*words), rows(*words)
        assert first == second
        (exact,) = rows("search", SMALL)
        assert exact["time_s"] <= first[0]["time_s"]

    def test_samples_have_no_nodes(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["search", SMALL, "-s", "random", "--samples", "40"]) == 0
        text = " ".join(capsys.readouterr().out.split())
        assert "(40 schedules scored)." in text
        assert "Bound by compute: 1 of 1. " in text

    def test_objective(self, rows: Any) -> None:
        (least,) = rows("search", "gemm:m=700,n=500,k=300", "-o", "dram_bytes")
        assert least["lower_bound"] == least["dram_bytes"]

    @pytest.mark.parametrize("objective", ["energy", "edp"])
    def test_what_was_sought_is_shown_at_80_columns(
        self, objective: str, rows: Any, capsys: pytest.CaptureFixture[str]
    ) -> None:
        words = ["search", "gemm:m=64,n=48,k=32", "-a", "diannao", "--element-bytes", "2"]
        (row,) = rows(*words, "-o", objective)
        energy = row["energy_pj"] * 1e-12
        assert run([*words, "-o", objective]) == 0
        text = capsys.readouterr().out
        assert max(map(len, text.splitlines())) <= 80
        cells = text.splitlines()[2]
        assert scaled(energy, "J") in cells
        if objective == "edp":
            assert scaled(energy * row["time_s"], "J s") in cells
        text = " ".join(text.split())
        assert "on diannao, fp16, for the least energy" in text
        assert f" and {scaled(energy, 'J')} in total" in text

    def test_columns_left_out_and_the_data_type_are_said(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert run(["search", SMALL]) == 0
        text = capsys.readouterr().out
        assert "(left out at 80 columns: space)" in text
        assert "1 problem on titan_v, fp32: " in text
        monkeypatch.setenv("COLUMNS", "200")
        assert run(["search", SMALL]) == 0
        assert "left out" not in capsys.readouterr().out

    def test_constraints_are_kept(self, rows: Any) -> None:
        words = ["--tiles", "divisors", "--spatial", "M", "--fix", "N@L1=5", "--order", "K>M"]
        (row,) = rows("search", SMALL, *words)
        loops = [loop.partition("@") for loop in row["schedule"].split()]
        assert {loop.partition(":")[0] for loop, at, _ in loops if at} <= {"M"}
        extents = {loop for loop, _, _ in loops}
        assert all({"M": 12, "N": 10, "K": 7}[x[0]] % int(x[2:]) == 0 for x in extents)
        assert row["space_size"] < rows("search", SMALL)[0]["space_size"]

    def test_nothing_fits_is_4(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["search", SMALL, "--tiles", "divisors", "--fix", "M@L1=5"]) == 4
        error = capsys.readouterr().err
        assert error.startswith("Error: ")
        assert "M" in error

    @pytest.mark.parametrize(
        ("words", "status"),
        [
            (["--fix", "M=5"], 3),
            (["--fix", "Z@L1=5"], 3),
            (["--fix", "M@L9=5"], 3),
            (["--spatial", "Z"], 3),
            (["--order", "Z>M"], 3),
            (["--prefix", "Z:4"], 3),
            (["--out", "rows.txt"], 3),
            (["-o", "energy"], 3),
            (["-s", "quick"], 2),
            (["--top", "0"], 2),
        ],
    )
    def test_wrong_settings(
        self, words: list[str], status: int, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run(["search", SMALL, *words]) == status
        captured = capsys.readouterr()
        assert captured.out == ""
        assert "Error: " in captured.err


class TestOut:
    @pytest.mark.parametrize("suffix", ["jsonl", "json", "csv"])
    def test_a_file_holds_the_rows(
        self, suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = tmp_path / f"rows.{suffix}"
        assert run(["search", *SOME, "--out", str(path)]) == 0
        assert "2 problems" in capsys.readouterr().out
        text = path.read_text(encoding="utf-8")
        if suffix == "csv":
            found: Rows = list(csv.DictReader(text.splitlines()))
        elif suffix == "json":
            found = json.loads(text)
        else:
            found = [json.loads(line) for line in text.splitlines()]
        assert len(found) == 2
        assert all(set(row) >= NEEDED for row in found)

    def test_a_fault_of_every_problem_is_said_once(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run(["search", "vgg16", "--fix", "K@L9=64", "--fix", "C@L2=4"]) == 3
        told = capsys.readouterr().err
        assert told.count("'K@L9=64': unknown level or unit 'L9'") == 1
        assert "  'K@L9=64': unknown level" in told
        assert "  problem 'fc6' and 2 more: 'C@L2=4': unknown dim 'C'; allowed: M N K" in told
        assert "  problem 'conv1_1': 'C@L2=4': dim 'C' has size 3; 4 is above it" in told
        assert run(["search", SMALL, "--fix", "K@L9=4"]) == 3
        assert "constraints: problem 'm12 n10 k7': 'K@L9=4'" in capsys.readouterr().err

    def test_show_reads_it_back(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        path = str(tmp_path / "rows.jsonl")
        assert run(["search", *SOME, "--top", "2", "--out", path]) == 0
        capsys.readouterr()
        assert run(["show", path, "--layer", "fc8"]) == 0
        saved = capsys.readouterr().out
        assert run(["show", "vgg16", "--layer", "fc8"]) == 0
        assert saved == capsys.readouterr().out
        assert "output" in saved or "C[" in saved
        assert run(["show", path, "--layer", "0", "--rank", "2"]) == 0
        assert run(["show", path, "--layer", "0", "--rank", "3"]) == 3
        assert f"{path}: no schedule of rank 3; the highest is 2" in capsys.readouterr().err
        assert run(["show", path, "--layer", "fc8", "--layer", "03"]) == 3
        assert f"{path}: no layer 03; layers are numbered 0, 11" in capsys.readouterr().err
        for other in (["--arch", "v100"], ["--element-bytes", "2"]):
            assert run(["show", path, *other]) == 2
            assert f"Error: {other[0]} does not apply to {path}" in capsys.readouterr().err

    def test_sizes_of_elements_are_those_of_the_search(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = str(tmp_path / "rows.jsonl")
        assert run(["search", SMALL, "--element-bytes", "2", "--out", path]) == 0
        capsys.readouterr()
        assert run(["show", path]) == 0
        assert capsys.readouterr().out.startswith("m12 n10 k7")

    @pytest.mark.parametrize(
        ("key", "message"),
        [
            ("workload_digest", f"workload '{SMALL}' has changed"),
            ("arch_digest", "architecture 'titan_v' has changed"),
            ("schedule", "schedule"),
            ("workload", "no 'workload'; is it what 'search --out' has saved?"),
            ("layer", "'layer' is"),
        ],
    )
    def test_show_refuses_what_has_changed(
        self, key: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = tmp_path / "rows.jsonl"
        assert run(["search", SMALL, "--out", str(path)]) == 0
        row = json.loads(path.read_text(encoding="utf-8"))
        row[key] = [1]
        path.write_text(json.dumps(row), encoding="utf-8")
        capsys.readouterr()
        assert run(["show", str(path)]) == 3
        assert message in capsys.readouterr().err

    @pytest.mark.parametrize("form", ["table", "jsonl"])
    def test_an_interruption_keeps_what_is_done(
        self,
        form: str,
        tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        from loopsched import scheduler

        whole = scheduler.search_workload

        def interrupted(*given: Any, **settings: Any) -> Iterator[Any]:
            for number, result in enumerate(whole(*given, **settings)):
                if number == 1:
                    raise KeyboardInterrupt
                yield result

        monkeypatch.setattr(scheduler, "search_workload", interrupted)
        path = tmp_path / "rows.jsonl"
        assert run(["search", *SOME, "--out", str(path), "--format", form]) == 130
        captured = capsys.readouterr()
        assert captured.err.endswith("Error: interrupted\n")
        assert len(path.read_text(encoding="utf-8").splitlines()) == 1
        assert ("1 of 2 problems" if form == "table" else '"layer": 0') in captured.out

    @pytest.mark.parametrize("jobs", ["1", "2"])
    def test_a_real_interruption(self, jobs: str, tmp_path: Path) -> None:
        path = tmp_path / "rows.jsonl"
        command = [sys.executable, "-m", "loopsched", "search", "deepbench_gemm", "--jobs", jobs]
        command += ["--out", str(path), "--format", "jsonl"]
        with subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            start_new_session=True,
        ) as process:  # fmt: skip
            patience = time.monotonic() + 60
            while not (path.exists() and path.stat().st_size) and process.poll() is None:
                assert time.monotonic() < patience
                time.sleep(0.01)
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does: its children, too
            _, error = process.communicate(timeout=60)
        assert process.returncode == 130
        assert error.splitlines()[-1] == "Error: interrupted"
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        # The last may be the best so far of the problems that were under way.
        assert [row["layer"] for row in rows] == list(range(len(rows)))
        assert all(row["proven"] or row["stopped"] == "interrupt" for row in rows)

    def test_bad_input_leaves_an_old_file_alone(self, tmp_path: Path) -> None:
        path = tmp_path / "rows.jsonl"
        path.write_text("precious", encoding="utf-8")
        assert run(["search", "resnet51", "--out", str(path)]) == 3
        assert run(["search", SMALL, "--spatial", "Z", "--out", str(path)]) == 3
        assert path.read_text(encoding="utf-8") == "precious"


class TestSpace:
    def test_counts_what_exhaustive_would_score(self, rows: Any) -> None:
        (row,) = rows("space", "gemm:m=3,n=2,k=2")
        (searched,) = rows("search", "gemm:m=3,n=2,k=2", "-s", "exhaustive")
        assert row["space_size"] == searched["space_size"]
        assert searched["listed"] is True

    def test_constraints_shrink_it(self, rows: Any) -> None:
        (free,) = rows("space", SMALL)
        (bound,) = rows("space", SMALL, "--tiles", "divisors", "--spatial", "none")
        assert 0 < bound["space_size"] < free["space_size"]

    def test_table(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["space", "resnet50"]) == 0
        text = capsys.readouterr().out
        assert max(map(len, text.splitlines())) <= 80
        assert text.splitlines()[-1].endswith("schedules in total, about 5.116e+26.")
        assert run(["space", "gemm:m=8,n=8,k=8", "--prefix", "M:8 M:4"]) == 0
        assert capsys.readouterr().out.endswith("\n1,326 schedules in total.\n")


class TestBest:
    def test_compare_with_the_best(self, rows: Any) -> None:
        nest = "M:700 N:500 K:300"
        this, best = rows("compare", "gemm:m=700,n=500,k=300", nest)
        assert this["schedule"] == nest
        assert best["time_s"] < this["time_s"]
        assert any("units do useful work 1.2 % of the time" in text for text in this["reasons"])

    def test_every_best_schedule_is_shown(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["show", *SOME]) == 0
        text = capsys.readouterr().out
        assert text.count(" on titan_v: ") == 2


def test_the_seed_of_hashing_changes_nothing() -> None:
    command = [sys.executable, "-m", "loopsched", "search", *SOME, "--format", "jsonl"]
    outputs = {
        subprocess.run(
            command,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in "01"
    }
    assert len(outputs) == 1
    assert all(math.isfinite(json.loads(line)["time_s"]) for line in outputs.pop().splitlines())


def test_schedules_that_a_plot_leaves_out_are_told(tmp_path: Path) -> None:
    """Of several layers the best is drawn; of one all that were kept."""
    pytest.importorskip("matplotlib")
    told = "drawn: the best schedule of each layer"
    layers = {"layers": [{"op": "gemm", "m": m, "n": 8, "k": 8} for m in (8, 16)]}
    file = tmp_path / "two.json"
    file.write_text(json.dumps(layers))
    for what, top, is_told in (
        (str(file), "2", True),
        (str(file), "1", False),
        ("gemm:m=8,n=8,k=8", "2", False),
    ):
        assert run(["search", what, "--top", top, "--plot", str(tmp_path / "one.svg")]) == 0
        assert (told in (tmp_path / "one.svg").read_text()) == is_told
