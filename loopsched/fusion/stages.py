"""What passes its output on tile by tile: layers and poolings."""

from __future__ import annotations

from dataclasses import dataclass

from loopsched.arguments import Checker
from loopsched.errors import ProblemError
from loopsched.footprint import tensor_bytes
from loopsched.problem import Axis, Problem


@dataclass(frozen=True, slots=True)
class Window:
    """How outputs along one image axis reach into the input.

    Parameters
    ----------
    read, made : int
        Stored positions of the input; positions of the output.
    taps, stride, dilation, before : int
        Filter or window size; its steps; padding in front.

    Examples
    --------
    >>> bin(Window(read=8, made=4, taps=3, stride=2, dilation=1, before=1).reach(1))
    '0b1110'
    """

    read: int
    made: int
    taps: int = 1
    stride: int = 1
    dilation: int = 1
    before: int = 0

    def reach(self, position: int) -> int:
        """Mark the stored positions that one output position reads, as bits."""
        first = position * self.stride - self.before
        places = (first + tap * self.dilation for tap in range(self.taps))
        return sum(1 << place for place in places if 0 <= place < self.read)


@dataclass(frozen=True, slots=True)
class Pool:
    """A pooling between two layers: no weights, channel by channel.

    Parameters
    ----------
    window : int
        Height and width.
    stride : int, optional
        By default the window.
    padding : int
        On every side.

    Raises
    ------
    ProblemError
        If a number cannot be.

    Examples
    --------
    >>> Pool(3, stride=2, padding=1).made(112)
    56
    """

    window: int
    stride: int | None = None
    padding: int = 0

    def __post_init__(self) -> None:
        check = Checker("pool", ProblemError)
        check.count("window", self.window)
        check.count("stride", self.step)
        check.count("padding", self.padding, 0)
        check.finish()

    @property
    def step(self) -> int:
        """The stride."""
        return self.window if self.stride is None else self.stride

    def made(self, size: int) -> int:
        """Count the output positions along an axis of this size; 0 if none fits."""
        return max(0, (size + 2 * self.padding - self.window) // self.step + 1)

    def __str__(self) -> str:
        padded = f" pad{self.padding}" if self.padding else ""
        return f"pool {self.window}x{self.window} stride{self.step}{padded}"


@dataclass(frozen=True, slots=True)
class Stage:
    """One layer or pooling, as a fused group sees it.

    Parameters
    ----------
    name : str
    problem : Problem or None
        None: a pooling.
    batch : int
        What tiles cut without any halo: images, or rows of a matrix.
    channels_in, channels_out : int
    rows, columns : Window
    bytes_in, bytes_out : int, bytes
        Of one element.
    weight_bytes, weight_element_bytes : int, bytes
        Of all weights; of one.
    macs : int
        A position of the output, all channels together.
    by_channel : bool
        Whether each output channel needs one input channel only.
    """

    name: str
    problem: Problem | None
    batch: int
    channels_in: int
    channels_out: int
    rows: Window
    columns: Window
    bytes_in: int
    bytes_out: int
    weight_bytes: int = 0
    weight_element_bytes: int = 0
    macs: int = 0
    by_channel: bool = False

    @property
    def positions(self) -> int:
        """Positions of the output, images together."""
        return self.batch * self.rows.made * self.columns.made


def why_not_fused(problem: Problem) -> str | None:
    """Say why a problem can be in no fused group; None if it can.

    Examples
    --------
    >>> from loopsched.builders import conv2d, gemm
    >>> print(why_not_fused(gemm(m=4, n=4, k=4)))
    None
    >>> why_not_fused(conv2d(c=4, k=4, p=5, q=5, r=3, s=3, pass_="backward_data"))
    'its pass is backward_data; only forward ones pass their output on'
    """
    attributes = dict(problem.attributes)
    if problem.kind == "conv2d":
        which = attributes.get("pass", "forward")
        if which != "forward":
            return f"its pass is {which}; only forward ones pass their output on"
        return None
    if problem.kind == "gemm":
        return None
    return f"it is a {problem.kind}; convolutions and matrix products can be fused"


def stage_of(problem: Problem, image: tuple[int, int] = (1, 1)) -> Stage:
    """See a problem as a stage.

    Parameters
    ----------
    problem : Problem
        One for which `why_not_fused` has no reason.
    image : (int, int)
        Of a matrix product whose rows are flattened images: their height and width.

    Examples
    --------
    >>> from loopsched.builders import gemm
    >>> stage = stage_of(gemm(m=1, n=10, k=50), image=(5, 5))
    >>> stage.channels_in, stage.rows.taps, stage.macs
    (2, 5, 500)
    """
    size = problem.size
    if problem.kind == "gemm":
        high, wide = image
        return Stage(
            problem.name, problem, size["M"], size["K"] // (high * wide), size["N"],
            Window(high, 1, high), Window(wide, 1, wide),
            problem.tensor("A").element_bytes, problem.tensor("C").element_bytes,
            tensor_bytes(problem, problem.tensor("B")), problem.tensor("B").element_bytes,
            problem.macs // size["M"],
        )  # fmt: skip
    groups = size.get("G", 1)
    high_axis, wide_axis = problem.tensor("input").axes[-2:]
    return Stage(
        problem.name, problem, size["N"], groups * size["C"], groups * size["K"],
        _window(problem, high_axis), _window(problem, wide_axis),
        problem.tensor("input").element_bytes, problem.output_tensor.element_bytes,
        tensor_bytes(problem, problem.tensor("weight")), problem.tensor("weight").element_bytes,
        problem.macs // (size["N"] * size["P"] * size["Q"]),
        by_channel=size["C"] == size["K"] == 1,
    )  # fmt: skip


def _window(problem: Problem, axis: Axis) -> Window:
    (moving, stride), (tap, dilation) = axis.terms
    made, taps = problem.size[moving], problem.size[tap]
    reached = (made - 1) * stride + (taps - 1) * dilation + 1 + axis.offset
    return Window(axis.size or reached, made, taps, stride, dilation, -axis.offset)


def pool_stage(pool: Pool, after: Stage) -> Stage:
    """Make the stage of a pooling behind a layer.

    Raises
    ------
    ProblemError
        If its window is larger than what it reads.
    """
    windows = []
    for side in (after.rows, after.columns):
        made = pool.made(side.made)
        if not made:
            raise ProblemError(
                f"{pool} after '{after.name}': its window is larger than the {side.made} positions "
                "that it reads"
            )
        windows.append(Window(side.made, made, pool.window, pool.step, 1, pool.padding))
    width = after.bytes_out
    return Stage(
        str(pool), None, after.batch, after.channels_out, after.channels_out,
        windows[0], windows[1], width, width, by_channel=True,
    )  # fmt: skip
