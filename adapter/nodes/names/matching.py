"""Determines which Kubernetes node a series describes, by its labels and the Node objects. Pure.

`instance` depends on the installation: the node's name, `IP:9100`, a short or a full host name. Evidence is examined
from the strongest to the weakest: labels that name a node, the name of a node, an address, a host name. A text that
fits two nodes does not match, so a node never gets the load of another.
"""

from __future__ import annotations

import ipaddress
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from adapter.foundation.cluster.values.state import ClusterNode
    from adapter.nodes.model.scheduling_settings import NodeMatch

NODE_LABELS: Final = ("node", "kubernetes_node", "nodename", "Hostname")
"""Labels that name a node if relabeling adds them; `Hostname` is that of the DCGM exporter."""
_HOSTNAME_LABEL = "kubernetes.io/hostname"
_IP_TYPES = frozenset({"InternalIP", "ExternalIP"})


@dataclass(frozen=True, slots=True)
class NodeNames:
    """Names, addresses and host names of all nodes."""

    match: NodeMatch
    names: Mapping[str, frozenset[str]]
    """Nodes by their names in lower case."""
    addresses: Mapping[str, frozenset[str]]
    """Nodes by address in canonical notation."""
    hosts: Mapping[str, frozenset[str]]
    """Nodes by host name in lower case: the node's name, its label `kubernetes.io/hostname`, its DNS names."""
    short_of_full: Mapping[str, frozenset[str]]
    """Nodes with a full host name (with a domain), by its first part."""

    def candidates(self, labels: Mapping[str, str], uname: str = "") -> frozenset[str]:
        """Return the nodes that the strongest evidence fits: a single node is a match, several are ambiguous.

        `uname` is the host name that the exporter of the same instance reports in `node_uname_info`.
        """
        ambiguous: frozenset[str] = frozenset()
        for found in self._evidence(labels, uname):
            if len(found) == 1:
                return found
            ambiguous = ambiguous or found
        return ambiguous

    def _evidence(self, labels: Mapping[str, str], uname: str) -> Iterable[frozenset[str]]:
        instance = labels.get("instance", "").strip()
        bare = without_port(instance)
        if self.match in ("auto", "nodename"):
            named = [labels[label].strip() for label in NODE_LABELS if labels.get(label)]
            yield from (self._by_name(text) for text in named)
        else:
            named = []
        if self.match in ("auto", "instance"):
            yield self._by_name(instance)
            yield self._by_name(bare)
        if self.match in ("auto", "ip"):
            yield self._by_address(bare)
        if self.match == "auto":
            yield self._by_host(bare)
        if self.match in ("auto", "nodename"):
            for text in (*named, uname):
                yield self._by_host(text)

    def _by_name(self, text: str) -> frozenset[str]:
        return self.names.get(text.lower(), frozenset())

    def _by_address(self, text: str) -> frozenset[str]:
        address = canonical_address(text)
        return self.addresses.get(address, frozenset()) if address else frozenset()

    def _by_host(self, text: str) -> frozenset[str]:
        host = text.lower().rstrip(".")
        if not host or canonical_address(host):
            return frozenset()
        if exact := self.hosts.get(host):
            return exact
        short, dot, _domain = host.partition(".")
        # Two full names that differ are two hosts, even if their beginnings are equal.
        return self.hosts.get(short, frozenset()) if dot else self.short_of_full.get(host, frozenset())


def names_of(nodes: Iterable[ClusterNode], match: NodeMatch) -> NodeNames:
    """Return the names by which these nodes are looked up."""
    names, addresses, hosts, shorts = (defaultdict[str, set[str]](set) for _ in range(4))
    for node in nodes:
        names[node.name.lower()].add(node.name)
        for address in node.addresses:
            if address.type in _IP_TYPES and (canonical := canonical_address(address.address)):
                addresses[canonical].add(node.name)
        for host in _hosts_of(node):
            hosts[host].add(node.name)
            short, dot, _domain = host.partition(".")
            if dot:
                shorts[short].add(node.name)
    shared: dict[frozenset[str], frozenset[str]] = {}
    return NodeNames(match, *(_frozen_sets(found, shared) for found in (names, addresses, hosts, shorts)))


def naming_of(node: ClusterNode) -> tuple[object, ...]:
    """Return the facts by which series are mapped to a node: nodes with equal facts have equal `names_of`."""
    return node.name, node.addresses, node.labels.get(_HOSTNAME_LABEL)


def without_port(instance: str) -> str:
    """Return the host of `HOST:PORT`, `[IPv6]:PORT` or a URL's authority; a bare IPv6 address stays."""
    text = instance.strip().split("://", 1)[-1].split("/", 1)[0]
    if text.startswith("["):
        return text[1:].partition("]")[0]
    host, colon, port = text.rpartition(":")
    return host if colon and port.isdecimal() and ":" not in host else text


def canonical_address(text: str) -> str:
    """Return an IP address in canonical notation; empty if the text is not an address."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return ""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)


def _hosts_of(node: ClusterNode) -> set[str]:
    texts = {node.name, node.labels.get(_HOSTNAME_LABEL, "")}
    texts.update(address.address for address in node.addresses if address.type not in _IP_TYPES)
    return {text.lower().rstrip(".") for text in texts if text and not canonical_address(text)}


def _frozen_sets(
    found: Mapping[str, set[str]], shared: dict[frozenset[str], frozenset[str]]
) -> dict[str, frozenset[str]]:
    """Return the nodes that each text names. Equal sets are one object, since nearly all texts name a single node."""
    return {text: shared.setdefault(frozen, frozen) for text, nodes in found.items() for frozen in (frozenset(nodes),)}
