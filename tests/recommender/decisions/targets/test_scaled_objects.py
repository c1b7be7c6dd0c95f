"""The ScaledObjects of KEDA that own a target."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from adapter.foundation.cluster.values.state import ClusterState, ObjectKind, Observed, Unknown
from recommender.configuration.needs import needs_of
from recommender.configuration.reading import read_configuration
from recommender.decisions.loop import decide
from recommender.decisions.memory import Memory
from recommender.decisions.record import TargetAction
from recommender.decisions.targets.scaled_objects import scaled_object_kinds, with_scaled_objects
from tests.recommender.configuration.files import entry, whole
from tests.recommender.decisions.harness import DNS, NOW, asks_for, inputs, policy

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.state import JsonObject
    from recommender.decisions.inputs import Inputs
    from recommender.decisions.record import TargetOutcome

[HERE] = scaled_object_kinds([DNS.namespace])
[EVERYWHERE] = scaled_object_kinds([""])
REFERENCE = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "coredns"}
TARGETS = "targets: [{apiVersion: apps/v1, kind: Deployment, namespace: shop, name: web}]"
OBJECTS = "recommendationObjects: {enabled: true, outputs: [%s]}\n"


def scaled(reference: object = None, namespace: str = DNS.namespace) -> dict[str, Any]:
    return {
        "metadata": {"namespace": namespace, "name": "dns", "annotations": {"autoscaling.keda.sh/paused": "true"}},
        "spec": {"scaleTargetRef": REFERENCE if reference is None else reference},
    }


def seen(fact: Observed[tuple[JsonObject, ...]] | Unknown, kind: ObjectKind = HERE) -> Inputs:
    given = inputs()
    state = ClusterState(autoscalers=given.cluster.autoscalers, objects={kind: fact})
    return with_scaled_objects(replace(given, cluster=state))


def outcome(given: Inputs, memory: Memory | None = None) -> tuple[TargetOutcome, Memory]:
    decision = decide(policy(), asks_for(11), given, memory or Memory(), NOW)
    return decision.record.targets[0], decision.memory


@pytest.mark.parametrize("kind", [HERE, EVERYWHERE])
@pytest.mark.parametrize(
    "reference", [None, {"name": "coredns"}, REFERENCE | {"apiVersion": ""}, REFERENCE | {"apiVersion": "apps/v1beta2"}]
)
def test_a_target_of_a_paused_scaled_object_without_an_hpa_is_refused(kind: ObjectKind, reference: object) -> None:
    found, _ = outcome(seen(Observed((scaled(reference),), NOW), kind))
    assert (found.action, found.owner) == (TargetAction.REFUSED, "ScaledObject kube-system/dns")
    assert "let KEDA follow the metric" in found.message


@pytest.mark.parametrize(
    "document",
    [
        scaled(REFERENCE | {"name": "other"}),
        scaled(REFERENCE | {"kind": "StatefulSet"}),
        scaled(REFERENCE | {"apiVersion": "argoproj.io/v1alpha1"}),
        scaled(namespace="shop"),
        scaled([]),
        {"metadata": None, "spec": 7},
    ],
)
def test_a_scaled_object_with_another_target_owns_nothing(document: dict[str, Any]) -> None:
    assert outcome(seen(Observed((document,), NOW), EVERYWHERE))[0].action is TargetAction.SCALE


def test_no_target_is_refused_if_keda_is_not_installed() -> None:
    absent = Unknown("the API server does not serve scaledobjects", is_refused=True, is_absent=True)
    assert outcome(seen(absent))[0].action is TargetAction.SCALE


@pytest.mark.parametrize(
    ("fact", "action"),
    [
        (Unknown("403 Forbidden", is_refused=True), TargetAction.REFUSED),
        (Unknown("the first list has not arrived yet", is_awaited=True), TargetAction.NONE),
        (Observed((), NOW - 61), TargetAction.REFUSED),
        (Observed((), NOW), TargetAction.SCALE),
    ],
)
def test_no_size_is_written_while_scaled_objects_cannot_be_looked_up(
    fact: Observed[tuple[JsonObject, ...]] | Unknown, action: TargetAction
) -> None:
    found, _ = outcome(seen(fact))
    assert found.action is action
    assert ("ScaledObjects of namespace kube-system cannot be looked up" in found.message) == (
        action is not TargetAction.SCALE
    )


def test_a_known_scaled_object_is_not_forgotten_after_one_empty_list() -> None:
    _, memory = outcome(seen(Observed((scaled(),), NOW)))
    found, memory = outcome(seen(Observed((), NOW, began_empty=True)), memory)
    assert found.action is TargetAction.NONE
    assert "a second list has to agree" in found.message
    assert outcome(seen(Observed((), NOW)), memory)[0].action is TargetAction.SCALE


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (whole(entry("a", TARGETS, "outputs: [metric, scale]")), scaled_object_kinds(["shop"])),
        (whole(entry("a", TARGETS, "outputs: [metric]")), frozenset()),
        (whole(entry("a", TARGETS), top=OBJECTS % "metric"), frozenset()),
        (whole(entry("a", TARGETS), top=OBJECTS % "metric, scale"), scaled_object_kinds([""])),
    ],
)
def test_scaled_objects_are_read_only_if_sizes_are_written(text: str, expected: frozenset[ObjectKind]) -> None:
    assert needs_of(read_configuration(text, "recommender.yaml")).objects == expected
