"""Logs the results of refreshes: each condition when it begins and when it ends, not at each refresh."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from adapter.foundation.reports.counts import count_of, first_names
from adapter.foundation.service.runtime.logs import StateLog, fields
from adapter.nodes.exporters.claims import Source, source_of, source_text
from adapter.nodes.model.loads import LoadResource

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from adapter.nodes.model.loads import MeasuringJob, UnmappedSeries
    from adapter.nodes.model.nodes_snapshot import ScoreBasis
    from adapter.nodes.queries.refresh_results import RefreshResult

_log = logging.getLogger(__name__)

_SHOWN: Final = 3
_LONGEST_SHOWN: Final = 300
_MOST_REMEMBERED: Final = 100_000
_NUMBER: Final = re.compile(r"[0-9][0-9.]*")
"""A number in a message. Messages that differ only in numbers are not news: each query has its own time limit."""
_COUNT: Final = re.compile(r"\([0-9]+\)")

BASIS_TEXTS: Final = {
    "none": "no node has usable metrics: for five minutes all nodes get the middle score, then best fit by requests "
    "if nodes and pods are known",
    "requests": "no node has had usable metrics for five minutes: scores rest on the requests of pods",
}


@dataclass(frozen=True, slots=True, eq=False)
class _Outage:
    """Why one or more resources have failed since the same time."""

    cause: str
    """The message without its numbers."""
    ends: Mapping[LoadResource, int]
    """The end of the samples of each resource before the first one failed, in Unix seconds."""


class RefreshReports:
    """Remembers what was logged. Not thread-safe."""

    def __init__(self) -> None:
        self._states = StateLog(_log)
        self._unmapped: set[str] = set()
        self._left_out: frozenset[str] = frozenset()
        self._jobs: tuple[Source, ...] = ()
        self._refused: frozenset[Source] = frozenset()
        """The sources whose series were refused in the last refresh."""
        self._failed: dict[LoadResource, tuple[str, int]] = {}
        """Why a resource's newest samples are missing, and the end of its samples when they began to be missing."""
        self._outages: dict[LoadResource, _Outage] = {}
        """Why each of these resources fails; logged for it or for another one."""
        self._ended: dict[LoadResource, _Outage] = {}
        """The outages of resources that have newer samples again, while other resources still lack them."""
        self._ends: Mapping[LoadResource, int] = dict.fromkeys(LoadResource, 0)
        """The end of the samples of each resource after the last refresh, in Unix seconds."""

    def log_unmapped(self, series: Collection[UnmappedSeries]) -> None:
        """Log each instance that matches no node, once."""
        new = [one for one in series if one.instance not in self._unmapped]
        if not new:
            return
        if len(self._unmapped) >= _MOST_REMEMBERED:
            # Instances that are gone make room.
            self._unmapped.intersection_update(one.instance for one in series)
        self._unmapped.update(one.instance for one in new)
        _log.warning(
            "series cannot be mapped to a node: GET /nodes/unmapped lists them with the repair",
            extra=fields(
                count=len(new),
                instances=first_names((one.instance or "(none)" for one in new), _SHOWN),
                fix=new[0].fix,
            ),
        )

    def exporters(self, result: RefreshResult) -> None:
        """Log the jobs from which the load of nodes is taken when they change, and jobs whose series are refused."""
        jobs = tuple(sorted(job.labels for job in result.measured_by))
        if jobs != self._jobs:
            self._jobs = jobs
            shown = "; ".join(_job_text(job) for job in result.measured_by[:_SHOWN])
            _log.info("the load of nodes is taken from these jobs", extra=fields(count=len(jobs), jobs=shown))
        for before, now in sorted(result.moves):
            _log.warning(
                "nodes are measured by another job from now on: if it is not yours, name the right one in matchers",
                extra=fields(before=source_text(before), now=source_text(now)),
            )
        refused = {source_of(one.labels): one for one in result.unmapped if one.refused_for}
        new = sorted(refused.keys() - self._refused)
        for source in new[:_SHOWN]:
            one = refused[source]
            _log.warning(
                "series of a job do not count for the load of nodes: GET /nodes/unmapped lists them",
                extra=fields(job=source_text(source), instance=one.instance, why=one.refused_for, fix=one.fix),
            )
        if len(new) > _SHOWN:
            _log.warning(
                "series of further jobs do not count for the load of nodes: GET /nodes/unmapped lists them",
                extra=fields(count=len(new) - _SHOWN),
            )
        self._refused = frozenset(refused)

    def objects(self, problems: Collection[str]) -> None:
        """Log which objects are left out, in whole or in part, and why: each when it is first left out."""
        # The number of pods in a text changes all the time.
        known = {_COUNT.sub("", problem): problem for problem in problems}
        new = [problem for key, problem in known.items() if key not in self._left_out]
        self._left_out = frozenset(known)
        if new:
            shown = "; ".join(problem[:_LONGEST_SHOWN] for problem in new[:_SHOWN])
            _log.warning("objects are left out, or parts of them: %s", shown, extra=fields(count=len(new)))

    def failures(self, result: RefreshResult) -> Mapping[LoadResource, str]:
        """Return why the newest samples of resources are missing, and log when that changes.

        A refresh does not always ask for each resource, so a failure stands until the resource has newer samples.
        """
        ended = [resource for resource in self._failed if _has_ended(result, resource, self._failed[resource][1])]
        for resource, (why, end) in self._failed.items():
            # After the clock was set back, the samples end earlier than before.
            self._failed[resource] = why, min(end, _end(result, resource))
        for resource in ended:
            del self._failed[resource]
            self._ended[resource] = self._outages.pop(resource)
        for resource, why in result.failures.items():
            _, end = self._failed.get(resource, ("", _end(result, resource)))
            self._failed[resource] = why, end
        self._log_causes(result)
        self._log_ends(result)
        self._ends = {resource: _end(result, resource) for resource in LoadResource}
        return {resource: why for resource, (why, _) in self._failed.items()}

    def _log_causes(self, result: RefreshResult) -> None:
        """Log each cause when the first of the resources that it reaches fails.

        One outage reaches the resources in several refreshes, since only one query of a refresh learns of it. A
        resource that has had newer samples meanwhile fails for a reason of its own.
        """
        new: dict[_Outage, list[LoadResource]] = {}
        # Causes that only swap their resources are not news, so what was known before this refresh stays until its end.
        before = (*self._outages.values(), *self._ended.values())
        for resource, why in result.failures.items():
            cause = _NUMBER.sub("", why)
            self._ended.pop(resource, None)
            if resource in self._outages and self._outages[resource].cause == cause:
                continue
            known = [one for one in (*before, *new) if one.cause == cause]
            outage = next((one for one in known if self._ends[resource] <= one.ends[resource]), None)
            if outage is None:
                outage = _Outage(cause, self._ends)
                new[outage] = []
            if outage in new:
                new[outage].append(resource)
            self._outages[resource] = outage
        for resources in new.values():
            shown, why = ", ".join(resources), result.failures[resources[0]]
            _log.error("the newest samples of %s are missing: %s", shown, why, extra=fields(resources=shown, cause=why))

    def _log_ends(self, result: RefreshResult) -> None:
        """Log the end of each outage, once it reaches no resource any more."""
        over = [one for one, outage in self._ended.items() if outage not in self._outages.values()]
        for resource in over:
            del self._ended[resource]
        again = [one for one in over if one not in result.without_series]
        without = [one for one in over if one in result.without_series]
        for resources, message in (
            (again, "the newest samples of %s are available again"),
            (without, "Prometheus answers again: it has no series of %s"),
        ):
            if resources:
                shown = ", ".join(resources)
                _log.info(message, shown, extra=fields(resources=shown))

    def basis(self, basis: ScoreBasis) -> None:
        """Log the basis of scores when it is something other than metrics, and when it is metrics again."""
        if basis == "metrics":
            self._states.recovered("basis", "scores rest on metrics again")
        else:
            self._states.failed("basis", BASIS_TEXTS[basis], level=logging.WARNING)

    def names(self, reason: str | None) -> None:
        """Log once why node names come from the label `instance`; `reason` is None if they come from Node objects."""
        if reason is None:
            self._states.recovered("names", "nodes are known: series are mapped to them")
        else:
            message = f"the label instance, without its port, is the name of a node: {reason}"
            self._states.failed("names", message, level=logging.WARNING)


def _job_text(job: MeasuringJob) -> str:
    counts = ", ".join(f"{resource} of {count_of(nodes, 'node')}" for resource, nodes in job.nodes.items())
    return f"{source_text(job.labels)} ({counts})"


def _has_ended(result: RefreshResult, resource: LoadResource, end: int) -> bool:
    """Return whether a failure has ended: the resource has samples after `end`, or Prometheus has no series of it."""
    is_known = _end(result, resource) > end or resource in result.without_series
    return is_known and resource not in result.failures


def _end(result: RefreshResult, resource: LoadResource) -> int:
    grid = result.samples.grids.get(resource)
    return 0 if grid is None else grid.end
