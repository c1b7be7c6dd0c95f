"""Public holidays of countries and of parts of countries, from the package `holidays`.

The package is imported at the first look-up; without the key `holidays`, it is never in memory.
"""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING, Final

from adapter.foundation.documents.tree import shorten
from adapter.foundation.objects.bounded_cache import MEBIBYTE, bounded_cache

if TYPE_CHECKING:
    from collections.abc import Iterable

_EPOCH: Final = date(1970, 1, 1)
_FIRST_YEAR: Final = 1970
_LAST_YEAR: Final = 2100


class UnknownHolidaysError(ValueError):
    """A code has no known holidays; `fix` says which code may be meant."""

    def __init__(self, message: str, fix: str) -> None:
        """Store the fault and what to write instead."""
        super().__init__(message)
        self.fix = fix


def check_code(code: str) -> None:
    """Raise UnknownHolidaysError unless it is a country by ISO 3166-1 (`DE`), or a part of one (`DE-BY`)."""
    from holidays import list_supported_countries  # noqa: PLC0415 - takes 20 MiB, only where the key is written

    parts_of = list_supported_countries(include_aliases=False)
    country, dash, part = code.partition("-")
    if country not in parts_of:
        fix = _suggestion(country, parts_of) or "write a code of ISO 3166-1, such as DE, or DE-BY"
        raise UnknownHolidaysError(f"{shorten(country)!r} is not a country whose holidays are known", fix)
    if dash and part not in parts_of[country]:
        known = [f"{country}-{each}" for each in parts_of[country]]
        fix = _suggestion(code, known) or f"write {country}{', or one of ' if known else ''}{', '.join(known)}"
        raise UnknownHolidaysError(f"{shorten(code)!r} is not a part of {country} whose holidays are known", fix)


def _suggestion(code: str, known: Iterable[str]) -> str:
    """Return a question about known codes that differ in one letter or in case; empty if there are none."""
    upper = code.upper()
    same_length = sorted(each for each in known if len(each) == len(code))
    close = [each for each in same_length if each == upper] or [
        each for each in same_length if each[:-1] == upper[:-1] and len(each) > 1
    ]
    if not close:
        return ""
    *others, last = close
    return f"did you mean {', '.join(others)}{' or ' if others else ''}{last}?"


def holiday_dates(codes: tuple[str, ...], first_day: int, last_day: int) -> tuple[int, ...]:
    """Return the holidays of all codes in the years from `first_day` to `last_day`, in days since 1 January 1970."""
    first, last = (_year(day) for day in (first_day, last_day))
    return tuple(day for year in range(first, last + 1) for day in _dates_of_year(codes, year))


def _year(day: int) -> int:
    least, most = ((date(year, 1, 1) - _EPOCH).days for year in (_FIRST_YEAR, _LAST_YEAR))
    return (_EPOCH + timedelta(days=min(max(day, least), most))).year


@bounded_cache(MEBIBYTE)
def _dates_of_year(codes: tuple[str, ...], year: int) -> tuple[int, ...]:
    from holidays import country_holidays  # noqa: PLC0415 - see above

    found = set()
    for code in codes:
        country, _, part = code.partition("-")
        found |= {(day - _EPOCH).days for day in country_holidays(country, subdiv=part or None, years=year)}
    return tuple(sorted(found))
