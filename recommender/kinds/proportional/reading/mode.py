"""The shapes of the parameters of modes."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from adapter.foundation.documents.scalars import BOOLEAN, number, whole
from adapter.foundation.documents.sections import Given, Key, Section
from adapter.foundation.documents.shapes import ListOf, ValueShape, WrongValueError
from recommender.kinds.proportional.modes.mode_definition import ModeDefinition, ParameterKind, Values
from recommender.kinds.proportional.modes.registry import MODES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from adapter.foundation.documents.tree import DocumentProblem


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
