"""The same sums by numpy: what kernels are checked against, and timed beside."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from itertools import product
from string import ascii_letters
from typing import Any

import numpy as np

from loopsched.base.arrays import Array
from loopsched.base.units import count
from loopsched.problems.problem import Axis, Problem, Tensor
from loopsched.problems.projections import span

Limits = dict[str, tuple[int, int]]


def reference(problem: Problem, arrays: Mapping[str, Array], out: Array) -> Array:
    """Compute a problem with numpy: one `numpy.einsum` for each tap of its windows.

    Parameters
    ----------
    problem : Problem
    arrays : mapping of tensor name to numpy.ndarray
        What is read.
    out : numpy.ndarray
        Written; of the type that is summed in.

    Returns
    -------
    numpy.ndarray
        ``out``.

    Examples
    --------
    >>> from loopsched import conv2d
    >>> problem = conv2d(c=1, k=1, h=3, w=4, r=2, s=2)
    >>> ones = {"input": np.ones((1, 1, 3, 4)), "weight": np.ones((1, 1, 2, 2))}
    >>> reference(problem, ones, np.empty((1, 1, 2, 3)))[0, 0]
    array([[4., 4., 4.],
           [4., 4., 4.]])
    """
    letters = dict(zip(problem.dims, ascii_letters, strict=False))
    read = [tensor for tensor in problem.tensors if tensor.name != problem.output]
    taps = _taps(problem)
    is_whole = not taps and all(axis.is_plain for one in problem.tensors for axis in one.axes)
    if not is_whole or len(read) != 2:
        out[...] = 0
    for values in product(*(range(problem.size[dim]) for dim in taps)):
        fixed = dict(zip(taps, values, strict=True))
        limits = _limits(problem, fixed)
        if limits is None:
            continue
        views = [_view(arrays[one.name], problem, one, fixed, limits) for one in read]
        target = _view(out, problem, problem.output_tensor, fixed, limits)
        names = [_names(one, fixed, letters) for one in (*read, problem.output_tensor)]
        if is_whole and _is_matmul(names):
            left, right, product_of = names
            k = (set(left) - set(product_of)).pop()
            wanted = product_of[:-1] + k, product_of[:-2] + k + product_of[-1]
            one, other = (
                view.transpose([name.index(letter) for letter in order])
                for view, name, order in zip(views, (left, right), wanted, strict=True)
            )
            np.matmul(one, other, out=out)
            return out
        text = f"{','.join(names[:-1])}->{names[-1]}"
        if is_whole:
            out[...] = 0
        target += np.einsum(text, *views, optimize=len(views) > 1)
    return out


def _is_matmul(names: list[str]) -> bool:
    """Whether NumPy's `matmul` computes this, with axes turned."""
    if len(names) != 3 or any(len(set(one)) != len(one) for one in names):
        return False
    left, right, out = map(set, names)
    kept = names[-1]
    if len(kept) < 2 or len(left - out) != 1 or left - out != right - out:
        return False
    return left & out == set(kept[:-1]) and right & out == set(kept[:-2] + kept[-1])


def _taps(problem: Problem) -> list[str]:
    """List the dimensions that share an axis with a longer one."""
    found: dict[str, None] = {}
    for tensor in problem.tensors:
        for axis in tensor.axes:
            longest = sorted(axis.dims, key=lambda dim: -problem.size[dim])
            found.update(dict.fromkeys(dim for dim in longest[1:]))
    return list(found)


def _offset(axis: Axis, fixed: Mapping[str, int]) -> int:
    start = axis.offset if axis.size is not None else 0
    return start + sum(step * fixed[dim] for dim, step in axis.terms if dim in fixed)


def _free(axis: Axis, fixed: Mapping[str, int]) -> list[tuple[str, int]]:
    return [(dim, step) for dim, step in axis.terms if dim not in fixed]


def _axes(problem: Problem, fixed: Mapping[str, int]) -> Iterator[tuple[int, int, list[Any]]]:
    for tensor in problem.tensors:
        for axis in tensor.axes:
            size = axis.size if axis.size is not None else span(axis, problem.size)
            yield _offset(axis, fixed), size, _free(axis, fixed)


def _limits(problem: Problem, fixed: Mapping[str, int]) -> Limits | None:
    """Say which indices of each dimension reach what is stored; None if none do."""
    limits = {dim: (0, size) for dim, size in problem.sizes if dim not in fixed}
    for offset, size, free in _axes(problem, fixed):
        if not free:
            if not 0 <= offset < size:
                return None
            continue
        dim, step = free[0]
        low, high = limits[dim]
        low = max(low, -(offset // step))
        high = min(high, (size - 1 - offset) // step + 1)
        if low >= high:
            return None
        limits[dim] = low, high
    return limits


def _view(
    array: Array, problem: Problem, tensor: Tensor, fixed: Mapping[str, int], limits: Limits
) -> Array:
    slices: list[int | slice] = []
    for axis in tensor.axes:
        offset, free = _offset(axis, fixed), _free(axis, fixed)
        if not free:
            slices.append(slice(offset, offset + 1))
            continue
        dim, step = free[0]
        low, high = limits[dim]
        start = offset + step * low
        slices.append(slice(start, start + step * (high - low - 1) + 1, step))
    view = array[(*slices, ...)]  # of no axes, too, a view
    gone = tuple(n for n, axis in enumerate(tensor.axes) if not _free(axis, fixed))
    squeezed: Array = view.squeeze(gone)
    return squeezed


def _names(tensor: Tensor, fixed: Mapping[str, int], letters: Mapping[str, str]) -> str:
    return "".join(letters[free[0][0]] for axis in tensor.axes if (free := _free(axis, fixed)))


@contextmanager
def blas_on(threads: int) -> Iterator[str]:
    """Let NumPy's BLAS compute on so many threads, where it is OpenBLAS; other libraries choose.

    Yields
    ------
    str
        Name of the library; of OpenBLAS also its kernels, and the threads it now computes on.
    """
    asked = _openblas()
    if asked is None:
        config = np.show_config("dicts")
        name = config["Build Dependencies"]["blas"].get("name", "its own loops")
        yield f"{name}, which chooses its number of threads itself"
        return
    config, kernels = (asked(f"get_{one}").decode().split() for one in ("config", "corename"))
    before = asked("get_num_threads")
    asked("set_num_threads", threads)
    try:
        n = asked("get_num_threads")
        yield f"{' '.join(config[:2])}, {kernels[0]} kernels on {count(n, 'thread')}"
    finally:
        asked("set_num_threads", before)


@cache
def _openblas() -> Callable[..., Any] | None:
    """Find what calls OpenBLAS's functions by name; None if NumPy uses another library.

    It is reached through NumPy's own module, which every build of OpenBLAS is linked to;
    builds differ in what is put before and behind the names of its functions.
    """
    try:
        linked = ctypes.CDLL(import_module("numpy._core._multiarray_umath").__file__)
    except (ImportError, OSError):
        linked = ctypes.CDLL(None)
    kinds: dict[str, Any] = {"get_config": ctypes.c_char_p, "get_corename": ctypes.c_char_p}
    kinds |= {"get_num_threads": ctypes.c_int, "set_num_threads": None}
    for before, behind in product(("", "scipy_"), ("", "64_", "_64", "_64_")):
        names = {one: f"{before}openblas_{one}{behind}" for one in kinds}
        if all(hasattr(linked, name) for name in names.values()):
            calls = {one: getattr(linked, name) for one, name in names.items()}
            for one, call in calls.items():
                call.restype = kinds[one]
            return lambda name, *given: calls[name](*given)
    return None
