"""Mutants of simulations: what is asked, counted, measured."""

from __future__ import annotations

from .mutant import In

_distances = In("simulator/distances.py", "test_simulator.py")
_distances.broken(
    "distances-hit-at-less",
    "an access hits in a cache one unit too small",
    "if far > capacity_bytes\n",
    "if far > capacity_bytes + 1\n",
    "::TestStackDistances::test_equal_every_capacity_alone",
)
_distances.broken(
    "distances-first-forgotten",
    "first touches are no misses",
    "return self.first + sum(",
    "return sum(",
    "::TestStackDistances::test_equal_every_capacity_alone",
)
_distances.broken(
    "distances-left-uncounted",
    "what is left in the cache counts as written",
    "if far <= capacity\n",
    "if far < capacity\n",
    "::TestStackDistances::test_equal_every_capacity_alone",
)
_distances.broken(
    "distances-units-of-largest",
    "distances are counted in units of the largest element",
    "unit = gcd(*memory.unit_bytes)",
    "unit = max(memory.unit_bytes)",
    "::TestStackDistances::test_long_time_is_compacted",
)
_distances.broken(
    "distances-left-of-inputs",
    "what is left of inputs counts, too",
    "        if name == memory.problem.output:\n            mine",
    "        if name != memory.problem.output:\n            mine",
    "::TestStackDistances::test_equal_every_capacity_alone",
)
_front = In("simulator/front.py", "test_simulator.py")
_front.broken(
    "front-progress-of-one-tensor",
    "the whole is the accesses of one tensor",
    "told, total = progress, problem.macs * len(problem.tensors)",
    "told, total = progress, problem.macs",
    "::TestArguments::test_progress_is_told_and_ends_at_all",
)
_front.broken(
    "front-through-ignored",
    "what is written waits for its eviction",
    'is_through = target.write_policy == "through"',
    'is_through = target.write_policy == "back"',
    "::TestSets::test_equals_a_literal_cache_of_lists",
)
_front.broken(
    "front-random-is-lru",
    "random victims are the least recently used",
    'is_random = asked.policy == "random"',
    'is_random = asked.policy == "belady"',
    "::TestSets::test_seeds_matter_and_random_beats_lru_on_a_loop_too_long",
)
_front.broken(
    "front-seed-fixed",
    "every seed is the same",
    "is_random=is_random, seed=asked.seed,",
    "is_random=is_random, seed=0,",
    "::TestSets::test_seeds_matter_and_random_beats_lru_on_a_loop_too_long",
)
_front.broken(
    "front-best-is-lru",
    "the best victims are the least recently used",
    '    if asked.policy == "belady":\n        return',
    '    if asked.policy == "":\n        return',
    ">>> simulate",
)
_result = In("simulator/result.py", "test_counts.py")
_result.broken(
    "counts-hits-are-misses",
    "hits and misses change places",
    'return self._sum("hits")',
    'return self._sum("misses")',
    "::test_sums_are_those_of_the_outermost_level",
)
_result.broken(
    "counts-no-accesses-no-hits",
    "a level that nothing reaches has no hits",
    "return self.hits / accesses if accesses else 1.0",
    "return self.hits / accesses if accesses else 0.0",
    "::test_sums_are_those_of_the_outermost_level",
)
_result.broken(
    "counts-sums-of-innermost",
    "sums are those of the innermost level",
    "return self.levels[0].tensors",
    "return self.levels[-1].tensors",
    "::test_sums_are_those_of_the_outermost_level",
)
_result.broken(
    "counts-reads-alone",
    "bytes are those that are read",
    '        """Reads and writes together."""\n'
    "        return self.read_bytes + self.write_bytes\n"
    "\n"
    "    @property\n"
    "    def hit_rate",
    '        """Reads and writes together."""\n'
    "        return self.read_bytes\n"
    "\n"
    "    @property\n"
    "    def hit_rate",
    "::test_sums_are_those_of_the_outermost_level",
)
_result.broken(
    "counts-order-as-found",
    "counts stand in the order in which they were found",
    "return {name: by_name[name] for name in names}",
    "return {name: by_name[name] for name in by_name}",
    "::test_counts_come_in_the_order_asked_for",
)
_simulated = In("simulator/simulated.py", "test_simulator.py")
_simulated.broken(
    "simulated-sets-of-parts",
    "a capacity need not be whole sets",
    "elif capacity % a_set or not capacity:",
    "elif not capacity:",
    "::TestArguments::test_faults_are_told",
)
_simulated.broken(
    "simulated-random-without-sets",
    "random victims are picked without sets",
    '        elif self.policy == "random":',
    '        elif self.policy == "":',
    "::TestArguments::test_faults_are_told",
)
_simulated.broken(
    "simulated-foreign-field",
    "a field of the other kind is passed over",
    '    for name in (name for name in named if name not in own and name != "capacity_bytes"):',
    "    for name in (name for name in named if name not in every):",
    "::TestArguments::test_faults_are_told",
)
_simulated.broken(
    "simulated-belady-in-sets",
    "the best victims are picked within sets",
    '        elif self.policy == "belady":',
    '        elif self.policy == "":',
    "::TestArguments::test_faults_are_told",
)
_simulated.broken(
    "simulated-any-policy",
    "an unknown policy is no fault",
    '        check.choice("policy", self.policy, get_args(Policy))\n',
    "",
    "::TestArguments::test_faults_are_told",
)
_tiles = In("simulator/tiles.py", "test_simulator_tiles.py")
_tiles.broken(
    "tiles-spatial-inside",
    "spatial loops belong to the tile",
    "        if loop.is_spatial or loop.dim in inside:",
    "        if loop.dim in inside:",
    "::test_where_the_tile_begins",
)
_tiles.broken(
    "tiles-first-read",
    "the output is read before it is first written",
    "reads, backs = reads - tensor_bytes(problem, tensor), brought",
    "reads, backs = reads, brought",
    "::test_tiles_of_one_point_are_elements",
)
_tiles.broken(
    "tiles-through-waits",
    "a level that writes through keeps what is written",
    'through = level.write_policy == "through" and level.accumulate == "level"',
    'through = level.write_policy == "through" and level.accumulate == "registers"',
    "::test_levels_of_a_machine",
)
_tiles.broken(
    "tiles-asked-once",
    "what tiles ask for is what they touch once",
    "return {tensor.name: view.visits_elems(tensor, upto) for tensor in problem.tensors}",
    "return {tensor.name: view.visits_elems(tensor, 0) for tensor in problem.tensors}",
    "::test_tiles_of_one_point_are_elements",
)
_tiles.broken(
    "tiles-bytes-as-elements",
    "bytes are counted in elements",
    "counts[name] = TensorCounts(name, asked[name], brought, backs, reads, backs * size)",
    "counts[name] = TensorCounts(name, asked[name], brought, backs, reads, backs)",
    "::test_tiles_of_one_point_are_elements",
)

SIMULATOR = (
    *_distances.mutants,
    *_front.mutants,
    *_result.mutants,
    *_simulated.mutants,
    *_tiles.mutants,
)
