"""Networks straight from PyTorch, where it is installed: counts are those of the shapes."""

from __future__ import annotations

from typing import Any

import pytest

import loopsched
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
