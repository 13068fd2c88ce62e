"""Run the command line: ``loopsched``, or ``python -m loopsched``."""

from __future__ import annotations

import signal
import sys
from contextlib import suppress
from threading import Timer, main_thread
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

INTERRUPTED = 130


def main() -> NoReturn:
    """Run the command line of this process and exit.

    An interrupt is answered from the first import to the end; once all is said, none is heard.
    """
    status = INTERRUPTED
    try:
        try:
            sys.unraisablehook = _once_more
            from loopsched import cli

            status = cli.main()
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
    except KeyboardInterrupt:  # amid imports, or while another one is answered
        with suppress(OSError, AttributeError):  # it may be closed
            sys.stderr.write("Error: interrupted\n")
    # Python ends by the signal if an interrupt broke off code that is compiled from text, as
    # dataclasses make it, even if it was answered; unless more of such code has run since.
    exec("")
    sys.exit(status)


def _once_more(found: UnraisableHookArgs) -> None:
    """Raise an interrupt again that came while an object was disposed of: there it is lost."""
    if issubclass(found.exc_type, KeyboardInterrupt):
        Timer(0.01, signal.pthread_kill, (main_thread().ident, signal.SIGINT)).start()
    else:
        sys.__unraisablehook__(found)


if __name__ == "__main__":
    main()
