"""Identifies whose data a Prometheus shows (pure)."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings


def source_of(prometheus: PrometheusSettings | None) -> str:
    """Return a digest of what decides whose data is shown; empty if there is no Prometheus to query.

    These are the address with its parameters, headers, the user, the files that identify the client, and matchers.
    No password, token or Authorization header is part of the digest: with new ones, the data stays the same.
    """
    if prometheus is None:
        return ""
    endpoint, credentials = prometheus.endpoint, prometheus.basic_credentials
    headers = sorted((key.lower(), value) for key, value in prometheus.headers if key.lower() != "authorization")
    user = "" if credentials is None else credentials[0]
    parts = (
        endpoint.shown,
        endpoint.parameters,
        headers,
        user,
        str(prometheus.token_file or ""),
        *_optional_parts(prometheus),
    )
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()


def _optional_parts(prometheus: PrometheusSettings) -> Iterator[object]:
    """Yield what is left out if it is not set, so that the stored data of versions without it stays valid."""
    if prometheus.matchers is not None:
        yield str(prometheus.matchers)
    if prometheus.client_cert_file is not None:
        yield "client certificate", str(prometheus.client_cert_file)
    if prometheus.access_files is not None:
        yield "access", *map(str, prometheus.access_files.paths)
