"""The page's model: equal to the library in every digit, in a real browser."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

import pytest
from page_model import (
    CHROMIUM,
    Case,
    case,
    exact,
    layer_cases,
    random_cases,
    run_in_page,
    shipped,
    text_cases,
)

from loopsched import buffer_arch, gemm, load_arch, parse_schedule, search
from loopsched.nests.nest import Schedule
from loopsched.nests.schedule_file import schedule_to_dict
from loopsched.problems.builders import affine
from loopsched.show.page.data import arch_data, problem_data

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")

TITAN_V = load_arch("titan_v")


def _cases() -> dict[str, list[Case]]:
    layers, archs = shipped()
    found = {
        "small problems": random_cases(250, 5),
        "real layers": list(layer_cases(layers, archs, 150, 5)),
        "huge": list(layer_cases([gemm(m=2**20, n=2**19, k=2**20 - 1)], archs[1:], 20, 5)),
        "texts": list(text_cases(layers, 200, 5)),
        "small caches": _small_caches(),
    }
    found["spoilt"], found["too large"] = _spoilt(), _too_large()
    chosen = layers[::25]
    found["best"] = [case(one, search(one, TITAN_V).schedule, TITAN_V) for one in chosen]
    return found


def _small_caches() -> list[Case]:
    """Items on 80 SMs in caches so small that each loop, and each visit of a replay, counts."""
    rooms = {"L2": 2048, "L1": 512}
    levels = [
        replace(level, capacity_bytes=rooms.get(level.name, level.capacity_bytes))
        for level in TITAN_V.levels
    ]
    arch = replace(TITAN_V, levels=tuple(levels))
    chosen = (
        (gemm(m=5, n=20, k=32), "N:20@SM N:5 M:5 K:32"),
        (gemm(m=16, n=32, k=5), "M:16@SM M:12 N:32 K:5"),
        (gemm(m=24, n=12, k=20), "K:20@SM M:24@SM N:12"),
        (gemm(m=20, n=5, k=24), "M:20@SM K:24@SM M:5 N:5"),
        (gemm(m=7, n=24, k=24), "N:24@SM K:24@SM N:4 M:7"),
        (gemm(m=32, n=24, k=32), "K:32@SM N:24@SM N:2 M:32"),
    )
    return [case(problem, parse_schedule(text, problem), arch) for problem, text in chosen]


def _spoilt() -> list[Case]:
    """A case that is right, one with another last digit, and one that lacks a value."""
    problem = gemm(m=100, n=100, k=100)
    one = case(problem, parse_schedule("M:100 N:100 K:100 M:7", problem), TITAN_V)
    wrong, lacking = copy.deepcopy(one), copy.deepcopy(one)
    bits = wrong["expected"]["levels"][1]["time_s"]
    wrong["expected"]["levels"][1]["time_s"] = bits[:-1] + ("0" if bits[-1] != "0" else "1")
    del lacking["expected"]["levels"][0]["tensors"][0]["footprint_bytes"]
    return [one, wrong, lacking]


def _too_large() -> list[Case]:
    long = affine({"X": 2**59}, {"a": "X", "b": "X"}, element_bytes=1)
    large = affine({"X": 2**26, "Y": 2**26}, {"a": "X Y", "b": "X"}, element_bytes=1)
    wanted = {
        long: "problem 'X576460752303423488': a size is not from 1 to 2^53 - 1",
        large: "problem 'X67108864 Y67108864': 2^52 bytes or more are not counted here",
    }
    arch = arch_data(buffer_arch(capacity_bytes=2**60))
    return [
        {
            "kind": "evaluate",
            "problem": problem_data(problem, buffer_arch(capacity_bytes=2**60)),
            "schedule": schedule_to_dict(Schedule(())),
            "arch": arch,
            "options": {},
            "expected": {"error": message},
        }
        for problem, message in wanted.items()
    ]


@pytest.fixture(scope="module")
def cases() -> dict[str, list[Case]]:
    return _cases()


@pytest.fixture(scope="module")
def verdict(
    cases: dict[str, list[Case]], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    every = [one for part in cases.values() for one in part]
    return run_in_page(every, tmp_path_factory.mktemp("page"))


@pytest.mark.parametrize(
    "part",
    ["small problems", "real layers", "huge", "texts", "small caches", "best", "too large"],
)
def test_page_says_what_the_library_says(
    part: str, cases: dict[str, list[Case]], verdict: dict[str, Any]
) -> None:
    names = [name for name, some in cases.items() for _ in some]
    assert verdict["n"] == len(names)
    assert [one for one in verdict["wrong"] if names[one["case"]] == part] == []


def test_cases_hold_what_they_are_for(cases: dict[str, list[Case]]) -> None:
    text = {name: json.dumps(some, ensure_ascii=False) for name, some in cases.items()}
    for part in ("small problems", "real layers", "huge", "best"):
        scored = [one for one in cases[part] if "error" not in one["expected"]]
        assert len(scored) > 0.6 * len(cases[part])
    assert '"holds": ["' in text["small problems"]
    assert '"scratchpad"' in text["small problems"]
    for words in ("grows inward", "did you mean", "has no loop", "not a loop", "unit is"):
        assert words in text["texts"]
    most = max(
        int(one["expected"]["levels"][-1]["promised_bytes"].removeprefix("int "))
        for one in cases["huge"]
    )
    assert most > 2**53


def test_a_difference_is_seen(cases: dict[str, list[Case]], verdict: dict[str, Any]) -> None:
    places = [(name, at) for name, some in cases.items() for at in range(len(some))]
    found = {places[one["case"]]: one["differences"] for one in verdict["wrong"]}
    assert list(found) == [("spoilt", 1), ("spoilt", 2)]
    assert ".levels[1].time_s" in found["spoilt", 1][0]
    assert "on one side only" in found["spoilt", 2][0]


def test_bounds_go_along_for_every_capacity_that_counts() -> None:
    from loopsched.bounds.communication import communication_bound

    problem = gemm(m=512, n=512, k=512)
    bounds = problem_data(problem, TITAN_V)["bounds"]
    rooms = [TITAN_V.inside_bytes(level) for level in TITAN_V.caches]
    assert set(bounds) == {str(room) for room in [*rooms, TITAN_V.caches[0].usable_bytes]}
    for room, found in bounds.items():
        assert found == communication_bound(problem, int(room)).bytes
    assert "bounds" not in problem_data(problem)


def test_large_numbers_travel_as_text() -> None:
    large = buffer_arch(capacity_bytes=2**60)
    assert arch_data(large)["levels"][1]["capacity_bytes"] == "1152921504606846976"
    assert arch_data(TITAN_V)["levels"][1]["capacity_bytes"] == 4718592


def test_exact_tells_one_and_a_neighbour_apart() -> None:
    assert exact([0.1 + 0.2, 0.3, 1, 1.0, None]) == [
        "float 3fd3333333333334",
        "float 3fd3333333333333",
        "int 1",
        "float 3ff0000000000000",
        None,
    ]
