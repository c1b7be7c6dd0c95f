"""Numbers of records as people and JSON show them."""

from __future__ import annotations


def plain(value: float) -> int | float:
    """Return a whole number without its fraction, so that it is printed as `11` and not as `11.0`."""
    return int(value) if float(value).is_integer() else value


def shown(value: float) -> str:
    """Return the text of a number: whole ones in full, others with six significant digits."""
    number = plain(value)
    return str(number) if isinstance(number, int) else f"{number:.6g}"
