"""What fused groups promise, against the simulators' caches over their every access."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from fusion_oracle import CHAINS, Layer, chains, items
from fusion_trace import Trace, lru_bytes_moved, trace
from hypothesis import given, settings
from hypothesis import strategies as st

from loopsched.fusion import FusedGroup
from loopsched.fusion.chains import chains_of
from loopsched.fusion.plan import fused
from loopsched.fusion.rooms import Way, buffer_positions
from loopsched.fusion.tiles import best_tile
from loopsched.problems.footprint import tensor_bytes
from loopsched.problems.problem import Problem
from loopsched.simulator.cache import run_belady


def _group(layers: Sequence[Layer], capacity: int, halo: str) -> FusedGroup | None:
    stages = chains_of(items(layers), assume_pooling=False)[0][0].stages
    choice = best_tile(stages, capacity, [halo])  # type: ignore[list-item]
    return choice and fused(stages, choice, 0, None)


def _separately(layers: Sequence[Layer]) -> int:
    """What the layers move one by one at least, whatever the cache."""
    problems = [one for one in items(layers) if isinstance(one, Problem)]
    return sum(tensor_bytes(one, tensor) for one in problems for tensor in one.tensors)


def _best_cache_bytes(accesses: Trace, capacity_bytes: int) -> int:
    """What the best cache moves; between layers, what is made comes from nowhere."""
    kept = run_belady(accesses, capacity_bytes)
    misses = list(kept.misses)
    for tensor in range(accesses.n_inputs, len(misses) - 1):
        misses[tensor] -= kept.first[tensor]
    return accesses.bytes_of(misses)


CASES = [
    (name, halo, capacity)
    for name, capacities in (
        ("vgg", (545, 700, 900)),
        ("resnet", (60, 100, 170)),
        ("mobilenet", (300, 400, 600)),
    )
    for halo in ("recompute", "retain")
    for capacity in capacities
]


@pytest.mark.parametrize(("name", "halo", "capacity"), CASES)
def test_an_lru_cache_of_the_stated_size_moves_no_more_than_promised(
    name: str, halo: str, capacity: int
) -> None:
    layers = CHAINS[name]
    group = _group(layers, capacity, halo)
    assert group is not None
    accesses = trace(layers, group, reuses=True)
    simulated = lru_bytes_moved(accesses, group.lru_bytes or 0)
    assert simulated <= group.dram_bytes
    # The saving is real: even an endless cache moves more if the layers run one by one.
    assert simulated < _separately(layers)


@pytest.mark.parametrize(("name", "halo", "capacity"), CASES)
def test_the_best_cache_of_the_working_set_moves_no_more_than_promised(
    name: str, halo: str, capacity: int
) -> None:
    layers = CHAINS[name]
    group = _group(layers, capacity, halo)
    assert group is not None
    accesses = trace(layers, group, reuses=False)
    assert _best_cache_bytes(accesses, group.working_set_bytes) <= group.dram_bytes


def test_promises_that_keep_everything_are_met_to_the_byte() -> None:
    met = 0
    for name, halo, capacity in CASES:
        group = _group(CHAINS[name], capacity, halo)
        assert group is not None
        accesses = trace(CHAINS[name], group, reuses=True)
        n = accesses.n_inputs
        once = accesses.bytes_of([*accesses.sizes[:n], *[0] * (n - 2), accesses.sizes[-1]])
        if group.dram_bytes == once:
            assert lru_bytes_moved(accesses, group.lru_bytes or 0) == once
            met += 1
    assert met >= 3


def test_two_tiles_must_fit_for_weights_to_stay() -> None:
    layers = [Layer(c=4, k=4, h=5, w=5), Layer(c=4, k=4, h=5, w=5)]
    group = _group(layers, 2 * 16 + 4 + 1, "recompute")  # not one position more
    assert group is not None
    assert group.tile == (("N", 1), ("P", 1), ("Q", 1))
    assert group.dram_bytes == 25 * 4 + 25 * 4 + 2 * 16
    # Weights, a position between the layers, and one before and one behind of two tiles.
    assert group.lru_bytes == 2 * 16 + 4 + 2 * (4 + 4)
    accesses = trace(layers, group, reuses=True)
    assert lru_bytes_moved(accesses, group.lru_bytes) == group.dram_bytes
    assert lru_bytes_moved(accesses, group.lru_bytes - 4 - 4) > group.dram_bytes


def test_buffers_hold_all_images_of_a_tile() -> None:
    layers = [Layer(c=4, k=4, h=5, w=5), Layer(c=4, k=4, h=5, w=5)]
    group = _group(layers, 10**6, "recompute")
    assert group is not None
    way = Way("recompute", columns_outside=False, keeps_input=False)
    assert [buffer_positions(group.stages, (n, 2, 3), way) for n in (1, 2, 5)] == [
        (6,), (12,), (30,),
    ]  # fmt: skip


@settings(deadline=None)
@given(chains(), st.sampled_from(["recompute", "retain"]), st.integers(0, 10))
def test_promises_of_any_chain_hold(layers: list[Layer], halo: str, part: int) -> None:
    if sum(not layer.is_pool for layer in layers) < 2:
        return
    whole = _group(layers, 10**6, halo)
    assert whole is not None
    group = _group(layers, max(1, whole.working_set_bytes * part // 10), halo)
    if group is None:
        return
    accesses = trace(layers, group, reuses=True)
    assert lru_bytes_moved(accesses, group.lru_bytes or 0) <= group.dram_bytes
    accesses = trace(layers, group, reuses=False)
    if len(set(accesses.widths)) == 1:  # elements of several widths have no known best replacement
        assert _best_cache_bytes(accesses, group.working_set_bytes) <= group.dram_bytes
