"""`external.metrics.k8s.io`: metrics that describe no object of the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.apis.compatibility import OURS
from adapter.apis.failures import empty_is_error, fetching, no_data, not_found
from adapter.apis.status import ApiError
from adapter.apis.values.answered import AnswerValues
from adapter.apis.values.parameters import parameters, refuse_fields, refuse_watch, selector
from adapter.apis.values.value_lists import external_metric_value_list
from adapter.objects.names import is_namespace_name

if TYPE_CHECKING:
    from adapter.apis.compatibility import Compatibility
    from adapter.apis.hints.hints import Hints
    from adapter.apis.provider import MetricsProvider
    from adapter.apis.routing import ExternalValues
    from adapter.rulebook.model import Metric

ANY_NAMESPACE = "*"


class ExternalMetrics:
    """Values of external metrics.

    `explain_command` begins the command that error messages name. With `empty_is_error` an answer without a value is a
    404.
    """

    def __init__(
        self,
        provider: MetricsProvider,
        hints: Hints,
        *,
        explain_command: str,
        empty_is_error: bool,
        compatibility: Compatibility = OURS,
    ) -> None:
        self._provider = provider
        self._hints = hints
        self._explain_command = explain_command
        self._empty_is_error = empty_is_error
        self._compatibility = compatibility

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
        metric = self._provider.catalogue.find_external(asked.metric)
        if metric is None:
            why = self._hints.for_missing(asked.metric, command)
            raise not_found(what, why, formerly=_formerly(asked))
        _require_namespace(metric, asked.namespace)
        with fetching(what, command):
            answer = self._provider.external(metric, asked.namespace, metric_selector)
        if not answer.rows and empty_is_error(metric, otherwise=self._empty_is_error):
            raise no_data(what, command)
        body = external_metric_value_list(asked.version, metric.name, answer, self._compatibility)
        return AnswerValues(body, answer.evaluated_at, answer.warnings)

    def _command(self, asked: ExternalValues) -> str:
        """Return the command that explains the metric."""
        where = "" if asked.namespace == ANY_NAMESPACE else f" -n {asked.namespace}"
        return f"{self._explain_command} {asked.metric} --api external{where}"


def _formerly(asked: ExternalValues) -> str:
    """Return what prometheus-adapter calls an unknown metric: one of namespaces in `default`, of nothing elsewhere."""
    return f"metric {asked.metric} for {'namespaces' if asked.namespace == 'default' else ''}"


def _require_namespace(metric: Metric, namespace: str) -> None:
    """Raise ApiError 400 if all namespaces are requested and the metric is restricted to one.

    prometheus-adapter's documentation asks for metrics of rules with `namespaced: false` as `namespaces/*/METRIC`.
    """
    if namespace == ANY_NAMESPACE and metric.namespace_label is not None:
        message = f"the metric {metric.name} is restricted to the namespace that asks: name one in place of *"
        raise ApiError(400, message)
