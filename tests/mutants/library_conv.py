"""Mutants of library convolutions: algorithms, passes, transforms, spreads."""

from __future__ import annotations

from .mutant import In

_winograd = In("gpu/library/conv_winograd.py", "test_library_conv.py")
_winograd.broken(
    "winograd-border-tiles-cut",
    "tiles at the border of an image are left out",
    "layer.n * math.ceil(high / outputs) * math.ceil(wide / outputs)",
    "max(1, layer.n * (high // outputs) * (wide // outputs))",
)
_winograd.broken(
    "winograd-without-overlap",
    "a tile has as many points as outputs",
    "return (self.outputs + self.filter - 1) ** 2",
    "return self.outputs**2",
)
_winograd.broken(
    "winograd-at-any-stride",
    "separate Winograd kernels run strided layers",
    "if not layer.is_unit_stride or layer.groups != 1 or layer.r != layer.s:",
    "if layer.groups != 1 or layer.r != layer.s:",
)
_fft = In("gpu/library/conv_fft.py", "test_library_conv.py")
_fft.broken(
    "whole-spectra",
    "products of both halves of a symmetric spectrum",
    "return self.high * (self.wide // 2 + 1)",
    "return self.high * self.wide",
)
_gemms = In("gpu/library/conv_gemm.py", "test_library_conv.py")
_gemms.broken(
    "transforms-for-free",
    "transformed tensors are neither written nor read by the transforms",
    "target.stream_s(sum(each)) + target.kernel_s",
    "target.kernel_s",
)
_gemms.broken(
    "zeros-multiplied",
    "an input's gradient at a stride multiplies all zeros",
    "taps = math.ceil(layer.r / layer.stride[0]) * math.ceil(layer.s / layer.stride[1])",
    "taps = layer.r * layer.s",
)
_gemms.broken(
    "scattering-for-free",
    "atomic additions take no time in L2",
    "Run(max(found.time_s, atomic_s) + clear_s",
    "Run(found.time_s + clear_s",
)
_gemms.broken(
    "table-for-free",
    "the table of offsets is there already",
    'is_longer = precomputed or layer.pass_ == "backward_weights"',
    'is_longer = layer.pass_ == "backward_weights"',
)
_gemms.broken(
    "copy-for-free",
    "the unrolled input is not written to memory",
    "moving_s = target.stream_s(unrolled + width * layer.input_elems(width)) + target.kernel_s",
    "moving_s = target.kernel_s",
)
_layer = In("gpu/library/conv_layer.py", "test_library_conv.py")
_layer.broken(
    "inner-products-one-late",
    "a product with the first position of the padding counts",
    "last = min(outputs - 1, (stored - 1 - shift) // stride)",
    "last = min(outputs - 1, (stored - shift) // stride)",
)
_layer.broken(
    "columns-never-whole",
    "memory gives single columns of a strided row",
    "if self.stride[1] * element_bytes > _SECTOR_BYTES:",
    "if self.stride[1] > 1:",
    "test_library_properties.py",
)
_conv = In("gpu/library/conv.py", "test_library_conv.py")
_conv.broken(
    "bound-of-the-slowest-algorithm",
    "with no algorithm given, the bound is that of the most multiplications",
    "return min(layer.inner_macs, *(count for count in counts if count is not None))",
    "return max(layer.inner_macs, *(count for count in counts if count is not None))",
)
_conv.broken(
    "tensor-cores-for-odd-channels",
    "tensor cores take any number of channels",
    "whole = layer.c % _TENSOR_CHANNELS == 0 and layer.k % _TENSOR_CHANNELS == 0",
    "whole = True",
)
_spread = In("gpu/result.py", "test_library_properties.py")
_spread.broken(
    "estimate-outside-its-spread",
    "where rows of other GPUs all lie above, so does the whole spread",
    "min(1.0, like.low) * time_s",
    "like.low * time_s",
)
_machine = In("gpu/library/machine.py", "test_library_properties.py")
_machine.broken(
    "packed-halves-are-tensor-cores",
    "two halves in a lane count as a tensor core",
    "of_lanes = packed * lanes",
    "of_lanes = lanes",
)

LIBRARY_CONV = (
    *_winograd.mutants,
    *_fft.mutants,
    *_gemms.mutants,
    *_layer.mutants,
    *_conv.mutants,
    *_spread.mutants,
    *_machine.mutants,
)
