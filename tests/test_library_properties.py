"""What must hold of every library and tiled kernel, whatever the GPU is called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopsched import arch_names, conv2d, conv_estimate, gemm, gemm_estimate, load_arch, tiled_gemm
from loopsched.arch import Arch
from loopsched.gpu.library.spread import Spread, estimate_of
from loopsched.gpu.result import Estimate

GPUS = tuple(name for name in arch_names() if load_arch(name).gpu is not None)
LAYER = {"n": 4, "c": 64, "k": 64, "h": 28, "w": 28, "r": 3, "s": 3, "padding": 1}


def own(arch: Arch) -> Estimate:
    product = gemm(m=2048, n=1024, k=4096)
    return tiled_gemm(product, arch, tile=(128, 64, 8), stages=2, threads=128).estimate


CALLS: dict[str, Callable[[Arch], Estimate]] = {
    "gemm": lambda arch: gemm_estimate(gemm(m=2048, n=16, k=4096), arch),
    "tiled": own,
    **{
        pass_: lambda arch, pass_=pass_: conv_estimate(conv2d(**LAYER, pass_=pass_), arch)  # type: ignore[misc]
        for pass_ in ("forward", "backward_data", "backward_weights")
    },
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("name", GPUS)
def test_a_copy_under_another_name_gives_the_same(
    name: str, call: Callable[[Arch], Estimate]
) -> None:
    arch = load_arch(name)
    said = call(arch)
    assert call(replace(arch, name="mine")) == said
    assert 0 < said.time_bound_s <= said.low_s <= said.time_s <= said.high_s


def test_only_a_gpu_that_was_measured_has_its_own_spread() -> None:
    for name, call in CALLS.items():
        known, strange = call(load_arch("v100")), call(load_arch("p100"))
        assert ("V100" in known.basis) == (name != "tiled")  # own kernels there: never measured
        assert "not fitted" in strange.basis or "never" in strange.basis


def test_l2_of_the_file_is_used_where_kernels_are_known_to_reach_it() -> None:
    """The H200's file has a measured bandwidth: all loads of panels over it is the least time."""
    product, h200 = gemm(m=4096, n=4096, k=4096), load_arch("h200")
    found = tiled_gemm(product, h200, tile=(64, 64, 32), data_type="tf32", registers=64)
    moved = 2 * 4096 * 4096 * 64 * 4 + 4096 * 4096 * 4
    assert dict(found.estimate.parts)["L2"] == pytest.approx(moved / 9.55e12)


@given(
    st.floats(1e-9, 1e3),
    st.floats(1e-9, 1e3),
    st.floats(0.1, 3.0),
    st.floats(0.1, 3.0),
)
def test_an_estimate_lies_within_its_spread(
    time_s: float, bound_s: float, low: float, high: float
) -> None:
    """Rows of another GPU may all lie on one side; the estimate stays inside all the same."""
    said = estimate_of(time_s, bound_s, (("compute", time_s),), "", Spread(low, high, ""))
    assert bound_s == said.time_bound_s <= said.low_s <= said.time_s <= said.high_s
    assert said.time_s == max(time_s, bound_s)
