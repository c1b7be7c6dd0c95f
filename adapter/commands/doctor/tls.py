"""Doctor: the certificate that the adapter shows, by a real handshake, and the `caBundle` that must vouch for it."""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from cryptography import x509

from adapter.identity.certificates.generations import bundle_pem
from adapter.identity.certificates.issuing import names_of
from adapter.reports.lines import Line, error, ok, unknown, warning

if TYPE_CHECKING:
    from collections.abc import Collection

    from adapter.identity.certificates.apiservices import Registered
    from adapter.service.server.addresses import Address

HANDSHAKE_SECONDS = 5.0
ENDS_SOON = timedelta(days=7)

_UNSIGNED = frozenset({2, 18, 19, 20, 21})
"""OpenSSL's codes for a chain that ends nowhere, in words that depend on what the server sends along."""


@dataclass(frozen=True, slots=True)
class Handshake:
    """What a client met."""

    shown: x509.Certificate | None = None
    """None: no TLS came about; `failure` says why."""
    refusal: str = ""
    """Why a client with that bundle does not take it, by OpenSSL; empty: it does."""
    failure: str = ""


def look_at_certificate(name: str, registered: Registered, address: Address) -> tuple[Line]:
    """Make two handshakes, as kube-apiserver makes one: the first to see, the second to verify."""
    if registered.service is None:
        raise ValueError("an APIService that kube-apiserver answers itself shows no certificate")
    server_name = f"{registered.service.name}.{registered.service.namespace}.svc"
    handshake = shake_hands(address, server_name, registered.authorities)
    return (judge_certificate(name, server_name, handshake, registered, datetime.now(tz=UTC)),)


def shake_hands(address: Address, server_name: str, authorities: Collection[x509.Certificate]) -> Handshake:
    """Return what came of it; sends nothing but the handshakes."""
    try:
        shown = x509.load_der_x509_certificate(_shown(address, server_name, _seeing()))
    except (OSError, ValueError) as e:
        return Handshake(failure=_reason(e))
    if not authorities:
        return Handshake(shown, refusal="the caBundle is empty")
    try:
        _shown(address, server_name, _verifying(authorities))
    except ssl.SSLCertVerificationError as e:
        unsigned = e.verify_code in _UNSIGNED
        return Handshake(
            shown, refusal="none of the CAs in the caBundle has signed it" if unsigned else e.verify_message
        )
    except OSError as e:
        return Handshake(failure=_reason(e))
    return Handshake(shown)


def judge_certificate(name: str, server_name: str, handshake: Handshake, registered: Registered, now: datetime) -> Line:
    """Return the line about the certificate."""
    line, shown = f"certificate/{name}", handshake.shown
    if shown is None:
        fix = "run this in the cluster, or say by --endpoint where the adapter's HTTPS port is reached from here"
        return unknown(line, f"no handshake with {server_name}: {handshake.failure}", fix)
    end = shown.not_valid_after_utc
    if handshake.refusal and not registered.unverified:
        message = f"kube-apiserver refuses it: {handshake.refusal}{_dates(shown, now)}"
        return error(line, message, _repair(shown, server_name, now))
    if end <= now:
        return warning(line, f"it ended at {end:%Y-%m-%d %H:%M} UTC, and nobody verifies it", "renew it")
    if end - now < ENDS_SOON:
        return warning(line, f"it is trusted, and ends at {end:%Y-%m-%d %H:%M} UTC", "renew it")
    trust = "not verified" if registered.unverified else "trusted"
    return ok(line, f"it is for {server_name}, {trust}, and ends at {end:%Y-%m-%d %H:%M} UTC")


def _repair(shown: x509.Certificate, server_name: str, now: datetime) -> str:
    if not shown.not_valid_before_utc <= now < shown.not_valid_after_utc:
        return "renew the certificate; if its dates are right, set the clocks by NTP"
    if server_name not in names_of(shown):
        names = ", ".join(sorted(names_of(shown))) or "nobody"
        return f"have the certificate made for {server_name}; it is for {names}"
    return "put the CA that signed it into caBundle: --serving-secret with --apiservice does, and keeps it so"


def _dates(shown: x509.Certificate, now: datetime) -> str:
    if now < shown.not_valid_before_utc:
        return f" (it begins at {shown.not_valid_before_utc:%Y-%m-%d %H:%M} UTC)"
    return f" (it ended at {shown.not_valid_after_utc:%Y-%m-%d %H:%M} UTC)" if now >= shown.not_valid_after_utc else ""


def _seeing() -> ssl.SSLContext:
    """Return a context that takes any certificate: to look at it, and to send nothing."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _verifying(authorities: Collection[x509.Certificate]) -> ssl.SSLContext:
    """Return a context that takes what kube-apiserver would: as in Go, every certificate of the bundle is an anchor."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.load_verify_locations(cadata=bundle_pem(authorities).decode())
    return context


def _shown(address: Address, server_name: str, context: ssl.SSLContext) -> bytes:
    with (
        socket.create_connection((address.host, address.port), timeout=HANDSHAKE_SECONDS) as connection,
        context.wrap_socket(connection, server_hostname=server_name) as tls,
    ):
        certificate = tls.getpeercert(binary_form=True)
    if not certificate:
        raise ssl.SSLError("no certificate is shown")
    return certificate


def _reason(failure: Exception) -> str:
    return getattr(failure, "strerror", None) or str(failure) or type(failure).__name__
