"""Makes the CustomResourceDefinition of Recommendation objects from the strict reader of the file. Pure."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Final

from adapter.foundation.documents.structural import UNOBSERVED, StructuralLimits, structural
from recommender.configuration.entry import entry_section
from recommender.configuration.objects.object_reading import FILE_ONLY, FILE_ONLY_MESSAGE
from recommender.configuration.objects.object_settings import GROUP, KIND, OBJECT_OUTPUTS, PLURAL, VERSION
from recommender.decisions.record import Status, TargetAction

KINDS: Final = ("proportional", "predictive")
REFUSED: Final = "refused"
"""The status of an object that is refused, and so takes no effect."""
LIMITS: Final = StructuralLimits(items=200, keys=50, characters=4096)
_MOST_TARGETS: Final = 20
_EACH: Final = "has(self.predictive) && has(self.predictive.forEach)"
_SCALES: Final = "has(self.outputs) && 'scale' in self.outputs"
_RULES: Final = (
    (f"!has(self.{FILE_ONLY})", FILE_ONLY_MESSAGE),
    (
        " != ".join(f"has(self.{kind})" for kind in KINDS),
        f"the recommendation has to state what it calculates: write exactly one of {', '.join(KINDS)}",
    ),
    (
        f"!(has(self.targets) && {_EACH})",
        "targets and forEach cannot be combined, since the series name the targets: remove one of them",
    ),
    (f"!({_SCALES}) || has(self.targets) || ({_EACH})", "the output scale has no targets: list them under targets"),
    (
        f"!({_SCALES}) || !has(self.predictive) || has(self.predictive.maxReplicas)",
        "the output scale needs predictive.maxReplicas, so that something limits what is written",
    ),
)
"""Rules in the Common Expression Language, with their messages."""
_TEXT: Final = {"type": "string"}
_WHOLE: Final = {"type": "integer", "format": "int64"}
_TIME: Final = {"type": "string", "format": "date-time"}


def definition() -> dict[str, Any]:
    """Return the CustomResourceDefinition."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {
                "kind": KIND,
                "listKind": f"{KIND}List",
                "plural": PLURAL,
                "singular": KIND.lower(),
                "categories": ["tidewatch"],
            },
            "scope": "Namespaced",
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [
                        _column("Value", "integer", ".status.value", "Recommended replicas."),
                        _column("Now", "integer", ".status.now", "Current replicas."),
                        _column("Status", "string", ".status.status", "ok, held, stale, error or refused."),
                        _column("Decided By", "string", ".status.decidedBy", "The step that decided the value."),
                        _column("Age", "date", ".metadata.creationTimestamp", "Age of the object."),
                    ],
                    "schema": {"openAPIV3Schema": schema()},
                }
            ],
        },
    }


def _column(name: str, kind: str, path: str, description: str) -> dict[str, str]:
    return {"name": name, "type": kind, "jsonPath": path, "description": description}


def schema() -> dict[str, Any]:
    """Return the schema of an object."""
    return {
        "description": "A recommendation for targets of the namespace, as an entry of the recommender's file.",
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": _spec(),
            "status": _status(),
        },
    }


def _spec() -> dict[str, Any]:
    """Return the schema of `spec`: that of an entry of the file, without the keys that only the file may have."""
    schema = deepcopy(entry_section(KINDS).schema)
    properties = schema["properties"]
    del properties["name"], schema["required"]
    proportional = properties["proportional"]["properties"]
    del proportional["configMap"]
    drivers = proportional["drivers"]["properties"]
    proportional["drivers"]["properties"] = {"query": drivers["query"]}
    properties["outputs"]["items"]["enum"] = list(map(str, OBJECT_OUTPUTS))
    target = properties["targets"]["items"]
    target["required"].remove("namespace")
    target["properties"]["namespace"]["description"] = "The namespace of the object, which is the default."
    spec = structural(schema, LIMITS)
    spec["description"] = "An entry of the recommender's file, without its name."
    spec["properties"]["paused"]["description"] += " Quote a time."
    spec["properties"][FILE_ONLY] = {
        "description": "Only for the administrator's file: refused.",
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
    }
    spec["properties"]["targets"]["maxItems"] = _MOST_TARGETS
    spec["x-kubernetes-validations"] = [{"rule": rule, "message": message} for rule, message in _RULES]
    return spec


def _condition() -> dict[str, Any]:
    return _object(
        {
            "type": {**_TEXT, "description": "Ready, Acting or Refused."},
            "status": {**_TEXT, "enum": ["True", "False", "Unknown"]},
            "reason": _TEXT,
            "message": _TEXT,
            "observedGeneration": _WHOLE,
            "lastTransitionTime": _TIME,
        },
        "type",
        "status",
        "reason",
        "message",
        "lastTransitionTime",
    )


def _status() -> dict[str, Any]:
    step = _object({"step": _TEXT, "value": {"type": "number"}, "detail": _TEXT}, "step", "value")
    target = _object(
        {
            "apiVersion": _TEXT,
            "kind": _TEXT,
            "name": _TEXT,
            "currentReplicas": _WHOLE,
            "recommendedReplicas": _WHOLE,
            "action": {**_TEXT, "enum": list(map(str, TargetAction))},
            "owner": {**_TEXT, "description": "What else sets its size."},
            "message": _TEXT,
        },
        "kind",
        "name",
        "action",
    )
    found = _object(
        {
            "observedGeneration": {**_WHOLE, "description": "The generation that the status is about."},
            "status": {**_TEXT, "enum": [*map(str, Status), REFUSED]},
            "message": _TEXT,
            "value": {**_WHOLE, "description": "Recommended replicas; with several targets those of the largest."},
            "now": {**_WHOLE, "description": "Current replicas, as far as they are known."},
            "decidedBy": {**_TEXT, "description": "The binding limit: the last step that changed the value."},
            "lastTransitionTime": {**_TIME, "description": "When value or status changed last."},
            "steps": {"type": "array", "items": step, "x-kubernetes-list-type": "atomic"},
            "targets": {"type": "array", "items": target, "x-kubernetes-list-type": "atomic"},
            "resources": {
                "description": "Sizes of containers: container, then requests or limits, then resource.",
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": True,
            },
            "conditions": {
                "type": "array",
                "items": _condition(),
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["type"],
            },
        }
    )
    return found | {"default": UNOBSERVED}


def _object(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": properties} | ({"required": list(required)} if required else {})
