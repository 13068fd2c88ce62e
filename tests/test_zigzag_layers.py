"""ZigZag's workload files, read back and read from others."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest
import yaml

from loopsched import Network, conv2d, gemm, load_network, load_workload, to_zigzag
from loopsched.base.errors import InputError, WorkloadError
from loopsched.problems.problem import Problem
from loopsched.problems.workload import workload_names

RESIDUAL = """
- id: 0 # stride 2
  operator_type: Conv
  equation: O[b][k][oy][ox]+=W[k][c][fy][fx]*I[b][c][iy][ix]
  dimension_relations: [ix=2*ox+1*fx, iy=2*oy+1*fy]
  loop_dims: [B, K, C, OY, OX, FY, FX]
  loop_sizes: [1, 64, 3, 112, 112, 7, 7]
  operand_precision: {W: 8, I: 8, O: 16, O_final: 8}
  operand_source: {I: 0, W: 0}
  pr_loop_dims: [IY, IX]
  pr_loop_sizes: [224, 224]
  padding: [[3, 2], [3, 2]]
- id: 1
  operator_type: Pooling
  equation: O[b][g][oy][ox]+=W[fx][fy]*I[b][g][iy][ix]
  dimension_relations: [ix=2*ox+1*fx, iy=2*oy+1*fy]
  loop_dims: [B, G, OY, OX, FX, FY]
  loop_sizes: [1, 64, 56, 56, 3, 3]
  operand_precision: {I: 8, W: 0, O: 16, O_final: 8}
  operand_source: {I: 0, W: 1}
- id: 2
  name: conv
  operator_type: Conv
  equation: O[b][k][oy][ox]+=W[k][c][fy][fx]*I[b][c][iy][ix]
  dimension_relations: [ix=ox+fx, iy=1*oy+1*fy]
  loop_dims: [B, K, C, OY, OX, FY, FX]
  loop_sizes: [1, 64, 64, 56, 56, 3, 3]
  operand_precision: {W: 8, I: 8, O: 16, O_final: 8}
  operand_source: {I: 1, W: 2}
- id: 3
  operator_type: Add
  equation: O[b][g][oy][ox]=W[b][g][oy][ox]+I[b][g][oy][ox]
  loop_dims: [B, G, OY, OX]
  loop_sizes: [1, 64, 56, 56]
  operand_precision: {W: 8, I: 8, O: 16, O_final: 8}
  operand_source: {W: 1, I: 2}
- id: 4
  operator_type: Gemm
  equation: O[a][b] += I[a][c] * W[b][c]
  loop_dims: [A, B, C]
  loop_sizes: [1, 1000, 64]
  operand_precision: {W: 16, I: 8, O: 32, O_final: 32}
  operand_source: {I: 3, W: 4}
"""


def read(tmp_path: Path, text: str) -> Network:
    file = tmp_path / "net.yaml"
    file.write_text(text, encoding="utf-8")
    return load_network(file)


def changed(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new, 1)


def without_unread_padding(problem: Problem) -> Problem:
    attributes = tuple(one for one in problem.attributes if one[0] != "padding")
    return Problem(
        problem.name, problem.sizes, problem.tensors, problem.output, problem.kind, attributes
    )


@pytest.mark.parametrize("name", workload_names())
def test_what_is_written_is_read_back(name: str, tmp_path: Path) -> None:
    problems = load_workload(name).problems
    made = to_zigzag([(problem, None) for problem in problems])
    found = read(tmp_path, made.text("workload.yaml")).layers
    assert len(found) == len(problems)
    for node, problem in zip(found, problems, strict=True):
        assert node.problem is not None
        assert without_unread_padding(node.problem) == without_unread_padding(problem)


def test_a_network_is_read_with_its_graph(tmp_path: Path) -> None:
    network = read(tmp_path, RESIDUAL)
    layers = {layer["id"]: math.prod(layer["loop_sizes"]) for layer in yaml.safe_load(RESIDUAL)}
    assert [node.macs for node in network.nodes] == [layers[0], 0, layers[2], 0, layers[4]]
    assert network.passed == (("Pooling", "vector", 1), ("Add", "vector", 1))
    assert [node.inputs for node in network.nodes] == [
        ("Layer0/W", "Layer0/I"),
        ("Layer1/W", "Layer0"),
        ("conv/W", "Layer1"),
        ("Layer1", "conv"),
        ("Layer3", "Layer4/W"),
    ]
    edges = {("Layer0", "conv"), ("conv", "Layer4")}
    assert set(network.graph().edges) == edges
    assert set(network.inputs) == {"Layer0/I", "Layer1/W"}
    assert network.outputs == ("Layer4",)
    assert network.params == 64 * 3 * 49 + 64 * 64 * 9 + 64_000


def test_layers_have_the_form_of_their_builder(tmp_path: Path) -> None:
    first, second, last = (node.problem for node in read(tmp_path, RESIDUAL).layers)
    assert first == conv2d(
        c=3, k=64, h=224, w=224, r=7, s=7, stride=2, padding=(3, 2, 3, 2), element_bytes=1,
        name="Layer0",
    )  # fmt: skip
    assert second == conv2d(c=64, k=64, p=56, q=56, r=3, s=3, element_bytes=1, name="conv")
    widths = {"A": 1, "B": 2, "C": 4}
    assert last == gemm(m=1, n=1000, k=64, transpose_b=True, element_bytes=widths, name="Layer4")


def test_windows_over_the_output_are_an_affine_problem(tmp_path: Path) -> None:
    text = changed(RESIDUAL, "[ix=2*ox+1*fx, iy=2*oy+1*fy]", "[ox=ix+fx, oy=iy+fy]")
    text = changed(text, "OY, OX, FY, FX]", "IY, IX, FY, FX]")
    text = changed(text, "[IY, IX]\n  pr_loop_sizes: [224, 224]", "[]")
    text = changed(text, "padding: [[3, 2], [3, 2]]", "padding: []")
    problem = read(tmp_path, text).layers[0].problem
    assert problem is not None
    assert problem.kind == "affine"
    assert problem.tensor("O").axes[2].terms == (("IY", 1), ("FY", 1))
    assert problem.macs == 64 * 3 * 112**2 * 49


def test_names_are_made_unique(tmp_path: Path) -> None:
    network = read(tmp_path, changed(RESIDUAL, "- id: 0", "- name: conv\n  id: 0"))
    assert [node.name for node in network.layers] == ["conv #0", "conv #2", "Layer4"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("id: 4", "id: 3", "id 3 is given twice"),
        ("I: 3, W: 4", "I: 9, W: 4", "layer Layer4: operand_source of I: no layer '9'"),
        ("I: 0, W: 0}", "I: 2, W: 0}", "'conv' is read by Layer0 before conv produces it"),
        ("operand_source", "source", r"layer 0: unknown key 'source'; did you mean 'operand_s"),
        ("  loop_dims: [A, B, C]\n", "", "layer 4: no 'loop_dims'"),
        ("[1, 1000, 64]", "[1, 0, 64]", "loop_sizes of 'B' is 0; a whole number >= 1"),
        ("[1, 1000, 64]", "[1, 1000]", "3 loop_dims, but 2 loop_sizes"),
        ("[A, B, C]", "[A, B, B]", "'B' is given twice"),
        ("W[b][c]", "W[b][d]", "equation: W: unknown index 'D'; "),
        ("W[b][c]", "W[c][c]", "equation: W has one index twice"),
        ("I[a][c] * W[b][c]", "I[a][c]", "a product or a sum of two operands is needed"),
        ("W: 16, I: 8, O: 32", "W: 4, I: 8, O: 32", "precision of W is 4 bits; whole bytes"),
        ("W: 16, I: 8, O: 32", "I: 8, O: 32", "operand_precision of W is '0'; a whole|of W is 0"),
        ("ix=ox+fx", "ix=ox", "'ix=ox' is not as ix=1"),
        ("ix=ox+fx", "ix=ox+ox", "'ix=ox.ox'; two dimensions are needed"),
        ("ix=ox+fx", "ix=ox+zz", "unknown 'ZZ'"),
        ("[224, 224]", "[224]", "2 pr_loop_dims, but 1 pr_loop_sizes"),
        ("[[3, 2], [3, 2]]", "[[3, 2], 3]", "padding of ix is '3'; two numbers are needed"),
        ("pr_loop_sizes: [224, 224]\n  padding: [[3, 2], [3, 2]]",
         "padding: [[3, 2], [229, 2]]", "ix reaches 229 positions, all of them padding"),
    ],
)  # fmt: skip
def test_faults_are_told(old: str, new: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match=message):
        read(tmp_path, changed(RESIDUAL, old, new))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("problem: {shape: 3}", "a Timeloop file; 'loopsched import timeloop' reads it"),
        ("a: 1", "found {'a': '1'}; a list of ZigZag's layers is needed"),
        ("- 3", "layer 0|found '3'; a mapping with id"),
        ("[1, [2", "is not YAML"),
        ("", "is empty"),
    ],
)
def test_other_files_are_refused(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match=message):
        read(tmp_path, text)


def test_damaged_files_are_refused_or_read(tmp_path: Path) -> None:
    rng = random.Random(15)
    letters = sorted(set(RESIDUAL))
    outcomes = set()
    for _ in range(400):
        text = list(RESIDUAL)
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(text))
            text[at : at + rng.randint(0, 6)] = rng.choices(letters, k=rng.randint(0, 3))
        try:
            read(tmp_path, "".join(text)).workload()
            outcomes.add("read")
        except InputError:
            outcomes.add("refused")
    assert outcomes == {"read", "refused"}


def test_a_workload_is_searched_by_its_file(tmp_path: Path) -> None:
    (tmp_path / "net.yml").write_text(RESIDUAL, encoding="utf-8")
    assert load_workload(tmp_path / "net.yml").counts == (1, 1, 1)
