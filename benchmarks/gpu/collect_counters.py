"""Launch a tiled matrix product once for each row of a file of counters; write down the rows.

    python benchmarks/gpu/collect_counters.py launched.csv

Run it under a profiler that counts; docs/counters.md has the command.
"""

from __future__ import annotations

import csv
import sys

import torch
import triton
import triton.language as tl

SHAPE = (4096, 4096, 4096)
TILES = ((128, 128, 1), (128, 128, 8), (64, 64, 8), (128, 256, 8))


@triton.jit
def gemm_kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, G: tl.constexpr):  # fmt: skip
    """Blocks in groups of G rows of tiles; all matrices by rows, K a multiple of BK."""
    pid = tl.program_id(0)
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    first = pid // (G * columns) * G
    high = min(rows - first, G)
    m = (first + pid % (G * columns) % high) * BM + tl.arange(0, BM)
    n = pid % (G * columns) // high * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    pa = a + m[:, None] * K + k[None, :]
    pb = b + k[:, None] * N + n[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(tl.cdiv(K, BK)):
        x = tl.load(pa, mask=m[:, None] < M, other=0.0)
        y = tl.load(pb, mask=n[None, :] < N, other=0.0)
        acc = tl.dot(x, y, acc)
        pa += BK
        pb += BK * N
    tl.store(c + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


def main() -> None:
    m, n, k = SHAPE
    a, b = torch.randn(m, k, device="cuda"), torch.randn(k, n, device="cuda")
    want = a[:2].double() @ b.double()
    with open(sys.argv[1], "w", newline="") as file:
        out = csv.DictWriter(file, ["problem", "schedule"])
        out.writeheader()
        for rows, columns, group in TILES:
            c = torch.full((m, n), float("nan"), device="cuda")
            grid = (triton.cdiv(m, rows) * triton.cdiv(n, columns),)
            warps = 8 if rows * columns >= 2**14 else 4
            sizes = {"BM": rows, "BN": columns, "BK": 32, "G": group}
            gemm_kernel[grid](a, b, c, m, n, k, **sizes, num_warps=warps, num_stages=3)
            if c.isnan().any() or (c[:2] - want).norm() > 2e-3 * want.norm():
                sys.exit("wrong result")
            schedule = (
                f"M:{m}@SM N:{n}@SM M:{min(m, group * rows)}@SM K:{k} M:{rows} N:{columns} K:32"
            )
            out.writerow({"problem": f"gemm:m={m},n={n},k={k}", "schedule": schedule})


if __name__ == "__main__":
    main()
