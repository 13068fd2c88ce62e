"""Attention of a few queries to many keys, which are split; a second kernel joins the parts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from loopsched.gpu.choice.attention import (
    Attention,
    attention_numbers,
    attention_refused,
    attention_resources,
    attention_width,
)
from loopsched.gpu.choice.fitted import Fitted
from loopsched.gpu.choice.pipeline import (
    PARTIAL,
    WRITTEN,
    added_s,
    row_bytes_asked,
)
from loopsched.gpu.choice.space import Space
from loopsched.gpu.choice.triton import WARP_ROWS, Resources
from loopsched.gpu.choice.work import Work
from loopsched.gpu.library.machine import Machine
from loopsched.machines.gpu_limits import Gpu


def decode_refused(space: Space, width: int) -> NDArray[np.bool_]:
    """Say which configurations Triton would not compile: parts, too, are a power of two."""
    powers = np.log2(space["split_k"])
    wrong: NDArray[np.bool_] = powers != np.floor(powers)
    return wrong | attention_refused(space, width)


def decode_resources(problem: Attention, space: Space, gpu: Gpu, width: int) -> Resources:
    """Say what blocks take: as of attention, if a block holds all queries of a head of keys."""
    taken = attention_resources(problem, space, gpu, width)
    return replace(taken, resident=np.where(space["block_m"] < _rows(problem), 0, taken.resident))


def decode_suits(problem: Attention, space: Space) -> NDArray[np.bool_]:
    """Leave out blocks of more rows than the queries need."""
    bm, rows = space["block_m"], _rows(problem)
    suited: NDArray[np.bool_] = (bm >= rows) & ((bm < 2 * rows) | (bm == WARP_ROWS))
    return suited


def _rows(problem: Attention) -> int:
    """Queries of a head of keys."""
    return problem.n_queries * problem.heads // problem.groups


def decode_work(
    problem: Attention,
    data_type: str,
    space: Space,
    taken: Resources,
    machine: Machine,
    fit: Fitted,
) -> Work:
    """Cut the keys of each head into ``split_k`` parts, a block each."""
    width, size, rows = attention_width(data_type), problem.columns, _rows(problem)
    bm, bn, split = space["block_m"], space["block_n"], space["split_k"]
    heads = problem.batch * problem.groups
    rate = np.where(taken.by_group, fit.tensor, fit.alone(machine.gpu.tensor_issue))
    busy = bm * bn * (2 * size / (machine.macs_per_cycle * rate) + attention_numbers()["exp"])
    parts = heads * rows * split * (problem.head_size + 1) * PARTIAL
    written = heads * rows * problem.head_size * width
    moved = problem.elems * width - written + WRITTEN * parts
    none = np.zeros_like(bm)
    return Work(
        blocks=heads * split,
        steps=np.ceil(np.ceil(problem.length / split) / bn),
        tile_bytes=2 * bn * size * width,
        l2_bytes=2 * bn * row_bytes_asked(none + size * width, size * width, fit),
        tensor_cycles=busy,
        rows=bm,
        sums=bm * size,
        term_bytes=(size + bn) * width,
        wait_cycles=none,
        block_cycles=none,
        alone_cycles=none,
        dram_bytes=lambda live: moved + 0 * live,
        macs=problem.macs,
        width=width,
        after_s=added_s(parts, written, machine, fit),
    )
