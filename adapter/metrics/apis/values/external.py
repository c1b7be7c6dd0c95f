"""`external.metrics.k8s.io`: metrics that describe no object of the cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from adapter.foundation.objects.names import is_namespace_name
from adapter.foundation.web.prepared import Body, PreparedBodies
from adapter.metrics.apis.error_messages import empty_is_error, no_data, not_found, not_known, translate_reading_errors
from adapter.metrics.apis.status import ApiError
from adapter.metrics.apis.values.answered import AnswerValues
from adapter.metrics.apis.values.parameters import parameters, refuse_fields, refuse_watch, selector
from adapter.metrics.apis.values.served_metric import served_metric
from adapter.metrics.apis.values.value_lists import external_metric_value_list
from adapter.metrics.rulebook.model import Api, Metric

if TYPE_CHECKING:
    from adapter.foundation.objects.selectors import Selector
    from adapter.metrics.apis.hints.hints import Hints
    from adapter.metrics.apis.routing import ExternalValues
    from adapter.metrics.apis.services import ApiServices
    from adapter.metrics.readings.answers import ExternalAnswer

ANY_NAMESPACE = "*"
_ROW_BYTES: Final = 1024
"""Memory of a row of a cached answer: its value and ten labels."""


class ExternalMetrics:
    """Values of external metrics."""

    def __init__(self, services: ApiServices, hints: Hints) -> None:
        self._services = services
        self._provider = services.provider
        self._hints = hints
        self._bodies: PreparedBodies[ExternalAnswer] = PreparedBodies(item_bytes=_ROW_BYTES)

    def get(self, asked: ExternalValues, query: str) -> AnswerValues:
        """Return an `ExternalMetricValueList`. Raises ApiError.

        The metric's selector comes as `labelSelector` here.
        """
        given = parameters(query)
        refuse_watch(given)
        refuse_fields(given)
        metric_selector = selector(given, "labelSelector")
        if asked.namespace != ANY_NAMESPACE and not is_namespace_name(asked.namespace):
            raise ApiError(400, f"{asked.namespace!r} cannot be the name of a namespace")
        what = f"metric {asked.metric} for external"
        command = self._command(asked)
        with translate_reading_errors(what):
            metric = served_metric(self._provider, asked.namespace, lambda each: each.find_external(asked.metric))
        if metric is None:
            why = self._hints.for_failed_look_ups(Api.EXTERNAL, asked.metric, command)
            if why is not None:
                raise not_known(what, why, formerly=_formerly(asked))
            raise not_found(what, self._hints.for_missing(asked.metric, command), formerly=_formerly(asked))
        _require_namespace(metric, asked.namespace)
        with translate_reading_errors(what, command):
            answer = self._provider.external(metric, asked.namespace, metric_selector)
        if not answer.rows and empty_is_error(metric, otherwise=self._services.empty_is_error):
            raise no_data(what, command)
        body = self._body(asked, metric, metric_selector, answer)
        return AnswerValues(body.plain, answer.evaluated_at, answer.warnings, body.gzipped)

    def _body(self, asked: ExternalValues, metric: Metric, metric_selector: Selector, answer: ExternalAnswer) -> Body:
        # Answers state whole seconds.
        stated = replace(answer, evaluated_at=float(int(answer.evaluated_at)))
        question = (asked.version, asked.namespace, metric.name, metric_selector)
        return self._bodies.body(
            question,
            stated,
            len(answer.rows),
            lambda: external_metric_value_list(asked.version, metric.name, stated, self._services.compatibility),
        )

    def _command(self, asked: ExternalValues) -> str:
        """Return the command that explains the metric."""
        where = "" if asked.namespace == ANY_NAMESPACE else f" -n {asked.namespace}"
        return f"{self._services.explain_command} {asked.metric} --api external{where}"


def _formerly(asked: ExternalValues) -> str:
    """Return prometheus-adapter's text for an unknown metric: `for namespaces` in `default`, `for ` elsewhere."""
    return f"metric {asked.metric} for {'namespaces' if asked.namespace == 'default' else ''}"


def _require_namespace(metric: Metric, namespace: str) -> None:
    """Raise ApiError 400 if all namespaces are requested and the metric is restricted to one.

    prometheus-adapter's documentation requests metrics of rules with `namespaced: false` as `namespaces/*/METRIC`.
    """
    if namespace == ANY_NAMESPACE and metric.namespace_label is not None:
        message = f"the metric {metric.name} is restricted to the namespace of the request: name one instead of *"
        raise ApiError(400, message)
