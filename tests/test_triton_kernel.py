"""Kernels that are written, run block by block on arrays; the tuner's hook, on what it is given."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopsched import InputError, ProblemError, batched_gemm, conv2d, gemm, load_arch, pick
from loopsched.exchange.triton_kernel import to_triton_kernel
from loopsched.integrations.triton import prune_configs_by

TILE = {"block_m": 4, "block_n": 8, "block_k": 4, "stages": 3, "warps": 4, "group_m": 2}


class Values(np.ndarray[Any, Any]):
    """Numbers of a block."""

    def to(self, kind: Any) -> Any:
        return self.astype(kind)


@dataclass(frozen=True)
class Pointer:
    """A place in memory, or many."""

    memory: Any
    at: Any = 0

    def __add__(self, steps: Any) -> Pointer:
        return Pointer(self.memory, self.at + steps)

    @property
    def dtype(self) -> Any:
        return SimpleNamespace(element_ty=self.memory.dtype)


class Tensor:
    """An array in memory of its own, with what lies around it not a number."""

    def __init__(self, values: Any, order: str = "C") -> None:
        self.shape, self.order = values.shape, order
        self.memory = np.concatenate([values.ravel(order=order), np.full(64, np.nan)])

    @property
    def values(self) -> Any:
        return self.memory[:-64].reshape(self.shape, order=self.order)

    def stride(self, axis: int) -> int:
        return self.values.strides[axis] // self.memory.itemsize


def _load(at: Pointer, mask: Any, other: float) -> Any:
    # What is masked may lie anywhere; what is not must lie inside.
    places, mask = np.broadcast_arrays(at.at, mask)
    assert ((places >= 0) & (places < len(at.memory) - 64))[mask].all()
    return np.where(mask, at.memory[np.where(mask, places, 0)], other)


def _store(at: Pointer, values: Any, mask: Any) -> None:
    places, mask = np.broadcast_arrays(at.at, mask)
    assert np.isnan(at.memory[places[mask]]).all(), "written twice"
    at.memory[places[mask]] = values[mask]


def _written(text: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Run a file's definitions with stand-ins for Triton and torch; what was launched is kept."""
    block = [0]
    language, triton, torch = (
        ModuleType("triton.language"),
        ModuleType("triton"),
        ModuleType("torch"),
    )

    def jit(function: Callable[..., None]) -> Any:
        class Kernel:
            def __getitem__(self, grid: tuple[int]) -> Callable[..., None]:
                def launch(*given: Any, **how: int) -> None:
                    triton.launched = (grid, how)  # type: ignore[attr-defined]
                    held = [Pointer(a.memory) if isinstance(a, Tensor) else a for a in given]
                    for block[0] in range(grid[0]):
                        function(*held)

                return launch

        return Kernel()

    vars(language).update(
        constexpr=int,
        float32=np.float64,
        program_id=lambda axis: block[axis],
        cdiv=lambda a, b: -(-a // b),
        arange=np.arange,
        zeros=lambda shape, dtype: np.zeros(shape, dtype).view(Values),
        load=_load,
        store=_store,
        dot=lambda x, y, sums: sums + x @ y,
    )
    vars(triton).update(jit=jit, cdiv=lambda a, b: -(-a // b), language=language)
    vars(torch).update(float16="half", bfloat16="brain", float32="single", float8_e4m3fn="byte")
    for one in (language, triton, torch):
        monkeypatch.setitem(sys.modules, one.__name__, one)
    names: dict[str, Any] = {"__name__": "written"}
    exec(compile(text, "written.py", "exec"), names)
    return names


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(
    ("m", "n", "k"), [(4, 8, 4), (1, 1, 1), (13, 17, 9), (9, 17, 6), (5, 40, 12)]
)
def test_products_are_right(
    monkeypatch: pytest.MonkeyPatch, m: int, n: int, k: int, order: str
) -> None:
    names = _written(to_triton_kernel(gemm(m=m, n=n, k=k), TILE).text(), monkeypatch)
    random = np.random.default_rng(m)
    a, b = random.standard_normal((m, k)), random.standard_normal((k, n))
    c = Tensor(np.full((m, n), np.nan))
    names["run"](Tensor(a), Tensor(b, order), c)
    np.testing.assert_allclose(c.values, a @ b, atol=1e-12)
    assert np.isnan(c.memory[-64:]).all()
    grid, how = names["triton"].launched
    assert grid == (-(-m // 4) * -(-n // 8),)
    assert how == {"num_stages": 3, "num_warps": 4}


@pytest.mark.parametrize(
    "layer",
    [
        {"n": 2, "c": 5, "k": 9, "h": 6, "w": 7, "r": 3, "s": 3, "padding": 1},
        {"n": 1, "c": 4, "k": 8, "h": 9, "w": 5, "r": 3, "s": 1, "stride": (2, 1)},
        {"n": 1, "c": 3, "k": 3, "h": 9, "w": 9, "r": 2, "s": 3, "dilation": (3, 2)},
        {"n": 1, "c": 6, "k": 17, "h": 5, "w": 6, "r": 3, "s": 3, "padding": (2, 1, 0, 1)},
    ],
)
def test_convolutions_are_right(monkeypatch: pytest.MonkeyPatch, layer: dict[str, Any]) -> None:
    """Against windows that are summed one by one, of images padded at each side by itself."""
    problem = conv2d(**layer)
    text = to_triton_kernel(problem, TILE, kernel="triton_conv", data_type="bf16").text()
    names = _written(text, monkeypatch)
    assert names["STORED"] == "brain"
    n, c, k, h, w, r, s = (layer[name] for name in "nckhwrs")
    down, across = names["STRIDE"]
    hole_h, hole_w = names["DILATION"]
    top, bottom, left, right = names["PADDING"]
    p, q = problem.size["P"], problem.size["Q"]
    random = np.random.default_rng(c)
    x, f = random.standard_normal((n, h, w, c)), random.standard_normal((r, s, c, k))
    padded = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)))
    wanted = np.zeros((n, p, q, k))
    for i, j in np.ndindex(r, s):
        rows, columns = np.arange(p) * down + i * hole_h, np.arange(q) * across + j * hole_w
        wanted += padded[:, rows][:, :, columns] @ f[i, j]
    y = Tensor(np.full((n, p, q, k), np.nan))
    names["run"](Tensor(x), Tensor(f), y)
    np.testing.assert_allclose(y.values, wanted, atol=1e-12)


def test_what_is_not_written_is_said() -> None:
    problem = gemm(m=8, n=8, k=8)
    with pytest.raises(InputError, match=r"kernel 'triton_gem'; did you mean 'triton_gemm'"):
        to_triton_kernel(problem, TILE, kernel="triton_gem")
    with pytest.raises(InputError, match=r"data type 'fp32'; did you mean 'tf32'"):
        to_triton_kernel(problem, TILE, data_type="fp32")
    layer = {"c": 8, "k": 8, "h": 8, "w": 8, "r": 3, "s": 3}
    with pytest.raises(InputError, match=r"data type 'fp8'.*\(allowed: fp16 bf16 tf32\)"):
        to_triton_kernel(conv2d(**layer), TILE, kernel="triton_conv", data_type="fp8")
    with pytest.raises(InputError, match="a single product is needed"):
        to_triton_kernel(batched_gemm(batch=2, m=8, n=8, k=8), TILE)
    for other in (conv2d(**layer, groups=2), conv2d(**layer, pass_="backward_data")):
        with pytest.raises(ProblemError, match="a forward conv2d without groups is needed"):
            to_triton_kernel(other, TILE, kernel="triton_conv")


@dataclass(frozen=True)
class Config:
    """As Triton's."""

    kwargs: dict[str, int]
    num_warps: int
    num_stages: int


SIZES = {"M": 512, "N": 6144, "K": 4096}
TRIED = [
    Config({"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": 64, "GROUP_M": g}, warps, stages)
    for m in (16, 96, 128, 256)
    for n in (64, 256)
    for g in (1, 8)
    for warps in (4, 8)
    for stages in (3, 5)
]


def _rows(tried: list[Config]) -> list[dict[str, int]]:
    return [
        {name.lower(): value for name, value in one.kwargs.items()}
        | {"stages": one.num_stages, "warps": one.num_warps}
        for one in tried
    ]


@given(st.permutations(TRIED), st.integers(1, 12))
def test_the_tuner_keeps_the_first_choices(tried: list[Config], top: int) -> None:
    """Those of the list itself; what cannot run is among the configurations, and not kept."""
    kept = prune_configs_by("h200", data_type="fp16", top=top)["early_config_prune"](tried, SIZES)
    problem = gemm(m=512, n=6144, k=4096)
    found = pick(problem, load_arch("h200"), space=_rows(tried), top=top)
    assert found.n_infeasible
    assert _rows(kept) == [dict(one.configuration) for one in found.choices]
    assert all(any(one is mine for mine in tried) for one in kept)


@pytest.mark.parametrize(
    ("device", "dtype", "arch", "data_type"),
    [
        ("NVIDIA H200", "torch.bfloat16", "h200", "bf16"),
        ("NVIDIA H100 80GB HBM3", "torch.float8_e5m2", "h100", "fp8"),
    ],
)
def test_the_tuner_is_told_the_machine_and_type_by_its_arguments(
    monkeypatch: pytest.MonkeyPatch, device: str, dtype: str, arch: str, data_type: str
) -> None:
    torch = SimpleNamespace(cuda=SimpleNamespace(get_device_name=lambda: device))
    monkeypatch.setitem(sys.modules, "torch", torch)
    arguments = {"flag": True, "a": SimpleNamespace(dtype=dtype), **SIZES}
    kept = prune_configs_by()["early_config_prune"](TRIED, arguments)
    space, problem = _rows(TRIED), gemm(m=512, n=6144, k=4096)
    found = pick(problem, load_arch(arch), space=space, data_type=data_type, top=5)
    assert _rows(kept) == [dict(one.configuration) for one in found.choices]


def test_kernels_may_call_parameters_as_they_like() -> None:
    tried = [
        Config({"TM": one.kwargs["BLOCK_M"], "TN": one.kwargs["BLOCK_N"], "TK": 64}, 4, 3)
        for one in TRIED
    ]
    prune = prune_configs_by(
        load_arch("h200"),
        sizes={"m": "rows"},
        blocks={"block_m": "TM", "block_n": "TN", "block_k": "TK"},
        data_type="fp16",
        top=1,
    )["early_config_prune"]
    # Sizes may be given by name at the launch, too; no groups are groups of one.
    kept = prune(tried, {"rows": 512, "N": 6144}, K=4096)
    space = [
        {"block_m": one.kwargs["TM"], "block_n": one.kwargs["TN"], "block_k": 64}
        | {"stages": 3, "warps": 4, "group_m": 1}
        for one in tried
    ]
    best = pick(gemm(m=512, n=6144, k=4096), load_arch("h200"), space=space, top=1).best
    assert kept[0].kwargs["TM"] == best.configuration["block_m"]
    assert kept[0].kwargs["TN"] == best.configuration["block_n"]


def test_names_of_the_tuners_own_tutorial_are_known() -> None:
    tried = [
        Config(
            {name.replace("_", "_SIZE_"): value for name, value in one.kwargs.items()},
            one.num_warps,
            one.num_stages,
        )
        for one in TRIED
    ]
    assert "GROUP_SIZE_M" in tried[0].kwargs
    prune = prune_configs_by("h200", data_type="fp16")["early_config_prune"]
    kept, wanted = prune(tried, SIZES), prune(TRIED, SIZES)
    assert [tried.index(one) for one in kept] == [TRIED.index(one) for one in wanted]
    assert len(kept) == 5


def test_names_that_no_product_has_are_refused_at_once() -> None:
    with pytest.raises(InputError, match="prune_configs_by: unknown name 'rows'"):
        prune_configs_by("h200", sizes={"rows": "M"})
    with pytest.raises(InputError, match="unknown name 'block_q'; did you mean 'block_"):
        prune_configs_by("h200", blocks={"block_q": "TQ"})


@pytest.mark.parametrize(
    ("arch", "data_type", "sizes", "said"),
    [
        (None, "fp16", SIZES, "choices were not measured on 'NVIDIA GH200 480GB'"),
        ("h201", "fp16", SIZES, "h201"),
        ("h200", None, SIZES, "no tensor of a known type"),
        ("h200", "fp16", {"M": 4, "N": 4}, "the kernel has no argument 'K'"),
        ("h200", "fp12", SIZES, "fp12"),
    ],
)
def test_what_is_not_known_is_left_to_the_tuner(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    arch: str | None,
    data_type: str | None,
    sizes: dict[str, int],
    said: str,
) -> None:
    torch = SimpleNamespace(cuda=SimpleNamespace(get_device_name=lambda: "NVIDIA GH200 480GB"))
    monkeypatch.setitem(sys.modules, "torch", torch)
    with caplog.at_level(logging.WARNING, "loopsched"):
        kept = prune_configs_by(arch, data_type=data_type)["early_config_prune"](TRIED, sizes)
    assert kept is TRIED
    assert len(caplog.records) == 1
    message = caplog.records[0].getMessage()
    assert f"all {len(TRIED)} configurations are left to the tuner: " in message
    assert said in message
