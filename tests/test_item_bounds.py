"""Bounds on compute steps against every schedule of small spaces."""

from __future__ import annotations

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from loopsched.machines.arch_file import load_arch
from loopsched.models.compute import compute_steps
from loopsched.problems.builders import gemm
from loopsched.scheduler import Constraints, space_of
from loopsched.scheduler.allowed import allowed
from loopsched.scheduler.counting import every_choice, n_schedules
from loopsched.scheduler.item_bounds import least_item_s

TITAN = load_arch("titan_v")


@given(
    st.integers(1, 7),
    st.integers(1, 5),
    st.integers(1, 6),
    st.sampled_from(["all", "divisors", "powers2"]),
    st.sampled_from([None, ("M",), ()]),
    st.lists(st.tuples(st.sampled_from("MN"), st.sampled_from(["L2", "SM"])), unique=True),
    st.data(),
)
@settings(max_examples=30)
def test_no_schedule_takes_fewer_steps(
    m: int, n: int, instances: int, tiles: str, spatial: tuple[str, ...] | None,
    bounded: list[tuple[str, str]], data: st.DataObject,
) -> None:  # fmt: skip
    problem = gemm(m=m, n=n, k=2)
    bounds = tuple(
        (dim, block, 1, data.draw(st.integers(1, problem.size[dim]))) for dim, block in bounded
    )
    given = Constraints(tiles=tiles, extents=bounds, spatial=spatial)  # type: ignore[arg-type]
    space = space_of(problem, TITAN, given)
    assume(0 < n_schedules(space) < 20_000)
    limits = allowed(space)
    nests = {limits.schedule(choice) for choice in every_choice(limits)}
    fewest = min(compute_steps(problem, nest, {"SM": instances}).promised for nest in nests)
    bound = least_item_s(limits, instances, macs_per_s=1.0)
    assert bound <= fewest
    if not bounds and tiles == "divisors":  # then lists and items are all equal
        assert bound == fewest
