"""Turns documents into JSON text, and rounds their numbers."""

from __future__ import annotations

import msgspec


def json_text(document: object) -> str:
    """Return the document as JSON, indented."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()


def four_digits(value: float | None) -> float | None:
    """Return the value, rounded to four decimal places."""
    return None if value is None else round(value, 4)
