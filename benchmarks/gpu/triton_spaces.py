"""Time every configuration of some Triton kernels on the GPU at hand.

Run ``python triton_spaces.py OUT.csv KIND:TYPE..`` on a machine with torch and Triton, such as
``gemm:fp16 attn:fp16 conv:fp16 gemm:bf16``; ``gemm:fp16:64x512x512,8x512x512`` names problems of
your own, ``gemm:fp16:drawn20`` takes twenty drawn with a fixed seed (``drawn``: ten; ``--seed``).
Rows are appended problem by problem, so that what was measured stays when the time is up
(``--seconds``).  With ``--choices FILE`` of ``drawn_problems.py`` the fastest of each problem and
those chosen are timed again, in turn: rows in OUT.again.csv, ``kind`` ending in ``again`` or
``chosen``.
Kernels are compiled by all cores first.

Each repetition writes 256 MB before it, so that L2 holds nothing of the operands; a time is the
median of ``REPEATS`` repetitions between events, in microseconds.  ``gemm``: C[M,N] = A[M,K]
B[K,N], row-major (fp8: B is stored as N x K), blocks in groups of ``group_m`` rows of tiles.
``attn``: B x H x S x D x causal, forward, one block ``block_m`` queries of a head, keys in steps
of ``block_n``; a sixth number is the heads of keys and values, if they are fewer.  ``decode``:
B x H x S x D x 0 x G, one query a head and G heads of keys, ``split_k`` blocks for each of
them, and a second kernel that joins what they found.  ``split``: products with ``split_k`` blocks
for each tile, whose sums a second kernel adds.  ``batch``: B x M x N x K.  ``grouped``: products
M x N x K joined by +, in one launch; a block finds its tile in a table of the products.
``persistent``: the same tiles, handed out in the same order to as many blocks as run at a time.
``conv``: N x H x W x C x K x R x S x stride x padding, NHWC, weights (R S C, K), implicit product,
k in steps of ``block_k`` channels of a filter position.  Sums are fp32.
``library`` is torch.  Every kernel is held against the library before it is timed.
"""

from __future__ import annotations

import argparse
import csv
import functools
import itertools
import json
import math
import multiprocessing
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import torch
import triton
import triton.language as tl
from drawn_problems import drawn
from torch.nn.functional import conv2d, scaled_dot_product_attention

REPEATS, AGAIN, FASTEST = 11, 41, 4
SHARED = 232_448
COLUMNS = (
    "gpu", "data_type", "kind", "problem", "block_m", "block_n", "block_k", "stages", "warps",
    "group_m", "split_k", "registers", "spills", "shared_bytes", "time_us",
)  # fmt: skip
TYPES = {
    "fp16": torch.float16, "bf16": torch.bfloat16, "tf32": torch.float32,
    "fp8": torch.float8_e4m3fn,
}  # fmt: skip
# block_m, block_n, block_k, stages, warps, group_m and, of kernels that have it, split_k.
Config = tuple[int, ...]

GEMM = (
    "16x14336x4096", "32x4096x14336", "64x2560x2560", "128x6144x4096", "256x1024x8192",
    "256x256x8192", "512x28672x4096", "1024x1024x1024", "1024x4096x4096", "1536x6144x1536",
    "2048x2048x2048", "2048x32000x4096", "3136x256x2304", "4096x4096x4096", "5120x5120x1280",
    "8192x3584x3584", "12544x128x576", "16384x1024x4096",
    "16x4096x4096", "64x4096x11008", "128x1280x8192", "512x6144x4096", "1024x50304x768",
    "2048x768x3072", "4096x11008x4096", "8192x1280x8192", "512x512x16384", "1760x7120x1760",
    "6272x512x1152", "8192x8192x8192",
)  # fmt: skip
FEW = (*GEMM[:6], "1024x1024x1024", "1536x6144x1536", "2048x2048x2048", "4096x4096x4096",
       "3136x256x2304", "8192x3584x3584", "16384x1024x4096", "2048x32000x4096")  # fmt: skip
ATTENTION = (
    "8x16x2048x64x0",
    "2x32x8192x128x0",
    "8x16x2048x64x1",
    "4x32x2048x128x1",
    "1x16x16384x64x1",
    "16x12x1024x64x0",
    "1x8x4096x128x0",
    "64x16x256x64x0",
    "4x32x4096x128x0",
    "16x16x1024x64x0",
    "1x32x16384x128x1",
    "32x12x512x64x0",
    "4x32x2048x128x1x8",
    "1x64x4096x128x1x8",
    "16x8x1024x128x0",
    "2x12x4096x64x1",
    "2x16x4096x256x1",
    "8x8x1024x256x0",
    "1x8x8192x256x0x4",
    "8x32x512x128x1",
)
DECODE = (
    "1x32x8192x128x0x8",
    "8x32x4096x128x0x8",
    "64x32x2048x128x0x8",
    "1x8x65536x128x0x1",
    "16x16x1024x64x0x16",
    "4x32x16384x128x0x4",
)
SPLIT = (
    "512x512x16384",
    "256x256x8192",
    "16x4096x14336",
    "64x2560x10240",
    "128x1280x8192",
    "1024x1024x4096",
)
BATCH = (
    "96x128x128x64", "16x1024x1024x64", "12x384x384x768", "64x16x4096x512", "8x512x1024x1024",
)  # fmt: skip
# Experts of a mixture in prefill and in decoding, layers side by side, long and short sums.
GROUPED = tuple(
    "+".join("x".join(map(str, one)) for one in products)
    for products in (
        [(m, 3584, 4096) for m in (700, 512, 300, 900, 64, 1200, 220, 200)],
        [(m, 3584, 4096) for m in (1, 3, 8, 2, 16, 5, 1, 4)],
        [(600 // (1 + at) + 3, 1408, 2048) for at in range(32)],
        [(64 - 2 * at, 768, 2048) for at in range(32)],
        [(512, 1024, k) for k in (8192, 4096, 1024, 256)],
        [(512, 1024, k) for k in (256, 1024, 4096, 8192)],
        [(2048, 4096, 2048), (2048, 1024, 2048), (2048, 1024, 2048)],
        [(2048, 1024, 4096), (1024, 4096, 2048)],
        [(128 * (1 + at % 4), 128 * (1 + at // 4), 512) for at in range(16)],
        [(3000, 2048, 2048), (20, 2048, 2048), (200, 2048, 2048), (1, 2048, 2048)],
    )
)
# Products of a table, those without rows included.
MANY = 32
CONVOLUTION = (
    "32x28x28x128x128x3x3x1x1", "32x7x7x512x512x3x3x1x1", "32x56x56x64x256x1x1x1x0",
    "32x14x14x1024x256x1x1x1x0", "8x112x112x64x128x3x3x2x1", "16x28x28x256x512x1x1x2x0",
    "1x56x56x64x64x3x3x1x1", "64x14x14x256x256x3x3x1x1", "32x14x14x512x512x1x1x1x0",
    "32x27x27x64x192x5x5x1x2",
    "32x56x56x64x64x3x3x1x1", "32x14x14x256x256x3x3x1x1", "32x56x56x256x64x1x1x1x0",
    "32x28x28x512x1024x1x1x2x0",
)  # fmt: skip


@triton.jit
def gemm_tile(
    block, a, b, c, m, n, k, bk_stride, bn_stride,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """Compute a tile of C; rows of tiles in groups, so that neighbours share operands."""
    rows, columns = tl.cdiv(m, BM), tl.cdiv(n, BN)
    first = block // (GROUP * columns) * GROUP
    high = min(rows - first, GROUP)
    at_m = first + block % (GROUP * columns) % high
    at_n = block % (GROUP * columns) // high
    om = (at_m * BM + tl.arange(0, BM)) % m
    on = (at_n * BN + tl.arange(0, BN)) % n
    ok = tl.arange(0, BK)
    pa = a + om[:, None] * k + ok[None, :]
    pb = b + ok[:, None] * bk_stride + on[None, :] * bn_stride
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(tl.cdiv(k, BK)):
        left = k - step * BK
        x = tl.load(pa, mask=ok[None, :] < left, other=0.0)
        y = tl.load(pb, mask=ok[:, None] < left, other=0.0)
        sums = tl.dot(x, y, sums)
        pa += BK
        pb += BK * bk_stride
    om = at_m * BM + tl.arange(0, BM)
    on = at_n * BN + tl.arange(0, BN)
    tl.store(
        c + om[:, None] * n + on[None, :],
        sums.to(c.dtype.element_ty),
        mask=(om[:, None] < m) & (on[None, :] < n),
    )


@triton.jit(do_not_specialize=["m"])
def gemm_kernel(
    a, b, c, m, n, k, bk_stride, bn_stride,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """Compute a tile of a product."""
    gemm_tile(tl.program_id(0), a, b, c, m, n, k, bk_stride, bn_stride, BM, BN, BK, GROUP)


@triton.jit
def attention_kernel(
    q, k, v, o, scale, length,
    D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr,
    SHARED: tl.constexpr,
):  # fmt: skip
    """Attend from a block of queries of one head to all keys, or to those before them.

    `length` is a whole number of blocks; `SHARED` heads of queries have the same keys.
    """
    start, head = tl.program_id(0) * BM, tl.program_id(1).to(tl.int64) * length * D
    other = (tl.program_id(1) // SHARED).to(tl.int64) * length * D
    om, on, od = start + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, D)
    x = tl.load(q + head + om[:, None] * D + od[None, :])
    most = tl.full((BM,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    sums = tl.zeros((BM, D), dtype=tl.float32)
    end = (start + BM) if CAUSAL else length
    for at in range(0, end, BN):
        here = at + on
        y = tl.load(k + other + here[None, :] * D + od[:, None])
        s = tl.dot(x, y) * scale
        if CAUSAL:
            s = tl.where(om[:, None] >= here[None, :], s, float("-inf"))
        now = tl.maximum(most, tl.max(s, 1))
        p = tl.math.exp2(s - now[:, None])
        shrink = tl.math.exp2(most - now)
        total = total * shrink + tl.sum(p, 1)
        sums = sums * shrink[:, None]
        z = tl.load(v + other + here[:, None] * D + od[None, :])
        sums = tl.dot(p.to(z.dtype), z, sums)
        most = now
    tl.store(
        o + head + om[:, None] * D + od[None, :],
        (sums / total[:, None]).to(o.dtype.element_ty),
    )


@triton.jit
def decode_kernel(
    q, k, v, part, ends, scale, length, each,
    D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Attend from the queries of a head of keys to one part of these keys; sums stay apart."""
    split, head = tl.program_id(0), tl.program_id(1)
    other = head.to(tl.int64) * length * D
    om, on, od = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, D)
    x = tl.load(
        q + (head * ROWS + om[:, None]) * D + od[None, :], mask=om[:, None] < ROWS, other=0.0
    )
    most = tl.full((BM,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    sums = tl.zeros((BM, D), dtype=tl.float32)
    for at in range(split * each, (split + 1) * each, BN):
        here = at + on
        y = tl.load(k + other + here[None, :] * D + od[:, None])
        s = tl.dot(x, y) * scale
        now = tl.maximum(most, tl.max(s, 1))
        p = tl.math.exp2(s - now[:, None])
        shrink = tl.math.exp2(most - now)
        total = total * shrink + tl.sum(p, 1)
        sums = sums * shrink[:, None]
        z = tl.load(v + other + here[:, None] * D + od[None, :])
        sums = tl.dot(p.to(z.dtype), z, sums)
        most = now
    block = head * tl.num_programs(0) + split
    tl.store(
        part + (block * ROWS + om[:, None]) * D + od[None, :],
        sums / total[:, None],
        mask=om[:, None] < ROWS,
    )
    tl.store(ends + block * ROWS + om, most + tl.math.log2(total), mask=om < ROWS)


@triton.jit
def join_kernel(part, ends, o, D: tl.constexpr, ROWS: tl.constexpr, SPLIT: tl.constexpr):
    """Join the parts of a query's sums, each as much as its keys weigh."""
    query = tl.program_id(0)
    head, row = query // ROWS, query % ROWS
    os, od = tl.arange(0, SPLIT), tl.arange(0, D)
    at = (head * SPLIT + os) * ROWS + row
    end = tl.load(ends + at)
    share = tl.math.exp2(end - tl.max(end, 0))
    x = tl.load(part + at[:, None] * D + od[None, :])
    found = tl.sum(x * share[:, None], 0) / tl.sum(share, 0)
    tl.store(o + query * D + od, found.to(o.dtype.element_ty))


@triton.jit(do_not_specialize=["m"])
def split_kernel(
    a, b, part, m, n, k, each,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """Compute a tile of C of one part of the terms; sums stay apart."""
    block, split = tl.program_id(0), tl.program_id(1)
    rows, columns = tl.cdiv(m, BM), tl.cdiv(n, BN)
    first = block // (GROUP * columns) * GROUP
    high = min(rows - first, GROUP)
    at_m = first + block % (GROUP * columns) % high
    at_n = block % (GROUP * columns) // high
    om = (at_m * BM + tl.arange(0, BM)) % m
    on = (at_n * BN + tl.arange(0, BN)) % n
    ok = split * each + tl.arange(0, BK)
    pa = a + om[:, None] * k + ok[None, :]
    pb = b + ok[:, None] * n + on[None, :]
    last = min(k - split * each, each)
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(tl.cdiv(last, BK)):
        left = last - step * BK
        ok = tl.arange(0, BK)
        x = tl.load(pa, mask=ok[None, :] < left, other=0.0)
        y = tl.load(pb, mask=ok[:, None] < left, other=0.0)
        sums = tl.dot(x, y, sums)
        pa += BK
        pb += BK * n
    om = at_m * BM + tl.arange(0, BM)
    on = at_n * BN + tl.arange(0, BN)
    tl.store(
        part + (split * m + om[:, None]) * n + on[None, :],
        sums,
        mask=(om[:, None] < m) & (on[None, :] < n),
    )


@triton.jit
def add_kernel(part, c, total, SPLIT: tl.constexpr, BLOCK: tl.constexpr):
    """Add the parts of sums."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    sums = tl.zeros((BLOCK,), dtype=tl.float32)
    for split in range(SPLIT):
        sums += tl.load(part + split * total + at, mask=at < total, other=0.0)
    tl.store(c + at, sums.to(c.dtype.element_ty), mask=at < total)


@triton.jit(do_not_specialize=["m"])
def batch_kernel(
    a, b, c, m, n, k,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """Compute a tile of one product of a batch."""
    which = tl.program_id(1).to(tl.int64)
    a, b, c = a + which * m * k, b + which * k * n, c + which * m * n
    gemm_tile(tl.program_id(0), a, b, c, m, n, k, n, 1, BM, BN, BK, GROUP)


@triton.jit
def listed_tile(
    block, a, b, c, sizes, ends,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, MANY: tl.constexpr,
):  # fmt: skip
    """Find a tile's product in the table, and compute it."""
    passed = tl.load(ends + 1 + tl.arange(0, MANY)) <= block
    which = tl.sum(passed.to(tl.int32), 0)
    start = tl.load(ends + which)
    here = sizes + which * 6
    m = tl.load(here).to(tl.int32)
    # Without these promises the operands are not copied 16 bytes at a time.
    n = tl.multiple_of(tl.load(here + 1).to(tl.int32), 16)
    k = tl.multiple_of(tl.load(here + 2).to(tl.int32), 16)
    a += tl.multiple_of(tl.load(here + 3), 16)
    b += tl.multiple_of(tl.load(here + 4), 16)
    c += tl.multiple_of(tl.load(here + 5), 16)
    gemm_tile(block - start, a, b, c, m, n, k, n, 1, BM, BN, BK, GROUP)


@triton.jit
def grouped_kernel(
    a, b, c, sizes, ends,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, MANY: tl.constexpr,
):  # fmt: skip
    """Compute a tile of one of several products."""
    listed_tile(tl.program_id(0), a, b, c, sizes, ends, BM, BN, BK, GROUP, MANY)


@triton.jit(do_not_specialize=["total"])
def persistent_kernel(
    a, b, c, sizes, ends, total, counter,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, MANY: tl.constexpr,
):  # fmt: skip
    """Compute tiles of several products, always the next that no block has taken."""
    block = tl.atomic_add(counter, 1)
    while block < total:
        listed_tile(block, a, b, c, sizes, ends, BM, BN, BK, GROUP, MANY)
        block = tl.atomic_add(counter, 1)


@triton.jit(do_not_specialize=["h", "w", "p", "q", "stride", "padding"])
def conv_kernel(
    x, f, y, n, h, w, c, k, p, q, stride, padding,
    R: tl.constexpr, S: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    GROUP: tl.constexpr,
):  # fmt: skip
    """Compute outputs of a block of pixels and channels, filter position by position."""
    block = tl.program_id(0)
    pixels = n * p * q
    rows, columns = tl.cdiv(pixels, BM), tl.cdiv(k, BN)
    first = block // (GROUP * columns) * GROUP
    high = min(rows - first, GROUP)
    at_m = first + block % (GROUP * columns) % high
    at_n = block % (GROUP * columns) // high
    om = at_m * BM + tl.arange(0, BM)
    on = at_n * BN + tl.arange(0, BN)
    ok = tl.arange(0, BK)
    image, row, column = om // (p * q), om // q % p * stride - padding, om % q * stride - padding
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for r in range(R):
        for s in range(S):
            ih, iw = row + r, column + s
            inside = (om < pixels) & (ih >= 0) & (ih < h) & (iw >= 0) & (iw < w)
            px = x + ((image * h + ih) * w + iw)[:, None] * c + ok[None, :]
            pf = f + ((r * S + s) * c + ok)[:, None] * k + on[None, :]
            for step in range(tl.cdiv(c, BK)):
                left = c - step * BK
                a = tl.load(px, mask=inside[:, None] & (ok[None, :] < left), other=0.0)
                b = tl.load(pf, mask=(ok[:, None] < left) & (on[None, :] < k), other=0.0)
                sums = tl.dot(a, b, sums)
                px += BK
                pf += BK * k
    tl.store(
        y + om[:, None] * k + on[None, :],
        sums.to(y.dtype.element_ty),
        mask=(om[:, None] < pixels) & (on[None, :] < k),
    )


def suits(bm: int, bn: int, warps: int) -> bool:
    """Whether a tile gives each warp something to do, and not too much."""
    return 4096 <= bm * bn <= 32_768 if warps == 8 else bm * bn <= 16_384


@functools.cache
def scratch_of(*shape: int) -> torch.Tensor:
    """Give the same memory for parts of sums at each launch."""
    return torch.empty(shape, device="cuda")


class Gemm:
    """Products of a type."""

    def __init__(self, problem: str, kind: str) -> None:
        self.m, self.n, self.k = (int(one) for one in problem.split("x"))
        store, out = TYPES[kind], {"fp8": torch.float16}.get(kind, TYPES[kind])
        a = torch.randn(self.m, self.k, device="cuda") / math.sqrt(self.k)
        b = torch.randn(self.k, self.n, device="cuda")
        self.a, self.is_turned = a.to(store), kind == "fp8"
        self.b = (b.t().contiguous() if self.is_turned else b).to(store)
        self.c = torch.full((self.m, self.n), float("nan"), device="cuda", dtype=out)

    def library(self) -> torch.Tensor:
        if self.is_turned:
            one = torch.ones((), device="cuda")
            return torch._scaled_mm(self.a, self.b.t(), one, one, out_dtype=torch.float16)
        return self.a @ self.b

    def configs(self) -> Iterator[Config]:
        size = self.a.element_size()
        for bm, bn, bk, stages, warps, group in itertools.product(
            (16, 32, 64, 128, 256), (32, 64, 128, 256), (32, 64, 128), (2, 3, 4, 5), (4, 8), (8, 1)
        ):
            # Tiles of fewer rows than wgmma takes hold a stage less in shared memory.
            held = (bm + bn) * bk * (stages - (bm < 64)) * size
            if held <= SHARED and suits(bm, bn, warps) and (group == 8 or self.m >= 8 * bm):
                yield bm, bn, bk, stages, warps, group

    def launch(self, config: Config) -> object:
        bm, bn, bk, stages, warps, group = config
        strides = (1, self.k) if self.is_turned else (self.n, 1)
        grid = (triton.cdiv(self.m, bm) * triton.cdiv(self.n, bn),)
        return gemm_kernel[grid](
            self.a, self.b, self.c, self.m, self.n, self.k, *strides, bm, bn, bk, group,
            num_stages=stages, num_warps=warps,
        )  # fmt: skip

    def result(self) -> torch.Tensor:
        return self.c


class Attention:
    """Attention of a type."""

    def __init__(self, problem: str, kind: str) -> None:
        batch, heads, self.length, self.d, self.causal, *other = map(int, problem.split("x"))
        self.groups = other[0] if other else heads
        self.shared = heads // self.groups
        lengths = {"q": self.length, "k": self.length, "v": self.length}
        self.q, self.k, self.v = (
            torch.randn(
                (batch, heads if name == "q" else self.groups, length, self.d), device="cuda"
            ).to(TYPES[kind])
            for name, length in (lengths | self.queries()).items()
        )
        self.o = torch.full_like(self.q, float("nan"))

    def queries(self) -> dict[str, int]:
        return {}

    def library(self) -> torch.Tensor:
        return scaled_dot_product_attention(
            self.q, self.k, self.v, is_causal=bool(self.causal), enable_gqa=self.shared > 1
        )

    def configs(self) -> Iterator[Config]:
        for bm, bn, stages, warps in itertools.product((64, 128), (32, 64, 128), (2, 3, 4), (4, 8)):
            if (2 * bn * stages + bm) * self.d * 2 <= SHARED:
                yield bm, bn, 0, stages, warps, 8

    def launch(self, config: Config) -> object:
        bm, bn, _, stages, warps, _ = config
        batch, heads = self.q.shape[:2]
        return attention_kernel[(triton.cdiv(self.length, bm), batch * heads)](
            self.q, self.k, self.v, self.o, math.log2(math.e) / math.sqrt(self.d), self.length,
            self.d, bm, bn, self.causal, self.shared, num_stages=stages, num_warps=warps,
        )  # fmt: skip

    def result(self) -> torch.Tensor:
        return self.o


class Decode(Attention):
    """Attention from one query a head, keys split among blocks."""

    def queries(self) -> dict[str, int]:
        return {"q": 1}

    def configs(self) -> Iterator[Config]:
        for bn, stages, warps, split in itertools.product(
            (32, 64, 128), (2, 3, 4), (1, 2, 4, 8), (1, 2, 4, 8, 16, 32, 64, 128)
        ):
            if 2 * bn * max(stages - 1, 1) * self.d * 2 <= SHARED and bn * split <= self.length:
                yield 16, bn, 0, stages, warps, 8, split

    def launch(self, config: Config) -> object:
        bm, bn, _, stages, warps, _, split = config
        heads = self.q.shape[0] * self.groups
        part = scratch_of(heads * split, self.shared, self.d)
        ends = scratch_of(heads * split, self.shared)
        found = decode_kernel[(split, heads)](
            self.q, self.k, self.v, part, ends, math.log2(math.e) / math.sqrt(self.d),
            self.length, self.length // split, self.d, bm, bn, self.shared,
            num_stages=stages, num_warps=warps,
        )  # fmt: skip
        join_kernel[(heads * self.shared,)](part, ends, self.o, self.d, self.shared, split)
        return found


class Split(Gemm):
    """Products whose terms are split among blocks."""

    def configs(self) -> Iterator[Config]:
        for (bm, bn, warps), bk, stages, split in itertools.product(
            ((16, 64, 4), (16, 128, 4), (64, 64, 4), (64, 128, 4), (128, 128, 4), (128, 128, 8)),
            (64, 128), (3, 4), (1, 2, 4, 8, 16, 32),
        ):  # fmt: skip
            if (bm + bn) * bk * stages * 2 <= SHARED and split * bk <= self.k:
                yield bm, bn, bk, stages, warps, 8, split

    def launch(self, config: Config) -> object:
        bm, bn, bk, stages, warps, group, split = config
        each = triton.cdiv(triton.cdiv(self.k, split), bk) * bk
        part = scratch_of(split, self.m, self.n)
        found = split_kernel[(triton.cdiv(self.m, bm) * triton.cdiv(self.n, bn), split)](
            self.a, self.b, part, self.m, self.n, self.k, each, bm, bn, bk, group,
            num_stages=stages, num_warps=warps,
        )  # fmt: skip
        total = self.m * self.n
        add_kernel[(triton.cdiv(total, 1024),)](part, self.c, total, split, 1024)
        return found


class Batch:
    """Batches of products."""

    def __init__(self, problem: str, kind: str) -> None:
        self.batch, self.m, self.n, self.k = map(int, problem.split("x"))
        a = torch.randn(self.batch, self.m, self.k, device="cuda") / math.sqrt(self.k)
        b = torch.randn(self.batch, self.k, self.n, device="cuda")
        self.a, self.b = a.to(TYPES[kind]), b.to(TYPES[kind])
        self.c = torch.full_like(self.a @ self.b, float("nan"))

    def library(self) -> torch.Tensor:
        return self.a @ self.b

    def configs(self) -> Iterator[Config]:
        for bm, bn, bk, stages, warps in itertools.product(
            (16, 32, 64, 128), (32, 64, 128, 256), (32, 64), (2, 3, 4), (4, 8)
        ):
            if suits(bm, bn, warps):
                yield bm, bn, bk, stages, warps, 8

    def launch(self, config: Config) -> object:
        bm, bn, bk, stages, warps, group = config
        return batch_kernel[(triton.cdiv(self.m, bm) * triton.cdiv(self.n, bn), self.batch)](
            self.a, self.b, self.c, self.m, self.n, self.k, bm, bn, bk, group,
            num_stages=stages, num_warps=warps,
        )  # fmt: skip

    def result(self) -> torch.Tensor:
        return self.c


class Listed:
    """Products of unlike sizes in one launch."""

    def __init__(self, problem: str, kind: str) -> None:
        self.products = [tuple(int(size) for size in one.split("x")) for one in problem.split("+")]
        self.table = torch.zeros((MANY, 6), dtype=torch.int64, device="cuda")
        at = [0, 0, 0]
        for row, (m, n, k) in enumerate(self.products):
            self.table[row] = torch.tensor([m, n, k, *at], device="cuda")
            at = [at[0] + m * k, at[1] + k * n, at[2] + m * n]
        self.a = torch.randn(at[0], device="cuda").to(TYPES[kind])
        self.b = torch.randn(at[1], device="cuda").to(TYPES[kind])
        self.c, self.wanted = (
            torch.full((at[2],), float("nan"), device="cuda", dtype=TYPES[kind]) for _ in range(2)
        )
        self.ends: dict[tuple[int, int], tuple[torch.Tensor, int]] = {}

    def library(self) -> torch.Tensor:
        for (m, n, k), (*_, a, b, c) in zip(self.products, self.table.tolist(), strict=False):
            torch.mm(
                self.a[a : a + m * k].view(m, k), self.b[b : b + k * n].view(k, n),
                out=self.wanted[c : c + m * n].view(m, n),
            )  # fmt: skip
        return self.wanted

    def configs(self) -> Iterator[Config]:
        for bm, bn, bk, stages, warps in itertools.product(
            (16, 32, 64, 128), (32, 64, 128, 256), (32, 64), (2, 3, 4), (4, 8)
        ):
            if suits(bm, bn, warps):
                yield bm, bn, bk, stages, warps, 8

    def listed(self, bm: int, bn: int) -> tuple[torch.Tensor, int]:
        """Say where each product's tiles begin, and how many there are of all."""
        if (bm, bn) not in self.ends:
            tiles = [triton.cdiv(m, bm) * triton.cdiv(n, bn) for m, n, _ in self.products]
            ends = [*itertools.accumulate(tiles, initial=0)]
            later = [2**31 - 1] * (MANY - len(tiles))
            self.ends[bm, bn] = (
                torch.tensor(ends + later, dtype=torch.int32, device="cuda"), ends[-1]
            )  # fmt: skip
        return self.ends[bm, bn]

    def launch(self, config: Config) -> object:
        bm, bn, bk, stages, warps, group = config
        ends, total = self.listed(bm, bn)
        return grouped_kernel[(total,)](
            self.a, self.b, self.c, self.table, ends, bm, bn, bk, group, MANY,
            num_stages=stages, num_warps=warps,
        )  # fmt: skip

    def result(self) -> torch.Tensor:
        return self.c


class Persistent(Listed):
    """The same, by blocks that stay."""

    def __init__(self, problem: str, kind: str) -> None:
        super().__init__(problem, kind)
        self.blocks: dict[Config, int] = {}
        # Of each launch, 16 bytes apart so that they do not change what is compiled.
        self.counters = torch.zeros((32_768, 4), dtype=torch.int32, device="cuda")
        self.launches = 0

    def launch(self, config: Config) -> object:
        bm, bn, bk, stages, warps, group = config
        ends, total = self.listed(bm, bn)
        counter = self.counters[self.launches]
        self.launches += 1
        # The first time one block does it all, and says how many run at a time.
        found = persistent_kernel[(min(self.blocks.get(config, 1), total),)](
            self.a, self.b, self.c, self.table, ends, total, counter, bm, bn, bk, group, MANY,
            num_stages=stages, num_warps=warps,
        )  # fmt: skip
        if config not in self.blocks:
            of_warp = triton.cdiv(found.n_regs * 32, 256) * 256
            by_registers = 65_536 // of_warp // 4 * 4 // warps
            held = min(by_registers, 233_472 // (found.metadata.shared + 1024), 64 // warps, 32)
            sms = torch.cuda.get_device_properties("cuda").multi_processor_count
            self.blocks[config] = sms * held
        return found


class Convolution:
    """Convolutions of a type."""

    def __init__(self, problem: str, kind: str) -> None:
        sizes = [int(one) for one in problem.split("x")]
        self.n, self.h, self.w, self.c, self.k, self.r, self.s, self.stride, self.pad = sizes
        self.p = (self.h + 2 * self.pad - self.r) // self.stride + 1
        self.q = (self.w + 2 * self.pad - self.s) // self.stride + 1
        self.x = torch.randn(self.n, self.h, self.w, self.c, device="cuda").to(TYPES[kind])
        f = torch.randn(self.r, self.s, self.c, self.k, device="cuda")
        self.f = (f / math.sqrt(self.r * self.s * self.c)).to(TYPES[kind])
        self.y = torch.full(
            (self.n, self.p, self.q, self.k), float("nan"), device="cuda", dtype=TYPES[kind]
        )
        self.images = self.x.permute(0, 3, 1, 2)
        self.filters = self.f.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)

    def library(self) -> torch.Tensor:
        found = conv2d(self.images, self.filters, stride=self.stride, padding=self.pad)
        return found.permute(0, 2, 3, 1)

    def configs(self) -> Iterator[Config]:
        for bm, bn, bk, stages, warps in itertools.product(
            (32, 64, 128, 256), (32, 64, 128, 256), (32, 64), (2, 3, 4), (4, 8)
        ):
            if suits(bm, bn, warps):
                yield bm, bn, bk, stages, warps, 8

    def launch(self, config: Config) -> object:
        bm, bn, bk, stages, warps, group = config
        grid = (triton.cdiv(self.n * self.p * self.q, bm) * triton.cdiv(self.k, bn),)
        return conv_kernel[grid](
            self.x, self.f, self.y, self.n, self.h, self.w, self.c, self.k, self.p, self.q,
            self.stride, self.pad, self.r, self.s, bm, bn, bk, group,
            num_stages=stages, num_warps=warps,
        )  # fmt: skip

    def result(self) -> torch.Tensor:
        return self.y


KINDS = {
    "gemm": (Gemm, GEMM),
    "attn": (Attention, ATTENTION),
    "conv": (Convolution, CONVOLUTION),
    "decode": (Decode, DECODE),
    "split": (Split, SPLIT),
    "batch": (Batch, BATCH),
    "grouped": (Listed, GROUPED),
    "persistent": (Persistent, GROUPED),
}
# Problems that compile every kernel that any of a kind's problems needs.
SAMPLES = {
    "gemm": ("2048x768x3072",),
    "attn": tuple(
        f"1x{heads}x256x{d}x{causal}x1"
        for heads, d, causal in (
            *itertools.product((1,), (64, 128, 256), (0, 1)), (4, 128, 1), (8, 128, 1), (2, 256, 0)
        )
    ),
    "conv": (
        "1x14x14x64x64x3x3x1x1", "16x14x14x64x64x3x3x1x1", "16x14x14x64x64x1x1x1x0",
        "16x14x14x64x64x5x5x1x2",
    ),
    "decode": ("1x4x4096x128x0x1", "1x8x4096x128x0x1", "1x1x4096x64x0x1"),
    "split": ("64x512x4096",),
    "batch": ("2x512x512x512",),
    "grouped": ("256x512x256+20x512x256",),
    "persistent": ("256x512x256+20x512x256",),
}  # fmt: skip


def compiled(work: tuple[str, str, str, list[Config]]) -> None:
    """Compile configurations of a problem in a process of its own, into the cache on disk."""
    kind, data_type, problem, configs = work
    one = KINDS[kind][0](problem, data_type)
    for config in configs:
        try:
            one.launch(config)
        except Exception:  # said again when it is timed
            continue
    torch.cuda.synchronize()


def compile_all(kind: str, data_type: str, samples: Sequence[str], cores: int) -> None:
    """Compile what any of the problems needs, once: kernels differ by few of a problem's sizes."""
    work = []
    for problem in samples:
        configs = list(KINDS[kind][0](problem, data_type).configs())
        work += [(kind, data_type, problem, configs[at::cores]) for at in range(cores)]
    with multiprocessing.get_context("spawn").Pool(cores) as pool:
        pool.map(compiled, work, chunksize=1)


def timed(run: Callable[[], object], scratch: torch.Tensor, repeats: int = REPEATS) -> float:
    """Return the median time of cold runs in microseconds."""
    times: list[float] = []
    while len(times) < repeats:
        events = []
        for _ in range(min(repeats - len(times), 4)):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            scratch.zero_()
            torch.cuda._sleep(200_000)  # so that launching takes no part in the time
            begin.record()
            run()
            end.record()
            events.append((begin, end))
        torch.cuda.synchronize()
        times += [1e3 * begin.elapsed_time(end) for begin, end in events]
        if times[0] > 2000:
            repeats = min(repeats, 6)
    return statistics.median(times)


def rows_of(kind: str, data_type: str, problem: str, scratch: torch.Tensor) -> Iterator[dict]:
    """Time the library and every configuration of a problem."""
    one = KINDS[kind][0](problem, data_type)
    shared = {"data_type": data_type, "kind": kind, "problem": problem}
    shared["gpu"] = torch.cuda.get_device_name()
    wanted = one.library()
    one.library()
    yield shared | {"block_m": "library", "time_us": f"{timed(one.library, scratch):.3f}"}
    names = COLUMNS[4:11]
    for config in one.configs():
        row: dict[str, object] = shared | dict(zip(names, config))  # noqa: B905
        try:
            kernel = one.launch(config)
            row |= {"registers": kernel.n_regs, "spills": kernel.n_spills}
            row["shared_bytes"] = kernel.metadata.shared
            one.result().fill_(float("nan"))
            one.launch(config)
            found = one.result().float()
            error = ((found - wanted.float()).norm() / wanted.float().norm()).item()
            if not error < 0.02:
                print("WRONG", kind, data_type, problem, config, error, flush=True)
                continue
            row["time_us"] = f"{timed(lambda c=config: one.launch(c), scratch):.3f}"
        except Exception as error:
            print("did not run", kind, data_type, problem, config, str(error)[:80], flush=True)
            row["time_us"] = ""
        yield row


def again(
    kind: str, data_type: str, problem: str, configs: dict[str, list[Config]], scratch: torch.Tensor
) -> Iterator[dict]:
    """Time some configurations once more, taking turns."""
    one = KINDS[kind][0](problem, data_type)
    every = list(dict.fromkeys(config for some in configs.values() for config in some))
    series: dict[Config, list[float]] = {config: [] for config in every}
    for _ in range(AGAIN):
        for config, times in series.items():
            times.append(timed(lambda c=config: one.launch(c), scratch, 1))
    for why, some in configs.items():
        for config in some:
            yield {
                **dict(zip(COLUMNS[4:11], config)),  # noqa: B905
                "gpu": torch.cuda.get_device_name(),
                "data_type": data_type,
                "kind": f"{kind} {why}",
                "problem": problem,
                "time_us": f"{statistics.median(series[config]):.3f}",
            }


def main() -> None:
    """Measure what is asked for, until the time is up."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("out")
    parser.add_argument("what", nargs="+")
    parser.add_argument("--seconds", type=float, default=560)
    parser.add_argument("--cores", type=int, default=16)
    parser.add_argument("--first", type=int, help="only so many problems of each")
    parser.add_argument("--seed", default="", help="of what is drawn")
    parser.add_argument("--choices", help="file of drawn_problems.py")
    given = parser.parse_args()
    start = time.monotonic()
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(0)
    scratch = torch.empty(256_000_000, dtype=torch.int8, device="cuda")
    choices = json.loads(Path(given.choices).read_text("utf-8")) if given.choices else {}
    with (
        open(given.out, "w", encoding="utf-8", newline="") as file,
        open(f"{given.out}.again.csv", "w", encoding="utf-8", newline="") as other,
    ):
        writer, beside = csv.DictWriter(file, COLUMNS), csv.DictWriter(other, COLUMNS)
        writer.writeheader()
        beside.writeheader()
        for what in given.what:
            kind, data_type, named = [*what.split(":"), ""][:3]
            problems = KINDS[kind][1]
            if named:
                problems = named.split(",")
                if named[:5] == "drawn":
                    problems = drawn(kind, int(named[5:] or 10), given.seed)
            elif kind == "gemm" and data_type != "fp16":
                problems = FEW
            samples = problems if named and kind == "conv" else SAMPLES[kind]
            compile_all(kind, data_type, samples, given.cores)
            print(what, "compiled", f"{time.monotonic() - start:.0f} s", flush=True)
            for problem in problems[: given.first]:
                if time.monotonic() - start > given.seconds:
                    print("time is up before", what, problem, flush=True)
                    return
                rows = list(rows_of(kind, data_type, problem, scratch))
                writer.writerows(rows)
                file.flush()
                if first := choices.get(f"{kind}:{data_type}:{problem}"):
                    ran = [row for row in rows if row["block_m"] != "library" and row["time_us"]]
                    ran.sort(key=lambda row: float(row["time_us"]))
                    names = [name for name in COLUMNS[4:11] if name in ran[0]]
                    best = [tuple(row[name] for name in names) for row in ran[:FASTEST]]
                    timed_again = {"again": best, "chosen": [tuple(one) for one in first]}
                    beside.writerows(again(kind, data_type, problem, timed_again, scratch))
                    other.flush()
                torch.cuda.empty_cache()
                print(what, problem, f"{time.monotonic() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
