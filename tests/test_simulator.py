"""One simulated cache against literal walks, brute force, and the other simulators."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import tracemalloc
from functools import cache
from itertools import groupby
from typing import get_type_hints

import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import capacities, problems, schedules

from loopsched.base.errors import InputError, ScheduleError
from loopsched.machines.arch_file import load_arch
from loopsched.nests.nest import Schedule
from loopsched.nests.notation import parse_schedule
from loopsched.problems.builders import conv2d, gemm
from loopsched.problems.problem import Problem
from loopsched.simulator import Cache, Caches, Layout, Simulation, simulate, stack_distances
from loopsched.simulator.simulated import Fields

Case = tuple[Problem, Schedule]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    problem = draw(problems())
    return problem, draw(schedules(problem))


def even(problem: Problem) -> Problem:
    """The problem with elements of one size: then sets and the optimum are clear-cut."""
    return problem.with_element_bytes(4)


def order_of(problem: Problem) -> list[str]:
    return [t.name for t in problem.tensors if t.name != problem.output] + [problem.output]


def trace(problem: Problem, schedule: Schedule) -> list[oracle.Element]:
    """All accesses, literally."""
    tensors = [problem.tensor(name) for name in order_of(problem)]
    found = []
    for _, point in oracle.walk(problem, schedule):
        for tensor in tensors:
            one = oracle.element(tensor, point)
            if one is not None:
                found.append(one)
    return found


def moved(found: Simulation) -> oracle.Moved:
    return oracle.Moved(
        {name: each.read_bytes for name, each in found.tensors.items()},
        {name: each.write_bytes for name, each in found.tensors.items()},
    )


class TestLru:
    @given(st.data())
    def test_equals_a_literal_cache(self, data: st.DataObject) -> None:
        problem, schedule = data.draw(cases())
        capacity = data.draw(capacities(problem))
        found = simulate(problem, schedule, capacity_bytes=capacity)
        assert moved(found) == oracle.simulate(problem, schedule, capacity)

    @given(st.data())
    def test_accesses_hits_and_evictions(self, data: st.DataObject) -> None:
        problem, schedule = data.draw(cases())
        capacity = data.draw(capacities(problem))
        found = simulate(problem, schedule, capacity_bytes=capacity, flush=False)
        literal = oracle.Lru(problem, capacity)
        literal.run(point for _, point in oracle.walk(problem, schedule))
        assert moved(found) == literal.moved
        names = [name for name, _ in trace(problem, schedule)]
        for name, each in found.tensors.items():
            assert each.accesses == names.count(name)
            read = each.read_bytes // problem.tensor(name).element_bytes
            first = len({one for one in trace(problem, schedule) if one[0] == name})
            assert each.misses == read + (first if name == problem.output else 0)
            assert each.hits + each.misses == each.accesses

    def test_hand_case(self) -> None:
        problem = gemm(m=8, n=8, k=8, element_bytes=1)
        nest = parse_schedule("M:8 N:8 K:8 M:3 N:3 K:8", problem)
        assert simulate(problem, nest, capacity_bytes=90).bytes == 320

    def test_neighbouring_loops_that_leave_rests_stay_two(self) -> None:
        """Of 3 and 2 positions the pieces are 2, 1, 2, 1, ..., not 2, 2, 2, ..."""
        problem = gemm(m=9, n=4, k=2, element_bytes=1)
        nest = parse_schedule("M:9 M:3 N:4 M:2 K:2", problem)
        for capacity in range(3, 20):
            found = simulate(problem, nest, capacity_bytes=capacity)
            assert moved(found) == oracle.simulate(problem, nest, capacity)

    @given(cases(), st.integers(1, 9))
    def test_chunks_do_not_show(self, case: Case, size: int) -> None:
        from loopsched.simulator.trace import Memory, Walker

        problem, schedule = case
        memory = Memory.of(problem, None, None)
        whole = [one for ids in Walker(memory, schedule).chunks() for one in ids.tolist()]
        parts = [one for ids in Walker(memory, schedule).chunks(size) for one in ids.tolist()]
        assert parts == whole

    @given(cases())
    def test_each_element_has_its_number(self, case: Case) -> None:
        from loopsched.simulator.trace import Memory, Walker

        problem, schedule = case
        memory = Memory.of(problem, None, None)
        ids = [one for part in Walker(memory, schedule).chunks() for one in part.tolist()]
        elements = trace(problem, schedule)
        assert len(ids) == len(elements)
        assert len(set(zip(ids, elements, strict=True))) == len(set(ids)) == len(set(elements))
        assert all(0 <= one < memory.bounds[-1] for one in ids)

    def test_a_ring_that_is_tidied_up_often(self) -> None:
        problem = gemm(m=24, n=20, k=28, element_bytes=1)
        nest = parse_schedule("M:24 N:20 K:28 M:5 K:6 N:4", problem)
        for capacity in (0, 1, 40, 300, 5000):
            found = simulate(problem, nest, capacity_bytes=capacity)
            assert moved(found) == oracle.simulate(problem, nest, capacity)


class TestStackDistances:
    @given(cases())
    def test_equal_every_capacity_alone(self, case: Case) -> None:
        problem, schedule = case
        distances = stack_distances(problem, schedule)
        knees = distances.capacities
        tried = sorted({0, 1, *knees, *(far - 1 for far in knees), *(far + 1 for far in knees)})
        for capacity in tried[:: max(1, len(tried) // 12)] + tried[-1:]:
            for flush in (True, False):
                alone = simulate(problem, schedule, capacity_bytes=capacity, flush=flush)
                assert distances.traffic(capacity, flush=flush).tensors == alone.tensors

    @given(cases())
    def test_monotone_down_to_compulsory(self, case: Case) -> None:
        problem, schedule = case
        distances = stack_distances(problem, schedule)
        traffic = [distances.traffic(capacity).bytes for capacity in (0, *distances.capacities)]
        assert traffic == sorted(traffic, reverse=True)
        assert traffic[-1] == sum(oracle.compulsory(problem).values())

    def test_an_element_counts_in_its_own_distance(self) -> None:
        problem = gemm(m=2, n=3, k=4, element_bytes=1)
        distances = stack_distances(problem, parse_schedule("M:2 K:4 N:3", problem))
        # An element of A is used again after one of B and one of C.
        assert distances.tensors["A"].bytes == (3,)
        assert distances.tensors["A"].counts == (2 * 4 * 2,)

    def test_long_time_is_compacted(self) -> None:
        problem = gemm(m=40, n=36, k=44, element_bytes={"A": 1, "B": 4, "C": 8})
        nest = parse_schedule("M:40 N:36 K:44 M:7 K:12 N:9", problem)
        distances = stack_distances(problem, nest)
        for capacity in (0, 7, 100, 999, 4096, 9000, 20000):
            alone = simulate(problem, nest, capacity_bytes=capacity)
            assert distances.traffic(capacity).tensors == alone.tensors

    def test_far_reuse_crosses_all_levels_of_blocks(self) -> None:
        problem = gemm(m=3, n=300, k=300, element_bytes=1)
        nest = parse_schedule("M:3 N:300 K:300", problem)
        distances = stack_distances(problem, nest)
        # B is streamed, all of it between two uses, with the row of A and some of C.
        near, far = min(distances.tensors["B"].bytes), max(distances.tensors["B"].bytes)
        assert 300 * 300 + 300 < near <= far < 300 * 300 + 600 + 600 + 10
        assert sum(distances.tensors["B"].counts) == 2 * 300 * 300
        for capacity in (near - 1, near, far - 1, far):
            alone = simulate(problem, nest, capacity_bytes=capacity)
            assert distances.traffic(capacity).tensors == alone.tensors


class TestSets:
    @given(st.data())
    def test_one_set_of_elements_is_fully_associative(self, data: st.DataObject) -> None:
        problem, schedule = data.draw(cases())
        problem = even(problem)
        ways = data.draw(st.integers(1, 40))
        for flush in (True, False):
            one_set = simulate(
                problem,
                schedule,
                capacity_bytes=4 * ways,
                line_bytes=4,
                ways=ways,
                flush=flush,
                layouts=layout_of_all(data, problem),
            )
            whole = simulate(problem, schedule, capacity_bytes=4 * ways, flush=flush)
            assert one_set.tensors == whole.tensors

    @given(st.data())
    def test_equals_a_literal_cache_of_lists(self, data: st.DataObject) -> None:
        problem, schedule = data.draw(cases())
        line = data.draw(st.sampled_from([8, 16, 32]))
        ways, n_sets = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 5))
        found = simulate(
            problem, schedule, capacity_bytes=line * ways * n_sets, line_bytes=line, ways=ways
        )
        assert moved(found) == literal_sets(problem, schedule, line, ways, n_sets)

    @given(st.data())
    def test_lines_of_a_fully_associative_cache(self, data: st.DataObject) -> None:
        problem, schedule = data.draw(cases())
        line, many = data.draw(st.sampled_from([8, 16, 64])), data.draw(st.integers(1, 12))
        found = simulate(problem, schedule, capacity_bytes=line * many, line_bytes=line)
        assert moved(found) == literal_sets(problem, schedule, line, many, 1)
        passed = stack_distances(problem, schedule, line_bytes=line)
        assert passed.traffic(line * many).tensors == found.tensors

    @given(st.data())
    def test_random_victims_repeat_and_stay_in_bounds(self, data: st.DataObject) -> None:
        problem, schedule = data.draw(cases())
        problem = even(problem)
        ways, seed = data.draw(st.integers(1, 9)), data.draw(st.integers(-3, 3))

        def run() -> Simulation:
            return simulate(
                problem,
                schedule,
                capacity_bytes=8 * ways,
                line_bytes=4,
                ways=ways,
                policy="random",
                seed=seed,
            )

        found = run()
        assert found == run()
        if ways == 1:
            lru = simulate(problem, schedule, capacity_bytes=8, line_bytes=4, ways=1)
            assert found.tensors == lru.tensors
        first = {name: many // 4 for name, many in oracle.compulsory(problem).items()}
        for name, each in found.tensors.items():
            assert first[name] <= each.misses <= each.accesses

    def test_seeds_matter_and_random_beats_lru_on_a_loop_too_long(self) -> None:
        # A cyclic sweep over a little more than the cache is the worst case of LRU.
        problem = gemm(m=64, n=1, k=40)
        nest = parse_schedule("M:64 K:40 N:1", problem)
        options = {"capacity_bytes": 4 * 64, "line_bytes": 4, "ways": 64}
        lru = simulate(problem, nest, **options)
        victims = [simulate(problem, nest, policy="random", seed=s, **options) for s in range(5)]
        assert len({each.misses for each in victims}) > 1
        assert lru.tensors["B"].misses == 64 * 40
        assert all(each.tensors["B"].misses < 0.9 * 64 * 40 for each in victims)

    def test_write_through_sends_every_write(self) -> None:
        problem = gemm(m=6, n=5, k=4)
        nest = parse_schedule("M:6 N:5 K:4", problem)
        options = {"capacity_bytes": 256, "line_bytes": 32, "ways": 2}
        back = simulate(problem, nest, **options)
        through = simulate(problem, nest, write_policy="through", **options)
        assert through.read_bytes == back.read_bytes
        assert through.tensors["C"].write_bytes == 4 * problem.macs
        assert through.write_backs == 0 < back.write_backs


def layout_of_all(data: st.DataObject, problem: Problem) -> dict[str, str]:
    """A random order of axes and room for each tensor."""
    found = {}
    for tensor in problem.tensors:
        axes = [axis.dims[0] for axis in tensor.axes if axis.dims]
        words = [
            f"{axis}:{data.draw(st.integers(40, 60))}" if data.draw(st.booleans()) else axis
            for axis in data.draw(st.permutations(axes))
        ]
        if words:
            found[tensor.name] = " ".join(words)
    return found


def literal_sets(
    problem: Problem, schedule: Schedule, line: int, ways: int, n_sets: int
) -> oracle.Moved:
    """Sets as Python lists, most recent last; row-major tensors at multiples of 256 bytes.

    A tensor begins at the least position that it stores; elements that no point
    can reach, for a common factor of the coefficients, are not stored.
    """
    import math

    place, free = {}, 0
    for name in order_of(problem):
        tensor = problem.tensor(name)
        shape = []
        for axis in tensor.axes:
            if axis.size is not None:
                shape.append((0, 1, axis.size))
                continue
            at = [c * i for dim, c in axis.terms for i in [problem.size[dim] - 1]]
            common = math.gcd(*[c for dim, c in axis.terms if problem.size[dim] > 1]) or 1
            shape.append((axis.offset, common, sum(at) // common + 1 if common else 1))
        shape = [
            (
                first,
                common,
                1
                + sum(
                    c // common * (problem.size[d] - 1)
                    for d, c in axis.terms
                    if problem.size[d] > 1
                ),
            )
            if axis.size is None
            else (first, common, many)
            for (first, common, many), axis in zip(shape, tensor.axes, strict=True)
        ]
        free = -(-free // 256) * 256
        place[name] = (free, shape)
        free += math.prod(many for *_, many in shape) * tensor.element_bytes
    held: list[list[tuple[str, int]]] = [[] for _ in range(n_sets)]
    seen: set[int] = set()
    reads, writes = dict.fromkeys(place, 0), dict.fromkeys(place, 0)
    for name, position in trace(problem, schedule):
        start, shape = place[name]
        at = 0
        for (first, common, many), one in zip(shape, position, strict=True):
            at = at * many + (one - first) // common
        number = (start + at * problem.tensor(name).element_bytes) // line
        ways_of = held[number % n_sets]
        if (name, number) in ways_of:
            ways_of.remove((name, number))
        else:
            if name != problem.output or number in seen:
                reads[name] += line
            if len(ways_of) == ways and ways_of.pop(0)[0] == problem.output:
                writes[problem.output] += line
        if name == problem.output:
            seen.add(number)
        ways_of.append((name, number))
    writes[problem.output] += line * sum(
        name == problem.output for ways_of in held for name, _ in ways_of
    )
    return oracle.Moved(
        {t.name: reads[t.name] for t in problem.tensors},
        {t.name: writes[t.name] for t in problem.tensors},
    )


def fewest_misses(accesses: list[oracle.Element], room: int) -> int:
    """Try every victim at every miss."""

    @cache
    def rest(at: int, held: frozenset[oracle.Element]) -> int:
        if at == len(accesses):
            return 0
        one = accesses[at]
        if one in held:
            return rest(at + 1, held)
        if len(held) < room:
            return 1 + rest(at + 1, held | {one})
        return 1 + min(rest(at + 1, held - {victim} | {one}) for victim in held)

    return rest(0, frozenset())


class TestBelady:
    @given(st.data())
    def test_never_misses_more_than_lru(self, data: st.DataObject) -> None:
        problem, schedule = data.draw(cases())
        problem = even(problem)
        capacity = data.draw(capacities(problem, 4))
        best = simulate(problem, schedule, capacity_bytes=capacity, policy="belady")
        lru = simulate(problem, schedule, capacity_bytes=capacity)
        assert best.misses <= lru.misses
        assert best.accesses == lru.accesses
        assert moved_at_least(best, problem)

    @given(st.data())
    def test_misses_as_few_as_brute_force_finds(self, data: st.DataObject) -> None:
        m, n, k = (data.draw(st.integers(1, 3)) for _ in range(3))
        problem = gemm(m=m, n=n, k=k)
        schedule = data.draw(schedules(problem, max_blocks=2))
        accesses = trace(problem, schedule)[:30]
        room = data.draw(st.integers(1, 5))
        if m * n * k > 10:
            return
        found = simulate(problem, schedule, capacity_bytes=4 * room, policy="belady")
        assert found.misses == fewest_misses(accesses, room)

    @given(st.data())
    def test_room_for_everything_is_compulsory(self, data: st.DataObject) -> None:
        problem, schedule = data.draw(cases())
        whole = sum(oracle.compulsory(problem).values())
        found = simulate(problem, schedule, capacity_bytes=whole, policy="belady")
        assert found.bytes == whole

    @given(st.data())
    def test_unequal_sizes_keep_within_the_room(self, data: st.DataObject) -> None:
        problem, schedule = data.draw(cases())
        capacity = data.draw(capacities(problem))
        found = simulate(problem, schedule, capacity_bytes=capacity, policy="belady")
        assert moved_at_least(found, problem)
        for each in found.tensors.values():
            assert 0 <= each.hits <= each.accesses


def moved_at_least(found: Simulation, problem: Problem) -> bool:
    return all(
        found.tensors[name].bytes >= least for name, least in oracle.compulsory(problem).items()
    )


class TestInstances:
    @given(st.data())
    def test_waves_share_a_cache_in_lock_step(self, data: st.DataObject) -> None:
        problem = data.draw(problems())
        schedule = data.draw(schedules(problem, units=("SM",)))
        n = data.draw(st.integers(1, 5))
        capacity = data.draw(capacities(problem))
        cache = oracle.Lru(problem, capacity)
        for items in oracle.item_lists(problem, schedule, "SM"):
            for wave in oracle.waves(items, n):
                cache.run(oracle.lock_step(wave))
        cache.flush()
        found = simulate(problem, schedule, capacity_bytes=capacity, instances=n)
        assert moved(found) == cache.moved
        passed = stack_distances(problem, schedule, instances={"SM": n})
        assert passed.traffic(capacity).tensors == found.tensors

    def test_an_interrupted_wave_goes_on_in_the_next_row(self) -> None:
        # Nine items on four instances: waves of 4, 4 and 1, across rows of three.
        problem = gemm(m=3, n=3, k=5, element_bytes=1)
        nest = parse_schedule("M:3@SM N:3@SM K:5", problem)
        walked = [list(key) for key, _ in groupby(_first_points(problem, nest, 4))]
        assert walked == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2], [2, 0], [2, 1], [2, 2]]
        found = simulate(problem, nest, capacity_bytes=1000, instances=4)
        assert found.bytes == 9 + 15 + 15
        # Room for two steps of a wave: waves touch 2, 2 and 1 rows of A, 3, 3 and 1 columns of
        # B; the lone last item needs so little that one element of its row is still there.
        tight = simulate(problem, nest, capacity_bytes=4 + 2 * (2 + 3), instances=4)
        assert tight.tensors["C"].bytes == 9
        assert tight.tensors["A"].read_bytes == (2 + 2 + 1) * 5 - 1
        assert tight.tensors["B"].read_bytes == (3 + 3 + 1) * 5

    def test_instances_leave_padding_out(self) -> None:
        # Of 4 x 3 positions along a row of the image, the first and the last are padding.
        problem = conv2d(n=1, c=1, k=1, h=4, w=4, r=1, s=3, padding=(0, 1), element_bytes=1)
        for text in ("Q:4@SM P:4 S:3", "P:4@SM Q:4 S:3", "S:3@SM P:4 Q:4"):
            nest = parse_schedule(text, problem)
            found = simulate(problem, nest, capacity_bytes=100, instances=2)
            accesses = {name: each.accesses for name, each in found.tensors.items()}
            assert accesses == {"input": 4 * (4 * 3 - 2), "weight": 48, "output": 48}

    @given(cases())
    def test_one_instance_is_the_sequence(self, case: Case) -> None:
        from loopsched.simulator.trace import Memory, Walker
        from loopsched.simulator.waves import Waves

        problem, schedule = case
        memory = Memory.of(problem, None, None)
        sequence = [one for ids in Walker(memory, schedule).chunks() for one in ids.tolist()]
        waves = [one for ids in Waves(memory, schedule, {}).chunks(7) for one in ids.tolist()]
        assert waves == sequence


def _first_points(problem: Problem, schedule: Schedule, n: int) -> list[tuple[int, ...]]:
    """Item of C that each first step of a wave touches."""
    from loopsched.simulator.trace import Memory
    from loopsched.simulator.waves import Waves

    walker = Waves(Memory.of(problem, None, None), schedule, {"SM": n})
    starts = [step.group.start for step in walker.steps() if step.group is not None]
    return [tuple(row[:2]) for start in starts for row in start.tolist()]


class TestArguments:
    problem = gemm(m=8, n=8, k=8)
    nest = parse_schedule("M:8 N:8 K:8", problem)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({}, "capacity_bytes and arch: neither is given"),
            ({"capacity_bytes": -1}, "capacity_bytes is -1; a whole number >= 0"),
            ({"capacity_bytes": 1.5}, "capacity_bytes is 1.5"),
            ({"capacity_bytes": 8, "policy": "lur"}, "did you mean 'lru'"),
            ({"capacity_bytes": 8, "policy": "random"}, "give ways"),
            ({"capacity_bytes": 8, "ways": 2}, "give line_bytes"),
            ({"capacity_bytes": 96, "line_bytes": 48}, "a power of two"),
            ({"capacity_bytes": 96, "line_bytes": 2}, "line_bytes is 2; a multiple of the 4"),
            ({"capacity_bytes": 100, "line_bytes": 32, "ways": 2}, "a multiple of ways"),
            ({"capacity_bytes": 64, "line_bytes": 32, "ways": 0}, "ways is 0"),
            (
                {"capacity_bytes": 64, "line_bytes": 32, "ways": 2, "policy": "belady"},
                "leave out ways",
            ),
            ({"capacity_bytes": 8, "write_policy": "thru"}, "write_policy is 'thru'"),
            ({"capacity_bytes": 8, "granularity": "tiles"}, "did you mean 'tile'"),
            ({"capacity_bytes": 8, "layouts": {"D": "MN"}}, "no tensor 'D'"),
            ({"capacity_bytes": 8, "layouts": {"A": "MN"}}, "no axis 'N'"),
            ({"capacity_bytes": 8, "layouts": {"A": "M"}}, "each axis once is needed: M K"),
            ({"capacity_bytes": 8, "layouts": {"A": "M K:7"}}, "a room of 7 is too small"),
            ({"capacity_bytes": 8, "layouts": {"A": "M;K"}}, "is not an axis"),
            ({"capacity_bytes": 8, "layouts": 3}, "3 is not a layout"),
            ({"capacity_bytes": 8, "instances": {"SM": 2}}, "no spatial loops"),
            ({"capacity_bytes": 8, "instances": 0}, "instances is 0"),
            ({"capacity_bytes": 8, "warm": True}, "warm: only the caches of a machine"),
            ({"capacity_bytes": 8, "seed": 1.0}, "seed is 1.0"),
            ({"capacity_bytes": 10, "line_bytes": 64}, r"line \(64 B\) is above the capacity"),
            ({"capacity_bytes": 8, "granularity": "tile", "ways": 2, "line_bytes": 4}, "whole"),
        ],
    )
    def test_faults_are_told(self, options: dict[str, object], message: str) -> None:
        with pytest.raises(InputError, match=message):
            simulate(self.problem, self.nest, **options)  # type: ignore[arg-type]

    def test_other_things_than_problems_and_schedules(self) -> None:
        with pytest.raises(InputError, match="2 errors") as caught:
            simulate("gemm", "M:8 N:8 K:8", capacity_bytes=8)  # type: ignore[arg-type]
        assert "a Problem is needed" in caught.value.problems[0]
        with pytest.raises(InputError, match="schedule is 'M:8'; a Schedule is needed"):
            stack_distances(self.problem, "M:8")  # type: ignore[arg-type]

    def test_too_little_memory_is_a_message(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(*_: object) -> None:
            raise MemoryError

        monkeypatch.setattr("loopsched.simulator.cache.run_lru", fail)
        with pytest.raises(InputError, match=r"not enough memory .* larger lines"):
            simulate(self.problem, self.nest, capacity_bytes=8)

    def test_a_cache_is_the_same_as_its_fields(self) -> None:
        cache = Cache(capacity_bytes=128, line_bytes=32, ways=2, policy="random", seed=3)
        whole = simulate(self.problem, self.nest, cache)
        fields = {"line_bytes": 32, "ways": 2, "policy": "random", "seed": 3}
        assert whole == simulate(self.problem, self.nest, capacity_bytes=128, **fields)  # type: ignore[arg-type]
        plain = simulate(self.problem, self.nest, cache, policy="lru")
        assert plain == simulate(
            self.problem, self.nest, Cache(capacity_bytes=128, line_bytes=32, ways=2)
        )

    def test_a_machine_is_the_same_as_its_caches(self) -> None:
        machine = load_arch("titan_v")
        whole = simulate(self.problem, self.nest, machine, sees="all")
        assert whole == simulate(self.problem, self.nest, Caches(machine, sees="all"))
        assert whole == simulate(self.problem, self.nest, arch=machine, sees="all")

    def test_unknown_keywords_and_other_things_than_caches(self) -> None:
        with pytest.raises(TypeError, match=r"simulate\(\) has no argument 'way'; did you mean"):
            simulate(self.problem, self.nest, capacity_bytes=8, way=2)  # type: ignore[call-arg]
        with pytest.raises(
            InputError, match=r"^simulate: found 8; a Cache, Caches or an Arch is needed"
        ):
            simulate(self.problem, self.nest, 8)  # type: ignore[arg-type]

    def test_keywords_are_typed_as_the_fields(self) -> None:
        shown = inspect.signature(simulate).parameters
        assert set(get_type_hints(Fields)) < set(shown)
        for kind in (Cache, Caches):
            for name, hint in get_type_hints(kind).items():
                assert get_type_hints(Fields)[name] in (hint, hint | None)

    def test_all_at_once(self) -> None:
        with pytest.raises(InputError, match="3 errors") as caught:
            simulate(self.problem, self.nest, capacity_bytes=-1, policy="x", flush="no")  # type: ignore[arg-type]
        assert len(caught.value.problems) == 3

    def test_a_schedule_of_another_problem(self) -> None:
        with pytest.raises(ScheduleError, match="it must cover the size, 9"):
            simulate(gemm(m=9, n=8, k=8), self.nest, capacity_bytes=8)

    def test_too_much_is_refused_before_it_is_asked_for(self) -> None:
        huge = gemm(m=2**20, n=2**20, k=8)
        nest = parse_schedule(f"M:{2**20} N:{2**20} K:8", huge)
        with pytest.raises(InputError, match=r"at most .* can be simulated; larger lines"):
            simulate(huge, nest, capacity_bytes=8)
        long = gemm(m=1024, n=1024, k=1024)
        order = parse_schedule("M:1024 N:1024 K:1024", long)
        with pytest.raises(InputError, match="'belady' looks ahead through"):
            simulate(long, order, capacity_bytes=8, policy="belady")

    def test_progress_is_told_and_ends_at_all(self) -> None:
        told: list[tuple[int, int]] = []
        problem = gemm(m=64, n=64, k=64)
        nest = parse_schedule("M:64 N:64 K:64", problem)
        simulate(problem, nest, capacity_bytes=64, progress=lambda *at: told.append(at))
        assert told == sorted(told)
        assert told[-1] == (3 * 64**3, 3 * 64**3)
        assert len(told) > 10

    def test_an_interruption_is_served_between_chunks(self) -> None:
        def stop(done: int, total: int) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            simulate(self.problem, self.nest, capacity_bytes=64, progress=stop)


class TestLayouts:
    @given(st.data())
    def test_elements_do_not_care(self, data: st.DataObject) -> None:
        problem, schedule = data.draw(cases())
        capacity = data.draw(capacities(problem))
        plain = simulate(problem, schedule, capacity_bytes=capacity)
        laid = simulate(
            problem, schedule, capacity_bytes=capacity, layouts=layout_of_all(data, problem)
        )
        assert laid == plain

    @given(st.data())
    def test_addresses_are_distinct_and_in_bounds(self, data: st.DataObject) -> None:
        from loopsched.simulator.layout import layouts_of
        from loopsched.simulator.trace import Memory, Walker

        problem, schedule = data.draw(cases())
        problem = even(problem)
        placed = layouts_of(problem, layout_of_all(data, problem))
        memory = Memory.of(problem, placed, 4)  # lines of one element
        ids = [one for part in Walker(memory, schedule).chunks() for one in part.tolist()]
        elements = trace(problem, schedule)
        assert len(set(zip(ids, elements, strict=True))) == len(set(ids)) == len(set(elements))
        for one, (name, _) in zip(ids, elements, strict=True):
            t = memory.names.index(name)
            assert memory.bounds[t] <= one < memory.bounds[t + 1]

    def test_nchw_and_nhwc(self) -> None:
        # One line of 8 channels a pixel, or one line of 8 pixels a channel.
        problem = conv2d(n=1, c=8, k=1, h=8, w=8, r=1, s=1)
        nest = parse_schedule("P:8 Q:8 C:8", problem)
        options = {"capacity_bytes": 4 * 32, "line_bytes": 32}
        channels_last = simulate(problem, nest, layouts={"input": "NHWC"}, **options)
        channels_first = simulate(problem, nest, layouts={"input": "NCHW"}, **options)
        assert channels_last.tensors["input"].misses == 64
        assert channels_first.tensors["input"].misses == 512
        everything = simulate(problem, nest, layouts="NHWC", **options)
        assert everything.tensors["input"] == channels_last.tensors["input"]

    def test_padded_rows_end_the_conflict_of_a_power_of_two(self) -> None:
        # A column of rows of 4 KiB falls on one set; a padded one on all of them.
        problem = gemm(m=1, n=16, k=16)
        problem = conv2d(n=1, c=1, k=2, h=16, w=1024, r=1, s=1)
        nest = parse_schedule("Q:1024 K:2 P:16", problem)
        options = {"capacity_bytes": 64 * 64, "line_bytes": 64, "ways": 2}
        plain = simulate(problem, nest, **options)
        padded = simulate(problem, nest, layouts={"input": "N C H W:1040"}, **options)
        assert plain.tensors["input"].hits == 0
        assert padded.tensors["input"].misses < plain.tensors["input"].misses / 2

    def test_an_offset_moves_elements_over_lines(self) -> None:
        # 16 elements of 4 bytes fill a line of 64, or parts of two.
        problem = gemm(m=1, n=1, k=16)
        nest = parse_schedule("K:16", problem)
        options = {"capacity_bytes": 4096, "line_bytes": 64}
        for offset, lines in ((0, 1), (4, 2), (60, 2), (64, 1)):
            layouts = {"A": Layout(offset_bytes=offset)}
            found = simulate(problem, nest, layouts=layouts, **options)
            assert found.tensors["A"].misses == lines

    def test_transposed_is_the_other_gemm(self) -> None:
        problem, other = gemm(m=16, n=16, k=16), gemm(m=16, n=16, k=16, transpose_a=True)
        nest = parse_schedule("M:16 N:16 K:16", problem)
        options = {"capacity_bytes": 512, "line_bytes": 32, "ways": 4}
        laid = simulate(problem, nest, layouts={"A": "K M"}, **options)
        assert laid.tensors == simulate(other, nest, **options).tensors
        assert laid.tensors != simulate(problem, nest, **options).tensors


@pytest.mark.parametrize("options", [{}, {"line_bytes": 32, "ways": 4}])
def test_memory_grows_with_the_footprint_not_the_trace(options: dict[str, int]) -> None:
    """12,288 elements are accessed 786,432 times: written down, 3 MiB."""
    problem = gemm(m=64, n=64, k=64)
    nest = parse_schedule("M:64 N:64 K:64 M:8 N:8 K:8", problem)

    def run() -> None:
        simulate(problem, nest, capacity_bytes=16384, **options)  # type: ignore[arg-type]
        stack_distances(problem, nest, line_bytes=options.get("line_bytes"))

    run()
    tracemalloc.start()
    run()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**20


SCRIPT = """
from loopsched.machines.arch_file import load_arch
from loopsched.problems.builders import conv2d, gemm
from loopsched.nests.notation import parse_schedule
from loopsched.simulator import simulate, stack_distances
problem = conv2d(n=1, c=4, k=4, h=5, w=6, r=3, s=2, stride=2, padding=1, element_bytes=4)
nest = parse_schedule("K:4@SM P:3@SM C:4 Q:4 R:3 S:2 K:2", problem)
for options in (
    {"capacity_bytes": 64},
    {"capacity_bytes": 64, "instances": 4},
    {"capacity_bytes": 64, "policy": "belady"},
    {"capacity_bytes": 64, "line_bytes": 16, "ways": 2},
    {"capacity_bytes": 64, "line_bytes": 16, "ways": 2, "policy": "random"},
):
    print(simulate(problem, nest, **options))
spread = parse_schedule("K:4@SM P:3@SM C:4 Q:4 R:3 S:2 K:2", problem)
machine = load_arch("titan_v").with_value("L1.capacity", 64).with_value("L2.capacity", 200)
for options in ({}, {"sees": "all"}, {"warm": True}, {"line_bytes": 8}, {"granularity": "tile"}):
    print(simulate(problem, spread, arch=machine, **options))
print(stack_distances(problem, nest).tensors)
print(stack_distances(problem.with_element_bytes({"input": 8}), nest).tensors)
"""


def test_python_and_compiled_kernels_agree() -> None:
    found = []
    for jit in ("1", "0"):
        environment = {**os.environ, "LOOPSCHED_JIT": jit}
        command = [sys.executable, "-W", "error", "-c", SCRIPT]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        found.append(done.stdout)
    assert found[0] == found[1]
