"""Single objects of kube-apiserver as documents: read, created, patched, replaced, deleted, scaled, reviewed.

Lists and watches are decoded piece by piece elsewhere. Here are the rare calls whose answers are small: a Secret, an
APIService, an access review, a Lease, the scale of a Deployment. Each ends by one deadline, whatever the server or the
way to it does.

`replace` and `delete` carry out decisions that hold for one version of an object. They are sent at most once: where
nothing tells what became of one, UnknownOutcomeError says so, and the next step is to read the object.
"""

from __future__ import annotations

import json
import math
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from adapter.sources.deadlines import Deadline
from adapter.sources.kubernetes.client import KubernetesRequest, WholeAnswer
from adapter.sources.kubernetes.errors import DeadlineError, UnexpectedResponseError, UnknownOutcomeError
from adapter.sources.kubernetes.sending import Sending

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from adapter.sources.kubernetes.client import KubernetesClient

MERGE_PATCH = "application/merge-patch+json"
"""RFC 7386. With a resourceVersion in it, kube-apiserver applies it to that version or answers 409."""
CONFLICT = 409
"""Status where somebody else was quicker: the version is another by now, or the name is taken."""

_MOST_AT_ONCE = 32
"""Calls of one client, those among them that were given up and hang in a look-up or a program that makes tokens."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A 2xx answer."""

    document: dict[str, Any]
    date: str = ""
    """The header of this name (RFC 9110), by which clocks can be compared; empty where it is missing."""


@dataclass(frozen=True, slots=True)
class Fence:
    """How long a write may take, and who permits it."""

    seconds: float
    """For the whole of it: connection, credentials, the answer to its last byte."""
    permit: Callable[[float], bool]
    """Asked right before the request is sent, with the seconds after which it can have no effect any more, at the
    server either: at most one and a half times `seconds`. False: it is not sent."""


class ObjectClient:
    """Calls to one API server that read or change a single object. Thread-safe."""

    def __init__(self, client: KubernetesClient, seconds: float = 10.0) -> None:
        """`seconds` is how long each call may take as a whole, unless it says otherwise."""
        self._client = client
        self._seconds = seconds
        self._turns = threading.BoundedSemaphore(_MOST_AT_ONCE)

    def get(self, path: str, query: Mapping[str, str] | None = None, *, seconds: float | None = None) -> Reply:
        """Return what stands at the path. Raises KubernetesError."""
        request = KubernetesRequest("GET", path, query or {})
        answer = self._answer(request, self._sending(request, seconds))
        return Reply(_document(request.what, answer.body), answer.headers.get("Date", ""))

    def create(self, collection: str, document: Mapping[str, Any], *, seconds: float | None = None) -> dict[str, Any]:
        """POST an object to its collection, or a review; returns what it became.

        Raises KubernetesError: a ConflictError where the name is taken.
        """
        request = KubernetesRequest("POST", collection, body=document)
        return _document(request.what, self._answer(request, self._sending(request, seconds)).body)

    def merge(self, path: str, patch: Mapping[str, Any], *, seconds: float | None = None) -> dict[str, Any]:
        """Apply a JSON merge patch; returns what the object became.

        Raises KubernetesError: a ConflictError where the patch names a resourceVersion that is over.
        """
        request = KubernetesRequest("PATCH", path, body=patch, content_type=MERGE_PATCH)
        return _document(request.what, self._answer(request, self._sending(request, seconds)).body)

    def replace(self, path: str, document: Mapping[str, Any], fence: Fence | None = None) -> dict[str, Any]:
        """PUT an object, or a subresource such as `scale`, over the version that its resourceVersion names.

        Returns what it became. It is sent at most once. Raises ValueError for a document without a resourceVersion, and
        KubernetesError: ConflictError where the object is of another version by now, FencedError where the fence did
        not permit it, UnreachableError (DeadlineError where its time was up) where it was not sent,
        UnknownOutcomeError where it was sent and may have taken effect.
        """
        if not (document.get("metadata") or {}).get("resourceVersion"):
            raise ValueError(f"PUT {path}: metadata.resourceVersion is missing: replace what was read, never blindly")
        request, sending = self._once("PUT", path, document, fence)
        return self._written(request, sending)

    def delete(
        self, path: str, *, uid: str = "", resource_version: str = "", fence: Fence | None = None
    ) -> dict[str, Any]:
        """Delete an object if it still has this UID and this version, each where it is given.

        Returns the server's answer: a Status, or the object that is about to go. It is sent at most once. Raises as
        `replace`, and NotFoundError.
        """
        given = {"uid": uid, "resourceVersion": resource_version}
        preconditions = {key: value for key, value in given.items() if value}
        if not preconditions:
            raise ValueError(f"DELETE {path}: name the UID or the resourceVersion of the object that is meant")
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions}
        request, sending = self._once("DELETE", path, options, fence)
        return self._written(request, sending)

    def _sending(self, request: KubernetesRequest, seconds: float | None) -> Sending:
        return Sending(request.what, Deadline(self._seconds if seconds is None else seconds))

    def _once(
        self, method: str, path: str, document: Mapping[str, Any], fence: Fence | None
    ) -> tuple[KubernetesRequest, Sending]:
        """Return a request of which the server, too, knows how long it may take: a late one is not carried out."""
        limits = fence or Fence(self._seconds, lambda _: True)
        server_seconds = limits.seconds / 2
        request = KubernetesRequest(method, path, {"timeout": f"{math.ceil(server_seconds * 1000)}ms"}, document)
        deadline = Deadline(limits.seconds)
        sending = Sending(request.what, deadline, once=True, permit=limits.permit, server_seconds=server_seconds)
        return request, sending

    def _written(self, request: KubernetesRequest, sending: Sending) -> dict[str, Any]:
        answer = self._answer(request, sending)
        try:
            return _document(request.what, answer.body)
        except UnexpectedResponseError as error:
            raise UnknownOutcomeError(f"{error}: it may have taken effect") from error

    def _answer(self, request: KubernetesRequest, sending: Sending) -> WholeAnswer:
        if not self._turns.acquire(timeout=sending.left()):
            raise DeadlineError(f"{request.what}: not sent: {_MOST_AT_ONCE} calls are under way already")
        return sending.in_time(lambda: self._released(request, sending))

    def _released(self, request: KubernetesRequest, sending: Sending) -> WholeAnswer:
        try:
            return self._client.exchange(request, sending)
        finally:
            self._turns.release()


def _document(what: str, body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as e:
        raise UnexpectedResponseError(f"{what}: the answer is not JSON") from e
    if not isinstance(document, dict):
        raise UnexpectedResponseError(f"{what}: the answer is not an object")
    return document
