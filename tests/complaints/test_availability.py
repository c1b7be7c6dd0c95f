"""While Prometheus is down or silent, the API must stay, and no old or made-up value may be taken for a new one."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.complaints.harness import SHORT_LOOK_BACK, SMALL_COMPLAINTS
from tests.support.caller import CUSTOM, EXTERNAL, Answer, Caller
from tests.support.serving import Adapter, Trust, eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from demo.machine.prometheus import PrometheusProcess

WEB = {"labelSelector": "app=web"}
BEFORE_A_WORKER_IS_LOST_SECONDS = 10.0
"""kube-apiserver would let a caller wait for 60 seconds."""


@pytest.fixture(scope="module")
def own_prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusProcess]:
    """Yield a Prometheus that the tests may harm, and repair again."""
    with SMALL_COMPLAINTS.prometheus(tmp_path_factory.mktemp("harmed")) as running:
        yield running


@pytest.fixture(scope="module")
def own_adapter(
    tmp_path_factory: pytest.TempPathFactory, trust: Trust, own_prometheus: PrometheusProcess
) -> Iterator[Adapter]:
    folder = tmp_path_factory.mktemp("adapter")
    flags = ("--refresh-interval=1s", "--max-answer-age=4s", SHORT_LOOK_BACK)
    with SMALL_COMPLAINTS.adapter(folder, trust, own_prometheus, *flags) as running:
        with running.caller() as caller:
            eventually(lambda: {"pods/found_requests", "pods/ratio"} <= caller.listed())
        eventually(lambda: running.plain("/readyz").status == 200)
        yield running


@pytest.fixture
def client(own_adapter: Adapter) -> Iterator[Caller]:
    """Yield a caller that gives up long before kube-apiserver would.

    What it is served comes from the Prometheus that runs now. An older answer would do for a moment after a test has
    started Prometheus again, until a refresh finds that nobody can know yet whether there is data.
    """
    now = time.time()
    with own_adapter.caller(seconds=BEFORE_A_WORKER_IS_LOST_SECONDS) as caller:
        eventually(lambda: is_newer(caller.pods("connections", **WEB), now))
        eventually(lambda: is_newer(caller.external("queue_or_zero"), now))
        yield caller


def is_newer(answer: Answer, moment: float) -> bool:
    """Return whether an answer has values that were evaluated after a moment in Unix seconds."""
    return answer.status == 200 and answer.evaluated_at >= moment


@pytest.fixture
def hanging(own_prometheus: PrometheusProcess, client: Caller) -> Iterator[Caller]:
    """Run a server that keeps connections open and answers nothing."""
    own_prometheus.pause()
    try:
        yield client
    finally:
        own_prometheus.resume()


@pytest.fixture
def killed(own_prometheus: PrometheusProcess, client: Caller) -> Iterator[Caller]:
    with killing(own_prometheus):
        yield client


@contextmanager
def killing(prometheus: PrometheusProcess) -> Iterator[None]:
    """Kill Prometheus at the beginning, and start it again at the end."""
    prometheus.kill()
    try:
        yield
    finally:
        prometheus.start_again()


@pytest.mark.parametrize("state", ["hanging", "killed"])
def test_the_api_stays_available_while_prometheus_is_down__prometheus_adapter_597(
    state: str, own_adapter: Adapter, request: pytest.FixtureRequest
) -> None:
    """An APIService that is unavailable blocks the deletion of namespaces (kubernetes 83332, kube-prometheus 275).

    `tests/e2e/metrics_apis/test_outages.py` deletes a namespace meanwhile.
    """
    caller: Caller = request.getfixturevalue(state)
    accept = ("Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
    for path in (f"{CUSTOM}/v1beta1", f"{CUSTOM}/v1beta2", EXTERNAL, "/apis", "/readyz", "/livez", "/healthz"):
        assert caller.get(path).status == 200
    assert caller.get("/apis", [accept]).status == 200
    assert own_adapter.plain("/readyz").status == 200
    assert {"pods/connections", "pods/found_requests"} <= caller.listed()


def test_a_restarted_adapter_is_ready_while_prometheus_hangs__prometheus_adapter_597(
    tmp_path_factory: pytest.TempPathFactory, trust: Trust, own_prometheus: PrometheusProcess, hanging: Caller
) -> None:
    folder = tmp_path_factory.mktemp("restarted")
    assert hanging.get("/readyz").status == 200
    with SMALL_COMPLAINTS.adapter(folder, trust, own_prometheus) as restarted:
        eventually(lambda: restarted.plain("/readyz").status == 200)
        with restarted.caller() as caller:
            assert "pods/connections" in caller.listed()


def test_no_request_waits_for_a_prometheus_that_hangs__prometheus_adapter_358(hanging: Caller) -> None:
    """The first client gets an error after two seconds; an autoscaler's worker would lose 60 (kubernetes 96242)."""
    answer = hanging.pods("ratio", **WEB)
    assert answer.status == 504
    assert "did not answer within 2 s" in answer.message


def test_values_older_than_the_limit_are_an_error_with_their_age__kube_metrics_adapter_97(killed: Caller) -> None:
    """Until they reach the limit, values are served with the time at which they were measured."""
    before = killed.pods("connections", **WEB)
    assert set(before.values) == {"web-0", "web-1", "web-2"}
    refused = when_unavailable(lambda: killed.pods("connections", **WEB))
    assert "answers older than 4 s are not served" in refused.message
    assert "Connection refused" in refused.message


def test_the_adapter_recovers_by_itself_when_prometheus_is_back__keda_6201(
    own_adapter: Adapter, own_prometheus: PrometheusProcess, client: Caller
) -> None:
    def something_new() -> int:
        return client.pods("found_requests", **WEB).status

    worker = own_adapter.worker
    own_prometheus.kill()
    assert something_new() == 503
    own_prometheus.start_again()
    eventually(lambda: something_new() == 200)
    assert own_adapter.worker == worker


def test_an_unreachable_source_is_reported_as_an_error__keda_8056(killed: Caller, own_adapter: Adapter) -> None:
    """Callers get an error with its reason, operators a log line and a metric; nobody else asks for this metric."""
    refused = killed.external("bus_lag")
    assert (refused.status, refused.document["reason"]) == (503, "ServiceUnavailable")
    assert "Connection refused" in refused.message
    assert own_adapter.metric("tidewatch_adapter_prometheus_queries_total", result="unreachable") >= 1
    assert own_adapter.wait_for("queries to Prometheus fail; answers are served until they are 4 s old")


def test_no_fallback_value_hides_an_outage_of_prometheus__keda_6659(
    own_prometheus: PrometheusProcess, client: Caller, own_adapter: Adapter
) -> None:
    """A rule may give a value for no data. It does not apply if nothing can be known: then other metrics decide."""
    assert [item["value"] for item in client.external("queue_or_zero").items] == ["0"]
    with killing(own_prometheus):
        with own_adapter.caller() as never_asked:
            assert never_asked.external("queue_or_zero", "other").status == 503
        # A refresh that ends while Prometheus goes away already says that nothing is known.
        eventually(lambda: "answers older than 4 s are not served" in client.external("queue_or_zero").text)
        assert client.external("queue_or_zero").status == 503


def when_unavailable(ask: Callable[[], Answer]) -> Answer:
    """Return the first answer whose status is 503."""
    return eventually(lambda: [answer for answer in (ask(),) if answer.status == 503])[0]
