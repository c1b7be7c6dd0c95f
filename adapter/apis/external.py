"""`external.metrics.k8s.io`: metrics that describe no object of the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.apis.answered import Answered
from adapter.apis.failures import fetching, no_data, not_found
from adapter.apis.parameters import parameters, refuse_fields, refuse_watch, selector
from adapter.apis.status import ApiError
from adapter.apis.values import external_metric_value_list
from adapter.objects.names import is_namespace_name

if TYPE_CHECKING:
    from adapter.apis.hints import Hints
    from adapter.apis.routing import ExternalValues
    from adapter.apis.served import Served
    from adapter.rulebook.model import Metric

ANY_NAMESPACE = "*"


class ExternalMetrics:
    """Values of external metrics. With `empty_is_error` an answer without any value is a 404."""

    def __init__(self, served: Served, hints: Hints, *, empty_is_error: bool) -> None:
        self._served = served
        self._hints = hints
        self._empty_is_error = empty_is_error

    def get(self, asked: ExternalValues, query: str) -> Answered:
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
        metric = self._served.catalogue.find_external(asked.metric)
        if metric is None:
            raise not_found(what, self._hints.for_missing(asked.metric))
        _require_namespace(metric, asked.namespace)
        with fetching(what):
            answer = self._served.external(metric, asked.namespace, metric_selector)
        if self._empty_is_error and not answer.rows:
            raise no_data(what)
        body = external_metric_value_list(asked.version, metric.name, answer)
        return Answered(body, answer.evaluated_at, answer.warnings)


def _require_namespace(metric: Metric, namespace: str) -> None:
    """Raise ApiError 400 where all namespaces are asked for and the metric is of one.

    prometheus-adapter's documentation asks for metrics of rules with `namespaced: false` as `namespaces/*/METRIC`.
    """
    if namespace == ANY_NAMESPACE and metric.namespace_label is not None:
        message = f"the metric {metric.name} is restricted to the namespace that asks: name one in place of *"
        raise ApiError(400, message)
