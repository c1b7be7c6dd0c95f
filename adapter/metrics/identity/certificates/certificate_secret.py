"""The content of the Secret with the serving certificate, as values and as a Kubernetes object.

    tls.crt, tls.key     the pair that every replica presents, as in any `kubernetes.io/tls` Secret
    ca.crt               all authorities that clients must trust now: of the past, the current and the next pair
    next.crt, next.key   the next pair, while clients do not trust it yet

The annotation says that this program made the Secret or may fill it; a Secret without it is never changed.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from adapter.metrics.identity.certificates.generations import (
    Generation,
    GenerationError,
    bundle_pem,
    read_authorities,
    read_generation,
)
from adapter.metrics.identity.certificates.issuing import certificate_pem, key_pem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cryptography import x509

    from adapter.foundation.objects.names import ObjectName

TYPE = "kubernetes.io/tls"
OURS = "tidewatch.io/serving-certificate"
"""The annotation, with the value `self-made`."""
SELF_MADE = "self-made"

CERTIFICATE, KEY, AUTHORITIES = "tls.crt", "tls.key", "ca.crt"
NEXT_CERTIFICATE, NEXT_KEY = "next.crt", "next.key"
_KEYS = (CERTIFICATE, KEY, AUTHORITIES, NEXT_CERTIFICATE, NEXT_KEY)


@dataclass(frozen=True, slots=True)
class Content:
    """The certificates of a Secret, complete and consistent."""

    current: Generation
    next: Generation | None
    authorities: tuple[x509.Certificate, ...]
    """All trusted authorities, including those of `current` and `next`."""


@dataclass(frozen=True, slots=True)
class Absent:
    """The Secret does not exist."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The object (the Secret or an APIService) could not be read; `cause` says why, and what to do."""

    cause: str


@dataclass(frozen=True, slots=True)
class Foreign:
    """The Secret belongs to another program."""


@dataclass(frozen=True, slots=True)
class Damaged:
    """The Secret belongs to this program, but its content cannot be used."""

    version: str
    cause: str


@dataclass(frozen=True, slots=True)
class Empty:
    """The Secret is empty, for this program to fill."""

    version: str


@dataclass(frozen=True, slots=True)
class Found:
    """The Secret belongs to this program, and its content is good."""

    version: str
    """The resourceVersion that a change must name."""
    content: Content


SecretState: TypeAlias = Absent | Unreadable | Foreign | Damaged | Empty | Found


def read_secret(document: Mapping[str, Any]) -> SecretState:
    """Return the content of a Secret in a document of the API server."""
    metadata = document.get("metadata") or {}
    if (metadata.get("annotations") or {}).get(OURS) != SELF_MADE:
        return Foreign()
    version = str(metadata.get("resourceVersion", ""))
    try:
        data = {key: base64.b64decode((document.get("data") or {}).get(key) or "", validate=True) for key in _KEYS}
        return Found(version, _content(data)) if any(data.values()) else Empty(version)
    except (binascii.Error, TypeError) as e:
        return Damaged(version, f"not base64: {e}")
    except GenerationError as e:
        return Damaged(version, str(e))


def _content(data: Mapping[str, bytes]) -> Content:
    authorities = read_authorities(data[AUTHORITIES])
    current = read_generation(data[CERTIFICATE], data[KEY], authorities)
    if not (data[NEXT_CERTIFICATE] or data[NEXT_KEY]):
        return Content(current, None, authorities)
    try:
        return Content(current, read_generation(data[NEXT_CERTIFICATE], data[NEXT_KEY], authorities), authorities)
    except GenerationError as e:
        raise GenerationError(f"{NEXT_CERTIFICATE} and {NEXT_KEY}: {e}") from e


def new_secret(name: ObjectName, content: Content, manager: str) -> dict[str, Any]:
    """Return the Secret to create; `manager` is the name of the program that keeps it."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "namespace": name.namespace,
            "name": name.name,
            "labels": {"app.kubernetes.io/managed-by": manager},
            "annotations": {OURS: SELF_MADE},
        },
        "type": TYPE,
        "data": {key: value for key, value in _data(content).items() if value is not None},
    }


def secret_patch(version: str, content: Content) -> dict[str, Any]:
    """Return a JSON merge patch (RFC 7386) that puts the content into a Secret of this resourceVersion."""
    return {"metadata": {"resourceVersion": version}, "data": _data(content)}


def _data(content: Content) -> dict[str, str | None]:
    """Return the values as base64; None for keys that must be absent."""
    coming = content.next
    return {
        CERTIFICATE: _base64(certificate_pem(content.current.certificate)),
        KEY: _base64(key_pem(content.current.key)),
        AUTHORITIES: _base64(bundle_pem(content.authorities)),
        NEXT_CERTIFICATE: _base64(certificate_pem(coming.certificate)) if coming else None,
        NEXT_KEY: _base64(key_pem(coming.key)) if coming else None,
    }


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
