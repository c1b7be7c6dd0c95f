"""The requests that count for the node while a resize in place is not done, as kube-scheduler counts them.

Containers are resized by KEP-1287, and pods as a whole by KEP-5419, which is on by default since Kubernetes 1.36; where
it is off, no status has such amounts.

Since Kubernetes 1.33 almost every running container has a status that repeats its requests, so the amounts are decoded
once for each text and compared with the spec. Only a difference goes on from here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from adapter.foundation.cluster.forms.objects import QuantityText
from adapter.foundation.cluster.forms.pods import ResourcesForm
from adapter.foundation.objects.bounded_cache import MEBIBYTE, bounded_cache
from adapter.foundation.objects.decoders import decoder_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from adapter.foundation.cluster.forms.pods import ContainerStatusForm, PodStatusForm

Pairs: TypeAlias = "tuple[tuple[str, QuantityText], ...]"

_MOST_BYTES: Final = 16 << 10
"""The largest size of the amounts in the status of a container. A larger status counts as none."""
_INFEASIBLE: Final = "Infeasible"
_RESOURCES: Final[msgspec.json.Decoder[ResourcesForm | None]] = decoder_of(ResourcesForm | None)
_AMOUNTS: Final[msgspec.json.Decoder[dict[str, QuantityText] | None]] = decoder_of(dict[str, QuantityText] | None)


def statuses_of(status: PodStatusForm | None) -> Mapping[str, ContainerStatusForm]:
    """Return the statuses of a pod's containers and init containers by name."""
    if status is None or not status.containers:
        return _by_name(status.init_containers) if status and status.init_containers else {}
    found = _by_name(status.containers)
    return found | _by_name(status.init_containers) if status.init_containers else found


def is_infeasible(status: PodStatusForm | None) -> bool:
    """Whether the node can never do the resize that the spec asks for."""
    if status is None:
        return False
    for condition in status.conditions or ():
        if condition.type == "PodResizePending":
            return condition.reason == _INFEASIBLE
    return status.resize == _INFEASIBLE


def counted_lists(
    requests: Pairs, status: ContainerStatusForm | PodStatusForm | None, *, infeasible: bool
) -> tuple[Pairs, ...]:
    """Return the lists whose largest amounts count instead of the requests of a container or of a whole pod.

    There are none if the status repeats the requests or cannot be read.
    """
    reported = () if status is None else _reported_difference(requests, status)
    return reported if infeasible or not reported else (requests, *reported)


def _reported_difference(requests: Pairs, status: ContainerStatusForm | PodStatusForm) -> tuple[Pairs, ...]:
    resources, allocated = bytes(status.resources), bytes(status.allocated)
    if not resources or len(resources) + len(allocated) > _MOST_BYTES:
        return ()
    return _difference(requests, resources, allocated)


def _by_name(statuses: Iterable[ContainerStatusForm]) -> dict[str, ContainerStatusForm]:
    return {one.name: one for one in statuses}


@bounded_cache(4 * MEBIBYTE)
def _difference(requests: Pairs, resources: bytes, allocated: bytes) -> tuple[Pairs, ...]:
    reported = _reported_amounts(resources, allocated)
    return reported if any(one != requests for one in reported) else ()


def _reported_amounts(resources: bytes, allocated: bytes) -> tuple[Pairs, ...]:
    try:
        actual = _RESOURCES.decode(resources)
        given = _AMOUNTS.decode(allocated) if allocated else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ()
    if actual is None:
        return ()
    in_use = tuple((actual.requests or {}).items())
    return (in_use, tuple(given.items())) if given else (in_use,)
