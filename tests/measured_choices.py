"""Spaces of kernels measured on a GPU, as the benchmarks keep them."""

from __future__ import annotations

import gzip
from pathlib import Path

from loopsched.machines.arch import Arch
from loopsched.validation.choices import ChoiceValidation, validate_choices

_FOLDER = Path(__file__).parent.parent / "benchmarks/gpu"


def validated(name: str, arch: Arch, folder: Path) -> ChoiceValidation:
    """Hold choices against a packed file; ``folder`` takes it unpacked."""
    file = folder / "measured.csv"
    file.write_bytes(gzip.decompress((_FOLDER / name).read_bytes()))
    return validate_choices(file, arch)
