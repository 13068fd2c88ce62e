"""The model of attention for one configuration: plain numbers, blocks one by one."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

from loopsched.gpu.choice.attention import Attention
from loopsched.gpu.choice.fitted import fitted
from loopsched.gpu.library.machine import Machine

WAVES = 4


def estimate(
    problem: Attention,
    one: Mapping[str, int],
    width: int,
    by_group: bool,
    resident: int,
    machine: Machine,
    fit: Mapping[str, float],
) -> float:
    """Seconds."""
    shared, alone = _step(problem, one, width, by_group, machine, fit)
    late = fit["two_stages"] if one["stages"] <= 2 else 0.0
    rounds = [_joined(fit["round"], many * shared, alone) + late for many in range(resident + 1)]
    down = ceil(problem.length / one["block_m"])
    heads = problem.batch * problem.heads
    moved = 2 * problem.batch * (problem.heads + problem.groups) * problem.length
    moved *= problem.head_size * width
    per_cycle = machine.dram_bytes_per_s / machine.max_clock_hz / machine.sms
    begun = fit["block_cycles"] + fit["dram"] * moved / (heads * down) / per_cycle
    lengths = []
    for block in range(down):
        seen = problem.length
        if problem.causal:
            seen = min(seen, (block + 1) * one["block_m"])
        lengths.append(ceil(seen / one["block_n"]) + begun / rounds[resident])
    walked = min(heads, ceil(WAVES * machine.sms * resident / down)) if problem.causal else heads
    cycles = (heads - walked) * sum(lengths) / (machine.sms * resident) * rounds[resident]
    crowded = None if problem.causal else fit["crowded"]
    cycles += run(lengths * walked, machine.sms, resident, rounds, crowded)
    seconds = max(cycles / machine.max_clock_hz, moved / machine.dram_bytes_per_s)
    return seconds + fitted("triton_attention").launch * machine.gpu.launch_s


def run(
    lengths: list[float], sms: int, resident: int, rounds: list[float], crowded: float | None
) -> float:
    """Blocks in order; of equal blocks, those left over are also begun on empty SMs."""
    taken = drained(lengths, sms, resident, rounds)
    left = len(lengths) % (sms * resident)
    if crowded is None or left == len(lengths):
        return taken
    whole = drained(lengths[left:], sms, resident, rounds)
    return crowded * taken + (1 - crowded) * (
        whole + drained(lengths[:left], sms, resident, rounds)
    )


def drained(lengths: list[float], sms: int, resident: int, rounds: list[float]) -> float:
    """Give each place that is free the next block; an SM's blocks share it evenly."""
    waiting = lengths[::-1]
    # Of each SM: its clock in steps of one block, and when on it each block will be done.
    steps, since, ends = [0.0] * sms, [0.0] * sms, [[] for _ in range(sms)]  # type: ignore[var-annotated]
    for _ in range(resident):
        for sm in range(sms):
            if waiting:
                ends[sm].append(waiting.pop())
    queue = {sm: min(one) * rounds[len(one)] for sm, one in enumerate(ends) if one}
    now = 0.0
    while queue:
        soonest = min(queue.values())
        sm = min(sm for sm, end in queue.items() if end <= soonest * (1 + 1e-10))
        now = queue.pop(sm)
        mine = ends[sm]
        steps[sm] += (now - since[sm]) / rounds[len(mine)]
        since[sm] = now
        done = [end for end in mine if end <= steps[sm] + 1e-9]
        ends[sm] = [end for end in mine if end > steps[sm] + 1e-9]
        for _ in done:
            if waiting:
                ends[sm].append(steps[sm] + waiting.pop())
        if ends[sm]:
            left = min(ends[sm]) - steps[sm]
            queue[sm] = now + left * rounds[len(ends[sm])]
    return now


def _step(
    problem: Attention,
    one: Mapping[str, int],
    width: int,
    by_group: bool,
    machine: Machine,
    fit: Mapping[str, float],
) -> tuple[float, float]:
    """Cycles that a step of a block takes of an SM that many share; and of an SM of its own."""
    rows, keys, warps = one["block_m"], one["block_n"], one["warps"]
    size = 16
    while size < problem.head_size:
        size *= 2
    groups = max(warps / 4, 1.0)
    crossed = by_group and rows < groups * 64
    share = 1.0
    if not by_group:
        of_all = fitted("triton_attention")
        share = of_all.by_warp if machine.gpu.tensor_issue == "group" else of_all.tensor
    tensor = 2 * rows * keys * size / (machine.macs_per_cycle * share)
    if by_group:
        # Scores: queries and keys of each instruction; values: once for 64 rows.
        across = keys / groups if crossed else keys
        read = rows * keys / (64 * across) * (64 + across) * size + rows / 64 * keys * size
    else:
        read = (rows + 2 * keys * min(warps, max(rows / 16, 1))) * size
    copied = 2 * keys * size * width
    through = (read * width + copied) / machine.gpu.shared_bytes_per_cycle
    tensor = _joined(8.0, tensor, fit["shared"] * through)
    twice = fit["crossed"] if crossed else 1.0
    mask = twice * fit["mask"] * rows * keys if problem.causal else 0.0
    lanes = twice * (fit["exp"] * rows * keys + fit["scale"] * rows * size)
    lacking = (rows * (keys + size) + rows * keys / 2) / (32 * warps) - 240
    more = fit["lacking"] * max(lacking, 0) * groups
    more += fit["copy"] * copied / machine.gpu.shared_bytes_per_cycle
    shared = _joined(fit["overlap"], tensor, lanes + mask) + more + fit["group_cycles"] * groups
    # Of four schedulers one warp has one, two have two.
    idle = {1: 4.0, 2: 2.0}.get(warps, 1.0)
    alone = idle * (tensor + lanes / groups + fit["mask_alone"] * mask)
    return shared, alone + fit["alone_cycles"] + more


def _joined(exponent: float, *parts: float) -> float:
    most = max(parts)
    return most * sum((part / most) ** exponent for part in parts) ** (1 / exponent)
