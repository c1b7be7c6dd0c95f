"""Usage in series that nobody expects: gaps, pods that report on others, no owners, and several clusters."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.cluster.values.state import Observed, Unknown
from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
from recommender.decisions.record import TargetReference
from recommender.running.usage import usage_queries
from recommender.running.usage.prometheus_vectors import vector
from tests.recommender.commands.sized_pods import DAY, END, MIB, Exposition, SizedPod
from tests.recommender.running.usage.kept_usage import (
    API,
    EACH,
    HISTORY,
    MEMORY,
    NOW,
    WEB,
    WEB_SERIES,
    flat,
    keeper,
    sizes,
)
from tests.support.annotated_answers import IGNORED, AnnotatedClient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from recommender.kinds.resources.resources_settings import FromUsage
    from tests.support.prometheus import ScrapedPrometheus


@pytest.mark.parametrize(("restarts", "kills"), [(1.0, 0), (2.0, 1)], ids=["an earlier kill", "a kill in the gap"])
def test_a_gap_in_kube_state_metrics_neither_invents_nor_hides_kills(
    start_prometheus: Callable[..., ScrapedPrometheus], restarts: float, kills: int
) -> None:
    found = Exposition()
    known = [age for age in range(7200, -1, -60) if not 600 < age < 1500]
    reason = WEB_SERIES | {"reason": "OOMKilled"}
    found.add_object("kube_pod_container_status_last_terminated_reason", reason, [END - age for age in known])
    counted = ((END - age, 1.0 if age > 1000 else restarts) for age in known)
    found.add("kube_pod_container_status_restarts_total", WEB_SERIES, counted)
    with PrometheusClient(PrometheusSettings(start_prometheus(history=found.text()).url)) as client:
        assert len(vector(client, usage_queries.kills("", 900), END, ("pod",))) == kills


def test_metrics_that_a_pod_exports_about_other_containers_are_not_its_own_usage(
    start_prometheus: Callable[..., ScrapedPrometheus], tmp_path: Path
) -> None:
    found = Exposition()
    pod = SizedPod("shop", "web-1-0", ("ReplicaSet", "web-1"), flat(0.2), flat(3e8), seconds=DAY)
    found.add_pod(pod)
    exported = {"exported_namespace": "lab", "exported_pod": "db-0", "exported_container": "db"}
    found.add_pod(replace(pod, cores=flat(50.0), memory=flat(9e11), labels=exported))
    found.add_replica_set("shop", "web-1", "web")
    with PrometheusClient(PrometheusSettings(start_prometheus(history=found.text()).url)) as client:
        kept = keeper(client, tmp_path)
        kept.read(EACH)
    record = sizes(kept)[WEB]
    assert record.cpu is not None
    assert record.memory is not None
    assert record.cpu.target < 1000
    assert record.memory.target < 2**30


def test_usage_has_the_newest_time_at_which_cpu_and_memory_were_both_read(
    start_prometheus: Callable[..., ScrapedPrometheus], tmp_path: Path
) -> None:
    found = Exposition()
    pods = [
        SizedPod("shop", f"{name}-1-a", ("ReplicaSet", f"{name}-1"), flat(0.3), flat(1e9), seconds=DAY)
        for name in ("web", "api", "both")
    ]
    for pod in pods:
        found.add_pod(pod)
        found.add_replica_set("shop", pod.owner[1], pod.owner[1].removesuffix("-1"))
    # Of one there is no CPU at all, and of the other memory has ended an hour ago.
    lines = [
        line
        for line in found.text().splitlines()
        if not (line.startswith("container_cpu") and 'pod="web' in line)
        and not (line.startswith(MEMORY) and 'pod="api' in line and int(line.split()[-1]) > END - 3600)
    ]
    both = TargetReference("apps/v1", "Deployment", "shop", "both")
    with PrometheusClient(PrometheusSettings(start_prometheus(history="\n".join([*lines, ""])).url)) as client:
        kept = keeper(client, tmp_path)
        kept.wall = lambda: NOW - DAY / 2
        kept.read(EACH)
        kept.wall = lambda: NOW
        kept.read(EACH)
    usage = kept.inputs()["sizes"]
    assert not isinstance(usage, Unknown)
    assert isinstance(usage[WEB], Unknown)
    times = {target: each.time for target, each in usage.items() if isinstance(each, Observed)}
    assert times == {API: END - DAY / 2, both: END}


def test_impossible_requests_do_not_count(start_prometheus: Callable[..., ScrapedPrometheus], tmp_path: Path) -> None:
    found = Exposition()
    for number, requests in enumerate(({"cpu": math.inf, "memory": 1e18}, {"cpu": 1.0, "memory": 512.0 * MIB})):
        pod = SizedPod(
            "shop", f"web-1-{number}", ("ReplicaSet", "web-1"), flat(0.2), flat(3e8),
            requests=requests, seconds=DAY, killed_at=1800,
        )  # fmt: skip
        found.add_pod(pod)
    found.add_replica_set("shop", "web-1", "web")
    with PrometheusClient(PrometheusSettings(start_prometheus(history=found.text()).url)) as client:
        kept = keeper(client, tmp_path)
        kept.read(EACH)
    record = sizes(kept)[WEB]
    assert record.cpu is not None
    assert record.memory is not None
    assert (record.cpu.request, record.memory.request) == (1000, 512 * MIB)
    assert record.memory.target < 2**30


def test_rare_scrapes_are_noticed_if_prometheus_has_less_history_than_the_entry(
    start_prometheus: Callable[..., ScrapedPrometheus], tmp_path: Path
) -> None:
    """The oldest part of the history is read first, and nothing shows there how often the kubelets are scraped."""
    found = Exposition()
    found.add_pod(SizedPod("shop", "web-1-0", ("ReplicaSet", "web-1"), flat(0.2), flat(3e8), seconds=DAY))
    found.add_replica_set("shop", "web-1", "web")
    lines = [
        line
        for line in found.text().splitlines()
        if not line.startswith("container_") or int(line.split()[-1]) % 600 == END % 600
    ]
    with PrometheusClient(PrometheusSettings(start_prometheus(history="\n".join([*lines, ""])).url)) as client:
        kept = keeper(client, tmp_path)
        kept.read(EACH)
    record = sizes(kept)[WEB]
    assert record.cpu is not None
    assert record.cpu.target >= 200


@pytest.fixture(scope="module")
def annotated(start_prometheus: Callable[..., ScrapedPrometheus]) -> Iterator[AnnotatedClient]:
    found = Exposition()
    found.add_pod(SizedPod("shop", "web-1-0", ("ReplicaSet", "web-1"), flat(0.2), flat(3e8), seconds=DAY))
    found.add_replica_set("shop", "web-1", "web")
    with AnnotatedClient(PrometheusSettings(start_prometheus(history=found.text()).url)) as client:
        yield client


@pytest.mark.parametrize(
    ("warning", "usage", "is_known"),
    [
        (IGNORED, HISTORY, True),
        ("PromQL warning: encountered a mix of histograms and floats for aggregation (1:5)", HISTORY, True),
        ("a store did not answer", HISTORY, False),
        (IGNORED, replace(HISTORY, memory=f"max by (namespace, pod, container) ({MEMORY})"), False),
        (IGNORED, replace(HISTORY, cpu=usage_queries.cpu_usage("", 300)), False),
    ],
    ids=["ignored", "mixed", "a store", "memory of the configuration", "CPU of the configuration"],
)
def test_a_native_histogram_under_the_name_of_a_metric_of_containers_takes_nobodys_usage_away(
    annotated: AnnotatedClient, tmp_path: Path, warning: str, usage: FromUsage, *, is_known: bool
) -> None:
    """Any scraped pod can export one. The query engine of Prometheus 3 leaves it out, and says so in its answer."""
    annotated.warning = warning
    kept = keeper(annotated, tmp_path)
    need = replace(EACH, settings=replace(EACH.settings, from_usage=usage))
    kept.read(need)
    found = kept.inputs()[need.name]
    assert isinstance(found, Unknown) is not is_known
    if isinstance(found, Unknown):
        assert f"the answer may be partial: {warning}" in found.reason
    else:
        assert found.keys() == {WEB}


def test_usage_without_owners_is_unknown(start_prometheus: Callable[..., ScrapedPrometheus], tmp_path: Path) -> None:
    only_usage = Exposition()
    only_usage.add("container_memory_working_set_bytes", WEB_SERIES, ((END - age, 1e9) for age in range(DAY, -1, -300)))
    with PrometheusClient(PrometheusSettings(start_prometheus(history=only_usage.text()).url)) as client:
        found = keeper(client, tmp_path)
        found.read(EACH)
    unknown = found.inputs()["sizes"]
    assert isinstance(unknown, Unknown)
    assert "kube_pod_owner has no series" in unknown.reason


def test_series_of_several_clusters_are_refused_with_a_hint_how_to_select_one(
    start_prometheus: Callable[..., ScrapedPrometheus], tmp_path: Path
) -> None:
    both = Exposition()
    for cluster in ("eu", "us"):
        labels = WEB_SERIES | {"cluster": cluster}
        both.add("container_memory_working_set_bytes", labels, ((END - age, 1e9) for age in range(DAY, -1, -300)))
    with PrometheusClient(PrometheusSettings(start_prometheus(history=both.text()).url)) as client:
        found = keeper(client, tmp_path)
        found.read(EACH)
    unknown = found.inputs()["sizes"]
    assert isinstance(unknown, Unknown)
    assert "prometheus: {matchers: 'cluster=" in unknown.reason
