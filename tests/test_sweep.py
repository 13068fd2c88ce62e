"""Sweeps: what a file asks for, what is searched, what the rows and totals say."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopsched.base.arguments import Checker
from loopsched.base.errors import LoopschedError, SweepError
from loopsched.machines.arch import Arch, buffer_arch
from loopsched.machines.arch_file import load_arch
from loopsched.machines.levels import Compute, Level
from loopsched.problems.builders import gemm
from loopsched.problems.workload import Workload
from loopsched.scheduler import search
from loopsched.scheduler.rows import result_rows
from loopsched.sweeps.batches import Batches
from loopsched.sweeps.plan import plan_of
from loopsched.sweeps.run import SweepRun, load_run, sweep
from loopsched.sweeps.schema import sweep_schema
from loopsched.sweeps.spec import read_spec
from loopsched.sweeps.summary import machine_rows
from loopsched.sweeps.tasks import FOUND, Answer
from loopsched.sweeps.vary import Setting, read_vary

BUFFER = buffer_arch(capacity_bytes=64)
TITAN_V = load_arch("titan_v")
PAIR = Workload("pair", (gemm(m=4, n=3, k=2), gemm(m=5, n=5, k=5)), counts=(2, 3))


def energetic(factor: float = 1.0) -> Arch:
    levels = (
        Level("DRAM", "memory", None, energy_pj_per_byte=100.0),
        Level("buffer", "cache", 64, bandwidth_bytes_per_s=1e9, energy_pj_per_byte=factor),
    )
    rates = (("fp32", 1),)
    return Arch("mine", levels, Compute("core", 1, 1e9, 1e9, rates, energy_pj_per_mac=1.0))


def machines(vary: dict[str, Any], arch: Arch = BUFFER, **more: Any) -> list[str]:
    entry = {"arch": arch, "vary": vary, **more}
    return [one.name for one in read_spec({"archs": [entry], "workloads": [PAIR]}).machines]


def faults_of(spec: Any) -> list[str]:
    with pytest.raises(SweepError) as caught:
        read_spec(spec)
    return list(caught.value.problems)


# What is asked for.


def test_values_have_units_and_become_machines() -> None:
    vary = {"buffer.CAPACITY": ["1 KiB", "96 B"], "compute.units": [1]}
    entry = {"arch": BUFFER, "vary": vary, "name": "small"}
    found = read_spec({"archs": [entry], "workloads": [PAIR]}).machines
    assert [one.name for one in found] == [
        "small[buffer.capacity=1 KiB, compute.units=1]",
        "small[buffer.capacity=96 B, compute.units=1]",
    ]
    assert [one.arch.level("buffer").capacity_bytes for one in found] == [1024, 96]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"from": "1 GB/s", "to": "100 GB/s", "steps": 3, "scale": "log"}, [1e9, 1e10, 1e11]),
        ({"from": "1 GB/s", "to": "2 GB/s", "steps": "5"}, [1e9, 1.25e9, 1.5e9, 1.75e9, 2e9]),
        ({"factors": {"from": 1, "to": 0.25, "steps": 3, "scale": "log"}}, [1e11, 5e10, 2.5e10]),
        ({"factors": ["0.5", 2]}, [5e10, 2e11]),
        ("3 TB/s", [3e12]),
    ],
)
def test_values_ranges_and_factors(values: Any, expected: list[float]) -> None:
    entry = {"arch": BUFFER, "vary": {"dram.bandwidth": values}}
    found = read_spec({"archs": [entry], "workloads": [PAIR]}).machines
    bandwidths = [one.arch.level("buffer").bandwidth_bytes_per_s for one in found]
    assert bandwidths == pytest.approx(expected, rel=1e-12)


def test_a_range_of_whole_numbers_is_whole_and_names_no_machine_twice() -> None:
    names = machines({"compute.units": {"from": 1, "to": 3, "steps": 5}})
    assert names == [f"buffer[compute.units={count}]" for count in (1, 2, 3)]


def test_product_varies_the_last_number_first() -> None:
    vary = {"buffer.capacity": ["1 B", "2 B"], "compute.macs": [1, 4]}
    assert machines(vary) == [
        "buffer[buffer.capacity=1 B, compute.macs=1]",
        "buffer[buffer.capacity=1 B, compute.macs=4]",
        "buffer[buffer.capacity=2 B, compute.macs=1]",
        "buffer[buffer.capacity=2 B, compute.macs=4]",
    ]


def test_zip_pairs_values() -> None:
    vary = {"buffer.capacity": ["1 B", "2 B"], "compute.macs": [1, 4]}
    assert machines(vary, combine="zip") == [
        "buffer[buffer.capacity=1 B, compute.macs=1]",
        "buffer[buffer.capacity=2 B, compute.macs=4]",
    ]


def test_near_values_keep_names_of_their_own() -> None:
    names = machines({"DRAM.bandwidth": ["100.01 GB/s", "100.02 GB/s"]})
    assert names == ["buffer[DRAM.bandwidth=100.01 GB/s]", "buffer[DRAM.bandwidth=100.02 GB/s]"]


BAD = """\
archs:
  - titan_w
  - arch: titan_v
    vray: {}
    vary:
      L2.capacty: [2 MiB]
      L1.capacity: [2, 3 XB, 64 KiB]
      DRAM.bandwidth: {from: 1, to: 2 GB/s, steps: 1, scale: lin}
      gpu.l2_latency: {factors: [1, 2]}
      compute.units: {factors: [a, 1e9]}
  - 3: 4
workload: x
objectives: [tme]
top: 0
seed: -1
constraints: {fix: [x], tile: a}
"""


def test_all_faults_of_a_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(BAD)
    found = faults_of(path)
    starts = [
        "unknown field 'workload'; did you mean 'workloads'?",
        "archs[0]: 'titan_w': no architecture 'titan_w'; did you mean 'titan_v'?",
        "archs[1]: unknown field 'vray'; did you mean 'vary'?",
        "archs[1].vary: 'titan_v' has no 'L2.capacty'; did you mean 'L2.capacity'?",
        "archs[1].vary.L1.capacity[0]: '2' has no unit",
        "archs[1].vary.L1.capacity[1]: '3 XB': unknown unit 'XB'",
        "archs[1].vary.DRAM.bandwidth.from: '1' has no unit",
        "archs[1].vary.DRAM.bandwidth.steps is 1; a whole number >= 2",
        "archs[1].vary.DRAM.bandwidth.scale is 'lin'; did you mean 'linear'?",
        "archs[1].vary: 'gpu.l2_latency' bears on kernels only",
        "archs[1].vary.compute.units.factors[0] is 'a'; a factor",
        "archs[1].vary.compute.units.factors[1] is '1e9'; a factor",
        "archs[2]: unknown field '3'",
        "archs[2]: no 'arch'",
        "no 'workloads'",
        "objectives[0] is 'tme'; did you mean 'time'?",
        "top is 0",
        "seed is -1",
        "constraints: unknown field 'tile'; did you mean 'tiles'?",
        "constraints: bound 'x' cannot be read",
    ]
    assert len(found) == len(starts)
    for fault, start in zip(found, starts, strict=True):
        assert fault.startswith(start)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"archs": [BUFFER, BUFFER], "workloads": [PAIR]}, "'buffer' occurs 2 times; set a 'name'"),
        ({"archs": [BUFFER], "workloads": [PAIR, PAIR]}, "'pair' occurs 2 times; set a 'name'"),
        ({"archs": [BUFFER], "workloads": ["gemm:m=0,n=1,k=1"]}, "workloads[0]: "),
        (
            {"archs": [BUFFER], "workloads": [{"workload": PAIR, "layers": [7]}]},
            "no layer 7; layers are numbered 0 to 1",
        ),
        ({"archs": [BUFFER], "workloads": [PAIR], "objectives": "edp"}, "needs an energy"),
        ({"archs": [], "workloads": [PAIR]}, "archs is []"),
        ({"layer": 0, "seed": 0}, "sweep: neither 'archs' nor 'workloads'; is it a sweep file?"),
        (
            {
                "archs": [
                    {
                        "arch": BUFFER,
                        "combine": "zip",
                        "vary": {"compute.macs": [1, 2], "buffer.capacity": ["1 B"]},
                    }
                ],
                "workloads": [PAIR],
            },
            "zip needs equally many values of each parameter, not 2 and 1",
        ),
        (
            {
                "archs": [{"arch": BUFFER, "vary": {"compute.units": {"factors": [0.1]}}}],
                "workloads": [PAIR],
            },
            "archs[0].vary: compute.units*0.1: ",
        ),
    ],
)
def test_one_fault(spec: dict[str, Any], message: str) -> None:
    [fault] = faults_of(spec)
    assert message in fault


def test_singular_fields_lead_to_the_plural_ones() -> None:
    first, second, *_ = faults_of({"arch": BUFFER, "workload": PAIR})
    assert first.startswith("unknown field 'arch'; did you mean 'archs'?")
    assert second.startswith("unknown field 'workload'; did you mean 'workloads'?")


def test_constraints_that_a_problem_cannot_meet_are_refused_before_the_work(
    tmp_path: Path,
) -> None:
    spec = {"archs": [BUFFER], "workloads": [PAIR], "constraints": {"order": ["Z>M"]}}
    with pytest.raises(SweepError, match="Z"):
        sweep(spec, tmp_path / "run")
    assert not (tmp_path / "run").exists()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
    | st.sampled_from(["titan_v", "gemm:m=2,n=2,k=2", "time", "2 MiB", "log"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["arch", "vary", "factors", "from", "to", "steps", "scale", "workload",
                         "layers", "name", "L2.capacity", "compute.macs", "fix", "combine"]),
        inner,
        max_size=4,
    ),
    max_leaves=8,
)  # fmt: skip
FIELDS = st.sampled_from(
    ["archs", "workloads", "objectives", "top", "seed", "constraints", "value", "samples"]
)


@given(st.dictionaries(FIELDS, JSON, max_size=5))
def test_whatever_is_asked_for_is_read_or_refused(spec: dict[str, Any]) -> None:
    with suppress(SweepError):
        assert read_spec(spec).machines


GOOD = {
    "archs": [
        "titan_v",
        {
            "arch": "v100",
            "name": "big",
            "combine": "zip",
            "vary": {
                "L2.capacity": ["6 MiB", "12 MiB"],
                "DRAM.bandwidth": {"factors": {"from": 1, "to": 2, "steps": 2, "scale": "log"}},
            },
        },
    ],
    "workloads": [{"workload": "resnet50", "layers": [0, "1"]}, "gemm:m=4,n=4,k=4"],
    "objectives": ["time", "dram_bytes"],
    "top": 2,
    "constraints": {"tiles": "divisors", "order": ["K>M"]},
}


def test_the_schema_takes_what_the_reader_takes() -> None:
    schema = sweep_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(GOOD, schema)
    assert len(read_spec({**GOOD, "constraints": {"tiles": "divisors"}}).machines) == 3


@pytest.mark.parametrize(
    "change",
    [
        {"archs": []},
        {"archs": [{"vary": {}}]},
        {"archs": [{"arch": "titan_v", "vary": {"L2.capacity": {"from": 1}}}]},
        {"workloads": [{"layers": [1]}]},
        {"objectives": ["tme"]},
        {"top": 0},
        {"seed": -1},
        {"constraints": {"tiles": "some"}},
        {"objective": "time"},
    ],
)
def test_the_schema_refuses_what_the_reader_refuses(change: dict[str, Any]) -> None:
    spec = {**GOOD, "constraints": {"tiles": "all"}, **change}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(spec, sweep_schema())
    assert faults_of(spec)


# What is found.


def test_rows_are_what_searches_of_the_changed_machines_find(tmp_path: Path) -> None:
    spec = {
        "archs": [BUFFER, {"arch": BUFFER, "vary": {"buffer.capacity": ["96 B"]}}],
        "workloads": [PAIR],
        "objectives": ["time", "dram_bytes"],
        "top": 2,
    }
    rows = list(sweep(spec, tmp_path).rows())
    expected = []
    for arch in (BUFFER, BUFFER.with_value("buffer.capacity", 96)):
        for problem in PAIR.problems:
            for objective in ("time", "dram_bytes"):
                result = search(problem, arch, objective=objective, top=2)
                expected += result_rows(result, has_brackets=False)
    assert len(rows) == len(expected) > 8
    for row, one in zip(rows, expected, strict=True):
        shown = {name: value for name, value in one.items() if name in row}
        assert {"schedule", "dram_bytes", "gap", "proven"} < set(shown)
        assert {name: row[name] for name in shown} == shown
        assert row["error"] is None
    assert [row["count"] for row in rows if row["rank"] == 1] == [2, 2, 3, 3, 2, 2, 3, 3]
    assert {row["buffer.capacity"] for row in rows} == {64.0, 96.0}
    assert set(FOUND) | {"error"} <= set(rows[0])


def test_the_seed_and_the_strategy_reach_the_search(tmp_path: Path) -> None:
    problem = gemm(m=12, n=12, k=12)
    spec = {"archs": [BUFFER], "workloads": [Workload("w", (problem,))], "strategy": "random"}
    found = set()
    for seed in range(4):
        [row] = sweep({**spec, "samples": 3, "seed": seed}, tmp_path / f"{seed}").rows()
        one = search(problem, BUFFER, strategy="random", samples=3, seed=seed)
        assert row["schedule"] == str(one.schedule)
        found.add(row["schedule"])
    assert len(found) > 1


def test_equal_work_is_done_once_and_told_everywhere(tmp_path: Path) -> None:
    twice = Workload("twice", (gemm(m=4, n=4, k=4), gemm(m=4, n=4, k=4, name="again")))
    spec = {"archs": [BUFFER, {"arch": BUFFER, "name": "same"}], "workloads": [twice]}
    run = sweep(spec, tmp_path)
    assert (run.n_tasks, len((tmp_path / "shards/000001.jsonl").read_text().splitlines())) == (1, 1)
    rows = list(run.rows())
    assert [(row["arch"], row["problem"]) for row in rows] == [
        ("buffer", "m4 n4 k4"), ("buffer", "again"), ("same", "m4 n4 k4"), ("same", "again"),
    ]  # fmt: skip
    assert len({row["schedule"] for row in rows}) == 1


def test_where_nothing_fits_the_row_says_so_and_the_sweep_goes_on(tmp_path: Path) -> None:
    small = buffer_arch(capacity_bytes=8, policy="explicit")
    vary = {"buffer.capacity": ["8 B", "1 KiB"]}
    run = sweep({"archs": [{"arch": small, "vary": vary}], "workloads": [PAIR]}, tmp_path)
    failed, done = list(run.rows())[:2], list(run.rows())[2:]
    for row in failed:
        assert row["error"].startswith("nothing fits, the operands of one point need more than")
        assert "the problem" not in row["error"]
        assert row["time_s"] is row["schedule"] is row["levels"] is None
    assert [list(row) for row in failed] == [list(row) for row in done]
    first, last = run.machines()
    assert (first["arch"], first["place"]) == ("buffer[buffer.capacity=1 KiB]", 1)
    assert (last["failed"], last["place"], last["relative"]) == (2, None, None)
    assert not last["is_front"]
    assert first["error"] is None
    assert last["error"].startswith("m4 n3 k2: nothing fits, ")


def test_energy_is_summed_with_counts(tmp_path: Path) -> None:
    spec = {
        "archs": [energetic(), {"arch": energetic(2.0), "name": "worse"}],
        "workloads": [PAIR],
        "objectives": ["edp"],
    }
    run = sweep(spec, tmp_path)
    best, worse = run.machines()
    expected = 0.0
    for problem, count in zip(PAIR.problems, PAIR.counts, strict=True):
        found = search(problem, energetic(), objective="edp").evaluation
        assert found.energy_pj is not None
        expected += count * found.energy_pj
    assert best["energy_pj"] == pytest.approx(expected)
    assert (best["arch"], worse["arch"]) == ("mine", "worse")


ROW = {
    "base": "a", "workload": "w", "objective": "time", "rank": 1, "count": 1, "dram_bytes": 1,
    "proven": True, "energy_pj": None, "error": None,
}  # fmt: skip


def test_energy_delay_products_are_summed_with_counts() -> None:
    """3 * 1 * 1 + 1 * 1 * 4 on one machine, 3 * 2 * 1 + 1 * 1 * 0.5 on the other."""
    layers = [("a", 3, 1.0, 1.0), ("a", 1, 1.0, 4.0), ("b", 3, 2.0, 1.0), ("b", 1, 1.0, 0.5)]
    rows = [
        {**ROW, "objective": "edp", "arch": arch, "count": count, "energy_pj": energy, "time_s": s}
        for arch, count, energy, s in layers
    ]
    found = [(one["arch"], one["relative"]) for one in machine_rows(rows, [])]
    assert found == [("b", 1.0), ("a", 7.0 / 6.5)]


def test_the_front_leaves_out_what_costs_more_and_gives_no_more() -> None:
    # name, base, capacity, bandwidth, time
    table = [
        ("least", "a", 1, 1, 9.0),
        ("more for less time", "a", 2, 1, 5.0),
        ("more for nothing", "a", 3, 1, 5.0),
        ("other trade", "a", 1, 2, 7.0),
        ("dominated", "a", 2, 2, 6.0),
        ("everything", "a", 3, 3, 1.0),
        ("another machine", "b", 3, 3, 2.0),
    ]
    rows = [
        {**ROW, "arch": name, "base": base, "c": float(c), "b": float(b), "time_s": time_s}
        for name, base, c, b, time_s in table
    ]
    found = machine_rows(rows, ["c", "b"])
    assert [row["arch"] for row in found if row["is_front"]] == [
        "everything", "another machine", "more for less time", "other trade", "least",
    ]  # fmt: skip
    assert [row["place"] for row in found] == [1, 2, 3, 4, 5, 6, 7]
    assert found[1]["relative"] == 2.0


@given(
    st.lists(st.tuples(st.sampled_from("ab"), *[st.integers(1, 3)] * 3), min_size=1, max_size=12)
)
def test_the_front_is_what_no_other_machine_beats(points: list[tuple[str, int, int, int]]) -> None:
    rows = [
        {**ROW, "arch": f"{i}", "base": base, "c": c, "b": b, "time_s": float(time_s)}
        for i, (base, c, b, time_s) in enumerate(points)
    ]
    front = {row["arch"] for row in machine_rows(rows, ["c", "b"]) if row["is_front"]}
    assert front == {
        f"{i}"
        for i, mine in enumerate(points)
        if not any(
            other[0] == mine[0]
            and other != mine
            and all(its <= own for its, own in zip(other[1:], mine[1:], strict=True))
            for other in points
        )
    }


def test_a_machine_with_layers_to_do_has_no_place() -> None:
    rows = [
        {**ROW, "arch": "done", "time_s": 2.0},
        {**ROW, "arch": "done", "time_s": 2.0},
        {**ROW, "arch": "begun", "time_s": 1.0},
    ]
    done, begun = machine_rows(rows, [], {"w": 2})
    assert (done["arch"], done["place"], done["missing"]) == ("done", 1, 0)
    assert (begun["arch"], begun["place"], begun["missing"], begun["layers"]) == (
        "begun", None, 1, 2,
    )  # fmt: skip
    assert not begun["is_front"]


def test_totals_count_layers_and_leave_out_the_second_best() -> None:
    rows = [
        {**ROW, "arch": "x", "count": 3, "time_s": 2.0},
        {**ROW, "arch": "x", "rank": 2, "time_s": 50.0},
        {**ROW, "arch": "x", "count": 2, "time_s": 0.5, "proven": False},
    ]
    [total] = machine_rows(rows, [])
    assert (total["time_s"], total["dram_bytes"]) == (7.0, 5)
    assert (total["layers"], total["proven"], total["failed"]) == (2, 1, 0)


def test_results_as_parquet_and_frames_are_the_rows(tmp_path: Path) -> None:
    import duckdb
    from pyarrow import parquet

    spec = {
        "archs": [buffer_arch(capacity_bytes=8, policy="explicit"), TITAN_V],
        "workloads": [PAIR],
    }
    run = sweep(spec, tmp_path, results="parquet")
    assert [path.name for path in run.results] == ["results.parquet"]
    assert parquet.read_table(tmp_path / "results.parquet").equals(run.to_arrow())
    rows = list(run.rows())
    assert run.to_arrow().to_pylist() == [
        {**row, "space_size": row["space_size"] and float(row["space_size"])} for row in rows
    ]
    assert list(run.to_pandas()["schedule"])[2:] == [row["schedule"] for row in rows][2:]
    both = sweep(spec, tmp_path)  # the other form, without any search
    assert [path.name for path in both.results] == ["results.jsonl", "results.parquet"]
    query = f"SELECT schedule FROM read_json('{tmp_path}/results.jsonl')"
    assert [row["schedule"] for row in rows] == [one for (one,) in duckdb.sql(query).fetchall()]


def test_a_run_without_a_variation_has_an_empty_list_of_numbers(tmp_path: Path) -> None:
    run = sweep({"archs": ["titan_v"], "workloads": "gemm:m=8,n=8,k=8"}, tmp_path)
    assert isinstance(run, SweepRun)
    assert (run.keys, run.is_complete) == ((), True)
    assert load_run(tmp_path) == run


@pytest.mark.parametrize(
    ("options", "message"),
    [({"jobs": 0}, "jobs is 0"), ({"jobs": True}, "jobs is True"), ({"results": "json"}, "jsonl")],
)
def test_arguments_are_checked(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(SweepError, match=message):
        sweep({"archs": [BUFFER], "workloads": [PAIR]}, tmp_path / "run", **options)
    assert not (tmp_path / "run").exists()


# Batches.


def batches(n_machines: int = 40, done: Any = (), workers: int = 2) -> Batches:
    vary = {"buffer.capacity": {"from": "64 B", "to": "4096 B", "steps": n_machines}}
    spec = {"archs": [{"arch": BUFFER, "vary": vary}], "workloads": [PAIR]}
    return Batches(plan_of(read_spec(spec), "1"), done, workers)


def taken(source: Batches) -> list[list[int]]:
    found = []
    while (batch := source.take()) is not None:
        found.append([task.number for task in batch.tasks])
    return found


def test_every_task_is_in_one_batch() -> None:
    numbers = [number for batch in taken(batches(done={0, 3, 79})) for number in batch]
    assert numbers == [number for number in range(79) if number not in (0, 3)]


def test_batches_are_as_long_as_what_is_known_of_their_searches() -> None:
    source = batches(400)  # of two kinds, even and odd
    source.learn([Answer(0, "[]", "", 0.19), Answer(1, "[]", "", 0.001)])
    first = taken(source)[0]
    assert len(first) in (4, 5)  # 0.4 s: two long ones
    quick = batches(400)
    quick.learn([Answer(0, "[]", "", 0.001), Answer(1, "[]", "", 0.001)])
    sizes = [len(batch) for batch in taken(quick)]
    assert 150 < sizes[0] <= 200  # a quarter of what is left
    assert sizes[-1] == 1
    assert sizes == sorted(sizes, reverse=True)


def test_a_lost_batch_comes_back_one_by_one_and_not_for_ever() -> None:
    source = batches()
    batch = source.take()
    assert batch is not None
    assert len(batch.tasks) > 1
    assert source.lost(batch, "by signal 9") == ()
    again = [source.take() for _ in batch.tasks]
    assert [[task.number for task in one.tasks] for one in again if one] == [
        [task.number] for task in batch.tasks
    ]
    assert again[0] is not None
    one = again[0]
    for _ in range(2):
        assert source.lost(one, "by signal 9") == ()
        next_one = source.take()
        assert next_one is not None
        one = next_one
    [answer] = source.lost(one, "by signal 9")
    assert answer.failure == "given up after 3 times: by signal 9"
    assert answer.task == one.tasks[0].number


def test_a_setting_is_what_the_machine_becomes() -> None:
    check = Checker("example", SweepError)
    found = read_vary(check, "vary", {"L2.capacity": "2 MiB"}, TITAN_V, "product")
    assert found == [(Setting("L2.capacity", 2**21),)]
    assert found[0][0].of(TITAN_V).level("L2").capacity_bytes == 2**21
    assert not check.faults


@settings(max_examples=10)
@given(st.lists(st.sampled_from(["1 KiB", "2 KiB", "96 B"]), min_size=1, max_size=3, unique=True))
def test_the_manifest_holds_all_that_makes_the_results(sizes: list[str]) -> None:
    spec = {"archs": [{"arch": BUFFER, "vary": {"buffer.capacity": sizes}}], "workloads": [PAIR]}
    manifest = plan_of(read_spec(spec), "1.5", "loopsched sweep x").manifest
    assert json.loads(json.dumps(manifest)) == manifest
    assert len({arch["digest"] for arch in manifest["archs"]}) == len(sizes)
    assert manifest["version"] == "1.5"
    assert manifest["command"] == "loopsched sweep x"
    assert {"python", "numpy", "numba", "seed", "spec"} <= set(manifest)


def test_a_search_that_fails_by_a_bug_of_ours_is_told_and_the_others_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import loopsched.scheduler

    def broken(problem: Any, *rest: Any, **fields: Any) -> Any:
        if dict(problem.sizes).get("M") == 5:
            raise ZeroDivisionError("a bug")
        return search(problem, *rest, **fields)

    spec = {"archs": [BUFFER], "workloads": [PAIR]}
    monkeypatch.setattr(loopsched.scheduler, "search", broken)
    with pytest.raises(LoopschedError, match=r"1 of 2 searches failed.*\n.*m5 n5 k5 on buffer"):
        sweep(spec, tmp_path)
    assert (load_run(tmp_path).n_done, load_run(tmp_path).results) == (1, ())
    monkeypatch.undo()
    assert sweep(spec, tmp_path).is_complete
