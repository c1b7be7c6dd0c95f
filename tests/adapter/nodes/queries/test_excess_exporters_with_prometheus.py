"""A tenant's pod that exports the load of far more nodes than there are, in a real Prometheus."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from adapter.foundation.cluster.values.state import NodeAddress
from adapter.foundation.promql.narrowing import Matchers
from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
from adapter.foundation.time.pace import UNPACED
from adapter.nodes.model.loads import LoadResource
from adapter.nodes.model.scheduling_settings import SchedulingSettings
from adapter.nodes.queries import series_survey
from adapter.nodes.queries.expressions import PART_LABEL, RULES
from adapter.nodes.queries.refresher import SampleRefresher
from tests.adapter.nodes.names.cluster_nodes import cluster_node
from tests.adapter.nodes.queries.exporters import NodeExporter, text_of
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.nodes.queries.refresh_results import RefreshResult
    from tests.support.prometheus import ScrapedPrometheus

AT = int(time.time() // 240) * 240 - 7200
MADE_UP = 1100
SURVEYED_WITHIN_SECONDS = 60.0
NODES = (
    cluster_node("x", NodeAddress("InternalIP", "10.0.0.1")),
    cluster_node("y", NodeAddress("InternalIP", "10.0.0.2")),
)


OURS = [NodeExporter(f"10.0.0.{last}:9100", labels={"job": "pods", "namespace": "ours"}) for last in (1, 2)]
EVIL = {"job": "pods", "namespace": "evil"}


def made_up(modes: tuple[str, ...], label: str) -> list[NodeExporter]:
    """Return exporters of one pod; its label `label` has another value for each of them."""
    return [
        NodeExporter(
            "10.9.9.9:8080",
            labels={**EVIL, "node": f"made-up-{number}", label: f"made-up-{number}"},
            cpus=1,
            modes=modes,
            memory=False,
        )
        for number in range(MADE_UP)
    ]


def refreshed_after_a_survey(client: PrometheusClient) -> RefreshResult:
    """Return the first refresh that queries no made-up nodes.

    On a busy machine, Prometheus may answer a survey too late. The next one is a minute later.
    """
    minute = 0
    refresher = SampleRefresher(client, SchedulingSettings(), refresh_seconds=100.0, monotonic=lambda: 61.0 * minute)

    def refreshed() -> RefreshResult | None:
        nonlocal minute
        result = refresher.refresh(AT, None, NODES)
        minute += 1
        return result if len(result.unmapped) < MADE_UP else None

    found = until(refreshed, SURVEYED_WITHIN_SECONDS)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("modes", "label", "labels", "source"),
    [
        (("idle", "user"), "node", EVIL, "job pods in evil"),
        (("user",), "node", EVIL, "job pods in evil"),
        # The scrape configuration sets only one of the two labels for a namespace, so pods may export the other one.
        (("idle", "user"), "kubernetes_namespace", {"namespace": "evil"}, "what is scraped in evil"),
    ],
    ids=["all modes", "only a busy one", "with a namespace label of their own"],
)
def test_made_up_nodes_are_not_queried(
    start_prometheus: Callable[..., ScrapedPrometheus],
    modes: tuple[str, ...],
    label: str,
    labels: dict[str, str],
    source: str,
) -> None:
    prometheus = start_prometheus(history=text_of([*OURS, *made_up(modes, label)], AT - 60.0, AT))
    with PrometheusClient(PrometheusSettings(prometheus.url)) as client:
        result = refreshed_after_a_survey(client)
    assert not result.failures
    assert not np.isnan(result.samples.grids[LoadResource.CPU].values[:, -1]).any()
    (named,) = result.unmapped
    assert named.labels == labels
    assert f"{source} exports the load of {MADE_UP} nodes" in named.refused_for


def test_made_up_nodes_are_not_queried_if_every_query_has_matchers(
    start_prometheus: Callable[..., ScrapedPrometheus],
) -> None:
    prometheus = start_prometheus(history=text_of([*OURS, *made_up(("idle", "user"), "node")], AT - 60.0, AT))
    settings = PrometheusSettings(prometheus.url, matchers=Matchers.read('job="pods"'))
    with PrometheusClient(settings) as client:
        result = refreshed_after_a_survey(client)
    assert not result.failures
    (named,) = result.unmapped
    assert f"job pods in evil exports the load of {MADE_UP} nodes" in named.refused_for


def test_made_up_recordings_are_not_queried(start_prometheus: Callable[..., ScrapedPrometheus]) -> None:
    recorded = [(one.instance, "ours") for one in OURS] + [(f"made-up-{number}:9", "evil") for number in range(MADE_UP)]
    samples = [
        f'{RULES[LoadResource.MEMORY]}{{instance="{instance}",job="pods",namespace="{namespace}"}} 0.5 {at}'
        for instance, namespace in recorded
        for at in range(AT - 60, AT + 1, 15)
    ]
    scraped = text_of(OURS, AT - 60.0, AT).removesuffix("# EOF\n")
    prometheus = start_prometheus(
        history="\n".join([f"{scraped}# TYPE {RULES[LoadResource.MEMORY]} gauge", *samples, "# EOF", ""])
    )
    with PrometheusClient(PrometheusSettings(prometheus.url)) as client:
        result = refreshed_after_a_survey(client)
    assert (result.failures, result.unmapped) == ({}, ())
    assert result.samples.grids[LoadResource.MEMORY].values[:, -1] == pytest.approx([0.6, 0.6])


def test_made_up_gpus_are_not_queried(start_prometheus: Callable[..., ScrapedPrometheus]) -> None:
    ours = [gpu(f"10.0.0.{last}:9400", "ours") for last in (1, 2)]
    crowd = [gpu(f"made-up-{number}:9400", "evil") for number in range(MADE_UP)]
    prometheus = start_prometheus(history="".join([*ours, *crowd, "# EOF\n"]))
    with PrometheusClient(PrometheusSettings(prometheus.url)) as client:
        result = refreshed_after_a_survey(client)
    assert not result.failures
    assert not np.isnan(result.samples.grids[LoadResource.GPU].values[:, -1]).any()
    (named,) = result.unmapped
    assert named.labels == EVIL


def gpu(instance: str, namespace: str) -> str:
    """Return the samples of a DCGM exporter's only GPU, in a job that all annotated pods share."""
    labels = f'instance="{instance}",job="pods",namespace="{namespace}",gpu="0"'
    return "".join(f"DCGM_FI_DEV_GPU_UTIL{{{labels}}} 50 {at}\n" for at in range(AT - 60, AT + 1, 15))


def test_the_survey_stays_small_whatever_labels_pods_make_up(
    start_prometheus: Callable[..., ScrapedPrometheus], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(series_survey, "MOST_SOURCES", 50)
    crowd = made_up(("idle", "user"), "kubernetes_namespace")
    elsewhere = [replace(one, labels={**one.labels, "cluster": "elsewhere"}) for one in crowd]
    exporters = [*OURS, *crowd, *elsewhere]
    prometheus = start_prometheus(history=text_of(exporters, AT - 60.0, AT))
    with PrometheusClient(PrometheusSettings(prometheus.url)) as client:
        answer = client.instant(series_survey.survey_query((), with_past=True), timeout_seconds=30.0, at=AT)
        rows = Counter(sample.labels[PART_LABEL] for batch in answer.batches(UNPACED) for sample in batch)
    assert {part: count for part, count in rows.items() if count > 50} == {}
    assert rows["scrapes"] == len(OURS)
