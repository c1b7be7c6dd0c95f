"""Two clusters behind a real Thanos querier: no value of the other one, and never a part in place of the whole.

These tests run with `make e2e thanos=1` only, and need no control plane.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Final

import pytest

from tests.e2e.metrics_apis.thanos import CLUSTER, Querier, running_querier
from tests.support.caller import PATIENCE_SECONDS, Answer, number
from tests.support.harnesses import NAMESPACES, PODS, always, moments, samples
from tests.support.serving import Adapter, Trust, listed, pod, running_adapter
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from tests.support.caller import Caller

pytestmark = pytest.mark.timeout(300)  # several bounded waits each

OURS: Final = "eu-1"
OTHER: Final = "us-1"
LOAD: Final = "load"
QUEUE_DEPTH: Final = "queue_depth"
SERIES: Final = {f'{LOAD}{{namespace="shop",pod="web-0"}}': (3, 1000), f'{QUEUE_DEPTH}{{namespace="shop"}}': (5, 2000)}
"""The series of both clusters, with their values in ours and in the other one."""
OF_OURS: Final = (Decimal(3), Decimal(5))
OF_BOTH: Final = (Decimal(1003), Decimal(2005))
RULES: Final = f"""
rules:
- seriesQuery: '{LOAD}{{namespace!="",pod!=""}}'
  resources: {PODS}
  metricsQuery: 'sum by (<<.GroupBy>>) (<<.Series>>{{<<.LabelMatchers>>}})'
externalRules:
- seriesQuery: '{QUEUE_DEPTH}{{namespace!=""}}'
  resources: {NAMESPACES}
  metricsQuery: 'sum(<<.Series>>{{<<.LabelMatchers>>}})'
"""
MATCHERS: Final = f'--prometheus-matchers={CLUSTER}="{OURS}"'
FLAGS: Final = ("--max-answer-age=5s", "--refresh-interval=1s", "--metrics-relist-interval=1s")
QUERIES: Final = 6
"""Three queries for each of the two metrics."""


@dataclass(frozen=True, slots=True)
class Told:
    """The answer to one request."""

    status: int
    value: Decimal | None
    """The value; None if the answer is an error."""
    evaluated_at: float
    """The time in Unix seconds; 0 if the answer is an error."""

    @classmethod
    def by(cls, answer: Answer) -> Told:
        """Read an answer with one value, or an error."""
        if answer.status != 200:
            return cls(answer.status, None, 0.0)
        (item,) = answer.items
        return cls(200, number(item["value"]), answer.evaluated_at)


Both = tuple[Told, Told]
"""The answers for the custom metric of the pod and for the external sum."""


def asked(caller: Caller) -> Both:
    """Ask for both metrics."""
    return Told.by(caller.pods(LOAD)), Told.by(caller.external(QUEUE_DEPTH))


def values(both: Both) -> tuple[Decimal | None, Decimal | None]:
    """Return the values."""
    load, depth = both
    return load.value, depth.value


def are_refused(both: Both) -> bool:
    """Return whether both get the error for a missing value, which differs from the one for an unknown metric."""
    return all(each.status >= 500 for each in both)


def are_newer(both: Both, moment: float) -> bool:
    """Return whether both have values that were evaluated later."""
    return all(each.evaluated_at > moment for each in both)


class Log:
    """Asks for both metrics, keeps all answers, and asserts that each value is whole or missing."""

    def __init__(self, whole: tuple[Decimal, Decimal]) -> None:
        self._whole = whole
        self.seen: list[Both] = []

    def ask(self, caller: Caller) -> Both:
        """Ask for both metrics once more."""
        both = asked(caller)
        for told, whole in zip(both, self._whole, strict=True):
            assert told.value in (None, whole), "another cluster's value, or a part"
        self.seen.append(both)
        return both


def queries(adapter: Adapter) -> float:
    """Return how many queries for values the adapter has sent."""
    return adapter.metric("tidewatch_adapter_prometheus_queries_total", kind="instant")


@pytest.fixture(scope="module")
def querier(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Querier]:
    """Yield a querier that is shared by all tests, each of which leaves it as it was."""
    at = moments(int(time.time()), step_seconds=15, past_seconds=600)
    clusters = {
        cluster: [
            line
            for series, both in SERIES.items()
            for line in (f"# TYPE {series.partition('{')[0]} gauge", *samples({series: always(both[index])}, at))
        ]
        for index, cluster in enumerate((OURS, OTHER))
    }
    with running_querier(tmp_path_factory.mktemp("thanos"), clusters) as running:
        yield running


@pytest.fixture
def adapter(querier: Querier, tmp_path: Path, trust: Trust, request: pytest.FixtureRequest) -> Iterator[Adapter]:
    """Yield an adapter of the querier, with the flags of the test's parameter, once it answers."""
    flags: tuple[str, ...] = request.param
    with started(querier, tmp_path, trust, *flags) as running, running.caller() as caller:
        until(lambda: are_newer(asked(caller), 0.0), PATIENCE_SECONDS)
        yield running


def started(querier: Querier, folder: Path, trust: Trust, *flags: str) -> AbstractContextManager[Adapter]:
    """Return an adapter of the querier, whose answers are soon too old to be served."""
    objects = {"pods.json": listed(pod("web-0"))}
    return running_adapter(folder, trust, *FLAGS, *flags, prometheus_url=querier.url, rules=RULES, objects=objects)


@contextmanager
def dead_store(querier: Querier, cluster: str) -> Iterator[float]:
    """Kill the store of a cluster, and yield a Unix time at which it was down."""
    with querier.dead(cluster):
        answer = querier.ask(LOAD)
        assert answer["status"] == "success"
        assert answer["warnings"]
        assert {each["metric"][CLUSTER] for each in answer["data"]["result"]} == {OURS, OTHER} - {cluster}
        yield time.time()


@pytest.mark.parametrize(
    ("adapter", "expected"),
    [
        pytest.param((MATCHERS,), OF_OURS, id="with matchers: our cluster's"),
        pytest.param((), OF_BOTH, id="without: the sums over both, which shows that the querier has both"),
    ],
    indirect=["adapter"],
)
def test_values_are_those_of_the_clusters_that_the_matchers_choose(
    adapter: Adapter, expected: tuple[Decimal, Decimal]
) -> None:
    with adapter.caller() as caller:
        assert values(asked(caller)) == expected


@pytest.mark.parametrize(
    ("adapter", "expected", "cluster"),
    [
        pytest.param((), OF_BOTH, OTHER, id="one of both clusters"),
        pytest.param((MATCHERS,), OF_OURS, OURS, id="the only cluster that the matchers choose"),
    ],
    indirect=["adapter"],
)
def test_a_partial_answer_because_of_a_dead_store_is_never_served_as_complete(
    querier: Querier, adapter: Adapter, expected: tuple[Decimal, Decimal], cluster: str
) -> None:
    log = Log(expected)
    with adapter.caller() as caller:
        with dead_store(querier, cluster) as since:
            until(lambda: are_refused(log.ask(caller)), PATIENCE_SECONDS)
            sent = queries(adapter)
            until(lambda: are_refused(log.ask(caller)) and queries(adapter) >= sent + QUERIES, PATIENCE_SECONDS)
        for told in (each for both in log.seen for each in both):
            # The last whole value, with its age, and then none.
            assert told.status == 503 if told.value is None else told.evaluated_at <= since
        assert adapter.said("Prometheus answered only a part of")
        until(lambda: are_newer(asked(caller), since), PATIENCE_SECONDS)
        assert values(asked(caller)) == expected


def test_an_adapter_that_starts_beside_a_dead_store_serves_no_part(
    querier: Querier, tmp_path: Path, trust: Trust
) -> None:
    log = Log(OF_BOTH)
    with dead_store(querier, OTHER), started(querier, tmp_path, trust) as adapter, adapter.caller() as caller:
        until(lambda: are_refused(log.ask(caller)) and queries(adapter) >= QUERIES, PATIENCE_SECONDS)
    assert {value for both in log.seen for value in values(both)} == {None}


@pytest.mark.parametrize("adapter", [(MATCHERS,)], indirect=True)
def test_with_matchers_the_dead_store_of_another_cluster_disturbs_nothing(
    querier: Querier, adapter: Adapter, tmp_path: Path, trust: Trust
) -> None:
    log = Log(OF_OURS)
    (tmp_path / "late").mkdir()
    with adapter.caller() as caller, dead_store(querier, OTHER) as since:
        sent = queries(adapter)
        until(lambda: are_newer(log.ask(caller), since) and queries(adapter) >= sent + QUERIES, PATIENCE_SECONDS)
        with started(querier, tmp_path / "late", trust, MATCHERS) as late, late.caller() as new:
            until(lambda: are_newer(asked(new), since), PATIENCE_SECONDS)
            assert values(asked(new)) == OF_OURS
            assert not late.said("only a part")
    assert {values(both) for both in log.seen} == {OF_OURS}
    assert not adapter.said("only a part")
