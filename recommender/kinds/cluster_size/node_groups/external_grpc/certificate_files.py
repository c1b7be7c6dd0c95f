"""The certificates and the key for the connection to a provider, from files that may be replaced at any time."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, TypeAlias

from adapter.foundation.files.credential_files import UNUSABLE, followed_credentials, reason_of
from adapter.foundation.files.file_contents import read_regular
from recommender.kinds.cluster_size.node_groups.plugin_reading import PluginError

if TYPE_CHECKING:
    from adapter.foundation.files.followed_files import FollowedFiles
    from recommender.kinds.cluster_size.model.size_settings import ExternalGrpcGroups

Contents: TypeAlias = "tuple[bytes | None, bytes | None, bytes | None]"
"""The CAs, the key and its certificate, in the order in which gRPC takes them; None for what is not configured."""

_WHAT = "externalGRPC TLS files"


class CertificateFilesError(PluginError):
    """A certificate or a key cannot be used, and none was before."""


def followed_certificates(settings: ExternalGrpcGroups) -> FollowedFiles[None, Contents]:
    """Read the files, and follow their changes; the last good contents stay in use. Raises CertificateFilesError."""
    named = (settings.ca_file, settings.cert_file, settings.key_file)
    paths = tuple(path for path in named if path is not None)
    try:
        return followed_credentials(_WHAT, paths, lambda: _usable(settings))
    except UNUSABLE as error:
        raise CertificateFilesError(
            f"{_WHAT} ({', '.join(map(str, paths))}): {reason_of(error)}: correct caFile, certFile and keyFile"
        ) from error


def _usable(settings: ExternalGrpcGroups) -> Contents:
    """Return the contents if OpenSSL can use them. Raises OSError and ValueError.

    gRPC takes whatever it is given, and reports unusable files only as a connection that fails.
    """
    contents = _read(settings)
    if settings.ca_file is not None:
        context = ssl.create_default_context(cafile=settings.ca_file)
        # Which keys are long enough is for gRPC to judge.
        context.set_ciphers("DEFAULT:@SECLEVEL=0")
        if settings.cert_file is not None:
            context.load_cert_chain(settings.cert_file, settings.key_file, password=_no_passphrase)
    # OpenSSL reads the files by itself.
    if _read(settings) != contents:
        raise ValueError("they are being replaced")
    return contents


def _read(settings: ExternalGrpcGroups) -> Contents:
    ca, key, certificate = (
        None if path is None else read_regular(path)
        for path in (settings.ca_file, settings.key_file, settings.cert_file)
    )
    return ca, key, certificate


def _no_passphrase() -> str:
    # Without this, OpenSSL prompts on the terminal and waits.
    raise ValueError("the key is encrypted: a key without a passphrase is needed")
