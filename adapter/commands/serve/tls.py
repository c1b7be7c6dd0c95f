"""Which versions and suites of TLS `serve` offers, and what it says where that is not what its flags ask for.

Manifests were written for Go's servers, and name what Go offered years ago. Refusing them would keep the adapter from
starting; offering it would be insecure; every client of the metrics APIs speaks something newer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapter.service.flags.parsing import UsageError
from adapter.service.server.tls import OLD_VERSIONS, VERSIONS, chosen_suites

if TYPE_CHECKING:
    import ssl

    from adapter.service.flags.table import FlagValues


@dataclass(frozen=True, slots=True)
class TlsChoice:
    """What is offered to clients."""

    min_version: ssl.TLSVersion
    cipher_suites: tuple[str, ...]
    """OpenSSL's names, of TLS 1.2; empty: OpenSSL's default."""
    warnings: tuple[str, ...]


def tls_choice(values: FlagValues) -> TlsChoice:
    """Return what the flags come down to; raises UsageError for a suite that Go does not know."""
    wanted = values.text("tls-min-version")
    warnings = []
    if wanted in OLD_VERSIONS:
        warnings.append(f"--tls-min-version={wanted}: TLS 1.2 is the lowest version that is served")
    try:
        suites = chosen_suites(values.texts("tls-cipher-suites"))
    except ValueError as error:
        raise UsageError(f"--tls-cipher-suites: {error}") from error
    if suites.left_out:
        others = "" if suites.offered else "; as no other suite of TLS 1.2 is named, OpenSSL's choice is offered"
        warnings.append(f"--tls-cipher-suites: weak suites are not offered: {', '.join(suites.left_out)}{others}")
    min_version = VERSIONS["VersionTLS12" if wanted in OLD_VERSIONS else wanted]
    return TlsChoice(min_version, suites.offered, tuple(warnings))
