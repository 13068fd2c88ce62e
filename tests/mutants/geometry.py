"""Mutants of footprints, nests and what a buffer sees of a schedule."""

from __future__ import annotations

from .mutant import In

_footprint = In("problems/footprint.py", "test_footprint.py", "test_margins.py")
_footprint.broken(
    "reach-one-short",
    "a window reaches one position less: the halo is off by one",
    "while copies < extent:",
    "while copies < extent - 1:",
)
_footprint.broken(
    "reach-without-stride",
    "steps of a strided dimension are taken as steps of one: no gaps",
    "grown << (coefficient * step)",
    "grown << step",
)
_footprint.broken(
    "clip-begin-rounds-down",
    "positions before the tensor, reached in strides, are counted one too few",
    "skipped = max(0, -(first // coefficient))",
    "skipped = max(0, -first // coefficient)",
)
_footprint.broken(
    "clip-end-one-late",
    "one position beyond the tensor's end is taken for stored",
    "kept = min(members, -((first - axis.size) // coefficient))",
    "kept = min(members, -((first - axis.size - 1) // coefficient))",
)
_footprint.broken(
    "window-clip-begin",
    "of a window in the padding, one position too many is stored",
    "low = max(0, -first)\n",
    "low = max(0, -first - 1)\n",
)
_footprint.broken(
    "window-clip-end",
    "of a window at the end, one position too few is stored",
    "high = min(bits.bit_length(), size - first)",
    "high = min(bits.bit_length(), size - first - 1)",
)
_footprint.broken(
    "edge-segment-not-clipped",
    "the last piece is as long as a full one",
    "(begin, min(extent, start + length - begin))",
    "(begin, extent)",
)
_footprint.broken(
    "edge-segments-merged",
    "of equal pieces at edges only those of the last kind are counted",
    "found[rest] = found.get(rest, 0) + many",
    "found[rest] = many",
)
_footprint.broken(
    "tiles-clip-begin",
    "over a tiling, one position too many is stored before the first tile",
    "low = np.clip(-first, 0, width)",
    "low = np.clip(-first - 1, 0, width)",
)
_footprint.broken(
    "tiles-clip-end",
    "over a tiling, the last stored position is left out",
    "high = np.clip(size - first, 0, width)",
    "high = np.clip(size - first - 1, 0, width)",
)
_footprint.broken(
    "smallest-piece-is-full",
    "the smallest piece of a plain axis is a full one",
    "shapes.values())), max(counts), min(counts))",
    "shapes.values())), max(counts), max(counts))",
)

_nest = In("nests/nest.py", "test_nest.py", "test_view.py")
_nest.broken(
    "last-trip-lost",
    "a loop whose step does not divide makes one iteration too few",
    "-(-loop.extent // step) for",
    "loop.extent // step for",
)

_nest.broken(
    "lists-split-in-two",
    "a list of items that is cut twice is not the one that is cut once",
    "while outer and steps[outer[-1]] % steps[at] == 0:",
    "while False:",
    "test_false_proofs.py",
)

_view = In("models/view.py", "test_view.py", "test_margins.py", "test_replay.py")
_view.broken(
    "one-trip-loop-cuts",
    "a loop of one iteration is a cut",
    "elif extent < extent_now[loop.dim]:",
    "elif extent <= extent_now[loop.dim]:",
)
_view.broken(
    "edge-pieces-dropped",
    "what does not fill a piece is not visited",
    "        every = cut_lengths(every, extent)",
    "        every = {extent: sum(many * (n // extent) for n, many in every.items())}",
)
_view.broken(
    "edge-items-dropped",
    "work items at the edge do not exist",
    "return {(0, length): many for length, many in lengths.items()}",
    "return {(0, length): many for length, many in lengths.items() if length == max(lengths)}",
)
_view.broken(
    "one-instance-idle",
    "waves are one item short",
    "max(1, instances)",
    "max(1, instances - 1)",
)
_view.broken(
    "last-wave-dropped",
    "items that do not fill a wave run beside it",
    "at_once([-(-length // extent) for",
    "at_once([(length // extent) for",
)
_view.broken(
    "waves-not-cut",
    "a loop that two waves share is taken for one",
    " < length\n    ]",
    " * 2 < length\n    ]",
)
_view.broken(
    "alignment-without-remainder",
    "waves count as aligned where an outer loop ends within one",
    "return rest == 0 and (is_outermost or count % at_once == 0)",
    "return rest == 0",
)
_view.broken(
    "alignment-at-the-inner-loop",
    "waves count as aligned wherever they hold whole inner iterations or not",
    "return rest == 0 and (is_outermost or count % at_once == 0)",
    "return is_outermost or count % at_once == 0",
)
_view.broken(
    "alignment-of-one-length",
    "of items of several lengths only one decides on alignment",
    "if any(len(each) > 1 for each in trips):\n        return False",
    "trips = [{max(each)} for each in trips]",
)
_view.broken(
    "copies-at-the-edge",
    "a parallel piece at the edge holds no copy",
    "abreast *= -(-length // extent)",
    "abreast *= length // extent",
)
_view.broken(
    "copies-lost",
    "of pieces present side by side only one takes room",
    "copies.append(abreast)",
    "copies.append(1)",
)
_view.broken(
    "boundary-one-late",
    "what hands out items is taken for part of an item",
    "boundary = len(cuts)",
    "boundary = len(cuts) - 1",
)
_view.broken(
    "items-one-loop-outward",
    "the innermost loop that hands out items is replayed inside one",
    "first = max((i + 1 for i,",
    "first = max((i for i,",
)
_view.broken(
    "apart-together",
    "windows side by side are counted as one stretch",
    "if apart is None or apart not in axis.dims:",
    "if True:",
    "test_reuse.py",
)

GEOMETRY = (*_footprint.mutants, *_nest.mutants, *_view.mutants)
