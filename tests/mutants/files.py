"""Mutants of reading and writing files."""

from __future__ import annotations

from .mutant import In

_files = In("base/files.py", "test_files.py")
_files.broken(
    "pipe-blocks",
    "a pipe that nobody writes to is waited for",
    "os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC",
    "os.O_RDONLY | os.O_CLOEXEC",
)
_files.broken(
    "device-read",
    "devices are read like files",
    "if not stat.S_ISREG(found.st_mode):",
    "if stat.S_ISDIR(found.st_mode):",
)
_files.broken(
    "no-limit-of-size",
    "files of any size are read",
    "if max(size, len(content)) > most_bytes:",
    "if most_bytes < 0:",
)
_files.broken(
    "part-follows-links",
    "what is written goes where a link in the place of the part leads",
    "            part.unlink(missing_ok=True)\n            # A new file: what is written goes into "
    "no link that somebody left there.\n            os.close(os.open(part, "
    "os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))\n",
    "",
)
_files.broken(
    "half-a-piece-stays",
    "what a full disk took of a piece stays in the file",
    "os.ftruncate(self._handle, self._end)",
    "pass",
)
_files.broken(
    "device-replaced",
    "a device is replaced by a file",
    "if not stat.S_ISREG(mode):",
    "if stat.S_ISDIR(mode):",
)
_files.broken(
    "link-replaced",
    "a link is replaced by the file",
    "target = Path(os.path.realpath(path))",
    "target = Path(os.path.abspath(path))",
)

FILES = _files.mutants
