"""Reads parameters out of cluster-proportional-autoscaler's ConfigMap, with the laxness of Go's encoding/json.

Keys match in any case, unknown ones are ignored, the last of duplicate ones wins, and null leaves a value unchanged.
Values that cluster-proportional-autoscaler rejects are also rejected here, in the same order. A ConfigMap can have any
mode, even those that cluster-proportional-autoscaler lacks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NoReturn

from adapter.foundation.documents.scalars import parse_number, parse_whole
from adapter.foundation.documents.tree import nearest_word, shorten
from recommender.kinds.proportional.go_json import (
    GoJsonError,
    Json,
    JsonNumber,
    JsonObject,
    fold_key,
    parse_go_json,
    value_text,
)
from recommender.kinds.proportional.modes.mode_definition import ModeDefinition, ParameterKind, Values
from recommender.kinds.proportional.modes.registry import MODES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recommender.kinds.proportional.parameters import Mode


class ParametersError(ValueError):
    """A ConfigMap holds no usable parameters; the message says what is wrong and what to do."""


def mode_entry(data: Mapping[str, str]) -> tuple[str, str]:
    """Return mode and text of a ConfigMap's only entry; raises ParametersError."""
    if len(data) != 1:
        found = f"it has {', '.join(sorted(data))}" if data else "it is empty"
        raise ParametersError(f"`data` must have exactly one key, the mode, but {shorten(found, 200)}: write one key")
    [(mode, text)] = data.items()
    return mode, text


def parse_parameters(mode: str, text: str) -> Mode:
    """Return the parameters of a mode from their JSON; raises ParametersError with the first fault."""
    definition = MODES.get(mode)
    if definition is None:
        meant = nearest_word(mode, MODES)
        fix = f"did you mean {meant!r}?" if meant else f"write one of {', '.join(MODES)}"
        raise ParametersError(f"the mode {shorten(mode)!r} is not known: {fix}")
    values = _values(_parse_json(text, mode), definition)
    for flaw in definition.flaws(values):
        raise ParametersError(f"{mode}: {flaw.message}: {flaw.fix}")
    parameters: Mode = definition.parameters_of(values)
    return parameters


def _parse_json(text: str, mode: str) -> Json:
    try:
        return parse_go_json(text)
    except GoJsonError as e:
        raise ParametersError(f"{mode}: {e}") from e


@dataclass(slots=True)
class _Fields:
    """The values of an object while it is being read."""

    ratios: dict[str, float] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    flags: dict[str, bool] = field(default_factory=dict)
    rungs: dict[str, _Slots] = field(default_factory=dict)


def _values(parsed: Json, definition: ModeDefinition[Any]) -> Values:
    """Return the values of an object; null has no values. Raises ParametersError for a wrong type."""
    fields = _Fields()
    if parsed is not None and not isinstance(parsed, JsonObject):
        _refuse(definition.name, parsed, "an object")
    by_folded_key = {fold_key(key): key for key in definition.keys}
    for name, value in parsed.entries if parsed else ():
        key = name if name in definition.keys else by_folded_key.get(fold_key(name))
        if key is not None:
            _take(fields, key, definition.keys[key], value)
    rungs = {key: slots.rungs() for key, slots in fields.rungs.items()}
    return Values(fields.ratios, fields.counts, fields.flags, rungs)


def _take(fields: _Fields, key: str, kind: ParameterKind, value: Json) -> None:
    """Take the value of a key, which replaces the key's former value."""
    if kind is ParameterKind.RUNGS:
        fields.rungs.setdefault(key, _Slots()).take(key, value)
    elif value is None:
        return
    elif kind is ParameterKind.FLAG:
        fields.flags[key] = value if isinstance(value, bool) else _refuse(key, value, "true or false")
    elif kind is ParameterKind.COUNT:
        fields.counts[key] = _count(key, value)
    else:
        fields.ratios[key] = _ratio(key, value)


def _count(key: str, value: Json) -> int:
    text = value.text if isinstance(value, JsonNumber) else ""
    try:
        return parse_whole(text)
    except ValueError:
        _refuse(key, value, "a whole number, such as 16")


def _ratio(key: str, value: Json) -> float:
    text = value.text if isinstance(value, JsonNumber) else ""
    try:
        return parse_number(text)
    except ValueError:
        _refuse(key, value, "a number, such as 16 or 2.5")


class _Slots:
    """A Go slice of arrays of two numbers, which keeps its former elements when a duplicate key is read into it."""

    def __init__(self) -> None:
        self._slots: list[list[int]] = []
        self._length = 0

    def take(self, key: str, value: Json) -> None:
        """Read a list into the former one, which null and an empty list discard."""
        if not value and (value is None or value == []):
            self._slots, self._length = [], 0
            return
        items = value if isinstance(value, list) else _refuse(key, value, "a list of [threshold, replicas]")
        for position, item in enumerate(items):
            if position == len(self._slots):
                self._slots.append([0, 0])
            _take_rung(key, self._slots[position], item)
        self._length = len(items)

    def rungs(self) -> tuple[tuple[int, int], ...]:
        """Return the rungs in the order of the text."""
        return tuple((threshold, replicas) for threshold, replicas in self._slots[: self._length])


def _take_rung(key: str, slot: list[int], item: Json) -> None:
    """Read one rung: a missing number is 0, further numbers are ignored, and null leaves a number unchanged."""
    if item is None:
        return
    numbers = item if isinstance(item, list) else _refuse(key, item, "[threshold, replicas]")
    for position in range(len(slot)):
        number = numbers[position] if position < len(numbers) else _ZERO
        if number is not None:
            slot[position] = _count(key, number)


_ZERO: Final = JsonNumber("0")


def _refuse(key: str, value: Json, wanted: str) -> NoReturn:
    raise ParametersError(f"`{key}` is {value_text(value)}: write {wanted}")
