"""Hypothesis profiles: `dev` is quick and random, `ci` is thorough and repeats itself."""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

from loopsched.models import score

settings.register_profile("dev", max_examples=50, deadline=None)
settings.register_profile(
    "ci",
    max_examples=100,
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ci" if os.environ.get("CI") else "dev")

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as where a shell started this with '&'
    signal.signal(signal.SIGINT, signal.default_int_handler)

score.LOADED_FROM = 2**62  # scores by the Python form; test_many.py compares the compiled one


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Examples run where a function is written, and not again where `loopsched` exports it."""
    front = "loopsched/__init__.py::loopsched."
    items[:] = [item for item in items if not item.nodeid.startswith(front)]
