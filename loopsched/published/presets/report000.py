"""Report 000: a direct convolution with the input's tile in shared memory."""

from __future__ import annotations

from loopsched.gpu.kernel import Kernel
from loopsched.problems.convolution import conv2d
from loopsched.published.presets.padding import cut


def direct(
    size: int = 32,
    taps: int = 3,
    inputs: int = 32,
    outputs: int = 32,
    block: int = 16,
    unrolled: bool = True,
) -> Kernel:
    """Convolve a padded image channel by channel, its tile in shared memory (report 000).

    In the report all sizes are known to the compiler, which unrolls: its counts
    of integer operations hardly grow from 3 x 3 to 5 x 5 taps.
    """
    across = size + taps - 1
    side = max(size, block)
    problem = conv2d(n=1, c=inputs, k=outputs, p=side, q=side, r=taps, s=taps)
    stored = {"input": {"P": across, "Q": across}, "output": {"P": size, "Q": size}}
    return Kernel.of(
        cut(problem, stored) if side > size else problem,
        f"K:{outputs}@block_z P:{side}@block_y Q:{side}@block_x "
        f"P:{block}@thread_y Q:{block}@thread_x C:{inputs} R:{taps} S:{taps}",
        name="direct",
        reads={"input": "shared@C,zero=no"},
        registers=32,
        is_unrolled=unrolled,
    )
