"""Timeloop's files: read back exactly, in Timeloop's form, and meaning what they meant."""

from __future__ import annotations

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

from loopsched import buffer_arch, conv2d, gemm, load_arch, parse_schedule
from loopsched.errors import ScheduleError
from loopsched.exchange.exported import Exported
from loopsched.exchange.timeloop import from_timeloop, to_timeloop
from loopsched.nest import Schedule
from loopsched.problem import Problem

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
SCHEMA = _form(("problem",), problem=PROBLEM, architecture=ARCHITECTURE, mapping=MAPPING)


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
    jsonschema.validate(loaded(made), SCHEMA)


@given(st.data(), problems())
def test_mappings_mean_the_schedule(data: st.DataObject, problem: Problem) -> None:
    arch = data.draw(machines(problem))
    schedule = data.draw(schedules(problem))
    made = to_timeloop(problem, schedule, arch)
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
    made = loaded(to_timeloop(problem, schedule, arch))
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
    made = loaded(to_timeloop(problem, schedule, buffer_arch(capacity_bytes=10**6)))
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
    assert "'input': all 1 x 4 x 11 x 11 positions reached are memory there" in lost[0]
    assert "elements of 4, 8 bytes; one width, 8 bytes" in lost[1]
    assert "144 work items on 80 of SM take turns" in lost[2]
    assert lost[3] == "tile P:7 is taken as P:8, a whole number of P:4"
    assert "L2 is a cache here" in lost[4]


def test_long_names_get_letters() -> None:
    from loopsched import affine

    problem = affine(
        {"rows": 4, "M": 3, "inner": 2}, {"a": "rows inner", "b": "inner M", "c": "rows M"}
    )
    schedule = parse_schedule("rows:4 M:3 inner:2 rows:2", problem)
    made = to_timeloop(problem, schedule, buffer_arch(capacity_bytes=1024))
    assert loaded(made)["problem"]["shape"]["dimensions"] == ["A", "M", "B"]
    assert made.lost[:2] == (
        "dimension 'rows' is called 'A' there",
        "dimension 'inner' is called 'B' there",
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


def test_spatial_loops_must_suit_the_machine() -> None:
    problem = gemm(m=8, n=8, k=8)
    with pytest.raises(ScheduleError, match=r"loop M:8@core: no unit 'core'"):
        to_timeloop(problem, parse_schedule("M:8@core N:8 K:8", problem), TITAN_V)
    with pytest.raises(ScheduleError, match=r"loop N:8@SM: loops of 'SM' stand around others"):
        to_timeloop(problem, parse_schedule("M:8@SM K:8 N:8@SM", problem), TITAN_V)
    with pytest.raises(ScheduleError, match="give all three"):
        to_timeloop(problem, parse_schedule("M:8 N:8 K:8", problem))
