"""Networks straight from PyTorch, where it is installed: counts are those of the shapes."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

import loopsched
from loopsched import conv2d
from loopsched.base.errors import MissingExtraError, WorkloadError
from loopsched.network.torch_graph import from_torch

try:
    import torch
    from torch import nn
except ImportError:
    torch = nn = None  # type: ignore[assignment]

pytestmark = pytest.mark.filterwarnings("ignore")  # of the exporter itself
needs_torch = pytest.mark.skipif(torch is None, reason="PyTorch is not installed")


@pytest.mark.skipif(torch is not None, reason="PyTorch is installed")
def test_without_torch_it_says_so() -> None:
    with pytest.raises(MissingExtraError, match="install torch"):
        loopsched.from_torch(object())


@needs_torch
@pytest.mark.parametrize(
    ("make", "shape", "macs"),
    [
        (lambda: nn.Conv2d(3, 16, 3, padding=1), (2, 3, 16, 16), 2 * 16 * 256 * 27),
        (lambda: nn.Conv1d(4, 8, 3, groups=2, stride=2, dilation=2), (2, 4, 33), 1440),
        (lambda: nn.Conv3d(2, 4, 3, padding=1), (1, 2, 5, 6, 7), 4 * 210 * 2 * 27),
        (lambda: nn.ConvTranspose2d(4, 6, 3, stride=2, output_padding=1), (1, 4, 5, 5), 5400),
        (lambda: nn.LSTM(8, 16, bidirectional=True), (5, 3, 8), 5 * 3 * 2 * 4 * 16 * 24),
        (lambda: nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), (2, 10, 32), 176640),
        (lambda: nn.Linear(8, 4, bias=False), (8,), 32),
    ],
)
def test_layers(make: Any, shape: tuple[int, ...], macs: int) -> None:
    found = from_torch(make(), torch.zeros(shape))
    assert (found.macs, found.unsupported) == (macs, ())


@needs_torch
def test_a_graph_with_weights_and_turned_operands() -> None:
    model = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 4)).train()
    found = from_torch(model, torch.zeros(3, 6, dtype=torch.float32), name="two")
    assert model.training
    assert (found.name, found.params) == ("two", 6 * 5 + 5 + 5 * 4 + 4)
    assert [dict(node.problem.attributes)["transpose_b"] for node in found.layers] == [True, True]
    assert len(found.graph().edges) == 1
    assert found.layers[0].problem.tensor("A").element_bytes == 4


@needs_torch
def test_what_cannot_be_traced_is_said() -> None:
    class Branching(nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return x if x.sum() > 0 else -x

    with pytest.raises(WorkloadError, match=r"Branching: torch\.export cannot trace it"):
        from_torch(Branching(), torch.zeros(3))


# A stand-in for what `torch.export` gives: calls with shapes, and what a module stores.


@dataclass(eq=False)
class Call:
    """A node of an exported graph."""

    name: str
    shape: tuple[int, ...]
    word: str = ""
    args: tuple[Any, ...] = ()

    @property
    def op(self) -> str:
        return "call_function" if self.word else "placeholder"

    @property
    def target(self) -> Any:
        return SimpleNamespace(_opname=self.word, namespace="aten")

    @property
    def meta(self) -> dict[str, Any]:
        return {"val": SimpleNamespace(shape=self.shape, dtype=SimpleNamespace(itemsize=2))}

    @property
    def all_input_nodes(self) -> list[Call]:
        return [one for one in self.args if isinstance(one, Call)]


class Exported:
    """A module that stores ``weights``, and what exporting it gives."""

    def __init__(self, calls: list[Call], weights: list[Call]) -> None:
        last = SimpleNamespace(op="output", all_input_nodes=calls[-1:])
        self.graph = SimpleNamespace(nodes=[*weights, *calls, last])
        self.graph_signature = SimpleNamespace(
            inputs_to_parameters={one.name: one.name for one in weights}, inputs_to_buffers={}
        )
        self.training = True

    def run_decompositions(self, table: dict[Any, Any]) -> Exported:
        assert "mv" not in table
        return self

    def eval(self) -> Exported:
        self.training = False
        return self

    def train(self, mode: bool) -> None:
        self.training = mode


def standin(monkeypatch: pytest.MonkeyPatch, calls: list[Call], weights: list[Call]) -> Any:
    """Read a graph by way of a module that takes PyTorch's place."""
    words = {word: SimpleNamespace(default=word) for word in ("mv", "addmv", "dot")}
    module = Exported(calls, weights)
    export = SimpleNamespace(
        export=lambda given, args: given,
        default_decompositions=lambda: dict.fromkeys(("mv", "addmv", "dot", "relu")),
    )
    torch_ = SimpleNamespace(
        export=export, no_grad=nullcontext, ops=SimpleNamespace(aten=SimpleNamespace(**words))
    )
    monkeypatch.setitem(sys.modules, "torch", torch_)
    found = from_torch(module)
    assert module.training
    return found


def test_calls_become_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turned operands, grouped and transposed convolutions, heads that share keys."""
    x, w = Call("x", (3, 6)), Call("w", (5, 6))
    turned = Call("turned", (6, 5), "permute", (w, [1, 0]))
    same = Call("same", (6, 5), "permute", (turned, [0, 1]))
    product = Call("product", (3, 5), "mm", (x, turned))
    plain = Call("plain", (3, 5), "mm", (x, same))
    found = standin(monkeypatch, [x, turned, same, product, plain], [w])
    assert found.inputs == ("x",)
    assert found.params == 5 * 6
    assert [dict(node.problem.attributes)["transpose_b"] for node in found.layers] == [True, False]
    assert found.macs == 2 * 3 * 5 * 6

    image, kernel = Call("image", (1, 4, 5, 5)), Call("kernel", (4, 3, 3, 3))
    words = ([2, 2], [1, 1], [1, 1], True, [0, 0], 2)
    up = Call("up", (1, 6, 9, 9), "convolution", (image, kernel, None, *words))
    (layer,) = standin(monkeypatch, [image, up], [kernel]).layers
    assert layer.problem is not None
    wanted = conv2d(
        n=1, c=6, k=4, h=9, w=9, r=3, s=3, stride=2, padding=1, groups=2,
        pass_="backward_data", element_bytes=2,
    )  # fmt: skip
    assert layer.problem.renamed("up") == wanted.renamed("up")

    q, k, v = Call("q", (2, 8, 4, 16)), Call("k", (2, 2, 7, 16)), Call("v", (2, 2, 7, 10))
    seen = Call("seen", (2, 8, 4, 10), "_scaled_dot_product_attention", (q, k, v))
    network = standin(monkeypatch, [q, k, v, seen], [])
    assert network.macs == 2 * 8 * 4 * 7 * (16 + 10)
