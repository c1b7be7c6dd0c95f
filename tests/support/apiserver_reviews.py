"""Reviews as kube-apiserver answers them: who owns a token, and who may do what.

    reviews.users["a-token"] = TokenUser("alice", groups=("team-a",))
    reviews.allow("alice", "get", "pods/requests", "custom.metrics.k8s.io", namespace="shop")
    reviews.allow_path("alice", "get", "/metrics")
    assert reviews.rights[0]["resourceAttributes"]["name"] == "*"       # what was asked so far
    reviews.answer_later()                                              # until reviews.answer_now()

Documents are validated by the API server's own rules (`validation` of the groups `authentication` and `authorization`),
and more strictly in one point: a field that does not exist is refused, where the real one would warn.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.support.apiserver_store import Json, RefusedError

if TYPE_CHECKING:
    from collections.abc import Mapping

OWN_AUDIENCE = "https://kubernetes.default.svc.cluster.local"
PATHS = {
    "/apis/authentication.k8s.io/v1/tokenreviews": ("TokenReview", "authentication.k8s.io/v1", "tokenreviews"),
    "/apis/authorization.k8s.io/v1/subjectaccessreviews": (
        "SubjectAccessReview",
        "authorization.k8s.io/v1",
        "subjectaccessreviews",
    ),
}
_SPEC = {
    "TokenReview": {"token", "audiences"},
    "SubjectAccessReview": {"user", "groups", "uid", "extra", "resourceAttributes", "nonResourceAttributes"},
}
_RESOURCE = {"namespace", "verb", "group", "version", "resource", "subresource", "name"}


@dataclass(frozen=True)
class TokenUser:
    """The user that a token belongs to."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, list[str]] = field(default_factory=dict)
    audiences: tuple[str, ...] = (OWN_AUDIENCE,)


@dataclass(frozen=True)
class _Rule:
    """An RBAC rule with its binding; `*` stands for all, and `*/SUB` for a subresource of all."""

    subject: str
    verb: str
    resource: str
    group: str
    namespace: str
    name: str
    path: str = ""

    def allows(self, spec: Mapping[str, Any]) -> bool:
        if self.subject not in {spec.get("user", ""), *(spec.get("groups") or ())}:
            return False
        about, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
        if path is not None:
            return bool(self.path) and self.verb in {"*", path.get("verb", "")} and self._has_path(path.get("path", ""))
        if about is None or self.path:
            return False
        sub = about.get("subresource", "")
        combined = about.get("resource", "") + (f"/{sub}" if sub else "")
        return (
            self.verb in {"*", about.get("verb", "")}
            and self.resource in {"*", combined, f"*/{sub}" if sub else "*"}
            and self.group in {"*", about.get("group", "")}
            and self.namespace in {"*", about.get("namespace", "")}
            and self.name in {"*", about.get("name", "")}
        )

    def _has_path(self, path: str) -> bool:
        return path == self.path or (self.path.endswith("*") and path.startswith(self.path[:-1]))


class Reviews:
    """Users, rights, and the reviews so far. Thread-safe."""

    def __init__(self) -> None:
        self.users: dict[str, TokenUser] = {}
        self.knows_audiences = True
        self.reason = ""
        self.tokens: list[Json] = []
        """The specs of token reviews so far."""
        self.rights: list[Json] = []
        """The specs of access reviews so far."""
        self._rules: list[_Rule] = []
        self._gate = threading.Event()
        self._gate.set()

    def allow(
        self, subject: str, verb: str, resource: str, group: str = "*", *, namespace: str = "*", name: str = "*"
    ) -> None:
        """Give a user or a group a right."""
        self._rules = [*self._rules, _Rule(subject, verb, resource, group, namespace, name)]

    def allow_path(self, subject: str, verb: str, path: str) -> None:
        """Give a user or a group a right to a path that is not a resource."""
        self._rules = [*self._rules, _Rule(subject, verb, "", "", "", "", path)]

    def deny_all(self) -> None:
        """Revoke all rights."""
        self._rules = []

    def answer_later(self) -> None:
        """Hold back all answers."""
        self._gate.clear()

    def answer_now(self) -> None:
        """Send the answers that were held back, and answer at once from now on."""
        self._gate.set()

    def answer(self, kind: str, api_version: str, document: Json, ended: threading.Event) -> Json:
        """Return the document with its status; raises RefusedError."""
        _validate(kind, api_version, document)
        spec = document["spec"]
        (self.tokens if kind == "TokenReview" else self.rights).append(spec)
        while not self._gate.wait(0.02) and not ended.is_set():
            pass
        status = self._token_status(spec) if kind == "TokenReview" else self._right_status(spec)
        return {**document, "metadata": {"creationTimestamp": None}, "status": status}

    def _token_status(self, spec: Json) -> Json:
        user = self.users.get(spec["token"])
        wanted = tuple(spec.get("audiences") or (OWN_AUDIENCE,))
        good = [one for one in wanted if user and (one in user.audiences or not self.knows_audiences)]
        if user is None or not good:
            return {"user": {}, "error": f"[invalid bearer token {spec['token']!r}, token lookup failed]"}
        found: Json = {"username": user.name, "groups": [*user.groups, "system:authenticated"]}
        found |= {"uid": user.uid} if user.uid else {}
        found |= {"extra": dict(user.extra)} if user.extra else {}
        return {"authenticated": True, "user": found, **({"audiences": good} if self.knows_audiences else {})}

    def _right_status(self, spec: Json) -> Json:
        if any(rule.allows(spec) for rule in self._rules):
            return {"allowed": True, "reason": "RBAC: allowed by a rule of the test"}
        return {"allowed": False, **({"reason": self.reason} if self.reason else {})}


def _validate(kind: str, api_version: str, document: Json) -> None:
    if (document.get("kind"), document.get("apiVersion")) != (kind, api_version):
        raise RefusedError(400, "BadRequest", f"the object is not a {kind} of {api_version}")
    _only(document, {"kind", "apiVersion", "metadata", "spec"})
    spec = document.get("spec")
    if not isinstance(spec, dict):
        raise RefusedError(400, "BadRequest", "spec is not an object")
    if document.get("metadata"):
        raise _invalid(kind, "metadata: Invalid value: must be empty")
    _only(spec, _SPEC[kind])
    if kind == "TokenReview":
        if not spec.get("token"):
            raise RefusedError(400, "BadRequest", "token is required for TokenReview in authentication")
        return
    if ("resourceAttributes" in spec) == ("nonResourceAttributes" in spec):
        raise _invalid(kind, "spec: exactly one of nonResourceAttributes or resourceAttributes must be specified")
    if not spec.get("user") and not spec.get("groups"):
        raise _invalid(kind, "spec.user: Invalid value: at least one of user or group must be specified")
    _only(spec.get("resourceAttributes", {}), _RESOURCE)
    _only(spec.get("nonResourceAttributes", {}), {"path", "verb"})
    for values in [spec.get("groups", []), *spec.get("extra", {}).values()]:
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise RefusedError(400, "BadRequest", "cannot unmarshal into a list of strings")


def _only(document: Mapping[str, Any], known: set[str]) -> None:
    unknown = document.keys() - known
    if unknown:
        raise RefusedError(400, "BadRequest", f"strict decoding error: unknown fields {sorted(unknown)}")


def _invalid(kind: str, message: str) -> RefusedError:
    return RefusedError(422, "Invalid", f'{kind} "" is invalid: {message}')
