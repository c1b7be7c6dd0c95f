"""The TLS of a server in a test, whose certificate is replaced while it runs; also certificates that have expired."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from demo.machine.certificates import Validity

if TYPE_CHECKING:
    from pathlib import Path

    from demo.machine.certificates import KeyPair


def expired() -> Validity:
    """Return a validity that ended yesterday."""
    now = datetime.now(tz=UTC)
    return Validity(now - timedelta(days=2), now - timedelta(days=1))


def tls_of(pair: KeyPair, client_ca: Path | None = None) -> ssl.SSLContext:
    """Return the context of a server that presents this certificate, and requires one of `client_ca` from clients."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    show(context, pair)
    if client_ca is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(client_ca)
    return context


def show(context: ssl.SSLContext, pair: KeyPair) -> None:
    """Present another certificate on new connections of a server."""
    context.load_cert_chain(pair.certificate_file, pair.key_file)
