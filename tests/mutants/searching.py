"""Mutants of the search: bounds, classes, candidates, counts."""

from __future__ import annotations

from .mutant import In

_orders = In("scheduler/orders.py", "test_orders.py")
_orders.broken(
    "classes-dropped",
    "orders that differ for the second tensor only are one class",
    "pinned = not any(indexed.isdisjoint(inward) for indexed, _ in tensors)",
    "pinned = not all(indexed.isdisjoint(inward) for indexed, _ in tensors)",
)
_orders.broken(
    "slides-not-told-apart",
    "classes of orders ignore along which loop a window slides",
    "(tuple(runs), tuple(slides)), OrderClass(",
    "(tuple(runs), ()), OrderClass(",
)

_tables = In("scheduler/tables.py", "test_body.py", "test_exact.py")
_tables.broken(
    "candidate-extent-lost",
    "the extent for two pieces is not tried",
    "        return tuple(sorted({-(-longest // (-(-longest // e)))",
    "        classes.discard(-(-longest // 2))\n"
    "        return tuple(sorted({-(-longest // (-(-longest // e)))",
)
_tables.broken(
    "uneven-extents-lost",
    "larger extents that touch less, for gaps or padding, are not tried",
    "    if not uneven:\n        return classes\n",
    "    return classes\n",
    "::test_larger_extents_that_touch_less_are_tried",
)

_least = In("scheduler/least.py", "test_least.py")
_least.broken(
    "bound-with-full-halos",
    "the bound takes a window with gaps to share what one without would",
    "if step >= width or reach(window).bit_count() < width:  # no overlap, or gaps",
    "if step >= width:  # no overlap, or gaps",
)
_least.broken(
    "bound-without-padding",
    "places with padding beside share as much as all others",
    "both = np.clip(high, 0, axis.size) - np.clip(low, 0, axis.size)",
    "both = high - low",
)
_least.broken(
    "bound-of-single-cuts",
    "the largest pieces of a bound are those of single loops",
    "                    table[where] = part\n",
    "                    table[where] = table[where]\n",
)
_least.broken(
    "bound-counts-all-windows",
    "windows with padding beside share as much along a second dimension, too",
    "points = np.maximum(0, meet[k] - shared[k].n_clipped) * is_solid",
    "points = meet[k] * is_solid",
)
_least.broken(
    "padding-cuts-evenly",
    "a second loop is taken for useless near padding",
    "return not has_gaps and not is_clipped(axis, size)",
    "return not has_gaps",
    "::test_near_padding_two_loops_may_do_what_one_does_not",
)

_kernels = In("scheduler/kernels.py", "test_body.py", "test_kernels.py", "test_exact.py")
_kernels.broken(
    "prunes-too-much",
    "branches a little worse than the best are cut off with those that are better",
    "if _least(n, loose, runs, slides) >= incumbent:",
    "if _least(n, loose, runs, slides) >= incumbent - incumbent // 8:",
)
_kernels.broken(
    "search-runs-forgotten",
    "the search takes no tensor to stay through a run",
    "product *= n.pieces[d, 0 if run[d] else index[d]]",
    "product *= n.pieces[d, index[d]]",
)
_kernels.broken(
    "search-window-once",
    "the search counts one of two consecutive bodies",
    "return int(2 * one[b])",
    "return int(one[b])",
)
_kernels.broken(
    "search-slide-over-gaps",
    "the search grants a halo where a stride leaves gaps",
    "return ones != 0",
    "return ones >= 0",
    "test_margins.py::test_the_best_body_keeps_no_halo_with_gaps",
)
_kernels.broken(
    "search-exact-fit-refused",
    "the search leaves out what fills the buffer exactly",
    "return shared <= buffer.capacity",
    "return shared < buffer.capacity",
)
_kernels.broken(
    "rooms-too-small-for-the-rest",
    "of extents not yet chosen, the largest that fits is passed over",
    "                low = middle + 1\n                middle += further\n",
    "                low = middle + 2\n                middle += further\n",
)
_item_kernels = In("scheduler/_item_kernels.py", "test_margins.py")
_item_kernels.broken(
    "items-partial-wave-free",
    "the bound on items forgets the wave that is not full",
    "steps += -(-parts[part, 0] // instances) * parts[part, 1]",
    "steps += max(1, parts[part, 0] // instances) * parts[part, 1]",
)
_item_kernels.broken(
    "items-data-free",
    "the output's first visits count as reads in the bound on items",
    "    found, first = -sums.constant, 0\n",
    "    found, first = 0, 0\n",
)
_item_kernels.broken(
    "items-without-rest",
    "the bound on items forgets the list of the rest",
    "        if lists[3]:\n",
    "        if lists[3] > lists[1]:\n",
)
_items = In("scheduler/items.py", "test_margins.py")
_items.broken(
    "no-list-for-the-rest",
    "items are never cut so that the rest has a list of its own",
    "found += [_Cut(size, size - size % e, e) for e in floors if size % e]",
    "found += []",
)
_lists = In("scheduler/waves.py", "test_waves.py")
_lists.broken(
    "lists-as-full-as-one",
    "more lists than one take as long as if all were as full as the fullest can be",
    "(points + points // max(cut)) / macs_per_s",
    "(points + points // min(cut)) / macs_per_s",
)
_item_bounds = In("scheduler/item_bounds.py", "test_margins.py")
_item_bounds.broken(
    "rest-as-large-as-an-item",
    "the bound on steps takes the rest of a list for a whole item",
    "found.add((item, lists * -(-outer // item), rest))",
    "found.add((item, lists * -(-outer // item), item))",
)

_placement = In("scheduler/placement.py", "test_placement.py")
_placement.broken(
    "slide-of-a-tile-is-paid",
    "a tile pays for the cut along which its window slides",
    "free = self.inside[at - 1][row] if at else WHOLE",
    "free = self.inside[at][row]",
)
_placement.broken(
    "cuts-merged-though-paid",
    "two cuts of a dimension are one though a tensor between them pays",
    "paid = paid or pays\n                continue",
    "continue",
)

_body = In("scheduler/body.py", "test_body.py", "test_exact.py")
_body.broken(
    "never-all-dims-cut",
    "a body is never cut along every dimension",
    "for many in range(len(free) + 1):",
    "for many in range(max(1, len(free))):",
)
_body.broken(
    "search-without-halos",
    "the search knows no halos",
    "if slide is not None and halo_reuse:",
    "if slide is not None and not halo_reuse:",
)

_exact = In("scheduler/exact.py", "test_exact.py")
_exact.broken(
    "proves-what-is-near",
    "a schedule within a tenth of the bound counts as proven best",
    "return min(self.floor, best), best <= self.floor",
    "return min(self.floor, best), best <= 1.1 * self.floor",
    "::test_what_is_near_the_bound_is_not_proven",
)
_bounds = In("scheduler/level_bounds.py", "test_exact.py")
_bounds.broken(
    "floor-too-high",
    "the bound on compute time is that of one instance less",
    "return -(-self.problem.macs // self.busy) / self.rate",
    "return -(-self.problem.macs // max(1, self.instances - 1)) / self.rate",
)
_bounds.broken(
    "own-level-as-guaranteed",
    "the bound for an instance's own level counts guaranteed reuse only",
    'is_guaranteed = self.value == "promised" and (not self.units or level.is_shared)',
    'is_guaranteed = self.value == "promised"',
)
_bounds.broken(
    "nothing-shared-at-once",
    "where one point of each instance does not fit, nothing is shared in a step",
    "at_once = min(self._n_inside(level), sharing)",
    "at_once = 1",
)

_counting = In("scheduler/counting.py", "test_constraints.py", "test_sampling.py")
_counting.broken(
    "extents-miscounted",
    "chains that end above 1 are counted with one extent too many",
    "part = packed * comb(size - 2, n_cuts) <<",
    "part = packed * comb(size - 1, n_cuts) <<",
    "test_space.py",
)
_counting.broken(
    "orders-not-shuffled",
    "loops of two groups are counted in one order",
    "return prod(comb(a + b, b) for a, b in zip(one, other, strict=True))",
    "return 1",
)
_counting.broken(
    "cuts-to-the-same-extent",
    "a loop may leave its extent as it is",
    'np.searchsorted(outer, inner, side="right")]\n',
    'np.searchsorted(outer, inner, side="left")]\n',
)
_waves = In("scheduler/waves.py", "test_margins.py", "test_replay.py")
_waves.broken(
    "barrier-lost",
    "waves that should end with rows run on: no temporal loop is around them",
    "return Schedule((*before, *outside, *inside,",
    "return Schedule((*before, *inside,",
)

_starts = In("scheduler/starts.py", "test_waves.py")
_starts.broken(
    "groups-out-of-step",
    "items are taken in groups whose waves end within a row",
    "n_inner % across == n_outer % down == 0:",
    "n_inner % across == 0:",
)

SEARCHING = tuple(
    mutant
    for file in (
        _orders, _tables, _least, _kernels, _item_kernels, _items, _lists, _item_bounds,
        _placement, _body, _exact, _bounds, _counting, _waves, _starts,
    )
    for mutant in file.mutants
)  # fmt: skip
LEAST = tuple(_least.mutants)
