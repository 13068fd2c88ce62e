"""Networks: their order, the graph of layers, chains, and workloads written as files."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopsched import (
    Network,
    Node,
    Value,
    affine,
    batched_gemm,
    conv2d,
    einsum,
    gemm,
    load_network,
    load_workload,
    workload_names,
)
from loopsched.base.errors import WorkloadError
from loopsched.network.graph import Unsupported
from loopsched.network.rows import network_rows
from loopsched.network.text import model_text
from loopsched.problems.problem import Problem, Tensor
from loopsched.problems.workload import Workload, parse_workload, workload_schema
from loopsched.problems.workload_write import problem_fields, save_workload, workload_to_dict


def square(name: str, read: str, written: str, count: int = 1) -> Node:
    """A product of an 8 x 16 value with a weight."""
    problem = gemm(m=8, n=16, k=16, name=name)
    operands = (("A", read), ("B", f"{name}.w"), ("C", written))
    return Node(name, "MatMul", problem, (read, f"{name}.w"), (written,), operands, count)


def vector(op: str, read: tuple[str, ...], written: str) -> Node:
    return Node(f"{op}_{written}", op, None, read, (written,))


def network(nodes: tuple[Node, ...], outputs: tuple[str, ...]) -> Network:
    names = dict.fromkeys(name for node in nodes for name in (*node.inputs, *node.outputs))
    values = tuple(
        Value(name, (16, 16), is_weight=True) if name.endswith(".w") else Value(name, (8, 16))
        for name in names
    )
    return Network("mine", nodes, values, ("x",), outputs)


# A residual block: its sum is done with the last layer, which is not fed by the first.
RESIDUAL = network(
    (
        square("a", "x", "a1"),
        vector("Relu", ("a1",), "a2"),
        square("b", "a2", "b1"),
        vector("Relu", ("b1",), "b2"),
        square("c", "b2", "c1"),
        vector("Add", ("c1", "a2"), "s"),
        square("d", "s", "d1"),
    ),
    ("d1",),
)


class TestGraph:
    def test_edges_are_tensors_between_layers(self) -> None:
        graph = RESIDUAL.graph()
        assert set(graph.edges) == {("a", "b"), ("a", "c"), ("b", "c"), ("c", "d")}
        assert graph.edges["a", "b"] == {
            "values": ("a2",), "bytes": 8 * 16 * 4, "operands": ("A",),
            "taken": (), "via": ("Relu_a2",),
        }  # fmt: skip
        assert graph.edges["c", "d"]["via"] == ("Add_s",)

    def test_what_only_a_sum_reads_is_no_operand(self) -> None:
        assert RESIDUAL.graph().edges["a", "c"]["operands"] == ()
        assert RESIDUAL.graph().edges["a", "c"]["taken"] == ("a2",)

    def test_a_sum_with_what_the_layer_read_already_reads_it_again(self) -> None:
        nodes = (square("a", "x", "a1"), square("b", "a1", "b1"), vector("Add", ("b1", "a1"), "s"))
        edge = network(nodes, ("s",)).graph().edges["a", "b"]
        assert (edge["bytes"], edge["operands"], edge["taken"]) == (8 * 16 * 4, ("A",), ("a1",))

    def test_nodes_are_in_order_and_know_what_leaves(self) -> None:
        graph = RESIDUAL.graph()
        assert [data["position"] for _, data in graph.nodes(data=True)] == [0, 1, 2, 3]
        assert graph.nodes["d"]["outputs"] == ("d1",)
        assert graph.nodes["a"]["outputs"] == ()

    def test_a_reshaped_tensor_is_one_tensor(self) -> None:
        nodes = (
            square("a", "x", "a1"),
            Node("r", "Reshape", None, ("a1",), ("a2",), role="shape"),
            square("b", "a2", "b1"),
            vector("Add", ("b1", "a1"), "s"),
        )
        edge = network(nodes, ("s",)).graph().edges["a", "b"]
        assert (edge["values"], edge["bytes"], edge["operands"]) == (("a1",), 512, ("A",))

    def test_parts_of_a_tensor_are_several(self) -> None:
        split = Node("s", "Split", None, ("a1",), ("p", "q"), role="shape")
        nodes = (square("a", "x", "a1"), split, square("b", "p", "b1"), square("c", "q", "c1"))
        graph = network(nodes, ("b1", "c1")).graph()
        assert graph.edges["a", "b"]["values"] == ("p",)
        assert graph.edges["a", "c"]["values"] == ("q",)

    def test_a_shape_is_no_tensor(self) -> None:
        nodes = (
            square("a", "x", "a1"),
            Node("s", "Shape", None, ("a1",), ("n",), role="shape"),
            Node("r", "Reshape", None, ("y", "n"), ("z",), role="shape"),
            square("b", "z", "b1"),
        )
        assert not network(nodes, ("b1",)).graph().edges

    def test_unsupported_work_stands_between(self) -> None:
        odd = Node("odd", "Fancy", None, ("a1",), ("o",), why="not known")
        found = network((square("a", "x", "a1"), odd, square("b", "o", "b1")), ("b1",))
        assert set(found.graph().edges) == {("a", "odd"), ("odd", "b")}
        assert [len(chain) for chain in found.chains()] == [1, 1]
        assert found.unsupported == (Unsupported("Fancy", 1, "odd", "not known"),)


class TestChains:
    def names(self, found: Network) -> list[list[str]]:
        return [[node.name for node in chain] for chain in found.chains()]

    def test_a_second_reader_ends_a_chain(self) -> None:
        assert self.names(RESIDUAL) == [["a"], ["b", "c", "d"]]

    def test_a_sum_on_the_way_out_does_not(self) -> None:
        nodes = (square("a", "x", "a1"), square("b", "a1", "b1"),
                 vector("Add", ("b1", "y"), "s"), square("c", "s", "c1"))  # fmt: skip
        assert self.names(network(nodes, ("c1",))) == [["a", "b", "c"]]

    def test_what_leaves_the_network_ends_a_chain(self) -> None:
        nodes = (square("a", "x", "a1"), square("b", "a1", "b1"))
        assert self.names(network(nodes, ("a1", "b1"))) == [["a"], ["b"]]

    def test_two_operands_of_two_layers_begin_a_chain(self) -> None:
        both = Node("c", "MatMul", gemm(m=8, n=8, k=16, transpose_b=True, name="c"),
                    ("a1", "b1"), ("c1",), (("A", "a1"), ("B", "b1"), ("C", "c1")))  # fmt: skip
        nodes = (square("a", "x", "a1"), square("b", "x", "b1"), both)
        assert self.names(network(nodes, ("c1",))) == [["a"], ["b"], ["c"]]

    def test_other_counts_end_a_chain(self) -> None:
        nodes = (square("a", "x", "a1"), square("b", "a1", "b1", count=5))
        assert self.names(network(nodes, ("b1",))) == [["a"], ["b"]]

    def test_every_layer_is_in_one(self) -> None:
        found = load_network("resnet50")
        assert [node for chain in found.chains() for node in chain] == list(found.layers)


class TestNetwork:
    def test_equal_problems_are_one_with_a_count(self) -> None:
        found = RESIDUAL.workload()
        assert [(one.name, one.size) for one in found.problems] == [
            ("a", {"M": 8, "N": 16, "K": 16})
        ]
        assert found.counts == (4,)
        assert found.macs == RESIDUAL.macs == 4 * 8 * 16 * 16

    def test_counts_of_loops_multiply(self) -> None:
        nodes = (square("a", "x", "a1", count=3), square("b", "a1", "b1"))
        found = network(nodes, ("b1",))
        assert (found.macs, found.workload().counts) == (4 * 2048, (4,))

    def test_other_widths_are_other_problems(self) -> None:
        wide, narrow = gemm(m=2, n=2, k=2), gemm(m=2, n=2, k=2, element_bytes=2)
        nodes = (Node("a", "Gemm", wide, (), ()), Node("b", "Gemm", narrow, (), ()))
        assert len(Network("mine", nodes, ()).workload().problems) == 2

    def test_parameters_count_once(self) -> None:
        twice = (square("a", "x", "a1"), Node("b", "MatMul", gemm(m=8, n=16, k=16), ("a1", "a.w"),
                                             ("b1",)))  # fmt: skip
        assert (network(twice, ()).params, network(twice, ()).weight_bytes) == (256, 1024)

    @pytest.mark.parametrize("name", workload_names())
    def test_a_workload_is_a_network_without_a_graph(self, name: str) -> None:
        listed, found = load_workload(name), load_network(name)
        assert (found.macs, found.source) == (listed.macs, listed.source)
        assert not found.graph().edges
        assert found.workload().macs == listed.macs

    def test_faults_are_all_named(self) -> None:
        nodes = (
            square("a", "x", "a1"),
            square("a", "b1", "a1"),
            vector("Relu", ("none",), "b1"),
        )
        values = tuple(Value(name) for name in ("x", "a1", "a.w", "b1", "b1"))
        with pytest.raises(WorkloadError) as caught:
            Network("mine", nodes, values, ("y",))
        assert set(caught.value.problems) == {
            "'a' names 2 nodes; names are unique",
            "'b1' names 2 values; names are unique",
            "input 'y' is not a value",
            "node 'Relu_b1': 'none' is not a value",
            "'a1' is produced by a and by a",
            "'b1' is read by a before Relu_b1 produces it",
        }

    def test_no_layer_says_why(self) -> None:
        odd = Node("odd", "Fancy", None, (), (), why="not known")
        with pytest.raises(WorkloadError, match=r"no layer has a loop nest: Fancy 'odd': not know"):
            Network("mine", (odd,), ()).workload()

    def test_what_is_left_out_is_in_the_source(self) -> None:
        odd = Node("odd", "Fancy", None, (), (), why="not known")
        found = Network("mine", (square("a", "x", "y"), odd),
                        (Value("x"), Value("y"), Value("a.w")), source="here")  # fmt: skip
        assert found.workload().source == "here; left out: Fancy 1"

    def test_unknown_sizes_are_the_operands(self) -> None:
        nodes = (square("a", "x", "a1"), square("b", "a1", "b1"))
        values = tuple(Value(name) for name in ("x", "a.w", "a1", "b.w", "b1"))
        edge = Network("mine", nodes, values).graph().edges["a", "b"]
        assert edge["bytes"] == 8 * 16 * 4


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    few = st.integers(1, 5)
    width = draw(st.sampled_from([4, 2, 1, "fp16"]))
    kind = draw(st.sampled_from(["conv2d", "gemm", "batched_gemm", "einsum", "affine"]))
    name = draw(st.sampled_from(["a", "b c", "layer.0/x"]))
    more = {"element_bytes": width, "name": name}
    if kind == "conv2d":
        groups = draw(st.integers(1, 3))
        return conv2d(
            n=draw(few), c=groups * draw(few), k=groups * draw(few), h=draw(st.integers(9, 12)),
            w=draw(st.integers(9, 12)), r=draw(few), s=draw(st.integers(1, 3)), groups=groups,
            stride=(draw(few), draw(few)), dilation=(draw(st.integers(1, 2)), 1),
            padding=tuple(draw(st.integers(0, 2)) for _ in range(4)),
            pass_=draw(st.sampled_from(["forward", "backward_data", "backward_weights"])),
            **more,
        )  # fmt: skip
    sizes = {"m": draw(few), "n": draw(few), "k": draw(few)}
    flags = {f"transpose_{one}": draw(st.booleans()) for one in "ab"}
    if kind == "gemm":
        return gemm(**sizes, **flags, **more)
    if kind == "batched_gemm":
        return batched_gemm(batch=draw(few), **sizes, **flags, **more)
    if kind == "einsum":
        widths = {"A": 2, "C": 1} if draw(st.booleans()) else width
        return einsum("mk,bkn->bmn", {"b": 2, **sizes}, element_bytes=widths, name=name)
    tensors = {"x": "C 2*P+3*R-1<9", "w": "K C R", "y": "K P"}
    return affine({"K": 2, "C": 3, "P": 4, "R": 2}, tensors,
                  output=draw(st.sampled_from(["x", "w", "y"])), **more)  # fmt: skip


class TestFiles:
    @given(problems(), st.integers(1, 3))
    def test_a_workload_is_read_as_it_was_written(self, problem: Problem, count: int) -> None:
        before = Workload("mine", (problem,), (count,), "from here")
        data = json.loads(json.dumps(workload_to_dict(before)))
        jsonschema.Draft202012Validator(workload_schema()).validate(data)
        assert parse_workload(data, "again", "again") == before

    @pytest.mark.parametrize("name", workload_names())
    def test_shipped_workloads_too(self, name: str, tmp_path: Path) -> None:
        before = load_workload(name)
        save_workload(before, tmp_path / "again.json")
        assert load_workload(tmp_path / "again.json") == before
        assert [path.name for path in tmp_path.iterdir()] == ["again.json"]

    def test_what_a_file_cannot_say(self, tmp_path: Path) -> None:
        strange = Problem("odd", (("M", 2),), (Tensor("A", ()), Tensor("B", ())), "B", "gemm")
        with pytest.raises(WorkloadError, match="not made by a builder"):
            save_workload(Workload("mine", (strange,)), tmp_path / "x.json")
        with pytest.raises(WorkloadError, match=r"ends in \.json"):
            save_workload(load_workload("vgg16"), tmp_path / "x.txt")
        with pytest.raises(WorkloadError, match="cannot be written"):
            save_workload(load_workload("vgg16"), tmp_path / "none" / "x.json")
        assert not list(tmp_path.iterdir())

    def test_fields_leave_out_what_is_usual(self) -> None:
        assert problem_fields(gemm(m=1, n=2, k=3)) == {"op": "gemm", "m": 1, "n": 2, "k": 3}
        turned = batched_gemm(batch=2, m=1, n=2, k=3, transpose_b=True, element_bytes=2)
        assert problem_fields(turned) == {
            "op": "batched_gemm", "batch": 2, "m": 1, "n": 2, "k": 3, "transpose_b": True,
            "element_bytes": 2,
        }  # fmt: skip


def test_lengths_go_into_the_text_of_a_model() -> None:
    assert model_text("a.onnx:batch=2", None, ["s=3"]) == "a.onnx:batch=2,s=3"
    with pytest.raises(WorkloadError, match="'s' is not NAME=LENGTH"):
        model_text("a.onnx", None, ["s"])
    with pytest.raises(WorkloadError, match="two lengths"):
        model_text("a.onnx", 2, ["batch=3"])
    with pytest.raises(WorkloadError, match="'vgg16' is not one"):
        load_network("vgg16", batch=2)


def test_rows_have_the_same_keys() -> None:
    odd = Node("odd", "Fancy", None, (), (), why="not known")
    nodes = (*RESIDUAL.nodes, odd)
    rows = network_rows(Network("mine", nodes, RESIDUAL.values))
    assert {tuple(row) for row in rows} == {tuple(rows[0])}
    assert [(row["role"], row["operator"], row["count"]) for row in rows] == [
        ("layer", "MatMul", 4),
        ("unsupported", "Fancy", 1),
        ("vector", "Relu", 2),
        ("vector", "Add", 1),
    ]
    assert (rows[0]["data_bytes"], rows[0]["weight_bytes"]) == (4 * (128 + 256 + 128), 1024)
