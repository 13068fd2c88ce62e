"""The exceptions that loopsched raises: one tree, each with its parts kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches


class LoopschedError(Exception):
    """Base of every error that loopsched raises on purpose."""


class InputError(LoopschedError, ValueError):
    """Base of the errors that an input file or argument causes.

    Parameters
    ----------
    message : str
        Where, what was found, what is allowed, how to fix it.
    problems : iterable of str, optional
        Every single fault found, if there are several; the message then
        holds them all, one per line.

    Attributes
    ----------
    problems : tuple of str
        The single faults; at least one.

    Examples
    --------
    >>> InputError.joined("x.json", ["layer 0: no 'op'", "layer 1: n is 0"]).problems
    ("layer 0: no 'op'", 'layer 1: n is 0')
    """

    def __init__(self, message: str, problems: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.problems: tuple[str, ...] = tuple(problems) or (message,)

    @classmethod
    def joined(cls, where: str, problems: Iterable[str]) -> InputError:
        """Build one error from all faults of one file."""
        found = tuple(problems)
        if len(found) == 1:
            return cls(f"{where}: {found[0]}", found)
        lines = "\n".join(f"  {fault}" for fault in found)
        return cls(f"{where}: {len(found)} errors\n{lines}", found)

    @classmethod
    def refuse(cls, where: str, problems: Iterable[str]) -> None:
        """Raise one error with all faults of one file, if there are any."""
        found = tuple(problems)
        if found:
            raise cls.joined(where, found)

    @classmethod
    @contextmanager
    def at(cls, where: str) -> Iterator[None]:
        """Raise input errors as this kind of error, with where they were found."""
        try:
            yield
        except InputError as error:
            raise cls.joined(where, error.problems) from None


class ProblemError(InputError):
    """A problem (iteration space and tensors) that cannot exist."""


class WorkloadError(InputError):
    """A workload file that cannot be read or is not valid."""


class ArchError(InputError):
    """An architecture file that cannot be read or is not valid."""


class ScheduleError(InputError):
    """A schedule that does not fit its problem, or cannot be parsed."""


class CapacityError(ScheduleError):
    """A schedule whose tiles do not fit the level that is to hold them."""


class ConstraintError(InputError):
    """A search constraint that names what does not exist."""


class SweepError(InputError):
    """A sweep specification that is not valid, or a run folder of another sweep."""


class ProofError(InputError):
    """A proof that does not hold, or cannot be read."""


class EmptySpaceError(LoopschedError):
    """No schedule is left; the message names the constraint that removed the last candidates."""


class MissingExtraError(LoopschedError, ImportError):
    """An optional dependency is needed and not installed."""


@contextmanager
def gathered(faults: list[str], where: str = "") -> Iterator[None]:
    """Add the faults of an input error to others, each after ``where``.

    Examples
    --------
    >>> faults = ["a is 0"]
    >>> with gathered(faults, "layer 1: "):
    ...     raise InputError("n is 0")
    >>> faults
    ['a is 0', 'layer 1: n is 0']
    """
    try:
        yield
    except InputError as error:
        faults += [f"{where}{fault}" for fault in error.problems]


def nearest(word: str, allowed: Iterable[str], label: str = "allowed", cutoff: float = 0.5) -> str:
    """Say what was meant and what is allowed, for the end of a message.

    A name within the word, or around it, may be meant, too; what is as similar as
    ``cutoff``, from 0 to 1, also.

    Examples
    --------
    >>> nearest("KK", ["N", "K", "C"])
    "did you mean 'K'? (allowed: N K C)"
    >>> nearest("zz", ["N", "K"])
    'allowed: N K'
    >>> nearest("zz", [])
    'allowed: none'
    >>> nearest("nvidia_h100", ["v100", "h100"])
    "did you mean 'h100'? (allowed: v100 h100)"
    """
    names = list(allowed)
    folded = {name.casefold(): name for name in names}
    word = word.casefold()
    close = (
        get_close_matches(word, folded, n=1, cutoff=max(cutoff, 0.85))
        or sorted((name for name in folded if len(name) > 2 and name in word), key=len)[-1:]
        or get_close_matches(word, folded, n=1, cutoff=cutoff)
        or [name for name in folded if len(word) > 2 and word in name]
    )
    listed = f"{label}: {' '.join(names) or 'none'}"
    return f"did you mean '{folded[close[0]]}'? ({listed})" if close else listed
