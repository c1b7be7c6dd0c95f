"""Determines which object a sample belongs to, by its labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from adapter.metrics.readings.samples.object_reading import ROOT, Dropped, container_key

NAMELESS = ""
"""The container of a sample that has no label for it."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """How the samples of a query find their objects."""

    object_label: str
    namespace_label: str | None
    """The label that contains a sample's namespace; None for cluster-scoped objects."""
    namespace: str | None = None
    """The namespace that the query was restricted to; None if each sample has its own."""
    names: frozenset[str] | None = None
    """The objects that the query was restricted to; None for all."""
    container_label: str | None = None
    """The label that contains a sample's container; None if samples are of whole objects."""
    non_negative: bool = False
    """Whether values below zero are dropped."""

    def place_of(self, labels: Mapping[str, str]) -> tuple[str, str] | Dropped:
        """Return namespace and object by the labels, or why they name none."""
        namespace = self._namespace_of(labels)
        name = labels.get(self.object_label)
        if namespace is None:
            return Dropped.FOREIGN_NAMESPACE
        if not name or (self.names is not None and name not in self.names):
            return Dropped.UNKNOWN_OBJECT
        if self.container_label is not None:
            container = labels.get(self.container_label, NAMELESS)
            if "/" in container or "/" in name:
                return Dropped.UNKNOWN_OBJECT
            name = container_key(name, container)
        return namespace, name

    def _namespace_of(self, labels: Mapping[str, str]) -> str | None:
        """Return the namespace that a sample belongs to; None if it was not requested."""
        label, asked = self.namespace_label, self.namespace
        if label is None:
            return ROOT
        if asked is None:
            return labels.get(label) or None
        # A label that was aggregated away counts as equal: the query itself was restricted.
        return asked if labels.get(label, asked) == asked else None
