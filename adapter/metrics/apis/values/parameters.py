"""Reads selectors from a raw query string (pure).

A parameter that affects the answer and cannot be decoded is an error and is never ignored: without its selector, a
request would get more than it asked for, and scale on it. All others are ignored, as in Kubernetes: `limit` and
`continue` (answers are never split), `resourceVersion`, `timeout` (the server has limits of its own), and any that are
unknown. As in Kubernetes, parameters that stand for a number or a duration must be valid.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from adapter.foundation.objects.durations import DurationError, go_nanoseconds
from adapter.foundation.objects.percent import EncodingError, percent_decode
from adapter.foundation.objects.selectors import EVERYTHING, Selector, SelectorError, parse_selector
from adapter.metrics.apis.status import ApiError

READ = frozenset({"labelSelector", "metricLabelSelector", "fieldSelector", "watch", "includeObject"})
"""Parameters that affect an answer."""
_NUMBERS = frozenset({"limit", "timeoutSeconds"})
_CHECKED = _NUMBERS | {"timeout"}
"""Parameters whose form is checked; if one is repeated, the first is checked."""
_WHOLE = re.compile(r"[+-]?[0-9]{1,19}")
_INT64 = range(-(1 << 63), 1 << 63)


def parameters(query: str, *, of_list: bool = True) -> Mapping[str, str]:
    """Return the decoded parameters in `READ`. Raises ApiError 400 for one that is malformed or repeated.

    Numbers of a request that is not for a list are not checked, as in Kubernetes.
    """
    found: dict[str, str] = {}
    checked: set[str] = set()
    for pair in filter(None, query.split("&")):
        raw, _, value = pair.partition("=")
        name = _name(raw)
        if name in _CHECKED and name not in checked and (of_list or name not in _NUMBERS):
            checked.add(name)
            _check(name, value)
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
    """Raise ApiError 405 for a watch, because values can only be requested.

    As in Kubernetes, every value other than `false` and `0` counts as true, even the empty one.
    """
    if given.get("watch", "false").lower() not in {"0", "false"}:
        raise ApiError(405, "metrics cannot be watched: repeat the request instead")


def refuse_fields(given: Mapping[str, str], name: str | None = None) -> None:
    """Raise ApiError 400 for a field selector that selects anything but the `name` in the path."""
    text = given.get("fieldSelector", "").strip()
    if text and (name is None or text not in {f"metadata.name={name}", f"metadata.name=={name}"}):
        raise ApiError(400, f"the fieldSelector {text!r} cannot be met: name one object in the path, or none")


def _check(name: str, raw: str) -> None:
    """Raise ApiError 400 for a value that does not have the form of the parameter."""
    try:
        text = percent_decode(raw.replace("+", " "))
    except EncodingError:
        # Go's servers drop a parameter that cannot be decoded.
        return
    if name in _NUMBERS and not (_WHOLE.fullmatch(text) and int(text) in _INT64):
        raise ApiError(400, f"the parameter {name} is not a whole number: {text!r}")
    if name not in _NUMBERS and text:
        try:
            go_nanoseconds(text)
        except DurationError as e:
            raise ApiError(400, f"invalid timeout specified in the request URL: {e}") from e


def _name(raw: str) -> str:
    """Return a parameter's name; empty if it cannot be decoded, since then it is not in `READ`."""
    try:
        return percent_decode(raw.replace("+", " "))
    except EncodingError:
        return ""


def _value(name: str, raw: str) -> str:
    try:
        return percent_decode(raw.replace("+", " "))
    except EncodingError as e:
        raise ApiError(400, f"the parameter {name} {e}") from e
