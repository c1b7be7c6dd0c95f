"""The size of an object with a scale subresource, and which field managers write it."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from adapter.foundation.cluster.facts.objects import FactError
from adapter.foundation.cluster.facts.scale_targets import (
    NoReplicasError,
    ScaledForm,
    ScaledObject,
    scaled_object,
    scaled_object_of,
)


def document(
    kind: str = "Deployment", spec: object = None, status: object = None, **metadata: object
) -> dict[str, Any]:
    content = {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "web", "namespace": "shop"} | metadata}
    return content | {"spec": spec, "status": status}


def read(content: dict[str, Any]) -> ScaledObject:
    """Return what a document states, having checked that the same object from a file states the same."""
    found = scaled_object_of(content)
    assert scaled_object(msgspec.json.decode(json.dumps(content), type=ScaledForm)) == found
    return found


def managed(manager: str, fields: object, operation: str = "Update", time: str | None = None) -> dict[str, Any]:
    return {"manager": manager, "operation": operation, "time": time, "fieldsType": "FieldsV1", "fieldsV1": fields}


def test_size_pause_and_managers_are_read() -> None:
    found = read(
        document(
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
        rollout=False,
        paused="down",
        replicas_managers=("helm", "argocd-controller"),
    )


OLD_PODS = {"replicas": 4, "updatedReplicas": 1}
REVISIONS = {"currentRevision": "a", "updateRevision": "b"}


@pytest.mark.parametrize(
    ("kind", "status", "spec", "expected"),
    [
        ("Deployment", None, {}, False),
        ("Deployment", {}, {}, False),
        ("Deployment", {"replicas": 3, "updatedReplicas": 3}, {}, False),
        ("Deployment", {"observedGeneration": 6, "replicas": 3, "updatedReplicas": 3}, {}, True),
        ("Deployment", {"observedGeneration": 7, "replicas": 2, "updatedReplicas": 2}, {"replicas": 9}, False),
        ("Deployment", OLD_PODS, {}, True),
        ("Deployment", {"replicas": 3}, {}, True),
        ("ReplicaSet", {"replicas": 3}, {}, False),
        ("Rollout", OLD_PODS, {}, True),
        ("Rollout", {"observedGeneration": "6", "replicas": 3, "updatedReplicas": 3}, {}, False),
        ("Custom", {"replicas": "three", "updatedReplicas": None}, {"updateStrategy": "none"}, False),
        ("StatefulSet", OLD_PODS, {}, True),
        ("StatefulSet", {"replicas": 3, "currentRevision": "a", "updateRevision": "a"}, {}, False),
        ("StatefulSet", {**OLD_PODS, "currentRevision": "a", "updateRevision": "b"}, {}, True),
        ("StatefulSet", {**REVISIONS, "replicas": 5, "readyReplicas": 4, "updatedReplicas": 5}, {}, False),
        ("StatefulSet", {**REVISIONS, "replicas": 4, "updatedReplicas": 4}, {}, True),
        ("StatefulSet", {**REVISIONS, "replicas": 6, "updatedReplicas": 5}, {}, True),
        ("StatefulSet", {**OLD_PODS, "currentRevision": "a", "updateRevision": "b"}, {"type": "OnDelete"}, False),
        ("StatefulSet", OLD_PODS, {"type": "RollingUpdate", "rollingUpdate": {"partition": 3}}, False),
        ("StatefulSet", OLD_PODS, {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}, True),
    ],
)
def test_a_rollout_is_recognised_by_the_status(kind: str, status: object, spec: dict[str, Any], expected: bool) -> None:  # noqa: FBT001
    spec = {"updateStrategy": spec} if "type" in spec else spec
    assert read(document(kind, {"replicas": 5} | spec, status, generation=7)).rollout is expected


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({}, ()),
        ({"manager": "a", "fieldsV1": {"f:status": {"f:replicas": {}}}}, ()),
        (managed("a", {"f:spec": {"f:replicas": {}}}, time="yesterday"), ("a",)),
    ],
)
def test_managed_fields_may_lack_a_manager_and_state_any_time(entry: object, expected: tuple[str, ...]) -> None:
    assert read(document(spec={"replicas": 3}, managedFields=[entry])).replicas_managers == expected


def test_managers_and_the_pause_annotation_are_kept_up_to_a_limit() -> None:
    writers = [managed(f"writer-{number}", {"f:spec": {"f:replicas": {}}}) for number in range(5_000)]
    content = document(spec={"replicas": 3}, managedFields=writers, annotations={"tidewatch.io/paused": "x" * 262_144})
    found = read(content)
    assert found.replicas_managers == tuple(f"writer-{number}" for number in range(20))
    assert found.paused is not None
    assert len(found.paused) == 60


def test_replicas_are_1_where_the_api_server_sets_them() -> None:
    assert read(document(spec={})).replicas == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (document("DaemonSet", {}), "DaemonSet web has no spec.replicas"),
        (document(spec={"replicas": "three"}), "Deployment web: the size cannot be read"),
        (document(spec={"replicas": True}), "spec.replicas is not a whole number"),
        (document(spec={"replicas": -1}), "spec.replicas is not a whole number"),
        # A custom resource may hold any number.
        (document("Fleet", {"replicas": 10**20}), "spec.replicas is not a whole number from 0 to 2147483647"),
    ],
)
def test_an_object_without_a_size_is_a_no_replicas_error(content: dict[str, Any], message: str) -> None:
    with pytest.raises(NoReplicasError) as raised:
        scaled_object_of(content)
    assert message in str(raised.value)


@pytest.mark.parametrize("part", [{"spec": []}, {"metadata": {"managedFields": ["x"]}}])
def test_an_object_that_cannot_be_read_is_not_a_no_replicas_error(part: dict[str, Any]) -> None:
    with pytest.raises(FactError, match="the size cannot be read") as raised:
        scaled_object_of(document(spec={"replicas": 1}) | part)
    assert not isinstance(raised.value, NoReplicasError)
