"""TLS versions and cipher suites that `serve` offers, with warnings if they differ from what its flags ask for.

Manifests that were written for Go's servers name what Go offered years ago. Refusing those values would keep the
adapter from starting, and offering them would be insecure; every client of the metrics APIs supports something newer.
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
    """TLS versions and cipher suites to offer to clients."""

    min_version: ssl.TLSVersion
    cipher_suites: tuple[str, ...]
    """Cipher suites of TLS 1.2 by OpenSSL's names; empty for OpenSSL's default."""
    warnings: tuple[str, ...]


def tls_choice(values: FlagValues) -> TlsChoice:
    """Return what to offer; raises UsageError for a cipher suite that Go does not know."""
    wanted = values.text("tls-min-version")
    warnings = []
    if wanted in OLD_VERSIONS:
        warnings.append(f"--tls-min-version={wanted}: TLS 1.2 is the lowest version on offer")
    try:
        suites = chosen_suites(values.texts("tls-cipher-suites"))
    except ValueError as error:
        raise UsageError(f"--tls-cipher-suites: {error}") from error
    if suites.left_out:
        others = "" if suites.offered else "; since no other suite of TLS 1.2 is named, OpenSSL's default is used"
        warnings.append(f"--tls-cipher-suites: weak suites are not offered: {', '.join(suites.left_out)}{others}")
    min_version = VERSIONS["VersionTLS12" if wanted in OLD_VERSIONS else wanted]
    return TlsChoice(min_version, suites.offered, tuple(warnings))
