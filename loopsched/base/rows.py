"""Results as rows of plain values: what files and other programs read.

A row says all that is needed to trust and repeat it: besides the result, the
version, the command, the seed and the digests of its inputs.
"""

from __future__ import annotations

import csv
import json
import math
import os
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any, Literal, TextIO

from loopsched.base.arrow_rows import need_arrow, read_parquet, write_parquet
from loopsched.base.errors import InputError, nearest
from loopsched.base.files import GrowingFile, named, read_text, write_text

# Values are those of JSON, nested ones included.
Row = dict[str, Any]
Format = Literal["json", "jsonl", "csv"]
FORMATS: tuple[Format, ...] = ("json", "jsonl", "csv")
_PARQUET = "parquet"


class RowWriter:
    """Write rows to a stream as they come, so that an interruption keeps them.

    Parameters
    ----------
    stream : text stream
    form : {'json', 'jsonl', 'csv'}
        One list; one object per line; a head and one line per row, without nested
        values, and with an apostrophe before text that a spreadsheet would run
        as a formula: that which begins with ``=``, ``+``, ``-``, ``@``.

    Examples
    --------
    >>> import sys
    >>> with RowWriter(sys.stdout, "csv") as writer:
    ...     writer.write({"problem": "a", "time_s": 0.5, "levels": []})
    problem,time_s
    a,0.5
    """

    def __init__(self, stream: TextIO, form: Format) -> None:
        self._stream = stream
        self._write = {"json": self._json, "jsonl": self._jsonl, "csv": self._csv}[form]
        self._is_json = form == "json"
        self._n_rows = 0

    def __enter__(self) -> RowWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def write(self, row: Row) -> None:
        """Write one row and hand it on at once."""
        self._write(row)
        self._n_rows += 1
        self._stream.flush()

    def close(self) -> None:
        """End the list, where the form has one."""
        if self._is_json:
            self._stream.write("\n]\n" if self._n_rows else "[]\n")
            self._stream.flush()

    def _json(self, row: Row) -> None:
        self._stream.write((",\n " if self._n_rows else "[\n ") + json_text(row))

    def _jsonl(self, row: Row) -> None:
        self._stream.write(json_text(row) + "\n")

    def _csv(self, row: Row) -> None:
        flat = {
            str(_inert(key)): _inert(value)
            for key, value in row.items()
            if not isinstance(value, list | dict)
        }
        writer = csv.DictWriter(self._stream, list(flat), lineterminator="\n")
        if not self._n_rows:
            writer.writeheader()
        writer.writerow(flat)


def _inert(value: object) -> object:
    """Keep a spreadsheet from taking text for a formula."""
    is_formula = isinstance(value, str) and value.lstrip().startswith(("=", "+", "-", "@"))
    return f"'{value}" if is_formula else value


def picked(thing: object, *names: str) -> Row:
    """Describe an object by some of its attributes.

    Examples
    --------
    >>> picked(1 + 2j, "real", "imag")
    {'real': 1.0, 'imag': 2.0}
    """
    return {name: getattr(thing, name) for name in names}


def json_text(value: object) -> str:
    """Write a value as one line of strict JSON; what is not finite becomes null.

    Examples
    --------
    >>> json_text({"gap": float("inf"), "n": 2**70})
    '{"gap": null, "n": 1180591620717411303424}'
    """
    return json.dumps(_finite(value), allow_nan=False, ensure_ascii=False)


def _finite(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


class ResultFile:
    """A result file that is never half a row.

    ``.jsonl`` and ``.csv`` grow by whole lines; ``.json`` and ``.parquet``
    appear under their name when they are complete, or at an interruption with
    what there is.  Nothing is touched before the first row.

    Parameters
    ----------
    path : path
        Its suffix chooses the form; its folder must exist.

    Raises
    ------
    InputError
        If the suffix is unknown or the file cannot be written.
    MissingExtraError
        If it is a Parquet file and pyarrow is not installed.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._form = self.path.suffix.lower().removeprefix(".")
        if self._form not in (*FORMATS, _PARQUET):
            hint = nearest(self.path.suffix, [f".{name}" for name in (*FORMATS, _PARQUET)])
            raise InputError(f"{named(path)}: unknown suffix '{self.path.suffix}'; {hint}")
        if self._form == _PARQUET:
            need_arrow()
        # The head of a Parquet file says what is in it, the end of JSON closes a list.
        self._rows: list[Row] = []
        self._text = StringIO()
        self._file = GrowingFile(path)
        self._writer = RowWriter(self._text, "csv" if self._form == "csv" else "jsonl")

    def __enter__(self) -> ResultFile:
        return self

    def write(self, row: Row) -> None:
        """Write one row and hand it on at once."""
        if self._form in ("json", _PARQUET):
            self._rows.append(row)
            return
        self._writer.write(row)
        self._file.append(self._text.getvalue())
        self._text.seek(0)
        self._text.truncate()

    def __exit__(self, *_: object) -> None:
        self._file.close()
        if self._rows and self._form == _PARQUET:
            write_parquet(self._rows, self.path)
        elif self._rows:
            with RowWriter(self._text, "json") as writer:
                for row in self._rows:
                    writer.write(row)
            write_text(self.path, self._text.getvalue())


def read_rows(path: str | os.PathLike[str]) -> Iterator[tuple[int, Row]]:
    """Read the rows of a ``.json``, ``.jsonl`` or ``.parquet`` result file.

    Yields
    ------
    (int, dict)
        Position, from 1 (for ``.jsonl`` the line), and row.

    Raises
    ------
    InputError
        If the file cannot be read or does not hold rows.
    """
    if Path(path).suffix.lower() == ".parquet":
        yield from enumerate(read_parquet(path), 1)
        return
    text = read_text(path, "a result file")
    for position, row in _parsed(path, text):
        if not isinstance(row, dict):
            raise InputError(f"{path}: row {position} is not an object with named values")
        yield position, row


def _parsed(path: str | os.PathLike[str], text: str) -> Iterator[tuple[int, object]]:
    if text.lstrip().startswith("["):
        loaded = _loaded(path, 1, text)
        yield from enumerate(loaded if isinstance(loaded, list) else [loaded], 1)
        return
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            yield number, _loaded(path, number, line)


def _loaded(path: str | os.PathLike[str], line: int, text: str) -> object:
    try:
        loaded: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        where = line + getattr(error, "lineno", 1) - 1
        reason = getattr(error, "msg", "not JSON")
        raise InputError(f"{path}: line {where}: {reason}; is it a result file?") from error
    return loaded
