"""The tables of keys: what the objects have, what the schema and the documentation say."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from loopsched import load_arch
from loopsched.machines import Compute, Level
from loopsched.machines.arch_file import arch_from_dict, arch_names
from loopsched.machines.arch_format import arch_schema, arch_to_dict
from loopsched.machines.cpu import CPU_KEYS, Cpu
from loopsched.machines.gpu_limits import GPU_KEYS, Gpu
from loopsched.machines.keys import Key, key_faults
from loopsched.machines.levels import COMPUTE_KEYS, LEVEL_KEYS

DOCS = Path(__file__).parents[1] / "docs" / "architectures.md"
TABLES = [
    pytest.param(Level, LEVEL_KEYS, "Keys of a level", id="level"),
    pytest.param(Compute, COMPUTE_KEYS, "Keys of `compute`", id="compute"),
    pytest.param(Gpu, GPU_KEYS, "The `gpu` part", id="gpu"),
    pytest.param(Cpu, CPU_KEYS, "The `cpu` part", id="cpu"),
]


@pytest.mark.parametrize(("kind", "keys", "_"), TABLES)
def test_every_field_has_one_key(kind: type, keys: tuple[Key, ...], _: str) -> None:
    stated = [entry.field for entry in keys if entry.field]
    assert sorted(stated) == sorted({each.name for each in fields(kind)} - {"sources"})
    assert len({entry.key for entry in keys}) == len(keys)
    for entry in keys:
        assert set(entry.along or ()) <= {each.key for each in keys}


@pytest.mark.parametrize(("_", "keys", "heading"), TABLES)
def test_the_documentation_has_every_key(_: type, keys: tuple[Key, ...], heading: str) -> None:
    section = DOCS.read_text().partition(f"## {heading}\n")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    documented = [word.strip(" `") for row in rows for word in row.split(",")]
    assert sorted(documented) == sorted(entry.key for entry in keys)


def test_the_schema_has_every_key() -> None:
    found = arch_schema()["properties"]
    for part, keys in (
        (found["levels"]["items"], LEVEL_KEYS),
        (found["compute"], COMPUTE_KEYS),
        (found["gpu"], GPU_KEYS),
        (found["cpu"], CPU_KEYS),
    ):
        assert list(part["properties"]) == [entry.key for entry in keys]
        assert part["required"] == [entry.key for entry in keys if entry.required]


@pytest.mark.parametrize("name", arch_names())
def test_shipped_machines_are_what_their_data_says(name: str) -> None:
    arch = load_arch(name)
    assert arch_from_dict(arch_to_dict(arch)) == arch
    parts = ((arch.levels, LEVEL_KEYS), ((arch.compute,), COMPUTE_KEYS))
    for part, keys in [(each, keys) for some, keys in parts for each in some]:
        assert list(key_faults(part, keys)) == []
