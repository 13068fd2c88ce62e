"""How a contraction is cut: register tiles, blocks, what is packed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

from loopsched.codegen.contraction import Contraction, Operand
from loopsched.codegen.memory import LINE, PAGE


class Walk(NamedTuple):
    """Dimensions that are walked as one, in blocks of one of them.

    Parameters
    ----------
    dims : tuple of str
        Outermost first.
    cut : int
        Which of them is cut: those before it are walked one by one, those after
        it are whole in each block.
    block : int
        Steps of the cut dimension in a block.
    """

    dims: tuple[str, ...]
    cut: int = 0
    block: int = 1

    @property
    def outer(self) -> tuple[str, ...]:
        """Dimensions walked one by one."""
        return self.dims[: self.cut]

    @property
    def inner(self) -> tuple[str, ...]:
        """The cut dimension, and those that are whole in a block."""
        return self.dims[self.cut :]


class Plan(NamedTuple):
    """How a contraction is cut.

    Parameters
    ----------
    batch : tuple of str
        Dimensions of both operands and the output.
    rows, cols, sums : Walk
        Dimensions of the left operand and the output, of the right operand
        and the output, and of neither the output.
    tile_rows, tile_cols : int
        The register tile; columns are lanes of vectors.
    row_parts : int
        In how many parts threads take the rows.
    packs_left, packs_right : bool
        Whether blocks are copied so that the kernel finds them in order.
    is_right_given : bool
        Whether the right operand comes packed already, block after block.
    slides : bool
        Whether a window slides over planes instead (`Window`): columns are
        the rows of a plane and what lies across, ``tile_rows`` of its rows
        are a tile.
    sums_in_lanes : bool
        Whether lanes hold points of the sum (`DotTiles`): both operands are contiguous along
        it, and each sum of a tile is a vector whose lanes are added up at its end.
    asks_l3 : bool
        Whether tiles ask for rows and columns in place that the last cache holds, too, not only
        for those of operands that are larger than `L3_BYTES`.
    """

    batch: tuple[str, ...]
    rows: Walk
    cols: Walk
    sums: Walk
    tile_rows: int
    tile_cols: int
    row_parts: int = 1
    packs_left: bool = False
    packs_right: bool = True
    is_right_given: bool = False
    slides: bool = False
    sums_in_lanes: bool = False
    asks_l3: bool = True


def listed(values: Sequence[Any]) -> Plan:
    """Make a plan of lists, as JSON has it.

    Examples
    --------
    >>> import json
    >>> one = Walk(("M",), 0, 16)
    >>> plan = Plan((), one, one._replace(dims=("N",)), one._replace(dims=("K",)), 4, 16)
    >>> listed(json.loads(json.dumps(plan))) == plan
    True
    """
    batch, *walks = values[:4]
    rows, cols, sums = (Walk(tuple(dims), *rest) for dims, *rest in walks)
    return Plan(tuple(batch), rows, cols, sums, *values[4:])


FAR_BYTES = 1024
"""So far apart lie runs that hardware does not foresee: copies ask for them."""

NEAR_BYTES = 5 << 18
"""Operands that are no larger together are mostly found in L2: tiles ask for nothing."""
L3_BYTES = 1 << 23
"""A left operand that is no larger, or all operands together, come from the last cache."""
MANY_BYTES = 1 << 21
"""Of an operand that is no larger tiles ask for nothing to be packed: that gained nothing."""
BLOCK_BYTES = 5 << 16
"""A packed block, if it is no larger, leaves room in L2 for what the next one is read from."""
OUTSIDE_BYTES = 1 << 24
"""An operand that is larger is taken to come from memory, whatever the caches."""
LEAST_BYTES = 4
"""Of an element in a packed block, or of what is computed."""
HELD_BYTES = 1 << 14
"""A block of the right operand that is no larger stays in L1 beside a tile of the left one."""

Sizes = list[tuple[str, int]]


def inner_sizes(task: Contraction, walk: Walk, chunk: int) -> Sizes:
    """List the dimensions of a block with their sizes, the cut one having ``chunk`` steps."""
    if not walk.inner:
        return []
    return [(walk.inner[0], chunk), *((dim, task.size(dim)) for dim in walk.inner[1:])]


def chunks(task: Contraction, walk: Walk) -> tuple[int, int, int]:
    """Count whole blocks, and say how many steps they and the last one (or 0) have."""
    if not walk.inner:
        return 1, 1, 0
    size = task.size(walk.inner[0])
    return size // walk.block, walk.block, size % walk.block


def largest(task: Contraction, walk: Walk) -> Sizes:
    """List the dimensions of the largest blocks."""
    count, block, rest = chunks(task, walk)
    return inner_sizes(task, walk, block if count else rest)


def merged_step(operand: Operand, dims: list[tuple[str, int]]) -> int | None:
    """Find the step by which an operand moves over dimensions walked as one; None if none.

    Examples
    --------
    >>> from loopsched.codegen.element import FP32
    >>> image = Operand("image", FP32, (("P", 10), ("Q", 1)))
    >>> merged_step(image, [("P", 7), ("Q", 10)]), merged_step(image, [("P", 7), ("Q", 8)])
    (1, None)
    """
    step, run = None, 1
    for dim, size in reversed(dims):
        if size == 1:
            continue
        if step is None:
            step = operand.step(dim)
        elif operand.step(dim) != step * run:
            return None
        run *= size
    return 0 if step is None and not dims else step if step is not None else 1


def walked(task: Contraction, walk: Walk) -> tuple[str, ...]:
    """List the dimensions of a block of which it has more than one point."""
    return tuple(dim for dim, size in inner_sizes(task, walk, walk.block) if size > 1)


def skips(task: Contraction, plan: Plan, side: str = "left") -> bool:
    """Whether tiles that read an operand in place can leave out what its guards refuse.

    Each guard sees one dimension of the sum, and of what is tiled either none of a block
    (then that dimension's loop is cut) or only one and nothing else: that dimension is unrolled,
    and each step has its own rows, if they are whole in a block, or its own mask for columns.
    """
    seen: set[str] = set()
    if side == "left":
        operand, inner = task.left, plan.rows.inner
        can_be_tiled = len(inner) == 1 and plan.rows.block == task.size(inner[0])
    else:
        operand, inner = task.right, walked(task, plan.cols)
        can_be_tiled = len(inner) == 1
    for guard in operand.guards:
        dims = {dim for dim, _ in guard.steps}
        sums, tiled = dims & set(plan.sums.dims), dims & set(inner)
        if len(sums) != 1 or sums & seen or not sums <= set(plan.sums.inner[1:]):
            return False
        seen |= sums
        outer = [dim for dim in dims - sums - tiled if task.size(dim) > 1]
        if tiled and (outer or not can_be_tiled):
            return False
        if not tiled and guard.step(*sums) < 1:
            return False
    return True


def turns_right(task: Contraction, plan: Plan) -> bool:
    """Whether packing the right operand transposes: it is contiguous along the sum alone."""
    right = task.right
    across = merged_step(right, largest(task, plan.cols))
    is_across = across not in (None, 1) and not right.guards
    return is_across and merged_step(right, largest(task, plan.sums)) == 1


def is_panel(task: Contraction, plan: Plan) -> bool:
    """Whether columns lie as one in the right operand: then they are packed tile by tile."""
    right, cols = task.right, largest(task, plan.cols)
    guarded = any(guard.step(dim) for guard in right.guards for dim, _ in cols)
    return not guarded and merged_step(right, cols) is not None


def packed_pitch(task: Contraction, plan: Plan, lanes: int, vector_bytes: int) -> int:
    """Elements between two rows of a packed block of the right operand, or a panel's width.

    Rows of more than a line begin with one, so that tiles as wide as lines read no other;
    they lie no multiple of a page apart.
    """
    if is_panel(task, plan):
        return -(-plan.tile_cols // lanes) * lanes
    n, a_line = -(-length(largest(task, plan.cols)) // lanes), max(1, LINE // vector_bytes)
    if n > a_line:
        n = -(-n // a_line) * a_line
    return (n + a_line * (n * vector_bytes % PAGE == 0)) * lanes


def asks_beside(task: Contraction, plan: Plan, vector_bytes: int) -> bool:
    """Whether tiles ask for the columns beside their own while they multiply: those in place.

    For the lines of each point of the sum; where lanes hold points, for a line of each column.
    Short vectors multiply too little at a point to hide that.  Where lanes hold points and no
    tiles share the columns, they are read as fast as can be already, except from memory.
    """
    right, size = task.right, task.right.element.n_bytes
    is_near = task.n_bytes <= (NEAR_BYTES if plan.asks_l3 else L3_BYTES)
    if plan.packs_right or right.guards or vector_bytes < LINE or is_near:
        return False
    cols = largest(task, plan.cols)
    step = merged_step(right, cols)
    if step is None or length(cols) <= plan.tile_cols:
        return False
    if plan.sums_in_lanes:
        is_shared = length(largest(task, plan.rows)) > plan.tile_rows
        return size >= LEAST_BYTES and (is_shared or task.bytes_of(right) >= OUTSIDE_BYTES)
    steps = [abs(right.step(dim)) for dim in plan.sums.dims if task.size(dim) > 1]
    is_lined = step == 1 and plan.tile_cols * size >= LINE
    return is_lined and bool(steps) and min(steps) * size >= LINE


def asks_rows(task: Contraction, plan: Plan) -> bool:
    """Whether tiles may ask for rows of the left operand that the next ones read in place."""
    is_plain = not plan.packs_left and not task.left.guards
    return is_plain and (plan.asks_l3 or task.bytes_of(task.left) > L3_BYTES)


def asks_for_next(task: Contraction, plan: Plan, vector_bytes: int) -> bool:
    """Whether tiles ask for what the next block of the right operand is packed from.

    Where packing transposes, which reads many runs at once, and L2 has room for both.
    """
    right = task.right
    if not plan.packs_right or plan.is_right_given or plan.sums_in_lanes:
        return False
    is_short = vector_bytes < LINE or right.element.n_bytes < LEAST_BYTES
    if is_short or task.bytes_of(right) <= MANY_BYTES:
        return False
    points = length(largest(task, plan.cols)) * length(largest(task, plan.sums))
    outer = *plan.batch, *plan.cols.outer, *plan.sums.outer
    is_apart = any(task.size(dim) > 1 for dim in outer)  # the next block may begin anywhere
    has_room = points * right.element.n_bytes <= BLOCK_BYTES
    return has_room and not is_apart and turns_right(task, plan)


def goes_across(task: Contraction, plan: Plan) -> bool:
    """Whether the tiles of a block follow each other along its rows, not down its columns.

    Where L1 holds the right operand's block.  The left one is read once then, and few rows of
    the output are written at a time: their lines share a set of L1 where they lie multiples of
    4096 bytes apart, as planes often do.
    """
    if plan.sums_in_lanes:
        return False
    right, dims = task.right, largest(task, plan.cols) + largest(task, plan.sums)
    reach = dict[int | str, int]()  # of the dimensions of one step, which overlap in place
    for dim, size in dims:
        key = dim if plan.packs_right else abs(right.step(dim))
        if key:
            reach[key] = reach.get(key, 1) + size - 1
    n_bytes = max(LEAST_BYTES, right.element.n_bytes)
    return math.prod(reach.values()) * n_bytes <= HELD_BYTES


def is_rounded(task: Contraction) -> bool:
    """Whether the output would round the sums of a block: then none is cut."""
    return task.out.element.n_bytes < 4


def cut(total: int, each: int) -> list[tuple[int, int]]:
    """Cut a length into equal parts and a rest: sizes with their counts.

    Examples
    --------
    >>> cut(168, 9)
    [(9, 18), (6, 1)]
    """
    found = [(each, total // each)] if total >= each else []
    return found + ([(total % each, 1)] if total % each else [])


def even(total: int, most: int) -> list[tuple[int, int]]:
    """Cut a length into as few parts as can be, as even as can be: sizes with their counts.

    Examples
    --------
    >>> even(168, 9), even(10, 9)
    ([(9, 16), (8, 3)], [(5, 2)])
    """
    n = -(-total // most)
    size, larger = divmod(total, n)
    return [(size + 1, larger), (size, n - larger)] if larger else [(size, n)]


@lru_cache(maxsize=4096)
def heights(total: int, most: int, largest: int) -> list[tuple[int, int]]:
    """Cut rows of a block into register tiles: sizes with their counts.

    Evenly; but those of a smaller block than the ``largest`` as many as can be into tiles
    that the largest has, too, so that few different ones are compiled.

    Examples
    --------
    >>> heights(53, 28, 53), heights(52, 28, 53), heights(45, 28, 53)
    ([(27, 1), (26, 1)], [(26, 2)], [(27, 1), (18, 1)])
    """
    found, known = even(total, most), even(largest, most)
    return found if {*dict(found)} <= {*dict(known)} else cut(total, known[0][0])


def roles(task: Contraction) -> dict[str, list[str]]:
    """Sort dimensions by the operands that they move over."""
    found: dict[str, list[str]] = {"batch": [], "rows": [], "cols": [], "sums": []}
    for dim, size in task.sizes:
        if dim not in task.out.dims:
            if size > 1 or task.left.step(dim) or task.right.step(dim):
                found["sums"].append(dim)
        elif dim in task.left.dims and dim in task.right.dims:
            found["batch"].append(dim)
        else:
            found["cols" if dim in task.right.dims else "rows"].append(dim)
    return found


def length(dims: Sequence[tuple[str, int]]) -> int:
    """Points of a block."""
    points = 1
    for _, size in dims:
        points *= size
    return points


def runs(parts: list[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """Place parts of a length one behind the other: start, stop and step of each kind."""
    ends = [0, *accumulate(size * n for size, n in parts)]
    return [(*ends, size) for ends, (size, _) in zip(pairwise(ends), parts, strict=True)]
