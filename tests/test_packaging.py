"""What others package and cite says the same as the project itself."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import yaml

from loopsched import __version__

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_conda_recipe_needs_what_the_project_needs() -> None:
    recipe = yaml.safe_load((ROOT / "packaging/conda/meta.yaml").read_text(encoding="utf-8"))
    needed = {one.replace(" ", "") for one in recipe["requirements"]["run"]}
    assert needed == {*PROJECT["dependencies"], f"python{PROJECT['requires-python']}"}
    assert recipe["package"]["version"] == __version__
    assert recipe["about"]["license"] == PROJECT["license"]
    scripts = [f"{name} = {place}" for name, place in PROJECT["scripts"].items()]
    assert recipe["build"]["entry_points"] == scripts
    assert recipe["about"]["summary"] == PROJECT["description"]


def test_the_citation_is_of_this_version() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert (cited["version"], cited["license"]) == (__version__, PROJECT["license"])
    assert cited["keywords"] == PROJECT["keywords"]


def test_the_image_has_a_python_that_the_project_runs_on() -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    (version,) = re.findall(r"^FROM python:(\d+\.\d+)-slim$", text, re.MULTILINE)
    assert f"Programming Language :: Python :: {version}" in PROJECT["classifiers"]


def test_all_brings_every_extra_that_is_for_users() -> None:
    extras = PROJECT["optional-dependencies"]
    (every,) = re.findall(r"loopsched\[(.*)\]", extras["all"][0])
    assert set(every.split(",")) == set(extras) - {"all", "check", "docs", "test", "dev"}
    assert "pandas" in every


def test_the_picture_of_the_house_has_every_package() -> None:
    table = (ROOT / "docs/structure.md").read_text(encoding="utf-8")
    named = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
    drawn = re.findall(r"<text[^>]*>(\w+)</text>", (ROOT / "docs/images/house.svg").read_text())
    assert set(named) == set(drawn)
    # From the roof down, each floor from left to right.
    floors = {}
    for y, name in re.findall(r'<text[^>]* y="([\d.]+)"[^>]*>(\w+)</text>',
                              (ROOT / "docs/images/house.svg").read_text()):  # fmt: skip
        floors.setdefault(float(y), []).append(name)
    assert [name for y in sorted(floors, reverse=True) for name in floors[y]] == named
