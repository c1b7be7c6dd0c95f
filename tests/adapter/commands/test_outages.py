"""While Prometheus is down, killed or hanging, answers go on until they are too old; then come errors, never 0."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest

from tests.adapter.commands.harness import OBJECTS, RULES, SHOP
from tests.support.caller import PATIENCE_SECONDS, Answer
from tests.support.fake_apiserver import FakeApiServer
from tests.support.serving import Adapter, Trust, eventually, running_adapter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from demo.machine.prometheus import PrometheusProcess
    from tests.support.caller import Caller

WEB = {"labelSelector": "app=web"}


@pytest.fixture
def own_prometheus(tmp_path: Path) -> Iterator[PrometheusProcess]:
    """Yield a Prometheus that the test may kill or pause."""
    with SHOP.prometheus(tmp_path / "prometheus") as running:
        yield running


@pytest.fixture
def adapter_of_its_own(
    tmp_path: Path, trust: Trust, own_prometheus: PrometheusProcess, request: pytest.FixtureRequest
) -> Iterator[Adapter]:
    """Yield an adapter of this Prometheus; a test may set how old its answers may become."""
    age: str = getattr(request, "param", "60s")
    flags = (f"--max-answer-age={age}", "--refresh-interval=1s")
    with SHOP.adapter(tmp_path, trust, own_prometheus, *flags) as running:
        eventually(lambda: running.plain("/readyz").status == 200)
        yield running


def open_connections(caller: Caller) -> Answer:
    return caller.pods("open_connections", **WEB)


def queue_depth(caller: Caller) -> Answer:
    return caller.external("queue_depth", labelSelector="queue=orders")


class SteadyLoad:
    """A small steady load, with one thread for each kind of request; it keeps the answers."""

    def __init__(self, adapter: Adapter, requests: tuple[Callable[[Caller], Answer], ...]) -> None:
        self._adapter = adapter
        self._over = threading.Event()
        self.answers: list[list[Answer]] = [[] for _ in requests]
        self.health: list[int] = []
        self.threads = [
            threading.Thread(target=self._ask, args=(request, answers))
            for request, answers in zip(requests, self.answers, strict=True)
        ]
        self.threads.append(threading.Thread(target=self._probe))

    def now(self) -> list[int]:
        """Return the statuses of the newest answers."""
        return [answers[-1].status if answers else 0 for answers in self.answers]

    def end(self) -> None:
        self._over.set()
        for thread in self.threads:
            thread.join(PATIENCE_SECONDS)
            assert not thread.is_alive()

    def _ask(self, request: Callable[[Caller], Answer], answers: list[Answer]) -> None:
        with self._adapter.caller() as caller:
            while not self._over.wait(0.05):
                answers.append(request(caller))

    def _probe(self) -> None:
        while not self._over.wait(0.1):
            self.health.append(self._adapter.plain("/readyz").status)


@contextmanager
def steady_load(adapter: Adapter) -> Iterator[SteadyLoad]:
    load = SteadyLoad(adapter, (open_connections, queue_depth))
    for thread in load.threads:
        thread.start()
    try:
        yield load
    finally:
        load.end()


@pytest.mark.parametrize("adapter_of_its_own", ["5s"], indirect=True)
def test_answers_age_fail_and_recover_when_prometheus_is_killed_under_load(
    adapter_of_its_own: Adapter, own_prometheus: PrometheusProcess
) -> None:
    with steady_load(adapter_of_its_own) as load:
        eventually(lambda: load.now() == [200, 200])
        own_prometheus.kill()
        before = [len(answers) for answers in load.answers]
        eventually(lambda: load.now() == [503, 503])
        own_prometheus.start_again()
        eventually(lambda: load.now() == [200, 200])
    for answers, killed_at in zip(load.answers, before, strict=True):
        statuses = [answer.status for answer in answers]
        down = statuses.index(503)
        assert down > killed_at + 5, "answers go on without Prometheus, from memory"
        # Up, down, up again, and no other answer in between.
        up_again = down + statuses[down:].index(200)
        assert set(statuses[down:up_again]) == {503}
        assert set(statuses[:down] + statuses[up_again:]) == {200}
        refused = answers[down].message
        assert "answers older than 5 s are not served" in refused
        assert "Connection refused" in refused
    assert all(len(answer.items) == 3 for answer in load.answers[0] if answer.status == 200)
    assert all(min(answer.values.values()) > 0 for answer in load.answers[0] if answer.status == 200)
    assert all(len(answer.items) == 2 for answer in load.answers[1] if answer.status == 200)
    assert set(load.health) == {200}
    adapter_of_its_own.wait_for(r" INFO .*Prometheus answers again")
    assert len(adapter_of_its_own.said("queries to Prometheus fail; answers are served until they are 5 s old")) == 1


def test_while_prometheus_hangs_only_requests_for_something_new_time_out(
    adapter_of_its_own: Adapter, own_prometheus: PrometheusProcess
) -> None:
    with adapter_of_its_own.caller() as caller, adapter_of_its_own.caller() as first:
        eventually(lambda: open_connections(caller).status == 200)
        own_prometheus.pause()
        try:
            slow = threading.Thread(target=lambda: answers.append(first.pods("twice", **WEB)))
            answers: list[Answer] = []
            slow.start()
            meanwhile = []
            while slow.is_alive():
                meanwhile.append(open_connections(caller).status)
                assert adapter_of_its_own.plain("/livez").status == 200
                assert adapter_of_its_own.plain("/readyz").status == 200
                assert caller.get("/readyz").status == 200
                assert "pods/open_connections" in caller.listed()
            assert [answer.status for answer in answers] == [504]
            assert answers[0].document["reason"] == "Timeout"
            assert "did not answer within 2 s" in answers[0].message
            assert set(meanwhile) == {200}
        finally:
            own_prometheus.resume()
        eventually(lambda: first.pods("twice", **WEB).status == 200)


def test_many_first_requests_take_no_threads_from_others_while_prometheus_hangs(
    adapter_of_its_own: Adapter, own_prometheus: PrometheusProcess
) -> None:
    """While Prometheus hangs, twice as many clients as there are threads request something new."""
    statuses: list[int] = []

    def request_something_new(number: int) -> None:
        with adapter_of_its_own.caller() as caller:
            statuses.append(caller.external("queue_depth", labelSelector=f"queue=new-{number},new").status)

    crowd = [threading.Thread(target=request_something_new, args=(number,)) for number in range(32)]
    with adapter_of_its_own.caller() as caller:
        eventually(lambda: open_connections(caller).status == 200)
        own_prometheus.pause()
        try:
            for thread in crowd:
                thread.start()
            while any(thread.is_alive() for thread in crowd):
                assert open_connections(caller).status == 200
                assert caller.get("/livez").status == 200
        finally:
            own_prometheus.resume()
    assert set(statuses) <= {504, 200}
    assert len(statuses) == 32


def test_the_adapter_starts_without_prometheus_and_serves_values_once_it_answers(
    tmp_path: Path, trust: Trust, own_prometheus: PrometheusProcess
) -> None:
    own_prometheus.kill()
    with (
        SHOP.adapter(tmp_path, trust, own_prometheus) as adapter,
        adapter.caller() as caller,
    ):
        eventually(lambda: adapter.plain("/readyz").status == 200)
        for answer in (open_connections(caller), queue_depth(caller)):
            assert (answer.status, answer.document["reason"]) == (503, "ServiceUnavailable")
            assert "Connection refused" in answer.message
        # What rules spell out is listed without Prometheus; what they match is not known yet.
        assert {"pods/open_connections", "pods/never_seen"} <= caller.listed()
        assert caller.pods("odd", **WEB).status == 404
        adapter.wait_for("Prometheus at .* does not answer")
        own_prometheus.start_again()
        eventually(lambda: open_connections(caller).status == queue_depth(caller).status == 200)
        eventually(lambda: caller.pods("odd", **WEB).status == 200)


def test_an_unreachable_prometheus_is_explained(tmp_path: Path, trust: Trust) -> None:
    with FakeApiServer() as apiserver:
        config = apiserver.kubeconfig(tmp_path / "kubeconfig")
        apiserver.reviews.allow("alice", "get", "*", "custom.metrics.k8s.io")
        flags = (f"--authorization-kubeconfig={config}", "--authentication-skip-lookup")
        with (
            running_adapter(
                tmp_path, trust, *flags, prometheus_url="http://127.0.0.1:9", rules=RULES, objects=OBJECTS
            ) as adapter,
            adapter.caller(identity=(("X-Remote-User", "alice"),)) as caller,
        ):
            known = caller.get(f"/debug/explain?{urlencode({'metric': 'pods/never_seen', 'namespace': 'shop'})}")
            unknown = caller.get(f"/debug/explain?{urlencode({'metric': 'pods/odd', 'namespace': 'shop'})}")

    assert (known.status, known.document["verdict"]) == (200, "error")
    assert "Connection refused" in known.document["cause"]
    assert (unknown.status, unknown.document["verdict"]) == (200, "error")
    assert "it is not known whether a rule provides pods/odd" in unknown.document["cause"]
