"""More mutants of models and curves: rooms, roles, cells, sums of curves."""

from __future__ import annotations

from .mutant import In

_traffic = In("models/traffic.py", "test_reuse.py")
_traffic.broken(
    "bracket-point-is-low",
    "the middle of two brackets is the sum of low and middle",
    "Bracket(self.low + other.low, self.point + other.point, self.high + other.high)",
    "Bracket(self.low + other.low, self.low + other.point, self.high + other.high)",
    ">>> Bracket",
)
_traffic.broken(
    "rooms-undivided",
    "buffers of single tensors are not divided",
    "own = tuple((name, size // n) for name, size in self.own_bytes)",
    "own = self.own_bytes",
    ">>> Room.divided",
)
_traffic.broken(
    "rooms-own-overflow",
    "a tensor may take more than its own buffer",
    "if any(need > own[name] for name, need in needs.items() if name in own):",
    "if any(need > 2 * own[name] for name, need in needs.items() if name in own):",
    "test_reuse.py",
    "test_machine.py",
    "test_placement.py",
    "test_exact.py",
)
_traffic.broken(
    "rooms-others-do-not-pass",
    "tensors that a bound leaves out share the room",
    "return Room(self.shared_bytes, own, self.passing | others)",
    "return Room(self.shared_bytes, own, self.passing)",
    ">>> Room.only",
)

_machine = In("models/machine.py", "test_machine.py", "test_score.py")
_machine.broken(
    "units-all-in-all",
    "units inside others are counted all in all",
    "        found[unit] = count // around\n",
    "        found[unit] = count\n",
    "test_nested_units.py",
)
_machine.broken(
    "roles-by-name-of-gradients",
    "a tensor that is called output is written",
    '    if tensor.name == problem.output:\n        return "output"',
    '    if tensor.name == "output":\n        return "output"',
    "test_machine.py",
    "test_score.py",
    "test_arch.py",
)
_machine.broken(
    "roles-second-is-input",
    "every operand but the last counts as an input",
    'tensor.name != "input" and tensor.name in read[1:]',
    'tensor.name != "input" and tensor.name in read[-1:]',
    "test_machine.py",
    "test_score.py",
    "test_page_model.py",
)
_machine.broken(
    "rate-of-the-narrowest",
    "the rate is that of the narrowest input",
    "width = max(tensor.element_bytes for tensor in inputs or problem.tensors)",
    "width = min(tensor.element_bytes for tensor in inputs or problem.tensors)",
    "test_score.py",
    "test_machine.py",
    "test_compute.py",
)

_cells = In("models/cells.py", "test_replay.py")
_cells.broken(
    "cells-padding-touched",
    "positions before what is stored are in cells",
    "is_stored = (place >= 0) & (place < axis.size)",
    "is_stored = place < axis.size",
)

_network = In("curves/network.py", "test_curve.py")
_network.broken(
    "network-curve-from-the-least",
    "a network's curve begins where its smallest layer can run",
    "begin = max(curve.least_capacity_bytes for curve in curves)",
    "begin = min(curve.least_capacity_bytes for curve in curves)",
)
_network.broken(
    "network-layers-once",
    "layers that occur often count once",
    "return sum((n * of(curve) for curve, n in pairs), start=0)",
    "return sum((of(curve) for curve, n in pairs), start=0)",
)
_network.broken(
    "network-bound-is-compulsory",
    "bounds of a network do not rise where capacity falls",
    "lambda curve: curve.bound_bytes(capacity_bytes))",
    "lambda curve: curve.compulsory_bytes)",
)

MODELS_REST = tuple(
    mutant for file in (_traffic, _machine, _cells, _network) for mutant in file.mutants
)
