"""The command line: parse, call the library, print.

Data go to standard output, progress and complaints to standard error.
Commands are imported when they are called, so that ``--help`` is quick.
"""

from __future__ import annotations

import gc
import re
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from keyword import iskeyword

import click

from loopsched.base import jit, streams
from loopsched.base.errors import EmptySpaceError, InputError, LoopschedError
from loopsched.base.files import named
from loopsched.base.version import __version__
from loopsched.cli.group import Group

EXIT_BUG, EXIT_USAGE, EXIT_INPUT, EXIT_EMPTY = 1, 2, 3, 4
EXIT_INTERRUPTED = 130
EXIT_PIPE = 141

# Command to its module, below `loopsched.cli`, and its line in the help.
_COMMANDS = {
    "demo": ("demo", "Search a small network and open the explorer page."),
    "search": ("search", "Find the best schedule of every problem of a workload."),
    "verify": ("verify", "Check the proofs that a search wrote."),
    "analyze": ("analyze", "Score a given schedule: traffic, time, bottleneck."),
    "simulate": ("simulate", "Replay a schedule through caches, access by access."),
    "show": ("show", "Show a schedule or a saved result as loops."),
    "compare": ("compare", "Explain why one schedule is worse than another."),
    "curve": ("curve", "Find the least traffic at every capacity of a buffer."),
    "space": ("space", "Count the schedules of a search before it runs."),
    "pareto": ("pareto", "Show trade-offs between time, DRAM traffic and capacity."),
    "tiles": ("tiles", "Map the cost of two tile sizes of a schedule."),
    "validate": ("validate", "Compare predictions with hardware counters and measured times."),
    "run": ("running", "Compile, check and time problems on this CPU."),
    "pick": ("pick", "Rank tile sizes, stages and warps of a GPU kernel."),
    "calibrate": ("calibrate", "Measure this CPU or GPU for an architecture file."),
    "kernel": ("kernel", "Count the resources of a GPU kernel and estimate its time."),
    "reproduce": ("reproduce", "Reproduce the tables of four reports on convolution kernels."),
    "sensitivity": (
        "sensitivity",
        "Search again on changed machines to see which parameters matter.",
    ),
    "sweep": ("sweep", "Search a grid of machines and workloads; resumable."),
    "report": ("report", "Write saved results as an explorer page (HTML)."),
    "explore": ("explore", "Search a workload and open the explorer page."),
    "fuse": ("fuse", "Find consecutive layers to run together, tile by tile."),
    "network": ("network", "Show the layers of an ONNX model and its other operators."),
    "export": ("export", "Write a schedule for other tools, or as code."),
    "import": ("import_", "Read problems and schedules from other tools."),
    "detect": ("detect", "Describe this CPU, with the source of every number."),
    "archs": ("listing", "List architectures, or show one with its sources."),
    "workloads": ("listing", "List workloads, or show one with its problems."),
}


class _LazyGroup(Group):
    """A group that imports a command's module only to run that command."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = import_module(f"loopsched.cli.{_COMMANDS[cmd_name][0]}")
        name = f"{cmd_name}_" if iskeyword(cmd_name) else cmd_name
        command: click.Command = getattr(module, name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _COMMANDS.items()])


_HELP = """Find proven-best loop orders and tile sizes for loop nests.

\b
loopsched search deepbench_conv                best schedules on a Titan V
loopsched search my.json --arch v100 --top 3   your problems, another machine
loopsched COMMAND --help                       the options of a command
"""


_FIRST = """Proven-best loop orders and tile sizes for loop nests. Try:

  loopsched demo                                   a small network, as a page
  loopsched search resnet50 -a h100                the best schedule per layer
  loopsched pick gemm:m=512,n=6144,k=4096 -a h100  tiles and warps of a kernel
  loopsched sensitivity alexnet                    which hardware limit matters
  loopsched run gemm:m=512,n=512,k=512             compile and time it here
  loopsched explore my_model.onnx                  your model, as a page

'loopsched archs' and 'loopsched workloads' list inputs, '--help' all commands."""


@click.group(
    cls=_LazyGroup,
    invoke_without_command=True,
    help=_HELP,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit status: 0 success, 1 missing extra or internal error, 2 wrong usage, "
    "3 bad input, 4 nothing fits, 130 interrupted.",
)
@click.version_option(__version__, prog_name="loopsched", message="%(prog)s %(version)s")
@click.pass_context
def cli(context: click.Context) -> None:
    """Find proven-best loop orders and tile sizes for loop nests."""
    if context.invoked_subcommand is None:
        click.echo(_FIRST)


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit status.

    An error that is not the user's is left to rise, with its traceback.

    Examples
    --------
    >>> run(["--version"])
    loopsched ...
    0
    """
    # Not `cli.main`: it has its own ideas of interruptions and closed pipes.
    try:
        with cli.make_context(
            "loopsched", list(arguments), obj=shlex.join(["loopsched", *arguments])
        ) as context:
            cli.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as error:
        _explained(error).show()
        return error.exit_code
    except EmptySpaceError as error:
        return _complain(error, EXIT_EMPTY)
    except InputError as error:
        return _complain(error, EXIT_INPUT)
    except LoopschedError as error:
        return _complain(error, EXIT_BUG)
    except KeyboardInterrupt:
        return _complain("interrupted", EXIT_INTERRUPTED)
    except BrokenPipeError:  # the reader has had enough
        streams.discard()
        return EXIT_PIPE
    except OSError as error:
        where = "" if error.filename is None else f"{named(error.filename)}: "
        if error.errno in streams.UNWRITABLE and not where:
            where = "standard output: "
            streams.discard()
        return _complain(f"{where}{error.strerror or error}", EXIT_INPUT)
    return 0


def _explained(error: click.ClickException) -> click.ClickException:
    """Say what to do where click's own words leave it open."""
    if isinstance(error, click.MissingParameter):
        missing = error.param
        if missing is None or not isinstance(missing.type, click.Choice):
            return error
        allowed = " ".join(missing.type.choices)
        return click.UsageError(
            f"Missing option '{missing.opts[0]}'; allowed: {allowed}.", error.ctx
        )
    if isinstance(error, click.BadParameter):
        hint = _file_hint(error)
        return click.UsageError(f"{error.format_message()} {hint}", error.ctx) if hint else error
    if error.message.startswith("Got unexpected extra argument") and isinstance(
        error, click.UsageError
    ):
        hint = _extra_hint(error)
        return click.UsageError(f"{error.message}{hint}", error.ctx)
    if not isinstance(error, click.NoSuchOption) or error.ctx is None:
        return error
    known = {name for one in error.ctx.command.params for name in one.opts}
    if error.option_name not in ("--type", "--dtype", "--data-type"):
        return error
    if "--type" in known:
        hint = "did you mean '--type'?"
    elif "--element-bytes" in known:
        hint = "the element size selects the type: '--element-bytes 2' is fp16."
    else:
        return error
    return click.UsageError(f"No such option '{error.option_name}'; {hint}", error.ctx)


def _file_hint(error: click.BadParameter) -> str:
    """Say what writes files where -o is --objective and names one."""
    given = re.match(r"'[^']*(\.\w+)' is not one of", error.message)
    if error.param is None or error.param.name != "objective" or not given or error.ctx is None:
        return ""
    if given[1] in (".html", ".htm"):
        return "'loopsched explore -o FILE.html' writes a page."
    known = {name for one in error.ctx.command.params for name in one.opts}
    hints = {"--out": "saves the rows", "--plot": "draws them"}
    found = [f"{name} FILE {what}" for name, what in hints.items() if name in known]
    return ", ".join(found or ["--format csv prints rows"]) + "."


def _extra_hint(error: click.UsageError) -> str:
    """Say what words too many are meant for: sizes of a problem, layers, or a schedule."""
    if error.ctx is None:
        return "."
    from loopsched.cli.inputs import select
    from loopsched.problems.workload_schema import OPERATIONS

    known = error.ctx.command.params
    arguments = [one.name or "" for one in known if isinstance(one, click.Argument)]
    given = [error.ctx.params.get(name) for name in arguments]
    first, *others = [*filter(None, given), ""]
    extra = error.message.partition("(")[2].rpartition(")")[0].split()
    sizes = [*map(str, others[:-1]), *extra]
    if first in OPERATIONS and all(re.fullmatch(r"\w+=\w+", one) for one in sizes):
        return f"; did you mean '{first}:{','.join(sizes)}'?"
    if "schedule_text" in arguments:
        return "; put what has spaces in quotes."
    if any("--layer" in one.opts for one in known):
        with suppress(LoopschedError, OSError):
            select(str(first), extra)
            return f"; did you mean '{' '.join(f'--layer {one}' for one in extra)}'?"
    return "."


def _complain(message: object, status: int) -> int:
    with suppress(OSError):
        click.echo(f"Error: {message}", err=True)
    return status


def main() -> int:
    """Run the command line of this process and return its exit status."""
    streams.prepare()
    jit.compiles_ahead = False
    gc.set_threshold(100_000)  # a search leaves hardly any circles behind
    status = run(sys.argv[1:])
    gc.freeze()  # the process ends: what is left need not be looked through
    return status
