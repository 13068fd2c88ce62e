"""``detect``: this CPU as an architecture."""

from __future__ import annotations

from pathlib import Path

import click

from loopsched.cli import options, output
from loopsched.cli.output import Style


@click.command(
    epilog="""\b
loopsched detect -o host.yaml                  a file to keep or edit
loopsched search resnet50 --arch host          the same machine without a file
"""
)
@options.target("Write an architecture file (.yaml or .json) instead of printing.")
@options.form
def detect(target: str | None, form: Style) -> None:
    """Describe the part of this machine's CPU that this process may use.

    Cores, caches and instruction sets come from the operating system, rates and latencies from
    the microarchitecture. Memory bandwidth is measured in a tenth of a second, and so is the
    clock where the system does not report it; both are kept for '--arch host'.
    """
    from loopsched.cli.listing import show_arch
    from loopsched.machines.arch_file import load_arch
    from loopsched.machines.arch_format import arch_to_dict
    from loopsched.machines.host import forget_measured

    forget_measured()
    arch = load_arch("host")
    if target is not None:
        write_arch(arch_to_dict(arch), Path(target))
    elif form == "table":
        show_arch(arch)
    else:
        output.print_rows([{**arch_to_dict(arch), "digest": arch.digest}], form)


def arch_target(path: Path) -> Path:
    """Check, before work begins, that an architecture file can be written.

    Raises
    ------
    ArchError
        If its suffix is one that `load_arch` does not read, or its folder does not exist.
    """
    from loopsched.base.errors import ArchError
    from loopsched.base.files import suffixed, target_of

    suffixed(path, (".yaml", ".yml", ".json"), "an architecture file", ArchError)
    target_of(path)
    return path


def write_arch(data: dict[str, object], path: Path) -> None:
    """Write the data of an architecture as the suffix of the file asks.

    Raises
    ------
    ArchError
        If it cannot be written.
    """
    import json

    from loopsched.base.errors import ArchError
    from loopsched.base.files import write_text
    from loopsched.exchange.yaml_out import to_yaml

    text = json.dumps(data, indent=2) + "\n" if path.suffix == ".json" else to_yaml(data)
    write_text(arch_target(path), text, ArchError)
    output.wrote(path)
