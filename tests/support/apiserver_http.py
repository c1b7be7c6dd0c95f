"""The HTTP of the stand-in for kube-apiserver: routes, credentials, negotiation, watches, scripted failures."""

from __future__ import annotations

import contextlib
import json
import socket
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING

from adapter.foundation.objects.resources import Resource
from tests.support.apiserver_discovery import aggregated, legacy_root, legacy_version
from tests.support.apiserver_faults import HANG_SECONDS, Asked, Fault
from tests.support.apiserver_reviews import PATHS
from tests.support.apiserver_store import (
    Change,
    Json,
    RefusedError,
    integer,
    object_of,
    partial_of,
    selected_name,
    shown_type,
    status_of,
    too_old,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.support.apiserver_listener import Listener

_PARAMETERS: dict[str, set[str]] = {
    "list": {"limit", "continue", "resourceVersion", "labelSelector", "fieldSelector"},
    "watch": {"watch", "resourceVersion", "allowWatchBookmarks", "timeoutSeconds", "labelSelector", "fieldSelector"},
    "discover": set(),
}
_PARAMETERS["stream"] = _PARAMETERS["watch"] | {"sendInitialEvents", "resourceVersionMatch"}
_PARTIAL = {"list": "PartialObjectMetadataList", "watch": "PartialObjectMetadata"}
_DISCOVERY_V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_DRIP_SECONDS = 0.05


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Listener

    def log_message(self, *_arguments: object) -> None:
        return

    def do_GET(self) -> None:
        path, _, text = self.path.partition("?")
        query = dict(urllib.parse.parse_qsl(text, keep_blank_values=True))
        fake = self.server.fake
        found = self._collection(path)
        verb = "discover" if found is None else _verb_of_collection(query)
        fake.requests.append(Asked(verb, path, query, dict(self.headers.items())))
        fault = fake.take_fault(verb)
        if fault is not None and fault.what in {"status", "hang", "garbage"}:
            self._fail(fault)
            return
        try:
            self._authenticate(verb, found, query)
            _check_parameters(verb, query)
            self._serve(verb, path, found, query, fault)
        except RefusedError as refused:
            self._send(refused.code, refused.status)

    def _refuse_verb(self) -> None:
        self._send(
            405, status_of(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
        )

    def do_POST(self) -> None:
        """Answer a review; nothing else can be created."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path, _, query = self.path.partition("?")
        fake = self.server.fake
        if path not in PATHS:
            self._refuse_verb()
            return
        kind, api_version, plural = PATHS[path]
        fake.requests.append(Asked("create", path, dict(urllib.parse.parse_qsl(query)), dict(self.headers.items())))
        fault = fake.take_fault(plural)
        if fault is not None:
            self._fail(fault)
            return
        try:
            self._authenticate("create", (Resource("", "", plural, "", "", namespaced=False), ""), {})
            document = self._document(body)
            self._send(201, fake.reviews.answer(kind, api_version, document, self.server.ended))
        except RefusedError as refused:
            self._send(refused.code, refused.status)

    do_PUT = do_PATCH = do_DELETE = _refuse_verb

    def _document(self, body: bytes) -> Json:
        if self.headers.get("Content-Type", "").partition(";")[0].strip() != "application/json":
            message = (
                "the body of the request was in an unknown format - accepted media types include: application/json"
            )
            raise RefusedError(415, "UnsupportedMediaType", message)
        if not any(
            media_type in {"application/json", "*/*"} for media_type, _ in _accepted_types(self.headers["Accept"])
        ):
            raise RefusedError(406, "NotAcceptable", "only the following media types are accepted: application/json")
        try:
            document = json.loads(body)
        except ValueError as error:
            raise RefusedError(400, "BadRequest", "the object provided is unrecognized") from error
        if not isinstance(document, dict):
            raise RefusedError(400, "BadRequest", "the object provided is unrecognized")
        return document

    def _collection(self, path: str) -> tuple[Resource, str] | None:
        """Return the kind and namespace of a collection's path; None for a path of discovery."""
        root, *parts = path.strip("/").split("/")
        group, version, *rest = (["", *parts] if root == "api" else parts) + ["", ""]
        rest = [part for part in rest if part]
        if not rest:
            return None
        namespace = rest[1] if len(rest) == 3 and rest[0] == "namespaces" else ""
        for resource in self.server.fake.resources:
            if (resource.group, resource.version, resource.plural) == (group, version, rest[-1]):
                return resource, namespace
        return Resource(group, version, rest[-1], "", "", namespaced=True), "not served"

    def _authenticate(self, verb: str, found: tuple[Resource, str] | None, query: Mapping[str, str]) -> None:
        scheme, _, token = self.headers.get("Authorization", "").partition(" ")
        if scheme and (scheme.lower() != "bearer" or token not in self.server.fake.tokens):
            raise RefusedError(401, "Unauthorized", "Unauthorized")
        user = "tester" if scheme else "system:anonymous"
        if found is None:
            return
        resource, _namespace = found
        only = self.server.fake.only_named.get(resource.plural)
        verb = "watch" if verb == "stream" else verb
        if (
            not scheme
            or (verb, resource.plural) in self.server.fake.forbidden
            or (only is not None and selected_name(query) != only)
        ):
            where = f'resource "{resource.plural}" in API group "{resource.group}" at the cluster scope'
            raise RefusedError(403, "Forbidden", f'{resource.plural} is forbidden: User "{user}" cannot {verb} {where}')

    def _serve(
        self, verb: str, path: str, found: tuple[Resource, str] | None, query: Mapping[str, str], fault: Fault | None
    ) -> None:
        if found is None:
            self._send(200, *self._discovery(path), fault=fault)
        elif found[1] == "not served":
            self._send_text(404, "404 page not found\n")
        elif verb == "list":
            self._list(*found, query, fault)
        elif verb == "stream" and not self.server.fake.streams:
            raise RefusedError(422, "Invalid", "sendInitialEvents is forbidden unless the feature gate is enabled")
        else:
            self._watch(found[0], found[1], query, fault)

    def _list(self, resource: Resource, namespace: str, query: Mapping[str, str], fault: Fault | None) -> None:
        partial = self._wants_partial("list")
        page = self.server.fake.store.page(resource, namespace, query)
        if partial:
            # Go writes a slice that was never appended to as null.
            items = [partial_of(one) for one in page["items"]] or None
            page |= {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "items": items}
        self._send(200, page, fault=fault)

    def _watch(self, resource: Resource, namespace: str, query: Mapping[str, str], fault: Fault | None) -> None:
        partial = self._wants_partial("watch")
        version, changes = self.server.fake.store.watch_start(resource, query)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if fault is not None and fault.what == "silence":
            self.server.ended.wait(HANG_SECONDS)
        if fault is not None:
            self.wfile.write(b'40\r\n{"type":"ADDED","obj')
            self._cut()
            return
        # Before the watch is counted: whoever sees it may expire it at once.
        expiries = self.server.fake.store.expiries
        with self.server.fake.counted_watch(resource.plural):
            for change in self._changes(resource, version, changes, query, expiries):
                if kind := shown_type(change, namespace, query):
                    shown = partial_of(change.object) if partial and kind != "ERROR" else change.object
                    self._chunk(json.dumps({"type": kind, "object": shown}, separators=(",", ":")) + "\n")
        self._chunk("")

    def _changes(
        self, resource: Resource, version: int, changes: list[Change], query: Mapping[str, str], expiries: int
    ) -> Iterator[Change]:
        """Yield the events of a watch until it ends; `expiries` is how often watches had been expired when it began."""
        fake, store = self.server.fake, self.server.fake.store
        end = time.monotonic() + (integer(query, "timeoutSeconds") or 1800)
        bookmarks = query.get("allowWatchBookmarks") in {"true", "1"}
        bookmark_at = time.monotonic() + fake.bookmark_seconds
        end_of_present = query.get("sendInitialEvents") in {"true", "1"}
        while True:
            for change in changes:
                version = change.version
                yield change
                if change.type == "ERROR":
                    return
            if end_of_present:
                end_of_present = False
                bookmark = object_of(resource, "", "", {}, version)
                bookmark["metadata"]["annotations"] = {"k8s.io/initial-events-end": "true"}
                yield Change(version, resource, "BOOKMARK", bookmark)
            if time.monotonic() >= end or self.server.ended.is_set():
                return
            if bookmarks and time.monotonic() >= bookmark_at:
                bookmark_at += fake.bookmark_seconds
                yield Change(version, resource, "BOOKMARK", object_of(resource, "", "", {}, version))
            with store.changed:
                if not store.after(resource, version) and store.expiries == expiries:
                    store.changed.wait(max(0.0, min(end, bookmark_at) - time.monotonic()))
                changes = store.after(resource, version)
                if store.expiries != expiries:
                    changes = [Change(version, resource, "ERROR", too_old(version, store.version))]
                elif not changes:
                    version = store.version

    def _discovery(self, path: str) -> tuple[Json, str]:
        fake = self.server.fake
        parts = path.strip("/").split("/")
        if parts in (["api"], ["apis"]):
            core = parts == ["api"]
            for media_type, parameters in _accepted_types(self.headers.get("Accept", "*/*")):
                if fake.aggregated and parameters.get("as") == "APIGroupDiscoveryList" and parameters.get("v") == "v2":
                    return aggregated(fake, core=core), _DISCOVERY_V2
                if media_type in {"application/json", "*/*"} and not parameters:
                    return legacy_root(fake, core=core), "application/json"
            raise RefusedError(406, "NotAcceptable", "only the following media types are accepted: application/json")
        if len(parts) < 2:
            # A process that probes the port which somebody else had before.
            raise RefusedError(404, "NotFound", "the server could not find the requested resource")
        group, version = ("", parts[1]) if parts[0] == "api" else (parts[1], parts[-1])
        if group in fake.stale:
            raise RefusedError(503, "ServiceUnavailable", "the server is currently unable to handle the request")
        return legacy_version(fake, group, version), "application/json"

    def _wants_partial(self, verb: str) -> bool:
        for media_type, parameters in _accepted_types(self.headers.get("Accept", "*/*")):
            if media_type not in {"application/json", "*/*"}:
                continue
            if not parameters:
                return False
            wanted = {"as": _PARTIAL[verb], "g": "meta.k8s.io", "v": "v1"}
            if self.server.fake.metadata_only and parameters == wanted:
                return True
        raise RefusedError(406, "NotAcceptable", "only the following media types are accepted: application/json")

    def _fail(self, fault: Fault) -> None:
        if fault.what == "hang":
            self.server.ended.wait(HANG_SECONDS)
            self._cut()
        elif fault.what == "garbage":
            self._send_text(200, fault.body.decode("latin-1"))
        else:
            status = status_of(fault.code, "Scripted", "this failure was asked for by the test")
            self._send(fault.code, status, headers=fault.headers)

    def _send(
        self,
        code: int,
        content: Json,
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
        fault: Fault | None = None,
    ) -> None:
        body = json.dumps(content, separators=(",", ":")).encode()
        if fault is not None and fault.what == "lost":
            self._cut()
            return
        if fault is not None and fault.what == "drip":
            self._drip(b"HTTP/1.1 %d Slow\r\nContent-Length: %d\r\n\r\n%b" % (code, len(body), body))
            return
        self.send_response(code)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        if fault is None:
            self.wfile.write(body)
            return
        if fault.what == "silence":
            self.server.ended.wait(HANG_SECONDS)
        else:
            self.wfile.write(body[: len(body) // 2])
        self._cut()

    def _drip(self, answer: bytes) -> None:
        for byte in answer:
            if self.server.ended.wait(_DRIP_SECONDS):
                break
            self.wfile.write(bytes([byte]))
        self._cut()

    def _send_text(self, code: int, text: str) -> None:
        body = text.encode("latin-1")
        self.send_response(code)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _chunk(self, text: str) -> None:
        self.wfile.write(f"{len(text.encode()):x}\r\n{text}\r\n".encode())

    def _cut(self) -> None:
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)


def _verb_of_collection(query: Mapping[str, str]) -> str:
    if query.get("watch") not in {"true", "1"}:
        return "list"
    return "stream" if query.get("sendInitialEvents") in {"true", "1"} else "watch"


def _check_parameters(verb: str, query: Mapping[str, str]) -> None:
    unknown = query.keys() - _PARAMETERS[verb]
    if unknown:
        raise RefusedError(400, "BadRequest", f"parameters that {verb} has no use for: {sorted(unknown)}")
    if verb == "stream" and (query.get("resourceVersionMatch") != "NotOlderThan" or "allowWatchBookmarks" not in query):
        raise RefusedError(422, "Invalid", "sendInitialEvents needs resourceVersionMatch=NotOlderThan and bookmarks")
    for name in ("watch", "allowWatchBookmarks", "sendInitialEvents"):
        if query.get(name, "true") not in {"true", "false", "1", "0"}:
            raise RefusedError(400, "BadRequest", f"{name} is not a boolean: {query[name]!r}")


def _accepted_types(header: str) -> list[tuple[str, dict[str, str]]]:
    """Return media types and their parameters, in the order of preference."""
    found = []
    for clause in header.split(","):
        media_type, *parameters = (part.strip() for part in clause.split(";"))
        found.append((media_type, dict(parameter.split("=", 1) for parameter in parameters)))
    return found
