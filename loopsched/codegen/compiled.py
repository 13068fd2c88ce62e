"""Kernels: problems compiled for this CPU, called on arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from math import nan
from operator import add
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from loopsched.base.arguments import Checker, near, show
from loopsched.base.arrays import Array
from loopsched.base.errors import ProblemError
from loopsched.base.machine_code import address, linked, widest_vector
from loopsched.base.units import count
from loopsched.codegen.choose import Choice, core_of, ranked
from loopsched.codegen.contraction import Contraction, contractions, row_major, stored_shape
from loopsched.codegen.core import Core
from loopsched.codegen.described import KernelSchedule, of_nest, of_plan
from loopsched.codegen.element import DATA_TYPES, Element, type_of
from loopsched.codegen.engine import Engine, form
from loopsched.codegen.epilogue import Epilogue, bias_steps
from loopsched.codegen.general import Nest
from loopsched.codegen.kept import BUILDING, Note, generator, kept
from loopsched.codegen.llvm_text import LlvmText
from loopsched.codegen.memory import PAGE, aligned, refuse_more
from loopsched.codegen.plan import Plan
from loopsched.codegen.stages import General
from loopsched.codegen.threads import crew, n_cpus
from loopsched.codegen.window import Window
from loopsched.machines.arch import Arch
from loopsched.machines.arch_file import as_arch
from loopsched.problems.problem import Problem

_PACKED = 1  # place of the tensor that can be packed
_NAME = "contract"
_MOST_LAYOUTS = 64
"""Of one kernel whose machine code stays loaded: what is not used by another is let go."""
_MOST_FUNCTIONS = 256
_LEAST_ROUNDS, _COMPARED_S = 5, 1.5
"""So often, and for so long, plans are timed in turn when the fastest of several is kept."""


@dataclass(frozen=True, slots=True)
class Part:
    """A step of a kernel: the arrays it is given, how it is cut, and its machine code."""

    tensors: tuple[str, ...]
    plan: Plan | Nest | None
    estimate_s: float
    run: Any
    n_jobs: int
    room: int
    arrays: tuple[int, ...] = ()
    """Places of its tensors among the arrays of a call."""
    packing: Part | None = None
    """What packs the second tensor, if it is given packed."""
    packed_bytes: int = 0
    starts: tuple[int, ...] = ()
    """Bytes from where its tensors begin to where it does; (): none."""
    place: int = field(init=False)
    """Address of its machine code."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "place", ctypes.cast(self.run, ctypes.c_void_p).value or 0)

    def started(self, task: Contraction) -> Part:
        """Give the same for a contraction that differs only in where its operands begin."""
        starts = {one.name: one.offset * one.element.n_bytes for one in task.operands}
        first, second, out = (starts[name] for name in self.tensors)
        if not (first or second or out):
            return self
        if not self.packing:
            return replace(self, starts=(first, second, out))
        packing = replace(self.packing, starts=(first, second, 0))
        return replace(self, packing=packing, starts=(first, 0, out))


class How(NamedTuple):
    """How a kernel is made: its threads, how many plans are timed, and what follows the sums."""

    threads: int
    measure: int = 1
    bias: tuple[str, ...] = ()
    relu: bool = False


class CompiledKernel:
    """A problem compiled for this CPU.

    Made by `compile`.

    Examples
    --------
    >>> import loopsched, numpy as np
    >>> kernel = loopsched.compile(loopsched.gemm(m=4, n=3, k=2), "host")
    >>> kernel(np.ones((4, 2), "f4"), np.ones((2, 3), "f4"))[0]
    array([2., 2., 2.], dtype=float32)
    """

    def __init__(self, problem: Problem, core: Core, data_type: str, how: How) -> None:
        self.problem, self.core, self.data_type, self.how = problem, core, data_type, how
        self.types = DATA_TYPES[data_type]
        read = [tensor.name for tensor in problem.tensors if tensor.name != problem.output]
        self.shapes = {t.name: stored_shape(problem, t) for t in problem.tensors}
        if how.bias:
            read.append("bias")
            self.shapes["bias"] = tuple(problem.size[dim] for dim in how.bias)
        self.names = (*read, problem.output)
        """Arrays in the order in which they are given; the output is the last."""
        self._parts: dict[tuple[tuple[tuple[int, ...], ...], bool], list[Part]] = {}
        self._rooms: list[tuple[int, int, Array]] = []
        self._known: dict[tuple[Any, ...], _Known] = {}
        self.parts(self._plain_steps())

    def __reduce__(self) -> tuple[Any, ...]:
        return CompiledKernel, (self.problem, self.core, self.data_type, self.how)

    def _plain_steps(self) -> tuple[tuple[int, ...], ...]:
        return tuple(row_major(self.shapes[name]) for name in self.names)

    @property
    def element_bytes(self) -> dict[str, int]:
        """Bytes of an element of each tensor."""
        return {one.name: self.element(one.name).n_bytes for one in self.problem.tensors}

    @property
    def threads(self) -> int:
        """How many threads share the work."""
        return self.how.threads

    def element(self, name: str) -> Element:
        """Type of an array; a bias is stored as the output is."""
        is_bias = name == "bias" and bool(self.how.bias)
        return self.types.out if is_bias or name == self.problem.output else self.types.read

    @property
    def plans(self) -> list[Plan | Nest]:
        """How the problem is cut, for contiguous arrays."""
        return [part.plan for part in self.parts(self._plain_steps()) if part.plan]

    @property
    def schedules(self) -> tuple[KernelSchedule, ...]:
        """How the problem is cut in full, for contiguous arrays; one for each of its parts.

        Examples
        --------
        >>> import loopsched
        >>> problem = loopsched.gemm(m=64, n=64, k=64)
        >>> (schedule,) = loopsched.compile(problem, "host", threads=1).schedules
        >>> schedule == loopsched.kernel_schedules(problem, "host", threads=1)[0]
        True
        """
        kind, parts = (self.types.compute, self.core.lanes), self.parts(self._plain_steps())
        nests = [part.plan for part in parts if isinstance(part.plan, Nest)]
        if nests:
            return (of_nest(nests[-1], self.core.lanes, self.threads),)
        cut = [(part.plan, part.estimate_s) for part in parts if isinstance(part.plan, Plan)]
        tasks = contractions(self.problem, self._elements)
        return tuple(
            of_plan(task, plan, kind, self.threads, estimate_s)
            for task, (plan, estimate_s) in zip(tasks, cut, strict=True)
        )

    @property
    def _elements(self) -> dict[str, Element]:
        return {name: self.element(name) for name in self.names}

    @property
    def estimate_s(self) -> float:
        """Seconds that a call is expected to take, for contiguous arrays."""
        return sum(part.estimate_s for part in self.parts(self._plain_steps()))

    def parts(self, steps: tuple[tuple[int, ...], ...], *, is_packed: bool = False) -> list[Part]:
        """Return the machine code for arrays with these strides, in elements.

        Where the second tensor is given packed, each part that reads it packed takes one
        more array.
        """
        with BUILDING:
            if (steps, is_packed) not in self._parts:
                if len(self._parts) == _MOST_LAYOUTS:
                    # The first is that of contiguous arrays, which plans are told of.
                    del self._parts[list(self._parts)[1]]
                    self._known.clear()
                given = self.names[_PACKED] if is_packed else None
                found: list[Part] = []
                for one in self._built(dict(zip(self.names, steps, strict=True)), given):
                    arrays = tuple(map(self.names.index, one.tensors))
                    if one.packing:
                        n_more = sum(part.packing is not None for part in found)
                        arrays = (arrays[0], len(self.names) + n_more, arrays[2])
                    found.append(replace(one, arrays=arrays))
                self._parts[steps, is_packed] = found
            return self._parts[steps, is_packed]

    def empty(self, name: str) -> Array:
        """Give memory for one of its arrays, not written yet.

        Its first element lies at a multiple of 64 bytes, as those of PyTorch do and those of
        NumPy seldom: kernels that read or write arrays in place take up to a quarter less time.

        Parameters
        ----------
        name : str
            One of `names`.

        Raises
        ------
        ProblemError
            If there is no such array.

        Examples
        --------
        >>> from loopsched import compile, gemm
        >>> kernel = compile(gemm(m=8, n=16, k=4), "ryzen_7950x")
        >>> kernel.empty("C").shape
        (8, 16)
        """
        if name not in self.shapes:
            raise ProblemError(
                f"'{self.problem.name}' has no array {show(name)}; {near(name, self.names)}"
            )
        return aligned(self.shapes[name], self.element(name).numpy)

    def pack(self, array: Array) -> Packed:
        """Put the second tensor in the order in which calls read it, once for many calls.

        That is the weight of a convolution, and B of a product.

        Parameters
        ----------
        array : numpy.ndarray
            It is copied: what is written to it later changes nothing.

        Returns
        -------
        Packed
            What calls of this kernel take in place of the array.

        Raises
        ------
        ProblemError
            If its shape or type is not that of the problem, or if other than
            two tensors are multiplied.

        Examples
        --------
        >>> import loopsched, numpy as np
        >>> kernel = loopsched.compile(loopsched.gemm(m=4, n=3, k=2), "host")
        >>> packed = kernel.pack(np.ones((2, 3), "f4"))
        >>> kernel(np.ones((4, 2), "f4"), packed)[0]
        array([2., 2., 2.], dtype=float32)
        """
        n_read = len(self.problem.tensors) - 1
        if n_read != 2:
            raise ProblemError(
                f"'{self.problem.name}' multiplies {n_read} tensors; of two, the second is packed"
            )
        self._check_one(self.names[_PACKED], array)
        return Packed(self, array)

    def _built(self, steps: Mapping[str, Sequence[int]], given: str | None = None) -> list[Part]:
        elements = self._elements
        try:
            tasks = contractions(self.problem, elements, steps)
        except NotImplementedError:
            text = LlvmText(self.types.compute, self.core.lanes)
            found = build_any(General(text, self.problem, elements, steps, self.core.registers))
        else:
            known = {task.based(): task for task in reversed(tasks)}
            if self.how.measure > 1:
                cuts = [self._best(*both, steps, given) for both in known.items()]
                parts = self._compiled(cuts)
            else:
                choose = partial(self._first, given)
                parts = self._chosen([*known], choose, f"{self.core} {self.threads} {given}")
            made = dict(zip(known, parts, strict=True))
            found = [made[task.based()].started(task) for task in tasks]
        if self.how.bias or self.how.relu:
            found.append(self._epilogue(steps))
        return found

    def _first(self, given: str | None, task: Contraction) -> Choice:
        """Choose how a contraction is cut, by the model."""
        return ranked(task, self.core, self.threads, given, n=1)[0]

    def _best(
        self,
        based: Contraction,
        task: Contraction,
        steps: Mapping[str, Sequence[int]],
        given: str | None,
    ) -> Choice:
        """Choose how a contraction is cut: by time among its best plans."""
        n = self.how.measure
        cuts = ranked(based, self.core, self.threads, given, n=n)[:n]
        if len(cuts) == 1:
            return cuts[0]
        parts = [self._compiled([one])[0].started(task) for one in cuts]
        return cuts[self._fastest(parts, steps)]

    def _compiled(self, cuts: Sequence[Choice]) -> list[Part]:
        """Compile contractions as they are cut."""
        left = iter(cuts)
        return self._chosen([task for _, task, _ in cuts], lambda _: next(left), str(cuts))

    def _chosen(
        self, tasks: Sequence[Contraction], choose: Callable[[Contraction], Choice], what: str
    ) -> list[Part]:
        """Compile contractions as they are chosen to be cut, for a reason that ``what`` says."""

        def timed(one: Contraction) -> Choice:
            cycles, task, plan = choose(one)
            return cycles / self.core.hertz, task, plan

        return build(tasks, timed, (self.types.compute, self.core.lanes), what)

    def _epilogue(self, steps: Mapping[str, Sequence[int]]) -> Part:
        """Compile what follows the sums."""
        problem, how, shape = self.problem, self.how, self.shapes[self.problem.output]
        axes = [axis.dims[0] for axis in problem.output_tensor.axes]
        moves = bias_steps(how.bias, steps["bias"], axes) if how.bias else ()
        what = Epilogue(shape, tuple(steps[problem.output]), moves, how.relu)

        text = LlvmText(self.types.compute, self.core.lanes)

        def written() -> Iterator[str]:
            what.write(text, self.types, _NAME)
            yield text.text()

        binaries = kept(f"{generator()} {what} {self.types} {text.lanes}", written)
        (run,) = _functions(binaries, (_NAME,), 3)
        first = "bias" if how.bias else problem.output
        return Part((first, first, problem.output), None, 0.0, run, what.n_jobs, 0)

    def _fastest(self, parts: list[Part], steps: Mapping[str, Sequence[int]]) -> int:
        """Run parts in turn, and say which takes least."""
        reach = {
            name: sum((n - 1) * step for n, step in zip(shape, steps[name], strict=True)) + 1
            for name, shape in self.shapes.items()
        }
        n_bytes = sum(n * self.element(name).n_bytes for name, n in reach.items())
        refuse_more(self.problem.name, "arrays that plans are timed with", n_bytes)
        rooms = {name: aligned((n,), self.element(name).numpy) for name, n in reach.items()}
        for one in rooms.values():
            one.fill(0)  # what was never written would be read from one page
        packed = [self._new_room(part.packed_bytes) for part in parts]
        rounds, end = list[list[float]](), perf_counter() + _COMPARED_S
        while len(rounds) < _LEAST_ROUNDS or perf_counter() < end:
            rounds.append([])
            for number, part in enumerate(parts):
                addresses = [address(rooms[name]) for name in part.tensors]
                if part.packing:
                    addresses[_PACKED] = packed[number][0]
                start = perf_counter()
                self._share(part, addresses)
                rounds[-1].append(perf_counter() - start)
        times = np.array(rounds)  # shares of a round: the clock may change between two
        return int(np.median(times / times.sum(axis=1, keepdims=True), axis=0).argmin())

    def __call__(self, *arrays: Array, out: Array | None = None) -> Array:
        """Compute the output.

        Parameters
        ----------
        *arrays : numpy.ndarray
            The tensors that are read, in the problem's order; then, if wanted,
            the output.  Any steps of axes that are whole elements, none of them
            negative, are read in place.
        out : numpy.ndarray, optional
            Where to write; by default a new array.

        Raises
        ------
        ProblemError
            If shapes or types are not those of the problem.
        """
        if out is None and len(arrays) == len(self.names):
            *arrays, out = arrays  # type: ignore[assignment]
        if out is None:
            out = self.empty(self.names[-1])
        given = [*arrays, out]
        packed = self._unpacked(given)
        found: list[Any] = []
        for one in given:
            if not isinstance(one, np.ndarray):
                return self._placed(given, (), packed)
            found += (type(one), one.shape, one.strides, one.dtype)
        kinds = tuple(found)
        known = (packed.known if packed else self._known).get(kinds)
        places = [address(one) for one in given]
        if known is None or not out.flags.writeable or not known.takes(places):
            return self._placed(given, kinds, packed)
        places += known.stores
        for part in known.parts:
            self._share(part, [places[at] for at in part.arrays])
        return out

    def _unpacked(self, given: list[Any]) -> Packed | None:
        """Put the array in the place of what is packed, and give that."""
        found = None
        for at, one in enumerate(given):
            if type(one) is Packed:
                if one.kernel is not self or at != _PACKED:
                    where = "this kernel's" if one.kernel is self else "another kernel's"
                    raise ProblemError(
                        f"array {at + 1} is {where} packed '{one.name}'; a kernel takes "
                        f"what it packed itself, as array {_PACKED + 1}"
                    )
                found, given[at] = one, one.array
        return found

    def _placed(
        self, given: list[Array], kinds: tuple[Any, ...], packed: Packed | None = None
    ) -> Array:
        """Check arrays, copy those that machine code cannot address, and compute."""
        self._check(given)
        *read, out = given
        placed = [_placed(one) for one in given]
        is_apart = not any(np.may_share_memory(out, one) for one in read)
        if placed[-1] is not out or not is_apart or not _is_nested(out):
            placed[-1] = aligned(out.shape, out.dtype.newbyteorder("="))
        steps = tuple(_steps(one) for one in placed)
        parts = self.parts(steps, is_packed=packed is not None)
        stores = packed.stores(steps, parts) if packed else []
        if all(one is other for one, other in zip(placed, given, strict=True)):
            ends = tuple(np.lib.array_utils.byte_bounds(one) for one in given)
            spans = tuple(end - start for start, end in ends)
            known = packed.known if packed else self._known
            if len(known) == _MOST_LAYOUTS:
                known.clear()
            known[kinds] = _Known(parts, spans, tuple(one.itemsize for one in given), stores)
        addresses = [*map(address, placed), *stores]
        for part in parts:
            self._share(part, [addresses[at] for at in part.arrays])
        if placed[-1] is not out:
            out[...] = placed[-1]
        return out

    def _check(self, given: Sequence[Array]) -> None:
        if len(given) != len(self.names):
            wanted = ", ".join(self.names[:-1])
            raise ProblemError(f"arrays to read: {len(given) - 1} are given; {wanted} are needed")
        for name, one in zip(self.names, given, strict=True):
            self._check_one(name, one)
        if not given[-1].flags.writeable:
            raise ProblemError(f"'{self.names[-1]}' cannot be written")

    def _check_one(self, name: str, one: Any) -> None:
        element = self.element(name)
        if not isinstance(one, np.ndarray) or isinstance(one, np.ma.MaskedArray):
            kind = type(one).__name__
            raise ProblemError(f"'{name}' is of type {kind}; a NumPy array is needed")
        if one.shape != self.shapes[name]:
            raise ProblemError(f"'{name}' has shape {one.shape}; {self.shapes[name]} is needed")
        if one.dtype.str[1:] not in element.numpy_kinds:
            raise ProblemError(
                f"'{name}' has elements of {one.dtype}; {element.numpy} ({element.name}) is needed"
            )

    def _share(self, part: Part, addresses: Sequence[int]) -> None:
        """Run the jobs of a part on all threads."""
        if part.starts:
            addresses = [*map(add, addresses, part.starts)]
        n = part.n_jobs if part.n_jobs < self.threads else self.threads
        if n == 1:
            room = self._room(part.room)
            part.run(*addresses, room[0], 0, part.n_jobs)
            self._rooms.append(room)
            return
        rooms = [self._room(part.room) for _ in range(n)]
        places = [one[0] for one in rooms]
        if not crew(n).run(part.place, addresses, places, part.n_jobs):
            part.run(*addresses, places[0], 0, part.n_jobs)
        self._rooms += rooms[::-1]  # each thread takes again what its own cache holds

    def _room(self, n_bytes: int) -> tuple[int, int, Array]:
        """Give room of a thread: its address on a page of its own, and its size."""
        while self._rooms:
            try:
                room = self._rooms.pop()
            except IndexError:  # another thread was quicker
                break
            if room[1] >= n_bytes:
                return room
        return self._new_room(n_bytes)

    @staticmethod
    def _new_room(n_bytes: int) -> tuple[int, int, Array]:
        # Zero: tiles multiply by lanes that nothing is copied into, and what memory held before
        # would make subnormal numbers, for each of which Intel's cores take some 100 cycles.
        room = aligned((n_bytes,), np.uint8, PAGE, np.zeros)
        return room.ctypes.data, n_bytes, room


class Packed:
    """The second tensor of a kernel, copied and in the order in which its calls read it.

    Made by `CompiledKernel.pack`.  It never changes. Calls whose arrays are not row-major
    pack it again, once for each layout.
    """

    def __init__(self, kernel: CompiledKernel, array: Array) -> None:
        self.kernel, self.name = kernel, kernel.names[_PACKED]
        self.array = np.array(array, kernel.element(self.name).numpy, order="C")
        """A copy of what was given; it cannot be written."""
        self.array.flags.writeable = False
        self.known: dict[tuple[Any, ...], _Known] = {}
        self._stores: dict[tuple[tuple[int, ...], ...], list[tuple[int, int, Array]]] = {}
        steps = kernel._plain_steps()
        self.stores(steps, kernel.parts(steps, is_packed=True))

    def __reduce__(self) -> tuple[Any, ...]:
        return Packed, (self.kernel, self.array)

    def stores(self, steps: tuple[tuple[int, ...], ...], parts: Sequence[Part]) -> list[int]:
        """Return the addresses at which the parts of its kernel find it packed."""
        if steps not in self._stores:
            kept = []
            for part in parts:
                if part.packing:
                    room = self.kernel._new_room(part.packed_bytes)
                    place = address(self.array)
                    self.kernel._share(part.packing, (place, place, room[0]))
                    kept.append(room)
            self._stores[steps] = kept
        return [room[0] for room in self._stores[steps]]


class _Known(NamedTuple):
    """What runs for arrays of some shapes and steps, and what their addresses must keep to."""

    parts: list[Part]
    spans: tuple[int, ...]
    sizes: tuple[int, ...]
    stores: list[int]

    def takes(self, places: Sequence[int]) -> bool:
        """Whether arrays are aligned, and the last overlaps no other."""
        *read, out = places
        if out % self.sizes[-1]:
            return False
        end = out + self.spans[-1]
        for place, span, size in zip(read, self.spans, self.sizes, strict=False):
            if place % size or (place < end and out < place + span):
                return False
        return True


def _placed(one: Array) -> Array:
    """Give an array that machine code can address: whole steps above zero, in native order."""
    steps = [step for step, n in zip(one.strides, one.shape, strict=True) if n > 1]
    is_whole = all(step > 0 and step % one.itemsize == 0 for step in steps)
    if is_whole and one.dtype.isnative and one.flags.aligned:
        return one
    placed = aligned(one.shape, one.dtype.newbyteorder("="))
    placed[...] = one
    return placed


def _is_nested(one: Array) -> bool:
    """Whether each axis steps over all that the axes inside reach: no two elements are one.

    Examples
    --------
    >>> square, windows = np.zeros((4, 4)), np.lib.stride_tricks.sliding_window_view(np.zeros(4), 2)
    >>> _is_nested(square[::2].T), _is_nested(windows)
    (True, False)
    """
    reach = one.itemsize
    for step, n in sorted((step, n) for step, n in zip(one.strides, one.shape, strict=True)):
        if n > 1 and step < reach:
            return False
        reach += step * (n - 1)
    return True


def _steps(one: Array) -> tuple[int, ...]:
    """Say how many elements each axis steps; those of one element, as if it were contiguous."""
    plain = row_major(one.shape)
    return tuple(
        step // one.itemsize if n > 1 else alone
        for step, n, alone in zip(one.strides, one.shape, plain, strict=True)
    )


def build(
    tasks: Sequence[Contraction],
    choose: Callable[[Contraction], Choice],
    kind: tuple[Element, int],
    what: str,
) -> list[Part]:
    """Compile contractions as they are chosen to be cut, or load what was compiled before.

    Parameters
    ----------
    tasks : sequence of Contraction
    choose : callable
        Says how to cut one of them: seconds, what is cut, and a plan. The first are compiled
        while it is asked for others; where all is kept it is not asked.
    kind : (Element, int)
        What is computed with, and the lanes of a vector.
    what : str
        All that this choice depends on, besides the contraction.
    """
    compute, texts = kind[0], dict[int, LlvmText]()
    notes, programs = list[Note](), list[tuple[Engine | Window, Engine | None]]()

    def begun(is_swapped: bool, plan: Plan) -> None:
        at, packer = len(programs), None
        task = tasks[at].swapped() if is_swapped else tasks[at]
        lanes = plan.tile_cols if plan.slides else kind[1]
        text = texts.setdefault(lanes, LlvmText(compute, lanes))
        if plan.is_right_given:
            packer = Engine(text, task, plan, f"pack{at}", only_packs=True)
        programs.append((form(plan)(text, task, plan, f"{_NAME}{at}"), packer))

    def written() -> Iterator[str]:
        for one in tasks:
            seconds, task, plan = choose(one)
            notes.append((seconds, task != one, plan))
            begun(*notes[-1][1:])
            program, packer = programs[-1]
            program.write()
            if packer:
                packer.write()
            for text in texts.values():
                yield from text.pieces(is_whole=len(notes) == len(tasks))

    binaries = kept(f"{generator()} {kind} {tasks} {what}", written, notes)
    for note in notes[len(programs) :]:
        begun(*note[1:])
    names = [one.name for both in programs for one in both if one]
    runs = dict(zip(names, _functions(binaries, tuple(names), 3), strict=True))
    return [_part(runs, note[0], *both) for note, both in zip(notes, programs, strict=True)]


def _part(
    runs: Mapping[str, Any],
    seconds: float,
    one: Engine | Window,
    packer: Engine | None,
) -> Part:
    """Give the step that a program is, and that of what packs for it."""
    n_bytes = one.text.element.n_bytes
    operands = one.task.left.name, one.task.right.name, one.task.out.name
    room = one.work_room * n_bytes + PAGE
    made = Part(operands, one.plan, seconds, runs[one.name], one.n_jobs, room)
    if packer is None:
        return made
    packing = Part(operands, None, 0.0, runs[packer.name], packer.n_jobs, PAGE)
    return replace(made, packing=packing, packed_bytes=packer.packed_room * n_bytes)


def build_any(general: General) -> list[Part]:
    """Compile a problem that is no sum of products of two operands; nothing estimates its time."""
    text, nest = general.text, general.nest()
    stages = general.write("run")
    program = text.text()
    binaries = kept(program, lambda: [program])
    return [
        Part(
            one.tensors,
            nest,
            nan,
            _functions(binaries, (one.name,), len(one.tensors))[0],
            one.n_jobs,
            one.room * text.element.n_bytes + PAGE,
        )
        for one in stages
    ]


@lru_cache(_MOST_FUNCTIONS)
def _functions(binaries: tuple[bytes, ...], names: tuple[str, ...], n_tensors: int) -> list[Any]:
    """Load functions of tensors, room, and the first and the last of their jobs."""
    pointers = [ctypes.c_void_p] * (n_tensors + 1)
    return linked(binaries, names, (None, *pointers, ctypes.c_int64, ctypes.c_int64))


def compile(  # noqa: A001 - the name under which users know it
    problem: Problem,
    arch: Arch | str = "host",
    *,
    threads: int | None = None,
    data_type: str | None = None,
    measure: int = 1,
    bias: str | tuple[str, ...] = (),
    relu: bool = False,
) -> CompiledKernel:
    """Compile a problem for this CPU.

    Parameters
    ----------
    problem : Problem
    arch : Arch or str
        A machine with a ``cpu`` part, such as ``load_arch("host")``. Plans are chosen for
        it; the code is for this CPU, with the widest vectors that both have.
    threads : int, optional
        By default as many as the machine has units, and this process may use.
    data_type : {'fp32', 'fp64', 'bf16', 'int8'}, optional
        Of the tensors that are read; bf16 and int8 are summed in fp32 and int32, and int8
        gives int32.  By default the type of the problem's element size.
    measure : int
        How many of the model's best plans to compile and time; the fastest is
        kept.  1: the model alone chooses.
    bias : str or tuple of str
        Dimensions of the output over which a bias is added, such as ``"K"`` of
        a convolution or ``"N"`` of a GEMM; calls then take it as an array
        before the output, of the output's type.
    relu : bool
        Whether negative results then become zero.

    Returns
    -------
    CompiledKernel

    Raises
    ------
    ProblemError, ArchError
        If the problem, its type or the machine cannot be compiled for.

    See Also
    --------
    search : The same question for any machine, answered by a model alone.

    References
    ----------
    T. M. Low et al., *Analytical Modeling Is Enough for High-Performance BLIS*, ACM TOMS 43(2),
    2016; R. Li et al., *Analytical Characterization and Design Space Exploration for
    Optimization of CNNs* (MOpt), arXiv:2101.09808.
    """
    if not isinstance(problem, Problem):
        raise ProblemError(f"problem is {show(problem)}; a Problem is needed, as gemm() gives one")
    machine = as_arch(arch)
    check = Checker("compile", ProblemError)
    if data_type is None:
        data_type = type_of(problem)
    data_type = check.choice("data_type", data_type, tuple(DATA_TYPES))
    n_bytes = DATA_TYPES[data_type].compute.n_bytes
    core, _ = core_of(machine, n_bytes)
    if widest := widest_vector():
        core = replace(core, lanes=min(core.lanes, widest // n_bytes))
    n_threads = _threads(check, machine, threads)
    n_measured = check.count("measure", measure)
    over = _bias(check, problem, bias)
    is_cut = check.flag("relu", relu)
    if (over or is_cut) and any(len(axis.dims) != 1 for axis in problem.output_tensor.axes):
        check.fault(f"'{problem.name}': bias and relu need one dimension an output axis")
    check.finish()
    return CompiledKernel(problem, core, data_type, How(n_threads, n_measured, over, is_cut))


def n_threads_of(arch: Arch, threads: int | None = None) -> int:
    """Count the threads of a kernel as `compile` does, before anything is compiled.

    Raises
    ------
    ProblemError
        If there are more than the machine has cores, or this process may use CPUs.
    """
    check = Checker("compile", ProblemError)
    n_threads = _threads(check, arch, threads)
    check.finish()
    return n_threads


def _threads(check: Checker, machine: Arch, threads: int | None) -> int:
    cores, here = machine.compute.units, n_cpus()
    most = min(cores, here)
    n_threads = most if threads is None else check.count("threads", threads)
    if n_threads > most:
        possible = f"1 to {most} are" if most > 1 else "only 1 is"
        check.fault(
            f"threads is {show(threads)}; {possible} possible: '{machine.name}' has "
            f"{count(cores, 'core')}, and this process may use {count(here, 'CPU')}"
        )
    return n_threads


def _bias(check: Checker, problem: Problem, given: object) -> tuple[str, ...]:
    """Check the dimensions that a bias is over."""
    over = (given,) if isinstance(given, str) else given
    if not isinstance(over, (tuple, list)):
        check.fault(f"bias is {show(given)}; a dimension is needed, or several in a tuple")
        return ()
    out = problem.output_tensor
    stored = zip(out.axes, stored_shape(problem, out), strict=True)
    plain = {a.dims[0] for a, n in stored if len(a.dims) == 1 and n == problem.size[a.dims[0]]}
    for dim in over:
        if not isinstance(dim, str) or dim not in plain:
            check.fault(f"bias is over {show(dim)}; {near(dim, sorted(plain))}")
            return ()
    if len(set(over)) < len(over):
        check.fault(f"bias is over {show(over)}; each dimension may be named once")
    if over and any(tensor.name == "bias" for tensor in problem.tensors):
        check.fault(f"'{problem.name}': a tensor of the problem is named 'bias' already")
    return tuple(over)
