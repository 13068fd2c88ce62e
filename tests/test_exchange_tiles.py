"""ZigZag's files have its form and ours its meaning; tile parameters say what a kernel needs."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from math import prod
from typing import Any

import jsonschema
import oracle
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from strategies import gemms, images, schedules

from loopsched import (
    batched_gemm,
    buffer_arch,
    conv2d,
    einsum,
    gemm,
    load_arch,
    load_workload,
    parse_schedule,
)
from loopsched.base.errors import ProblemError, ScheduleError
from loopsched.exchange.tiles import to_triton
from loopsched.exchange.tvm_code import to_tvm
from loopsched.exchange.zigzag import to_zigzag
from loopsched.nests.nest import Schedule
from loopsched.problems.problem import Axis, Problem, Tensor

TITAN_V = load_arch("titan_v")

# Written from the rules by which ZigZag 3 checks its workloads and mappings.
_BITS = {"type": "integer", "minimum": 1}
_DIMS = {"type": "array", "items": {"type": "string", "pattern": r"^[A-Z]+\d*$"}}
_PAIR = {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}
_PR_SIZES = {"type": "array", "items": {"type": "integer", "minimum": 1}}
WORKLOAD = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "name": {"type": "string"},
            "operator_type": {"enum": ["Conv", "Gemm"]},
            "equation": {
                "type": "string",
                "pattern": r"^O(\[\w+\])+\+=W(\[\w+\])+\*I(\[\w+\])+$",
            },
            "dimension_relations": {
                "type": "array",
                "items": {"type": "string", "pattern": r"^\w+=\d+\*\w+\+\d+\*\w+$"},
            },
            "loop_dims": _DIMS,
            "loop_sizes": _PR_SIZES,
            "operand_precision": {
                "type": "object",
                "properties": dict.fromkeys(("I", "W", "O", "O_final"), _BITS),
                "required": ["I", "W", "O", "O_final"],
                "additionalProperties": False,
            },
            "operand_source": {
                "type": "object",
                "properties": {"W": {"type": "integer"}, "I": {"type": "integer"}},
                "additionalProperties": False,
            },
            "pr_loop_dims": _DIMS,
            "pr_loop_sizes": _PR_SIZES,
            "padding": {"type": "array", "items": _PAIR},
        },
        "required": ["id", "operator_type", "equation", "loop_dims", "loop_sizes"],
        "additionalProperties": False,
    },
}
_UNROLLED = {"type": "array", "items": {"type": "string", "pattern": r"^[A-Z]+\d*, \d+$"}}
MAPPING = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "spatial_mapping": {
                "type": "object",
                "properties": dict.fromkeys(("D1", "D2", "D3", "D4"), _UNROLLED),
                "additionalProperties": False,
            },
            "temporal_ordering": {
                "type": "array",
                "items": {
                    "type": "array",
                    "prefixItems": [{"type": "string"}, {"type": "integer", "minimum": 2}],
                    "minItems": 2,
                    "maxItems": 2,
                },
            },
            "memory_operand_links": {"const": {"O": "O", "W": "I2", "I": "I1"}},
        },
        "required": ["name", "memory_operand_links"],
        "additionalProperties": False,
    },
}


def zigzag(problem: Problem, schedule: Schedule | None = None, arch: Any = TITAN_V) -> Any:
    made = to_zigzag([(problem, schedule)], arch, ordering=True)
    return [yaml.safe_load(text) for _, text in made.files]


class TestZigZag:
    @given(st.data(), st.one_of(gemms(), images()))
    def test_an_order_runs_every_loop(self, data: st.DataObject, problem: Problem) -> None:
        if problem.output_tensor.axes[0].is_compound:
            with pytest.raises(ProblemError, match="windows slide over the output"):
                zigzag(problem)
            return
        arch = buffer_arch(capacity_bytes=100)
        schedule = data.draw(schedules(problem))
        workload, mapping = zigzag(problem, schedule, arch)
        jsonschema.validate(workload, WORKLOAD)
        jsonschema.validate(mapping, MAPPING)
        names = dict(zip(workload[0]["loop_dims"], problem.dims, strict=True))
        # An order is complete, or it is not written.
        if "temporal_ordering" not in mapping[0]:
            trips_of: Counter[str] = Counter(problem.dims)
            for loop, trips in zip(schedule.loops, schedule.trips, strict=True):
                trips_of[loop.dim] *= trips
            is_whole = all(trips_of[dim] == size for dim, size in problem.sizes)
            assert problem.macs == 1 or not is_whole
            return
        counts: Counter[str] = Counter()
        for dim, trips in mapping[0]["temporal_ordering"]:
            counts[names[dim]] = max(1, counts[names[dim]]) * trips
        for dim, size in problem.sizes:
            assert max(1, counts[dim]) == size
        # Outermost loops last, each as often as the schedule's own loop runs.
        if all(
            trips in (1, size)
            for trips, size in zip(
                schedule.trips, [problem.size[loop.dim] for loop in schedule.loops], strict=True
            )
        ):
            outward = [
                problem.size[loop.dim]
                for loop, n in zip(schedule.loops, schedule.trips, strict=True)
                if n > 1
            ]
            assert [n for _, n in mapping[0]["temporal_ordering"]][::-1] == outward

    def test_a_convolution_in_zigzags_words(self) -> None:
        problem = conv2d(n=2, c=4, k=8, h=15, w=13, r=3, s=5, stride=(2, 1), padding=(1, 2))
        nest = parse_schedule("K:8@SM N:2 C:4 P:8 Q:13 R:3 S:5 P:4", problem)
        (layer,), mapping = zigzag(problem, nest)
        assert layer["equation"] == "O[b][k][oy][ox]+=W[k][c][fy][fx]*I[b][c][iy][ix]"
        assert layer["dimension_relations"] == ["iy=2*oy+1*fy", "ix=1*ox+1*fx"]
        assert dict(zip(layer["loop_dims"], layer["loop_sizes"], strict=True)) == {
            "B": 2,
            "K": 8,
            "C": 4,
            "OY": 8,
            "OX": 13,
            "FY": 3,
            "FX": 5,
        }
        assert (layer["pr_loop_dims"], layer["pr_loop_sizes"]) == (["IY", "IX"], [15, 13])
        assert layer["padding"] == [[1, 1], [2, 2]]
        assert layer["operand_precision"] == dict.fromkeys(("W", "I", "O", "O_final"), 32)
        assert mapping[0]["spatial_mapping"] == {"D1": ["K, 8"]}
        order = [["OY", 4], ["FX", 5], ["FY", 3], ["OX", 13], ["OY", 2], ["C", 4], ["B", 2]]
        assert mapping[0]["temporal_ordering"] == order
        assert mapping[-1]["name"] == "default"

    def test_lanes_have_their_own_mesh_and_layers_their_names(self) -> None:
        problem = gemm(m=60, n=64, k=64)
        lanes_only = parse_schedule("N:64 K:64 M:60 M:7@lane", problem)
        made = to_zigzag([(problem, lanes_only), (problem.renamed("other"), lanes_only)], TITAN_V)
        mapping = yaml.safe_load(made.text("mapping.yaml"))
        assert mapping[0]["spatial_mapping"] == {"D2": ["D, 7"]}
        said = ": the order of the temporal loops (innermost first: D:9 C:64 K:64) is not written: "
        assert [text.split(said)[0] for text in made.lost[:2]] == ["m60 n64 k64", "other"]
        assert "accepts a given order on none" in made.lost[0]
        assert len(made.lost) == 3
        assert "temporal_ordering" not in mapping[0]
        wanted = to_zigzag([(problem, lanes_only)], TITAN_V, ordering=True)
        assert "temporal_ordering" not in yaml.safe_load(wanted.text("mapping.yaml"))[0]
        assert wanted.lost[0].endswith("tiles of D are partial, which ZigZag cannot express")

    def test_products_groups_and_gradients(self) -> None:
        problems = [
            gemm(m=4, n=3, k=2, transpose_b=True),
            batched_gemm(batch=2, m=4, n=3, k=2),
            conv2d(c=4, k=4, h=6, w=6, r=3, s=3, groups=2),
            conv2d(c=4, k=4, h=6, w=6, r=3, s=3, pass_="backward_weights"),
            einsum("abc,cd->abd", {"a": 2, "b": 3, "c": 4, "d": 5}),
        ]
        made = to_zigzag([(problem, None) for problem in problems])
        layers = yaml.safe_load(made.text("workload.yaml"))
        assert made.names == ("workload.yaml",)
        jsonschema.validate(layers, WORKLOAD)
        assert [layer["equation"] for layer in layers] == [
            "O[d][k]+=W[k][c]*I[d][c]",
            "O[b][d][k]+=W[b][c][k]*I[b][d][c]",
            "O[b][g][k][oy][ox]+=W[g][k][c][fy][fx]*I[b][g][c][iy][ix]",
            "O[k][c][fy][fx]+=W[b][k][oy][ox]*I[b][c][iy][ix]",
            "O[a][b][d]+=W[c][d]*I[a][b][c]",
        ]
        for problem, layer in zip(problems, layers, strict=True):
            assert prod(layer["loop_sizes"]) == problem.macs

    @pytest.mark.parametrize("name", ["resnet50", "vgg16", "bert_base", "deepbench_conv"])
    def test_shipped_workloads(self, name: str) -> None:
        problems = load_workload(name).problems
        layers = yaml.safe_load(to_zigzag([(one, None) for one in problems]).text())
        jsonschema.validate(layers, WORKLOAD)
        assert [prod(layer["loop_sizes"]) for layer in layers] == [one.macs for one in problems]

    def test_spare_letters_of_zigzag_meet_no_dimension(self) -> None:
        dims = {"in_a": 2, "X0": 3, "in_b": 4}
        axes = {dim: Axis(((dim, 1),)) for dim in dims}
        tensors = (
            Tensor("A", (axes["in_a"], axes["in_b"])),
            Tensor("B", (axes["in_b"], axes["X0"])),
            Tensor("C", (axes["in_a"], axes["X0"])),
        )
        (layer,) = zigzag(Problem("odd", tuple(dims.items()), tensors, "C"))[0]
        assert dict(zip(layer["loop_dims"], layer["loop_sizes"], strict=True)) == {
            "X1": 2,
            "X0": 3,
            "X2": 4,
        }

    def test_refusals(self) -> None:
        with pytest.raises(ProblemError, match="windows slide over the output"):
            zigzag(conv2d(c=2, k=2, h=5, w=5, r=3, s=3, pass_="backward_data"))
        with pytest.raises(ProblemError, match="4 tensors; an input, a weight and an output"):
            zigzag(einsum("ab,bc,cd->ad", dict.fromkeys("abcd", 2)))
        problem = gemm(m=2, n=2, k=2)
        with pytest.raises(ScheduleError, match="a mapping needs its machine"):
            to_zigzag([(problem, parse_schedule("M:2 N:2 K:2", problem))])
        with pytest.raises(ProblemError, match=r"'C' has no axis"):
            zigzag(einsum("ab,ab->", dict.fromkeys("ab", 2)))


class TestTriton:
    def test_a_grouped_kernel(self) -> None:
        problem = gemm(m=8192, n=4096, k=512)
        nest = parse_schedule("M:8192@SM N:4096@SM M:1024@SM K:512 M:128 N:64 K:32", problem)
        made = to_triton(problem, nest, TITAN_V)
        found = json.loads(made.text("tiles.json"))
        blocks = {key: value for key, value in found.items() if "BLOCK" in key or "GROUP" in key}
        assert blocks == {"BLOCK_M": 128, "BLOCK_N": 64, "BLOCK_K": 32, "GROUP_SIZE_M": 8}
        assert found["grid"] == {"M": 64, "N": 64}
        assert (found["num_warps"], found["num_stages"]) == (4, 2)
        assert set(found["meaning"]) >= {"grid", "BLOCK_*", "GROUP_SIZE_*"}
        assert made.lost == (
            "the order of loops inside a program (K:512 M:128 N:64 K:32) is Triton's",
        )

    def test_odd_tiles_and_untiled_sums_are_said(self) -> None:
        problem = gemm(m=60, n=64, k=48)
        made = to_triton(problem, parse_schedule("M:60@SM N:64@SM M:7 N:16 K:48", problem))
        found = json.loads(made.text())
        assert (found["BLOCK_M"], found["BLOCK_N"], found["BLOCK_K"]) == (8, 16, 64)
        assert found["programs"] == 8 * 4
        assert made.lost[0] == "BLOCK_K: the schedule does not tile the reduction over K"
        assert made.lost[1].startswith("BLOCK_M is 8, with a mask: the schedule's tile of 7 is")
        made = to_triton(problem, parse_schedule("M:60@SM N:64@SM K:48 M:12 N:16 K:8", problem))
        assert made.lost[0].startswith("BLOCK_M is 16, with a mask: the schedule's tile of 12 is")

    def test_blocks_are_the_innermost_tile(self) -> None:
        problem = gemm(m=1024, n=256, k=4096)
        nest = parse_schedule("M:1024@SM M:512 K:4096 M:256 N:256 K:32", problem)
        made = to_triton(problem, nest, load_arch("h200"))
        found = json.loads(made.text())
        assert (found["BLOCK_M"], found["BLOCK_N"], found["BLOCK_K"]) == (256, 256, 32)
        assert (found["grid"], found["num_warps"]) == ({"M": 4}, 16)
        assert found["num_stages"] == 227 * 1024 // (4 * 32 * 512) == 3
        assert made.lost[0] == (
            "what one program does in turn (M: 512 in tiles of 256) becomes several programs"
        )

    def test_programs_are_items_of_the_outermost_unit(self) -> None:
        problem = gemm(m=64, n=64, k=64)
        nest = parse_schedule("M:64@SM K:64 N:64@lane M:16 N:8", problem)
        assert json.loads(to_triton(problem, nest).text())["grid"] == {"M": 4}

    def test_a_double_buffered_level_has_two_stages(self) -> None:
        problem = gemm(m=64, n=64, k=64)
        nest = parse_schedule("M:64 N:64 K:64 M:16 N:8 K:4", problem)
        buffer = replace(buffer_arch(capacity_bytes=8192, policy="explicit").levels[1],
                         double_buffered=True)  # fmt: skip
        levels = (*TITAN_V.levels[:-1], replace(buffer, instances=80, unit="SM"))
        plain = replace(TITAN_V, gpu=None)
        for arch, stages in ((plain, None), (replace(plain, levels=levels), 2)):
            found = json.loads(to_triton(problem, nest, arch).text())
            assert found.get("num_stages") == stages

    def test_without_spatial_loops_the_leading_ones_are_programs(self) -> None:
        problem = gemm(m=64, n=64, k=64)
        found = json.loads(
            to_triton(problem, parse_schedule("M:64 N:64 K:64 M:16 N:8 K:4", problem)).text()
        )
        assert found["grid"] == {"M": 4, "N": 8}
        assert (found["BLOCK_M"], found["BLOCK_N"], found["BLOCK_K"]) == (16, 8, 4)

    def test_launches_around_programs_are_said(self) -> None:
        problem = gemm(m=64, n=64, k=64)
        made = to_triton(problem, parse_schedule("K:64 M:64@SM N:64@SM K:32 M:16 N:16", problem))
        assert any("loops around the programs (K:64)" in text for text in made.lost)
        found = json.loads(made.text())
        # Two programs of one tile of the output would write it at once.
        assert (found["grid"], found["programs"]) == ({"M": 4, "N": 4}, 16)

    def test_shared_sums_are_said(self) -> None:
        problem = gemm(m=64, n=64, k=64)
        made = to_triton(problem, parse_schedule("M:64@SM K:64@SM N:64 M:16 K:16", problem))
        assert json.loads(made.text())["grid"] == {"M": 4, "K": 4}
        assert any("programs along K add to the same output" in text for text in made.lost)

    @given(st.data(), gemms())
    def test_blocks_cover_items(self, data: st.DataObject, problem: Problem) -> None:
        schedule = data.draw(schedules(problem, units=("SM",)))
        found = json.loads(to_triton(problem, schedule).text())
        # The largest regions that a program may span, by a literal walk: one has the blocks' sizes.
        walk = list(oracle.walk(problem, schedule))
        rounded = []
        for begin in range(len(schedule.loops) + 1):
            spans = dict.fromkeys(problem.dims, 1)
            items: dict[tuple[int, ...], list[dict[str, int]]] = {}
            for position, point in walk:
                items.setdefault(position[:begin], []).append(point)
            for points in items.values():
                for dim in problem.dims:
                    at = [point.get(dim, 0) for point in points]
                    spans[dim] = max(spans[dim], max(at) - min(at) + 1)
            rounded.append({dim: 1 << (span - 1).bit_length() for dim, span in spans.items()})
        assert {dim: found[f"BLOCK_{dim}"] for dim in problem.dims} in rounded
        for dim in problem.parallel_dims:
            n_blocks = found["grid"].get(dim, 1)
            assert (n_blocks - 1) * found[f"BLOCK_{dim}"] < problem.size[dim]
            assert n_blocks * found[f"BLOCK_{dim}"] >= problem.size[dim]


class _Loop:
    """A loop of a schedule of TVM, as far as these primitives need it."""

    def __init__(self, name: str) -> None:
        self.name = name


class _Sch:
    """Records primitives, and refuses what TVM would refuse: unknown loops, wrong counts."""

    def __init__(self, dims: list[str]) -> None:
        self.loops = [_Loop(dim) for dim in dims]
        self.splits: dict[str, list[int | None]] = {}
        self.order: list[str] = dims
        self.bound: dict[str, str] = {}

    def get_block(self, name: str) -> str:
        return name

    def get_loops(self, _: str) -> list[_Loop]:
        return self.loops

    def split(self, loop: _Loop, factors: list[int | None]) -> list[_Loop]:
        self.splits[loop.name] = factors
        made = [_Loop(f"{loop.name}{i}") for i in range(len(factors))]
        at = self.loops.index(loop)
        self.loops[at : at + 1] = made
        return made

    def reorder(self, *loops: _Loop) -> None:
        assert sorted(map(id, loops)) == sorted(map(id, self.loops))
        self.loops = list(loops)

    def fuse(self, *loops: _Loop) -> _Loop:
        at = self.loops.index(loops[0])
        assert self.loops[at : at + len(loops)] == list(loops)
        fused = _Loop("*".join(loop.name for loop in loops))
        self.loops[at : at + len(loops)] = [fused]
        return fused

    def bind(self, loop: _Loop, axis: str) -> None:
        assert loop in self.loops
        self.bound[loop.name] = axis


class TestTvm:
    @given(st.data(), st.one_of(gemms(), images()))
    def test_primitives_make_the_nest(self, data: st.DataObject, problem: Problem) -> None:
        schedule = data.draw(schedules(problem, units=("SM", "lane")))
        made = to_tvm(problem, schedule)
        room: dict[str, Any] = {}
        exec(made.text(), room)
        head = re.search(r"\n    (.*?),? = sch.get_loops", made.text())
        assert head is not None
        sch = _Sch(head[1].split(", "))
        room["apply"](sch, bind=False)
        assert len(sch.loops) == len(schedule.loops) + sum(
            dim not in schedule.dims for dim in problem.dims
        )
        order = [loop.name.rstrip("0123456789") for loop in sch.loops]
        assert [dim for dim in order if dim in schedule.dims] == [
            loop.dim for loop in schedule.loops
        ]
        for dim, inner in sch.splits.items():
            extents = [loop.extent for loop in schedule.loops if loop.dim == dim]
            assert inner[0] is None
            whole = [prod(inner[i + 1 :]) for i in range(len(extents) - 1)]
            exact = all(
                min(a, problem.size[dim]) == b for a, b in zip(whole, extents[1:], strict=True)
            )
            rounded = [text for text in made.lost if text.startswith(f"tile {dim}:")]
            assert exact or rounded

    def test_bindings(self) -> None:
        problem = gemm(m=64, n=64, k=16)
        nest = parse_schedule("M:64@SM N:64@SM K:16 M:16@lane N:8@lane K:4", problem)
        room: dict[str, Any] = {}
        exec(to_tvm(problem, nest).text(), room)
        sch = _Sch(["M", "N", "K"])
        room["apply"](sch)
        assert sch.bound == {"M0*N0": "blockIdx.x", "M1*N1": "threadIdx.x"}
        assert sch.splits == {"M": [None, 16], "N": [None, 8], "K": [None, 4]}

    def test_what_tensor_expressions_cannot_say(self) -> None:
        problem = conv2d(c=2, k=2, h=5, w=5, r=3, s=3, pass_="backward_data")
        made = to_tvm(
            problem, Schedule(tuple(parse_schedule("C:2 K:2 P:3 Q:3 R:3 S:3", problem).loops))
        )
        assert "def problem" not in made.text()
        assert any("tensor expressions cannot say" in text for text in made.lost)

    def test_sums_are_as_wide_as_the_output(self) -> None:
        problem = gemm(m=4, n=4, k=4).with_element_bytes({"A": 1, "B": 2})
        text = to_tvm(problem, parse_schedule("M:4 N:4 K:4", problem)).text()
        assert 'tensor_A[M, K].astype("float32") * tensor_B[K, N].astype("float32")' in text
        alike = problem.with_element_bytes(2)
        assert "astype" not in to_tvm(alike, parse_schedule("M:4 N:4 K:4", alike)).text()

    def test_names_that_python_has_are_avoided(self) -> None:
        problem = einsum("ab,bc->ac", {"a": 8, "b": 4, "c": 2})
        words = {"a": "for", "b": "te", "c": "te_0"}
        problem = Problem(
            "odd",
            tuple((words[dim], size) for dim, size in problem.sizes),
            tuple(
                Tensor(one.name, tuple(Axis(((words[axis.dims[0]], 1),)) for axis in one.axes))
                for one in problem.tensors
            ),
            problem.output,
        )
        room: dict[str, Any] = {}
        exec(to_tvm(problem, parse_schedule("for:8 te:4 te_0:2 for:2 te:2", problem)).text(), room)
        sch = _Sch(["for", "te_0", "te"])
        room["apply"](sch)
        assert [loop.name for loop in sch.loops] == ["for0", "te0", "te_0", "for1", "te1"]
