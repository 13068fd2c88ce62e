"""What plots of layers are drawn from: problems with their scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loopsched.base.units import count

if TYPE_CHECKING:
    from loopsched.models.score import Evaluation
    from loopsched.problems.problem import Problem
    from loopsched.scheduler.result import Result


@dataclass(frozen=True, slots=True)
class Layer:
    """A problem with the score of one of its schedules.

    Parameters
    ----------
    problem : Problem
    evaluation : Evaluation
    label : str
        What stands beside its point: short, such as a layer's number.
    count : int
        How often a workload runs it.
    is_best_of : int
        How many schedules were kept, of which this is the best.
    """

    problem: Problem
    evaluation: Evaluation
    label: str = ""
    count: int = 1
    is_best_of: int = 1


# Characters of a name that fit beside a point.
_LONGEST = 18


def titles_of(layers: Sequence[Layer]) -> list[str]:
    """Choose what stands beside each layer: its name, or its label where names are no help.

    Names are none if two layers share one or one is long; a label that is no number is meant.

    Examples
    --------
    >>> from loopsched import gemm, load_arch, search
    >>> layers = layers_of([search(gemm(m=m, n=8, k=8), load_arch("titan_v")) for m in (4, 8)])
    >>> titles_of(layers), titles_of([layers[0], layers[0]])
    (['m4 n8 k8', 'm8 n8 k8'], ['0', '0'])
    """
    names = [layer.problem.name for layer in layers]
    are_short = all(len(name) <= _LONGEST for name in names)
    are_numbers = all(layer.label.isdecimal() for layer in layers)
    is_better = are_short and are_numbers and len(set(names)) == len(names)
    return names if is_better else [layer.label for layer in layers]


def are_schedules(layers: Sequence[Layer]) -> bool:
    """Whether they are schedules of one layer."""
    return len(layers) > 1 and len({layer.problem.name for layer in layers}) == 1


def are_best(layers: Sequence[Layer]) -> bool:
    """Whether more schedules were kept of some layer than the one that is drawn."""
    return any(layer.is_best_of > 1 for layer in layers)


def subject(layers: Sequence[Layer]) -> str:
    """Say for a title what is shown.

    Examples
    --------
    >>> from loopsched import gemm, load_arch, search
    >>> one, other = layers_of(
    ...     [search(gemm(m=m, n=8, k=8), load_arch("titan_v")) for m in (4, 8)]
    ... )
    >>> subject([one]), subject([one, one]), subject([one, other])
    ('m4 n8 k8', '2 schedules of m4 n8 k8', '2 layers')
    """
    if len(layers) == 1:
        return layers[0].problem.name
    if are_schedules(layers):
        return f"{count(len(layers), 'schedule')} of {layers[0].problem.name}"
    return count(len(layers), "layer")


def layers_of(results: Sequence[Result | Layer]) -> tuple[Layer, ...]:
    """Number the results of searches as layers; layers stay as they are.

    Examples
    --------
    >>> from loopsched import gemm, load_arch, search
    >>> result = search(gemm(m=8, n=8, k=8), load_arch("titan_v"))
    >>> [(layer.label, layer.count) for layer in layers_of([result, result])]
    [('0', 1), ('1', 1)]
    """
    return tuple(
        each
        if isinstance(each, Layer)
        else Layer(each.problem, each.evaluation, str(number), 1, 1 + len(each.alternatives))
        for number, each in enumerate(results)
    )
