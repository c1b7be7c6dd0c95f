"""Identity over the wire: a server process with real TLS, and callers that claim identities."""

from __future__ import annotations

import http.client
import json
import re
import socket
import ssl
import sys
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from demo.machine.certificates import Authority, KeyPair
from demo.machine.processes import start
from tests.support.checkout import CHECKOUT
from tests.support.validity import of_yesterday

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

NAME = "front-proxy-client"
ALICE = ("X-Remote-User", "alice")
MASTERS = ("X-Remote-Group", "system:masters")


@dataclass(frozen=True, slots=True)
class Harness:
    """The server, and the authorities of all kinds of callers."""

    port: int
    serving: Authority
    front_proxy: Authority
    cluster: Authority
    """A CA that TLS trusts too, but not for the front proxy."""
    other: Authority

    def client(self, pair: KeyPair | None = None, version: ssl.TLSVersion | None = None) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.serving.ca_file)
        if pair is not None:
            context.load_cert_chain(pair.certificate_file, pair.key_file)
        if version is not None:
            context.minimum_version = context.maximum_version = version
        return context

    def connection(self, pair: KeyPair | None = None) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection("localhost", self.port, context=self.client(pair), timeout=10)

    def send(self, pair: KeyPair | None, *headers: tuple[str, str]) -> tuple[int, str]:
        connection = self.connection(pair)
        try:
            return send(connection, headers)
        finally:
            connection.close()


def send(connection: http.client.HTTPSConnection, headers: Sequence[tuple[str, str]]) -> tuple[int, str]:
    """Send a request with each header as a line of its own."""
    connection.putrequest("GET", "/apis/custom.metrics.k8s.io/v1beta1")
    for name, value in headers:
        connection.putheader(name, value)
    connection.endheaders()
    response = connection.getresponse()
    return response.status, response.read().decode()


@pytest.fixture(name="harness", scope="module")
def _harness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    folder = tmp_path_factory.mktemp("over-tls")
    serving, front_proxy, cluster, other = (
        Authority(folder / name, name, intermediate=name == "front-proxy")
        for name in ("serving", "front-proxy", "cluster", "other")
    )
    trusted = [front_proxy.ca_file, cluster.ca_file]
    with serving_identity(folder, serving.server(), trusted, front_proxy.ca_file) as port:
        yield Harness(port, serving, front_proxy, cluster, other)


@contextmanager
def serving_identity(folder: Path, pair: KeyPair, trusted: Sequence[Path], front_proxy_ca: Path) -> Iterator[int]:
    """Run the server and yield its port; `trusted` is what TLS trusts."""
    settings = {
        "certificate": str(pair.certificate_file),
        "key": str(pair.key_file),
        "client_cas": [str(file) for file in trusted],
        "front_proxy_ca": str(front_proxy_ca),
        "allowed_names": [NAME],
    }
    log = folder / "server.log"
    command = [sys.executable, "-m", "tests.adapter.metrics.identity.identity_server", json.dumps(settings)]
    with start(command, log_path=log, name="identity-server", folder=CHECKOUT) as server:
        server.wait_until(lambda: _port(log) is not None, 30)
        port = _port(log)
        assert port is not None
        yield port


def _port(log: Path) -> int | None:
    found = re.search(r"https://127\.0\.0\.1:(\d+)", log.read_text())
    return int(found[1]) if found else None


def caller(answer: tuple[int, str]) -> dict[str, Any]:
    status, body = answer
    assert status == 200, body
    found: dict[str, Any] = json.loads(body)
    return found


def test_the_front_proxy_identifies_users_with_each_group_line_separate(harness: Harness) -> None:
    pair = harness.front_proxy.client(NAME)
    found = caller(
        harness.send(pair, ALICE, ("X-Remote-Group", "a"), ("x-remote-group", "b"), ("X-Remote-Extra-K%2fL", "v"))
    )
    assert (found["name"], found["groups"]) == ("alice", ["a", "b", "system:authenticated"])
    assert found["extra"] == {"k/l": ["v"]}


def test_a_bundle_may_hold_an_intermediate_without_its_root(harness: Harness, tmp_path: Path) -> None:
    intermediate = harness.front_proxy.intermediate
    assert intermediate is not None
    bundle = tmp_path / "intermediate.crt"
    bundle.write_bytes(intermediate.public_bytes(Encoding.PEM))
    with serving_identity(tmp_path, harness.serving.server(), [bundle], bundle) as port:
        other = replace(harness, port=port)
        assert caller(other.send(harness.front_proxy.client(NAME), ALICE))["name"] == "alice"


def test_a_group_with_a_comma_stays_one_group(harness: Harness) -> None:
    pair = harness.front_proxy.client(NAME)
    found = caller(harness.send(pair, ALICE, ("X-Remote-Group", "a,system:masters")))
    assert found["groups"] == ["a,system:masters", "system:authenticated"]


def test_header_names_with_underscores_add_no_group(harness: Harness) -> None:
    pair = harness.front_proxy.client(NAME)
    found = caller(
        harness.send(pair, ALICE, ("X_Remote_Group", "system:masters"), ("X-Remote_Group", "system:masters"))
    )
    assert found["groups"] == ["system:authenticated"]


def test_fifteen_hundred_groups_all_arrive(harness: Harness) -> None:
    groups = [f"group-{number:04d}-of-a-large-organization" for number in range(1500)]
    pair = harness.front_proxy.client(NAME)
    found = caller(harness.send(pair, ALICE, *(("X-Remote-Group", group) for group in groups)))
    assert found["groups"] == [*groups, "system:authenticated"]


def test_forged_headers_without_a_certificate_are_401(harness: Harness) -> None:
    assert harness.send(None, ALICE, MASTERS)[0] == 401


def test_the_right_name_from_another_ca_that_tls_trusts_is_refused(harness: Harness) -> None:
    status, body = harness.send(harness.cluster.client(NAME, ["system:masters"]), ALICE, MASTERS)
    assert (status, "not issued by the request-header CA" in body) == (403, True)


def test_another_name_from_the_right_ca_is_refused(harness: Harness) -> None:
    status, body = harness.send(harness.front_proxy.client("somebody"), ALICE, MASTERS)
    assert (status, "'somebody' is not among" in body) == (403, True)


def test_a_certificate_of_an_unknown_ca_is_rejected_by_tls(harness: Harness) -> None:
    with pytest.raises((ssl.SSLError, ConnectionError)):
        harness.send(harness.other.client(NAME), ALICE, MASTERS)


def test_an_expired_certificate_is_rejected_by_tls(harness: Harness) -> None:
    with pytest.raises((ssl.SSLError, ConnectionError)):
        harness.send(harness.front_proxy.client(NAME, validity=of_yesterday()), ALICE, MASTERS)


def test_identity_is_not_kept_on_a_connection_for_the_next_request(harness: Harness) -> None:
    connection = harness.connection(harness.front_proxy.client(NAME))
    first = caller(send(connection, [ALICE, MASTERS]))
    second = caller(send(connection, [("X-Remote-User", "bob")]))
    third = send(connection, [])
    connection.close()
    assert first["groups"] == ["system:masters", "system:authenticated"]
    assert (second["name"], second["groups"]) == ("bob", ["system:authenticated"])
    assert third[0] == 401


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_tls_sessions_are_not_resumed(harness: Harness, version: ssl.TLSVersion) -> None:
    context = harness.client(harness.front_proxy.client(NAME), version)
    session: ssl.SSLSession | None = None
    for _ in range(2):
        connection = http.client.HTTPSConnection("localhost", harness.port, context=context, timeout=10)
        connection.sock = context.wrap_socket(
            socket.create_connection(("127.0.0.1", harness.port), timeout=10),
            server_hostname="localhost",
            session=session,
        )
        assert isinstance(connection.sock, ssl.SSLSocket)
        assert caller(send(connection, [ALICE]))["name"] == "alice"
        assert not connection.sock.session_reused
        session = connection.sock.session
        connection.close()
