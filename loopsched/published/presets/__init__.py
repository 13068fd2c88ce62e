"""Kernels of the four reports, each a few lines on the mapping of `loopsched.gpu.kernel`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from loopsched.base.arguments import near, show
from loopsched.base.errors import InputError
from loopsched.gpu.kernel import Kernel
from loopsched.published.presets.matrices import gemm_naive, gemm_tiled
from loopsched.published.presets.report000 import direct
from loopsched.published.presets.report001 import (
    filter_coarse,
    filter_colmap,
    filter_rowmap,
    filter_shared,
)
from loopsched.published.presets.report002 import (
    Steps,
    layer_base,
    layer_batched,
    layer_constant,
    layer_fused,
    layer_restrict,
    layer_shared,
    layer_tuned,
    layer_unroll,
)

__all__ = [
    "Preset", "Steps", "direct", "filter_coarse", "filter_colmap", "filter_rowmap", "filter_shared",
    "gemm_naive", "gemm_tiled", "layer_base", "layer_batched", "layer_constant", "layer_fused",
    "layer_restrict", "layer_shared", "layer_tuned", "layer_unroll", "option_value", "preset",
    "presets",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Preset:
    """A kernel, or several in a row, that a report describes.

    Parameters
    ----------
    name, title : str
    build : callable
        Its keyword arguments are the options; all are whole numbers or words.
    """

    name: str
    title: str
    build: Callable[..., Kernel | Steps]

    @property
    def options(self) -> dict[str, int | str | bool]:
        """Options with their defaults."""
        return {name: one.default for name, one in inspect.signature(self.build).parameters.items()}


_ALL = (
    direct, filter_rowmap, filter_colmap, filter_shared, filter_coarse, layer_base, layer_unroll,
    layer_constant, layer_fused, layer_batched, layer_tuned, layer_restrict, layer_shared,
    gemm_naive, gemm_tiled,
)  # fmt: skip
_PRESETS: Mapping[str, Preset] = {
    build.__name__: Preset(
        build.__name__, (build.__doc__ or "").partition("\n")[0].rstrip("."), build
    )
    for build in _ALL
}


def presets() -> tuple[Preset, ...]:
    """List the presets.

    See Also
    --------
    preset

    Examples
    --------
    >>> [one.name for one in presets()][:2]
    ['direct', 'filter_rowmap']
    """
    return tuple(_PRESETS.values())


def preset(name: str, **options: int | str | bool) -> Steps:
    """Build the kernels of a preset, each with how often it is started.

    Parameters
    ----------
    name : str
    **options
        As the function of that name takes them.

    Raises
    ------
    InputError
        If there is no such preset or option, or a value cannot be.

    See Also
    --------
    presets, reproduce, estimate_steps

    Examples
    --------
    >>> [(kernel.name, launches) for kernel, launches in preset("layer_unroll", batch=100)]
    [('unroll', 100), ('multiply', 100)]
    """
    if name not in _PRESETS:
        raise InputError(f"no preset {show(name)}; {near(name, _PRESETS)}")
    found = _PRESETS[name]
    known = found.options
    faults = []
    for option, value in options.items():
        if option not in known:
            faults.append(f"no option {show(option)}; {near(option, known)}")
        elif type(value) is not type(known[option]):
            faults.append(f"{option} is {show(value)}; {_kind(known[option])} is needed")
        elif isinstance(value, int) and not isinstance(value, bool) and value < _least(option):
            faults.append(f"{option} is {show(value)}; at least {_least(option)} is needed")
    InputError.refuse(f"preset '{name}'", faults)
    built = found.build(**options)
    return ((built, 1),) if isinstance(built, Kernel) else built


def _kind(value: object) -> str:
    """Say of what kind the values of an option are, by its default."""
    if isinstance(value, bool):
        return "true or false"
    return f"{'a whole number' if isinstance(value, int) else 'a word'} such as {value}"


def _least(option: str) -> int:
    return 0 if option == "radius" else 1
