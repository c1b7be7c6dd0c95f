"""The server's TLS, tested over socket pairs."""

from __future__ import annotations

import socket
import ssl
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.service.flags.parsing import UsageError
from adapter.foundation.service.server.tls import ResumedSessionError, ServerTls, TlsSettings, verified_chain

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.adapter.foundation.service.servers import Certificates


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as made:
        yield made


def settings_of(certificates: Certificates, **more: object) -> TlsSettings:
    pair = certificates.server
    return TlsSettings(certificate_file=pair.certificate_file, key_file=pair.key_file, **more)  # type: ignore[arg-type] # by the tests' own tables


def trusted_by(certificates: Certificates) -> frozenset[bytes]:
    return frozenset({ssl.PEM_cert_to_DER_cert(certificates.clients.ca_file.read_text())})


def client_of(certificates: Certificates, version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=certificates.server.ca_file)
    context.maximum_version = version
    return context


class Pair:
    """Two ends of a connection, the server's wrapped by the TLS under test."""

    def __init__(self, tls: ServerTls, stack: ExitStack) -> None:
        ours, self._theirs = socket.socketpair()
        ours.settimeout(20)
        self._theirs.settimeout(20)
        self.server = stack.enter_context(tls.wrap(ours))
        stack.enter_context(self._theirs)
        self._stack = stack

    def shake(self, context: ssl.SSLContext, session: ssl.SSLSession | None = None) -> ssl.SSLSocket:
        """Shake hands and return the client's end; raise what the server's end raises."""
        failures: list[OSError] = []

        def serve() -> None:
            try:
                self.server.do_handshake()
                self.server.send(b"!")
            except OSError as e:
                failures.append(e)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            client = context.wrap_socket(self._theirs, server_hostname="localhost", session=session)
            client.recv(1)
        finally:
            thread.join(20)
            if failures:
                raise failures[0]
        return self._stack.enter_context(client)


def test_a_resumed_session_is_refused(certificates: Certificates, stack: ExitStack) -> None:
    tls = ServerTls(settings_of(certificates))
    # Both wrapped before either is shaken: the only way to share a session cache.
    first, second = Pair(tls, stack), Pair(tls, stack)
    context = client_of(certificates)
    session = first.shake(context).session
    tls.shaken(first.server)
    assert second.shake(context, session).session_reused
    with pytest.raises(ResumedSessionError):
        tls.shaken(second.server)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_session_cannot_be_resumed_after_its_handshake(
    certificates: Certificates, stack: ExitStack, version: ssl.TLSVersion
) -> None:
    tls = ServerTls(settings_of(certificates))
    context = client_of(certificates, version)
    first = Pair(tls, stack)
    session = first.shake(context).session
    tls.shaken(first.server)
    assert not Pair(tls, stack).shake(context, session).session_reused


@pytest.mark.parametrize(("version", "kept"), [(ssl.TLSVersion.TLSv1_2, False), (ssl.TLSVersion.TLSv1_3, True)])
def test_the_context_is_kept_where_it_has_no_session_cache(
    certificates: Certificates, stack: ExitStack, version: ssl.TLSVersion, *, kept: bool
) -> None:
    tls = ServerTls(settings_of(certificates))
    first = Pair(tls, stack)
    first.shake(client_of(certificates, version))
    tls.shaken(first.server)
    assert (Pair(tls, stack).server.context is first.server.context) is kept


def test_without_client_authorities_no_certificate_is_requested(certificates: Certificates, stack: ExitStack) -> None:
    context = client_of(certificates, ssl.TLSVersion.TLSv1_3)
    context.load_cert_chain(certificates.client.certificate_file, certificates.client.key_file)
    pair = Pair(ServerTls(settings_of(certificates)), stack)
    pair.shake(context)
    assert pair.server.getpeercert(binary_form=True) is None
    assert verified_chain(pair.server) == ()


def test_the_verified_chain_goes_from_leaf_to_root(certificates: Certificates, stack: ExitStack) -> None:
    context = client_of(certificates, ssl.TLSVersion.TLSv1_3)
    context.load_cert_chain(certificates.client.certificate_file, certificates.client.key_file)
    pair = Pair(ServerTls(settings_of(certificates, client_authorities=lambda: trusted_by(certificates))), stack)
    pair.shake(context)
    assert verified_chain(pair.server) == certificates.client.chain


def test_a_plain_socket_has_no_chain() -> None:
    with socket.socket() as sock:
        assert verified_chain(sock) == ()


def test_a_tls_version_below_the_minimum_is_refused(certificates: Certificates, stack: ExitStack) -> None:
    pair = Pair(ServerTls(settings_of(certificates, min_version=ssl.TLSVersion.TLSv1_3)), stack)
    with pytest.raises(ssl.SSLError, match=r"(?i)unsupported.protocol"):
        pair.shake(client_of(certificates, ssl.TLSVersion.TLSv1_2))


def test_the_configured_cipher_suites_are_used(certificates: Certificates, stack: ExitStack) -> None:
    pair = Pair(ServerTls(settings_of(certificates, cipher_suites=("ECDHE-ECDSA-AES256-GCM-SHA384",))), stack)
    cipher = pair.shake(client_of(certificates)).cipher()
    assert cipher is not None
    assert cipher[0] == "ECDHE-ECDSA-AES256-GCM-SHA384"


@pytest.mark.parametrize("content", [None, "nonsense"])
def test_files_that_cannot_be_used_are_refused_at_the_start(
    tmp_path: Path, certificates: Certificates, content: str | None
) -> None:
    certificate = tmp_path / "tls.crt"
    if content is not None:
        certificate.write_text(content)
    settings = TlsSettings(certificate_file=certificate, key_file=certificates.server.key_file)
    with pytest.raises(UsageError, match=str(certificate)):
        ServerTls(settings)


def test_files_that_become_unusable_leave_the_last_good_ones_in_use(
    tmp_path: Path, certificates: Certificates, stack: ExitStack, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    certificate = tmp_path / "tls.crt"
    good = certificates.server.certificate_file.read_bytes()
    certificate.write_bytes(good)
    reloads: list[bool] = []
    tls = ServerTls(TlsSettings(certificate_file=certificate, key_file=certificates.server.key_file), reloads.append)
    certificate.unlink()
    for _ in range(3):
        Pair(tls, stack).shake(client_of(certificates))
    assert reloads == [False]
    certificate.write_bytes(good)
    Pair(tls, stack).shake(client_of(certificates))
    assert reloads == [False, True]
    assert [message.split(":")[0] for message in caplog.messages] == [
        f"cannot read the TLS files {certificate}",
        "the TLS files are usable again",
        "TLS files reloaded",
    ]
