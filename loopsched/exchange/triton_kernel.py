"""A chosen configuration as a Triton kernel in a file that runs and checks itself."""

from __future__ import annotations

from collections.abc import Mapping
from string import Template

from loopsched.base.errors import InputError, nearest
from loopsched.exchange.exported import Exported
from loopsched.gpu.choice.families import forward_layer
from loopsched.gpu.library.gemm import product_of
from loopsched.problems.problem import Problem

_STORED = {
    "fp16": "torch.float16",
    "bf16": "torch.bfloat16",
    "tf32": "torch.float32",
    "fp8": "torch.float8_e4m3fn",
}

_HEAD = '''"""$about

Chosen by loopsched for $arch, $data_type. Run it on a GPU with torch and Triton:
it compares with torch, times itself and says both.
"""

import torch
import triton
import triton.language as tl

STORED = $stored
'''

_GEMM = '''M, N, K = $m, $n, $k
BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M = $block_m, $block_n, $block_k, $group_m
STAGES, WARPS = $stages, $warps


@triton.jit
def kernel(
    a, b, c, m, n, k, b_row, b_column,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):
    block = tl.program_id(0)
    down, across = tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N)
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
    for step in range(tl.cdiv(k, BLOCK_K)):
        left = k - step * BLOCK_K
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


def run(a, b, c):
    """C = A B; A is M x K, C is M x N, both row-major; B is K x N in any order."""
    kernel[(triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N),)](
        a, b, c, M, N, K, b.stride(0), b.stride(1), BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M,
        num_stages=STAGES, num_warps=WARPS,
    )


def main():
    a = (torch.randn(M, K, device="cuda") / K**0.5).to(STORED)
    b = torch.randn(K, N, device="cuda")
    b = b.t().contiguous().to(STORED).t() if STORED.itemsize == 1 else b.to(STORED)
    c = torch.empty(M, N, device="cuda", dtype=torch.float16 if STORED.itemsize == 1 else STORED)
    run(a, b, c)
    wanted = a.float() @ b.float()
    off = (c.float() - wanted).abs().max().item()
    limit = 0.02 * wanted.abs().max().item()
    if not off <= limit:
        raise SystemExit(f"wrong: {off} off, {limit} is allowed")
    time_us = 1e3 * triton.testing.do_bench(lambda: run(a, b, c))
    print(f"right (largest difference {off:.3g}); {time_us:.1f} us")
'''

_CONV = '''N, H, W, C, K = $n, $h, $w, $c, $k
R, S, P, Q = $r, $s, $p, $q
STRIDE, DILATION, PADDING = $stride, $dilation, $padding
BLOCK_M, BLOCK_N, BLOCK_K = $block_m, $block_n, $block_k
STAGES, WARPS = $stages, $warps
GROUP_M = 8


@triton.jit
def kernel(
    x, f, y, n, h, w, c, k, p, q, down, across, hole_h, hole_w, top, left,
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


def main():
    x = torch.randn(N, H, W, C, device="cuda").to(STORED)
    f = (torch.randn(R, S, C, K, device="cuda") / (R * S * C) ** 0.5).to(STORED)
    y = torch.empty(N, P, Q, K, device="cuda", dtype=STORED)
    run(x, f, y)
    top, bottom, left, right = PADDING
    images = torch.nn.functional.pad(x.permute(0, 3, 1, 2).float(), (left, right, top, bottom))
    wanted = torch.nn.functional.conv2d(
        images, f.permute(3, 2, 0, 1).float(), stride=STRIDE, dilation=DILATION
    ).permute(0, 2, 3, 1)
    off = (y.float() - wanted).abs().max().item()
    limit = 0.02 * wanted.abs().max().item()
    if not off <= limit:
        raise SystemExit(f"wrong: {off} off, {limit} is allowed")
    time_us = 1e3 * triton.testing.do_bench(lambda: run(x, f, y))
    print(f"right (largest difference {off:.3g}); {time_us:.1f} us")
'''

_END = """

if __name__ == "__main__":
    main()
"""


def to_triton_kernel(
    problem: Problem,
    configuration: Mapping[str, int],
    *,
    kernel: str = "triton_gemm",
    data_type: str = "fp16",
    arch: str = "any GPU",
) -> Exported:
    """Write a configuration as a Triton kernel that runs, checks and times itself.

    Parameters
    ----------
    problem : Problem
        A `gemm` for ``triton_gemm``, a forward `conv2d` for ``triton_conv``.
    configuration : mapping of str to int
        As a `Choice` has it.
    kernel : {'triton_gemm', 'triton_conv'}
    data_type : {'fp16', 'bf16', 'tf32', 'fp8'}
        fp8 for products only.
    arch : str
        For whom it was chosen, to be said in the file.

    Returns
    -------
    Exported
        One file, ``<kernel>.py``.

    Raises
    ------
    InputError
        If no such kernel can be written.
    ProblemError
        If the problem is of another kind.

    Examples
    --------
    >>> from loopsched import gemm, load_arch, pick
    >>> problem = gemm(m=16, n=4096, k=4096)
    >>> found = pick(problem, load_arch("h200"), top=1)
    >>> made = to_triton_kernel(problem, found.best.configuration, arch="h200")
    >>> "BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M = 16, 32, 128, 8" in made.text()
    True

    See Also
    --------
    pick : which configuration to run.
    """
    if kernel not in ("triton_gemm", "triton_conv"):
        raise InputError(
            f"no file for kernel '{kernel}'; {nearest(kernel, ('triton_gemm', 'triton_conv'))}"
        )
    allowed = [name for name in _STORED if kernel == "triton_gemm" or name != "fp8"]
    if data_type not in allowed:
        raise InputError(f"no file for data type '{data_type}'; {nearest(data_type, allowed)}")
    if configuration.get("split_k", 1) > 1:
        raise InputError("no file for products whose terms are split among blocks (split_k)")
    if kernel == "triton_gemm":
        product = product_of(problem, data_type)
        if product.batch != 1:
            raise InputError(f"problem '{problem.name}': a single product is needed")
        body, sizes = _GEMM, {"m": product.m, "n": product.n, "k": product.k}
        about = f"C = A B, {product.m} x {product.n} x {product.k}."
    else:
        layer = forward_layer(problem)
        body = _CONV
        names = (*"nhwckrspq", "stride", "dilation", "padding")
        sizes = {name: getattr(layer, name) for name in names}
        about = f"A convolution, {problem.name}."
    text = Template(_HEAD + body + _END).substitute(
        dict(configuration),
        **sizes,
        about=about,
        arch=arch,
        data_type=data_type,
        stored=_STORED[data_type],
    )
    return Exported(((f"{kernel}.py", text),))
