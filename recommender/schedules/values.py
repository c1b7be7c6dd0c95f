"""Strict readers of the values of a schedule: cron expressions and time zones."""

from __future__ import annotations

from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from adapter.foundation.documents.scalars import TEXTS_MAY_BE_EMPTY, validated_text
from adapter.foundation.documents.shapes import WrongValueError
from recommender.schedules.cron import CronError, parse_cron


def _cron(text: str) -> str:
    try:
        parse_cron(text)
    except CronError as error:
        raise WrongValueError(str(error), error.fix) from None
    return text


def _is_unknown_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        # A folder such as `Europe` is an OSError, and a path that leads outside the folder is a ValueError.
        return True
    return False


CRON: Final = TEXTS_MAY_BE_EMPTY.then(_cron)
TIMEZONE: Final = validated_text("a time zone", _is_unknown_zone, "write its IANA name, such as Europe/Berlin or UTC")
