"""The validity of certificates that have expired."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from demo.machine.certificates import Validity


def of_yesterday() -> Validity:
    """Return the validity of a day that ended an hour ago."""
    now = datetime.now(tz=UTC)
    return Validity(now - timedelta(hours=25), now - timedelta(hours=1))
