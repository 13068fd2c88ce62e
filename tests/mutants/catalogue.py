"""All mutants."""

from __future__ import annotations

from .curves import CURVES
from .exchange import EXCHANGE
from .files import FILES
from .fusion import FUSION
from .geometry import GEOMETRY
from .kernel_times import KERNEL_TIMES
from .library import LIBRARY
from .library_conv import LIBRARY_CONV
from .measuring import MEASURING
from .models import MODELS
from .mutant import Mutant
from .network import NETWORK
from .page import PAGE
from .page_model import PAGE_MODEL
from .plots import PLOTS
from .proofs import PROOFS
from .searching import SEARCHING
from .sweep import SWEEP
from .times import TIMES

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
)
