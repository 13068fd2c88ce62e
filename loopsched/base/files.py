"""Read files within limits; write them in full or not at all."""

from __future__ import annotations

import codecs
import io
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from loopsched.base.arguments import show
from loopsched.base.errors import InputError
from loopsched.base.units import format_capacity

MEBIBYTE = 2**20
MOST_BYTES = 256 * MEBIBYTE
# How files that gzip packed begin.
_GZIP = b"\x1f\x8b"

ESCAPED = "loopsched.escaped"
"""How what an encoding lacks is written: as in JSON, which reads it back."""

Place = str | os.PathLike[str]


def _escaped(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2)), error.end


codecs.register_error(ESCAPED, _escaped)


def named(path: Place) -> str:
    r"""Write a file's name for a message, whatever is in it.

    Examples
    --------
    >>> named("a/b.json"), named(chr(0))
    ('a/b.json', "'\\x00'")
    """
    text = os.fspath(path) if isinstance(path, (str, os.PathLike)) else ""
    return text if text.isprintable() and 0 < len(text) < 1000 else show(path)


def _kind(mode: int) -> str:
    """Say what stands where a file should."""
    return "a folder" if stat.S_ISDIR(mode) else "not a regular file"


def read_bytes(
    path: Place,
    what: str = "a file",
    *,
    most_bytes: int = MOST_BYTES,
    error: type[InputError] = InputError,
    where: str | None = None,
    hint: Callable[[], str] | None = None,
) -> bytes:
    """Read a regular file that is not empty.

    Parameters
    ----------
    path : path
    what : str
        What it should be, with its article.
    most_bytes : int, bytes
    error : class
        What is raised.
    where : str, optional
        What messages call it; by default its path.
    hint : callable, optional
        Makes what a message adds if there is no such file.

    Raises
    ------
    InputError
        If it cannot be read, is a folder, a device or a pipe, empty or too
        large.  Nothing blocks, and no more than ``most_bytes`` are held.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise error(f"{show(path)} is not a path; that of {what} is needed")
    where = named(path) if where is None else where
    try:
        # A pipe that nobody writes to would block.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode):
                raise error(f"{where}: is {_kind(found.st_mode)}; {what} is needed")
            size = found.st_size
            with open(handle, "rb", closefd=False) as file:  # it may grow meanwhile
                content = file.read(most_bytes + 1) if size <= most_bytes else b""
        finally:
            os.close(handle)
    except FileNotFoundError:
        raise error(f"{where}: no such file{hint() if hint else ''}") from None
    except InputError:
        raise
    except (OSError, ValueError) as fault:  # ValueError: a name that no file can have
        reason = getattr(fault, "strerror", None) or str(fault)
        raise error(f"{where}: cannot be read: {reason}") from None
    if max(size, len(content)) > most_bytes:
        raise error(f"{where}: is larger than {format_capacity(most_bytes)}, too large for {what}")
    if not content.strip():
        raise error(f"{where}: is empty; {what} is needed")
    return content


def read_text(
    path: Place,
    what: str = "a text file",
    *,
    most_bytes: int = MOST_BYTES,
    error: type[InputError] = InputError,
    where: str | None = None,
    hint: Callable[[], str] | None = None,
) -> str:
    """Read a file of UTF-8 text, packed by gzip or not, as `read_bytes`.

    There may be a byte order mark; the limit is that of what is unpacked, too.
    """
    content = read_bytes(path, what, most_bytes=most_bytes, error=error, where=where, hint=hint)
    where = named(path) if where is None else where
    if content.startswith(_GZIP):
        content = _unpacked(content, most_bytes, error, where)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        raise error(
            f"{where}: is not UTF-8 text: byte {fault.start} is {content[fault.start]:#04x}; "
            f"{what} is needed"
        ) from None


def _unpacked(content: bytes, most_bytes: int, error: type[InputError], where: str) -> bytes:
    """Unpack what gzip packed, no more than is allowed."""
    import gzip
    import zlib

    try:
        with gzip.open(io.BytesIO(content)) as packed:
            unpacked = packed.read(most_bytes + 1)
    except (EOFError, OSError, zlib.error) as fault:
        raise error(f"{where}: cannot be unpacked: {fault}") from None
    if len(unpacked) > most_bytes:
        raise error(f"{where}: unpacks to more than {format_capacity(most_bytes)}")
    return unpacked


@contextmanager
def writing(path: Place, error: type[InputError] = InputError) -> Iterator[None]:
    """Say what cannot be written, whatever goes wrong with it."""
    try:
        yield
    except OSError as fault:
        reason = fault.strerror or str(fault)
        raise error(f"{named(path)}: cannot be written: {reason}") from fault


def cache_folder() -> Path | None:
    """Find the user's folder for what can be made again; None where nobody is at home."""
    with suppress(RuntimeError):
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "loopsched")
    return None


def target_of(path: Place, error: type[InputError] = InputError) -> Path:
    """Find the file that a name stands for, which may be a link; it need not be there.

    Raises
    ------
    InputError
        If it is there and is no regular file, or its folder is not there.
    """
    with writing(path, error):
        target = Path(os.path.realpath(path))
        mode = target.stat().st_mode if target.exists() else stat.S_IFREG
        if not stat.S_ISREG(mode):
            raise error(f"{named(path)}: cannot be written: is {_kind(mode)}")
        if not target.parent.is_dir():
            folder = named(Path(path).parent)
            raise error(f"{named(path)}: cannot be written: no such folder '{folder}'")
    return target


def suffixed(
    path: Place, suffixes: Sequence[str], what: str, error: type[InputError] = InputError
) -> Path:
    """Check that the name of a file to write ends as what is in it does.

    Raises
    ------
    InputError
        If it does not.

    Examples
    --------
    >>> suffixed("a.txt", (".html", ".htm"), "a page")
    Traceback (most recent call last):
        ...
    loopsched.base.errors.InputError: a.txt: a page ends in .html or .htm
    """
    found = Path(path)
    if found.suffix not in suffixes:
        *others, last = suffixes
        allowed = f"{', '.join(others)} or {last}" if others else last
        raise error(f"{named(path)}: {what} ends in {allowed}")
    return found


@contextmanager
def whole_file(path: Place, error: type[InputError] = InputError) -> Iterator[Path]:
    """Give a place to write to; the file is there in full, or as it was.

    Raises
    ------
    InputError
        If it cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with whole_file(f"{folder}/a.txt") as part:
    ...         _ = part.write_text("all of it")
    ...     Path(folder, "a.txt").read_text()
    'all of it'
    """
    target = target_of(path, error)
    part = target.with_name(f"{target.name}.part")
    try:
        with writing(path, error):
            part.unlink(missing_ok=True)
            # A new file: what is written goes into no link that somebody left there.
            os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
            yield part
            with part.open("rb") as stream:
                os.fsync(stream.fileno())
            part.replace(target)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def write_text(path: Place, text: str, error: type[InputError] = InputError) -> None:
    """Write a text file in full, or leave what was there.

    Raises
    ------
    InputError
        If it cannot be written.
    """
    with whole_file(path, error) as part:
        part.write_text(text, encoding="utf-8", errors=ESCAPED)


def write_all(handle: int, data: bytes) -> None:
    """Write all of some bytes, however few the system takes at a time."""
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


class GrowingFile:
    """A file that grows by whole pieces, each on its way to the disk at once.

    The file is made at the first piece.  If one cannot be written whole, what
    there is of it is taken back.
    """

    def __init__(self, path: Place, error: type[InputError] = InputError) -> None:
        self.path, self._error = target_of(path, error), error
        self._handle: int | None = None
        self._end = 0

    def append(self, text: str) -> None:
        """Write a piece.

        Raises
        ------
        InputError
            If it cannot be written.
        """
        with writing(self.path, self._error):
            if self._handle is None:
                flags = os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC
                self._handle = os.open(self.path, flags, 0o666)
            data = text.encode(errors=ESCAPED)
            try:
                write_all(self._handle, data)
            except BaseException:
                with suppress(OSError):
                    os.ftruncate(self._handle, self._end)
                raise
            self._end += len(data)

    def close(self) -> None:
        """Close the file, if it was made."""
        if self._handle is not None:
            handle, self._handle = self._handle, None
            with writing(self.path, self._error):
                os.close(handle)
