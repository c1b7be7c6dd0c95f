"""Reads what describes the load and its sessions: `scaleDown`, `connections` and `forEach`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from adapter.documents.tree import nearest, shortened
from recommender.predictive.settings import FOR_EACH_KINDS, Connections, ForEach, ScaleDown

if TYPE_CHECKING:
    from adapter.documents.tree import Node
    from recommender.reading.fields import ValueReader

_CONNECTIONS: Final = ("limit", "metric", "reconnectDrop", "reconnectHold")
_FOR_EACH: Final = ("namespace", "name", "kind", "max")
_HOUR_SECONDS: Final = 3600.0
_DAY_SECONDS: Final = 24 * _HOUR_SECONDS
_LARGEST_LIMIT: Final = 10**9
_LARGEST_TARGETS: Final = 100_000
_LABEL: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


def read_scale_down(node: Node | None, fields: ValueReader) -> ScaleDown | None:
    """Return how capacity goes down; None if the key is absent."""
    mapping = fields.mapping(node, ("decay", "window", "drain"))
    if mapping is None:
        return None
    window = fields.duration(mapping.get("window"), 0.0, _DAY_SECONDS)
    return ScaleDown(
        decay_ratio=_share(mapping.get("decay"), fields),
        window_seconds=ScaleDown().window_seconds if window is None else window,
        drain_seconds=fields.duration(mapping.get("drain"), 1.0, 7 * _DAY_SECONDS),
    )


def read_connections(node: Node | None, fields: ValueReader) -> Connections | None:
    """Return the limit of a pod's connections; None if the key is absent."""
    mapping = fields.mapping(node, _CONNECTIONS)
    if mapping is None:
        return None
    fields.require(mapping, "connections.", {"limit": "25000"}, _CONNECTIONS)
    default = Connections(fields.count_within(mapping, "limit", 1, _LARGEST_LIMIT) or 1)
    hold = fields.duration(mapping.get("reconnectHold"), 0.0, _HOUR_SECONDS)
    return Connections(
        limit=default.limit,
        metric=fields.query(mapping.get("metric")),
        reconnect_drop_ratio=_share(mapping.get("reconnectDrop"), fields) or default.reconnect_drop_ratio,
        reconnect_hold_seconds=default.reconnect_hold_seconds if hold is None else hold,
    )


def read_for_each(node: Node | None, fields: ValueReader) -> ForEach | None:
    """Return by which labels a series names its target; None if the key is absent."""
    mapping = fields.mapping(node, _FOR_EACH)
    if mapping is None:
        return None
    fields.require(mapping, "forEach.", {"namespace": "namespace", "name": "deployment"}, _FOR_EACH)
    default = ForEach(_label(mapping.get("namespace"), fields), _label(mapping.get("name"), fields))
    return ForEach(
        default.namespace_label,
        default.name_label,
        _kind(mapping.get("kind"), fields) or default.kind,
        fields.count_within(mapping, "max", 1, _LARGEST_TARGETS) or default.max_targets,
    )


def _share(node: Node | None, fields: ValueReader) -> float | None:
    """Return a percentage above 0% and below 100% as a ratio."""
    share = fields.percentage(node)
    if node is not None and share == 0:
        fields.problem(node, "the percentage is 0%", "write more, such as 5%, or remove the key")
    return share


def _label(node: Node | None, fields: ValueReader) -> str:
    text = fields.text(node)
    if node is not None and text is not None and not _LABEL.fullmatch(text):
        fix = "write the name of the label alone, such as namespace"
        fields.problem(node, f"{shortened(text)!r} is not the name of a Prometheus label", fix)
    return text or ""


def _kind(node: Node | None, fields: ValueReader) -> str | None:
    text = fields.text(node)
    if node is None or text is None or text in FOR_EACH_KINDS:
        return text
    meant = nearest(text, FOR_EACH_KINDS)
    fix = f"did you mean {meant}?" if meant else f"the kinds are {', '.join(FOR_EACH_KINDS)}"
    fields.problem(node, f"`forEach` does not know the kind {shortened(text)!r}", fix)
    return None
