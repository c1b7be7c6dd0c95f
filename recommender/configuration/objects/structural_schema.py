"""From the JSON Schema of the strict reader to the structural schema of a CustomResourceDefinition (pure).

A structural schema (Kubernetes' documentation, "Specifying a structural schema") has one type at each node and no null,
and forbids `additionalProperties: false`: unknown keys are refused by strict validation and pruned without it. Defaults
are left out, since the API server would write them into objects, where they would count as written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from adapter.foundation.documents.shapes import Schema

MOST_ITEMS: Final = 200
MOST_KEYS: Final = 50
MOST_CHARACTERS: Final = 4096
"""Limits of what a namespace may put into one object; they also bound the cost of validation rules."""
_COPIED: Final = ("minimum", "maximum", "minItems", "pattern", "required")


def structural(schema: Schema) -> dict[str, Any]:
    """Return the structural schema."""
    found: dict[str, Any] = {}
    if description := schema.get("description"):
        found["description"] = _with_default(description, schema)
    found |= _typed(schema)
    found |= {key: schema[key] for key in _COPIED if key in schema}
    for key, limit in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        # OpenAPI 3.0, which Kubernetes follows, has a limit and whether it is left out.
        if key in schema:
            found |= {limit: schema[key], key: True}
    if "enum" in schema:
        found["enum"] = [each for each in schema["enum"] if each is not None]
    return found


def _with_default(description: str, schema: Schema) -> str:
    return f"{description} Default: {schema['default']}." if "default" in schema else description


def _typed(schema: Schema) -> dict[str, Any]:
    types = _types(schema)
    if types == ["object"]:
        return {"type": "object", **_content(schema)}
    if types == ["array"]:
        return {"type": "array", "maxItems": MOST_ITEMS, "items": structural(schema["items"])}
    if types == ["string", "number", "boolean"]:
        # In a file, a text without quotes may look like another type.
        return {"type": "string", "maxLength": MOST_CHARACTERS}
    if not types:
        # Several types have no structural schema: the reader refuses what is wrong.
        return {"x-kubernetes-preserve-unknown-fields": True}
    if types == ["boolean", "string"]:
        # No type allows both: whatever is there, it must be neither large nor nested.
        return {"x-kubernetes-preserve-unknown-fields": True, "maxLength": 64, "maxItems": 0, "maxProperties": 0}
    if set(types) in ({"string", "integer"}, {"string", "number"}):
        return {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}
    (only,) = types
    return {"type": only} | ({"maxLength": MOST_CHARACTERS} if only == "string" and "enum" not in schema else {})


def _types(schema: Schema) -> list[str]:
    """Return the types of a value; none where alternatives with types of their own are given."""
    if "anyOf" in schema:
        return []
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return [each for each in types if each != "null"]


def _content(schema: Schema) -> dict[str, Any]:
    others = schema.get("additionalProperties")
    if isinstance(others, dict):
        return {"maxProperties": MOST_KEYS, "additionalProperties": structural(others)}
    return {"properties": {key: structural(each) for key, each in schema["properties"].items()}}
