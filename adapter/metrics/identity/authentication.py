"""Authenticates and authorizes every request except health checks before anything else is done for it.

Callers are authenticated in the order of Kubernetes' own servers: by the front proxy's headers, a client certificate,
or a bearer token. The first that matches counts, and a caller needs one of them. For authorization see `authorization`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from adapter.metrics.identity.attributes import Attributes, KnownAttributes
from adapter.metrics.identity.callers import (
    NOBODY,
    AccessForbiddenError,
    BadPathError,
    Caller,
    IdentityError,
    IdentitySettingsError,
    Peer,
    UnauthenticatedError,
    Via,
    with_authenticated,
)
from adapter.metrics.identity.chains import Anchored, Verdicts, anchored_chain, utc_now
from adapter.metrics.identity.front_proxy import FrontProxies

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from adapter.foundation.web.http import Request
    from adapter.metrics.identity.authorities import Authorities
    from adapter.metrics.identity.authorization import Authorizer
    from adapter.metrics.identity.caller_authorities import CallerCAs
    from adapter.metrics.identity.chains import Now
    from adapter.metrics.identity.tokens import Tokens


ONLY_THE_FRONT_PROXY = (
    "Only requests through the verified front proxy (kube-apiserver) are served: direct callers, with a token or "
    "a client certificate of their own, are refused, because no access reviews are made (--authorization-kubeconfig)."
)
NO_FRONT_PROXY = (
    "No front proxy is known, so requests through kube-apiserver are refused: set its CA with "
    "--requestheader-client-ca-file, or read it from the cluster with --authentication-kubeconfig."
)


class OpenPaths:
    """Paths that need neither authentication nor authorization (`--authorization-always-allow-paths`).

    A trailing `*` matches any suffix. API resources are never open. Raises IdentitySettingsError.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        listed = [path.removeprefix("/") for path in paths]
        for path in listed:
            if "*" in path[:-1]:
                raise IdentitySettingsError(
                    f"--authorization-always-allow-paths: /{path}: a * is only allowed at the end"
                )
        self._paths = frozenset(path for path in listed if not path.endswith("*"))
        self._prefixes = tuple(path[:-1] for path in listed if path.endswith("*"))

    def hold(self, attributes: Attributes) -> bool:
        """Return whether the requested path is open."""
        if not attributes.path:
            return False
        path = attributes.path.removeprefix("/")
        return path in self._paths or path.startswith(self._prefixes)


class ClientCertificates:
    """Authenticates direct callers by certificates of the cluster's client CA: `CN` is the user, `O` are the groups.

    A certificate of the request-header CA never makes its holder a user, and one of the client CA never lets its holder
    act for others, because each is only verified with its own bundle. `now` returns the time in UTC.
    """

    def __init__(self, now: Now = utc_now) -> None:
        self._now = now
        self._verdicts: Verdicts[Authorities, tuple[Anchored, Caller] | str | None] = Verdicts(_judge_chain)

    def identify(self, authorities: Authorities, peer: Peer) -> Caller | None:
        """Return the caller that the certificate names; None if another CA signed it. Raises UnauthenticatedError."""
        if not peer.chain:
            return None
        verdict = self._verdicts.of(peer.chain, authorities)
        if verdict is None:
            return None
        if isinstance(verdict, str):
            raise UnauthenticatedError(f"the client certificate names no user: {verdict}")
        found, caller = verdict
        if not found.holds(self._now()):
            raise UnauthenticatedError("the client certificate, or one above it, is expired or not valid yet")
        return caller


class AccessControl:
    """Authenticates callers and authorizes their requests. Safe to use from many threads.

    Without `tokens`, bearer tokens are not accepted. Without an `authorizer`, only requests through the front proxy are
    served, because kube-apiserver has authorized them.
    """

    def __init__(
        self,
        materials: CallerCAs,
        *,
        tokens: Tokens | None = None,
        authorizer: Authorizer | None = None,
        open_paths: OpenPaths | None = None,
        now: Now = utc_now,
    ) -> None:
        self._materials = materials
        self._tokens = tokens
        self._authorizer = authorizer
        self._open_paths = open_paths or OpenPaths(())
        self._front_proxies = FrontProxies(now)
        self._certificates = ClientCertificates(now)
        self._attributes = KnownAttributes()

    def check(self, request: Request) -> Caller:
        """Return the caller if the request is authorized; `NOBODY` if the path is open to all.

        Raises IdentityError.
        """
        try:
            attributes = self._attributes.of(request.method, request.path, request.query)
        except BadPathError:
            # Only authenticated callers learn what is wrong with the path.
            self.identify(Peer(request.peer_chain), request.headers)
            raise
        if self._open_paths.hold(attributes):
            return NOBODY
        caller = self.identify(Peer(request.peer_chain), request.headers)
        self.authorize(caller, attributes)
        return caller

    def identify(self, peer: Peer, headers: Sequence[tuple[str, str]]) -> Caller:
        """Return the caller; `headers` are as received, one entry per line. Raises IdentityError."""
        material = self._materials.current()
        refusal: IdentityError | None = None
        if material.front_proxy is not None and peer.chain:
            try:
                caller = self._front_proxies.identify(material.front_proxy, peer, headers)
                if caller is not None:
                    return caller
            except IdentityError as e:
                refusal = e
        others: tuple[Callable[[], Caller | None], ...] = (
            lambda: self._certificates.identify(material.clients, peer) if material.clients else None,
            lambda: self._tokens.identify(headers) if self._tokens else None,
        )
        for other in others:
            try:
                caller = other()
            except UnauthenticatedError as e:
                refusal = e
            else:
                if caller is not None:
                    return caller
        raise refusal or _unknown(peer)

    def authorize(self, caller: Caller, attributes: Attributes) -> None:
        """Raise IdentityError unless the caller is allowed to do what the attributes describe."""
        if self._authorizer is not None:
            self._authorizer.require(caller, attributes)
        elif caller.via is not Via.FRONT_PROXY:
            raise AccessForbiddenError("direct callers are not served, because this server makes no access reviews")

    def authorize_unrouted(self, caller: Caller, attributes: Attributes) -> None:
        """Raise IdentityError unless the caller is allowed to use a path that kube-apiserver does not pass on.

        kube-apiserver has not authorized such a request, so it is reviewed like that of a direct caller. Without access
        reviews the front proxy is trusted, since the holder of its key can impersonate any user on any path anyway.
        """
        if self._authorizer is None:
            self.authorize(caller, attributes)
        else:
            self._authorizer.require(replace(caller, via=Via.TOKEN), attributes)

    def notes(self) -> tuple[str, ...]:
        """Return sentences for the log at startup: who is served, and which settings are too permissive."""
        settings = self._materials.settings
        found = [ONLY_THE_FRONT_PROXY] if self._authorizer is None else []
        if settings.front_proxy is None and not settings.looked_up:
            found = [NO_FRONT_PROXY]
        return (*found, *self._materials.warnings())


def _unknown(peer: Peer) -> IdentityError:
    if peer.chain:
        return AccessForbiddenError(
            "the client certificate may not act for users: it was not issued by the request-header CA"
        )
    return UnauthenticatedError("no verified client certificate: requests come through kube-apiserver")


def _judge_chain(chain: tuple[bytes, ...], authorities: Authorities) -> tuple[Anchored, Caller] | str | None:
    found = anchored_chain(chain, authorities)
    if not isinstance(found, Anchored):
        return found
    names = found.common_names
    if len(names) != 1 or not names[0]:
        return f"it has {len(names)} common names that are not empty, but exactly one is required"
    groups = with_authenticated(names[0], tuple(found.organizations))
    return found, Caller(names[0], groups, Via.CLIENT_CERTIFICATE)
