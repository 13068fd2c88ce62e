"""Compile products with PyTorch's Inductor, its choices and loopsched's, and time what comes out.

Run ``python inductor_products.py`` on a machine with torch, Triton and loopsched.  Each side
compiles in a process of its own with empty caches; the time is that of the first call.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from functools import partial

import torch
import triton

SHAPES = ((512, 6144, 4096), (4096, 4096, 4096), (64, 4096, 11008))


def once(how: str) -> None:
    """Compile all products with Triton's templates alone."""
    import torch._inductor.config as config

    if how == "loopsched":
        from loopsched.integrations.inductor import use_in_inductor

        use_in_inductor()
    config.max_autotune_gemm = True
    config.max_autotune_gemm_backends = "TRITON"
    config.max_autotune_gemm_search_space = os.environ.get("SEARCH_SPACE", "DEFAULT")
    for m, n, k in SHAPES:
        a = torch.randn(m, k, device="cuda", dtype=torch.float16) / k**0.5
        b = torch.randn(k, n, device="cuda", dtype=torch.float16)
        torch.cuda.synchronize()
        begin = time.perf_counter()
        product = torch.compile(lambda x, y: x @ y, dynamic=False)
        found = product(a, b)
        torch.cuda.synchronize()
        spent = time.perf_counter() - begin
        wanted = a.float() @ b.float()
        off = ((found.float() - wanted).norm() / wanted.norm()).item()
        time_us = 1e3 * triton.testing.do_bench(partial(product, a, b), return_mode="median")
        row = {"how": how, "problem": f"{m}x{n}x{k}", "compile_s": spent, "time_us": time_us}
        print(json.dumps(row | {"off": off}), flush=True)
        torch._dynamo.reset()


def main() -> None:
    """Compile both ways, with the rows of both on standard output."""
    if len(sys.argv) > 1:
        once(sys.argv[1])
        return
    for how in ("inductor", "loopsched"):
        with tempfile.TemporaryDirectory() as cache:
            caches = {"TORCHINDUCTOR_CACHE_DIR": cache, "TRITON_CACHE_DIR": f"{cache}/triton"}
            subprocess.run([sys.executable, __file__, how], env=os.environ | caches, check=True)


if __name__ == "__main__":
    main()
