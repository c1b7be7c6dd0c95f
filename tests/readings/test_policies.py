"""What rules ask for themselves: a value for no data, no samples that are too old, another refresh, a window."""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING

import pytest

from adapter.objects.selectors import EVERYTHING, parse_selector
from adapter.readings.answers import ByName, BySelector, ExternalAnswer, ObjectsAnswer
from adapter.readings.errors import (
    AmbiguousSamplesError,
    AnswerTooOldError,
    NoDataUncertainError,
    NoObjectsMatchError,
    NoSampleError,
    ObjectsNotKnownError,
    PartialAnswerError,
    QueryRefusedByPrometheusError,
    ReadingError,
    SampleTooOldError,
    SourceSlowError,
    SourceUnreachableError,
)
from adapter.readings.samples.policies import STANDS_IN
from adapter.readings.settings import ReadingSettings
from adapter.rulebook.requests import Row
from adapter.sources.prometheus.errors import (
    PrometheusError,
    PrometheusTimeoutError,
    PrometheusUnreachableError,
    QueryRefusedError,
)
from adapter.sources.prometheus.runtime import Started
from tests.support.readings import (
    START,
    House,
    MadeUpObjects,
    Reply,
    ScriptedPrometheus,
    Threads,
    make_house,
    reply,
    rulebook_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

WEB = BySelector(parse_selector("app=web"))
NOBODY = BySelector(parse_selector("app=nobody"))
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


def house_of(prometheus: ScriptedPrometheus, *policy: str, settings: ReadingSettings | None = None) -> House:
    return make_house(prometheus, rules=rules(*policy), settings=settings)


def ask(house: House, which: ByName | BySelector = WEB, name: str = "rps") -> ObjectsAnswer:
    return house.readings.objects(house.pods(name), "shop", which, EVERYTHING)


def ask_external(house: House, selector: str = "") -> ExternalAnswer:
    return house.readings.external(
        house.external("queue"), "shop", parse_selector(selector) if selector else EVERYTHING
    )


def told(answer: Reply | PrometheusError, times: Reply | PrometheusError = reply()) -> ScriptedPrometheus:  # noqa: B008 - immutable
    """Answer a rule's query, and the one for the times of its samples."""
    return ScriptedPrometheus(answer=lambda query: times if "timestamp(" in query else answer)


def pod(name: str, value: str, **labels: str) -> tuple[Mapping[str, str], str]:
    return {"namespace": "shop", "pod": name, **labels}, value


def at(name: str, age: float) -> tuple[Mapping[str, str], str]:
    """The time of a pod's newest sample, so old at the first second."""
    return pod(name, str(SECOND - age))


class TestNoData:
    @pytest.mark.parametrize("samples", [(), (pod("web-0", "NaN"),), (pod("web-0", "NaN"), pod("web-1", "NaN"))])
    def test_its_value_stands_for_all_objects_if_none_has_data(
        self, samples: tuple[tuple[Mapping[str, str], str], ...]
    ) -> None:
        house = house_of(told(reply(*samples)), "onNoData: 7")

        assert ask(house) == ObjectsAnswer((("web-0", 7.0), ("web-1", 7.0)), SECOND, (STANDS_IN,))
        assert ask(house, ByName("web-1")) == ObjectsAnswer((("web-1", 7.0),), SECOND, (STANDS_IN,))

    def test_nothing_is_made_up_for_some_if_others_have_data(self) -> None:
        house = house_of(told(reply(pod("web-1", "3"))), "onNoData: 7")

        assert ask(house) == ObjectsAnswer((("web-1", 3.0),), SECOND)
        assert ask(house, ByName("web-0")).values == (("web-0", 7.0),), "by its name it is all that is asked about"

    @pytest.mark.parametrize("answer", [reply(), reply(({"namespace": "shop", "queue": "a"}, "NaN"))])
    def test_an_external_metric_gets_one_row_without_labels(self, answer: Reply) -> None:
        house = house_of(told(answer), "onNoData: 0")

        assert ask_external(house) == ExternalAnswer((Row({}, 0.0),), SECOND, (STANDS_IN,))

    def test_it_stands_for_a_selector_that_selects_nothing_of_what_others_have(self) -> None:
        house = house_of(told(reply(({"namespace": "shop", "queue": "a"}, "5"))), "onNoData: 0")

        assert ask_external(house, "queue=a").rows == (Row({"namespace": "shop", "queue": "a"}, 5.0),)
        assert ask_external(house, "queue=b").rows == (Row({}, 0.0),)

    @pytest.mark.parametrize(
        ("answer", "error"),
        [
            (DOWN, SourceUnreachableError),
            (PrometheusTimeoutError("q", "no answer within 10 s"), SourceSlowError),
            (QueryRefusedError("q", "bad_data", "parse error"), QueryRefusedByPrometheusError),
            (reply(warnings=["a store did not answer"]), PartialAnswerError),
            (reply(({"namespace": "shop"}, "3")), NoSampleError),
            (reply(pod("web-0", "+Inf")), NoSampleError),
            (reply(pod("web-0", "1", a="1"), pod("web-0", "2", a="2")), AmbiguousSamplesError),
            (reply(pod("web-0", "1"), seconds_late=300), NoSampleError),
        ],
        ids=["down", "late", "refused", "in parts", "without a name", "infinite", "twice", "old"],
    )
    def test_the_value_for_no_data_hides_nothing_wrong_of_one_object(
        self, answer: Reply | PrometheusError, error: type[ReadingError]
    ) -> None:
        house = house_of(told(answer), "onNoData: 0")

        with pytest.raises(error):
            ask(house, ByName("web-0"))

    @pytest.mark.parametrize(
        "answer",
        [reply(({"namespace": "shop"}, "3")), reply(pod("web-0", "-Inf")), reply(pod("web-0", "1"), seconds_late=300)],
        ids=["without a name", "infinite", "old"],
    )
    def test_the_value_for_no_data_hides_nothing_wrong_in_a_list(self, answer: Reply) -> None:
        # Without any usable sample a list is empty, or an error that says what is wrong.
        with contextlib.suppress(NoSampleError):
            assert ask(house_of(told(answer), "onNoData: 0")).values == ()

    @pytest.mark.parametrize(
        "answer",
        [reply(({"namespace": "shop"}, "+Inf")), reply(({"namespace": "shop"}, "1"), seconds_late=300)],
        ids=["infinite", "old"],
    )
    def test_the_value_for_no_data_hides_nothing_wrong_of_an_external_metric(self, answer: Reply) -> None:
        assert ask_external(house_of(told(answer), "onNoData: 0")) == ExternalAnswer((), SECOND)

    def test_it_ends_with_the_answer_it_was_told_by(self) -> None:
        prometheus = told(reply())
        house = house_of(prometheus, "onNoData: 0")
        assert ask(house, ByName("web-0")).values == (("web-0", 0.0),)
        prometheus.answer = lambda _query: DOWN
        house.pass_time(61)

        with pytest.raises(AnswerTooOldError):
            ask(house, ByName("web-0"))

    def test_objects_that_were_not_asked_about_yet_get_none(self) -> None:
        objects = MadeUpObjects({"shop": ["web-0"]})
        house = make_house(told(reply()), rules=rules("onNoData: 0"), objects=objects)
        assert ask(house, name="picked").values == (("web-0", 0.0),)
        objects.names_by_namespace["shop"].append("web-1")

        assert ask(house, name="picked").values == (), "of web-1 Prometheus has said nothing"
        house.pass_time(11)
        assert ask(house, name="picked").values == (("web-0", 0.0), ("web-1", 0.0))

    def test_no_object_is_made_up(self) -> None:
        with pytest.raises(NoObjectsMatchError):
            ask(house_of(told(reply()), "onNoData: 0"), NOBODY)

    @pytest.mark.parametrize("said", ["error", "empty"])
    def test_other_policies_make_no_value(self, said: str) -> None:
        house = house_of(told(reply()), f"onNoData: {said}")

        assert ask(house) == ObjectsAnswer((), SECOND)
        assert ask_external(house) == ExternalAnswer((), SECOND)
        with pytest.raises(NoSampleError):
            ask(house, ByName("web-0"))


class TestOfObjectsThatAreThere:
    @pytest.mark.parametrize("samples", [(), (pod("web-1", "3"),), (pod("typo-0", "NaN"),)])
    def test_nothing_stands_for_one_that_does_not_exist(
        self, samples: tuple[tuple[Mapping[str, str], str], ...]
    ) -> None:
        house = house_of(told(reply(*samples)), "onNoData: 0")

        with pytest.raises(NoSampleError, match="there is no object 'typo-0'"):
            ask(house, ByName("typo-0"))

    def test_a_value_of_one_that_is_gone_is_still_its_value(self) -> None:
        house = house_of(told(reply(pod("gone-0", "3"))), "onNoData: 0")

        assert ask(house, ByName("gone-0")).values == (("gone-0", 3.0),)

    def test_nothing_stands_in_while_it_is_not_known_which_there_are(self) -> None:
        objects = MadeUpObjects({"shop": ["web-0"]}, not_synced=True)
        house = make_house(told(reply()), rules=rules("onNoData: 0"), objects=objects)

        with pytest.raises(ObjectsNotKnownError):
            ask(house, ByName("web-0"))
        objects.not_synced = False
        assert ask(house, ByName("web-0")).values == (("web-0", 0.0),)

    def test_without_a_value_for_no_data_nobody_asks(self) -> None:
        objects = MadeUpObjects({"shop": ["web-0"]}, not_synced=True)
        house = make_house(told(reply()), rules=rules(), objects=objects)

        with pytest.raises(NoSampleError):
            ask(house, ByName("web-0"))


class TestAfterAnOutage:
    """A Prometheus that was away did not scrape, and knows for minutes less than there is."""

    @staticmethod
    def stands_in(house: House) -> list[bool]:
        """Return whether the rule's value is served: for a pod by its name, for several, as external metric."""
        found: list[bool] = []
        for one in (lambda: ask(house, ByName("web-0")), lambda: ask(house), lambda: ask_external(house)):
            try:
                found.append(one().warnings == (STANDS_IN,))
            except NoDataUncertainError:
                found.append(False)
        return found

    @pytest.mark.parametrize("away", [85, 330])
    def test_nothing_stands_in_until_all_that_is_looked_back_over_was_scraped(self, away: float) -> None:
        prometheus = told(reply())
        house = house_of(prometheus, "onNoData: 0")
        assert self.stands_in(house) == [True] * 3
        prometheus.answer = lambda _query: DOWN
        house.pass_time(away)
        prometheus.answer = lambda _query: reply()
        house.pass_time(40)

        with pytest.raises(NoDataUncertainError, match=r"back, for only \d\d s: .* is not known before 300 s"):
            ask(house, ByName("web-0"))
        for _ in range(12):
            house.pass_time(20)
            assert self.stands_in(house) == [False] * 3
        house.pass_time(35)
        assert self.stands_in(house) == [True] * 3

    def test_values_are_served_at_once(self) -> None:
        prometheus = told(reply(pod("web-0", "1")))
        house = house_of(prometheus, "onNoData: 0")
        ask(house)
        prometheus.answer = lambda _query: DOWN
        house.pass_time(85)
        prometheus.answer = lambda _query: reply(pod("web-0", "2"))
        house.pass_time(10)

        assert ask(house, ByName("web-0")).values == (("web-0", 2.0),)

    def test_a_range_comes_on_top(self) -> None:
        text = rules("onNoData: 0").replace(
            "<<.Series>>{<<.LabelMatchers>>}", "rate(<<.Series>>{<<.LabelMatchers>>}[10m])"
        )
        prometheus = told(reply())
        house = make_house(prometheus, rules=text)
        prometheus.answer = lambda _query: DOWN
        with pytest.raises(SourceUnreachableError):
            ask(house)
        prometheus.answer = lambda _query: reply()
        house.pass_time(880)
        with pytest.raises(NoDataUncertainError, match="is not known before 900 s"):
            ask(house)
        house.pass_time(40)
        assert self.stands_in(house) == [True] * 3

    def test_an_outage_that_only_a_look_up_met_counts(self) -> None:
        prometheus = told(reply())
        prometheus.series_answer = lambda _selector: DOWN
        house = house_of(prometheus, "onNoData: 0")
        house.pass_time(70)
        prometheus.series_answer = lambda _selector: ()
        house.pass_time(70)

        assert self.stands_in(house) == [False] * 3

    def test_at_the_start_prometheus_s_own_start_counts(self) -> None:
        house = make_house(
            told(reply()), rules=rules("onNoData: 0"), started=lambda _timeout: Started(START - 299, START - 298)
        )
        assert self.stands_in(house) == [False] * 3
        house.pass_time(30)
        assert self.stands_in(house) == [True] * 3

    def test_where_that_is_not_told_the_first_answer_counts(self) -> None:
        house = make_house(told(reply()), rules=rules("onNoData: 0"), started=None)
        assert self.stands_in(house) == [False] * 3
        house.pass_time(280)
        assert self.stands_in(house) == [False] * 3
        house.pass_time(60)
        assert self.stands_in(house) == [True] * 3

    def test_prometheus_is_asked_for_its_start_in_the_background_alone(self) -> None:
        asked: list[float] = []
        threads = Threads(held=True)

        def started(timeout: float) -> Started:
            asked.append(timeout)
            return Started(0.0, 0.0)

        house = make_house(told(reply()), rules=rules("onNoData: 0"), submit=threads, started=started)
        with pytest.raises(SourceSlowError):
            ask(house)
        assert asked == []
        threads.run()
        assert ask(house).warnings == (STANDS_IN,)
        for _ in range(20):
            ask(house)
        assert len(asked) == 1

    def test_rules_without_a_value_for_no_data_never_ask_it(self) -> None:
        asked: list[float] = []

        def started(timeout: float) -> Started:
            asked.append(timeout)
            return Started(0.0, 0.0)

        house = make_house(told(reply()), rules=rules(), started=started)
        ask(house)
        house.pass_time(60)
        assert asked == []


class TestSampleAge:
    def test_values_of_young_samples_are_served(self) -> None:
        prometheus = told(reply(pod("web-0", "1"), pod("web-1", "2")), reply(at("web-0", 5), at("web-1", 9)))
        house = house_of(prometheus, "maxSampleAge: 10s")

        assert ask(house) == ObjectsAnswer((("web-0", 1.0), ("web-1", 2.0)), SECOND)
        assert house.counter("tidewatch_adapter_dropped_samples_total", reason="stale") == 0

    def test_both_queries_are_of_one_instant_and_the_times_come_first(self) -> None:
        prometheus = told(reply(pod("web-0", "1")), reply(at("web-0", 5)))
        ask(house_of(prometheus, "maxSampleAge: 10s"))

        matchers = 'rps{namespace="shop",pod!=""}'
        assert prometheus.asked == [f"min by (pod) (timestamp({matchers}))", f"sum by (pod) ({matchers})"]
        assert prometheus.times == [SECOND, SECOND]

    def test_an_object_whose_samples_are_too_old_has_no_value(self) -> None:
        house = house_of(told(reply(pod("web-0", "1")), reply(at("web-0", 130))), "maxSampleAge: 2m")

        said = r"'web-0' has no value: its series' last samples are 130\.\d s old, and the rule allows 120 s"
        with pytest.raises(SampleTooOldError, match=said):
            ask(house, ByName("web-0"))
        with pytest.raises(SampleTooOldError, match=said):
            ask(house)
        assert house.counter("tidewatch_adapter_dropped_samples_total", reason="stale") == 1

    def test_in_a_list_it_is_left_out_with_a_warning(self) -> None:
        prometheus = told(reply(pod("web-0", "1"), pod("web-1", "2")), reply(at("web-0", 130), at("web-1", 1)))
        house = house_of(prometheus, "maxSampleAge: 2m")

        warning = "1 of 2 objects are left out: their samples are older than 120 s"
        assert ask(house) == ObjectsAnswer((("web-1", 2.0),), SECOND, (warning,))

    def test_a_value_whose_series_have_no_current_sample_is_too_old(self) -> None:
        house = house_of(told(reply(pod("web-0", "1"))), "maxSampleAge: 2m")

        with pytest.raises(SampleTooOldError, match="Prometheus has no current sample of its series"):
            ask(house, ByName("web-0"))

    def test_the_age_is_that_at_the_moment_of_the_answer(self) -> None:
        prometheus = told(reply(pod("web-0", "1")), reply(at("web-0", 5)))
        house = house_of(prometheus, "maxSampleAge: 30s")
        ask(house)
        house.clock.forward(24)
        assert ask(house).values == (("web-0", 1.0),)
        house.clock.forward(1)

        with pytest.raises(SampleTooOldError, match=r"30\.2 s old"):
            ask(house)

    def test_a_wall_clock_set_back_makes_no_sample_young_again(self) -> None:
        house = house_of(told(reply(pod("web-0", "1")), reply(at("web-0", 5))), "maxSampleAge: 30s")
        ask(house)
        house.clock.forward(40)
        house.clock.wall_offset -= 40

        with pytest.raises(SampleTooOldError):
            ask(house)

    @pytest.mark.parametrize("times", [DOWN, QueryRefusedError("q", "execution", "too many samples")])
    def test_a_value_is_not_served_unless_its_age_is_known(self, times: PrometheusError) -> None:
        house = house_of(told(reply(pod("web-0", "1")), times), "maxSampleAge: 2m")

        with pytest.raises(ReadingError, match="the age of its samples"):
            ask(house)
        with pytest.raises(ReadingError, match="the age of its samples"):
            ask_external(house)

    def test_any_aged_series_of_an_asker_fails_an_external_metric(self) -> None:
        rows = reply(({"namespace": "shop", "queue": "a"}, "1"), ({"namespace": "shop", "queue": "b"}, "2"))
        times = reply(
            ({"namespace": "shop", "queue": "a"}, str(SECOND - 3)),
            ({"namespace": "shop", "queue": "b"}, str(SECOND - 31)),
        )
        house = house_of(told(rows, times), "maxSampleAge: 30s")

        assert ask_external(house, "queue=a").rows == (Row({"namespace": "shop", "queue": "a"}, 1.0),)
        for _ in range(3):
            with pytest.raises(SampleTooOldError, match=r"31\.\d s old"):
                ask_external(house, "queue=b")
        assert house.counter("tidewatch_adapter_dropped_samples_total", reason="stale") == 1, "counted once"

    def test_of_rows_without_any_time_none_is_served(self) -> None:
        house = house_of(told(reply(({"namespace": "shop"}, "0"))), "maxSampleAge: 30s")

        with pytest.raises(SampleTooOldError, match="no current sample"):
            ask_external(house)

    def test_no_value_stands_for_what_is_too_old(self) -> None:
        prometheus = told(reply(pod("web-0", "1")), reply(at("web-0", 130)))
        house = house_of(prometheus, "maxSampleAge: 2m", "onNoData: 0")
        with pytest.raises(SampleTooOldError):
            ask(house, ByName("web-0"))
        with pytest.raises(SampleTooOldError):
            ask(house)
        assert ask(house, ByName("web-1")).values == (("web-1", 0.0),)

    @pytest.mark.parametrize("keys", [(), ("onNoData: 0",)], ids=["no value", "a value"])
    def test_where_a_rate_has_ended_before_its_samples_they_are_too_old(self, keys: tuple[str, ...]) -> None:
        house = house_of(told(reply(), reply(at("web-1", 130))), "maxSampleAge: 2m", *keys)
        for which in (WEB, ByName("web-1")):
            with pytest.raises(SampleTooOldError, match=r"'web-1' has no value: its series' last samples are 130"):
                ask(house, which)
        external = house_of(told(reply(), reply(({"namespace": "shop"}, str(SECOND - 130)))), "maxSampleAge: 2m", *keys)
        with pytest.raises(SampleTooOldError):
            ask_external(external)

    @pytest.mark.parametrize("which", [ByName("web-0"), WEB], ids=["by name", "in a list"])
    def test_young_samples_of_which_the_query_makes_no_value_are_more_than_no_data(
        self, which: ByName | BySelector
    ) -> None:
        """As a `rate` of one sample, and a join with what is missing."""
        house = house_of(told(reply(), reply(at("web-0", 1))), "maxSampleAge: 2m", "onNoData: 0")

        with pytest.raises(NoDataUncertainError, match="'web-0' has no value: there are samples"):
            ask(house, which)
        assert ask(house, ByName("web-1")).values == (("web-1", 0.0),)

    def test_young_samples_of_an_external_metric_are_more_than_no_data(self) -> None:
        house = house_of(
            told(reply(), reply(({"namespace": "shop"}, str(SECOND - 1)))), "maxSampleAge: 2m", "onNoData: 0"
        )

        with pytest.raises(NoDataUncertainError, match="the metric has no value: there are samples"):
            ask_external(house)

    def test_of_young_samples_a_ratio_without_traffic_is_no_data(self) -> None:
        house = house_of(told(reply(pod("web-0", "NaN")), reply(at("web-0", 1))), "maxSampleAge: 2m", "onNoData: 0")
        assert ask(house, ByName("web-0")).values == (("web-0", 0.0),)
        nan = reply(({"namespace": "shop"}, "NaN"))
        external = house_of(told(nan, reply(({"namespace": "shop"}, str(SECOND)))), "maxSampleAge: 2m", "onNoData: 0")
        assert ask_external(external).rows == (Row({}, 0.0),)

    def test_a_part_of_the_times_is_none(self) -> None:
        times = reply(at("web-0", 1), warnings=["a store did not answer"])
        with pytest.raises(PartialAnswerError, match="the age of its samples"):
            ask(house_of(told(reply(pod("web-0", "1")), times), "maxSampleAge: 2m"))

    def test_a_plan_that_gives_other_times_is_not_trusted(self) -> None:
        def one_second_younger_by_the_wider_query(query: str) -> Reply:
            if query.startswith("min"):
                return reply(at("web-0", 1 if 'pod!=""' in query else 2))
            return reply(pod("web-0", "1"))

        prometheus = ScriptedPrometheus(answer=one_second_younger_by_the_wider_query)
        house = make_house(prometheus, rules=rules("maxSampleAge: 1h"), cross_checks=True)
        for _ in range(25):
            ask(house)
            house.pass_time(10)
        assert house.counter("tidewatch_adapter_rule_plan_distrusted", rule="rules[0]") == 1

    def test_a_rule_that_is_asked_exactly_is_guarded_for_the_same_objects(self) -> None:
        prometheus = told(reply(pod("web-0", "1"), pod("web-1", "2")), reply(at("web-0", 1), at("web-1", 99)))
        house = house_of(prometheus, "maxSampleAge: 30s")

        assert ask(house, name="picked").values == (("web-0", 1.0),)
        assert [query.count('pod=~"web-0|web-1"') for query in prometheus.asked] == [1, 1]

    def test_many_askers_cost_one_pair_of_queries(self) -> None:
        prometheus = told(reply(pod("web-0", "1")), reply(at("web-0", 1)))
        house = house_of(prometheus, "maxSampleAge: 30s")
        for which in (WEB, ByName("web-0"), BySelector(EVERYTHING)):
            ask(house, which)

        assert len(prometheus.asked) == 2

    def test_a_refused_query_for_times_narrows_the_plan_of_both(self) -> None:
        def refuse_the_namespaces(query: str) -> Reply | PrometheusError:
            if query.startswith("min"):
                return QueryRefusedError("q", "execution", "too many") if 'pod!=""' in query else reply(at("web-0", 1))
            return reply(pod("web-0", "1"))

        house = house_of(ScriptedPrometheus(answer=refuse_the_namespaces), "maxSampleAge: 30s")

        assert ask(house, ByName("web-0")).values == (("web-0", 1.0),)
        assert house.counter("tidewatch_adapter_rule_plan", rule="rules[0]", plan="exact") == 1

    def test_a_reload_that_changes_the_limit_alone_loses_no_reading(self) -> None:
        prometheus = told(reply(pod("web-0", "1")), reply(at("web-0", 20)))
        house = house_of(prometheus, "maxSampleAge: 30s")
        ask(house)
        asked = len(prometheus.asked)
        house.readings.replace_rulebook(rulebook_of(rules("maxSampleAge: 10s")))

        with pytest.raises(SampleTooOldError, match="allows 10 s"):
            ask(house)
        assert len(prometheus.asked) == asked

    def test_a_reload_that_brings_a_limit_serves_nothing_unchecked(self) -> None:
        prometheus = told(reply(pod("web-0", "1")), reply(at("web-0", 20)))
        house = house_of(prometheus)
        assert ask(house).values == (("web-0", 1.0),)
        house.readings.replace_rulebook(rulebook_of(rules("maxSampleAge: 10s")))

        with pytest.raises(SampleTooOldError):
            ask(house)


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
