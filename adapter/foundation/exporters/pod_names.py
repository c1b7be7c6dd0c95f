"""The workload of a pod, found from the names that controllers give to pods (pure)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from adapter.foundation.objects.names import is_namespace_name
from adapter.foundation.objects.regex import quote_pattern

if TYPE_CHECKING:
    from adapter.foundation.objects.names import ObjectName

# Suffixes are made from these characters alone (k8s.io/apimachinery/pkg/util/rand).
_SUFFIX: Final = "[bcdfghjklmnpqrstvwxz2456789]"
_DEPLOYMENT: Final = re.compile(rf"(.+)-(?!\d+-){_SUFFIX}{{6,10}}-{_SUFFIX}{{5}}")
_STATEFUL_SET: Final = re.compile(r"(.+)-\d{1,4}")


@dataclass(frozen=True, slots=True)
class LikelyWorkload:
    """The workload that pods belong to, according to their names."""

    namespace: str
    kind: str
    name: str


def workload_of(pod: ObjectName) -> LikelyWorkload | None:
    """Return the workload of a pod; None if the pod's name does not show it."""
    for kind, pattern in (("Deployment", _DEPLOYMENT), ("StatefulSet", _STATEFUL_SET)):
        found = pattern.fullmatch(pod.name)
        # A label is anybody's text, and the name becomes that of a file. Names of pods are hardly ever longer.
        if found is not None and is_namespace_name(found[1]) and is_namespace_name(pod.namespace):
            return LikelyWorkload(pod.namespace, kind, found[1])
    return None


def pod_pattern(workload: LikelyWorkload) -> str:
    """Return a regular expression (RE2) that matches the names of this workload's pods, and no other pods."""
    name = quote_pattern(workload.name)
    return f"{name}-[0-9]{{1,4}}" if workload.kind == "StatefulSet" else f"{name}-{_SUFFIX}{{6,10}}-{_SUFFIX}{{5}}"
