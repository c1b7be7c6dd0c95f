"""Whole objects as decisions see them."""

from __future__ import annotations

import msgspec
import pytest

from adapter.foundation.cluster.watch.whole_objects.watching import AnyObjectForm, whole_object
from adapter.foundation.objects.resources import Resource

LEASES = Resource("coordination.k8s.io", "v1", "leases", "lease", "Lease", namespaced=True)


def lease(renewed: object) -> object:
    content = {"metadata": {"name": "a"}, "spec": {"holderIdentity": "x", "renewTime": renewed}}
    form = msgspec.json.decode(msgspec.json.encode(content), type=AnyObjectForm)
    return whole_object(LEASES, form)["spec"]


def test_a_renewed_lease_is_unchanged_until_the_next_minute() -> None:
    assert lease("2026-11-22T15:59:02.123456Z") == lease("2026-11-22T15:59:58.000000Z")
    assert lease("2026-11-22T15:59:02.123456Z") == {"holderIdentity": "x", "renewTime": "2026-11-22T15:59:00Z"}
    assert lease("2026-11-22T15:59:02.123456Z") != lease("2026-11-22T16:00:02.123456Z")


def test_new_vpa_recommendations_are_not_a_change() -> None:
    kind = Resource("autoscaling.k8s.io", "v1", "verticalpodautoscalers", "", "VerticalPodAutoscaler", namespaced=True)

    def seen(target: str, mode: str = "Auto") -> object:
        content = {"metadata": {"name": "a"}, "spec": {"updatePolicy": {"updateMode": mode}}, "status": {"x": target}}
        return whole_object(kind, msgspec.json.decode(msgspec.json.encode(content), type=AnyObjectForm))

    assert seen("25m") == seen("50m") != seen("50m", "Off")


def test_only_the_name_and_target_of_a_scaled_object_are_kept() -> None:
    kind = Resource("keda.sh", "v1alpha1", "scaledobjects", "", "ScaledObject", namespaced=True)
    content = {
        "metadata": {"namespace": "shop", "name": "a", "annotations": {"large": "x"}, "labels": {"large": "x"}},
        "spec": {"scaleTargetRef": {"name": "web"}, "triggers": [{"type": "cron"}]},
        "status": {"lastActiveTime": "2026-11-22T15:59:58Z"},
    }
    form = msgspec.json.decode(msgspec.json.encode(content), type=AnyObjectForm)
    assert whole_object(kind, form) == {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"namespace": "shop", "name": "a"},
        "spec": {"scaleTargetRef": {"name": "web"}},
    }


@pytest.mark.parametrize("renewed", [None, 7, "", "soon"])
def test_a_lease_with_an_unreadable_time_is_not_an_error(renewed: object) -> None:
    assert isinstance(lease(renewed), dict)


def test_of_the_field_managers_only_those_of_the_size_are_kept() -> None:
    kind = Resource("cluster.x-k8s.io", "v1beta2", "machinedeployments", "", "MachineDeployment", namespaced=True)
    size: dict[str, object] = {"f:replicas": {}}
    wrote_size = {"manager": "kubectl", "operation": "Update", "subresource": "scale", "time": "2026-11-22T16:00:00Z"}
    content = {
        "metadata": {
            "name": "a",
            "managedFields": [
                {"manager": "manager", "operation": "Update", "fieldsV1": {"f:status": {"f:replicas": {}}}},
                {**wrote_size, "fieldsV1": {"f:spec": {**size, "f:template": {"f:spec": {}}}}},
            ],
        }
    }
    form = msgspec.json.decode(msgspec.json.encode(content), type=AnyObjectForm)
    metadata = whole_object(kind, form)["metadata"]
    kept = {"manager": "kubectl", "time": "2026-11-22T16:00:00Z", "fieldsV1": {"f:spec": size}}
    assert metadata == {"name": "a", "managedFields": [kept]}
