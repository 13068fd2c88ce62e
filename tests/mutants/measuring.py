"""Mutants of what measures: lower bounds, simulators, validation."""

from __future__ import annotations

from .mutant import In

_bounds = In("bounds/communication.py", "test_lower_bounds.py")
_bounds.broken(
    "phases-start-empty",
    "a phase finds less than a full fast memory when it begins",
    "known[n][1]) - (n - 1) * capacity, n)",
    "known[n][1]) - (n - 2) * capacity, n)",
)
_bounds.broken(
    "phases-start-fuller",
    "more than the fast memory is there when a phase begins: a looser bound",
    "known[n][1]) - (n - 1) * capacity, n)",
    "known[n][1]) - n * capacity, n)",
)
_bounds.broken(
    "dear-tensors-touched-once",
    "a tensor dearer than its bytes is touched once, not once in each phase",
    "(_SCALE - price) * d * (1 if price <= _SCALE else n)",
    "(_SCALE - price) * d",
)
_bounds.broken(
    "cheap-tensors-in-each-phase",
    "a cheap tensor is touched in each phase",
    "(_SCALE - price) * d * (1 if price <= _SCALE else n)",
    "(_SCALE - price) * d * n",
)
_bounds.broken(
    "phase-has-more-work",
    "phases have one point more than there are",
    "yield work + 1, more",
    "yield work + 2, more",
)
_bounds.broken(
    "grain-forgotten",
    "a phase may not miss the work of one point",
    "yield max(0, work - inequality.grain), n",
    "yield work, n",
)
_bounds.broken(
    "factor-forgotten",
    "points that share an element of a window are counted apart",
    "below = inequality.factor\n",
    "below = 1\n",
)
_bounds.broken(
    "copies-forgotten",
    "of independent parts only one moves data",
    "bytes=part.copies * best,",
    "bytes=best,",
)
_bounds.broken(
    "writes-never-stay",
    "what is dirty at the end has been written",
    "return max(0, self.write_bytes - self.capacity_bytes)",
    "return self.write_bytes",
)
_inequalities = In("bounds/inequalities.py", "test_lower_bounds.py")
_inequalities.broken(
    "root-rounded-down",
    "roots are rounded to the unsafe side",
    "return _root_below(value - 1, degree) + 1 if value > 0 else 0",
    "return _root_below(value, degree) if value > 0 else 0",
)
_inequalities.broken(
    "windows-cost-nothing",
    "dimensions that share an axis count as axes of their own",
    "lost = max(0, root - apart)",
    "lost = max(0, root - apart - 1)",
)
_inequalities.broken(
    "cover-too-small",
    "powers need not cover every dimension",
    "if all(sum(powers[i] for i in at) >= root for at in cover)",
    "if all(sum(powers[i] for i in at) >= root - 1 for at in cover)",
)
_windows = In("bounds/windows.py", "test_lower_bounds.py")
_windows.broken(
    "too-few-classes",
    "values of a class meet: classes are one too few",
    "classes = min(size[dim], -(-(reach + 1) // c))",
    "classes = min(size[dim], max(1, -(-(reach + 1) // c) - 1))",
)
_windows.broken(
    "padding-counted-as-work",
    "points whose operand is padding have work",
    "total *= _count(axis, size)\n",
    "total *= math.prod(size[dim] for dim in axis.dims)\n",
)
_windows.broken(
    "padding-off-by-one",
    "one position beyond the end is taken for stored",
    "end = min(size[dim], -((first + sum(place) - axis.size) // step))",
    "end = min(size[dim], -((first + sum(place) - axis.size - 1) // step))",
)

_lru = In("simulator/_lru.py", "test_simulator.py")
_lru.broken(
    "lru-evicts-when-full",
    "a cache that is exactly full evicts",
    "while used > capacity:",
    "while used > max(capacity - 1, 0):",
)
_lru.broken(
    "lru-as-fifo",
    "what is used again does not become the most recent",
    "        last[one] = head\n        head += 1\n",
    "        if before < 0:\n            last[one] = head\n        head += 1\n",
)
_lru.broken(
    "first-touch-of-what-was-evicted",
    "every miss is a first touch",
    "            if before == NEVER:\n",
    "            if before <= NEVER:\n",
)
_sets = In("simulator/_sets.py", "test_simulator.py")
_sets.broken(
    "sets-keep-the-tail",
    "the least recently used line, used again, is still the next victim",
    "                heads[s] = slot\n                continue\n            after[before[slot]]",
    "                continue\n            after[before[slot]]",
)
_sets.broken(
    "lines-in-one-set",
    "where a line lies does not choose its set",
    "s = (one + own.starts[t]) % own.n_sets",
    "s = (one + own.starts[t]) // 2 % own.n_sets",
)
_walk = In("simulator/_walk.py", "test_simulator.py", "test_simulator_system.py")
_walk.broken(
    "walk-goes-on-once",
    "a loop inside another of its dimension makes one iteration",
    "end[i] = min(now[parent] + loop[parent, 0], end[parent])",
    "end[i] = min(now[parent] + loop[i, 0], end[parent])",
)
_walk.broken(
    "walk-stops-before-the-end",
    "the last stored position before the padding is not accessed",
    "kept = n if move == 0 else (size - first + move - 1) // move",
    "kept = n if move == 0 else (size - first + move - 1) // move - 1",
)
_walk.broken(
    "group-touches-padding",
    "items in lock-step touch the first position behind the tensor",
    "if at < 0 or at >= clip[a, 1]:",
    "if at < 0 or at > clip[a, 1]:",
    "::TestInstances::test_instances_leave_padding_out",
)
_walk.broken(
    "short-items-stop-early",
    "an item shorter than the others stops one iteration early",
    "if now[group.inner[d]] >= lengths[i, d]:",
    "if now[group.inner[d]] >= lengths[i, d] - 1:",
)
_levels = In("simulator/_levels.py", "test_simulator_system.py")
_levels.broken(
    "dirty-evictions-lost",
    "what is evicted is not written back",
    "        return send(own, n_out, one, instance, WRITE + LINE)\n    return n_out",
    "    return n_out",
)
_levels.broken(
    "levels-evict-when-full",
    "a level that is exactly full evicts",
    "while lists[c, USED] > own.capacities[part]:",
    "while lists[c, USED] > max(own.capacities[part] - 1, 0):",
)
_levels.broken(
    "hits-stay-clean",
    "what is written while it is held is not dirty",
    "            if asked != READ and not is_through:\n                nodes[c, node, DIRTY] = 1\n",
    "",
)
_levels.broken(
    "write-through-waits",
    "a level that writes through sends nothing outward",
    "            if is_through:\n                counts[t, WRITE_BYTES] += size\n",
    "            if not is_through:\n                counts[t, WRITE_BYTES] += size\n",
)
_distances = In("simulator/_distances.py", "test_simulator.py")
_distances.broken(
    "distance-without-itself",
    "the element does not count in its own distance",
    "found = ones(words[w] >> np.uint64(at & 63))",
    "found = ones(words[w] >> np.uint64(at & 63)) - 1",
    "::TestStackDistances::test_an_element_counts_in_its_own_distance",
)
_distances.broken(
    "old-uses-stay",
    "an element used again counts at both times",
    "words[at >> 6] &= ~(_ONE << np.uint64(at & 63))",
    "words[at >> 6] &= _ALL",
)
_belady = In("simulator/_belady.py", "test_simulator.py")
_belady.broken(
    "belady-keeps-the-idle",
    "what is never used again is evicted last",
    "                if n_idle:\n",
    "                if n_idle and highest(words, starts) == 0:\n",
)
_belady.broken(
    "belady-evicts-the-next",
    "the lowest bits of the next use do not count",
    "for shift in (32, 16, 8, 4, 2, 1):",
    "for shift in (32, 16, 8, 4, 2):",
)
_cache = In("simulator/cache.py", "test_simulator.py")
_cache.broken(
    "simulated-first-read",
    "the output is read where it is touched first",
    "reads -= kept.first[t]",
    "reads -= 0",
)
_cache.broken(
    "flush-lost",
    "what is dirty at the end is not written",
    "backs = misses if flush else kept.evicted[t]",
    "backs = kept.evicted[t]",
)
_simulated_waves = In("simulator/waves.py", "test_simulator.py", "test_simulator_system.py")
_simulated_waves.broken(
    "simulated-waves-restart",
    "the items of a list run in the reverse order of loops",
    "for at, step, many in reversed(list(zip(places, steps, trips, strict=True))):",
    "for at, step, many in list(zip(places, steps, trips, strict=True)):",
)
_simulated_waves.broken(
    "simulated-last-wave-dropped",
    "items that do not fill a wave do not run",
    "for first in range(0, n_items, run.instances):",
    "for first in range(0, max(1, n_items - n_items % run.instances), run.instances):",
)
_simulated_waves.broken(
    "simulated-items-on-one-instance",
    "items of several lists all run on the first instance",
    "items.path[:] = items.path * run.instances + number % run.instances",
    "items.path[:] = items.path * run.instances",
    "test_margins.py",
)
_system = In("simulator/system.py", "test_simulator_system.py")
_system.broken(
    "private-caches-stay-warm",
    "a cache that units own keeps what it holds from item to item",
    "            elif not self.is_warm:\n",
    "            elif self.is_warm:\n",
)
_system.broken(
    "flush-of-the-innermost-only",
    "at the end only the innermost level writes back",
    "        if flush:\n            for depth in range(len(self.levels)):\n",
    "        if flush:\n            for depth in range(1):\n",
)
_layout = In("simulator/layout.py", "test_simulator.py")
_layout.broken(
    "layout-order-reversed",
    "the first axis of a layout is the fastest",
    "for at in reversed(order):\n        strides[at] = elems",
    "for at in order:\n        strides[at] = elems",
)
_layout.broken(
    "row-padding-forgotten",
    "rows follow each other without the room between them",
    "        room[at] = many\n",
    "        room[at] = min(many, room[at])\n",
)
_trace = In("simulator/trace.py", "test_simulator.py")
_trace.broken(
    "lines-cut-at-the-end",
    "a tensor's last line, filled in part, does not exist",
    "many = -(-end // self.line_bytes) - address // self.line_bytes",
    "many = max(1, end // self.line_bytes - address // self.line_bytes)",
)

_sectors = In("validation/sectors.py", "test_validation_tiles.py")
_sectors.broken(
    "sectors-not-rounded-up",
    "a sector touched in part is not loaded",
    "(-(-end // SECTOR_BYTES) - begin // SECTOR_BYTES)",
    "(end // SECTOR_BYTES - begin // SECTOR_BYTES)",
)
_sectors.broken(
    "rows-all-aligned",
    "every row begins a sector",
    "begin = phase * pitch_bytes + spans[:, 0]\n        end = phase * pitch_bytes + spans[:, 1]",
    "begin = spans[:, 0]\n        end = spans[:, 1]",
)
_sectors.broken(
    "panels-loaded-once",
    "rows of A are loaded once, not once for each column of blocks",
    "rows_a * -(-n // tile_n) + rows_b * -(-m // tile_m)",
    "rows_a + rows_b * -(-m // tile_m)",
)
_tiles = In("simulator/_tile_kernels.py", "test_validation_tiles.py")
_tiles.broken(
    "tile-distance-off",
    "a tile's own bytes do not count in its distance",
    "distance = state[LIVE] - below(tree, before)",
    "distance = max(1, state[LIVE] - below(tree, before) - size[tile])",
)
_tiles.broken(
    "tiles-touched-by-each",
    "what several items touch in one step, each touches",
    "elif not is_end and stamp[tile] != state[STEP]:",
    "elif not is_end:",
)
_tiles.broken(
    "old-tiles-stay",
    "a tile used again counts at both times",
    "add(tree, before, -size[tile])",
    "add(tree, before, 0)",
)
_replay = In("simulator/tile_replay.py", "test_validation_tiles.py")
_replay.broken(
    "sets-one-way-short",
    "a set evicts with one line less than it holds",
    "for met in range(1, ways):",
    "for met in range(1, ways - 1):",
)
_replay.broken(
    "written-once-for-all",
    "a tile of the output written again is not written back in between",
    "once = np.array(self.written_again, float) + np.array(self.written_left, float)",
    "once = np.array(self.written_left, float)",
)
_launch_order = In("gpu/library/order.py", "test_validation.py")
_launch_order.broken(
    "last-group-as-large",
    "rows of tiles are launched one by one, not in groups",
    "group = min(group_m * tile_m, m)",
    "group = min(tile_m, m)",
    "test_validation.py",
)
_gpu_classes = In("gpu/classes.py", "test_gpu_presets.py")
_gpu_classes.broken(
    "rounds-without-stride",
    "the rounds of a filling overlap instead of lying a block apart",
    "place = along[axis][None, :] + index[:, None] * many",
    "place = along[axis][None, :] + index[:, None]",
)
_gpu_classes.broken(
    "tests-forgotten",
    "loads outside of a tensor are made all the same",
    "is_on &= (stored >= 0) & (stored < use.axis.count)",
    "is_on &= stored < use.axis.count",
)
_gpu_kernel = In("gpu/kernel.py", "test_gpu_presets.py")
_gpu_kernel.broken(
    "tile-without-halo",
    "a tile in shared memory ends one place too early",
    "1 + sum(c * (self.span(dim, read.position) - 1)",
    "sum(c * (self.span(dim, read.position) - 1)",
)
_gpu_counts = In("gpu/_count_kernels.py", "test_gpu_presets.py")
_gpu_counts.broken(
    "sectors-by-begin",
    "every request begins a line",
    "shift = b * per_bin\n                done_sector",
    "shift = 0\n                done_sector",
)
_gpu_occupancy = In("gpu/occupancy.py", "test_gpu_occupancy.py")
_gpu_occupancy.broken(
    "registers-without-unit",
    "a warp takes just the registers that its threads need",
    "of_warp = -(-registers * gpu.warp_threads // unit) * unit",
    "of_warp = registers * gpu.warp_threads",
)
_compare = In("validation/compare.py", "test_validation.py")
_compare.broken(
    "error-of-the-measured",
    "errors are relative to the prediction",
    "value / measured - 1",
    "1 - measured / value",
    "test_margins.py",
)
_compare.broken(
    "nothing-is-left-dirty",
    "all that is written has reached memory at the end",
    "max(0, launch.written_bytes - (l2.capacity_bytes or 0))",
    "launch.written_bytes",
)
_statistics = In("base/statistics.py", "test_validation.py")
_statistics.broken(
    "ties-ranked-apart",
    "equal values do not share a rank",
    "(bisect_left(ordered, one) + bisect_right(ordered, one) + 1) / 2",
    "float(bisect_left(ordered, one) + 1)",
)

MEASURING = tuple(
    mutant
    for file in (
        _bounds, _inequalities, _windows, _lru, _sets, _walk, _levels, _distances, _belady, _cache,
        _simulated_waves, _system, _layout, _trace, _sectors, _tiles, _replay, _launch_order,
        _gpu_classes, _gpu_kernel, _gpu_counts, _gpu_occupancy,
        _compare, _statistics,
    )
    for mutant in file.mutants
)  # fmt: skip
