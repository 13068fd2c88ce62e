"""Timeloop's files: read back exactly, in Timeloop's form, and meaning what they meant."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import jsonschema
import oracle
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from strategies import machines, problems, schedules

from loopsched import buffer_arch, conv2d, evaluate, gemm, load_arch, parse_schedule
from loopsched.base.errors import ArchError, InputError, ProblemError, ScheduleError
from loopsched.cli import run
from loopsched.exchange.exported import Exported
from loopsched.exchange.timeloop import from_timeloop, read_timeloop, to_timeloop
from loopsched.machines.arch import Arch
from loopsched.models.machine import roles
from loopsched.nests.nest import Schedule
from loopsched.problems.problem import Problem

TITAN_V = load_arch("titan_v")

# Written from Timeloop's documentation of its inputs and the classes of its front end.
_WORDS = {"type": "array", "items": {"type": "string"}}
_NAME = {"type": "string", "minLength": 1}
_NOTE = {"^ignore": {"type": "string"}}


def _form(required: Sequence[str], **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "patternProperties": _NOTE,
        "required": list(required),
        "additionalProperties": False,
    }


_COUNT = {"type": "integer", "minimum": 1}
_POSITIVE = {"type": "number", "exclusiveMinimum": 0}
PROBLEM = _form(
    ("version", "shape", "instance"),
    version={"const": 0.4},
    shape=_form(
        ("dimensions", "data_spaces"),
        name=_NAME,
        dimensions={**_WORDS, "items": {"pattern": "^[A-Za-z]$"}},
        coefficients={
            "type": "array",
            "items": _form(("name", "default"), name=_NAME, default={"const": 1}),
        },
        data_spaces={
            "type": "array",
            "items": _form(
                ("name", "projection"),
                name=_NAME,
                projection={"type": "array", "items": {"type": "array", "items": _WORDS}},
                read_write={"const": True},
            ),
        },
    ),
    instance={"type": "object", "additionalProperties": _COUNT},
)
_STORAGE = {
    "depth": _COUNT,
    "width": _COUNT,
    "datawidth": _COUNT,
    "shared_bandwidth": _POSITIVE,
    "multiple_buffering": {"const": 2},
    "technology": {"const": -1},
}
ARCHITECTURE = _form(
    ("version", "nodes"),
    version={"const": 0.4},
    nodes={
        "type": "array",
        "items": {
            "oneOf": [
                _form(
                    ("!", "name"),
                    **{"!": {"const": "Container"}},
                    name=_NAME,
                    attributes=_form(
                        ("technology", "global_cycle_seconds"),
                        technology=_NAME,
                        global_cycle_seconds=_POSITIVE,
                    ),
                    spatial=_form(("meshX",), meshX=_COUNT),
                ),
                _form(
                    ("!", "name", "class", "attributes"),
                    **{"!": {"const": "Component"}},
                    **{"class": {"enum": ["DRAM", "SRAM", "dummy_storage", "fpmac", "intmac"]}},
                    name=_NAME,
                    attributes=_form(("datawidth",), **_STORAGE),
                ),
            ]
        },
    },
)
_LOOPS = {
    "target": _NAME,
    "factors": {"type": "array", "items": {"pattern": "^[A-Za-z]=[1-9][0-9]*(,[1-9][0-9]*)?$"}},
    "permutation": _WORDS,
}
MAPPING = {
    "type": "array",
    "items": {
        "oneOf": [
            _form((*_LOOPS, "type"), type={"const": "temporal"}, **_LOOPS),
            _form((*_LOOPS, "type", "split"), type={"const": "spatial"}, split=_COUNT, **_LOOPS),
            _form(
                ("target", "type"),
                target=_NAME,
                type={"const": "dataspace"},
                keep=_WORDS,
                bypass=_WORDS,
            ),
        ]
    },
}
SCHEMA = jsonschema.Draft202012Validator(
    _form(("problem",), problem=PROBLEM, architecture=ARCHITECTURE, mapping=MAPPING)
)


class _Loader(yaml.SafeLoader):
    """Plain data, with tags as a key of their mapping."""


for _tag in ("Component", "Container"):
    _Loader.add_constructor(
        f"!{_tag}",
        lambda loader, node, tag=_tag: {"!": tag, **loader.construct_mapping(node, deep=True)},
    )


def loaded(made: Exported) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _, text in made.files:
        found |= yaml.load(text, _Loader)
    return found


def bare(made: Exported) -> str:
    """What was made, without loopsched's notes."""
    return re.sub(r"\n *ignore_loopsched: .*", "", made.text())


def timeloop_walk(data: dict[str, Any]) -> Iterator[dict[str, int]]:
    """Every point of a mapping in the order of Timeloop's loops, meshes in sequence.

    A loop runs its full count, but its last one where every loop of its
    dimension around it is in its last iteration.
    """
    names = [node["name"] for node in data["architecture"]["nodes"]]
    entries = [entry for entry in data["mapping"] if entry["type"] != "dataspace"]
    entries.sort(key=lambda entry: names.index(entry["target"]))
    nest: list[tuple[str, int, int]] = []
    for entry in entries:
        counts = {}
        for text in entry["factors"]:
            dim, _, value = text.partition("=")
            full, _, last = value.partition(",")
            counts[dim] = int(full), int(last or full)
        nest += [(dim, *counts[dim]) for dim in reversed(entry["permutation"])]
    dims = data["problem"]["shape"]["dimensions"]

    def run(depth: int, at: dict[str, int], is_last: dict[str, bool]) -> Iterator[dict[str, int]]:
        if depth == len(nest):
            yield dict(at)
            return
        dim, full, last = nest[depth]
        count = last if is_last[dim] else full
        for i in range(count):
            inner = {**at, dim: at[dim] * full + i}
            yield from run(depth + 1, inner, {**is_last, dim: is_last[dim] and i == last - 1})

    yield from run(0, dict.fromkeys(dims, 0), dict.fromkeys(dims, True))


def own_walk(problem: Problem, schedule: Schedule) -> list[dict[str, int]]:
    return [
        {dim: point.get(dim, 0) for dim in problem.dims}
        for _, point in oracle.walk(problem, schedule)
    ]


@given(st.data(), problems())
def test_what_is_written_is_read_back(data: st.DataObject, problem: Problem) -> None:
    arch = data.draw(machines(problem, has_scratchpads=True))
    schedule = data.draw(schedules(problem, units=("SM",)))
    made = to_timeloop(problem, schedule, arch)
    found = from_timeloop(made.text())
    assert (found.problem, found.arch, found.schedule) == (problem, arch, schedule)
    assert found.remarks == ()
    SCHEMA.validate(loaded(made))


@given(st.data(), problems())
def test_mappings_mean_the_schedule(data: st.DataObject, problem: Problem) -> None:
    arch = data.draw(machines(problem))
    schedule = data.draw(schedules(problem))
    made = to_timeloop(problem, schedule, arch, residual=True)
    points = list(timeloop_walk(loaded(made)))
    assert len(points) == problem.macs
    assert len({tuple(point.values()) for point in points}) == problem.macs
    changed = [text for text in made.lost if text.startswith("tile ")]
    if not changed:
        assert points == own_walk(problem, schedule)
    found = from_timeloop(bare(made))
    assert found.schedule is not None
    assert own_walk(problem, found.schedule) == points


@given(st.data(), problems())
def test_meshes_hold_what_they_are_given(data: st.DataObject, problem: Problem) -> None:
    arch = data.draw(machines(problem))
    schedule = data.draw(schedules(problem, units=("SM",)))
    check_meshes(problem, schedule, arch)


def test_meshes_hold_what_loops_of_one_iteration_go_around() -> None:
    """200 rows take turns on 80 SMs, and so must the loop around them."""
    problem = gemm(m=200, n=2, k=1)
    check_meshes(problem, parse_schedule("M:200@SM M:200@SM N:2 K:1", problem), TITAN_V)


def check_meshes(problem: Problem, schedule: Schedule, arch: Arch) -> None:
    made = loaded(to_timeloop(problem, schedule, arch, residual=True))
    points = {tuple(point.values()) for point in timeloop_walk(made)}
    assert len(points) == problem.macs
    mesh = {
        node["name"]: node["spatial"]["meshX"]
        for node in made["architecture"]["nodes"]
        if "spatial" in node
    }
    for entry in made["mapping"]:
        if entry["type"] == "spatial":
            used = 1
            for text in entry["factors"]:
                used *= int(text.partition("=")[2].partition(",")[0])
            assert used <= mesh[entry["target"]]


def test_notes_are_told_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run(["export", "alexnet", "-l", "fc6", "-l", "fc7", "--to", "timeloop"]) == 0
    said = capsys.readouterr().err
    assert max(map(len, said.splitlines())) <= 80
    notes = said.replace("\n  ", " ").splitlines()
    assert len(notes) == len(set(notes))
    assert "note: L2 is a cache; Timeloop places tiles in it" in notes
    told = "note: fc6: its tile at L2 is 144.1 MiB, more than L2's 4.5 MiB; Timeloop will refuse"
    assert f"{told} the mapping" in notes


@given(problems())
def test_problems_without_notes(problem: Problem) -> None:
    found = from_timeloop(bare(to_timeloop(problem)), element_bytes=8).problem
    assert found is not None
    assert found.sizes == problem.sizes
    assert found.output == problem.output
    terms = {t.name: [axis.terms for axis in t.axes] for t in problem.tensors}
    assert {t.name: [axis.terms for axis in t.axes] for t in found.tensors} == terms
    assert {tensor.element_bytes for tensor in found.tensors} == {8}


def test_a_machine_without_notes() -> None:
    found = from_timeloop(bare(to_timeloop(arch=TITAN_V))).arch
    assert found is not None
    assert [level.name for level in found.levels] == ["DRAM", "L2", "L1"]
    for mine, theirs in zip(TITAN_V.caches, found.caches, strict=True):
        assert theirs.capacity_bytes == mine.capacity_bytes
        assert theirs.instances == mine.instances
        assert theirs.unit == mine.unit
        assert theirs.bandwidth_bytes_per_s == pytest.approx(mine.bandwidth_bytes_per_s)
    assert found.compute.units == 80
    assert found.compute.rate("fp32") == 64
    assert found.compute.clock_hz == TITAN_V.compute.clock_hz


def test_factors_and_order_by_hand() -> None:
    problem = gemm(m=10, n=6, k=4)
    schedule = parse_schedule("K:4 M:10 N:6 M:3", problem)
    arch = buffer_arch(capacity_bytes=10**6)
    made = loaded(to_timeloop(problem, schedule, arch, residual=True))
    outer, *_ = [entry for entry in made["mapping"] if "M=4" in entry.get("factors", ())]
    # All fits the buffer, so all loops stand there; Timeloop lists the inner loop first.
    assert (outer["target"], outer["factors"]) == ("buffer", ["M=4", "N=6", "K=4"])
    assert outer["permutation"] == ["N", "M", "K"]
    inner = made["mapping"][2]
    assert (inner["target"], inner["factors"]) == ("buffer_loops", ["M=3,1", "N=1", "K=1"])
    assert made["mapping"][-1] == {
        "target": "buffer_loops",
        "type": "dataspace",
        "bypass": ["A", "B", "C"],
    }


@given(st.data(), problems())
def test_whole_tiles_cover_an_enlarged_problem(data: st.DataObject, problem: Problem) -> None:
    arch = data.draw(machines(problem))
    schedule = data.draw(schedules(problem, units=("SM",)))
    made = to_timeloop(problem, schedule, arch)
    data_ = loaded(made)
    sizes = {dim: data_["problem"]["instance"][dim] for dim in problem.dims}
    products = dict.fromkeys(sizes, 1)
    for entry in data_["mapping"]:
        for text in entry.get("factors", []):
            dim, _, count = text.partition("=")
            products[dim] *= int(count)  # no 'P=7,3': the front end refuses it
    assert products == sizes
    for dim, size in problem.sizes:
        assert sizes[dim] >= size
        said = [text for text in made.lost if text.startswith(f"dimension '{dim}' is")]
        assert bool(said) == (sizes[dim] != size)


def test_loops_stand_where_their_tile_fits() -> None:
    problem = gemm(m=64, n=64, k=64)
    schedule = parse_schedule("M:64 N:64 K:64 M:16 N:16 K:16", problem)
    # The body of three 16 x 16 tiles takes 3,072 bytes.
    for capacity, place in ((3072, "DRAM"), (3071, "DRAM"), (10**5, "buffer")):
        made = loaded(to_timeloop(problem, schedule, buffer_arch(capacity_bytes=capacity)))
        where = [e["target"] for e in made["mapping"] if e.get("factors") == ["M=4", "N=4", "K=4"]]
        assert where == [place]
        held = [e["target"] for e in made["mapping"] if "M=16" in str(e.get("factors"))]
        assert held == (
            ["buffer_loops"]
            if place == "buffer"
            else ["buffer"]
            if capacity > 3071
            else ["DRAM_loops"]
        )


def test_what_has_no_form_is_said() -> None:
    problem = conv2d(c=4, k=8, h=9, w=9, r=3, s=3, padding=1).with_element_bytes({"output": 8})
    schedule = parse_schedule("K:8@SM P:9@SM Q:9@SM C:4 P:7 R:3 S:3 P:4", problem)
    lost = to_timeloop(problem, schedule, TITAN_V).lost
    assert "'input': all 1 x 4 x 11 x 11 positions reached are stored in Timeloop" in lost[0]
    assert "elements of 4, 8 bytes; Timeloop has one width for all, 8 bytes" in lost[1]
    assert lost[2] == "dimension 'P' is enlarged from 9 to 16: Timeloop's tiles are whole"
    assert lost[3].startswith("144 work items share 80 instances of SM: they are written as")
    assert lost[4] == "tile P:7 becomes P:8, a multiple of P:4"
    assert "L2 is a cache; Timeloop" in lost[5]
    residual = to_timeloop(problem, schedule, TITAN_V, residual=True).lost
    assert any("read by timeloop-model, not by its front end" in text for text in residual)


def test_long_names_get_letters() -> None:
    from loopsched import affine

    problem = affine(
        {"rows": 4, "M": 3, "inner": 2}, {"a": "rows inner", "b": "inner M", "c": "rows M"}
    )
    schedule = parse_schedule("rows:4 M:3 inner:2 rows:2", problem)
    made = to_timeloop(problem, schedule, buffer_arch(capacity_bytes=1024))
    assert loaded(made)["problem"]["shape"]["dimensions"] == ["A", "M", "B"]
    assert made.lost[:2] == (
        "dimension 'rows' is exported as 'A'",
        "dimension 'inner' is exported as 'B'",
    )
    assert from_timeloop(made.text()).schedule == schedule
    assert str(from_timeloop(bare(made)).schedule) == "A:4 M:3 B:2 A:2"


def test_edited_files_are_read_as_edited() -> None:
    problem = gemm(m=8, n=8, k=8)
    schedule = parse_schedule("M:8 N:8 K:8 M:2", problem)
    text = to_timeloop(problem, schedule, buffer_arch(capacity_bytes=64)).text()
    edited = (
        text.replace("K: 8}", "K: 16}").replace("K=8", "K=16").replace("depth: 8,", "depth: 16,")
    )
    found = from_timeloop(edited)
    assert found.problem is not None
    assert found.problem.size["K"] == 16
    assert found.arch is not None
    assert found.arch.caches[0].capacity_bytes == 128
    assert str(found.schedule) == "M:8 N:8 K:16 M:2"
    assert [text for text in found.remarks if "edited since" in text] == [
        "problem: edited since loopsched wrote it; its note is not used",
        "architecture: edited since loopsched wrote it; its note is not used",
        "mapping: edited since loopsched wrote it; its note is not used",
    ]


@given(st.data(), problems())
def test_an_edited_mapping_counts_and_not_its_note(data: st.DataObject, problem: Problem) -> None:
    arch = data.draw(machines(problem))
    schedule = data.draw(schedules(problem))
    made = to_timeloop(problem, schedule, arch)
    # Every loop order turned round, in whole tiles that may reach beyond the problem.
    files = dict(made.files)
    files["mapping.yaml"] = re.sub(
        r"permutation: \[(.*)\]",
        lambda found: f"permutation: [{', '.join(reversed(found[1].split(', ')))}]",
        files["mapping.yaml"],
    )
    found = from_timeloop("\n".join(files.values()))
    assert found.problem == problem
    assert found.arch == arch
    assert found.schedule is not None
    if files["mapping.yaml"] == made.text("mapping.yaml"):
        assert found.schedule == schedule
        return
    assert "mapping: edited since loopsched wrote it; its note is not used" in found.remarks
    edited = loaded(Exported(tuple(files.items())))
    points = [
        dict(zip(problem.dims, point.values(), strict=True)) for point in timeloop_walk(edited)
    ]
    inside = [one for one in points if all(one[dim] < size for dim, size in problem.sizes)]
    assert own_walk(problem, found.schedule) == inside


def test_a_note_does_not_outlive_what_it_speaks_of() -> None:
    problem = gemm(m=60, n=64, k=64)
    schedule = parse_schedule("M:60@SM N:64 K:64 M:7", problem)
    made = to_timeloop(problem, schedule, TITAN_V)
    # What passes a level by is in the mapping alone, so the machine's note is overruled.
    passing = "- {target: L1, type: dataspace, keep: [A, C], bypass: [B]}\n"
    found = from_timeloop(made.text() + passing)
    assert found.arch is not None
    assert [level.holds for level in found.arch.levels] == [None, None, ("A", "C")]
    assert "mapping: L1 holds A, C only, as it says" in found.remarks
    assert found.schedule == schedule
    # The unit has another name: the mapping is not edited, but speaks of one that is gone.
    renamed = made.text().replace("  - !Container\n    name: SM", "  - !Container\n    name: PE")
    with pytest.raises(ScheduleError, match="target is 'SM'"):
        from_timeloop(renamed)
    found = from_timeloop(renamed.replace("target: SM", "target: PE"))
    assert str(found.schedule) == "M:60@PE N:64 K:64 M:7"
    # A note counts wherever it stands; one that is gone is not missed.
    shuffled = made.text().replace("mapping:\n", "mapping:\n- {target: L1, type: bypass}\n")
    assert any("edited since" in text for text in from_timeloop(shuffled).remarks)


def test_names_of_roles_are_not_taken_for_names() -> None:
    # A gradient reads a tensor called 'output'; to a machine that word means what is written.
    problem = conv2d(c=2, k=2, h=4, w=4, r=3, s=3, pass_="backward_data")
    schedule = parse_schedule("C:2 K:2 P:2 Q:2 R:3 S:3", problem)
    arch = buffer_arch(capacity_bytes=10**4)
    text = bare(to_timeloop(problem, schedule, arch))
    passing = "- {target: buffer, type: dataspace, bypass: [weight]}\n"
    found = from_timeloop(text + passing)
    assert found.problem is not None
    assert found.arch is not None
    held = [
        one.name
        for one in found.problem.tensors
        if found.arch.levels[1].is_held(*roles(found.problem, one))
    ]
    assert held == [one.name for one in found.problem.tensors if one.name != "weight"]


def test_spatial_loops_must_suit_the_machine() -> None:
    problem = gemm(m=8, n=8, k=8)
    with pytest.raises(ScheduleError, match=r"loop M:8@core: no unit 'core'"):
        to_timeloop(problem, parse_schedule("M:8@core N:8 K:8", problem), TITAN_V)
    with pytest.raises(ScheduleError, match=r"it stands apart from another loop of 'SM'"):
        to_timeloop(problem, parse_schedule("M:8@SM K:8 N:8@SM", problem), TITAN_V)
    with pytest.raises(ScheduleError, match=r"loop N:8@SM: .* outer units first"):
        to_timeloop(problem, parse_schedule("M:8@lane N:8@SM K:8", problem), TITAN_V)
    with pytest.raises(ScheduleError, match="give all three"):
        to_timeloop(problem, parse_schedule("M:8 N:8 K:8", problem))


# Exercise 04 of the tutorial of 2020 (timeloop-accelergy-exercises, MIT licence), version 0.4.
EXERCISE = """
architecture:
  version: 0.4
  nodes:
  - !Container
    name: System
    attributes: {technology: "40nm", global_cycle_seconds: 1e-9}
  - !Component
    name: MainMemory
    class: DRAM
    attributes: {width: 256, datawidth: 8}
  - !Container
    name: PE
    spatial: {meshX: 16}
  - !Component
    name: GlobalBuffer
    class: SRAM
    attributes: {depth: 32768, width: 64, datawidth: 8}
  - !Component
    name: RegisterFile
    class: regfile
    attributes: {depth: 64, width: 8, datawidth: 8}
  - !Component
    name: MACC
    class: intmac
    attributes: {datawidth: 8}
problem:
  version: '0.4'
  shape:
    name: Conv1D_OC
    dimensions: [C, K, R, P]
    data_spaces:
    - {name: Weights, projection: [[[C]], [[K]], [[R]]], read_write: false}
    - {name: Inputs, projection: [[[C]], [[R], [P]]], read_write: false}
    - {name: Outputs, projection: [[[K]], [[P]]], read_write: true}
    coefficients: []
  instance: {C: 32, K: 32, R: 3, P: 16, densities: {}}
mapping:
- {target: MainMemory, type: temporal, factors: "R=1,P=1,K=1,C=1", permutation: PRKC}
- {target: inter_PE_spatial, type: spatial, factors: "R=1,P=1,K=16,C=1", permutation: PRKC}
- {target: inter_PE_spatial, type: temporal, factors: "C=1,K=1,R=1,P=1", permutation: CKRP}
- {target: inter_PE_spatial, type: bypass, bypass: [Weights, Inputs, Outputs]}
- {target: GlobalBuffer, type: temporal, factors: "R=3,P=1,K=2,C=32", permutation: PRKC}
- {target: RegisterFile, type: temporal, factors: "R=1,P=16,K=1,C=1", permutation: RPKC}
"""


class TestByHand:
    def test_an_exercise_moves_what_timeloop_says(self) -> None:
        found = from_timeloop(EXERCISE, element_bytes=1)
        assert str(found.schedule) == "K:32@PE C:32 K:2 R:3 P:16"
        assert found.problem is not None
        assert found.arch is not None
        assert found.schedule is not None
        score = evaluate(found.problem, found.schedule, found.arch)
        # Timeloop's own figures for the exercise: MainMemory reads 3,072 weights and 576
        # inputs, which it hands to all 16 PEs at once, and takes 512 outputs.
        moved = score.levels[0].promised
        assert moved["Weights"].read_bytes == 3072
        assert moved["Inputs"].read_bytes == 576 * 16
        assert moved["Outputs"].write_bytes == 512
        # 3,072 cycles of 16 multiply-accumulates.
        assert score.compute_steps == 3072
        assert score.compute_time_s == pytest.approx(3072e-9)

    def test_factors_as_the_mapper_writes_them(self) -> None:
        text = (
            EXERCISE.replace("R=1,P=1,K=16,C=1", "C1 K16 R1 P1")
            .replace("R=1,P=16,K=1,C=1", "C1 K1 R1 P=6,4")
            .replace("R=3,P=1,K=2,C=32", "C=32 K=2 R=3 P3")
        )
        found = from_timeloop(text, element_bytes=1)
        assert str(found.schedule) == "K:32@PE C:32 K:2 R:3 P:16 P:6"

    def test_meshes_in_a_row_and_parallel_scratchpads(self) -> None:
        text = EXERCISE.partition("problem:")[0].replace(
            "  - !Container\n    name: PE\n    spatial: {meshX: 16}\n",
            "  - !Container\n    name: column\n    spatial: {meshX: 14}\n"
            "  - !Container\n    name: PE\n    spatial: {meshY: 12}\n",
        )
        pads = """  - !Parallel
    nodes:
    - !Component
      name: ifmap
      class: smartbuffer_RF
      attributes: {depth: 12, width: 16, datawidth: 8, read_bandwidth: 2}
      constraints: {dataspace: {keep: [Inputs]}}
    - !Component
      name: weights
      class: smartbuffer_RF
      attributes: {depth: 192, width: 16, datawidth: 8}
      constraints: {dataspace: {keep: [Weights]}}
"""
        found = from_timeloop(
            text.replace(
                "  - !Component\n    name: RegisterFile",
                pads + "  - !Component\n    name: RegisterFile",
            )
        )
        assert found.arch is not None
        assert {
            level.name: (level.instances, level.unit, level.holds)
            for level in found.arch.levels[1:]
        } == {
            "GlobalBuffer": (168, "PE", None),
            "ifmap": (168, "PE", ("Inputs",)),
            "weights": (168, "PE", ("Weights",)),
            "RegisterFile": (168, "PE", None),
        }
        # 2 words of 8 bits a cycle, 168 of them, at 1 GHz.
        assert found.arch.level("weights").bandwidth_bytes_per_s == pytest.approx(336e9)
        assert any("meshes column, PE are merged into" in text for text in found.remarks)

    def test_strides_and_names_with_hyphens(self) -> None:
        found = from_timeloop("""
problem:
  shape:
    name: strided
    dimensions: [R, P]
    coefficients: [{name: Wstride, default: 1}, {name: Wdilation, default: 3}]
    data-spaces:
    - {name: W, projection: [[[R]]]}
    - {name: I, projection: [[[R, Wdilation], [P, Wstride]]]}
    - {name: O, projection: [[[P]]], read-write: True}
  instance: {R: 3, P: 5, Wstride: 2}
""")
        assert found.problem is not None
        assert found.problem.tensor("I").axes[0].terms == (("R", 3), ("P", 2))
        assert found.problem.output == "O"

    def test_parts_that_are_switched_off_are_not_there(self) -> None:
        off = "name: RegisterFile\n    enabled: False\n"
        machine = EXERCISE.partition("problem:")[0]
        machine = machine.replace("global_cycle_seconds: 1e-9", "global_cycle_seconds: 5e-10")
        found = from_timeloop(machine.replace("name: RegisterFile\n", off)).arch
        assert found is not None
        assert [level.name for level in found.levels] == ["MainMemory", "GlobalBuffer"]
        assert found.level("GlobalBuffer").capacity_bytes == 32768 * 64 // 8
        assert found.compute.clock_hz == 2e9

    def test_sections_that_are_not_read_are_told(self) -> None:
        more = "mapspace: {}\nglobals_ignored: {}\n"
        told = from_timeloop(EXERCISE + more, element_bytes=1).remarks
        assert [text for text in told if "section" in text] == ["section 'mapspace' is not read"]

    def test_the_output_goes_last(self) -> None:
        spaces = EXERCISE.partition("data_spaces:\n")[2].splitlines(keepends=True)[:3]
        turned = EXERCISE.replace("".join(spaces), "".join(reversed(spaces)))
        problem = from_timeloop(turned, element_bytes=1).problem
        assert problem is not None
        assert [tensor.name for tensor in problem.tensors] == ["Inputs", "Weights", "Outputs"]

    @pytest.mark.parametrize(
        ("before", "after", "error", "message"),
        [
            (
                "R=1,P=16,K=1,C=1",
                "R=1,P=8,K=1,C=1",
                ScheduleError,
                "factors of 'P', outermost first: 8 cover 8; the size is 16",
            ),
            (
                "target: RegisterFile",
                "target: RegFile",
                ScheduleError,
                "did you mean 'RegisterFile'",
            ),
            ("type: spatial", "type: skew", ScheduleError, "type is 'skew'"),
            ("R=3,P=1,K=2,C=32", "R=3,P=0,K=2,C=32", ScheduleError, "1 or more is needed"),
            ("permutation: RPKC", "permutation: RXKC", ScheduleError, "no dimension 'X'"),
            ("class: intmac", "class: alu", ArchError, "class is 'alu'; it names neither"),
            ("depth: 64", "depth: 8*8", ArchError, "depth is '8*8'; a number is needed"),
            ("depth: 64, ", "", ArchError, "'RegisterFile': no 'depth'"),
            ("meshX: 16", "meshX: n", ArchError, "meshX is 'n'; a whole number"),
            ("!Component", "!Gadget", InputError, "tag '!Gadget' is not allowed"),
            ("R: 3,", "", ProblemError, "instance: no size for 'R'"),
            ("[[[K]], [[P]]]", "[[[K, P]]]", ProblemError, "has 2 dimensions"),
            ("[[[K]], [[P]]]", "[[[K]], [[Z]]]", ProblemError, "unknown 'Z'"),
            ("[[[K]], [[P]]]", "[[[K]], [[{P: 1}]]]", ProblemError, "unknown {'P': '1'}"),
            ("target: RegisterFile", "target: [x]", ScheduleError, "target is ['x']"),
            (
                "read_write: true",
                "read_write: false",
                ProblemError,
                "0 data spaces have",
            ),
            ("projection: [[[K]], [[P]]]", "projection: K", ProblemError, "projection is 'K'"),
            ("name: Conv1D_OC", "name: '{{ x }}'", InputError, "holds a template"),
            ("  nodes:\n", "  subtree:\n", ArchError, "6 trees side by side"),
        ],
    )
    def test_what_cannot_be_said(
        self, before: str, after: str, error: type[InputError], message: str
    ) -> None:
        assert before in EXERCISE
        with pytest.raises(error, match=re.escape(message)):
            from_timeloop(EXERCISE.replace(before, after, 1))

    def test_coefficients_of_a_product_multiply(self) -> None:
        found = from_timeloop(
            """
            problem:
              version: 0.4
              shape:
                name: strided
                dimensions: [P]
                coefficients: [{name: A, default: 2}, {name: B, default: 3}]
                data_spaces:
                - {name: in, projection: [[[P, A, B]]]}
                - {name: out, projection: [[[P]]], read_write: true}
              instance: {P: 4}
            """
        ).problem
        assert found is not None
        assert found.tensor("in").axes[0].terms == (("P", 6),)

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            ("N=3", "M=3", "two factors of 'M'"),
            ("N=3", "'N=3,4'", "1 or more is needed, the last no more than the others"),
        ],
    )
    def test_factors_that_cannot_be(self, old: str, new: str, message: str) -> None:
        problem = gemm(m=4, n=3, k=2)
        nest = parse_schedule("M:4 K:2 N:3 M:2", problem)
        text = to_timeloop(problem, nest, buffer_arch(capacity_bytes=1024)).text()
        assert text.count(old) == 1
        with pytest.raises(ScheduleError, match=message):
            from_timeloop(text.replace(old, new))

    def test_sections_are_checked(self, tmp_path: Any) -> None:
        with pytest.raises(InputError, match="no section 'problem' or 'architecture'"):
            from_timeloop("mapper: {}")
        with pytest.raises(InputError, match="a mapping needs its problem and its architecture"):
            from_timeloop("problem:" + EXERCISE.partition("problem:")[2])
        for name in ("a.yaml", "b.yaml"):
            (tmp_path / name).write_text("problem: {}\n")
        with pytest.raises(InputError, match="a second section 'problem'"):
            read_timeloop([tmp_path])
        with pytest.raises(InputError, match="no such file"):
            read_timeloop([tmp_path / "c.yaml"])


def test_the_commands_agree_with_the_library(
    tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["gemm:m=60,n=64,k=64", "M:60@SM N:64 K:64 M:7"]
    assert run(["export", *words, "--to", "timeloop", "-o", str(tmp_path)]) == 0
    said = capsys.readouterr()
    assert said.err.startswith(f"wrote {tmp_path}: 3 files\n")
    assert "note: dimension 'M' is enlarged from 60 to 63" in said.err
    assert run(["import", "timeloop", str(tmp_path), "--format", "json"]) == 0
    row = json.loads(capsys.readouterr().out)[0]
    assert (row["problem"], row["schedule"]) == ("m60 n64 k64", words[1])
    arch = tmp_path / "mine.yaml"
    assert run(["import", "timeloop", str(tmp_path), "--arch-out", str(arch)]) == 0
    assert load_arch(arch) == TITAN_V
    assert "schedule  M:60@SM N:64 K:64 M:7" in capsys.readouterr().out
    for form in ("zigzag", "python", "c", "triton", "tvm"):
        assert run(["export", *words, "--to", form]) == 0
        assert capsys.readouterr().out
    assert run(["export", "alexnet", "--to", "c", "-o", str(tmp_path / "x.c")]) == 3
    assert "8 problems need a folder" in capsys.readouterr().err
    assert run(["export", *words, "--to", "zigzag", "-o", str(tmp_path / "x.yaml")]) == 3
    assert "workload.yaml and mapping.yaml need a folder" in capsys.readouterr().err
    # Timeloop takes one document, too.
    assert run(["export", *words, "--to", "timeloop", "-o", str(tmp_path / "one.yaml")]) == 0
    assert str(read_timeloop([tmp_path / "one.yaml"]).schedule) == words[1]
    assert run(["import", "timeloop", str(tmp_path / "none")]) == 3
    assert run(["import", "timeloop", str(tmp_path), "--arch-out", "x.txt"]) == 3
