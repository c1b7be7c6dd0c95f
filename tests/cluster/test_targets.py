"""The size of an object with a scale subresource, and who writes it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from adapter.cluster.facts import FactError
from adapter.cluster.targets import ReplicasManager, ScaledObject, scaled_object_of


def body(kind: str = "Deployment", spec: object = None, status: object = None, **metadata: object) -> bytes:
    content = {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "web", "namespace": "shop"} | metadata}
    return json.dumps(content | {"spec": spec, "status": status}).encode()


def managed(manager: str, fields: object, operation: str = "Update", time: str | None = None) -> dict[str, Any]:
    return {"manager": manager, "operation": operation, "time": time, "fieldsType": "FieldsV1", "fieldsV1": fields}


def test_size_pause_and_managers_are_read() -> None:
    found = scaled_object_of(
        body(
            spec={"replicas": 3, "template": {}},
            status={"replicas": 3, "readyReplicas": 2, "updatedReplicas": 3},
            annotations={"tidewatch.io/paused": "down"},
            managedFields=[
                managed("helm", {"f:spec": {"f:replicas": {}, "f:template": {}}}, time="2026-11-22T06:00:00Z"),
                managed("argocd-controller", {"f:spec": {"f:replicas": {}}}, "Apply"),
                managed("kubectl", {"f:metadata": {"f:annotations": {}}}),
                managed("kube-controller-manager", {"f:status": {"f:replicas": {}}}),
                managed("old", None),
            ],
        )
    )
    assert found == ScaledObject(
        replicas=3,
        ready_replicas=2,
        rollout=False,
        paused="down",
        replicas_managers=(
            ReplicasManager("helm", "Update", 1795327200.0),
            ReplicasManager("argocd-controller", "Apply", None),
        ),
    )


@pytest.mark.parametrize(
    ("kind", "status", "expected"),
    [
        ("Deployment", None, False),
        ("Deployment", {}, False),
        ("Deployment", {"replicas": 3, "updatedReplicas": 3}, False),
        ("Deployment", {"replicas": 4, "updatedReplicas": 1}, True),
        ("Deployment", {"replicas": 3}, True),
        ("ReplicaSet", {"replicas": 3}, False),
        ("Rollout", {"replicas": 3, "updatedReplicas": 1}, True),
        ("StatefulSet", {"replicas": 3, "updatedReplicas": 3, "currentRevision": "a", "updateRevision": "a"}, False),
        ("StatefulSet", {"replicas": 3, "updatedReplicas": 1, "currentRevision": "a", "updateRevision": "b"}, True),
    ],
)
def test_a_rollout_leaves_pods_of_an_earlier_template(kind: str, status: object, expected: bool) -> None:  # noqa: FBT001
    assert scaled_object_of(body(kind, {"replicas": 5}, status)).rollout is expected


def test_replicas_are_1_where_the_api_server_sets_them() -> None:
    assert scaled_object_of(body(spec={})).replicas == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (body("DaemonSet", {}), "DaemonSet web has no spec.replicas"),
        (body("Deployment", {"replicas": "three"}), "the size cannot be read: Expected `int | null`"),
        (b"<html>", "the object cannot be read"),
    ],
)
def test_an_object_without_a_size_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(FactError) as raised:
        scaled_object_of(content)
    assert message in str(raised.value)
