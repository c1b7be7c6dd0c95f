"""The schema of a reader, in the form that a CustomResourceDefinition may have."""

from __future__ import annotations

from typing import Any

import pytest

from adapter.foundation.documents.structural import StructuralLimits, structural


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({"type": ["integer", "null"], "minimum": 1}, {"type": "integer", "minimum": 1}),
        ({"type": "number", "exclusiveMinimum": 0}, {"type": "number", "minimum": 0, "exclusiveMinimum": True}),
        ({"type": ["string", "null"], "enum": ["a", None]}, {"type": "string", "enum": ["a"]}),
        (
            {"type": "string", "default": "1d", "description": "A day."},
            {"description": "A day. Default: 1d.", "type": "string", "maxLength": 99},
        ),
        (
            {"type": ["integer", "string"], "pattern": "%$"},
            {
                "x-kubernetes-int-or-string": True,
                "maxLength": 99,
                "pattern": "%$",
            },
        ),
        (
            {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
            {"x-kubernetes-preserve-unknown-fields": True, "maxLength": 99, "maxItems": 9, "maxProperties": 0},
        ),
        ({"anyOf": [{"type": "integer"}, {"type": "object", "properties": {}}]}, {"type": "integer"}),
        (
            {"type": ["boolean", "string"]},
            {"x-kubernetes-preserve-unknown-fields": True, "maxLength": 64, "maxItems": 0, "maxProperties": 0},
        ),
        (
            {"type": "array", "items": {"type": ["string", "number", "boolean", "null"]}},
            {"type": "array", "maxItems": 9, "items": {"type": "string", "maxLength": 99}},
        ),
    ],
)
def test_a_schema_becomes_structural(written: dict[str, Any], expected: dict[str, Any]) -> None:
    assert structural(written, StructuralLimits(items=9, keys=9, characters=99)) == expected
