"""The plugin NodePorts: host ports that containers use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from recommender.kinds.cluster_size.predicates.pod_shapes import Refusal

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.constraints import HostPort
    from recommender.kinds.cluster_size.predicates.node_info import NodeInfo

PORT_REFUSALS: Final = (Refusal("NodePorts", "node(s) didn't have free ports for the requested pod ports"),)
_ALL_ADDRESSES: Final = "0.0.0.0"  # noqa: S104 - compared, never listened on


def has_ports(info: NodeInfo, ports: tuple[HostPort, ...]) -> bool:
    """Return whether all ports are free. A port of all addresses conflicts with the same port of any address."""
    return not any(_is_taken(info, port) for port in ports)


def _is_taken(info: NodeInfo, port: HostPort) -> bool:
    addresses = info.ports.get((port.protocol, port.port))
    if not addresses:
        return False
    return port.address == _ALL_ADDRESSES or _ALL_ADDRESSES in addresses or port.address in addresses
