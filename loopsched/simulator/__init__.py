"""Simulators: replay the accesses of a schedule, literally, through caches.

What the models promise is held against what is counted here.  See
docs/simulation.md for what is counted, and how.
"""

from __future__ import annotations

from loopsched.simulator.distances import Distances, StackDistances
from loopsched.simulator.front import simulate, stack_distances
from loopsched.simulator.layout import Layout
from loopsched.simulator.result import LevelCounts, Simulation, TensorCounts
from loopsched.simulator.simulated import Cache, Caches

__all__ = [
    "Cache",
    "Caches",
    "Distances",
    "Layout",
    "LevelCounts",
    "Simulation",
    "StackDistances",
    "TensorCounts",
    "simulate",
    "stack_distances",
]
