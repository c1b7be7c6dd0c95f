"""A real Prometheus that requires TLS, a client certificate and a password."""

from __future__ import annotations

import base64
import json
import ssl
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.sources.deadlines import Deadline
from adapter.foundation.sources.prometheus.errors import AuthenticationRefusedError, PrometheusUnreachableError
from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
from adapter.foundation.sources.prometheus.queries.connection import check_connection
from adapter.foundation.sources.prometheus.transport.http_answers import HttpRequest
from adapter.foundation.sources.prometheus.transport.transport import ConnectFailedError, Transport
from adapter.foundation.time.pace import UNPACED
from demo.machine.certificates import Authority
from demo.machine.prometheus import Access, running_prometheus
from tests.support.raw_server import answering, raw_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PASSWORD, BCRYPT = "secret", "$2b$04$jOUtFhIiDKL8AQN8LP6LAuZ2JUc4/xSTenIKBoiA/bg.pHIOVG2oe"


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusSettings]:
    """Yield the settings with which the server grants access."""
    folder = tmp_path_factory.mktemp("secured")
    authority = Authority(folder / "ca")
    server, client = authority.server(), authority.client("tidewatch")
    web_config = folder / "web.json"
    tls_files = {"cert_file": str(server.certificate_file), "key_file": str(server.key_file)}
    client_check = {"client_auth_type": "RequireAndVerifyClientCert", "client_ca_file": str(server.ca_file)}
    web_config.write_text(
        json.dumps({"tls_server_config": {**tls_files, **client_check}, "basic_auth_users": {"tidewatch": BCRYPT}})
    )
    tls = ssl.create_default_context(cafile=server.ca_file)
    tls.load_cert_chain(client.certificate_file, client.key_file)
    login = {"Authorization": "Basic " + base64.b64encode(f"tidewatch:{PASSWORD}".encode()).decode()}
    flags = [f"--web.config.file={web_config}"]
    with running_prometheus(folder, extra_flags=flags, access=Access(tls=tls, headers=login)) as prometheus:
        yield PrometheusSettings(
            prometheus.url,
            ca_file=server.ca_file,
            client_cert_file=client.certificate_file,
            client_key_file=client.key_file,
            username="tidewatch",
            password=PASSWORD,
        )


def values(settings: PrometheusSettings) -> list[float]:
    with PrometheusClient(settings) as client:
        answer = client.instant("vector(1)", timeout_seconds=10)
        return [sample.value for batch in answer.batches(UNPACED) for sample in batch]


def test_with_valid_credentials_the_server_answers(settings: PrometheusSettings) -> None:
    assert values(settings) == [1.0]
    assert check_connection(settings, 10)[0].isdigit()


def test_a_wrong_password_is_refused(settings: PrometheusSettings) -> None:
    wrong = replace(settings, password="not this one")
    with pytest.raises(AuthenticationRefusedError, match="HTTP 401"):
        values(wrong)
    with pytest.raises(AuthenticationRefusedError, match="HTTP 401"):
        check_connection(wrong, 10)


def test_without_a_client_certificate_the_server_is_unreachable(settings: PrometheusSettings) -> None:
    # Mostly reported as "certificate required"; where the server's reset overtakes its words, as cut off.
    with pytest.raises(PrometheusUnreachableError):
        values(replace(settings, client_cert_file=None, client_key_file=None))


def test_a_server_of_an_untrusted_authority_is_refused(settings: PrometheusSettings) -> None:
    with pytest.raises(PrometheusUnreachableError, match="certificate is not accepted"):
        values(replace(settings, ca_file=None))
    with pytest.raises(PrometheusUnreachableError, match="certificate is not accepted"):
        check_connection(replace(settings, ca_file=None), 10)


def test_an_open_connection_is_not_reused_once_its_authority_is_untrusted(tmp_path: Path) -> None:
    former, other = Authority(tmp_path / "former", "former"), Authority(tmp_path / "other", "other")
    pair = former.server()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(pair.certificate_file, pair.key_file)
    trusted = {each: ssl.create_default_context(cafile=each.ca_file) for each in (former, other)}
    present = [former]
    with raw_server(answering(b"{}"), tls) as server:
        endpoint = PrometheusSettings(server.url.replace("127.0.0.1", "localhost")).endpoint
        transport = Transport(endpoint, size=1, connect_seconds=10, read_seconds=10, tls=lambda: trusted[present[0]])

        def ask() -> int:
            with transport.open_answer(HttpRequest("GET", "/", {}, None, 100), Deadline(10)) as answer:
                return answer.whole().status

        assert (ask(), ask(), server.connections) == (200, 200, 1)
        present[0] = other
        with pytest.raises(ConnectFailedError, match="certificate is not accepted"):
            ask()
        present[0] = former
        assert ask() == 200
        transport.close()
