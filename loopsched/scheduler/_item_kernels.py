"""The compiled enumeration behind `loopsched.scheduler.items`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from loopsched.base.arrays import Floats, Ints
from loopsched.base.jit import jit, step
from loopsched.scheduler.kernels import moved


class Sums(NamedTuple):
    """What items move, as `loopsched.scheduler.tables.Tables` has it."""

    pieces: Ints
    axis_dims: Ints
    axis_stride: Ints
    axis_start: Ints
    total: Ints
    tensor_axes: Ints
    is_indexed: Ints
    weight: Ints
    constant: int


class Cuts(NamedTuple):
    """The ways to cut the dimensions that are split.

    Option ``o`` of dimension d makes lists of ``lists[d, o]``: how many full
    lists, items in each, extent of an item, items in the rest's list (0: no
    rest), extent of an item there.  Its numbers are at ``table_at[d, o]``.
    """

    sizes: Ints
    split: Ints
    n_options: Ints
    table_at: Ints
    lists: Ints
    reduction: int
    macs: int


class Speed(NamedTuple):
    """How fast a machine works; see `loopsched.scheduler.items.Pace`."""

    instances: int
    rate: float
    inner_bandwidth: float
    floor_s: float


class Kept(NamedTuple):
    """Leaves that are kept, and what it takes to go on.

    ``state``: depth (-1: done), number of leaves kept, option of each split dimension.
    ``waste`` is a product for each depth.
    """

    leaves: Ints
    leaf_s: Floats
    state: Ints
    waste: Floats


@step
def with_lists(cuts: Cuts, k: int, option: int, many: Ints, parts: Ints) -> None:
    """Put each combination of lists together with those of one more dimension.

    Combinations at depth k: ``many[k]`` of them, from ``1 << k`` on in ``parts``: their
    items, and the steps of one wave over all such lists.
    """
    lists = cuts.lists[cuts.split[k], option]
    at = 2 << k
    for part in range(1 << k, (1 << k) + many[k]):
        items, steps = parts[part, 0], parts[part, 1]
        parts[at, 0], parts[at, 1] = items * lists[1], steps * lists[0] * lists[2]
        at += 1
        if lists[3]:
            parts[at, 0], parts[at, 1] = items * lists[3], steps * lists[4]
            at += 1
    many[k + 1] = at - (2 << k)


@step
def n_steps(instances: int, first: int, many: int, parts: Ints, most: float) -> int:
    """Count the steps of all lists, each in waves of its own; or of some, if more than ``most``."""
    steps = 0
    for part in range(first, first + many):
        steps += -(-parts[part, 0] // instances) * parts[part, 1]
        if steps > most:
            break
    return steps


@step
def own_axes(sums: Sums) -> tuple[Ints, Ints, Ints]:
    """Find what each tensor's axes are that no cut changes, the others, and their ends."""
    fixed = np.ones(len(sums.weight), dtype=np.int64)
    axes = np.zeros(len(sums.axis_start), dtype=np.int64)
    ends = np.zeros(len(sums.weight), dtype=np.int64)
    found = 0
    for t in range(len(sums.weight)):
        for a in range(sums.tensor_axes[t], sums.tensor_axes[t + 1]):
            first = sums.axis_start[a]
            end = sums.axis_start[a + 1] if a + 1 < len(sums.axis_start) else len(sums.total)
            if (sums.total[first:end] == sums.total[first]).all():
                fixed[t] *= sums.total[first]
            else:
                axes[found] = a
                found += 1
        ends[t] = found
    return fixed, axes, ends


@step
def bytes_moved(sums: Sums, index: Ints, times: Ints, fixed: Ints, axes: Ints, ends: Ints) -> int:
    """Count the bytes that items need to get in; each tensor's are repeated so many times."""
    found, first = -sums.constant, 0
    for t in range(len(sums.weight)):
        elems = fixed[t]
        for k in range(first, ends[t]):
            a = axes[k]
            d2 = sums.axis_dims[a, 1]
            at = sums.axis_start[a] + index[sums.axis_dims[a, 0]] * sums.axis_stride[a]
            elems *= sums.total[at + (index[d2] if d2 >= 0 else 0)]
        found += moved(sums.weight[t], times[t], elems)
        first = ends[t]
    return found


@step
def repeat(sums: Sums, d: int, index: Ints, before: Ints, after: Ints) -> None:
    """Say how often each tensor is brought in once one more dimension is cut."""
    for t in range(len(before)):
        after[t] = before[t] * (sums.pieces[d, index[d]] if sums.is_indexed[t, d] == 0 else 1)


@step
def takes_next(cuts: Cuts, k: int, option: Ints, index: Ints, waste: Floats) -> bool:
    """Cut a dimension the next way; return whether there is one."""
    d = cuts.split[k]
    option[k] += 1
    if option[k] >= cuts.n_options[d]:
        option[k] = -1
        index[d] = 0
        return False
    index[d] = cuts.table_at[d, option[k]]
    now = cuts.lists[d, option[k]]
    charged = now[0] * now[1] * now[2] + now[3] * now[4]
    waste[k + 1] = waste[k] * (charged / cuts.sizes[d])
    return True


@step
def keep(kept: Kept, n_kept: int, option: Ints, score: float) -> int:
    """Keep a leaf, if there is room; return how many there are."""
    if n_kept < kept.leaves.shape[0]:
        n_split = len(option)
        kept.leaves[n_kept, :n_split] = option
        kept.leaf_s[n_kept] = score
    return n_kept + 1


@jit
def best_items(
    sums: Sums,
    cuts: Cuts,
    speed: Speed,
    kept: Kept,
    limit_s: float,
    is_collecting: bool,
    limit: int,
) -> tuple[float, int]:
    """Enumerate the ways to cut the parallel dimensions into work items.

    A leaf's score is the largest of its compute time, the time that its items'
    own data need to get in, and ``floor_s``.  Keeps the best leaf below
    ``limit_s``, or collects all.  Returns ``limit_s`` and the nodes.  Comes back
    after ``limit`` nodes, or when ``leaves`` are full; called again with what
    it left in ``kept``, it goes on.
    """
    split, n_split, state, waste = cuts.split, len(cuts.split), kept.state, kept.waste
    n_leaves = kept.leaves.shape[0]
    index = np.zeros(len(cuts.sizes), dtype=np.int64)
    many = np.ones(n_split + 1, dtype=np.int64)
    parts = np.zeros((2 << n_split, 2), dtype=np.int64)
    parts[1, 0], parts[1, 1] = 1, cuts.reduction
    option, k, n_kept = state[2:], state[0], state[1]
    times = np.ones((n_split + 1, len(sums.weight)), dtype=np.int64)
    for j in range(n_split):
        if option[j] >= 0:
            index[split[j]] = cuts.table_at[split[j], option[j]]
        if j < k:
            with_lists(cuts, j, option[j], many, parts)
            repeat(sums, split[j], index, times[j], times[j + 1])
    fixed, axes, ends = own_axes(sums)
    nodes = 0
    while k >= 0:
        if nodes >= limit or (is_collecting and n_kept >= n_leaves):
            state[0], state[1] = k, n_kept
            return limit_s, nodes
        if n_split and not takes_next(cuts, k, option, index, waste):
            k -= 1
            continue
        nodes += 1
        compute_s = cuts.macs / speed.instances * waste[k + 1 if n_split else 0] / speed.rate
        is_late = compute_s * (1.0 - 1e-12) >= limit_s
        if not is_late:
            if n_split:
                repeat(sums, split[k], index, times[k], times[k + 1])
            inner = bytes_moved(sums, index, times[k + 1 if n_split else 0], fixed, axes, ends)
            inner_s = inner / speed.inner_bandwidth
            is_late = inner_s >= limit_s
        if is_late:
            if n_split == 0:
                break
            continue
        if n_split:
            with_lists(cuts, k, option[k], many, parts)
        if k < n_split - 1:
            k += 1
            option[k] = -1
            continue
        nodes += (n_split << n_split) >> 7  # what each combination of lists costs, if many
        most = limit_s * speed.rate * (1.0 + 1e-12)
        steps = n_steps(speed.instances, 1 << n_split, many[n_split], parts, most)
        score = max(steps / speed.rate, inner_s, speed.floor_s)
        if score < limit_s:
            if not is_collecting:
                limit_s = score
                n_kept = 0
            n_kept = keep(kept, n_kept, option[:n_split], score)
        if n_split == 0:
            break
    state[0], state[1] = -1, min(n_kept, n_leaves)
    return limit_s, nodes
