"""Decides how long the labels may be that a query of a node's load returns, and makes the matchers that bound them.

Anybody whose pods are scraped can export labels of any length, and an answer has the labels of each series once for
each part. Some hundred series with labels of some hundred kilobytes would take all memory of this process, so that no
node would have a load.

The matchers are of the positive form `label=~".{0,N}"`, which a store gives up after N characters of a long value; the
other form, `label!~".{N+1,}"`, would make it read long values to their end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.nodes.exporters.excess_exporters import NAMESPACE_LABELS

if TYPE_CHECKING:
    from collections.abc import Iterable

LONGEST_LABEL: Final = 320
"""Characters of a label. The longest one in use is the job of a PodMonitor with 317: a namespace, a slash, a name."""
LONGEST_NAMESPACE: Final = 63
"""Characters of a namespace; Kubernetes allows no longer one."""


def longest_label(label: str) -> int:
    """Return how many characters a label may have."""
    return LONGEST_NAMESPACE if label in NAMESPACE_LABELS else LONGEST_LABEL


def bound_label_lengths(labels: Iterable[str]) -> tuple[str, ...]:
    """Return the matchers that select series whose `labels` all are short enough or missing, in PromQL."""
    return tuple(f"{label}=~{_short(label)}" for label in labels)


def too_long(label: str) -> str:
    """Return the matcher that selects series with a label that is too long, in PromQL."""
    return f"{label}!~{_short(label)}"


def _short(label: str) -> str:
    # The flag lets the dot match line breaks, too.
    return f'"(?s).{{0,{longest_label(label)}}}"'
