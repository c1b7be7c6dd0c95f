"""The one door: every request but health passes here before anything is looked up for it.

Who asks is found out in the order of Kubernetes' own servers: the front proxy's headers, a client certificate, a bearer
token. The first that fits counts, and nobody comes in without one. Then whether they may: see `authorization`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from adapter.identity.attributes import KnownAttributes
from adapter.identity.callers import (
    NOBODY,
    AccessForbiddenError,
    BadPathError,
    Caller,
    IdentityError,
    IdentitySettingsError,
    Peer,
    UnauthenticatedError,
    Via,
)
from adapter.identity.chains import utc_now
from adapter.identity.client_certificates import ClientCertificates
from adapter.identity.front_proxy import FrontProxies

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from adapter.identity.attributes import Attributes
    from adapter.identity.authorization import Authorizer
    from adapter.identity.callers import RequestedAccess
    from adapter.identity.chains import Now
    from adapter.identity.material import CallerCAs
    from adapter.identity.tokens import Tokens

ONLY_THE_FRONT_PROXY = (
    "Only requests through the verified front proxy (kube-apiserver) are served: direct callers, with a token or "
    "a client certificate of their own, are refused, as no access reviews are made (--authorization-kubeconfig)."
)
NO_FRONT_PROXY = (
    "No front proxy is known, so requests through kube-apiserver are refused: give its CA with "
    "--requestheader-client-ca-file, or have it looked up by --authentication-kubeconfig."
)


class OpenPaths:
    """Paths that need neither identity nor right, as `--authorization-always-allow-paths` lists them.

    A trailing `*` stands for whatever follows. API resources are never open. Raises IdentitySettingsError.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        listed = [path.removeprefix("/") for path in paths]
        for path in listed:
            if "*" in path[:-1]:
                raise IdentitySettingsError(f"--authorization-always-allow-paths: /{path}: a * may only be its end")
        self._paths = frozenset(path for path in listed if not path.endswith("*"))
        self._prefixes = tuple(path[:-1] for path in listed if path.endswith("*"))

    def hold(self, attributes: Attributes) -> bool:
        """Return whether what is asked for is open."""
        if not attributes.path:
            return False
        path = attributes.path.removeprefix("/")
        return path in self._paths or path.startswith(self._prefixes)


class Gate:
    """Lets verified callers in that may have what they ask for. Safe to use from many threads.

    Without `tokens` no bearer token makes anybody known. Without an `authorizer` whom the front proxy speaks for is
    served, since kube-apiserver has authorised the request, and nobody else.
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

    def check(self, asked: RequestedAccess) -> Caller:
        """Return who asks, if they may have what they ask for; `NOBODY` where that is open to all.

        Raises IdentityError.
        """
        try:
            attributes = self._attributes.of(asked.method, asked.path, asked.query)
        except BadPathError:
            # What is wrong with a path is told to those who are known.
            self.identify(Peer(asked.peer_chain), asked.headers)
            raise
        if self._open_paths.hold(attributes):
            return NOBODY
        caller = self.identify(Peer(asked.peer_chain), asked.headers)
        self.authorize(caller, attributes)
        return caller

    def identify(self, peer: Peer, headers: Sequence[tuple[str, str]]) -> Caller:
        """Return who asks; `headers` as received, one entry a line. Raises IdentityError."""
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
        """Return if the caller may; raises IdentityError."""
        if self._authorizer is not None:
            self._authorizer.require(caller, attributes)
        elif caller.via is not Via.FRONT_PROXY:
            raise AccessForbiddenError("no access reviews are made here, so direct callers are not served")

    def authorize_unrouted(self, caller: Caller, attributes: Attributes) -> None:
        """Return if the caller may, where the path is none that kube-apiserver passes on; raises IdentityError.

        Then it has not authorised the request, whoever the front proxy speaks for: it is reviewed as that of one who
        comes directly. Where nobody is reviewed the front proxy's word is all there is, and its key has whoever could
        speak for anybody at any path.
        """
        if self._authorizer is None:
            self.authorize(caller, attributes)
        else:
            self._authorizer.require(replace(caller, via=Via.TOKEN), attributes)

    def notes(self) -> tuple[str, ...]:
        """Return sentences for the log at the start: who is served, and what is set more openly than it should be."""
        settings = self._materials.settings
        found = [ONLY_THE_FRONT_PROXY] if self._authorizer is None else []
        if settings.front_proxy is None and not settings.looked_up:
            found = [NO_FRONT_PROXY]
        return (*found, *self._materials.warnings())


def _unknown(peer: Peer) -> IdentityError:
    if peer.chain:
        return AccessForbiddenError(
            "the client certificate may not speak for users: it was not issued by the request-header CA"
        )
    return UnauthenticatedError("no verified client certificate: requests come through kube-apiserver")
