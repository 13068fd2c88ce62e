"""Library convolutions: counts against closed forms, properties, and errors on rows held out."""

from __future__ import annotations

import csv
import importlib.util
import json
import math
import statistics
import sys
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from loopsched import Arch, Problem, ProblemError, conv2d, gemm, load_arch
from loopsched.base.errors import ArchError
from loopsched.gpu.library.calibration import conv_calibration, conv_spread
from loopsched.gpu.library.conv import ALGORITHMS, CHOICES, algorithm_flops, conv_estimate
from loopsched.gpu.library.conv_gemm import product_of
from loopsched.gpu.library.conv_layer import layer_of
from loopsched.gpu.result import Estimate

ROOT = Path(__file__).parents[1]
PASSES = {"fwd": "forward", "bwd_inputs": "backward_data", "bwd_params": "backward_weights"}
ARCHS = {"V100": "v100", "TitanXp": "titan_xp", "M40": "m40"}
GPUS = ("v100", "titan_xp", "m40", "titan_v", "h200", "t4", "p100", "gtx_1080ti")


@cache
def machine(name: str) -> Arch:
    return load_arch(name)


# Counts.


def test_direct_products_multiply_every_pair() -> None:
    layer = conv2d(n=2, c=3, k=5, h=9, w=8, r=3, s=2, stride=2, padding=1)
    for name in ("IMPLICIT_GEMM", "IMPLICIT_PRECOMP_GEMM", "GEMM", "EXPLICIT_GEMM"):
        # P = (9 + 2 - 3) // 2 + 1 = 5, Q = (8 + 2 - 2) // 2 + 1 = 5
        assert algorithm_flops(layer, name) == 2 * 2 * 3 * 5 * 5 * 5 * 3 * 2


@pytest.mark.parametrize(("size", "tiles"), [(16, 4), (13, 4), (4, 1), (1, 1), (17, 5)])
def test_nonfused_winograd_multiplies_36_times_a_4x4_tile(size: int, tiles: int) -> None:
    layer = conv2d(n=3, c=7, k=5, h=size, w=4, r=3, s=3, padding=1)
    assert algorithm_flops(layer, "WINOGRAD_NONFUSED") == 2 * 36 * 3 * tiles * 7 * 5


def test_fused_winograd_multiplies_16_times_a_2x2_tile() -> None:
    layer = conv2d(n=3, c=7, k=5, p=5, q=8, r=3, s=3)
    assert algorithm_flops(layer, "WINOGRAD") == 2 * 16 * 3 * (3 * 4) * 7 * 5


def test_winograd_of_5x5_filters_multiplies_81_times_a_5x5_tile() -> None:
    layer = conv2d(n=1, c=2, k=3, p=10, q=6, r=5, s=5)
    assert algorithm_flops(layer, "WINOGRAD_NONFUSED") == 2 * 81 * (2 * 2) * 2 * 3


def test_a_gradient_of_the_input_cuts_the_input() -> None:
    # Valid padding: the output is 14 x 14, the input 16 x 16.
    layer = conv2d(n=1, c=2, k=3, h=16, w=16, r=3, s=3, pass_="backward_data")
    assert algorithm_flops(layer, "WINOGRAD") == 2 * 16 * 64 * 2 * 3
    forward = conv2d(n=1, c=2, k=3, h=16, w=16, r=3, s=3)
    assert algorithm_flops(forward, "WINOGRAD") == 2 * 16 * 49 * 2 * 3


def test_fourier_products_have_half_a_spectrum_of_four_multiplications() -> None:
    layer = conv2d(n=2, c=3, k=5, h=56, w=56, r=3, s=3, padding=1)
    # 58 x 58 in one transform of 64 x 64, or in 2 x 2 tiles of 32 x 32.
    whole, tiled = 64 * 33 * 2, 32 * 17 * 4 * 2
    assert algorithm_flops(layer, "FFT_TILING") == 2 * 4 * tiled * 3 * 5
    assert algorithm_flops(layer, "FFT") == 2 * 4 * min(whole, tiled) * 3 * 5


def test_ratios_of_whole_tiles_are_those_of_the_literature() -> None:
    layer = conv2d(n=4, c=16, k=16, h=32, w=32, r=3, s=3, padding=1)
    direct = algorithm_flops(layer, "IMPLICIT_GEMM")
    assert direct / algorithm_flops(layer, "WINOGRAD") == 2.25
    assert direct / algorithm_flops(layer, "WINOGRAD_NONFUSED") == 4


@given(
    st.integers(1, 9),
    st.integers(1, 4),
    st.integers(1, 3),
    st.integers(1, 2),
    st.integers(0, 3),
)
def test_inner_multiplications_are_those_that_meet_the_image(
    size: int, taps: int, stride: int, dilation: int, padding: int
) -> None:
    reach = (taps - 1) * dilation + 1
    if size + 2 * padding < reach:
        return
    layer = layer_of(
        conv2d(
            c=1, k=1, h=size, w=1, r=taps, s=1, stride=(stride, 1), dilation=(dilation, 1),
            padding=(padding, 0),
        )
    )  # fmt: skip
    met = [
        output * stride + tap * dilation - padding
        for output in range(layer.p)
        for tap in range(taps)
    ]
    met = [place for place in met if 0 <= place < size]
    assert layer.inner_macs == len(met)
    if dilation == 1 and stride <= taps:
        assert layer.input_elems(4) == len(set(met))


# What cannot run.

_LAYER = {"n": 2, "c": 16, "k": 16, "h": 20, "w": 20, "r": 3, "s": 3}


@pytest.mark.parametrize(
    ("change", "algorithm", "words"),
    [
        ({"stride": 2}, "WINOGRAD", r"WINOGRAD needs a 3x3 filter.*stride 2x2"),
        ({"r": 5, "s": 5}, "WINOGRAD", r"WINOGRAD needs.*has a 5x5 filter"),
        ({"pass_": "backward_weights"}, "WINOGRAD", "not the weights' gradient.*backward_weights"),
        ({"groups": 4}, "WINOGRAD_NONFUSED", "no groups; the layer.*groups 4"),
        ({"r": 3, "s": 5}, "WINOGRAD_NONFUSED", "3x3 or 5x5 filter.*3x5"),
        ({"dilation": 2}, "WINOGRAD_NONFUSED", "no dilation.*dilation 2x2"),
        ({"stride": 2}, "FFT", "FFT needs stride 1"),
        ({"stride": (1, 2)}, "FFT_TILING", "FFT_TILING needs stride 1.*stride 1x2"),
        ({}, "WINOGRAD_FUSED", "no algorithm 'WINOGRAD_FUSED'; did you mean 'WINOGRAD"),
    ],
)
def test_what_cannot_run_says_why(change: dict[str, object], algorithm: str, words: str) -> None:
    layer = conv2d(**{**_LAYER, **change})  # type: ignore[arg-type]
    with pytest.raises(ProblemError, match=words):
        conv_estimate(layer, machine("v100"), algorithm=algorithm)
    with pytest.raises(ProblemError, match=words):
        algorithm_flops(layer, algorithm)


def test_other_problems_and_machines_are_refused() -> None:
    with pytest.raises(ProblemError, match="a conv2d is needed, not gemm"):
        conv_estimate(gemm(m=4, n=4, k=4), machine("v100"))
    with pytest.raises(ProblemError, match="a conv2d is needed, not gemm"):
        algorithm_flops(gemm(m=4, n=4, k=4), "GEMM")
    with pytest.raises(ArchError):
        conv_estimate(conv2d(**_LAYER), load_arch("diannao"))  # type: ignore[arg-type]
    with pytest.raises(ArchError, match="no rate for data type 'fp17'"):
        conv_estimate(conv2d(**_LAYER), machine("v100"), data_type="fp17")  # type: ignore[arg-type]


# Properties.


@st.composite
def layers(draw: st.DrawFn) -> Problem:
    r, s = draw(st.sampled_from([(1, 1), (3, 3), (5, 5), (7, 7), (5, 10)]))
    groups = draw(st.sampled_from([1, 1, 1, 2]))
    return conv2d(
        n=draw(st.integers(1, 32)),
        c=groups * draw(st.integers(1, 300)),
        k=groups * draw(st.integers(1, 300)),
        h=draw(st.integers(10, 120)),
        w=draw(st.integers(10, 120)),
        r=r,
        s=s,
        stride=draw(st.integers(1, 2)),
        padding=draw(st.integers(0, 2)),
        groups=groups,
        pass_=draw(st.sampled_from(sorted(PASSES.values()))),
    )


def runs_of(problem: Problem, arch: Arch, data_type: str = "fp32") -> dict[str | None, Estimate]:
    found: dict[str | None, Estimate] = {}
    for name in (None, *ALGORITHMS):
        try:
            found[name] = conv_estimate(problem, arch, algorithm=name, data_type=data_type)
        except ProblemError:
            assert name is not None
            assert not name.endswith("GEMM")
    return found


@given(layers(), st.sampled_from(GPUS))
def test_a_bound_stays_below_its_estimate(problem: Problem, name: str) -> None:
    found = runs_of(problem, machine(name))
    for one in found.values():
        assert 0 < one.time_bound_s <= one.low_s <= one.time_s <= one.high_s
        assert all(seconds >= 0 for _, seconds in one.parts)
        assert max(seconds for _, seconds in one.parts) <= one.time_s * (1 + 1e-9)
        assert found[None].time_bound_s <= one.time_bound_s * (1 + 1e-12)


@given(layers(), st.sampled_from(["fp32", "fp16"]))
def test_the_default_is_the_fastest_of_the_choices(problem: Problem, data_type: str) -> None:
    found = runs_of(problem, machine("v100"), data_type)
    names = CHOICES if problem.size["R"] == 3 else CHOICES[:2]
    allowed = [found[name].time_s for name in names if name in found]
    assert found[None].time_s in allowed
    if data_type == "fp32":
        assert found[None].time_s == min(allowed)


@given(layers(), st.floats(1.0, 8.0))
def test_more_bandwidth_never_slows(problem: Problem, factor: float) -> None:
    base = machine("titan_v")
    for key in ("dram.bandwidth", "l2.bandwidth"):
        faster = base.scaled(key, factor)
        for name, one in runs_of(problem, base).items():
            found = conv_estimate(problem, faster, algorithm=name)
            assert found.time_s <= one.time_s * (1 + 1e-9)
            assert found.time_bound_s <= one.time_bound_s * (1 + 1e-12)


# With a table of offsets gathering is slower than scattering, without it is faster.
@example(conv2d(c=1, k=3, h=10, w=10, r=7, s=7, stride=2, pass_="backward_data"), 2.0)
@given(layers(), st.floats(1.0, 4.0))
def test_a_faster_clock_never_slows(problem: Problem, factor: float) -> None:
    base = machine("v100")
    clock = base.compute
    faster = replace(
        base,
        compute=replace(
            clock, clock_hz=clock.clock_hz * factor, max_clock_hz=clock.max_clock_hz * factor
        ),
    )
    for name, one in runs_of(problem, base).items():
        found = conv_estimate(problem, faster, algorithm=name)
        assert found.time_s <= one.time_s * (1 + 1e-9)


@given(layers())
def test_a_larger_batch_takes_no_less_work(problem: Problem) -> None:
    if problem.size["N"] > 16:
        return
    sizes = dict(problem.sizes)
    twice = replace(problem, sizes=tuple({**sizes, "N": 2 * sizes["N"]}.items()))
    for name in ALGORITHMS:
        try:
            one = algorithm_flops(problem, name)
        except ProblemError:
            continue
        assert algorithm_flops(twice, name) == 2 * one


@pytest.mark.parametrize("name", GPUS)
@pytest.mark.parametrize("pass_", sorted(PASSES.values()))
def test_every_pass_runs_on_every_gpu(name: str, pass_: str) -> None:
    layer = conv2d(n=4, c=64, k=64, h=28, w=28, r=3, s=3, padding=1, pass_=pass_)
    found = runs_of(layer, machine(name))
    missing = {"WINOGRAD"} if pass_ == "backward_weights" else set()
    assert set(ALGORITHMS) - set(found) == missing
    if "fp16" in machine(name).compute.data_types:
        assert conv_estimate(layer, machine(name), data_type="fp16").time_s < 1e-2


def test_tensor_cores_take_whole_groups_of_eight_channels() -> None:
    v100 = machine("v100")

    def time_of(c: int) -> float:
        layer = conv2d(n=16, c=c, k=256, h=28, w=28, r=3, s=3, padding=1)
        return conv_estimate(layer, v100, data_type="fp16", algorithm="IMPLICIT_GEMM").time_s

    assert time_of(63) > 3 * time_of(64)


def test_tensor_cores_multiply_for_separate_winograd_kernels_only() -> None:
    v100 = machine("v100")
    layer = conv2d(n=16, c=256, k=512, h=28, w=28, r=3, s=3, padding=1)
    for name, is_faster in (("WINOGRAD", False), ("FFT", False), ("WINOGRAD_NONFUSED", True)):
        narrow = conv_estimate(layer, v100, data_type="fp16", algorithm=name)
        wide = conv_estimate(layer, v100, algorithm=name)
        compute, lanes = dict(narrow.parts)["compute"], dict(wide.parts)["compute"]
        assert (compute < lanes / 2) is is_faster


def test_an_unrolled_input_costs_its_traffic() -> None:
    v100 = machine("v100")
    layer = conv2d(n=16, c=64, k=64, h=112, w=112, r=3, s=3, padding=1)
    implicit = conv_estimate(layer, v100, algorithm="IMPLICIT_GEMM")
    explicit = conv_estimate(layer, v100, algorithm="EXPLICIT_GEMM")
    unrolled = 4 * 16 * 112 * 112 * 64 * 9
    # Written once; L2 can keep its capacity.
    assert explicit.time_s > implicit.time_s + 0.9 * unrolled / 900e9 / 2
    plain = conv2d(n=16, c=64, k=64, h=112, w=112, r=1, s=1)
    assert dict(conv_estimate(plain, v100, algorithm="EXPLICIT_GEMM").parts)["unroll"] == 0


def test_a_scaled_architecture_keeps_its_spread() -> None:
    faster = machine("v100").scaled("dram.bandwidth", 2.0)
    layer = conv2d(n=8, c=64, k=64, h=56, w=56, r=3, s=3, padding=1)
    assert conv_estimate(layer, faster).basis == conv_estimate(layer, machine("v100")).basis
    found = conv_spread("h200", "int8", "forward", is_known=False)
    assert found.low < 1 < found.high
    assert "not fitted to this GPU" in found.basis


# Measured rows: goals of the issue, on layers that were not fitted.


@cache
def measured() -> list[dict[str, str]]:
    path = ROOT / "measurements" / "deepbench_conv_measured.csv"
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@cache
def calibration() -> dict[str, dict[str, dict[str, object]]]:
    path = ROOT / "loopsched" / "gpu" / "library" / "calibration_conv.json"
    found: dict[str, dict[str, dict[str, object]]] = json.loads(path.read_text(encoding="utf-8"))
    return found


def words_of(row: dict[str, str]) -> str:
    """A layer as the calibration writes it: all but the batch."""
    return (
        "w{w} h{h} c{c} k{k} {filter_w}x{filter_h} pad {pad_w}x{pad_h} stride {stride_w}x{stride_h}"
    ).format(**row)


def problem_of(row: dict[str, str]) -> Problem:
    size = {name: int(row[name]) for name in row if row[name].isdigit()}
    return conv2d(
        n=size["n"],
        c=size["c"],
        k=size["k"],
        h=size["h"],
        w=size["w"],
        r=size["filter_h"],
        s=size["filter_w"],
        stride=(size["stride_h"], size["stride_w"]),
        padding=(size["pad_h"], size["pad_w"]),
        pass_=PASSES[row["pass"]],
    )


def select(
    gpu: str, pass_: str = "fwd", precision: str = "fp32", *, held_out: bool = False
) -> list[dict[str, str]]:
    found = [
        row
        for row in measured()
        if (row["gpu"], row["pass"], row["precision"]) == (gpu, pass_, precision)
    ]
    if held_out:
        data_type = "fp32" if precision == "fp32" else "fp16"
        names = calibration()["data_types"][data_type]["held_out_layers"]
        assert isinstance(names, list)
        found = [row for row in found if words_of(row) in names]
    return found


def estimates(
    rows: Iterable[dict[str, str]], *, is_known: bool = True
) -> list[tuple[Estimate, float]]:
    return [
        (
            conv_estimate(
                problem_of(row),
                machine(ARCHS[row["gpu"]]),
                algorithm=(row["algo"] or None) if is_known else None,
                data_type="fp32" if row["precision"] == "fp32" else "fp16",
            ),
            float(row["time_us"]) * 1e-6,
        )
        for row in rows
    ]


def mape(found: list[tuple[Estimate, float]]) -> float:
    return 100 * statistics.fmean(abs(one.time_s / seconds - 1) for one, seconds in found)


def test_layers_are_either_fitted_or_held_out() -> None:
    for section in calibration()["data_types"].values():
        own, other = section["fitted_layers"], section["held_out_layers"]
        assert isinstance(own, list)
        assert isinstance(other, list)
        assert not set(own) & set(other)
        assert {words_of(row) for row in select("V100")} == {*own, *other}
        assert 0.3 < len(own) / (len(own) + len(other)) < 0.7
        assert not {words_of(row) for row in select("V100", held_out=True)} & set(own)


@pytest.mark.parametrize(
    ("gpu", "precision", "is_known", "goal"),
    [
        ("V100", "fp32", True, 15),
        ("V100", "fp32", False, 18),
        ("V100", "fp16_mixed", True, 30),
        ("TitanXp", "fp32", True, 25),
        ("TitanXp", "fp32", False, 25),
        ("M40", "fp32", True, 25),
        ("M40", "fp32", False, 25),
    ],
)
def test_forward_layers_that_were_not_fitted(
    gpu: str, precision: str, is_known: bool, goal: float
) -> None:
    rows = select(gpu, precision=precision, held_out=gpu == "V100")
    assert len(rows) >= 20
    assert mape(estimates(rows, is_known=is_known)) <= goal


@pytest.mark.parametrize("pass_", ["bwd_inputs", "bwd_params"])
@pytest.mark.parametrize(
    ("gpu", "precision", "goal"),
    [
        ("V100", "fp32", 30),
        ("V100", "fp16_mixed", 30),
        ("TitanXp", "fp32", 35),
        ("M40", "fp32", 45),
    ],
)
def test_gradients(gpu: str, precision: str, goal: float, pass_: str) -> None:
    rows = select(gpu, pass_, precision, held_out=gpu == "V100")
    assert mape(estimates(rows)) <= goal


def test_no_measurement_is_below_its_bound() -> None:
    rows = measured()
    assert len(rows) == 852
    for is_known in (True, False):
        found = estimates(rows, is_known=is_known)
        assert [
            row for row, (one, s) in zip(rows, found, strict=True) if s < one.time_bound_s
        ] == []


@pytest.mark.parametrize("is_known", [True, False])
def test_most_held_out_rows_lie_within_the_spread(is_known: bool) -> None:
    found = estimates(select("V100", held_out=True), is_known=is_known)
    inside = sum(one.low_s <= seconds <= one.high_s for one, seconds in found)
    assert 0.75 <= inside / len(found) < 1


def test_report_003s_convolutions() -> None:
    """The report's rows but for its block 'Kernel Size Analysis'; nothing was fitted on them."""
    path = ROOT / "measurements" / "titan_v_measured.csv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["kind"] == "conv"]
    rows = [row for row in rows if "Kernel Size Analysis" not in row["section"]]
    assert len(rows) == 27
    found = []
    for row in rows:
        w, c, n, k = (int(float(row[name])) for name in "wcnk")
        problem = conv2d(n=n, c=c, k=k, h=w, w=w, r=3, s=3, padding=1)
        one = conv_estimate(problem, machine("titan_v"), algorithm=row["algo"])
        found.append((one, float(row["time_us"]) * 1e-6))
    assert mape(found) <= 30
    assert all(one.time_bound_s <= seconds for one, seconds in found)


def test_the_label_gemm_does_not_mean_an_unrolled_copy_in_memory() -> None:
    """8 channels of 224 x 224, 8 times: 233 us, less than writing and reading the copy takes."""
    layer = conv2d(n=8, c=8, k=8, h=224, w=224, r=3, s=3, padding=1)
    copy = 4 * 8 * 224 * 224 * 8 * 9
    assert 2 * copy / 652.8e9 > 233e-6
    titan = machine("titan_v")
    assert conv_estimate(layer, titan, algorithm="GEMM").time_s < 300e-6
    assert conv_estimate(layer, titan, algorithm="EXPLICIT_GEMM").time_s > 350e-6


@cache
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "fit_library_conv", ROOT / "benchmarks" / "fit_library_conv.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_the_script_finds_the_numbers_that_are_shipped() -> None:
    fitting = script()
    lanes, tensor = fitting.fitted_on(fitting.read_rows(), fitting.is_ours)
    for found, data_type in ((lanes, "fp32"), (tensor, "fp16")):
        shipped = conv_calibration(data_type)
        for name in type(shipped).__slots__:
            assert math.isclose(getattr(found, name), getattr(shipped, name), rel_tol=0.05), name


def test_few_numbers_are_fitted() -> None:
    names = [name for part in calibration()["data_types"].values() for name in part["fitted"]]  # type: ignore[attr-defined]
    assert len(names) <= 12


def test_estimates_do_not_depend_on_the_stored_width_of_the_problem() -> None:
    wide = conv2d(n=8, c=64, k=64, h=56, w=56, r=3, s=3, padding=1)
    narrow = wide.with_element_bytes(2)
    v100 = machine("v100")
    for data_type in ("fp32", "fp16"):
        assert conv_estimate(wide, v100, data_type=data_type) == conv_estimate(
            narrow, v100, data_type=data_type
        )


@pytest.mark.parametrize(("filter_size", "stride", "taps"), [(3, 2, 4), (1, 2, 1), (5, 2, 9)])
def test_gradients_at_a_stride_take_the_positions_that_meet_the_output(
    filter_size: int, stride: int, taps: int
) -> None:
    """Of a 3x3 filter at stride 2, a position of the input meets 2x2 at most."""
    layer = layer_of(
        conv2d(
            c=8, k=16, h=57, w=57, r=filter_size, s=filter_size, stride=stride,
            pass_="backward_data",
        )
    )  # fmt: skip
    assert product_of(layer, 4, is_phased=True).k == 16 * taps
    assert product_of(layer, 4).k == 16 * filter_size**2


def test_scattered_additions_take_their_turn_in_l2() -> None:
    """27 x 27 outputs of 16 images, 9 x 64 additions each, a sector of 32 bytes apiece."""
    layer = conv2d(n=16, c=64, k=32, h=56, w=56, r=3, s=3, stride=2, pass_="backward_data")
    arch = machine("titan_xp")
    found = conv_estimate(layer, arch, algorithm="IMPLICIT_GEMM")
    assert found.kernel.startswith("scattered")
    seconds = 16 * 27 * 27 * 9 * 64 * 32 / (arch.level("L1").bandwidth_bytes_per_s or 0)
    assert dict(found.parts)["atomics"] == pytest.approx(seconds)
    assert max(dict(found.parts).values()) == dict(found.parts)["atomics"]
    assert found.time_s > seconds + dict(found.parts)["clear"] - 1e-12
