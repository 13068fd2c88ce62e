"""A page of a kernel's space: estimates over tiles, what is chosen, what may be best, and why."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

from loopsched.base.errors import InputError
from loopsched.base.units import amount
from loopsched.show.page.shell import page_html, text_of
from loopsched.show.plots.style import decimal

if TYPE_CHECKING:
    from loopsched.gpu.choice.pick import Choice, Pick

# Choices that are listed with their reasons; shades of the map, by their estimate over the best.
_MOST_LISTED = 40
_SHADES = (1.02, 1.1, 1.3, 2.0, 4.0)
_WIDTH, _HEIGHT, _LEFT, _BELOW = 560.0, 260.0, 74.0, 30.0
# Between a number and its unit, and a parameter and its value: no line ends there.
_FIXED = "\N{NO-BREAK SPACE}"


_TILES = (
    "Over all other parameters. Ringed: the first choice; with a dot: tiles of the set that may "
    "hold the fastest."
)
_LINES = (
    "Estimate (line), 80 % interval (band), lower bound (dashes); filled to the left: the "
    "set that may hold the fastest."
)


def space_html(picks: Sequence[Pick]) -> str:
    """Make a page of what was picked from: one file of HTML without scripts.

    It is the same for the same arguments.

    Parameters
    ----------
    picks : sequence of Pick
        At least one; with all choices, and reasons if they are to be shown.

    Examples
    --------
    >>> from loopsched import gemm, load_arch, pick
    >>> found = pick(gemm(m=512, n=512, k=512), load_arch("h200"), explain=True)
    >>> page = space_html([found])
    >>> page.startswith("<!doctype html>"), "<script" in page
    (True, False)
    """
    if not picks:
        raise InputError("a page of spaces needs at least one choice")
    style = text_of("page.css") + text_of("space.css")
    kernels = " and ".join(dict.fromkeys(one.kernel for one in picks))
    spaces = "\n".join(_section(one, at) for at, one in enumerate(picks))
    return page_html("space.html", style, f"{kernels} on {picks[0].arch}", {"spaces": spaces})


def _section(found: Pick, at: int) -> str:
    best = found.best
    names = list(best.configuration)
    tile = [name for name in ("block_m", "block_n") if name in names] or names[:2]
    unable = "sizes or shared memory forbid it" if found.n_infeasible else "all of them run"
    facts = (
        ("first choice", _us(best.estimate_us), _configuration(best)),
        ("80 % interval", f"{_us(best.low_us)} to {_us(best.high_us)}", "of the first choice"),
        ("lower bound", _us(best.cold_us), "from a cold L2; arithmetic, DRAM at their peaks"),
        ("may be best", f"{found.n_may_be_best}", f"of {found.n_configurations} configurations"),
        ("cannot run", f"{found.n_infeasible}", unable),
    )
    tiles = "".join(
        f'<div class="tile"><dt>{escape(name)}</dt><dd><span class="value">{escape(value)}</span>'
        f'<span class="change">{escape(more)}</span></dd></div>'
        for name, value, more in facts
    )
    return f"""<section aria-labelledby="s{at}">
<h2 id="s{at}">{escape(found.heading).replace("+", "+<wbr>")}, {escape(found.data_type)}</h2>
<p class="soft small">{_whole(found.warning)}</p>
<dl class="tiles">{tiles}</dl>
<div class="pair">
<div class="panel"><h3>Best estimate of each tile</h3>
<p class="soft small">{_TILES}</p>
<div class="scroll">{_map(found, tile)}</div></div>
<div class="panel"><h3>All configurations, the best first</h3>
<p class="soft small">{_LINES}</p>
{_curve(found)}</div>
</div>
<div class="panel"><h3>Choices and reasons</h3>
<p class="soft small">With a dot: of the set that may hold the fastest.</p>
<div class="scroll">{_table(found)}</div></div>
</section>"""


def _us(value: float) -> str:
    return amount(value * 1e-6, "s").replace(" ", _FIXED)


def _whole(text: str) -> str:
    """Write a text whose numbers stay with what they count, and options with their hyphens."""
    kept = re.sub(r"(?<=\d) (?=[a-z])", _FIXED, escape(text))
    return re.sub(r"--[a-z]+", r'<span class="word">\g<0></span>', kept)


def _configuration(one: Choice) -> str:
    return ", ".join(f"{name}{_FIXED}{value}" for name, value in one.configuration.items())


def _shade(ratio: float) -> int:
    return sum(ratio > limit for limit in _SHADES)


def _map(found: Pick, tile: Sequence[str]) -> str:
    """Draw a table of the first parameter down and the second across, the best of each cell."""
    cells: dict[tuple[int, ...], Choice] = {}
    may_be_best = set()
    for one in found.choices:  # the best first
        place = tuple(one.configuration[name] for name in tile)
        cells.setdefault(place, one)
        if one.may_be_best:
            may_be_best.add(place)
    down, across = (sorted({place[at] for place in cells}) for at in (0, 1))
    best = found.best
    chosen = tuple(best.configuration[name] for name in tile)

    def cell(place: tuple[int, int]) -> str:
        one = cells.get(place)
        if one is None:
            return '<td class="none">-</td>'
        ratio = one.estimate_us / best.estimate_us
        mark = " &#9679;" if place in may_be_best else ""
        words = f"{_us(one.estimate_us)}, {ratio:.2f} times the first; bound by {one.bound_by}; "
        title = escape(words + _configuration(one), quote=True)
        ring = " chosen" if place == chosen else ""
        return f'<td class="h{_shade(ratio)}{ring}" title="{title}">{ratio:.2f}{mark}</td>'

    head = "".join(f'<th scope="col" class="number">{one}</th>' for one in across)
    lines = "".join(
        f'<tr><th scope="row" class="number">{row}</th>'
        + "".join(cell((row, column)) for column in across)
        + "</tr>"
        for row in down
    )
    names = f"{escape(tile[0])} down, {escape(tile[1])} across; times the first choice's estimate"
    if len(cells) < len(down) * len(across):
        names += "; -: no configuration that runs"
    return (
        f'<table class="map"><caption class="soft small">{names}</caption>'
        f"<thead><tr><td></td>{head}</tr></thead><tbody>{lines}</tbody></table>"
    )


def _curve(found: Pick) -> str:
    """Draw estimates in order, on a logarithmic scale, with their intervals."""
    every = found.choices
    low = math.log(min(found.best.cold_us, min(one.low_us for one in every)))
    high = math.log(max(one.high_us for one in every)) + 0.02
    step = (_WIDTH - _LEFT) / max(len(every) - 1, 1)

    def place(at: int, value: float) -> str:
        y = (_HEIGHT - _BELOW) * (high - math.log(value)) / (high - low)
        return f"{_LEFT + at * step:.1f},{y:.1f}"

    def line(of: Callable[[Choice], float]) -> list[str]:
        return [place(at, of(one)) for at, one in enumerate(every)]

    upper, lower = line(lambda one: one.high_us), line(lambda one: one.low_us)
    estimates = line(lambda one: one.estimate_us)
    bound = line(lambda one: one.cold_us)
    set_end = _LEFT + max(found.n_may_be_best - 1, 0) * step
    said = (
        f"Estimates of {len(every)} configurations, from {_us(found.best.estimate_us)} to "
        f"{_us(every[-1].estimate_us)}; {found.n_may_be_best} may be best."
    )
    marks = "".join(_ticks(low, high))
    wide, high_to = max(set_end - _LEFT, 2), _HEIGHT - _BELOW
    return f"""<svg viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" class="curve" role="img"
 aria-label="{escape(said, quote=True)}">
<rect class="set" x="{_LEFT:g}" y="0" width="{wide:.1f}" height="{high_to:g}"/>
{marks}<polygon class="band" points="{" ".join([*upper, *reversed(lower)])}"/>
<polyline class="bound" points="{" ".join(bound)}"/>
<polyline class="estimate" points="{" ".join(estimates)}"/>
<text x="{_LEFT:g}" y="{_HEIGHT - 6:g}">1</text>
<text x="{(_LEFT + _WIDTH) / 2:g}" y="{_HEIGHT - 6:g}" text-anchor="middle">configurations</text>
<text x="{_WIDTH:g}" y="{_HEIGHT - 6:g}" text-anchor="end">{len(every)}</text>
</svg>"""


def _ticks(low: float, high: float) -> Iterator[str]:
    """Mark powers of ten times 1, 2 and 5 microseconds, or finer where these are few."""
    exponents = range(math.floor(low / math.log(10)), math.ceil(high / math.log(10)) + 1)
    for factors in (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 6, 8), [n / 10 for n in range(10, 100)]:
        marks = [factor * 10.0**power for power in exponents for factor in factors]
        marks = [value for value in marks if low <= math.log(value) <= high]
        if len(marks) > 1:
            break
    for value in marks:
        y = (_HEIGHT - _BELOW) * (high - math.log(value)) / (high - low)
        yield f'<line class="grid" x1="{_LEFT:g}" x2="{_WIDTH:g}" y1="{y:.1f}" y2="{y:.1f}"/>'
        tick = decimal(value * 1e-6, "s")
        yield f'<text x="{_LEFT - 6:g}" y="{y + 4:.1f}" text-anchor="end">{tick}</text>'


def _table(found: Pick) -> str:
    """List the first choices: configuration, estimate, and what sets each apart."""
    listed = found.choices[:_MOST_LISTED]
    lines = []
    for at, one in enumerate(listed):
        dot = "&#9679;" if one.may_be_best else ""
        why = f'<br><span class="soft small">{_whole(one.why)}</span>' if one.why else ""
        interval = f"{_us(one.low_us)} to {_us(one.high_us)}"
        lines.append(
            f'<tr><td class="number">{at + 1}</td><td>{dot}</td>'
            f"<td>{escape(_configuration(one))}{why}</td>"
            f'<td class="number">{_us(one.estimate_us)}<br><span class="soft small">{interval}'
            f"</span></td><td>{escape(one.bound_by)}</td></tr>"
        )
    left = len(found.choices) - len(listed)
    unseen = (
        (left, "more are not listed."),
        (found.n_alike, "differ from others in group_m alone and take as long."),
    )
    notes = " ".join(f"{many} {why}" for many, why in unseen if many)
    more = f'<p class="soft small">{notes}</p>' if notes else ""
    return (
        '<table class="choices"><thead><tr><th class="number">#</th>'
        '<th><span class="unseen">may be best</span></th><th>configuration</th>'
        '<th class="number">estimate</th><th>bound by</th></tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table>{more}"
    )
