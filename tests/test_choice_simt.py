"""Kernels of SIMT lanes: spaces, shared memory, bank conflicts, choices as measured."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopsched import InputError, ProblemError, conv2d, gemm, load_arch, pick
from loopsched.gpu.choice.families import CLBLAST_GEMM, FILTER, Family
from loopsched.gpu.choice.pick import rank
from loopsched.gpu.choice.simt import clblast_resources, warp_cycles
from loopsched.gpu.choice.space import Space, space_of
from loopsched.gpu.occupancy import occupancy
from loopsched.validation.choices import validate_choices

DATA = Path(__file__).parent / "data"
PRODUCT = gemm(m=4096, n=4096, k=4096)
IMAGE = conv2d(n=1, c=1, k=1, h=4110, w=4110, r=15, s=15)
MEASURED = [
    # file, family, GPU, most that the first choice and the best of 20 may cost
    ("clblast_gemm_rtx_3090", CLBLAST_GEMM, "rtx_3090", 1.04, 1.02),
    ("clblast_gemm_titan_rtx", CLBLAST_GEMM, "titan_rtx", 1.02, 1.01),
    ("filter15_A4000", FILTER, "a4000", 1.02, 1.01),
    ("filter15_A6000", FILTER, "a6000", 1.06, 1.01),
    ("filter15_W6600", FILTER, "w6600", 1.02, 1.01),
]
BEST = {
    "MWG": 128,
    "NWG": 128,
    "KWG": 32,
    "MDIMC": 16,
    "NDIMC": 8,
    "MDIMA": 16,
    "NDIMB": 32,
    "KWI": 2,
    "VWM": 8,
    "VWN": 2,
    "STRM": 0,
    "STRN": 0,
    "SA": 1,
    "SB": 1,
}


def _measured(file: str) -> list[dict[str, float]]:
    with (DATA / f"{file}.csv").open(newline="") as lines:
        return [{k: float(v) for k, v in row.items()} for row in csv.DictReader(lines)]


@pytest.mark.parametrize(("file", "family", "arch", "first", "twenty"), MEASURED)
def test_the_first_of_a_whole_space_is_among_the_fastest(
    file: str, family: Family, arch: str, first: float, twenty: float
) -> None:
    """Ranked are all configurations; the file holds the fastest twenty and some others."""
    problem = PRODUCT if family is CLBLAST_GEMM else IMAGE
    ranked = rank(problem, load_arch(arch), family, family.tried(), "fp32")
    times = {tuple(row[name] for name in family.names): row["time_ms"] for row in _measured(file)}
    best = min(times.values())
    chosen = [tuple(ranked.space.configuration(int(at)).values()) for at in ranked.order[:20]]
    assert times[chosen[0]] <= first * best
    assert min(times.get(one, math.inf) for one in chosen) <= twenty * best
    fastest = min(times, key=lambda one: times[one])
    held = [
        tuple(ranked.space.configuration(at).values()) for at in np.flatnonzero(ranked.may_be_best)
    ]
    assert fastest in held
    assert len(held) <= 0.15 * len(ranked.space)


@pytest.mark.parametrize(("file", "family", "arch"), [one[:3] for one in MEASURED])
def test_files_of_the_hub_are_read_as_they_are(file: str, family: Family, arch: str) -> None:
    found = validate_choices(DATA / f"{file}.csv", arch, kernel=family.name)
    measured = _measured(file)
    assert found.summary["rows"] == len(measured)
    assert found.summary["bound_violations"] == 0
    (one,) = found.problems
    assert one["data_type"] == "fp32"
    assert one["best_us"] == pytest.approx(1e3 * min(row["time_ms"] for row in measured))
    assert one["rank_correlation"] > 0.7


def test_spaces_are_those_of_the_hub() -> None:
    """It lists so many, of the filter those of 1,024 threads and 48 KiB without padding at most."""
    assert len(CLBLAST_GEMM.tried()) == 17_956
    at = FILTER.tried().columns
    across, down = at["block_size_x"], at["block_size_y"]
    tile = (across * at["tile_size_x"] + 14) * (down * at["tile_size_y"] + 14) * 4
    runs = (across * down <= 1024) & ((at["use_shmem"] == 0) | (tile <= 49_152))
    assert runs.sum() == 4_362


@given(
    words=st.lists(st.integers(0, 400), min_size=32, max_size=32), vector=st.sampled_from([1, 2, 4])
)
def test_bank_conflicts_are_counted_as_by_hand(words: list[int], vector: int) -> None:
    """Each bank gives one word a cycle to all that ask for it; the oracle serves them in turn."""
    words = [word * vector for word in words]
    threads, cycles = 32 // vector, 0
    for first in range(0, 32, threads):
        waiting = {word + i for word in words[first : first + threads] for i in range(vector)}
        while waiting:
            served = {word % 32: word for word in sorted(waiting)}
            waiting -= set(served.values())
            cycles += 1
    assert warp_cycles(tuple(words), vector) == cycles


def test_shared_memory_and_residence_are_those_of_the_source() -> None:
    gpu = load_arch("titan_rtx").kernel_limits
    for switches, parts in (((1, 1), 256), ((1, 0), 128), ((0, 0), 0)):
        row = BEST | dict(zip(("SA", "SB"), switches, strict=True))
        space = space_of([row], CLBLAST_GEMM.names, CLBLAST_GEMM.switches)
        taken = clblast_resources(space, gpu, 4)
        assert taken.shared_bytes[0] == parts * 32 * 4
        held = occupancy(gpu, 128, int(taken.registers[0]), parts * 32 * 4).blocks
        assert taken.resident[0] == held
    row = {"block_size_x": 48, "block_size_y": 4, "tile_size_x": 2, "tile_size_y": 3}
    row |= {"read_only": 0, "use_shmem": 1, "use_padding": 0}
    plain = pick(IMAGE, load_arch("a4000"), kernel="filter", space=[row]).best
    assert plain.shared_bytes == (48 * 2 + 14) * (4 * 3 + 14) * 4
    padded = pick(IMAGE, load_arch("a4000"), kernel="filter", space=[row | {"use_padding": 1}]).best
    columns = padded.shared_bytes // 4 // (4 * 3 + 14)
    assert columns >= 110
    assert columns % 32 == 48 % 32


def test_what_does_not_divide_cannot_run() -> None:
    rows = [BEST, BEST | {"MDIMA": 32}, BEST | {"KWG": 20}, BEST | {"KWI": 3}]
    found = pick(PRODUCT, load_arch("rtx_3090"), kernel="clblast_gemm", space=rows)
    assert found.n_infeasible == 3
    assert dict(found.best.configuration) == BEST


@pytest.fixture(scope="module")
def spread() -> Space:
    return CLBLAST_GEMM.tried().kept(np.arange(17_956) % 97 == 0)


@given(k=st.integers(1, 9000))
def test_longer_sums_never_end_sooner(spread: Space, k: int) -> None:
    arch, space = load_arch("rtx_3090"), spread
    short = rank(gemm(m=512, n=768, k=k), arch, CLBLAST_GEMM, space, "fp32").times
    long = rank(gemm(m=512, n=768, k=k + 32), arch, CLBLAST_GEMM, space, "fp32").times
    assert (long.time_s >= short.time_s).all()


def test_choices_say_what_they_spend_time_on() -> None:
    for problem, kernel in ((PRODUCT, "clblast_gemm"), (IMAGE, "filter")):
        found = pick(problem, load_arch("a6000"), kernel=kernel, top=3, explain=True)
        assert found.data_type == "fp32"
        for one in found.choices:
            assert one.bound_us <= one.low_us <= one.estimate_us <= one.high_us
            assert one.bound_by in ("SIMT lanes", "shared memory", "L1", "L2", "DRAM", "latency")
            assert one.bound_by in one.why


def test_faults_are_said(tmp_path: Path) -> None:
    a4000 = load_arch("a4000")
    with pytest.raises(ProblemError, match="one channel with one filter"):
        pick(conv2d(c=2, k=1, h=64, w=64, r=3, s=3), a4000, kernel="filter")
    with pytest.raises(ProblemError, match="conv2d"):
        pick(PRODUCT, a4000, kernel="filter")
    with pytest.raises(InputError, match="SA must be a whole number from 0, not -1"):
        pick(PRODUCT, a4000, kernel="clblast_gemm", space=[BEST | {"SA": -1}])
    with pytest.raises(InputError, match="MWG must be a whole number from 1, not 0"):
        pick(PRODUCT, a4000, kernel="clblast_gemm", space=[BEST | {"MWG": 0}])
    file = tmp_path / "mine.csv"
    names = ",".join(BEST)
    values = ",".join(str(one) for one in BEST.values())
    for text, said in (
        (f"{names},time_ms\n{values},soon\n", "are needed: time_us"),
        (f"{names},time\n{values},3\n", "no column 'time_us'"),
    ):
        file.write_text(text)
        with pytest.raises(InputError, match=said):
            validate_choices(file, a4000, kernel="clblast_gemm")
    with pytest.raises(InputError, match="no column 'kind'"):
        validate_choices(file, a4000)
