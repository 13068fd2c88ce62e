"""Mutants of the checker of proofs: rules that accept too much."""

from __future__ import annotations

from .mutant import In

_STEPS = "test_verify.py::test_steps_of_items_are_the_least_of_all_lists"
_WINDOW = "test_verify.py::test_no_way_to_cut_a_window_touches_less"
_LEAF = "test_verify.py::test_a_leaf_of_another_kind_holds_only_by_its_own_rule"
_SAID = "test_verify.py::test_what_is_wrong_is_said"

_bounds = In("verify/bounds.py", _STEPS)
_bounds.broken(
    "proof-no-rest-list",
    "a rest of items is never in a list of its own",
    "return [one, [(whole, high), (1, n - whole * high)]]",
    "return [one]",
)
_bounds.broken(
    "proof-box-at-high",
    "items of a box are as long as its longest",
    "one, whole = [(-(-n // high), low)], n // high",
    "one, whole = [(-(-n // high), high)], n // high",
)
_bounds.broken(
    "proof-overlaps-largest",
    "pieces meet where they share most",
    "accumulate(sorted(shared), initial=0)",
    "accumulate(sorted(shared, reverse=True), initial=0)",
    _WINDOW,
)
_bounds.broken(
    "proof-overlap-of-padding",
    "what pieces share in the padding counts",
    "marks = (stored(axis, (",
    "marks = (stored(replace(axis, size=None), (",
    _WINDOW,
)

_bounds.broken(
    "proof-padding-once-a-side",
    "bodies side by side store all that they touch",
    "found[t.name] *= max(0, touched(free, region) - outside)",
    "found[t.name] *= touched(free, region)",
    _WINDOW,
)

_value = In("verify/value.py", "test_verify.py::test_no_cache_that_is_followed_brings_in_more")
_value.broken(
    "proof-waves-always-end",
    "all waves end with whole iterations",
    "is_even &= is_whole and is_regular",
    "is_even &= is_regular",
)
_value.broken(
    "proof-one-tile-at-a-time",
    "of the tiles of a wave one takes room",
    "sizes = {t.name: most[t.name] * view.footprint(t, upto) for t in held}",
    "sizes = {t.name: view.footprint(t, upto) for t in held}",
    "test_verify.py::test_tiles_of_a_wave_take_room_together",
)

_value.broken(
    "proof-large-waves-fit",
    "a wave that does not fit brings nothing in twice",
    "if gone == now:",
    "if gone > now:",
    "test_verify.py::test_a_wave_that_does_not_fit_may_bring_in_twice",
)
_value.broken(
    "proof-all-waves-stay",
    "what waves that do not fit together touched stays where it was not evicted first",
    "if last <= gone]",
    "if last < 0]",
    "test_verify.py::test_what_the_latest_waves_touched_stays",
)
_value.broken(
    "proof-lists-below-promise",
    "lists that run on may bring in less than is promised of lists that do not",
    "max(n, listed[name])",
    "listed[name]",
)

_value.broken(
    "proof-neighbours-are-one",
    "two bodies in a row touch what one does",
    "(marks | known).bit_count()",
    "marks.bit_count()",
    "test_verify.py::test_neighbours_count_what_they_share_once",
)

_log = In("verify/log.py", _SAID)
_log.broken(
    "proof-value-unchecked",
    "the schedule may have any value",
    "    if value != best:",
    "    if value > 2 * best:",
)
_log.broken(
    "proof-boxes-left-open",
    "a tree may end before all boxes are closed",
    "    if todo:\n",
    "    if len(todo) > 1:\n",
)
_log.broken(
    "proof-split-outside",
    "a split may lie outside its box",
    "not low[at] <= extent < high[at]",
    "not low[at] <= extent <= high[at]",
)
_log.broken(
    "proof-any-leaf",
    "steps of a box need not reach the bound",
    "more = min(self.bounds.steps(low, high)), 0",
    "more = 2 * min(self.bounds.steps(low, high)), 0",
    _LEAF,
)

_behind = In(
    "verify/value.py",
    "test_verify.py::test_what_caches_that_see_all_would_keep_has_left_those_behind",
)
_behind.broken(
    "proof-behind-others-do-not-matter",
    "what outer loops of an item do to a tensor does not matter",
    "if (others <= parts and stays) or",
    "if stays or",
)
_behind.broken(
    "proof-behind-items-keep",
    "something stays from one item to the next, whatever comes between",
    '*inner.items, ("items", ()), (None',
    "*inner.items, (None",
)
_behind.broken(
    "proof-behind-sees-all",
    "a cache behind a level sees all accesses",
    "counted = behind(view, count, capacity, inner, counted) if brought else counted",
    "",
)
_behind.broken(
    "proof-behind-all-once",
    "each item asks for every element once",
    "if inner.seen[t.name] == view.visits(t, view.start)}",
    "}",
)
_behind.broken(
    "proof-behind-tiles-come-in-turn",
    "a scratchpad loads no more than its body at once",
    'if {each.kind for each in arch.caches[at:]} == {"cache"}:',
    "if arch.caches:",
    "test_verify.py::test_a_cache_behind_a_scratchpad_does_not_see_what_it_keeps",
)

PROOFS = tuple(mutant for group in (_bounds, _value, _log, _behind) for mutant in group.mutants)
