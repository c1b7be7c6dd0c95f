"""Maps all series of a refresh to their nodes; series without a node are listed with a repair. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from adapter.foundation.reports.counts import first_names
from adapter.nodes.exporters.claims import exporter_text
from adapter.nodes.model.loads import LoadResource, UnmappedSeries
from adapter.nodes.names.matching import NODE_LABELS, NodeNames, canonical_address, names_of, without_port

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from adapter.foundation.cluster.values.state import ClusterNode
    from adapter.nodes.model.scheduling_settings import NodeMatch

_SHOWN_NODES = 3
_RELABEL = (
    "let the scrape configuration write the node's name into the label `node` (relabel __meta_kubernetes_pod_node_name"
    " or __meta_kubernetes_node_name)"
)
_CHOOSE_CLUSTER = (
    "Prometheus has the series of several clusters, whose nodes have the same addresses: select this cluster, as with "
    """`--prometheus-matchers 'cluster="NAME"'`; `tidewatch-adapter doctor` shows the label and its values."""
)


@dataclass(frozen=True, slots=True)
class SeriesMapper:
    """Maps series to nodes."""

    names: NodeNames | None
    """The names of all nodes; None if Node objects are not known: `instance` without its port is then the node's
    name."""
    unames: Mapping[str, str]
    """Host names that exporters report about themselves, by `exporter_text` and by `instance`."""
    mixed: Collection[str] = ()
    """Exporters by `exporter_text` whose series are of several clusters: of several machines with the same address."""
    found: dict[frozenset[tuple[str, str]], str] = field(default_factory=dict, repr=False, compare=False)
    """Cached results, because each refresh looks up the same series."""

    def node_of(self, labels: Mapping[str, str]) -> str:
        """Return the name of the node; empty if it is not known."""
        key = frozenset(labels.items())
        if (node := self.found.get(key)) is None:
            node = self.found[key] = self._node_of(labels)
        return node

    def _node_of(self, labels: Mapping[str, str]) -> str:
        if self._is_mixed(labels):
            return ""
        if self.names is None:
            return without_port(labels.get("instance", "")) or _first_name(labels)
        found = self.names.candidates(labels, self._uname(labels))
        return next(iter(found)) if len(found) == 1 else ""

    def is_own(self, labels: Mapping[str, str], node: str) -> bool:
        """Return whether `instance` alone, without the exporter's own report, is the node's name or address."""
        if self.names is None:
            return True
        return self.names.candidates({"instance": labels.get("instance", "")}) == {node}

    def fix(self, labels: Mapping[str, str]) -> str:
        """Return in one sentence how a series without a node can be mapped to one."""
        if self._is_mixed(labels):
            return _CHOOSE_CLUSTER
        instance = labels.get("instance", "") or _first_name(labels)
        if self.names is None or not instance:
            return "The series has no label `instance`: let the expression in `queries` aggregate by (instance)."
        found = sorted(self.names.candidates(labels, self._uname(labels)))
        if found:
            return f"It fits the nodes {first_names(found, _SHOWN_NODES)}: {_RELABEL}."
        if self.names.match != "auto":
            match = self.names.match
            return f"`nodes.match: {match}` finds no node for {instance!r}: use `nodes.match: auto`, or {_RELABEL}."
        if address := canonical_address(without_port(instance)):
            return f"No node has the address {address}, which may be that of a pod: {_RELABEL}."
        return f"No node has the name, host name or address {without_port(instance)!r}: {_RELABEL}."

    def _is_mixed(self, labels: Mapping[str, str]) -> bool:
        return bool(self.mixed) and exporter_text(labels) in self.mixed

    def _uname(self, labels: Mapping[str, str]) -> str:
        return self.unames.get(exporter_text(labels)) or self.unames.get(labels.get("instance", ""), "")


def series_mapper(
    nodes: Iterable[ClusterNode] | None,
    match: NodeMatch,
    unames: Mapping[str, str] | None = None,
    mixed: Collection[str] = (),
) -> SeriesMapper:
    """Return the mapper for these nodes; `nodes` is None if Node objects are not known."""
    return SeriesMapper(None if nodes is None else names_of(nodes, match), unames or {}, mixed)


def unmapped_series(
    found: Mapping[LoadResource, Iterable[Mapping[str, str]]], mapper: SeriesMapper
) -> tuple[UnmappedSeries, ...]:
    """Return the label sets without a node, each once with all of its resources, by `instance`."""
    resources: dict[frozenset[tuple[str, str]], list[LoadResource]] = {}
    for resource, series in found.items():
        for labels in series:
            listed = resources.setdefault(frozenset(labels.items()), [])
            if resource not in listed:
                listed.append(resource)
    unmapped = [
        UnmappedSeries(labels.get("instance", ""), labels, tuple(listed), mapper.fix(labels))
        for labels, listed in ((dict(key), listed) for key, listed in resources.items())
    ]
    return tuple(sorted(unmapped, key=lambda one: (one.instance, sorted(one.labels.items()))))


def _first_name(labels: Mapping[str, str]) -> str:
    return next((labels[label] for label in NODE_LABELS if labels.get(label)), "")
