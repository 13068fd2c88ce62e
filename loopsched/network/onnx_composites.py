"""ONNX operators that are several nests: attention and recurrent layers."""

from __future__ import annotations

from dataclasses import dataclass

from loopsched.network.onnx_view import Part, UnsayableError, View
from loopsched.problems.builders import batched_gemm, gemm

_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4, "DynamicQuantizeLSTM": 4}


def recurrent(view: View) -> list[Part]:
    """Build the nests of RNN, GRU and LSTM: the inputs of all steps, then step by step."""
    sequence, weights, again = view.shape(0), view.shape(1), view.shape(2)
    if len(sequence) != 3 or len(weights) != 3 or len(again) != 3:
        raise UnsayableError("its input and weights have not 3 axes each")
    steps, batch = sequence[:2] if view.integer("layout", 0) == 0 else sequence[1::-1]
    directions, rows, inner = weights
    depth = again[2]
    # The quantised one stores its weights the other way round.
    is_turned = view.operator.op == "DynamicQuantizeLSTM"
    if is_turned:
        rows, inner, depth, again = inner, rows, again[1], (again[0], again[2], again[1])
    if rows % _GATES[view.operator.op] or inner != sequence[2] or again[1] != rows:
        raise UnsayableError("its weights do not fit its input")
    name = view.operator.name
    gates = f"{name}/gates"
    width = view.width(0)
    inputs = gemm(
        m=steps * batch, n=rows, k=inner, transpose_b=not is_turned,
        element_bytes={"A": width, "B": view.width(1), "C": width},
    )  # fmt: skip
    step = gemm(
        m=batch, n=rows, k=depth, transpose_b=not is_turned,
        element_bytes={"A": width, "B": view.width(2), "C": width},
    )  # fmt: skip
    return [
        Part(inputs, (("A", view.name(0)), ("B", view.name(1)), ("C", gates)), "input", directions),
        Part(step, (("A", gates), ("B", view.name(2)), ("C", view.any_output)), "step",
             directions * steps),
    ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Heads:
    """Sizes of one attention: queries share keys and values in groups."""

    batch: int
    queries: int
    keys: int
    n_query: int
    n_key: int
    depth: int
    value_depth: int


def attention(view: View) -> list[Part]:
    """Build the nests of the standard's Attention: scores, then their weighted sum."""
    query, key, value = view.shape(0), view.shape(1), view.shape(2)
    n_query, n_key = view.integer("q_num_heads", 0), view.integer("kv_num_heads", 0)
    if len(query) == len(key) == len(value) == 4:
        heads = _Heads(query[0], query[2], key[2], query[1], key[1], query[3], value[3])
    elif len(query) == len(key) == len(value) == 3 and n_query > 0 and n_key > 0:
        heads = _Heads(
            query[0], query[1], key[1], n_query, n_key, query[2] // n_query, value[2] // n_key
        )
    else:
        raise UnsayableError("its operands have neither 4 axes each nor 3 and a number of heads")
    past = view.shape(4)[2] if view.has(4) else 0
    return _attention(view, heads, (view.name(0), view.name(1), view.name(2)), past)


def multi_head_attention(view: View) -> list[Part]:
    """Build the nests of the contributed MultiHeadAttention with separate operands."""
    query, key, value = view.shape(0), view.shape(1), view.shape(2)
    n = view.integer("num_heads", 0)
    if not len(query) == len(key) == len(value) == 3 or n < 1 or view.has(6):
        raise UnsayableError("its operands are packed, or some are from earlier steps")
    heads = _Heads(query[0], query[1], key[1], n, n, query[2] // n, value[2] // n)
    return _attention(view, heads, (view.name(0), view.name(1), view.name(2)), 0)


def packed_attention(view: View) -> list[Part]:
    """Build the nests of the contributed Attention: projections, scores, weighted sum."""
    rows, weights = view.shape(0), view.shape(1)
    n = view.integer("num_heads", 0)
    plain = len(rows) == 3 and len(weights) == 2 and n > 0 and weights[1] % 3 == 0
    if not plain or view.has(4) or view.operator.attributes.get("qkv_hidden_sizes"):
        raise UnsayableError("its projections differ, or some operands are from earlier steps")
    made = f"{view.operator.name}/qkv"
    projection = gemm(
        m=rows[0] * rows[1], n=weights[1], k=rows[2],
        element_bytes={"A": view.width(0), "B": view.width(1), "C": view.width(0)},
    )  # fmt: skip
    depth = weights[1] // 3 // n
    heads = _Heads(rows[0], rows[1], rows[1], n, n, depth, depth)
    first = Part(projection, (("A", view.name(0)), ("B", view.name(1)), ("C", made)), "qkv")
    return [first, *_attention(view, heads, (made, made, made), 0)]


def _attention(view: View, heads: _Heads, names: tuple[str, str, str], past: int) -> list[Part]:
    if heads.n_query % heads.n_key:
        raise UnsayableError(f"{heads.n_key} key heads do not divide {heads.n_query} query heads")
    # Queries that share a key are more rows of one product.
    batch = heads.batch * heads.n_key
    rows = heads.queries * (heads.n_query // heads.n_key)
    keys = heads.keys + past
    width = view.width(0)
    scores = f"{view.operator.name}/scores"
    scored = batched_gemm(
        batch=batch, m=rows, n=keys, k=heads.depth, transpose_b=True, element_bytes=width
    )
    summed = batched_gemm(batch=batch, m=rows, n=heads.value_depth, k=keys, element_bytes=width)
    return [
        Part(scored, (("A", names[0]), ("B", names[1]), ("C", scores)), "scores"),
        Part(summed, (("A", scores), ("B", names[2]), ("C", view.output)), "context"),
    ]
