"""Programs of whole problems: functions that run one after the other, their jobs side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loopsched.codegen.choose import ranked
from loopsched.codegen.contraction import (
    Operand,
    Product,
    contractions,
    elementwise,
    product,
    row_major,
    stored_shape,
)
from loopsched.codegen.core import Core
from loopsched.codegen.element import Element
from loopsched.codegen.engine import form
from loopsched.codegen.general import Nest, Step, Walk, nest_of, plain_loops
from loopsched.codegen.writer import Writer
from loopsched.nests.nest import Schedule
from loopsched.problems.problem import Problem

ENOUGH_JOBS = 64


@dataclass(frozen=True, slots=True)
class Stage:
    """A function ``<name>(tensors..., work, first, last)`` that does some of its jobs.

    Parameters
    ----------
    name : str
    tensors : tuple of str
        Whose addresses it takes.
    n_jobs : int
        Of all rounds together.
    n_rounds : int
        Equal parts of the jobs, of which each begins when the one before has ended.
    room : int, elements of what is computed with
        That ``work`` leads to, for each thread.
    """

    name: str
    tensors: tuple[str, ...]
    n_jobs: int
    n_rounds: int = 1
    room: int = 0


def write_chosen(
    text: Writer,
    problem: Problem,
    elements: Mapping[str, Element],
    core: Core,
    threads: int,
    name: str,
) -> list[Stage]:
    """Write a problem, its arrays contiguous, as it is chosen for a core."""
    try:
        tasks = contractions(problem, elements)
    except NotImplementedError:
        return General(text, problem, elements, {}, core.registers).write(f"{name}_part0")
    stages, cuts = [], [ranked(task, core, threads, n=1)[0] for task in tasks]
    if all(plan.slides for *_, plan in cuts):
        text.lanes = max(plan.tile_cols for *_, plan in cuts)
    for number, (_, one, plan) in enumerate(cuts):
        engine = form(plan)(text, one, plan, f"{name}_part{number}")
        engine.write()
        tensors = tuple(each.name for each in one.operands)
        stages.append(Stage(engine.name, tensors, engine.n_jobs, room=engine.work_room))
    return stages


@dataclass(frozen=True, slots=True)
class Order:
    """Loops that a program is to follow: outermost first, and how many are for threads.

    Parameters
    ----------
    loops : tuple of Step
    n_serial, n_shared : int
        Outer loops that run one after the other, and those inside that threads share.
    """

    loops: tuple[Step, ...]
    n_serial: int = 0
    n_shared: int = 0


def order_of(problem: Problem, schedule: Schedule) -> Order:
    """Take over the loops of a schedule; threads share its outermost spatial ones that write apart.

    Examples
    --------
    >>> from loopsched import gemm, parse_schedule
    >>> problem = gemm(m=8, n=8, k=8)
    >>> order = order_of(problem, parse_schedule("K:8 M:8@SM N:8 K:4", problem))
    >>> order.n_serial, order.n_shared, order.loops[0]
    (1, 1, Step(dim='K', extent=8, step=4))
    """
    schedule.check(problem)
    nest = [
        (Step(loop.dim, loop.extent, step), loop.is_spatial)
        for loop, step in zip(schedule.loops, schedule.steps, strict=True)
        if loop.extent > step
    ]
    loops = tuple(step for step, _ in nest)
    n_serial = 0
    while n_serial < len(nest) and not nest[n_serial][1]:
        n_serial += 1
    n_shared = 0
    for step, is_spatial in nest[n_serial:]:
        if not is_spatial or step.dim not in problem.parallel_dims:
            break
        n_shared += 1
    return Order(loops, n_serial, n_shared) if n_shared else Order(loops)


class General:
    """Writes any problem through a writer, its loops in some order.

    Parameters
    ----------
    text : Writer
    problem : Problem
    elements : mapping of tensor name to Element
    axis_steps : mapping of tensor name to sequence of int, elements
    registers : int
        Vectors.
    """

    def __init__(
        self,
        text: Writer,
        problem: Problem,
        elements: Mapping[str, Element],
        axis_steps: Mapping[str, Sequence[int]],
        registers: int,
    ) -> None:
        self.text, self.problem, self.registers = text, problem, registers
        shape = stored_shape(problem, problem.output_tensor)
        self.n_out = math.prod(shape)
        self.out_steps = tuple(axis_steps.get(problem.output, row_major(shape)))
        self.task = product(problem, elements, axis_steps)
        whole = {**elements, problem.output: text.element}
        packed = {**axis_steps, problem.output: row_major(shape)}
        self.inner = product(problem, whole, packed)

    def nest(self, order: Order | None = None) -> Nest:
        """Say how the problem is walked."""
        return self._nest(self.task, order or _plain(self.task))

    def _nest(self, task: Product, order: Order) -> Nest:
        shared = order.n_serial, order.n_shared
        return nest_of(task, order.loops, shared, self.text.lanes, self.registers)

    def write(self, name: str, order: Order | None = None) -> list[Stage]:
        """Write functions whose names begin so."""
        text, task = self.text, self.task
        order = order or _plain(task)
        nest = self._nest(task, order)
        if task.out.element != text.element and not nest.is_direct:
            return [self._write_by_copy(name, order)]
        stages = []
        if not nest.is_direct:
            zero = elementwise(self.problem, task.out, self.out_steps, None)
            stages.append(self._write(zero, self._nest(zero, _plain(zero)), f"{name}_zero"))
        return [*stages, self._write(task, nest, name)]

    def _write(self, task: Product, nest: Nest, name: str, *, is_public: bool = True) -> Stage:
        Walk(self.text, task, nest, name).write(is_public=is_public)
        return Stage(name, tuple(one.name for one in task.operands), nest.n_jobs, nest.n_rounds)

    def _write_by_copy(self, name: str, order: Order) -> Stage:
        """Sum in a wider copy of the output: what it stores is too narrow for sums of parts."""
        text, inner = self.text, self.inner
        steps = row_major(stored_shape(self.problem, self.problem.output_tensor))
        copy = Operand("work", text.element, ())
        zero = elementwise(self.problem, copy, steps, None)
        narrow = elementwise(self.problem, self.task.out, self.out_steps, (copy, steps))
        parts = [
            (zero, _plain(zero), ["work"]),
            (inner, order, [*(one.name for one in inner.reads), "work"]),
            (narrow, _plain(narrow), ["work", inner.out.name]),
        ]
        calls = []
        for number, (task, each, given) in enumerate(parts):
            own = f"{name}_part{number}"
            nest = self._nest(task, each)
            self._write(task, nest, own, is_public=False)
            calls.append((own, given, nest.n_jobs))
        words = {one.name: f"tensor{place}" for place, one in enumerate(inner.operands)}
        words["work"] = "work"
        with text.function(name, list(words.values()), ("first", "last"), is_public=True):
            places = {one: text.argument(word) for one, word in words.items()}
            room = places["work"]  # nobody's, but its address is no other's
            places["work"] = text.at(room, text.lanes, text.element)
            for own, given, n_jobs in calls:
                text.call(own, [*(places[one] for one in given), room], [0, n_jobs])
        n = self.n_out + text.lanes
        return Stage(name, tuple(one.name for one in inner.operands), 1, 1, n)


def _plain(task: Product) -> Order:
    """Order loops by how far they step; threads share outer ones that write apart."""
    loops = tuple(one for one in plain_loops(task) if one.extent > 1)
    n_shared, n_jobs = 0, 1
    for one in loops:
        if one.dim not in task.parallel or n_jobs >= ENOUGH_JOBS:
            break
        n_shared += 1
        n_jobs *= one.extent
    return Order(loops, 0, n_shared)
