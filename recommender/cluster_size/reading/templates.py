"""Reads `template` and `selector` of a node group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.documents.tree import MappingNode, nearest, shortened
from adapter.objects.names import label_key_problem, label_value_problem
from adapter.objects.selectors import Operator, Requirement, Selector, SelectorError, parse_selector
from recommender.cluster_size.model.settings import CORES, MEMORY

if TYPE_CHECKING:
    from adapter.documents.tree import Node
    from recommender.reading.fields import ValueReader

DEFAULT_PODS: Final = 110
"""As many pods the kubelet runs unless it is configured otherwise."""
_PODS: Final = "pods"
_STORAGE: Final = "ephemeral-storage"
_KEYS: Final = (CORES, MEMORY, _PODS, _STORAGE, "labels", "taints")
_TAINT_KEYS: Final = ("key", "value", "effect")
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_NANO: Final = 10**9
_HUGE_PAGES: Final = "hugepages-"


def read_selector(node: Node | None, fields: ValueReader) -> Selector | None:
    """Return the selector of a mapping such as `{pool: a}`, or of a text as for kubectl; None if it is absent."""
    if node is None:
        return None
    if isinstance(node, MappingNode):
        labels = read_labels(node, fields)
        if not node.entries:
            fields.problem(node, "`selector` is empty, so it selects all nodes", "write the labels of the nodes")
        return Selector(tuple(Requirement(key, Operator.EQUALS, (value,)) for key, value in labels.items()))
    text = fields.text(node)
    if text is None:
        return None
    try:
        selector = parse_selector(text)
    except SelectorError as error:
        reason = str(error).partition(": write ")[0]
        fix = "write the labels, such as {pool: a}"
        fields.problem(node, shortened(f"the selector cannot be read: {reason}", 160), fix)
        return None
    if not selector.requirements:
        fields.problem(node, "`selector` is empty, so it selects all nodes", "write the labels of the nodes")
    return selector


def read_labels(node: Node | None, fields: ValueReader) -> dict[str, str]:
    """Return labels."""
    mapping = fields.mapping(node)
    labels: dict[str, str] = {}
    for entry in mapping.entries if mapping else ():
        value = fields.text(entry.value)
        if (wrong := label_key_problem(entry.name)) is not None:
            fields.problem(entry.key, f"{shortened(entry.name)!r} is no key of a label: {wrong}", "correct it")
        elif value is not None and (wrong := label_value_problem(value)) is not None:
            fields.problem(entry.value, f"{shortened(value)!r} is no value of a label: {wrong}", "correct it")
        elif value is not None:
            labels[entry.name] = value
    return labels


def read_capacity(mapping: MappingNode, fields: ValueReader) -> dict[str, int]:
    """Return the capacity of a template: CPU in milli, memory and storage in bytes, others as counts."""
    fields.require(mapping, "template.", {CORES: "4", MEMORY: "16Gi"}, _KEYS)
    capacity = {_PODS: DEFAULT_PODS}
    for entry in mapping.entries:
        if entry.name in {"labels", "taints"} or entry.value.is_null:
            continue
        if not _is_resource(entry.name):
            meant = None if "gpu" in entry.name.lower() else nearest(entry.name, _KEYS)
            fix = (
                f"did you mean {meant!r}?"
                if meant
                else "write an extended resource such as nvidia.com/gpu, or remove it"
            )
            fields.problem(entry.key, f"the key {shortened(entry.name)!r} is not a resource", fix)
            continue
        amount = fields.quantity(entry.value)
        if amount is None:
            continue
        if entry.name in {CORES, MEMORY, _PODS} and amount.nanos == 0:
            fields.problem(entry.value, f"`{entry.name}` is 0", "write what a node of this group has")
        capacity[entry.name] = amount.milli_value() if entry.name == CORES else amount.nanos // _NANO
    return capacity


def read_taints(node: Node | None, fields: ValueReader) -> tuple[tuple[str, str, str], ...]:
    """Return taints: each a mapping as in a Node, or `KEY=VALUE:EFFECT` as kubectl writes it."""
    taints = (_taint(item, fields) for item in fields.sequence(node))
    return tuple(taint for taint in taints if taint is not None)


def _taint(node: Node, fields: ValueReader) -> tuple[str, str, str] | None:
    if isinstance(node, MappingNode):
        mapping = fields.mapping(node, _TAINT_KEYS)
        assert mapping is not None, "the node is a mapping"
        fields.require(mapping, "taints.", {"key": "dedicated", "effect": "NoSchedule"}, _TAINT_KEYS)
        key, effect = fields.text(mapping.get("key")), fields.text(mapping.get("effect"))
        value = fields.text(mapping.get("value")) or ""
    else:
        text = fields.text(node)
        if text is None:
            return None
        rest, colon, effect = text.rpartition(":")
        key, _, value = (rest if colon else text).partition("=")
    if key is None or effect is None:
        return None
    if (wrong := label_key_problem(key)) is not None:
        fields.problem(node, f"{shortened(key)!r} is no key of a taint: {wrong}", "write KEY=VALUE:EFFECT")
        return None
    if effect not in _EFFECTS:
        meant = nearest(effect, _EFFECTS)
        fix = f"did you mean {meant}?" if meant else f"the effects are {', '.join(_EFFECTS)}"
        fields.problem(node, f"unknown effect {shortened(effect)!r} of a taint", fix)
        return None
    return key, value, effect


def _is_resource(name: str) -> bool:
    """Whether a node can have a resource of this name: extended ones have a prefix, such as `nvidia.com/gpu`."""
    if name in {CORES, MEMORY, _PODS, _STORAGE} or name.startswith(_HUGE_PAGES):
        return True
    return "/" in name and label_key_problem(name) is None
