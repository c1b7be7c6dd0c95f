"""The recommender's recommendations, read from its page by the API server's proxy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from adapter.foundation.options.cluster import object_name
from adapter.foundation.service.flags.parsing import UsageError
from adapter.foundation.service.flags.table import TEXT, Flag
from adapter.foundation.service.server.addresses import parse_port
from adapter.foundation.sources.kubernetes.access_rights import AccessRight
from recommender.kubectl.reader import NotRead, Reader

PATH: Final = "api/v1/recommendations"
KIND: Final = "RecommendationList"
_ITEM_KEYS: Final = frozenset({"name", "status", "message", "steps", "binding", "targets"})
_TARGET_KEYS: Final = frozenset(
    {"namespace", "kind", "name", "current_replicas", "recommended_replicas", "action", "owner", "message"}
)
_LABEL: Final = "app.kubernetes.io/component=recommender"
_ENDED: Final = frozenset({"Failed", "Succeeded"})
_PORT: Final = "page"
"""Name of the page's port in pods that the chart creates."""
_REPAIR: Final = (
    "the page must listen on the pod's address (recommender.page.bindAddress of the chart) and answer by the API "
    "server's name (recommender.page.allowedHosts), and the NetworkPolicy must admit the API server "
    "(networkPolicy.pageFrom)"
)

_STANDBY: Final = "this process does not lead"
_OF_THE_PAGE: Final = (_STANDBY, "this process has not made", "the last decisions, made at")
"""How the page begins to say why it has no decisions: then it can be reached, so nothing of `_REPAIR` is missing."""

RECOMMENDER_FLAG: Final = Flag(
    "recommender",
    TEXT,
    "NAMESPACE/NAME:PORT of the Service in front of the recommender's page; [https:] "
    "before NAME if it speaks TLS (default: the pods of the chart, by their label).",
)


@dataclass(frozen=True, slots=True)
class Recommendations:
    """The last decisions of all recommenders in the cluster."""

    items: tuple[Mapping[str, Any], ...]
    unread: tuple[str, ...] = ()
    """Why the decisions of some installations could not be read, one sentence each."""

    def about(self, namespace: str, kind: str, name: str) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
        """Return the recommendations that have this object as a target, each with its entry of `targets`."""
        wanted = (namespace, kind.lower(), name)
        return [
            (item, target)
            for item in self.items
            for target in item.get("targets") or ()
            if (target["namespace"], target["kind"].lower(), target["name"]) == wanted
        ]


def unread_of(decided: Recommendations | NotRead) -> tuple[str, ...]:
    """Return which decisions are unknown, and why."""
    return (decided.reason,) if isinstance(decided, NotRead) else decided.unread


def recommendations(reader: Reader, service: str) -> Recommendations | NotRead:
    """Return the last decisions; `service` is the value of `--recommender`. Raises UsageError."""
    if service:
        return _recommendations_from(reader, *_service_path(service))
    pods = reader.items("/api/v1/pods", AccessRight("list", "pods"), {"labelSelector": _LABEL})
    if isinstance(pods, NotRead):
        return NotRead(f"the recommender's decisions: {pods.reason}, or name its Service with --recommender")
    ports = [(pod["metadata"], port) for pod in pods if not _has_ended(pod) and (port := _page_port(pod))]
    if not ports:
        return NotRead(
            f"the recommender's decisions: no pod with the label {_LABEL} has a port named {_PORT}: name the Service "
            "in front of it with --recommender"
        )
    answers: dict[str, Recommendations | NotRead] = {}
    for metadata, port in ports:
        namespace = metadata["namespace"]
        if isinstance(answers.get(namespace), Recommendations):
            # One of the pods of an installation leads; the others have no decisions.
            continue
        pod = f"http:{quote(metadata['name'], safe='')}:{port}"
        path = f"/api/v1/namespaces/{namespace}/pods/{pod}/proxy/{PATH}"
        found = _recommendations_from(reader, path, AccessRight("get", "pods", "", namespace, subresource="proxy"))
        if isinstance(found, NotRead) and _STANDBY in found.reason:
            # Why the page of a pod that may lead cannot be read is worth more than the address of this pod.
            answers.setdefault(namespace, found)
        else:
            answers[namespace] = found
    return Recommendations(
        tuple(item for found in answers.values() if isinstance(found, Recommendations) for item in found.items),
        tuple(found.reason for found in answers.values() if isinstance(found, NotRead)),
    )


def _recommendations_from(reader: Reader, path: str, right: AccessRight) -> Recommendations | NotRead:
    found = reader.object(path, right)
    if isinstance(found, NotRead):
        needs_no_repair = any(text in found.reason for text in ("you lack the right", *_OF_THE_PAGE))
        hint = "" if needs_no_repair else f": {_REPAIR}"
        return NotRead(f"the recommender's decisions: {found.reason}{hint}")
    items = found.get("items") or ()
    if found.get("kind") != KIND or not all(_is_known(item) for item in items):
        return NotRead(
            f"the recommender's decisions: GET {path}: the answer is no {KIND} of this version: check --recommender"
        )
    return Recommendations(tuple(items))


def _is_known(item: object) -> bool:
    """Return whether an item has all keys from which answers are made."""
    if not isinstance(item, dict) or not item.keys() >= _ITEM_KEYS:
        return False
    return all(isinstance(target, dict) and target.keys() >= _TARGET_KEYS for target in item["targets"])


def _service_path(text: str) -> tuple[str, AccessRight]:
    place, _, port = text.rpartition(":")
    namespace, _, name = place.partition("/")
    scheme, colon, plain = name.rpartition(":")
    named = object_name("recommender", f"{namespace}/{plain}")
    if scheme not in {"", "http", "https"}:
        raise UsageError(f"--recommender: {scheme!r} is not a scheme: write http or https")
    try:
        parse_port(port)
    except ValueError as error:
        raise UsageError(f"--recommender: {text!r} is not NAMESPACE/NAME:PORT: {error}") from error
    service = f"{scheme}{colon}{named.name}:{port}"
    path = f"/api/v1/namespaces/{named.namespace}/services/{service}/proxy/{PATH}"
    return path, AccessRight("get", "services", "", named.namespace, subresource="proxy")


def _has_ended(pod: Mapping[str, Any]) -> bool:
    """Return whether a pod has ended; evicted pods may stay for weeks, and they never answer."""
    return (pod.get("status") or {}).get("phase") in _ENDED


def _page_port(pod: Mapping[str, Any]) -> int | None:
    ports = [port for container in pod["spec"]["containers"] for port in container.get("ports") or ()]
    return next((port["containerPort"] for port in ports if port.get("name") == _PORT), None)
