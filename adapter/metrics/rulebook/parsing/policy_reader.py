"""The policy keys of a rule, from `onNoData` to `foreignNamespaces`.

prometheus-adapter has none of these keys. If a rule omits one, the program's flags decide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.foundation.documents.load import MappingNode, Node, ScalarNode, shorten
from adapter.foundation.objects.durations import DurationError, parse_duration
from adapter.foundation.objects.quantities import QuantityError, parse_quantity
from adapter.metrics.rulebook.findings import Code
from adapter.metrics.rulebook.model import HOLD_SILENT_SECONDS, Api, ForeignNamespaces, OnNoData, Policy
from adapter.metrics.rulebook.parsing.rule_file import NO_DATA_VALUE

if TYPE_CHECKING:
    from adapter.metrics.rulebook.parsing.notes import Notes

_SHORTEST_SECONDS = 1.0
"""Shortest duration, as for `--refresh-interval`: queries are evaluated at whole seconds."""
_LONGEST_HOLD_SECONDS = 86_400.0
"""Limit on `holdSilent`, because held series take memory."""
_NANOS_A_MILLI = 10**6
_LARGEST_NANOS = 9 * 10**24
"""Largest value: autoscalers compute with milli-units in 64 bits, which end at 9.2e15."""


def read_policy(fields: MappingNode, api: Api, notes: Notes) -> Policy:
    """Return the rule's policy, and add its errors to the notes."""
    on_no_data, value = _on_no_data(fields, notes)
    age = _seconds(fields, "maxSampleAge", notes)
    refresh = _seconds(fields, "refresh", notes)
    window = _seconds(fields, "window", notes)
    if age is not None and refresh is not None and refresh >= age:
        message = f"`refresh` {refresh:g}s is not shorter than `maxSampleAge` {age:g}s, so values would grow too old"
        notes.error(Code.BAD_POLICY, fields.get("refresh") or fields, message, "refresh at least twice in that time")
    if window is not None and not window.is_integer():
        message = f"`window` is {window:g} s, but answers state whole seconds"
        notes.error(Code.BAD_POLICY, fields.get("window") or fields, message, "write whole seconds")
    return Policy(
        on_no_data,
        value,
        age,
        refresh,
        None if window is None else int(window),
        _foreign_namespaces(fields, notes),
        _hold_silent(fields, api, notes),
    )


def _foreign_namespaces(fields: MappingNode, notes: Notes) -> ForeignNamespaces | None:
    node, text = fields.get("foreignNamespaces"), notes.text(fields, "foreignNamespaces")
    if node is None or not text:
        return None
    try:
        return ForeignNamespaces(text)
    except ValueError:
        message = f"`foreignNamespaces` {shorten(text)!r} is unknown"
        notes.error(Code.BAD_POLICY, node, message, "write error or allow")
        return None


def _hold_silent(fields: MappingNode, api: Api, notes: Notes) -> float:
    """Return for how many seconds a silent series is held; the default if the key is absent or wrong."""
    node = fields.get("holdSilent")
    if node is None:
        return HOLD_SILENT_SECONDS
    if api is not Api.EXTERNAL or fields.get("maxSampleAge") is None:
        message = "`holdSilent` has a meaning only in externalRules with `maxSampleAge`"
        notes.error(Code.BAD_POLICY, node, message, "remove it, or add `maxSampleAge`")
        return HOLD_SILENT_SECONDS
    if isinstance(node, ScalarNode) and node.value in {"0", "0s"}:
        return 0.0
    seconds = _seconds(fields, "holdSilent", notes)
    if seconds is not None and seconds > _LONGEST_HOLD_SECONDS:
        message = f"`holdSilent` is {seconds:g} s, but at most a day is allowed"
        notes.error(Code.BAD_POLICY, node, message, "write 24h or less")
    return HOLD_SILENT_SECONDS if seconds is None else seconds


def _seconds(fields: MappingNode, key: str, notes: Notes) -> float | None:
    """Return a duration of at least a second; None if it is absent or invalid, the latter after noting the error."""
    node = fields.get(key)
    text = notes.text(fields, key)
    if node is None or not isinstance(node, ScalarNode):
        return None
    fix = "write numbers with units, such as 30s or 1m30s"
    try:
        seconds = parse_duration(text)
    except DurationError:
        notes.error(Code.BAD_POLICY, node, f"`{key}` {shorten(text)!r} is not a duration", fix)
        return None
    if seconds < _SHORTEST_SECONDS:
        notes.error(Code.BAD_POLICY, node, f"`{key}` is {seconds:g} s, but at least a second is required", fix)
        return None
    return seconds


def _on_no_data(fields: MappingNode, notes: Notes) -> tuple[OnNoData | None, float | None]:
    node = fields.get("onNoData")
    if node is None:
        return None, None
    if not isinstance(node, ScalarNode):
        return _value_under_its_key(node, notes)
    if node.value in {OnNoData.ERROR, OnNoData.EMPTY}:
        return OnNoData(node.value), None
    if node.value == OnNoData.VALUE:
        message = "`onNoData: value` does not say which value"
        notes.error(Code.BAD_POLICY, node, message, "write the value itself, as in `onNoData: 0` or `onNoData: 500m`")
        return None, None
    return _stand_in(node, notes)


def _value_under_its_key(node: Node, notes: Notes) -> tuple[OnNoData | None, float | None]:
    """Return the policy and value of `{value: 3}`."""
    given = notes.mapping(node, NO_DATA_VALUE)
    value = given.get("value") if given else None
    if given is not None and value is None and not notes.has_errors:
        message = "`onNoData` has no value"
        notes.error(Code.BAD_POLICY, node, message, "write error, empty, or the value, as in `onNoData: {value: 3}`")
    if value is None:
        return None, None
    notes.text(given, "value")
    return _stand_in(value, notes) if isinstance(value, ScalarNode) else (None, None)


def _stand_in(node: ScalarNode, notes: Notes) -> tuple[OnNoData | None, float | None]:
    shown = shorten(node.value)
    fix = "write error, empty, or a number such as 0, 2.5 or 500m"
    try:
        nanos = parse_quantity(node.value).nanos
    except QuantityError:
        notes.error(Code.BAD_POLICY, node, f"`onNoData` {shown!r} is not error, empty or a number", fix)
        return None, None
    # A value that cannot be served exactly must be refused: 100u, for example, would become 0.
    if nanos % _NANOS_A_MILLI or abs(nanos) > _LARGEST_NANOS:
        message = f"`onNoData` {shown!r} cannot be served: values are multiples of 0.001 and smaller than 9e15"
        notes.error(Code.BAD_POLICY, node, message, fix)
        return None, None
    return OnNoData.VALUE, nanos / 10**9
