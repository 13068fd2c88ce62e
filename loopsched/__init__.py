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

from loopsched.base.display import show_with as _show_with
from loopsched.base.version import __version__ as __version__

if TYPE_CHECKING:
    from loopsched.base.errors import ArchError as ArchError
    from loopsched.base.errors import CapacityError as CapacityError
    from loopsched.base.errors import ConstraintError as ConstraintError
    from loopsched.base.errors import EmptySpaceError as EmptySpaceError
    from loopsched.base.errors import InputError as InputError
    from loopsched.base.errors import LoopschedError as LoopschedError
    from loopsched.base.errors import MissingExtraError as MissingExtraError
    from loopsched.base.errors import ProblemError as ProblemError
    from loopsched.base.errors import ProofError as ProofError
    from loopsched.base.errors import ScheduleError as ScheduleError
    from loopsched.base.errors import SweepError as SweepError
    from loopsched.base.errors import WorkloadError as WorkloadError
    from loopsched.bounds.communication import CommunicationBound as CommunicationBound
    from loopsched.bounds.communication import communication_bound as communication_bound
    from loopsched.curves.curve import Curve as Curve
    from loopsched.curves.front import traffic_curve as traffic_curve
    from loopsched.curves.network import NetworkCurve as NetworkCurve
    from loopsched.curves.network import network_curve as network_curve
    from loopsched.curves.network import workload_curves as workload_curves
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
    from loopsched.gpu.result import Estimate as Estimate
    from loopsched.machines.arch import Arch as Arch
    from loopsched.machines.arch import buffer_arch as buffer_arch
    from loopsched.machines.arch_file import arch_names as arch_names
    from loopsched.machines.arch_file import load_arch as load_arch
    from loopsched.machines.levels import Level as Level
    from loopsched.models.buffer import traffic as traffic
    from loopsched.models.many import Figures as Figures
    from loopsched.models.many import evaluate_many as evaluate_many
    from loopsched.models.reasons import compare as compare
    from loopsched.models.reasons import explain as explain
    from loopsched.models.score import Evaluation as Evaluation
    from loopsched.models.score import evaluate as evaluate
    from loopsched.nests.nest import Loop as Loop
    from loopsched.nests.nest import Place as Place
    from loopsched.nests.nest import Schedule as Schedule
    from loopsched.nests.notation import format_schedule as format_schedule
    from loopsched.nests.notation import parse_schedule as parse_schedule
    from loopsched.nests.notation import render_loops as render_loops
    from loopsched.nests.ops import bind_spatial as bind_spatial
    from loopsched.nests.ops import interchange as interchange
    from loopsched.nests.ops import reorder as reorder
    from loopsched.nests.ops import split as split
    from loopsched.nests.ops import tile as tile
    from loopsched.nests.ops import unbind as unbind
    from loopsched.network.graph import Network as Network
    from loopsched.network.node import Node as Node
    from loopsched.network.node import Value as Value
    from loopsched.network.onnx_file import load_onnx as load_onnx
    from loopsched.network.text import load_network as load_network
    from loopsched.network.text import load_workload as load_workload
    from loopsched.problems.builders import affine as affine
    from loopsched.problems.builders import batched_gemm as batched_gemm
    from loopsched.problems.builders import conv2d as conv2d
    from loopsched.problems.builders import einsum as einsum
    from loopsched.problems.builders import gemm as gemm
    from loopsched.problems.problem import Axis as Axis
    from loopsched.problems.problem import Problem as Problem
    from loopsched.problems.problem import Tensor as Tensor
    from loopsched.problems.workload import Workload as Workload
    from loopsched.problems.workload import workload_names as workload_names
    from loopsched.published import Reproduction as Reproduction
    from loopsched.published import reproduce as reproduce
    from loopsched.published.presets import preset as preset
    from loopsched.published.presets import presets as presets
    from loopsched.published.yalsa import yalsa_bandwidth as yalsa_bandwidth
    from loopsched.scheduler import Result as Result
    from loopsched.scheduler import search as search
    from loopsched.scheduler import search_workload as search_workload
    from loopsched.scheduler import space_size as space_size
    from loopsched.scheduler.constraints import Constraints as Constraints
    from loopsched.scheduler.proof import proof_of as proof_of
    from loopsched.scheduler.tradeoffs import pareto as pareto
    from loopsched.show.page.report import report_html as report_html
    from loopsched.show.plots.measured import plot_measured as plot_measured
    from loopsched.show.plots.roofline import plot_roofline as plot_roofline
    from loopsched.show.plots.ski_slope import plot_ski_slope as plot_ski_slope
    from loopsched.show.plots.tiles import plot_tiles as plot_tiles
    from loopsched.show.plots.tornado import plot_tornado as plot_tornado
    from loopsched.show.plots.tradeoffs import plot_pareto as plot_pareto
    from loopsched.show.plots.traffic import plot_bytes as plot_bytes
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


# Module, below `loopsched`, to the names that it gives; a test compares it with the list above.
_EXPORTS = {
    "machines.arch": ("Arch", "buffer_arch"),
    "machines.arch_file": ("arch_names", "load_arch"),
    "bounds.communication": ("CommunicationBound", "communication_bound"),
    "problems.builders": ("affine", "batched_gemm", "conv2d", "einsum", "gemm"),
    "curves.curve": ("Curve",),
    "curves.front": ("traffic_curve",),
    "curves.network": ("NetworkCurve", "network_curve", "workload_curves"),
    "base.errors": (
        "ArchError",
        "CapacityError",
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
    "published.presets": ("preset", "presets"),
    "gpu.result": ("Estimate",),
    "machines.levels": ("Level",),
    "models.buffer": ("traffic",),
    "published.yalsa": ("yalsa_bandwidth",),
    "nests.nest": ("Loop", "Place", "Schedule"),
    "network.graph": ("Network",),
    "network.node": ("Node", "Value"),
    "network.onnx_file": ("load_onnx",),
    "network.text": ("load_network", "load_workload"),
    "nests.notation": ("format_schedule", "parse_schedule", "render_loops"),
    "nests.ops": ("bind_spatial", "interchange", "reorder", "split", "tile", "unbind"),
    "show.page.report": ("report_html",),
    "show.plots.measured": ("plot_measured",),
    "show.plots.roofline": ("plot_roofline",),
    "show.plots.ski_slope": ("plot_ski_slope",),
    "show.plots.tiles": ("plot_tiles",),
    "show.plots.tornado": ("plot_tornado",),
    "show.plots.tradeoffs": ("plot_pareto",),
    "show.plots.traffic": ("plot_bytes",),
    "problems.problem": ("Axis", "Problem", "Tensor"),
    "models.many": ("Figures", "evaluate_many"),
    "models.reasons": ("compare", "explain"),
    "published": ("Reproduction", "reproduce"),
    "scheduler": ("Result", "search", "search_workload", "space_size"),
    "scheduler.constraints": ("Constraints",),
    "scheduler.proof": ("proof_of",),
    "scheduler.tradeoffs": ("pareto",),
    "models.score": ("Evaluation", "evaluate"),
    "simulator": ("Layout", "Simulation", "StackDistances", "simulate", "stack_distances"),
    "study.sensitivity": ("Sensitivity", "sensitivity"),
    "study.tile_map": ("TileMap", "tile_map"),
    "sweeps.run": ("SweepRun", "load_run", "sweep"),
    "sweeps.schema": ("sweep_schema",),
    "validation.compare": ("Validation", "validate_counters"),
    "validation.times": ("TimeValidation", "validate_times"),
    "verify": ("Verdict", "verify_proof", "verify_proofs"),
    "problems.workload": ("Workload", "workload_names"),
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
    from loopsched.show.notebook import to_html

    return to_html(value)


_show_with(_html)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
