"""What the APIs need of the readings, and nothing more: the seam at which their tests put made-up values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from adapter.objects.resources import Resource
    from adapter.objects.selectors import Selector
    from adapter.readings.answers import (
        ByName,
        BySelector,
        ExternalAnswer,
        NamedBySelector,
        ObjectsAnswer,
        UsageAnswer,
    )
    from adapter.readings.catalogue.catalogue import Catalogue
    from adapter.readings.catalogue.look_ups import LookUp
    from adapter.readings.explain.explanation import Explanation, ExplanationStep, Question
    from adapter.rulebook.model import Metric, RefusedRule


class Served(Protocol):
    """Metrics and their values, from memory. `Readings` is one."""

    @property
    def catalogue(self) -> Catalogue:
        """Return the metrics that are served now; another value after each change."""
        ...

    def objects(
        self, metric: Metric, namespace: str | None, which: ByName | BySelector, metric_selector: Selector
    ) -> ObjectsAnswer:
        """Return the values of a custom metric. Raises ReadingError."""
        ...

    def external(self, metric: Metric, namespace: str, selector: Selector) -> ExternalAnswer:
        """Return the values of an external metric. Raises ReadingError."""
        ...

    def usage(self, kind: Resource, namespace: str | None, which: ByName | BySelector | NamedBySelector) -> UsageAnswer:
        """Return what pods or nodes use; for pods `namespace` None means those of all. Raises ReadingError."""
        ...


class Insight(Protocol):
    """Why there are these metrics and values. `Readings` is one."""

    def explain(self, question: Question, notes: Iterable[ExplanationStep]) -> Explanation:
        """Return why a metric has, or lacks, a value; takes seconds. `notes` are steps that the API knows."""
        ...

    def look_ups(self) -> Sequence[LookUp]:
        """Return how the last look-up of each rule's series went."""
        ...

    def refused(self) -> Sequence[RefusedRule]:
        """Return the rules that are refused as they stand in the files."""
        ...
