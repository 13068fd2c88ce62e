"""Cases for the page's model: what the library says, and a run of them in Chromium."""

from __future__ import annotations

import json
import random
import shutil
import struct
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from strategies import machines, problems, schedules

from loopsched import load_arch, load_workload
from loopsched.base.errors import InputError
from loopsched.base.resources import resource_names
from loopsched.machines.arch import Arch
from loopsched.models.score import Evaluation, LevelScore, evaluate
from loopsched.nests.loops_text import render_loops
from loopsched.nests.moves import moves_between
from loopsched.nests.nest import Loop, Schedule
from loopsched.nests.notation import format_schedule, parse_schedule
from loopsched.nests.ops import drop_unit_loops
from loopsched.nests.schedule_file import schedule_to_dict
from loopsched.problems.builders import PASSES, conv2d, einsum, gemm
from loopsched.problems.problem import Problem
from loopsched.scheduler.rows import evaluation_row
from loopsched.show.page.data import arch_data, problem_data
from loopsched.show.page.model import model_js

Case = dict[str, Any]
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
_OPTIONS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-sync"),
    *("--no-first-run", "--disable-background-networking", "--disable-component-update"),
    "--virtual-time-budget=1000000",
]


def exact(value: object) -> object:
    """A value in which every number is text: whole ones in digits, others by their bits."""
    if isinstance(value, dict):
        return {key: exact(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [exact(each) for each in value]
    if isinstance(value, float):
        return "float " + struct.pack(">d", value).hex()
    if isinstance(value, int) and not isinstance(value, bool):
        return f"int {value}"
    return value


def page_row(evaluation: Evaluation) -> dict[str, Any]:
    """All that the page's model says of a score."""
    row = evaluation_row(evaluation, has_brackets=False)
    row["compute_steps"] = evaluation.compute_steps
    for level, found in zip(row["levels"], evaluation.levels, strict=True):
        level |= _level(found)
    return row


def _level(level: LevelScore) -> dict[str, Any]:
    own = level.moved.own
    finder = own._finder
    fit = next(
        at
        for at in range(len(finder.view.cuts) + 1)
        if (finder.view.cuts[at - 1].position + 1 if at else 0) == own.fit_position
        and _working_set(own, at) == own.working_set_bytes
    )
    held = {tensor.name: tensor for tensor in finder.room.held(finder.view.problem)}
    tensors = []
    for name, part in level.promised.items():
        tensor = {
            "name": name,
            "footprint_bytes": finder.view.footprint_bytes(held[name], fit)
            if name in held
            else None,
            "promised_read_bytes": part.read_bytes,
            "promised_write_bytes": part.write_bytes,
        }
        tensors.append(tensor)
    return {
        "outer": level.outer,
        "fit_position": level.fit_position,
        "promised_read_bytes": level.moved.promised_read_bytes,
        "promised_write_bytes": level.moved.promised_write_bytes,
        "time_bound_s": level.time_bound_s,
        "tensors": tensors,
    }


def _working_set(own: Any, at: int) -> int:
    view, room = own._finder.view, own._finder.room
    return sum(view.footprint_bytes(tensor, at) for tensor in room.held(view.problem))


def case(
    problem: Problem,
    schedule: Schedule,
    arch: Arch,
    *,
    data_type: str | None = None,
) -> Case:
    """What the page is given, and what it must find."""
    try:
        score = evaluate(problem, schedule, arch, data_type=data_type)
        expected = exact(page_row(score))
    except InputError as error:
        expected = {"error": str(error)}
    return {
        "kind": "evaluate",
        "problem": problem_data(problem, arch),
        "schedule": schedule_to_dict(schedule),
        "arch": arch_data(arch),
        "options": {"data_type": data_type},
        "expected": expected,
    }


def random_cases(n: int, number: int) -> list[Case]:
    """Any small problems, schedules and machines."""
    found: list[Case] = []

    @seed(number)
    @settings(
        max_examples=n,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def collect(data: st.DataObject) -> None:
        problem = data.draw(problems())
        arch = data.draw(machines(problem, has_scratchpads=data.draw(st.booleans())))
        units = data.draw(st.sampled_from([(), *[("SM",)] * 8, ("SM", "core")]))
        schedule = data.draw(schedules(problem, units=units))
        data_type = data.draw(st.sampled_from([*[None] * 8, "fp16", "fp64"]))
        if max(tensor.element_bytes for tensor in problem.tensors) == 8:
            data_type = data_type or "fp32"
        found.append(
            case(
                problem,
                schedule,
                arch,
                data_type=data_type,
            )
        )

    collect()
    return found


def random_schedule(choice: random.Random, problem: Problem, units: Iterable[str]) -> Schedule:
    """Two to four blocks of loops in any order with any tiles; one spatial block a unit."""
    blocks: list[str | None] = [None] * choice.randint(1, 3)
    at = 0
    for unit in units:
        if choice.random() < 0.8:
            at = choice.randint(at, len(blocks))
            blocks.insert(at, unit)
            at += 1
    extents = dict(problem.size)
    seen: set[str] = set()
    loops: list[Loop] = []
    for i, unit in enumerate(blocks):
        dims = choice.sample(problem.dims, len(problem.dims))
        if unit is not None:
            dims = dims[: choice.randint(1, 3)]
        elif i and choice.random() < 0.7:
            dims = dims[: choice.randint(1, len(dims))]
        for dim in dims:
            if dim in seen:
                extents[dim] = _tile(choice, extents[dim])
            seen.add(dim)
            loops.append(Loop(dim, extents[dim], unit))
    rest = [dim for dim in problem.dims if dim not in seen]
    return Schedule.of([*loops, *(Loop(dim, extents[dim]) for dim in rest)]).check(problem)


def _tile(choice: random.Random, extent: int) -> int:
    """A tile size: of any order of magnitude, a power of two, or a divisor."""
    about = max(1, min(extent, round(extent ** choice.random())))
    if choice.random() < 0.5:
        return about
    if choice.random() < 0.5:
        return min(extent, 1 << about.bit_length())
    return next(size for size in range(about, 0, -1) if extent % size == 0)


def shipped() -> tuple[list[Problem], list[Arch]]:
    """Real layers of every kind, and all machines that loopsched ships."""
    names = ("deepbench_conv", "deepbench_gemm", "bert_base", "resnet50")
    layers = [problem for name in names for problem in load_workload(name).problems]
    image = {"n": 2, "c": 24, "k": 48, "h": 29, "w": 27, "r": 3, "s": 5}
    for pass_ in PASSES:
        layers += [
            conv2d(**image, padding=2, stride=2, pass_=pass_),
            conv2d(**image, padding=1, dilation=2, groups=12, pass_=pass_),
            conv2d(**image, stride=(3, 1), dilation=(1, 3), pass_=pass_),
        ]
    layers.append(gemm(m=2**20, n=2**19, k=2**20 - 1))  # more than 2**53 bytes move
    layers.append(einsum("abcd,cde->abe", {"a": 12, "b": 37, "c": 16, "d": 20, "e": 33}))
    return layers, [load_arch(name) for name in resource_names("archs", ".yaml")]


def layer_cases(
    layers: Sequence[Problem],
    archs: Sequence[Arch],
    n: int,
    number: int,
) -> Iterator[Case]:
    """Random schedules of real layers on real machines, in several data types.

    The bounds come along, as in every page (loopsched/show/page/model.py says why).
    """
    choice = random.Random(number)
    for _ in range(n):
        problem, arch = choice.choice(layers), choice.choice(archs)
        if choice.random() < 0.5 or arch.name == "diannao":
            widths = {tensor.name: choice.choice((1, 2, 2)) for tensor in problem.tensors}
            problem = problem.with_element_bytes(widths)
        units = [unit for unit, count in arch.spatial_units if count > 1]
        if arch.compute.lane_unit is not None:
            units.append(arch.compute.lane_unit)
        schedule = random_schedule(choice, problem, units)
        yield case(
            problem,
            schedule,
            arch,
        )


_ODD_NAMES = ("in", "for", "lambda", "m", "M", "Abc", "aBc", "min", "range", "C", "m1", "ø", "K")
_JUNK = (
    *("", ":", "@", "K", "K8", "Q:", ":3", "K:0", "K:-1", "K:1e3", "K:٣", "K:7@", "K:7@1x"),
    *("'\"", "K:" + "9" * 18, "K:" + "9" * 19, "x" * 70, "é\\\x00:\xa0", "oC:4", "OY:2@SM"),
    *("\t'a'", "😀:1"),
)


def _named(problem: Problem, names: dict[str, str]) -> Problem:
    """The problem with other names of dimensions."""
    tensors = tuple(
        replace(
            tensor,
            axes=tuple(
                replace(axis, terms=tuple((names[dim], c) for dim, c in axis.terms))
                for axis in tensor.axes
            ),
        )
        for tensor in problem.tensors
    )
    sizes = tuple((names[dim], size) for dim, size in problem.sizes)
    return replace(problem, sizes=sizes, tensors=tensors)


def text_cases(layers: Sequence[Problem], n: int, number: int) -> Iterator[Case]:
    """Schedules as text, many of them with faults; and as loops."""
    choice = random.Random(number)
    for i in range(n):
        problem = choice.choice(layers)
        if choice.random() < 0.3:
            names = choice.sample(_ODD_NAMES, len(problem.dims))
            problem = _named(problem, dict(zip(problem.dims, names, strict=True)))
        schedule = random_schedule(choice, problem, ("SM", "lane"))
        if i % 4 == 0:
            yield {
                "kind": "loops",
                "problem": problem_data(problem),
                "schedule": schedule_to_dict(schedule),
                "expected": render_loops(problem, schedule),
            }
            continue
        if i % 4 == 1:
            other = random_schedule(choice, problem, ("SM", "lane"))
            pair = [
                drop_unit_loops(one) if choice.random() < 0.5 else one for one in (schedule, other)
            ]
            yield _moves_case(*pair)
            continue
        text = _garbled(choice, format_schedule(schedule).split())
        try:
            expected: object = format_schedule(parse_schedule(text, problem))
        except InputError as error:
            expected = {"error": str(error)}
        data = problem_data(problem)
        yield {"kind": "text", "problem": data, "text": text, "expected": expected}


def _moves_case(before: Schedule, after: Schedule) -> Case:
    try:
        expected: object = " | ".join(map(str, moves_between(before, after)))
    except InputError:
        expected = None
    pair = {"before": schedule_to_dict(before), "after": schedule_to_dict(after)}
    return {"kind": "moves", **pair, "expected": expected}


def _garbled(choice: random.Random, tokens: list[str]) -> str:
    """Tokens with other gaps, and often with something wrong."""
    for _ in range(choice.choice((0, 0, 1, 2))):
        at = choice.randrange(len(tokens) + 1)
        change = choice.randrange(5)
        if change == 0:
            tokens.insert(at, choice.choice(_JUNK))
        elif change == 1 and at < len(tokens):
            tokens.insert(choice.randrange(len(tokens)), tokens.pop(at))
        elif change == 2 and at < len(tokens):
            tokens[at] = tokens[at].swapcase()
        elif change == 3 and at < len(tokens):
            place = choice.randrange(len(tokens[at]))
            letter = choice.choice("0123456789:@KMx_é")
            tokens[at] = tokens[at][:place] + letter + tokens[at][place + 1 :]
        elif at < len(tokens):
            del tokens[at]
    gaps = ("  ", " ", ", ", "\n", "\t", "\u3000", "\x1c", ",,")
    return choice.choice(("", " ", "\n")) + choice.choice(gaps).join(tokens)


_RUNNER = """
function bits(value) {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  return "float " + view.getBigUint64(0).toString(16).padStart(16, "0");
}
function differences(expected, found, place) {
  if (Array.isArray(expected)) {
    if (!Array.isArray(found) || found.length !== expected.length) return [place + ": no list"];
    return expected.flatMap((each, i) => differences(each, found[i], place + "[" + i + "]"));
  }
  if (expected !== null && typeof expected === "object") {
    if (found === null || typeof found !== "object") return [place + ": no such object"];
    const keys = new Set([...Object.keys(expected), ...Object.keys(found)]);
    return [...keys].flatMap((key) =>
      key in expected && key in found
        ? differences(expected[key], found[key], place + "." + key)
        : [place + "." + key + ": on one side only"]
    );
  }
  let text = found;
  if (typeof found === "bigint") text = "int " + found;
  if (typeof found === "number") {
    text = String(expected).startsWith("float ") ? bits(found) : "int " + found;
  }
  return text === expected ? [] : [place + ": " + text + " instead of " + expected];
}
function found(one) {
  try {
    if (one.kind === "evaluate") {
      return Loopsched.evaluate(one.problem, one.schedule, one.arch, one.options);
    }
    if (one.kind === "loops") return Loopsched.loops(one.problem, one.schedule);
    if (one.kind === "moves") {
      const trace = Loopsched.moves(one.before, one.after);
      return trace && trace.map((move) => move.join(" ")).join(" | ");
    }
    const schedule = Loopsched.parseSchedule(one.text, one.problem);
    return Loopsched.formatSchedule(schedule);
  } catch (error) {
    return { error: error.name === "LoopschedError" ? error.message : error.stack };
  }
}
function verdict(cases) {
  const times = [];
  const wrong = [];
  cases.forEach((one, i) => {
    const begin = performance.now();
    const value = found(one);
    times.push(performance.now() - begin);
    const differs = differences(one.expected, value, "");
    if (differs.length) wrong.push({ case: i, differences: differs.slice(0, 5) });
  });
  return { n: cases.length, wrong, times };
}
"""


def run_in_page(cases: list[Case], folder: Path) -> dict[str, Any]:
    """Run cases in a page that headless Chromium opens from a file; return its verdict."""
    if CHROMIUM is None:
        raise FileNotFoundError("no Chromium")
    (folder / "cases.js").write_text(f"const CASES = {json.dumps(cases)};", encoding="utf-8")
    (folder / "model.js").write_text(model_js(), encoding="utf-8")
    (folder / "runner.js").write_text(_RUNNER, encoding="utf-8")
    page = folder / "page.html"
    page.write_text(
        '<!doctype html><meta charset="utf-8"><pre id="verdict">none</pre>\n'
        + "".join(f'<script src="{name}.js"></script>' for name in ("model", "cases", "runner"))
        + '<script>document.getElementById("verdict").textContent ='
        " encodeURIComponent(JSON.stringify(verdict(CASES)));</script>\n",
        encoding="utf-8",
    )
    command = [CHROMIUM, *_OPTIONS, f"--user-data-dir={folder / 'profile'}", "--dump-dom"]
    done = subprocess.run(
        [*command, page.as_uri()], capture_output=True, text=True, check=True, timeout=600
    )
    return _verdict(done.stdout)


def _verdict(dom: str) -> dict[str, Any]:
    text = dom.partition('<pre id="verdict">')[2].partition("</pre>")[0]
    found: dict[str, Any] = json.loads(unquote(text))
    return found
