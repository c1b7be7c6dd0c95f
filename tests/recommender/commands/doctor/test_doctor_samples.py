"""Whether the samples of a query come often enough for `staleAfter`, with a real Prometheus."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.reports.lines import CheckStatus
from recommender.commands.doctor.prometheus import look_at_queries
from recommender.configuration.reading import read_configuration
from tests.recommender.configuration.files import entry, whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.prometheus import ScrapedPrometheus

SPACINGS = (15, 60)


@pytest.fixture(scope="module")
def prometheus(start_prometheus: Callable[..., ScrapedPrometheus]) -> ScrapedPrometheus:
    now, lines = time.time(), ["# TYPE load gauge"]
    for spacing in SPACINGS:
        lines += [f'load{{every="{spacing}"}} 5 {now - ago}' for ago in range(1200, -600, -spacing)]
    lines += [f'load{{every="never"}} 5 {now - ago}' for ago in range(1200, 90, -15)]
    return start_prometheus(history="\n".join([*lines, "# EOF", ""]))


def test_an_entry_that_follows_usage_needs_the_series_of_the_kubelet_and_of_kube_state_metrics(
    prometheus: ScrapedPrometheus,
) -> None:
    top = f"prometheus: {{url: '{prometheus.url}'}}\n"
    sizes = entry("sizes", kind="resources: {fromUsage: {}, forEach: {}}")
    configuration = read_configuration(whole(sizes, top=top), "r.yaml")
    lines = look_at_queries(configuration, configuration.recommendations[0])
    assert {line.status for line in lines} == {CheckStatus.ERROR}
    assert {line.name.rpartition("/")[2] for line in lines} == {
        "container_memory_working_set_bytes", "kube_pod_owner", "kube_pod_container_resource_requests",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("load", "stale_after", "status", "message"),
    [
        ('load{every="15"}', "60s", CheckStatus.OK, "exactly one value, 5"),
        ('load{every="60"}', "90s", CheckStatus.WARNING, "its samples are 60 s apart, and staleAfter is 90 s"),
        ('load{every="60"}', "120s", CheckStatus.OK, "exactly one value, 5"),
        # The selector whose samples come least often counts.
        ('load{every="15"} + on () load{every="60"}', "90s", CheckStatus.WARNING, "samples are 60 s apart"),
        ('load{every="never"}', "60s", CheckStatus.ERROR, "its newest sample is "),
        ("vector(5)", "60s", CheckStatus.OK, "exactly one value, 5"),
    ],
)
def test_samples_must_arrive_at_least_twice_within_stale_after(
    prometheus: ScrapedPrometheus, load: str, stale_after: str, status: CheckStatus, message: str
) -> None:
    predictive = f"predictive: {{load: '{load}', loadPerReplica: 10, horizon: 1m, maxReplicas: 9}}"
    top = f"staleAfter: {stale_after}\nprometheus: {{url: '{prometheus.url}'}}\n"
    configuration = read_configuration(whole(entry("web", kind=predictive), top=top), "r.yaml")
    assert not configuration.refused
    (line,) = look_at_queries(configuration, configuration.recommendations[0])
    assert line.status is status, line
    assert message in line.message


@pytest.mark.parametrize(
    ("load", "is_up", "fix"),
    [
        ("topk(load)", True, "correct the query"),
        ("load", False, "check that Prometheus answers at the address in `prometheus:`, and if it does, the query"),
    ],
    ids=["refused", "no answer"],
)
def test_only_a_query_that_prometheus_refuses_is_certainly_wrong(
    prometheus: ScrapedPrometheus, load: str, fix: str, *, is_up: bool
) -> None:
    predictive = f"predictive: {{load: '{load}', loadPerReplica: 10, horizon: 1m, maxReplicas: 9}}"
    top = f"prometheus: {{url: '{prometheus.url if is_up else 'http://127.0.0.1:9'}'}}\n"
    configuration = read_configuration(whole(entry("web", kind=predictive), top=top), "r.yaml")
    (line,) = look_at_queries(configuration, configuration.recommendations[0])
    assert (line.status, line.fix) == (CheckStatus.ERROR, fix)
