"""Reads an identity from request headers, line by line.

Each group is a header line of its own. Lines are never joined and values never split, since a group's name may hold a
comma. Names are compared case-insensitively, but otherwise exactly: `X_Remote_User` is another header.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from adapter.metrics.identity.callers import UnauthenticatedError

_BROKEN_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2})")


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity in the headers of one request."""

    user: str
    groups: tuple[str, ...]
    uid: str
    extra: dict[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class IdentityHeaders:
    """The names of the headers that carry an identity, in lower case."""

    users: tuple[str, ...]
    groups: tuple[str, ...]
    extra_prefixes: tuple[str, ...]
    uids: tuple[str, ...]

    @classmethod
    def named(
        cls, users: Iterable[str], groups: Iterable[str], extra_prefixes: Iterable[str], uids: Iterable[str]
    ) -> IdentityHeaders:
        """Return an instance for names in any case."""
        return cls(
            _lowercase_names(users), _lowercase_names(groups), _lowercase_names(extra_prefixes), _lowercase_names(uids)
        )

    def are_in(self, name: str) -> bool:
        """Return whether a header with this name carries a part of an identity."""
        lowered = name.lower()
        return (
            lowered in self.users
            or lowered in self.groups
            or lowered in self.uids
            or lowered.startswith(self.extra_prefixes)
        )

    def read(self, headers: Sequence[tuple[str, str]]) -> Identity:
        """Return the identity in the headers; call it only for a verified front proxy.

        The user is the first value that is not empty, groups are all values of all their headers. Raises
        UnauthenticatedError if there is no user, or a value that is not UTF-8.
        """
        lines = [(name.lower(), _text(value)) for name, value in headers if self.are_in(name)]
        user = next(_values(lines, self.users), "")
        if not user:
            raise UnauthenticatedError("the front proxy named no user")
        return Identity(
            user, tuple(_values(lines, self.groups)), next(_values(lines, self.uids), ""), self._extra(lines)
        )

    def _extra(self, lines: list[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        for prefix in self.extra_prefixes:
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
