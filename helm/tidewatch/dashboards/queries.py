"""Queries that the panels are made of, as builders of Grafana's foundation SDK."""

from __future__ import annotations

from typing import Final

from grafana_foundation_sdk.builders.prometheus import Dataquery

SCRAPED: Final = 'namespace=~"$namespace",job=~"$job"'
"""The matchers of a program's own series. Both variables also match series without the label, whatever scrapes them."""
CHOSEN: Final = f'{SCRAPED},recommendation=~"$recommendation"'
"""The matchers of the recommendations that are chosen."""
TARGET: Final = "recommendation, target_namespace, target_kind, target_name"
"""The labels of a target of a recommendation."""
STATUS: Final = "tidewatch_recommendation_status"


def query(expr: str, legend: str = "") -> Dataquery:
    """Return a query, and how its series are named."""
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
    """Return PromQL of a quantile of a histogram, by a label if one is given; nothing while nothing was observed."""
    buckets = f"sum by ({f'le, {by}' if by else 'le'}) (rate({histogram}_bucket{{{matchers}}}[{window}]))"
    # Without an observation the quantile is NaN, which is not at least 0.
    return f"histogram_quantile({share}, {buckets}) >= 0"


def rate(counter: str, by: str, matchers: str = SCRAPED) -> Dataquery:
    """Return how often a counter goes up each second, by labels."""
    return query(f"sum by ({by}) (rate({counter}{{{matchers}}}[$__rate_interval]))", _legend(by))


def increase(counter: str, by: str, matchers: str = SCRAPED) -> Dataquery:
    """Return by how much a counter went up between two points of the chart, by labels."""
    return query(f"sum by ({by}) (increase({counter}{{{matchers}}}[$__rate_interval]))", _legend(by))


def gauge(metric: str, by: str, function: str = "max", matchers: str = SCRAPED) -> Dataquery:
    """Return a gauge, of several replicas the largest or smallest, by labels."""
    return query(f"{function} by ({by}) ({metric}{{{matchers}}})", _legend(by))


def age(metric: str, by: str, matchers: str = SCRAPED) -> Dataquery:
    """Return how long ago a time was, in seconds; of several replicas the latest time counts."""
    return query(f"time() - max by ({by}) ({metric}{{{matchers}}})", _legend(by))


def count(of: str, among: str) -> Dataquery:
    """Return how many series there are, 0 if none; nothing if nothing of `among` is scraped."""
    return query(f"count({of}) or 0 * count({among})")


def worst_status(by: str, matchers: str) -> str:
    """Return PromQL of the statuses by labels, as numbers of `STATUSES`; of several targets, the worst one counts."""
    named = " or ".join(
        f'{number} * ({STATUS}{{{matchers},status="{status}"}} == 1)' for number, status in enumerate(STATUSES)
    )
    return f"max by ({by}) ({named})"


STATUSES: Final = ("ok", "held", "stale", "error")
"""From the best to the worst."""


def _legend(by: str) -> str:
    return " ".join(f"{{{{{label.strip()}}}}}" for label in by.split(","))
