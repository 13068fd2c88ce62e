"""Plugin for runs of mutants: repeatable examples, and how the first test failed.

Examples are the same each time, and those that fail are not shrunk.
"""

from __future__ import annotations

import doctest
import json
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

settings.register_profile(
    "mutants",
    max_examples=100,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)


def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    report = os.environ.get("LOOPSCHED_MUTANT_REPORT")
    if report is None or call.excinfo is None or call.excinfo.errisinstance(pytest.skip.Exception):
        return
    told = AssertionError, pytest.fail.Exception, doctest.DocTestFailure
    is_assertion = call.excinfo.errisinstance(told)
    found = {"test": item.nodeid, "is_assertion": is_assertion, "error": call.excinfo.typename}
    Path(report).write_text(json.dumps(found), encoding="utf-8")
