"""`doctor` checks the certificate that the adapter presents in a handshake, and the `caBundle` that must verify it."""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from cryptography import x509

from adapter.foundation.reports.lines import Line, error, ok, unknown, warning
from adapter.metrics.identity.certificates.generations import bundle_pem
from adapter.metrics.identity.certificates.issuing import names_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from adapter.foundation.service.server.addresses import Address
    from adapter.metrics.identity.certificates.apiservices import Registered

HANDSHAKE_SECONDS = 5.0
ENDS_SOON = timedelta(days=7)

_UNSIGNED = frozenset({2, 18, 19, 20, 21})
"""OpenSSL's codes for a chain without a trusted root; the code depends on the chain that the server sends."""

_SIGN = "put the CA that signed it into caBundle, or let --serving-secret with --apiservice do that"
"""What to do about a certificate with the right name and dates."""


@dataclass(frozen=True, slots=True)
class Handshake:
    """The results of the two handshakes with a server."""

    shown: x509.Certificate | None = None
    """The server's certificate; None if the handshake failed, for the reason in `failure`."""
    refusal: str = ""
    """Why a client that trusts the bundle refuses the certificate, in OpenSSL's words; empty if it accepts it."""
    is_doubtful: bool = False
    """Whether the refusal depends on the CAs of this machine, and kube-apiserver may have others."""
    failure: str = ""


def look_at_certificate(name: str, registered: Registered, address: Address) -> tuple[Line]:
    """Make two handshakes as kube-apiserver would: one to see the certificate, and one to verify it."""
    if registered.service is None:
        raise ValueError("an APIService that kube-apiserver serves itself has no certificate")
    server_name = f"{registered.service.name}.{registered.service.namespace}.svc"
    handshake = shake_hands(address, server_name, registered)
    return (judge_certificate(name, server_name, handshake, registered, datetime.now(tz=UTC)),)


def shake_hands(address: Address, server_name: str, registered: Registered) -> Handshake:
    """Return the result of the handshakes; nothing else is sent."""
    try:
        shown = x509.load_der_x509_certificate(_presented_certificate(address, server_name, _unverified_context()))
    except (OSError, ValueError) as e:
        return Handshake(failure=_reason(e))
    if not registered.authorities and not registered.trusts_system:
        return Handshake(shown, refusal="the caBundle has no certificate in PEM")
    try:
        _presented_certificate(address, server_name, _verified_context(registered.authorities))
    except ssl.SSLCertVerificationError as e:
        unsigned = e.verify_code in _UNSIGNED
        trusted = "of this machine" if registered.trusts_system else "in the caBundle"
        refusal = f"none of the CAs {trusted} has signed it" if unsigned else e.verify_message
        return Handshake(shown, refusal, is_doubtful=unsigned and registered.trusts_system)
    except OSError as e:
        return Handshake(failure=_reason(e))
    return Handshake(shown)


def judge_certificate(name: str, server_name: str, handshake: Handshake, registered: Registered, now: datetime) -> Line:
    """Return the line about the certificate."""
    line, shown = f"certificate/{name}", handshake.shown
    if shown is None:
        fix = "run this in the cluster, or set --endpoint to the adapter's HTTPS port as seen from here"
        return unknown(line, f"the TLS handshake with {server_name} failed: {handshake.failure}", fix)
    end = shown.not_valid_after_utc
    if handshake.refusal and not registered.unverified:
        repair = _repair(shown, server_name, now)
        if handshake.is_doubtful and repair == _SIGN:
            return warning(
                line, f"the caBundle is empty, so kube-apiserver uses its machine's CAs; {handshake.refusal}", repair
            )
        return error(line, f"kube-apiserver refuses it: {handshake.refusal}{_dates(shown, now)}", repair)
    if end <= now:
        return warning(line, f"it expired at {end:%Y-%m-%d %H:%M} UTC, and clients do not verify it", "renew it")
    if end - now < ENDS_SOON:
        return warning(line, f"it is trusted, and expires at {end:%Y-%m-%d %H:%M} UTC", "renew it")
    trust = "not verified" if registered.unverified else "trusted"
    return ok(line, f"it is for {server_name}, {trust}, and expires at {end:%Y-%m-%d %H:%M} UTC")


def _repair(shown: x509.Certificate, server_name: str, now: datetime) -> str:
    if not shown.not_valid_before_utc <= now < shown.not_valid_after_utc:
        return "renew the certificate; if its dates are right, synchronize the clocks with NTP"
    if server_name not in names_of(shown):
        names = ", ".join(sorted(names_of(shown))) or "nobody"
        return f"issue the certificate for {server_name}; it is for {names}"
    return _SIGN


def _dates(shown: x509.Certificate, now: datetime) -> str:
    if now < shown.not_valid_before_utc:
        return f" (it is valid from {shown.not_valid_before_utc:%Y-%m-%d %H:%M} UTC)"
    return (
        f" (it expired at {shown.not_valid_after_utc:%Y-%m-%d %H:%M} UTC)" if now >= shown.not_valid_after_utc else ""
    )


def _unverified_context() -> ssl.SSLContext:
    """Return a context that accepts any certificate, to inspect it; nothing is sent."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _verified_context(authorities: Collection[x509.Certificate]) -> ssl.SSLContext:
    """Return a context that accepts what kube-apiserver accepts.

    As in Go, each certificate of the bundle is a root, the common name is not a name of the server, and an empty bundle
    means the CAs of the system.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.hostname_checks_common_name = False
    if authorities:
        context.load_verify_locations(cadata=bundle_pem(authorities).decode())
    else:
        context.load_default_certs()
    return context


def _presented_certificate(address: Address, server_name: str, context: ssl.SSLContext) -> bytes:
    with (
        socket.create_connection((address.host, address.port), timeout=HANDSHAKE_SECONDS) as connection,
        context.wrap_socket(connection, server_hostname=server_name) as tls,
    ):
        certificate = tls.getpeercert(binary_form=True)
    if not certificate:
        raise ssl.SSLError("the server presents no certificate")
    return certificate


def _reason(failure: Exception) -> str:
    return getattr(failure, "strerror", None) or str(failure) or type(failure).__name__
