"""Turns texts, as flags and parameters give them, into a question that can be explained (pure)."""

from __future__ import annotations

from dataclasses import dataclass

from adapter.foundation.objects.names import is_namespace_name, is_object_name
from adapter.foundation.objects.resources import ResolveResource, Resource, UnknownResourceError
from adapter.foundation.objects.selectors import EVERYTHING, Selector, SelectorError, parse_selector
from adapter.metrics.readings.explain.explanation import Question
from adapter.metrics.rulebook.model import Api

APIS = tuple(api.value for api in Api)
USAGE = frozenset({"pods", "nodes"})
"""Kinds of objects whose usage of CPU and memory is served."""


class QuestionError(ValueError):
    """A text of the question is invalid; `name` says which one, and the message says what to write instead."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name
        self.message = message


@dataclass(frozen=True, slots=True)
class Texts:
    """A question as it was written; texts that were not given are empty."""

    metric: str
    """The metric, as `NAME` or `KIND/NAME`."""
    namespace: str = ""
    object: str = ""
    """The object, as `KIND/NAME`."""
    selector: str = ""
    api: str = ""


def question_of(texts: Texts, resolve: ResolveResource) -> Question:
    """Return the question of the texts; raises QuestionError."""
    kind, _, name = texts.metric.rpartition("/")
    object_kind, slash, object_name = texts.object.partition("/")
    if not name:
        raise QuestionError("metric", "it names no metric: write NAME or KIND/NAME, as in pods/http_requests")
    if texts.object and not (object_kind and slash and is_object_name(object_name)):
        raise QuestionError("object", f"{texts.object!r}: write KIND/NAME, as in pods/web-0")
    if texts.api and texts.api not in APIS:
        raise QuestionError("api", f"{texts.api!r}: write {', '.join(APIS[:-1])} or {APIS[-1]}")
    if (kind or object_kind) and texts.api == Api.EXTERNAL:
        raise QuestionError("metric", f"external metrics describe no objects: write {name} alone")
    if texts.namespace and texts.namespace != "*" and not is_namespace_name(texts.namespace):
        raise QuestionError(
            "namespace", f"{texts.namespace!r} cannot be the name of a namespace: write one such as shop"
        )
    resource = _resource("metric", kind, resolve) or _resource("object", object_kind, resolve)
    if kind and object_kind and _resource("object", object_kind, resolve) != resource:
        message = f"{texts.metric} describes {kind}, and the object is one of {object_kind}: give one kind"
        raise QuestionError("object", message)
    try:
        selector = parse_selector(texts.selector)
    except SelectorError as error:
        raise QuestionError("selector", str(error)) from error
    return Question(
        name=name,
        api=Api(texts.api) if texts.api else None,
        resource=_usage_kind(name, resource, selector, resolve) if texts.api == Api.RESOURCE else resource,
        namespace=texts.namespace or None,
        object=object_name or None,
        selector=selector,
    )


def _usage_kind(name: str, resource: Resource | None, selector: Selector, resolve: ResolveResource) -> Resource | None:
    """Return the kind whose usage is asked about: pods if none is named."""
    kind = resource or _resource("metric", "pods", resolve)
    if kind is None or kind.qualified not in USAGE:
        raise QuestionError("metric", f"the resource API serves pods and nodes only: write pods/{name}")
    if selector != EVERYTHING:
        raise QuestionError("selector", "the resource API has no selector of metrics: leave it out")
    return kind


def _resource(where: str, kind: str, resolve: ResolveResource) -> Resource | None:
    """Return the kind that `pods` or `deployments.apps` names; None for no kind."""
    plural, _, group = kind.partition(".")
    try:
        return resolve(group, plural) if plural else None
    except UnknownResourceError as error:
        raise QuestionError(where, str(error)) from error
