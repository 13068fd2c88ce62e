"""Mutants of the models: reuse, replay, traffic, time, and published models."""

from __future__ import annotations

from .mutant import In

_traffic = In("models/traffic.py", "test_reuse.py")
_traffic.broken(
    "exact-fit-refused",
    "what fills a buffer exactly does not fit",
    "not in own) <= self.shared_bytes",
    "not in own) < self.shared_bytes",
    "test_margins.py",
)
_traffic.broken(
    "own-room-exact-fit-refused",
    "what fills a tensor's own buffer exactly does not fit",
    "if any(need > own[name]",
    "if any(need >= own[name]",
    "test_margins.py",
)

_reuse = In("models/reuse.py", "test_margins.py", "test_reuse.py", "test_replay.py")
_reuse.broken(
    "reuse-whatever-bypasses",
    "what stays in a level is known whatever bypasses it",
    '("guaranteed", tensor.name, upto, room, item)',
    '("guaranteed", tensor.name, upto, room.shared_bytes, item)',
    "test_may_hold.py::test_what_bypasses_a_level_does_not_depend_on_what_was_scored_before",
)
_reuse.broken(
    "item-starts-outside",
    "what fits may be larger than a work item",
    "    upto = view.boundary\n    needs",
    "    upto = 0\n    needs",
)
_reuse.broken(
    "run-one-loop-late",
    "the loop that moves a tensor on counts as leaving it in place",
    "return Run(tuple(inner), upto, cut if slides else None)",
    "return Run(tuple(inner), upto - 1, cut if slides else None)",
)
_reuse.broken(
    "run-one-loop-early",
    "a tensor stays through one loop only",
    "            if cut.dim in indexed:",
    "            if cut.dim in indexed or inner:",
)
_reuse.broken(
    "slide-over-gaps",
    "a halo is granted where a stride leaves gaps in a window",
    "if slide and is_gapless(view, tensor, slide, upto):",
    "if slide:",
)
_reuse.broken(
    "gaps-of-a-stride-unseen",
    "a stride alone leaves no gaps",
    "return all(c == 1 for c, _ in moving)",
    "return True",
)
_reuse.broken(
    "slide-never",
    "no halo stays in a scratchpad",
    "    if slides and run.slide:\n        return view.slid_elems",
    "    if not slides and run.slide:\n        return view.slid_elems",
)
_reuse.broken(
    "window-counted-once",
    "between two bodies only one of them takes room",
    "        return many * one\n",
    "        return one\n",
)
_reuse.broken(
    "pair-is-one-piece",
    "two neighbouring pieces touch what one does",
    "extents[dim] = both = min(many * extents[dim], around)",
    "extents[dim] = both = min(extents[dim], around)",
)
_reuse.broken(
    "pair-without-copies",
    "of pairs side by side only one takes room",
    "    both *= view.n_copies(axis, upto)\n",
    "",
)
_reuse.broken(
    "run-without-room",
    "a tensor stays whether what comes in between fits or not",
    "if not run.inner or _stays(view, room, upto, run.inner, item):",
    "if True:",
)
_reuse.broken(
    "runs-past-cold-starts",
    "a run of equal bodies goes on where the levels inside start cold",
    "run = run_outside(view, tensor, upto, item.start)",
    "run = run_outside(view, tensor, upto)",
    "test_false_proofs.py",
)
_reuse.broken(
    "outermost-body-only",
    "deeper bodies, which may promise more reuse, are not looked at",
    "if sum(steady) >= least:",
    "if best:",
    "test_body.py",
    "test_reuse.py",
)
_reuse.broken(
    "certain-two-loops-inward",
    "visits deeper than certain are charged",
    "            yield upto\n",
    "            yield min(upto + 2, len(view.cuts))\n",
)
_reuse.broken(
    "certain-without-the-element",
    "what exactly fits between two uses certainly evicts",
    "others + tensor.element_bytes > room.shared_bytes:",
    "others + 2 * tensor.element_bytes > room.shared_bytes:",
)
_reuse.broken(
    "certain-overlap-counted-twice",
    "windows before and after are taken not to overlap",
    "max(1, (shortest - cut.extent) // 2)",
    "max(1, shortest - cut.extent)",
)
_reuse.broken(
    "certain-ignores-padding",
    "what is clipped counts as touched",
    "        return 0\n    if len(_moving(view.problem, axis)) == 1:",
    "        pass\n    if len(_moving(view.problem, axis)) == 1:",
)

_replay = In("models/replay.py", "test_margins.py", "test_replay.py")
_replay.broken(
    "clip-kind-lost",
    "items that the far padding clips differently are taken for equal",
    "key += [max(0, -first), max(0, last - (axis.size or 0) + 1)]",
    "key += [max(0, -first)]",
)
_replay.broken(
    "known-at-any-capacity",
    "what was replayed at one capacity is taken for that at another",
    "key = (*loops, *region, pool, budget, is_exact, is_point, stops)",
    "key = (*loops, *region, pool.tensors, budget, is_exact, is_point, stops)",
)
_replay.broken(
    "kinds-not-counted",
    "of equal items only the last is counted",
    "Item(start, length, count + (before.count if before else 0))",
    "Item(start, length, count)",
)
_replay.broken(
    "replay-drops-the-last-wave",
    "items that do not fill a wave do not run",
    "rows[group[0]][3] = -(-items // group[2])  # waves",
    "rows[group[0]][3] = max(1, items // group[2])",
)
_replay.broken(
    "replay-drops-the-last-trip",
    "a loop whose step does not divide makes one iteration too few",
    "trips = -(-size[loop.dim] // loop.extent)",
    "trips = max(1, size[loop.dim] // loop.extent)",
)
_replay.broken(
    "overflow-lost",
    "a body that does not fit alone still bounds what is moved",
    "point, point], True\n    return [low, point, anew], not state[kernels.OVERFLOW]",
    "point, point], True\n    return [low, point, anew], True",
)
_replay.broken(
    "gone-with-two-elements-less",
    "what with the element just fits has certainly evicted it",
    "*(pool.capacity_bytes - width for width in widths)",
    "*(pool.capacity_bytes - 2 * width for width in widths)",
)
_replay.broken(
    "gone-only-without-the-element",
    "the element's own room is forgotten: bounds do not close where they could",
    "*(pool.capacity_bytes - width for width in widths)",
    "*(pool.capacity_bytes for width in widths)",
)
_replay.broken(
    "narrower-takes-the-larger",
    "of two upper bounds the looser is kept",
    "min(count, fine.",
    "max(count, fine.",
)
_replay.broken(
    "own-rooms-shared",
    "tensors with room of their own share the common one",
    "pools = [Pool((t,), own[t.name]) for t in held if t.name in own]",
    "pools = [Pool((t,), room.shared_bytes) for t in held if t.name in own]",
)

_kernels = In("models/_replay_kernels.py", "test_replay.py", "test_margins.py")
_kernels.broken(
    "pieces-inside-not-counted",
    "pieces of an outer loop are numbered as if none were inside",
    "piece[dim] += digit * loops[i, 2]",
    "piece[dim] += digit",
)
_kernels.broken(
    "outermost-loop-fastest",
    "loops run in the reverse order",
    """    i = ended - 1
    while i >= 0:
        digits[i] += 1
        if digits[i] < loops[i, 3]:
            return int(i)
        digits[i] = 0
        i -= 1
""",
    """    i = 0
    while i < ended:
        digits[i] += 1
        if digits[i] < loops[i, 3]:
            return 0
        digits[i] = 0
        i += 1
""",
)
_kernels.broken(
    "waves-overlap",
    "a wave begins one item after the last one did",
    "number = digits[i] * n + left // inside",
    "number = digits[i] + left // inside",
)
_kernels.broken(
    "last-item-dropped",
    "the last item of a list does not run",
    "trips[k] = -(-length[loops[k, 0]] // loops[k, 1])",
    "trips[k] = max(1, length[loops[k, 0]] // loops[k, 1])",
)
_kernels.broken(
    "first-in-first-out",
    "a cell that is used again does not become the most recent",
    "if state[HEAD] == cell:",
    "if is_held:",
)
_kernels.broken(
    "evicts-when-full",
    "a cache that is exactly full evicts",
    "while state[USED] > capacity and state[TAIL] >= 0:",
    "while state[USED] > max(capacity - 1, 0) and state[TAIL] >= 0:",
)
_kernels.broken(
    "lower-window-inclusive",
    "the last visit itself counts as what came in between",
    "before < 0 or before + 1 < state[WINDOW + 2 * tensors[t, 4]]:",
    "before < 0 or before < state[WINDOW + 2 * tensors[t, 4]]:",
)
_kernels.broken(
    "upper-window-exclusive",
    "the last visit does not count as what came in between",
    "if whole <= touched[i, 2] < state[WINDOW]:",
    "if whole <= touched[i, 2] < state[WINDOW] - 1:",
)
_kernels.broken(
    "cell-stays-at-its-old-visit",
    "what is touched again takes room at both visits",
    "at[before] -= size",
    "at[before] -= 0",
)
_kernels.broken(
    "cell-in-window-twice",
    "what the first visit of a window touched counts again",
    "if before < whole:",
    "if before <= whole:",
)
_kernels.broken(
    "visit-alone-may-overflow",
    "a visit that does not fit alone is not noticed",
    "at[visit] <= limits[0]",
    "at[visit] <= 2 * limits[0]",
)
_kernels.broken(
    "items-go-on-beyond-their-ends",
    "items that are shorter than others touch as much",
    "begun and not works(outer_lengths, pick, offset)",
    "begun and False",
)
_kernels.broken(
    "items-of-a-list-all-begin-at-its-first",
    "what an item's number adds to the rows of its axes is left out",
    "rows[pick, axis] += counts[k] * steps[k - first, axis]",
    "rows[pick, axis] += 0 * steps[k - first, axis]",
)
_kernels.broken(
    "one-entry-of-the-axes-around",
    "of all axes but the innermost one only the first of several entries is touched",
    "if n_around <= 0 or not goes_on(several, n_around):",
    "if True:",
)
_kernels.broken(
    "every-replay-stops",
    "a replay that also counts from below ends at the first visit that does not fit",
    "if stops:",
    "if has_bounds:",
)
_kernels.broken(
    "longer-items-not-asked",
    "an item asks for nothing where a shorter one begins",
    "is_one = is_one and lengths[alike, dim] == lengths[pick, dim]",
    "is_one = is_one and lengths[alike, dim] > 0",
    "::test_a_longer_item_asks_where_a_shorter_one_with_the_same_data_ends",
)

_kernels.broken(
    "lists-side-by-side-end-together",
    "an item that one list lacks is the last of all lists",
    "is_listed = is_there or groups.shape[0] != 1 or groups[0, 1] < inside",
    "is_listed = is_there",
    "::test_a_list_that_ends_early_ends_no_other",
)
_kernels.broken(
    "one-wave-only",
    "boxes that an earlier wave asked for are not asked for again",
    "alike = done[box] - stamp",
    "alike = done[box] % lengths.shape[0]",
)

_cells = In("models/cells.py", "test_replay.py")
_cells.broken(
    "cells-of-one-position",
    "a cell holds one position, however many are in it",
    "weights = np.array([many[one] for one in kinds], dtype=np.int64)",
    "weights = np.array([1 for one in kinds], dtype=np.int64)",
)
_cells.broken(
    "rows-one-apart",
    "rows of cells are numbered as if each dimension had one piece",
    "strides.insert(0, n_rows)",
    "strides.insert(0, 1)",
)
_cells.broken(
    "cells-beyond-the-end",
    "the position after the last is stored",
    "is_stored = (place >= 0) & (place < axis.size)",
    "is_stored = (place >= 0) & (place <= axis.size)",
)
_cells.broken(
    "plain-cells-clip-end",
    "along one dimension, the last stored position is left out",
    "kept = np.minimum(weights, -((first - axis.size) // coefficient))",
    "kept = np.minimum(weights, -((first - axis.size + 1) // coefficient))",
)

_slices = In("models/slices.py", "test_replay.py")
_slices.broken(
    "first-touches-all-missing",
    "a slice finds nothing of the ones before",
    "sum(item.count * _elems(tensor, item) for item in items),",
    "touched,",
)
_slices.broken(
    "nothing-held-at-the-start",
    "a slice larger than the cache finds nothing",
    "held = pool.capacity_bytes // tensor.element_bytes",
    "held = 0",
)
_slices.broken(
    "first-touches-all-found",
    "a slice misses no more at first than it certainly must",
    "again + missing, again + at_most",
    "again + missing, again + missing",
)
_slices.broken(
    "slices-first-touch-twice",
    "what a slice brings in first is counted again",
    "again = inner.point[name] - touched",
    "again = inner.point[name]",
)

_buffer = In("models/buffer.py", "test_reuse.py", "test_replay.py")
_buffer.broken(
    "promise-ignores-waves-that-run-on",
    "the promise is not raised where waves end within an iteration",
    "if is_merged or not (is_whole or view.is_aligned):",
    "if is_merged:",
)
_buffer.broken(
    "promise-ignores-unfit-waves",
    "the promise is not raised where a step of a wave does not fit",
    "if is_merged or not (is_whole or view.is_aligned):",
    "if not (is_whole or view.is_aligned):",
)
_buffer.broken(
    "promise-lowered",
    "where waves run on, the smaller bound is promised",
    "return {name: max(count, high[name]) for name, count in visits.items()}",
    "return {name: min(count, high[name]) for name, count in visits.items()}",
)
_buffer.broken(
    "each-alone-in-all-the-room",
    "an instance alone has the room of all",
    "return promised_visits(alone, room.divided(n), asked=asked)",
    "return promised_visits(alone, room, asked=asked)",
    "test_margins.py",
)
_buffer.broken(
    "output-read-at-first",
    "the first visits of the output read it",
    "back = Bracket(moved.low - first, moved.point - first, moved.high - first)",
    "back = moved",
)
_buffer.broken(
    "write-back-lost",
    "the last visits of the output do not write it",
    "TensorTraffic(tensor.name, back, moved)",
    "TensorTraffic(tensor.name, back, back)",
)
_buffer.broken(
    "promised-write-back-lost",
    "the last visits of the output are promised for nothing",
    "Promise(moved - tensor_bytes(problem, tensor), moved)",
    "Promise(moved - tensor_bytes(problem, tensor), moved - tensor_bytes(problem, tensor))",
    "test_score.py",
    "test_reuse.py",
)
_buffer.broken(
    "double-buffer-for-nothing",
    "double-buffered tiles take their room once",
    "copies = 2 if double_buffered else 1",
    "copies = 1",
    "test_reuse.py",
    "test_places.py",
)
_buffer.broken(
    "tiles-at-the-innermost-place",
    "every tile is held from the innermost place inward",
    "upto = {place.tensor: view.n_cuts(place.position) for place in places}",
    "upto = {p.tensor: max(view.n_cuts(q.position) for q in places) for p in places}",
    "test_places.py",
)
_buffer.broken(
    "brackets-not-narrowed",
    "what a replay finds does not lower the upper bound",
    "high = {name: min(count, most.get(name, count)) for name, count in high.items()}",
    "high = {name: max(count, most.get(name, count)) for name, count in high.items()}",
)

_compute = In("models/compute.py", "test_compute.py")
_compute.broken(
    "partial-wave-free",
    "items that do not fill a wave take no time",
    "waves, full_waves = -(-n_items // instances),",
    "waves, full_waves = max(1, n_items // instances),",
)
_compute.broken(
    "edge-item-full-in-the-bound",
    "the bound counts an edge item as a full one",
    "known[cut] = largest, sum(pieces.values()), pieces[largest]",
    "known[cut] = largest, sum(pieces.values()), sum(pieces.values())",
)
_compute.broken(
    "edge-item-dropped",
    "an item at the edge is not worked on",
    "known[cut] = largest, sum(pieces.values()), pieces[largest]",
    "known[cut] = largest, pieces[largest], pieces[largest]",
)
_compute.broken(
    "last-list-dropped",
    "the rest of a temporal loop makes no list",
    "for length, trips in ((step, full), (rest, 1)):",
    "for length, trips in ((step, full),):",
)

_machine = In("models/machine.py", "test_machine.py", "test_score.py")
_machine.broken(
    "own-level-shared",
    "a unit's own level keeps what it holds from item to item",
    "if count <= level.instances",
    "if count < level.instances",
)
_machine.broken(
    "instances-of-all",
    "one instance of a level serves the units of all",
    "found[unit] = count // around",
    "found[unit] = count",
)

_score = In("models/score.py", "test_score.py")
_score.broken(
    "bandwidth-of-the-level-outside",
    "a level's traffic goes at the bandwidth of the next outer one",
    "level_s=tuple(map(_time, arch.caches, moved)),",
    "level_s=tuple(map(_time, arch.levels, moved)),",
)
_score.broken(
    "passing-tensors-free",
    "tensors that do not enter a level move a byte",
    "found[name] = inner if name in self.passing else self.own.promised[name]",
    "found[name] = Promise(1, 0) if name in self.passing else self.own.promised[name]",
)
_score.broken(
    "write-through-as-write-back",
    "a level that writes through writes its own visits",
    "Promise(found[name].read_bytes, inner.write_bytes)",
    "Promise(found[name].read_bytes, found[name].write_bytes)",
)
_score.broken(
    "registers-forgotten",
    "sums kept in registers are written through all the same",
    'level.write_policy == "through" and level.accumulate == "level"',
    'level.write_policy == "through"',
)
_traffic.broken(
    "first-access-reads",
    "the first access to each element of the output reads it",
    "writes, reads = every, every - tensor_bytes(problem, tensor)",
    "writes, reads = every, every",
    "test_score.py",
)
_score.broken(
    "bound-with-full-edges",
    "the bound on time counts edge items as full",
    "compute_bound_s = found.steps.least /",
    "compute_bound_s = found.steps.promised /",
    "test_margins.py",
)
_score.broken(
    "bound-at-sustained-bandwidth",
    "the bound on time takes the sustained bandwidth for the highest",
    "highest = level.bound_bandwidth_bytes_per_s",
    "highest = level.bandwidth_bytes_per_s",
)
_score.broken(
    "energy-of-one-side",
    "a byte costs energy in the outer level only",
    "both = (outer.energy_pj_per_byte or 0.0) + (level.energy_pj_per_byte or 0.0)",
    "both = outer.energy_pj_per_byte or 0.0",
)

_yalsa = In("published/yalsa.py", "test_yalsa.py")
_yalsa.broken(
    "yalsa-exact-fit",
    "Yalsa: what fills the cache exactly fits",
    "if reloaded_bytes < capacity_bytes:",
    "if reloaded_bytes <= capacity_bytes:",
)
_yalsa.broken(
    "yalsa-halo",
    "Yalsa: the bounding box is one position too wide",
    "coefficient * (extents.get(dim, 1) - 1)",
    "coefficient * extents.get(dim, 1)",
)
_yalsa.broken(
    "yalsa-in-double-precision",
    "Yalsa: the last division is not rounded to a 32-bit float",
    "return single(single(reloaded_bytes) / single(iterations / single(iterations_per_cycle)))",
    "return single(reloaded_bytes) / single(iterations / single(iterations_per_cycle))",
)
_float32 = In("models/float32.py", "test_yalsa.py")
_float32.broken(
    "rounded-twice",
    "large integers are rounded to 64 bits first, then to 32",
    "float((size >> excess) | sticky)",
    "float(size >> excess)",
    "test_margins.py",
)
_diannao = In("published/diannao.py", "test_yalsa.py")
_diannao.broken(
    "diannao-cycles-rounded-up",
    "DianNao: a part of a cycle counts as a cycle",
    "problem.macs // machine.iterations_per_cycle",
    "-(-problem.macs // machine.iterations_per_cycle)",
)
_report003 = In("published/model_003.py", "test_report003.py")
_report003.broken(
    "report003-gb",
    "report 003: GB are compared with GB, not GiB",
    "_BYTES_PER_GIB = 1 << 30",
    "_BYTES_PER_GIB = 10**9",
)
_report003.broken(
    "report003-rounded-bytes",
    "report 003: bytes a cycle are rounded, not cut",
    "return int(exact)",
    "return round(exact)",
)
_report003.broken(
    "report003-padded-image",
    "report 003: loops run over the padding, too",
    "sizes[dim] = reached if axis.size is None else axis.size",
    "sizes[dim] = reached",
)
_promise = In("models/_promise_kernels.py", "test_many.py")
_promise.broken(
    "many-last-wave-lost",
    "many schedules: items that do not fill a wave take no time",
    "w[LISTS + row, n_dims] *= -(-items // instances)",
    "w[LISTS + row, n_dims] *= max(1, items // instances)",
)
_axis = In("problems/_axis_kernels.py", "test_many.py")
_axis.broken(
    "many-gaps-filled",
    "many schedules: a stride leaves no gaps",
    "    if n2 == 1:\n        return c1 == 1",
    "    if n2 == 1:\n        return True",
)
_promise.broken(
    "many-halo-across-instances",
    "many schedules: instances side by side are neighbours of the next body's",
    "if n_between > 1 or w[IS_PARALLEL, upto - 1]:",
    "if n_between > 1:",
)
_promise.broken(
    "many-stays-from-item-to-item",
    "many schedules: what one work item left is there for the next",
    "while upto > w[NOW, BOUNDARY] and w[POSITION, upto - 1] >= start:",
    "while upto > 0 and w[POSITION, upto - 1] >= start:",
)
_promise.broken(
    "many-first-body-taken",
    "many schedules: smaller bodies than the first that fits are not tried",
    "if steady >= least:",
    "if steady >= 0:",
)
_promise.broken(
    "quick-least-of-full-waves",
    "compiled score: no run avoids the steps of waves that are not full",
    "w[LISTS + row, n_dims + 1] *= -(-as_long // instances)",
    "w[LISTS + row, n_dims + 1] *= -(-items // instances)",
)
_promises = In("models/promises.py", "test_many.py")
_promises.broken(
    "quick-waves-see-all",
    "compiled score: a cache behind others is asked for all, waves and all",
    "if len(arch.caches) > 1:",
    "if len(arch.caches) > 9:",
)
_promises.broken(
    "quick-units-swapped",
    "compiled score: what waits to be written back waits in the units that have no such level",
    "(size, frozenset(compress(self._units, are)))",
    "(size, frozenset(compress(self._units, [not one for one in are])))",
)
_quick = In("models/score.py", "test_many.py")
_quick.broken(
    "quick-least-of-one-unit",
    "compiled score: one unit could do all work at once",
    "max(row[kernels.LEAST_STEPS], least)",
    "least",
)
_quick.broken(
    "quick-commands-compile",
    "compiled score: a command that scores many schedules compiles code that it can do without",
    "(_n_scored >= COMPILED_FROM and jit.compiles_ahead)",
    "_n_scored >= COMPILED_FROM",
    "::test_compiled_code_is_made_when_it_pays",
)
_promises.broken(
    "many-one-buffer-of-two",
    "many schedules: the second copy of a tile takes no room",
    "copies = 2 if is_pad and level.double_buffered else 1",
    "copies = 1",
)
_promises.broken(
    "many-unknown-unit-is-a-loop",
    "many schedules: a unit that the machine does not have is no fault",
    "unit_at.get(loop.unit, -2)",
    "unit_at.get(loop.unit, -1)",
)
_promises.broken(
    "many-places-ignored",
    "many schedules: tiles that are placed one by one are not",
    "if schedule.places:",
    "if not schedule.loops:",
)
_promises.broken(
    "many-bytes-wrapped",
    "many schedules: numbers beyond 64 bits are wrapped",
    "if largest >= LARGE:",
    "if most >= LARGE:",
)
_promises.broken(
    "many-writes-held-back",
    "many schedules: a level that writes through keeps sums",
    'through = level.write_policy == "through" and level.accumulate == "level"',
    "through = False",
)
_waves = In("models/_wave_kernels.py", "test_many_waves.py")
_pools = In("models/_pool_kernels.py", "test_many_waves.py")
_waves.broken(
    "many-waves-one-list-of-each",
    "many schedules: of lists alike only one is run",
    "many *= w[LIST_MANY + d, i]",
    "many *= 1",
)
_waves.broken(
    "many-waves-alone-in-all-the-room",
    "many schedules: each instance by itself has the room of all",
    "w[NOW, ROOM] //= many",
    "w[NOW, ROOM] //= 1",
)
_waves.broken(
    "many-waves-alone-in-all-of-its-own",
    "many schedules: each instance by itself has all of a tensor's own room",
    "w[OWN, t] //= many",
    "w[OWN, t] //= 1",
)
_pools.broken(
    "many-waves-bodies-inside-of-all-asked",
    "many schedules: bodies inside of what levels inside ask for anew tell what comes in",
    "if limit < ALWAYS and depth and",
    "if limit < 0 and depth and",
)
_waves.broken(
    "many-waves-no-sums-come-late",
    "many schedules: sums are written back by the body that made them",
    "return min(w[ANEW, t], parted) if is_asked else ALWAYS",
    "return w[ANEW, t] if is_asked else ALWAYS",
)
_pools.broken(
    "many-waves-known-by-fewer-words",
    "many schedules: what a walk found is known whatever the extents of its loops",
    "word, w[IN_EXTENT, k]",
    "word, 1",
)
_pools.broken(
    "many-cuts-bring-in-alike",
    "many schedules: other ways to cut steps bring in as much as the first",
    "= w[TRIED + cut, KNOWN_MOST + t]",
    "= w[TRIED, KNOWN_MOST + t]",
    "::test_schedules_that_differ_in_one_loop",
)
_pools.broken(
    "many-cuts-fit-alike",
    "many schedules: ways to cut steps fit if the first does",
    "KNOWN_FITS if fits[cut] else KNOWN_UNFIT",
    "KNOWN_FITS if fits[0] else KNOWN_UNFIT",
    "::test_schedules_that_differ_in_one_loop",
)
_pools.broken(
    "many-waves-never-too-large",
    "many schedules: a visit that does not fit brings nothing in twice",
    "            if outcome == KNOWN_UNFIT:",
    "            if outcome == TOO_MUCH:",
)
_pools.broken(
    "many-waves-last-wave-lost",
    "many schedules: items that do not fill a wave are not walked",
    "loops[groups[g, 0], 3] = -(-n_items[g] // groups[g, 2])",
    "loops[groups[g, 0], 3] = max(1, n_items[g] // groups[g, 2])",
)
_pools.broken(
    "many-waves-cells-of-one-element",
    "many schedules: replays of windows bring in one element of each cell",
    "heir[cell[at]] += 1",
    "heir[cell[at]] = 1",
)
_pools.broken(
    "many-waves-padding-stored",
    "many schedules: replays of windows bring in the padding",
    "w[OFFSET, a] if w[IS_CLIPPED, a] else 0,",
    "0,",
)
_pools.broken(
    "many-lists-part-of-the-room",
    "many schedules: lists stay if all but what the last wave touches fits",
    "n * ((gap + n - 1) // n + 1))",
    "n * ((gap + n - 1) // n))",
)
_pools.broken(
    "many-lists-in-one-region",
    "many schedules: items of a list touch but one region of the first loops",
    "apart *= trips if w[BITS + t, d] & INDEXED else 1",
    "apart *= 1",
    "test_many_lists.py::test_items_in_a_row_reach_into_other_regions",
)
_pools.broken(
    "many-lists-gaps-of-inner-loops-only",
    "many schedules: an element comes again at the next item along an inner loop, always",
    "longest = max(longest, stride - back)",
    "longest = stride - back if longest == 0 else longest",
    "test_many_lists.py::test_an_element_comes_again_after_all_the_items_between",
)
_pools.broken(
    "many-lists-once-for-each-region",
    "many schedules: items in a row touch one region of the first loops",
    "many = (n_items - 2) // stride + 2 if n_items > 1 else 1",
    "many = (n_items - 2) // stride + 1 if n_items > 1 else 1",
    "test_many_lists.py",
)
_promises.broken(
    "many-threads-begin-anew",
    "many schedules: behind the first, rows are those of other schedules",
    "table, *loops, found[at : at + SOME]",
    "table, *loops, found[:SOME]",
    "test_many_waves.py",
)
_levels = In("models/_level_kernels.py", "test_many_waves.py")
_levels.broken(
    "many-waves-behind-end-with-iterations",
    "many schedules: behind levels inside, waves end with whole iterations",
    "if runs_on and not _raise_waves(w, level, BEHIND, True):",
    "if not runs_on and not _raise_waves(w, level, BEHIND, True):",
)
_pools.broken(
    "waves-steps-of-the-last-loop",
    "of loops that make steps only the last counts in what a replay may take",
    "steps *= -(-left // w[IN_EXTENT, k])",
    "steps = -(-left // w[IN_EXTENT, k])",
    "test_many_waves.py::test_what_takes_too_much_alone_is_not_found_by_the_way",
)
_levels.broken(
    "many-levels-read-only",
    "many schedules: what a level writes is not counted",
    "found[row, BYTES + level] += w[READ, t] + w[WRITTEN, t]",
    "found[row, BYTES + level] += w[READ, t]",
    "::test_any_products_on_any_machine",
)
_levels.broken(
    "many-sums-read-first",
    "many schedules: sums are read before they are first written",
    "moved - w[WHOLE_BYTES, t] if t == w[NOW, OUTPUT] else moved",
    "moved",
    "::test_any_products_on_any_machine",
)
_levels.broken(
    "many-nothing-written-through",
    "many schedules: a cache that writes through keeps what is written until it must go",
    "if not w[WRITES_THROUGH, level]:",
    "if w[WRITES_THROUGH, level] < 2:",
    "::test_any_products_on_any_machine",
)
_levels.broken(
    "many-halos-read-again",
    "many schedules: a level that keeps halos reads them again",
    "if slide >= 0 and w[KEEPS_HALO, level]:",
    "if slide >= 0 and w[KEEPS_HALO, level] > 1:",
    "::test_any_windows_on_any_machine",
)
_levels.broken(
    "many-lanes-of-any-unit",
    "many schedules: loops that are spread over processors count as lanes",
    "if w[UNIT, at] >= 0 and w[UNIT, at] == w[NOW, LANE]:",
    "if w[UNIT, at] >= 0:",
    "test_many.py::test_lanes_and_levels_that_a_schedule_chooses",
)

MODELS = tuple(
    mutant
    for file in (
        _promise, _axis, _promises, _traffic, _reuse, _replay, _kernels, _cells, _slices, _buffer,
        _compute, _machine, _score, _quick, _waves, _pools, _levels,
        _yalsa, _float32, _diannao, _report003,
    )
    for mutant in file.mutants
)  # fmt: skip
