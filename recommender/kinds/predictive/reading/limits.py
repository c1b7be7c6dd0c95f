"""The shapes of the sizes that people set: `schedule` and `override`."""

from __future__ import annotations

from typing import Final

from adapter.foundation.documents.scalars import TEXTS_MAY_BE_EMPTY, duration, whole
from adapter.foundation.documents.sections import Key, Section
from adapter.foundation.documents.shapes import ListOf, WrongValueError
from adapter.foundation.documents.tree import shortened
from recommender.decisions.texts.times import parse_rfc3339
from recommender.kinds.predictive.predictive_settings import Override, Schedule
from recommender.reading.calendar import CRON, TIMEZONE

REPLICAS: Final = whole(1, 2**31 - 1)


def _time(text: str) -> float:
    try:
        return parse_rfc3339(text)
    except ValueError:
        wrong = f"{shortened(text)!r} is not a time with a zone (RFC 3339)"
        raise WrongValueError(wrong, "write it as 2026-11-21T06:00:00Z") from None


def _schedule(cron: str, duration_seconds: float, min_replicas: int, timezone: str = "") -> Schedule:
    # Without a zone of its own, that of the recommendation is put here when all of it has been read.
    return Schedule(cron, timezone, duration_seconds, min_replicas)


SCHEDULES: Final = ListOf(
    Section(
        "schedule",
        _schedule,
        (
            Key("cron", CRON, "When it begins, as in crontab(5).", "0 8 * * mon-fri"),
            Key("timezone", TIMEZONE, "IANA name of the time zone of `cron`; default: that of the recommendation."),
            Key("duration", duration(60, 31 * 86_400), "How long it lasts.", "2h", into="duration_seconds"),
            Key("minReplicas", REPLICAS, "Fewest replicas for that long.", "10"),
        ),
    )
)
"""Lower bounds at recurring times, which may overlap."""
OVERRIDE: Final = Section(
    "override",
    Override,
    (
        Key("replicas", REPLICAS, "The size.", "10"),
        Key("until", TEXTS_MAY_BE_EMPTY.then(_time), "When it ends (RFC 3339).", "2026-11-21T06:00:00Z"),
    ),
)
"""A size that is set by hand. Its end may be over."""
