"""Reads and changes the document of a scale subresource (`autoscaling/v1 Scale`). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapter.foundation.objects.integers import INT32_MAX


class ScaleDocumentError(ValueError):
    """The answer is not a Scale."""


def replicas_of(scale: Mapping[str, Any]) -> int:
    """Return `spec.replicas`; the API omits a 0. Raises ScaleDocumentError."""
    spec = scale.get("spec") or {}
    replicas = spec.get("replicas", 0) if isinstance(spec, dict) else None
    if scale.get("kind") != "Scale" or type(replicas) is not int or not 0 <= replicas <= INT32_MAX:
        raise ScaleDocumentError("the answer is not an autoscaling/v1 Scale with a whole number of replicas")
    return replicas


def uid_of(document: Mapping[str, Any]) -> str:
    """Return the UID in the metadata of an object, which for a Scale is that of the scaled object; empty if missing."""
    metadata = document.get("metadata")
    uid = metadata.get("uid") if isinstance(metadata, dict) else None
    return uid if isinstance(uid, str) else ""


def with_replicas(scale: Mapping[str, Any], replicas: int) -> dict[str, Any]:
    """Return the Scale with this number of replicas; its resource version stays the one that was read."""
    return {**scale, "spec": {**(scale.get("spec") or {}), "replicas": replicas}}
