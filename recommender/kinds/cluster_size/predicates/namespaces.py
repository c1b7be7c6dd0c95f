"""Determines to which namespaces the terms of inter-pod affinity apply."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.cluster.values.constraints import PodTerm


class Namespaces:
    """The namespaces of a cluster with their labels."""

    def __init__(self, labels: Mapping[str, Mapping[str, str]] | None) -> None:
        """`labels` has the labels of each namespace; None if they are unknown."""
        self._labels = labels

    def are_listed(self, term: PodTerm, namespace: str, *, if_unknown: bool) -> bool:
        """Return whether a term of the pod that is to be placed applies to the pods of a namespace.

        The term's namespace selector is first resolved to the namespaces that exist.
        """
        if namespace in term.namespaces:
            return True
        selector = term.namespace_selector
        if selector is None or not selector.requirements:
            return selector is not None
        if self._labels is None:
            return if_unknown
        labels = self._labels.get(namespace)
        return labels is not None and selector.matches(labels)

    def are_selected(self, term: PodTerm, namespace: str) -> bool:
        """Return whether a term of a pod that has a node applies to a pod of this namespace that is to be placed.

        A namespace that is not known has no labels. If none is known, the term applies, so that no pod is placed where
        it may not run.
        """
        if namespace in term.namespaces:
            return True
        selector = term.namespace_selector
        if selector is None or not selector.requirements:
            return selector is not None
        return self._labels is None or selector.matches(self._labels.get(namespace, {}))
