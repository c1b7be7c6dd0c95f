"""The notes of the chart say what to verify, and what is still missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.install.chart_values import RESOURCE, nodes, recommender
from tests.helm.cases import NO_API, RULE, resource_rules
from tests.helm.chart import NAME, NAMESPACE
from tests.helm.notes import notes
from tests.helm.recommenders import EACH, LINEAR, PREDICTED, SCALED_NODES, configuration

if TYPE_CHECKING:
    from pathlib import Path


def test_notes_say_how_to_verify_each_api(tmp_path: Path) -> None:
    text = notes({"rules": {"custom": [RULE]}, "prometheus": {"url": "http://prom"}}, tmp_path)
    assert f"kubectl -n {NAMESPACE} rollout status deployment/{NAME}" in text
    for group, version in (("custom", "v1beta1"), ("custom", "v1beta2"), ("external", "v1beta1")):
        assert f"kubectl get apiservice {version}.{group}.metrics.k8s.io" in text
        assert f"kubectl get --raw /apis/{group}.metrics.k8s.io/{version}\n" in text
    assert "-l app.kubernetes.io/component=adapter,app.kubernetes.io/instance=tidewatch," in text
    assert "There are no rules yet" not in text
    assert "only a guess" not in text


def test_notes_say_how_resource_metrics_are_seen(tmp_path: Path) -> None:
    values = {"rules": {"resource": resource_rules()}, "apiServices": {"resource": {"unchecked": True}}}
    text = notes(values, tmp_path)
    assert "     kubectl get --raw /apis/metrics.k8s.io/v1beta1\n" in text
    assert "     kubectl top pods --all-namespaces\n     kubectl top nodes\n\n3. Each rule" in text
    assert "There are no rules yet" not in text
    assert "its rules are not used" not in text
    text = notes(values | {"apiServices": {"resource": {"v1beta1": False}}}, tmp_path / "without")
    assert f"rules.resource is set, but {RESOURCE} is not registered, so its rules are not used" in text
    assert "kubectl top" not in text


@pytest.mark.parametrize("many", [False, True], ids=["one target", "forEach"])
def test_notes_say_what_predictive_recommendations_wait_for_and_need(tmp_path: Path, *, many: bool) -> None:
    text = notes({"recommender": {"enabled": True, "config": configuration(EACH if many else PREDICTED)}}, tmp_path)
    assert "use plain headroom until" in text
    assert "recommender.resources.limits.memory is 512Mi." in text
    assert ("10,000 targets" in text) is many
    proportional = notes({"recommender": {"enabled": True, "config": configuration(LINEAR)}}, tmp_path / "without")
    assert "Predictive" not in proportional


@pytest.mark.parametrize("is_scaled", [False, True])
def test_notes_say_whether_sizes_of_node_groups_are_written(tmp_path: Path, *, is_scaled: bool) -> None:
    outputs = ["metric", "scale"] if is_scaled else ["metric"]
    text = notes(recommender(configuration(SCALED_NODES | {"outputs": outputs})), tmp_path)
    assert ("Sizes of node groups of Cluster API are written." in text) is is_scaled
    assert ("No size of a node group of Cluster API is written." in text) is not is_scaled
    assert "tidewatch-recommender recommend --config /etc/tidewatch/recommender/recommender.yaml" in text


def test_notes_say_what_is_still_missing(tmp_path: Path) -> None:
    text = notes({"apiServices": NO_API, "rules": {"shipped": []}}, tmp_path)
    assert "no APIService is registered" in text
    assert "There are no rules yet" in text
    assert "http://prometheus.default.svc:9090, which is only a guess" in text


@pytest.mark.parametrize("is_closed", [False, True])
def test_notes_say_which_credentials_clients_of_nodes_need(tmp_path: Path, *, is_closed: bool) -> None:
    text = notes(nodes(closed=is_closed), tmp_path)
    template = '{{index .data "token" | base64decode}}'
    secret = f"kubectl -n {NAMESPACE} get secret tidewatch-nodes-token -o go-template='{template}'"
    assert (secret in text) is is_closed
    assert ("authToken: {secretReference: {namespace: monitoring, name: tidewatch-nodes-token}}" in text) is is_closed
    assert ("tls.key of the Secret tidewatch-nodes-client, and ca.crt of tidewatch-nodes-serving" in text) is is_closed
    assert f"urlPrefix: {'https' if is_closed else 'http'}://tidewatch-nodes.monitoring.svc:2020/scheduler" in text
    assert ("with nodes.openWatcher=true" in text) is is_closed


def test_notes_say_how_the_page_is_opened(tmp_path: Path) -> None:
    text = notes(recommender(configuration(LINEAR)), tmp_path)
    assert f"kubectl -n {NAMESPACE} rollout status deployment/tidewatch-recommender" in text
    assert f"kubectl -n {NAMESPACE} port-forward deployment/tidewatch-recommender 8081" in text
    assert "-l app.kubernetes.io/component=recommender,app.kubernetes.io/instance=tidewatch," in text
    assert "No monitor is created for the metrics" in text
    assert "rules.shipped does not contain" not in text
    without = notes(recommender(configuration(LINEAR)) | {"rules": {"shipped": ["websocket"]}}, tmp_path / "without")
    assert "rules.shipped does not contain `recommendations`" in without


def test_notes_say_which_shipped_metric_is_served(tmp_path: Path) -> None:
    path = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/chat/pods/*/websocket_connections"
    assert path in notes({}, tmp_path)
    assert path not in notes({"rules": {"custom": [RULE]}}, tmp_path / "own")


def test_notes_of_the_recommender_alone_say_nothing_of_the_adapter(tmp_path: Path) -> None:
    values = recommender(configuration(LINEAR)) | {
        "adapter": {"enabled": False},
        "metrics": {"podMonitor": {"enabled": True}},
    }
    text = notes(values, tmp_path)
    assert "The recommender of Tidewatch" in text
    for absent in (NAME, "apiservice", "No monitor is created", "rules.shipped"):
        assert absent not in text


def test_notes_say_how_the_loads_of_nodes_are_checked(tmp_path: Path) -> None:
    text = notes(nodes() | {"adapter": {"enabled": False}}, tmp_path)
    assert "The service for node loads is installed" in text
    assert f"kubectl -n {NAMESPACE} rollout status deployment/tidewatch-nodes" in text
    for path in ("/watcher/health", "/nodes/unmapped", "/scores?policy=target-load-packing"):
        assert f"http://127.0.0.1:2020{path}" in text
    assert f"watcherAddress: http://tidewatch-nodes.{NAMESPACE}.svc:2020\n" in text
    assert "http://prometheus.default.svc:9090, which is only a guess" in text
    assert "schedulerName" not in text
    assert NAME not in text


def test_a_certificate_of_the_service_is_not_expected_to_hold_for_the_forwarded_port(tmp_path: Path) -> None:
    text = notes(nodes(tls={"secret": "mine"}), tmp_path)
    assert "curl -k -i https://127.0.0.1:2020/watcher/health" in text
    assert 'curl -k -H "$A" https://127.0.0.1:2020/nodes/unmapped' in text
    assert "curl -k" not in notes(nodes(), tmp_path / "without")


def test_notes_say_how_pods_get_the_second_scheduler(tmp_path: Path) -> None:
    text = notes(nodes(scheduler={"enabled": True}), tmp_path)
    assert "spec.schedulerName: tidewatch" in text
    assert f"kubectl -n {NAMESPACE} rollout status deployment/tidewatch-scheduler" in text
    assert text.count("which is only a guess") == 1
