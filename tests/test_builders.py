"""Builders against textbook formulas, literal loops and their error messages."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopsched.base.errors import ProblemError
from loopsched.problems.builders import affine, batched_gemm, conv2d, einsum, gemm
from loopsched.problems.footprint import tensor_bytes
from loopsched.problems.problem import Axis, Problem, Tensor
from loopsched.problems.projections import parse_projection, projection_text

SMALL: dict[str, Any] = {"c": 3, "k": 8, "h": 9, "w": 9, "r": 3, "s": 3}


def faults_of(build: Any, **arguments: Any) -> tuple[str, ...]:
    with pytest.raises(ProblemError) as caught:
        build(**arguments)
    assert len(str(caught.value)) < 2000
    return caught.value.problems


def positions(tensor: Tensor, problem: Problem) -> set[tuple[int, ...]]:
    """Walk every iteration point; note each stored element of the tensor."""
    found = set()
    for point in itertools.product(*(range(size) for _, size in problem.sizes)):
        at = dict(zip(problem.dims, point, strict=True))
        place = [a.offset + sum(c * at[d] for d, c in a.terms) for a in tensor.axes]
        stored = (
            a.size is None or 0 <= x < a.size for x, a in zip(place, tensor.axes, strict=True)
        )
        if all(stored):
            found.add(tuple(place))
    return found


# --- gemm -----------------------------------------------------------------------------------


def test_gemm_dims_tensors_and_reduction() -> None:
    problem = gemm(m=5, n=4, k=3)
    assert problem.sizes == (("M", 5), ("N", 4), ("K", 3))
    assert {t.name: t.dims for t in problem.tensors} == {
        "A": ("M", "K"),
        "B": ("K", "N"),
        "C": ("M", "N"),
    }
    assert (problem.output, problem.reduction_dims, problem.macs) == ("C", ("K",), 60)
    assert [tensor_bytes(problem, t) for t in problem.tensors] == [60, 48, 80]


@pytest.mark.parametrize(
    ("a", "b", "dims"),
    [
        (False, True, (("M", "K"), ("N", "K"))),
        (True, False, (("K", "M"), ("K", "N"))),
        (True, True, (("K", "M"), ("N", "K"))),
    ],
)
def test_transposes_change_storage_and_are_kept(
    a: bool, b: bool, dims: tuple[tuple[str, ...], ...]
) -> None:
    problem = gemm(m=5, n=4, k=3, transpose_a=a, transpose_b=b)
    assert tuple(t.dims for t in problem.tensors[:2]) == dims
    assert dict(problem.attributes) == {"transpose_a": a, "transpose_b": b}


def test_batched_gemm_is_that_many_products() -> None:
    one, many = gemm(m=5, n=4, k=3), batched_gemm(batch=7, m=5, n=4, k=3)
    assert many.macs == 7 * one.macs
    assert many.dims == ("B", "M", "N", "K")
    assert [tensor_bytes(many, t) for t in many.tensors] == [
        7 * tensor_bytes(one, t) for t in one.tensors
    ]


def test_element_bytes_in_every_form() -> None:
    def widths(given: Any) -> list[int]:
        problem = gemm(m=1, n=1, k=1, element_bytes=given)
        return [tensor.element_bytes for tensor in problem.tensors]

    assert widths(2) == [2, 2, 2]
    assert widths("bf16") == [2, 2, 2]
    assert widths({"A": "fp8", "C": 8}) == [1, 4, 8]


# --- conv2d ---------------------------------------------------------------------------------


@given(
    h=st.integers(1, 60),
    r=st.integers(1, 7),
    stride=st.integers(1, 4),
    dilation=st.integers(1, 3),
    top=st.integers(0, 4),
    bottom=st.integers(0, 4),
)
def test_output_size_counts_the_windows_that_fit(
    h: int, r: int, stride: int, dilation: int, top: int, bottom: int
) -> None:
    last = top + h + bottom - 1
    windows = [
        y for y in range(0, last + 1, stride) if y + (r - 1) * dilation <= last
    ]  # literal: every start whose window ends inside
    if not windows:
        (fault, *_) = faults_of(
            conv2d, c=1, k=1, h=h, w=9, r=r, s=1, stride=(stride, 1),
            dilation=(dilation, 1), padding=(top, bottom, 0, 0),
        )  # fmt: skip
        assert fault.startswith(f"h is {h} ({h + top + bottom} with padding)")
        return
    problem = conv2d(
        c=1, k=1, h=h, w=9, r=r, s=1, stride=(stride, 1), dilation=(dilation, 1),
        padding=(top, bottom, 0, 0),
    )  # fmt: skip
    assert problem.size["P"] == len(windows)
    assert problem.size["Q"] == 9
    assert problem.tensor("input").axes[2] == Axis((("P", stride), ("R", dilation)), -top, h)


@given(
    p=st.integers(1, 30), r=st.integers(1, 5), stride=st.integers(1, 4), pad=st.integers(0, 2),
)  # fmt: skip
def test_given_output_means_the_smallest_input_with_that_output(
    p: int, r: int, stride: int, pad: int
) -> None:
    h = (p - 1) * stride + r - 2 * pad
    arguments: dict[str, Any] = {"c": 1, "k": 1, "r": r, "s": 1, "stride": stride}
    if h < 1:
        assert (
            "padding must be smaller"
            in faults_of(conv2d, p=p, q=2, padding=(pad, 0), **arguments)[0]
        )
        return
    by_output = conv2d(p=p, q=2, padding=(pad, 0), **arguments)
    by_input = conv2d(h=h, w=stride + 1, padding=(pad, 0), **arguments)
    assert by_output == by_input
    assert tensor_bytes(by_output, by_output.tensor("input")) <= 4 * h * (stride + 1)


@given(h=st.integers(1, 40), r=st.integers(1, 7), stride=st.integers(1, 4))
def test_same_padding_gives_one_output_a_stride(h: int, r: int, stride: int) -> None:
    problem = conv2d(c=1, k=1, h=h, w=h, r=r, s=r, stride=stride, padding="same")
    assert problem.size["P"] == math.ceil(h / stride)
    top, bottom, left, right = dict(problem.attributes)["padding"]  # type: ignore[misc]
    assert (top, bottom) == (left, right)
    assert 0 <= bottom - top <= 1
    # Given the output instead: the same output again.
    again = conv2d(c=1, k=1, p=problem.size["P"], q=1, r=r, s=r, stride=stride, padding="same")
    assert again.size["P"] == problem.size["P"]


def test_same_at_stride_one_keeps_the_size() -> None:
    assert conv2d(c=1, k=1, p=7, q=7, r=3, s=3, padding="same") == conv2d(
        c=1, k=1, h=7, w=7, r=3, s=3, padding=1
    )


@pytest.mark.parametrize("pass_", ["forward", "backward_data", "backward_weights"])
def test_passes_are_one_nest_with_another_output(pass_: str) -> None:
    forward = conv2d(n=2, c=2, k=3, h=5, w=4, r=3, s=2, stride=2, padding=1)
    problem = conv2d(n=2, c=2, k=3, h=5, w=4, r=3, s=2, stride=2, padding=1, pass_=pass_)
    assert problem.sizes == forward.sizes
    assert {t.name: t.axes for t in problem.tensors} == {t.name: t.axes for t in forward.tensors}
    written = {"forward": "output", "backward_data": "input", "backward_weights": "weight"}[pass_]
    assert problem.output == written == problem.tensors[-1].name
    reduced = {
        "forward": ("C", "R", "S"),
        "backward_data": ("K",),
        "backward_weights": ("N", "P", "Q"),
    }[pass_]
    assert problem.reduction_dims == reduced


def test_sums_and_parallel_dims_of_each_pass() -> None:
    """Windows that overlap on what is written leave its axes to no instance alone."""
    expected = {
        "forward": ({"C", "R", "S"}, {"N", "K", "P", "Q"}),
        "backward_data": ({"K"}, {"N", "C"}),
        "backward_weights": ({"N", "P", "Q"}, {"K", "C", "R", "S"}),
    }
    for pass_, (summed, parallel) in expected.items():
        problem = conv2d(n=2, c=3, k=4, h=8, w=8, r=3, s=3, pass_=pass_)
        assert set(problem.reduction_dims) == summed
        assert set(problem.parallel_dims) == parallel


def test_other_element_sizes_leave_the_rest() -> None:
    problem = gemm(m=4, n=3, k=2, element_bytes=8).with_element_bytes({"A": 2})
    assert [tensor.element_bytes for tensor in problem.tensors] == [2, 8, 8]


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ((Axis((("M", 1),)), Axis((("M", 1),))), "'A': a dimension occurs twice"),
        ((Axis((("M", 0),)),), "'A': coefficient of 'M' is 0"),
        ((Axis((("X", 1),)),), "'A': unknown dim 'X'"),
        ((Axis((("M", 1),), size=0),), "'A': axis size is 0"),
    ],
)
def test_impossible_axes(axes: tuple[Axis, ...], message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        Problem("odd", (("M", 4),), (Tensor("A", axes),), "A")


def test_read_order_of_each_pass() -> None:
    def order(pass_: str) -> list[str]:
        return [t.name for t in conv2d(**SMALL, pass_=pass_).tensors]

    assert order("forward") == ["input", "weight", "output"]
    assert order("backward_data") == ["output", "weight", "input"]
    assert order("backward_weights") == ["input", "output", "weight"]


@given(
    n=st.integers(1, 2), groups=st.integers(1, 3), c=st.integers(1, 2), k=st.integers(1, 2),
    h=st.integers(3, 5), r=st.integers(1, 2), stride=st.integers(1, 2), pad=st.integers(0, 1),
)  # fmt: skip
def test_tensors_of_a_convolution_are_those_of_the_literal_loops(
    n: int, groups: int, c: int, k: int, h: int, r: int, stride: int, pad: int
) -> None:
    """Channel-absolute textbook loops give the same element counts and multiplications."""
    problem = conv2d(
        n=n, c=c * groups, k=k * groups, h=h, w=h, r=r, s=r, stride=stride, padding=pad,
        groups=groups,
    )  # fmt: skip
    out = (h + 2 * pad - r) // stride + 1
    inputs, weights, outputs, macs = set(), set(), set(), 0
    for image, ko in itertools.product(range(n), range(k * groups)):
        for ci in range(c * groups):
            if ci // c != ko // k:
                continue
            for y, x, fy, fx in itertools.product(range(out), range(out), range(r), range(r)):
                macs += 1
                row, column = y * stride + fy - pad, x * stride + fx - pad
                if 0 <= row < h and 0 <= column < h:
                    inputs.add((image, ci, row, column))
                weights.add((ko, ci, fy, fx))
                outputs.add((image, ko, y, x))
    assert problem.macs == macs
    sizes = {t.name: tensor_bytes(problem, t) // 4 for t in problem.tensors}
    assert sizes == {"input": len(inputs), "weight": len(weights), "output": len(outputs)}
    for tensor in problem.tensors:
        assert len(positions(tensor, problem)) == sizes[tensor.name]


def test_depthwise_has_a_group_axis_on_every_tensor() -> None:
    problem = conv2d(c=32, k=32, h=14, w=14, r=3, s=3, padding=1, groups=32)
    assert problem.dims == ("N", "G", "K", "C", "P", "Q", "R", "S")
    assert (problem.size["K"], problem.size["C"], problem.size["G"]) == (1, 1, 32)
    assert all(tensor.is_indexed_by("G") for tensor in problem.tensors)
    assert problem.macs == 32 * 14 * 14 * 9


@pytest.mark.parametrize(
    ("more", "name"),
    [
        ({}, "n1 c3 h9 w9 k8 r3 s3"),
        ({"stride": 2, "padding": 1}, "n1 c3 h9 w9 k8 r3 s3 stride2 pad1"),
        ({"stride": (2, 1), "padding": (1, 0)}, "n1 c3 h9 w9 k8 r3 s3 stride2x1 pad1x0"),
        ({"padding": (0, 1, 0, 1)}, "n1 c3 h9 w9 k8 r3 s3 pad0x1x0x1"),
        ({"dilation": 2, "pass_": "backward_data"}, "n1 c3 h9 w9 k8 r3 s3 dil2 backward_data"),
        ({"name": "conv 1"}, "conv 1"),
    ],
)
def test_default_names_say_what_differs(more: dict[str, Any], name: str) -> None:
    assert conv2d(**SMALL, **more).name == name


def test_default_names_tell_problems_apart() -> None:
    variants = [
        {**SMALL, **more}
        for more in (
            {}, {"n": 2}, {"stride": 2}, {"stride": (1, 2)}, {"stride": (2, 1)}, {"padding": 2},
            {"padding": (2, 0)}, {"padding": (0, 2)}, {"padding": (2, 0, 0, 0)},
            {"padding": (0, 2, 0, 0)}, {"dilation": 2}, {"pass_": "backward_weights"},
        )
    ]  # fmt: skip
    names = [conv2d(**arguments).name for arguments in variants]
    assert len(set(names)) == len(names)


# --- einsum ---------------------------------------------------------------------------------


def test_einsum_of_a_matrix_product_is_gemm() -> None:
    by_letters = einsum("MK,KN->MN", {"M": 5, "N": 4, "K": 3})
    product = gemm(m=5, n=4, k=3)
    assert by_letters.sizes == product.sizes
    assert by_letters.tensors == product.tensors
    assert by_letters.output == product.output


@pytest.mark.parametrize(
    ("expression", "dims", "output", "reduced"),
    [
        ("ij->ij", ("i", "j"), "B", ()),
        ("ij->", ("i", "j"), "B", ("i", "j")),
        (" b h q d , b h k d -> b h q k ", ("b", "h", "q", "k", "d"), "C", ("d",)),
        ("ij,jk,kl->il", ("i", "l", "j", "k"), "D", ("j", "k")),
        ("mM,Mn->mn", ("m", "n", "M"), "C", ("M",)),
    ],
)
def test_einsum_dims_and_output(
    expression: str, dims: tuple[str, ...], output: str, reduced: tuple[str, ...]
) -> None:
    problem = einsum(expression, {letter: 2 + i for i, letter in enumerate(dims)})
    assert (problem.dims, problem.output, problem.reduction_dims) == (dims, output, reduced)
    assert problem.macs == math.prod(range(2, 2 + len(dims)))


# --- affine ---------------------------------------------------------------------------------


def test_affine_convolution_equals_conv2d() -> None:
    built = conv2d(n=2, c=3, k=4, h=9, w=8, r=3, s=2, stride=2, padding=1, dilation=(1, 2))
    text = affine(
        built.size,
        {
            "output": "N K P Q",
            "input": "N C 2*P+R-1<9, 2*Q + 2*S - 1 < 8",
            "weight": "K,C,R,S",
        },
        output="output",
    )
    assert text.tensors == built.tensors
    assert (text.sizes, text.output) == (built.sizes, "output")


@given(
    st.lists(
        st.builds(
            Axis,
            st.lists(
                st.tuples(st.sampled_from("PQRSTU"), st.integers(1, 99)), min_size=1, max_size=3
            ).map(tuple),
            st.integers(-50, 50),
            st.none() | st.integers(1, 500),
        ),
        max_size=4,
    )
)
def test_projections_read_back_as_written(axes: list[Axis]) -> None:
    assert parse_projection(projection_text(Tensor("x", tuple(axes)))) == tuple(axes)


@given(st.text(alphabet="PQ0123456789+-*<, _", max_size=30) | st.text(max_size=20))
def test_any_text_is_a_projection_or_a_problem_error(text: str) -> None:
    try:
        axes = parse_projection(text)
    except ProblemError:
        return
    assert all(axis.terms for axis in axes)


def test_affine_puts_the_output_last() -> None:
    problem = affine({"I": 2, "J": 3}, {"y": "I", "x": "J", "a": "I J"}, output="y")
    assert [tensor.name for tensor in problem.tensors] == ["x", "a", "y"]


# --- bad arguments --------------------------------------------------------------------------

BAD_CONV = [
    ({"n": 0}, "n is 0; a whole number >= 1 is needed"),
    ({"c": -3}, "c is -3; a whole number >= 1"),
    ({"k": 1.5}, "k is 1.5; a whole number >= 1"),
    ({"k": float("nan")}, "k is nan; a whole number >= 1"),
    ({"k": True}, "k is True; a whole number >= 1"),
    ({"k": None}, "k is None; a whole number >= 1"),
    ({"r": "3"}, "r is '3'; a whole number >= 1"),
    ({"r": [3]}, r"r is \[3\]; a whole number >= 1"),
    ({"k": 10**30}, r"k is 10+; less than 2\*\*60"),
    ({"k": 2**60}, r"k is 1152921504606846976; less than 2\*\*60"),
    ({"k": 10**5000}, "k is a number of 16610 bits; less than"),
    ({"k": -(10**5000)}, "k is a number of 16610 bits; a whole number >= 1"),
    ({"h": None}, r"h \(input\) and p \(output\): neither is given; give exactly one"),
    ({"p": 7}, r"h \(input\) and p \(output\): both are given; give exactly one"),
    ({"w": None}, r"w \(input\) and q \(output\): neither is given"),
    ({"h": 2}, r"h is 2 \(2 with padding\), but the filter covers 3 "),
    ({"w": 4, "dilation": 2}, r"w is 4 \(4 with padding\), but the filter covers 5 "),
    ({"h": None, "p": 1, "padding": 2}, "p is 1: its windows reach 3 positions, all of them pad"),
    ({"stride": 0}, "stride is 0; a whole number >= 1"),
    ({"stride": (1, 0)}, r"stride\[1\] is 0; a whole number"),
    ({"stride": (1, 2, 3)}, r"stride is \(1, 2, 3\); one number or \(height, width\)"),
    ({"padding": -1}, "padding is -1; a whole number >= 0"),
    ({"padding": (1, 2, 3)}, r"padding is \(1, 2, 3\); one number, \(height, width\) or"),
    ({"padding": "smae"}, "padding is 'smae'; a number or a word is needed; did you mean 'same'"),
    ({"dilation": "2"}, "dilation is '2'; a whole number"),
    ({"groups": 3, "k": 9, "c": 4}, "groups is 3; it must divide c, which is 4"),
    ({"groups": 3}, "groups is 3; it must divide k, which is 8"),
    ({"pass_": "bwd_data"}, "pass is 'bwd_data'; did you mean 'backward_data'"),
    ({"pass_": None}, "pass is None; allowed: forward backward_data backward_weights"),
    ({"element_bytes": 0}, "element_bytes is 0; a whole number"),
    ({"element_bytes": 4096}, "element_bytes is 4096; at most 1024"),
    (
        {"element_bytes": "fp31"},
        "element_bytes is 'fp31'; a number of bytes or a type is needed; did you mean 'fp32'",
    ),
    ({"element_bytes": {"inptu": 2}}, "no tensor 'inptu'; did you mean 'input'"),
    (
        {"element_bytes": {"input": "x"}},
        r"element_bytes\['input'\] is 'x'; a number of bytes or a type",
    ),
    ({"name": ""}, "name is ''; one printable line"),
    ({"name": "a\nb"}, "name is .a.nb.; one printable line"),
    ({"name": 7}, "name is 7; one printable line"),
    ({"h": 2**23, "w": 2**23}, "reaches 8388608 positions; at most 4194304"),
]


@pytest.mark.parametrize(("wrong", "message"), BAD_CONV)
def test_bad_convolution_arguments(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        conv2d(**{**SMALL, **wrong})


def test_all_faults_at_once_and_no_consequential_ones() -> None:
    found = faults_of(conv2d, n=0, c=3, k=8, h=None, w=1, r=3, s=3, stride=-1, pass_="back")
    assert len(found) == 5
    assert [fault.split()[0] for fault in found] == ["n", "stride", "pass", "h", "w"]


def test_too_many_multiplications_are_refused() -> None:
    with pytest.raises(ProblemError, match=r"more than 2\*\*62 multiply-accumulates"):
        gemm(m=2**31, n=2**31, k=1)
    assert gemm(m=2**31, n=2**31 - 1, k=1).macs < 2**62
    with pytest.raises(ProblemError, match="more than 2\\*\\*62 multiply-accumulates"):
        gemm(m=2**30, n=2**30, k=2**30)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"m": 0}, "m is 0"),
        ({"transpose_a": "yes"}, "transpose_a is 'yes'; true or false is needed"),
        ({"transpose_b": 2}, "transpose_b is 2; true or false"),
        ({"element_bytes": {"D": 4}}, "element_bytes: no tensor 'D'; allowed: A B C"),
    ],
)
def test_bad_gemm_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        gemm(**{"m": 2, "n": 2, "k": 2, **arguments})


@pytest.mark.parametrize(
    ("expression", "sizes", "message"),
    [
        ("mk,kn", {"m": 1}, "expression is 'mk,kn'; a form like 'mk,kn->mn'"),
        ("a->b->c", {"a": 1}, "a form like"),
        (5, {"a": 1}, "expression is 5; a form like"),
        ("ii->i", {"i": 3}, "'i' occurs 2 times in operand 1; a dimension may index one"),
        ("ij->ii", {"i": 3, "j": 3}, "'i' occurs 2 times in the result"),
        ("ij->ik", {"i": 3, "j": 3}, "'k' of the result is in no operand"),
        ("ij,->i", {"i": 3, "j": 3}, "operand 2 is empty"),
        ("i1->i", {"i": 3}, "'1' in operand 1; letters only"),
        ("...i->i", {"i": 3}, "'.' in operand 1; letters only"),
        ("ij->i", {"i": 3}, "no size for 'j'"),
        ("i->i", {}, "no size for 'i'; give one, such as i=64"),
        ("ij->i", {"i": 3, "j": 3, "k": 3}, "sizes: 'k' is not in the expression"),
        ("ij->i", {"i": 3, "j": 0}, r"sizes\['j'\] is 0"),
        ("ij->i", [3, 4], "sizes is .3, 4.; a mapping of dimensions to sizes"),
        (",".join("a" * 26) + "->a", {"a": 2}, "26 operands; at most 25"),
    ],
)
def test_bad_einsum_arguments(expression: Any, sizes: Any, message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        einsum(expression, sizes)


@pytest.mark.parametrize(
    ("sizes", "tensors", "message"),
    [
        ({}, {"x": "P"}, "unknown dim 'P'"),
        ({"P": 2}, {}, "tensors is {}; a mapping of names to projections"),
        ({"P": 2}, {"x": 3}, "tensor 'x': projection is 3; text is needed"),
        ({"P": 2}, {"x y": "P"}, "tensor name 'x y' is not a plain word"),
        ({"P 1": 2}, {"x": "P"}, "dimension 'P 1' is not a plain word"),
        ({"P": 2}, {"x": "Q"}, "tensor 'x': unknown dim 'Q'"),
        ({"P": 2, "R": 2}, {"x": "P"}, "dimension 'R' indexes no tensor"),
        ({"P": 2}, {"x": "P P"}, "tensor 'x': 'P' occurs twice"),
        ({"P": 2}, {"x": "P+P"}, "tensor 'x': 'P' occurs twice"),
        ({"P": 2}, {"x": "0*P"}, "holds a 0"),
        ({"P": 2}, {"x": "P<0"}, "holds a 0"),
        ({"P": 2}, {"x": "3"}, "axis '3' names no dimension"),
        ({"P": 2, "R": 2}, {"x": "P-R"}, "'-' before dimension 'R'"),
        ({"P": 2}, {"x": "2*P*2"}, "'P' has two coefficients"),
        ({"P": 2}, {"x": "P,"}, "found ',' at character 1, expected"),
        ({"P": 2}, {"x": "P+"}, "found the end at character 2, expected a term"),
        ({"P": 2}, {"x": "P<P"}, "found '<P' at character 1"),
        ({"P": 2}, {"x": f"P+{10**30}"}, "less than 2"),
        ({"P": 2}, {"x": "P " * 9999}, "projection of 19998 characters; at most 10000"),
        ({"P": 2**30, "R": 2}, {"x": "P+R"}, "reaches 1073741825 positions; at most 4194304"),
    ],
)
def test_bad_affine_arguments(sizes: Any, tensors: Any, message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        affine(sizes, tensors)


def test_affine_output_must_be_a_tensor() -> None:
    with pytest.raises(ProblemError, match="output is 'otuput'; did you mean 'output'"):
        affine({"P": 2}, {"x": "P", "output": "P"}, output="otuput")


def test_messages_survive_values_that_cannot_be_shown() -> None:
    class Rude:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    assert faults_of(gemm, m=Rude(), n=deep, k="x" * 10**6)[0].startswith("m is <Rude")
