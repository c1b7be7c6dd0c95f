"""While Prometheus has a wrong clock, no size is written from its answers; afterwards, sizes are written again."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

from tests.recommender.commands.cluster_harness import cluster_server, put_nodes, replicas_of, running
from tests.recommender.configuration.files import entry, whole
from tests.support.prometheus import scraped_prometheus
from tests.support.recording_proxy import recording_proxy
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.object_apiserver import ObjectApiServer
    from tests.support.recommenders import Recommender
    from tests.support.recording_proxy import RecordingProxy

TARGETS: Final = "targets: [{apiVersion: apps/v1, kind: Deployment, namespace: kube-system, name: coredns}]"
DRIVEN: Final = "proportional: {drivers: {query: {expr: sum(connections), perReplica: 100}}}"
SECONDS: Final = 60.0


def connections(number: int) -> str:
    return f"# TYPE connections gauge\nconnections {number}\n"


def has_size(server: ObjectApiServer, replicas: int) -> bool:
    return replicas_of(server) == replicas


def has_requests(proxy: RecordingProxy, times: int) -> bool:
    return len(proxy.requests) >= times


@contextmanager
def recommending(folder: Path, address: str, server: ObjectApiServer) -> Iterator[Recommender]:
    """Run the recommender with a size that follows the number of connections in this Prometheus."""
    top = f"pollInterval: 1s\nstate: {folder}/state\nprometheus: {{url: '{address}'}}\n"
    file = folder / "recommender.yaml"
    file.write_text(whole(entry("dns", TARGETS, "outputs: [metric, scale]", kind=DRIVEN), top=top))
    kubeconfig = server.kubeconfig(folder / "config")
    with running("run", f"--config={file}", f"--kubeconfig={kubeconfig}", log_path=folder / "log") as recommender:
        yield recommender


def test_no_size_follows_a_prometheus_clock_ahead_behind_a_gateway_with_a_correct_clock(
    tmp_path: Path,
) -> None:
    with (
        scraped_prometheus(tmp_path / "prometheus", connections(500), stamped=True) as prometheus,
        recording_proxy(prometheus.url) as proxy,
        cluster_server() as server,
    ):
        put_nodes(server, 3)
        before = replicas_of(server)
        proxy.server_seconds_ahead = 3600.0
        with recommending(tmp_path, proxy.url, server) as recommender:
            until(lambda: "behind Prometheus's, so the values are of another time" in recommender.log, SECONDS)
            until(partial(has_requests, proxy, len(proxy.requests) + 5), SECONDS)
            assert replicas_of(server) == before
            proxy.server_seconds_ahead = 0.0
            until(partial(has_size, server, 5), SECONDS)


def test_no_size_follows_a_clock_that_is_an_hour_off_until_it_is_corrected(tmp_path: Path) -> None:
    with (
        scraped_prometheus(tmp_path / "prometheus", connections(500), stamped=True) as prometheus,
        recording_proxy(prometheus.url) as proxy,
        cluster_server() as server,
    ):
        put_nodes(server, 3)
        with recommending(tmp_path, proxy.url, server) as recommender:
            until(partial(has_size, server, 5), SECONDS)
            for seconds, problem, wrong, right in ((3600.0, "behind", 900, 7), (-3600.0, "ahead of", 100, 8)):
                proxy.seconds_ahead = seconds
                prometheus.publish(connections(wrong), seen=f"connections == {wrong}")
                before, sent = replicas_of(server), len(proxy.requests)
                until(partial(has_requests, proxy, sent + 5), SECONDS)
                assert replicas_of(server) == before
                assert f"{problem} Prometheus's, so the values are of another time" in recommender.log
                prometheus.publish(connections(100 * right), seen=f"connections == {100 * right}")
                proxy.seconds_ahead = 0.0
                until(partial(has_size, server, right), SECONDS)
