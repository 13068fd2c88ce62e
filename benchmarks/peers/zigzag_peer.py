"""ZigZag's search (LOMA or SALSA) on one problem: prints one JSON line.

Run by an interpreter that has ``zigzag-dse`` and ``six``:

    python zigzag_peer.py "gemm 4096x4096x4096" [--engine loma|salsa]

DRAM costs 1 a word and everything else nothing, so least energy is least DRAM traffic.
"""

from __future__ import annotations

import argparse
import logging
import os
import tempfile
from pathlib import Path
from typing import Any

import common

MOVES = [(tensor, way) for tensor in ("I1", "I2", "O") for way in ("fh", "tl")]
MOVES += [("O", "fl"), ("O", "th")]


def memory(size_bytes: int, cost: int) -> dict[str, Any]:
    """Give every move a port of its own: bandwidth must not matter here."""
    ports = [
        {
            "name": f"{'r' if way[0] == 't' else 'w'}_port_{at}",
            "type": "read" if way[0] == "t" else "write",
            "bandwidth_min": 32,
            "bandwidth_max": 32,
            "allocation": [f"{tensor}, {way}"],
        }
        for at, (tensor, way) in enumerate(MOVES, 1)
    ]
    return {
        "size": 8 * size_bytes,
        "r_cost": cost,
        "w_cost": cost,
        "area": 0,
        "latency": 1,
        "auto_cost_extraction": False,
        "operands": ["I1", "I2", "O"],
        "ports": ports,
        "served_dimensions": ["D1"],
    }


def machine() -> dict[str, Any]:
    return {
        "name": "three_levels",
        "memories": {
            "l1": memory(common.L1_BYTES, 0),
            "l2": memory(common.L2_BYTES, 0),
            "dram": memory(10**12, 1),
        },
        "operational_array": {
            "unit_energy": 0,
            "unit_area": 1,
            "dimensions": ["D1"],
            "sizes": [1],
        },
    }


def workload(sizes: dict[str, int]) -> list[dict[str, Any]]:
    layer: dict[str, Any] = {"id": 0, "name": "Layer"}
    if common.is_gemm(sizes):
        dims = ["m", "n", "k"]
        layer |= {"operator_type": "Gemm", "equation": "O[m][n]+=I[m][k]*W[k][n]"}
    else:
        dims = ["n", "k", "c", "p", "q", "r", "s"]
        step = sizes["stride"]
        layer |= {
            "operator_type": "Conv",
            "equation": "O[n][k][p][q]+=W[k][c][r][s]*I[n][c][y][x]",
            "dimension_relations": [f"y={step}*p+1*r", f"x={step}*q+1*s"],
            "pr_loop_dims": ["Y", "X"],
            "pr_loop_sizes": [
                step * (sizes["p"] - 1) + sizes["r"],
                step * (sizes["q"] - 1) + sizes["s"],
            ],
            "padding": [[0, 0], [0, 0]],
        }
    return [
        layer
        | {
            "loop_dims": [dim.upper() for dim in dims],
            "loop_sizes": [sizes[dim] for dim in dims],
            "operand_precision": {"O": 32, "O_final": 32, "W": 32, "I": 32},
            "operand_source": {"I": 0, "W": 0},
        }
    ]


MAPPING = [
    {
        "name": "default",
        "spatial_mapping": {"D1": ["K, 1"]},
        "memory_operand_links": {"O": "O", "W": "I2", "I": "I1"},
    }
]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("problem", choices=common.PROBLEMS)
    parser.add_argument("--engine", choices=("loma", "salsa"), default="loma")
    parser.add_argument("--warm", type=int, default=1)
    options = parser.parse_args()
    os.environ["MPLBACKEND"] = "Agg"
    common.limit_memory()

    from importlib.metadata import version

    import yaml
    from zigzag.api import get_hardware_performance_zigzag

    folder = Path(tempfile.mkdtemp())
    files = []
    contents = workload(common.PROBLEMS[options.problem]), machine(), MAPPING
    for name, content in zip(("workload", "machine", "mapping"), contents, strict=True):
        files.append(str(folder / f"{name}.yaml"))
        Path(files[-1]).write_text(yaml.safe_dump(content, sort_keys=False))
    logging.disable(logging.CRITICAL)

    # The call has no entry below its files: reading them and writing its report are counted.
    (_, _, layers), times = common.runs(
        lambda: get_hardware_performance_zigzag(
            *files,
            opt="energy",
            temporal_mapping_search_engine=options.engine,
            lpf_limit=6,
            dump_folder=str(folder / "out"),
            loma_show_progress_bar=False,
        ),
        options.warm,
        20.0,
    )
    found = layers[0][1][0][0]
    words = sum(sum(moves[-1].data.values()) for moves in found.memory_word_access.values())
    common.report(
        {
            "peer": "ZigZag",
            "version": version("zigzag-dse"),
            "variant": "LOMA, lpf 6" if options.engine == "loma" else "SALSA",
            "problem": options.problem,
            "dram_bytes": words * common.ELEMENT_BYTES,
            **times,
        }
    )


if __name__ == "__main__":
    main()
