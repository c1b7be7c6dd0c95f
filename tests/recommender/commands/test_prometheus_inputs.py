"""The inputs from Prometheus are put together so that they know of a change of the leadership."""

from __future__ import annotations

from contextlib import closing
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry

from adapter.foundation.time.clock import Clock
from adapter.foundation.time.pace import UNPACED
from recommender.commands.run.prometheus_inputs import prometheus_inputs
from recommender.configuration.needs import queries_of
from recommender.configuration.reading import read_configuration
from recommender.decisions.inputs import QueryAnswer
from recommender.leader_election.lease_events import LeaseMetrics
from tests.recommender.configuration.files import entry, whole
from tests.support.prometheus import scraped_prometheus

if TYPE_CHECKING:
    from pathlib import Path

LOAD = "# TYPE load gauge\nload 9\n"
DRIVEN = "proportional: {drivers: {query: {expr: sum(load), perReplica: 1}}}"


def test_the_first_answer_after_a_change_of_the_leadership_counts_as_the_first(tmp_path: Path) -> None:
    registry = CollectorRegistry()

    def nothing(*_: object) -> None: ...

    context: Any = SimpleNamespace(registry=registry, on_stopping=nothing, on_stop=nothing)
    parts: Any = SimpleNamespace(pace=UNPACED, clock=Clock(), lease_metrics=LeaseMetrics(registry, "example"))
    with scraped_prometheus(tmp_path / "prometheus", LOAD) as prometheus:
        prometheus.publish(LOAD, seen="load == 9")
        top = f"state: {tmp_path}/state\nprometheus: {{url: '{prometheus.url}'}}\n"
        configuration = read_configuration(whole(entry("web", kind=DRIVEN), top=top), "r.yaml")
        found = prometheus_inputs(context, parts, configuration)
        [asked] = queries_of(configuration)
        with closing(found.queries):
            found.value(asked)
            parts.lease_metrics.lost()
            parts.lease_metrics.acquired()
            answer = found.value(asked)
    # A source that was young at the first answer, and followed since, has been whole for more seconds.
    assert isinstance(answer, QueryAnswer)
    assert answer.whole_seconds == 0
