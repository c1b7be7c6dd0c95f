"""The shapes of what describes the load and its sessions: `scaleDown`, `connections` and `forEach`."""

from __future__ import annotations

from typing import Final

from adapter.foundation.documents.scalars import PROMETHEUS_LABEL, QUERY, Bounds, duration, one_of, percentage, whole
from adapter.foundation.documents.sections import Key, Section
from recommender.kinds.predictive.predictive_settings import FOR_EACH_KINDS, Connections, ForEach, ScaleDown

_DAY_SECONDS: Final = 86_400.0
_SHARE: Final = percentage(Bounds(0, 100, above=True, below=True))

SCALE_DOWN: Final = Section(
    "scaleDown",
    ScaleDown,
    (
        Key("decay", _SHARE, "Largest share of the capacity that goes in 10 s.", into="decay_ratio"),
        Key("window", duration(0, _DAY_SECONDS), "Capacity serves the peak of this time.", into="window_seconds"),
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
        Key("max", whole(1, 100_000), "Most targets.", into="max_targets"),
    ),
)
