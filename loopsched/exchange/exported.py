"""What an export makes: files, and what their form could not hold."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from loopsched.base.files import write_text, writing


@dataclass(frozen=True, slots=True)
class Exported:
    r"""Files for another tool.

    Parameters
    ----------
    files : tuple of (str, str)
        Name and text of each.
    lost : tuple of str
        What the other tool's format cannot express, or expresses differently: one sentence
        each.  Nothing is left out or changed without one.
    is_one_document : bool
        Whether the files may also be joined into one.

    Examples
    --------
    >>> made = Exported((("a.txt", "one\n"), ("b.txt", "two\n")))
    >>> made.text("b.txt"), made.names
    ('two\n', ('a.txt', 'b.txt'))
    """

    files: tuple[tuple[str, str], ...]
    lost: tuple[str, ...] = ()
    is_one_document: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the files."""
        return tuple(name for name, _ in self.files)

    def text(self, name: str | None = None) -> str:
        """Return the text of one file; without a name, of all of them, one after the other."""
        return "\n".join(text for one, text in self.files if name in (None, one))

    def write(self, folder: str | os.PathLike[str]) -> tuple[Path, ...]:
        """Write the files into a folder, which is made if it does not exist.

        Raises
        ------
        InputError
            If it cannot be written.
        """
        place = Path(folder)
        with writing(place):
            place.mkdir(parents=True, exist_ok=True)
        paths = []
        for name, text in self.files:
            paths.append(place / name)
            write_text(place / name, text)
        return tuple(paths)
