"""A chosen configuration as a Triton kernel in a file that runs and checks itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from string import Template
from typing import Any

from loopsched.base.errors import InputError, nearest
from loopsched.exchange import triton_text
from loopsched.exchange.exported import Exported
from loopsched.gpu.choice.families import FAMILIES, Asked, forward_layer
from loopsched.gpu.library.gemm import product_of

_STORED = {
    "fp16": "torch.float16",
    "bf16": "torch.bfloat16",
    "tf32": "torch.float32",
    "fp8": "torch.float8_e4m3fn",
}


def to_triton_kernel(
    problem: Asked,
    configuration: Mapping[str, int],
    *,
    kernel: str = "triton_gemm",
    data_type: str = "fp16",
    arch: str = "any GPU",
) -> Exported:
    """Write a configuration as a Triton kernel that runs, checks and times itself.

    Parameters
    ----------
    problem : Problem, Attention or Grouped
        A `gemm` or `batched_gemm` for ``triton_gemm``, a forward `conv2d` for
        ``triton_conv``, `Attention` for ``triton_attention`` and ``triton_decode``,
        `Grouped` for ``triton_grouped``.
    configuration : mapping of str to int
        As a `Choice` has it.
    kernel : {'triton_gemm', 'triton_conv', 'triton_attention', 'triton_decode', 'triton_grouped'}
    data_type : {'fp16', 'bf16', 'tf32', 'fp8'}
        fp8 for ``triton_gemm`` only; attention has no tf32.
    arch : str
        Name of the machine that it was chosen for, for the file's heading.

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
    >>> "BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M = 64, 64, 128, 8" in made.text()
    True

    See Also
    --------
    pick : which configuration to run.
    """
    if kernel not in _WRITERS:
        raise InputError(f"no file for kernel '{kernel}'; {nearest(kernel, _WRITERS)}")
    write, allowed = _WRITERS[kernel]
    if data_type not in allowed:
        raise InputError(f"no file for data type '{data_type}'; {nearest(data_type, allowed)}")
    FAMILIES[kernel].checked(problem)
    body, sizes, about = write(problem, configuration, data_type)
    text = Template(triton_text.HEAD + body + triton_text.END).substitute(
        dict(configuration),
        **sizes,
        about=about,
        imports="import functools\n\n" * ("functools" in body),
        arch=arch,
        data_type=data_type,
        stored=_STORED[data_type],
    )
    return Exported(((f"{kernel}.py", text),))


def _known(name: str, size: int) -> dict[str, str]:
    """Make a size a constant of the kernel, if Triton must know it to copy 16 bytes at a time.

    Of other sizes it notices multiples of 16 only.
    """
    return {f"{name}_is": ": tl.constexpr" if 1 < math.gcd(size, 16) < 16 else ""}


# A text, what is filled in beside the configuration, and what it computes.
_Written = tuple[str, dict[str, Any], str]


def _product(problem: Any, configuration: Mapping[str, int], data_type: str) -> _Written:
    product = product_of(problem, data_type)
    m, n, k = product.m, product.n, product.k
    sizes = {"m": m, "n": n, "k": k, "batch": product.batch, **_known("n", n), **_known("k", k)}
    about = f"C = A B, {m} x {n} x {k}."
    is_split = configuration.get("split_k", 1) > 1
    if product.batch == 1:
        return triton_text.SPLIT if is_split else triton_text.GEMM, sizes, about
    if is_split:
        raise InputError("no file for batches whose terms are split among blocks (split_k)")
    return triton_text.BATCH, sizes, f"{product.batch} products {about}"


def _convolution(problem: Any, configuration: Mapping[str, int], data_type: str) -> _Written:
    layer = forward_layer(problem)
    names = (*"nhwckrspq", "stride", "dilation", "padding")
    sizes = {name: getattr(layer, name) for name in names}
    sizes |= _known("c", layer.c) | _known("k", layer.k)
    return triton_text.CONV, sizes, f"A convolution, {problem.name}."


def _grouped(problem: Any, configuration: Mapping[str, int], data_type: str) -> _Written:
    products = problem.products
    sizes = {
        "products": f"[{', '.join(map(str, products))}]",
        "unit": math.gcd(16, *(n for _, n, _ in products), *(k for _, _, k in products)),
    }
    return triton_text.GROUPED, sizes, f"Products {problem.name}."


def _attention(problem: Any, configuration: Mapping[str, int], data_type: str) -> _Written:
    keys, queries, size = problem.length, problem.n_queries, problem.head_size
    is_split = problem.queries > 0
    # What masks nothing is left out: a kernel that masks is slower.
    is_causal = problem.causal and queries > 1
    is_ragged = keys % configuration["block_n"] > 0
    is_narrow = size < problem.columns
    end = "tl.minimum(begin + each, keys)" if is_split else "keys"
    seen = "om[:, None] % queries + keys - queries" if is_split else "om[:, None]"
    if is_causal and not is_split:
        end = "tl.minimum(start + BLOCK_M, keys)"
    shown = ["here[None, :] < keys"] * is_ragged + [f"here[None, :] <= {seen}"] * is_causal
    sizes = {
        "batch": problem.batch,
        "heads": problem.heads,
        "groups": problem.groups,
        "queries": queries,
        "keys": keys,
        "size": size,
        "columns": problem.columns,
        "causal": is_causal,
        "start": "begin" if is_split else "0",
        "end": end,
        "query_mask": _mask(
            ["om[:, None] < queries"] * (queries % configuration["block_m"] > 0)
            + ["od[None, :] < SIZE"] * is_narrow
        ),
        "key_mask": _mask(
            ["here[None, :] < keys"] * is_ragged + ["od[:, None] < SIZE"] * is_narrow
        ),
        "value_mask": _mask(
            ["here[:, None] < keys"] * is_ragged + ["od[None, :] < SIZE"] * is_narrow
        ),
        "shown": f"\n        s = tl.where({_all(shown)}, s, float('-inf'))" if shown else "",
        # Of one part of the keys a query may see none.
        "low": "-1e30" if is_split else "float('-inf')",
    }
    about = f"Attention {problem.name}: batch, heads, length, head size, causal."
    return triton_text.DECODE if is_split else triton_text.ATTENTION, sizes, about


def _mask(conditions: list[str]) -> str:
    return f", mask={_all(conditions)}, other=0.0" if conditions else ""


def _all(conditions: list[str]) -> str:
    return " & ".join(f"({one})" for one in conditions)


_WRITERS: Mapping[
    str, tuple[Callable[[Any, Mapping[str, int], str], _Written], tuple[str, ...]]
] = {
    "triton_gemm": (_product, ("fp16", "bf16", "tf32", "fp8")),
    "triton_conv": (_convolution, ("fp16", "bf16", "tf32")),
    "triton_grouped": (_grouped, ("fp16", "bf16", "tf32")),
    "triton_attention": (_attention, ("fp16", "bf16")),
    "triton_decode": (_attention, ("fp16", "bf16")),
}
