"""Pods, nodes and lines as text for people: what is alike is one item, and no line is too wide."""

from __future__ import annotations

import textwrap
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from adapter.foundation.objects.grouping import group_values
from adapter.foundation.reports.counts import count_of, first_names
from adapter.foundation.reports.terminal_escaping import printable
from recommender.kinds.cluster_size.future.headroom import HEADROOM_NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from recommender.kinds.cluster_size.model.answer import KeptNode
    from recommender.kinds.cluster_size.model.pod_places import PodName
    from recommender.kinds.kind import Paint


_WIDTH: Final = 80
"""The width of a line if that of the terminal is not known."""
MOST_ROWS: Final = 50
"""The most rows of one list; `-o json` has all of them."""
GAP: Final = "  "
_BOLD: Final = "1"
_FEW: Final = 3
"""Up to this number, pods are named one by one."""


def section_lines(sections: Mapping[str, Iterable[str]], width: int | None, paint: Paint) -> Iterator[str]:
    """Yield the texts of each section as lines below a heading; sections without a text are left out.

    A text that begins with `GAP` belongs to the one before it, and is indented further.
    """
    for heading, texts in sections.items():
        found = list(texts)
        if found:
            yield GAP + paint(heading, _BOLD)
        for text in found:
            yield from _lines_of(text.removeprefix(GAP), width or _WIDTH, 3 if text.startswith(GAP) else 2)


def _lines_of(text: str, width: int, level: int) -> list[str]:
    """Return a text as lines that are indented by `level`, further lines by two more columns; long words are broken."""
    indent = GAP * level
    return textwrap.wrap(
        printable(text),
        max(width, len(indent) + _WIDTH // 4),
        initial_indent=indent,
        subsequent_indent=indent + GAP * 2,
        break_on_hyphens=False,
    )


def first_of(texts: Iterable[str], further: str, most: int = MOST_ROWS) -> Iterator[str]:
    """Yield the first texts, and one that says how many others there are; `{}` in `further` stands for the number."""
    found = list(texts)
    yield from found[:most]
    if len(found) > most:
        yield further.format(len(found) - most)


def by_reason(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield each reason once, with the names of what it is about; the pairs are reasons with a name."""
    return (f"{first_names(names)}: {reason}" for reason, names in group_values(pairs).items())


def by_workload(pods: Iterable[PodName]) -> list[tuple[PodName, ...]]:
    """Return the pods by workload, in the order of each workload's first pod; a pod without a workload is alone."""
    found = group_values(((pod.namespace, pod.owner, "" if pod.owner else pod.name), pod) for pod in pods)
    return list(map(tuple, found.values()))


def alike_text(pods: Sequence[PodName]) -> str:
    """Return the pods of one workload as text: `shop/web-0`, or `12 pods of shop/web`."""
    first = pods[0]
    if first.namespace == HEADROOM_NAMESPACE:
        return f"{count_of(len(pods), 'pod')} of the reserve"
    return str(first) if len(pods) == 1 else f"{len(pods)} pods of {first.namespace}/{first.owner}"


def pods_text(pods: Sequence[PodName]) -> str:
    """Return pods as text: a few by name, more by workload."""
    if len(pods) <= _FEW and all(pod.namespace != HEADROOM_NAMESPACE for pod in pods):
        return ", ".join(map(str, pods))
    return first_names(map(alike_text, by_workload(pods)))


def nodes_text(nodes: Sequence[str]) -> str:
    """Return nodes as text, with the number of occurrences of each if these differ: `n1, n2`, `n1 (7), n2 (5)`."""
    counts = Counter(nodes)
    if set(counts.values()) == {1}:
        return first_names(counts)
    return first_names(f"{name} ({count})" if len(counts) > 1 else name for name, count in counts.items())


@dataclass(frozen=True, slots=True)
class KeptForReason:
    """Nodes that stay for the same reason."""

    reason: str
    """The identifier, such as `NotUnderutilized`."""
    nodes: tuple[str, ...]
    example: str
    """The whole reason of the first node, with its pod."""


def kept_by_reason(kept: Iterable[KeptNode]) -> tuple[KeptForReason, ...]:
    """Return the reasons, the most frequent first."""
    reasons = group_values((node.reason.partition(":")[0], node) for node in kept)
    return tuple(
        KeptForReason(reason, tuple(node.node for node in nodes), kept_reason(nodes[0]))
        for reason, nodes in sorted(reasons.items(), key=lambda item: (-len(item[1]), item[0]))
    )


def kept_reason(node: KeptNode) -> str:
    """Return why a node stays, with the pod that keeps it."""
    return node.reason if node.pod is None or str(node.pod) in node.reason else f"{node.reason} (pod {node.pod})"
