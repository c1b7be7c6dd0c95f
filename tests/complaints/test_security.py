"""Trust, rights, and the ownership of APIs."""

from __future__ import annotations

import ssl
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from demo.machine.certificates import Authority
from demo.machine.files import replace_file
from tests.adapter.metrics.identity.certificates.keeping_harness import CUSTOM, EXTERNAL, SERVICE, apiservice
from tests.complaints.harness import CONNECTIONS_RULE, OBJECTS
from tests.helm.chart import CHART
from tests.support.apiserver_kinds import APISERVICES
from tests.support.forked import run
from tests.support.object_apiserver import ObjectApiServer
from tests.support.raw_server import RawServer, answering, raw_server
from tests.support.serving import Adapter, Trust, eventually, running_adapter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WEB = {"labelSelector": "app=web"}
RULES = f"rules:\n{CONNECTIONS_RULE}"
FIRST_TOKEN, SECOND_TOKEN = "the-first-secret", "the-second-secret"
NO_SAMPLES = b'{"status":"success","data":{"resultType":"vector","result":[]}}'


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("monitoring"), "monitoring")


@pytest.fixture(scope="module")
def tls(authority: Authority) -> ssl.SSLContext:
    """Return the TLS of a server whose certificate only this authority vouches for."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server = authority.server()
    context.load_cert_chain(server.certificate_file, server.key_file)
    return context


@contextmanager
def asked_by_adapter(
    folder: Path, trust: Trust, tls: ssl.SSLContext, *flags: str
) -> Iterator[tuple[RawServer, Adapter]]:
    """Run a stand-in for Prometheus with TLS that records its requests, and an adapter with a token for it."""
    script = answering(NO_SAMPLES, Content_Type="application/json")
    token = f"--prometheus-token-file={folder / 'token'}"
    replace_file(folder / "token", FIRST_TOKEN)
    with (
        raw_server(script, tls) as server,
        running_adapter(
            folder, trust, token, *flags, prometheus_url=server.url, rules=RULES, objects=OBJECTS
        ) as adapter,
    ):
        yield server, adapter


def test_tls_is_verified_and_no_token_is_sent_to_another_host__prometheus_adapter_681(
    tmp_path: Path, trust: Trust, tls: ssl.SSLContext
) -> None:
    """In `tests/e2e/install/test_chart_installed.py` a real API server verifies the adapter in turn."""
    with asked_by_adapter(tmp_path, trust, tls) as (other, adapter), adapter.caller() as caller:
        answer = caller.pods("connections", **WEB)
        assert answer.status == 503
        assert "certificate is not accepted" in answer.message
        assert other.requests == []
        assert FIRST_TOKEN not in adapter.log


def test_the_chart_never_turns_tls_verification_off__prometheus_adapter_681() -> None:
    templates = {path.name: path.read_text() for path in (CHART / "templates").iterdir()}
    assert "caBundle" in "".join(templates.values())
    assert [name for name, text in templates.items() if "insecureSkipTLSVerify" in text] == []


def test_a_renewed_token_is_used_without_a_restart__prometheus_adapter_681(
    tmp_path: Path, trust: Trust, tls: ssl.SSLContext, authority: Authority
) -> None:
    """Tokens of service accounts expire after an hour; prometheus-adapter read its file once."""
    ca_file = f"--prometheus-ca-file={authority.ca_file}"
    with asked_by_adapter(tmp_path, trust, tls, ca_file, "--refresh-interval=1s") as (server, adapter):
        with adapter.caller() as caller:
            assert caller.pods("connections", **WEB).status == 200
            assert tokens(server) == {f"Bearer {FIRST_TOKEN}"}
            replace_file(tmp_path / "token", SECOND_TOKEN)
            eventually(
                lambda: caller.pods("connections", **WEB).items == [] and f"Bearer {SECOND_TOKEN}" in tokens(server)
            )
        assert adapter.said(f"{FIRST_TOKEN}|{SECOND_TOKEN}") == []


def tokens(server: RawServer) -> set[str]:
    return {request.headers.get("authorization", "") for request in server.requests}


@pytest.fixture
def cluster() -> Iterator[ObjectApiServer]:
    """Yield a cluster whose custom metrics API is this adapter's."""
    with ObjectApiServer() as server:
        server.objects.put(APISERVICES, "", CUSTOM, apiservice(CUSTOM))
        yield server


def doctor(cluster: ObjectApiServer, folder: Path) -> list[str]:
    """Return what the doctor prints."""
    kubeconfig = cluster.kubeconfig(folder / "kubeconfig")
    return run("doctor", f"--kubeconfig={kubeconfig}", f"--service={SERVICE}").out.splitlines()


def line_of(lines: list[str], name: str) -> str:
    (found,) = [line for line in lines if f" {name}" in line]
    return found


def test_a_missing_right_is_reported_with_what_does_not_work__prometheus_adapter_473_274(
    cluster: ObjectApiServer, tmp_path: Path
) -> None:
    """The rights are the adapter's own, and those of the controller that reads metrics (also helm/charts 7700)."""
    cluster.objects.deny("list", "pods")
    lines = doctor(cluster, tmp_path)
    assert line_of(lines, "permission/list pods").endswith("HPAs on Pods metrics get 503")
    assert "  fix: grant a ClusterRole with list and watch on pods" in lines
    assert "may not get pods.custom.metrics.k8s.io" in line_of(lines, "hpa-controller/custom.metrics.k8s.io")


def test_an_api_that_another_adapter_serves_is_reported_with_its_owner__keda_6475(
    cluster: ObjectApiServer, tmp_path: Path
) -> None:
    """A cluster can have one external-metrics adapter (also CMA 70, keda 470)."""
    other = replace(SERVICE, namespace="keda", name="keda-operator-metrics-apiserver")
    cluster.objects.put(APISERVICES, "", EXTERNAL, apiservice(EXTERNAL, other))
    line = line_of(doctor(cluster, tmp_path), f"apiservice/{EXTERNAL}")
    assert line.startswith("error: ")
    assert "it belongs to the service keda/keda-operator-metrics-apiserver, not to monitoring/tidewatch" in line
