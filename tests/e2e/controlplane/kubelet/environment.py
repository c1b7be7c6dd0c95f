"""A container's environment, composed as a kubelet composes it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tests.e2e.controlplane.kubelet.spec import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tests.e2e.controlplane.client import Document
    from tests.e2e.controlplane.kubelet.spec import Container

_REFERENCE: Final = re.compile(r"\$(?:\$|\(([^()]+)\))")
_MAP_FIELD: Final = re.compile(r"^metadata\.(labels|annotations)\['(.+)'\]$")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The sources of a container's environment besides its own specification."""

    pod: Document
    """The pod, with the node's name in it."""
    pod_address: str
    node_address: str
    api_host: str
    api_port: int
    services: Sequence[Document]
    """The Services of the pod's namespace; none if the pod wants no service links."""
    config_map: Callable[[str], Mapping[str, str] | None]
    """Returns the data of a ConfigMap of the pod's namespace, or None."""
    secret: Callable[[str], Mapping[str, str] | None]
    hosts: Callable[[], str]
    """Returns the current content of /etc/hosts."""


def compose(container: Container, around: Surroundings) -> dict[str, str]:
    """Return the container's environment. Raises RefusedError if a required object or key is missing."""
    found = dict(container.image_environment)
    found["HOSTNAME"] = around.pod["metadata"]["name"]
    found |= _of_the_api(around)
    for service in around.services:
        found |= _links(service)
    for source in container.env_from:
        found |= _all_of(source, around)
    for entry in container.env:
        if (value := _value(entry, found, around)) is not None:
            found[entry["name"]] = value
    return found


def expanded(text: str, environment: Mapping[str, str]) -> str:
    """Replace `$(NAME)` as Kubernetes does: unknown names stay as they are, and `$$` is one dollar."""

    def replacement(match: re.Match[str]) -> str:
        return "$" if match[1] is None else environment.get(match[1], match[0])

    return _REFERENCE.sub(replacement, text)


def field(path: str, around: Surroundings) -> str:
    """Return the value of a `fieldRef`; raises RefusedError."""
    metadata = around.pod["metadata"]
    if match := _MAP_FIELD.match(path):
        return str((metadata.get(match[1]) or {}).get(match[2], ""))
    known: dict[str, str] = {
        "metadata.name": metadata["name"],
        "metadata.namespace": metadata["namespace"],
        "metadata.uid": metadata["uid"],
        "spec.nodeName": around.pod["spec"].get("nodeName", ""),
        "spec.serviceAccountName": around.pod["spec"].get("serviceAccountName", ""),
        "status.podIP": around.pod_address,
        "status.podIPs": around.pod_address,
        "status.hostIP": around.node_address,
    }
    if path not in known:
        raise RefusedError(f"fieldRef {path} is not supported here")
    return known[path]


def _value(entry: Document, so_far: Mapping[str, str], around: Surroundings) -> str | None:
    source = entry.get("valueFrom")
    if not source:
        return expanded(entry.get("value", ""), so_far)
    ((kind, of),) = source.items()
    if kind == "fieldRef":
        return field(of["fieldPath"], around)
    if kind not in ("configMapKeyRef", "secretKeyRef"):
        raise RefusedError(f"env {entry['name']}: valueFrom.{kind} is not supported here")
    read = around.config_map if kind == "configMapKeyRef" else around.secret
    value = (read(of["name"]) or {}).get(of["key"])
    if value is None and not of.get("optional"):
        raise RefusedError(f"env {entry['name']}: {kind} {of['name']} has no key {of['key']}")
    return value


def _all_of(source: Document, around: Surroundings) -> dict[str, str]:
    prefix = source.get("prefix", "")
    of = source.get("configMapRef") or source.get("secretRef")
    if not of:
        raise RefusedError(f"envFrom: {sorted(source)} is not supported here")
    data = (around.config_map if "configMapRef" in source else around.secret)(of["name"])
    if data is None and not of.get("optional"):
        raise RefusedError(f"envFrom: {of['name']} does not exist")
    return {f"{prefix}{key}": value for key, value in (data or {}).items()}


def _of_the_api(around: Surroundings) -> dict[str, str]:
    ports = [{"name": "https", "port": around.api_port, "protocol": "TCP"}]
    return dict(_link_variables("kubernetes", around.api_host, ports))


def _links(service: Document) -> dict[str, str]:
    address = service["spec"].get("clusterIP") or "None"
    if address == "None":
        return {}
    return dict(_link_variables(service["metadata"]["name"], address, service["spec"].get("ports") or []))


def _link_variables(name: str, address: str, ports: Sequence[Document]) -> Iterator[tuple[str, str]]:
    """Yield the variables that a Service adds to its namespace's pods; their form comes from Docker's links."""
    prefix = name.upper().replace("-", "_")
    first = ports[0]
    yield f"{prefix}_SERVICE_HOST", address
    yield f"{prefix}_SERVICE_PORT", str(first["port"])
    yield f"{prefix}_PORT", _url(address, first)
    for port in ports:
        if port.get("name"):
            yield f"{prefix}_SERVICE_PORT_{port['name'].upper().replace('-', '_')}", str(port["port"])
        protocol = port.get("protocol", "TCP")
        stem = f"{prefix}_PORT_{port['port']}_{protocol}"
        yield stem, _url(address, port)
        yield f"{stem}_PROTO", protocol.lower()
        yield f"{stem}_PORT", str(port["port"])
        yield f"{stem}_ADDR", address


def _url(address: str, port: Document) -> str:
    return f"{port.get('protocol', 'TCP').lower()}://{address}:{port['port']}"
