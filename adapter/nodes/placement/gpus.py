"""Calculates what is left of each GPU of a node, from requests for whole GPUs and from an annotation of GPU shares."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from adapter.foundation.objects.pod_requests import CPU
from adapter.nodes.model.workload import GpuPodKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from adapter.foundation.cluster.values.state import ClusterPod

WHOLE_MILLI: Final = 1000
MOST_GPUS: Final = 1024
"""At most this many GPUs of a node count, so that a node that claims millions of GPUs harms nothing but itself."""

_MOST_CPU_MILLI: Final = 10**12
"""Larger amounts are capped to this one, since a pod may request anything."""

# Anybody may write annotations: a longer number may not even be convertible.
_SHARE: Final = re.compile("([0-9]{1,9}):([0-9]{1,9})")


class GpuAllocationError(ValueError):
    """The text of the annotation cannot be read; the message says why."""


def gpu_shares(text: str) -> dict[int, int]:
    """Return the thousandths by GPU index that a text such as `0:500,1:1000` states. Raises GpuAllocationError."""
    shares: dict[int, int] = {}
    for part in text.split(","):
        found = _SHARE.fullmatch(part.strip())
        index, milli = found.groups() if found else ("", "0")
        if not 0 < int(milli) <= WHOLE_MILLI:
            raise GpuAllocationError(
                f"{part.strip()[:60]!r} is not a GPU with its share: write INDEX:MILLI, such as 0:500,1:1000"
            )
        if int(index) in shares:
            raise GpuAllocationError(f"GPU {int(index)} is named twice: name each once")
        shares[int(index)] = int(milli)
    return shares


def gpu_count(amounts: Mapping[str, int], resources: Iterable[str]) -> int:
    """Return how many GPUs the amounts contain, which is the sum over the GPU `resources`."""
    return sum(amounts.get(resource, 0) for resource in resources)


def gpu_left(count: int, pods: Iterable[ClusterPod], resources: tuple[str, ...]) -> tuple[tuple[int, ...], list[str]]:
    """Return how many thousandths are left of each GPU of a node, and the problems of annotations that cannot be used.

    A pod whose annotation names GPUs takes those. Any other pod takes as many whole GPUs as it requests; since nothing
    shows which ones, it is taken to use the GPUs with the most left. A pod whose annotation cannot be used counts by
    its requests.
    """
    left = [WHOLE_MILLI] * count
    whole, problems = 0, []
    for pod in pods:
        asked = gpu_count(pod.resources.requests, resources)
        shares: dict[int, int] = {}
        if pod.gpu_allocation:
            try:
                shares = _shares_on(count, pod.gpu_allocation)
            except GpuAllocationError as error:
                problems.append(f"Pod {pod.namespace}/{pod.name}: annotation of its GPUs: {error}")
        for index, milli in shares.items():
            left[index] = max(0, left[index] - milli)
        whole += 0 if shares else asked
    for index in sorted(range(count), key=lambda index: -left[index])[:whole]:
        left[index] = 0
    return tuple(left), problems


def gpu_shapes(pods: Iterable[ClusterPod], resources: tuple[str, ...]) -> Counter[GpuPodKind]:
    """Return how many pods of each kind request GPUs; a pod whose annotation cannot be read counts by its requests."""
    found: Counter[GpuPodKind] = Counter()
    for pod in pods:
        count, milli = gpu_count(pod.resources.requests, resources), WHOLE_MILLI
        if pod.gpu_allocation:
            with suppress(GpuAllocationError):
                shares = gpu_shares(pod.gpu_allocation)
                count, milli = len(shares), max(shares.values())
        if count:
            cpu_milli = min(pod.resources.requests.get(CPU, 0), _MOST_CPU_MILLI)
            found[GpuPodKind(cpu_milli, min(count, MOST_GPUS), milli)] += 1
    return found


def _shares_on(count: int, text: str) -> dict[int, int]:
    shares = gpu_shares(text)
    if max(shares) >= count:
        raise GpuAllocationError(f"GPU {max(shares)} is not on a node of {count}: the first one is 0")
    return shares
