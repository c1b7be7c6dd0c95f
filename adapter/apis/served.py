"""What the APIs need of the readings, and nothing more: the seam at which their tests put made-up values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from adapter.objects.selectors import Selector
    from adapter.readings.answers import ByName, BySelector, ExternalAnswer, ObjectsAnswer
    from adapter.readings.catalogue import Catalogue
    from adapter.rulebook.model import Metric


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
