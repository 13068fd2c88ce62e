"""Mutants of nests as text, loops and files; operations on them."""

from __future__ import annotations

from .mutant import In

_notation = In("nests/notation.py", "test_notation.py")
_notation.broken(
    "notation-growth-forgotten",
    "an extent may grow inward after one that shrank",
    "        outer[one.dim] = min(bound, one.extent)",
    "        outer[one.dim] = max(bound, one.extent)",
    "::test_malformed_text",
)
_notation.broken(
    "notation-short-cover",
    "a dimension need not be covered",
    "        elif outermost.extent != size:",
    "        elif outermost.extent > size:",
    "::test_malformed_text",
)
_notation.broken(
    "notation-missing-cover",
    "a dimension without a loop is no fault",
    "            if size > 1:\n                yield",
    "            if size < 1:\n                yield",
    "::test_faults_in_the_dialect_are_told_in_its_letters",
)
_notation.broken(
    "notation-case-of-two",
    "two dimensions that differ in case are taken for one another",
    "if dims.count(dim.casefold()) == 1}",
    "if dims.count(dim.casefold()) >= 1}",
    "::test_dims_that_differ_in_case_only_are_kept_apart",
)
_notation.broken(
    "notation-placed-twice",
    "a tensor may be placed twice in a level",
    "            elif (level, tensor) in seen:",
    "            elif (tensor, level) in seen:",
    "::test_malformed_places",
)
_notation.broken(
    "notation-pass-inside",
    "a tensor may pass a level from some loop inward",
    "            if passes and position:",
    "            if passes and position > 99:",
    "test_may_hold.py::test_marks_that_cannot_be_read",
)
_notation.broken(
    "notation-aliases-everywhere",
    "names of convolutions hold for other problems",
    '    if problem.kind == "conv2d":\n        folded',
    "    if problem.kind:\n        folded",
    "::test_a_matrix_product_has_no_aliases",
)
_ops = In("nests/ops.py", "test_ops.py")
_ops.broken(
    "ops-split-outside",
    "a split puts the tile outside its loop",
    "loops.insert(place + 1, replace(loops[place], extent=extent))",
    "loops.insert(place, replace(loops[place], extent=extent))",
    "::test_what_cannot_be_done",
)
_ops.broken(
    "ops-places-stay",
    "places do not move along with a new loop",
    "return Schedule(tuple(loops), _moved(schedule, lambda at: at + (at > place)))\n\n\ndef resize",
    "return Schedule(tuple(loops), schedule.places)\n\n\ndef resize",
    "::test_tiles_stay_what_they_were",
)
_ops.broken(
    "ops-places-at-the-loop-move",
    "places just outside a new loop go inside it",
    "return Schedule(tuple(loops), _moved(schedule, lambda at: at + (at > place)))\n\n\ndef split",
    "return Schedule(tuple(loops), _moved(schedule, lambda at: at + (at >= place)))\n\n\ndef split",
    "::test_a_tile_goes_inside_the_places_at_its_position",
)
_ops.broken(
    "ops-spatial-unit-dropped",
    "spatial loops of one iteration are dropped",
    "        trips > 1 or loop.is_spatial\n",
    "        trips > 1\n",
    "::test_unit_loops_change_nothing",
)
_ops.broken(
    "ops-passing-moved",
    "the mark of a passing tensor moves as if it were a place",
    "place if place.position == PASSES else replace",
    "place if place.position == PASSES - 9 else replace",
    "::test_tiles_stay_what_they_were",
)
_ops.broken(
    "ops-some-loops-will-do",
    "an order may leave loops out",
    "if len(places) != len(listed) or sorted(places) != list(range(n_loops)):",
    "if len(places) != len(listed) or len(set(places)) != len(places):",
    "::test_what_cannot_be_done",
)
_ops.broken(
    "ops-inner-tiles-grow",
    "inner tiles of the dimension take the size of the outer one",
    "now = extent if at == place else bound(loops[at].extent, extent)",
    "now = extent",
    "test_moves.py::test_tiles_give_way_no_further_than_they_must",
)
_ops.broken(
    "ops-covers-more",
    "a tile larger than its dimension goes outside all its loops",
    "if place <= outermost and not is_count(",
    "if place < outermost and not is_count(",
    "test_moves.py::test_what_cannot_be_moved",
)
_ops.broken(
    "ops-drop-the-cover",
    "the only loop of a dimension is dropped",
    "elif place == outermost and gone.extent > 1:",
    "elif place == outermost and gone.extent > 99:",
    "test_moves.py::test_a_loop_that_is_dropped_leaves_the_others_as_they_are",
)
_moves = In("nests/moves.py", "test_moves.py")
_moves.broken(
    "moves-list-of-one",
    "a list of one reads back as its only element",
    '"," * (len(argument) < 2)',
    '"," * (len(argument) < 1)',
    "::test_every_move_reads_back",
)
_moves.broken(
    "moves-keep-units",
    "a trace leaves out that a loop is no longer spatial",
    "if loop.unit != target.unit:",
    "if target.unit and loop.unit != target.unit:",
    "::test_moves_lead_from_any_schedule_to_any_other",
)
_moves.broken(
    "moves-last-loop-goes",
    "the innermost loop is dropped, whichever is not wanted",
    "(odd or have)[-1]",
    "have[-1]",
    "::test_traces_are_short",
)
_moves.broken(
    "moves-keep-order",
    "a trace leaves out the order of the loops",
    "if list(order) != sorted(order):",
    "if list(order) < sorted(order):",
    "::test_moves_lead_from_any_schedule_to_any_other",
)
_moves.broken(
    "moves-other-cover",
    "a dimension that one schedule lacks is no difference",
    "any(outer[dim] != inner.get(dim, 1) for dim in outer)",
    "any(outer[dim] != inner.get(dim, outer[dim]) for dim in outer)",
    "::test_no_moves_lead_elsewhere",
)
_moves.broken(
    "moves-any-word",
    "a move takes text that it does not read back",
    "is_word = isinstance(each, str) and each.isidentifier()",
    "is_word = isinstance(each, str)",
    "::test_values_that_no_text_can_say_are_refused",
)
_variations = In("scheduler/variations.py", "test_moves.py")
_variations.broken(
    "variations-across-units",
    "loops of different units are swapped",
    "if first.dim != second.dim and first.unit == second.unit:",
    "if first.dim != second.dim:",
    "::test_steps_of_the_search_are_all_that_is_near",
)
_variations.broken(
    "variations-smaller-only",
    "tiles get no larger",
    "*classes[here + 1 : here + 2]]",
    "*classes[here + 1 : here + 1]]",
    "::test_steps_of_the_search_are_all_that_is_near",
)
_schedule_file = In("nests/schedule_file.py", "test_notation.py")
_schedule_file.broken(
    "schedule-old-unit",
    "older files lose their units",
    'found["unit"] = found.pop(_OLD_UNIT)',
    'found["unit"] = found.pop(_OLD_UNIT) and None',
    "::test_older_files_call_the_unit_of_a_loop_its_level",
)
_schedule_file.broken(
    "schedule-key-twice",
    "the last of two equal keys counts",
    "        if key in found:\n            raise",
    "        if key in found and found[key] == value:\n            raise",
    "::test_malformed_json",
)
_schedule_file.broken(
    "schedule-digits",
    "a number of any length is read",
    "if len(digits) > _MAX_DIGITS:",
    "if len(digits) > 10**9:",
    "::test_malformed_json",
)
_schedule_file.broken(
    "schedule-nan-is-a-number",
    "NaN and Infinity are read",
    "parse_constant=_refuse, ",
    "",
    "::test_malformed_json",
)
_schedule_file.broken(
    "schedule-unknown-key",
    "an unknown key of a loop is passed over",
    "strange = [key for key in found if key not in known]",
    "strange = [found.pop(key) for key in [*found] if key not in known][:0]",
    "::test_malformed_json",
)
_schedule_file.broken(
    "schedule-both-units",
    "unit and level may both be given",
    "if len(found) < len(entry):",
    "if len(found) > len(entry):",
    "::test_malformed_json",
)
_schedule_file.broken(
    "schedule-places-lost",
    "places are not written",
    "    if schedule.places:\n        found",
    "    if not schedule.places:\n        found",
    "::test_places_are_read_back",
)
_schedule_file.broken(
    "schedule-any-cover",
    "a schedule for a problem need not cover it",
    "if problem is not None and not faults:",
    "if problem is not None and faults:",
    "::test_malformed_json",
)

NESTS = (
    *_notation.mutants,
    *_ops.mutants,
    *_moves.mutants,
    *_variations.mutants,
    *_schedule_file.mutants,
)
