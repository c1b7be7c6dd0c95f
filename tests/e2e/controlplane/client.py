"""Calls to an API server as plain JSON documents.

This is not the product's own client: what tests the product must not fail with it.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import urlencode

import urllib3

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

Document: TypeAlias = dict[str, Any]
"""A Kubernetes object, or an answer, as decoded JSON."""

CONNECT_SECONDS: Final = 5.0
ANSWER_SECONDS: Final = 30.0
MERGE_PATCH: Final = "application/merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"
FIELD_MANAGER: Final = "tidewatch-e2e"

# The API server closes connections idle for 90 s; a request on one that is just being closed is sent again.
_RETRIES: Final = urllib3.Retry(total=1, connect=1, read=1, other=1, status=0, redirect=0, allowed_methods=None)


class ApiError(Exception):
    """The API server refused a request."""

    def __init__(self, what: str, status: int, body: bytes) -> None:
        self.status = status
        self.body = body
        super().__init__(f"{what}: {status}: {self.message}")

    @property
    def document(self) -> Document:
        """Return the Status of the answer; empty if the answer was none."""
        try:
            found = json.loads(self.body)
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    @property
    def reason(self) -> str:
        return str(self.document.get("reason", ""))

    @property
    def message(self) -> str:
        return str(self.document.get("message") or self.body[:500].decode(errors="replace").strip())


@dataclass(frozen=True, slots=True)
class Credentials:
    """The caller's credentials: a client certificate, a token, or nothing."""

    certificate_file: Path | None = None
    key_file: Path | None = None
    token: str | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer of any status."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def document(self) -> Document:
        found: Document = json.loads(self.body)
        return found


class ApiClient:
    """Requests to one API server as one caller. Thread-safe."""

    def __init__(self, url: str, ca_file: Path, credentials: Credentials) -> None:
        self.url = url
        self._headers = {"Authorization": f"Bearer {credentials.token}"} if credentials.token else {}
        self._pool = urllib3.PoolManager(
            ca_certs=str(ca_file),
            cert_file=str(credentials.certificate_file) if credentials.certificate_file else None,
            key_file=str(credentials.key_file) if credentials.key_file else None,
            timeout=urllib3.Timeout(connect=CONNECT_SECONDS, read=ANSWER_SECONDS),
            retries=_RETRIES,
            maxsize=8,
        )

    def ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Document | None = None,
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Send one request and return the answer, whatever its status. Raises urllib3's errors."""
        response = self._pool.request(
            method,
            self._url_of(path, query),
            body=None if body is None else json.dumps(body).encode(),
            headers={"Accept": "application/json", "Content-Type": content_type, **self._headers, **(headers or {})},
        )
        return Reply(response.status, dict(response.headers), response.data)

    def get(self, path: str, **query: str) -> Document:
        """Return a document; raises ApiError, as all following methods do."""
        return self._answer_of("GET", path, query)

    def find(self, path: str) -> Document | None:
        """Return a document, or None if there is none."""
        try:
            return self.get(path)
        except ApiError as e:
            if e.status != 404:
                raise
            return None

    def items(self, path: str, **query: str) -> list[Document]:
        """Return the items of a list."""
        found: list[Document] = self.get(path, **query)["items"]
        return found

    def create(self, path: str, body: Document) -> Document:
        """Create an object in a collection, or a subresource such as a token or an eviction."""
        return self._answer_of("POST", path, {}, body)

    def merge(self, path: str, body: Document) -> Document:
        """Merge these fields into an object; None removes one."""
        return self._answer_of("PATCH", path, {}, body, MERGE_PATCH)

    def apply(self, path: str, body: Document) -> Document:
        """Apply an object on the server's side, whoever else holds its fields."""
        query = {"fieldManager": FIELD_MANAGER, "force": "true"}
        return self._answer_of("PATCH", path, query, body, APPLY_PATCH)

    def delete(self, path: str, body: Document | None = None) -> None:
        """Delete an object, which may be gone already; `body` has DeleteOptions."""
        try:
            self._answer_of("DELETE", path, {}, body)
        except ApiError as e:
            if e.status != 404:
                raise

    @contextmanager
    def watch(self, path: str, resource_version: str, **query: str) -> Iterator[Iterator[Document]]:
        """Give the `with` block the events of a collection as they come.

        The events end when the server closes the watch, every few minutes, or with a urllib3 error if the connection
        breaks.
        """
        asked = {**query, "watch": "true", "resourceVersion": resource_version, "timeoutSeconds": "240"}
        response = self._pool.request(
            "GET", self._url_of(path, asked), headers=self._headers, preload_content=False, timeout=300.0
        )
        try:
            if response.status != 200:
                raise ApiError(f"watch of {path}", response.status, response.read())
            yield (json.loads(line) for line in response)
        finally:
            response.close()

    def close(self) -> None:
        """Close the connections that are not in use."""
        self._pool.clear()

    def _answer_of(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: Document | None = None,
        content_type: str = "application/json",
    ) -> Document:
        reply = self.ask(method, path, query=query, body=body, content_type=content_type)
        if not 200 <= reply.status <= 299:
            raise ApiError(f"{method} {path}", reply.status, reply.body)
        return reply.document

    def _url_of(self, path: str, query: Mapping[str, str] | None) -> str:
        return f"{self.url}{path}" + (f"?{urlencode(query)}" if query else "")
