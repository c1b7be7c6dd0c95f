"""Reads `limits` and `maxUnready`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.documents.tree import MappingNode
from recommender.cluster_size.model.settings import CORES, MEMORY, SizeLimits, Unready

if TYPE_CHECKING:
    from adapter.documents.tree import Node
    from adapter.objects.quantities import Quantity
    from recommender.reading.fields import ValueReader

_LIMITS: Final = ("nodes", "cores", "memory", "gpus")
_RANGE: Final = ("min", "max")
_UNREADY: Final = ("ratio", "count")
_LARGEST_NODES: Final = 10_000_000
_WHOLE_PERCENT: Final = 101
_NANO: Final = 10**9


def read_limits(node: Node | None, fields: ValueReader) -> SizeLimits:
    """Return the limits over all nodes; none if the key is absent."""
    mapping = fields.mapping(node, _LIMITS)
    if mapping is None:
        return SizeLimits()
    min_cores, max_cores = _range(mapping, "cores", fields)
    min_memory, max_memory = _range(mapping, "memory", fields)
    return SizeLimits(
        max_nodes=fields.count_within(mapping, "nodes", 1, _LARGEST_NODES),
        min_cores=min_cores or 0,
        max_cores=max_cores,
        min_memory_bytes=min_memory or 0,
        max_memory_bytes=max_memory,
        gpus=_gpus(mapping.get("gpus"), fields),
    )


def read_unready(node: Node | None, fields: ValueReader) -> Unready:
    """Return from when on the cluster counts as unhealthy; the default if the key is absent."""
    default = Unready()
    mapping = fields.mapping(node, _UNREADY)
    if mapping is None:
        return default
    ratio = fields.percentage(mapping.get("ratio"), below=_WHOLE_PERCENT)
    count = fields.count_within(mapping, "count", 0, _LARGEST_NODES)
    return Unready(default.ratio if ratio is None else ratio, default.count if count is None else count)


def _range(limits: MappingNode, key: str, fields: ValueReader) -> tuple[int | None, int | None]:
    """Return the smallest and the largest total: `cores: 320` is the largest one."""
    node = limits.get(key)
    if not isinstance(node, MappingNode):
        return None, _total(node, key, fields)
    mapping = fields.mapping(node, _RANGE)
    assert mapping is not None, "the node is a mapping"
    least, most = _total(mapping.get("min"), key, fields), _total(mapping.get("max"), key, fields)
    if least is not None and most is not None and most < least:
        fields.problem(node, f"`limits.{key}` has a `max` that is less than its `min`", "raise it")
    return least, most


def _total(node: Node | None, key: str, fields: ValueReader) -> int | None:
    amount: Quantity | None = fields.quantity(node)
    if node is None or amount is None:
        return None
    if amount.nanos % _NANO:
        fields.problem(node, f"`limits.{key}` is {amount}", "write whole cores" if key == "cores" else "write bytes")
        return None
    return amount.nanos // _NANO


def _gpus(node: Node | None, fields: ValueReader) -> dict[str, int]:
    mapping = fields.mapping(node)
    found: dict[str, int] = {}
    for entry in mapping.entries if mapping else ():
        if "/" not in entry.name or entry.name in {CORES, MEMORY}:
            fix = "write the name of an extended resource, such as nvidia.com/gpu: 16"
            fields.problem(entry.key, f"{entry.name!r} is not an extended resource", fix)
            continue
        count = fields.count_within(mapping, entry.name, 0, _LARGEST_NODES) if mapping else None
        if count is not None:
            found[entry.name] = count
    return found
