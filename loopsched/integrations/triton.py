"""Triton's autotuner: compile and time the few configurations that may be best."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from loopsched.base.errors import InputError, LoopschedError, nearest
from loopsched.gpu.choice.families import TRITON_GEMM
from loopsched.gpu.choice.pick import rank
from loopsched.gpu.choice.space import space_of, spelled
from loopsched.machines.arch import Arch
from loopsched.machines.arch_file import as_arch, load_arch
from loopsched.problems.builders import gemm
from loopsched.problems.problem import Problem

_LOG = logging.getLogger("loopsched")
_DATA_TYPES = {
    "float16": "fp16",
    "bfloat16": "bf16",
    "float32": "tf32",
    "float8_e4m3fn": "fp8",
    "float8_e5m2": "fp8",
    "int8": "int8",
}
# Words in the driver's name of GPUs on which choices were held against measurements.
_GPUS = {"H200": "h200", "H100": "h100"}
_SIZES = {"m": "M", "n": "N", "k": "K"}
_BLOCKS = ("block_m", "block_n", "block_k", "group_m", "split_k")


def prune_configs_by(
    arch: Arch | str | None = None,
    *,
    sizes: Mapping[str, str] | None = None,
    blocks: Mapping[str, str] | None = None,
    data_type: str | None = None,
    top: int = 5,
) -> dict[str, Callable[..., Any]]:
    """Make the argument ``prune_configs_by`` of ``triton.autotune`` for a GEMM.

    Only the first choices of `loopsched.pick` are compiled and timed.  What
    cannot be modelled (another GPU, another data type, a parameter that is
    missing) is left to the tuner, with a line in the log ``loopsched``.

    Parameters
    ----------
    arch : Arch, str or None
        The GPU.  None: the one that torch runs on, if choices were measured on such a one.
    sizes, blocks : mapping of str to str, optional
        What the kernel calls ``m``, ``n``, ``k``, and ``block_m``, ``block_n``,
        ``block_k``, ``group_m``, ``split_k``.  By default ``M``, ``BLOCK_M`` or
        ``BLOCK_SIZE_M``, ``GROUP_M`` or ``GROUP_SIZE_M``, ..., ``SPLIT_K``.
    data_type : str, optional
        By default that of the kernel's first tensor.
    top : int
        Configurations to keep.

    Returns
    -------
    dict
        With one function, ``early_config_prune``.

    Examples
    --------
    >>> class Config:
    ...     def __init__(self, kwargs, num_warps, num_stages):
    ...         self.kwargs, self.num_warps, self.num_stages = kwargs, num_warps, num_stages
    >>> tried = [
    ...     Config({"BLOCK_M": m, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP_M": 8}, 4, stages)
    ...     for m in (16, 128) for stages in (2, 4)
    ... ]
    >>> prune = prune_configs_by("h200", data_type="fp16", top=1)["early_config_prune"]
    >>> kept = prune(tried, {"M": 4096, "N": 4096, "K": 4096})
    >>> [(one.kwargs["BLOCK_M"], one.num_stages) for one in kept]
    [(128, 4)]

    Raises
    ------
    InputError
        If ``sizes`` or ``blocks`` name what a product does not have.

    See Also
    --------
    loopsched.pick : the ranking itself.
    """
    size_names, block_names = _SIZES | dict(sizes or {}), dict(blocks or {})
    wrong = {*size_names} - {*_SIZES} | {*block_names} - {*_BLOCKS}
    InputError.refuse(
        "prune_configs_by",
        (f"unknown name '{name}'; {nearest(name, (*_SIZES, *_BLOCKS))}" for name in sorted(wrong)),
    )

    def early_config_prune(
        configs: Sequence[Any], named_args: Mapping[str, Any], **more: Any
    ) -> Sequence[Any]:
        try:
            known = dict(named_args) | more
            m, n, k = (_size(known, name) for name in size_names.values())
            rows = [_parameters(one, block_names) for one in configs]
            kind = data_type or _data_type(known)
            kept = first_places(gemm(m=m, n=n, k=k), rows, _machine(arch), kind, top)
        except Exception as error:
            # Whatever is wrong with a guess, the kernel must run.
            left_alone(len(configs), error)
            return configs
        return [configs[at] for at in kept]

    return {"early_config_prune": early_config_prune}


def first_places(
    problem: Problem, rows: Sequence[Mapping[str, Any]], arch: Arch, data_type: str, top: int
) -> list[int]:
    """Find where the first choices stand among configurations of a product's kernel.

    Examples
    --------
    >>> names = ("block_m", "block_n", "block_k", "stages", "warps", "group_m")
    >>> rows = [dict(zip(names, one)) for one in ((16, 64, 64, 2, 4, 8), (128, 128, 64, 4, 8, 8))]
    >>> first_places(gemm(m=4096, n=4096, k=4096), rows, load_arch("h200"), "fp16", 1)
    [1]
    """
    space = space_of(rows, TRITON_GEMM.names, more=TRITON_GEMM.more)
    ranked = rank(problem, arch, TRITON_GEMM, space, data_type)
    places = [at for at, runs in enumerate(ranked.feasible) if runs]
    return [places[at] for at in ranked.order[:top]]


def left_alone(n: int, error: Exception) -> None:
    """Log why all configurations are left to the tuner."""
    reason = error if isinstance(error, LoopschedError) else f"{type(error).__name__}: {error}"
    _LOG.warning("all %d configurations are left to the tuner: %s", n, reason)


def _size(arguments: Mapping[str, Any], name: str) -> int:
    if name not in arguments:
        raise LoopschedError(f"the kernel has no argument '{name}'; 'sizes' says what it calls it")
    return int(arguments[name])


def _parameters(config: Any, names: Mapping[str, str]) -> dict[str, int]:
    found = {"group_m": 1} | spelled(config.kwargs, (*TRITON_GEMM.names, *TRITON_GEMM.more))
    found |= {
        mine: config.kwargs[theirs] for mine, theirs in names.items() if theirs in config.kwargs
    }
    return found | {"stages": config.num_stages, "warps": config.num_warps}


def _data_type(arguments: Mapping[str, Any]) -> str:
    for value in arguments.values():
        name = str(getattr(value, "dtype", "")).rpartition(".")[2]
        if name in _DATA_TYPES:
            return _DATA_TYPES[name]
    raise LoopschedError(f"no tensor of a known type; known: {' '.join(_DATA_TYPES)}")


def _machine(arch: Arch | str | None) -> Arch:
    """Load a machine, or that of the GPU that torch runs on."""
    if arch is not None:
        return as_arch(arch)
    name = str(import_module("torch").cuda.get_device_name())
    for part, known in _GPUS.items():
        if part in name.split():
            return load_arch(known)
    raise LoopschedError(
        f"choices were not measured on '{name}'; give a machine's name or file as arch"
    )
