"""Requests that are sent exactly once, so that the answers of an adapter, or of the aggregator, can be counted.

`ApiClient` sends a request again if its connection broke, which would hide a truncated answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import urllib3

from tests.e2e.controlplane.client import Reply

if TYPE_CHECKING:
    from collections.abc import Mapping

    from demo.machine.certificates import KeyPair

CONNECTIONS: Final = 16
_SECONDS: Final = urllib3.Timeout(connect=10.0, read=30.0)


class PlainClient:
    """A caller of one server. Thread-safe."""

    def __init__(
        self,
        host: str,
        port: int,
        authority: str,
        *,
        name: str | None = None,
        pair: KeyPair | None = None,
        token: str | None = None,
    ) -> None:
        """`authority` is the CA of the server's certificate in PEM; `name` is the certificate's if it is not `host`."""
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._pool = urllib3.HTTPSConnectionPool(
            host,
            port,
            timeout=_SECONDS,
            retries=False,
            maxsize=CONNECTIONS,
            ca_cert_data=authority,
            server_hostname=name or host,
            assert_hostname=name,
            cert_file=str(pair.certificate_file) if pair else None,
            key_file=str(pair.key_file) if pair else None,
        )

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> Reply:
        """Return the answer, whatever its status. Raises urllib3's errors."""
        response = self._pool.request(
            "GET", path, headers={"Accept": "application/json", **self._headers, **(headers or {})}
        )
        return Reply(response.status, dict(response.headers), response.data)

    def close(self) -> None:
        """Close the connections that are not in use."""
        self._pool.close()
