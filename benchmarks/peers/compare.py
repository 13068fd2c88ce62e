"""Run every peer beside loopsched, one process at a time, and make the tables.

    python compare.py run --accelforge PYTHON --zigzag PYTHON   # about 12 minutes
    python compare.py ours                                      # loopsched again, beside them
    python compare.py table                                     # from results/runs.jsonl

``PYTHON`` is the interpreter of a virtual environment that has the peer; a peer that is not
given keeps its earlier rows.  This interpreter must have loopsched and numpy.
"""

from __future__ import annotations

import argparse
import csv
import datetime as dt
import json
import os
import platform
import re
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import common

HERE = Path(__file__).parent
RUNS = HERE / "results" / "runs.jsonl"
TABLE = HERE / "results" / "table"
TARGET = 100
START_UP_S = 2.0
# Annealing takes long and proves nothing: half of the problems are enough.
ANNEALED = list(common.SEARCHED)[1::2]

Row = dict[str, Any]


def run(python: str, script: str, *words: str, limit_s: float) -> Row:
    """Run one script; a process that outlives its limit leaves the CPU seconds it had used."""
    start = time.perf_counter()
    process = subprocess.Popen(
        [python, str(HERE / script), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, errors = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        cpu, wall = group_cpu_s(process.pid), time.perf_counter() - start
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return {"outcome": "cut off", "process_cpu_s": cpu, "process_wall_s": wall}
    lines = out.strip().splitlines()
    if process.returncode or not lines:
        last = errors.strip().splitlines()[-1:] or ["no output"]
        return {"outcome": "failed", "error": last[0][:200]}
    row: Row = json.loads(lines[-1])
    row["outcome"] = "answered"
    return row


def group_cpu_s(group: int) -> float:
    """Sum the CPU seconds of a process and of its workers, while they still run."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if int(fields[2]) == group:
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def peer_runs(options: argparse.Namespace) -> list[tuple[str, str, list[str], float, Row]]:
    """List interpreter, script, arguments, limit and labels of each run of a peer."""
    runs = []
    for problem in common.SEARCHED:
        if options.accelforge:
            variants = [(["--levels", "2"], "2 levels", 90.0), (["--levels", "1"], "1 level", 90.0)]
            if problem.startswith("gemm"):
                variants.append((["--imperfect", "--warm", "1"], "2 levels, imperfect tiles", 60.0))
            for words, variant, limit in variants:
                labels = {"peer": "AccelForge", "variant": variant, "problem": problem}
                runs.append(
                    (options.accelforge, "accelforge_peer.py", [problem, *words], limit, labels)
                )
        if options.zigzag:
            engines = [("loma", "LOMA, lpf 6", 90.0), ("salsa", "SALSA", 45.0)]
            for engine, variant, limit in engines if problem in ANNEALED else engines[:1]:
                words = [problem, "--engine", engine, "--warm", "0" if engine == "salsa" else "1"]
                labels = {"peer": "ZigZag", "variant": variant, "problem": problem}
                runs.append((options.zigzag, "zigzag_peer.py", words, limit, labels))
    for problem, (_, capacity, _) in common.KNOWN_OPTIMA.items():
        for how in ("literal", "plain", "tuned"):
            words = [problem, "--capacity", str(capacity), "--how", how]
            labels = {"peer": "numpy enumeration", "problem": problem}
            labels["variant"] = f"1 level, {how}"
            runs.append((sys.executable, "numpy_peer.py", words, 90.0, labels))
    return runs


def ours_beside(words: list[str], variant: str) -> Row:
    """Run loopsched on the same problem and number of levels."""
    options = ["--levels", "1" if variant.startswith("1 level") else "2"]
    if "--capacity" in words:
        at = words.index("--capacity")
        options += words[at : at + 2]
    return run(sys.executable, "ours.py", words[0], *options, limit_s=60.0)


def measure(options: argparse.Namespace) -> None:
    RUNS.parent.mkdir(exist_ok=True)
    done = {}
    if RUNS.exists():
        rows = [json.loads(line) for line in RUNS.read_text().splitlines()]
        done = {(row["peer"], row["variant"], row["problem"]): row for row in rows}
    today = dt.datetime.now(dt.UTC).date().isoformat()
    for python, script, words, limit, labels in peer_runs(options):
        name = f"{labels['peer']}, {labels['variant']}, {labels['problem']}"
        if options.only and not re.search(options.only, name):
            continue
        ours = ours_beside(words, labels["variant"])
        peer = run(python, script, *words, limit_s=limit)
        row = labels | {k: v for k, v in peer.items() if k not in labels}
        row |= {"date": today, "cpu": _cpu_name(), "ours": ours}
        done[labels["peer"], labels["variant"], labels["problem"]] = row
        RUNS.write_text("".join(json.dumps(row) + "\n" for row in done.values()))
        print(text_of(summary(row)), flush=True)


def refresh() -> None:
    """Measure only loopsched again, beside the peers' earlier rows."""
    rows = [json.loads(line) for line in RUNS.read_text().splitlines()]
    for row in rows:
        words = [row["problem"]]
        if row["problem"] in common.KNOWN_OPTIMA:
            words += ["--capacity", str(common.KNOWN_OPTIMA[row["problem"]][1])]
        row["ours"] = ours_beside(words, row["variant"])
    RUNS.write_text("".join(json.dumps(row) + "\n" for row in rows))


def summary(row: Row) -> Row:
    """Flatten one run to a row of the table."""
    ours = row["ours"]
    warm = statistics.median(row["warm_cpu_s"]) if row.get("warm_cpu_s") else None
    cold = row.get("cold_cpu_s")
    if row["outcome"] == "cut off":  # of the whole process: less what it took to start
        cold = max(0.0, row["process_cpu_s"] - START_UP_S)
    best = warm or cold
    first, repeat = ours.get("first_cpu_ms"), ours.get("warm_cpu_ms")
    return {
        "problem": row["problem"],
        "peer": row["peer"],
        "variant": row["variant"],
        "version": row.get("version", ""),
        "outcome": row["outcome"],
        "peer_cold_cpu_s": cold and round(cold, 4),
        "peer_warm_cpu_s": warm and round(warm, 4),
        "peer_dram_bytes": row.get("dram_bytes"),
        "peer_rss_mb": row.get("peak_rss_mb"),
        "ours_first_cpu_ms": first and round(first, 3),
        "ours_warm_cpu_ms": repeat and round(repeat, 3),
        "ours_dram_bytes": ours.get("dram_bytes"),
        "ours_proven": ours.get("proven"),
        # Least favourable pairing: the peer's warm time, against both of ours.
        "ratio_warm": best and repeat and round(1e3 * best / repeat, 1),
        "ratio_first": best and first and round(1e3 * best / first, 1),
        "date": row["date"],
    }


def text_of(row: Row) -> str:
    """Format a row for people; ``>`` marks a lower bound from a run that was cut off."""
    mark = ">" if row["outcome"] == "cut off" else ""
    peer, ours = row["peer_dram_bytes"], row["ours_dram_bytes"]
    traffic = f"{peer / ours:.3f}" if peer and ours else "?"
    return (
        f"| {row['problem']} | {row['peer']}, {row['variant']} | {mark}{row['peer_cold_cpu_s']} "
        f"| {row['peer_warm_cpu_s'] or ''} | {peer or row['outcome']} | {row['ours_first_cpu_ms']} "
        f"| {row['ours_warm_cpu_ms']} | {ours} | {traffic} | {mark}{row['ratio_warm']} "
        f"| {mark}{row['ratio_first']} |"
    )


HEAD = (
    "| problem | peer | cold CPU s | warm CPU s | DRAM bytes | ours first ms | ours warm ms "
    "| ours DRAM bytes | traffic, peer / ours | warm / warm | warm / first |\n"
    "|---|---|---|---|---|---|---|---|---|---|---|\n"
)


def table() -> None:
    rows = [summary(json.loads(line)) for line in RUNS.read_text().splitlines()]
    with TABLE.with_suffix(".csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    text = HEAD + "".join(text_of(row) + "\n" for row in rows)
    for peer in dict.fromkeys(row["peer"] for row in rows):
        ratios = [row["ratio_warm"] for row in rows if row["peer"] == peer and row["ratio_warm"]]
        short = sum(ratio < TARGET for ratio in ratios)
        text += (
            f"\n{peer}: {len(ratios)} runs, {short} below {TARGET} times, "
            f"least {min(ratios)}, median {statistics.median(ratios):.1f}.\n"
        )
    TABLE.with_suffix(".md").write_text(text)
    print(text)


def _cpu_name() -> str:
    names = [
        line for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line
    ]
    return names[0].split(":")[1].strip() if names else platform.processor()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=("run", "ours", "table"))
    parser.add_argument("--accelforge", help="interpreter that has accelforge")
    parser.add_argument("--zigzag", help="interpreter that has zigzag-dse and six")
    parser.add_argument(
        "--only", help="measure only runs whose 'peer, variant, problem' holds this pattern"
    )
    options = parser.parse_args()
    if options.action == "run":
        measure(options)
    elif options.action == "ours":
        refresh()
    table()


if __name__ == "__main__":
    main()
