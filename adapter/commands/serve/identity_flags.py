"""The flags of `serve` that determine how callers are authenticated and authorized.

In a pod, the API server of the pod's cluster reviews callers, as it does for other servers behind kube-apiserver.
Elsewhere, or with `--objects`, only an API server that a kubeconfig names is asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapter.foundation.service.flags.parsing import UsageError
from adapter.foundation.service.flags.table import DURATION, PATH, TEXT, Flag, FlagValues, Repeat, in_group, switch
from adapter.metrics.identity.authentication import OpenPaths
from adapter.metrics.identity.authorization import AuthorizationSettings
from adapter.metrics.identity.caller_authorities import CallerCAs, FrontProxySettings, MaterialSettings
from adapter.metrics.identity.headers import HeaderNames
from adapter.metrics.identity.tokens import TokenSettings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


_GROUP = "Callers"
_HEADERS = ("username-headers", "group-headers", "extra-headers-prefix", "uid-headers")

IDENTITY_FLAGS: tuple[Flag, ...] = in_group(
    _GROUP,
    Flag(
        "requestheader-client-ca-file",
        PATH,
        "CA of the front proxy (kube-apiserver's aggregator). With it, the other --requestheader flags apply; "
        "without it, all of these settings are read from the cluster.",
    ),
    Flag(
        "requestheader-allowed-names",
        TEXT,
        "Common names of client certificates that may act for users (default: every name of that CA).",
        repeat=Repeat.COMMAS,
    ),
    *(
        Flag(f"requestheader-{name}", TEXT, text, repeat=Repeat.COMMAS, default=default)
        for name, default, text in zip(
            _HEADERS,
            (HeaderNames().users, HeaderNames().groups, HeaderNames().extra_prefixes, HeaderNames().uids),
            (
                "Headers with the user's name; the first one with a value is used.",
                "Headers with the user's groups.",
                "Prefixes of headers with extra attributes of the user.",
                "Headers with the user's UID.",
            ),
            strict=True,
        )
    ),
    Flag(
        "client-ca-file",
        PATH,
        "CA of client certificates: CN is the user, O the groups (default: read from the cluster).",
    ),
    Flag(
        "authentication-kubeconfig",
        PATH,
        "Cluster to read CAs from and to review tokens in (default: in a pod, the pod's cluster).",
    ),
    switch("authentication-skip-lookup", "Do not read CAs from the cluster: use only those that flags name."),
    switch("authentication-tolerate-lookup-failure", "Become ready even if no CA of a front proxy has been found."),
    Flag(
        "authentication-token-webhook-cache-ttl",
        DURATION,
        "How long the result of a token review is cached.",
        default=10.0,
    ),
    Flag(
        "api-audiences",
        TEXT,
        "Audiences; a token must be for at least one of them (default: the API server's).",
        repeat=Repeat.COMMAS,
    ),
    Flag(
        "authorization-kubeconfig",
        PATH,
        "Cluster to review access in (default: in a pod, the pod's cluster). Without one, only the front proxy "
        "is served.",
    ),
    Flag(
        "authorization-always-allow-paths",
        TEXT,
        "Paths outside API resources that need no authorization; a path may end in *. Health checks never need it.",
        repeat=Repeat.COMMAS,
        default=("/healthz", "/readyz", "/livez"),
    ),
    Flag(
        "authorization-webhook-cache-authorized-ttl",
        DURATION,
        "How long an allowed review is cached, for direct callers.",
        default=10.0,
    ),
    Flag("authorization-webhook-cache-unauthorized-ttl", DURATION, "How long a denied review is cached.", default=10.0),
    Flag(
        "front-proxy-authorized-ttl",
        DURATION,
        "How long an allowed review is cached for callers through kube-apiserver, which has authorized each "
        "request itself. While reviews fail, it is used for at most twice as long.",
        default=300.0,
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
    """An API server that reviews callers."""

    kubeconfig: str | None
    """The path of a kubeconfig; None means the cluster of the pod."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeIdentity:
    """How callers are authenticated, and which server authorizes them."""

    materials: CallerCAs
    authentication: ReviewServer | None
    authorization: ReviewServer | None
    tokens: TokenSettings
    rights: AuthorizationSettings
    open_paths: OpenPaths
    ready_without_front_proxy: bool
    warnings: tuple[str, ...]
    """One warning for each flag that has no effect because of the other flags."""


def identity_of_flags(values: FlagValues, environment: Mapping[str, str]) -> ServeIdentity:
    """Return the settings from the flags. Raises UsageError or IdentitySettingsError."""
    at_home = "KUBERNETES_SERVICE_HOST" in environment and values.path("objects") is None
    authentication = _server(values.path("authentication-kubeconfig"), at_home=at_home)
    authorization = _server(values.path("authorization-kubeconfig"), at_home=at_home)
    looks_up = authentication is not None and not values.boolean("authentication-skip-lookup")
    front_proxy, client_ca_file = _front_proxy(values), values.path("client-ca-file")
    # CAs that no flag sets are read from the cluster; if the flags set all of them, nothing is read.
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
            *_idle(values, _OF_FRONT_PROXY, front_proxy, "it needs --requestheader-client-ca-file"),
            *_idle(values, _OF_AUTHENTICATION, authentication, "no tokens are reviewed (--authentication-kubeconfig)"),
            *_idle(values, _OF_LOOKUP, looks_up or None, "nothing is read from the cluster"),
            *_idle(values, _OF_AUTHORIZATION, authorization, "no access is reviewed (--authorization-kubeconfig)"),
        ),
    )


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
        raise UsageError(f"--{name} is {seconds:g} s: write 0 or more; 0 turns the cache off")
    return seconds


def _idle(values: FlagValues, flags: tuple[str, ...], needed: object, reason: str) -> list[str]:
    """Return a warning with the reason for each of these flags that is set although `needed` is None."""
    if needed is not None:
        return []
    return [f"--{name} has no effect: {reason}" for name in flags if name in values.given]
