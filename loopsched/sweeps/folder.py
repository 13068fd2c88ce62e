"""A run folder: what a sweep has found, safe from a kill at any moment.

Every process that works on the folder writes a shard of its own, whole lines
at a time, each with a check sum: what a kill tears is not read again, and what
is whole is never touched again.  ``manifest.json`` and the results appear under
their names only when they are complete.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from loopsched.base.errors import SweepError
from loopsched.base.files import named, read_text, whole_file, write_all, writing
from loopsched.base.rows import Row
from loopsched.sweeps.plan import cells, differences, n_tasks
from loopsched.sweeps.tasks import Answer

MANIFEST, LOCK, SHARDS = "manifest.json", "lock", "shards"
RESULTS = {"jsonl": "results.jsonl", "parquet": "results.parquet"}
_LINE = re.compile(rb'\{"task": ([0-9]{1,18}), "check": "([0-9a-f]{8})", "rows": (\[.*\])\}\n')


class Shards:
    """The answers in a folder, and where each of them stands.

    Parameters
    ----------
    folder : path
    total : int
        Tasks that there are.
    """

    def __init__(self, folder: Path, total: int) -> None:
        self._folder = folder / SHARDS
        self._files: list[Path] = []
        # Of each task, the file (counted from 1; 0: there is none) and the place in it.
        self._file = np.zeros(total, np.int32)
        self._offset = np.zeros(total, np.int64)
        self._n_done = 0
        self._open: tuple[int, BinaryIO] | None = None
        for path in self._paths():
            self._scan(path)

    def __contains__(self, task: object) -> bool:
        return isinstance(task, int) and bool(self._file[task])

    def __len__(self) -> int:
        return self._n_done

    def _paths(self) -> list[Path]:
        return sorted(self._folder.glob("[0-9]*.jsonl"))

    def _scan(self, path: Path) -> None:
        offset, file = 0, self.known(path)
        with path.open("rb") as stream:
            for line in stream:
                found = _LINE.fullmatch(line)
                # A torn line is no answer: its task is done again.
                if found and found[2] == _check(found[1], found[3]):
                    self.note(int(found[1]), file, offset)
                offset += len(line)

    def known(self, path: Path) -> int:
        """Number a file."""
        self._files.append(path)
        return len(self._files)

    def note(self, task: int, file: int, offset: int) -> None:
        """Note where a task's answer stands; the first one counts."""
        if task < len(self._file) and not self._file[task]:
            self._file[task], self._offset[task] = file, offset
            self._n_done += 1

    def rows(self, task: int) -> list[Row]:
        """Read what was found for a task."""
        file = int(self._file[task])
        if self._open is None or self._open[0] != file:
            self.close()
            self._open = file, self._files[file - 1].open("rb")
        stream = self._open[1]
        stream.seek(int(self._offset[task]))
        found: list[Row] = json.loads(stream.readline())["rows"]
        return found

    def close(self) -> None:
        """Close the file that was read last."""
        if self._open is not None:
            self._open[1].close()
            self._open = None

    def new(self) -> Shard:
        """Begin a shard."""
        numbers = [int(path.stem) for path in self._paths() if path.stem.isdecimal()]
        return Shard(self._folder / f"{max(numbers, default=0) + 1:06}.jsonl", self)


class Shard:
    """The file of one process: it only grows, by whole lines."""

    def __init__(self, path: Path, shards: Shards) -> None:
        self._path = path
        self._shards = shards
        self._file = shards.known(path)
        self._stream: BinaryIO | None = None
        self._end = 0

    def add(self, answers: Iterable[Answer]) -> None:
        """Write answers down, all at once."""
        lines, places = [], []
        end = self._end
        for answer in answers:
            task, rows = str(answer.task).encode(), answer.rows.encode()
            lines.append(
                b'{"task": %s, "check": "%s", "rows": %s}\n' % (task, _check(task, rows), rows)
            )
            places.append((answer.task, end))
            end += len(lines[-1])
        if not lines:
            return
        with writing(self._path, SweepError):
            self._append(b"".join(lines))
        self._end = end
        for number, place in places:
            self._shards.note(number, self._file, place)

    def _append(self, data: bytes) -> None:
        if self._stream is None:  # no empty shard of a process that found nothing to do
            self._stream = self._path.open("xb", buffering=0)
        write_all(self._stream.fileno(), data)

    def close(self) -> None:
        """Make sure that everything is on the disk."""
        if self._stream is not None:
            with writing(self._path, SweepError), self._stream as stream:
                os.fsync(stream.fileno())


def _check(task: bytes, rows: bytes) -> bytes:
    return b"%08x" % zlib.crc32(task + b" " + rows)


class RunFolder:
    """A folder that this process alone writes to.

    Parameters
    ----------
    path : path
        New, empty, or that of the same sweep begun before.
    manifest : dict

    Raises
    ------
    SweepError
        If another process works on it, it is of another sweep, or it cannot
        be written.
    """

    def __init__(self, path: str | os.PathLike[str], manifest: Row) -> None:
        self.path = Path(path)
        self._lock: BinaryIO | None = None
        try:
            with writing(self.path, SweepError):
                self._begin(manifest)
        except BaseException:
            self.close()
            raise
        self.manifest = manifest

    def _begin(self, manifest: Row) -> None:
        if self.path.is_dir() and not (self.path / MANIFEST).exists():
            strange = [one.name for one in self.path.iterdir() if not _is_ours(one)]
            if strange:
                raise SweepError(
                    f"{self.path}: has '{sorted(strange)[0]}' and no {MANIFEST}; a sweep needs a "
                    "folder of its own"
                )
        (self.path / SHARDS).mkdir(parents=True, exist_ok=True)
        self._take_lock()
        old = read_manifest(self.path) if (self.path / MANIFEST).exists() else None
        if old is None:
            text = json.dumps(manifest, indent=1, ensure_ascii=False) + "\n"
            with whole_file(self.path / MANIFEST, SweepError) as part:
                part.write_bytes(text.encode())
        else:
            # What JSON makes of the manifest is what the folder has.
            faults = differences(old, json.loads(json.dumps(manifest)))
            if faults:
                raise SweepError.joined(
                    f"{self.path}: is the folder of another sweep; this one needs its own", faults
                )
        self.shards = Shards(self.path, n_tasks(manifest))

    def _take_lock(self) -> None:
        # The system drops this lock when the process ends, whatever ends it.
        self._lock = (self.path / LOCK).open("a+b", buffering=0)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock.seek(0)
            whose = self._lock.read(20).decode(errors="replace").strip()
            raise SweepError(
                f"{self.path}: process {whose or 'of another user'} is working on it; "
                "only one process may"
            ) from None
        except OSError as error:
            raise SweepError(
                f"{self.path}: cannot be locked: {error.strerror}; a folder on another "
                "file system is needed"
            ) from error
        self._lock.truncate(0)
        self._lock.write(str(os.getpid()).encode())

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let other processes work on it."""
        if hasattr(self, "shards"):
            self.shards.close()
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def _is_ours(path: Path) -> bool:
    """Whether a sweep that was killed before its manifest was there leaves this."""
    if path.name == SHARDS and path.is_dir():
        # With something in them they are of a sweep whose manifest is lost.
        return not any(one.stat().st_size for one in path.iterdir())
    return path.name == LOCK or path.suffix == ".part"


def read_manifest(folder: Path) -> Row:
    """Read what a folder's results are results of.

    Raises
    ------
    SweepError
        If it is no run folder.
    """
    path = folder / MANIFEST
    if folder.is_dir() and not path.exists():
        raise SweepError(f"{named(folder)}: no run folder: it has no {MANIFEST}")
    text = read_text(path, "the manifest of a sweep", error=SweepError)
    try:
        found = json.loads(text)
        n_tasks(found)
    except (ValueError, TypeError, KeyError, RecursionError):
        raise SweepError(f"{path}: not written by a sweep") from None
    manifest: Row = found
    return manifest


def all_rows(manifest: Mapping[str, Any], shards: Shards) -> Iterator[Row]:
    """List the rows found so far, in the order of the results."""
    for cell in cells(manifest):
        if cell.task in shards:
            for row in shards.rows(cell.task):
                yield {**cell.head, **row}
