"""Flags for the connection to Prometheus and its credentials, and the settings that are made from them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final

from adapter.foundation.options.prometheus_kubeconfig import KubeconfigError, kubeconfig_files
from adapter.foundation.promql.narrowing import Matchers, MatchersError
from adapter.foundation.service.flags.parsing import UsageError
from adapter.foundation.service.flags.table import PATH, TEXT, Flag, FlagValues, Repeat, in_group, one_of, switch
from adapter.foundation.sources.prometheus.errors import SettingsError
from adapter.foundation.sources.prometheus.prometheus_settings import (
    Access,
    AccessFiles,
    PrometheusSettings,
    endpoint_of,
)

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")

_PROMETHEUS = "Prometheus"

PROMETHEUS_FLAGS: tuple[Flag, ...] = in_group(
    _PROMETHEUS,
    Flag(
        "prometheus-url",
        TEXT,
        "Base URL of Prometheus, Thanos, Mimir or VictoriaMetrics; its path is a prefix, and its query (?dedup=false) "
        "is sent with every request.",
        default="https://localhost",
    ),
    Flag(
        "prometheus-verb",
        one_of("GET", "POST"),
        "HTTP method of queries (default: POST, and GET if the server refuses POST).",
    ),
    switch(
        "prometheus-auth-incluster", "Use the pod's service account: its token, and its CA unless another CA is set."
    ),
    Flag(
        "prometheus-auth-config",
        PATH,
        "Kubeconfig whose credentials and CA to use; changes take effect without a restart.",
    ),
    Flag("prometheus-ca-file", PATH, "CA bundle to verify Prometheus with."),
    Flag("prometheus-client-tls-cert-file", PATH, "Client certificate."),
    Flag("prometheus-client-tls-key-file", PATH, "Private key of the client certificate."),
    Flag("prometheus-token-file", PATH, "File with a bearer token; changes take effect without a restart."),
    Flag(
        "prometheus-header",
        TEXT,
        "Header NAME=VALUE to send with every query; may be repeated.",
        repeat=Repeat.EACH,
        may_hold_secret=True,
    ),
    Flag(
        "prometheus-matchers",
        TEXT,
        "Read only series with these labels, in every query: 'cluster=\"eu-1\"'. For a store of several clusters.",
    ),
    Flag("prometheus-username", TEXT, "User name for basic auth."),
    Flag("prometheus-password-file", PATH, "File with the password for basic auth."),
)

_WORD: Final = re.compile(r"[A-Za-z0-9_-]{1,100}")

NAMED_PROMETHEUS_FLAGS: Final = tuple(
    replace(flag, default=None) if flag.name == "prometheus-url" else flag for flag in PROMETHEUS_FLAGS
)
"""The flags of commands that ask no Prometheus unless one is named: no default address is shown."""


def prometheus_settings(values: FlagValues) -> PrometheusSettings:
    """Return the connection to Prometheus that the flags describe; raises UsageError."""
    access = _access(values)
    try:
        endpoint_of(values.text("prometheus-url"))
    except SettingsError as error:
        raise UsageError(f"--prometheus-url: {error}") from error
    try:
        settings = PrometheusSettings(
            url=values.text("prometheus-url"),
            verb="GET" if values.text("prometheus-verb") == "GET" else "POST",
            headers=tuple(_headers(values.texts("prometheus-header"))),
            matchers=prometheus_matchers(values),
            username=values.text("prometheus-username") or None,
            password_file=values.path("prometheus-password-file"),
        )
        if isinstance(access, Access):
            return settings.with_access(access)
        described = replace(settings, access_files=access)
        settings.with_access(access.read())
    except KubeconfigError as error:
        raise UsageError(f"--prometheus-auth-config: {error}") from error
    except SettingsError as error:
        raise UsageError(str(error)) from error
    return described


def prometheus_matchers(values: FlagValues) -> Matchers | None:
    """Return the matchers of --prometheus-matchers; None without the flag. Raises UsageError."""
    if "prometheus-matchers" not in values.given:
        return None
    try:
        return Matchers.read(values.text("prometheus-matchers"))
    except MatchersError as error:
        raise UsageError(f"--prometheus-matchers: {error}") from error


def _access(values: FlagValues) -> Access | AccessFiles:
    """Combine the flags as prometheus-adapter does: with a CA file, kubeconfig and service account are ignored."""
    named = Access(
        values.path("prometheus-ca-file"),
        values.path("prometheus-client-tls-cert-file"),
        values.path("prometheus-client-tls-key-file"),
        values.path("prometheus-token-file"),
    )
    in_cluster, config = values.boolean("prometheus-auth-incluster"), values.path("prometheus-auth-config")
    if in_cluster and config:
        raise UsageError("--prometheus-auth-incluster and --prometheus-auth-config cannot be combined: set only one")
    if named.ca_file or not (in_cluster or config):
        return named
    with_tls = values.text("prometheus-url").startswith("https://")
    if config:
        return kubeconfig_files(str(config), named.token_file, with_tls=with_tls)
    ca_file = SERVICE_ACCOUNT / "ca.crt" if with_tls else None
    return replace(named, ca_file=ca_file, token_file=named.token_file or SERVICE_ACCOUNT / "token")


def _headers(texts: Iterable[str]) -> Iterable[tuple[str, str]]:
    for text in texts:
        name, equals, value = text.partition("=")
        before, colon, _ = name.partition(":")
        if colon and _WORD.fullmatch(before):
            # As curl and HTTP write it. What follows may be a secret.
            raise UsageError(f"--prometheus-header: {before} is followed by a colon: write {before}=VALUE")
        if not equals or not name:
            raise UsageError("--prometheus-header has no name before the equals sign: write NAME=VALUE")
        yield name, value
