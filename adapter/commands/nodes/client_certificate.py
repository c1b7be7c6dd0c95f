"""Determines whether a client has a certificate from the CA of the scheduler.

This module is imported only if such a CA is configured, since the certificate library takes 8 MiB in each process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.metrics.identity.chains import Anchored, Verdicts, anchored_chain, utc_now

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.foundation.web.http import Request
    from adapter.metrics.identity.authorities import Authorities
    from adapter.metrics.identity.chains import Now


class ClientCertificate:
    """Requires a client certificate that is valid now and that leads to one of the configured CAs."""

    def __init__(self, authorities: Callable[[], Authorities], now: Now = utc_now) -> None:
        self._authorities = authorities
        self._now = now
        self._verdicts: Verdicts[Authorities, Anchored | str | None] = Verdicts(anchored_chain)

    def problem(self, request: Request) -> str | None:
        """Return why the request must not be answered; None if its client presented a valid certificate."""
        if not request.peer_chain:
            return "a client certificate is required"
        verdict = self._verdicts.of(request.peer_chain, self._authorities())
        if verdict is None:
            return "the client certificate was issued by another CA"
        if isinstance(verdict, str):
            return f"the client certificate cannot be used: {verdict}"
        if not verdict.holds(self._now()):
            return "the client certificate, or one above it, is expired or not valid yet"
        return None
