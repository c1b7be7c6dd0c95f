"""The usage of pods and nodes, as bytes: `PodMetrics`, `NodeMetrics` and their lists of metrics.k8s.io/v1beta1 (pure).

A list for a thousand pods is joined from pieces, as those of the other APIs are. Field names are those of
`k8s.io/metrics/pkg/apis/metrics`; the order of keys is the one in which Go writes them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from adapter.foundation.objects.durations import format_go_duration
from adapter.foundation.objects.quantities import binary_quantity_of, quantity_of
from adapter.metrics.apis.routing import RESOURCE, VERSIONS
from adapter.metrics.apis.values.value_lists import timestamp

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from adapter.metrics.readings.answers import UsageItem

API_VERSION = f"{RESOURCE}/{VERSIONS[RESOURCE][0]}"
KINDS = {"pods": "PodMetrics", "nodes": "NodeMetrics"}

_json = msgspec.json.encode


def usage_list(resource: str, items: Iterable[UsageItem], window_seconds: float, now: float) -> bytes:
    """Return the list of the usage of `pods` or `nodes`; `now` (Unix seconds) is their stated creation."""
    pieces = Pieces(window_seconds, now)
    head = f'{{"kind":"{KINDS[resource]}List","apiVersion":"{API_VERSION}","metadata":{{}},"items":['
    return b"%b%b]}\n" % (head.encode(), b",".join(b"{%b}" % pieces.item(resource, item) for item in items))


def usage_object(resource: str, item: UsageItem, pieces: Pieces) -> bytes:
    """Return the usage of one pod or node, with its kind and API version."""
    head = f'{{"kind":"{KINDS[resource]}","apiVersion":"{API_VERSION}",'
    return b"%b%b}" % (head.encode(), pieces.item(resource, item))


def resource_quantity(resource: str, value: float) -> str:
    """Return a value of `cpu` or `memory` as the quantity that it is served as: bytes in powers of 1024."""
    return binary_quantity_of(value) if resource == "memory" else quantity_of(value)


class Pieces:
    """Makes the items of one answer, which have much in common: labels of a workload's pods, moments, the window."""

    def __init__(self, window_seconds: float, now: float) -> None:
        """`now` (Unix seconds) is the creation time that all items state, as in metrics-server."""
        self._created = timestamp(now)
        self._window = _json(format_go_duration(window_seconds))
        self._moments: dict[float, bytes] = {}
        self._labels: dict[int, tuple[Mapping[str, str], bytes]] = {}

    def item(self, resource: str, item: UsageItem) -> bytes:
        """Return the fields of an item of `pods` or `nodes`, without its braces."""
        moment = self._moments.get(item.evaluated_at)
        if moment is None:
            moment = self._moments[item.evaluated_at] = timestamp(item.evaluated_at)
        head = b'"metadata":%b,"timestamp":"%b","window":%b,' % (self.metadata(item), moment, self._window)
        if resource == "nodes":
            return b'%b"usage":%b' % (head, _usage(item.used.get("", {})))
        containers = [b'{"name":%b,"usage":%b}' % (_json(name), _usage(used)) for name, used in item.used.items()]
        return b'%b"containers":[%b]' % (head, b",".join(containers))

    def metadata(self, item: UsageItem) -> bytes:
        """Return an item's `metadata`: the object's name and labels."""
        place = b'"namespace":%b,' % _json(item.namespace) if item.namespace is not None else b""
        labels = self._labels_of(item)
        return b'{"name":%b,%b"creationTimestamp":"%b"%b}' % (_json(item.name), place, self._created, labels)

    def _labels_of(self, item: UsageItem) -> bytes:
        # Pods of one workload share their labels: the same object, not equal ones. It is held here, so that no other
        # object gets its id.
        known = self._labels.get(id(item.labels))
        if known is None:
            text = b',"labels":%b' % _json(dict(sorted(item.labels.items()))) if item.labels else b""
            known = self._labels[id(item.labels)] = (item.labels, text)
        return known[1]


def _usage(used: Mapping[str, float]) -> bytes:
    texts = [f'"{resource}":"{resource_quantity(resource, value)}"' for resource, value in sorted(used.items())]
    return f"{{{','.join(texts)}}}".encode()
