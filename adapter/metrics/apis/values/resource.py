"""`metrics.k8s.io`: what pods and nodes use of CPU and memory, for `kubectl top` and for HPAs on either."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from adapter.foundation.objects.names import is_namespace_name, is_object_name
from adapter.foundation.web.negotiation import table_version
from adapter.foundation.web.prepared import Body, PreparedBodies
from adapter.metrics.apis.error_messages import translate_reading_errors
from adapter.metrics.apis.status import ApiError
from adapter.metrics.apis.values.answered import AnswerValues
from adapter.metrics.apis.values.field_selectors import parse_field_selector
from adapter.metrics.apis.values.parameters import parameters, refuse_watch, selector
from adapter.metrics.apis.values.tables import INCLUDES, usage_table
from adapter.metrics.apis.values.usage_lists import KINDS, Pieces, usage_list, usage_object
from adapter.metrics.readings.answers import ByName, BySelector, NamedBySelector, UsageAnswer, UsageItem
from adapter.metrics.readings.errors import NoSampleError
from adapter.metrics.rulebook.parsing.resource_rules import NODES, PODS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from adapter.foundation.objects.resources import Resource
    from adapter.metrics.apis.provider import MetricsProvider
    from adapter.metrics.apis.routing import UsageValues

_RESOURCES = {"pods": PODS, "nodes": NODES}
_CONTAINER_BYTES: Final = 1024
"""Memory of a container in a cached answer: its values, and its part of the pod. Labels are shared with the watched
pod."""


class ResourceMetrics:
    """Resource usage of pods and nodes. `wall` returns Unix seconds."""

    def __init__(self, provider: MetricsProvider, wall: Callable[[], float] = time.time) -> None:
        self._provider = provider
        self._wall = wall
        self._bodies: PreparedBodies[tuple[tuple[UsageItem, ...], float, float]] = PreparedBodies(
            item_bytes=_CONTAINER_BYTES
        )

    def get(self, asked: UsageValues, query: str, accept: str) -> AnswerValues:
        """Return `PodMetrics`, `NodeMetrics`, a list of them, or either as a `Table`. Raises ApiError."""
        given = parameters(query, of_list=asked.name is None)
        if asked.name is None:
            refuse_watch(given)
        kind = _RESOURCES[asked.resource]
        _check_names(asked)
        columns = sorted(metric.name for metric in self._provider.catalogue.usage_of(kind))
        if not columns:
            raise ApiError(404, self._unserved_reason(asked.resource))
        if asked.name is None:
            answer, items = self._list(asked, kind, given)
        else:
            answer = self._one(asked, kind, asked.name)
            items = answer.items
        body = self._body(asked, items, answer.window_seconds, columns, accept, given)
        moment = self._wall() if answer.evaluated_at is None else answer.evaluated_at
        return AnswerValues(body.plain, moment, answer.warnings, body.gzipped)

    def _unserved_reason(self, resource: str) -> str:
        if not self._provider.catalogue.resource.rules:
            return f"the usage of {resource} is unknown: the rule files hold no `resourceRules` that are in force"
        return f"the usage of {resource} is unknown: each resource rule lacks its query or a label for them"

    def _list(
        self, asked: UsageValues, kind: Resource, given: Mapping[str, str]
    ) -> tuple[UsageAnswer, tuple[UsageItem, ...]]:
        """Return the whole answer, and those of its items that the field selector selects."""
        labels = selector(given, "labelSelector")
        fields = parse_field_selector(given.get("fieldSelector", ""))
        namespace = asked.namespace
        if namespace is None and kind.namespaced and fields.namespace and is_namespace_name(fields.namespace):
            # The selector leaves one namespace, so no other is requested.
            namespace = fields.namespace
        # A caller that may only list objects of one name must not learn of others, not even from warnings.
        which = BySelector(labels) if fields.name is None else NamedBySelector(fields.name, labels)
        with translate_reading_errors(f"{asked.resource} metrics"):
            answer = self._provider.usage(kind, namespace, which)
        return answer, tuple(item for item in answer.items if fields.matches(item.namespace, item.name))

    def _one(self, asked: UsageValues, kind: Resource, name: str) -> UsageAnswer:
        with translate_reading_errors(f"{asked.resource} metrics"):
            try:
                return self._provider.usage(kind, asked.namespace, ByName(name))
            except NoSampleError as e:
                shown = f"{asked.namespace}/{name}" if asked.namespace else name
                group = f"{KINDS[asked.resource].lower()}.metrics.k8s.io"
                raise ApiError(404, f'{group} "{shown}" not found: {e.message}') from e

    def _body(
        self,
        asked: UsageValues,
        items: tuple[UsageItem, ...],
        window_seconds: float,
        columns: list[str],
        accept: str,
        given: Mapping[str, str],
    ) -> Body:
        # Answers state whole seconds.
        now = float(int(self._wall()))
        version = table_version(accept)
        include = "" if version is None else _include_parameter(given)

        def make() -> bytes:
            if version is not None:
                return usage_table(version, asked.resource, columns, items, window_seconds, now, include)
            if asked.name is not None:
                return usage_object(asked.resource, items[0], Pieces(window_seconds, now)) + b"\n"
            return usage_list(asked.resource, items, window_seconds, now)

        selectors = (given.get("labelSelector", ""), given.get("fieldSelector", ""))
        question = (asked, tuple(columns), version, include, selectors)
        values = sum(len(item.used) for item in items)
        return self._bodies.body(question, (items, window_seconds, now), values, make)


def _include_parameter(given: Mapping[str, str]) -> str:
    """Return what a table's rows include besides the cells. Raises ApiError 400."""
    include = given.get("includeObject", "") or "Metadata"
    if include not in INCLUDES:
        raise ApiError(400, f"unable to parse includeObject {include!r}: write one of {', '.join(INCLUDES)}")
    return include


def _check_names(asked: UsageValues) -> None:
    """Raise ApiError 400 for names that no namespace or object can have."""
    if asked.namespace is not None and not is_namespace_name(asked.namespace):
        raise ApiError(400, f"{asked.namespace!r} cannot be the name of a namespace")
    if asked.name is not None and not is_object_name(asked.name):
        raise ApiError(400, f"{asked.name!r} cannot be the name of an object")
