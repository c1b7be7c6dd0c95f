"""The shapes of the mappings and lists within `predictive:`."""

from __future__ import annotations

from typing import Final

from adapter.foundation.documents.scalars import (
    PROMETHEUS_LABEL,
    QUERY,
    TEXTS_MAY_BE_EMPTY,
    Bounds,
    duration,
    one_of,
    percentage,
    text,
    whole,
)
from adapter.foundation.documents.sections import Key, Section
from adapter.foundation.documents.shapes import ListOf, OneOf, WrongValueError
from adapter.foundation.documents.tree import ScalarNode, SequenceNode, shorten
from recommender.decisions.texts.times import parse_rfc3339
from recommender.kinds.predictive.policy.arithmetic import MOST_REPLICAS
from recommender.kinds.predictive.predictive_settings import (
    FOR_EACH_KINDS,
    Connections,
    ForEach,
    Override,
    ScaleDown,
    Schedule,
)
from recommender.kinds.predictive.public_holidays import UnknownHolidaysError, check_code
from recommender.schedules.values import CRON, TIMEZONE

REPLICAS: Final = whole(1, MOST_REPLICAS)
_DAY_SECONDS: Final = 86_400.0
_SHARE: Final = percentage(Bounds(0, 100, above=True, below=True))

SCALE_DOWN: Final = Section(
    "scaleDown",
    ScaleDown,
    (
        Key("decay", _SHARE, "Largest share of the capacity that goes in 10 s.", into="decay_ratio"),
        Key("window", duration(0, _DAY_SECONDS), "Time whose peak the capacity keeps serving.", into="window_seconds"),
        Key("drain", duration(1, 7 * _DAY_SECONDS), "How long sessions last, at most.", into="drain_seconds"),
    ),
)
CONNECTIONS: Final = Section(
    "connections",
    Connections,
    (
        Key("limit", whole(1, 10**9), "Connections at which a pod becomes not ready.", "25000"),
        Key("metric", QUERY, "PromQL with one series a pod (label `pod`)."),
        Key("reconnectDrop", _SHARE, "Fall of the load that is a mass reconnect.", into="reconnect_drop_ratio"),
        Key("reconnectHold", duration(0, 3600), "How long capacity is held after it.", into="reconnect_hold_seconds"),
    ),
)
FOR_EACH: Final = Section(
    "forEach",
    ForEach,
    (
        Key("namespace", PROMETHEUS_LABEL, "Label with the target's namespace.", "namespace", into="namespace_label"),
        Key("name", PROMETHEUS_LABEL, "Label with the target's name.", "deployment", into="name_label"),
        Key("kind", one_of(FOR_EACH_KINDS, "a kind of target"), "Kind of the targets."),
        Key("max", whole(1, 100_000), "Maximum number of targets.", into="max_targets"),
    ),
)


def _time(written: str) -> float:
    try:
        return parse_rfc3339(written)
    except ValueError:
        wrong = f"{shorten(written)!r} is not a time with a zone (RFC 3339)"
        raise WrongValueError(wrong, "write it as 2026-11-21T06:00:00Z") from None


def _schedule(cron: str, duration_seconds: float, min_replicas: int, timezone: str = "") -> Schedule:
    # Without its own zone, that of the recommendation is inserted when the whole entry has been read.
    return Schedule(cron, timezone, duration_seconds, min_replicas)


SCHEDULES: Final = ListOf(
    Section(
        "schedule",
        _schedule,
        (
            Key("cron", CRON, "When it begins, as in crontab(5).", "0 8 * * mon-fri"),
            Key("timezone", TIMEZONE, "IANA name of the time zone of `cron`; default: that of the recommendation."),
            Key("duration", duration(60, 31 * 86_400), "How long it lasts.", "2h", into="duration_seconds"),
            Key("minReplicas", REPLICAS, "Minimum number of replicas during that time.", "10"),
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
"""A size that is set by hand. Its end may be in the past."""


def _code(written: str) -> str:
    try:
        check_code(written)
    except UnknownHolidaysError as error:
        raise WrongValueError(str(error), error.fix) from None
    return written


_CODE: Final = text().then(_code)
HOLIDAYS: Final = OneOf(
    {
        ScalarNode: _CODE.then(lambda code: (code,)),
        SequenceNode: ListOf(
            _CODE, empty=("`holidays` names no country", "write one, such as DE, or remove the key"), unique=str
        ),
    }
)
"""One code of a country or of a part of a country, or a list of such codes."""
