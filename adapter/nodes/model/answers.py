"""Documents for this project's own paths, in the shape of Kubernetes objects."""

from __future__ import annotations

from typing import Final

from adapter.foundation.web.http import Response, json_line

API_VERSION: Final = "tidewatch.io/v1alpha1"


def error_answer(status: int, message: str) -> Response:
    """Return an error that says what is wrong and what to do."""
    return Response(status, json_line({"apiVersion": API_VERSION, "kind": "Error", "message": message}))
