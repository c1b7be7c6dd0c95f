"""Selectors out of a raw query string (pure).

A parameter that cannot be read is an error, never left out: without its selector a request would get, and scale on,
more than it asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from adapter.apis.status import ApiError
from adapter.objects.selectors import EVERYTHING, SelectorError, parse_selector

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.objects.selectors import Selector


def parameters(query: str) -> Mapping[str, str]:
    """Return the parameters, decoded. Raises ApiError 400 for one that is not UTF-8, or is given twice."""
    found: dict[str, str] = {}
    for pair in filter(None, query.split("&")):
        name, _, value = pair.partition("=")
        key = _decoded(name)
        if key in found:
            raise ApiError(400, f"the parameter {key} is given twice")
        found[key] = _decoded(value)
    return found


def selector(given: Mapping[str, str], name: str) -> Selector:
    """Return the selector of that parameter; an absent or empty one selects everything. Raises ApiError 400."""
    text = given.get(name, "")
    if not text:
        return EVERYTHING
    try:
        return parse_selector(text)
    except SelectorError as e:
        raise ApiError(400, f"unable to parse {name} {text!r}: {e}") from e


def refuse_watch(given: Mapping[str, str]) -> None:
    """Raise ApiError 405 for a watch: values are asked for, not followed."""
    if given.get("watch", "false") not in {"", "0", "false"}:
        raise ApiError(405, "metrics cannot be watched: ask again instead")


def _decoded(text: str) -> str:
    if "%" not in text and "+" not in text and text.isascii():
        return text
    try:
        return unquote_to_bytes(text.replace("+", " ").encode("latin-1")).decode()
    except UnicodeError as e:
        raise ApiError(400, "the query string is not UTF-8") from e
