"""``pick``: which configuration of a GPU kernel to run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from loopsched.base.errors import ProblemError, nearest
from loopsched.base.files import target_of, write_text
from loopsched.base.units import count, scaled
from loopsched.cli import options, output
from loopsched.cli.inputs import select, select_one
from loopsched.cli.output import Style
from loopsched.problems.problem import Problem
from loopsched.show.table import Column, words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loopsched.gpu.choice.dispatch import Dispatch
    from loopsched.gpu.choice.families import Asked
    from loopsched.gpu.choice.pick import Choice, Pick
    from loopsched.machines.arch import Arch

_TOP = 5
# Sizes as attention and groups have them.
_SIZES = re.compile(r"(?:[A-Za-z_0-9]+:)?[0-9]+(?:[x:+][0-9]+)+")
_EPILOG = """\b
loopsched pick gemm:m=4096,n=4096,k=4096 --explain
loopsched pick gemm:m=16,n=14336,k=4096 --type bf16 --space mine.csv --top 10
loopsched pick resnet50 --top 1
loopsched pick attention:4x32x4096x128x1 --arch h200
loopsched pick gemm:m=1,n=4096,k=4096 --dispatch 8192
loopsched pick gemm:m=512,n=512,k=512 --emit triton -o kernel.py
loopsched pick gemm:m=512,n=512,k=512 -o space.html
"""


@click.command(epilog=_EPILOG)
@click.argument("problem", metavar="PROBLEM|WORKLOAD")
@click.option(
    "--kernel",
    metavar="NAME",
    help="triton_gemm, triton_grouped, triton_conv, triton_attention, triton_decode, "
    "clblast_gemm or filter; by default the Triton kernel of the problem.",
)
@options.data_type_of(None, "fp16 for Triton kernels, fp32 for others")
@click.option(
    "--space",
    metavar="FILE.csv",
    help="Configurations to rank, one column per parameter; by default a built-in space.",
)
@options.count("--top", meaning="Show the N best choices; by default 5.")
@click.option("--explain", is_flag=True, help="Explain how each choice differs from the best.")
@options.count(
    "--dispatch", "most_m", meaning="Instead print a dispatch table for GEMMs of 1 to N rows."
)
@click.option(
    "--emit",
    type=click.Choice(["triton"]),
    help="Instead write a kernel that uses the best choice.",
)
@options.target("File for --emit; without --emit, FILE.html: an HTML page of all configurations.")
@options.layers
@options.arch_of("h100")
@options.form
def pick(
    problem: str,
    kernel: str | None,
    data_type: str | None,
    space: str | None,
    top: int | None,
    explain: bool,
    most_m: int | None,
    emit: str | None,
    target: str | None,
    layers: tuple[str, ...],
    arch: str,
    form: Style,
) -> None:
    """Rank the configurations of a GPU kernel for a problem; no GPU is needed.

    PROBLEM is a GEMM or a forward convolution, such as gemm:m=64,n=64,k=64;
    attention:BxHxSxDxcausal; or several GEMMs in one launch,
    grouped:MxNxK+MxNxK. B is the batch size, H the number of heads, S the
    sequence length (or queries:keys) and D the head size; causal is 1 with a
    causal mask, else 0. Where there are G key/value heads, fewer than H, append
    xG. For a WORKLOAD, every problem that a kernel can compute is ranked.

    'bound by' names what a configuration spends most time on; 'may be best'
    marks those that are not clearly slower than the first.
    """
    from loopsched.gpu.choice.families import TRITON_GEMM
    from loopsched.gpu.choice.pick import pick as choose
    from loopsched.machines.arch_file import load_arch

    if most_m:
        for name, value in (("--emit", emit), ("--top", top), ("--explain", explain)):
            if value:
                raise click.UsageError(f"{name} and --dispatch exclude each other")
        if kernel not in (None, TRITON_GEMM.name):
            raise click.UsageError(f"--dispatch makes tables for {TRITON_GEMM.name} alone")
    as_page = target is not None and not emit
    _check_target(target, as_page, most_m)
    machine = load_arch(arch)
    problems = _problems(problem, layers, emit is not None)
    found: list[Pick | Dispatch] = []
    left_out: dict[str, list[str]] = {}
    for one in problems:
        try:
            made: Pick | Dispatch
            if most_m:
                made = _dispatch(one, machine, most_m, data_type or TRITON_GEMM.data_type, space)
            else:
                made = choose(
                    one,
                    machine,
                    kernel=kernel,
                    space=space,
                    data_type=data_type,
                    top=1 if emit else None if as_page else top or _TOP,
                    explain=explain or as_page,
                )
        except ProblemError as error:
            if len(problems) == 1:
                raise
            reason = str(error).removeprefix(f"problem '{one.name}': ")
            left_out.setdefault(reason, []).append(one.name)
            continue
        if made not in found:
            found.append(made)
    for reason, names in left_out.items():
        also = f" and {len(names) - 1} more" if len(names) > 1 else ""
        click.echo(f"left out: problem '{names[0]}'{also}: {reason}", err=True)
    if not found:
        raise ProblemError(f"{problem}: no kernel computes any of its {len(problems)} problems")
    if emit:
        _emit(problems[0], cast("Pick", found[0]), target)
    elif target:
        _write_page(cast("list[Pick]", found), target)
    elif form == "table":
        for at, made in enumerate(found):
            if at:
                click.echo()
            _show(made, _heading(problems[0]))
    else:
        rows = [row for made in found for row in made.rows()]
        columns = dict.fromkeys(name for row in rows for name in row)
        output.print_rows(({name: row.get(name) for name in columns} for row in rows), form)


def _check_target(target: str | None, as_page: bool, most_m: int | None) -> None:
    """Refuse a file that cannot be written, or not what is asked for."""
    if target is None:
        return
    if as_page and most_m:
        raise click.UsageError("--output and --dispatch exclude each other")
    if as_page and not target.endswith(".html"):
        raise click.UsageError(
            "--output FILE.html writes a page; a kernel needs --emit triton, too"
        )
    target_of(target)


def _problems(text: str, layers: tuple[str, ...], is_one: bool) -> Sequence[Asked]:
    """Take an attention or a group, which no workload has, or the problems of a workload."""
    kind, colon, sizes = text.partition(":")
    if kind == "attention" and colon:
        from loopsched.gpu.choice.attention import Attention

        return (Attention.named(sizes),)
    if kind == "grouped" and colon:
        from loopsched.gpu.choice.grouped import Grouped

        return (Grouped.named(sizes),)
    known = ("gemm", "conv2d", "batched_gemm", "attention", "grouped")
    if _SIZES.fullmatch(text) and kind not in known and not Path(text).exists():
        hint = nearest(kind if colon else "", known, "problems")
        raise ProblemError(f"'{text}' says no kind of problem; {hint}; see 'loopsched pick --help'")
    return (select_one(text, layers),) if is_one else select(text, layers).workload.problems


def _write_page(found: list[Pick], target: str) -> None:
    from loopsched.show.page.space import space_html

    write_text(target, space_html(found))
    total = sum(one.n_configurations for one in found)
    of = f" of {len(found)} problems" if len(found) > 1 else ""
    size = scaled(Path(target).stat().st_size, "B")
    output.wrote(target, f"{count(total, 'configuration')}{of}, {size}")


def _least(one: Choice) -> str:
    warm, cold = scaled(one.bound_us * 1e-6, "s"), scaled(one.cold_us * 1e-6, "s")
    return warm if cold == warm else f"{cold} from a cold L2 ({warm} from a warm one)"


def _configuration(one: Choice) -> str:
    parts = dict(one.configuration)
    names = [name for name in ("block_m", "block_n", "block_k") if name in parts]
    tile = "x".join(str(parts.pop(name)) for name in names)
    if not tile:
        return " ".join(f"{name}={value}" for name, value in parts.items())
    return " ".join([tile, *(f"{name} {value}" for name, value in parts.items())])


def _interval(one: Choice) -> str:
    return f"{scaled(one.low_us * 1e-6, 's')} to {scaled(one.high_us * 1e-6, 's')}"


_CONFIGURATION = words("configuration", _configuration)
_COLUMNS = (
    Column("estimate", lambda one: one.estimate_us * 1e-6, "s"),
    Column("80 % interval", _interval, spare=3),
    words("bound by", "bound_by", spare=1),
    Column("blocks/SM", "resident_blocks", spare=2),
    words("may be best", lambda one: "yes" if one.may_be_best else "", spare=1),
)


_RANGES = (
    words("rows", lambda one: f"{one.first} to {one.last}"),
    _CONFIGURATION,
    Column("regret", "regret", "%"),
    Column("first estimate", lambda one: one.low_us * 1e-6, "s", spare=2),
    Column("last estimate", lambda one: one.high_us * 1e-6, "s", spare=1),
)


def _heading(problem: Asked) -> str:
    """Give the form of a problem's name for people: one of sizes alone has them explained.

    Examples
    --------
    >>> from loopsched import Attention
    >>> _heading(Attention.named("8x32x1:8192x128x0"))
    'attention {} (batch 8; 32 heads; 1 query, 8,192 keys; head size 128; no mask)'
    """
    from loopsched.gpu.choice.attention import Attention

    if isinstance(problem, Problem):
        return "{}"
    if not isinstance(problem, Attention):
        return "grouped {}"
    return f"attention {{}} ({problem.sizes})"


def _show(found: Pick | Dispatch, heading: str) -> None:
    from loopsched.gpu.choice.dispatch import Dispatch

    if isinstance(found, Dispatch):
        output.print_text(
            f"rows x {found.n} x {found.k}, {found.data_type}, on {found.arch}; regret: largest "
            "excess over the best configuration of a size; estimates: for a range's first and "
            "last number of rows"
        )
        output.print_table(_RANGES, found.buckets)
        return
    output.print_text(
        f"{heading.format(found.problem)}, {found.data_type}, {found.kernel} on {found.arch}: "
        f"at least {_least(found.best)}; {count(found.n_configurations, 'configuration')}, "
        f"{found.n_infeasible:,} cannot run, {found.n_may_be_best:,} may be best"
    )
    if found.warning:
        output.print_text(found.warning)
    columns: tuple[Column, ...] = (_CONFIGURATION, *_COLUMNS)
    details = [one.why for one in found.choices]
    configurations = [_configuration(one) for one in found.choices]
    if max(map(len, configurations)) > output.width() // 2:
        places = {id(one): place for place, one in enumerate(found.choices, 1)}
        columns = (Column("#", lambda one: places[id(one)]), *_COLUMNS)
        details = list(map("{}\n{}".format, configurations, details))
    output.print_table(columns, found.choices, details)


def _dispatch(
    problem: Asked,
    machine: Arch,
    most_m: int,
    data_type: str,
    space: str | None,
) -> Dispatch:
    from loopsched.gpu.choice.dispatch import dispatch
    from loopsched.gpu.library.gemm import product_of

    if not isinstance(problem, Problem):
        raise ProblemError(f"problem '{problem.name}': a single GEMM is needed")
    product = product_of(problem, data_type)
    if product.batch != 1:
        raise ProblemError(f"problem '{problem.name}': a single GEMM is needed")
    return dispatch(product.n, product.k, machine, most_m=most_m, data_type=data_type, space=space)


def _emit(problem: Asked, found: Pick, target: str | None) -> None:
    from loopsched.exchange.triton_kernel import to_triton_kernel

    if warning := found.warning:
        click.echo(warning, err=True)
    made = to_triton_kernel(
        problem,
        found.best.configuration,
        kernel=found.kernel,
        data_type=found.data_type,
        arch=found.arch,
    )
    if target is None:
        click.echo(made.text(), nl=False)
    else:
        write_text(target, made.text())
        output.wrote(target)
