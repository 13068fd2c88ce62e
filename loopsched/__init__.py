"""Proven-best loop orders and tile sizes for loop nests of multiply-accumulates.

Names are imported on first use, so that ``import loopsched`` costs next to
nothing and loads no heavy library.

Examples
--------
>>> import loopsched
>>> loopsched.gemm(m=4, n=3, k=2).macs
24
"""

from __future__ import annotations

from loopsched.base.display import show_with as _show_with
from loopsched.base.version import __version__ as __version__


def _homes() -> dict[str, str]:
    """Read which module each exported name is imported from, where type checkers read it."""
    with open(f"{__file__.removesuffix('c')}i", encoding="utf-8") as stub:
        lines = [line.split() for line in stub if line.startswith("from loopsched.")]
    return {line[-1]: line[1].removeprefix("loopsched.") for line in lines}


_HOMES = _homes()
__all__ = [*_HOMES]


def __getattr__(name: str) -> object:
    """Import an exported name from its module the first time it is asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module 'loopsched' has no attribute '{name}'")
    from importlib import import_module
    from inspect import isfunction

    from loopsched.network.coerced import takes_text

    value = getattr(import_module(f"loopsched.{_HOMES[name]}"), name)
    if isfunction(value):
        value = takes_text(value)
    globals()[name] = value
    return value


def _html(value: object) -> str:
    from loopsched.show.notebook import to_html

    return to_html(value)


_show_with(_html)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
