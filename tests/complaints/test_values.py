"""Values that were not numbers, that no longer existed, or that differed from replica to replica."""

from __future__ import annotations

import time
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from tests.complaints.harness import COMPLAINTS, CONNECTIONS_RULE, OBJECTS, QUEUE_RULE
from tests.support.caller import CUSTOM, EXTERNAL, number
from tests.support.harnesses import NAMESPACES, PODS, series_now
from tests.support.prometheus import ScrapedPrometheus, scraped_prometheus
from tests.support.serving import Adapter, Trust, eventually, running_adapter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from demo.machine.prometheus import PrometheusProcess
    from tests.support.caller import Answer, Caller

WEB = {"labelSelector": "app=web"}
MAX_AGE_SECONDS = 2
LOOK_UPS_A_ROUND = 4
"""One look-up for each distinct `seriesQuery`."""
STEADY = 'connections{namespace="shop",pod="web-0"} 10\n'
QUEUE = 'queue_depth{namespace="shop",queue="orders"} 6\n'
NEW = 'found_sessions{namespace="shop",pod="web-0"} 3\n'
ENDING = 'found_jobs{namespace="shop",pod="web-0"} 4\n'
LIVING_RULES = f"""
rules:
{CONNECTIONS_RULE}
- seriesQuery: '{{__name__=~"^found_.+$",namespace!="",pod!=""}}'
  resources: {PODS}
  metricsQuery: 'sum by (<<.GroupBy>>) (<<.Series>>{{<<.LabelMatchers>>}})'
externalRules:
{QUEUE_RULE}
- seriesQuery: 'pushed_lag{{namespace!=""}}'
  resources: {NAMESPACES}
  metricsQuery: 'sum(<<.Series>>{{<<.LabelMatchers>>}})'
- seriesQuery: 'pushed_lag{{namespace!=""}}'
  name: {{as: pushed_lag_of_now}}
  resources: {NAMESPACES}
  metricsQuery: 'sum(<<.Series>>{{<<.LabelMatchers>>}})'
  maxSampleAge: 5s
  refresh: 1s
"""


def test_nan_is_not_a_value_and_never_0__prometheus_adapter_280_paasta_3034(adapter: Adapter, caller: Caller) -> None:
    """Such values are NaN and infinity; the sample beside them is served (also PA PR 308, keda PR 7576)."""
    assert set(caller.pods("ratio", **WEB).values) == {"web-2"}
    for pod, what in (("web-0", "NaN"), ("web-1", "infinite")):
        answer = caller.get(f"{CUSTOM}/v1beta2/namespaces/shop/pods/{pod}/ratio")
        assert (answer.status, what in answer.message) == (404, True)
    assert caller.external("error_ratio").items == []
    assert adapter.metric("tidewatch_adapter_dropped_samples_total", reason="nan") >= 1
    assert adapter.metric("tidewatch_adapter_dropped_samples_total", reason="inf") >= 1


def test_a_negative_value_stays_what_it_is__prometheus_adapter_394(caller: Caller) -> None:
    assert caller.pods("ratio", **WEB).values == {"web-2": Decimal(-4)}


def test_two_replicas_give_the_same_lists_and_values__prometheus_adapter_320_397(
    tmp_path: Path, trust: Trust, prometheus: PrometheusProcess, caller: Caller
) -> None:
    """A replica that has just started is included.

    `tests/e2e/metrics_apis/test_replicas.py` removes one of two under load.
    """
    with (
        COMPLAINTS.adapter(tmp_path, trust, prometheus) as replica,
        replica.caller() as other,
    ):
        eventually(lambda: replica.plain("/readyz").status == 200 and other.listed() == caller.listed())
        for path in (f"{CUSTOM}/v1beta1", f"{CUSTOM}/v1beta2", EXTERNAL, "/apis"):
            assert caller.get(path).body == other.get(path).body
        accept = ("Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
        assert caller.get("/apis", [accept]).header("ETag") == other.get("/apis", [accept]).header("ETag")
        assert caller.pods("connections", **WEB).values == other.pods("connections", **WEB).values
        assert [item["value"] for item in caller.external("queue_depth").items] == [
            item["value"] for item in other.external("queue_depth").items
        ]


@pytest.fixture(scope="module")
def living(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScrapedPrometheus]:
    """Yield a Prometheus whose series come and go."""
    with scraped_prometheus(tmp_path_factory.mktemp("living"), STEADY + ENDING, interval="1s") as running:
        running.wait_for("found_jobs")
        yield running


@pytest.fixture(scope="module")
def follower(tmp_path_factory: pytest.TempPathFactory, trust: Trust, living: ScrapedPrometheus) -> Iterator[Adapter]:
    """Yield an adapter that looks up the series of `living` often."""
    folder = tmp_path_factory.mktemp("follower")
    flags = ("--metrics-relist-interval=1s", f"--metrics-max-age={MAX_AGE_SECONDS}s", "--refresh-interval=1s")
    with running_adapter(
        folder, trust, *flags, prometheus_url=living.url, rules=LIVING_RULES, objects=OBJECTS
    ) as running:
        yield running


def test_a_metric_whose_series_pause_does_not_flap__prometheus_adapter_77_64_135_229_325(
    living: ScrapedPrometheus, follower: Adapter
) -> None:
    """Its series are gone for longer than `--metrics-max-age`, and it stays listed and known (PA PRs 136, 230, 459)."""
    living.publish(STEADY + ENDING, seen="found_jobs")
    with follower.caller() as caller:
        eventually(lambda: "pods/found_jobs" in caller.listed())
        eventually(lambda: named(caller, "found_jobs") == {"web-0"})
        living.publish(STEADY, seen="absent(found_jobs)")
        eventually(lambda: not series_now(living.url, ["found_jobs"], MAX_AGE_SECONDS))
        looked_up = series_look_ups(follower)
        while series_look_ups(follower) < looked_up + 3 * LOOK_UPS_A_ROUND:
            assert "pods/found_jobs" in caller.listed()
            assert caller.pods("found_jobs", **WEB).status == 200
        living.publish(STEADY + ENDING, seen="found_jobs")
        eventually(lambda: named(caller, "found_jobs") == {"web-0"})
        assert caller.pods("found_jobs", **WEB).values == {"web-0": 4}


def series_look_ups(adapter: Adapter) -> float:
    return adapter.metric("tidewatch_adapter_prometheus_queries_total", kind="series", result="ok")


def test_the_last_value_of_a_source_that_stopped_is_not_served__kube_metrics_adapter_97(
    living: ScrapedPrometheus, follower: Adapter
) -> None:
    living.publish(STEADY + ENDING, seen="found_jobs")
    with follower.caller() as caller:
        eventually(lambda: named(caller, "found_jobs") == {"web-0"})
        living.publish(STEADY, seen="absent(found_jobs)")
        eventually(lambda: named(caller, "found_jobs") == set())
        assert named(caller, "connections") == {"web-0"}


def test_a_pushed_value_expires_at_the_age_that_its_rule_allows__kube_metrics_adapter_97(
    living: ScrapedPrometheus, follower: Adapter
) -> None:
    """Samples with a time of their own are not marked as gone: Prometheus itself serves them for five minutes."""
    pushed = f'pushed_lag{{namespace="shop"}} 8 {int(time.time() * 1000)}\n'
    living.publish(STEADY + pushed, seen="pushed_lag")
    with follower.caller() as caller:
        refused = eventually(lambda: of_status(caller.external("pushed_lag_of_now"), 503))[0]
        assert "maxSampleAge" in refused.message
        (item,) = caller.external("pushed_lag").items
        assert number(item["value"]) == 8
        pushed = f'pushed_lag{{namespace="shop"}} 9 {int(time.time() * 1000)}\n'
        living.publish(STEADY + pushed, seen="pushed_lag == 9")
        eventually(lambda: of_status(caller.external("pushed_lag_of_now"), 200))


def of_status(answer: Answer, status: int) -> list[Answer]:
    return [answer] if answer.status == status else []


def test_a_new_series_is_a_metric_at_the_next_look_up__prometheus_adapter_532(
    living: ScrapedPrometheus, follower: Adapter
) -> None:
    """By default, look-ups are a minute apart; a rule that spells its series out does not wait for one."""
    with follower.caller() as caller:
        assert named(caller, "found_sessions") == set()
        living.publish(STEADY + NEW, seen="found_sessions")
        eventually(lambda: named(caller, "found_sessions") == {"web-0"})


def test_a_queue_that_fills_for_the_first_time_is_served_without_a_look_up__enhancements_2021(
    living: ScrapedPrometheus, follower: Adapter
) -> None:
    """Its rule spells the series out, so the value is there with the first sample."""
    with follower.caller() as caller:
        assert caller.external("queue_depth").items == []
        living.publish(STEADY + QUEUE, seen="queue_depth")
        (item,) = eventually(lambda: caller.external("queue_depth").items)
        assert number(item["value"]) == 6


def named(caller: Caller, metric: str) -> set[str]:
    """Return the pods that have a value."""
    answer = caller.pods(metric, **WEB)
    return set(answer.values) if answer.status == 200 else set()
