"""Reads and checks the groups of a plugin as values, so that the plugin is not called during a decision."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Final, TypeGuard

import msgspec

from adapter.foundation.cluster.facts.objects import FactError, node_of
from adapter.foundation.cluster.forms.objects import NodeForm
from adapter.foundation.objects.decoders import convert
from recommender.kinds.cluster_size.model.groups import GroupOptions, size_problem
from recommender.kinds.cluster_size.node_groups.protocol import (
    AnswersLater,
    InstanceState,
    LabelsGpuNodes,
    ProviderInstance,
    ProviderNode,
    WritableNodeGroup,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adapter.foundation.cluster.values.state import ClusterNode
    from recommender.kinds.cluster_size.node_groups.protocol import CloudProvider, ProviderNodeGroup


MOST_GROUPS: Final = 5000
"""The most groups of one provider: more could not be read before a decision, and each is simulated."""
_SWITCHES: Final = {"zero_or_max": (True, False), "ignore_daemon_sets_utilization": (True, False, None)}
"""The allowed values of each option that is not a number."""


class PluginError(ValueError):
    """A plugin states something impossible; the message says what."""


@dataclass(frozen=True, slots=True)
class PluginGroup:
    """A node group as its plugin describes it."""

    name: str
    min_size: int = 0
    max_size: int = 0
    target_size: int = 0
    instances: tuple[ProviderInstance, ...] = ()
    template: ClusterNode | None = None
    price: float | None = None
    options: GroupOptions = field(default_factory=GroupOptions)
    gpu_label: str = ""
    """The label of nodes with GPUs, in addition to the known ones; empty if there is none."""
    has_writes: bool = False
    """Whether the plugin's object for the group has the methods that change its size."""
    age_seconds: float = 0.0
    """How old the size and the list of machines were when the plugin stated them."""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class PluginReading:
    """All that a plugin states at one moment."""

    provider: str
    """`externalGRPC`, or `plugin/` and the name of a plugin."""
    groups: tuple[PluginGroup, ...] = ()
    group_of: Mapping[str, str] = field(default_factory=dict)
    """The group of each node."""
    problem: str = ""
    """Why the plugin has no groups now; empty if it has answered."""
    kept_because: str = ""
    """Why these are the groups of an earlier answer; empty if they are current."""
    kept: Mapping[str, str] = field(default_factory=dict)
    """The groups of a current answer that come from an earlier one, with the reason."""

    @property
    def shown(self) -> str:
        """How messages name the provider: `the plugin example`, or `externalGRPC`."""
        kind, _, name = self.provider.partition("/")
        return f"the plugin {name}" if name else kind


def read_provider(name: str, provider: CloudProvider, nodes: Iterable[ProviderNode]) -> PluginReading:
    """Refresh a provider and return what it states. Raises PluginError, and whatever the plugin raises.

    A group that raises, or with an impossible statement, has a problem; the others do not.
    """
    provider.refresh()
    groups: dict[str, PluginGroup] = {}
    listed = provider.node_groups()
    check_count(len(listed))
    for each in listed:
        group = group_id(each)
        groups[group] = PluginGroup(group, problem="two groups have this id") if group in groups else read_alone(each)
    group_of = {}
    for node in nodes:
        owner = provider.node_group_for_node(node)
        if owner is None:
            continue
        group = group_id(owner)
        if group not in groups:
            raise PluginError(
                f"node_group_for_node gives node {node.name} to {group!r}, which node_groups does not list"
            )
        group_of[node.name] = group
    return PluginReading(name, tuple(groups.values()), group_of)


def read_alone(group: ProviderNodeGroup) -> PluginGroup:
    """Return a group as its plugin describes it, or with the problem of its description."""
    try:
        return read_group(group)
    except PluginError as error:
        return PluginGroup(group_id(group), problem=str(error))
    except Exception as error:  # noqa: BLE001 - code of others may raise anything, and other groups are not to blame
        return PluginGroup(group_id(group), problem=f"{type(error).__name__}: {error}")


def check_count(groups: int) -> None:
    """Raise PluginError if a provider lists more groups than can be read."""
    if groups > MOST_GROUPS:
        raise PluginError(f"it lists {groups} node groups, and at most {MOST_GROUPS} can be read: let it list fewer")


def group_id(group: ProviderNodeGroup) -> str:
    """Return the name of a group. Raises PluginError."""
    name: object = group.id()
    if not isinstance(name, str) or not name:
        raise PluginError(f"id() returns {name!r}: it must be a non-empty string")
    return name


def read_group(group: ProviderNodeGroup) -> PluginGroup:
    """Return a group as its plugin describes it. Raises PluginError if something in it is impossible."""
    low, high, target = (_size(name, getattr(group, name)()) for name in ("min_size", "max_size", "target_size"))
    if high < low:
        raise PluginError(f"max_size() returns {high}, which is less than min_size(), {low}")
    if problem := size_problem(target, low):
        raise PluginError(problem)
    return PluginGroup(
        name=group_id(group),
        min_size=low,
        max_size=high,
        target_size=target,
        instances=_instances(group.nodes()),
        template=_template(group.template()),
        price=_price(group.price()),
        options=_options(group.options()),
        gpu_label=_gpu_label(group.gpu_label()) if isinstance(group, LabelsGpuNodes) else "",
        has_writes=isinstance(group, WritableNodeGroup),
        age_seconds=_age(group.age_seconds()) if isinstance(group, AnswersLater) else 0.0,
    )


def _size(method: str, value: object) -> int:
    if type(value) is not int or value < 0:
        raise PluginError(f"{method}() returns {value!r}: it must be a whole number of at least 0")
    return value


def _instances(value: object) -> tuple[ProviderInstance, ...]:
    if not isinstance(value, Sequence):
        raise PluginError(f"nodes() returns {type(value).__name__}: it must be a list of ProviderInstance")
    seen = set()
    for one in value:
        if not isinstance(one, ProviderInstance) or not isinstance(one.state, InstanceState):
            raise PluginError(f"nodes() lists {one!r}: each must be a ProviderInstance with a state")
        if not isinstance(one.provider_id, str):
            raise PluginError(f"nodes() lists the provider id {one.provider_id!r}: it must be a string")
        if not isinstance(one.error, str):
            raise PluginError(f"nodes() states the error {one.error!r} of {one.provider_id}: it must be a string")
        if one.provider_id in seen or not one.provider_id:
            raise PluginError(f"nodes() lists the provider id {one.provider_id!r} twice, or it is empty")
        seen.add(one.provider_id)
    return tuple(value)


def _template(value: object) -> ClusterNode | None:
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise PluginError(f"template() returns {type(value).__name__}: it must be a Node as JSON, or None")
    metadata = value.get("metadata")
    named = {**value, "metadata": {"name": "template", **(metadata if isinstance(metadata, Mapping) else {})}}
    try:
        node = node_of(convert(named, NodeForm))
    except (msgspec.ValidationError, FactError) as error:
        raise PluginError(f"template() does not return a Node: {error}") from error
    if not {"cpu", "memory"} <= {*node.allocatable, *node.capacity}:
        raise PluginError("template() returns a Node without cpu or memory in status.allocatable and status.capacity")
    return node


def _price(value: object) -> float | None:
    if value is None:
        return None
    if not _is_number(value, math.inf):
        raise PluginError(f"price() returns {value!r}: it must be a number of at least 0, or None")
    return float(value)


def _age(value: object) -> float:
    if not _is_number(value, math.inf):
        raise PluginError(f"age_seconds() returns {value!r}: it must be a number of at least 0")
    return float(value)


def _is_number(value: object, most: float) -> TypeGuard[int | float]:
    """Return whether a value is a finite number from 0 to `most`."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 <= value <= min(most, sys.float_info.max)


def _gpu_label(value: object) -> str:
    if not isinstance(value, str):
        raise PluginError(f"gpu_label() returns {value!r}: it must be a string; return an empty one without a label")
    return value


def _options(value: object) -> GroupOptions:
    if value is None:
        return GroupOptions()
    if not isinstance(value, GroupOptions):
        raise PluginError(f"options() returns {type(value).__name__}: it must be GroupOptions or None")
    for each in fields(value):
        _check_option(each.name, getattr(value, each.name))
    return value


def _check_option(name: str, value: object) -> None:
    """Raise PluginError for a share that is not from 0 to 1, and a time that is not a number of at least 0."""
    if name in _SWITCHES:
        if not any(value is each for each in _SWITCHES[name]):
            raise PluginError(f"options() returns {name}={value!r}: it must be True or False")
        return
    most, what = (1.0, "from 0 to 1") if name.endswith("_ratio") else (math.inf, "of at least 0")
    if value is not None and not _is_number(value, most):
        raise PluginError(f"options() returns {name}={value!r}: it must be a number {what}, or None")
