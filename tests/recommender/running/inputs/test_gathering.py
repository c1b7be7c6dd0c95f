"""Inputs are collected within one deadline, whatever their sources do."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from adapter.foundation.cluster.values.state import ClusterState, Observed, Unknown
from adapter.foundation.service.runtime.threads import DaemonThreads
from recommender.kinds.predictive.predictive_settings import PredictiveSettings
from recommender.running.inputs.gathering import Gatherer, InputSources, LookUps, LookUpThreads
from recommender.running.loads.needs import LoadNeed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from recommender.decisions.loads.inputs import LoadInputs

WANTED = LookUps(queries=frozenset({"quick", "slow"}))


def unused(*_: object) -> Any:  # noqa: ANN401 - never called
    raise AssertionError("nothing of this kind was asked for")


@dataclass(slots=True)
class Queries:
    """Answers `quick` at once and `slow` when it is released."""

    released: threading.Event = field(default_factory=threading.Event)
    asked: list[str] = field(default_factory=list)

    def __call__(self, query: str) -> Observed[float] | Unknown:
        self.asked.append(query)
        if query == "slow":
            self.released.wait(10)
        return Observed(float(len(query)), 1.0)


@pytest.fixture
def queries() -> Iterator[Queries]:
    found = Queries()
    yield found
    found.released.set()


def in_threads(work: Callable[[], None]) -> None:
    threading.Thread(target=work, daemon=True).start()


def gatherer(query: Callable[[str], Observed[float] | Unknown]) -> Gatherer:
    threads = LookUpThreads(in_threads, in_threads)
    return Gatherer(InputSources(ClusterState, query, unused, lambda _: {}), threads, threads)


def test_what_is_late_is_unknown_and_the_rest_is_there(queries: Queries) -> None:
    inputs = gatherer(queries).gather(WANTED, 0.2)

    assert inputs.queries["quick"] == Observed(5.0, 1.0)
    assert inputs.queries["slow"] == Unknown("the query has not been answered yet")


def test_a_lookup_is_not_sent_again_while_it_is_under_way(queries: Queries) -> None:
    under_test = gatherer(queries)
    for _ in range(3):
        under_test.gather(WANTED, 0.05)

    assert queries.asked.count("slow") == 1
    assert queries.asked.count("quick") == 3


def test_an_answer_that_was_late_counts_in_the_next_poll(queries: Queries) -> None:
    under_test = gatherer(queries)
    under_test.gather(WANTED, 0.05)
    queries.released.set()

    assert under_test.gather(WANTED, 5.0).queries["slow"] == Observed(4.0, 1.0)


def test_a_load_that_hangs_is_unknown_and_delays_nothing_else(queries: Queries) -> None:
    need = LoadNeed("shop", PredictiveSettings(load="load"), 10.0)

    def load(_need: LoadNeed) -> Observed[LoadInputs] | Unknown:
        queries.released.wait(10)
        return Observed({}, 1.0)

    threads = LookUpThreads(in_threads, in_threads)
    sources = InputSources(ClusterState, queries, unused, lambda _: {}, load)
    under_test = Gatherer(sources, threads, threads, load_threads=threads)
    wanted = LookUps(queries=frozenset({"quick"}), loads=frozenset({need}))
    late = under_test.gather(wanted, 0.2)
    queries.released.set()

    assert late.loads["shop"] == Unknown("the load has not been answered yet")
    assert late.queries["quick"] == Observed(5.0, 1.0)
    assert under_test.gather(wanted, 5.0).loads["shop"] == {}


def test_a_lookup_that_fails_by_a_fault_harms_itself_alone() -> None:
    def query(text: str) -> Observed[float] | Unknown:
        if text == "slow":
            raise ZeroDivisionError("one by nothing")
        return Observed(1.0, 1.0)

    inputs = gatherer(query).gather(WANTED, 5.0)
    assert inputs.queries["slow"] == Unknown(
        "the look-up failed with an internal error (ZeroDivisionError: one by nothing)"
    )
    assert inputs.queries["quick"] == Observed(1.0, 1.0)


def test_lookups_that_were_slow_leave_the_threads_to_the_others() -> None:
    """Each pool is a list of what it was given; nothing else would ever run it."""
    now, usual, slow = [0.0], list[str](), list[str]()
    asking = [""]

    def query(text: str) -> Observed[float] | Unknown:
        asking[0] = text
        now[0] += 5.0 if text == "slow" else 0.1
        return Observed(1.0, 1.0)

    def noted(pool: list[str]) -> Callable[[Callable[[], None]], None]:
        def submit(work: Callable[[], None]) -> None:
            work()
            pool.append(asking[0])

        return submit

    threads = LookUpThreads(noted(usual), noted(slow))
    under_test = Gatherer(
        InputSources(ClusterState, query, unused, lambda _: {}), threads, LookUpThreads(unused, unused), lambda: now[0]
    )
    under_test.gather(WANTED, 8.0)
    usual.clear()
    under_test.gather(WANTED, 8.0)
    assert (usual, slow) == (["quick"], ["slow"])


def test_queries_that_hang_do_not_delay_config_maps(queries: Queries) -> None:
    sources = InputSources(ClusterState, queries, lambda *_: Observed(None, 1.0), lambda _: {})
    one_query, one_config_map = DaemonThreads("query", 1).submit, DaemonThreads("ConfigMap", 1).submit
    under_test = Gatherer(sources, LookUpThreads(one_query, one_query), LookUpThreads(one_config_map, one_config_map))
    name = ("kube-system", "coredns")
    under_test.gather(LookUps(queries=frozenset({"slow"})), 0.0)
    found = under_test.gather(LookUps(queries=frozenset({"slow"}), config_maps=frozenset({name})), 0.5)
    assert found.config_maps[name] == Observed(None, 1.0)
