"""Determines which permissions in the cluster a configuration needs, so that a role grants only these.

The chart derives the same permissions from its values (`helm/tidewatch/templates/_rights.tpl`); a test compares both.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias

from adapter.foundation.cluster.scheduling.kinds import SCHEDULING_KINDS
from adapter.foundation.objects.resources import ResolveResource, UnknownResourceError
from recommender.configuration.needs import needs_of, needs_of_one, targets_of
from recommender.configuration.objects.object_settings import GROUP, OBJECTS_MEMORY, OBJECTS_SHARDS, PLURAL
from recommender.configuration.own_namespace import with_own_namespace
from recommender.decisions.policy_settings import Output
from recommender.decisions.targets.vertical_autoscalers import GROUP as VPA_GROUP
from recommender.decisions.targets.vertical_autoscalers import PLURAL as VPA_PLURAL
from recommender.kinds.role_rules import APPLY, CREATE, GET, UPDATE, WATCH, RoleRule
from recommender.kinds.table import kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from recommender.configuration.recommender_configuration import Configuration
    from recommender.kinds.kind import Recommendation

_COUNTED: Final = {"endpoints": ("discovery.k8s.io", "endpointslices")}
"""The API group and resource by which a kind is counted, if it is not the resource of that name in the core group."""


MemoryName: TypeAlias = "Callable[[str, int | None], str]"
"""Returns the name of a ConfigMap with memory, from the name of the recommendation and the number of the shard.

The number is None if the memory is not divided into shards."""


def rights_of(
    configuration: Configuration,
    *,
    namespace: str,
    resolve: ResolveResource,
    memory_name: MemoryName,
) -> tuple[RoleRule, ...]:
    """Return the permissions that `run` needs for a configuration, sorted.

    `namespace` is the namespace of the process, which contains its Lease and its memories unless `leaderElection` names
    another one. `memory_name` returns the name of the ConfigMap with the memory of a recommendation, or with one shard
    of the memories of its targets. A target of an unknown kind needs only the permission for its events, since it
    cannot be addressed.
    """
    configuration = with_own_namespace(configuration, namespace)
    return _merge_rights(
        (
            *_rights_on_targets(configuration, resolve),
            *_rights_on_named_by_series(configuration, resolve),
            *_rights_on_parameters(configuration),
            *_rights_of_process(configuration, namespace, memory_name),
            *_rights_for_objects(configuration, namespace, memory_name, resolve),
            *_rights_to_watch(configuration),
            *(right for each in configuration.recommendations for right in kind_of(each.policy.type).rights(each)),
        )
    )


def _rights_on_targets(configuration: Configuration, resolve: ResolveResource) -> Iterator[RoleRule]:
    """Yield the permissions to read the targets of the file, to write sizes of scaled ones, and to create events."""
    scaled = {
        target
        for each in configuration.recommendations
        if Output.SCALE in each.policy.outputs
        for target in each.policy.targets
    }
    for target in targets_of(configuration):
        yield RoleRule(target.namespace, "", "events", "", CREATE)
        plural = _plural(target.api_version, target.kind, resolve)
        if plural is not None:
            group = target.api_version.rpartition("/")[0]
            yield RoleRule(target.namespace, group, plural, "", GET, (target.name,))
            if target in scaled:
                yield RoleRule(target.namespace, group, plural, "scale", UPDATE, (target.name,))


def _rights_on_named_by_series(configuration: Configuration, resolve: ResolveResource) -> Iterator[RoleRule]:
    """Yield the permissions to scale targets that series name, which may be any objects of their kind.

    A recommendation with `forEach` that has only metrics as output needs none of them.
    """
    for each in configuration.recommendations:
        for_each = needs_of_one(each).for_each
        if for_each is None or Output.SCALE not in each.policy.outputs:
            continue
        yield RoleRule("", "", "events", "", CREATE)
        plural = _plural(for_each.api_version, for_each.kind, resolve)
        if plural is not None:
            group = for_each.api_version.rpartition("/")[0]
            yield RoleRule("", group, plural, "", GET)
            yield RoleRule("", group, plural, "scale", UPDATE)


def _plural(api_version: str, kind: str, resolve: ResolveResource) -> str | None:
    group = api_version.rpartition("/")[0]
    try:
        resource = resolve(group, kind)
    except UnknownResourceError:
        return None
    return resource.plural if resource.group == group else None


def _rights_on_parameters(configuration: Configuration) -> Iterator[RoleRule]:
    for each in configuration.recommendations:
        for (namespace, name), default in needs_of_one(each).config_maps.items():
            yield RoleRule(namespace, "", "configmaps", "", GET, (name,))
            if default is not None:
                yield RoleRule(namespace, "", "configmaps", "", CREATE)


def _rights_of_process(configuration: Configuration, namespace: str, memory_name: MemoryName) -> Iterator[RoleRule]:
    """Yield the permissions for memories and for the Lease, which are in the same namespace."""
    election = configuration.leader_election
    place = election.namespace or namespace
    for each in configuration.recommendations:
        yield RoleRule(place, "", "configmaps", "", CREATE)
        yield RoleRule(place, "", "configmaps", "", UPDATE, _memory_names(each, memory_name))
    if election.enabled:
        yield RoleRule(place, "coordination.k8s.io", "leases", "", CREATE)
        yield RoleRule(place, "coordination.k8s.io", "leases", "", UPDATE, (election.name,))


def _rights_for_objects(
    configuration: Configuration, namespace: str, memory_name: MemoryName, resolve: ResolveResource
) -> Iterator[RoleRule]:
    """Yield the permissions for Recommendation objects and for their targets, which are not known beforehand."""
    settings = configuration.objects
    if not settings.enabled:
        return
    yield RoleRule("", GROUP, PLURAL, "", WATCH)
    yield RoleRule("", GROUP, PLURAL, "status", APPLY)
    yield RoleRule("", "", "nodes", "", WATCH)
    yield RoleRule("", "autoscaling", "horizontalpodautoscalers", "", WATCH)
    yield RoleRule("", VPA_GROUP, VPA_PLURAL, "", WATCH)
    yield RoleRule("", "", "events", "", CREATE)
    for kind in settings.target_kinds:
        plural = _plural(kind.api_version, kind.kind, resolve)
        if plural is not None:
            yield RoleRule("", kind.group, plural, "", GET)
            if Output.SCALE in settings.outputs:
                yield RoleRule("", kind.group, plural, "scale", UPDATE)
    place = configuration.leader_election.namespace or namespace
    names = tuple(memory_name(OBJECTS_MEMORY, shard) for shard in range(OBJECTS_SHARDS))
    yield RoleRule(place, "", "configmaps", "", CREATE)
    yield RoleRule(place, "", "configmaps", "", UPDATE, names)


def _memory_names(recommendation: Recommendation, memory_name: MemoryName) -> tuple[str, ...]:
    """Return the names of the ConfigMaps with the memory of a recommendation; with `forEach`, those of all shards."""
    for_each, name = needs_of_one(recommendation).for_each, recommendation.policy.name
    if for_each is None:
        return (memory_name(name, None),)
    return tuple(memory_name(name, shard) for shard in range(for_each.shards))


def _rights_to_watch(configuration: Configuration) -> Iterator[RoleRule]:
    """Yield the permissions to watch nodes, pods, HPAs, scheduling kinds, counted kinds, and other objects."""
    needs = needs_of(configuration)
    if needs.nodes:
        yield RoleRule("", "", "nodes", "", WATCH)
    for namespace in needs.autoscaler_namespaces:
        yield RoleRule(namespace, "autoscaling", "horizontalpodautoscalers", "", WATCH)
    if needs.pods:
        yield RoleRule("", "", "pods", "", WATCH)
    for kind in SCHEDULING_KINDS if needs.scheduling else ():
        yield RoleRule("", kind.resource.group, kind.resource.plural, "", WATCH)
    for wanted in needs.objects:
        names = (wanted.name,) if wanted.name else ()
        yield RoleRule(wanted.namespace, wanted.group, wanted.resource, "", WATCH, names)
    everywhere = {count.kind for count in needs.counts if not count.namespace}
    for count in needs.counts:
        group, resource = _COUNTED.get(count.kind, ("", count.kind))
        if not count.namespace or count.kind not in everywhere:
            yield RoleRule(count.namespace, group, resource, "", WATCH)


def _merge_rights(rights: Iterable[RoleRule]) -> tuple[RoleRule, ...]:
    """Return one rule for each resource and list of verbs, with all names, sorted.

    A rule without names is one for all objects, whichever of them other rules name.
    """
    names: dict[RoleRule, set[str] | None] = {}
    for right in rights:
        rule = replace(right, names=())
        known = names.get(rule, set())
        names[rule] = None if known is None or not right.names else known | set(right.names)
    return tuple(sorted(replace(rule, names=tuple(sorted(found or ()))) for rule, found in names.items()))
