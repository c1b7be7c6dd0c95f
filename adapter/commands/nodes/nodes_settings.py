"""Makes the settings of `nodes` from its flags, and reports every error in them before a port is opened."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from adapter.commands.nodes.load_watcher import LoadWatcherFlags, with_load_watcher
from adapter.commands.nodes.reader_access import BearerToken
from adapter.commands.program import PROGRAM
from adapter.foundation.files.credential_files import reason_of
from adapter.foundation.files.file_contents import is_folder
from adapter.foundation.options.asking_limit import asking_limit
from adapter.foundation.options.clients import ObjectSettings
from adapter.foundation.options.cluster import cluster_settings, objects_folder
from adapter.foundation.options.prometheus import prometheus_settings
from adapter.foundation.service.flags.parsing import UsageError
from adapter.foundation.service.server.addresses import Address
from adapter.foundation.service.server.connections.outgoing import OutgoingLimits
from adapter.foundation.service.server.server_settings import ServerOptions
from adapter.foundation.service.server.tls import VERSIONS, TlsSettings
from adapter.foundation.service.version import program_version
from adapter.foundation.sources.kubernetes.credentials.access import SERVICE_ACCOUNT
from adapter.foundation.sources.prometheus.errors import SettingsError
from adapter.metrics.identity.callers import IdentitySettingsError
from adapter.nodes.extender.protocol import LARGEST_BODY_BYTES
from adapter.nodes.model.loads import LoadResource

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.service.flags.table import FlagValues
    from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
    from adapter.metrics.identity.authorities import AuthorityFile

METRICS_PREFIX: Final = "tidewatch_adapter"
SHORTEST_REFRESH_SECONDS: Final = 1.0
LONGEST_REFRESH_SECONDS: Final = 300.0
"""The length of the shortest window. With a longer refresh interval, that window would sometimes have no sample."""
RESERVED_THREADS: Final = 4
"""The number of threads that are reserved for calls of kube-scheduler, which is how many are answered at once."""
COMMON_THREADS: Final = 4
"""The number of threads for all other requests. Their answers come from memory, so more threads would only wait for
each other."""
_LARGEST_ANSWER_BYTES: Final = LARGEST_BODY_BYTES + 4 * 2**20
"""The size of the largest answer: the filter returns the nodes of its request, and a reason for each rejected node."""
_MOST_UNREAD_BYTES: Final = 160 * 2**20
"""The maximum size of all answers that clients have not read yet: two of the largest, besides the usual ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodesSettings:
    """The settings of `nodes`."""

    scheduling_file: Path | None
    prometheus: PrometheusSettings
    objects: ObjectSettings | None
    """The source of nodes and pods; None if no cluster and no folder is configured."""
    refresh_interval_seconds: float
    state_file: Path | None
    node_metrics: tuple[LoadResource, ...]
    token: BearerToken | None
    has_open_watcher: bool
    """Whether `/watcher` needs no token."""
    client_authorities: AuthorityFile | None
    server: ServerOptions
    warnings: tuple[str, ...]


def nodes_settings(values: FlagValues, environment: Mapping[str, str] = os.environ) -> NodesSettings:
    """Return the settings. Raises UsageError, whose message is one line that states what to do."""
    completed = with_load_watcher(values, environment)
    values = completed.values
    authorities = _authorities(values)
    refresh = values.seconds("refresh-interval")
    if not SHORTEST_REFRESH_SECONDS <= refresh <= LONGEST_REFRESH_SECONDS:
        raise UsageError(
            f"--refresh-interval is {refresh:g} s: write {SHORTEST_REFRESH_SECONDS:g} s to "
            f"{LONGEST_REFRESH_SECONDS:g} s"
        )
    return NodesSettings(
        scheduling_file=values.path("scheduling-config"),
        prometheus=_prometheus(completed),
        objects=_objects(values, environment),
        refresh_interval_seconds=refresh,
        state_file=_state_file(values),
        node_metrics=tuple(dict.fromkeys(LoadResource(name) for name in values.texts("node-metrics"))),
        token=_token(values),
        has_open_watcher=values.boolean("open-watcher"),
        client_authorities=authorities,
        server=_server(values, authorities),
        warnings=(*values.warnings, *_open_scheduler(values)),
    )


def _prometheus(completed: LoadWatcherFlags) -> PrometheusSettings:
    found = prometheus_settings(completed.values)
    try:
        return replace(found, headers=(*found.headers, *completed.headers))
    except SettingsError as error:
        raise UsageError(str(error)) from error


def _objects(values: FlagValues, environment: Mapping[str, str]) -> ObjectSettings | None:
    folder, cluster = objects_folder(values), cluster_settings(values)
    if folder is None and not cluster.is_named and not _is_in_pod_with_account(environment):
        return None
    return ObjectSettings(files=folder, cluster=cluster, limit=asking_limit(values))


def _is_in_pod_with_account(environment: Mapping[str, str]) -> bool:
    return "KUBERNETES_SERVICE_HOST" in environment and Path(SERVICE_ACCOUNT, "token").exists()


def _state_file(values: FlagValues) -> Path | None:
    path = values.path("state")
    if path is not None and is_folder(path):
        raise UsageError(f"--state: {path} is a folder: name a file in it")
    return path


def _token(values: FlagValues) -> BearerToken | None:
    path = values.path("token-file")
    if path is None:
        return None
    try:
        return BearerToken(path)
    except OSError as error:
        raise UsageError(
            f"--token-file: {path} cannot be read ({error.strerror or error}): check the path and its permissions"
        ) from error
    except ValueError as error:
        raise UsageError(f"--token-file: {path}: {reason_of(error)}: write one token into it") from error


def _open_scheduler(values: FlagValues) -> tuple[str, ...]:
    if values.path("token-file") is None or values.path("client-ca-file") is not None:
        return ()
    risk = "/scheduler answers everybody whom the network lets through, and reads what they send, up to 4 MiB"
    return (
        f"--token-file does not protect /scheduler, since kube-scheduler sends no token: {risk}: set --client-ca-file",
    )


def _authorities(values: FlagValues) -> AuthorityFile | None:
    path = values.path("client-ca-file")
    if path is None:
        return None
    if values.path("tls-cert-file") is None:
        raise UsageError("--client-ca-file needs TLS: set --tls-cert-file and --tls-private-key-file too")
    from adapter.metrics.identity.authorities import AuthorityFile  # noqa: PLC0415 - loads the library of certificates

    try:
        return AuthorityFile(path)
    except IdentitySettingsError as error:
        raise UsageError(f"--client-ca-file: {error}") from error


def _tls(values: FlagValues, authorities: AuthorityFile | None) -> TlsSettings | None:
    certificate, key = values.path("tls-cert-file"), values.path("tls-private-key-file")
    if certificate is None and key is None:
        if values.boolean("tls-optional"):
            raise UsageError("--tls-optional needs TLS: set --tls-cert-file and --tls-private-key-file too")
        return None
    if certificate is None or key is None:
        raise UsageError("--tls-cert-file and --tls-private-key-file belong together: set both, or neither")
    from adapter.metrics.identity.certificates.self_signed import given_certificate  # noqa: PLC0415 - likewise

    try:
        given_certificate(certificate, key)
    except IdentitySettingsError as error:
        raise UsageError(str(error)) from error
    return TlsSettings(
        certificate_file=certificate,
        key_file=key,
        client_authorities=None if authorities is None else lambda: authorities.current().certificates,
        min_version=VERSIONS[values.text("tls-min-version")],
        is_optional=values.boolean("tls-optional"),
    )


def _server(values: FlagValues, authorities: AuthorityFile | None) -> ServerOptions:
    return ServerOptions(
        program=PROGRAM,
        version=program_version(),
        metrics_prefix=METRICS_PREFIX,
        address=Address(values.text("bind-address"), values.integer("port")),
        tls=_tls(values, authorities),
        plain_address=values.address("plain-bind-address"),
        shutdown_delay_seconds=values.seconds("shutdown-delay"),
        threads=COMMON_THREADS,
        reserved_threads=RESERVED_THREADS,
        answers=OutgoingLimits(most_bytes=_MOST_UNREAD_BYTES, most_bytes_each=_LARGEST_ANSWER_BYTES),
        pin_cpu=values.boolean("pin-cpu"),
    )
