"""`custom.metrics.k8s.io`: metrics of one object by its name, or of all objects that selectors choose."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from adapter.foundation.objects.names import is_namespace_name, is_object_name
from adapter.foundation.objects.resources import Resource, UnknownResourceError
from adapter.foundation.objects.selectors import Selector, SelectorError
from adapter.foundation.web.prepared import Body, PreparedBodies
from adapter.metrics.apis.error_messages import (
    NOT_LISTED,
    empty_is_error,
    no_data,
    not_found,
    not_known,
    translate_reading_errors,
)
from adapter.metrics.apis.routing import ALL_OBJECTS, CustomValues
from adapter.metrics.apis.status import ApiError
from adapter.metrics.apis.values.answered import AnswerValues
from adapter.metrics.apis.values.parameters import parameters, refuse_fields, selector
from adapter.metrics.apis.values.served_metric import served_metric
from adapter.metrics.apis.values.value_lists import metric_value_list
from adapter.metrics.readings.answers import ByName, BySelector, ObjectsAnswer
from adapter.metrics.rulebook.model import Api, Metric
from adapter.metrics.rulebook.templates.matchers import value_matcher

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.metrics.apis.hints.hints import Hints
    from adapter.metrics.apis.services import ApiServices
    from adapter.metrics.readings.catalogue.catalogue import Catalogue


class CustomMetrics:
    """Values of custom metrics."""

    def __init__(self, services: ApiServices, hints: Hints) -> None:
        self._services = services
        self._provider = services.provider
        self._hints = hints
        self._bodies: PreparedBodies[ObjectsAnswer] = PreparedBodies()

    def get(self, asked: CustomValues, query: str) -> AnswerValues:
        """Return a `MetricValueList`. Raises ApiError."""
        given = parameters(query)
        refuse_fields(given, asked.name)
        which = _which(asked, given)
        metric_selector = selector(given, "metricLabelSelector")
        metric, resource = self._find(asked)
        what, command = _metric_text(asked), self._command(asked)
        if metric.narrowed:
            _require_name(asked, resource)
            # `explain` explains the values of all such objects, not those that are restricted to one namespace.
            command = ""
        with translate_reading_errors(what, command, beside=_describe_narrowing(metric, asked)):
            answer = self._provider.objects(metric, asked.namespace, which, metric_selector)
        if not answer.values and empty_is_error(metric, otherwise=self._services.empty_is_error):
            raise no_data(what, command)
        body = self._body(asked, metric, resource, which, metric_selector, answer)
        return AnswerValues(body.plain, answer.evaluated_at, answer.warnings, body.gzipped)

    def _body(
        self,
        asked: CustomValues,
        metric: Metric,
        resource: Resource,
        which: ByName | BySelector,
        metric_selector: Selector,
        answer: ObjectsAnswer,
    ) -> Body:
        compatibility, name, namespace = self._services.compatibility, metric.name, asked.namespace
        # Answers state whole seconds.
        moment = float(int(compatibility.moment(answer.evaluated_at, self._services.wall())))
        stated = replace(answer, evaluated_at=moment)
        question = (asked.version, resource, namespace, name, which, metric_selector)

        def make() -> bytes:
            return metric_value_list(asked.version, resource, namespace, name, metric_selector, stated, compatibility)

        try:
            return self._bodies.body(question, stated, len(answer.values), make)
        except SelectorError as e:
            raise ApiError(400, f"unable to use the metric's selector: {e}") from e

    def _find(self, asked: CustomValues) -> tuple[Metric, Resource]:
        with translate_reading_errors(_metric_text(asked)):
            metric = served_metric(self._provider, asked.namespace, lambda each: self._find_metric(each, asked))
        if metric is None or metric.resource is None:
            what, command, formerly = _metric_text(asked), self._command(asked), _without_name(asked)
            why = self._hints.for_failed_look_ups(Api.CUSTOM, asked.metric, command)
            if why is not None:
                raise not_known(what, why, formerly=formerly)
            raise not_found(what, self._hints.for_missing(asked.metric, command), formerly=formerly)
        return metric, metric.resource

    def _find_metric(self, catalogue: Catalogue, asked: CustomValues) -> Metric | None:
        namespaced = asked.namespace is not None
        metric = catalogue.find_custom(asked.resource, namespaced, asked.metric)
        if metric is None:
            # Paths may use any name of a kind, such as the singular: kube-apiserver's clients map names in different
            # ways.
            metric = catalogue.find_custom(self._qualified_kind(asked), namespaced, asked.metric)
        return metric

    def _command(self, asked: CustomValues) -> str:
        """Return the command that explains the metric; empty if its name would be read as a part of a path."""
        if "/" in asked.metric:
            return ""
        where = "" if asked.namespace is None else f" -n {asked.namespace}"
        named = "" if asked.name == ALL_OBJECTS else f" --object {asked.resource}/{asked.name}"
        return f"{self._services.explain_command} {asked.resource}/{asked.metric}{where}{named}"

    def _qualified_kind(self, asked: CustomValues) -> str:
        name, _, group = asked.resource.partition(".")
        try:
            return self._services.resolve(group, name).qualified
        except UnknownResourceError as e:
            # prometheus-adapter lists the objects first if none is named.
            former = NOT_LISTED if asked.name == ALL_OBJECTS else None
            raise not_found(_metric_text(asked), str(e), formerly=_without_name(asked), former=former) from e


def _which(asked: CustomValues, given: Mapping[str, str]) -> ByName | BySelector:
    """Return which objects are meant; raises ApiError 400 for names that no object can have.

    A selector must be valid even if an object is requested by its name, although it is then ignored.
    """
    label_selector = selector(given, "labelSelector")
    if asked.namespace is not None and not is_namespace_name(asked.namespace):
        raise ApiError(400, f"{asked.namespace!r} cannot be the name of a namespace")
    if asked.name == ALL_OBJECTS:
        return BySelector(label_selector)
    if not is_object_name(asked.name):
        raise ApiError(400, f"{asked.name!r} cannot be the name of an object")
    return ByName(asked.name)


def _metric_text(asked: CustomValues) -> str:
    """Return the metric in prometheus-adapter's words: `metric M for pods`, with the name of a single object."""
    named = "" if asked.name == ALL_OBJECTS else f" {asked.name}"
    return f"{_without_name(asked)}{named}"


def _without_name(asked: CustomValues) -> str:
    """Return the metric in prometheus-adapter's words without the name of an object."""
    return f"metric {asked.metric} for {asked.resource}"


def _require_name(asked: CustomValues, resource: Resource) -> None:
    """Raise ApiError 404 for a request for all cluster-scoped objects within a namespace."""
    if asked.name == ALL_OBJECTS:
        why = f"{resource.qualified} are not namespaced: name one of them, or leave the namespace out"
        raise not_found(_metric_text(asked), why, former=NOT_LISTED)


def _describe_narrowing(metric: Metric, asked: CustomValues) -> str:
    """Return the part of an error that says that only series of the requesting namespace count."""
    if not metric.narrowed:
        return ""
    matcher = value_matcher(metric.namespace_label or "", asked.namespace or "")
    return f"; within a namespace, only series with {matcher} count"
