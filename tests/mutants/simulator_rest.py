"""More mutants of the simulators: traces, caches, stack distances, layouts, tiles."""

from __future__ import annotations

from .mutant import In

_trace = In("simulator/trace.py", "test_simulator.py", "test_simulator_system.py")
_trace.broken(
    "trace-offset-ignored",
    "a tensor begins where it is aligned, whatever its offset",
    "start = -(-free // align) * align + each.layout.offset_bytes",
    "start = -(-free // align) * align",
    "::TestLayouts::test_an_offset_moves_elements_over_lines",
)
_trace.broken(
    "trace-first-point-at-first-element",
    "the first point touches the first element, though padding or an offset is before it",
    "                found.append(first + each.origin)\n",
    "                found.append(first)\n",
)
_trace.broken(
    "trace-loops-joined-anyhow",
    "neighbouring loops of a dimension are joined though they leave rests",
    "joined[-1][0] == dim and joined[-1][2] % step == 0:",
    "joined[-1][0] == dim:",
    "::TestLru::test_neighbouring_loops_that_leave_rests_stay_two",
)
_trace.broken(
    "trace-padding-at-the-end-only",
    "axes begin inside what is stored",
    "found.append((t, axis.size, axis.offset, dict(axis.terms)))",
    "found.append((t, axis.size, 0, dict(axis.terms)))",
)
_trace.broken(
    "trace-steps-in-elements",
    "steps in lines are as many bytes as there are elements",
    "each.coefficient(dim) * (1 if self.line_bytes is None else each.tensor.element_bytes)",
    "each.coefficient(dim)",
)

_cache = In("simulator/cache.py", "test_simulator.py")
_cache.broken(
    "cache-through-whole-lines",
    "a cache that writes through writes what it missed",
    "                written = many * each.tensor.element_bytes\n",
    "                written = misses * unit\n",
)
_cache.broken(
    "cache-sets-by-number",
    "lines go to sets by their numbers, not by their addresses",
    "places = [address // line_bytes for address in memory.addresses]",
    "places = [0 for address in memory.addresses]",
)
_cache.broken(
    "cache-progress-of-a-chunk",
    "progress is told of the last chunk only",
    "            done += len(ids)\n            progress(done)\n",
    "            done = len(ids)\n            progress(done)\n",
    "::TestArguments::test_progress_is_told_and_ends_at_all",
)
_cache.broken(
    "cache-writes-elements",
    "what is written back are elements, not lines",
    "                written = backs * unit\n",
    "                written = backs * each.tensor.element_bytes\n",
)

_distances = In("simulator/_distances.py", "test_simulator.py")
_distances.broken(
    "distance-after-tidying",
    "elements of a word come to its beginning when time is tidied up",
    "last[one] = ranks[at >> 6] + ones(below)",
    "last[one] = ranks[at >> 6]",
)
_distances.broken(
    "distance-wide-uses-stay",
    "elements of several units that are used again count at both times",
    "                add(at, -weight, blocks, starts)\n",
    "                add(at, 0, blocks, starts)\n",
)
_distances.broken(
    "distance-blocks-never-fall",
    "blocks keep the count of what was used again since",
    "blocks[starts[level] + old] -= 1",
    "blocks[starts[level] + old] -= 0",
)

_system = In("simulator/system.py", "test_simulator_system.py")
_system.broken(
    "system-registers-ignored",
    "a level that writes through sends every sum, though units keep them",
    'is_through=level.write_policy == "through" and level.accumulate == "level",',
    'is_through=level.write_policy == "through",',
)
_system.broken(
    "system-passing-held",
    "a tensor that passes a level is held there",
    "caches_of = [-1 if name in room.passing else part_of.get(name, 0) for",
    "caches_of = [part_of.get(name, 0) for",
)
_system.broken(
    "system-one-lane",
    "a unit has one lane",
    "return max(1, int(arch.compute.rate(data_type_of(problem, arch))))",
    "return 1",
)

_layout = In("simulator/layout.py", "test_simulator.py")
_layout.broken(
    "layout-strides-stored",
    "positions that a stride steps over are stored",
    "divisor = math.gcd(*(c for c, _ in moving)) or 1",
    "divisor = 1",
    ">>> Span.of",
)
_layout.broken(
    "layout-short-rows",
    "rows may take less room than they have positions",
    "        if many < room[at]:\n",
    "        if many < 0:\n",
)
_layout.broken(
    "layout-steps-over-gaps",
    "a step along a strided axis goes over places that are not stored",
    "moved += sum(c // span.divisor * stride for",
    "moved += sum(c * stride for",
)

_replay = In("simulator/tile_replay.py", "test_validation_tiles.py", "test_library_tiled.py")
_replay.broken(
    "tile-replay-output-read-twice",
    "what is read again of the output counts as an input, too",
    "reads = again.sum(axis=0) - again[written]",
    "reads = again.sum(axis=0)",
)
_replay.broken(
    "tile-replay-lists-run-on",
    "a wave that its list does not fill takes items of the next list",
    "wave = slice(at, min(at + instances, end))",
    "wave = slice(at, at + instances)",
)
_replay.broken(
    "tile-replay-windows",
    "windows are replayed as if they were tiles",
    "if any(len(axis.terms) != 1 or axis.size is not None for axis in tensor.axes):",
    "if any(len(axis.terms) < 1 for axis in tensor.axes):",
    "::test_other_forms_are_refused",
)

_kernels = In("simulator/_tile_kernels.py", "test_validation_tiles.py")
_kernels.broken(
    "tiles-left-of-inputs",
    "what is left of inputs is written in the end",
    "            if tile >= first:\n",
    "            if tile >= 0:\n",
)
_kernels.broken(
    "tiles-at-the-edge-whole",
    "tiles at the edge are as large as the others",
    "amount *= min(extents[body, d], lengths[item, d] - offsets[body, d])",
    "amount *= extents[body, d]",
)

_waves = In("simulator/waves.py", "test_simulator.py", "test_simulator_system.py")
_waves.broken(
    "simulated-pieces-to-the-end",
    "pieces that temporal loops cut reach to the end of their item",
    "active.length[:, at] = (active.length[:, at] - begin).clip(max=step)",
    "active.length[:, at] = active.length[:, at] - begin",
    "test_simulator_system.py::test_units_in_units_take_turns_as_a_literal_walk_does",
)
_waves.broken(
    "simulated-lists-one-by-one",
    "items of several lists run list by list, not side by side",
    'order = np.argsort(wave, kind="stable")',
    "order = np.arange(len(wave))",
    "test_simulator_system.py::test_units_in_units_take_turns_as_a_literal_walk_does",
)

_walk = In("simulator/_walk.py", "test_simulator.py", "test_simulator_system.py")
_walk.broken(
    "walk-one-too-early",
    "the last position before what is stored is accessed",
    "skipped = n if move == 0 else min(n, (-first + move - 1) // move)",
    "skipped = n if move == 0 else min(n, -first // move)",
)

_levels = In("simulator/_levels.py", "test_simulator_system.py")
_levels.broken(
    "levels-first-in-first-out",
    "what is used again is not kept longer",
    "    if before < 0:\n        return\n    after",
    "    if before >= -1:\n        return\n    after",
)

SIMULATOR_REST = tuple(
    mutant
    for file in (
        _trace, _cache, _distances, _system, _layout, _replay, _kernels, _waves, _walk, _levels,
    )
    for mutant in file.mutants
)  # fmt: skip
