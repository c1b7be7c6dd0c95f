"""`maxSampleAge`: no value is made of samples that are too old."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adapter.foundation.objects.selectors import EVERYTHING
from adapter.foundation.sources.prometheus.errors import PrometheusError, QueryRefusedError
from adapter.foundation.time.timestamps import rfc3339
from adapter.metrics.readings.answers import ByName, BySelector, ObjectsAnswer
from adapter.metrics.readings.errors import NoDataUncertainError, PartialAnswerError, ReadingError, SampleTooOldError
from adapter.metrics.readings.readings_settings import ReadingSettings
from adapter.metrics.rulebook.requests import Row
from tests.adapter.metrics.readings.samples.policies_harness import (
    DOWN,
    SECOND,
    WEB,
    ask,
    ask_external,
    harness_of,
    pod,
    rules,
    scripted,
)
from tests.support.readings import Reply, ScriptedPrometheus, make_harness, reply, rulebook_of

if TYPE_CHECKING:
    from collections.abc import Mapping


def at(name: str, age: float) -> tuple[Mapping[str, str], str]:
    """Return the time of a pod's newest sample, which has this age at the first second."""
    return pod(name, str(SECOND - age))


class TestSampleAge:
    def test_values_of_young_samples_are_served(self) -> None:
        prometheus = scripted(reply(pod("web-0", "1"), pod("web-1", "2")), reply(at("web-0", 5), at("web-1", 9)))
        harness = harness_of(prometheus, "maxSampleAge: 10s")

        assert ask(harness) == ObjectsAnswer((("web-0", 1.0), ("web-1", 2.0)), SECOND)
        assert harness.counter("tidewatch_adapter_dropped_samples_total", reason="stale") == 0

    def test_both_queries_are_of_one_instant_and_the_times_are_queried_first(self) -> None:
        prometheus = scripted(reply(pod("web-0", "1")), reply(at("web-0", 5)))
        ask(harness_of(prometheus, "maxSampleAge: 10s"))

        matchers = 'rps{namespace="shop",pod!=""}'
        assert prometheus.asked == [f"min by (pod) (timestamp({matchers}))", f"sum by (pod) ({matchers})"]
        assert prometheus.times == [SECOND, SECOND]

    def test_an_object_whose_samples_are_too_old_has_no_value(self) -> None:
        harness = harness_of(scripted(reply(pod("web-0", "1")), reply(at("web-0", 130))), "maxSampleAge: 2m")

        # The words are the same at each sync of an HPA, so that its events are counted as one.
        last = rfc3339(SECOND - 130)
        message = f"'web-0' has no value: its series' last samples are from {last}, and the rule allows 120 s"
        with pytest.raises(SampleTooOldError, match=message):
            ask(harness, ByName("web-0"))
        with pytest.raises(SampleTooOldError, match=message):
            ask(harness)
        assert harness.counter("tidewatch_adapter_dropped_samples_total", reason="stale") == 1

    @pytest.mark.parametrize(
        ("look_back", "range_text", "warnings"),
        [
            pytest.param(300.0, "5m", 0, id="as long as the default look-back"),
            pytest.param(60.0, "5m", 1, id="longer than the look-back"),
            pytest.param(60.0, "1m", 0, id="as long as the look-back"),
            pytest.param(60.0, "", 0, id="no range"),
        ],
    )
    def test_a_range_longer_than_the_look_back_is_logged(
        self, look_back: float, range_text: str, warnings: int, caplog: pytest.LogCaptureFixture
    ) -> None:
        """A series that was silent for longer has no time any more, although its samples still count."""
        text = rules("maxSampleAge: 30s")
        if range_text:
            text = text.replace(
                "(<<.Series>>{<<.LabelMatchers>>})", f"(rate(<<.Series>>{{<<.LabelMatchers>>}}[{range_text}]))"
            )
        make_harness(ScriptedPrometheus(), rules=text, settings=ReadingSettings(look_back_seconds=look_back))

        message = (
            "rules[0] (rules.yaml:3): its query looks over 300 s, but Prometheus returns the times of samples for 60 s"
        )
        assert caplog.text.count(message) == warnings
        assert "rules[1]" not in caplog.text

    def test_an_object_with_old_samples_is_left_out_of_a_list_with_a_warning(self) -> None:
        prometheus = scripted(reply(pod("web-0", "1"), pod("web-1", "2")), reply(at("web-0", 130), at("web-1", 1)))
        harness = harness_of(prometheus, "maxSampleAge: 2m")

        warning = "1 of 2 objects is left out: the samples are older than 120 s"
        assert ask(harness) == ObjectsAnswer((("web-1", 2.0),), SECOND, (warning,))

    def test_an_object_whose_value_is_no_number_is_left_out_of_a_list_without_a_warning(self) -> None:
        prometheus = scripted(reply(pod("web-0", "NaN"), pod("web-1", "2")), reply(at("web-0", 1), at("web-1", 1)))
        assert ask(harness_of(prometheus, "maxSampleAge: 2m")) == ObjectsAnswer((("web-1", 2.0),), SECOND)

    def test_external_rows_that_are_too_old_are_counted_once(self) -> None:
        row: Mapping[str, str] = {"namespace": "shop", "queue": "a"}
        harness = harness_of(scripted(reply((row, "1")), reply((row, str(SECOND - 130)))), "maxSampleAge: 2m")
        for _ in range(3):
            with pytest.raises(SampleTooOldError):
                ask_external(harness)
        assert harness.counter("tidewatch_adapter_dropped_samples_total", reason="stale") == 1

    def test_a_value_whose_series_have_no_current_sample_is_too_old(self) -> None:
        harness = harness_of(scripted(reply(pod("web-0", "1"))), "maxSampleAge: 2m")

        with pytest.raises(SampleTooOldError, match="Prometheus has no current sample of its series"):
            ask(harness, ByName("web-0"))

    def test_the_age_is_that_at_the_time_of_the_answer(self) -> None:
        prometheus = scripted(reply(pod("web-0", "1")), reply(at("web-0", 5)))
        harness = harness_of(prometheus, "maxSampleAge: 30s")
        ask(harness)
        harness.clock.forward(24)
        assert ask(harness).values == (("web-0", 1.0),)
        harness.clock.forward(1)

        with pytest.raises(SampleTooOldError, match=f"from {rfc3339(SECOND - 5)}"):
            ask(harness)

    def test_a_wall_clock_set_back_does_not_make_samples_young_again(self) -> None:
        harness = harness_of(scripted(reply(pod("web-0", "1")), reply(at("web-0", 5))), "maxSampleAge: 30s")
        ask(harness)
        harness.clock.forward(40)
        harness.clock.wall_offset -= 40

        with pytest.raises(SampleTooOldError):
            ask(harness)

    @pytest.mark.parametrize("times", [DOWN, QueryRefusedError("q", "execution", "too many samples")])
    def test_a_value_is_not_served_unless_its_age_is_known(self, times: PrometheusError) -> None:
        harness = harness_of(scripted(reply(pod("web-0", "1")), times), "maxSampleAge: 2m")

        with pytest.raises(ReadingError, match="the age of its samples"):
            ask(harness)
        with pytest.raises(ReadingError, match="the age of its samples"):
            ask_external(harness)

    def test_an_old_selected_series_fails_an_external_metric(self) -> None:
        rows = reply(({"namespace": "shop", "queue": "a"}, "1"), ({"namespace": "shop", "queue": "b"}, "2"))
        times = reply(
            ({"namespace": "shop", "queue": "a"}, str(SECOND - 3)),
            ({"namespace": "shop", "queue": "b"}, str(SECOND - 31)),
        )
        harness = harness_of(scripted(rows, times), "maxSampleAge: 30s")

        assert ask_external(harness, "queue=a").rows == (Row({"namespace": "shop", "queue": "a"}, 1.0),)
        for _ in range(3):
            with pytest.raises(SampleTooOldError, match=f"from {rfc3339(SECOND - 31)}"):
                ask_external(harness, "queue=b")
        assert harness.counter("tidewatch_adapter_dropped_samples_total", reason="stale") == 1, "counted once"

    def test_rows_without_sample_times_are_not_served(self) -> None:
        harness = harness_of(scripted(reply(({"namespace": "shop"}, "0"))), "maxSampleAge: 30s")

        with pytest.raises(SampleTooOldError, match="no current sample"):
            ask_external(harness)

    def test_there_is_no_stand_in_for_samples_that_are_too_old(self) -> None:
        prometheus = scripted(reply(pod("web-0", "1")), reply(at("web-0", 130)))
        harness = harness_of(prometheus, "maxSampleAge: 2m", "onNoData: 0")
        with pytest.raises(SampleTooOldError):
            ask(harness, ByName("web-0"))
        with pytest.raises(SampleTooOldError):
            ask(harness)
        assert ask(harness, ByName("web-1")).values == (("web-1", 0.0),)

    @pytest.mark.parametrize("moment", ["-Inf", "-1e300", "-1"])
    def test_a_time_that_is_none_is_an_error_of_its_own(self, moment: str) -> None:
        """A server other than Prometheus may answer anything."""
        value, time = reply(pod("web-0", "1")), reply(pod("web-0", moment))
        with pytest.raises(SampleTooOldError, match="'web-0' has no value: Prometheus has no current sample"):
            ask(harness_of(scripted(value, time), "maxSampleAge: 2m"))
        rows = [({"namespace": "shop"}, "1")], [({"namespace": "shop"}, moment)]
        with pytest.raises(SampleTooOldError, match="the metric has no value: Prometheus has no current sample"):
            ask_external(harness_of(scripted(*(reply(*row) for row in rows)), "maxSampleAge: 2m"))

    @pytest.mark.parametrize("keys", [(), ("onNoData: 0",)], ids=["no value", "a value"])
    def test_old_samples_without_a_rate_are_too_old_and_not_missing(self, keys: tuple[str, ...]) -> None:
        harness = harness_of(scripted(reply(), reply(at("web-1", 130))), "maxSampleAge: 2m", *keys)
        last = rfc3339(SECOND - 130)
        for which in (WEB, ByName("web-1")):
            with pytest.raises(
                SampleTooOldError, match=f"'web-1' has no value: its series' last samples are from {last}"
            ):
                ask(harness, which)
        external = harness_of(
            scripted(reply(), reply(({"namespace": "shop"}, str(SECOND - 130)))), "maxSampleAge: 2m", *keys
        )
        with pytest.raises(SampleTooOldError):
            ask_external(external)

    @pytest.mark.parametrize("which", [ByName("web-0"), WEB], ids=["by name", "in a list"])
    def test_young_samples_without_a_value_do_not_count_as_no_data(self, which: ByName | BySelector) -> None:
        """Such queries are a `rate` of one sample, or a join with what is missing."""
        harness = harness_of(scripted(reply(), reply(at("web-0", 1))), "maxSampleAge: 2m", "onNoData: 0")

        with pytest.raises(NoDataUncertainError, match="'web-0' has no value: there are samples"):
            ask(harness, which)
        assert ask(harness, ByName("web-1")).values == (("web-1", 0.0),)

    def test_young_samples_of_an_external_metric_do_not_count_as_no_data(self) -> None:
        harness = harness_of(
            scripted(reply(), reply(({"namespace": "shop"}, str(SECOND - 1)))), "maxSampleAge: 2m", "onNoData: 0"
        )

        with pytest.raises(NoDataUncertainError, match="the metric has no value: there are samples"):
            ask_external(harness)

    def test_a_nan_of_young_samples_is_no_data(self) -> None:
        harness = harness_of(
            scripted(reply(pod("web-0", "NaN")), reply(at("web-0", 1))), "maxSampleAge: 2m", "onNoData: 0"
        )
        assert ask(harness, ByName("web-0")).values == (("web-0", 0.0),)
        nan = reply(({"namespace": "shop"}, "NaN"))
        external = harness_of(
            scripted(nan, reply(({"namespace": "shop"}, str(SECOND)))), "maxSampleAge: 2m", "onNoData: 0"
        )
        assert ask_external(external).rows == (Row({}, 0.0),)

    def test_a_partial_answer_of_times_is_an_error(self) -> None:
        times = reply(at("web-0", 1), warnings=["a store did not answer"])
        with pytest.raises(PartialAnswerError, match="the age of its samples"):
            ask(harness_of(scripted(reply(pod("web-0", "1")), times), "maxSampleAge: 2m"))

    def test_a_plan_that_gives_other_times_is_distrusted(self) -> None:
        def one_second_younger_by_the_wider_query(query: str) -> Reply:
            if query.startswith("min"):
                return reply(at("web-0", 1 if 'pod!=""' in query else 2))
            return reply(pod("web-0", "1"))

        prometheus = ScriptedPrometheus(answer=one_second_younger_by_the_wider_query)
        harness = make_harness(prometheus, rules=rules("maxSampleAge: 1h"), cross_checks=True)
        for _ in range(25):
            ask(harness)
            harness.pass_time(10)
        assert harness.counter("tidewatch_adapter_rule_plan_distrusted", rule="rules[0]") == 1

    def test_the_times_of_an_exact_query_are_those_of_the_same_objects(self) -> None:
        prometheus = scripted(reply(pod("web-0", "1"), pod("web-1", "2")), reply(at("web-0", 1), at("web-1", 99)))
        harness = harness_of(prometheus, "maxSampleAge: 30s")

        assert ask(harness, name="picked").values == (("web-0", 1.0),)
        assert [query.count('pod=~"web-0|web-1"') for query in prometheus.asked] == [1, 1]

    def test_many_requests_cost_one_pair_of_queries(self) -> None:
        prometheus = scripted(reply(pod("web-0", "1")), reply(at("web-0", 1)))
        harness = harness_of(prometheus, "maxSampleAge: 30s")
        for which in (WEB, ByName("web-0"), BySelector(EVERYTHING)):
            ask(harness, which)

        assert len(prometheus.asked) == 2

    def test_a_refused_query_for_times_narrows_the_plan_of_both_queries(self) -> None:
        def refuse_the_namespaces(query: str) -> Reply | PrometheusError:
            if query.startswith("min"):
                return QueryRefusedError("q", "execution", "too many") if 'pod!=""' in query else reply(at("web-0", 1))
            return reply(pod("web-0", "1"))

        harness = harness_of(ScriptedPrometheus(answer=refuse_the_namespaces), "maxSampleAge: 30s")

        assert ask(harness, ByName("web-0")).values == (("web-0", 1.0),)
        assert harness.counter("tidewatch_adapter_rule_plan", rule="rules[0]", plan="exact") == 1

    def test_a_reload_that_changes_only_the_limit_loses_no_reading(self) -> None:
        prometheus = scripted(reply(pod("web-0", "1")), reply(at("web-0", 20)))
        harness = harness_of(prometheus, "maxSampleAge: 30s")
        ask(harness)
        asked = len(prometheus.asked)
        harness.readings.replace_rulebook(rulebook_of(rules("maxSampleAge: 10s")))

        with pytest.raises(SampleTooOldError, match="allows 10 s"):
            ask(harness)
        assert len(prometheus.asked) == asked

    def test_a_reload_that_adds_a_limit_serves_no_unchecked_value(self) -> None:
        prometheus = scripted(reply(pod("web-0", "1")), reply(at("web-0", 20)))
        harness = harness_of(prometheus)
        assert ask(harness).values == (("web-0", 1.0),)
        harness.readings.replace_rulebook(rulebook_of(rules("maxSampleAge: 10s")))

        with pytest.raises(SampleTooOldError):
            ask(harness)

    @pytest.mark.parametrize(
        ("policy", "look_back_seconds", "is_warned"),
        [("maxSampleAge: 30s", 60.0, True), ("maxSampleAge: 30s", 120.0, False), ("refresh: 30s", 60.0, False)],
    )
    def test_a_look_back_that_is_too_short_to_see_silent_series_is_logged(
        self, caplog: pytest.LogCaptureFixture, policy: str, look_back_seconds: float, *, is_warned: bool
    ) -> None:
        text = rules(policy).replace("sum by (<<.GroupBy>>) (<<", "sum by (<<.GroupBy>>) (rate(<<")
        text = text.replace("<<.LabelMatchers>>})", "<<.LabelMatchers>>}[2m]))", 1)
        make_harness(scripted(reply()), rules=text, settings=ReadingSettings(look_back_seconds=look_back_seconds))
        warning = (
            "rules[0] (rules.yaml:3): its query looks over 120 s, but Prometheus returns the times of samples for 60 s"
        )
        assert (warning in caplog.text) is is_warned
        assert caplog.text.count("its query looks over") == is_warned
