"""`refresh` and `window`: how often a rule is queried, and what is reported as its range."""

from __future__ import annotations

import logging

import pytest

from adapter.metrics.readings.answers import ByName
from adapter.metrics.readings.readings_settings import ReadingSettings
from tests.adapter.metrics.readings.samples.policies_harness import ask, ask_external, harness_of, pod, rules, scripted
from tests.support.readings import Harness, ScriptedPrometheus, make_harness, reply, rulebook_of


class TestRefresh:
    @staticmethod
    def queries_in(harness: Harness, prometheus: ScriptedPrometheus, seconds: int, ask_each: float = 1.0) -> int:
        before = len(prometheus.asked)
        for _ in range(int(seconds / ask_each)):
            ask(harness)
            harness.pass_time(ask_each)
        return len(prometheus.asked) - before

    @pytest.mark.parametrize(("policy", "queries"), [(("refresh: 20s",), 6), (("refresh: 2s",), 60), ((), 120)])
    def test_a_rule_is_queried_at_its_refresh_interval_however_often_it_is_requested(
        self, policy: tuple[str, ...], queries: int
    ) -> None:
        prometheus = scripted(reply(pod("web-0", "1")))
        harness = harness_of(prometheus, *policy)

        assert self.queries_in(harness, prometheus, 120) == pytest.approx(queries, abs=max(2, queries / 20))

    def test_a_rule_is_refreshed_twice_within_its_maximum_sample_age(self) -> None:
        prometheus = ScriptedPrometheus()
        harness = harness_of(prometheus, "maxSampleAge: 6s")
        prometheus.answer = lambda query: (
            reply(pod("web-0", str(harness.clock.clock.wall())))
            if query.startswith("min")
            else reply(pod("web-0", "1"))
        )

        assert self.queries_in(harness, prometheus, 60, ask_each=30.0) == pytest.approx(2 * 60 / 3, abs=4)

    def test_a_refresh_interval_that_is_too_long_is_shortened_and_logged(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        prometheus = scripted(reply(pod("web-0", "1")))
        with caplog.at_level(logging.WARNING):
            harness = harness_of(prometheus, "refresh: 10m")
        assert "rules[0] (rules.yaml:3): `refresh` is 600 s" in caplog.text
        assert "it is refreshed every 49 s" in caplog.text

        assert self.queries_in(harness, prometheus, 300, ask_each=15.0) == pytest.approx(300 / 49, abs=1)

    def test_the_refresh_interval_is_half_of_a_short_answer_age_limit(self) -> None:
        prometheus = scripted(reply(pod("web-0", "1")))
        harness = harness_of(prometheus, "refresh: 10m", settings=ReadingSettings(max_answer_age_seconds=12.0))

        assert self.queries_in(harness, prometheus, 60, ask_each=5.0) == pytest.approx(10, abs=1)

    def test_the_shorter_refresh_of_two_rules_with_one_query_counts(self) -> None:
        text = rules("refresh: 40s").replace("externalRules:", "") + ""
        one = text.split("- seriesQuery: 'picked")[0]
        both = one + one.replace("rules:\n", "").replace("refresh: 40s", "refresh: 4s").replace(
            "  resources:", "  name: {as: again}\n  resources:"
        )
        prometheus = scripted(reply(pod("web-0", "1")))
        harness = make_harness(prometheus, rules=both)
        ask(harness)
        ask(harness, name="again")
        assert len(prometheus.asked) == 1

        harness.pass_time(40)
        assert len(prometheus.asked) == pytest.approx(1 + 10, abs=1)

    def test_a_reload_changes_the_refresh_and_keeps_the_reading(self) -> None:
        prometheus = scripted(reply(pod("web-0", "1")))
        harness = harness_of(prometheus, "refresh: 40s")
        ask(harness)
        harness.readings.replace_rulebook(rulebook_of(rules("refresh: 2s")))
        ask(harness)
        assert len(prometheus.asked) == 1

        harness.pass_time(20)
        assert len(prometheus.asked) == pytest.approx(1 + 10, abs=1)


def test_the_window_is_returned_with_every_answer() -> None:
    harness = harness_of(scripted(reply(pod("web-0", "1"))), "window: 2m", "onNoData: 0")

    assert ask(harness).window_seconds == 120
    assert ask(harness, ByName("web-1")).window_seconds == 120
    assert ask_external(harness).window_seconds == 120
    assert ask(harness_of(scripted(reply(pod("web-0", "1"))))).window_seconds is None
