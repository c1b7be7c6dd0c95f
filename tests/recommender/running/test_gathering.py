"""Inputs are collected within one deadline, whatever their sources do."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from adapter.cluster.state import ClusterState, Observed, Unknown
from recommender.running.gathering import Gatherer, InputSources, LookUps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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
    return Gatherer(InputSources(ClusterState, query, unused, lambda _: {}), in_threads)


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


def test_a_lookup_that_fails_by_a_fault_harms_itself_alone() -> None:
    def query(text: str) -> Observed[float] | Unknown:
        if text == "slow":
            raise ZeroDivisionError("one by nothing")
        return Observed(1.0, 1.0)

    inputs = gatherer(query).gather(WANTED, 5.0)
    assert inputs.queries["slow"] == Unknown(
        "the lookup failed by a fault of the program: ZeroDivisionError: one by nothing"
    )
    assert inputs.queries["quick"] == Observed(1.0, 1.0)
