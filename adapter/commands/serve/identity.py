"""`serve` and its callers: flags, what they come down to, and the gate that is made of it in the worker.

Where the process runs in a pod it asks the pod's own API server, as other servers behind kube-apiserver do; outside of
one only where a kubeconfig is given for it. With `--objects` there is no cluster that goes without saying.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapter.identity import config_map
from adapter.identity.access_reviews import AccessReviews
from adapter.identity.authorization import AuthorizationSettings, Authorizer
from adapter.identity.front_proxy import HeaderNames
from adapter.identity.gate import Gate, OpenPaths
from adapter.identity.material import CallerCAs, FrontProxySettings, MaterialSettings
from adapter.identity.reviews import review_waiters
from adapter.identity.telemetry import IdentityTelemetry
from adapter.identity.tokens import Tokens, TokenSettings
from adapter.objects.resources import BUILT_IN, find_resource
from adapter.service.flags.parsing import UsageError
from adapter.service.flags.table import BOOLEAN, DURATION, PATH, TEXT, Flag, Repeat
from adapter.service.runtime.errors import StartError
from adapter.service.runtime.threads import DaemonThreads
from adapter.sources.kubernetes.access import from_kubeconfig, in_cluster
from adapter.sources.kubernetes.client import KubernetesClient
from adapter.sources.kubernetes.errors import ConfigurationError
from adapter.sources.kubernetes.list_watch import WHOLE_OBJECTS, ListWatch
from adapter.sources.kubernetes.reflector import Reflector
from adapter.sources.kubernetes.settings import WatchSettings
from adapter.sources.stores import SingleObject
from adapter.timing.backoff import Backoff

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from adapter.identity.material import AuthenticationMaterial
    from adapter.service.flags.table import FlagValues
    from adapter.service.server.context import WorkerContext
    from adapter.sources.kubernetes.telemetry import WatchTelemetry

MOST_WAITING = 8
"""Direct callers that may wait for reviews at once: half of the threads that answer requests."""
RENEWING_THREADS = 4
LONGEST_LOOKUP_WAIT_SECONDS = 10.0

_GROUP = "Callers"
_HEADERS = ("username-headers", "group-headers", "extra-headers-prefix", "uid-headers")

_log = logging.getLogger(__name__)

IDENTITY_FLAGS: tuple[Flag, ...] = (
    Flag(
        name="requestheader-client-ca-file",
        kind=PATH,
        help=(
            "CA of the front proxy (kube-apiserver's aggregator). With it the other --requestheader flags count; "
            "without it all of that is looked up in the cluster."
        ),
        group=_GROUP,
    ),
    Flag(
        name="requestheader-allowed-names",
        kind=TEXT,
        repeat=Repeat.COMMAS,
        help="Common names of client certificates that may speak for users (default: every name of that CA).",
        group=_GROUP,
    ),
    *(
        Flag(
            name=f"requestheader-{name}",
            kind=TEXT,
            repeat=Repeat.COMMAS,
            default=default,
            help=text,
            group=_GROUP,
        )
        for name, default, text in zip(
            _HEADERS,
            (HeaderNames().users, HeaderNames().groups, HeaderNames().extra_prefixes, HeaderNames().uids),
            (
                "Headers that name the user; the first with a value counts.",
                "Headers that name the groups.",
                "Prefixes of headers with further attributes.",
                "Headers that hold the user's UID.",
            ),
            strict=True,
        )
    ),
    Flag(
        name="client-ca-file",
        kind=PATH,
        help="CA of callers' own certificates: CN is the user, O the groups (default: looked up in the cluster).",
        group=_GROUP,
    ),
    Flag(
        name="authentication-kubeconfig",
        kind=PATH,
        help="Where CAs are looked up and tokens reviewed (default: in a pod its own cluster).",
        group=_GROUP,
    ),
    Flag(
        name="authentication-skip-lookup",
        kind=BOOLEAN,
        default=False,
        help="Look no CAs up: only those given by flags count.",
        group=_GROUP,
    ),
    Flag(
        name="authentication-tolerate-lookup-failure",
        kind=BOOLEAN,
        default=False,
        help="Be ready before a front proxy's CA has been found.",
        group=_GROUP,
    ),
    Flag(
        name="authentication-token-webhook-cache-ttl",
        kind=DURATION,
        default=10.0,
        help="How long the review of a token holds.",
        group=_GROUP,
    ),
    Flag(
        name="api-audiences",
        kind=TEXT,
        repeat=Repeat.COMMAS,
        help="Audiences, of which tokens must be for one (default: the API server's).",
        group=_GROUP,
    ),
    Flag(
        name="authorization-kubeconfig",
        kind=PATH,
        help="Where access is reviewed (default: in a pod its own cluster). Without, only the front proxy is served.",
        group=_GROUP,
    ),
    Flag(
        name="authorization-always-allow-paths",
        kind=TEXT,
        repeat=Repeat.COMMAS,
        default=("/healthz", "/readyz", "/livez"),
        help="Paths, not of API resources, that are open to everybody; a * may end one. Health always is.",
        group=_GROUP,
    ),
    Flag(
        name="authorization-webhook-cache-authorized-ttl",
        kind=DURATION,
        default=10.0,
        help="How long a review holds that allows, for direct callers.",
        group=_GROUP,
    ),
    Flag(
        name="authorization-webhook-cache-unauthorized-ttl",
        kind=DURATION,
        default=10.0,
        help="How long a review holds that denies.",
        group=_GROUP,
    ),
    Flag(
        name="front-proxy-authorized-ttl",
        kind=DURATION,
        default=300.0,
        help=(
            "How long a review holds that allows, for callers through kube-apiserver, which has authorised each "
            "request itself; as long again at most while reviews fail."
        ),
        group=_GROUP,
    ),
)

_OF_AUTHENTICATION = ("authentication-token-webhook-cache-ttl", "api-audiences")
_OF_LOOKUP = ("authentication-tolerate-lookup-failure",)
_OF_AUTHORIZATION = (
    "authorization-webhook-cache-authorized-ttl",
    "authorization-webhook-cache-unauthorized-ttl",
    "front-proxy-authorized-ttl",
)
_OF_FRONT_PROXY = ("requestheader-allowed-names", *(f"requestheader-{name}" for name in _HEADERS))


@dataclass(frozen=True, slots=True)
class ReviewServer:
    """An API server that is asked about callers."""

    kubeconfig: str | None
    """None: that of the pod's own cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeIdentity:
    """How callers are recognised, and who says what they may."""

    materials: CallerCAs
    authentication: ReviewServer | None
    authorization: ReviewServer | None
    tokens: TokenSettings
    rights: AuthorizationSettings
    open_paths: OpenPaths
    ready_without_front_proxy: bool
    warnings: tuple[str, ...]
    """One for each flag that was given and means nothing beside the others."""


def identity_of_flags(values: FlagValues, environment: Mapping[str, str]) -> ServeIdentity:
    """Return what the flags ask for; raises UsageError or IdentitySettingsError."""
    at_home = "KUBERNETES_SERVICE_HOST" in environment and values.path("objects") is None
    authentication = _server(values.path("authentication-kubeconfig"), at_home=at_home)
    authorization = _server(values.path("authorization-kubeconfig"), at_home=at_home)
    looks_up = authentication is not None and not values.boolean("authentication-skip-lookup")
    front_proxy, client_ca_file = _front_proxy(values), values.path("client-ca-file")
    # What no flag says is looked up, and nothing is where the flags say all.
    looks_up = looks_up and (front_proxy is None or client_ca_file is None)
    return ServeIdentity(
        materials=CallerCAs(MaterialSettings(front_proxy, client_ca_file, looks_up)),
        authentication=authentication,
        authorization=authorization,
        tokens=TokenSettings(
            values.texts("api-audiences"), _not_negative(values, "authentication-token-webhook-cache-ttl")
        ),
        rights=AuthorizationSettings(
            _not_negative(values, "authorization-webhook-cache-authorized-ttl"),
            _not_negative(values, "authorization-webhook-cache-unauthorized-ttl"),
            _not_negative(values, "front-proxy-authorized-ttl"),
            required=authorization is not None and authorization.kubeconfig is not None,
        ),
        open_paths=OpenPaths(values.texts("authorization-always-allow-paths")),
        ready_without_front_proxy=values.boolean("authentication-tolerate-lookup-failure"),
        warnings=(
            *_idle(values, _OF_FRONT_PROXY, front_proxy, "they go with --requestheader-client-ca-file"),
            *_idle(values, _OF_AUTHENTICATION, authentication, "no tokens are reviewed (--authentication-kubeconfig)"),
            *_idle(values, _OF_LOOKUP, looks_up or None, "nothing is looked up"),
            *_idle(values, _OF_AUTHORIZATION, authorization, "no access is reviewed (--authorization-kubeconfig)"),
        ),
    )


def make_gate(identity: ServeIdentity, context: WorkerContext, watches: WatchTelemetry) -> Gate:
    """Return the gate, and start what it needs beside requests. Raises StartError."""
    telemetry = IdentityTelemetry(context.registry)
    clients = _Clients()
    crowd = review_waiters(MOST_WAITING)
    authentication = clients.of(identity.authentication)
    authorization = clients.of(identity.authorization)
    tokens = Tokens(authentication, telemetry, crowd, identity.tokens) if authentication else None
    authorizer = None
    if authorization is not None:
        reviews = AccessReviews(authorization, telemetry)
        renewing = DaemonThreads("review", RENEWING_THREADS)
        authorizer = Authorizer(reviews.review, renewing.submit, crowd, telemetry, identity.rights)
    gate = Gate(identity.materials, tokens=tokens, authorizer=authorizer, open_paths=identity.open_paths)
    for note in (*identity.warnings, *gate.notes()):
        _log.warning("%s", note)
    _know_front_proxy(identity, context, authentication, watches)
    return gate


class _Clients:
    """Makes one client for each server."""

    def __init__(self) -> None:
        self._made: dict[ReviewServer, KubernetesClient | None] = {}

    def of(self, server: ReviewServer | None) -> KubernetesClient | None:
        """Return a client; None without a server, and in a pod without a service account. Raises StartError."""
        if server is None:
            return None
        if server not in self._made:
            self._made[server] = _client(server)
        return self._made[server]


def _client(server: ReviewServer) -> KubernetesClient | None:
    try:
        return KubernetesClient(from_kubeconfig(server.kubeconfig) if server.kubeconfig else in_cluster())
    except ConfigurationError as error:
        if server.kubeconfig:
            raise StartError(str(error)) from error
        _log.warning("callers cannot be reviewed: %s", error)
        return None


def _know_front_proxy(
    identity: ServeIdentity, context: WorkerContext, client: KubernetesClient | None, watches: WatchTelemetry
) -> None:
    """Have the CAs looked up, and be ready when a front proxy is known."""
    materials, lookup = identity.materials, config_map.Lookup(identity.materials)
    looked_up = client is not None and materials.settings.looked_up
    if client is not None and looked_up:
        which = ListWatch(
            find_resource(BUILT_IN, "", "configmaps"),
            WHOLE_OBJECTS,
            config_map.NAMESPACE,
            field_selector=f"metadata.name={config_map.NAME}",
        )
        # Each list clears the trouble that a failure before it has left.
        settings = WatchSettings(telemetry=watches, backoff=_backoff, resumes=False)
        store: SingleObject[config_map.ConfigMap] = SingleObject(config_map.NAME, lookup.take)
        reflector = Reflector(client, which, config_map.ConfigMap, store, settings, lookup.failed)
        context.tasks.running("watch configmaps", lambda stop: reflector.run(stop.event))

    def probe() -> str | None:
        material: AuthenticationMaterial = materials.current()
        if material.front_proxy is not None or identity.ready_without_front_proxy:
            return None
        found = lookup.trouble if looked_up else None
        return f"no front proxy is known: {found or 'give --requestheader-client-ca-file'}"

    if materials.settings.front_proxy is None:
        context.health.add_ready("authentication", probe)


def _backoff() -> Backoff:
    return Backoff(longest_seconds=LONGEST_LOOKUP_WAIT_SECONDS)


def _server(kubeconfig: Path | None, *, at_home: bool) -> ReviewServer | None:
    if kubeconfig is not None:
        return ReviewServer(str(kubeconfig))
    return ReviewServer(None) if at_home else None


def _front_proxy(values: FlagValues) -> FrontProxySettings | None:
    ca_file = values.path("requestheader-client-ca-file")
    if ca_file is None:
        return None
    names = HeaderNames(*(values.texts(f"requestheader-{name}") for name in _HEADERS))
    return FrontProxySettings(ca_file, values.texts("requestheader-allowed-names"), names)


def _not_negative(values: FlagValues, name: str) -> float:
    seconds = values.seconds(name)
    if seconds < 0:
        raise UsageError(f"--{name} is {seconds:g} s: it must not be below 0; 0 remembers nothing")
    return seconds


def _idle(values: FlagValues, flags: tuple[str, ...], needed: object, reason: str) -> list[str]:
    """Return a warning for each of the flags that was given without what it needs."""
    if needed is not None:
        return []
    return [f"--{name} means nothing here: {reason}" for name in flags if name in values.given]
