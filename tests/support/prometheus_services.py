"""Services as the API server lists them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def service(namespace: str, name: str, *ports: int, labels: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return a Service with these ports."""
    metadata = {"namespace": namespace, "name": name, "labels": dict(labels or {})}
    return {"metadata": metadata, "spec": {"ports": [{"port": port, "protocol": "TCP"} for port in ports]}}
