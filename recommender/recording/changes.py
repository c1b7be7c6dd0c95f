"""Finds what has changed in a cluster since it was last examined, as events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recommender.recording.event_forms import (
    NO_NODE,
    VERSION,
    Alive,
    Begin,
    NodeGone,
    PodBound,
    PodCame,
    PodGone,
    line_of,
    node_came,
    pod_kind_form,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapter.foundation.cluster.values.state import ClusterNode, ClusterPod

_UID_CHARACTERS = 13
"""How many of a UID's last characters are kept. These are random, and enough to distinguish pods that coexist."""


class Changes:
    """Compares each state of a cluster with the previous one. Each file of a recording has an instance of its own."""

    def __init__(self) -> None:
        self._nodes: dict[str, tuple[int, ClusterNode]] = {}
        self._pods: dict[str, tuple[int, str]] = {}
        """Number and node of each pod, by UID."""
        self._kinds: dict[bytes, int] = {}
        """The number of each kind of pod, by the line that the kind has with the number 0."""
        self._node_numbers = self._pod_numbers = 0

    def first_line(self, time: float) -> bytes:
        """Return the line that begins a file."""
        return line_of(Begin(VERSION, round(time, 1)))

    def lines(
        self, nodes: tuple[ClusterNode, ...], pods: tuple[ClusterPod, ...], time: float, confirmed: float
    ) -> Iterator[bytes]:
        """Yield a line for each change at `time`, and finally the line which says that all is recorded.

        `confirmed` is the time up to which all is recorded: `time`, or less if some of the facts are older. For a pod
        that has not changed, an empty text is yielded, so that the caller can pace the comparison.
        """
        time = round(time, 1)
        yield from self._node_lines(nodes, time)
        there = set[str]()
        for pod in pods:
            if pod.has_ended:
                continue
            uid = pod.uid or f"{pod.namespace}/{pod.name}"
            there.add(uid)
            yield self._pod_line(uid, pod, time)
        for uid in self._pods.keys() - there:
            yield line_of(PodGone(time, self._pods.pop(uid)[0]))
        yield line_of(Alive(round(confirmed, 1)))

    def _node_lines(self, nodes: tuple[ClusterNode, ...], time: float) -> Iterator[bytes]:
        there = set[str]()
        for node in nodes:
            there.add(node.name)
            number, known = self._nodes.get(node.name, (NO_NODE, None))
            if known is not node and (known is None or _facts(known) != _facts(node)):
                if known is not None:
                    yield line_of(NodeGone(time, number))
                number = self._node_numbers
                self._node_numbers += 1
                yield line_of(node_came(time, number, node))
            self._nodes[node.name] = number, node
        for name in self._nodes.keys() - there:
            yield line_of(NodeGone(time, self._nodes.pop(name)[0]))

    def _pod_line(self, uid: str, pod: ClusterPod, time: float) -> bytes:
        known = self._pods.get(uid)
        node = self._nodes[pod.node][0] if pod.node in self._nodes else NO_NODE
        bound = round(time if pod.bound_at is None else pod.bound_at, 1)
        if known is not None:
            if known[1] == pod.node or node == NO_NODE:
                return b""
            self._pods[uid] = known[0], pod.node
            return line_of(PodBound(known[0], node, bound))
        number = self._pod_numbers
        self._pod_numbers += 1
        self._pods[uid] = number, pod.node if node != NO_NODE else ""
        kind, text = self._kind(pod)
        created = time if pod.facts is None or pod.facts.created is None else pod.facts.created
        bound = 0.0 if node == NO_NODE else bound
        return text + line_of(PodCame(number, kind, uid[-_UID_CHARACTERS:], round(created, 1), node, bound))

    def _kind(self, pod: ClusterPod) -> tuple[int, bytes]:
        """Return the number of a pod's kind, and its line if it is new."""
        key = line_of(pod_kind_form(0, pod))
        known = self._kinds.get(key)
        if known is not None:
            return known, b""
        number = self._kinds[key] = len(self._kinds)
        return number, line_of(pod_kind_form(number, pod))


def _facts(node: ClusterNode) -> tuple[object, ...]:
    """Return the facts of a node that are recorded."""
    return node.labels, node.taints, node.allocatable, node.created, node.annotations
