"""Shows and logs the dates of a serving certificate that no Secret keeps, since others renew it or forget to."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from adapter.foundation.service.runtime.logs import StateLog
from adapter.metrics.identity.callers import IdentitySettingsError
from adapter.metrics.identity.certificates.certificate_telemetry import CertificateDates
from adapter.metrics.identity.certificates.self_signed import ServingCertificate, given_certificate

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.foundation.service.server.context import WorkerContext
    from adapter.foundation.service.server.tls import TlsSettings

FOLLOWED_SECONDS = 60.0
"""How often the dates of a certificate are read, and one in `--cert-dir` is renewed if it is due; the TLS layer follows
the files."""

_log = logging.getLogger(__name__)


def follow_certificate(read: Callable[[], ServingCertificate | None], context: WorkerContext) -> None:
    """Start the task that shows the dates of a certificate that is in no Secret.

    `read` returns None if there is nothing new to show; it may renew the certificate first. While it raises
    IdentitySettingsError, as on a full disk, the former certificate stays in use.
    """
    metrics, state = CertificateDates(context.registry), StateLog(_log)
    known: ServingCertificate | None = None

    def look() -> None:
        nonlocal known
        try:
            known = read() or known
            state.recovered("renewal", "the serving certificate can be renewed again")
        except IdentitySettingsError as e:
            state.failed("renewal", f"the former serving certificate stays in use until it expires: {e}")
        if known is not None:
            metrics.set_dates(known.not_before, known.not_after)
            report_dates(known, datetime.now(tz=UTC), state)

    context.tasks.periodic("serving certificate", look, every_seconds=FOLLOWED_SECONDS, deadline_seconds=60.0)


def follow_given_certificate(tls: TlsSettings, context: WorkerContext) -> None:
    """Start the task that shows the dates of the pair in the files of the flags."""

    def read() -> ServingCertificate | None:
        try:
            return given_certificate(tls.certificate_file, tls.key_file)
        except IdentitySettingsError:
            # The TLS layer logs it.
            return None

    follow_certificate(read, context)


def report_dates(found: ServingCertificate, now: datetime, state: StateLog) -> None:
    """Log when a certificate is expired or not valid yet, so that no client accepts this server, and when that ends."""
    if found.not_after <= now:
        wrong, fix = "has expired", "renew it; new files are used without a restart"
    elif found.not_before > now:
        wrong, fix = "is not valid yet", "check the clock of this machine and that of the issuer"
    else:
        state.recovered("dates", "the serving certificate is valid now")
        return
    begin, end = found.not_before.isoformat(), found.not_after.isoformat()
    message = f"{found.certificate_file}: the serving certificate {wrong}, so clients refuse this server: {fix}"
    state.failed("dates", message, not_before=begin, not_after=end)
