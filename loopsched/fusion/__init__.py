"""Layers that run together: fused by tiles, or passing tensors on that stay on chip."""

from __future__ import annotations

from loopsched.fusion.chains import Break, Chain, Link
from loopsched.fusion.cuts import fuse
from loopsched.fusion.plan import FusedGroup, FusionPlan
from loopsched.fusion.residents import PassedTensor, Residency, ResidentLayer, residency
from loopsched.fusion.stages import Pool
from loopsched.fusion.text import render_group

__all__ = [
    "Break", "Chain", "FusedGroup", "FusionPlan", "Link", "PassedTensor", "Pool", "Residency",
    "ResidentLayer", "fuse", "render_group", "residency",
]  # fmt: skip
