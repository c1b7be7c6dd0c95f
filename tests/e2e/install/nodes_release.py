"""The objects that the chart renders for the loads of nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.helm.chart import CHART, Object, Release, component_of

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME, SCHEDULER = "tidewatch-nodes", "tidewatch-scheduler"
SHIPPED = CHART / "files" / "scheduler"


def of_component(release: Release, component: str, *kinds: str) -> list[Object]:
    return [one for one in release.objects if one["kind"] in kinds and component_of(one) == component]


def pods(release: Release) -> Iterator[Object]:
    """Yield the specification of each kind of pod that belongs to nodes."""
    yield release.nodes
    if of_component(release, "scheduler", "Deployment"):
        yield release.scheduler
