"""Predictions held against hardware counters, bounds and estimates against measured times.

``validate_counters`` and ``validate_times`` are the ways in; ``docs/counters.md``
and ``docs/validation_times.md`` describe their files.
"""

from __future__ import annotations

from loopsched.validation.compare import Validation, validate_counters
from loopsched.validation.counter_files import read_counters
from loopsched.validation.time_files import read_times
from loopsched.validation.times import TimeValidation, validate_times

__all__ = [
    "TimeValidation", "Validation", "read_counters", "read_times", "validate_counters",
    "validate_times",
]  # fmt: skip
