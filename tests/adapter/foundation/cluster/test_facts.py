"""Decoded objects become facts; an object that lacks something is named, with what is wrong with it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from adapter.foundation.cluster.facts.autoscalers import autoscaler_of
from adapter.foundation.cluster.facts.objects import FactError, node_of, ready_addresses, service_of
from adapter.foundation.cluster.forms.autoscalers import AutoscalerForm
from adapter.foundation.cluster.forms.objects import NodeForm, SliceForm
from adapter.foundation.cluster.values.state import Autoscaler, AutoscalerMetric, ClusterNode, Taint
from adapter.foundation.objects.quantities import parse_quantity
from adapter.foundation.objects.selectors import parse_selector
from tests.support.cluster_objects import autoscaler_object, endpoint, node_object, slice_object

WEB = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}


def test_a_node_keeps_what_decisions_depend_on() -> None:
    content = node_object("n1", "3920m", labels={"pool": "a"}, taints=["gpu"], unschedulable=True, ready="Unknown")
    found = node_of(msgspec.convert(content, NodeForm))
    assert found == ClusterNode(
        name="n1",
        labels={"pool": "a"},
        taints=(Taint("gpu", "", "NoSchedule"),),
        unschedulable=True,
        conditions={"MemoryPressure": "False", "Ready": "Unknown"},
        created=1793491200.0,
        capacity={key: parse_quantity(text) for key, text in content["status"]["capacity"].items()},
        allocatable={key: parse_quantity(text) for key, text in content["status"]["allocatable"].items()},
    )
    assert not found.ready


def test_a_heartbeat_leaves_a_node_equal() -> None:
    before, after = (
        node_of(msgspec.convert(node_object("n1", heartbeat=f"2026-11-22T06:0{minute}:00Z"), NodeForm))
        for minute in (1, 2)
    )
    assert before == after


def test_an_hpa_keeps_its_target_limits_tolerances_and_metrics() -> None:
    content = autoscaler_object(
        "web",
        "shop",
        WEB,
        {"scaledobject.keda.sh/name": "web"},
        minReplicas=2,
        behavior={"scaleUp": {"tolerance": "50m"}, "scaleDown": {"tolerance": 0}},
        metrics=[
            {"type": "Resource", "resource": {"name": "cpu"}},
            {
                "type": "Pods",
                "pods": {
                    "metric": {"name": "connections"},
                    "target": {"type": "AverageValue", "averageValue": "1"},
                },
            },
            {
                "type": "External",
                "external": {
                    "metric": {"name": "recommended_replicas", "selector": {"matchLabels": {"target_name": "web"}}},
                    "target": {"type": "AverageValue", "averageValue": "1500m"},
                },
            },
            {
                "type": "Object",
                "object": {
                    "metric": {"name": "requests"},
                    "describedObject": WEB,
                    "target": {"type": "Value", "value": "5"},
                },
            },
        ],
    )
    assert autoscaler_of(msgspec.convert(content, AutoscalerForm)) == Autoscaler(
        namespace="shop",
        name="web",
        labels={"scaledobject.keda.sh/name": "web"},
        target_api_version="apps/v1",
        target_kind="Deployment",
        target_name="web",
        min_replicas=2,
        max_replicas=10,
        scale_up_tolerance_ratio=0.05,
        scale_down_tolerance_ratio=0.0,
        metrics=(
            AutoscalerMetric("connections"),
            AutoscalerMetric("recommended_replicas", 1500, parse_selector("target_name=web")),
            AutoscalerMetric("requests", described=("apps/v1", "Deployment", "web")),
        ),
        resource_names=("cpu",),
    )


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ({"metrics": [{"type": "ContainerResource", "containerResource": {"name": "memory"}}]}, ("memory",)),
        ({"targetCPUUtilizationPercentage": 80}, ("cpu",)),
        ({"metrics": []}, ()),
    ],
    ids=["of a container", "version v1", "none"],
)
def test_the_resource_metrics_of_an_hpa_are_read(stated: dict[str, Any], expected: tuple[str, ...]) -> None:
    found = autoscaler_of(msgspec.convert(autoscaler_object("web", "shop", WEB, **stated), AutoscalerForm))
    assert found.resource_names == expected


@pytest.mark.parametrize(("stated", "expected"), [({}, 1), ({"minReplicas": None}, 1), ({"minReplicas": 0}, 0)])
def test_min_replicas_of_an_hpa_defaults_to_1(stated: dict[str, Any], expected: int) -> None:
    found = autoscaler_of(msgspec.convert(autoscaler_object("web", "shop", WEB, **stated), AutoscalerForm))
    assert (found.min_replicas, found.scale_up_tolerance_ratio, found.scale_down_tolerance_ratio) == (
        expected,
        None,
        None,
    )


def test_a_tolerance_beyond_the_range_of_a_float_is_capped() -> None:
    behavior = {"scaleUp": {"tolerance": "1e400"}, "scaleDown": {"tolerance": "1e400"}}
    found = autoscaler_of(msgspec.convert(autoscaler_object("web", "shop", WEB, behavior=behavior), AutoscalerForm))
    assert (found.scale_up_tolerance_ratio, found.scale_down_tolerance_ratio) == (2.0**31 - 1, 2.0**31 - 1)


@pytest.mark.parametrize(
    "metric",
    [
        {"metric": {"name": "m", "selector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}},
        {"metric": {"name": "m"}, "target": {"averageValue": "ten"}},
    ],
)
def test_an_hpa_owns_its_target_whatever_its_metrics_state(metric: dict[str, Any]) -> None:
    content = autoscaler_object("web", "shop", WEB, metrics=[{"type": "External", "external": metric}])
    assert autoscaler_of(msgspec.convert(content, AutoscalerForm)).metrics == (AutoscalerMetric("m"),)


def fact_of(content: dict[str, Any]) -> ClusterNode | Autoscaler:
    if content["kind"] == "Node":
        return node_of(msgspec.convert(content, NodeForm))
    return autoscaler_of(msgspec.convert(content, AutoscalerForm))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (node_object("n1", "four"), "Node n1: status.allocatable.cpu: 'four' is not a quantity"),
        (node_object("n1", ""), "Node n1: status.allocatable.cpu: '' is not a quantity"),
        (node_object("n1", float("inf")), "Node n1: status.allocatable.cpu: 'inf' is not a quantity"),
        (node_object("n1", "1e400"), "Node n1: status.allocatable.cpu: '1e400' is not from 0 to 9223372036854775807"),
        (node_object("n1", "-1"), "Node n1: status.allocatable.cpu: '-1' is not from 0 to 9223372036854775807"),
        (
            node_object("n1") | {"metadata": {"name": "n1", "creationTimestamp": "yesterday"}},
            "Node n1: metadata.creationTimestamp 'yesterday' is not a time: write it as 2026-01-31T08:00:00Z",
        ),
        (autoscaler_object("web", "shop", {}), "HorizontalPodAutoscaler shop/web: spec.scaleTargetRef has no kind"),
        (autoscaler_object("web", "shop", WEB, maxReplicas=None), "shop/web: spec.maxReplicas is missing"),
        (
            autoscaler_object("web", "shop", WEB, behavior={"scaleDown": {"tolerance": "5%"}}),
            "shop/web: spec.behavior.scaleDown.tolerance: '5%' ",
        ),
    ],
)
def test_an_unusable_object_is_an_error_that_names_it(content: dict[str, Any], message: str) -> None:
    with pytest.raises(FactError) as raised:
        fact_of(content)
    assert message in str(raised.value)


def test_an_address_without_readiness_is_ready() -> None:
    content = slice_object(
        "web-1",
        "shop",
        "web",
        [endpoint("10.0.0.1"), endpoint("10.0.0.2", ready=None), endpoint("10.0.0.3", ready=False)],
    )
    found = msgspec.convert(content, SliceForm)
    assert (service_of(found), ready_addresses(found)) == ("web", ("10.0.0.1", "10.0.0.2"))


def test_a_slice_without_a_service_counts_under_its_own_name() -> None:
    found = msgspec.convert(slice_object("own", "shop", None, []) | {"endpoints": None}, SliceForm)
    assert (service_of(found), ready_addresses(found)) == ("/own", ())
