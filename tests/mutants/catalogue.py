"""All mutants."""

from __future__ import annotations

from .base import BASE
from .calibration import CALIBRATION
from .choice import CHOICE
from .cli import CLI
from .curve import CURVE
from .curves import CURVES
from .exchange import EXCHANGE
from .files import FILES
from .fusion import FUSION
from .geometry import GEOMETRY
from .gpu import GPU
from .kernel_times import KERNEL_TIMES
from .library import LIBRARY
from .library_conv import LIBRARY_CONV
from .machines import MACHINES
from .measuring import MEASURING
from .models import MODELS
from .mutant import Mutant
from .nests import NESTS
from .network import NETWORK
from .onnx import ONNX
from .page import PAGE
from .page_model import PAGE_MODEL
from .places import PLACES
from .plans import PLANS
from .plots import PLOTS
from .problems import PROBLEMS
from .proofs import PROOFS
from .published import PUBLISHED
from .remaining import REMAINING
from .scheduler import SCHEDULER
from .searching import SEARCHING
from .show import SHOW
from .simulator import SIMULATOR
from .sweep import SWEEP
from .sweeps import SWEEPS
from .times import TIMES
from .tools import TOOLS
from .validation import VALIDATION

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
    *PLANS,
    *CURVE,
    *TOOLS,
    *PUBLISHED,
    *SWEEPS,
    *VALIDATION,
    *SHOW,
    *CLI,
    *CHOICE,
    *CALIBRATION,
    *REMAINING,
)
