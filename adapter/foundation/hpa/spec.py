"""An HPA as its author wrote it: limits, metrics with targets, behaviour; and the settings of the controller.

Targets are in thousandths of the metric's unit, as the controller compares them (`Quantity.milli_value`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from adapter.foundation.hpa.arithmetic import Tolerances
from adapter.foundation.hpa.rules import Behaviour, Windows


@dataclass(frozen=True, slots=True)
class Value:
    """A target for the metric as a whole."""

    milli: int

    def __post_init__(self) -> None:
        _require_positive("target value", self.milli)


@dataclass(frozen=True, slots=True)
class AverageValue:
    """A target for the metric divided by the number of pods."""

    milli: int

    def __post_init__(self) -> None:
        _require_positive("target averageValue", self.milli)


@dataclass(frozen=True, slots=True)
class AverageUtilization:
    """A target for the usage of a resource as a share of what the pods request."""

    percent: int

    def __post_init__(self) -> None:
        _require_positive("target averageUtilization", self.percent)


@dataclass(frozen=True, slots=True)
class PodsMetric:
    """A custom metric with one value for each pod."""

    name: str
    target: AverageValue


@dataclass(frozen=True, slots=True)
class ResourceMetric:
    """CPU, memory or another resource of pods, or of one container in each of them."""

    resource: str
    target: AverageUtilization | AverageValue
    container: str | None = None
    """The container that samples must come from; `name` is the key of its requests."""

    @property
    def name(self) -> str:
        """The resource, with the container if there is one."""
        return f"{self.container}/{self.resource}" if self.container else self.resource


@dataclass(frozen=True, slots=True)
class ObjectMetric:
    """A custom metric of one object, such as an Ingress."""

    name: str
    target: Value | AverageValue


@dataclass(frozen=True, slots=True)
class ExternalMetric:
    """A metric from outside the cluster; its series are added up."""

    name: str
    target: Value | AverageValue


MetricSpec: TypeAlias = PodsMetric | ResourceMetric | ObjectMetric | ExternalMetric


@dataclass(frozen=True, slots=True)
class Settings:
    """The flags of kube-controller-manager that affect the arithmetic, with their defaults."""

    tolerance: float = 0.1
    downscale_stabilization_seconds: float = 300.0
    """The window for scaling down of HPAs that set none."""
    cpu_initialization_seconds: float = 300.0
    initial_readiness_delay_seconds: float = 30.0
    ignores_succeeded: bool = True
    """Whether pods that have succeeded do not count, as since Kubernetes 1.38; not a flag. To earlier controllers, they
    are pods that should have a sample."""


@dataclass(frozen=True, slots=True)
class HPASpec:
    """The limits and metrics of an HPA. Raises ValueError for a spec that the API server would refuse."""

    metrics: tuple[MetricSpec, ...]
    max_replicas: int
    min_replicas: int = 1
    behaviour: Behaviour | None = None
    settings: Settings = field(default_factory=Settings)

    def __post_init__(self) -> None:
        if not self.metrics:
            raise ValueError("an HPA needs at least one metric")
        if not 0 <= self.min_replicas <= self.max_replicas or self.max_replicas < 1:
            raise ValueError(
                f"minReplicas {self.min_replicas} and maxReplicas {self.max_replicas} are not a range: "
                "write 0 <= minReplicas <= maxReplicas and maxReplicas >= 1"
            )
        if self.min_replicas == 0 and not any(isinstance(m, ObjectMetric | ExternalMetric) for m in self.metrics):
            raise ValueError("minReplicas 0 needs an Object or External metric: nothing else has a value without pods")

    @property
    def tolerances(self) -> Tolerances:
        """The tolerances of the behaviour; the controller's for a direction in which the behaviour sets none."""
        default = self.settings.tolerance
        if self.behaviour is None:
            return Tolerances(up=default, down=default)
        up, down = self.behaviour.scale_up.tolerance, self.behaviour.scale_down.tolerance
        return Tolerances(up=default if up is None else up, down=default if down is None else down)

    @property
    def windows(self) -> Windows:
        """How far back recommendations count in each direction."""
        up = self.behaviour.scale_up.stabilization_window_seconds if self.behaviour else None
        down = self.behaviour.scale_down.stabilization_window_seconds if self.behaviour else None
        default = self.settings.downscale_stabilization_seconds
        return Windows(up=0.0 if up is None else up, down=default if down is None else down)


def _require_positive(what: str, number: int) -> None:
    if number <= 0:
        raise ValueError(f"{what} is {number}: write a number above 0")
