"""The content of a pod's volumes: objects of the API, fields of the pod, tokens of its service account."""

from __future__ import annotations

import base64
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tests.e2e.controlplane.kubelet.environment import field
from tests.e2e.controlplane.kubelet.spec import RefusedError
from tests.e2e.controlplane.kubelet.volumes import File

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.e2e.controlplane.client import ApiClient, Document
    from tests.e2e.controlplane.kubelet.environment import Surroundings

_DEFAULT_MODE: Final = 0o644
_DEFAULT_TOKEN_SECONDS: Final = 3600
# A kubelet asks for a new token when four fifths of the old one's life are over.
_RENEWED_AT: Final = 0.8


class Objects:
    """The ConfigMaps and Secrets of one namespace, as they are now."""

    def __init__(self, client: ApiClient, namespace: str) -> None:
        self._client = client
        self._namespace = namespace

    def config_map(self, name: str) -> dict[str, str] | None:
        found = self._find("configmaps", name)
        return None if found is None else found.get("data") or {}

    def config_map_files(self, name: str) -> dict[str, bytes] | None:
        found = self._find("configmaps", name)
        if found is None:
            return None
        text = {key: value.encode() for key, value in (found.get("data") or {}).items()}
        return text | _bytes_of(found.get("binaryData"))

    def secret(self, name: str) -> dict[str, str] | None:
        found = self.secret_files(name)
        return None if found is None else {key: value.decode() for key, value in found.items()}

    def secret_files(self, name: str) -> dict[str, bytes] | None:
        found = self._find("secrets", name)
        return None if found is None else _bytes_of(found.get("data"))

    def _find(self, resource: str, name: str) -> Document | None:
        return self._client.find(f"/api/v1/namespaces/{self._namespace}/{resource}/{name}")


def _bytes_of(data: Mapping[str, str] | None) -> dict[str, bytes]:
    return {key: base64.b64decode(value) for key, value in (data or {}).items()}


@dataclass(slots=True)
class _Token:
    content: bytes
    renewed_at: float


class Tokens:
    """Tokens of one pod's service account, requested by TokenRequest and renewed in time."""

    def __init__(self, client: ApiClient, pod: Document) -> None:
        self._client = client
        self._pod = pod
        self._kept: dict[tuple[str, int], _Token] = {}

    def token(self, audience: str, seconds: int) -> bytes:
        """Return a token that is valid for at least a fifth of `seconds`."""
        kept = self._kept.get((audience, seconds))
        if kept is None or time.time() >= kept.renewed_at:
            kept = self._kept[audience, seconds] = self._request(audience, seconds)
        return kept.content

    def _request(self, audience: str, seconds: int) -> _Token:
        metadata = self._pod["metadata"]
        account = self._pod["spec"]["serviceAccountName"]
        bound = {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]}
        spec = {"audiences": [audience] if audience else [], "expirationSeconds": seconds, "boundObjectRef": bound}
        answer = self._client.create(
            f"/api/v1/namespaces/{metadata['namespace']}/serviceaccounts/{account}/token",
            {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec},
        )
        return _Token(answer["status"]["token"].encode(), time.time() + _RENEWED_AT * seconds)


@dataclass(frozen=True, slots=True)
class Sources:
    """Where the content of a pod's volumes comes from."""

    objects: Objects
    tokens: Tokens
    around: Surroundings


def files_of(volume: Document, sources: Sources) -> dict[str, File] | None:
    """Return the current content of a volume; None for an emptyDir. Raises RefusedError if it cannot be made."""
    (kind,) = set(volume) - {"name"}
    of = volume[kind]
    if kind == "emptyDir":
        return None
    if kind == "projected":
        return _projected_files(of, sources)
    name = of.get("secretName") if kind == "secret" else of.get("name")
    return _of_source(kind, {**of, "name": name}, of.get("defaultMode", _DEFAULT_MODE), sources)


def _projected_files(of: Document, sources: Sources) -> dict[str, File]:
    mode = of.get("defaultMode", _DEFAULT_MODE)
    found: dict[str, File] = {}
    for source in of["sources"]:
        ((kind, content),) = source.items()
        found |= _of_source(kind, content, mode, sources)
    return found


def _of_source(kind: str, of: Document, mode: int, sources: Sources) -> dict[str, File]:
    if kind == "serviceAccountToken":
        token = sources.tokens.token(of.get("audience", ""), of.get("expirationSeconds", _DEFAULT_TOKEN_SECONDS))
        return {of["path"]: File(token, mode)}
    if kind == "downwardAPI":
        return {item["path"]: _field(item, mode, sources) for item in of.get("items") or []}
    if kind == "configMap":
        return _selected_files(f"ConfigMap {of['name']}", sources.objects.config_map_files(of["name"]), of, mode)
    if kind == "secret":
        return _selected_files(f"Secret {of['name']}", sources.objects.secret_files(of["name"]), of, mode)
    raise RefusedError(f"volumes: {kind} is not supported here")


def _field(item: Document, mode: int, sources: Sources) -> File:
    if "fieldRef" not in item:
        raise RefusedError(f"volumes: downwardAPI {item['path']}: only fieldRef is supported here")
    return File(field(item["fieldRef"]["fieldPath"], sources.around).encode(), item.get("mode", mode))


def _selected_files(what: str, data: Mapping[str, bytes] | None, of: Document, mode: int) -> dict[str, File]:
    if data is None:
        if of.get("optional"):
            return {}
        raise RefusedError(f"volumes: {what} does not exist")
    items: Sequence[Document] = of.get("items") or [{"key": key, "path": key} for key in data]
    missing = [item["key"] for item in items if item["key"] not in data]
    if missing and not of.get("optional"):
        raise RefusedError(f"volumes: {what} has no key {', '.join(missing)}")
    return {item["path"]: File(data[item["key"]], item.get("mode", mode)) for item in items if item["key"] in data}
