"""The interface that the APIs need from the readings. Tests of the APIs implement it with made-up values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from adapter.foundation.objects.resources import Resource
    from adapter.foundation.objects.selectors import Selector
    from adapter.metrics.readings.answers import (
        ByName,
        BySelector,
        ExternalAnswer,
        NamedBySelector,
        ObjectsAnswer,
        UsageAnswer,
    )
    from adapter.metrics.readings.catalogue.catalogue import Catalogue
    from adapter.metrics.readings.catalogue.last_look_up import LookUp
    from adapter.metrics.readings.explain.explanation import Explanation, ExplanationStep, Question
    from adapter.metrics.rulebook.model import Metric, RefusedRule


class MetricsProvider(Protocol):
    """Metrics and their values, from memory, and the reasons for them. `Readings` is one."""

    @property
    def catalogue(self) -> Catalogue:
        """Return the metrics that are served now; a new value after each change."""

    def catalogue_of(self, namespace: str | None) -> Catalogue:
        """Return the metrics that the MetricRule objects of a namespace serve under names that `catalogue` lacks."""

    def complete_catalogue_of(self, namespace: str) -> Catalogue:
        """Return the same as `catalogue_of` once its objects' first look-ups have ended. Raises ReadingError."""

    def complete_catalogue(self, namespace: str | None) -> Catalogue:
        """Return `catalogue` once the first look-ups have ended, for a request in a namespace. Raises ReadingError."""

    def objects(
        self, metric: Metric, namespace: str | None, which: ByName | BySelector, metric_selector: Selector
    ) -> ObjectsAnswer:
        """Return the values of a custom metric. Raises ReadingError."""

    def external(self, metric: Metric, namespace: str, selector: Selector) -> ExternalAnswer:
        """Return the values of an external metric. Raises ReadingError."""

    def usage(self, kind: Resource, namespace: str | None, which: ByName | BySelector | NamedBySelector) -> UsageAnswer:
        """Return what pods or nodes use; `namespace` None means the pods of all namespaces. Raises ReadingError."""

    def explain(self, question: Question, notes: Iterable[ExplanationStep]) -> Explanation:
        """Return why a metric has a value or has none; takes seconds. `notes` are the steps that the API knows."""

    def look_ups(self) -> Sequence[LookUp]:
        """Return the result of the last look-up of each rule's series."""

    def refused(self) -> Sequence[RefusedRule]:
        """Return the rules in the files that are refused."""
