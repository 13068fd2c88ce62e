"""Mutants of sweeps: what they are to do, runs, clusters."""

from __future__ import annotations

from .mutant import In

_run = In("sweeps/run.py", "test_sweep.py")
_run.broken(
    "sweep-failures-unsaid",
    "failures are passed over",
    "        if failures:\n            raise",
    "        if failures and jobs > 99:\n            raise",
    "::test_a_search_that_fails_by_a_bug_of_ours_is_told_and_the_others_kept",
)
_spec = In("sweeps/spec.py", "test_sweep.py")
_spec.broken(
    "spec-names-twice",
    "two machines may have one name",
    '            if names.count(name) > 1:\n                check.fault(f"{kind}',
    '            if names.count(name) > 2:\n                check.fault(f"{kind}',
    "::test_one_fault",
)
_spec.broken(
    "spec-order-is-fix",
    "bounds and orders change places",
    '            fix=lists["fix"],\n',
    '            fix=lists["order"],\n',
    "::test_all_faults_of_a_file_at_once",
)
_spec.broken(
    "spec-unknown-field",
    "an unknown field is passed over",
    '        if key not in fields:\n            check.fault(f"{head}unknown',
    '        if not isinstance(key, str):\n            check.fault(f"{head}unknown',
    "::test_all_faults_of_a_file_at_once",
)
_spec.broken(
    "spec-any-top",
    "any number of schedules is kept",
    '"top": (1, 1000)',
    '"top": (-9, 10**9)',
    "::test_all_faults_of_a_file_at_once",
)
_spec.broken(
    "spec-missing-list",
    "a sweep without workloads is no fault",
    "    if found is None:\n        check.fault",
    '    if found is None and name == "archs":\n        check.fault',
    "::test_all_faults_of_a_file_at_once",
)

SWEEPS = (
    *_run.mutants,
    *_spec.mutants,
)
