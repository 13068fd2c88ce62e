"""Fused groups and cuts of chains, against literal walks and brute force."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import prod

import pytest
from fusion_fuzz import Brute, check_chains
from fusion_oracle import CHAINS, VGG, Cost, Layer, chains, group_costs, items
from hypothesis import given, settings
from hypothesis import strategies as st

from loopsched import (
    Workload,
    buffer_arch,
    conv2d,
    fuse,
    gemm,
    load_arch,
    load_workload,
    residency,
    traffic_curve,
)
from loopsched.base.errors import EmptySpaceError, InputError, WorkloadError
from loopsched.fusion import FusionPlan, Pool
from loopsched.fusion.chains import chains_of
from loopsched.fusion.single import least_bytes
from loopsched.fusion.tiles import Choice, best_tile
from loopsched.problems.problem import Problem


def _positions(layers: Sequence[Layer]) -> list[int]:
    return [at for at, layer in enumerate(layers) if not layer.is_pool]


def _cost(choice: Choice, last: Layer) -> Cost:
    whole = last.n, last.p, last.q
    tiles = prod(-(-size // one) for size, one in zip(whole, choice.tile, strict=True))
    keeps = choice.way.halo == "retain"
    return Cost(choice.dram_bytes, choice.macs, keeps, tiles, choice.working_set_bytes)


@cache
def brute_of(name: str) -> Brute:
    return Brute(CHAINS[name])


@pytest.mark.parametrize("name", CHAINS)
def test_the_programme_equals_brute_force_over_all_partitions_and_tiles(name: str) -> None:
    brute = brute_of(name)
    fused = 0
    needed = brute.capacities()
    for capacity in [needed[round(part * (len(needed) - 1) / 12)] for part in range(13)]:
        for room in (capacity - 1, capacity):
            if room < 64:
                continue
            plan = fuse(items(CHAINS[name]), room)
            assert plan.dram_bytes == brute.least(room)
            assert all(group.working_set_bytes <= room for group in plan.groups)
            fused += any(group.is_fused for group in plan.groups)
    assert fused >= 10


@pytest.mark.parametrize("name", CHAINS)
def test_the_best_tile_of_a_whole_chain_equals_a_literal_walk(name: str) -> None:
    stages = chains_of(items(CHAINS[name]), assume_pooling=False)[0][0].stages
    costs = {cost for _, cost in group_costs(CHAINS[name])}
    rooms = sorted({cost.room for cost in costs})
    for room in rooms[:: max(1, len(rooms) // 40)]:
        for capacity in (room - 1, room):
            choice = best_tile(stages, capacity)
            expected = min((cost for cost in costs if cost.room <= capacity), default=None)
            assert (choice is None) == (expected is None)
            if choice is not None:
                assert expected == _cost(choice, CHAINS[name][-1])


@pytest.mark.parametrize("name", ["vgg", "mobilenet"])
@pytest.mark.parametrize("macs_per_cycle", [1, 4])
def test_times_equal_brute_force(name: str, macs_per_cycle: int) -> None:
    brute = brute_of(name)
    needed = brute.capacities()
    for capacity in [needed[round(part * (len(needed) - 1) / 12)] for part in range(2, 13)]:
        arch = buffer_arch(
            capacity_bytes=capacity, bandwidth_bytes_per_s=1e8, macs_per_cycle=macs_per_cycle
        )
        plan = fuse(items(CHAINS[name]), arch=arch, objective="time")
        assert plan.time_s == pytest.approx(brute.least_time(capacity, macs_per_cycle * 1e9, 1e8))


@settings(deadline=None)
@given(chains(), st.data())
def test_the_best_tile_equals_a_literal_walk_of_all_tiles(
    layers: list[Layer], data: st.DataObject
) -> None:
    if len(_positions(layers)) < 2:
        return
    found, breaks = chains_of(items(layers), assume_pooling=False)
    assert breaks == ()
    costs = {cost for _, cost in group_costs(layers)}
    rooms = sorted({cost.room for cost in costs})
    for at in (0, data.draw(st.integers(0, len(rooms) - 1)), len(rooms) - 1):
        for room in (rooms[at] - 1, rooms[at]):
            choice = best_tile(found[0].stages, room)
            expected = min((cost for cost in costs if cost.room <= room), default=None)
            if choice is None or expected is None:
                assert choice is expected is None
                continue
            assert expected == _cost(choice, layers[-1])


def test_a_tile_needs_what_is_live_at_once_not_the_most_of_different_tiles() -> None:
    # The tile that reads most makes little, and the other way round: found by a literal walk.
    first = conv2d(c=3, k=2, h=7, w=4, r=2, s=1, padding=(0, 1, 2, 2), name="first")
    second = conv2d(c=2, k=2, h=7, w=8, r=1, s=1, padding=(2, 0, 0, 0), name="second")
    plan = fuse([first, second], 68, halos=["recompute"], assume_pooling=False)
    assert plan.dram_bytes == 1744
    assert fuse([first, second], 67, halos=["recompute"]).dram_bytes > 1744


def test_random_chains_equal_brute_force() -> None:
    tally = check_chains(chains=60, seed=11)
    assert tally.faults == ()
    assert tally.fused >= 200


def test_feature_maps_of_the_fused_layer_accelerator() -> None:
    # Alwani et al., Fused-Layer CNN Accelerators, MICRO 2016: the first five layers of
    # VGGNet-E, 3.6 MB of feature maps an image; they are VGG-16's.
    layers = load_workload("vgg16").problems[:5]
    plan = fuse(layers, 3 * 2**20)
    weights = 4 * 9 * (3 * 64 + 64 * 64 + 64 * 128 + 128 * 128 + 128 * 256)
    assert [group.layers for group in plan.groups] == [tuple(layer.name for layer in layers)]
    assert round((plan.dram_bytes - weights) / 2**20, 1) == 3.6
    assert plan.extra_macs == 0


@pytest.mark.parametrize("name", CHAINS)
def test_a_layer_alone_moves_what_its_curve_says(name: str) -> None:
    layers = [one for one in items(CHAINS[name]) if isinstance(one, Problem)]
    assert layers
    for problem in layers:
        curve = traffic_curve(problem)
        for capacity in (*curve.capacities_bytes[::7], curve.capacities_bytes[0] - 1):
            assert least_bytes(problem, capacity) == curve.at(capacity)


def test_matrix_products_pass_rows_on() -> None:
    up = gemm(m=64, n=96, k=16, element_bytes=1, name="up")
    down = gemm(m=64, n=16, k=96, element_bytes=1, name="down")
    # Resident weights, one row at a time: 96 elements between, one of A, one of C.
    room = 2 * 16 * 96 + 96 + 1
    plan = fuse([up, down], room)
    assert plan.groups[0].layers == ("up", "down")
    assert plan.dram_bytes == 64 * 16 + 64 * 16 + 2 * 16 * 96
    assert plan.groups[0].tile == (("M", 1),)
    assert fuse([up, down], room - 1).dram_bytes > plan.dram_bytes


def test_the_time_objective_trades_bytes_for_arithmetic() -> None:
    chain = items(VGG)
    slow = buffer_arch(capacity_bytes=250, bandwidth_bytes_per_s=1e12, macs_per_cycle=1)
    least = fuse(chain, arch=slow, halos=["recompute"])
    quick = fuse(chain, arch=slow, objective="time", halos=["recompute"])
    assert least.extra_macs > 0 == quick.extra_macs
    assert quick.dram_bytes > least.dram_bytes
    assert quick.time_s == pytest.approx(quick.macs / 1e9)
    idle = buffer_arch(capacity_bytes=250, bandwidth_bytes_per_s=1e3, macs_per_cycle=1024)
    same = fuse(chain, arch=idle, objective="time", halos=["recompute"])
    assert same.dram_bytes == least.dram_bytes
    assert same.time_s == pytest.approx(same.dram_bytes / 1e3)


def test_a_plan_counts_a_block_as_often_as_it_occurs() -> None:
    layers = conv2d(c=8, k=8, h=24, w=24, r=3, s=3), conv2d(c=8, k=4, h=22, w=22, r=3, s=3)
    layers = layers[0].renamed("one"), layers[1].renamed("two")
    once = fuse(Workload("block", layers), 10000, halos=["recompute"])
    often = fuse(Workload("block", layers, (3, 3)), 10000, halos=["recompute"])
    (group,) = often.groups
    assert (group.count, group.is_fused) == (3, True)
    for name in ("dram_bytes", "unfused_bytes", "saved_bytes", "macs", "extra_macs"):
        assert getattr(often, name) == 3 * getattr(once, name) > 0
    assert once.saved_bytes == once.unfused_bytes - once.dram_bytes
    assert once.macs - once.extra_macs == sum(layer.macs for layer in layers)
    # Two tiles of ten rows, which share two rows of 22 columns, 8 channels and 72 products each.
    assert (group.tile, group.order) == ((("N", 1), ("P", 10), ("Q", 20)), ("P",))
    assert once.extra_macs == 2 * 22 * 8 * 72


@pytest.mark.parametrize(("most", "groups"), [(1, 3), (2, 2), (3, 1), (None, 1)])
def test_groups_have_as_many_layers_as_they_may(most: int | None, groups: int) -> None:
    layer = conv2d(c=8, k=8, h=16, w=16, r=3, s=3, padding=1)
    layers = [layer.renamed(name) for name in ("one", "two", "three")]
    plan = fuse(layers, 16384, max_layers=most)
    assert len(plan.groups) == groups
    assert max(len(group.layers) for group in plan.groups) == min(most or 3, 3)


def test_images_of_a_batch_are_worked_out_each() -> None:
    layer = conv2d(n=3, c=4, k=4, h=8, w=8, r=3, s=3, padding=1)
    plan = fuse([layer.renamed("one"), layer.renamed("two")], 2**20, halos=["recompute"])
    assert plan.groups[0].is_fused
    assert (plan.macs, plan.extra_macs) == (2 * layer.macs, 0)


def test_chains_end_where_layers_do_not_fit() -> None:
    made = conv2d(c=4, k=4, h=12, w=12, r=3, s=3, element_bytes={"output": 2})
    reads = [conv2d(c=4, k=4, h=10, w=10, r=1, s=1, element_bytes=width) for width in (1, 2, 4)]
    for width, read in zip((1, 2, 4), reads, strict=True):
        _, breaks = chains_of([made.renamed("made"), read])
        assert [f"makes elements of 2 bytes, '{read.name}' reads elements of {width}" in one.reason
                for one in breaks] == ([] if width == 2 else [True])  # fmt: skip
    parts, _ = chains_of([made, reads[1].renamed("two"), reads[0], reads[0].renamed("four")])
    assert [len(part.links) for part in parts] == [1, 1]


def test_only_poolings_that_are_not_given_are_assumed() -> None:
    layers = conv2d(c=4, k=4, h=8, w=8, r=1, s=1), conv2d(c=4, k=4, h=4, w=4, r=1, s=1)
    for items_, is_assumed in (((layers[0], Pool(2), layers[1]), False), (layers, True)):
        ((chain,), _) = chains_of(items_)
        assert [(link.pool, link.is_assumed) for link in chain.links] == [
            ("pool 2x2 stride2", is_assumed)
        ]
    with pytest.raises(WorkloadError, match="item 2: pool 2x2 stride2 does not lie between two"):
        chains_of([*layers, Pool(2)], assume_pooling=True)


def test_capacity_is_that_of_the_machine() -> None:
    arch = load_arch("titan_v")
    assert fuse(items(VGG), arch=arch).capacity_bytes == arch.caches[0].usable_bytes


def _fuse(given: Sequence[object], **options: object) -> FusionPlan:
    return fuse(given, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        ([], {"capacity_bytes": 9}, "no layer; at least one is needed"),
        ([Pool(2)], {"capacity_bytes": 9}, "item 0: pool 2x2 stride2 does not lie between"),
        (["x"], {"capacity_bytes": 9}, "item 0 is a str; a Problem or a Pool is needed"),
        ([gemm(m=2, n=2, k=2)], {}, "neither capacity_bytes nor arch is given"),
        ([gemm(m=2, n=2, k=2)], {"capacity_bytes": 0}, "capacity_bytes is 0; a whole number >= 1"),
        (
            [gemm(m=2, n=2, k=2)],
            {"capacity_bytes": 99, "objective": "tim"},
            "objective is 'tim'; did you mean 'time'",
        ),
        (
            [gemm(m=2, n=2, k=2)],
            {"capacity_bytes": 99, "objective": "time"},
            "objective is 'time'; it needs an arch",
        ),
        ([gemm(m=2, n=2, k=2)], {"capacity_bytes": 99, "halos": []}, "halos is empty"),
        (
            [conv2d(c=1, k=1, h=2, w=9, r=1, s=1), Pool(3), conv2d(c=1, k=1, h=1, w=3, r=1, s=1)],
            {"capacity_bytes": 99},
            "pool 3x3 stride3 after .*: its window is larger than the 2 positions",
        ),
    ],
)
def test_bad_input_is_said(given: list[object], options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        _fuse(given, **options)


@pytest.mark.parametrize("layers", [gemm(m=2, n=2, k=2), 16, None])
def test_what_is_no_list_is_said(layers: object) -> None:
    for find in (fuse, residency):
        with pytest.raises(InputError, match="a sequence of problems, a workload or a network"):
            find(layers, 99)  # type: ignore[operator]


def test_what_does_not_fit_alone_is_said() -> None:
    with pytest.raises(EmptySpaceError, match="the operands of one point need more than"):
        fuse([gemm(m=2, n=2, k=2)], 11)
