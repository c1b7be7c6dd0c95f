"""Reads `expander` and `priorities`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from adapter.documents.tree import SequenceNode, shortened
from adapter.objects.regex import BadPatternError, compile_pattern
from recommender.cluster_size.expanders.chain import expander_problems

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.documents.tree import MappingNode, Node
    from recommender.reading.fields import ValueReader

PRIORITY: Final = "priority"
PEERS_CONFIG_MAP: Final = ("kube-system", "cluster-autoscaler-priority-expander")
_CONFIG_MAP: Final = "configMap"
_CONFIG_MAP_KEYS: Final = ("namespace", "name")
_DEFAULT: Final = ("least-waste",)
_NUMBER: Final = re.compile(r"-?[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class PrioritySource:
    """Where the priorities of groups come from: the file, a ConfigMap, or neither."""

    by_number: Mapping[int, tuple[str, ...]] | None = None
    config_map: tuple[str, str] | None = None


def read_expanders(node: Node | None, fields: ValueReader) -> tuple[str, ...]:
    """Return the chain of expanders; the default if the key is absent."""
    if node is None:
        return _DEFAULT
    items = fields.sequence(node) if isinstance(node, SequenceNode) else (node,)
    if not items:
        fields.problem(node, "`expander` is empty", "write least-waste, or remove the key")
    names: list[str] = []
    for item in items:
        name = fields.text(item)
        if name is None:
            continue
        if "," in name:
            fix = f"write a list: [{', '.join(part.strip() for part in name.split(','))}]"
            fields.problem(item, f"{shortened(name)!r} names several expanders in one text", shortened(fix, 160))
            return _DEFAULT
        known = len(expander_problems(names)) if names else 0
        names.append(name)
        for problem in expander_problems(names)[known:]:
            message, _, fix = problem.rpartition(": ")
            fields.problem(item, shortened(message, 160), fix)
    return tuple(names) or _DEFAULT


def read_priorities(mapping: MappingNode, expanders: tuple[str, ...], fields: ValueReader) -> PrioritySource:
    """Return the priorities; those of the peer's ConfigMap where the expander `priority` has no others."""
    node = mapping.get("priorities")
    if node is None:
        return PrioritySource(config_map=PEERS_CONFIG_MAP) if PRIORITY in expanders else PrioritySource()
    if PRIORITY not in expanders:
        fix = "add priority to `expander`, or remove it"
        fields.problem(node, "`priorities` has no effect without the expander priority", fix)
    found = fields.mapping(node)
    if found is None:
        return PrioritySource()
    if found.entry(_CONFIG_MAP) is not None:
        return PrioritySource(config_map=_config_map(found, fields))
    return PrioritySource(by_number=_by_number(found, fields))


def _config_map(mapping: MappingNode, fields: ValueReader) -> tuple[str, str]:
    fields.mapping(mapping, (_CONFIG_MAP,))
    place = fields.mapping(mapping.get(_CONFIG_MAP), _CONFIG_MAP_KEYS)
    if place is None:
        return PEERS_CONFIG_MAP
    namespace, name = fields.namespace(place.get("namespace")), fields.object_name(place.get("name"))
    return namespace or PEERS_CONFIG_MAP[0], name or PEERS_CONFIG_MAP[1]


def _by_number(mapping: MappingNode, fields: ValueReader) -> dict[int, tuple[str, ...]]:
    found: dict[int, tuple[str, ...]] = {}
    if not mapping.entries:
        fields.problem(mapping, "`priorities` is empty", "write a number with patterns, such as 10: [spot-.*]")
    for entry in mapping.entries:
        if _NUMBER.fullmatch(entry.name) is None:
            fix = "write whole numbers as keys, such as 10: [spot-.*], or configMap: {namespace, name}"
            fields.problem(entry.key, f"{shortened(entry.name)!r} is not a priority", fix)
            continue
        found[int(entry.name)] = tuple(_patterns(entry.value, fields))
    return found


def _patterns(node: Node, fields: ValueReader) -> list[str]:
    patterns = []
    for item in fields.sequence(node):
        text = fields.text(item)
        if text is None:
            continue
        try:
            compile_pattern(text)
        except BadPatternError as error:
            message = f"{shortened(text)!r} is not a regular expression: {error}"
            fields.problem(item, shortened(message, 160), "correct it; it is searched in the names of groups")
        patterns.append(text)
    return patterns
