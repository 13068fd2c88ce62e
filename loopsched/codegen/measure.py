"""Kernels checked, and timed beside numpy."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from time import perf_counter, process_time, sleep
from typing import NamedTuple

import numpy as np

from loopsched.base.arrays import Array
from loopsched.base.errors import LoopschedError
from loopsched.base.rows import Row
from loopsched.codegen.choose import Choice, is_read_in_place, on_cores, ranked
from loopsched.codegen.compiled import CompiledKernel, Part
from loopsched.codegen.compiled import compile as compiled
from loopsched.codegen.contraction import Contraction, Operand, contractions
from loopsched.codegen.cost import Model
from loopsched.codegen.described import of_plan
from loopsched.codegen.element import Element
from loopsched.codegen.engine import Engine
from loopsched.codegen.llvm_text import LlvmText
from loopsched.codegen.memory import aligned, refuse_more
from loopsched.codegen.onnx_layer import onnx_layer
from loopsched.codegen.plan import Plan, Walk, inner_sizes, is_rounded, length, roles
from loopsched.codegen.reference import blas_on, reference
from loopsched.machines.arch import Arch
from loopsched.models.score import Evaluation
from loopsched.problems.problem import Problem
from loopsched.scheduler import search


@dataclass(frozen=True, slots=True)
class Measured:
    """What a kernel was expected to take, and took.

    Parameters
    ----------
    problem, data_type : str
    threads : int
    promised_s : float, seconds
        Of the best schedule, by the model of traffic alone.
    bound_s : float, seconds
        That no call can beat that finds nothing in the caches; repeated ones of little data may.
    estimate_s : float, seconds
        Of the kernel, by the model that chose it.
    measured_s : float, seconds
        Median.
    reference : str
        What ``reference_s`` is of.
    library : str
        The BLAS library of NumPy, and its threads, where NumPy is the reference.
    reference_s : float or None, seconds
        Median of it on the same data and as many threads, calls in turn; None: not timed.
    gflops : float
    bound_by : str
        What limits the best schedule.
    plan : str
        How the problem is cut, as `KernelSchedule.text` says it.
    """

    problem: str
    data_type: str
    threads: int
    promised_s: float
    bound_s: float
    estimate_s: float
    measured_s: float
    reference: str
    library: str
    reference_s: float | None
    gflops: float
    bound_by: str
    plan: str

    def row(self) -> Row:
        """Give it as a row."""
        return {name: getattr(self, name) for name in self.__slots__}


def random_array(shape: tuple[int, ...], element: Element, seed: int) -> Array:
    """Draw whole numbers from -4 to 4, so that sums are exact in every type.

    Examples
    --------
    >>> from loopsched.codegen.element import BF16
    >>> random_array((2, 3), BF16, 0).dtype
    dtype('uint16')
    """
    drawn = np.random.default_rng(seed).integers(-4, 5, shape)
    found = aligned(shape, element.numpy)
    found[...] = stored(drawn.astype(np.float64), element)
    return found


def stored(values: Array, element: Element) -> Array:
    """Store numbers as an element type does; bf16 is rounded to the nearest, ties to even.

    Examples
    --------
    >>> from loopsched.codegen.element import BF16
    >>> hex(stored(np.array([1.0]), BF16)[0])
    '0x3f80'
    """
    if element.name != "bf16":
        return values.astype(element.numpy)
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def numbers(array: Array, element: Element) -> Array:
    """Give what is stored as numbers that NumPy computes with."""
    if element.name != "bf16":
        return array
    return (array.astype(np.uint32) << 16).view(np.float32)


def check(kernel: CompiledKernel, seed: int = 0) -> list[Array]:
    """Compare a kernel with NumPy, to the last bit; give the arrays that it read.

    Raises
    ------
    LoopschedError
        If they differ.
    """
    arrays, wanted = _exact(kernel, seed)
    found = kernel(*arrays)
    if not np.array_equal(found, wanted):
        place = tuple(int(one) for one in np.argwhere(found != wanted)[0])
        raise LoopschedError(
            f"'{kernel.problem.name}': the kernel is wrong; {kernel.names[-1]}{list(place)} is "
            f"{found[place]}, NumPy gives {wanted[place]}"
        )
    return arrays


def _exact(kernel: CompiledKernel, seed: int) -> tuple[list[Array], Array]:
    """Draw what a kernel takes, and say what it has to give."""
    names, how, out = kernel.names[:-1], kernel.how, kernel.types.out
    arrays = [
        random_array(kernel.shapes[name], kernel.element(name), seed + number)
        for number, name in enumerate(names)
    ]
    given = {
        name: numbers(one, kernel.element(name)).astype(np.float64)
        for name, one in zip(names, arrays, strict=True)
    }
    found = reference(kernel.problem, given, np.empty(kernel.shapes[kernel.names[-1]]))
    if how.bias or how.relu:  # sums are rounded before
        found = numbers(stored(found, out), out).astype(np.float64)
    if how.bias:
        axes = [axis.dims[0] for axis in kernel.problem.output_tensor.axes]
        order = sorted(how.bias, key=axes.index)
        turned = given["bias"].transpose([how.bias.index(dim) for dim in order])
        shape = [n if dim in order else 1 for dim, n in zip(axes, found.shape, strict=True)]
        found += turned.reshape(shape)
    if how.relu:
        found = np.maximum(found, 0)
    return arrays, stored(found, out)


def _fits(kernel: CompiledKernel) -> None:
    """Refuse, before anything is drawn, what this machine has no memory for."""
    sizes = {name: math.prod(shape) for name, shape in kernel.shapes.items()}
    needed = sum(n * (8 + kernel.element(name).n_bytes) for name, n in sizes.items())
    needed += 16 * max(sizes.values())  # the last one drawn, as whole numbers and as real ones
    refuse_more(kernel.problem.name, "its arrays, and those that it is checked with,", needed)


TICK_S = 0.006
"""Some systems count the CPU time of other threads no more often than every 4 ms."""


def _rest() -> None:
    """Wait until no thread of this process computes: OpenBLAS's wait for more work by spinning."""
    end = perf_counter() + 0.3
    while perf_counter() < end:
        before = process_time()
        sleep(TICK_S)
        if process_time() - before < 0.001:
            return


def in_turn(
    calls: Sequence[Callable[[], object]],
    budget_s: float,
    *,
    least: int = 5,
    rests: bool = False,
) -> list[float]:
    """Call functions in turn, at least so many times each; give their medians.

    Each is called once before; what is quick is called several times at once.  With
    ``rests``, just so many times all that others left running has ended, and the function was
    called once, before it is timed: threads of its own then find their CPUs free.  Every other
    turn then goes backwards, so that no function waits for itself.
    """
    taken = []
    for call in calls:
        call()
        start = perf_counter()
        call()
        taken.append(perf_counter() - start)
    each = [max(1, int((0.02 if rests else 0.002) / max(one, 1e-9))) for one in taken]
    rounds = int(budget_s / max(sum(map(lambda a, b: a * b, taken, each)), 1e-9))
    rounds = least if rests else min(50, max(least, rounds))
    times: list[list[float]] = [[] for _ in calls]
    last, turn = calls[-1], list(zip(calls, each, times, strict=True))
    for number in range(rounds):
        for call, n, found in reversed(turn) if rests and number % 2 == 0 else turn:
            if rests:
                if call is not last:
                    _rest()
                last = call
                call()
            start = perf_counter()
            for _ in range(n):
                call()
            found.append((perf_counter() - start) / n)
    return [median(found) for found in times]


def _other(
    kernel: CompiledKernel, arrays: list[Array], out: Array, onnx: bool
) -> tuple[Callable[[], object] | None, str]:
    """Give what a kernel is timed beside, and its name.

    Raises
    ------
    LoopschedError
        If ONNX Runtime gives another result.
    """
    types, problem = kernel.types, kernel.problem
    if onnx and kernel.data_type == "fp32" and not kernel.how.bias and not kernel.how.relu:
        run = onnx_layer(problem, kernel.threads)
        if run is not None:
            if not np.array_equal(run(arrays).reshape(out.shape), out):
                raise LoopschedError(f"'{problem.name}': ONNX Runtime gives another result")
            return lambda: run(arrays), "ONNX Runtime"
    if types.compute.is_integer:
        return None, "numpy"
    given = {
        name: numbers(one, kernel.element(name)).astype(types.compute.numpy)
        for name, one in zip(kernel.names[:-1], arrays, strict=True)
    }
    room = aligned(out.shape, types.compute.numpy)
    return lambda: reference(problem, given, room), "numpy"


def measure(
    kernel: CompiledKernel, best: Evaluation, *, budget_s: float = 0.3, onnx: bool = False
) -> Measured:
    """Check a kernel, and time it beside numpy.

    Parameters
    ----------
    kernel : CompiledKernel
    best : Evaluation
        Of the best schedule on the cores that the kernel runs on.
    budget_s : float, seconds
        For timing.
    onnx : bool
        Whether ONNX Runtime computes and is timed in NumPy's place, in fp32,
        where it has the layer.

    Raises
    ------
    ProblemError
        If this machine has no memory for the arrays.
    LoopschedError
        If the kernel does not compute what NumPy does.
    """
    _fits(kernel)
    problem, arrays = kernel.problem, check(kernel)
    out = kernel(*arrays)
    calls: list[Callable[[], object]] = [lambda: kernel(*arrays, out=out)]
    other, name = _other(kernel, arrays, out, onnx)
    calls += [other] if other else []
    rests = kernel.threads > 1
    with blas_on(kernel.threads) as library:
        taken = in_turn(calls, budget_s, least=3 if rests else 5, rests=rests)
    return Measured(
        problem=problem.name,
        data_type=kernel.data_type,
        threads=kernel.threads,
        promised_s=best.time_s,
        bound_s=best.problem_bound_s,
        estimate_s=kernel.estimate_s,
        measured_s=taken[0],
        reference=name,
        library=library if other and name == "numpy" else "",
        reference_s=taken[1] if len(taken) > 1 else None,
        gflops=problem.flops / taken[0] / 1e9,
        bound_by=best.bound_by,
        plan=" | ".join(dict.fromkeys(one.text() for one in kernel.schedules)),
    )


def run_kernel(
    problem: Problem,
    arch: Arch,
    *,
    threads: int | None = None,
    data_type: str | None = None,
    n_measured: int = 1,
    onnx: bool = False,
) -> tuple[CompiledKernel, Measured]:
    """Compile a problem, search for its best schedule on as many cores, check and time it.

    Parameters
    ----------
    problem, arch, threads, data_type
        As for `compile`; ``n_measured`` is its ``measure``.
    onnx : bool
        As for `measure`.
    """
    kernel = compiled(problem, arch, threads=threads, data_type=data_type, measure=n_measured)
    sized = problem.with_element_bytes(kernel.element_bytes)
    best = search(sized, on_cores(arch, kernel.threads))
    return kernel, measure(kernel, best.evaluation, onnx=onnx)


class PlanTime(NamedTuple):
    """A plan of a part of a kernel: its place in the model's order, its estimate, its time.

    One that was drawn, and has no place, has the place 0.
    """

    part: int
    rank: int
    estimate_s: float
    measured_s: float
    plan: str


NEAR_BEST = 1.25
"""Plans that take so many times as long as the best are timed once more."""


def measure_plans(
    kernel: CompiledKernel, n: int, *, seed: int = 0, budget_s: float = 0.3
) -> list[PlanTime]:
    """Time plans of each part of a kernel in turn: the model's best, and others drawn uniformly.

    Those that come near the best are timed again, and of these the five best and the
    model's first once more: only the last times count, so that the best of many is no
    lucky one.

    Parameters
    ----------
    kernel : CompiledKernel
    n : int
        Plans of a part: half of them the best, half drawn from register tiles
        that fit the registers and cache tiles whose packed blocks fit the last cache.
    seed : int
    budget_s : float, seconds
        For timing each part, each time.

    Returns
    -------
    list of PlanTime
        Empty where no model chooses.
    """
    arrays = {name: kernel.empty(name) for name in kernel.names}
    for one in arrays.values():
        one.fill(1)
    found = []
    for number, (task, plans) in enumerate(chosen_plans(kernel, n, seed)):
        parts = [compiled_plan(kernel, *one) for one in plans]
        calls = [
            partial(kernel._share, part, [arrays[one].ctypes.data for one in part.tensors])
            for part in parts
        ]
        rests = kernel.threads > 1
        taken = in_turn(calls, budget_s, least=3, rests=rests)
        near = [at for at, one in enumerate(taken) if one <= NEAR_BEST * min(taken)]
        for _ in range(2):
            again = in_turn([calls[at] for at in near], budget_s, rests=rests)
            for at, time_s in zip(near, again, strict=True):
                taken[at] = time_s
            near = sorted({0, *sorted(near, key=taken.__getitem__)[:5]})
        n_best = -(-n // 2)
        found += [
            PlanTime(number, at + 1 if at < n_best else 0, part.estimate_s, time_s, told)
            for at, (part, time_s) in enumerate(zip(parts, taken, strict=True))
            for told in [_told(task, plans[at][2], kernel)]
        ]
    return found


MEASURED = 8
"""``measure=8`` chooses among plans that are timed here, too."""


def chosen_plans(
    kernel: CompiledKernel, n: int, seed: int = 0
) -> list[tuple[Contraction, list[Choice]]]:
    """List so many plans of each part of a kernel: half the model's best, half drawn."""
    try:
        tasks = contractions(kernel.problem, kernel._elements)
    except NotImplementedError:
        return []
    found, draw, n_best = [], random.Random(seed), -(-n // 2)
    for task in tasks:
        best = dict[tuple[bool, Plan], Choice]()
        for few in sorted({1, min(MEASURED, n_best), n_best}):  # what `compile` takes comes first
            for choice in ranked(task, kernel.core, kernel.threads, n=few)[:few]:
                best.setdefault((choice[1] is task, choice[2]), choice)
        plans = list(best.values())[:n_best]
        known = {*best}
        for _ in range(1000 * n):
            if len(plans) == n:
                break
            made = _drawn(task, kernel, draw)
            if made and (made[1] is task, made[2]) not in known:
                known.add((made[1] is task, made[2]))
                plans.append(made)
        found.append((task, plans))
    return found


def _drawn(task: Contraction, kernel: CompiledKernel, draw: random.Random) -> Choice | None:
    """Draw a plan; None if it does not fit."""
    core, one = kernel.core, draw.choice((task, task.swapped()))
    kinds = roles(one)

    def walk(kind: str, operand: Operand) -> Walk:
        dims = tuple(sorted(kinds[kind], key=lambda dim: -abs(operand.step(dim))))
        if kind == "sums" and is_rounded(one):
            return Walk(dims, 0, one.size(dims[0]) if dims else 1)
        cut = draw.randrange(len(dims)) if dims else 0
        return Walk(dims, cut, draw.randint(1, one.size(dims[cut])) if dims else 1)

    rows, n = draw.randint(1, core.registers), draw.randint(1, 6)
    walks = walk("rows", one.out), walk("cols", one.out), walk("sums", one.left)
    packs = draw.random() < 0.5, draw.random() < 0.5
    batch, asks = tuple(kinds["batch"]), core.asks_l3
    plan = Plan(batch, *walks, rows, n * core.lanes, 1, *packs, asks_l3=asks)
    tall, wide = (length(inner_sizes(one, each, each.block)) for each in walks[:2])
    is_tile = rows * n + n + 1 <= core.registers and rows <= tall and (n - 1) * core.lanes < wide
    in_place = [
        side
        for side, is_packed in zip(("left", "right"), packs, strict=True)
        if not is_packed and not is_read_in_place(one, plan, side)
    ]
    if not is_tile or in_place:
        return None
    kind = kernel.types.compute
    engine = Engine(LlvmText(kind, core.lanes), one, plan, "room")
    if engine.work_room * kind.n_bytes > core.last_bytes:
        return None
    return Model(one, core).cycles(plan, kernel.threads), one, plan


def compiled_plan(kernel: CompiledKernel, cycles: float, task: Contraction, plan: Plan) -> Part:
    """Compile a plan of a part of a kernel."""
    return kernel._compiled([(cycles, task, plan)])[0]


def _told(task: Contraction, plan: Plan, kernel: CompiledKernel) -> str:
    kind = kernel.types.compute, kernel.core.lanes
    return of_plan(task, plan, kind, kernel.threads, 0.0).text()
