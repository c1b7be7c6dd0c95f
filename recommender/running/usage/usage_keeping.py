"""Keeps the usage that recommendations follow: reads missing usage part by part, and turns it into sizes."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.state import Observed, Unknown
from adapter.foundation.objects.grouping import group_values
from adapter.foundation.service.runtime.logs import StateLog
from adapter.foundation.sources.prometheus.errors import PrometheusError
from recommender.decisions.object_names import object_namespace
from recommender.kinds.resources.bounds import SizeSettings
from recommender.kinds.resources.histograms import DAY_SECONDS
from recommender.kinds.resources.size_record import WorkloadUsage
from recommender.kinds.resources.sizing import SizingOptions
from recommender.running.usage.cluster_history import SeveralClustersError
from recommender.running.usage.target_usage import MOST_CONTAINERS, KnownUsage
from recommender.running.usage.usage_parts import NoUsageError, OwnersUnknownError, read_part, reader_of, refuse_nothing
from recommender.running.usage.usage_queries import CPU_METRIC, MEMORY_METRIC, USUAL_RESOLUTION, Resolution
from recommender.running.usage.usage_window import SizeWindow

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
    from recommender.decisions.record import TargetReference
    from recommender.running.usage.usage_files import UsageFiles
    from recommender.running.usage.usage_needs import UsageNeed

_log = logging.getLogger(__name__)

PERIOD_SECONDS: Final = 300.0
_SCRAPE_SECONDS: Final = 30.0
"""How long after a point in time the samples of that time may still arrive."""
_RESOLUTION_SECONDS: Final = 3600.0
_RETRY_SECONDS: Final = 60.0
_SAVE_SECONDS: Final = 1800.0

_WHY_UNMEASURED: Final = f"{CPU_METRIC} or {MEMORY_METRIC} has no samples of it, or fromUsage finds none"

UsageInputs = dict["TargetReference", "Observed[object] | Unknown"]


@dataclass(slots=True)
class _Kept:
    need: UsageNeed
    usage: KnownUsage
    resolution: Resolution | None = None
    resolution_at: float = -math.inf
    knows_facts: bool = False
    """Whether a part has been read since the start of this process."""
    saved: float = -math.inf
    """The time up to which usage is stored, in Unix seconds."""


def parts_of(covered: float, until: float, history_seconds: float) -> Iterator[tuple[float, float]]:
    """Yield the start and end of each missing part, oldest first, each in one day of UTC; times are Unix seconds."""
    start = max(covered, until - history_seconds)
    while start < until:
        end = min(until, (math.floor(start / DAY_SECONDS) + 1) * DAY_SECONDS)
        yield start, end
        start = end


def days_of(need: UsageNeed) -> int:
    """Return how many days of UTC the history of a need touches."""
    return math.ceil(need.settings.from_usage.history_seconds / DAY_SECONDS) + 1


@dataclass(slots=True)
class UsageKeeper:
    """Keeps the usage of all recommendations that follow usage. Not thread-safe, except for `inputs`."""

    client: Callable[[UsageNeed], PrometheusClient | None]
    """Returns the client to query for a need; None if there is none."""
    files: UsageFiles
    wall: Callable[[], float]
    _kept: dict[str, _Kept] = field(default_factory=dict)
    _found: dict[str, UsageInputs | Unknown] = field(default_factory=dict)
    _retry_at: dict[str, float] = field(default_factory=dict)
    _states: StateLog = field(default_factory=lambda: StateLog(_log))

    def inputs(self) -> Mapping[str, UsageInputs | Unknown]:
        """Return the newest usage by recommendation."""
        return self._found

    def due(self, need: UsageNeed) -> bool:
        """Return whether a part is missing; for a while after a failure, return False."""
        kept = self._kept.get(need.name)
        if kept is None or kept.need != need:
            return True
        # More than the wait can be left only if the clock has been set back since.
        left = self._retry_at.get(need.name, 0.0) - self.wall()
        lacks = self._until() > kept.usage.covered or self._is_ahead(kept)
        return lacks and not 0.0 < left <= _RETRY_SECONDS

    def keep(self, needs: tuple[UsageNeed, ...], configured: Collection[str]) -> None:
        """Keep the usage of these needs, and forget all other usage.

        `configured` has the names of all recommendations that follow usage, those of other Prometheus servers included.
        """
        names = {need.name for need in needs}
        for gone in self._kept.keys() - names:
            if gone not in configured and object_namespace(gone):
                # Objects come and go: files that they leave behind would fill the disk.
                self.files.remove(gone)
        self._retry_at = {name: time for name, time in self._retry_at.items() if name in names}
        self._kept = {name: kept for name, kept in self._kept.items() if name in names}
        self._found = {name: found for name, found in self._found.items() if name in names}

    def read(self, need: UsageNeed, goes_on: Callable[[], bool] = lambda: True) -> None:
        """Read missing usage, and turn it into sizes, while `goes_on` returns True.

        After a failure, the former usage remains, with its time.
        """
        kept = self._kept_for(need)
        until, client = self._until(), self.client(need)
        if client is None:
            self._note_failure(need, "there is no Prometheus that can be asked")
            return
        try:
            if self._is_ahead(kept):
                # The usage is only given up if Prometheus agrees with the current clock.
                refuse_nothing(client, need, until)
                kept = self._usage_for(need, None)
            parts = tuple(parts_of(kept.usage.covered, until, need.settings.from_usage.history_seconds))
            if parts:
                refuse_nothing(client, need, until)
            for start, end in parts:
                if not goes_on():
                    return
                self._show_progress(need, end, until)
                self._read_part(client, kept, start, end)
            if not kept.knows_facts:
                # The current owners and requests of stored usage are unknown.
                resolution = self._resolution(client, kept, until)
                newest = read_part(client, need, until - PERIOD_SECONDS, until, resolution, is_recent=True)
                kept.usage.note_present(newest)
                kept.knows_facts = True
        except (PrometheusError, SeveralClustersError, OwnersUnknownError, NoUsageError) as error:
            self._note_failure(need, str(error))
            return
        self._states.recovered(need.name, "usage is read again")
        self._publish(kept)

    def save(self, *, is_last: bool = False) -> None:
        """Store the usage of recommendations for which enough has been read since the last save."""
        for kept in self._kept.values():
            if kept.usage.covered - kept.saved >= (PERIOD_SECONDS if is_last else _SAVE_SECONDS):
                self.files.save(kept.need, kept.usage)
                kept.saved = kept.usage.covered

    def _until(self) -> float:
        return (self.wall() - _SCRAPE_SECONDS) // PERIOD_SECONDS * PERIOD_SECONDS

    def _is_ahead(self, kept: _Kept) -> bool:
        """Return whether usage is of the future, since the clock was ahead: none would be read until that time."""
        return kept.usage.covered > self.wall() + PERIOD_SECONDS

    def _kept_for(self, need: UsageNeed) -> _Kept:
        kept = self._kept.get(need.name)
        return kept if kept is not None and kept.need == need else self._usage_for(need, kept)

    def _usage_for(self, need: UsageNeed, kept: _Kept | None) -> _Kept:
        """Return what is kept for a new need: what was `kept` for a similar one, or else the stored usage."""
        days = days_of(need)
        if kept is not None and kept.need.identity == need.identity and kept.usage.days == days:
            usage = kept.usage
        else:
            restored = self.files.restore(need, days)
            # A clock that was set back must not result in usage of the future.
            is_usable = restored is not None and restored.covered <= self.wall()
            usage = restored if restored is not None and is_usable else KnownUsage.empty(days)
        self._kept[need.name] = found = _Kept(need, usage, saved=usage.covered)
        self._found.pop(need.name, None)
        return found

    def _read_part(self, client: PrometheusClient, kept: _Kept, start: float, end: float) -> None:
        resolution, is_recent = self._resolution(client, kept, end), end > self._until() - DAY_SECONDS
        kept.usage.add(read_part(client, kept.need, start, end, resolution, is_recent=is_recent))
        kept.knows_facts = True

    def _resolution(self, client: PrometheusClient, kept: _Kept, end: float) -> Resolution:
        if kept.resolution is None or self.wall() - kept.resolution_at > _RESOLUTION_SECONDS:
            # Prometheus may have less history than is needed: then the oldest parts show nothing.
            found = reader_of(client, kept.need, SizeWindow(end, PERIOD_SECONDS)).resolution()
            if found is None:
                return kept.resolution or USUAL_RESOLUTION
            kept.resolution, kept.resolution_at = found, self.wall()
        return kept.resolution

    def _show_progress(self, need: UsageNeed, end: float, until: float) -> None:
        if need.name not in self._found or isinstance(self._found[need.name], Unknown):
            left = (until - end) / DAY_SECONDS
            self._found[need.name] = Unknown(f"its usage is being read: {left:.1f} days are left", is_awaited=True)

    def _note_failure(self, need: UsageNeed, reason: str) -> None:
        self._retry_at[need.name] = self.wall() + _RETRY_SECONDS
        self._states.failed(
            need.name, f"usage cannot be read: {reason}", level=logging.WARNING, recommendation=need.name
        )
        if need.name not in self._found or isinstance(self._found[need.name], Unknown):
            self._found[need.name] = Unknown(f"its usage cannot be read: {reason}")

    def _publish(self, kept: _Kept) -> None:
        need, usage = kept.need, kept.usage
        from_usage = need.settings.from_usage
        options = SizingOptions(
            SizeSettings(from_usage.percentile_ratio, from_usage.margin_ratio, has_interval=False),
            # Which autoscaler follows which resource is judged by the cluster itself.
            also_with_hpa=True,
            step_seconds=kept.resolution.step_seconds if kept.resolution else PERIOD_SECONDS,
            rate_seconds=kept.resolution.rate_seconds if kept.resolution else PERIOD_SECONDS,
        )
        by_workload = group_values((record.workload, record) for record in usage.sizes(options))
        last = usage.last_samples()
        found: UsageInputs = {
            target: Unknown(f"Prometheus has no usage of {target}, or kube-state-metrics does not know its pods")
            for target in need.targets
        }
        for workload, records in by_workload.items():
            target = need.target_of(workload)
            if target is not None and workload in last:
                value = WorkloadUsage(tuple(records), usage.facts.autoscalers.get(workload))
                found[target] = Observed(value, last[workload])
            elif target is not None:
                found[target] = Unknown(f"CPU or memory of {target} is not measured: {_WHY_UNMEASURED}")
        for workload, pod in usage.doubled.items():
            target = need.target_of(workload)
            if target is not None:
                found[target] = Unknown(
                    f"several series are of container {pod.container!r} of pod {pod.namespace}/{pod.pod}: "
                    "aggregate, such as with max by (namespace, pod, container)"
                )
        if usage.left_out:
            reason = f"usage of {usage.left_out} containers is left out: at most {MOST_CONTAINERS} are kept"
            self._states.failed(f"{need.name}/room", reason, level=logging.WARNING, recommendation=need.name)
        else:
            self._states.recovered(f"{need.name}/room", "usage of all containers is kept again")
        self._found[need.name] = found
