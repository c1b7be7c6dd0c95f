"""The objects of the stand-in for kube-apiserver and their history, with the rules of etcd for versions and pages."""

from __future__ import annotations

import base64
import json
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from adapter.foundation.objects.selectors import parse_selector

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from adapter.foundation.objects.resources import Resource

Json: TypeAlias = "dict[str, Any]"


@dataclass(frozen=True)
class Change:
    version: int
    resource: Resource
    type: str
    object: Json
    before: Json | None = None
    """The object before this change."""


class RefusedError(Exception):
    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.status = status_of(code, reason, message)


class Store:
    """Objects and their changes, as etcd keeps them."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.version = 1000
        self.expiries = 0
        self._compacted = 0
        self._objects: dict[Resource, dict[tuple[str, str], Json]] = {}
        self._history: list[Change] = []
        self._snapshots: dict[tuple[int, Resource], list[Json]] = {}

    def put(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        labels: Mapping[str, str],
        content: Mapping[str, Any] | None = None,
    ) -> None:
        """Create or update an object; `content` replaces its spec."""
        with self.changed:
            self.version += 1
            objects = self._objects.setdefault(resource, {})
            before = objects.get((namespace, name))
            kind = "ADDED" if before is None else "MODIFIED"
            made = object_of(resource, namespace, name, labels, self.version)
            if content is not None:
                made = {key: made[key] for key in ("kind", "apiVersion", "metadata")} | dict(content)
            objects[namespace, name] = made
            self._tell(Change(self.version, resource, kind, made, before))

    def remove(self, resource: Resource, namespace: str, name: str) -> None:
        with self.changed:
            self.version += 1
            gone = self._objects[resource].pop((namespace, name))
            last = {**gone, "metadata": {**gone["metadata"], "resourceVersion": str(self.version)}}
            self._tell(Change(self.version, resource, "DELETED", last, gone))

    def backup(self) -> Callable[[], None]:
        """Return what restores the current state, whose next changes then have versions that were used before."""
        with self.changed:
            version, compacted, history = self.version, self._compacted, list(self._history)
            objects = {resource: dict(found) for resource, found in self._objects.items()}

        def restore() -> None:
            with self.changed:
                self.version, self._compacted, self._history = version, compacted, list(history)
                self._objects = {resource: dict(found) for resource, found in objects.items()}
                self._snapshots.clear()

        return restore

    def compact(self) -> None:
        with self.changed:
            self._compacted = self.version
            self._snapshots.clear()

    def expire_watches(self) -> None:
        with self.changed:
            self.expiries += 1
            self.changed.notify_all()

    def wake(self) -> None:
        with self.changed:
            self.changed.notify_all()

    def _tell(self, change: Change) -> None:
        self._history.append(change)
        self.changed.notify_all()

    def page(self, resource: Resource, namespace: str, query: Mapping[str, str]) -> Json:
        """Return one page of a list of whole objects."""
        limit = 0 if query.get("resourceVersion") == "0" else integer(query, "limit")
        with self.changed:
            version, start = self._position(resource, query)
            snapshot = self._snapshots[version, resource]
        rest = [one for one in snapshot if key_of(one) > start and is_selected(one, namespace, query)]
        shown = rest[:limit] if limit else rest
        metadata: Json = {"resourceVersion": str(version)}
        if len(shown) < len(rest):
            token = json.dumps([version, *key_of(shown[-1])])
            metadata["continue"] = base64.urlsafe_b64encode(token.encode()).decode()
            metadata["remainingItemCount"] = len(rest) - len(shown)
        return {
            "kind": f"{resource.kind}List",
            "apiVersion": resource.api_version,
            "metadata": metadata,
            "items": shown,
        }

    def _position(self, resource: Resource, query: Mapping[str, str]) -> tuple[int, tuple[str, str]]:
        """Return the version of a page, and the key after which the page starts."""
        if token := query.get("continue"):
            if query.get("resourceVersion"):
                raise RefusedError(400, "BadRequest", "specifying resource version is not allowed when using continue")
            try:
                version, namespace, name = json.loads(base64.urlsafe_b64decode(token))
            except ValueError as error:
                raise RefusedError(400, "BadRequest", "continue key is not valid") from error
            if (version, resource) not in self._snapshots:
                message = "The provided continue parameter is too old to display a consistent list result."
                raise RefusedError(410, "Expired", message)
            return version, (namespace, name)
        if integer(query, "resourceVersion") > self.version:
            raise RefusedError(504, "Timeout", "Too large resource version")
        self._snapshots[self.version, resource] = sorted(self._objects.get(resource, {}).values(), key=key_of)
        return self.version, ("", "")

    def watch_start(self, resource: Resource, query: Mapping[str, str]) -> tuple[int, list[Change]]:
        """Return the version after which a watch starts, and its first events."""
        asked = integer(query, "resourceVersion")
        with self.changed:
            if asked and asked < self._compacted:
                return asked, [Change(asked, resource, "ERROR", too_old(asked, self._compacted))]
            if asked:
                return asked, []
            present = self._objects.get(resource, {}).values()
            return self.version, [Change(self.version, resource, "ADDED", one) for one in present]

    def after(self, resource: Resource, version: int) -> list[Change]:
        """Return the changes of the kind after the version; call it while `changed` is held."""
        return [change for change in self._history if change.version > version and change.resource == resource]


def integer(query: Mapping[str, str], name: str) -> int:
    text = query.get(name, "") or "0"
    if not text.isdigit():
        raise RefusedError(400, "BadRequest", f"{name} is not a number: {text!r}")
    return int(text)


def is_selected(one: Json, namespace: str, query: Mapping[str, str]) -> bool:
    """Return whether the object is in the requested namespace, if any, and matches the selectors."""
    if namespace not in {"", key_of(one)[0]} or selected_name(query) not in {None, key_of(one)[1]}:
        return False
    selector = query.get("labelSelector")
    labels: dict[str, str] = one["metadata"].get("labels") or {}
    return not selector or parse_selector(selector).matches(labels)


def shown_type(change: Change, namespace: str, query: Mapping[str, str]) -> str | None:
    """Return the type of event that a watch with these selectors shows; None if it shows none.

    An object whose labels change may enter the selection or leave it.
    """
    if change.type in {"BOOKMARK", "ERROR"}:
        return change.type
    is_now = change.type != "DELETED" and is_selected(change.object, namespace, query)
    was = change.before is not None and is_selected(change.before, namespace, query)
    return {(False, True): "ADDED", (True, True): "MODIFIED", (True, False): "DELETED"}.get((was, is_now))


def selected_name(query: Mapping[str, str]) -> str | None:
    """Return the name in a field selector, which is the one field that all kinds know; None without a selector."""
    selector = query.get("fieldSelector")
    if not selector:
        return None
    field, equals, name = selector.partition("=")
    if field != "metadata.name" or not equals or "," in name:
        raise RefusedError(400, "BadRequest", f"field label not supported: {selector}")
    return name.removeprefix("=")


def key_of(one: Json) -> tuple[str, str]:
    return one["metadata"].get("namespace", ""), one["metadata"].get("name", "")


def status_of(code: int, reason: str, message: str) -> Json:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }


def too_old(version: int, oldest: int) -> Json:
    return status_of(410, "Expired", f"too old resource version: {version} ({oldest})")


def object_of(resource: Resource, namespace: str, name: str, labels: Mapping[str, str], version: int) -> Json:
    """Return a whole object, with parts that a careless reader may take for the start of another one."""
    metadata: Json = {
        "name": name,
        "uid": f"uid-{name}",
        "resourceVersion": str(version),
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": dict(labels),
        "annotations": {"note": '},{"metadata":{"name":"not an object"}},{"kind":"'},
        "managedFields": [
            {"manager": "kubelet", "operation": "Update", "fieldsV1": {"f:metadata": {"f:labels": {".": {}}}}},
            {"manager": "kube-controller-manager", "operation": "Update", "fieldsV1": {"f:status": {}}},
        ],
    }
    if namespace:
        metadata["namespace"] = namespace
    if not name:
        metadata = {"resourceVersion": str(version), "creationTimestamp": None}
    return {
        "kind": resource.kind,
        "apiVersion": resource.api_version,
        "metadata": metadata,
        "spec": {"items": [{}, {}]},
    }


def partial_of(one: Json) -> Json:
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": one["metadata"]}
