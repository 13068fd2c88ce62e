"""The command line: what it prints, where, and with which exit status."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from loopsched import __version__, buffer_arch, evaluate, gemm, load_arch, parse_schedule
from loopsched.base.errors import EmptySpaceError
from loopsched.base.units import scaled
from loopsched.cli import _COMMANDS, run

DATA = Path(__file__).parent / "data"
GEMM = "gemm:m=1024,n=1024,k=1024"
NEST = "M:1024@SM N:1024@SM K:1024 M:128 N:64 K:8"
SMALL = "M:1024@SM N:1024@SM K:1024 M:16 N:16 K:8"
HEAVY = {"numpy", "numba", "networkx", "pydantic", "matplotlib", "yaml"}


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")


def call(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> str:
    """Run a command line; return standard output, or error where it must fail."""
    assert run(words) == status
    captured = capsys.readouterr()
    if status == 0:
        assert captured.err == ""
        return captured.out
    assert captured.out == ""
    return captured.err


def rows(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, object]]:
    found = json.loads(call(capsys, *words, "--format", "json"))
    assert isinstance(found, list)
    return found


NPU = """
name: npu
levels:
  - {name: DRAM, kind: memory, bandwidth: 10 GB/s, energy: 10 pJ/B}
  - {name: GB, kind: scratchpad, capacity: 64 KiB, double_buffered: true, energy: 2 pJ/B}
compute: {unit: array, units: 1, clock: 1 GHz, macs: {int8: 64 MAC/cycle}, energy: 0.5 pJ/MAC}
"""


class TestFront:
    def test_help_lists_every_command_and_loads_nothing_heavy(self) -> None:
        code = "import sys; from loopsched.cli import run; run(['--help'])"
        code += "; print(*sys.modules, file=sys.stderr)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert all(f"\n  {name} " in done.stdout for name in _COMMANDS)
        loaded = set(done.stderr.split())
        assert not loaded & HEAVY
        assert {name for name in loaded if name.startswith("loopsched.cli.")} == {
            "loopsched.cli.group"
        }

    def test_version(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert call(capsys, "--version") == f"loopsched {__version__}\n"

    @pytest.mark.parametrize("command", _COMMANDS)
    def test_every_command_has_help(self, command: str, capsys: pytest.CaptureFixture[str]) -> None:
        text = call(capsys, command, "--help")
        assert text.startswith(f"Usage: loopsched {command}")
        assert max(map(len, text.splitlines())) <= 80
        assert "None" not in text

    def test_alone_it_says_in_ten_lines_what_to_try(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        lines = call(capsys).splitlines()
        assert len(lines) == 10
        assert max(map(len, lines)) <= 80
        named = [line.split()[1] for line in lines if line.startswith("  loopsched ")]
        assert "demo" in named
        assert set(named) <= set(_COMMANDS)

    def test_module_runs(self) -> None:
        command = [sys.executable, "-m", "loopsched", "--version"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stdout == f"loopsched {__version__}\n"

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["serach"], "no command 'serach'; did you mean 'search'?"),
            (["sweep"], "Usage: loopsched sweep [OPTIONS] SPEC\n"),
            (["kernel", "libary"], "no command 'libary'; did you mean 'library'?"),
            (["import", "arch.yaml"], "no command 'arch.yaml'; allowed: timeloop"),
            (["analyze", GEMM], "give a SCHEDULE; only --model report_003"),
            (["analyze", GEMM, "M:1024", "N:1024"], "(N:1024); put what has spaces in quotes"),
            (["search", "gemm", "m=8", "n=4"], "(m=8 n=4); did you mean 'gemm:m=8,n=4'?\n"),
            (["analyze", "gemm", "m=8", "n=4"], "(n=4); did you mean 'gemm:m=8,n=4'?\n"),
            (["search", "vgg16", "fc8"], "(fc8); did you mean '--layer fc8'?\n"),
            (["search", "vgg16", "fc9"], "argument (fc9).\n"),
            (["show", "resnet50", "-l", "conv1", "--rank", "2"], "for files of saved results"),
            (["export", GEMM, "--to", "c", "-a", "host", "--rank", "3"], "files of saved results"),
            (["export", GEMM], "Missing option '--to'; allowed: timeloop zigzag python c"),
            (["run", GEMM, "--type", "fp16"], "'fp16' is not one of 'fp32', 'fp64', 'bf16'"),
            (["analyze", GEMM, NEST, "--model", "yalza"], "'yalza' is not one of"),
            (["search", GEMM, "--seed", "-1"], "'-1' is not a whole number >= 0"),
            (
                ["search", GEMM, "-o", "a.jsonl"],
                "--out FILE saves the rows, --plot FILE draws",
            ),
            (["search", GEMM, "-o", "a.html"], "'loopsched explore -o FILE.html' writes a page."),
            (["fuse", "vgg16", "-o", "a.csv"], "'time'. --format csv prints rows.\n"),
            (["search", GEMM, "-o", "speed"], "'time', 'dram_bytes', 'energy', 'edp'.\n"),
            (["search", GEMM, "--seed", "4"], "--seed applies only to --strategy random and local"),
            (["explore", GEMM, "--samples", "5"], "--samples applies only to --strategy random"),
            (["export", GEMM, "--to", "c", "--residual"], "--residual applies only to --to time"),
            (["export", GEMM, "--to", "tvm", "--name", "f"], "--name applies only to --to python"),
            (["sweep", "--schema", "--status"], "--schema and --status exclude each other"),
            (["archs", "--format", "xml"], "'xml' is not one of"),
            (["archs", "--foo"], "No such option"),
            (["search", GEMM, "--type", "fp16"], "'--element-bytes 2' is fp16"),
            (["search", GEMM, "--dtype", "fp16"], "No such option '--dtype'; the element size"),
            (["pick", GEMM, "--dtype", "fp16"], "No such option '--dtype'; did you mean '--type'?"),
            (["report", "resnet50"], "'loopsched explore resnet50' searches it"),
        ],
    )
    def test_wrong_usage_is_2(
        self, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert message in call(capsys, *words, status=2)

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["archs", "titan_w"], "no architecture 'titan_w'; did you mean 'titan_v'?"),
            (
                ["archs", "titan_w"],
                "(of that family: titan_rtx titan_v titan_v_report_003 titan_x_",
            ),
            (
                ["archs", "epyc"],
                "of that family: epyc_7763 epyc_9654 epyc_9755); 'loopsched archs'",
            ),
            (["archs", "quantum"], "allowed: a100 a100_pcie"),
            (["workloads", "matmul:m=8,n=8,k=8"], "op is 'matmul'; did you mean 'gemm'?"),
            (["workloads", "conv:c=3"], "op is 'conv'; did you mean 'conv2d'?"),
            (["workloads", "resnet5"], "did you mean 'resnet50'?"),
            (["archs", "nvidia_h100"], "did you mean 'h100'?"),
            (["workloads", "mobilenet"], "of that name; allowed: alexnet"),
            (["workloads", "attention"], "of that name; allowed: alexnet"),
            (["workloads", "llama"], "did you mean 'llama2_7b_decode'?"),
            (["explore", "alexnet", "-o", "x.txt"], "x.txt: a page ends in .html or .htm"),
            (["export", GEMM, "--to", "c", "-o", "k.yaml"], "'--to c' writes ends in .c\n"),
            (["export", GEMM, "--to", "timeloop", "-o", "k.py"], "ends in .yaml or .yml"),
            (["workloads", "no/such.json"], "no/such.json: no such file"),
            (["analyze", GEMM, "M:1024 N:1024 K:512"], "it must cover the size, 'K:1024'"),
            (["analyze", GEMM, "M:1024@XM N:1024 K:1024"], "unknown unit 'XM'"),
            (["analyze", GEMM, NEST, "--capacity", "5 KB"], "write kB or KiB"),
            (["simulate", GEMM, NEST, "--capacity", "5"], "--capacity: '5' has no unit; allowed:"),
            (["space", GEMM, "--fix", "M@L9=3"], "unknown level or unit 'L9'; did you mean 'L2'?"),
            (["analyze", GEMM, "@none.txt"], "none.txt: no such file"),
            (["analyze", "resnet50", NEST], "25 problems, but one is needed"),
            (["analyze", "resnet50", NEST, "-l", "77"], "layers are numbered 0 to 24"),
            (["analyze", "resnet50", NEST, "-l", "conv2_3x4"], "did you mean 'conv2_3x3'?"),
            (["analyze", "gemm:m=4,n", NEST], "'n' is not field=value"),
            (["analyze", "gemm:m=4,m=5,n=1,k=1", NEST], "field 'm' is given twice"),
            (["analyze", "gemm:m=0,n=1,k=1", NEST], "m is 0"),
            (["analyze", '{"op": "gemm"', NEST], """problem '{"op": "gemm"': not JSON"""),
            (["search", "gemm:m=4,n=3"], "Error: problem 'gemm:m=4,n=3': no 'k' (length of"),
            (["search", GEMM, "-l", "3"], "workload 'm1024 n1024 k1024': no layer 3; the only"),
            (["analyze", f"gemm:m={'9' * 5000},n=1,k=1", NEST], "m is"),
            (["show", __file__], "not JSON"),
        ],
    )
    def test_bad_input_is_3_and_one_message(
        self, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        text = call(capsys, *words, status=3)
        assert text.startswith("Error: ")
        assert message in text
        assert "Traceback" not in text

    @pytest.mark.parametrize("command", ["explore", "search", "space"])
    def test_saved_results_lead_to_their_page(
        self, command: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        path = tmp_path / "rn.jsonl"
        path.write_text('{"layer": 0}\n{"layer": 1}\n')
        assert f"'loopsched report {path}' makes a page" in call(
            capsys, command, str(path), status=3
        )

    @pytest.mark.parametrize(
        ("words", "kernel", "what"),
        [
            (["export", GEMM, "--to", "python"], "scheduler.kernels.best_body", "the search"),
            (["kernel", "preset", "gemm_naive"], "gpu.classes.classify", "the counts of kernels"),
            (["reproduce", "report_000"], "gpu.classes.classify", "the counts of kernels"),
        ],
    )
    def test_compiling_is_announced_once(
        self,
        words: list[str],
        kernel: str,
        what: str,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        module, _, name = f"loopsched.{kernel}".rpartition(".")
        expected = getattr(import_module(module), name)
        monkeypatch.setattr("loopsched.cli.output.is_kept", lambda one: one is not expected)
        assert run(words) == 0
        assert capsys.readouterr().err.count(f"compiling {what}, once") == 1

    @pytest.mark.parametrize(
        "words",
        [
            ["reproduce", "report_9"],
            ["search", GEMM, "--fix", "M@L9=3"],
            ["search", GEMM, "--out", "none/such.json"],
            ["fuse", "vgg16", "--layers", "5:2"],
            ["pareto", GEMM, "-c", "4"],
            ["sweep", "none.yaml"],
        ],
    )
    def test_what_is_refused_is_refused_before_compiling(
        self,
        words: list[str],
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr("loopsched.cli.output.is_kept", lambda _: False)
        assert call(capsys, *words, status=3).startswith("Error: ")

    def test_nothing_fits_is_4(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse() -> tuple[str, ...]:
            raise EmptySpaceError("no schedule is left: --fix M@L2=7 took the last 12")

        monkeypatch.setattr("loopsched.machines.arch_file.arch_names", refuse)
        text = call(capsys, "archs", status=4)
        assert text == "Error: no schedule is left: --fix M@L2=7 took the last 12\n"

    def test_an_interruption_is_130(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def interrupt() -> tuple[str, ...]:
            raise KeyboardInterrupt

        monkeypatch.setattr("loopsched.machines.arch_file.arch_names", interrupt)
        assert call(capsys, "archs", status=130) == "Error: interrupted\n"

    def test_a_closed_pipe_is_silent(self) -> None:
        command = f"{sys.executable} -m loopsched workloads deepbench_gemm | head -n 1"
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True
        )
        assert done.stderr == ""
        assert len(done.stdout.splitlines()) == 1
        assert done.returncode in (0, 128 + signal.SIGPIPE)

    def test_a_bug_keeps_its_traceback(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail() -> tuple[str, ...]:
            raise RuntimeError("a bug")

        monkeypatch.setattr("loopsched.machines.arch_file.arch_names", fail)
        with pytest.raises(RuntimeError, match="a bug"):
            run(["archs"])


class TestArchs:
    def test_table_fits_80_columns_and_names_all(self, capsys: pytest.CaptureFixture[str]) -> None:
        text = call(capsys, "archs")
        assert max(map(len, text.splitlines())) <= 80
        lines = text.splitlines()
        assert {"titan_v", "h200", "diannao"} <= {line.split()[0] for line in lines if line}
        assert "    L2 4.5 MiB, L1 96 KiB x 80\n" in text
        assert "    L2 60 MiB (35 MiB effective), L1 228 KiB x 132\n" in text
        machines = [line[20:53].strip() for line in lines[2:-2:2]]
        assert len(set(machines)) == len(machines)

    def test_rows(self, capsys: pytest.CaptureFixture[str]) -> None:
        found = {row["name"]: row for row in rows(capsys, "archs")}
        # 80 SM x 64 lanes x 2 FLOP x 1.455 GHz; 3,072 bits at 850 MHz, two a cycle.
        assert found["titan_v"]["peak_fp32_flops_per_s"] == pytest.approx(14.8992e12)
        assert found["titan_v"]["dram_bandwidth_bytes_per_s"] == pytest.approx(652.8e9)

    def test_one_shows_numbers_with_sources(self, capsys: pytest.CaptureFixture[str]) -> None:
        text = call(capsys, "archs", "titan_v")
        assert max(map(len, text.splitlines())) <= 80
        assert "652.8 GB/s" in text
        assert "deviceQuery" in text
        cited = [level.sources for level in load_arch("titan_v").levels if level.sources]
        assert all(key in text for sources in cited for key, _ in sources)
        assert f"capacity: {dict(cited[-1])['capacity']}"[:40] in " ".join(text.split())
        assert "dram_latency" in text
        unknown = [line.split()[0] for line in text.splitlines() if line.endswith("not known")]
        assert unknown == ["merged_share", "l2_efficiency", "power"]

    def test_sources_cited_from_memory_are_explained(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        explained = "\nunverified: cited from memory, not checked against the source.\n"
        assert explained in call(capsys, "archs", "titan_v")
        text = call(capsys, "archs", "h200")
        assert "unverified" not in text

    def test_integers_are_no_flop(self, capsys: pytest.CaptureFixture[str]) -> None:
        text = call(capsys, "archs", "h200")
        rates = {line.split()[0]: line.split()[1:] for line in text.splitlines() if "OP/s" in line}
        assert rates["fp8"][0] == rates["int8"][0] == "4,096"
        assert (rates["fp8"][2], rates["int8"][2]) == ("PFLOP/s", "POP/s")

    def test_case_does_not_matter(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert call(capsys, "archs", "RTX 3090") == call(capsys, "archs", "rtx_3090")

    def test_what_is_printed_as_json_is_a_machine_file(
        self, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        path = tmp_path / "mine.json"
        path.write_text(call(capsys, "archs", "h200", "--format", "json"))
        assert load_arch(path).digest == load_arch("h200").digest

    def test_a_file_works_like_a_name(
        self, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        (exported,) = rows(capsys, "archs", "titan_v")
        digest = exported.pop("digest")
        path = tmp_path / "mine.yaml"
        path.write_text(json.dumps(exported), encoding="utf-8")
        (again,) = rows(capsys, "archs", str(path))
        assert again["digest"] == digest


class TestWorkloads:
    def test_table_fits_80_columns(self, capsys: pytest.CaptureFixture[str]) -> None:
        text = call(capsys, "workloads")
        assert max(map(len, text.splitlines())) <= 80
        assert "deepbench_conv " in text

    def test_counts(self, capsys: pytest.CaptureFixture[str]) -> None:
        found = {row["name"]: row["problems"] for row in rows(capsys, "workloads")}
        assert found["deepbench_conv"] == 94
        assert found["deepbench_gemm"] == 160

    def test_problems_of_one(self, capsys: pytest.CaptureFixture[str]) -> None:
        found = rows(capsys, "workloads", "deepbench_conv")
        assert [row["layer"] for row in found] == list(range(94))
        text = call(capsys, "workloads", "deepbench_conv")
        assert len(text.splitlines()) == 2 + 94
        assert [row["layer"] for row in rows(capsys, "workloads", "vgg16", "-l", "fc8")] == [11]

    def test_numbers_of_a_problem(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        layers = [{"op": "gemm", "m": 64, "n": 32, "k": 16, "count": n} for n in (2, 5)]
        (tmp_path / "two.json").write_text(json.dumps({"layers": layers}), encoding="utf-8")
        found = rows(capsys, "workloads", str(tmp_path / "two.json"))
        assert [row["count"] for row in found] == [2, 5]
        moved = 4 * (64 * 16 + 16 * 32 + 64 * 32)
        assert [row["data_bytes"] for row in found] == [moved] * 2
        line = call(capsys, "workloads", str(tmp_path / "two.json")).splitlines()[-1]
        assert line.split()[-1] == f"{2 * 64 * 32 * 16 / moved:.4g}"

    def test_csv(self, capsys: pytest.CaptureFixture[str]) -> None:
        text = call(capsys, "workloads", "vgg16", "--format", "csv")
        found = list(csv.DictReader(io.StringIO(text)))
        assert found[0]["kind"] == "conv2d"

    def test_schema_is_json_schema(self, capsys: pytest.CaptureFixture[str]) -> None:
        from jsonschema import Draft202012Validator

        schema = json.loads(call(capsys, "workloads", "--schema"))
        Draft202012Validator.check_schema(schema)
        assert Draft202012Validator(schema).is_valid(
            {"layers": [{"op": "gemm", "m": 2, "n": 3, "k": 4}]}
        )


class TestAnalyze:
    def test_table(self, capsys: pytest.CaptureFixture[str]) -> None:
        text = call(capsys, "analyze", GEMM, NEST)
        assert max(map(len, text.splitlines())) <= 80
        assert "bound by  compute" in text
        assert "2.147 GFLOP in 218.5 us, utilisation of the units 80.0 %" in text
        assert "L1 holds 38.00 KiB of 96 KiB: M:128 N:64 K:8" in text

    def test_row(self, capsys: pytest.CaptureFixture[str]) -> None:
        (row,) = rows(capsys, "analyze", GEMM, NEST)
        # 128 tiles on 80 SM: two waves of 128 x 64 x 1,024 steps at 64 MAC a cycle, 1.2 GHz.
        assert row["time_s"] == pytest.approx(2 * 128 * 64 * 1024 / 64 / 1.2e9)
        assert row["schedule"] == NEST
        levels = row["levels"]
        assert isinstance(levels, list)
        assert [level["name"] for level in levels] == ["L2", "L1"]
        assert levels[1]["read_bytes"]["high"] == 4 * 128 * 1024 * (128 + 64)

    def test_one_buffer_by_size(self, capsys: pytest.CaptureFixture[str]) -> None:
        nest = "M:64 N:64 K:64 M:16 N:16"
        words = ["analyze", "gemm:m=64,n=64,k=64", nest, "--capacity", "2 KiB"]
        (row,) = rows(capsys, *words, "--policy", "explicit")
        assert row["dram_bytes"] == 4 * 64 * 64 * (4 + 4 + 1)
        # Room for the tile and nothing more: only where tiles are placed is that a promise.
        for policy in ("explicit", "lru"):
            problem = gemm(m=64, n=64, k=64)
            arch = buffer_arch(capacity_bytes=1152, policy=policy)
            score = evaluate(problem, parse_schedule(nest, problem), arch)
            (row,) = rows(capsys, *words[:-1], "1152 B", "--policy", policy)
            assert row["dram_bytes"] == score.dram_bytes
            assert (score.dram_bytes == 4 * 64 * 64 * 9) == (policy == "explicit")

    def test_one_buffer_has_no_rates(self, capsys: pytest.CaptureFixture[str]) -> None:
        words = ["analyze", "gemm:m=64,n=64,k=64", "M:64 N:64 K:64"]
        size = [*words, "--capacity", "64 KiB"]
        (row,) = rows(capsys, *size)
        (level,) = row["levels"]
        for name in ("time_s", "problem_bound_s", "bound_by", "compute_utilisation"):
            assert row[name] is None
        assert level["time_s"] is level["utilisation"] is None
        assert level["operational_intensity"] == 64 / 6
        text = call(capsys, *size)
        assert "m64 n64 k64 on one LRU cache of 64 KiB below DRAM: M:64" in text
        assert not any(word in text for word in ("time", "busy", "/s", "bound by", "utilisation"))
        assert "time" in call(capsys, *words)
        for more, message in (
            (["--capacity", "64 KiB", "-a", "titan_v"], "give --capacity or --arch, not both"),
            (["--policy", "lru"], "--policy is for the buffer of --capacity; give its size"),
        ):
            assert run([*words, *more]) == 2
            assert message in capsys.readouterr().err

    def test_sums_are_the_librarys(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("COLUMNS", "160")
        problem = gemm(m=1024, n=1024, k=1024)
        score = evaluate(problem, parse_schedule(NEST, problem), load_arch("titan_v"))
        text = call(capsys, "analyze", GEMM, NEST)
        assert f"here {score.dram_bytes / score.least_dram_bytes:.3g} times that" in text
        for level in score.levels:
            line = next(one for one in text.splitlines() if f" - {level.name} " in one)
            read, written = level.promised_read_bytes, level.promised_write_bytes
            assert f" {scaled(read, 'B')} {scaled(written, 'B')} " in " ".join(line.split())

    def test_energy_by_level_and_both_halves_of_a_buffer(
        self, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        path = tmp_path / "npu.yaml"
        path.write_text(NPU)
        words = ["gemm:m=64,n=64,k=64", "M:64 N:64 K:64 M:16", "-a", str(path)]
        text = call(capsys, "analyze", *words, "--element-bytes", "int8")
        # 64 kB of sums and operands at 10 + 2 pJ/B, 262,144 steps of 0.5 pJ.
        moved = 64 * 64 * 3
        parts = f"DRAM {scaled(moved * 10e-12, 'J')}, GB {scaled(moved * 2e-12, 'J')}"
        assert f"{parts}, arithmetic {scaled(64**3 * 0.5e-12, 'J')}" in " ".join(text.split())
        assert "GB holds 2 x 12.00 KiB of 64 KiB: M:64 N:64 K:64" in text
        shown = call(capsys, "show", *words, "--element-bytes", "1")
        assert "GB holds 2 x 12.00 KiB of 64 KiB" in " ".join(shown.split())
        assert run(["analyze", *words, "--element-bytes", "int9"]) == 2
        assert (
            "'int9'; a number of bytes or a type is needed; did you mean 'int"
            in capsys.readouterr().err
        )
        assert run(["analyze", *words]) == 3
        assert "no rate for elements of 4 bytes (it has: int8); --el" in capsys.readouterr().err

    def test_element_bytes_override(self, capsys: pytest.CaptureFixture[str]) -> None:
        nest, size = "M:64 N:64 K:64", ["--capacity", "1 MiB", "--element-bytes", "2"]
        (row,) = rows(capsys, "analyze", "gemm:m=64,n=64,k=64", nest, *size)
        assert row["dram_bytes"] == 3 * 64 * 64 * 2

    @pytest.mark.parametrize("suffix", ["txt", "json"])
    def test_schedule_from_a_file(
        self, suffix: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        path = tmp_path / f"nest.{suffix}"
        loops = [{"dim": dim, "extent": 8} for dim in "MNK"]
        path.write_text("M:8\nN:8\nK:8\n" if suffix == "txt" else json.dumps({"loops": loops}))
        (row,) = rows(capsys, "analyze", "gemm:m=8,n=8,k=8", f"@{path}")
        assert row["schedule"] == "M:8 N:8 K:8"

    def test_yalsa_prints_its_examples(self, capsys: pytest.CaptureFixture[str]) -> None:
        conv = "conv2d:c=108,k=200,p=32,q=32,r=4,s=4,name=Example Conv"
        loops = "n:1 y:32 x:32 k:200 y:8 x:8 k:64 s:4 r:4 c:108 k:16 c:16"
        product = "gemm:m=64,n=256,k=256,name=Example MM"
        both = [(conv, loops), (product, "n:64 c:256 k:256 n:32 c:32 k:32")]
        text = "".join(
            call(capsys, "analyze", problem, nest, "--model", "yalsa", "--dialect", "yalsa")
            for problem, nest in both
        )
        assert text == (DATA / "yalsa_examples.txt").read_text(encoding="utf-8")

    def test_yalsa_rows(self, capsys: pytest.CaptureFixture[str]) -> None:
        nest = "n:64 c:256 k:256 n:32 c:32 k:32"
        words = ["gemm:m=64,n=256,k=256", nest, "--model", "yalsa", "--dialect", "yalsa"]
        found = {row["capacity_bytes"]: row for row in rows(capsys, "analyze", *words)}
        assert sorted(found) == [16 << at for at in range(20)]
        assert (found[8192]["bytes_per_cycle"], found[8192]["fit_level"]) == (3.0, 3)

    def test_report_003_needs_no_schedule(self, capsys: pytest.CaptureFixture[str]) -> None:
        (row,) = rows(capsys, "analyze", "gemm:m=64,n=4096,k=25088", "--model", "report_003")
        assert (row["printed_us"], row["bound"]) == (62190, "memory")
        text = call(capsys, "analyze", "report_003", "--model", "report_003")
        assert max(map(len, text.splitlines())) <= 80
        assert len(text.splitlines()) > 50


class TestShow:
    def test_a_schedule_as_loops(self, capsys: pytest.CaptureFixture[str]) -> None:
        text = call(capsys, "show", GEMM, NEST)
        assert max(map(len, text.splitlines())) <= 80
        assert "parallel for m1 in range(0, 1024, 128) @SM:" in text
        assert "L1 holds 38.00 KiB of 96 KiB" in text
        assert "C[m, n] += A[m, k] * B[k, n]" in text


class TestCompare:
    def test_table(self, capsys: pytest.CaptureFixture[str]) -> None:
        text = call(capsys, "compare", GEMM, SMALL, NEST)
        assert max(map(len, text.splitlines())) <= 80
        assert "L2 - L1      541.1 MB  104.9 MB   5.16" in text
        assert "- L2 to L1, B: 268.4 MB against 33.55 MB" in text

    def test_nothing_worse(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert "no level moves more bytes" in call(capsys, "compare", GEMM, NEST, NEST)

    def test_rows(self, capsys: pytest.CaptureFixture[str]) -> None:
        this, other = rows(capsys, "compare", GEMM, SMALL, NEST)
        assert (this["schedule"], other["schedule"]) == (SMALL, NEST)
        assert this["reasons"]
        assert other["reasons"] == []


@pytest.mark.parametrize("words", [["archs"], ["workloads"], ["analyze", GEMM, NEST]])
def test_wide_paper_is_used(
    words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    widest = max(map(len, call(capsys, *words).splitlines()))
    assert 80 < widest <= 120


def test_colour_only_for_people_who_want_it() -> None:
    import pty

    def shown(**settings: str) -> bytes:
        mine, theirs = pty.openpty()
        environment = {k: v for k, v in os.environ.items() if k != "NO_COLOR"} | settings
        environment |= {"TERM": settings.get("TERM", "xterm")}
        command = [sys.executable, "-m", "loopsched", "archs"]
        subprocess.run(command, stdout=theirs, env=environment, check=True)
        os.close(theirs)
        text = os.read(mine, 65536)
        os.close(mine)
        return text

    assert b"\x1b[1m" in shown()
    assert b"\x1b" not in shown(NO_COLOR="1")
    assert b"\x1b" not in shown(TERM="dumb")
