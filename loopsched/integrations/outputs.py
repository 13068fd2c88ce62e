"""Choices in the forms of other tools: Triton's configurations, vLLM's JSON, CUTLASS's tiles."""

from __future__ import annotations

import json
from typing import Any

from loopsched.gpu.choice.dispatch import Dispatch
from loopsched.gpu.choice.pick import Pick


def triton_configs(found: Pick) -> list[dict[str, Any]]:
    """Write choices as arguments of ``triton.Config``.

    Examples
    --------
    >>> from loopsched import gemm, load_arch, pick
    >>> found = pick(gemm(m=16, n=4096, k=4096), load_arch("h200"), top=1)
    >>> triton_configs(found)[0]["kwargs"]["BLOCK_M"]
    64
    """
    return [
        {
            "kwargs": {
                name.upper(): value
                for name, value in one.configuration.items()
                if name not in ("stages", "warps")
            },
            "num_stages": one.configuration["stages"],
            "num_warps": one.configuration["warps"],
        }
        for one in found.choices
    ]


def vllm_json(table: Dispatch) -> str:
    """Write a dispatch table as vLLM's configuration files have it: a key is the rows.

    Examples
    --------
    >>> from loopsched import dispatch, load_arch
    >>> table = dispatch(4096, 4096, load_arch("h200"), most_m=16)
    >>> json.loads(vllm_json(table))["16"]["BLOCK_SIZE_M"]
    64
    """
    entries = {
        str(one.last): {
            "BLOCK_SIZE_M": one.configuration["block_m"],
            "BLOCK_SIZE_N": one.configuration["block_n"],
            "BLOCK_SIZE_K": one.configuration["block_k"],
            "GROUP_SIZE_M": one.configuration["group_m"],
            "num_warps": one.configuration["warps"],
            "num_stages": one.configuration["stages"],
            **({"SPLIT_K": one.configuration["split_k"]} if "split_k" in one.configuration else {}),
        }
        for one in table.buckets
    }
    return json.dumps(entries, indent=4) + "\n"


def cutlass_tiles(found: Pick) -> list[dict[str, Any]]:
    """Write choices as threadblock shapes, stages and warps of CUTLASS.

    Examples
    --------
    >>> from loopsched import gemm, load_arch, pick
    >>> found = pick(gemm(m=4096, n=4096, k=4096), load_arch("h200"), top=1)
    >>> len(cutlass_tiles(found)[0]["threadblock_shape"])
    3
    """
    return [
        {
            "threadblock_shape": [
                one.configuration["block_m"],
                one.configuration["block_n"],
                one.configuration["block_k"],
            ],
            "stages": one.configuration["stages"],
            "warps": one.configuration["warps"],
            **({"split_k": one.configuration["split_k"]} if "split_k" in one.configuration else {}),
        }
        for one in found.choices
    ]
