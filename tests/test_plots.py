"""Plots: what is on the Axes, what is in the files, and what is refused."""

from __future__ import annotations

import csv
import math
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.text import Text

from loopsched import (
    Workload,
    buffer_arch,
    conv2d,
    evaluate,
    gemm,
    load_arch,
    load_workload,
    pareto,
    parse_schedule,
    search,
    search_workload,
    sensitivity,
    traffic_curve,
)
from loopsched.base.errors import ConstraintError, InputError, ScheduleError
from loopsched.cli import run
from loopsched.curves.network import NetworkCurve
from loopsched.gpu.choice.families import FAMILIES
from loopsched.models.machine import data_type_of
from loopsched.models.traffic import Promise
from loopsched.scheduler.result import Result
from loopsched.scheduler.tradeoffs import Tradeoff
from loopsched.show.plots import style
from loopsched.show.plots.figure import new_figure, plot_target, save_figure, save_plots
from loopsched.show.plots.labels import Box, Spot, place_labels
from loopsched.show.plots.layers import Layer
from loopsched.show.plots.measured import (
    Comparison,
    Pair,
    comparisons,
    measured_figure,
    measured_rows,
    plot_measured,
)
from loopsched.show.plots.roofline import plot_roofline, roofline_rows
from loopsched.show.plots.ski_slope import plot_ski_slope, ski_slope_rows
from loopsched.show.plots.tiles import plot_tiles, tiles_rows
from loopsched.show.plots.tornado import plot_tornado, tornado_figure, tornado_rows
from loopsched.show.plots.tradeoffs import pareto_rows, plot_pareto
from loopsched.show.plots.traffic import bytes_figure, bytes_rows, plot_bytes
from loopsched.study.sensitivity import Sensitivity
from loopsched.study.tile_map import TileMap, tile_map
from loopsched.validation import validate_counters, validate_times
from loopsched.validation.choices import ChoiceValidation

ARCH = load_arch("titan_v")
PROBLEM = gemm(m=60, n=48, k=64)
NEST = parse_schedule("M:60@SM N:48@SM K:64 M:10 N:12 K:16", PROBLEM)


# Made by the first test that asks: who only collects tests compiles nothing.
@cache
def searched() -> list[Result]:
    return [
        search(gemm(m=64 * n, n=64, k=96, element_bytes=bytes_), ARCH)
        for n, bytes_ in ((1, 4), (2, 2), (3, 4))
    ]


@cache
def mapped() -> TileMap:
    return tile_map(PROBLEM, ARCH, NEST, ["M", "N"], steps=24)


@cache
def traded() -> tuple[Tradeoff, ...]:
    return pareto(gemm(m=256, n=256, k=256), ARCH)


@cache
def varied() -> Sensitivity:
    workload = Workload("tiny", (gemm(m=64, n=64, k=64),))
    vary = {"dram.bandwidth": [0.5, 2], "compute.clock": [0.5, 2]}
    return sensitivity(workload, ARCH, vary)


def axes(width: float = 7, height: float = 4.2) -> Axes:
    found: Axes = new_figure(width, height).subplots()
    return found


def texts(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.texts]


def written(text: Text) -> Any:
    """Where a text stands, without the line that leads to it."""
    text.get_window_extent()  # puts it there
    return Text.get_window_extent(text)


def legend(ax: Axes) -> list[str]:
    found = ax.get_legend()
    return [] if found is None else [text.get_text() for text in found.get_texts()]


def offsets(ax: Axes) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for each in ax.collections for x, y in each.get_offsets()]


class TestRoofline:
    def test_a_point_a_layer_where_its_flops_and_bytes_say(self) -> None:
        ax = plot_roofline(searched(), ARCH, ax=axes())
        expected = sorted(
            (one.problem.flops / one.evaluation.dram_bytes,
             one.problem.flops / one.evaluation.time_s)
            for one in searched()
        )  # fmt: skip
        assert [n for place in sorted(offsets(ax)) for n in place] == pytest.approx(
            [n for place in expected for n in place]
        )
        assert ax.get_xlabel() == "operational intensity at DRAM (FLOP/B)"
        assert ax.get_ylabel() == "performance"
        assert ax.yaxis.get_major_formatter()(2e12) == "2 TFLOP/s"
        assert ax.get_xscale() == ax.get_yscale() == "log"
        assert ax.get_title() == "3 layers on titan_v"
        named = plot_roofline(searched(), ARCH, name="mine", ax=axes())
        assert named.get_title() == "mine: 3 layers on titan_v"
        # Names, not numbers, where there is room for them.
        assert {one.problem.name for one in searched()} & set(texts(named))

    def test_schedules_that_are_not_drawn_are_told(self) -> None:
        kept = [search(one.problem, ARCH, top=2) for one in searched()]
        told = "drawn: the best schedule of each layer"
        assert told in texts(plot_roofline(kept, ARCH, ax=axes()))
        assert told not in texts(plot_roofline(searched(), ARCH, ax=axes()))
        assert "drawn: the best schedule" in texts(plot_roofline(kept[:1], ARCH, ax=axes()))
        assert plot_bytes(kept, ax=axes()).get_xlabel() == "the best schedule of each layer"

    def test_schedules_of_one_layer_are_told_apart(self) -> None:
        best = search(PROBLEM, ARCH, top=3)
        scores = [best.evaluation, *(one.evaluation for one in best.alternatives)]
        ax = plot_roofline([Layer(PROBLEM, one, f"0.{n}") for n, one in enumerate(scores, 1)], ARCH)
        sizes = {float(size) for group in ax.collections for size in group.get_sizes()}
        assert sizes == {40.0}  # they share no time

    def test_a_roof_for_each_level_and_each_rate(self) -> None:
        ax = plot_roofline(searched()[:1], ARCH, ax=axes())
        every = roofline_rows([search(gemm(m=4096, n=4096, k=4096), ARCH)], ARCH)
        slopes = set()
        flats = set()
        for line in ax.lines:
            (x, y) = ([float(v) for v in data] for data in line.get_data())
            if len(x) == 2 and y[0] == y[1]:
                flats.add(y[0])
            elif len(x) == 2:
                slopes.add(round(y[0] / x[0] / 1e6))
                assert y[1] / x[1] == pytest.approx(y[0] / x[0])
                assert y[1] <= 1.0001 * max(row["roof_flop_per_s"] for row in every)
        assert slopes == {round(level.bandwidth_bytes_per_s / 1e6) for level in ARCH.caches}
        compute = ARCH.compute
        rates = {2 * n * compute.units * compute.clock_hz
                 for _, n in compute.macs_per_cycle_per_unit}  # fmt: skip
        top = ax.get_ylim()[1]  # fp16 and int8, which no layer has, are above
        assert flats & rates == {rate for rate in rates if rate <= top} < rates
        assert "DRAM 652.8 GB/s" in texts(ax)
        assert any(text.startswith("fp32 12.29 TFLOP/s") for text in texts(ax))

    def test_roofs_that_are_one_have_one_name_and_no_name_is_on_a_point(self) -> None:
        arch = load_arch("epyc_7763")  # L3 and L2 give as much
        ax = plot_roofline(
            [search(conv2d(c=48, k=128, h=27, w=27, r=5, s=5), arch)], arch, ax=axes()
        )
        assert "L3, L2 5.018 TB/s" in texts(ax)
        ax.figure.draw_without_rendering()
        points = [line.get_xydata()[0] for line in ax.lines if line.get_marker() != "None"]
        points += [point for group in ax.collections for point in group.get_offsets()]
        assert len(points) > 3
        left = ax.get_window_extent().x0
        for text in ax.texts:
            box = text.get_window_extent()
            assert box.x0 >= left
            assert not any(box.contains(*ax.transData.transform(point)) for point in points)

    def test_every_one_of_a_few_layers_has_its_name(self) -> None:
        found = list(search_workload(load_workload("alexnet"), ARCH))
        ax = plot_roofline(found, ARCH, name="alexnet", ax=axes())
        named = [name for text in texts(ax) for name in text.split(", ")]
        assert {one.problem.name for one in found} <= set(named)
        assert "fc6, fc7, fc8" in texts(ax)  # which lie on one another

    def test_labels_are_numbers_and_the_slowest_is_largest(self) -> None:
        layers = [Layer(one.problem, one.evaluation, f"L{n}", 1 + n) for n, one in
                  enumerate(searched())]  # fmt: skip
        ax = plot_roofline(layers, ARCH, ax=axes())
        assert {"L0", "L1", "L2"} <= set(texts(ax))
        areas = {
            (round(float(x), 6), round(float(y))): float(area)
            for each in ax.collections
            for (x, y), area in zip(each.get_offsets(), each.get_sizes(), strict=True)
        }
        slowest = max(layers, key=lambda one: one.evaluation.time_s * one.count)
        place = (
            round(slowest.problem.flops / slowest.evaluation.dram_bytes, 6),
            round(slowest.problem.flops / slowest.evaluation.time_s),
        )
        assert areas[place] == max(areas.values())

    def test_rows_are_the_points(self) -> None:
        results = [*searched(), search(gemm(m=4096, n=4096, k=4096), ARCH)]  # one below each roof
        rows = roofline_rows(results, ARCH)
        assert [row["level"] for row in rows] == ["DRAM", "L2"] * 4
        for row in rows:
            assert row["flop_per_s"] <= row["roof_flop_per_s"] * (1 + 1e-12)
            assert row["operational_intensity"] == row["flops"] / row["bytes"]
        rate = 2 * ARCH.compute.units * ARCH.compute.clock_hz
        ways = [
            (rate * ARCH.compute.rate(data_type_of(one.problem, ARCH)), level.bandwidth_bytes_per_s)
            for one in results
            for level in ARCH.caches
        ]
        assert [row["roof_flop_per_s"] for row in rows] == [
            min(peak, row["operational_intensity"] * (width or 0))
            for row, (peak, width) in zip(rows, ways, strict=True)
        ]

    def test_what_binds_is_said_and_counted(self) -> None:
        ax = plot_roofline(searched(), ARCH, ax=axes())
        bound = [one.evaluation.bound_by for one in searched()]
        for name in set(bound):
            assert f"{name}: {bound.count(name)}" in legend(ax)

    def test_no_layers(self) -> None:
        assert offsets(plot_roofline([], ARCH, ax=axes())) == []


def still() -> Layer:
    """A layer that moves nothing, as no model would say."""
    score = searched()[0].evaluation
    levels = tuple(
        SimpleNamespace(
            outer=level.outer,
            name=level.name,
            promised={"A": Promise(0, 0)},
            promised_bytes=0,
            operational_intensity=math.inf,
        )
        for level in score.levels
    )
    nothing = SimpleNamespace(
        levels=levels, time_s=score.time_s, bound_by="compute", least_dram_bytes=0, dram_bytes=0
    )
    return Layer(searched()[0].problem, nothing, "still")  # type: ignore[arg-type]


class TestNothingMoves:
    def test_a_roofline_counts_it(self) -> None:
        ax = plot_roofline([still(), *searched()[1:]], ARCH, ax=axes())
        assert "1 without traffic: not shown" in texts(ax)
        assert len(offsets(ax)) == 2

    def test_bars_of_no_height(self) -> None:
        for layers in ([still()], [still(), still()]):
            ax = plot_bytes(layers, ax=axes())
            assert all(0 in (bar.get_width(), bar.get_height()) for bar in ax.patches)
            assert (ax.get_xlim() if len(layers) == 1 else ax.get_ylim()) == (0, 1)


class TestLabels:
    @settings(max_examples=15)
    @given(
        st.lists(st.tuples(st.floats(0.02, 0.98), st.floats(0.02, 0.98)), max_size=40),
        st.sampled_from([3.5, 7.0]),
    )
    def test_none_over_another_or_over_a_point(
        self, places: list[tuple[float, float]], width: float
    ) -> None:
        ax = axes(width, 2.6)
        spots = [Spot(x, y, 2.0, str(n)) for n, (x, y) in enumerate(places)]
        shown = place_labels(ax, spots)
        assert shown == texts(ax)
        drawn = []
        scale = 72 / ax.figure.figure.dpi
        for text in ax.texts:  # the line from a label to its point is not part of the text
            x0, y0, x1, y1 = (float(v) * scale for v in written(text).extents)
            drawn.append(Box(x0, y0, x1, y1))
        frame = [float(v) * scale for v in ax.get_window_extent().extents]
        for i, one in enumerate(drawn):
            assert frame[0] <= one.left
            assert one.right <= frame[2]
            inner = Box(one.left + 0.1, one.low + 0.1, one.right - 0.1, one.high - 0.1)
            assert all(inner.is_free_of(other) for other in drawn[:i])

    def test_a_label_at_the_edge_stays_inside(self) -> None:
        ax = axes(3.5, 2.6)
        ax.set_xlim(0, 1)
        assert place_labels(ax, [Spot(1.0, 0.5, 2.0, "WWWW")]) == ["WWWW"]
        text, frame = ax.texts[0].get_window_extent(), ax.get_window_extent()
        assert frame.x0 <= text.x0
        assert text.x1 <= frame.x1

    def test_points_at_one_place_share_a_label(self) -> None:
        spots = [Spot(0.5, 0.5, radius, name) for radius, name in ((5.0, "a"), (3.0, "b"))]
        assert place_labels(axes(), [*spots, Spot(0.8, 0.5, 2.0, "c")]) == ["a, b", "c"]

    def test_a_label_without_room_beside_its_point_stands_at_the_end_of_a_line(self) -> None:
        ax = axes()
        ring = [Spot(0.5 + 0.02 * x, 0.5 + 0.03 * y, 4.0, "") for x in (-1, 0, 1)
                for y in (-1, 0, 1) if x or y < 1]  # fmt: skip
        assert place_labels(ax, [Spot(0.5, 0.5, 2.0, "inner"), *ring]) == ["inner"]
        (text,) = ax.texts
        assert text.arrow_patch is not None  # type: ignore[attr-defined]
        box = written(text)
        at = [ax.transData.transform((spot.x, spot.y)) for spot in ring]
        assert not any(box.contains(*place) for place in at)

    @pytest.mark.parametrize("step", [0.02, 0.025])
    def test_a_line_to_a_label_passes_no_other_point(self, step: float) -> None:
        ax = axes()
        ax.set(xlim=(0, 1), ylim=(0, 1))
        spots = [Spot(0.5, 0.5 - step * n, 6.0, str(n)) for n in range(3)]
        for spot in spots:  # no room at their sides
            ax.axhline(spot.y)
        assert len(place_labels(ax, spots)) == 3
        scale = 72 / ax.figure.figure.dpi
        heights = [float(ax.transData.transform((spot.x, spot.y))[1]) * scale for spot in spots]
        for text in ax.texts:
            across, up = text.get_position()  # from its point
            length = math.hypot(across, up)
            own = heights[int(text.get_text())]
            for apart in (height - own for height in heights if height != own):
                is_beside = not 0 < apart * up / length < length
                assert is_beside or abs(apart * across) / length > 3.0, text.get_text()

    def test_labels_in_a_line_do_not_read_as_one(self) -> None:
        ax = axes()
        scale = 72 / ax.figure.figure.dpi
        ax.figure.draw_without_rendering()
        ax.set(xlim=(0, ax.get_window_extent().width * scale), ylim=(0, 1))
        ax.axhline(0.5)
        place_labels(ax, [Spot(50.0 + 24 * n, 0.5, 1.0, f"label{n}") for n in range(9)])
        boxes = sorted((written(one) for one in ax.texts), key=lambda box: float(box.x0))
        level = [pair for pair in pairwise(boxes) if abs(pair[0].y0 - pair[1].y0) < 1]
        assert all((right.x0 - left.x1) * scale > 3.9 for left, right in level)

    def test_one_point_alone_is_labelled(self) -> None:
        assert place_labels(axes(), [Spot(0.5, 0.5, 2.0, "one"), Spot(0.5, 0.5, 2.0, "")]) == [
            "one"
        ]


class TestSkiSlope:
    CURVE = traffic_curve(gemm(m=24, n=16, k=20))

    def test_the_staircase_is_the_curve(self) -> None:
        ax = plot_ski_slope([self.CURVE], arch=ARCH, ax=axes())
        x, y = ax.lines[0].get_data()
        assert ax.lines[0].get_drawstyle() == "steps-post"
        assert tuple(map(int, x[:-1])) == self.CURVE.capacities_bytes
        assert tuple(map(int, y[:-1])) == self.CURVE.dram_bytes
        assert y[-1] == y[-2]
        knees = [(knee.capacity_bytes, knee.dram_bytes) for knee in self.CURVE.knees]
        assert len(knees) > 1
        assert [*zip(*ax.lines[1].get_data(), strict=True)] == knees
        assert ax.get_xlabel() == "capacity of the buffer"
        cached = traffic_curve(self.CURVE.problem, policy="lru")
        assert plot_ski_slope([cached], ax=axes()).get_xlabel() == "capacity of the LRU cache"
        assert ax.get_ylabel() == "DRAM traffic"
        assert ax.yaxis.get_major_formatter()(4e6) == "4 MB"
        assert {"L2\n4.5 MiB", "L1\n96 KiB"} <= set(texts(ax))
        assert ax.get_title() == f"{self.CURVE.name} on titan_v"  # whose levels these are
        names = legend(ax)
        assert names[0] == "least traffic"
        assert "compulsory: everything once" in names
        assert "bound if all tiles are held from one loop inward" not in names

    def test_what_is_not_proven_is_drawn_with_its_bound(self) -> None:
        curve = traffic_curve(conv2d(c=2, k=4, h=9, w=9, r=3, s=3, padding=1))
        assert curve.n_proven < len(curve)
        ax = plot_ski_slope([curve], ax=axes())
        assert legend(ax)[0] == "least traffic found"
        line = next(
            line
            for line in ax.lines
            if line.get_label() == "bound if all tiles are held from one loop inward"
        )
        assert tuple(map(int, line.get_xdata()[:-1])) == curve.nest_bound.capacities_bytes
        assert tuple(map(int, line.get_ydata()[:-1])) == curve.nest_bound.dram_bytes

    def test_the_bound_is_never_above(self) -> None:
        ax = plot_ski_slope([self.CURVE], ax=axes())
        bound = next(line for line in ax.lines if "order" in str(line.get_label()))
        for capacity, least in zip(*bound.get_data(), strict=True):
            ours = self.CURVE.at(int(capacity))
            assert ours is None or least <= ours
            assert least == self.CURVE.bound_bytes(int(capacity))

    @pytest.mark.parametrize(
        ("form", "label"),
        [("bandwidth", "DRAM bandwidth that keeps up"),
         ("intensity", "operational intensity (FLOP/B)")],
    )  # fmt: skip
    def test_forms(self, form: Any, label: str) -> None:
        ax = plot_ski_slope([self.CURVE], arch=ARCH, form=form, ax=axes())
        assert ax.get_ylabel() == label
        expected = (
            self.CURVE.bandwidth(ARCH) if form == "bandwidth" else self.CURVE.intensity()
        )  # fmt: skip
        assert legend(ax)[0] == "with the least traffic"
        assert [float(v) for v in ax.lines[0].get_ydata()[:-1]] == pytest.approx(expected)

    def test_several(self) -> None:
        others = [traffic_curve(gemm(m=m, n=4, k=4)) for m in (2, 3)]
        ax = plot_ski_slope([self.CURVE, *others], ax=axes())
        assert set(texts(ax)) == {curve.name for curve in (self.CURVE, *others)}
        assert ax.get_legend() is None
        assert ax.get_title() == "3 layers"
        whole = NetworkCurve.of("all", (self.CURVE, *others), (1, 2, 1))
        both = plot_ski_slope([self.CURVE, *others], whole=whole, name="net", ax=axes())
        assert both.get_title() == "net: 3 layers"
        assert "all, times count" in texts(both)
        assert tuple(map(int, both.lines[-1].get_ydata()[:-1])) == whole.dram_bytes

    def test_a_legend_hides_neither_curve_nor_capacity(self) -> None:
        for width in (3.5, 7.0):
            ax = plot_ski_slope([self.CURVE], arch=ARCH, ax=axes(width))
            ax.figure.draw_without_rendering()
            box = ax.get_legend().get_window_extent()  # type: ignore[union-attr]
            assert box.y1 < ax.get_window_extent().y0

    @pytest.mark.parametrize("width", [3.5, 7.0])
    def test_every_curve_has_a_look_and_a_name_at_its_end(self, width: float) -> None:
        curves = [traffic_curve(gemm(m=m, n=4, k=4)) for m in range(2, 14)]
        ax = plot_ski_slope(curves, arch=ARCH, ax=axes(width))
        stairs = [line for line in ax.lines if line.get_drawstyle() == "steps-post"]
        assert len({(line.get_color(), str(line._unscaled_dash_pattern)) for line in stairs}) == 12
        names = [text for text in ax.texts if text.get_text().startswith("m")]
        assert [text.get_text() for text in names] == [curve.name for curve in curves]
        ax.figure.draw_without_rendering()
        boxes = [written(text) for text in names]
        assert all(box.x0 >= ax.get_window_extent().x1 for box in boxes)
        assert all(lower.y1 <= upper.y0 + 1 for lower, upper in pairwise(boxes))
        assert all(box.x1 <= ax.figure.bbox.x1 for box in boxes)

    def test_of_many_curves_those_with_the_most_traffic_have_names(self) -> None:
        curves = [traffic_curve(gemm(m=m, n=4, k=4)) for m in range(2, 32)]
        ax = plot_ski_slope(curves, ax=axes())
        assert [text for text in texts(ax) if text.startswith("m")] == [
            curve.name for curve in curves[-12:]
        ]
        assert "in colour: the 12 layers with the most traffic" in texts(ax)
        assert len(ax.lines) == 30

    def test_a_level_that_is_used_in_part_says_so(self) -> None:
        curve = traffic_curve(gemm(m=4096, n=4096, k=4096))
        ax = plot_ski_slope([curve], arch=load_arch("h200"), ax=axes())
        assert texts(ax) == ["L2\n35 MiB of 60 MiB", "L1\n228 KiB"]

    def test_refusals_and_nothing(self) -> None:
        with pytest.raises(InputError, match="'bandwidth' needs an arch"):
            plot_ski_slope([self.CURVE], form="bandwidth")
        with pytest.raises(InputError, match="did you mean 'traffic'"):
            plot_ski_slope([self.CURVE], form="trafic")  # type: ignore[arg-type]
        assert texts(plot_ski_slope([], ax=axes())) == ["no curve"]

    def test_rows(self) -> None:
        rows = ski_slope_rows([self.CURVE], ARCH)
        assert [row["dram_bytes"] for row in rows] == list(self.CURVE.dram_bytes)
        assert "required_dram_bandwidth_bytes_per_s" in rows[0]


class TestBytes:
    def test_stacks_add_up_to_what_layers_move(self) -> None:
        ax = plot_bytes(searched(), ax=axes())
        tops: dict[int, float] = {}
        for patch in ax.patches:
            place = round(patch.get_x() + patch.get_width() / 2)
            tops[place] = max(tops.get(place, 0.0), patch.get_y() + patch.get_height())
        assert tops == {n: one.evaluation.dram_bytes for n, one in enumerate(searched())}
        assert ax.get_ylabel() == "DRAM traffic (kB)"
        assert legend(ax) == ["lower bound, any order", "A", "B", "C"]

    def test_one_layer_has_a_bar_a_boundary(self) -> None:
        ax = plot_bytes(searched()[:1], ax=axes())
        names = [label.get_text() for label in ax.get_yticklabels()]
        assert names == ["DRAM - L2", "L2 - L1"]
        ends = [max(p.get_x() + p.get_width() for p in ax.patches if round(p.get_y() + 0.3) == n)
                for n in (0, 1)]  # fmt: skip
        assert ends == [level.promised_bytes for level in searched()[0].evaluation.levels]
        assert len(ax.patches) == 6

    def test_colours_never_stand_alone(self) -> None:
        ax = plot_bytes(searched(), ax=axes())
        looks = {(to_hex(patch.get_facecolor()), patch.get_hatch()) for patch in ax.patches}
        assert len({colour for colour, _ in looks}) == len({hatch for _, hatch in looks}) == 3

    def test_thin_bars_have_hatches_too(self) -> None:
        many = [Layer(searched()[0].problem, searched()[0].evaluation, str(n)) for n in range(160)]
        ax = plot_bytes(many, ax=axes())
        assert len({patch.get_hatch() for patch in ax.patches}) == 3
        assert {patch.get_width() for patch in ax.patches} == {1.0}  # a hatch goes on in the next

    def test_a_figure_has_a_panel_a_level(self) -> None:
        assert len(bytes_figure(searched()).axes) == 2
        assert len(bytes_figure(searched()[:1]).axes) == 1

    def test_rows_and_refusals(self) -> None:
        rows = bytes_rows(searched()[:1])
        assert sum(row["bytes"] for row in rows if row["level"] == "DRAM") == (
            searched()[0].evaluation.dram_bytes
        )
        with pytest.raises(InputError, match="no boundary of level 'L3'"):
            plot_bytes(searched(), level="L3")
        assert texts(plot_bytes([], ax=axes())) == ["no layers"]

    def test_schedules_of_one_layer_are_called_so(self) -> None:
        best = search(PROBLEM, ARCH, top=2)
        scores = [best.evaluation, *(one.evaluation for one in best.alternatives)]
        ax = plot_bytes([Layer(PROBLEM, score, f"{n}") for n, score in enumerate(scores, 1)])
        assert ax.get_xlabel() == "schedule"
        assert ax.get_title() == f"2 schedules of {PROBLEM.name}"
        roofline = plot_roofline(
            [Layer(PROBLEM, score, f"{n}") for n, score in enumerate(scores, 1)], ARCH
        )
        assert roofline.get_title() == f"2 schedules of {PROBLEM.name} on titan_v"
        assert [tick.get_text() for tick in ax.get_xticklabels()] == ["1", "2"]

    def test_bars_have_the_names_of_layers(self) -> None:
        ax = plot_bytes(searched(), name="mine", ax=axes())
        labels = [label.get_text() for label in ax.get_xticklabels()]
        assert labels == [one.problem.name for one in searched()]
        assert ax.get_title() == "mine: 3 layers"

    def test_94_layers_leave_ticks_out(self) -> None:
        many = [Layer(searched()[0].problem, searched()[0].evaluation, str(n)) for n in range(94)]
        ax = plot_bytes(many, ax=axes(3.5, 2.6))
        labels = [label.get_text() for label in ax.get_xticklabels()]
        assert 4 < len(labels) < 16
        assert labels[0] == "0"


def literal(sizes: tuple[int, int]) -> str:
    """The nest of the map, written out by hand."""
    m, n = sizes
    return f"M:60@SM N:48@SM K:64 M:{m} N:{n} K:16"


class TestTiles:
    def test_each_cell_is_the_score_of_that_schedule(self) -> None:
        for cell in mapped().cells[::17]:
            nest = parse_schedule(literal(cell.sizes), PROBLEM)
            assert cell.evaluation is not None
            assert cell.evaluation.time_s == evaluate(PROBLEM, nest, ARCH).time_s
            assert str(cell.schedule) == str(nest)

    def test_sizes_differ_in_trip_counts(self) -> None:
        assert mapped().sizes[1] == tuple(sorted({-(-48 // n) for n in range(1, 49)}))
        assert set(mapped().sizes[0]) == {-(-60 // n) for n in range(1, 61)}
        assert mapped().current == (10, 12)

    @settings(max_examples=40)
    @given(st.integers(1, 1500), st.integers(3, 60), st.data())
    def test_sizes_are_few_and_hold_what_matters(
        self, whole: int, steps: int, data: st.DataObject
    ) -> None:
        from loopsched.study.tile_map import _sizes

        current = data.draw(st.integers(1, whole))
        sizes = _sizes(whole, current, steps)
        assert {1, current, whole} <= set(sizes)
        assert len(sizes) <= max(steps, 3)
        useful = {-(-whole // n) for n in range(1, whole + 1)}
        assert set(sizes) <= useful | {current}
        assert list(sizes) == sorted(set(sizes))

    def test_other_tiles_give_way(self) -> None:
        nest = parse_schedule("M:60 N:48 K:64 M:20 N:48 M:5 K:64", PROBLEM)
        found = tile_map(PROBLEM, ARCH, nest, ["M:20", "K"], steps=24)
        by_size = {cell.sizes: str(cell.schedule) for cell in found.cells}
        # K has one loop: another goes around the innermost loops that are all different.
        assert found.current == (20, 64)
        assert by_size[20, 64] == "M:60 N:48 K:64 M:20 N:48 M:5 K:64"
        assert by_size[3, 32] == "M:60 N:48 K:64 M:3 N:48 M:3 K:32"
        inner = tile_map(PROBLEM, ARCH, nest, ["M", "K"], steps=24)
        by_size = {cell.sizes: str(cell.schedule) for cell in inner.cells}
        assert by_size[30, 8] == "M:60 N:48 K:64 M:30 N:48 M:30 K:8"

    def test_a_loop_is_added_around_the_body(self) -> None:
        nest = parse_schedule("M:60@SM K:64 M:10 N:48 K:16", PROBLEM)
        found = tile_map(PROBLEM, ARCH, nest, ["N", "M"])
        by_size = {cell.sizes: str(cell.schedule) for cell in found.cells}
        assert by_size[12, 10] == "M:60@SM K:64 N:48 M:10 N:12 K:16"
        # A loop of one trip changes nothing.
        score = found.by_sizes[48, 10].evaluation
        assert score is not None
        assert score.time_s == evaluate(PROBLEM, nest, ARCH).time_s

    def test_the_best_is_the_least(self) -> None:
        scores = [cell.evaluation.time_s for cell in mapped().cells if cell.evaluation]
        best = mapped().best()
        assert best.evaluation is not None
        assert best.evaluation.time_s == min(scores)
        # Where arithmetic alone takes time; by default the tiled dimensions are varied, not K.
        idle = buffer_arch(capacity_bytes=4096, bandwidth_bytes_per_s=1e15, macs_per_cycle=1)
        nest = parse_schedule("M:60 N:48 K:64 M:10 N:12", PROBLEM)
        equal = tile_map(PROBLEM, idle, nest, steps=6)
        assert equal.dims == ("M", "N")
        least = equal.best().evaluation
        known = [cell.evaluation for cell in equal.cells if cell.evaluation]
        assert least is not None
        same = [one.dram_bytes for one in known if one.time_s == least.time_s]
        assert least.dram_bytes == min(same) < max(same)
        moved = mapped().best("dram_bytes").evaluation
        assert moved is not None
        assert moved.dram_bytes == min(
            cell.evaluation.dram_bytes for cell in mapped().cells if cell.evaluation
        )

    def test_jobs_change_nothing(self) -> None:
        found = tile_map(PROBLEM, ARCH, NEST, ["M", "N"], steps=4, jobs=2)
        assert found.rows() == tile_map(PROBLEM, ARCH, NEST, ["M", "N"], steps=4).rows()

    def test_axes(self) -> None:
        ax = plot_tiles(mapped(), ax=axes())
        assert ax.get_xlabel() == "tile size of N (elements)"
        assert ax.get_ylabel() == "tile size of M (elements)"
        image = ax.images[0].get_array()
        assert image is not None
        assert image.shape == tuple(map(len, mapped().sizes))
        place = (mapped().sizes[0].index(10), mapped().sizes[1].index(12))
        assert float(image[place]) == evaluate(PROBLEM, NEST, ARCH).time_s
        bar = ax.figure.axes[1]
        assert bar.get_ylabel() == "promised time"
        assert bar.yaxis.get_major_formatter()(4e-3) == "4 ms"
        ring = next(line for line in ax.lines if str(line.get_label()).startswith("the schedule"))
        assert (ring.get_ydata()[0], ring.get_xdata()[0]) == place
        cross = next(line for line in ax.lines if str(line.get_label()).startswith("least"))
        best = tuple(mapped().sizes[i].index(size) for i, size in enumerate(mapped().best().sizes))
        assert (cross.get_ydata()[0], cross.get_xdata()[0]) == best != place
        largest = [axis.get_ticklabels()[0].get_text() for axis in (ax.xaxis, ax.yaxis)]
        assert largest == ["48", "60"]
        named = plot_tiles(mapped(), name="net", ax=axes())
        assert named.get_title() == f"net: {PROBLEM.name} on titan_v"
        flat = plot_tiles(mapped(), "dram_bytes")
        assert len(flat.figure.axes) == 1  # no colours to tell
        assert "promised DRAM traffic is 39.17 kB everywhere" in texts(flat)
        with pytest.raises(InputError, match="quantity 'joules' is unknown"):
            plot_tiles(mapped(), "joules")  # type: ignore[arg-type]

    @pytest.mark.parametrize("width", [3.5, 7.0])
    def test_ticks_of_large_sizes_do_not_meet(self, width: float) -> None:
        huge = gemm(m=400_000, n=300_000, k=8)
        nest = parse_schedule("M:400000@SM N:300000 K:8 M:128 N:128", huge)
        ax = plot_tiles(tile_map(huge, ARCH, nest, ["M", "N"], steps=16), ax=axes(width, 3.2))
        ax.figure.draw_without_rendering()
        boxes = [label.get_window_extent() for label in ax.get_xticklabels()]
        assert len(boxes) >= 3
        assert all(one.x1 < other.x0 for one, other in pairwise(boxes[::-1]))

    def test_what_does_not_fit(self) -> None:
        small = buffer_arch(capacity_bytes=8, policy="explicit")
        nest = parse_schedule("M:60 N:48 K:64 M:10 N:12", PROBLEM)
        found = tile_map(PROBLEM, small, nest, steps=4)
        assert all(cell.evaluation is None and not cell.keeps for cell in found.cells)
        assert "nothing fits" in texts(plot_tiles(found, ax=axes()))
        with pytest.raises(ScheduleError, match="no tile sizes of"):
            found.best()
        with pytest.raises(InputError, match="quantity 'time' is unknown; did you mean 'time_s'"):
            found.best("time")

    def test_the_outline_is_where_levels_hold_as_much(self) -> None:
        score = evaluate(PROBLEM, NEST, ARCH)
        for cell in mapped().cells:
            assert cell.evaluation is not None
            holds = all(
                now.fit_position <= then.fit_position
                for now, then in zip(cell.evaluation.levels, score.levels, strict=True)
            )
            assert cell.keeps == holds
        ax = plot_tiles(mapped(), ax=axes())
        rows = [
            [mapped().by_sizes[one, other].keeps for other in mapped().sizes[1]]
            for one in mapped().sizes[0]
        ]
        lines = [*rows, *zip(*rows, strict=True)]
        n_edges = sum(a != b for line in lines for a, b in pairwise([False, *line, False]))
        assert {len(drawn.get_paths()) for drawn in ax.collections[-2:]} == {n_edges}

    @pytest.mark.parametrize(
        ("dims", "message"),
        [
            (["M"], "dims is M; two dimensions"),
            ([1, 2], r"dims\[0\] is 1; a dimension such as 'M' is needed"),
            (["M", "M"], "'M' is given twice"),
            (["M", "Q"], "no loop of 'Q'"),
            (["M:11", "N"], "no loop 'M:11'; did you mean 'M:10'"),
            (["M", "a b"], "no loop of 'a b'"),
        ],
    )
    def test_refusals(self, dims: Sequence[str], message: str) -> None:
        with pytest.raises(ConstraintError, match=message):
            tile_map(PROBLEM, ARCH, NEST, dims)
        with pytest.raises(ConstraintError, match="steps is 2"):
            tile_map(PROBLEM, ARCH, NEST, steps=2)
        with pytest.raises(ConstraintError, match="dims is 5; a sequence is needed"):
            tile_map(PROBLEM, ARCH, NEST, 5)  # type: ignore[arg-type]

    def test_rows(self) -> None:
        rows = tiles_rows(mapped())
        assert len(rows) == len(mapped().cells)
        assert sum(row["is_current"] for row in rows) == 1
        assert {"M", "N", "time_s", "dram_bytes"} <= set(rows[0])


class TestPareto:
    def test_every_point_is_drawn_and_named(self) -> None:
        ax = plot_pareto({"mine": traded()}, ax=axes())
        drawn = sorted(offsets(ax))
        assert drawn == sorted((point.dram_bytes, point.time_s) for point in traded())
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("DRAM traffic", "promised time")
        assert any(text.endswith("KiB") for text in texts(ax))

    def test_larger_capacities_are_darker_and_nothing_else(self) -> None:
        ax = plot_pareto({"mine": traded()}, ax=axes())
        assert len({float(each.get_sizes()[0]) for each in ax.collections}) == 1
        light = [float(sum(each.get_facecolor()[0][:3])) for each in ax.collections]
        assert light == sorted(light, reverse=True)
        assert len(set(light)) == len({point.capacity_bytes for point in traded()})

    def test_each_capacity_is_named_once(self) -> None:
        sizes = [text for text in texts(plot_pareto({"mine": traded()}, ax=axes())) if "iB" in text]
        assert len(sizes) == len(set(sizes))
        assert "beside the points: capacity of L2" in texts(plot_pareto({"mine": traded()}))
        line = [replace(traded()[0], dram_bytes=10**n, time_s=10.0**-n) for n in (6, 7, 8)]
        assert (
            len([text for text in texts(plot_pareto({"": line}, ax=axes())) if "iB" in text]) == 1
        )

    def test_several_problems_have_a_legend(self) -> None:
        ax = plot_pareto({"one": traded(), "two": traded()[:1]}, ax=axes())
        assert {"one", "two"} <= set(legend(ax))
        sizes = [style.binary(point.capacity_bytes) for point in traded()]
        assert legend(ax)[2] == "capacity of L2"
        assert set(legend(ax)[3:]) <= set(sizes)
        assert texts(plot_pareto({"none": ()}, ax=axes())) == ["nothing fits"]

    def test_the_title_names_the_machine(self) -> None:
        fronts = {"mine": traded()}
        assert plot_pareto(fronts, ax=axes()).get_title() == "mine on titan_v"
        assert plot_pareto(fronts, name="net", ax=axes()).get_title() == "net: mine on titan_v"

    def test_more_problems_than_markers_are_named_beside_a_point(self) -> None:
        far = {f"layer {n}": [replace(traded()[0], dram_bytes=10**n)] for n in range(4, 12)}
        ax = plot_pareto(far, ax=axes())
        assert {text for text in texts(ax) if "layer" in text} == set(far)
        assert not any("layer" in text for text in legend(ax))

    def test_the_legend_has_some_capacities_of_many(self) -> None:
        base = traded()[0]
        many = [replace(base, capacity_bytes=2**n, dram_bytes=10**7 - n) for n in range(10, 23)]
        names = legend(plot_pareto({"one": many, "two": many}, ax=axes()))
        named = [style.binary(2**n) for n in range(22, 9, -1)]
        assert names[2:] == ["capacity of L2", *named[::3]]

    def test_rows(self) -> None:
        rows = pareto_rows({"mine": traded()})
        assert [row["dram_bytes"] for row in rows] == [point.dram_bytes for point in traded()]


class TestMeasured:
    def test_points_and_errors(self) -> None:
        pairs = (Pair("", 10.0, 11.0), Pair("", 100.0, 70.0), Pair("", 0.0, 5.0))
        ax = plot_measured(Comparison("DRAM reads", "B", 0.2, pairs), ax=axes(3.5, 3.5))
        points = [place for each in ax.collections for place in each.get_offsets()
                  if each.get_sizes().size]  # fmt: skip
        assert [(float(x), float(y)) for x, y in points] == [(10.0, 11.0), (100.0, 70.0)]
        assert ax.get_xlabel() == "measured"
        assert ax.get_ylabel() == "predicted"
        # (10 % + 30 %) / 2
        assert {"rows: 2", "errors: median 20.0 %, mean 20.0 %"} <= set(texts(ax))
        assert "1 with 0: not shown" in texts(ax)
        assert ax.get_xlim() == ax.get_ylim()

    def test_the_band_is_as_wide_below_as_above(self) -> None:
        pairs = (Pair("one", 10.0, 11.0), Pair("apart", 9.0, 8.0), Pair("two", 20.0, 19.0))
        found = Comparison("times", "s", 0.25, pairs)
        assert found.groups == ("one", "two", "apart")
        ax = plot_measured(found, ax=axes(3.5, 3.5))
        (band,) = (one for one in ax.collections if not one.get_offsets().any())
        ratios = {round(y / x, 6) for x, y in band.get_paths()[0].vertices}
        assert ratios == {0.75, 1.25}

    def test_a_group_tells_its_rows_and_errors(self) -> None:
        pairs = tuple(Pair("all", 1e-5, 1.1e-5) for _ in range(5692))
        ax = plot_measured(Comparison("GEMMs", "s", 0.25, pairs), ax=axes(3.5, 3.5))
        assert legend(ax) == ["within 25 %", "all: 5,692; 10.0 %, 10.0 %"]
        assert ax.get_legend().get_title().get_text() == "rows; errors: median, mean"  # type: ignore[union-attr]
        assert ax.get_ylabel() == "estimate"

    def test_rows_that_are_not_counted_are_listed_separately(self) -> None:
        pairs = (Pair("one", 1.0, 1.1), Pair("apart", 9.0, 9.9))
        ax = plot_measured(Comparison("GEMMs", "s", 0.25, pairs), ax=axes(3.5, 3.5))
        assert legend(ax)[-1] == "listed separately: 1; 10.0 %, 10.0 %"

    def test_nothing_to_compare(self) -> None:
        ax = plot_measured(Comparison("DRAM writes", "B", 0.2, (Pair("", 0.0, 0.0),)), ax=axes())
        assert "nothing to compare" in texts(ax)
        assert len(measured_figure([]).axes) == 1

    def test_panels(self, tmp_path: Path) -> None:
        row = {"problem": "gemm:m=64,n=64,k=64", "schedule": "M:64@SM N:64 K:64 M:8"}
        found = comparisons(
            validate_counters([row | {"dram_read_bytes": 40000}], "titan_v", method="evaluate")
        )
        assert [one.title for one in found] == ["DRAM reads", "DRAM writes", "L2 reads"]
        assert measured_rows(found)[0]["measured"] == 40000.0
        times = comparisons(validate_times("titan_v_measured", where={"kind": "gemm"}))
        assert all(one.unit == "s" for one in times)
        assert max(pair.measured for one in times for pair in one.pairs) < 10  # seconds
        figure = measured_figure(times)
        assert len(figure.axes) == len(times)

    def test_every_family_of_kernels_has_a_title(self) -> None:
        kinds = {family.kind for family in FAMILIES.values()}
        rows = [{"kind": kind, "data_type": "fp16", "time_us": 2, "estimate_us": 3,
                 "may_be_best": True} for kind in kinds]  # fmt: skip
        found = ChoiceValidation(tuple(rows), (), {"groups": rows})
        titles = [one.title for one in comparisons(found)]
        assert len(set(titles)) == len(kinds)

    def test_panels_with_legends_are_wide(self) -> None:
        pairs = (Pair("may be best", 1e-5, 1.1e-5), Pair("others", 1e-4, 1.2e-4))
        figure = measured_figure([Comparison(title, "s", 0.25, pairs) for title in "abc"])
        figure.canvas.draw()
        whole = figure.get_window_extent()
        for ax in figure.axes:
            named = ax.get_legend().get_window_extent()
            assert named.width < ax.get_window_extent().width
            assert whole.x0 <= named.x0 < named.x1 <= whole.x1
            # Inside, it would cover the line.
            assert whole.y0 - 1 < named.y0 < named.y1 < ax.get_window_extent().y0
        assert len(figure.axes) == 3

    def test_the_name_stands_clear_of_the_panels(self) -> None:
        """A panel with remarks is higher than those beside it."""
        pairs = (Pair("", 1e6, 1.1e6), Pair("", 4e6, 4.4e6))
        found = [
            Comparison(f"reads {n}", "B", 0.2, (*pairs, *[Pair("", 0.0, 0.0)] * n))
            for n in (0, 1, 0)
        ]
        figure = measured_figure(found, "mine")
        figure.canvas.draw()
        (name,) = (one for one in figure.texts if one.get_text() == "mine")
        top = max(ax.title.get_window_extent().y1 for ax in figure.axes)
        assert name.get_window_extent().y0 - top > 5

    def test_one_panel_has_one_title(self) -> None:
        one = Comparison("GEMMs", "s", 0.25, (Pair("a", 1e-5, 1.1e-5), Pair("b", 1e-4, 1.2e-4)))
        alone, beside = measured_figure([one], "mine"), measured_figure([one, one], "mine")
        assert (alone.get_suptitle(), beside.get_suptitle()) == ("", "mine")
        assert [ax.get_title() for ax in alone.axes] == ["mine: GEMMs"]
        assert [ax.get_title() for ax in beside.axes] == ["GEMMs", "GEMMs"]


class TestTornado:
    def test_bars_are_the_changes(self) -> None:
        ax = plot_tornado(varied(), "time", ax=axes())
        widths = sorted(float(bar.get_width()) for bar in ax.patches)
        base = varied().base.time_s
        expected = sorted(
            100 * (one.time_s / base - 1)
            for one in varied().points
            if one.key in [label.get_text() for label in ax.get_yticklabels()]
        )
        assert widths == pytest.approx(expected)
        assert ax.get_xlabel().startswith("change (%) from ")
        assert legend(ax) == ["smallest factor", "largest factor"]
        assert plot_tornado(varied(), "estimate").get_title() == "kernels, estimated time"

    def test_rows_and_figure(self) -> None:
        rows = tornado_rows(varied())
        assert {row["quantity"] for row in rows} == {"time", "estimate"}
        assert {row["end"] for row in rows} == {"lowest", "highest"}
        for row in rows:
            assert (row["ratio"] < 1) == (row["end"] == "lowest")
            assert row["change"] == pytest.approx(
                row["value"] / varied().base.value(row["quantity"]) - 1
            )
        figure = tornado_figure(varied(), "tiny: one")
        assert len(figure.axes) == 2
        assert figure.get_suptitle() == f"tiny: one on {varied().arch}"

    @pytest.mark.parametrize(
        "factors", [(1.0, 0.999), (1.0, 0.7), (0.9, 0.7), (1.2, 1.5), (1.5, 0.7)]
    )
    def test_factors_of_a_bar_do_not_overlap(self, factors: tuple[float, float]) -> None:
        base = varied().base
        moved = {0.5: factors[0], 2.0: factors[1]}
        points = [
            replace(one, time_s=base.time_s * moved.get(one.ratio, 1.0))
            for one in varied().points
            if one.key == "compute.clock"
        ]
        ax = plot_tornado(replace(varied(), points=tuple(points)), "time", ax=axes())
        ax.figure.canvas.draw()
        left, right = sorted(ax.texts, key=lambda one: one.get_window_extent().x0)
        assert left.get_window_extent().x1 < right.get_window_extent().x0
        lower, higher = sorted(moved, key=lambda ratio: moved[ratio])
        assert [float(one.get_text()[1:]) for one in (left, right)] == [lower, higher]

    def test_only_the_largest_have_bars_and_the_others_are_counted(self) -> None:
        """Here all make the time shorter, one less than the other."""
        base, first = varied().base, varied().points[0]
        points = [
            replace(first, key=f"{n:02}.rate", ratio=2.0, time_s=base.time_s * (0.5 + 0.01 * n))
            for n in range(30)
        ]
        found = replace(varied(), points=tuple(points))
        ax = plot_tornado(found, "time", ax=axes())
        named = [label.get_text() for label in ax.get_yticklabels()]
        assert named == [f"{n:02}.rate" for n in range(24)]
        assert ax.get_xlabel().endswith("\n6 others: below 0.05 %")

    def test_parameters_without_effect_have_no_bars(self) -> None:
        base = varied().base.time_s
        still = tuple(replace(one, time_s=base) for one in varied().points)
        found = replace(varied(), points=still)
        ax = plot_tornado(found, "time", ax=axes())
        assert not ax.patches
        assert not ax.lines
        assert texts(ax) == ["no parameter changes it by 0.05 %"]
        assert "other" not in ax.get_xlabel()
        assert len(tornado_figure(found).axes) == 2

    def test_the_legend_lies_below_all_bars(self) -> None:
        figure = tornado_figure(varied())
        figure.canvas.draw()
        for ax in figure.axes:
            top = ax.get_legend().get_window_extent().y1
            shown = (*ax.patches, *ax.texts, *ax.lines)
            assert all(one.get_window_extent().y0 >= top for one in shown)


class TestStyle:
    @given(st.floats(1e-9, 1e15), st.floats(1.05, 1e9))
    def test_ticks_are_inside_and_few(self, low: float, ratio: float) -> None:
        for most in (3, 7):
            ticks = style.log_ticks(low, low * ratio, most)
            assert 2 <= len(ticks) <= 2 * most
            assert all(low * 0.999 <= tick <= low * ratio * 1.001 for tick in ticks)
            assert ticks == sorted(ticks)

    @given(st.integers(0, 2**50))
    def test_capacities_have_binary_prefixes(self, value: int) -> None:
        text = style.binary(value)
        number, _, prefix = text.partition(" ")
        power = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"].index(prefix)
        assert math.isclose(float(number) * 1024**power, value, rel_tol=1e-3)

    @given(st.floats(1e-12, 1e18))
    def test_ticks_have_decimal_prefixes(self, value: float) -> None:
        number, _, prefix = style.decimal(value, "s").partition(" ")
        prefix = prefix.removesuffix("s")
        power = 3 * ("pnµm".index(prefix) - 4) if prefix in "pnµm" and prefix else 3 * (
            ["", "k", "M", "G", "T", "P", "E"].index(prefix)
        )  # fmt: skip
        assert math.isclose(float(number) * 10.0**power, value, rel_tol=1e-3)

    def test_numbers_change_their_prefix_where_they_should(self) -> None:
        assert [style.decimal(10.0**n) for n in (-3, 2, 3, 6)] == ["0.001", "100", "1 k", "1 M"]
        assert [style.decimal(n, "s") for n in (4e-3, 4.0, 0)] == ["4 ms", "4 s", "0"]
        assert [style.binary(1024.0**n * 3) for n in range(3)] == ["3 B", "3 KiB", "3 MiB"]
        for most in (3, 5):  # of 2, 3, .. 19 no more than every few
            assert len(style.log_ticks(2, 19.5, most)) <= most
        low, high = style.margins([5.0, 50.0])
        assert low < 5 < 50 < high
        assert 5 / low == pytest.approx(high / 50)

    def test_a_linear_axis_names_its_unit(self) -> None:
        ax = axes()
        style.linear_axis(ax.xaxis, "time", "s", 4_200.0)
        assert ax.get_xlabel() == "time (ks)"
        assert ax.xaxis.get_major_formatter()(3_000.0, 0) == "3"
        style.legend(ax)
        assert ax.get_legend() is None
        ax.plot([0], [0], label="here")
        style.legend(ax)
        assert [text.get_text() for text in ax.get_legend().get_texts()] == ["here"]

    @pytest.mark.parametrize("width", [3.5, 7.0])
    def test_titles_fit(self, width: float) -> None:
        ax = axes(width)
        style.dress(ax, "a name of a layer/with many/parts " * 5)
        ax.figure.draw_without_rendering()
        title, whole = ax.title.get_window_extent(), ax.figure.bbox
        assert whole.x0 <= title.x0
        assert title.x1 <= whole.x1
        assert title.width > 0.6 * ax.get_window_extent().width

    def test_colours_markers_and_dashes_come_together(self) -> None:
        looks = [style.look(n) for n in range(7)]
        for field in ("colour", "fill", "marker", "hatch"):
            assert len({getattr(look, field) for look in looks}) == 7

    def test_fills_can_be_told_apart_in_grey(self) -> None:
        def grey(colour: str) -> float:
            r, g, b = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
            return 0.299 * r + 0.587 * g + 0.114 * b

        first, second, third = sorted(grey(colour) for colour in style.FILLS[:3])
        assert second - first > 0.15
        assert third - second > 0.15


DRAWN: dict[str, tuple[Callable[[], list[Any]], Callable[[], Any]]] = {
    "roofline": (
        lambda: roofline_rows(searched(), ARCH),
        lambda: plot_roofline(searched(), ARCH),
    ),
    "bytes": (lambda: bytes_rows(searched()), lambda: bytes_figure(searched())),
    "tiles": (lambda: tiles_rows(mapped()), lambda: plot_tiles(mapped())),
    "tornado": (lambda: tornado_rows(varied()), lambda: tornado_figure(varied())),
    "pareto": (
        lambda: pareto_rows({"mine": traded()}),
        lambda: plot_pareto({"mine": traded()}),
    ),
    "ski": (
        lambda: ski_slope_rows([TestSkiSlope.CURVE]),
        lambda: plot_ski_slope([TestSkiSlope.CURVE], arch=ARCH),
    ),
}
STARTS = {".svg": b"<?xml", ".png": b"\x89PNG", ".pdf": b"%PDF"}


class TestFiles:
    def test_only_drawing_loads_matplotlib(self) -> None:
        code = (
            "import sys, loopsched\n"
            "for name in dir(loopsched):\n"
            "    if name.startswith('plot_'):\n"
            "        getattr(loopsched, name)\n"
            "import loopsched.show.plots.figure, loopsched.show.plots.labels\n"
            "sys.exit('matplotlib' in sys.modules)"
        )
        assert subprocess.run([sys.executable, "-c", code]).returncode == 0

    @pytest.mark.parametrize(
        ("name", "suffix"),
        [*((name, suffix) for name in DRAWN for suffix in (".svg", ".csv")),
         ("bytes", ".png"), ("ski", ".pdf")],
    )  # fmt: skip
    def test_each_form_twice_the_same(self, name: str, suffix: str, tmp_path: Path) -> None:
        rows, draw = DRAWN[name]
        found = []
        for folder in ("one", "two"):
            (tmp_path / folder).mkdir()
            target = plot_target(tmp_path / folder / f"plot{suffix}")
            save_plots([target], rows, draw)
            found.append(target.read_bytes())
            assert list((tmp_path / folder).iterdir()) == [target]
        assert found[0] == found[1]
        assert found[0].startswith(STARTS.get(suffix, b""))
        if suffix == ".csv":
            read = list(csv.DictReader(found[0].decode().splitlines()))
            assert [list(row.values()) for row in read] == [
                ["" if value is None else str(value) for value in row.values()] for row in rows()
            ]

    def test_a_users_settings_change_nothing(self, tmp_path: Path) -> None:
        import matplotlib as mpl

        rows, draw = DRAWN["ski"]
        save_plots([tmp_path / "plain.svg"], rows, draw)
        with mpl.rc_context({"font.size": 20, "axes.facecolor": "red", "lines.linewidth": 9}):
            save_plots([tmp_path / "odd.svg"], rows, draw)
            assert mpl.rcParams["font.size"] == 20
        assert (tmp_path / "plain.svg").read_bytes() == (tmp_path / "odd.svg").read_bytes()

    def test_nothing_half_written(self, tmp_path: Path) -> None:
        target = tmp_path / "plot.svg"
        target.write_text("before")

        class Broken:
            def savefig(self, path: Path, **_: object) -> None:
                Path(path).write_text("half")
                raise OSError(28, "No space left on device")

        with pytest.raises(InputError, match="cannot be written: No space left"):
            save_figure(Broken(), target)  # type: ignore[arg-type]
        assert target.read_text() == "before"
        assert list(tmp_path.iterdir()) == [target]

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("x.txt", "a plot ends in .svg, .png, .pdf or .csv"),
            ("x", "a plot ends in"),
            ("no/x.svg", "no such folder"),
            ("folder.svg", "is a folder"),
        ],
    )
    def test_refused_before_the_work(self, name: str, message: str, tmp_path: Path) -> None:
        (tmp_path / "folder.svg").mkdir()
        with pytest.raises(InputError, match=message):
            plot_target(tmp_path / name)


def read_csv(name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(Path(name).read_text().splitlines()))


PROBLEM_TEXT = "gemm:m=60,n=48,k=64"


class TestCommands:
    @pytest.fixture(autouse=True)
    def _here(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("COLUMNS", "80")

    def test_search(self, capsys: pytest.CaptureFixture[str]) -> None:
        files = ["--plot", "r.svg", "--plot", "r.csv", "--plot-bytes", "b.png", "--plot-bytes",
                 "b.csv"]  # fmt: skip
        assert run(["search", PROBLEM_TEXT, "--top", "2", *files]) == 0
        assert Path("r.svg").read_bytes().startswith(b"<?xml")
        assert Path("b.png").read_bytes().startswith(b"\x89PNG")
        roofline = read_csv("r.csv")
        assert [row["label"] for row in roofline] == ["0.1", "0.1", "0.2", "0.2"]
        assert [row["level"] for row in roofline] == ["DRAM", "L2"] * 2
        # The two best schedules are compared in bytes.
        moved = read_csv("b.csv")
        assert {row["label"] for row in moved} == {"0.1", "0.2"}  # as in the table

    def test_an_interruption_leaves_what_is_done(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def one(*_: object, **__: object) -> Iterator[Any]:
            yield searched()[0]
            raise KeyboardInterrupt

        monkeypatch.setattr("loopsched.scheduler.search_workload", one)
        assert run(["search", "alexnet", "--plot", "r.csv", "--plot-bytes", "b.svg"]) == 130
        assert {row["problem"] for row in read_csv("r.csv")} == {searched()[0].problem.name}
        assert Path("b.svg").exists()

    @pytest.mark.parametrize(
        ("files", "message"),
        [
            (["--plot", "x.jpg"], "a plot ends in"),
            (["--plot", "x.svg", "--plot-bytes", "x.svg"], "x.svg: would be written twice"),
            (["--plot", "x.csv", "--out", "./x.csv"], "would be written twice"),
            (["--plot", "x.svg", "--plot", "no/x.svg"], "no such folder"),
        ],
    )
    def test_refused_before_the_search(
        self, files: list[str], message: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run(["search", PROBLEM_TEXT, *files]) == 3
        printed = capsys.readouterr()
        assert message in printed.err
        assert printed.out == ""
        assert not list(Path().iterdir())

    def test_csv_needs_no_matplotlib(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        assert run(["pareto", PROBLEM_TEXT, "--plot", "p.csv"]) == 0
        assert Path("p.csv").read_text().startswith("problem,capacity_bytes,time_s")
        assert run(["pareto", PROBLEM_TEXT, "--plot", "p.svg"]) == 1
        assert "the extra 'plot'" in capsys.readouterr().err

    def test_pareto(self, capsys: pytest.CaptureFixture[str]) -> None:
        command = ["pareto", PROBLEM_TEXT, "-c", "1 MiB", "-c", "128 KiB"]
        assert run([*command, "--format", "csv", "--plot", "p.pdf"]) == 0
        rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
        front = pareto(PROBLEM, ARCH, capacities_bytes=[2**20, 2**17])
        assert [int(row["dram_bytes"]) for row in rows] == [point.dram_bytes for point in front]
        assert run(command) == 0
        printed = capsys.readouterr().out
        assert "1.000 MiB" in printed or "128.0 KiB" in printed
        assert all(len(line) <= 80 for line in printed.splitlines())
        assert run(["pareto", PROBLEM_TEXT, "-c", "64"]) == 3

    def test_pareto_of_nothing(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr("loopsched.scheduler.tradeoffs.pareto", lambda *_, **__: ())
        assert run(["pareto", PROBLEM_TEXT, "--plot", "p.svg"]) == 4
        assert "no schedule of 'm60 n48 k64' fits" in capsys.readouterr().err
        assert not Path("p.svg").exists()

    def test_pareto_of_several(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["pareto", "alexnet", "-l", "1", "-l", "2", "--format", "csv", "-c",
                    "1 MiB"]) == 0  # fmt: skip
        rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
        assert len({row["problem"] for row in rows}) == 2

    def test_tiles(self, capsys: pytest.CaptureFixture[str]) -> None:
        command = ["tiles", PROBLEM_TEXT, str(NEST), "--dims", "M,N", "--steps", "24"]
        assert run([*command, "--format", "csv"]) == 0
        rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
        assert len(rows) == len(mapped().cells)
        assert [row["schedule"] for row in rows] == [str(cell.schedule) for cell in mapped().cells]
        assert run([*command, "--plot", "t.png"]) == 0
        assert Path("t.png").read_bytes().startswith(b"\x89PNG")
        printed = capsys.readouterr().out
        lines = printed.splitlines()
        assert all(len(line) <= 80 for line in lines)
        assert lines[0].split()[:3] == ["M", "\\", "N"]
        line = next(line for line in lines if line.split()[:1] == ["10"])
        assert line.count("*") == 1
        assert printed.count("<") == 2  # at the best sizes, and in the legend
        digits = {len(cell.rstrip("*<!").partition(".")[2]) for cell in line.split()[1:]}
        assert digits - {0} == {2}  # 0: does not fit
        score, best = evaluate(PROBLEM, NEST, ARCH), mapped().best().evaluation
        assert best is not None
        column = lines[0].split()[3:].index("12")
        assert line.split()[1 + column] == f"{score.time_s / best.time_s:.2f}*"

    def test_tiles_of_the_best_schedule(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["tiles", PROBLEM_TEXT, "--steps", "3", "-q", "dram_bytes"]) == 0
        assert "Promised DRAM traffic with tiles of" in capsys.readouterr().out
        assert run(["tiles", "alexnet"]) == 3
        assert "8 problems, but one is needed" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("dims", "message"),
        [
            ("M,Q", "dims: no loop of 'Q'; allowed: M N K"),
            ("X:8,Y", "dims: 2 errors\n  no loop of 'X:8'; allowed: M N K\n  no loop of 'Y'; "),
            ("M", "dims is M; two dimensions that are longer than 1 are needed"),
            ("M,m:4", "dims: 'M' is given twice; two dimensions are needed"),
        ],
    )
    def test_dims_are_refused_before_the_search(
        self,
        dims: str,
        message: str,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr("loopsched.scheduler.search", None)
        assert run(["tiles", PROBLEM_TEXT, "--dims", dims]) == 3
        assert capsys.readouterr().err.startswith(f"Error: {message}")

    def test_sensitivity(self, capsys: pytest.CaptureFixture[str]) -> None:
        command = ["sensitivity", PROBLEM_TEXT, "-v", "dram.bandwidth=2"]
        assert run([*command, "--plot", "t.csv", "--plot", "t.svg"]) == 0
        rows = read_csv("t.csv")
        assert {row["parameter"] for row in rows} == {"DRAM.bandwidth"}
        assert Path("t.svg").exists()
