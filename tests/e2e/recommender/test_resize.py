"""The output `resize` on a real API server: pods in place, templates, and what is refused.

No kubelet runs here: the API server accepts the resize of a pod without a node, which a kubelet would carry out. It
refuses one whose containers run without stating their resources, as those on the nodes of this cluster do.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pytest

from adapter.foundation.cluster.values.state import ClusterNeeds
from adapter.foundation.cluster.watch.watch import ClusterWatch
from adapter.foundation.objects.resources import BUILT_IN, find_resource
from adapter.foundation.sources.kubernetes.client import KubernetesClient
from adapter.foundation.sources.kubernetes.credentials.access import access
from adapter.foundation.sources.kubernetes.discovery import KindDiscovery
from adapter.foundation.sources.kubernetes.writing import Fence, ObjectClient
from recommender.configuration.reading import read_configuration
from recommender.configuration.rights import rights_of
from recommender.decisions.record import TargetReference
from recommender.decisions.targets.vertical_autoscalers import known_autoscalers, vertical_autoscaler_kinds
from recommender.outputs.pending_writes import PendingWrite, RequestedSize, Resizing
from recommender.outputs.resize import ResizeAttempt
from recommender.outputs.scale_results import ScaleResult
from recommender.outputs.write_attempt import SendingTerms
from recommender.running.memory.store_protocol import stored_name
from tests.e2e.support.recommenders import Pool, rule, service_account
from tests.recommender.configuration.files import entry, whole
from tests.support.recommenders import started

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from recommender.kinds.role_rules import RoleRule
    from recommender.outputs.write_attempt import ScaleOutcome
    from tests.e2e.controlplane.client import Document
    from tests.e2e.controlplane.cluster import Cluster

MIB: Final = 2**20
LABELS: Final = {"app": "web"}
STATED: Final = {"requests": {"cpu": "1", "memory": "256Mi"}, "limits": {"cpu": "2", "memory": "512Mi"}}
SIZES: Final = (RequestedSize("app", "cpu", 250), RequestedSize("app", "memory", 384 * MIB))
WANTED: Final = {"requests": {"cpu": "250m", "memory": "384Mi"}, "limits": {"cpu": "500m", "memory": "768Mi"}}


def workload(name: str = "web", resources: Document = STATED, **metadata: Any) -> Document:  # noqa: ANN401 - any field
    """Return a Deployment whose pods nobody schedules: the API server refuses a resize that no kubelet would do."""
    container = {"name": "app", "image": "none", "resources": resources}
    sidecar = {"name": "sidecar", "image": "none", "resources": STATED}
    pod: Document = {"schedulerName": "nobody", "containers": [container, sidecar]}
    spec = {
        "replicas": 2,
        "selector": {"matchLabels": LABELS},
        "template": {"metadata": {"labels": LABELS}, "spec": pod},
    }
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, **metadata}, "spec": spec}


@dataclass
class Scene:
    cluster: Cluster
    namespace: str
    attempt: ResizeAttempt
    client: KubernetesClient
    """A client with the rights of an entry of sizes."""

    @property
    def path(self) -> str:
        return f"/apis/apps/v1/namespaces/{self.namespace}/deployments"

    def create(self, document: Document) -> None:
        self.cluster.client.create(self.path, document)
        self.cluster.wait_for("the pods of the workload", lambda: len(self.pods()) == 2)

    def pods(self) -> list[Document]:
        return self.cluster.pods(self.namespace, "app=web")

    def resize(self, **changes: Any) -> ScaleOutcome:  # noqa: ANN401 - fields of Resizing
        fields: dict[str, Any] = {
            "threshold_ratio": 0.1,
            "in_place": True,
            "up": True,
            "down": True,
            "managers": ("argocd-*",),
        }
        resizing = Resizing(changes.pop("sizes", SIZES), **(fields | changes))
        target = TargetReference("apps/v1", "Deployment", self.namespace, "web")
        write = PendingWrite("sizes", target, 0, time.time() + 60, "app: cpu 250m", resizing=resizing)
        return self.attempt(write, SendingTerms(lambda: None, lambda: True, Fence(5.0, lambda _: True)))


def stated(pod_spec: Document) -> dict[str, Any]:
    return {each["name"]: each["resources"] for each in pod_spec["containers"]}


@pytest.fixture
def scene(cluster: Cluster, namespace: str, tmp_path: Path) -> Iterator[Scene]:
    nodes = [rule([""], ["nodes"], "list")]
    given = service_account(cluster, namespace, "resizer", tmp_path, here=resize_rights(namespace), everywhere=nodes)
    with given as kubeconfig:
        client = KubernetesClient(access(str(kubeconfig), None))
        objects = ObjectClient(client)
        yield Scene(
            cluster, namespace, ResizeAttempt(objects, objects, KindDiscovery(client).resource, time.time), client
        )


def resize_rights(namespace: str) -> list[Document]:
    """Return the RBAC rules of an entry of sizes from usage."""
    lines = (f"targets: [{web(namespace)}]", "outputs: [resize]")
    content = whole(entry("sizes", *lines, kind="resources: {fromUsage: {}}"), top="prometheus: {url: http://p}\n")
    return rules_of(content, namespace)[namespace]


def web(namespace: str) -> str:
    """Return the entry of `targets`."""
    return f"{{apiVersion: apps/v1, kind: Deployment, namespace: {namespace}, name: web}}"


def rules_of(content: str, namespace: str) -> dict[str, list[Document]]:
    """Return the RBAC rules of a configuration, by namespace; an empty name stands for all namespaces."""
    found = rights_of(
        read_configuration(content, "r.yaml"),
        namespace=namespace,
        resolve=lambda group, kind: find_resource(BUILT_IN, group, kind),
        memory_name=lambda name, _number: stored_name(name),
    )
    return {place: _rules(each for each in found if each.namespace == place) for place in ("", namespace)}


def _rules(rights: Iterable[RoleRule]) -> list[Document]:
    return [
        {
            "apiGroups": [each.api_group],
            "resources": ["/".join(filter(None, (each.resource, each.subresource)))],
            "verbs": list(each.verbs),
            **({"resourceNames": list(each.names)} if each.names else {}),
        }
        for each in rights
    ]


def test_pods_are_resized_in_place_and_limits_follow_in_proportion(scene: Scene) -> None:
    scene.create(workload())
    before = {pod["metadata"]["uid"] for pod in scene.pods()}
    outcome = scene.resize()
    assert outcome.result is ScaleResult.OK, outcome.message
    assert [stated(pod["spec"]) for pod in scene.pods()] == [{"app": WANTED, "sidecar": STATED}] * 2
    assert {pod["metadata"]["uid"] for pod in scene.pods()} == before
    template = scene.cluster.client.get(f"{scene.path}/web")["spec"]["template"]
    assert stated(template["spec"]) == {"app": STATED, "sidecar": STATED}
    assert scene.resize().result is ScaleResult.UNCHANGED


def test_a_limit_of_memory_shrinks_after_cpu_has_grown(scene: Scene) -> None:
    scene.create(workload())
    sizes = (RequestedSize("app", "cpu", 1500), RequestedSize("app", "memory", 128 * MIB))
    grown = {"requests": {"cpu": "1500m", "memory": "256Mi"}, "limits": {"cpu": "3", "memory": "512Mi"}}
    small = {"requests": {"cpu": "1500m", "memory": "128Mi"}, "limits": {"cpu": "3", "memory": "256Mi"}}
    for expected in (grown, small):
        outcome = scene.resize(sizes=sizes)
        assert outcome.result is ScaleResult.OK, outcome.message
        assert [stated(pod["spec"])["app"] for pod in scene.pods()] == [expected] * 2
    assert scene.resize(sizes=sizes).result is ScaleResult.UNCHANGED


def test_without_in_place_the_template_is_changed_once(scene: Scene) -> None:
    scene.create(workload())
    settled = scene.cluster.wait_for("the end of the first rollout", lambda: _rolled_out(scene))
    assert settled
    outcome = scene.resize(in_place=False)
    assert outcome.result is ScaleResult.OK, outcome.message
    template = scene.cluster.client.get(f"{scene.path}/web")["spec"]["template"]
    assert stated(template["spec"]) == {"app": WANTED, "sidecar": STATED}
    assert scene.resize(in_place=False).result is ScaleResult.UNCHANGED


def _rolled_out(scene: Scene) -> bool:
    status = scene.cluster.client.get(f"{scene.path}/web").get("status", {})
    return bool(status.get("observedGeneration") == 1 and status.get("updatedReplicas") == 2)


@pytest.mark.parametrize("milli", [1020, 980, 1100, 900])
def test_a_small_change_is_not_written(scene: Scene, milli: int) -> None:
    scene.create(workload())
    assert scene.resize(sizes=(RequestedSize("app", "cpu", milli),)).result is ScaleResult.UNCHANGED


def test_pods_of_another_workload_with_the_same_labels_are_left_alone(scene: Scene) -> None:
    scene.create(workload())
    scene.cluster.client.create(scene.path, workload("other"))
    scene.cluster.wait_for("the other pods", lambda: len(scene.pods()) == 4)
    assert scene.resize().result is ScaleResult.OK
    sized = {pod["metadata"]["generateName"].split("-")[0]: stated(pod["spec"])["app"] for pod in scene.pods()}
    assert sized == {"web": WANTED, "other": STATED}


def test_a_pause_of_the_workload_stops_the_direction(scene: Scene) -> None:
    scene.create(workload(annotations={"tidewatch.io/paused": "true"}))
    assert scene.resize().result is ScaleResult.REFUSED
    scene.cluster.client.merge(f"{scene.path}/web", {"metadata": {"annotations": {"tidewatch.io/paused": "down"}}})
    assert scene.resize().result is ScaleResult.OK
    found = [stated(pod["spec"])["app"]["requests"] for pod in scene.pods()]
    assert found == [{"cpu": "1", "memory": "384Mi"}] * 2


def test_pods_without_requests_get_them_by_a_rollout(scene: Scene) -> None:
    # With requests, the pods would be of another class of service, which the API server refuses in place.
    document = workload(resources={})
    document["spec"]["template"]["spec"]["containers"].pop()
    scene.create(document)
    scene.cluster.wait_for("the end of the first rollout", lambda: _rolled_out(scene))
    outcome = scene.resize()
    assert outcome.result is ScaleResult.OK, outcome.message
    template = scene.cluster.client.get(f"{scene.path}/web")["spec"]["template"]
    assert stated(template["spec"])["app"] == {"requests": WANTED["requests"]}


@pytest.mark.parametrize("in_place", [True, False])
def test_what_a_limit_range_forbids_is_refused(scene: Scene, in_place: bool) -> None:  # noqa: FBT001 - a column
    scene.create(workload())
    scene.cluster.wait_for("the end of the first rollout", lambda: _rolled_out(scene))
    limits = {"limits": [{"type": "Container", "max": {"cpu": "3"}}]}
    path = f"/api/v1/namespaces/{scene.namespace}/limitranges"
    scene.cluster.client.create(path, {"metadata": {"name": "most"}, "spec": limits})
    outcome = scene.resize(in_place=in_place, sizes=(RequestedSize("app", "cpu", 4000),))
    assert (outcome.result, outcome.owner) == (ScaleResult.REFUSED, None), outcome.message
    assert "maximum cpu usage per Container is 3" in outcome.message or "LimitRange most forbids" in outcome.message
    template = scene.cluster.client.get(f"{scene.path}/web")["spec"]["template"]
    assert stated(template["spec"])["app"] == STATED
    assert [stated(pod["spec"])["app"] for pod in scene.pods()] == [STATED] * 2


def test_sizes_by_the_number_of_nodes_are_written_with_the_rights_of_the_configuration(
    scene: Scene, tmp_path: Path
) -> None:
    cluster, namespace, pool = scene.cluster, scene.namespace, Pool(scene.cluster)
    scene.create(workload())
    scene.cluster.wait_for("the end of the first rollout", lambda: _rolled_out(scene))
    sizes = "{app: {requests: {cpu: {base: 100m, step: 100m, nodesPerStep: 1}}, limits: {memory: {base: 1Gi}}}}"
    # The nodes of this cluster have no kubelet that could resize a pod.
    how = f"nodeSelector: '{pool.selector}', resize: {{inPlace: false}}"
    top = f"pollInterval: 1s\nstate: {tmp_path}/state\nleaderElection: {{namespace: {namespace}}}\n"
    lines = (f"targets: [{web(namespace)}]", "outputs: [metric, resize]")
    content = whole(entry("sizes", *lines, kind=f"proportional: {{resources: {sizes}, {how}}}"), top=top)
    (tmp_path / "recommender.yaml").write_text(content)
    rules = rules_of(content, namespace)
    pool.add(2)
    given = service_account(cluster, namespace, "sizes", tmp_path, here=rules[namespace], everywhere=rules[""])
    with given as kubeconfig:
        files = (f"--config={tmp_path}/recommender.yaml", f"--kubeconfig={kubeconfig}")
        program = started(tmp_path / "sizes.log", "run", *files)
        with program.process:
            wanted = {"requests": STATED["requests"] | {"cpu": "300m"}, "limits": {"cpu": "600m", "memory": "1Gi"}}
            expected = {"app": wanted, "sidecar": STATED}
            cluster.wait_for("the sizes in the template", lambda: _template(scene) == expected)
            assert program.items()["sizes"]["resources"]["app"]["requests"] == {"cpu": "300m"}
    pool.remove()
    account = f"system:serviceaccount:{namespace}:sizes"
    assert not [event.uri for event in cluster.audit_events() if event.user == account and event.code == 403]


def _template(scene: Scene) -> dict[str, Any]:
    return stated(scene.cluster.client.get(f"{scene.path}/web")["spec"]["template"]["spec"])


VPA_CRD: Final[Document] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": "verticalpodautoscalers.autoscaling.k8s.io",
        "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes/kubernetes/pull/63797"},
    },
    "spec": {
        "group": "autoscaling.k8s.io",
        "scope": "Namespaced",
        "names": {"plural": "verticalpodautoscalers", "kind": "VerticalPodAutoscaler"},
        "versions": [
            {
                "name": "v1", "served": True, "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}  # fmt: skip


@contextmanager
def watched(scene: Scene) -> Iterator[ClusterWatch]:
    """Yield the facts about VerticalPodAutoscalers."""
    ended = threading.Event()

    def start(name: str, run: Callable[[threading.Event], None]) -> None:
        threading.Thread(target=run, args=(ended,), name=name, daemon=True).start()

    try:
        yield ClusterWatch(scene.client, ClusterNeeds(objects=vertical_autoscaler_kinds([scene.namespace])), start)
    finally:
        ended.set()


def test_a_workload_of_a_vertical_pod_autoscaler_is_named_and_refused(scene: Scene) -> None:
    client = scene.cluster.client
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    client.create(crds, VPA_CRD)
    try:
        path = f"/apis/autoscaling.k8s.io/v1/namespaces/{scene.namespace}/verticalpodautoscalers"
        scene.cluster.wait_for("the API of the CRD", lambda: client.find(path) is not None)
        spec = {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}
        vpa = {
            "apiVersion": "autoscaling.k8s.io/v1",
            "kind": "VerticalPodAutoscaler",
            "metadata": {"name": "v"},
            "spec": spec,
        }
        client.create(path, vpa)
        scene.create(workload())
        place = (scene.namespace, "Deployment", "web")
        with watched(scene) as watch:
            scene.cluster.wait_for("the VPA in the facts", lambda: place in known_autoscalers(watch.state()))
        outcome = scene.resize()
        assert (outcome.result, outcome.owner) == (ScaleResult.REFUSED, f"VerticalPodAutoscaler {scene.namespace}/v")
        client.merge(f"{path}/v", {"spec": {"updatePolicy": {"updateMode": "Off"}}})
        assert scene.resize().result is ScaleResult.OK
    finally:
        client.delete(f"{crds}/{VPA_CRD['metadata']['name']}")
