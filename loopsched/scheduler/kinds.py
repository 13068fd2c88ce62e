"""Alternatives that differ from the best schedule in kind, not in the size of a tile."""

from __future__ import annotations

from dataclasses import replace

from loopsched.base.errors import EmptySpaceError
from loopsched.models.score import Evaluation
from loopsched.nests.nest import Schedule
from loopsched.problems.footprint import tensor_bytes
from loopsched.problems.problem import Problem
from loopsched.scheduler import search
from loopsched.scheduler.constraints import Constraints
from loopsched.scheduler.goal import Goal
from loopsched.scheduler.result import Result, Scored, objective_value, rank

Kind = tuple[str, frozenset[str], tuple[frozenset[str], ...]]


def kind_of(problem: Problem, schedule: Schedule, evaluation: Evaluation) -> Kind:
    """Say what kind of schedule it is.

    Returns
    -------
    (str, frozenset of str, tuple of frozenset of str)
        What binds it, the dimensions that units share, and for each boundary
        the tensors each of whose elements crosses it once.

    Examples
    --------
    >>> from loopsched import evaluate, gemm, load_arch, parse_schedule
    >>> problem = gemm(m=512, n=512, k=512)
    >>> nest = parse_schedule("M:512@SM N:512 K:512 M:8 N:64", problem)
    >>> bound, shared, once = kind_of(problem, nest, evaluate(problem, nest, load_arch("titan_v")))
    >>> bound, sorted(shared), [sorted(names) for names in once]
    ('L2', ['M'], [['A', 'B', 'C'], ['C']])
    """
    least = {tensor.name: tensor_bytes(problem, tensor) for tensor in problem.tensors}
    once = tuple(
        frozenset(
            name
            for name, one in level.promised.items()
            if one.read_bytes + one.write_bytes <= least[name]
        )
        for level in evaluation.levels
    )
    return evaluation.bound_by, frozenset(one.dim for one in schedule.loops if one.unit), once


def of_other_kinds(result: Result, goal: Goal, most: int) -> Result:
    """Give a result alternatives of other kinds: the best that is known of each.

    Besides those that the search kept, the best that share one dimension less
    are searched for.

    Parameters
    ----------
    result : Result
    goal : Goal
        What was searched for.
    most : int
        Alternatives to keep.
    """
    found = list(result.alternatives)
    shared = dict.fromkeys(one.dim for one in result.schedule.loops if one.unit)
    allowed = result.certificate.space.spatial
    for dim in shared if goal.strategy == "exact" else ():
        rest = tuple(other for other in allowed if other != dim)
        limits = replace(goal.constraints or Constraints(), spatial=rest)
        try:
            other = search(result.problem, result.arch, replace(goal, top=1, constraints=limits))
        except EmptySpaceError:  # constraints leave none
            continue
        found.append(Scored(other.schedule, other.evaluation))
    found.sort(key=lambda one: rank(one.evaluation, goal.objective, goal.value))
    first: dict[Kind, Scored] = {}
    for one in found:
        first.setdefault(kind_of(result.problem, one.schedule, one.evaluation), one)
    first.pop(kind_of(result.problem, result.schedule, result.evaluation), None)
    return replace(result, alternatives=tuple(first.values())[:most])


def without_places(result: Result, goal: Goal) -> Result:
    """Let the best schedule that places no tile by itself be the best one, with its gap.

    Not every reader of schedules can express such tiles: the page cannot.

    Examples
    --------
    >>> from loopsched import conv2d, load_arch, search
    >>> layer = conv2d(c=3, k=64, h=224, w=224, r=7, s=7, stride=2, padding=3, element_bytes=2)
    >>> goal = Goal()
    >>> found = search(layer, load_arch("diannao"), goal)
    >>> plain = without_places(found, goal)
    >>> bool(found.schedule.places), bool(plain.schedule.places), plain.certificate.gap
    (True, False, 0.0)
    """
    if not result.schedule.places:
        kept = [one for one in result.alternatives if not one.schedule.places]
        return replace(result, alternatives=tuple(kept))
    problem, arch = result.problem, result.arch
    dim, size = max(problem.sizes, key=lambda pair: pair[1])
    # A limit that limits nothing: nests with constraints place no tile by itself.
    limits = replace(
        goal.constraints or Constraints(), extents=((dim, arch.caches[0].name, 1, size),)
    )
    plain = [one for one in result.alternatives if not one.schedule.places]
    if not plain:
        other = search(problem, arch, replace(goal, top=1, constraints=limits))
        plain = [Scored(other.schedule, other.evaluation)]
    best, *others = plain
    value = objective_value(best.evaluation, goal.objective, goal.value)
    is_best = value == result.certificate.value
    certificate = replace(
        result.certificate, value=value, proven=result.certificate.proven and is_best,
        ties_proven=False,
    )  # fmt: skip
    return replace(
        result, schedule=best.schedule, evaluation=best.evaluation, certificate=certificate,
        alternatives=tuple(others),
    )  # fmt: skip
