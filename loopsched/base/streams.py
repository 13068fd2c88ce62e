"""Standard streams that may be closed, full, or unable to write some letters."""

from __future__ import annotations

import errno
import io
import os
import sys

from loopsched.base.files import ESCAPED

UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG, errno.EBADF)
"""Errors of a stream that can be written to no more."""


def prepare() -> None:
    """Open what is closed, to nowhere; escape what an encoding lacks."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            # The lowest free number: that of the stream, so that no file takes it.
            nowhere = os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8")
            setattr(sys, name, nowhere)
        elif mode == "w" and isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=ESCAPED)


def discard() -> None:
    """Let nothing more go to standard output: what is left to be flushed cannot be."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
