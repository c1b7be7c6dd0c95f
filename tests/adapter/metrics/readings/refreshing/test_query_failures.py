"""A query that can have no values is a fault of its rule, not of Prometheus, so it harms no other rule."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.objects.selectors import EVERYTHING
from adapter.foundation.sources.prometheus.answers.answer_elements import AnswerLimits
from adapter.foundation.sources.prometheus.answers.decoding import read_instant
from adapter.foundation.sources.prometheus.errors import PrometheusError
from adapter.foundation.time.pace import UNPACED
from adapter.metrics.readings.errors import QueryRefusedByPrometheusError
from adapter.metrics.rulebook.requests import Row
from tests.support.readings import Harness, Reply, ScriptedPrometheus, make_harness, reply

if TYPE_CHECKING:
    from collections.abc import Callable

RULES = """
externalRules:
- seriesQuery: 'depth{namespace!=""}'
  resources: {overrides: {namespace: {resource: namespace}}}
  metricsQuery: 'sum(<<.Series>>{<<.LabelMatchers>>})'
  refresh: 30s
  onNoData: 0
- seriesQuery: 'jobs{namespace!=""}'
  resources: {overrides: {namespace: {resource: namespace}}}
  metricsQuery: '<<.Series>>{<<.LabelMatchers>>}[5m]'
"""


def answers_for(kind: str) -> Callable[[str], Reply | PrometheusError]:
    """Return the answers of a Prometheus in which there is no `depth`, and the query for `jobs` gives that type."""

    def answer(query: str) -> Reply | PrometheusError:
        if "jobs" not in query:
            return reply()
        body = bytearray(json.dumps({"status": "success", "data": {"resultType": kind, "result": []}}).encode())
        with pytest.raises(PrometheusError) as error:
            read_instant(query, body, evaluated_at=1.0, limits=AnswerLimits(), pace=UNPACED)
        return error.value

    return answer


def value_of(harness: Harness, name: str) -> tuple[Row, ...]:
    return harness.readings.external(harness.external(name), "shop", EVERYTHING).rows


@pytest.mark.parametrize("kind", ["matrix", "string"])
def test_a_query_of_the_wrong_type_fails_only_its_rule(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    harness = make_harness(ScriptedPrometheus(answers_for(kind)), rules=RULES)
    value_of(harness, "depth")
    harness.pass_time(600)
    with caplog.at_level(logging.INFO):
        for _ in range(40):
            assert value_of(harness, "depth") == (Row({}, 0.0),)
            with pytest.raises(QueryRefusedByPrometheusError, match=f"the answer is a {kind}: only expressions"):
                value_of(harness, "jobs")
            harness.pass_time(15)
    assert harness.counter("tidewatch_adapter_rules", state="failing") == 1
    messages = [record.getMessage() for record in caplog.records]
    assert not [line for line in messages if "queries to Prometheus" in line or "answers again" in line]
    assert len([line for line in messages if line.startswith("externalRules[1] (rules.yaml:8) fails (a query)")]) == 1
