"""What passes its output on tile by tile: layers and poolings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from loopsched.base.arguments import Checker
from loopsched.base.errors import ProblemError
from loopsched.network.node import Window
from loopsched.problems.footprint import tensor_bytes
from loopsched.problems.problem import Axis, Problem

# Along the height and along the width; None: every position for itself.
Windows = tuple[Window | None, Window | None]


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
    weight_bytes: int
    weight_element_bytes: int
    macs: int
    by_channel: bool

    @property
    def positions(self) -> int:
        """Positions of the output, images together."""
        return self.batch * self.rows.made * self.columns.made


def why_not_fused(problem: Problem) -> str | None:
    """Say why a problem can be in no fused group; None if it can.

    Examples
    --------
    >>> from loopsched.problems.builders import conv2d, gemm
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
    return f"it is a {problem.kind}; convolutions and GEMMs can be fused"


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
    >>> from loopsched.problems.builders import gemm
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
            by_channel=False,
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


def pool_stage(pool: Pool | Windows, after: Stage) -> Stage:
    """Make the stage of a pooling behind a layer.

    Raises
    ------
    ProblemError
        If its windows do not fit what they read.
    """
    have = after.rows.made, after.columns.made
    given = _pooled(pool, after) if isinstance(pool, Pool) else pool
    rows, columns = (window or Window(size, size) for window, size in zip(given, have, strict=True))
    if (rows.read, columns.read) != have:
        raise ProblemError(
            f"a pooling of {rows.read} x {columns.read} positions cannot read the {have[0]} x "
            f"{have[1]} that '{after.name}' makes"
        )
    name = str(pool) if isinstance(pool, Pool) else _pool_name(rows, columns)
    width = after.bytes_out
    return Stage(
        name, None, after.batch, after.channels_out, after.channels_out,
        rows, columns, width, width, 0, 0, 0, by_channel=True,
    )  # fmt: skip


def _pooled(pool: Pool, after: Stage) -> Windows:
    rows, columns = (
        Window(side.made, pool.made(side.made), pool.window, pool.step, 1, pool.padding)
        for side in (after.rows, after.columns)
    )
    for window in (rows, columns):
        if not window.made:
            raise ProblemError(
                f"{pool} after '{after.name}': its window is larger than the {window.read} "
                "positions that it reads"
            )
    return rows, columns


def _pool_name(rows: Window, columns: Window) -> str:
    def both(of: Callable[[Window], int]) -> str:
        return "x".join(str(one) for one in dict.fromkeys((of(rows), of(columns))))

    dilation, pad = both(lambda one: one.dilation), both(lambda one: one.before)
    return (
        f"pool {rows.taps}x{columns.taps} stride{both(lambda one: one.stride)}"
        + (f" dil{dilation}" if dilation != "1" else "")
        + (f" pad{pad}" if pad != "0" else "")
    )
