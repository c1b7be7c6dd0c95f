"""Answers as bytes: `MetricValueList` of both versions, and `ExternalMetricValueList` (pure).

An answer for a thousand pods is the same text a thousand times except for name and value, so it is joined from pieces
instead of being built as objects. Field names are those of `k8s.io/metrics/pkg/apis`. The window is left out, as by
prometheus-adapter, unless the rule states it, because otherwise only the query's text tells how long it is.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from adapter.foundation.objects.selectors import Operator, Requirement, Selector, label_selector
from adapter.metrics.apis.compatibility import OURS, Compatibility
from adapter.metrics.apis.routing import CUSTOM, EXTERNAL

if TYPE_CHECKING:
    from adapter.foundation.objects.resources import Resource
    from adapter.metrics.readings.answers import ExternalAnswer, ObjectsAnswer

_json = msgspec.json.encode


def metric_value_list(
    version: str,
    resource: Resource,
    namespace: str | None,
    name: str,
    selector: Selector,
    answer: ObjectsAnswer,
    compatibility: Compatibility = OURS,
) -> bytes:
    """Return the values of custom metric `name` in API version `v1beta1` or `v1beta2`.

    Raises SelectorError for a selector that a LabelSelector cannot express (`>`, `<`).
    """
    place = b'"namespace":%b,' % _json(namespace) if namespace is not None else b""
    before = b'{"describedObject":{"kind":%b,%b"name":' % (_json(resource.kind), place)
    between = b',"apiVersion":%b},%b"value":"' % (
        _json(compatibility.api_version(resource)),
        _identity(version, name, selector, timestamp(answer.evaluated_at), answer.window_seconds),
    )
    quantity = compatibility.quantity
    items = [b'%b%b%b%b"}' % (before, _json(of), between, quantity(value).encode()) for of, value in answer.values]
    return _value_list("MetricValueList", CUSTOM, version, items)


def external_metric_value_list(
    version: str, name: str, answer: ExternalAnswer, compatibility: Compatibility = OURS
) -> bytes:
    """Return the values of external metric `name`, ordered by their labels."""
    before = b'{"metricName":%b,"metricLabels":' % _json(name)
    between = b',"timestamp":"%b",%b"value":"' % (
        timestamp(answer.evaluated_at),
        _window("window", answer.window_seconds),
    )
    quantity = compatibility.quantity
    items = [
        b'%b%b%b%b"}' % (before, _json(dict(labels)), between, quantity(row.value).encode())
        for labels, row in sorted(((sorted(row.labels.items()), row) for row in answer.rows), key=lambda pair: pair[0])
    ]
    return _value_list("ExternalMetricValueList", EXTERNAL, version, items)


def timestamp(seconds: float) -> bytes:
    """Return Unix seconds as Kubernetes writes times: RFC 3339, UTC, whole seconds."""
    return f"{datetime.fromtimestamp(int(seconds), tz=UTC):%Y-%m-%dT%H:%M:%SZ}".encode()


def _identity(version: str, name: str, selector: Selector, when: bytes, window: int | None) -> bytes:
    """Return the fields that name metric, selector, time and window; the two versions differ only in these."""
    said = _json(label_selector(_expressible(selector)))
    if version == "v1beta1":
        span = _window("window", window)
        return b'"metricName":%b,"timestamp":"%b",%b"selector":%b,' % (_json(name), when, span, said)
    span = _window("windowSeconds", window)
    return b'"metric":{"name":%b,"selector":%b},"timestamp":"%b",%b' % (_json(name), said, when, span)


def _window(field: str, seconds: int | None) -> bytes:
    """Return the field with the time span that values are measured over; nothing if the rule does not state it."""
    return b"" if seconds is None else b'"%b":%d,' % (field.encode(), seconds)


def _expressible(selector: Selector) -> Selector:
    """Return the selector with each `k!=v` as `k notin (v)`, which means the same and fits a LabelSelector."""
    if all(requirement.operator is not Operator.NOT_EQUALS for requirement in selector.requirements):
        return selector
    return Selector(
        tuple(
            Requirement(requirement.key, Operator.NOT_IN, requirement.values)
            if requirement.operator is Operator.NOT_EQUALS
            else requirement
            for requirement in selector.requirements
        )
    )


def _value_list(kind: str, group: str, version: str, items: list[bytes]) -> bytes:
    head = f'{{"kind":"{kind}","apiVersion":"{group}/{version}","metadata":{{}},"items":['
    return b"%b%b]}\n" % (head.encode(), b",".join(items))
