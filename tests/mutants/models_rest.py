"""More mutants of models and curves: rooms, roles, cells, steps at once, sums of curves."""

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

_along = In("models/_along_kernels.py", "test_along.py")
_along.broken(
    "equal-to-a-limit-is-above",
    "what just fits is taken to be too much",
    "(limit - first) // slope + 1",
    "(limit - first) // slope",
)
_along.broken(
    "falling-ones-above",
    "of a falling sequence one too few is above a limit",
    "(first - limit - 1) // -slope + 1",
    "(first - limit - 1) // -slope",
)
_along.broken(
    "later-steps-of-the-wave-forgotten",
    "what the wave of the first use brought in after it is not between the uses",
    "runs, length, after[EACH], before[EACH] + left[EACH], here",
    "runs, length, after[EACH], before[EACH], here",
)
_along.broken(
    "own-piece-not-held",
    "other visits of the step that comes again are forgotten",
    "first = begun * after + piece * here +",
    "first = begun * after +",
)
_along.broken(
    "first-step-too-much",
    "at the first step, all that the wave touches is between the uses",
    "whole = wholes[3] if piece == length else wholes[0]",
    "whole = wholes[3] if piece == length else wholes[1]",
)
_along.broken(
    "last-step-too-much",
    "at the last step, all that the wave of the first use touched is between the uses",
    "+ piece * here + wholes[2] > limit",
    "+ piece * here + wholes[1] > limit",
)
_along.broken(
    "runs-meet-unseen",
    "a step and a shorter one after it are never too much together",
    "if r and runs[r - 1, 1]",
    "if r < 0 and runs[r - 1, 1]",
)
_along.broken(
    "touched-again-not-moved",
    "a visit stays the last to touch what a later one has touched",
    "own[before, visit.kind] -= elems * visit.width",
    "own[before, visit.kind] -= 0",
)
_along.broken(
    "wave-before-the-window-lost",
    "what was last touched just before the window is gone at every step",
    "low = state[WINDOW] * n_slots\n                sum_up",
    "low = (state[WINDOW] + 1) * n_slots\n                sum_up",
)
_along.broken(
    "longest-step-overlooked",
    "only a shorter step at the end must fit",
    "wave.touched[visit, WHOLE] + runs[0, 1]",
    "wave.touched[visit, WHOLE] + runs[-1, 1]",
)
_along.broken(
    "ends-of-waves-not-too-much",
    "what all steps touch is kept from one wave to the next, whatever comes between",
    "many = 1 if ends + only > limit else 0",
    "many = 0",
)
_along.broken(
    "later-waves-of-those-seen-forgotten",
    "what comes again is still what other waves were the last to touch",
    "before[kind] + total[kind] - again[end, kind]",
    "before[kind] + total[kind]",
)
_along.broken(
    "visits-of-a-step-held-alike",
    "visits of a step are too much together only if the next step is touched as well",
    "if runs[0, 1] * each + whole > least:",
    "if each < 0:",
)
_along.broken(
    "step-before-never-too-much",
    "what the step before touched is always still there",
    "if 2 * runs[0, 1] * each + whole > least:",
    "if each < 0:",
)
_along.broken(
    "between-steps-all-is-touched",
    "what visits between two uses do not touch is between them, from one step to the next",
    "held = whole - sum_of(tree, last, 0)",
    "held = whole",
)
_along.broken(
    "stolen-elements-move-on",
    "what was touched together moves on together, also what others have touched since",
    "wave.at_once[t, with_it - visit.base] = -1",
    "wave.at_once[t, with_it - visit.base] *= 1",
)
_along.broken(
    "pieces-move-on-whoever-works",
    "a piece is touched by the same instances again where some have ended",
    "wave.at_work[then] != wave.at_work[at]",
    "wave.at_work[then] < 0",
)
_along.broken(
    "ended-items-of-some-dimensions",
    "items that end before an offset are told apart by one dimension only",
    "found = found * wave.longest[dim] + passed[dim]",
    "found = passed[dim]",
)
_along.broken(
    "pieces-of-one-loop",
    "only the loop that goes on tells pieces of a tensor apart",
    "place += digits[i] * steps_to[t, i]",
    "place = digits[i] * steps_to[t, i]",
)
_along.broken(
    "moved-on-stays-the-last",
    "what moved on at once is still what the visit before was the last to touch",
    "past.own[before, visit.kind] -= counts[2] * visit.width",
    "past.own[before, visit.kind] -= 0",
)
_along.broken(
    "last-visit-by-itself",
    "from one step to the next, visits in which elements moved on do not count",
    "last = moved[firsts[at, 2], last_visits[firsts[at, 0]]] - base",
    "last = last_visits[firsts[at, 0]] - base",
)
_along.broken(
    "later-visits-at-once",
    "of the step of the second use, later visits come before it",
    "                    if stamp < base:\n                        amount",
    "                    if stamp < 0:\n                        amount",
)
_along.broken(
    "cuts-all-too-large-with-one",
    "no way to cut steps has visits that fit once one has not",
    "if n_fitting == 0:",
    "if n_fitting < past.fits.size:",
    "test_many_waves.py::test_schedules_that_differ_in_one_loop",
)
_along.broken(
    "short-items-go-on",
    "items that are shorter than others touch as much",
    "wave.asking[n, 2] = shorter_in(wave.lengths, pick, wave.longest)",
    "wave.asking[n, 2] = 0",
)
_steps = In("models/replay.py", "test_along.py")
_steps.broken(
    "steps-along-what-is-cut",
    "a dimension that other loops cut is taken for whole",
    "n_steps > most and not is_cut and all(",
    "n_steps > most and all(",
)
_steps.broken(
    "steps-along-what-slides",
    "windows slide along the steps",
    "not is_cut and all(axis.is_plain for axis in axes)",
    "not is_cut",
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
    mutant
    for file in (_traffic, _machine, _cells, _along, _steps, _network)
    for mutant in file.mutants
)
