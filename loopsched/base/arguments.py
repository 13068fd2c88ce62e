"""Argument checks that collect every fault instead of stopping at the first."""

from __future__ import annotations

import operator
import re
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeGuard, TypeVar

from loopsched.base.errors import InputError, nearest

# Shared and padded axes are counted position by position; others may be as long as they like.
MAX_SPAN = 2**22
# Far above every real size, far enough below 2**63 that sums of two stay exact in int64.
MAX_COUNT = 2**60
MAX_NAME = 200

T = TypeVar("T")

DATA_TYPE_BYTES: Mapping[str, int] = {
    "fp64": 8,
    "fp32": 4,
    "tf32": 4,
    "fp16": 2,
    "bf16": 2,
    "fp8": 1,
    "int32": 4,
    "int16": 2,
    "int8": 1,
}

_SHORT = reprlib.Repr()
_SHORT.maxlevel, _SHORT.maxstring, _SHORT.maxother, _SHORT.maxlong = 2, 60, 60, 40


def show(value: object) -> str:
    """Write a value for a message: short whatever it is, and never failing.

    Examples
    --------
    >>> show("x"), show(float("nan")), show(10**5000)
    ("'x'", 'nan', 'a number of 16610 bits')
    """
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 256:
        return f"a number of {value.bit_length()} bits"
    try:
        return _SHORT.repr(value).replace("\n", " ")
    except Exception:  # a foreign object's own repr may raise anything
        return f"a {type(value).__name__}"


def near(value: object, allowed: Iterable[str], cutoff: float = 0.5) -> str:
    """Say what was meant and what is allowed, whatever was given.

    Examples
    --------
    >>> near("sam", ["same", "valid"]), near(3, ["same", "valid"])
    ("did you mean 'same'? (allowed: same valid)", 'allowed: same valid')
    """
    names = list(allowed)
    # Comparing words takes the square of their length.
    return nearest(value[:80] if isinstance(value, str) else "", names, cutoff=cutoff)


def pairs(
    texts: Iterable[str], where: str, form: str, error: type[InputError] = InputError
) -> dict[str, str]:
    """Read texts such as ``NAME=VALUE``, each name once.

    Examples
    --------
    >>> pairs(["m=3", "n = 4"], "field", "NAME=VALUE")
    {'m': '3', 'n': '4'}
    """
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (name and equals and value):
            raise error(f"{where} '{text}' is not {form}")
        if name in found:
            raise error(f"{where} '{name}' is given twice")
        found[name] = value
    return found


def option_value(text: str) -> int | str | bool:
    """Read the value of an option: a whole number, true or false, or a word.

    Examples
    --------
    >>> option_value("64"), option_value("true"), option_value("apart")
    (64, True, 'apart')
    """
    if text in ("true", "false"):
        return text == "true"
    # Python refuses to convert thousands of digits; who asks for a number refuses the text.
    return int(text) if re.fullmatch(r"[+-]?[0-9]{1,100}", text) else text


def is_count(value: object, least: int = 1, most: float = float("inf")) -> TypeGuard[int]:
    """Whether a value is a whole number within limits.

    Examples
    --------
    >>> is_count(3), is_count(0), is_count(True), is_count(9, most=8)
    (True, False, False, False)
    """
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def is_text(value: object) -> bool:
    r"""Whether a value can serve as a name: one short, printable line.

    Examples
    --------
    >>> is_text("conv 2"), is_text(""), is_text("a\nb")
    (True, False, False)
    """
    return (
        isinstance(value, str)
        and bool(value.strip())
        and len(value) <= MAX_NAME
        and value.isprintable()
    )


class Checker:
    """Collects the faults of one call's arguments.

    Each check returns a usable value; a refused one yields a harmless
    stand-in, so that the checks after it still run.

    Parameters
    ----------
    where : str
        What is being built, for the head of the message.
    error : type of InputError
        What `finish` raises.

    Examples
    --------
    >>> from loopsched.base.errors import ProblemError
    >>> check = Checker("gemm", ProblemError)
    >>> check.count("m", 3), check.count("n", 0), check.count("k", 1.5)
    (3, 1, 1)
    >>> for fault in check.faults:
    ...     print(fault)
    n is 0; a whole number >= 1 is needed
    k is 1.5; a whole number >= 1 is needed
    """

    def __init__(self, where: str, error: type[InputError]) -> None:
        self.where = where
        self.error = error
        self.faults: list[str] = []

    def fault(self, text: str) -> None:
        """Add one fault."""
        self.faults.append(text)

    def finish(self) -> None:
        """Raise the error with every fault found, if there is one."""
        self.error.refuse(self.where, self.faults)

    def count(self, name: str, value: object, least: int = 1) -> int:
        """Check a whole number, ``least`` or more."""
        try:
            number = least - 1 if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
        except TypeError:
            number = least - 1
        if number < least:
            self.fault(f"{name} is {show(value)}; a whole number >= {least} is needed")
            return least
        if number >= MAX_COUNT:
            self.fault(f"{name} is {show(value)}; less than 2**60 is needed")
            return least
        return number

    def pair(self, name: str, value: object) -> tuple[int, int]:
        """Check a whole number, or one for the height and one for the width."""
        if isinstance(value, (tuple, list)):
            if len(value) != 2:
                self.fault(f"{name} is {show(value)}; one number or (height, width) is needed")
                return 1, 1
            return self.count(f"{name}[0]", value[0]), self.count(f"{name}[1]", value[1])
        one = self.count(name, value)
        return one, one

    def flag(self, name: str, value: object) -> bool:
        """Check a truth value; 0 and 1 pass as such."""
        if isinstance(value, bool) or (isinstance(value, int) and value in (0, 1)):
            return bool(value)
        self.fault(f"{name} is {show(value)}; true or false is needed")
        return False

    def choice(self, name: str, value: object, allowed: Sequence[str]) -> str:
        """Check one of a few words."""
        if isinstance(value, str) and value in allowed:
            return value
        self.fault(f"{name} is {show(value)}; {near(value, allowed)}")
        return allowed[0]

    def each(self, name: str, value: object, kind: type[T], needed: str) -> list[T]:
        """Check a sequence of objects of one type."""
        if not isinstance(value, Iterable) or isinstance(value, (str, bytes, Mapping)):
            self.fault(f"{name} is {show(value)}; a sequence is needed, {needed} each")
            return []
        given = list(value)
        for at, one in enumerate(given):
            if not isinstance(one, kind):
                self.fault(f"{name}[{at}] is {show(one)}; {needed} is needed")
                return []
        return given

    def name(self, value: object, default: str) -> str:
        """Check a problem's name; None stands for the default."""
        if value is None:
            return default
        if is_text(value):
            return str(value)
        self.fault(
            f"name is {show(value)}; one printable line of 1 to {MAX_NAME} characters is needed"
        )
        return default

    def sizes(self, value: object, field: str = "sizes") -> dict[str, int]:
        """Check a mapping of dimension names to sizes."""
        if not isinstance(value, Mapping):
            self.fault(f"{field} is {show(value)}; a mapping of dimensions to sizes is needed")
            return {}
        checked = {}
        for dim, size in value.items():
            if isinstance(dim, str) and dim.isidentifier() and is_text(dim):
                checked[dim] = self.count(f"{field}[{show(dim)}]", size)
            else:
                self.fault(
                    f"{field}: dimension {show(dim)} is not a plain word (letters, digits, _)"
                )
        return checked

    def element_bytes(self, value: object, tensors: Sequence[str]) -> dict[str, int]:
        """Check element sizes: one for all tensors, or one for some of them."""
        if not isinstance(value, Mapping):
            return dict.fromkeys(tensors, self._one_element_bytes("element_bytes", value))
        found = dict.fromkeys(tensors, DATA_TYPE_BYTES["fp32"])
        for tensor, one in value.items():
            if tensor in found:
                found[tensor] = self._one_element_bytes(f"element_bytes[{show(tensor)}]", one)
            else:
                self.fault(f"element_bytes: no tensor {show(tensor)}; {near(tensor, tensors)}")
        return found

    def _one_element_bytes(self, name: str, value: object) -> int:
        if isinstance(value, str):
            if value in DATA_TYPE_BYTES:
                return DATA_TYPE_BYTES[value]
            self.fault(
                f"{name} is {show(value)}; a number of bytes or a type is needed; "
                f"{near(value, DATA_TYPE_BYTES)}"
            )
            return 1
        size = self.count(name, value)
        if size > 1024:
            self.fault(f"{name} is {show(value)}; at most 1024 is allowed")
            return 1
        return size
