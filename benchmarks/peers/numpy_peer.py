"""Enumeration of every ceil class for one buffer with numpy: prints one JSON line.

    python numpy_peer.py "gemm 4096x4096x4096" [--capacity BYTES] [--how literal|plain|tuned]

It scores every useful tile size of every dimension under every order class that can win, with
footprints that are exact at edges and between strides: the plain way to a proven optimum at one
level.  ``literal`` writes out columns of every tile vector, scores each order by itself and, like
the known optima, leaves filters untiled; ``plain`` tiles filters too, but shares tables between
tile vectors; ``tuned`` also drops what does not fit before it is scored, and shares sums.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

import common
import numpy as np

Ints = Any
NEVER = 2**62
CHUNK = 100_000


def ceil_classes(size: int) -> Ints:
    """Smallest tile of each trip count."""
    tiles = np.arange(1, size + 1)
    return np.unique(-(-size // np.unique(-(-size // tiles))))


def reach(step: int, p: Ints, r: Ints) -> Ints:
    """Distinct input positions of p outputs and r filter taps."""
    return np.where(r >= step, step * (p - 1) + r, p * r)


def parts(size: int, tiles: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Full tiles and the last one: how many, how large."""
    last = size % tiles
    return tiles, size // tiles, last, (last > 0).astype(np.int64)


def axis_tables(step: int, p: int, r: int, p_tiles: Ints, r_tiles: Ints) -> dict[str, Ints]:
    """Footprints of one image axis for each pair of tiles: largest, summed, as unions."""
    sides_p, sides_r = parts(p, p_tiles[:, None]), parts(r, r_tiles[None, :])
    total = np.zeros((len(p_tiles), len(r_tiles)), dtype=np.int64)
    for size_p, count_p in (sides_p[:2], sides_p[2:]):
        for size_r, count_r in (sides_r[:2], sides_r[2:]):
            some = np.where((size_p > 0) & (size_r > 0), reach(step, size_p, size_r), 0)
            total += count_p * count_r * some
    along_p = sum(
        count * np.where(size > 0, reach(step, p, size), 0)
        for size, count in (sides_r[:2], sides_r[2:])
    )
    along_r = sum(
        count * np.where(size > 0, reach(step, size, r), 0)
        for size, count in (sides_p[:2], sides_p[2:])
    )
    return {
        "tile": reach(step, p_tiles[:, None], r_tiles[None, :]),
        "sum": total,
        "along_p": np.broadcast_to(along_p, total.shape),
        "along_r": np.broadcast_to(along_r, total.shape),
    }


def outer_product(*columns: Ints) -> list[Ints]:
    """Flat columns of every combination."""
    return [grid.ravel() for grid in np.meshgrid(*columns, indexing="ij")]


def chunks(size: int, width: int) -> list[slice]:
    """Slices of rows so that a grid of them stays in the cache."""
    step = max(1, CHUNK // width)
    return [slice(start, start + step) for start in range(0, size, step)]


def best_gemm(sizes: dict[str, int], capacity: int, is_tuned: bool) -> int:
    m, n, k = sizes["m"], sizes["n"], sizes["k"]
    tm, tn = outer_product(ceil_classes(m), ceil_classes(n))
    tk = ceil_classes(k)
    nk = -(-k // tk)
    best = 2**62
    for rows in chunks(len(tm), len(tk)):
        one, two = tm[rows, None], tn[rows, None]
        fits = one * two + (one + two) * tk <= capacity
        nm, nn, c = -(-m // one), -(-n // two), m * n * (2 * nk - 1)
        a, b = m * k * nn, k * n * nm
        if is_tuned:  # the least over whatever fits, class by class, from shared sums
            least_c = np.where(fits, c, NEVER).min(axis=1)
            some = least_c < NEVER
            if some.any():
                a, b = a[some, 0], b[some, 0]
                outside = np.minimum(a + k * n, m * k + b) + least_c[some]
                best = min(best, int(outside.min()), int((a + b).min()) + m * n)
            continue
        for cost in (a + b + m * n, a + k * n + c, m * k + b + c):
            best = min(best, int(np.where(fits, cost, NEVER).min()))
    return best


def best_conv(sizes: dict[str, int], capacity: int, is_tuned: bool) -> int:
    tiles = {dim: ceil_classes(sizes[dim]) for dim in "nkcpqrs"}
    trips = {dim: -(-sizes[dim] // tiles[dim]) for dim in "nkcpqrs"}
    step = sizes["stride"]
    rows = axis_tables(step, sizes["p"], sizes["r"], tiles["p"], tiles["r"])
    columns = axis_tables(step, sizes["q"], sizes["s"], tiles["q"], tiles["s"])
    weight = sizes["k"] * sizes["c"] * sizes["r"] * sizes["s"]
    output = sizes["n"] * sizes["k"] * sizes["p"] * sizes["q"]
    planes = sizes["n"] * sizes["c"]

    # Inner columns: every (p, r, q, s).  Outer rows: every (n, k, c).
    def inner(row: Ints, column: Ints) -> Ints:
        return (row[:, :, None, None] * column[None, None]).ravel()

    image = inner(rows["tile"], columns["tile"])
    one = {dim: np.ones_like(tiles[dim]) for dim in "pqrs"}
    pixels, n_pixels = (
        inner(np.outer(x["p"], one["r"]), np.outer(x["q"], one["s"])) for x in (tiles, trips)
    )
    filters, n_filters = (
        inner(np.outer(one["p"], x["r"]), np.outer(one["q"], x["s"])) for x in (tiles, trips)
    )
    slide = {
        dim: planes * inner(rows[f"along_{dim}"], columns["sum"])
        if dim in "pr"
        else planes * inner(rows["sum"], columns[f"along_{'p' if dim == 'q' else 'r'}"])
        for dim in "pqrs"
    }
    by_filter = np.minimum(slide["r"], slide["s"])
    by_image = np.minimum(slide["p"], slide["q"])
    by_any = np.minimum(by_filter, by_image)
    w_trips, o_trips = weight * n_pixels, 2 * output * n_filters
    tn, tk, tc = outer_product(*(tiles[dim] for dim in "nkc"))
    nn, nk, nc = outer_product(*(trips[dim] for dim in "nkc"))
    if is_tuned:  # rows whose smallest tile does not fit are dropped
        some = tn * tc * image.min() + tk * tc + tn * tk <= capacity
        tn, tk, tc, nn, nk, nc = (column[some] for column in (tn, tk, tc, nn, nk, nc))
    best = 2**62
    for part in chunks(len(tn), len(image)):
        n, k, c, n_n, n_k, n_c = (x[part, None] for x in (tn, tk, tc, nn, nk, nc))
        fits = (n * c) * image + (k * c) * filters + (n * k) * pixels <= capacity
        if is_tuned:
            at, over = np.nonzero(fits)
            if not len(at):
                continue
            w, o = n_n[at, 0] * w_trips[over], n_c[at, 0] * o_trips[over] - output
            times = n_k[at, 0]
            best = min(
                best,
                int((by_any[over] + w + o).min()),
                int((times * by_filter[over] + w).min()) + output,
                int((times * by_image[over] + o).min()) + weight,
            )
            continue
        w, o = n_n * w_trips, n_c * o_trips - output
        for dim in "pqrs":
            best = min(best, int(np.where(fits, slide[dim] + w + o, NEVER).min()))
        for dim in "rs":
            best = min(best, int(np.where(fits, n_k * slide[dim] + w + output, NEVER).min()))
        for dim in "pq":
            best = min(best, int(np.where(fits, n_k * slide[dim] + weight + o, NEVER).min()))
    return best


def literal_gemm(sizes: dict[str, int], capacity: int) -> int:
    """Score columns of every tile vector, each order class by itself."""
    m, n, k = sizes["m"], sizes["n"], sizes["k"]
    tm, tn, tk = outer_product(*(ceil_classes(size) for size in (m, n, k)))
    best = 2**62
    fits = tm * tk + tk * tn + tm * tn <= capacity
    for free in ("k", "m", "n"):
        a = m * k * (1 if free == "n" else -(-n // tn))
        b = k * n * (1 if free == "m" else -(-m // tm))
        c = m * n * (2 * (1 if free == "k" else -(-k // tk)) - 1)
        best = min(best, int(np.where(fits, a + b + c, NEVER).min()))
    return best


def literal_conv(sizes: dict[str, int], capacity: int) -> int:
    """Score columns of every tile vector, each order class by itself; the filter is untiled."""
    n, k, c, p, q = (sizes[dim] for dim in "nkcpq")
    r, s, step = sizes["r"], sizes["s"], sizes["stride"]
    best = 2**62
    for tn in ceil_classes(n):
        tk, tc, tp, tq = outer_product(*(ceil_classes(size) for size in (k, c, p, q)))
        one = np.int64(1)
        tile = tn * tc * reach(step, tp, r * one) * reach(step, tq, s * one)
        fits = tile + tk * tc * r * s + tn * tk * tp * tq <= capacity
        for free, slide in (
            ("k", "p"), ("k", "q"), ("k", ""), ("c", ""), ("npq", "p"), ("npq", "q"), ("npq", ""),
        ):  # fmt: skip
            nn, nk, nc = -(-n // tn), -(-k // tk), -(-c // tc)
            np_, nq = -(-p // tp), -(-q // tq)
            image = n * c * (1 if free == "k" else nk)
            for size, tiles, taps, dim in ((p, tp, r, "p"), (q, tq, s, "q")):
                if slide == dim:
                    image = image * reach(step, size * one, taps * one)
                else:
                    last = size % tiles
                    image = image * (
                        size // tiles * reach(step, tiles, taps * one)
                        + np.where(last > 0, reach(step, last, taps * one), 0)
                    )
            weight = k * c * r * s * (1 if free == "npq" else nn * np_ * nq)
            output = n * k * p * q * (2 * (1 if free == "c" else nc) - 1)
            best = min(best, int(np.where(fits, image + weight + output, NEVER).min()))
    return best


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("problem", choices=common.PROBLEMS)
    parser.add_argument("--capacity", type=int, default=common.L2_BYTES)
    parser.add_argument("--how", choices=("literal", "plain", "tuned"), default="plain")
    parser.add_argument("--warm", type=int, default=5)
    options = parser.parse_args()
    common.limit_memory()
    sizes = common.PROBLEMS[options.problem]
    is_gemm = common.is_gemm(sizes)
    search: Callable[[dict[str, int], int], int]
    if options.how == "literal":
        search = literal_gemm if is_gemm else literal_conv
    else:
        search = partial(best_gemm if is_gemm else best_conv, is_tuned=options.how == "tuned")
    capacity = options.capacity // common.ELEMENT_BYTES
    words, times = common.runs(lambda: search(sizes, capacity), options.warm, 20.0)
    common.report(
        {
            "peer": "numpy enumeration",
            "version": np.__version__,
            "variant": f"1 level, {options.how}",
            "problem": options.problem,
            "dram_bytes": words * common.ELEMENT_BYTES,
            **times,
        }
    )


if __name__ == "__main__":
    main()
