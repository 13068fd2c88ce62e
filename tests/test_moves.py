"""Moves as values: traces replay, text reads back, what cannot be is refused in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_ops import BASE, SIZES, placed, schedules, walk

from loopsched import gemm, parse_schedule
from loopsched.base.errors import ScheduleError
from loopsched.cli import run
from loopsched.nests.moves import (
    MAX_MOVES,
    Move,
    apply_moves,
    moves_between,
    parse_moves,
)
from loopsched.nests.nest import Loop, Schedule
from loopsched.nests.ops import drop_loop, drop_unit_loops, resize
from loopsched.scheduler.variations import steps, variations

PROBLEM = gemm(m=SIZES["M"], n=SIZES["N"], k=SIZES["K"])
LOOPS = st.integers(-1, 8) | st.sampled_from("MNKQ")
EXTENTS = st.integers(0, 8)


def made(operation: str, *arguments: st.SearchStrategy[object]) -> st.SearchStrategy[Move]:
    return st.tuples(*arguments).map(lambda given: Move(operation, given))  # type: ignore[arg-type]


def moves() -> st.SearchStrategy[Move]:
    """Moves of every kind, many of which a schedule refuses."""
    return st.one_of(
        made("tile", LOOPS, EXTENTS),
        made("tile", LOOPS, EXTENTS, st.integers(-1, 8)),
        made("split", LOOPS, EXTENTS),
        made("resize", LOOPS, EXTENTS),
        made("drop_loop", LOOPS),
        made("interchange", LOOPS, LOOPS),
        made(
            "reorder", st.lists(st.integers(0, 8) | st.sampled_from("MNK"), max_size=4).map(tuple)
        ),
        made("reorder", st.integers(1, 8).flatmap(lambda n: st.permutations(range(n))).map(tuple)),
        made("bind_spatial", LOOPS, st.sampled_from(["SM", "lane"])),
        made("unbind"),
        made("unbind", LOOPS),
        made("drop_unit_loops"),
    )


def does_cover(schedule: Schedule) -> bool:
    """Whether the loops visit every point of the problem once."""
    # A dimension that is left without loops has one position, here as in the problem.
    return sorted(walk(schedule)) == sorted(walk(Schedule(tuple(Loop(d, SIZES[d]) for d in "MNK"))))


@given(schedules(), st.lists(moves(), max_size=12))
def test_a_trace_replays_from_its_text(start: Schedule, drawn: list[Move]) -> None:
    end, trace = start, []
    for move in drawn:
        try:
            end = move.apply(end)
        except ScheduleError:
            continue
        assert does_cover(end)
        trace.append(move)
    text = " | ".join(map(str, trace))
    assert apply_moves(start, trace) == end == end.check(PROBLEM)
    if trace:
        assert list(parse_moves(text)) == trace
        assert apply_moves(start, text) == parse_schedule(f"{start} | {text}", PROBLEM) == end


@given(placed(), st.lists(moves(), max_size=6))
def test_every_tensor_keeps_its_places(start: Schedule, drawn: list[Move]) -> None:
    for move in drawn:
        try:
            start = move.apply(start)
        except ScheduleError:
            continue
        assert sorted(place.tensor for place in start.places) == ["A", "B", "C"]


@given(schedules(), schedules())
def test_moves_lead_from_any_schedule_to_any_other(before: Schedule, after: Schedule) -> None:
    trace = moves_between(before, after)
    assert apply_moves(before, trace) == after
    assert not moves_between(after, after)
    assert len(trace) <= 2 * max(len(before.loops), len(after.loops)) + 1 + len(after.loops)


@given(moves())
def test_every_move_reads_back(move: Move) -> None:
    assert parse_moves(f" {move} |{move}") == (move, move)


@pytest.mark.parametrize(
    ("before", "trace"),
    [
        ("M:7 M:4 N:4 K:3 M:2", "drop_loop 1"),
        ("M:7 M:4 N:4 K:3 M:2", "resize 1 7 | resize 4 4"),
        ("M:7 M:4 N:4 K:3 M:2", "resize 4 1 | resize 1 3"),
        ("M:7 N:4@SM K:3", "tile N 2 | reorder 0,1,3,2 | bind_spatial 2 SM"),
        ("M:7 N:4@SM K:3 M:2", "tile M 3 3 | reorder 1,2,0,3,4 | bind_spatial 0 lane | unbind 1"),
    ],
)
def test_traces_are_short(before: str, trace: str) -> None:
    start = parse_schedule(before, PROBLEM)
    found = moves_between(start, apply_moves(start, trace))
    assert len(found) <= len(parse_moves(trace))


@given(schedules(), moves())
def test_what_one_move_does_one_move_is_found_for(schedule: Schedule, move: Move) -> None:
    try:
        other = move.apply(schedule)
    except ScheduleError:
        return
    if move.operation in ("tile", "split", "reorder", "interchange", "bind_spatial"):
        grown = len(other.loops) > len(schedule.loops)
        # A tile may have to be handed to the unit, and moved among other dimensions' loops.
        assert len(moves_between(schedule, other)) <= 1 + 2 * grown


def test_no_moves_lead_elsewhere() -> None:
    one = Schedule((Loop("M", 8), Loop("N", 1)))
    assert str(apply_moves(one, moves_between(one, Schedule((Loop("M", 8),))))) == "M:8"
    for before, after in (("M:8", "M:9"), ("M:8", "M:8 N:1"), ("M:8 N:4", "M:8")):
        pair = [
            Schedule(tuple(Loop(w[0], int(w[2:])) for w in text.split()))
            for text in (before, after)
        ]
        with pytest.raises(ScheduleError, match=f"from '{before}' to '{after}': what they cover"):
            moves_between(*pair)
    marked = parse_schedule("M:7 [L1 A] N:4 K:3", PROBLEM)
    with pytest.raises(ScheduleError, match="a trace of moves cannot express"):
        moves_between(marked, replace(marked, places=()))


def chains(n_loops: int, whole: int) -> Iterator[tuple[int, ...]]:
    """Tile sizes of the loops of one dimension: none grows inward."""
    for inner in product(range(1, whole + 1), repeat=n_loops - 1):
        chain = (whole, *inner)
        if sorted(chain, reverse=True) == list(chain):
            yield chain


@given(schedules(), st.data())
def test_tiles_give_way_no_further_than_they_must(schedule: Schedule, data: st.DataObject) -> None:
    inner = [
        at
        for at, loop in enumerate(schedule.loops)
        if any(outer.dim == loop.dim for outer in schedule.loops[:at])
    ]
    if not inner:
        return
    place = data.draw(st.sampled_from(inner))
    dim = schedule.loops[place].dim
    extent = data.draw(st.integers(1, SIZES[dim]))
    own = [at for at, loop in enumerate(schedule.loops) if loop.dim == dim]
    was = [schedule.loops[at].extent for at in own]
    found = resize(schedule, place, extent)
    now = tuple(found.loops[at].extent for at in own)
    allowed = [chain for chain in chains(len(own), SIZES[dim]) if chain[own.index(place)] == extent]
    assert now in allowed
    least = min(sum(abs(a - b) for a, b in zip(was, chain, strict=True)) for chain in allowed)
    assert sum(abs(a - b) for a, b in zip(was, now, strict=True)) == least
    other = [(one.dim, one.unit) for one in found.loops]
    assert other == [(one.dim, one.unit) for one in schedule.loops]


@given(schedules(), st.data())
def test_a_loop_that_is_dropped_leaves_the_others_as_they_are(
    schedule: Schedule, data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(schedule.loops) - 1))
    gone = schedule.loops[place]
    same = [at for at, loop in enumerate(schedule.loops) if loop.dim == gone.dim]
    if len(same) == 1:
        with pytest.raises(ScheduleError, match=f"drop_loop: '{gone}' is the only loop"):
            drop_loop(schedule, place)
        return
    found = drop_loop(schedule, place)
    kept = [schedule.loops[at] for at in range(len(schedule.loops)) if at != place]
    if place == same[0]:
        kept[same[1] - 1] = replace(kept[same[1] - 1], extent=gone.extent)
    assert found.loops == tuple(kept)


def nearby(schedule: Schedule) -> Iterator[Schedule]:
    """Schedules with one tile at the next number of trips or away, or neighbours exchanged."""
    loops = schedule.loops
    for at, loop in enumerate(loops):
        outer = [one.extent for one in loops[:at] if one.dim == loop.dim]
        for extent in range(1, (outer or [0])[-1] + 1):
            trips = {-(-outer[-1] // e): e for e in range(outer[-1], 0, -1)}  # the smallest of each
            known = sorted({*trips.values(), loop.extent})
            here = known.index(loop.extent)
            if extent in known[max(0, here - 1) : here + 2] and extent != loop.extent:
                fit = max(schedule.steps[at], extent)
                yield Schedule((*loops[:at], replace(loop, extent=fit), *loops[at + 1 :]))
    for at in range(1, len(loops)):
        if loops[at].dim != loops[at - 1].dim and loops[at].unit == loops[at - 1].unit:
            yield Schedule((*loops[: at - 1], loops[at], loops[at - 1], *loops[at + 1 :]))


@given(placed())
def test_steps_of_the_search_are_all_that_is_near(schedule: Schedule) -> None:
    expected = [drop_unit_loops(other) for other in nearby(schedule)]
    assert sorted(map(str, variations(schedule))) == sorted(map(str, expected))
    assert all(len(step.arguments) == 2 for step in steps(schedule))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tille M 8", r"unknown operation 'tille'; did you mean 'tile'\? \(allowed: tile split"),
        ("tile M", r"tile of \('M',\); 'tile dim extent \[position\]' is needed"),
        ("tile M 8 0 0", r"'tile dim extent \[position\]' is needed"),
        ("tile M 8 | ", "move 2 of .* is empty; an operation is needed"),
        ("tile M:8 8", "tile of 'M:8'; whole numbers and plain words are allowed"),
        ("tile M 1" + "0" * 18, "whole numbers and plain words"),
        ("tile MM 4", "move 'tile MM 4': no loop of dim 'MM'.*did you mean 'M'"),
        ("tile M 16", "move 'tile M 16': .*extent 16 grows inward"),
        ("tile M 65 0", "tile: extent of 'M' is 65; 1 to 64 is allowed"),
        ("split 5 2", "move 'split 5 2': no loop 5 in .*; positions are 0 to 2"),
        ("resize 0 8", "resize: extent of 'M' is 8; 64, which the outermost loop covers, is"),
        ("resize 2 65", "resize: extent of 'M' is 65; 1 to 64 is allowed"),
        ("resize 2 0", "extent of 'M' is 0; 1 to 64"),
        ("resize 2 M", "extent of 'M' is 'M'; 1 to 64"),
        ("resize M 4", "dim 'M' has loops at 0, 2"),
        ("drop_loop K", "drop_loop: 'K:32' is the only loop of its dimension; keep it"),
        ("reorder 0", r"order is \[0\]; each of the positions 0 to 2"),
        ("reorder 0,", r"move 'reorder 0,': reorder: order is \[0\]; each"),
        ("reorder ,", r"order is \[\]; each"),
        ("reorder 0,,1", "reorder of ''; whole numbers"),
        ("bind_spatial 0 1", "unit is 1; the name of a level"),
        ("unbind 0,1", "dim is .0, 1.; the name of a dimension"),
        (" | ".join(["unbind"] * (MAX_MOVES + 1)), f"{MAX_MOVES + 1} moves; at most {MAX_MOVES}"),
    ],
)
def test_what_cannot_be_moved(text: str, message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        apply_moves(BASE, text)


def test_values_that_no_text_can_say_are_refused() -> None:
    for arguments in ((1.5,), ("M 8",), (True,), ((1, (2,)),), [0], 10**18):
        with pytest.raises(ScheduleError, match="move: unbind of"):
            Move("unbind", arguments)  # type: ignore[arg-type]
    with pytest.raises(ScheduleError, match="unknown operation 3"):
        Move(3)  # type: ignore[arg-type]
    for moves_ in (5, [Move("unbind"), "unbind"], None):
        with pytest.raises(ScheduleError, match="text or a tuple of Move is needed"):
            apply_moves(BASE, moves_)  # type: ignore[arg-type]
    with pytest.raises(ScheduleError) as caught:
        apply_moves(BASE, f"tile {'x' * 5000} 4")
    assert len(str(caught.value)) < 300


def test_the_shell_takes_moves_behind_a_schedule(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["gemm:m=7,n=4,k=3", "--capacity", "64 B"]
    assert run(["analyze", given[0], "M:7 N:4 K:3 | tile M 2 | interchange 0 1", *given[1:]]) == 0
    assert ": N:4 M:7 K:3 M:2\n" in capsys.readouterr().out
    assert run(["analyze", given[0], "M:7 N:4 K:3 | tile P 2", *given[1:]]) == 3
    assert "move 'tile P 2': no loop of dim 'P'" in capsys.readouterr().err
    assert run(["compare", given[0], "M:7 N:4 K:3", "M:7 N:4@SM K:3 M:2"]) == 0
    text = capsys.readouterr().out
    assert "moves: tile M 2 | bind_spatial 1 SM\n" in text
    assert "moves: lead from this to other; a loop is named by its dimension or its place" in text
