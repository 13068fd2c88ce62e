"""AccelForge's optimal mapper on one problem: prints one JSON line.

Run by an interpreter that has ``accelforge`` (Python 3.12):

    python accelforge_peer.py "gemm 4096x4096x4096" [--levels 1|2] [--imperfect]

DRAM costs 1 a bit and everything else nothing, so least energy is least DRAM traffic.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import common

MEMORY = """
  - !Memory
    name: {name}
    size: {size}
    leak_power: 0
    area: 0
    tensors: {{keep: All}}
    actions:
    - {{name: read, energy: {energy}, latency: 0}}
    - {{name: write, energy: {energy}, latency: 0}}
"""
COMPUTE = """
  - !Compute
    name: MAC
    leak_power: 0
    area: 0
    actions:
    - {name: compute, energy: 0, latency: 1}
"""


def machine(*capacities: int) -> str:
    """DRAM and buffers of so many bytes, outermost first."""
    text = "arch:\n  nodes:" + MEMORY.format(name="DRAM", size="inf", energy=1)
    for name, size in zip(("L2", "L1"), capacities, strict=False):
        text += MEMORY.format(name=name, size=8 * size, energy=0)
    return text + COMPUTE


def workload(sizes: dict[str, int]) -> str:
    if common.is_gemm(sizes):
        tensors = ("A, projection: [m, k]", "B, projection: [k, n]", "C, projection: [m, n]")
    elif sizes["r"] == sizes["s"] == sizes["stride"] == 1:  # said plainly: ten times faster
        sizes = {dim: size for dim, size in sizes.items() if dim not in "rs"}
        tensors = ("I, projection: [n, c, p, q]", "F, projection: [k, c]")
        tensors += ("O, projection: [n, k, p, q]",)
    else:
        step = sizes["stride"]
        rows, columns = (f"{step}*p+r", f"{step}*q+s") if step > 1 else ("p+r", "q+s")
        tensors = (
            f"I, projection: {{N: n, C: c, H: {rows}, W: {columns}}}",
            "F, projection: [k, c, r, s]",
            "O, projection: [n, k, p, q]",
        )
    dims = ", ".join(f"{dim.upper()}: {size}" for dim, size in sizes.items() if dim != "stride")
    accesses = "\n".join(
        f"    - {{name: {tensor}{', output: True' if tensor is tensors[-1] else ''}}}"
        for tensor in tensors
    )
    return (
        f"workload:\n  rank_sizes: {{{dims}}}\n  bits_per_value: {{All: 32}}\n"
        f"  einsums:\n  - name: Layer\n    tensor_accesses:\n{accesses}\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("problem", choices=common.PROBLEMS)
    parser.add_argument("--levels", type=int, default=2)
    parser.add_argument("--imperfect", action="store_true")
    parser.add_argument("--warm", type=int, default=3)
    options = parser.parse_args()
    common.limit_memory()

    from importlib.metadata import version

    import accelforge
    from accelforge.mapper.FFM.main import map_workload_to_arch
    from accelforge.util.parallel import set_n_parallel_jobs

    set_n_parallel_jobs(1)
    folder = Path(tempfile.mkdtemp())
    files = folder / "arch.yaml", folder / "workload.yaml"
    files[0].write_text(machine(*(common.L2_BYTES, common.L1_BYTES)[: options.levels]))
    files[1].write_text(workload(common.PROBLEMS[options.problem]))

    def load() -> accelforge.Spec:
        spec = accelforge.Spec.from_yaml(*map(str, files))
        spec.mapper.metrics = accelforge.Metrics.ENERGY
        spec.mapper.explore_imperfect_temporal_loops = options.imperfect
        return spec

    # Reading the files is not counted, nor the detailed report of the mapping found.
    spec = load()
    found, times = common.runs(
        lambda: map_workload_to_arch(spec, print_progress=False, eval_in_detail=False),
        options.warm,
        20.0,
    )
    bits = float(found.data["Total<SEP>energy"].min())
    common.report(
        {
            "peer": "AccelForge",
            "version": version("accelforge"),
            "variant": f"{options.levels} level{'s' if options.levels > 1 else ''}"
            + (", imperfect tiles" if options.imperfect else ""),
            "problem": options.problem,
            "dram_bytes": round(bits / 8),
            **times,
        }
    )


if __name__ == "__main__":
    main()
