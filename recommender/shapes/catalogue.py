"""The catalogue of machine shapes that node groups could have, and its strict reader."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.state import ClusterPod, Taint
from adapter.foundation.documents.files import head, read_file
from adapter.foundation.documents.scalars import QUANTITY, Bounds, number, validated_text
from adapter.foundation.documents.sections import Given, Key, Section
from adapter.foundation.documents.shapes import ListOf
from adapter.foundation.objects.pod_requests import CPU, MEMORY
from recommender.kinds.cluster_size.model.groups import NodeGroup, NodeTemplate
from recommender.kinds.cluster_size.node_groups.daemon_sets import pods_on
from recommender.kinds.cluster_size.node_groups.templates import quantity_of, stated_node
from recommender.kinds.cluster_size.reading.templates import TEMPLATE, GroupTemplate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from adapter.foundation.documents.tree import DocumentProblem
    from adapter.foundation.objects.quantities import Quantity

KIND: Final = "MachineShapeCatalogue"
MOST_SHAPES: Final = 5000
"""The limit of shapes in a catalogue: more than all clouds together offer in one region."""
_LONGEST_NAME: Final = 253
_NANO: Final = 10**9
_STORAGE: Final = "ephemeral-storage"


@dataclass(frozen=True, slots=True)
class MachineShape:
    """A machine that could be bought."""

    name: str
    price: float
    """Price for one hour."""
    template: GroupTemplate
    reserved: Mapping[str, int] = field(default_factory=dict)
    """What the kubelet and the system take, so that pods cannot: CPU in millicores, memory and storage in bytes."""


@dataclass(frozen=True, slots=True)
class ShapeCatalogue:
    """The machines to choose from."""

    shapes: tuple[MachineShape, ...]


def read_catalogue(content: str, file: str) -> ShapeCatalogue:
    """Return the catalogue; `file` is its name in messages. Raises DocumentError."""
    return read_file(content, file, CATALOGUE)[1]


def candidate(shape: MachineShape, daemons: Iterable[ClusterPod]) -> NodeGroup:
    """Return an empty node group with machines of this shape; `daemons` has one pod of each DaemonSet."""
    capacity = shape.template.capacity
    amounts = {name: quantity_of(name, amount) for name, amount in capacity.items()}
    left = {name: quantity_of(name, max(0, amount - shape.reserved.get(name, 0))) for name, amount in capacity.items()}
    taints = (Taint(*taint) for taint in shape.template.taints)
    node = stated_node(shape.name, left, shape.template.labels, taints, amounts)
    template = NodeTemplate(node, pods_on(node, daemons), "catalogue")
    return NodeGroup(shape.name, 0, 0, 0, template=template, price=shape.price)


def _reserved_amounts(**amounts: Quantity) -> dict[str, int]:
    return {
        name.replace("_", "-"): amount.milli_value() if name == CPU else amount.nanos // _NANO
        for name, amount in amounts.items()
    }


def _check_shape(given: Given) -> Iterator[DocumentProblem]:
    template, reserved = given.get("template"), given.get("reserved") or {}
    if template is None:
        return
    for name in (CPU, MEMORY):
        if name not in template.capacity:
            yield given.problem("template", f"`template.{name}` is missing", f"write what a machine has of {name}")
        elif reserved.get(name, 0) >= template.capacity[name]:
            message = f"`reserved.{name}` is all of the {name} that the machine has, so no pod fits"
            yield given.problem(f"reserved.{name}", message, "write what the kubelet and the system take")


def _check_count(given: Given) -> Iterator[DocumentProblem]:
    shapes = given.get("shapes") or ()
    if len(shapes) > MOST_SHAPES:
        message = f"there are {len(shapes)} shapes, and at most {MOST_SHAPES} can be compared"
        yield given.problem("shapes", message, "write those that you would buy")


_SHAPE: Final = Section(
    "shapes",
    MachineShape,
    (
        Key(
            "name",
            validated_text(
                "the name of a shape",
                lambda name: not 0 < len(name.strip()) <= _LONGEST_NAME,
                "write 1 to 253 characters",
            ),
            "Name of the shape.",
            "m7i.xlarge",
        ),
        Key("price", number(Bounds(0, 1e9, above=True)), "What a machine costs in an hour.", "0.2016"),
        Key("template", TEMPLATE, "What a machine has.", "{cpu: 4, memory: 16Gi}"),
        Key(
            "reserved",
            Section(
                "reserved",
                _reserved_amounts,
                (
                    Key(CPU, QUANTITY, "Cores that pods cannot use."),
                    Key(MEMORY, QUANTITY, "Memory that pods cannot use."),
                    Key(_STORAGE, QUANTITY, "Ephemeral storage that pods cannot use."),
                ),
            ),
            "What the kubelet and the system keep: kubeReserved, systemReserved and the eviction threshold.",
        ),
    ),
    _check_shape,
)
CATALOGUE: Final = Section(
    "the file",
    ShapeCatalogue,
    (
        *head(KIND),
        Key(
            "shapes",
            ListOf(
                _SHAPE,
                tuple,
                ("there is no shape", "write one, such as {name: a, price: 0.2, template: {cpu: 4, memory: 16Gi}}"),
                unique=lambda shape: f"the shape {shape.name!r}",
            ),
            "Machines to choose from.",
            "[{name: a, price: 0.2, template: {cpu: 4, memory: 16Gi}}]",
        ),
    ),
    _check_count,
)
