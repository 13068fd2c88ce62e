"""Machines of caches against a literal simulation, written apart, and against `evaluate`'s view."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import machines, problems, schedules

from loopsched.base.errors import ArchError, InputError, ScheduleError
from loopsched.machines.arch import Arch
from loopsched.machines.arch_file import load_arch
from loopsched.machines.levels import Compute, Level
from loopsched.models.machine import own_units, room_of
from loopsched.nests.nest import Loop, Schedule
from loopsched.nests.notation import parse_schedule
from loopsched.problems.builders import gemm
from loopsched.problems.problem import Problem
from loopsched.simulator import Simulation, simulate


@dataclass
class Literal:
    """One level: an ordered dictionary an instance, and the next level out."""

    problem: Problem
    level: Level
    outer: Literal | None
    reads: dict[str, int] = field(default_factory=dict)
    writes: dict[str, int] = field(default_factory=dict)
    seen: set[oracle.Element] = field(default_factory=set)
    held: dict[int, OrderedDict[oracle.Element, bool]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.reads = dict.fromkeys([t.name for t in self.problem.tensors], 0)
        self.writes = dict(self.reads)
        self.room = room_of(self.problem, self.level)

    def size(self, one: oracle.Element) -> int:
        return self.problem.tensor(one[0]).element_bytes

    def ask(self, one: oracle.Element, what: str, instance: int) -> None:
        own = instance if self.level.instances > 1 else 0
        if one[0] in self.room.passing:
            self._reads(one, what)
            if what != "read":
                self.writes[one[0]] += self.size(one)
                self.seen.add(one)
            if self.outer:
                self.outer.ask(one, what, instance)
            return
        cache = self.held.setdefault(own, OrderedDict())
        through = self.level.write_policy == "through" and self.level.accumulate == "level"
        is_miss = one not in cache
        if is_miss:
            if self._reads(one, what) and self.outer:
                self.outer.ask(one, "read", instance)
            cache[one] = False
        cache.move_to_end(one)
        if what != "read":
            self.seen.add(one)
            cache[one] = not through
        while sum(map(self.size, cache)) > self.room.shared_bytes:
            self._drop(cache, instance)
        if through and what != "read":
            self.writes[one[0]] += self.size(one)
            if self.outer:
                self.outer.ask(one, "write", instance)

    def _reads(self, one: oracle.Element, what: str) -> bool:
        is_read = what == "read" or (what == "update" and one in self.seen)
        self.reads[one[0]] += self.size(one) * is_read
        return is_read

    def _drop(self, cache: OrderedDict[oracle.Element, bool], instance: int) -> None:
        one, is_dirty = cache.popitem(last=False)
        if is_dirty:
            self.writes[one[0]] += self.size(one)
            if self.outer:
                self.outer.ask(one, "write", instance)

    def flush(self) -> None:
        for instance in sorted(self.held):
            while self.held[instance]:
                self._drop(self.held[instance], instance)


def run_literally(
    problem: Problem, schedule: Schedule, arch: Arch, *, warm: bool = False, sees_all: bool = False
) -> list[Literal]:
    """Levels, outermost first, after a schedule of one spatial unit, wave by wave."""
    levels: list[Literal] = []
    for level in arch.caches:
        levels.append(Literal(problem, level, levels[-1] if levels and not sees_all else None))
    tensors = [problem.tensor(t.name) for t in problem.tensors if t.name != problem.output]
    tensors.append(problem.output_tensor)
    asked = levels if sees_all else levels[-1:]
    if any(loop.is_spatial for loop in schedule.loops):
        lists = oracle.item_lists(problem, schedule, "SM")
    else:
        lists = [[oracle.Item((), list(oracle.walk(problem, schedule)))]]
    for items in lists:
        for wave in oracle.waves(items, arch.compute.units):
            turns = sorted(
                (trip, number, tuple(point.items()))
                for number, item in enumerate(wave)
                for trip, point in item.steps
            )
            for _, number, point in turns:
                for tensor in tensors:
                    one = oracle.element(tensor, dict(point))
                    if one is not None:
                        what = "update" if tensor.name == problem.output else "read"
                        for level in asked:
                            level.ask(one, what, number)
            for level in reversed(levels):
                if "SM" in own_units(arch, level.level) and not warm and lists[0][0].trip:
                    level.flush()
    for level in reversed(levels):
        level.flush()
    return levels


def assert_same(found: Simulation, literal: list[Literal]) -> None:
    for own, other in zip(found.levels, literal, strict=True):
        assert {name: each.read_bytes for name, each in own.tensors.items()} == other.reads
        assert {name: each.write_bytes for name, each in own.tensors.items()} == other.writes


@given(st.data())
def test_levels_see_the_misses_of_those_inside(data: st.DataObject) -> None:
    problem = data.draw(problems())
    arch = data.draw(machines(problem))
    units = data.draw(st.sampled_from([(), ("SM",)]))
    schedule = data.draw(schedules(problem, units=units))
    warm = data.draw(st.booleans())
    found = simulate(problem, schedule, arch=arch, warm=warm)
    assert_same(found, run_literally(problem, schedule, arch, warm=warm))


def written_back(arch: Arch) -> Arch:
    """The machine without write policies and tensors that pass."""
    plain = [replace(level, holds=None, write_policy="back") for level in arch.caches]
    return replace(arch, levels=(arch.memory, *plain))


@given(st.data())
def test_levels_that_see_all_accesses(data: st.DataObject) -> None:
    problem = data.draw(problems())
    arch = written_back(data.draw(machines(problem)))
    schedule = data.draw(schedules(problem, units=("SM",)))
    found = simulate(problem, schedule, arch=arch, sees="all")
    assert_same(found, run_literally(problem, schedule, arch, sees_all=True))


@given(st.data())
def test_policies_of_levels_that_see_all_accesses(data: st.DataObject) -> None:
    """A tensor that passes, and writes that go through, are what the inner level asks."""
    problem = data.draw(problems())
    arch = data.draw(machines(problem))
    schedule = data.draw(schedules(problem, units=("SM",)))
    found = simulate(problem, schedule, arch=arch, sees="all")
    plain = simulate(problem, schedule, arch=written_back(arch), sees="all")
    accesses = {name: each.accesses for name, each in plain.levels[-1].tensors.items()}
    first = oracle.compulsory(problem)
    inner: dict[str, tuple[int, int]] = {}
    for tensor in problem.tensors:
        every, is_output = (
            accesses[tensor.name] * tensor.element_bytes,
            tensor.name == problem.output,
        )
        inner[tensor.name] = (every - first[tensor.name], every) if is_output else (every, 0)
    for level, own in zip(reversed(arch.caches), reversed(found.levels), strict=True):
        room = room_of(problem, level)
        for name, each in own.tensors.items():
            if name in room.passing:
                assert (each.read_bytes, each.write_bytes) == inner[name]
            elif level.write_policy == "through" and level.accumulate == "level":
                assert each.write_bytes == inner[name][1]
            inner[name] = (each.read_bytes, each.write_bytes)


def machine(units: int, l1: int, l2: int, **inner: object) -> Arch:
    levels = (
        Level("DRAM", "memory", None),
        Level("L2", "cache", l2, bandwidth_bytes_per_s=1e9),
        Level("L1", "cache", l1, units, "SM", 1e9, **inner),  # type: ignore[arg-type]
    )
    return Arch("machine", levels, Compute("SM", units, 1e9, 1e9, (("fp32", 8), ("int8", 8))))


@given(st.data())
def test_private_caches_start_each_item_empty(data: st.DataObject) -> None:
    problem = data.draw(problems())
    schedule = data.draw(schedules(problem, units=("SM",)))
    capacity = data.draw(st.integers(16, 200))
    found = simulate(problem, schedule, arch=machine(data.draw(st.integers(1, 5)), capacity, 4000))
    literal = oracle.simulate_private(problem, schedule, capacity, ("SM",))
    inner = found.level("l1").tensors
    assert {name: each.write_bytes for name, each in inner.items()} == literal.writes
    # Which item of a wave touches an element first changes with the order; not how many do.
    if all(problem.output_tensor.is_indexed_by(loop.dim) for loop in schedule.loops if loop.unit):
        alone = problem.parallel_dims
        if all(loop.dim in alone for loop in schedule.loops if loop.unit):
            assert {name: each.read_bytes for name, each in inner.items()} == literal.reads


def test_nine_items_on_four_instances() -> None:
    """Waves of 4, 4 and 1 items; L2 holds the union of a wave's rows and columns."""
    problem = gemm(m=6, n=6, k=10, element_bytes=1)
    nest = parse_schedule("M:6@SM N:6@SM K:10 M:2 N:2", problem)
    found = simulate(problem, nest, arch=machine(4, 64, 10**6))
    l1, l2 = found.level("L1"), found.level("L2")
    assert l1.tensors["A"].read_bytes == 9 * 20 == l1.tensors["B"].read_bytes
    assert l1.tensors["C"].write_bytes == 36
    assert (l2.tensors["A"].read_bytes, l2.tensors["B"].read_bytes) == (60, 60)
    assert l2.tensors["A"].accesses == 180
    assert l1.accesses == 3 * problem.macs
    assert (l1.instances, l2.instances) == (4, 1)
    # An L2 with room for two steps of a wave only: waves touch 4, 4 and 2 rows of A (of which
    # the last four elements are still there for the lone last item), 6, 6 and 2 columns of B.
    small = simulate(problem, nest, arch=machine(4, 16, 16 + 2 * (4 + 6)), sees="all")
    assert small.level("L2").tensors["C"].read_bytes == 0
    assert 96 <= small.level("L2").tensors["A"].read_bytes <= 100
    assert small.level("L2").tensors["B"].read_bytes == 140


def test_caches_of_few_among_many_elements() -> None:
    """1,200 elements share 256 buckets in each of three caches."""
    problem = gemm(m=20, n=20, k=20)
    nest = parse_schedule("M:20@SM N:20@SM K:20 M:7 N:6 K:5", problem)
    found = simulate(problem, nest, arch=machine(3, 200, 2000))
    literal = oracle.simulate_private(problem, nest, 200, ("SM",))
    inner = found.level("L1").tensors
    assert {name: each.read_bytes for name, each in inner.items()} == literal.reads
    assert {name: each.write_bytes for name, each in inner.items()} == literal.writes
    assert_same(found, run_literally(problem, nest, machine(3, 200, 2000)))


def test_warm_caches_keep_a_shared_operand() -> None:
    problem = gemm(m=8, n=1, k=4, element_bytes=1)
    nest = parse_schedule("M:8@SM N:1 K:4", problem)
    cold = simulate(problem, nest, arch=machine(2, 64, 4000))
    warm = simulate(problem, nest, arch=machine(2, 64, 4000), warm=True)
    assert cold.level("L1").tensors["B"].read_bytes == 8 * 4
    assert warm.level("L1").tensors["B"].read_bytes == 2 * 4
    left = simulate(problem, nest, arch=machine(2, 64, 4000), warm=True, flush=False)
    assert left.level("L1").tensors["C"].write_bytes == 0


def test_write_through_without_registers_sends_every_sum() -> None:
    problem = gemm(m=4, n=4, k=8)
    nest = parse_schedule("M:4@SM N:4 K:8", problem)
    for accumulate, many in (("level", problem.macs), ("registers", 16)):
        arch = machine(2, 4096, 10**6, write_policy="through", accumulate=accumulate)
        found = simulate(problem, nest, arch=arch)
        assert found.level("L1").tensors["C"].write_bytes == 4 * many
        assert found.level("L2").tensors["C"].write_bytes == 4 * 16


def test_lines_of_all_levels() -> None:
    problem = gemm(m=4, n=16, k=16)
    nest = parse_schedule("M:4@SM K:16 N:16", problem)
    found = simulate(problem, nest, arch=machine(4, 4096, 10**6), line_bytes=32)
    assert found.level("L1").tensors["A"].misses == 4 * 2
    assert found.level("L1").tensors["B"].misses == 4 * 32
    assert found.level("L2").tensors["B"].misses == 32
    assert found.level("L2").tensors["C"].write_bytes == 4 * 16 * 4
    assert found.line_bytes == 32


def test_lanes_work_inside_an_item() -> None:
    """Lanes of a unit take their items together: a row of B serves all of them at once."""
    arch = replace(machine(2, 64, 10**6), name="lanes")
    arch = replace(arch, compute=replace(arch.compute, lane_unit="lane"))
    problem = gemm(m=16, n=1, k=40)
    nest = parse_schedule("M:16@SM M:8@lane K:40 N:1", problem)
    found = simulate(problem, nest, arch=arch)
    # 8 lanes: 8 of A, 8 sums and 1 of B a step do not fit 16 elements; B is used up at once.
    assert found.level("L1").tensors["B"].read_bytes == 4 * 40 * 2
    alone = simulate(problem, parse_schedule("M:16@SM M:8 K:40 N:1", problem), arch=arch)
    assert alone.level("L1").tensors["B"].read_bytes == 4 * 40 * 16


@pytest.mark.parametrize(
    "nest",
    [
        "M:7@SM N:3 M:4@lane K:2",  # two lists of four and three items, side by side
        "M:7@SM N:3@SM M:4 M:2@lane N:2@lane K:2",
        "N:3@SM M:7 M:3@lane K:2",  # temporal loops around a list leave a rest
    ],
)
def test_units_in_units_take_turns_as_a_literal_walk_does(nest: str) -> None:
    from loopsched.simulator.trace import Memory
    from loopsched.simulator.waves import Waves

    problem = gemm(m=7, n=3, k=2)
    schedule, counts = parse_schedule(nest, problem), {"SM": 2, "lane": 2}
    literal = [
        oracle.element(problem.tensor(name), point)
        for point in oracle.units_in_lock_step(problem, schedule, counts)
        for name in "ABC"
    ]
    walked = Waves(Memory.of(problem, None, None), schedule, counts).chunks()
    found = [one for ids in walked for one in ids.tolist()]
    assert renumbered(found) == renumbered(literal)


def renumbered(accesses: Sequence[object]) -> list[int]:
    """Number what is accessed by its first access."""
    first: dict[object, int] = {}
    return [first.setdefault(one, len(first)) for one in accesses]


@given(st.data())
def test_units_in_units_touch_each_point_once(data: st.DataObject) -> None:
    from loopsched.simulator.trace import Memory, Walker
    from loopsched.simulator.waves import Waves

    problem = data.draw(problems())
    schedule = data.draw(schedules(problem, units=("SM", "lane")))
    memory = Memory.of(problem, None, None)
    counts = {"SM": data.draw(st.integers(1, 4)), "lane": data.draw(st.integers(1, 4))}
    waves = [one for ids in Waves(memory, schedule, counts).chunks() for one in ids.tolist()]
    plain = [one for ids in Walker(memory, schedule).chunks() for one in ids.tolist()]
    assert sorted(waves) == sorted(plain)


class TestErrors:
    problem = gemm(m=8, n=8, k=8)
    nest = parse_schedule("M:8@SM N:8 K:8", problem)

    def test_scratchpads_are_not_simulated(self) -> None:
        plain = parse_schedule("M:8 N:8 K:8", self.problem)
        with pytest.raises(ArchError, match="level 'buffers' of 'diannao' is a scratchpad"):
            simulate(self.problem.with_element_bytes(2), plain, arch=load_arch("diannao"))

    def test_units_that_are_not_there(self) -> None:
        nest = Schedule.of([Loop("M", 8, "XM"), Loop("N", 8), Loop("K", 8)])
        with pytest.raises(ScheduleError, match="unknown unit 'XM'"):
            simulate(self.problem, nest, arch=load_arch("titan_v"))

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"capacity_bytes": 8}, "both are given"),
            (
                {"ways": 2, "line_bytes": 32},
                r"ways: only a single cache \(capacity_bytes=\) has it; leave",
            ),
            ({"policy": "belady"}, "policy: only a single cache"),
            ({"write_policy": "through"}, "write_policy: only a single cache"),
            ({"instances": 3}, "instances: only a single cache"),
            ({"sees": "al"}, "did you mean 'all'"),
            (
                {"line_bytes": 2**18},
                r"line \(256 KiB\) is above the capacity of L1 \(96 KiB\)",
            ),
        ],
    )
    def test_what_an_arch_decides(self, options: dict[str, object], message: str) -> None:
        with pytest.raises(InputError, match=message):
            simulate(self.problem, self.nest, arch=load_arch("titan_v"), **options)  # type: ignore[arg-type]

    def test_a_name_is_no_machine(self) -> None:
        with pytest.raises(InputError, match="arch is 'titan_v'; an Arch is needed"):
            simulate(self.problem, self.nest, arch="titan_v")  # type: ignore[arg-type]

    def test_an_idle_instance_counts_as_one(self) -> None:
        plain = parse_schedule("M:8 N:8 K:8", self.problem)
        found = simulate(self.problem, plain, arch=load_arch("titan_v"))
        assert found.level("L1").instances == 80
        assert found.level("L1").read_bytes == found.read_bytes == 4 * 128

    def test_levels_by_name(self) -> None:
        found = simulate(self.problem, self.nest, arch=load_arch("titan_v"))
        assert found.level("l2") is found.levels[0]
        with pytest.raises(InputError, match="no level 'L3'; did you mean 'L2'"):
            found.level("L3")
