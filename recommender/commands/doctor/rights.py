"""Doctor: checks whether a service account has the rights that the configuration needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.options.cluster_checks import unreviewed_line
from adapter.foundation.reports.counts import first_names
from adapter.foundation.reports.definitions import DefinedKind, keys_of_schema
from adapter.foundation.reports.lines import Line, ok
from adapter.foundation.sources.kubernetes.access_rights import AccessRight, Subject, is_allowed
from adapter.foundation.sources.kubernetes.errors import KubernetesError
from recommender.commands.doctor.lost import OBJECTS_LOST, lost_without
from recommender.configuration.objects.definition import schema
from recommender.configuration.objects.object_settings import GROUP, PLURAL, VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapter.foundation.sources.kubernetes.writing import ObjectClient
    from recommender.kinds.role_rules import RoleRule

_SHOWN_NAMES: Final = 5


def recommendations_kind() -> DefinedKind:
    """Return what the installed definition of recommendations must contain."""
    return DefinedKind(GROUP, VERSION, PLURAL, keys_of_schema(schema()), OBJECTS_LOST)


def look_at_right(client: ObjectClient, right: RoleRule, subject: Subject) -> tuple[Line]:
    """Request a review of each verb of a right, and return the line about all of them."""
    missing = []
    for one in _single(right):
        try:
            if not is_allowed(client, one, subject):
                missing.append(one)
        except KubernetesError as failure:
            return (unreviewed_line(_name(right), one, subject, failure),)
    return (judge_right(right, subject, tuple(missing)),)


def judge_right(right: RoleRule, subject: Subject, missing: tuple[AccessRight, ...]) -> Line:
    """Return the line about a right; `missing` has the verbs and objects that it does not cover."""
    if not missing:
        return ok(_name(right), f"{subject} may {', '.join(right.verbs)} {_resource(right)}{_names(right.names)}")
    verbs = ", ".join(dict.fromkeys(one.verb for one in missing))
    names = tuple(dict.fromkeys(one.object_name for one in missing if one.object_name))
    lost, status = lost_without(right)
    role = f"a Role in {right.namespace}" if right.namespace else "a ClusterRole"
    fix = f"grant {', '.join(right.verbs)} on {_resource(right)} by {role}, as the chart does"
    return Line(
        _name(right),
        status,
        f"{subject} may not {verbs} {_resource(right)}{_names(names)}; affected: {lost}",
        fix,
    )


def _single(right: RoleRule) -> Iterator[AccessRight]:
    for verb in right.verbs:
        for name in right.names or ("",):
            yield AccessRight(verb, right.resource, right.api_group, right.namespace, name, right.subresource)


def _name(right: RoleRule) -> str:
    where = f" in {right.namespace}" if right.namespace else ""
    return f"permission/{'+'.join(right.verbs)} {_resource(right)}{where}"


def _resource(right: RoleRule) -> str:
    resource = f"{right.resource}.{right.api_group}" if right.api_group else right.resource
    return f"{resource}/{right.subresource}" if right.subresource else resource


def _names(names: tuple[str, ...]) -> str:
    return f" {first_names(names, _SHOWN_NAMES)}" if names else ""
