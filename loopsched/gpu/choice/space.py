"""Configurations of a kernel, column by column: those usually tried, or those of a file."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loopsched.base.arguments import is_count, show
from loopsched.base.csv_text import parsed, repeated
from loopsched.base.errors import InputError, nearest
from loopsched.base.files import read_text

Numbers = NDArray[np.float64]

# What a compiled kernel's own report may add to a configuration.
COMPILED = ("registers", "spills", "shared_bytes")
_KERNEL = ("block_m", "block_n", "block_k", "stages", "warps")
MOST_CONFIGURATIONS = 1_000_000
# Of a parameter.
MOST = 2**20


@dataclass(frozen=True, slots=True)
class Space:
    """Configurations to choose from.

    Parameters
    ----------
    names : tuple of str
        Of the parameters, such as ``block_m``.
    columns : mapping of str to array
        Of each parameter, and of those of ``registers`` (of a thread),
        ``spills`` and ``shared_bytes`` (of a block) that a compiler told.

    Examples
    --------
    >>> space = space_of([{"block_m": 64, "block_n": 32}], ("block_m", "block_n"))
    >>> len(space), space.configuration(0)
    (1, {'block_m': 64, 'block_n': 32})
    """

    names: tuple[str, ...]
    columns: Mapping[str, Numbers]

    def __len__(self) -> int:
        return len(self.columns[self.names[0]])

    def __getitem__(self, name: str) -> Numbers:
        return self.columns[name]

    def configuration(self, at: int) -> dict[str, int]:
        """Give the parameters of one configuration."""
        return {name: int(self.columns[name][at]) for name in self.names}

    def kept(self, chosen: NDArray[np.bool_]) -> Space:
        """Leave out those that are not chosen."""
        return Space(self.names, {name: one[chosen] for name, one in self.columns.items()})


def kernel_names(space: Space) -> list[str]:
    """Name each configuration's kernel by its tile, stages and warps.

    Examples
    --------
    >>> tile = {"block_m": (64,), "block_n": (32,), "block_k": (64,)}
    >>> kernel_names(product_space(tile | {"stages": (2, 3), "warps": (4,)}))
    ['64x32x64x2x4', '64x32x64x3x4']
    """
    rows = zip(*(space[name].astype(int) for name in _KERNEL), strict=True)
    return ["x".join(map(str, row)) for row in rows]


def product_space(values: Mapping[str, Sequence[int]]) -> Space:
    """Combine all values of all parameters, the last parameter changing first.

    Examples
    --------
    >>> product_space({"stages": (2, 3), "warps": (4, 8)})["warps"].tolist()
    [4.0, 8.0, 4.0, 8.0]
    """
    all_of_them = np.array(list(itertools.product(*values.values())), dtype=np.float64)
    return Space(tuple(values), dict(zip(values, all_of_them.T, strict=True)))


def space_of(
    rows: Iterable[Mapping[str, Any]],
    names: tuple[str, ...],
    switches: tuple[str, ...] = (),
    more: tuple[str, ...] = (),
) -> Space:
    """Take configurations as they are given.

    Parameters
    ----------
    rows : iterable of mappings
        A whole number for each parameter, also in Triton's spelling (`spelled`);
        ``registers``, ``spills`` and ``shared_bytes`` if all rows have them.
        Other keys are not read.
    names : tuple of str
        The kernel's parameters.
    switches : tuple of str
        Of these, that may be zero.
    more : tuple of str
        Parameters that all rows have if any has them.

    Raises
    ------
    InputError
        If there are none, or too many, or a parameter is missing or no whole
        number; all faults at once.
    """
    given = list(itertools.islice(rows, MOST_CONFIGURATIONS + 1))
    if not given:
        raise InputError("space: no configurations")
    if len(given) > MOST_CONFIGURATIONS:
        raise InputError(f"space: more than {MOST_CONFIGURATIONS:,} configurations")
    given = [spelled(row, (*names, *more)) for row in given]
    names += tuple(name for name in more if any(name in row for row in given))
    # What no row has is told once.
    had = [name for name in names if any(name in row for row in given)]
    keys = [str(key) for key in given[0]]
    faults = [f"no {name}; {nearest(name, keys, 'columns')}" for name in names if name not in had]
    faults += [fault for at, row in enumerate(given) for fault in _faults(at, row, had, switches)]
    InputError.refuse("space", faults[:20])
    told = [name for name in COMPILED if all(is_count(row.get(name), 0, 2**40) for row in given)]
    columns = {
        name: np.array([row[name] for row in given], dtype=np.float64) for name in (*names, *told)
    }
    return Space(names, columns)


def spelled(row: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """Call parameters as here where a row has them as kernels of Triton do.

    Examples
    --------
    >>> spelled({"BLOCK_SIZE_M": 64, "num_warps": 4, "EVEN": 1}, ("block_m", "warps"))
    {'block_m': 64, 'warps': 4, 'EVEN': 1}
    """
    found = {}
    for key, value in row.items():
        plain = str(key).lower().replace("_size_", "_").removeprefix("num_")
        found[plain if plain in names and plain not in row and key not in names else key] = value
    return found


def _faults(
    at: int, row: Mapping[str, Any], names: Iterable[str], switches: tuple[str, ...]
) -> Iterable[str]:
    for name in names:
        if name not in row:
            keys = [str(key) for key in row]
            yield f"configuration {at + 1}: no {name}; {nearest(name, keys, 'columns')}"
        elif not is_count(row[name], least := int(name not in switches), MOST):
            wanted, value = f"a whole number from {least}", row[name]
            yield f"configuration {at + 1}: {name} " + (
                f"is empty; {wanted} is needed"
                if value is None
                else f"must be {wanted}, not {show(value)}"
            )


def read_space(
    file: str | os.PathLike[str],
    names: tuple[str, ...],
    switches: tuple[str, ...] = (),
    more: tuple[str, ...] = (),
) -> Space:
    """Read configurations from a CSV file: a column a parameter, a line a configuration.

    Raises
    ------
    InputError
        As `space_of`, or if the file cannot be read.
    """
    where = os.fspath(file)
    sheet = parsed(read_text(where, "a CSV file", where=where), where)
    faults = repeated(sheet.names)
    faults += [f"{place}: {row}" for place, row in sheet.rows if isinstance(row, str)]
    InputError.refuse(where, faults[:20])
    try:
        given = [row for _, row in sheet.rows if isinstance(row, dict)]
        return space_of(given, names, switches, more)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
