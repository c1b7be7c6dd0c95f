"""One right in the cluster, and groups of verbs that belong together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

GET: Final = ("get",)
LIST: Final = ("list",)
CREATE: Final = ("create",)
APPLY: Final = ("patch",)
"""The verb for server-side apply of an existing object."""
UPDATE: Final = ("get", "update")
REPLACE: Final = ("update",)
"""The verb for replacing an object that another rule allows to read."""
WATCH: Final = ("list", "watch")


@dataclass(frozen=True, slots=True, order=True)
class RoleRule:
    """A right, as one rule of a Role or ClusterRole grants it."""

    namespace: str
    """The namespace; empty for the whole cluster."""
    api_group: str
    """The API group; empty for the core group."""
    resource: str
    """The plural name."""
    subresource: str
    """The subresource; empty for the object itself."""
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()
    """Names of objects; empty for all objects of the resource.

    RBAC cannot limit `create` by name. It limits `list` and `watch` to one name if the field selector of the request is
    `metadata.name=NAME`.
    """
