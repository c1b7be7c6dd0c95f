"""Judges whether the answers of `/watcher` are right, from the known loads, without any of the adapter's own code."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import msgspec

from benchmarks.judging import NewAnswers, WrongAnswerError
from benchmarks.node_loads import HALF_SWING, class_of, mean_ratio
from benchmarks.scripted_cluster import node_name

if TYPE_CHECKING:
    from benchmarks.kept_connection import Answer

_TOLERANCE_PERCENT = 2.0
"""The allowed error of a value: at times, a window has more high spans than low ones, or fewer."""
_GZIP = 31


class _Metric(msgspec.Struct, frozen=True):
    type: str
    operator: str
    value: float


class _Node(msgspec.Struct, frozen=True):
    metrics: list[_Metric]


class _Data(msgspec.Struct, frozen=True, rename={"nodes": "NodeMetricsMap"}):
    nodes: dict[str, _Node]


class _Window(msgspec.Struct, frozen=True):
    end: int


class _Document(msgspec.Struct, frozen=True):
    timestamp: int
    window: _Window
    data: _Data


class WatcherJudge(NewAnswers):
    """Judges answers for the same nodes. Each method raises WrongAnswerError.

    An answer that equals the one before is not examined again, so that judging costs the client little.
    """

    def __init__(self, numbers: range) -> None:
        """`numbers` are those of the nodes that an answer must have."""
        super().__init__()
        self._means = {node_name(number): 100 * mean_ratio(class_of(number)) for number in numbers}
        self.window_end = 0
        """The end of the last document's window, in Unix seconds."""

    def plain(self, answer: Answer) -> None:
        """Judge a document that is not compressed."""
        if self.is_new(answer):
            self._document(answer.body)

    def compressed(self, answer: Answer) -> None:
        """Judge a document that must be compressed."""
        if not self.is_new(answer):
            return
        if b"content-encoding: gzip" not in answer.head:
            raise WrongAnswerError("the answer is not compressed")
        self._document(zlib.decompress(answer.body, wbits=_GZIP))

    def of_one(self, answer: Answer) -> None:
        """Judge a document of a single node; each of them is examined."""
        if self.is_new(answer):
            self._document(answer.body, hosts=1)

    def unchanged(self, answer: Answer) -> None:
        """Judge an answer to a client that already has the document."""
        if answer.status != 304 or answer.body:
            raise WrongAnswerError(f"status {answer.status} with {len(answer.body)} bytes")

    def _document(self, body: bytes, hosts: int | None = None) -> None:
        try:
            found = msgspec.json.decode(body, type=_Document)
        except msgspec.MsgspecError as error:
            raise WrongAnswerError(f"not a document of load-watcher: {error}") from error
        nodes = found.data.nodes
        if len(nodes) != (len(self._means) if hosts is None else hosts):
            raise WrongAnswerError(f"{len(nodes)} nodes")
        for name, node in nodes.items():
            _judge_node(name, node, self._means)
        self.window_end = found.window.end


def _judge_node(name: str, node: _Node, means: dict[str, float]) -> None:
    if name not in means:
        raise WrongAnswerError(f"{name} is no node")
    values = {(metric.type, metric.operator): metric.value for metric in node.metrics}
    for wanted in (("CPU", "AVG"), ("Memory", "AVG"), ("CPU", "STD"), ("Memory", "STD")):
        expected = means[name] if wanted[1] == "AVG" else 100 * HALF_SWING
        if abs(values.get(wanted, -1.0) - expected) > _TOLERANCE_PERCENT:
            raise WrongAnswerError(f"{name}: {wanted} is {values.get(wanted)}, which must be about {expected:.1f}")
