"""Sets up the access control that authenticates and authorizes callers of `serve`, in the worker."""

from __future__ import annotations

import logging
from functools import cache
from typing import TYPE_CHECKING

from adapter.foundation.objects.resources import BUILT_IN, find_resource
from adapter.foundation.service.flags.parsing import UsageError
from adapter.foundation.service.runtime.threads import DaemonThreads
from adapter.foundation.sources.kubernetes.client import KubernetesClient
from adapter.foundation.sources.kubernetes.credentials.access import from_kubeconfig, in_cluster
from adapter.foundation.sources.kubernetes.errors import ConfigurationError
from adapter.foundation.sources.kubernetes.lists.list_watch import WHOLE_OBJECTS, ListWatch, WatchSettings
from adapter.foundation.sources.kubernetes.watches.reflector import Reflector
from adapter.foundation.sources.stores import SingleObject
from adapter.foundation.time.backoff import Backoff
from adapter.metrics.identity import authentication_config_map
from adapter.metrics.identity.access_reviews import AccessReviews
from adapter.metrics.identity.authentication import AccessControl
from adapter.metrics.identity.authorization import Authorizer
from adapter.metrics.identity.identity_telemetry import IdentityTelemetry
from adapter.metrics.identity.reviews import review_waiters
from adapter.metrics.identity.tokens import Tokens

if TYPE_CHECKING:
    from adapter.commands.serve.identity_flags import ReviewServer, ServeIdentity
    from adapter.foundation.service.server.context import WorkerContext
    from adapter.foundation.sources.kubernetes.kubernetes_telemetry import WatchTelemetry
    from adapter.metrics.identity.caller_authorities import AuthenticationMaterial

MOST_WAITING = 8
"""The maximum number of direct callers that wait for reviews at the same time: half of the request threads."""
RENEWING_THREADS = 4
LONGEST_LOOKUP_WAIT_SECONDS = 10.0

_log = logging.getLogger(__name__)


def make_access_control(identity: ServeIdentity, context: WorkerContext, watches: WatchTelemetry) -> AccessControl:
    """Return the access control, and start its background tasks. Raises UsageError."""
    telemetry = IdentityTelemetry(context.registry)
    crowd = review_waiters(MOST_WAITING)
    # Equal servers get one client.
    client_of = cache(_client)
    authentication, authorization = client_of(identity.authentication), client_of(identity.authorization)
    tokens = Tokens(authentication, telemetry, crowd, identity.tokens) if authentication else None
    authorizer = None
    if authorization is not None:
        reviews = AccessReviews(authorization, telemetry)
        renewing = DaemonThreads("review", RENEWING_THREADS)
        authorizer = Authorizer(reviews.review, renewing.submit, crowd, telemetry, identity.rights)
    access_control = AccessControl(
        identity.materials, tokens=tokens, authorizer=authorizer, open_paths=identity.open_paths
    )
    for note in (*identity.warnings, *access_control.notes()):
        _log.warning("%s", note)
    _know_front_proxy(identity, context, authentication, watches)
    return access_control


def _client(server: ReviewServer | None) -> KubernetesClient | None:
    """Return a client of the server; None without a server, or if the pod has no service account.

    Raises UsageError if a kubeconfig cannot be used.
    """
    if server is None:
        return None
    try:
        return KubernetesClient(from_kubeconfig(server.kubeconfig) if server.kubeconfig else in_cluster())
    except ConfigurationError as error:
        if server.kubeconfig:
            raise UsageError(str(error)) from error
        _log.warning("callers cannot be reviewed: %s", error)
        return None


def _know_front_proxy(
    identity: ServeIdentity, context: WorkerContext, client: KubernetesClient | None, watches: WatchTelemetry
) -> None:
    """Start the task that reads CAs from the cluster, and add the check that passes once a front proxy is known."""
    materials, lookup = identity.materials, authentication_config_map.Lookup(identity.materials)
    looked_up = client is not None and materials.settings.looked_up
    if client is not None and looked_up:
        which = ListWatch(
            find_resource(BUILT_IN, "", "configmaps"),
            WHOLE_OBJECTS,
            authentication_config_map.NAMESPACE,
            field_selector=f"metadata.name={authentication_config_map.NAME}",
        )
        # Each list clears the error that an earlier failure left behind.
        settings = WatchSettings(telemetry=watches, backoff=_backoff, resumes=False)
        store: SingleObject[authentication_config_map.ConfigMap] = SingleObject(
            authentication_config_map.NAME, lookup.take
        )
        reflector = Reflector(client, which, authentication_config_map.ConfigMap, store, settings, lookup.note_failure)
        context.tasks.running("watch configmaps", reflector.run, reads_only=True)

    def probe() -> str | None:
        material: AuthenticationMaterial = materials.current()
        if material.front_proxy is not None or identity.ready_without_front_proxy:
            return None
        found = lookup.trouble if looked_up else None
        return f"no front proxy is known: {found or 'set --requestheader-client-ca-file'}"

    if materials.settings.front_proxy is None:
        context.health.add_ready("authentication", probe)


def _backoff() -> Backoff:
    return Backoff(longest_seconds=LONGEST_LOOKUP_WAIT_SECONDS)
