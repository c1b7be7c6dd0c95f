"""The query for one request equals, character by character, the query that prometheus-adapter sends."""

from __future__ import annotations

import re
from functools import cache, partial
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.documents.load import load_documents
from adapter.foundation.objects.resources import BUILT_IN, Resource, find_resource
from adapter.foundation.objects.selectors import EVERYTHING, Selector, parse_selector
from adapter.metrics.readings.catalogue.catalogue import metric_in_namespace
from adapter.metrics.rulebook.model import Api
from adapter.metrics.rulebook.parsing.parse import parse_rulebook
from adapter.metrics.rulebook.query_rendering import exact_query
from adapter.metrics.rulebook.requests import Asked
from tests.compatibility.cluster import OBJECTS
from tests.compatibility.form import Custom, External
from tests.compatibility.harnesses import HARNESSES
from tests.support.metrics import merge_metrics, metrics_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.metrics.rulebook.model import Metric
    from tests.compatibility.form import Case

TOPICS = Resource("messaging.example.com", "v1beta2", "kafkatopics", "kafkatopic", "KafkaTopic", namespaced=True)
ASKS = [
    pytest.param(case, ask, id=f"{case.name}-{ask.target}")
    for cases in HARNESSES.values()
    for case in cases
    for ask in case.asks
    if isinstance(ask, Custom | External) and ask.query
]


@pytest.mark.parametrize(("case", "ask"), ASKS)
def test_the_query_for_one_request_is_that_of_prometheus_adapter(case: Case, ask: Custom | External) -> None:
    metric, asked = _custom(case, ask) if isinstance(ask, Custom) else _external(case, ask)
    assert exact_query(metric, asked) == ask.query


def _custom(case: Case, ask: Custom) -> tuple[Metric, Asked]:
    namespace, resource, name, metric = _parts_of_path(ask.path)
    found = _metrics(case)[f"{resource}/{metric}"]
    assert found.resource is not None
    kind = found.resource.kind
    if namespace is not None and not found.resource.namespaced:
        found = metric_in_namespace(found) or found
    names = _names(kind, namespace, ask.select) if name == "*" else (name,)
    return found, Asked(namespace, names, _selector(ask.metrics))


def _external(case: Case, ask: External) -> tuple[Metric, Asked]:
    namespace, metric = ask.path.split("/")
    return _metrics(case)[metric], Asked(namespace, (), _selector(ask.select))


def _parts_of_path(path: str) -> tuple[str | None, str, str, str]:
    """Return the namespace, the kind and the name of the object, and the name of the metric."""
    segments = path.split("/")
    if segments[0] != "namespaces":
        resource, name, metric = segments
        return None, resource, name, metric
    if segments[2] == "metrics":
        return None, "namespaces", segments[1], segments[3]
    return segments[1], segments[2], segments[3], segments[4]


def _names(kind: str, namespace: str | None, select: str) -> tuple[str, ...]:
    """Return the selected objects, in the order in which the API server lists them."""
    found = [item["metadata"] for item in OBJECTS["objects.json"]["items"] if item["kind"] == kind]
    selector = _selector(select)
    return tuple(
        str(metadata["name"])
        for metadata in found
        if metadata.get("namespace") == namespace and selector.matches(metadata["labels"])
    )


def _selector(text: str) -> Selector:
    return parse_selector(text) if text else EVERYTHING


@cache
def _metrics(case: Case) -> Mapping[str, Metric]:
    resolve = partial(find_resource, (*BUILT_IN, TOPICS))
    rulebook = parse_rulebook([load_documents(case.rules, case.name)], resolve)
    assert not rulebook.refused
    made = [
        (rule.api, metrics_of(rule, _selected_label_sets(case, rule.series_query), resolve)) for rule in rulebook.rules
    ]
    merged = [
        *merge_metrics(metric for api, metrics in made if api is Api.CUSTOM for metric in metrics),
        *merge_metrics(metric for api, metrics in made if api is Api.EXTERNAL for metric in metrics),
    ]
    return {metric.qualified: metric for metric in merged}


def _selected_label_sets(case: Case, series_query: str) -> list[dict[str, str]]:
    """Return the label sets of the case's series that a rule selects: by name, if its query states one."""
    series = [_labels(line) for line in case.series.splitlines()]
    name = re.match(r"[a-zA-Z_:][\w:]*", series_query)
    pattern = re.search(r'__name__=~"([^"]*)"', series_query)
    return [
        labels
        for labels in series
        if (name is None or labels["__name__"] == name[0])
        and (pattern is None or re.search(pattern[1], labels["__name__"]))
        and ("__name__!~" not in series_query or not labels["__name__"].startswith("container_"))
    ]


def _labels(line: str) -> dict[str, str]:
    name, _, rest = line.rpartition(" ")[0].partition("{")
    return {"__name__": name, **dict(re.findall(r'(\w+)="([^"]*)"', rest))}
