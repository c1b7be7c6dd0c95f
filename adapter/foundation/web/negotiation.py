"""Content negotiation: which form of an answer a client prefers, read as Go's API servers read its headers (pure).

A client that prefers a form that is not served (protobuf, or a table of metric values) gets its next preference.
Clients of these APIs always accept JSON or any form as well, and recognize the form of an answer by its `Content-Type`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TypeAlias

from adapter.foundation.objects.percent import EncodingError, percent_decode
from adapter.foundation.web.http import JSON, YAML

AGGREGATED_VERSIONS = ("v2", "v2beta1")
"""Versions of `apidiscovery.k8s.io`; API servers before 1.30 request the older one."""

TABLE_VERSIONS = ("v1", "v1beta1")
"""Versions of `Table` in `meta.k8s.io`."""

LONGEST_ACCEPT = 2048
"""Longest `Accept` header in characters that is read; a longer one counts as accepting nothing. Clients send a few
hundred. A megabyte of them, which kube-apiserver passes on for any user of the cluster, would take seconds of the
processor, and stay in memory."""
_CACHED_HEADERS = 16

_PLAIN_JSON = frozenset({"application/json", "application/*", "*/*"})
_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
"""The texts that Go's `strconv.ParseBool` accepts as true."""
_FOR_PEOPLE = ("curl", "Wget", "Mozilla/5.0")

_Accepted: TypeAlias = "tuple[tuple[str, Mapping[str, str]], ...]"
"""Media types, each with its parameters."""


def aggregated_version(accept: str) -> str | None:
    """Return the version of aggregated discovery that an `Accept` header prefers; None if it prefers plain JSON."""
    for media_type, given in _by_preference(accept):
        if given.get("g") == "apidiscovery.k8s.io" and given.get("as") == "APIGroupDiscoveryList":
            if media_type == "application/json" and given.get("v") in AGGREGATED_VERSIONS:
                return given["v"]
        elif media_type in _PLAIN_JSON:
            return None
    return None


def table_version(accept: str) -> str | None:
    """Return the version of `Table` that an `Accept` header prefers; None if it prefers the objects."""
    for media_type, given in _by_preference(accept):
        if given.get("as") == "Table" and given.get("g") == "meta.k8s.io":
            if media_type == "application/json" and given.get("v") in TABLE_VERSIONS:
                return given["v"]
        elif media_type in _PLAIN_JSON and "as" not in given:
            return None
    return None


def accepts_objects(accept: str) -> bool:
    """Return whether an `Accept` header accepts the objects themselves, as JSON or YAML.

    A header that names only other forms of the objects (`as=Table`, `as=PartialObjectMetadata`) does not.
    """
    plain = (media_type for media_type, given in _by_preference(accept) if "as" not in given)
    return not accept or any(media_type in _PLAIN_JSON or media_type == YAML for media_type in plain)


def served_type(accept: str) -> str | None:
    """Return JSON or YAML, whichever an `Accept` header prefers; None if it accepts neither."""
    if not accept:
        return JSON
    for media_type, _ in _by_preference(accept):
        if media_type in _PLAIN_JSON:
            return JSON
        if media_type == YAML:
            return YAML
    return None


def accepts_gzip(accept_encoding: str) -> bool:
    """Return whether the header lists `gzip`; as in Go's API servers, `gzip` with a weight does not count."""
    return any(token.strip() == "gzip" for token in accept_encoding.split(","))


def is_current(etag: str, if_none_match: str) -> bool:
    """Return whether the client already has the entity with this tag; the comparison is weak (RFC 9110, 13.1.2)."""
    tags = [tag.strip() for tag in if_none_match.split(",")]
    return tags == ["*"] or any(tag.removeprefix("W/") == etag for tag in tags)


def wants_indent(query: str, user_agent: str) -> bool:
    """Return whether to indent JSON: the first `pretty` parameter decides, or else whether the client is for people."""
    asked = _first(query, "pretty") if "pretty" in query else ""
    return asked in _TRUE if asked else user_agent.startswith(_FOR_PEOPLE)


def _by_preference(accept: str) -> _Accepted:
    """Return media types and their parameters in order of preference, without types of weight 0."""
    return _read_accept(accept) if len(accept) <= LONGEST_ACCEPT else ()


@lru_cache(maxsize=_CACHED_HEADERS)
def _read_accept(accept: str) -> _Accepted:
    """Return the same; cached, because every request needs it and clients send only a few different headers."""
    clauses = []
    for item in accept.split(","):
        media_type, *rest = (part.strip() for part in item.split(";"))
        parameters = dict(part.partition("=")[::2] for part in rest)
        clauses.append((_weight(parameters.pop("q", "1")), media_type, parameters))
    ordered = sorted(clauses, key=lambda clause: -clause[0])
    return tuple((media_type, parameters) for weight, media_type, parameters in ordered if weight > 0)


def _weight(text: str) -> float:
    """Return a weight from 0 to 1; as in Go's API servers, an invalid one counts as 1."""
    try:
        weight = float(text)
    except ValueError:
        return 1.0
    return weight if 0 <= weight <= 1 else 1.0


def _first(query: str, name: str) -> str:
    """Return the first value of a parameter; empty if it is absent or cannot be decoded."""
    for pair in query.split("&"):
        raw, _, value = pair.partition("=")
        try:
            if percent_decode(raw) == name:
                return percent_decode(value)
        except EncodingError:
            continue
    return ""
