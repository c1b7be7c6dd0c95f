"""Reads `nodeGroups`: a list of static groups, or a mapping of the sources that groups come from."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from adapter.documents.tree import MappingNode, ScalarNode, SequenceNode, shortened
from adapter.objects.names import label_key_problem
from adapter.objects.selectors import EVERYTHING
from recommender.cluster_size.model.settings import (
    ClusterApiGroups,
    LabelGroups,
    NodeGroupSources,
    PluginGroups,
    StaticGroup,
)
from recommender.cluster_size.node_groups.templates import labels_of_selector
from recommender.cluster_size.reading.options import read_options
from recommender.cluster_size.reading.templates import (
    read_capacity,
    read_labels,
    read_selector,
    read_taints,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.documents.tree import Node
    from recommender.reading.fields import ValueReader

_SOURCES: Final = ("static", "clusterAPI", "byLabel", "plugin")
_STATIC: Final = ("name", "min", "max", "price", "template", "selector", "options")
_CLUSTER_API: Final = ("namespace", "clusterName", "prices", "markMachines")
_BY_LABEL: Final = ("key", "min", "max", "prices")
_PLUGIN: Final = ("name", "options")
LARGEST_GROUP: Final = 1_000_000
_LARGEST_PRICE: Final = 1e9
_LONGEST_NAME: Final = 253


def read_node_groups(node: Node | None, fields: ValueReader) -> NodeGroupSources:
    """Return where groups come from; incomplete if there are problems."""
    if isinstance(node, SequenceNode):
        return NodeGroupSources(static=_static_groups(node, fields))
    mapping = fields.mapping(node, _SOURCES)
    if mapping is None:
        return NodeGroupSources()
    if not mapping.entries:
        fields.problem(mapping, "`nodeGroups` is empty", f"write one of {', '.join(_SOURCES)}")
    return NodeGroupSources(
        static=_static_groups(mapping.get("static"), fields),
        cluster_api=_cluster_api(mapping, fields),
        by_label=_by_label(mapping.get("byLabel"), fields),
        plugin=_plugin(mapping.get("plugin"), fields),
    )


def _static_groups(node: Node | None, fields: ValueReader) -> tuple[StaticGroup, ...]:
    groups: dict[str, StaticGroup] = {}
    items = fields.sequence(node)
    if node is not None and isinstance(node, SequenceNode) and not items:
        fields.problem(node, "there are no node groups", "write one, such as {name: a, max: 20, selector: {pool: a}}")
    for item in items:
        group = _static_group(item, fields)
        if group is None:
            continue
        if group.name in groups:
            message = f"the node group {shortened(group.name)!r} is already in line {groups[group.name].line}"
            fields.problem(item, message, "give each group a name of its own")
        groups.setdefault(group.name, group)
    return tuple(groups.values())


def _static_group(node: Node, fields: ValueReader) -> StaticGroup | None:
    mapping = fields.mapping(node, _STATIC)
    if mapping is None:
        return None
    fields.require(mapping, "nodeGroups.", {"name": "a", "max": "20", "selector": "{pool: a}"}, _STATIC)
    name = fields.text(mapping.get("name")) or ""
    if (named := mapping.get("name")) is not None and not 0 < len(name.strip()) <= _LONGEST_NAME:
        fields.problem(named, "the name of the group is empty or too long", "write up to 253 characters")
    selector = read_selector(mapping.get("selector"), fields) or EVERYTHING
    min_size, max_size = _sizes(mapping, fields, default_max=None)
    template = fields.mapping(mapping.get("template"))
    labels = labels_of_selector(selector)
    if template is not None:
        labels |= read_labels(template.get("labels"), fields)
        if not selector.matches(labels):
            message = "`selector` does not select a node with the labels of `template`"
            fields.problem(template.get("labels") or template, message, "write labels that the selector asks for")
    return StaticGroup(
        name=name,
        min_size=min_size,
        max_size=max_size,
        selector=selector,
        price=_price(mapping.get("price"), fields),
        capacity=None if template is None else read_capacity(template, fields),
        labels=labels,
        taints=() if template is None else read_taints(template.get("taints"), fields),
        options=read_options(mapping.get("options"), fields),
        line=node.line,
    )


def _sizes(mapping: MappingNode, fields: ValueReader, default_max: int | None) -> tuple[int, int]:
    least = fields.count_within(mapping, "min", 0, LARGEST_GROUP) or 0
    most = fields.count_within(mapping, "max", 0, LARGEST_GROUP)
    node = mapping.get("max")
    if node is not None and most is not None and most < least:
        fields.problem(node, f"`max` is {most}, less than `min`, which is {least}", "raise it")
    return least, (default_max or 0) if most is None else most


def _cluster_api(sources: MappingNode, fields: ValueReader) -> ClusterApiGroups | None:
    # `clusterAPI:` alone stands for all objects of all namespaces.
    entry = sources.entry("clusterAPI")
    if entry is None:
        return None
    if entry.value.is_null:
        return ClusterApiGroups()
    mapping = fields.mapping(entry.value, _CLUSTER_API)
    if mapping is None:
        return None
    return ClusterApiGroups(
        namespace=fields.namespace(mapping.get("namespace")) or "",
        cluster_name=fields.object_name(mapping.get("clusterName")) or "",
        prices=_prices(mapping.get("prices"), fields),
        mark_machines=fields.flag(mapping.get("markMachines")) or False,
    )


def _by_label(node: Node | None, fields: ValueReader) -> LabelGroups | None:
    mapping = fields.mapping(node, _BY_LABEL)
    if mapping is None:
        return None
    fields.require(mapping, "byLabel.", {"key": "cloud.google.com/gke-nodepool"}, _BY_LABEL)
    key = fields.text(mapping.get("key")) or ""
    named = mapping.get("key")
    if named is not None and (wrong := label_key_problem(key)) is not None:
        fields.problem(named, f"{shortened(key)!r} is no key of a label: {wrong}", "write the key alone")
    least, most = _sizes(mapping, fields, default_max=LabelGroups(key).max_size)
    return LabelGroups(key, least, most, _prices(mapping.get("prices"), fields))


def _plugin(node: Node | None, fields: ValueReader) -> PluginGroups | None:
    mapping = fields.mapping(node, _PLUGIN)
    if mapping is None:
        return None
    fields.require(mapping, "plugin.", {"name": "NAME"}, _PLUGIN)
    options = fields.mapping(mapping.get("options"))
    return PluginGroups(
        fields.text(mapping.get("name")) or "",
        {} if options is None else {entry.name: _plain(entry.value) for entry in options.entries},
    )


def _plain(node: Node) -> object:
    """Return a value as YAML's mappings, lists and texts: which other types a plugin takes is its own business."""
    if isinstance(node, MappingNode):
        return {entry.name: _plain(entry.value) for entry in node.entries}
    if isinstance(node, SequenceNode):
        return [_plain(item) for item in node.items]
    return node.value if isinstance(node, ScalarNode) and not node.null else None


def _prices(node: Node | None, fields: ValueReader) -> Mapping[str, float]:
    mapping = fields.mapping(node)
    found = {entry.name: _price(entry.value, fields) for entry in mapping.entries} if mapping else {}
    return {name: price for name, price in found.items() if price is not None}


def _price(node: Node | None, fields: ValueReader) -> float | None:
    price = fields.ratio(node)
    if node is not None and price is not None and not (math.isfinite(price) and 0 <= price <= _LARGEST_PRICE):
        fields.problem(node, f"the price is {price:g}", "write what a node costs in an hour, 0 or more")
        return None
    return price
