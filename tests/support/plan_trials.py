"""Proven query plans with a real Prometheus: does the wider answer, filtered, hold what the exact query gives?

The tests of the query plans and `benchmarks.plan_proof` share this.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from adapter.foundation.objects.resources import Resource
from adapter.foundation.objects.selectors import EVERYTHING, parse_selector
from adapter.metrics.rulebook.model import Api, Metric, PlanKind, Rule
from adapter.metrics.rulebook.naming import make_naming
from adapter.metrics.rulebook.plans import fold_rows, plan_of, planned_query, select_rows
from adapter.metrics.rulebook.requests import Asked
from adapter.metrics.rulebook.resources import ResourceMapping
from adapter.metrics.rulebook.templates.matchers import RenderError
from adapter.metrics.rulebook.templates.template import parse_query_template
from tests.support.promql_generator import EXTERNAL_WORDS, NODE_WORDS, POD_WORDS, TemplateGenerator, Words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from random import Random

    from tests.support.plan_samples import AskedPrometheus

_PODS = Resource("", "v1", "pods", "pod", "Pod", namespaced=True)
_NODES = Resource("", "v1", "nodes", "node", "Node", namespaced=False)


@dataclass(frozen=True, slots=True)
class Field:
    """One kind of metric on which plans are tried."""

    words: Words
    metric: Callable[[str], Metric]
    requesters: tuple[Asked, ...]

    def templates(self, random: Random) -> Iterator[str]:
        """Yield random templates endlessly."""
        generator = TemplateGenerator(random, self.words)
        external = self.words is EXTERNAL_WORDS
        while True:
            yield generator.external_template() if external else generator.template()


def custom_metric(template: str, *, nodes: bool = False) -> Metric:
    """Return a metric of pods, or of nodes, with this `metricsQuery`."""
    rule = _rule(Api.CUSTOM, template)
    if nodes:
        return Metric(rule, "depth", "queue_depth", _NODES, "node", None)
    return Metric(rule, "depth", "queue_depth", _PODS, "pod", "namespace")


def container_metric(template: str) -> Metric:
    """Return a metric of the usage of pods' containers, with this `containerQuery`."""
    rule = _rule(Api.RESOURCE, template)
    return Metric(rule, "depth", "queue_depth", _PODS, "pod", "namespace", "container")


def external_metric(template: str, *, namespaced: bool = True) -> Metric:
    """Return an external metric with this `metricsQuery`."""
    rule = _rule(Api.EXTERNAL, template, namespaced=namespaced)
    return Metric(rule, "depth", "queue_depth", None, None, "namespace" if namespaced else None)


def _rule(api: Api, template: str, *, namespaced: bool = True) -> Rule:
    return Rule(
        id="rules[0]",
        api=api,
        file="rules.yaml",
        line=1,
        series_query="queue_depth",
        series_filters=(),
        naming=make_naming(),
        resources=ResourceMapping(),
        metrics_query=parse_query_template(template),
        namespaced=namespaced,
    )


_SELECTORS = (
    "",
    "",
    "",
    "container=app",
    "code!=500",
    "container in (app,proxy)",
    "pod notin (web-0)",
    "!code",
    "queue",
)
_EXTERNAL_SELECTORS = (
    *("", "queue=a", "queue in (a)", "queue in (a,b.c)", "queue notin (a,ab)", "queue!=a", "queue", "!queue"),
    *("container=app", "container=app,code!=500", "code in (200,500),!queue", "pod=web-0", "pod in (db.0)", "le=1"),
    *("namespace=shop", "job=batch", "job!=batch,container", "absent=x", "!absent"),
)


def _questions(
    namespaces: Iterable[str | None], names: Iterable[tuple[str, ...]], selectors: Iterable[str]
) -> tuple[Asked, ...]:
    parsed = [parse_selector(selector) if selector else EVERYTHING for selector in selectors]
    return tuple(Asked(namespace, some, selector) for namespace in namespaces for some in names for selector in parsed)


_POD_NAMES = (("web-0",), ("db.0",), *(("db.0", "web-0", "web-1"),) * 3, ("db.0", "nobody-0", "web-1"))
_NAMESPACES = (*("shop", "bank", "lab") * 2, "ghost")
PODS = Field(POD_WORDS, custom_metric, _questions(_NAMESPACES, _POD_NAMES, _SELECTORS))
CONTAINERS = Field(POD_WORDS, container_metric, _questions(_NAMESPACES, _POD_NAMES, ("",)))
NODES = Field(
    NODE_WORDS,
    lambda template: custom_metric(template, nodes=True),
    _questions((None,), (("n1",), ("n1", "n2", "n3"), ("n2", "n9")), ("", "", "mode=user", "mode!=idle", "instance")),
)
EXTERNAL = Field(EXTERNAL_WORDS, external_metric, _questions(_NAMESPACES, ((),), _EXTERNAL_SELECTORS))
CLUSTER_EXTERNAL = Field(
    EXTERNAL_WORDS,
    lambda template: external_metric(template, namespaced=False),
    _questions((None,), ((),), _EXTERNAL_SELECTORS),
)


Values: TypeAlias = "list[tuple[tuple[str, ...], float]]"
"""The labels, or the object's name, and the value of each result."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A wider answer that differs from the exact one; if the plan was proven, the proof has a hole."""

    template: str
    kind: PlanKind
    asked: Asked
    exact: Values | None
    """The exact answer; None if Prometheus refuses only the exact query."""
    wider: Values

    def __str__(self) -> str:
        asked = f"{self.asked.namespace} {self.asked.names} {self.asked.selector}"
        return f"{self.template}\n  {self.kind} for {asked}\n  exact {self.exact}\n  wider {self.wider}"


@dataclass(slots=True)
class Tally:
    """The results of many trials."""

    templates: int = 0
    wide: int = 0
    namespace: int = 0
    exact: int = 0
    compared: int = 0
    """Answers by proven plans that were compared with exact ones."""
    with_values: int = 0
    """The number of these answers that held any value."""
    narrowed: int = 0
    """Wider queries of proven plans that Prometheus refused, so that a narrower one would be sent."""
    needless: int = 0
    """Templates whose wide plan was refused although it would have given all tried requesters the exact answer."""
    differences: list[Difference] = field(default_factory=list)


def try_template(prometheus: AskedPrometheus, metric: Metric, requesters: Sequence[Asked], tally: Tally) -> None:
    """Compare each proven plan of a metric with the exact query, for these requesters."""
    tally.templates += 1
    keys = [_keys(metric, asked) for asked in requesters]
    plans = {each: plan_of(metric, each) for each in set(keys)}
    kind = plans[keys[0]].kind
    tally.wide += kind is PlanKind.WIDE
    tally.namespace += kind is PlanKind.NAMESPACE
    tally.exact += kind is PlanKind.EXACT
    for asked, own in zip(requesters, keys, strict=True):
        for proven in plans[own].proven - {PlanKind.EXACT}:
            _compare(prometheus, metric, asked, proven, tally)


def try_refused(prometheus: AskedPrometheus, metric: Metric, requesters: Sequence[Asked], tally: Tally) -> None:
    """Find out whether a refused wide plan would have been right for all these requesters, with at least one value."""
    refused = [asked for asked in requesters if PlanKind.WIDE not in plan_of(metric, _keys(metric, asked)).proven]
    if not refused:
        return
    any_values = False
    for asked in refused:
        try:
            difference, exact = difference_of(prometheus, metric, asked, PlanKind.WIDE)
        except (RenderError, WiderRefusedError):
            return
        if difference is not None:
            return
        any_values = any_values or bool(exact)
    tally.needless += any_values


class WiderRefusedError(Exception):
    """Prometheus refuses the wider query."""


def difference_of(
    prometheus: AskedPrometheus, metric: Metric, asked: Asked, kind: PlanKind
) -> tuple[Difference | None, Values | None]:
    """Return how the wider answer differs, if it does, and the exact answer. Raises WiderRefusedError."""
    wider = answer(prometheus, metric, asked, kind)
    if wider is None:
        raise WiderRefusedError
    exact = answer(prometheus, metric, asked, PlanKind.EXACT)
    same = exact is not None and same_values(exact, wider)
    return None if same else Difference(metric.rule.metrics_query.text, kind, asked, exact, wider), exact


def _keys(metric: Metric, asked: Asked) -> frozenset[str]:
    """Return the labels of the selector that the plan depends on."""
    return asked.selector.keys if metric.resource is None else frozenset()


def _compare(prometheus: AskedPrometheus, metric: Metric, asked: Asked, kind: PlanKind, tally: Tally) -> None:
    try:
        difference, exact = difference_of(prometheus, metric, asked, kind)
    except WiderRefusedError:
        tally.narrowed += 1
        return
    tally.compared += 1
    tally.with_values += bool(exact)
    if difference is not None:
        tally.differences.append(difference)


def answer(prometheus: AskedPrometheus, metric: Metric, asked: Asked, kind: PlanKind) -> Values | None:
    """Return what the requester gets by this plan: values by object or by labels; None if Prometheus refuses."""
    query = planned_query(metric, asked, kind)
    rows = prometheus.rows(query.text)
    if rows is None:
        return None
    if metric.object_label is not None:
        selected = select_rows(rows, query.namespace_label, asked.namespace, EVERYTHING)
        told_apart = [label for label in (metric.object_label, metric.container_label) if label is not None]
        named = ((tuple(row.labels.get(label, "") for label in told_apart), row.value) for row in selected)
        return [(place, value) for place, value in named if place[0] in asked.names]
    if kind is not PlanKind.EXACT:
        rows = select_rows(rows, query.namespace_label, asked.namespace, asked.selector)
        if query.fold is not None:
            rows = fold_rows(query.fold, rows)
    return [(tuple(f"{label}={value}" for label, value in sorted(row.labels.items())), row.value) for row in rows]


def same_values(one: Values, other: Values) -> bool:
    """Return whether two answers are equal as multisets, to nine digits; NaN equals NaN."""
    pairs = zip(sorted(one, key=_order), sorted(other, key=_order), strict=False)
    return len(one) == len(other) and all(a[0] == b[0] and _close(a[1], b[1]) for a, b in pairs)


def _order(value: tuple[tuple[str, ...], float]) -> tuple[tuple[str, ...], bool, float]:
    labels, number = value
    return labels, math.isnan(number), 0.0 if math.isnan(number) else number


def _close(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9) or (math.isnan(one) and math.isnan(other))
