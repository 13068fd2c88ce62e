"""Spaces of kernels measured on a GPU, as the benchmarks keep them."""

from __future__ import annotations

import csv
from pathlib import Path

from loopsched.base.files import read_text
from loopsched.machines.arch import Arch
from loopsched.validation.choices import ChoiceValidation, validate_choices

_FOLDER = Path(__file__).parent.parent / "benchmarks/gpu"


def measured_rows(name: str) -> list[dict[str, str]]:
    """Read the rows of a packed file that name a configuration."""
    rows = csv.DictReader(read_text(_FOLDER / name).splitlines())
    return [row for row in rows if row["block_m"] != "library"]


def validated(name: str, arch: Arch, folder: Path) -> ChoiceValidation:
    """Hold choices against the lower of both times of a packed file, unpacked into ``folder``."""
    file = folder / "measured.csv"
    rows = list(csv.DictReader(read_text(_FOLDER / name).splitlines()))
    with file.open("w", encoding="utf-8", newline="") as unpacked:
        writer = csv.DictWriter(unpacked, list(rows[0]))
        writer.writeheader()
        for row in rows:
            again = row.get("again_us") or row["time_us"]
            writer.writerow(row | {"time_us": min(row["time_us"], again, key=float)})
    return validate_choices(file, arch)
