"""Names of headless Services in a container's /etc/hosts, in place of the cluster's DNS.

The names are those that exist when the container starts. Addresses of other Services are not answered here.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tests.e2e.controlplane.client import ApiClient, Document

_SLICES: Final = "/apis/discovery.k8s.io/v1/endpointslices"
_SERVICE: Final = "kubernetes.io/service-name"


def hosts_of(client: ApiClient) -> str:
    """Return this machine's own /etc/hosts, and below it the names of the cluster's headless Services."""
    own = Path("/etc/hosts")
    lines = host_lines(client.items("/api/v1/services"), client.items(_SLICES))
    return "\n".join([own.read_text() if own.exists() else "", *lines, ""])


def host_lines(services: Iterable[Document], slices: Iterable[Document]) -> Iterator[str]:
    """Yield a line for each address of a headless Service: the address and the Service's names."""
    headless = {_key(one, one["metadata"]["name"]) for one in services if one["spec"].get("clusterIP") == "None"}
    for one in slices:
        namespace, name = key = _key(one, (one["metadata"].get("labels") or {}).get(_SERVICE, ""))
        if key in headless:
            short = f"{name}.{namespace}"
            for endpoint in one.get("endpoints") or []:
                for address in endpoint["addresses"]:
                    yield f"{address} {short} {short}.svc {short}.svc.cluster.local"


def _key(document: Document, name: str) -> tuple[str, str]:
    return document["metadata"]["namespace"], name
