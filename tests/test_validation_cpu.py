"""Kernels held against measurements: the sums, files, plans, and the command."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loopsched import InputError, conv2d, einsum, gemm, validate_cpu
from loopsched import compile as compiled
from loopsched.cli import run
from loopsched.codegen.choose import ranked
from loopsched.codegen.contraction import contractions
from loopsched.codegen.element import FP32
from loopsched.codegen.measure import (
    PlanTime,
    chosen_plans,
    compiled_plan,
    measure_plans,
    random_array,
)
from loopsched.validation import cpu


def test_plans_that_are_drawn_compute_what_others_do() -> None:
    """Parts of sums are not rounded to bf16 in between."""
    kernel = compiled(gemm(m=20, n=17, k=300), "host", threads=1, data_type="bf16")
    a, b = (random_array(kernel.shapes[name], kernel.element(name), 1) for name in "AB")
    found = []
    for _, plans in chosen_plans(kernel, 16):
        for cycles, task, plan in plans:
            part, out = compiled_plan(kernel, cycles, task, plan), kernel.empty("C")
            out.fill(0)
            given = {"A": a, "B": b, "C": out}
            kernel._share(part, [given[name].ctypes.data for name in part.tensors])
            found.append(out)
    assert len(found) == 16
    assert all(np.array_equal(one, found[0]) for one in found)


ROW = {"problem": "one", "bound_s": 1e-6, "estimate_s": 3e-6, "measured_s": 2e-6}
ROWS = [
    ROW,
    ROW | {"problem": "two", "estimate_s": 1e-6, "measured_s": 4e-6},
    ROW | {"problem": "three", "estimate_s": 9e-6, "measured_s": 5e-7},
    ROW | {"problem": "any", "estimate_s": None},
]


def written(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return str(path)


def test_sums_of_a_file(tmp_path: Path) -> None:
    found = validate_cpu(written(tmp_path / "runs.jsonl", ROWS))
    error = np.array([3 / 2, 1 / 4, 9 / 0.5]) - 1
    said = found.summary
    assert (said["problems"], said["estimated"]) == (4, 3)
    assert said["mape"] == pytest.approx(np.abs(error).mean())
    assert said["median_error"] == pytest.approx(np.median(np.abs(error)))
    assert said["geometric_mean_ratio"] == pytest.approx(np.prod(error + 1) ** (1 / 3))
    assert said["rank_correlation"] == -1  # 3 1 9 beside 2 4 0.5
    assert said["bound_violations"] == 1
    assert said["first_over_best"] is None
    assert [row["is_below_bound"] for row in found.rows] == [False, False, True, False]


def test_a_file_that_run_wrote(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("runs.csv", "runs.jsonl", "runs.json", "runs.parquet"):
        file = str(tmp_path / name)
        assert run(["run", "gemm:m=9,n=8,k=7", "--threads", "1", "--out", file]) == 0
        capsys.readouterr()
        assert run(["validate", "cpu", file, "--format", "json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["summary"]["estimated"] == 1
        assert found["rows"][0]["problem"] == "m9 n8 k7"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"problem": "one"}, "row 1: 'bound_s' is None; seconds above zero"),
        (ROW | {"measured_s": 0}, "'measured_s' is 0"),
        (ROW | {"measured_s": math.inf}, "'measured_s' is inf"),
        (ROW | {"estimate_s": "fast"}, "'estimate_s' is 'fast'"),
    ],
)
def test_rows_of_something_else(row: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        validate_cpu(written(tmp_path / "other.jsonl", [row]))


def test_rows_of_a_search(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("found.jsonl", "found.csv"):
        file = str(tmp_path / name)
        assert run(["search", "gemm:m=4,n=3,k=2", "--out", file]) == 0
        capsys.readouterr()
        assert run(["validate", "cpu", file]) == 3
        said = "saved by 'search --out'; rows saved by 'run --out' are needed"
        assert capsys.readouterr().err == f"Error: {file}: {said}\n"


def test_no_rows(tmp_path: Path) -> None:
    (tmp_path / "none.json").write_text("[]", encoding="utf-8")
    with pytest.raises(InputError, match="no rows"):
        validate_cpu(tmp_path / "none.json")


@pytest.mark.parametrize(("word", "value"), [("plans", 0), ("plans", "8"), ("seed", -1)])
def test_wrong_arguments(word: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"{word} is"):
        validate_cpu([], **{word: value})


def test_the_first_choice_of_each_part_counts() -> None:
    times = [(0, 1, 4.0), (0, 2, 3.0), (0, 9, 7.0), (1, 1, 2.0), (1, 2, 1.0)]
    timed = [PlanTime(part, rank, float(rank), taken, "") for part, rank, taken in times]
    found = cpu._choice(timed)
    assert found["first_over_best"] == (4 + 2) / (3 + 1)
    assert found["plan_rank_correlation"] == pytest.approx((0.5 - 1) / 2)
    errors = [abs(one.rank / one.measured_s - 1) for one in timed]
    assert found["plan_mape"] == pytest.approx(sum(errors) / 5)
    assert cpu._choice([])["first_over_best"] is None


def test_plans_that_are_timed() -> None:
    """The best half in order, then others as they are drawn; and so of each part."""
    problem = conv2d(n=1, c=3, k=4, h=8, w=8, r=3, s=3, stride=2, padding=1, pass_="backward_data")
    kernel = compiled(problem, threads=1)
    timed = measure_plans(kernel, 7, seed=3, budget_s=0.001)
    assert [one.part for one in timed] == [part for part in range(4) for _ in range(7)]
    assert [one.rank for one in timed] == [1, 2, 3, 4, 0, 0, 0] * 4
    for number, task in enumerate(contractions(problem)):
        own = [one for one in timed if one.part == number]
        every = ranked(task, kernel.core, 1)
        assert [one.estimate_s for one in own[:4]] == [
            cycles / kernel.core.hertz for cycles, _, _ in every[:4]
        ]
        assert all(one.measured_s > 0 for one in own)
        assert len({one.plan for one in own}) > 4
    again = measure_plans(kernel, 7, seed=3, budget_s=0.001)
    assert [one.plan for one in again] == [one.plan for one in timed]
    other = measure_plans(kernel, 7, seed=4, budget_s=0.001)
    assert [one.plan for one in other] != [one.plan for one in timed]


def test_plans_that_are_drawn_fit_and_are_right() -> None:
    """Their sums fit the registers, their packed blocks the last cache; results are exact."""
    problem = conv2d(n=2, c=5, k=20, h=9, w=9, r=3, s=3, padding=1)
    kernel = compiled(problem, threads=1)
    ((task, plans),) = chosen_plans(kernel, 40)
    numbers = [random_array(kernel.shapes[name], FP32, at) for at, name in enumerate(kernel.names)]
    wanted = kernel(*numbers[:2])
    places = dict(zip(kernel.names, numbers, strict=True))
    for _, one, plan in plans[20:]:
        n = plan.tile_cols // kernel.core.lanes
        assert plan.tile_rows * n + n + 1 <= kernel.core.registers
        assert {one.left.name, one.right.name} == {task.left.name, task.right.name}
        part = compiled_plan(kernel, 1.0, one, plan)
        assert part.room <= kernel.core.last_bytes + 2**16
        numbers[2][...] = 9
        kernel._share(part, [places[name].ctypes.data for name in part.tensors])
        assert np.array_equal(numbers[2], wanted)


def test_nothing_chooses_what_the_general_path_runs() -> None:
    problem = einsum("ab,bc,cd->ad", {"a": 5, "b": 6, "c": 7, "d": 8})
    assert measure_plans(compiled(problem), 4) == []
    (row,) = validate_cpu([problem], plans=4).rows
    assert row["error"] is None
    assert row["first_over_best"] is None


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["validate", "cpu", "gemm:m=20,n=40,k=30", "--threads", "1", "--plans", "4"]
    assert run(given) == 0
    assert "geometric mean" in " ".join(capsys.readouterr().out.split())
    assert run([*given, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (row,) = found["rows"]
    assert [one["rank"] for one in row["plans"]][:2] == [1, 2]
    assert len(row["plans"]) == 4
    assert found["summary"]["first_over_best"] >= 1
    assert gemm(m=20, n=40, k=30).name == row["problem"]
