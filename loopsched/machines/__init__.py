"""Machines: levels, units, the limits of GPUs, architecture files."""

from __future__ import annotations

from loopsched.machines.arch import Arch, buffer_arch
from loopsched.machines.levels import Compute, Level

__all__ = ["Arch", "Compute", "Level", "buffer_arch"]
