"""Reads `drivers:` of the configuration file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.cluster.state import CountQuery
from recommender.proportional.formulas import number_text
from recommender.proportional.modes.rungs import ambiguous, negative
from recommender.proportional.parameters import Driver, DriverQuery
from recommender.proportional.reading.mode import read_rungs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapter.cluster.state import CountedKind
    from adapter.documents.tree import MappingNode, Node
    from recommender.proportional.parameters import Rungs
    from recommender.reading.fields import ValueReader

_COUNTED: Final[tuple[CountedKind, ...]] = ("services", "pods", "namespaces", "endpoints")
_SHAPES: Final = ("perReplica", "ladder")


def read_drivers(node: Node | None, fields: ValueReader) -> tuple[Driver, ...]:
    """Return the drivers; incomplete if there are problems."""
    mapping = fields.mapping(node, (*_COUNTED, "query"))
    if mapping is not None and not mapping.entries:
        fields.problem(mapping, "`drivers` is empty", "write at least one, such as services: {perReplica: 500}")
    return tuple(_drivers(mapping, fields)) if mapping else ()


def _drivers(mapping: MappingNode, fields: ValueReader) -> Iterator[Driver]:
    for kind in _COUNTED:
        if mapping.entry(kind) is not None:
            yield from _counted(mapping, kind, fields)
    if mapping.entry("query") is not None:
        yield from _query(mapping, fields)


def _counted(drivers: MappingNode, kind: CountedKind, fields: ValueReader) -> Iterator[Driver]:
    places = ("selector",) if kind == "namespaces" else ("selector", "namespace")
    mapping = _driver(drivers, kind, (*places, *_SHAPES), fields)
    if mapping is None:
        return
    selector = fields.selector(mapping.get("selector")) or ""
    namespace = fields.namespace(mapping.get("namespace")) or ""
    per_replica, ladder = _shape(mapping, kind, fields)
    yield Driver(kind, CountQuery(kind, namespace, selector), per_replica, ladder)


def _query(drivers: MappingNode, fields: ValueReader) -> Iterator[Driver]:
    mapping = _driver(drivers, "query", ("expr", *_SHAPES), fields)
    if mapping is None:
        return
    expr = fields.text(mapping.get("expr"))
    if mapping.get("expr") is None or (expr is not None and not expr.strip()):
        fields.problem(mapping, "`query` has no `expr`", "write the PromQL of a query with one value")
    per_replica, ladder = _shape(mapping, "query", fields)
    yield Driver("query", DriverQuery(expr or ""), per_replica, ladder)


def _driver(drivers: MappingNode, name: str, known: tuple[str, ...], fields: ValueReader) -> MappingNode | None:
    entry = drivers.entry(name)
    if entry is not None and entry.value.is_null:
        fields.problem(entry.key, f"`{name}` is empty", "write perReplica or ladder under it")
        return None
    return fields.mapping(drivers.get(name), known)


def _shape(mapping: MappingNode, name: str, fields: ValueReader) -> tuple[float | None, Rungs]:
    """Return the ratio or the rungs of a driver."""
    ratio_node, ladder_node = mapping.get("perReplica"), mapping.get("ladder")
    if (ratio_node is None) == (ladder_node is None):
        has = "neither `perReplica` nor `ladder`" if ratio_node is None else "both `perReplica` and `ladder`"
        fields.problem(mapping, f"`{name}` has {has}", "write exactly one of them")
        return None, ()
    ratio = fields.ratio(ratio_node)
    if ratio_node is not None and ratio is not None and ratio <= 0:
        fields.problem(ratio_node, f"`perReplica` is {number_text(ratio)}", "write a number larger than 0")
    return ratio, _ladder(ladder_node, fields) if ladder_node is not None else ()


def _ladder(node: Node, fields: ValueReader) -> Rungs:
    before = len(fields.problems)
    rungs = read_rungs(node, fields)
    for flaw in (*negative("ladder", rungs), *ambiguous("ladder", rungs)):
        fields.problem(node, flaw.message, flaw.fix)
    if not rungs and len(fields.problems) == before:
        fields.problem(node, "`ladder` has no rung", "write at least one, such as [[1, 1]]")
    return tuple(sorted(rungs))
