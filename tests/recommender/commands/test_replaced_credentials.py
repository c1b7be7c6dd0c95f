"""A running `run` while its tokens, CAs and certificates, or those of its servers, are replaced or have expired."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from demo.machine.certificates import Authority
from demo.machine.files import replace_file
from tests.recommender.commands.cluster_harness import cluster_server, put_nodes, replicas_of, running
from tests.recommender.configuration.files import entry, whole
from tests.support.prometheus import scraped_prometheus
from tests.support.recording_proxy import recording_proxy
from tests.support.rotation import Rotation
from tests.support.tls_servers import expired, show, tls_of
from tests.support.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from demo.machine.certificates import KeyPair
    from tests.support.object_apiserver import ObjectApiServer

TARGETS: Final = "targets: [{apiVersion: apps/v1, kind: Deployment, namespace: kube-system, name: coredns}]"
DRIVEN: Final = "proportional: {drivers: {query: {expr: sum(connections), perReplica: 100}}}"
SECONDS: Final = 60.0


def connections(number: int) -> str:
    return f"# TYPE connections gauge\nconnections {number}\n"


def configuration(folder: Path, url: str) -> Path:
    """Write a configuration whose credentials for Prometheus are files in the folder."""
    files = f"tokenFile: {folder}/prometheus-token/token, caFile: {folder}/ca.crt"
    connection = f"{{url: '{url}', {files}, certFile: {folder}/tls.crt, keyFile: {folder}/tls.key}}"
    top = f"pollInterval: 1s\nstate: {folder}/state\nprometheus: {connection}\n"
    file = folder / "recommender.yaml"
    file.write_text(whole(entry("dns", TARGETS, "outputs: [metric, scale]", kind=DRIVEN), top=top))
    return file


def use_client(folder: Path, pair: KeyPair) -> None:
    """Use this client certificate for Prometheus."""
    replace_file(folder / "tls.key", pair.key_file.read_text())
    replace_file(folder / "tls.crt", pair.certificate_file.read_text())


def restart(server: ObjectApiServer) -> None:
    """End all connections, so that new ones see another certificate."""
    server.stop()
    server.start()


def has_size(server: ObjectApiServer, replicas: int) -> bool:
    return replicas_of(server) == replicas


def test_sizes_follow_while_credentials_are_replaced_and_hold_while_one_has_expired(tmp_path: Path) -> None:
    first, second, clients = (Authority(tmp_path / name, name) for name in ("first", "second", "clients"))
    api_tls, prometheus_tls = tls_of(first.server()), tls_of(first.server(), clients.ca_file)
    api_token, prometheus_token = Rotation(tmp_path / "api"), Rotation(tmp_path / "prometheus-token")
    api_token.write("api-secret-1")
    prometheus_token.write("prometheus-secret-1")
    ca = tmp_path / "ca.crt"

    use_client(tmp_path, clients.client("tidewatch"))
    replace_file(ca, first.ca_file.read_text())
    with (
        scraped_prometheus(tmp_path / "prometheus", connections(500), stamped=True) as prometheus,
        recording_proxy(prometheus.url, prometheus_tls) as proxy,
        cluster_server(api_tls) as server,
    ):
        server.tokens = {"api-secret-1"}
        proxy.authorization = "Bearer prometheus-secret-1"
        put_nodes(server, 3)
        file = configuration(tmp_path, proxy.url)
        kubeconfig = server.kubeconfig(tmp_path / "config", {"tokenFile": str(api_token.token)}, ca)
        with running("run", f"--config={file}", f"--kubeconfig={kubeconfig}", log_path=tmp_path / "log") as recommender:

            def follows(replicas: int) -> None:
                prometheus.publish(connections(100 * replicas), seen=f"connections == {100 * replicas}")
                until(partial(has_size, server, replicas), SECONDS)

            def holds(words: str) -> None:
                before, logged = replicas_of(server), recommender.log.count(words)
                prometheus.publish(connections(900), seen="connections == 900")
                until(lambda: recommender.log.count(words) > logged, SECONDS)
                assert replicas_of(server) == before
                assert [recommender.get(path, plain=True)[0] for path in ("/livez", "/readyz")] == [200, 200]

            until(partial(has_size, server, 5), SECONDS)
            # Both tokens.
            server.tokens = {"api-secret-2"}
            api_token.write("api-secret-2")
            follows(6)
            proxy.authorization = "Bearer prometheus-secret-2"
            prometheus_token.write("prometheus-secret-2")
            follows(7)
            # The certificate of Prometheus.
            show(prometheus_tls, first.server(validity=expired()))
            holds("certificate has expired")
            show(prometheus_tls, first.server())
            follows(6)
            # Our own.
            use_client(tmp_path, clients.client("tidewatch", validity=expired()))
            holds("does not accept this program's client certificate: certificate expired")
            use_client(tmp_path, clients.client("tidewatch"))
            follows(5)
            # The CA of both.
            replace_file(ca, first.ca_file.read_text() + second.ca_file.read_text())
            show(prometheus_tls, second.server())
            show(api_tls, second.server())
            restart(server)
            follows(6)
            # The certificate of the API server.
            show(api_tls, second.server(validity=expired()))
            restart(server)
            holds("certificate has expired")
            show(api_tls, second.server())
            follows(7)
            assert "secret" not in recommender.log
