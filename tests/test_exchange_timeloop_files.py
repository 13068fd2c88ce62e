"""Timeloop's files as its exercises have them: includes, merges, older trees, one level."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from loopsched import from_timeloop, load_arch, load_workload
from loopsched.base.errors import InputError
from loopsched.base.yaml_text import MAX_ALIASED, parse_yaml
from loopsched.cli import run
from loopsched.exchange.timeloop import read_timeloop

BASE = """
problem_base_ignore: &base
  version: 0.4
  shape:
    name: product
    dimensions: [M, N, K]
    data_spaces:
    - {name: A, projection: [[[M]], [[K]]]}
    - {name: B, projection: [[[K]], [[N]]]}
    - {name: C, projection: [[[M]], [[N]]], read_write: true}
  instance: {M: 1, N: 1, K: 1}
"""
LAYER = "{{include_text('../base.yaml')}}\nproblem:\n  <<<: *base\n  instance: {M: 8, K: 4}\n"
TREE = """
architecture:
  version: 0.3
  subtree:
  - name: system
    local:
    - {name: DRAM, class: DRAM, attributes: {width: 64, word-bits: 16}}
    subtree:
    - name: chip
      attributes: {technology: 45nm}
      local:
      - name: buffer
        class: smartbuffer_SRAM
        attributes: {memory_depth: 1024, memory_width: 64, word_bits: 16}
      - {name: "Dummy[0..3]", class: regfile, attributes: {depth: 16, width: 16, word_bits: 16}}
      subtree:
      - name: PE[0..11]
        local:
        - {name: spad, class: smartbuffer_RF, attributes: {depth: 8, width: 16, word_bits: 16}}
        - {name: mac, class: intmac}
"""


def test_included_files_and_merges(tmp_path: Path) -> None:
    (tmp_path / "layers").mkdir()
    (tmp_path / "base.yaml").write_text(BASE)
    (tmp_path / "layers" / "one.yaml").write_text(LAYER)
    found = read_timeloop([tmp_path / "layers" / "one.yaml"])
    assert found.problem is not None
    assert dict(found.problem.size) == {"M": 8, "N": 1, "K": 4}
    assert not any("problem_base_ignore" in remark for remark in found.remarks)
    with pytest.raises(InputError, match=r"template \(\{\{include_text"):
        from_timeloop(LAYER)  # a text stands in no folder
    (tmp_path / "base.yaml").write_text("{{include_text('base.yaml')}}")
    with pytest.raises(InputError, match="more than 5 files deep"):
        read_timeloop([tmp_path / "layers" / "one.yaml"])


@pytest.mark.parametrize("text", ["a: {{cwd()}}", "{% if x %}", "{{include('a.yaml', 'b')}}"])
def test_other_templates_are_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(InputError, match=r"holds a template .* render it first"):
        read_timeloop([tmp_path / "a.yaml"])


def test_plain_merges_are_those_of_yaml() -> None:
    text = "a: &a {x: 1, y: {z: 2, w: 4}}\nb: &b {y: 5, v: 6}\n"
    text += "c: {<<: [*a, *b], x: 3}\nd: {<<: *a, y: {z: 7}}\ne: *a\nf: [&s 8, *s]\n"
    expected = yaml.load(text, Loader=yaml.BaseLoader)
    found = parse_yaml(text, merges=True)
    # That loader leaves merge keys alone; the safe one has numbers.
    safe = json.loads(json.dumps(yaml.safe_load(text)), parse_int=str)
    assert found == safe
    assert found.keys() == expected.keys()


def test_deep_merges_are_those_of_the_cheatsheet() -> None:
    text = """
a: &a {key1: 1, key2: {sub1: 2, sub2: 3}, rows: [d, e]}
b: {<<<: *a, key2: {sub1: 9}, rows: [x]}
c: {<<<: *a}
"""
    found = parse_yaml(text, merges=True)
    assert found["b"] == {"key2": {"sub1": "9", "sub2": "3"}, "rows": ["x", "d", "e"], "key1": "1"}
    assert found["a"] == found["c"]  # what was merged did not change what it came from
    several = parse_yaml("a: &a {x: [d]}\nb: &b {x: [e]}\nc: {<<<: [*a, *b]}\n", merges=True)
    assert several == {"a": {"x": ["d"]}, "b": {"x": ["e"]}, "c": {"x": ["d", "e"]}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: *b", "is not YAML|names nothing before it"),
        ("a: &a {b: *a}", "inside what it names"),
        ("a: &a [1]\nb: {<<: *a}", "'<<' names no mapping"),
        ("a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n"
                                      for i in range(1, 19)), "aliases stand for more"),
        ("a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 40)), "deep"),
    ],
)  # fmt: skip
def test_aliases_cannot_swell(text: str, message: str) -> None:
    assert MAX_ALIASED < 2**18
    with pytest.raises(InputError, match=message):
        parse_yaml(text, merges=True)
    with pytest.raises(InputError, match=r"is not allowed|is not YAML"):
        parse_yaml(text)


def test_trees_of_version_0_3() -> None:
    found = from_timeloop(TREE + BASE.replace("problem_base_ignore: &base", "problem:"))
    assert found.arch is not None
    levels = {level.name: level for level in found.arch.levels}
    assert list(levels) == ["DRAM", "buffer", "Dummy", "spad"]
    assert levels["buffer"].capacity_bytes == 1024 * 8
    assert [level.instances for level in found.arch.levels] == [1, 1, 4, 12]
    assert levels["spad"].unit == "PE"
    # Elements are as wide as the machine's data.
    assert found.problem is not None
    assert {tensor.element_bytes for tensor in found.problem.tensors} == {2}
    assert "problem: elements of 2 bytes, by datawidth 16" in found.remarks


def test_loops_of_a_mesh_stand_at_the_storage_around_it() -> None:
    problem = BASE.replace("problem_base_ignore: &base", "problem:").replace(
        "{M: 1, N: 1, K: 1}", "{M: 12, N: 4, K: 6}"
    )
    mapping = """
mapping:
- {target: DRAM, type: temporal, factors: K=6, permutation: MNK}
- {target: buffer, type: spatial, factors: N=4, permutation: NMK}
- {target: Dummy, type: temporal, factors: M=4, permutation: NMK}
- {target: Dummy, type: spatial, factors: M=3, permutation: NMK}
"""
    found = from_timeloop(TREE + problem + mapping)
    assert str(found.schedule) == "K:6 N:4@Dummy_mesh M:12 M:3@PE"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("PE[0..11]", "PE[0..9]", "10 copies inside 4 others"),
        ("PE[0..11]", "PE[x]", r"a form like PE or PE\[0..15\] is needed"),
        ("smartbuffer_RF", "thing", "'spad': class 'thing' is not known"),
        ("    - name: chip", "    - {name: other}\n    - name: chip", "2 trees side by side"),
        (
            "    local:\n    - {name: DRAM",
            "    local: x\n    more:\n    - {name: DRAM",
            "'local' is",
        ),
    ],
)
def test_faults_of_trees_are_named(old: str, new: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        from_timeloop(TREE.replace(old, new, 1))


ONE = """
architecture:
  version: 0.4
  nodes:
  - !Component {name: Buffer, class: regfile, attributes: {depth: 64, width: 8, datawidth: 8}}
  - !Component {name: MACC, class: intmac}
"""


def test_machines_of_one_level_get_a_memory() -> None:
    found = from_timeloop(ONE)
    assert found.arch is not None
    assert [(level.name, level.capacity_bytes) for level in found.arch.levels] == [
        ("memory", None), ("Buffer", 64),
    ]  # fmt: skip
    assert any("a memory around it" in remark for remark in found.remarks)
    with pytest.raises(InputError, match="storage components with a size"):
        from_timeloop(ONE.replace("depth: 64, ", ""))


def test_levels_that_everything_passes_are_left_out() -> None:
    problem = BASE.replace("problem_base_ignore: &base", "problem:")
    mapping = "mapping:\n- {target: buffer, type: bypass, bypass: [A, B, C], keep: []}\n"
    found = from_timeloop(TREE + problem + mapping)
    assert found.arch is not None
    assert [level.name for level in found.arch.levels] == ["DRAM", "Dummy", "spad"]
    assert any("buffer holds nothing" in remark for remark in found.remarks)


def test_problems_are_written_as_workloads(tmp_path: Path) -> None:
    problem = tmp_path / "problem.yaml"
    problem.write_text(BASE.replace("problem_base_ignore: &base", "problem:"))
    words, out = ["import", "timeloop", str(problem), "--workload-out"], tmp_path / "mine.json"
    assert run([*words, str(out)]) == 0
    assert load_workload(out).problems == (read_timeloop([problem]).problem,)
    assert run([*words, str(tmp_path / "mine.yaml")]) == 3
    (tmp_path / "arch.yaml").write_text(ONE)
    assert run(["import", "timeloop", str(tmp_path / "arch.yaml"), "--workload-out", "a.json"]) == 3


def test_machines_are_written_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "arch.yaml").write_text(ONE)
    for name in ("one.json", "two.yaml"):
        out = tmp_path / name
        assert run(["import", "timeloop", str(tmp_path / "arch.yaml"), "--arch-out", str(out)]) == 0
        assert f"wrote {out}\n" in capsys.readouterr().err
    assert run(["import", "timeloop", str(tmp_path / "arch.yaml"), "--arch-out", "x.txt"]) == 3
    assert "ends in .yaml, .yml or .json" in capsys.readouterr().err
    assert json.loads((tmp_path / "one.json").read_text())["name"] == "one"
    one, two = (load_arch(tmp_path / name) for name in ("one.json", "two.yaml"))
    assert one.levels == two.levels
