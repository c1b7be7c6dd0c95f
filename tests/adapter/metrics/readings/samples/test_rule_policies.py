"""`refresh` and `window`: how often a rule is queried, and what is reported as its range."""

from __future__ import annotations

import logging

import pytest

from adapter.metrics.readings.answers import ByName
from adapter.metrics.readings.readings_settings import ReadingSettings
from tests.adapter.metrics.readings.samples.policies_world import ask, ask_external, house_of, pod, rules, told
from tests.support.readings import (
    House,
    ScriptedPrometheus,
    make_house,
    reply,
    rulebook_of,
)


class TestRefresh:
    @staticmethod
    def queries_in(house: House, prometheus: ScriptedPrometheus, seconds: int, ask_each: float = 1.0) -> int:
        before = len(prometheus.asked)
        for _ in range(int(seconds / ask_each)):
            ask(house)
            house.pass_time(ask_each)
        return len(prometheus.asked) - before

    @pytest.mark.parametrize(("policy", "queries"), [(("refresh: 20s",), 6), (("refresh: 2s",), 60), ((), 120)])
    def test_a_rule_is_asked_as_often_as_it_says_however_often_it_is_asked_for(
        self, policy: tuple[str, ...], queries: int
    ) -> None:
        prometheus = told(reply(pod("web-0", "1")))
        house = house_of(prometheus, *policy)

        assert self.queries_in(house, prometheus, 120) == pytest.approx(queries, abs=max(2, queries / 20))

    def test_a_rule_with_a_limit_is_refreshed_twice_within_it(self) -> None:
        prometheus = ScriptedPrometheus()
        house = house_of(prometheus, "maxSampleAge: 6s")
        prometheus.answer = lambda query: (
            reply(pod("web-0", str(house.clock.clock.wall()))) if query.startswith("min") else reply(pod("web-0", "1"))
        )

        assert self.queries_in(house, prometheus, 60, ask_each=30.0) == pytest.approx(2 * 60 / 3, abs=4)

    def test_a_refresh_that_lets_answers_grow_too_old_is_cut_and_logged(self, caplog: pytest.LogCaptureFixture) -> None:
        prometheus = told(reply(pod("web-0", "1")))
        with caplog.at_level(logging.WARNING):
            house = house_of(prometheus, "refresh: 10m")
        assert "rules[0] (rules.yaml:3): `refresh` is 600 s" in caplog.text
        assert "it is refreshed every 49 s" in caplog.text

        assert self.queries_in(house, prometheus, 300, ask_each=15.0) == pytest.approx(300 / 49, abs=1)

    def test_a_limit_on_answers_shorter_than_a_query_may_take_is_halved(self) -> None:
        prometheus = told(reply(pod("web-0", "1")))
        house = house_of(prometheus, "refresh: 10m", settings=ReadingSettings(max_answer_age_seconds=12.0))

        assert self.queries_in(house, prometheus, 60, ask_each=5.0) == pytest.approx(10, abs=1)

    def test_of_two_rules_with_one_query_the_shorter_counts(self) -> None:
        text = rules("refresh: 40s").replace("externalRules:", "") + ""
        one = text.split("- seriesQuery: 'picked")[0]
        both = one + one.replace("rules:\n", "").replace("refresh: 40s", "refresh: 4s").replace(
            "  resources:", "  name: {as: again}\n  resources:"
        )
        prometheus = told(reply(pod("web-0", "1")))
        house = make_house(prometheus, rules=both)
        ask(house)
        ask(house, name="again")
        assert len(prometheus.asked) == 1

        house.pass_time(40)
        assert len(prometheus.asked) == pytest.approx(1 + 10, abs=1)

    def test_a_reload_changes_the_refresh_and_keeps_the_reading(self) -> None:
        prometheus = told(reply(pod("web-0", "1")))
        house = house_of(prometheus, "refresh: 40s")
        ask(house)
        house.readings.replace_rulebook(rulebook_of(rules("refresh: 2s")))
        ask(house)
        assert len(prometheus.asked) == 1

        house.pass_time(20)
        assert len(prometheus.asked) == pytest.approx(1 + 10, abs=1)


def test_the_window_is_told_with_every_answer() -> None:
    house = house_of(told(reply(pod("web-0", "1"))), "window: 2m", "onNoData: 0")

    assert ask(house).window_seconds == 120
    assert ask(house, ByName("web-1")).window_seconds == 120
    assert ask_external(house).window_seconds == 120
    assert ask(house_of(told(reply(pod("web-0", "1"))))).window_seconds is None
