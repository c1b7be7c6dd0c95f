"""Watches a kind in whichever version the cluster serves, and waits for it if it is not installed."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Protocol

from adapter.foundation.cluster.watch.facts import ReflectingKind
from adapter.foundation.objects.resources import Resource, UnknownResourceError
from adapter.foundation.sources.kubernetes.discovery import KindDiscovery
from adapter.foundation.sources.kubernetes.errors import (
    ForbiddenError,
    KubernetesError,
    NotFoundError,
    UnexpectedResponseError,
    UnreachableError,
)
from adapter.foundation.sources.kubernetes.watches.streams import when_set

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from threading import Event

    from adapter.foundation.cluster.values.state import ObjectKind
    from adapter.foundation.sources.kubernetes.client import KubernetesClient
    from adapter.foundation.sources.kubernetes.lists.list_watch import WatchSettings
    from adapter.foundation.time.pace import Pace

_log = logging.getLogger(__name__)

RETRY_SECONDS = 30.0
"""How often the server is asked whether a kind has been installed."""
_OPTIONAL_RETRY_SECONDS = 300.0
"""How often the server is asked whether an optional kind has been installed, which may never happen."""


class RunningReflector(ReflectingKind, Protocol):
    """A Reflector of a kind in one version."""

    def run(self, stop: Event) -> None: ...


class ServedKinds:
    """The versions in which kinds are served. All watches of a cluster share one instance and its look-ups."""

    def __init__(self, client: KubernetesClient, pace: Pace) -> None:
        self._discovery = KindDiscovery(client, pace=pace, retry_seconds=RETRY_SECONDS)
        self._lock = threading.Lock()
        self.has_asked = False
        """Whether the server has said which kinds it has, and none of them has turned out to be gone since."""

    def resource(self, kind: ObjectKind) -> Resource:
        """Return the kind in its preferred version.

        Raises UnknownResourceError if the server does not have the kind, and KubernetesError if that is not known.
        """
        with self._lock:
            if not self.has_asked:
                self._refresh()
                self.has_asked = True
        try:
            found = self._discovery.resource(kind.group, kind.resource)
        except UnknownResourceError as error:
            self._refuse_silence(kind, error)
            raise
        if found.group != kind.group:
            raise UnknownResourceError(f"the API server has no {kind.resource} in the API group {kind.group}")
        return found

    def _refresh(self) -> None:
        try:
            self._discovery.refresh()
        except NotFoundError as error:
            # Every API server has these documents. A gateway that has no server at the moment does not.
            raise UnexpectedResponseError(str(error)) from error

    def _refuse_silence(self, kind: ObjectKind, error: UnknownResourceError) -> None:
        """Raise UnreachableError if the server of the kind's group does not answer, so that its kinds are not known."""
        failing = [each for each in self._discovery.failing_versions if each.partition("/")[0] == kind.group]
        if failing:
            raise UnreachableError(f"the server of {failing[0]} does not answer") from error

    def forget(self) -> None:
        """Ask the server again at the next look-up, since a version may have been removed."""
        with self._lock:
            self.has_asked = False


class ServedReflector:
    """A Reflector of a kind whose version is found when it runs."""

    def __init__(
        self,
        kind: ObjectKind,
        kinds: ServedKinds,
        reflector: Callable[[Resource, Callable[[KubernetesError], None]], RunningReflector],
        settings: WatchSettings,
    ) -> None:
        """`reflector` makes a Reflector for a version, which calls the given function when a list or watch fails."""
        self.resource = Resource(kind.group, "", kind.resource, kind.kind.lower(), kind.kind, namespaced=True)
        self.tried = threading.Event()
        """Set once the first list is in the store, or has failed."""
        self._kind = kind
        self._kinds = kinds
        self._reflector = reflector
        self._settings = settings
        self._inner: RunningReflector | None = None
        self._failure: KubernetesError | None = None

    @property
    def synced(self) -> bool:
        """Whether a whole list has been stored."""
        return self._inner is not None and self._inner.synced

    @property
    def unconfirmed(self) -> int:
        """How many known objects are kept although the last list lacks them."""
        return self._inner.unconfirmed if self._inner else 0

    @property
    def unreadable_by_namespace(self) -> Mapping[str | None, int]:
        """How many objects are left out because they cannot be read, by namespace; None if that cannot be read."""
        return self._inner.unreadable_by_namespace if self._inner else {}

    @property
    def began_empty(self) -> bool:
        """Whether the first list was empty, and no second list has confirmed that or shown objects."""
        return self._inner is not None and self._inner.began_empty

    @property
    def failure(self) -> KubernetesError | None:
        """Why the last look-up, list or watch failed; None if it succeeded."""
        return self._failure or (self._inner.failure if self._inner else None)

    @property
    def refusal(self) -> ForbiddenError | NotFoundError | None:
        """Why the server refuses this kind (NotFoundError if it is not installed); None if it does not.

        A list or a watch that is not found does not show that: a gateway answers so to everything while it has no
        server. What is known stays until the look-up that follows, which says what is installed.
        """
        if isinstance(self._failure, NotFoundError):
            return self._failure
        refusal = self._inner.refusal if self._inner else None
        return refusal if isinstance(refusal, ForbiddenError) else None

    def run(self, stop: Event) -> None:
        """Watch until `stop` is set; the version is looked up again when it is no longer served."""
        while not stop.is_set():
            try:
                resource = self._kinds.resource(self._kind)
            except UnknownResourceError as error:
                self._note_failure(NotFoundError(str(error), 404))
            except KubernetesError as error:
                self._note_failure(error)
            else:
                self._watch(resource, stop)
            self._settings.wait(stop, self._retry_seconds())

    def _retry_seconds(self) -> float:
        if isinstance(self._failure, UnreachableError) and not self._kinds.has_asked:
            return self._settings.uniform(*self._settings.away_seconds)
        is_absent = isinstance(self._failure, NotFoundError)
        return _OPTIONAL_RETRY_SECONDS if self._kind.is_optional and is_absent else RETRY_SECONDS

    def _note_failure(self, error: KubernetesError) -> None:
        if type(error) is not type(self._failure):
            is_usual = self._kind.is_optional and isinstance(error, NotFoundError)
            level = logging.DEBUG if is_usual else logging.WARNING
            _log.log(level, "%s cannot be watched, will retry: %s", self.resource.qualified, error)
        self._failure = error
        self.tried.set()

    def _watch(self, resource: Resource, stop: Event) -> None:
        """Watch one version until it is no longer served."""
        ended = threading.Event()

        def failed(error: KubernetesError) -> None:
            if isinstance(error, NotFoundError):
                self._kinds.forget()
                ended.set()

        inner = self._reflector(resource, failed)
        inner.tried = self.tried
        self._inner, self._failure = inner, None
        with when_set(stop, ended.set):
            inner.run(ended)
