"""Which layers chain: each reads only what the one before made."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from loopsched.base.arguments import show
from loopsched.base.errors import WorkloadError
from loopsched.fusion.stages import Pool, Stage, Windows, pool_stage, stage_of, why_not_fused
from loopsched.network.node import Window
from loopsched.problems.problem import Problem


@dataclass(frozen=True, slots=True)
class Link:
    """A layer that reads what the one before made: with a pooling between, perhaps.

    Parameters
    ----------
    after, before : str
        Names of the two.
    pool : str
        Such as ``pool 2x2 stride2``; empty: none.
    is_assumed : bool
        Whether the pooling is there only because the shapes ask for one.
    """

    after: str
    before: str
    pool: str = ""
    is_assumed: bool = False


@dataclass(frozen=True, slots=True)
class Break:
    """Two neighbours that do not chain, and why."""

    after: str
    before: str
    reason: str


@dataclass(frozen=True, slots=True)
class Chain:
    """Layers of which each reads only what the one before made.

    Parameters
    ----------
    stages : tuple of Stage
        Layers, and the poolings between them.
    count : int
        How often the whole chain occurs.
    links : tuple of Link
        One for each pair of neighbouring layers.
    """

    stages: tuple[Stage, ...]
    count: int = 1
    links: tuple[Link, ...] = ()

    @property
    def layers(self) -> tuple[Problem, ...]:
        """The layers, without poolings."""
        return tuple(stage.problem for stage in self.stages if stage.problem is not None)


def joined(
    before: Stage, problem: Problem, pools: Sequence[Pool | Windows], assume: bool
) -> list[Stage] | str:
    """Append a layer to a stage: poolings if there are any, and the layer's; or why not.

    Parameters
    ----------
    before : Stage
        A layer's.
    problem : Problem
    pools : sequence of Pool, or of windows
        What is known to lie between, in order.
    assume : bool
        Whether a pooling may be assumed where shapes ask for one; only if none is known.
    """
    reason = why_not_fused(problem)
    if reason:
        return f"'{problem.name}' cannot be fused: {reason}"
    if before.problem is not None:
        reason = why_not_fused(before.problem)
        if reason:
            return f"'{before.name}' cannot be fused: {reason}"
    found: list[Stage] = []
    for pool in pools:
        before = pool_stage(pool, before)
        found.append(before)
    made = before.rows.made, before.columns.made
    next_, fault = _reader(before, problem, made)
    if next_ is None and not pools and assume:
        guessed = _guessed_pool(before, problem)
        if guessed is not None:
            return joined(before, problem, [guessed], False)
    if next_ is None:
        return fault
    if next_.bytes_in != before.bytes_out:
        return (
            f"'{before.name}' makes elements of {before.bytes_out} bytes, '{problem.name}' reads "
            f"elements of {next_.bytes_in}"
        )
    return [*found, next_]


def _reader(before: Stage, problem: Problem, made: tuple[int, int]) -> tuple[Stage | None, str]:
    """See a problem as the reader of an image of a given size, if its shapes agree."""
    size = problem.size
    if problem.kind == "gemm" and problem.tensor("A").dims[0] != "M":
        return None, f"'{problem.name}' reads the rows of '{before.name}' as columns"
    have = f"{before.batch} x {before.channels_out} x {made[0]} x {made[1]}"
    if problem.kind == "gemm":
        fits = size["M"] == before.batch and size["K"] == before.channels_out * math.prod(made)
        want = f"{size['M']} x {size['K']}"
        stage = stage_of(problem, made) if fits else None
    else:
        stage = stage_of(problem)
        reads = stage.batch, stage.channels_in, stage.rows.read, stage.columns.read
        fits = reads == (before.batch, before.channels_out, *made)
        want = " x ".join(map(str, reads))
        stage = stage if fits else None
    return stage, f"'{before.name}' makes {have}, '{problem.name}' reads {want}"


def _guessed_pool(before: Stage, problem: Problem) -> Pool | None:
    """Guess the pooling between two layers: the smallest that makes the shapes agree.

    Windows that cut the image evenly come first: 7 x 7 to 1 x 1 is one of 7, not of 4.
    """
    high, wide = before.rows.made, before.columns.made
    steps = range(2, min(high, wide) + 1)
    for step in sorted(steps, key=lambda one: (bool(high % one or wide % one), one)):
        if _reader(before, problem, (high // step, wide // step))[0] is not None:
            return Pool(step)
    return None


def chains_of(
    layers: Sequence[Problem | Pool], counts: Sequence[int] = (), *, assume_pooling: bool = True
) -> tuple[tuple[Chain, ...], tuple[Break, ...]]:
    """Cut a plain list of layers into chains.

    Consecutive layers chain if the shape that one makes is the one that the
    next reads; a list says no more.  A convolution that occurs several times
    stands for copies in a row if it can read its own output (a product does
    not: query, key and value are side by side); neighbours of equal count are
    a block that is repeated as a whole.

    Parameters
    ----------
    layers : sequence of Problem or Pool
        In the order of execution; a pooling only between two layers.
    counts : sequence of int
        How often each occurs; empty: once.
    assume_pooling : bool
        Whether a pooling is assumed where the shapes ask for one: windows
        that do not overlap, no padding.

    Returns
    -------
    tuple of Chain, tuple of Break
        Every layer is in one chain, alone if need be; and where chains end.

    Raises
    ------
    WorkloadError
        If there is no layer, or a pooling does not lie between two.
    """
    _check(layers)
    chains: list[Chain] = []
    breaks: list[Break] = []
    for items, count in _blocks(layers, counts or (1,) * len(layers)):
        stages: list[Stage] = []
        links: list[Link] = []
        pool: Pool | None = None
        for item in items:
            if isinstance(item, Pool):
                pool = item
                continue
            if not stages:
                stages = [first_stage(item)]
                continue
            more = joined(stages[-1], item, [pool] if pool else [], assume_pooling)
            if isinstance(more, str):
                breaks.append(Break(stages[-1].name, item.name, more))
                chains.append(Chain(tuple(stages), count, tuple(links)))
                stages, links = [first_stage(item)], []
            else:
                links.append(link_of(stages[-1], more, is_assumed=pool is None))
                stages += more
            pool = None
        chains.append(Chain(tuple(stages), count, tuple(links)))
    return tuple(chains), tuple(breaks)


def link_of(before: Stage, more: Sequence[Stage], *, is_assumed: bool) -> Link:
    """Describe what `joined` appended; ``is_assumed`` is of poolings, if there are any."""
    pools = ", ".join(stage.name for stage in more[:-1])
    return Link(before.name, more[-1].name, pools, is_assumed and bool(pools))


def first_stage(problem: Problem) -> Stage:
    """See the first layer of a chain as a stage; one that cannot be fused is alone."""
    if why_not_fused(problem) is None:
        return stage_of(problem)
    width = problem.output_tensor.element_bytes
    one = Window(1, 1)
    return Stage(problem.name, problem, 1, 1, 1, one, one, width, width, 0, 0, 0, by_channel=False)


def listed(layers: object) -> tuple[Problem | Pool, ...]:
    """Take a plain sequence as a tuple.

    Raises
    ------
    WorkloadError
        If it is none.
    """
    if not isinstance(layers, Sequence) or isinstance(layers, str):
        raise WorkloadError(
            f"layers is {show(layers)}; a sequence of problems, a workload or a network is needed"
        )
    return tuple(layers)


def _check(layers: Sequence[Problem | Pool]) -> None:
    faults = []
    if not any(isinstance(item, Problem) for item in layers):
        faults.append("no layer; at least one is needed")
    for at, item in enumerate(layers):
        if isinstance(item, Pool):
            sides = [*layers[max(0, at - 1) : at], *layers[at + 1 : at + 2]]
            if len(sides) < 2 or any(isinstance(side, Pool) for side in sides):
                faults.append(f"item {at}: {item} does not lie between two layers")
        elif not isinstance(item, Problem):
            faults.append(f"item {at} is a {type(item).__name__}; a Problem or a Pool is needed")
    WorkloadError.refuse("layers to fuse", faults)


def _blocks(
    layers: Sequence[Problem | Pool], counts: Sequence[int]
) -> Iterator[tuple[list[Problem | Pool], int]]:
    """Group a list into stretches that occur once, with copies, and repeated blocks."""
    once: list[Problem | Pool] = []
    at = 0
    while at < len(layers):
        stop = at + 1
        while stop < len(layers) and counts[stop] == counts[at]:
            stop += 1
        block, count = list(layers[at:stop]), counts[at]
        only = block[0]
        if count == 1:
            once += block
        elif len(block) == 1 and isinstance(only, Problem) and _reads_itself(only):
            once += block * count
        else:
            if once:
                yield once, 1
            once = []
            yield block, count
        at = stop
    if once:
        yield once, 1


def _reads_itself(problem: Problem) -> bool:
    return (
        problem.kind == "conv2d"
        and not why_not_fused(problem)
        and not isinstance(joined(stage_of(problem), problem, [], False), str)
    )
