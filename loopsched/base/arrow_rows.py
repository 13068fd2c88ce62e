"""Rows as Arrow tables and Parquet files, for SQL and data frames.

A row's nested values stay nested: ``levels`` is a list of structs, which SQL
unnests.  Whole numbers beyond 64 bits (counts of schedules) become floats in
their whole column, and what is not finite becomes null, as in JSON.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from loopsched.base.errors import InputError, MissingExtraError
from loopsched.base.files import named, read_bytes, whole_file

if TYPE_CHECKING:
    from pyarrow import Table

_MOST = 2**63


def need_arrow() -> Any:
    """Import pyarrow.

    Raises
    ------
    MissingExtraError
        If it is not installed.
    """
    try:
        import pyarrow as pa
    except ImportError:
        raise MissingExtraError(
            "Parquet needs pyarrow; install it, or loopsched with the extra 'parquet'"
        ) from None
    return pa


def columns(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Turn rows into columns, each as long as there are rows.

    Examples
    --------
    >>> columns([{"a": 1, "n": 2**70}, {"a": 2, "b": float("inf"), "n": 3}])
    {'a': [1, 2], 'n': [1.1805916207174113e+21, 3.0], 'b': [None, None]}
    """
    kept = list(rows)
    names = list(dict.fromkeys(name for row in kept for name in row))
    return {name: _narrow([_plain(row.get(name)) for row in kept]) for name in names}


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None
    if isinstance(value, Mapping):
        return {str(key): _narrow([_plain(item)])[0] for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return _narrow([_plain(item) for item in value])
    return value


def _narrow(values: list[Any]) -> list[Any]:
    """Make a column of floats where a whole number is beyond 64 bits."""
    whole = [value for value in values if isinstance(value, int)]
    if any(not -_MOST <= value < _MOST for value in whole):
        return [_real(value) if isinstance(value, int) else value for value in values]
    return values


def _real(value: int) -> float | None:
    try:
        return float(value)
    except OverflowError:
        return None


def arrow_table(rows: Iterable[Mapping[str, Any]]) -> Table:
    """Put rows into an Arrow table.

    Raises
    ------
    MissingExtraError
        If pyarrow is not installed.
    InputError
        If the values of a column are of several kinds.

    Examples
    --------
    >>> table = arrow_table([{"a": 1, "levels": [{"name": "L2"}], "energy_pj": None}])
    >>> print(table.schema)
    a: int64
    levels: list<...: struct<name: string>>
      child 0, ...: struct<name: string>
          child 0, name: string
    energy_pj: double
    """
    pa = need_arrow()
    found = {}
    for name, values in columns(rows).items():
        try:
            array = pa.array(values)
        except (pa.ArrowException, UnicodeError) as error:
            reason = str(error).splitlines()[0]
            raise InputError(f"column '{name}' has values of several kinds: {reason}") from error
        # A column without any value: numbers are what is left out.
        found[name] = array.cast(pa.float64()) if pa.types.is_null(array.type) else array
    return pa.table(found)


def write_parquet(rows: Iterable[Mapping[str, Any]], path: str | os.PathLike[str]) -> None:
    """Write rows as a Parquet file, whole or not at all.

    Raises
    ------
    MissingExtraError
        If pyarrow is not installed.
    InputError
        If it cannot be written.
    """
    table = arrow_table(rows)
    pa = need_arrow()
    from pyarrow import parquet

    try:
        with whole_file(path) as part:
            parquet.write_table(table, part, compression="zstd")
    except pa.ArrowException as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{named(path)}: cannot be written: {reason}") from error


def read_parquet(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Read the rows of a Parquet file.

    Raises
    ------
    MissingExtraError
        If pyarrow is not installed.
    InputError
        If there is no such file, or it is not a Parquet file.
    """
    pa = need_arrow()
    from pyarrow import parquet

    content = pa.BufferReader(read_bytes(path, "a Parquet file"))
    try:
        rows: list[dict[str, Any]] = parquet.read_table(content).to_pylist()
    except pa.ArrowException as error:
        raise InputError(f"{path}: not a Parquet file: {str(error).splitlines()[0]}") from error
    return rows
