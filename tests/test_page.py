"""The explorer page: the file by itself, and in a browser at two widths."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

import loopsched
from loopsched import (
    InputError,
    ProblemError,
    affine,
    buffer_arch,
    compare,
    conv2d,
    evaluate,
    gemm,
    load_arch,
    parse_schedule,
    render_loops,
    search,
    traffic_curve,
)
from loopsched.base.units import binary, percent, scaled
from loopsched.cli import run
from loopsched.nests.nest import Loop, Schedule
from loopsched.problems.problem import Problem
from loopsched.scheduler.kinds import kind_of
from loopsched.scheduler.rows import evaluation_row, result_rows
from loopsched.show.page.report import report_html

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
in_browser = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")

ARCH = load_arch("titan_v")
NASTY = '</script><img src=x onerror=alert(1)> "it\'s" {{data}} \u2028 größe & <!--'
PROBLEMS = {
    0: gemm(m=96, n=80, k=64).renamed("small product"),
    2: gemm(m=512, n=8, k=1024).renamed(NASTY),
    3: conv2d(n=2, c=16, k=32, h=14, w=14, r=3, s=3, padding=1).renamed("conv"),
    7: gemm(m=1024, n=512, k=256).renamed("large product"),
}
COUNTS = {0: 1, 2: 3, 3: 1, 7: 1}

Row = dict[str, Any]


def rows_of(number: int, problem: Problem) -> list[Row]:
    head: Row = {"layer": number, "count": COUNTS[number]}
    tail: Row = {"arch": "titan_v", "workload": "mine.json", "element_bytes": None}
    tail |= {"version": "1.2.3", "command": "loopsched search mine.json", "strategy": "exact"}
    return [head | row | tail for row in result_rows(search(problem, ARCH, top=2))]


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return [row for number, problem in PROBLEMS.items() for row in rows_of(number, problem)]


@pytest.fixture(scope="module")
def text(rows: list[Row]) -> str:
    return report_html(rows, PROBLEMS, ARCH, curves={0: traffic_curve(PROBLEMS[0])})


class Parts(HTMLParser):
    """Elements of a page, and the text of its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self._is_script = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._is_script = tag == "script"
        if self._is_script:
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._is_script = False

    def handle_data(self, data: str) -> None:
        if self._is_script:
            self.scripts[-1] += data


# ---- the file


def test_page_is_the_same_each_time_and_for_any_order_of_rows(rows: list[Row], text: str) -> None:
    curves = {0: traffic_curve(PROBLEMS[0])}
    assert report_html(rows[::-1], PROBLEMS, ARCH, curves=curves) == text


def test_nothing_in_the_page_points_anywhere(text: str) -> None:
    assert not re.search(r"https?:|//[a-z]+\.[a-z]|@import|url\(", text.replace("</script>", ""))
    parts = Parts(text)
    for tag, attributes in parts.tags:
        assert "src" not in attributes
        assert tag not in ("iframe", "img", "form", "base", "object", "embed")
        assert attributes.get("href") in (None, "#layers-title", "data:,")
        assert not [name for name in attributes if name.startswith("on") or name == "style"]


def test_names_cannot_become_markup(text: str) -> None:
    parts = Parts(text)
    assert [tag for tag, _ in parts.tags if tag == "script"] == ["script"] * 3
    assert "onerror=alert" not in re.sub(r'<script type="application/json".*?</script>', "", text)
    data = json.loads(parts.scripts[0])
    assert data["layers"][1]["name"] == NASTY
    assert not re.search("[<>&\u2028\u2029]", parts.scripts[0])


def test_policy_names_exactly_the_scripts_and_the_style(text: str) -> None:
    import base64
    import hashlib

    def source(part: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()}'"

    (policy,) = [a["content"] for tag, a in Parts(text).tags if "http-equiv" in a]
    rules = dict(rule.strip().split(" ", 1) for rule in str(policy).split(";"))
    _, model, page = Parts(text).scripts
    style = text.split("<style>")[1].split("</style>")[0]
    assert rules["default-src"] == "'none'"
    assert rules["script-src"].split() == [source(model), source(page)]
    assert rules["style-src"] == source(style)
    assert "connect-src" not in rules


def test_a_curve_is_embedded_with_its_steps_and_bounds(text: str) -> None:
    data = json.loads(Parts(text).scripts[0])
    curve, kept = traffic_curve(PROBLEMS[0]), data["layers"][0]["curve"]
    assert len(kept["capacities_bytes"]) > 5
    for capacity, moved in zip(kept["capacities_bytes"], kept["dram_bytes"], strict=True):
        assert curve.at(capacity) == moved
    assert kept["nest_bound_bytes"] == list(curve.step_bounds)
    assert data["layers"][1]["curve"] is None


def test_a_long_curve_is_thinned_to_some_of_its_steps(
    rows: list[Row], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loopsched.show.page.report._MOST_STEPS", 20)
    curve = traffic_curve(PROBLEMS[0])
    page = report_html(rows, PROBLEMS, ARCH, curves={0: curve})
    kept = json.loads(Parts(page).scripts[0])["layers"][0]["curve"]
    assert kept["of"] == len(curve.capacities_bytes) > 40
    assert 20 <= len(kept["dram_bytes"]) <= 22 + len(ARCH.caches)
    for level in ARCH.caches:
        step = curve.step(level.usable_bytes or 0) or 0
        assert curve.capacities_bytes[step] in kept["capacities_bytes"]
    assert kept["capacities_bytes"][0] == curve.capacities_bytes[0]
    assert kept["dram_bytes"][-1] == curve.compulsory_bytes
    pairs = zip(kept["capacities_bytes"], kept["dram_bytes"], strict=True)
    assert [curve.at(capacity) for capacity, _ in pairs] == kept["dram_bytes"]
    bounds = dict(zip(curve.capacities_bytes, curve.step_bounds, strict=True))
    assert [bounds[capacity] for capacity in kept["capacities_bytes"]] == kept["nest_bound_bytes"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rank": None}, "row 1: 'rank' is None; a whole number is needed"),
        ({"rank": 7}, "layer 0: no row of rank 1"),
        ({"rank": 2}, "layer 0: rank 2 occurs 2 times"),
        ({"levels": [1, 2]}, "row 1: level 0 is 1; an object"),
        ({"levels": [{"bytes": 3}, {}]}, "row 1: level 0: 'bytes' is 3; an object"),
        ({"levels": []}, "row 1: 0 levels; the machine has 2"),
        ({"time_s": float("nan")}, "row 1: 'time_s' is nan; a number is needed"),
        ({"time_s": "fast"}, "row 1: 'time_s' is 'fast'; a number is needed"),
        ({"proven": 1}, "row 1: 'proven' is 1; true or false is needed"),
    ],
)
def test_rows_that_are_none_of_a_search_are_refused(
    rows: list[Row], change: Row, message: str
) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        report_html([rows[0] | change, *rows[1:]], PROBLEMS, ARCH)


def test_what_the_page_could_not_score_is_refused(rows: list[Row]) -> None:
    long = affine({"X": 2**26, "Y": 2**26}, {"a": "X Y", "b": "X"}, element_bytes=1)
    wrong = [{**rows[0], "schedule": "M:5"}, {**rows[0], "layer": 1}, {**rows[0], "layer": 9}]
    wrong[1]["schedule"] = "X:67108864 Y:67108864"
    with pytest.raises(InputError) as caught:
        report_html(wrong, {0: PROBLEMS[0], 1: long}, ARCH)
    told = caught.value.problems
    assert told[0].startswith("layer 0, rank 1: loop 0 'M:5': the outermost loop of 'M'")
    assert told[-2:] == (
        f"layer 1: problem '{long.name}' is too large for a page",
        "layer 9: no problem is given for it",
    )


def test_every_fault_of_the_rows_is_told(rows: list[Row]) -> None:
    with pytest.raises(InputError) as caught:
        report_html([{"a": 1}, {**rows[0], "gap": "", "nodes": -1}], PROBLEMS, ARCH)
    assert len(caught.value.problems) == 3
    with pytest.raises(InputError, match="no rows"):
        report_html([], {}, ARCH)


# ---- the commands


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    layers = [{"op": "gemm", "m": 64, "n": 32, "k": 16}, {"op": "gemm", "m": 8, "n": 8, "k": 8}]
    Path("mine.json").write_text(json.dumps({"layers": layers}))
    assert run(["search", "mine.json", "--top", "2", "--out", "r.jsonl"]) == 0
    return tmp_path / "r.jsonl"


def test_report_makes_the_page_of_results(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert run(["report", "r.jsonl", "-o", "r.html", "--curves", "--reasons"]) == 0
    assert re.search(r"wrote r\.html: 2 layers, [0-9.]+ kB\n\Z", capsys.readouterr().err)
    data = json.loads(Parts(Path("r.html").read_text(encoding="utf-8")).scripts[0])
    assert [len(layer["found"]) for layer in data["layers"]] == [
        2,
        1,
    ]  # the second's are of one kind
    assert data["layers"][1]["curve"]["dram_bytes"][-1] == 3 * 8 * 8 * 4
    best, second = data["layers"][0]["found"]
    assert not best["reasons"]
    problem = gemm(m=64, n=32, k=16)
    both = [parse_schedule(one["schedule"], problem) for one in (second, best)]
    assert second["reasons"] == list(compare(problem, *both, ARCH).reasons)
    assert second["reasons"]
    assert data["command"] == "loopsched search mine.json --top 2 --out r.jsonl"
    assert not list(saved.parent.glob("*.part"))


def of_a_run(saved: Path, **changed: object) -> Row:
    """Write a row such as `run` saves."""
    keys = ("workload_digest", "arch_digest")
    found = json.loads(saved.read_text(encoding="utf-8").splitlines()[0])
    row = {"layer": 1, "measured_s": 2e-6, "threads": 2, "data_type": "fp32"}
    row |= {key: found[key] for key in keys} | changed
    with (saved.parent / "run.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
    return row


def test_what_was_measured_stands_beside_what_is_promised(saved: Path) -> None:
    row = of_a_run(saved)
    for command in (["report", "r.jsonl"], ["explore", "mine.json", "--no-open"]):
        assert run([*command, "--measured", "run.jsonl", "-o", "m.html"]) == 0
        data = json.loads(Parts(Path("m.html").read_text(encoding="utf-8")).scripts[0])
        told = {name: row[name] for name in ("measured_s", "threads", "data_type")}
        assert [layer["measured"] for layer in data["layers"]] == [None, told]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"workload_digest": "0"},
            "row 1: measured for another workload than that of the page",
        ),
        (
            {"arch_digest": None},
            "row 1: measured for another machine than that of the page",
        ),
        ({"measured_s": "fast"}, "row 1: no 'measured_s'; is it what 'run --out' has saved?"),
        ({}, "row 2: layer 1 was measured twice"),
    ],
)
def test_measurements_of_something_else(
    saved: Path, capsys: pytest.CaptureFixture[str], changed: Row, message: str
) -> None:
    of_a_run(saved, **changed)
    of_a_run(saved)
    assert run(["report", "r.jsonl", "--measured", "run.jsonl"]) == 3
    assert message in " ".join(capsys.readouterr().err.split())


def test_what_run_saves_is_taken(saved: Path) -> None:
    arch = ["--arch", "host"]
    assert run(["search", "mine.json", *arch, "--out", "h.jsonl"]) == 0
    assert run(["run", "mine.json", *arch, "--threads", "1", "--out", "run.jsonl"]) == 0
    assert run(["report", "h.jsonl", "--measured", "run.jsonl", "-o", "h.html"]) == 0
    data = json.loads(Parts(Path("h.html").read_text(encoding="utf-8")).scripts[0])
    assert all(layer["measured"]["measured_s"] > 0 for layer in data["layers"])


def test_every_form_of_results_gives_the_same_page(saved: Path) -> None:
    found = []
    for form in ("jsonl", "json", "parquet"):
        assert run(["search", "mine.json", "--top", "2", "--out", f"s.{form}"]) == 0
        assert run(["report", f"s.{form}", "-o", f"{form}.html"]) == 0
        data = json.loads(Parts(Path(f"{form}.html").read_text(encoding="utf-8")).scripts[0])
        found.append(data | {"command": ""})
    assert found[0] == found[1] == found[2]


def test_explore_writes_the_same_page_as_report_of_a_search(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda place: bool(opened.append(place)) or True)
    assert run(["explore", "mine.json", "--top", "2", "-o", "e.html"]) == 0
    assert opened == [(saved.parent / "e.html").as_uri()]
    assert run(["explore", "mine.json", "--no-open", "-o", "f.html"]) == 0
    assert len(opened) == 1
    assert run(["report", "r.jsonl"]) == 0
    one, other = (
        json.loads(Parts(Path(name).read_text(encoding="utf-8")).scripts[0])
        for name in ("e.html", "report.html")
    )
    assert one.pop("command") != other.pop("command")
    shown = [[layer.pop("found") for layer in page["layers"]] for page in (one, other)]
    assert one == other
    for explored, reported in zip(*shown, strict=True):
        assert explored[0] == reported[0]  # the best; explore finds alternatives of more kinds


def test_demo_makes_the_page_of_a_small_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda url: bool(opened.append(url)))
    assert run(["demo", "-o", "demo.html"]) == 0
    told = capsys.readouterr()
    assert "wrote demo.html: 8 layers, " in told.err
    assert opened == [(tmp_path / "demo.html").as_uri()]
    assert "no browser found; open demo.html" in told.err
    data = json.loads(Parts((tmp_path / "demo.html").read_text(encoding="utf-8")).scripts[0])
    assert data["command"].startswith("loopsched explore alexnet ")
    assert all(one["curve"] for one in data["layers"])


def test_explore_shows_what_is_done_when_it_is_interrupted(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from loopsched.cli import output

    def interrupt(self: object, what: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(output.Progress, "step", interrupt)
    assert run(["explore", "mine.json", "--no-open", "-o", "e.html"]) == 130
    assert len(json.loads(Parts(Path("e.html").read_text()).scripts[0])["layers"]) == 1


def test_an_interruption_keeps_the_curves_that_are_found(
    saved: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def find(problem: Problem) -> Any:
        if problem.macs < 1000:
            raise KeyboardInterrupt
        return traffic_curve(problem)

    monkeypatch.setattr("loopsched.curves.front.traffic_curve", find)
    capsys.readouterr()
    assert run(["report", "r.jsonl", "--curves", "--reasons"]) == 130
    assert "wrote report.html: 2 layers, " in capsys.readouterr().err
    layers = json.loads(Parts(Path("report.html").read_text(encoding="utf-8")).scripts[0])["layers"]
    assert [layer["curve"] is None for layer in layers] == [False, True]
    assert not any(one["reasons"] for layer in layers for one in layer["found"])


@pytest.mark.parametrize("n_layers", [30, 31])
def test_explore_shows_alternatives_of_other_kinds(
    n_layers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    layers = [{"op": "gemm", "m": 96, "n": 80, "k": 64, "name": f"a{i}"} for i in range(n_layers)]
    Path("some.json").write_text(json.dumps({"layers": layers}))
    for top, most in (([], 3), (["--top", "2"], 2)):
        assert run(["explore", "some.json", "--no-open", "-o", "e.html", *top]) == 0
        data = json.loads(Parts(Path("e.html").read_text(encoding="utf-8")).scripts[0])
        for layer in data["layers"]:
            texts = [one["schedule"] for one in layer["found"]]
            problem = gemm(m=96, n=80, k=64)
            nests = [parse_schedule(text, problem) for text in texts]
            kinds = {kind_of(problem, nest, evaluate(problem, nest, ARCH)) for nest in nests}
            assert len(kinds) == len(texts) == most


def test_report_leaves_out_schedules_of_one_kind(
    saved: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = [json.loads(line) for line in saved.read_text().splitlines()]
    assert [(row["layer"], row["rank"]) for row in kept] == [(0, 1), (0, 2), (1, 1), (1, 2)]
    assert run(["report", "r.jsonl", "-o", "r.html"]) == 0
    data = json.loads(Parts(Path("r.html").read_text(encoding="utf-8")).scripts[0])
    shown = [[one["rank"] for one in layer["found"]] for layer in data["layers"]]
    assert shown == [[1, 2], [1]]
    problem = gemm(m=8, n=8, k=8)
    one, other = (parse_schedule(row["schedule"], problem) for row in kept[2:])
    assert one != other
    kinds = [kind_of(problem, nest, evaluate(problem, nest, ARCH)) for nest in (one, other)]
    assert kinds[0] == kinds[1]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda row: row | {"workload_digest": "0"}, "workload 'mine.json' has changed"),
        (lambda row: row | {"arch_digest": "0"}, "architecture 'titan_v' has changed"),
        (lambda row: row | {"workload": "gone.json"}, "gone.json"),
        (lambda row: row | {"arch": "titan_w"}, "titan_w"),
        (lambda row: row | {"layer": 9}, "no layer 9; layers are numbered 0 to 1"),
        (lambda row: row | {"schedule": "M:3"}, "r.jsonl: row 1: "),
        (lambda row: row | {"objective": "energy"}, "rows of 2 searches ('objective' differs)"),
        (lambda row: {"curve": 1}, "no 'workload'; is it what 'search --out' has saved"),
    ],
)
def test_results_that_do_not_hold_any_more_are_refused(
    saved: Path, capsys: pytest.CaptureFixture[str], spoil: Any, message: str
) -> None:
    first, *others = saved.read_text().splitlines()
    saved.write_text("\n".join([json.dumps(spoil(json.loads(first))), *others]))
    assert run(["report", "r.jsonl", "-o", "r.html"]) == 3
    told = capsys.readouterr().err
    assert message in told
    assert not Path("r.html").exists()


def test_a_layer_without_a_curve_is_told_and_shown_without(
    saved: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def find(problem: Problem) -> Any:
        if problem.macs < 1000:
            raise ProblemError(f"problem '{problem.name}': too small")
        return traffic_curve(problem)

    monkeypatch.setattr("loopsched.curves.front.traffic_curve", find)
    assert run(["report", "r.jsonl", "--curves"]) == 0
    assert "no curve: problem 'm8 n8 k8': too small" in capsys.readouterr().err
    data = json.loads(Parts(Path("report.html").read_text(encoding="utf-8")).scripts[0])
    assert [layer["curve"] is None for layer in data["layers"]] == [False, True]


@pytest.mark.parametrize("place", ["no/r.html", "."])
def test_a_place_that_cannot_be_written_is_told_before_the_work(
    saved: Path, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    for command in (["report", "r.jsonl"], ["explore", "deepbench_gemm"]):
        assert run([*command, "-o", place]) == 3
        assert "cannot be written" in capsys.readouterr().err


def test_a_page_never_takes_the_place_of_what_it_is_made_of(
    saved: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command, source in (("report", "r.jsonl"), ("explore", "mine.json")):
        before = Path(source).read_bytes()
        assert run([command, source, "-o", f"./{source}"]) == 3
        assert "cannot be written: the page is made from it" in capsys.readouterr().err
        assert Path(source).read_bytes() == before


def test_csv_results_are_refused_by_their_reason(
    saved: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("r.csv").write_text("layer,time_s\n")
    assert run(["report", "r.csv"]) == 3
    assert "CSV leave out the levels" in capsys.readouterr().err
    assert run(["report", "none.csv"]) == 3
    assert "none.csv: no such file" in capsys.readouterr().err


# ---- in a browser


class Tab:
    """A page that is open, with all that it asked for and complained of."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.requests: list[str] = []
        self.complaints: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", lambda said: self.complaints.append(said.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def text(self, selector: str) -> str:
        return re.sub(r"\s+", " ", str(self.page.inner_text(selector))).strip()

    def visit(self, address: str) -> None:
        """Follow a link within the page."""
        self.page.evaluate(
            """address => new Promise(done => {
                addEventListener("hashchange", () => setTimeout(done), {once: true});
                location.hash = address;
            })""",
            address,
        )

    def names(self) -> list[str]:
        return list(self.page.locator("#layers tbody tr .column-number").all_text_contents())

    def chosen(self) -> str:
        return str(self.page.inner_text("#layers tr[aria-selected=true] .column-number"))

    def schedule(self) -> str:
        return str(self.page.input_value("#schedule-text"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        options = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-sync"]
        options += ["--no-first-run", "--disable-background-networking"]
        found = driver.chromium.launch(executable_path=CHROMIUM, args=options)
        yield found
        found.close()


@pytest.fixture(scope="module")
def place(text: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    target = tmp_path_factory.mktemp("page") / "page.html"
    target.write_text(text, encoding="utf-8")
    return target.as_uri()


@pytest.fixture(scope="module")
def only_tab(browser: Any) -> Tab:
    """One tab for all tests, as each new one takes a process of its own."""
    return Tab(browser.new_page())


def opened(tab: Tab, place: str, width: int) -> Iterator[Tab]:
    tab.page.goto("about:blank")
    tab.requests.clear()
    tab.complaints.clear()
    tab.page.set_viewport_size({"width": width, "height": 900})
    tab.page.goto(place)
    yield tab
    assert tab.complaints == []
    # The page itself, and an icon of no bytes: nothing else was asked for.
    assert {url.split("#")[0] for url in tab.requests} <= {place, "data:,"}
    assert tab.page.evaluate("document.documentElement.scrollWidth") == width


@pytest.fixture(params=[1280, 400], ids=["wide", "phone"])
def tab(request: pytest.FixtureRequest, only_tab: Tab, place: str) -> Iterator[Tab]:
    yield from opened(only_tab, place, request.param)


@pytest.fixture
def wide(only_tab: Tab, place: str) -> Iterator[Tab]:
    yield from opened(only_tab, place, 1280)


def first(tab: Tab, selector: str) -> Any:
    return tab.page.locator(selector).first


@pytest.fixture
def phone(only_tab: Tab, place: str) -> Iterator[Tab]:
    yield from opened(only_tab, place, 400)


@in_browser
def test_page_opens_on_the_first_layer(tab: Tab, rows: list[Row]) -> None:
    assert tab.names() == ["0", "2", "3", "7"]
    assert tab.chosen() == "0"
    assert tab.page.inner_text("#layer-title") == "small product"
    total = sum(row["count"] * row["time_s"] for row in rows if row["rank"] == 1)
    assert scaled(total, "s").replace("u", "µ") in tab.text("#totals")
    assert scaled(total, "s").replace("u", "µ") in tab.text("#shown")
    assert tab.page.locator("#layers tbody th").nth(1).text_content() == NASTY
    wide = tab.page.viewport_size["width"] == 1280
    assert tab.page.locator("#layers .column-needs").first.is_visible() is wide
    assert tab.page.locator("#layers .column-time").first.is_visible()


@in_browser
def test_titles_sort_and_say_so(wide: Tab, rows: list[Row]) -> None:
    best = {row["layer"]: row for row in rows if row["rank"] == 1}
    by_time = sorted(best, key=lambda number: best[number]["time_s"])
    title = wide.page.get_by_role("button", name="time", exact=True)
    title.focus()
    wide.page.keyboard.press("Enter")
    assert wide.names() == [str(number) for number in by_time]
    heads = wide.page.locator("#layers thead th")
    assert heads.locator("xpath=self::*[@aria-sort='ascending']").all_text_contents() == ["▴time"]
    wide.page.keyboard.press("Enter")
    assert wide.names() == [str(number) for number in reversed(by_time)]
    assert heads.locator("xpath=self::*[@aria-sort='descending']").all_text_contents() == ["▾time"]
    assert title.evaluate("node => document.activeElement === node")


@in_browser
def test_a_column_tells_what_was_measured(only_tab: Tab, rows: list[Row], tmp_path: Path) -> None:
    times = {0: {"measured_s": 2 * rows[0]["time_s"], "threads": 2, "data_type": "fp32"}}
    target = tmp_path / "measured.html"
    page = report_html(rows, PROBLEMS, ARCH, measured=times)
    target.write_text(page, encoding="utf-8")
    for tab in opened(only_tab, target.as_uri(), 1280):
        cells = tab.page.locator("#layers tbody .column-measured").all_text_contents()
        assert [bool(cell) for cell in cells] == [True] + [False] * (len(cells) - 1)
        told = tab.page.locator("#layers .column-measured span[title]").last.get_attribute("title")
        assert told == "fp32 on 2 threads, 2.00 times what is promised"
        assert "fp32 on 2 threads." in tab.text("#layers-measured")


@in_browser
def test_nothing_measured_has_no_column(wide: Tab) -> None:
    assert not wide.page.locator("#layers .column-measured").count()
    assert not wide.page.locator("#layers-measured").is_visible()


@in_browser
def test_filters_leave_what_is_asked_for(tab: Tab, rows: list[Row]) -> None:
    tab.page.keyboard.press("/")
    tab.page.keyboard.type("product")
    assert tab.names() == ["0", "7"]
    assert tab.text("#shown").startswith("2 of 4")
    assert tab.page.locator("#roofline .point").count() == 2
    tab.page.keyboard.press("Control+A")
    tab.page.keyboard.type("k1024")
    assert tab.names() == ["2"]
    tab.page.fill("#filter", "no such layer")
    assert tab.page.inner_text("#layers tbody") == "No layer is like that."
    tab.page.fill("#filter", "")
    bound = [row["bound_by"] for row in rows if row["rank"] == 1]
    tab.page.select_option("#filter-bound", bound[1])
    assert len(tab.names()) == bound.count(bound[1])


@in_browser
def test_numbers_of_a_filter_are_whole(wide: Tab) -> None:
    for words, numbers in {
        "k64": ["0"],
        "k=10": [],
        "k:1024 m512": ["2"],
        "n512": ["7"],
        "512": ["2", "7"],
        "p14 conv": ["3"],
        "k64 n512": [],
        "o": ["0", "2", "3", "7"],
    }.items():
        wide.page.fill("#filter", words)
        assert wide.names() == numbers, words


@in_browser
def test_numbers_are_written_as_the_library_writes_them(wide: Tab) -> None:
    choice = random.Random(7)
    counts = [5 * int(10 ** choice.uniform(0, 12)) for _ in range(300)]
    counts += [128 * choice.randrange(1, 10**5) for _ in range(300)] + [99_305, 43_648, 1_048_500]
    rates = [10 ** choice.uniform(-12, 14) for _ in range(300)] + [42.625, 3.0]
    shares = [choice.randrange(2**10) / 2**10 for _ in range(100)]
    format_js = (files("loopsched.show.page") / "ui/format.js").read_text(encoding="utf-8")
    written = wide.page.evaluate(
        f"""([counts, rates, shares]) => {{
            {format_js}
            return [counts.map((n) => scaled(n, 'B')), counts.map(binary),
                    rates.map((n) => scaled(n, 's')), shares.map((n) => percent(n)),
                    [0.92857, 25.574, 1057.3, 5].map((n) => scaled(n))];
        }}""",
        [counts, rates, shares],
    )
    assert [[one.replace("\u202f", " ").replace("µ", "u") for one in part] for part in written] == [
        [scaled(n, "B") for n in counts],
        [binary(n) for n in counts],
        [scaled(n, "s") for n in rates],
        [percent(n) for n in shares],
        [scaled(n) for n in (0.92857, 25.574, 1057.3, 5)],
    ]


@in_browser
def test_keys_choose_a_layer_everywhere(tab: Tab) -> None:
    first(tab, "#layers tr[aria-selected=true]").focus()
    for key, number in (("ArrowDown", "2"), ("End", "7"), ("ArrowUp", "3"), ("Home", "0")):
        tab.page.keyboard.press(key)
        assert tab.chosen() == number
        chosen = tab.page.locator("#roofline .point[aria-selected=true]").get_attribute(
            "aria-label"
        )
        assert chosen.startswith(f"layer {number} ")
        assert tab.page.url.endswith(f"#layer={number}")
    tab.page.keyboard.press("Enter")
    assert tab.page.evaluate("document.activeElement.id") == "layer-title"
    tab.page.keyboard.press("j")
    assert (
        tab.page.inner_text("#layer-title") == NASTY.replace("\u2028", " ") or tab.chosen() == "2"
    )
    tab.page.keyboard.press("?")
    assert tab.page.locator("#help").is_visible()
    tab.page.keyboard.press("Escape")
    assert not tab.page.locator("#help").is_visible()


@in_browser
def test_points_of_the_roofline_choose_the_layer(wide: Tab, rows: list[Row]) -> None:
    best = {row["layer"]: row for row in rows if row["rank"] == 1}
    along = sorted(best, key=lambda n: best[n]["levels"][0]["operational_intensity"])
    first(wide, "#roofline .point[tabindex='0']").focus()
    wide.page.keyboard.press("Home")
    for number in along[1:]:
        wide.page.keyboard.press("ArrowRight")
        assert wide.chosen() == str(number)
    wide.page.locator("#roofline .point").nth(1).click()
    assert wide.chosen() == str(along[1])
    wide.page.locator("#roofline-level label").nth(1).click()
    intensity = best[along[1]]["levels"][1]["operational_intensity"]
    assert f"{intensity:.4g} FLOP per byte" in wide.text("#roofline-text")


BOXES = """places => [...document.querySelectorAll(places)].map(one => {
    const box = one.getBoundingClientRect();
    return [box.left, box.top, box.right, box.bottom];
})"""


@in_browser
def test_points_of_the_roofline_can_be_told_apart(wide: Tab) -> None:
    """Numbers stand beside points, none on another, and points take most of the picture."""
    names = wide.page.evaluate(BOXES, "#roofline .point-names text")
    assert len(names) > 3
    for place, one in enumerate(names):
        for other in names[:place]:
            # Lines of text are higher than their digits.
            assert one[0] >= other[2] or one[2] <= other[0] or abs(one[1] - other[1]) >= 10
    (plot,) = wide.page.evaluate(BOXES, "#roofline .axis")
    points = wide.page.evaluate(BOXES, "#roofline .point")
    for low, high in ((0, 2), (1, 3)):
        spread = max(one[high] for one in points) - min(one[low] for one in points)
        assert spread > 0.5 * (plot[high] - plot[low])
        assert all(plot[low] - 6 <= one[low] and one[high] <= plot[high] + 6 for one in points)


@in_browser
def test_no_number_of_the_roofline_is_on_a_roof(only_tab: Tab, tmp_path: Path) -> None:
    """Layers that nearly reach the machine's rate stand close to it and to each other."""
    problems = dict(enumerate(loopsched.load_workload("alexnet").problems))
    found = [
        {"layer": number, "count": 1} | row
        for number, problem in problems.items()
        for row in result_rows(search(problem, ARCH))
    ]
    target = tmp_path / "near.html"
    target.write_text(report_html(found, problems, ARCH), encoding="utf-8")
    for tab in opened(only_tab, target.as_uri(), 1280):
        names = tab.page.evaluate(BOXES, "#roofline .point-names text")
        assert len(names) == len(problems)
        ((_, above, _, below),) = tab.page.evaluate(BOXES, "#roofline .roof.peak")
        # Lines of text are higher than their digits.
        assert all(low - 2 <= above or below <= high + 2 for _, high, _, low in names)


@in_browser
def test_no_number_of_the_roofline_is_in_the_ring(wide: Tab) -> None:
    for _ in wide.names():
        names = wide.page.evaluate(BOXES, "#roofline .point-names text")
        ((left, top, right, bottom),) = wide.page.evaluate(BOXES, "#roofline .ring:not(.other)")
        assert len(names) == len(wide.names())
        for one in names:  # lines of text are higher than their digits
            aside = one[2] <= left or one[0] >= right
            assert aside or one[3] - 2 <= top + 1 or one[1] + 2 >= bottom - 1
        wide.page.keyboard.press("j")


@in_browser
@pytest.mark.parametrize("number", [2, 7])
def test_a_roofline_of_one_layer_has_its_roof_and_numbers(
    only_tab: Tab, rows: list[Row], tmp_path: Path, number: int
) -> None:
    target = tmp_path / "one.html"
    one = [row for row in rows if row["layer"] == number]
    target.write_text(report_html(one, PROBLEMS, ARCH), encoding="utf-8")
    for tab in opened(only_tab, target.as_uri(), 1280):
        assert len(tab.page.evaluate(BOXES, "#roofline .axes text:not(.unit)")) >= 5
        (roof,) = tab.page.evaluate(BOXES, "#roofline .roof-group.chosen line")
        assert min(roof[2] - roof[0], roof[3] - roof[1]) > 20
        (name,) = tab.page.evaluate(BOXES, "#roofline .roof-group.chosen text")
        (plot,) = tab.page.evaluate(BOXES, "#roofline .axis")
        assert plot[0] < name[0]
        assert name[3] < plot[3]


@in_browser
def test_the_slope_of_a_roofline_has_room_for_its_name(only_tab: Tab, tmp_path: Path) -> None:
    """Also where all layers are right of the ridge and near the flat roof."""
    problems = dict(enumerate(loopsched.load_workload("bert_base").problems))
    problems[9] = gemm(m=1, n=1000, k=2048).renamed("far below")
    arch = load_arch("h100")
    found = [
        {"layer": number, "count": 1 if number == 9 else 12} | row
        for number, problem in problems.items()
        for row in result_rows(search(problem, arch))
    ]
    target = tmp_path / "right.html"
    target.write_text(report_html(found, problems, arch), encoding="utf-8")
    for width in (1280, 400):
        for tab in opened(only_tab, target.as_uri(), width):
            (name,) = tab.page.evaluate(BOXES, "#roofline .roof-group.chosen text")
            (plot,) = tab.page.evaluate(BOXES, "#roofline .axis")
            flat = tab.page.evaluate(BOXES, "#roofline .peak + .roof-name")
            assert plot[0] < name[0]
            assert max(one[3] for one in flat) < name[1]
            names = tab.page.locator("#roofline .point-names text").all_text_contents()
            assert sorted(names) == ["0", "1", "2", "3", "4", "5", "9↓"]


@in_browser
def test_no_number_of_the_roofline_is_under_the_edited_schedule(
    only_tab: Tab, several: str
) -> None:
    for tab in opened(only_tab, several, 1280):
        field = tab.page.locator("#loops input[type=number]:enabled").first
        for size in ("8", "6", "4", "3"):
            field.fill(size)
            field.press("Enter")
            ((left, top, right, bottom),) = tab.page.evaluate(BOXES, "#roofline .edited")
            for one in tab.page.evaluate(BOXES, "#roofline .point-names text"):
                aside = one[2] <= left or one[0] >= right  # lines are higher than their digits
                assert aside or one[3] - 3 <= top or one[1] + 3 >= bottom, size


@in_browser
def test_print_shows_what_a_page_as_narrow_hides(wide: Tab) -> None:
    wide.page.set_viewport_size({"width": 718, "height": 1000})
    assert not wide.page.locator("#layers .column-all").first.is_visible()
    wide.page.emulate_media(media="print")
    try:
        assert wide.page.locator("#layers .column-all").first.is_visible()
        assert wide.page.evaluate("document.documentElement.scrollWidth") <= 718
        # A browser repeats the head of a table on every sheet, but not the buttons in it.
        title = wide.page.locator("#layers thead button").first
        assert title.evaluate("one => getComputedStyle(one).display") == "contents"
        # No line of what is said of a layer goes to the next sheet alone.
        verdict = wide.page.locator("#verdict")
        assert verdict.evaluate("one => getComputedStyle(one).breakInside") == "avoid"
    finally:
        wide.page.emulate_media(media="screen")
        wide.page.set_viewport_size({"width": 1280, "height": 900})


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A page of a layer with four alternatives, whose reasons are told."""
    target = tmp_path_factory.mktemp("several") / "several.html"
    asked = ["explore", "vgg16", "--layer", "conv5", "--top", "5", "--reasons", "--no-open"]
    assert run([*asked, "-o", str(target)]) == 0
    return target.as_uri()


@in_browser
def test_print_has_all_alternatives_and_no_help(only_tab: Tab, several: str) -> None:
    for tab in opened(only_tab, several, 718):
        tab.page.keyboard.press("?")
        tab.page.emulate_media(media="print")
        try:
            assert not tab.page.locator("#help").is_visible()
            assert tab.page.locator("#alternatives thead th").count() == 5
            for place in ("#alternatives", "#alternatives th", "#alternatives td"):
                ends = [box[2] for box in tab.page.evaluate(BOXES, place)]
                assert max(ends) <= 718, place
                over = "all => Math.max(...all.map(one => one.scrollWidth - one.clientWidth))"
                assert tab.page.locator(place).evaluate_all(over) <= 0, place
        finally:
            tab.page.emulate_media(media="screen")
            tab.page.keyboard.press("Escape")


@in_browser
def test_printed_tiles_hold_their_values(only_tab: Tab, tmp_path: Path) -> None:
    target = tmp_path / "energy.html"
    asked = ["explore", "gemm:m=512,n=128,k=512", "-a", "diannao", "--element-bytes", "2"]
    assert run([*asked, "--no-open", "-o", str(target)]) == 0
    for tab in opened(only_tab, target.as_uri(), 718):
        assert not tab.page.locator("#roofline-level").is_visible()  # one boundary: no choice
        tab.page.emulate_media(media="print")
        try:
            over = "all => all.filter(one => one.scrollWidth > one.clientWidth).length"
            assert tab.page.locator("#totals .tile").count() == 7
            assert tab.page.locator(".tile").evaluate_all(over) == 0
        finally:
            tab.page.emulate_media(media="screen")


@in_browser
def test_what_goes_on_sideways_says_so(only_tab: Tab, several: str) -> None:
    for width, is_cut in ((1280, False), (400, True)):
        for tab in opened(only_tab, several, width):
            hint = tab.page.locator("#alternatives-hint")
            box = tab.page.locator("#alternatives").locator("..")
            assert hint.is_visible() is is_cut
            assert ("more" in box.get_attribute("class").split()) is is_cut
            if is_cut:
                assert hint.text_content() == "5 schedules: scroll sideways"
                box.evaluate("one => { one.scrollLeft = one.scrollWidth; }")
                tab.page.locator(".scroll:not(.more):has(#alternatives)").wait_for()


@in_browser
def test_numbers_of_reasons_and_moves_stay_together(only_tab: Tab, several: str) -> None:
    for tab in opened(only_tab, several, 1280):
        reasons = tab.page.locator("#alternatives .why p").all_text_contents()
        assert any("\u202f%" in one for one in reasons)
        assert any("\u202fMB" in one for one in reasons)
        assert not [one for one in reasons if re.search(r"\d (%|[kM]B)", one)]
        moves = tab.page.locator("#alternatives .why .word").all_text_contents()
        assert all(one.count("|") == one.endswith("\u00a0|") for one in moves)
        assert any(one.startswith("reorder ") for one in moves)


def test_a_problem_in_the_heading_breaks_between_its_sizes(rows: list[Row]) -> None:
    named = [row | {"workload": "gemm:m=96,n=80,k=64"} for row in rows[:1]]
    assert "gemm:m=96,<wbr>n=80,<wbr>k=64 on titan_v</h1>" in report_html(named, PROBLEMS, ARCH)


@in_browser
def test_bytes_are_called_exact_only_where_they_are(tab: Tab) -> None:
    is_wide = tab.page.viewport_size["width"] == 1280
    assert ("exact" in tab.page.inner_text("#bytes-text")) is is_wide


@in_browser
def test_values_keep_off_the_edges_of_their_tiles_on_a_phone(phone: Tab) -> None:
    over = "all => all.filter(one => one.scrollWidth > one.clientWidth).map(one => one.innerText)"
    assert phone.page.locator(".tile .value").evaluate_all(over) == []


@in_browser
def test_nothing_is_cut_on_a_phone(phone: Tab) -> None:
    for address in ("layer=7", "layer=7&schedule=M:1024+N:512+K:256"):
        phone.visit(address)
        for place in ("#bytes", "#alternatives"):
            scroll = phone.page.locator(place).locator("..")
            assert scroll.evaluate("one => one.scrollWidth - one.clientWidth") <= 0
    # The arrow of a choice takes some 22 pixels beside its text.
    assert phone.page.evaluate(
        """[...document.querySelectorAll('.loop select')].every(one => {
            const pen = document.createElement('canvas').getContext('2d');
            pen.font = getComputedStyle(one).font;
            return one.clientWidth >= 8 + pen.measureText('in turn').width + 22;
        })"""
    )


@in_browser
def test_four_alternatives_on_a_phone_are_as_wide_as_words(phone: Tab) -> None:
    widths = phone.page.evaluate(
        """() => {
            for (const line of document.querySelectorAll('#alternatives tr'))
                while (line.cells.length < 5) line.append(line.lastElementChild.cloneNode(true));
            return [...document.querySelectorAll('#alternatives thead th')].map(
                one => one.getBoundingClientRect().width);
        }"""
    )
    assert len(widths) == 4
    assert min(widths) >= 96


def check_scores(tab: Tab, number: int) -> None:
    """Hold all that the page says of its schedule against the library."""
    problem = PROBLEMS[number]
    schedule = parse_schedule(tab.schedule(), problem)
    score = evaluate(problem, schedule, ARCH)
    told = tab.text("#metrics")
    assert scaled(score.time_s, "s").replace("u", "µ") in told
    assert scaled(score.dram_bytes, "B") in told
    assert score.bound_by in told
    body = tab.page.locator("#bytes tbody tr").all()
    cells = [line.locator("th, td").all_text_contents() for line in body]
    wanted = []
    for level in score.levels:
        wanted.append([level.promised_read_bytes, level.promised_write_bytes, level.promised_bytes])
        wanted += [[one.read_bytes, one.write_bytes, one.bytes] for one in level.promised.values()]
    assert [[int(cell.replace(",", "")) for cell in row[1:4]] for row in cells] == wanted
    for place, level in enumerate(score.levels):
        held = tab.page.locator("#sets .set").nth(place).inner_text()
        size, unit = binary(level.working_set_bytes).split()
        shown = re.search(rf"holds ([0-9.]+)\s*{unit}", held)
        assert shown
        assert float(shown[1]) == float(size)
    code = re.sub(r" *# \w+ holds.*", "", tab.page.inner_text("#nest"))
    lines = [line.strip() for line in code.splitlines() if line.strip()]
    heads = [line.strip() for line in render_loops(problem, schedule, width=1000).splitlines()]
    assert lines[: len(heads) - 1] == heads[:-1]


@in_browser
def test_an_inner_tile_is_never_larger_than_the_one_around_it(wide: Tab) -> None:
    wide.visit("layer=0&schedule=M:96+N:80+K:64+M:12+M:6")
    outer = wide.page.locator("#loops .loop").nth(3).locator("input[type=number]")
    outer.fill("4")
    outer.press("Enter")
    assert wide.schedule() == "M:96 N:80 K:64 M:4 M:4"
    outer.fill("500")
    outer.press("Enter")
    assert wide.schedule() == "M:96 N:80 K:64 M:96 M:4"
    first(wide, "#loops .loop").get_by_role("button", name="Remove").click()
    assert wide.schedule() == "N:80 K:64 M:96 M:4"
    check_scores(wide, 0)


@in_browser
@pytest.mark.parametrize("number", [0, 3])
def test_live_changes_score_as_the_library_does(tab: Tab, number: int) -> None:
    if number:
        tab.visit(f"layer={number}")
    check_scores(tab, number)
    loops = tab.page.locator("#loops .loop")
    best = tab.schedule()
    # A tile size by its field, one by its slider, an order by keys, a unit, a new loop.
    dim, next_tile = {0: ("M", 6), 3: ("P", 7)}[number]
    tab.page.select_option("#add-dim", dim)
    tab.page.click("#add")
    check_scores(tab, number)
    field = loops.last.locator("input[type=number]")
    field.fill("5")
    field.press("Enter")
    assert tab.schedule().endswith(f" {dim}:5")
    check_scores(tab, number)
    slider = loops.last.locator("input[type=range]")
    slider.focus()
    tab.page.keyboard.press("ArrowRight")
    assert tab.schedule().endswith(f" {dim}:{next_tile}")
    check_scores(tab, number)
    tab.page.keyboard.press("Alt+ArrowUp")
    assert tab.schedule().split()[-2] == f"{dim}:{next_tile}"
    place = loops.count() - 2  # as moves and messages count
    assert tab.text("#said") == f"{dim} is now loop {place}; 0 is the outermost"
    assert loops.nth(place).get_by_label(f"Tile size of {dim}, loop {place}", exact=True).count()
    assert tab.page.evaluate("document.activeElement.dataset.what") == "slider"
    check_scores(tab, number)
    loops.first.get_by_role("button", name="Move inward").click()
    check_scores(tab, number)
    for option in ("SM", ""):
        first(tab, "#loops .loop select").select_option(option)
        check_scores(tab, number)
    changed = tab.schedule()
    assert tab.page.locator("#roofline circle.edited").count() == 1
    assert "yours" in tab.text("#alternatives thead")
    while tab.page.is_enabled("#undo"):
        tab.page.click("#undo")
    assert tab.schedule() == best
    while tab.page.is_enabled("#redo"):
        tab.page.click("#redo")
    assert tab.schedule() == changed
    tab.page.click("#reset")
    assert tab.schedule() == best


@in_browser
def test_loops_of_a_unit_stay_together(wide: Tab) -> None:
    loops = wide.page.locator("#loops .loop")

    def moved(place: int, way: str) -> str:
        loops.nth(place).get_by_role("button", name=f"Move {way}").click()
        assert not wide.page.inner_text("#schedule-fault")
        return wide.schedule()

    wide.visit("layer=0&schedule=K:64+M:96@SM+N:80@SM+M:12+N:8")
    # A loop passes all of them; one of them takes the others along, but passes them one by one.
    assert moved(0, "inward") == "M:96@SM N:80@SM K:64 M:12 N:8"
    assert moved(2, "outward") == "K:64 M:96@SM N:80@SM M:12 N:8"
    assert moved(1, "inward") == "K:64 N:80@SM M:96@SM M:12 N:8"
    assert moved(2, "inward") == "K:64 M:96 N:80@SM M:12@SM N:8"
    assert wide.page.evaluate("document.activeElement.closest('li').dataset.place") == "3"
    assert moved(2, "outward") == "K:64 N:80@SM M:96@SM M:12 N:8"
    loops.nth(4).locator("select").select_option("SM")
    assert wide.schedule() == "K:64 N:80@SM M:96@SM N:8@SM M:12"
    loops.nth(2).locator("select").select_option("")
    assert wide.schedule() == "K:64 N:80@SM N:8@SM M:96 M:12"
    loops.nth(0).locator("select").select_option("SM")
    assert wide.schedule() == "K:64@SM N:80@SM N:8@SM M:96 M:12"
    check_scores(wide, 0)
    # Lanes are inside their unit.
    loops.nth(3).locator("select").select_option("lane")
    assert moved(2, "inward") == "K:64@SM N:80@SM N:8@SM M:96@lane M:12"
    loops.nth(0).locator("select").select_option("lane")
    assert wide.schedule() == "N:80@SM N:8@SM K:64@lane M:96@lane M:12"
    assert moved(2, "outward") == "N:80@SM N:8@SM K:64@lane M:96@lane M:12"
    loops.nth(4).locator("select").select_option("SM")
    assert wide.schedule() == "N:80@SM N:8@SM M:96@SM K:64@lane M:12@lane"
    check_scores(wide, 0)


@in_browser
def test_what_is_edited_stays_and_can_be_taken_back(wide: Tab) -> None:
    best = wide.schedule()
    wide.visit("layer=0&schedule=M:96+N:80+K:64+M:12")
    wide.page.keyboard.press("j")
    assert wide.chosen() == "2"
    wide.page.keyboard.press("k")
    assert wide.schedule() == "M:96 N:80 K:64 M:12"
    last = wide.page.locator("#loops .loop").last
    last.locator("input[type=range]").focus()
    wide.page.keyboard.press("ArrowRight")
    assert wide.schedule() == "M:96 N:80 K:64 M:14"
    wide.page.keyboard.press("Control+z")
    assert wide.schedule() == "M:96 N:80 K:64 M:12"
    assert last.locator("input[type=range]").get_attribute("aria-valuetext") == "12"
    wide.page.keyboard.press("ArrowRight")
    assert wide.schedule() == "M:96 N:80 K:64 M:14"
    last.locator("input[type=number]").fill("5")
    wide.page.keyboard.press("Enter")
    wide.page.keyboard.press("Control+z")
    assert wide.schedule() == "M:96 N:80 K:64 M:14"
    for _ in range(2):
        wide.page.keyboard.press("Control+z")
    assert wide.schedule() == best
    assert wide.page.is_disabled("#reset")
    wide.page.fill("#schedule-text", "M:9")
    wide.page.locator("#schedule-text").blur()
    assert wide.page.locator("#layer.stale").count() == 1
    wide.page.click("#reset")
    assert wide.schedule() == best
    assert not wide.page.locator("#layer.stale").count()
    assert not wide.page.inner_text("#schedule-fault")


@in_browser
def test_a_loop_is_dragged_to_its_place(tab: Tab) -> None:
    tab.visit("layer=0&schedule=M:96+N:80+K:64+M:12")
    before = tab.schedule().split()
    handle = tab.page.locator("#loops .handle")
    handle.nth(0).scroll_into_view_if_needed()
    start, end = (handle.nth(place).bounding_box() for place in (0, 2))
    tab.page.mouse.move(start["x"] + 5, start["y"] + 5)
    tab.page.mouse.down()
    tab.page.mouse.move(start["x"] + 5, (start["y"] + end["y"]) / 2)
    tab.page.mouse.move(start["x"] + 5, end["y"] + 15)
    tab.page.mouse.up()
    after = tab.schedule().split()
    assert [word[0] for word in after[:3]] == [before[i][0] for i in (1, 2, 0)]
    check_scores(tab, 0)


@in_browser
def test_text_is_a_way_to_edit_and_says_what_is_wrong(wide: Tab) -> None:
    wide.page.fill("#schedule-text", "m:96 n:80@SM k:64 m:32")
    wide.page.wait_for_timeout(300)  # it is read while it is written
    wide.page.locator("#schedule-text").blur()
    assert wide.schedule() == "M:96 N:80@SM K:64 M:32"
    check_scores(wide, 0)
    wide.page.fill("#schedule-text", "M:96 N:8 KK:64")
    wide.page.locator("#schedule-text").blur()
    with pytest.raises(InputError) as caught:
        parse_schedule("M:96 N:8 KK:64", PROBLEMS[0])
    assert wide.page.inner_text("#schedule-fault") == str(caught.value)
    assert wide.page.get_attribute("#schedule-text", "aria-invalid") == "true"
    assert "N:80@SM" in wide.page.inner_text("#command")


@in_browser
def test_an_address_is_a_view(wide: Tab) -> None:
    wide.visit("layer=7&schedule=m:1024+N:512@SM+K:256+N:7")
    assert (wide.chosen(), wide.schedule()) == ("7", "M:1024 N:512@SM K:256 N:7")
    check_scores(wide, 7)
    wide.page.reload()
    assert (wide.chosen(), wide.schedule()) == ("7", "M:1024 N:512@SM K:256 N:7")
    wide.visit("layer=7&schedule=M:5")
    assert "extent" in wide.text("#schedule-fault") or "1024" in wide.text("#schedule-fault")
    assert wide.page.locator("#loops .loop").count() > 2
    wide.visit("layer=99")
    assert wide.chosen() == "0"
    assert wide.page.inner_text("#notice") == "no layer 99 in these results"
    wide.visit("layer=7")
    assert not wide.page.inner_text("#notice")


@in_browser
def test_no_word_of_a_command_is_broken_where_it_fits(wide: Tab) -> None:
    wide.page.set_viewport_size({"width": 400, "height": 900})
    try:
        lines = wide.page.eval_on_selector_all(
            "#command .word", "words => words.map(word => [word.textContent, word.offsetHeight])"
        )
    finally:
        wide.page.set_viewport_size({"width": 1280, "height": 900})
    assert "--layer" in [word for word, _ in lines]
    assert len({height for word, height in lines if word.startswith("--")}) == 1
    assert min(height for _, height in lines) == next(h for word, h in lines if word == "--layer")


@in_browser
def test_the_command_gives_the_same_bytes(wide: Tab, capsys: pytest.CaptureFixture[str]) -> None:
    wide.page.fill("#schedule-text", "M:96 N:80@SM K:64 M:32")
    wide.page.locator("#schedule-text").blur()
    import shlex

    words = shlex.split(wide.page.inner_text("#command"))
    assert words[:5] == ["loopsched", "analyze", "mine.json", "--layer", "0"]
    assert run(["analyze", "gemm:m=96,n=80,k=64", *words[5:], "--format", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["dram_bytes"] == int(
        wide.page.locator("#bytes tbody tr td").nth(2).inner_text().replace(",", "")
    )


@in_browser
def test_words_are_those_of_the_search(only_tab: Tab, tmp_path: Path) -> None:
    problem = gemm(m=2**20, n=2**19, k=2**20 - 1)
    arch = buffer_arch(capacity_bytes=10**5)
    schedule = Schedule.of(Loop(dim, size) for dim, size in problem.sizes)
    row = evaluation_row(evaluate(problem, schedule, arch), has_brackets=False)
    row |= {"layer": 0, "count": 1, "rank": 1, "schedule": str(schedule), "nodes": 20}
    row |= {"objective": "dram_bytes", "proven": False, "gap": 0.0625, "space_size": 10**400}
    target = tmp_path / "page.html"
    target.write_text(report_html([row], {0: problem}, arch), encoding="utf-8")
    for tab in opened(only_tab, target.as_uri(), 1280):
        said = "the least DRAM traffic that was found, at most 6.2 % above the least"
        assert said in tab.text("#verdict")
        # Nothing says what command would find the problem again.
        assert not tab.page.locator("#command").is_visible()
        assert f"{problem.macs:,}" in tab.text("#problem")
        assert f"loopsched {loopsched.__version__}" in tab.text("#origin")


@in_browser
def test_alternatives_are_shown_at_a_press(wide: Tab, rows: list[Row]) -> None:
    second = next(row for row in rows if row["layer"] == 0 and row["rank"] == 2)
    wide.page.get_by_role("button", name="Show schedule 2").click()
    assert wide.schedule() == second["schedule"]
    check_scores(wide, 0)
    assert wide.page.locator("#alternatives thead th.chosen").inner_text().startswith("2")
    told = wide.page.locator("#alternatives tr", has=wide.page.locator("th", has_text="moves"))
    best = next(row["schedule"] for row in rows if row["layer"] == 0 and row["rank"] == 1)
    moves = [cell.inner_text() for cell in told.locator("td").all()]
    assert [parse_schedule(f"{best} | {text}", PROBLEMS[0]) for text in moves[1:]] == [
        parse_schedule(second["schedule"], PROBLEMS[0])
    ]
    assert moves[0] == ""


@in_browser
def test_moves_are_copied_as_python(wide: Tab) -> None:
    keep = "{ value: { writeText: async (text) => { window.taken = text; } } }"
    wide.page.evaluate(f"() => {{ Object.defineProperty(navigator, 'clipboard', {keep}); }}")
    best = wide.schedule()
    for text in (best, "N:80 M:96@SM K:64 M:12 N:8", "K:64 M:96 N:80 M:12"):
        wide.page.fill("#schedule-text", text)
        wide.page.locator("#schedule-text").blur()
        wide.page.click("#copy-moves")
        taken = wide.page.evaluate("window.taken")
        assert f'loopsched.parse_schedule("{best}", problem)' in taken
        names: dict[str, Any] = {"problem": PROBLEMS[0]}
        exec(taken, names)
        assert str(names["schedule"]) == text


@in_browser
def test_the_slope_is_drawn_where_there_is_a_curve(wide: Tab) -> None:
    curve = traffic_curve(PROBLEMS[0])
    assert (
        wide.page.locator("#slope path.slope").get_attribute("d").count("V")
        == len(curve.capacities_bytes) - 1
    )
    least = curve.at(ARCH.caches[0].usable_bytes or 0)
    assert least is not None
    assert scaled(least, "B") in wide.text("#slope-text")
    sizes = [
        one for one in wide.page.locator("#slope .axes text").all_text_contents() if "iB" in one
    ]
    assert len(sizes) > 1  # as capacities are written elsewhere
    assert (curve.n_proven == len(curve)) == ("no tile sizes" in wide.text("#slope-text"))
    assert wide.page.locator("#slope path.slope-bound").count() == (curve.n_proven < len(curve))
    wide.visit("layer=3")
    assert not wide.page.locator("#slope-panel").is_visible()


@in_browser
def test_no_connection_can_be_made(only_tab: Tab, place: str) -> None:
    only_tab.page.goto(place)
    only_tab.requests.clear()
    ask = "fetch('http://127.0.0.1:9/').then(() => 'sent', () => 'refused')"
    assert only_tab.page.evaluate(ask) == "refused"
    assert only_tab.requests == []
    assert "Content Security Policy" in " ".join(only_tab.complaints)
    assert (
        only_tab.page.evaluate("document.querySelectorAll('img, iframe, script[src]').length") == 0
    )


@in_browser
def test_page_follows_the_colours_that_are_preferred(wide: Tab) -> None:
    grounds = []
    for scheme in ("light", "dark"):
        wide.page.emulate_media(color_scheme=scheme)
        colour = wide.page.evaluate("getComputedStyle(document.body).backgroundColor")
        grounds.append(sum(map(int, re.findall(r"\d+", colour))))
    wide.page.emulate_media(color_scheme="null")
    assert grounds[0] > 600 > 150 > grounds[1]
