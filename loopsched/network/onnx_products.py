"""Nests of ONNX matrix products: Gemm, MatMul with broadcasting, Einsum."""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import groupby
from string import ascii_letters

from loopsched.network.onnx_view import Part, UnsayableError, View
from loopsched.problems.builders import batched_gemm, einsum, gemm
from loopsched.problems.problem import Problem

_BATCH_LETTERS = "abcdefghij"


def general_product(view: View, right: int = 1) -> list[Part]:
    """Build the nest of Gemm and of its kin."""
    a, b = view.shape(0), view.shape(right)
    if len(a) != 2 or len(b) != 2:
        raise UnsayableError(f"operands of {len(a)} and {len(b)} axes; 2 each are needed")
    flip_a, flip_b = bool(view.integer("transA", 0)), bool(view.integer("transB", 0))
    m, k = reversed(a) if flip_a else a
    other, n = reversed(b) if flip_b else b
    _check_inner(k, other)
    # A transpose before the operator turns what the flag says.
    turned = flip_a != view.is_transposed(0), flip_b != view.is_transposed(right)
    problem = gemm(
        m=m, n=n, k=k, transpose_a=turned[0], transpose_b=turned[1],
        element_bytes=_widths(view, right),
    )  # fmt: skip
    return [Part(problem, _operands(view, right))]


def product(view: View, right: int = 1) -> list[Part]:
    """Build the nest of MatMul and of its kin; ``right`` is the second operand's place."""
    a, b = view.shape(0), view.shape(right)
    if not a or not b:
        raise UnsayableError("an operand is a single number")
    flags = bool(view.integer("transA", 0)), bool(view.integer("transB", 0))
    flip_a, flip_b = flags[0] and len(a) > 1, flags[1] and len(b) > 1
    rows, columns = a if len(a) > 1 else (1, *a), b if len(b) > 1 else (*b, 1)
    m, k = reversed(rows[-2:]) if flip_a else rows[-2:]
    other, n = reversed(columns[-2:]) if flip_b else columns[-2:]
    _check_inner(k, other)
    groups = tuple(_shared(rows[:-2], columns[:-2]))
    turned = (
        flip_a != (len(a) > 1 and view.is_transposed(0)),
        flip_b != (len(b) > 1 and view.is_transposed(right)),
    )
    widths = tuple(_widths(view, right).items())
    problem = _product_problem(groups, (m, n, k), turned, widths)
    return [Part(problem, _operands(view, right))]


def _check_inner(k: int, other: int) -> None:
    if k != other:
        raise UnsayableError(f"sums over {k} in one operand and {other} in the other")


def _widths(view: View, right: int) -> dict[str, int]:
    return {"A": view.width(0), "B": view.width(right), "C": view.output_width}


def _operands(view: View, right: int) -> tuple[tuple[str, str], ...]:
    return (("A", view.name(0)), ("B", view.name(right)), ("C", view.output))


def _shared(a: tuple[int, ...], b: tuple[int, ...]) -> list[tuple[str, int]]:
    """Say which operands each axis of the batch is in, neighbours of one kind together."""
    length = max(len(a), len(b))
    a, b = (1,) * (length - len(a)) + a, (1,) * (length - len(b)) + b
    found = []
    for left, right in zip(a, b, strict=True):
        if left != right and 1 not in (left, right):
            raise UnsayableError(f"batches of {left} and {right} do not broadcast")
        if max(left, right) > 1:
            where = "both" if left == right else "A" if left > 1 else "B"
            found.append((where, max(left, right)))
    return [
        (where, math.prod(size for _, size in members))
        for where, members in groupby(found, key=lambda one: one[0])
    ]


@lru_cache(maxsize=1024)
def _product_problem(
    groups: tuple[tuple[str, int], ...],
    sizes: tuple[int, int, int],
    turned: tuple[bool, bool],
    stored: tuple[tuple[str, int], ...],
) -> Problem:
    widths = dict(stored)
    m, n, k = sizes
    flip_a, flip_b = turned
    kinds = [where for where, _ in groups]
    if kinds in ([], ["A"]):
        # One second operand for all: its batch is only more rows.
        rows = m * math.prod(size for _, size in groups)
        folded = bool(groups) and m > 1
        return gemm(
            m=rows, n=n, k=k, transpose_a=flip_a and not folded, transpose_b=flip_b,
            element_bytes=widths,
        )  # fmt: skip
    if kinds == ["both"]:
        return batched_gemm(
            batch=groups[0][1], m=m, n=n, k=k, transpose_a=flip_a, transpose_b=flip_b,
            element_bytes=widths,
        )  # fmt: skip
    letters = dict(zip(_BATCH_LETTERS, groups, strict=False))
    if len(letters) < len(groups):
        raise UnsayableError(f"its batch alternates between the operands {len(groups)} times")
    left = "".join(one for one, (where, _) in letters.items() if where != "B")
    right = "".join(one for one, (where, _) in letters.items() if where != "A")
    expression = (
        f"{left}{'km' if flip_a else 'mk'},{right}{'nk' if flip_b else 'kn'}->{''.join(letters)}mn"
    )
    lengths = {one: size for one, (_, size) in letters.items()} | {"m": m, "n": n, "k": k}
    return einsum(expression, lengths, element_bytes=widths)


def contraction(view: View) -> list[Part]:
    """Build the nest of Einsum over two operands; one alone is only summed or turned."""
    n_operands = len(view.operator.inputs)
    if n_operands == 1:
        return []
    if n_operands != 2:
        raise UnsayableError(
            f"{n_operands} operands; the order in which more than two are multiplied is not defined"
        )
    equation = view.word("equation", "")
    shapes = [view.shape(0), view.shape(1)]
    terms, result = _terms(equation, [len(shape) for shape in shapes])
    sizes: dict[str, int] = {}
    for term, shape in zip(terms, shapes, strict=True):
        if len(term) != len(shape):
            raise UnsayableError(f"{term!r} has not the {len(shape)} axes of its operand")
        if len(set(term)) != len(term):
            raise UnsayableError(f"{term!r} takes a diagonal: a letter occurs twice")
        for letter, size in zip(term, shape, strict=True):
            if sizes.setdefault(letter, size) not in (size, 1) and size != 1:
                raise UnsayableError(f"{letter!r} is {sizes[letter]} and {size}")
            sizes[letter] = max(sizes[letter], size)
    # An axis of one that meets a longer one is the same element for all of them.
    kept = [
        "".join(a for a, size in zip(term, shape, strict=True) if size == sizes[a])
        for term, shape in zip(terms, shapes, strict=True)
    ]
    if not all(kept):  # a single number: an axis of one
        one = next(a for a in ascii_letters if a not in sizes)
        kept, sizes = [term or one for term in kept], sizes | {one: 1}
    expression = f"{','.join(kept)}->{result}"
    widths = _widths(view, 1)
    return [Part(einsum(expression, sizes, element_bytes=widths), _operands(view, 1))]


def _terms(equation: str, ranks: list[int]) -> tuple[list[str], str]:
    """Write every axis of an equation as a letter: for ``...`` unused ones are taken."""
    text = equation.replace(" ", "")
    left, arrow, result = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise UnsayableError(f"equation {equation[:60]!r} has not {len(ranks)} operands")
    free = [one for one in ascii_letters if one not in text]
    widest = max(
        (rank - len(term) + 3 for term, rank in zip(terms, ranks, strict=True) if "..." in term),
        default=0,
    )
    if not 0 <= widest <= len(free):
        raise UnsayableError(f"equation {equation[:60]!r} has more axes than an operand")
    hidden = "".join(free[:widest])
    full = [
        term.replace("...", hidden[max(0, widest - (rank - len(term) + 3)) :])
        for term, rank in zip(terms, ranks, strict=True)
    ]
    if arrow:
        return full, result.replace("...", hidden)
    every = "".join(full)
    single = sorted(one for one in set(every) - set(hidden) if every.count(one) == 1)
    return full, hidden + "".join(single)
