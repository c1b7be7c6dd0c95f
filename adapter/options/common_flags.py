"""Flags that several commands share: logs, the cluster, Prometheus."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from adapter.service.flags.parsing import UsageError
from adapter.service.flags.table import (
    BOOLEAN,
    INTEGER,
    PATH,
    TEXT,
    Flag,
    FlagValues,
    Ignored,
    Repeat,
    one_of,
)
from adapter.service.runtime.logs import FORMATS, LEVELS, configure_logs, level_of_verbosity
from adapter.sources.kubernetes.access import from_kubeconfig
from adapter.sources.kubernetes.errors import ConfigurationError
from adapter.sources.prometheus.errors import SettingsError
from adapter.sources.prometheus.settings import PrometheusSettings

if TYPE_CHECKING:
    from collections.abc import Iterable

PROGRAM = "tidewatch-adapter"
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")

_LOGS = "Logs"
_CLUSTER = "Cluster"
_PROMETHEUS = "Prometheus"
_KLOG = Ignored("logs go to stderr; --log-format and --log-level say how")

LOG_FLAGS: tuple[Flag, ...] = (
    Flag(name="log-format", kind=one_of(*FORMATS), default="text", help="How log lines look.", group=_LOGS),
    Flag(name="log-level", kind=one_of(*LEVELS), help="What is logged (default info, or by --v).", group=_LOGS),
    Flag(name="v", short="v", kind=INTEGER, default=0, help="klog's verbosity: from 4 on, debug.", group=_LOGS),
    *(
        Flag(name=name, kind=kind, group=_LOGS, state=_KLOG)
        for name, kind in (
            ("add-dir-header", BOOLEAN),
            ("alsologtostderr", BOOLEAN),
            ("log-backtrace-at", TEXT),
            ("log-dir", TEXT),
            ("log-file", TEXT),
            ("log-file-max-size", TEXT),
            ("log-flush-frequency", TEXT),
            ("logtostderr", BOOLEAN),
            ("one-output", BOOLEAN),
            ("skip-headers", BOOLEAN),
            ("skip-log-headers", BOOLEAN),
            ("stderrthreshold", TEXT),
            ("vmodule", TEXT),
        )
    ),
)

CLUSTER_FLAGS: tuple[Flag, ...] = (
    Flag(name="kubeconfig", kind=PATH, help="How to reach the cluster (default: in a pod its own).", group=_CLUSTER),
    Flag(name="context", kind=TEXT, help="Which context of the kubeconfig (default: its current one).", group=_CLUSTER),
)

PROMETHEUS_FLAGS: tuple[Flag, ...] = (
    Flag(
        name="prometheus-url",
        kind=TEXT,
        default="https://localhost",
        help="Base URL of Prometheus, Thanos, Mimir or VictoriaMetrics; its path is a prefix.",
        group=_PROMETHEUS,
    ),
    Flag(
        name="prometheus-verb",
        kind=one_of("GET", "POST"),
        help="How queries are sent (default POST, and GET where that is refused).",
        group=_PROMETHEUS,
    ),
    Flag(
        name="prometheus-auth-incluster",
        kind=BOOLEAN,
        default=False,
        help="Use the pod's service account: its token, and its CA unless another is given.",
        group=_PROMETHEUS,
    ),
    Flag(
        name="prometheus-auth-config",
        kind=PATH,
        help="Use the credentials and the CA of a kubeconfig.",
        group=_PROMETHEUS,
    ),
    Flag(name="prometheus-ca-file", kind=PATH, help="CA that vouches for Prometheus.", group=_PROMETHEUS),
    Flag(name="prometheus-client-tls-cert-file", kind=PATH, help="Client certificate.", group=_PROMETHEUS),
    Flag(name="prometheus-client-tls-key-file", kind=PATH, help="Its key.", group=_PROMETHEUS),
    Flag(name="prometheus-token-file", kind=PATH, help="Bearer token, read anew as it changes.", group=_PROMETHEUS),
    Flag(
        name="prometheus-header",
        kind=TEXT,
        help="NAME=VALUE, sent along with every query; may be repeated.",
        group=_PROMETHEUS,
        repeat=Repeat.EACH,
    ),
    Flag(name="prometheus-username", kind=TEXT, help="User name for basic auth.", group=_PROMETHEUS),
    Flag(name="prometheus-password-file", kind=PATH, help="Password for basic auth.", group=_PROMETHEUS),
)


def program_version() -> str:
    """Return the version of the installed distribution."""
    return version("tidewatch")


def configure_logs_by(values: FlagValues, *, queued: bool = False) -> None:
    """Send logs where and how the flags say; `queued` as a process needs it that serves."""
    level = values.text("log-level") or level_of_verbosity(values.integer("v"))
    configure_logs(values.text("log-format"), level, queued=queued)


def prometheus_settings(values: FlagValues) -> PrometheusSettings:
    """Return the connection to Prometheus that the flags describe; raises UsageError."""
    access = _access(values)
    try:
        return PrometheusSettings(
            url=values.text("prometheus-url"),
            verb="GET" if values.text("prometheus-verb") == "GET" else "POST",
            ca_file=access.ca_file,
            client_cert_file=access.client_cert_file,
            client_key_file=access.client_key_file,
            token_file=access.token_file,
            headers=(*access.headers, *_headers(values.texts("prometheus-header"))),
            username=values.text("prometheus-username") or None,
            password_file=values.path("prometheus-password-file"),
        )
    except SettingsError as error:
        raise UsageError(str(error)) from error


@dataclass(frozen=True, slots=True)
class _Access:
    """Who vouches for Prometheus, and how to be let in."""

    ca_file: Path | None
    client_cert_file: Path | None
    client_key_file: Path | None
    token_file: Path | None
    headers: tuple[tuple[str, str], ...] = ()


def _access(values: FlagValues) -> _Access:
    """Combine the ways as prometheus-adapter does: a CA file leaves kubeconfig and service account out."""
    named = _Access(
        values.path("prometheus-ca-file"),
        values.path("prometheus-client-tls-cert-file"),
        values.path("prometheus-client-tls-key-file"),
        values.path("prometheus-token-file"),
    )
    in_cluster, config = values.boolean("prometheus-auth-incluster"), values.path("prometheus-auth-config")
    if in_cluster and config:
        raise UsageError("--prometheus-auth-incluster and --prometheus-auth-config exclude each other: give one")
    if named.ca_file or not (in_cluster or config):
        return named
    if in_cluster:
        ca_file = SERVICE_ACCOUNT / "ca.crt" if values.text("prometheus-url").startswith("https://") else None
        return replace(named, ca_file=ca_file, token_file=named.token_file or SERVICE_ACCOUNT / "token")
    found = _of_kubeconfig(str(config), with_tls=values.text("prometheus-url").startswith("https://"))
    return replace(found, token_file=named.token_file, headers=()) if named.token_file else found


def _of_kubeconfig(path: str, *, with_tls: bool) -> _Access:
    """Return what a kubeconfig's current context says, as it stands at the start."""
    try:
        configuration = from_kubeconfig(path)().configuration
    except ConfigurationError as error:
        raise UsageError(f"--prometheus-auth-config: {error}") from error
    # The package has changed the name under which it keeps the token; this knows both.
    token = configuration.get_api_key_with_prefix("BearerToken", alias="authorization")
    headers = (("Authorization", token),) if token else ()
    if not with_tls:
        return _Access(None, None, None, token_file=None, headers=headers)
    return _Access(
        _path(configuration.ssl_ca_cert),
        _path(configuration.cert_file),
        _path(configuration.key_file),
        token_file=None,
        headers=headers,
    )


def _path(name: str | None) -> Path | None:
    return Path(name) if name else None


def _headers(texts: Iterable[str]) -> Iterable[tuple[str, str]]:
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError("--prometheus-header: write NAME=VALUE")
        yield name, value
