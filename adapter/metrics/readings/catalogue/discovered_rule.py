"""The state of one rule: the metrics that it spells out, and those whose series were found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from adapter.metrics.readings.catalogue.last_look_up import LookUp

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from adapter.metrics.rulebook.model import Metric, Rule

MetricId = tuple[str, str, bool]


@dataclass(slots=True)
class DiscoveredRule:
    """The known series and metrics of one rule."""

    rule: Rule
    static: dict[MetricId, Metric]
    """Metrics that the rule spells out: served whether series exist or not. After a look-up, they assume no labels."""
    found: dict[MetricId, Metric] = field(default_factory=dict)
    vanished_at: dict[MetricId, float] = field(default_factory=dict)
    """When the series of a metric in `found` were first missing, in monotonic seconds."""
    looked_up: bool = False
    failure: str | None = None
    public_failure: str | None = None
    """The part of the failure that any client may read; None if that is all of it."""
    unreachable_since: float | None = None
    """The time, in Unix seconds, since which its look-ups have failed because Prometheus could not be asked."""
    fails_alone: bool = False
    """Whether Prometheus has answered others in between."""
    succeeded_at: float | None = None
    """Unix seconds of the last look-up that succeeded."""

    @property
    def number_present(self) -> int:
        """The number of metrics in `found` whose series are there."""
        return len(self.found.keys() - self.vanished_at.keys())

    @property
    def last_look_up(self) -> LookUp:
        """The last look-up of its series, as clients may see it."""
        return LookUp(self.rule, self.succeeded_at, self.public_failure or self.failure)

    def serves_others(self, former: DiscoveredRule) -> bool:
        """Return whether a look-up has changed the metrics of the rule since a former state."""
        if self.found is not former.found or self.static is not former.static:
            return True
        return self.vanished_at.keys() != former.vanished_at.keys()

    def vanished_metrics(self) -> Iterator[Metric]:
        """Yield the metrics in `found` whose series vanished."""
        return (self.found[key] for key in self.vanished_at if key in self.found)

    def present(self) -> Iterator[Metric]:
        """Yield the metrics in `found` whose series are there."""
        return (metric for key, metric in self.found.items() if key not in self.vanished_at)


def by_id(metrics: Iterable[Metric]) -> dict[MetricId, Metric]:
    """Return the metrics by what identifies them."""
    return {(metric.qualified, metric.series, metric.namespaced): metric for metric in metrics}
