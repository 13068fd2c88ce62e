"""The page of a space: what its map, curve and table show, against the choices themselves."""

from __future__ import annotations

import base64
import hashlib
import math
import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest

from loopsched import Attention, Grouped, conv2d, gemm, load_arch, pick
from loopsched.base.errors import InputError
from loopsched.cli import run
from loopsched.gpu.choice.pick import Pick
from loopsched.show.page.space import _ticks, space_html

H100 = load_arch("h100")


@pytest.fixture(scope="module")
def found() -> Pick:
    return pick(gemm(m=512, n=1536, k=1024), H100, explain=True)


def cells(page: str) -> dict[tuple[int, int], tuple[str, str, str]]:
    """Read the map: classes, title and text of each cell by its row and column."""
    table = re.search(r'<table class="map">(.*?)</table>', page, re.DOTALL)
    assert table
    across = [int(one) for one in re.findall(r'scope="col" class="number">(\d+)<', table[1])]
    read = {}
    for row, rest in re.findall(r'scope="row" class="number">(\d+)</th>(.*?)</tr>', table[1]):
        parts = re.findall(r'<td class="([^"]*)"(?: title="([^"]*)")?>(.*?)</td>', rest)
        assert len(parts) == len(across)
        read |= {(int(row), n): part for n, part in zip(across, parts, strict=True)}
    return read


def test_each_cell_of_the_map_is_the_best_of_its_tile(found: Pick) -> None:
    read = cells(space_html([found]))
    assert len(read) == 20
    first = found.best
    for (m, n), (classes, title, text) in read.items():
        of_tile = [
            one for one in found.choices
            if (one.configuration["block_m"], one.configuration["block_n"]) == (m, n)
        ]  # fmt: skip
        if not of_tile:
            assert (classes, text) == ("none", "-")
            continue
        least = min(one.estimate_us for one in of_tile)
        assert text.startswith(f"{least / first.estimate_us:.2f}")
        assert ("&#9679;" in text) == any(one.may_be_best for one in of_tile)
        assert f"stages {of_tile[0].configuration['stages']}" in title.replace(
            "\N{NO-BREAK SPACE}", " "
        )
    chosen = [place for place, (classes, _, _) in read.items() if "chosen" in classes.split()]
    assert chosen == [(first.configuration["block_m"], first.configuration["block_n"])]


def test_a_tile_that_cannot_run_is_explained_where_there_is_one(found: Pick) -> None:
    told = "; -: no configuration that runs"
    page = space_html([found])
    assert told in page
    space = [{"block_m": 64, "block_n": 64, "block_k": 32, "stages": 2, "warps": 4, "group_m": 8}]
    assert told not in space_html([pick(gemm(m=64, n=64, k=64), H100, space=space)])


def test_shades_follow_the_estimate(found: Pick) -> None:
    shades = sorted(
        (float(text.split()[0]), int(classes.split()[0][1:]))
        for classes, _, text in cells(space_html([found])).values()
        if classes != "none"
    )
    assert shades[0] == (1.0, 0)
    assert [shade for _, shade in shades] == sorted(shade for _, shade in shades)
    for ratio, shade in shades:
        expected = sum(ratio > limit for limit in (1.02, 1.1, 1.3, 2.0, 4.0))
        assert shade == expected or min(abs(ratio - one) for one in (1.02, 1.1, 1.3, 2, 4)) < 0.006


def points(page: str, what: str) -> list[tuple[float, float]]:
    text = re.search(rf'class="{what}" points="([^"]*)"', page)
    assert text
    return [(float(x), float(y)) for x, y in (one.split(",") for one in text[1].split())]


def test_the_curve_has_a_point_for_each_configuration(found: Pick) -> None:
    page = space_html([found])
    estimates, bound, band = (points(page, one) for one in ("estimate", "bound", "band"))
    n = len(found.choices)
    assert (len(estimates), len(bound), len(band)) == (n, n, 2 * n)
    # Downwards is less; to the right is later in order.
    assert [y for _, y in estimates] == sorted((y for _, y in estimates), reverse=True)
    assert [x for x, _ in estimates] == sorted(x for x, _ in estimates)
    for at in range(n):
        upper, lower = band[at][1], band[2 * n - 1 - at][1]
        assert upper <= estimates[at][1] <= lower <= bound[at][1] + 0.11
    # Equal ratios are equal distances: of estimates, and of the grid's lines.
    scale = (estimates[0][1] - estimates[-1][1]) / math.log(
        found.choices[-1].estimate_us / found.best.estimate_us
    )
    heights = [float(one) for one in re.findall(r'<line class="grid".*?y1="([\d.]+)"', page)]
    units = {"ns": 1e-3, "\N{MICRO SIGN}s": 1.0, "ms": 1e3}
    labels = re.findall(r'text-anchor="end">([\d.]+) (\w+)<', page)
    values = [float(number) * units[unit] for number, unit in labels]
    assert len(heights) == len(values) >= 2
    for height, value in zip(heights, values, strict=True):
        wanted = estimates[0][1] - scale * math.log(value / found.best.estimate_us)
        assert height == pytest.approx(wanted, abs=0.2)


@pytest.mark.parametrize(("low", "high"), [(0.3, 30.0), (1100.0, 4900.0), (2.1, 4.2), (6.1, 7.9)])
def test_every_range_has_marks_that_fit_beside_it(low: float, high: float) -> None:
    labels = re.findall(r">([^<]+)</text>", "".join(_ticks(math.log(low), math.log(high))))
    assert 2 <= len(labels) <= 20
    # A phone has room for some seven letters.
    assert all(len(one) <= 7 for one in labels)


def test_the_set_is_as_wide_as_it_is_large(found: Pick) -> None:
    page = space_html([found])
    width = re.search(r'<rect class="set" x="([\d.]+)".*?width="([\d.]+)"', page)
    assert width
    place, _ = points(page, "estimate")[found.n_may_be_best - 1]
    assert float(width[1]) + float(width[2]) == pytest.approx(place, abs=0.2)


def test_the_axis_of_the_curve_says_what_it_counts(found: Pick) -> None:
    assert 'text-anchor="middle">configurations</text>' in space_html([found])


def test_nothing_is_said_to_forbid_what_all_can_run(found: Pick) -> None:
    assert "forbid it" in space_html([replace(found, n_infeasible=1)])
    page = space_html([replace(found, n_infeasible=0)])
    assert "all of them run" in page
    assert "forbid it" not in page


def test_lines_end_between_what_belongs_together_nowhere(found: Pick) -> None:
    """Neither between a number and its unit, a parameter and its value, nor within a size."""
    page = unescape(space_html([replace(found, problem="512x64x64+1024x64x64")]))
    assert '<h2 id="s0">512x64x64+<wbr>1024x64x64, ' in page
    shown = " ".join(re.findall(r">([^<]*)<", re.sub(r"<svg.*?</svg>", "", page, flags=re.S)))
    assert not re.findall(r"block_\w \d|stages \d|\d [num\N{MICRO SIGN}]?s\b", shown)
    assert not re.findall(r"\d (?:waves|blocks?|times)", shown)
    warned = space_html([replace(found, unaligned=("c=3",))])
    assert 'as <span class="word">--emit</span> does' in warned


def test_choices_are_listed_with_their_reasons(found: Pick) -> None:
    page = unescape(space_html([found])).replace("\N{NO-BREAK SPACE}", " ")
    assert all(one.why in page for one in found.choices[:40])
    assert f"{len(found.choices) - 40} more are not listed." in page
    few = replace(found, choices=found.choices[:3])
    assert "not listed" not in space_html([few])


def test_nothing_runs_and_nothing_is_fetched(found: Pick) -> None:
    odd = replace(found, problem='<b>&"x"', arch="{{style}}")
    page = space_html([odd])
    assert "&lt;b&gt;&amp;&quot;x&quot;" in page
    assert "<h1>triton_gemm on {{style}}</h1>" in page
    assert not re.search(r"<script|src=|@import|url\(", page)
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)
    assert style
    allowed = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert f"style-src 'sha256-{allowed}'" in page
    assert 'style="' not in page


def test_other_kernels_are_laid_out_by_their_first_parameters() -> None:
    image = conv2d(n=1, c=1, k=1, h=256, w=256, r=5, s=5)
    found = pick(image, load_arch("a4000"), kernel="filter")
    read = cells(space_html([found]))
    first = found.best.configuration
    assert "chosen" in read[first["block_size_x"], first["block_size_y"]][0]
    names = ("block_m", "block_n", "block_k", "stages", "warps", "group_m")
    space = [dict(zip(names, (64, 64, 32, 3, 4, 8), strict=True))]
    one = pick(gemm(m=64, n=64, k=64), H100, space=space)
    assert list(cells(space_html([one]))) == [(64, 64)]
    both = space_html([one, found])
    assert "<h1>triton_gemm and filter on h100</h1>" in both
    assert both.count("<section") == 2
    assert '<h2 id="s0">m64 n64 k64, fp16</h2>' in both
    with pytest.raises(InputError, match="at least one choice"):
        space_html([])


def test_headings_name_the_sizes_of_attentions_and_groups() -> None:
    decode = Attention.named("8x32x1:8192x128x0x8")
    for asked, heading in (
        (decode, "attention: batch 8; 32 heads, 8 key/value heads; 1 query, 8,192 keys; "
         "head size 128; no mask"),
        (replace(decode, name="mine"), "mine"),
        (Grouped.named("128x512x64+16x512x64"), "grouped 128x512x64+<wbr>16x512x64"),
    ):  # fmt: skip
        page = space_html([pick(asked, H100)])
        assert f'<h2 id="s0">{heading}, fp16</h2>' in page


def test_the_command_writes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "space.html"
    product = "gemm:m=512,n=1536,k=1024"
    assert run(["pick", product, "--top", "1", "-o", str(file)]) == 0
    assert capsys.readouterr().err.startswith(f"wrote {file}: 720 configurations, ")
    assert file.read_text() == space_html([pick(gemm(m=512, n=1536, k=1024), H100, explain=True)])
    for more, said in (
        (["-o", "space.txt"], "--output FILE.html writes a page"),
        (["-o", str(file), "--dispatch", "64"], "--output and --dispatch exclude each other"),
    ):
        assert run(["pick", product, *more]) == 2
        assert said in capsys.readouterr().err
    assert run(["pick", product, "-o", str(tmp_path / "none/space.html")]) == 3
    assert "no such folder" in capsys.readouterr().err


def test_what_is_left_out_is_counted(found: Pick) -> None:
    assert f"{found.n_alike} differ from others in group_m alone" in space_html([found])
    few = pick(gemm(m=512, n=1536, k=1024), H100, top=5)
    assert few.n_alike == found.n_alike > 0
    assert "not listed" not in space_html([few])
    conv = pick(conv2d(n=8, c=64, k=64, h=28, w=28, r=3, s=3, padding=1), H100)
    assert "differ from others" not in space_html([conv])
