"""Reads `proportional:` of a recommendation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from recommender.proportional.modes.registry import MODES
from recommender.proportional.parameters import NodeFilter, ParametersConfigMap, ProportionalSettings
from recommender.proportional.reading.drivers import read_drivers
from recommender.proportional.reading.mode import json_of, read_mode
from recommender.proportional.reading.sizes import read_sizes
from recommender.reading.fields import ValueReader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapter.documents.tree import DocumentProblem, MappingNode, Node
    from recommender.proportional.parameters import Mode

_NODE_KEYS: Final = ("nodeSelector", "ignoreTaints", "ignoreVirtualNodes", "minNodeAge")
_REPLICA_KEYS: Final = ("hysteresis", "quietPeriod")
_LONGEST_QUIET_SECONDS: Final = 3600.0
"""For so long the memory keeps the times of changes."""
_SUBJECTS: Final = (*MODES, "configMap", "drivers", "resources")
_KEYS: Final = (*_SUBJECTS, *_NODE_KEYS, "includeUnschedulableNodes", *_REPLICA_KEYS)


def read_proportional(node: Node, problems: list[DocumentProblem]) -> ProportionalSettings | None:
    """Return the settings; None if something is wrong: all of it is added to the problems, in the order of the file.

    Problems that the YAML loader found inside the node (`problems_within`) are the caller's to report.
    """
    before = len(problems)
    fields = ValueReader(problems)
    mapping = fields.mapping(node, _KEYS)
    if mapping is None:
        return None
    _check_combination(mapping, fields)
    settings = ProportionalSettings(
        mode=_mode(mapping, fields),
        config_map=_config_map(mapping.get("configMap"), fields),
        drivers=read_drivers(mapping.get("drivers"), fields),
        node_filter=_node_filter(mapping, fields),
        hysteresis_ratio=fields.percentage(mapping.get("hysteresis")) or 0.0,
        quiet_period_seconds=fields.seconds(mapping.get("quietPeriod"), _LONGEST_QUIET_SECONDS) or 0.0,
        resources=read_sizes(mapping.get("resources"), fields),
    )
    problems[before:] = sorted(problems[before:], key=lambda problem: (problem.line, problem.column))
    return settings if len(problems) == before else None


def _check_combination(mapping: MappingNode, fields: ValueReader) -> None:
    """Add a problem for keys that exclude each other, and for keys that would do nothing."""
    given = [key for key in (*MODES, "configMap") if mapping.get(key) is not None]
    for key in given[1:]:
        fields.problem(mapping.get(key) or mapping, f"`{key}` and `{given[0]}` exclude each other", "keep one of them")
    sized = bool(given) or mapping.get("drivers") is not None
    if not sized and mapping.get("resources") is None:
        fix = f"write one of {', '.join(_SUBJECTS)}"
        # A misspelt key is reported with the key that is probably meant.
        if not mapping.unknown(_KEYS):
            fields.problem(mapping, "nothing says what to calculate", fix)
        return
    if not sized:
        _refuse_idle(mapping, _REPLICA_KEYS, "resources alone have no replicas", fields)
    if not given and mapping.get("resources") is None:
        _refuse_idle(mapping, _NODE_KEYS, "nodes do not count here", fields)
    if not any(key in MODES for key in given):
        reason = "the ConfigMap decides" if given else "there is no mode"
        _refuse_idle(mapping, ("includeUnschedulableNodes",), reason, fields)


def _refuse_idle(mapping: MappingNode, keys: Sequence[str], reason: str, fields: ValueReader) -> None:
    for key in keys:
        if (node := mapping.get(key)) is not None:
            fields.problem(node, f"`{key}` has no effect: {reason}", "remove it")


def _mode(mapping: MappingNode, fields: ValueReader) -> Mode | None:
    everything = fields.flag(mapping.get("includeUnschedulableNodes")) or False
    modes = [
        read_mode(node, definition, fields, include_unschedulable_nodes=everything)
        for name, definition in MODES.items()
        if (node := mapping.get(name)) is not None
    ]
    return modes[0] if modes else None


def _config_map(node: Node | None, fields: ValueReader) -> ParametersConfigMap | None:
    mapping = fields.mapping(node, ("namespace", "name", "defaultParams"))
    if mapping is None:
        return None
    namespace = fields.namespace(mapping.get("namespace"))
    name = fields.object_name(mapping.get("name"))
    for key in ("namespace", "name"):
        if mapping.get(key) is None:
            fields.problem(mapping, f"`{key}` of the ConfigMap is missing", f"write {key}: …")
    return ParametersConfigMap(namespace or "", name or "", _default_params(mapping.get("defaultParams"), fields))


def _default_params(node: Node | None, fields: ValueReader) -> dict[str, str] | None:
    """Return the data of the ConfigMap that is created; its parameters have to be as good as those of the file."""
    modes = fields.mapping(node, tuple(MODES))
    if modes is None:
        return None
    if len(modes.entries) != 1:
        fields.problem(modes, "`defaultParams` does not have exactly one mode", f"write one of {', '.join(MODES)}")
    texts: dict[str, str] = {}
    for entry in modes.entries:
        definition = MODES.get(entry.name)
        if definition is not None and read_mode(entry.value, definition, fields) is not None:
            texts[entry.name] = json_of(entry.value.mapping(), definition, fields)
    return texts


def _node_filter(mapping: MappingNode, fields: ValueReader) -> NodeFilter:
    taints = (fields.taint_key(item) for item in fields.sequence(mapping.get("ignoreTaints")))
    return NodeFilter(
        selector=fields.selector(mapping.get("nodeSelector")) or "",
        ignore_taints=frozenset(taint for taint in taints if taint),
        ignore_virtual_nodes=fields.flag(mapping.get("ignoreVirtualNodes")) or False,
        min_node_age_seconds=fields.seconds(mapping.get("minNodeAge")) or 0.0,
    )
