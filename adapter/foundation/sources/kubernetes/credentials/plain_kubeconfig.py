"""Kubeconfigs and service accounts with plain credentials: a token, a token file, or a client certificate.

Anything else in a kubeconfig, and anything wrong with it or with a service account, is left to the package
`kubernetes`, which reads it and says what is wrong. So this reader gives up at the first thing that it does not know.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from adapter.foundation.files.credential_files import followed_credentials, token_of
from adapter.foundation.files.file_contents import LARGEST_BYTES, opened_regular
from adapter.foundation.files.followed_files import stamps_of
from adapter.foundation.files.home_paths import home_path
from adapter.foundation.sources.kubernetes.errors import ConfigurationError
from adapter.foundation.sources.kubernetes.transport import PlainAccess

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from adapter.foundation.files.followed_files import FollowedFiles, Stamp

_CLUSTER_KEYS: Final = frozenset(
    {
        "server",
        "certificate-authority",
        "certificate-authority-data",
        "insecure-skip-tls-verify",
        "tls-server-name",
        "extensions",
    }
)
_USER_KEYS: Final = frozenset(
    {
        "token",
        "tokenFile",
        "client-certificate",
        "client-certificate-data",
        "client-key",
        "client-key-data",
        "extensions",
    }
)

_DEEPEST: Final = 100
"""Deepest level of nesting that is read here; libyaml ends the process at the end of its stack."""
_MOST_LINKS: Final = 40
"""The limit of Linux for one path."""


class _OtherError(Exception):
    """The kubeconfig has something that is not plain, or is wrong."""


class _Files:
    """The files that are read, with their state before reading; relative paths start at `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stamps: dict[Path, Stamp] = {}

    def text(self, path: Path) -> str:
        """Return the content of a file; raises OSError or ValueError."""
        require_end(path)
        (self.stamps[path],) = stamps_of([path])
        return path.read_text()


def require_end(path: Path) -> None:
    """Raise OSError for a file that would block or have no end: a FIFO, a device, or one of more than 16 MiB.

    What is open already, such as the shell's `<(…)` and `/dev/stdin`, is read whatever it is.
    """
    if not _is_open(path):
        with opened_regular(path, LARGEST_BYTES):
            pass


def _is_open(path: Path) -> bool:
    """Return whether a path names a file that this process has open, or is a link to such a path."""
    folders = [Path(folder) for folder in ("/dev/fd", "/proc/self/fd", f"/proc/{os.getpid()}/fd")]
    for _ in range(_MOST_LINKS):
        if path.parent in folders or not path.is_symlink():
            break
        path = path.parent / path.readlink()
    return path.parent in folders


def plain_access(path: str, context: str | None) -> PlainAccess | None:
    """Return the access that a context of a kubeconfig describes; None if the package has to read it.

    Raises ConfigurationError for a token file that is empty.
    """
    file = home_path(path)
    try:
        files = _Files(file.parent)
        content = _as_mapping(_read(file, files))
        named = _entry(content, "contexts", "context", context or _text(content["current-context"]))
        cluster = _entry(content, "clusters", "cluster", _text(named["cluster"]))
        user = _entry(content, "users", "user", _text(named["user"]))
        if not cluster.keys() <= _CLUSTER_KEYS or not user.keys() <= _USER_KEYS:
            return None
        return _access(files, cluster, user)
    except (_OtherError, OSError, ValueError, KeyError, RecursionError):
        return None


def current_user(path: str) -> Mapping[str, Any]:
    """Return the user entry of the current context of a kubeconfig; empty if this reader does not find one."""
    file = home_path(path)
    try:
        content = _as_mapping(_read(file, _Files(file.parent)))
        named = _entry(content, "contexts", "context", _text(content["current-context"]))
        return _entry(content, "users", "user", _text(named["user"]))
    except (_OtherError, OSError, ValueError, KeyError, RecursionError):
        return {}


def _access(files: _Files, cluster: Mapping[str, Any], user: Mapping[str, Any]) -> PlainAccess:
    host = _text(cluster["server"]).rstrip("/")
    if not host.startswith(("http://", "https://")):
        raise _OtherError
    skips = cluster.get("insecure-skip-tls-verify", False)
    if not isinstance(skips, bool):
        raise _OtherError
    authority = _pem(files, cluster, "certificate-authority")
    certificate, key = _pem(files, user, "client-certificate"), _pem(files, user, "client-key")
    if (certificate is None) is not (key is None):
        raise _OtherError
    return PlainAccess(
        host=host,
        token=_token(files.folder, user),
        authorities=authority,
        client_certificate=None if certificate is None or key is None else f"{certificate}\n{key}",
        verifies=not skips,
        server_name=_text(cluster["tls-server-name"]) if "tls-server-name" in cluster else None,
        files=tuple(files.stamps.items()),
    )


def _token(folder: Path, user: Mapping[str, Any]) -> Callable[[], str] | None:
    if "token" in user and "tokenFile" in user:
        raise _OtherError
    if "tokenFile" in user:
        # When the token is refused, the file is read again with the rest of the kubeconfig.
        file = folder / _text(user["tokenFile"])
        token = file.read_text().strip()
        if not token:
            # The package would send requests without credentials.
            raise ConfigurationError(f"kubeconfig: the token file {file} is empty: write a token into it")
    elif "token" in user:
        token = _text(user["token"])
    else:
        return None
    if not token:
        raise _OtherError
    return lambda: f"Bearer {token}"


def _pem(files: _Files, entry: Mapping[str, Any], key: str) -> str | None:
    """Return a certificate or a key from a file or from the kubeconfig itself; None if there is none."""
    data = f"{key}-data"
    if key in entry and data in entry:
        raise _OtherError
    if key in entry:
        return files.text(files.folder / _text(entry[key]))
    if data not in entry:
        return None
    try:
        return base64.b64decode(_text(entry[data]), validate=False).decode()
    except binascii.Error as error:
        raise _OtherError from error


def _entry(content: Mapping[str, Any], key: str, inner: str, name: str) -> dict[str, Any]:
    """Return the content of the only entry with that name."""
    entries = content[key]
    found = [each for each in entries if _as_mapping(each).get("name") == name] if isinstance(entries, list) else []
    if len(found) != 1:
        raise _OtherError
    return without_empty(_as_mapping(found[0][inner]))


def without_empty(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of an entry that have a value; an empty one counts as missing, as in client-go."""
    return {key: value for key, value in entry.items() if value not in ("", None)}


def _as_mapping(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _OtherError
    return value


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise _OtherError
    return value


def _read(file: Path, files: _Files) -> object:
    if os.pathsep in str(file):
        raise _OtherError
    return content_of(files.text(file))


def content_of(text: str) -> object:
    """Return what a kubeconfig contains; raises ValueError, or RecursionError if its levels are too many."""
    if text.startswith("{"):
        with suppress(ValueError):
            return json.loads(text)
    import yaml  # noqa: PLC0415 - stays unloaded where no kubeconfig is read, or one in JSON

    try:
        _require_shallow(text)
        return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe
    except yaml.YAMLError as error:
        raise ValueError("not YAML") from error


def require_quick(path: Path) -> None:
    """Raise OSError as `require_end` does, and RecursionError for a file with more levels than are read quickly.

    The package reads with the Python of PyYAML, whose time grows with the square of the levels. What cannot be read at
    all is left to it.
    """
    require_end(path)
    # What is open already may be readable only once.
    if not _is_open(path):
        import yaml  # noqa: PLC0415 - likewise

        with suppress(ValueError, yaml.YAMLError):
            _require_shallow(path.read_text())


def _require_shallow(text: str) -> None:
    """Raise RecursionError for YAML with too many levels, without reading beyond them."""
    import yaml  # noqa: PLC0415 - likewise

    depth = 0
    for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise RecursionError(f"more than {_DEEPEST} levels")


def service_account_access(folder: str | Path, environ: Mapping[str, str]) -> PlainAccess | None:
    """Return the access of a pod's service account; None if something is missing, which the package names."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        return None
    try:
        files = _Files(Path(folder))
        authorities = files.text(files.folder / "ca.crt")
        token = service_account_token(files.folder / "token")
    except (OSError, ValueError):
        return None
    if not authorities:
        return None
    named = f"[{host}]" if ":" in host or "%" in host else host
    return PlainAccess(
        host=f"https://{named}:{port}", token=token.current, authorities=authorities, files=tuple(files.stamps.items())
    )


def service_account_token(path: Path, clock: Callable[[], float] = time.monotonic) -> FollowedFiles[None, str]:
    """Return the Authorization header for a token that the kubelet renews; raises OSError, ValueError."""
    return followed_credentials("token of the service account", [path], lambda: f"bearer {token_of(path)}", clock)
