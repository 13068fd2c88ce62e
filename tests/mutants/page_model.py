"""Mutants of the model in the page: whole numbers, rooms, waves, replays, bounds, texts."""

from __future__ import annotations

from .mutant import In

_TESTS = "test_page_model.py"

_integers = In("show/page/model/integers.js", _TESTS)
_integers.broken(
    "page-quotient-cut-off",
    "quotients of large whole numbers are rounded down",
    "return Number(bits) * 2 ** -shift;",
    "return Number((bits >> 3n) << 3n) * 2 ** -shift;",
)

_view = In("show/page/model/view.js", _TESTS)
_view.broken(
    "page-outer-loops-fill-first",
    "the outermost loops fill the instances first",
    "for (let i = trips.length - 1; i >= 0; i--) {\n    found[i] = Math.min(trips[i], free);",
    "for (let i = 0; i < trips.length; i++) {\n    found[i] = Math.min(trips[i], free);",
)

_reuse = In("show/page/model/reuse.js", _TESTS)
_reuse.broken(
    "page-exact-fit-refused",
    "what fills a buffer exactly does not fit",
    "return shared <= room.shared;",
    "return shared < room.shared;",
)

_walk = In("show/page/model/walk.js", _TESTS)
_walk.broken(
    "page-window-one-late",
    "what was touched one visit before the window is still there for certain",
    "before < 0 || before < this.start",
    "before < 0 || before + 1 < this.start",
)

_buffer = In("show/page/model/buffer.js", _TESTS)
_buffer.broken(
    "page-waves-not-replayed",
    "waves that end within an iteration keep what the closed form promises",
    "if (!isMerged && (isWhole || view.isAligned)) return visits;",
    "if (!isMerged) return visits;",
)

_compute = In("show/page/model/compute.js", _TESTS)
_compute.broken(
    "page-edge-counts-full",
    "edge items count as full ones in the least steps",
    "nFull *= BigInt(pieces.get(largest[dim]));",
    "nFull *= BigInt(count);",
)

_notation = In("show/page/model/notation.js", _TESTS)
_notation.broken(
    "page-growth-unseen",
    "a tile as large as the one around it is said to grow",
    "    if (extent > bound) {\n      faults.push(`${place}",
    "    if (extent >= bound) {\n      faults.push(`${place}",
)

_moves = In("show/page/model/moves.js", _TESTS)
_moves.broken(
    "page-moves-nothing-gives-way",
    "tiles that have given way get a move of their own in the page",
    "now[at].extent = Math.min(now[at].extent, extent);",
    "now[at].extent = Math.max(now[at].extent, 1);",
)
_moves.broken(
    "page-moves-keep-units",
    "the page's moves leave out that a loop is no longer spatial",
    '    trace.push(unit ? ["bind_spatial", at, unit] : ["unbind", at]);',
    '    if (unit) trace.push(["bind_spatial", at, unit]);',
)

PAGE_MODEL = (
    *(*_integers.mutants, *_view.mutants, *_reuse.mutants, *_walk.mutants),
    *(*_buffer.mutants, *_compute.mutants, *_notation.mutants, *_moves.mutants),
)
