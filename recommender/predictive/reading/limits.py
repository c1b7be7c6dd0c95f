"""Reads the sizes that people set: `schedule` and `override`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.documents.tree import shortened
from recommender.decisions.times import parse_rfc3339
from recommender.predictive.settings import Override, Schedule

if TYPE_CHECKING:
    from adapter.documents.tree import Node
    from recommender.reading.fields import ValueReader

_SHORTEST_SECONDS: Final = 60.0
_LONGEST_SECONDS: Final = 31 * 86_400.0
_LARGEST_REPLICAS: Final = 2**31 - 1
_SCHEDULE: Final = {"cron": "0 8 * * mon-fri", "timezone": "Europe/Berlin", "duration": "2h", "minReplicas": "10"}
_OVERRIDE: Final = {"replicas": "10", "until": "2026-11-21T06:00:00Z"}


def read_schedules(node: Node | None, max_replicas: int | None, fields: ValueReader) -> tuple[Schedule, ...]:
    """Return the lower bounds at recurring times; incomplete if there are problems. They may overlap."""
    schedules = []
    for item in fields.sequence(node):
        schedule = _schedule(item, fields)
        if max_replicas is not None and schedule.min_replicas > max_replicas:
            message = f"`schedule` asks for {schedule.min_replicas} replicas, but `maxReplicas` is {max_replicas}"
            fields.problem(item, message, "lower one, or raise the other")
        schedules.append(schedule)
    return tuple(schedules)


def read_override(node: Node | None, fields: ValueReader) -> Override | None:
    """Return the size that is set by hand; None if the key is absent. Its end may be over."""
    mapping = fields.mapping(node, _OVERRIDE)
    if mapping is None:
        return None
    fields.require(mapping, "override.", _OVERRIDE, _OVERRIDE)
    replicas = fields.count_within(mapping, "replicas", 1, _LARGEST_REPLICAS)
    return Override(replicas or 1, _time(mapping.get("until"), fields))


def _schedule(node: Node, fields: ValueReader) -> Schedule:
    mapping = fields.mapping(node, _SCHEDULE)
    if mapping is None:
        return Schedule("", "", _SHORTEST_SECONDS, 1)
    fields.require(mapping, "schedule.", _SCHEDULE, _SCHEDULE)
    return Schedule(
        cron=fields.cron(mapping.get("cron")),
        timezone=fields.timezone(mapping.get("timezone")),
        duration_seconds=fields.duration(mapping.get("duration"), _SHORTEST_SECONDS, _LONGEST_SECONDS) or 0.0,
        min_replicas=fields.count_within(mapping, "minReplicas", 1, _LARGEST_REPLICAS) or 1,
    )


def _time(node: Node | None, fields: ValueReader) -> float:
    text = fields.text(node)
    if node is None or text is None:
        return 0.0
    try:
        return parse_rfc3339(text)
    except ValueError:
        fix = "write it as 2026-11-21T06:00:00Z"
        fields.problem(node, f"{shortened(text)!r} is not a time with a zone (RFC 3339)", fix)
        return 0.0
