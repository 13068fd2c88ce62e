"""Mutants of the programs that kernels for the CPU are written as."""

from __future__ import annotations

from .mutant import In

_RANDOM = "::test_llvm_computes_random_kernels"
_WINDOWS = "::test_windows_that_slide_compute_random_kernels"
_SCHEDULES = "test_exchange_code.py::test_llvm_computes_the_problem"
_C = "::test_c_computes_random_kernels"

_engine = In("codegen/engine.py", "test_codegen.py")
_engine.broken(
    "engine-next-columns-asked-for-where-the-sum-goes-on",
    "what later blocks of a sum are packed from is not asked for",
    "moved = text.choice(is_more, along, across - along * (n_blocks - 1))",
    "moved = across",
    "test_trace.py::test_tiles_ask_for_what_the_next_block_is_packed_from",
)
_engine.broken(
    "engine-next-block-asked-for-in-the-same-part",
    "all blocks of rows ask for the same part of what the next block is packed from",
    "done = text.mul(text.add(blocks.index, text.mul(start, -1)), self.next_run)",
    "done = 0",
    "test_trace.py::test_tiles_ask_for_what_the_next_block_is_packed_from",
)
_engine.broken(
    "engine-sum-begins-anew",
    "each block of a sum begins where the first does",
    "inside.index[walk.inner[0]] = start",
    "inside.index[walk.inner[0]] = 0",
    _RANDOM,
)
_engine.broken(
    "engine-last-panel-first",
    "the panel of the columns that are left over is packed into the first one's place",
    "place = Span(panel, 1, pitch * self.max_sum, whole)",
    "place = Span(panel, 1, pitch * self.max_sum)",
    "::test_columns_that_are_left_over_have_a_panel_of_their_own",
)
_engine.broken(
    "engine-squares-from-one-column",
    "squares that are transposed while packing lie one element apart",
    "                                here = text.at(source, text.mul(across.index, step)",
    "                                here = text.at(source, text.mul(across.index, 1)",
    _RANDOM,
)
_engine.broken(
    "engine-first-square-again",
    "all squares that are transposed while packing begin where the sum does",
    "at = text.least(along.index, last)",
    "at = text.least(along.index, 0)",
    "::test_packed_squares_end_with_the_sum",
)
_engine.broken(
    "engine-short-sums-cut",
    "of sums shorter than a square the first point is not packed",
    "with text.loop(0, run) as along",
    "with text.loop(1, run) as along",
    "::test_packed_squares_end_with_the_sum",
)
_engine.broken(
    "engine-panels-overlap",
    "panels of the left operand lie as if the tiles before them were as high",
    'place = Span(Flat("start", step), 1, self.max_sum, start)',
    'place = Span(Flat("start", step), 1, self.max_sum, start // high * high)',
    "::test_llvm_computes_random_kernels",
)

_DOTS = "test_codegen.py::test_sums_in_lanes_compute_random_kernels"
_dots = In("codegen/dot_tile.py", "test_plans.py")
_dots.broken(
    "dot-rest-is-whole",
    "the last points of a sum are read with all lanes",
    "mask = text.lanes_inside(0, 1, text.add(stop, text.mul(whole, -1)))",
    "mask = None",
    "::test_all_kinds_of_plans[vector]",
)
_dots.broken(
    "dot-lines-not-turned",
    "rows that lie side by side are written as columns",
    "lines = [list(one) for one in zip(*lines, strict=True)]",
    "lines = [list(one)[::-1] for one in zip(*lines, strict=True)]",
    "::test_all_kinds_of_plans[deep]",
)
_dots.broken(
    "dot-levels-of-one-step",
    "a sum of several dimensions has the steps of its first",
    "return (Level(None, 1, 1),), length(self.layout.sum_inner[1:])",
    "return (Level(None, 1, 1),), 1",
    _DOTS,
)
_dots.broken(
    "dot-packed-as-stored",
    "packed rows are read as the type that they were stored in",
    "text, (of_left, of_right), made = self.text, self._elements(), list(totals)",
    "text, of_left, made = self.text, self.layout.task.left.element, list(totals)\n"
    "        of_right = self.layout.task.right.element",
    _DOTS,
)
_engine.broken(
    "turned-left-apart",
    "the last square of a sum is copied to where none was cut short",
    'target = text.at(text.argument("target"), at, text.element)',
    'target = text.at(text.argument("target"), along.index, text.element)',
    "test_plans.py::test_all_kinds_of_plans[deep]",
)

_WIDE = "test_plans.py::test_all_kinds_of_plans[wide]"
_tile = In("codegen/register_tile.py", "test_codegen.py")
_tile.broken(
    "tile-tall-ones-spill",
    "steps of tall tiles are left to LLVM to mix",
    "here.meets(left, unroll) or math.prod(self.shape) >= MANY_SUMS",
    "here.meets(left, unroll)",
    "::test_steps_of_tall_tiles_stay_in_order",
)
_tile.broken(
    "tile-tall-ones-with-few-rows-spill",
    "rows that a tap leaves out are taken to leave registers",
    "math.prod(self.shape) >= MANY_SUMS",
    "len(rows) * self.shape[1] >= MANY_SUMS",
    "::test_steps_of_tall_tiles_stay_in_order_where_some_rows_count",
)
_tile.broken(
    "tile-columns-beside-begin-in-the-line-before",
    "where lines lie otherwise than vectors the last one is not asked for",
    "a_line, cols + a_line - 1)",
    "a_line, cols)",
    "test_trace.py::test_tiles_ask_for_the_columns_beside_them",
)
_tile.broken(
    "tile-columns-beside-asked-by-all",
    "each of the tiles below each other asks for all columns beside them",
    "return Next(text.add(self._first(number, n, each, step), far), step, each)",
    "return Next(far, step, n)",
    "test_trace.py::test_tiles_ask_for_the_columns_beside_them",
)
_tile.broken(
    "tile-lower-tiles-miscounted",
    "lower tiles of which some have a row less are told apart by their rows alone",
    'text.add(text.argument("row"), highest - 1), highest)',
    'text.argument("row"), highest)',
    "test_trace.py::test_tiles_ask_for_what_the_next_block_is_packed_from",
)
_tile.broken(
    "tile-next-block-asked-by-each",
    "each of the tiles below each other asks for all that the next block is packed from",
    "own = -(-n * text.lanes * run // self.n_below)",
    "own = n * text.lanes * run",
    "test_trace.py::test_tiles_ask_for_what_the_next_block_is_packed_from",
)
_tile.broken(
    "tile-columns-beside-of-the-first-alone",
    "the tiles below each other ask for the same columns",
    "number = text.divided(self._below(), -(-n // each))[1]",
    "number = 0",
    "test_trace.py::test_tiles_ask_for_the_columns_beside_them",
)
_tile.broken(
    "tile-left-edge-unmasked",
    "vectors that begin before an image are read whole",
    "if min(places) < 0 or max(places) >= guard.size:",
    "if max(places) >= guard.size:",
    _WIDE,
)
_tile.broken(
    "tile-last-tile-forgotten",
    "vectors are taken to end where those of the first tile do",
    "ends = first, size - max(1, cols - first - text.lanes + 1)",
    "ends = first, min(size, first + text.lanes) - 1",
    _WIDE,
)
_tile.broken(
    "tile-taps-alike",
    "all taps have the mask of the first",
    "                self.masks = masks\n",
    "                self.masks = self.tap_masks[dim][0]\n",
    _WIDE,
)
_tile.broken(
    "tile-asks-at-once",
    "lines to be written are asked for before the sum, however long it is",
    "if step and n_steps > 1:",
    "if step and n_steps > 100:",
    "::test_lines_to_be_written_are_asked_for",
)
_tile.broken(
    "tile-narrow-rows-follow-each-other",
    "rows of sums of narrow tiles are not left where those of wide ones are",
    "start = at * self._room_pitch + vector * text.lanes",
    "start = (at * n + vector) * text.lanes",
    "::test_llvm_computes_random_kernels",
)
_tile.broken(
    "tile-of-operands-in-place-reads-whole-vectors",
    "tiles read behind the columns of an operand that is not packed",
    "if not self.is_apart(cols) or not self.layout.plan.packs_right:",
    "if not self.is_apart(cols):",
    "::test_sums_that_lie_apart_may_be_more_than_are_written",
)
_tile.broken(
    "tile-of-short-vectors-asks-at-each-step",
    "tiles of vectors of 32 bytes ask at each step of their sum, too",
    ">= LINE\n\n    def _steps",
    ">= LINE // 2\n\n    def _steps",
    "::test_short_vectors_ask_once",
)
_tile.broken(
    "tile-asks-for-one-at-a-step",
    "of the lines to be written one row's are asked for at each step, however few these are",
    "each, pointer = -(-len(outs) // n_steps), ",
    "each, pointer = 1, ",
    "::test_lines_to_be_written_are_asked_for",
)
_tile.broken(
    "tile-asks-for-no-last-line",
    "the last line that the next tile reads is not asked for",
    "for place in (*range(first, last, a_line), last):",
    "for place in range(first, last, a_line):",
    "::test_what_the_next_tile_reads_is_asked_for",
)
_tile.broken(
    "tile-asks-at-its-sum-only",
    "rows of a window that begin elsewhere are asked for at each of its points",
    "is_apart = self._meets_lines(left) and not any(self._meets_lines(x.left) for x in inner)",
    "is_apart = not inner",
    "::test_what_the_next_tile_reads_is_asked_for",
)
_tile.broken(
    "tile-asks-for-part",
    "lines are asked for at each step though there are fewer than rows",
    "return size if inner else size // self.unroll",
    "return size",
    "::test_lines_to_be_written_are_asked_for",
)
_tile.broken(
    "tile-rest-of-its-last-block-lost",
    "only what the first block of a sum leaves over is added after it is unrolled",
    "return [size * self.scale for size in sizes if size]",
    "return [size * self.scale for size in sizes[:1] if size]",
    "::test_points_that_unrolling_leaves_over",
)
_tile.broken(
    "tile-rest-of-a-sum-lost",
    "points of a sum that unrolling leaves over are not added",
    "if whole != stop:",
    "if unroll > 9 and whole != stop:",
    _RANDOM,
)
_tile.broken(
    "tile-later-blocks-overwrite",
    "a later block of a sum overwrites what earlier ones have left",
    "if self.layout.n_sum_blocks == 1:",
    "if self.layout.n_sum_blocks >= 1:",
    _RANDOM,
)
_tile.broken(
    "tile-first-block-adds",
    "the first block of a sum adds to what lies in the output",
    'self.text.less(0, self.text.argument("first"))',
    'self.text.less(-1, self.text.argument("first"))',
    _RANDOM,
)
_tile.broken(
    "tile-whole-vectors-masked",
    "the last vector of a tile is not written where it is whole",
    "text.first_lanes(cols - (n - 1) * text.lanes)",
    "text.first_lanes(cols % text.lanes)",
    _RANDOM,
)
_tile.broken(
    "tile-panels-of-tall-tiles",
    "all panels of the left operand have the pitch of the highest",
    "pitch = rows if layout.is_left_panel",
    "pitch = layout.plan.tile_rows if layout.is_left_panel",
    "::test_llvm_computes_random_kernels",
)
_tile.broken(
    "tile-rests-unrolled",
    "tiles that are left over are unrolled like all others",
    "most = whole if is_whole else rest",
    "most = whole",
    "test_described.py::test_a_tile_has_so_many_products",
)
_tile.broken(
    "tile-nothing-unrolled",
    "no tile is unrolled",
    "most = whole if is_whole else rest",
    "most = rest",
    "test_described.py::test_a_tile_has_so_many_products",
)
_tile.broken(
    "tile-short-rests-step-by-step",
    "tiles of short vectors that are left over are not unrolled",
    "else (MORE_UNROLLED, UNROLL)",
    "else (MORE_UNROLLED, 1)",
    "::test_tiles_that_are_left_over_are_unrolled",
)

_layout = In("codegen/layout.py", "test_codegen.py")
_layout.broken(
    "engine-parts-of-rows-rounded-down",
    "blocks of rows that do not share out evenly belong to no job",
    "return total, -(-total // self.plan.row_parts)",
    "return total, total // self.plan.row_parts",
    _RANDOM,
)
_layout.broken(
    "blocks-points-side-by-side",
    "points of a block follow each other as if their step were one",
    "[(base, place * self.step)",
    "[(base, place)",
    _RANDOM,
)
_layout.broken(
    "blocks-first-entry-of-a-table",
    "all points of a tile are found where the first one is",
    "text.entry(self.table, text.add(first, place))",
    "text.entry(self.table, first)",
    _RANDOM,
)
_layout.broken(
    "blocks-without-offset",
    "padding does not move where a block begins",
    "return text.add(operand.offset, *terms)",
    "return text.add(0, *terms)",
    _RANDOM,
)
_layout.broken(
    "blocks-tables-inside-out",
    "a table lists the points of a block innermost dimension first",
    "for one in offsets for at in range(size)]",
    "for at in range(size) for one in offsets]",
    _RANDOM,
)
_layout.broken(
    "blocks-no-job-for-the-rest",
    "columns that whole blocks leave over belong to no job",
    'return [*counts, ("cols", count + bool(rest))]',
    'return [*counts, ("cols", count or 1)]',
    _RANDOM,
)

_copying = In("codegen/copying.py", "test_codegen.py")
_copying.broken(
    "copying-rows-over-each-other",
    "rows of a copy are written into the place of the first",
    "text.add(target, text.mul(loop.index, jump))",
    "text.add(target, 0)",
    _RANDOM,
)
_copying.broken(
    "copying-padding-from-the-last-element",
    "the last element inside padding is copied as zero",
    "text.lanes_inside(here, move, guard.size)",
    "text.lanes_inside(here, move, guard.size - 1)",
    _RANDOM,
)
_copying.broken(
    "copying-dimensions-interleaved",
    "dimensions of a copy are written as if those inside had one step",
    "jump *= size",
    "jump *= 1",
    _RANDOM,
)
_copying.broken(
    "copying-padding-left-out",
    "what a block had before stays where a run lies in padding",
    "self._points(run._replace(positions=None), size)",
    "pass",
    _RANDOM,
)
_copying.broken(
    "copying-rest-of-a-loop-lost",
    "vectors that a loop of several leaves over are not copied",
    "for start in range(at, stop, lanes):",
    "for start in range(at, stop if n <= MOST_STRAIGHT else at, lanes):",
    "::test_long_runs_are_copied",
)
_copying.broken(
    "copying-odd-lanes",
    "of elements that lie two apart those between are copied",
    "return text.picked(halves[0], halves[1], 0, 2)",
    "return text.picked(halves[0], halves[1], 1, 2)",
    _RANDOM,
)
_copying.broken(
    "copying-vectors-over-each-other",
    "vectors of a run are written into the place of the first",
    "text.at(run.target, start, text.element)",
    "text.at(run.target, 0, text.element)",
    _RANDOM,
)

_window = In("codegen/window.py", "test_codegen.py")
_window.broken(
    "window-first-is-padding",
    "the first stored row or column counts as padding",
    "0 <= g.offset + point",
    "0 < g.offset + point",
    _WINDOWS,
)
_window.broken(
    "window-of-any-length",
    "tiles have many rows even where that takes LLVM long",
    "written > (MOST_WRITTEN if",
    "written > (2 * MOST_WRITTEN if",
    "::test_windows_slide_where_that_is_fast_and_soon_compiled",
)
_window.broken(
    "window-strip-rows-met-once",
    "of rows that the same rows of a strip meet one is left out",
    "found[-1] = begun, n + 1",
    "found[-1] = begun, n",
    _WINDOWS,
)
_window.broken(
    "window-strip-backwards-unrolled",
    "rows of a window that is walked backwards are no loop",
    "reverse=right.step(self.far) < 0",
    "reverse=False",
    "::test_strips_are_as_much_code_backwards",
)
_window.broken(
    "window-strip-leaves-a-chain-out",
    "of a sum in several chains one is not added",
    "totals[row][number :: len(parts)]",
    "totals[row][number :: len(parts)][:1]",
    _WINDOWS,
)
_window.broken(
    "window-strip-last-is-padding",
    "the last row of a plane counts as padding",
    "here = text.inside(place, guard.size)",
    "here = text.inside(place, guard.size - 1)",
    _WINDOWS,
)
_window.broken(
    "window-strip-same-vectors",
    "all vectors of a strip lie where the first does",
    "places = [text.at(line, number * step, operand.element)",
    "places = [text.at(line, 0 * step, operand.element)",
    _WINDOWS,
)
_window.broken(
    "window-gathers-halves",
    "windows slide over elements of two bytes that lie three apart",
    "task.right.step(across) > 2 and task.right.element.n_bytes < 4",
    "task.right.step(across) > 2 and task.right.element.n_bytes < 2",
    "::test_windows_slide_where_that_is_fast_and_soon_compiled",
)
_window.broken(
    "window-odd-taps-read-even",
    "of two taps that share vectors the second reads what the first does",
    "text.picked(*halves[first], near % 2, 2)",
    "text.picked(*halves[first], 0, 2)",
    _WINDOWS,
)
_window.broken(
    "window-lane-after-the-last-not-read",
    "of what the last point of a tile needs two taps further nothing is read",
    "for tap, inside in enumerate(taps):",
    "for tap, inside in enumerate(taps[:2]):",
    _WINDOWS,
)
_window.broken(
    "window-last-lane-is-zero",
    "the last lane of a vector that moved on is nothing",
    "if len(inside) == lanes and inside[-1]:",
    "if len(inside) > lanes:",
    _WINDOWS,
)
_window.broken(
    "window-taps-turned",
    "rows and columns of a filter are exchanged",
    "self._weight(rows[far], near)",
    "self._weight(rows[near % n_far], far % n_near)",
    _WINDOWS,
)
_window.broken(
    "window-last-alike-lost",
    "of tiles that are alike the last is left out",
    "found[-1] = ((found[-1][0][0], stop, each), counting)",
    "found[-1] = ((found[-1][0][0], start, each), counting)",
    _WINDOWS,
)
_window.broken(
    "window-last-column-lost",
    "the last column of a tile is not written",
    "total, len(near_ok[0]))",
    "total, len(near_ok[0]) - 1)",
    _WINDOWS,
)

_general = In("codegen/general.py", "test_codegen.py")
_general.broken(
    "general-sums-begin-anew",
    "what the serial loops outside have summed is overwritten",
    "        one.dim not in task.out.dims and one.trips > 1 for one in made[",
    "        one.dim not in task.out.dims and one.trips > 99 for one in made[",
    _SCHEDULES,
)
_general.broken(
    "general-rests-of-rows-again",
    "rows that do not fill a tile are computed where the first ones are",
    "start, left = text.add(start, text.mul(count, rows)), rest",
    "left = rest",
    "test_exchange_code.py::test_rests_of_rests_are_made_up_of_tiles_of_several_heights",
)
_general.broken(
    "general-offset-lost",
    "operands begin at their first element, padding or not",
    "return text.add(one.offset, *(",
    "return text.add(0, *(",
    _SCHEDULES,
)
_general.broken(
    "general-guards-of-one-end",
    "a tile is far from padding if its first point is",
    "for position in (first, text.add(first, reach)):",
    "for position in (first, first):",
    _SCHEDULES,
)
_general.broken(
    "general-guard-of-the-first-row",
    "all rows of a tile lie where its first one does",
    "moved = row * self._down(guard) + number",
    "moved = number",
    _RANDOM,
)
_general.broken(
    "general-vectors-share-a-mask",
    "all vectors of a tile have the columns of its first",
    "moved = row * self._down(one) + number * text.lanes * across",
    "moved = row * self._down(one)",
    _RANDOM,
)

_llvm = In("codegen/llvm_text.py", "test_codegen.py")
_llvm.broken(
    "llvm-last-lane-lost",
    "a mask of the first lanes leaves one out",
    "[lane < n for lane in range(self.lanes)]",
    "[lane < n - 1 for lane in range(self.lanes)]",
    _RANDOM,
)
_llvm.broken(
    "llvm-bytes-without-sign",
    "8-bit integers are read as if they had no sign",
    'f"sext {source} {raw} to {kind}"',
    'f"zext {source} {raw} to {kind}"',
    _RANDOM,
)
_llvm.broken(
    "llvm-halves-rounded-up",
    "what lies between two bf16 numbers is rounded up, not to the even one",
    "self._all('i32', 32767, lanes)",
    "self._all('i32', 32768, lanes)",
    "::test_sums_between_two_bf16_numbers_become_the_even_one",
)
_llvm.broken(
    "llvm-places-reduced",
    "LLVM looks where the pointers of tiles and windows come from, for long",
    'return self._new(f"freeze ptr {pointer}", "ptr")',
    "return pointer",
    "::test_places_around_one_are_left_as_they_are",
)
_llvm.broken(
    "llvm-rest-of-a-vector-not-written",
    "of a part of a vector only the largest power of two is written",
    "            at += n\n",
    "            at += self.lanes\n",
    "::test_part_of_a_vector_is_written",
)
_llvm.broken(
    "llvm-branch-taken-always",
    "what a branch would have carried is taken where it did not run, too",
    "[ {old}, %{before} ]",
    "[ {self.zero()}, %{before} ]",
    _WINDOWS,
)
_llvm.broken(
    "llvm-last-step-lost",
    "what the last step of a loop makes is lost",
    "loop.values = list(loop.next) if is_sure else phis",
    "loop.values = phis",
    _RANDOM,
)

_c = In("codegen/c_text.py", "test_codegen.py")
_c.broken(
    "c-last-lane-lost",
    "a mask of the first lanes leaves one out",
    'f"{(1 << n) - 1}u"',
    'f"{(1 << n - 1) - 1}u"',
    _C,
)
_c.broken(
    "c-vectors-handed-over",
    "functions take and give vectors for which a CPU may have no registers",
    '"static inline __attribute__((always_inline))"',
    '"static inline"',
    "::test_c_builds_without_warnings_for_any_cpu",
)
_c.broken(
    "c-halves-rounded-up",
    "what lies between two bf16 numbers is rounded up, not to the even one",
    "ubits raised = raw + 32767u + (raw >> 16 & 1u);",
    "ubits raised = raw + 32768u;",
    "::test_c_computes_bf16",
)
_c.broken(
    "c-part-of-a-vector-cut",
    "of a part of a vector the last lane is not written",
    "n_bytes = self._n_first[mask] * element.n_bytes",
    "n_bytes = (self._n_first[mask] - 1) * element.n_bytes",
    "::test_part_of_a_vector_is_written",
)
_c.broken(
    "c-mask-ends-early",
    "the last lane that counts is left out of a mask",
    "num to = by == 1 ? size - first :",
    "num to = by == 1 ? size - first - 1 :",
    _C,
)
_c.broken(
    "c-lanes-apart-lie-together",
    "elements that lie apart are read side by side",
    'f"at + @ * step * {element.n_bytes}"',
    'f"at + @ * {element.n_bytes}"',
    _C,
)
_c.broken(
    "c-masked-lanes-are-the-first",
    "where no instruction has a mask, all that is read goes to the first lane",
    "memcpy(&x, {place}, sizeof x); found[lane] = x;",
    "memcpy(&x, {place}, sizeof x); found[0] = x;",
    _C,
)

WRITTEN = tuple(
    mutant
    for file in (
        _engine,
        _tile,
        _dots,
        _layout,
        _copying,
        _window,
        _general,
        _llvm,
        _c,
    )
    for mutant in file.mutants
)
