"""Single objects of kube-apiserver as documents: read, created, patched, reviewed.

Lists and watches are decoded piece by piece elsewhere. Here are the rare calls whose answers are small: a Secret, an
APIService, an access review.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from adapter.sources.kubernetes.client import JSON
from adapter.sources.kubernetes.errors import UnexpectedAnswerError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.sources.kubernetes.client import KubernetesClient

MERGE_PATCH = "application/merge-patch+json"
"""RFC 7386. With a resourceVersion in it, kube-apiserver applies it to that version or answers 409."""
CONFLICT = 409
"""Status where somebody else was quicker: the version is another by now, or the name is taken."""

_LARGEST_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Reply:
    """A 2xx answer."""

    document: dict[str, Any]
    date: str = ""
    """The header of this name (RFC 9110), by which clocks can be compared; empty where it is missing."""


class ObjectClient:
    """Calls to one API server that read or change a single object. Thread-safe."""

    def __init__(self, client: KubernetesClient, seconds: float = 10.0) -> None:
        """`seconds` is how long each call may take, and its answer again as long."""
        self._client = client
        self._seconds = seconds

    def get(self, path: str, query: Mapping[str, str] | None = None) -> Reply:
        """Return what stands at the path. Raises KubernetesError."""
        with self._client.open(path, query, JSON, self._seconds) as answer:
            body = answer.whole(self._seconds, _LARGEST_BYTES)
            return Reply(_document(f"GET {path}", body), answer.headers.get("Date", ""))

    def create(self, collection: str, document: Mapping[str, Any]) -> dict[str, Any]:
        """POST an object to its collection, or a review; returns what it became.

        Raises KubernetesError: a StatusError of code 409 where the name is taken.
        """
        body = self._client.send("POST", collection, document, seconds=self._seconds)
        return _document(f"POST {collection}", body)

    def merge(self, path: str, patch: Mapping[str, Any]) -> dict[str, Any]:
        """Apply a JSON merge patch; returns what the object became.

        Raises KubernetesError: a StatusError of code 409 where the patch names a resourceVersion that is over.
        """
        body = self._client.send("PATCH", path, patch, seconds=self._seconds, content_type=MERGE_PATCH)
        return _document(f"PATCH {path}", body)


def _document(what: str, body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as e:
        raise UnexpectedAnswerError(f"{what}: the answer is not JSON") from e
    if not isinstance(document, dict):
        raise UnexpectedAnswerError(f"{what}: the answer is not an object")
    return document
