"""`/debug/explain`: why a metric has a value or has none, from the process that serves it.

A caller needs the right to read a metric to have it explained. kube-apiserver never passes this path on, so requests
that arrive through a front proxy have not been authorized for it. Each caller is therefore reviewed here, for the path
by which the API would serve the metric.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import quote

from adapter.foundation.objects.percent import EncodingError, percent_decode
from adapter.foundation.objects.resources import Resource, UnknownResourceError
from adapter.foundation.time.thread_limit import ThreadLimit, ThreadLimitError
from adapter.foundation.web.http import Request, Response
from adapter.metrics.apis.request_log import RequestLog, steps_of
from adapter.metrics.apis.routing import CUSTOM, EXTERNAL, RESOURCE, VERSIONS
from adapter.metrics.apis.status import ApiError
from adapter.metrics.identity.attributes import attributes_of
from adapter.metrics.identity.callers import Caller, DeniedError, Peer
from adapter.metrics.readings.errors import ReadingError
from adapter.metrics.readings.explain.questions import QuestionError, Texts, question_of
from adapter.metrics.readings.explain.rules import unnamed_usage
from adapter.metrics.readings.explain.served_memory import serves
from adapter.metrics.rulebook.model import Api

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from adapter.metrics.apis.hints.hints import Hints
    from adapter.metrics.apis.services import ApiServices
    from adapter.metrics.readings.explain.explanation import ExplanationStep, Question

MOST_AT_ONCE = 1
"""Limit on concurrent explanations: for seconds, each occupies a thread that autoscalers need."""
PARAMETERS = ("metric", "namespace", "object", "selector", "api")
ANY = "*"
_PASSED_OVER = frozenset({"pretty"})


class Explanations:
    """Answers questions about metrics; safe to call from many threads."""

    def __init__(self, services: ApiServices, hints: Hints, request_log: RequestLog) -> None:
        self._authorizer = services.authorizer
        self._provider = services.provider
        self._resolve = services.resolve
        self._wall = services.wall
        self._hints = hints
        self._request_log = request_log
        self._limit = ThreadLimit(MOST_AT_ONCE, _busy)
        self._waiting = ThreadLimit(MOST_AT_ONCE)

    def get(self, request: Request) -> Response:
        """Return the `Explanation` document. Raises IdentityError and ApiError."""
        caller = self._authorizer.identify(Peer(request.peer_chain), request.headers)
        if request.method != "GET":
            raise ApiError(405, f"{request.method} is not allowed here: use GET")
        asked = _texts(request.query)
        # Which metric is explained, and so which right is required, depends on the metrics that exist. Callers without
        # any right wait here too, so they must not take the places of autoscalers.
        with suppress(ReadingError, ThreadLimitError), self._waiting.entered():
            self._provider.complete_catalogue(asked.namespace or None)
        try:
            asked_about = question_of(asked, self._resolve)
            apis, public = self._apis(asked_about)
            questions = {api: self._of(asked_about, api) for api in apis}
        except QuestionError as e:
            raise ApiError(400, f"the parameter {e.name}: {e.message}") from e
        question = self._first_permitted(caller, questions, public)
        with self._limit.entered():
            found = self._provider.explain(question, self._notes(question))
        return Response(200, found.as_json() + b"\n")

    def _apis(self, question: Question) -> tuple[Sequence[Api], Api]:
        """Return the APIs that may be meant, the likeliest first, and the one that would be first without objects."""
        if question.api is not None:
            return (question.api,), question.api
        own, likely = self._provider.catalogue_of(question.namespace), _likely_apis(question)
        of_files = tuple(self._serving_apis(question))
        of_objects = (api for api in likely if serves(own, replace(question, api=api)))
        return tuple(dict.fromkeys((*of_files, *of_objects, *(() if of_files else likely)))), (of_files or likely)[0]

    def _serving_apis(self, question: Question) -> Iterator[Api]:
        """Yield the APIs in which the rule files serve the metric; the one for CPU and memory comes last."""
        catalogue, name, resource = self._provider.catalogue, question.name, question.resource
        if resource is None:
            if self._hints.likeliest(name) is not None:
                yield Api.CUSTOM
            if catalogue.find_external(name) is not None:
                yield Api.EXTERNAL
        elif catalogue.find_custom(resource.qualified, resource.namespaced, name):
            yield Api.CUSTOM
        if unnamed_usage(catalogue.resource, question):
            yield Api.RESOURCE

    def _of(self, question: Question, api: Api) -> Question:
        if api is Api.EXTERNAL:
            return _with_namespace(replace(question, api=api))
        if api is Api.RESOURCE:
            return _with_namespace(replace(question, api=api, resource=question.resource or self._pods()))
        likeliest = self._hints.likeliest(question.name)
        resource = question.resource or (likeliest.resource if likeliest else None) or self._pods()
        return _with_namespace(replace(question, api=api, resource=resource))

    def _pods(self) -> Resource:
        try:
            return self._resolve("", "pods")
        except UnknownResourceError as e:
            raise QuestionError("metric", str(e)) from e

    def _first_permitted(self, caller: Caller, questions: Mapping[Api, Question], public: Api) -> Question:
        """Return the first question that the caller is allowed to have answered. Raises IdentityError.

        A caller who may not read a metric of an object must not learn that it exists. Such a caller gets the same
        answer, or the same refusal, as if no object served it.
        """
        refusals: dict[Api, DeniedError] = {}
        for api, question in questions.items():
            try:
                self._authorizer.authorize_unrouted(caller, attributes_of("GET", path_of(question)))
            except DeniedError as e:
                refusals[api] = e
            else:
                return question
        raise refusals[public]

    def _notes(self, question: Question) -> list[ExplanationStep]:
        group = {Api.EXTERNAL: EXTERNAL, Api.RESOURCE: RESOURCE}.get(question.api or Api.CUSTOM, CUSTOM)
        namespace = question.namespace
        if group == EXTERNAL and namespace is None:
            namespace = ANY
        elif question.resource is not None and question.resource.qualified == "namespaces":
            namespace = question.object or ANY
        metric = "" if group == RESOURCE else question.name
        requesters = self._request_log.of(group, namespace, metric, lambda kind: self._is_kind(kind, question.resource))
        return list(steps_of(requesters, self._wall()))

    def _is_kind(self, kind: str, resource: Resource | None) -> bool:
        if resource is None or kind in {resource.qualified, resource.singular}:
            return True
        name, _, group = kind.partition(".")
        try:
            return self._resolve(group, name) == resource
        except UnknownResourceError:
            return False


def _likely_apis(question: Question) -> Sequence[Api]:
    """Return the APIs in which a metric that is not known may be meant: one of a kind of objects is no external one."""
    return (Api.CUSTOM,) if question.resource else (Api.CUSTOM, Api.EXTERNAL)


def path_of(question: Question) -> str:
    """Return the path by which the API serves the metric, for one object or all; access to it must be authorized."""
    named = question.object or ANY
    resource = question.resource
    if resource is None:
        return _path(EXTERNAL, "namespaces", question.namespace or ANY, question.name)
    if question.api is Api.RESOURCE:
        return _path(RESOURCE, *_inside(question), resource.plural, *([question.object] if question.object else []))
    if resource.qualified == "namespaces":
        return _path(CUSTOM, "namespaces", named, "metrics", question.name)
    return _path(CUSTOM, *_inside(question), resource.qualified, named, question.name)


def _path(group: str, *segments: str) -> str:
    return "/".join(("/apis", group, VERSIONS[group][0], *(quote(segment, safe="") for segment in segments)))


def _inside(question: Question) -> tuple[str, ...]:
    return () if question.namespace is None else ("namespaces", question.namespace)


def _with_namespace(question: Question) -> Question:
    """Return the question with the namespace that the metric needs. Raises QuestionError if none is named."""
    resource, namespace = question.resource, question.namespace
    if resource is not None and not resource.namespaced:
        return replace(question.of_kind(resource), namespace=None)
    if namespace is None:
        raise QuestionError("namespace", "it is missing: write that of the objects, or of the autoscaler")
    if namespace != ANY:
        return question
    if resource is not None:
        raise QuestionError("namespace", f"{resource.qualified} are in namespaces: name one instead of *")
    return replace(question, namespace=None)


def _busy() -> ApiError:
    return ApiError(429, "another explanation is in progress, and only one is made at a time: try again in a moment")


def _texts(query: str) -> Texts:
    """Return the parameters. Raises ApiError 400 for one that is unknown or repeated, or that cannot be decoded."""
    found: dict[str, str] = {}
    for pair in filter(None, query.split("&")):
        raw, _, value = pair.partition("=")
        try:
            name, text = percent_decode(raw.replace("+", " ")), percent_decode(value.replace("+", " "))
        except EncodingError as e:
            raise ApiError(400, f"a parameter {e}") from e
        if name in found:
            raise ApiError(400, f"the parameter {name} is given twice")
        if name not in PARAMETERS and name not in _PASSED_OVER:
            raise ApiError(400, f"unknown parameter {name!r}: write {', '.join(PARAMETERS[:-1])} or {PARAMETERS[-1]}")
        found[name] = text
    return _texts_of(found)


def _texts_of(found: Mapping[str, str]) -> Texts:
    if not found.get("metric"):
        raise ApiError(
            400, "the parameter metric is missing: write metric=NAME or metric=KIND/NAME, as in pods/http_rps"
        )
    return Texts(**{name: found.get(name, "") for name in PARAMETERS})
