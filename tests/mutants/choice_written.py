"""Mutants of chosen kernels as Triton's source, and of choices handed to Triton and Inductor."""

from __future__ import annotations

from .mutant import In

_kernel = In("exchange/triton_text.py", "test_triton_kernel.py")
_kernel.broken(
    "kernel-rows-not-wrapped",
    "rows beyond A are read",
    "rows = (row * BLOCK_M + tl.arange(0, BLOCK_M)) % m\n",
    "rows = row * BLOCK_M + tl.arange(0, BLOCK_M)\n",
    "::test_products_are_right",
)
_kernel.broken(
    "kernel-last-group-high",
    "the last group has as many rows of tiles as the others",
    "high = min(down - first, GROUP_M)",
    "high = GROUP_M",
    "::test_products_are_right",
)
_kernel.broken(
    "kernel-columns-in-order",
    "B is read as row-major, whatever its strides",
    "at_b += BLOCK_K * b_row",
    "at_b += BLOCK_K * n",
    "::test_products_are_right",
)
_kernel.broken(
    "kernel-terms-unmasked",
    "terms beyond a sum are added",
    "y = tl.load(at_b, mask=terms[:, None] < left, other=0.0)",
    "y = tl.load(at_b, mask=terms[:, None] < k, other=0.0)",
    "::test_products_are_right",
)
_kernel.broken(
    "kernel-padding-bottom",
    "windows begin as far to the left as above",
    "PADDING[0], PADDING[2], R, S,",
    "PADDING[0], PADDING[0], R, S,",
    "::test_convolutions_are_right",
)
_kernel.broken(
    "kernel-window-below",
    "windows read below the image",
    "(ih >= 0) & (ih < h) &",
    "(ih >= 0) & (ih <= h) &",
    "::test_convolutions_are_right",
)
_kernel.broken(
    "kernel-filters-without-holes",
    "filters have no holes",
    "ih, iw = row + r * hole_h, column + s * hole_w",
    "ih, iw = row + r, column + s * hole_w",
    "::test_convolutions_are_right",
)
_kernel.broken(
    "kernel-batch-first-product",
    "all products of a batch read the first B",
    "a, b, c = a + which * m * k, b + which * k * n, c + which * m * n",
    "a, b, c = a + which * m * k, b, c + which * m * n",
    "::test_batches_are_right",
)
_kernel.broken(
    "kernel-split-last-part",
    "the last part of a sum reads beyond it",
    "here = tl.minimum(k - part * each, each)",
    "here = each",
    "::test_split_sums_are_right",
)
_kernel.broken(
    "kernel-grouped-tiles-on",
    "tiles of a product are counted from the first product's",
    "block -= tl.load(ends + which)",
    "block -= tl.load(ends)",
    "::test_grouped_products_are_right",
)
_kernel.broken(
    "kernel-attention-not-shrunk",
    "sums are not shrunk as a larger score is found",
    "sums = sums * shrink[:, None]",
    "sums = sums * 1.0",
    "::test_attention_is_right",
)
_kernel.broken(
    "kernel-parts-weigh-alike",
    "parts of the keys weigh alike",
    "found = tl.sum(x * share[:, None], 0) / tl.sum(share, 0)",
    "found = tl.sum(x, 0) / tl.sum(share, 0)",
    "::test_attention_is_right",
)
_writer = In("exchange/triton_kernel.py", "test_triton_kernel.py")
_writer.broken(
    "kernel-keys-unmasked",
    "keys beyond the last are attended to",
    '["here[None, :] < keys"] * is_ragged + [f"here',
    '["here[None, :] < keys"] * False + [f"here',
    "::test_attention_is_right",
)
_writer.broken(
    "kernel-batch-split",
    "the kernel of a batch forgets that its sums are split",
    "    if is_split:\n        raise",
    "    if not sizes:\n        raise",
    "::test_what_is_not_written_is_said",
)
_writer.broken(
    "kernel-sizes-always-known",
    "sizes that are multiples of 16 are compiled in",
    "1 < math.gcd(size, 16) < 16",
    "1 < math.gcd(size, 16)",
    "::test_sizes_that_triton_does_not_notice_are_compiled_in",
)
_writer.broken(
    "kernel-last-queries-see-first",
    "queries at the end see the keys that as many at the beginning would",
    '"om[:, None] % queries + keys - queries" if is_split',
    '"om[:, None] % queries" if is_split',
    "::test_attention_is_right",
)
_writer.broken(
    "kernel-narrow-heads-unmasked",
    "columns beyond a head's size are read",
    "is_narrow = size < problem.columns",
    "is_narrow = size > problem.columns",
    "::test_attention_is_right",
)
_writer.broken(
    "kernel-lengths-left-out",
    "products are said to begin at multiples that only their numbers of columns have",
    ", *(k for _, _, k in products)),",
    "),",
    "::test_grouped_products_are_right",
)
_tuner = In("integrations/triton.py", "test_triton_kernel.py")
_tuner.broken(
    "tuner-places-shifted",
    "configurations that cannot run shift those that are kept",
    "[places[at] for at in ranked.order[:top]]",
    "[int(at) for at in ranked.order[:top]]",
    "::test_the_tuner_keeps_the_first_choices",
)
_tuner.broken(
    "tuner-top-ignored",
    "five configurations are kept, whatever is asked for",
    "for at in ranked.order[:top]]",
    "for at in ranked.order[:5]]",
    "::test_the_tuner_keeps_the_first_choices",
)
_tuner.broken(
    "tuner-groups-of-eight",
    "a kernel without groups of rows passes for one with groups of eight",
    'found = {"group_m": 1} | spelled(',
    'found = {"group_m": 8} | spelled(',
    "::test_kernels_may_call_parameters_as_they_like",
)
_tuner.broken(
    "tuner-launch-arguments",
    "sizes that are given at the launch are not read",
    "known = dict(named_args) | more",
    "known = dict(named_args)",
    "::test_kernels_may_call_parameters_as_they_like",
)
_tuner.broken(
    "tuner-bytes-are-halves",
    "operands of single bytes pass for halves",
    '"float8_e5m2": "fp8",',
    '"float8_e5m2": "fp16",',
    "::test_the_tuner_is_told_the_machine_and_type_by_its_arguments",
)
_tuner.broken(
    "tuner-silent",
    "nothing is said of a space that is left to the tuner",
    "_LOG.warning(",
    "_LOG.debug(",
    "::test_what_is_not_known_is_left_to_the_tuner",
)

_inductor = In("integrations/inductor.py", "test_inductor.py")
_inductor.broken(
    "inductor-libraries-cut",
    "templates that no family models are cut as well",
    "            if uid in _TEMPLATES\n",
    "            if uid\n",
    "::test_other_templates_and_libraries_stay",
)
_inductor.broken(
    "inductor-batch-lost",
    "a batch of products is taken for one",
    "batch = int(shape[0]) if len(shape) == 3 else 1",
    "batch = 1",
    "::test_batches_and_a_bias_before_the_operands",
)
_inductor.broken(
    "inductor-exact-as-tf32",
    "exact fp32 products pass for those of TF32",
    'if name == "float32" and not all(one.get("ALLOW_TF32") for one in told):',
    "if False:",
    "::test_tf32_needs_leave",
)
_inductor.broken(
    "inductor-key-alike",
    "caches do not tell how many configurations are kept",
    'return f"loopsched {__version__} {name} {self.top}"',
    'return f"loopsched {__version__} {name}"',
    "::test_it_is_put_in_place_for_this_thread_and_later_ones",
)
_inductor.broken(
    "inductor-later-threads",
    "threads that start later keep Inductor's own choices",
    "        config.inductor_choices_class = factory",
    "        pass",
    "::test_it_is_put_in_place_for_this_thread_and_later_ones",
)

CHOICE_WRITTEN = (
    *_kernel.mutants,
    *_writer.mutants,
    *_tuner.mutants,
    *_inductor.mutants,
)
