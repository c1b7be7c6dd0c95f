"""What rules ask for themselves, by the real program and a real Prometheus whose series stop."""

from __future__ import annotations

import time
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from demo.machine.prometheus import running_prometheus
from tests.commands.world import NAMESPACES, PODS, ask_prometheus
from tests.support.caller import CUSTOM
from tests.support.prometheus import backfill
from tests.support.serving import Adapter, Trust, eventually, listed, pod, running_adapter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from demo.machine.prometheus import PrometheusProcess
    from tests.support.caller import Answer, Caller

_FUTURE_SECONDS = 3600
_ENDS_IN_SECONDS = 12
"""Long enough for the program to start; what ends is backfilled, so Prometheus marks no end of it."""
_ENDED_BEFORE_SECONDS = 60
LIMIT_SECONDS = 6
FLAGS = ("--refresh-interval=1s", "--prometheus-look-back=1s")
"""Values stand for no data once Prometheus has been there for a second."""


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
        rule("load", PODS, SUM_BY, f"maxSampleAge: {LIMIT_SECONDS}s", "onNoData: 0"),
        rule("load", PODS, SUM_BY, "name: {as: unguarded}"),
        rule(
            "load", PODS, f"{SUM_BY} / {SUM_BY.replace('<<.Series>>', 'base')}", "name: {as: ratio}", "maxSampleAge: 6s"
        ),
        rule("nothing", PODS, SUM_BY, "onNoData: 2500m", "window: 90s"),
        rule("nothing", PODS, SUM_BY, "name: {as: nothing_is_an_error}", "onNoData: error"),
        rule("clock", PODS, SUM_BY, "name: {as: seldom}", "refresh: 45s"),
        # Not the same query: of two rules that share one the shorter refresh counts.
        rule("clock", PODS, SUM_BY.replace("sum", "max"), "name: {as: often}"),
        "externalRules:",
        rule("queue", NAMESPACES, SUM, f"maxSampleAge: {LIMIT_SECONDS}s", "window: 1m"),
        rule("no_queue", NAMESPACES, SUM, "onNoData: {value: 0}"),
        "",
    ]
)
OBJECTS: dict[str, Any] = {
    "pods.json": listed(*(pod(f"{app}-0", app=app, part="load") for app in ("steady", "ending", "ended", "silent")))
}


@dataclass
class World:
    prometheus: PrometheusProcess
    adapter: Adapter


def history(now: int) -> str:
    ends = {
        "steady": now + _FUTURE_SECONDS,
        "ending": now + _ENDS_IN_SECONDS,
        "ended": now - _ENDED_BEFORE_SECONDS,
        "calm": now + _FUTURE_SECONDS,
    }
    lines = [
        f'load{{namespace="shop",pod="{app}-0"}} {number} {moment}'
        for number, (app, end) in enumerate(ends.items(), start=1)
        for moment in range(now - 120, end + 1, 2)
    ]
    lines += [
        f'base{{namespace="shop",pod="{app}-0"}} 2 {moment}'
        for app, end in (("steady", ends["steady"]), ("calm", ends["ended"]))
        for moment in range(now - 120, end + 1, 2)
    ]
    lines += [
        f'queue{{namespace="shop",queue="{queue}"}} 10 {moment}'
        for queue, end in ends.items()
        for moment in range(now - 120, end + 1, 2)
    ]
    lines += [f'clock{{namespace="shop",pod="steady-0"}} {moment} {moment}' for moment in range(now - 60, now + 600, 2)]
    return "\n".join([*lines, "# EOF", ""])


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, trust: Trust) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("policies")
    backfill(folder / "prometheus", history(int(time.time())))
    with (
        running_prometheus(folder / "prometheus") as prometheus,
        running_adapter(folder, trust, *FLAGS, prometheus_url=prometheus.url, rules=RULES, objects=OBJECTS) as adapter,
    ):
        eventually(lambda: adapter.plain("/readyz").status == 200)
        yield World(prometheus, adapter)


@pytest.fixture
def caller(world: World) -> Iterator[Caller]:
    with world.adapter.caller() as caller:
        yield caller


def one(caller: Caller, metric: str, pod_name: str) -> Answer:
    return caller.get(f"{CUSTOM}/v1beta2/namespaces/shop/pods/{pod_name}/{metric}")


def test_a_series_that_stops_loses_its_value_and_not_before(world: World, caller: Caller) -> None:
    assert one(caller, "load", "ending-0").values == {"ending-0": 2}
    assert caller.external("queue", labelSelector="queue=ending").items[0]["value"] == "10"

    eventually(lambda: one(caller, "load", "ending-0").status != 200)
    refused = one(caller, "load", "ending-0")
    assert refused.status == 503
    assert "'ending-0' has no value: its series' last samples are" in refused.message
    assert f"the rule allows {LIMIT_SECONDS} s (maxSampleAge)" in refused.message
    assert refused.message.endswith("(more: tidewatch-adapter explain pods/load -n shop --object pods/ending-0)")
    # Prometheus itself goes on with the last sample for minutes, and so does a rule without the key.
    alive = ask_prometheus(world.prometheus, 'load{pod="ending-0"}', time.time())
    assert [value for _, value in alive] == ["2"]
    assert one(caller, "unguarded", "ending-0").values == {"ending-0": 2}
    eventually(lambda: caller.external("queue", labelSelector="queue=ending").status != 200)
    external = caller.external("queue", labelSelector="queue=ending")
    assert (external.status, "maxSampleAge" in external.message) == (503, True)
    assert world.adapter.metric("tidewatch_adapter_dropped_samples_total", reason="stale") > 0


def test_in_a_list_only_objects_with_young_samples_have_values(caller: Caller) -> None:
    assert caller.pods("load", labelSelector="app in (steady,ended)").values == {"steady-0": 1}
    assert caller.pods("unguarded", labelSelector="app in (steady,ended)").values == {"steady-0": 1, "ended-0": 3}
    none_left = caller.pods("load", labelSelector="app=ended")
    assert (none_left.status, "maxSampleAge" in none_left.message) == (503, True)


def test_of_several_series_of_one_object_the_oldest_counts(caller: Caller) -> None:
    """Both sides of the quotient have the same labels: one must not hide the other."""
    assert one(caller, "ratio", "steady-0").values == {"steady-0": Decimal("0.5")}
    assert one(caller, "load", "calm-0").values == {"calm-0": 4}
    aged = one(caller, "ratio", "calm-0")
    assert (aged.status, "maxSampleAge" in aged.message) == (503, True)


def test_an_external_metric_with_one_aged_series_is_an_error(caller: Caller) -> None:
    assert caller.external("queue", labelSelector="queue=steady").items[0]["value"] == "10"
    answer = caller.external("queue", labelSelector="queue in (steady,ended)")
    assert (answer.status, "maxSampleAge" in answer.message) == (503, True)


def test_the_value_for_no_data_is_served_where_there_is_none_and_not_for_aged_samples(caller: Caller) -> None:
    eventually(lambda: one(caller, "load", "silent-0").status == 200)
    assert one(caller, "load", "silent-0").values == {"silent-0": 0}
    assert one(caller, "load", "ended-0").status == 503
    answer = caller.pods("nothing", labelSelector="app in (steady,silent)")
    assert {name: float(value) for name, value in answer.values.items()} == {"steady-0": 2.5, "silent-0": 2.5}
    (row,) = caller.external("no_queue", labelSelector="queue=any").items
    assert (row["metricLabels"], row["value"]) == ({}, "0")
    refused = caller.pods("nothing_is_an_error", labelSelector="app=steady")
    assert (refused.status, refused.document["reason"]) == (404, "NotFound")


def test_it_is_not_served_for_an_object_that_does_not_exist(caller: Caller) -> None:
    refused = one(caller, "nothing", "typo-0")
    assert (refused.status, "there is no object 'typo-0'" in refused.message) == (404, True)


def test_after_an_outage_it_is_not_served_until_prometheus_can_know(tmp_path: Path, trust: Trust) -> None:
    flags = ("--refresh-interval=1s", "--prometheus-look-back=6s", "--max-answer-age=4s")
    with (
        running_prometheus(tmp_path / "prometheus") as prometheus,
        running_adapter(
            tmp_path, trust, *flags, prometheus_url=prometheus.url, rules=RULES, objects=OBJECTS
        ) as adapter,
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
        told = [answer.message for answer in answers[:-1] if "is not known before 6 s" in answer.message]
        assert told
        assert told[0].endswith("(more: tidewatch-adapter explain pods/nothing -n shop --object pods/steady-0)")


def test_the_window_stands_where_each_version_has_it(caller: Caller) -> None:
    asked = {"labelSelector": "app=steady"}
    newer, older = (caller.pods("nothing", version=version, **asked).items[0] for version in ("v1beta2", "v1beta1"))
    assert (newer["windowSeconds"], older["window"]) == (90, 90)
    assert caller.external("queue", labelSelector="queue=steady").items[0]["window"] == 60
    assert not {"window", "windowSeconds"} & caller.pods("unguarded", **asked).items[0].keys()


def test_a_rule_with_its_own_refresh_is_not_asked_oftener(caller: Caller) -> None:
    first = one(caller, "seldom", "steady-0"), one(caller, "often", "steady-0")

    def refreshed_twice() -> bool:
        one(caller, "seldom", "steady-0")
        return one(caller, "often", "steady-0").evaluated_at >= first[1].evaluated_at + 4

    eventually(refreshed_twice)
    again = one(caller, "seldom", "steady-0")
    assert (again.evaluated_at, again.values) == (first[0].evaluated_at, first[0].values)
