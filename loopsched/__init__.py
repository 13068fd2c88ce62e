"""Proven-best loop orders and tile sizes for loop nests of multiply-accumulates.

Names are imported on first use, so that ``import loopsched`` costs next to
nothing and loads no heavy library.

Examples
--------
>>> import loopsched
>>> loopsched.gemm(m=4, n=3, k=2).macs
24
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopsched.display import show_with as _show_with
from loopsched.version import __version__ as __version__

if TYPE_CHECKING:
    from loopsched.arch import Arch as Arch
    from loopsched.levels import Level as Level
    from loopsched.arch import buffer_arch as buffer_arch
    from loopsched.arch_file import arch_names as arch_names
    from loopsched.arch_file import load_arch as load_arch
    from loopsched.bounds.communication import CommunicationBound as CommunicationBound
    from loopsched.bounds.communication import communication_bound as communication_bound
    from loopsched.builders import affine as affine
    from loopsched.builders import batched_gemm as batched_gemm
    from loopsched.builders import conv2d as conv2d
    from loopsched.builders import einsum as einsum
    from loopsched.builders import gemm as gemm
    from loopsched.curves.curve import Curve as Curve
    from loopsched.curves.front import traffic_curve as traffic_curve
    from loopsched.curves.network import NetworkCurve as NetworkCurve
    from loopsched.curves.network import network_curve as network_curve
    from loopsched.curves.network import workload_curves as workload_curves
    from loopsched.errors import ArchError as ArchError
    from loopsched.errors import ConstraintError as ConstraintError
    from loopsched.errors import EmptySpaceError as EmptySpaceError
    from loopsched.errors import InputError as InputError
    from loopsched.errors import LoopschedError as LoopschedError
    from loopsched.errors import MissingExtraError as MissingExtraError
    from loopsched.errors import ProblemError as ProblemError
    from loopsched.errors import ProofError as ProofError
    from loopsched.errors import ScheduleError as ScheduleError
    from loopsched.errors import SweepError as SweepError
    from loopsched.errors import WorkloadError as WorkloadError
    from loopsched.exchange.c_code import to_c as to_c
    from loopsched.exchange.exported import Exported as Exported
    from loopsched.exchange.frames import to_pandas as to_pandas
    from loopsched.exchange.frames import to_polars as to_polars
    from loopsched.exchange.python_code import to_python as to_python
    from loopsched.exchange.tiles import to_triton as to_triton
    from loopsched.exchange.timeloop import Imported as Imported
    from loopsched.exchange.timeloop import from_timeloop as from_timeloop
    from loopsched.exchange.timeloop import read_timeloop as read_timeloop
    from loopsched.exchange.timeloop import to_timeloop as to_timeloop
    from loopsched.exchange.tvm_code import to_tvm as to_tvm
    from loopsched.exchange.zigzag import to_zigzag as to_zigzag
    from loopsched.fusion.cuts import fuse as fuse
    from loopsched.fusion.plan import FusedGroup as FusedGroup
    from loopsched.fusion.plan import FusionPlan as FusionPlan
    from loopsched.fusion.residents import Residency as Residency
    from loopsched.fusion.residents import residency as residency
    from loopsched.gpu.counting import Profile as Profile
    from loopsched.gpu.counting import profile as profile
    from loopsched.gpu.estimate import estimate_kernel as estimate_kernel
    from loopsched.gpu.estimate import estimate_steps as estimate_steps
    from loopsched.gpu.kernel import Kernel as Kernel
    from loopsched.gpu.library.conv import algorithm_flops as algorithm_flops
    from loopsched.gpu.library.conv import conv_estimate as conv_estimate
    from loopsched.gpu.library.estimates import library_estimate as library_estimate
    from loopsched.gpu.library.gemm import gemm_estimate as gemm_estimate
    from loopsched.gpu.library.tiled import tiled_conv as tiled_conv
    from loopsched.gpu.library.tiled import tiled_gemm as tiled_gemm
    from loopsched.gpu.occupancy import occupancy as occupancy
    from loopsched.gpu.presets import preset as preset
    from loopsched.gpu.presets import presets as presets
    from loopsched.gpu.result import Estimate as Estimate
    from loopsched.models.buffer import traffic as traffic
    from loopsched.models.yalsa import yalsa_bandwidth as yalsa_bandwidth
    from loopsched.nest import Loop as Loop
    from loopsched.nest import Place as Place
    from loopsched.nest import Schedule as Schedule
    from loopsched.network.graph import Network as Network
    from loopsched.network.node import Node as Node
    from loopsched.network.node import Value as Value
    from loopsched.network.onnx_file import load_onnx as load_onnx
    from loopsched.network.text import load_network as load_network
    from loopsched.network.text import load_workload as load_workload
    from loopsched.notation import format_schedule as format_schedule
    from loopsched.notation import parse_schedule as parse_schedule
    from loopsched.notation import render_loops as render_loops
    from loopsched.ops import bind_spatial as bind_spatial
    from loopsched.ops import interchange as interchange
    from loopsched.ops import reorder as reorder
    from loopsched.ops import split as split
    from loopsched.ops import tile as tile
    from loopsched.ops import unbind as unbind
    from loopsched.page.report import report_html as report_html
    from loopsched.plots.measured import plot_measured as plot_measured
    from loopsched.plots.roofline import plot_roofline as plot_roofline
    from loopsched.plots.ski_slope import plot_ski_slope as plot_ski_slope
    from loopsched.plots.tiles import plot_tiles as plot_tiles
    from loopsched.plots.tornado import plot_tornado as plot_tornado
    from loopsched.plots.tradeoffs import plot_pareto as plot_pareto
    from loopsched.plots.traffic import plot_bytes as plot_bytes
    from loopsched.problem import Axis as Axis
    from loopsched.problem import Problem as Problem
    from loopsched.problem import Tensor as Tensor
    from loopsched.reasons import compare as compare
    from loopsched.reasons import explain as explain
    from loopsched.reports import Reproduction as Reproduction
    from loopsched.reports import reproduce as reproduce
    from loopsched.scheduler import Result as Result
    from loopsched.scheduler import search as search
    from loopsched.scheduler import search_workload as search_workload
    from loopsched.scheduler import space_size as space_size
    from loopsched.scheduler.constraints import Constraints as Constraints
    from loopsched.scheduler.proof import proof_of as proof_of
    from loopsched.scheduler.tradeoffs import pareto as pareto
    from loopsched.score import Evaluation as Evaluation
    from loopsched.score import evaluate as evaluate
    from loopsched.simulator import Layout as Layout
    from loopsched.simulator import Simulation as Simulation
    from loopsched.simulator import StackDistances as StackDistances
    from loopsched.simulator import simulate as simulate
    from loopsched.simulator import stack_distances as stack_distances
    from loopsched.study.sensitivity import Sensitivity as Sensitivity
    from loopsched.study.sensitivity import sensitivity as sensitivity
    from loopsched.study.tile_map import TileMap as TileMap
    from loopsched.study.tile_map import tile_map as tile_map
    from loopsched.sweeps.run import SweepRun as SweepRun
    from loopsched.sweeps.run import load_run as load_run
    from loopsched.sweeps.run import sweep as sweep
    from loopsched.sweeps.schema import sweep_schema as sweep_schema
    from loopsched.validation.compare import Validation as Validation
    from loopsched.validation.compare import validate_counters as validate_counters
    from loopsched.validation.times import TimeValidation as TimeValidation
    from loopsched.validation.times import validate_times as validate_times
    from loopsched.verify import Verdict as Verdict
    from loopsched.verify import verify_proof as verify_proof
    from loopsched.verify import verify_proofs as verify_proofs
    from loopsched.workload import Workload as Workload
    from loopsched.workload import workload_names as workload_names


# Module, below `loopsched`, to the names that it gives; a test compares it with the list above.
_EXPORTS = {
    "arch": ("Arch", "buffer_arch"),
    "arch_file": ("arch_names", "load_arch"),
    "bounds.communication": ("CommunicationBound", "communication_bound"),
    "builders": ("affine", "batched_gemm", "conv2d", "einsum", "gemm"),
    "curves.curve": ("Curve",),
    "curves.front": ("traffic_curve",),
    "curves.network": ("NetworkCurve", "network_curve", "workload_curves"),
    "errors": (
        "ArchError",
        "ConstraintError",
        "EmptySpaceError",
        "InputError",
        "LoopschedError",
        "MissingExtraError",
        "ProblemError",
        "ProofError",
        "ScheduleError",
        "SweepError",
        "WorkloadError",
    ),
    "exchange.c_code": ("to_c",),
    "exchange.exported": ("Exported",),
    "exchange.frames": ("to_pandas", "to_polars"),
    "exchange.python_code": ("to_python",),
    "exchange.tiles": ("to_triton",),
    "exchange.timeloop": ("Imported", "from_timeloop", "read_timeloop", "to_timeloop"),
    "exchange.tvm_code": ("to_tvm",),
    "exchange.zigzag": ("to_zigzag",),
    "fusion.cuts": ("fuse",),
    "fusion.plan": ("FusedGroup", "FusionPlan"),
    "fusion.residents": ("Residency", "residency"),
    "gpu.counting": ("Profile", "profile"),
    "gpu.estimate": ("estimate_kernel", "estimate_steps"),
    "gpu.kernel": ("Kernel",),
    "gpu.library.conv": ("algorithm_flops", "conv_estimate"),
    "gpu.library.estimates": ("library_estimate",),
    "gpu.library.gemm": ("gemm_estimate",),
    "gpu.library.tiled": ("tiled_conv", "tiled_gemm"),
    "gpu.occupancy": ("occupancy",),
    "gpu.presets": ("preset", "presets"),
    "gpu.result": ("Estimate",),
    "levels": ("Level",),
    "models.buffer": ("traffic",),
    "models.yalsa": ("yalsa_bandwidth",),
    "nest": ("Loop", "Place", "Schedule"),
    "network.graph": ("Network",),
    "network.node": ("Node", "Value"),
    "network.onnx_file": ("load_onnx",),
    "network.text": ("load_network", "load_workload"),
    "notation": ("format_schedule", "parse_schedule", "render_loops"),
    "ops": ("bind_spatial", "interchange", "reorder", "split", "tile", "unbind"),
    "page.report": ("report_html",),
    "plots.measured": ("plot_measured",),
    "plots.roofline": ("plot_roofline",),
    "plots.ski_slope": ("plot_ski_slope",),
    "plots.tiles": ("plot_tiles",),
    "plots.tornado": ("plot_tornado",),
    "plots.tradeoffs": ("plot_pareto",),
    "plots.traffic": ("plot_bytes",),
    "problem": ("Axis", "Problem", "Tensor"),
    "reasons": ("compare", "explain"),
    "reports": ("Reproduction", "reproduce"),
    "scheduler": ("Result", "search", "search_workload", "space_size"),
    "scheduler.constraints": ("Constraints",),
    "scheduler.proof": ("proof_of",),
    "scheduler.tradeoffs": ("pareto",),
    "score": ("Evaluation", "evaluate"),
    "simulator": ("Layout", "Simulation", "StackDistances", "simulate", "stack_distances"),
    "study.sensitivity": ("Sensitivity", "sensitivity"),
    "study.tile_map": ("TileMap", "tile_map"),
    "sweeps.run": ("SweepRun", "load_run", "sweep"),
    "sweeps.schema": ("sweep_schema",),
    "validation.compare": ("Validation", "validate_counters"),
    "validation.times": ("TimeValidation", "validate_times"),
    "verify": ("Verdict", "verify_proof", "verify_proofs"),
    "workload": ("Workload", "workload_names"),
}
_HOMES = {name: module for module, names in _EXPORTS.items() for name in names}

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> object:
    """Import an exported name from its module the first time it is asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module 'loopsched' has no attribute '{name}'")
    from importlib import import_module

    value: object = getattr(import_module(f"loopsched.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def _html(value: object) -> str:
    from loopsched.notebook import to_html

    return to_html(value)


_show_with(_html)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
