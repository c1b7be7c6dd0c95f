"""The VerticalPodAutoscalers that also set the sizes of a target."""

from __future__ import annotations

from typing import Any

import pytest

from adapter.foundation.cluster.values.state import ClusterState, Observed, Unknown
from recommender.decisions.record import TargetReference
from recommender.decisions.targets.vertical_autoscalers import (
    active_autoscalers,
    autoscaler_of,
    known_autoscalers,
    note_about,
    vertical_autoscaler_kinds,
)

WEB = TargetReference("apps/v1", "Deployment", "shop", "web")
REFERENCE = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}


def vertical(name: str = "v", namespace: str = "shop", **spec: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    return {"metadata": {"namespace": namespace, "name": name}, "spec": {"targetRef": REFERENCE} | spec}


def policies(*those: tuple[str, str]) -> dict[str, Any]:
    return {"resourcePolicy": {"containerPolicies": [{"containerName": name, "mode": mode} for name, mode in those]}}


@pytest.mark.parametrize(
    ("found", "mode"),
    [
        (vertical(), "Auto"),
        (vertical(updatePolicy={}), "Auto"),
        (vertical(updatePolicy={"updateMode": "InPlaceOrRecreate"}), "InPlaceOrRecreate"),
        (vertical(updatePolicy={"updateMode": "Initial"}), "Initial"),
        (vertical(updatePolicy={"updateMode": "Off"}), None),
        (vertical(namespace="other"), None),
        (vertical(targetRef=REFERENCE | {"name": "api"}), None),
        (vertical(targetRef=REFERENCE | {"kind": "StatefulSet"}), None),
        (vertical(targetRef=REFERENCE | {"apiVersion": "apps/v1beta2"}), "Auto"),
        (vertical(targetRef={"kind": "Deployment", "name": "web"}), "Auto"),
        (vertical(targetRef=REFERENCE | {"apiVersion": "example.com/v1"}), None),
        (vertical(**policies(("*", "Off"))), None),
        (vertical(**policies(("*", "Off"), ("app", "Auto"))), "Auto"),
        (vertical(**policies(("app", "Off"))), "Auto"),
        ({"metadata": {"namespace": "shop", "name": "v"}, "spec": None}, None),
        ({"metadata": None, "spec": {"targetRef": [], "resourcePolicy": {"containerPolicies": 7}}}, None),
    ],
)
def test_only_an_autoscaler_that_writes_requests_of_the_target_counts(found: dict[str, Any], mode: str | None) -> None:
    active = autoscaler_of(active_autoscalers([found]), WEB)
    assert (None if active is None else active.mode) == mode


BOOST = {"cpu": {"type": "Factor", "factor": 2}}


@pytest.mark.parametrize(
    ("spec", "counts"),
    [
        ({"startupBoost": BOOST}, True),
        ({"resourcePolicy": {"containerPolicies": [{"containerName": "app", "startupBoost": BOOST}]}}, True),
        ({"startupBoost": BOOST} | policies(("*", "Off")), False),
        ({"startupBoost": None}, False),
    ],
    ids=["pod", "container", "no container", "none"],
)
def test_one_that_boosts_the_start_of_pods_counts_even_with_the_mode_off(spec: dict[str, Any], counts: bool) -> None:  # noqa: FBT001 - a parameter
    found = autoscaler_of(active_autoscalers([vertical(updatePolicy={"updateMode": "Off"}, **spec)]), WEB)
    assert (found is not None) is counts
    if found is not None:
        assert found.remedy == "remove its startupBoost"
        assert note_about(found) == (
            "VerticalPodAutoscaler shop/v sizes it too (startupBoost): remove that, or follow only one of them"
        )


def test_the_first_autoscaler_by_name_is_named_and_duplicates_count_once() -> None:
    known = active_autoscalers([vertical("b"), vertical("a"), vertical("a")])
    assert [each.name for each in known["shop", "Deployment", "web"]] == ["a", "b"]
    found = autoscaler_of(known, WEB)
    assert found is not None
    assert note_about(found) == (
        "VerticalPodAutoscaler shop/a sizes it too (updateMode Auto): set that to Off, or follow only one of them"
    )


def test_autoscalers_that_cannot_be_read_do_not_count() -> None:
    shop, other = sorted(vertical_autoscaler_kinds(["shop", "other"]), key=lambda kind: kind.namespace, reverse=True)
    state = ClusterState(objects={shop: Observed((vertical(),), 1.0), other: Unknown("forbidden", is_refused=True)})
    assert set(known_autoscalers(state)) == {("shop", "Deployment", "web")}
