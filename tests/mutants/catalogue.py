"""All mutants."""

from __future__ import annotations

from .geometry import GEOMETRY
from .library import LIBRARY
from .measuring import MEASURING
from .models import MODELS
from .mutant import Mutant
from .searching import SEARCHING
from .times import TIMES

MUTANTS: tuple[Mutant, ...] = (*GEOMETRY, *MODELS, *SEARCHING, *MEASURING, *TIMES, *LIBRARY)
