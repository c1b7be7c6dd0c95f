"""`onNoData` gives a value for missing data only where it is known that there is none."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.objects.selectors import parse_selector
from adapter.foundation.sources.prometheus.errors import PrometheusError, PrometheusTimeoutError, QueryRefusedError
from adapter.foundation.sources.prometheus.queries.runtime import Started
from adapter.metrics.readings.answers import ByName, BySelector, ExternalAnswer, ObjectsAnswer
from adapter.metrics.readings.errors import (
    AmbiguousSamplesError,
    AnswerTooOldError,
    NoDataUncertainError,
    NoObjectsMatchError,
    NoSampleError,
    ObjectsNotKnownError,
    PartialAnswerError,
    QueryRefusedByPrometheusError,
    ReadingError,
    SourceSlowError,
    SourceUnreachableError,
)
from adapter.metrics.readings.samples.no_data_and_sample_age import STANDS_IN
from adapter.metrics.rulebook.requests import Row
from tests.adapter.metrics.readings.samples.policies_harness import (
    DOWN,
    SECOND,
    ask,
    ask_external,
    harness_of,
    pod,
    rules,
    scripted,
)
from tests.support.readings import START, Harness, MadeUpObjects, Reply, Threads, make_harness, reply

if TYPE_CHECKING:
    from collections.abc import Mapping


NO_PODS = BySelector(parse_selector("app=nobody"))


class TestNoData:
    @pytest.mark.parametrize("samples", [(), (pod("web-0", "NaN"),), (pod("web-0", "NaN"), pod("web-1", "NaN"))])
    def test_all_objects_get_the_stand_in_if_none_has_data(
        self, samples: tuple[tuple[Mapping[str, str], str], ...]
    ) -> None:
        harness = harness_of(scripted(reply(*samples)), "onNoData: 7")

        assert ask(harness) == ObjectsAnswer((("web-0", 7.0), ("web-1", 7.0)), SECOND, (STANDS_IN,))
        assert ask(harness, ByName("web-1")) == ObjectsAnswer((("web-1", 7.0),), SECOND, (STANDS_IN,))

    def test_objects_without_data_get_no_stand_in_if_others_have_data(self) -> None:
        harness = harness_of(scripted(reply(pod("web-1", "3"))), "onNoData: 7")

        assert ask(harness) == ObjectsAnswer((("web-1", 3.0),), SECOND)
        assert ask(harness, ByName("web-0")).values == (("web-0", 7.0),), "by its name it is all that is requested"

    @pytest.mark.parametrize("answer", [reply(), reply(({"namespace": "shop", "queue": "a"}, "NaN"))])
    def test_the_stand_in_of_an_external_metric_is_one_row_without_labels(self, answer: Reply) -> None:
        harness = harness_of(scripted(answer), "onNoData: 0")

        assert ask_external(harness) == ExternalAnswer((Row({}, 0.0),), SECOND, (STANDS_IN,))

    def test_a_selector_that_matches_no_row_gets_the_stand_in(self) -> None:
        harness = harness_of(scripted(reply(({"namespace": "shop", "queue": "a"}, "5"))), "onNoData: 0")

        assert ask_external(harness, "queue=a").rows == (Row({"namespace": "shop", "queue": "a"}, 5.0),)
        assert ask_external(harness, "queue=b").rows == (Row({}, 0.0),)

    @pytest.mark.parametrize(
        ("answer", "error"),
        [
            (DOWN, SourceUnreachableError),
            (PrometheusTimeoutError("q", "no answer within 10 s"), SourceSlowError),
            (QueryRefusedError("q", "bad_data", "parse error"), QueryRefusedByPrometheusError),
            (reply(warnings=["a store did not answer"]), PartialAnswerError),
            (reply(infos=["PromQL info: ignored histogram in max aggregation"]), PartialAnswerError),
            (reply(({"namespace": "shop"}, "3")), NoSampleError),
            (reply(pod("web-0", "+Inf")), NoSampleError),
            (reply(pod("web-0", "1", a="1"), pod("web-0", "2", a="2")), AmbiguousSamplesError),
            (reply(pod("web-0", "1"), seconds_late=300), NoSampleError),
        ],
        ids=["down", "late", "refused", "in parts", "ignored", "without a name", "infinite", "twice", "old"],
    )
    def test_the_stand_in_does_not_hide_errors_of_one_object(
        self, answer: Reply | PrometheusError, error: type[ReadingError]
    ) -> None:
        harness = harness_of(scripted(answer), "onNoData: 0")

        with pytest.raises(error):
            ask(harness, ByName("web-0"))

    @pytest.mark.parametrize(
        "answer",
        [reply(({"namespace": "shop"}, "3")), reply(pod("web-0", "-Inf")), reply(pod("web-0", "1"), seconds_late=300)],
        ids=["without a name", "infinite", "old"],
    )
    def test_the_stand_in_does_not_hide_errors_in_a_list(self, answer: Reply) -> None:
        # Without any usable sample a list is empty, or an error that says what is wrong.
        with contextlib.suppress(NoSampleError):
            assert ask(harness_of(scripted(answer), "onNoData: 0")).values == ()

    @pytest.mark.parametrize(
        "answer",
        [reply(({"namespace": "shop"}, "+Inf")), reply(({"namespace": "shop"}, "1"), seconds_late=300)],
        ids=["infinite", "old"],
    )
    def test_the_stand_in_does_not_hide_errors_of_an_external_metric(self, answer: Reply) -> None:
        assert ask_external(harness_of(scripted(answer), "onNoData: 0")) == ExternalAnswer((), SECOND)

    def test_the_stand_in_ends_when_its_answer_is_too_old(self) -> None:
        prometheus = scripted(reply())
        harness = harness_of(prometheus, "onNoData: 0")
        assert ask(harness, ByName("web-0")).values == (("web-0", 0.0),)
        prometheus.answer = lambda _query: DOWN
        harness.pass_time(61)

        with pytest.raises(AnswerTooOldError):
            ask(harness, ByName("web-0"))

    def test_there_is_no_stand_in_if_nobody_knows_how_far_back_the_query_looks(self) -> None:
        text = rules("onNoData: 0").replace(
            "<<.Series>>{<<.LabelMatchers>>}", "rate(<<.Series>>{<<.LabelMatchers>>}[2 * 1h])"
        )
        harness = make_harness(scripted(reply()), rules=text)

        with pytest.raises(NoDataUncertainError, match="write its ranges and offsets as plain durations"):
            ask(harness)

    def test_objects_that_were_not_queried_yet_get_no_stand_in(self) -> None:
        objects = MadeUpObjects({"shop": ["web-0"]})
        harness = make_harness(scripted(reply()), rules=rules("onNoData: 0"), objects=objects)
        assert ask(harness, name="picked").values == (("web-0", 0.0),)
        objects.names_by_namespace["shop"].append("web-1")

        assert ask(harness, name="picked").values == (), "Prometheus has not been queried for web-1"
        harness.pass_time(11)
        assert ask(harness, name="picked").values == (("web-0", 0.0), ("web-1", 0.0))

    def test_a_selector_without_objects_gets_no_stand_in(self) -> None:
        with pytest.raises(NoObjectsMatchError):
            ask(harness_of(scripted(reply()), "onNoData: 0"), NO_PODS)

    @pytest.mark.parametrize("policy", ["error", "empty"])
    def test_other_policies_give_no_stand_in(self, policy: str) -> None:
        harness = harness_of(scripted(reply()), f"onNoData: {policy}")

        assert ask(harness) == ObjectsAnswer((), SECOND)
        assert ask_external(harness) == ExternalAnswer((), SECOND)
        with pytest.raises(NoSampleError):
            ask(harness, ByName("web-0"))


class TestOfObjectsThatAreThere:
    @pytest.mark.parametrize("samples", [(), (pod("web-1", "3"),), (pod("typo-0", "NaN"),)])
    def test_an_object_that_does_not_exist_gets_no_stand_in(
        self, samples: tuple[tuple[Mapping[str, str], str], ...]
    ) -> None:
        harness = harness_of(scripted(reply(*samples)), "onNoData: 0")

        with pytest.raises(NoSampleError, match="there is no object 'typo-0'"):
            ask(harness, ByName("typo-0"))

    def test_an_object_that_is_gone_keeps_its_value(self) -> None:
        harness = harness_of(scripted(reply(pod("gone-0", "3"))), "onNoData: 0")

        assert ask(harness, ByName("gone-0")).values == (("gone-0", 3.0),)

    def test_there_is_no_stand_in_before_the_objects_are_known(self) -> None:
        objects = MadeUpObjects({"shop": ["web-0"]}, not_synced=True)
        harness = make_harness(scripted(reply()), rules=rules("onNoData: 0"), objects=objects)

        with pytest.raises(ObjectsNotKnownError):
            ask(harness, ByName("web-0"))
        objects.not_synced = False
        assert ask(harness, ByName("web-0")).values == (("web-0", 0.0),)

    def test_without_a_stand_in_the_objects_need_not_be_known(self) -> None:
        objects = MadeUpObjects({"shop": ["web-0"]}, not_synced=True)
        harness = make_harness(scripted(reply()), rules=rules(), objects=objects)

        with pytest.raises(NoSampleError):
            ask(harness, ByName("web-0"))


class TestAfterAnOutage:
    """A Prometheus that was down did not scrape, and for minutes it knows less than there is."""

    @staticmethod
    def stands_in(harness: Harness) -> list[bool]:
        """Return whether the rule's value is served for one pod by name, for several, and as an external metric."""
        found: list[bool] = []
        for one in (lambda: ask(harness, ByName("web-0")), lambda: ask(harness), lambda: ask_external(harness)):
            try:
                found.append(one().warnings == (STANDS_IN,))
            except NoDataUncertainError:
                found.append(False)
        return found

    @pytest.mark.parametrize("away", [85, 330])
    def test_there_is_no_stand_in_until_the_whole_look_back_was_scraped(self, away: float) -> None:
        prometheus = scripted(reply())
        harness = harness_of(prometheus, "onNoData: 0")
        assert self.stands_in(harness) == [True] * 3
        prometheus.answer = lambda _query: DOWN
        harness.pass_time(away)
        prometheus.answer = lambda _query: reply()
        harness.pass_time(40)

        with pytest.raises(NoDataUncertainError, match=r"back, for only \d\d s: .* is not known before 300 s"):
            ask(harness, ByName("web-0"))
        for _ in range(12):
            harness.pass_time(20)
            assert self.stands_in(harness) == [False] * 3
        harness.pass_time(35)
        assert self.stands_in(harness) == [True] * 3

    def test_values_are_served_at_once_after_an_outage(self) -> None:
        prometheus = scripted(reply(pod("web-0", "1")))
        harness = harness_of(prometheus, "onNoData: 0")
        ask(harness)
        prometheus.answer = lambda _query: DOWN
        harness.pass_time(85)
        prometheus.answer = lambda _query: reply(pod("web-0", "2"))
        harness.pass_time(10)

        assert ask(harness, ByName("web-0")).values == (("web-0", 2.0),)

    def test_the_range_of_the_query_is_added_to_the_look_back(self) -> None:
        text = rules("onNoData: 0").replace(
            "<<.Series>>{<<.LabelMatchers>>}", "rate(<<.Series>>{<<.LabelMatchers>>}[10m])"
        )
        prometheus = scripted(reply())
        harness = make_harness(prometheus, rules=text)
        prometheus.answer = lambda _query: DOWN
        with pytest.raises(SourceUnreachableError):
            ask(harness)
        prometheus.answer = lambda _query: reply()
        harness.pass_time(880)
        with pytest.raises(NoDataUncertainError, match="is not known before 900 s"):
            ask(harness)
        harness.pass_time(40)
        assert self.stands_in(harness) == [True] * 3

    def test_an_outage_seen_only_by_a_look_up_counts(self) -> None:
        prometheus = scripted(reply())
        prometheus.series_answer = lambda _selector: DOWN
        harness = harness_of(prometheus, "onNoData: 0")
        harness.pass_time(70)
        prometheus.series_answer = lambda _selector: ()
        harness.pass_time(70)

        assert self.stands_in(harness) == [False] * 3

    def test_the_start_time_of_prometheus_counts_at_first(self) -> None:
        harness = make_harness(
            scripted(reply()), rules=rules("onNoData: 0"), started=lambda _timeout: Started(START - 299, START - 298)
        )
        assert self.stands_in(harness) == [False] * 3
        harness.pass_time(30)
        assert self.stands_in(harness) == [True] * 3

    def test_the_first_answer_counts_if_the_start_time_is_unknown(self) -> None:
        harness = make_harness(scripted(reply()), rules=rules("onNoData: 0"), started=None)
        assert self.stands_in(harness) == [False] * 3
        harness.pass_time(280)
        assert self.stands_in(harness) == [False] * 3
        harness.pass_time(60)
        assert self.stands_in(harness) == [True] * 3

    def test_the_start_time_of_prometheus_is_fetched_only_in_the_background(self) -> None:
        timeouts: list[float] = []
        threads = Threads(held=True)

        def started(timeout: float) -> Started:
            timeouts.append(timeout)
            return Started(0.0, 0.0)

        harness = make_harness(scripted(reply()), rules=rules("onNoData: 0"), submit=threads, started=started)
        with pytest.raises(SourceSlowError):
            ask(harness)
        assert timeouts == []
        threads.run()
        assert ask(harness).warnings == (STANDS_IN,)
        for _ in range(20):
            ask(harness)
        assert len(timeouts) == 1

    def test_the_start_time_is_not_fetched_for_rules_without_a_stand_in(self) -> None:
        timeouts: list[float] = []

        def started(timeout: float) -> Started:
            timeouts.append(timeout)
            return Started(0.0, 0.0)

        harness = make_harness(scripted(reply()), rules=rules(), started=started)
        ask(harness)
        harness.pass_time(60)
        assert timeouts == []
