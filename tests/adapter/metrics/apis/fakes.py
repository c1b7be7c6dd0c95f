"""Stand-ins behind the APIs in their tests: made-up metrics and values, and one certificate chain with access."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

from prometheus_client import CollectorRegistry, generate_latest

from adapter.foundation.objects.resources import Resource, find_resource
from adapter.foundation.objects.selectors import EVERYTHING
from adapter.foundation.web.http import Request, Response
from adapter.foundation.web.wsgi import wsgi_application
from adapter.metrics.apis.apis_telemetry import Telemetry
from adapter.metrics.apis.compatibility import OURS
from adapter.metrics.apis.handler import Handler
from adapter.metrics.apis.routing import is_frequent
from adapter.metrics.apis.services import ApiServices
from adapter.metrics.identity.callers import AccessForbiddenError, Caller, Peer, UnauthenticatedError, Via
from adapter.metrics.readings.answers import (
    ByName,
    BySelector,
    ExternalAnswer,
    NamedBySelector,
    ObjectsAnswer,
    UsageAnswer,
)
from adapter.metrics.readings.catalogue.catalogue import Catalogue
from adapter.metrics.readings.explain.explanation import Explanation, ExplanationVerdict
from adapter.metrics.rulebook.model import Api, Metric, ResourceRule, ResourceRules, Rule
from adapter.metrics.rulebook.naming import make_naming
from adapter.metrics.rulebook.requests import Row
from adapter.metrics.rulebook.resources import ResourceMapping
from adapter.metrics.rulebook.templates.template import parse_query_template
from tests.adapter.foundation.web.wsgi import call, environ

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adapter.foundation.objects.selectors import Selector
    from adapter.metrics.apis.compatibility import Compatibility
    from adapter.metrics.identity.attributes import Attributes
    from adapter.metrics.readings.catalogue.last_look_up import LookUp
    from adapter.metrics.readings.explain.explanation import ExplanationStep, Question
    from adapter.metrics.rulebook.model import RefusedRule

Asked: TypeAlias = "AskedObjects | AskedExternal | AskedUsage"
Answer: TypeAlias = "ObjectsAnswer | ExternalAnswer | UsageAnswer"

AT = 1_787_565_600.9
"""2026-08-24T10:00:00.9Z."""
NOW = AT + 4.0
CHAIN = (b"leaf", b"root")
REFUSED_CHAIN = (b"other leaf", b"root")

PODS = Resource("", "v1", "pods", "pod", "Pod", namespaced=True)
NAMESPACES = Resource("", "v1", "namespaces", "namespace", "Namespace", namespaced=False)
NODES = Resource("", "v1", "nodes", "node", "Node", namespaced=False)
VOLUMES = Resource("", "v1", "persistentvolumes", "persistentvolume", "PersistentVolume", namespaced=False)
DEPLOYMENTS = Resource("apps", "v1", "deployments", "deployment", "Deployment", namespaced=True)
INGRESSES = Resource("networking.k8s.io", "v1", "ingresses", "ingress", "Ingress", namespaced=True)
BRANDS = Resource("cheese.io", "v1alpha1", "brands", "brand", "Brand", namespaced=True)
KINDS = (PODS, NAMESPACES, NODES, VOLUMES, DEPLOYMENTS, INGRESSES, BRANDS)


def custom_metric(name: str, resource: Resource = PODS, series: str = "") -> Metric:
    rule, label = _rule(Api.CUSTOM), "namespace"
    if resource.namespaced:
        return Metric(rule, name, series or name, resource, resource.singular, label)
    return Metric(rule, name, series or name, resource, resource.singular, None, narrowing_label=label)


def external_metric(name: str, namespace_label: str | None = "namespace") -> Metric:
    return Metric(_rule(Api.EXTERNAL), name, name, None, None, namespace_label)


@cache
def _rule(api: Api) -> Rule:
    template = parse_query_template("sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)")
    return Rule("rules[0]", api, "rules.yaml", 1, "{}", (), make_naming(), ResourceMapping(), template)


def resolve(group: str, name: str) -> Resource:
    return find_resource(KINDS, group, name)


@dataclass(frozen=True, slots=True)
class AskedObjects:
    metric: Metric
    namespace: str | None
    which: ByName | BySelector
    metric_selector: Selector


@dataclass(frozen=True, slots=True)
class AskedExternal:
    metric: Metric
    namespace: str
    selector: Selector


@dataclass(frozen=True, slots=True)
class AskedUsage:
    kind: Resource
    namespace: str | None
    which: ByName | BySelector | NamedBySelector


@dataclass
class FakeReadings:
    """Readings that answer exactly the expected requests with these answers, and fail for all others."""

    catalogue: Catalogue = field(default_factory=Catalogue)
    answers: dict[Asked, Answer | Exception] = field(default_factory=dict)

    first_look_ups: Catalogue | Exception | None = None
    """The result of the first look-ups of series; None if none are under way."""
    look_ups_now: tuple[LookUp, ...] = ()
    refused_now: tuple[RefusedRule, ...] = ()
    explained: list[tuple[Question, tuple[ExplanationStep, ...]]] = field(default_factory=list)
    explanation: Explanation = field(
        default_factory=lambda: Explanation(
            metric="m", namespace=None, object=None, verdict=ExplanationVerdict.VALUE, cause="told", fix=None
        )
    )

    of_objects: dict[str, Catalogue] = field(default_factory=dict)
    """By namespace, the metrics that MetricRule objects serve."""

    def catalogue_of(self, namespace: str | None) -> Catalogue:
        return self.of_objects.get(namespace or "", Catalogue())

    first_look_ups_of_objects: Exception | None = None
    """The error with which the first look-ups of objects end; None if none are under way."""

    def complete_catalogue_of(self, namespace: str) -> Catalogue:
        if self.first_look_ups_of_objects is not None:
            raise self.first_look_ups_of_objects
        return self.catalogue_of(namespace)

    def complete_catalogue(self, namespace: str | None) -> Catalogue:
        assert namespace is None or namespace
        if isinstance(self.first_look_ups, Exception):
            raise self.first_look_ups
        self.catalogue = self.first_look_ups or self.catalogue
        return self.catalogue

    def look_ups(self) -> tuple[LookUp, ...]:
        return self.look_ups_now

    def refused(self) -> tuple[RefusedRule, ...]:
        return self.refused_now

    def explain(self, question: Question, notes: Iterable[ExplanationStep] = ()) -> Explanation:
        self.explained.append((question, tuple(notes)))
        return self.explanation

    def objects(
        self, metric: Metric, namespace: str | None, which: ByName | BySelector, metric_selector: Selector
    ) -> ObjectsAnswer:
        answer = self._answer(AskedObjects(metric, namespace, which, metric_selector))
        assert isinstance(answer, ObjectsAnswer)
        return answer

    def external(self, metric: Metric, namespace: str, selector: Selector) -> ExternalAnswer:
        answer = self._answer(AskedExternal(metric, namespace, selector))
        assert isinstance(answer, ExternalAnswer)
        return answer

    def usage(self, kind: Resource, namespace: str | None, which: ByName | BySelector | NamedBySelector) -> UsageAnswer:
        answer = self._answer(AskedUsage(kind, namespace, which))
        assert isinstance(answer, UsageAnswer)
        return answer

    def _answer(self, asked: Asked) -> Answer:
        answer = self.answers[asked]
        if isinstance(answer, Exception):
            raise answer
        return answer


class OneChain:
    """Identifies `CHAIN` as alice, who is allowed everything, and forbids `REFUSED_CHAIN`; others are unknown."""

    def check(self, request: Request) -> Caller:
        return self.identify(Peer(request.peer_chain), request.headers)

    def identify(self, peer: Peer, headers: Iterable[tuple[str, str]]) -> Caller:
        assert all(len(line) == 2 for line in headers)
        if peer.chain == REFUSED_CHAIN:
            raise AccessForbiddenError("the certificate is not one of an allowed front proxy")
        if peer.chain != CHAIN:
            raise UnauthenticatedError("no verified client certificate")
        return Caller("alice", ("system:authenticated",), Via.FRONT_PROXY)

    def authorize_unrouted(self, caller: Caller, attributes: Attributes) -> None:
        assert caller.name == "alice"
        assert attributes.verb in {"get", "list"}


@dataclass
class Server:
    """A handler whose surroundings are made up; `get` sends requests as the verified front proxy."""

    readings: FakeReadings = field(default_factory=FakeReadings)
    empty_is_error: bool = False
    compatibility: Compatibility = OURS
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    health_asked: list[tuple[str, str]] = field(default_factory=list)
    ticks: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.services = ApiServices(
            authorizer=OneChain(),
            provider=self.readings,
            resolve=resolve,
            health=self._health,
            metrics=lambda: generate_latest(self.registry),
            telemetry=Telemetry(self.registry),
            version="1.2.3",
            explain_command="tidewatch-adapter explain",
            empty_is_error=self.empty_is_error,
            compatibility=self.compatibility,
            wall=lambda: NOW,
            timer=self._tick,
        )
        self.handler = Handler(self.services)
        self.application = wsgi_application(
            self.handler.handle, routes=self.handler.routes(), refuse=self.handler.refuse, is_frequent=is_frequent
        )

    def get(self, target: str, *headers: tuple[str, str]) -> Response:
        path, _, query = target.partition("?")
        return self.handler.handle(Request("GET", path, query, headers, CHAIN))

    def routed(self, method: str, target: str, chain: tuple[bytes, ...] = CHAIN) -> Response:
        """Send a request as a server does, through the routes."""
        status, headers, body = call(self.application, environ(method, target, **{"tidewatch.peer_chain": chain}))
        return Response(int(status[:3]), body, headers["Content-Type"], tuple(headers.items()))

    def sample(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(name, labels)

    def _health(self, path: str, query: str) -> tuple[int, str] | None:
        self.health_asked.append((path, query))
        if path.endswith("/none"):
            return None
        return (500, "[-]sync failed") if "fail" in query else (200, "ok")

    def _tick(self) -> float:
        self.ticks.append(0.25)
        return sum(self.ticks)


def answer(*values: tuple[str, float]) -> ObjectsAnswer:
    return ObjectsAnswer(values, AT)


def rows(*values: tuple[dict[str, str], float]) -> ExternalAnswer:
    return ExternalAnswer(tuple(Row(labels, value) for labels, value in values), AT)


def all_pods(metric: Metric, namespace: str = "shop") -> AskedObjects:
    return AskedObjects(metric, namespace, BySelector(EVERYTHING), EVERYTHING)


def resource_rules(*names: str) -> ResourceRules:
    """Return rules for these resources of pods and nodes, with a window of a minute and a half."""
    rules = [
        ResourceRule(
            f"resourceRules.{name}",
            name,
            "rules.yaml",
            1,
            (
                Metric(_rule(Api.RESOURCE), name, "", PODS, "pod", "namespace", "container"),
                Metric(_rule(Api.RESOURCE), name, "", NODES, "node", None),
            ),
        )
        for name in names
    ]
    return ResourceRules(tuple(rules), 90.0)
