"""Sizes of spaces, counted by writing every choice down."""

from __future__ import annotations

from itertools import product
from math import factorial
from random import Random

from oracle_search import blocks_of, n_choices, random_machine, random_problem

import loopsched
from loopsched.problems.problem import Problem
from loopsched.scheduler import space_of
from loopsched.scheduler.counting import n_schedules


def _counted(problem: Problem, arch: loopsched.Arch) -> int:
    blocks = blocks_of(problem, arch)
    chains = [
        [
            (size, *chain, 1)
            for chain in product(range(1, size + 1), repeat=len(blocks) - 1)
            if all(
                inner == outer or (inner < outer and dim in dims)
                for outer, inner, (_, dims) in zip((size, *chain), chain, blocks, strict=False)
            )
        ]
        for dim, size in problem.sizes
    ]
    total = 0
    for chosen in product(*chains):
        orders = 1
        for at in range(len(blocks)):
            orders *= factorial(sum(chain[at] > chain[at + 1] for chain in chosen))
        total += orders
    return total


def test_the_size_is_what_counting_finds() -> None:
    checked = 0
    for seed in range(200):
        rng = Random(seed)
        problem = random_problem(rng)
        arch = random_machine(rng, problem)
        if n_choices(problem, arch) <= 1000:
            assert n_schedules(space_of(problem, arch)) == _counted(problem, arch), seed
            checked += 1
    assert checked > 50


def test_a_large_space_is_counted_without_listing() -> None:
    # One dimension of 10**6 under one cache: cut to any extent below it, or not at all.
    problem = loopsched.gemm(m=10**6, n=1, k=1)
    assert n_schedules(space_of(problem, loopsched.buffer_arch(capacity_bytes=64))) == 10**6


def test_blocks_of_a_machine_with_units() -> None:
    space = space_of(loopsched.gemm(m=8, n=8, k=8), loopsched.load_arch("titan_v"))
    assert [(slot.name, slot.unit) for slot in space.slots] == [
        ("L2", None), ("SM", "SM"), ("L1", None),
    ]  # fmt: skip
    assert space.spatial == ("M", "N")
