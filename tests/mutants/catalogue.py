"""All mutants."""

from __future__ import annotations

from .geometry import GEOMETRY
from .measuring import MEASURING
from .models import MODELS
from .mutant import Mutant
from .searching import SEARCHING

MUTANTS: tuple[Mutant, ...] = (*GEOMETRY, *MODELS, *SEARCHING, *MEASURING)
