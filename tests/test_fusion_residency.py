"""Tensors that stay on chip, against every choice of them one by one."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopsched import Workload, conv2d, gemm
from loopsched.base.errors import EmptySpaceError, InputError
from loopsched.fusion import Pool, residency
from loopsched.fusion.single import least_bytes
from loopsched.network.graph import Network
from loopsched.network.node import Node, Value

ROWS = 4


def network(layers: list[tuple[int, int, int | None]], outputs: tuple[int, ...]) -> Network:
    """Products of ROWS rows: (columns, source, what is added to the result); source -1: outside."""
    widths = [columns for columns, _, _ in layers]
    nodes, values = [], [Value("x", (ROWS, 3), 1)]
    for at, (columns, source, added) in enumerate(layers):
        read, inner = ("x", 3) if source < 0 else (f"out{source}", widths[source])
        problem = gemm(m=ROWS, n=columns, k=inner, element_bytes=1, name=f"layer{at}")
        made = f"out{at}" if added is None else f"sum{at}"
        operands = (("A", read), ("B", f"w{at}"), ("C", made))
        nodes.append(Node(f"layer{at}", "Gemm", problem, (read, f"w{at}"), (made,), operands))
        values += [Value(f"w{at}", (inner, columns), 1, is_weight=True)]
        values += [Value(made, (ROWS, columns), 1)]
        if added is not None:
            nodes.append(Node(f"add{at}", "Add", None, (made, f"out{added}"), (f"out{at}",)))
            values.append(Value(f"out{at}", (ROWS, columns), 1))
    return Network("mine", tuple(nodes), tuple(values), ("x",), tuple(f"out{at}" for at in outputs))


@st.composite
def networks(draw: st.DrawFn) -> tuple[list[tuple[int, int, int | None]], tuple[int, ...]]:
    layers: list[tuple[int, int, int | None]] = []
    for at in range(draw(st.integers(2, 6))):
        source = draw(st.integers(max(-1, at - 3), at - 1))
        columns = draw(st.integers(1, 6))
        same = [i for i in range(at) if layers[i][0] == columns]
        added = draw(st.sampled_from([None, *same]))
        layers.append((columns, source, added))
    return layers, (len(layers) - 1,)


def brute(
    layers: list[tuple[int, int, int | None]], outputs: tuple[int, ...], capacity: int
) -> int | None:
    """The least of all choices; sums, rooms and stays worked out from the numbers alone."""
    n, best = len(layers), None
    readers: dict[int, list[int]] = {at: [] for at in range(n)}
    for at, (_, source, added) in enumerate(layers):
        for one in {source, added} - {-1, None}:
            readers[one].append(at)  # type: ignore[index]
    for stays in product((False, True), repeat=n):
        if any(stay and (not readers[at] or at in outputs) for at, stay in enumerate(stays)):
            continue
        total: int | None = 0
        for at, (columns, source, added) in enumerate(layers):
            inner = 3 if source < 0 else layers[source][0]
            alive = [i for i in range(at + 1) if stays[i] and at <= max(readers[i])]
            room = capacity - sum(ROWS * layers[i][0] for i in alive)
            free = {"A"} if source >= 0 and stays[source] else set()
            free |= {"C"} if stays[at] else set()
            problem = gemm(m=ROWS, n=columns, k=inner, element_bytes=1)
            moved = least_bytes(problem, room, frozenset(free)) if room >= 0 else None
            if moved is None or total is None:
                total = None
                break
            read = added is not None and not stays[added]
            total += moved + (ROWS * columns if read else 0)
        if total is not None and (best is None or total < best):
            best = total
    return best


@settings(deadline=None)
@given(networks(), st.integers(3, 120))
def test_the_choice_equals_brute_force_on_any_graph(
    given_: tuple[list[tuple[int, int, int | None]], tuple[int, ...]], capacity: int
) -> None:
    layers, outputs = given_
    found = residency(network(layers, outputs), capacity)
    assert found.is_exact
    assert found.dram_bytes == brute(layers, outputs, capacity) == found.lower_bound_bytes
    followed = residency(network(layers, outputs), capacity, max_states=1)
    assert followed.lower_bound_bytes <= found.dram_bytes <= followed.dram_bytes
    assert 0 <= followed.gap <= 1
    assert not followed.is_exact or followed.dram_bytes == found.dram_bytes


def test_a_residual_block_keeps_what_its_sum_takes_in() -> None:
    block = [(8, -1, None), (4, 0, None), (8, 1, 0)]
    ample = residency(network(block, (2,)), 1000)
    weights = 3 * 8 + 8 * 4 + 4 * 8
    assert ample.dram_bytes == ROWS * 3 + weights + ROWS * 8
    assert ample.separate_bytes == ample.dram_bytes + 3 * ROWS * 8 + 2 * ROWS * 4
    assert [layer.resident for layer in ample.layers] == [("C",), ("A", "C"), ("A", "+layer0")]
    assert [tensor.consumers for tensor in ample.tensors] == [("layer1", "layer2"), ("layer2",)]


def test_resident_tensors_leave_less_room() -> None:
    layer = conv2d(c=4, k=4, h=8, w=8, r=3, s=3, padding=1, element_bytes=1)
    chain = [layer.renamed("a"), layer.renamed("b"), layer.renamed("c")]
    size, weights = 4 * 8 * 8, 4 * 4 * 9
    all_stay = 2 * size + 1  # two tensors, and one weight that passes
    found = residency(chain, all_stay)
    assert found.dram_bytes == 2 * size + 3 * weights
    assert [layer.room_bytes for layer in found.layers] == [size + 1, 1, size + 1]
    assert residency(chain, all_stay - 1).dram_bytes > found.dram_bytes


def test_a_pooled_tensor_takes_the_room_of_the_larger_one() -> None:
    first = conv2d(c=1, k=2, h=8, w=8, r=1, s=1, element_bytes=1, name="first")
    second = conv2d(c=2, k=2, h=4, w=4, r=1, s=1, element_bytes=1, name="second")
    for layers in ([first, second], [first, Pool(2), second]):
        assert residency(layers, 4096).tensors[0].size_bytes == 2 * 8 * 8
    assert residency([first, second], 4096, assume_pooling=False).tensors == ()


def test_an_assumed_pooling_is_told() -> None:
    first = conv2d(c=1, k=1, h=8, w=8, r=1, s=1, name="first")
    second = conv2d(c=1, k=1, h=4, w=4, r=1, s=1, name="second")
    (link,) = residency([first, second], 4096).assumed
    assert (link.after, link.pool, link.before) == ("first", "pool 2x2 stride2", "second")
    assert residency([first, Pool(2), second], 4096).assumed == ()
    assert residency([first, second], 4096, assume_pooling=False).assumed == ()


def test_layers_that_run_often_count_as_often() -> None:
    """A tensor stays only if it is read as often as it is made."""
    up, down = gemm(m=64, n=96, k=16, name="up"), gemm(m=64, n=16, k=96, name="down")
    often = residency(Workload("mine", (up, down), (3, 3)), capacity_bytes=65536)
    assert often.lower_bound_bytes == often.dram_bytes == 3 * 20480
    for counts in ((2, 3), (3, 2)):
        assert not residency(Workload("mine", (up, down), counts), capacity_bytes=65536).tensors


def test_nothing_fits() -> None:
    with pytest.raises(EmptySpaceError, match="the operands of one point need more"):
        residency([gemm(m=2, n=2, k=2)], 11)
    with pytest.raises(InputError, match="max_states is 0; a whole number >= 1"):
        residency([gemm(m=2, n=2, k=2)], 99, max_states=0)
