"""What a row of counters was: a problem, the schedule that ran, and what must move.

A kernel with tiles, blocks launched in groups of rows of tiles and no barrier is a
nest whose outer loops are spatial (see docs/model.md).
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache

from loopsched.base.errors import InputError
from loopsched.gpu.library.order import grouped_schedule
from loopsched.gpu.occupancy import occupancy
from loopsched.machines.arch import Arch
from loopsched.machines.arch_file import load_arch
from loopsched.nests.notation import parse_schedule
from loopsched.network.selection import problem_of
from loopsched.problems.builders import gemm
from loopsched.validation.counter_files import CounterRow
from loopsched.validation.kernels import kernel_launch
from loopsched.validation.launch import Launch, compulsory_bytes
from loopsched.validation.sectors import SECTOR_BYTES, panel_sectors

# Triton's defaults; tiles of that many steps are in flight, each with room of its own.
TRITON_STAGES, TRITON_THREADS = 3, 256
# Triton knows of a stride only whether 16 elements divide it; else it copies word by word.
TRITON_DIVISOR = 16
WIDE_TILE = 64
_machine = cache(load_arch)


def launch_of(row: CounterRow, unit: str, arch: Arch | None = None) -> Launch:
    """Work out what a row's launch was.

    Parameters
    ----------
    row : CounterRow
    unit : str
        What runs a block, such as ``SM``.
    arch : Arch, optional
        What it ran on, by default an H200; only hand-written kernels need it.

    Raises
    ------
    InputError
        If a text in the row cannot be understood.

    Examples
    --------
    >>> from loopsched.validation.counter_files import read_counters
    >>> launch = launch_of(read_counters("h200_tiled_gemm")[1], "SM")
    >>> print(launch.schedule)
    M:8192@SM N:8192@SM M:512@SM K:8192 M:64 N:64 K:32
    """
    if row.form == "kernels":
        registers = row.measured("registers")
        machine = _machine("h200") if arch is None else arch
        case = str(row.values["case"])
        return kernel_launch(case, machine, None if registers is None else int(registers))
    if row.form == "schedules":
        return _scheduled(row)
    return _tiled_gemm(row, unit)


def _tiled_gemm(row: CounterRow, unit: str) -> Launch:
    m, n, k = row.count("M"), row.count("N"), row.count("K")
    tile = row.count("tile_m"), row.count("tile_n"), row.count("tile_k")
    problem = gemm(m=m, n=n, k=k)
    schedule = grouped_schedule(problem, *tile, row.count("group_m"), unit)
    sectors = panel_sectors(m, n, k, *tile)
    return Launch(problem, schedule, _abreast(row, tile), sectors, *compulsory_bytes(problem))


def _abreast(row: CounterRow, tile: tuple[int, int, int]) -> int:
    """Count the resident blocks of one multiprocessor that advance side by side.

    Where B's rows allow copies of 16 bytes, one block keeps a multiprocessor busy and
    the oldest goes first: one block counts.  Where they do not, Triton copies B word by
    word, transposed, and large tiles wait for it: all resident blocks go on together.
    """
    tile_m, tile_n, tile_k = tile
    if row.count("N") % TRITON_DIVISOR == 0 or min(tile_m, tile_n) < WIDE_TILE:
        return 1
    threads, registers = row.measured("block_threads"), row.measured("registers")
    shared = TRITON_STAGES * 4 * tile_k * (tile_m + tile_n)
    with suppress(InputError):  # fewer steps than by default were in flight
        limits = _machine("h200").kernel_limits
        return occupancy(limits, int(threads or TRITON_THREADS), int(registers or 1), shared).blocks
    return 1


def _scheduled(row: CounterRow) -> Launch:
    problem = problem_of(str(row.values["problem"]))
    schedule = parse_schedule(str(row.values["schedule"]), problem)
    abreast = int(row.measured("resident_blocks") or 1)
    return Launch(problem, schedule, abreast, None, *compulsory_bytes(problem))


def loaded_sectors(loaded_bytes: float) -> float:
    """Turn bytes into sectors, as if every one began and ended with a sector."""
    return loaded_bytes / SECTOR_BYTES
