"""Report 002: two convolutional layers of a small network, in eight steps of optimisation.

Layer 1 has 1 input map and 12 outputs of 66 x 66, layer 2 has 12 and 24 of 27 x 27, both
with filters of 7 x 7 (workloads/report_002.json says how that follows from the report).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from loopsched.base.errors import InputError
from loopsched.gpu.kernel import Kernel
from loopsched.gpu.views import DigitLayout
from loopsched.problems.builders import gemm
from loopsched.problems.convolution import conv2d
from loopsched.problems.problem import Problem
from loopsched.problems.projections import affine
from loopsched.published.presets.padding import cut, row_vector

# Kernels that run one after another, each with how often it is started.
Steps = tuple[tuple[Kernel, int], ...]
# The textbook's unrolling kernel, which the report follows: one dimension, 1,024 threads.
_UNROLL_THREADS = 1024
# Optimisation 4 states 31 registers; 33 to 40 give the 75 % of optimization 7.
_TILED_REGISTERS = 31
_SHARED_REGISTERS = 40


@dataclass(frozen=True, slots=True)
class _Layer:
    inputs: int
    outputs: int
    side: int
    taps: int = 7

    @property
    def image(self) -> int:
        return self.side + self.taps - 1

    @property
    def places(self) -> int:
        return self.side**2

    @property
    def sums(self) -> int:
        return self.inputs * self.taps**2

    def convolution(self, batch: int) -> Problem:
        taps, side = self.taps, self.side
        return conv2d(n=batch, c=self.inputs, k=self.outputs, p=side, q=side, r=taps, s=taps)

    def view(self, images: int | None = None) -> DigitLayout:
        side, taps = self.image, self.taps
        return DigitLayout.im2col(
            channels=self.inputs, height=side, width=side, r=taps, s=taps, images=images
        )


_LAYERS = {1: _Layer(1, 12, 66), 2: _Layer(12, 24, 27)}
_BEST_TILES = {1: 16, 2: 24}


def _layer(number: int) -> _Layer:
    if number not in _LAYERS:
        raise InputError(f"layer is {number}; report 002 has layers 1 and 2")
    return _LAYERS[number]


def layer_base(layer: int = 1, batch: int = 1000, block: int = 16) -> Kernel:
    """Convolve a layer, all from global memory (report 002, milestone 3)."""
    return _convolution(layer, batch, block, name="forward", registers=32)


def layer_shared(layer: int = 1, batch: int = 1000, block: int = 16) -> Kernel:
    """Convolve a layer, input and filter in shared memory (report 002, optimisation 7)."""
    reads = {"input": "shared@C", "weight": "shared@C"}
    how = {"name": "forward_shared", "reads": reads, "registers": _SHARED_REGISTERS}
    return _convolution(layer, batch, block, **how)


def _convolution(layer: int, batch: int, block: int, **how: Any) -> Kernel:
    """Convolve on the grid [images, maps, tiles] of the report."""
    one = _layer(layer)
    return Kernel.of(
        one.convolution(batch),
        f"N:{batch}@block_x K:{one.outputs}@block_y P:{one.side}@block_z Q:{one.side}@block_z "
        f"P:{block}@thread_y Q:{block}@thread_x C:{one.inputs} R:{one.taps} S:{one.taps}",
        **how,
    )


def layer_unroll(layer: int = 1, batch: int = 1000, tile: int = 32) -> Steps:
    """Unroll each image, then multiply matrices (report 002, optimisation 1)."""
    one = _layer(layer)
    return ((_unrolling(one), batch), (_multiply(one, tile), batch))


def layer_constant(layer: int = 1, batch: int = 1000, tile: int = 32) -> Steps:
    """Unroll and multiply, weights in constant memory (report 002, optimisation 2)."""
    one = _layer(layer)
    return ((_unrolling(one), batch), (_multiply(one, tile, weights="constant"), batch))


def layer_fused(layer: int = 1, batch: int = 1000, tile: int = 32) -> Steps:
    """Multiply without unrolling first, image by image (report 002, optimisation 3)."""
    return ((_implicit(_layer(layer), 1, tile), batch),)


def layer_batched(layer: int = 1, batch: int = 1000, tile: int = 24) -> Kernel:
    """Multiply without unrolling, images in the grid's z (report 002, optimisation 4)."""
    return _implicit(_layer(layer), batch, tile)


def layer_tuned(layer: int = 1, batch: int = 1000) -> Kernel:
    """Batched, with blocks of 16 x 16 and 24 x 24 by layer (report 002, optimisation 5)."""
    return _implicit(_layer(layer), batch, _BEST_TILES[layer])


def layer_restrict(layer: int = 1, batch: int = 1000) -> Kernel:
    """Blocks by layer, read-only path, loops unrolled (report 002, optimisation 6)."""
    return _implicit(_layer(layer), batch, _BEST_TILES[layer], is_restrict=True)


def _unrolling(one: _Layer) -> Kernel:
    """Copy an image into a matrix: a thread for each input map and output place."""
    threads, taps = one.inputs * one.places, one.taps**2
    problem = affine(
        {"T": threads, "U": taps},
        {"input": "T U", "unrolled": "T U"},
        name=f"unroll {one.inputs} maps of {one.image} x {one.image}",
    )
    plane = one.image**2
    read = DigitLayout(
        (
            ((one.inputs, plane), (one.side, one.image), (one.side, 1)),
            ((one.taps, one.image), (one.taps, 1)),
        ),
        one.inputs * plane,
    )
    written = DigitLayout(
        (((one.inputs, taps * one.places), (one.places, 1)), ((taps, one.places),)),
        one.sums * one.places,
    )
    return Kernel.of(
        problem,
        f"T:{threads}@block_x T:{_UNROLL_THREADS}@thread_x U:{taps}",
        name="unroll",
        layouts={"input": read, "unrolled": written},
        registers=32,
        multiplies=False,
    )


def _multiply(one: _Layer, tile: int, weights: str = "shared") -> Kernel:
    """Multiply the weights by one unrolled image."""
    rows = max(tile, one.outputs)
    problem = gemm(m=rows, n=one.places, k=one.sums)
    return Kernel.of(
        cut(problem, {"A": {"M": one.outputs}, "C": {"M": one.outputs}}),
        f"M:{rows}@block_y N:{one.places}@block_x M:{tile}@thread_y N:{tile}@thread_x "
        f"K:{one.sums} K:{tile}",
        name="multiply",
        reads={
            "A": f"shared@K,vector={row_vector(tile)}" if weights == "shared" else weights,
            "B": "shared@K",
        },
        guard="load",
        registers=_TILED_REGISTERS,
    )


def _implicit(one: _Layer, images: int, tile: int, is_restrict: bool = False) -> Kernel:
    """Multiply the weights by images that are unrolled while they are read."""
    places, sums, outputs = one.places, one.sums, one.outputs
    problem = affine(
        {"N": images, "M": max(tile, outputs), "L": places, "U": sums},
        {"weight": f"M<{outputs} U", "input": "N U L", "output": f"N M<{outputs} L"},
        name=f"implicit {images} x {outputs} x {places} x {sums}",
    )
    via = ",via=readonly" if is_restrict else ""
    return Kernel.of(
        problem,
        f"N:{images}@block_z M:{max(tile, outputs)}@block_y L:{places}@block_x M:{tile}@thread_y "
        f"L:{tile}@thread_x U:{sums} U:{tile}",
        name="implicit",
        reads={"weight": f"shared@U,vector={row_vector(tile)}{via}", "input": f"shared@U{via}"},
        layouts={"input": one.view(images)},
        guard="load",
        registers=_TILED_REGISTERS,
        is_unrolled=is_restrict,
    )
