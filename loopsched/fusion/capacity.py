"""The room on chip that is shared by layers."""

from __future__ import annotations

from loopsched.base.arguments import Checker
from loopsched.base.errors import ArchError, ScheduleError
from loopsched.machines.arch import Arch


def capacity_of(capacity_bytes: int | None, arch: Arch | None) -> int:
    """Check a capacity; without one, take the machine's level next to its memory.

    Raises
    ------
    ScheduleError
        If neither is given, or the capacity cannot be.
    ArchError
        If the machine has no such level.

    Examples
    --------
    >>> from loopsched import buffer_arch
    >>> capacity_of(None, buffer_arch(capacity_bytes=4096)), capacity_of(99, None)
    (4096, 99)
    """
    if capacity_bytes is None:
        if arch is None:
            raise ScheduleError("neither capacity_bytes nor arch is given; one is needed")
        usable = arch.caches[0].usable_bytes if arch.caches else None
        if usable is None:
            raise ArchError(f"'{arch.name}' has no level with a capacity next to its memory")
        return usable
    check = Checker("capacity", ScheduleError)
    found = check.count("capacity_bytes", capacity_bytes)
    check.finish()
    return found
