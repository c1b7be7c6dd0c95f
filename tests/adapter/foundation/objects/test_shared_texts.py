"""Equal texts of objects are one string, and those of objects that come and go are forgotten."""

from __future__ import annotations

from adapter.foundation.objects.bounded_cache import HELD_BYTES, MEBIBYTE
from adapter.foundation.objects.shared_texts import shared_text


def text_of(*parts: str) -> str:
    """Return a text that is a string of its own, as a decoder returns it."""
    return "".join(parts)


def test_equal_texts_are_one_string() -> None:
    first, second = text_of("front", "-end"), text_of("front", "-end")
    assert first is not second
    assert shared_text(first) is shared_text(second) is first


def test_texts_that_are_no_longer_used_are_forgotten() -> None:
    used = [shared_text(text_of("front", "-end")) for number in range(100_000) if shared_text(f"job-{number}")]
    assert getattr(shared_text, HELD_BYTES)() <= 8 * MEBIBYTE
    assert all(one is used[0] for one in used), "what is used all the time stays"
