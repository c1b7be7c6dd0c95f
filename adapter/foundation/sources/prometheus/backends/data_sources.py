"""Identifies whose data a Prometheus shows (pure)."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings


def source_of(prometheus: PrometheusSettings | None) -> str:
    """Return a digest of what decides whose data is shown: address, parameters, headers, user, token file and matchers.

    The digest is empty if there is no Prometheus to query.

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
        *_matcher_texts(prometheus),
    )
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()


def _matcher_texts(prometheus: PrometheusSettings) -> tuple[str, ...]:
    """Return the matchers; empty if there are none, so that the histories of versions without matchers stay valid."""
    return () if prometheus.matchers is None else (str(prometheus.matchers),)
