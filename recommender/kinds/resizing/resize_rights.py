"""The rights of the output `resize`: to read the owners of requests, and to write pods and templates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recommender.kinds.role_rules import LIST, REPLACE, UPDATE, RoleRule

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from recommender.decisions.record import TargetReference


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
