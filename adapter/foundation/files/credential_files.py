"""Credentials in files that may be replaced at any time: the last good ones stay in use.

Kubernetes renews mounted tokens about once an hour, and certificates whenever their issuer does, by replacing a folder
while the process runs. If the new files cannot be read, or a key does not match its certificate yet, this is logged
once and retried every second, since the state of the files does not show every cause, such as permissions.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Final, TypeVar
from weakref import WeakSet

from adapter.foundation.files.file_contents import LARGEST_BYTES, read_regular
from adapter.foundation.files.followed_files import FollowedFiles, by_stamp

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

LOOK_SECONDS: Final = 1.0
_LARGEST_TOKEN_BYTES: Final = 64 << 10
UNUSABLE: Final[tuple[type[Exception], ...]] = (OSError, ValueError)
"""Errors raised for credentials that cannot be used."""

_log = logging.getLogger(__name__)

T = TypeVar("T")


class CredentialState:
    """Whether the newest version of some credentials is in use. Changes of this state are logged. For any thread."""

    def __init__(self, what: str, *, can_change: bool = True) -> None:
        """Take the name `what` of the credentials for the log and, if they can change, for the metric."""
        self.what = what
        self.refusal: str | None = None
        """Why the newest version cannot be used, so that an earlier one is; None if the newest version is in use."""
        if can_change:
            with _registering:
                _in_use.add(self)

    def taken_in(self) -> None:
        """Log that a newer version is in use."""
        self.refusal = None
        _log.info("%s: the new version is in use", self.what)

    def refuse(self, error: Exception) -> None:
        """Log why a newer version is not in use, unless that was the last thing logged."""
        reason = reason_of(error)
        if reason != self.refusal:
            _log.warning(
                "%s: what is there now cannot be used; the last good version stays in use: %s", self.what, reason
            )
        self.refusal = reason


_registering: Final = threading.Lock()
_in_use: Final[WeakSet[CredentialState]] = WeakSet()


def refused_credentials() -> Mapping[str, bool]:
    """Return, for all credentials of this process that may change, whether their newest version cannot be used."""
    with _registering:
        states = list(_in_use)
    found: defaultdict[str, bool] = defaultdict(bool)
    for state in states:
        found[state.what] |= state.refusal is not None
    return found


def followed_credentials(
    what: str,
    paths: Sequence[Path],
    load: Callable[[], T],
    clock: Callable[[], float] = time.monotonic,
    unusable: tuple[type[Exception], ...] = UNUSABLE,
) -> FollowedFiles[None, T]:
    """Load credentials once, and follow their files; `current` returns the last good ones, the same until they change.

    Raises the errors of `load`. `what` names the credentials, and `clock` returns seconds. `unusable` are the errors
    that mean that the files cannot be used. Their messages are logged, so they must not contain a secret; the message
    of a UnicodeError is replaced.
    """
    # The functions below refer to the state alone: without a cycle, it is forgotten together with what is returned.
    state = CredentialState(f"{what} ({', '.join(map(str, paths))})", can_change=bool(paths))
    return FollowedFiles(
        by_stamp(paths),
        lambda _: load(),
        unusable=unusable,
        on_success=lambda _: state.taken_in(),
        on_failure=state.refuse,
        loads_refused_again=True,
        look_every_seconds=LOOK_SECONDS,
        clock=clock,
    )


def token_of(path: Path) -> str:
    """Return the token in a file, stripped of white space. Raises OSError and ValueError, as `secret_of` does."""
    token = secret_of(path, _LARGEST_TOKEN_BYTES)
    if not token.isascii():
        raise ValueError("it holds characters that no header can carry")
    return token


def secret_of(path: Path, largest_bytes: int = LARGEST_BYTES) -> str:
    """Return the only line of a file, stripped of white space. Raises OSError and ValueError (see `reason_of`)."""
    # Some editors begin a file with a byte order mark.
    secret = read_regular(path, largest_bytes).decode("utf-8-sig").strip()
    if not secret:
        raise ValueError("it is empty")
    if not secret.isprintable():
        raise ValueError("it holds more than one line or control characters")
    return secret


def reason_of(error: Exception) -> str:
    """Return the reason for an error, without the file's content, which the errors of decoders quote."""
    if isinstance(error, UnicodeError):
        return "it is not UTF-8 text"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error)
