"""Turns the JSON Schema of a strict reader into the structural schema of a CustomResourceDefinition (pure).

A structural schema (Kubernetes' documentation, "Specifying a structural schema") has one type at each node and no null.
It must not contain `additionalProperties: false`; unknown keys are refused by strict validation and otherwise pruned.
It accepts less than a reader: texts must be JSON strings, as kubectl writes them anyway. Defaults are described but not
set, since the API server would write them into objects, where they would look as if the author had written them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapter.foundation.documents.shapes import Schema

_COPIED: Final = ("minimum", "maximum", "minItems", "pattern", "required")
_SCALAR: Final[Schema] = {
    "x-kubernetes-preserve-unknown-fields": True,
    "maxLength": 64,
    "maxItems": 0,
    "maxProperties": 0,
}
"""A text or a boolean. No type allows both, so the schema only requires that the value is neither large nor nested."""
UNOBSERVED: Final[Schema] = {"observedGeneration": -1}
"""The default of a status: until a controller has written it, the status refers to no generation.

Without this default, kstatus, whose rules Flux follows, would consider an object without a status ready.
"""


@dataclass(frozen=True, slots=True)
class StructuralLimits:
    """Limits on the content of an object. Without them, the API server cannot bound the cost of validation rules."""

    items: int
    keys: int
    characters: int


def structural(schema: Schema, limits: StructuralLimits) -> Schema:
    """Return the structural schema of the content that a reader's JSON Schema describes."""
    described = {"description": _with_default(schema)} if "description" in schema else {}
    if "anyOf" in schema:
        return {**_any_of(schema["anyOf"], limits), **described}
    found: Schema = {**described, **_typed_schema(schema, limits)}
    found |= {key: schema[key] for key in _COPIED if key in schema}
    for key, limit in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        # OpenAPI 3.0, which Kubernetes follows, has a limit and a flag that excludes the limit itself.
        if key in schema:
            found |= {limit: schema[key], key: True}
    if "enum" in schema:
        found["enum"] = [each for each in schema["enum"] if each is not None]
    return found


def _any_of(alternatives: Sequence[Schema], limits: StructuralLimits) -> Schema:
    """Return the first alternative's schema; if one is a list, a schema that allows any value of limited size."""
    if not any("array" in _types(each) for each in alternatives):
        return structural(alternatives[0], limits)
    # No type allows a list and a scalar: the reader refuses wrong values, and the schema limits their size.
    most = {"maxLength": limits.characters, "maxItems": limits.items, "maxProperties": 0}
    return {"x-kubernetes-preserve-unknown-fields": True, **most}


def _with_default(schema: Schema) -> str:
    description: str = schema["description"]
    return f"{description} Default: {schema['default']}." if "default" in schema else description


def _typed_schema(schema: Schema, limits: StructuralLimits) -> Schema:
    types = _types(schema)
    if types == {"object"}:
        return {"type": "object", **_content(schema, limits)}
    if types == {"array"}:
        return {"type": "array", "maxItems": limits.items, "items": structural(schema["items"], limits)}
    if types == {"boolean", "string"}:
        return dict(_SCALAR)
    if types in ({"string", "integer"}, {"string", "number"}):
        return {"x-kubernetes-int-or-string": True, "maxLength": limits.characters}
    if "string" in types:
        # In a file, a text without quotes may look like another type.
        return {"type": "string"} | ({} if "enum" in schema else {"maxLength": limits.characters})
    (only,) = types
    return {"type": only}


def _types(schema: Schema) -> frozenset[str]:
    types = schema["type"]
    return frozenset(types if isinstance(types, list) else [types]) - {"null"}


def _content(schema: Schema, limits: StructuralLimits) -> dict[str, Any]:
    others = schema.get("additionalProperties")
    if isinstance(others, dict):
        return {"maxProperties": limits.keys, "additionalProperties": structural(others, limits)}
    return {"properties": {key: structural(each, limits) for key, each in schema["properties"].items()}}
