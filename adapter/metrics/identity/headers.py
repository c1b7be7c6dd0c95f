"""Reads an identity from request headers, line by line.

Each group is a header line of its own. Lines are never joined and values never split, since a group's name may hold a
comma. Names are compared case-insensitively, but otherwise exactly: `X_Remote_User` is another header.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from adapter.metrics.identity.callers import IdentitySettingsError, UnauthenticatedError

_BROKEN_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2})")


@dataclass(frozen=True, slots=True)
class HeaderNames:
    """The headers that carry the identity behind the front proxy; their names are case-insensitive."""

    users: tuple[str, ...] = ("X-Remote-User",)
    groups: tuple[str, ...] = ("X-Remote-Group",)
    extra_prefixes: tuple[str, ...] = ("X-Remote-Extra-",)
    uids: tuple[str, ...] = ("X-Remote-Uid",)

    def __post_init__(self) -> None:
        """Raise IdentitySettingsError for names that a header cannot have."""
        if not self.users:
            raise IdentitySettingsError("no header is named that carries the user (requestheader-username-headers)")
        listed = (self.users, self.groups, self.extra_prefixes, self.uids)
        if any(not name.strip() for names in listed for name in names):
            raise IdentitySettingsError("an empty header name is listed for the front proxy (requestheader-…)")


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity in the headers of one request."""

    user: str
    groups: tuple[str, ...]
    uid: str
    extra: dict[str, tuple[str, ...]]


class IdentityHeaders:
    """Reads the headers of these names, which are compared in lower case."""

    def __init__(self, names: HeaderNames) -> None:
        self._users = _lowercase_names(names.users)
        self._groups = _lowercase_names(names.groups)
        self._extra_prefixes = _lowercase_names(names.extra_prefixes)
        self._uids = _lowercase_names(names.uids)

    def are_in(self, name: str) -> bool:
        """Return whether a header with this name carries a part of an identity."""
        lowered = name.lower()
        return (
            lowered in self._users
            or lowered in self._groups
            or lowered in self._uids
            or lowered.startswith(self._extra_prefixes)
        )

    def read(self, headers: Sequence[tuple[str, str]]) -> Identity:
        """Return the identity in the headers; call it only for a verified front proxy.

        The user is the first value that is not empty, groups are all values of all their headers. Raises
        UnauthenticatedError if there is no user, or a value that is not UTF-8.
        """
        lines = [(name.lower(), _text(value)) for name, value in headers if self.are_in(name)]
        user = next(_values(lines, self._users), "")
        if not user:
            raise UnauthenticatedError("the front proxy named no user")
        return Identity(
            user, tuple(_values(lines, self._groups)), next(_values(lines, self._uids), ""), self._extra(lines)
        )

    def _extra(self, lines: list[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        for prefix in self._extra_prefixes:
            for name, value in lines:
                if name.startswith(prefix):
                    key = _unescape_key(name.removeprefix(prefix))
                    found[key] = (*found.get(key, ()), value)
        return found


def _lowercase_names(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name.strip().lower() for name in names)


def _values(lines: list[tuple[str, str]], names: tuple[str, ...]) -> Iterator[str]:
    return (value for wanted in names for name, value in lines if name == wanted and value)


def _text(value: str) -> str:
    """Return the value decoded as UTF-8; servers decode the bytes of a header as Latin-1."""
    if value.isascii():
        return value
    try:
        return value.encode("latin-1").decode()
    except UnicodeError as e:
        raise UnauthenticatedError("an identity header is not UTF-8") from e


def _unescape_key(key: str) -> str:
    """Return the key with percent-escapes decoded, or unchanged if they are malformed, as kube-apiserver does."""
    if "%" not in key or _BROKEN_ESCAPE.search(key):
        return key
    try:
        return unquote_to_bytes(key).decode()
    except UnicodeError:
        return key
