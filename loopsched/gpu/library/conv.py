"""Convolutions of tuned libraries: cuDNN-class algorithms, known or the fastest."""

from __future__ import annotations

from dataclasses import replace

from loopsched.base.errors import InputError, ProblemError, nearest
from loopsched.gpu.bound import repeated_bound
from loopsched.gpu.library.calibration import ConvCalibration, conv_calibration, conv_spread
from loopsched.gpu.library.conv_fft import Spectrum, fft, spectrum_of
from loopsched.gpu.library.conv_gemm import Target, explicit_gemm, implicit_gemm
from loopsched.gpu.library.conv_layer import Layer, layer_of
from loopsched.gpu.library.conv_winograd import (
    fused,
    fused_outputs,
    nonfused,
    nonfused_outputs,
    tiling,
)
from loopsched.gpu.library.machine import element_bytes, machine_of
from loopsched.gpu.library.product import Run
from loopsched.gpu.result import Estimate, estimate_of
from loopsched.machines.arch import Arch
from loopsched.problems.footprint import problem_bytes
from loopsched.problems.problem import Problem

ALGORITHMS = (
    "IMPLICIT_GEMM", "IMPLICIT_PRECOMP_GEMM", "GEMM", "WINOGRAD", "WINOGRAD_NONFUSED", "FFT",
    "FFT_TILING", "EXPLICIT_GEMM",
)  # fmt: skip
_GEMMS = (*ALGORITHMS[:3], "EXPLICIT_GEMM")
_FFTS = ALGORITHMS[5:7]
_WINOGRADS = ALGORITHMS[3:5]
# What a library chooses among.  The others move far more, and no row of DeepBench
# on which their label can be right is faster than these.
CHOICES = (*_GEMMS[:2], *_WINOGRADS)
_WINOGRAD_FILTER = 3
# Channels of a tensor-core kernel come in multiples of it; others run on the ordinary lanes.
_TENSOR_CHANNELS = 8


def conv_estimate(
    problem: Problem, arch: Arch, *, algorithm: str | None = None, data_type: str = "fp32"
) -> Estimate:
    """Estimate the time of a library's convolution, repeated on warm data.

    Parameters
    ----------
    problem : Problem
        A `conv2d`; the tensor that it writes says which pass it is.
    arch : Arch
    algorithm : str, optional
        In DeepBench's words: ``IMPLICIT_GEMM``, ``IMPLICIT_PRECOMP_GEMM``,
        ``GEMM``, ``WINOGRAD``, ``WINOGRAD_NONFUSED``, ``FFT`` or
        ``FFT_TILING``; or ``EXPLICIT_GEMM``, which writes the unrolled input
        to memory (``GEMM`` need not).  By default the
        fastest of those that libraries take.
    data_type : str
        Of the operands, as in the architecture's rates; all tensors are taken
        to be stored so.  ``fp16`` means tensor cores where there are some.

    Returns
    -------
    Estimate
        Its bound is for the given algorithm, or, without one, for any.

    Raises
    ------
    ProblemError
        If it is another kind of problem, or the algorithm cannot run it.  Other errors are those
        of `gemm_estimate`.

    See Also
    --------
    library_estimate, tiled_conv, algorithm_flops

    References
    ----------
    A. Lavin and S. Gray, *Fast Algorithms for Convolutional Neural Networks*, CVPR 2016.

    Examples
    --------
    >>> from loopsched import conv2d, load_arch
    >>> layer = conv2d(n=16, c=256, k=256, h=20, w=84, r=3, s=3, padding=1)
    >>> v100 = load_arch("v100")
    >>> known = conv_estimate(layer, v100, algorithm="WINOGRAD_NONFUSED")
    >>> 800e-6 < known.time_s < 1100e-6  # measured: 887 us
    True
    >>> conv_estimate(layer, v100, algorithm="IMPLICIT_GEMM").time_s > 2 * known.time_s
    True
    """
    layer = layer_of(problem)
    if algorithm is not None:
        _macs_of(problem, layer, algorithm)
    target = target_of(layer, arch, data_type, algorithm)
    names = choices(layer, target) if algorithm is None else (algorithm,)
    # The first must run: what was asked for, or what always can.
    ways = ((name, name == names[0]) for name in names)
    runs = (run_of(layer, target, name, is_required=first) for name, first in ways)
    found = min((run for run in runs if run is not None), key=lambda run: run.time_s)
    macs = least_macs(layer, algorithm)
    stored = problem.with_element_bytes(target.element_bytes)
    bound_s, _ = repeated_bound(macs, problem_bytes(stored), arch, data_type)
    gpu, is_known = target.machine.gpu, algorithm is not None
    like = conv_spread(gpu.measured_as, data_type, layer.pass_, is_known=is_known)
    if layer.groups > 1 or layer.dilation != (1, 1):
        like = conv_spread("none", "none", layer.pass_, is_known=is_known)
        like = replace(
            like, basis="no layer with groups or dilation was measured; the widest interval"
        )
    return estimate_of(found.time_s, bound_s, found.parts, found.kernel, like)


def algorithm_flops(problem: Problem, algorithm: str) -> int:
    """Count the floating-point operations of an algorithm's products.

    Transforms before and after are left out, so it is a lower limit.

    Parameters
    ----------
    problem : Problem
        A `conv2d`, of any pass.
    algorithm : str
        As in `conv_estimate`.

    Returns
    -------
    int
        Two for each multiply-accumulate.

    Raises
    ------
    ProblemError
        If it is another kind of problem, or the algorithm cannot run it.

    See Also
    --------
    conv_estimate

    Notes
    -----
    Products of the unrolled input: all pairs, with padding, as the kernels do it.
    Winograd, for each tile of outputs: F(2x2, 3x3) in ``WINOGRAD``, 16 for 36;
    F(4x4, 3x3) in ``WINOGRAD_NONFUSED``, 36 for 144; F(5x5, 5x5), 81 for 625.
    Border tiles are whole.  FFT: four for each complex number of half a
    spectrum.

    Examples
    --------
    >>> from loopsched import conv2d
    >>> layer = conv2d(n=16, c=64, k=64, h=56, w=56, r=3, s=3, padding=1)
    >>> direct = algorithm_flops(layer, "IMPLICIT_GEMM")
    >>> direct / algorithm_flops(layer, "WINOGRAD")
    2.25
    >>> direct / algorithm_flops(layer, "WINOGRAD_NONFUSED")
    4.0
    """
    return 2 * _macs_of(problem, layer_of(problem), algorithm)


def choices(layer: Layer, target: Target) -> tuple[str, ...]:
    """Name the algorithms that a library chooses among.

    Tensor cores run products only.  Winograd is for 3x3 filters: of larger
    ones, no label of any GPU says that it was taken.
    """
    if not target.machine.on_lanes:
        return _GEMMS[1:2]
    return CHOICES if layer.r == layer.s == _WINOGRAD_FILTER else CHOICES[:2]


def target_of(
    layer: Layer,
    arch: Arch,
    data_type: str,
    algorithm: str | None = None,
    fitted: ConvCalibration | None = None,
) -> Target:
    """Find what a layer runs on.

    Tensor cores take whole groups of channels only, and products only: a fused
    Winograd kernel and complex numbers are for the ordinary lanes.
    """
    machine = machine_of(arch, data_type)
    width = element_bytes(data_type, 4)
    whole = layer.c % _TENSOR_CHANNELS == 0 and layer.k % _TENSOR_CHANNELS == 0
    if not machine.on_lanes and (not whole or algorithm in ("WINOGRAD", *_FFTS)):
        machine = machine_of(arch, "fp32")
    section = "fp32" if machine.on_lanes else "fp16"
    return Target(machine, fitted or conv_calibration(section), width)


def run_of(
    layer: Layer, target: Target, algorithm: str, *, is_required: bool = False
) -> Run | None:
    """Time an algorithm; None if it cannot run, or no tile fits and it is not required."""
    try:
        return _run(layer, target, algorithm)
    except InputError:
        if is_required:
            raise
        return None


def _run(layer: Layer, target: Target, algorithm: str) -> Run | None:
    if algorithm == "EXPLICIT_GEMM":
        return explicit_gemm(layer, target)
    if algorithm in _GEMMS:
        return implicit_gemm(layer, target, algorithm == "IMPLICIT_PRECOMP_GEMM")
    outputs = _winograd_outputs(layer, algorithm)
    if outputs is not None:
        return (fused if algorithm == "WINOGRAD" else nonfused)(layer, target, outputs)
    if algorithm in _FFTS:
        runs = (fft(layer, target, cut) for cut in _spectra(layer, algorithm))
        return min(runs, key=lambda run: run.time_s, default=None)
    return None


def least_macs(layer: Layer, algorithm: str | None) -> int:
    """Find the multiplications that an algorithm cannot do without; None: any algorithm."""
    if algorithm is not None:
        return _macs(layer, algorithm) or 0
    counts = [_macs(layer, name) for name in ALGORITHMS]
    return min(layer.inner_macs, *(count for count in counts if count is not None))


def _macs_of(problem: Problem, layer: Layer, algorithm: str) -> int:
    """The same, or an error that says why it cannot run."""
    macs = _macs(layer, algorithm)
    if macs is None:
        raise ProblemError(f"problem '{problem.name}': {_refusal(layer, algorithm)}")
    return macs


def _macs(layer: Layer, algorithm: str) -> int | None:
    """Multiply-accumulates of an algorithm's products; None: it cannot run."""
    if algorithm in _GEMMS:
        return layer.macs
    outputs = _winograd_outputs(layer, algorithm)
    if outputs is not None:
        return tiling(layer, outputs).macs
    if algorithm in _FFTS:
        return min((cut.macs(layer) for cut in _spectra(layer, algorithm)), default=None)
    return None


def _spectra(layer: Layer, algorithm: str) -> list[Spectrum]:
    """Ways of cutting images for transforms: whole or not, unless tiles are asked for."""
    ways = (True,) if algorithm == "FFT_TILING" else (False, True)
    return [cut for is_tiled in ways if (cut := spectrum_of(layer, is_tiled))]


def _winograd_outputs(layer: Layer, algorithm: str) -> int | None:
    if algorithm not in _WINOGRADS:
        return None
    return fused_outputs(layer) if algorithm == "WINOGRAD" else nonfused_outputs(layer)


def _refusal(layer: Layer, algorithm: str) -> str:
    if algorithm not in ALGORITHMS:
        return f"no algorithm '{algorithm}'; {nearest(str(algorithm), ALGORITHMS)}"
    needs = {
        "WINOGRAD": "a 3x3 filter, stride 1, no dilation, no groups, not the weights' gradient",
        "WINOGRAD_NONFUSED": "a 3x3 or 5x5 filter, stride 1, no dilation, no groups",
        "FFT": "stride 1, no dilation, no groups, padded images of at most 256 x 256",
        "FFT_TILING": "stride 1, no dilation, no groups, a filter smaller than 32 x 32",
    }[algorithm]
    return (
        f"{algorithm} needs {needs}; the layer has a {layer.r}x{layer.s} filter, "
        f"stride {_pair(layer.stride)}, dilation {_pair(layer.dilation)}, groups {layer.groups}, "
        f"image {layer.h}x{layer.w}, {layer.pass_}"
    )


def _pair(values: tuple[int, int]) -> str:
    return "x".join(map(str, values))
