"""Report 000's model against every prediction and error that the report prints."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from loopsched.base.errors import InputError, ProblemError
from loopsched.problems.builders import conv2d, gemm
from loopsched.problems.problem import Problem
from loopsched.published.model_000 import (
    Report000Constants,
    Report000Prediction,
    report000_prediction,
)

PRINTED = json.loads(
    (Path(__file__).parent.parent / "loopsched/published/data/report_000.json").read_text()
)
USUAL = {"block": 32, "channels": 32, "filter": 3, "size": 32}
QUANTITIES: dict[str, Callable[[Report000Prediction], float]] = {
    "flops": lambda said: said.flops,
    "int_ops": lambda said: said.int_ops,
    "total_ops": lambda said: said.total_ops,
    "compute_ms": lambda said: said.compute_s * 1e3,
    "memory_ms": lambda said: said.memory_s * 1e3,
    "execution_ms": lambda said: said.execution_s * 1e3,
    "tops": lambda said: said.tops,
    "l1_intensity": lambda said: said.l1_intensity,
    "l2_intensity": lambda said: said.l2_intensity,
    "dram_intensity": lambda said: said.dram_intensity,
}


def direct(channels: int = 32, size: int = 32, filter: int = 3) -> Problem:  # noqa: A002
    return conv2d(c=channels, k=channels, p=size, q=size, r=filter, s=filter)


def kernels() -> Iterator[tuple[str, dict[str, dict[str, str]], Problem, int]]:
    """Every column of every printed table."""
    for table in PRINTED["tables"]:
        for position, case in enumerate(table["cases"]):
            cells = {
                part: {name: row[position] for name, row in table[part].items()}
                for part in ("measured", "predicted", "error_percent")
            }
            sizes = USUAL | {table["varied"]: case}
            block = sizes.pop("block")
            yield f"{table['name']}_{case}", cells, direct(**sizes), block


KERNELS = list(kernels())
each_kernel = pytest.mark.parametrize(
    ("cells", "problem", "block"), [kernel[1:] for kernel in KERNELS], ids=[k[0] for k in KERNELS]
)


def as_printed(value: float, printed: str) -> str:
    """Write a value with the decimals of a printed one."""
    return f"{value:.{max(0, -int(Decimal(printed).as_tuple().exponent))}f}"


def differing(**options: object) -> set[tuple[str, str]]:
    """Cells that the model does not give if something in it is changed."""
    found = set()
    for name, cells, problem, block in KERNELS:
        said = report000_prediction(problem, block, **options)  # type: ignore[arg-type]
        for quantity, printed in cells["predicted"].items():
            if as_printed(QUANTITIES[quantity](said), printed) != printed:
                found.add((name, quantity))
    return found


def test_the_tables_are_complete() -> None:
    assert len(KERNELS) == 4 + 9 + 5 + 5
    assert {len(cells["predicted"]) for _, cells, _, _ in KERNELS} == {10}


@each_kernel
def test_printed_predictions(
    cells: dict[str, dict[str, str]], problem: Problem, block: int
) -> None:
    said = report000_prediction(problem, block)
    for quantity, printed in cells["predicted"].items():
        assert as_printed(QUANTITIES[quantity](said), printed) == printed, quantity
    # TOPs have six digits, zeros at the end left out.
    assert f"{said.tops:.6g}" == cells["predicted"]["tops"]


@each_kernel
def test_printed_errors(cells: dict[str, dict[str, str]], problem: Problem, block: int) -> None:
    """They follow from times rounded to 1e-6 ms and TOPs of six digits."""
    said = report000_prediction(problem, block)
    measured = {name: float(cells["measured"][name]) for name in cells["error_percent"]}
    measured["tops"] = measured["total_ops"] / measured["execution_ms"] / 1e9
    predicted = {
        "flops": said.flops,
        "int_ops": said.int_ops,
        "total_ops": said.total_ops,
        "execution_ms": round(said.compute_s * 1e3, 6) + round(said.memory_s * 1e3, 6),
        "tops": float(f"{said.tops:.6g}"),
    }
    for quantity, printed in cells["error_percent"].items():
        error = 100 * abs(predicted[quantity] / measured[quantity] - 1)
        assert f"{error:.2f}" == printed, quantity


@each_kernel
def test_measured_rows_agree_with_each_other(
    cells: dict[str, dict[str, str]], problem: Problem, block: int
) -> None:
    measured = {name: float(text) for name, text in cells["measured"].items()}
    assert measured["flops"] + measured["int_ops"] == measured["total_ops"]
    tops = measured["total_ops"] / measured["execution_ms"] / 1e9
    assert f"{tops:.3f}" == cells["measured"]["tops"]


def test_measured_flops_are_two_a_mac_and_one_an_output() -> None:
    left_over = {}
    for name, cells, problem, _ in KERNELS:
        size = problem.size
        outputs = size["K"] * size["P"] * size["Q"]
        excess = int(cells["measured"]["flops"]) - 2 * problem.macs
        if excess != outputs:
            left_over[name] = (excess, outputs)
    # One row only: 1,025 of 2,048 outputs.
    assert left_over == {"channel_2": (1025, 2048)}


def test_other_readings_of_the_report_do_not_give_its_tables() -> None:
    # The peak rates as printed: not one compute time of the tables.
    by_printed_rates = differing(constants=Report000Constants.printed())
    assert len(by_printed_rates) == 51
    compute = {name for name, quantity in by_printed_rates if quantity == "compute_ms"}
    assert len(compute) == 23
    # Its first method: only the two smallest memory times survive, of 1e-3 ms.
    by_latency = differing(memory="latency")
    assert len(by_latency) == 67
    assert sum(quantity == "memory_ms" for _, quantity in by_latency) == 21
    # Other clocks: GPU boost, and one at the edge of what six digits of TOPs can tell.
    for clock_hz in (1.455e9, 1.38e9, 1.2001e9, 1.1999e9):
        wrong = differing(constants=Report000Constants(clock_hz=clock_hz))
        assert {quantity for _, quantity in wrong} >= {"tops"}, clock_hz
    # The integer rate as printed would bind; tables only say that it is at least 53.1e12.
    assert differing(constants=Report000Constants(int_ops_per_s=5.52e12))
    # The bandwidth of the card's own data sheet.
    assert len(differing(constants=Report000Constants(dram_bytes_per_s=652.8e9))) > 40


def test_by_hand() -> None:
    """The default kernel, formula by formula, from the report's text."""
    said = report000_prediction(direct(), 32)
    assert said.grid == (1, 1, 32)
    assert said.thread_int_ops == 4 + 4 + 32 * (6 * 34 * 34 + 8 * 9 + 9 + 1)
    assert said.int_ops == int(said.thread_int_ops * 32 * 32 * 32 / 101.4)
    # 32 of 80 multiprocessors have a block.
    assert said.compute_s == pytest.approx(2 * 9 * 32**4 / (13.8e12 * 32 / 80))
    assert said.fill_s == pytest.approx(32 * 32 * 34 * 34 * 4 / 750e9)
    assert said.synapse_s == pytest.approx(9 * 32 * 4 * 32**3 / 750e9)
    # Two blocks of 1,024 threads on each of 80.
    assert said.blocks_at_a_time == 160
    assert said.shared_s == pytest.approx(9 * 32 * 19 / 1.2e9 * 32**3 / (160 * 1024))
    assert said.limit_s == said.memory_s
    assert said.execution_s == said.compute_s + said.memory_s
    assert said.warnings == ()


def test_latency_method_by_hand() -> None:
    said = report000_prediction(direct(), 32, memory="latency")
    cycle = 1 / 1.2e9
    # 4,624 bytes are 36 reads of 128, and 16 bytes that its whole division drops.
    assert said.fill_s == pytest.approx(36 * 375 * cycle * 32 * 32 / 160)
    # 36 bytes of weights are one line; 160 output channels are active, though there are 32.
    fetch = 1 * (193 + 375) * cycle * 32 * 32 / 160
    hits = (32**4 - 32 * 32) * 193 * cycle / (160 * 1024)
    assert said.synapse_s == pytest.approx(fetch + hits)
    assert said.shared_s == report000_prediction(direct(), 32).shared_s
    # 11 x 11 floats are 484 bytes: 7 lines of 64, although 7.6 are needed.
    wide = report000_prediction(direct(filter=11), 32, memory="latency")
    fetch = 7 * (193 + 375) * cycle * 32 * 32 / 160
    hits = (32**4 - 7 * 32 * 32) * 193 * cycle / (160 * 1024)
    assert wide.synapse_s == pytest.approx(fetch + hits)


def test_what_limits_the_blocks_at_a_time() -> None:
    assert report000_prediction(direct(), 4).blocks_at_a_time == 32 * 80  # blocks
    assert report000_prediction(direct(), 8).blocks_at_a_time == 32 * 80  # threads, too
    assert report000_prediction(direct(), 16).blocks_at_a_time == 8 * 80  # threads
    # 24 x 24 = 576 threads, 18 warps: 3 blocks.
    assert report000_prediction(direct(), 24).blocks_at_a_time == 3 * 80
    # A tile of (32 + 94) squared floats, 63,504 bytes: one a multiprocessor.
    assert report000_prediction(direct(filter=95), 32).blocks_at_a_time == 80


def test_oblong_blocks() -> None:
    said = report000_prediction(direct(), (16, 8))
    assert said.grid == (2, 4, 32)
    assert said.thread_int_ops == 8 + 32 * (6 * 18 * 10 + 9 * 9 + 1)
    # The fitted divisor looks at the width only.
    assert said.int_ops == int(said.thread_int_ops * 32**3 / (101.4 * 2))


def test_shared_memory_warning() -> None:
    # 49,152 bytes are 12,288 floats: a tile of 110 squared fits, 111 squared does not.
    assert report000_prediction(direct(filter=79), 32).warnings == ()
    (warning,) = report000_prediction(direct(filter=80), 32).warnings
    assert warning == "the tile takes 49284 bytes of shared memory; a block has 49152"


def test_bad_input() -> None:
    with pytest.raises(ProblemError, match="without groups, not gemm over M N K"):
        report000_prediction(gemm(m=2, n=2, k=2), 8)
    with pytest.raises(ProblemError, match="forward pass of one image"):
        report000_prediction(conv2d(n=2, c=1, k=1, p=4, q=4, r=1, s=1), 8)
    with pytest.raises(ProblemError, match="stride and dilation 1"):
        report000_prediction(conv2d(c=1, k=1, p=4, q=4, r=3, s=3, stride=2), 8)
    for block in (0, (64, 2), (32, 64), (-4, -4)):
        with pytest.raises(InputError, match="up to 32 threads along x and 1024 in all"):
            report000_prediction(direct(), block)
    with pytest.raises(InputError, match="did you mean 'latency'"):
        report000_prediction(direct(), 8, memory="latencies")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no block would run"):
        report000_prediction(direct(filter=140, size=200), 32)
    with pytest.raises(InputError, match="sms is 0; it must be a number above 0"):
        Report000Constants(sms=0)
