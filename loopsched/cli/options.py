"""Options that several commands share."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from functools import reduce, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click
from click.core import ParameterSource

from loopsched.base.arguments import DATA_TYPE_BYTES, near, show
from loopsched.base.errors import InputError
from loopsched.base.files import target_of
from loopsched.base.units import parse_bytes
from loopsched.cli.inputs import Inputs
from loopsched.cli.output import Style

if TYPE_CHECKING:
    from loopsched.models.buffer import Policy
    from loopsched.scheduler.constraints import Constraints
    from loopsched.scheduler.goal import Goal

Command = Callable[..., Any]


class _Whole(click.IntRange):
    """A whole number in a range; a refusal says which numbers are allowed."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            least, most = self.min, self.max
            allowed = f" >= {least}" if most is None else f" from {least} to {most}"
            self.fail(f"{show(value)} is not a whole number{allowed}", param, ctx)


class _Number(click.FloatRange):
    """A finite number of a range; a refusal says which are allowed, and in what unit.

    Parameters
    ----------
    is_zero_allowed : bool
        Whether 0 is one of them; numbers below it are not.
    of : str
        What there is so much of.
    """

    def __init__(self, *, is_zero_allowed: bool, of: str = "") -> None:
        super().__init__(0, min_open=not is_zero_allowed)
        self.what = f"a number{of and f' of {of}'} {'>=' if is_zero_allowed else 'above'} 0"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            number = super().convert(value, param, ctx)
        except click.BadParameter:
            number = math.nan
        if not math.isfinite(number):
            self.fail(f"{show(value)} is not {self.what}", param, ctx)
        return number


def _claim(path: Path, context: click.Context) -> Path:
    """Note that a command will write a file; no other option may name it, too."""
    taken: set[str] = context.meta.setdefault("loopsched.base.files", set())
    place = os.path.realpath(path)  # a circle of links has one, too
    if place in taken:
        raise InputError(f"{path}: would be written twice; give each option its own file")
    taken.add(place)
    return path


def _plot_targets(
    context: click.Context, parameter: click.Parameter, given: Sequence[str]
) -> tuple[Path, ...]:
    """Check the files of plots before the work begins, not after it."""
    from loopsched.show.plots.figure import plot_target

    return tuple(_claim(plot_target(path), context) for path in given)


def plot(what: str, option: str = "--plot") -> Callable[[Command], Command]:
    """Make the option that draws a plot; the command gets a tuple of paths.

    Parameters
    ----------
    what : str
        What is drawn, with its article.
    option : str
        Its name: `--plot`, unless the command has more than one.
    """
    return click.option(
        option,
        multiple=True,
        metavar="FILE",
        callback=_plot_targets,
        help=f"Draw {what} (.svg .png .pdf), or write the data (.csv); may be repeated.",
    )


def jobs(meaning: str = "Process N problems in parallel.") -> Callable[[Command], Command]:
    """Make the option that says how much goes on at a time; results do not depend on it."""
    return click.option(
        "--jobs", "-j",
        type=_Whole(1), default=1, show_default=True, metavar="N", help=meaning,
    )  # fmt: skip


def _out_file(context: click.Context, parameter: click.Parameter, given: str | None) -> str | None:
    if given is not None:
        _claim(target_of(given), context)
    return given


out = click.option(
    "--out",
    metavar="FILE",
    callback=_out_file,
    help="Also save rows: .jsonl or .csv as they come, .json or .parquet at the end.",
)

proof = click.option(
    "--proof",
    metavar="FILE",
    callback=_out_file,
    help="Write the proof of each problem's bound, one per line; 'loopsched verify' checks it.",
)


def choice(*names: str, of: Sequence[str], meaning: str) -> Callable[[Command], Command]:
    """Make an option of some words, the first of them taken by default."""
    return click.option(
        *names, type=click.Choice(of), default=of[0], show_default=True, help=meaning
    )


def count(
    *names: str, meaning: str, default: int | None = None, least: int = 1, most: int | None = None
) -> Callable[[Command], Command]:
    """Make an option of a whole number, above zero if nothing else is said."""
    shown: dict[str, Any] = {} if default is None else {"default": default, "show_default": True}
    kind = _Whole(least, most)
    return click.option(*names, type=kind, metavar="N", help=meaning, **shown)


def seed(meaning: str) -> Callable[[Command], Command]:
    """Make the option that starts what is drawn at random."""
    return count("--seed", least=0, default=0, meaning=meaning)


def many(*names: str, metavar: str, meaning: str) -> Callable[[Command], Command]:
    """Make an option that may be given several times."""
    return click.option(*names, multiple=True, metavar=metavar, help=meaning)


def text(
    *names: str, metavar: str, meaning: str, default: str | None = None
) -> Callable[[Command], Command]:
    """Make an option of a text."""
    return click.option(*names, metavar=metavar, default=default, show_default=True, help=meaning)


def size(*names: str, meaning: str, default: str | None = None) -> Callable[[Command], Command]:
    """Make an option of a size in bytes; `size_of` reads its value."""
    return text(*names, metavar="SIZE", meaning=meaning, default=default)


def target(
    meaning: str, metavar: str = "FILE", default: str | None = None
) -> Callable[[Command], Command]:
    """Make the option of where to write what a command is for; the command gets ``target``."""
    return text("--output", "-o", "target", metavar=metavar, meaning=meaning, default=default)


rank = count("--rank", meaning="Result files: only the schedule of rank N; 1 is the best.")


def data_type_of(default: str | None, by_default: str = "") -> Callable[[Command], Command]:
    """Make the option of a data type; where the default depends on more, say on what."""
    meaning = (
        "Data type, such as fp32, tf32, fp16, fp16_simt (without tensor cores) or int8: any type "
        f"for which the machine has a rate{by_default and f'; by default {by_default}'}."
    )
    return text("--type", "data_type", metavar="TYPE", meaning=meaning, default=default)


data_type = data_type_of("fp32")
CPU_TYPES = ("fp32", "fp64", "bf16", "int8")
_cpu_type = click.option(
    "--type",
    "data_type",
    type=click.Choice(CPU_TYPES),
    help="Data type; by default the problem's. fp64 needs an architecture file that states its "
    "rate.",
)
form = choice(
    "--format", "form", of=get_args(Style), meaning="A table for people, or rows for programs."
)


def summed_form(meaning: str) -> Callable[[Command], Command]:
    """Make the form of a result that has a summary and rows."""
    return choice("--format", "form", of=["table", "json", "csv"], meaning=meaning)


def arch_of(
    default: str | None, meaning: str = "Machine: see 'loopsched archs'."
) -> Callable[[Command], Command]:
    """Make the option of a machine."""
    return text("--arch", "-a", metavar="NAME|FILE", meaning=meaning, default=default)


arch = arch_of("titan_v")
layer = many(
    "--layer",
    "-l",
    "layers",
    metavar="NUMBER|NAME",
    meaning="Only this problem of the workload, by name or by number from 0; may be repeated "
    "if the command accepts several problems.",
)
_batch = count("--batch", meaning="ONNX models: batch size.")
_dim = many(
    "--dim",
    "dims",
    metavar="NAME=N",
    meaning="ONNX models: size of a named dynamic dimension, such as sequence=128; may "
    "be repeated.",
)
_input = many(
    "--input",
    "inputs",
    metavar="NAME=N,N,...",
    meaning="ONNX models: shape of an input; may be repeated.",
)
_value = many(
    "--input-value",
    "values",
    metavar="NAME=X",
    meaning="ONNX models: value of an input that decides shapes or branches, such as sr=16000; "
    "may be repeated.",
)


def model(command: Command) -> Command:
    """Let a WORKLOAD or PROBLEM that is an ONNX model have lengths, and values, for its inputs."""

    @wraps(command)
    def lengthened(
        *,
        batch: int | None,
        dims: tuple[str, ...],
        inputs: tuple[str, ...],
        values: tuple[str, ...],
        **given: Any,
    ) -> Any:
        from loopsched.network.text import model_text

        named = [one for one in ("workload", "problem", "onnx") if given.get(one) is not None]
        for argument in named[:1]:
            given[argument] = model_text(given[argument], batch, dims, inputs, values)
        return command(**given)

    return _batch(_dim(_input(_value(lengthened))))


def layers(command: Command) -> Command:
    """Let some problems of a WORKLOAD be chosen, and the lengths of a model be given."""
    return layer(model(command))


def _together(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Make one decorator of several options, shown in this order."""

    def decorate(command: Command) -> Command:
        return reduce(lambda inner, option: option(inner), reversed(options), command)

    return decorate


# Which layers are compiled for this CPU, and how.
compiled = _together(
    layers, count("--threads", meaning="Threads of a kernel; by default one per core."), _cpu_type
)


def inputs(
    argument: str = "workload",
    *,
    schedule: bool | None = None,
    has_arch: bool = True,
    has_element_bytes: bool = True,
) -> Callable[[Command], Command]:
    """Make the arguments and options that name a command's `Inputs`, which it gets.

    Parameters
    ----------
    argument : str
        ``workload`` or ``problem``.
    schedule : bool, optional
        Whether there must be a SCHEDULE.  None: there is none.
    has_arch, has_element_bytes : bool
        Whether there are the ordinary options for a machine and for the size of elements.
    """
    parts: list[Callable[[Command], Command]] = [click.argument(argument)]
    taken = ["layers", "element_bytes"] if has_element_bytes else ["layers"]
    if schedule is not None:
        metavar = "SCHEDULE" if schedule else "[SCHEDULE]"
        parts.append(click.argument("schedule_text", metavar=metavar, required=schedule))
        taken += ["schedule_text", "dialect"]
    parts += [layers, element_bytes] if has_element_bytes else [layers]
    if has_arch:
        parts.append(arch)
        taken.append("arch")
    if schedule is not None:
        parts.append(dialect)

    def decorate(command: Command) -> Command:
        @wraps(command)
        def called(**given: Any) -> Any:
            named = {name: given.pop(name) for name in taken}
            return command(inputs=Inputs(given.pop(argument), **named), **given)

        return _together(*parts)(called)

    return decorate


class _ElementBytes(_Whole):
    """A number of bytes, or the name of a data type."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and not value.strip().lstrip("+-").isdecimal():
            if value not in DATA_TYPE_BYTES:
                self.fail(
                    f"{show(value)}; a number of bytes or a type is needed; "
                    f"{near(value, DATA_TYPE_BYTES)}",
                    param,
                    ctx,
                )
            value = DATA_TYPE_BYTES[value]
        return super().convert(value, param, ctx)


element_bytes = click.option(
    "--element-bytes",
    type=_ElementBytes(1, 1024),
    metavar="N|TYPE",
    help="Element size of all tensors, in place of the workload's: bytes, or a type such as int8.",
)


def layouts(metavar: str, more: str = "") -> Callable[[Command], Command]:
    """Make the option that says how tensors lie in memory."""
    meaning = (
        "Order of a tensor's axes in memory, slowest first, and padded sizes: input=NHWC, "
        f"'A=M,K:4100'; may be repeated.{more and f' {more}'}"
    )
    return many("--layout", "layouts", metavar=metavar, meaning=meaning)


def policy(default: Policy, meaning: str) -> Callable[[Command], Command]:
    """Make the option of what a single buffer is."""
    return choice(
        "--policy", of=sorted(("lru", "explicit"), key=lambda one: one != default), meaning=meaning
    )


dialect = choice(
    "--dialect",
    of=["loopsched", "yalsa"],
    meaning="Dimension names of the schedule: loopsched's, or those of Yalsa, an earlier program.",
)


# What to minimise, in an option and for people.
OBJECTIVES = {
    "time": "time",
    "dram_bytes": "DRAM traffic",
    "energy": "energy",
    "edp": "energy-delay product",
}
# What a value of it, as results have it, is multiplied by to be in this unit.
OBJECTIVE_UNITS: dict[str, tuple[float, str]] = {
    "time": (1, "s"),
    "dram_bytes": (1, "B"),
    "energy": (1e-12, "J"),
    "edp": (1e-12, "J s"),
}
_STRATEGIES = ("exact", "exhaustive", "random", "local")
_VALUES = ("promised", "point", "low")


def _objective(*names: str) -> Callable[[Command], Command]:
    meaning = (
        "What to minimise; edp: energy-delay product. energy and edp need a machine that states "
        "energies, such as diannao (with --element-bytes fp16)."
    )
    return choice(*names, of=tuple(OBJECTIVES), meaning=meaning)


_HOW = (
    choice(
        "--strategy",
        "-s",
        of=_STRATEGIES,
        meaning="Search strategy. exact proves optimality; exhaustive scores every schedule of the "
        "space, which proves the best only if schedules with more loops cannot beat it; random "
        "and local sample, and prove a result only if it happens to meet the lower bound.",
    ),
    choice(
        "--value",
        of=_VALUES,
        meaning="Traffic that the objective counts. promised: what no fully associative LRU "
        "cache exceeds; point: the estimate of a replay; low: the least that such caches move if "
        "they see all accesses and private ones start every work item empty.",
    ),
    seed("Random seed of the strategies random and local."),
    count("--samples", default=1000, meaning="Schedules that random and local score."),
    click.option(
        "--time-limit",
        type=_Number(is_zero_allowed=False, of="seconds"),
        metavar="SECONDS",
        help="Stop after SECONDS per problem and keep the best so far; results then depend on the "
        "computer.",
    ),
    click.option(
        "--gap",
        type=_Number(is_zero_allowed=True),
        default=0.0,
        metavar="FRACTION",
        help="Stop when the best is proven to be within this fraction of the optimum.",
    ),
    count(
        "--budget",
        meaning="Stop after N units of work per problem and keep the best so far; results are the "
        "same on any computer. A visited node takes 1 unit, a scored schedule 4,096; exact stops "
        "at 2^24 by default.",
    ),
)
goal = _together(_objective("--objective", "-o"), *_HOW)
# Where -o names a file.
goal_in_full = _together(_objective("--objective"), *_HOW)


constraints = _together(
    choice("--tiles", of=["all", "divisors", "powers2"], meaning="Tile sizes to try."),
    many(
        "--fix",
        metavar="BOUND",
        meaning="Fix or bound a dimension's tile size at a level or unit: M@L2=128, "
        "'K@L1<=64', '64<=N@SM<=256'; may be repeated.",
    ),
    click.option(
        "--spatial",
        metavar="DIMS",
        help="Dimensions that may be split across units, such as K,P; or none.",
    ),
    many(
        "--order",
        metavar="DIMS",
        meaning="Order of these loops within every level and unit, outermost first: 'K>M>N'; "
        "may be repeated.",
    ),
    click.option(
        "--prefix", metavar="LOOPS", help="Fix the outermost loops, such as 'M:1024@SM N:1024@SM'."
    ),
)


def stated(*names: str) -> list[str]:
    """List which of a command's options are given other values than they have by default."""
    context = click.get_current_context(silent=True)
    if context is None:
        return []
    return [
        max(one.opts, key=len)
        for one in context.command.params
        if one.name in names
        and context.get_parameter_source(one.name) is ParameterSource.COMMANDLINE
        and context.params.get(one.name) != one.get_default(context)
    ]


def refuse(given: Sequence[str], where: str) -> None:
    """Refuse options that would be ignored.

    Examples
    --------
    >>> refuse([], "only to --strategy random and local")
    >>> refuse(["--line", "--no-flush"], "to --granularity tile")
    Traceback (most recent call last):
        ...
    click.exceptions.UsageError: --line and --no-flush do not apply to --granularity tile
    """
    is_one, is_only = len(given) == 1, where.startswith("only ")
    verb = (
        ("applies" if is_one else "apply") if is_only else f"{'does' if is_one else 'do'} not apply"
    )
    if given:
        raise click.UsageError(f"{' and '.join(given)} {verb} {where}")


def size_of(name: str, text: str) -> int:
    """Read the value of an option that is a size, and say of which it is if it is none.

    Examples
    --------
    >>> size_of("--capacity", "96 KiB")
    98304
    """
    with InputError.at(name):
        return parse_bytes(text)


def constraints_of(given: Mapping[str, Any]) -> Constraints:
    """Build the constraints of a search from a command's options.

    Examples
    --------
    >>> given = {"tiles": "all", "fix": ("M@L2<=128",), "spatial": "none", "order": ("M>K",)}
    >>> found = constraints_of(given | {"prefix": None})
    >>> found.extents, found.spatial, found.before
    ((('M', 'L2', 1, 128),), (), (('M', 'K'),))
    """
    from loopsched.scheduler.constraints import Constraints

    return Constraints.parse(
        tiles=given["tiles"],
        fix=given["fix"],
        spatial=given["spatial"],
        before=given["order"],
        prefix=given["prefix"] or "",
    )


def goal_of(given: Mapping[str, Any], **fields: Any) -> Goal:
    """Make the goal of a search from a command's options."""
    from loopsched.scheduler.goal import Goal

    if given.get("strategy") not in ("random", "local"):
        refuse(stated("seed", "samples"), "only to --strategy random and local")
    names = ("objective", "strategy", "value", "seed", "samples", "gap", "budget")
    fields |= {name: given[name] for name in names if name in given}
    limit = given.get("time_limit")
    return Goal(constraints=constraints_of(given), time_limit_s=limit, **fields)
