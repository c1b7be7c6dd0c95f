"""Reads the objects that `init` needs, from the API server or from the files of `--cluster`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from adapter.foundation.cluster.files.reading import read_whole_objects, state_of
from adapter.foundation.cluster.values.state import ClusterNeeds, ObjectKind, Observed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from adapter.foundation.sources.kubernetes.writing import ObjectClient

_PAGE: Final = 500
_CONTINUE: Final = "continue"
_LISTS: Final = (
    ("Node", "/api/v1/nodes"),
    ("Deployment", "/apis/apps/v1/deployments"),
    ("StatefulSet", "/apis/apps/v1/statefulsets"),
)
_KINDS: Final = frozenset(
    {
        ObjectKind("", "nodes", "Node"),
        ObjectKind("", "pods", "Pod"),
        ObjectKind("apps", "deployments", "Deployment"),
        ObjectKind("apps", "statefulsets", "StatefulSet"),
    }
)


def documents_of_server(client: ObjectClient, namespaces: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield nodes and workloads, and a few hundred pods of each namespace. Raises KubernetesError."""
    for kind, path in _LISTS:
        query = {"limit": str(_PAGE)}
        while True:
            found = client.get(path, query).document
            yield from _items(found, kind)
            token = (found.get("metadata") or {}).get(_CONTINUE)
            if not token:
                break
            query = {**query, _CONTINUE: str(token)}
    for namespace in sorted(set(namespaces)):
        # That is enough to know how long pods take to start.
        yield from _items(client.get(f"/api/v1/namespaces/{namespace}/pods", {"limit": str(_PAGE)}).document, "Pod")


def documents_of_files(path: Path) -> Iterator[dict[str, Any]]:
    """Yield nodes, workloads and pods of a file or a folder. Raises ClusterFilesError."""
    state = state_of(read_whole_objects(path, _KINDS), ClusterNeeds(objects=_KINDS), time.time(), path)
    for kind in _KINDS:
        found = state.objects.get(kind)
        if isinstance(found, Observed):
            yield from ({**document, "kind": kind.kind} for document in found.value)


def _items(listed: dict[str, Any], kind: str) -> Iterator[dict[str, Any]]:
    # The items of a list do not state their kind.
    return ({**item, "kind": kind} for item in listed.get("items") or () if isinstance(item, dict))
