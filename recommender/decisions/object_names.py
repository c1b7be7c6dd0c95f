"""The names of recommendations that are objects of the cluster: `NAMESPACE/NAME`."""

from __future__ import annotations


def object_namespace(recommendation: str) -> str:
    """Return the namespace of the object that defines a recommendation; empty for an entry of the file.

    The name of an entry is a DNS-1123 label, which has no `/`.
    """
    namespace, slash, _ = recommendation.partition("/")
    return namespace if slash else ""
