"""`kubectl tidewatch` as kubectl runs it: the real controller then does what it predicts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import pytest
import yaml

from tests.e2e.controlplane.pod_metrics import each
from tests.e2e.support.autoscalers import Autoscaler, Autoscalers, external_metric, pods_metric
from tests.e2e.support.installed import InstalledAdapter, installed_adapter, values_for
from tests.helm.chart import CHART, helm
from tests.support.checkout import CHECKOUT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.controlplane.client import Document
    from tests.e2e.controlplane.cluster import Cluster, User
    from tests.e2e.controlplane.pod_metrics import PodMetrics
    from tests.e2e.controlplane.programs import Programs
    from tests.support.prometheus import ScrapedPrometheus

pytestmark = pytest.mark.needs_pods

RBAC: Final = "rbac.authorization.k8s.io"
ONLY_HPAS: Final[list[Document]] = [
    {"apiGroups": ["autoscaling"], "resources": ["horizontalpodautoscalers"], "verbs": ["get"]}
]


@dataclass(frozen=True, slots=True)
class Plugins:
    """kubectl, and the PATH in which it looks for its plugins."""

    kubectl: str
    path: str


@pytest.fixture(scope="module")
def adapter(cluster: Cluster, prometheus: ScrapedPrometheus) -> Iterator[InstalledAdapter]:
    with installed_adapter(cluster, values_for(prometheus)) as adapter:
        yield adapter


@pytest.fixture(scope="module")
def plugins(kubernetes_programs: Programs, tmp_path_factory: pytest.TempPathFactory) -> Plugins:
    """Return plugins with the console script in a folder of its own."""
    folder: Path = tmp_path_factory.mktemp("plugins")
    script = folder / "kubectl-tidewatch"
    script.write_text(f"#!{sys.executable}\nfrom recommender.kubectl.main import main\nmain()\n")
    script.chmod(0o755)
    return Plugins(str(kubernetes_programs["kubectl"]), f"{folder}{os.pathsep}{os.environ['PATH']}")


def why(
    plugins: Plugins, cluster: Cluster, subject: str, namespace: str, kubeconfig: Path | None = None
) -> tuple[int, dict[str, Any]]:
    """Return the status and the document of `kubectl tidewatch why`."""
    command = [plugins.kubectl, "tidewatch", "why", subject, "-n", namespace, "-o", "json"]
    environment = os.environ | {"PATH": plugins.path, "PYTHONPATH": str(CHECKOUT), "no_proxy": "*"}
    environment["KUBECONFIG"] = str(kubeconfig or cluster.kubeconfig)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def test_the_controller_does_what_the_plugin_foresees(
    cluster: Cluster, namespace: str, adapter: InstalledAdapter, pod_metrics: PodMetrics, plugins: Plugins
) -> None:
    assert adapter.answers()
    mail = external_metric("queue_length", {"queue": "mail"}, averageValue="10")
    web = Autoscaler(namespace, "web", pods_metric("connections", "100"), further=(mail,))
    scalers = Autoscalers(cluster, namespace, web)
    scalers.create_deployments()
    pod_metrics.of_pods("connections", namespace, "app=web", each(80.0))
    pod_metrics.set("queue_length", 47, namespace=namespace, queue="mail")
    scalers.wait_for_answers()
    _, hpa = web.documents
    held = {**hpa, "spec": {**hpa["spec"], "maxReplicas": 2}}
    cluster.apply(held)
    cluster.wait_for(
        "the limit", lambda: scalers.conditions("web").get("ScalingLimited") == ("True", "TooManyReplicas")
    )
    status, document = why(plugins, cluster, "hpa/web", namespace)
    assert (status, document["missing"]) == (0, [])
    assert document["next"]["replicas"] == 2
    assert "TooManyReplicas" in document["answer"]
    assert [one["replicas"] for one in document["metrics"]] == [2, 5]
    assert {one["reason"] for one in document["conditions"]} >= {"TooManyReplicas"}

    cluster.apply(hpa)
    scalers.wait_for_sizes(web=5)
    status, document = why(plugins, cluster, "deployment/web", namespace)
    assert document["owners"] == ["hpa/web"]
    assert document["replicas"]["wanted"] == 5
    assert [one["subresource"] for one in document["writers"]][-1] == "scale"
    assert status == 1, "no recommender is installed"
    pod = cluster.pods(namespace, "app=web")[0]["metadata"]["name"]
    # Three of the five pods are new: the adapter serves one only after the next scrape and the next list of pods.
    served, *_ = cluster.wait_for(
        "a metric of the pod",
        lambda: why(plugins, cluster, f"pod/{pod}", namespace)[1]["custom_metrics"],
        why_not=lambda: why(plugins, cluster, f"pod/{pod}", namespace),
    )
    assert (served["metric"], served["value"]) == ("connections", "80")
    pod_metrics.forget_pods("connections", namespace, "app=web")


def test_the_recommenders_steps_come_through_the_proxy_of_the_api_server(
    cluster: Cluster, namespace: str, plugins: Plugins
) -> None:
    cluster.apply(Autoscaler(namespace, "web", pods_metric("connections", "100")).documents[0])
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": namespace, "name": "web"}
    entry = {"name": "web", "proportional": {"linear": {"nodesPerReplica": 1, "min": 3, "max": 3}}, "targets": [target]}
    config = {"apiVersion": "tidewatch.io/v1alpha1", "kind": "RecommenderConfiguration", "recommendations": [entry]}
    # The proxy passes the Host header on that the caller sent.
    page = {"bindAddress": "0.0.0.0", "allowedHosts": [urlsplit(cluster.url).hostname]}
    recommender = {"enabled": True, "replicas": 1, "config": config | {"pollInterval": "1s"}, "page": page}
    values = {"adapter": {"enabled": False}, "recommender": recommender}
    options = ("--namespace", namespace)
    helm("install", "tidewatch", str(CHART), *options, values=values, kubeconfig=cluster.kubeconfig)
    try:
        cluster.wait_until_ready(namespace, "tidewatch-recommender")
        cluster.wait_for(
            "the decisions",
            lambda: why(plugins, cluster, "deployment/web", namespace)[0] == 0,
            why_not=lambda: why(plugins, cluster, "deployment/web", namespace),
        )
        _, document = why(plugins, cluster, "deployment/web", namespace)
    finally:
        helm("uninstall", "tidewatch", *options, kubeconfig=cluster.kubeconfig)
    (found,) = document["recommendations"]
    assert (found["name"], found["targets"][0]["recommended_replicas"]) == ("web", 3)
    assert found["steps"]


def documented_role(name: str) -> Document:
    """Return the ClusterRole of the page under another name."""
    page = (CHECKOUT / "docs" / "kubectl-tidewatch.md").read_text()
    role: Document = yaml.safe_load(page.partition("```yaml\n")[2].partition("```")[0])
    return role | {"metadata": {"name": name}}


def test_a_right_that_is_missing_is_named_and_the_documented_role_is_enough(
    cluster: Cluster, namespace: str, adapter: InstalledAdapter, pod_metrics: PodMetrics, plugins: Plugins
) -> None:
    assert adapter.answers()
    scalers = Autoscalers(cluster, namespace, Autoscaler(namespace, "web", pods_metric("connections", "100")))
    scalers.create_deployments()
    pod_metrics.of_pods("connections", namespace, "app=web", each(100.0))
    scalers.wait_for_answers()
    scalers.create_hpas()
    user = cluster.user(f"reader-{namespace}")
    status, document = bound(cluster, namespace, user, "first", ONLY_HPAS, plugins)
    assert status == 1
    missing = f"you lack the right to get deployments.apps/scale web in {namespace}: ask for a role that has it"
    assert document["missing"] == [missing]
    role = documented_role(f"why-{namespace}")
    status, document = bound(cluster, namespace, user, "second", role["rules"], plugins)
    assert (status, document["missing"]) == (0, [])
    pod_metrics.forget_pods("connections", namespace, "app=web")


def bound(
    cluster: Cluster, namespace: str, user: User, name: str, rules: list[Document], plugins: Plugins
) -> tuple[int, dict[str, Any]]:
    """Give the user these rights in the namespace, and return what the plugin then answers."""
    metadata = {"name": name, "namespace": namespace}
    binding = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": name},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": user.name}],
    }
    cluster.apply({"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": rules}, binding)
    group, resource = rules[-1]["apiGroups"][0], rules[-1]["resources"][0]
    path = f"/apis/{group}/{'v2' if group == 'autoscaling' else 'v1beta1'}/namespaces/{namespace}/{resource}"
    name_of_one = f"{path}/web" if group == "autoscaling" else path
    cluster.wait_for("the rights", lambda: user.client.ask("GET", name_of_one).status != 403)
    return why(plugins, cluster, "hpa/web", namespace, user.kubeconfig)
