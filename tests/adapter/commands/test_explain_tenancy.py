"""Texts of Prometheus about series of other namespaces go to the log; no error or explanation shows them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest

from tests.support.fake_apiserver import FakeApiServer
from tests.support.forked import run
from tests.support.prometheus import scraped_prometheus
from tests.support.serving import eventually, listed, pod, running_adapter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.caller import Answer
    from tests.support.prometheus import ScrapedPrometheus
    from tests.support.serving import Adapter, Trust

C = "custom.metrics.k8s.io"
LABELS = "{overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}"
RULES = "rules:\n" + "".join(
    f"""
- seriesQuery: 'jobs{{namespace!="",pod!=""}}'
  name: {{as: {name}}}
  resources: {LABELS}
  metricsQuery: 'sum by (<<.GroupBy>>) ({query})'
"""
    for name, query in {
        "right": "<<.Series>>{<<.LabelMatchers>>} * on (zone) group_left () cost",
        "left": "cost * on (zone) group_right () <<.Series>>{<<.LabelMatchers>>}",
        "both": "cost * on (zone) cost * on (zone) group_right () <<.Series>>{<<.LabelMatchers>>}",
        "turning": "<<.Series>>{<<.LabelMatchers>>} * on (zone) group_left () price",
    }.items()
)
RULES += """
- seriesQuery: 'jobs{namespace!=""}'
  name: {as: merged}
  resources: {overrides: {namespace: {resource: namespace}}}
  metricsQuery: 'sum by (namespace) (<<.Series>>)'
"""
GOOD = """
jobs{namespace="shop",pod="web-0",zone="a"} 3
jobs{namespace="bank",pod="secret-0",zone="a"} 4
cost{namespace="shop",pod="web-0",zone="a"} 2
cost{namespace="bank",pod="secret-0",zone="a"} 2
price{namespace="shop",pod="web-0",zone="a"} 2
"""
BAD = f'{GOOD}price{{namespace="bank",pod="secret-0",zone="a"}} 2\n'
OBJECTS = {"pods.json": listed(pod("web-0"), pod("secret-0", namespace="bank"))}
NOT_FOR_ALL = ("bank", "secret")


@dataclass(frozen=True)
class Shared:
    """An adapter and a Prometheus that serve several tenants."""

    adapter: Adapter
    prometheus: ScrapedPrometheus
    folder: Path

    def get(self, metric: str) -> Answer:
        with self.adapter.caller(identity=(("X-Remote-User", "alice"),)) as caller:
            return caller.get(f"/apis/{C}/v1beta2/namespaces/shop/pods/*/{metric}", [("User-Agent", "kubectl/v1.36.0")])

    def explained(self, **parameters: str) -> Answer:
        with self.adapter.caller(identity=(("X-Remote-User", "alice"),)) as caller:
            return caller.get(f"/debug/explain?{urlencode(parameters)}")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, trust: Trust) -> Iterator[Shared]:
    folder = tmp_path_factory.mktemp("tenancy")
    with FakeApiServer() as apiserver, scraped_prometheus(folder, GOOD, interval="1s", stamped=True) as prometheus:
        prometheus.wait_for('count(jobs{namespace="bank"}) and on () count(price)')
        config = apiserver.kubeconfig(folder / "kubeconfig")
        for metric in ("right", "left", "both", "turning"):
            apiserver.reviews.allow("alice", "get", f"pods/{metric}", C, namespace="shop")
        apiserver.reviews.allow("alice", "get", "metrics", C, namespace="shop")
        apiserver.reviews.allow("alice", "get", "metrics/merged", C)
        with running_adapter(
            folder,
            trust,
            f"--authorization-kubeconfig={config}",
            "--authentication-skip-lookup",
            "--refresh-interval=1s",
            "--max-answer-age=4s",
            prometheus_url=prometheus.url,
            rules=RULES,
            objects=OBJECTS,
        ) as adapter:
            eventually(lambda: adapter.plain("/readyz").status == 200)
            eventually(lambda: has_values(adapter))
            yield Shared(adapter, prometheus, folder)


def has_values(adapter: Adapter) -> bool:
    """Return whether the series are served: a join on them succeeds, with no result, even while there are none."""
    with adapter.caller(identity=(("X-Remote-User", "alice"),)) as caller:
        answer = caller.get(f"/apis/{C}/v1beta2/namespaces/shop/pods/*/turning")
    return answer.status == 200 and bool(answer.document["items"])


def assert_leaks_nothing(text: str) -> None:
    assert [word for word in NOT_FOR_ALL if word in text] == [], text


@pytest.mark.parametrize("metric", ["right", "left", "both"])
def test_a_join_error_names_series_only_in_the_log(shared: Shared, metric: str) -> None:
    answer = shared.get(metric)

    assert answer.status == 500
    assert "Prometheus refused it (execution): found duplicate series for the match group" in answer.message
    assert "in the log" in answer.message
    assert_leaks_nothing(answer.text)
    assert any("secret-0" in line for line in eventually(lambda: shared.adapter.said(rf"fails .*{metric}|duplicate")))


@pytest.mark.parametrize("metric", ["right", "left", "both"])
def test_the_explanation_of_a_join_error_names_no_series(shared: Shared, metric: str) -> None:
    shared.get(metric)
    answer = shared.explained(metric=f"pods/{metric}", namespace="shop")

    assert (answer.status, answer.document["verdict"]) == (200, "error")
    assert "found duplicate series" in answer.document["cause"]
    assert "the last refresh failed: " in answer.text
    assert_leaks_nothing(answer.text)


def test_explain_with_direct_access_to_prometheus_names_the_series(shared: Shared) -> None:
    ended = run(
        "explain",
        "pods/right",
        "-n",
        "shop",
        f"--config={shared.folder / 'rules.yaml'}",
        f"--objects={shared.folder / 'objects'}",
        f"--prometheus-url={shared.prometheus.url}",
    )

    assert ended.code == 1
    assert "secret-0" in ended.out


def test_warnings_and_errors_about_outdated_answers_name_no_series(shared: Shared) -> None:
    eventually(lambda: shared.get("turning").status == 200)
    shared.prometheus.publish(BAD, seen='price{namespace="bank"}')
    (warned,) = eventually(lambda: [one for one in [shared.get("turning")] if one.header("Warning")])
    (aged,) = eventually(lambda: [one for one in [shared.get("turning")] if one.status == 503])

    assert "Prometheus refuses the query" in (warned.header("Warning") or "")
    assert "the last good answer is " in aged.message
    assert "duplicate series" in aged.message
    assert_leaks_nothing(f"{warned.header('Warning')} {warned.text} {aged.text}")


def test_the_explanation_of_one_object_names_no_other(shared: Shared) -> None:
    answer = shared.explained(metric="namespaces/merged", object="namespaces/shop")

    assert (answer.status, answer.document["verdict"]) == (200, "value"), answer.text
    assert "1 other object has samples that were not requested" in answer.text
    assert_leaks_nothing(answer.text)
