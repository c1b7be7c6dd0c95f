"""Queries Prometheus for the series of known metrics that it has, and for their labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.exporters.recognition import RecognisedMetric, UnusedMetric, identifying_labels, labels_to_read
from adapter.foundation.sources.prometheus.answers.annotations import warnings_of_stores
from adapter.foundation.sources.prometheus.errors import (
    AuthenticationRefusedError,
    PrometheusError,
    PrometheusUnreachableError,
    refuse_partial,
)
from adapter.foundation.sources.prometheus.queries.budget import QUERY_SECONDS
from adapter.foundation.time.pace import UNPACED

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from adapter.foundation.exporters.known_metrics import KnownMetric
    from adapter.foundation.sources.prometheus.answers.decoding import Sample
    from adapter.foundation.sources.prometheus.queries.budget import Prometheus

ANY_TARGET: Final = "count(up)"
ASKING_AGAIN: Final = "write a rule for it yourself, or try again when Prometheus has less to do"


def samples_of(client: Prometheus, query: str, *, ignores_histograms: bool = False) -> list[Sample]:
    """Return the answer to an instant query. Raises PrometheusError, also for an answer that may be partial.

    With `ignores_histograms`, only warnings of stores make it a partial one (`warnings_of_stores`).
    """
    answer = client.instant(query, timeout_seconds=QUERY_SECONDS)
    samples = [sample for batch in answer.batches(UNPACED) for sample in batch]
    refuse_partial(query, warnings_of_stores(answer.warnings) if ignores_histograms else answer.warnings)
    return samples


def held_metrics(client: Prometheus, known: Sequence[KnownMetric]) -> list[KnownMetric]:
    """Send one query, and return the metrics that have series. Raises PrometheusError."""
    names = "|".join(sorted({each.series for each in known}))
    found = samples_of(client, f'count by (__name__) ({{__name__=~"{names}"}})')
    held = {sample.labels.get("__name__", "") for sample in found}
    return [each for each in known if each.series in held]


def has_targets(client: Prometheus) -> bool:
    """Return whether Prometheus scrapes anything; raises PrometheusError."""
    return any(sample.value > 0 for sample in samples_of(client, ANY_TARGET))


def recognise_each(
    client: Prometheus, held: Iterable[KnownMetric]
) -> tuple[list[RecognisedMetric], list[UnusedMetric]]:
    """Return the subjects of each metric's series, and the metrics that no rule can use.

    One query is sent for each metric; its answer has no more rows than there are objects. A failed query affects only
    its metric; raises PrometheusError if Prometheus is unreachable or refuses the credentials.
    """
    usable: list[RecognisedMetric] = []
    unused: list[UnusedMetric] = []
    for known in held:
        query = f"group by ({','.join(labels_to_read(known))}) ({known.selector})"
        try:
            groups = [sample.labels for sample in samples_of(client, query)]
        except (PrometheusUnreachableError, AuthenticationRefusedError):
            raise
        except PrometheusError as error:
            unused.append(UnusedMetric(known, f"its labels could not be read: {error}", ASKING_AGAIN))
            continue
        # There is no group if the matchers select none of its series.
        found = identifying_labels(known, groups) if groups else None
        if isinstance(found, UnusedMetric):
            unused.append(found)
        elif found is not None:
            usable.append(found)
    return usable, unused
