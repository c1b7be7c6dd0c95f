"""A proven plan gives every request the exact query's verdict: values, the value for no data, or the same error."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, TypeAlias

import pytest

from adapter.foundation.objects.selectors import EVERYTHING
from adapter.metrics.readings.answers import BySelector
from adapter.metrics.readings.asking.queries import Query, QueryKey, planned_with_times
from adapter.metrics.readings.errors import NoSampleError, ReadingError
from adapter.metrics.readings.failure import Failure
from adapter.metrics.readings.readings_settings import ReadingSettings
from adapter.metrics.readings.samples.no_data_and_sample_age import (
    STANDS_IN,
    asking_of,
    external_answer,
    objects_answer,
)
from adapter.metrics.readings.samples.object_reading import ObjectReading
from adapter.metrics.rulebook.model import OnNoData, PlanKind, Policy
from adapter.metrics.rulebook.plans import plan_of
from tests.support.plan_trials import EXTERNAL, PODS
from tests.support.readings import RealAnswers, make_harness

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.metrics.readings.refreshing.refreshers import Refreshers
    from adapter.metrics.rulebook.model import Metric
    from adapter.metrics.rulebook.requests import Asked
    from tests.support.plan_samples import AskedPrometheus
    from tests.support.plan_trials import Field

Verdict: TypeAlias = "tuple[str, list[tuple[object, float]]]"

_STAND_IN = 987654.0
_OF_ANOTHER_NAMESPACE = (
    'label_replace({}, "namespace", "bank", "", "")',
    'label_replace({}, "namespace", "$1", "container", "(.*)")',
    "{} or queue_depth",
)
"""Expressions that return rows of other namespaces."""


def _rows(prometheus: AskedPrometheus, query: str) -> list[tuple[Mapping[str, str], str]] | None:
    rows = prometheus.rows(query)
    return None if rows is None else [(row.labels, str(row.value)) for row in rows]


def _verdict(refresher: Refreshers, metric: Metric, asked: Asked, kind: PlanKind) -> Verdict | Failure:
    planned, times = planned_with_times(metric, asked, kind)
    namespace = asked.namespace if kind is not PlanKind.WIDE else None
    query = Query(QueryKey(planned, namespace, metric.namespace_label, None, None, times), metric, asked.selector, 0.0)
    reading = refresher.ask(query)
    if isinstance(reading, Failure):
        return reading
    asking = asking_of(metric, 0.0, ReadingSettings(look_back_seconds=0.0))
    pairs: list[tuple[object, float]]
    try:
        if isinstance(reading, ObjectReading):
            which = BySelector(EVERYTHING)
            found = objects_answer(asking, reading, asked.namespace, which, asked.names, lambda _name: True)
            pairs, warnings = list(found.values), found.warnings
        else:
            answer = external_answer(asking, reading, asked.namespace, asked.selector, lambda _dropped: None)
            pairs, warnings = [(tuple(sorted(row.labels.items())), row.value) for row in answer.rows], answer.warnings
    except NoSampleError:
        # An empty list and an error with the reason for it count as one verdict.
        return "values", []
    except ReadingError as error:
        return type(error).__name__, []
    stood_in = STANDS_IN in warnings
    left_out = sum("left out" in warning for warning in warnings)
    return f"values, {stood_in=}, {left_out=}" if pairs else "values", sorted(pairs, key=str)


def _same(one: Verdict, other: Verdict) -> bool:
    pairs = zip(one[1], other[1], strict=False)
    close = all(a[0] == b[0] and math.isclose(a[1], b[1], rel_tol=1e-9, abs_tol=1e-9) for a, b in pairs)
    return one[0] == other[0] and len(one[1]) == len(other[1]) and close


def _metric(field: Field, random: Random, template: str) -> Metric:
    if random.random() < 0.3:
        template = random.choice(_OF_ANOTHER_NAMESPACE).format(template)
    metric = field.metric(template)
    policy = Policy(OnNoData.VALUE, _STAND_IN)
    return replace(metric, rule=replace(metric.rule, policy=policy))


@pytest.mark.parametrize("field", [pytest.param(PODS, id="pods"), pytest.param(EXTERNAL, id="external")])
def test_proven_plans_of_random_queries_give_the_exact_verdict(prometheus: AskedPrometheus, field: Field) -> None:
    random, seen = Random(11), Counter[str]()
    refresher = make_harness(RealAnswers(lambda query, _at: _rows(prometheus, query))).readings._loop._refreshers
    for template, _ in zip(field.templates(random), range(70), strict=False):
        metric = _metric(field, random, template)
        for asked in random.sample(field.requesters, 4):
            exact = _verdict(refresher, metric, asked, PlanKind.EXACT)
            if not isinstance(exact, Failure):
                seen[exact[0]] += 1
            keys = asked.selector.keys if metric.resource is None else frozenset()
            for kind in plan_of(metric, keys).proven - {PlanKind.EXACT}:
                wider = _verdict(refresher, metric, asked, kind)
                if isinstance(wider, Failure):
                    continue
                assert not isinstance(exact, Failure)
                assert _same(exact, wider), (metric.rule.metrics_query.text, kind, asked, exact, wider)
                seen[f"{kind}: {exact[0]}"] += 1
    # A generator that meets no error, or no plan, would prove nothing.
    assert {"ForeignNamespaceError", "PartialAnswerError" if field is EXTERNAL else "AmbiguousSamplesError"} <= set(
        seen
    )
    assert any(kind.startswith("wide: values, stood_in=True") for kind in seen)
    assert sum(number for kind, number in seen.items() if kind.startswith("namespace")) > 50
