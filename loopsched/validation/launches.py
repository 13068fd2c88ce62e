"""What a row of counters was: a problem, the schedule that ran, and what must move.

A kernel with tiles, blocks launched in groups of rows of tiles and no barrier is a
nest whose outer loops are spatial (see docs/model.md).
"""

from __future__ import annotations

from loopsched.gpu.library.order import grouped_schedule
from loopsched.machines.arch import Arch
from loopsched.machines.arch_file import load_arch
from loopsched.nests.notation import parse_schedule
from loopsched.network.selection import problem_of
from loopsched.problems.builders import gemm
from loopsched.validation.counter_files import CounterRow
from loopsched.validation.kernels import kernel_launch
from loopsched.validation.launch import Launch, compulsory_bytes
from loopsched.validation.sectors import SECTOR_BYTES, panel_sectors

# Of one multiprocessor, compute capability 9.0 (CUDA C++ Programming Guide, technical
# specifications); a block also takes 1 KiB of shared memory for the system.
SM_REGISTERS = 65536
SM_THREADS = 2048
SM_BLOCKS = 32
SM_SHARED_BYTES = 228 * 1024
BLOCK_SYSTEM_BYTES = 1024
WARP = 32
# Triton's default: tiles of that many steps are in flight, each with room of its own.
TRITON_STAGES = 3
# Triton knows of a stride only whether 16 elements divide it; else it copies word by word.
TRITON_DIVISOR = 16
WIDE_TILE = 64


def launch_of(row: CounterRow, unit: str, units: int, arch: Arch | None = None) -> Launch:
    """Work out what a row's launch was.

    Parameters
    ----------
    row : CounterRow
    unit : str
        What runs a block, such as ``SM``.
    units : int
    arch : Arch, optional
        What it ran on, by default an H200; only hand-written kernels need it.

    Raises
    ------
    InputError
        If a text in the row cannot be understood.

    Examples
    --------
    >>> from loopsched.validation.counter_files import read_counters
    >>> launch = launch_of(read_counters("h200_tiled_gemm")[1], "SM", 132)
    >>> print(launch.schedule)
    M:8192@SM N:8192@SM M:512@SM K:8192 M:64 N:64 K:32
    """
    if row.form == "kernels":
        registers = row.measured("registers")
        machine = load_arch("h200") if arch is None else arch
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
    threads = int(row.measured("block_threads") or 8 * WARP)
    shared = TRITON_STAGES * 4 * tile_k * (tile_m + tile_n) + BLOCK_SYSTEM_BYTES
    limits = [SM_BLOCKS, SM_THREADS // threads, SM_SHARED_BYTES // shared]
    registers = row.measured("registers")
    if registers is not None:
        a_warp = -(-int(registers) * WARP // 256) * 256  # handed out 256 at a time
        limits.append(SM_REGISTERS // a_warp // max(1, threads // WARP))
    return max(1, min(limits))


def _scheduled(row: CounterRow) -> Launch:
    problem = problem_of(str(row.values["problem"]))
    schedule = parse_schedule(str(row.values["schedule"]), problem)
    abreast = int(row.measured("resident_blocks") or 1)
    return Launch(problem, schedule, abreast, None, *compulsory_bytes(problem))


def loaded_sectors(loaded_bytes: float) -> float:
    """Turn bytes into sectors, as if every one began and ended with a sector."""
    return loaded_bytes / SECTOR_BYTES
