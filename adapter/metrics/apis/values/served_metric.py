"""Finds the metric that a request names, in the metrics of rule files and in those of its namespace's objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from adapter.metrics.apis.provider import MetricsProvider
    from adapter.metrics.readings.catalogue.catalogue import Catalogue
    from adapter.metrics.rulebook.model import Metric


def served_metric(
    provider: MetricsProvider, namespace: str | None, find: Callable[[Catalogue], Metric | None]
) -> Metric | None:
    """Return the metric; one from a MetricRule object only if the rule files provide none of that name.

    While the series of a rule are looked up for the first time, its metrics are waited for. Raises ReadingError.
    """
    found = map(find, _catalogues(provider, namespace))
    return next((metric for metric in found if metric is not None), None)


def _catalogues(provider: MetricsProvider, namespace: str | None) -> Iterator[Catalogue]:
    """Yield those that are known before those that have to be waited for."""
    yield provider.catalogue
    yield provider.complete_catalogue(namespace)
    if namespace is not None:
        yield provider.catalogue_of(namespace)
        yield provider.complete_catalogue_of(namespace)
