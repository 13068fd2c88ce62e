"""ONNX models: published totals, odd models, nests that compute what ONNX computes, fuzzing."""

from __future__ import annotations

import math
import random
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from loopsched import Network, load_network, load_onnx, load_workload
from loopsched.base.errors import InputError, MissingExtraError, WorkloadError
from loopsched.cli import run
from loopsched.network.rows import network_rows
from loopsched.problems.problem import Axis, Problem, Tensor
from loopsched.problems.workload import Workload
from tests import onnx_models, onnx_odd
from tests.onnx_fuzz import RandomModels, flipped
from tests.onnx_models import INT64, Model


def loaded(model: Model, folder: Path, **given: Any) -> Network:
    return load_onnx(model.save(folder), **given)


def bare(workload: Workload) -> Counter[Problem]:
    found: Counter[Problem] = Counter()
    for problem, count in zip(workload.problems, workload.counts, strict=True):
        found[problem.renamed("-")] += count
    return found


# Multiply-accumulates and parameters, published by:
# - torchvision's model pages (which count products of convolutions and linear layers): ResNet-50
#   4.09 G, MobileNet-v2 0.30 G, VGG-16 15.47 G; parameters 25 557 032, 3 504 872 and 138 357 544,
#   to which an export adds the running mean and variance of every normalised channel;
# - the calflops project's README: a BERT-base over 128 tokens, 11.174 G (its example has another
#   vocabulary, which has no products); MobileBERT's paper (ACL 2020) has 22.5 G operations.
#   Parameters: bert-base-uncased, 109 482 240;
# - nanoGPT's transformer_sizing.ipynb: GPT-2 forward over 1024 tokens, 291 648 307 200 operations,
#   two for a multiply-accumulate, with attention to all tokens; parameters of GPT-2 with its
#   biases, 124 439 808.
PUBLISHED = {
    "resnet50": (onnx_models.resnet50, {}, 4.09e9, 25_557_032 + 2 * 26_560),
    "mobilenet_v2": (onnx_models.mobilenet_v2, {}, 0.30e9, 3_504_872 + 2 * 17_056),
    "vgg16": (onnx_models.vgg16, {}, 15.47e9, 138_357_544),
    "bert_base": (onnx_models.bert_base, {"sequence": 128}, 11.174e9, 109_482_240),
    "gpt2": (onnx_models.gpt2, {}, 291_648_307_200 / 2, 124_439_808),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_totals(name: str, tmp_path: Path) -> None:
    build, dims, macs, params = PUBLISHED[name]
    found = loaded(build(), tmp_path, dims=dims)
    assert found.macs == pytest.approx(macs, rel=0.01)
    assert found.params == params
    assert not found.unsupported


def test_bert_over_512_tokens_follows_the_formula(tmp_path: Path) -> None:
    # Per block, n tokens of width d: four projections, two layers of 4 d, scores and context;
    # then one token through the pooler.
    n, d = 512, 768
    expected = 12 * (4 * n * d * d + 8 * n * d * d + 2 * n * n * d) + d * d
    assert loaded(onnx_models.bert_base(), tmp_path, dims={"sequence": n}).macs == expected
    assert expected == pytest.approx(48.3e9, rel=0.01)


@pytest.mark.parametrize("name", ["resnet50", "vgg16"])
def test_layers_are_those_of_the_shipped_workload(name: str, tmp_path: Path) -> None:
    build = getattr(onnx_models, name)
    assert bare(loaded(build(), tmp_path).workload()) == bare(load_workload(name))


def test_bert_has_the_shipped_layers_and_its_pooler(tmp_path: Path) -> None:
    found = bare(loaded(onnx_models.bert_base(), tmp_path, dims={"sequence": 384}).workload())
    found.subtract(bare(load_workload("bert_base")))
    assert [(one.size, count) for one, count in found.items() if count] == [
        ({"M": 1, "N": 768, "K": 768}, 1)
    ]


def test_resnet_blocks_are_chains(tmp_path: Path) -> None:
    found = loaded(onnx_models.resnet50(), tmp_path)
    chains = [[node.name for node in chain] for chain in found.chains()]
    assert [f"layer2.1.conv{i}" for i in (1, 2, 3)] in chains
    edge = found.graph().edges["layer2.0.downsample", "layer2.1.conv1"]
    assert (edge["bytes"], edge["via"][-1][:4]) == (512 * 28 * 28 * 4, "Relu")


# Multiply-accumulates, and for each operator left out how many, and words of the reason.
ODD: dict[str, tuple[int, dict[str, tuple[int, str]]]] = {
    "dynamic_batch": (8 * 3 * 30 * 30 * 9, {}),
    "opset_9": (64 * 784 * 10, {}),
    "latest": (8 * 3 * 30 * 30 * 9, {}),
    "split": (4 * 8 * (32 + 64), {}),
    "if_known": (4 * 16 * 8 + 4 * 8 * 2, {}),
    "if_unknown": (4 * 8 * 2, {"MatMul": (2, "in a branch of If: which one runs")}),
    "by_shape": (16 * 8 + 16 * 8 * 8, {}),
    "loop_known": (5 * 4 * 16 * 16 + 5 * 4 * 16 * 2, {}),
    "loop_unknown": (0, {"MatMul": (2, "of unknown rank, after Loop")}),
    "loop_until": (0, {"MatMul": (2, "of unknown rank, after Loop")}),
    "loop_growing": (5 * 4 * 16 * 2, {"MatMul": (5, "shapes change from step to step")}),
    "scan": (7 * 16 * 16 + 7 * 16 * 2, {}),
    "unknown_operator": (0, {"Fancy": (1, "not a known standard operator"),
                             "MatMul": (1, "after Fancy fancy")}),
    "custom_domain": (4 * 16 * 8, {"Quantum": (1, "an operator of 'my.domain'")}),
    "no_shapes": (0, {"Conv": (1, "'x' is not known: of unknown rank"),
                      "MatMul": (1, "of unknown rank")}),
    "quantised": (36 * (32 * 16 * 9 + 32 * 32 + 32 * 8), {}),
    "one_axis": (384 * 80 * 3 * 1500, {}),
    "three_axes": (64 * 3 * 147 * 16 * 56 * 56 + 64 * 16 * 27 * 14 * 54 * 54
                   + 64 * 8 * 8 * 14 * 54 * 54, {}),
    "transposed": (64 * 32 * 16 * 256 + 32 * 8 * 9 * 1024 + 16 * 4 * 9 * 4096, {}),
    "grouped": (32 * 8 * 9 * 17 * 33 + 32 * 9 * 9 * 17 + 32 * 32 * 9 * 5 * 11, {}),
    "products": (2 * 2520 + 1440 + 5040 + 840 + 2520 + 108, {"Einsum": (1, "takes a diagonal")}),
    "recurrent": (2 * 20 * 8 * 256 * (32 + 64), {}),
    "attention": (8 * 128 * 256 * 64 * 2, {}),
    "contributed": (2 * 16 * (64 * 192 + 2 * 16 * 64 + 64 * 32),
                    {"MatMulNBits": (1, "less than a byte")}),
    "kin": (4 * 8 * 9 * 64 + 16 * 256 + 2 * 6 * 16 * 24 + 2 * 12 * 20 * 64 + 2 * 12 * 20 * 32
            + 2 * 12 * 32 * 2
            + 2 * 12 * 64 * 8 + 2 * 12 * 20 * 64 + 5 * 3 * 21 * (10 + 7), {}),
    "functions": (4 * 16 * 8, {}),
    "half": (16 * 8, {}),
    "cycle": (4 * 16 * 8, {"MatMul": (2, "a cycle")}),
    "unsorted": (4 * 8 * (32 + 64), {}),
    "fourier": (0, {"DFT": (1, "Fourier"), "Det": (1, "elimination")}),
}  # fmt: skip


class TestOdd:
    @pytest.mark.parametrize("name", onnx_odd.ODD)
    def test_work_and_what_is_left_out(self, name: str, tmp_path: Path) -> None:
        macs, left_out = ODD[name]
        found = loaded(onnx_odd.ODD[name](), tmp_path)
        assert found.macs == macs
        counts: Counter[str] = Counter()
        for one in found.unsupported:
            counts[one.op] += one.count
            if one.op in left_out and counts[one.op] == left_out[one.op][0]:
                assert left_out[one.op][1] in one.why
        assert counts == {op: count for op, (count, _) in left_out.items()}

    @pytest.mark.parametrize("name", onnx_odd.ODD)
    def test_each_gives_a_table(
        self, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run(["network", str(onnx_odd.ODD[name]().save(tmp_path, name))]) == 0
        captured = capsys.readouterr()
        assert captured.err == ""
        assert f"{name}: " in captured.out
        macs, left_out = ODD[name]
        assert f"{macs:,} MAC" in captured.out
        assert all(op in captured.out for op in left_out)

    def test_loops_count_their_steps(self, tmp_path: Path) -> None:
        nodes = {node.name: node for node in loaded(onnx_odd.loop(True), tmp_path).layers}
        assert (nodes["repeat/step"].count, nodes["after"].count) == (5, 1)
        assert nodes["after"].problem is not None
        assert nodes["after"].problem.size == {"M": 5 * 4, "N": 2, "K": 16}

    def test_loops_inside_loops_multiply(self, tmp_path: Path) -> None:
        found = {
            node.name.rpartition("/")[2]: node.count
            for node in loaded(onnx_odd.loop_in_loop(), tmp_path).layers
        }
        assert found == {"inner_step": 15, "outer_step": 3}

    def test_a_condition_that_is_false_takes_the_other_branch(self, tmp_path: Path) -> None:
        names = [node.name for node in loaded(onnx_odd.branches(True), tmp_path).layers]
        assert names == ["choose/with_u", "after"]

    def test_element_types_are_widths(self, tmp_path: Path) -> None:
        found = {node.name: node.problem for node in loaded(onnx_odd.quantised(), tmp_path).nodes}
        widths = {
            name: [tensor.element_bytes for tensor in problem.tensors]
            for name, problem in found.items()
            if problem is not None
        }
        # Between conversions what is stored is narrow; the last one gives 32-bit sums.
        assert widths == {"qconv": [1, 1, 1], "between": [1, 1, 1], "int": [1, 1, 4]}
        half = loaded(onnx_odd.half(), tmp_path).layers[0].problem
        assert half is not None
        assert {tensor.element_bytes for tensor in half.tensors} == {2}

    def test_a_function_is_what_it_does(self, tmp_path: Path) -> None:
        node = loaded(onnx_odd.functions(), tmp_path).layers[0]
        assert (node.op, node.macs) == ("MatMul", 4 * 16 * 8)

    def test_order_does_not_matter(self, tmp_path: Path) -> None:
        one, other = (loaded(make(), tmp_path) for make in (onnx_odd.split, onnx_odd.unsorted))
        assert bare(one.workload()) == bare(other.workload())

    def test_parts_of_an_operator_hand_on(self, tmp_path: Path) -> None:
        edges = loaded(onnx_odd.contributed(), tmp_path).graph().edges
        assert edges["packed/qkv", "packed/context"]["operands"] == ("B",)
        assert edges["packed/scores", "packed/context"]["bytes"] == 2 * 4 * 16 * 16 * 4
        assert edges["packed/context", "fused"]["operands"] == ("A",)


class TestLengths:
    def test_batch(self, tmp_path: Path) -> None:
        path = onnx_odd.dynamic_batch().save(tmp_path)
        assert load_onnx(path, batch=8).macs == 8 * load_onnx(path).macs
        assert load_network(f"{path}:batch=8") == load_onnx(path, batch=8)
        assert load_workload(f"{path}:batch=8").macs == 8 * load_onnx(path).macs
        assert load_onnx(path, dims={"n": 8}) == load_onnx(path, batch=8)

    def test_another_fixed_batch(self, tmp_path: Path) -> None:
        path = onnx_models.vgg16(1).save(tmp_path)
        assert load_onnx(path, batch=4).macs == 4 * load_onnx(path).macs

    def test_a_batch_that_the_model_contradicts(self, tmp_path: Path) -> None:
        model = Model()
        x = model.add("Reshape", model.input("x", [1, 4, 4]), model.number(1, 16))
        model.output(model.add("Gemm", x, model.weight("w", 16, 2)))
        with pytest.raises(WorkloadError, match=r"makes \[1, 16\] of \[8, 4, 4\]"):
            loaded(model, tmp_path, batch=8)

    def test_open_lengths_are_asked_for(self, tmp_path: Path) -> None:
        path = onnx_models.bert_base().save(tmp_path)
        found = load_onnx(path)
        assert {one.why for one in found.unsupported} == {"lengths are open; give --dim sequence=N"}
        assert sum(one.count for one in found.unsupported) == 97
        with pytest.raises(WorkloadError, match="give --dim sequence=N"):
            load_workload(path)
        with pytest.raises(WorkloadError, match="did you mean 'sequence'"):
            load_onnx(path, dims={"sequenze": 3})
        with pytest.raises(WorkloadError, match="batch is 0"):
            load_onnx(path, batch=0)

    def test_only_the_first_open_length_is_the_batch(self, tmp_path: Path) -> None:
        model = Model()
        x, rows = model.input("x", ["n", 16]), model.input("rows", ["m", 16])
        model.output(model.add("MatMul", x, model.weight("w", 16, 8)))
        model.output(model.add("MatMul", rows, "w"))
        path = model.save(tmp_path)
        assert load_onnx(path).source.endswith("batch 1 (n)")
        for dims in ({}, {"n": 4}):
            found = load_onnx(path, dims=dims)
            assert [(one.count, one.why) for one in found.unsupported] == [
                (1, "lengths are open; give --dim m=N")
            ]
        assert load_onnx(path, batch=2, dims={"m": 3}).macs == 5 * 16 * 8
        with pytest.raises(WorkloadError, match="batch is 2, and dim 'n', which is the batch, is"):
            load_onnx(path, batch=2, dims={"n": 3})

    def test_what_the_file_says_of_an_unknown_operator(self, tmp_path: Path) -> None:
        model = onnx_odd.unknown_operator().proto()
        model.graph.value_info.append(helper.make_tensor_value_info("v1", 1, [4, 16]))
        found = load_onnx(onnx_models.save(model, tmp_path))
        assert [(one.op, one.count) for one in found.unsupported] == [("Fancy", 1)]
        assert found.macs == 4 * 16 * 8


# --- nests, executed -----------------------------------------------------------------------------


def positions(axis: Axis, index: dict[str, np.ndarray]) -> np.ndarray:
    return axis.offset + sum(c * index[dim] for dim, c in axis.terms)


def length(axis: Axis, problem: Problem) -> int:
    return axis.size or 1 + sum(c * (problem.size[dim] - 1) for dim, c in axis.terms)


def execute(problem: Problem, operands: dict[str, np.ndarray]) -> np.ndarray:
    """Run every point of a nest; outside what is stored there is nothing."""
    grid = np.indices(tuple(problem.size.values())).reshape(len(problem.dims), -1)
    index = dict(zip(problem.dims, grid, strict=True))

    def places(tensor: Tensor) -> tuple[tuple[int, ...], np.ndarray, np.ndarray]:
        shape = tuple(length(axis, problem) for axis in tensor.axes)
        if not shape:  # one number
            return (), np.zeros(grid.shape[1], int), np.ones(grid.shape[1], bool)
        at = np.array([positions(axis, index) for axis in tensor.axes])
        inside = np.all((at >= 0) & (at < np.array(shape)[:, None]), axis=0)
        flat = np.ravel_multi_index(tuple(at * inside), shape)
        return shape, flat, inside

    product = np.ones(grid.shape[1])
    for tensor in problem.tensors:
        if tensor.name != problem.output:
            shape, flat, inside = places(tensor)
            assert operands[tensor.name].size == math.prod(shape)
            product = product * np.where(inside, operands[tensor.name].reshape(-1)[flat], 0)
    shape, flat, inside = places(problem.output_tensor)
    result = np.zeros(math.prod(shape))
    np.add.at(result, flat, product * inside)
    return result


def agrees(model: Model, folder: Path) -> None:
    """Hold the only nest of a model against ONNX's own evaluator, in whole numbers."""
    proto = model.proto()
    found = load_onnx(onnx_models.save(proto, folder))
    assert not found.unsupported, found.unsupported
    (node,) = found.layers
    rng = np.random.default_rng(0)
    feeds = {}
    for info in model.inputs:
        shape = [dim.dim_value for dim in info.type.tensor_type.shape.dim]
        feeds[info.name] = rng.integers(-3, 4, shape).astype(np.float32)
    (expected,) = ReferenceEvaluator(proto).run(None, feeds)
    assert node.problem is not None
    stored = {tensor: feeds[value] for tensor, value in node.operands if value in feeds}
    result = execute(node.problem, stored)
    assert result.size == expected.size
    assert np.array_equal(result, expected.reshape(-1))


sizes = st.integers(1, 4)


class TestNests:
    @settings(max_examples=40)
    @given(st.data())
    def test_convolutions(self, tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
        rank = data.draw(st.integers(1, 3))
        per_axis = {
            name: [data.draw(st.integers(1, most)) for _ in range(rank)]
            for name, most in (("kernel_shape", 3), ("strides", 3), ("dilations", 2))
        }
        groups = data.draw(st.integers(1, 2))
        model = Model()
        x = model.input("x", [data.draw(st.integers(1, 2)), groups * data.draw(st.integers(1, 2)),
                              *(data.draw(st.integers(5, 7)) for _ in range(rank))])  # fmt: skip
        channels = model.inputs[0].type.tensor_type.shape.dim[1].dim_value
        w = model.input("w", [groups * 2, channels // groups, *per_axis["kernel_shape"]])
        automatic = data.draw(st.sampled_from(["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"]))
        if automatic == "NOTSET":
            pads = [data.draw(st.integers(0, 2)) for _ in range(2 * rank)]
            model.add("Conv", x, w, group=groups, pads=pads, **per_axis)
        else:
            # ONNX's own evaluator has automatic pads without dilation only.
            per_axis["dilations"] = [1] * rank
            model.add("Conv", x, w, group=groups, auto_pad=automatic, **per_axis)
        model.output("v1")
        agrees(model, tmp_path_factory.mktemp("conv"))

    @settings(max_examples=25)
    @given(st.data())
    def test_transposed_convolutions(
        self, tmp_path_factory: pytest.TempPathFactory, data: Any
    ) -> None:
        rank = data.draw(st.integers(1, 2))
        strides = [data.draw(st.integers(1, 3)) for _ in range(rank)]
        window = [data.draw(st.integers(2, 3)) for _ in range(rank)]
        pads = [data.draw(st.integers(0, 1)) for _ in range(2 * rank)]
        added = [data.draw(st.integers(0, stride - 1)) for stride in strides]
        model = Model()  # of one group: ONNX's own evaluator fails on several
        x = model.input("x", [1, 2, *(data.draw(st.integers(3, 5)) for _ in range(rank))])
        w = model.input("w", [2, data.draw(st.integers(1, 2)), *window])
        model.output(
            model.add("ConvTranspose", x, w, strides=strides, pads=pads, output_padding=added,
                      kernel_shape=window)
        )  # fmt: skip
        agrees(model, tmp_path_factory.mktemp("back"))

    @settings(max_examples=40)
    @given(st.data())
    def test_products(self, tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
        k = data.draw(sizes)
        batch = [data.draw(st.integers(1, 3)) for _ in range(data.draw(st.integers(0, 3)))]

        def part() -> list[int]:
            kept = batch[data.draw(st.integers(0, len(batch))) :]
            return [data.draw(st.sampled_from([1, size])) for size in kept]

        vectors = data.draw(st.booleans()), data.draw(st.booleans())
        left = [k] if vectors[0] else [*part(), data.draw(sizes), k]
        right = [k] if vectors[1] else [*part(), k, data.draw(sizes)]
        model = Model()
        model.output(model.add("MatMul", model.input("a", left), model.input("b", right)))
        agrees(model, tmp_path_factory.mktemp("product"))

    @given(st.booleans(), st.booleans(), sizes, sizes, sizes)
    def test_general_products(self, a: bool, b: bool, m: int, n: int, k: int) -> None:
        import tempfile

        model = Model()
        left = model.input("a", [k, m] if a else [m, k])
        right = model.input("b", [n, k] if b else [k, n])
        model.output(model.add("Gemm", left, right, transA=int(a), transB=int(b)))
        with tempfile.TemporaryDirectory() as folder:
            agrees(model, Path(folder))

    @pytest.mark.parametrize(
        ("equation", "left", "right"),
        [
            ("mk,kn->mn", (2, 3), (3, 4)),
            ("bhqd,bhkd->bhqk", (2, 2, 3, 4), (2, 2, 5, 4)),
            ("km,kn", (3, 2), (3, 4)),
            ("...mk,...kn->...mn", (2, 1, 3, 2), (4, 2, 5)),
            (" i j , j -> i ", (3, 4), (4,)),
            ("i,j->ij", (3,), (4,)),
            ("ab,cb->ca", (3, 4), (5, 4)),
            ("ij,jk->ik", (2, 5), (1, 4)),
            ("ij,ij->", (2, 5), (2, 5)),
            ("i,j", (1,), (3,)),
            ("ij,i->", (2, 5), (1,)),
            ("ij,jk->k", (2, 5), (5, 4)),
            (",i->i", (), (3,)),
        ],
    )
    def test_sums(
        self, equation: str, left: tuple[int, ...], right: tuple[int, ...], tmp_path: Path
    ) -> None:
        model = Model()
        operands = model.input("a", left), model.input("b", right)
        model.output(model.add("Einsum", *operands, equation=equation))
        agrees(model, tmp_path)

    @pytest.mark.parametrize("equation", ["ij->ji", "ij->", "ij->i", "ii->i", "...i->..."])
    def test_sums_of_one_operand_have_no_products(self, equation: str, tmp_path: Path) -> None:
        model = Model()
        model.output(model.add("Einsum", model.input("a", [3, 3]), equation=equation))
        found = loaded(model, tmp_path)
        assert [(node.op, node.role) for node in found.nodes] == [("Einsum", "vector")]

    @pytest.mark.parametrize("op", ["RNN", "GRU", "LSTM"])
    def test_recurrent_layers_whose_last_state_alone_is_read(self, op: str, tmp_path: Path) -> None:
        gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[op]
        model = Model()
        x = model.input("x", [7, 2, 5])
        weights = model.weight("w", 1, gates * 3, 5), model.weight("r", 1, gates * 3, 3)
        state = model.add(op, x, *weights, n=2, hidden_size=3)[1]
        model.nodes[0].output[0] = ""
        model.output(model.add("MatMul", state, model.weight("v", 3, 4)))
        found = loaded(model, tmp_path)
        assert not found.unsupported
        assert found.macs == 7 * 2 * gates * 3 * (5 + 3) + 2 * 3 * 4

    @pytest.mark.parametrize("widen", [(), ("Identity",), ("Cast",), ("Mul",)])
    def test_a_turned_operand_is_read_as_it_is_stored(
        self, widen: tuple[str, ...], tmp_path: Path
    ) -> None:
        model = Model()
        k = model.add("Transpose", model.input("k", [2, 5, 3, 4]), perm=[0, 2, 3, 1])
        for op in widen:
            more = {"to": 1} if op == "Cast" else {}
            k = model.add(op, k, *(["q0"] if op == "Mul" else []), **more)
        model.input("q0", [1])
        q = model.add("Transpose", model.input("q", [2, 5, 3, 4]), perm=[0, 2, 1, 3])
        model.output(model.add("MatMul", q, k))
        problem = loaded(model, tmp_path).layers[0].problem
        assert problem is not None
        assert dict(problem.attributes) == {"transpose_a": False, "transpose_b": True}

    @pytest.mark.parametrize("flag", [0, 1])
    def test_a_transpose_before_gemm_turns_its_flag(self, flag: int, tmp_path: Path) -> None:
        model = Model()
        b = model.add("Transpose", model.input("b", [3, 3]), perm=[1, 0])
        model.output(model.add("Gemm", model.input("a", [3, 3]), b, transB=flag))
        problem = loaded(model, tmp_path).layers[0].problem
        assert problem is not None
        assert dict(problem.attributes) == {"transpose_a": False, "transpose_b": not flag}

    def test_a_reshape_ends_what_a_transpose_did(self, tmp_path: Path) -> None:
        model = Model()
        b = model.add("Transpose", model.input("b", [4, 6]), perm=[1, 0])
        b = model.add("Reshape", b, model.number(4, 6))
        model.output(model.add("MatMul", model.input("a", [5, 4]), b))
        problem = loaded(model, tmp_path).layers[0].problem
        assert problem is not None
        assert dict(problem.attributes) == {"transpose_a": False, "transpose_b": False}

    def test_a_batch_of_turned_rows_is_not_one_turned_operand(self, tmp_path: Path) -> None:
        model = Model()
        a = model.add("Transpose", model.input("a", [2, 4, 3]), perm=[0, 2, 1])
        model.output(model.add("MatMul", a, model.input("w", [4, 5])))
        problem = loaded(model, tmp_path).layers[0].problem
        assert problem is not None
        assert problem.size == {"M": 6, "N": 5, "K": 4}
        assert dict(problem.attributes) == {"transpose_a": False, "transpose_b": False}

    def test_a_result_is_narrow_only_where_all_read_it_so(self, tmp_path: Path) -> None:
        byte = TensorProto.UINT8
        model = Model()
        y = model.add("MatMul", model.input("x", [4, 8]), model.weight("w", 8, 8))
        scale, zero = model.weight("scale"), model.weight("zero", kind=byte)
        model.output(model.add("QuantizeLinear", y, scale, zero), byte)
        model.output(model.add("Softmax", y))
        problem = loaded(model, tmp_path).layers[0].problem
        assert problem is not None
        assert problem.output_tensor.element_bytes == 4

    def test_what_is_computed_and_cast_is_stored_as_it_is_cast(self, tmp_path: Path) -> None:
        half = TensorProto.FLOAT16
        model = Model()
        weight = model.weight("w", 8, 8, kind=half)
        y = model.add("Cast", model.add("MatMul", model.input("x", [4, 8], half), weight), to=1)
        model.output(model.add("MatMul", y, model.weight("u", 8, 8)))
        problem = loaded(model, tmp_path).layers[1].problem
        assert problem is not None
        assert [tensor.element_bytes for tensor in problem.tensors] == [4, 4, 4]

    def test_what_has_no_nest_says_why(self, tmp_path: Path) -> None:
        model = Model()
        x = model.input("x", [1, 2, 6, 6])
        weights = model.weight("w", 2, 2, 1, 1), model.weight("u", 3, 4)
        model.output(model.add("Conv", x, weights[0], strides=[2]))
        model.output(model.add("MatMul", model.weight("none", 0, 3), weights[1]))
        model.add("Gemm", model.input("a", [2, 3]), model.weight("b", 3, 2), name="good")
        found = {one.op: one.why for one in loaded(model, tmp_path).unsupported}
        assert found["Conv"] == "strides is (2,); 2 whole numbers are needed"
        assert found["MatMul"].startswith("'none' has no elements")


# --- what cannot be read -------------------------------------------------------------------------

BROKEN: dict[str, tuple[bytes | None, str]] = {
    "nothing": (b"", "is empty; an ONNX model is needed"),
    "text": (b"hello, world", "not an ONNX model"),
    "json": (b'{"layers": []}', "not an ONNX model"),
    "no graph": (b"\x08\x08", "has no graph"),
    "no nodes": (b"\x08\x08\x3a\x00", "the graph is empty"),
    "missing": (None, "no such file"),
}


class TestBroken:
    @pytest.mark.parametrize("name", BROKEN)
    @pytest.mark.parametrize("command", ["network", "space", "workloads", "search"])
    def test_files(
        self, name: str, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        content, words = BROKEN[name]
        path = tmp_path / "broken.onnx"
        if content is not None:
            path.write_bytes(content)
        assert run([command, str(path)]) == 3
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.startswith(f"Error: {path}: ")
        assert words in captured.err
        assert captured.err.count("\n") == 1

    def test_a_folder(self, tmp_path: Path) -> None:
        with pytest.raises(WorkloadError, match="is a folder"):
            load_onnx(tmp_path)

    @pytest.mark.parametrize("seed", range(6))
    def test_flipped_bytes(self, seed: int, tmp_path: Path) -> None:
        rng = random.Random(seed)
        models = [make().proto().SerializeToString() for make in onnx_odd.ODD.values()]
        n_read = survives(
            (flipped(rng.choice(models), rng) for _ in range(150)), tmp_path / "m.onnx"
        )
        assert n_read > 5  # not every change spoils the file

    @pytest.mark.parametrize("seed", range(6))
    def test_random_models(self, seed: int, tmp_path: Path) -> None:
        random_models = RandomModels(seed)
        protos = (random_models.model() for _ in range(60))
        assert survives((one.SerializeToString() for one in protos), tmp_path / "m.onnx") > 40

    @pytest.mark.parametrize("seed", range(6))
    def test_models_with_wrong_fields(self, seed: int, tmp_path: Path) -> None:
        models = RandomModels(seed)
        protos = (models.mutated(make().proto()) for make in onnx_odd.ODD.values())
        assert survives((one.SerializeToString() for one in protos), tmp_path / "m.onnx") > 20


def survives(contents: Any, path: Path) -> int:
    """Load each; an error is one for people. Returns how many could be read."""
    n_read = 0
    for content in contents:
        path.write_bytes(content)
        try:
            found = load_onnx(path)
        except InputError:
            continue
        n_read += 1
        assert {row["role"] for row in network_rows(found)} <= {
            "layer", "vector", "shape", "unsupported",
        }  # fmt: skip
        assert sum(len(chain) for chain in found.chains()) == len(found.layers)
    return n_read


# --- the command line ----------------------------------------------------------------------------


class TestCommands:
    def test_layers_as_rows(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        path = onnx_odd.branches(False).save(tmp_path)
        assert run(["network", str(path), "--format", "csv"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[1] == "0,layer,after,MatMul,gemm,m4 n2 k8,1,64,224,64,"
        assert lines[2].startswith(",unsupported,choose/then/with_w,MatMul,,,2,")

    @pytest.mark.parametrize("name", ["dynamic_batch", "three_axes", "transposed", "products"])
    def test_the_saved_workload_is_the_same(
        self, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = onnx_odd.ODD[name]().save(tmp_path)
        out = tmp_path / "saved.json"
        assert run(["network", str(path), "--out", str(out)]) == 0
        assert capsys.readouterr().err.endswith(f"wrote {out}\n")
        assert load_workload(out) == load_workload(path)
        assert sorted(each.name for each in tmp_path.iterdir()) == ["model.onnx", "saved.json"]

    @pytest.mark.parametrize(
        "words",
        [
            ["space", "{}"],
            ["workloads", "{}:batch=2"],
            ["search", "{}", "--strategy", "random", "--samples", "2", "--batch", "2"],
            ["analyze", "{}", "N:2 K:8 C:3 P:30 Q:30 R:3 S:3", "--batch", "2"],
            ["show", "{}", "N:2 K:8 C:3 P:30 Q:30 R:3 S:3", "--batch", "2"],
            ["curve", "{}", "--dim", "n=2"],
        ],
    )
    def test_models_go_wherever_workloads_do(
        self, words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = str(onnx_odd.dynamic_batch().save(tmp_path))
        assert run([word.format(path) for word in words]) == 0, capsys.readouterr().err

    def test_saved_results_remember_the_lengths(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path, out = onnx_odd.dynamic_batch().save(tmp_path), tmp_path / "found.jsonl"
        given = ["--strategy", "random", "--samples", "2", "--batch", "3", "--out", str(out)]
        assert run(["search", str(path), *given]) == 0
        assert run(["show", str(out)]) == 0
        assert "range(3)" in capsys.readouterr().out or "N:3" in out.read_text(encoding="utf-8")

    @pytest.mark.parametrize(
        ("words", "named"),
        [
            (["space", "vgg16", "--batch", "2"], "are for ONNX models"),
            (["space", "{}", "--dim", "m=2"], "no symbolic length 'm'; allowed: n"),
            (["space", "{}", "--dim", "n"], "'n' is not NAME=LENGTH"),
            (["space", "{}", "--input-value", "n=a"], "'n=a' is not NAME=NUMBER, such as sr=16000"),
            (["space", "{}:batch=x"], "'batch=x' is not NAME=LENGTH"),
            (["network", "{}", "--out", "x.txt"], "ends in .json"),
            (["network", "{}", "--dim", "n=0"], "dim 'n' is 0"),
        ],
    )
    def test_complaints(
        self, words: list[str], named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = str(onnx_odd.dynamic_batch().save(tmp_path))
        assert run([word.format(path) for word in words]) == 3
        assert named in capsys.readouterr().err

    @pytest.mark.parametrize("columns", ["80", "120"])
    def test_tables_fit(
        self,
        columns: str,
        tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setenv("COLUMNS", columns)
        path = onnx_models.resnet50().save(tmp_path, "resnet50")
        assert run(["network", str(path)]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert max(map(len, lines)) <= int(columns)
        assert any("n1 c3 h224 w224 k64 r7 s7 stride2 pad3" in line for line in lines)


def test_without_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtraError, match="with the extra 'onnx'"):
        load_onnx(tmp_path / "any.onnx")


def test_structure_only_models_have_no_weights(tmp_path: Path) -> None:
    path = onnx_models.vgg16().save(tmp_path)
    assert path.stat().st_size < 20_000  # of 553 MB with its weights
    assert [each.name for each in tmp_path.iterdir()] == ["model.onnx"]


def test_integers_are_no_parameters(tmp_path: Path) -> None:
    model = Model()
    rows = model.add("Gather", model.weight("table", 100, 8), model.weight("ids", 4, kind=INT64))
    model.output(model.add("MatMul", rows, model.weight("w", 8, 2)))
    assert loaded(model, tmp_path).params == 100 * 8 + 8 * 2
