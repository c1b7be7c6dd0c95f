"""A strict client that speaks as kube-apiserver's aggregator does."""

from __future__ import annotations

import http.client
import json
import re
import time
import urllib.parse
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping, Sequence

PATIENCE_SECONDS = 30.0
"""Seconds for clients and waits: on a busy machine everything is slow, but nothing may take for ever."""
IDLE_SECONDS = 60.0
"""A kept connection that was idle for longer is not used again, as in Go: the server may close it at any moment."""
CUSTOM = "/apis/custom.metrics.k8s.io"
EXTERNAL = "/apis/external.metrics.k8s.io/v1beta1"

HPA = (("X-Remote-User", "system:serviceaccount:kube-system:horizontal-pod-autoscaler"),)
_AS_GO = (
    ("User-Agent", "kube-controller-manager/v1.36.0"),
    ("Accept", "application/vnd.kubernetes.protobuf, */*"),
    ("Accept-Encoding", "gzip"),
    ("X-Forwarded-For", "10.0.0.1"),
)
_SUFFIXES = {"m": Decimal("0.001"), "": Decimal(1), "k": Decimal(10**3), "M": Decimal(10**6), "G": Decimal(10**9)}


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str | None:
        return next((value for found, value in self.headers if found.lower() == name.lower()), None)

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found

    @property
    def items(self) -> list[dict[str, Any]]:
        assert self.status == 200, self.text
        found: list[dict[str, Any]] = self.document["items"]
        return found

    @property
    def values(self) -> dict[str, Decimal]:
        """Return values of custom metrics by the name of their object."""
        return {item["describedObject"]["name"]: number(item["value"]) for item in self.items}

    @property
    def evaluated_at(self) -> float:
        """Return the time in Unix seconds, which must be the same for all items."""
        (moment,) = {item["timestamp"] for item in self.items}
        return datetime.fromisoformat(moment).timestamp()

    @property
    def warnings(self) -> list[str]:
        """Return the texts of the `Warning` headers, each of which must have the form that Kubernetes' clients read."""
        lines = [value for name, value in self.headers if name.lower() == "warning"]
        found = [re.fullmatch(r'299 - "((?:[ !#-\[\]-~]|\\[\\"])*)"', line) for line in lines]
        assert all(found), lines
        return [re.sub(r'\\([\\"])', r"\1", match[1]) for match in found if match]

    @property
    def message(self) -> str:
        found: str = self.document["message"]
        return found


class Caller:
    """One kept connection; every answer on it is checked for what must hold of all answers."""

    def __init__(
        self,
        port: int,
        context: ssl.SSLContext,
        identity: Sequence[tuple[str, str]] = HPA,
        seconds: float = PATIENCE_SECONDS,
    ) -> None:
        """`seconds` is how long the client waits for each action of the server."""
        self._connection = http.client.HTTPSConnection("localhost", port, context=context, timeout=seconds)
        self._identity = tuple(identity)
        self._used_at = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._connection.close()

    def get(
        self, path: str, headers: Sequence[tuple[str, str]] = (), parameters: Mapping[str, str] | None = None
    ) -> Answer:
        """GET with these parameters."""
        query = f"?{urllib.parse.urlencode(parameters)}" if parameters else ""
        return self.ask("GET", path + query, headers)

    def ask(self, method: str, target: str, headers: Sequence[tuple[str, str]] = ()) -> Answer:
        """Send each header as a line of its own; given headers replace the usual ones with the same name."""
        own = {name.lower() for name, _ in headers}
        if time.monotonic() - self._used_at > IDLE_SECONDS:
            self._connection.close()
        self._connection.putrequest(method, target, skip_accept_encoding=True)
        for name, value in (*_AS_GO, *self._identity):
            if name.lower() not in own:
                self._connection.putheader(name, value)
        for name, value in headers:
            self._connection.putheader(name, value)
        self._connection.endheaders()
        response = self._connection.getresponse()
        answer = Answer(response.status, tuple(response.getheaders()), response.read())
        self._used_at = time.monotonic()
        check(target, answer)
        return answer

    def pods(self, metric: str, namespace: str = "shop", version: str = "v1beta2", **parameters: str) -> Answer:
        """Request a metric of all pods that `labelSelector` selects, as an HPA does."""
        return self.get(f"{CUSTOM}/{version}/namespaces/{namespace}/pods/%2A/{metric}", parameters=parameters)

    def external(self, metric: str, namespace: str = "shop", **parameters: str) -> Answer:
        """Request an external metric as an HPA does."""
        return self.get(f"{EXTERNAL}/namespaces/{namespace}/{metric}", parameters=parameters)

    def listed(self, group: str = CUSTOM, version: str = "v1beta2") -> set[str]:
        """Return the names of the metrics that discovery lists."""
        return {item["name"] for item in self.get(f"{group}/{version}").document["resources"]}


def check(target: str, answer: Answer) -> None:
    """Assert what must hold of every answer, whatever the request."""
    assert answer.header("Retry-After") is None, "an HPA controller's worker would sleep on it"
    assert answer.header("Content-Encoding") is None
    names = [name.lower() for name, _ in answer.headers]
    assert names.count("content-length") == names.count("content-type") == (0 if answer.status == 304 else 1)
    if answer.status >= 400 and not target.startswith(("/healthz", "/livez", "/readyz")):
        check_status(answer)


def check_status(answer: Answer) -> None:
    """Assert that the answer is a complete Kubernetes `Status` of a failure."""
    assert answer.header("Content-Type") == "application/json", answer
    status = answer.document
    assert (status["kind"], status["apiVersion"], status["status"]) == ("Status", "v1", "Failure")
    assert status["code"] == answer.status
    assert status["reason"]
    assert status["message"]


def number(quantity: str) -> Decimal:
    """Return the value of a quantity in canonical form."""
    found = re.fullmatch(r"(-?[0-9]+)([a-zA-Z]*)", quantity)
    assert found, quantity
    return Decimal(found[1]) * _SUFFIXES[found[2]]
