"""Objects that scheduling depends on, as the API server sends them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.cluster_objects import Json, metadata_of

if TYPE_CHECKING:
    from collections.abc import Mapping

GROUPS = {"ReplicationController": "v1", "Job": "batch/v1"}


def api_object(api_version: str, kind: str, name: str, namespace: str | None = None, **rest: object) -> Json:
    """Return an object of any kind; `metadata` in `rest` is added to its metadata."""
    metadata = rest.pop("metadata", {})
    assert isinstance(metadata, dict)
    uid = {"uid": f"uid-{name}"}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata_of(name, namespace) | uid | metadata} | rest


def workload(
    kind: str,
    name: str,
    *,
    labels: Mapping[str, str] | None = None,
    owner: tuple[str, str] | None = None,
    **spec: object,
) -> Json:
    """Return a workload of the namespace `shop` whose pods request half a core; `spec` adds to its template's spec."""
    container = {"name": "c", "resources": {"requests": {"cpu": "500m"}}}
    template = {"metadata": {"labels": dict(labels or {"app": name})}, "spec": {"containers": [container]} | spec}
    size = {} if kind in {"DaemonSet", "Job"} else {"replicas": 2}
    owners = (
        [{"apiVersion": "apps/v1", "kind": owner[0], "name": owner[1], "uid": "u", "controller": True}] if owner else []
    )
    return api_object(
        GROUPS.get(kind, "apps/v1"),
        kind,
        name,
        "shop",
        metadata={"ownerReferences": owners},
        spec=size | {"template": template},
    )


def budget(name: str, selector: Json | None, allowed: int | None = 1) -> Json:
    status = {} if allowed is None else {"disruptionsAllowed": allowed}
    return api_object("policy/v1", "PodDisruptionBudget", name, "shop", spec={"selector": selector}, status=status)


def claim(name: str, **spec: object) -> Json:
    phase = "Bound" if "volumeName" in spec else "Pending"
    return api_object("v1", "PersistentVolumeClaim", name, "shop", spec=spec, status={"phase": phase})
