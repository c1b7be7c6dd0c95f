"""Reads the credentials for Prometheus and its CA from a kubeconfig, which may be replaced while the process runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from adapter.foundation.files.file_contents import require_regular
from adapter.foundation.files.home_paths import home_path
from adapter.foundation.sources.kubernetes.credentials.access import package_transport
from adapter.foundation.sources.kubernetes.credentials.plain_kubeconfig import current_user
from adapter.foundation.sources.kubernetes.errors import ConfigurationError
from adapter.foundation.sources.prometheus.prometheus_settings import Access, AccessFiles

_MADE_BY_A_PROGRAM: Final = ("exec", "auth-provider")


class KubeconfigError(ValueError):
    """The kubeconfig cannot be used. The message says why, without its content."""


def kubeconfig_files(path: str, token_file: Path | None, *, with_tls: bool) -> AccessFiles:
    """Return the access that the current context of a kubeconfig describes, with a token file in place of its token.

    Its `read` raises KubeconfigError.
    """
    paths = tuple(home_path(part) for part in path.split(os.pathsep) if part)

    def read() -> Access:
        try:
            return _read(path, paths, token_file, with_tls=with_tls)
        except ConfigurationError as error:
            raise KubeconfigError(str(error)) from None
        except OSError as error:
            raise KubeconfigError(f"{error.filename}: {error.strerror}: check the path and its permissions") from None

    return AccessFiles(paths, read, "" if token_file else _notice(path, paths))


def _notice(path: str, paths: tuple[Path, ...]) -> str:
    try:
        require_regular(paths)
    except OSError:
        return ""
    user = current_user(path)
    program = next((key for key in _MADE_BY_A_PROGRAM if key in user), None)
    if program is None:
        return ""
    return (
        f"--prometheus-auth-config: the program of {program!r} makes the credentials, and is asked again only when"
        f" {path} changes: for credentials that expire, let it write a file for --prometheus-token-file"
    )


def _read(path: str, paths: tuple[Path, ...], token_file: Path | None, *, with_tls: bool) -> Access:
    require_regular(paths)
    user = current_user(path)
    named = user.get("tokenFile")
    if token_file is None and isinstance(named, str) and named and "token" not in user:
        token_file = paths[0].parent / named
        # The package would wait for the writer of a FIFO.
        require_regular([token_file])
    configuration = package_transport(path, remedy="correct the file").configuration
    headers: tuple[tuple[str, str], ...] = ()
    if token_file is None:
        # The package has renamed the key under which it keeps the token; this call knows both.
        token = configuration.get_api_key_with_prefix("BearerToken", alias="authorization")
        headers = (("Authorization", token),) if token else ()
    if not with_tls:
        return Access(token_file=token_file, headers=headers)
    return Access(
        _path(configuration.ssl_ca_cert),
        _path(configuration.cert_file),
        _path(configuration.key_file),
        token_file,
        headers,
    )


def _path(name: str | None) -> Path | None:
    return Path(name) if name else None
