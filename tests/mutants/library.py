"""Mutants of library products and tiled kernels of one's own."""

from __future__ import annotations

from .mutant import In

_wave = In("gpu/library/wave.py", "test_library_gemm.py", "test_library_tiled.py")
_wave.broken(
    "last-wave-forgotten",
    "blocks that do not fill a wave take no time",
    "        cycles += wave(-(-rest // machine.sms))\n",
    "        cycles += 0 * wave(-(-rest // machine.sms))\n",
)
_wave.broken(
    "last-wave-packed",
    "blocks of the last wave fill one SM after another",
    "wave(-(-rest // machine.sms))",
    "wave(resident)",
)
_wave.broken(
    "schedulers-share-warps",
    "a lone warp is issued by all four schedulers",
    "return a_warp * turns",
    "return a_warp * together",
)
_wave.broken(
    "tensor-cores-shared",
    "a lone warp uses the tensor cores of all four schedulers",
    "machine.macs_per_cycle * turns / together",
    "machine.macs_per_cycle",
    "test_library_properties.py",
)
_wave.broken(
    "slots-for-free",
    "instructions that are no multiply-adds take no issue slots",
    "max(multiplies * per_multiply, multiplies / machine.packed + others)",
    "multiplies * per_multiply",
)
_wave.broken(
    "output-not-read",
    "an output that is added to is not read",
    "product.c_bytes * (2 if product.reads_output and split == 1 else 1)",
    "product.c_bytes",
)
_wave.broken(
    "nothing-stays-warm",
    "what L2 held from the last run is read again",
    "max(0.0, loads + stores - machine.l2_bytes)",
    "loads + stores",
)
_wave.broken(
    "parts-for-free",
    "parts of split sums are not moved",
    "moved = 2 * split * 4 * product.batch * product.m * product.n + product.c_bytes",
    "moved = product.c_bytes",
)
_wave.broken(
    "slowest-tile",
    "a library takes its slowest tile",
    "return min(found, key=lambda timed: timed.time_s)",
    "return max(found, key=lambda timed: timed.time_s)",
)
_wave.broken(
    "panels-swapped",
    "rows of A are loaded once a row of tiles",
    "panels = product.m * columns + product.n * rows",
    "panels = product.m * rows + product.n * columns",
)
_wave.broken(
    "copies-of-one-operand",
    "single elements of A cost what B's do",
    "(tile.m * of_a + tile.n * of_b) * tile.k",
    "(tile.m * of_b + tile.n * of_a) * tile.k",
)
_order = In("gpu/library/order.py", "test_library_tiled.py")
_order.broken(
    "columns-per-whole-order",
    "B is read once, whatever lies between",
    "b_again = 1 + (groups - 1) * evicted(whole / capacity_bytes)",
    "b_again = 1.0",
)
_order.broken(
    "rows-read-once",
    "A's panels survive all waves of a group",
    "a_again = 1 + (waves - 1) * evicted(wave / capacity_bytes)",
    "a_again = 1.0",
)
_order.broken(
    "sets-of-more-lines",
    "a set of L2 holds a line more",
    "for met in range(1, WAYS):",
    "for met in range(1, WAYS + 1):",
)
_gemm = In("gpu/library/gemm.py", "test_library_gemm.py")
_gemm.broken(
    "transposes-ignored",
    "a transposed A streams as a plain one",
    "is_strided=a_transposed)",
    "is_strided=False)",
)
_gemm.broken(
    "library-of-another-generation",
    "an M40 gets a newer library",
    'return "volta" if usual == _PIPELINED else usual',
    'return "volta"',
)
_pipelined = In("gpu/library/pipelined.py", "test_library_pipelined.py")
_pipelined.broken(
    "weights-always-warm",
    "a layer's weights are in L2 though other layers ran in between",
    "of_b = _lost(a + _LAYERS * b + c, machine)",
    "of_b = _lost(a + b + c, machine)",
)
_pipelined.broken(
    "one-step-in-flight",
    "the latency of copies counts for each step",
    "latency = turns * steps * gpu.dram_latency / ahead",
    "latency = turns * steps * gpu.dram_latency / beside",
)
_bound = In("gpu/bound.py", "test_library_gemm.py")
_bound.broken(
    "bound-of-cold-runs",
    "the bound takes L2 to be empty when a run begins",
    "max(0, touched_bytes - _kept_bytes(arch))",
    "touched_bytes",
)
_tiled = In("gpu/library/launch.py", "test_library_tiled.py")
_tiled.broken(
    "split-parts-not-read",
    "parts of split sums are written but not read again",
    "l2_bytes_read=product.batch * product.k * product.element_bytes * panels + parts",
    "l2_bytes_read=product.batch * product.k * product.element_bytes * panels",
)
_tiled.broken(
    "banks-for-free",
    "a load of a warp keeps only the banks busy that it reads",
    "a_term = max(a_term, loads * gpu.banks * gpu.bank_bytes)",
    "a_term = max(a_term, loads)",
)

LIBRARY = (
    *_wave.mutants,
    *_order.mutants,
    *_gemm.mutants,
    *_pipelined.mutants,
    *_bound.mutants,
    *_tiled.mutants,
)
