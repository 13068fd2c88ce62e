"""Predictions held against hardware counters.

``validate_counters`` is the way in; ``docs/counters.md`` describes files of
counters and how to collect them.
"""

from __future__ import annotations

from loopsched.validation.compare import Validation, validate_counters
from loopsched.validation.counter_files import read_counters, shipped_counters

__all__ = ["Validation", "read_counters", "shipped_counters", "validate_counters"]
