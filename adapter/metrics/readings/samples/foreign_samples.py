"""Collects samples that name a requested object, but carry a namespace other than the requested one.

Only the rule's own query can return them: its series are restricted to the namespace, so it also selects others, or
rewrites the label. The rule says whether they are meant (`foreignNamespaces`), which is decided when a request is
answered, since two rules may share a query. An object's own sample always takes precedence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from adapter.metrics.readings.samples.object_reading import Fault, ForeignSample

MOST_FOREIGN_OBJECTS = 1000
"""Limit on the objects for which samples of other namespaces are listed one by one, if no rule accepts such samples."""


class ForeignSamples:
    """Collects the foreign samples of one answer to a query that was restricted to one namespace. Not thread-safe."""

    def __init__(self, label: str, most: int | None = MOST_FOREIGN_OBJECTS) -> None:
        """`label` contains the namespace.

        Samples beyond `most` objects are not listed one by one; None means no limit.
        """
        self.rest: ForeignSample | None = None
        """One entry for the samples of all objects beyond the limit."""
        self._label = label
        self._most = most
        self._found: dict[str, ForeignSample] = {}

    def add(self, name: str, namespace: str, value: float, fault: Fault | None) -> None:
        """Add a sample for an object; `fault` says why it has no value."""
        first = self._found.get(name)
        if first is not None:
            self._found[name] = self._several(first, namespace)
        elif self._most is None or len(self._found) < self._most:
            self._found[name] = ForeignSample(self._label, namespace, value if fault is None else None, fault)
        elif self.rest is None:
            several = self._several(ForeignSample(self._label, namespace, None), namespace)
            self.rest = replace(several, of_many=True)

    def without(self, values: Mapping[str, float], faults: Mapping[str, Fault]) -> Mapping[str, ForeignSample]:
        """Return the samples for objects that have neither a value nor a fault of their own."""
        return {name: one for name, one in self._found.items() if name not in values and name not in faults}

    def _several(self, first: ForeignSample, namespace: str) -> ForeignSample:
        others = f"{self._label}={first.namespace!r} and {self._label}={namespace!r}"
        which = "several samples of one other namespace" if namespace == first.namespace else f"samples of {others}"
        several = Fault.of_several(f"{which} claim to be its value: select one of them in the rule's metricsQuery")
        return ForeignSample(self._label, first.namespace, None, several)
