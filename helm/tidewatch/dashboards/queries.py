"""The queries of the panels, as builders of Grafana's foundation SDK."""

from __future__ import annotations

from typing import Final

from grafana_foundation_sdk.builders.prometheus import Dataquery

SCRAPED: Final = 'namespace=~"$namespace",job=~"$job"'
"""The matchers of a program's own series. Both variables also match series without the label, however they are
scraped."""
CHOSEN: Final = f'{SCRAPED},recommendation=~"$recommendation"'
"""The matchers of the recommendations that are chosen."""
TARGET: Final = "recommendation, target_namespace, target_kind, target_name"
"""The labels of a target of a recommendation."""
STATUS: Final = "tidewatch_recommendation_status"


def query(expr: str, legend: str = "") -> Dataquery:
    """Return a query whose series are named by `legend`."""
    return Dataquery().expr(expr).legend_format(legend)


def quantiles(histogram: str, by: str = "", matchers: str = SCRAPED) -> tuple[Dataquery, ...]:
    """Return the median and the 99th percentile of a histogram, by a label if one is given."""
    suffix = f" {{{{{by}}}}}" if by else ""
    return tuple(
        query(quantile(share, histogram, by, matchers), f"p{round(share * 100)}{suffix}") for share in (0.5, 0.99)
    )


def quantile(
    share: float, histogram: str, by: str = "", matchers: str = SCRAPED, window: str = "$__rate_interval"
) -> str:
    """Return the PromQL for a quantile of a histogram, by a label if one is given; nothing if nothing was observed."""
    buckets = f"sum by ({f'le, {by}' if by else 'le'}) (rate({histogram}_bucket{{{matchers}}}[{window}]))"
    # Without an observation the quantile is NaN, which is not at least 0.
    return f"histogram_quantile({share}, {buckets}) >= 0"


def rate(counter: str, by: str, matchers: str = SCRAPED) -> Dataquery:
    """Return how much a counter grows per second, by labels."""
    return query(f"sum by ({by}) (rate({counter}{{{matchers}}}[$__rate_interval]))", _legend(by))


def increase(counter: str, by: str, matchers: str = SCRAPED) -> Dataquery:
    """Return how much a counter grew between two points of the chart, by labels."""
    return query(f"sum by ({by}) (increase({counter}{{{matchers}}}[$__rate_interval]))", _legend(by))


def gauge(metric: str, by: str, function: str = "max", matchers: str = SCRAPED) -> Dataquery:
    """Return a gauge by labels; of several replicas, the largest or smallest value counts."""
    return query(f"{function} by ({by}) ({metric}{{{matchers}}})", _legend(by))


def age(metric: str, by: str, matchers: str = SCRAPED) -> Dataquery:
    """Return the seconds that have passed since a time, by labels; of several replicas, the latest time counts."""
    return query(f"time() - max by ({by}) ({metric}{{{matchers}}})", _legend(by))


def count(of: str, among: str, legend: str = "") -> Dataquery:
    """Return the number of series, which may be 0; nothing if no series of `among` is scraped."""
    return query(f"count({of}) or 0 * count({among})", legend)


def worst_status(by: str, matchers: str) -> str:
    """Return the PromQL for statuses by labels, as numbers of `STATUSES`; of several targets, the worst one counts."""
    named = " or ".join(
        f'{number} * ({STATUS}{{{matchers},status="{status}"}} == 1)' for number, status in enumerate(STATUSES)
    )
    return f"max by ({by}) ({named})"


STATUSES: Final = ("ok", "held", "stale", "error")
"""All statuses, from the best to the worst."""


def _legend(by: str) -> str:
    return " ".join(f"{{{{{label.strip()}}}}}" for label in by.split(","))
