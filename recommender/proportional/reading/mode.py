"""Reads the parameters of a mode from the configuration file, strictly."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from adapter.documents.tree import ScalarNode
from recommender.proportional.modes.definition import ParameterKind, Values

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.documents.tree import MappingNode, Node
    from recommender.proportional.modes.definition import ModeDefinition
    from recommender.proportional.parameters import Mode, Rungs
    from recommender.reading.fields import ValueReader


def read_mode(
    node: Node, definition: ModeDefinition[Any], fields: ValueReader, *, include_unschedulable_nodes: bool = False
) -> Mode | None:
    """Return the parameters; None if something is wrong. The flag counts where the mode does not set it."""
    before = len(fields.problems)
    mapping = fields.mapping(node, definition.keys)
    if mapping is None:
        return None
    values = _values(mapping, definition.keys, fields, {"includeUnschedulableNodes": include_unschedulable_nodes})
    is_readable = len(fields.problems) == before
    for flaw in (*definition.flaws(values), *definition.strict_flaws(values)):
        # What seems to be missing may stand under a misspelt key.
        if flaw.key is not None or is_readable:
            place = mapping.get(flaw.key) if flaw.key else None
            fields.problem(place or mapping, flaw.message, flaw.fix)
    if len(fields.problems) != before:
        return None
    parameters: Mode = definition.parameters_of(values)
    return parameters


def json_of(mapping: MappingNode, definition: ModeDefinition[Any], fields: ValueReader) -> str:
    """Return parameters that have been read without a problem as the text of a ConfigMap."""
    texts = (
        f"{json.dumps(entry.name)}:{_json_value(entry.value, definition.keys[entry.name], fields)}"
        for entry in mapping.entries
        if not entry.value.is_null
    )
    return "{" + ",".join(texts) + "}"


def read_rungs(node: Node | None, fields: ValueReader) -> Rungs:
    """Return rungs in the order of the file; each has exactly a threshold and replicas."""
    rungs = [_rung(item, fields) for item in fields.sequence(node)]
    return tuple(rung for rung in rungs if rung is not None)


def _values(
    mapping: MappingNode, keys: Mapping[str, ParameterKind], fields: ValueReader, flags: dict[str, bool]
) -> Values:
    ratios: dict[str, float] = {}
    counts: dict[str, int] = {}
    rungs: dict[str, Rungs] = {}
    for key, kind in keys.items():
        node = mapping.get(key)
        if kind is ParameterKind.RUNGS:
            rungs[key] = read_rungs(node, fields)
        elif kind is ParameterKind.FLAG and (flag := fields.flag(node)) is not None:
            flags[key] = flag
        elif kind is ParameterKind.COUNT and (count := fields.count(node)) is not None:
            counts[key] = count
        elif kind is ParameterKind.RATIO and (ratio := fields.ratio(node)) is not None:
            ratios[key] = ratio
    return Values(ratios, counts, flags, rungs)


def _rung(node: Node, fields: ValueReader) -> tuple[int, int] | None:
    before = len(fields.problems)
    numbers = [fields.count(item) for item in fields.sequence(node)]
    if len(fields.problems) == before and len(numbers) != 2:
        fields.problem(node, f"a rung has {len(numbers)} values instead of 2", "write [threshold, replicas]")
        return None
    match numbers:
        case [int(threshold), int(replicas)]:
            return threshold, replicas
        case _:
            return None


def _json_value(node: Node, kind: ParameterKind, fields: ValueReader) -> str:
    if kind is ParameterKind.RUNGS:
        return json.dumps(read_rungs(node, fields), separators=(",", ":"))
    if kind is ParameterKind.FLAG:
        return json.dumps(fields.flag(node))
    assert isinstance(node, ScalarNode), "a number is a scalar"
    return node.value
