"""An APIService as the API server keeps it: whose it is, and which authorities the API server trusts for it."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from adapter.identity.certificates.certificate_secret import ObjectName, Unknown
from adapter.identity.certificates.generations import GenerationError, bundle_pem, read_authorities

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cryptography import x509

PATH = "/apis/apiregistration.k8s.io/v1/apiservices"

_INJECTED_BY = "cert-manager.io/inject-"
"""How the annotations begin by which cert-manager is told to fill `caBundle`."""


@dataclass(frozen=True, slots=True)
class NotThere:
    """There is no APIService of this name."""


@dataclass(frozen=True, slots=True)
class Registered:
    """An APIService."""

    version: str
    """Its resourceVersion."""
    service: ObjectName | None
    """Where its requests go; None: kube-apiserver answers them itself."""
    authorities: frozenset[x509.Certificate]
    """What `caBundle` holds; empty where it is empty, or no PEM."""
    unverified: bool = False
    """`insecureSkipTLSVerify`: every certificate is taken."""
    injected: str = ""
    """The annotation by which somebody else fills `caBundle`; empty: nobody does."""


ApiServiceState: TypeAlias = NotThere | Unknown | Registered


def read_apiservice(document: Mapping[str, Any]) -> Registered:
    """Return an APIService as the API server gives it."""
    metadata, spec = document.get("metadata") or {}, document.get("spec") or {}
    service = spec.get("service")
    return Registered(
        version=str(metadata.get("resourceVersion", "")),
        service=ObjectName(str(service.get("namespace")), str(service.get("name"))) if service else None,
        authorities=bundle_of(spec.get("caBundle")),
        unverified=bool(spec.get("insecureSkipTLSVerify")),
        injected=next((key for key in metadata.get("annotations") or {} if key.startswith(_INJECTED_BY)), ""),
    )


def bundle_of(text: object) -> frozenset[x509.Certificate]:
    """Return the certificates of a `caBundle`; none where it is not base64 of PEM."""
    try:
        return frozenset(read_authorities(base64.b64decode(str(text or ""))))
    except (binascii.Error, GenerationError):
        return frozenset()


def bundle_patch(version: str, authorities: Iterable[x509.Certificate]) -> dict[str, Any]:
    """Return a JSON merge patch (RFC 7386) of an APIService of this resourceVersion that changes `caBundle` alone."""
    bundle = base64.b64encode(bundle_pem(authorities)).decode()
    return {"metadata": {"resourceVersion": version}, "spec": {"caBundle": bundle}}
