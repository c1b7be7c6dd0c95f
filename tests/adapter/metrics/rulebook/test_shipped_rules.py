"""The meaning of the rule files that are shipped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adapter.foundation.documents.load import load_documents
from adapter.foundation.objects.selectors import parse_selector
from adapter.metrics.rulebook.model import PlanKind
from adapter.metrics.rulebook.parsing.parse import parse_rulebook
from adapter.metrics.rulebook.plans.planning import plan_of
from adapter.metrics.rulebook.provided_metrics import static_metrics
from adapter.metrics.rulebook.query_rendering import exact_query
from adapter.metrics.rulebook.requests import Asked
from tests.support.checkout import CHECKOUT

if TYPE_CHECKING:
    from pathlib import Path

    from adapter.foundation.objects.resources import ResolveResource
    from adapter.metrics.rulebook.model import Metric, Rulebook

FOLDER = CHECKOUT / "rules" / "adapter"


def load(path: Path, resolve: ResolveResource) -> Rulebook:
    return parse_rulebook([load_documents(path.read_text("utf-8"), path.name)], resolve)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yaml")), ids=lambda path: path.name)
def test_a_shipped_file_has_no_findings(path: Path, resolve: ResolveResource) -> None:
    book = load(path, resolve)
    assert book.findings == ()
    assert book.rules


@pytest.fixture
def websocket_metrics(resolve: ResolveResource) -> dict[str, Metric]:
    book = load(FOLDER / "websocket.yaml", resolve)
    return {metric.qualified: metric for rule in book.rules for metric in static_metrics(rule, resolve)}


def test_websocket_connections_are_served_before_the_first_connection(websocket_metrics: dict[str, Metric]) -> None:
    assert set(websocket_metrics) == {
        "namespaces/websocket_connections",
        "pods/websocket_connections",
        "websocket_connections_by_namespace",
    }


def test_websocket_connections_of_pods_are_queried_by_pod(websocket_metrics: dict[str, Metric]) -> None:
    asked = Asked("chat", ("gateway-0", "gateway-1"), parse_selector(""))
    assert exact_query(websocket_metrics["pods/websocket_connections"], asked) == (
        'sum by (pod) (websocket_connections{namespace="chat",pod=~"gateway-0|gateway-1"})'
    )


def test_websocket_connections_of_a_namespace_are_summed(websocket_metrics: dict[str, Metric]) -> None:
    asked = Asked("chat", (), parse_selector("service=gateway"))
    assert exact_query(websocket_metrics["websocket_connections_by_namespace"], asked) == (
        'sum(websocket_connections{service="gateway",namespace="chat"})'
    )


RECOMMENDATIONS = ("recommended_replicas", "predicted_load")
OURS = 'namespace=~"|tidewatch"'
KINDS = {
    "Deployment": "deployments.apps",
    "StatefulSet": "statefulsets.apps",
    "ReplicaSet": "replicasets.apps",
    "ReplicationController": "replicationcontrollers",
}


@pytest.fixture
def recommendation_metrics(resolve: ResolveResource) -> dict[str, Metric]:
    book = load(FOLDER / "recommendations.yaml", resolve)
    return {metric.qualified: metric for rule in book.rules for metric in static_metrics(rule, resolve)}


@pytest.mark.parametrize("name", RECOMMENDATIONS)
@pytest.mark.parametrize(("kind", "plural"), KINDS.items())
def test_a_recommendation_is_a_metric_of_its_target(
    kind: str, plural: str, name: str, recommendation_metrics: dict[str, Metric]
) -> None:
    asked = Asked("chat", ("gateway",), parse_selector(""))
    assert exact_query(recommendation_metrics[f"{plural}/{name}"], asked) == (
        f'max by (target_name) (tidewatch_{name}{{{OURS},target_kind="{kind}",'
        'target_namespace="chat",target_name="gateway"})'
    )


@pytest.mark.parametrize("name", RECOMMENDATIONS)
def test_an_external_recommendation_has_a_row_for_each_target(
    name: str, recommendation_metrics: dict[str, Metric]
) -> None:
    asked = Asked("chat", (), parse_selector("target_name=gateway"))
    assert exact_query(recommendation_metrics[name], asked) == (
        "max by (target_namespace,target_kind,target_name) "
        f'(tidewatch_{name}{{{OURS},target_name="gateway",target_namespace="chat"}})'
    )


def test_every_recommendation_is_queried_once_for_all_namespaces(recommendation_metrics: dict[str, Metric]) -> None:
    plans = {name: plan_of(metric).kind for name, metric in recommendation_metrics.items()}
    assert set(plans.values()) == {PlanKind.WIDE}, plans
