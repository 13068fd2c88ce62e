"""Attention forward: softmax between two products, blocks of queries that walk over the keys.

A block keeps some queries of a head and goes over the keys: scores of a part
of the keys, softmax, and their values into the sums.  A warp does one after
the other, so tensor cores and ordinary lanes take turns within a block, and
largely within an SM, too.  Blocks begin as others end; with a causal mask they
are of different lengths, so that their walk over the SMs is followed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from loopsched.base.arguments import Checker
from loopsched.base.errors import ProblemError
from loopsched.base.units import count
from loopsched.gpu.calibrated import calibration_file
from loopsched.gpu.choice.fitted import fitted
from loopsched.gpu.choice.pipeline import joined
from loopsched.gpu.choice.space import Numbers, Space
from loopsched.gpu.choice.triton import (
    GROUP_ROWS,
    GROUP_WARPS,
    MOST_ELEMENTS,
    Resources,
    issued_by_group,
    most_registers,
    resident_blocks,
    warps_down,
)
from loopsched.gpu.choice.work import Times
from loopsched.gpu.library.machine import Machine, element_bytes
from loopsched.machines.gpu_limits import Gpu

_FORM = "BxHxSxDxcausal or BxHxSxDxcausalxG, S as queries:keys where they differ"
_SIZES = re.compile(r"[0-9]+x[0-9]+x(?:[0-9]+:)?[0-9]+x[0-9]+x[0-9]+(?:x[0-9]+)?", re.ASCII)
# Registers of a thread beside its sums and scores, and for each of them: least squares over
# the compiler's counts of spaces/triton_h100.csv; 7 registers off on average.
_REGISTERS = (34.4, 1.12, 1.26)
# Registers that are left for what four warps multiply together.
_OPERANDS = 240
# Exponent that joins tensor cores with the shared memory that feeds them.
_FEED = 8.0
PARTS = ("tensor cores", "SIMT lanes", "shared memory", "DRAM", "latency")


@dataclass(frozen=True, slots=True)
class Attention:
    """Softmax of the products of queries and keys, times values; forward.

    Parameters
    ----------
    batch, heads : int
    length : int
        Keys per head; also queries, unless ``queries`` says otherwise.
    head_size : int
    causal : bool
        Whether a query sees only keys up to its own position; the last query is at the last
        key.
    groups : int
        Key/value heads; 0: as many as query heads.
    name : str
    queries : int
        Queries per head, if they are fewer than keys, as in decoding; 0: as many as keys.

    Raises
    ------
    ProblemError
        If a size is not a whole number from 1, with every fault found; if there are more queries
        than keys, or the query heads are no whole groups.

    See Also
    --------
    pick

    References
    ----------
    T. Dao, *FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning*,
    arXiv:2307.08691.

    Examples
    --------
    >>> one = Attention.named("4x32x4096x128x1x8")
    >>> one.groups, one.causal, one.macs == 2 * 128 * (4096 * 4097 // 2) * 128
    (8, True, True)
    >>> one = Attention.named("4x32x1:4096x128x0x8")
    >>> one.n_queries, one.length, one.macs == 2 * 128 * 4096 * 128
    (1, 4096, True)
    """

    batch: int
    heads: int
    length: int
    head_size: int
    causal: bool = False
    groups: int = 0
    name: str = ""
    queries: int = 0

    def __post_init__(self) -> None:
        check = Checker("attention", ProblemError)
        for size in ("batch", "heads", "length", "head_size"):
            check.count(size, getattr(self, size))
        object.__setattr__(self, "groups", self.groups or self.heads)
        check.count("groups", self.groups)
        check.count("queries", self.queries, least=0)
        check.finish()
        if self.queries > self.length:
            raise ProblemError(f"attention: {self.queries} queries to {self.length} keys")
        object.__setattr__(self, "queries", self.queries % self.length)
        if self.heads % self.groups:
            raise ProblemError(f"attention: {self.heads} heads are not {self.groups} groups")
        length = f"{self.queries}:{self.length}" if self.queries else self.length
        parts = (self.batch, self.heads, length, self.head_size, int(self.causal))
        more = () if self.groups == self.heads else (self.groups,)
        object.__setattr__(self, "name", self.name or "x".join(map(str, (*parts, *more))))

    @classmethod
    def named(cls, text: str) -> Attention:
        """Read sizes as measured files write them.

        Raises
        ------
        ProblemError
            If they are not written so.
        """
        if not _SIZES.fullmatch(text):
            raise ProblemError(f"attention '{text[:60]}' is not {_FORM}")
        parts = text.split("x")
        queries, _, parts[2] = parts[2].rpartition(":")
        batch, heads, length, head_size, causal, groups = (int(one) for one in [*parts, "0"][:6])
        if causal > 1:
            raise ProblemError(f"attention '{text[:60]}': causal is 0 or 1, not {causal}")
        return cls(batch, heads, length, head_size, bool(causal), groups, queries=int(queries or 0))

    @property
    def sizes(self) -> str:
        """Its sizes with their names.

        Examples
        --------
        >>> Attention.named("8x32x1:8192x128x0x8").sizes
        'batch 8; 32 heads, 8 key/value heads; 1 query, 8,192 keys; head size 128; no mask'
        """
        n, mask = self.n_queries, "causal" if self.causal else "no"
        queries = f"{n:,} {'query' if n == 1 else 'queries'}"
        of_keys = f", {count(self.groups, 'key/value head')}" if self.groups < self.heads else ""
        return (
            f"batch {self.batch}; {count(self.heads, 'head')}{of_keys}; {queries}, "
            f"{count(self.length, 'key')}; head size {self.head_size}; {mask} mask"
        )

    @property
    def n_queries(self) -> int:
        """Queries of a head."""
        return self.queries or self.length

    @property
    def macs(self) -> int:
        """Multiply-accumulates of both products, masked scores left out."""
        masked = self.n_queries * (self.n_queries - 1) // 2 if self.causal else 0
        pairs = self.n_queries * self.length - masked
        return 2 * self.batch * self.heads * pairs * self.head_size

    @property
    def columns(self) -> int:
        """Head size that the kernel computes with: the next power of two, at least 16."""
        return max(1 << (self.head_size - 1).bit_length(), 16)

    @property
    def elems(self) -> int:
        """Elements of queries, keys, values and output."""
        rows = self.groups * self.length
        return 2 * (self.output_elems + self.batch * rows * self.head_size)

    @property
    def output_elems(self) -> int:
        """Elements of the output, and of the queries."""
        return self.batch * self.heads * self.n_queries * self.head_size


def attention_numbers() -> Mapping[str, float]:
    """Give the fitted numbers.

    Examples
    --------
    >>> attention_numbers()["exp"] > 0
    True
    """
    found: Mapping[str, float] = calibration_file("choice/pipeline.json")["triton_attention"]
    return found


def attention_width(data_type: str) -> int:
    """Bytes of an element."""
    return element_bytes(data_type, 2)


def attention_refused(space: Space, width: int) -> NDArray[np.bool_]:
    """Say which configurations Triton would not compile: sizes are powers of two."""
    wrong = np.zeros(len(space), dtype=bool)
    for name, least in (("block_m", 16), ("block_n", 32 if width == 1 else 16), ("warps", 1)):
        powers = np.log2(np.maximum(space[name], 1))
        wrong |= (space[name] < least) | (powers != np.floor(powers))
    return wrong | (space["block_m"] * space["block_n"] > MOST_ELEMENTS)


def attention_resources(problem: Attention, space: Space, gpu: Gpu, width: int) -> Resources:
    """Say what blocks take, as the compiler told or as it would.

    Notes
    -----
    Shared memory holds the queries and ``stages`` parts of keys and values; where operands go
    through registers, one part less, and the scores that warps hand to each other.  All
    rows at hand agree.
    """
    bm, bn, size = space["block_m"], space["block_n"], problem.columns
    stages, warps = space["stages"], space["warps"]
    by_group = issued_by_group(space, gpu)
    threads = warps * gpu.warp_threads
    held = np.where(by_group, stages, np.maximum(stages - 1, 1)) * 2 * bn * size + bm * size
    shared = (held + np.where(by_group | (warps < 2), 0, bm * bn)) * width
    shared = space.columns.get("shared_bytes", shared)
    ones = np.ones_like(bm)
    sums, scores = bm * size / threads, _rows(space) * bn / (GROUP_WARPS * gpu.warp_threads)
    guess = sum(c * x for c, x in zip(_REGISTERS, (ones, sums, scores), strict=True))
    most = most_registers(gpu, threads)
    registers = space.columns.get("registers", np.minimum(np.ceil(guess), most))
    spills = space.columns.get("spills", np.maximum(guess - most, 0.0))
    resident = resident_blocks(gpu, warps, registers, shared)
    return Resources(by_group, threads, registers, shared, spills, resident)


def _rows(space: Space) -> Numbers:
    """Rows of scores of four warps; where eight share 64 rows, each four hold them all."""
    return np.maximum(space["block_m"] / np.maximum(space["warps"] / GROUP_WARPS, 1), GROUP_ROWS)


@dataclass(frozen=True, slots=True)
class _Step:
    """Cycles of a block's step: of each resource, and what a block alone waits."""

    tensor: Numbers
    lanes: Numbers
    copy: Numbers
    more: Numbers
    mask: Numbers
    groups: Numbers


def _step(
    problem: Attention,
    space: Space,
    taken: Resources,
    machine: Machine,
    width: int,
    fit: Mapping[str, float],
) -> _Step:
    bm, bn, size, warps = space["block_m"], space["block_n"], problem.columns, space["warps"]
    groups = np.maximum(warps / GROUP_WARPS, 1)
    crossed = taken.by_group & (bm < groups * GROUP_ROWS)
    alone = fitted("triton_attention").alone(machine.gpu.tensor_issue)
    macs = 2 * bm * bn * size
    tensor = macs / (machine.macs_per_cycle * np.where(taken.by_group, 1.0, alone))
    across = np.where(crossed, bn / groups, bn)
    by_group = bm * bn / (GROUP_ROWS * across) * (GROUP_ROWS + across) * size
    by_group = by_group + bm / GROUP_ROWS * bn * size
    by_warp = (bm + 2 * bn * warps_down(bm, warps)) * size
    read = np.where(taken.by_group, by_group, by_warp) * width
    per_cycle = machine.gpu.shared_bytes_per_cycle
    copied = 2 * bn * size * width
    tensor = joined(_FEED, tensor, fit["shared"] * (read + copied) / per_cycle)
    twice = np.where(crossed, fit["crossed"], 1.0)
    mask = twice * fit["mask"] * bm * bn * problem.causal
    lanes = twice * (fit["exp"] * bm * bn + fit["scale"] * bm * size) + mask
    # Too few registers: products of four warps wait for each other.
    lacking = (bm * (bn + size) + bm * bn / 2) / taken.threads - _OPERANDS
    more = fit["lacking"] * np.maximum(lacking, 0) * groups
    return _Step(tensor, lanes, fit["copy"] * copied / per_cycle, more, mask, groups)


def attention_times(
    problem: Attention,
    data_type: str,
    space: Space,
    taken: Resources,
    machine: Machine,
    fit: Mapping[str, float] | None = None,
) -> Times:
    """Estimate how long each configuration takes.

    Parameters
    ----------
    problem : Attention
    data_type : str
    space : Space
    taken : Resources
        With at least one resident block everywhere.
    machine : Machine
    fit : mapping, optional
        Other numbers than those that are shipped.
    """
    fit = fit or attention_numbers()
    width = attention_width(data_type)
    bm, clock = space["block_m"], machine.max_clock_hz
    step = _step(problem, space, taken, machine, width, fit)
    shared = joined(fit["overlap"], step.tensor, step.lanes) + step.copy + step.more
    shared = shared + fit["group_cycles"] * step.groups
    alone = step.tensor + (step.lanes - step.mask) / step.groups + fit["mask_alone"] * step.mask
    # Each warp keeps to a scheduler of its own.
    alone = alone * np.maximum(machine.gpu.schedulers / space["warps"], 1)
    alone = alone + fit["alone_cycles"] + step.copy + step.more
    late = np.where(space["stages"] <= 2, fit["two_stages"], 0.0)
    resident = taken.resident.astype(np.int64)
    several = np.arange(int(resident.max()) + 1)
    rounds = joined(fit["round"], several[None, :] * shared[:, None], alone[:, None])
    rounds = rounds + late[:, None]
    heads = problem.batch * problem.heads
    down = np.ceil(problem.length / bm)
    blocks = heads * down
    moved = problem.elems * width
    dram = moved / blocks / (machine.dram_bytes_per_s / clock / machine.sms)
    ends = fit["block_cycles"] + fit["dram"] * dram
    full = rounds[np.arange(len(bm)), resident]
    from loopsched.gpu.choice._block_kernels import blocks_cycles

    block = np.stack([bm, space["block_n"], taken.resident], axis=1)
    # Configurations whose blocks are alike, as with more stages than two, are walked once.
    of_blocks = np.hstack([block, (ends / full)[:, None], rounds])
    alike = of_blocks.view(np.dtype((np.void, of_blocks.itemsize * of_blocks.shape[1])))
    _, first, where = np.unique(alike.ravel(), return_index=True, return_inverse=True)
    found = blocks_cycles(
        block[first],
        problem.length,
        problem.causal,
        heads,
        machine.sms,
        of_blocks[first, block.shape[1]],
        rounds[first],
        fit["crowded"],
    )[where]
    cycles, each = found[:, 0], heads * found[:, 1] / machine.sms / clock
    dram_s = moved / machine.dram_bytes_per_s
    waits = fit["alone_cycles"] + late
    of_parts = (
        each * step.tensor,
        each * step.lanes,
        each * step.copy,
        np.full_like(bm, dram_s),
        (each * waits + blocks * fit["block_cycles"] / machine.sms / clock) / resident,
    )
    launch_s = fitted("triton_attention").launch * machine.gpu.launch_s
    time_s = np.maximum(cycles / clock, dram_s) + launch_s
    return Times(time_s, dict(zip(PARTS, of_parts, strict=True)), blocks / machine.sms / resident)
