"""Hold plans of fusion against brute force on random chains, for as long as wanted.

Run ``python benchmarks/soak_fusion.py --cases 2000 --seed 7``.  Each case is a
chain of 2 to 4 layers at some capacities, with halos made again, kept, or both;
the oracle walks every partition, tile, way and choice of weights literally.
Every fault is printed with the chain that shows it; the exit status is then 1.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from fusion_fuzz import check_chains


def main() -> int:
    parser = argparse.ArgumentParser(description="Soak test of fusion against brute force.")
    parser.add_argument("--cases", type=int, default=2000, help="chains to draw")
    parser.add_argument("--seed", type=int, default=0, help="chains of other seeds are others")
    given = parser.parse_args()
    start = time.perf_counter()
    tally = check_chains(given.cases, given.seed)
    for fault in tally.faults:
        print(fault)
    print(
        f"seed {given.seed}: {tally.chains} chains, {tally.plans} plans, {tally.fused} fused "
        f"groups in them, {len(tally.faults)} faults, {time.perf_counter() - start:.0f} s"
    )
    return 1 if tally.faults else 0


if __name__ == "__main__":
    sys.exit(main())
