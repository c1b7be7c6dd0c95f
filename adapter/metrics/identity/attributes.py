"""Derives the attributes of an access review from a request (pure).

The rules are those of `RequestInfoFactory` in `k8s.io/apiserver`: kube-apiserver derives the same attributes from the
same path before it passes a request on, so a role that holds there holds here. The names do not always fit: a metric is
the *subresource* of the object that it describes, an external metric is a *resource* that is listed, and a metric of a
namespace is the name of a resource `metrics` in it.

Label and field selectors are not among the attributes. Only in metrics.k8s.io does a `fieldSelector` name an object,
because only there does it limit what is listed. In the other APIs, a right to one object would be a right to all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

from adapter.foundation.objects.percent import EncodingError, percent_decode
from adapter.metrics.identity.callers import BadPathError

MOST_PATHS = 1 << 16
"""Limit on the cached paths: there is one for each metric that an HPA requests."""
MOST_CHARACTERS = 8 << 20
"""Limit on the characters of all cached paths: they are cached before authentication, and anyone can request long
ones."""
_MAY_MATTER = re.compile(r"(?:^|&)(?:watch|fieldSelector|[^=&]*%)")
"""Matches the parts of a query that can change the attributes of a list."""
_FIELDS_SELECT = "metrics.k8s.io"
"""The group whose lists support field selectors."""
_PREFIXES = frozenset({"api", "apis"})
_WITHOUT_GROUP = "api"
_VERBS = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_VERBS_IN_PATHS = frozenset({"proxy", "watch"})
_OF_NAMESPACES = frozenset({"status", "finalize"})
"""Subresources of a namespace itself: any other segment after its name is a resource within it."""


@dataclass(frozen=True, slots=True)
class Attributes:
    """The action of a caller on a resource, or on a path that is not a resource if `path` is not empty."""

    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""
    namespace: str = ""
    path: str = ""
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Compute the hash once: each request looks its answer up by these attributes."""
        about = (self.verb, self.group, self.version, self.resource, self.subresource, self.name, self.namespace)
        object.__setattr__(self, "_hash", hash((about, self.path)))

    def __hash__(self) -> int:
        """Return the hash."""
        return self._hash

    @property
    def characters(self) -> int:
        """Number of characters in all names, a measure of the memory that they take."""
        names = (self.group, self.version, self.resource, self.subresource, self.name, self.namespace, self.path)
        return sum(map(len, names))

    def refusal(self, user: str) -> str:
        """Return the sentence with which Kubernetes denies the user this action."""
        if self.path:
            return f"forbidden: User {_quote_text(user)} cannot {self.verb} path {_quote_text(self.path)}"
        resource = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        kind = f"{self.resource}.{self.group}" if self.group else self.resource
        named = f"{kind} {_quote_text(self.name)}" if self.name else kind
        where = f"in the namespace {_quote_text(self.namespace)}" if self.namespace else "at the cluster scope"
        what = f"resource {_quote_text(resource)} in API group {_quote_text(self.group)}"
        return f"{named} is forbidden: User {_quote_text(user)} cannot {self.verb} {what} {where}"


def attributes_of(method: str, path: str, query: str = "") -> Attributes:
    """Return the attributes of a request with this raw path and query. Raises BadPathError."""
    whole = _segments(path)
    parts = _trim_segments(whole)
    prefix = parts[0] if parts else ""
    least = 3 if prefix == _WITHOUT_GROUP else 4
    if prefix not in _PREFIXES or len(parts) < least:
        return Attributes(method.lower(), path="/".join(whole) or "/")
    group, version, *rest = ("", *parts[1:]) if prefix == _WITHOUT_GROUP else parts[1:]
    verb = _VERBS.get(method, "")
    if rest[0] in _VERBS_IN_PATHS:
        verb, *rest = rest
        if not rest:
            raise BadPathError(f"the path names nothing to {verb}")
    return _resource_attributes(verb, group, version, rest, query)


def _resource_attributes(verb: str, group: str, version: str, rest: list[str], query: str) -> Attributes:
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in _OF_NAMESPACES:
            rest = rest[2:]
    resource, name, subresource, *_ = (*rest, "", "")
    if verb == "proxy":
        subresource = ""
    if not name:
        verb = {"get": "watch" if _is_watch(query) else "list", "delete": "deletecollection"}.get(verb, verb)
        name = _selected_name(query) if group == _FIELDS_SELECT else ""
    return Attributes(verb, group, version, resource, subresource, name, namespace)


class KnownAttributes:
    """Cache of attributes by path, because tens of thousands of autoscalers request the same paths repeatedly."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Attributes] = {}
        self._characters = 0

    def of(self, method: str, path: str, query: str) -> Attributes:
        """Return what `attributes_of` returns, from the cache if possible. Raises BadPathError."""
        found = self._known.get((method, path))
        if found is None:
            found = attributes_of(method, path)
            self._keep(method, path, found)
        if found.verb == "list" and query and _MAY_MATTER.search(query):
            return attributes_of(method, path, query)
        return found

    def _keep(self, method: str, path: str, found: Attributes) -> None:
        # Two threads may count one path once, or twice: the bound need not be exact.
        self._characters += len(path)
        if len(self._known) >= MOST_PATHS or self._characters > MOST_CHARACTERS:
            self._known, self._characters = {}, len(path)
        self._known[method, path] = found


def _segments(path: str) -> list[str]:
    """Return the segments of a path, which is split before each segment is decoded once."""
    try:
        return [percent_decode(segment) for segment in path.split("/")]
    except EncodingError as e:
        raise BadPathError(f"the path {e}") from e


def _trim_segments(segments: list[str]) -> list[str]:
    """Return the segments without empty ones at both ends."""
    start, end = 0, len(segments)
    while start < end and not segments[start]:
        start += 1
    while end > start and not segments[end - 1]:
        end -= 1
    return segments[start:end]


def _is_watch(query: str) -> bool:
    if not _MAY_MATTER.search(query):
        return False
    found = next((value for name, value in parse_qsl(query, keep_blank_values=True) if name == "watch"), "false")
    return found.lower() not in {"false", "0"}


def _selected_name(query: str) -> str:
    """Return the name to which a field selector restricts a list; empty if it does not restrict the list to one."""
    if not _MAY_MATTER.search(query):
        return ""
    given = [value for name, value in parse_qsl(query, keep_blank_values=True) if name == "fieldSelector"]
    for term in given[0].split(",") if len(given) == 1 else ():
        field_name, sign, value = term.partition("=")
        if field_name == "metadata.name" and sign:
            return value.removeprefix("=")
    return ""


def _quote_text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
