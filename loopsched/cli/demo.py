"""``demo``: the page of a small network, searched and opened at once."""

from __future__ import annotations

import shlex

import click

from loopsched.cli import options
from loopsched.cli.explore import explore

_NETWORK = "alexnet"


@click.command()
@options.arch
@options.target("File to write; by default in a new temporary folder.")
@click.option("--no-open", is_flag=True, help="Write the page without opening a browser.")
def demo(arch: str, target: str | None, no_open: bool) -> None:
    """Search AlexNet's eight layers and open the explorer page of the results.

    'loopsched explore' does the same for your own network.
    """
    words = [_NETWORK, "--arch", arch, "--curves", "--reasons"]
    words += [] if target is None else ["--output", target]
    words += ["--no-open"] if no_open else []
    command = shlex.join(["loopsched", "explore", *words])
    click.echo(f"$ {command}", err=True)
    with explore.make_context("explore", words, obj=command) as context:
        explore.invoke(context)
