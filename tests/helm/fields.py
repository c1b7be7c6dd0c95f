"""Checks that Kubernetes accepts an object: every field is known and has its type, and no required one is missing.

The API server drops unknown fields with a warning at best, so a misspelt `readOnlyRootFilesystem` would go unnoticed.
The models of the package `kubernetes` are made from Kubernetes' own OpenAPI document and know all fields.
"""

from __future__ import annotations

import re
from typing import Any

from kubernetes.client import models

MODELS = {
    "APIService": "V1APIService",
    "ClusterRole": "V1ClusterRole",
    "ClusterRoleBinding": "V1ClusterRoleBinding",
    "ConfigMap": "V1ConfigMap",
    "Deployment": "V1Deployment",
    "NetworkPolicy": "V1NetworkPolicy",
    "PodDisruptionBudget": "V1PodDisruptionBudget",
    "Role": "V1Role",
    "RoleBinding": "V1RoleBinding",
    "Secret": "V1Secret",
    "Service": "V1Service",
    "ServiceAccount": "V1ServiceAccount",
}
SCALARS: dict[str, type | tuple[type, ...]] = {
    "str": str,
    "bytes": str,
    "int": int,
    "bool": bool,
    "float": (int, float),
    "datetime": str,
}


class FieldError(ValueError):
    """An object has a field or a value that Kubernetes does not know; the message begins with its place."""


def check_fields(document: dict[str, Any]) -> None:
    """Raise FieldError unless the object is complete and fits its kind."""
    _value_of_model(MODELS[document["kind"]], document, document["kind"])


def _value_of_model(kind: str, value: object, where: str) -> object:
    """Return the value as the package's model of it."""
    container = re.fullmatch(r"(?i:(list|dict))\[(?:str, )?(.+)\]", kind)
    if container is None:
        return _single(kind, value, where)
    if container[1].lower() == "list":
        if not isinstance(value, list):
            raise FieldError(f"{where}: {value!r} is no list")
        return [_value_of_model(container[2], one, f"{where}[{index}]") for index, one in enumerate(value)]
    if not isinstance(value, dict):
        raise FieldError(f"{where}: {value!r} is no mapping")
    return {key: _value_of_model(container[2], one, f"{where}.{key}") for key, one in value.items()}


def _single(kind: str, value: object, where: str) -> object:
    if kind == "object":
        return value
    if kind in SCALARS:
        is_flag = isinstance(value, bool)
        if not isinstance(value, SCALARS[kind]) or (is_flag and kind != "bool"):
            raise FieldError(f"{where}: {value!r} is no {kind}")
        return value
    if not isinstance(value, dict):
        raise FieldError(f"{where}: {value!r} is no {kind}")
    model = getattr(models, kind)
    attributes = {name: attribute for attribute, name in model.attribute_map.items()}
    unknown = value.keys() - attributes.keys()
    if unknown:
        raise FieldError(f"{where}: {kind} has no {', '.join(sorted(unknown))}")
    inner = {
        attributes[name]: _value_of_model(model.openapi_types[attributes[name]], one, f"{where}.{name}")
        for name, one in value.items()
    }
    try:
        return model(**inner)
    except ValueError as e:
        raise FieldError(f"{where}: {e}") from e
