"""Recommendation objects that others break, change, delete and recreate, beside one that must be followed."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from adapter.foundation.objects.resources import Resource
from tests.recommender.commands.cluster_harness import cluster_server, put_nodes, replicas_of, running
from tests.recommender.configuration.files import entry, whole
from tests.support.apiserver_kinds import DEPLOYMENTS
from tests.support.tenant_objects import TENANTS, TenantObjects
from tests.support.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.object_apiserver import ObjectApiServer

RECOMMENDATIONS: Final = Resource(
    "tidewatch.io", "v1alpha1", "recommendations", "recommendation", "Recommendation", namespaced=True
)
TARGETS: Final = "targets: [{apiVersion: apps/v1, kind: Deployment, namespace: kube-system, name: coredns}]"
CHANGES = 600
SECONDS: Final = 60.0


def linear(nodes_per_replica: object, name: object = "web", **target: str) -> dict[str, Any]:
    """Return the spec of an object that sizes a Deployment by the number of nodes."""
    return {
        "proportional": {"linear": {"nodesPerReplica": nodes_per_replica}},
        "targets": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": name, **target}],
        "outputs": ["metric", "scale"],
    }


SPECS: Final[tuple[object, ...]] = (
    None,
    [],
    "text",
    {},
    linear(-1),
    linear("many"),
    linear(1, "x" * 10_000),
    linear(1, ["web"]),
    linear(1, "coredns", namespace="kube-system"),
    linear(1, namespace="shop"),
    {**linear(1), "name": "coredns"},
    {"clusterSize": {"groups": [{"name": "g", "min": 0, "max": 100}]}, "outputs": ["scale"]},
    {**linear(1), "proportional": {"ladder": {"nodes": {str(step): step for step in range(1, 500)}}}},
    {**linear(1), "predictive": {"load": "sum(" * 300, "loadPerReplica": 1e308}},
    linear(1),
    linear(4, "other"),
)
"""Specs that are nonsense, have foreign targets or names, ask for what no object may do, and some that are right."""


def deploy(server: ObjectApiServer, namespace: str) -> None:
    server.objects.put(
        DEPLOYMENTS, namespace, "web", {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 2}}
    )


def have_sizes(server: ObjectApiServer, replicas: int) -> bool:
    """Return whether both sizes are right: that of the target of `shop`'s object, and that of the file's entry."""
    web = server.objects.get_without_rights(DEPLOYMENTS, "shop", "web")
    return (web["spec"]["replicas"], replicas_of(server)) == (replicas, replicas)


def test_objects_of_other_tenants_affect_neither_an_object_nor_the_file(tmp_path: Path) -> None:
    with cluster_server() as server:
        objects = TenantObjects(server, RECOMMENDATIONS, SPECS)
        for namespace in ("shop", *TENANTS):
            deploy(server, namespace)
        put_nodes(server, 48)
        objects.put("shop", "mine", linear(16))
        enabled = "recommendationObjects: {enabled: true, outputs: [metric, scale]}\n"
        top = f"pollInterval: 1s\nstate: {tmp_path}/state\n{enabled}"
        file = tmp_path / "recommender.yaml"
        file.write_text(whole(entry("coredns", TARGETS, "outputs: [metric, scale]"), top=top))
        kubeconfig = server.kubeconfig(tmp_path / "config")
        with running("run", f"--config={file}", f"--kubeconfig={kubeconfig}", log_path=tmp_path / "log") as recommender:
            until(partial(have_sizes, server, 3), SECONDS)
            for nodes in (64, 32, 80):
                assert len(list(objects.changed(CHANGES))) == CHANGES
                put_nodes(server, nodes)
                until(partial(have_sizes, server, nodes // 16), SECONDS)
            assert {"coredns", "shop/mine"} <= recommender.items().keys()
            assert recommender.get("/livez", plain=True)[0] == 200
            assert "Traceback" not in recommender.log
