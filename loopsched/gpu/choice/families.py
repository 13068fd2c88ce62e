"""Kernels whose configurations can be chosen: their parameters, and what their blocks do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loopsched.base.arguments import Checker
from loopsched.base.errors import ProblemError, nearest
from loopsched.gpu.choice import simt
from loopsched.gpu.choice.attention import (
    Attention,
    attention_refused,
    attention_resources,
    attention_times,
    attention_width,
)
from loopsched.gpu.choice.decode import (
    decode_refused,
    decode_resources,
    decode_suits,
    decode_work,
)
from loopsched.gpu.choice.fitted import Fitted, fitted
from loopsched.gpu.choice.grouped import Grouped
from loopsched.gpu.choice.pipeline import (
    PARTIAL,
    WRITTEN,
    added_s,
    asked_cycles,
    compiled,
    read_narrow,
    row_bytes_asked,
    steps_ahead,
    times,
)
from loopsched.gpu.choice.space import Numbers, Space, product_space
from loopsched.gpu.choice.triton import (
    GROUP_ROWS,
    GROUP_WARPS,
    POSITION,
    POSITIONS,
    PRODUCT,
    Resources,
    is_measured,
    refused,
    resources,
    warps_down,
)
from loopsched.gpu.choice.work import Times, Work
from loopsched.gpu.library.conv_layer import Layer, layer_of
from loopsched.gpu.library.gemm import product_of
from loopsched.gpu.library.machine import Machine, element_bytes, output_bytes
from loopsched.machines.gpu_limits import Gpu
from loopsched.problems.builders import gemm
from loopsched.problems.footprint import tensor_bytes
from loopsched.problems.problem import Problem

Asked = Problem | Attention | Grouped


@dataclass(frozen=True, slots=True)
class Family:
    """A kernel with parameters.

    Parameters
    ----------
    name : str
    kind : str
        What measured spaces call it.
    about : str
    values : mapping of str to tuple of int
        Its parameters, and what is usually tried for each.
    usual : callable
        Which combinations of these.
    suits : callable
        Which of the usual ones for a problem.
    refused : callable
        Which configurations it cannot have, by their sizes and an element's bytes.
    taken : callable
        What its blocks take, for a problem.
    times : callable
        How long they take: of a problem, data type, configurations, their
        resources and a machine.
    switches : tuple of str
        Parameters that may be zero.
    data_type : str
        Unless another is asked for.
    more : tuple of str
        Parameters that a space may have besides; without them they are 1.
    few : int
        Configurations of a space, however small, that may be the best.
    held : tuple of tuples of str
        Data types and machines with which its choices were held against measurements.
    """

    name: str
    kind: str
    about: str
    values: Mapping[str, tuple[int, ...]]
    refused: Callable[[Space, int], NDArray[np.bool_]]
    taken: Callable[[Any, Space, Gpu, int], Resources]
    times: Callable[[Any, str, Space, Resources, Machine], Times]
    switches: tuple[str, ...] = ()
    data_type: str = "fp16"
    more: tuple[str, ...] = ()
    few: int = 20
    held: tuple[tuple[str, ...], tuple[str, ...]] = (("fp16",), ("h100", "h200"))
    usual: Callable[[Space], NDArray[np.bool_]] = lambda space: np.ones(len(space), bool)
    suits: Callable[[Any, Space], NDArray[np.bool_]] = lambda _, space: np.ones(len(space), bool)

    @property
    def names(self) -> tuple[str, ...]:
        """Its parameters."""
        return tuple(self.values)

    def tried(self) -> Space:
        """Combine the configurations usually tried."""
        space = product_space(self.values)
        return space.kept(self.usual(space))

    def checked(self, problem: Asked) -> None:
        """Refuse an attention or a group of GEMMs where none is computed, and the reverse.

        Raises
        ------
        ProblemError
        """
        what = _COMPUTED.get(self.kind, "a GEMM or a convolution")
        mine = "a GEMM or a convolution"
        if isinstance(problem, Attention):
            mine = _COMPUTED["decode" if problem.queries else "attn"]
        elif isinstance(problem, Grouped):
            mine = _COMPUTED["grouped"]
        if mine != what:
            raise ProblemError(f"problem '{problem.name}': {self.name} computes {what}")


_COMPUTED = {
    "attn": "attention with as many queries as keys, such as attention:4x32x4096x128x1",
    "decode": "attention with fewer queries than keys, such as attention:4x32x1:4096x128x0",
    "grouped": "several GEMMs in one launch, such as grouped:128x4096x512+64x4096x512",
}


def least(problem: Asked, data_type: str) -> tuple[int, int, int]:
    """Count the multiply-adds that a problem cannot do without, and the bytes it reads and writes.

    All tensors are as the data type is stored; sums of it may be stored alike.
    """
    width = product_width(problem, data_type)
    if not isinstance(problem, Problem):
        written = problem.output_elems
        return problem.macs, (problem.elems - written) * width, written * width
    elems = {one.name: tensor_bytes(problem, one) // one.element_bytes for one in problem.tensors}
    written = elems.pop(problem.output)
    convolves = problem.kind == "conv2d"
    macs = layer_of(problem).macs if convolves else product_of(problem, data_type).macs
    return macs, sum(elems.values()) * width, written * width


def _usual(space: Space) -> NDArray[np.bool_]:
    """Leave out warps with too little to do or with too much."""
    sums = space["block_m"] * space["block_n"]
    four, eight = sums <= 16_384, (sums >= 4_096) & (sums <= 32_768)
    return np.where(space["warps"] == 4, four, eight)


def gemm_work(
    problem: Problem, data_type: str, space: Space, taken: Resources, machine: Machine, fit: Fitted
) -> Work:
    """Cut a product into tiles of the output, in groups of rows of tiles.

    ``split_k`` blocks may share the terms of a tile; a second kernel adds their sums.

    Examples
    --------
    >>> TRITON_GEMM.names
    ('block_m', 'block_n', 'block_k', 'stages', 'warps', 'group_m')
    """
    product = product_of(problem, data_type)
    m, n, k, width = product.m, product.n, product.k, product.element_bytes
    bm, bn, bk = space["block_m"], space["block_n"], space["block_k"]
    down, across = np.ceil(m / bm), np.ceil(n / bn)
    group = np.minimum(space["group_m"], down)
    split = space.columns.get("split_k", np.ones_like(bm))
    terms = k / split
    sums = product.batch * m * n
    parts, written = sums * split * PARTIAL, sums * min(output_bytes(width, data_type), 4)

    def dram_bytes(live: Numbers) -> Numbers:
        side = np.minimum(np.ceil(live / group), across)
        room = fit.kept * machine.l2_bytes
        wave = (group * bm + side * bn) * terms * width
        waves = np.maximum(np.ceil(group * across / live), 1)
        a = product.m * k * width * (1 + (waves - 1) * _lost(wave, room))
        # Groups that run at a time read the same columns of B together.
        together = np.maximum(live / across, group)
        again = _lost((np.minimum(together, down) * bm + n) * terms * width, room)
        b = n * k * width * (1 + np.maximum(down / together - 1, 0) * again)
        _, row, _ = _rows_of_b(space, n, k, width)
        b = read_narrow(b, row * width, fit)
        return product.batch * (a + b) + WRITTEN * np.where(split > 1, parts, written)

    zero = np.zeros_like(bm)
    of_a, of_b = _l2_bytes(space, (n, k), width, fit)
    return Work(
        blocks=product.batch * down * across * split,
        steps=np.ceil(np.ceil(terms) / bk),
        tile_bytes=(bm + bn) * bk * width,
        l2_bytes=of_a + of_b,
        shared_bytes=_shared_bytes((of_a, of_b), group, down, across),
        tensor_cycles=_tensor_cycles(space, taken, machine, width, fit),
        rows=bm,
        sums=bm * bn,
        term_bytes=bk * width,
        wait_cycles=zero,
        block_cycles=zero,
        alone_cycles=zero,
        dram_bytes=dram_bytes,
        macs=product.macs,
        width=width,
        after_s=np.where(split > 1, added_s(parts, written, machine, fit), 0.0),
    )


def grouped_work(
    problem: Grouped, data_type: str, space: Space, taken: Resources, machine: Machine, fit: Fitted
) -> Work:
    """Put the tiles of all products into one list; a block starts where a place is free first."""
    from loopsched.gpu.choice._block_kernels import listed_steps

    works = {
        (m, n, k): gemm_work(gemm(m=m, n=n, k=k), data_type, space, taken, machine, fit)
        for m, n, k in dict.fromkeys(problem.products)
    }
    parts = [works[sizes] for sizes in problem.products]
    blocks = np.stack([one.blocks for one in parts], axis=1)
    steps = np.stack([one.steps for one in parts], axis=1)
    places = machine.sms * taken.resident
    whole = (one.astype(np.int64) for one in (blocks, steps, places))
    waves = np.ceil(blocks.sum(axis=1) / places)
    shared = np.stack([one.shared_bytes for one in parts], axis=1)
    return replace(
        parts[0],
        blocks=blocks.sum(axis=1),
        # As many in each wave as the list takes in all.
        steps=listed_steps(*whole) / waves,
        shared_bytes=(blocks * shared).sum(axis=1) / blocks.sum(axis=1),
        dram_bytes=lambda live: np.sum([one.dram_bytes(live) for one in parts], axis=0),
        macs=problem.macs,
    )


def conv_work(
    problem: Problem, data_type: str, space: Space, taken: Resources, machine: Machine, fit: Fitted
) -> Work:
    """Cut pixels and output channels into tiles; sums go filter position by position."""
    layer = forward_layer(problem)
    width = product_width(problem, data_type)
    names = ("block_m", "block_n", "block_k", "warps", "stages")
    bm, bn, bk, warps, stages = (space[name] for name in names)
    pixels, places = layer.n * layer.p * layer.q, layer.r * layer.s
    down, across = np.ceil(pixels / bm), np.ceil(layer.k / bn)
    here = np.ceil(layer.c / bk)
    busy = 1 + fit.more_warps * (warps == 8)
    # Copies are issued for each step of a filter position, and before for those that are ahead.
    copies = 1 + (stages - 1) / here
    tensor = _tensor_cycles(space, taken, machine, width, fit)
    addresses = (bm + bn) * bk / 1024 * copies
    tensor = tensor + fit.address_cycles * addresses * busy
    alone = fit.alone_cycles * addresses * GROUP_WARPS / warps
    tile_bytes = (bm + bn) * bk * width
    asked = asked_cycles(bm, tile_bytes, machine, fit)
    ahead = steps_ahead(stages, taken.by_group, fit)
    # What is asked for before a position's first step comes together.
    waits = 1 + np.maximum(here - np.maximum(stages - 1, 1), 0) / ahead
    shown = np.maximum(fit.drain / here - np.where(stages <= 2, fit.two_stages, 0.0), 0.0)
    seen = layer.input_elems(width) * width
    again = np.maximum(pixels * places * layer.c * width - seen, 0)
    a, b = _l2_bytes(space, (layer.k, layer.c), width, fit)
    weights = layer.weight_elems * width
    moved = WRITTEN * layer.output_elems * output_bytes(width, data_type)

    def dram_bytes(live: Numbers) -> Numbers:
        # A pixel is read anew at the filter position a stride further, if L2 holds it no more.
        here = np.minimum(np.ceil(live / across) * bm, pixels) * layer.c * width
        lost = _lost(here * min(layer.stride[1], layer.s), fit.kept * machine.l2_bytes)
        return read_narrow(seen + again * lost, bk * width, fit) + weights + moved

    return Work(
        blocks=down * across,
        steps=here * places,
        tile_bytes=tile_bytes,
        l2_bytes=a + b,
        shared_bytes=_shared_bytes((a, b), np.minimum(_CONV_GROUP, down), down, across),
        tensor_cycles=tensor,
        rows=bm,
        sums=bm * bn,
        term_bytes=bk * width,
        wait_cycles=asked * (waits / here - 1 / ahead) + shown * (tensor + alone),
        block_cycles=places * fit.place_cycles * (bm + bn) * bk / 4096 * busy,
        alone_cycles=alone,
        dram_bytes=dram_bytes,
        macs=layer.macs,
        width=width,
        after_s=np.zeros_like(bm),
    )


def product_width(problem: Asked, data_type: str) -> int:
    """Bytes of an operand's element in memory."""
    if not isinstance(problem, Problem):
        return attention_width(data_type)
    return element_bytes(data_type, problem.tensors[0].element_bytes)


def unaligned(problem: Asked, family: Family) -> tuple[str, ...]:
    """Sizes whose rows Triton does not copy 16 bytes at a time: of multiples it notices only 16.

    Examples
    --------
    >>> from loopsched import gemm
    >>> unaligned(gemm(m=5, n=64, k=1000), TRITON_GEMM)
    ('k=1000',)
    """
    if isinstance(problem, Attention) or not family.name.startswith("triton"):
        return ()
    if isinstance(problem, Grouped):
        sizes = [("n", n) for _, n, _ in problem.products]
        sizes += [("k", k) for _, _, k in problem.products]
    elif family.kind == "conv":
        layer = forward_layer(problem)
        sizes = [("c", layer.c), ("k", layer.k)]
    else:
        sizes = [("n", problem.size["N"]), ("k", problem.size["K"])]
    return tuple(dict.fromkeys(f"{name}={size}" for name, size in sizes if size % 16))


def forward_layer(problem: Problem) -> Layer:
    """Take a convolution's sizes, if it is what the kernel computes."""
    layer = layer_of(problem)
    if layer.pass_ != "forward" or layer.groups != 1:
        raise ProblemError(f"problem '{problem.name}': a forward conv2d without groups is needed")
    return layer


def _lost(asked: Numbers, room: float) -> Numbers:
    """Share of what is asked for again that L2 holds no more."""
    return 1 / (1 + (room / asked) ** 4)


def _l2_bytes(
    space: Space, sizes: tuple[int, int], width: int, fit: Fitted
) -> tuple[Numbers, Numbers]:
    """Bytes of A and of B that a step asks of L2.

    Rows come in sectors, and each line of them costs more.
    """
    n, k = sizes
    of_a = (space["block_m"], space["block_k"], k)
    a, b = (
        rows * row_bytes_asked(row * width, apart * width, fit)
        for rows, row, apart in (of_a, _rows_of_b(space, n, k, width))
    )
    return a, b


def _shared_bytes(
    asked: tuple[Numbers, Numbers], group: Numbers, down: Numbers, across: Numbers
) -> Numbers:
    """Bytes of a block's step that blocks launched next to it ask for as well.

    Tiles are ``down`` rows of ``across``; blocks pass ``group`` rows column by column.
    """
    near = np.minimum(_NEAR, down * across)
    whole, rest = np.divmod(near, group * across)
    rows = np.minimum(whole * group + np.minimum(rest, group), down)
    columns = np.where(whole > 0, across, np.ceil(near / group))
    shared: Numbers = asked[0] * (1 - rows / near) + asked[1] * (1 - columns / near)
    return shared


def _rows_of_b(space: Space, n: int, k: int, width: int) -> tuple[Numbers, Numbers, int]:
    """Say how many rows B's part of a step has, elements of one, and from one to the next."""
    # Single bytes are stored with the terms of a sum side by side, as in A.
    if width == 1:
        return space["block_n"], space["block_k"], k
    return space["block_k"], space["block_n"], n


def _tensor_cycles(
    space: Space, taken: Resources, machine: Machine, width: int, fit: Fitted
) -> Numbers:
    """Cycles of a step's arithmetic: of the tensor cores, or of shared memory that feeds them."""
    bm, bn, bk, warps = (space[name] for name in ("block_m", "block_n", "block_k", "warps"))
    group = taken.by_group
    share = np.where(group, fit.tensor, fit.alone(machine.gpu.tensor_issue))
    cycles = bm * bn * bk / (machine.macs_per_cycle * share)
    wide = group & (width == 1) & (bn == 256) & (warps == 8)
    cycles = cycles * np.where(wide, fit.wide_bytes, 1.0)
    cycles = cycles + np.where(group & (width == 4), fit.turned * bn * bk, 0.0)
    halves = np.where((bm == GROUP_ROWS) & (warps == 8), bn / 2, bn)
    by_group = bm * bn / (GROUP_ROWS * halves) * (GROUP_ROWS + halves)
    rows = warps_down(bm, warps)
    by_warp = bm * warps / rows + bn * rows
    read = np.where(group, by_group, by_warp) * bk * width
    tile = (bm + bn) * bk * width
    cycles = np.maximum(cycles, fit.shared * (read + tile) / machine.gpu.shared_bytes_per_cycle)
    # What registers cannot hold is stored and loaded again at every step.
    spilled = 2 * _REGISTER * taken.spills * taken.threads
    return cycles + spilled / machine.gpu.l1_bytes_per_cycle


def _pipelined(
    name: str,
    work: Callable[[Any, str, Space, Resources, Machine, Fitted], Work],
    source: Callable[[Any], str],
) -> Callable[[Any, str, Space, Resources, Machine], Times]:
    """Say how long pipelined kernels take."""

    def estimate(
        problem: Any, data_type: str, space: Space, taken: Resources, machine: Machine
    ) -> Times:
        fit = fitted(name)
        todo = work(problem, data_type, space, taken, machine, fit)
        found = times(todo, taken, space["stages"], machine, fit)
        if not is_measured(machine.gpu):
            return found
        return replace(found, time_s=found.time_s * compiled(source(problem), space, data_type))

    return estimate


def tile_source(problem: Problem | Grouped) -> str:
    """Say what the kernels of tiles of a problem are compiled from."""
    if not isinstance(problem, Problem) or problem.kind != "conv2d":
        return PRODUCT
    layer = forward_layer(problem)
    return POSITION if layer.r == layer.s == 1 else POSITIONS


def _tile_resources(problem: Any, space: Space, gpu: Gpu, width: int) -> Resources:
    return resources(space, gpu, width, tile_source(problem))


def _image(problem: Problem) -> Layer:
    layer = forward_layer(problem)
    plain = layer.stride == layer.dilation == (1, 1) and not any(layer.padding)
    if (layer.c, layer.k) != (1, 1) or not plain:
        raise ProblemError(
            f"problem '{problem.name}': a conv2d of one channel with one filter is needed, "
            "its input padded beforehand"
        )
    return layer


_REGISTER = 4
# Blocks launched one after another that ask L2 for the same bytes at about the same time.
_NEAR = 16
# Rows of tiles in a group of a convolution.
_CONV_GROUP = 8

# Values that are usually tried.
_CONV = {
    "block_m": (32, 64, 128, 256),
    "block_n": (32, 64, 128, 256),
    "block_k": (32, 64),
    "stages": (2, 3, 4),
    "warps": (4, 8),
}
_GEMM = _CONV | {
    "block_m": (16, 32, 64, 128, 256),
    "block_k": (32, 64, 128),
    "stages": (2, 3, 4, 5),
    "group_m": (8, 1),
}
_ATTENTION = {"block_m": (64, 128), "block_n": (32, 64, 128), "stages": (2, 3, 4), "warps": (4, 8)}
_DECODE = _ATTENTION | {
    "block_m": (16, 32, 64, 128),
    "warps": (1, 2, 4, 8),
    "split_k": (1, 2, 4, 8, 16, 32, 64, 128),
}
TRITON_GEMM = Family(
    "triton_gemm",
    "gemm",
    "C[m,n] = A[m,k] B[k,n] of row-major operands, blocks in groups of group_m rows of tiles",
    _GEMM,
    refused,
    _tile_resources,
    _pipelined("triton_gemm", gemm_work, tile_source),
    usual=_usual,
    more=("split_k",),
    held=(("fp16", "bf16", "fp8", "tf32"), ("h100", "h200")),
)
TRITON_CONV = Family(
    "triton_conv",
    "conv",
    "forward convolution, NHWC, pixels down and output channels across, filter place by place",
    _CONV,
    refused,
    _tile_resources,
    _pipelined("triton_conv", conv_work, tile_source),
    usual=_usual,
)
TRITON_ATTENTION = Family(
    "triton_attention",
    "attn",
    "attention forward: a block is block_m queries of a head, steps of block_n keys",
    _ATTENTION,
    attention_refused,
    attention_resources,
    attention_times,
    few=1,
)
TRITON_GROUPED = replace(
    TRITON_GEMM,
    name="triton_grouped",
    kind="grouped",
    about="GEMMs of unlike sizes in one launch, each in groups of group_m rows of tiles",
    times=_pipelined("triton_gemm", grouped_work, tile_source),
    more=(),
    held=TRITON_CONV.held,
)
TRITON_DECODE = Family(
    "triton_decode",
    "decode",
    "attention of few queries: a block is a part of a head's keys, a second kernel joins the parts",
    _DECODE,
    decode_refused,
    decode_resources,
    _pipelined("triton_decode", decode_work, lambda _: "decode"),
    suits=decode_suits,
)
CLBLAST_GEMM = Family(
    "clblast_gemm",
    "clblast_gemm",
    "CLBlast's GEMM: column-major A, B transposed; MWG x NWG accumulators a block in registers",
    {
        "MWG": (16, 32, 64, 128),
        "NWG": (16, 32, 64, 128),
        "KWG": (32,),
        "MDIMC": (8, 16, 32),
        "NDIMC": (8, 16, 32),
        "MDIMA": (8, 16, 32),
        "NDIMB": (8, 16, 32),
        "KWI": (2,),
        "VWM": (1, 2, 4, 8),
        "VWN": (1, 2, 4, 8),
        "STRM": (0,),
        "STRN": (0,),
        "SA": (0, 1),
        "SB": (0, 1),
    },
    simt.clblast_refused,
    lambda _, space, gpu, width: simt.clblast_resources(space, gpu, width),
    lambda problem, data_type, space, taken, machine: simt.clblast_times(
        product_of(problem, data_type), space, taken, machine
    ),
    ("STRM", "STRN", "SA", "SB"),
    "fp32",
    held=(("fp32",), ("rtx_3090", "titan_rtx")),
    usual=lambda space: ~simt.clblast_refused(space, 4),
)
FILTER = Family(
    "filter",
    "filter",
    "image filter of one channel: each thread outputs a block apart, filter in constant memory",
    {
        "block_size_x": tuple(range(16, 257, 16)),
        "block_size_y": (1, 2, 4, 8, 16),
        "tile_size_x": (1, 2, 3, 4),
        "tile_size_y": (1, 2, 3, 4),
        "read_only": (0, 1),
        "use_padding": (0, 1),
        "use_shmem": (0, 1),
    },
    simt.filter_refused,
    lambda problem, space, gpu, width: simt.filter_resources(_image(problem), space, gpu, width),
    lambda problem, data_type, space, taken, machine: simt.filter_times(
        _image(problem), space, taken, machine
    ),
    ("read_only", "use_padding", "use_shmem"),
    "fp32",
    held=(("fp32",), ("a4000", "a6000", "w6600")),
    usual=lambda space: ~simt.filter_refused(space, 4),
)
_ALL = (
    TRITON_GEMM,
    TRITON_CONV,
    TRITON_ATTENTION,
    TRITON_DECODE,
    TRITON_GROUPED,
    CLBLAST_GEMM,
    FILTER,
)
FAMILIES = {one.name: one for one in _ALL}


def family_of(check: Checker, kernel: str) -> Family:
    """Find a family by its name; in the place of one that is unknown, the first."""
    if kernel not in FAMILIES:
        check.fault(f"unknown kernel '{kernel}'; {nearest(str(kernel), FAMILIES)}")
    return FAMILIES.get(kernel, TRITON_GEMM)
