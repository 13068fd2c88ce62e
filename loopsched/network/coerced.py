"""Text where a problem, a machine, a workload or a network is wanted."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any


def _is_path(value: object) -> bool:
    return isinstance(value, (str, os.PathLike))


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


# By the type that a parameter is annotated with; what comes first counts.
_READERS: Mapping[str, Callable[[Any], object]] = {
    "Problem": _problem,
    "Network": _network,
    "Workload": _workload,
    "Arch": _arch,
}


def takes_text(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a public function take text, too, where it wants what text can name.

    Parameters
    ----------
    function : callable
        As ``loopsched`` exports it; its annotations say what it wants.

    Returns
    -------
    callable
        The function itself, if it wants nothing of that kind.

    Examples
    --------
    >>> def work(problem: Problem) -> int:
    ...     return problem.macs
    >>> takes_text(work)("gemm:m=4,n=3,k=2"), takes_text(len) is len
    (24, True)
    """
    if not inspect.isfunction(function):
        return function
    wanted = [
        (place, name, reader)
        for place, name in enumerate(inspect.signature(function).parameters)
        if (reader := _reader(str(function.__annotations__.get(name, ""))))
    ]
    if not wanted:
        return function

    @wraps(function)
    def called(*args: Any, **given: Any) -> Any:
        row = list(args)
        for place, name, reader in wanted:
            if place < len(row) and _is_path(row[place]):
                row[place] = reader(row[place])
            elif _is_path(given.get(name)):
                given[name] = reader(given[name])
        return function(*row, **given)

    called.__module__ = "loopsched"  # where pickle finds it
    return called


def _reader(annotation: str) -> Callable[[Any], Any] | None:
    kinds = [kind.strip() for kind in annotation.split("|")]
    if "str" in kinds:  # it reads text itself
        return None
    return next((reader for kind, reader in _READERS.items() if kind in kinds), None)
