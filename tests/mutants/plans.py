"""Mutants of chains, stages and plans of fusion."""

from __future__ import annotations

from .mutant import In

_chains = In("fusion/chains.py", "test_fusion.py")
_chains.broken(
    "chains-width-of-elements",
    "elements of different widths chain",
    "    if next_.bytes_in != before.bytes_out:",
    "    if next_.bytes_in > before.bytes_out:",
    "::test_chains_end_where_layers_do_not_fit",
)
_chains.broken(
    "chains-columns-as-rows",
    "a product chains that reads rows as columns",
    '    if problem.kind == "gemm" and problem.tensor("A").dims[0] != "M":',
    '    if problem.kind == "gemm" and problem.tensor("A").dims[0] == "":',
    "test_fusion_models.py::test_a_transposed_operand_is_not_passed_on_by_rows",
)
_chains.broken(
    "chains-uneven-pool-first",
    "the smallest pooling is guessed although it cuts the image unevenly",
    "key=lambda one: (bool(high % one or wide % one), one)):",
    "key=lambda one: one):",
    "test_fusion_models.py::test_poolings_are_those_of_the_model_not_those_that_shapes_ask_for",
)
_chains.broken(
    "chains-products-read-themselves",
    "copies of a product stand in a row",
    '        problem.kind == "conv2d"\n        and not why',
    '        problem.kind != ""\n        and not why',
    "test_fusion_cli.py::test_products_of_one_shape_are_side_by_side",
)
_chains.broken(
    "chains-count-of-block",
    "a repeated block occurs once",
    "            yield block, count\n",
    "            yield block, 1\n",
    "test_fusion_cli.py::test_a_plain_list_repeats_blocks_of_one_count",
)
_chains.broken(
    "chains-links-stay",
    "links of a chain go on into the next one",
    "stages, links = [first_stage(item)], []",
    "stages = [first_stage(item)]",
    "::test_chains_end_where_layers_do_not_fit",
)
_chains.broken(
    "chains-known-pool-assumed",
    "a pooling that is given counts as assumed",
    "is_assumed=pool is None))",
    "is_assumed=True))",
    "::test_only_poolings_that_are_not_given_are_assumed",
)
_chains.broken(
    "chains-pool-at-the-end",
    "a pooling may stand behind the last layer",
    "            if len(sides) < 2 or any",
    "            if len(sides) < 1 or any",
    "::test_only_poolings_that_are_not_given_are_assumed",
)
_plan = In("fusion/plan.py", "test_fusion.py")
_plan.broken(
    "plan-traffic-once",
    "a group that occurs twice moves its bytes once",
    "return sum(group.count * group.dram_bytes for group in self.groups)",
    "return sum(group.dram_bytes for group in self.groups)",
    "::test_a_plan_counts_a_block_as_often_as_it_occurs",
)
_plan.broken(
    "plan-macs-once",
    "a group that occurs twice computes once",
    "return sum(group.count * group.macs for group in self.groups)",
    "return sum(group.macs for group in self.groups)",
    "::test_a_plan_counts_a_block_as_often_as_it_occurs",
)
_plan.broken(
    "plan-whole-is-cut",
    "loops over whole dimensions are listed",
    "if sizes[name] < whole[name]),",
    "if sizes[name] <= whole[name]),",
    "::test_a_plan_counts_a_block_as_often_as_it_occurs",
)
_plan.broken(
    "plan-pools-are-layers",
    "poolings count as layers",
    "layers = [stage for stage in stages if stage.problem is not None]",
    "layers = list(stages)",
    "::test_feature_maps_of_the_fused_layer_accelerator",
)
_plan.broken(
    "plan-saved-negative",
    "what fusing saves has the wrong sign",
    "return self.unfused_bytes - self.dram_bytes\n\n    @property\n    def macs",
    "return self.dram_bytes - self.unfused_bytes\n\n    @property\n    def macs",
    "::test_a_plan_counts_a_block_as_often_as_it_occurs",
)
_stages = In("fusion/stages.py", "test_fusion.py")
_stages.broken(
    "stages-pad-on-one-side",
    "a pooling pads one side",
    "(size + 2 * self.padding - self.window) // self.step + 1",
    "(size + self.padding - self.window) // self.step + 1",
    "::test_the_best_tile_equals_a_literal_walk_of_all_tiles",
)
_stages.broken(
    "stages-groups-of-one",
    "the channels of one group are all channels",
    'groups * size["C"], groups * size["K"],',
    'size["C"], size["K"],',
    "::test_the_programme_equals_brute_force_over_all_partitions_and_tiles",
)
_stages.broken(
    "stages-macs-of-all-images",
    "a position computes for all images",
    'problem.macs // (size["N"] * size["P"] * size["Q"])',
    'problem.macs // (size["P"] * size["Q"])',
    "::test_the_best_tile_equals_a_literal_walk_of_all_tiles",
)
_stages.broken(
    "stages-height-for-width",
    "a pooling along the width is that along the height",
    "window or Window(size, size) for window, size in zip(given, have, strict=True)",
    "given[0] or Window(size, size) for window, size in zip(given, have, strict=True)",
    "test_fusion_models.py::test_groups_of_models_equal_a_literal_walk",
)
_stages.broken(
    "stages-images-flat",
    "rows that are flattened images keep all channels",
    'size["K"] // (high * wide), size["N"]',
    'size["K"] // high, size["N"]',
    ">>> stage_of",
)

PLANS = (
    *_chains.mutants,
    *_plan.mutants,
    *_stages.mutants,
)
