"""Determines which containers have ended: those whose memory has disappeared.

When a container ends, its series end with it. Its memory has no value from then on, but the rate of its CPU keeps one
for the range of the query. In these minutes, an init container, or one that was restarted under another name, looks
like a container that uses CPU and no memory. A running container that never had a memory sample looks the same, but
must not be left out: without it, the pod would seem to use less than it does.

So a container counts as ended if its memory was seen and disappeared no longer ago than its CPU can linger. Both must
be seen by the same rule: a changed rule for memory may leave out containers that go on running.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Container, Mapping
from typing import TYPE_CHECKING, NamedTuple

from adapter.metrics.readings.catalogue.catalogue import same_metric

if TYPE_CHECKING:
    from adapter.metrics.rulebook.model import Metric

KEPT_SECONDS = 600.0
"""How long a namespace is remembered after the last request for it."""
SLACK_SECONDS = 60.0
"""Time that a scrape, a refresh and a client's request interval add to the range of the CPU query."""


class _Namespace(NamedTuple):
    metric: Metric
    values: Mapping[str, float]
    """The memory of each container at the last look."""
    gone: Mapping[str, float]
    """When a container that had memory was first seen without it, in monotonic seconds."""
    looked_at: float


class EndedContainers:
    """Remembers the containers of each namespace whose memory was seen. Thread-safe.

    It keeps no more than the latest reading of each namespace, and the containers that ended a short time ago.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._namespaces: OrderedDict[str, _Namespace] = OrderedDict()
        """The namespace that was looked at longest ago comes first."""

    def look(
        self, namespace: str, metric: Metric, values: Mapping[str, float], now: float, range_seconds: float
    ) -> Container[str]:
        """Return the containers that have ended and whose CPU may linger.

        `values` is the memory of each container now, as `metric` has it; `range_seconds` is the range of the CPU's
        query.
        """
        longest = range_seconds + SLACK_SECONDS
        with self._lock:
            last = self._namespaces.get(namespace)
            gone: Mapping[str, float] = {}
            if last is not None and same_metric(last.metric, metric):
                gone = last.gone
                if last.values is not values:
                    newly = dict.fromkeys(last.values.keys() - values.keys(), now)
                    gone = {key: at for key, at in (newly | dict(gone)).items() if key not in values}
            recent = {key: at for key, at in gone.items() if now - at <= longest} if gone else gone
            self._namespaces[namespace] = _Namespace(metric, values, recent, now)
            self._namespaces.move_to_end(namespace)
            self._forget(now)
            return recent

    def _forget(self, now: float) -> None:
        while next(iter(self._namespaces.values())).looked_at < now - KEPT_SECONDS:
            self._namespaces.popitem(last=False)
