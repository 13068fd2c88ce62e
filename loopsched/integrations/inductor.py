"""PyTorch's Inductor: of its Triton templates for GEMMs, compile and time the few best."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib import import_module
from typing import Any

from loopsched.base.errors import LoopschedError
from loopsched.base.version import __version__
from loopsched.integrations.triton import _DATA_TYPES, _machine, first_places, left_alone
from loopsched.machines.arch import Arch
from loopsched.problems.builders import batched_gemm, gemm

_NAME = "LoopschedChoices"
_LOG = logging.getLogger("loopsched")
# Templates that compute as `triton_gemm` does, whatever is fused behind them.
_TEMPLATES = ("triton::mm", "triton::bmm")
_PARAMETERS = {
    "block_m": "BLOCK_M",
    "block_n": "BLOCK_N",
    "block_k": "BLOCK_K",
    "group_m": "GROUP_M",
    "stages": "num_stages",
    "warps": "num_warps",
}


def inductor_choices(arch: Arch | str | None = None, *, top: int = 5) -> Callable[[], Any]:
    """Make a factory for ``torch._inductor.config.inductor_choices_class``.

    Of the configurations that Inductor would compile and time for a product
    (``max_autotune_gemm``), those of its Triton templates ``mm`` and ``bmm``
    are cut to the first choices of `loopsched.pick`.  Libraries and other
    templates stay as they are.  What cannot be modelled (another GPU, fp32
    without TF32) is left to Inductor, with a line in the log ``loopsched``.

    Parameters
    ----------
    arch : Arch, str or None
        The GPU.  None: the one that torch runs on, if choices were measured on such a one.
    top : int
        Configurations to keep of each template.

    Returns
    -------
    callable
        Returns an instance of a class derived from Inductor's ``InductorChoices``;
        of that class itself, with a line in the log, where torch has no place for choices.

    Examples
    --------
    >>> import torch._inductor.config as config  # doctest: +SKIP
    >>> config.inductor_choices_class = inductor_choices("h200")  # doctest: +SKIP

    See Also
    --------
    use_in_inductor : put it in place, whatever was compiled before.
    """
    base = _inductors()
    if not hasattr(base, "_finalize_template_configs"):
        _LOG.warning("this Inductor takes no choices, and keeps its own")
        return base
    return partial(_derived(base), arch, top)


def _inductors() -> type:
    base: type = import_module("torch._inductor.choices").InductorChoices
    return base


@cache
def _derived(base: Any) -> type:
    """Derive from Inductor's class, which cannot be had before torch is asked for."""

    def remember(self: Any, arch: Arch | str | None, top: int) -> None:
        self.arch, self.top = arch, top

    def finalize(
        self: Any, template_choices: dict[str, Any], kernel_inputs: Any, *more: Any, **named: Any
    ) -> list[Any]:
        cut = {
            uid: kept_choices(list(found), kernel_inputs, self.arch, self.top)
            if uid in _TEMPLATES
            else found
            for uid, found in template_choices.items()
        }
        every: list[Any] = base._finalize_template_configs(self, cut, kernel_inputs, *more, **named)
        return every

    def uuid(self: Any) -> str:
        name = self.arch.digest if isinstance(self.arch, Arch) else str(self.arch)
        return f"loopsched {__version__} {name} {self.top}"

    methods = {"__init__": remember, "_finalize_template_configs": finalize, "uuid": uuid}
    return type(_NAME, (base,), methods | {"__module__": __name__})


def __getattr__(name: str) -> type:
    """Find the derived class for `pickle`, with which Inductor makes keys of its caches."""
    if name != _NAME:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return _derived(_inductors())


def use_in_inductor(arch: Arch | str | None = None, *, top: int = 5) -> None:
    """Let Inductor choose by `inductor_choices`, in this thread and those that start later."""
    factory = inductor_choices(arch, top=top)
    config: Any = import_module("torch._inductor.config")
    if hasattr(config, "inductor_choices_class"):
        config.inductor_choices_class = factory
    # What a thread has compiled with stays its handler.
    import_module("torch._inductor.virtualized").V.set_choices_handler(factory())


def kept_choices(
    choices: Sequence[Any], kernel_inputs: Any, arch: Arch | str | None, top: int
) -> Sequence[Any]:
    """Keep the first choices of a template, the best first; all if they cannot be modelled.

    Parameters
    ----------
    choices : sequence
        Inductor's ``KernelTemplateChoice``.
    kernel_inputs
        Inductor's ``MMKernelInputs``.
    arch, top
        As of `inductor_choices`.
    """
    if len(choices) <= top:
        return choices
    try:
        told = [{"GROUP_M": 1} | one.params.to_kwargs() for one in choices]
        rows = [{mine: int(one[theirs]) for mine, theirs in _PARAMETERS.items()} for one in told]
        data_type = _data_type(kernel_inputs, told)
        m, n, k = (int(one) for one in kernel_inputs.mnk_hinted())
        shape = kernel_inputs.shapes_hinted()[-2]
        batch = int(shape[0]) if len(shape) == 3 else 1
        problem = gemm(m=m, n=n, k=k) if batch == 1 else batched_gemm(batch=batch, m=m, n=n, k=k)
        places = first_places(problem, rows, _machine(arch), data_type, top)
    except Exception as error:
        # Whatever is wrong with a guess, the product must be compiled.
        left_alone(len(choices), error)
        return choices
    _LOG.info("%s: %d of %d configurations are compiled", problem.name, len(places), len(choices))
    return [choices[at] for at in places]


def _data_type(kernel_inputs: Any, told: Sequence[dict[str, Any]]) -> str:
    name = str(kernel_inputs.dtype(-1)).rpartition(".")[2]
    if name not in _DATA_TYPES:
        raise LoopschedError(f"type '{name}'; known: {' '.join(_DATA_TYPES)}")
    if name == "float32" and not all(one.get("ALLOW_TF32") for one in told):
        raise LoopschedError("GEMMs in fp32 without TF32 are not modelled")
    return _DATA_TYPES[name]
