"""The fitted numbers of pipelined kernels, by family."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache

from loopsched.gpu.calibrated import calibration_file
from loopsched.gpu.choice.triton import FILE


@dataclass(frozen=True, slots=True)
class Fitted:
    """Numbers that no document gives; `pipeline.json` says what they were fitted on.

    Parameters
    ----------
    tensor : float
        Share of the tensor cores' rate that full instructions reach.
    by_warp : float
        The same for instructions of single warps, where groups of four could issue them.
    shared : float
        Cycles over those that shared memory's bandwidth asks for.
    ingest, delivered : float, bytes per cycle
        What an SM can receive of L2, and what L2 delivers to each of all SMs, on a GPU
        whose L2 delivers `l2_at` bytes a cycle to each SM.
    merged_first, merged_later : float
        Share of what neighbours ask for as well that L2 delivers to all of them at once: in the
        first wave, in which they are in step, and afterwards.
    l2_at : float, bytes per cycle
    row_bytes : float, bytes
        What a row of a tile costs L2 besides its bytes, for each line of 128 bytes that it
        touches.
    narrow : float
        More that DRAM takes for a row of a tile of 64 bytes; for longer ones less in proportion.
    latency : float
        From a request to its operands, in DRAM latencies of the machine file.
    row_cycles : float, cycles
        More latency for each row of A.
    two_stages : float
        Part of a step's arithmetic that two stages do not hide.
    direct : float
        Stages that a kernel has less where operands go through registers.
    memory, step : float
        Exponents of the norms that join the parts of memory, and these with
        arithmetic.
    start_cycles, sum_cycles : float, cycles
        Of a block: to begin and to end; for each of its sums.
    fill : float
        To begin, too: of what L2 takes to deliver the steps that are asked for ahead.
    hidden : float
        Share of these that other resident blocks hide.
    kept : float
        Share of L2 in which operands wait for their next use.
    launch : float
        Of a measured kernel, in launches of the machine file.
    pj_mac, pj_byte : float, picojoule
        Energy of a multiply-accumulate of two bytes, and of a byte from L2.
    slack_us : float, microseconds
        How long a kernel may run before its power counts.
    power : float
        Exponent that joins this limit with the others.
    turned : float, cycles
        To turn an element of B for tensor cores that need sums to lie side by side.
    wide_bytes : float
        Factor for arithmetic of single bytes with 256 columns and eight warps.
    issue_cycles : float, cycles
        Of a scheduler, for a warp's instructions of a step beside its arithmetic.
    chain_cycles : float, cycles
        Of an instruction of a single warp that adds 32 bytes of terms, until the next may follow.
    address_cycles : float, cycles
        Of a convolution: for the addresses of 1,024 elements of a step.
    place_cycles : float, cycles
        For the addresses of 4,096 elements at each filter position.
    drain : float
        Part of a step's arithmetic that the next filter position waits for.
    more_warps : float
        By which eight warps need more of these than four.
    alone_cycles : float, cycles
        That arithmetic waits for the addresses of 1,024 elements, if no other block multiplies
        meanwhile and each of four warps computes a quarter of them.
    paired : float
        Share of last waves in which SMs whose blocks of four warps end together take as many
        again, while others have none.
    """

    tensor: float
    by_warp: float
    shared: float
    ingest: float
    delivered: float
    l2_at: float
    row_bytes: float
    narrow: float
    latency: float
    row_cycles: float
    two_stages: float
    direct: float
    memory: float
    step: float
    start_cycles: float
    sum_cycles: float
    fill: float
    hidden: float
    kept: float
    launch: float
    pj_mac: float
    pj_byte: float
    slack_us: float
    power: float
    turned: float
    wide_bytes: float
    issue_cycles: float
    chain_cycles: float
    address_cycles: float
    place_cycles: float
    drain: float
    more_warps: float
    alone_cycles: float
    paired: float
    merged_first: float
    merged_later: float

    def alone(self, tensor_issue: str) -> float:
        """Share of the tensor cores' rate that instructions of single warps reach."""
        return self.by_warp if tensor_issue == "group" else self.tensor


@cache
def fitted(family: str) -> Fitted:
    """Give the numbers of a family of kernels.

    Examples
    --------
    >>> 0.5 < fitted("triton_gemm").tensor <= 1
    True
    """
    stored = calibration_file(FILE)
    numbers = stored["common"] | stored.get(family, {})
    return Fitted(**{one.name: numbers[one.name] for one in fields(Fitted)})
