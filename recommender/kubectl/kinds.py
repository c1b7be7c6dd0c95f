"""The kinds of the cluster, as the plugin looks them up: a kind is unknown only if all kinds could be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.foundation.objects.resources import BUILT_IN, Resource, UnknownResourceError, find_resource
from adapter.foundation.sources.kubernetes.discovery import KindDiscovery
from adapter.foundation.sources.kubernetes.errors import KubernetesError, UnauthorizedError, UnreachableError

if TYPE_CHECKING:
    from adapter.foundation.sources.kubernetes.client import KubernetesClient


class Kinds:
    """Looks up kinds; the API server is asked once, when the first one is wanted that is not built in."""

    def __init__(self, client: KubernetesClient) -> None:
        self._discovery = KindDiscovery(client)
        self._failure: KubernetesError | None = None
        self._has_asked = False

    def resource(self, group: str, name: str) -> Resource:
        """Return the resource of this name, as a `ResolveResource` does.

        Raises UnknownResourceError if no server has it, KubernetesError if that is not known.
        """
        try:
            return find_resource(BUILT_IN, group, name)
        except UnknownResourceError:
            self._ask()
        try:
            return self._discovery.resource(group, name)
        except UnknownResourceError as error:
            silent = [each for each in self._discovery.failing_versions if each.startswith(group)]
            if not silent:
                raise
            whose = "whose server does not answer" if len(silent) == 1 else "whose servers do not answer"
            raise KubernetesError(
                f"{name!r} is not known, and may be a kind of {', '.join(silent)}, {whose}"
            ) from error

    def _ask(self) -> None:
        """Ask the API server for its kinds, unless it was asked. Raises the KubernetesError of the only attempt."""
        if not self._has_asked:
            self._has_asked = True
            try:
                self._discovery.refresh()
            except (UnauthorizedError, UnreachableError) as error:
                self._failure = error
            except KubernetesError as error:
                self._failure = KubernetesError(f"the kinds of the cluster could not be read: {error}")
        if self._failure is not None:
            raise self._failure
