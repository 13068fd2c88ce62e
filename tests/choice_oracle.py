"""The model of docs/choosing_kernels.md for one configuration: plain numbers, wave by wave."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from math import ceil

from loopsched.gpu.calibrated import calibration_file
from loopsched.gpu.choice.attention import Attention, attention_numbers
from loopsched.gpu.choice.fitted import Fitted
from loopsched.gpu.library.conv_layer import layer_of
from loopsched.gpu.library.machine import ELEMENT_BYTES, Machine
from loopsched.problems.problem import Problem


@dataclass(frozen=True)
class Taken:
    """What the compiler makes of a configuration."""

    by_group: bool
    resident: int
    spilled_bytes: float = 0.0


@dataclass(frozen=True)
class Block:
    """What one block does, and DRAM's bytes for so many blocks at a time."""

    blocks: int
    steps: int
    tensor: float
    asked_of_l2: float
    wait: float
    beside: float
    dram_bytes: Callable[[float], float]
    macs: int
    tile: int
    sums: int
    terms: int
    after: float = 0.0
    alone: float = 0.0
    shared: float = 0.0


def estimate(
    problem: Problem | Attention,
    one: Mapping[str, int],
    data_type: str,
    taken: Taken,
    machine: Machine,
    fit: Fitted,
) -> tuple[float, list[float], float]:
    """Seconds; of a step of the typical wave, cycles of each part; waves."""
    width = ELEMENT_BYTES[data_type]
    widths = width, {"fp8": 2, "int8": 4}.get(data_type, width)
    if isinstance(problem, Attention):
        block = _decode(problem, one, width, taken, machine, fit)
    elif problem.kind == "conv2d":
        block = _conv(problem, one, widths, taken, machine, fit)
    else:
        block = _product(problem, one, widths, taken, machine, fit)
    run, places = Run(block, one, width, taken, machine, fit), machine.sms * taken.resident
    left, cycles, of_waves = block.blocks, 0.0, []
    while left > 0:
        live = min(left, places)
        here = taken.resident if live == places else ceil(live / machine.sms)
        together = fit.merged_later if of_waves else fit.merged_first
        took, parts = run.wave(here, live, together)
        if of_waves and live < places and one["warps"] <= 4:
            # Some SMs take as many blocks again as ended there, others none.
            crowded, _ = run.wave(taken.resident, live, together)
            took += fit.paired * (crowded - took)
        cycles += took
        of_waves.append((live == places, parts))
        left -= live
    seconds = cycles / machine.max_clock_hz
    if machine.gpu.power_w:
        asked = block.blocks * block.steps * block.asked_of_l2
        joule = 1e-12 * (block.macs * fit.pj_mac * width / 2 + asked * fit.pj_byte)
        limit = joule / (0.786 * machine.gpu.power_w) - 1e-6 * fit.slack_us
        seconds = _joined(fit.power, seconds, max(limit, 1e-9))
    whole = [parts for full, parts in of_waves if full]
    typical = whole[-1] if whole else of_waves[0][1]
    spent = [len(of_waves) * block.steps * part / machine.max_clock_hz for part in typical]
    return seconds + fit.launch * machine.gpu.launch_s + block.after, spent, block.blocks / places


def longer(problem: Problem, one: Mapping[str, int], data_type: str) -> float:
    """What the compiled kernel itself takes of an estimate, if it was measured."""
    names = ("block_m", "block_n", "block_k", "stages", "warps")
    key = "x".join(str(one[name]) for name in names)
    known = calibration_file("choice/pipeline.json")["compiled"]
    source = "product"
    if problem.kind == "conv2d":
        layer = layer_of(problem)
        source = "positions" if layer.r * layer.s > 1 else "position"
    measured_as = "fp16" if data_type == "bf16" else data_type
    return float(known.get(f"{source} {measured_as}", {}).get(key, 1.0))


@dataclass(frozen=True)
class Run:
    """Blocks of one configuration on a machine."""

    block: Block
    one: Mapping[str, int]
    width: int
    taken: Taken
    machine: Machine
    fit: Fitted

    def wave(self, here: int, live: int, together: float) -> tuple[float, list[float]]:
        """Cycles of a wave with so many blocks on an SM; of a step, cycles of each part."""
        block, one, machine, fit = self.block, self.one, self.machine, self.fit
        *parts, wait = self._step(here, live, together)
        tensor, l2, dram, _ = parts
        issued = here * one["warps"] / machine.gpu.schedulers * fit.issue_cycles
        if not self.taken.by_group:
            issued = max(issued, block.terms * self.width / 32 * fit.chain_cycles)
        step = _joined(fit.step, tensor, issued, _joined(fit.memory, wait, l2, dram))
        ends = fit.latency * machine.gpu.dram_latency + fit.start_cycles
        ahead = (one["stages"] - 1) * here * block.asked_of_l2
        ends += fit.fill * ahead / _delivered(fit.ingest, machine, fit)
        ends += here * block.sums * fit.sum_cycles
        ends *= 1 - fit.hidden if here > 1 else 1
        return block.steps * step + ends + here * block.beside, parts

    def _step(self, here: int, live: int, together: float) -> list[float]:
        """Cycles of each part, latency as if DRAM were free; last what operands take to come."""
        block, one, machine, fit = self.block, self.one, self.machine, self.fit
        clock = machine.max_clock_hz
        # What neighbours ask for at the same time, L2 delivers to all of them at once.
        once = block.asked_of_l2 - together * block.shared
        l2 = max(
            live / machine.sms * once / _delivered(fit.delivered, machine, fit),
            here * block.asked_of_l2 / _delivered(fit.ingest, machine, fit),
        )
        of_step = block.dram_bytes(live) * live / (block.blocks * block.steps)
        dram = of_step / (machine.dram_bytes_per_s / clock)
        late = _latency(one["block_m"], block.tile, machine, fit) / _ahead(one, self.taken, fit)
        more = block.wait + (fit.two_stages * block.tensor if one["stages"] <= 2 else 0.0)
        # Warps go round the schedulers; each has its share of a block's multiply-adds.
        on_each = [0] * machine.gpu.schedulers
        for warp in range(here * one["warps"]):
            on_each[warp % len(on_each)] += 1
        tensor = max(on_each) * block.tensor * len(on_each) / one["warps"]
        tensor = max(tensor, block.tensor + block.alone)
        return [tensor, l2, dram, late + more, (late**2 + dram**2) ** 0.5 + more]


def _delivered(rate: float, machine: Machine, fit: Fitted) -> float:
    """Bytes that an SM receives each cycle, on a GPU whose L2 delivers more or less."""
    delivered = machine.l2_bytes_per_s / machine.max_clock_hz / machine.sms
    return rate * delivered / fit.l2_at


def _ahead(one: Mapping[str, int], taken: Taken, fit: Fitted) -> float:
    ahead = one["stages"] - 1.0
    return max(ahead, 1) if taken.by_group else max(ahead - fit.direct, 0.6)


def _latency(rows: int, tile: int, machine: Machine, fit: Fitted) -> float:
    asked = fit.latency * machine.gpu.dram_latency + fit.row_cycles * rows
    return asked + tile / machine.gpu.shared_bytes_per_cycle


def _product(
    problem: Problem,
    one: Mapping[str, int],
    widths: tuple[int, int],
    taken: Taken,
    machine: Machine,
    fit: Fitted,
) -> Block:
    sizes, (width, out) = problem.size, widths
    m, n, k, batch = sizes["M"], sizes["N"], sizes["K"], sizes.get("B", 1)
    down, across = ceil(m / one["block_m"]), ceil(n / one["block_n"])
    high = min(one["group_m"], down)
    split = one.get("split_k", 1)
    terms, sums = k / split, batch * m * n
    after = 0.0
    if split > 1:
        # Parts of sums are fp32; a kernel adds them, out of L2 if they fit into it.
        parts, lasting = 4 * sums * split, 4 * sums * split <= machine.l2_bytes
        after = fit.launch * machine.gpu.launch_s + sums * out / machine.dram_bytes_per_s
        after += parts / (machine.l2_bytes_per_s if lasting else machine.dram_bytes_per_s)

    def dram_bytes(live: float) -> float:
        kept = fit.kept * machine.l2_bytes
        side = min(ceil(live / high), across)
        in_wave = (high * one["block_m"] + side * one["block_n"]) * terms * width
        waves_of_group = max(ceil(high * across / live), 1)
        a = m * k * width * (1 + (waves_of_group - 1) * _lost(in_wave, kept))
        # All rows of tiles that run at a time read the same columns of B.
        rows = max(high, live / across)
        in_sweep = (min(rows, down) * one["block_m"] + n) * terms * width
        b = n * k * width * (1 + max(down / rows - 1, 0) * _lost(in_sweep, kept))
        b *= 1 + fit.narrow * 64 / (one["block_k" if width == 1 else "block_n"] * width)
        return batch * (a + b + 1.5 * m * n * (4 * split if split > 1 else out))

    return Block(
        blocks=batch * down * across * split,
        steps=ceil(-(-k // split) / one["block_k"]),
        tensor=_tensor(one, width, taken, machine, fit),
        asked_of_l2=sum(_asked_of_l2(one, n, k, width, fit)),
        shared=_shared(_asked_of_l2(one, n, k, width, fit), high, down, across),
        wait=0.0,
        beside=0.0,
        dram_bytes=dram_bytes,
        macs=batch * m * n * k,
        tile=(one["block_m"] + one["block_n"]) * one["block_k"] * width,
        sums=one["block_m"] * one["block_n"],
        terms=one["block_k"],
        after=after,
    )


def _decode(
    problem: Attention,
    one: Mapping[str, int],
    width: int,
    taken: Taken,
    machine: Machine,
    fit: Fitted,
) -> Block:
    """A block for each head of keys and part of them; docs/choosing_kernels.md, Decoding."""
    rows, columns, parts = one["block_m"], one["block_n"], one["split_k"]
    size = 16
    while size < problem.head_size:
        size *= 2
    share = fit.tensor
    if not taken.by_group and machine.gpu.tensor_issue == "group":
        share = fit.by_warp
    # Scores and their product with the values, and what each score's exponential takes.
    scores = rows * columns
    cycles = 2 * scores * size / share / machine.macs_per_cycle
    cycles += attention_numbers()["exp"] * scores
    queries = problem.batch * problem.heads * problem.queries
    keys = problem.batch * problem.groups * problem.length
    # Sums of each part, and what its scores add up to, are fp32.
    partial = 4 * queries * parts * (problem.head_size + 1)
    out = queries * problem.head_size * width
    lasting = partial <= machine.l2_bytes
    after = fit.launch * machine.gpu.launch_s + out / machine.dram_bytes_per_s
    after += partial / (machine.l2_bytes_per_s if lasting else machine.dram_bytes_per_s)
    row = size * width
    return Block(
        blocks=problem.batch * problem.groups * parts,
        steps=ceil(ceil(problem.length / parts) / columns),
        tensor=cycles,
        asked_of_l2=2 * columns * (64 * _met(row, row, 64) + fit.row_bytes * _met(row, row, 128)),
        wait=0.0,
        beside=0.0,
        dram_bytes=lambda live: out + 2 * keys * problem.head_size * width + 1.5 * partial,
        macs=2 * queries * problem.length * problem.head_size,
        tile=2 * columns * size * width,
        sums=rows * size,
        terms=size + columns,
        after=after,
    )


def _conv(
    problem: Problem,
    one: Mapping[str, int],
    widths: tuple[int, int],
    taken: Taken,
    machine: Machine,
    fit: Fitted,
) -> Block:
    layer, (width, out) = layer_of(problem), widths
    places = layer.r * layer.s
    pixels, parts = layer.n * layer.p * layer.q, ceil(layer.c / one["block_k"])
    more = 1 + fit.more_warps if one["warps"] == 8 else 1.0
    elements = (one["block_m"] + one["block_n"]) * one["block_k"]
    tensor = _tensor(one, width, taken, machine, fit)
    latency = _latency(one["block_m"], elements * width, machine, fit)
    early = one["stages"] - 1
    # A filter position: copies ahead of its first step, then one more at each.
    addressed = elements / 1024 * (early + parts) / parts
    tensor += fit.address_cycles * addressed * more
    # What no other block's arithmetic hides; a warp of eight has half as many addresses.
    alone = fit.alone_cycles * addressed * 4 / one["warps"]
    waited = latency
    for at in range(parts):
        if at >= max(early, 1):
            waited += latency / _ahead(one, taken, fit)
    wait = waited / parts - latency / _ahead(one, taken, fit)
    # The arithmetic of its end that nothing hides; two stages hide no more at any step.
    shown = fit.drain * (tensor + alone) / parts
    shown -= fit.two_stages * (tensor + alone) if one["stages"] <= 2 else 0.0
    seen, across = layer.input_elems(width), ceil(layer.k / one["block_n"])
    asked, down = _asked_of_l2(one, layer.k, layer.c, width, fit), ceil(pixels / one["block_m"])
    asked_again = max(pixels * places * layer.c - seen, 0)

    def dram_bytes(live: float) -> float:
        # Positions that a stride brings to other pixels lie between two uses of one.
        between = min(layer.stride[1], layer.s)
        asked = min(ceil(live / across) * one["block_m"], pixels) * layer.c * width * between
        read = seen + asked_again * _lost(asked, fit.kept * machine.l2_bytes)
        read *= 1 + fit.narrow * 64 / (one["block_k"] * width)
        return (read + layer.k * layer.c * places) * width + 1.5 * written

    written = pixels * layer.k * out
    return Block(
        blocks=down * across,
        steps=parts * places,
        tensor=tensor,
        asked_of_l2=sum(asked),
        shared=_shared(asked, 8, down, across),
        wait=wait + max(shown, 0.0),
        beside=places * fit.place_cycles * elements / 4096 * more,
        dram_bytes=dram_bytes,
        macs=pixels * layer.k * layer.c * places,
        tile=elements * width,
        sums=one["block_m"] * one["block_n"],
        terms=one["block_k"],
        alone=alone,
    )


def _tensor(
    one: Mapping[str, int], width: int, taken: Taken, machine: Machine, fit: Fitted
) -> float:
    bm, bn, bk, warps = (one[name] for name in ("block_m", "block_n", "block_k", "warps"))
    share = fit.tensor
    if not taken.by_group and machine.gpu.tensor_issue == "group":
        share = fit.by_warp
    cycles = bm * bn * bk / (machine.macs_per_cycle * share)
    if taken.by_group:
        if width == 1 and bn == 256 and warps == 8:
            cycles *= fit.wide_bytes
        if width == 4:
            cycles += fit.turned * bn * bk
        # Groups of four warps have 64 rows each; two of them share as few across.
        wide = bn / 2 if bm == 64 and warps == 8 else bn
        operands = bm * bn / (64 * wide) * (64 + wide) * bk
    else:
        down = min(warps, max(bm / 16, 1))
        operands = (bm * warps / down + bn * down) * bk
    through = (operands + (bm + bn) * bk) * width
    cycles = max(cycles, fit.shared * through / machine.gpu.shared_bytes_per_cycle)
    # Spilled registers are stored and loaded once a step.
    return cycles + 2 * taken.spilled_bytes / machine.gpu.l1_bytes_per_cycle


def _asked_of_l2(
    one: Mapping[str, int], n: int, k: int, width: int, fit: Fitted
) -> tuple[float, ...]:
    bm, bn, bk = (one[name] for name in ("block_m", "block_n", "block_k"))
    # Rows of a tile, elements of one, and from one to the next in memory.
    b = (bn, bk, k) if width == 1 else (bk, bn, n)
    return tuple(
        rows
        * sum(
            cost * _met(row * width, pitch * width, unit)
            for cost, unit in ((64, 64), (fit.row_bytes, 128))
        )
        for rows, row, pitch in ((bm, bk, k), b)
    )


def _shared(asked: tuple[float, ...], group: int, down: int, across: int) -> float:
    """Bytes that the first blocks ask for together: 16 of them, or as many as there are."""
    rows, columns, blocks = set(), set(), min(16, down * across)
    for block in range(blocks):
        first = block // (group * across) * group
        high = min(down - first, group)
        rows.add(first + block % (group * across) % high)
        columns.add(block % (group * across) // high)
    of_a, of_b = asked
    return of_a * (1 - len(rows) / blocks) + of_b * (1 - len(columns) / blocks)


@cache
def _met(row: int, pitch: int, unit: int) -> float:
    """Units of memory that a row has bytes in: the mean over as many rows as make a period."""
    met = [len({at // unit for at in range(i * pitch, i * pitch + row)}) for i in range(unit)]
    return sum(met) / len(met)


def _lost(asked: float, kept: float) -> float:
    return 1 / (1 + (kept / asked) ** 4)


def _joined(exponent: float, *parts: float) -> float:
    most = max(parts)
    return most * sum((part / most) ** exponent for part in parts) ** (1 / exponent)
