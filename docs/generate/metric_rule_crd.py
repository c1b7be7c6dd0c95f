"""The CustomResourceDefinition of MetricRule, generated from the one strict reader of rules."""

from __future__ import annotations

from typing import Any, Final

from adapter.foundation.documents.structural import UNOBSERVED, StructuralLimits, structural
from adapter.metrics.rulebook.model import METRIC_RULE
from adapter.metrics.rulebook.objects.metric_rule import GROUP, PLURAL, SPEC, VERSION

_LIMITS: Final = StructuralLimits(items=32, keys=32, characters=1024)
_LONGEST_QUERY: Final = 8192
"""Longest query that the adapter parses, in characters."""
_LONGEST_NAME: Final = 253
_CUSTOM_NEEDS_LABELS: Final = (
    "self.api != 'custom' || (has(self.rule.resources) && (has(self.rule.resources.template) || "
    "(has(self.rule.resources.overrides) && size(self.rule.resources.overrides) > 0)))"
)
_FINDING: Final = ("severity", "code", "message", "fix")
_COLUMNS: Final = (
    ("METRIC", "string", ".status.metric"),
    ("STATUS", "string", '.status.conditions[?(@.type=="Ready")].reason'),
    ("SERIES", "integer", ".status.series"),
    ("AGE", "date", ".metadata.creationTimestamp"),
)


def metric_rule_crd() -> dict[str, Any]:
    """Return the CustomResourceDefinition."""
    columns = [{"name": name, "type": kind, "jsonPath": path} for name, kind, path in _COLUMNS]
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": columns,
        "schema": {"openAPIV3Schema": _object_schema()},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": METRIC_RULE,
                "listKind": f"{METRIC_RULE}List",
                "plural": PLURAL,
                "singular": METRIC_RULE.lower(),
                "categories": ["tidewatch"],
            },
            "versions": [version],
        },
    }


def _object_schema() -> dict[str, Any]:
    about = "One rule of prometheus-adapter's rule language, for the metrics of the object's own namespace."
    properties = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        "spec": _spec(),
        "status": _status(),
    }
    return {"type": "object", "description": about, "required": ["spec"], "properties": properties}


def _spec() -> dict[str, Any]:
    """Return the schema of the spec, with the conditions between keys that only the reader knows."""
    spec = structural(SPEC.schema, _LIMITS)
    rule = spec["properties"]["rule"]["properties"]
    rule["metricsQuery"]["maxLength"] = _LONGEST_QUERY
    rule["name"]["properties"]["as"]["maxLength"] = _LONGEST_NAME
    # Conditions that the reader checks are already checked when the object is applied.
    _validate(spec, _CUSTOM_NEEDS_LABELS, "a custom rule needs resources.overrides or resources.template")
    _validate(rule["seriesFilters"]["items"], "has(self.is) != has(self.isNot)", "write exactly one of is and isNot")
    _validate(rule["name"]["properties"]["as"], "!self.contains('/')", "a metric's name has no slash")
    return spec


def _validate(schema: dict[str, Any], rule: str, message: str) -> None:
    schema["x-kubernetes-validations"] = [{"rule": rule, "message": message}]


def _status() -> dict[str, Any]:

    return {
        "type": "object",
        "description": "What the adapter finds of the rule.",
        "default": UNOBSERVED,
        "properties": {
            "observedGeneration": {"type": "integer", "format": "int64"},
            "conditions": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["type"],
                "items": _condition(),
            },
            "metric": {"type": "string", "description": "The first metric, and how many others are served."},
            "metrics": {"type": "array", "description": "The metrics that are served.", "items": {"type": "string"}},
            "series": {"type": "integer", "description": "Series that the rule selects.", "format": "int64"},
            "findings": {
                "type": "array",
                "description": "What `tidewatch-adapter check` says about the rule.",
                "items": {"type": "object", "properties": {key: {"type": "string"} for key in _FINDING}},
            },
        },
    }


def _condition() -> dict[str, Any]:
    """Return the schema of a `metav1.Condition`."""
    return {
        "type": "object",
        "required": ["type", "status", "lastTransitionTime", "reason", "message"],
        "properties": {
            "type": {"type": "string"},
            "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
            "observedGeneration": {"type": "integer", "format": "int64"},
            "lastTransitionTime": {"type": "string", "format": "date-time"},
            "reason": {"type": "string"},
            "message": {"type": "string"},
        },
    }
