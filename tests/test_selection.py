"""Problems chosen by text: numbers, names, single lines, and what is refused."""

from __future__ import annotations

import json

import pytest

from loopsched import Workload, conv2d, einsum, gemm
from loopsched.base.errors import WorkloadError
from loopsched.network.selection import choose, problem_of, select, select_one

LAYERS = tuple(gemm(m=size, n=2, k=2).renamed(f"layer{size}") for size in (5, 6, 7))
MINE = Workload("mine", LAYERS, (2, 3, 4), "somewhere")


def test_layers_come_as_they_are_named_each_once_with_its_count() -> None:
    chosen = choose(MINE, ["2", "layer5", "0", "2"])
    assert chosen.numbers == (2, 0)
    assert chosen.workload == Workload("mine", (LAYERS[2], LAYERS[0]), (4, 2), "somewhere")
    assert choose(MINE).workload == MINE


def test_all_that_is_no_layer_is_told() -> None:
    with pytest.raises(WorkloadError) as caught:
        choose(MINE, ["3", "-1", "layr6"])
    assert caught.value.problems == (
        "no layer 3; layers are numbered 0 to 2",
        "no layer -1; layers are numbered 0 to 2",
        "no layer 'layr6'; did you mean 'layer6'? (allowed: 0 to 2, layer5, layer6, layer7)",
    )


def test_the_only_layer_is_told_as_one() -> None:
    alone = Workload("mine", LAYERS[:1], (1,), "somewhere")
    with pytest.raises(WorkloadError, match="no layer 3; the only layer is number 0"):
        choose(alone, ["3"])


def test_a_problem_in_one_line() -> None:
    written = {"op": "gemm", "m": 4, "n": 3, "k": 2, "transpose_b": True}
    for text in ("gemm:m=4, n=3,k=2,transpose_b=true", json.dumps(written)):
        assert problem_of(text) == gemm(m=4, n=3, k=2, transpose_b=True)
    sizes = {"c": 8, "k": 8, "h": 9, "w": 9, "r": 3, "s": 3}
    padded = conv2d(**sizes, stride=(2, 3), padding=(1, 0, 0, 2))
    assert "stride2x3 pad1x0x0x2" in padded.name
    text = ",".join(f"{name}={size}" for name, size in sizes.items())
    assert problem_of(f"conv2d:{text},stride=2x3,padding=1x0x0x2") == padded
    assert problem_of("gemm:m=4,n=3,k=2,name=2x3").name == "2x3"
    for text in ("einsum:ab,bc->ac,a=4,b=2,c=3", "einsum:expression=ab, bc->ac, a=4, b=2, c=3"):
        assert problem_of(text) == einsum("ab,bc->ac", {"a": 4, "b": 2, "c": 3})
    assert problem_of("einsum:ab->a,a=4,b=2,element_bytes=2").tensors[0].element_bytes == 2
    assert select("gemm:m=4,n=3,k=2", (), 2).workload.problems[0].tensors[1].element_bytes == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gemm:m=4,m=3,k=2", "field 'm' is given twice"),
        ("gemm:m=4x2,n=3,k=2", r"m is \[4, 2\]; a whole number >= 1 is needed"),
        ("gemm:m=4,n", "'n' is not field=value, such as m=128"),
        ("einsum:ab,bc->ac,a=4,b=2", "no size for 'c'"),
        ("einsum:ab,bc,a=4", "'ab' is not field=value"),
        ("{", "not JSON"),
        ("gemm", r"no 'm' \(rows of the result\)"),
        (
            "alexnet",
            "8 problems, but one is needed: alexnet#LAYER, by its name or its number, 0 to 7",
        ),
        ("alexnet#8", "no layer 8; layers are numbered 0 to 7"),
    ],
)
def test_what_is_no_single_problem(text: str, message: str) -> None:
    with pytest.raises(WorkloadError, match=message):
        problem_of(text)


def test_one_of_several_has_to_be_chosen() -> None:
    assert select_one("alexnet", ["1"]) == problem_of("alexnet#1")
    with pytest.raises(WorkloadError, match=r"8 problems, but one is needed; choose it with one -"):
        select_one("alexnet")
    with pytest.raises(
        WorkloadError, match=r"alexnet: 2 problems of 8 are chosen, .* \(0 to 7, or"
    ):
        select_one("alexnet", ["3", "5"])
