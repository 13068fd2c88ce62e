"""Inductor's templates cut to the first choices, without torch; what cannot be is left alone."""

from __future__ import annotations

import logging
import pickle
import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from loopsched import gemm, load_arch, pick
from loopsched.gpu.choice.families import TRITON_GEMM
from loopsched.integrations import inductor
from loopsched.integrations.inductor import inductor_choices, kept_choices, use_in_inductor
from loopsched.problems.builders import batched_gemm

NAMES = {
    "block_m": "BLOCK_M", "block_n": "BLOCK_N", "block_k": "BLOCK_K", "group_m": "GROUP_M",
    "stages": "num_stages", "warps": "num_warps",
}  # fmt: skip


class Template:
    """Inductor's `KernelTemplateChoice`, as far as it matters."""

    def __init__(self, configuration: dict[str, int], **more: Any) -> None:
        self.configuration = configuration
        told = {NAMES[name]: value for name, value in configuration.items()} | more
        self.params = SimpleNamespace(to_kwargs=lambda: dict(told))


class Inputs:
    """Inductor's `MMKernelInputs`: sizes that are hints, and types."""

    def __init__(self, *shapes: tuple[int, ...], dtype: str = "torch.float16") -> None:
        self.shapes, self.name = shapes, dtype

    def mnk_hinted(self) -> tuple[int, int, int]:
        return self.shapes[-2][-2], self.shapes[-1][-1], self.shapes[-2][-1]

    def shapes_hinted(self) -> tuple[tuple[int, ...], ...]:
        return self.shapes

    def dtype(self, at: int = 0) -> str:
        return self.name


class InductorChoices:
    """What Inductor's class of this name does with all templates."""

    def _finalize_template_configs(
        self, template_choices: dict[str, Iterator[Any]], kernel_inputs: Any, *more: Any
    ) -> list[Any]:
        return [one for found in template_choices.values() for one in found]


SPACE = TRITON_GEMM.tried()
TRIED = [Template(SPACE.configuration(at)) for at in range(0, len(SPACE), 7)]
PRODUCT = Inputs((512, 4096), (4096, 6144))


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Modules of torch that are no more than the interface."""
    made: dict[str, Any] = {}
    for name in ("torch", "torch._inductor", "torch._inductor.choices", "torch._inductor.config",
                 "torch._inductor.virtualized"):  # fmt: skip
        made[name] = ModuleType(name)
        monkeypatch.setitem(sys.modules, name, made[name])
    made["torch"].cuda = SimpleNamespace(get_device_name=lambda: "NVIDIA H200")
    made["torch._inductor.choices"].InductorChoices = InductorChoices
    made["torch._inductor.config"].inductor_choices_class = None
    made["torch._inductor.virtualized"].V = SimpleNamespace(
        set_choices_handler=lambda one: made.update(handler=one)
    )
    return made


def picked(problem: Any, data_type: str, top: int, arch: str = "h200") -> list[dict[str, int]]:
    rows = [one.configuration for one in TRIED]
    found = pick(problem, load_arch(arch), space=rows, data_type=data_type, top=top)
    return [dict(one.configuration) for one in found.choices]


@pytest.mark.parametrize(
    ("dtype", "data_type"), [("torch.float16", "fp16"), ("torch.bfloat16", "bf16")]
)
def test_the_first_choices_stay_best_first(dtype: str, data_type: str) -> None:
    inputs = Inputs((512, 4096), (4096, 6144), dtype=dtype)
    kept = kept_choices(TRIED, inputs, load_arch("h200"), 4)
    problem = gemm(m=512, n=6144, k=4096)
    assert [one.configuration for one in kept] == picked(problem, data_type, 4)


def test_batches_and_a_bias_before_the_operands() -> None:
    inputs = Inputs((8, 64, 256), (8, 64, 512), (8, 512, 256))
    problem = batched_gemm(batch=8, m=64, n=256, k=512)
    kept = kept_choices(TRIED, inputs, "h200", 3)
    assert [one.configuration for one in kept] == picked(problem, "fp16", 3)


def test_tf32_needs_leave() -> None:
    inputs = Inputs((512, 4096), (4096, 6144), dtype="torch.float32")
    allowed = [Template(one.configuration, ALLOW_TF32=True) for one in TRIED]
    kept = kept_choices(allowed, inputs, "h200", 3)
    problem = gemm(m=512, n=6144, k=4096)
    assert [one.configuration for one in kept] == picked(problem, "tf32", 3)
    exact = [Template(one.configuration, ALLOW_TF32=False) for one in TRIED]
    assert kept_choices(exact, inputs, "h200", 3) is exact


@pytest.mark.parametrize(
    ("choices", "inputs", "arch", "said"),
    [
        (TRIED, PRODUCT, "h201", "h201"),
        (TRIED, PRODUCT, None, "choices were not measured on 'NVIDIA L4'"),
        (TRIED, Inputs((4, 4), (4, 4), dtype="torch.float64"), "h200", "type 'float64'"),
        ([Template({"block_m": 16})] * 9, PRODUCT, "h200", "KeyError: 'BLOCK_N'"),
        ([SimpleNamespace()] * 9, PRODUCT, "h200", "AttributeError"),
    ],
)
def test_what_cannot_be_modelled_is_left_to_inductor(
    torch: dict[str, Any],
    caplog: pytest.LogCaptureFixture,
    choices: list[Any],
    inputs: Inputs,
    arch: str | None,
    said: str,
) -> None:
    torch["torch"].cuda = SimpleNamespace(get_device_name=lambda: "NVIDIA L4")
    with caplog.at_level(logging.WARNING, "loopsched"):
        assert kept_choices(choices, inputs, arch, 5) is choices
    assert len(caplog.records) == 1
    message = caplog.records[0].getMessage()
    assert f"all {len(choices)} configurations are left to the tuner: " in message
    assert said in message


def test_few_are_not_looked_at() -> None:
    few = TRIED[:5]
    assert kept_choices(few, None, None, 5) is few


def test_other_templates_and_libraries_stay(torch: dict[str, Any]) -> None:
    handler = inductor_choices(top=2)()
    library, persistent = [object()], TRIED[:9]
    every = handler._finalize_template_configs(
        {"aten::mm": iter(library), "triton::mm_persistent_tma": iter(persistent),
         "triton::mm": iter(TRIED)},
        PRODUCT, [], "mm",
    )  # fmt: skip
    assert every[:10] == library + persistent
    problem = gemm(m=512, n=6144, k=4096)
    assert [one.configuration for one in every[10:]] == picked(problem, "fp16", 2)


def test_it_is_put_in_place_for_this_thread_and_later_ones(torch: dict[str, Any]) -> None:
    use_in_inductor("h200", top=3)
    factory = torch["torch._inductor.config"].inductor_choices_class
    assert factory is not None
    made = factory()
    assert isinstance(made, InductorChoices)
    assert type(made) is type(torch["handler"])
    assert made.uuid() == torch["handler"].uuid()
    assert made.uuid() != inductor_choices("h200", top=4)().uuid()
    assert made.uuid() != inductor_choices("h100", top=3)().uuid()
    assert (
        inductor_choices(load_arch("h200"))().uuid() != inductor_choices(load_arch("h100"))().uuid()
    )


def test_it_can_be_a_part_of_keys_of_caches(torch: dict[str, Any]) -> None:
    made = inductor_choices("h200", top=3)()
    again = pickle.loads(pickle.dumps(made))
    assert type(again) is type(made)
    assert again.uuid() == made.uuid()
    assert pickle.dumps(inductor_choices("h200", top=4)()) != pickle.dumps(made)
    with pytest.raises(AttributeError, match="no attribute 'Choices'"):
        inductor.Choices  # noqa: B018


def test_older_interfaces_go_on_alone(
    torch: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    del torch["torch._inductor.config"].inductor_choices_class
    use_in_inductor("h200")
    assert not hasattr(torch["torch._inductor.config"], "inductor_choices_class")
    assert isinstance(torch["handler"], InductorChoices)

    class Older:
        pass

    torch["torch._inductor.choices"].InductorChoices = Older
    assert inductor_choices("h200") is Older
    assert [one.getMessage() for one in caplog.records] == [
        "this Inductor takes no choices, and keeps its own"
    ]
