"""An APIService in the API server: its Service, and the authorities that the API server trusts for it."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from adapter.foundation.objects.names import ObjectName
from adapter.metrics.identity.certificates.certificate_secret import Unreadable
from adapter.metrics.identity.certificates.generations import GenerationError, bundle_pem, read_authorities

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cryptography import x509

PATH = "/apis/apiregistration.k8s.io/v1/apiservices"

_INJECTED_BY = "cert-manager.io/inject-"
"""Prefix of the annotations that make cert-manager fill in `caBundle`."""


@dataclass(frozen=True, slots=True)
class NotThere:
    """There is no APIService of this name."""


@dataclass(frozen=True, slots=True)
class Registered:
    """An APIService that exists."""

    version: str
    """The resourceVersion of the object."""
    service: ObjectName | None
    """The Service that serves the API; None if kube-apiserver serves it itself."""
    authorities: frozenset[x509.Certificate]
    """The certificates in `caBundle`; empty if it is empty or not PEM."""
    unverified: bool = False
    """Whether `insecureSkipTLSVerify` is set, so that every certificate is accepted."""
    injected: str = ""
    """The annotation that makes another program fill in `caBundle`; empty if there is none."""
    trusts_system: bool = False
    """Whether `caBundle` is empty, so that kube-apiserver trusts the CAs of its own machine."""


ApiServiceState: TypeAlias = NotThere | Unreadable | Registered


def read_apiservice(document: Mapping[str, Any]) -> Registered:
    """Return the APIService in a document of the API server."""
    metadata, spec = document.get("metadata") or {}, document.get("spec") or {}
    service = spec.get("service")
    return Registered(
        version=str(metadata.get("resourceVersion", "")),
        service=ObjectName(str(service.get("namespace")), str(service.get("name"))) if service else None,
        authorities=bundle_of(spec.get("caBundle")),
        unverified=bool(spec.get("insecureSkipTLSVerify")),
        injected=next((key for key in metadata.get("annotations") or {} if key.startswith(_INJECTED_BY)), ""),
        trusts_system=not spec.get("caBundle"),
    )


def bundle_of(text: object) -> frozenset[x509.Certificate]:
    """Return the certificates of a `caBundle`; none if it is not base64-encoded PEM."""
    try:
        return frozenset(read_authorities(base64.b64decode(str(text or ""))))
    except (binascii.Error, GenerationError):
        return frozenset()


def bundle_patch(version: str, authorities: Iterable[x509.Certificate]) -> dict[str, Any]:
    """Return a JSON merge patch (RFC 7386) for an APIService of this resourceVersion that changes only `caBundle`."""
    bundle = base64.b64encode(bundle_pem(authorities)).decode()
    return {"metadata": {"resourceVersion": version}, "spec": {"caBundle": bundle}}
