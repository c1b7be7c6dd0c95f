"""Paths and documents for tests of the client."""

from __future__ import annotations

import json

PODS = "/api/v1/pods"


def kind_of(body: bytes) -> str:
    return str(json.loads(body)["kind"])
