"""Options that several commands share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import combinations
from typing import TYPE_CHECKING, Any, get_args

import click

from loopsched.cli.output import Style

if TYPE_CHECKING:
    from loopsched.scheduler.constraints import Constraints

Command = Callable[..., Any]

form = click.option(
    "--format",
    "form",
    type=click.Choice(get_args(Style)),
    default="table",
    show_default=True,
    help="A table for people, or rows for programs.",
)
arch = click.option(
    "--arch",
    "-a",
    default="titan_v",
    show_default=True,
    metavar="NAME|FILE",
    help="Machine: see 'loopsched archs'.",
)
layers = click.option(
    "--layer",
    "-l",
    "layers",
    multiple=True,
    metavar="NUMBER|NAME",
    help="Only this problem of the workload; may be repeated.",
)
element_bytes = click.option(
    "--element-bytes",
    type=click.IntRange(1, 1024),
    metavar="N",
    help="Size of an element of every tensor, whatever the workload says.",
)
dialect = click.option(
    "--dialect",
    type=click.Choice(["loopsched", "yalsa"]),
    default="loopsched",
    show_default=True,
    help="Letters of the schedule's dimensions.",
)


def _together(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Make one decorator of several options, shown in this order."""

    def decorate(command: Command) -> Command:
        return reduce(lambda inner, option: option(inner), reversed(options), command)

    return decorate


_OBJECTIVES = ("time", "dram_bytes", "energy", "edp")
_STRATEGIES = ("exact", "exhaustive", "random", "local")
_VALUES = ("high", "point", "low")

goal = _together(
    click.option(
        "--objective",
        "-o",
        type=click.Choice(_OBJECTIVES),
        default="time",
        show_default=True,
        help="What to make small; edp: energy times time.",
    ),
    click.option(
        "--strategy",
        "-s",
        type=click.Choice(_STRATEGIES),
        default="exact",
        show_default=True,
        help="Only exact and exhaustive prove that nothing is better.",
    ),
    click.option(
        "--value",
        type=click.Choice(_VALUES),
        default="high",
        show_default=True,
        help="Traffic to go by: promised, likely or least.",
    ),
    click.option("--seed", type=int, default=0, show_default=True, help="Of random and local."),
    click.option(
        "--samples",
        type=click.IntRange(1),
        default=1000,
        show_default=True,
        metavar="N",
        help="Schedules that random and local score.",
    ),
)


def goal_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Pick the keyword arguments of a search out of a command's options."""
    return {name: given[name] for name in ("objective", "strategy", "value", "seed", "samples")}


constraints = _together(
    click.option(
        "--tiles",
        type=click.Choice(["all", "divisors", "powers2"]),
        default="all",
        show_default=True,
        help="Tile sizes to try.",
    ),
    click.option(
        "--fix",
        multiple=True,
        metavar="DIM@LEVEL=N",
        help="Tile size of a dimension, as in M@L2=128; may be repeated.",
    ),
    click.option(
        "--max",
        "at_most",
        multiple=True,
        metavar="DIM@LEVEL=N",
        help="Largest tile size there; may be repeated.",
    ),
    click.option(
        "--spatial", metavar="DIMS", help="Dimensions that instances may share, as in K,P; or none."
    ),
    click.option("--order", metavar="DIMS", help="These loops in this order, outermost first."),
    click.option(
        "--prefix", metavar="LOOPS", help="Outermost loops, such as 'M:1024@SM N:1024@SM'."
    ),
)

_BOUND = re.compile(r"([^@=\s]+)@([^@=\s]+)=([0-9]{1,18})")


def constraints_of(given: Mapping[str, Any]) -> Constraints:
    """Build the constraints of a search from a command's options.

    Examples
    --------
    >>> given = {"tiles": "all", "fix": ("M@L2=128",), "at_most": (), "spatial": "none"}
    >>> found = constraints_of(given | {"order": "M,K", "prefix": None})
    >>> found.extents, found.spatial, found.before
    ((('M', 'L2', 128, 128),), (), (('M', 'K'),))
    """
    from loopsched.scheduler.constraints import Constraints

    exact = [(dim, block, n, n) for dim, block, n in _bounds("--fix", given["fix"])]
    upper = [(dim, block, 1, n) for dim, block, n in _bounds("--max", given["at_most"])]
    return Constraints(
        tiles=given["tiles"],
        extents=(*exact, *upper),
        spatial=_spatial(given["spatial"]),
        before=tuple(combinations(_names(given["order"]), 2)),
        prefix=given["prefix"] or "",
    )


def _bounds(option: str, texts: Sequence[str]) -> Iterator[tuple[str, str, int]]:
    for text in texts:
        match = _BOUND.fullmatch(text)
        if match is None:
            raise click.BadParameter(f"'{text}' is not DIM@LEVEL=N, such as M@L2=128 ({option})")
        yield match[1], match[2], int(match[3])


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(filter(None, re.split(r"[\s,]+", text or "")))


def _spatial(text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    return () if text.strip().lower() == "none" else _names(text)
