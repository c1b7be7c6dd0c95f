"""Metrics of cluster-scoped objects, requested within a namespace: what the series of that namespace show."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adapter.foundation.objects.selectors import EVERYTHING
from adapter.metrics.readings.answers import ByName
from adapter.metrics.readings.errors import NoSampleError
from tests.support.readings import Harness, MadeUpObjects, Reply, ScriptedPrometheus, make_harness, reply

if TYPE_CHECKING:
    from adapter.metrics.rulebook.model import Metric

RULES = """
rules:
- seriesQuery: 'load'
  resources: {overrides: {namespace: {resource: namespace}, class: {group: storage.k8s.io, resource: storageclass}}}
  metricsQuery: 'sum by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})'
- seriesQuery: 'queued'
  resources: {overrides: {namespace: {resource: namespace}, class: {group: storage.k8s.io, resource: storageclass}}}
  metricsQuery: 'sum by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})'
  onNoData: 0
"""
LOAD = {"shop": "30", "blog": "7"}


def answered(query: str) -> Reply:
    """Answer with each namespace's share of the class `fast`, for the namespaces that the query allows."""
    if "queued" in query:
        return reply()
    if "namespace=" not in query and "namespace!=" not in query:
        return reply(({"class": "fast"}, "37"))
    asked = [namespace for namespace in LOAD if f'namespace="{namespace}"' in query or 'namespace!=""' in query]
    return reply(*(({"class": "fast", "namespace": namespace}, LOAD[namespace]) for namespace in asked))


def harness() -> Harness:
    return make_harness(ScriptedPrometheus(answered), objects=MadeUpObjects({None: ["fast"]}), rules=RULES)


def metric_of(harness: Harness, name: str, *, namespaced: bool) -> Metric:
    found = harness.readings.catalogue.find_custom("storageclasses.storage.k8s.io", namespaced=namespaced, name=name)
    assert found is not None
    return found


def test_each_namespace_gets_the_value_of_its_own_series() -> None:
    serving = harness()
    within, whole = metric_of(serving, "load", namespaced=True), metric_of(serving, "load", namespaced=False)
    for _ in range(2):
        for namespace, value in LOAD.items():
            answer = serving.readings.objects(within, namespace, ByName("fast"), EVERYTHING)
            assert answer.values == (("fast", float(value)),)
        assert serving.readings.objects(whole, None, ByName("fast"), EVERYTHING).values == (("fast", 37.0),)
        serving.pass_time(30)


@pytest.mark.parametrize("name", ["fast", "slow"])
def test_a_namespace_without_series_gets_no_value_of_another(name: str) -> None:
    serving = harness()
    with pytest.raises(NoSampleError):
        serving.readings.objects(metric_of(serving, "load", namespaced=True), "empty", ByName(name), EVERYTHING)


def test_an_existing_object_without_data_gets_the_stand_in() -> None:
    serving = harness()
    within = metric_of(serving, "queued", namespaced=True)
    serving.pass_time(1)
    assert serving.readings.objects(within, "shop", ByName("fast"), EVERYTHING).values == (("fast", 0.0),)
    with pytest.raises(NoSampleError, match="there is no object 'slow'"):
        serving.readings.objects(within, "shop", ByName("slow"), EVERYTHING)
