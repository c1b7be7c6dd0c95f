"""Documents that rarely change: with an entity tag, clients need not download them again (RFC 9110, 8.8.3)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from adapter.foundation.web.http import JSON, NOT_CACHED, Response
from adapter.foundation.web.negotiation import is_current

_ETAG = "ETag"


def entity(
    body: bytes,
    content_type: str = JSON,
    headers: Sequence[tuple[str, str]] = (),
    cache_control: str = NOT_CACHED,
) -> Response:
    """Return a response with an entity tag that is derived from its content."""
    return Response(200, body, content_type, ((_ETAG, f'"{digest(body)}"'), *headers), cache_control)


def digest(body: bytes) -> str:
    """Return a digest of the content in hexadecimal digits."""
    return hashlib.sha256(body).hexdigest()[:32].upper()


def unless_current(whole: Response, if_none_match: str) -> Response:
    """Return `whole`, which `entity` made, or 304 without a body if the client already has this content."""
    if if_none_match and is_current(dict(whole.headers)[_ETAG], if_none_match):
        return Response(304, b"", whole.content_type, whole.headers, whole.cache_control)
    return whole
