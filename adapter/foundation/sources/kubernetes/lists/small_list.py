"""The items of a small list that was read as one document, right before a write that depends on it.

A proxy, a cache or a failing API server may answer 200 with something else, and no items are the most harmful answer: a
node without pods is deleted, and a workload without an autoscaler is resized.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapter.foundation.sources.kubernetes.errors import UnexpectedResponseError

_SHOWN_CHARACTERS = 64


def items_of_list(path: str, document: Mapping[str, Any], kind: str, api_version: str = "v1") -> list[dict[str, Any]]:
    """Return the items of the list that was read from a path; `kind` is that of one item.

    Raises UnexpectedResponseError if the document is another one, or only a part of the list.
    """
    found = document.get("kind"), document.get("apiVersion")
    if found != (f"{kind}List", api_version):
        shown = f"{found[0] or 'no kind'} of {found[1] or 'no version'}"[:_SHOWN_CHARACTERS]
        raise UnexpectedResponseError(f"GET {path}: the answer is {shown}, not a {kind}List of {api_version}")
    # Go writes an empty list as null.
    items = [] if document.get("items", ...) is None else document.get("items")
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise UnexpectedResponseError(f"GET {path}: the answer has no list of objects as `items`")
    metadata = document.get("metadata")
    if isinstance(metadata, Mapping) and metadata.get("continue"):
        raise UnexpectedResponseError(f"GET {path}: the answer is a part of the list, not all of it")
    return items
