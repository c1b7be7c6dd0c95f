"""Structural schemas of CustomResourceDefinitions, made from the JSON Schemas of the readers (pure).

A structural schema has one type everywhere. It accepts less than a reader: texts must be texts, as JSON and kubectl
write them anyway. It knows no `additionalProperties: false`; the API server refuses or drops unknown fields by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from adapter.foundation.documents.shapes import Schema

_LONGEST_TEXT: Final = 1024
_MOST_ITEMS: Final = 32
"""Limits without which the API server could not bound the cost of validation rules."""
_NUMBERS: Final = frozenset({"number", "integer"})


def structural(schema: Schema) -> Schema:
    """Return the structural schema for what a reader's schema describes."""
    described = {"description": schema["description"]} if "description" in schema else {}
    if "anyOf" in schema:
        return {**structural(schema["anyOf"][0]), **described}
    types = _types(schema)
    if "object" in types:
        return {**described, **_mapping(schema)}
    if "array" in types:
        return {**described, "type": "array", "maxItems": _MOST_ITEMS, "items": structural(schema["items"])}
    if "string" in types:
        return {**described, **_text(schema, types)}
    return {**described, "type": next(iter(types))}


def _types(schema: Schema) -> frozenset[str]:
    types = schema["type"]
    return frozenset(types if isinstance(types, list) else [types]) - {"null"}


def _mapping(schema: Schema) -> Schema:
    others = schema.get("additionalProperties")
    if isinstance(others, dict):
        return {"type": "object", "maxProperties": _MOST_ITEMS, "additionalProperties": structural(others)}
    properties = {key: structural(value) for key, value in schema["properties"].items()}
    required: dict[str, Any] = {"required": schema["required"]} if "required" in schema else {}
    return {"type": "object", "properties": properties, **required}


def _text(schema: Schema, types: frozenset[str]) -> Schema:
    """Return the schema of a text, or of one that may be a whole number, such as a quantity."""
    limits: Schema = {key: schema[key] for key in ("pattern", "enum") if key in schema}
    if "enum" in limits:
        return {"type": "string", **limits}
    may_be_number = types & _NUMBERS and "boolean" not in types
    kind = {"x-kubernetes-int-or-string": True} if may_be_number else {"type": "string"}
    return {**kind, "maxLength": _LONGEST_TEXT, **limits}
