"""Policies of single rules, tried with the real program and a real Prometheus whose series stop."""

from __future__ import annotations

import time
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.caller import CUSTOM
from tests.support.harnesses import HOUR_SECONDS, NAMESPACES, PODS, Harness, ask_prometheus
from tests.support.serving import Adapter, Trust, eventually, listed, pod

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from demo.machine.prometheus import PrometheusProcess
    from tests.support.caller import Answer, Caller

STEP_SECONDS = 2
ENDINGS = range(4, 60, 4)
"""At each of these seconds after the start one series ends; it is backfilled, so Prometheus does not mark its end."""
_ENDED_BEFORE_SECONDS = 60
LIMIT_SECONDS = 4
"""Twice the distance between two samples."""
LIMIT = f"maxSampleAge: {LIMIT_SECONDS}s"
FLAGS = ("--refresh-interval=1s", "--prometheus-look-back=1s")
"""After these flags, Prometheus needs to be up for one second before values stand in for missing data."""


def rule(series: str, resources: str, query: str, *keys: str) -> str:
    return "\n".join(
        [f"- seriesQuery: '{series}'", f"  resources: {resources}", f"  metricsQuery: '{query}'"]
        + [f"  {key}" for key in keys]
    )


SUM_BY = "sum by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})"
SUM = "sum(<<.Series>>{<<.LabelMatchers>>})"
RULES = "\n".join(
    [
        "rules:",
        rule("load", PODS, SUM_BY, LIMIT, "onNoData: 0"),
        rule("load", PODS, SUM_BY, "name: {as: unguarded}"),
        rule("load", PODS, f"{SUM_BY} / {SUM_BY.replace('<<.Series>>', 'base')}", "name: {as: ratio}", LIMIT),
        rule("nothing", PODS, SUM_BY, "onNoData: 2500m", "window: 90s"),
        rule("nothing", PODS, SUM_BY, "name: {as: nothing_is_an_error}", "onNoData: error"),
        rule("clock", PODS, SUM_BY, "name: {as: seldom}", "refresh: 45s"),
        # Not the same query: of two rules that share one the shorter refresh counts.
        rule("clock", PODS, SUM_BY.replace("sum", "max"), "name: {as: often}"),
        "externalRules:",
        rule("queue", NAMESPACES, SUM, LIMIT, "window: 1m"),
        rule("no_queue", NAMESPACES, SUM, "onNoData: {value: 0}"),
        "",
    ]
)
OBJECTS: dict[str, Any] = {
    "pods.json": listed(
        *(pod(f"{app}-0", app=app, part="load") for app in ("steady", "ended", "silent")),
        *(pod(f"ending-{seconds}", app="ending", part="load") for seconds in ENDINGS),
    )
}


def _samples_at(now: int) -> list[str]:
    ends = {
        "steady-0": now + HOUR_SECONDS,
        "ended-0": now - _ENDED_BEFORE_SECONDS,
        "calm-0": now + HOUR_SECONDS,
        **{f"ending-{seconds}": now + seconds for seconds in ENDINGS},
    }
    lines = [
        f'load{{namespace="shop",pod="{name}"}} {VALUES.get(name, 2)} {moment}'
        for name, end in ends.items()
        for moment in range(now - 120, end + 1, STEP_SECONDS)
    ]
    lines += [
        f'base{{namespace="shop",pod="{name}"}} 2 {moment}'
        for name, end in (("steady-0", ends["steady-0"]), ("calm-0", ends["ended-0"]))
        for moment in range(now - 120, end + 1, STEP_SECONDS)
    ]
    lines += [
        f'queue{{namespace="shop",queue="{name}"}} 10 {moment}'
        for name, end in ends.items()
        for moment in range(now - 120, end + 1, STEP_SECONDS)
    ]
    return lines + [
        f'clock{{namespace="shop",pod="steady-0"}} {moment} {moment}'
        for moment in range(now - 60, now + HOUR_SECONDS, STEP_SECONDS)
    ]


VALUES = {"steady-0": 1, "ended-0": 3, "calm-0": 4}
"""Values of `load`; series that end have the value 2."""
HARNESS = Harness(RULES, OBJECTS, _samples_at)
EMPTY_HARNESS = Harness(RULES, OBJECTS, lambda now: [f"anything 1 {now}"])


@dataclass
class Running:
    prometheus: PrometheusProcess
    adapter: Adapter


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, trust: Trust) -> Iterator[Running]:
    with HARNESS.running(tmp_path_factory.mktemp("policies"), trust, *FLAGS) as (prometheus, adapter):
        eventually(lambda: adapter.plain("/readyz").status == 200)
        yield Running(prometheus, adapter)


@pytest.fixture
def caller(running: Running) -> Iterator[Caller]:
    with running.adapter.caller() as caller:
        yield caller


def one(caller: Caller, metric: str, pod_name: str) -> Answer:
    return caller.get(f"{CUSTOM}/v1beta2/namespaces/shop/pods/{pod_name}/{metric}")


def next_ending_pod(running: Running) -> str:
    """Return the pod whose series end next, but not those that end immediately."""
    soon = time.time() + 2 * STEP_SECONDS
    for seconds in ENDINGS:
        name = f"ending-{seconds}"
        if ask_prometheus(running.prometheus, f'last_over_time(load{{pod="{name}"}}[{STEP_SECONDS}s])', soon):
            return name
    raise AssertionError("it took too long to start")


def test_a_stopped_series_has_no_value_once_its_last_sample_is_too_old(running: Running, caller: Caller) -> None:
    ending = next_ending_pod(running)
    assert one(caller, "load", ending).values == {ending: 2}
    assert caller.external("queue", labelSelector=f"queue={ending}").items[0]["value"] == "10"

    eventually(lambda: one(caller, "load", ending).status != 200)
    refused = one(caller, "load", ending)
    assert refused.status == 503
    assert f"'{ending}' has no value: its series' last samples are" in refused.message
    assert f"the rule allows {LIMIT_SECONDS} s (maxSampleAge)" in refused.message
    assert refused.message.endswith(f"(more: tidewatch-adapter explain pods/load -n shop --object pods/{ending})")
    # Prometheus itself goes on with the last sample for minutes, and so does a rule without the key.
    alive = ask_prometheus(running.prometheus, f'load{{pod="{ending}"}}', time.time())
    assert [value for _, value in alive] == ["2"]
    assert one(caller, "unguarded", ending).values == {ending: 2}
    eventually(lambda: caller.external("queue", labelSelector=f"queue={ending}").status != 200)
    external = caller.external("queue", labelSelector=f"queue={ending}")
    assert (external.status, "maxSampleAge" in external.message) == (503, True)
    assert running.adapter.metric("tidewatch_adapter_dropped_samples_total", reason="stale") > 0


def test_in_a_list_only_objects_with_young_samples_have_values(caller: Caller) -> None:
    assert caller.pods("load", labelSelector="app in (steady,ended)").values == {"steady-0": 1}
    assert caller.pods("unguarded", labelSelector="app in (steady,ended)").values == {"steady-0": 1, "ended-0": 3}
    none_left = caller.pods("load", labelSelector="app=ended")
    assert (none_left.status, "maxSampleAge" in none_left.message) == (503, True)


def test_the_oldest_of_several_series_decides_the_age_of_an_object(caller: Caller) -> None:
    """Both sides of the quotient have the same labels: the age of one must not hide that of the other."""
    assert one(caller, "ratio", "steady-0").values == {"steady-0": Decimal("0.5")}
    assert one(caller, "load", "calm-0").values == {"calm-0": 4}
    aged = one(caller, "ratio", "calm-0")
    assert (aged.status, "maxSampleAge" in aged.message) == (503, True)


def test_an_external_metric_with_one_aged_series_is_an_error(caller: Caller) -> None:
    assert caller.external("queue", labelSelector="queue=steady-0").items[0]["value"] == "10"
    answer = caller.external("queue", labelSelector="queue in (steady-0,ended-0)")
    assert (answer.status, "maxSampleAge" in answer.message) == (503, True)


def test_the_no_data_value_is_served_for_missing_samples_but_not_for_old_ones(caller: Caller) -> None:
    eventually(lambda: one(caller, "load", "silent-0").status == 200)
    assert one(caller, "load", "silent-0").values == {"silent-0": 0}
    assert one(caller, "load", "ended-0").status == 503
    answer = caller.pods("nothing", labelSelector="app in (steady,silent)")
    assert {name: float(value) for name, value in answer.values.items()} == {"steady-0": 2.5, "silent-0": 2.5}
    (row,) = caller.external("no_queue", labelSelector="queue=any").items
    assert (row["metricLabels"], row["value"]) == ({}, "0")
    refused = caller.pods("nothing_is_an_error", labelSelector="app=steady")
    assert (refused.status, refused.document["reason"]) == (404, "NotFound")


def test_the_no_data_value_is_not_served_for_an_object_that_does_not_exist(caller: Caller) -> None:
    refused = one(caller, "nothing", "typo-0")
    assert (refused.status, "there is no object 'typo-0'" in refused.message) == (404, True)


def test_after_an_outage_the_no_data_value_is_not_served_before_the_look_back_has_passed(
    tmp_path: Path, trust: Trust
) -> None:
    flags = ("--refresh-interval=1s", "--prometheus-look-back=5s", "--max-answer-age=3s")
    with (
        EMPTY_HARNESS.running(tmp_path, trust, *flags) as (prometheus, adapter),
        adapter.caller() as caller,
    ):
        eventually(lambda: one(caller, "nothing", "steady-0").status == 200)
        prometheus.kill()
        eventually(lambda: one(caller, "nothing", "steady-0").status == 503)
        prometheus.start_again()
        answers: list[Answer] = []

        def is_served_again() -> bool:
            answers.append(one(caller, "nothing", "steady-0"))
            return answers[-1].status == 200

        eventually(is_served_again)
        assert {answer.status for answer in answers[:-1]} == {503}
        messages = [answer.message for answer in answers[:-1] if "is not known before 5 s" in answer.message]
        assert messages
        assert messages[0].endswith("(more: tidewatch-adapter explain pods/nothing -n shop --object pods/steady-0)")


def test_the_no_data_value_is_served_with_a_new_prometheus(tmp_path: Path, trust: Trust) -> None:
    with EMPTY_HARNESS.running(tmp_path, trust, "--refresh-interval=1s") as (_, adapter), adapter.caller() as caller:
        assert eventually(lambda: caller.external("no_queue", labelSelector="queue=any").status == 200)


def test_each_api_version_has_the_window_in_its_own_field(caller: Caller) -> None:
    asked = {"labelSelector": "app=steady"}
    newer, older = (caller.pods("nothing", version=version, **asked).items[0] for version in ("v1beta2", "v1beta1"))
    assert (newer["windowSeconds"], older["window"]) == (90, 90)
    assert caller.external("queue", labelSelector="queue=steady-0").items[0]["window"] == 60
    assert not {"window", "windowSeconds"} & caller.pods("unguarded", **asked).items[0].keys()


def test_a_rule_with_its_own_refresh_interval_is_not_queried_more_often(caller: Caller) -> None:
    first = one(caller, "seldom", "steady-0"), one(caller, "often", "steady-0")

    def refreshed_twice() -> bool:
        one(caller, "seldom", "steady-0")
        return one(caller, "often", "steady-0").evaluated_at >= first[1].evaluated_at + 4

    eventually(refreshed_twice)
    again = one(caller, "seldom", "steady-0")
    assert (again.evaluated_at, again.values) == (first[0].evaluated_at, first[0].values)
