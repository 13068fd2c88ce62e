"""Text where a problem, a machine, a workload or a network is wanted; no other type."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from functools import wraps
from importlib import import_module
from typing import Any, NamedTuple

from loopsched.base.arguments import show
from loopsched.base.errors import (
    ArchError,
    InputError,
    ProblemError,
    ScheduleError,
    WorkloadError,
)


def _problem(text: Any) -> object:
    from loopsched.network.selection import problem_of

    return problem_of(os.fspath(text))


def _workload(text: Any) -> object:
    from loopsched.network.selection import select

    return select(os.fspath(text)).workload


def _network(text: Any) -> object:
    from loopsched.network.text import load_network

    return load_network(text)


def _arch(text: Any) -> object:
    from loopsched.machines.arch_file import load_arch

    return load_arch(text)


class _Kind(NamedTuple):
    """A type of the library that a parameter is annotated with."""

    module: str
    error: type[InputError]
    needed: str
    read: Callable[[Any], object] | None = None


# Of those that an annotation names, the first reads text and has the word.
_KINDS: Mapping[str, _Kind] = {
    "Problem": _Kind(
        "problems.problem",
        ProblemError,
        "a Problem is needed, as gemm() gives one, or text such as 'gemm:m=64,n=64,k=64'",
        _problem,
    ),
    "Network": _Kind(
        "network.graph",
        WorkloadError,
        "a Network is needed, or the name or the file of one",
        _network,
    ),
    "Workload": _Kind(
        "problems.workload",
        WorkloadError,
        "a Workload is needed, or the name or the file of one",
        _workload,
    ),
    "Arch": _Kind(
        "machines.arch",
        ArchError,
        "an Arch is needed, or the name or the file of one",
        _arch,
    ),
    "Schedule": _Kind(
        "nests.nest", ScheduleError, "a Schedule is needed, as parse_schedule() gives one"
    ),
}


def takes_text(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a public function take text, too, where it wants what text can name.

    What is neither is refused by one message, before the function sees it.

    Parameters
    ----------
    function : callable
        As ``loopsched`` exports it; its annotations say what it wants.

    Returns
    -------
    callable
        The function itself, if it wants nothing of that kind.  Its annotations
        say where text is taken.

    Examples
    --------
    >>> def work(problem: Problem) -> int:
    ...     return problem.macs
    >>> takes_text(work)("gemm:m=4,n=3,k=2"), takes_text(len) is len
    (24, True)
    >>> takes_text(work).__annotations__["problem"]
    'Problem | str | PathLike[str]'
    """
    if not inspect.isfunction(function):
        return function
    signature = inspect.signature(function)
    wanted = [
        (place, parameter, kinds)
        for place, parameter in enumerate(signature.parameters.values())
        if not _KINDS.keys().isdisjoint(kinds := str(parameter.annotation).split(" | "))
    ]
    if not wanted:
        return function

    @wraps(function)
    def called(*args: Any, **given: Any) -> Any:
        row = list(args)
        for place, parameter, kinds in wanted:
            if place < len(row):
                row[place] = _taken(parameter, kinds, row[place])
            elif parameter.name in given:
                given[parameter.name] = _taken(parameter, kinds, given[parameter.name])
        return function(*row, **given)

    said = {parameter.name: _said(kinds) for _, parameter, kinds in wanted}
    called.__annotations__ = {**function.__annotations__, **said}
    called.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[
            one.replace(annotation=said.get(one.name, one.annotation))
            for one in signature.parameters.values()
        ]
    )
    called.__module__ = "loopsched"  # where pickle finds it
    return called


def _reads_text(kinds: list[str]) -> Callable[[Any], object] | None:
    """Find what reads text for a parameter that does not take text as it is."""
    if "str" in kinds:
        return None
    return next((kind.read for name, kind in _KINDS.items() if name in kinds), None)


def _said(kinds: list[str]) -> str:
    return " | ".join([*kinds, *(["str", "PathLike[str]"] if _reads_text(kinds) else [])])


def _taken(parameter: inspect.Parameter, kinds: list[str], value: Any) -> Any:
    read = _reads_text(kinds)
    if read is not None and isinstance(value, (str, os.PathLike)):
        return read(value)
    if value is parameter.default or not {"None", "str", *_KINDS}.issuperset(kinds):
        return value  # other types the function checks itself
    known = [kind for kind in _KINDS if kind in kinds]
    if (
        isinstance(value, tuple(_type(kind) for kind in known))
        or ("str" in kinds and isinstance(value, str))
        or ("None" in kinds and value is None)
    ):
        return value
    first = _KINDS[known[0]]
    raise first.error(f"{parameter.name} is {show(value)}; {first.needed}")


def _type(name: str) -> type:
    found: type = getattr(import_module(f"loopsched.{_KINDS[name].module}"), name)
    return found
