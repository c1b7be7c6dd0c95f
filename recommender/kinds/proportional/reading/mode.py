"""The shapes of the parameters of modes, and of `drivers:`."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from adapter.foundation.cluster.values.state import CountedKind, CountQuery
from adapter.foundation.documents.scalars import BOOLEAN, NAMESPACE, SELECTOR, Bounds, number, text, whole
from adapter.foundation.documents.sections import Given, Key, Section
from adapter.foundation.documents.shapes import ListOf, ValueShape, WrongValueError
from recommender.kinds.proportional.modes.mode_definition import ModeDefinition, ParameterKind, Values
from recommender.kinds.proportional.modes.registry import MODES
from recommender.kinds.proportional.modes.rungs import ambiguous, negative
from recommender.kinds.proportional.parameters import Driver, DriverQuery, Rungs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from adapter.foundation.documents.tree import DocumentProblem

_COUNTED: Final[tuple[CountedKind, ...]] = ("services", "pods", "namespaces", "endpoints")
_NO_EXPRESSION: Final = ("`query` has no `expr`", "write the PromQL of a query with one value")
_EXPRESSION: Final = Key("expr", text(*_NO_EXPRESSION), "PromQL of a query with one value.")


def _rung(numbers: list[int]) -> tuple[int, int]:
    if len(numbers) != 2:
        raise WrongValueError(f"a rung needs 2 values and has {len(numbers)}", "write [threshold, replicas]")
    return numbers[0], numbers[1]


RUNGS: Final = ListOf(ListOf(whole(), _rung))
"""Rungs in the order of the file; each has exactly a threshold and replicas."""
_SHAPES: Final[Mapping[ParameterKind, ValueShape]] = {
    ParameterKind.RATIO: number(),
    ParameterKind.COUNT: whole(),
    ParameterKind.FLAG: BOOLEAN,
    ParameterKind.RUNGS: RUNGS,
}


def json_of(values: Values) -> str:
    """Return parameters as the text of a ConfigMap."""
    ratios = {key: int(value) if value.is_integer() else value for key, value in values.ratios.items()}
    return json.dumps({**ratios, **values.counts, **values.flags, **values.rungs}, separators=(",", ":"))


def _mode(definition: ModeDefinition[Any]) -> Section[Values]:
    def check(given: Given) -> Iterator[DocumentProblem]:
        values = _values(definition.keys, **given.values)
        for flaw in (*definition.flaws(values), *definition.strict_flaws(values)):
            # A seemingly missing value may be under a misspelt key.
            if flaw.key is not None or given.is_readable:
                yield given.problem(flaw.key or "", flaw.message, flaw.fix)

    keys = tuple(
        Key(key, _SHAPES[kind], f"As in {definition.name}.", into=key) for key, kind in definition.keys.items()
    )
    return Section(definition.name, partial(_values, definition.keys), keys, check)


def _values(keys: Mapping[str, ParameterKind], **values: Any) -> Values:  # noqa: ANN401 - numbers, flags and rungs
    def of(kind: ParameterKind) -> dict[str, Any]:
        return {key: values[key] for key in keys if keys[key] is kind and key in values}

    return Values(of(ParameterKind.RATIO), of(ParameterKind.COUNT), of(ParameterKind.FLAG), of(ParameterKind.RUNGS))


MODE_SECTIONS: Final = {name: _mode(definition) for name, definition in MODES.items()}
"""Sections by the key that names the mode. The values are read as they are written."""


def _ladder(rungs: list[tuple[int, int]]) -> Rungs:
    for flaw in (*negative("ladder", tuple(rungs)), *ambiguous("ladder", tuple(rungs))):
        raise WrongValueError(flaw.message, flaw.fix)
    return tuple(sorted(rungs))


def _either(name: str, given: Given) -> Iterator[DocumentProblem]:
    if given.has("perReplica") == given.has("ladder"):
        has = "both `perReplica` and `ladder`" if given.has("ladder") else "neither `perReplica` nor `ladder`"
        yield given.node.problem(f"`{name}` has {has}", "write exactly one of them")
    if name == "query" and not given.has("expr"):
        yield given.node.problem(*_NO_EXPRESSION)


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
