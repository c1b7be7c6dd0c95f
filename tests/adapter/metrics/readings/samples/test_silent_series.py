"""Series that fall silent: they count as too old, and not as gone, once they have left Prometheus's look-back."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.objects.selectors import parse_selector
from adapter.foundation.sources.prometheus.backends.backend import Backend
from adapter.foundation.sources.prometheus.errors import QueryRefusedError
from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
from adapter.foundation.time.pace import UNPACED
from adapter.metrics.readings.errors import ReadingError, SampleTooOldError
from adapter.metrics.readings.samples import silent_series
from adapter.metrics.readings.samples.silent_series import (
    MOST_OF_ALL,
    MOST_OF_ALL_METRICS,
    MOST_OF_NAMESPACE,
    SilentSeries,
)
from adapter.metrics.rulebook.requests import Row
from adapter.metrics.rulebook.templates.template import parse_query_template
from tests.support.readings import MadeUpObjects, ScriptedPrometheus, make_harness, reply, rulebook_of
from tests.support.rule_objects import rule_object

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.readings import Harness, Reply

LOOK_BACK = 300.0
FROZEN = {"namespace": "shop", "queue": "a", "shard": "2"}
SHARDS = [{"namespace": "shop", "queue": "a", "shard": number} for number in "01"] + [FROZEN]
OTHERS = [{"namespace": "shop", "queue": "b", "shard": "0"}, {"namespace": "bank", "queue": "a", "shard": "0"}]


def rules(*keys: str) -> str:
    more = "".join(f"  {key}\n" for key in keys)
    return f"""
externalRules:
- seriesQuery: 'depth{{namespace!=""}}'
  resources: {{overrides: {{namespace: {{resource: namespace}}}}}}
  metricsQuery: 'sum(<<.Series>>{{<<.LabelMatchers>>}})'
{more}"""


@dataclass
class Shards:
    """A Prometheus with a few series of the value 38, and with its look-back; it answers one rule's queries only."""

    series: list[dict[str, str]] = field(default_factory=lambda: [*SHARDS, *OTHERS])
    silent_since: dict[str, float] = field(default_factory=dict)
    """The time of the last sample of each silent shard of the queue `a` in `shop`."""
    refuse_wide: bool = False
    look_back: float = LOOK_BACK

    def __post_init__(self) -> None:
        self.prometheus = ScriptedPrometheus(answer=self._answer)

    def silence(self, harness: Harness) -> None:
        self.silent_since[FROZEN["shard"]] = harness.clock.clock.wall()

    def _answer(self, query: str) -> Reply | QueryRefusedError:
        if self.refuse_wide and 'namespace!=""' in query:
            return QueryRefusedError(query, "execution", "no")
        now = self.prometheus.times[-1] or 0.0
        wanted, unwanted = re.findall(r'(\w+)="(\w+)"', query), re.findall(r'(\w+)!="(\w+)"', query)
        there = [
            (labels, moment)
            for labels in self.series
            if all(labels[label] == value for label, value in wanted)
            and not any(labels[label] == value for label, value in unwanted)
            and now - (moment := self._last(labels, now)) < self.look_back
        ]
        if "timestamp(" in query:
            return reply(*((labels, str(moment)) for labels, moment in there))
        sums: defaultdict[tuple[tuple[str, str], ...], float] = defaultdict(float)
        by = re.findall(r"\w+", (re.findall(r"by \(([^)]*)\)", query) or [""])[0])
        for labels, _ in there:
            sums[tuple((label, labels[label]) for label in by)] += 38
        return reply(*((dict(key), str(value)) for key, value in sums.items()))

    def _last(self, labels: dict[str, str], now: float) -> float:
        is_own = labels in SHARDS
        return self.silent_since.get(labels["shard"], now - 1) if is_own else now - 1


def sum_of(
    harness: Harness, selector: str = "queue=a", namespace: str = "shop", name: str = "depth"
) -> float | type[ReadingError]:
    own = harness.readings.catalogue_of(namespace).find_external(name)
    try:
        rows = harness.readings.external(own or harness.external(name), namespace, parse_selector(selector)).rows
    except ReadingError as error:
        return type(error)
    return sum(row.value for row in rows)


def answers(harness: Harness, seconds: float, **request: str) -> list[float | type[ReadingError]]:
    """Send a request every five seconds, and return the answers; equal ones that follow each other are listed once."""
    found: list[float | type[ReadingError]] = []
    for _ in range(int(seconds / 5)):
        answer = sum_of(harness, **request)
        found += [] if found[-1:] == [answer] else [answer]
        harness.pass_time(5, step=5)
    return found


def guarded(*keys: str, limit: str = "10s") -> tuple[Shards, Harness]:
    shards = Shards()
    own = rules(f"maxSampleAge: {limit}", *keys)
    return shards, make_harness(shards.prometheus, rules=own, objects=MadeUpObjects())


def test_a_sum_is_an_error_until_a_silent_series_is_back() -> None:
    shards, harness = guarded()
    assert answers(harness, 30) == [114.0]
    shards.silence(harness)
    assert answers(harness, 900) == [114.0, SampleTooOldError]
    shards.silent_since.clear()
    assert answers(harness, 60) == [SampleTooOldError, 114.0]


def test_a_silent_series_is_held_for_half_an_hour_after_its_last_sample() -> None:
    shards, harness = guarded()
    sum_of(harness)
    shards.silence(harness)
    assert answers(harness, 1790) == [114.0, SampleTooOldError]
    assert answers(harness, 30) == [SampleTooOldError, 76.0]


@pytest.mark.parametrize("limit", ["5m", "10m", "2h"])
def test_a_sum_lacks_no_series_that_prometheus_has_forgotten_whatever_age_the_rule_allows(limit: str) -> None:
    shards, harness = guarded(limit=limit)
    sum_of(harness)
    shards.silence(harness)
    assert answers(harness, 1790) == [114.0, SampleTooOldError]
    assert answers(harness, 30) == [SampleTooOldError, 76.0]


def test_a_series_that_prometheus_knows_for_longer_than_it_was_said_to_counts_until_the_limit() -> None:
    shards, harness = guarded(limit="10m")
    shards.look_back = 900.0
    sum_of(harness)
    shards.silence(harness)
    assert answers(harness, 590) == [114.0]
    assert answers(harness, 30) == [114.0, SampleTooOldError]


@pytest.mark.parametrize("places", [2, 500])
def test_series_that_are_back_do_not_count_as_lacking_although_they_had_no_places_of_their_own(
    places: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(silent_series, "MOST_OF_NAMESPACE", places)
    shards, harness = guarded(limit="1h")
    sum_of(harness)
    shards.silent_since = dict.fromkeys("012", harness.clock.clock.wall())
    assert answers(harness, 270) == [114.0]
    shards.silent_since.clear()
    assert answers(harness, 1800) == [114.0]


@pytest.mark.parametrize(("key", "held"), [("holdSilent: 6m", 360), ("holdSilent: 40m", 2400)])
def test_the_rule_sets_how_long_a_silent_series_is_held(key: str, held: int) -> None:
    shards, harness = guarded(key)
    sum_of(harness)
    shards.silence(harness)
    assert answers(harness, held - 10) == [114.0, SampleTooOldError]
    assert answers(harness, 30) == [SampleTooOldError, 76.0]


def test_a_series_that_is_marked_stale_is_not_held() -> None:
    shards, harness = guarded()
    answers(harness, 30)
    shards.series.remove(FROZEN)
    assert answers(harness, 30) == [114.0, 76.0]


def test_requests_for_other_series_are_not_affected() -> None:
    shards, harness = guarded()
    shards.silence(harness)
    for _ in range(100):
        sum_of(harness)
        assert sum_of(harness, "queue=b") == 38
        assert sum_of(harness, namespace="bank") == 38
        harness.pass_time(5, step=5)
    assert sum_of(harness, "queue in (a,b)") is SampleTooOldError
    assert sum_of(harness, "shard!=2") == 3 * 38


def no_change(_harness: Harness, _shards: Shards) -> None:
    return


def more_namespaces(harness: Harness, _shards: Shards) -> None:
    for number in range(8):
        sum_of(harness, namespace=f"ns-{number}")
    harness.pass_time(10, step=1)


def refused(harness: Harness, shards: Shards) -> None:
    more_namespaces(harness, shards)
    shards.refuse_wide = True
    harness.pass_time(10, step=1)


def moved(harness: Harness, _shards: Shards) -> None:
    before = """
externalRules:
- seriesQuery: 'other{namespace!=""}'
  resources: {overrides: {namespace: {resource: namespace}}}
  metricsQuery: 'max(<<.Series>>{<<.LabelMatchers>>})'
"""
    own = rules("maxSampleAge: 20s", "window: 1m").replace("\nexternalRules:\n", "")
    harness.readings.replace_rulebook(rulebook_of(before + own))


def silence_of_all(harness: Harness, _shards: Shards) -> None:
    """Send no request until the demand has expired, and the queries with it."""
    harness.pass_time(700, step=5)


@pytest.mark.parametrize("change", [no_change, more_namespaces, refused, moved, silence_of_all])
def test_silent_series_are_remembered_beyond_the_query_that_saw_them(change: Callable[[Harness, Shards], None]) -> None:
    shards, harness = guarded()
    sum_of(harness)
    shards.silence(harness)
    answers(harness, 350)
    change(harness, shards)
    assert answers(harness, 60) == [SampleTooOldError]


@pytest.mark.parametrize("key", ["holdSilent: 0s", "holdSilent: 1m"])
def test_a_rule_can_release_a_series_that_was_removed_on_purpose(key: str) -> None:
    shards, harness = guarded()
    sum_of(harness)
    shards.silence(harness)
    answers(harness, 350)
    harness.readings.replace_rulebook(rulebook_of(rules("maxSampleAge: 10s", key)))
    assert answers(harness, 10) == [76.0]


@pytest.mark.parametrize("others", ["holdSilent: 0s", "holdSilent: 6m"])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_rule_that_shares_the_query_releases_a_series_only_for_itself(others: str, *, is_first: bool) -> None:
    own = rules("maxSampleAge: 10s")
    other = rules("name: {as: other}", "maxSampleAge: 10s", others).replace("\nexternalRules:\n", "")
    shards = Shards()
    harness = make_harness(shards.prometheus, rules=own + other, objects=MadeUpObjects())
    for name in ("other", "depth") if is_first else ("depth", "other"):
        assert sum_of(harness, name=name) == 114.0
    shards.silence(harness)
    found: list[tuple[float | type[ReadingError], ...]] = []
    for _ in range(350):
        harness.pass_time(5, step=5)
        found.append((sum_of(harness), sum_of(harness, name="other")))
    asked = [query for query in shards.prometheus.asked if "timestamp(" not in query]
    assert len(set(asked)) == 1, "they share the query"
    assert found[-1] == (SampleTooOldError, 76.0)
    assert {own for own, _ in found} == {114.0, SampleTooOldError}


def test_a_rule_object_releases_a_series_by_excluding_it() -> None:
    shards = Shards()
    harness = make_harness(shards.prometheus, rules="rules: []\n", objects=MadeUpObjects())

    def serve(query: str) -> None:
        rule = {"seriesQuery": "depth", "metricsQuery": query, "maxSampleAge": "10s"}
        harness.readings.replace_rule_objects([rule_object({"api": "external", "rule": rule})])

    serve("sum(<<.Series>>{<<.LabelMatchers>>})")
    assert answers(harness, 30) == [114.0]
    shards.silence(harness)
    assert answers(harness, 600) == [114.0, SampleTooOldError]
    serve('sum(<<.Series>>{shard!="2",<<.LabelMatchers>>})')
    assert answers(harness, 30) == [76.0]


@pytest.mark.parametrize("limit", ["10s", "10m"])
def test_a_sum_of_silent_series_alone_has_no_stand_in(limit: str) -> None:
    shards, harness = guarded("onNoData: 0", limit=limit)
    sum_of(harness)
    shards.silent_since = {labels["shard"]: harness.clock.clock.wall() for labels in SHARDS}
    assert answers(harness, 700) == [114.0, SampleTooOldError]


NOW = 1_800_000_000.0
HOLD = 1800.0


def test_memory_is_bounded_and_a_namespace_beyond_its_limit_is_held_as_a_whole() -> None:
    rulebook = rulebook_of(rules("maxSampleAge: 10s"))
    harness = make_harness(ScriptedPrometheus(), rules=rules("maxSampleAge: 10s"))
    metric = harness.external("depth")
    assert metric.rule == rulebook.rules[0]
    silences = SilentSeries(LOOK_BACK)
    spaces = [f"ns-{number}" for number in range(2 * MOST_OF_ALL // MOST_OF_NAMESPACE)]
    rows = [
        Row({"namespace": name, "queue": str(number)}, NOW - 60)
        for name in spaces
        for number in range(MOST_OF_NAMESPACE)
    ]
    rows.append(Row({"namespace": spaces[0], "queue": "one too many"}, NOW - 50))
    silent = silences.after(metric, rows, NOW, HOLD, UNPACED)

    assert silent is not None
    assert silences._held == MOST_OF_ALL
    assert silent.moments(spaces[0], parse_selector("queue=1")) == [NOW - 60]
    assert silent.moments(spaces[0], parse_selector("queue=nobody")) == []
    assert silent.newest_of_others(spaces[0]) == NOW - 50
    assert silent.newest_of_others(spaces[1]) is None
    assert silent.newest_of_others(spaces[-1]) == NOW - 60
    assert silences.after(metric, (), NOW + 1801, HOLD, UNPACED) is None
    assert silences._held == 0
    assert not silences._memories


def test_of_series_beyond_the_places_of_a_namespace_the_newest_moment_is_kept() -> None:
    silences = SilentSeries(LOOK_BACK)
    metric = make_harness(ScriptedPrometheus(), rules=rules("maxSampleAge: 10s")).external("depth")
    rows = [Row({"namespace": "shop", "queue": str(number)}, NOW - 60) for number in range(MOST_OF_NAMESPACE)]
    silent = silences.after(metric, rows, NOW, HOLD, UNPACED)
    assert silent is not None
    assert silent.newest_of_others("shop") is None
    more = [Row({"namespace": "shop", "queue": f"late-{age}"}, NOW - age) for age in (55, 50, 58)]
    silent = silences.after(metric, more, NOW, HOLD, UNPACED)
    assert silent is not None
    assert silent.newest_of_others("shop") == NOW - 50
    assert silent.moments("shop", parse_selector("queue=late-50")) == []


def test_series_of_another_prometheus_or_another_query_are_others() -> None:
    silences = SilentSeries(LOOK_BACK)
    metric = make_harness(ScriptedPrometheus(), rules=rules("maxSampleAge: 10s")).external("depth")
    other_query = parse_query_template("timestamp(<<.Series>>{<<.LabelMatchers>>} or vector(0))")
    assert silences.after(metric, [Row(FROZEN, NOW - 60)], NOW, HOLD, UNPACED) is not None
    elsewhere = Backend.of("elsewhere", PrometheusSettings("http://127.0.0.1:9"))
    for other in (
        replace(metric, rule=replace(metric.rule, backend=elsewhere)),
        replace(metric, rule=replace(metric.rule, times_query=other_query)),
        replace(metric, series="length"),
    ):
        assert silences.after(other, (), NOW, HOLD, UNPACED) is None


def test_silent_series_of_one_namespace_do_not_displace_those_of_others() -> None:
    metric = make_harness(ScriptedPrometheus(), rules=rules("maxSampleAge: 10s")).external("depth")
    silences = SilentSeries(LOOK_BACK)
    for number in range(2 * MOST_OF_ALL // MOST_OF_NAMESPACE):
        rows = [Row({"namespace": "loud", "queue": str(queue)}, NOW - 60) for queue in range(MOST_OF_NAMESPACE)]
        silences.after(replace(metric, series=f"depth_{number}"), rows, NOW, HOLD, UNPACED)
    assert silences._held == MOST_OF_ALL_METRICS
    silent = silences.after(metric, [Row(FROZEN, NOW - 60)], NOW, HOLD, UNPACED)
    assert silent is not None
    assert silent.moments("shop", parse_selector("queue=a")) == [NOW - 60]
    assert silent.moments("shop", parse_selector("queue=b")) == []
    assert silences.after(metric, [Row(FROZEN, NOW)], NOW, HOLD, UNPACED) is None, "it is back, so nothing is held"
    assert silences.after(metric, (), NOW + 1801, HOLD, UNPACED) is None
    for _ in silences._memories.copy():
        silences.after(metric, (), NOW + 1801, HOLD, UNPACED)
    assert not silences._held_of


@pytest.mark.parametrize("holds", [(90.0, HOLD), (HOLD, 90.0)])
def test_the_longest_time_for_which_any_rule_holds_a_series_counts(holds: tuple[float, float]) -> None:
    silences = SilentSeries(LOOK_BACK)
    metric = make_harness(ScriptedPrometheus(), rules=rules("maxSampleAge: 10s")).external("depth")
    for hold in holds:
        silences.after(metric, [Row(FROZEN, NOW - 60)], NOW, hold, UNPACED)
    assert silences.after(metric, (), NOW + 900, 90.0, UNPACED) is not None
    assert silences.after(metric, (), NOW + 1801, 90.0, UNPACED) is None


@pytest.mark.parametrize("ages", [(120.0, 60.0), (60.0, 120.0)], ids=["a later sample", "a late answer"])
def test_a_silent_series_is_held_from_its_newest_sample(ages: tuple[float, float]) -> None:
    """It may have had a sample between two answers and be silent again in both."""
    silences = SilentSeries(LOOK_BACK)
    metric = make_harness(ScriptedPrometheus(), rules=rules("maxSampleAge: 10s")).external("depth")
    for age in ages:
        silent = silences.after(metric, [Row(FROZEN, NOW - age)], NOW, HOLD, UNPACED)
    assert silent is not None
    assert silent.moments("shop", parse_selector("queue=a")) == [NOW - 60]


def test_silent_series_without_requests_are_forgotten() -> None:
    silences = SilentSeries(LOOK_BACK)
    harness = make_harness(ScriptedPrometheus(), rules=rules("maxSampleAge: 10s"))
    other = make_harness(ScriptedPrometheus(), rules=rules("maxSampleAge: 10s").replace("depth", "length"))
    silences.after(harness.external("depth"), [Row(FROZEN, NOW - 60)], NOW, HOLD, UNPACED)
    for later in (3600, 3601):
        row = Row(FROZEN, NOW + later - 60)
        silences.after(other.external("length"), [row], NOW + later, HOLD, UNPACED)
    assert silences._held == 1
