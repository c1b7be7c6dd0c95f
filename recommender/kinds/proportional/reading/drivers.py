"""The shape of `drivers:`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.state import CountedKind, CountQuery
from adapter.foundation.documents.scalars import NAMESPACE, QUERY, SELECTOR, Bounds, number
from adapter.foundation.documents.sections import Given, Key, Section
from adapter.foundation.documents.shapes import ListOf, WrongValueError
from recommender.kinds.proportional.modes.rungs import ambiguous, negative
from recommender.kinds.proportional.parameters import Driver, DriverQuery, Rungs
from recommender.kinds.proportional.reading.mode import RUNGS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapter.foundation.documents.tree import DocumentProblem

_COUNTED: Final[tuple[CountedKind, ...]] = ("services", "pods", "namespaces", "endpoints")


def _ladder(rungs: list[tuple[int, int]]) -> Rungs:
    for flaw in (*negative("ladder", tuple(rungs)), *ambiguous("ladder", tuple(rungs))):
        raise WrongValueError(flaw.message, flaw.fix)
    return tuple(sorted(rungs))


def _either(name: str, given: Given) -> Iterator[DocumentProblem]:
    if given.has("perReplica") == given.has("ladder"):
        has = "both `perReplica` and `ladder`" if given.has("ladder") else "neither `perReplica` nor `ladder`"
        yield given.node.problem(f"`{name}` has {has}", "write exactly one of them")
    if name == "query" and not given.has("expr"):
        yield given.node.problem("`query` has no `expr`", "write the PromQL of a query with one value")


_AMOUNTS: Final = (
    Key("perReplica", number(Bounds(0, above=True)), "How many of them one replica serves."),
    Key(
        "ladder",
        ListOf(RUNGS.item, _ladder, ("`ladder` has no rung", "write at least one, such as [[1, 1]]")),
        "Rungs of [threshold, replicas].",
    ),
)


def _counted_drivers(
    kind: CountedKind, selector: str = "", namespace: str = "", per_replica: float | None = None, ladder: Rungs = ()
) -> Driver:
    return Driver(kind, CountQuery(kind, namespace, selector), per_replica, ladder)


def _query(expr: str, per_replica: float | None = None, ladder: Rungs = ()) -> Driver:
    return Driver("query", DriverQuery(expr), per_replica, ladder)


def _driver(kind: CountedKind) -> Key:
    selector = Key("selector", SELECTOR, "Labels of those that count, as for kubectl.")
    namespace = Key("namespace", NAMESPACE, "Where they count; everywhere without the key.")
    keys = (selector, *(() if kind == "namespaces" else (namespace,)), *_AMOUNTS)
    section = Section(f"drivers.{kind}", partial(_counted_drivers, kind), keys, partial(_either, kind))
    return Key(kind, section, f"A number of replicas by the number of {kind}.")


def _check(given: Given) -> Iterator[DocumentProblem]:
    if not given.node.entries:
        fix = "write at least one, such as services: {perReplica: 500}"
        yield given.node.problem("`drivers` is empty", fix)
    for entry in given.node.entries:
        if entry.value.is_null:
            yield entry.key.problem(f"`{entry.name}` is empty", "write perReplica or ladder under it")


def _drivers(**drivers: Driver) -> tuple[Driver, ...]:
    return tuple(drivers[name] for name in (*_COUNTED, "query") if name in drivers)


_EXPRESSION: Final = Key("expr", QUERY, "PromQL of a query with one value.")
DRIVERS: Final = Section(
    "drivers",
    _drivers,
    (
        *map(_driver, _COUNTED),
        Key(
            "query",
            Section("drivers.query", _query, (_EXPRESSION, *_AMOUNTS), partial(_either, "query")),
            "A number of replicas by the value of a query.",
        ),
    ),
    _check,
)
