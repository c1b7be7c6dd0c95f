"""Documents of the paths that are this project's own, in the shape of Kubernetes objects."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from adapter.foundation.web.http import Response, json_line

API_VERSION: Final = "tidewatch.io/v1alpha1"


def error_answer(status: int, message: str) -> Response:
    """Return an error that says what is wrong and what to do."""
    return Response(status, json_line({"apiVersion": API_VERSION, "kind": "Error", "message": message}))


def rfc3339(unix_seconds: float) -> str:
    """Return a time in UTC, to the second."""
    return datetime.fromtimestamp(int(unix_seconds), UTC).isoformat().replace("+00:00", "Z")
