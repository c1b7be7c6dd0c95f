"""Which HorizontalPodAutoscaler owns the size of an object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adapter.cluster.state import Autoscaler


class ScaleTarget(Protocol):
    """An object with a scale subresource."""

    @property
    def api_version(self) -> str:
        """`apps/v1`."""
        ...

    @property
    def kind(self) -> str:
        """`Deployment`."""
        ...

    @property
    def namespace(self) -> str:
        """The namespace of the object."""
        ...

    @property
    def name(self) -> str:
        """The name of the object."""
        ...


def owners_of(autoscalers: Iterable[Autoscaler], target: ScaleTarget) -> Autoscaler | None:
    """Return the first HPA whose `scaleTargetRef` is the target; None if there is none.

    Any version of the API group means the same object.
    """
    wanted = (group_of(target.api_version), target.kind, target.namespace, target.name)
    for autoscaler in autoscalers:
        group = group_of(autoscaler.target_api_version)
        if (group, autoscaler.target_kind, autoscaler.namespace, autoscaler.target_name) == wanted:
            return autoscaler
    return None


def group_of(api_version: str) -> str:
    """Return the API group of `GROUP/VERSION`; empty for the core group."""
    return api_version.rpartition("/")[0]
