"""Decoders of msgspec, each built once and never by two threads at the same time.

msgspec 0.22 keeps the description of a Struct in its class and stores it there before it is complete, since a Struct
may contain itself. A thread that needs the description of the same Struct at that moment takes the incomplete one and
reads a null pointer, which ends the process with SIGSEGV. `msgspec.json.decode(…, type=)`, `msgspec.convert` and
`Decoder(…)` all build descriptions, so only this module calls them with a type; a test checks this. As msgspec's
documentation recommends, a decoder is made once, when its module is loaded, and used by all threads. A decoder for a
type that is known only at run time is made under the same lock. Encoding does not use descriptions.
"""

from __future__ import annotations

import threading
from functools import cache
from typing import Any, TypeVar, overload

import msgspec

T = TypeVar("T")

_BUILDING = threading.Lock()
"""Held while a description is built, so that the descriptions of every existing decoder are complete."""


@overload
def decoder_of(form: type[T], *, strict: bool = True) -> msgspec.json.Decoder[T]: ...


@overload
def decoder_of(form: object, *, strict: bool = True) -> msgspec.json.Decoder[Any]: ...


def decoder_of(form: object, *, strict: bool = True) -> msgspec.json.Decoder[Any]:
    """Return the JSON decoder of a type, shared by all callers; if not `strict`, it also accepts numbers in strings.

    Raises TypeError for a type that msgspec does not support.
    """
    return _build_decoder(form, strict)


@overload
def convert(content: object, form: type[T]) -> T: ...


@overload
def convert(content: object, form: object) -> Any: ...  # noqa: ANN401 - a union is no type to the type checker


def convert(content: object, form: object) -> object:
    """Convert plain dictionaries and lists to the type `form`. Raises msgspec.ValidationError."""
    decoder_of(form)
    found: object = msgspec.convert(content, form)
    return found


@cache
def _build_decoder(form: object, strict: bool) -> msgspec.json.Decoder[Any]:  # noqa: FBT001 - part of the key
    with _BUILDING:
        return msgspec.json.Decoder(form, strict=strict)
