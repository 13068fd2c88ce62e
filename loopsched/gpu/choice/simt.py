"""Kernels of SIMT lanes: CLBlast's GEMM with register tiles, a filter with thread tiles.

Their threads issue every multiply-add, so what counts beside is how many other
instructions each needs, how many cycles of L1 and shared memory a warp's loads
take (banks, lines), and whether enough warps are there to hide latencies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from loopsched.gpu.calibrated import calibration_file
from loopsched.gpu.choice.pipeline import joined
from loopsched.gpu.choice.space import Numbers, Space
from loopsched.gpu.choice.triton import Resources, most_registers, resident_blocks
from loopsched.gpu.choice.work import Times
from loopsched.gpu.library.conv_layer import Layer
from loopsched.gpu.library.machine import Machine
from loopsched.gpu.library.product import Product
from loopsched.machines.gpu_limits import Gpu

_LANES, _BANKS, _LINE = 32, 32, 32


def numbers(name: str) -> Mapping[str, float]:
    """Give the fitted numbers of a kernel; `simt.json` says on what.

    Examples
    --------
    >>> sorted(numbers("filter")) == sorted(numbers("filter_wide"))
    True
    """
    found: Mapping[str, float] = calibration_file("choice/simt.json")[name]
    return found


@cache
def warp_cycles(words: tuple[int, ...], vector: int) -> int:
    """Count the cycles in which shared memory serves a warp.

    Parameters
    ----------
    words : tuple of int
        The first word that each of 32 threads reads or writes.
    vector : {1, 2, 4}
        Words of each thread; four at a time are served to eight threads.

    Examples
    --------
    >>> warp_cycles(tuple(range(32)), 1), warp_cycles(tuple(range(0, 256, 8)), 1)
    (1, 8)
    >>> warp_cycles((0,) * 32, 4)
    4
    """
    at_a_time = len(words) // vector
    cycles = 0
    for first in range(0, len(words), at_a_time):
        group = {word + i for word in words[first : first + at_a_time] for i in range(vector)}
        banks = [word % _BANKS for word in group]
        cycles += max(banks.count(bank) for bank in set(banks))
    return cycles


def _of_each(of_one: Callable[..., tuple[int, ...]], *columns: Numbers) -> list[Numbers]:
    """Apply a function of whole numbers to rows, once for rows that are equal."""
    rows = list(zip(*(column.astype(np.int64).tolist() for column in columns), strict=True))
    found = {row: of_one(*row) for row in set(rows)}
    return list(np.array([found[row] for row in rows], dtype=np.float64).T)


# ---------------------------------------------------------------- CLBlast's GEMM


def clblast_refused(space: Space, width: int) -> NDArray[np.bool_]:
    """Say which configurations CLBlast's kernel cannot have: what must divide and does not."""
    at = space.columns
    threads = at["MDIMC"] * at["NDIMC"]
    wrong: NDArray[np.bool_] = at["KWG"] % at["KWI"] != 0
    for side, inner, copying, vector in (
        ("MWG", "MDIMC", "MDIMA", "VWM"),
        ("NWG", "NDIMC", "NDIMB", "VWN"),
    ):
        wrong |= at[side] % (at[inner] * at[vector]) != 0
        wrong |= at[side] % (at[copying] * at[vector]) != 0
        deep = threads / at[copying]
        wrong |= (deep != np.floor(deep)) | (at["KWG"] % np.maximum(deep, 1) != 0)
    return wrong


def clblast_resources(space: Space, gpu: Gpu, width: int) -> Resources:
    """Count what a block takes: shared memory as the source says, registers guessed."""
    at, fit = space.columns, numbers("clblast_gemm")
    threads = at["MDIMC"] * at["NDIMC"]
    shared = (at["SA"] * at["MWG"] + at["SB"] * at["NWG"]) * at["KWG"] * width
    down, across = at["MWG"] / at["MDIMC"], at["NWG"] / at["NDIMC"]
    direct = (1 - at["SA"]) * down / np.minimum(at["VWM"], 4)
    direct = direct + (1 - at["SB"]) * across / np.minimum(at["VWN"], 4)
    guess = fit["registers"] + fit["sum_registers"] * down * across
    guess = guess + fit["operand_registers"] * (down + across) + fit["direct_registers"] * direct
    most = most_registers(gpu, threads)
    registers = at.get("registers", np.minimum(guess, most))
    spills = at.get("spills", np.maximum(guess - most, 0.0))
    return _resources(space, gpu, threads, registers, shared, spills)


def clblast_times(product: Product, space: Space, taken: Resources, machine: Machine) -> Times:
    """Estimate a product of tiles kept in registers, operands in shared memory or straight from L1.

    Blocks of MWG x NWG sums take KWG terms at a time: they copy a part of the
    operands to shared memory, then read and multiply.
    """
    at, fit, gpu = space.columns, numbers("clblast_gemm"), machine.gpu
    warps = np.ceil(taken.threads / gpu.warp_threads)
    down, across = at["MWG"] / at["MDIMC"], at["NWG"] / at["NDIMC"]
    terms, sides, copied = at["KWG"], [at["MWG"], at["NWG"]], at["SA"] + at["SB"]
    slower = min(gpu.shared_bytes_per_cycle, gpu.l1_bytes_per_cycle)
    path = gpu.banks * gpu.bank_bytes / slower
    issue, served, copies, copy_loads = _clblast_thread(at, taken, fit)

    multiply = down * across * fit["multiply"] * gpu.schedulers * _LANES / machine.lanes
    busy = terms * joined(fit["phase"], multiply, issue)
    latency = terms / at["KWI"] * np.where(copied < 2, fit["direct_latency"] * gpu.l2_latency, 0)
    alone = np.maximum(warps / gpu.schedulers, 1) * busy + latency
    clock = machine.clock_hz
    l2 = (sides[0] + sides[1]) * terms * product.element_bytes
    l2 = l2 / (fit["l2"] * machine.l2_bytes_per_s / clock / machine.sms)
    dram = _dram_bytes(product, at, taken, machine) / (machine.dram_bytes_per_s / clock)
    filled = np.where(copied > 0, fit["fill_latency"] * gpu.dram_latency, 0.0)

    def step(resident: Numbers) -> Numbers:
        lanes, memory = resident * warps / gpu.schedulers * busy, resident * warps * path
        within = joined(fit["group"], lanes, memory * terms * served, alone)
        fill = memory * fit["store"] * copies
        issued = resident * warps / gpu.schedulers * copy_loads * fit["store_issue"]
        parts = [one + 1e-9 for one in (fill, issued, resident * l2, resident * dram, filled)]
        return within + fit["exposed"] * joined(2.0, *parts)

    steps = np.ceil(product.k / terms)
    blocks = product.batch * np.ceil(product.m / sides[0]) * np.ceil(product.n / sides[1])
    places = machine.sms * taken.resident
    full = np.floor(blocks / places)
    rest = blocks - full * places
    beside = np.clip(np.ceil(rest / machine.sms), 1, taken.resident)
    cycles = full * (step(taken.resident) * steps + fit["end_cycles"])
    cycles = cycles + np.where(rest > 0, step(beside) * steps + fit["end_cycles"], 0.0)
    all_of_them = blocks * steps / machine.sms / clock
    shares = {
        "SIMT lanes": all_of_them * warps / gpu.schedulers * busy,
        "shared memory": all_of_them * warps * path * (terms * served + fit["store"] * copies),
        "L2": all_of_them * l2,
        "DRAM": all_of_them * dram,
        "latency": all_of_them * (alone + filled) / taken.resident,
    }
    return Times(cycles / clock + gpu.launch_s, shares, blocks / places)


def _clblast_thread(
    at: Mapping[str, Numbers], taken: Resources, fit: Mapping[str, float]
) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Count what a thread does.

    Instructions of a term, and cycles of L1 or shared memory; then the cycles,
    and the loads, of all copies to shared memory of a step.
    """
    down, across = at["MWG"] / at["MDIMC"], at["NWG"] / at["NDIMC"]
    terms = at["KWG"]
    issue = down * across + fit["loop_issue"] / at["KWI"] + fit["spill"] * taken.spills
    served, copies = fit["spill"] * taken.spills, np.zeros_like(down)
    copy_loads = np.zeros_like(down)
    for own, side, copying, vector, is_copied in (
        (down, "MWG", "MDIMA", "VWM", "SA"),
        (across, "NWG", "NDIMB", "VWN", "SB"),
    ):
        here, wide = at[is_copied], np.minimum(at[vector], 4)
        issue = issue + own / wide * (1 + (1 - here) * fit["direct_issue"])
        cycles, lines = _clblast_reads(own, at["MDIMC"], wide, side == "NWG")
        cost = np.where(here > 0, fit["read"] * cycles, np.maximum(cycles, lines))
        served = served + own / wide * cost
        each = here * at[side] * terms / wide / taken.threads
        stored, lines = _clblast_copies(at[side], at[copying], taken.threads, wide, terms)
        copies, copy_loads = copies + each * (stored + np.maximum(lines, wide)), copy_loads + each
    return issue, served, copies, copy_loads


def _clblast_reads(
    own: Numbers, across: Numbers, wide: Numbers, is_b: bool
) -> tuple[Numbers, Numbers]:
    """Cycles and lines of a warp's load of A or B: a thread's own terms are side by side."""
    found = _of_each(partial(_clblast_read, is_b), own, across, wide)
    return found[0], found[1]


@cache
def _clblast_read(is_b: bool, own: int, across: int, wide: int) -> tuple[int, int]:
    words = tuple((t // across if is_b else t % across) * own for t in range(_LANES))
    return warp_cycles(words, wide), len({word // _LINE for word in words})


def _clblast_copies(
    side: Numbers, copying: Numbers, threads: Numbers, wide: Numbers, terms: Numbers
) -> tuple[Numbers, Numbers]:
    """Cycles of a warp's store to shared memory, and lines of its load from memory."""
    found = _of_each(_clblast_copy, side, copying, threads, wide, terms)
    return found[0], found[1]


@cache
def _clblast_copy(side: int, copying: int, threads: int, wide: int, terms: int) -> tuple[int, int]:
    deep = max(terms // (threads // copying), 1)
    spots = [(t % copying * (side // copying), t // copying * deep) for t in range(_LANES)]
    stored = warp_cycles(tuple(x + row * side for x, row in spots), wide)
    return stored, len({(x // _LINE, row) for x, row in spots})


def _dram_bytes(
    product: Product, at: Mapping[str, Numbers], taken: Resources, machine: Machine
) -> Numbers:
    """Bytes that a step of all blocks at a time asks of DRAM, for each block and SM."""
    live = machine.sms * taken.resident
    rows = np.minimum(np.ceil(product.m / at["MWG"]), live)
    wave = rows * at["MWG"] + np.ceil(live / rows) * at["NWG"]
    return wave * at["KWG"] * product.element_bytes / live * machine.sms


# ---------------------------------------------------------------- the filter


def filter_refused(space: Space, width: int) -> NDArray[np.bool_]:
    """Say which make no sense: columns added where there is no tile, or where none are needed."""
    at = space.columns
    useful = (at["use_shmem"] > 0) & (at["block_size_x"] % _BANKS != 0)
    wrong: NDArray[np.bool_] = (at["use_padding"] > 0) & ~useful
    return wrong


def filter_resources(layer: Layer, space: Space, gpu: Gpu, width: int) -> Resources:
    """Count what a block takes; registers are a guess that seldom limits residence."""
    at = space.columns
    threads = at["block_size_x"] * at["block_size_y"]
    row, rows = _tile(layer, at)
    shared = at["use_shmem"] * row * rows * width
    guess = np.minimum(24 + at["tile_size_x"] * at["tile_size_y"], most_registers(gpu, threads))
    registers = at.get("registers", guess)
    return _resources(space, gpu, threads, registers, shared, np.zeros_like(threads))


def _tile(layer: Layer, at: Mapping[str, Numbers]) -> tuple[Numbers, Numbers]:
    """Words of a row of the tile with its halo, and its rows; padding sets rows side by side."""
    row = at["block_size_x"] * at["tile_size_x"] + layer.s - 1
    row = row + at["use_padding"] * ((at["block_size_x"] - row) % _BANKS)
    return row, at["block_size_y"] * at["tile_size_y"] + layer.r - 1


def filter_times(layer: Layer, space: Space, taken: Resources, machine: Machine) -> Times:
    """Estimate an image filter: how many loads a thread needs for its outputs decides.

    Outputs of a thread lie a block apart.  Their windows overlap where a block
    has fewer rows than the filter, so that a load serves several of them, if
    the image is a whole number of tiles (else each load is tested) or the tile
    is in shared memory.
    """
    at, gpu = space.columns, machine.gpu
    fit = numbers("filter" if gpu.max_thread_registers < _WIDE else "filter_wide")
    x, y = at["block_size_x"], at["block_size_y"]
    right, down, shared = at["tile_size_x"], at["tile_size_y"], at["use_shmem"] > 0
    even = (layer.q % (x * right) == 0) & (layer.p % (y * down) == 0)
    apart = np.where(y < layer.r, layer.r + (down - 1) * y, layer.r * down)
    rows = np.where(even | shared, apart, layer.r * down)
    loads, macs = rows * layer.s * right, layer.r * layer.s * right * down
    row, tall = _tile(layer, at)
    (conflicts,) = _of_each(_filter_reads, x, row)
    beside = np.minimum(y, np.ceil(_LANES / np.minimum(x, _LANES)))
    direct = fit["direct"] * (1 + (beside - 1) * fit["rows"]) + fit["read_only"] * at["read_only"]
    served = np.where(shared, fit["shared"] * conflicts, direct) * loads
    copied = np.ceil((x * right + layer.s - 1) / x) * np.ceil(tall / y)
    held = np.where((rows < layer.r * down) & (even | shared), right * rows * layer.s, 0.0)
    spill = np.where(at["read_only"] > 0, fit["spill_read_only"], fit["spill"])
    served = served + np.where(shared, fit["copy"] * copied, 0.0)
    served = served + np.maximum(held - fit["kept"], 0) * np.where(
        shared, fit["spill_shared"], spill
    )
    tested = np.where(shared, fit["uneven_shared"], fit["uneven"])
    served = served + np.where(even, 0.0, tested * macs)
    clock = machine.clock_hz
    warps = np.ceil(taken.threads / _LANES)
    issue = (macs + loads * fit["issue"]) * _LANES / machine.lanes
    work = warps * joined(4.0, served, issue)
    l2 = row * tall * 4 / (machine.l2_bytes_per_s / clock / machine.sms)
    alone = fit["start"] * gpu.dram_latency + issue * gpu.schedulers + work
    held_back = joined(4.0, taken.resident * work, taken.resident * l2, alone)
    blocks = layer.n * np.ceil(layer.q / (x * right)) * np.ceil(layer.p / (y * down))
    waves = blocks / (machine.sms * taken.resident)
    dram_s = (layer.input_elems(4) + layer.output_elems) * 4 / (_DRAM * machine.dram_bytes_per_s)
    dram = np.full_like(waves, dram_s)
    # Blocks follow each other one by one; half of the last wave is lost.
    time_s = joined(
        4.0, (waves + np.ceil(waves)) / 2 * (held_back + fit["end_cycles"]) / clock, dram
    )
    each = blocks / machine.sms / clock
    shares = {
        "SIMT lanes": each * warps * issue,
        "shared memory": np.where(shared, each * warps * served, 0.0),
        "L1": np.where(shared, 0.0, each * warps * served),
        "L2": each * l2,
        "DRAM": dram,
        "latency": each * alone / taken.resident,
    }
    return Times(time_s + gpu.launch_s, shares, waves)


@cache
def _filter_reads(x: int, row: int) -> tuple[int]:
    return (warp_cycles(tuple(t // x * row + t % x for t in range(_LANES)), 1),)


# Threads of NVIDIA's GPUs have no more than 255 registers, those of AMD's at least 256.
_WIDE = 256
# Arrays of a kernel's own in shared memory: no more on any of NVIDIA's GPUs (CUDA programming
# guide; OpenCL has none beside them).  Of the filter's files no larger one ran there.
_STATIC_BYTES = 49_152
_DRAM = 0.9


def _resources(
    space: Space, gpu: Gpu, threads: Numbers, registers: Numbers, shared: Numbers, spills: Numbers
) -> Resources:
    shared = space.columns.get("shared_bytes", shared)
    held = resident_blocks(gpu, np.ceil(threads / gpu.warp_threads), registers, shared)
    if gpu.max_thread_registers < _WIDE:
        held = np.where(shared > _STATIC_BYTES, 0.0, held)
    return Resources(np.zeros(len(space), dtype=bool), threads, registers, shared, spills, held)
