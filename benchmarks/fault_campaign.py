"""Faulty files, full disks, closed streams and killed processes: what the program makes of them.

Run ``python benchmarks/fault_campaign.py``; ``--part files`` (or ``disks``, ``streams``,
``kills``) runs one part, ``--kills N`` says how many processes are killed.  A case fails if
it prints a traceback, ends with an unexpected status, takes too long, leaves a file that is
neither whole nor absent, or leaves a process running.  One line a failure, one a part.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

PROGRAM = [sys.executable, "-m", "loopsched"]
GEMM = "gemm:m=8,n=8,k=8"
NEST = "M:8 N:8 K:8 M:4"
LONGEST_S = 60
# Where FILE stands for a file of the kind that the suffix says.
READERS = {
    "workload": (".json", ["search", "FILE"]),
    "machine": (".yaml", ["archs", "FILE"]),
    "machine in JSON": (".json", ["archs", "FILE"]),
    "schedule": (".txt", ["analyze", GEMM, "@FILE"]),
    "schedule in JSON": (".json", ["analyze", GEMM, "@FILE"]),
    "results": (".jsonl", ["show", "FILE"]),
    "results in Parquet": (".parquet", ["report", "FILE", "-o", "page.html"]),
    "results of a page": (".json", ["report", "FILE", "-o", "page.html"]),
    "proofs": (".jsonl", ["verify", "FILE"]),
    "sweep": (".yaml", ["sweep", "FILE", "--out", "folder"]),
    "counters": (".csv", ["validate", "counters", "FILE"]),
    "times": (".csv", ["validate", "times", "FILE"]),
    "measured space": (".csv", ["validate", "choices", "FILE"]),
    "space": (".csv", ["pick", GEMM, "--space", "FILE"]),
    "Timeloop": (".yaml", ["import", "timeloop", "FILE"]),
    "model": (".onnx", ["network", "FILE"]),
}
WRITERS = {
    "rows": (["search", GEMM, "--out", "FILE.jsonl"], "FILE.jsonl"),
    "rows in CSV": (["search", GEMM, "--out", "FILE.csv"], "FILE.csv"),
    "rows in JSON": (["search", GEMM, "--out", "FILE.json"], "FILE.json"),
    "rows in Parquet": (["search", GEMM, "--out", "FILE.parquet"], "FILE.parquet"),
    "proof": (["search", GEMM, "--proof", "FILE.jsonl"], "FILE.jsonl"),
    "plot": (["search", GEMM, "--plot", "FILE.svg"], "FILE.svg"),
    "data of a plot": (["search", GEMM, "--plot", "FILE.csv"], "FILE.csv"),
    "page": (["explore", GEMM, "--no-open", "-o", "FILE.html"], "FILE.html"),
    "code": (["export", GEMM, NEST, "--to", "c", "-o", "FILE.c"], "FILE.c"),
    "a folder": (["export", GEMM, NEST, "--to", "timeloop", "-o", "FILE"], "FILE"),
    "kernel": (["pick", GEMM, "--emit", "triton", "-o", "FILE.py"], "FILE.py"),
    "rows of curves": (["curve", GEMM, "--out", "FILE.jsonl"], "FILE.jsonl"),
}


def valid(kind: str, folder: Path) -> bytes:
    """Make the bytes of a valid file of a kind, where half of one is not valid."""
    if kind.startswith("machine"):
        found = run(["archs", "titan_v", "--format", "json"], folder).stdout
        return found.encode()
    if kind == "workload":
        return json.dumps({"name": "w", "problems": [{"kind": "gemm", "m": 8}] * 9}).encode()
    return (NEST + "\n").encode() * 50


def fifo(path: Path, content: bytes) -> None:
    os.mkfifo(path)


def device(path: Path, content: bytes) -> None:
    path.symlink_to("/dev/zero")


def loop(path: Path, content: bytes) -> None:
    path.symlink_to(path.name)


def huge(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.truncate(3 << 30)


def truncated(path: Path, content: bytes) -> None:
    path.write_bytes(content[: len(content) // 2 + 1])


def binary(path: Path, content: bytes) -> None:
    path.write_bytes(random.Random(len(path.name)).randbytes(5000))


def empty(path: Path, content: bytes) -> None:
    path.touch()


def folder(path: Path, content: bytes) -> None:
    path.mkdir()


def missing(path: Path, content: bytes) -> None:
    pass


FAULTS: Sequence[Callable[[Path, bytes], None]] = (
    fifo, device, loop, huge, truncated, binary, empty, folder, missing,
)  # fmt: skip


class Ended:
    """What a run left."""

    def __init__(self, status: int, stdout: str, stderr: str, seconds: float) -> None:
        self.status, self.stdout, self.stderr, self.seconds = status, stdout, stderr, seconds

    def faults(self, allowed: Sequence[int]) -> Iterator[str]:
        """Say what is wrong with it."""
        if "Traceback" in self.stdout + self.stderr:
            yield f"traceback: {self.stderr.strip().splitlines()[-1][:200]}"
        if self.status not in allowed:
            yield f"status {self.status}: {self.stderr.strip()[-200:]}"
        if self.seconds > LONGEST_S:
            yield f"took {self.seconds:.0f} s"


def run(
    words: Sequence[str],
    place: Path,
    shell: str | None = None,
    limits: Callable[[], None] | None = None,
    env: dict[str, str] | None = None,
) -> Ended:
    """Run the program in a folder; ``shell`` is what follows it on a command line."""
    command: list[str] | str = [*PROGRAM, *words]
    if shell is not None:
        import shlex

        command = f"{shlex.join([*PROGRAM, *words])} {shell}"
    began = time.monotonic()
    try:
        found = subprocess.run(
            command,
            cwd=place,
            shell=shell is not None,
            capture_output=True,
            timeout=2 * LONGEST_S,
            preexec_fn=limits,
            env=os.environ | (env or {}),
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return Ended(-1, "", "did not end", 2 * LONGEST_S)
    out, err = found.stdout.decode(errors="replace"), found.stderr.decode(errors="replace")
    return Ended(found.returncode, out, err, time.monotonic() - began)


def of_files(place: Path) -> Iterator[tuple[str, str]]:
    """Every kind of file with every fault; memory is limited, too."""

    def little_memory() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))

    for kind, (suffix, words) in READERS.items():
        content = valid(kind, place)
        for fault in FAULTS:
            path = place / f"{fault.__name__}{suffix}"
            fault(path, content)
            before = sorted(place.iterdir())
            given = [word.replace("FILE", path.name) for word in words]
            ended = run(given, place, limits=little_memory)
            what = f"{kind}, {fault.__name__}"
            # Half a schedule may be a schedule.
            allowed = (0, 3) if (kind, fault) == ("schedule", truncated) else (3,)
            yield from ((what, text) for text in ended.faults(allowed))
            for left in set(place.iterdir()) - set(before):
                yield what, f"left {left.name}"
                shutil.rmtree(left) if left.is_dir() else left.unlink()
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(True)
            yield what, ""


def is_whole(path: Path) -> bool:
    """Whether a file of rows ends with a whole row."""
    text = path.read_text()
    if path.suffix == ".jsonl":
        return not text or (text.endswith("\n") and all(map(json.loads, text.splitlines())))
    return path.suffix == ".csv" and (not text or text.endswith("\n"))


def of_disks(place: Path) -> Iterator[tuple[str, str]]:
    """Disks that are full from some size on, and folders that may not be written to."""
    for kind, (words, name) in WRITERS.items():
        for room in (0, 1, 100, 1000, 5000):

            def full(room: int = room) -> None:
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

            what = f"{kind}, {room} B left"
            target = place / name
            ended = run(
                [*words, *(["--jobs", "1"] if "search" in words else [])],
                place,
                limits=full,
                env={"NUMBA_CACHE_DIR": os.environ["CAMPAIGN_CACHE"]},
            )
            yield from ((what, text) for text in ended.faults((0, 3)))
            if ended.status == 3 and target.is_file() and not is_whole(target):
                yield what, f"half of {name} is left"
            for left in place.iterdir():
                if left != target:
                    yield what, f"left {left.name}"
                shutil.rmtree(left) if left.is_dir() else left.unlink()
            yield what, ""
        absent = [word.replace("FILE", "none/FILE") for word in words]
        if kind != "a folder":
            what = f"{kind}, no folder"
            yield from ((what, text) for text in run(absent, place).faults((3,)))
            for left in place.iterdir():
                yield what, f"left {left.name}"
            yield what, ""


def of_streams(place: Path) -> Iterator[tuple[str, str]]:
    """Full and closed outputs, readers that go away, narrow encodings."""
    commands = (
        ["search", GEMM], ["search", GEMM, "--format", "json"], ["archs"], ["workloads"],
        ["analyze", GEMM, NEST], ["show", GEMM, NEST], ["curve", GEMM, "--points"],
        ["export", GEMM, NEST, "--to", "c"], ["kernel", "library", GEMM], ["--help"],
    )  # fmt: skip
    streams = {
        ">/dev/full": (3,),
        "2>/dev/full": (0,),
        ">&-": (0, 3),
        "2>&-": (0,),
        ">&- 2>&- <&-": (0, 3),
        "| head -c 1": (0,),
        "| true": (0,),
    }
    for words in commands:
        for shell, allowed in streams.items():
            what = f"{words[0]} {shell}"
            yield from ((what, text) for text in run(words, place, shell).faults(allowed))
            yield what, ""
        for env in ({"LC_ALL": "C"}, {"PYTHONIOENCODING": "latin-1"}, {"PYTHONUTF8": "0"}):
            what = f"{words[0]} with {env}"
            yield from ((what, text) for text in run(words, place, env=env).faults((0,)))
            yield what, ""
    name = os.fsdecode(b"\xff\xfe.json")
    named = (["search", name], ["search", GEMM, "--out", name], ["search", f"caf\u00e9{name}"])
    for words in named:
        for env in ({}, {"LC_ALL": "C"}, {"PYTHONIOENCODING": "ascii"}):
            what = f"a name that is no text, {words[1][:4]!r} with {env}"
            yield from ((what, text) for text in run(words, place, env=env).faults((0, 3)))
            yield what, ""


def children(token: str) -> list[int]:
    """Processes that carry a token in their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                environment = (entry / "environ").read_bytes()
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if token.encode() in environment and state != "Z":
                found.append(int(entry.name))
    return found


def of_kills(place: Path, many: int) -> Iterator[tuple[str, str]]:
    """Parents and workers that are killed or interrupted at any time."""
    draw = random.Random(7)
    for number in range(many):
        token = f"CAMPAIGN_RUN={os.getpid()}_{number}"
        out = place / "rows.jsonl"
        process = subprocess.Popen(
            [*PROGRAM, "search", "resnet50", "--jobs", "2", "--out", out.name],
            cwd=place,
            env=os.environ | dict([token.split("=")]),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        how = draw.choice((signal.SIGKILL, signal.SIGTERM, signal.SIGINT))
        whom = draw.choice(("parent", "worker"))
        wait_s = draw.uniform(0.2, 8)
        time.sleep(wait_s)
        workers = [pid for pid in children(token) if pid != process.pid]
        victim = process.pid if whom == "parent" or not workers else draw.choice(workers)
        what = f"{whom} gets {how.name} after {wait_s:.1f} s"
        with suppress(ProcessLookupError):
            os.kill(victim, how)
        killed = time.monotonic()
        try:
            _, stderr = process.communicate(timeout=LONGEST_S)
            waited = time.monotonic() - killed
            if b"Traceback" in stderr:
                yield what, f"traceback: {stderr.decode()[-200:]}"
            if victim == process.pid and how == signal.SIGINT and waited > 5:
                yield what, f"ended {waited:.1f} s later"
        except subprocess.TimeoutExpired:
            yield what, "did not end"
        deadline = time.monotonic() + 5
        while (left := children(token)) and time.monotonic() < deadline:
            time.sleep(0.1)
        if left:
            yield what, f"left processes {left}"
            for pid in left:
                os.kill(pid, signal.SIGKILL)
        if out.exists() and not is_whole(out):
            yield what, "half a row is left"
        for path in place.iterdir():
            if path != out:
                yield what, f"left {path.name}"
            path.unlink()
        yield what, ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=("files", "disks", "streams", "kills"), action="append")
    parser.add_argument("--kills", type=int, default=60)
    given = parser.parse_args()
    parts: dict[str, Callable[[Path], Iterator[tuple[str, str]]]] = {
        "files": of_files,
        "disks": of_disks,
        "streams": of_streams,
        "kills": lambda place: of_kills(place, given.kills),
    }
    # Kernels are kept elsewhere, so that a full disk is one for results alone.
    os.environ.setdefault("CAMPAIGN_CACHE", os.environ.get("NUMBA_CACHE_DIR", ""))
    n_faults = 0
    for name in given.part or parts:
        cases, faults = 0, 0
        with tempfile.TemporaryDirectory() as text:
            for what, fault in parts[name](Path(text)):
                if fault:
                    faults += 1
                    print(f"{name}: {what}: {fault}", flush=True)
                else:
                    cases += 1
        print(f"{name:8} {cases:4} cases, {faults} faults", flush=True)
        n_faults += faults
    return 1 if n_faults else 0


if __name__ == "__main__":
    sys.exit(main())
