"""Fields of whole objects, of which any part may be missing or of a wrong type."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.cluster.values.state import JsonObject


def section(one: Mapping[str, object], *path: str) -> JsonObject:
    """Return the object at a path; empty if there is none."""
    for key in path:
        found = one.get(key)
        one = found if isinstance(found, dict) else {}
    return one


def text(one: Mapping[str, object], *path: str) -> str:
    """Return the text at a path; empty if there is none."""
    found = section(one, *path[:-1]).get(path[-1])
    return found if isinstance(found, str) else ""


def whole(one: Mapping[str, object], *path: str) -> int | None:
    """Return the whole number at a path; None if there is none."""
    found = section(one, *path[:-1]).get(path[-1])
    return found if type(found) is int else None


def items(one: Mapping[str, object], *path: str) -> tuple[JsonObject, ...]:
    """Return the objects in the list at a path; anything else is left out."""
    found = section(one, *path[:-1]).get(path[-1])
    return tuple(each for each in found if isinstance(each, dict)) if isinstance(found, list) else ()


def texts(one: Mapping[str, object], *path: str) -> dict[str, str]:
    """Return the entries of the object at a path whose values are texts, such as labels."""
    return {key: value for key, value in section(one, *path).items() if isinstance(value, str)}


def object_text(one: Mapping[str, object]) -> str:
    """Return how messages name an object: `Machine capi/workers-x7`."""
    namespace, name = text(one, "metadata", "namespace"), text(one, "metadata", "name")
    return f"{text(one, 'kind') or 'object'} {namespace}/{name}"
