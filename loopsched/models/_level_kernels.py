"""Compiled promises of many schedules: all levels of each, from the innermost outward."""

from __future__ import annotations

from loopsched.base.arrays import Ints
from loopsched.base.jit import jit, part
from loopsched.models._pool_kernels import look_ahead
from loopsched.models._promise_kernels import (
    ANEW,
    ASKED,
    BEHIND,
    BYTES,
    CAPACITY,
    COPIES,
    FIT,
    HAS_LANES,
    HELD,
    IS_PAD,
    KEEPS_HALO,
    LANE,
    LATE,
    N_COLD,
    N_CUTS,
    N_LEVELS,
    N_LOOPS,
    N_TENSORS,
    N_WAITING,
    NO_DIM,
    NOW,
    ONCE,
    OUTCOME,
    OUTPUT,
    OUTSIDE,
    OWN,
    OWNS,
    PARTS,
    PASSES,
    PROMISED,
    READ,
    READS,
    ROOM,
    TILES,
    TOO_LARGE,
    UNIT,
    UNKNOWN,
    VISITS,
    WAVES,
    WHOLE_BYTES,
    WIDTH,
    WRITES,
    WRITES_THROUGH,
    WRITTEN,
    _are_nested,
    _count_steps,
    _fit,
    _held,
    _is_aligned,
    _merge_lists,
    _most,
    _pass_on,
    _position,
    _promise,
    _read,
    _run,
    _see,
    _visits,
)
from loopsched.models._wave_kernels import _raise_waves, _run_on
from loopsched.models.asked import ALWAYS


@part
def _filter(w: Ints, fit: int, level: int, runs_on: bool) -> bool:
    """Raise what holds for a cache that sees all to what holds behind the levels inside.

    False where that is for Python to do.
    """
    is_filtered = min(w[NOW, TILES], w[NOW, LATE]) < ALWAYS
    for t in range(w[NOW, N_TENSORS]):
        is_filtered = is_filtered or w[ANEW, t] < ALWAYS
    if not is_filtered:
        return True
    is_known = fit >= 0 and _position(w, fit) <= w[NOW, TILES]
    if is_known:
        _promise(w, fit, True, level, BEHIND)
        if runs_on and not _raise_waves(w, level, BEHIND, True):
            return False
    for t in range(w[NOW, N_TENSORS]):
        if w[OWN, t] != PASSES:
            certain = w[ASKED, t]
            if is_known:
                certain = min(w[BEHIND, t], _most(w, t))
            w[VISITS, t] = max(w[VISITS, t], certain)
    return True


@part
def _one_level(w: Ints, level: int) -> int:
    """Find what a level moves; whether the closed form speaks of it, and it fits."""
    for t in range(w[NOW, N_TENSORS]):
        w[OWN, t] = w[OWNS + level, t]
    w[NOW, ROOM] = w[CAPACITY, level]
    _see(w, level)
    n_tensors, is_aligned = w[NOW, N_TENSORS], _is_aligned(w, level)
    fit = _fit(w, w[COPIES, level])
    w[NOW, OUTSIDE] = fit
    if w[IS_PAD, level]:
        if fit < 0:
            return TOO_LARGE
        for t in range(n_tensors):
            if w[OWN, t] != PASSES:
                _, stop, slide = _run(w, t, fit, 0)
                if slide >= 0 and w[KEEPS_HALO, level]:
                    return UNKNOWN
                w[VISITS, t] = _visits(w, t, stop, NO_DIM)
    else:
        runs_on = _run_on(w, fit, is_aligned)
        if level and runs_on:
            return UNKNOWN
        _promise(w, fit, False, level, VISITS)
        is_told = not runs_on or _raise_waves(w, level, VISITS, False)
        if is_told and level < w[NOW, N_LEVELS] - 1:
            is_told = _filter(w, fit, level, runs_on)
        if not is_told:
            _promise(w, fit, False, level, VISITS)
            if fit >= 0 and w[NOW, N_LEVELS] > 1:
                _promise(w, fit, True, level, BEHIND)
            return WAVES
    for t in range(n_tensors):
        if w[OWN, t] != PASSES:
            moved = w[VISITS, t] * w[WIDTH, t]
            w[READ, t] = moved - w[WHOLE_BYTES, t] if t == w[NOW, OUTPUT] else moved
            if not w[WRITES_THROUGH, level]:
                w[WRITTEN, t] = moved if t == w[NOW, OUTPUT] else 0
    if level:
        _pass_on(w, level, fit)
    return PROMISED


@part
def _tell(w: Ints, found: Ints, row: int, level: int) -> None:
    """Write down what fits a level, and what it moves of each tensor."""
    n_tensors = w[NOW, N_TENSORS]
    body = w[NOW, OUTSIDE] if w[NOW, OUTSIDE] >= 0 else w[NOW, N_CUTS]
    at = BYTES + w[NOW, N_LEVELS] + level * (PARTS + 2 * n_tensors)
    found[row, at + FIT], found[row, at + HELD] = _position(w, body), 0
    for t in range(n_tensors):
        if w[OWN, t] != PASSES:
            found[row, at + HELD] += _held(w, t, body)
        found[row, at + PARTS + 2 * t] = w[READ, t]
        found[row, at + PARTS + 2 * t + 1] = w[WRITTEN, t]


@part
def _all_levels(w: Ints, found: Ints, row: int) -> int:
    """Find what every level moves, from the innermost outward."""
    w[NOW, N_COLD] = w[NOW, N_WAITING] = 0
    w[NOW, LATE] = w[NOW, TILES] = ALWAYS
    for t in range(w[NOW, N_TENSORS]):
        w[READ, t], w[WRITTEN, t] = w[READS, t], w[WRITES, t]
        w[ASKED, t] = w[ANEW, t] = w[ONCE, t] = ALWAYS
    for level in range(w[NOW, N_LEVELS] - 1, -1, -1):
        outcome = _one_level(w, level)
        if outcome != PROMISED:
            return outcome
        found[row, BYTES + level] = 0
        for t in range(w[NOW, N_TENSORS]):
            found[row, BYTES + level] += w[READ, t] + w[WRITTEN, t]
        if found.shape[1] > BYTES + w[NOW, N_LEVELS]:
            _tell(w, found, row, level)
    return PROMISED


@jit
def promise_all(w: Ints, loops: Ints, ends: Ints, found: Ints) -> None:
    """Find what schedules promise: for each a row of ``found``; ``ends[i]`` ends its loops."""
    begin = 0
    for i in range(len(ends)):
        found[i, OUTCOME] = UNKNOWN
        if _read(w, loops, begin, ends[i]) and _are_nested(w):
            _merge_lists(w)
            look_ahead(w, loops, ends, i)
            found[i, HAS_LANES] = 0
            for at in range(w[NOW, N_LOOPS]):
                if w[UNIT, at] >= 0 and w[UNIT, at] == w[NOW, LANE]:
                    found[i, HAS_LANES] = 1
            if _count_steps(w, found, i):
                found[i, OUTCOME] = _all_levels(w, found, i)
        begin = ends[i]
