"""The settings of `run` from flags and file, checked completely before a port is opened."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapter.foundation.options.clients import ObjectSettings
from adapter.foundation.options.cluster import cluster_settings, objects_folder
from adapter.foundation.service.flags.parsing import UsageError
from adapter.foundation.service.server.addresses import Address, parse_address
from adapter.foundation.service.server.server_settings import ServerOptions
from adapter.foundation.service.version import program_version
from adapter.foundation.sources.kubernetes.credentials.access import pod_namespace
from adapter.foundation.web.allowed_hosts import AllowedHosts
from recommender.commands.program import METRICS_PREFIX, PROGRAM
from recommender.commands.run.flags import METRICS_ADDRESS, PAGE_ADDRESS

if TYPE_CHECKING:
    from adapter.foundation.service.flags.table import FlagValues
    from recommender.configuration.recommender_configuration import Configuration, LeaderElection, Listen

STOP_SECONDS = 6.0
"""Time that a shutdown leaves for a write under way and for the release of the Lease."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """The settings of a running recommender that are not in its configuration."""

    server: ServerOptions
    page_hosts: AllowedHosts
    """Host names under which the page is served."""
    objects: ObjectSettings
    dry_run: bool
    pod: str
    """The beginning of this process's identity in the Lease."""
    namespace: str
    """The namespace of the Lease and the memories; empty if they are not used."""

    @property
    def writes(self) -> bool:
        """Whether anything is written to a cluster."""
        return not self.dry_run and self.objects.files is None


def run_settings(values: FlagValues, configuration: Configuration) -> RunSettings:
    """Return the settings in the flags and the configuration. Raises UsageError."""
    objects = object_settings(values)
    dry_run = values.boolean("dry-run")
    writes = not dry_run and objects.files is None
    return RunSettings(
        server=server_options(values, configuration.listen),
        page_hosts=page_hosts(values, configuration.listen),
        objects=objects,
        dry_run=dry_run,
        pod=socket.gethostname(),
        namespace=own_namespace(configuration.leader_election) if writes else "",
    )


def object_settings(values: FlagValues) -> ObjectSettings:
    """Return where objects come from. Raises UsageError."""
    return ObjectSettings(files=objects_folder(values), cluster=cluster_settings(values))


def server_options(values: FlagValues, listen: Listen) -> ServerOptions:
    """Return how the process serves; given flags take precedence over the file. Raises UsageError."""
    page = PAGE_ADDRESS if listen.page is None else _address("listen.page", listen.page)
    metrics = METRICS_ADDRESS if listen.metrics is None else _address("listen.metrics", listen.metrics)
    host = values.text("bind-address") if "bind-address" in values.given else page.host
    port = values.integer("port") if "port" in values.given else page.port
    return ServerOptions(
        program=PROGRAM,
        version=program_version(),
        metrics_prefix=METRICS_PREFIX,
        address=Address(host, port),
        tls=None,
        plain_address=values.address("plain-bind-address") if "plain-bind-address" in values.given else metrics,
        threads=4,
        shutdown_delay_seconds=values.seconds("shutdown-delay"),
        stop_seconds=STOP_SECONDS,
        pin_cpu=values.boolean("pin-cpu"),
    )


def page_hosts(values: FlagValues, listen: Listen) -> AllowedHosts:
    """Return the host names under which the page is served; given flags override the file. Raises UsageError."""
    key, listed = "listen.allowedHosts", listen.allowed_hosts
    if "allowed-hosts" in values.given:
        key, listed = "--allowed-hosts", values.texts("allowed-hosts")
    own = server_options(values, listen).address.host
    try:
        return AllowedHosts((*listed, own) if own else listed)
    except ValueError as error:
        raise UsageError(f"{key}: {error}") from error


def own_namespace(election: LeaderElection) -> str:
    """Return the namespace of the Lease and the memories: the configured one, or else that of the pod.

    Raises UsageError if neither is known.
    """
    if election.namespace:
        return election.namespace
    if named := pod_namespace():
        return named
    raise UsageError(
        "the namespace of the Lease and of the memories is not known outside of a pod: set leaderElection.namespace"
        " in the configuration, or the environment variable POD_NAMESPACE"
    )


def _address(key: str, text: str) -> Address:
    try:
        return parse_address(text)
    except ValueError as error:
        raise UsageError(f"{key}: {error}") from error
