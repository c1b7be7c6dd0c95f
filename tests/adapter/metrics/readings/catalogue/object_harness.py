"""Readings with MetricRule objects, built on stand-ins."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from adapter.foundation.time.pace import UNPACED, Pace
from adapter.metrics.readings.readings_settings import ReadingSettings
from adapter.metrics.rulebook.objects.rule_object_verdict import Verdict, verdict_of
from tests.support.readings import FakeClock, Harness, ScriptedPrometheus, Threads, make_harness, reply
from tests.support.rule_objects import QUEUE, spec_with

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.metrics.rulebook.objects.rule_object import RuleObject

FILES: Final = """
externalRules:
- seriesQuery: 'queue_depth{namespace!=""}'
  resources: {overrides: {namespace: {resource: namespace}}}
  metricsQuery: 'sum(<<.Series>>{<<.LabelMatchers>>})'
"""
MATCHED: Final = spec_with(QUEUE, seriesQuery='{__name__=~"^jobs_.+"}')
"""A rule whose metrics are not known before their series exist."""


def matching(selector: str) -> list[Mapping[str, str]]:
    """Return the series of jobs in the namespace that the selector names."""
    namespace = selector.partition('namespace="')[2].partition('"')[0]
    names = ("jobs_waiting", "jobs_running") if "jobs_.+" in selector else ("jobs_waiting",)
    return [{"__name__": name, "namespace": namespace} for name in names if "jobs_" in selector]


@dataclass
class Served:
    """Readings with objects, built on stand-ins."""

    settings: ReadingSettings = field(default_factory=lambda: ReadingSettings(once_asked_ttl_seconds=600))
    series: Any = matching
    rules: str = FILES
    threads: Threads = field(default_factory=Threads)
    pace: Pace = UNPACED

    def __post_init__(self) -> None:
        self.prometheus = ScriptedPrometheus(lambda _: reply(({}, "5")), self.series)
        self.harness: Harness = make_harness(
            self.prometheus,
            rules=self.rules,
            settings=self.settings,
            submit=self.threads,
            clock=FakeClock(),
            pace=self.pace,
        )
        self.harness.readings.run_due()

    def put(self, *objects: RuleObject) -> None:
        """Put objects into force, and let their first look-ups end."""
        self.harness.readings.replace_rule_objects(objects)
        self.harness.pass_time(1.0)

    def names(self, namespace: str) -> list[str]:
        catalogue = self.harness.readings.catalogue_of(namespace)
        return [metric.qualified for metric in (*catalogue.custom, *catalogue.external)]

    def verdicts(self) -> dict[str, Verdict]:
        files = self.harness.readings.catalogue
        spaces = self.harness.readings.rule_objects()
        known = [each for objects in spaces.values() for each in objects.judge(files)]
        return {f"{each.found.content.namespace}/{each.found.content.name}": verdict_of(each) for each in known}

    def reasons(self) -> dict[str, str]:
        return {place: verdict.reason.value for place, verdict in self.verdicts().items()}
