"""The pod to be placed, from the Pod that kube-scheduler sends to its extender."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from adapter.foundation.cluster.facts.objects import FactError
from adapter.foundation.cluster.facts.pod_selectors import SELECTING_KINDS
from adapter.foundation.cluster.facts.pods import pod_of
from adapter.foundation.objects.bounded_cache import MEBIBYTE, bounded_cache
from adapter.foundation.objects.selectors import Operator, Selector, parse_selector
from adapter.nodes.model.columns import PendingPod
from adapter.nodes.placement.gpus import WHOLE_MILLI, GpuAllocationError, gpu_count, gpu_shares

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from adapter.foundation.cluster.forms.pods import PodForm
    from adapter.foundation.cluster.values.state import ClusterPod, ControllerReference, PodSelector
    from adapter.nodes.model.scheduling_settings import GpuSettings

_SERVICE = "Service"
_DAEMON_SET = "DaemonSet"
_NO_CLAIMS = frozenset({b"", b"null", b"[]"})


class OwnerSelectors:
    """Finds the selectors of the Services and of the controller that a pod belongs to. Thread-safe."""

    def __init__(self, selectors: Sequence[PodSelector] = ()) -> None:
        """Take the selectors; a namespace's Services are indexed when a pod of that namespace is first placed."""
        self._services: dict[str, list[str]] = defaultdict(list)
        self._indexed: dict[str, _Services] = {}
        self._controllers: dict[tuple[str, str, str, str], str] = {}
        self.daemon_sets = frozenset(one.uid for one in selectors if one.kind == _DAEMON_SET)
        """UIDs of all DaemonSets, whose pods are not spread: each node has one."""
        for one in selectors:
            if not one.selector or one.kind == _DAEMON_SET:
                continue
            if one.kind == _SERVICE:
                self._services[one.namespace].append(one.selector)
            else:
                self._controllers[SELECTING_KINDS[one.kind], one.kind, one.namespace, one.name] = one.selector

    def selector_of(self, namespace: str, labels: Mapping[str, str], controller: ControllerReference | None) -> str:
        """Return the selector for the pod and its siblings, in kubectl's syntax; empty if there is none.

        It combines the selectors of all Services of the namespace that select the pod with that of its controller.
        """
        found = set(self._services_of(namespace).matching(labels))
        if controller is not None:
            found.add(self._controllers.get((controller.group, controller.kind, namespace, controller.name), ""))
        return ",".join(sorted(found - {""}))

    def _services_of(self, namespace: str) -> _Services:
        texts = self._services.get(namespace)
        if texts is None:
            return _NO_SERVICES
        found = self._indexed.get(namespace)
        if found is None:
            found = self._indexed[namespace] = _Services(texts)
        return found


class _Services:
    """The selectors of a namespace's Services, indexed by a label that each requires, since there may be thousands."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._by_label: dict[tuple[str, str] | None, list[Selector]] = defaultdict(list)
        for text in set(texts):
            selector = _parse_cached_selector(text)
            self._by_label[_needed_label(selector)].append(selector)

    def matching(self, labels: Mapping[str, str]) -> Iterator[str]:
        for label in (None, *labels.items()):
            for selector in self._by_label.get(label, ()):
                if selector.matches(labels):
                    yield selector.text


_NO_SERVICES = _Services(())


def _needed_label(selector: Selector) -> tuple[str, str] | None:
    """Return a label without which the selector matches nothing; None if there is no single one."""
    for requirement in selector.requirements:
        if requirement.operator is Operator.EQUALS:
            return requirement.key, requirement.values[0]
    return None


@bounded_cache(16 * MEBIBYTE)
def _parse_cached_selector(text: str) -> Selector:
    return parse_selector(text)


def pending_pod(form: PodForm, selectors: OwnerSelectors, gpu: GpuSettings) -> PendingPod:
    """Return the pod to be placed. Raises FactError for a part of it that cannot be read.

    An annotation of GPUs and shares gives the number of GPUs that the pod needs and the largest share of one; without
    the annotation, the pod needs as many whole GPUs as it requests.
    """
    pod = pod_of(form, gpu.allocation_annotation)
    count, milli = _gpus(pod, gpu)
    spec = form.spec
    return PendingPod(
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        labels=pod.labels,
        scheduler_name=(spec.scheduler_name if spec else None) or "default-scheduler",
        resources=pod.resources,
        has_spread_constraints=bool(spec and spec.spread_constraints),
        has_resource_claims=bool(spec and bytes(spec.resource_claims) not in _NO_CLAIMS),
        gpu_count=count,
        gpu_milli=milli,
        owner_selector=selectors.selector_of(pod.namespace, pod.labels, pod.controller),
    )


def _gpus(pod: ClusterPod, gpu: GpuSettings) -> tuple[int, int]:
    if pod.gpu_allocation:
        try:
            shares = gpu_shares(pod.gpu_allocation)
        except GpuAllocationError as error:
            where = f"Pod {pod.namespace}/{pod.name}: metadata.annotations[{gpu.allocation_annotation}]"
            raise FactError(f"{where}: {error}") from error
        return len(shares), max(shares.values())
    count = gpu_count(pod.resources.requests, gpu.resources)
    return count, WHOLE_MILLI if count else 0
