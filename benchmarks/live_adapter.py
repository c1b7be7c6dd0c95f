"""A reference for comparison: the adapter's own server, which queries Prometheus for each request.

This is how an adapter without a memory works: one live query for each request, restricted to the request's objects. It
is written for this comparison, from the product's own parts, and is not prometheus-adapter: TLS, identity, rules,
objects and answers are handled by the same code as in `tidewatch-adapter serve`, so that only the query differs. It
takes the same flags. It finds objects in memory, which spares it the LIST that prometheus-adapter sends to the API
server with each request.
"""

from __future__ import annotations

import functools
import math
import sys
import time
from typing import TYPE_CHECKING

from adapter.commands.program import PROGRAM
from adapter.commands.rule_files import load_configuration
from adapter.commands.serve.flags import SERVE
from adapter.commands.serve.serve_settings import serve_settings
from adapter.foundation.files.file_contents import read_files
from adapter.foundation.objects.selectors import EVERYTHING
from adapter.foundation.service.flags.parsing import flags_or_exit
from adapter.foundation.service.runtime.process_telemetry import exposition
from adapter.foundation.service.server.process import serve_forever
from adapter.foundation.sources.object_folder import FileObjects
from adapter.foundation.sources.prometheus.errors import PrometheusError
from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
from adapter.foundation.time.pace import UNPACED
from adapter.foundation.web.wsgi import wsgi_application
from adapter.metrics.apis.apis_telemetry import Telemetry
from adapter.metrics.apis.handler import Handler
from adapter.metrics.apis.routing import is_frequent
from adapter.metrics.apis.services import ApiServices
from adapter.metrics.identity.authentication import AccessControl
from adapter.metrics.readings.answers import ByName, ExternalAnswer, ObjectsAnswer, UsageAnswer, UsageItem
from adapter.metrics.readings.catalogue.catalogue import Catalogue
from adapter.metrics.readings.errors import NoObjectsMatchError, SourceUnreachableError
from adapter.metrics.readings.explain.explanation import Explanation, ExplanationVerdict
from adapter.metrics.rulebook.parsing.parse import parse_rulebook
from adapter.metrics.rulebook.provided_metrics import static_metrics
from adapter.metrics.rulebook.query_rendering import exact_query
from adapter.metrics.rulebook.requests import Asked, Row

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adapter.commands.serve.serve_settings import ServeSettings
    from adapter.foundation.objects.resources import Resource
    from adapter.foundation.objects.selectors import Selector
    from adapter.foundation.service.server.context import WorkerContext
    from adapter.foundation.service.server.process import WsgiApp
    from adapter.foundation.sources.prometheus.answers.decoding import Sample
    from adapter.metrics.readings.answers import BySelector, NamedBySelector
    from adapter.metrics.readings.catalogue.last_look_up import LookUp
    from adapter.metrics.readings.explain.explanation import ExplanationStep, Question
    from adapter.metrics.rulebook.model import Metric, RefusedRule

_DEADLINE_SECONDS = 10.0


class LiveReadings:
    """Values directly from Prometheus, with a query for each call. Implements `MetricsProvider` for the APIs."""

    def __init__(self, catalogue: Catalogue, objects: FileObjects, prometheus: PrometheusClient) -> None:
        self.catalogue = catalogue
        self._objects = objects
        self._prometheus = prometheus

    def catalogue_of(self, namespace: str | None) -> Catalogue:  # noqa: ARG002 - part of the protocol
        """Return nothing: there are no MetricRule objects."""
        return Catalogue()

    def complete_catalogue_of(self, namespace: str) -> Catalogue:
        """Return nothing: there are no MetricRule objects."""
        return self.catalogue_of(namespace)

    def complete_catalogue(self, namespace: str | None) -> Catalogue:  # noqa: ARG002 - part of the protocol
        """Return all metrics, which are known from the start."""
        return self.catalogue

    def objects(
        self, metric: Metric, namespace: str | None, which: ByName | BySelector, metric_selector: Selector
    ) -> ObjectsAnswer:
        """Query Prometheus for exactly these objects. Raises ReadingError."""
        if metric.resource is None or metric.object_label is None:
            raise NoObjectsMatchError(f"{metric.qualified} describes no objects")
        names = (
            (which.name,)
            if isinstance(which, ByName)
            else self._objects.names(metric.resource, namespace, which.selector)
        )
        if not names:
            raise NoObjectsMatchError(f"no {metric.resource.qualified} match")
        samples, second = self._ask(exact_query(metric, Asked(namespace, names, metric_selector)))
        values = {sample.labels[metric.object_label]: sample.value for sample in samples}
        return ObjectsAnswer(tuple((name, values[name]) for name in names if name in values), second)

    def external(self, metric: Metric, namespace: str, selector: Selector) -> ExternalAnswer:
        """Query Prometheus with exactly this selector. Raises ReadingError."""
        samples, second = self._ask(exact_query(metric, Asked(namespace, (), selector)))
        return ExternalAnswer(tuple(Row(sample.labels, sample.value) for sample in samples), second)

    def usage(self, kind: Resource, namespace: str | None, which: ByName | BySelector | NamedBySelector) -> UsageAnswer:
        """Query Prometheus for exactly these pods, with one query for each resource. Raises ReadingError."""
        names = (which.name,) if isinstance(which, ByName) else self._objects.names(kind, namespace, which.selector)
        used: dict[str, dict[str, dict[str, float]]] = {name: {} for name in names}
        second = 0.0
        for metric in self.catalogue.usage_of(kind) if names else ():
            samples, second = self._ask(exact_query(metric, Asked(namespace, tuple(names), EVERYTHING)))
            for sample in samples:
                name, container = sample.labels[metric.object_label or ""], metric.container_label
                containers = used[name].setdefault(sample.labels[container] if container else "", {})
                containers[metric.name] = sample.value
        items = (UsageItem(namespace, name, {}, second, used[name]) for name in names if used[name])
        return UsageAnswer(tuple(items), self.catalogue.resource.window_seconds, second or None)

    def explain(self, question: Question, notes: Iterable[ExplanationStep] = ()) -> Explanation:
        """Return an explanation that says that nothing is remembered here."""
        cause = "the reference server keeps no snapshot: it asks Prometheus for each request"
        return Explanation(
            metric=question.name,
            namespace=question.namespace,
            object=question.object,
            verdict=ExplanationVerdict.ERROR,
            cause=cause,
            fix=None,
            steps=tuple(notes),
        )

    def look_ups(self) -> tuple[LookUp, ...]:
        """Return nothing: no series are looked up."""
        return ()

    def refused(self) -> tuple[RefusedRule, ...]:
        """Return nothing: refused rules are not kept."""
        return ()

    def _ask(self, query: str) -> tuple[list[Sample], float]:
        second = float(math.floor(time.time()))
        try:
            answer = self._prometheus.instant(query, timeout_seconds=_DEADLINE_SECONDS, at=second)
            return [sample for batch in answer.batches(UNPACED) for sample in batch], second
        except PrometheusError as e:
            raise SourceUnreachableError(str(e)) from e


def make_worker(settings: ServeSettings, context: WorkerContext) -> WsgiApp:
    """Build the worker from the product's parts."""
    if settings.objects.files is None or settings.identity.materials.settings.front_proxy is None:
        raise SystemExit("the reference needs --objects and --requestheader-client-ca-file")
    objects = FileObjects(settings.objects.files)
    objects.refresh()
    rulebook = parse_rulebook(load_configuration(read_files(settings.configuration)), objects.resource)
    metrics = (metric for rule in rulebook.rules for metric in static_metrics(rule, objects.resource))
    catalogue = Catalogue(metrics, resource=rulebook.resource)
    prometheus = PrometheusClient(settings.prometheus)
    context.on_stop(prometheus.close)
    handler = Handler(
        ApiServices(
            authorizer=AccessControl(settings.identity.materials),
            provider=LiveReadings(catalogue, objects, prometheus),
            resolve=objects.resource,
            health=context.health.answer,
            metrics=lambda: exposition(context.registry),
            telemetry=Telemetry(context.registry),
            version=settings.server.version,
            explain_command=f"{PROGRAM} explain",
        )
    )
    return wsgi_application(handler.handle, routes=handler.routes(), refuse=handler.refuse, is_frequent=is_frequent)


if __name__ == "__main__":
    settings = serve_settings(flags_or_exit(SERVE, sys.argv[1:]))
    serve_forever(settings.server, functools.partial(make_worker, settings))
