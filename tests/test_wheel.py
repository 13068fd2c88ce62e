"""What users get: the built wheel, in an empty environment, in an empty folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

pytestmark = pytest.mark.project


def call(*command: str | Path, cwd: Path, **settings: str) -> str:
    # The environment's own settings for Python must not leak into the empty one.
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "COV_"))}
    run = subprocess.run(
        [str(word) for word in command], cwd=cwd, env=environment | settings,
        capture_output=True, text=True,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    call(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, ROOT, cwd=folder)
    (built,) = folder.glob("loopsched-*.whl")
    return built


def test_wheel_holds_every_shipped_file_and_nothing_else(wheel: Path) -> None:
    inside = set(zipfile.ZipFile(wheel).namelist())
    for kind in ("archs", "counters", "measurements", "spaces", "workloads"):
        files = (path for path in (ROOT / kind).rglob("*") if path.is_file())
        shipped = {f"loopsched/data/{path.relative_to(ROOT).as_posix()}" for path in files}
        assert shipped
        assert shipped <= inside
    page = ROOT / "loopsched" / "show" / "page"
    shown = (path for path in page.rglob("*") if path.suffix in (".html", ".css", ".js"))
    assert {path.relative_to(ROOT).as_posix() for path in shown} <= inside
    assert {"loopsched/show/page/page.html", "loopsched/show/page/ui/main.js"} <= inside
    assert {
        "loopsched/py.typed",
        "loopsched/__init__.pyi",
        "loopsched/gpu/library/calibration.json",
    } <= inside
    assert any(name.endswith("/LICENSE") for name in inside)
    tops = {name.partition("/")[0] for name in inside}
    assert tops == {"loopsched", *(top for top in tops if top.endswith(".dist-info"))}


def test_wheel_searches_by_name_in_an_empty_folder(wheel: Path, tmp_path: Path) -> None:
    environment, empty = tmp_path / "venv", tmp_path / "empty"
    empty.mkdir()
    venv.create(environment, with_pip=True)
    scripts = environment / "bin"
    call(scripts / "python", "-m", "pip", "install", "-q", wheel, cwd=empty)
    call(scripts / "python", "-c", "import numba", cwd=empty)
    command = ["search", "alexnet", "--arch", "titan_v", "--format", "jsonl"]
    rows = call(scripts / "loopsched", *command, cwd=empty, LOOPSCHED_JIT="0").splitlines()
    assert len(rows) == 8
    assert all(json.loads(row)["proven"] for row in rows)
    assert not list(empty.iterdir())
