"""Architecture files: the shipped ones, the documented example, and bad ones."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from loopsched.base.errors import ArchError
from loopsched.base.resources import resource_dir
from loopsched.machines.arch import Arch, buffer_arch
from loopsched.machines.arch_file import (
    arch_from_dict,
    arch_names,
    arch_schema,
    arch_to_dict,
    load_arch,
)
from loopsched.machines.levels import DATA_TYPES

SHIPPED = arch_names()
GOOD = """\
name: good
levels:
  - name: DRAM
    kind: memory
    bandwidth: 100 GB/s
  - name: L2
    kind: cache
    capacity: 1 MiB
    bandwidth: {value: 64 B/cycle, source: "x"}
  - name: L1
    kind: scratchpad
    instances: 4
    unit: SM
    capacity: 64 KiB
compute:
  unit: SM
  units: 4
  clock: 1 GHz
  max_clock: 1.5 GHz
  macs: {fp32: 64 MAC/cycle}
"""


def changed(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new, 1)


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "x.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


# The shipped files


@pytest.mark.parametrize("name", DATA_TYPES)
def test_every_data_type_may_have_a_rate(name: str, tmp_path: Path) -> None:
    assert load_arch(write(tmp_path, changed("fp32:", f"{name}:"))).compute.rate(name) == 64


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_files_are_complete(name: str) -> None:
    arch = load_arch(name)
    assert arch.name == name
    assert arch.title
    assert arch_from_dict(arch_to_dict(arch)) == arch
    assert arch_from_dict(json.loads(json.dumps(arch_to_dict(arch)))).digest == arch.digest
    assert buffer_arch(capacity_bytes=1024) == arch_from_dict(
        arch_to_dict(buffer_arch(capacity_bytes=1024))
    )


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_number_has_a_source(name: str) -> None:
    data = yaml.safe_load((resource_dir("archs") / f"{name}.yaml").read_text())
    bare: list[str] = []

    def walk(place: str, value: Any) -> None:
        if isinstance(value, dict) and "value" in value:
            source = value.get("source", "")
            if len(source) < 15:
                bare.append(place)
        elif isinstance(value, dict):
            for key, part in value.items():
                walk(f"{place}.{key}", part)
        elif isinstance(value, list):
            for index, part in enumerate(value):
                walk(f"{place}[{index}]", part)
        elif not isinstance(value, bool) and re.match(r"[0-9]", str(value)):
            bare.append(place)

    walk("", {key: part for key, part in data.items() if key not in ("title", "notes")})
    assert bare == []


@cache
def schema() -> jsonschema.Draft202012Validator:
    """The schema, itself checked once."""
    jsonschema.Draft202012Validator.check_schema(arch_schema())
    return jsonschema.Draft202012Validator(arch_schema())


@pytest.mark.parametrize("name", SHIPPED)
def test_schema_accepts_the_shipped_files(name: str) -> None:
    schema().validate(arch_to_dict(load_arch(name)))
    schema().validate(yaml.safe_load((resource_dir("archs") / f"{name}.yaml").read_text()))


def test_schema_refuses_what_the_reader_refuses() -> None:
    for old, new in (("1 MiB", "1 KB"), ("kind: cache", "kind: cash"), ("units: 4", "units: 0")):
        with pytest.raises(jsonschema.ValidationError):
            schema().validate(yaml.safe_load(changed(old, new)))
    for change in (
        lambda data: data.update(levels=data["levels"][:1]),
        lambda data: data["levels"][0].update(capacities="1 B"),
        lambda data: data["gpu"].update(dram_efficiency=1.5),
        lambda data: data["compute"].pop("units"),
    ):
        data = arch_to_dict(load_arch("titan_v"))
        schema().validate(data)
        change(data)
        with pytest.raises(ArchError):
            arch_from_dict(data)
        with pytest.raises(jsonschema.ValidationError):
            schema().validate(data)


def test_what_is_switched_off_is_written() -> None:
    arch = load_arch("diannao")
    off = replace(arch.caches[0], halo_reuse=False)
    arch = replace(arch, levels=(arch.memory, off, *arch.caches[1:]))
    assert arch_from_dict(arch_to_dict(arch)).caches[0] == off


def test_titan_v() -> None:
    arch = load_arch("titan_v")
    memory_bytes_per_s = 850e6 * 2 * 3072 / 8  # report 000, Figure 6
    assert arch.level("L2").bandwidth_bytes_per_s == memory_bytes_per_s == 652.8e9
    assert arch.level("L2").capacity_bytes == 4_718_592
    l1 = arch.level("L1")
    assert (l1.capacity_bytes, l1.instances, l1.unit) == (98_304, 80, "SM")
    assert (l1.write_policy, l1.accumulate) == ("through", "registers")
    assert l1.bandwidth_bytes_per_s == 1536 * 1.2e9
    assert l1.bound_bandwidth_bytes_per_s == pytest.approx(1536 * 1.455e9, rel=1e-15)
    assert (arch.compute.clock_hz, arch.compute.max_clock_hz) == (1.2e9, 1.455e9)
    assert arch.compute.rate("fp32") * arch.compute.units == 5120
    assert arch.constant("dram_tlb_miss_latency") == 1029
    assert arch.kernel_limits.l2_latency == 193


def test_report_003() -> None:
    arch = load_arch("titan_v_report_003")
    assert arch.constant("throughput") == 18_700_000_000_000
    assert arch.constant("memory_bandwidth") == 630 * 2**30
    assert arch.constant("iterations_per_cycle") == 5120
    assert arch.constant("frequency") == 1.46e9
    assert arch.constant("cache_size") == arch.level("L2").capacity_bytes == 4_718_592
    assert arch.level("L2").bandwidth_bytes_per_s == 630 * 2**30
    assert 2 * arch.compute.peak_macs_per_s("fp32") == 18.7e12


def test_diannao() -> None:
    buffers = load_arch("diannao").level("buffers")
    assert dict(buffers.tensor_capacity_bytes) == {"weight": 32768, "input": 2048, "output": 2048}
    assert buffers.capacity_bytes == 36864
    assert buffers.bandwidth_bytes_per_s == 200 * 2**30
    assert load_arch("diannao").constant("iterations_per_cycle") == 256


@pytest.mark.parametrize(
    ("name", "tera_flop_per_s"), [("v100", 14.2966), ("titan_xp", 11.3645), ("m40", 4.9335)]
)
def test_no_measured_gemm_is_above_the_peak(name: str, tera_flop_per_s: float) -> None:
    """The best fp32 GEMM of DeepBench's published training times on each card."""
    assert 2 * load_arch(name).compute.peak_macs_per_s("fp32") / 1e12 > tera_flop_per_s


def test_h200_partitions() -> None:
    l2 = load_arch("h200").level("L2")
    assert (l2.capacity_bytes, l2.usable_bytes) == (60 * 2**20, 35 * 2**20)


# The documented example


def test_documented_example() -> None:
    page = (Path(__file__).parent.parent / "docs" / "architectures.md").read_text()
    example = re.search(r"```yaml\n(.*?)```", page, re.DOTALL)
    assert example is not None
    arch = arch_from_dict(yaml.safe_load(example[1]), "docs")
    schema().validate(yaml.safe_load(example[1]))
    assert arch.level("L2").bandwidth_bytes_per_s == 25.6e9
    assert arch.level("L1").bandwidth_bytes_per_s == 128e9
    assert arch.level("L1").bound_bandwidth_bytes_per_s == pytest.approx(153.6e9)
    assert arch.level("L1").double_buffered
    assert dict(arch.level("L2").sources) == {"bandwidth": "Data sheet, page 1"}
    for call in re.findall(r"arch\.scaled\(\"([\w.]+)\", ([\d.]+)\)", page):
        assert arch.scaled(call[0], float(call[1])) != arch


# Reading


def test_files_in_other_clothes(tmp_path: Path) -> None:
    arch = load_arch(write(tmp_path, GOOD))
    assert load_arch(write(tmp_path, "\ufeff" + GOOD)) == arch
    assert load_arch(write(tmp_path, GOOD.replace("\n", "\r\n"))) == arch
    path = tmp_path / "x.json"
    path.write_text(json.dumps(yaml.safe_load(GOOD)))
    assert load_arch(str(path)) == arch
    assert arch.level("L1").bandwidth_bytes_per_s == 64e9
    assert arch.level("L1").peak_bandwidth_bytes_per_s == 96e9


def test_inside_may_repeat_the_order(tmp_path: Path) -> None:
    text = changed("kind: cache", "kind: cache\n    inside: DRAM")
    assert load_arch(write(tmp_path, text)).digest == load_arch(write(tmp_path, GOOD)).digest


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"\x80\x81\x00", r"is not UTF-8 text: byte 0 is 0x80"),
        (b"PK\x03\x04\x00\x00", "is not YAML"),
        ("", "is empty"),
        ("# nothing\n", "is empty"),
        ("- a\n- b\n", "must be a mapping"),
        ("just text", "must be a mapping"),
        ("{}", "is empty"),
        ("a: [1, 2\nb: 3", "is not YAML: line"),
        (GOOD[:100], "is missing"),
        (GOOD + "---\nname: second\n", "a second document begins"),
        (GOOD + "name: again\n", "key 'name' appears twice"),
        ("a: &x [1]\nb: *x\n", "anchor '&x' is not allowed"),
        ("a: &x [1]\nb: [*x, *x]\n", r"alias '\*x' is not allowed"),
        ("name: !!python/object/apply:os.system [ls]\n", "tag .* is not allowed"),
        ("? [a, b]\n: 1\n", "a key must be a word"),
        ("[" * 5000, "line 1: nests more than 20 levels"),
        ("{a: " * 3000, "nests more than"),
        (
            changed("levels:", "level:"),
            "levels: is missing; a list, outermost level first, is needed",
        ),
        (changed("levels:", "level:"), "unknown key 'level'; did you mean 'levels'"),
        (changed("capacity: 1", "capacty: 1"), r"levels\[1\].*'capacty'; did you mean 'capacity'"),
        (changed("1 MiB", "1 MB/s"), r"levels\[1\]\.capacity: '1 MB/s': unknown unit"),
        (changed("1 MiB", "1048576"), r"levels\[1\]\.capacity: '1048576' has no unit"),
        (changed("1 MiB", "1 KB"), "write kB or KiB"),
        (changed("1 MiB", "0 MiB"), "above zero"),
        (changed("1 MiB", "-1 MiB"), "above zero"),
        (changed("1 MiB", ".nan"), "not a number"),
        (changed("1 MiB", ".inf"), "not a number"),
        (changed("1 MiB", "[1, MiB]"), "has no unit; write text such as"),
        (changed("1 MiB", "{value: 1 MiB, sorce: x}"), "did you mean 'source'"),
        (changed("1 MiB", "{source: x}"), r"levels\[1\]\.capacity: is missing"),
        (changed("1 MiB", "{value: 1 MiB, source: [x]}"), r"capacity\.source: must be text"),
        (changed("1 MiB", "32 KiB"), r"'L1' \(64 KiB\) is larger than 'L2' \(32 KiB\) around"),
        (changed("1 MiB", "9999999 TiB"), "more than 2"),
        (changed("    capacity: 1 MiB\n", ""), "a cache needs a capacity"),
        (changed("100 GB/s", "100 GHz"), r"levels\[0\]\.bandwidth: '100 GHz': unknown unit"),
        (changed("    bandwidth: 100 GB/s\n", ""), "'DRAM' needs a bandwidth toward 'L2'"),
        (
            changed("64 KiB", "64 KiB\n    bandwidth: 1 GB/s"),
            r"levels\[2\]\.bandwidth: leave it out",
        ),
        (changed("name: L2", "name: DRAM"), "the name 'DRAM' is taken"),
        (changed("name: L2", "name: [L2]"), r"levels\[1\]\.name: must be text"),
        (changed("name: L2", "name:"), r"levels\[1\]\.name: is missing"),
        (changed("kind: cache", "kind: memory"), "the outermost level, and only that"),
        (changed("kind: cache", "kind: cash"), r"levels\[1\]\.kind: unknown 'cash'; did you mean"),
        (changed("kind: cache", "inside: L1\n    kind: cache"), "closes a cycle"),
        (changed("kind: cache", "inside: L2\n    kind: cache"), "'L2' inside 'L2' closes a cycle"),
        (changed("kind: scr", "inside: DRAM\n    kind: scr"), "must be 'L2', the level before it"),
        (changed("kind: cache", "inside: L9\n    kind: cache"), "unknown level 'L9'"),
        (changed("instances: 4", "instances: four"), r"whole number >= 1, not 'four'"),
        (changed("instances: 4", "instances: 4.5"), "whole number >= 1, not '4.5'"),
        (changed("instances: 4", "instances: 0"), "whole number >= 1, not 0"),
        (changed("instances: 4", "instances: " + "9" * 5000), "whole number >= 1"),
        (changed("instances: 4", "instances: 3"), "levels have 3 instances of that unit"),
        (changed("    unit: SM\n", ""), "needs 'unit'"),
        (changed("unit: SM", "unit: S-M"), "must be a word"),
        (changed("kind: cache", "kind: cache\n    holds: A"), "must be a list of names"),
        (changed("kind: cache", "kind: cache\n    halo_reuse: 2"), "true or false, not '2'"),
        (changed("kind: cache", "kind: cache\n    write_policy: trough"), "mean 'through'"),
        (changed("kind: cache", "kind: cache\n    tensor_capacity: 4 B"), "must be a mapping"),
        (changed("clock: 1 GHz", "clock: 2 GHz"), "max_clock .* is below clock"),
        (changed("  clock: 1 GHz\n", ""), r"compute\.clock: is missing"),
        (changed("  units: 4\n", ""), r"compute\.units: is missing; a whole number >= 1 is needed"),
        (changed("fp32:", "fp33:"), "macs: unknown 'fp33'; did you mean 'fp32'"),
        (changed("64 MAC/cycle", "64 FLOP/s"), r"compute\.macs\.fp32: '64 FLOP/s': unknown unit"),
        (changed("{fp32: 64 MAC/cycle}", "64"), r"compute\.macs: must be a mapping"),
        (GOOD[: GOOD.index("compute:")], "compute: is missing"),
        (GOOD + "constants: {x: 5 apples}\n", r"constants\.x: '5 apples': unknown unit 'apples'"),
        (GOOD + "constants: [1]\n", "constants: must be a mapping"),
        (
            re.sub(r"levels:.*?compute", "levels: []\ncompute", GOOD, flags=re.DOTALL),
            "must be a list",
        ),
        (changed("name: good\n", ""), "name: is missing"),
    ],
)
def test_malformed_files(tmp_path: Path, text: str | bytes, message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ArchError, match=message) as caught:
        load_arch(path)
    assert str(caught.value).startswith(str(path))
    assert len(str(caught.value)) < 3000


def test_all_faults_of_a_file_come_at_once(tmp_path: Path) -> None:
    text = changed("1 MiB", "1 KB").replace("100 GB/s", "-1 GB/s").replace("fp32: 64", "fp32: x")
    with pytest.raises(ArchError, match="3 errors") as caught:
        load_arch(write(tmp_path, text))
    assert [problem.split(":")[0] for problem in caught.value.problems] == [
        "compute.macs.fp32",
        "levels[0].bandwidth",
        "levels[1].capacity",
    ]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("titan_vv", "no architecture 'titan_vv'; did you mean 'titan_v'"),
        ("missing.yaml", "missing.yaml: no such file"),
        ("a\0b.yaml", "cannot be read|no such file"),
        ("no/such", "no/such: no such file"),
        ("", "a name or a path"),
        (None, "a name or a path"),
        (7, "a name or a path"),
    ],
)
def test_wrong_names(name: str, message: str) -> None:
    with pytest.raises(ArchError, match=message):
        load_arch(name)


def test_a_folder_and_a_large_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ArchError, match="is a folder"):
        load_arch(tmp_path)
    with pytest.raises(ArchError, match="larger than"):
        load_arch(write(tmp_path, "#" * (2**20 + 1)))


@pytest.mark.parametrize("data", [None, 3, [], {1: 2}, {"name": {}}, "x", float("nan")])
def test_wrong_data(data: object) -> None:
    with pytest.raises(ArchError, match="architecture"):
        arch_from_dict(data)


# Fuzzing: only ArchError ever

_JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["1 MiB", "100 GB/s", "64 MAC/cycle", "cache", "SM", "1 GHz", "DRAM"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=6,
)


def _spots(data: Any) -> list[tuple[Any, Any]]:
    keys: list[Any] = list(data) if isinstance(data, dict) else list(range(len(data)))
    found = [(data, key) for key in keys]
    for key in keys:
        if isinstance(data[key], (dict, list)):
            found += _spots(data[key])
    return found


def only_arch_errors(make: Callable[[], Arch]) -> None:
    try:
        arch = make()
    except ArchError:
        return
    assert arch_from_dict(arch_to_dict(arch)) == arch
    assert all(math.isfinite(level.bandwidth_bytes_per_s or 0) for level in arch.levels)


@given(st.data())
def test_junk_anywhere_in_a_good_file(data: st.DataObject) -> None:
    content = yaml.safe_load(GOOD)
    for _ in range(data.draw(st.integers(1, 3))):
        holder, key = data.draw(st.sampled_from(_spots(content)))
        if data.draw(st.booleans()):
            holder[key] = data.draw(_JUNK)
        elif isinstance(holder, dict):
            holder[data.draw(st.text(max_size=8))] = holder.pop(key)
    only_arch_errors(lambda: arch_from_dict(content))


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


@given(st.data())
def test_bytes_changed_in_a_good_file(scratch: Path, data: st.DataObject) -> None:
    raw = bytearray(GOOD.encode())
    for _ in range(data.draw(st.integers(1, 6))):
        start = data.draw(st.integers(0, len(raw)))
        stop = data.draw(st.integers(start, min(len(raw), start + 20)))
        raw[start:stop] = data.draw(
            st.binary(max_size=5) | st.sampled_from([b"&a ", b"*a", b"[", b": "])
        )
    only_arch_errors(lambda: load_arch(write(scratch, bytes(raw))))


@given(st.binary(max_size=200) | st.text(max_size=200))
def test_any_file(scratch: Path, raw: bytes | str) -> None:
    try:
        content = raw if isinstance(raw, bytes) else raw.encode()
    except UnicodeEncodeError:
        return
    only_arch_errors(lambda: load_arch(write(scratch, content)))
