"""Reads and writes the container that is resized: its current sizes, and the sizes in its Deployment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import msgspec

from adapter.foundation.objects.decoders import decoder_of
from adapter.foundation.objects.quantities import QuantityError, parse_quantity
from adapter.foundation.sources.kubernetes.errors import UnexpectedResponseError
from recommender.commands.vertical.polls import PollError
from recommender.commands.vertical.sized_object import path_of, write_resources
from recommender.kinds.proportional.nanny.thresholds import CurrentSizes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from adapter.foundation.sources.kubernetes.client import KubernetesClient
    from adapter.foundation.sources.kubernetes.writing import Fence, ObjectClient
    from recommender.commands.pod_nanny.settings import Ward
    from recommender.kinds.proportional.nanny.estimators import Sizes
    from recommender.kinds.proportional.sizes import ContainerResources

T = TypeVar("T")


class _Resources(msgspec.Struct, gc=False):
    requests: dict[str, str | int | float] | None = None
    limits: dict[str, str | int | float] | None = None


class _Container(msgspec.Struct, gc=False):
    name: str
    resources: _Resources | None = None


class _PodSpec(msgspec.Struct, gc=False):
    containers: list[_Container]


class _Pod(msgspec.Struct, gc=False):
    spec: _PodSpec


class _DeploymentSpec(msgspec.Struct, gc=False):
    template: _Pod


class _Metadata(msgspec.Struct, gc=False, rename="camel"):
    resource_version: str


class _Deployment(msgspec.Struct, gc=False):
    metadata: _Metadata
    spec: _DeploymentSpec


@dataclass(frozen=True, slots=True)
class WardClient:
    """Reads and resizes one container."""

    client: KubernetesClient
    objects: ObjectClient
    ward: Ward
    fence: Fence | None
    """The fence that permits only the leader to write; None if only one process runs."""

    def leads(self) -> bool:
        """Return whether this process is the one that may resize the container now."""
        return self.fence is None or self.fence.permit(0.0)

    def current_sizes(self) -> CurrentSizes:
        """Return the container's sizes in the pod or, if no pod is named, in the Deployment.

        Raises KubernetesError, and PollError if there is no such container.
        """
        if not self.ward.pod:
            return self._sizes_in(self._deployment().spec.template.spec.containers, str(self.ward.deployment))
        namespace = self.ward.deployment.namespace
        pod = self._read(f"/api/v1/namespaces/{namespace}/pods/{self.ward.pod}", _Pod)
        return self._sizes_in(pod.spec.containers, f"Pod {namespace}/{self.ward.pod}")

    def resize(self, sizes: Sizes) -> bool:
        """Set these requests and limits in the Deployment; return whether they changed.

        Raises KubernetesError, and PollError if there is no such container: a patch would add it.
        """
        deployment = self._deployment()
        current = self._sizes_in(deployment.spec.template.spec.containers, str(self.ward.deployment))
        if _are_there(sizes, current):
            return False
        amounts = {name: str(size) for name, size in sizes.items()}
        resources: ContainerResources = {self.ward.container: {"limits": amounts, "requests": amounts}}
        version = deployment.metadata.resource_version
        write_resources(self.objects, self.ward.deployment, resources, resource_version=version, fence=self.fence)
        return True

    def _deployment(self) -> _Deployment:
        return self._read(path_of(self.ward.deployment), _Deployment)

    def _read(self, path: str, form: type[T]) -> T:
        body = self.client.get(path)
        try:
            return decoder_of(form).decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise UnexpectedResponseError(f"GET {path}: not the requested object: {error}") from error

    def _sizes_in(self, containers: Sequence[_Container], where: str) -> CurrentSizes:
        for container in containers:
            if container.name == self.ward.container:
                resources = container.resources or _Resources()
                return CurrentSizes(_sizes(resources.requests), _sizes(resources.limits))
        message = f"{where} has no container {self.ward.container!r}: name one of its containers in --container"
        raise PollError("error_getting_resources", message)


def _are_there(sizes: Sizes, current: CurrentSizes) -> bool:
    """Return whether a container has these sizes; amounts are compared in thousandths, rounded up as stored."""
    return all(
        name in stored and stored[name].milli_value() == size.milli_value()
        for stored in (current.requests, current.limits)
        for name, size in sizes.items()
    )


def _sizes(amounts: Mapping[str, str | int | float] | None) -> Sizes:
    try:
        return {name: parse_quantity(str(amount)) for name, amount in (amounts or {}).items()}
    except QuantityError as error:
        raise PollError("error_getting_resources", f"the sizes of the container: {error}") from error
