"""How long pipelined kernels take: latency, tensor cores, L2, DRAM, power; many at a time.

A block repeats a step: bring a part of both operands to shared memory, some
steps ahead, and multiply.  Of the blocks that share an SM one multiplies
while another waits, so a step takes as long as the slowest of: the resident
blocks' arithmetic, what they ask of L2, what DRAM delivers, and a block's own
wait for its operands.  Blocks start together and stay in step in the first
wave, so that requests for the same operand meet on their way to L2; later
they drift apart and ask one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import gcd

import numpy as np
from numpy.typing import NDArray

from loopsched.gpu.calibrated import calibration_file
from loopsched.gpu.choice.fitted import Fitted
from loopsched.gpu.choice.space import Numbers, Space, kernel_names
from loopsched.gpu.choice.triton import FILE, GROUP_WARPS, Resources
from loopsched.gpu.choice.work import Times, Work
from loopsched.gpu.library.machine import Machine

PARTS = ("tensor cores", "L2", "DRAM", "latency")
_SECTOR, _LINE = 64, 128
# Bytes of terms that an instruction of the tensor cores adds to each sum.
_ADDED_BYTES = 32
# The output is written, and half as much of what was dirty before is written to make room.
WRITTEN = 1.5
# Bytes of a sum of some of the terms.
PARTIAL = 4
# Exponent that joins a step's latency with its DRAM time.
_LOADED = 2.0


def joined(exponent: float, *parts: Numbers) -> Numbers:
    """Join times that overlap: the largest, and more where others are near it.

    Examples
    --------
    >>> joined(2.0, np.array([3.0]), np.array([4.0])).tolist()
    [5.0]
    """
    together = np.stack(np.broadcast_arrays(*parts))
    most: Numbers = np.maximum(together.max(axis=0), 1e-30)
    total: Numbers = ((together / most) ** exponent).sum(axis=0)
    return most * total ** (1 / exponent)


def times(work: Work, taken: Resources, stages: Numbers, machine: Machine, fit: Fitted) -> Times:
    """Estimate how long each configuration takes.

    Parameters
    ----------
    work : Work
    taken : Resources
        With at least one resident block everywhere.
    stages : array
    machine : Machine
    fit : Fitted
    """
    places = machine.sms * taken.resident
    full = np.floor(work.blocks / places)
    rest = work.blocks - full * places
    beside = np.clip(np.ceil(rest / machine.sms), 1, taken.resident)
    four = taken.threads <= GROUP_WARPS * machine.gpu.warp_threads
    paired = np.where(four & (full > 0), fit.paired, 0.0)

    def wave(resident: Numbers, live: Numbers, together: Numbers | float) -> tuple[Numbers, ...]:
        return _wave(work, taken, stages, machine, fit, resident, live, together)

    first = wave(taken.resident, places, fit.merged_first)
    later = wave(taken.resident, places, fit.merged_later)
    last = wave(beside, np.maximum(rest, 1), np.where(full > 0, fit.merged_later, fit.merged_first))
    cycles = np.where(full > 0, first[0] + (full - 1) * later[0], 0.0)
    ends = last[0]
    if fit.paired:
        crowded = wave(taken.resident, np.maximum(rest, 1), fit.merged_later)[0]
        ends = ends + paired * (crowded - ends)
    cycles = cycles + np.where(rest > 0, ends, 0.0)
    time_s = cycles / machine.max_clock_hz
    typical = [
        np.where(full > 1, mine, np.where(full > 0, early, late))
        for mine, early, late in zip(later[1:], first[1:], last[1:], strict=True)
    ]
    n_waves = full + (rest > 0)
    parts = {
        name: n_waves * work.steps * part / machine.max_clock_hz
        for name, part in zip(PARTS, typical, strict=True)
    }
    more_s = fit.launch * machine.gpu.launch_s + work.after_s
    return Times(_powered(time_s, work, machine, fit) + more_s, parts, work.blocks / places)


def _wave(
    work: Work,
    taken: Resources,
    stages: Numbers,
    machine: Machine,
    fit: Fitted,
    resident: Numbers,
    live: Numbers,
    together: Numbers | float,
) -> tuple[Numbers, ...]:
    """Cycles of a wave, then of a step for each of `PARTS`."""
    clock = machine.max_clock_hz
    scale = machine.l2_bytes_per_s / clock / machine.sms / fit.l2_at
    # A warp keeps to one scheduler and its part of the tensor cores.
    warps, schedulers = taken.threads / machine.gpu.warp_threads, machine.gpu.schedulers
    tensor = np.ceil(resident * warps / schedulers) * schedulers / warps * work.tensor_cycles
    tensor = np.maximum(tensor, work.tensor_cycles + work.alone_cycles)
    alone = resident * work.l2_bytes / (fit.ingest * scale)
    # What neighbours ask for at the same time, L2 delivers to all of them at once.
    once = work.l2_bytes - together * work.shared_bytes
    l2 = np.maximum(live * once / (machine.sms * fit.delivered * scale), alone)
    dram = work.dram_bytes(live) / (machine.dram_bytes_per_s / clock)
    dram = dram / (work.blocks * work.steps) * live
    asked = asked_cycles(work.rows, work.tile_bytes, machine, fit)
    late = asked / steps_ahead(stages, taken.by_group, fit)
    more = work.wait_cycles + np.where(stages <= 2, fit.two_stages * work.tensor_cycles, 0.0)
    # Operands come the later the more DRAM has to do; where that is much it sets the pace.
    wait = joined(_LOADED, late, dram) + more
    chained = np.where(taken.by_group, 0.0, work.term_bytes / _ADDED_BYTES * fit.chain_cycles)
    issued = np.maximum(resident * warps / schedulers * fit.issue_cycles, chained)
    step = joined(fit.step, tensor, issued, joined(fit.memory, wait, l2, dram))
    begun = fit.latency * machine.gpu.dram_latency + fit.start_cycles
    filled = begun + fit.fill * (stages - 1) * alone
    shown = np.where(resident > 1, 1 - fit.hidden, 1.0)
    ends = (filled + resident * work.sums * fit.sum_cycles) * shown
    return work.steps * step + ends + resident * work.block_cycles, tensor, l2, dram, late + more


def steps_ahead(stages: Numbers, by_group: NDArray[np.bool_], fit: Fitted) -> Numbers:
    """Count the steps that operands are asked for before they are needed."""
    ahead: Numbers = np.maximum(stages - 1 - fit.direct, 0.6)
    return np.where(by_group, np.maximum(stages - 1, 1), ahead)


def asked_cycles(rows: Numbers, tile_bytes: Numbers, machine: Machine, fit: Fitted) -> Numbers:
    """Cycles from asking for a step's operands until they are in shared memory."""
    asked = fit.latency * machine.gpu.dram_latency + fit.row_cycles * rows
    return asked + tile_bytes / machine.gpu.shared_bytes_per_cycle


def row_bytes_asked(row_bytes: Numbers, apart: int, fit: Fitted) -> Numbers:
    """Bytes that a row of a tile costs L2: whole sectors, and each line of them more.

    Rows start so many bytes apart; where these are no whole lines, some touch one more.
    """
    sectors, lines = (_touched(row_bytes, apart, unit) for unit in (_SECTOR, _LINE))
    return _SECTOR * sectors + fit.row_bytes * lines


def _touched(row_bytes: Numbers, apart: int, unit: int) -> Numbers:
    """Count the units that a row touches, in the mean of all places where one may start."""
    step = gcd(apart, unit)
    return 1 + (np.ceil(row_bytes / step) - 1) * step / unit


def read_narrow(read_bytes: Numbers, row_bytes: Numbers, fit: Fitted) -> Numbers:
    """Bytes that DRAM could deliver meanwhile: short rows of tiles keep it longer."""
    return read_bytes * (1 + fit.narrow * _SECTOR / row_bytes)


def added_s(part_bytes: Numbers, out_bytes: float, machine: Machine, fit: Fitted) -> Numbers:
    """Seconds of a kernel that adds parts of sums: out of L2 if they are still there."""
    lasts = part_bytes <= machine.l2_bytes
    rate = np.where(lasts, machine.l2_bytes_per_s, machine.dram_bytes_per_s)
    added: Numbers = part_bytes / rate + out_bytes / machine.dram_bytes_per_s
    return added + fit.launch * machine.gpu.launch_s


def _powered(time_s: Numbers, work: Work, machine: Machine, fit: Fitted) -> Numbers:
    """Lengthen what would take more power than the GPU may, once that is noticed."""
    if not machine.gpu.power_w:
        return time_s
    of_macs = work.macs * fit.pj_mac * work.width / 2
    joule = 1e-12 * (of_macs + work.blocks * work.steps * work.l2_bytes * fit.pj_byte)
    limit_s = joule / (_SHARE_OF_POWER * machine.gpu.power_w) - fit.slack_us * 1e-6
    return joined(fit.power, time_s, np.maximum(limit_s, 1e-9))


def compiled(source: str, space: Space, data_type: str) -> Numbers | float:
    """Factors of estimates: what a compiled kernel takes, other kernels of its problem beside it.

    1 for kernels and data types that were not measured.
    """
    kind = _COMPILED_ALIKE.get(data_type, data_type)
    known = calibration_file(FILE)["compiled"].get(f"{source} {kind}")
    return np.array([known.get(name, 1.0) for name in kernel_names(space)]) if known else 1.0


# Data types whose kernels differ in the name of the tensor cores' instructions alone.
_COMPILED_ALIKE = {"bf16": "fp16"}

# Of a GPU's power, what is left for work beside leakage, clocks and idle memory.
_SHARE_OF_POWER = 0.786


@dataclass(frozen=True, slots=True)
class Judged:
    """How far off a family's estimates are.

    Parameters
    ----------
    spread : (float, float)
        Measured over estimated: between these 80 of 100 rows.
    may_be_best : float
        The fastest is expected to be estimated to take at most so many times
        the best estimate.
    """

    spread: tuple[float, float]
    may_be_best: float


@cache
def judged(family: str) -> Judged:
    """Give how far off estimates of a family are; `pipeline.json` says on what."""
    stored = calibration_file(FILE)
    low, high = stored["spread"][family]
    return Judged((low, high), stored["may_be_best"][family])
