"""Kernels: problems compiled for this CPU, called on arrays."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from math import inf, nan
from pathlib import Path
from threading import Lock
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loopsched.base.arguments import is_count, show
from loopsched.base.errors import ProblemError, nearest
from loopsched.base.machine_code import host_name, linked, object_code
from loopsched.codegen.choose import Core, core_of, ranked
from loopsched.codegen.contraction import Contraction, contractions, row_major, stored_shape
from loopsched.codegen.element import DATA_TYPES, Element
from loopsched.codegen.engine import Engine
from loopsched.codegen.general import Nest
from loopsched.codegen.llvm_text import LlvmText
from loopsched.codegen.plan import Plan
from loopsched.codegen.stages import General
from loopsched.codegen.window import Window
from loopsched.machines.arch import Arch
from loopsched.problems.problem import Problem

_PAGE = 4096
Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a problem, how it is cut, and the machine code that computes it.

    ``tensors`` are those whose addresses the code takes.
    """

    tensors: tuple[str, ...]
    plan: Plan | Nest
    estimate_s: float
    run: Any
    n_jobs: int
    room: int


@lru_cache(maxsize=1)
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max(1, (os.cpu_count() or 2) - 1), "loopsched")


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

    def __init__(
        self, problem: Problem, core: Core, data_type: str, threads: int, n_measured: int = 1
    ) -> None:
        self.problem, self.core, self.data_type, self.threads = problem, core, data_type, threads
        self.types = DATA_TYPES[data_type]
        self._n_measured = n_measured
        read = [tensor.name for tensor in problem.tensors if tensor.name != problem.output]
        self.names = (*read, problem.output)
        """Tensors in the order in which arrays are given; the output is the last."""
        self.shapes = {t.name: stored_shape(problem, t) for t in problem.tensors}
        self._parts: dict[tuple[tuple[int, ...], ...], list[Part]] = {}
        self._rooms: list[Array] = []
        self._lock, self._room_lock = Lock(), Lock()
        self.parts(self._plain_steps())

    def _plain_steps(self) -> tuple[tuple[int, ...], ...]:
        return tuple(row_major(self.shapes[name]) for name in self.names)

    @property
    def element_bytes(self) -> dict[str, int]:
        """Bytes of an element of each tensor."""
        kinds = {name: self.types.read for name in self.names}
        kinds[self.names[-1]] = self.types.out
        return {name: kind.n_bytes for name, kind in kinds.items()}

    @property
    def plans(self) -> list[Plan | Nest]:
        """How the problem is cut, for contiguous arrays."""
        return [part.plan for part in self._parts[self._plain_steps()]]

    @property
    def estimate_s(self) -> float:
        """Seconds that a call is expected to take, for contiguous arrays."""
        return sum(part.estimate_s for part in self._parts[self._plain_steps()])

    def parts(self, steps: tuple[tuple[int, ...], ...]) -> list[Part]:
        """Machine code for arrays whose axes step so many elements."""
        with self._lock:
            if steps not in self._parts:
                self._parts[steps] = self._built(dict(zip(self.names, steps, strict=True)))
            return self._parts[steps]

    def _built(self, steps: Mapping[str, Sequence[int]]) -> list[Part]:
        elements = {name: self.types.read for name in self.names[:-1]}
        elements[self.names[-1]] = self.types.out
        try:
            tasks = contractions(self.problem, elements, steps)
        except NotImplementedError:
            text = LlvmText(self.types.compute, self.core.lanes)
            return build_any(General(text, self.problem, elements, steps, self.core.registers))
        found = []
        for task in tasks:
            best = ranked(task, self.core, self.threads)[: self._n_measured]
            parts = [
                build(one, plan, cycles / self.core.hertz, (self.types.compute, self.core.lanes))
                for cycles, one, plan in best
            ]
            found.append(parts[0] if len(parts) == 1 else self._fastest(parts, steps))
        return found

    def _fastest(self, parts: list[Part], steps: Mapping[str, Sequence[int]]) -> Part:
        """Run parts in turn, and give the one that takes least."""
        rooms = {}
        for name, shape in self.shapes.items():
            reach = sum((n - 1) * step for n, step in zip(shape, steps[name], strict=True)) + 1
            kind = self.types.out if name == self.problem.output else self.types.read
            rooms[name] = np.zeros(reach, kind.numpy)
        address = {name: one.ctypes.data for name, one in rooms.items()}
        taken = [inf] * len(parts)
        for _ in range(5):
            for number, part in enumerate(parts):
                start = perf_counter()
                self._share(part, address)
                taken[number] = min(taken[number], perf_counter() - start)
        return parts[taken.index(min(taken))]

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
            out = np.empty(self.shapes[self.names[-1]], self.types.out.numpy)
        given = [*arrays, out]
        self._check(given)
        placed = [_placed(one) for one in given]
        if placed[-1] is not out:
            placed[-1] = np.empty(out.shape, out.dtype)
        steps = tuple(tuple(s // one.itemsize for s in one.strides) for one in placed)
        self._run(self._parts.get(steps) or self.parts(steps), placed)
        if placed[-1] is not out:
            out[...] = placed[-1]
        return out

    def _check(self, given: Sequence[Array]) -> None:
        if len(given) != len(self.names):
            wanted = ", ".join(self.names)
            raise ProblemError(f"{len(given)} arrays are given; {wanted} are needed")
        for name, one in zip(self.names, given, strict=True):
            element = self.types.out if name == self.names[-1] else self.types.read
            if not isinstance(one, np.ndarray):
                raise ProblemError(f"'{name}' is {show(one)}; a numpy array is needed")
            if one.shape != self.shapes[name]:
                raise ProblemError(f"'{name}' has shape {one.shape}; {self.shapes[name]} is needed")
            if one.dtype.str[1:] not in element.numpy_kinds:
                raise ProblemError(
                    f"'{name}' has elements of {one.dtype}; {element.numpy} ({element.name}) is needed"
                )
        if not given[-1].flags.writeable:
            raise ProblemError(f"'{self.names[-1]}' cannot be written")

    def _run(self, parts: Sequence[Part], arrays: Sequence[Array]) -> None:
        address = dict(zip(self.names, (one.ctypes.data for one in arrays), strict=True))
        for part in parts:
            self._share(part, address)

    def _share(self, part: Part, address: Mapping[str, int]) -> None:
        """Run the jobs of a part on all threads."""
        n = min(self.threads, part.n_jobs)
        given = [address[name] for name in part.tensors]
        rooms = [self._room(part.room) for _ in range(n)]
        limits = [part.n_jobs * number // n for number in range(n + 1)]
        waiting = [
            _pool().submit(part.run, *given, rooms[i].ctypes.data, limits[i], limits[i + 1])
            for i in range(1, n)
        ]
        part.run(*given, rooms[0].ctypes.data, 0, limits[1])
        for one in waiting:
            one.result()
        with self._room_lock:
            self._rooms += rooms

    def _room(self, n_bytes: int) -> Array:
        with self._room_lock:
            for place, room in enumerate(self._rooms):
                if room.size >= n_bytes:
                    return self._rooms.pop(place)
        raw = np.empty(n_bytes + _PAGE, np.uint8)
        start = -raw.ctypes.data % _PAGE
        return raw[start : start + n_bytes]


def _placed(one: Array) -> Array:
    """Give an array that machine code can address: whole steps, none negative."""
    if all(s >= 0 and s % one.itemsize == 0 for s in one.strides) and one.dtype.isnative:
        if one.ctypes.data % one.itemsize == 0:
            return one
    return np.ascontiguousarray(one, one.dtype.newbyteorder("="))


def build(task: Contraction, plan: Plan, estimate_s: float, kind: tuple[Element, int]) -> Part:
    """Compile a contraction as it is cut, or load what was compiled before.

    Parameters
    ----------
    task : Contraction
    plan : Plan
    estimate_s : float, seconds
        What it is expected to take.
    kind : (Element, int)
        What is computed with, and the lanes of a vector.
    """
    compute, lanes = kind
    text = LlvmText(compute, lanes)
    engine = (Window if plan.slides else Engine)(text, task, plan, "contract")
    key = sha256(
        f"{_generator()} {host_name()} {lanes} {compute} {task} {plan}".encode()
    ).hexdigest()
    binary = _read(key)
    if binary is None:
        engine.write()
        binary = object_code(text.text())
        _keep(key, binary)
    tensors = tuple(one.name for one in task.operands)
    run = _function(binary, "contract", len(tensors))
    room = engine.work_room * compute.n_bytes + _PAGE
    return Part(tensors, plan, estimate_s, run, engine.n_jobs, room)


def build_any(general: General) -> list[Part]:
    """Compile a problem that is no sum of products of two operands; nothing estimates its time."""
    text, nest = general.text, general.nest()
    stages = general.write("run")
    program = text.text()
    key = sha256(f"{host_name()} {program}".encode()).hexdigest()
    binary = _read(key)
    if binary is None:
        binary = object_code(program)
        _keep(key, binary)
    return [
        Part(
            one.tensors,
            nest,
            nan,
            _function(binary, one.name, len(one.tensors)),
            one.n_jobs,
            one.room * text.element.n_bytes + _PAGE,
        )
        for one in stages
    ]


def _function(binary: bytes, name: str, n_tensors: int) -> Any:
    """Load a function of tensors, room, and the first and the last of its jobs."""
    pointers = [ctypes.c_void_p] * (n_tensors + 1)
    return linked(binary, [name], (None, *pointers, ctypes.c_int64, ctypes.c_int64))[0]


@lru_cache(maxsize=1)
def _generator() -> str:
    """Sum up the code that writes kernels."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    return sha256(b"".join(one.read_bytes() for one in sources)).hexdigest()


@lru_cache(maxsize=1)
def _folder() -> Path | None:
    with suppress(RuntimeError):
        given = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
        return Path(given or Path.home() / ".cache", "loopsched", "kernels")
    return None


def _read(key: str) -> bytes | None:
    with suppress(OSError, TypeError):
        data = (_folder() / f"{key}.o").read_bytes()  # type: ignore[operator]
        if sha256(data[32:]).digest() == data[:32]:
            return data[32:]
    return None


def _keep(key: str, binary: bytes) -> None:
    folder = _folder()
    if folder is None:
        return
    part = folder / f"{key}.{os.getpid()}"
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        part.write_bytes(sha256(binary).digest() + binary)
        part.replace(folder / f"{key}.o")
        kept = sorted(folder.glob("*.o"), key=lambda one: one.stat().st_mtime)
        for old in kept[: max(0, len(kept) - 500)]:
            old.unlink(missing_ok=True)


def compile(  # noqa: A001 - the name under which users know it
    problem: Problem,
    arch: Arch | str = "host",
    *,
    threads: int | None = None,
    data_type: str | None = None,
    measure: int = 1,
) -> CompiledKernel:
    """Compile a problem for this CPU.

    Parameters
    ----------
    problem : Problem
    arch : Arch or str
        With a ``cpu`` part, such as ``load_arch("host")``; plans are chosen
        for it, code is for the CPU at hand.
    threads : int, optional
        By default as many as the machine has units.
    data_type : {'fp32', 'fp64', 'bf16', 'int8'}, optional
        Of the tensors that are read; bf16 and int8 are summed in fp32 and
        int32, and int8 gives int32.  By default what the problem's element
        size says.
    measure : int
        How many of the model's best plans to compile and time; the fastest is
        kept.  1: the model alone chooses.

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
    """
    if isinstance(arch, str):
        from loopsched.machines.arch_file import load_arch

        arch = load_arch(arch)
    if data_type is None:
        data_type = type_of(problem)
    if data_type not in DATA_TYPES:
        raise ProblemError(f"data_type is {show(data_type)}; {nearest(str(data_type), DATA_TYPES)}")
    core, cores = core_of(arch, DATA_TYPES[data_type].compute.n_bytes)
    if threads is None:
        threads = cores
    elif not is_count(threads) or threads > cores:
        raise ProblemError(
            f"threads is {show(threads)}; 1 to {cores} are possible on '{arch.name}'"
        )
    if not is_count(measure):
        raise ProblemError(f"measure is {show(measure)}; a whole number >= 1 is needed")
    return CompiledKernel(problem, core, data_type, threads, measure)


def type_of(problem: Problem) -> str:
    """Say of which type the tensors that a problem reads are.

    Raises
    ------
    ProblemError
        If they are of no type that is known, or of several.
    """
    sizes = {tensor.element_bytes for tensor in problem.tensors if tensor.name != problem.output}
    known = {8: "fp64", 4: "fp32", 2: "bf16", 1: "int8"}
    if len(sizes) != 1 or not sizes <= set(known):
        raise ProblemError(f"'{problem.name}': no data type has elements of {sorted(sizes)} bytes")
    return known[sizes.pop()]
