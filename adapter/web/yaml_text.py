"""JSON as YAML: block style for people; long documents stay JSON, which is valid YAML (pure)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_BYTES = 32 * 1024
"""Longer documents stay as they are: block style takes about 0.3 s per MiB, and blocks all other requests."""

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
"""Keys that need no quotes, unless they are words that YAML reads as something other than text."""
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""Characters that JSON accepts as they are and YAML only when escaped."""
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})


def yaml_of(document: bytes) -> bytes:
    """Return a JSON document as YAML (1.1 and 1.2)."""
    if len(document) > MOST_BYTES:
        return document
    return ("\n".join(_lines(msgspec.json.decode(document), "")) + "\n").encode()


def _lines(value: object, indent: str) -> Iterator[str]:
    """Yield the lines of a value."""
    if isinstance(value, dict) and value:
        for key, one in value.items():
            yield from _entry(f"{indent}{_key(key)}:", one, indent)
    elif isinstance(value, list) and value:
        for one in value:
            first, *rest = _lines(one, f"{indent}  ")
            yield f"{indent}- {first[len(indent) + 2 :]}"
            yield from rest
    else:
        yield f"{indent}{_scalar(value)}"


def _entry(head: str, value: object, indent: str) -> Iterator[str]:
    if not value or not isinstance(value, dict | list):
        yield f"{head} {_scalar(value)}"
        return
    yield head
    yield from _lines(value, indent if isinstance(value, list) else f"{indent}  ")


def _key(key: str) -> str:
    return key if _PLAIN.fullmatch(key) and key.lower() not in _WORDS else _scalar(key)


def _scalar(value: object) -> str:
    """Return a quoted text, a number, a word, or an empty list or mapping, as JSON writes it; YAML reads it alike."""
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", msgspec.json.encode(value).decode())
