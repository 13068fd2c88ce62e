"""Quantities with units: "6 MiB", "652.8 GB/s", "1.2 GHz", "5 pJ/B", "2 us".

Decimal prefixes (kB, MB, GB) are powers of 1,000 and binary ones (KiB, MiB,
GiB) powers of 1,024; "KB", which people use for both, is refused.  Parsing is
exact: bytes come out as whole numbers, everything else as the nearest float.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Literal

from loopsched.base.arguments import show
from loopsched.base.errors import InputError, nearest

Kind = Literal[
    "bytes", "bandwidth", "bandwidth_per_cycle", "frequency", "time", "cycles", "macs_per_cycle",
    "flop_rate", "energy_per_byte", "energy_per_mac", "power",
]  # fmt: skip

# No machine has more; beyond it compiled code could not count.
MAX_BYTES = 2**62
_LONGEST = 80
_LARGEST_EXPONENT = 30

_DECIMAL = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_SMALL = {"": Fraction(1), "m": Fraction(1, 10**3), "u": Fraction(1, 10**6)}
_SMALL |= {"n": Fraction(1, 10**9), "p": Fraction(1, 10**12)}


def _scaled(prefixes: Mapping[str, int | Fraction], unit: str) -> dict[str, Fraction]:
    return {prefix + unit: Fraction(factor) for prefix, factor in prefixes.items()}


# The base unit of a kind stands first.
_UNITS: dict[str, dict[str, Fraction]] = {
    "bytes": _scaled(_DECIMAL | _BINARY, "B"),
    "bandwidth": _scaled(_DECIMAL | _BINARY, "B/s"),
    "bandwidth_per_cycle": {"B/cycle": Fraction(1)},
    "frequency": _scaled(_DECIMAL, "Hz"),
    "time": _scaled(_SMALL, "s"),
    "cycles": {"cycles": Fraction(1), "cycle": Fraction(1)},
    "macs_per_cycle": {"MAC/cycle": Fraction(1)},
    "flop_rate": _scaled(_DECIMAL, "FLOP/s"),
    "energy_per_byte": {"pJ/B": Fraction(1), "nJ/B": Fraction(1000)},
    "energy_per_mac": {"pJ/MAC": Fraction(1), "nJ/MAC": Fraction(1000)},
    "power": {"W": Fraction(1)},
}
_ADVICE = {
    "KB": "'KB' is used for both 1,000 and 1,024 bytes: write kB or KiB",
    "KB/s": "'KB/s' is used for both 1,000 and 1,024 bytes: write kB/s or KiB/s",
}
_NUMBER = re.compile(
    r"([+-]?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)?(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?)[ \t]*(.*)"
)


def parse_quantity(text: object, *kinds: Kind) -> tuple[Fraction, Kind]:
    """Parse a positive number with its unit, exactly.

    Parameters
    ----------
    text : str
        Number, optional space, unit.  Thousands may be set off by commas.
    *kinds : str
        What it may measure: ``bytes``, ``bandwidth``, ``bandwidth_per_cycle``,
        ``frequency``, ``time``, ``cycles``, ``macs_per_cycle``, ``flop_rate``,
        ``energy_per_byte``, ``energy_per_mac``.

    Returns
    -------
    (Fraction, str)
        Value in the base unit of its kind, and which kind it was.

    Raises
    ------
    InputError
        If it is not text, not a number, not positive, has no unit or an
        unknown one; the message names the units allowed and the nearest.

    Examples
    --------
    >>> parse_quantity("1.2 GHz", "frequency")
    (Fraction(1200000000, 1), 'frequency')
    """
    if not isinstance(text, str):
        raise InputError(f"{show(text)} has no unit; write text such as {_example(kinds)}")
    if len(text) > _LONGEST:
        raise InputError(f"{show(text)} is too long for a number with a unit")
    value, unit = _split(text, kinds)
    for kind in kinds:
        factor = _UNITS[kind].get(unit)
        if factor is not None:
            return _checked(value * factor, text, kind), kind
    if unit in _ADVICE:
        raise InputError(f"{show(text)}: {_ADVICE[unit]}")
    hint = nearest(unit, _allowed(kinds), cutoff=0.7)
    raise InputError(f"{show(text)}: unknown unit '{unit}'; {hint}")


def base_unit(kind: Kind) -> str:
    """Name the unit that numbers of a kind are kept in.

    Examples
    --------
    >>> base_unit("frequency"), base_unit("energy_per_mac")
    ('Hz', 'pJ/MAC')
    """
    return next(iter(_UNITS[kind]))


def exact(value: float, kind: Kind) -> str:
    """Write a number of a base unit so that, read again, it is the same.

    Examples
    --------
    >>> exact(4718592, "bytes"), exact(652.8e9, "bandwidth"), exact(4, "cycles")
    ('4.5 MiB', '652.8 GB/s', '4 cycles')
    >>> exact(4150000000.0000005, "frequency")
    '4150000000.0000005 Hz'
    """
    unit = base_unit(kind)
    if kind == "bytes":
        return format_capacity(int(value))
    if value >= 1 and f"k{unit}" in _UNITS[kind]:
        text = format_decimal(value, unit, 15)
        if float(parse_quantity(text, kind)[0]) == value:
            return text
    return f"{value!r} {unit}"


def pattern(*kinds: Kind) -> str:
    """Write a regular expression for a number with one of the units, for schemas.

    Examples
    --------
    >>> import re
    >>> bool(re.search(pattern("frequency"), "1.2 GHz")), bool(re.search(pattern("time"), "1"))
    (True, False)
    """
    units = "|".join(re.escape(unit) for unit in _allowed(kinds))
    return rf"^[0-9.,]+([eE][+-]?[0-9]+)?[ \t]*({units})$"


def parse_bytes(text: object) -> int:
    """Parse a number of bytes, which must come out whole.

    Examples
    --------
    >>> parse_bytes("6 MiB"), parse_bytes("60 MB"), parse_bytes("4,718,592 B")
    (6291456, 60000000, 4718592)
    """
    return int(parse_quantity(text, "bytes")[0])


def parse_bandwidth(text: object) -> float:
    """Parse a bandwidth into bytes per second.

    Examples
    --------
    >>> parse_bandwidth("652.8 GB/s"), parse_bandwidth("200 GiB/s")
    (652800000000.0, 214748364800.0)
    """
    return float(parse_quantity(text, "bandwidth")[0])


def parse_frequency(text: object) -> float:
    """Parse a clock into hertz.

    Examples
    --------
    >>> parse_frequency("1455 MHz")
    1455000000.0
    """
    return float(parse_quantity(text, "frequency")[0])


def format_capacity(size_bytes: int) -> str:
    """Write a capacity with a binary prefix where that is exact, else in bytes.

    Examples
    --------
    >>> format_capacity(98304), format_capacity(2359296), format_capacity(1001)
    ('96 KiB', '2.25 MiB', '1,001 B')
    """
    for prefix in reversed(_BINARY):
        thousandths, rest = divmod(size_bytes * 1000, _BINARY[prefix])
        if size_bytes >= _BINARY[prefix] and rest == 0:
            return f"{_trim(thousandths / 1000)} {prefix}B"
    return f"{size_bytes:,} B"


def format_decimal(value: float, unit: str, digits: int = 4) -> str:
    """Write a quantity with a decimal prefix, rounded, without zeros at the end.

    Examples
    --------
    >>> format_decimal(1073912384, "B"), format_decimal(652.8e9, "B/s")
    ('1.074 GB', '652.8 GB/s')
    """
    for prefix in reversed(_DECIMAL):
        scaled = _rounded(value / _DECIMAL[prefix], digits)
        if scaled >= 1:
            return f"{_trim(scaled)} {prefix}{unit}"
    return f"{_trim(_rounded(value, digits))} {unit}"


def _rounded(value: float, digits: int) -> float:
    return float(f"{value:.{digits}g}")


def scaled(value: float | None, unit: str = "") -> str:
    """Write a number with four digits, and a decimal prefix if it has a unit.

    Parameters
    ----------
    value : float or None
        None and NaN are written as ``-``.
    unit : str
        ``B``, ``s``, ``B/s``, ``FLOP/s``, ``MAC``, ``J`` or nothing for a count.

    Examples
    --------
    >>> scaled(653705216, "B"), scaled(0.00123456, "s"), scaled(0, "B/s")
    ('653.7 MB', '1.235 ms', '0 B/s')
    >>> scaled(12), scaled(24731), scaled(1.5), scaled(25.574), scaled(1057.3)
    ('12', '24,731', '1.500', '25.57', '1,057')
    >>> scaled(14 * 10**14), scaled(1.5e17), scaled(None, "J")
    ('1.400e+15', '1.500e+17', '-')
    """
    if value is None or math.isnan(value):
        return "-"
    if value == 0 or math.isinf(value):
        return f"{value:.4g} {unit}".rstrip()
    return _prefixed(value, unit) if unit else _bare(value)


def _bare(value: float) -> str:
    if isinstance(value, int) and abs(value) < 10**6:
        return f"{value:,}"
    rounded = float(f"{value:.4g}")
    if not 1e-3 <= abs(rounded) < 1e6:
        return f"{value:.3e}"
    return _in_four(rounded)


def _in_four(number: float) -> str:
    decimals = max(0, 3 - math.floor(math.log10(abs(number))))
    return f"{number:,.{decimals}f}"


def amount(value: float | None, unit: str) -> str:
    """Write a number as `scaled` does, for pages and plots: microseconds with a Greek letter.

    Tables write ``us``, as not every terminal and encoding has the letter.

    Examples
    --------
    >>> amount(6.453e-5, "s"), amount(653705216, "B")
    ('64.53 µs', '653.7 MB')
    """
    return scaled(value, unit).replace(" u", " µ")


_PREFIXES = {-12: "p", -9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P"}


def _prefixed(value: float, unit: str) -> str:
    lowest = -12 if unit in ("s", "J", "J s") else 0
    rounded = float(f"{value:.4g}")
    power = 3 * math.floor(math.log10(abs(rounded)) / 3)
    power = max(lowest, min(power, 0 if unit == "s" else 15))  # no kiloseconds
    # Four digits always, so that a column of numbers lines up.
    number = rounded / 10.0**power
    if not power and isinstance(value, int):
        return f"{value:,} {unit}"
    text = _in_four(number) if abs(number) >= 1 else f"{number:.3f}"
    return f"{text} {_PREFIXES[power]}{unit}"


def percent(share: float | None) -> str:
    """Write a share as a percentage with one decimal.

    Examples
    --------
    >>> percent(0.12345), percent(144.2), percent(None), percent(float("inf"))
    ('12.3 %', '14,420.0 %', '-', '-')
    """
    return "-" if share is None or not math.isfinite(share) else f"{100 * share:,.1f} %"


def signed_percent(share: float | None) -> str:
    """Write a relative difference as a percentage with its sign and one decimal.

    Examples
    --------
    >>> signed_percent(0.0739), signed_percent(-12.5), signed_percent(-1e-5), signed_percent(None)
    ('+7.4 %', '-1,250.0 %', '0.0 %', '-')
    """
    if share is None or not math.isfinite(share):
        return "-"
    rounded = round(100 * share, 1)
    return f"{rounded:+,.1f} %" if rounded else "0.0 %"


def count(n: int, noun: str) -> str:
    """Write how many there are of something.

    Examples
    --------
    >>> count(1, "layer"), count(1057, "layer")
    ('1 layer', '1,057 layers')
    """
    return f"{n:,} {noun}{'s' * (n != 1)}"


def excess(share: float) -> str:
    """Write how far a value is above a bound: 0.0 % only if it meets the bound.

    Examples
    --------
    >>> excess(0.0), excess(2.4e-6), excess(0.006)
    ('0.0 %', '<0.1 %', '0.6 %')
    """
    return "<0.1 %" if 0 < share < 5e-4 else percent(share)


def holding(level: str) -> str:
    """Begin to say what a level holds.

    Examples
    --------
    >>> holding("L2"), holding("registers")
    ('L2 holds', 'registers hold')
    """
    return f"{level} {'hold' if level.endswith('s') else 'holds'}"


def binary(size_bytes: int) -> str:
    """Write a working set in the units of capacities, with four digits.

    Examples
    --------
    >>> binary(38912), binary(4718592), binary(1023970), binary(12)
    ('38.00 KiB', '4.500 MiB', '1000 KiB', '12 B')
    >>> binary(1048500), binary(1048576)  # never 1024 of a unit
    ('1.000 MiB', '1.000 MiB')
    """
    number, unit = float(size_bytes), "B"
    for larger in ("KiB", "MiB", "GiB"):
        if round(number) < 1024:
            break
        number, unit = max(number / 1024, 1.0), larger
    if unit == "B":
        return f"{size_bytes} B"
    return f"{number:#.4g} {unit}" if number < 999.95 else f"{number:.0f} {unit}"


def _split(text: str, kinds: tuple[Kind, ...]) -> tuple[Fraction, str]:
    match = _NUMBER.fullmatch(text.strip())
    number, unit = match.groups() if match else ("", "")
    if not any(character.isdigit() for character in number.lower().partition("e")[0]):
        raise InputError(f"{show(text)} is not a number with a unit, such as {_example(kinds)}")
    if not unit:
        raise InputError(f"{show(text)} has no unit; {nearest('', _allowed(kinds))}")
    exponent = re.search(r"[eE]([+-]?[0-9]+)$", number)
    if exponent and abs(int(exponent[1])) > _LARGEST_EXPONENT:
        raise InputError(f"{show(text)} is out of range")
    return Fraction(number.replace(",", "")), unit.strip()


def _checked(value: Fraction, text: str, kind: Kind) -> Fraction:
    if value <= 0:
        raise InputError(f"{show(text)} must be above zero")
    if kind == "bytes":
        if value.denominator != 1:
            raise InputError(f"{show(text)} is not a whole number of bytes")
        if value > MAX_BYTES:
            raise InputError(f"{show(text)} is more than 2**62 bytes")
    return value


def _allowed(kinds: tuple[Kind, ...]) -> list[str]:
    return [unit for kind in kinds for unit in _UNITS[kind]]


_EXAMPLES = {
    "bytes": "96 KiB",
    "bandwidth": "652.8 GB/s",
    "bandwidth_per_cycle": "1536 B/cycle",
    "frequency": "1.2 GHz",
    "time": "2 us",
    "cycles": "193 cycles",
    "macs_per_cycle": "64 MAC/cycle",
    "flop_rate": "18.7 TFLOP/s",
    "energy_per_byte": "5 pJ/B",
    "energy_per_mac": "1.5 pJ/MAC",
    "power": "700 W",
}


def _example(kinds: tuple[Kind, ...]) -> str:
    return " or ".join(f"'{_EXAMPLES[kind]}'" for kind in kinds)


def _trim(value: float) -> str:
    return f"{value:,.10f}".rstrip("0").rstrip(".")
