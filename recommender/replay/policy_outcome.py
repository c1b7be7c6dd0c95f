"""The outcome of a replayed policy, by day."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recommender.kinds.predictive.arrays import FloatArray

DAY_SECONDS: Final = 86_400.0
_HOUR_SECONDS: Final = 3600.0
_MINUTE_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class SpotOutcome:
    """What happened to spot machines, and to the nodes that replaced them."""

    interruptions: int
    interrupted_pods: int
    fallback_nodes: int
    """Nodes of other groups that were requested while a spot group backed off."""
    fallback_node_hours: float
    fallback_cost: float | None
    """Cost of the fallback nodes; None if not all of them have a price."""


@dataclass(frozen=True, slots=True)
class PolicyOutcome:
    """The result of one policy. Arrays by day begin with the day on which the recording starts."""

    name: str
    node_hours: FloatArray
    """Node-hours by day."""
    cost: FloatArray | None
    """Cost by day; None if not all nodes have a price."""
    pending_minutes: FloatArray
    """Pod-minutes of waiting by day; each wait counts on the day on which it began."""
    wait_minutes: FloatArray
    """Minutes that each pod waited for its node, 0 for most; a pod that was evicted waits again."""
    evictions: FloatArray
    """Evictions by day."""
    changes: int
    """How often groups grew or shrank."""
    sizes: tuple[tuple[float, int], ...]
    """Each time at which the number of nodes changed, with the number from then on."""
    unplaced: int
    """Pods that had no node at the end."""
    spot: SpotOutcome | None = None
    """What happened to spot machines; None if none can be interrupted."""


def hours_of_days(start: float, end: float) -> FloatArray:
    """Return how many hours of each day a recording covers; all days but the last one are whole."""
    days = max(1, int(np.ceil((end - start) / DAY_SECONDS)))
    return np.asarray(np.minimum(DAY_SECONDS, end - start - DAY_SECONDS * np.arange(days)) / _HOUR_SECONDS)


class Account:
    """Counts what happens during a replay."""

    def __init__(self, start: float, end: float, prices: Mapping[str, float]) -> None:
        self._start, self._end = start, end
        self._days = len(hours_of_days(start, end))
        self._prices = prices
        self._since: dict[int, tuple[float, str]] = {}
        self._spans: dict[str, FloatArray] = defaultdict(lambda: np.zeros(self._days))
        self._waits: list[float] = []
        self._began: list[float] = []
        self._evictions: Counter[int] = Counter()
        self._sizes: list[tuple[float, int]] = []
        self.changes = 0
        self._interruptions = self._interrupted_pods = self._fallback_nodes = 0
        self._fallback: set[int] = set()
        self._fallback_hours: dict[str, float] = defaultdict(float)

    def node_came(self, slot: int, group: str, now: float) -> None:
        """Count a node from now on; nodes outside groups are not counted, as they are the same with every policy."""
        if group:
            self._since[slot] = (now, group)
            self._add_size(now)

    def node_went(self, slot: int, now: float) -> None:
        """Stop counting a node."""
        if slot in self._since:
            since, group = self._since.pop(slot)
            if slot in self._fallback:
                self._fallback.remove(slot)
                self._fallback_hours[group] += (now - since) / _HOUR_SECONDS
            self._span(group, since, now)
            self._add_size(now)

    def record_wait(self, since: float, until: float) -> None:
        """Record how long a pod had no node."""
        self._waits.append(max(0.0, until - since) / _MINUTE_SECONDS)
        self._began.append(since)

    def count_evictions(self, now: float, pods: int) -> None:
        """Count pods that were evicted."""
        self._evictions[self._day(now)] += pods

    def count_interruption(self, pods: int) -> None:
        """Count an interrupted spot machine, and its pods."""
        self._interruptions += 1
        self._interrupted_pods += pods

    def fell_back(self, slot: int) -> None:
        """Count a node that is requested instead of a spot machine."""
        self._fallback_nodes += 1
        self._fallback.add(slot)

    def gave_up(self, slot: int) -> None:
        """Note that a requested machine does not arrive."""
        self._fallback.discard(slot)

    def outcome(self, name: str, unplaced: int, *, has_spot: bool = False) -> PolicyOutcome:
        """Return the result at the end of the recording."""
        for slot in list(self._since):
            self.node_went(slot, self._end)
        waits = np.array(self._waits)
        days = np.clip(((np.array(self._began) - self._start) // DAY_SECONDS).astype(int), 0, self._days - 1)
        hours = sum(self._spans.values(), np.zeros(self._days))
        return PolicyOutcome(
            name=name,
            node_hours=np.asarray(hours),
            cost=self._cost(),
            pending_minutes=np.bincount(days, weights=waits, minlength=self._days).astype(np.float64),
            wait_minutes=waits,
            evictions=np.array([float(self._evictions[day]) for day in range(self._days)]),
            changes=self.changes,
            sizes=tuple(dict(self._sizes).items()),
            unplaced=unplaced,
            spot=self._spot_outcome() if has_spot else None,
        )

    def _spot_outcome(self) -> SpotOutcome:
        hours = self._fallback_hours
        has_prices = hours.keys() <= self._prices.keys()
        return SpotOutcome(
            self._interruptions,
            self._interrupted_pods,
            self._fallback_nodes,
            sum(hours.values()),
            sum(self._prices[group] * spent for group, spent in hours.items()) if has_prices else None,
        )

    def _cost(self) -> FloatArray | None:
        """Return the cost by day; None if a group that had nodes has no price."""
        if not self._spans.keys() <= self._prices.keys():
            return None
        return sum((self._prices[group] * spans for group, spans in self._spans.items()), np.zeros(self._days))

    def _add_size(self, now: float) -> None:
        self._sizes.append((now, len(self._since)))

    def _span(self, group: str, since: float, until: float) -> None:
        spans = self._spans[group]
        first, last = self._day(since), self._day(until)
        for day in range(first, last + 1):
            begin = max(since, self._start + day * DAY_SECONDS)
            end = min(until, self._start + (day + 1) * DAY_SECONDS)
            spans[day] += max(0.0, end - begin) / _HOUR_SECONDS

    def _day(self, time: float) -> int:
        return min(self._days - 1, max(0, int((time - self._start) // DAY_SECONDS)))
