"""Reads `resources:` of the configuration file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from recommender.proportional.formulas import number_text
from recommender.proportional.parameters import ResourceStep

if TYPE_CHECKING:
    from adapter.documents.tree import MappingNode, Node
    from recommender.reading.fields import ValueReader

_SECTIONS: Final = ("requests", "limits")
_PER_STEP: Final = ("coresPerStep", "nodesPerStep")
_KEYS: Final = ("base", "max", "step", *_PER_STEP)


def read_sizes(node: Node | None, fields: ValueReader) -> dict[str, dict[str, dict[str, ResourceStep]]]:
    """Return by container, section and resource how the size grows; incomplete if there are problems."""
    containers = fields.mapping(node)
    if containers is not None and not containers.entries:
        fields.problem(containers, "`resources` is empty", "write the name of a container and its requests or limits")
    return {entry.name: _sections(entry.value, fields) for entry in containers.entries} if containers else {}


def _sections(node: Node, fields: ValueReader) -> dict[str, dict[str, ResourceStep]]:
    mapping = fields.mapping(node, _SECTIONS)
    sections = {name: mapping.get(name) for name in _SECTIONS} if mapping else {}
    if mapping and not any(sections.values()):
        fields.problem(mapping, "neither `requests` nor `limits` is here", "write at least one")
    return {name: _resources(section, fields) for name, section in sections.items() if section is not None}


def _resources(node: Node, fields: ValueReader) -> dict[str, ResourceStep]:
    mapping = fields.mapping(node)
    read = {entry.name: _step(entry.value, fields) for entry in mapping.entries} if mapping else {}
    return {name: step for name, step in read.items() if step is not None}


def _step(node: Node, fields: ValueReader) -> ResourceStep | None:
    mapping = fields.mapping(node, _KEYS)
    if mapping is None:
        return None
    amounts = {key: fields.quantity(mapping.get(key)) for key in ("base", "max", "step")}
    base, highest, step = amounts["base"], amounts["max"], amounts["step"]
    if mapping.get("base") is None:
        fields.problem(mapping, "`base` is missing", "write the size of an empty cluster, such as base: 10m")
    if base is not None and highest is not None and highest < base:
        fields.problem(mapping, f"`max` {highest} is less than `base` {base}", "write at least `base`, or no `max`")
    per_step = {key: _per_step(mapping, key, fields) for key in _PER_STEP}
    if (mapping.get("step") is None) == any(mapping.get(key) is not None for key in _PER_STEP):
        fix = "write `step` together with `coresPerStep` or `nodesPerStep`"
        fields.problem(mapping, "the size never grows, since only a part of how it grows is here", fix)
    return ResourceStep(
        base=str(base),
        max=None if highest is None else str(highest),
        step=None if step is None else str(step),
        cores_per_step=per_step["coresPerStep"],
        nodes_per_step=per_step["nodesPerStep"],
    )


def _per_step(mapping: MappingNode, key: str, fields: ValueReader) -> float:
    node = mapping.get(key)
    count = fields.ratio(node)
    if node is not None and count is not None and count <= 0:
        fields.problem(node, f"`{key}` is {number_text(count)}", "write a number larger than 0, or leave it out")
    return count or 0.0
