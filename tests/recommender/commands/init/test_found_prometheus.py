"""Without an address, both `init` commands find a Prometheus and query it through the API server."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.recommender.commands.cluster_harness import cluster_server
from tests.support.apiserver_kinds import DEPLOYMENTS
from tests.support.fake_apiserver import TOKEN
from tests.support.forked import ADAPTER, RECOMMENDER, run
from tests.support.prometheus_services import service

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from tests.support.forked import Ended
    from tests.support.object_apiserver import ObjectApiServer
    from tests.support.prometheus import ScrapedPrometheus

POD = "web-7d9f8b6c5d-x2k4q"
TEXT = f'websocket_connections{{namespace="shop",pod="{POD}"}} 7\n'
PORT = 9090
READY = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:20Z"}
PODS = [
    {
        "metadata": {"name": POD, "namespace": "shop", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "status": {"conditions": [READY]},
    }
]
WEB = {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"replicas": 1}, "status": {"replicas": 1}}
LISTS: dict[str, list[Any]] = {
    "/api/v1/nodes": [],
    "/apis/apps/v1/deployments": [WEB],
    "/apis/apps/v1/statefulsets": [],
    "/api/v1/namespaces/shop/pods": PODS,
}


@pytest.fixture(scope="module")
def shop(start_prometheus: Callable[..., ScrapedPrometheus]) -> ScrapedPrometheus:
    running = start_prometheus(TEXT, interval="1s", stamped=True)
    running.wait_for("websocket_connections offset 1s")
    return running


@contextmanager
def cluster(services: Sequence[dict[str, Any]], url: str, *behind: str) -> Iterator[ObjectApiServer]:
    """Serve a cluster with these Services; a Prometheus answers behind those of `behind` (NAMESPACE/NAME)."""
    with cluster_server() as server:
        server.objects.put(DEPLOYMENTS, "shop", "web", WEB)
        for path, listed in {**LISTS, "/api/v1/services": list(services)}.items():
            server.answers[path] = 200, {"kind": "List", "apiVersion": "v1", "metadata": {}, "items": listed}
        for place in behind:
            namespace, name = place.split("/")
            server.proxied[f"/api/v1/namespaces/{namespace}/services/http:{name}:{PORT}/proxy"] = url
        yield server


def init(server: ObjectApiServer, folder: Path, program: str = RECOMMENDER) -> Ended:
    kubeconfig = server.kubeconfig(folder / "kubeconfig")
    return run("init", f"--kubeconfig={kubeconfig}", f"--out={folder}/out", program=program)


@pytest.mark.parametrize(
    ("program", "file"), [(ADAPTER, "rules.yaml"), (RECOMMENDER, "recommender.yaml")], ids=["adapter", "recommender"]
)
def test_the_only_prometheus_that_answers_is_queried(
    shop: ScrapedPrometheus, tmp_path: Path, program: str, file: str
) -> None:
    services = [service("monitoring", "prometheus-server", PORT), service("monitoring", "prometheus-gone", PORT)]
    with cluster(services, shop.url, "monitoring/prometheus-server") as server:
        ended = init(server, tmp_path, program)

    assert (ended.code, ended.error) == (0, "")
    text = (tmp_path / "out" / file).read_text()
    assert "http://prometheus-server.monitoring.svc:9090" in text
    assert TOKEN not in text


def test_the_file_contains_what_the_cluster_shows(shop: ScrapedPrometheus, tmp_path: Path) -> None:
    with cluster(
        [service("monitoring", "prometheus-server", PORT)], shop.url, "monitoring/prometheus-server"
    ) as server:
        init(server, tmp_path)
    text = (tmp_path / "out" / "recommender.yaml").read_text()
    document = yaml.safe_load(text)
    (web,) = document["recommendations"]

    # The address is the one for programs in the cluster, without the credentials for the API server.
    assert document["prometheus"] == {"url": "http://prometheus-server.monitoring.svc:9090"}
    assert (web["predictive"]["loadPerReplica"], web["predictive"]["horizon"]) == (7, "20s")
    assert "recommended, 1 running" in text


@pytest.mark.parametrize("program", [ADAPTER, RECOMMENDER], ids=["adapter", "recommender"])
def test_none_of_several_prometheus_servers_is_chosen_without_a_flag(
    shop: ScrapedPrometheus, tmp_path: Path, program: str
) -> None:
    services = [service("a", "prometheus-server", PORT), service("b", "thanos-query", PORT)]
    with cluster(services, shop.url, "a/prometheus-server", "b/thanos-query") as server:
        ended = init(server, tmp_path, program)

    assert ended.code == 2
    for url in ("http://prometheus-server.a.svc:9090", "http://thanos-query.b.svc:9090"):
        assert f"--prometheus-url {url}" in ended.error
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("services", "message"),
    [
        ([service("shop", "web", 80)], "no Service of the cluster looks like Prometheus"),
        ([service("shop", "prometheus-server", PORT)], "none of 1 Services that look like Prometheus answers"),
    ],
    ids=["no such Service", "none answers"],
)
def test_the_flag_is_requested_if_no_prometheus_is_found(
    tmp_path: Path, services: list[dict[str, Any]], message: str
) -> None:
    with cluster(services, "") as server:
        ended = init(server, tmp_path)

    assert ended.code == 2
    assert message in ended.error
    assert "give its address with --prometheus-url" in ended.error
