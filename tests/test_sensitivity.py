"""Sensitivity: changed machines, searched again; elasticities; what is computed once."""

from __future__ import annotations

import csv
import io
import json
import multiprocessing
import os
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from loopsched.base.errors import ConstraintError, InputError
from loopsched.cli import run
from loopsched.gpu.estimate import estimate_kernel, estimate_steps
from loopsched.machines.arch import Arch, buffer_arch
from loopsched.machines.arch_file import load_arch
from loopsched.machines.levels import Compute, Level
from loopsched.models.score import evaluate
from loopsched.nests.notation import parse_schedule
from loopsched.problems.builders import conv2d, einsum, gemm
from loopsched.problems.problem import Problem
from loopsched.problems.workload import Workload
from loopsched.published.presets import preset
from loopsched.scheduler import Goal, search
from loopsched.scheduler.allowed import space_of
from loopsched.scheduler.enumerate import schedules
from loopsched.study import points as study
from loopsched.study.points import changed_machines, kernel_workload, parse_vary
from loopsched.study.sensitivity import Study, sensitivity

SMALL = gemm(m=4, n=3, k=2, name="small")
TINY = Workload("tiny", (gemm(m=4, n=2, k=2), conv2d(c=1, k=2, p=3, q=1, r=2, s=1, name="conv")))


def two_levels(capacity: int = 64, units: int = 2) -> Arch:
    """Build a machine of a shared cache and small private ones, where all can bind."""
    return Arch(
        "two",
        (
            Level("DRAM", "memory", None),
            Level("L2", "cache", capacity, bandwidth_bytes_per_s=2e9),
            Level("L1", "cache", 24, units, "PE", bandwidth_bytes_per_s=8e9),
        ),
        Compute("PE", units, 1e8, 1.2e8, (("fp32", 2),)),
    )


# Closed forms.


def test_time_follows_the_only_bandwidth() -> None:
    waits = Workload("w", (gemm(m=32, n=32, k=32),))
    arch = buffer_arch(capacity_bytes=512, bandwidth_bytes_per_s=1e8)
    found = sensitivity(waits, arch, {"dram.bandwidth": [0.25, 0.5, 2, 8], "compute.clock": [2]})
    bandwidth, clock = found.parameters
    assert (bandwidth.key, clock.key) == ("DRAM.bandwidth", "compute.clock")
    assert bandwidth.elasticity == pytest.approx(-1)
    assert bandwidth.range_elasticity == pytest.approx(-1)
    assert clock.elasticity == 0
    assert found.base.bound_by == (("DRAM", 1),)
    assert [point.time_s / found.base.time_s for point in found.points] == [
        pytest.approx(ratio) for ratio in (4, 2, 0.5, 0.125, 1)
    ]


def test_elasticity_around_one_and_over_the_range() -> None:
    """Bytes at 1 GB/s take b seconds a byte, the arithmetic c: time is max(b / x, c)."""
    problem = gemm(m=16, n=16, k=16)  # fits: 3 * 256 elements move once
    moved, macs_per_s = 3 * 256 * 4, 256e9
    balance = moved / (problem.macs / macs_per_s)  # bytes a second at which both take as long
    arch = buffer_arch(capacity_bytes=1 << 16, bandwidth_bytes_per_s=balance)
    found = sensitivity(Workload("w", (problem,)), arch, {"dram.bandwidth": [0.5, 2, 0.125, 4]})
    (one,) = found.parameters
    # Twice as long at a half, no faster at twice: (ln 1 - ln 2) / (ln 2 - ln 1/2).
    assert one.elasticity == pytest.approx(-0.5)
    # Eight times as long at an eighth: -ln 8 / (ln 4 + ln 8).
    assert one.range_elasticity == pytest.approx(-3 / 5)
    assert (one.lowest.factor, one.highest.factor) == (0.125, 4)
    assert one.lowest.bound_by == (("DRAM", 1),)
    assert one.highest.bound_by == (("compute", 1),)


def test_one_sided_ranges_start_at_the_machine_as_it_is() -> None:
    arch = buffer_arch(capacity_bytes=512, bandwidth_bytes_per_s=1e8)
    waits = Workload("w", (gemm(m=32, n=32, k=32),))
    (one,) = sensitivity(waits, arch, {"dram.bandwidth": [4, 2]}).parameters
    assert one.elasticity == pytest.approx(-1)
    assert (one.lowest.key, one.highest.factor) == ("", 4)
    (same,) = sensitivity(waits, arch, {"dram.bandwidth": [1]}).parameters
    assert (same.elasticity, same.range_elasticity) == (None, None)


def test_counts_weigh() -> None:
    arch = buffer_arch(capacity_bytes=512)
    other = gemm(m=5, n=4, k=3)
    plain = sensitivity(Workload("w", (SMALL, other)), arch, {"dram.bandwidth": [2]})
    thrice = sensitivity(Workload("w", (SMALL, other), (3, 1)), arch, {"dram.bandwidth": [2]})
    for once, many in zip((plain.base, *plain.points), (thrice.base, *thrice.points), strict=True):
        first, second = once.layers
        assert many.time_s == pytest.approx(3 * first.time_s + second.time_s)
        assert many.dram_bytes == 3 * first.dram_bytes + second.dram_bytes
        assert (once.n_problems, many.n_problems) == (2, 4)
        assert sum(count for _, count in many.bound_by) == 4


# Against brute force.


@pytest.mark.parametrize("is_one_buffer", [True, False])
def test_every_point_is_the_best_of_all_schedules(is_one_buffer: bool) -> None:
    arch = two_levels()
    if is_one_buffer:
        arch = buffer_arch(capacity_bytes=48, bandwidth_bytes_per_s=1e8, macs_per_cycle=1)
    by_time = sensitivity(TINY, arch, quantity="time").points
    by_bytes = sensitivity(TINY, arch, quantity="dram_bytes").points
    # Half of a single core cannot be.
    assert len(by_time) == len(by_bytes) == 2 * len(arch.keys) - is_one_buffer
    for one, other in zip(by_time, by_bytes, strict=True):
        assert (one.key, one.factor) == (other.key, other.factor)
        machine = arch.scaled(one.key, one.factor)
        for problem, timed, moved in zip(TINY.problems, one.layers, other.layers, strict=True):
            every = [
                evaluate(problem, nest, machine, effort=0)
                for nest in schedules(space_of(problem, machine, None))
            ]
            assert timed.time_s == min(score.time_s for score in every)
            assert moved.dram_bytes == min(score.dram_bytes for score in every)
            # Two units share lists of items, which a list of all schedules does not prove.
            assert (timed.proven and moved.proven) or not is_one_buffer


sizes = st.integers(1, 12)


@given(m=sizes, n=sizes, k=sizes, capacity=st.integers(40, 400), units=st.integers(1, 4))
@example(m=12, n=10, k=9, capacity=59, units=4)  # the base is not proven: one machine in a hundred
@settings(max_examples=8, deadline=None)
def test_more_is_never_slower(m: int, n: int, k: int, capacity: int, units: int) -> None:
    arch = two_levels(4 * capacity, units)
    problem = Workload("w", (gemm(m=m, n=n, k=k),))
    found = sensitivity(
        problem,
        arch,
        {key: (0.5, 3) for key in arch.keys if units > 1 or key != "compute.units"},
    )
    for key in dict.fromkeys(point.key for point in found.points):
        ladder = [found.base, *(point for point in found.points if point.key == key)]
        ladder.sort(key=lambda point: point.ratio)
        for less, more in pairwise(ladder):
            if all(layer.proven for layer in (*less.layers, *more.layers)):
                assert more.time_s <= less.time_s * (1 + 1e-12), (key, less.factor, more.factor)


# What is computed, and how often.


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """List the tasks that are run."""
    tasks: list[Any] = []
    real = study._run

    def noted(what: str, problem: Problem, kernel: Any, arch: Arch, goal: Goal) -> Any:
        tasks.append((what, problem.sizes, arch.digest))
        return real(what, problem, kernel, arch, goal)

    monkeypatch.setattr(study, "_run", noted)
    return tasks


def test_identical_points_are_computed_once(runs: list[Any]) -> None:
    arch = buffer_arch(capacity_bytes=512)
    twin = gemm(m=4, n=3, k=2, name="twin")
    workload = Workload("w", (SMALL, twin, gemm(m=4, n=3, k=3)))
    vary = {"dram.bandwidth": [1, 2, 2.0], "DRAM.bandwidth": [2], "compute.clock": [1, 2]}
    found = sensitivity(workload, arch, vary)
    # Two problems that differ, on the machine itself, twice the bandwidth, twice the clock.
    assert len(runs) == len(set(runs)) == 2 * 3 == Study(workload, arch, vary).n_steps
    assert [(point.key, point.factor) for point in found.points] == [
        ("DRAM.bandwidth", 1), ("DRAM.bandwidth", 2), ("compute.clock", 1), ("compute.clock", 2),
    ]  # fmt: skip
    assert found.points[0].layers == found.base.layers
    assert found.base.layers[0] == found.base.layers[1]


def test_kernel_numbers_need_no_search(runs: list[Any]) -> None:
    arch = load_arch("titan_v")
    workload = Workload("w", (gemm(m=512, n=512, k=512),))
    found = sensitivity(workload, arch, {"gpu.launch": [2, 4], "gpu.dram_efficiency": [2, 4]})
    assert sum(what == "search" for what, *_ in runs) == 1
    # As it is, launch twice and four times, and efficiency: a share, 1 at most.
    assert sum(what == "estimate" for what, *_ in runs) == 4
    assert {point.time_s for point in found.points} == {found.base.time_s}
    base, launch = found.base.estimate_s, found.points[0].estimate_s
    assert base is not None
    assert launch is not None
    assert launch > base
    efficiency = load_arch("titan_v").kernel_limits.dram_efficiency
    assert [point.ratio for point in found.points[2:]] == [pytest.approx(1 / efficiency)] * 2


def test_what_libraries_do_not_have_has_no_estimate() -> None:
    problem = einsum("abc,cd->abd", {"a": 2, "b": 2, "c": 3, "d": 4})
    arch = load_arch("titan_v")
    point = next(Study(Workload("w", (problem,)), arch, {"gpu.launch": [2]}).points())
    assert point.estimate_s is None
    assert point.estimate_bound_by == ()
    no_gpu = buffer_arch(capacity_bytes=512)
    found = sensitivity(Workload("w", (SMALL,)), no_gpu, {"dram.bandwidth": [2]})
    assert found.ranked("estimate")[0].elasticity is None
    assert found.rows[1]["estimate_change"] is None


def test_hand_written_kernels_in_the_place_of_the_librarys() -> None:
    """Report 000: its kernel waits for weights from L2, so that latency matters."""
    workload, kernels = kernel_workload("direct,size=16,block=8")
    arch = load_arch("titan_v")
    vary = {"gpu.l2_latency": [0.5, 2], "gpu.launch": [2]}
    found = sensitivity(workload, arch, vary, kernels=kernels, quantity="estimate")
    half, latency, launch = (point.estimate_s for point in found.points)
    base = found.base.estimate_s
    assert None not in (half, latency, launch, base)
    kernel = preset("direct", size=16, block=8)[0][0]
    assert base == estimate_kernel(kernel, arch).time_s
    assert latency == estimate_kernel(kernel, arch.scaled("gpu.l2_latency", 2)).time_s
    assert half < base < latency  # type: ignore[operator]
    assert base < launch  # type: ignore[operator]
    assert {point.time_s for point in found.points} == {found.base.time_s}
    waits = found.summary["parameters"]
    assert isinstance(waits, list)
    assert {"time_elasticity": 0, "key": "gpu.l2_latency"}.items() <= waits[0].items()


def test_kernels_that_are_started_often() -> None:
    arch = load_arch("titan_v")
    workload, kernels = kernel_workload("layer_unroll,batch=3")
    assert [(kernel.name, n) for kernel, n in kernels[0]] == [("unroll", 3), ("multiply", 3)]
    base = next(Study(workload, arch, {"gpu.launch": [2]}, kernels=kernels).points())
    assert base.n_problems == 3
    assert base.estimate_s == pytest.approx(estimate_steps(kernels[0], arch).time_s)
    for wrong in ("direc", "direct,size", "direct,size=x", "direct,size=1,size=2", "direct,siz=1"):
        with pytest.raises(InputError, match=r"direct|siz"):
            kernel_workload(wrong)
    with pytest.raises(ConstraintError, match="1 kernels for 2 problems"):
        sensitivity(TINY, arch, {"gpu.launch": [2]}, kernels=kernels)


def test_processes_change_nothing() -> None:
    arch = two_levels()
    vary = {"dram.bandwidth": [0.5, 2], "compute.units": [2]}
    assert sensitivity(TINY, arch, vary, jobs=2) == sensitivity(TINY, arch, vary, jobs=1)


def test_whole_numbers_are_rounded_and_told() -> None:
    arch = two_levels(units=3)
    half = changed_machines(arch, {"compute.units": [0.5], "compute.macs": [0.5]})
    assert [point.arch.compute.units for point in half] == [3, 2, 3]
    assert [point.ratio for point in half] == [1, pytest.approx(2 / 3), 0.5]


def test_an_open_search_takes_what_another_point_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches that prove nothing and find nonsense do not make a larger machine slower."""
    real = study._run

    def weak(what: str, problem: Problem, kernel: Any, arch: Arch, goal: Goal) -> Any:
        if what == "search" and arch.compute.clock_hz > 1.5e8:
            worst = parse_schedule("K:8 N:8 M:8", problem)
            score = evaluate(problem, worst, arch)
            return score.time_s, score.dram_bytes, score.bound_by, False, worst
        return real(what, problem, kernel, arch, goal)

    monkeypatch.setattr(study, "_run", weak)
    workload = Workload("w", (gemm(m=8, n=8, k=8),))
    found = sensitivity(workload, two_levels(units=4), {"compute.clock": [0.5, 2]})
    (layer,) = found.points[1].layers
    assert not layer.proven
    assert layer.time_s <= found.base.time_s
    serial_s = 8**3 / (2 * 2e8)  # one unit does it all in the nonsense
    assert layer.time_s < serial_s


# Arguments.


def test_vary_texts() -> None:
    assert parse_vary([]) == {}
    assert parse_vary([" L2.capacity = 0.5 , 2 "]) == {"L2.capacity": (0.5, 2.0)}
    with pytest.raises(ConstraintError) as caught:
        parse_vary(["dram", "=2", "a=", "b=1,x,"])
    assert caught.value.problems == (
        "'dram' is not KEY=FACTOR,..., such as dram.bandwidth=0.5,2",
        "'=2' is not KEY=FACTOR,..., such as dram.bandwidth=0.5,2",
        "'a=' is not KEY=FACTOR,..., such as dram.bandwidth=0.5,2",
        "b: factor 'x' is not a number; give what to multiply the machine's value by, such as 2",
        "b: factor '' is not a number; give what to multiply the machine's value by, such as 2",
    )


def test_all_that_is_wrong_is_told_before_any_search() -> None:
    arch = buffer_arch(capacity_bytes=1)
    vary: dict[str, Any] = {
        "dram.bandwith": [2],
        "dram.bandwidth": [0, -1, float("nan"), float("inf"), "2", True],
        "compute.clock": [],
    }
    with pytest.raises(ConstraintError) as caught:
        sensitivity(TINY, arch, vary)
    said = str(caught.value)
    assert len(caught.value.problems) == 8
    assert "no 'dram.bandwith'; did you mean 'DRAM.bandwidth'?" in said
    assert "DRAM.bandwidth: factor nan is not a number from 1e-06 to 1e+06" in said
    assert "DRAM.bandwidth: factor '2' is not a number" in said
    assert "compute.clock: no factors" in said
    with pytest.raises(ConstraintError, match=r"buffer.capacity times 0.1: .*capacity"):
        sensitivity(TINY, arch, {"buffer.capacity": [0.1]})
    with pytest.raises(ConstraintError, match=r"more than 10000 points"):
        changed_machines(arch, {"dram.bandwidth": range(1, 10_002)})
    for wrong in ({"jobs": 0}, {"jobs": 1.5}, {"quantity": "tim"}):
        with pytest.raises(ConstraintError, match=r"a whole number >= 1|did you mean 'time'"):
            sensitivity(TINY, arch, None, **wrong)  # type: ignore[arg-type]


# The command.

COMMAND = ["sensitivity", "gemm:m=64,n=48,k=40", "--vary", "dram.bandwidth=0.5,2", "-v",
           "gpu.launch=2", "-v", "gpu.blocks=2"]  # fmt: skip


def test_table(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run(COMMAND) == 0
    printed = capsys.readouterr().out
    lines = printed.splitlines()
    assert all(len(line) <= 80 for line in lines)
    titles = ["changed", "by", "time,", "change", "DRAM", "kernels,", "change", "bound", "by"]
    assert lines[0].split() == titles
    assert lines[2].startswith("nothing ")
    assert lines[3].split()[:2] == ["DRAM.bandwidth", "0.5"]
    assert any(line.startswith("gpu.launch ") and " 0.000 " in line for line in lines)
    assert "Without effect: gpu.blocks." in printed
    assert "\n    DRAM -> L2\ngpu.launch" in printed
    assert "L2 1 -> L2 1" not in printed
    assert "all proven best" in " ".join(printed.split())
    assert "\n1 problem on titan_v, fp32, searched again" in printed
    assert run([*COMMAND, "--format", "json"]) == 0
    row = json.loads(capsys.readouterr().out)["rows"][1]
    assert f"{100 * row['time_change']:+.1f} %" in lines[3]


def test_what_rounding_made_of_a_factor_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """A third of 80 units are 26, which is less than was asked for."""
    assert run(["sensitivity", "gemm:m=64,n=48,k=40", "-v", "compute.units=0.33,0.5"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[3].split()[:3] == ["compute.units", "0.33", "(0.325)"]
    assert lines[4].split()[:3] == ["compute.units", "0.5", lines[4].split()[2]]
    assert "(0.5)" not in lines[4]


def test_json_and_rows(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*COMMAND, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {"summary", "rows"}
    assert found["summary"]["arch"] == "titan_v"
    assert [row["key"] for row in found["rows"]] == [
        None, "DRAM.bandwidth", "DRAM.bandwidth", "gpu.launch", "gpu.blocks",
    ]  # fmt: skip
    problem = gemm(m=64, n=48, k=40)
    best = search(problem, load_arch("titan_v").scaled("dram.bandwidth", 0.5)).evaluation
    row = found["rows"][1]
    assert (row["time_s"], row["dram_bytes"]) == (best.time_s, best.dram_bytes)
    assert row["bound_by"] == {best.bound_by: 1}
    keys = {one["key"]: one for one in found["summary"]["parameters"]}
    assert keys["gpu.launch"]["elasticity"] == 0 < keys["gpu.launch"]["estimate_elasticity"]
    assert run([*COMMAND, "--format", "csv"]) == 0
    lines = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert len(lines) == 5
    assert lines[1]["bound_by"] == f"{best.bound_by} 1"


def test_an_interruption_keeps_what_is_done(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = study.layers_of

    def two(*given: Any, **more: Any) -> Iterator[Any]:
        done = real(*given, **more)
        yield next(done)
        yield next(done)
        raise KeyboardInterrupt

    monkeypatch.setattr("loopsched.study.sensitivity.layers_of", two)
    assert run([*COMMAND, "--format", "json"]) == 130
    printed = capsys.readouterr()
    assert [row["factor"] for row in json.loads(printed.out)["rows"]] == [1, 0.5]
    assert "interrupted" in printed.err


def test_a_kernel_on_the_command_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    command = ["sensitivity", "kernel:direct,size=16", "-v", "gpu.dram_latency=0.5,2"]
    plot = tmp_path / "kernel.svg"
    assert run([*command, "-q", "estimate", "--plot", str(plot)]) == 0
    assert "<!-- kernel direct,size=16 on titan_v -->" in plot.read_text()
    printed = " ".join(capsys.readouterr().out.split())
    assert "kernels: estimated for kernel:direct,size=16." in printed
    assert "parameter elasticity range schedules" in printed
    assert run(["sensitivity", "kernel:dircet"]) == 3
    assert "did you mean 'direct'?" in capsys.readouterr().err


def test_wrong_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    problem = "gemm:m=4,n=4,k=4"
    assert run(["sensitivity", problem, "--vary", "dram.bandwith=2"]) == 3
    assert "did you mean 'DRAM.bandwidth'?" in capsys.readouterr().err
    assert run(["sensitivity", problem, "--vary", "dram.bandwidth"]) == 3
    assert "is not KEY=FACTOR" in capsys.readouterr().err
    assert run(["sensitivity", problem, "--quantity", "watts"]) == 2
    assert run(["sensitivity", problem, "--plot", "x.txt"]) == 3
    capsys.readouterr()
    no_gpu = ["--arch", "titan_v_report_003", "-v", "dram.bandwidth=2"]
    for arguments in ([problem, "-q", "estimate"], ["kernel:direct,size=16"]):
        assert run(["sensitivity", *arguments, *no_gpu]) == 3
        printed = capsys.readouterr()
        assert "'titan_v_report_003' has no 'gpu' part" in printed.err
        assert printed.out == ""
    assert run(["sensitivity", "kernel:direct,size=16", "--element-bytes", "2"]) == 2
    assert "do not apply to kernels of the reports" in capsys.readouterr().err


def test_ranking_by_estimates_needs_an_estimate_of_all() -> None:
    odd = Workload("odd", (gemm(m=4, n=4, k=4), einsum("ab,bc->ca", {"a": 2, "b": 2, "c": 3})))
    with pytest.raises(ConstraintError, match=r"quantity 'estimate': no library's kernel for '"):
        sensitivity(odd, load_arch("titan_v"), {"dram.bandwidth": [2]}, quantity="estimate")


def test_a_number_that_is_left_as_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Times 1, or rounded back to what it was: nothing can be said of its effect."""
    monkeypatch.setenv("COLUMNS", "120")
    problem = "gemm:m=4,n=4,k=4"
    same = ["-v", "dram.bandwidth=1", "-v", "compute.units=1.001"]
    assert run(["sensitivity", problem, *same, "-v", "gpu.blocks=2"]) == 0
    printed = capsys.readouterr().out
    assert "Unchanged by these factors: DRAM.bandwidth, compute.units." in printed
    assert "Without effect: gpu.blocks." in printed


def is_gone(pid: int) -> bool:
    """Wait for a process to end; the pool's thread may be who collects it, so ask the system."""
    for _ in range(1000):
        multiprocessing.active_children()  # collects those that have ended
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.01)
    return False


def test_nobody_is_left_at_work() -> None:
    """Closing the iterator, as an interrupt does, ends the processes at once."""
    points = Study(TINY, two_levels(), {"dram.bandwidth": [2]}).points(jobs=2)
    others = set(multiprocessing.active_children())
    next(points)
    mine = set(multiprocessing.active_children()) - others
    assert mine
    points.close()
    for process in mine:
        assert process.pid is not None
        assert is_gone(process.pid)


def test_an_interrupted_search_is_no_point(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("loopsched.scheduler.exact.Searcher.run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sensitivity(TINY, two_levels(), {"dram.bandwidth": [2]})


def test_plot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    drawn = []
    for name in ("one.svg", "two.svg"):
        assert run([*COMMAND, "--plot", str(tmp_path / name)]) == 0
        drawn.append((tmp_path / name).read_bytes())
    assert drawn[0] == drawn[1]
    assert drawn[0].startswith(b"<?xml")
    no_gpu = [
        "sensitivity",
        "gemm:m=8,n=8,k=8",
        "--element-bytes",
        "2",
        "-a",
        "diannao",
        "-q",
        "dram_bytes",
    ]
    assert run([*no_gpu, "--plot", str(tmp_path / "three.png")]) == 0
    assert (tmp_path / "three.png").stat().st_size > 1000
