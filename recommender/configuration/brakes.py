"""`paused`, `maxStep` and `maxChangesPerHour` of a recommendation."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from adapter.documents.tree import DocumentError, ScalarNode
from recommender.configuration.scalars import ratio, whole
from recommender.decisions.pauses import read_pause
from recommender.decisions.settings import Brakes, Direction, MaxStep, Pause

if TYPE_CHECKING:
    from adapter.documents.fields import MappingReader
    from adapter.documents.tree import Node

KEYS = ("paused", "maxStep", "maxChangesPerHour")


def read_brakes(fields: MappingReader) -> Brakes:
    """Return the brakes of a recommendation."""
    return Brakes(
        paused=fields.read("paused", _paused, None),
        max_step=fields.read("maxStep", _max_step, None),
        max_changes_per_hour=fields.read("maxChangesPerHour", _max_changes, None),
    )


def _paused(node: Node) -> Pause | None:
    with suppress(DocumentError):
        return Pause(Direction.BOTH) if node.boolean() else None
    try:
        return read_pause(node.text())
    except ValueError as error:
        message, _, fix = str(error).partition(": ")
        raise DocumentError(node.problem(message, fix)) from error


def _max_step(node: Node) -> MaxStep | None:
    value = node.text() if isinstance(node, ScalarNode) and not node.is_null else ""
    found = ratio(value)
    if found is not None and found > 0:
        return MaxStep(ratio=found)
    try:
        return MaxStep(replicas=whole(node, least=1))
    except DocumentError as error:
        message = f"expected a number of replicas or a percentage, found {node.kind}"
        raise DocumentError(node.problem(message, "write 1 or more, or a percentage such as 10%")) from error


def _max_changes(node: Node) -> int | None:
    try:
        return whole(node, least=1)
    except DocumentError as error:
        fix = "write 1 or more; to stop all changes, write paused: true"
        raise DocumentError(node.problem(error.problem.message, fix)) from error
