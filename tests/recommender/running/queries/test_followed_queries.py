"""A value that has fallen says whether the query has all of its series; a value that has not costs no look-up."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import pytest

from adapter.foundation.cluster.values.state import Observed, Unknown
from recommender.configuration.needs import AskedQuery
from recommender.decisions.inputs import QueryAnswer
from recommender.running.queries.followed_queries import FollowedQueries

ASKED = AskedQuery("sum(load)")
AT = 1_800_000_000.0
YOUNG, OLD = -100.0, -1000.0


@dataclass
class Source:
    """A source that has had all series since a time, and that records how far back it was asked."""

    since: float
    now: float = 0.0
    answer: float | None = None
    whole: float | None = None
    """Its value together with the number of series, if that is another one."""
    looked_up: list[float] = field(default_factory=list)
    value_seconds: float = 0.0
    """How long it takes to answer."""
    took: float = 0.0
    """How long the value is said to have taken in the last look-up."""

    def value(self, _query: str) -> Observed[float] | Unknown:
        self.now += self.value_seconds
        return Unknown("it is down") if self.answer is None else Observed(self.answer, AT)

    def whole_value(
        self, _query: str, found: Observed[float], seconds: float, took_seconds: float
    ) -> Observed[float] | None:
        self.looked_up.append(seconds)
        self.took = took_seconds
        return replace(found, value=self.whole or found.value) if self.now - seconds >= self.since else None


def following(source: Source, *queries: AskedQuery) -> FollowedQueries:
    """Return the answers of the source, with these queries followed."""
    found = FollowedQueries(lambda _asked: source, clock=lambda: source.now)
    found.follow(queries)
    return found


def answers(source: Source, polls: list[tuple[float, float | None, float]]) -> list[float | None]:
    """Return `whole_seconds` at each poll, None where there is none; a poll is a time, a value, and a new `since`."""
    followed = following(source, ASKED)
    found: list[float | None] = []
    for source.now, source.answer, source.since in polls:
        answer = followed.value(ASKED)
        found.append(answer.whole_seconds if isinstance(answer, QueryAnswer) else None)
    return found


@pytest.mark.parametrize(
    ("polls", "whole_seconds", "looked_up"),
    [
        ([(0, 9.0, OLD), (10, 9.0, OLD), (20, 10.0, OLD)], [300, None, None], [300]),
        ([(0, 9.0, OLD), (10, 5.0, OLD), (20, 5.0, OLD)], [300, 300, None], [300, 300]),
        ([(0, 9.0, OLD), (10, 1.0, 5), (20, 1.0, 5), (310, 1.0, 5)], [300, 0, 0, 300], [300, 300, 300, 300]),
        ([(0, 9.0, OLD), (10, 1.0, 5), (20, 9.0, 5), (30, 10.0, 5)], [300, 0, None, None], [300, 300]),
        ([(0, 9.0, OLD), (10, None, 15), (20, 1.0, 15)], [300, None, 0], [300, 300]),
        ([(0, 9.0, YOUNG), (10, 9.0, YOUNG), (20, 5.0, YOUNG)], [0, 10, 20], [300, 20]),
        ([(0, 9.0, YOUNG), (10, 1.0, 5), (20, 1.0, 5)], [0, 0, 0], [300, 10, 20]),
        ([(0, 9.0, YOUNG), (300, 9.0, YOUNG), (310, 5.0, YOUNG)], [0, None, 300], [300, 300]),
        ([(0, 9.0, OLD), (3600, 10.0, 3500), (3610, 10.0, 3500)], [300, 0, None], [300, 300]),
        ([(0, 9.0, OLD), (400, None, 405), (410, 5.0, 405), (420, 5.0, 405)], [300, None, 0, None], [300, 300]),
        ([(0, 9.0, OLD), (10, float("nan"), OLD), (20, 9.0, OLD)], [300, None, None], [300]),
    ],
    ids=[
        "only the first answer and falls are looked up",
        "a fall with all series becomes the value that is compared",
        "a fall that lacks series is looked up until they have been there for long enough",
        "and no more once the value is back",
        "a poll without an answer",
        "a source that was young at the first answer is compared with that time",
        "such a source that has lost its series since",
        "such a source once it is old enough",
        "a former leader that leads again does not compare with what it knew then",
        "a source that was down for longer than five minutes is not one that began with this process",
        "no number is no fall",
    ],
)
def test_a_fall_says_for_how_long_the_series_have_been_there(
    polls: list[tuple[float, float | None, float]], whole_seconds: list[float | None], looked_up: list[float]
) -> None:
    source = Source(OLD)
    assert (answers(source, polls), source.looked_up) == (whole_seconds, looked_up)


def test_a_query_that_is_not_followed_costs_no_look_up() -> None:
    source = Source(OLD, answer=9.0)
    followed = following(source, AskedQuery("sum(other)"))
    assert [followed.value(ASKED) for source.answer in (9.0, 1.0)] == [Observed(9.0, AT), Observed(1.0, AT)]
    assert not source.looked_up


def test_the_value_is_the_one_that_came_with_the_number_of_series() -> None:
    source = Source(OLD, answer=9.0)
    followed = following(source, ASKED)
    followed.value(ASKED)
    # One of two servers behind an address has just started, and the other one has all series.
    source.answer, source.whole = 2.0, 10.0
    assert followed.value(ASKED) == QueryAnswer(10.0, AT, whole_seconds=300.0)
    source.answer = 9.5
    followed.value(ASKED)
    assert source.looked_up == [300] * 3


def test_the_look_up_knows_how_long_the_value_took() -> None:
    source = Source(OLD, answer=9.0, value_seconds=3.0)
    following(source, ASKED).value(ASKED)
    assert source.took == 3.0


def test_a_query_that_is_followed_no_more_is_forgotten() -> None:
    source = Source(OLD, answer=9.0)
    followed = following(source, ASKED)
    followed.value(ASKED)
    followed.follow(())
    followed.follow({ASKED})
    followed.value(ASKED)
    assert source.looked_up == [300, 300]


def test_a_series_that_is_missing_for_good_is_looked_up_once_a_minute_after_a_quarter_of_an_hour() -> None:
    source = Source(OLD, answer=9.0)
    followed = following(source, ASKED)
    followed.value(ASKED)
    source.since, source.answer = math.inf, 1.0
    counts = []
    for source.now in range(10, 1511, 10):
        answer = followed.value(ASKED)
        assert isinstance(answer, QueryAnswer)
        assert answer.whole_seconds == 0
        counts.append(len(source.looked_up))
    while_ranges_have_old_series, afterwards = counts[89] - 1, counts[-1] - counts[89]
    assert (while_ranges_have_old_series, afterwards) == (90, 10)


@pytest.mark.parametrize("whole_again", [310, 610, 890], ids=["instant", "range of five minutes", "longest range"])
def test_series_that_count_again_are_noticed_in_the_same_poll(whole_again: float) -> None:
    source = Source(OLD, answer=90.0)
    followed = following(source, ASKED)
    followed.value(ASKED)
    # Pods were removed: until they are no longer found earlier either, their series are missing.
    source.since, source.answer = math.inf, 80.0
    for source.now in range(10, round(whole_again), 10):
        followed.value(ASKED)
    source.now, source.since = whole_again, OLD
    assert followed.value(ASKED) == QueryAnswer(80.0, AT, whole_seconds=300.0)


def test_a_fall_after_a_recovery_is_looked_up_at_once() -> None:
    source = Source(OLD, answer=9.0)
    followed = following(source, ASKED)
    followed.value(ASKED)
    for source.now, source.answer, source.since in ((10, 1.0, math.inf), (310, 1.0, math.inf), (320, 9.0, OLD)):
        followed.value(ASKED)
    source.looked_up.clear()
    source.now, source.answer, source.since = 330, 1.0, math.inf
    assert followed.value(ASKED) == QueryAnswer(1.0, AT, whole_seconds=0.0)
    assert source.looked_up == [300]


def test_a_leader_that_leads_again_does_not_compare_with_the_value_that_it_knew_before() -> None:
    source = Source(OLD, answer=9.0)
    followed = following(source, ASKED)
    followed.value(ASKED)
    followed.forget()
    source.now, source.answer, source.since = 60, 10.0, 55
    assert followed.value(ASKED) == QueryAnswer(10.0, AT, whole_seconds=0.0)


def test_an_answer_that_was_under_way_when_the_leadership_ended_is_forgotten_too() -> None:
    @dataclass
    class Slow(Source):
        def value(self, query: str) -> Observed[float] | Unknown:
            if not self.looked_up:
                followed.forget()
            return super().value(query)

    source = Slow(OLD, answer=9.0)
    followed = following(source, ASKED)
    followed.value(ASKED)
    followed.value(ASKED)
    assert source.looked_up == [300, 300]


def test_queries_may_be_asked_while_others_are_forgotten() -> None:
    source = Source(OLD, answer=9.0)

    class Told(AskedQuery):
        """A query during whose comparison another thread asks a new one."""

        def __hash__(self) -> int:
            if asking:
                followed.value(asking.pop())
            return super().__hash__()

    asking: list[AskedQuery] = []
    new, told, old = AskedQuery("sum(new)"), Told("sum(told)"), AskedQuery("sum(old)")
    followed, kept = following(source, ASKED, told, old, new), frozenset({ASKED, told, new})
    for query in (ASKED, told, old):
        followed.value(query)
    asking.append(new)
    followed.follow(kept)
    assert not asking
    source.looked_up.clear()
    assert [followed.value(each) for each in (ASKED, new)] == [Observed(9.0, AT)] * 2
    assert not source.looked_up
