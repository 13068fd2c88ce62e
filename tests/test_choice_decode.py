"""Decoding: problems, what blocks take, estimates against the model, choices measured."""

from __future__ import annotations

from pathlib import Path

import pytest
from choice_oracle import Taken, estimate
from hypothesis import example, given
from hypothesis import strategies as st
from measured_choices import validated

from loopsched import Attention, load_arch, pick
from loopsched.base.errors import InputError, ProblemError
from loopsched.cli import run
from loopsched.gpu.choice.families import TRITON_DECODE
from loopsched.gpu.choice.fitted import fitted
from loopsched.gpu.choice.pick import rank
from loopsched.gpu.choice.pipeline import PARTS
from loopsched.gpu.choice.space import space_of
from loopsched.gpu.library.machine import machine_of

MACHINES = {name: load_arch(name) for name in ("h100", "h200", "rtx_3090")}
H200 = MACHINES["h200"]
ROW = {"block_m": 16, "block_n": 64, "stages": 3, "warps": 4, "split_k": 8}


@given(
    heads=st.sampled_from([(1, 1), (8, 8), (32, 8), (12, 1)]),
    batch=st.integers(1, 20),
    length=st.one_of(st.integers(4, 100_000), st.sampled_from([4096, 65_536])),
    queries=st.integers(1, 3),
    head_size=st.sampled_from([16, 64, 80, 128]),
    place=st.sampled_from([("h100", "fp16"), ("h200", "fp8"), ("rtx_3090", "fp16")]),
    rows=st.lists(
        st.fixed_dictionaries(
            {
                "block_m": st.sampled_from([16, 64]),
                "block_n": st.sampled_from([32, 64, 128]),
                "stages": st.integers(1, 4),
                "warps": st.sampled_from([1, 2, 4, 8]),
                "split_k": st.sampled_from([1, 2, 16, 128]),
            }
        ),
        min_size=1,
        max_size=4,
    ),
)
# Parts of sums that L2 does not hold.
@example(
    heads=(64, 64),
    batch=64,
    length=4096,
    queries=1,
    head_size=128,
    place=("h200", "fp16"),
    rows=[ROW | {"split_k": 128}],
)
def test_decoding_takes_what_the_model_says(
    heads: tuple[int, int],
    batch: int,
    length: int,
    queries: int,
    head_size: int,
    place: tuple[str, str],
    rows: list[dict[str, int]],
) -> None:
    problem = Attention(batch, heads[0], length, head_size, groups=heads[1], queries=queries)
    arch, data_type = MACHINES[place[0]], place[1]
    small = {"block_m": 64, "block_n": 32, "stages": 2, "warps": 1, "split_k": 2}
    space = space_of([*rows, small], TRITON_DECODE.names)
    found = rank(problem, arch, TRITON_DECODE, space, data_type)
    machine, fit = machine_of(arch, data_type), fitted("none")
    for at in range(len(found.space)):
        one = found.space.configuration(at)
        assert one["block_m"] >= queries * heads[0] // heads[1]
        taken = Taken(bool(found.taken.by_group[at]), int(found.taken.resident[at]))
        seconds, spent, waves = estimate(problem, one, data_type, taken, machine, fit)
        assert found.times.time_s[at] == pytest.approx(seconds, rel=1e-9), one
        assert [found.times.parts[part][at] for part in PARTS] == pytest.approx(spent, rel=1e-9)
        assert found.times.waves[at] == pytest.approx(waves, rel=1e-12)


def test_choices_cost_what_is_said(tmp_path: Path) -> None:
    """The figures of docs/choosing_kernels.md: six problems on an H200, nothing fitted to any."""
    found = validated("h200_triton_more.csv.gz", H200, tmp_path)
    (group,) = [one for one in found.summary["groups"] if one["kind"] == "decode"]
    assert (group["problems"], group["rows"]) == (6, 1500)
    assert group["first_1"] <= 1.03
    assert group["first_1_worst"] <= 1.06
    assert group["first_5"] <= 1.02
    assert group["set_share"] <= 0.15
    assert (group["sets_without_best"], group["bound_violations"], group["refused"]) == (0, 0, 0)
    told = {row["problem"]: row["bound_us"] for row in found.rows if row["kind"] == "decode"}
    asked = Attention.named("64x32x1:2048x128x0x8")
    assert told["64x32x2048x128x0x8"] == pick(asked, H200, top=1).best.bound_us


def test_few_queries_have_names_and_work_of_their_own() -> None:
    one = Attention.named("2x8x3:100x64x1x2")
    assert (one.queries, one.n_queries, one.length, one.groups) == (3, 3, 100, 2)
    assert one.name == "2x8x3:100x64x1x2"
    # The last query sees all keys, those before it one less each.
    assert one.macs == 2 * 2 * 8 * (98 + 99 + 100) * 64
    assert one.elems == 2 * 2 * (8 * 3 + 2 * 100) * 64
    assert Attention(1, 1, 64, 64, queries=64) == Attention(1, 1, 64, 64)
    for text in ("1x8x:64x64x0", "1x8x1:2:64x64x0", "1x8x0:64x64", "1:1x8x64x64x0"):
        with pytest.raises(ProblemError, match="is not BxHxSxDxcausal"):
            Attention.named(text)
    with pytest.raises(ProblemError, match="65 queries to 64 keys"):
        Attention.named("1x8x65:64x64x0")


def test_few_queries_are_decoded(capsys: pytest.CaptureFixture[str]) -> None:
    few, many = Attention(1, 32, 8192, 128, queries=1), Attention(1, 32, 8192, 128)
    assert pick(few, H200, top=1).kernel == "triton_decode"
    with pytest.raises(ProblemError, match="triton_attention computes attention with as many"):
        pick(few, H200, kernel="triton_attention")
    with pytest.raises(ProblemError, match="triton_decode computes attention with fewer queries"):
        pick(many, H200, kernel="triton_decode")
    assert run(["pick", "attention:1x32x1:8192x128x0x8", "--arch", "h200", "--top", "1"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert said.startswith(
        "attention 1x32x1:8192x128x0x8 (batch 1; 32 heads, 8 key/value heads; 1 query, 8,192 keys; "
        "head size 128; no mask), fp16, triton_decode on h200: at least "
    )


def test_a_block_holds_all_queries_of_a_head_of_keys() -> None:
    rows = [ROW, ROW | {"block_m": 64}, ROW | {"block_m": 64, "split_k": 3}]
    found = pick(Attention(1, 40, 8192, 128, groups=1, queries=1), H200, space=rows)
    assert found.n_infeasible == 2
    assert found.best.configuration["block_m"] == 64
    with pytest.raises(InputError, match="the only configuration of triton_decode cannot run"):
        pick(Attention(1, 40, 8192, 128, groups=1, queries=2), H200, space=rows[1:2])
    for heads, wanted in ((1, 16), (16, 16), (17, 32), (40, 64), (128, 128)):
        tried = pick(Attention(1, heads, 8192, 64, groups=1, queries=1), H200).choices
        assert {one.configuration["block_m"] for one in tried} == {wanted}
    with pytest.raises(InputError, match="usually tried of triton_decode suits it"):
        pick(Attention(1, 129, 8192, 64, groups=1, queries=1), H200)


def test_keys_are_split_where_heads_are_few() -> None:
    parts = {
        batch: pick(Attention(batch, 32, 8192, 128, groups=8, queries=1), H200, top=1).best
        for batch in (1, 64)
    }
    assert parts[1].configuration["split_k"] >= 8
    assert parts[64].configuration["split_k"] <= 2
