"""An HPA owns the object that its `scaleTargetRef` names."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import pytest

from adapter.cluster.autoscalers import owners_of
from adapter.cluster.facts import autoscaler_of
from adapter.cluster.forms import AutoscalerForm
from tests.support.cluster_objects import autoscaler_object


@dataclass(frozen=True)
class Target:
    api_version: str
    kind: str
    namespace: str
    name: str


AUTOSCALERS = [
    autoscaler_of(msgspec.convert(autoscaler_object(name, namespace, target), AutoscalerForm))
    for name, namespace, target in (
        ("chat", "talk", {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}),
        ("web", "shop", {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}),
        ("old", "shop", {"apiVersion": "extensions/v1beta1", "kind": "Deployment", "name": "api"}),
        ("core", "shop", {"apiVersion": "v1", "kind": "ReplicationController", "name": "rc"}),
    )
]


@pytest.mark.parametrize(
    ("target", "owner"),
    [
        (Target("apps/v1", "Deployment", "shop", "web"), "web"),
        (Target("apps/v1beta2", "Deployment", "shop", "web"), "web"),
        (Target("v1", "ReplicationController", "shop", "rc"), "core"),
        (Target("apps/v1", "Deployment", "shop", "api"), None),
        (Target("apps/v1", "StatefulSet", "shop", "web"), None),
        (Target("apps/v1", "Deployment", "other", "web"), None),
        (Target("apps/v1", "Deployment", "shop", "chat"), None),
    ],
    ids=str,
)
def test_the_owner_of_a_target(target: Target, owner: str | None) -> None:
    found = owners_of(AUTOSCALERS, target)
    assert (found.name if found else None) == owner
