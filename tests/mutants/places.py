"""Mutants of places of tiles, and reasons."""

from __future__ import annotations

from .mutant import In

_places = In("models/places.py", "test_places.py")
_places.broken(
    "places-held-may-pass",
    "a tensor that a level always holds may pass it",
    "        and not any(word in (level.holds or ()) for word in roles(problem, tensor))\n",
    "",
    "test_may_hold.py::test_what_is_always_held_may_not_pass_under_another_word",
)
_places.broken(
    "places-in-caches",
    "tiles may be placed in a cache",
    'elif levels[name].kind != "scratchpad":',
    'elif levels[name].kind == "memory":',
    "::test_places_that_the_machine_does_not_have",
)
_places.broken(
    "places-outside-own-work",
    "a tile may stand outside the loops that hand out work",
    "        if at <= handed:",
    "        if at < handed:",
    "::test_tiles_of_an_instance_are_of_its_own_work",
)
_places.broken(
    "places-amid-a-list",
    "a tile may stand between loops of one unit",
    "loops[at - 1].unit == loops[at].unit:",
    "loops[at - 1].unit != loops[at].unit:",
    "::test_a_wave_of_tiles",
)
_places.broken(
    "places-inner-outside",
    "a tile may stand outside the one that it comes from",
    "            if inner.position < outer.position:",
    "            if inner.position < outer.position - 1:",
    "::test_a_tile_comes_out_of_the_tile_around_it",
)
_reasons = In("models/reasons.py", "test_reasons.py")
_reasons.broken(
    "reasons-first-is-innermost",
    "the innermost loop of a dimension is blamed",
    "for cut in view.chain(dim, outside) if not cut.is_parallel)",
    "for cut in reversed(list(view.chain(dim, outside))) if not cut.is_parallel)",
    "::test_gemm_refetches",
)
_reasons.broken(
    "reasons-own-loops-blamed",
    "loops that index a tensor are said to fetch it again",
    "if not tensor.is_indexed_by(dim) and times > 1:",
    "if times > 1:",
    "::test_gemm_refetches",
)
_reasons.broken(
    "reasons-overflow-one-in",
    "the loop that overflows is the one whose region fits",
    "        too_large = view.cuts[fit - 1].position",
    "        too_large = view.cuts[fit].position",
    "::test_the_overflowing_region_is_named",
)
_reasons.broken(
    "reasons-better-is-told",
    "what the first schedule does better is given as a reason",
    "        if a.bytes > b.bytes:\n            head",
    "        if a.bytes != b.bytes:\n            head",
    "::TestCompare::test_the_heaviest_comes_first",
)
_reasons.broken(
    "reasons-ratio-inverted",
    "the ratio of bytes is upside down",
    'f" ({a.bytes / b.bytes:.1f} times)"',
    'f" ({b.bytes / a.bytes:.1f} times)"',
    "::TestCompare::test_small_tiles_fetch_more_often",
)
_reasons.broken(
    "reasons-halo-forgotten",
    "the overlap of tiles is no cause",
    "    if a.halo > b.halo + 0.005:",
    "    if a.halo > b.halo + 5:",
    "::TestCompare::test_overlap_of_tiles_is_named",
)

PLACES = (
    *_places.mutants,
    *_reasons.mutants,
)
