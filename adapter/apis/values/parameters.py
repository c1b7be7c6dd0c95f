"""Selectors out of a raw query string (pure).

A parameter that decides about the answer and cannot be read is an error, never left out: without its selector a request
would get, and scale on, more than it asked for. All others are passed over, as Kubernetes does: `limit` and `continue`
(answers are never cut), `resourceVersion`, `timeout` (no answer takes longer than two seconds), and unknown ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.apis.status import ApiError
from adapter.objects.percent import EncodingError, decoded
from adapter.objects.selectors import EVERYTHING, SelectorError, parse_selector

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.objects.selectors import Selector

READ = frozenset({"labelSelector", "metricLabelSelector", "fieldSelector", "watch", "includeObject"})
"""Parameters that decide about an answer."""


def parameters(query: str) -> Mapping[str, str]:
    """Return those that are read, decoded. Raises ApiError 400 for one that cannot be read, or is given twice."""
    found: dict[str, str] = {}
    for pair in filter(None, query.split("&")):
        raw, _, value = pair.partition("=")
        name = _name(raw)
        if name not in READ:
            continue
        if name in found:
            raise ApiError(400, f"the parameter {name} is given twice")
        found[name] = _value(name, value)
    return found


def selector(given: Mapping[str, str], name: str) -> Selector:
    """Return the selector of that parameter; an absent or empty one selects everything. Raises ApiError 400."""
    text = given.get(name, "")
    if not text:
        return EVERYTHING
    try:
        return parse_selector(text)
    except SelectorError as e:
        raise ApiError(400, f"unable to parse {name} {text!r}: {e}") from e


def refuse_watch(given: Mapping[str, str]) -> None:
    """Raise ApiError 405 for a watch: values are asked for, not followed.

    Kubernetes takes every value of a boolean for true but `false` and `0`, even the empty one.
    """
    if given.get("watch", "false").lower() not in {"0", "false"}:
        raise ApiError(405, "metrics cannot be watched: ask again instead")


def refuse_fields(given: Mapping[str, str], name: str | None = None) -> None:
    """Raise ApiError 400 for a field selector that says anything but the `name` that the path says already."""
    text = given.get("fieldSelector", "").strip()
    if text and (name is None or text not in {f"metadata.name={name}", f"metadata.name=={name}"}):
        raise ApiError(400, f"the fieldSelector {text!r} cannot be met: name one object in the path, or none")


def _name(raw: str) -> str:
    """Return a parameter's name; empty for one that cannot be read, which therefore is none of those that matter."""
    try:
        return decoded(raw.replace("+", " "))
    except EncodingError:
        return ""


def _value(name: str, raw: str) -> str:
    try:
        return decoded(raw.replace("+", " "))
    except EncodingError as e:
        raise ApiError(400, f"the parameter {name} {e}") from e
