"""Objects from a cluster: pods are watched from the start, and answers say so until the pods are known."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.adapter.commands.harness import RULES
from tests.support.fake_apiserver import TOKEN, FakeApiServer
from tests.support.serving import Adapter, Trust, eventually, running_adapter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from demo.machine.prometheus import PrometheusProcess
    from tests.support.caller import Caller

WEB = {"labelSelector": "app=web"}


@contextmanager
def in_cluster(
    tmp_path: Path, trust: Trust, prometheus: PrometheusProcess, cluster: FakeApiServer, *more: str
) -> Iterator[Adapter]:
    flags = ("--objects=", f"--lister-kubeconfig={cluster.kubeconfig(tmp_path / 'config')}", "--log-level=debug")
    with running_adapter(tmp_path, trust, *flags, *more, prometheus_url=prometheus.url, rules=RULES) as adapter:
        yield adapter


def names(caller: Caller) -> set[str]:
    answer = caller.pods("open_connections", **WEB)
    return set(answer.values) if answer.status == 200 else set()


def test_pods_are_watched(tmp_path: Path, trust: Trust, prometheus: PrometheusProcess) -> None:
    with FakeApiServer() as cluster:
        cluster.put("pods", "shop", "web-0", {"app": "web"})
        with in_cluster(tmp_path, trust, prometheus, cluster) as adapter, adapter.caller() as caller:
            eventually(lambda: names(caller) == {"web-0"})
            cluster.put("pods", "shop", "web-1", {"app": "web"})
            eventually(lambda: names(caller) == {"web-0", "web-1"})
            cluster.remove("pods", "shop", "web-0")
            eventually(lambda: names(caller) == {"web-1"})
            lists = len(cluster.asked("list", "pods"))
            for _ in range(50):
                assert names(caller) == {"web-1"}
            assert len(cluster.asked("list", "pods")) == lists
            assert adapter.metric("tidewatch_adapter_watch_synced", resource="pods") == 1
            # The cluster is away: what is known is served.
            cluster.stop()
            assert names(caller) == {"web-1"}
            eventually(lambda: adapter.plain("/readyz").status == 200)
            cluster.start()
            cluster.put("pods", "shop", "web-2", {"app": "web"})
            eventually(lambda: names(caller) == {"web-1", "web-2"})
            assert TOKEN not in adapter.log


def test_before_the_first_list_requests_for_pods_are_503_and_others_are_served(
    tmp_path: Path, trust: Trust, prometheus: PrometheusProcess
) -> None:
    with FakeApiServer() as cluster:
        cluster.put("pods", "shop", "web-0", {"app": "web"})
        cluster.forbid("list", "pods")
        with in_cluster(tmp_path, trust, prometheus, cluster) as adapter, adapter.caller() as caller:
            answer = caller.pods("open_connections", **WEB)
            assert (answer.status, answer.document["reason"]) == (503, "ServiceUnavailable")
            assert "pods" in answer.message
            eventually(lambda: "forbidden" in caller.pods("open_connections", **WEB).message.lower())
            assert len(caller.external("queue_depth").items) == 3
            # An object that is asked for by its name needs no watch.
            assert caller.get("/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/pods/web-1/open_connections").values
            # What does not need the list is served, so the process is ready without it.
            eventually(lambda: adapter.plain("/readyz").status == 200)
            assert adapter.plain("/livez").status == 200
            cluster.allow("list", "pods")
            eventually(lambda: names(caller) == {"web-0"})
            assert adapter.plain("/readyz").status == 200


def test_requests_to_the_api_server_stay_within_client_qps_and_burst(
    tmp_path: Path, trust: Trust, prometheus: PrometheusProcess
) -> None:
    limits = ("--client-qps=0.0001", "--client-burst=2")
    with FakeApiServer() as cluster, in_cluster(tmp_path, trust, prometheus, cluster, *limits) as adapter:
        adapter.wait_for("too many requests are waiting already .--client-qps")
        eventually(lambda: len(cluster.requests) == 2)
