"""Amounts as people read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.objects.amount_texts import amount_text
from adapter.foundation.objects.quantities import parse_quantity

GI = 1 << 30


@pytest.mark.parametrize(
    ("resource", "amount", "down", "up"),
    [
        ("cpu", 8000, "8", "8"),
        ("cpu", 1500, "1500m", "1500m"),
        ("memory", 16 * GI, "16Gi", "16Gi"),
        ("memory", 16 * GI - 1, "15.99Gi", "16Gi"),
        ("memory", 16970153984, "15.8Gi", "15.81Gi"),
        ("memory", 0, "0", "0"),
        ("memory", 1023, "1023", "1023"),
        ("memory", 1536, "1.5Ki", "1.5Ki"),
        ("ephemeral-storage", 3 << 40, "3Ti", "3Ti"),
        ("hugepages-2Mi", 4 << 20, "4Mi", "4Mi"),
        ("nvidia.com/gpu", 2048, "2048", "2048"),
        ("memory", -3 * GI, "-3Gi", "-3Gi"),
    ],
)
def test_amounts_are_written_in_common_units(resource: str, amount: int, down: str, up: str) -> None:
    assert amount_text(resource, amount, rounds_up=False) == down
    assert amount_text(resource, amount, rounds_up=True) == up


@given(st.integers(0, 1 << 60))
def test_an_amount_lies_between_its_two_texts(amount: int) -> None:
    down, up = (parse_quantity(amount_text("memory", amount, rounds_up=way)) for way in (False, True))
    assert down.nanos <= amount * 10**9 <= up.nanos
