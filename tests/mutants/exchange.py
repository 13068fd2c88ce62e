"""Mutants of what other tools read."""

from __future__ import annotations

from .mutant import In

_blocks = In("exchange/timeloop/blocks.py", "test_exchange_timeloop.py")
_blocks.broken(
    "mesh-takes-turns-inside",
    "loops around one that takes turns stay on the mesh",
    "if trips <= left and not temporal:",
    "if trips <= left:",
    "::test_meshes_hold_what_loops_of_one_iteration_go_around",
)
_blocks.broken(
    "two-loops-at-one-node",
    "a second loop of a dimension stands at the same storage",
    "or factor.dim in found[here].dims:",
    "or False:",
    "test_exchange_timeloop.py::test_loops_stand_where_their_tile_fits",
)
_blocks.broken(
    "tile-beyond-capacity",
    "a loop stands at a storage that its tile overflows",
    "_held_bytes(problem, schedule.extents_from(place), node) <= room:",
    "_held_bytes(problem, schedule.extents_from(place), node) <= 2 * room:",
)

_factors = In("exchange/factors.py", "test_exchange_timeloop.py", "test_exchange_tiles.py")
_factors.broken(
    "last-tile-full",
    "the last tile runs as often as the others",
    "found.append(Factor(loop.dim, trips, last + 1, loop.unit))",
    "found.append(Factor(loop.dim, trips, trips, loop.unit))",
    "test_exchange_timeloop.py",
)
_factors.broken(
    "tiles-rounded-down",
    "tiles that do not divide lose their rest",
    "min(-(-loop.extent // step) * step, whole[loop.dim])",
    "min(max(1, loop.extent // step) * step, whole[loop.dim])",
)

_mappings = In("exchange/timeloop/mappings.py", "test_exchange_timeloop.py")
_mappings.broken(
    "permutation-outward",
    "permutations are written outer to inner",
    "inward = [factor.dim for factor in reversed(found)]",
    "inward = [factor.dim for factor in found]",
)
_notes = In("exchange/timeloop/notes.py", "test_exchange_timeloop.py")
_notes.broken(
    "stale-note-speaks",
    "a note wins over a mapping that was edited since",
    'found.get("about") != digest(section)',
    '"about" not in found',
)

_timeloop = In("exchange/timeloop/__init__.py", "test_exchange_timeloop.py")
_timeloop.broken(
    "note-hides-bypass",
    "a machine's note wins over what an edited mapping lets pass",
    "if schedule is None or not machine.is_own:",
    "if not machine.is_own:",
)

_tiles = In("exchange/tiles.py", "test_exchange_tiles.py")
_tiles.broken(
    "programs-share-sums",
    "temporal loops over sums become programs side by side",
    "if loop.is_spatial or loop.dim in problem.parallel_dims",
    "if loop.dim in problem.size",
)

_accesses = In("exchange/accesses.py", "test_exchange_code.py")
_accesses.broken(
    "padding-before-is-memory",
    "no test for positions before what is stored",
    "before = axis.offset < 0",
    "before = False",
    "test_exchange_code.py::test_python_computes_the_problem",
)

_stages = In("codegen/stages.py", "test_exchange_code.py")
_stages.broken(
    "threads-share-sums",
    "spatial loops over sums are shared by threads",
    "if not is_spatial or step.dim not in problem.parallel_dims:",
    "if not is_spatial:",
)

_arrow = In("base/arrow_rows.py", "test_exchange_frames.py")
_arrow.broken(
    "infinite-kept",
    "what is not finite stays so in Parquet",
    'return value if abs(value) < float("inf") else None',
    "return value",
)

EXCHANGE = (
    *_blocks.mutants,
    *_factors.mutants,
    *_mappings.mutants,
    *_notes.mutants,
    *_timeloop.mutants,
    *_tiles.mutants,
    *_accesses.mutants,
    *_stages.mutants,
    *_arrow.mutants,
)
