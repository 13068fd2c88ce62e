"""``simulate``: a schedule replayed through caches, access by access."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

from loopsched.base.errors import InputError
from loopsched.base.rows import picked
from loopsched.base.units import format_capacity, percent, scaled
from loopsched.cli import options, output
from loopsched.cli.inputs import Inputs
from loopsched.cli.output import Style
from loopsched.show.table import Column, words

if TYPE_CHECKING:
    from loopsched.base.rows import Row
    from loopsched.nests.nest import Schedule
    from loopsched.problems.problem import Problem
    from loopsched.simulator import Layout, LevelCounts

_EPILOG = """\b
loopsched simulate gemm:m=64,n=64,k=64 'M:64 N:64 K:64 M:8' --capacity '4 KiB'
loopsched simulate gemm:m=64,n=64,k=64 'M:64 N:64 K:64' -c 1KiB -c 64KiB
loopsched simulate resnet50 -l 3 @nest.txt -c 32KiB --line 64B --ways 8 \\
    --layout NHWC
loopsched simulate gemm:m=512,n=512,k=512 --arch titan_v \\
    'M:512@SM N:512@SM K:512 M:64 N:64'
"""

# Accesses a second that any machine of today manages, to warn before long work.
_CACHE_RATE, _SYSTEM_RATE = 5e7, 1e7
_PATIENCE_S = 60


@click.command(epilog=_EPILOG)
@options.inputs("problem", schedule=True, has_arch=False)
@options.many(
    "--capacity",
    "-c",
    "capacities",
    metavar="SIZE",
    meaning="Size of a single cache between DRAM and the loops; if repeated, each size is a "
    "replay of its own.",
)
@options.arch_of(None, "Instead of --capacity: all caches of a machine.")
@options.size("--line", meaning="Line size; by default single elements move.")
@options.count("--ways", meaning="With --capacity: lines per set; fully associative by default.")
@options.choice(
    "--policy",
    of=["lru", "random", "belady"],
    meaning="With --capacity: replacement policy; belady evicts the data reused furthest in the "
    "future.",
)
@options.choice(
    "--write-policy",
    of=["back", "through"],
    meaning="With --capacity: write on eviction (back) or at once (through).",
)
@options.layouts("[TENSOR=]AXES", "Without TENSOR=, the order of all tensors.")
@options.size("--align", default="256 B", meaning="Alignment of tensors.")
@options.many(
    "--instances",
    metavar="[UNIT=]N",
    meaning="With --capacity: work items that share the cache in lock step; may be repeated.",
)
@options.choice(
    "--granularity",
    "-g",
    of=["element", "tile"],
    meaning="Replay single elements, or whole tiles, which is faster, but knows no lines, layouts, "
    "--warm or --no-flush, and no caches but LRU ones, each of which sees all accesses.",
)
@options.choice(
    "--sees",
    of=["misses", "all"],
    meaning="With --arch, of single elements: outer levels see only the misses of inner levels, or "
    "all accesses, as 'at least' and 'at most' of 'analyze' assume.",
)
@click.option(
    "--warm", is_flag=True, help="With --arch: private caches keep their data between work items."
)
@click.option("--no-flush", is_flag=True, help="Do not count the final write-back.")
@options.seed("Random seed of --policy random.")
@options.form
def simulate(
    inputs: Inputs,
    capacities: tuple[str, ...],
    arch: str | None,
    line: str | None,
    form: Style,
    **given: Any,
) -> None:
    """Replay SCHEDULE of PROBLEM through caches, access by access.

    Give --capacity or --arch.
    PROBLEM is a workload with --layer, or a problem such as gemm:m=4,n=3,k=2.
    SCHEDULE is text or @FILE.
    """
    if capacities and arch is not None:
        raise click.UsageError("give --capacity or --arch, not both")
    if not capacities and arch is None:
        raise click.UsageError("give --capacity (once or more), or --arch")
    _refuse_ignored(arch is not None, given)
    one, nest = inputs.problem, inputs.schedule
    common = given | {
        "line_bytes": None if line is None else options.size_of("--line", line),
        "layouts": _layouts(given["layouts"], given.pop("align")),
        "instances": _instances(given["instances"]),
        "flush": not given.pop("no_flush"),
    }
    sizes = [options.size_of("--capacity", capacity) for capacity in capacities]
    found = _simulated(one, nest, sizes, arch, common)
    if form == "table":
        _show(one, nest, arch, found)
        return
    head: Row = {"problem": one.name, "arch": arch, "schedule": str(nest)}
    head |= {name: common[name] for name in ("policy", "granularity", "line_bytes", "ways")}
    output.print_rows((head | row for level in found for row in _rows(level)), form)


def _refuse_ignored(is_machine: bool, given: Mapping[str, Any]) -> None:
    """Refuse options that belong to another kind of replay."""
    if is_machine:
        options.refuse(options.stated("policy"), "only with --capacity; a machine's caches are LRU")
        own = options.stated("ways", "write_policy", "instances", "seed")
        options.refuse(own, "only with --capacity")
    else:
        options.refuse(options.stated("sees", "warm"), "only with --arch")
    if given["granularity"] == "tile":
        one_by_one = ("line", "ways", "policy", "write_policy", "layouts", "align", "warm", "sees")
        options.refuse(
            options.stated(*one_by_one, "no_flush"),
            "to --granularity tile, which moves whole tiles through LRU caches and counts the "
            "final write-back",
        )
    if given["policy"] != "random":
        options.refuse(options.stated("seed"), "only to --policy random")


def _simulated(
    problem: Problem, nest: Schedule, sizes: Sequence[int], arch: str | None, common: dict[str, Any]
) -> list[LevelCounts]:
    from loopsched.machines.arch_file import load_arch
    from loopsched.simulator import Cache, Caches, stack_distances
    from loopsched.simulator import simulate as replay

    machine = None if arch is None else load_arch(arch)
    targets: list[dict[str, Any]] = [{"capacity_bytes": size} for size in sizes]
    targets = targets or [{"arch": machine}]
    how: dict[str, Any] = {name: common[name] for name in ("layouts", "granularity", "flush")}
    defaults = {one.name: one.default for kind in (Cache, Caches) for one in fields(kind)}
    fitted = {name: value for name, value in common.items() if value != defaults.get(name, value)}
    shared = {name: common[name] for name in ("line_bytes", "layouts", "instances")}
    is_quick = how["granularity"] == "tile"
    one_pass = {"line_bytes", "instances", "seed"}
    is_once = len(sizes) > 1 and not is_quick and fitted.keys() <= one_pass
    rate = _SYSTEM_RATE if is_once or machine is not None else _CACHE_RATE
    with _Waiting(rate, is_quick=is_quick) as waiting:
        if is_once:
            for size in sizes:
                with InputError.at("simulate"):
                    Cache(size, common["line_bytes"])
            passed = stack_distances(problem, nest, **shared, progress=waiting.tell)
            return [passed.traffic(size, flush=how["flush"]) for size in sizes]
        how |= fitted | {"progress": waiting.tell}
        return [level for each in targets for level in replay(problem, nest, **each, **how).levels]


def _layouts(given: Sequence[str], align: str) -> dict[str, Layout] | Layout | None:
    """Read layouts: one for all tensors, or one each.

    Examples
    --------
    >>> _layouts(["A=KM"], "64 B")["A"].axes
    ('K', 'M')
    >>> _layouts(["NHWC"], "64 B").align_bytes
    64
    """
    from loopsched.simulator import Layout

    bytes_ = options.size_of("--align", align)
    if not given:
        layout = Layout(align_bytes=bytes_)
        return None if layout == Layout() else layout
    found: dict[str, Layout] = {}
    for text in given:
        name, equals, axes = text.partition("=")
        if not equals and len(given) == 1:
            return Layout.parse(text, align_bytes=bytes_)
        if not equals or name.strip() in found:
            what = f"of '{name.strip()}' is given twice" if equals else "names no tensor"
            raise InputError(f"layout '{text}' {what}; write TENSOR=AXES once per tensor")
        found[name.strip()] = Layout.parse(axes, align_bytes=bytes_)
    return found


def _instances(given: Sequence[str]) -> dict[str, int] | int | None:
    """Read how many instances share a cache.

    Examples
    --------
    >>> _instances(["132"]), _instances(["SM=4", "lane=8"])
    (132, {'SM': 4, 'lane': 8})
    """
    found: dict[str, int] = {}
    for text in given:
        unit, _, many = text.rpartition("=")
        if not many.strip().isdecimal() or len(many) > 9 or (not unit and len(given) > 1):
            raise InputError(f"instances '{text}' is not N, or UNIT=N once per unit")
        if not unit:
            return int(many)
        found[unit.strip()] = int(many)
    return found or None


class _Waiting(output.Progress):
    """Tells a person how long it will take; and anybody, if it takes minutes."""

    def __init__(self, rate: float, *, is_quick: bool) -> None:
        super().__init__(1)
        self._rate, self._is_quick = rate, is_quick
        self._began = self._told = time.monotonic()
        self._is_warned = False

    @property
    def tell(self) -> Callable[[int, int], None] | None:
        """What to call with accesses done and accesses in all."""
        return None if self._is_quick else self._tell

    def _tell(self, done: int, total: int) -> None:
        if not self._is_warned:
            self._is_warned = True
            if (most_s := total / self._rate) > _PATIENCE_S:
                most = f"{scaled(most_s / 3600)} h" if most_s > 3600 else f"{most_s / 60:.0f} min"
                click.echo(
                    f"{scaled(total)} accesses, up to {most} at {self._rate / 1e6:.0f} million per "
                    "second; Ctrl-C stops it, --granularity tile is much faster",
                    err=True,
                )
        now = time.monotonic()
        if now - self._told >= 1:
            self._told = now
            left = scaled((now - self._began) * (total / max(1, done) - 1), "s")
            self._show(f"{percent(done / total)} of {scaled(total)} accesses, {left} left")


_NUMBERS = ("accesses", "hits", "misses", "write_backs", "read_bytes", "write_bytes")


def _rows(level: LevelCounts) -> Iterator[Row]:
    """Describe a level by plain values: the sums, then every tensor."""
    head: Row = {"level": level.name, "outer": level.outer, "capacity_bytes": level.capacity_bytes}
    head |= {"instances": level.instances}
    for name, counts in (("all", level), *level.tensors.items()):
        yield head | {"tensor": name} | picked(counts, *_NUMBERS)


_whole = "{:,}".format
_COLUMNS = (
    words("boundary", lambda row: f"{row['outer']} - {row['level']}" if _is_sum(row) else ""),
    Column("capacity", lambda row: _capacity(row) if _is_sum(row) else ""),
    words("tensor", "tensor"),
    Column("accesses", "accesses", _whole, spare=2),
    Column("hits", lambda row: row["hits"] / row["accesses"] if row["accesses"] else 1.0, "%"),
    Column("misses", "misses", _whole, spare=1),
    Column("written back", "write_backs", _whole, spare=3),
    Column("read", "read_bytes", "B"),
    Column("written", "write_bytes", "B"),
)


def _is_sum(row: Row) -> bool:
    return bool(row["tensor"] == "all")


def _capacity(row: Row) -> str:
    size = row["capacity_bytes"]
    text = "" if size is None else format_capacity(size)
    return f"{row['instances']} x {text}" if row["instances"] > 1 else text


def _show(problem: Problem, nest: Schedule, arch: str | None, found: Sequence[LevelCounts]) -> None:
    on = "" if arch is None else f" on {arch}"
    output.print_text(f"{problem.name}{on}: {nest}")
    click.echo()
    output.print_table(_COLUMNS, [row for level in found for row in _rows(level)])
