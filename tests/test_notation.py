"""Text, JSON and loops: reading back what was written, and saying what is wrong."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopsched.base.errors import ScheduleError
from loopsched.nests.loops_text import render_loops
from loopsched.nests.nest import Loop, Place, Schedule
from loopsched.nests.notation import format_schedule, parse_schedule
from loopsched.nests.schedule_file import read_schedule_dict, schedule_from_dict, schedule_to_dict
from loopsched.problems.builders import affine, conv2d, einsum, gemm
from loopsched.problems.problem import Axis, Problem, Tensor

GEMM = gemm(m=8, n=6, k=5)
CONV = conv2d(n=2, c=3, k=4, p=5, q=6, r=2, s=3)


@st.composite
def schedules_of(draw: st.DrawFn, problem: Problem, *, spatial: bool = True) -> Schedule:
    units = st.sampled_from([None, None, "SM", "lane"]) if spatial else st.none()
    loops = []
    left = dict(problem.size)
    for dim in draw(st.permutations(problem.dims)):
        loops.append(Loop(dim, left[dim], draw(units)))
    for dim in draw(st.lists(st.sampled_from(problem.dims), max_size=6)):
        left[dim] = draw(st.integers(1, left[dim]))
        loops.append(Loop(dim, left[dim], draw(units)))
    return Schedule(tuple(loops))


@st.composite
def placed(draw: st.DrawFn, problem: Problem) -> Schedule:
    """A schedule of which some levels hold each tensor's tile from a place of its own."""
    schedule = draw(schedules_of(problem))
    places = [
        Place(draw(st.integers(0, len(schedule.loops))), level, tensor.name)
        for level in draw(st.lists(st.sampled_from(["L1", "L2", "SB"]), unique=True))
        for tensor in draw(st.permutations(problem.tensors))
    ]
    return Schedule(schedule.loops, tuple(places))


# Text


@given(placed(CONV))
def test_places_are_read_back(schedule: Schedule) -> None:
    assert parse_schedule(format_schedule(schedule), CONV) == schedule
    assert schedule_from_dict(json.loads(json.dumps(schedule_to_dict(schedule))), CONV) == schedule


def test_places_have_one_form() -> None:
    text = "[L2 c] M:8 [L1 B,C] [L2 B A] N:6 K:5 [L1 A]"
    schedule = parse_schedule(text, GEMM)
    assert str(schedule) == "[L2 C] M:8 [L1 B C] [L2 A B] N:6 K:5 [L1 A]"
    assert hash(schedule) == hash(parse_schedule(str(schedule), GEMM))
    assert schedule != parse_schedule("M:8 N:6 K:5", GEMM)
    assert schedule_to_dict(parse_schedule("M:8 N:6 K:5", GEMM)).keys() == {"loops"}


def test_older_files_call_the_unit_of_a_loop_its_level() -> None:
    old = {"loops": [{"dim": "M", "extent": 8, "level": "SM"}, {"dim": "M", "extent": 2}]}
    assert str(schedule_from_dict(old)) == "M:8@SM M:2"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("M:8 [L1 AA] N:6 K:5", "unknown tensor 'AA'; did you mean 'A'"),
        ("M:8 [L1 A] N:6 [L1 A] K:5", "'A' is placed in 'L1' before, at '[L1 A]'; keep one"),
        ("M:8 [L1] N:6 K:5", "a level and the tensors that it holds"),
        ("M:8 [] N:6 K:5", "a level and the tensors that it holds"),
        ("M:8 [L-1 A] N:6 K:5", "a level and the tensors that it holds"),
        ("M:8 [L1 A N:6 K:5", "loop 1 '[': not a loop"),
        ("M:8 N:6 K:5 ]", "loop 3 ']': not a loop"),
    ],
)
def test_malformed_places(text: str, message: str) -> None:
    with pytest.raises(ScheduleError, match=re.escape(message)):
        parse_schedule(text, GEMM)


@pytest.mark.parametrize(
    ("places", "message"),
    [
        ((Place(1, "L1", "A"), Place(2, "L1", "A")), "'A' has two places in 'L1'"),
        ((Place(4, "L1", "A"),), "position of a place is 4; 0 to 3 is allowed"),
        ((Place(True, "L1", "A"),), "position of a place is True"),
        ((Place(1, "L 1", "A"),), "level 'L 1' of a place is not a plain word"),
        ((("L1", "A"),), "is not a Place"),
    ],
)
def test_places_that_cannot_be(places: Any, message: str) -> None:
    loops = Loop("M", 8), Loop("N", 6), Loop("K", 5)
    with pytest.raises(ScheduleError, match=re.escape(message)):
        Schedule(loops, places)
    with pytest.raises(ScheduleError, match="unknown tensor 'X'"):
        Schedule(loops, (Place(1, "L1", "X"),)).check(GEMM)


@pytest.mark.parametrize(
    ("places", "message"),
    [
        (3, "places is 3; a list is needed"),
        ([{"position": 1, "level": "L1"}], "places[0]: no key 'tensor'; it is needed"),
        ([{"position": -2, "level": "L1", "tensor": "A"}], "position of a place is -2"),
        ([{"position": "1", "level": "L1", "tensor": "A"}], "position of a place is '1'"),
    ],
)
def test_malformed_places_in_json(places: object, message: str) -> None:
    loops = [{"dim": dim, "extent": size} for dim, size in GEMM.sizes]
    with pytest.raises(ScheduleError, match=re.escape(message)):
        schedule_from_dict({"loops": loops, "places": places}, GEMM)


@given(schedules_of(CONV))
def test_text_is_read_back(schedule: Schedule) -> None:
    assert parse_schedule(format_schedule(schedule), CONV) == schedule


@given(schedules_of(GEMM), st.lists(st.sampled_from([" ", "  ", "\n", ", ", "\t", ",\n"])))
def test_separators_and_case_do_not_matter(schedule: Schedule, between: list[str]) -> None:
    gaps = itertools.cycle(between or [" "])
    text = "".join(
        str(loop).replace(loop.dim, loop.dim.lower(), 1) + next(gaps) for loop in schedule.loops
    )
    assert parse_schedule(text, GEMM) == schedule


@pytest.mark.parametrize(
    ("alias", "dim"),
    [
        *((word, "N") for word in ["b", "batch", "B", "Batch"]),
        *((word, "K") for word in ["OC", "oc", "M", "m", "k", "cout"]),
        *((word, "C") for word in ["IC", "ic", "c", "Cin"]),
        *((word, "P") for word in ["y", "Y", "OY", "oh", "height"]),
        *((word, "Q") for word in ["x", "X", "OX", "ow", "width"]),
        *((word, "R") for word in ["FY", "fh", "kh"]),
        *((word, "S") for word in ["FX", "fw", "KW"]),
    ],
)
def test_aliases_of_convolutions(alias: str, dim: str) -> None:
    sizes = CONV.size
    text = " ".join(f"{alias if one == dim else one}:{size}" for one, size in sizes.items())
    assert [loop.dim for loop in parse_schedule(text, CONV).loops] == list(sizes)


def test_a_group_has_its_alias_only_where_it_exists() -> None:
    grouped = conv2d(c=4, k=4, p=2, q=2, r=1, s=1, groups=4)
    assert str(parse_schedule("groups:4 y:2 x:2", grouped)) == "G:4 P:2 Q:2"
    with pytest.raises(ScheduleError, match="unknown dim 'groups'"):
        parse_schedule("groups:1 " + str(schedule_all(CONV)), CONV)


@pytest.mark.parametrize("alias", ["x", "OC", "B", "batch", "c", "y"])
def test_a_matrix_product_has_no_aliases(alias: str) -> None:
    with pytest.raises(ScheduleError, match=f"unknown dim '{alias}'"):
        parse_schedule(f"M:8 N:6 K:5 {alias}:1", GEMM)


def test_dims_that_differ_in_case_only_are_kept_apart() -> None:
    problem = einsum("ij,Ij->iI", sizes={"i": 4, "I": 5, "j": 6})
    assert str(parse_schedule("I:5 i:4 J:6", problem)) == "I:5 i:4 j:6"
    long = affine({"aB": 4, "Ab": 4}, {"x": "aB", "y": "Ab", "z": "aB Ab"})
    with pytest.raises(ScheduleError, match="unknown dim 'AB'"):
        parse_schedule("aB:4 AB:4", long)


def test_yalsa_letters() -> None:
    conv = parse_schedule("n:2 y:5 X:6 k:4 s:3 r:2 c:3 y:2", CONV, dialect="yalsa")
    assert str(conv) == "N:2 P:5 Q:6 K:4 S:3 R:2 C:3 P:2"
    product = parse_schedule("n:8 c:5 k:6 c:2", GEMM, dialect="yalsa")
    assert str(product) == "M:8 K:5 N:6 K:2"


def test_yalsa_letters_are_never_guessed() -> None:
    square = gemm(m=4, n=4, k=4)
    assert str(parse_schedule("n:4 k:4 m:4", square)) == "N:4 K:4 M:4"
    with pytest.raises(ScheduleError, match=r"unknown dim 'c'; allowed: M N K"):
        parse_schedule("n:4 c:4 k:4", square)
    with pytest.raises(ScheduleError, match=r"unknown dim 'm'; allowed: n c k"):
        parse_schedule("n:4 m:4 k:4", square, dialect="yalsa")


def test_yalsa_has_letters_for_two_kinds_only() -> None:
    grouped = conv2d(c=4, k=4, p=2, q=2, r=1, s=1, groups=2)
    with pytest.raises(ScheduleError, match="conv2d without groups and for gemm, not for conv2d"):
        parse_schedule("n:1", grouped, dialect="yalsa")
    with pytest.raises(ScheduleError, match="not for einsum over i; use dialect='loopsched'"):
        parse_schedule("i:3", einsum("i->i", sizes={"i": 3}), dialect="yalsa")


def test_all_faults_of_a_text_come_at_once_with_their_places() -> None:
    with pytest.raises(ScheduleError) as caught:
        parse_schedule("MM:8 N:7@ N12\nK:5 K:6 foo M:0 M:\n:: K:5@a@b", GEMM)
    assert caught.value.problems == (
        "line 1, loop 0 'MM:8': unknown dim 'MM'; did you mean 'M'? (allowed: M N K)",
        "line 1, loop 1 'N:7@': unit is ''; name the level whose instances run the loop, "
        "as in '@SM'",
        "line 1, loop 2 'N12': no ':'; did you mean 'N:12'?",
        "line 2, loop 5 'foo': not a loop; write dim:extent or dim:extent@unit, such as 'K:64' "
        "or 'K:64@SM'",
        "line 2, loop 6 'M:0': extent is '0'; a whole number from 1 to the dimension's size is "
        "needed",
        "line 2, loop 7 'M:': extent is ''; a whole number from 1 to the dimension's size is "
        "needed",
        "line 3, loop 8 '::': unknown dim ''; allowed: M N K",
        "line 3, loop 8 '::': extent is ':'; a whole number from 1 to the dimension's size is "
        "needed",
        "line 3, loop 9 'K:5@a@b': unit is 'a@b'; name the level whose instances run the loop, "
        "as in '@SM'",
        "line 2, loop 4 'K:6': extent grows inward; the next outer loop covers only 5",
        "line 1, loop 1 'N:7@': the outermost loop of 'N' covers 7; it must cover the size, 'N:6'",
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "3 errors"),
        ("M:8 N:6", r"^schedule for 'm8 n6 k5': dim 'K' \(size 5\) has no loop; add 'K:5'$"),
        ("M:8 N:6 K:5 M:-2", "extent is '-2'"),
        ("M:8 N:6 K:5 M:+2", r"extent is '\+2'"),
        ("M:8 N:6 K:5 M:2.0", r"extent is '2\.0'"),
        ("M:8 N:6 K:5 M:1e3", "extent is '1e3'"),
        ("M:8 N:6 K:5 M:nan", "extent is 'nan'"),
        ("M:8 N:6 K:5 M:٣", "extent is '٣'"),
        ("M:8 N:6 K:5 M:1_0", "extent is '1_0'"),
        ("M:" + "9" * 5000 + " N:6 K:5", "extent is '9"),
        ("M:8 N:6 K:5 M:9", "loop 3 'M:9': extent grows inward; .* covers only 8"),
        ("M:8 N:6 K:5 M:4 M:6", "loop 4 'M:6': extent grows inward; .* covers only 4"),
        ("M:9 N:6 K:5", "loop 0 'M:9': the outermost loop of 'M' covers 9; .* 'M:8'"),
        ("M:4 N:6 K:5", "loop 0 'M:4': the outermost loop of 'M' covers 4; .* 'M:8'"),
        ("M:8 N:6 K:5 " + "M:1 " * 1000, "1003 loops; at most 1000 are allowed"),
        ("Mé:8 N:6 K:5", "unknown dim 'Mé'; did you mean 'M'"),
        ("\x00:8", r"unknown dim '\\x00'"),
    ],
)
def test_malformed_text(text: str, message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        parse_schedule(text, GEMM)


@pytest.mark.parametrize("text", [None, 3, b"M:8", ["M:8"]])
def test_only_text_is_read(text: Any) -> None:
    with pytest.raises(ScheduleError, match="text is needed, such as 'M:128 K:64'"):
        parse_schedule(text, GEMM)


@pytest.mark.parametrize("dialect", ["Yalsa", "", None, 3])
def test_unknown_dialects(dialect: Any) -> None:
    with pytest.raises(ScheduleError, match="one of loopsched yalsa is needed"):
        parse_schedule("M:8", GEMM, dialect=dialect)


def test_faults_in_the_dialect_are_told_in_its_letters() -> None:
    with pytest.raises(ScheduleError, match=r"dim 'c' .size 5. has no loop; add 'c:5'"):
        parse_schedule("n:8 k:6", GEMM, dialect="yalsa")


SCRAPS = st.lists(
    st.one_of(
        st.sampled_from([*"MNKmkx:@,8650\n\x00é²\ud800", "99", "-1", "SM", "::", "@@"]),
        st.text(max_size=3),
    ),
    max_size=20,
)


@given(st.one_of(st.text(), SCRAPS.map("".join), SCRAPS.map(" ".join)))
def test_no_text_crashes_the_reader(text: str) -> None:
    for problem, dialect in ((GEMM, "loopsched"), (CONV, "loopsched"), (CONV, "yalsa")):
        try:
            schedule = parse_schedule(text, problem, dialect=dialect)
        except ScheduleError:
            continue
        assert schedule.check(problem) is schedule


# JSON


@given(schedules_of(CONV))
def test_json_is_read_back(schedule: Schedule) -> None:
    written = json.dumps(schedule_to_dict(schedule))
    assert schedule_from_dict(json.loads(written), CONV) == schedule


def test_a_file_is_read_back(tmp_path: Path) -> None:
    schedule = Schedule((Loop("M", 8, "SM"), Loop("N", 6), Loop("K", 5), Loop("M", 2)))
    path = tmp_path / "schedule.json"
    path.write_text("\ufeff" + json.dumps(schedule_to_dict(schedule)), encoding="utf-8")
    assert read_schedule_dict(path, GEMM) == schedule
    assert read_schedule_dict(str(path)) == schedule


MALFORMED = [
    ("", "is empty; a schedule is needed"),
    ("{", "line 1, column 2: not JSON"),
    ('{"loops": [{"dim": "M", "extent": 8}', "not JSON: Expecting ',' delimiter"),
    ('{"loops": []} x', "not JSON: Extra data"),
    ("[" * 100_000, "nested too deeply"),
    ("9" * 5000, "a number of 5000 digits; at most 20 are allowed"),
    ("null", "found None; an object is needed"),
    ("[]", r"found \[\]; an object is needed"),
    ('"M:8 N:6 K:5"', "found 'M:8 N:6 K:5'; an object is needed"),
    ("{}", "no key 'loops'; it holds the loops"),
    ('{"loop": []}', "unknown key 'loop'; did you mean 'loops'"),
    ('{"loops": 3}', "loops is 3; a list is needed"),
    ('{"loops": {"dim": "M"}}', "a list is needed"),
    ('{"loops": ["M:8"]}', r"loops\[0\]: found 'M:8'; an object is needed"),
    ('{"loops": [{"dim": "M"}]}', r"loops\[0\]: no key 'extent'"),
    ('{"loops": [{"extent": 8}]}', r"loops\[0\]: no key 'dim'"),
    ('{"loops": [{"dim": "M", "extent": "8"}]}', "extent is '8'; a whole number >= 1"),
    ('{"loops": [{"dim": "M", "extent": 8.0}]}', r"extent is 8\.0; a whole number >= 1"),
    ('{"loops": [{"dim": "M", "extent": true}]}', "extent is True"),
    ('{"loops": [{"dim": "M", "extent": 0}]}', "extent is 0"),
    ('{"loops": [{"dim": "M", "extent": NaN}]}', "NaN is not a number that JSON knows"),
    ('{"loops": [{"dim": "M", "extent": -Infinity}]}', "-Infinity is not a number"),
    ('{"loops": [{"dim": "M", "extent": 1e999}]}', "extent is inf"),
    ('{"loops": [{"dim": 3, "extent": 8}]}', "dim 3 of a loop is not a plain word"),
    ('{"loops": [{"dim": "", "extent": 8}]}', "dim '' of a loop is not a plain"),
    ('{"loops": [{"dim": "M", "extent": 8, "unit": "a b"}]}', "unit 'a b' of a loop is not"),
    ('{"loops": [{"dim": "M", "extent": 8, "level": 1}]}', "unit 1 of a loop is not a plain word"),
    (
        '{"loops": [{"dim": "M", "extent": 8, "unit": "SM", "level": "SM"}]}',
        "unit and level, which older files have in its place, are both given",
    ),
    ('{"loops": [{"dim": "M", "extnt": 8}]}', "unknown key 'extnt'; did you mean 'extent'"),
    ('{"loops": [{"dim": "M", "dim": "N", "extent": 8}]}', "key 'dim' is given twice"),
    ('{"loops": [{"dim": "MM", "extent": 8}]}', "unknown dim 'MM'; did you mean 'M'"),
    ('{"loops": [{"dim": "M", "extent": 9}]}', "outermost loop of 'M' covers 9"),
    ('{"loops": [{"dim": "M", "extent": 8}, {"dim": "M", "extent": 9}]}', "grows inward"),
    ('{"loops": []}', "dim 'K' .size 5. has no loop"),
]


@pytest.mark.parametrize(("text", "message"), MALFORMED)
def test_malformed_json(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(ScheduleError, match=message) as caught:
        read_schedule_dict(path, GEMM)
    assert str(caught.value).startswith(f"{path}: ")


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(ScheduleError, match=r"absent\.json: no such file"):
        read_schedule_dict(tmp_path / "absent.json")
    with pytest.raises(ScheduleError, match="is a folder"):
        read_schedule_dict(tmp_path)
    with pytest.raises(ScheduleError, match="cannot be read: embedded null"):
        read_schedule_dict("a\x00b")
    binary = tmp_path / "binary.json"
    binary.write_bytes(b'{"loops": \xff\xfe}')
    with pytest.raises(ScheduleError, match="is not UTF-8 text: byte 10"):
        read_schedule_dict(binary)
    huge = tmp_path / "huge.json"
    huge.write_bytes(b" " * ((1 << 20) + 1))
    with pytest.raises(ScheduleError, match="larger than 1 MiB"):
        read_schedule_dict(huge)


def test_all_faults_of_a_file_come_at_once() -> None:
    data = {"lops": 1, "loops": [{"dim": "M", "extent": 0}, 3, {"dim": "N", "extent": 6}]}
    with pytest.raises(ScheduleError, match=r"x\.json: 3 errors") as caught:
        schedule_from_dict(data, GEMM, where="x.json")
    assert len(caught.value.problems) == 3


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["loops", "dim", "extent", "unit", "level", "x"]), inner)
    ),
)


@given(PLAIN | PLAIN.map(lambda one: {"loops": [one]}) | PLAIN.map(lambda one: {"loops": one}))
def test_no_value_crashes_the_json_reader(data: object) -> None:
    with pytest.raises(ScheduleError, match=r"^schedule: "):
        schedule_from_dict(data, GEMM)


@given(st.text(alphabet='{}[]":, loopsdimextn0189.e-', max_size=40))
def test_no_text_crashes_the_file_reader(text: str) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "any.json"
        path.write_text(text)
        with pytest.raises(ScheduleError):
            read_schedule_dict(path, GEMM)


# Loops


def schedule_all(problem: Problem) -> Schedule:
    return Schedule.of(Loop(dim, size) for dim, size in problem.sizes)


def literal_points(problem: Problem, schedule: Schedule) -> list[tuple[int, ...]]:
    """Visit the points by cutting regions up, with no formula for their edges."""
    regions = [{dim: list(range(size)) for dim, size in problem.sizes}]
    for loop, step in zip(schedule.loops, schedule.steps, strict=True):
        regions = [
            {**region, loop.dim: piece}
            for region in regions
            for piece in map(list, batched(region[loop.dim], step))
        ]
    return [tuple(region[dim][0] for dim in problem.dims) for region in regions]


def batched(items: list[int], size: int) -> list[list[int]]:
    return [items[start : start + size] for start in range(0, len(items), size)]


@given(schedules_of(gemm(m=7, n=4, k=3)), st.integers(10, 100))
def test_the_rendering_runs_and_visits_the_points_in_order(schedule: Schedule, width: int) -> None:
    problem = gemm(m=7, n=4, k=3)
    notes = {0: "the outermost loop, said at some length", len(schedule.loops): "the body"}
    text = render_loops(problem, schedule, notes, width=width, body="visit(m, n, k)")
    python = re.sub(r"parallel (.*?) @\w+:", r"\1:", text)
    visited: list[tuple[int, ...]] = []
    exec(python, {"visit": lambda *point: visited.append(point)})
    assert visited == literal_points(problem, schedule)


def test_the_default_body_computes_the_product() -> None:
    problem = gemm(m=5, n=4, k=3)
    schedule = parse_schedule("K:3 M:5 N:4 M:2 N:3", problem)
    a = {(m, k): m + 10 * k for m in range(5) for k in range(3)}
    b = {(k, n): 3 * k - n for k in range(3) for n in range(4)}
    c = {(m, n): 0 for m in range(5) for n in range(4)}
    exec(render_loops(problem, schedule), {"A": a, "B": b, "C": c})
    assert c == {(m, n): sum(a[m, k] * b[k, n] for k in range(3)) for m, n in c}


def test_a_broken_body_is_python_too() -> None:
    problem = conv2d(c=2, k=2, p=3, q=2, r=2, s=1, stride=2)
    schedule = parse_schedule("K:2 C:2 P:3 Q:2 R:2 P:2", problem)
    text = render_loops(problem, schedule, width=50)
    assert "output[0, k, p, q] += (\n" in text
    assert "input[0, c, 2*p + r, 2*q]" in text
    image = {(0, c, h, w): c + 2 * h + 5 * w for c in range(2) for h in range(6) for w in range(3)}
    weight = {(k, c, r, 0): k + 2 * c - r for k in range(2) for c in range(2) for r in range(2)}
    output = {(0, k, p, q): 0 for k in range(2) for p in range(3) for q in range(2)}
    exec(text, {"input": image, "weight": weight, "output": output})
    assert output == {
        (0, k, p, q): sum(
            image[0, c, 2 * p + r, 2 * q] * weight[k, c, r, 0] for c in range(2) for r in range(2)
        )
        for _, k, p, q in output
    }


def test_padding_shows_in_the_index() -> None:
    problem = conv2d(c=2, k=2, h=4, w=4, r=3, s=3, padding=1)
    text = render_loops(problem, schedule_all(problem), width=100)
    assert "input[n, c, p + r - 1, q + s - 1]" in text


def test_names_that_python_keeps_for_itself() -> None:
    sizes = {"IF": 2, "range": 3, "x": 2, "X": 2, "A": 2}
    axes = tuple(Axis(((dim, 1),)) for dim in sizes)
    problem = Problem("odd", tuple(sizes.items()), (Tensor("a", axes), Tensor("min_", axes)), "a")
    schedule = parse_schedule("IF:2 range:3 x:2 X:2 A:2 range:2", problem)
    text = render_loops(problem, schedule)
    for name in ("if_", "range_1", "range_", "x", "X", "a_"):
        assert f"for {name} in range(" in text
    points = list(itertools.product(*map(range, sizes.values())))
    ones = dict.fromkeys(points, 0)
    exec(text, {"a": ones, "min_": {point: 1 + sum(point) for point in points}})
    assert ones == {point: 1 + sum(point) for point in points}


def test_notes_stand_in_a_column() -> None:
    problem = gemm(m=8192, n=8192, k=8192)
    schedule = parse_schedule("M:8192@SM N:8192@SM M:1024@SM K:8192 M:128 N:128 K:32", problem)
    notes = {0: "4,096 tiles, 32 waves", 3: "L2: A 4 MiB, B 1 MiB", 4: "L1: 96 KiB, C stays"}
    text = render_loops(problem, schedule, notes)
    assert text == GOLDEN.strip()
    assert max(map(len, text.splitlines())) <= 80


def test_notes_wrap_or_stand_above_where_there_is_little_room() -> None:
    schedule = parse_schedule("M:8 N:6 K:5 M:3", GEMM)
    notes = {0: "3 tiles", 3: "A, B and C of one tile fit into L1, all of them"}
    assert render_loops(GEMM, schedule, notes, width=70) == WRAPPED.strip()
    assert render_loops(GEMM, schedule, notes, width=40) == ABOVE.strip()


GOLDEN = """
parallel for m2 in range(0, 8192, 1024) @SM:   # 4,096 tiles, 32 waves
    parallel for n1 in range(0, 8192, 128) @SM:
        parallel for m1 in range(m2, m2 + 1024, 128) @SM:
            for k1 in range(0, 8192, 32):      # L2: A 4 MiB, B 1 MiB
                for m in range(m1, m1 + 128):  # L1: 96 KiB, C stays
                    for n in range(n1, n1 + 128):
                        for k in range(k1, k1 + 32):
                            C[m, n] += A[m, k] * B[k, n]
"""
WRAPPED = """
# 3 tiles
for m1 in range(0, 8, 3):
    for n in range(6):
        for k in range(5):
            # A, B and C of one tile fit into L1, all of them
            for m in range(m1, min(m1 + 3, 8)):
                C[m, n] += A[m, k] * B[k, n]
"""
ABOVE = """
# 3 tiles
for m1 in range(0, 8, 3):
 for n in range(6):
  for k in range(5):
   # A, B and C of one tile fit into L1,
   # all of them
   for m in range(m1, min(m1 + 3, 8)):
    C[m, n] += A[m, k] * B[k, n]
"""


@given(
    schedules_of(CONV, spatial=False),
    st.dictionaries(st.integers(0, 12), st.text("abc ", max_size=60), max_size=6),
    st.integers(60, 120),
)
def test_notes_keep_to_the_width_and_lose_no_word(
    schedule: Schedule, notes: dict[int, str], width: int
) -> None:
    text = render_loops(CONV, schedule, notes, width=width)
    bare = render_loops(CONV, schedule, width=width)
    shown = {place: note for place, note in notes.items() if place <= len(schedule.loops)}
    words = sorted(" ".join(shown.values()).replace(" ", ""))
    said = sorted("".join(re.findall(r"# (.*)", text)).replace(" ", ""))
    assert said == words
    longest = max(map(len, bare.splitlines()))
    assert max(map(len, text.splitlines())) <= max(width, longest + 26)
    compile(text, "rendering", "exec")


def test_a_schedule_of_another_problem_is_not_rendered() -> None:
    with pytest.raises(ScheduleError, match="outermost loop of 'M' covers 8"):
        render_loops(gemm(m=9, n=6, k=5), schedule_all(GEMM))
