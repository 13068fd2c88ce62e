"""Requests of random kernels, held against a walk of every block, lane and iteration."""

from __future__ import annotations

import math

from gpu_oracle import Walk
from hypothesis import given, settings
from hypothesis import strategies as st

from loopsched import conv2d, gemm, load_arch
from loopsched.gpu.addresses import Geometry
from loopsched.gpu.counting import profile
from loopsched.gpu.footprints import footprint_sectors
from loopsched.gpu.kernel import Kernel
from loopsched.gpu.reads import Read
from loopsched.gpu.views import DigitLayout
from loopsched.nests.nest import Loop, Schedule
from loopsched.problems.problem import Problem
from loopsched.problems.projections import affine
from loopsched.published.presets.padding import cut
from loopsched.simulator.layout import Layout

# Warps of 32 and 64 threads, lines of four sectors, of two and of one.
MACHINES = {
    "h200": (32, 32, 128),
    "mi250x": (64, 64, 64),
    "mi300x": (64, 128, 128),
    "w7800": (32, 64, 128),
}
SPACES = ("global", "shared", "shared", "constant", "l2", "readonly")


@st.composite
def problems(draw: st.DrawFn) -> tuple[Problem, dict[str, Layout | DigitLayout]]:
    kind = draw(st.sampled_from(["gemm", "conv", "view"]))
    elem = draw(st.sampled_from([4, 4, 4, 2, 8]))
    layouts: dict[str, Layout | DigitLayout] = {}
    if kind == "view":
        channels, side, taps, images = (draw(st.integers(1, 3)) for _ in range(4))
        places, sums = side * side, channels * taps * taps
        problem = affine(
            {"N": images, "M": draw(st.integers(1, 5)), "L": places, "U": sums},
            {"weight": "M U", "input": "N U L", "output": "N M L"},
            element_bytes=elem,
        )
        wide = side + taps - 1
        layouts["input"] = DigitLayout.im2col(
            channels=channels, height=wide, width=wide, r=taps, s=taps, images=images
        )
        return problem, layouts
    if kind == "gemm":
        m, n, k = draw(st.integers(1, 9)), draw(st.integers(1, 40)), draw(st.integers(1, 5))
        problem = gemm(m=m, n=n, k=k)
        if draw(st.booleans()):
            problem = cut(problem, {"A": {"M": (m + 1) // 2}, "C": {"M": (m + 1) // 2}})
        if draw(st.booleans()):
            layouts["A"] = Layout(("K", "M"), offset_bytes=elem * draw(st.integers(0, 9)))
        layouts["B"] = Layout(("K", "N"), (("N", n + draw(st.integers(0, 3))),))
    else:
        p, q, r, s = (draw(st.integers(1, most)) for most in (4, 9, 3, 3))
        stride, dilation = draw(st.integers(1, 2)), draw(st.integers(1, 2))
        h, w = (p - 1) * stride + (r - 1) * dilation + 1, (q - 1) * stride + (s - 1) * dilation + 1
        padding = draw(st.integers(0, 1)) if min(h, w) > 2 else 0
        problem = conv2d(
            n=draw(st.integers(1, 2)),
            c=draw(st.integers(1, 2)),
            k=draw(st.integers(1, 3)),
            h=h - 2 * padding,
            w=w - 2 * padding,
            r=r,
            s=s,
            stride=stride,
            dilation=dilation,
            padding=padding,
        )
        if draw(st.booleans()):
            layouts["input"] = Layout.parse("NHWC")
    return problem.with_element_bytes(elem), layouts


@st.composite
def kernels(draw: st.DrawFn) -> Kernel:
    problem, layouts = draw(problems())
    guard = draw(st.sampled_from(["thread", "load"]))
    chains = [draw(chains_of(problem, dim, guard)) for dim in problem.dims]
    blocks = [loop for chain in chains for loop in chain if (loop.unit or "").startswith("block")]
    rest = [[loop for loop in chain if loop not in blocks] for chain in chains]
    order = draw(st.permutations([at for at, chain in enumerate(rest) for _ in chain]))
    lines = [iter(chain) for chain in rest]
    loops = draw(st.permutations(blocks)) + [next(lines[at]) for at in order]
    schedule = Schedule(tuple(loops))
    reads = {
        tensor.name: draw(reads_of(schedule, tensor.element_bytes))
        for tensor in problem.tensors
        if tensor.name != problem.output
    }
    return Kernel.of(
        problem,
        schedule,
        reads=reads,
        layouts=layouts,
        guard=guard,
        padding=draw(st.sampled_from(["skip", "zero"])),
    )


@st.composite
def vector_kernels(draw: st.DrawFn) -> Kernel:
    """Products whose sums run through neighbours in memory, several loaded at once."""
    m, n = draw(st.integers(1, 9)), draw(st.integers(1, 40))
    step, steps = draw(st.sampled_from([2, 4, 8])), draw(st.integers(1, 3))
    elem = draw(st.sampled_from([2, 4, 8]))
    problem = gemm(m=m, n=n, k=step * steps).with_element_bytes(elem)
    rows, columns = draw(st.integers(1, m)), draw(st.integers(1, n))
    last = draw(st.sampled_from(["", f" N:{columns}"]))
    threads = "" if last else f"N:{columns}@thread_x "
    text = f"M:{m}@block_y N:{n}@block_x M:{rows}@thread_y {threads}K:{step * steps} K:{step}{last}"
    vector = draw(st.sampled_from([one for one in (2, 4) if step % one == 0]))
    far = [f"global,vector={vector}", f"constant,vector={vector}", f"l2,vector={vector}"]
    near = [
        f"shared@K,vector={vector}",
        f"shared@block,vector={vector},pitch={step * steps + 4}",
    ]
    # A tile keeps the tensor's order of axes: along K only A's runs through neighbours.
    reads = {
        "A": draw(st.sampled_from(far + near)),
        "B": draw(st.sampled_from(["l2"] if last else far)),
    }
    return Kernel.of(
        problem,
        text,
        reads=reads,
        layouts={"B": "N K"},
        guard=draw(st.sampled_from(["thread", "load"])),
    )


@st.composite
def chains_of(draw: st.DrawFn, problem: Problem, dim: str, guard: str) -> list[Loop]:
    size = problem.size[dim]
    if dim in problem.reduction_dims:
        kinds = draw(st.sampled_from([["time"], ["time", "time"], ["block", "time"]]))
    else:
        kinds = draw(
            st.sampled_from(
                [
                    ["block", "thread"],
                    ["block", "thread"],
                    ["block", "time", "thread"],
                    ["block", "thread", "time"],
                    ["thread", "time"],
                    ["time", "thread"],
                    ["time"],
                ]
            )
        )
    axis = draw(st.sampled_from("xxyyz" if size < 3 else "xxy"))
    extents = [size]
    inner = [draw(st.integers(1, size))]
    if len(kinds) > 2:
        below = inner[0]
        divisors = [one for one in range(1, below + 1) if guard == "thread" or below % one == 0]
        inner.append(draw(st.sampled_from(divisors)))
    extents += inner[: len(kinds) - 1]
    return [
        Loop(dim, extent, None if kind == "time" else f"{kind}_{axis}")
        for kind, extent in zip(kinds, extents, strict=True)
    ]


@st.composite
def reads_of(draw: st.DrawFn, schedule: Schedule, elem: int) -> Read:
    space = draw(st.sampled_from(SPACES))
    many = len(schedule.loops)
    at = draw(st.none() | st.integers(0, many)) if space == "shared" else None
    held = draw(st.none() | st.integers(at or 0, many))
    return Read(
        space,  # type: ignore[arg-type]
        at=at,
        held=held,
        pitch=draw(st.none() | st.integers(1, 40)) if space == "shared" else None,
        loaders=draw(st.sampled_from(["rows", "linear"])),  # type: ignore[arg-type]
        zero_fill=draw(st.booleans()),
    )


def work(kernel: Kernel) -> int:
    return (
        kernel.n_blocks * kernel.block_threads * math.prod(one.trips for one in kernel.time_loops)
    )


@settings(max_examples=100, deadline=None)
@given(
    st.one_of(kernels(), kernels(), kernels(), vector_kernels()),
    st.sampled_from(["h200", *MACHINES]),
)
def test_requests_are_those_of_a_literal_walk(kernel: Kernel, name: str) -> None:
    if kernel.block_threads > 1024 or work(kernel) > 4000:
        return
    found = profile(kernel, load_arch(name))
    walk = Walk(kernel, *MACHINES[name])
    for access in found.accesses:
        stage = access.stage
        count = walk.counts[access.tensor, access.op, stage]
        assert access.requests == count["requests"], access
        assert access.lanes == count["lanes"], access
        assert access.useful_bytes == count["useful_bytes"], access
        assert access.sectors == count["sectors"], access
        assert access.lines == count["lines"], access
        assert access.wavefronts == count["wavefronts"], access
    assert {(one.tensor, one.op, one.stage) for one in found.accesses} == set(walk.counts)
    assert found.fma_thread_instructions == walk.fma["lanes"]
    assert found.fma_warp_instructions == walk.fma["requests"]
    assert found.divergent_warps == walk.edges
    loaded = [count for (_, op, _), count in walk.counts.items() if op == "load"]
    useful = sum(count["useful_bytes"] for count in loaded if count["sectors"])
    moved = sum(count["sectors"] for count in loaded) * walk.sector
    assert found.load_efficiency == useful / max(1, moved)


@settings(max_examples=60, deadline=None)
@given(kernels(), st.data())
def test_footprints_are_those_of_a_literal_walk(kernel: Kernel, data: st.DataObject) -> None:
    """Of tensors read straight from global memory; what a tile covers is in another test."""
    if kernel.block_threads > 1024 or work(kernel) > 4000:
        return
    tensor = data.draw(st.sampled_from(kernel.inputs))
    if kernel.read(tensor.name).space == "shared" or kernel.problem.kind == "conv2d":
        return
    is_view = isinstance(kernel.layout(tensor.name), DigitLayout)
    if is_view and any(one.dim == "N" and one.kind != "block" for one in kernel.loops):
        return  # images that one block visits count apart
    depth = data.draw(st.integers(0, len(kernel.loops)))
    geometry = Geometry(kernel)
    assert footprint_sectors(geometry, tensor, depth, 32) == Walk(kernel).footprint(tensor, depth)


def test_a_single_row_counts_for_every_block_that_touches_it() -> None:
    """Three blocks reach the one stored row of a padded input, each at another step of R."""
    problem = conv2d(c=1, k=1, h=1, w=8, r=3, s=1, padding=(2, 0))
    kernel = Kernel.of(problem, "P:3@block_x R:3 Q:8@thread_x", padding="skip")
    tensor, walk = problem.tensor("input"), Walk(kernel)
    counts = [footprint_sectors(Geometry(kernel), tensor, depth, 32) for depth in (1, 2)]
    assert counts == [walk.footprint(tensor, depth) for depth in (1, 2)] == [3, 3]
