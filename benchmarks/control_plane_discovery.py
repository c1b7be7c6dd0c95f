"""Discovery while the adapter lists thousands of metrics: what clients get, how long it takes, how large it is.

kubectl, the namespace controller, the garbage collector and the HPA controller all read discovery from the API server.
An adapter can make it slow, make it large, or make a whole group version `Stale`, so that clients leave it out.
"""

from __future__ import annotations

import json
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from benchmarks.control_plane_stage import LISTS, PATIENCE_SECONDS
from benchmarks.tally import quantile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from benchmarks.control_plane_stage import Stage
    from tests.e2e.controlplane.client import Reply
    from tests.e2e.controlplane.cluster import Cluster

SERIES: Final = "listed_load"
METRICS_A_NAME: Final = 2
"""Each name yields a metric of pods and one of their namespace."""
AGGREGATED: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
RULE: Final[Mapping[str, Any]] = {
    "seriesQuery": f'{{__name__=~"^{SERIES}_.*",namespace!="",pod!=""}}',
    "resources": {"overrides": {"namespace": {"resource": "namespace"}, "pod": {"resource": "pod"}}},
    "metricsQuery": "sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)",
}
ASKED_IN_A_ROW: Final = 10
CUSTOM_METRICS: Final = "custom.metrics.k8s.io"


@dataclass(frozen=True, slots=True)
class Timed:
    """The times and errors of one kind of request, sent some times."""

    seconds: tuple[float, ...]
    """Seconds of the good answers, ascending."""
    errors: int
    size: int | None
    """Bytes of the last good answer, uncompressed."""

    def milliseconds(self, share: float) -> float | None:
        """Return the time that this share of the good answers did not exceed."""
        found = quantile(self.seconds, share)
        return None if found is None else round(1000 * found, 2)


@contextmanager
def exported(stage: Stage, metrics: int) -> Iterator[None]:
    """Export the series for this many metrics until the block ends."""
    names = [f"{SERIES}_{number:06d}" for number in range(metrics // METRICS_A_NAME)]
    try:
        for name in names:
            stage.metrics.set(name, 1.0, namespace="default", pod="listed")
        # One query for each name would take far too long; a regular expression needs only one query.
        count = f'count({{__name__=~"{SERIES}_.*"}}) == {len(names)}'
        stage.cluster.wait_for("all series", lambda: stage.prometheus.query(count), PATIENCE_SECONDS)
        yield
    finally:
        for name in names:
            stage.metrics.set(name, None, namespace="default", pod="listed")


def wait_for_lists(cluster: Cluster, metrics: int) -> None:
    """Wait until every replica lists all metrics: the API server picks one of them for each request."""
    alike = 0

    def all_are_there() -> bool:
        nonlocal alike
        full = all(len(listed(cluster, path)) == metrics for path in LISTS)
        alike = alike + 1 if full else 0
        return alike >= ASKED_IN_A_ROW

    cluster.wait_for(f"{metrics} metrics in both versions", all_are_there, PATIENCE_SECONDS)


def listed(cluster: Cluster, path: str) -> set[str]:
    """Return the names in a list of metrics, as kubectl prints it."""
    document = json.loads(cluster.kubectl("get", "--raw", path))
    return {one["name"] for one in document["resources"]}


def freshness(document: Mapping[str, Any]) -> dict[str, str]:
    """Return the freshness of each group version, as the aggregated discovery document states it."""
    return {
        f"{group['metadata'].get('name', '')}/{version['version']}": version["freshness"]
        for group in document["items"]
        for version in group["versions"]
    }


def aggregated(cluster: Cluster) -> Reply:
    """Return the API server's aggregated discovery document of all groups, which clients ask for first."""
    return cluster.client.ask("GET", "/apis", headers={"Accept": AGGREGATED})


def timed(ask: Callable[[], int | None], times: int) -> Timed:
    """Call `ask` some times; it returns the size of a good answer, and None for any other, whose time is ignored."""
    seconds: list[float] = []
    size = None
    for _ in range(times):
        began = time.perf_counter()
        if (found := ask()) is not None:
            seconds.append(time.perf_counter() - began)
            size = found
    return Timed(tuple(sorted(seconds)), times - len(seconds), size)
