"""Every schedule of a small space, each nest once."""

from __future__ import annotations

from collections.abc import Iterator

from loopsched.nests.nest import Loop, Schedule
from loopsched.scheduler.space import Space

Slot = tuple[str | None, tuple[str, ...]]


def schedules(space: Space) -> Iterator[Schedule]:
    """List every loop nest of a space, whatever its constraints but the spatial one.

    `Space.size` counts choices of extents and orders for each block; several
    of them may be written as the same nest, because a loop on the border of
    two blocks may belong to either.  Here each nest comes once: each loop is in
    the outermost block that may have it.

    Examples
    --------
    >>> from loopsched import buffer_arch, gemm
    >>> from loopsched.scheduler import space_of
    >>> space = space_of(gemm(m=2, n=2, k=1), buffer_arch(capacity_bytes=64))
    >>> [str(nest) for nest in schedules(space)]
    ['M:2 N:2', 'N:2 M:2']
    """
    slots: tuple[Slot, ...] = (
        *((slot.unit, slot.dims) for slot in space.slots),
        (None, space.problem.dims),
    )
    now = {dim: size for dim, size in space.problem.sizes if size > 1}
    yield from _inside(slots, now, (), 0, frozenset())


def _inside(
    slots: tuple[Slot, ...],
    now: dict[str, int],
    outer: tuple[Loop, ...],
    at: int,
    used: frozenset[str],
) -> Iterator[Schedule]:
    """Complete a nest of which the loops so far end in block ``at``."""
    if not now:
        yield Schedule(outer)
        return
    for dim, size in now.items():
        for unit in dict.fromkeys(unit for unit, _ in slots[at:]):
            block = _first_block(slots, at, used, dim, unit)
            if block is None:
                continue
            taken = (used if block == at else frozenset()) | {dim}
            loops = (*outer, Loop(dim, size, unit))
            for extent in range(1, size if block < len(slots) - 1 else 2):
                rest = {**now, dim: extent}
                if extent == 1:
                    del rest[dim]
                yield from _inside(slots, rest, loops, block, taken)


def _first_block(
    slots: tuple[Slot, ...], at: int, used: frozenset[str], dim: str, unit: str | None
) -> int | None:
    for block in range(at, len(slots)):
        if slots[block][0] == unit and dim in slots[block][1] and (block > at or dim not in used):
            return block
    return None
