"""Bodies of answers to range queries."""

from __future__ import annotations

import json
from typing import Any


def body(*series: Any, kind: str = "matrix", **more: Any) -> bytes:  # noqa: ANN401 - JSON
    document = {"status": "success", "data": {"resultType": kind, "result": list(series)}, **more}
    return json.dumps(document, separators=(",", ":")).encode()


def one(*points: tuple[float, str], **labels: str) -> dict[str, Any]:
    return {"metric": labels, "values": [list(point) for point in points]}
