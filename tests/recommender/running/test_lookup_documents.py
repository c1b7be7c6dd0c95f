from __future__ import annotations

from typing import Any

import pytest

from recommender.decisions.inputs import FieldManager, TargetState
from recommender.running.lookup_documents import is_rolling_out, replicas_managers, target_state

OBJECT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {
        "name": "web",
        "generation": 7,
        "annotations": {"tidewatch.io/paused": "down"},
        "managedFields": [
            {
                "manager": "argocd-controller",
                "operation": "Apply",
                "time": "2026-01-02T03:04:05Z",
                "fieldsV1": {"f:spec": {"f:replicas": {}, "f:template": {}}},
            },
            {"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:spec": {"f:template": {}}}},
            {
                "manager": "tidewatch",
                "operation": "Update",
                "subresource": "scale",
                "fieldsV1": {"f:spec": {"f:replicas": {}}},
            },
        ],
    },
    "spec": {"replicas": 3},
    "status": {"observedGeneration": 7, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 2},
}


def test_an_object_states_its_size_its_pause_and_who_wrote_its_replicas() -> None:
    assert target_state(OBJECT) == TargetState(
        replicas=3,
        ready_replicas=2,
        rollout=False,
        paused="down",
        replicas_managers=(
            FieldManager("argocd-controller", "Apply", 1767323045.0),
            FieldManager("tidewatch", "Update", None),
        ),
    )


def test_counts_that_the_api_leaves_out_are_zero() -> None:
    found = target_state({**OBJECT, "spec": {"replicas": 0}, "status": {"replicas": 0}})
    assert found is not None
    assert (found.replicas, found.ready_replicas, found.rollout) == (0, 0, False)
    assert target_state({**OBJECT, "status": {}}) is not None


@pytest.mark.parametrize("spec", [None, {}, {"replicas": "3"}, {"replicas": True}, {"replicas": -1}])
def test_an_object_without_a_size_is_asked_for_its_scale(spec: object) -> None:
    assert target_state({**OBJECT, "spec": spec}) is None


@pytest.mark.parametrize(
    ("kind", "status", "spec", "expected"),
    [
        ("Deployment", {"observedGeneration": 6, "replicas": 3, "updatedReplicas": 3}, {}, True),
        ("Deployment", {"observedGeneration": 7, "replicas": 4, "updatedReplicas": 1}, {}, True),
        ("Deployment", {"observedGeneration": 7, "replicas": 4}, {}, True),
        ("Deployment", {"observedGeneration": 7, "replicas": 2, "updatedReplicas": 2}, {"replicas": 9}, False),
        ("ReplicaSet", {"observedGeneration": 7, "replicas": 4}, {}, False),
        ("Rollout", {"observedGeneration": 7, "replicas": 4, "updatedReplicas": 1}, {}, True),
        ("Custom", {}, {}, False),
        ("StatefulSet", {"replicas": 4, "updatedReplicas": 1}, {}, True),
        ("StatefulSet", {"replicas": 4, "updatedReplicas": 1}, {"updateStrategy": {"type": "OnDelete"}}, False),
        (
            "StatefulSet",
            {"replicas": 4, "updatedReplicas": 1},
            {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 3}}},
            False,
        ),
    ],
    ids=[
        "not-seen-yet", "old-pods", "only-old-pods", "scaled", "no-versions", "custom", "no-status", "stateful",
        "on-delete", "partition",
    ],
)  # fmt: skip
def test_a_rollout_shows_in_the_status(kind: str, status: object, spec: dict[str, Any], expected: bool) -> None:  # noqa: FBT001 - one of a table
    document = {**OBJECT, "kind": kind, "spec": {"replicas": 3, **spec}, "status": status}
    assert is_rolling_out(document) is expected


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({}, ()),
        ("text", ()),
        ({"manager": "a", "fieldsV1": "text"}, ()),
        ({"manager": "a", "fieldsV1": {"f:spec": []}}, ()),
        ({"manager": "a", "fieldsV1": {"f:status": {"f:replicas": {}}}}, ()),
        ({"fieldsV1": {"f:spec": {"f:replicas": {}}}, "time": "yesterday"}, (FieldManager("", "", None),)),
    ],
)
def test_odd_managed_fields_harm_nothing(entry: object, expected: tuple[FieldManager, ...]) -> None:
    assert replicas_managers({"metadata": {"managedFields": [entry]}}) == expected


@pytest.mark.parametrize("metadata", [None, {}, {"managedFields": None}])
def test_an_object_that_nobody_manages_has_no_managers(metadata: object) -> None:
    assert replicas_managers({"metadata": metadata}) == ()
