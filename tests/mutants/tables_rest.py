"""More mutants of the search: tables, lists of items, bounds of levels, counts, climbs."""

from __future__ import annotations

from .mutant import In

_LEAST = "test_exact.py::test_the_search_finds_the_least_of_every_space"
_BEST = "::test_the_best_items_of_all"

_tables = In("scheduler/tables.py", "test_body.py", "test_exact.py")
_tables.broken(
    "tables-small-extents-lost",
    "extents below the root of a size are not tried",
    "        classes.update(range(1, int(longest**0.5) + 2))\n",
    "",
    ">>> trip_classes",
)
_tables.broken(
    "tables-multiples-beyond",
    "multiples of an extent go beyond the size",
    "found = {min(size, extent * many) for many",
    "found = {extent * many for many",
    ">>> multiples",
)
_tables.broken(
    "tables-long-is-exhaustive",
    "of long dimensions all extents are said to be tried",
    "return all(size <= MAX_SIZE for _, size in problem.sizes) and not any(",
    "return all(size > 0 for _, size in problem.sizes) and not any(",
    ">>> is_exhaustive",
)
_tables.broken(
    "tables-output-weighs-once",
    "sums that are read and written weigh as much as an input",
    "[size + size * (name == problem.output) for name, size in sizes.items()]",
    "[size for name, size in sizes.items()]",
    "test_body.py",
)

_items = In("scheduler/_item_kernels.py", "test_margins.py")
_items.broken(
    "items-data-never-late",
    "items are never held up by their data",
    "score = max(steps / speed.rate, inner_s, speed.floor_s)",
    "score = max(steps / speed.rate, speed.floor_s)",
    _BEST,
)
_items.broken(
    "items-extent-uncounted",
    "an item takes one step, however long it is",
    "items * lists[1], steps * lists[0] * lists[2]",
    "items * lists[1], steps * lists[0]",
    _BEST,
)
_items.broken(
    "items-repeat-what-is-indexed",
    "a tensor is repeated along the dimensions that index it",
    "if sums.is_indexed[t, d] == 0 else 1)",
    "if sums.is_indexed[t, d] == 1 else 1)",
    _BEST,
)

_bounds = In("scheduler/level_bounds.py", "test_exact.py")
_bounds.broken(
    "energy-bound-twice",
    "the bound on energy counts what crosses a boundary twice",
    "            total += self.bound_bytes(level) * both\n",
    "            total += 2 * self.bound_bytes(level) * both\n",
    _LEAST,
    "test_exact.py",
)
_bounds.broken(
    "one-point-fits-all",
    "a level that holds one point is taken to hold one of each unit",
    "{t.name: many * t.element_bytes for t in room.held(self.problem)}",
    "{t.name: t.element_bytes for t in room.held(self.problem)}",
    "test_exact.py",
)
_bounds.broken(
    "level-single-buffered",
    "a double-buffered level is bounded as if it were none",
    "2 if level.double_buffered else 1)",
    "1)",
    "test_body.py::test_a_bound_knows_double_buffers",
)

_counting = In("scheduler/counting.py", "test_sampling.py", "test_constraints.py")
_counting.broken(
    "drawn-unevenly",
    "patterns are drawn by their own ways, not by those of what goes with them",
    "                    weights[pattern] = many * before[rest]\n",
    "                    weights[pattern] = many\n",
    "::TestRandom::test_tied_dimensions_of_many_sizes_are_drawn_evenly",
)
_counting.broken(
    "tied-in-one-order",
    "dimensions that a precedence ties together are taken to have one order",
    "pairs == len(rows) * (len(rows) - 1) // 2))",
    "pairs >= len(rows) - 1))",
)

_climbing = In("scheduler/climbing.py", "test_sampling.py")
_climbing.broken(
    "climbing-slot-inside",
    "a new loop enters inside one that must stay inside it",
    "high = min([len(order), *(at for at, other in enumerate(order) if other in inside[dim])])",
    "high = len(order)",
    "::TestLocal::test_neighbours_are_one_step_away",
)

TABLES_REST = tuple(
    mutant for file in (_tables, _items, _bounds, _counting, _climbing) for mutant in file.mutants
)
