"""The shipped workloads against published totals and their sources' own figures."""

from __future__ import annotations

import csv
import functools
import json
from collections import Counter
from pathlib import Path

import jsonschema
import pytest

from loopsched.base.resources import resource_dir
from loopsched.network.text import load_workload
from loopsched.problems.footprint import tensor_bytes
from loopsched.problems.workload import (
    Workload,
    parse_workload,
    workload_names,
    workload_schema,
)

DATA = Path(__file__).parent / "data"
SCHEMA_FILE = resource_dir("workloads") / "schema" / "workload.schema.json"


def weights(workload: Workload) -> int:
    """Stored weights: the second operand of every layer that has one of its own."""
    total = 0
    for problem, count in zip(workload.problems, workload.counts, strict=True):
        if problem.kind in ("conv2d", "gemm"):
            tensor = problem.tensor("weight" if problem.kind == "conv2d" else "B")
            total += count * tensor_bytes(problem, tensor) // tensor.element_bytes
    return total


@pytest.mark.parametrize("name", workload_names())
def test_each_names_its_source_and_follows_the_schema(name: str) -> None:
    text = (resource_dir("workloads") / f"{name}.json").read_text(encoding="utf-8")
    jsonschema.Draft202012Validator(workload_schema()).validate(json.loads(text))
    workload = load_workload(name)
    assert workload.name == name
    assert len(workload.source) > 60
    assert len({problem.name for problem in workload.problems}) == len(workload.problems)


def test_schema_file_is_the_generated_one() -> None:
    jsonschema.Draft202012Validator.check_schema(workload_schema())
    assert json.loads(SCHEMA_FILE.read_text(encoding="utf-8")) == workload_schema()


def test_all_that_was_promised_is_shipped() -> None:
    networks = {
        "alexnet",
        "bert_base",
        "llama2_7b_decode",
        "llama2_7b_prefill",
        "resnet50",
        "vgg16",
    }
    reports = {f"report_00{i}" for i in range(4)}
    deepbench = {
        f"deepbench_{kind}{use}"
        for kind in ("conv", "gemm")
        for use in ("", "_inference_server", "_inference_device")
    }
    assert set(workload_names()) == networks | reports | deepbench


# Multiply-accumulates and parameters that torchvision publishes for its models, in thousand
# millions; parameters less those of biases and normalisation (no such layers here).
@pytest.mark.parametrize(
    ("name", "giga_macs", "parameters"),
    [
        ("resnet50", 4.089, 25_557_032 - 53_120 - 1_000),
        ("vgg16", 15.470, 138_357_544 - 4_224 - 9_192),
        ("alexnet", 0.714, 61_100_840 - 1_152 - 9_192),
    ],
)
def test_networks_have_their_published_totals(name: str, giga_macs: float, parameters: int) -> None:
    workload = load_workload(name)
    assert workload.macs / 1e9 == pytest.approx(giga_macs, abs=0.0006)
    assert weights(workload) == parameters


def test_resnet50_has_53_convolutions_and_one_classifier() -> None:
    workload = load_workload("resnet50")
    kinds: Counter[str] = Counter()
    for problem, count in zip(workload.problems, workload.counts, strict=True):
        kinds[problem.kind] += count
    assert kinds == {"conv2d": 53, "gemm": 1}


def test_bert_base_has_its_published_encoder() -> None:
    workload = load_workload("bert_base")
    # 109,482,240 published parameters less embeddings, pooler, biases and normalisation.
    embeddings, pooler = (30_522 + 512 + 2 + 2) * 768, 768 * 769
    per_layer_small = 4 * 768 + 3072 + 768 + 4 * 768  # biases of 6 matrices, 2 normalisations
    assert weights(workload) == 109_482_240 - embeddings - pooler - 12 * per_layer_small
    # 22.5 GFLOP at 128 tokens (Sun et al., MobileBERT, table 4): scale from 384.
    macs = {p.kind: 0 for p in workload.problems}
    for problem, count in zip(workload.problems, workload.counts, strict=True):
        macs[problem.kind] += count * problem.macs
    at_128 = macs["gemm"] / 3 + macs["batched_gemm"] / 9
    assert 2 * at_128 / 1e9 == pytest.approx(22.5, rel=0.01)


@pytest.mark.parametrize("name", ["llama2_7b_prefill", "llama2_7b_decode"])
def test_llama_2_7b_has_its_published_parameters(name: str) -> None:
    workload = load_workload(name)
    embedding, normalisation = 32_000 * 4096, 65 * 4096
    assert weights(workload) + embedding + normalisation == 6_738_415_616
    assert {t.element_bytes for p in workload.problems for t in p.tensors} == {2}


def test_llama_decode_reads_each_weight_for_one_token() -> None:
    """Two operations a weight, and the attention over 2048 tokens beside."""
    workload = load_workload("llama2_7b_decode")
    assert workload.macs == weights(workload) + 32 * 2 * 2048 * 4096


def test_deepbench_convolutions_have_the_listed_output_sizes() -> None:
    seen: Counter[str] = Counter()
    load = functools.cache(load_workload)
    with open(DATA / "deepbench_conv_outputs.csv", newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            problem = load(row["workload"]).problems[int(row["index"])]
            listed = int(row["out_h"]), int(row["out_w"])
            assert (problem.size["P"], problem.size["Q"]) == listed, row
            seen[row["workload"]] += 1
    assert seen == {
        "deepbench_conv": 94,
        "deepbench_conv_inference_server": 107,
        "deepbench_conv_inference_device": 16,
    }
    for name, n_problems in seen.items():
        assert len(load_workload(name).problems) == n_problems


def test_deepbench_training_convolutions_repeat_four() -> None:
    problems = load_workload("deepbench_conv").problems
    assert len({problem.renamed("x") for problem in problems}) == 90
    first, last = problems[0], problems[-1]
    assert (first.size["R"], first.size["S"], first.size["Q"]) == (5, 20, 341)
    assert (last.size["C"], last.size["K"], last.size["P"]) == (2048, 512, 7)


@pytest.mark.parametrize(
    ("name", "n_problems", "orders"),
    [
        ("deepbench_gemm", 160, {"nn", "nt", "tn"}),
        ("deepbench_gemm_inference_server", 75, {"nn"}),
        ("deepbench_gemm_inference_device", 13, {"nn"}),
    ],
)
def test_deepbench_gemms(name: str, n_problems: int, orders: set[str]) -> None:
    problems = load_workload(name).problems
    assert len(problems) == n_problems
    found = {
        "".join("nt"[bool(on)] for _, on in problem.attributes if isinstance(on, bool))
        for problem in problems
    }
    assert found == orders


def test_report_000_has_the_floating_point_operations_it_prints() -> None:
    """The 'Predicted FLOPs' rows of figures 15 to 18."""
    flops = {p.name: p.flops for p in load_workload("report_000").problems}
    assert flops["block"] == 18_874_368
    channels = [flops[f"channel_{2**i}"] for i in range(1, 10)]
    assert channels == [
        73_728, 294_912, 1_179_648, 4_718_592, 18_874_368, 75_497_472, 301_989_888,
        1_207_959_552, 4_831_838_208,
    ]  # fmt: skip
    kernels = [flops[f"kernel_{x}"] for x in (3, 5, 7, 9, 11)]
    assert kernels == [18_874_368, 52_428_800, 102_760_448, 169_869_312, 253_755_392]
    sizes = [flops[f"size_{x}"] for x in (14, 28, 56, 112, 256)]
    assert sizes == [3_612_672, 14_450_688, 57_802_752, 231_211_008, 1_207_959_552]


def test_report_001_computes_every_pixel_of_16_images() -> None:
    (problem,) = load_workload("report_001").problems
    assert problem.macs == 16 * 2048 * 2048 * 121
    elements = {t.name: tensor_bytes(problem, t) // 4 for t in problem.tensors}
    assert elements == {"input": 16 * 2048**2, "weight": 121, "output": 16 * 2048**2}


def test_report_002_has_the_grids_and_weights_it_prints() -> None:
    """Table 1: 12 x 25 and 24 x 4 blocks of 16 x 16 an image; 14112 weights in layer 2."""
    workload = load_workload("report_002")
    assert [p.size["N"] for p in workload.problems] == [100, 100, 1000, 1000, 10000, 10000]
    for problem, grid in zip(workload.problems, [(12, 25), (24, 4)] * 3, strict=True):
        blocks = -(-problem.size["P"] // 16) * -(-problem.size["Q"] // 16)
        assert (problem.size["K"], blocks) == grid
    second = workload.problems[1]
    assert tensor_bytes(second, second.tensor("weight")) == 4 * 14_112
    assert tensor_bytes(second, second.tensor("input")) == 4 * 100 * 12 * (66 // 2) ** 2


def test_report_003_reproduces_the_compute_times_it_prints() -> None:
    """Rows that it calls compute-bound: FLOP / 18.7e12, in whole microseconds."""
    problems = {problem.name: problem for problem in load_workload("report_003").problems}
    assert len(problems) == 56
    printed = {"channels_224_64": 12661, "channels_224_32": 1583, "channels_14_256": 3165,
               "channels_14_128": 396, "channels_14_64": 50}  # fmt: skip
    for name, microseconds in printed.items():
        # The report's formula takes the input's size for the output's; padding 1 makes them equal.
        assert problems[name].flops / 18.7e12 * 1e6 == pytest.approx(microseconds, abs=1), name
    layer = problems["fc_25088x4096_batch_64"]
    assert layer.size == {"M": 64, "N": 4096, "K": 25088}


def test_the_documented_example_is_valid() -> None:
    page = Path(__file__).parent.parent / "docs" / "workloads.md"
    if not page.exists():  # tests of an installed package have no docs beside them
        pytest.skip("no docs folder")
    data = json.loads(page.read_text(encoding="utf-8").split("```")[1].removeprefix("json"))
    jsonschema.validate(data, workload_schema())
    kinds = {problem.kind for problem in parse_workload(data, "docs", "docs").problems}
    assert kinds == {"conv2d", "gemm", "batched_gemm", "einsum", "affine"}
