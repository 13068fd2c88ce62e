"""Run folders: killed, torn, resumed, refused; interrupted and spread over processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any, NoReturn

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sweep_kills import LAYERS, SPEC

from loopsched.base.errors import LoopschedError, SweepError
from loopsched.cli import run as cli
from loopsched.machines.arch import Arch, buffer_arch
from loopsched.problems.builders import gemm
from loopsched.scheduler import Goal
from loopsched.sweeps import local
from loopsched.sweeps.folder import RunFolder
from loopsched.sweeps.local import on_processes
from loopsched.sweeps.plan import Task
from loopsched.sweeps.run import load_run, sweep
from loopsched.sweeps.tasks import Answer, Batch, versions

HERE = Path(__file__).parent
FIRST = "gemm:m=2,n=3,k=2"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    sweep(SPEC, folder)
    return folder


def results(folder: Path) -> bytes:
    return (folder / "results.jsonl").read_bytes()


def tasks_in_shards(folder: Path) -> Counter[int]:
    """Whole lines, read without the module under test."""
    found: Counter[int] = Counter()
    for path in sorted((folder / "shards").glob("*.jsonl")):
        for line in path.read_text().splitlines(keepends=True):
            if line.endswith("]}\n"):
                found[json.loads(line)["task"]] += 1
    return found


def copied(folder: Path, to: Path) -> Path:
    """Copy what a kill before the end leaves."""
    (to / "shards").mkdir(parents=True)
    (to / "manifest.json").write_bytes((folder / "manifest.json").read_bytes())
    for path in (folder / "shards").iterdir():
        (to / "shards" / path.name).write_bytes(path.read_bytes())
    return to


def test_killed_at_any_line_and_resumed_equals_the_whole(tmp_path: Path) -> None:
    words = [sys.executable, str(HERE / "sweep_kills.py"), str(tmp_path), "1", "8"]
    found = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    rounds = json.loads(found.splitlines()[-1])
    for number, done in enumerate(rounds):
        assert len(done) >= 3  # it was killed at least so often
        assert done == sorted(done)
        assert results(tmp_path / f"{number}") == results(tmp_path / "whole")
        assert tasks_in_shards(tmp_path / f"{number}") == dict.fromkeys(range(12), 1)
    assert len({n_done for done in rounds for n_done in done}) > 6  # amid the work, too


@settings(max_examples=40)
@given(st.data())
def test_a_torn_shard_is_mended(
    whole: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = copied(whole, tmp_path_factory.mktemp("torn") / "run")
    [shard] = (folder / "shards").iterdir()
    content = shard.read_bytes()
    cut = data.draw(st.integers(0, len(content)))
    shard.write_bytes(content[:cut])
    kept = content[:cut].count(b"\n")
    assert load_run(folder).n_done == kept
    sweep(SPEC, folder)
    assert results(folder) == results(whole)
    assert tasks_in_shards(folder) == dict.fromkeys(range(12), 1)
    assert shard.read_bytes() == content[:cut]  # what was there is never touched


@settings(max_examples=40)
@given(st.data())
def test_a_changed_byte_is_found(
    whole: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = copied(whole, tmp_path_factory.mktemp("rot") / "run")
    [shard] = (folder / "shards").iterdir()
    content = bytearray(shard.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= data.draw(st.integers(1, 255))
    shard.write_bytes(content)
    assert load_run(folder).n_done < 12
    sweep(SPEC, folder)
    assert results(folder) == results(whole)


def test_a_kill_before_the_manifest_or_amid_the_results_leaves_parts(
    whole: Path, tmp_path: Path
) -> None:
    (tmp_path / "manifest.json.part").write_text('{"format": 1, "ver')
    (tmp_path / "results.jsonl.part").write_text('{"arch')
    (tmp_path / "shards").mkdir()
    (tmp_path / "shards/000001.jsonl").write_text("")
    sweep(SPEC, tmp_path)
    assert results(tmp_path) == results(whole)
    assert not list(tmp_path.glob("*.part"))


def test_a_second_run_does_nothing(whole: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in whole.rglob("*") if path.name != "lock"}
    told: list[tuple[int, int]] = []
    sweep(SPEC, whole, progress=lambda done, total: told.append((done, total)))
    assert told == [(12, 12)]
    assert before == {
        path: path.stat().st_mtime_ns for path in whole.rglob("*") if path.name != "lock"
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 1}, "spec: 'seed' is not the same"),
        ({"objectives": ["dram_bytes"]}, r"objectives: \['time'\] then, \['dram_bytes'\] now"),
        ({"archs": [buffer_arch(capacity_bytes=1)]}, "arch 'buffer' is new"),
    ],
)
def test_another_sweep_is_refused(whole: Path, change: dict[str, Any], message: str) -> None:
    before = results(whole)
    with pytest.raises(SweepError, match=message) as caught:
        sweep({**SPEC, **change}, whole)
    assert "is the folder of another sweep" in str(caught.value)
    assert results(whole) == before


def test_what_is_another_is_told_and_no_more(tmp_path: Path) -> None:
    def spec(*capacities: int, layers: Any = (0, 1)) -> dict[str, Any]:
        vary = {"buffer.capacity": list(capacities)}
        workload = {"workload": LAYERS, "layers": layers}
        arch = buffer_arch(capacity_bytes=64)
        return {"archs": [{"arch": arch, "vary": vary}], "workloads": [workload, FIRST]}

    sweep(spec(1000, 2000), tmp_path)
    with pytest.raises(SweepError) as caught:
        sweep(spec(1000, 2000, layers=(1, 2)), tmp_path)
    # The other workload's problem has another number now, and is the same.
    assert "'layers' is not the same (digest" in str(caught.value)
    assert "gemm" not in str(caught.value)
    with pytest.raises(SweepError) as caught:
        sweep(spec(*range(3000, 3020)), tmp_path)
    told = str(caught.value).splitlines()
    assert told[-1].strip() == "and 17 more archs"
    assert len([line for line in told if "is new" in line or "is gone" in line]) == 5
    with pytest.raises(SweepError, match="archs come in another order"):
        sweep(spec(2000, 1000), tmp_path)


def test_a_machine_that_changed_under_its_name_is_refused(tmp_path: Path) -> None:
    layer = ["gemm:m=2,n=2,k=2"]
    spec = {"archs": [buffer_arch(capacity_bytes=64)], "workloads": layer}
    sweep(spec, tmp_path)
    with pytest.raises(SweepError, match=r"arch 'buffer' is not the same \(digest [0-9a-f]{16}"):
        sweep({"archs": [buffer_arch(capacity_bytes=65)], "workloads": layer}, tmp_path)


def test_another_version_is_refused(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from loopsched.sweeps import run

    monkeypatch.setattr(run, "__version__", "99.0")
    with pytest.raises(SweepError, match=r"version: '0.* then, '99.0' now"):
        sweep(SPEC, whole)


def test_two_processes_on_one_folder_are_refused(tmp_path: Path, whole: Path) -> None:
    from loopsched.sweeps.plan import plan_of
    from loopsched.sweeps.spec import read_spec

    manifest = plan_of(read_spec(SPEC), load_run(whole).manifest["version"]).manifest
    with (
        RunFolder(tmp_path / "run", manifest),
        pytest.raises(SweepError, match=f"process {os.getpid()} is working on it"),
    ):
        sweep(SPEC, tmp_path / "run")
    sweep(SPEC, tmp_path / "run")
    assert results(tmp_path / "run") == results(whole)


def test_a_folder_with_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(SweepError, match=r"has 'thesis\.tex' and no manifest\.json"):
        sweep(SPEC, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_shards_without_their_manifest_are_not_another_sweeps(whole: Path, tmp_path: Path) -> None:
    folder = copied(whole, tmp_path / "run")
    (folder / "manifest.json").unlink()
    with pytest.raises(SweepError, match=r"has 'shards' and no manifest\.json"):
        sweep({**SPEC, "objectives": ["dram_bytes"]}, folder)


def test_a_file_system_without_locks_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from loopsched.sweeps import folder

    def no_lock(*_: object) -> NoReturn:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(folder.fcntl, "flock", no_lock)
    with pytest.raises(SweepError, match="cannot be locked: No locks available; a folder on"):
        sweep(SPEC, tmp_path)


@pytest.mark.parametrize("text", ["\0", "{}", "[1]", '{"archs": 3}', "[" * 5000])
def test_a_foreign_manifest_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(SweepError, match="not written by a sweep"):
        load_run(tmp_path)


def test_a_folder_that_is_no_run_or_cannot_be_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SweepError, match=r"no run folder: it has no manifest\.json"):
        load_run(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(SweepError, match="cannot be written"):
        sweep(SPEC, tmp_path / "file" / "run")


# Processes.


def test_any_number_of_processes_gives_the_same_bytes(whole: Path, tmp_path: Path) -> None:
    sweep(SPEC, tmp_path, jobs=2)
    assert results(tmp_path) == results(whole)
    assert tasks_in_shards(tmp_path) == dict.fromkeys(range(12), 1)


SLOW = {
    "archs": [{"arch": "titan_v", "vary": {"L2.capacity": ["1 MiB", "4 MiB"]}}],
    "workloads": [{"workload": "deepbench_conv", "layers": list(range(6))}],
}


def test_sigkill_of_the_command_ends_its_processes_and_the_command_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec, folder = tmp_path / "slow.json", tmp_path / "run"
    spec.write_text(json.dumps(SLOW))
    arguments = ["sweep", str(spec), "-o", str(folder), "-j", "2"]
    process = subprocess.Popen(
        [sys.executable, "-m", "loopsched", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while not tasks_in_shards(folder) and process.poll() is None:
        time.sleep(0.01)
    workers = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    _, alive = psutil.wait_procs(workers, timeout=20)
    assert not alive
    assert len(workers) >= 2
    before = tasks_in_shards(folder)
    assert 0 < len(before) < 12
    assert cli(arguments[:-2]) == 0  # by itself, as good as by two
    capsys.readouterr()
    assert tasks_in_shards(folder) == dict.fromkeys(range(12), 1)
    sweep(SLOW, tmp_path / "whole")
    assert results(folder) == results(tmp_path / "whole")


class Bomb:
    """In the place of a machine: who looks at it is killed, so many times."""

    def __init__(self, counter: Path, kills: int) -> None:
        self.counter, self.kills = counter, kills

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("counter", "kills"):
            raise AttributeError(name)
        kills = len(self.counter.read_text())
        if kills < self.kills:
            self.counter.write_text("x" * (kills + 1))
            os.kill(os.getpid(), signal.SIGKILL)
        return getattr(buffer_arch(capacity_bytes=64), name)


class Given:
    """Batches of tasks that are given, without a plan."""

    def __init__(self, tasks: list[Task]) -> None:
        from loopsched.sweeps.batches import Batches
        from loopsched.sweeps.plan import plan_of
        from loopsched.sweeps.spec import read_spec

        plan = plan_of(read_spec(SPEC), "1")
        self.source = Batches(plan, range(plan.n_tasks), 2)
        self.source._again.append(Batch(tuple(tasks), Goal(), versions()))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.source, name)


def answers(tasks: list[Task]) -> dict[int, Answer]:
    given: Any = Given(tasks)
    found = [one for answers in on_processes(given, 2) for one in answers]
    assert len(found) == len(tasks)
    return {one.task: one for one in found}


def bombed(*bombs: Any) -> list[Task]:
    layer, fine = gemm(m=2, n=2, k=2), buffer_arch(capacity_bytes=64)
    arches: list[Arch] = [fine, *bombs, fine]
    return [Task(number, layer, arch, "time") for number, arch in enumerate(arches)]


def test_a_search_whose_process_dies_is_tried_again_and_then_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from loopsched.sweeps import batches

    monkeypatch.setattr(batches, "MOST_ATTEMPTS", 2)
    counters = [tmp_path / "once", tmp_path / "always"]
    for counter in counters:
        counter.write_text("")
    found = answers(bombed(Bomb(counters[0], kills=1), Bomb(counters[1], kills=99)))
    assert found[2].failure == "given up after 2 times: its process died by signal 9"
    assert not found[0].failure + found[1].failure + found[3].failure
    assert found[0].rows == found[1].rows == found[3].rows != ""
    assert len(counters[1].read_text()) == 2  # alone: the first death is the other's


def test_processes_that_all_die_end_the_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "n").write_text("")
    monkeypatch.setattr(local, "_MOST_DEATHS", 2)
    with pytest.raises(
        LoopschedError, match=r"2 processes in a row .* its process died by signal 9"
    ):
        answers(bombed(Bomb(tmp_path / "n", kills=99))[1:2])


# The command.


CAPACITIES = """\
archs: {arch: titan_v, vary: {L2.capacity: [2 MiB, 4 MiB]}}
workloads: [{workload: deepbench_conv, layers: [0, 3]}, 'gemm:m=64,n=64,k=64']
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "caches.yaml").write_text(CAPACITIES)
    return tmp_path


def test_the_command_prints_totals_and_how_far_it_is(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert cli(["sweep", "caches.yaml"]) == 0
    told = capsys.readouterr().out
    assert told.splitlines()[0] == "deepbench_conv on titan_v, least time, fp32:"
    assert told.splitlines()[-1] == "caches.sweep: 6 of 6 searches done; results in results.jsonl."
    assert max(map(len, told.splitlines())) <= 80
    assert cli(["sweep", "caches.sweep"]) == 0
    assert capsys.readouterr().out == told
    assert cli(["sweep", "--status", "caches.sweep"]) == 0
    assert capsys.readouterr().out == told.splitlines()[-1] + "\n"
    assert cli(["sweep", "--status", "caches.sweep", "--format", "json"]) == 0
    [status] = json.loads(capsys.readouterr().out)
    assert (status["done"], status["total"], status["complete"]) == (6, 6, True)
    assert cli(["sweep", "caches.sweep", "--format", "jsonl"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert rows == load_run("caches.sweep").machines()


def test_the_command_shows_all_that_was_varied_and_what_was_sought(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "two.yaml").write_text(
        "archs: {arch: titan_v, vary: {L2.capacity: [2 MiB, 4 MiB],"
        " DRAM.bandwidth: [300 GB/s, 600 GB/s]}}\n"
        "workloads: ['gemm:m=64,n=64,k=64']\nobjectives: [time, dram_bytes]\n"
    )
    assert cli(["sweep", "two.yaml"]) == 0
    told = capsys.readouterr().out
    assert max(map(len, told.splitlines())) <= 80
    heads = [line for line in told.splitlines() if "L2.capacity" in line]
    assert [("DRAM.bandwidth" in head, "DRAM " in head) for head in heads] == [(True, True)] * 2
    assert "left out at 80 columns: " not in told or "L2" not in told.partition("left out")[2][:60]


def test_the_command_keeps_what_makes_rows_and_not_how_many_processes(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli(["sweep", "caches.yaml", "-o", "run", "--results=jsonl", "-j1"]) == 0
    assert load_run("run").manifest["command"] == "loopsched sweep caches.yaml -o run"


def test_an_interrupted_command_keeps_what_is_done(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run_batch, calls = local.run_batch, []

    def interrupted(batch: Batch) -> tuple[Answer, ...]:
        calls.append(batch)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return run_batch(batch)

    monkeypatch.setattr(local, "run_batch", interrupted)
    assert cli(["sweep", "caches.yaml"]) == 130
    assert "2 of 6 searches done; the same command resumes" in capsys.readouterr().err
    assert load_run("caches.sweep").n_done == 2
    assert cli(["sweep", "caches.yaml"]) == 0
    assert len(calls) == 3 + 4


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["none.yaml"], 3, "none.yaml: no such file"),
        (["none", "--status"], 3, "none: no such folder"),
        ([".", "--status"], 3, "no run folder"),
        ([], 2, "Missing argument 'SPEC'"),
        ([".", "--jobs", "2"], 2, "--jobs does not apply where nothing is searched"),
        (["caches.yaml", "--status", "--results", "parquet"], 2, "--results does not apply"),
        (["caches.yaml", "-j2", "--scheduler", "tcp://127.0.0.1:1"], 2, "the cluster's workers"),
        (["caches.yaml", "--scheduler", "tcp://127.0.0.1:1"], 3, "scheduler 'tcp://127.0.0.1:1'"),
    ],
)
def test_wrong_commands(
    here: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    status: int,
    message: str,
) -> None:
    from loopsched.sweeps import cluster

    monkeypatch.setattr(cluster, "_PATIENCE_S", 0.2)
    assert cli(["sweep", *arguments]) == status
    assert message in capsys.readouterr().err


def test_a_killed_command_tells_how_far_it_is_and_gives_no_place_to_parts(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(done: int, total: int) -> None:
        if done == 4:  # the first machine, and one of three layers on the second
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep("caches.yaml", "caches.sweep", progress=stop)
    assert cli(["sweep", "--status", "caches.yaml"]) == 0
    assert capsys.readouterr().out.startswith(
        "caches.sweep: 4 of 6 searches done; the same command resumes"
    )
    assert cli(["sweep", "caches.sweep"]) == 0
    told = capsys.readouterr().out.split("\n\n")[0].splitlines()
    assert told[3].split()[:2] == ["2", "MiB"]
    assert told[4].endswith("1 of 2 to do")


def test_results_that_were_not_written_are_not_complete(here: Path) -> None:
    run = sweep("caches.yaml", "run")
    assert run.is_complete
    for path in run.results:
        path.unlink()
    again = load_run("run")
    assert (again.n_done, again.n_tasks, again.is_complete) == (6, 6, False)


def test_progress_begins_with_what_is_done(here: Path) -> None:
    told: list[tuple[int, int]] = []

    def stop(done: int, total: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep("caches.yaml", "run", progress=stop)
    sweep("caches.yaml", "run", progress=lambda done, total: told.append((done, total)))
    assert (told[0], told[-1]) == ((2, 6), (6, 6))


def test_the_command_tells_why_layers_fail(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    (here / "half.yaml").write_text("archs: [diannao]\nworkloads: ['gemm:m=64,n=64,k=64']\n")
    assert cli(["sweep", "half.yaml"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[3].endswith("1 of 1 fail")
    assert told[4].startswith("fails: m64 n64 k64: the machine has no rate for elements of 4 bytes")
    assert not any("no variation" in line for line in told)


def test_progress_is_told_now_and_then_where_nobody_looks(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from loopsched.cli import sweep as command

    monkeypatch.setattr(command, "_LOG_S", 0)
    assert cli(["sweep", "caches.yaml"]) == 0
    told = capsys.readouterr().err.splitlines()
    assert told[-1] == "6 of 6 searches done (100 %)"
    assert "3 of 6 searches done (50 %), " in told[-4]
    monkeypatch.setattr(command, "_LOG_S", 60)
    assert cli(["sweep", "caches.yaml"]) == 0
    assert "searches done" not in capsys.readouterr().err


def test_a_full_disk_is_told(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from loopsched.sweeps import folder

    def full(*_: object) -> NoReturn:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(folder, "write_all", full)
    with pytest.raises(SweepError, match="cannot be written: No space left on device"):
        sweep("caches.yaml", "run")


def test_the_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli(["sweep", "--schema"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "A sweep of loopsched"
