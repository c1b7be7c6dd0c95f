"""Tokens of service accounts with times of our choice, signed by the cluster's own key.

TokenRequest issues no token for less than ten minutes. The API server accepts these tokens like its own.
"""

from __future__ import annotations

import base64
import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from tests.e2e.controlplane.processes import ISSUER

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.controlplane.client import Document

_BEFORE_SECONDS: Final = 3600


@dataclass(frozen=True, slots=True)
class Lifetime:
    """How long a token is valid from now on; below 0, it has expired."""

    seconds: float
    audience: str = ISSUER


def signed_token(account: Document, key_file: Path, lifetime: Lifetime) -> str:
    """Return a token of a service account; `account` is the object, and `key_file` the key that signs."""
    metadata = account["metadata"]
    namespace, name = metadata["namespace"], metadata["name"]
    now = time.time()
    claims = {
        "iss": ISSUER,
        "aud": [lifetime.audience],
        "sub": f"system:serviceaccount:{namespace}:{name}",
        "iat": int(now) - _BEFORE_SECONDS,
        "nbf": int(now) - _BEFORE_SECONDS,
        "exp": int(now + lifetime.seconds),
        "kubernetes.io": {"namespace": namespace, "serviceaccount": {"name": name, "uid": metadata["uid"]}},
    }
    signed = f"{_part({'alg': 'RS256', 'typ': 'JWT'})}.{_part(claims)}"
    key = serialization.load_pem_private_key(key_file.read_bytes(), None)
    assert isinstance(key, rsa.RSAPrivateKey)
    signature = key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
    return f"{signed}.{_text(signature)}"


def _part(content: dict[str, Any]) -> str:
    return _text(json.dumps(content).encode())


def _text(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()
