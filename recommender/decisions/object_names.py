"""The names of recommendations that are defined by objects of the cluster: `NAMESPACE/NAME`."""

from __future__ import annotations


def object_namespace(recommendation: str) -> str:
    """Return the namespace of the object that defines a recommendation; empty for an entry of the configuration file.

    The name of such an entry is a DNS-1123 label, which contains no `/`.
    """
    namespace, slash, _ = recommendation.partition("/")
    return namespace if slash else ""
