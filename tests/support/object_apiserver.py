"""The stand-in for kube-apiserver with single objects: Secrets and APIServices that can be changed, others to read.

    with ObjectApiServer() as server:
        server.objects.put(APISERVICES, "", name, {...})        # see `apiserver_objects`
        server.objects.put(HPAS, "shop", "web", {...})          # any kind: read one by one, or listed
        server.answers["/apis/custom.metrics.k8s.io/v1beta1"] = (503, {...})
        server.clock_error = 90.0                               # its `Date` is ahead
        server.slow["/version"] = 30.0                          # seconds before an answer
    server.faults.append(Fault("update", "lost"))           # the next PUT is done, and its answer is lost
    server.pause(); server.resume()                         # what came meanwhile is carried out afterwards
    server.watched.add(HPAS)                                # listed and watched out of `store`, as in `FakeApiServer`
    other = ObjectApiServer(server.objects)                 # a second server over the same objects

Objects can be created, patched, replaced and deleted, workloads and machines be scaled by their subresource.

All else is as in `FakeApiServer`. Reads and changes are allowed as `objects.deny` says, which is also what a
SelfSubjectAccessReview is told. Parameters and media types are checked as the real one does.
"""

from __future__ import annotations

import email.utils
import json
import re
import threading
import time
import urllib.parse
import urllib.request
from typing import TYPE_CHECKING

from tests.support.apiserver_faults import Asked
from tests.support.apiserver_http import Handler
from tests.support.apiserver_kinds import (
    APISERVICES,
    CONFIG_MAPS,
    DEPLOYMENTS,
    EVENTS,
    LEASES,
    MACHINE_DEPLOYMENTS,
    SECRETS,
    STATEFUL_SETS,
    Kind,
)
from tests.support.apiserver_listener import Listener
from tests.support.apiserver_objects import ObjectStore, forbidden, named
from tests.support.apiserver_store import Json, RefusedError
from tests.support.fake_apiserver import FakeApiServer

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

HPAS: Kind = ("autoscaling", "horizontalpodautoscalers")
SLICES: Kind = ("discovery.k8s.io", "endpointslices")
_KINDS = {
    SECRETS,
    APISERVICES,
    CONFIG_MAPS,
    EVENTS,
    HPAS,
    SLICES,
    LEASES,
    DEPLOYMENTS,
    STATEFUL_SETS,
    MACHINE_DEPLOYMENTS,
}
_MERGE_PATCH = "application/merge-patch+json"
_STRATEGIC_PATCH = "application/strategic-merge-patch+json"
_REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_LIST_PARAMETERS = {"limit", "continue", "labelSelector"}
_VERBS = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_TIMEOUT = re.compile(r"\d+(ms|s)")


class ObjectApiServer(FakeApiServer):
    """The server that the module's docstring describes."""

    def __init__(self, objects: ObjectStore | None = None, context: ssl.SSLContext | None = None) -> None:
        super().__init__(context)
        self.objects = objects or ObjectStore()
        self._runs = threading.Event()
        self._runs.set()
        self.answers: dict[str, tuple[int, Json]] = {}
        self.watched: set[Kind] = set()
        self.clock_error = 0.0
        self.slow: dict[str, float] = {}
        self.proxied: dict[str, str] = {}
        """Base URLs of the servers behind the service proxy, by the proxy's path up to `/proxy`."""

    def pause(self) -> None:
        """Accept requests without acting on them, as a stopped process does, until `resume`."""
        self._runs.clear()

    def resume(self) -> None:
        """Continue with everything that arrived in the meantime."""
        self._runs.set()

    def wait_while_paused(self) -> None:
        """Return once the server continues."""
        self._runs.wait(60.0)

    def stop(self) -> None:
        super().stop()
        self.resume()

    def start(self) -> None:
        listener = Listener(self, self._port, self._context)
        listener.RequestHandlerClass = ObjectHandler
        self._listener, self._port = listener, listener.server_address[1]
        threading.Thread(target=listener.serve_forever, args=(0.02,), daemon=True).start()


class ObjectHandler(Handler):
    """Answers for single objects, and leaves the rest to its base."""

    @property
    def _fake(self) -> ObjectApiServer:
        fake = self.server.fake
        assert isinstance(fake, ObjectApiServer)
        return fake

    def date_time_string(self, timestamp: float | None = None) -> str:
        moment = time.time() if timestamp is None else timestamp
        return email.utils.formatdate(moment + self._fake.clock_error, usegmt=True)

    def do_GET(self) -> None:
        path, query = self.path.partition("?")[0], self._query()
        self.server.ended.wait(self._fake.slow.get(path, 0.0))
        if path in self._fake.answers:
            self._answer(path, lambda: self._fake.answers[path])
        elif path == "/version":
            self._answer(path, lambda: (200, {"major": "1", "minor": "36", "gitVersion": "v1.36.0"}))
        elif "/proxy/" in path:
            self._answer(path, lambda: self._proxy_answer(*self.path.split("/proxy", 1)))
        elif self._is_single(path) and "watch" not in query and "fieldSelector" not in query:
            self._answer(path, lambda: (200, self._read(path, query)))
        else:
            super().do_GET()

    def _proxy_answer(self, service: str, rest: str) -> tuple[int, Json]:
        if f"{service}/proxy" not in self._fake.proxied:
            raise RefusedError(503, "ServiceUnavailable", "no endpoints available for service")
        # The credentials for the API server go no further.
        with urllib.request.urlopen(f"{self._fake.proxied[f'{service}/proxy']}{rest}", timeout=10) as answer:
            return answer.status, json.load(answer)

    def _query(self) -> dict[str, str]:
        return dict(urllib.parse.parse_qsl(self.path.partition("?")[2], keep_blank_values=True))

    def do_POST(self) -> None:
        path = self.path
        if path == _REVIEW:
            self._answer(path, lambda: (201, self._review_of(self._body("application/json"))))
        elif self._is_known(path):
            kind, namespace, _ = named(f"{path}/")
            self._answer(
                path, lambda: (201, self._fake.objects.create(kind, namespace, self._body("application/json")))
            )
        else:
            super().do_POST()

    def do_PATCH(self) -> None:
        path = self.path.partition("?")[0]
        strategic = self.headers.get("Content-Type") == _STRATEGIC_PATCH
        media_type = _STRATEGIC_PATCH if strategic else _MERGE_PATCH
        if self._is_known(path):
            merge = self._fake.objects.merge
            self._answer(path, lambda: (200, merge(*named(path), self._body(media_type), strategic=strategic)))
        else:
            self._refuse_verb()

    def do_PUT(self) -> None:
        self._change(lambda path: self._fake.objects.replace(path, self._body("application/json")))

    def do_DELETE(self) -> None:
        self._change(lambda path: self._fake.objects.delete(path, self._body("application/json")))

    def _change(self, change: Callable[[str], Json]) -> None:
        path, query = self.path.partition("?")[0], self._query()
        if not self._is_known(path):
            self._refuse_verb()
        elif query.keys() - {"timeout"} or not _TIMEOUT.fullmatch(query.get("timeout", "1s")):
            refused = RefusedError(400, "BadRequest", f"parameters that a change has no use for: {query}")
            self._send(refused.code, refused.status)
        else:
            self._answer(path, lambda: (200, change(path)))

    def _is_known(self, path: str) -> bool:
        parts = path.strip("/").split("/")
        group = "" if parts[0] == "api" else parts[1] if len(parts) > 1 else ""
        return any(kind[0] == group and kind[1] in parts for kind in _KINDS)

    def _is_single(self, path: str) -> bool:
        found = self._collection(path)
        is_watched = found is not None and (found[0].group, found[0].plural) in self._fake.watched
        return self._is_known(path) and not is_watched

    def _answer(self, path: str, answer: Callable[[], tuple[int, Json]]) -> None:
        self._fake.requests.append(Asked(self.command, path, self._query(), dict(self.headers.items())))
        self._fake.wait_while_paused()
        fault = self._fake.take_fault(_VERBS[self.command])
        if fault is not None and fault.what in {"status", "hang", "garbage"}:
            self._fail(fault)
            return
        try:
            self._authenticate(self.command, None, {})
            self._send(*answer(), fault=fault)
        except RefusedError as refused:
            self._send(refused.code, refused.status)

    def _read(self, path: str, query: dict[str, str]) -> Json:
        parts = path.strip("/").split("/")
        plural = next(kind[1] for kind in _KINDS if kind[1] in parts)
        if parts[-1] == "scale":
            return self._fake.objects.scale(path)
        if parts[-1] != plural:
            return self._fake.objects.get(*named(path))
        if query.keys() - _LIST_PARAMETERS:
            raise RefusedError(400, "BadRequest", f"parameters that list has no use for: {sorted(query)}")
        kind, namespace, _ = named(f"{path}/")
        if not self._fake.objects.allows("list", plural):
            raise forbidden("list", kind, "")
        items = [one for one in self._fake.objects.listed(kind, namespace) if _matches_selector(one, query)]
        begin, limit = int(query.get("continue") or 0), int(query.get("limit") or 0) or len(items)
        metadata = {"continue": str(begin + limit)} if begin + limit < len(items) else {}
        return {"kind": "List", "apiVersion": "v1", "metadata": metadata, "items": items[begin : begin + limit]}

    def _review_of(self, document: Json) -> Json:
        if document.get("kind") != "SelfSubjectAccessReview" or document.get("apiVersion") != "authorization.k8s.io/v1":
            raise RefusedError(400, "BadRequest", "the object is not a SelfSubjectAccessReview")
        spec = document.get("spec") or {}
        if spec.keys() - {"resourceAttributes", "nonResourceAttributes"}:
            raise RefusedError(400, "BadRequest", f"strict decoding error: unknown fields {sorted(spec)}")
        if ("resourceAttributes" in spec) == ("nonResourceAttributes" in spec):
            message = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
            raise RefusedError(422, "Invalid", message)
        about = spec["resourceAttributes"]
        sub = about.get("subresource")
        resource = f"{about['resource']}/{sub}" if sub else about["resource"]
        return {**document, "status": {"allowed": self._fake.objects.allows(about["verb"], resource)}}

    def _body(self, media_type: str) -> Json:
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Content-Type", "").partition(";")[0].strip() != media_type:
            raise RefusedError(415, "UnsupportedMediaType", f"the body of the request must be {media_type}")
        try:
            document = json.loads(content)
        except ValueError as e:
            raise RefusedError(400, "BadRequest", "the object provided is unrecognized") from e
        if not isinstance(document, dict):
            raise RefusedError(400, "BadRequest", "the object provided is unrecognized")
        return document


def _matches_selector(one: Json, query: dict[str, str]) -> bool:
    key, equals, value = query.get("labelSelector", "").partition("=")
    return not equals or (one["metadata"].get("labels") or {}).get(key) == value
