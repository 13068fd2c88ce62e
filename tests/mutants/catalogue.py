"""All mutants."""

from __future__ import annotations

from .base import BASE
from .bounds_rest import BOUNDS_REST
from .calibration import CALIBRATION
from .choice import CHOICE
from .choice_written import CHOICE_WRITTEN
from .cli import CLI
from .cli_rest import CLI_REST
from .curve import CURVE
from .curves import CURVES
from .edges import EDGES
from .exchange import EXCHANGE
from .exchange_rest import EXCHANGE_REST
from .files import FILES
from .fusion import FUSION
from .fusion_rest import FUSION_REST
from .geometry import GEOMETRY
from .gpu import GPU
from .gpu_rest import GPU_REST
from .kernel_times import KERNEL_TIMES
from .kernels_cpu import KERNELS_CPU
from .library import LIBRARY
from .library_conv import LIBRARY_CONV
from .library_rest import LIBRARY_REST
from .machines import MACHINES
from .measuring import MEASURING
from .models import MODELS
from .models_rest import MODELS_REST
from .mutant import Mutant
from .nests import NESTS
from .network import NETWORK
from .network_rest import NETWORK_REST
from .onnx import ONNX
from .page import PAGE
from .page_model import PAGE_MODEL
from .page_rest import PAGE_REST
from .places import PLACES
from .plans import PLANS
from .plots import PLOTS
from .plots_rest import PLOTS_REST
from .problems import PROBLEMS
from .proofs import PROOFS
from .published import PUBLISHED
from .remaining import REMAINING
from .scheduler import SCHEDULER
from .searching import SEARCHING
from .show import SHOW
from .simulator import SIMULATOR
from .simulator_rest import SIMULATOR_REST
from .studies_rest import STUDIES_REST
from .sweep import SWEEP
from .sweeps import SWEEPS
from .sweeps_rest import SWEEPS_REST
from .tables_rest import TABLES_REST
from .times import TIMES
from .tools import TOOLS
from .validation import VALIDATION
from .validation_rest import VALIDATION_REST
from .written import WRITTEN
from .written_rest import WRITTEN_REST

MUTANTS: tuple[Mutant, ...] = (
    *GEOMETRY,
    *MODELS,
    *SEARCHING,
    *PROOFS,
    *MEASURING,
    *TIMES,
    *LIBRARY,
    *LIBRARY_CONV,
    *KERNEL_TIMES,
    *PAGE_MODEL,
    *PAGE,
    *SWEEP,
    *PLOTS,
    *FUSION,
    *NETWORK,
    *CURVES,
    *EXCHANGE,
    *FILES,
    *BASE,
    *MACHINES,
    *PROBLEMS,
    *NESTS,
    *PLACES,
    *SCHEDULER,
    *SIMULATOR,
    *GPU,
    *ONNX,
    *KERNELS_CPU,
    *PLANS,
    *CURVE,
    *TOOLS,
    *PUBLISHED,
    *SWEEPS,
    *VALIDATION,
    *SHOW,
    *CLI,
    *CHOICE,
    *CHOICE_WRITTEN,
    *CALIBRATION,
    *REMAINING,
    *BOUNDS_REST,
    *CLI_REST,
    *GPU_REST,
    *NETWORK_REST,
    *PAGE_REST,
    *VALIDATION_REST,
    *FUSION_REST,
    *TABLES_REST,
    *SIMULATOR_REST,
    *LIBRARY_REST,
    *EXCHANGE_REST,
    *SWEEPS_REST,
    *PLOTS_REST,
    *MODELS_REST,
    *STUDIES_REST,
    *WRITTEN,
    *WRITTEN_REST,
    *EDGES,
)
