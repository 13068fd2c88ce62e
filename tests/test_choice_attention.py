"""Attention: problems, what blocks take, estimates against the model, choices measured."""

from __future__ import annotations

import math

import numpy as np
import pytest
from attention_oracle import estimate, run
from hypothesis import example, given
from hypothesis import strategies as st

from loopsched import Attention, gemm, load_arch, pick
from loopsched.base.errors import InputError, ProblemError
from loopsched.gpu.choice._block_kernels import blocks_cycles
from loopsched.gpu.choice.attention import PARTS, attention_numbers
from loopsched.gpu.choice.families import TRITON_ATTENTION
from loopsched.gpu.choice.pick import rank
from loopsched.gpu.choice.space import space_of
from loopsched.gpu.library.machine import ELEMENT_BYTES, machine_of
from loopsched.validation.choices import validate_choices
from loopsched.validation.csv_files import sheet_of

MACHINES = {name: load_arch(name) for name in ("h100", "h200", "rtx_3090")}
H200 = MACHINES["h200"]
ROW = {"block_m": 64, "block_n": 64, "stages": 3, "warps": 4}
ROWS = st.fixed_dictionaries(
    {
        "block_m": st.sampled_from([16, 64, 128]),
        "block_n": st.sampled_from([16, 32, 64, 128]),
        "stages": st.integers(1, 4),
        "warps": st.sampled_from([1, 2, 4, 8]),
    }
)


def _times(problem: Attention, rows: list[dict[str, int]], arch: str = "h200") -> np.ndarray:
    space = space_of(rows, TRITON_ATTENTION.names)
    return rank(problem, MACHINES[arch], TRITON_ATTENTION, space, "fp16").times.time_s


@given(
    batch=st.integers(1, 5),
    heads=st.sampled_from([(1, 1), (8, 8), (8, 2), (12, 4)]),
    length=st.one_of(st.integers(1, 3000), st.sampled_from([64, 2048, 4096])),
    head_size=st.sampled_from([16, 64, 80, 128, 256]),
    causal=st.booleans(),
    place=st.sampled_from([("h100", "fp16"), ("h200", "fp8"), ("rtx_3090", "fp16")]),
    rows=st.lists(ROWS, min_size=1, max_size=4),
)
# Many heads, of which only the last are walked; eight warps on 64 rows; too few registers.
@example(
    batch=16,
    heads=(32, 32),
    length=2048,
    head_size=128,
    causal=True,
    place=("h200", "fp16"),
    rows=[
        {"block_m": m, "block_n": n, "stages": s, "warps": w}
        for m, n, s, w in ((64, 64, 3, 8), (128, 128, 2, 4), (128, 64, 2, 4), (64, 64, 3, 4))
    ],
)
def test_attention_takes_what_the_model_says(
    batch: int,
    heads: tuple[int, int],
    length: int,
    head_size: int,
    causal: bool,
    place: tuple[str, str],
    rows: list[dict[str, int]],
) -> None:
    problem = Attention(batch, heads[0], length, head_size, causal, heads[1])
    arch, data_type = MACHINES[place[0]], place[1]
    small = {"block_m": 16, "block_n": 32, "stages": 2, "warps": 4}
    space = space_of([*rows, small], TRITON_ATTENTION.names)
    found = rank(problem, arch, TRITON_ATTENTION, space, data_type)
    machine, width = machine_of(arch, data_type), ELEMENT_BYTES[data_type]
    for at in range(len(found.space)):
        one, group = found.space.configuration(at), bool(found.taken.by_group[at])
        resident = int(found.taken.resident[at])
        wanted = estimate(problem, one, width, group, resident, machine, attention_numbers())
        assert found.times.time_s[at] == pytest.approx(wanted, rel=1e-9), one


@given(rows=st.lists(ROWS, min_size=2, max_size=12), causal=st.booleans())
def test_a_configuration_takes_the_same_in_any_space(
    rows: list[dict[str, int]], causal: bool
) -> None:
    """To the last bit, whatever others are walked with it."""
    problem = Attention(2, 3, 1000, 64, causal)
    alone = [float(_times(problem, [row])[0]) for row in rows]
    assert _times(problem, rows).tolist() == alone


@given(
    keys=st.integers(1, 900),
    block=st.tuples(st.sampled_from([16, 64]), st.sampled_from([16, 48]), st.integers(1, 3)),
    causal=st.booleans(),
    heads=st.integers(1, 6),
    more=st.floats(0.0, 3.0),
    alone=st.floats(0.5, 2.5),
    crowded=st.sampled_from([0.0, 0.25, 1.0]),
)
@example(keys=336, block=(16, 16, 3), causal=False, heads=1, more=0.5, alone=0.5, crowded=0.0)
@example(keys=256, block=(16, 16, 3), causal=False, heads=1, more=0.5, alone=0.5, crowded=1.0)
# Seven equal blocks a head, 42 on five SMs: eight waves and two blocks.
@example(keys=112, block=(16, 16, 1), causal=False, heads=6, more=0.0, alone=1.0, crowded=0.25)
def test_blocks_begin_as_others_end(
    keys: int,
    block: tuple[int, int, int],
    causal: bool,
    heads: int,
    more: float,
    alone: float,
    crowded: float,
) -> None:
    rows, columns, resident = block
    rounds = [max(alone, float(many)) for many in range(resident + 1)]
    arguments = (np.array([block], dtype=float), keys, causal, heads, 5, np.array([more]))
    cycles, steps = blocks_cycles(*arguments, np.array([rounds]), crowded)[0]
    seen = [min((at + 1) * rows, keys) if causal else keys for at in range(-(-keys // rows))]
    lengths = [-(-one // columns) for one in seen]
    assert steps == sum(lengths)
    each = [one + more for one in lengths]
    walked = min(heads, -(-4 * 5 * resident // len(lengths))) if causal else heads
    before = (heads - walked) * sum(each) / (5 * resident) * rounds[resident]
    wanted = before + run(each * walked, 5, resident, rounds, None if causal else crowded)
    assert cycles == pytest.approx(wanted, rel=1e-9)
    # No schedule is faster than all processors busy, nor than the longest block alone.
    least = min(rounds[many] / many for many in range(1, resident + 1))
    assert cycles >= heads * sum(each) / 5 * least * (1 - 1e-9)
    assert cycles >= max(each) * rounds[1] * (1 - 1e-9)


def test_shared_memory_and_residence_are_the_compilers() -> None:
    """All 136 kernels that the shipped file tells of."""
    off = []
    for _, row in sheet_of("triton_h100", "spaces").rows:
        if isinstance(row, str) or row["kind"] != "attn" or row["block_m"] == "library":
            continue
        one = {name: row[name] for name in TRITON_ATTENTION.names}
        told = {name: row[name] for name in ("registers", "spills", "shared_bytes")}
        problem = Attention.named(str(row["problem"]))
        guessed, known = (
            TRITON_ATTENTION.taken(
                problem, space_of([given], TRITON_ATTENTION.names), H200.kernel_limits, 2
            )
            for given in (one, one | told)
        )
        assert guessed.shared_bytes[0] == known.shared_bytes[0]
        assert guessed.resident[0] == known.resident[0]
        off.append(abs(float(guessed.registers[0] - known.registers[0])))
    assert len(off) == 136
    assert np.mean(off) < 8


def test_scores_of_small_blocks_take_shared_memory() -> None:
    """As the compiler told of kernels of 16 queries: one stage less, queries, scores."""
    rows = [ROW | {"block_m": 16}, ROW | {"block_m": 16, "stages": 2, "warps": 1}]
    space = space_of(rows, TRITON_ATTENTION.names)
    found = TRITON_ATTENTION.taken(Attention(1, 1, 64, 128), space, H200.kernel_limits, 2)
    assert found.shared_bytes.tolist() == [71_680, 36_864]


def test_choices_cost_what_is_said() -> None:
    """The figures of docs/choosing_kernels.md: 20 problems on an H200, where nothing was fitted."""
    found = validate_choices("triton_h200_attention", "h200")
    (group,) = [one for one in found.summary["groups"] if one["kind"] == "attn"]
    assert group["problems"] == 20
    assert group["first_1"] <= 1.01
    assert group["first_1_worst"] <= 1.07
    assert group["first_5"] == 1
    assert group["set_share"] <= 0.15
    assert (group["sets_without_best"], group["bound_violations"]) == (0, 0)


def test_without_the_compilers_word_the_choice_is_the_same() -> None:
    """Where registers are guessed, the first choices cost no more."""
    times: dict[tuple[object, ...], float] = {}
    for _, row in sheet_of("triton_h100", "spaces").rows:
        if not isinstance(row, str) and row["kind"] == "attn" and row["block_m"] != "library":
            key = (row["problem"], *(row[name] for name in TRITON_ATTENTION.names))
            times[key] = float(str(row["time_us"]))
    for problem in dict.fromkeys(key[0] for key in times):
        best = pick(Attention.named(str(problem)), MACHINES["h100"], top=1).best
        fastest = min(time for key, time in times.items() if key[0] == problem)
        assert times[(problem, *best.configuration.values())] <= 1.01 * fastest


def test_masks_leave_out_work() -> None:
    whole, masked = Attention(2, 16, 4096, 128), Attention(2, 16, 4096, 128, causal=True)
    assert masked.macs * 2 == whole.macs + 2 * 32 * 4096 * 128
    rows = [ROW, ROW | {"block_m": 128}]
    assert (_times(masked, rows) < 0.75 * _times(whole, rows)).all()


def test_fewer_heads_of_keys_are_less_to_read() -> None:
    assert Attention(2, 16, 64, 64).elems == 4 * 2 * 16 * 64 * 64
    assert Attention(2, 16, 64, 64, groups=4).elems == 2 * 2 * (16 + 4) * 64 * 64
    few, many = (_times(Attention(2, 16, 256, 64, groups=one), [ROW]) for one in (1, 16))
    assert few < many


@given(st.integers(1, 5000), st.booleans(), st.sampled_from([64, 128]))
def test_longer_sequences_never_end_sooner(length: int, causal: bool, size: int) -> None:
    rows = [ROW, ROW | {"block_m": 128, "block_n": 32}]
    short, long = (_times(Attention(8, 8, one, size, causal), rows) for one in (length, 2 * length))
    assert (long > short).all()


def test_rows_are_ordered_and_nothing_beats_its_bound() -> None:
    found = pick(Attention(1, 4, 512, 64), H200, explain=True)
    assert (found.kernel, found.n_configurations) == ("triton_attention", 36)
    estimates = [one.estimate_us for one in found.choices]
    assert estimates == sorted(estimates)
    assert found.n_may_be_best <= 5
    for one in found.choices:
        assert one.bound_us <= one.low_us <= one.estimate_us <= one.high_us
        assert one.bound_by in PARTS
    memory = pick(Attention(64, 64, 64, 64), H200, top=1).best
    assert memory.bound_us <= memory.estimate_us


def test_sizes_and_names() -> None:
    one = Attention.named("4x32x2048x128x1x8")
    assert one == Attention(4, 32, 2048, 128, True, 8)
    assert one.name == "4x32x2048x128x1x8"
    assert Attention(4, 32, 2048, 128).name == "4x32x2048x128x0"
    for text, said in (
        ("4x32x2048x128", "is not BxHxSxDxcausal"),
        ("4x32x2048x128x2", "causal is 0 or 1, not 2"),
        ("4x32x2048x128x1x5", "32 heads are not 5 groups"),
        ("0x32x2048x128x1", "batch"),
    ):
        with pytest.raises(ProblemError, match=said):
            Attention.named(text)


def test_what_no_kernel_computes_is_refused() -> None:
    with pytest.raises(ProblemError, match="triton_gemm computes a GEMM or a convolution"):
        pick(Attention(1, 1, 64, 64), H200, kernel="triton_gemm")
    with pytest.raises(ProblemError, match="triton_attention computes attention with as many"):
        pick(gemm(m=64, n=64, k=64), H200, kernel="triton_attention")
    with pytest.raises(InputError, match="none of 2 configurations of triton_attention can run"):
        rows = [ROW | {"block_n": 96}, ROW | {"block_n": 1024}]
        pick(Attention(1, 1, 64, 64), H200, space=rows)


def test_measured_rows_of_attention(tmp_path) -> None:  # type: ignore[no-untyped-def]
    file = tmp_path / "mine.csv"
    head = "kind,problem,block_m,block_n,stages,warps,time_us\n"
    file.write_text(head + "attn,1x4x512x64x1,64,64,3,4,30\nattn,1x4x512x64x1,64,32,3,4,20\n")
    found = validate_choices(file, "h200")
    assert found.problems[0]["configurations"] == 2
    assert math.isclose(found.problems[0]["first_5"], 1)
    file.write_text(head + "attn,1x4x512,64,64,3,4,30\n")
    with pytest.raises(InputError, match=r"mine.csv: attention '1x4x512' is not BxHxSxDxcausal"):
        validate_choices(file, "h200")
