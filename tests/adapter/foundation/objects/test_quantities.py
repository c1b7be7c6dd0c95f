from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adapter.foundation.objects.quantities import (
    Format,
    Quantity,
    QuantityError,
    binary_quantity_of,
    fits_milli_units,
    milli_of,
    milli_quantity,
    parse_quantity,
    quantity_cut_in_binary,
    quantity_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

texts = st.from_regex(
    r"[+-]?([0-9]{1,25}(\.[0-9]{0,12})?|\.[0-9]{1,12})([numkMGTPE]?|[KMGTPE]i|[eE][+-]?[0-9]{1,2})", fullmatch=True
)
finite = st.floats(allow_nan=False, allow_infinity=False)


@given(texts)
def test_canonical_form_is_a_fixed_point_and_keeps_the_value(text: str) -> None:
    quantity = parse_quantity(text)
    again = parse_quantity(str(quantity))
    assert (str(again), again) == (str(quantity), quantity)


@given(texts)
def test_canonical_form_has_no_fraction_and_no_plus(text: str) -> None:
    assert not set(str(parse_quantity(text))) & {".", "+"}


@given(st.text(alphabet="0123456789.+-eEinumkKMGTP _é٣", max_size=12) | st.text(max_size=12))
def test_any_text_is_a_quantity_or_refused(text: str) -> None:
    try:
        quantity = parse_quantity(text)
    except QuantityError:
        return
    assert parse_quantity(str(quantity)) == quantity


@given(texts, texts)
def test_order_is_that_of_the_values(one: str, other: str) -> None:
    first, second = parse_quantity(one), parse_quantity(other)
    assert (first < second, first == second, first > second) == (
        first.nanos < second.nanos,
        first.nanos == second.nanos,
        first.nanos > second.nanos,
    )


@given(texts)
def test_milli_value_rounds_away_from_zero(text: str) -> None:
    quantity = parse_quantity(text)
    milli = quantity.milli_value()
    assert abs(quantity.nanos) <= abs(milli) * 10**6 < abs(quantity.nanos) + 10**6
    assert milli == 0 or (milli < 0) == (quantity.nanos < 0)


def test_equal_amounts_are_one_key_whatever_their_format() -> None:
    assert {parse_quantity("1Ki"), parse_quantity("1024"), parse_quantity("1024e0")} == {parse_quantity("1024000m")}


@pytest.mark.parametrize(
    ("augend", "addend", "total"),
    [("1Gi", "512Mi", "1536Mi"), ("1Gi", "1m", "1073741824001m"), ("0", "1Gi", "1Gi"), ("1", "1Ki", "1025")],
)
def test_a_sum_has_the_format_of_the_first_amount_that_is_not_zero(augend: str, addend: str, total: str) -> None:
    assert str(parse_quantity(augend) + parse_quantity(addend)) == total


def test_comparison_with_another_type_is_not_an_error() -> None:
    assert Quantity(1) != "1n"


@pytest.mark.parametrize(
    ("text", "canonical"),
    [("1000E", "1e21"), ("12e21", "12e21"), ("1e1000", "10e999"), ("-9223372036854775808k", "-9223372036854775808k")],
)
def test_amounts_beyond_the_largest_suffix_keep_their_exponent(text: str, canonical: str) -> None:
    assert str(parse_quantity(text)) == canonical


@pytest.mark.parametrize("text", [".", "+", "-", "Ki", "m", "e3", "-.G"])
def test_a_text_without_a_digit_is_refused(text: str) -> None:
    with pytest.raises(QuantityError, match="is not a quantity"):
        parse_quantity(text)


@pytest.mark.parametrize("text", ["1e1001", "1e" + "9" * 900, "9" * 1001])
def test_a_number_that_would_exhaust_memory_is_refused(text: str) -> None:
    with pytest.raises(QuantityError, match="at most"):
        parse_quantity(text)


def test_a_tiny_number_with_a_long_exponent_rounds_up_at_once() -> None:
    assert parse_quantity("1e-" + "9" * 900) == Quantity(1)


def test_the_error_says_what_to_write() -> None:
    with pytest.raises(QuantityError, match=r"'5 GB' is not a quantity: .* such as 1500m, 2 or 4Gi"):
        parse_quantity("5 GB")
    with pytest.raises(QuantityError, match="unknown suffix 'ki'"):
        parse_quantity("5ki")


@pytest.mark.parametrize("write", [quantity_of, quantity_cut_in_binary])
@given(value=st.floats(min_value=-9.2e15, max_value=-1e14))
def test_a_served_amount_never_has_more_digits_than_go_reads(write: Callable[[float], str], value: float) -> None:
    # Go's ParseQuantity reads at most 18 digits of a negative number: of -1000000000000000500m it makes about -2e9.
    text = write(value)
    assert sum(map(str.isdigit, text)) <= 18
    assert abs(parse_quantity(text).nanos / 1e9 - value) <= 1
    assert text.endswith("m") <= (value > -1e15)


@given(st.integers(min_value=-(2**63), max_value=2**63 - 1))
def test_thousandths_are_read_back_from_their_text(milli: int) -> None:
    quantity = parse_quantity(milli_quantity(milli))
    assert (quantity.milli_value(), quantity.format) == (milli, Format.DECIMAL_SI)
    assert str(quantity) == milli_quantity(milli)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (1.0, "1"),
        (1.5, "1500m"),
        (-1.5, "-1500m"),
        (0.29, "290m"),
        (1000.0, "1k"),
        (2500.0, "2500"),
        (12e6, "12M"),
        (0.0004, "0"),
        (0.0019, "1m"),
        (-0.0019, "-1m"),
        (1e-7, "0"),
        (123456.789, "123456789m"),
        (9.1e15, "9100T"),
        (9.2e15, "9200T"),
        (1e19, "10E"),
        (1e22, "10e21"),
        (1.7976931348623157e308, "179769313486231570e291"),
    ],
)
def test_a_float_becomes_the_quantity_of_its_decimal(value: float, text: str) -> None:
    assert quantity_of(value) == text


@given(finite)
@example(-1000000000000000.5)
def test_a_float_keeps_its_first_three_decimals(value: float) -> None:
    exact = Decimal(repr(value))
    milli = milli_of(value)
    assert milli == int(exact.scaleb(3))
    if abs(value) < 9.2e15:
        # Go's library cannot read thousandths from -1e15 down.
        kept = milli if milli > -(10**18) else -(-milli // 1000) * 1000
        assert parse_quantity(quantity_of(value)).milli_value() == kept


@given(finite)
def test_the_quantity_of_a_float_is_canonical(value: float) -> None:
    text = quantity_of(value)
    assert str(parse_quantity(text)) == text


@pytest.mark.parametrize("value", [0.0, -1.5, 9.2e15, -9.2e15, 9223372036854774.0])
def test_autoscalers_read_thousandths_that_64_bits_hold(value: float) -> None:
    assert fits_milli_units(value)


@pytest.mark.parametrize("value", [9223372036854776.0, -9223372036854776.0, 1e308, math.inf, -math.inf, math.nan])
def test_autoscalers_read_no_thousandths_beyond_64_bits(value: float) -> None:
    """In Go, the `MilliValue` of `10P` is 0, and that of `9223372036854776` is negative."""
    assert not fits_milli_units(value)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_nan_and_infinity_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match=str(value)):
        quantity_of(value)
    with pytest.raises(ValueError, match=str(value)):
        milli_of(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (1023.0, "1023"),
        (1024.0, "1Ki"),
        (-2048.0, "-2Ki"),
        (10_485_760.0, "10Mi"),
        (1_048_577.0, "1048577"),
        (1024.5, "1024500m"),
        (2.0**50, "1Pi"),
        (0.0019, "1m"),
    ],
)
def test_a_float_becomes_a_quantity_in_powers_of_1024(value: float, text: str) -> None:
    assert binary_quantity_of(value) == text


@given(finite.filter(lambda value: abs(value) < 1e15) | st.integers(0, 2**52).map(float))
def test_a_quantity_in_powers_of_1024_has_the_value_of_its_thousandths(value: float) -> None:
    assert binary_quantity_of(value) == str(Quantity(milli_of(value) * 10**6, Format.BINARY_SI))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_nan_and_infinity_have_no_quantity_in_powers_of_1024(value: float) -> None:
    with pytest.raises(ValueError, match="thousandths"):
        binary_quantity_of(value)
