"""Compiled search for tiles placed one by one: extents of all levels of nesting at once.

All numbers are exact 64-bit integers; callers check that they cannot overflow.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from loopsched.base.arrays import Ints
from loopsched.base.jit import jit, step
from loopsched.scheduler.kernels import (
    LARGEST,
    LARGEST_BOUND,
    TOTAL,
    TOTAL_BOUND,
    Buffer,
    Numbers,
    fits,
    on_axes,
    times_repeated,
)

WHOLE, ONE = -1, -2


class Forms(NamedTuple):
    """Forms, and the extents that each leaves to choose.

    Form ``s`` has ``n_variables[s]``: ``variables[s, v]`` is the dimension of v, and the
    variable of the same dimension further out that bounds it (-1: none), which comes before.
    ``cut_codes[s, t, d]`` and ``tile_codes[s, t, d]`` name the variable that says how d is cut
    for what t costs and holds, or ``WHOLE`` or ``ONE``.  ``extents[d]`` are those to choose from.
    """

    n_variables: Ints
    variables: Ints
    cut_codes: Ints
    tile_codes: Ints
    extents: Ints
    sizes: Ints


class Asked(NamedTuple):
    """What is looked for.

    With ``is_bound`` extents are taken that only bound what chains of cuts move; without
    ``is_even`` a chain of cuts that do not divide may move more than the inner cut alone.
    """

    is_bound: bool
    is_even: bool
    max_nodes: int


class Partial(NamedTuple):
    """A choice that is made in part: its largest extents that are possible, and its smallest.

    ``tile`` and ``needs`` are for the extents of one tensor's tile and the bytes of each;
    ``run`` says that none stays through a loop.
    """

    chosen: Ints
    loose: Ints
    tight: Ints
    tile: Ints
    needs: Ints
    run: Ints


@step
def _resolve(n: Numbers, codes: Ints, chosen: Ints, index: Ints) -> None:
    """Find the extents that codes stand for: uncut, one position, or a variable's."""
    for d in range(len(index)):
        code = codes[d]
        index[d] = chosen[code] if code >= 0 else 0 if code == WHOLE else n.n_extents[d] - 1


@step
def _moved(n: Numbers, codes: Ints, row: int, chosen: Ints, partial: Partial) -> int:
    """Bytes that all tensors move; ``codes[t, d]`` says how d is cut outside t's tile."""
    cost, index = 0, partial.tile
    for t in range(len(n.weight)):
        if n.weight[t]:
            _resolve(n, codes[t], chosen, index)
            repeats = times_repeated(n, index, t, partial.run)
            cost += n.weight[t] * repeats * on_axes(n, row, index, t, -1)
    return int(cost)


@step
def _has_room(n: Numbers, buffer: Buffer, codes: Ints, row: int, partial: Partial) -> bool:
    """Whether the smallest tiles that are possible fit."""
    for t in range(len(n.weight)):
        _resolve(n, codes[t], partial.tight, partial.tile)
        held = on_axes(n, row, partial.tile, t, -1)
        partial.needs[t] = buffer.copies * n.element_bytes[t] * held
    return fits(buffer, partial.needs)


@step
def _is_exact(forms: Forms, s: int, chosen: Ints, is_even: bool) -> bool:
    """Whether a dimension cut twice has the pieces of the inner cut alone."""
    for v in range(forms.n_variables[s]):
        d, outer = forms.variables[s, v, 0], forms.variables[s, v, 1]
        if outer < 0 or chosen[outer] == 0 or chosen[outer] == chosen[v]:
            continue
        size, e, f = forms.sizes[d], forms.extents[d, chosen[outer]], forms.extents[d, chosen[v]]
        if e % f == 0:
            continue
        rest = size % e
        many = size // e * -(-e // f) + -(-rest // f)
        if not is_even or many > -(-size // f):
            return False
    return True


@step
def _widen(
    n: Numbers, buffer: Buffer, codes: Ints, variables: Ints, k: int, partial: Partial
) -> None:
    """Find the largest extents after the first k that fit, each beside the smallest others."""
    for j in range(k, len(variables)):
        d, outer = variables[j, 0], variables[j, 1]
        low, high = 0, n.n_extents[d] - 1
        if outer >= 0:
            low = partial.loose[outer]
        while low < high:
            middle = (low + high) // 2
            partial.tight[j] = middle
            if _has_room(n, buffer, codes, LARGEST_BOUND, partial):
                high = middle
            else:
                low = middle + 1
        partial.tight[j] = n.n_extents[d] - 1
        partial.loose[j] = low


@jit
def best_places(
    n: Numbers, forms: Forms, buffer: Buffer, asked: Asked, incumbent: int, best_chosen: Ints
) -> tuple[int, int, int, int]:
    """Find the form and the extents that move the fewest bytes.

    Returns the bytes (``incumbent`` if none is better), form, nodes, and what was left
    out because of ``max_nodes`` moves at least (``incumbent`` if nothing was).
    """
    rows = np.zeros((3, forms.variables.shape[1]), dtype=np.int64)
    chosen, loose, tight = rows[0], rows[1], rows[2]
    index, needs = np.zeros_like(n.n_extents), np.zeros_like(n.weight)
    partial = Partial(chosen, loose, tight, index, needs, np.zeros_like(index))
    best_form, nodes, left_out = -1, 0, 2**62
    for s in range(len(forms.n_variables)):
        many = forms.n_variables[s]
        variables = forms.variables[s, :many]
        cuts, tiles = forms.cut_codes[s], forms.tile_codes[s]
        last = n.n_extents[variables[:, 0]] - 1
        loose[:] = 0
        tight[:many] = last
        if nodes >= asked.max_nodes:
            left_out = min(left_out, _moved(n, cuts, TOTAL_BOUND, loose, partial))
            continue
        chosen[0], k = -1, 0
        while k >= 0:
            is_leaf = k >= many - 1
            if many:
                chosen[k] += 1
                if chosen[k] > last[k] or nodes >= asked.max_nodes:
                    if chosen[k] <= last[k]:
                        # Further extents of this variable are smaller, and cost no less.
                        loose[k] = chosen[k]
                        left_out = min(left_out, _moved(n, cuts, TOTAL_BOUND, loose, partial))
                    loose[k], tight[k] = 0, last[k]
                    k -= 1
                    continue
                loose[k] = tight[k] = chosen[k]
            nodes += 1
            if _moved(n, cuts, TOTAL_BOUND, loose, partial) >= incumbent:
                if many:
                    loose[k], tight[k] = 0, last[k]
                k -= 1
                continue
            row = LARGEST if is_leaf and not asked.is_bound else LARGEST_BOUND
            if _has_room(n, buffer, tiles, row, partial):
                if not is_leaf:
                    _widen(n, buffer, tiles, variables, k + 1, partial)
                    bound = _moved(n, cuts, TOTAL_BOUND, loose, partial)
                    first = loose[k + 1]
                    loose[k + 1 :] = 0
                    if bound < incumbent:
                        k += 1
                        chosen[k] = first - 1
                    continue
                cost = _moved(n, cuts, TOTAL, chosen, partial)
                if cost < incumbent and (
                    asked.is_bound or _is_exact(forms, s, chosen, asked.is_even)
                ):
                    incumbent, best_form = cost, s
                    best_chosen[:many] = chosen[:many]
            if many == 0:
                break
    return incumbent, best_form, nodes, min(left_out, incumbent)
