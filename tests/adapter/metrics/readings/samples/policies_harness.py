"""Rules with policies, a scripted Prometheus for them, and short ways to ask."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.foundation.objects.selectors import EVERYTHING, parse_selector
from adapter.foundation.sources.prometheus.errors import PrometheusError, PrometheusUnreachableError
from adapter.metrics.readings.answers import ByName, BySelector, ExternalAnswer, ObjectsAnswer
from tests.support.readings import START, Harness, Reply, ScriptedPrometheus, make_harness, reply

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.metrics.readings.readings_settings import ReadingSettings


WEB = BySelector(parse_selector("app=web"))
SECOND = START - START % 1
DOWN = PrometheusUnreachableError("q", "http://prometheus:9090: connection refused")


def rules(*policy: str, name: str = "rps") -> str:
    keys = "".join(f"  {line}\n" for line in policy)
    return f"""
rules:
- seriesQuery: '{name}{{namespace!="",pod!=""}}'
  resources: {{overrides: {{namespace: {{resource: namespace}}, pod: {{resource: pod}}}}}}
  metricsQuery: 'sum by (<<.GroupBy>>) (<<.Series>>{{<<.LabelMatchers>>}})'
{keys}- seriesQuery: 'picked{{namespace!="",pod!=""}}'
  resources: {{overrides: {{namespace: {{resource: namespace}}, pod: {{resource: pod}}}}}}
  metricsQuery: 'topk(9, <<.Series>>{{<<.LabelMatchers>>}})'
{keys}externalRules:
- seriesQuery: 'queue{{namespace!=""}}'
  resources: {{overrides: {{namespace: {{resource: namespace}}}}}}
  metricsQuery: '<<.Series>>{{<<.LabelMatchers>>}}'
{keys}"""


def harness_of(prometheus: ScriptedPrometheus, *policy: str, settings: ReadingSettings | None = None) -> Harness:
    return make_harness(prometheus, rules=rules(*policy), settings=settings)


def ask(harness: Harness, which: ByName | BySelector = WEB, name: str = "rps") -> ObjectsAnswer:
    return harness.readings.objects(harness.pods(name), "shop", which, EVERYTHING)


def ask_external(harness: Harness, selector: str = "") -> ExternalAnswer:
    return harness.readings.external(
        harness.external("queue"), "shop", parse_selector(selector) if selector else EVERYTHING
    )


def scripted(answer: Reply | PrometheusError, times: Reply | PrometheusError = reply()) -> ScriptedPrometheus:  # noqa: B008 - immutable
    """Answer a rule's query with `answer`, and the query for its samples' times with `times`."""
    return ScriptedPrometheus(answer=lambda query: times if "timestamp(" in query else answer)


def pod(name: str, value: str, **labels: str) -> tuple[Mapping[str, str], str]:
    return {"namespace": "shop", "pod": name, **labels}, value
