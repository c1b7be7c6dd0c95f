"""Reads what kube-apiserver publishes for the servers behind it: the ConfigMap `extension-apiserver-authentication`.

Its values are PEM bundles and JSON lists in strings. The part about the front proxy is a unit: a CA without its allowed
names would let anybody act as any user. So a part with an error is refused as a whole, and the other part is
unaffected.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Generic, TypeAlias, TypeVar

import msgspec

from adapter.foundation.objects.decoders import decoder_of
from adapter.foundation.sources.kubernetes.errors import ForbiddenError, KubernetesError
from adapter.metrics.identity.authorities import Authorities, parse_bundle
from adapter.metrics.identity.caller_authorities import CallerCAs, LookedUp
from adapter.metrics.identity.callers import IdentitySettingsError
from adapter.metrics.identity.front_proxy import FrontProxyMaterial
from adapter.metrics.identity.headers import HeaderNames

NAMESPACE = "kube-system"
NAME = "extension-apiserver-authentication"
WHERE = f"ConfigMap {NAMESPACE}/{NAME}"

CLIENT_CA = "client-ca-file"
FRONT_PROXY_CA = "requestheader-client-ca-file"
ALLOWED_NAMES = "requestheader-allowed-names"
USERS = "requestheader-username-headers"
GROUPS = "requestheader-group-headers"
EXTRA_PREFIXES = "requestheader-extra-headers-prefix"
UIDS = "requestheader-uid-headers"
"""The key of the UID headers, which only Kubernetes 1.32 and later publish."""

READER_ROLE = f"bind its service account to the role extension-apiserver-authentication-reader in {NAMESPACE}"

_log = logging.getLogger(__name__)

T = TypeVar("T")
Data: TypeAlias = "Mapping[str, str]"


class ConfigMapMetadata(msgspec.Struct):
    """Identifies a ConfigMap."""

    name: str
    namespace: str | None = None


class ConfigMap(msgspec.Struct):
    """The ConfigMap as the API server sends it."""

    metadata: ConfigMapMetadata
    data: msgspec.Raw = msgspec.Raw(b"null")
    """JSON of any form, so that `Lookup` reports data that it cannot read."""


_DATA: msgspec.json.Decoder[dict[str, str] | None] = decoder_of(dict[str, str] | None)
_NAMES = decoder_of(tuple[str, ...])


class _Part(Generic[T]):
    """One part of the ConfigMap, with its last good content."""

    def __init__(self, name: str, keys: tuple[str, ...], parse: Callable[[Data], T]) -> None:
        self.good: T | None = None
        self.trouble: str | None = None
        self._name = name
        self._keys = keys
        self._parse = parse
        self._seen: dict[str, str | None] | None = None

    def read(self, data: Data) -> None:
        """Load the content of the keys if it has changed."""
        content = {key: data.get(key) for key in self._keys}
        if content == self._seen:
            return
        self._seen = content
        try:
            self.good = self._parse(data)
        except IdentitySettingsError as e:
            self.trouble = str(e)
            what = "the last good one stays in use" if self.good else "there is none"
            _log.warning("%s is refused; %s", self._name, what, extra={"fields": {"cause": self.trouble}})
            return
        self.trouble = None
        _log.info("%s loaded", self._name, extra={"fields": {"source": WHERE}})


class Lookup:
    """Follows the content of the ConfigMap. To be used by one thread."""

    def __init__(self, materials: CallerCAs) -> None:
        self._materials = materials
        keys = (FRONT_PROXY_CA, ALLOWED_NAMES, USERS, GROUPS, EXTRA_PREFIXES, UIDS)
        self._front_proxy = _Part("request-header CA", keys, front_proxy_of)
        self._clients = _Part("client CA", (CLIENT_CA,), lambda data: _bundle(data, CLIENT_CA))
        self._taken: tuple[FrontProxyMaterial | None, Authorities | None] = (None, None)
        self._unread: str | None = f"{WHERE} has not been read yet"
        self._logged: str | None = None

    @property
    def trouble(self) -> str | None:
        """Why the front proxy is unknown or outdated; None if it is current."""
        return self._unread or self._front_proxy.trouble or self._materials.trouble

    def take(self, found: ConfigMap | None) -> None:
        """Read the ConfigMap; None means that there is none."""
        if self._unread is None:
            # Nothing has failed since the last time, so the logged failure has ended. If only watches fail, lists
            # succeed between the failures, and these are still one failure.
            self._logged = None
        if found is None:
            self._report(f"there is no {WHERE}, which kube-apiserver creates")
            return
        try:
            data = _DATA.decode(found.data) or {}
        except (msgspec.DecodeError, UnicodeDecodeError) as e:
            self._report(f"{WHERE} has data of an unexpected form: {e}")
            return
        self._unread = None
        settings = self._materials.settings
        if settings.front_proxy is None:
            self._front_proxy.read(data)
        if settings.client_ca_file is None:
            self._clients.read(data)
        good = (self._front_proxy.good, self._clients.good)
        if good != self._taken:
            self._taken = good
            self._materials.take(LookedUp(*good))

    def note_failure(self, error: KubernetesError) -> None:
        """Record that the ConfigMap cannot be read."""
        hint = f": {READER_ROLE}" if isinstance(error, ForbiddenError) else ""
        self._report(f"{WHERE} cannot be read: {error}{hint}")

    def _report(self, trouble: str) -> None:
        if trouble != self._logged:
            about = {"fields": {"cause": trouble}}
            _log.warning("authentication material cannot be looked up; the known material stays in use", extra=about)
        self._unread = self._logged = trouble


def front_proxy_of(data: Data) -> FrontProxyMaterial:
    """Return the settings of the front proxy in the keys. Raises IdentitySettingsError, which names the key."""
    usual = HeaderNames()
    names = HeaderNames(
        users=_names(data, USERS) or usual.users,
        groups=_names(data, GROUPS) or usual.groups,
        extra_prefixes=_names(data, EXTRA_PREFIXES) or usual.extra_prefixes,
        uids=_names(data, UIDS),
    )
    return FrontProxyMaterial(_bundle(data, FRONT_PROXY_CA), _names(data, ALLOWED_NAMES), names)


def _bundle(data: Data, key: str) -> Authorities:
    pem = data.get(key, "")
    if not pem.strip():
        raise IdentitySettingsError(f"{WHERE}: the key {key} is missing")
    return parse_bundle(pem.encode(), f"{WHERE}: {key}")


def _names(data: Data, key: str) -> tuple[str, ...]:
    text = data.get(key, "")
    if not text.strip():
        return ()
    try:
        return _NAMES.decode(text)
    except msgspec.DecodeError as e:
        raise IdentitySettingsError(f"{WHERE}: {key} is not a JSON list of names: {e}") from e
