"""Reads, creates, patches, replaces, deletes, scales and reviews single objects of kube-apiserver as documents.

Lists and watches are decoded piece by piece elsewhere. This module is for rare calls with small answers: a Secret, an
APIService, an access review, a Lease, the scale of a Deployment. Each call ends by one deadline, whatever the server or
the network does.

`replace` and `delete` carry out decisions that are valid for one version of an object. Each is sent at most once. If
its outcome is unknown, UnknownOutcomeError is raised, and the caller must read the object before it writes again.
"""

from __future__ import annotations

import json
import math
from contextlib import ExitStack
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from adapter.foundation.sources.deadlines import Deadline
from adapter.foundation.sources.kubernetes.client import JSON, KubernetesClient, KubernetesRequest
from adapter.foundation.sources.kubernetes.errors import (
    DeadlineError,
    NoThreadError,
    UnexpectedResponseError,
    UnknownOutcomeError,
)
from adapter.foundation.sources.kubernetes.sending import Sending
from adapter.foundation.time.thread_limit import ThreadLimit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from adapter.foundation.sources.kubernetes.answers import WholeAnswer

MERGE_PATCH = "application/merge-patch+json"
"""RFC 7386. With a resourceVersion in it, kube-apiserver applies it to that version or answers 409."""
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
"""Merges lists such as `containers` by the names of their elements. Not for custom resources."""
APPLY_PATCH = "application/apply-patch+yaml"
"""Server-side apply. JSON is YAML, too."""
CONFLICT = 409
"""Status of a conflict: the object has another version now, or the name is taken."""

_MOST_AT_ONCE = 32
"""Limit of concurrent calls, including abandoned ones that are still waiting for DNS or a token."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A 2xx answer."""

    document: dict[str, Any]
    date: str = ""
    """The `Date` header (RFC 9110), by which clocks can be compared; empty if it is missing."""


@dataclass(frozen=True, slots=True)
class Fence:
    """The time limit of a write, and the condition under which it may be sent."""

    seconds: float
    """Time for the whole write: connection, credentials, and the answer to its last byte."""
    permit: Callable[[float], bool]
    """Called right before the request is sent, with the seconds after which it can no longer have an effect, even in
    the server: at most one and a half times `seconds`. If it returns False, the request is not sent."""


class Gets(Protocol):
    """Reads an object (`ObjectClient`, `Writes`)."""

    def get(self, path: str, *, seconds: float) -> Reply:
        """Return the object at a path."""


class Lists(Protocol):
    """Reads an object, or a list (`ObjectClient`)."""

    def get(self, path: str, query: Mapping[str, str] | None = None, *, seconds: float | None = None) -> Reply:
        """Return the object or the list."""


class Creates(Protocol):
    """Creates an object, or a subresource."""

    def create(self, collection: str, document: Mapping[str, Any], *, seconds: float) -> dict[str, Any]:
        """Create an object in a collection."""


class Replaces(Protocol):
    """Replaces the version of an object that the document names."""

    def replace(self, path: str, document: Mapping[str, Any], fence: Fence) -> dict[str, Any]:
        """Replace the version that the document names; the request is sent at most once."""


class ListsAndCreates(Lists, Creates, Protocol):
    """Reads objects and lists, and creates objects."""


class GetsAndReplaces(Gets, Replaces, Protocol):
    """Changes objects that exist."""


class GetsAndWrites(Gets, Creates, Replaces, Protocol):
    """Creates objects, and changes those that exist."""


class ObjectClient:
    """Makes calls to one API server that read or change a single object. Thread-safe."""

    def __init__(self, client: KubernetesClient, seconds: float = 10.0) -> None:
        """`seconds` is the default time limit of a whole call."""
        self._client = client
        self._seconds = seconds
        self._limit = ThreadLimit(_MOST_AT_ONCE)

    def get(self, path: str, query: Mapping[str, str] | None = None, *, seconds: float | None = None) -> Reply:
        """Return the object at the path. Raises KubernetesError, also for an answer that is another object."""
        request = KubernetesRequest("GET", path, query or {})
        answer = self._ask(request, seconds)
        document = _document(request.what, answer.body)
        name, metadata = _name_in(path), document.get("metadata")
        found = metadata.get("name") if isinstance(metadata, dict) else None
        if name and "items" not in document and found != name:
            raise UnexpectedResponseError(f"{request.what}: the answer is not the object {name}")
        return Reply(document, answer.headers.get("Date", ""))

    def create(self, collection: str, document: Mapping[str, Any], *, seconds: float | None = None) -> dict[str, Any]:
        """POST an object to its collection, or a review; return the created object.

        Raises KubernetesError, which is ConflictError if the name is taken.
        """
        request = KubernetesRequest("POST", collection, body=document)
        return _document(request.what, self._ask(request, seconds).body)

    def merge(self, path: str, patch: Mapping[str, Any], *, seconds: float | None = None) -> dict[str, Any]:
        """Apply a JSON merge patch; return the changed object.

        Raises KubernetesError, which is ConflictError if the patch names an old resourceVersion.
        """
        request = KubernetesRequest("PATCH", path, body=patch, content_type=MERGE_PATCH)
        return _document(request.what, self._ask(request, seconds).body)

    def replace(self, path: str, document: Mapping[str, Any], fence: Fence | None = None) -> dict[str, Any]:
        """PUT an object, or a subresource such as `scale`, in place of the version that its resourceVersion names.

        Returns the changed object. The request is sent at most once. Raises ValueError for a document without a
        resourceVersion, and KubernetesError: ConflictError if the object has another version now, FencedError if the
        fence did not permit the write, UnreachableError (DeadlineError after its deadline) if it was not sent,
        UnknownOutcomeError if it was sent and may have taken effect.
        """
        if not (document.get("metadata") or {}).get("resourceVersion"):
            raise ValueError(
                f"PUT {path}: metadata.resourceVersion is missing: read the object first, and replace that version"
            )
        return self._write("PUT", path, document, fence)

    def patch_strategically(self, path: str, patch: Mapping[str, Any], fence: Fence | None = None) -> dict[str, Any]:
        """Apply a strategic merge patch to an object of a built-in kind; return the changed object.

        The patch is sent at most once. If it has a resourceVersion, kube-apiserver applies it to that version, or
        answers 409.
        Raises the errors of `replace`, and NotFoundError.
        """
        return self._write("PATCH", path, patch, fence, content_type=STRATEGIC_PATCH)

    def apply(self, path: str, document: Mapping[str, Any], manager: str, fence: Fence | None = None) -> dict[str, Any]:
        """Apply the fields of a document, or of a subresource such as `status`, as a field manager (server-side apply).

        Fields that the manager applied before and that the document lacks are removed. Fields in the document that
        belong to other managers are taken over. Returns the changed object. The request is sent at most once. Raises
        the errors of `replace`, and ConflictError if the UID in the document is not that of the object.
        """
        query = {"fieldManager": manager, "force": "true"}
        return self._write("PATCH", path, document, fence, query, APPLY_PATCH)

    def delete(
        self, path: str, *, uid: str = "", resource_version: str = "", fence: Fence | None = None
    ) -> dict[str, Any]:
        """Delete an object if it still has the given UID and version; an empty UID or version is not checked.

        Returns the server's answer: a Status, or the object that is being deleted. The request is sent at most once.
        Raises the errors of `replace`, and NotFoundError.
        """
        given = {"uid": uid, "resourceVersion": resource_version}
        preconditions = {key: value for key, value in given.items() if value}
        if not preconditions:
            raise ValueError(f"DELETE {path}: name the UID or the resourceVersion of the object")
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions}
        return self._write("DELETE", path, options, fence)

    def _ask(self, request: KubernetesRequest, seconds: float | None) -> WholeAnswer:
        return self._answer(request, Sending(request.what, Deadline(self._seconds if seconds is None else seconds)))

    def _write(
        self,
        method: str,
        path: str,
        document: Mapping[str, Any],
        fence: Fence | None,
        query: Mapping[str, str] = MappingProxyType({}),
        content_type: str = JSON,
    ) -> dict[str, Any]:
        """Send a write once, with its time limit, so that the server does not process it later; return the object."""
        limits = fence or Fence(self._seconds, lambda _: True)
        server_seconds = limits.seconds / 2
        limited = {**query, "timeout": f"{math.ceil(server_seconds * 1000)}ms"}
        request = KubernetesRequest(method, path, limited, document, content_type)
        deadline = Deadline(limits.seconds)
        sending = Sending(request.what, deadline, once=True, permit=limits.permit, server_seconds=server_seconds)
        answer = self._answer(request, sending)
        try:
            return _document(request.what, answer.body)
        except UnexpectedResponseError as error:
            raise UnknownOutcomeError(f"{error}: it may have taken effect") from error

    def _answer(self, request: KubernetesRequest, sending: Sending) -> WholeAnswer:
        crowded = f"{request.what}: not sent: {_MOST_AT_ONCE} calls are already in progress"
        inside = ExitStack()
        inside.enter_context(self._limit.entered(sending.seconds_left(), lambda: DeadlineError(crowded)))

        def exchanged() -> WholeAnswer:
            with inside:  # The slot is held until the work ends, even if the call was abandoned before.
                return self._client.exchange(request, sending)

        try:
            return sending.in_time(exchanged)
        except NoThreadError:
            inside.close()
            raise


def _name_in(path: str) -> str:
    """Return the name of the object that a path names; empty for a collection or a path that is not a resource's."""
    parts = path.strip("/").split("/")
    rest = parts[2:] if parts[0] == "api" else parts[3:]
    if len(rest) > len(("namespaces", "shop")) and rest[0] == "namespaces":
        rest = rest[2:]
    return rest[1] if len(rest) > 1 else ""


def _document(what: str, body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as e:
        raise UnexpectedResponseError(f"{what}: the answer is not JSON") from e
    if not isinstance(document, dict):
        raise UnexpectedResponseError(f"{what}: the answer is not an object")
    return document
