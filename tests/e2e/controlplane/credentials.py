"""Identities in a cluster: its authorities, the certificates of its programs, and kubeconfigs for callers.

Each purpose has an authority of its own, as careful installers make them. In particular, the request-header authority,
which may state anybody's name, signs nothing else.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from demo.machine.certificates import Authority, KeyPair
from demo.machine.files import replace_file

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

FRONT_PROXY_NAME: Final = "front-proxy-client"


@dataclass(frozen=True, slots=True)
class Key:
    """The key pair that signs service account tokens."""

    private_file: Path
    public_file: Path


class Authorities:
    """Everything that a control plane in `folder` trusts and signs with."""

    def __init__(self, folder: Path, names: Sequence[str], addresses: Sequence[str]) -> None:
        """`names` and `addresses` are those under which clients call the API server."""
        self.folder = folder
        self.serving = Authority(folder / "serving", "e2e-serving")
        self.clients = Authority(folder / "clients", "e2e-clients")
        self.api_server = self.serving.server(names, addresses)
        self.service_accounts = _signing_key(folder / "service-accounts")
        self.front_proxy_ca_file = folder / "front-proxy-ca.crt"
        self.front_proxy_certificate_file = folder / "front-proxy.crt"
        self.front_proxy_key_file = folder / "front-proxy.key"
        self._front_proxies = [self._new_front_proxy(1)]
        self._write_trusted_front_proxies()
        self.use_newest_front_proxy()

    def trust_new_front_proxy(self) -> Authority:
        """Make another request-header authority, trusted beside the older ones; return it."""
        made = self._new_front_proxy(len(self._front_proxies) + 1)
        self._front_proxies.append(made)
        self._write_trusted_front_proxies()
        return made

    def use_newest_front_proxy(self) -> None:
        """Let the aggregator authenticate with a certificate of the newest authority from now on."""
        pair = self._front_proxies[-1].client(FRONT_PROXY_NAME)
        replace_file(self.front_proxy_key_file, pair.key_file.read_text())
        replace_file(self.front_proxy_certificate_file, pair.certificate_file.read_text())

    def _new_front_proxy(self, number: int) -> Authority:
        return Authority(self.folder / f"front-proxy-{number}", f"e2e-front-proxy-{number}")

    def _write_trusted_front_proxies(self) -> None:
        bundle = "".join(authority.ca_file.read_text() for authority in self._front_proxies)
        replace_file(self.front_proxy_ca_file, bundle)

    def caller(self, name: str, groups: Sequence[str] = ()) -> KeyPair:
        """Return a client certificate of the user with this name in these groups."""
        return self.clients.client(name, groups)

    def kubeconfig(self, path: Path, url: str, pair: KeyPair) -> Path:
        """Write a kubeconfig (JSON is YAML) for the caller with this certificate."""
        user = {"client-certificate": str(pair.certificate_file), "client-key": str(pair.key_file)}
        cluster = {"server": url, "certificate-authority": str(self.serving.ca_file)}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "e2e", "cluster": cluster}],
            "users": [{"name": "e2e", "user": user}],
            "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": "e2e"}}],
            "current-context": "e2e",
        }
        replace_file(path, json.dumps(document, indent=1))
        return path


def _signing_key(folder: Path) -> Key:
    folder.mkdir(parents=True)
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    made = Key(folder / "sa.key", folder / "sa.pub")
    made.private_file.touch(mode=0o600)
    made.private_file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
    )
    made.public_file.write_bytes(
        key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    return made
