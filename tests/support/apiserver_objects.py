"""Single objects as kube-apiserver keeps them: created, patched under their resourceVersion, allowed or not.

    store = ObjectStore()
    store.put(SECRETS, "monitoring", "tls", {...})      # as if somebody else had done it
    store.deny("patch", "apiservices")                  # RBAC: 403, and `no` in access reviews
    store.get(...), store.create(...), store.merge(...) # as the API server would; RefusedError holds the Status
    store.replace(path, ...), store.delete(path, ...), store.scale(path)

It keeps to what a client can get wrong: 409 for a taken name, an old resourceVersion or a UID that is gone, 404, 422
for what validation refuses (the rules of Secrets, APIServices and Leases; a PUT of a Lease without resourceVersion),
400 for what does not decode, 403 by `deny`.
`Direct` is the same without HTTP, for tests that take many thousand steps.
"""

from __future__ import annotations

import copy
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

from adapter.foundation.sources.kubernetes.errors import ErrorStatus, FencedError, error_of_status
from adapter.foundation.sources.kubernetes.writing import Fence, Reply
from tests.support.apiserver_kinds import KINDS, LEASES, Kind
from tests.support.apiserver_store import Json, RefusedError
from tests.support.apiserver_validation import invalid, validate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SYSTEM_USER = "system:serviceaccount:monitoring:tidewatch"


class ObjectStore:
    """Objects of any kind by namespace and name. Thread-safe."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.version = 1000
        self.denied: set[tuple[str, str]] = set()
        self.denied_of: dict[str, set[tuple[str, str]]] = {}
        self._objects: dict[tuple[Kind, str, str], Json] = {}

    def deny(self, verb: str, plural: str, user: str = SYSTEM_USER) -> None:
        """Revoke a right of the program, or of another user."""
        (self.denied if user == SYSTEM_USER else self.denied_of.setdefault(user, set())).add((verb, plural))

    def allow(self, verb: str, plural: str) -> None:
        """Restore a right of the program."""
        self.denied.discard((verb, plural))

    def allows(self, verb: str, plural: str, user: str = SYSTEM_USER) -> bool:
        """Return whether the user has the right."""
        denied = self.denied if user == SYSTEM_USER else self.denied_of.get(user, set())
        return not {(verb, plural), ("*", plural), (verb, "*")} & denied

    def put(self, kind: Kind, namespace: str, name: str, document: Mapping[str, Any]) -> None:
        """Set an object on behalf of a test, regardless of all rules."""
        with self.lock:
            self.version += 1
            one = copy.deepcopy(dict(document))
            one.setdefault("metadata", {}).update({"name": name, "resourceVersion": str(self.version)})
            one["metadata"].setdefault("uid", f"uid-{self.version}")
            if namespace:
                one["metadata"]["namespace"] = namespace
            self._objects[kind, namespace, name] = one

    def change(self, kind: Kind, namespace: str, name: str, change: Callable[[Json], object]) -> None:
        """Edit an object in place on behalf of a test."""
        with self.lock:
            one = self._objects[kind, namespace, name]
            change(one)
            self.put(kind, namespace, name, one)

    def remove(self, kind: Kind, namespace: str, name: str) -> None:
        """Delete an object."""
        with self.lock:
            del self._objects[kind, namespace, name]

    def find(self, kind: Kind, namespace: str, name: str) -> Json | None:
        """Return a copy of an object; None if there is none."""
        with self.lock:
            return copy.deepcopy(self._objects.get((kind, namespace, name)))

    def listed(self, kind: Kind, namespace: str = "") -> list[Json]:
        """Return copies of the objects of a kind, in one namespace or all."""
        with self.lock:
            found = sorted(self._objects.items(), key=lambda item: item[0])
            return [
                copy.deepcopy(one) for (which, where, _), one in found if which == kind and namespace in {"", where}
            ]

    def get(self, kind: Kind, namespace: str, name: str) -> Json:
        self._authorize("get", kind, name)
        found = self.find(kind, namespace, name)
        if found is None:
            raise RefusedError(404, "NotFound", f'{_resource(kind)} "{name}" not found')
        return found

    def create(self, kind: Kind, namespace: str, document: Json) -> Json:
        self._authorize("create", kind, "")
        metadata = document.get("metadata") or {}
        name = str(metadata.get("name") or "")
        if document.get("kind") != KINDS[kind]:
            raise RefusedError(400, "BadRequest", f"the kind in the data ({document.get('kind')}) is not the expected")
        if metadata.get("namespace", namespace) != namespace:
            raise RefusedError(400, "BadRequest", "the namespace of the object does not match that of the request")
        if metadata.get("resourceVersion"):
            raise RefusedError(400, "BadRequest", "resourceVersion should not be set on objects to be created")
        if not name:
            raise invalid(kind, name, "metadata.name: Required value: name or generateName is required")
        with self.lock:
            if (kind, namespace, name) in self._objects:
                raise RefusedError(409, "AlreadyExists", f'{_resource(kind)} "{name}" already exists')
            validate(kind, name, {**document, "metadata": {**metadata, "namespace": namespace}}, None)
            self.put(kind, namespace, name, document)
            return self.get_without_rights(kind, namespace, name)

    def merge(self, kind: Kind, namespace: str, name: str, patch: Json, *, strategic: bool = False) -> Json:
        self._authorize("patch", kind, name)
        with self.lock:
            before = self.find(kind, namespace, name)
            if before is None:
                raise RefusedError(404, "NotFound", f'{_resource(kind)} "{name}" not found')
            _check_version(kind, name, before, (patch.get("metadata") or {}).get("resourceVersion"))
            after = merged(before, _with_whole_lists(before, patch) if strategic else patch)
            if after["metadata"].get("name") != name:
                raise RefusedError(400, "BadRequest", "the name of the object does not match the name on the URL")
            validate(kind, name, after, before)
            if after != before:
                self.put(kind, namespace, name, after)
            return self.get_without_rights(kind, namespace, name)

    def replace(self, path: str, document: Json) -> Json:
        if path.endswith("/scale"):
            return self._rescale(path, document)
        kind, namespace, name = named(path)
        self._authorize("update", kind, name)
        metadata = document.get("metadata") or {}
        if document.get("kind") != KINDS[kind]:
            raise RefusedError(400, "BadRequest", f"the kind in the data ({document.get('kind')}) is not the expected")
        if metadata.get("name") != name or metadata.get("namespace", namespace) != namespace:
            raise RefusedError(400, "BadRequest", "the name of the object does not match the name on the URL")
        with self.lock:
            before = self.find(kind, namespace, name)
            if before is None:
                raise RefusedError(404, "NotFound", f'{_resource(kind)} "{name}" not found')
            if kind == LEASES and not metadata.get("resourceVersion"):
                raise invalid(kind, name, "metadata.resourceVersion: Invalid value: must be specified for an update")
            _check_version(kind, name, before, metadata.get("resourceVersion"))
            if metadata.get("uid", before["metadata"]["uid"]) != before["metadata"]["uid"]:
                raise RefusedError(409, "Conflict", f"Precondition failed: UID in precondition: {metadata['uid']}")
            after = {**document, "metadata": {**metadata, "uid": before["metadata"]["uid"]}}
            validate(kind, name, after, before)
            if after != before:
                self.put(kind, namespace, name, after)
            return self.get_without_rights(kind, namespace, name)

    def delete(self, path: str, options: Json) -> Json:
        kind, namespace, name = named(path)
        self._authorize("delete", kind, name)
        if options.get("kind") != "DeleteOptions":
            raise RefusedError(400, "BadRequest", "the body of the request is no DeleteOptions")
        with self.lock:
            before = self.get_without_rights(kind, namespace, name) if self.find(kind, namespace, name) else None
            if before is None:
                raise RefusedError(404, "NotFound", f'{_resource(kind)} "{name}" not found')
            for key, value in (options.get("preconditions") or {}).items():
                if before["metadata"][key] != value:
                    raise RefusedError(409, "Conflict", f"the {key} in the precondition ({value}) does not match")
            self.remove(kind, namespace, name)
        return {"kind": "ErrorStatus", "apiVersion": "v1", "status": "Success"}

    def scale(self, path: str) -> Json:
        kind, namespace, name = named(path.removesuffix("/scale"))
        self._authorize("get", (kind[0], f"{kind[1]}/scale"), name)
        one = self.find(kind, namespace, name)
        if one is None:
            raise RefusedError(404, "NotFound", f'{_resource(kind)} "{name}" not found')
        metadata = {key: one["metadata"][key] for key in ("name", "uid", "resourceVersion")} | {"namespace": namespace}
        replicas = one["spec"]["replicas"]
        return {
            "kind": "Scale",
            "apiVersion": "autoscaling/v1",
            "metadata": metadata,
            # `omitempty`: the real one leaves a 0 out.
            "spec": {"replicas": replicas} if replicas else {},
            "status": {"replicas": replicas, "selector": "app=web"},
        }

    def _rescale(self, path: str, document: Json) -> Json:
        kind, namespace, name = named(path.removesuffix("/scale"))
        self._authorize("update", (kind[0], f"{kind[1]}/scale"), name)
        metadata = document.get("metadata") or {}
        replicas = (document.get("spec") or {}).get("replicas", 0)
        if document.get("kind") != "Scale" or document.get("apiVersion") != "autoscaling/v1":
            raise RefusedError(400, "BadRequest", f"the kind in the data ({document.get('kind')}) is not the expected")
        if metadata.get("name") != name or metadata.get("namespace", namespace) != namespace:
            raise RefusedError(400, "BadRequest", "the name of the object does not match the name on the URL")
        if type(replicas) is not int or not 0 <= replicas < 2**31:
            raise invalid(kind, name, f"spec.replicas: Invalid value: {replicas}: must be greater than or equal to 0")
        with self.lock:
            before = self.find(kind, namespace, name)
            if before is None:
                raise RefusedError(404, "NotFound", f'{_resource(kind)} "{name}" not found')
            if not metadata.get("resourceVersion"):
                # Deployments allow it, custom resources do not: the stand-in is as strict as the strictest.
                raise invalid(kind, name, "metadata.resourceVersion: Invalid value: must be specified for an update")
            _check_version(kind, name, before, metadata["resourceVersion"])
            if metadata.get("uid", before["metadata"]["uid"]) != before["metadata"]["uid"]:
                raise RefusedError(409, "Conflict", f"Precondition failed: UID in precondition: {metadata['uid']}")
            self.change(kind, namespace, name, lambda one: one["spec"].update(replicas=replicas))
        return self.scale(path)

    def get_without_rights(self, kind: Kind, namespace: str, name: str) -> Json:
        found = self.find(kind, namespace, name)
        assert found is not None
        return found

    def _authorize(self, verb: str, kind: Kind, name: str) -> None:
        if not self.allows(verb, kind[1]):
            raise forbidden(verb, kind, name)


class Direct:
    """The store with the interface of `ObjectClient`, without HTTP; `before` is called before each call's effect."""

    def __init__(self, store: ObjectStore, before: Callable[[str, str], None] = lambda _method, _path: None) -> None:
        self._store = store
        self._before = before

    def get(self, path: str, *, seconds: float = 10.0) -> Reply:  # noqa: ARG002 - nothing takes time here
        self._before("GET", path)
        read = partial(self._store.scale, path) if path.endswith("/scale") else lambda: self._store.get(*named(path))
        return Reply(self._answer_of("GET", path, read))

    def create(
        self,
        collection: str,
        document: Mapping[str, Any],
        *,
        seconds: float = 10.0,  # noqa: ARG002 - likewise
    ) -> dict[str, Any]:
        self._before("POST", collection)
        kind, namespace, _ = named(f"{collection}/")
        return self._answer_of("POST", collection, lambda: self._store.create(kind, namespace, dict(document)))

    def replace(self, path: str, document: Mapping[str, Any], fence: Fence) -> dict[str, Any]:
        assert document["metadata"]["resourceVersion"], "ObjectClient refuses to replace blindly"
        if not fence.permit(1.5 * fence.seconds):
            raise FencedError(f"PUT {path}: not sent")
        self._before("PUT", path)
        return self._answer_of("PUT", path, lambda: self._store.replace(path, dict(document)))

    def merge(self, path: str, patch: Mapping[str, Any]) -> dict[str, Any]:
        self._before("PATCH", path)
        return self._answer_of("PATCH", path, lambda: self._store.merge(*named(path), dict(patch)))

    def _answer_of(self, method: str, path: str, answer: Callable[[], Json]) -> Json:
        try:
            return answer()
        except RefusedError as refused:
            status = ErrorStatus(refused.status["message"], refused.status["reason"], refused.code)
            raise error_of_status(f"{method} {path}", status) from refused


def named(path: str) -> tuple[Kind, str, str]:
    """Return the kind, namespace and name in a path of one object."""
    root, *parts = path.lstrip("/").split("/")
    group, *parts = ["", *parts[1:]] if root == "api" else [parts[0], *parts[2:]]
    namespace = parts[1] if parts[0] == "namespaces" and len(parts) > 2 else ""
    plural, name, *rest = parts[2:] if namespace else parts
    if rest:
        raise RefusedError(404, "NotFound", "the server could not find the requested resource")
    return (group, plural), namespace, name


def merged(before: Any, patch: Any) -> Any:  # noqa: ANN401 - JSON
    """Apply a JSON merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return patch
    after = dict(before) if isinstance(before, dict) else {}
    for key, value in patch.items():
        if value is None:
            after.pop(key, None)
        else:
            after[key] = merged(after.get(key), value)
    return after


def _with_whole_lists(before: Any, patch: Any) -> Any:  # noqa: ANN401 - JSON
    """Return the equivalent merge patch of a strategic one, in which list elements are merged by their names."""
    if isinstance(patch, dict):
        known = before if isinstance(before, dict) else {}
        return {key: _with_whole_lists(known.get(key), value) for key, value in patch.items()}
    if not (isinstance(patch, list) and isinstance(before, list)):
        return patch
    patched = {one["name"]: one for one in patch}
    present = [merged(one, _with_whole_lists(one, patched.pop(one["name"], {}))) for one in before]
    return [*present, *patched.values()]


def forbidden(verb: str, kind: Kind, name: str) -> RefusedError:
    which = f'{_resource(kind)} "{name}"' if name else _resource(kind)
    where = f'resource "{kind[1]}" in API group "{kind[0]}"'
    return RefusedError(403, "Forbidden", f'{which} is forbidden: User "{SYSTEM_USER}" cannot {verb} {where}')


def _check_version(kind: Kind, name: str, before: Json, version: str | None) -> None:
    if version is not None and version != before["metadata"]["resourceVersion"]:
        message = f'Operation cannot be fulfilled on {_resource(kind)} "{name}": the object has been modified'
        raise RefusedError(409, "Conflict", message)


def _resource(kind: Kind) -> str:
    return f"{kind[1]}.{kind[0]}" if kind[0] else kind[1]
