"""The program with its own certificate in a Secret: all replicas show the same one; a rotation drops no connection."""

from __future__ import annotations

import base64
import os
import signal
import socket
import ssl
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from adapter.metrics.identity.certificates.certificate_secret import Content, new_secret
from adapter.metrics.identity.certificates.generations import make_generation
from tests.adapter.commands.harness import OBJECTS, RULES, SHOP
from tests.adapter.metrics.identity.certificates.keeping_harness import (
    CUSTOM,
    EXTERNAL,
    LIFE,
    SECRET,
    SERVICE,
    WANTED,
    apiservice,
)
from tests.support.apiserver_kinds import APISERVICES, SECRETS
from tests.support.caller import PATIENCE_SECONDS, Caller
from tests.support.fake_apiserver import TOKEN
from tests.support.forked import run
from tests.support.object_apiserver import ObjectApiServer
from tests.support.serving import Adapter, Trust, eventually, serving_flags

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from demo.machine.prometheus import PrometheusProcess

NAME = f"{SERVICE.name}.{SERVICE.namespace}.svc"
WEB = {"labelSelector": "app=web"}
PUBLISHED = "tidewatch_adapter_serving_certificate_published"
NOT_AFTER = "tidewatch_adapter_serving_certificate_not_after_timestamp_seconds"


@pytest.fixture
def cluster() -> Iterator[ObjectApiServer]:
    with ObjectApiServer() as server:
        for name in (CUSTOM, EXTERNAL):
            server.objects.put(APISERVICES, "", name, apiservice(name))
        yield server


def flags(folder: Path, cluster: ObjectApiServer) -> tuple[str, ...]:
    folder.mkdir(parents=True, exist_ok=True)
    return (
        "--tls-cert-file=",
        "--tls-private-key-file=",
        f"--cert-dir={folder / 'certificates'}",
        f"--kubeconfig={cluster.kubeconfig(folder / 'kubeconfig')}",
        f"--serving-secret={SECRET}",
        f"--service={SERVICE}",
        f"--apiservice={CUSTOM}",
        f"--apiservice={EXTERNAL}",
    )


@contextmanager
def replica(
    folder: Path, trust: Trust, prometheus: PrometheusProcess, cluster: ObjectApiServer, *more: str
) -> Iterator[Adapter]:
    with SHOP.adapter(folder, trust, prometheus, *flags(folder, cluster), *more) as adapter:
        yield adapter


def bundle(cluster: ObjectApiServer, name: str = CUSTOM) -> str:
    return base64.b64decode(cluster.objects.get_without_rights(APISERVICES, "", name)["spec"]["caBundle"]).decode()


def trusting(cluster: ObjectApiServer, trust: Trust) -> ssl.SSLContext:
    """Return a client that trusts the same CAs as kube-apiserver."""
    context = ssl.create_default_context(cadata=bundle(cluster))
    context.load_cert_chain(trust.front_proxy.certificate_file, trust.front_proxy.key_file)
    return context


def presented(adapter: Adapter, context: ssl.SSLContext) -> bytes:
    with (
        socket.create_connection(("127.0.0.1", adapter.port), timeout=PATIENCE_SECONDS) as tcp,
        context.wrap_socket(tcp, server_hostname=NAME) as sock,
    ):
        certificate = sock.getpeercert(binary_form=True)
    assert certificate
    return certificate


def seed(cluster: ObjectApiServer, days_ago: int) -> None:
    """Put a certificate into the Secret that was made so many days ago and is valid for 90 days."""
    made = datetime.now(tz=UTC) - timedelta(days=days_ago)
    generation = make_generation(WANTED.names, made, LIFE)
    content = Content(generation, None, (generation.authority,))
    cluster.objects.put(SECRETS, SECRET.namespace, SECRET.name, new_secret(SECRET, content, "adapter"))


def test_replicas_present_the_same_certificate_and_a_rotation_drops_no_connection(
    tmp_path: Path, trust: Trust, prometheus: PrometheusProcess, cluster: ObjectApiServer
) -> None:
    seed(cluster, days_ago=50)
    with (
        replica(tmp_path / "a", trust, prometheus, cluster, "--serving-certificate-life=60s") as first,
        replica(tmp_path / "b", trust, prometheus, cluster, "--serving-certificate-life=60s") as second,
    ):
        context = trusting(cluster, trust)
        before = presented(first, context)
        assert presented(second, context) == before
        assert (tmp_path / "a/certificates/serving.pem").stat().st_mode & 0o777 == 0o600
        assert eventually(lambda: first.metric(PUBLISHED, apiservice=CUSTOM)) == 1
        ends = first.metric(NOT_AFTER)
        context.check_hostname = False
        with Caller(first.port, context) as open_connection:
            assert open_connection.pods("open_connections", **WEB).status == 200
            # From now on it is in the last third of its life.
            seed(cluster, days_ago=70)

            def rotated() -> bool:
                # Clients that verify with the current bundle are accepted at every moment.
                now = trusting(cluster, trust)
                assert open_connection.pods("open_connections", **WEB).status == 200
                found = {presented(first, now), presented(second, now)}
                return len(found) == 1 and not found & {before} and len(bundle(cluster).split("END")) == 4

            eventually(rotated)
            assert open_connection.pods("open_connections", **WEB).status == 200
        assert eventually(lambda: first.metric(NOT_AFTER) != ends)
        assert bundle(cluster, EXTERNAL) == bundle(cluster)
        for adapter in (first, second):
            assert not adapter.said("Traceback")
            assert "PRIVATE KEY" not in adapter.log
            assert TOKEN not in adapter.log


def test_a_restarted_worker_presents_the_same_certificate(
    tmp_path: Path, trust: Trust, prometheus: PrometheusProcess, cluster: ObjectApiServer
) -> None:
    with replica(tmp_path, trust, prometheus, cluster) as adapter:
        before = presented(adapter, trusting(cluster, trust))
        worker = adapter.worker
        os.kill(worker, signal.SIGKILL)
        eventually(lambda: adapter.worker != worker)
        assert presented(adapter, trusting(cluster, trust)) == before
        writes = [asked for asked in cluster.requests if asked.verb in {"POST", "PATCH"}]
        assert [asked.verb for asked in writes] == ["POST", "PATCH", "PATCH"]


def test_without_a_usable_secret_the_program_does_not_start(
    tmp_path: Path, trust: Trust, cluster: ObjectApiServer
) -> None:
    ended = run(
        "serve",
        *serving_flags(tmp_path, "http://127.0.0.1:9", RULES, OBJECTS),
        *trust.flags(),
        *flags(tmp_path, cluster),
        "--kubeconfig=",
        f"--lister-kubeconfig={tmp_path / 'missing'}",
    )
    assert ended.code == 2
    assert "no serving certificate: kubeconfig" in ended.error
    assert not (tmp_path / "certificates").exists()
