"""A metric that an exporter publishes: its type, its meaning, and the value that an autoscaler reads from it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

RATE_WINDOW: Final = "2m"
"""Range of rates: it covers at least two scrapes, since the scrape interval is usually at most a minute."""


class SeriesType(StrEnum):
    """The type of the series: a counter is served as its rate, and a gauge as its value."""

    COUNTER = "counter"
    GAUGE = "gauge"


class MetricSubject(StrEnum):
    """The objects that the values describe, which decides the API that serves them."""

    POD = "pods"
    INGRESS = "ingresses.networking.k8s.io"
    SERVICE = "services"
    EXTERNAL = "external"
    """Something that is not an object of Kubernetes, such as a queue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownMetric:
    """A metric as the documentation of its exporter describes it."""

    exporter: str
    series: str
    """Name of the series in Prometheus."""
    type: SeriesType
    meaning: str
    """A description of what one series counts, as the end of a sentence."""
    subject: MetricSubject
    served_as: str = ""
    """Name in the API, if it does not follow from the name of the series."""
    matchers: str = ""
    """Matchers that exclude series, so that nothing is counted twice."""
    labels: tuple[str, ...] = ()
    """For external metrics: labels that identify what is counted; at least one must exist."""
    namespace_labels: tuple[str, ...] = ()
    """Labels that may hold the object's namespace, the best first."""
    object_labels: tuple[str, ...] = ()
    """Labels that may hold the object's name, the best first."""
    repair: str = ""
    """The change in the exporter that supplies missing labels."""
    scales: bool = True
    """Whether the value follows the load, so that an autoscaler can use it."""

    @property
    def name(self) -> str:
        """The name in the API."""
        if self.served_as:
            return self.served_as
        return self.series.removesuffix("_total") + "_per_second" if self.type is SeriesType.COUNTER else self.series

    @property
    def selector(self) -> str:
        """The series as a PromQL selector."""
        return f"{self.series}{{{self.matchers}}}" if self.matchers else self.series


def pod_metric(exporter: str, series: str, kind: SeriesType, meaning: str, matchers: str = "") -> KnownMetric:
    """Return a metric that every pod of a workload publishes about itself."""
    return KnownMetric(
        exporter=exporter,
        series=series,
        type=kind,
        meaning=meaning,
        subject=MetricSubject.POD,
        matchers=matchers,
        # The labels of service discovery in kube-prometheus, then those of Prometheus's example configuration.
        namespace_labels=("namespace", "kubernetes_namespace", "exported_namespace"),
        object_labels=("pod", "kubernetes_pod_name", "pod_name", "exported_pod"),
        repair="let the scrape configuration set the labels `namespace` and `pod` from Prometheus's service discovery",
    )


def external_metrics(
    exporter: str, labels: tuple[str, ...], repair: str, *series: tuple[str, SeriesType, str]
) -> tuple[KnownMetric, ...]:
    """Return metrics of something that is not an object of Kubernetes, each by its series, type and meaning."""
    return tuple(
        KnownMetric(
            exporter=exporter,
            series=name,
            type=kind,
            meaning=meaning,
            subject=MetricSubject.EXTERNAL,
            labels=labels,
            repair=repair,
        )
        for name, kind, meaning in series
    )
