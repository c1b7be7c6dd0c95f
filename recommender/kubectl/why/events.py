"""The events of an object, the newest last."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from adapter.foundation.sources.kubernetes.access_rights import AccessRight
from adapter.foundation.time.timestamps import seconds_of
from recommender.kubectl.reader import NotRead, Reader, object_path
from recommender.kubectl.report import ReportSection, ago

_MOST: Final = 8


def events_of(reader: Reader, namespace: str, kind: str, name: str) -> list[dict[str, Any]] | NotRead:
    """Return the last events about an object, as documents."""
    query = {"fieldSelector": f"involvedObject.kind={kind},involvedObject.name={name}"}
    path, right = object_path("v1", namespace, "events"), AccessRight("list", "events", "", namespace)
    found = reader.items(path, right, query)
    if isinstance(found, NotRead):
        return NotRead(f"events: {found.reason}")
    events = sorted((_document(one) for one in found), key=lambda one: str(one["time"] or ""))
    return events[-_MOST:]


def events_section(events: list[dict[str, Any]], now: float) -> ReportSection:
    """Return the events as sentences."""
    lines = tuple(f"{_when(one['time'], now)}{one['reason']}: {one['message']} ({one['source']})" for one in events)
    return ReportSection("Last events", lines or ("None.",))


def _document(event: Mapping[str, Any]) -> dict[str, Any]:
    series = event.get("series") or {}
    moments = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    source = event.get("reportingComponent") or (event.get("source") or {}).get("component") or "unknown"
    return {
        "time": next((moment for moment in moments if moment), None),
        "reason": event.get("reason", ""),
        "message": event.get("message", ""),
        "source": source,
    }


def _when(moment: str | None, now: float) -> str:
    seconds = seconds_of(moment)
    return "" if seconds is None else f"{ago(seconds, now)}, "
