"""`init` decides which labels name objects, which workload a pod belongs to, and which target an average needs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.commands.init.proposal import file_names, target_of
from adapter.commands.init.trying import values_of
from adapter.foundation.exporters.known_metrics import MetricSubject
from adapter.foundation.exporters.pod_names import LikelyWorkload, workload_of
from adapter.foundation.exporters.recognition import RecognisedMetric, UnusedMetric, identifying_labels
from adapter.foundation.exporters.table import KNOWN
from adapter.foundation.objects.names import ObjectName
from adapter.foundation.sources.prometheus.answers.decoding import Sample

BY_NAME = {known.name: known for known in KNOWN}
CONNECTIONS = BY_NAME["websocket_connections"]
RABBITMQ = BY_NAME["rabbitmq_queue_messages"]


def test_values_of_objects_with_invalid_names_are_left_out() -> None:
    metric = RecognisedMetric(CONNECTIONS, "namespace", "pod", {}, {})
    values = {("shop", "web-0"): 3.0, ("Shop", "web-1"): 9.0, ("shop", "a/b"): 9.0, ("shop", "web-2"): float("nan")}
    samples = [Sample({"namespace": namespace, "pod": pod}, value, 0.0) for (namespace, pod), value in values.items()]
    assert values_of(metric, samples) == {ObjectName("shop", "web-0"): 3.0}


@pytest.mark.parametrize("value", [1.7e308, -1e300, 9.3e15, float("inf")])
def test_a_value_that_is_too_large_to_be_served_does_not_count(value: float) -> None:
    metric = RecognisedMetric(CONNECTIONS, "namespace", "pod", {}, {})
    assert values_of(metric, [Sample({"namespace": "shop", "pod": "web-0"}, value, 0.0)]) == {}


def test_known_metrics_have_unique_names() -> None:
    assert len({(known.subject is MetricSubject.EXTERNAL, known.name) for known in KNOWN}) == len(KNOWN)


@pytest.mark.parametrize(
    ("groups", "labels"),
    [
        ([{"namespace": "shop", "pod": "web-0"}], ("namespace", "pod")),
        ([{"kubernetes_namespace": "shop", "kubernetes_pod_name": "web-0"}], ("kubernetes_namespace",)),
        ([{"namespace": "shop", "pod": "../x"}, {"namespace": "shop", "pod_name": "w-0"}], ("namespace", "pod_name")),
    ],
)
def test_objects_are_identified_by_the_labels_with_the_most_valid_names(
    groups: list[dict[str, str]], labels: tuple[str, ...]
) -> None:
    found = identifying_labels(CONNECTIONS, groups)

    assert isinstance(found, RecognisedMetric)
    assert (found.namespace_label, found.object_label)[: len(labels)] == labels


@pytest.mark.parametrize("groups", [[{"pod": "web-0"}], [{"namespace": "shop"}], [{"namespace": "No", "pod": "x"}]])
def test_series_without_an_object_are_not_served(groups: list[dict[str, str]]) -> None:
    found = identifying_labels(CONNECTIONS, groups)

    assert isinstance(found, UnusedMetric)
    assert "namespace" in found.fix


def test_a_queue_is_selected_by_labels_that_are_valid_in_a_selector() -> None:
    found = identifying_labels(RABBITMQ, [{"queue": "jobs", "vhost": "/"}, {"queue": "a b", "vhost": "/"}])

    assert isinstance(found, RecognisedMetric)
    assert (found.selector, found.unselectable) == ({"queue": "jobs"}, {"vhost": "/"})


@pytest.mark.parametrize(
    ("pod", "kind", "name"),
    [
        ("web-7d9f8b6c5d-x2k4q", "Deployment", "web"),
        ("my-web-7d9f8b6c5d-x2k4q", "Deployment", "my-web"),
        ("db-0", "StatefulSet", "db"),
        ("db-12", "StatefulSet", "db"),
    ],
)
def test_the_workload_follows_from_the_name_of_a_pod(pod: str, kind: str, name: str) -> None:
    assert workload_of(ObjectName("shop", pod)) == LikelyWorkload("shop", kind, name)


@pytest.mark.parametrize(
    "pod", ["web", "job-x2k4q", "cron-29456872-x2k4q", "../../etc-0", "A-0", "-0", "x/y-7d9f8b6c5d-x2k4q"]
)
def test_other_pod_names_have_no_workload(pod: str) -> None:
    assert workload_of(ObjectName("shop", pod)) is None


def test_workloads_with_the_same_name_get_different_files() -> None:
    workloads = [
        LikelyWorkload("a", "Deployment", "web"),
        LikelyWorkload("b", "Deployment", "web"),
        LikelyWorkload("b", "StatefulSet", "db"),
    ]

    assert list(file_names(workloads).values()) == ["hpa-a.web.yaml", "hpa-b.web.yaml", "hpa-db.yaml"]


def test_a_workload_with_a_dot_in_its_name_gets_its_own_file() -> None:
    owners = (("a", "web"), ("b", "web"), ("x", "a.web"), ("y", "a.web-2"))
    names = file_names(LikelyWorkload(namespace, "Deployment", name) for namespace, name in owners)
    assert list(names.values()) == ["hpa-a.web.yaml", "hpa-b.web.yaml", "hpa-a.web-2.yaml", "hpa-a.web-2-2.yaml"]


@given(st.floats(min_value=0.001, max_value=1e12))
def test_a_target_is_at_or_slightly_above_the_average(average: float) -> None:
    assert average <= target_of(average) <= average * 1.1 + 0.002


def test_a_target_without_load_is_one() -> None:
    assert target_of(0.0) == 1.0
