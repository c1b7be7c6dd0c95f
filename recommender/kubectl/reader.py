"""Reads from the API server with the caller's own rights: kinds, and objects, whose failed read is a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from adapter.foundation.objects.resources import BUILT_IN, Resource, UnknownResourceError, find_resource
from adapter.foundation.sources.kubernetes.discovery import KindDiscovery
from adapter.foundation.sources.kubernetes.errors import (
    ForbiddenError,
    KubernetesError,
    NotFoundError,
    UnauthorizedError,
    UnreachableError,
    is_of_the_server,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.sources.kubernetes.access_rights import AccessRight
    from adapter.foundation.sources.kubernetes.client import KubernetesClient


@dataclass(frozen=True, slots=True)
class NotRead:
    """Something that could not be read."""

    reason: str
    """One sentence without a full stop, which names the missing right if that is the reason."""
    is_absent: bool = False
    """Whether nothing exists at this path."""


class Reader:
    """Reads single answers of one API server."""

    def __init__(self, client: KubernetesClient) -> None:
        self._client = client

    def object(self, path: str, right: AccessRight, query: Mapping[str, str] | None = None) -> dict[str, Any] | NotRead:
        """Return the JSON object at a path; `right` is what the request needs. Raises UnauthorizedError.

        Credentials that are not accepted raise an error, because they make every answer impossible.
        """
        try:
            found = msgspec.json.decode(self._client.get(path, query))
        except ForbiddenError:
            return NotRead(f"you lack the right to {right}: ask for a role that has it")
        except UnauthorizedError:
            raise
        except NotFoundError as error:
            return NotRead(str(error), is_absent=True)
        except KubernetesError as error:
            return NotRead(str(error))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return NotRead(f"GET {path}: the answer is not JSON: {error}")
        return found if isinstance(found, dict) else NotRead(f"GET {path}: the answer is not an object")

    def items(
        self, path: str, right: AccessRight, query: Mapping[str, str] | None = None
    ) -> list[dict[str, Any]] | NotRead:
        """Return the items of a list. Raises UnauthorizedError."""
        found = self.object(path, right, query)
        return found if isinstance(found, NotRead) else [*(found.get("items") or ())]

    def required_object(self, path: str, right: AccessRight) -> dict[str, Any]:
        """Return an object without which the question cannot be answered. Raises KubernetesError."""
        try:
            found = msgspec.json.decode(self._client.get(path))
        except ForbiddenError as error:
            raise KubernetesError(f"you lack the right to {right}: ask for a role that has it") from error
        except KubernetesError as error:
            if isinstance(error, NotFoundError) and not is_of_the_server(error):
                raise KubernetesError(f"{error}: check the name and the namespace (-n)") from error
            raise
        if not isinstance(found, dict):
            raise KubernetesError(f"GET {path}: the answer is not an object")
        return found


def object_path(group_version: str, namespace: str, plural: str, name: str = "", subresource: str = "") -> str:
    """Return the path of a list or an object, such as for `apps/v1`, `shop`, `deployments`, `web`."""
    root = f"/apis/{group_version}" if "/" in group_version else f"/api/{group_version}"
    parts = [root, "namespaces", quote(namespace, safe=""), plural, quote(name, safe=""), subresource]
    return "/".join(filter(None, parts))


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
