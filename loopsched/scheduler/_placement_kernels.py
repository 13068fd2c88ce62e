"""Compiled search for tiles placed one by one: extents of all levels of nesting at once.

All numbers are exact 64-bit integers; callers check that they cannot overflow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from loopsched.base.jit import jit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

WHOLE, ONE = -1, -2


@jit
def _at(code: int, dim: int, chosen: Ints, n_extents: Ints) -> int:
    """Number of the extent that a code stands for: uncut, one position, or a variable's."""
    if code == -1:
        return 0
    if code == -2:
        return int(n_extents[dim] - 1)
    return int(chosen[code])


@jit
def _moved(
    codes: Ints,
    chosen: Ints,
    n_extents: Ints,
    pieces: Ints,
    axis_dims: Ints,
    axis_stride: Ints,
    axis_start: Ints,
    total: Ints,
    tensor_axes: Ints,
    is_indexed: Ints,
    weight: Ints,
) -> int:
    """Bytes that all tensors move; ``codes[t, d]`` says how d is cut outside t's tile."""
    cost = 0
    for t in range(len(weight)):
        product = weight[t]
        if product == 0:
            continue
        for d in range(pieces.shape[0]):
            if is_indexed[t, d] == 0:
                product *= pieces[d, _at(codes[t, d], d, chosen, n_extents)]
        for a in range(tensor_axes[t], tensor_axes[t + 1]):
            d1, d2 = axis_dims[a, 0], axis_dims[a, 1]
            at = axis_start[a] + _at(codes[t, d1], d1, chosen, n_extents) * axis_stride[a]
            if d2 >= 0:
                at += _at(codes[t, d2], d2, chosen, n_extents)
            product *= total[at]
        cost += product
    return int(cost)


@jit
def _fits(
    codes: Ints,
    chosen: Ints,
    n_extents: Ints,
    axis_dims: Ints,
    axis_stride: Ints,
    axis_start: Ints,
    largest: Ints,
    tensor_axes: Ints,
    tile_bytes: Ints,
    capacity: int,
    own: Ints,
) -> bool:
    """Whether the tiles fit; ``own[t]`` is -1 where t shares, -2 where it passes."""
    shared = 0
    for t in range(len(own)):
        if own[t] == -2:
            continue
        need = tile_bytes[t]
        for a in range(tensor_axes[t], tensor_axes[t + 1]):
            d1, d2 = axis_dims[a, 0], axis_dims[a, 1]
            at = axis_start[a] + _at(codes[t, d1], d1, chosen, n_extents) * axis_stride[a]
            if d2 >= 0:
                at += _at(codes[t, d2], d2, chosen, n_extents)
            need *= largest[at]
        if own[t] >= 0:
            if need > own[t]:
                return False
        else:
            shared += need
    return bool(shared <= capacity)


@jit
def _is_exact(
    variables: Ints, n: int, chosen: Ints, extents: Ints, sizes: Ints, is_even: bool
) -> bool:
    """Whether a dimension cut twice has the pieces of the inner cut alone."""
    for v in range(n):
        outer = variables[v, 1]
        if outer < 0 or chosen[outer] == 0 or chosen[outer] == chosen[v]:
            continue
        d = variables[v, 0]
        e, f = extents[d, chosen[outer]], extents[d, chosen[v]]
        if e % f == 0:
            continue
        rest = sizes[d] % e
        many = sizes[d] // e * -(-e // f) + -(-rest // f)
        if not is_even or many > -(-sizes[d] // f):
            return False
    return True


@jit
def best_places(
    n_variables: Ints,
    variables: Ints,
    cut_codes: Ints,
    tile_codes: Ints,
    extents: Ints,
    sizes: Ints,
    n_extents: Ints,
    pieces: Ints,
    axis_dims: Ints,
    axis_stride: Ints,
    axis_start: Ints,
    total: Ints,
    total_bound: Ints,
    largest: Ints,
    largest_bound: Ints,
    tensor_axes: Ints,
    is_indexed: Ints,
    weight: Ints,
    tile_bytes: Ints,
    capacity: int,
    own: Ints,
    is_bound: bool,
    is_even: bool,
    incumbent: int,
    max_nodes: int,
    best_chosen: Ints,
) -> tuple[int, int, int, int]:
    """Find the form and the extents that move the fewest bytes.

    Form ``s`` has ``n_variables[s]`` extents to choose: ``variables[s, v]`` is the
    dimension of v, and the variable of the same dimension further out that bounds
    it (-1: none), which comes before.  ``cut_codes[s, t, d]`` and
    ``tile_codes[s, t, d]`` name the variable that says how d is cut for what t
    costs and holds, or ``WHOLE`` or ``ONE``.  With ``is_bound`` extents are taken
    that only bound what chains of cuts move.  Returns the bytes (``incumbent`` if
    none is better), form, nodes, and what was left out because of ``max_nodes``
    moves at least (``incumbent`` if nothing was).
    """
    most = variables.shape[1]
    chosen = np.zeros(most, dtype=np.int64)
    loose = np.zeros(most, dtype=np.int64)
    tight = np.zeros(most, dtype=np.int64)
    best_form, nodes, left_out = -1, 0, 2**62
    for s in range(len(n_variables)):
        n = n_variables[s]
        for v in range(n):
            loose[v] = 0
            tight[v] = n_extents[variables[s, v, 0]] - 1
        if nodes >= max_nodes:
            least = _moved(
                cut_codes[s], loose, n_extents, pieces, axis_dims, axis_stride, axis_start,
                total_bound, tensor_axes, is_indexed, weight,
            )  # fmt: skip
            left_out = min(left_out, least)
            continue
        k = 0
        if n:
            chosen[0] = -1
        while k >= 0:
            is_leaf = k >= n - 1
            if n:
                chosen[k] += 1
                d = variables[s, k, 0]
                if chosen[k] >= n_extents[d] or nodes >= max_nodes:
                    if chosen[k] < n_extents[d]:
                        # Further extents of this variable are smaller, and cost no less.
                        loose[k] = chosen[k]
                        least = _moved(
                            cut_codes[s], loose, n_extents, pieces, axis_dims, axis_stride,
                            axis_start, total_bound, tensor_axes, is_indexed, weight,
                        )  # fmt: skip
                        left_out = min(left_out, least)
                    loose[k] = 0
                    tight[k] = n_extents[d] - 1
                    k -= 1
                    continue
                loose[k] = chosen[k]
                tight[k] = chosen[k]
            nodes += 1
            bound = _moved(
                cut_codes[s], loose, n_extents, pieces, axis_dims, axis_stride, axis_start,
                total_bound, tensor_axes, is_indexed, weight,
            )  # fmt: skip
            if bound >= incumbent:
                if n:
                    loose[k] = 0
                    tight[k] = n_extents[d] - 1
                k -= 1
                continue
            fits = _fits(
                tile_codes[s], tight, n_extents, axis_dims, axis_stride, axis_start,
                largest if is_leaf and not is_bound else largest_bound, tensor_axes, tile_bytes,
                capacity, own,
            )  # fmt: skip
            if not fits:
                if n == 0:
                    break
                continue
            if not is_leaf:
                # The largest extents of the rest that fit, each beside the smallest others.
                for j in range(k + 1, n):
                    e = variables[s, j, 0]
                    outer = variables[s, j, 1]
                    low, high = 0, n_extents[e] - 1
                    if outer >= 0:
                        low = loose[outer]
                    while low < high:
                        middle = (low + high) // 2
                        tight[j] = middle
                        if _fits(
                            tile_codes[s], tight, n_extents, axis_dims, axis_stride, axis_start,
                            largest_bound, tensor_axes, tile_bytes, capacity, own,
                        ):  # fmt: skip
                            high = middle
                        else:
                            low = middle + 1
                    tight[j] = n_extents[e] - 1
                    loose[j] = low
                bound = _moved(
                    cut_codes[s], loose, n_extents, pieces, axis_dims, axis_stride, axis_start,
                    total_bound, tensor_axes, is_indexed, weight,
                )  # fmt: skip
                first = loose[k + 1]
                for j in range(k + 1, n):
                    loose[j] = 0
                if bound < incumbent:
                    k += 1
                    chosen[k] = first - 1
                continue
            cost = _moved(
                cut_codes[s], chosen, n_extents, pieces, axis_dims, axis_stride, axis_start,
                total, tensor_axes, is_indexed, weight,
            )  # fmt: skip
            if cost < incumbent and (
                is_bound or _is_exact(variables[s], n, chosen, extents, sizes, is_even)
            ):
                incumbent = cost
                best_form = s
                best_chosen[:n] = chosen[:n]
            if n == 0:
                break
    return incumbent, best_form, nodes, min(left_out, incumbent)
