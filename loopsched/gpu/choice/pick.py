"""Choose a kernel's configuration without running it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loopsched.base.arguments import Checker, show
from loopsched.base.display import Shown
from loopsched.base.errors import InputError, ProblemError
from loopsched.base.rows import picked
from loopsched.gpu.bound import cold_bound, repeated_bound
from loopsched.gpu.choice.attention import Attention
from loopsched.gpu.choice.families import (
    FAMILIES,
    TRITON_ATTENTION,
    TRITON_CONV,
    TRITON_DECODE,
    TRITON_GEMM,
    TRITON_GROUPED,
    Asked,
    Family,
    family_of,
    least,
    product_width,
    unaligned,
)
from loopsched.gpu.choice.grouped import Grouped
from loopsched.gpu.choice.pipeline import judged
from loopsched.gpu.choice.space import Space, read_space, space_of
from loopsched.gpu.choice.triton import Resources
from loopsched.gpu.choice.work import Times
from loopsched.gpu.library.machine import machine_of
from loopsched.machines.arch import Arch
from loopsched.machines.gpu_limits import Gpu
from loopsched.problems.problem import Problem

# Of a large space, more than this were never needed to hold the fastest.
_SHARE = 0.15
# Estimates nearer to each other than this say nothing.
_AS_LONG = 1.001
# Seconds that are none; beyond so many times as long, figures say nothing.
_NONE_S, _MOST_TIMES = 1e-12, 100

Given = Space | str | os.PathLike[str] | Iterable[Mapping[str, Any]] | None


@dataclass(frozen=True, slots=True)
class Choice:
    """A configuration and what is expected of it.

    Parameters
    ----------
    configuration : mapping of str to int
    estimate_us, low_us, high_us : float, microseconds
        Estimate, and the interval that holds 80 of 100 measurements.
    bound_us : float, microseconds
        No run is faster: arithmetic at the highest clock, and what DRAM must deliver even
        if L2 still holds all that it can from the previous run.
    cold_us : float, microseconds
        No run is faster if L2 holds no operand, as the estimate assumes.
    bound_by : str
        The resource that the estimate spends most time on: ``tensor cores``,
        ``L2``, ``DRAM`` or ``latency``; ``lanes`` and ``shared memory`` of
        attention and of kernels without tensor cores, and ``L1`` of these.
    may_be_best : bool
        Whether it belongs to the set that should hold the fastest.
    registers, shared_bytes, resident_blocks : int
        Per thread, per block, per SM.
    waves : float
        Number of blocks over the number that all SMs hold at a time.
    why : str
        What sets it apart from the first choice.
    """

    configuration: Mapping[str, int]
    estimate_us: float
    low_us: float
    high_us: float
    bound_us: float
    bound_by: str
    may_be_best: bool
    registers: int
    shared_bytes: int
    resident_blocks: int
    waves: float
    why: str = ""
    cold_us: float = 0.0


_SHOWN = (
    "estimate_us",
    "low_us",
    "high_us",
    "bound_us",
    "cold_us",
    "bound_by",
    "may_be_best",
    "registers",
    "shared_bytes",
    "resident_blocks",
    "waves",
)


@dataclass(frozen=True, slots=True)
class Pick(Shown):
    """Configurations of a kernel, best first.

    Parameters
    ----------
    problem, arch, kernel, data_type : str
    choices : tuple of Choice
        By estimate; as many as were asked for.
    n_configurations : int
        Number of configurations considered.
    n_infeasible : int
        Of these, those that cannot run: too much shared memory, too many threads or
        registers, or sizes that the kernel cannot have.
    n_may_be_best : int
    n_alike : int
        Left out of those usually tried: they differ from a choice in ``group_m``
        alone and take as long.
    unaligned : tuple of str
        Sizes that are not multiples of 16, with which a Triton kernel is slower than
        estimated.

    See Also
    --------
    pick, Choice
    """

    problem: str
    arch: str
    kernel: str
    data_type: str
    choices: tuple[Choice, ...]
    n_configurations: int
    n_infeasible: int
    n_may_be_best: int
    n_alike: int = 0
    unaligned: tuple[str, ...] = ()

    @property
    def warning(self) -> str:
        """Warn if such choices were never compared with measurements, or are too optimistic."""
        types, archs = FAMILIES[self.kernel].held
        found = ""
        if self.unaligned:
            found = (
                f"{' '.join(self.unaligned)}: not a multiple of 16. The kernel takes longer than "
                "estimated: 1.3 to 3 times where sizes are compiled in, as --emit does, and up to "
                "250 times where they are arguments. Pad them."
            )
        if self.data_type not in types or self.arch not in archs:
            found += " " * bool(found) + (
                f"No {self.kernel} in {self.data_type} was measured on {self.arch}: how good these "
                "choices are is unknown."
            )
        return found

    @property
    def heading(self) -> str:
        """The problem for people: sizes of an attention with their names.

        Examples
        --------
        >>> from loopsched import Attention, load_arch, pick
        >>> pick(Attention.named("1x32x1:8192x128x0"), load_arch("h200")).heading
        'attention: batch 1; 32 heads; 1 query, 8,192 keys; head size 128; no mask'
        """
        kind = FAMILIES[self.kernel].kind
        if kind == "grouped":
            return f"grouped {self.problem}"
        if kind not in ("attn", "decode"):
            return self.problem
        try:
            return f"attention: {Attention.named(self.problem).sizes}"
        except ProblemError:  # it was given a name
            return self.problem

    @property
    def best(self) -> Choice:
        """The first choice."""
        return self.choices[0]

    def rows(self) -> list[dict[str, Any]]:
        """Write the choices as rows of plain values."""
        about = picked(self, "problem", "arch", "kernel", "data_type")
        return [
            about
            | dict(one.configuration)
            | picked(one, *_SHOWN)
            | ({"why": one.why} if one.why else {})
            for one in self.choices
        ]


@dataclass(frozen=True, slots=True)
class Ranked:
    """All configurations of a space in order, as arrays; those that cannot run left out.

    Parameters
    ----------
    space : Space
    taken : Resources
    times : Times
    order : array of int
        Positions, the best first.
    feasible : array of bool
        Of the space as it was given.
    may_be_best : array of bool
    bound_s, cold_s : float, seconds
        What no run beats; what none beats whose operands are not in L2.
    """

    space: Space
    taken: Resources
    times: Times
    order: NDArray[np.intp]
    feasible: NDArray[np.bool_]
    may_be_best: NDArray[np.bool_]
    bound_s: float
    cold_s: float


def pick(
    problem: Problem | Attention | Grouped,
    arch: Arch,
    *,
    kernel: str | None = None,
    space: Given = None,
    data_type: str | None = None,
    top: int | None = None,
    explain: bool = False,
) -> Pick:
    """Rank a kernel's configurations for a problem; no GPU is needed.

    Parameters
    ----------
    problem : Problem, Attention or Grouped
        A `gemm` or `batched_gemm` for ``triton_gemm``, a forward `conv2d` for
        ``triton_conv``, an `Attention` for ``triton_attention`` or, with fewer
        queries than keys, ``triton_decode``, a `Grouped` for ``triton_grouped``,
        a `gemm` for ``clblast_gemm``, a `conv2d` of one channel and filter for
        ``filter``.
    arch : Arch
        A GPU.
    kernel : str, optional
        ``triton_gemm``, ``triton_grouped``, ``triton_conv``, ``triton_attention``,
        ``triton_decode``, ``clblast_gemm`` or ``filter``; by default Triton's for the problem.
    space : path, Space or iterable of mappings, optional
        Configurations: a CSV file with one column per parameter, or one
        mapping each.  ``registers``, ``spills`` and ``shared_bytes``
        of compiled kernels are used if all have them.  By default the
        configurations usually tried.
    data_type : str, optional
        ``fp16``, ``bf16``, ``tf32``, ``fp8``, ``int8``, ...: any for
        which the architecture has a rate; by default fp16, for kernels on SIMT
        lanes fp32.
    top : int, optional
        How many choices to return; by default all.
    explain : bool
        Say of each choice what sets it apart from the first.

    Returns
    -------
    Pick

    Raises
    ------
    ProblemError
        If the kernel does not compute such a problem.
    InputError
        If an argument is not allowed, or no configuration can run.
    ArchError
        If the architecture is not a GPU or lacks the data type.

    Notes
    -----
    docs/choosing_kernels.md describes the model, what it was fitted on and how
    far off it is elsewhere.

    References
    ----------
    P. Tillet, H. T. Kung and D. Cox, *Triton: An Intermediate Language and Compiler for Tiled
    Neural Network Computations*, MAPL 2019.

    Examples
    --------
    >>> from loopsched import gemm, load_arch, pick
    >>> found = pick(gemm(m=4096, n=4096, k=4096), load_arch("h200"), top=3)
    >>> found.n_configurations, len(found.choices)
    (720, 3)
    >>> found.best.configuration["block_m"] >= 128
    True

    See Also
    --------
    tiled_gemm : resources and traffic of one tiled kernel.
    """
    check = Checker("pick", InputError)
    if top is not None:
        check.count("top", top)
    if not isinstance(problem, Asked):
        check.fault(f"problem is {show(problem)}; a Problem, an Attention or a Grouped is needed")
        check.finish()
    if kernel is None:
        kernel = _usual(problem).name
    family = family_of(check, kernel)
    check.finish()
    data_type = data_type or family.data_type
    family.checked(problem)
    given = space_for(space, family)
    if space is None:
        given = given.kept(family.suits(problem, given))
        if not len(given):
            raise InputError(
                f"problem '{problem.name}': none of the configurations usually tried of "
                f"{family.name} suits it; give a space of others"
            )
    ranked = rank(problem, arch, family, given, data_type)
    if space is None:
        ranked = _tried_once(ranked)
    low, high = judged(kernel).spread
    first = int(ranked.order[0])
    return Pick(
        problem=problem.name,
        arch=arch.name,
        kernel=kernel,
        data_type=data_type,
        choices=tuple(
            _choice(ranked, int(at), first, (low, high), explain) for at in ranked.order[:top]
        ),
        n_configurations=len(given),
        n_infeasible=int((~ranked.feasible).sum()),
        n_may_be_best=int(ranked.may_be_best[ranked.order].sum()),
        n_alike=int(ranked.feasible.sum()) - len(ranked.order),
        unaligned=unaligned(problem, FAMILIES[kernel]),
    )


def space_for(space: Given, family: Family) -> Space:
    """Take a family's configurations in any form, or those usually tried.

    Raises
    ------
    InputError
        If they are not configurations of the family, or a file cannot be read.
    """
    if space is None:
        return family.tried()
    if isinstance(space, Space):
        return space
    if isinstance(space, (str, os.PathLike)):
        return read_space(space, family.names, family.switches, family.more)
    return space_of(space, family.names, family.switches, family.more)


def _usual(problem: Asked) -> Family:
    if isinstance(problem, Attention):
        return TRITON_DECODE if problem.queries else TRITON_ATTENTION
    if isinstance(problem, Grouped):
        return TRITON_GROUPED
    return TRITON_CONV if problem.kind == "conv2d" else TRITON_GEMM


def rank(problem: Asked, arch: Arch, family: Family, space: Space, data_type: str) -> Ranked:
    """Estimate all configurations that can run, and order them.

    Raises
    ------
    InputError
        If none can run.
    ProblemError
        If the family does not compute such a problem.
    """
    family.checked(problem)
    machine = machine_of(arch, data_type)
    width = product_width(problem, data_type)
    taken = family.taken(problem, space, machine.gpu, width)
    feasible = ~family.refused(space, width) & (taken.resident >= 1)
    if not feasible.any():
        none = f"none of {len(space)} configurations of {family.name} can run on {arch.name}"
        if len(space) == 1:
            none = f"the only configuration of {family.name} cannot run on {arch.name}"
        why = _excluded(family.refused(space, width), taken, machine.gpu)
        raise InputError(f"problem '{problem.name}': {none}: {why}")
    space, taken = space.kept(feasible), taken.kept(feasible)
    found = family.times(problem, data_type, space, taken, machine)
    order = np.lexsort((np.arange(len(space)), taken.shared_bytes, found.time_s))
    may_be_best = np.zeros(len(space), dtype=bool)
    few = order[: max(family.few, int(_SHARE * len(space)))]
    may_be_best[few] = found.time_s[few] <= found.time_s[order[0]] * judged(family.name).may_be_best
    macs, read, written = least(problem, data_type)
    bound_s, _ = repeated_bound(macs, read + written, arch, data_type)
    cold_s, _ = cold_bound(macs, read, written, arch, data_type)
    return Ranked(space, taken, found, order, feasible, may_be_best, bound_s, cold_s)


def _excluded(refused: NDArray[np.bool_], taken: Resources, gpu: Gpu) -> str:
    """Say which limits exclude configurations; where several do, how many each excludes first.

    Examples
    --------
    >>> from loopsched import load_arch
    >>> limits, ones = load_arch("h100").kernel_limits, np.ones(2)
    >>> taken = Resources(ones > 1, ones, ones, np.array([1, 2**18]), ones, ones - 1)
    >>> _excluded(np.array([True, True]), taken, limits)
    '1 for more than 232,448 bytes of shared memory per block, 1 for sizes that the kernel ...'
    """
    shared, threads = gpu.max_block_shared_bytes, gpu.max_block_threads
    limits = (
        (taken.shared_bytes > shared, f"more than {shared:,} bytes of shared memory per block"),
        (taken.threads > threads, f"more than {threads:,} threads per block"),
        (refused, "sizes that the kernel cannot have"),
        (taken.registers >= 1, "more registers than there are"),
        (taken.registers < 1, "less than one register"),
    )
    left = np.ones(len(refused), dtype=bool)
    found = []
    for is_over, what in limits:
        many = int((left & is_over).sum())
        left &= ~is_over
        found += [(many, what)] if many else []
    if len(refused) == 1:
        return found[0][1]
    return ", ".join(f"{many:,} for {what}" for many, what in found)


def _tried_once(ranked: Ranked) -> Ranked:
    """Leave out what takes as long as the one before it and differs in group_m alone."""
    time_s = ranked.times.time_s[ranked.order]
    alike = time_s[1:] < _AS_LONG * time_s[:-1]
    for name, column in ranked.space.columns.items():
        alike &= (np.diff(column[ranked.order]) == 0) | (name == "group_m")
    return replace(ranked, order=ranked.order[np.append(True, ~alike)])


def _choice(
    ranked: Ranked, at: int, first: int, spread: tuple[float, float], explain: bool
) -> Choice:
    time_s = max(float(ranked.times.time_s[at]), ranked.cold_s)
    parts = {name: float(part[at]) for name, part in ranked.times.parts.items()}
    return Choice(
        configuration=ranked.space.configuration(at),
        estimate_us=1e6 * time_s,
        low_us=1e6 * max(ranked.cold_s, spread[0] * time_s),
        high_us=1e6 * spread[1] * time_s,
        bound_us=1e6 * ranked.bound_s,
        bound_by=max(parts, key=lambda name: parts[name]),
        may_be_best=bool(ranked.may_be_best[at]),
        registers=int(ranked.taken.registers[at]),
        shared_bytes=int(ranked.taken.shared_bytes[at]),
        resident_blocks=int(ranked.taken.resident[at]),
        waves=float(ranked.times.waves[at]),
        why=_why(ranked, at, first) if explain else "",
        cold_us=1e6 * ranked.cold_s,
    )


def _why(ranked: Ranked, at: int, first: int) -> str:
    """Say what a configuration spends more and less on than the first choice."""
    here = {name: float(part[at]) for name, part in ranked.times.parts.items()}
    longest = max(here, key=lambda name: here[name])
    waves, resident = float(ranked.times.waves[at]), int(ranked.taken.resident[at])
    held = f"{resident} block{'s' if resident > 1 else ''} per SM, {waves:.3g} waves"
    if at == first:
        return f"the first choice: most time on {longest}; {held}"
    best = {name: float(ranked.times.parts[name][first]) for name in here}
    ahead = sorted(here, key=lambda name: best[name] - here[name])
    times = {name: round((here[name] + _NONE_S) / (best[name] + _NONE_S), 2) for name in here}
    longer = [name for name in ahead if times[name] > 1]
    shorter = [name for name in reversed(ahead) if times[name] < 1]
    told = [_times(name, times[name]) for name in (*longer, *shorter)[:2]]
    if not longer:  # waves or a kernel's own factor make up for it
        told.append("none longer" if told else "as long on every resource")
    said = ", ".join(told)
    return f"against the first choice: {said}; most time on {longest}; {held}"


def _times(name: str, ratio: float) -> str:
    """Say how many times as long a resource takes; what takes none has no ratio worth saying."""
    shown = f"{ratio:.2f}" if ratio <= _MOST_TIMES else f"over {_MOST_TIMES}"
    return f"{name} {shown if ratio else 'under 0.01'} times as long"
