"""Where a kernel's threads read a tensor from, and the text that says so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from loopsched.base.arguments import is_count, near, show
from loopsched.base.errors import InputError
from loopsched.nests.nest import Schedule

Space = Literal["global", "l2", "readonly", "shared", "constant"]
Via = Literal["global", "l2", "readonly"]
Loaders = Literal["rows", "linear"]
SPACES: tuple[Space, ...] = get_args(Space)


@dataclass(frozen=True, slots=True)
class Read:
    """Where computing reads one tensor from.

    Parameters
    ----------
    space : {'global', 'l2', 'readonly', 'shared', 'constant'}
        Global memory through L1, past L1, or by the read-only path; shared
        memory, filled by the block together; constant memory.
    at : int or None
        Shared memory: position in the nest before which the tile is filled, at
        every iteration of the time loops outside.  None: once a block.
    held : int or None
        Position in the nest from which a thread keeps what it loads in
        registers: of everything that the loops from there inward touch, each
        element is loaded once (a sliding window, a register tile).  None: an
        element is loaded whenever the innermost loop that moves along the
        tensor comes to it.
    pitch : int or None, elements
        From one row of the tile to the next, where it is padded.
    loaders : {'rows', 'linear'}
        How the block shares the filling: rows by thread_y and columns by
        thread_x, with strides of the block; or elements by the thread's number.
    via : {'global', 'l2', 'readonly'}
        How the filling reads global memory.
    zero_fill : bool
        Whether places of the tile outside the tensor are set to zero.
    vector : int
        Elements that a thread loads at once while it computes, along the
        innermost loop that moves along the tensor.

    Examples
    --------
    >>> Read("shared", at=3, pitch=33).position
    3
    """

    space: Space = "global"
    at: int | None = None
    held: int | None = None
    pitch: int | None = None
    loaders: Loaders = "rows"
    via: Via = "global"
    zero_fill: bool = True
    vector: int = 1

    def __post_init__(self) -> None:
        InputError.refuse("read", _faults(self))

    @property
    def position(self) -> int:
        """Position before which the tile is filled; 0: once a block."""
        return self.at or 0


def _faults(read: Read) -> Iterator[str]:
    for what, value, allowed in (
        ("space", read.space, SPACES),
        ("by", read.loaders, get_args(Loaders)),
        ("via", read.via, get_args(Via)),
    ):
        if value not in allowed:
            yield f"{what} is {show(value)}; {near(value, allowed)}"
    if read.space != "shared":
        for name, given in (("at", read.at), ("pitch", read.pitch)):
            if given is not None:
                yield f"'{name}' is for shared memory; {read.space} has no tile"
    if read.vector not in (1, 2, 4, 8, 16):
        yield f"vector is {show(read.vector)}; allowed: 1 2 4 8 16"
    if read.vector != 1 and read.held is not None:
        yield "what is held in registers is loaded element by element: no 'vector'"
    if read.pitch is not None and not is_count(read.pitch):
        yield f"pitch is {show(read.pitch)}; a whole number >= 1 is needed"


_OPTIONS = ("held", "vector", "pitch", "by", "via", "zero")
_WORD = re.compile(r"(\w+)(?:@(\w+))?((?:,\w+=\w+)*)")


def read_from(text: str, schedule: Schedule) -> Read:
    """Read where a tensor is read from.

    Parameters
    ----------
    text : str
        ``global``, ``l2``, ``readonly``, ``constant``, or ``shared@PLACE``,
        followed by options: ``held=PLACE``, ``vector=2``, ``pitch=33``,
        ``by=linear``, ``via=l2``, ``zero=no``.  A place is ``block`` (once a block), a
        dimension (inside the outermost of its time loops) or the number of
        the loop before which it is, counted from 0.
    schedule : Schedule

    Raises
    ------
    InputError
        If it cannot be read.

    Examples
    --------
    >>> from loopsched.nests.nest import Loop
    >>> nest = Schedule((Loop("M", 8, "block_x"), Loop("K", 64), Loop("K", 8)))
    >>> read = read_from("shared@K,pitch=9", nest)
    >>> read.space, read.at, read.pitch
    ('shared', 2, 9)
    """
    found = _WORD.fullmatch(text.strip()) if isinstance(text, str) else None
    if found is None:
        raise InputError(
            f"{show(text)} is not a place such as 'global', 'constant' or 'shared@K,pitch=33'"
        )
    space, place, rest = found.groups()
    if place is not None and space != "shared":
        raise InputError(f"{show(text)}: only shared memory has a place where it is filled")
    options: dict[str, str] = {}
    for part in filter(None, rest.split(",")):
        key, _, value = part.partition("=")
        if key not in _OPTIONS:
            raise InputError(f"{show(text)}: no option {show(key)}; {near(key, _OPTIONS)}")
        options[key] = value
    zero = options.get("zero", "yes")
    for key in ("pitch", "vector"):
        if key in options and not re.fullmatch(r"[0-9]{1,9}", options[key]):
            raise InputError(f"{show(text)}: {key} is {show(options[key])}; elements are needed")
    if zero not in ("yes", "no"):
        raise InputError(f"{show(text)}: zero is {show(zero)}; allowed: yes no")
    return Read(
        space,  # type: ignore[arg-type]  # checked there
        at=None if place is None else _position(place, schedule),
        held=_position(options["held"], schedule) if "held" in options else None,
        pitch=int(options["pitch"]) if "pitch" in options else None,
        loaders=options.get("by", "rows"),  # type: ignore[arg-type]
        via=options.get("via", "global"),  # type: ignore[arg-type]
        zero_fill=zero == "yes",
        vector=int(options.get("vector", "1")),
    )


def _position(place: str, schedule: Schedule) -> int:
    if place == "block":
        return 0
    if re.fullmatch(r"[0-9]{1,4}", place):
        if int(place) > len(schedule.loops):
            raise InputError(f"place {place}: loops are numbered 0 to {len(schedule.loops) - 1}")
        return int(place)
    for position, loop in enumerate(schedule.loops):
        if loop.unit is None and loop.dim.casefold() == place.casefold():
            return position + 1
    dims = [loop.dim for loop in schedule.loops if loop.unit is None]
    raise InputError(
        f"no time loop over {show(place)}; {near(place, ['block', *dict.fromkeys(dims)])}"
    )
