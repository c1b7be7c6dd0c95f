"""JSON as Go's encoding/json reads it: keys match in any case, and duplicate keys are all kept."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

from adapter.foundation.documents.tree import shorten


class GoJsonError(ValueError):
    """The text is not JSON; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class JsonNumber:
    """A number as the text spells it."""

    text: str


@dataclass(frozen=True, slots=True)
class JsonObject:
    """An object."""

    entries: tuple[tuple[str, Json], ...]
    """Entries in the order of the text, including duplicates."""


Json: TypeAlias = "JsonNumber | JsonObject | str | bool | list[Json] | None"


def parse_go_json(text: str) -> Json:
    """Return the value of a text. Raises GoJsonError."""
    try:
        parsed: Json = json.loads(
            text, object_pairs_hook=_object, parse_int=JsonNumber, parse_float=JsonNumber, parse_constant=no_constant
        )
    except RecursionError as e:
        raise GoJsonError("the JSON is nested too deeply: flatten it") from e
    except ValueError as e:
        raise GoJsonError(f"this is not JSON: {e}: correct the syntax") from e
    return parsed


def fold_key(key: str) -> str:
    """Return a form that is the same for keys that Go treats as equal: U+017F is an s, and the Kelvin sign is a k."""
    return key.lower().replace("\u017f", "s")


def value_text(value: Json) -> str:
    """Return a short text of a value for a message."""
    match value:
        case JsonNumber(text):
            return shorten(text)
        case bool():
            return "true" if value else "false"
        case str():
            return f"the string {shorten(value)!r}"
        case list():
            return "a list"
        case None:
            return "null"
        case _:
            return "an object"


def _object(pairs: list[tuple[str, Any]]) -> JsonObject:
    # Half of a surrogate pair is not text, and could not be written again: Go reads the replacement character.
    return JsonObject(
        tuple((key.encode("utf-16", "surrogatepass").decode("utf-16", "replace"), value) for key, value in pairs)
    )


def no_constant(name: str) -> NoReturn:
    """Refuse `NaN` and `Infinity`, which Python reads; raises ValueError."""
    raise ValueError(f"{name} is not a JSON number")
