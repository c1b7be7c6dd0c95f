"""The settings of the output `resize`, and the rights that it needs: to read the owners of requests, and to write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from recommender.kinds.role_rules import LIST, REPLACE, UPDATE, RoleRule

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from recommender.decisions.record import TargetReference


RESIZED_KINDS: Final = ("Deployment", "StatefulSet", "DaemonSet")
"""Kinds of the API group `apps` whose containers can be resized."""
API_VERSION: Final = "apps/v1"


@dataclass(frozen=True, slots=True)
class ResizeSettings:
    """How the output `resize` writes the sizes of containers."""

    threshold_ratio: float = 0.1
    """Smaller changes of a size are not written."""
    in_place: bool = True
    """Whether pods are resized in place if the API server supports it; otherwise the template of the workload is always
    written."""


def rights_on_targets(targets: Iterable[TargetReference]) -> Iterator[RoleRule]:
    """Yield the rights to write the templates of targets that are listed."""
    for target in targets:
        yield RoleRule(target.namespace, "apps", plural_of(target.kind), "", REPLACE, (target.name,))


def rights_in_namespaces(namespaces: Iterable[str]) -> Iterator[RoleRule]:
    """Yield the rights that do not name a target; an empty namespace means all."""
    for namespace in namespaces:
        for resource in ("pods", "limitranges", "resourcequotas"):
            yield RoleRule(namespace, "", resource, "", LIST)
        yield RoleRule(namespace, "", "pods", "resize", UPDATE)
        yield RoleRule(namespace, "apps", "replicasets", "", LIST)


def plural_of(kind: str) -> str:
    """Return the resource of one of `RESIZED_KINDS`."""
    return f"{kind.lower()}s"
