"""The keys beside `clusterSize` in its entry: the outputs, and the CapacityBuffer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.documents.scalars import NAMESPACE, OBJECT_NAME
from adapter.foundation.documents.sections import Key, Section
from recommender.decisions.policy_settings import Output
from recommender.kinds.cluster_size.model.size_settings import BufferSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapter.foundation.documents.sections import Given
    from adapter.foundation.documents.tree import DocumentProblem
    from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings

_KEY: Final = "clusterSize"
_BUFFER: Final = Section(
    "capacityBuffer",
    BufferSettings,
    (
        Key("namespace", NAMESPACE, "Namespace of the CapacityBuffer.", "NAMESPACE"),
        Key("name", OBJECT_NAME, "Name of the CapacityBuffer.", "NAME"),
    ),
)
BESIDE: Final = (
    (
        Key("capacityBuffer", _BUFFER, "The CapacityBuffer whose replicas are written.", into="buffer"),
        "a CapacityBuffer reserves nodes, which {} does not size",
    ),
)


def check_entry(given: Given, outputs: frozenset[Output]) -> Iterator[DocumentProblem]:
    """Yield a problem for each output or key that cannot be combined with sizes of node groups."""
    if given.has("targets"):
        yield given.problem("targets", f"{_KEY} has no targets: it sizes its node groups", "remove targets")
    if Output.CAPACITY_BUFFER in outputs and not given.has("capacityBuffer"):
        message = "the output capacityBuffer has no object"
        yield given.problem("outputs", message, "write capacityBuffer: {namespace, name}")
    if given.has("capacityBuffer") and Output.CAPACITY_BUFFER not in outputs:
        message = "`capacityBuffer` has no effect without the output of this name"
        yield given.problem("capacityBuffer", message, "add it to outputs")
    subject = given.get(_KEY)
    if Output.SCALE in outputs and subject and not subject.node_groups.are_written:
        fix = "write nodeGroups: {clusterAPI: …} or {externalGRPC: …}, or remove scale"
        yield given.problem("outputs", _not_scalable(subject), fix)


def _not_scalable(subject: ClusterSizeSettings) -> str:
    if subject.node_groups.plugin is not None:
        return "the output scale writes nothing through a plugin of node groups without `plugin.writes: true`"
    return (
        "the output scale needs node groups whose sizes can be written: those of `static` and `byLabel` can only be "
        "recommended"
    )
