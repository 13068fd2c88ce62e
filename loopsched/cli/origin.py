"""Where rows come from: what is needed to trust and to repeat them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from loopsched.base.version import __version__
from loopsched.cli.inputs import Inputs

if TYPE_CHECKING:
    from loopsched.base.rows import Row


def origin(inputs: Inputs) -> Row:
    """Collect a command's inputs, their digests, the version and the command itself."""
    from loopsched.problems.workload import workload_digest

    return {
        "arch": inputs.arch,
        "arch_digest": inputs.machine.digest,
        "workload": inputs.text,
        "workload_digest": workload_digest(inputs.whole.workload),
        "element_bytes": inputs.element_bytes,
        "version": __version__,
        "command": repeatable(click.get_current_context().obj),
    }


def repeatable(command: str, left_out: Sequence[str] = ("--jobs", "-j")) -> str:
    """Leave out options that change no row: by default how many jobs there were.

    Examples
    --------
    >>> repeatable("loopsched search resnet50 --jobs 2 -a v100")
    'loopsched search resnet50 -a v100'
    """
    long = tuple(f"{name}=" for name in left_out if name.startswith("--"))
    short = tuple(name for name in left_out if not name.startswith("--"))
    kept: list[str] = []
    words = iter(shlex.split(command))
    for word in words:
        if word in left_out:
            next(words, None)
        elif not word.startswith((*long, *short)):
            kept.append(word)
    return shlex.join(kept)
