"""Plans of fusion: which layers run together, in what tiles, and what that moves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from loopsched.base.rows import picked
from loopsched.fusion.caches import lru_bytes
from loopsched.fusion.chains import Break, Link
from loopsched.fusion.single import Single
from loopsched.fusion.stages import Stage
from loopsched.fusion.tiles import Choice
from loopsched.nests.nest import Schedule

_SUMS = (
    "working_set_bytes", "lru_bytes", "dram_bytes", "unfused_bytes", "saved_bytes", "macs",
    "extra_macs", "time_s",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class FusedGroup:
    """Consecutive layers that run together, tile by tile; or one layer alone.

    Parameters
    ----------
    layers : tuple of str
        Their names, first to last.
    tile : tuple of (str, int)
        Extents of a tile of the last layer's output; of a layer alone, of
        what is in the buffer at once.
    order : tuple of str
        Loops over tiles, outermost first.
    halo : str
        ``recompute``: each tile makes all that it needs.  ``retain``: what
        later tiles need is kept, and nothing is made twice.  Empty for a layer
        alone.
    keeps_input : bool
        Whether what later tiles need of the group's input is kept, too.
    resident_weights : tuple of str
        Layers whose weights stay from the first tile to the last; the others'
        are fetched for every tile.
    working_set_bytes : int
        Capacity that all of this takes.
    dram_bytes : int
        What the group moves.
    unfused_bytes : int
        What its layers move one by one, each in the whole capacity.
    macs, extra_macs : int
        Multiply-accumulates; how many more than the layers have. Negative where a stride
        skips outputs of an earlier layer.
    lru_bytes : int or None
        A cache that evicts the least recently used moves no more than
        ``dram_bytes`` if it is as large as this, and does not write back what
        is dead; None for a layer alone.
    count : int
        How often the group occurs.
    time_s : float or None
        Bound by the machine's multiply-accumulates and bandwidth, if there is
        a machine.
    schedule : Schedule or None
        Of a layer alone.
    stages : tuple of Stage
        Layers, and poolings between them.
    """

    layers: tuple[str, ...]
    tile: tuple[tuple[str, int], ...]
    order: tuple[str, ...]
    halo: str
    keeps_input: bool
    resident_weights: tuple[str, ...]
    working_set_bytes: int
    dram_bytes: int
    unfused_bytes: int
    macs: int
    extra_macs: int
    lru_bytes: int | None
    count: int
    time_s: float | None
    schedule: Schedule | None
    stages: tuple[Stage, ...]

    @property
    def is_fused(self) -> bool:
        """Whether it has several layers."""
        return len(self.layers) > 1

    @property
    def saved_bytes(self) -> int:
        """What fusing saves each time the group occurs."""
        return self.unfused_bytes - self.dram_bytes

    @property
    def cut_tile(self) -> tuple[tuple[str, int], ...]:
        """The tile's extents that are less than the whole."""
        if self.schedule is not None and self.stages[0].problem is not None:
            whole = self.stages[0].problem.size
        else:
            last = self.stages[-1]
            whole = dict(zip(tile_dims(last), last_sizes(last), strict=False))
        return tuple((dim, extent) for dim, extent in self.tile if extent < whole[dim])

    def row(self) -> dict[str, Any]:
        """Write the group as one row of plain values."""
        return {
            "layers": "+".join(self.layers),
            "n_layers": len(self.layers),
            "count": self.count,
            "tile": " ".join(f"{dim}:{extent}" for dim, extent in self.tile),
            "order": ">".join(self.order),
            "halo": self.halo or None,
            "keeps_input": self.keeps_input,
            "resident_weights": "+".join(self.resident_weights),
            "schedule": None if self.schedule is None else str(self.schedule),
            **picked(self, *_SUMS),
        }


@dataclass(frozen=True, slots=True)
class FusionPlan:
    """The best groups of layers to run together within a capacity.

    Parameters
    ----------
    name : str
    capacity_bytes : int
    objective : {'dram_bytes', 'time'}
    groups : tuple of FusedGroup
        In the order of execution.
    links : tuple of Link
        Neighbours that chain; with the poolings that lie between them.
    breaks : tuple of Break
        Neighbours that do not, and why.
    sums_bytes : int
        What is added to outputs from elsewhere, as in residual blocks: read once, fused or
        not, and not part of the other figures.
    """

    name: str
    capacity_bytes: int
    objective: str
    groups: tuple[FusedGroup, ...]
    links: tuple[Link, ...]
    breaks: tuple[Break, ...]
    sums_bytes: int = 0

    @property
    def assumed(self) -> tuple[Link, ...]:
        """Poolings that are assumed because the shapes require them; each once."""
        return tuple(dict.fromkeys(link for link in self.links if link.is_assumed))

    @property
    def dram_bytes(self) -> int:
        """What all groups move, with counts."""
        return sum(group.count * group.dram_bytes for group in self.groups)

    @property
    def unfused_bytes(self) -> int:
        """What all layers move one by one."""
        return sum(group.count * group.unfused_bytes for group in self.groups)

    @property
    def saved_bytes(self) -> int:
        """What fusing saves."""
        return self.unfused_bytes - self.dram_bytes

    @property
    def macs(self) -> int:
        """Multiply-accumulates of all groups, with counts."""
        return sum(group.count * group.macs for group in self.groups)

    @property
    def extra_macs(self) -> int:
        """Multiply-accumulates beyond those of the layers run one by one."""
        return sum(group.count * group.extra_macs for group in self.groups)

    @property
    def time_s(self) -> float | None:
        """Time bounds of all groups together, if there is a machine."""
        times = [(group.count, group.time_s) for group in self.groups]
        return sum(n * one for n, one in times if one is not None) if times[0][1] else None

    def rows(self) -> list[dict[str, Any]]:
        """List the groups as rows of plain values.

        Examples
        --------
        >>> from loopsched import conv2d
        >>> from loopsched.fusion import fuse
        >>> layer = conv2d(c=16, k=16, h=32, w=32, r=3, s=3, padding=1)
        >>> rows = fuse([layer, layer], capacity_bytes=65536).rows()
        >>> [(row["n_layers"], row["dram_bytes"], row["unfused_bytes"]) for row in rows]
        [(2, 149504, 280576)]
        """
        head = {"capacity_bytes": self.capacity_bytes}
        return [{"group": at, **group.row(), **head} for at, group in enumerate(self.groups)]


def alone(stage: Stage, found: Single, working_set_bytes: int, time_s: float | None) -> FusedGroup:
    """Describe a layer that runs alone."""
    problem = stage.problem
    macs = problem.macs if problem is not None else 0
    return FusedGroup(
        (stage.name,), found.tile, (), "", False, (), working_set_bytes, found.dram_bytes,
        found.dram_bytes, macs, 0, None, 1, time_s, found.schedule, (stage,),
    )  # fmt: skip


def fused(
    stages: tuple[Stage, ...], choice: Choice, unfused_bytes: int, time_s: float | None
) -> FusedGroup:
    """Describe a group that runs tile by tile."""
    layers = [stage for stage in stages if stage.problem is not None]
    names = tile_dims(stages[-1])
    usual = sum(stage.macs * stage.positions for stage in stages)
    order = [names[0], *(names[:0:-1] if choice.way.columns_outside else names[1:])]
    sizes = dict(zip(names, choice.tile, strict=False))
    whole = dict(zip(names, last_sizes(stages[-1]), strict=False))
    return FusedGroup(
        tuple(stage.name for stage in layers),
        tuple(sizes.items()),
        tuple(name for name in order if sizes[name] < whole[name]),
        choice.way.halo, choice.way.keeps_input,
        tuple(stage.name for stage, one in zip(stages, choice.resident, strict=True) if one),
        choice.working_set_bytes, choice.dram_bytes, unfused_bytes, choice.macs,
        choice.macs - usual, lru_bytes(stages, choice.tile, choice.way), 1, time_s, None, stages,
    )  # fmt: skip


def tile_dims(last: Stage) -> tuple[str, ...]:
    """Name the dimensions along which a last layer's output is cut."""
    is_matrix = last.problem is not None and last.problem.kind == "gemm"
    return ("M",) if is_matrix else ("N", "P", "Q")


def last_sizes(last: Stage) -> tuple[int, int, int]:
    """Sizes of an output: images, rows, columns."""
    return last.batch, last.rows.made, last.columns.made
