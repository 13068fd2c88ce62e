"""The results of a sweep as one file: in one order, to the byte.

Types of columns are fixed, not taken from the rows: they are written in groups,
and a sweep where nothing fails has the same columns as one where much does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loopsched.base.arrow_rows import need_arrow
from loopsched.base.errors import SweepError
from loopsched.base.files import whole_file
from loopsched.base.rows import Row, json_text
from loopsched.sweeps.plan import FOUND

if TYPE_CHECKING:
    from pyarrow import Schema, Table

_GROUP = 50_000


def write_results(path: Path, rows: Iterable[Row], manifest: Mapping[str, Any]) -> None:
    """Write all rows; the file is there in full or not at all.

    Parameters
    ----------
    path : path
        Its suffix chooses the form, ``.jsonl`` or ``.parquet``.
    rows : iterable of dict
    manifest : dict
        Says which numbers of machines the rows have.
    """
    write: Callable[[Path, Iterable[Row], Mapping[str, Any]], None]
    write = _write_parquet if path.suffix == ".parquet" else _write_jsonl
    with whole_file(path, SweepError) as part:
        write(part, rows, manifest)


def _write_jsonl(path: Path, rows: Iterable[Row], _: Mapping[str, Any]) -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:
        for row in rows:
            stream.write(json_text(row) + "\n")


def _write_parquet(path: Path, rows: Iterable[Row], manifest: Mapping[str, Any]) -> None:
    from pyarrow import parquet

    form = schema(manifest)
    with parquet.ParquetWriter(path, form, compression="zstd") as writer:
        for batch in _tables(rows, form):
            writer.write_table(batch)


def arrow_table(rows: Iterable[Row], manifest: Mapping[str, Any]) -> Table:
    """Put rows into an Arrow table."""
    pa = need_arrow()
    form = schema(manifest)
    return pa.concat_tables([form.empty_table(), *_tables(rows, form)])


def _tables(rows: Iterable[Row], form: Schema) -> Iterator[Table]:
    pa = need_arrow()
    source = iter(rows)
    while group := list(islice(source, _GROUP)):
        for row in group:
            # Spaces have more schedules than 64 bits can count.
            size = row.get("space_size")
            row["space_size"] = None if size is None else float(size)
        yield pa.Table.from_pylist(group, schema=form)


def schema(manifest: Mapping[str, Any]) -> Schema:
    """Name the columns with their types."""
    pa = need_arrow()
    types = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
    level = {"name": str, **dict.fromkeys(_BYTES, int), **dict.fromkeys(_REALS, float)}
    inner = pa.struct({name: types[kind] for name, kind in level.items()})
    columns = {
        "arch": str,
        "base": str,
        **dict.fromkeys(manifest["keys"], float),
        "workload": str,
        "layer": int,
        "problem": str,
        "count": int,
        "objective": str,
        **FOUND,
        "error": str,
    }
    types[list] = pa.list_(inner)
    return pa.schema({name: types[kind] for name, kind in columns.items()})


# Of a level.
_BYTES = ("capacity_bytes", "working_set_bytes", "promised_bytes")
_REALS = ("time_s", "utilisation", "operational_intensity")
