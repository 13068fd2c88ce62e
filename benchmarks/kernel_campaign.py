"""Random kernels against a sum over all points: what does not agree, reads outside, or ends.

Run ``python benchmarks/kernel_campaign.py --cases 5000``; ``--first`` is the first seed, and
``--back c`` builds C under AddressSanitizer in place of LLVM's code beside guard pages
(``--option=-march=native`` for its vector instructions); ``aarch64-llvm`` and ``aarch64-c`` build
for that instruction set and run in qemu.  ``--kind sliding`` draws depthwise convolutions over
which windows slide, ``--kind masked`` padded images that are read in place, ``--kind dots`` sums
whose points lanes hold, as few of all plans do.  One line a failure, one at the end.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
from multiprocessing.connection import Connection
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from kernel_fuzz import (
    case,
    check_aarch64,
    check_c,
    check_llvm,
    dots_case,
    masked_case,
    sliding_case,
)

BACKS = ["llvm", "c", "aarch64-llvm", "aarch64-c"]
KINDS = {"any": case, "sliding": sliding_case, "masked": masked_case, "dots": dots_case}


def work(kind: str, back: str, options: list[str], first: int, stop: int, told: Connection) -> None:
    """Check seeds; tell each before and what came of it."""
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, stop):
            told.send((seed, None))
            try:
                one = KINDS[kind](seed)
                if back.startswith("aarch64"):
                    check = check_aarch64(one, Path(folder), back.removeprefix("aarch64-"))
                elif back == "c":
                    check = check_c(one, Path(folder), *options)
                else:
                    check = check_llvm(one)
            except Exception as error:
                check = f"seed {seed}: {type(error).__name__}: {error}"
            if check:
                told.send((seed, check))
    told.send((stop, None))


def main() -> int:
    """Run the campaign; a process that ends is a failure, and the next seed goes on."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--kind", choices=list(KINDS), default="any")
    parser.add_argument("--back", choices=BACKS, default="llvm")
    parser.add_argument("--option", action="append", default=[])
    given = parser.parse_args()
    seed, stop, n_failed = given.first, given.first + given.cases, 0
    while seed < stop:
        mine, told = multiprocessing.Pipe(duplex=False)
        arguments = (given.kind, given.back, given.option, seed, stop, told)
        process = multiprocessing.Process(target=work, args=arguments)
        process.start()
        told.close()
        try:
            while True:
                seed, fault = mine.recv()
                if fault:
                    n_failed += 1
                    print(fault, flush=True)
        except EOFError:
            process.join()
        if seed < stop:
            n_failed += 1
            print(
                f"{KINDS[given.kind](seed)}: the process ended with {process.exitcode}", flush=True
            )
            seed += 1
    print(f"{given.cases} cases from {given.first}, {given.back}: {n_failed} failed")
    return int(n_failed > 0)


if __name__ == "__main__":
    sys.exit(main())
