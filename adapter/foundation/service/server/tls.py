"""The server's side of TLS: one cached context, replaced when its files change, without session resumption.

Creating a context costs about as much as a handshake, so one is created for each state of the files (times and inodes)
and of the trusted client authorities, not for each connection. Open connections keep their context. A kubelet swaps a
mounted Secret with one rename, but a tool may write the two files one after the other: a pair that does not match or
cannot be read leaves the last good context in place.

Resumption is disabled because a resumed session has no verified chain: the certificate that a front proxy presented in
an earlier connection would be accepted unverified. An option turns tickets off. Python has no option for the session
cache of TLS 1.2, but the cache belongs to the context, so the context is replaced after a TLS 1.2 handshake.
(kube-apiserver uses TLS 1.3, where this costs nothing.)

Clients may present a certificate if `client_authorities` are set. Python verifies it within the handshake: a client
with a certificate of another CA is disconnected with the alert `unknown_ca`, while Go would accept it as anonymous.
This is safe, but such a client must not present its certificate if it wants an answer. The same happens while no
authority is known yet: an early client has to reconnect, and cannot keep a connection on which its certificate was
never verified.
"""

from __future__ import annotations

import logging
import os
import socket
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapter.foundation.files.file_contents import require_regular
from adapter.foundation.files.followed_files import FollowedFiles, Stamp, stamps_of
from adapter.foundation.service.runtime.errors import UsageError
from adapter.foundation.service.runtime.logs import StateLog

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_log = logging.getLogger(__name__)

_HANDSHAKE_RECORD = b"\x16"
"""First byte of every TLS connection, and of no HTTP request."""
_UNUSABLE = (OSError, ValueError)
_USABLE_AGAIN = "the TLS files are usable again"

VERSIONS = {"VersionTLS12": ssl.TLSVersion.TLSv1_2, "VersionTLS13": ssl.TLSVersion.TLSv1_3}
"""TLS versions by Go's names, which `--tls-min-version` accepts."""

OLD_VERSIONS = ("VersionTLS10", "VersionTLS11")
"""Versions that Go also knows but that are never offered here (RFC 8996)."""

SUITES = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_RSA_WITH_AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "TLS_RSA_WITH_AES_256_GCM_SHA384": "AES256-GCM-SHA384",
}
"""OpenSSL's names of the TLS 1.2 cipher suites, by the names that `--tls-cipher-suites` accepts."""

FIXED_SUITES = frozenset({"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"})
"""Cipher suites of TLS 1.3, which are always on, here as in Go; naming them has no effect."""

WEAK_SUITES = frozenset(
    {
        "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
        "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
        "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
        "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA",
        "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
        "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
        "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
        "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
        "TLS_ECDHE_RSA_WITH_RC4_128_SHA",
        "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
        "TLS_RSA_WITH_AES_128_CBC_SHA",
        "TLS_RSA_WITH_AES_128_CBC_SHA256",
        "TLS_RSA_WITH_AES_256_CBC_SHA",
        "TLS_RSA_WITH_RC4_128_SHA",
    }
)
"""Suites that Go knows too and that are never offered here: RC4, and block ciphers in CBC mode, for which attacks on
the padding are known. Manifests name them beside others, which all current clients support."""


class ResumedSessionError(ssl.SSLError):
    """A client resumed a session although resumption is disabled; it has no verified chain, so it is not served."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    """The certificate that the server presents, and the authorities whose client certificates it accepts."""

    certificate_file: Path
    key_file: Path
    client_authorities: Callable[[], frozenset[bytes]] | None = None
    """Returns the CAs of client certificates that are trusted now, in DER. It is called for each connection, so it must
    answer from memory. If it is None, clients are not asked for a certificate. The CAs of the system never count."""
    min_version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2
    is_optional: bool = False
    """Whether plain HTTP is answered on the same port."""
    cipher_suites: tuple[str, ...] = ()
    """Cipher suites of TLS 1.2 by OpenSSL's names (`chosen_suites`); empty for OpenSSL's default."""

    @property
    def files(self) -> tuple[Path, ...]:
        """Return the files that the context is made of."""
        return self.certificate_file, self.key_file

    def trusted_cas(self) -> frozenset[bytes]:
        """Return the CAs of client certificates, in DER."""
        return self.client_authorities() if self.client_authorities else frozenset()


class ServerTls:
    """Wraps accepted sockets with the last good context. For the accepting thread only."""

    def __init__(self, settings: TlsSettings, on_reload: Callable[[bool], None] = lambda _: None) -> None:
        """Load the files once; raises UsageError if they cannot be used."""
        self._settings = settings
        self.on_reload = on_reload
        """Callback for each change of files or authorities, with whether they could be used."""
        self._state_log = StateLog(_log)
        try:
            self._followed = FollowedFiles(
                self._look,
                lambda _: server_context(settings),
                unusable=_UNUSABLE,
                on_success=self._put_in_force,
                on_failure=self._refuse_files,
                # Their permissions may have been the reason.
                loads_refused_again=True,
            )
        except _UNUSABLE as e:
            raise UsageError(_unusable(settings, e)) from e
        self._context: ssl.SSLContext | None = self._followed.value

    def wrap(self, sock: socket.socket) -> ssl.SSLSocket:
        """Return the socket wrapped with TLS, before the handshake."""
        return self._current().wrap_socket(
            sock, server_side=True, do_handshake_on_connect=False, suppress_ragged_eofs=True
        )

    def is_spoken_on(self, sock: socket.socket) -> bool:
        """Return whether a connection uses TLS; if TLS is optional, the connection's first byte decides.

        Raises BlockingIOError if this byte has not arrived, EOFError if it never will, and OSError.
        """
        if not self._settings.is_optional or isinstance(sock, ssl.SSLSocket):
            return True
        first = sock.recv(1, socket.MSG_PEEK)
        if not first:
            raise EOFError
        return first == _HANDSHAKE_RECORD

    def shaken(self, sock: ssl.SSLSocket) -> None:
        """Check a finished handshake; raises ResumedSessionError for a resumed session."""
        if sock.version() != "TLSv1.3":
            self._context = None
        if sock.session_reused:
            raise ResumedSessionError("the client resumed a session, which this server does not offer")

    def _current(self) -> ssl.SSLContext:
        self._followed.check()
        if self._context is None:
            self._context = self._without_sessions()
        return self._context

    def _look(self) -> tuple[tuple[tuple[Stamp, ...], frozenset[bytes]], None]:
        return (stamps_of(self._settings.files), self._settings.trusted_cas()), None

    def _without_sessions(self) -> ssl.SSLContext:
        """Return a new context, without cached sessions, from files that have not changed."""
        try:
            context = server_context(self._settings)
        except _UNUSABLE as e:
            self._refuse_files(e)
            return self._followed.value
        self._state_log.recovered("files", _USABLE_AGAIN)
        return context

    def _put_in_force(self, context: ssl.SSLContext) -> None:
        self._context = context
        self._state_log.recovered("files", _USABLE_AGAIN)
        about = {"certificate": str(self._settings.certificate_file), "client_cas": len(self._settings.trusted_cas())}
        _log.info("TLS files reloaded", extra={"fields": about})
        self.on_reload(True)  # noqa: FBT003 - the one argument of a callback

    def _refuse_files(self, error: Exception) -> None:
        self._context = self._context or self._followed.value
        self._state_log.failed("files", f"{_unusable(self._settings, error)}; the last good ones stay in use")
        self.on_reload(False)  # noqa: FBT003 - the one argument of a callback


def server_context(settings: TlsSettings) -> ssl.SSLContext:
    """Return a new context from the files; raises OSError (including ssl.SSLError) or ValueError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = settings.min_version
    context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
    context.num_tickets = 0
    context.set_alpn_protocols(["http/1.1"])
    if settings.cipher_suites:
        context.set_ciphers(":".join(settings.cipher_suites))
    require_regular(settings.files)
    context.load_cert_chain(settings.certificate_file, settings.key_file)
    if settings.client_authorities is not None:
        context.verify_mode = ssl.CERT_OPTIONAL
        # As in Go, each certificate of the bundle is a trust anchor, since it may be an intermediate without its root.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        trusted = settings.trusted_cas()
        if trusted:
            context.load_verify_locations(cadata=b"".join(trusted))
    return context


@dataclass(frozen=True, slots=True)
class ChosenSuites:
    """The cipher suites to offer, and those that were named but are too weak."""

    offered: tuple[str, ...]
    """Cipher suites of TLS 1.2 by OpenSSL's names; empty for OpenSSL's default."""
    left_out: tuple[str, ...]
    """Weak cipher suites by Go's names, which are not offered."""


def chosen_suites(names: tuple[str, ...]) -> ChosenSuites:
    """Return the cipher suites to offer of those named; raises ValueError for a name that Go does not know."""
    for name in names:
        if name not in SUITES and name not in FIXED_SUITES and name not in WEAK_SUITES:
            raise ValueError(f"{name} is not a cipher suite: known are {', '.join(sorted(SUITES))}")
    offered = dict.fromkeys(SUITES[name] for name in names if name in SUITES)
    left_out = dict.fromkeys(name for name in names if name in WEAK_SUITES)
    return ChosenSuites(tuple(offered), tuple(left_out))


def verified_chain(sock: socket.socket) -> tuple[bytes, ...]:
    """Return the client's verified chain in DER, leaf first, root last; () if it showed none or none was verified."""
    if not isinstance(sock, ssl.SSLSocket):
        return ()
    public = getattr(sock, "get_verified_chain", None)
    if public is not None:  # Python 3.13 and later
        return tuple(public() or ())
    chain = sock._sslobj.get_verified_chain()  # type: ignore[attr-defined] # noqa: SLF001 - no public way before 3.13
    return tuple(ssl.PEM_cert_to_DER_cert(certificate.public_bytes()) for certificate in chain or ())


def _unusable(settings: TlsSettings, error: Exception) -> str:
    missing = [str(file) for file in settings.files if not os.access(file, os.R_OK)]
    if missing:
        return f"cannot read the TLS files {', '.join(missing)}: check that they exist and are readable"
    names = f"{settings.certificate_file} and {settings.key_file}"
    return f"the TLS files {names} cannot be used: {error}: check that they are PEM and belong together"
