"""Matrix products without a library: one output a thread, with and without shared memory."""

from __future__ import annotations

from loopsched.gpu.kernel import Kernel
from loopsched.problems.builders import gemm
from loopsched.published.presets.padding import cut, row_vector


def gemm_naive(m: int = 1024, n: int = 1024, k: int = 1024, block: int = 16) -> Kernel:
    """Multiply matrices, each thread one output from global memory."""
    text = f"{_blocks(m, n, block)} K:{k}"
    return _kernel(m, n, k, block, text, f"gemm_naive{block}")


def gemm_tiled(
    m: int = 1024, n: int = 1024, k: int = 1024, tile: int = 32, unrolled: bool = True
) -> Kernel:
    """Multiply matrices through square tiles in shared memory, each thread one output.

    Examples
    --------
    Threads outside the matrices compute along:

    >>> from loopsched import load_arch
    >>> from loopsched.gpu.counting import profile
    >>> found = profile(gemm_tiled(tile=24), load_arch("h200"))
    >>> found.fma_thread_instructions == 1032**3
    True
    """
    text = f"{_blocks(m, n, tile)} K:{k} K:{min(tile, k)}"
    return _kernel(m, n, k, tile, text, f"gemm_tile{tile}", unrolled)


def _blocks(m: int, n: int, tile: int) -> str:
    rows, columns = max(m, tile), max(n, tile)
    return f"M:{rows}@block_y N:{columns}@block_x M:{tile}@thread_y N:{tile}@thread_x"


def _kernel(
    m: int, n: int, k: int, tile: int, text: str, name: str, is_unrolled: bool | None = None
) -> Kernel:
    # Blocks have all their threads even where the matrix is smaller.
    problem = gemm(m=max(m, tile), n=max(n, tile), k=k)
    problem = cut(problem, {"A": {"M": m}, "B": {"N": n}, "C": {"M": m, "N": n}})
    problem = problem.renamed(f"m{m} n{n} k{k}")
    is_tiled = is_unrolled is not None
    return Kernel.of(
        problem,
        text,
        name=name,
        reads={"A": f"shared@K,vector={row_vector(tile)}", "B": "shared@K"} if is_tiled else None,
        guard="load" if is_tiled else "thread",
        registers=32,
        is_unrolled=bool(is_unrolled),
    )
