from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.objects.quantities import parse_quantity
from recommender.outputs.pending_writes import RequestedSize, Resizing, StepLimit
from recommender.outputs.resize_documents import (
    can_be_resized,
    is_worth_a_write,
    manager_of_resources,
    objects_controlled_by,
    resized_containers,
)

MIB = 2**20
AMOUNTS = st.integers(1, 100_000)


def resizing(*sizes: RequestedSize, threshold: float = 0.1, up: bool = True, down: bool = True) -> Resizing:
    return Resizing(sizes, threshold, in_place=True, up=up, down=down, managers=())


def container(requests: dict[str, str] | None = None, limits: dict[str, str] | None = None) -> dict[str, Any]:
    resources = {key: value for key, value in (("requests", requests), ("limits", limits)) if value}
    return {"name": "app", "image": "x", "resources": resources}


@pytest.mark.parametrize(
    ("before", "size", "requests", "limits"),
    [
        (container({"cpu": "1"}), RequestedSize("app", "cpu", 250), {"cpu": "250m"}, None),
        (container({"cpu": "1"}, {"cpu": "2"}), RequestedSize("app", "cpu", 250), {"cpu": "250m"}, {"cpu": "500m"}),
        # A Guaranteed pod stays one.
        (container({"cpu": "1"}, {"cpu": "1"}), RequestedSize("app", "cpu", 333), {"cpu": "333m"}, {"cpu": "333m"}),
        (container({"cpu": "300m"}, {"cpu": "1"}), RequestedSize("app", "cpu", 700), {"cpu": "700m"}, {"cpu": "2334m"}),
        (container(), RequestedSize("app", "memory", 64 * MIB), {"memory": "64Mi"}, None),
        (
            container(None, {"memory": "32Mi"}), RequestedSize("app", "memory", 64 * MIB),
            {"memory": "64Mi"}, {"memory": "64Mi"},
        ),
        # The API server requests what a limit alone states, so that the pod is Guaranteed.
        (container(None, {"cpu": "2"}), RequestedSize("app", "cpu", 250), {"cpu": "250m"}, {"cpu": "250m"}),
        (container(None, {"cpu": "1"}), RequestedSize("app", "cpu", 1050), None, {"cpu": "1"}),
        (container({"cpu": "1"}), RequestedSize("other", "cpu", 250), {"cpu": "1"}, None),
        (container({"cpu": "1"}), RequestedSize("app", "cpu", 1100), {"cpu": "1"}, None),
        (container({"cpu": "1"}), RequestedSize("app", "cpu", 1101), {"cpu": "1101m"}, None),
    ],
    ids=[
        "lower", "limit in proportion", "guaranteed", "rounded up", "no request", "limit alone",
        "guaranteed by a limit alone", "limit alone at the threshold", "another container", "at the threshold",
        "above the threshold",
    ],
)  # fmt: skip
def test_limits_stay_in_proportion(
    before: dict[str, Any], size: RequestedSize, requests: dict[str, str], limits: dict[str, str] | None
) -> None:
    [found] = resized_containers([before], resizing(size))
    assert found["resources"].get("requests") == requests
    assert found["resources"].get("limits") == limits
    assert found["image"] == "x"


@pytest.mark.parametrize(
    ("before", "requested", "limited", "requests", "limits"),
    [
        (container({"cpu": "1"}, {"cpu": "2"}), 250, 3000, {"cpu": "250m"}, {"cpu": "3"}),
        (container({"cpu": "1"}), None, 3000, {"cpu": "1"}, {"cpu": "3"}),
        (container(), None, 3000, None, {"cpu": "3"}),
        (container({"cpu": "1"}, {"cpu": "2"}), 1050, 2100, {"cpu": "1"}, {"cpu": "2"}),
        # Alone, the limit would stay, and the request would be above it.
        (container({"cpu": "1"}, {"cpu": "1150m"}), 1200, 1200, {"cpu": "1200m"}, {"cpu": "1200m"}),
    ],
    ids=["both", "limit alone", "no sizes", "too small a change", "one of both far enough"],
)
def test_limits_can_have_a_separate_size(
    before: dict[str, Any],
    requested: int | None,
    limited: int,
    requests: dict[str, str] | None,
    limits: dict[str, str],
) -> None:
    sizes = () if requested is None else (RequestedSize("app", "cpu", requested),)
    [found] = resized_containers([before], replace(resizing(*sizes), limits=(RequestedSize("app", "cpu", limited),)))
    assert found["resources"].get("requests") == requests
    assert found["resources"].get("limits") == limits


@pytest.mark.parametrize(
    ("before", "wanted", "requests", "limits"),
    [
        (container({"cpu": "100m"}), 300, {"cpu": "250m"}, None),
        (container({"cpu": "9"}), 4000, {"cpu": "5"}, None),
        (container({"cpu": "1"}, {"cpu": "2"}), 300, {"cpu": "900m"}, {"cpu": "1800m"}),
        (container({"cpu": "1"}), 4000, {"cpu": "1100m"}, None),
        (container({"cpu": "1"}), 950, {"cpu": "1"}, None),
        (container({"cpu": "310m"}), 300, {"cpu": "310m"}, None),
        (container({"cpu": "335m"}), 300, {"cpu": "302m"}, None),
        (container(), 300, {"cpu": "300m"}, None),
        (container(None, {"cpu": "1"}), 300, {"cpu": "900m"}, {"cpu": "900m"}),
    ],
    ids=[
        "below min",
        "above max",
        "lower",
        "higher",
        "too small a change",
        "almost there",
        "a step from there",
        "no request",
        "a limit alone",
    ],
)  # fmt: skip
def test_a_size_can_be_reached_in_steps_from_the_present_request(
    before: dict[str, Any], wanted: int, requests: dict[str, str], limits: dict[str, str] | None
) -> None:
    size = RequestedSize("app", "cpu", wanted, StepLimit(0.1, least=250, most=5000))
    [found] = resized_containers([before], resizing(size))
    assert (found["resources"].get("requests"), found["resources"].get("limits")) == (requests, limits)


def test_a_pause_of_one_direction_stops_limits_too() -> None:
    wanted = replace(resizing(up=False), limits=(RequestedSize("app", "cpu", 3000),))
    before = [container({"cpu": "1"}, {"cpu": "2"})]
    assert resized_containers(before, wanted) == before


def test_unchanged_containers_are_left_as_they_were() -> None:
    before = [container(), container({"cpu": "1"}, {"cpu": "2"}), {"name": "bare"}]
    assert resized_containers(before, resizing(RequestedSize("app", "cpu", 1000), up=False)) == before


@given(AMOUNTS, AMOUNTS, AMOUNTS)
def test_no_limit_is_ever_below_its_request(present: int, limit: int, wanted: int) -> None:
    limit += present
    before = container({"cpu": f"{present}m"}, {"cpu": f"{limit}m"})
    [found] = resized_containers([before], resizing(RequestedSize("app", "cpu", wanted), threshold=0.0))
    request, highest = (parse_quantity(found["resources"][key]["cpu"]) for key in ("requests", "limits"))
    assert request.milli_value() == wanted
    assert highest >= request


@given(AMOUNTS, AMOUNTS, st.booleans(), st.booleans())
def test_a_paused_direction_is_never_written(present: int, wanted: int, up: bool, down: bool) -> None:  # noqa: FBT001 - facts
    if is_worth_a_write(present, wanted, resizing(up=up, down=down)):
        assert up if wanted > present else down


@pytest.mark.parametrize(("manager", "expected"), [("argocd-controller", "argocd-controller"), ("kubectl", "")])
def test_a_manager_that_keeps_writing_resources_owns_them(manager: str, expected: str) -> None:
    owned: dict[str, Any] = {
        "f:spec": {"f:template": {"f:spec": {"f:containers": {'k:{"name":"app"}': {"f:resources": {}}}}}}
    }
    workload = {"metadata": {"managedFields": [{"manager": manager, "fieldsV1": owned}]}}
    assert manager_of_resources(workload, ("argocd-*",)) == expected
    replicas_alone = {"metadata": {"managedFields": [{"manager": manager, "fieldsV1": {"f:spec": {"f:replicas": {}}}}]}}
    assert not manager_of_resources(replicas_alone, ("*",))


@pytest.mark.parametrize("part", ["requests", "limits"])
@pytest.mark.parametrize(
    ("status", "able"),
    [
        ({"containerStatuses": [{}], "resources": {}}, True),
        ({"containerStatuses": [{}]}, False),
        ({}, True),
    ],
    ids=["reported", "not reported", "not started"],
)
def test_a_pod_with_resources_of_its_own_is_resized_only_by_a_kubelet_that_reports_them(
    part: str, status: dict[str, Any], *, able: bool
) -> None:
    spec = {"containers": [container({"cpu": "1"})], "resources": {part: {"cpu": "2"}}}
    assert can_be_resized({"spec": spec, "status": status}, resizing(RequestedSize("app", "cpu", 500))) is able


def test_only_objects_with_a_controller_reference_are_controlled() -> None:
    def owned(uid: str, *, controls: bool = True) -> dict[str, Any]:
        return {"metadata": {"ownerReferences": [{"uid": uid, "controller": controls}]}}

    mine = owned("a")
    assert objects_controlled_by(
        [mine, owned("b"), owned("a", controls=False), {"metadata": {}}], frozenset({"a"})
    ) == [mine]
