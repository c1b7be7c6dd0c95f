"""The schema of MetricRules as the API server reads it."""

from __future__ import annotations

from typing import Any

from jsonschema import Draft202012Validator

from docs.generate.metric_rule_crd import metric_rule_crd

(_VERSION,) = metric_rule_crd()["spec"]["versions"]
OBJECT: dict[str, Any] = _VERSION["schema"]["openAPIV3Schema"]
SPEC: dict[str, Any] = OBJECT["properties"]["spec"]


def as_json_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a structural schema as the API server uses it: unknown fields are refused (`fieldValidation=Strict`)."""
    read = {key: value for key, value in schema.items() if not key.startswith("x-")}
    if schema.get("x-kubernetes-int-or-string"):
        read["type"] = ["integer", "string"]
    if "properties" in schema:
        read["properties"] = {key: as_json_schema(value) for key, value in schema["properties"].items()}
        read["additionalProperties"] = False
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            read[key] = as_json_schema(schema[key])
    return read


VALIDATOR = Draft202012Validator(as_json_schema(SPEC))
