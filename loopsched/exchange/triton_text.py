"""Texts of the kernels that `to_triton_kernel` writes; what begins with $ is filled in.

Each has ``data``, whose last tensor takes the result; ``run``, on these; and ``wanted``, the
result by torch of all but the last.
"""

from __future__ import annotations

from string import Template

HEAD = '''"""$about

Chosen by loopsched for $arch, $data_type. Run it on a GPU with torch and Triton:
it checks its result against torch's, times itself and prints both.
"""

${imports}import torch
import triton
import triton.language as tl

STORED = $stored
'''

END = """

def main():
    *given, found = data()
    run(*given, found)
    right = wanted(*given).float()
    off = (found.float() - right).abs().max().item()
    limit = 0.02 * right.abs().max().item()
    if not off <= limit:
        raise SystemExit(f"wrong: {off} off, {limit} is allowed")
    time_us = 1e3 * triton.testing.do_bench(lambda: run(*given, found))
    print(f"right (largest difference {off:.3g}); {time_us:.1f} us")


if __name__ == "__main__":
    main()
"""

_TILED = """$names
BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M = $block_m, $block_n, $block_k, $group_m
STAGES, WARPS = $stages, $warps


@triton.jit
def kernel(
    $arguments,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):
    block = tl.program_id(0)
$begin    down, across = tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N)
    first = block // (GROUP_M * across) * GROUP_M
    high = min(down - first, GROUP_M)
    row = first + block % (GROUP_M * across) % high
    column = block % (GROUP_M * across) // high
    rows = (row * BLOCK_M + tl.arange(0, BLOCK_M)) % m
    columns = (column * BLOCK_N + tl.arange(0, BLOCK_N)) % n
    terms = tl.arange(0, BLOCK_K)
    at_a = a + rows[:, None] * k + terms[None, :]
    at_b = b + terms[:, None] * b_row + columns[None, :] * b_column
    sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(tl.cdiv($terms, BLOCK_K)):
        left = $terms - step * BLOCK_K
        x = tl.load(at_a, mask=terms[None, :] < left, other=0.0)
        y = tl.load(at_b, mask=terms[:, None] < left, other=0.0)
        sums = tl.dot(x, y, sums)
        at_a += BLOCK_K
        at_b += BLOCK_K * b_row
    rows = row * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = column * BLOCK_N + tl.arange(0, BLOCK_N)
    tl.store(
        c + rows[:, None] * n + columns[None, :],
        sums.to(c.dtype.element_ty),
        mask=(rows[:, None] < m) & (columns[None, :] < n),
    )

"""


def _tiled(names: str, arguments: str, begin: str, terms: str = "k") -> str:
    return Template(_TILED).safe_substitute(
        names=names, arguments=arguments, begin=begin, terms=terms
    )


_RUN = '''
def run(a, b, c):
    """C = A B; A is$each M x K, C$each M x N, both row-major; B$each K x N in any order."""
    tiles = triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N)
    kernel[(tiles$grid)](
        a, b, c, M, N, K, b.stride(-2), b.stride(-1), BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M,
        num_stages=STAGES, num_warps=WARPS,
    )

'''
_OPERANDS = """
def data():
    a = (torch.randn($shape M, K, device="cuda") / K**0.5).to(STORED)
    b = torch.randn($shape K, N, device="cuda")
    b = b.mT.contiguous().to(STORED).mT if STORED.itemsize == 1 else b.to(STORED)
    result = torch.float16 if STORED.itemsize == 1 else STORED
    return a, b, torch.empty($shape M, N, device="cuda", dtype=result)


def wanted(a, b):
    return a.float() @ b.float()
"""
_ARGUMENTS = "a, b, c, m, n$n_is, k$k_is, b_row$n_is, b_column$k_is"

GEMM = (
    _tiled("M, N, K = $m, $n, $k", _ARGUMENTS, "")
    + Template(_RUN).substitute(each="", grid=",")
    + _OPERANDS.replace("$shape ", "")
)
BATCH = (
    _tiled(
        "BATCH, M, N, K = $batch, $m, $n, $k",
        _ARGUMENTS,
        """    which = tl.program_id(1).to(tl.int64)
    a, b, c = a + which * m * k, b + which * k * n, c + which * m * n
""",
    )
    + Template(_RUN).substitute(each=" BATCH x", grid=", BATCH")
    + _OPERANDS.replace("$shape", "BATCH,")
)
SPLIT = (
    _tiled(
        "M, N, K, SPLIT_K = $m, $n, $k, $split_k",
        f"{_ARGUMENTS}, each",
        """    part = tl.program_id(1).to(tl.int64)
    here = tl.minimum(k - part * each, each)
    a, b, c = a + part * each, b + part * each * b_row, c + part * m * n
""",
        "here",
    )
    + '''
@triton.jit
def add(parts, c, elements, SPLIT_K: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    sums = tl.zeros((BLOCK,), dtype=tl.float32)
    for part in range(SPLIT_K):
        sums += tl.load(parts + part * elements + at, mask=at < elements, other=0.0)
    tl.store(c + at, sums.to(c.dtype.element_ty), mask=at < elements)


@functools.cache
def sums():
    return torch.empty(SPLIT_K, M, N, device="cuda", dtype=torch.float32)


def run(a, b, c):
    """C = A B; A is M x K, C M x N, both row-major; B K x N in any order."""
    tiles = triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N)
    each = triton.cdiv(triton.cdiv(K, SPLIT_K), BLOCK_K) * BLOCK_K
    kernel[(tiles, SPLIT_K)](
        a, b, sums(), M, N, K, b.stride(-2), b.stride(-1), each,
        BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M, num_stages=STAGES, num_warps=WARPS,
    )
    add[(triton.cdiv(M * N, 1024),)](sums(), c, M * N, SPLIT_K, 1024)

'''
    + _OPERANDS.replace("$shape ", "")
)
GROUPED = (
    _tiled(
        "PRODUCTS = $products",
        "a, b, c, sizes, ends, MANY: tl.constexpr",
        """    # Tiles of a product come before those of the next.
    which = tl.sum((tl.load(ends + 1 + tl.arange(0, MANY)) <= block).to(tl.int32), 0)
    block -= tl.load(ends + which)
    here = sizes + which * 6
    m = tl.load(here).to(tl.int32)
    n = tl.multiple_of(tl.load(here + 1).to(tl.int32), $unit)
    k = tl.multiple_of(tl.load(here + 2).to(tl.int32), $unit)
    a += tl.multiple_of(tl.load(here + 3), $unit)
    b += tl.multiple_of(tl.load(here + 4), $unit)
    c += tl.multiple_of(tl.load(here + 5), $unit)
    b_row, b_column = n, 1
""",
    )
    + '''
@functools.cache
def table():
    """Sizes of each product and where its operands begin; where its tiles begin."""
    rows, tiles, at = [], [0], [0, 0, 0]
    for m, n, k in PRODUCTS:
        rows.append([m, n, k, *at])
        at = [at[0] + m * k, at[1] + k * n, at[2] + m * n]
        tiles.append(tiles[-1] + triton.cdiv(m, BLOCK_M) * triton.cdiv(n, BLOCK_N))
    rest = triton.next_power_of_2(len(PRODUCTS)) - len(PRODUCTS)
    sizes = torch.tensor(rows + [[0] * 6] * rest, dtype=torch.int64, device="cuda")
    ends = torch.tensor(tiles + [2**31 - 1] * rest, dtype=torch.int32, device="cuda")
    return sizes, ends, len(PRODUCTS) + rest, tiles[-1]


def run(a, b, c):
    """C = A B for each product, all row-major, one after the other in a, b and c."""
    sizes, ends, many, tiles = table()
    kernel[(tiles,)](
        a, b, c, sizes, ends, many, BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M,
        num_stages=STAGES, num_warps=WARPS,
    )


def data():
    a = [torch.randn(m * k, device="cuda") / k**0.5 for m, n, k in PRODUCTS]
    b = [torch.randn(k * n, device="cuda") for m, n, k in PRODUCTS]
    c = torch.empty(sum(m * n for m, n, k in PRODUCTS), device="cuda", dtype=STORED)
    return torch.cat(a).to(STORED), torch.cat(b).to(STORED), c


def wanted(a, b):
    found = []
    for m, n, k in PRODUCTS:
        found.append((a[: m * k].view(m, k).float() @ b[: k * n].view(k, n).float()).flatten())
        a, b = a[m * k :], b[k * n :]
    return torch.cat(found)
'''
)

_ATTENTION_SIZES = """BATCH, HEADS, GROUPS, QUERIES, KEYS = $batch, $heads, $groups, $queries, $keys
SIZE, COLUMNS, CAUSAL = $size, $columns, $causal
BLOCK_M, BLOCK_N = $block_m, $block_n
STAGES, WARPS = $stages, $warps
"""
_ATTENTION_DATA = """
def data():
    q = torch.randn(BATCH, HEADS, QUERIES, SIZE, device="cuda").to(STORED)
    k, v = (torch.randn(BATCH, GROUPS, KEYS, SIZE, device="cuda").to(STORED) for _ in "kv")
    return q, k, v, torch.empty_like(q)


def wanted(q, k, v):
    seen = None
    if CAUSAL and QUERIES < KEYS:
        seen = torch.ones(QUERIES, KEYS, device="cuda", dtype=torch.bool).tril(KEYS - QUERIES)
    return torch.nn.functional.scaled_dot_product_attention(
        q, k, v, seen, is_causal=bool(CAUSAL) and seen is None, enable_gqa=GROUPS < HEADS
    )
"""
# Keys of a step: scores, softmax, and their values into the sums.
_STEP = """
    for at in range($start, $end, BLOCK_N):
        here = at + on
        y = tl.load(k + here[None, :] * SIZE + od[:, None]$key_mask)
        s = tl.dot(x, y) * scale$shown
        now = tl.maximum(most, tl.max(s, 1))
        p = tl.math.exp2(s - now[:, None])
        shrink = tl.math.exp2(most - now)
        total = total * shrink + tl.sum(p, 1)
        sums = sums * shrink[:, None]
        z = tl.load(v + here[:, None] * SIZE + od[None, :]$value_mask)
        sums = tl.dot(p.to(z.dtype), z, sums)
        most = now
"""
_NOTHING = """    most = tl.full((BLOCK_M,), $low, dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    sums = tl.zeros((BLOCK_M, COLUMNS), dtype=tl.float32)"""

ATTENTION = (
    _ATTENTION_SIZES
    + '''

@triton.jit
def kernel(
    q, k, v, o, scale, queries, keys,
    SIZE: tl.constexpr, COLUMNS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    SHARED: tl.constexpr,
):
    """Attend from a block of queries of one head; SHARED heads of queries have the same keys."""
    start, head = tl.program_id(0) * BLOCK_M, tl.program_id(1)
    q, o = q + head.to(tl.int64) * queries * SIZE, o + head.to(tl.int64) * queries * SIZE
    k += (head // SHARED).to(tl.int64) * keys * SIZE
    v += (head // SHARED).to(tl.int64) * keys * SIZE
    om, on, od = start + tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N), tl.arange(0, COLUMNS)
    x = tl.load(q + om[:, None] * SIZE + od[None, :]$query_mask)
'''
    + _NOTHING
    + _STEP
    + '''    tl.store(
        o + om[:, None] * SIZE + od[None, :],
        (sums / total[:, None]).to(o.dtype.element_ty),
        mask=(om[:, None] < queries) & (od[None, :] < SIZE),
    )


def run(q, k, v, o):
    """Attend; q and o are BATCH x HEADS x QUERIES x SIZE, k and v BATCH x GROUPS x KEYS x SIZE."""
    scale = 1.4426950408889634 / SIZE**0.5  # for exponents to the base 2
    kernel[(triton.cdiv(QUERIES, BLOCK_M), BATCH * HEADS)](
        q, k, v, o, scale, QUERIES, KEYS, SIZE, COLUMNS, BLOCK_M, BLOCK_N, HEADS // GROUPS,
        num_stages=STAGES, num_warps=WARPS,
    )

'''
    + _ATTENTION_DATA
)
DECODE = (
    _ATTENTION_SIZES
    + '''SPLIT_K = $split_k


@triton.jit
def kernel(
    q, k, v, parts, ends, scale, queries, keys, each,
    SIZE: tl.constexpr, COLUMNS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    ROWS: tl.constexpr,
):
    """Attend from all queries of a head of keys to one part of these keys."""
    split, head = tl.program_id(0), tl.program_id(1)
    begin = split * each
    k, v = k + head.to(tl.int64) * keys * SIZE, v + head.to(tl.int64) * keys * SIZE
    om, on, od = tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N), tl.arange(0, COLUMNS)
    x = tl.load(
        q + (head * ROWS + om[:, None]) * SIZE + od[None, :],
        mask=(om[:, None] < ROWS) & (od[None, :] < SIZE),
        other=0.0,
    )
'''
    + _NOTHING
    + _STEP
    + '''    block = head * tl.num_programs(0) + split
    tl.store(
        parts + (block * ROWS + om[:, None]) * SIZE + od[None, :],
        sums / tl.where(total > 0, total, 1.0)[:, None],
        mask=(om[:, None] < ROWS) & (od[None, :] < SIZE),
    )
    tl.store(ends + block * ROWS + om, most + tl.math.log2(total), mask=om < ROWS)


@triton.jit
def join(
    parts, ends, o, split,
    SIZE: tl.constexpr, COLUMNS: tl.constexpr, ROWS: tl.constexpr, SPLIT_K: tl.constexpr,
):
    """Join the parts of a query's sums, each as much as its keys weigh."""
    query = tl.program_id(0)
    os, od = tl.arange(0, SPLIT_K), tl.arange(0, COLUMNS)
    at = (query // ROWS * split + os) * ROWS + query % ROWS
    end = tl.load(ends + at, mask=os < split, other=float("-inf"))
    share = tl.math.exp2(end - tl.max(end, 0))
    within = (os[:, None] < split) & (od[None, :] < SIZE)
    x = tl.load(parts + at[:, None] * SIZE + od[None, :], mask=within, other=0.0)
    found = tl.sum(x * share[:, None], 0) / tl.sum(share, 0)
    tl.store(o + query * SIZE + od, found.to(o.dtype.element_ty), mask=od < SIZE)


@functools.cache
def memory(split):
    rows = BATCH * HEADS * QUERIES * split
    return [torch.empty(rows * size, device="cuda", dtype=torch.float32) for size in (SIZE, 1)]


def run(q, k, v, o):
    """Attend; q and o are BATCH x HEADS x QUERIES x SIZE, k and v BATCH x GROUPS x KEYS x SIZE."""
    scale = 1.4426950408889634 / SIZE**0.5  # for exponents to the base 2
    each = triton.cdiv(triton.cdiv(KEYS, SPLIT_K), BLOCK_N) * BLOCK_N
    split, rows = triton.cdiv(KEYS, each), HEADS // GROUPS * QUERIES
    parts, ends = memory(split)
    kernel[(split, BATCH * GROUPS)](
        q, k, v, parts, ends, scale, QUERIES, KEYS, each,
        SIZE, COLUMNS, BLOCK_M, BLOCK_N, rows, num_stages=STAGES, num_warps=WARPS,
    )
    join[(BATCH * HEADS * QUERIES,)](parts, ends, o, split, SIZE, COLUMNS, rows, SPLIT_K)

'''
    + _ATTENTION_DATA
)

CONV = '''N, H, W, C, K = $n, $h, $w, $c, $k
R, S, P, Q = $r, $s, $p, $q
STRIDE, DILATION, PADDING = $stride, $dilation, $padding
BLOCK_M, BLOCK_N, BLOCK_K = $block_m, $block_n, $block_k
STAGES, WARPS = $stages, $warps
GROUP_M = 8


@triton.jit
def kernel(
    x, f, y, n, h, w, c$c_is, k$k_is, p, q, down, across, hole_h, hole_w, top, left,
    R: tl.constexpr, S: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):
    block = tl.program_id(0)
    pixels = n * p * q
    tiles, wide = tl.cdiv(pixels, BLOCK_M), tl.cdiv(k, BLOCK_N)
    first = block // (GROUP_M * wide) * GROUP_M
    high = min(tiles - first, GROUP_M)
    om = (first + block % (GROUP_M * wide) % high) * BLOCK_M + tl.arange(0, BLOCK_M)
    on = block % (GROUP_M * wide) // high * BLOCK_N + tl.arange(0, BLOCK_N)
    ok = tl.arange(0, BLOCK_K)
    image, row, column = om // (p * q), om // q % p * down - top, om % q * across - left
    sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for r in range(R):
        for s in range(S):
            ih, iw = row + r * hole_h, column + s * hole_w
            inside = (om < pixels) & (ih >= 0) & (ih < h) & (iw >= 0) & (iw < w)
            at_x = x + ((image * h + ih) * w + iw)[:, None] * c + ok[None, :]
            at_f = f + ((r * S + s) * c + ok)[:, None] * k + on[None, :]
            for step in range(tl.cdiv(c, BLOCK_K)):
                rest = c - step * BLOCK_K
                a = tl.load(at_x, mask=inside[:, None] & (ok[None, :] < rest), other=0.0)
                b = tl.load(at_f, mask=(ok[:, None] < rest) & (on[None, :] < k), other=0.0)
                sums = tl.dot(a, b, sums)
                at_x += BLOCK_K
                at_f += BLOCK_K * k
    tl.store(
        y + om[:, None] * k + on[None, :],
        sums.to(y.dtype.element_ty),
        mask=(om[:, None] < pixels) & (on[None, :] < k),
    )


def run(x, f, y):
    """Convolve: x is N H W C, f is R S C K, y is N P Q K."""
    kernel[(triton.cdiv(N * P * Q, BLOCK_M) * triton.cdiv(K, BLOCK_N),)](
        x, f, y, N, H, W, C, K, P, Q, *STRIDE, *DILATION, PADDING[0], PADDING[2], R, S,
        BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M, num_stages=STAGES, num_warps=WARPS,
    )


def data():
    x = torch.randn(N, H, W, C, device="cuda").to(STORED)
    f = (torch.randn(R, S, C, K, device="cuda") / (R * S * C) ** 0.5).to(STORED)
    return x, f, torch.empty(N, P, Q, K, device="cuda", dtype=STORED)


def wanted(x, f):
    top, bottom, left, right = PADDING
    images = torch.nn.functional.pad(x.permute(0, 3, 1, 2).float(), (left, right, top, bottom))
    return torch.nn.functional.conv2d(
        images, f.permute(3, 2, 0, 1).float(), stride=STRIDE, dilation=DILATION
    ).permute(0, 2, 3, 1)
'''
