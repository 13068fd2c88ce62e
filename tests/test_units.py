"""Quantities with units: exact, never mixed, and with helpful refusals."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopsched.base import units
from loopsched.base.errors import InputError

KINDS = tuple(units._UNITS)


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("6 MiB", 6 * 1024 * 1024),
        ("6MiB", 6 * 1024 * 1024),
        ("60 MB", 60_000_000),
        ("4,718,592 B", 4_718_592),
        ("96 KiB", 98_304),
        ("1.5 kB", 1_500),
        ("4.5e0 MiB", 4_718_592),
        ("0.1 kB", 100),
        ("4 TiB", 2**42),
    ],
)
def test_bytes(text: str, size_bytes: int) -> None:
    found = units.parse_bytes(text)
    assert found == size_bytes
    assert isinstance(found, int)


def test_other_quantities() -> None:
    assert units.parse_bandwidth("652.8 GB/s") == 652_800_000_000.0
    assert units.parse_bandwidth("630 GiB/s") == 676_457_349_120.0
    assert units.parse_frequency("1.2 GHz") == 1.2e9
    assert units.parse_quantity("2 us", "time")[0] == Fraction(2, 10**6)
    assert units.parse_quantity("5 pJ/B", "energy_per_byte")[0] == 5
    assert units.parse_quantity("18.7 TFLOP/s", "flop_rate")[0] == 18_700_000_000_000
    assert units.parse_quantity("64 B/cycle", "bandwidth", "bandwidth_per_cycle") == (
        64,
        "bandwidth_per_cycle",
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("6", "no unit"),
        ("6 KB", "write kB or KiB"),
        ("6 mib", "did you mean 'MiB'"),
        ("6 Mb", "did you mean 'MB'"),
        ("6 GB/s", "unknown unit"),
        ("1XB", "unknown unit 'XB'; allowed: B"),
        ("0 B", "above zero"),
        ("-3 MiB", "above zero"),
        ("0.3 B", "whole number of bytes"),
        ("1.0001 kB", "whole number of bytes"),
        ("5 TiB TiB", "unknown unit"),
        ("inf B", "not a number"),
        ("nan B", "not a number"),
        ("e5 B", "not a number"),
        (". B", "not a number"),
        ("", "not a number"),
        ("1e99999999999 B", "out of range"),
        ("1e31 B", "out of range"),
        ("1e-31 B", "out of range"),
        ("1e25 B", "more than 2"),
        ("9" * 200 + " B", "too long"),
        ("1,00 B", "unknown unit"),
        ("٣ B", "not a number"),
    ],
)
def test_refusals_of_bytes(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        units.parse_bytes(text)


@pytest.mark.parametrize("value", [6, 6.5, None, True, [], {}, b"6 B"])
def test_numbers_without_units_are_refused(value: object) -> None:
    with pytest.raises(InputError, match="has no unit; write text such as '96 KiB'"):
        units.parse_bytes(value)


@given(
    st.integers(1, 10**9),
    st.sampled_from([("B", 1), ("kB", 10**3), ("KiB", 2**10), ("MB", 10**6), ("MiB", 2**20)]),
)
def test_whole_numbers_are_exact(number: int, unit: tuple[str, int]) -> None:
    assert units.parse_bytes(f"{number} {unit[0]}") == number * unit[1]


@given(st.integers(1, 2**60))
def test_capacity_text_means_the_same_bytes(size_bytes: int) -> None:
    assert units.parse_bytes(units.format_capacity(size_bytes)) == size_bytes


@given(st.sampled_from(KINDS), st.integers(1, 2**60), st.floats(1e-12, 1e18))
def test_exact_text_means_the_same_number(kind: units.Kind, size: int, rate: float) -> None:
    value = size if kind == "bytes" else rate
    read = units.parse_quantity(units.exact(value, kind), kind)[0]
    assert (read if kind == "bytes" else float(read)) == value


@given(st.floats(1e-3, 1e18))
def test_rounded_text_is_near(rate: float) -> None:
    text = units.format_decimal(rate, "B/s", 6)
    assert units.parse_bandwidth(text) == pytest.approx(rate, rel=1e-5)


@given(st.text(max_size=30), st.sampled_from(KINDS))
def test_any_text_is_parsed_or_refused(text: str, kind: units.Kind) -> None:
    try:
        value, found = units.parse_quantity(text, kind)
    except InputError:
        return
    assert found == kind
    assert value > 0


@given(
    st.from_regex(r"\A[0-9]{1,3}(\.[0-9]{1,3})?(e[+-]?[0-9])?\Z"),
    st.sampled_from(KINDS),
    st.data(),
)
def test_number_and_unit_multiply(number: str, kind: units.Kind, data: st.DataObject) -> None:
    unit, factor = data.draw(st.sampled_from(sorted(units._UNITS[kind].items())))
    expected = Fraction(number) * factor
    if expected <= 0 or (kind == "bytes" and (expected.denominator != 1 or expected > 2**62)):
        with pytest.raises(InputError):
            units.parse_quantity(f"{number} {unit}", kind)
    else:
        assert units.parse_quantity(f"{number} {unit}", kind) == (expected, kind)


def test_prefix_factors_are_those_of_the_standards() -> None:
    assert units._UNITS["bytes"]["GB"] == 1000**3
    assert units._UNITS["bytes"]["GiB"] == 1024**3
    assert "KB" not in units._UNITS["bytes"]
