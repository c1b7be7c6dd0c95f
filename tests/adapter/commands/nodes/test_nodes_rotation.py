"""Certificates of the server and CAs of the scheduler that change while kept connections are in use."""

from __future__ import annotations

import http.client
import json
import socket
from functools import partial
from typing import TYPE_CHECKING

from demo.machine.certificates import Authority
from demo.machine.files import replace_file
from tests.adapter.commands.nodes.harness import OBJECTS, POD, NodesProcess, running_nodes
from tests.support.caller import PATIENCE_SECONDS
from tests.support.rotation import BROKEN, Rotation
from tests.support.serving import Trust, eventually

if TYPE_CHECKING:
    import ssl
    from pathlib import Path

ROTATIONS = 3


class Scheduler:
    """A scheduler with one kept connection."""

    def __init__(self, nodes: NodesProcess, context: ssl.SSLContext) -> None:
        self._connection = http.client.HTTPSConnection(
            "localhost", nodes.port, timeout=PATIENCE_SECONDS, context=context
        )

    def status(self) -> int:
        """Return the status of a call on this connection, which the server must not close."""
        body = json.dumps({"Pod": POD, "Nodes": None, "NodeNames": ["node-1"]})
        if self._connection.sock is not None:
            self._connection.auto_open = 0
        self._connection.request("POST", "/scheduler/prioritize", body)
        response = self._connection.getresponse()
        response.read()
        return response.status

    def close(self) -> None:
        self._connection.close()


def test_clients_of_a_removed_ca_are_refused_on_open_connections_and_others_never_fail(tmp_path: Path) -> None:
    trust = Trust.made_in(tmp_path / "trust")
    authorities = [Authority(tmp_path / f"clients-{number}", f"clients-{number}") for number in range(ROTATIONS + 2)]
    certificate, key, bundle = tmp_path / "tls.crt", tmp_path / "tls.key", tmp_path / "clients.crt"

    def write_another_certificate() -> None:
        pair = trust.serving.server()
        replace_file(key, pair.key_file.read_text())
        replace_file(certificate, pair.certificate_file.read_text())

    def trust_from(number: int) -> None:
        replace_file(bundle, "".join(one.ca_file.read_text() for one in authorities[number : number + 2]))

    write_another_certificate()
    trust_from(0)
    flags = (
        "--prometheus-url=http://127.0.0.1:9",
        f"--tls-cert-file={certificate}",
        f"--tls-private-key-file={key}",
        f"--client-ca-file={bundle}",
    )
    with running_nodes(tmp_path, *flags, objects=OBJECTS) as nodes:
        old, new = (Scheduler(nodes, trust.context(one.client("scheduler"))) for one in authorities[:2])
        assert [old.status(), new.status()] == [200, 200]
        for number in range(1, ROTATIONS + 1):
            write_another_certificate()
            trust_from(number)

            def is_refused(old: Scheduler = old, new: Scheduler = new) -> bool:
                assert new.status() == 200
                return old.status() == 401

            eventually(is_refused)
            old.close()
            old, new = new, Scheduler(nodes, trust.context(authorities[number + 1].client("scheduler")))
            assert [old.status(), new.status()] == [200, 200]
        for scheduler in (old, new):
            scheduler.close()
        assert not any(line in nodes.log for line in key.read_text().splitlines())


def test_only_the_last_good_token_is_accepted_while_the_file_has_no_valid_one(tmp_path: Path) -> None:
    rotation = Rotation(tmp_path / "volume")
    rotation.write("the-first-secret")
    flags = ("--prometheus-url=http://127.0.0.1:9", f"--token-file={rotation.token}")
    refused = f'tidewatch_credentials_refused{{credentials="token file ({rotation.token})"}} '
    with running_nodes(tmp_path, *flags, objects=OBJECTS) as nodes:

        def admits(token: str) -> bool:
            return nodes.ask("/nodes/unmapped", token=token).status != 401

        def has_refused(times: int) -> bool:
            assert admits("the-first-secret")
            return nodes.log.count("the last good version stays in use") == times

        for number, prepare in enumerate(BROKEN, start=1):
            rotation.swap(prepare)
            eventually(partial(has_refused, number))
            assert not any(admits(token) for token in ("", "two", "secret", "s"))
        assert f"{refused}1.0" in nodes.ask("/metrics").text
        rotation.write("the-second-secret")
        eventually(lambda: admits("the-second-secret"))
        assert not admits("the-first-secret")
        assert f"{refused}0.0" in nodes.ask("/metrics").text
        assert "secret" not in nodes.log


def test_the_last_good_certificate_is_presented_while_the_files_have_no_valid_one(tmp_path: Path) -> None:
    trust = Trust.made_in(tmp_path / "trust")
    first, second = trust.serving.server(), trust.serving.server()
    clients = Authority(tmp_path / "clients", "clients")
    context = trust.context(clients.client("scheduler"))
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    replace_file(certificate, first.certificate_file.read_text())
    replace_file(key, first.key_file.read_text())
    whole = second.certificate_file.read_text()
    flags = (
        "--prometheus-url=http://127.0.0.1:9",
        f"--tls-cert-file={certificate}",
        f"--tls-private-key-file={key}",
        f"--client-ca-file={clients.ca_file}",
    )
    with running_nodes(tmp_path, *flags, objects=OBJECTS) as nodes:

        def presented() -> bytes | None:
            tcp = socket.create_connection(("127.0.0.1", nodes.port), PATIENCE_SECONDS)
            with context.wrap_socket(tcp, server_hostname="localhost") as sock:
                return sock.getpeercert(binary_form=True)

        own = presented()
        for broken in ("", whole[: len(whole) // 2], "no PEM", whole):
            replace_file(certificate, broken)
            assert presented() == own
        certificate.unlink()
        assert presented() == own
        certificate.mkdir()
        assert presented() == own
        certificate.rmdir()
        replace_file(certificate, whole)
        replace_file(key, second.key_file.read_text())
        assert presented() != own
        assert "PRIVATE KEY" not in nodes.log
        assert not any(line in nodes.log for line in second.key_file.read_text().splitlines())
