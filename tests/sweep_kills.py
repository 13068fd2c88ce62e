"""Not a test: kill sweeps at chosen moments, each in a process of its own.

``python sweep_kills.py FOLDER SEED ROUNDS`` prints at which line each one died and how many
searches were done by then.  A moment is a line that `folder`, `files` or `run` is about to
execute, so that every moment of writing can be met.  It forks, so it has a process to itself.
"""

from __future__ import annotations

import json
import math
import os
import random
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any

from loopsched.machines.arch import buffer_arch
from loopsched.problems.builders import gemm
from loopsched.problems.workload import Workload
from loopsched.sweeps.run import load_run, sweep
from loopsched.sweeps.tasks import warm_up

# 3 machines x 4 small layers.
VARY = {"buffer.capacity": ["64 B", "96 B", "128 B"]}
LAYERS = Workload("layers", tuple(gemm(m=m, n=3, k=2) for m in (2, 3, 4, 5)))
SPEC = {
    "archs": [{"arch": buffer_arch(capacity_bytes=64), "vary": VARY}],
    "workloads": [LAYERS],
}
KILLS = 10  # a round
WATCHED = ("sweeps/folder.py", "sweeps/files.py", "sweeps/run.py")


class Lines:
    """Counts lines, and at the last of so many has this process killed."""

    def __init__(self, allowed: int) -> None:
        self.left = allowed
        self.last = ""

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.endswith(WATCHED):
            return None
        if event == "line":
            self.left -= 1
            self.last = f"{frame.f_code.co_name}:{frame.f_lineno}"
            if self.left == 0:
                os.write(1, f"{self.last} ".encode())
                os.kill(os.getpid(), signal.SIGKILL)
        return self


def lines_in_all(folder: Path) -> int:
    """Count the lines of a whole sweep."""
    counter = Lines(-1)
    sys.settrace(counter)
    sweep(SPEC, folder)
    sys.settrace(None)
    return -1 - counter.left


def killed_and_resumed(folder: Path, dice: random.Random, total: int, kills: int) -> list[int]:
    """Kill a sweep so many times, then let it end; searches done at each death."""
    done = []
    for _ in range(kills):
        # Short lives die at the beginning, long ones in the work or the writing of results.
        moment = round(math.exp(dice.uniform(math.log(20), math.log(total))))
        child = os.fork()
        if child == 0:
            sys.settrace(Lines(moment))
            sweep(SPEC, folder)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
            begun = (folder / "manifest.json").exists()
            done.append(load_run(folder).n_done if begun else 0)
    sweep(SPEC, folder)
    return done


def main() -> None:
    folder, seed, rounds = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    warm_up()
    total = lines_in_all(folder / "whole")
    dice = random.Random(seed)
    done = [killed_and_resumed(folder / f"{i}", dice, total, KILLS) for i in range(rounds)]
    sys.stdout.write(f"\n{json.dumps(done)}\n")


if __name__ == "__main__":
    main()
