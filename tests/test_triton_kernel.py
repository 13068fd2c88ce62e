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

from loopsched import (
    Attention,
    Grouped,
    InputError,
    ProblemError,
    batched_gemm,
    conv2d,
    gemm,
    load_arch,
    pick,
)
from loopsched.exchange.triton_kernel import to_triton_kernel
from loopsched.integrations.triton import prune_configs_by

TILE = {"block_m": 4, "block_n": 8, "block_k": 4, "stages": 3, "warps": 4, "group_m": 2}


class Values(np.ndarray[Any, Any]):
    """Numbers of a block."""

    def to(self, kind: Any) -> Any:
        return self.astype(kind)


class Scalar(int):
    """A number that all threads of a block have."""

    def to(self, kind: Any) -> Scalar:
        return self

    def __floordiv__(self, other: int) -> Scalar:
        return Scalar(int(self) // other)


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
        around = np.full(64, np.nan) if values.dtype.kind == "f" else np.zeros(64, values.dtype)
        self.memory = np.concatenate([values.ravel(order=order), around])

    @property
    def values(self) -> Any:
        return self.memory[:-64].reshape(self.shape, order=self.order)

    def stride(self, axis: int) -> int:
        return self.values.strides[axis] // self.memory.itemsize


def _load(at: Pointer, mask: Any = True, other: float = np.nan) -> Any:
    # What is masked may lie anywhere; what is not must lie inside.
    places, mask = np.broadcast_arrays(at.at, mask)
    assert ((places >= 0) & (places < len(at.memory) - 64))[mask].all()
    found = np.where(mask, at.memory[np.where(mask, places, 0)], other)
    return found.view(Values) if found.ndim else Scalar(found)


def _store(at: Pointer, values: Any, mask: Any = True) -> None:
    places, mask = np.broadcast_arrays(at.at, mask)
    assert np.isnan(at.memory[places[mask]]).all(), "written twice"
    at.memory[places[mask]] = values[mask]


def _log2(values: Any) -> Any:
    with np.errstate(divide="ignore"):
        return np.log2(values)


def _multiple_of(value: Any, unit: int) -> Any:
    assert (value.at if isinstance(value, Pointer) else value) % unit == 0
    return value


def _written(text: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Run a file's definitions with stand-ins for Triton and torch; what was launched is kept."""
    block, blocks = [0, 0], [1, 1]
    language, triton, torch = (
        ModuleType("triton.language"),
        ModuleType("triton"),
        ModuleType("torch"),
    )

    def jit(function: Callable[..., None]) -> Any:
        class Kernel:
            def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
                def launch(*given: Any, **how: int) -> None:
                    triton.launched = (grid, how)  # type: ignore[attr-defined]
                    held = [Pointer(a.memory) if isinstance(a, Tensor) else a for a in given]
                    blocks[:] = [*grid, 1][:2]
                    for block[0], block[1] in np.ndindex(*blocks):
                        function(*held)

                return launch

        return Kernel()

    vars(language).update(
        constexpr=int,
        float32=np.float64,
        int32=np.int32,
        int64=np.int64,
        math=SimpleNamespace(exp2=np.exp2, log2=_log2),
        program_id=lambda axis: Scalar(block[axis]),
        num_programs=lambda axis: blocks[axis],
        multiple_of=_multiple_of,
        full=lambda shape, value, dtype: np.full(shape, value, dtype).view(Values),
        maximum=np.maximum,
        minimum=lambda a, b: Scalar(min(a, b)),
        where=lambda where, a, b: np.where(where, a, b).view(Values),
        max=lambda x, axis: x.max(axis),
        sum=lambda x, axis: x.sum(axis),
        cdiv=lambda a, b: -(-a // b),
        arange=np.arange,
        zeros=lambda shape, dtype: np.zeros(shape, dtype).view(Values),
        load=_load,
        store=_store,
        dot=lambda x, y, sums=0.0: sums + x @ y,
    )
    vars(triton).update(
        jit=jit,
        cdiv=lambda a, b: -(-a // b),
        next_power_of_2=lambda n: 1 << (n - 1).bit_length(),
        language=language,
    )
    vars(torch).update(
        float16="half",
        bfloat16="brain",
        float32="single",
        float8_e4m3fn="byte",
        int32=np.int32,
        int64=np.int64,
        empty=lambda *shape, device, dtype: Tensor(np.full(shape, np.nan)),
        tensor=lambda values, dtype, device: Tensor(np.array(values, dtype)),
    )
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


@pytest.mark.parametrize("order", ["C", "F"])
def test_batches_are_right(monkeypatch: pytest.MonkeyPatch, order: str) -> None:
    problem = batched_gemm(batch=3, m=5, n=9, k=6)
    names = _written(to_triton_kernel(problem, TILE).text(), monkeypatch)
    random = np.random.default_rng(1)
    a, b = random.standard_normal((3, 5, 6)), random.standard_normal((3, 6, 9))
    c = Tensor(np.full((3, 5, 9), np.nan))
    turned = Tensor(b.swapaxes(1, 2) if order == "F" else b)
    strides = {"C": (54, 9, 1), "F": (54, 1, 6)}[order]
    turned.stride = lambda axis: strides[axis]  # type: ignore[method-assign]
    names["run"](Tensor(a), turned, c)
    np.testing.assert_allclose(c.values, a @ b, atol=1e-12)


@pytest.mark.parametrize("parts", [2, 3, 8])
@pytest.mark.parametrize("terms", [4, 19, 40])
def test_split_sums_are_right(monkeypatch: pytest.MonkeyPatch, parts: int, terms: int) -> None:
    """Also where a part begins behind the last term."""
    text = to_triton_kernel(gemm(m=5, n=9, k=terms), TILE | {"split_k": parts}).text()
    names = _written(text, monkeypatch)
    random = np.random.default_rng(parts)
    a, b = random.standard_normal((5, terms)), random.standard_normal((terms, 9))
    c = Tensor(np.full((5, 9), np.nan))
    names["run"](Tensor(a), Tensor(b), c)
    np.testing.assert_allclose(c.values, a @ b, atol=1e-12)


@pytest.mark.parametrize("units", [(1, 1), (16, 16), (16, 1), (1, 16)])
def test_grouped_products_are_right(
    monkeypatch: pytest.MonkeyPatch, units: tuple[int, int]
) -> None:
    sizes = ((5, 1, 2), (1, 3, 1), (9, 2, 1))
    products = tuple((m, n * units[0], k * units[1]) for m, n, k in sizes)
    text = to_triton_kernel(Grouped(products), TILE, kernel="triton_grouped").text()
    names = _written(text, monkeypatch)
    random = np.random.default_rng(units)
    a = [random.standard_normal((m, k)) for m, n, k in products]
    b = [random.standard_normal((k, n)) for m, n, k in products]
    wanted = np.concatenate([(x @ y).ravel() for x, y in zip(a, b, strict=True)])
    c = Tensor(np.full(wanted.shape, np.nan))
    operands = [Tensor(np.concatenate([one.ravel() for one in given])) for given in (a, b)]
    names["run"](*operands, c)
    np.testing.assert_allclose(c.values, wanted, atol=1e-12)


@given(
    st.integers(1, 2),
    st.sampled_from([(1, 1), (2, 1), (4, 2), (3, 3)]),
    st.integers(1, 40),
    st.integers(0, 3),
    st.sampled_from([3, 16, 20]),
    st.booleans(),
    st.sampled_from([1, 2, 4, 8]),
)
def test_attention_is_right(
    batch: int,
    heads: tuple[int, int],
    keys: int,
    few: int,
    size: int,
    causal: bool,
    split: int,
) -> None:
    """Against softmax written out, with as many queries as keys, or a few at the end."""
    queries = few if few < keys else 0
    problem = Attention(batch, heads[0], keys, size, causal, heads[1], queries=queries)
    tile = {"block_m": 16, "block_n": 8, "stages": 2, "warps": 4}
    kernel = "triton_attention"
    if queries:
        tile, kernel = tile | {"split_k": split}, "triton_decode"
    text = to_triton_kernel(problem, tile, kernel=kernel).text()
    random = np.random.default_rng(keys)
    n = problem.n_queries
    q = random.standard_normal((batch, heads[0], n, size))
    k, v = (random.standard_normal((batch, heads[1], keys, size)) for _ in "kv")
    here, there = (np.repeat(one, heads[0] // heads[1], axis=1) for one in (k, v))
    scores = q @ here.swapaxes(2, 3) / size**0.5
    if causal:
        hidden = np.arange(keys)[None, :] > np.arange(n)[:, None] + keys - n
        scores = np.where(hidden, -np.inf, scores)
    shares = np.exp(scores - scores.max(3, keepdims=True))
    wanted = shares / shares.sum(3, keepdims=True) @ there
    found = Tensor(np.full(q.shape, np.nan))
    with pytest.MonkeyPatch.context() as patch, np.errstate(invalid="ignore", divide="ignore"):
        names = _written(text, patch)
        names["run"](Tensor(q), Tensor(k), Tensor(v), found)
    np.testing.assert_allclose(found.values, wanted, atol=1e-10)


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


def test_sizes_that_triton_does_not_notice_are_compiled_in() -> None:
    """Of sizes it is given it looks only whether 16 divides them; else it copies bit by bit."""
    for k, known in ((64, False), (72, True), (68, True), (67, False)):
        text = to_triton_kernel(gemm(m=8, n=32, k=k), TILE).text()
        assert ("k: tl.constexpr" in text) is known
        assert " n: tl.constexpr" not in text
        found = pick(gemm(m=8, n=32, k=k), load_arch("h100"), top=1)
        assert found.unaligned == ((f"k={k}",) if k % 16 else ())
        assert (f"k={k}: not a multiple of 16" in found.warning) is (k % 16 > 0)
    layer = conv2d(n=1, c=8, k=24, h=8, w=8, r=3, s=3)
    found = pick(layer, load_arch("h200"), data_type="bf16", top=1)
    assert found.unaligned == ("c=8", "k=24")
    assert found.warning.endswith("choices are is unknown.")
    two = Grouped(((1, 16, 24), (1, 16, 24), (1, 20, 32)))
    assert pick(two, load_arch("h200"), top=1).unaligned == ("n=20", "k=24")
    wide = pick(gemm(m=8, n=33, k=67), load_arch("titan_rtx"), kernel="clblast_gemm", top=1)
    assert wide.unaligned == ()


def test_what_is_not_written_is_said() -> None:
    problem = gemm(m=8, n=8, k=8)
    with pytest.raises(InputError, match=r"kernel 'triton_gem'; did you mean 'triton_gemm'"):
        to_triton_kernel(problem, TILE, kernel="triton_gem")
    with pytest.raises(InputError, match=r"data type 'fp32'; did you mean 'tf32'"):
        to_triton_kernel(problem, TILE, data_type="fp32")
    layer = {"c": 8, "k": 8, "h": 8, "w": 8, "r": 3, "s": 3}
    with pytest.raises(InputError, match=r"data type 'fp8'.*\(allowed: fp16 bf16 tf32\)"):
        to_triton_kernel(conv2d(**layer), TILE, kernel="triton_conv", data_type="fp8")
    with pytest.raises(InputError, match="no file for batches whose terms are split"):
        to_triton_kernel(batched_gemm(batch=2, m=8, n=8, k=8), TILE | {"split_k": 2})
    with pytest.raises(ProblemError, match="triton_gemm computes a GEMM or a convolution"):
        to_triton_kernel(Grouped(((8, 8, 8),)), TILE)
    with pytest.raises(InputError, match=r"data type 'tf32'.*allowed: fp16 bf16"):
        to_triton_kernel(Attention(1, 1, 8, 8), TILE, kernel="triton_attention", data_type="tf32")
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
    kept = prune(tried, {"rows": 4096, "N": 6144}, K=4096)
    best = []
    for group in (1, 8):
        space = [
            {"block_m": one.kwargs["TM"], "block_n": one.kwargs["TN"], "block_k": 64}
            | {"stages": 3, "warps": 4, "group_m": group}
            for one in tried
        ]
        found = pick(gemm(m=4096, n=6144, k=4096), load_arch("h200"), space=space, top=1).best
        best.append((found.configuration["block_m"], found.configuration["block_n"]))
    assert [(one.kwargs["TM"], one.kwargs["TN"]) for one in kept] == best[:1]
    assert best[0] != best[1]


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
