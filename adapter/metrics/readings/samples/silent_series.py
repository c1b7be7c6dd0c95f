"""Remembers series that fell silent, for rules that limit the age of their samples (`maxSampleAge`).

Prometheus uses a silent series' last sample as its value for its look-back, and then knows nothing of the series: a sum
continues without it, and is too low. So a series that was once too old is remembered. It counts as too old, even when
it has disappeared, until it has a sample again, or for as long as the rule says (`holdSilent`). A series that ends
properly is not held: Prometheus marks it, and it disappears before it grows too old.

The memory belongs to the series and not to a query: plans change, and requests come and go.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from adapter.metrics.readings.errors import UnanswerableSelectorError
from adapter.metrics.readings.samples.series import identity_of
from adapter.metrics.rulebook.plans import RowIndex
from adapter.metrics.rulebook.templates.matchers import RenderError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from adapter.foundation.objects.selectors import Selector
    from adapter.foundation.time.pace import Pace
    from adapter.metrics.rulebook.model import Metric
    from adapter.metrics.rulebook.requests import Row

MOST_OF_NAMESPACE = 500
"""Limit on the series of a metric and namespace that are remembered singly; of others, only the newest moment is
kept."""
MOST_OF_ALL = 20_000
"""Limit on the series of all requests together that are remembered one by one."""
MOST_OF_ALL_METRICS = MOST_OF_ALL // 4
"""Limit on the series of one namespace, of all metrics together, so that they leave places for those of others."""
_OF_LOOK_BACK = 0.8
"""Share of Prometheus's look-back after which a series is silent, even if the rule would allow older samples."""


class SilentRows:
    """Series that fell silent, with the times of their last samples; each requester sees its own."""

    def __init__(self, index: RowIndex, crowded: Mapping[str, float], namespace_label: str | None) -> None:
        """`index` holds moments in Unix seconds; `crowded` has the newest one for namespaces with too many series."""
        self._namespace_label = namespace_label
        self._crowded = crowded
        self._index = index

    def moments(self, namespace: str | None, selector: Selector) -> list[float]:
        """Return the moments of those series that a requester's query selects. Raises UnanswerableSelectorError.

        Series that are not remembered one by one are not among them.
        """
        try:
            return [row.value for row in self._index.select(self._namespace_label, namespace, selector)]
        except RenderError as error:
            raise UnanswerableSelectorError(str(error)) from error

    def newest_of_others(self, namespace: str | None) -> float | None:
        """Return the newest moment of a namespace's series that are not remembered one by one; None without any.

        They may have samples again since then.
        """
        return self._crowded.get("" if self._namespace_label is None or namespace is None else namespace)


@dataclass(slots=True)
class _Space:
    """The memory of one metric in one namespace."""

    rows: dict[frozenset[tuple[str, str]], Row] = field(default_factory=dict)
    crowded: float | None = None
    """The newest time of the series that are not remembered one by one; None if there are none."""


@dataclass(slots=True)
class _Memory:
    """The memory of one metric."""

    hold_seconds: float
    """The longest time that any rule asking for the metric holds silent series."""
    spaces: dict[str, _Space] = field(default_factory=dict)


class SilentSeries:
    """The memory of a process. Any thread may call it."""

    def __init__(self, look_back_seconds: float) -> None:
        """`look_back_seconds` is how long Prometheus uses the last sample of a series as its value."""
        self._look_back = look_back_seconds
        self._lock = threading.Lock()
        self._memories: dict[tuple[object, ...], _Memory] = {}
        self._held = 0
        self._held_of: Counter[str] = Counter()
        """How many of them are of each namespace."""

    def after(
        self, metric: Metric, rows: Sequence[Row], now: float, hold_seconds: float, pace: Pace
    ) -> SilentRows | None:
        """Record the current times of a metric's series, and return the silent ones; None if there are none.

        The values of `rows` and `now` are in Unix seconds. Series that are not among them may be another
        requester's. `hold_seconds` is the longest time for which any rule that shares the query holds silent series.
        """
        limit, label = metric.rule.policy.max_sample_age_seconds, metric.namespace_label
        if limit is None or hold_seconds <= 0:
            return None
        oldest = now - min(limit, _OF_LOOK_BACK * self._look_back)
        for part in pace.slices(rows):
            with self._lock:
                self._take_in(metric, part, oldest, hold_seconds)
        with self._lock:
            self._forget_oldest(now)
            memory = self._memories.get(_key(metric))
            if memory is None:
                return None
            self._forget(_key(metric), memory, now)
            held = [row for space in memory.spaces.values() for row in space.rows.values()]
            crowded = {name: one.crowded for name, one in memory.spaces.items() if one.crowded is not None}
        index = RowIndex(() if label is None else (label,))
        for part in pace.slices(held):
            index.add(part)
        return SilentRows(index, crowded, label) if held or crowded else None

    def _take_in(self, metric: Metric, rows: Iterable[Row], oldest: float, hold: float) -> None:
        memory, label = self._memories.get(_key(metric)), metric.namespace_label
        if memory is not None:
            memory.hold_seconds = max(memory.hold_seconds, hold)
        for row in rows:
            is_silent = row.value < oldest
            if memory is None and is_silent:
                memory = self._memories[_key(metric)] = _Memory(hold)
            if memory is not None:
                namespace = "" if label is None else row.labels.get(label, "")
                (self._add if is_silent else self._remove)(memory, namespace, row)

    def _add(self, memory: _Memory, namespace: str, row: Row) -> None:
        space, identity = memory.spaces.setdefault(namespace, _Space()), identity_of(row)
        known = space.rows.get(identity)
        if known is not None:
            space.rows[identity] = row if row.value > known.value else known
        elif len(space.rows) < MOST_OF_NAMESPACE and self._has_room(namespace):
            space.rows[identity] = row
            self._held += 1
            self._held_of[namespace] += 1
        else:
            space.crowded = row.value if space.crowded is None else max(space.crowded, row.value)

    def _remove(self, memory: _Memory, namespace: str, row: Row) -> None:
        space = memory.spaces.get(namespace)
        if space is not None and space.rows.pop(identity_of(row), None) is not None:
            self._let_go(namespace)

    def _has_room(self, namespace: str) -> bool:
        """Return whether one more series of the namespace may be remembered; without a namespace, it is anybody's."""
        is_full = namespace and self._held_of[namespace] >= MOST_OF_ALL_METRICS
        return not is_full and self._held < MOST_OF_ALL

    def _let_go(self, namespace: str) -> None:
        self._held -= 1
        self._held_of[namespace] -= 1
        if not self._held_of[namespace]:
            del self._held_of[namespace]

    def _forget_oldest(self, now: float) -> None:
        """Clean up one memory with each request, so that memories that nobody requests any more are reached, too."""
        key = next(iter(self._memories), None)
        if key is not None:
            memory = self._memories[key] = self._memories.pop(key)
            self._forget(key, memory, now)

    def _forget(self, key: tuple[object, ...], memory: _Memory, now: float) -> None:
        """Forget series that have been silent for longer than they are held, and memories that are then empty."""
        before = now - memory.hold_seconds
        for name, space in list(memory.spaces.items()):
            for identity in [identity for identity, row in space.rows.items() if row.value < before]:
                del space.rows[identity]
                self._let_go(name)
            if space.crowded is not None and space.crowded < before:
                space.crowded = None
            if not space.rows and space.crowded is None:
                del memory.spaces[name]
        if not memory.spaces:
            del self._memories[key]


def _key(metric: Metric) -> tuple[object, ...]:
    """Return a key that is equal for metrics with the same series, whichever rules ask for them."""
    return metric.rule.backend, metric.rule.times_query, metric.series, metric.namespace_label
